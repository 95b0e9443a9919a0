"""P1 to P3, P5 and P6: graphs and files, against the simplest program that does the same."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from bandwidth import NoCompiler, compiled_library
from data import FOLDER, N_ENTITIES, SEED, STAND_IN, fb15k_237, graph_at_hand
from rows import Row, Settings, at_most, not_run, require
from timing import Contestant, Timings, compete

import kgtrec
from kgtrec.graph.labels import Labels

__all__ = ["BARS"]

DEPTH = 1_000
RUN_LINES = 22_850_000
CPP_FLAGS = ("-std=c++17", "-O3")
WRITE_MEMORY = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from files import make_run
from memory import peak_bytes
run = make_run(int(sys.argv[1]))
run.cut(1).write(sys.argv[2])  # what is imported is not what writing costs
before = peak_bytes()
run.write(sys.argv[2])
print(peak_bytes() - before)
"""


QUESTIONS = f"""
import sys
import numpy as np
sys.path.append({str(Path(__file__).parent)!r})
from memory import peak_bytes
import kgtrec
n = int(sys.argv[1])
share = n / 338_000_000  # of Freebase86m, and of its entities
n_entities, n_relations = int(86_000_000 * share), max(50, int(14_824 * share**0.5))
rng = np.random.default_rng({SEED})
def triples(size):
    ends = (n_entities * rng.random((2, size)) ** 3).astype(np.int32)
    relations = (n_relations * rng.random(size) ** 3).astype(np.int32)
    return np.stack([ends[0], relations, ends[1]], axis=1)
graph = kgtrec.Graph.from_arrays(triples(n * 9 // 10), triples(n // 20), triples(n // 20),
                                 n_entities, n_relations)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the high-water mark is what is held now
before = peak_bytes()
questions = graph.questions("test", filter="test")
print(len(questions), peak_bytes() - before)
"""
GRAPH = f"""
import sys, time
import numpy as np
sys.path.append({str(Path(__file__).parent)!r})
from memory import peak_bytes
import kgtrec
n, n_entities, n_relations = map(int, sys.argv[1:4])
rng = np.random.default_rng({SEED})
triples = np.empty((n, 3), np.int32)
for start in range(0, n, 1 << 20):
    for column, size in enumerate((n_entities, n_relations, n_entities)):
        part = triples[start : start + (1 << 20), column]
        part[:] = rng.integers(0, size, len(part))
repeated = int(n * float(sys.argv[4]))
triples[n - repeated :] = triples[:repeated]
sizes = dict(n_entities=n_entities, n_relations=n_relations)
kgtrec.Graph.from_arrays(triples[:9], **sizes)
before, started = peak_bytes(), time.process_time()
graph = kgtrec.Graph.from_arrays(triples, **sizes)
print(time.process_time() - started, peak_bytes() - before)
assert graph.duplicates["train"] >= repeated
"""


def make_run(n_queries: int) -> kgtrec.Run:
    """A run with labels like Freebase's and scores like a model's."""
    rng = np.random.default_rng(SEED)
    shape = (n_queries, DEPTH)
    scores = np.empty(shape, np.float32)
    for row in scores:  # row by row, so that the peak is the run's own size
        row[:] = np.sort(rng.normal(0, 10, DEPTH))[::-1]
    scores[np.abs(scores) < 1e-3] = 0  # the reference writes fixed notation
    return kgtrec.Run(
        query_ids=[f"tail{i}" for i in range(n_queries)],
        offsets=np.arange(n_queries + 1, dtype=np.int64) * DEPTH,
        documents=rng.integers(0, N_ENTITIES, n_queries * DEPTH, dtype=np.int32),
        scores=scores.ravel(),
        docnos=Labels.from_strings([f"/m/{i:06x}" for i in range(N_ENTITIES)]),
        depth=DEPTH,
    )


