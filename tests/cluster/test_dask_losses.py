"""Workers and schedulers are killed: the same bytes while one is left, else one error in time.

The default run kills a few times; ``KGTREC_TEST_KILLS=50 pytest tests/cluster/test_dask_losses.py``
is the command to run after a change to `kgtrec.cluster.dask`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from question_cases import N, assert_same_bytes, ranking_case

import kgtrec

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import dask
import dask.array as da
from dask_workers import Processes, in_twos, plan_as
from distributed import Client, Nanny

import kgtrec.cluster
from kgtrec.cluster.dask import rank as dask_rank
from kgtrec.cluster.dask import shipment, tasks, workers
from kgtrec.cluster.dask.workers import ClusterError, SchedulerLost, local_client
from kgtrec.cluster.plan import PartFiles

KILLS = int(os.environ.get("KGTREC_TEST_KILLS", "4"))
DEPTH = 5
LATE = 240  # seconds: running work ends by then on any machine, an endless wait does not
META = np.empty((0, 0), "f4")  # otherwise Dask calls the function here to see its result


@pytest.fixture
def patient(shared_cluster: Any, client: Client) -> Iterator[Client]:
    """A client of workers that Dask restarts whenever they are killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_cluster.scheduler, "allowed_failures", 1000)
        yield client


@contextlib.contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """Other processes need the processors too."""
    command = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def pids(client: Client) -> list[int]:
    """Process ids of the present workers, without one that is just ending."""
    pids = client.run(os.getpid, on_error="ignore")
    return sorted(pids.values())


@pytest.mark.slow
def test_kills_in_a_row_change_nothing(patient, tmp_path, monkeypatch) -> None:
    """At any time; with shared files and sent ones, matrices and Dask arrays; on a busy machine."""

    def slowly(block: np.ndarray) -> np.ndarray:
        time.sleep(0.05)
        return block

    rng = np.random.default_rng(1)
    questions, scores = ranking_case(1)
    plan_as(monkeypatch, in_twos(len(questions)))
    array = da.from_array(scores, chunks=(3, 9)).map_blocks(slowly, meta=META)
    expected = kgtrec.rank(scores, questions, DEPTH)
    look = shipment.workers_share_files
    with busy_machine(4 if KILLS > 4 else 0):
        for number in range(KILLS):
            patient.wait_for_workers(2, timeout=120)
            shared = number % 4 < 2
            monkeypatch.setattr(
                shipment, "workers_share_files", look if shared else lambda *_: False
            )
            victim = int(rng.choice(pids(patient)))
            killer = threading.Timer(rng.uniform(0, 0.6), os.kill, (victim, signal.SIGKILL))
            killer.start()
            source = array if number % 2 else scores
            started = time.monotonic()
            got = kgtrec.cluster.rank(source, questions, patient, run_depth=DEPTH)
            seconds = time.monotonic() - started
            killer.join()
            assert_same_bytes(got, expected, tmp_path)
            assert seconds < LATE, f"kill {number} held the work up"
            print(f"kill {number}: {seconds:.1f} s")


@pytest.mark.slow
def test_all_workers_are_killed_at_once_and_come_back(patient, tmp_path, monkeypatch) -> None:
    questions, scores = ranking_case(2)
    plan_as(monkeypatch, in_twos(len(questions)))

    def kill_all() -> None:
        for pid in pids(patient):
            os.kill(pid, signal.SIGKILL)

    at_part(monkeypatch, 2, kill_all)
    work = tmp_path / "work"
    got = kgtrec.cluster.rank(scores, questions, patient, folder=work, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)


def at_part(monkeypatch: pytest.MonkeyPatch, number: int, what: Callable[[], None]) -> list[object]:
    """Act after this number of kept parts; return the growing list of their tasks."""
    tasks: list[object] = []
    save = PartFiles.save

    def save_and_strike(self, part) -> None:
        save(self, part)
        tasks.append(part.task)
        if len(tasks) == number:
            what()

    monkeypatch.setattr(PartFiles, "save", save_and_strike)
    return tasks


