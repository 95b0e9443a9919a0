"""A raw run without what a graph knows: filtered, as ranks are, by the splits not asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.csr import contains, to_keys
from kgtrec.errors import InputError
from kgtrec.predictions.lists import ids_of
from kgtrec.trec.files.columns import RunColumns
from kgtrec.trec.files.convert import name_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgtrec.questions.questions import QuestionData

__all__ = ["GraphFiltered", "candidates_of", "filtered_by_graph"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GraphFiltered:
    """A run that was filtered by the graph.

    Attributes
    ----------
    run : RunColumns
    known : int
        Documents left out, which answer their question in another split.
    unlinkable : int
        Documents that name no entity of the graph; they are still there.
    """

    run: RunColumns
    known: int
    unlinkable: int


def filtered_by_graph(run: RunColumns, questions: QuestionData, name: str) -> GraphFiltered:
    """The run without what other splits than the evaluated one answer.

    Parameters
    ----------
    run : RunColumns
        Queries named head0, ..., tail0, ... as `QuestionData.ids` names them.
    questions : QuestionData
    name : str
        Of the run, for messages.

    Raises
    ------
    InputError
        A query that is not a question: its known answers could not be left out.
    """
    import pyarrow as pa

    number = {text: i for i, text in enumerate(questions.ids)}
    question = np.array([number.get(query, -1) for query in run.queries], dtype=np.int64)
    if (question < 0).any():
        strange = np.flatnonzero(question < 0)
        first = run.queries[strange[0]]
        raise InputError(
            f"{name}: {len(strange):,} of {len(question):,} queries are not questions of "
            f"split {questions.split!r} ({first!r} is the first), so that nothing can be filtered; "
            "name them as `kgtrec convert --questions` does, or give another --split"
        )
    encoded = run.documents.dictionary_encode()
    entity = ids_of(questions.candidate_labels.docnos, encoded.dictionary)
    entity = entity[encoded.indices.to_numpy()]
    owner = np.repeat(np.arange(len(run)), np.diff(run.offsets))
    keys = question[owner] * questions.n_labels + np.maximum(entity, 0)
    known = contains(to_keys(questions.removed, questions.n_labels), keys) & (entity >= 0)
    rows = np.flatnonzero(~known)
    offsets = np.append(0, np.cumsum(np.bincount(owner[rows], minlength=len(run))))
    names = name_buffers(run.documents.take(pa.array(rows)))
    left = RunColumns(run.queries, offsets, *names, run.scores[rows], run.tag)
    return GraphFiltered(left, int(known.sum()), int((entity < 0).sum()))


def candidates_of(questions: QuestionData, queries: Sequence[str]) -> Int64:
    """Entities that a question's lists may hold, answers included: int64, shape (n_queries,).

    Queries that are no questions may hold every entity.
    """
    number = {text: i for i, text in enumerate(questions.ids)}
    sizes = np.append(questions.n_labels - questions.removed.lengths, questions.n_labels)
    return sizes[[number.get(query, -1) for query in queries]]
