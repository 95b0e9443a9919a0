"""Settings that the command line makes for its process, and its end by signals: 143, one line."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys

import pytest

import kgtrec

FAULTS = """
import resource
import numpy as np
from kgtrec.cli._process import keep_freed_memory
if {keeping}:
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    arrays = [np.ones(1 << 15) for _ in range(8)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.memory
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_the_memory_of_freed_arrays_is_used_again() -> None:
    """Pages are requested from the system once, not again for each array."""
    pages = 8 * (8 << 15) // 4096

    def faults(keeping: bool) -> int:
        code = FAULTS.format(keeping=keeping)
        command = [sys.executable, "-c", code]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert faults(keeping=True) < 2 * pages < 10 * pages < faults(keeping=False)


def test_the_version_is_said_before_the_commands_are_loaded() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--version']; from kgtrec.__main__ import run; run(); "
        "print(sorted({'click', 'numpy'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"kgtrec, version {kgtrec.__version__}\n[]\n"
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kgtrec", "--version"]
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (failed.returncode, b"No space left" in failed.stderr) == (2, True)


# -- Signals -----------------------------------------------------------------------------------


# A library that turns an interrupt of its import into its own error.
_LOADING = """
import os, signal, sys
from kgtrec import cli

signal.signal(signal.{signal}, signal.SIG_DFL)  # nohup's children inherit that it is ignored

def load(*args):
    try:
        os.kill(os.getpid(), signal.{signal})
    except BaseException as error:
        {then}

cli.import_module = load
sys.argv = ["kgtrec", "measures"]
cli.main()
"""


@pytest.mark.parametrize(
    "then", ["raise", 'raise ImportError("half loaded") from error', "sys.exit(1)", "sys.exit(0)",
             "raise RuntimeError from None"],
)  # fmt: skip
@pytest.mark.parametrize(("name", "said"), [("SIGTERM", "terminated"), ("SIGHUP", "hung up")])
def test_what_a_library_makes_of_a_signal(then: str, name: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADING.format(signal=name, then=then)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 128 + getattr(signal, name), done
    message = f"kgtrec: {said}; nothing half-written is left behind"
    assert done.stderr.strip() in ("", message)
    if "exit" not in then:
        assert done.stderr
