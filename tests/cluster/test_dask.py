"""Dask: real worker processes, killed and starved; results are always those of the local run."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from object_store import small_disk
from question_cases import N, assert_same_bytes, random_questions, some_scores

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
    sent_files,
    worker_processes,
)
from distributed import Client, LocalCluster
from distributed.protocol.pickle import dumps

import kgtrec.cluster
from kgtrec.cluster.dask import rank as dask_rank
from kgtrec.cluster.dask import shipment, workers
from kgtrec.cluster.dask.workers import ClusterError, local_client
from kgtrec.cluster.plan import PartFiles, Plan, format_bytes
from kgtrec.ranking.partial import Task
from kgtrec.ranking.settings import Settings

DEPTH = 5
META = np.empty((0, 0), "f4")  # otherwise Dask calls the function here to see its result


def cut_at_random(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, most: int = 4) -> None:
    """Plans with random blocks and ranges, which no memory limit gives for a small graph."""

    def pieces(stop: int, most: int) -> tuple[tuple[int, int], ...]:
        cuts = rng.choice(np.arange(1, stop), min(most, stop - 1), replace=False)
        return tuple(itertools.pairwise([0, *sorted(cuts.tolist()), stop]))

    def plan(inputs, *_: object, sent: int = 0, **__: object) -> Plan:
        store = inputs.store()
        ranges = ((0, N),) if store.restricted else pieces(N, int(rng.integers(0, most)))
        return Plan(pieces(store.n_rows, most), ranges, 0, 0, sent=sent)

    monkeypatch.setattr(dask_rank, "make_plan", plan)


def case(seed: int) -> tuple[kgtrec.Questions, np.ndarray]:
    """Questions and their scores."""
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    return questions, some_scores(rng, (len(questions), N))


# -- The same bytes ----------------------------------------------------------------------------


def test_what_was_written_to_a_copy_on_write_map_is_ranked(client: Client, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    questions = random_questions(rng)
    np.save(tmp_path / "s.npy", some_scores(rng, (len(questions), N)))
    scores = np.load(tmp_path / "s.npy", mmap_mode="c")
    scores *= -1
    got = kgtrec.cluster.rank(scores, questions, client, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(np.array(scores), questions, run_depth=DEPTH), tmp_path)


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
    rng = np.random.default_rng(3)
    questions = random_questions(rng)
    np.save(tmp_path / "s\udcff.npy", some_scores(rng, (len(questions), N)))
    path, work = tmp_path / "s\udcff.npy", tmp_path / "work\udcff"
    work.mkdir()
    with local_client(work, 1) as client:
        got = kgtrec.cluster.rank(path, questions, client, folder=work, run_depth=DEPTH)
        for ask in (client.run, client.run_on_scheduler):
            profile = ask(dask.config.get, "distributed.worker.profile.enabled")
            tick = ask(dask.config.get, "distributed.admin.tick.interval")
            assert "False" in str(profile), profile
            assert "500ms" in str(tick), tick
    assert_same_bytes(got, kgtrec.rank(np.load(path), questions, run_depth=DEPTH), tmp_path)


@pytest.mark.slow
def test_a_cluster_that_adapts_itself_starts_from_no_worker(tmp_path: Path) -> None:
    """It has no worker before the first task, and none after the last."""
    questions, scores = case(22)
    with (
        worker_processes(tmp_path, n_workers=0) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="50ms")
        assert not client.nthreads()
        got = kgtrec.cluster.rank(scores, questions, client)
    assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)


@pytest.mark.slow
def test_workers_that_end_late_do_not_hide_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, closed = LocalCluster.close, []

    def late(self, timeout: float) -> None:
        close(self, timeout)
        closed.append(self.status.name)
        raise TimeoutError

    monkeypatch.setattr(LocalCluster, "close", late)
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
    workers._CLOSE = 0.5
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
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("3\nended\n", 0), done.stderr


# -- What travels ------------------------------------------------------------------------------


def test_nothing_large_is_pickled(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    submit = client.submit

    def weigh(function, *arguments, **options):
        sizes.append(len(dumps((function, arguments))))
        return submit(function, *arguments, **options)

    monkeypatch.setattr(client, "submit", weigh)
    rng = np.random.default_rng(10)
    for n in (1_000, 50_000):
        questions = random_questions(rng, n)
        factors = kgtrec.Factors(
            rng.normal(size=(len(questions), 16)).astype("f4"),
            rng.normal(size=(n, 16)).astype("f4"),
        )
        before = len(sizes)
        kgtrec.cluster.rank(factors, questions, client, folder=tmp_path)
        assert len(sizes) > before
    assert max(sizes) < 2_000  # the smaller model alone has 64 kB
    assert max(sizes) - min(sizes) < 100


@pytest.mark.parametrize("kind", ["matrix", "dask"])
def test_workers_that_share_no_folder_are_sent_the_files(
    kind: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipment, "look_at_workers", lambda *_: False)
    rng = np.random.default_rng(11)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    source = scores if kind == "matrix" else da.from_array(scores, chunks=(5, 9))
    cut_at_random(monkeypatch, rng)
    opened = client.run(count_opened, "questions-")
    got = kgtrec.cluster.rank(source, questions, client, run_depth=DEPTH)
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)
    assert client.run(count_opened, "questions-") == opened  # nobody looked into the work folder
    assert client.list_datasets() == ()  # and scattered data is released


def test_a_host_is_sent_once_what_tasks_read(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two worker processes share the files; no splits, labels or answers, which may be large."""
    monkeypatch.setattr(shipment, "look_at_workers", lambda *_: False)
    rng = np.random.default_rng(31)
    questions = random_questions(rng)
    factors = kgtrec.Factors(
        rng.normal(size=(len(questions), 3)).astype("f4"), rng.normal(size=(N, 3)).astype("f4")
    )
    cut_at_random(monkeypatch, rng, most=9)
    plans: list[str] = []
    monkeypatch.setattr(dask_rank, "plan_printer", lambda _: plans.append)
    for number in range(2):
        folder = tmp_path / str(number)
        got = kgtrec.cluster.rank(factors, questions, client, run_depth=DEPTH, folder=folder)
        assert_same_bytes(got, kgtrec.rank(factors, questions, DEPTH), tmp_path)
    store = {f"plan_{name}.npy" for name in ("question", "slot", "target_offsets", "targets")}
    store |= {f"{name}_{part}.npy" for name in ("known", "removed") for part in ("ids", "offsets")}
    one, other = client.run(sent_files).values()
    assert {name for name, *_ in one} == {
        *store,
        "position.npy",
        "meta.json",
        "queries",
        "entities",
    }
    assert one == other  # the same files, with no file from another shipment
    assert {links for *_, links in one} == {2}
    sent = sum(size for _, size, *_ in one)
    assert len(plans) == 2
    assert all(f"; {format_bytes(sent)} are sent, once per host" in plan for plan in plans)


