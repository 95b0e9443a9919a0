"""TREC files and measures.

run.py     runs as the ranker makes them; writes run, qrels and question files
text.py    the bytes of a file (plain, packed, standard input), and what to say of a wrong line
documents.py  documents of every query of a text, through the native core, on all cores
lists.py   judged lists: all that a measure can see of a run and its qrels
reading.py, dicts.py  judged lists from files and from dicts
files.py   run and qrels files as columns and as dicts
families.py    the measures of trec_eval, a row each: parameters, order, nicknames, help
parameters.py  what may stand behind a measure's name
table.py   names, in several spellings, to columns
options.py level of relevance, collection size and the like
values.py  values of columns over judged lists, and the row for all queries
scoring.py, output.py, zscores.py  what `kgtrec eval` computes and prints
feed.py    the only room that speaks to pytrec_eval, and hands over no more than is safe
view.py    relevant documents by query and rank; own.py and gains.py compute from them what
           pytrec_eval lacks, and the rest where handing it over would take too long
bridge.py  values of measures for runs and dicts; agreement of the two computations
native.py  some of the measures from ordinal ranks, to compare with
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
