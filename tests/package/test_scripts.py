"""Scripts of the checkout: a paper's figures again, benchmarks, mutants, continuous integration."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.study.pooling.depths import instance_depths, ranks_at_depth
from kgtrec.study.pooling.pool import make_pool
from kgtrec.study.pooling.unjudged import intervals, shares

BENCHMARKS = ROOT / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip(f"no benchmarks at {BENCHMARKS}: this is not a checkout", allow_module_level=True)
LIBRARIES = {"distributed", "matplotlib", "pykeen", "pytrec_eval", "ranx", "torch"}
"""What a benchmark may need beside the package's own requirements."""
TEXTS = {"000.fig6.median_hitter", "000.mean_MR"}  # values of several sets in one row


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


# -- Zhou et al. (2022): every figure that their published files can give comes out again ----------


@pytest.fixture(scope="module")
def benchmark() -> dict[str, ModuleType]:
    """The modules of the reproduction, by the end of their names."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        names = ("published", "labels", "tables", "models")
        return {name: importlib.import_module(f"zhou_{name}") for name in names}
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.slow
@pytest.mark.data
def test_every_known_figure_comes_out(shared_data: Path, tmp_path: Path) -> None:
    """As in a list of figures that was made without the script."""
    path = shared_data.parent / "spec" / "paper-numbers.json"
    if not path.is_file():
        pytest.skip(f"no list of figures at {path}")
    known = {k: v for k, v in json.loads(path.read_text()).items() if k.startswith("000.")}
    target = tmp_path / "rows.json"
    words = ("--published-only", "--data", shared_data, "--json", target)
    done = run("reproduce_zhou2022.py", *words)
    assert done.returncode == 0, done.stderr
    assert "published figures come out" in done.stdout
    listed = json.loads(target.read_text())
    rows = {row["key"]: row for row in listed}
    assert len(rows) == len(listed)
    assert set(known) <= set(rows)
    for key, figure in known.items():
        row = rows[key]
        if key in TEXTS:
            text = f"{row['ours']} {row['note']}"
            assert all(
                f"{value:.{4 if value < 1 else 1}f}" in text for value in figure["ours"].values()
            )
            continue
        assert row["ours"] == pytest.approx(figure["ours"], abs=1e-6), key
        assert row["published"] == figure["paper"], key
        assert row["match"] == figure["match"], key
    missed = [key for key, row in rows.items() if row["match"] is False]
    assert missed == ["fig5: macro above micro at any depth"]
    assert rows["reverse questions, never pooled"]["ours"] == "1,138 of 2,883"
    assert rows["... found by category rules alone"]["ours"] == 8899


@pytest.mark.slow
@pytest.mark.data
def test_our_own_models_end_to_end(shared_data: Path, benchmark: dict[str, ModuleType]) -> None:
    files = benchmark["published"].Files(shared_data)
    labels = benchmark["labels"].read_labels(files)
    study = benchmark["models"].Study(files, labels, ("distmult",))
    lists = study.filtered
    pool = make_pool(lists, labels.seeds, 10)
    assert len(pool) == 16273
    with pytest.raises(UsageError, match="two or more"):
        study.samples(labels.at(10))  # one model has nothing to be compared with
    counts = shares(lists[0], labels.at(10), 10)
    assert sum(counts.values()) == 17450
    assert counts["added"] > counts["seed"] > 0
    own = intervals(lists[0], labels.at(10))
    bounded = [one for one in own.values() if not one.reason]
    assert len(bounded) == len(own) - 1
    assert all(0 < one.low <= one.value < one.high <= 1 for one in bounded)


@pytest.mark.slow
@pytest.mark.data
def test_our_curves_by_depth(
    shared_data: Path, benchmark: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = benchmark["models"]
    monkeypatch.setattr(models, "DEPTHS", range(2))
    monkeypatch.setattr(models, "DRAWS", 100)
    files = benchmark["published"].Files(shared_data)
    labels = benchmark["labels"].read_labels(files)
    study = models.Study(files, labels, ("distmult", "transe"))
    curves = study.curves(labels.pool)
    values = curves.values()
    # These two change places by mean rank, and by nothing else: see the whole report.
    assert values["micro_mr"].argmin(axis=1).tolist() == [1, 1]
    assert values["micro_mrr"].argmax(axis=1).tolist() == [0, 0]
    assert values["micro_mrr"][1, 0] == pytest.approx(0.3368, abs=5e-5)
    assert curves.taus().rows[1] == ("1", *[1.0] * 13)
    low, high = curves.ranked.interval
    assert (low <= high).all()
    # The same without ranking anew, from ranks on the split of the deepest labels.
    whole = study.results(study.questions_of(labels.at(10)))["transe"].ranks
    depths = instance_depths(whole, labels.pool)
    for depth in (0, 1):
        ours = kgtrec.Result(ranks_at_depth(whole, depths, depth))
        for name in ("mr", "mrr", "hits@10"):
            assert ours[name] == pytest.approx(values[f"micro_{name}"][depth, 1], rel=1e-13)
        assert ours["macro.mrr"] == pytest.approx(values["macro_mrr"][depth, 1], rel=1e-13)
    said = curves.verdict()
    assert "Below 1 somewhere: none." in said
    assert "2 models have 1 pairs" in said
    assert "with a chance of 1 in 2; 9 of 9 pairs" in said


def test_without_data_a_sentence(tmp_path: Path) -> None:
    done = run("reproduce_zhou2022.py", "--data", tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--data DIR" in done.stderr


# -- Benchmarks, mutants, continuous integration --------------------------------------------------


@pytest.mark.slow
def test_table_and_json_hold_the_asked_bars(tmp_path: Path) -> None:
    target = tmp_path / "figures.json"
    done = run("run.py", "--quick", "--only", "I1,K1", "--json", target)
    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text())
    assert report["quick"] is True
    assert report["machine"]["gemm_GFLOPs"] > 0
    assert [row["bar_id"] for row in report["rows"]] == ["K1", "I1", "I1"]
    for row in report["rows"]:
        assert set(row) == {"bar_id", "what", "ours", "reference", "ratio", "bar", "met", "detail"}
        # Only the streaming read may be missing: it needs a C compiler.
        assert row["met"] in (True, False) or "no C compiler" in row["detail"]["not_run"]
        assert row["what"] in done.stdout
    assert "bar id" in done.stdout


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_benchmark_imports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that names what the package no longer has ends here; a missing library skips it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    try:
        importlib.import_module(path.stem)
    except ModuleNotFoundError as error:
        if error.name not in LIBRARIES:
            raise
        pytest.skip(f"{path.name} needs {error.name}")


def test_unknown_bar_is_refused() -> None:
    done = run("run.py", "--only", "K1,Z9")
    assert done.returncode == 2
    assert "Z9" in done.stderr
    assert "K1, K2" in done.stderr


def test_mutants_fit_the_code() -> None:
    runner = runpy.run_path(str(ROOT / "tests/mutants/run.py"))
    assert runner["misfits"](runner["mutants"]()) == []


def test_ci_names_tests_that_are_there():
    for word in re.findall(r"tests/\S+", (ROOT / ".ci" / "run").read_text("utf-8")):
        if braces := re.search(r"\{(.*)\}", word):
            words = [word.replace(braces[0], part) for part in braces[1].split(",")]
        else:
            words = [word]
        for path, _, name in (each.strip("\"'`).,;").partition("::") for each in words):
            assert list(ROOT.glob(path)), path
            assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), (path, name)
