"""Q1 to Q6, Q8 to Q11: exact ranks of factorised models, most with bounds.

Every row is measured on each path that multiplies bytes. The reference is `Q @ E.T` of numpy, tile
by tile; for Q3 a loop in C. For Q5, Q8's distances in L1 and Q9 it is the path that computes every
score; for Q10 a single thread. Q7 is `scale.py`. Q6 runs this module as a child process and reports
its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from ctypes import POINTER, c_float, c_size_t
from typing import Any

import numpy as np
import numpy.typing as npt
from bandwidth import compiled_library
from data import FOLDER, MODEL, SEED, fb15k_237
from factors import _best_tile, _product
from memory import peak_bytes
from rows import Row, Settings, at_least, at_most, not_run, require
from timing import Contestant, Timings, compete

import kgtrec
from kgtrec import _core
from kgtrec.ranking.kernel import last_shares

__all__ = ["BARS"]

Array = npt.NDArray[Any]

# Path -> bars of Q1 (dot, l2), Q2, Q11.
PATHS = {
    "avx512vnni": (0.40, 0.45, 0.55, 0.45),
    "avx2madd": (0.75, 0.80, 1.10, 0.75),
}
WITHOUT = {
    "avx512vnni": "avx512",
    "avx512sad": "avx512",
    "avxvnni": "avx2",
    "avx2madd": "avx2",
    "neondot": "neon",
    "neonsad": "neon",
}
MODELS = {"distmult": "dot", "complex": "dot", "transe": "l2", "rotate": "l2"}
L1_BARS = {0: 0.45, 20: 0.55}  # by depth
FLOAT64_BARS = {"dot": {0: 0.50, 20: 0.65}, "l1": {0: 0.30, 20: 0.40}}
DIM, MB = 100, 1 << 20
MANY = 32  # threads
QUICK = {0: ("distmult", "transe"), 20: ("distmult",)}  # models, by depth


def _paths() -> list[str]:
    return [path for path in PATHS if path in _core.available_paths()]


def _model(name: str) -> tuple[kgtrec.Questions, kgtrec.Factors]:
    """A trained model and its queries for all test questions."""
    graph = fb15k_237().graph
    questions = graph.questions("test")
    with np.load(MODEL.with_name(f"fb15k-237-{name}.npz"), allow_pickle=False) as weights:
        entity, relation = weights["entity"], weights["relation"]
    inverse = np.where(
        questions.side == 0, questions.relation + graph.n_relations, questions.relation
    )
    point, operator = entity[questions.entity], relation[inverse]
    half = entity.shape[1] // 2
    if name == "distmult":
        queries = point * operator
    elif name == "transe":
        queries = point + operator
    else:  # complex numbers: a product, or a rotation
        phase = 10 * operator[:, :half]
        real, imaginary = (
            (np.cos(phase), np.sin(phase))
            if name == "rotate"
            else (operator[:, :half], operator[:, half:])
        )
        first, second = point[:, :half], point[:, half:]
        queries = np.concatenate(
            [first * real - second * imaginary, first * imaginary + second * real], axis=1
        )
    return questions, kgtrec.Factors(queries.astype(np.float32), entity, metric=MODELS[name])


def _ranking(
    path: str, factors: kgtrec.Factors, questions: kgtrec.Questions, depth: int, threads: int = 1
) -> Contestant:
    def run(_: None) -> None:
        _core.force_path(path)
        kgtrec.rank(factors, questions, depth, threads, progress=False)

    return Contestant(run)


def _compete(
    settings: Settings, contestants: dict[str, Contestant], rounds: int = 5, warm_ups: int = 1
) -> Timings:
    """In a quick run, time each once, only to see that they work."""
    if settings.quick:
        rounds, warm_ups = 1, 0
    return compete(contestants, rounds, warm_ups)


def _check(path: str, factors: kgtrec.Factors, questions: kgtrec.Questions) -> tuple[float, float]:
    """Shares of scores that were computed, and that 16 bits decided. Ranks and best must equal
    those of the path that computes every score."""
    results = []
    for name in (WITHOUT[path], path):
        _core.force_path(name)
        results.append(kgtrec.rank(factors, questions, 20, progress=False))
    (due, due_run), (ranks, run) = results
    for column in ("greater", "equal", "macro_greater", "macro_equal", "tied_ahead"):
        require(np.array_equal(getattr(ranks, column), getattr(due, column)), f"{path}: {column}")
    require(np.array_equal(run.documents, due_run.documents), f"{path}: the best 20")
    shares = last_shares()
    assert shares is not None
    return shares


def _against_product(settings: Settings, bar_id: str, depth: int) -> Iterator[Row]:
    if not (FOLDER.is_dir() and MODEL.with_name("fb15k-237-rotate.npz").is_file()):
        yield not_run(bar_id, "trained models", "no models beside the checkout")
        return
    paths = _paths()
    if not paths:
        yield not_run(bar_id, "trained models", "no path of this machine multiplies bytes")
        return
    for name in QUICK[depth] if settings.quick else MODELS:
        questions, factors = _model(name)
        computed = {path: _check(path, factors, questions) for path in paths}
        contestants = {path: _ranking(path, factors, questions, depth) for path in paths}
        contestants["product"] = _product(
            factors.queries, factors.entities, _best_tile(factors.queries, factors.entities)
        )
        timings = _compete(settings, contestants)
        for path in paths:
            dot, l2, best, _ = PATHS[path]
            bar = best if depth else dot if MODELS[name] == "dot" else l2
            yield at_most(
                bar_id,
                f"{name}, ranks{f' and best {depth}' if depth else ''}, {path}",
                f"{timings.seconds(path):.2f} s",
                f"Q @ E.T {timings.seconds('product'):.2f} s",
                timings.ratio(path, "product"),
                bar,
                **timings.detail(path, "product"),
                scores_computed=computed[path][0],
                left_to_16_bits=computed[path][1],
            )


# ---- made-up models ----


def _questions(n_questions: int, n_entities: int, known: int = 12) -> kgtrec.Questions:
    rng = np.random.default_rng(SEED)
    row = np.arange(n_questions)
    head, relation = row % n_entities, row // n_entities
    answer = rng.integers(0, n_entities, n_questions)
    further = rng.integers(0, n_entities, known * n_questions)
    graph = kgtrec.Graph.from_arrays(
        train=np.column_stack([np.repeat(head, known), np.repeat(relation, known), further]),
        test=np.column_stack([head, relation, answer]),
        n_entities=n_entities,
    )
    return graph.questions("test", sides="tail")


def _q11(settings: Settings) -> list[Row]:
    """Answers near the top, as in a good model."""
    n_entities, n_questions = (100_000, 1_000) if settings.quick else (1_000_000, 10_000)
    rng = np.random.default_rng(SEED)
    questions = _questions(n_questions, n_entities)
    entities = rng.standard_normal((n_entities, DIM), dtype=np.float32)
    noise = rng.standard_normal((len(questions), DIM), dtype=np.float32)
    factors = kgtrec.Factors(entities[questions.answers.ids] + noise, entities)
    contestants = {path: _ranking(path, factors, questions, 0) for path in _paths()}
    contestants["product"] = _product(factors.queries, entities, 64)
    timings = _compete(settings, contestants, rounds=2, warm_ups=0)
    return [
        at_most(
            "Q11",
            f"{n_entities:,} entities, {n_questions:,} questions, ranks, {path}",
            f"{timings.seconds(path):.2f} s",
            f"Q @ E.T {timings.seconds('product'):.2f} s",
            timings.ratio(path, "product"),
            PATHS[path][3],
            **timings.detail(path, "product"),
        )
        for path in _paths()
    ]


def _q3(settings: Settings) -> list[Row]:
    """RotatE's distance by the sum of moduli, without bounds, on the best path of the machine."""
    n_entities, n_questions = (2_000, 64) if settings.quick else (14_541, 500)
    what = f"sum of moduli, d = {DIM} complex, {n_entities:,} entities, ranks"
    library = compiled_library("moduli.c", ("-std=c11", "-O3", "-march=native"))
    if library is None:
        return [not_run("Q3", what, "no C compiler")]
    rng = np.random.default_rng(SEED)
    questions = _questions(n_questions, n_entities)
    entities = rng.standard_normal((n_entities, 2 * DIM), dtype=np.float32)
    queries = rng.standard_normal((len(questions), 2 * DIM), dtype=np.float32)
    factors = kgtrec.Factors(queries, entities, metric="moduli")
    pointers = [array.ctypes.data_as(POINTER(c_float)) for array in (queries, entities)]

    def reference(_: None) -> None:
        out = (c_float * n_entities)()
        library.sum_moduli(
            pointers[0],
            c_size_t(len(queries)),
            pointers[1],
            c_size_t(n_entities),
            c_size_t(DIM),
            out,
        )

    path = _core.available_paths()[0]
    contestants = {path: _ranking(path, factors, questions, 0), "loop": Contestant(reference)}
    timings = _compete(settings, contestants)
    return [
        at_most(
            "Q3",
            f"{what}, {path}",
            f"{timings.seconds(path):.2f} s",
            f"loop in C {timings.seconds('loop'):.2f} s",
            timings.ratio(path, "loop"),
            1.5,
            **timings.detail(path, "loop"),
        )
    ]


