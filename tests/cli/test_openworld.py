"""kgtrec openworld and its figures: its messages, its refusals, its drawings."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgtrec.cli.openworld import command
from kgtrec.errors import UsageError
from kgtrec.study import openworld as ow


def run(*arguments: object) -> str:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


# -- Figures -------------------------------------------------------------------------------------


def lines_of(axes) -> dict[str, np.ndarray]:
    return {line.get_label(): np.column_stack(line.get_data()) for line in axes.get_lines()}


def test_expected_metric_draws_the_formula():
    from kgtrec.plots.studies import expected_metric

    axes = expected_metric("log_mrr", betas=(0.2, 0.65)).axes[0]
    drawn = lines_of(axes)
    assert set(drawn) == {"0.2", "0.65"}
    x, y = drawn["0.65"].T
    assert y == pytest.approx(ow.expectation(x, 0.65, 43, metric="log_mrr", kept=True))
    assert axes.get_ylabel() == "expected log-MRR"
    with pytest.raises(UsageError, match="no betas to draw"):
        expected_metric(betas=())


def test_expected_metric_ends_where_the_correlation_does():
    from kgtrec.plots.studies import expected_metric

    x, _ = lines_of(expected_metric(betas=(0.2,), rho=0.2).axes[0])["0.2"].T
    low, high = (ow.correlation_range(edge, 0.2) for edge in (x[0], x[-1]))
    assert low[1] >= 0.2
    assert high[1] >= 0.2
    assert ow.correlation_range(x[-1] + 0.011, 0.2)[1] < 0.2


def test_simulation_bands_are_two_standard_errors():
    from kgtrec.plots.studies import simulations

    runs = [ow.simulate((0.4, 0.6, 0.8), (0.2, 0.5), rho=rho, repeats=40) for rho in (0.0, 0.1)]
    one = simulations(runs[0]).axes[0]
    assert lines_of(one)["β = 0.2"][:, 1] == pytest.approx(runs[0].mean["mrr"][0])
    band = one.collections[0].get_paths()[0].vertices
    top = runs[0].mean["mrr"][0] + 2 * runs[0].error("mrr")[0]
    assert band[:, 1].max() == pytest.approx(top.max())
    several = simulations(runs)
    assert len(several.axes) == 2
    with pytest.raises(UsageError, match="was not simulated"):
        simulations(runs[0], "log_mrr")
    with pytest.raises(UsageError, match="have different sparsities"):
        simulations([runs[0], ow.simulate((0.5,), (0.3,), repeats=5)])


def test_sparse_full_draws_every_checkpoint_in_one_style_a_model():
    from kgtrec.plots.studies import sparse_full
    from kgtrec.study.openworld.experiment import MODELS, Model

    few = [Model(m.label, m.train, m.setting, (2, 8)) for m in MODELS if "RESCAL" in m.label]
    study = ow.family_study(families=1, n_questions=30, models=few, progress=False)
    made = sparse_full(study.panels, ["mrr", "ndcg@20"])
    assert len(made.axes) == 4
    curve = study.panels[0].curves[1]
    drawn = lines_of(made.axes[0])
    line = drawn[curve.model].T
    assert line == pytest.approx(curve.values["mrr"])
    assert "theory, no correlation" in drawn
    styles = [
        {line.get_label(): line.get_marker() for line in axes.get_lines()} for axes in made.axes
    ]
    assert styles[2]["RESCAL, 2 rounds"] == styles[0]["RESCAL, 2 rounds"]
    assert len({styles[0][m.label] for m in few}) == len(few)
    # The model that decided which facts are missing has no curve there.
    assert "RESCAL, 4 rounds" in styles[0]
    assert "RESCAL, 4 rounds" not in styles[2]
    with pytest.raises(UsageError, match="was not measured"):
        sparse_full(study.panels, ["mr"])


def test_the_approximation_is_drawn_beside_the_exact_line():
    from kgtrec.plots.studies import approximation_quality

    axes = approximation_quality(betas=(0.35,)).axes[0]
    exact, close = (line.get_data()[1] for line in axes.get_lines()[:2])
    assert abs(exact[-50:] - close[-50:]).max() < 0.002
    assert np.isnan(close[0])  # negative there


# -- The paper's Figures 1 and 2 -------------------------------------------------------------------


def simulated(*words: object) -> list[dict[str, float]]:
    text = run("--figure", "simulated", "--format", "csv", *words)
    return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.slow
def test_figures_1_and_2_hold_what_theory_says() -> None:
    """Points of the simulation are near the exact line, and this is near the approximation."""
    rows = simulated("--correlation", 0, "--correlation", 0.1, "--n-questions", 300)
    assert len(rows) == 2 * 4 * 71
    possible = [row for row in rows if not np.isnan(row["mean"])]
    off = np.array([(row["mean"] - row["exact"]) / row["error"] for row in possible])
    assert 0.85 < off.std() < 1.15
    assert abs(off.mean()) < 0.2
    for row in possible:
        assert row["exact"] == pytest.approx(
            ow.expectation(row["strength"], row["sparsity"], 43, rho=row["correlation"]), rel=5e-3
        )
    # Theorem 4.1: "for 1 - alpha >= 0.2 and l > 0.3 the curves almost overlap".
    near = [
        abs(row["approximation"] / row["exact"] - 1)
        for row in rows
        if row["correlation"] == 0 and row["strength"] > 0.3
    ]
    assert max(near) < 0.03
    # Corollary 4.5: of two models of one strength, the less correlated has the higher MRR.
    for one, other in zip(rows[:284], rows[284:], strict=True):
        assert (one["strength"], one["sparsity"]) == (other["strength"], other["sparsity"])
        assert not other["exact"] >= one["exact"]


@pytest.mark.data
def test_what_the_paper_prints_of_its_figures(shared_data: Path) -> None:
    path = shared_data.parent / "spec" / "paper-numbers.json"
    if not path.is_file():
        pytest.skip(f"no list of figures at {path}")
    known = {k: one["ours"] for k, one in json.loads(path.read_text()).items()}
    for density in ("0.95", "0.85", "0.75", "0.65"):
        (one, *_) = simulated("--density", density, "--train-share", 0.7, "--n-questions", 2)
        assert 1 - one["sparsity"] == pytest.approx(known[f"004.alpha.{density}"], abs=1e-6)
    rows = simulated("--sparsity", 0.35, "--n-questions", 1500, "--seed", 1)
    (there,) = (row for row in rows if row["strength"] == 0.7)
    assert there["std"] ** 2 == pytest.approx(known["004.V"], rel=0.2)
