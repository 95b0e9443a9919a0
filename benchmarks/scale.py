"""Rank millions of entities on two Dask workers: ``python benchmarks/scale.py --help``.

Two worker processes rank a synthetic graph with ogbl-wikikg2's entity count and seeded embeddings
in full. Smaller graphs then show how time grows. At last it estimates the cost of whole benchmarks.
It prints Markdown, for the note.

Random queries are the worst case of ranking by bounds, because answers and best score anywhere
among the others. So the whole size is ranked again with queries near their answers, as in a trained
model. `KGTREC_ISA=avx512` (or `avx2`, `neon`) runs everything without bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ENTITIES, QUESTIONS, DIMENSIONS = 2_500_604, 20_000, 50
KNOWN = 8  # further answers of a question, filtered
SEED = 20_260_801
RUN_DEPTH = 20
VECTORS = ("random", "near")
NOISE = 0.9  # for queries near their answers: some others score more, as in trained models

# Entities, questions (test triples x 2), d in papers; `peers.md` has the sizes.
BENCHMARKS = {
    "ogbl-wikikg2": (2_500_604, 2 * 598_543, 50),
    "Wikidata5M": (4_594_485, 2 * 5_133, 50),
    "Freebase86m": (86_054_151, 2 * 16_929_312, 50),
}
CORES = (1, 16, 256)


@dataclass(frozen=True)
class Case:
    """The figures of one size.

    ``seconds``: of `rank`, without starting workers and writing data. ``cpu_seconds``: of all
    workers; a busy machine affects these less. Bytes are peaks: of the largest worker, of the
    client, and of all processes at one moment (shared pages counted once).
    """

    vectors: str
    entities: int
    questions: int
    dimensions: int
    seconds: float
    cpu_seconds: float
    worker_bytes: int
    client_bytes: int
    together_bytes: int

    @property
    def work(self) -> int:
        """Entities x questions x d."""
        return self.entities * self.questions * self.dimensions

    @property
    def rate(self) -> float:
        """Work per second."""
        return self.work / self.seconds

    @property
    def core_rate(self) -> float:
        """Work per CPU second of a worker."""
        return self.work / self.cpu_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the sizes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB", help="of a task; default %(default)s")
    parser.add_argument("--json", type=Path, help="also write the figures")
    parser.add_argument("--whole", action="store_true", help="only the whole size")
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        vectors, *sizes = options.case
        case = measure(vectors, *map(int, sizes), options.workers, options.memory)
        print(json.dumps(asdict(case)))
        return
    cases = {}
    for vectors, *sizes in case_sizes(100 if options.quick else 1, options.whole):
        case = in_child(vectors, sizes, options.workers, options.memory)
        cases[(vectors, *sizes)] = case
        print(f"{vectors} {sizes}: {case.seconds:.1f} s", file=sys.stderr, flush=True)
    print(report(cases, options.workers, options.memory))
    if options.json:
        rows = [
            asdict(case) | {"rate": case.rate, "core_rate": case.core_rate}
            for case in cases.values()
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def case_sizes(divisor: int, whole_only: bool) -> Iterator[tuple[str, int, int, int]]:
    """The whole size with random and with near queries, then 1/4 and 1/2 of each size in turn."""
    whole = (ENTITIES // divisor, QUESTIONS // divisor, DIMENSIONS)
    for vectors in VECTORS:
        yield (vectors, *whole)
    for place in () if whole_only else range(3):
        for part in (4, 2):
            sizes = list(whole)
            sizes[place] //= part
            yield ("random", *sizes)


def in_child(vectors: str, sizes: list[int], workers: int, memory: str) -> Case:
    """Measure each size in its own processes, to get its own peaks."""
    command = [sys.executable, __file__, "--workers", str(workers), "--memory", memory]
    command += ["--case", vectors, *map(str, sizes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Case(**json.loads(done.stdout.splitlines()[-1]))


def measure(
    vectors: str, entities: int, questions: int, dimensions: int, workers: int, memory: str
) -> Case:
    """Measure one size in this process and its workers."""
    import numpy as np

    import kgtrec
    import kgtrec.cluster
    from kgtrec.cluster.dask.workers import local_client

    rng = np.random.default_rng(SEED)
    question_set = make_questions(rng, entities, questions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        queries = rng.standard_normal((len(question_set), dimensions), dtype=np.float32)
        table = rng.standard_normal((entities, dimensions), dtype=np.float32)
        if vectors == "near":
            answers = [int(question_set.answers[row][0]) for row in range(len(question_set))]
            queries = table[answers] + np.float32(NOISE) * queries
        np.savez(path, queries=queries, entities=table)
        del queries, table
        with (
            local_client(Path(folder), workers) as client,
            Watch(os.getpid()) as watch,
        ):
            client.wait_for_workers(workers)
            before = client.run(time.process_time)
            started = time.perf_counter()
            ranks, run = kgtrec.cluster.rank(
                str(path), question_set, client, memory, run_depth=RUN_DEPTH, progress=False
            )
            seconds = time.perf_counter() - started
            after, peaks = client.run(time.process_time), client.run(peak_bytes)
        assert len(ranks) == question_set.n_instances
        assert len(run.documents) == RUN_DEPTH * len(question_set)
        check(path, question_set, ranks)
    cpu = sum(after[worker] - before[worker] for worker in after)
    return Case(
        vectors,
        entities,
        len(question_set),
        dimensions,
        seconds,
        cpu,
        max(peaks.values()),
        watch.client,
        watch.together,
    )


def make_questions(rng, entities: int, questions: int):
    """Half head questions and half tail questions, all different."""
    import numpy as np

    import kgtrec

    half = questions // 2
    heads = rng.choice(entities, half, replace=False)
    tails = rng.choice(entities, half, replace=False)
    relation = rng.integers(0, 535, half)
    test = np.column_stack([heads, relation, tails])
    more = [
        np.column_stack(
            [
                np.repeat(heads, KNOWN),
                np.repeat(relation, KNOWN),
                rng.integers(0, entities, half * KNOWN),
            ]
        ),
        np.column_stack(
            [
                rng.integers(0, entities, half * KNOWN),
                np.repeat(relation, KNOWN),
                np.repeat(tails, KNOWN),
            ]
        ),
    ]
    graph = kgtrec.Graph.from_arrays(
        train=np.concatenate(more), test=test, n_entities=entities, n_relations=535
    )
    return graph.questions("test")


def check(path: Path, questions, ranks) -> None:
    """Check some ranks against plain numpy in double precision; near ties may differ."""
    import numpy as np

    with np.load(path, allow_pickle=False) as model:
        queries, table = model["queries"], model["entities"]
    for row in np.linspace(0, len(ranks) - 1, 5).astype(int).tolist():
        question, answer = int(ranks.question[row]), int(ranks.answer[row])
        scores = table @ queries[question].astype(np.float64)
        scores[np.setdiff1d(questions.known[question], [answer])] = -np.inf
        above = int((scores > scores[answer]).sum())
        assert abs(above - int(ranks.greater[row])) <= 1 + len(scores) // 100_000, (row, above)


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


class Watch:
    """Peak memory of this process, and of it and its children at one moment."""

    def __init__(self, pid: int) -> None:
        self.pid, self.client, self.together = pid, 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.client = peak_bytes()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.together = max(self.together, sum(map(_share, _family(self.pid))))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield from _family(child)


def _share(pid: int) -> int:
    """Proportional set size: a page shared by several processes counts once in total."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


