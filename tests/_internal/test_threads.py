"""Rows shared by threads: every part runs once, the first error is raised, the rest ends."""

from __future__ import annotations

import threading

import pytest

from kgtrec._internal.runtime import share_rows


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_every_part_once_on_so_many_threads_at_most(threads: int, count: int) -> None:
    done, names = [], set()

    def part(start: int, stop: int) -> None:
        done.append((start, stop))
        names.add(threading.get_ident())

    parts = [(i, i + 3) for i in range(0, 3 * count, 3)]
    share_rows(part, parts, threads)
    assert sorted(done) == parts
    assert len(names) <= min(threads, max(count, 1))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_error_is_raised_and_ends_the_rest(threads: int) -> None:
    begun = []

    def part(start: int, stop: int) -> None:
        begun.append(start)
        if start == 5:
            raise ValueError("part 5")

    with pytest.raises(ValueError, match="part 5"):
        share_rows(part, [(i, i + 1) for i in range(10_000)], threads)
    assert 5 in begun
    assert len(begun) < 10_000


def test_all_threads_have_ended_when_it_returns() -> None:
    """For any exception, because the parts write to arrays that the caller owns."""
    before = threading.active_count()
    barrier = threading.Barrier(2)

    def part(start: int, stop: int) -> None:
        barrier.wait(10)
        if start == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        share_rows(part, [(0, 1), (1, 2)], 2)
    assert threading.active_count() == before
