"""evaluate(): scores and questions to a Result, in one call.

The module is not named after the function: importing it would put the module in its place, as
``kgtrec.evaluate``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure, parse_all, required_depth
from kgtrec.results.result import Result
from kgtrec.trec.measures.agreement import COMPARED

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kgtrec.questions.api import Questions
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.ranking.settings import EvaluateOptions


@overload
def evaluate(
    scores: Any,
    questions: Questions | None = None,
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> Result: ...
@overload
def evaluate(
    scores: Any,
    questions: Mapping[str, Questions],
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> dict[str, Result]: ...
def evaluate(
    scores: Any,
    questions: Questions | Mapping[str, Questions] | None = None,
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> Result | dict[str, Result]:
    """Rank every answer and average.

    Parameters
    ----------
    scores : score source, or Ranks
        Anything that `kgtrec.rank` takes: an array (questions, entities), a .npy file or folder
        of shards, chunks, a callable, `Factors`. Or ranks computed before; then trec_eval
        measures come natively from the answers' ordinal ranks, as of runs of unlimited depth.
    questions : Questions, or mapping of str to Questions
        From ``graph.questions()``; not needed with `Ranks`. Of ``graph.questions_by_filter()``:
        several filters side by side, from one pass.
    measures : sequence of keys or Measure, optional
        What to list and print; by default all that papers print. Others stay available by key.
    run_depth : int, default 20
        Candidates kept per question, at least 20 and at least what `measures` see. Measures that
        see a whole run (map, bpref, recip_rank, ...) refer to the run at this depth.
    threads, rows, higher_is_better, nan, columns, atol, rtol
        As for `kgtrec.Ranker`.
    progress : bool, optional
        Progress bar on stderr; by default only on a terminal.

    Returns
    -------
    Result
        ``result[key]``, ``print(result)``, ``result.ranks``, ``result.run``.
    dict of str to Result
        Of a mapping of questions: a result of each, from one pass over the scores.

    Raises
    ------
    UsageError
        Bad keys (all of them are named), or questions missing.
    InputError
        Scores of the wrong shape or dtype, or NaN under ``nan="error"``.
    KgtrecError
        pytrec_eval and the native values differ by more than 1e-12; raised when the first
        trec_eval measure, or ``result.ranks``, is asked for.
    """
    from kgtrec.ranking.ranks import Ranks

    parsed = None if measures is None else parse_all(measures)
    if isinstance(scores, Ranks):
        if isinstance(questions, Mapping):
            raise UsageError("Ranks have one filter; pass the questions they were ranked with")
        _check_same(scores, questions)
        return Result(scores, questions=questions, measures=parsed)
    if questions is None:
        raise UsageError("evaluate needs the questions of the scores; pass graph.questions()")
    from kgtrec.ranking.rank import rank_as
    from kgtrec.ranking.settings import EvaluateOptions, Settings

    settings = Settings.of("evaluate", EvaluateOptions, options, run_depth=20)
    settings = replace(settings, run_depth=max(settings.run_depth, *_depths(parsed or [])))
    several = questions if isinstance(questions, Mapping) else {"": questions}
    ranked = rank_as(scores, several, settings, progress)
    results = {
        name: Result(ranks, run=run, questions=several[name], measures=parsed, check=True)
        for name, (ranks, run) in ranked.items()
    }
    return results if isinstance(questions, Mapping) else results[""]


def _depths(measures: Sequence[Measure]) -> list[int]:
    depths = [required_depth(m.metric) or 0 for m in measures if m.is_trec]
    return [*depths, *(required_depth(name) or 0 for name in COMPARED)]


def _check_same(ranks: Ranks, questions: Questions | None) -> None:
    """Ranks of other questions than those given are a mistake that no number would show."""
    if questions is None:
        return
    recorded = ranks.provenance.questions_hash
    if recorded not in (None, questions.fingerprint):
        raise InputError(
            f"the ranks belong to other questions (hash {recorded}) than those given "
            f"({questions.fingerprint}); pass the questions they were ranked with, or none"
        )
