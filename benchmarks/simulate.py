"""Simulate clusters of 64 and 1,024 workers with the tasks of the plan.

It first measures costs on two worker processes: of a score for a worker, of a task and a byte for
the scheduler and the client, and of a job of a batch for the client. Times of tasks are log-normal.
A lost worker disappears in mid-run, and its task is repeated. A batch of many small jobs is
simulated with the rule of `kgtrec.cluster.batch.batch`, and with two jobs at a time.

    python benchmarks/simulate.py            # three minutes; prints two Markdown tables
    python benchmarks/simulate.py --quick
"""

from __future__ import annotations

import argparse
import heapq
import resource
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import kgtrec
from kgtrec.cluster.batch.batch import MOST_JOBS, Load
from kgtrec.cluster.dask.rank import DASK_BYTES, cut_into_tasks
from kgtrec.cluster.dask.workers import local_client
from kgtrec.cluster.plan import make_plan
from kgtrec.cluster.score_files import ArrayFile, FactorFiles
from kgtrec.ranking.settings import Settings

N_ENTITIES, N_QUESTIONS, DIM = 86_054_151, 33_800_000, 64
"""Freebase86m: entities, questions of 5 % of its triples; and the model's dimension."""
SMALL, JOBS = (4_594_485, 10_266), 400
"""Entities and questions of a small job (Wikidata5M's test split), and jobs in a batch."""
ANSWER = 49
"""Bytes of an answer in what a task returns."""
SCATTER = 0.1


@dataclass(frozen=True)
class Costs:
    """Seconds: per score for a worker; per task and per byte for scheduler and client; per job of a
    batch for the client."""

    score: float
    task: float
    byte: float
    job: float


@dataclass(frozen=True)
class Outcome:
    """Seconds; shares of all workers' time until the last task ends, including a lost worker."""

    seconds: float
    idle: float
    idle_at_end: float
    busy_client: float


def plan_of(
    workers: int, n_questions: int, memory: str, n_entities: int = N_ENTITIES, jobs: int = 1
) -> list[tuple[int, int]]:
    """Answers and scores of each task of `kgtrec.cluster.rank`."""
    offsets = np.arange(n_questions + 1)
    arrays = {"plan_question": offsets[:-1], "removed_offsets": np.zeros_like(offsets)}
    store = SimpleNamespace(
        n_rows=n_questions,
        n_labels=n_entities,
        n_columns=n_entities,
        restricted=False,
        ordered=True,
        array=lambda name: arrays.get(name, offsets),
    )
    parts = tuple(ArrayFile("", 0, (n, DIM), "float32") for n in (n_questions, n_entities))
    inputs: Any = SimpleNamespace(
        store=lambda: store, files=FactorFiles(parts), settings=Settings(20, threads=1)
    )
    plan = make_plan(inputs, memory, workers, calibrate=False, reserve=DASK_BYTES, jobs=jobs)
    tasks = []
    for work in cut_into_tasks(plan.blocks, plan.ranges, workers):
        rows = work.rows[1] - work.rows[0]
        tasks.append((rows, rows * (work.ranges[-1][1] - work.ranges[0][0])))
    return tasks


def simulate(tasks: list[tuple[int, int]], workers: int, costs: Costs, lost: bool) -> Outcome:
    """Assign tasks in order to free workers; the client takes results one by one."""
    rng = np.random.default_rng(1)
    noise = np.exp(rng.normal(0, SCATTER, len(tasks)))
    seconds = [scores * costs.score * n for (_, scores), n in zip(tasks, noise, strict=True)]
    gone = sum(seconds) / workers / 2 if lost else float("inf")
    free = [(0.0, number) for number in range(workers)]
    waiting = list(range(len(tasks)))[::-1]
    server, busy, ends, results = 0.0, 0.0, [], []
    while waiting:
        start, worker = heapq.heappop(free)
        if worker == 0 and start >= gone:
            continue  # it does not come back
        number = waiting.pop()
        server = max(server, start) + costs.task  # the scheduler hands out one task after another
        end = server + seconds[number]
        if worker == 0 and server < gone < end:
            waiting.append(number)  # it is assigned next, because its turn came before
            continue
        busy += seconds[number]
        heapq.heappush(free, (end, worker))
        ends.append(end)
        results.append((end, tasks[number][0] * ANSWER * costs.byte))
    last, client, at_work = max(ends), 0.0, 0.0
    for end, cost in sorted(results):
        client = max(client, end) + cost
        at_work += cost
    idle_at_end = sum(last - end for end, worker in free if end < gone or worker) / workers / last
    return Outcome(
        max(last, client),
        1 - busy / workers / last,
        idle_at_end,
        (at_work + len(tasks) * costs.task) / max(last, client),
    )


