"""Runs and qrels: TREC files and trec_eval's measures.

In: runs and qrels as files, dicts, frames or columns. Out: values of measures, per query or for
all, and files. `files/` turns bytes into columns and back, `measures/` has the measures, one row
each, `eval/` is what `kgtrec eval` and `evaluate` compute. Open `files.run` or `measures.rows`
first; `ir_measures_provider` makes kgtrec a provider of ir_measures.

Names are loaded on first use: help and errors need no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kgtrec._internal.lazy import homes, lazy_exports

if TYPE_CHECKING:
    from kgtrec.trec.eval.evaluate import Evaluator as Evaluator
    from kgtrec.trec.eval.evaluate import TieValues as TieValues
    from kgtrec.trec.eval.evaluate import evaluate as evaluate
    from kgtrec.trec.eval.evaluate import summarise as summarise
    from kgtrec.trec.files.columns import QrelsColumns as QrelsColumns
    from kgtrec.trec.files.columns import RunColumns as RunColumns
    from kgtrec.trec.files.run import Run as Run
    from kgtrec.trec.files.run import read_qrels as read_qrels
    from kgtrec.trec.files.run import read_run as read_run
    from kgtrec.trec.files.write import write_qrels as write_qrels
    from kgtrec.trec.files.write import write_questions as write_questions
    from kgtrec.trec.files.write import write_run as write_run
    from kgtrec.trec.measures.agreement import check_agreement as check_agreement
    from kgtrec.trec.measures.agreement import trec_values as trec_values
    from kgtrec.trec.measures.values import native_values as native_values

_HOMES = homes(
    {
        "kgtrec.trec.files.columns": "QrelsColumns RunColumns",
        "kgtrec.trec.files.run": "Run read_qrels read_run",
        "kgtrec.trec.measures.agreement": "check_agreement trec_values",
        "kgtrec.trec.eval.evaluate": "Evaluator TieValues evaluate summarise",
        "kgtrec.trec.measures.values": "native_values",
        "kgtrec.trec.files.write": "write_qrels write_questions write_run",
    }
)

__all__ = [*_HOMES]

_load, __dir__ = lazy_exports(globals(), _HOMES)


def __getattr__(name: str) -> Any:
    """Load a name of the table, or the module that needs ir_measures."""
    if name == "ir_measures_provider":
        return import_module("kgtrec.trec.ir_measures_provider")
    return _load(name)
