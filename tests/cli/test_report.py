"""Results among sampled candidates say so; tests/golden/cli/meaning.txt has what is printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph
from transcripts import run_command

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.ranking.parquet import name_systems, system_name


@pytest.fixture(scope="module")
def results() -> dict[str, kgtrec.Result]:
    """The same scores, ranked in full and among sampled candidates."""
    rng, full = np.random.default_rng(3), graph().questions()
    scores = rng.random((len(full), N_ENTITIES))
    lists = [rng.choice(N_ENTITIES, 12, replace=False) for _ in scores]
    variants = {"full": full, "sampled": full.restrict(candidates=lists, outside="worst")}
    return {name: kgtrec.evaluate(scores, q, progress=False) for name, q in variants.items()}


def test_figures_name_sampled_candidates(results: dict[str, kgtrec.Result]) -> None:
    pytest.importorskip("matplotlib")
    from kgtrec.plots import ranks as figures
    from kgtrec.plots.studies import beta_curves, beta_heat_map
    from kgtrec.study.stratified import beta_curve, beta_grid

    ranks = {name: result.ranks for name, result in results.items()}
    curves = {name: beta_curve(each, metrics=("mrr",)) for name, each in ranks.items()}
    for drawn in (figures.rank_distribution(ranks), figures.tie_widths(ranks), beta_curves(curves)):
        texts = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert [text.startswith("sampled (sampled)") for text in texts if "full" not in text][-1]
        assert not any("(sampled)" in text for text in texts if text.startswith("full"))
    for drawn in (figures.rank_types(results), figures.relations(results)):
        texts = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
        assert ["(sampled)" in text for text in texts] == [False, True]
    heat = beta_heat_map(beta_grid(ranks["sampled"], metrics=("mrr",)))
    assert heat.axes[-1].get_ylabel() == "sampled strat-MRR"


def test_keys_and_comparisons(results: dict[str, kgtrec.Result]) -> None:
    full, sampled = results["full"], results["sampled"]
    key = "both.realistic.micro.mrr"
    assert sampled[f"sampled.{key}"] == sampled[key]
    assert all(name.startswith("sampled.") for name in sampled)
    with pytest.raises(UsageError, match=r"no candidates were sampled; ask for 'both\."):
        full[f"sampled.{key}"]
    different = kgtrec.comparable(full.ranks, sampled.ranks)
    assert str(different) == f"not comparable: {'; '.join(different.reasons)}"
    assert kgtrec.comparable(full, sampled) == kgtrec.comparable(full, sampled.ranks) == different
    assert str(kgtrec.comparable(full, full)) == "comparable"


def test_names_of_jobs() -> None:
    def path(graph: str, protocol: str, model: str) -> str:
        return f"out/ranks/graph={graph}/protocol={protocol}/model={model}/ranks.parquet"

    assert system_name(path("g", "test", "a.b")) == "a.b"
    assert system_name("graph=g/model=a/ranks.parquet") == "ranks"  # of no batch
    assert system_name(path("g", "test", "a")[:-7] + "csv") == "ranks.csv"
    cases = [
        ([("g", "t", "a"), ("g", "t", "b")], ["a", "b"]),
        ([("g", "t", "a"), ("h", "t", "a"), ("h", "t", "b")], ["a (g)", "a (h)", "b"]),
        ([("g", "t", "a"), ("g", "v", "a")], ["a (t)", "a (v)"]),
        ([("g", "t", "a"), ("h", "v", "a")], ["a (g, t)", "a (h, v)"]),
    ]
    for jobs, names in cases:
        assert name_systems([path(*job) for job in jobs]) == names
    assert name_systems([path("g", "t", "a"), "x/a.parquet"]) == ["a (g, t)", "a"]
    assert name_systems(["x/a.parquet", "y/a.ranks.parquet"]) == ["a", "a"]


def test_warnings_in_a_report_of_several_graphs_name_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    questions = graph().questions()
    scores = np.zeros((len(questions), N_ENTITIES))
    for name, values in (("one", scores), ("two", scores + np.arange(N_ENTITIES))):
        job = tmp_path / f"out/ranks/graph={name}/protocol=test/model=m/ranks.parquet"
        job.parent.mkdir(parents=True)
        kgtrec.evaluate(values, questions, progress=False).ranks.save(job)
    err = run_command("report", "out", "--columns", "mrr").err
    warnings = [line for line in err.splitlines() if "warning: m" in line]
    assert warnings
    assert all(line.startswith("kgtrec: warning: m on ") for line in warnings), err
    one = "out/ranks/graph=one/protocol=test/model=m/ranks.parquet"
    assert "warning: m: " in run_command("report", one, "--columns", "mrr").err
