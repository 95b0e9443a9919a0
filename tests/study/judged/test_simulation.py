"""Many samples of worlds whose truth is known: no bias, intervals that cover, and their width.

Samples of a row are the same for all systems, so the errors of its columns go together: a row may
be far off by chance. The slow tests judge all rows together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from judged_cases import (
    JUDGES,
    Draws,
    World,
    fb_world,
    simulate,
    simulation_table,
    synthetic_world,
)

SIZES = (50, 100, 300)
GUIDE = Path(__file__).parents[3] / "kgtrec" / "guides" / "judged-metrics.md"


@pytest.fixture(scope="module")
def world() -> World:
    return synthetic_world(n_systems=3, n_triples=250, n_entities=40)


@pytest.mark.parametrize("kind", ["5 %", "favours"])
@pytest.mark.parametrize("even", [True, False])
def test_few_samples(world: World, kind: str, even: bool) -> None:
    """Also questions drawn with unequal probabilities: more often if much was pooled."""
    pooled = np.bincount(world.people.owner)
    draws = simulate(world, kind, 50, 300, None if even else pooled)
    assert np.abs(draws.bias).mean() < 2
    assert 0.92 < draws.coverage.mean() < 0.99
    assert draws.width.mean() < (0.8 if kind == "5 %" else 0.95)


def check_draws(found: Mapping[tuple[str, int], Draws], worst: float) -> None:
    """The bias of all columns together is that of chance, and intervals cover 93 to 97 %.

    Except for MRR with a judge that is nearly always right and few questions: it errs on few of
    them, and the interval allows for one that it does not show.
    """
    bias = np.concatenate([draws.bias for draws in found.values()])
    assert np.abs(bias).mean() < 1.2  # sqrt(2 / pi) = 0.8 for independent columns
    assert np.abs(bias).max() < 5
    for (kind, _), draws in found.items():
        by_measure = draws.coverage.reshape(3, -1).mean(axis=1)
        assert (by_measure > 0.93).all()
        assert (by_measure[: 2 if kind == "5 %" else 3] < 0.97).all()
        assert draws.width.mean() <= (0.7 if kind == "5 %" else worst)
        assert draws.gap_reach.mean() <= worst * draws.gap_alone_reach.mean()


@pytest.mark.slow
def test_thirteen_systems_of_a_random_graph() -> None:
    world = synthetic_world()
    check_draws({(k, n): simulate(world, k, n, 1000) for k in JUDGES for n in SIZES}, 1.02)


@pytest.mark.slow
@pytest.mark.data
def test_the_table_of_the_guide(shared_data: Path) -> None:
    """FB-Test-S-C, with people's labels and the trained models."""
    world = fb_world(shared_data)
    found = {(kind, n): simulate(world, kind, n, 1000) for kind in JUDGES for n in SIZES}
    check_draws(found, 1.02)
    shown = [line for line in GUIDE.read_text("utf-8").splitlines() if line.startswith("| ")]
    due = simulation_table(found).to_markdown().splitlines()
    for line, expected in zip(shown, due, strict=True):
        pairs = zip(line.strip("| ").split(" | "), expected.strip("| ").split(" | "), strict=True)
        for cell, value in pairs:
            number = value.replace(".", "", 1).isdigit()
            if number:
                assert float(cell) == pytest.approx(float(value), abs=0.11)
            else:
                assert cell == value
