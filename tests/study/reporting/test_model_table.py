"""The table of models: values, places and marks against plain Python; valid markup."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev

import pytest
from compare_cases import systems
from latex_cases import compiled

import kgtrec
from kgtrec._internal.table import Table
from kgtrec.errors import UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import samples_of_ranks
from kgtrec.study.reporting.columns import kind_of
from kgtrec.study.reporting.formats import (
    FORMATS,
    PAGE_WIDTH,
    csv_text,
    latex,
    latex_width,
    typst,
)
from kgtrec.study.reporting.model_table import ModelTable, Significance, table_of_models
from kgtrec.study.reporting.overview import overview

HOSTILE = (
    r"a & b \ % $x$ # _under_ {c} ~ ^",
    "[opt]{arg} -- --- ?` !` << >> ,, '' \"q\"",
    "*star* | pipe <b>bold</b> `code` [link](x)",
    '"); panic("x") // comment /* */ #let',
    r"\input{/etc/passwd} \end{tabular}",
    "line\nbreak\ttab",
)


@pytest.fixture(scope="module")
def ranks() -> dict[str, Ranks]:
    return systems(4)


def printed(text: str) -> float:
    return float(text.replace(",", ""))


def test_values_are_those_of_results(ranks: dict[str, Ranks]) -> None:
    keys = ("mrr", "macro.mrr", "hits@3", "tail.mr", "map")
    table = table_of_models({"g": ranks}, keys, sides=("both", "head"))
    for column in table.columns:
        due = [kgtrec.Result(ranks[name])[column.measure] for name in table.models]
        assert list(column.values) == due
    measures = [column.measure.key for column in table.columns]
    assert measures[:2] == ["both.realistic.micro.mrr", "both.realistic.micro.hits@3"]
    assert len(measures) == len(set(measures)) == 2 * 4 + 1


def test_results_are_tabled_like_their_ranks(ranks: dict[str, Ranks]) -> None:
    results = {name: kgtrec.evaluate(each) for name, each in ranks.items()}
    table, due = (table_of_models({"g": models}, ["mrr", "mr"]) for models in (results, ranks))
    assert table._repr_html_() == due._repr_html_()
    with pytest.raises(UsageError, match="has no models by graph; pass a dict of dicts"):
        table_of_models(results)  # type: ignore[arg-type]


def test_micro_and_macro_never_share_a_heading(ranks: dict[str, Ranks]) -> None:
    keys = ("mrr", "macro.mrr", "hits@1", "expected.mrr", "macro.hits@1", "question.mrr")
    graphs = {"g": ranks, "h": systems(2, seed=5)}
    table = table_of_models(graphs, keys, sides=("tail", "both", "head"))
    names, kinds = table.levels()
    assert [text for text, _ in names] == ["g", "h"]
    first = 0
    for text, size in kinds:
        below = table.columns[first : first + size]
        assert (
            len(
                {
                    (c.dataset, c.measure.averaging, c.measure.side, c.measure.rank_type)
                    for c in below
                }
            )
            == 1
        )
        assert below[0].measure.averaging in text
        first += size
    assert first == len(table.columns)
    titles = [column.title for column in table.printed_columns()]
    headings = zip([(c.dataset, kind_of(c.measure)) for c in table.columns], titles, strict=True)
    assert len(set(headings)) == len(table.columns)


def slow_places(values: list[str], higher: bool) -> list[int]:
    """Places by counting distinct better printed values."""
    numbers = [printed(v) for v in values]
    if len(set(numbers)) < 2:
        return [0] * len(values)
    if len(numbers) == 2:
        return [int(v == (max if higher else min)(numbers)) for v in numbers]
    ahead = [len([w for w in numbers if (w > v if higher else w < v)]) for v in numbers]
    return [{0: 1, 1: 2}.get(count, 0) for count in ahead]


def test_best_and_second_are_those_that_are_read_as_such(ranks: dict[str, Ranks]) -> None:
    for digits in (0, 1, 2, 4, None):
        table = table_of_models({"g": ranks}, ("mrr", "mr", "macro.mrr"), digits=digits)
        for column in table.columns:
            due = slow_places(column.format_values(), bool(column.measure.higher_is_better))
            assert column.mark_best() == due
    two = table_of_models({"g": {name: ranks[name] for name in ("s0", "s1")}}, ("mrr", "mr"))
    assert [sum(column.mark_best()) for column in two.columns] == [1, 1]
    assert "Best in bold. " in f"{two.caption()} "
    assert "underlined" in table_of_models({"g": ranks}, ["mrr"]).caption()
    assert table_of_models({"g": ranks}, ["std"]).columns[0].mark_best() == [0] * 4
    alone = table_of_models({"g": {"a": ranks["s0"]}}, ["mrr"], significance=Significance("t"))
    assert alone.columns[0].mark_best() == [0]
    assert alone.columns[0].beaten is None
    assert "Superscripts" not in alone.caption()


def slow_beaten(ranks: Mapping[str, Ranks], level: float) -> list[list[int]]:
    """Marks by scipy's paired t-test of reciprocal ranks, and Holm by hand."""
    from scipy.stats import ttest_rel

    names = list(ranks)
    gains = {
        n: [1 / (g + 1 + e / 2) for g, e in zip(r.greater.tolist(), r.equal.tolist(), strict=True)]
        for n, r in ranks.items()
    }
    pairs = list(combinations(range(len(names)), 2))
    p = {
        pair: float(ttest_rel(gains[names[pair[0]]], gains[names[pair[1]]]).pvalue)
        for pair in pairs
    }
    beaten: list[list[int]] = [[] for _ in names]
    for number, pair in enumerate(sorted(pairs, key=p.__getitem__)):
        if p[pair] * (len(pairs) - number) >= level:
            break
        i, j = pair
        if sum(gains[names[i]]) < sum(gains[names[j]]):
            i, j = j, i
        beaten[i].append(j)
    return [sorted(rows) for rows in beaten]


