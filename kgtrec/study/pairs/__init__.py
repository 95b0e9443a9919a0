"""Pair ranking: the question (?, relation, ?), whose candidates are pairs (Zhou et al. 2022, 6.2).

In: scores of the pairs of relations. Out: ranks of the evaluated pairs, measures, the best pairs.
Read `rank` first. `questions` determines the answers and the known pairs, `measures` computes
values, `merging` reads ranks of several jobs, and `lists` writes the best pairs and compares two
files of them.
"""
