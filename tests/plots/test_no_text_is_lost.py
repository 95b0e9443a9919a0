"""Every figure, for long names: no text is clipped or meets another, no legend is on data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")

from figure_cases import FIGURES, NAMES, RANKS, RESULTS, faults_of
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.figure import Figure
from slow import slow_but

from kgtrec import plots
from kgtrec.cli import plot as plot_command
from kgtrec.plots.ranks import CHANCE
from kgtrec.plots.style import styled


@pytest.mark.parametrize("name", slow_but({*FIGURES} - {"sparse_full"}, FIGURES))
def test_no_text_is_clipped_or_meets_another(name: str) -> None:
    assert faults_of(FIGURES[name]()) == []


def test_every_figure_is_looked_at() -> None:
    assert {name.partition(",")[0] for name in FIGURES} == set(plots.__all__) - {"save"}


def test_what_looks_can_find_faults() -> None:
    with styled():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label="a line")
        axes.set_xlabel("much wider than the figure is, and wider still")
        axes.text(0.5, 0.5, "first")
        axes.text(0.5, 0.5, "second")
        figure.legend(loc="center")
    faults = " ".join(faults_of(figure))
    for fault in ("is clipped", "'first' meets 'second'", "a legend is on a panel"):
        assert fault in faults


def test_ties_are_drawn_in_steps() -> None:
    figure = plots.tie_widths(RANKS)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    checked = 0
    for name, ranks in RANKS.items():
        if name not in lines:
            continue
        line = lines[name]
        x, y = STEP_LOOKUP_MAP[line.get_drawstyle()](*line.get_data())
        for width in range(1, int(ranks.equal.max()) + 1):
            # As a reader reads it: a little left of w, before the curve falls.
            read = np.interp(width - 1e-6, x, y)
            assert read == pytest.approx(np.mean(ranks.equal >= width), abs=1e-5)
            checked += 1
    assert checked > 10


def test_a_system_named_random_is_not_the_chance_line() -> None:
    figure = plots.rank_distribution(RANKS)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert {CHANCE, "random"} <= set(lines)
    chance, system = (lines[name] for name in (CHANCE, "random"))
    assert chance.get_color() != system.get_color()
    assert chance.get_zorder() > system.get_zorder()  # visible if both are the same
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [CHANCE, *NAMES[:2], texts[3], *NAMES[3:]]


def test_markers_of_equal_rank_types_stand_apart() -> None:
    figure = plots.rank_types({"svd": RESULTS["svd"]})
    at = [tuple(line.get_xydata()[0]) for line in figure.axes[0].lines]
    assert len({y for _, y in at}) == len(at) == 5


def test_systems_have_the_names_that_were_given(tmp_path: Path) -> None:
    files = []
    for name in ("svd", "random"):
        files.append(str(tmp_path / f"{name}.ranks.parquet"))
        RANKS[name].save(files[-1])
    assert plot_command._legend(tuple(files), ()) == ("svd", "random")
    out = tmp_path / "x.svg"
    done = CliRunner().invoke(plot_command.command, ["ties", *files, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert ">svd" in out.read_text()
    assert "svd.ranks" not in out.read_text()
