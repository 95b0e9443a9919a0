"""Figures for print: vector graphics with labels, readable without colour.

- style.py: size, fonts, colours, line styles; saving
- ranks.py: rank distribution, widths of ties, rank types, slices, alignment sizes
- compare.py: compared systems (intervals, pairs, p-value curves, rankings, pools without one
  system); many models on many graphs (ranks, critical differences, cells)
- studies.py: calibration, beta curves and grids, popularity, metrics under missing answers

All functions are here and load on first use: ``from kgtrec import plots``, then
``plots.save(plots.beta_curves({name: curve}), "beta.pdf")``. Every function takes ranks or results
of `kgtrec.study` and returns a matplotlib ``Figure``. It computes no results of its own. Figures
need the extra ``plot``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import homes, lazy_exports

if TYPE_CHECKING:
    from kgtrec.plots.compare import bump_chart as bump_chart
    from kgtrec.plots.compare import critical_difference as critical_difference
    from kgtrec.plots.compare import depth_curves as depth_curves
    from kgtrec.plots.compare import intervals as intervals
    from kgtrec.plots.compare import left_out as left_out
    from kgtrec.plots.compare import p_curves as p_curves
    from kgtrec.plots.compare import pair_matrix as pair_matrix
    from kgtrec.plots.compare import sensitivity as sensitivity
    from kgtrec.plots.compare import suite_cells as suite_cells
    from kgtrec.plots.compare import suite_places as suite_places
    from kgtrec.plots.ranks import alignment_sizes as alignment_sizes
    from kgtrec.plots.ranks import over_relations as over_relations
    from kgtrec.plots.ranks import over_time as over_time
    from kgtrec.plots.ranks import rank_distribution as rank_distribution
    from kgtrec.plots.ranks import rank_types as rank_types
    from kgtrec.plots.ranks import relations as relations
    from kgtrec.plots.ranks import slices as slices
    from kgtrec.plots.ranks import tie_widths as tie_widths
    from kgtrec.plots.studies import approximation_quality as approximation_quality
    from kgtrec.plots.studies import beta_curves as beta_curves
    from kgtrec.plots.studies import beta_heat_map as beta_heat_map
    from kgtrec.plots.studies import comparison as comparison
    from kgtrec.plots.studies import expected_metric as expected_metric
    from kgtrec.plots.studies import popularity as popularity
    from kgtrec.plots.studies import reliability_curves as reliability_curves
    from kgtrec.plots.studies import simulated as simulated
    from kgtrec.plots.studies import sparse_full as sparse_full
    from kgtrec.plots.style import save as save

_HOMES = homes(
    {
        "kgtrec.plots.studies": (
            "reliability_curves beta_curves beta_heat_map popularity "
            "approximation_quality comparison expected_metric simulated sparse_full"
        ),
        "kgtrec.plots.ranks": (
            "alignment_sizes over_relations rank_distribution rank_types relations slices "
            "tie_widths over_time"
        ),
        "kgtrec.plots.compare": (
            "intervals left_out p_curves pair_matrix bump_chart depth_curves sensitivity "
            "critical_difference suite_cells suite_places"
        ),
        "kgtrec.plots.style": "save",
    }
)

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