# -- On paper ----------------------------------------------------------------------------------


def report(cases: dict[tuple[str, int, int, int], Case], workers: int, memory: str) -> str:
    """The figures as Markdown tables."""
    whole = next(iter(cases.values()))
    lines = [
        f"{workers} workers, one thread each, --memory {memory}, the best {RUN_DEPTH} kept:",
        "",
        "| queries | entities | questions | d | seconds | E x Q x d a second | CPU seconds | "
        "E x Q x d a CPU second | a worker | client | together |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases.values():
        lines.append(
            f"| {case.vectors} | {case.entities:,} | {case.questions:,} | {case.dimensions} | "
            f"{case.seconds:.1f} | "
            f"{case.rate:.2e} | {case.cpu_seconds:.1f} | {case.core_rate:.2e} | "
            f"{case.worker_bytes / 1e6:,.0f} MB | "
            f"{case.client_bytes / 1e6:,.0f} MB | {case.together_bytes / 1e6:,.0f} MB |"
        )
    if len(cases) > len(VECTORS):
        lines += ["", growth(cases), "", *paper(whole.core_rate)]
    return "\n".join(lines)


def growth(cases: dict[tuple[str, int, int, int], Case]) -> str:
    """Growth of the time for 4 times the size, per dimension."""
    whole, parts = next(iter(cases)), []
    for place, name in enumerate(("entities", "questions", "d"), 1):
        small = list(whole)
        small[place] //= 4
        before, after = cases[tuple(small)], cases[whole]
        ratios = [after.seconds / before.seconds, after.cpu_seconds / before.cpu_seconds]
        parts.append(f"{name} {ratios[0]:.2f} ({ratios[1]:.2f})")
    return f"Seconds (CPU seconds) for 4 x the size; 4 is linear: {', '.join(parts)}."


def paper(rate: float) -> list[str]:
    """Estimated cost of whole benchmarks from one core's rate, if speed grows with cores."""
    lines = [
        f"On paper, at {rate:.2e} a core and second, full filtered ranking:",
        "",
        "| benchmark | entities | questions | d | float32 scores | "
        + " | ".join(f"{cores} cores" if cores > 1 else "1 core" for cores in CORES)
        + " |",
        "|---|---:|---:|---:|---:|" + "---:|" * len(CORES),
    ]
    for name, (entities, questions, dimensions) in BENCHMARKS.items():
        seconds = entities * questions * dimensions / rate
        times = " | ".join(duration(seconds / cores) for cores in CORES)
        size = 4 * entities * questions
        lines.append(
            f"| {name} | {entities:,} | {questions:,} | {dimensions} | {volume(size)} | {times} |"
        )
    return lines


def duration(seconds: float) -> str:
    """Two digits of a suitable unit."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def volume(size: float) -> str:
    """Bytes in readable units."""
    for unit in ("GB", "TB"):
        if size < 1000 * 1e9:
            return f"{size / 1e9:,.0f} {unit}"
        size /= 1000
    return f"{size / 1e9:,.0f} PB"


if __name__ == "__main__":
    main()