@dataclass(frozen=True)
class _PlainLoop:
    """The loop of run_lines.cpp over the arrays of a run."""

    library: Any
    run: kgtrec.Run
    queries: tuple[bytes, Any]
    names: tuple[bytes, Any]

    def __call__(self, path: Path) -> None:
        run, (queries, query_spans), (names, name_spans) = self.run, self.queries, self.names
        spans, offsets, documents, scores, ends = (
            array.ctypes.data_as(ctypes.c_void_p)
            for array in (query_spans, run.offsets, run.documents, run.scores, name_spans)
        )
        n = ctypes.c_int64(len(run))
        status = self.library.write_run(
            bytes(path), queries, spans, n, offsets, documents, scores, names, ends
        )
        require(status == 0, "the plain loop could not write")


def _plain_loop(run: kgtrec.Run) -> _PlainLoop:
    library = compiled_library("run_lines.cpp", CPP_FLAGS)
    if library is None:
        raise NoCompiler("no C++ compiler (looked for $CXX, c++, g++, clang++)")
    return _PlainLoop(library, run, _spans(run.query_ids), _spans(run.docnos[:]))


def _spans(names: Any) -> tuple[bytes, Any]:
    raw = [name.encode() for name in names]
    return b"".join(raw), np.cumsum([0, *map(len, raw)], dtype=np.int64)


def _p1(settings: Settings) -> list[Row]:
    n_queries = RUN_LINES // DEPTH // (100 if settings.quick else 10)
    run = make_run(n_queries)
    plain = _plain_loop(run)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "theirs")
        timings = compete(
            {
                "ours": Contestant(lambda _: run.write(ours)),
                "plain": Contestant(lambda _: plain(theirs)),
            },
            rounds=3 if settings.quick else 9,
        )
        require(ours.read_bytes() == theirs.read_bytes(), "the files differ")
        lines = n_queries * DEPTH
        nanoseconds = {name: 1e9 * min(timings.cpu[name]) / lines for name in timings.cpu}
        peak = _write_peak(n_queries if settings.quick else RUN_LINES // DEPTH, ours)
    return [
        at_most(
            "P1",
            f"Run.write of {lines:,} lines, CPU",
            f"{nanoseconds['ours']:.0f} ns a line",
            f"{nanoseconds['plain']:.0f} ns a line",
            nanoseconds["ours"] / nanoseconds["plain"],
            1.5,
            **timings.detail("ours", "plain"),
        ),
        at_most(
            "P1", "Run.write: MB beyond the run itself", f"{peak / 1e6:.0f} MB", "", peak / 1e6, 200
        ),
    ]


def _write_peak(n_queries: int, path: Path) -> int:
    command = [sys.executable, "-c", WRITE_MEMORY, str(n_queries), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"writing failed: {done.stderr[-500:]}")
    return int(done.stdout)


# ---- ranks ----


def _p3(settings: Settings) -> list[Row]:
    import pyarrow.parquet as pq

    graph = fb15k_237().graph
    questions = graph.questions("test")
    rng = np.random.default_rng(SEED)
    entities, queries = (
        rng.normal(size=(n, 16)).astype(np.float32) for n in (graph.n_entities, len(questions))
    )
    ranks = kgtrec.evaluate(kgtrec.Factors(queries, entities), questions).ranks
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "theirs")
        ranks.save(ours)
        table = pq.read_table(ours)
        options = {"compression": "zstd", "write_page_checksum": True}
        timings = compete(
            {
                "save": Contestant(lambda _: ranks.save(ours)),
                "write": Contestant(lambda _: pq.write_table(table, theirs, **options)),
                "load": Contestant(lambda _: kgtrec.Ranks.load(ours)),
                "read": Contestant(lambda _: pq.read_table(ours, page_checksum_verification=True)),
            },
            rounds=3 if settings.quick else 15,
        )
        require(ours.read_bytes() == theirs.read_bytes(), "the files differ")
    return [
        _by_cpu("P3", f"Ranks.save, {len(ranks):,} instances", timings, "save", "write", 2),
        _by_cpu("P3", "Ranks.load of them", timings, "load", "read", 2),
    ]