@pytest.mark.parametrize("seed", range(3))
def test_superscripts_are_what_a_slow_test_finds(seed: int) -> None:
    ranks = systems(4, seed=seed)
    for level in (0.001, 0.05, 0.5):
        table = table_of_models({"g": ranks}, ["mrr"], significance=Significance("t", level=level))
        assert table.columns[0].beaten is not None
        assert [list(rows) for rows in table.columns[0].beaten] == slow_beaten(ranks, level)


def test_models_that_are_not_on_every_graph(ranks: dict[str, Ranks]) -> None:
    other = systems(2, seed=9)
    table = table_of_models(
        {"g": ranks, "h": other}, ["mrr", "amri"], significance=Significance("t")
    )
    assert table.models == ("s0", "s1", "s2", "s3")
    mrr, amri, other_mrr, _ = table.columns
    assert amri.beaten is None  # it is no mean
    assert "AMRI not tested" in table.caption()
    assert [math.isnan(v) for v in other_mrr.values] == [False, False, True, True]
    assert other_mrr.format_values()[2:] == ["\N{EN DASH}"] * 2
    assert other_mrr.mark_best()[2:] == [0, 0]
    rows = list(csv.reader(io.StringIO(csv_text(table))))
    assert rows[0][:2] == ["model", "g:both.realistic.micro.mrr"]
    assert rows[0][3] == "h:both.realistic.micro.mrr"
    assert rows[3][3] == ""
    assert float(rows[1][1]) == mrr.values[0]


@cache
def hostile_table() -> ModelTable:
    ranks = list(systems(4).values())
    rows = {name: ranks[i % 4] for i, name in enumerate(HOSTILE)}
    other = {HOSTILE[0]: ranks[0], HOSTILE[2]: ranks[1]}
    return table_of_models(
        {"graph_1 & <i>": rows, "[b] #2": other},
        ("mrr", "hits@1", "macro.mrr", "mr", "stratified.mrr(0.5,0.5)"),
        sides=("head", "both"),
        significance=Significance("t"),
    )


