"""Paired timing: the contestants take turns in one process, and ratios are taken turn by turn.

The speed of a shared machine changes by the second. A disturbance affects all contestants of a
round alike. So the median of the rounds' ratios is stable; a ratio of two separately measured
medians is not.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

__all__ = ["Contestant", "Timings", "compete"]


@dataclass(frozen=True)
class Contestant:
    """Work to time: ``run`` is timed; ``prepare`` makes a new argument before every run."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Timings:
    """Seconds of every round by contestant; CPU seconds include all threads and child processes."""

    wall: Mapping[str, list[float]]
    cpu: Mapping[str, list[float]]

    def seconds(self, name: str) -> float:
        """Median wall seconds of a contestant."""
        return median(self.wall[name])

    def ratio(self, above: str, below: str) -> float:
        """Median over the rounds of seconds of `above` / seconds of `below`."""
        return median(_divided(self.wall[above], self.wall[below]))

    def detail(self, above: str, below: str) -> dict[str, Any]:
        """Reliability of the ratio: number of rounds, extreme ratios, the same in CPU time.

        CPU time does not include the time of other processes on the core. If it disagrees with wall
        time, the machine was busy.
        """
        ratios = _divided(self.wall[above], self.wall[below])
        return {
            "rounds": len(ratios),
            "ratio_min": min(ratios),
            "ratio_max": max(ratios),
            "ratio_of_fastest": min(self.wall[above]) / min(self.wall[below]),
            "ratio_cpu": median(_divided(self.cpu[above], self.cpu[below])),
            "seconds": {name: median(times) for name, times in self.wall.items()},
            "seconds_cpu": {name: median(times) for name, times in self.cpu.items()},
        }


def compete(contestants: Mapping[str, Contestant], rounds: int, warm_ups: int = 1) -> Timings:
    """Time the contestants in turns, in reversed order every other round."""
    wall: dict[str, list[float]] = {name: [] for name in contestants}
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    for number in range(-warm_ups, rounds):
        for name in order if number % 2 == 0 else reversed(order):
            seconds, cpu_seconds = _timed(contestants[name])
            if number >= 0:
                wall[name].append(seconds)
                cpu[name].append(cpu_seconds)
    return Timings(wall, cpu)


def _timed(contestant: Contestant) -> tuple[float, float]:
    prepared = contestant.prepare()
    gc.collect()
    gc.disable()
    try:
        cpu, wall = _cpu_seconds(), time.perf_counter()
        contestant.run(prepared)
        return time.perf_counter() - wall, _cpu_seconds() - cpu
    finally:
        gc.enable()


def _cpu_seconds() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts in hundredths
    return time.process_time() + children.ru_utime + children.ru_stime


def _divided(above: list[float], below: list[float]) -> list[float]:
    return [a / b if b else float("nan") for a, b in zip(above, below, strict=True)]
