"""KG and K9: how the time of `rank` grows with the task, and with the values and layout of scores.

A case of KG is `kgtrec.rank` of a matrix, from the questions to the finished ranks. The ratio is
its CPU time per score over that of the plain case in the same round: 600 float32 rows of 14,541
entities, with one answer and 30 known entities each. If another bar covers a case, it uses that
bar.

K9 ranks rows of 20 candidates, which have little to read, against a loop in C that counts the same
(short_rows.c).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from bandwidth import FLAGS, NoCompiler, compiled_library
from data import N_ENTITIES, Block, make_block
from rows import Row, Settings, at_most, require
from shapes import check
from timing import Contestant, compete

import kgtrec

__all__ = ["BARS"]

Array = npt.NDArray[Any]

ROWS, QUICK_ROWS = 600, 64
# The bars of other rows that cover a case: K3's share of the bandwidth for the best 1,000 against
# K1's, K6, K7, K8 and KU. For all others, 2.
PLAIN, BEST_1000, COLUMNS, NANS, ANSWERS_64, ANSWERS_1000, TIED_BEST = 2, 6, 3, 2.5, 4, 15, 3
SHORT_ROWS, CANDIDATES, KNOWN = 200_000, 20, 5


@dataclass(frozen=True)
class _Case:
    """A matrix, and `options`, which are passed to `kgtrec.rank`."""

    what: str
    block: Block
    scores: Array
    depth: int = 0
    bar: float = PLAIN
    options: dict[str, Any] = field(default_factory=dict)

    def rank(self) -> tuple[kgtrec.Ranks, kgtrec.Run]:
        options = {"threads": 1, **self.options}
        return kgtrec.rank(self.scores, self.block.questions, self.depth, progress=False, **options)

    def nanoseconds(self, seconds: float) -> str:
        return f"{1e9 * seconds / self.scores.size:.2f} ns a score"


def _plain(n_rows: int) -> _Case:
    block = make_block(n_rows, "random")
    return _Case("plain", block, block.scores)


def _answers(n: int) -> Iterator[_Case]:
    """Cases of the task of a row: its best, more answers, more known entities."""
    block = make_block(n, "random")
    for depth, bar in ((20, PLAIN), (1000, BEST_1000), (N_ENTITIES, PLAIN)):
        yield _Case(f"best {depth:,}", block, block.scores, depth, bar)
    for answers, bar in ((8, PLAIN), (64, ANSWERS_64), (1000, ANSWERS_1000)):
        block = make_block(n, "random", answers)
        yield _Case(f"{answers:,} answers a row", block, block.scores, bar=bar)
    for known in (1000, 7000):
        block = make_block(n, "random", 1, known)
        yield _Case(f"1 answer, {known:,} known", block, block.scores)


def _values(n: int) -> Iterator[_Case]:
    """Cases of values: ties, NaN, scores in order."""
    tied = make_block(n, "tied")
    for depth, bar in ((0, PLAIN), (20, TIED_BEST), (1000, TIED_BEST)):
        what = "all tied" + (f", best {depth:,}" if depth else "")
        yield _Case(what, tied, tied.scores, depth, bar)
    many = make_block(n, "tied", 64)
    yield _Case("all tied, 64 answers a row", many, many.scores, bar=ANSWERS_64)
    unordered = make_block(n, "tied", labels_in_order=False)
    yield _Case("all tied, ids not in label order", unordered, unordered.scores)
    block = make_block(n, "random")
    for share, depth in ((1, 0), (1, 20), (3, 0)):
        scores = block.scores.copy()
        scores[:, ::share] = np.nan
        what = ("all NaN" if share == 1 else "a third NaN") + (f", best {depth}" if depth else "")
        yield _Case(what, block, scores, depth, NANS, {"nan": "worst"})
    rising = make_block(n, "rising")
    for depth, bar in ((0, PLAIN), (20, PLAIN), (1000, BEST_1000)):
        what = "ascending" + (f", best {depth:,}" if depth else "")
        yield _Case(what, rising, rising.scores, depth, bar)
    yield _Case("descending, best 1,000", rising, -rising.scores, 1000, BEST_1000)


def _layouts(n: int) -> Iterator[_Case]:
    """Cases of layout: the same numbers in other places, types and directions; threads."""
    block = make_block(n, "random")
    scores = block.scores
    columns = np.asfortranarray(scores)
    halves, wide = scores.astype(np.float16), np.repeat(scores, 2, axis=1)
    lower = {"higher_is_better": False}
    yield _Case("column-major", block, columns, 0, COLUMNS)
    yield _Case("column-major, best 20", block, columns, 20, COLUMNS)
    yield _Case("columns reversed [::-1]", block, scores[:, ::-1])
    yield _Case("every other column of a wider matrix", block, wide[:, ::2])
    yield _Case("float16", block, halves)
    yield _Case("float16, best 20", block, halves, 20)
    yield _Case("float64", block, scores.astype(np.float64))
    yield _Case("lower is better", block, scores, 0, options=lower)
    yield _Case("lower is better, best 20", block, scores, 20, options=lower)
    for threads in (2, 3):
        yield _Case(f"{threads} threads", block, scores, options={"threads": threads})
    for answers, depth in ((1, 0), (8, 0), (1, 20)):
        block = make_block(n, "random", answers, labels_in_order=False)
        what = "ids not in label order" + (f", {answers} answers" if answers > 1 else "")
        yield _Case(what + (f", best {depth}" if depth else ""), block, block.scores, depth)


def _sizes(n: int) -> Iterator[_Case]:
    """Cases of size: short rows, and rows larger than any cache; fewer rows if `n` is small."""
    for rows, entities, depths in (
        (20_000, 200, (0, 20)),
        (8, 1_000_000, (0, 20, 1000)),
    ):
        rows = max(2, rows * n // ROWS)
        block = make_block(rows, "random", n_entities=entities)
        for depth in depths:
            what = f"{rows:,} rows x {entities:,}" + (f", best {depth:,}" if depth else "")
            yield _Case(what, block, block.scores, depth, BEST_1000 if depth > 20 else PLAIN)


def _kg(settings: Settings) -> list[Row]:
    n = QUICK_ROWS if settings.quick else ROWS
    plain = _plain(n)
    groups: tuple[Callable[[int], Iterator[_Case]], ...] = (_answers, _values, _layouts, _sizes)
    return [_grown(case, plain, settings) for group in groups for case in group(n)]


def _grown(case: _Case, plain: _Case, settings: Settings) -> Row:
    check(case.block.questions, case.scores, case.depth, case.options.get("higher_is_better", True))
    contestants = {"ours": case, "plain": plain}
    timings = compete(
        {name: Contestant(lambda _, case=case: case.rank()) for name, case in contestants.items()},
        rounds=2 if settings.quick else 9,
    )
    detail = timings.detail("ours", "plain")
    size = case.scores.size / plain.scores.size
    return at_most(
        "KG",
        case.what,
        case.nanoseconds(detail["seconds_cpu"]["ours"]),
        plain.nanoseconds(detail["seconds_cpu"]["plain"]),
        detail["ratio_cpu"] / size,
        case.bar,
        **detail,
    )


# ---- rows of few candidates ----


def _k9(settings: Settings) -> list[Row]:
    block = make_block(
        2_000 if settings.quick else SHORT_ROWS, "random", 1, KNOWN, n_entities=CANDIDATES
    )
    loop = _fastest_loop(block)
    cases = ((0, 2.9), (20, 7))
    return [row for depth, bar in cases for row in _short(block, depth, bar, loop, settings)]


def _short(
    block: Block, depth: int, bar: float, loop: Callable[[], Array], settings: Settings
) -> list[Row]:
    """The loop's work (`Ranker.update`), and the whole way to the finished ranks (`rank`)."""
    check(block.questions, block.scores, depth)
    n = len(block.scores)
    what = f"{n:,} rows x {CANDIDATES} candidates" + (f", best {depth}" if depth else "")
    case = _Case(what, block, block.scores, depth)
    ranks, counts = case.rank()[0], loop()
    columns = (
        ranks.greater,
        ranks.equal,
        ranks.tied_ahead,
        ranks.macro_greater,
        ranks.macro_equal,
        ranks.macro_tied_ahead,
    )
    require(np.array_equal(np.stack(columns, axis=1), counts), "the loop counts otherwise")

    def ranker() -> kgtrec.Ranker:
        return kgtrec.Ranker(block.questions, run_depth=depth, threads=1)

    contestants = {
        "update": Contestant(lambda ranker: ranker.update(np.arange(n), block.scores), ranker),
        "rank": Contestant(lambda _: case.rank()),
        "loop": Contestant(lambda _: loop()),
    }
    timings = compete(contestants, rounds=3 if settings.quick else 15)
    rows = []
    for ours, name in (("update", "Ranker.update"), ("rank", "rank, from questions to ranks")):
        detail = timings.detail(ours, "loop")
        per_row = {key: f"{1e6 * s / n:.3f} us a row" for key, s in detail["seconds_cpu"].items()}
        rows.append(
            at_most(
                "K9",
                f"{what}, {name}",
                per_row[ours],
                per_row["loop"],
                detail["ratio_cpu"],
                bar,
                **detail,
            )
        )
    return rows


