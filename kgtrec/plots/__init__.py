"""Figures for print: vector, labelled, told apart without colour.

style.py       size, fonts, colours, line styles; saving
ranks.py       rank distribution, widths of ties, rank types side by side, slices, alignment sizes
stratified.py  beta curves and the beta grid
openworld.py   metrics under missing answers
compare.py     systems compared: intervals, pairs, p-value curves, pools without one of them
rankings.py    rankings of systems: side by side, on parts of the test set, by depth of the pool

What is used most is here, loaded on first use: ``from kgtrec import plots``, then
``plots.save(plots.beta_curves({name: curve}), "beta.pdf")``. Every function takes the data of
`kgtrec.study` or ranks and gives a matplotlib ``Figure``; nothing is computed here that the data do
not hold. Needs the extra ``plot``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.plots.classification import reliability_curves as reliability_curves
    from kgtrec.plots.compare import intervals as intervals
    from kgtrec.plots.compare import left_out as left_out
    from kgtrec.plots.compare import p_curves as p_curves
    from kgtrec.plots.compare import pair_matrix as pair_matrix
    from kgtrec.plots.openworld import approximation_quality as approximation_quality
    from kgtrec.plots.openworld import comparison as comparison
    from kgtrec.plots.openworld import expected_metric as expected_metric
    from kgtrec.plots.openworld import simulated as simulated
    from kgtrec.plots.openworld import sparse_full as sparse_full
    from kgtrec.plots.rankings import bump_chart as bump_chart
    from kgtrec.plots.rankings import depth_curves as depth_curves
    from kgtrec.plots.rankings import sensitivity as sensitivity
    from kgtrec.plots.ranks import alignment_sizes as alignment_sizes
    from kgtrec.plots.ranks import over_relations as over_relations
    from kgtrec.plots.ranks import rank_distribution as rank_distribution
    from kgtrec.plots.ranks import rank_types as rank_types
    from kgtrec.plots.ranks import relations as relations
    from kgtrec.plots.ranks import tie_widths as tie_widths
    from kgtrec.plots.stratified import beta_curves as beta_curves
    from kgtrec.plots.stratified import beta_heat_map as beta_heat_map
    from kgtrec.plots.stratified import popularity as popularity
    from kgtrec.plots.style import save as save
    from kgtrec.plots.times import over_time as over_time

_HOMES = {
    "reliability_curves": "kgtrec.plots.classification",
    "alignment_sizes": "kgtrec.plots.ranks",
    "over_relations": "kgtrec.plots.ranks",
    "rank_distribution": "kgtrec.plots.ranks",
    "rank_types": "kgtrec.plots.ranks",
    "relations": "kgtrec.plots.ranks",
    "tie_widths": "kgtrec.plots.ranks",
    "beta_curves": "kgtrec.plots.stratified",
    "beta_heat_map": "kgtrec.plots.stratified",
    "popularity": "kgtrec.plots.stratified",
    "approximation_quality": "kgtrec.plots.openworld",
    "comparison": "kgtrec.plots.openworld",
    "expected_metric": "kgtrec.plots.openworld",
    "simulated": "kgtrec.plots.openworld",
    "sparse_full": "kgtrec.plots.openworld",
    "intervals": "kgtrec.plots.compare",
    "left_out": "kgtrec.plots.compare",
    "p_curves": "kgtrec.plots.compare",
    "pair_matrix": "kgtrec.plots.compare",
    "bump_chart": "kgtrec.plots.rankings",
    "depth_curves": "kgtrec.plots.rankings",
    "sensitivity": "kgtrec.plots.rankings",
    "over_time": "kgtrec.plots.times",
    "save": "kgtrec.plots.style",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
