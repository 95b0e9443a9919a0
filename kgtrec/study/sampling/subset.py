"""Some of the questions, to be ranked by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import take
from kgtrec.errors import UsageError
from kgtrec.ranking.rank import rank
from kgtrec.scores.factors import Factors
from kgtrec.scores.open import as_source
from kgtrec.scores.sources import selected

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks

__all__ = ["instances_of", "rank_some", "subset_of"]

Int64 = npt.NDArray[np.int64]


def instances_of(questions: Questions, chosen: Int64) -> Int64:
    """The instances of some questions, question after question."""
    starts, lengths = questions.answers.offsets[chosen], questions.answers.lengths[chosen]
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def subset_of(questions: Questions, chosen: Int64) -> Questions:
    """Some questions, ascending numbers, as questions of their own with a row of scores each."""
    instances = instances_of(questions, chosen)
    place = np.full(questions.n_instances, -1, np.int64)
    place[instances] = np.arange(len(instances))
    rows = place[questions.triple_rows]
    lists, full = questions.candidate_lists, questions.full_candidates
    context = questions.context
    return replace(
        questions,
        side=questions.side[chosen],
        given=(questions.given[0][chosen], questions.given[1][chosen]),
        context=None if context is None else context[chosen],
        answers=take(questions.answers, chosen),
        known=take(questions.known, chosen),
        removed=take(questions.removed, chosen),
        instance_question=np.repeat(np.arange(len(chosen)), questions.answers.lengths[chosen]),
        instance_triple=questions.instance_triple[instances],
        triple_rows=rows[rows >= 0],
        candidate_lists=None if lists is None else lists.selected(chosen),
        full_candidates=None if full is None else full[instances],
        details={**questions.details, "part_of": questions.fingerprint},
    )


def rank_some(scores: Any, questions: Questions, chosen: Int64, **options: Any) -> Ranks:
    """Ranks of some questions, from scores of these alone or of all.

    Parameters
    ----------
    scores : object
        As for `kgtrec.rank`, with a row for each question or for each chosen one. A function is
        asked for the chosen ones alone.
    questions : Questions
    chosen : ndarray of int64
        Their numbers, ascending.
    **options
        Of `kgtrec.rank`.

    Raises
    ------
    UsageError
        No question, or scores that can be read only once.
    InputError, FileError
        As for `kgtrec.rank`.
    """
    if not len(chosen):
        raise UsageError("no question is chosen; ask for more of them to be ranked in full")
    part = subset_of(questions, chosen)
    if not callable(scores):
        source = as_source(scores, questions, _no_batches, len(questions))
        n_rows = len(source.queries) if isinstance(source, Factors) else source.n_rows
        if n_rows is None:
            raise UsageError(
                "scores that come in blocks can be read once, and here the second time some "
                "questions are ranked among all entities; hand over an array, a file or a function"
            )
        if n_rows == len(questions) != len(chosen):
            source = selected(source, chosen)
        scores = source if isinstance(source, Factors) else source.blocks()
    return rank(scores, part, **options)[0]


def _no_batches(size: int) -> Any:
    raise AssertionError("a function is not opened here")
