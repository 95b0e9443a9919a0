"""Triple classification: labelled triples with scores in, thresholds, metrics and calibration out.

Open `classify` first. `labelled_triples` reads files, `thresholds` chooses where scores count as
true, `weighted_metrics` counts, `calibration` makes probabilities and says how far to trust them,
and `report` holds the results.
"""
