"""Figures for print: vector graphics with labels, readable without colour.

- style.py: size, fonts, colours, line styles; saving
- ranks.py: rank distribution, widths of ties, rank types, slices, alignment sizes
- compare.py: compared systems (intervals, pairs, p-value curves, rankings, pools without one
  system); many models on many graphs (ranks, critical differences, cells)
- studies.py: calibration, beta curves and grids, popularity, metrics under missing answers,
  coverage and risk of answer sets

All functions are here and load on first use: ``from kgtrec import plots``, then
``plots.save(plots.beta_curves({name: curve}), "beta.pdf")``. Every function takes ranks or results
of `kgtrec.study` and returns a matplotlib ``Figure``. It computes no results of its own. Figures
need the extra ``plot``.
"""

from __future__ import annotations

from kgtrec._internal.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
