"""Triple classification: labelled triples with scores in, thresholds, metrics and calibration out.

Open `classify` first. `labelled_triples` reads files, `calibration` makes probabilities and says
how far to trust them.
"""
