"""TREC files and measures.

run.py     runs as the ranker makes them; writes run, qrels and question files
files.py   strict readers of run and qrels files
table.py   names, order, default cutoffs and nicknames of the measures
feed.py    the only room that speaks to pytrec_eval, and hands over no more than is safe
bridge.py  values of measures for runs and dicts; agreement of the two computations
native.py  the same measures from ordinal ranks, to compare with
"""

from __future__ import annotations

from kgtrec.trec.bridge import check_agreement, evaluate, native_values, summarise, trec_values
from kgtrec.trec.files import read_qrels, read_run
from kgtrec.trec.run import Run, write_qrels, write_questions

__all__ = [
    "Run",
    "check_agreement",
    "evaluate",
    "native_values",
    "read_qrels",
    "read_run",
    "summarise",
    "trec_values",
    "write_qrels",
    "write_questions",
]
