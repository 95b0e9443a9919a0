"""Triple classification: labelled triples with scores in, thresholds, metrics and calibration out.

Open `classify` first; `labelled_triples` reads files.
"""
