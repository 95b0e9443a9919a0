"""``kgtrec demo``: a small real graph, and three baselines computed on the spot.

countries/    the graph; SOURCES.md describes its facts and where to check them
baselines.py  the scorers, from the training split alone
run.py        the flow from graph to files
lessons.py    the tables and sentences that it prints
"""
