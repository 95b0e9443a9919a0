"""Several threads, Ctrl-C and forks: the ranks of one undisturbed thread, or an error."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import sleep

import numpy as np
import pytest
from slow import slow_after

import kgtrec
from kgtrec._internal import threads as threads_module
from kgtrec._internal.threads import share_rows
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking import ranker as ranker_module
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.ranked_rows import RankedRows

N = 37  # entities
CALLBACKS = ("_remove", "gc_callback", "drop_interrupt")
"""Of weak references, of the collector and of this file: what is raised in them is lost."""

COLUMNS = ("greater", "equal", "tied_ahead", "macro_greater", "macro_equal", "macro_tied_ahead")


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    rng = np.random.default_rng(3)
    splits = {name: rng.integers(0, (N, 3, N), (90, 3)) for name in ("train", "test")}
    return kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=3).questions()


@pytest.fixture(scope="module")
def scores(questions: kgtrec.Questions) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 9, (len(questions), N)).astype(np.float32)


@pytest.fixture(scope="module")
def due(questions: kgtrec.Questions, scores: np.ndarray) -> tuple:
    return content(kgtrec.rank(scores, questions, run_depth=7, threads=1))


def content(ranked: tuple[kgtrec.Ranks, kgtrec.Run]) -> tuple:
    """Everything that was ranked, for comparisons."""
    ranks, run = ranked
    columns = tuple(getattr(ranks, name).tobytes() for name in COLUMNS)
    return *columns, run.offsets.tobytes(), run.documents.tobytes(), run.scores.tobytes()


def of(scores: np.ndarray, batch: kgtrec.ranking.ranker.Batch) -> np.ndarray:
    return scores[batch.start : batch.stop]


# -- Threads of the caller ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own_threads", "times"), slow_after(2, [(1, 20), (3, 20), (1, 200), (3, 200)])
)
def test_any_interleaving_gives_the_ranks_of_one_thread(
    questions, scores, due, own_threads, times
) -> None:
    shuffled = random.Random(0)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(times):
            ranker = kgtrec.Ranker(questions, 7, own_threads)
            batches = list(ranker.batches(11))
            shuffled.shuffle(batches)
            begin = threading.Barrier(4)

            def feed(mine: list, ranker=ranker, begin=begin) -> None:
                block = np.empty((11, N), np.float32)
                begin.wait(30)
                for batch in mine:
                    block[: len(batch)] = of(scores, batch)
                    ranker.update(batch, block[: len(batch)])
                    block[:] = -1  # it may change once update has returned

            list(pool.map(feed, [batches[n::4] for n in range(4)]))
            assert content(ranker.finish()) == due


def test_two_first_batches_at_the_same_moment(questions, scores, due, monkeypatch) -> None:
    """Each thread waits where it makes the arrays, until the other arrives too."""
    together = threading.Barrier(2)

    class Slow(NativeRanking):
        def __init__(self, *args) -> None:
            with suppress(threading.BrokenBarrierError):
                together.wait(0.5)
            super().__init__(*args)

    monkeypatch.setattr(ranker_module, "NativeRanking", Slow)
    ranker = kgtrec.Ranker(questions, 7, threads=1)
    batches = list(ranker.batches(-(-ranker.n_rows // 2)))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda batch: ranker.update(batch, of(scores, batch)), batches))
    assert content(ranker.finish()) == due


class Meeting:
    """Scores that are passed on when all threads have arrived."""

    def __init__(self, scores: np.ndarray, barrier: threading.Barrier) -> None:
        self.scores, self.barrier = scores, barrier

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        self.barrier.wait(30)
        return self.scores


def test_a_batch_is_taken_once_however_many_bring_it(questions, scores, due) -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            ranker = kgtrec.Ranker(questions, 7, threads=1)
            for batch in ranker.batches(64):
                barrier = threading.Barrier(4)
                tries = [
                    pool.submit(ranker.update, batch, Meeting(of(scores, batch), barrier))
                    for _ in range(4)
                ]
                errors = [each.exception() for each in tries]
                assert sum(error is None for error in errors) == 1
                assert all(isinstance(error, UsageError) for error in errors if error)
            assert content(ranker.finish()) == due


@pytest.fixture
def held(monkeypatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Ranking begins, sets the first event, and continues after the second."""
    begun, go_on = threading.Event(), threading.Event()
    rank_rows = NativeRanking.rank_rows

    def slowly(self, *args, **kwargs) -> None:
        begun.set()
        assert go_on.wait(30)
        rank_rows(self, *args, **kwargs)

    monkeypatch.setattr(NativeRanking, "rank_rows", slowly)
    yield begun, go_on
    go_on.set()


