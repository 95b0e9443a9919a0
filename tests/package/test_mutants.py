"""The mutants beside the tests fit the code that they change; `tests/mutants/run.py` tries them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from checkout import ROOT


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
