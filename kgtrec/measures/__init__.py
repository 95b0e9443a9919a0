"""Measures: what can be asked of ranks, and the arithmetic behind it.

============== =====================================================================
measure.py     `Measure`, a hashable value; keys such as ``both.realistic.micro.mrr``
keys.py        the grammar of keys, and near misses
table.py       the rows together: averagings, and names to rows
rank_rows.py   one row per rank metric: name, aliases, help, direction, range, functions
chance_rows.py the same, of metrics adjusted for chance; soft_rows.py: of log-MRR and p-MRR
adjusting.py   ratio, index and z-score from a metric and what chance gives
metric.py      what a row holds, and what its values are computed from
trec_names.py  the names of trec_eval's measures
ties.py        rank types, for instances, questions and triples
values.py      the value of each metric per item
expected.py    expectations over all orders of a tie
chance.py      expectations and variances under a random scorer
random_scorer.py  what chance gives, from numbers of candidates alone
spread.py      medians and variances
sample.py      cells (relation, side), from whose sums every average follows
weighing.py    what each averaging counts, and how much it weighs
stratified.py  popularity weights; whole grids of exponents
catalogue.py   the table for people: a list, and one measure explained
============== =====================================================================
"""

from kgtrec.measures.measure import Measure, parse_all
from kgtrec.measures.random_scorer import random_scorer
from kgtrec.measures.stratified import stratified_grid
from kgtrec.measures.table import AVERAGINGS, METRICS, Metric
from kgtrec.measures.ties import RANK_TYPES
from kgtrec.measures.trec_names import TREC_FAMILIES, required_depth

__all__ = [
    "AVERAGINGS",
    "METRICS",
    "RANK_TYPES",
    "TREC_FAMILIES",
    "Measure",
    "Metric",
    "parse_all",
    "random_scorer",
    "required_depth",
    "stratified_grid",
]