def _q4(settings: Settings) -> list[Row]:
    if not (FOLDER.is_dir() and MODEL.with_name("fb15k-237-distmult.npz").is_file()):
        return [not_run("Q4", "DistMult, ranks, two threads", "no models beside the checkout")]
    questions, factors = _model("distmult")
    rows = []
    for path in _paths():
        contestants = {
            str(threads): _ranking(path, factors, questions, 0, threads) for threads in (1, 2)
        }
        timings = _compete(settings, contestants)
        rows.append(
            at_least(
                "Q4",
                f"DistMult, ranks, two threads, {path}",
                f"{timings.seconds('2'):.2f} s",
                f"one {timings.seconds('1'):.2f} s",
                timings.ratio("1", "2"),
                1.7,
                **timings.detail("1", "2"),
            )
        )
    return rows


def _q10(settings: Settings) -> list[Row]:
    """CPU time of many threads that share the codes of the entities."""
    if not (FOLDER.is_dir() and MODEL.with_name("fb15k-237-transe.npz").is_file()):
        return [not_run("Q10", f"{MANY} threads", "no models beside the checkout")]
    rows = []
    for name in ("distmult",) if settings.quick else ("distmult", "transe"):
        questions, factors = _model(name)
        for path, depth in ((path, depth) for path in _paths() for depth in (0, 20)):
            contestants = {
                str(threads): _ranking(path, factors, questions, depth, threads)
                for threads in (1, MANY)
            }
            timings = _compete(settings, contestants, rounds=7)
            detail = timings.detail(str(MANY), "1")
            seconds = detail["seconds_cpu"]
            rows.append(
                at_most(
                    "Q10",
                    f"{name}, best {depth}, CPU time of {MANY} threads, {path}",
                    f"{seconds[str(MANY)]:.2f} s",
                    f"one {seconds['1']:.2f} s",
                    detail["ratio_cpu"],
                    1.25,
                    **detail,
                )
            )
    return rows