def _fastest_loop(block: Block) -> Callable[[], Array]:
    """short_rows.c over a block, with the fastest flags."""
    libraries = {
        " ".join(flags): compiled_library("short_rows.c", ("-std=c11", *flags)) for flags in FLAGS
    }
    loops = {name: _loop(library, block) for name, library in libraries.items() if library}
    if not loops:
        raise NoCompiler("no C compiler (looked for $CC, cc, gcc, clang)")
    timings = compete(
        {name: Contestant(lambda _, loop=loop: loop()) for name, loop in loops.items()}, rounds=3
    )
    return loops[min(loops, key=lambda name: min(timings.cpu[name]))]


def _loop(library: Any, block: Block) -> Callable[[], Array]:
    questions, scores = block.questions, block.scores
    known, removed = questions.known, questions.removed
    arrays = [scores, questions.answers.ids, known.offsets, known.ids, removed.offsets, removed.ids]
    arrays = [np.ascontiguousarray(array) for array in arrays]
    places = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    sizes = [ctypes.c_int64(size) for size in scores.shape]

    def count() -> Array:
        counts = np.empty((len(arrays[0]), 6), dtype=np.int64)
        out = counts.ctypes.data_as(ctypes.c_void_p)
        library.count_short_rows(places[0], *sizes, *places[1:], out)
        return counts

    return count


BARS = {"KG": _kg, "K9": _k9}
