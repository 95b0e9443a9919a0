"""SIGTERM, whenever it comes: 143, one line."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A library that takes what interrupts its import for an error of its own.
_LOADING = """
import os, signal, sys
from kgtrec import cli

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
