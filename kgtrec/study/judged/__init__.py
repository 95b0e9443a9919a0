"""Measures with the labels of a judge, corrected by people's labels of some questions.

In: a judge's labels of a whole pool, and people's labels of a random sample of questions. Out: the
mean of each measure as the judge alone, people alone and both together give it. `draw` draws
questions, and `labels` reads the judge's labels. `estimate` has the estimator: open it first.
`values` evaluates systems by both kinds of labels, `planning` says how many questions people should
judge, and `report` makes tables.
"""
