"""The machine on which the figures were measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bandwidth import TRIAL_BYTES, NoCompiler, streaming_read
from data import DIMENSIONS, N_ENTITIES, cache_bytes, graph_at_hand
from timing import Contestant, compete

import kgtrec
from kgtrec import _core

__all__ = ["describe", "describe_machine"]

GEMM_ROWS = 512


def describe_machine(quick: bool) -> dict[str, Any]:
    """Processor, versions, load, read bandwidth and gemm speed, as plain JSON types."""
    rounds = 3 if quick else 9
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "largest_cache_MB": cache_bytes() >> 20,
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kgtrec": kgtrec.__version__,
        "kernel_path": _core.active_path(),
        "kernel_paths": _core.available_paths(),
        **_read_speeds(rounds),
        "gemm_GFLOPs": _gemm_speed(rounds),
        "graph": graph_at_hand(),
        "blas_threads": _blas_threads(),
    }


def _blas_threads() -> int | None:
    """Threads that the BLAS reports by threadpoolctl; otherwise the number that was set."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return int(os.environ.get("OPENBLAS_NUM_THREADS", 0)) or None
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=None)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _read_speeds(rounds: int) -> dict[str, Any]:
    """Bandwidth of one and of two threads, on arrays larger than the second-level cache."""
    try:
        read = streaming_read()
    except NoCompiler as error:
        return {"read_GB_per_s": None, "read_is": str(error)}
    array = np.ones(2 * TRIAL_BYTES // 4, dtype=np.float32)
    contestants = {str(n): Contestant(lambda _, n=n: read(array, threads=n)) for n in (1, 2)}
    timings = compete(contestants, rounds)
    speeds = {n: round(array.nbytes / median(s) / 1e9, 2) for n, s in timings.wall.items()}
    return {"read_GB_per_s": speeds, "read_is": read.name}


def _gemm_speed(rounds: int) -> float:
    """Speed of the product that scores FB15k-237 questions: (rows, 100) times (100, entities)."""
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((GEMM_ROWS, DIMENSIONS), dtype=np.float32)
    entities = rng.standard_normal((N_ENTITIES, DIMENSIONS), dtype=np.float32)
    out = np.empty((GEMM_ROWS, N_ENTITIES), dtype=np.float32)
    product = Contestant(lambda _: np.matmul(queries, entities.T, out=out))
    seconds = compete({"gemm": product}, rounds).seconds("gemm")
    return round(2 * GEMM_ROWS * DIMENSIONS * N_ENTITIES / seconds / 1e9, 1)


def describe(machine: dict[str, Any]) -> str:
    """The machine in a few lines."""
    load = ", ".join(f"{value:.1f}" for value in machine["load_average"])
    read = machine["read_GB_per_s"]
    speeds = f"{read['1']} GB/s, two threads {read['2']} GB/s" if read else "not measured"
    return "\n".join(
        [
            f"{machine['processor']}, {machine['cores']} cores, "
            f"largest cache {machine['largest_cache_MB']} MB, load average {load}",
            f"kgtrec {machine['kgtrec']} on path {machine['kernel_path']}, "
            f"numpy {machine['numpy']}, python {machine['python']}",
            f"streaming read {speeds} ({machine['read_is']})",
            f"sgemm of numpy, {machine['blas_threads']} thread: {machine['gemm_GFLOPs']} GFLOP/s",
            f"graph of F1, E1, E2, S1: {machine['graph']}",
        ]
    )
