"""pyarrow's threads never read from a Python file: they could free its bytes while Python ends."""

from __future__ import annotations

import io
import math
import os
import random
import re
import threading
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from locks import InterruptedLock, is_free
from refusals import each_row

import kgtrec
from kgtrec import Graph, Ranks
from kgtrec._internal import bootstrap as room
from kgtrec._internal import threads as threads_module
from kgtrec._internal.bootstrap import Resampling, ratio_intervals, resample_means
from kgtrec._internal.csr import contains, finder, number_values, order_by
from kgtrec._internal.files import arrow_file, atomic_write, write_array
from kgtrec._internal.locks import call_locked, hold_lock
from kgtrec._internal.table import Table
from kgtrec._internal.threads import share_rows
from kgtrec.errors import FileError, UsageError
from kgtrec.measures import Measure
from kgtrec.measures.ties import RANK_TYPES

TRIPLES = np.array([[0, 0, 3], [4, 1, 0], [3, 1, 4], [6, 0, 6]])


@each_row("kind", ["ranks", "parquet", "feather"])
def test_readers_hand_over_files_of_pyarrow(tmp_path, monkeypatch, kind) -> None:
    if kind == "ranks":
        questions = Graph.from_arrays(test=TRIPLES).questions("test")
        kgtrec.evaluate(np.zeros((len(questions), 7)), questions).ranks.save(tmp_path / "ranks")
    else:
        table = pa.table(dict(zip(("head", "relation", "tail"), TRIPLES.T, strict=True)))
        write = {"parquet": pq.write_table, "feather": pyarrow.feather.write_feather}[kind]
        write(table, tmp_path / f"test.{kind}")
    sources = []

    def record(owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def recorded(*args: Any, **options: Any) -> Any:
            sources.append(args[0])
            return plain(*args, **options)

        monkeypatch.setattr(owner, name, recorded)

    for owner, name in ((pq, "ParquetFile"), (pq, "read_table"), (ipc, "open_file")):
        record(owner, name)
    if kind == "ranks":
        Ranks.load(tmp_path / "ranks")
    else:
        kgtrec.read_graph(tmp_path)
    assert [type(source) for source in sources] == [pa.OSFile]


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes on POSIX alone")
def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    try:
        Path(path).write_bytes(b"bytes")
    except OSError:
        pytest.skip("this file system has no such names")
    with arrow_file(path) as file:
        assert file.read() == b"bytes"


def test_an_error_has_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing, arrow_file(tmp_path / "none"):
        pass
    assert missing.value.strerror == "No such file or directory"
    with pytest.raises(IsADirectoryError) as folder, arrow_file(tmp_path):
        pass
    assert folder.value.strerror == "Is a directory"


# -- Bootstrap intervals: against slow resampling, against theory, and on awkward columns ----------


def one(values: list[float] | np.ndarray, how: Resampling | None = None, below=None) -> list[float]:
    values = np.array(values, np.float64)
    return ratio_intervals([values], [below], how or Resampling()).tolist()[0]


def slow(values: list[float], below: list[float], percent: float, seed: int) -> list[float]:
    """The same method with other random numbers."""
    draw = random.Random(seed)
    means = []
    for _ in range(4000):
        chosen = draw.choices(range(len(values)), k=len(values))
        means.append(sum(values[i] for i in chosen) / sum(below[i] for i in chosen))
    means.sort()
    tail = (100 - percent) / 200
    return [means[int(tail * 4000)], means[int((1 - tail) * 4000) - 1]]


@pytest.mark.parametrize("percent", [50.0, 95.0, 99.0])
def test_against_slow_resampling(percent: float) -> None:
    draw = random.Random(2)
    values = [draw.random() ** 3 for _ in range(120)]
    below = [float(draw.randint(1, 5)) for _ in values]
    how = Resampling(percent, 4000)
    width = one(values, how)[1] - one(values, how)[0]
    assert one(values, how) == pytest.approx(slow(values, [1.0] * 120, percent, 3), abs=width / 8)
    ratio = one(values, how, np.array(below))
    width = ratio[1] - ratio[0]
    assert ratio == pytest.approx(slow(values, below, percent, 4), abs=width / 8)


def test_draws_are_seeded_shared_and_independent_of_other_columns() -> None:
    values = np.random.default_rng(2).random(300)
    assert one(values) == one(values)
    assert one(values, Resampling(seed=1)) != one(values)
    assert one(values, Resampling(resamples=500)) != one(values)
    both = ratio_intervals([values * 1e6, values, 1 - values], [None] * 3, Resampling())
    assert both[1].tolist() == one(values)
    assert both[0] / 1e6 == pytest.approx(both[1], rel=1e-9)
    assert 1 - both[2][::-1] == pytest.approx(both[1], rel=1e-9)  # the same draws


def test_sums_do_not_depend_on_their_order() -> None:
    """Whole multiples: order of additions, library and number of threads do not matter."""
    values = np.random.default_rng(3).random(1000)[:, None]
    whole, scale = room._whole_multiples(values)
    assert np.abs(whole).sum() * 2 < 2**54
    assert np.array_equal(whole, np.rint(whole))
    assert np.abs(whole / scale - values).max() < 1e-12
    top, _ = room._whole_multiples(np.full((1000, 1), 1.0))
    assert top.sum() <= 2**53


def test_awkward_columns() -> None:
    assert one([0.25] * 7) == pytest.approx([0.25, 0.25], rel=1e-12)
    assert one([0.0, 0.0]) == [0.0, 0.0]
    assert one([0.7]) == pytest.approx([0.7, 0.7], rel=1e-12)
    assert all(map(math.isnan, one([1.0, math.nan])))
    assert all(map(math.isnan, one([])))
    assert ratio_intervals([], [], Resampling()).shape == (0, 2)
    assert one([-1e6, 0.0, 0.0], Resampling(99.0))[0] < -3e5
    # One query in four has answers: draws without any have no value.
    assert one([1.0, 0, 0, 0], None, np.array([2.0, 0, 0, 0])) == pytest.approx([0.5, 0.5])
    assert all(map(math.isnan, one([0.0, 0], None, np.zeros(2))))


@each_row(
    "wrong, word",
    [
        ({"percent": 0.95}, "0.95"),
        ({"percent": 100}, "100"),
        ({"percent": math.nan}, "nan"),
        ({"resamples": 99}, "99"),
        ({"resamples": 10**7}, "10000000"),
        ({"seed": -1}, "-1"),
    ],
)
def test_what_is_out_of_range_is_said(wrong: dict, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Resampling(**wrong)


def test_a_seed_gives_the_values_that_it_always_gave() -> None:
    """Values of version 0.1: published intervals can be computed again."""
    values = [np.arange(40) ** 2 / 7.0, np.arange(40) % 3 + 0.0]
    assert ratio_intervals(values, [None, values[0] + 1], Resampling(90, 500, 3)).tolist() == [
        [56.29303571428602, 90.24232142857142],
        [0.009464319525321643, 0.018307366395716954],
    ]
    cluster = np.arange(40) // 4
    sample = resample_means(np.column_stack(values), cluster, np.asarray, Resampling(90, 200, 3))
    assert sample.draws.sum(axis=0) == pytest.approx([14290.971428571434, 195.175], rel=1e-13)
    assert sample.interval().ravel() == pytest.approx(
        [48.67142857142857, 0.85, 116.80505428169454, 1.075], rel=1e-12
    )
    wider = replace(sample, resampling=Resampling(95, 200, 3))
    gap = wider.difference_interval(np.array([[0, 1]]))
    assert gap.ravel() == pytest.approx([36.75696428571428, 112.3475], rel=1e-12)


@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=40),
    st.integers(0, 9),
    st.sampled_from([2, 3, 6, 7, 12]),
)
def test_intervals_do_not_depend_on_the_unit(ranks: list[int], seed: int, factor: int) -> None:
    """Draws of the same values tie with the estimate in any unit, though sums round differently."""
    values, how = 1 / np.array(ranks), Resampling(95, 300, seed)
    first, other = (
        resample_means(unit * values[:, None], np.arange(len(ranks)), np.asarray, how)
        for unit in (1, factor)
    )
    assert other.interval() == pytest.approx(factor * first.interval(), rel=1e-11)


