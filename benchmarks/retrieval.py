"""E3: every trec_eval measure from vectors and qrels, against the product alone and FAISS.

The reference is the product of all queries with all documents, by numpy, in blocks of the fastest
of some sizes. It computes no ranks. FAISS's flat index finds the best 1,000 documents per query,
and pytrec_eval computes the measures of this list, without deeper documents.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rows import Row, Settings, at_most, require
from timing import Contestant, compete

import kgtrec
from kgtrec.results.result import Result

__all__ = ["BARS"]

SIZES = 1_000_000, 2_000, 384
QUICK = 20_000, 50, 64
RELEVANT, DEPTH = 10, 1_000
BLOCKS = (1_024, 4_096, 16_384)
MEASURES = ("map", "ndcg_cut_10", "recip_rank", "P_10")
ROOM = 512 << 20  # bytes beside the vectors


def _sizes(quick: bool) -> tuple[int, int, int]:
    """Documents, queries and dimensions; KGTREC_E3 sets others, for example 200000x500x384."""
    text = os.environ.get("KGTREC_E3", "")
    if text:
        documents, queries, dimensions = map(int, text.split("x"))
        return documents, queries, dimensions
    return QUICK if quick else SIZES


def _data(n: int, n_queries: int, d: int) -> tuple[Any, Any, dict[str, dict[str, int]]]:
    """Documents in clusters, queries near their relevant documents, and graded qrels."""
    rng = np.random.default_rng(0)
    documents = rng.standard_normal((n, d), dtype=np.float32)
    queries = rng.standard_normal((n_queries, d), dtype=np.float32)
    qrels = {}
    for number in range(n_queries):
        chosen = rng.choice(n, RELEVANT, replace=False)
        queries[number] += 0.5 * documents[chosen].sum(axis=0)
        grades = rng.integers(1, 4, RELEVANT).tolist()
        qrels[f"q{number}"] = {f"d{i:08d}": g for i, g in zip(chosen.tolist(), grades, strict=True)}
    return queries, documents, qrels


def _product(queries: Any, documents: Any, block: int) -> float:
    """The whole product by blocks of documents; returns the largest score, so that all are read."""
    best = -np.inf
    for start in range(0, len(documents), block):
        best = max(best, float((queries @ documents[start : start + block].T)[0, 0]))
    return best


def _fastest_block(queries: Any, documents: Any) -> int:
    some = documents[: 4 * max(BLOCKS)]
    seconds = {}
    for block in BLOCKS:
        start = time.perf_counter()
        _product(queries, some, block)
        seconds[block] = time.perf_counter() - start
    return min(seconds, key=seconds.__getitem__)


def _faiss(queries: Any, documents: Any, qrels: Any, threads: int) -> dict[str, float]:
    """Measures of the best documents only."""
    import faiss
    import pytrec_eval

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(documents.shape[1])
    index.add(documents)
    scores, found = index.search(queries, min(DEPTH, len(documents)))
    run = {
        query: {f"d{i:08d}": float(s) for i, s in zip(row, values, strict=True)}
        for query, row, values in zip(qrels, found.tolist(), scores.tolist(), strict=True)
    }
    names = {"map", "ndcg_cut.10", "recip_rank", "P.10"}
    values = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    return {name: float(np.mean([v[name] for v in values.values()])) for name in MEASURES}


def _beside_faiss(
    queries: Any, documents: Any, qrels: Any, threads: int, ours: dict[str, float]
) -> dict[str, Any]:
    """FAISS's time and values; raises an error if a full list gives other values."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
    values = _faiss(queries, documents, qrels, threads)
    seconds = time.perf_counter() - start
    cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    for name in ("ndcg_cut_10", "P_10"):
        gap = abs(ours[name] - values[name])
        require(gap < 1e-3, f"{name} differs from FAISS's by {gap:.2g}")
    return {"faiss_seconds": seconds, "faiss_cpu": cpu, "faiss_values": values}


def _peak_of_command(queries: Any, documents: Any, qrels: Any, names: list[str]) -> int:
    """Peak memory of `kgtrec rank --qrels` in its own process, in bytes without the vectors."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.savez(home / "v.npz", queries=queries, entities=documents)
        (home / "d.txt").write_text("\n".join(names))
        (home / "q.txt").write_text("\n".join(qrels))
        rows = [f"{q} 0 {d} {g}" for q, row in qrels.items() for d, g in row.items()]
        (home / "qrels.txt").write_text("\n".join(rows) + "\n")
        words = [
            "rank",
            "--qrels",
            "qrels.txt",
            "--documents",
            "d.txt",
            "--queries",
            "q.txt",
            "--scores",
            "v.npz",
            "-o",
            "r.parquet",
            "--threads",
            "1",
        ]
        code = (
            "import sys; sys.path.append(sys.argv.pop(1))\n"
            "from memory import peak_bytes; from kgtrec.cli import main\n"
            "try: main()\n"
            "finally: print(peak_bytes())"
        )
        command = [sys.executable, "-c", code, str(Path(__file__).parent), *words]
        done = subprocess.run(command, cwd=home, check=True, capture_output=True, text=True)
        return int(done.stdout.split()[-1]) - documents.nbytes - queries.nbytes


def _e3(settings: Settings) -> list[Row]:
    n, n_queries, d = _sizes(settings.quick)
    queries, documents, qrels = _data(n, n_queries, d)
    names = [f"d{number:08d}" for number in range(n)]
    beside = _peak_of_command(queries, documents, qrels, names)
    questions = kgtrec.Questions.from_answers(qrels, labels=names)
    block = _fastest_block(queries, documents)
    answers: dict[str, Any] = {}

    def ours(_: None) -> None:
        factors = kgtrec.Factors(queries, documents)
        ranks, _run = kgtrec.rank(factors, questions, threads=settings.threads)
        result = Result(ranks)
        answers["ours"] = {name: result[f"macro.{name}"] for name in MEASURES}

    contestants = {
        "ours": Contestant(ours),
        "product": Contestant(lambda _: _product(queries, documents, block)),
    }
    timings = compete(contestants, rounds=3)
    faiss: dict[str, Any] = {}
    told = "FAISS not run: install .[bench]"
    if find_spec("faiss"):
        faiss = _beside_faiss(queries, documents, qrels, settings.threads, answers["ours"])
        told = f"FAISS top 1,000 and pytrec_eval {faiss['faiss_seconds']:.1f} s"
    require(beside <= ROOM, f"{beside >> 20} MB beside the vectors, where {ROOM >> 20} are allowed")
    row = at_most(
        "E3",
        f"every measure of {n_queries:,} queries and {n:,} documents, d = {d}, "
        f"{settings.threads} thread",
        f"{timings.seconds('ours'):.1f} s",
        f"numpy's product {timings.seconds('product'):.1f} s, {told}",
        timings.ratio("ours", "product"),
        1.15,
        **timings.detail("ours", "product"),
        block=block,
        bytes_beside_vectors=beside,
        our_values=answers["ours"],
        **faiss,
    )
    return [row]


BARS = {"E3": _e3}