@pytest.mark.parametrize("kind", ["matrix", "dask"])
def test_nan_is_named_where_names_were_not_sent(
    kind: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipment, "look_at_workers", lambda *_: False)
    questions, scores = case(32)
    scores[3, 4] = np.nan
    with pytest.raises(InputError) as due:
        kgtrec.rank(scores, questions)
    source = scores if kind == "matrix" else da.from_array(scores, chunks=(5, N))
    with pytest.raises(InputError) as raised:
        kgtrec.cluster.rank(source, questions, client)
    assert str(raised.value) == str(due.value)


@pytest.mark.parametrize("ranges", [((0, N),), ((0, 11), (11, N))])
def test_a_matrix_is_sent_by_the_rows_that_tasks_need(
    ranges: tuple[tuple[int, int], ...],
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No worker gets the whole array, and few rows are in transit at a time."""
    monkeypatch.setattr(shipment, "look_at_workers", lambda *_: False)
    questions, scores = case(21)
    starts = [*range(0, len(questions), 2), len(questions)]
    blocks = tuple(itertools.pairwise(starts))
    monkeypatch.setattr(dask_rank, "make_plan", lambda *_, **__: Plan(blocks, ranges, 0, 0))
    shapes, pieces, alive = [], [], []
    scatter, submit = client.scatter, shipment.Workers.submit

    def weigh(data, **options):
        if isinstance(data, np.ndarray):
            shapes.append(data.shape)
        else:
            pieces.append(data)
        return scatter(data, **options)

    def watch(self, work):
        alive.append(len(self._sent))
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


def test_files_that_look_different_to_a_worker_are_not_shared(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("here")
    assert workers.look_at_workers(client, [str(path)])
    assert not workers.look_at_workers(FakeClient(workers.look([])), [str(path)])
    with pytest.raises(
        UsageError, match=r"worker tcp://x has 0\.0\.1, but this process has kgtrec"
    ):
        workers.look_at_workers(FakeClient(("0.0.1", [])), [])
    with pytest.raises(UsageError, match="has no kgtrec"):
        workers.look_at_workers(FakeClient(ModuleNotFoundError("kgtrec")), [])


class FakeClient:
    """One worker that gives the prescribed answers."""

    def __init__(self, said: object) -> None:
        self.said = said

    def nthreads(self) -> dict[str, int]:
        return {"tcp://x": 1}

    def wait_for_workers(self, n: int, timeout: float) -> None:
        pass

    def run(self, *_: object, **__: object) -> dict[str, object]:
        return {"tcp://x": self.said}


# -- Losses ------------------------------------------------------------------------------------


def test_a_task_that_fails_once_changes_nothing(client: Client, tmp_path: Path) -> None:
    questions, scores = case(12)
    flag = tmp_path / "flag"
    array = da.from_array(scores, chunks=(6, 9)).map_blocks(failing_once, flag=str(flag), meta=META)
    got = kgtrec.cluster.rank(array, questions, client, run_depth=DEPTH)
    assert flag.exists()
    assert_same_bytes(got, kgtrec.rank(scores, questions, DEPTH), tmp_path)


def test_what_cannot_be_done_is_one_clear_error(client: Client) -> None:
    questions, scores = case(14)
    array = da.from_array(scores, chunks=(100, 9))

    def rank(source, **options):
        return kgtrec.cluster.rank(source, questions, client, **options)

    with pytest.raises(ClusterError, match="ZeroDivisionError: a bug of the model"):
        rank(array.map_blocks(failing, meta=META), retries=1)
    scores[2, 3] = np.nan
    with pytest.raises(InputError, match=r"NaN for question .*entity '3'") as here:
        kgtrec.rank(scores, questions)
    for source in (scores, da.from_array(scores, chunks=(100, 9)), da.from_array(scores)):
        with pytest.raises(InputError) as refusal:
            rank(source)
        assert str(refusal.value) == str(here.value)
    with pytest.raises(InputError, match="expected"):
        rank(array[1:])
    with pytest.raises(InputError, match="unknown size"):
        rank(array[array[:, 0] > 2])
    with pytest.raises(InputError, match="dtype int64"):
        rank(array.astype(np.int64))
    with pytest.raises(UsageError, match="have no file"):
        rank(lambda batch: scores)
    with pytest.raises(UsageError, match="memory limit is too low"):
        rank(np.nan_to_num(scores), memory="10MB")
    with pytest.raises(UsageError, match=r"pass a distributed\.Client"):
        kgtrec.cluster.rank(scores, questions, "tcp://here:1")


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_one_clear_error(client: Client) -> None:
    rng = np.random.default_rng(14)
    questions = random_questions(rng)
    array = da.from_array(some_scores(rng, (len(questions), N))).map_blocks(fatal, meta=META)
    with pytest.raises(ClusterError, match="this task ended its workers repeatedly"):
        kgtrec.cluster.rank(array, questions, client)


def test_scores_that_change_while_they_are_ranked(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(15)
    questions = random_questions(rng)
    path = tmp_path / "scores.npy"
    np.save(path, some_scores(rng, (len(questions), N)))
    save = PartFiles.save

    def save_and_change(self, part) -> None:
        save(self, part)
        with open(path, "r+b") as file:
            file.seek(200)
            file.write(b"\x01")

    monkeypatch.setattr(PartFiles, "save", save_and_change)
    with pytest.raises(InputError, match=r"scores\.npy changed while it was ranked"):
        kgtrec.cluster.rank(str(path), questions, client, folder=tmp_path / "work")


# -- Going on ----------------------------------------------------------------------------------


def test_finished_parts_are_kept_and_damaged_ones_ranked_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, scores = case(16)
    plans = Plan(((0, 4), (4, 9), (9, len(questions))), ((0, 11), (11, N)), 0, 0)
    monkeypatch.setattr(dask_rank, "make_plan", lambda *_, **__: plans)
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


def test_parts_survive_their_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    files = PartFiles(tmp_path)
    task = Task(3, 5, 0, 9)
    part = dask_rank.PartialRanks(
        task, rng.integers(0, 9, (6, 4)), np.array([True, False, False, True]),
        np.array([1, 2], dtype=np.int32), np.array([5, 1, 7], dtype=np.int32),
        np.array([0.5, -1, np.inf]), 3, "float64", "avx2", Settings(2, nan="worst"), "1f",
    )  # fmt: skip
    files.save(part)
    loaded = files.load(task)
    assert loaded is not None
    for name, value in vars(part).items():
        np.testing.assert_array_equal(getattr(loaded, name), value)
    assert files.load(dataclasses.replace(task, stop_row=6)) is None
    (path,) = tmp_path.glob("*.part")
    sound = path.read_bytes()
    for place in range(0, len(sound), 97):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        assert files.load(task) is None


@pytest.mark.slow
def test_a_scheduler_that_comes_back_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, scores = case(18)
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
    blocks = tuple(itertools.pairwise([*range(0, len(questions), 2), len(questions)]))
    monkeypatch.setattr(dask_rank, "make_plan", lambda *_, **__: Plan(blocks, ((0, N),), 0, 0))
    scheduler.start()
    try:
        with Client(scheduler.address, timeout=60, set_as_default=False) as client:
            got = kgtrec.cluster.rank(scores, questions, client, folder=tmp_path / "a")
    finally:
        scheduler.stop()
    assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)
    assert len(set(saved)) == len(blocks)


def test_a_full_disk_is_said_and_room_lets_it_go_on(client: Client, tmp_path: Path) -> None:
    questions, scores = case(19)
    with small_disk(tmp_path / "small", "64k") as disk:
        with pytest.raises(FileError, match="the disk is full"):
            kgtrec.cluster.rank(scores, questions, client, folder=disk)
        assert not list(disk.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        got = kgtrec.cluster.rank(scores, questions, client, folder=disk)
        assert_same_bytes(got, kgtrec.rank(scores, questions), tmp_path)


def test_dask_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    questions = random_questions(np.random.default_rng(20))
    with pytest.raises(UsageError, match=r"pip install 'kgtrec\[cluster\]'"):
        kgtrec.cluster.rank(np.zeros((len(questions), N), "f4"), questions)