# -- Arrays as files: numpy's bytes, and one sentence if they cannot be written --------------------


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


@each_row(
    "array",
    [
        MATRIX,
        np.asfortranarray(MATRIX),
        MATRIX[:, ::2],
        MATRIX.T[::-1],
        MATRIX[:0],
        MATRIX[:, :0],
        np.zeros(0, np.int64),
        np.array(3.0),
        np.array([True, False]),
        MATRIX.astype(">i8"),
        np.zeros(100_000, np.float16),
    ],
)
def test_the_bytes_are_numpys(array: npt.NDArray[Any]) -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    write_array(ours, array)
    np.save(theirs, array)
    assert ours.getvalue() == theirs.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@each_row("n", [1, 1000, 100_000])
def test_a_full_disk(n: int) -> None:
    with (
        pytest.raises(FileError, match="/dev/full: the disk is full"),
        atomic_write("/dev/full") as file,
    ):
        write_array(file, np.zeros(n))


# -- Orders, numbers and look-ups of integers, against numpy's sorts and plain dictionaries --------


RANGES = {"small": (0, 5), "digits": (-70_000, 70_000), "wide": (-(2**40), 2**40)}


@each_row("low_high, n", product(RANGES.values(), (0, 1, 2, 1_000, 70_000)))
def test_order_is_that_of_a_stable_sort(low_high: tuple[int, int], n: int) -> None:
    rng = np.random.default_rng(n)
    major, minor = rng.integers(0, 3, n), rng.integers(*low_high, n)
    assert np.array_equal(order_by(major, minor), np.lexsort((minor, major)))
    assert np.array_equal(order_by(minor), np.argsort(minor, kind="stable"))


