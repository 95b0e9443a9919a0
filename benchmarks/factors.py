"""F1 and F2: ranking a factorised model without storing scores, against the product alone.

F2 runs this module as a child process and reports its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from data import DIMENSIONS, SEED, fb15k_237
from kernels import in_numpy
from memory import peak_bytes
from rows import Row, Settings, at_most, require
from timing import Contestant, compete

import kgtrec

__all__ = ["BARS"]

Array = npt.NDArray[Any]

RUN_DEPTH = 20
TILES = (64, 256, 1024)
MB = 1 << 20


# ---- F1 ----


def _product(queries: Array, entities: Array, tile: int) -> Contestant:
    """Q @ E.T, `tile` rows at a time, into one buffer."""
    buffer = np.empty((tile, len(entities)), dtype=queries.dtype)
    transposed = entities.T

    def run(_: None) -> None:
        for start in range(0, len(queries), tile):
            part = queries[start : start + tile]
            np.matmul(part, transposed, out=buffer[: len(part)])

    return Contestant(run)


def _best_tile(queries: Array, entities: Array) -> int:
    some = queries[: 2 * max(TILES)]
    timings = compete({str(tile): _product(some, entities, tile) for tile in TILES}, rounds=3)
    return min(TILES, key=lambda tile: timings.seconds(str(tile)))


def _check(questions: kgtrec.Questions, factors: kgtrec.Factors, threads: int) -> None:
    """Check the product up to rounding, and ranks and runs, against numpy."""
    ranks, run = kgtrec.rank(factors, questions, RUN_DEPTH, threads, progress=False)
    for question in np.linspace(0, len(questions) - 1, 40).astype(int).tolist():
        scores = factors.scores(question, question + 1)[0]
        plain = factors.queries[question] @ factors.entities.T
        require(np.allclose(scores, plain, rtol=1e-4, atol=1e-4), f"scores of question {question}")
        counts, best = in_numpy(questions, question, scores, RUN_DEPTH)
        rows = np.flatnonzero(ranks.question == question)
        ours = list(zip(ranks.greater[rows], ranks.equal[rows], strict=True))
        require(ours == counts, f"question {question}: counts {ours}, numpy says {counts}")
        listed = run.documents[run.offsets[question] : run.offsets[question + 1]]
        require(np.array_equal(listed, best), f"question {question}: the best {RUN_DEPTH} differ")


def _f1(settings: Settings) -> list[Row]:
    bench = fb15k_237()
    graph = bench.cut(500) if settings.quick else bench.graph
    questions = graph.questions("test")
    factors = kgtrec.Factors(bench.queries(questions), bench.entity)
    _check(questions, factors, settings.threads)
    tile = _best_tile(factors.queries, factors.entities)

    def ours(_: None) -> None:
        kgtrec.rank(factors, questions, RUN_DEPTH, settings.threads, progress=False)

    contestants = {
        "ours": Contestant(ours),
        "reference": _product(factors.queries, factors.entities, tile),
        "ours, no run": Contestant(
            lambda _: kgtrec.rank(factors, questions, 0, settings.threads, progress=False)
        ),
    }
    timings = compete(contestants, rounds=3 if settings.quick else 5)
    flops = 2 * factors.queries.size * len(factors.entities)
    row = at_most(
        "F1",
        f"{len(questions):,} questions, d = {bench.entity.shape[1]}, "
        f"ranks and best {RUN_DEPTH}, {settings.threads} thread",
        f"{timings.seconds('ours'):.2f} s",
        f"Q @ E.T {timings.seconds('reference'):.2f} s",
        timings.ratio("ours", "reference"),
        1.25,
        **timings.detail("ours", "reference"),
        ratio_without_run=timings.ratio("ours, no run", "reference"),
        reference_GFLOPs=flops / timings.seconds("reference") / 1e9,
        reference_tile=tile,
        data=bench.name,
    )
    return [row]


# ---- F2 ----


def _run_benchmark(threads: int) -> dict[str, int]:
    """F1 in this process."""
    bench = fb15k_237()
    questions = bench.graph.questions("test")
    factors = kgtrec.Factors(bench.queries(questions), bench.entity)
    before = peak_bytes()
    kgtrec.rank(factors, questions, RUN_DEPTH, threads, progress=False)
    return {"before": before, "peak": peak_bytes(), "embeddings": factors.entities.nbytes}


def _run_large(n_entities: int, n_questions: int, threads: int) -> dict[str, int]:
    """A graph with many entities, in this process."""
    rng = np.random.default_rng(SEED)
    entities = rng.standard_normal((n_entities, DIMENSIONS), dtype=np.float32)
    queries = rng.standard_normal((n_questions, DIMENSIONS), dtype=np.float32)
    head = np.arange(n_questions)
    answer = rng.integers(0, n_entities, n_questions)
    known = rng.integers(0, n_entities, 30 * n_questions)
    graph = kgtrec.Graph.from_arrays(
        train=np.column_stack([np.repeat(head, 30), np.zeros_like(known), known]),
        test=np.column_stack([head, np.zeros_like(head), answer]),
        n_entities=n_entities,
    )
    questions = graph.questions("test", sides="tail")
    factors = kgtrec.Factors(queries, entities)
    before = peak_bytes()
    kgtrec.rank(factors, questions, RUN_DEPTH, threads, progress=False)
    return {"before": before, "peak": peak_bytes(), "embeddings": entities.nbytes}


def _in_child(*arguments: int) -> dict[str, int]:
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise RuntimeError(f"the child process of F2 failed:\n{done.stderr}")
    memory: dict[str, int] = json.loads(done.stdout)
    return memory


def _f2(settings: Settings) -> list[Row]:
    whole = _in_child(settings.threads)
    rows = [
        at_most(
            "F2",
            "peak memory of F1, whole process",
            f"{whole['peak'] / MB:.0f} MB",
            f"{whole['before'] / MB:.0f} MB before ranking",
            whole["peak"] / MB,
            400,
            **whole,
        )
    ]
    n_entities = 100_000 if settings.quick else 1_000_000
    few, many = (200, 1_000) if settings.quick else (2_000, 10_000)
    small, large = (_in_child(n_entities, n, settings.threads) for n in (few, many))
    what = f"{n_entities:,} entities, {many:,} questions, d = {DIMENSIONS}"
    embeddings = large["embeddings"] / MB
    above = large["peak"] / MB - embeddings
    rows.append(
        at_most(
            "F2",
            f"{what}: MB beyond the embeddings",
            f"{large['peak'] / MB:.0f} MB",
            f"embeddings {embeddings:.0f} MB",
            above,
            300,
            **large,
        )
    )
    # A question needs its query, its known entities, its ranks and its run: a few kB.
    growth = (large["peak"] - small["peak"]) / (many - few) / 1024
    rows.append(
        at_most(
            "F2",
            f"{what}: growth per question, kB",
            f"{large['peak'] / MB:.0f} MB",
            f"{few:,} questions {small['peak'] / MB:.0f} MB",
            growth,
            8,
            few=small,
            many=large,
        )
    )
    return rows


BARS = {"F1": _f1, "F2": _f2}


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    result = _run_benchmark(*numbers) if len(numbers) == 1 else _run_large(*numbers)
    print(json.dumps(result))
