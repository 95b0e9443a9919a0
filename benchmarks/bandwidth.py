"""Measure how fast this machine reads memory, by sums in C that are compiled when needed.

The reference of the kernel bars is the fastest of several plain sums, compiled with several sets of
flags: one accumulator, integer words, or 16 to 128 independent float lanes. It shows what a good
compiler makes of a loop that only reads every element once.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import Contestant, compete

__all__ = ["NoCompiler", "StreamingRead", "compiled_library", "streaming_read"]

SOURCE = "bandwidth.c"
FLAGS = (
    ("-O3",),
    ("-O3", "-march=native"),
    ("-O3", "-march=native", "-mprefer-vector-width=512"),
)
KERNELS = ("plain", "words", "lanes_16", "lanes_32", "lanes_64", "lanes_128")
TRIAL_BYTES = 256 << 20

Array = npt.NDArray[Any]
Read = Callable[[int, int], float]


class NoCompiler(Exception):
    """There is no C compiler, so there is no reference."""


class StreamingRead:
    """The fastest of the plain sums on this machine.

    Attributes
    ----------
    name : str
        Name of the sum, and its flags.
    """

    def __init__(self, name: str, read: Read) -> None:
        self.name, self._read = name, read

    def __call__(self, array: Array, threads: int = 1) -> None:
        """Read a C-contiguous array once, in `threads` equal parts at the same time."""
        start, n_bytes = array.ctypes.data, array.nbytes
        if threads == 1:
            self._read(start, n_bytes)
            return
        cuts = [n_bytes * i // threads // 64 * 64 for i in range(threads)] + [n_bytes]
        # ctypes releases the interpreter lock during a call.
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda a, b: self._read(start + a, b - a), cuts, cuts[1:]))


@cache
def streaming_read() -> StreamingRead:
    """Compile every variant, try each on an array larger than the caches, and keep the fastest."""
    variants = [variant for flags in FLAGS for variant in _compiled(flags)]
    if not variants:
        raise NoCompiler("no C compiler (looked for $CC, cc, gcc, clang)")
    trial = np.ones(TRIAL_BYTES // 4, dtype=np.float32)
    place = trial.ctypes.data
    contestants = {
        name: Contestant(lambda _, read=read: read(place, trial.nbytes)) for name, read in variants
    }
    timings = compete(contestants, rounds=3)
    best = min(contestants, key=lambda name: min(timings.wall[name]))
    return StreamingRead(best, dict(variants)[best])


COMPILERS = {
    ".c": ("CC", ("cc", "gcc", "clang")),
    ".cpp": ("CXX", ("c++", "g++", "clang++")),
}


def _compiler(suffix: str) -> str | None:
    variable, names = COMPILERS[suffix]
    commands = [os.environ.get(variable, ""), sysconfig.get_config_var(variable) or "", *names]
    first_words = [words.split()[0] for words in commands if words.split()]
    return next((name for name in first_words if shutil.which(name)), None)


def compiled_library(source: str, flags: tuple[str, ...]) -> ctypes.CDLL | None:
    """A file of this folder as a library; None if no compiler accepts the flags."""
    compiler = _compiler(Path(source).suffix)
    if compiler is None:
        return None
    # A sanitizer that is preloaded into this process must not run in the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "compiled.so"
        place = Path(__file__).with_name(source)
        command = [compiler, *flags, "-shared", "-fPIC", place, "-o", library]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        # A library stays mapped after its file is deleted.
        return None if done.returncode else ctypes.CDLL(str(library))


def _compiled(flags: tuple[str, ...]) -> list[tuple[str, Read]]:
    """The sums under one set of flags; none if the compiler refuses them."""
    loaded = compiled_library(SOURCE, ("-std=c11", *flags))
    if loaded is None:
        return []
    return [(f"{kernel} {' '.join(flags)}", _function(loaded, kernel)) for kernel in KERNELS]


def _function(library: ctypes.CDLL, kernel: str) -> Read:
    read: Any = library[f"read_{kernel}"]
    read.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    read.restype = ctypes.c_float
    function: Read = read
    return function
