"""Measures: what can be asked of ranks, and the arithmetic behind it.

============== =====================================================================
measure.py     `Measure`, a hashable value; keys such as ``both.realistic.micro.mrr``
table.py       one row per rank metric: name, aliases, help, direction, range, function
trec_names.py  the names of trec_eval's measures
ties.py        rank types and the value of each metric per item
expected.py    expectations over all orders of a tie
sample.py      sums per (relation, side), from which every average follows
stratified.py  popularity weights; whole grids of exponents
============== =====================================================================
"""

from kgtrec.measures.measure import Measure, parse_all
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
    "required_depth",
    "stratified_grid",
]
