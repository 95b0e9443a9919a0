"""Figures for print: vector, labelled, told apart without colour.

style.py       size, fonts, colours, line styles; saving
ranks.py       rank distribution, widths of ties, rank types side by side, slices, alignment sizes
stratified.py  beta curves and the beta grid
openworld.py   metrics under missing answers
compare.py     systems compared: intervals, p-value curves, data sensitivity, pool depths

Every function takes the data of `kgtrec.study` or ranks and gives a matplotlib ``Figure``; nothing
is computed here that the data do not hold. Needs the extra ``plot``.
"""

from __future__ import annotations

from kgtrec.plots.style import save

__all__ = ["save"]