def _awkward(rng: np.random.Generator, n: int) -> Iterator[tuple[str, Array, Array]]:
    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    many = 14_541
    yield "untrained", normal(n, DIM), normal(many, DIM)
    yield "Cauchy-tailed", rng.standard_cauchy((n, DIM)), rng.standard_cauchy((many, DIM))
    yield "100 groups of equal", normal(n, DIM), normal(100, DIM)[rng.integers(0, 100, many)]
    yield "all equal", normal(n, DIM), np.tile(normal(1, DIM), (many, 1))
    yield "d = 8", normal(n, 8), normal(many, 8)
    yield "d = 1,000", normal(n, 1000), normal(many, 1000)
    yield "100 entities", normal(n, DIM), normal(100, DIM)


def _against_scores(
    settings: Settings,
    what: tuple[str, str, str],
    factors: kgtrec.Factors,
    questions: kgtrec.Questions,
    depth: int,
    bar: float,
) -> Row:
    bar_id, name, path = what
    without = WITHOUT[path]
    contestants = {one: _ranking(one, factors, questions, depth) for one in (path, without)}
    timings = _compete(settings, contestants)
    return at_most(
        bar_id,
        f"{name}, best {depth}, {path}",
        f"{timings.seconds(path):.3f} s",
        f"{without} {timings.seconds(without):.3f} s",
        timings.ratio(path, without),
        bar,
        **timings.detail(path, without),
    )


def _against_scores_awkward(
    settings: Settings, bar_id: str, metric: str, paths: list[str]
) -> Iterator[Row]:
    n = 512 if settings.quick else 2048
    for name, queries, entities in _awkward(np.random.default_rng(SEED), n):
        questions = _questions(n, len(entities))
        some = queries[: len(questions)].astype(np.float32)
        factors = kgtrec.Factors(some, entities.astype(np.float32), metric=metric)
        for path in paths:
            for depth in (0, 20):
                what = (bar_id, name, path)
                yield _against_scores(settings, what, factors, questions, depth, 1.1)


def _q5(settings: Settings) -> list[Row]:
    return list(_against_scores_awkward(settings, "Q5", "dot", _paths()))


