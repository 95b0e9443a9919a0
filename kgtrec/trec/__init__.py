"""Runs and qrels: TREC files and trec_eval's measures.

In: runs and qrels as files, dicts, frames or columns. Out: values of measures, per query or for
all, and files. `files/` turns bytes into columns and back, `measures/` has the measures, a row
each, `eval/` is what `kgtrec eval` and `evaluate` compute. Open `files.read` or
`measures.definitions` first; `ir_measures_provider` makes all this a provider of ir_measures.

Names are loaded on first use: help and errors need no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._internal.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.trec.eval.evaluate import evaluate as evaluate
    from kgtrec.trec.eval.evaluate import summarise as summarise
    from kgtrec.trec.files.columns import QrelsColumns as QrelsColumns
    from kgtrec.trec.files.columns import RunColumns as RunColumns
    from kgtrec.trec.files.read import read_qrels as read_qrels
    from kgtrec.trec.files.read import read_run as read_run
    from kgtrec.trec.files.run import Run as Run
    from kgtrec.trec.files.write import write_qrels as write_qrels
    from kgtrec.trec.files.write import write_questions as write_questions
    from kgtrec.trec.files.write import write_run as write_run
    from kgtrec.trec.measures.agreement import check_agreement as check_agreement
    from kgtrec.trec.measures.agreement import trec_values as trec_values
    from kgtrec.trec.measures.from_ranks import native_values as native_values

_HOMES = {
    "QrelsColumns": "kgtrec.trec.files.columns",
    "Run": "kgtrec.trec.files.run",
    "RunColumns": "kgtrec.trec.files.columns",
    "check_agreement": "kgtrec.trec.measures.agreement",
    "evaluate": "kgtrec.trec.eval.evaluate",
    "native_values": "kgtrec.trec.measures.from_ranks",
    "read_qrels": "kgtrec.trec.files.read",
    "read_run": "kgtrec.trec.files.read",
    "summarise": "kgtrec.trec.eval.evaluate",
    "trec_values": "kgtrec.trec.measures.agreement",
    "write_qrels": "kgtrec.trec.files.write",
    "write_questions": "kgtrec.trec.files.write",
    "write_run": "kgtrec.trec.files.write",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