@dataclass(frozen=True)
class BatchOutcome:
    """Seconds; most jobs at a time; shares of the workers' time and of the client's."""

    seconds: float
    at_once: int
    idle: float
    busy_client: float


def two_at_a_time(left: Sequence[int | None], threads: int) -> bool:
    """The rule of two jobs at a time, for every cluster."""
    return len(left) < 2


def as_in_a_batch(left: Sequence[int | None], threads: int) -> bool:
    """The rule of `kgtrec.cluster.batch.batch`, with memory for any number of jobs."""
    load = Load(memory=len(left) + 1)
    for job, tasks in enumerate(left):
        load.begin(str(job))
        load.record_size(str(job), 1)
        if tasks is not None:
            load.record_tasks(str(job), tasks, threads)
    return load.has_room()


def simulate_batch(
    tasks: list[tuple[int, int]],
    n_jobs: int,
    workers: int,
    costs: Costs,
    rule: Callable[[list[int | None], int], bool],
) -> BatchOutcome:
    """Jobs of the same tasks: the client reads, workers rank, the client averages and writes.

    Ready tasks are assigned in order; the client does one thing after another.
    """
    rng = np.random.default_rng(1)
    waiting, ready = deque(range(n_jobs)), deque[tuple[int, float]]()
    free, left = workers, dict[int, int | None]()
    events: list[tuple[float, str, int]] = []
    client = server = busy = at_work = now = 0.0
    at_once = 0

    def on_client(seconds: float) -> float:
        nonlocal client, at_work
        client, at_work = max(client, now) + seconds, at_work + seconds
        return client

    while waiting or left:
        while waiting and rule(list(left.values()), workers):
            job = waiting.popleft()
            left[job] = None
            heapq.heappush(events, (on_client(costs.job / 2), "read", job))
            at_once = max(at_once, len(left))
        while free and ready:
            job, seconds = ready.popleft()
            server = max(server, now) + costs.task
            busy, free = busy + seconds, free - 1
            heapq.heappush(events, (server + seconds, "ranked", job))
        now, what, job = heapq.heappop(events)
        if what == "read":
            noise = np.exp(rng.normal(0, SCATTER, len(tasks)))
            left[job] = len(tasks)
            ready += [(job, n * costs.score * x) for (_, n), x in zip(tasks, noise, strict=True)]
        elif what == "written":
            del left[job]
        else:
            free, left[job] = free + 1, (left[job] or 0) - 1
            end = on_client(sum(n for n, _ in tasks) / len(tasks) * ANSWER * costs.byte)
            if not left[job]:
                end = on_client(costs.job / 2)
                heapq.heappush(events, (end, "written", job))
    return BatchOutcome(now, at_once, 1 - busy / workers / now, at_work / now)