@pytest.mark.slow
def test_files_that_were_sent_and_are_on_no_worker_any_more_are_sent_anew(
    patient: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that starts after all others were killed would wait for them forever."""
    monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    questions, scores = ranking_case(8)
    ship, sent = shipment.ship_files, []

    def ship_and_lose(client: Client, inputs: object) -> object:
        shipped = ship(client, inputs)
        sent.append(shipped)
        if len(sent) == 1:
            for pid in pids(client):
                os.kill(pid, signal.SIGKILL)
            client.wait_for_workers(1, timeout=60)
        return shipped

    monkeypatch.setattr(shipment, "ship_files", ship_and_lose)
    got = kgtrec.cluster.rank(scores, questions, patient, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)
    assert len(sent) > 1


@pytest.mark.slow
def test_a_worker_process_that_starts_slowly_comes_back(tmp_path, monkeypatch) -> None:
    """Dask would end it for good earlier: after 15 s, or here after one."""
    began = Nanny.instantiate

    async def late(self: Nanny) -> object:
        await asyncio.sleep(3)
        return await began(self)

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}),
        local_client(tmp_path, 1) as client,
    ):
        monkeypatch.setattr(Nanny, "instantiate", late)
        (pid,) = pids(client)
        os.kill(pid, signal.SIGKILL)
        time.sleep(2)
        client.wait_for_workers(1, timeout=60)
        assert pids(client) != [pid]


@pytest.mark.slow
def test_worker_processes_that_never_come_back_are_one_error(tmp_path, monkeypatch) -> None:
    """kgtrec's own workers, whose nannies do not restart them, as on a loaded machine."""
    questions, scores = ranking_case(3)
    n_tasks = plan_as(monkeypatch, in_twos(len(questions)))
    clients, work = list[Client](), tmp_path / "work"
    submit = shipment.Workers.submit

    def noted(self: Any, task: Any) -> Any:
        clients.append(self.client)
        return submit(self, task)

    monkeypatch.setattr(shipment.Workers, "submit", noted)

    async def asleep(*_: object) -> None:
        return None

    def kill_all() -> None:
        monkeypatch.setattr(Nanny, "_on_worker_exit", asleep)
        for pid in pids(clients[0]):
            os.kill(pid, signal.SIGKILL)

    with monkeypatch.context() as patched:
        tasks = at_part(patched, 2, kill_all)
        patched.setattr(dask_rank.Workers, "window", 1)  # otherwise all are done before the second
        started = time.monotonic()
        said = r"has had no worker for 2 s.*finished parts are kept"
        with pytest.raises(SchedulerLost, match=said):
            kgtrec.cluster.rank(scores, questions, folder=work, run_depth=DEPTH, patience=2)
        assert time.monotonic() - started < LATE
        patched.undo()
    monkeypatch.undo()
    plan_as(monkeypatch, in_twos(len(questions)))
    again = at_part(monkeypatch, -1, lambda: None)
    got = kgtrec.cluster.rank(scores, questions, folder=work, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)
    assert len(tasks) >= 2
    assert len(again) == n_tasks - len(tasks)  # kept parts are not computed again


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    processes.start()
    yield processes
    processes.stop()


def endless(scores: np.ndarray, flag: Path) -> da.Array:
    """Scores that a worker begins to compute (a file shows it), and never finishes."""

    def begin(block: np.ndarray) -> np.ndarray:
        flag.touch()
        time.sleep(600)
        return block

    return da.from_array(scores, chunks=(3, N)).map_blocks(begin, meta=META)


def strike_when(flag: Path, what: Callable[[], None]) -> threading.Thread:
    """Does it as soon as a task is at work."""

    def wait_and_strike() -> None:
        while not flag.exists():
            time.sleep(0.02)
        what()

    thread = threading.Thread(target=wait_and_strike, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
def test_the_last_worker_killed_is_an_error_unless_one_comes_before_the_deadline(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, scores = ranking_case(4)
    flag, work = tmp_path / "begun", tmp_path / "work"
    killer = strike_when(flag, processes.kill_workers)

    def replace() -> None:
        processes.kill_workers()
        threading.Timer(3, processes.add_worker).start()

    with Client(processes.address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        with pytest.raises(ClusterError, match=r"127\.0\.0\.1:\d+ has had no worker for 2 s"):
            kgtrec.cluster.rank(endless(scores, flag), questions, client, patience=2)
        killer.join()
        processes.add_worker()
        plan_as(monkeypatch, in_twos(len(questions)))
        monkeypatch.setattr(dask_rank.Workers, "window", 1)
        at_part(monkeypatch, 2, replace)
        got = kgtrec.cluster.rank(scores, questions, client, folder=work, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)


@pytest.mark.slow
def test_a_scheduler_killed_in_mid_task_is_an_error(processes: Processes, tmp_path: Path) -> None:
    """The client waits for it for its own timeout, which is shorter than the allowed time."""
    questions, scores = ranking_case(6)
    flag, struck = tmp_path / "begun", []

    def strike() -> None:
        processes.kill_scheduler()
        struck.append(time.monotonic())

    killer = strike_when(flag, strike)
    said = r"scheduler at tcp:.* was lost and did not return within \d+ s.*kept"
    with (
        Client(processes.address, timeout=4, set_as_default=False) as client,
        pytest.raises(SchedulerLost, match=said),
    ):
        kgtrec.cluster.rank(endless(scores, flag), questions, client, patience=60)
    killer.join()
    assert time.monotonic() - struck[0] < LATE


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("answers", [False, True])
def test_a_lost_scheduler_is_not_taken_for_lost_workers(answers) -> None:
    """The scheduler has ended; under load, the client has not noticed it yet."""
    client: Any = SimpleNamespace(
        status="running",
        scheduler=SimpleNamespace(address="tcp://192.0.2.7:8786", ncores=None),
        nthreads=lambda: {"tcp://192.0.2.8:9000": 1},
        wait_for_workers=failing(TimeoutError()),
        sync=(lambda *_, **__: {}) if answers else failing(OSError("connection refused")),
    )
    said = "connection to the scheduler at tcp://192.0.2.7:8786 was lost"
    if answers:
        said = "scheduler at tcp://192.0.2.7:8786 has had no worker for 3 s"
    with pytest.raises(SchedulerLost, match=said):
        tasks._wait_for_scheduler(client, 0, 3, tasks._Lost())
    with pytest.raises(SchedulerLost, match=said):
        workers.workers_share_files(client, [], 3)


@pytest.mark.slow
def test_a_worker_that_sees_no_work_folder_is_sent_the_files(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is another file system, in a mount namespace of its own."""
    work = tmp_path / "work"
    work.mkdir()
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(work)]
    try:
        done = subprocess.run([*hidden, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no util-linux here: a folder cannot be hidden")
    if done.returncode:
        pytest.skip(f"folders cannot be hidden here: {done.stderr.strip()}")
    processes.add_worker(*hidden)
    seen: list[bool] = []
    look = shipment.workers_share_files
    monkeypatch.setattr(
        shipment, "workers_share_files", lambda *how: seen.append(look(*how)) or seen[-1]
    )
    questions, scores = ranking_case(9)
    plan_as(monkeypatch, in_twos(len(questions)))
    rng = np.random.default_rng(5)
    vectors = (rng.integers(-2, 3, (n, 3)).astype("f4") for n in scores.shape)
    with Client(processes.address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        for source in (kgtrec.Factors(*vectors), scores):
            got = kgtrec.cluster.rank(source, questions, client, folder=work, run_depth=DEPTH)
            assert_same_bytes(got, kgtrec.rank(source, questions, DEPTH), tmp_path)
    assert seen == [False, False]