@each_row("low_high, n", product(RANGES.values(), (0, 1, 2, 1_000)))
def test_numbers_are_those_of_unique(low_high: tuple[int, int], n: int) -> None:
    values = np.random.default_rng(n).integers(*low_high, n)
    distinct, place = number_values(values)
    expected = np.unique(values, return_inverse=True)
    assert np.array_equal(distinct, expected[0])
    assert np.array_equal(place, expected[1].reshape(-1))


@each_row(
    "n_ordered, most, n_keys",
    product((0, 1, 30, 900), (40, 15_000, 1 << 16, 1 << 40), (0, 3, 900, 40_000)),
)
def test_keys_are_found_where_they_stand(n_ordered: int, most: int, n_keys: int) -> None:
    rng = np.random.default_rng(n_ordered)
    ordered = np.unique(rng.integers(0, most, n_ordered))
    # Keys of the array, others with the same last bits, and any keys.
    keys = np.concatenate([ordered, ordered + (1 << 16), rng.integers(0, 2 * most, n_keys)])
    keys = rng.permutation(np.append(keys, most))
    place = {key: number for number, key in enumerate(ordered.tolist())}
    expected = [place.get(key, -1) for key in keys.tolist()]
    assert contains(ordered, keys).tolist() == [at >= 0 for at in expected]
    for n_expected in (0, len(keys)):  # by search, and by a table if keys are dense
        assert finder(ordered, n_expected)(keys).tolist() == expected


# -- Rows shared by threads: every part runs once, the first error is raised, the rest ends --------


@each_row("threads, count", product((1, 2, 3, 50), (0, 1, 2, 30)))
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
            raise KeyboardInterrupt("part 5")

    with pytest.raises(KeyboardInterrupt, match="part 5"):
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


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_leaves_no_lock_locked(moment: str) -> None:
    lock = InterruptedLock(moment)
    with pytest.raises(KeyboardInterrupt):
        call_locked(lock, lambda: pytest.fail("it was interrupted before"))
    assert is_free(lock.lock)
    assert call_locked(lock, lambda: 7) == 7
    assert is_free(lock.lock)


