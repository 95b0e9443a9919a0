"""Dask: real worker processes, killed and starved; results are always those of the local run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from object_store import small_disk
from question_cases import N, assert_same_bytes, random_questions, ranking_case
from refusals import assert_refused

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import dask
import dask.array as da
from dask_workers import (
    Processes,
    count_opened,
    failing,
    failing_once,
    fatal,
    in_twos,
    pieces,
    plan_as,
    sent_files,
    worker_processes,
)
from distributed import Client, SpecCluster
from distributed.protocol.pickle import dumps

import kgtrec.cluster
from kgtrec.cluster.dask import rank as dask_rank
from kgtrec.cluster.dask import shipment, workers
from kgtrec.cluster.dask.workers import ClusterError, local_client
from kgtrec.cluster.plan import PartFiles, format_bytes
from kgtrec.ranking.partial import Task

DEPTH = 5
META = np.empty((0, 0), "f4")  # otherwise Dask calls the function here to see its result


@pytest.mark.slow
def test_a_script_that_workers_import_needs_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, kgtrec, kgtrec.cluster\n"
        "questions = kgtrec.Graph.from_arrays(test=np.array([[0, 0, 1]])).questions()\n"
        "kgtrec.cluster.rank(np.zeros((2, 2), np.float32), questions)\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    said = "kgtrec.errors.UsageError: worker processes import the script"
    assert any(line.startswith(said) for line in done.stderr.splitlines())
    last = done.stderr.splitlines()[-1]
    assert "the worker processes did not start" in last
    assert last.endswith("must have its calls under if __name__ == '__main__':")


def test_processes_of_ones_own(tmp_path: Path) -> None:
    """In a work folder whose name is not UTF-8; workers and scheduler are rarely checked."""
    questions, scores = ranking_case(3)
    path, work = tmp_path / "s\udcff.npy", tmp_path / "work\udcff"
    np.save(path, scores)
    work.mkdir()
    with local_client(work, 1) as client:
        got = kgtrec.cluster.rank(path, questions, client, folder=work, run_depth=DEPTH)
        for ask in (client.run, client.run_on_scheduler):
            profile = ask(dask.config.get, "distributed.worker.profile.enabled")
            tick = ask(dask.config.get, "distributed.admin.tick.interval")
            assert "False" in str(profile), profile
            assert "500ms" in str(tick), tick
    assert_same_bytes(got, kgtrec.rank(scores, questions, run_depth=DEPTH), tmp_path)


@pytest.mark.slow
def test_a_cluster_that_adapts_itself_starts_from_no_worker(tmp_path: Path) -> None:
    """It has no worker before the first task, and none after the last."""
    questions, scores = ranking_case(22)
    with (
        worker_processes(tmp_path, n_workers=0) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="50ms")
        assert not client.nthreads()
        got = kgtrec.cluster.rank(scores, questions, client)
    assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)


@pytest.mark.slow
def test_workers_that_end_late_do_not_hide_what_happened(tmp_path, monkeypatch) -> None:
    close, closed = SpecCluster.close, []

    def late(self, timeout: float) -> None:
        close(self, timeout)
        closed.append(self.status.name)
        raise TimeoutError

    monkeypatch.setattr(SpecCluster, "close", late)
    with pytest.raises(KeyboardInterrupt), local_client(tmp_path, 1):
        raise KeyboardInterrupt
    assert closed == ["closed"]


NEVER_ENDS = """
import asyncio, os, time
from pathlib import Path
from distributed import Nanny
from kgtrec.cluster.dask import workers

async def never(*_, **__):
    await asyncio.Event().wait()

if __name__ == "__main__":
    workers._CLOSE_SECONDS = 0.5
    with workers.local_client(Path(os.getcwd()), 1) as client:
        print(client.submit(sum, [1, 2]).result(), flush=True)
        Nanny.kill = never
    print("ended", flush=True)
    os._exit(0)  # what Dask does at exit is its own