def measured(quick: bool) -> Costs:
    """Costs on this machine: one thread of the kernel, and two worker processes of Dask."""
    rng = np.random.default_rng(0)
    n, e = (500, 20_000) if quick else (4_000, 100_000)
    triples = np.stack([rng.integers(0, size, n) for size in (e, 5, e)], axis=1)
    questions = kgtrec.Graph.from_arrays(test=triples, n_entities=e).questions("test")
    vectors = [rng.standard_normal((m, DIM)).astype(np.float32) for m in (len(questions), e)]
    start = time.process_time()
    kgtrec.rank(kgtrec.Factors(*vectors), questions, 20, 1, progress=False)
    score = (time.process_time() - start) / (len(questions) * e)

    def cpu(size: int, n_tasks: int) -> float:
        start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        futures = [client.submit(np.ones, size, np.uint8, pure=False) for _ in range(n_tasks)]
        for future in futures:
            future.result()
        return (sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - start) / n_tasks

    with tempfile.TemporaryDirectory() as folder, local_client(Path(folder), 2) as client:
        cpu(1, 50)
        n_tasks, size = (50, 1 << 18) if quick else (500, 1 << 22)
        task = cpu(1, n_tasks)
        byte = max(0.0, cpu(size, max(10, n_tasks // 10)) - task) / size
        job = cost_of_a_job(client, n_jobs=2 if quick else 20)
    return Costs(score, task, byte, job)


def cost_of_a_job(client: Any, n_jobs: int) -> float:
    """CPU seconds of the client for a job of a batch, ranked by two workers."""
    from kgtrec.cluster.batch.batch import run_batch
    from kgtrec.cluster.batch.job_file import read_jobs

    rng, (n, e) = np.random.default_rng(0), (SMALL[1] // 2, 2_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "g").mkdir()
        rows = rng.integers(0, (e, 20, e), (n, 3))
        lines = "".join(f"e{head}\tr{relation}\te{tail}\n" for head, relation, tail in rows)
        (folder / "g" / "test.txt").write_text(lines)
        graph = kgtrec.read_graph(folder / "g", progress=False)
        shapes = {"queries": len(graph.questions("test")), "entities": graph.n_entities}
        for number in range(n_jobs + 1):
            arrays = {key: rng.standard_normal((m, 4), np.float32) for key, m in shapes.items()}
            np.savez(folder / f"m{number}.npz", **arrays)
        seconds = []
        for pattern in ("m0", "m*"):  # the first job alone reads the graph, too
            text = f'output = "out"\nmodels = "{pattern}.npz"\ngraphs.g = "g"\n'
            (folder / "jobs.toml").write_text(text)
            start = time.process_time()
            run_batch(read_jobs(folder / "jobs.toml"), client)
            seconds.append(time.process_time() - start)
    return (seconds[1] - seconds[0]) / (n_jobs - 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", default="32GB")
    options = parser.parse_args()
    costs = measured(options.quick)
    n_questions = N_QUESTIONS // (100 if options.quick else 1)
    print(
        f"{costs.score * 1e12:.0f} ps a score of {DIM} dimensions, "
        f"{costs.task * 1e3:.2f} ms a task, {costs.byte * 1e9:.2f} ns a byte, "
        f"{costs.job:.2f} s a job; "
        f"{n_questions:,} questions x {N_ENTITIES:,} entities\n"
    )
    print(
        "| workers | tasks | waves | hours | idle | of it at the end | scheduler and client busy |"
    )
    print("|---|---|---|---|---|---|---|")
    for workers in (2, 64, 1_024):
        tasks = plan_of(workers, n_questions, options.memory)
        for lost in (False, True):
            said = simulate(tasks, workers, costs, lost)
            print(
                f"| {workers:,}{', one lost' * lost} | {len(tasks):,} | "
                f"{len(tasks) / workers:.1f} | {said.seconds / 3600:.2f} | {said.idle:.1%} | "
                f"{said.idle_at_end:.1%} | {said.busy_client:.1%} |"
            )
    print(f"\n{JOBS} jobs of {SMALL[1]:,} questions x {SMALL[0]:,} entities\n")
    print("| workers | jobs at a time | tasks a job | minutes | idle | client busy |")
    print("|---|---|---|---|---|---|")
    for workers in (64, 1_024):
        for rule, shared in ((two_at_a_time, 1), (as_in_a_batch, MOST_JOBS)):
            tasks = plan_of(workers, SMALL[1], options.memory, SMALL[0], shared)
            of_batch = simulate_batch(tasks, JOBS, workers, costs, rule)
            print(
                f"| {workers:,} | {of_batch.at_once} | {len(tasks)} | "
                f"{of_batch.seconds / 60:.1f} | {of_batch.idle:.1%} | {of_batch.busy_client:.1%} |"
            )


if __name__ == "__main__":
    main()
