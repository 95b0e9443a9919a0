"""``kgtrec demo``: a small real graph, and three baselines computed on the spot.

countries/    the graph; SOURCES.md describes its facts and where to check them
baselines.py  the scorers, from the training split alone
run.py        the flow from graph to files
lessons.py    the tables and sentences that it prints
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.demo.run import run_demo as run_demo

__getattr__, __dir__ = lazy_exports(globals(), {"run_demo": "kgtrec.demo.run"})