def test_a_lock_is_held_during_a_call_and_free_after_an_error() -> None:
    class Sum:
        """The sum of its numbers."""

        def __init__(self) -> None:
            self._lock = threading.RLock()

        @hold_lock
        def add(self, first: int, *, second: int) -> int:
            """Add two numbers."""
            assert not is_free(self._lock)
            return first + second

    total = Sum()
    assert total.add(3, second=4) == 7
    assert Sum.add.__doc__ == "Add two numbers."
    with pytest.raises(TypeError):
        total.add("3", second=4)  # type: ignore[arg-type]
    assert is_free(total._lock)


def test_an_interrupt_just_after_locking_stops_no_thread(monkeypatch) -> None:
    """As since Python 3.14, where it may come before the block of `with` has begun."""
    at_work, blocked, interrupts = [0] * 20, [], [KeyboardInterrupt, KeyboardInterrupt]

    class Interrupted:
        def __init__(self, lock: Any) -> None:
            self.lock = lock()

        def acquire(self) -> bool:
            if not self.lock.acquire(timeout=30):
                blocked.append(threading.current_thread().name)
            if threading.current_thread() is threading.main_thread() and interrupts:
                raise interrupts.pop()
            return True

        __enter__ = acquire

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    def part(start: int, stop: int) -> None:
        at_work[start] = 1
        begun.wait(30)  # every thread has a part
        at_work[start] = 0

    for lock in ("Lock", "RLock"):
        real = getattr(threads_module, lock, None)
        if real is not None:
            monkeypatch.setattr(threads_module, lock, partial(Interrupted, real))
    begun = threading.Barrier(2)
    with pytest.raises(KeyboardInterrupt):
        share_rows(part, [(n, n + 1) for n in range(20)], 2)
    assert not interrupts
    assert not blocked
    assert not any(at_work)


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["-1.00", "0.5", "12", "3.25"]),
            st.sampled_from([0.5, -12.25, 1000.125, math.nan]),
            st.sampled_from(["< 0.001", "0.0123", "1,200", "12.5 %", "-3"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_decimal_points_are_in_line(rows: list[tuple[str, float, str]]) -> None:
    """One column at a time, after a column of names of one width."""
    for column in range(3):
        cells = [(row[column],) if column == 0 else ("r", row[column]) for row in rows]
        heads = ["x"] if column == 0 else ["n", ("x", "x", 3)]
        lines = str(Table.from_rows(heads, cells)).splitlines()[1:]
        ends = {re.search(r"\d[\d,]*", line).end() for line in lines if "nan" not in line}
        if column or any("." in cell for (cell,) in cells):
            assert len(ends) <= 1
        shown = [f"{row[1]:.3f}" if column == 1 else row[column] for row in rows]
        assert [line.removeprefix("r").strip() for line in lines] == shown


@given(
    names=st.lists(
        st.text("ab/", min_size=1, max_size=3).map(lambda part: f"results/{part}/ranks.parquet"),
        min_size=2,
        max_size=5,
        unique=True,
    )
)
def test_different_names_stay_different_in_narrow_tables(names: list[str]) -> None:
    table = Table.from_rows("model,value=v:4", [(name, 0.5) for name in names])
    lines = table.to_text(22).splitlines()[1:]
    assert len(set(lines)) == len(names)
    assert max(map(len, lines)) <= 22


@pytest.mark.parametrize("width", [10, 22, 25, 28, 36, 80])
def test_shortened_keys_of_measures_are_the_same_measures(width: int) -> None:
    keys = [
        f"{side}.{kind}.{rest}"
        for side in ("both", "head")
        for kind in RANK_TYPES
        for rest in ("micro.mrr", "macro.mrr", "micro.hits@10")
    ]
    for shown in (keys, ["both.realistic.micro.mrr", "both.optimistic.micro.mrr"], keys[:1]):
        table = Table.from_rows("measure,value:4", [(key, 0.5) for key in shown])
        lines = [line.split() for line in table.to_text(width).splitlines()[1:]]
        assert [Measure.parse(cell).key for cell, _ in lines] == shown
    file = "head.run.of.a.long.name.parquet"
    table = Table.from_rows("file,value:4", [(file, 0.5)])
    assert ("…" in table.to_text(width)) == (width < len(file) + 8)