def _q8(settings: Settings) -> list[Row]:
    """Distances in L1, on every path with distances of bytes."""
    paths = [path for path in WITHOUT if path in _core.available_paths()]
    paths = paths[:1] if settings.quick else paths
    if not (paths and FOLDER.is_dir() and MODEL.with_name("fb15k-237-transe.npz").is_file()):
        return [not_run("Q8", "TransE, L1", "no path with distances of bytes, or no model")]
    questions, by_l2 = _model("transe")
    factors = kgtrec.Factors(by_l2.queries, by_l2.entities, metric="l1")
    rows = []
    for path in paths:
        _check(path, factors, questions)
        for depth, bar in L1_BARS.items():
            what = ("Q8", "TransE, L1", path)
            rows.append(_against_scores(settings, what, factors, questions, depth, bar))
    return rows + list(_against_scores_awkward(settings, "Q8", "l1", paths[:1]))


def _q9(settings: Settings) -> list[Row]:
    """Models in float64 with values that float32 cannot hold, on the best path with bounds."""
    if not (FOLDER.is_dir() and MODEL.with_name("fb15k-237-transe.npz").is_file()):
        return [not_run("Q9", "float64", "no models beside the checkout")]
    paths = [path for path in WITHOUT if path in _core.available_paths()]
    rows, models = [], (("distmult", "dot"), ("transe", "l1"))
    for name, metric in models[:1] if settings.quick else models:
        best = [path for path in paths if metric == "l1" or not path.endswith("sad")][:1]
        if not best:
            rows.append(not_run("Q9", name, "no path of this machine multiplies bytes"))
            continue
        questions, single = _model(name)
        queries, entities = (
            table.astype(np.float64) * (1 + 1e-9) for table in (single.queries, single.entities)
        )
        factors = kgtrec.Factors(queries, entities, metric=metric)
        _check(best[0], factors, questions)
        for depth, bar in FLOAT64_BARS[metric].items():
            what = ("Q9", f"{name}, {metric}, float64", best[0])
            rows.append(_against_scores(settings, what, factors, questions, depth, bar))
    return rows


def _measure_memory(n_entities: int, n_questions: int, threads: int, path: str) -> dict[str, int]:
    """Peak memory of a ranking with bounds in this process."""
    rng = np.random.default_rng(SEED)
    entities = rng.standard_normal((n_entities, DIM), dtype=np.float32)
    queries = rng.standard_normal((n_questions, DIM), dtype=np.float32)
    questions = _questions(n_questions, n_entities)
    factors = kgtrec.Factors(queries[: len(questions)], entities)
    _core.force_path(path)
    before = peak_bytes()
    kgtrec.rank(factors, questions, 20, threads, progress=False)
    return {"before": before, "peak": peak_bytes(), "embeddings": entities.nbytes}


def _q6(settings: Settings) -> list[Row]:
    """With one thread there is no quantised table of this size. Sixteen threads share one: codes of
    8 and 16 bits and their figures. So the bar is the size of such a table plus an allowance for
    ranking."""
    sizes = ("100000", "1000") if settings.quick else ("1000000", "10000")
    table = int(sizes[0]) * (3 * DIM + 72) / MB
    rows = []
    for path, threads in ((path, threads) for path in _paths() for threads in (1, 16)):
        done = subprocess.run(
            [sys.executable, __file__, *sizes, str(threads), path],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ,
        )
        memory = json.loads(done.stdout)
        grown = (memory["peak"] - memory["before"]) / MB
        what = f"{int(sizes[0]):,} entities: MB that ranking adds, {threads} threads, {path}"
        bar = 100 + (table if threads > 1 else 0)
        rows.append(
            at_most(
                "Q6",
                what,
                f"{memory['peak'] / MB:.0f} MB",
                f"{memory['before'] / MB:.0f} MB before",
                grown,
                bar,
                **memory,
            )
        )
    return rows


BARS = {
    "Q1": lambda settings: list(_against_product(settings, "Q1", 0)),
    "Q2": lambda settings: list(_against_product(settings, "Q2", 20)),
    "Q3": _q3,
    "Q4": _q4,
    "Q5": _q5,
    "Q6": _q6,
    "Q8": _q8,
    "Q9": _q9,
    "Q10": _q10,
    "Q11": _q11,
}


if __name__ == "__main__":
    print(json.dumps(_measure_memory(*map(int, sys.argv[1:4]), sys.argv[4])))
