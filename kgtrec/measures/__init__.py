"""Measures: counts in, numbers out.

In: `Ranks`. Out: values by key, such as ``both.realistic.micro.mrr``. Open `rank_metrics` first:
a metric is one row, there or in `chance_metrics` (those adjusted for chance); `metric` defines the
rows.

================== =====================================================================
measure            `Measure`, a hashable value; `keys`: the grammar of keys, and suggestions
ties               rank types, and expectations over all orders of a tie
sampled_hits       Hits@k expected among negatives drawn at random
averaging          items and weights of each averaging; sums per cell
random_baseline    expectations and variances under a random scorer
stratified         popularity weights; whole grids of exponents
calculator         all of the above for one evaluation
help               the table for people: a list, and explanations of single measures
================== =====================================================================
"""

from kgtrec.measures.keys import AVERAGINGS, METRICS, RankMetric, random_scorer
from kgtrec.measures.measure import Measure, headings, parse_all
from kgtrec.measures.stratified import stratified_grid
from kgtrec.measures.ties import RANK_TYPES
from kgtrec.trec.measures.names import find_depth

__all__ = [
    "AVERAGINGS",
    "METRICS",
    "RANK_TYPES",
    "Measure",
    "RankMetric",
    "find_depth",
    "headings",
    "parse_all",
    "random_scorer",
    "stratified_grid",
]
