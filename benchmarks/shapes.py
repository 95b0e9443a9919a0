"""K6 to K8 and KU: shapes of input that may slow a kernel down, against the plain shape.

The plain shape is a float32 matrix in rows, with one answer and 30 known entities each. The ratio
is time per score over its time per score in the same round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from data import make_block
from kernels import in_numpy
from rows import Row, Settings, at_most, require
from timing import Contestant, compete

import kgtrec

__all__ = ["BARS", "check"]

Array = npt.NDArray[Any]

ROWS, MANY_ROWS, QUICK_ROWS = 512, 4096, 64
CHECKED_ROWS = 8


def _n_rows(settings: Settings, rows: int = ROWS) -> int:
    return QUICK_ROWS if settings.quick else rows


def _rounds(settings: Settings) -> int:
    return 3 if settings.quick else 9


def _contestant(
    questions: kgtrec.Questions, scores: Array, depth: int, **options: Any
) -> Contestant:
    def prepare() -> kgtrec.Ranker:
        return kgtrec.Ranker(questions, run_depth=depth, threads=1, **options)

    def run(ranker: kgtrec.Ranker) -> None:
        ranker.update(ranker.batch(0, len(scores)), scores)

    return Contestant(run, prepare)


def check(
    questions: kgtrec.Questions, scores: Array, depth: int, higher_is_better: bool = True
) -> None:
    """Check ranks and runs of some rows of the block against plain numpy; NaN is -inf."""
    options: dict[str, Any] = {"nan": "worst", "higher_is_better": higher_is_better}
    ranks, run = kgtrec.rank(scores, questions, depth, 1, progress=False, **options)
    for question in np.linspace(0, len(questions) - 1, CHECKED_ROWS).astype(int).tolist():
        row = scores[question] if higher_is_better else -scores[question]
        answers = questions.answers[question]
        numbers = ~np.isnan(row)
        counts, best = in_numpy(questions, question, np.where(numbers, row, -np.inf), depth)
        chosen = np.flatnonzero(ranks.question == question)[numbers[answers]]
        ours = list(zip(ranks.greater[chosen], ranks.equal[chosen], strict=True))
        due = [count for count, number in zip(counts, numbers[answers], strict=True) if number]
        require(ours == due, f"question {question}: counts {ours}, numpy says {due}")
        listed = run.documents[run.offsets[question] : run.offsets[question + 1]]
        require(
            np.array_equal(listed, best[numbers[best]]), f"question {question}: the best differ"
        )


def _row(
    bar_id: str,
    what: str,
    questions: kgtrec.Questions,
    scores: Array,
    bar: float,
    settings: Settings,
    depth: int = 0,
    **options: Any,
) -> Row:
    """One shape against a plain block with the same numbers of rows and entities."""
    check(questions, scores, depth)
    plain = make_block(len(scores))
    contestants = {
        "ours": _contestant(questions, scores, depth, **options),
        "plain": _contestant(plain.questions, plain.scores, 0),
    }
    timings = compete(contestants, _rounds(settings))
    ours, reference = (1e9 * timings.seconds(name) / scores.size for name in ("ours", "plain"))
    return at_most(
        bar_id,
        what,
        f"{ours:.2f} ns a score",
        f"{reference:.2f} ns a score",
        timings.ratio("ours", "plain"),
        bar,
        **timings.detail("ours", "plain"),
    )


def _k6(settings: Settings) -> list[Row]:
    rows = []
    for n_rows in (ROWS, MANY_ROWS):
        block = make_block(_n_rows(settings, n_rows))
        scores = np.asfortranarray(block.scores)
        what = f"column-major, {len(scores):,} rows, "
        rows.append(_row("K6", what + "1 answer", block.questions, scores, 3, settings))
        rows.append(_row("K6", what + "best 20", block.questions, scores, 3, settings, 20))
    return rows


def _k7(settings: Settings) -> list[Row]:
    rows = []
    block = make_block(_n_rows(settings))
    for share, what in ((3, "a third of the scores NaN"), (1, "all scores NaN")):
        scores = block.scores.copy()
        scores[:, ::share] = np.nan
        for depth in (0, 20):
            name = what + (f", best {depth}" if depth else "")
            row = _row("K7", name, block.questions, scores, 2.5, settings, depth, nan="worst")
            rows.append(row)
    return rows


def _k8(settings: Settings) -> list[Row]:
    rows = []
    for n_answers, bar in ((64, 4), (1000, 15)):
        for kind in ("random", "tied"):
            block = make_block(_n_rows(settings), kind, n_answers)
            what = f"{n_answers:,} answers a row, {kind} scores"
            rows.append(_row("K8", what, block.questions, block.scores, bar, settings))
    return rows


def _ku(settings: Settings) -> list[Row]:
    rows = []
    for labels_in_order, depth, bar in (
        (False, 0, 2),
        (True, 0, 2),
        (True, 20, 2),
        (True, 1000, 3),
    ):
        block = make_block(_n_rows(settings), "tied", labels_in_order=labels_in_order)
        what = "all tied" + (f", best {depth:,}" if depth else "")
        what += "" if labels_in_order else ", labels out of the order of ids"
        rows.append(_row("KU", what, block.questions, block.scores, bar, settings, depth))
    return rows


BARS = {"K6": _k6, "K7": _k7, "K8": _k8, "KU": _ku}
