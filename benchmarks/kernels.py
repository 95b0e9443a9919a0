"""K1 to K5: ranks of a score matrix in memory, against reading the matrix once.

The ratio is a share of the streaming read's bandwidth. It times `Ranker.update` of one block, the
whole matrix, on an existing ranker. This includes the native pass, and per block the checks of its
arguments and of the questions' ids.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from bandwidth import streaming_read
from data import N_ENTITIES, Block, cache_bytes, make_block
from rows import Row, Settings, at_least, require
from timing import Contestant, Timings, compete

import kgtrec

__all__ = ["BARS", "in_numpy"]

Array = npt.NDArray[Any]

# Bar, answers per row, scores, run depth, share of the bandwidth.
K1 = ("K1", 1, "good", 0, 0.90)
K2 = (("K2", 8, "good", 0, 0.55), ("K2", 8, "random", 0, 0.35))
K3 = (("K3", 1, "good", 20, 0.80), ("K3", 1, "good", 1000, 0.15))
SLOWEST = 4  # limit of pathological cases, in multiples of the bar's time
CHECKED_ROWS = 40


def _n_rows(settings: Settings, item_size: int) -> int:
    """Rows beyond any cache, so that both contestants read memory; fewer in a quick run."""
    n_bytes = 24 << 20 if settings.quick else max(350 << 20, int(1.3 * cache_bytes()))
    return min(n_bytes, 3 << 29) // (N_ENTITIES * item_size)


def _rounds(settings: Settings) -> int:
    return 3 if settings.quick else 15


# ---- equal answers ----


def in_numpy(questions: kgtrec.Questions, question: int, scores: Array, depth: int) -> Any:
    """Greater and equal counts of every answer among micro candidates, and the best ids."""
    micro = np.ones(len(scores), dtype=bool)
    micro[questions.known[question]] = False
    macro = np.ones(len(scores), dtype=bool)
    macro[questions.removed[question]] = False
    counts = []
    for answer in questions.answers[question]:
        own = scores[answer]
        others = scores[micro & (np.arange(len(scores)) != answer)]
        counts.append((np.sum(others > own), np.sum(others == own)))
    position = questions.graph.entities.trec_order
    position = np.arange(len(scores)) if position is None else position
    candidates = np.flatnonzero(macro)
    order = np.lexsort((-position[candidates], -scores[candidates].astype(np.float64)))
    return counts, candidates[order[:depth]]


def _check(block: Block, scores: Array, depth: int) -> None:
    """Check ranks and runs of some rows, spread over the block, against plain numpy."""
    questions = block.questions
    ranks, run = kgtrec.rank(scores, questions, run_depth=depth, threads=1, progress=False)
    for question in np.linspace(0, len(questions) - 1, CHECKED_ROWS).astype(int).tolist():
        counts, best = in_numpy(questions, question, scores[question], depth)
        rows = np.flatnonzero(ranks.question == question)
        ours = list(zip(ranks.greater[rows], ranks.equal[rows], strict=True))
        require(ours == counts, f"question {question}: counts {ours}, numpy says {counts}")
        listed = run.documents[run.offsets[question] : run.offsets[question + 1]]
        require(np.array_equal(listed, best), f"question {question}: the best {depth} differ")


# ---- time ----


def _ranking(block: Block, scores: Array, depth: int, threads: int = 1) -> Contestant:
    def prepare() -> kgtrec.Ranker:
        return kgtrec.Ranker(block.questions, run_depth=depth, threads=threads)

    def run(ranker: kgtrec.Ranker) -> None:
        ranker.update(ranker.batch(0, len(scores)), scores)

    return Contestant(run, prepare)


def _against_read(block: Block, scores: Array, depth: int, rounds: int) -> Timings:
    read = streaming_read()
    ours, reference = _ranking(block, scores, depth), Contestant(lambda _: read(scores))
    return compete({"ours": ours, "reference": reference}, rounds)


def _speed(scores: Array, seconds: float) -> str:
    return f"{scores.nbytes / seconds / 1e9:.2f} GB/s"


def _row(
    bar_id: str, what: str, block: Block, scores: Array, depth: int, bar: float, rounds: int
) -> Row:
    _check(block, scores, depth)
    timings = _against_read(block, scores, depth, rounds)
    ours, reference = timings.seconds("ours"), timings.seconds("reference")
    return at_least(
        bar_id,
        what,
        _speed(scores, ours),
        _speed(scores, reference),
        timings.ratio("reference", "ours"),
        bar,
        **timings.detail("reference", "ours"),
        matrix_bytes=scores.nbytes,
        microseconds_per_row=1e6 * ours / len(scores),
        reference_is=streaming_read().name,
    )


def _what(n_answers: int, kind: str, depth: int) -> str:
    answers = f"{n_answers} answer{'s' * (n_answers > 1)}"
    return f"float32, {answers}, {kind} scores" + (f", best {depth:,} kept" if depth else "")


def _float32(case: tuple[str, int, str, int, float], settings: Settings) -> Row:
    bar_id, n_answers, kind, depth, bar = case
    block = make_block(_n_rows(settings, 4), kind, n_answers)
    what = _what(n_answers, kind, depth)
    return _row(bar_id, what, block, block.scores, depth, bar, _rounds(settings))


def _k1(settings: Settings) -> list[Row]:
    row = _float32(K1, settings)
    row.detail["microseconds_of_a_one_row_update"] = _call_overhead()
    return [row]


def _call_overhead() -> float:
    """The cost of a call apart from the pass: blocks of one row, in cache."""
    block = make_block(200)
    ranker = kgtrec.Ranker(block.questions, threads=1)
    ranker.update(ranker.batch(0, 1), block.scores[:1])
    start = time.perf_counter()
    for row in range(1, 200):
        ranker.update(ranker.batch(row, row + 1), block.scores[row : row + 1])
    return 1e6 * (time.perf_counter() - start) / 199


def _k2(settings: Settings) -> list[Row]:
    return [_float32(case, settings) for case in K2]


def _k3(settings: Settings) -> list[Row]:
    return [_float32(case, settings) for case in K3]


def _k4(settings: Settings) -> list[Row]:
    rows = []
    for dtype, bar in (("float16", 0.60), ("float64", 0.90)):
        block = make_block(_n_rows(settings, np.dtype(dtype).itemsize))
        scores = block.scores.astype(dtype)
        what = f"{dtype}, 1 answer, good scores"
        rows.append(_row("K4", what, block, scores, 0, bar, _rounds(settings)))
    return rows


def _k5(settings: Settings) -> list[Row]:
    """The bar is 1.7 times the speed, or K1's share of the bandwidth of two threads."""
    block, read = make_block(_n_rows(settings, 4)), streaming_read()
    scores = block.scores
    contestants = {
        "ours, 1": _ranking(block, scores, 0, threads=1),
        "ours, 2": _ranking(block, scores, 0, threads=2),
        "reference, 2": Contestant(lambda _: read(scores, threads=2)),
    }
    timings = compete(contestants, _rounds(settings))
    gain = timings.ratio("ours, 1", "ours, 2")
    share = timings.ratio("reference, 2", "ours, 2")
    both_read = _speed(scores, timings.seconds("reference, 2"))
    row = Row(
        "K5",
        f"float32, 2 threads (read of 2 threads: {both_read}, share {share:.2f})",
        _speed(scores, timings.seconds("ours, 2")),
        _speed(scores, timings.seconds("ours, 1")),
        gain,
        ">= 1.7",
        gain >= 1.7 or share >= K1[-1],
        {**timings.detail("ours, 1", "ours, 2"), "share_of_two_thread_read": share},
    )
    return [row]


def _pathological(settings: Settings) -> list[Row]:
    """Rows that no good model gives; their bar is a quarter of the others."""
    kinds = ("tied", "rising") if settings.quick else ("random", "tied", "saturated", "rising")
    cases = [(kind, case, True) for kind in kinds for case in (K1, K2[0], *K3)]
    cases += [("good", case, False) for case in (K1, K2[0], K3[0])]
    rows = []
    for kind, (_, n_answers, _, depth, bar), labels_in_order in cases:
        block = make_block(_n_rows(settings, 4), kind, n_answers, labels_in_order=labels_in_order)
        what = _what(n_answers, kind, depth) + ("" if labels_in_order else ", decimal labels")
        rounds = _rounds(settings) // 2
        rows.append(_row("KP", what, block, block.scores, depth, bar / SLOWEST, rounds))
    return rows


BARS = {"K1": _k1, "K2": _k2, "K3": _k3, "K4": _k4, "K5": _k5, "KP": _pathological}
