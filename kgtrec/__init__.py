"""kgtrec: trec_eval-compatible evaluation of knowledge-graph completion.

The folders are the path of the data, each imports only from those before it::

    graph -> questions -> scores -> trec.files -> predictions -> ranking -> trec.measures
          -> measures -> results -> trec.eval -> study -> plots, cluster,
          integrations -> demo -> cli

Each folder's ``__init__`` says what comes in, what goes out, and which file to open first.
``_core`` is the C extension. Names are loaded on first use: ``import kgtrec`` costs nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING


def _compiled_folder(source: str) -> str:
    """The folder that has ``_core``: this one, or that of the installed package which it hides.

    In a checkout after ``pip install .`` Python finds the source folder first, which has no
    compiled part. All modules then come from the installed package, so that the two never mix.
    """
    import sys
    from importlib.machinery import EXTENSION_SUFFIXES

    folders = [source, *(os.path.join(os.path.abspath(entry), "kgtrec") for entry in sys.path)]
    for folder in folders:
        if any(os.path.exists(os.path.join(folder, "_core" + end)) for end in EXTENSION_SUFFIXES):
            return folder
    raise ImportError(
        f"kgtrec is neither compiled in {source} nor installed for {sys.executable}; "
        f"run: {sys.executable} -m pip install {os.path.dirname(source)}"
    )


if os.path.exists(os.path.join(__path__[0], "_core.pyx")):  # not so where it is installed
    __path__[:] = [_compiled_folder(__path__[0])]

from kgtrec._internal.lazy import homes, lazy_exports  # noqa: E402 - a module of the folder that was chosen
from kgtrec._version import __version__  # noqa: E402

if TYPE_CHECKING:
    from kgtrec.errors import AnswerNote as AnswerNote
    from kgtrec.errors import FilterWarning as FilterWarning
    from kgtrec.errors import FormatNote as FormatNote
    from kgtrec.errors import GraphWarning as GraphWarning
    from kgtrec.errors import InputError as InputError
    from kgtrec.errors import KgtrecError as KgtrecError
    from kgtrec.errors import KgtrecWarning as KgtrecWarning
    from kgtrec.errors import LabelWarning as LabelWarning
    from kgtrec.errors import QrelsWarning as QrelsWarning
    from kgtrec.errors import QueryWarning as QueryWarning
    from kgtrec.errors import RunWarning as RunWarning
    from kgtrec.errors import SampleWarning as SampleWarning
    from kgtrec.errors import TieWarning as TieWarning
    from kgtrec.errors import UsageError as UsageError
    from kgtrec.measures import Measure as Measure
    from kgtrec.questions.api import Graph as Graph
    from kgtrec.questions.api import Questions as Questions
    from kgtrec.questions.api import read_graph as read_graph
    from kgtrec.ranking.kernel import show_config as show_config
    from kgtrec.ranking.lists import rank_lists as rank_lists
    from kgtrec.ranking.partial import PartialRanks as PartialRanks
    from kgtrec.ranking.ranges import AnswerScores as AnswerScores
    from kgtrec.ranking.ranges import merge_ranges as merge_ranges
    from kgtrec.ranking.ranges import rank_range as rank_range
    from kgtrec.ranking.rank import rank as rank
    from kgtrec.ranking.ranker import Batch as Batch
    from kgtrec.ranking.ranker import Ranker as Ranker
    from kgtrec.ranking.ranks import Ranks as Ranks
    from kgtrec.results.comparability import comparable as comparable
    from kgtrec.results.result import Result as Result
    from kgtrec.results.result import evaluate as evaluate
    from kgtrec.scores.factors import Factors as Factors
    from kgtrec.study.alignment import align as align
    from kgtrec.study.classification.classify import classify as classify
    from kgtrec.study.classification.labelled_triples import LabelledTriples as LabelledTriples
    from kgtrec.trec.files.run import Run as Run
    from kgtrec.trec.files.write import write_qrels as write_qrels
    from kgtrec.trec.files.write import write_questions as write_questions

_HOMES = homes(
    {
        # graphs and what is asked of them
        "kgtrec.questions.api": "Graph Questions read_graph",
        # scores to ranks
        "kgtrec.scores.factors": "Factors",
        "kgtrec.ranking.ranker": "Batch Ranker",
        "kgtrec.ranking.rank": "rank",
        "kgtrec.ranking.lists": "rank_lists",
        "kgtrec.ranking.ranges": "AnswerScores rank_range merge_ranges",
        "kgtrec.ranking.partial": "PartialRanks",
        "kgtrec.ranking.kernel": "show_config",
        "kgtrec.ranking.ranks": "Ranks",
        # ranks to numbers
        "kgtrec.measures": "Measure",
        "kgtrec.results.result": "Result evaluate",
        "kgtrec.results.comparability": "comparable",
        "kgtrec.study.alignment": "align",
        "kgtrec.study.classification.labelled_triples": "LabelledTriples",
        "kgtrec.study.classification.classify": "classify",
        "kgtrec.trec.files.run": "Run",
        "kgtrec.trec.files.write": "write_qrels write_questions",
        # what goes wrong
        "kgtrec.errors": "AnswerNote FilterWarning FormatNote GraphWarning InputError KgtrecError "
        "KgtrecWarning LabelWarning QrelsWarning QueryWarning RunWarning SampleWarning TieWarning "
        "UsageError",
    }
)

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
