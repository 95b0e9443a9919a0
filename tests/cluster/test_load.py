"""The number of running jobs of a batch: by rule, and by the client's memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgtrec.cluster.batch.batch import MOST, Load, keeps_busy


@given(st.lists(st.one_of(st.none(), st.integers(0, 5000)), max_size=40), st.integers(1, 1024))
def test_jobs_begin_while_workers_could_run_out_of_tasks(
    left: list[int | None], threads: int
) -> None:
    known = [tasks for tasks in left if tasks is not None]
    if len(left) < 2:
        assert keeps_busy(left, threads)
    elif keeps_busy(left, threads):
        assert sum(known) < 2 * threads
        assert len(left) < MOST
        assert len(left) - len(known) < 2
    elif len(left) - len(known) < 2 and len(left) < MOST:
        assert sum(known) >= 2 * threads


def filled(load: Load, tasks: int, threads: int, size: int) -> int:
    """Jobs that begin, each as soon as allowed, until no other may."""
    number = 0
    while load.has_room():
        load.begin(str(number))
        load.sized(str(number), size)
        load.watch(str(number), tasks, threads)
        number += 1
    return number


def test_small_jobs_fill_a_large_cluster() -> None:
    assert filled(Load(10**9), tasks=100, threads=2, size=10) == 2
    assert filled(Load(10**9), tasks=100, threads=64, size=10) == 2
    assert filled(Load(10**9), tasks=16, threads=64, size=10) == 8
    assert filled(Load(10**9), tasks=100, threads=1024, size=10) == 21
    assert filled(Load(10**9), tasks=1, threads=1024, size=10) == MOST


def test_the_memory_of_the_client_bounds_them() -> None:
    assert filled(Load(100), tasks=1, threads=1024, size=30) == 3
    assert filled(Load(100), tasks=1, threads=1024, size=1000) == 1
    load = Load(100)
    filled(load, tasks=1, threads=1024, size=30)
    assert not load.has_room()
    load.end("1")
    assert load.has_room()


def test_whoever_waits_is_told_of_each_task() -> None:
    told: list[int] = []
    load = Load(10**9, changed=lambda: told.append(1), waiting=7)
    load.begin("a")
    assert load.jobs == 8
    for left in (2, 1, 0):
        load.watch("a", left, 4)
    load.end("a")
    assert len(told) == 3
    assert load.has_room()
    load.begin("b")
    assert not load.has_room()  # the size of jobs is not known yet
    load.sized("b", 5)
    assert len(told) == 4
    assert load.has_room()
    load.end("b")
    assert load.jobs == 7
