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
from kgtrec.lazy import front_page

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
    "Graph": "graph",
    "read_graph": "graph",
    "Questions": "questions",
    # scores to ranks
    "Factors": "scores",
    "Batch": "ranker",
    "Ranker": "ranker",
    "rank": "ranking",
    "AnswerScores": "ranges",
    "PartialRanks": "ranges",
    "rank_range": "ranges",
    "merge_ranges": "ranges",
    "show_config": "config",
    "Ranks": "ranks",
    # ranks to numbers
    "Measure": "measures",
    "Result": "result",
    "evaluate": "evaluation",
    "comparable": "study.comparable",
    "align": "study.alignment",
    # TREC files
    "Run": "trec.run",
    "write_qrels": "trec.writing",
    "write_questions": "trec.writing",
    # what goes wrong
    "FilterWarning": "errors",
    "InputError": "errors",
    "KgtrecError": "errors",
    "UsageError": "errors",
}

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = front_page(globals(), _HOMES)
