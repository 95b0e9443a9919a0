"""Clusters that are not at hand: the plan's own tasks on 64 and 1,024 workers, by simulation.

What a score costs a worker, and what a task and a byte cost the scheduler and the client, are
measured here first, on two worker processes. Times of tasks scatter (log-normal); where one worker
is lost, it goes in mid-run and its task is done anew.

    python benchmarks/simulate.py            # two minutes; prints a Markdown table
    python benchmarks/simulate.py --quick
"""

from __future__ import annotations

import argparse
import heapq
import resource
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import kgtrec
from kgtrec.cluster.array_files import ArrayFile, FactorFiles
from kgtrec.cluster.dask.rank import DASK_BYTES, cut
from kgtrec.cluster.plan import make_plan

N_ENTITIES, N_QUESTIONS, DIM = 86_054_151, 33_800_000, 64
"""Freebase86m: entities, questions of 5 % of its triples; and the model's dimension."""
ANSWER = 49
"""Bytes of an answer in what a task returns."""
SCATTER = 0.1


@dataclass(frozen=True)
class Costs:
    """Seconds: of a worker a score; of scheduler and client a task and a byte."""

    score: float
    task: float
    byte: float


@dataclass(frozen=True)
class Outcome:
    """Seconds; shares of all workers' time until the last task's end, the lost one's included."""

    seconds: float
    idle: float
    idle_at_end: float
    busy_client: float


def plan_of(workers: int, n_questions: int, memory: str) -> list[tuple[int, int]]:
    """Answers and scores of each task, as `kgtrec.cluster.rank` cuts them."""
    offsets = np.arange(n_questions + 1)
    arrays = {"plan_question": offsets[:-1], "removed_offsets": np.zeros_like(offsets)}
    store = SimpleNamespace(
        n_rows=n_questions, n_labels=N_ENTITIES, n_columns=N_ENTITIES, restricted=False,
        ordered=True, array=lambda name: arrays.get(name, offsets),
    )  # fmt: skip
    queries, entities = (ArrayFile("", 0, (n, DIM), "float32") for n in (n_questions, N_ENTITIES))
    inputs: Any = SimpleNamespace(
        store=lambda: store, files=FactorFiles(queries, entities), run_depth=20,
        tolerance=None, threads=1,
    )  # fmt: skip
    plan = make_plan(inputs, memory, workers, calibrate=False, reserve=DASK_BYTES)
    tasks = []
    for work in cut(plan.blocks, plan.ranges, workers):
        rows = work.rows[1] - work.rows[0]
        tasks.append((rows, rows * (work.ranges[-1][1] - work.ranges[0][0])))
    return tasks


def simulate(tasks: list[tuple[int, int]], workers: int, costs: Costs, lost: bool) -> Outcome:
    """Tasks in their order to workers as they become free; the client takes results one by one."""
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
            waiting.append(number)  # it is the next to be handed out, as its turn was before
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
        max(last, client), 1 - busy / workers / last, idle_at_end,
        (at_work + len(tasks) * costs.task) / max(last, client),
    )  # fmt: skip


def measured(quick: bool) -> Costs:
    """On this machine: one thread of the kernel, and two worker processes of Dask."""
    rng = np.random.default_rng(0)
    n, e = (500, 20_000) if quick else (4_000, 100_000)
    triples = np.stack([rng.integers(0, size, n) for size in (e, 5, e)], axis=1)
    questions = kgtrec.Graph.from_arrays(test=triples, n_entities=e).questions("test")
    vectors = [rng.standard_normal((m, DIM)).astype(np.float32) for m in (len(questions), e)]
    start = time.process_time()
    kgtrec.rank(kgtrec.Factors(*vectors), questions, 20, 1, progress=False)
    score = (time.process_time() - start) / (len(questions) * e)

    from distributed import Client

    def cpu(size: int, n_tasks: int) -> float:
        start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        futures = [client.submit(np.ones, size, np.uint8, pure=False) for _ in range(n_tasks)]
        for future in futures:
            future.result()
        return (sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - start) / n_tasks

    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        cpu(1, 50)
        n_tasks, size = (50, 1 << 18) if quick else (500, 1 << 22)
        task = cpu(1, n_tasks)
        byte = max(0.0, cpu(size, max(10, n_tasks // 10)) - task) / size
    return Costs(score, task, byte)


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
        f"{costs.task * 1e3:.2f} ms a task, {costs.byte * 1e9:.2f} ns a byte; "
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


if __name__ == "__main__":
    main()
