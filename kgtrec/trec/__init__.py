"""TREC files and measures.

run.py      runs as the ranker makes them
text.py     the bytes of a file (plain, packed, standard input), and what to say of a wrong line
documents.py  documents of every query of a text, through the native core, on all cores
columns.py  runs and qrels as columns
files.py    readers of run and qrels files; writing.py writes them, in lines made by lines.py
inputs.py   what else a user may hand over, pandas frames among it; packed.py makes dicts and
            columns ready for the native core
lists.py    judged lists: all that a measure can see of a run and its qrels
reading.py  judged lists from files, and from what is in memory
families.py    the measures of trec_eval, a row each: parameters, order, nicknames, help
parameters.py  what may stand behind a measure's name
table.py    names, in several spellings, to columns
options.py  level of relevance, collection size and the like
values.py   values of columns over judged lists, and the row for all queries
scoring.py, output.py, zscores.py  what `kgtrec eval` computes and prints
calling.py  the same for Python: evaluate
feed.py     the only room that speaks to pytrec_eval, and hands over no more than is safe
view.py     relevant documents by query and rank; own.py and gains.py compute from them what
            pytrec_eval lacks, and the rest where handing it over would take too long
ties.py, tiegroups.py, tiecount.py  values over all orders of tied documents
micro.py, micronames.py  micro metrics of graphs from a run: filtered ranks of answers
intervals.py  bootstrap intervals; beyond.py what `kgtrec eval` is asked of all these
bridge.py   values of measures for the ranker's runs; agreement of the two computations
native.py   some of the measures from ordinal ranks, to compare with
ir_measures_provider.py  all this as a provider of ir_measures

Names are loaded on first use: help and errors need no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.trec.bridge import check_agreement as check_agreement
    from kgtrec.trec.bridge import trec_values as trec_values
    from kgtrec.trec.calling import evaluate as evaluate
    from kgtrec.trec.calling import summarise as summarise
    from kgtrec.trec.columns import QrelsColumns as QrelsColumns
    from kgtrec.trec.columns import RunColumns as RunColumns
    from kgtrec.trec.files import read_qrels as read_qrels
    from kgtrec.trec.files import read_run as read_run
    from kgtrec.trec.native import native_values as native_values
    from kgtrec.trec.run import Run as Run
    from kgtrec.trec.writing import write_qrels as write_qrels
    from kgtrec.trec.writing import write_questions as write_questions
    from kgtrec.trec.writing import write_run as write_run

_HOMES = {
    "QrelsColumns": "kgtrec.trec.columns",
    "Run": "kgtrec.trec.run",
    "RunColumns": "kgtrec.trec.columns",
    "check_agreement": "kgtrec.trec.bridge",
    "evaluate": "kgtrec.trec.calling",
    "native_values": "kgtrec.trec.native",
    "read_qrels": "kgtrec.trec.files",
    "read_run": "kgtrec.trec.files",
    "summarise": "kgtrec.trec.calling",
    "trec_values": "kgtrec.trec.bridge",
    "write_qrels": "kgtrec.trec.writing",
    "write_questions": "kgtrec.trec.writing",
    "write_run": "kgtrec.trec.writing",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
