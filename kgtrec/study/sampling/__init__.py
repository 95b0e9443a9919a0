"""Sampled candidates: full-ranking metrics from a part of the scores.

Open `estimates` first (`estimate_full`). `draw` draws candidates with known probabilities, `counts`
ranks among them, `estimates` corrects by a few full rankings. Bounds (`counts`) need no full
rankings, only candidates that were drawn evenly.
"""
