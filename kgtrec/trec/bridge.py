"""trec_eval measures of runs and of dicts, and their agreement with those from the ranks.

The order is settled here: score in float64 descending, then document descending in byte order.
`kgtrec.trec.feed` carries the result to pytrec_eval.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.trec.feed import Judged, depth_seen, fill, pieces
from kgtrec.trec.native import native_values
from kgtrec.trec.table import GRADED, Column, resolve

if TYPE_CHECKING:
    from kgtrec.questions import Csr, Questions
    from kgtrec.ranks import Ranks
    from kgtrec.trec.run import Run

__all__ = ["check_agreement", "compare_values", "evaluate", "native_values", "summarise",
           "trec_values"]  # fmt: skip

Floats = NDArray[np.float64]

AGREEMENT = 1e-12
_HIGHEST_GRADE = 10_000


def trec_values(run: Run, questions: Questions | Csr, measures: Sequence[str]) -> dict[str, Floats]:
    """Values of trec_eval measures for every question of a run, from pytrec_eval.

    Parameters
    ----------
    run : Run
        Candidates of every question, best first.
    questions : Questions or Csr
        The questions of the run in the same order, or their answers as entity ids.
    measures : sequence of str
        See `kgtrec.trec.table.resolve`. gm_map and gm_bpref are logarithms, floored at 1e-5.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_questions,)
        By trec_eval's name. A question without any candidate in the run has 0.

    Raises
    ------
    UsageError
        Unknown measures, runid (it has no value), a run that does not belong to the questions,
        or a run whose depth cuts off what a measure such as P_20 looks at. Measures without a
        cutoff take the run as it is.
    """
    columns = _per_query(measures)
    answers = _answers(run, questions)
    _check_depth(run, columns)
    handed = np.minimum(np.diff(run.offsets), depth_seen(columns))
    values = {column.name: np.zeros(len(handed)) for column in columns}
    for start, stop in pieces(handed):
        judged = _judge(run, answers, handed, start, stop)
        fill(values, columns, start, handed[start:stop].tolist(), judged)
    return values


def evaluate(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    measures: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Values of trec_eval measures for every query that has both judgements and a run.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to int
        Query, then document, to its relevance.
    run : mapping of str to mapping of str to float
        Query, then document, to its score. Compared as float64; equal scores are ordered by
        document, descending in byte order.
    measures : sequence of str
        See `kgtrec.trec.table.resolve`. gm_map and gm_bpref are logarithms, floored at 1e-5.

    Returns
    -------
    dict of str to dict of str to float
        Query, in byte order, then measure, in table order, to its value.

    Raises
    ------
    UsageError
        Unknown measures, or runid (it has no value).
    InputError
        A NaN or something that is no number among the scores, a relevance that is no whole
        number, or one above 10,000 for measures whose cost grows with its square.
    """
    columns = _per_query(measures)
    queries = sorted((q for q in run if qrels.get(q)), key=_bytes)
    depth = depth_seen(columns)
    graded = any(column.family in GRADED for column in columns)
    handed = np.minimum(np.array([len(run[q]) for q in queries], dtype=np.int64), depth)
    values = {column.name: np.zeros(len(queries)) for column in columns}
    for start, stop in pieces(handed):
        judged = []
        for query, most in zip(queries[start:stop], handed[start:stop].tolist(), strict=True):
            best = _ordered(query, run[query], most)
            judged.append(_relabelled(query, best, qrels[query], graded))
        fill(values, columns, start, handed[start:stop].tolist(), judged)
    names = list(values)
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    return {
        query: dict(zip(names, row, strict=True)) for query, row in zip(queries, rows, strict=True)
    }


def summarise(
    values: Mapping[str, Mapping[str, float]], measures: Sequence[str]
) -> dict[str, float]:
    """Summary row of what `evaluate` gave: sums of num_*, geometric means of gm_*, else means."""
    if not values:
        raise InputError("there is no query to average over; give a run and qrels that share some")
    summary = {}
    for column in _per_query(measures):
        # cumsum adds one after the other, as trec_eval does: the same bits, hence the same digits.
        total = float(np.cumsum([row[column.name] for row in values.values()])[-1])
        mean = total if column.is_count else total / len(values)
        summary[column.name] = math.exp(mean) if column.family.startswith("gm_") else mean
    return summary


def check_agreement(
    ranks: Ranks,
    run: Run,
    questions: Questions,
    measures: Sequence[str] = ("map_cut_20", "ndcg_cut_20"),
) -> dict[str, float]:
    """Compute measures from the run by pytrec_eval and from the ranks natively, and compare.

    Returns
    -------
    dict of str to float
        Largest absolute difference of each measure.

    Raises
    ------
    KgtrecError
        If a difference exceeds 1e-12, naming measure, question and both values.
    """
    return compare_values(
        trec_values(run, questions, measures),
        native_values(ranks, measures),
        run.query_ids,
        np.unique(ranks.question),
    )


def compare_values(
    trec: Mapping[str, Floats],
    native: Mapping[str, Floats],
    query_ids: Sequence[str],
    questions: NDArray[np.int64] | None = None,
) -> dict[str, float]:
    """Largest absolute difference of each measure that both hold; see `check_agreement`.

    Parameters
    ----------
    trec : mapping of str to ndarray, shape (n_questions,)
        From `trec_values`.
    native : mapping of str to ndarray, shape (n,)
        From `kgtrec.trec.native.native_values`.
    query_ids : sequence of str
        Ids of all questions, for the message.
    questions : ndarray of int, shape (n,), optional
        Question numbers of the native values; all questions by default.
    """
    differences = {}
    for name in (name for name in trec if name in native):
        theirs = trec[name] if questions is None else trec[name][questions]
        ours = native[name]
        gap = np.abs(theirs - ours)
        # A NaN must not pass for agreement.
        bad = np.flatnonzero(~(gap <= AGREEMENT))
        if len(bad):
            first = int(bad[0])
            query = query_ids[first if questions is None else int(questions[first])]
            raise KgtrecError(
                f"{name} of question {query!r} is {theirs[first]!r} from pytrec_eval but "
                f"{ours[first]!r} from the ranks, and {len(bad):,} of {len(gap):,} questions "
                "differ; run and ranks do not come from the same scores and questions, or this is "
                "an error of kgtrec: please report it"
            )
        differences[name] = float(gap.max(initial=0.0))
    return differences


