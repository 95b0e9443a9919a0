"""kgtrec: trec_eval-compatible evaluation of knowledge-graph completion.

How the rooms follow one another (each imports only from those before it)::

    errors <- labels, triples <- graph <- questions <- ranks <- scores, plan, measures <- trec
           <- native <- ranker, result <- ranking, ranges <- evaluation <- demo <- cli

``_core`` is the C extension. Names are loaded on first use, so that ``import kgtrec`` costs
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgtrec._version import __version__
from kgtrec.lazy import lazy_exports

if TYPE_CHECKING:
    from kgtrec.config import show_config as show_config
    from kgtrec.errors import FilterWarning as FilterWarning
    from kgtrec.errors import InputError as InputError
    from kgtrec.errors import KgtrecError as KgtrecError
    from kgtrec.errors import UsageError as UsageError
    from kgtrec.evaluation import evaluate as evaluate
    from kgtrec.graph import Graph as Graph
    from kgtrec.graph import read_graph as read_graph
    from kgtrec.measures import Measure as Measure
    from kgtrec.questions import Questions as Questions
    from kgtrec.ranges import AnswerScores as AnswerScores
    from kgtrec.ranges import PartialRanks as PartialRanks
    from kgtrec.ranges import merge_ranges as merge_ranges
    from kgtrec.ranges import rank_range as rank_range
    from kgtrec.ranker import Batch as Batch
    from kgtrec.ranker import Ranker as Ranker
    from kgtrec.ranking import rank as rank
    from kgtrec.ranks import Ranks as Ranks
    from kgtrec.result import Result as Result
    from kgtrec.scores import Factors as Factors
    from kgtrec.study.alignment import align as align
    from kgtrec.study.comparable import comparable as comparable
    from kgtrec.trec.run import Run as Run
    from kgtrec.trec.writing import write_qrels as write_qrels
    from kgtrec.trec.writing import write_questions as write_questions

_HOMES = {
    # graphs and what is asked of them
    "Graph": "kgtrec.graph",
    "read_graph": "kgtrec.graph",
    "Questions": "kgtrec.questions",
    # scores to ranks
    "Factors": "kgtrec.scores",
    "Batch": "kgtrec.ranker",
    "Ranker": "kgtrec.ranker",
    "rank": "kgtrec.ranking",
    "AnswerScores": "kgtrec.ranges",
    "PartialRanks": "kgtrec.ranges",
    "rank_range": "kgtrec.ranges",
    "merge_ranges": "kgtrec.ranges",
    "show_config": "kgtrec.config",
    "Ranks": "kgtrec.ranks",
    # ranks to numbers
    "Measure": "kgtrec.measures",
    "Result": "kgtrec.result",
    "evaluate": "kgtrec.evaluation",
    "comparable": "kgtrec.study.comparable",
    "align": "kgtrec.study.alignment",
    # TREC files
    "Run": "kgtrec.trec.run",
    "write_qrels": "kgtrec.trec.writing",
    "write_questions": "kgtrec.trec.writing",
    # what goes wrong
    "FilterWarning": "kgtrec.errors",
    "InputError": "kgtrec.errors",
    "KgtrecError": "kgtrec.errors",
    "UsageError": "kgtrec.errors",
}

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = lazy_exports(globals(), _HOMES)
