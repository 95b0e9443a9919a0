"""What the command line asks of its process."""

from __future__ import annotations

import platform
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
    """Pages are asked of the system once, not anew for each array."""
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
