"""Sampled candidates that tell the truth: full-ranking metrics from a part of the scores.

In: questions, and how likely each entity ranks high. Out: lists of candidates with known inclusion
probabilities, and from their ranks estimates of MR, MRR and Hits@k among all candidates. `weights`
says how likely, `draw` draws, `counts` ranks stratum by stratum, `full_check` draws the questions
that are ranked in full, `estimates` puts all together: open that first. `bounds` is what follows
from candidates that somebody else drew evenly.
"""