"""


@pytest.mark.slow
def test_a_worker_that_does_not_end_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(NEVER_ENDS)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("3\nended\n", 0), done.stderr


def test_nothing_large_is_pickled(client, tmp_path, monkeypatch) -> None:
    sizes = []
    submit = client.submit

    def weigh(function, *arguments, **options):
        sizes.append(len(dumps((function, arguments))))
        return submit(function, *arguments, **options)

    monkeypatch.setattr(client, "submit", weigh)
    rng = np.random.default_rng(10)
    for n in (1_000, 50_000):
        questions = random_questions(rng, n)
        vectors = (rng.normal(size=(size, 16)).astype("f4") for size in (len(questions), n))
        factors = kgtrec.Factors(*vectors)
        before = len(sizes)
        kgtrec.cluster.rank(factors, questions, client, folder=tmp_path)
        assert len(sizes) > before
    assert max(sizes) < 2_000  # the smaller model alone has 64 kB
    assert max(sizes) - min(sizes) < 100


def test_a_host_is_sent_once_what_tasks_read(client, tmp_path, monkeypatch) -> None:
    """Two worker processes share the files; no splits, labels or answers, which may be large."""
    monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    rng = np.random.default_rng(31)
    questions = random_questions(rng)
    vectors = (rng.normal(size=(n, 3)).astype("f4") for n in (len(questions), N))
    factors = kgtrec.Factors(*vectors)
    plan_as(monkeypatch, pieces(rng, len(questions)), pieces(rng, N, 5))
    plans: list[str] = []
    opened = client.run(count_opened, "questions-")
    monkeypatch.setattr(dask_rank, "make_plan_printer", lambda _: plans.append)
    for number in range(2):
        folder = tmp_path / str(number)
        got = kgtrec.cluster.rank(factors, questions, client, run_depth=DEPTH, folder=folder)
        assert_same_bytes(got, kgtrec.rank(factors, questions, DEPTH), tmp_path)
    assert client.run(count_opened, "questions-") == opened  # nobody looked into the work folder
    assert client.list_datasets() == ()  # and scattered data is released
    store = {f"plan_{name}.npy" for name in ("question", "slot", "target_offsets", "targets")}
    store |= {f"{name}_{part}.npy" for name in ("known", "removed") for part in ("ids", "offsets")}
    one, other = client.run(sent_files).values()
    others = {"position.npy", "meta.json", "queries", "entities"}
    assert {name for name, *_ in one} == store | others
    assert one == other  # the same files, with no file from another shipment
    assert {links for *_, links in one} == {2}
    sent = sum(size for _, size, *_ in one)
    assert len(plans) == 2
    assert all(f"; {format_bytes(sent)} are sent, once per host" in plan for plan in plans)


@pytest.mark.parametrize("ranges", [((0, N),), ((0, 11), (11, N))])
def test_a_matrix_is_sent_by_the_rows_that_tasks_need(
    ranges: tuple[tuple[int, int], ...],
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No worker gets the whole array, and few rows are in transit at a time."""
    monkeypatch.setattr(shipment, "workers_share_files", lambda *_: False)
    questions, scores = ranking_case(21)
    blocks = in_twos(len(questions))
    plan_as(monkeypatch, blocks, ranges)
    shapes, pieces, alive = [], [], []
    scatter, submit = client.scatter, shipment.Workers.submit

    def weigh(data, **options):
        if isinstance(data, np.ndarray):
            shapes.append(data.shape)
        else:
            pieces.append(data)
        return scatter(data, **options)

    def watch(self, work):
        alive.append(len(self._scattered))
        return submit(self, work)

    monkeypatch.setattr(client, "scatter", weigh)
    monkeypatch.setattr(shipment.Workers, "submit", watch)
    got = kgtrec.cluster.rank(scores, questions, client, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)
    assert sorted(shapes) == sorted((stop - start, N) for start, stop in blocks)
    assert scores.tobytes() not in pieces
    assert len(blocks) > 4 > max(alive)  # two workers of one thread
    deadline = time.monotonic() + 60
    while any("ndarray" in key for keys in client.has_what().values() for key in keys):
        assert time.monotonic() < deadline, "rows stay on the workers"
        time.sleep(0.05)


def test_files_that_look_different_to_a_worker_are_not_shared(client, tmp_path) -> None:
    path = tmp_path / "file"
    path.write_text("here")
    assert workers.workers_share_files(client, [str(path)])

    def one_worker(said: object) -> Any:
        return SimpleNamespace(
            nthreads=lambda: {"tcp://x": 1},
            wait_for_workers=lambda *_, **__: None,
            run=lambda *_, **__: {"tcp://x": said},
        )

    assert not workers.workers_share_files(one_worker(workers.inspect_files([])), [str(path)])
    for said, words in (
        (("0.0.1", []), "x has 0.0.1, but this process has kgtrec"),
        (ModuleNotFoundError("kgtrec"), "has no kgtrec"),
    ):
        assert_refused(workers.workers_share_files, UsageError, (words,), one_worker(said), [])


def test_a_task_that_fails_once_changes_nothing(client: Client, tmp_path: Path) -> None:
    questions, scores = ranking_case(12)
    flag = tmp_path / "flag"
    array = da.from_array(scores, chunks=(6, 9)).map_blocks(failing_once, flag=str(flag), meta=META)
    got = kgtrec.cluster.rank(array, questions, client, run_depth=DEPTH)
    assert flag.exists()
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)


