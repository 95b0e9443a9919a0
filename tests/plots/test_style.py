"""A paper's text size, column width and font: in every figure, and nothing is lost by it."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from compare_cases import systems
from slow import slow_after

from kgtrec.cli import cli
from kgtrec.errors import KgtrecError, UsageError

pytest.importorskip("matplotlib")

from figure_cases import FIGURES, RANKS, drawn, faults_of

from kgtrec import plots
from kgtrec.plots.style import COLUMN, Style, using

PAPERS = (Style(size=9, family="serif"), Style(size=7, width=3.0), Style(size=9, width=5.5))


@pytest.mark.parametrize("style", slow_after(1, PAPERS), ids=["serif 9", "narrow 7", "wide 9"])
@pytest.mark.parametrize("name", slow_after(4, [
    "rank_distribution", "rank_types", "pair_matrix, one", "sensitivity", "beta_curves",
    "intervals", "expected_metric", "tie_widths", "relations",
]))  # fmt: skip
def test_nothing_is_lost_in_the_style_of_a_paper(name: str, style: Style) -> None:
    with using(style):
        assert faults_of(FIGURES[name]()) == []


def test_sizes_and_widths_are_what_was_asked_for() -> None:
    plain = plots.rank_distribution(RANKS)
    with using(Style(size=10, width=4.25)):
        made = plots.rank_distribution(RANKS)
        drawn(made)
    assert made.axes[0].xaxis.label.get_fontsize() == 10
    assert made.axes[0].get_xticklabels()[0].get_fontsize() == 9
    assert made.get_figwidth() / plain.get_figwidth() == pytest.approx(4.25 / COLUMN)
    assert plots.rank_distribution(RANKS).axes[0].xaxis.label.get_fontsize() == 8


def test_settings_are_read() -> None:
    assert Style.parse("size=9") == Style(size=9)
    assert Style.parse("width=3.25, family=serif") == Style(width=3.25, family="serif")
    assert Style.parse("family=DejaVu Sans") == Style(family="DejaVu Sans")


@pytest.mark.parametrize(("text", "said"), [
    ("", "is not a setting"), ("size", "is not a setting"), ("size=", "is not a setting"),
    ("colour=red", "is not a setting"), ("size=x", "is not a number"),
    ("size=nan", "4 to 20"), ("size=1", "4 to 20"), ("width=99", "1 to 12"),
    ("family=No Such Font", "font 'No Such Font' is not installed"),
])  # fmt: skip
def test_wrong_settings(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Style.parse(text)


@pytest.fixture
def file(tmp_path: Path) -> str:
    systems(1)["s0"].save(tmp_path / "s0.parquet")
    return str(tmp_path / "s0.parquet")


def test_the_option_holds_for_one_command(file: str, tmp_path: Path) -> None:
    def draw(name: str, *more: str) -> str:
        out = tmp_path / name
        done = CliRunner().invoke(cli, ["plot", "ranks", file, "-o", str(out), *more],
                                  catch_exceptions=False)  # fmt: skip
        assert done.exit_code == 0, done.output
        return out.read_text("utf-8")

    plain, large = draw("a.svg"), draw("b.svg", "--style", "size=12")
    assert draw("c.svg") == plain
    assert re.search(r"font(-size)?:[^;\"]*\b12px", large)
    assert not re.search(r"font(-size)?:[^;\"]*\b12px", plain)
    with pytest.raises(KgtrecError, match="is not a setting"):
        draw("d.svg", "--style", "big")
    assert not (tmp_path / "d.svg").exists()


@pytest.mark.slow
def test_fonts_are_embedded_as_truetype(tmp_path: Path) -> None:
    plots.save(plots.rank_distribution(RANKS), tmp_path / "x.pdf")
    pdf = (tmp_path / "x.pdf").read_bytes()
    parts = [pdf]
    for part in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(part))
        except zlib.error:
            continue
    whole = b"".join(parts)
    assert b"/FontFile2" in whole
    assert b"/Type3" not in whole
    assert b"/Subtype /Image" not in whole  # lines stay lines
    plots.save(plots.rank_distribution(RANKS), tmp_path / "x.eps")
    assert b"/FontType 42 def" in (tmp_path / "x.eps").read_bytes()


@pytest.mark.parametrize("betas", [(0.1,), (0.2, 0.35, 0.5, 0.65), (0.5, 0.51, 0.52, 0.9, 0.91)])
def test_lines_are_named_at_their_ends_and_names_do_not_meet(betas: tuple[float, ...]) -> None:
    made = plots.approximation_quality(betas)
    assert faults_of(made) == []
    (axes,) = made.axes
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted(f"β = {beta:g}" for beta in betas)
    heights = [text.xy[1] for text in axes.texts]
    assert heights == sorted(heights)


@pytest.mark.slow
def test_vector_files_embed_truetype_fonts(tmp_path: Path) -> None:
    for ending in ("pdf", "eps"):
        plots.save(FIGURES["pair_matrix, one"](), tmp_path / f"x.{ending}")
    pdf = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/BaseFont" in pdf
    assert b"/Type3" not in pdf
    eps = (tmp_path / "x.eps").read_text("latin-1")
    assert "/FontType 42 def" in eps
    assert "/FontType 3 def" not in eps


def test_outlines_of_text_need_no_font(tmp_path: Path) -> None:
    with using(Style.parse("text=outlines")):
        plots.save(FIGURES["expected_metric"](), tmp_path / "x.svg")
    plots.save(FIGURES["expected_metric"](), tmp_path / "y.svg")
    assert "<text" not in (tmp_path / "x.svg").read_text("utf-8")
    assert "<text" in (tmp_path / "y.svg").read_text("utf-8")
    with pytest.raises(UsageError, match="text=fonts or text=outlines"):
        Style.parse("text=pictures")


def test_names_at_the_ends_of_lines_stay_apart_and_inside() -> None:
    from kgtrec.plots.style import figure, label_ends

    for ends in ([1.0] * 5, [0.0] * 5, [0.0, 0.01, 0.5, 0.99, 1.0]):
        made, axes = figure()
        axes.set_ylim(0, 1.05)
        label_ends(axes, [(f"line {i}", y, "#000000") for i, y in enumerate(ends)])
        assert faults_of(made) == []