def test_latex_compiles_and_shows_hostile_names(tmp_path: Path) -> None:
    compiled(latex(hostile_table()), tmp_path, r"\usepackage[a0paper]{geometry}")
    if shutil.which("pdftotext") is None:
        return
    subprocess.run(["pdftotext", "-layout", "t.pdf"], cwd=tmp_path, check=True)
    text = (tmp_path / "t.txt").read_text("utf-8")
    for part in (
        r"a & b \ % $x$ # under {c}",
        "-- ---",
        "<< >>",
        r"\end{tabular}",
        "<b>bold</b>",
        "graph_1 & <i>",
    ):
        # pdftotext sees an underscore as a rule
        pattern = re.escape(part).replace("under", "_?under_?").replace("_", "[_ ]?")
        assert re.search(pattern.replace("[_ ]?[_ ]?", "[_ ]?"), text), part


EVERY_GREEK = "".join(map(chr, [*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA)]))


def test_signs_that_pdflatex_does_not_know_compile(tmp_path: Path, ranks: dict[str, Ranks]) -> None:
    names = ("β-DistMult ∈ l₂ ≥ 0", "Ŝářka Nguyễn → ∞", f"{EVERY_GREEK}άϊ")
    models = dict(zip(names, ranks.values(), strict=False))
    text = latex(table_of_models({"g₁": models, "∅": models}, ["mrr"]))
    for part in (
        r"\ensuremath{\beta}-DistMult \ensuremath{\in} l\ensuremath{_{2}} \ensuremath{\ge} 0",
        r"Nguy\~{\^{e}}n \ensuremath{\rightarrow} \ensuremath{\infty}",
        r"\ensuremath{\mathrm{A}}\ensuremath{\mathrm{B}}\ensuremath{\Gamma}",
        r"\ensuremath{o}\ensuremath{\pi}\ensuremath{\rho}\ensuremath{\varsigma}",
        r"\'{\ensuremath{\alpha}}",
    ):
        assert part in text, part
    compiled(text, tmp_path, r"\usepackage[T1]{fontenc}")


def test_sides_that_do_not_fit_are_below_each_other(tmp_path: Path, ranks) -> None:
    sides, keys = ("head", "tail", "both"), ("mrr", "hits@1", "hits@3", "hits@10", "mr")
    wide = table_of_models({"g": ranks}, keys, sides=sides)
    text = latex(wide)
    lines = text.splitlines()
    groups = [line for line in lines if r"\textit{" in line]
    assert [re.findall(r"textit{(.*?)}", line)[0] for line in groups] == [
        "head, micro",
        "tail, micro",
        "both sides, micro",
    ]
    assert text.count("Hits@10") == 1  # the headings are the same for all groups
    values = [re.findall(r"\d[\d.,]*", line)[1:] for line in lines if line.startswith("s")]
    columns = [column.format_values() for column in wide.columns]
    due = [[columns[5 * side + k][row] for k in range(5)] for side in range(3) for row in range(4)]
    assert values == due
    assert "Overfull" not in compiled(text, tmp_path, r"\usepackage[textwidth=8.4cm]{geometry}")
    assert r"\textit{" not in latex(table_of_models({"g": ranks}, ["mrr"], sides=sides))
    assert latex_width(wide) < PAGE_WIDTH


def test_widths_are_near_those_of_latex(tmp_path: Path, ranks: dict[str, Ranks]) -> None:
    keys = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri", "gmr")
    for size, significance in ((3, None), (7, None), (7, Significance("t"))):
        table = table_of_models({"g": ranks}, keys[:size], significance=significance)
        text = latex(table).replace(r"\ifdim", r"\typeout{WIDTH \the\wd0}\ifdim")
        width = float(re.findall(r"WIDTH ([\d.]+)pt", compiled(text, tmp_path))[0])
        assert width / 1.3 < latex_width(table) < width * 1.3


def test_a_table_in_two_columns_stays_in_its_column(tmp_path: Path, ranks) -> None:
    table = table_of_models({"g": ranks}, SEVEN)
    head = r"\documentclass[twocolumn]{article}"
    text = latex(table)
    log = compiled(text, tmp_path, head=head)
    assert "Overfull" not in log
    assert r"\textwidth" not in text