def test_what_cannot_be_done_is_one_clear_error(client, monkeypatch) -> None:
    questions, scores = ranking_case(14)
    array = da.from_array(scores, chunks=(100, 9))

    def rank(source, **options):
        return kgtrec.cluster.rank(source, questions, client, **options)

    with pytest.raises(ClusterError, match="ZeroDivisionError: a bug of the model"):
        rank(array.map_blocks(failing, meta=META), retries=1)
    scores[2, 3] = np.nan
    array = da.from_array(scores, chunks=(100, 9))
    with pytest.raises(InputError, match=r"NaN for question .*entity '3'") as here:
        kgtrec.rank(scores, questions)
    look = shipment.workers_share_files
    for looking in (look, lambda *_: False):  # without a shared folder, no worker has names
        monkeypatch.setattr(shipment, "workers_share_files", looking)
        for source in (scores, array, da.from_array(scores)):
            with pytest.raises(InputError) as refusal:
                rank(source)
            assert str(refusal.value) == str(here.value)


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_one_clear_error(client: Client) -> None:
    questions, scores = ranking_case(14)
    array = da.from_array(scores).map_blocks(fatal, meta=META)
    with pytest.raises(ClusterError, match="this task ended its workers repeatedly"):
        kgtrec.cluster.rank(array, questions, client)


def test_scores_that_change_while_they_are_ranked(client, tmp_path, monkeypatch) -> None:
    questions, scores = ranking_case(15)
    path = tmp_path / "scores.npy"
    np.save(path, scores)
    save = PartFiles.save

    def save_and_change(self, part) -> None:
        save(self, part)
        with open(path, "r+b") as file:
            file.seek(200)
            file.write(b"\x01")

    monkeypatch.setattr(PartFiles, "save", save_and_change)
    with pytest.raises(InputError, match=r"scores\.npy changed while it was ranked"):
        kgtrec.cluster.rank(str(path), questions, client, folder=tmp_path / "work")


def test_finished_parts_are_kept_and_damaged_ones_ranked_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, scores = ranking_case(16)
    plan_as(monkeypatch, ((0, 4), (4, 9), (9, len(questions))), ((0, 11), (11, N)))
    done = []
    submit = dask_rank.Workers.submit
    monkeypatch.setattr(
        dask_rank.Workers, "submit", lambda self, work: done.append(work) or submit(self, work)
    )

    def rank(**options) -> int:
        done.clear()
        got = kgtrec.cluster.rank(scores, questions, client, folder=tmp_path / "work", **options)
        assert_same_bytes(got, kgtrec.rank(scores, questions, options["run_depth"]), tmp_path)
        return len(done)

    assert rank(run_depth=DEPTH) == 6
    assert rank(run_depth=DEPTH) == 0
    assert rank(run_depth=DEPTH + 1) == 6  # other parts
    first, second, third, *_ = sorted((tmp_path / "work").glob("parts-*/*.part"))
    first.write_bytes(first.read_bytes()[:-7])
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    third.unlink()
    assert rank(run_depth=DEPTH) + rank(run_depth=DEPTH + 1) == 3
    scores[0, 0] += 1
    assert rank(run_depth=DEPTH) == 6  # other scores
    assert rank(run_depth=DEPTH, memory="3GB") == 0  # the plan is the same


@pytest.mark.slow
def test_a_scheduler_that_comes_back_is_used(tmp_path, monkeypatch) -> None:
    questions, scores = ranking_case(18)
    scheduler = Processes(tmp_path)
    saved: list[Task] = []
    save = PartFiles.save

    def save_and_restart(self, part) -> None:
        save(self, part)
        saved.append(part.task)
        if len(saved) == 1:
            scheduler.stop()
            scheduler.start()

    monkeypatch.setattr(PartFiles, "save", save_and_restart)
    n_tasks = plan_as(monkeypatch, in_twos(len(questions)))
    scheduler.start()
    try:
        with Client(scheduler.address, timeout=60, set_as_default=False) as client:
            got = kgtrec.cluster.rank(scores, questions, client, folder=tmp_path / "a")
    finally:
        scheduler.stop()
    assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)
    assert len(set(saved)) == n_tasks


def test_a_full_disk_is_said_and_room_lets_it_go_on(client: Client, tmp_path: Path) -> None:
    questions, scores = ranking_case(19)
    with small_disk(tmp_path / "small", "64k") as disk:
        with pytest.raises(FileError, match="the disk is full"):
            kgtrec.cluster.rank(scores, questions, client, folder=disk)
        assert not list(disk.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        got = kgtrec.cluster.rank(scores, questions, client, folder=disk)
        assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)


def test_dask_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    questions, scores = ranking_case(20)
    with pytest.raises(UsageError, match=r"pip install 'kgtrec\[cluster\]'"):
        kgtrec.cluster.rank(scores, questions)