def test_rows_at_work_are_nobody_elses(questions, scores, due, held) -> None:
    begun, go_on = held
    ranker = kgtrec.Ranker(questions, 7, threads=1)
    whole, after = ranker.batch(0, 50), ranker.batch(50, ranker.n_rows)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ranker.update, whole, of(scores, whole))
        assert begun.wait(30)
        for start, stop in ((0, 50), (49, 51), (0, 1), (20, 30)):
            batch = ranker.batch(start, stop)
            with pytest.raises(UsageError, match="another thread is ranking rows 0 to 49 now"):
                ranker.update(batch, of(scores, batch))
        with pytest.raises(
            UsageError, match=r"ranking rows 0 to 49 now; call finish\(\) after every"
        ):
            ranker.finish()
        with pytest.raises(InputError, match="dtype float64, but earlier ones have float32"):
            ranker.update(after, of(scores, after).astype(np.float64))
        second = pool.submit(ranker.update, after, of(scores, after))
        go_on.set()
        first.result(), second.result()
    assert content(ranker.finish()) == due


# -- Ctrl-C ------------------------------------------------------------------------------------


def on_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def test_rows_of_overlapping_batches_that_failed_can_be_given_again(questions, scores, due) -> None:
    spoilt = scores.copy()
    spoilt[[5, -1]] = np.nan
    ranker = kgtrec.Ranker(questions, 7, threads=1)
    for rows in (slice(0, 20), slice(10, len(scores))):
        with pytest.raises(InputError, match="NaN"):
            ranker.update(np.arange(len(scores))[rows], spoilt[rows])
    for rows in (slice(20, len(scores)), slice(0, 20)):
        ranker.update(np.arange(len(scores))[rows], scores[rows])
    assert content(ranker.finish()) == due


@pytest.mark.parametrize("what", ["merge", "rows out of order"])
def test_rows_of_a_call_that_ctrl_c_ended_can_be_given_again(
    questions, scores, due, what, monkeypatch
) -> None:
    """Ctrl-C is pressed as soon as a method has done its work."""
    rows = np.arange(len(scores))
    ranker, other = kgtrec.Ranker(questions, 7), kgtrec.Ranker(questions, 7)
    other.update(rows, scores)
    owner, name, call = {
        "merge": (RankedRows, "write_to", lambda: ranker.merge(other)),
        "rows out of order": (
            NativeRanking,
            "take_over",
            lambda: ranker.update(rows[::-1], scores[::-1]),
        ),
    }[what]
    method = getattr(owner, name)

    def interrupted(*args) -> None:
        monkeypatch.undo()
        method(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        call()
    ranker.update(rows, scores)
    assert content(ranker.finish()) == due


def run_in_fork(function: Callable[[], None]) -> None:
    """Run a function in a fork of this process, and fail if it fails.

    The function may set handlers of signals and timers. They end with the fork, and so do signals
    on their way: the system may give one to any thread, and a thread that waits for a core takes
    it late. In this process, it could meet the handler of pytest-timeout, or none.
    """
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)  # with file descriptor 2, which pytest reads
        finally:
            os._exit(code)
    try:
        status = os.waitpid(child, 0)[1]
    except BaseException:  # such as the timeout of the test
        os.kill(child, signal.SIGKILL)
        raise
    assert os.waitstatus_to_exitcode(status) == 0