def _per_query(measures: Sequence[str]) -> list[Column]:
    columns = resolve(measures)
    if any(column.family == "runid" for column in columns):
        raise UsageError("measure 'runid' has no value for a query; ask for it on the command line")
    return columns


def _answers(run: Run, questions: Questions | Csr) -> Csr:
    """Answers of the run's questions, after checking that they are the run's."""
    ids = getattr(questions, "ids", None)
    answers: Any = getattr(questions, "answers", questions)
    if len(answers.offsets) != len(run.offsets):
        raise UsageError(
            f"the run has {len(run.offsets) - 1:,} questions where {len(answers.offsets) - 1:,} "
            "are evaluated; give the questions that the run was made for"
        )
    if answers is not questions:
        for position, (theirs, ours) in enumerate(zip(run.query_ids, ids or (), strict=True)):
            if theirs != ours:
                raise UsageError(
                    f"question {position} is {theirs!r} in the run and {ours!r} among the "
                    "questions; give the questions that the run was made for"
                )
    return answers


def _check_depth(run: Run, columns: Sequence[Column]) -> None:
    """Refuse to look deeper than the run was cut: P_20 of ten candidates would be too low."""
    if run.depth >= len(run.docnos) or not (np.diff(run.offsets) >= run.depth).any():
        return  # nothing was cut off
    needed = max((c.sees or 0 for c in columns if c.cutoff is not None), default=0)
    if needed > run.depth:
        names = ", ".join(c.name for c in columns if c.cutoff and (c.sees or 0) > run.depth)
        raise UsageError(
            f"the run holds {run.depth} candidates a question, which is not enough for {names}; "
            f"rank with run_depth={needed} or more"
        )


def _judge(
    run: Run, answers: Csr, handed: NDArray[np.int64], start: int, stop: int
) -> list[Judged]:
    """Answers of questions start..stop-1 by their place in the run, or as never retrieved."""
    counts = handed[start:stop]
    owner = np.repeat(np.arange(stop - start), counts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    documents = run.documents[run.offsets[start:stop][owner] + place].astype(np.int64)
    first, last = answers.offsets[start], answers.offsets[stop]
    relevant = answers.ids[first:last].astype(np.int64)
    n_answers = np.diff(answers.offsets[start : stop + 1])
    width = max(documents.max(initial=0), relevant.max(initial=0)) + 1
    hit = np.isin(
        owner * width + documents,
        np.repeat(np.arange(stop - start), n_answers) * width + relevant,
    )
    ends = np.cumsum(np.bincount(owner[hit], minlength=stop - start)).tolist()
    places = place[hit].tolist()
    judged = []
    begin = 0
    for end, count in zip(ends, n_answers.tolist(), strict=True):
        found = dict.fromkeys(map(str, places[begin:end]), 1)
        found.update((f"u{i}", 1) for i in range(count - (end - begin)))
        judged.append(found)
        begin = end
    return judged


def _ordered(query: str, scores: Mapping[str, float], most: int) -> list[str]:
    """The first documents in trec_eval's order."""
    try:
        exact = dict(zip(scores, map(float, scores.values()), strict=True))
    except (TypeError, ValueError) as error:
        raise InputError(f"a score of query {query!r} is no number: {error}") from None
    values = exact.values()
    if any(map(operator.ne, values, values)):
        bad = next(document for document, score in exact.items() if score != score)
        raise InputError(f"the score of document {bad!r} under query {query!r} is NaN; remove it")
    order = list(exact)
    if most < len(order) // 2:  # a few of many: drop what is below the last of them at once
        least = heapq.nlargest(most, values)[-1]
        order = [document for document in order if exact[document] >= least]
    # In ASCII, the order of str is that of its bytes, and needs no bytes object per document.
    order.sort(key=None if "".join(order).isascii() else _bytes, reverse=True)
    order.sort(key=exact.__getitem__, reverse=True)
    return order[:most]


def _relabelled(
    query: str, best: Sequence[str], judgements: Mapping[str, int], graded: bool
) -> Judged:
    """Relevance of judged documents by place in the list; those outside it as never retrieved."""
    place = {document: position for position, document in enumerate(best)}
    judged: Judged = {}
    for number, (document, relevance) in enumerate(judgements.items()):
        try:
            grade = operator.index(relevance)
        except TypeError:
            raise InputError(
                f"the relevance of document {document!r} under query {query!r} is {relevance!r}; "
                "it must be a whole number"
            ) from None
        if graded and grade > _HIGHEST_GRADE:
            raise InputError(
                f"relevance {grade} of document {document!r} under query {query!r} is too high for "
                f"graded measures ({', '.join(sorted(GRADED))}): use levels up to "
                f"{_HIGHEST_GRADE:,} or ask for other measures"
            )
        # All that is below 0 means "not judged"; without graded measures all from 1 is alike.
        grade = max(grade, -1) if graded else max(-1, min(grade, 1))
        position = place.get(document)
        judged[f"u{number}" if position is None else str(position)] = grade
    return judged


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