@pytest.mark.parametrize("n_columns", [2, 14])
def test_any_table_in_two_columns_stays_in_its_column(tmp_path: Path, n_columns: int) -> None:
    heads = ["model", *(f"MRR {i}=mrr_{i}:4" for i in range(n_columns))]
    columns = [[0.25, 0.5]] * n_columns
    text = Table.from_columns(heads, ["a [1]", "b_2 & c"], *columns).to_latex()
    table = f"\\begin{{table}}\\centering\n{text}\\end{{table}}\n"
    log = compiled(table, tmp_path, head=r"\documentclass[twocolumn]{article}")
    assert "Overfull" not in log
    assert text.count("0.2500 & ") == n_columns - 1
    assert r"\hline" not in text


def test_captions_and_labels_are_chosen(ranks: dict[str, Ranks]) -> None:
    table = replace(table_of_models({"g": ranks}, ["mrr"]), text="Ours & theirs", label="tab:a")
    for text in (r"\caption{Ours \& theirs}", r"\label{tab:a}"):
        assert text in latex(table)
    assert '"Ours & theirs"' in typst(table)
    assert typst(table).endswith(") <tab:a>\n")


SEVEN = ("mr", "mrr", "hits@1", "hits@3", "hits@10", "amr", "amri")


@pytest.mark.parametrize("sides", [["both"], ["head", "tail"]])
def test_latex_is_never_too_wide(tmp_path, ranks, sides):
    names = dict(zip(("ComplEx", "DistMult", "RotatE", "TransE"), ranks.values(), strict=True))
    table = table_of_models({"g": names}, SEVEN, sides=sides, significance=Significance("t"))
    assert "Overfull" not in compiled(latex(table), tmp_path)


def test_compared_systems_fit_the_page(tmp_path: Path, ranks: dict[str, Ranks]) -> None:
    keys = ("mrr", "tail.macro.hits@10", "optimistic.mrr", "hits@1", "tail.mr")
    text = overview(compare(samples_of_ranks(ranks, keys), test="t"), intervals=True).to_latex()
    assert "Overfull" not in compiled(text, tmp_path)


def compile_typst(text: str, folder: Path) -> None:
    compiler = pytest.importorskip("typst", reason="typst compiles what is written for it")
    (folder / "t.typ").write_text("#set page(width: auto, height: auto)\n" + text, "utf-8")
    svg = compiler.compile(str(folder / "t.typ"), format="svg")
    assert b"<svg" in (svg if isinstance(svg, bytes) else svg[0])


def test_typst_compiles_hostile_names(tmp_path: Path) -> None:
    compile_typst(typst(hostile_table()), tmp_path)


def test_names_with_line_ends_and_without_text_are_written(ranks: dict[str, Ranks]) -> None:
    two = {"caf\udce9": ranks["s0"], "line\nbreak\ttab": ranks["s1"]}
    texts = {name: write(table_of_models({"g": two}, ["mrr"])) for name, write in FORMATS.items()}
    for text in texts.values():
        text.encode("utf-8", "surrogateescape")
    assert "| line break tab | " in texts["markdown"]


def test_several_runs_of_a_model_are_a_mean_with_its_deviation(ranks, tmp_path):
    one, *more = ranks.values()
    table = table_of_models(
        {"g": {"several": more, "alone": one}},
        ["mrr", "mr"],
        significance=Significance("bootstrap"),
    )
    for column in table.columns:
        values = [kgtrec.Result(run)[column.measure] for run in more]
        assert column.values[0] == pytest.approx(mean(values))
        assert column.deviations[0] == pytest.approx(stdev(values))
        assert math.isnan(column.deviations[1])
    alone = "; models without a deviation have a single run."
    assert f"Mean and standard deviation over {len(more)} runs{alone}" in table.caption()
    uneven = table_of_models({"g": {"two": more[:2], "all": more}}, ["mrr"])
    assert f"deviation over 2 to {len(more)} runs." in uneven.caption()
    compile_typst(typst(table), tmp_path)
