"""Measures: counts in, numbers out.

In: `Ranks`. Out: values by key, such as ``both.realistic.micro.mrr``. Open `registry` first: all
the rows. A metric is one row of `rank_metrics` (or `chance_metrics`, of those adjusted for chance),
with its value per item in `item_values`.

================== =====================================================================
measure            `Measure`, a hashable value; keys and their near misses: `keys`
registry           the rows together: averagings, and names to rows; `metric`: what a row holds
tied_ranks         rank types, for instances, questions and triples
tie_expectation    expectations over all orders of a tie
averaging          what each averaging counts, and how much it weighs; `sample`: cells, from whose
                   sums every average follows
random_baseline    expectations and variances under a random scorer; `random_scorer`: from numbers
                   of candidates alone
dispersion         medians and variances
stratified         popularity weights; whole grids of exponents
calculator         all of the above for one evaluation
help               the table for people: a list, and one measure explained
================== =====================================================================
"""

from kgtrec.measures.measure import Measure, headings, parse_all
from kgtrec.measures.random_scorer import random_scorer
from kgtrec.measures.registry import AVERAGINGS, METRICS, Metric
from kgtrec.measures.stratified import stratified_grid
from kgtrec.measures.tied_ranks import RANK_TYPES
from kgtrec.trec.measures.names import required_depth

__all__ = [
    "AVERAGINGS",
    "METRICS",
    "RANK_TYPES",
    "Measure",
    "Metric",
    "headings",
    "parse_all",
    "random_scorer",
    "required_depth",
    "stratified_grid",
]
