"""P1 and P3: files written and read, against the plainest program that does as much."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bandwidth import NoCompiler, compiled_library
from data import N_ENTITIES, SEED, fb15k_237
from rows import Row, Settings, at_most, require
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


def make_run(n_queries: int) -> kgtrec.Run:
    """A run with labels like Freebase's, and scores like a model's."""
    rng = np.random.default_rng(SEED)
    shape = (n_queries, DEPTH)
    scores = np.empty(shape, np.float32)
    for row in scores:  # a row at a time: the peak is the run's own size
        row[:] = np.sort(rng.normal(0, 10, DEPTH))[::-1]
    scores[np.abs(scores) < 1e-3] = 0  # fixed notation, which is what the reference writes
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
            "P1", f"Run.write of {lines:,} lines, CPU", f"{nanoseconds['ours']:.0f} ns a line",
            f"{nanoseconds['plain']:.0f} ns a line", nanoseconds["ours"] / nanoseconds["plain"],
            1.5, **timings.detail("ours", "plain"),
        ),
        at_most(
            "P1", "Run.write: MB beyond the run itself", f"{peak / 1e6:.0f} MB", "", peak / 1e6, 200
        ),
    ]  # fmt: skip


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
    """The least CPU time of each: what else the machine does only adds to it."""
    milliseconds = {name: 1e3 * min(timings.cpu[name]) for name in (ours, theirs)}
    return at_most(
        bar_id, what, f"{milliseconds[ours]:.1f} ms", f"{milliseconds[theirs]:.1f} ms",
        milliseconds[ours] / milliseconds[theirs], bar, **timings.detail(ours, theirs),
    )  # fmt: skip


BARS = {"P1": _p1, "P3": _p3}
