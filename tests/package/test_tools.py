"""Mutants and benchmarks fit the code."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT

# -- Mutants -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants_run", ROOT / "tests/mutants/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutants_fit_the_code(runner: ModuleType) -> None:
    assert runner.misfits(runner.mutants(), ROOT) == []


def test_misfits_are_found(runner: ModuleType) -> None:
    gone = runner.Mutant("x:1", "setup.py", "no such text", "", "", ("tests/none.py",), False, "")
    twice = runner.Mutant("x:2", "setup.py", "import", "import", "", (), False, "")
    told = runner.misfits(iter([gone, twice]), ROOT)
    assert told[0] == "x:1: setup.py holds its text 0 times, not once"
    assert told[1] == "x:1: no file tests/none.py"
    assert "changes nothing" in told[3]
    assert "names no test" in told[4]


# -- Benchmarks --------------------------------------------------------------------------------


RUN = ROOT / "benchmarks" / "run.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    if not RUN.is_file():
        pytest.skip(f"no benchmarks at {RUN}: this is not a checkout")
    command = [sys.executable, str(RUN), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.slow
def test_table_and_json_hold_the_asked_bars(tmp_path: Path) -> None:
    target = tmp_path / "figures.json"

    done = run("--quick", "--only", "I1,K1", "--json", target)

    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text())
    assert report["quick"] is True
    assert report["machine"]["gemm_GFLOPs"] > 0
    assert [row["bar_id"] for row in report["rows"]] == ["K1", "I1", "I1"]
    for row in report["rows"]:
        assert set(row) == {
            "bar_id", "what", "ours", "reference", "ratio", "bar", "met", "detail"
        }  # fmt: skip
        # Only the streaming read may be missing: it needs a C compiler.
        assert row["met"] in (True, False) or "no C compiler" in row["detail"]["not_run"]
        assert row["what"] in done.stdout
    assert "bar id" in done.stdout


def test_unknown_bar_is_refused() -> None:
    done = run("--only", "K1,Z9")

    assert done.returncode == 2
    assert "Z9" in done.stderr
    assert "K1, K2" in done.stderr
