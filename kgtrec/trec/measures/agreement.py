"""trec_eval measures of the ranker's runs, and their agreement with measures from the ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import QUESTIONS, RANKS, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import contains, owners
from kgtrec.errors import KgtrecError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.ranks import Ranks
from kgtrec.trec.files.run import Run
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.pytrec_eval import foreign_values
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import native_values

if TYPE_CHECKING:
    from kgtrec._internal.csr import Csr


AGREEMENT = 1e-12
COMPARED = ("map_cut_20", "ndcg_cut_20")
"""Measures for the check of every run: pytrec_eval against the answers' ordinal ranks."""


def trec_values(
    run: Run, questions: Questions | Csr, measures: Sequence[str], grades: Int64 | None = None
) -> dict[str, Float64]:
    """Compute trec_eval measures for every question of a run, by pytrec_eval.

    Parameters
    ----------
    run : Run
        Candidates of every question, best first.
    questions : Questions or Csr
        The questions of the run in the same order, or their answers as entity ids.
    measures : sequence of str
        See `kgtrec.trec.measures.names.resolve`. gm_map and gm_bpref are logarithms, floored at
        1e-5.
    grades : ndarray of int64, shape (n_answers,), optional
        Relevance of each answer; by default 1, or that of the questions.

    Returns
    -------
    dict of str to ndarray of float64, shape (n_questions,)
        Values by trec_eval's name; 0 for a question without candidates in the run.

    Raises
    ------
    UsageError
        Unknown measures, runid (it has no value), a run that does not belong to the questions,
        or a run that is too short for a measure such as P_20. Measures without a cutoff accept
        a run of any depth.
    """
    columns = resolve(measures)
    if any(column.measure == "runid" for column in columns):
        raise UsageError("'runid' has no value per query; ask for it on the command line")
    answers = _answers(run, questions)
    grades = getattr(questions, "grades", None) if grades is None else grades
    _check_depth(run, columns)
    # Never natively: agreement with ourselves would prove nothing.
    return foreign_values(_judge_run(run, answers, grades), columns, EvalOptions(compat=9))


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
    require_type("ranks", ranks, Ranks, RANKS)
    require_type("run", run, Run, "a Run (kgtrec.rank with run_depth)")
    require_type("questions", questions, Questions, QUESTIONS)
    numbers = np.unique(ranks.question)
    theirs = {name: row[numbers] for name, row in trec_values(run, questions, measures).items()}
    ids = [run.query_ids[number] for number in numbers.tolist()]
    return compare_values(theirs, native_values(ranks, measures), ids)


def compare_with_ranks(
    ranks: Ranks, run: Run, questions: Questions | Csr, measures: Sequence[str] = ()
) -> tuple[dict[str, Float64], dict[str, float]]:
    """Compute trec_eval measures of a run, and how far `COMPARED` differ from the ranks'.

    The run must hold at least 20 candidates per question.
    """
    values = trec_values(run, questions, [*COMPARED, *measures], ranks.grade)
    theirs = {name: values[name] for name in COMPARED}
    return values, compare_values(theirs, native_values(ranks, COMPARED), run.query_ids)


def compare_values(
    trec: Mapping[str, Float64],
    native: Mapping[str, Float64],
    query_ids: Sequence[str],
) -> dict[str, float]:
    """Return the largest absolute difference of each measure in both; see `check_agreement`.

    Shapes: trec (n_questions,), native (n_questions,).
    """
    differences = {}
    for name in (name for name in trec if name in native):
        theirs, ours = trec[name], native[name]
        gap = np.abs(theirs - ours)
        # A NaN must not count as agreement.
        bad = np.flatnonzero(~(gap <= AGREEMENT))
        if len(bad):
            first = int(bad[0])
            raise KgtrecError(
                f"{name} of question {query_ids[first]!r} is {theirs[first]:.17g} from pytrec_eval "
                f"but {ours[first]:.17g} from the ranks ({len(bad):,} of {len(gap):,} questions "
                "differ); give a run and ranks of the same scores and questions. If they are, "
                "please report this as an error of kgtrec"
            )
        differences[name] = float(gap.max(initial=0.0))
    return differences


def _answers(run: Run, questions: Questions | Csr) -> Csr:
    """Return the answers of the run's questions; UsageError unless they belong to the run."""
    ids = getattr(questions, "ids", None)
    answers: Any = getattr(questions, "answers", questions)
    if len(answers.offsets) != len(run.offsets):
        raise UsageError(
            f"the run has {len(run.offsets) - 1:,} questions, but {len(answers.offsets) - 1:,} "
            "were given; give the questions that the run was made for"
        )
    if answers is not questions and run.query_ids is not ids:
        for position, (theirs, ours) in enumerate(zip(run.query_ids, ids or (), strict=True)):
            if theirs != ours:
                raise UsageError(
                    f"question {position} is {theirs!r} in the run, but {ours!r} in the given "
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
            f"the run has {run.depth} candidates per question, which is not enough for {names}; "
            f"rank with {argument('run_depth', needed)} or more"
        )


def _judge_run(run: Run, answers: Csr, grades: Int64 | None) -> Lists:
    """Make judged lists of the run: answers have their grade, by default 1."""
    documents, relevant = run.documents.astype(np.int64), answers.ids.astype(np.int64)
    owner = owners(run.offsets)
    width = max(documents.max(initial=0), relevant.max(initial=0)) + 1
    question = owners(answers.offsets)
    answer_keys, keys = question * width + relevant, owner * width + documents
    hit = contains(answer_keys, keys)
    grades = np.ones(len(relevant), np.int64) if grades is None else grades
    relevance = np.full(len(keys), UNJUDGED)
    relevance[hit] = grades[np.searchsorted(answer_keys, keys[hit])]
    return Lists(
        queries=run.query_ids,
        offsets=run.offsets.astype(np.int64),
        relevance=relevance,
        scores=run.scores,
        retrieved=np.diff(run.offsets).astype(np.int64),
        judged_offsets=answers.offsets.astype(np.int64),
        judged=grades[np.lexsort((-grades, question))],
    )
