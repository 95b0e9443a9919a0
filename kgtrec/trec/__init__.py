"""Runs and qrels: TREC files and trec_eval's measures.

In: runs and qrels as files, dicts, frames or columns. Out: values of measures, per query or for
all, and files. `files/` turns bytes into columns and back, `measures/` has the measures, one row
each, `eval/` is what `kgtrec eval` and `evaluate` compute. Open `files.run` or `measures.rows`
first; `ir_measures_provider` makes kgtrec a provider of ir_measures.

Names are loaded on first use: help and errors need no numpy.
"""

from __future__ import annotations

from kgtrec._internal.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