def _by_cpu(bar_id: str, what: str, timings: Timings, ours: str, theirs: str, bar: float) -> Row:
    """The least CPU time of each, because other load only adds to it."""
    milliseconds = {name: 1e3 * min(timings.cpu[name]) for name in (ours, theirs)}
    return at_most(
        bar_id,
        what,
        f"{milliseconds[ours]:.1f} ms",
        f"{milliseconds[theirs]:.1f} ms",
        milliseconds[ours] / milliseconds[theirs],
        bar,
        **timings.detail(ours, theirs),
    )


# ---- graphs ----


def _p2(settings: Settings) -> list[Row]:
    n = 1_000_000 if settings.quick else 20_000_000
    what = f"read_graph of {n:,} triples, CPU"
    if find_spec("polars") is None:
        return [not_run("P2", what, "install .[bench]")]
    threads = str(len(os.sched_getaffinity(0)))
    os.environ.setdefault("POLARS_MAX_THREADS", threads)  # its import reads this once
    import polars

    columns = {f"column_{i}": polars.Categorical for i in (1, 2, 3)}
    options = {"separator": "\t", "has_header": False, "quote_char": None}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        _write_triples(path, n)
        timings = compete(
            {
                "ours": Contestant(lambda _: kgtrec.read_graph(folder, progress=False)),
                "polars": Contestant(
                    lambda _: polars.read_csv(path, schema_overrides=columns, **options)
                ),
            },
            rounds=3,
        )
    return [_by_cpu("P2", what, timings, "ours", "polars", 1), _read_lines(settings)]


def _read_lines(settings: Settings) -> Row:
    """A run's lines, read by kgtrec and by polars with two categorical columns."""
    import polars

    n_queries = 100 if settings.quick else 10_000
    names = {f"column_{i}": polars.Categorical for i in (1, 3)}
    options = {"separator": " ", "has_header": False, "quote_char": None}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.run")
        run = make_run(n_queries)
        firsts = np.random.default_rng(SEED).integers(0, N_ENTITIES, (n_queries, 1))
        distinct = (firsts + 13 * np.arange(DEPTH)) % N_ENTITIES  # each document once per query
        replace(run, documents=distinct.ravel().astype(np.int32)).write(path)
        timings = compete(
            {
                "ours": Contestant(lambda _: kgtrec.trec.read_run(path, "columns")),
                "polars": Contestant(
                    lambda _: polars.read_csv(path, schema_overrides=names, **options)
                ),
            },
            rounds=3,
        )
    return _by_cpu(
        "P2", f"read_run of {n_queries * DEPTH:,} lines, CPU", timings, "ours", "polars", 1
    )


