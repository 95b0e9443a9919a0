"""--quiet hides notes, never errors."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words",
    [
        "rank -q",
        "report -q a.parquet --digits 99",
        "plot -q nonsense",
        "-q nonsense",
        "-q rank --nonsense",
        "eval --quiet x",
        "stats -q absent",
    ],
)
def test_errors_are_never_quiet(words):
    call = [sys.executable, "-m", "kgtrec", *words.split()]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode
    assert done.stderr.startswith("kgtrec: ")