class Storm:
    """Signals that raise KeyboardInterrupt in a function, and nowhere else; for `run_in_fork`.

    Under so many signals, Python 3.13 and 3.14 of before May 2026 may crash, very rarely: a lock
    of their own is used after it was freed (python/cpython#148820).
    """

    def __init__(self) -> None:
        self.armed: list[int] = []
        self.inside: object = None
        self.busy = False
        self.report_lost, sys.unraisablehook = sys.unraisablehook, self.drop_interrupt
        signal.signal(signal.SIGALRM, self.interrupt)

    def interrupt(self, _: int, frame) -> None:
        if self.busy:
            return  # signals may come faster than they are handled
        self.busy = True
        try:
            while self.armed and frame is not None and frame.f_code.co_name not in CALLBACKS:
                if frame.f_code is self.inside:
                    self.armed.pop()
                    raise KeyboardInterrupt
                frame = frame.f_back
        finally:
            self.busy = False

    def drop_interrupt(self, lost) -> None:
        """A signal may still come while Python cleans up, where nothing can be raised."""
        if lost.exc_type is not KeyboardInterrupt:
            self.report_lost(lost)

    def run(
        self, function: Callable, arguments: tuple, count: int, first: float, then: float
    ) -> None:
        """Call the function; signals come `first` seconds from now, and every `then` seconds."""
        self.inside, self.armed = function.__code__, [0] * count
        signal.setitimer(signal.ITIMER_REAL, first, then)
        function(*arguments)


def test_interrupts_at_any_moment_leave_no_part_at_work() -> None:
    """Up to three signals, microseconds apart, again and again."""
    moments, at_work = random.Random(1), [0] * 64

    def part(start: int, stop: int) -> None:
        at_work[start] = not on_main()
        for _ in range(200):
            pass
        at_work[start] = 0

    def interrupt_parts() -> None:
        storm, parts, interrupted = Storm(), [(n, n + 1) for n in range(64)], 0
        while interrupted < 400:
            first, then = moments.uniform(1e-6, 4e-4), moments.uniform(2e-5, 3e-4)
            try:
                storm.run(share_rows, (part, parts, 3), moments.randint(1, 3), first, then)
            except KeyboardInterrupt:
                interrupted += 1
            assert not any(at_work)

    run_in_fork(interrupt_parts)


def test_three_interrupts_each_before_a_wait_begins_leave_no_part_at_work(monkeypatch) -> None:
    """As when the main thread loses its core, or the GIL, at the first step of each wait."""
    begun, ended, interrupts = threading.Event(), threading.Event(), [KeyboardInterrupt] * 3
    wait = threads_module._Crew.__exit__

    def interrupted(self, *exception) -> None:
        if interrupts:
            raise interrupts.pop()
        wait(self, *exception)

    def part(start: int, stop: int) -> None:
        if on_main():
            assert begun.wait(30)
        else:
            begun.set()
            sleep(0.2)
            ended.set()

    monkeypatch.setattr(threads_module._Crew, "__exit__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        share_rows(part, [(0, 1), (1, 2)], 2)
    assert not interrupts
    assert ended.is_set()


def test_retries_after_interrupts_at_any_moment_give_the_right_ranks(
    questions, scores, due
) -> None:
    def interrupt_ranking() -> None:
        storm, moments, interrupted = Storm(), random.Random(2), 0
        while interrupted < 150:
            ranker = kgtrec.Ranker(questions, 7, threads=3)
            for batch in ranker.batches(60):
                while True:
                    try:
                        arguments = ranker, batch, of(scores, batch)
                        first = moments.uniform(1e-6, 1e-3)
                        storm.run(kgtrec.Ranker.update, arguments, 1, first, 0)
                        break
                    except KeyboardInterrupt:
                        interrupted += 1
            assert content(ranker.finish()) == due

    run_in_fork(interrupt_ranking)


# -- Forks -------------------------------------------------------------------------------------


def test_a_fork_after_use_goes_on_by_itself(questions, scores, due) -> None:
    ranker = kgtrec.Ranker(questions, 7, threads=3)
    batches = list(ranker.batches(40))
    for batch in batches[:2]:
        ranker.update(batch, of(scores, batch))

    def rank_the_rest() -> None:
        for batch in batches[2:]:
            ranker.update(batch, of(scores, batch))
        assert content(ranker.finish()) == due

    run_in_fork(rank_the_rest)
    with pytest.raises(UsageError, match="were never scored"):
        ranker.finish()  # the child's rows belong to the child
    for batch in batches[2:]:
        ranker.update(batch, of(scores, batch))
    assert content(ranker.finish()) == due