def _write_triples(path: Path, n: int) -> None:
    """Labels like Freebase's, with popular heads and any tails, or the reverse."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(SEED)
    n_entities, n_relations = n // 8, 1_000
    names = pa.array([f"/m/0{i:07x}" for i in rng.permutation(n_entities)])
    relations = pa.array([f"/people/person/relation_{i}" for i in range(n_relations)])
    schema = pa.schema([(name, pa.string()) for name in "hrt"])
    how = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with csv.CSVWriter(path, schema, write_options=how) as file:
        for start in range(0, n, 1 << 20):
            size = min(1 << 20, n - start)
            popular = (n_entities ** rng.random(size)).astype(np.int64) - 1
            ends = np.stack([popular, rng.integers(0, n_entities, size)])
            head, tail = rng.permuted(ends, axis=0)
            relation = (n_relations ** rng.random(size)).astype(np.int64) - 1
            columns = [
                names.take(pa.array(head)),
                relations.take(pa.array(relation)),
                names.take(pa.array(tail)),
            ]
            file.write(pa.table(columns, schema=schema))


def _p6(settings: Settings) -> list[Row]:
    n = 1_000_000 if settings.quick else 20_000_000
    sizes = {
        "small keys": (2_000_000, 1_000, 0.0),
        "Freebase86m": (86_000_000, 14_824, 0.0),
        "1 % repeated": (86_000_000, 14_824, 0.01),
    }
    least_of: dict[str, tuple[float, float]] = {}
    for _ in range(1 if settings.quick else 3):
        for name, size in sizes.items():
            seconds, peak = _graph_of(n, *size)
            least_of[name] = min(least_of.get(name, (seconds, peak)), (seconds, peak))
    least = least_of["small keys"][0]
    memory = [
        at_most(
            "P6",
            f"graph of {n:,} triples, {name}: bytes a triple above the input",
            f"{peak / n:.1f} B",
            "",
            peak / n,
            26,
        )
        for name, (_, peak) in least_of.items()
    ]
    cpu = at_most(
        "P6",
        "the same of Freebase86m's sizes: CPU, against small keys",
        f"{least_of['Freebase86m'][0]:.2f} s",
        f"{least:.2f} s",
        least_of["Freebase86m"][0] / least,
        1.3,
    )
    return [*memory, cpu]


def _graph_of(n: int, n_entities: int, n_relations: int, repeated: float) -> tuple[float, float]:
    """CPU seconds, and bytes at the peak, in a process of its own."""
    command = [sys.executable, "-c", GRAPH, *map(str, (n, n_entities, n_relations, repeated))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"the graph failed: {done.stderr[-500:]}")
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def _p7(settings: Settings) -> list[Row]:
    n = 1_000_000 if settings.quick else 20_000_000
    command = [sys.executable, "-c", QUESTIONS, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"the questions failed: {done.stderr[-500:]}")
    n_questions, peak = map(int, done.stdout.split())
    what = f"{n_questions:,} questions of {n:,} triples: bytes a question at the peak"
    return [at_most("P7", what, f"{peak / n_questions:.0f} B", "", peak / n_questions, 64)]


# ---- a whole ranking ----


def _p5(settings: Settings) -> list[Row]:
    what = "kgtrec rank of FB15k-237's matrix, 1 thread, ranks saved: CPU, against the kernel's"
    if graph_at_hand() == STAND_IN:
        return [not_run("P5", what, STAND_IN)]
    questions = fb15k_237().graph.questions("test")
    n = len(questions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scores.npy")
        shape = (n, questions.n_entities)
        scores = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        rng = np.random.default_rng(SEED)
        noise = rng.standard_normal(1 << 22, dtype=np.float32)
        for row, start in zip(scores, rng.integers(0, len(noise) - shape[1], n), strict=True):
            row[:] = noise[start : start + shape[1]]
        # The warm-up compiles modules once, whatever the environment sets.
        cache = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        environment = os.environ | cache
        rank = ["rank", "--graph", str(FOLDER), "--scores", str(path), "--threads", "1", "-q"]
        command = [sys.executable, "-c", "from kgtrec.cli import run; run()", *rank]
        command += ["-o", f"{folder}/x.ranks.parquet"]
        rows = [np.arange(n)[start : start + 1_024] for start in range(0, n, 1_024)]

        def kernel(ranker: Any) -> None:
            for some in rows:
                ranker.update(some, scores[some[0] : some[-1] + 1])

        def ranker() -> Any:
            return kgtrec.Ranker(questions, run_depth=0, threads=1)

        timings = compete(
            {
                "whole": Contestant(lambda _: subprocess.run(command, check=True, env=environment)),
                "kernel": Contestant(kernel, prepare=ranker),
            },
            rounds=2 if settings.quick else 7,
        )
    return [_by_cpu("P5", what, timings, "whole", "kernel", 3)]


BARS = {"P2": _p2, "P5": _p5, "P6": _p6, "P7": _p7, "P1": _p1, "P3": _p3}
