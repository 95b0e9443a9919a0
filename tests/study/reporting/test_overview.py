"""The overview of a comparison: its values, letters and marks in every format."""

from __future__ import annotations

import csv
import io
import re
import string
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from compare_cases import samples, systems
from latex_cases import compiled
from scipy import stats

from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import UsageError
from kgtrec.study.comparison.report import SystemComparison, compare, letters
from kgtrec.study.comparison.samples import Samples, samples_of_ranks, samples_of_runs
from kgtrec.study.reporting.overview import ComparisonOverview, overview

FEW = Resampling(50)


def slow_better(values: np.ndarray, higher: bool, correction: str) -> set[tuple[int, int]]:
    """Pairs (better, worse) whose t test, by scipy, is below 0.05 after Holm's correction."""
    n = values.shape[1]
    tested = []
    for i, j in combinations(range(n), 2):
        p = stats.ttest_rel(values[:, i], values[:, j]).pvalue
        tested.append((float(p), i, j))
    found = set()
    for number, (p, i, j) in enumerate(sorted(tested)):
        factor = len(tested) - number if correction == "holm" else 1
        if not p * factor < 0.05:
            break  # Holm stops at the first pair that does not differ
        i_is_better = (values[:, i].mean() > values[:, j].mean()) == higher
        found.add((i, j) if i_is_better else (j, i))
    return found


def several(n: int, seed: int = 0, rows: int = 80) -> list[Samples]:
    """Samples of three measures of `n` systems; by the second, lower is better."""
    rng = np.random.default_rng(seed)
    strength = rng.permutation(n) * 1.5 / n
    kinds: list[tuple[str, bool]] = [
        ("both.realistic.micro.mrr", True),
        ("both.realistic.micro.mr", False),
        ("tail.realistic.macro.hits@10", True),
    ]
    return [
        samples(
            rng.normal(size=(rows, n)) + strength * rng.uniform(0.3, 1),
            name=name,
            higher_is_better=higher,
        )
        for name, higher in kinds
    ]


def expanded(text: str, names: list[str]) -> set[str]:
    """The letters or numbers behind a value; "2-5" are four."""
    if not text:
        return set()
    if "," not in text and "-" not in text:
        return set(text) if text.isalpha() else {text}
    found: set[str] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= {*names[names.index(first) : names.index(last or first) + 1]}
    return found


@pytest.mark.parametrize("n", [2, 5, 10, 11, 26, 27, 40])
@pytest.mark.parametrize("correction", ["holm", "none"])
def test_letters_are_what_a_slow_test_finds(n: int, correction: str) -> None:
    measures = several(n, n)
    table = overview(compare(measures, test="t", correction=correction, resampling=FEW))
    names = [*string.ascii_lowercase][:n] if n <= 26 else [str(i + 1) for i in range(n)]
    order = sorted(range(n), key=lambda i: -measures[0].values[:, i].mean())
    assert table.names() == [f"({name}) s{i}" for name, i in zip(names, order, strict=True)]
    rows = list(csv.DictReader(io.StringIO(table.values().to_csv())))
    n_better = 0
    for measure, printed in zip(measures, table.printed_columns(), strict=True):
        better = slow_better(measure.values, measure.higher_is_better, correction)
        n_better += len(better)
        for row, i in enumerate(order):
            due = {names[order.index(j)] for first, j in better if first == i}
            assert expanded(printed.marks[row], names) == due
            assert expanded(rows[row][f"{measure.name}.better_than"], names) == due
            assert float(rows[row][measure.name]) == pytest.approx(measure.values[:, i].mean())
            assert (rows[row]["letter"], rows[row]["system"]) == (names[row], f"s{i}")
    assert n_better or n == 2


def test_values_of_every_format_are_the_same() -> None:
    measures = several(5, 3)
    table = overview(compare(measures, test="t", resampling=FEW))
    text = [re.split(r" {2,}", line) for line in table.to_text().splitlines()[2:7]]
    markdown = [line.strip("| ").split(" | ") for line in table.to_markdown().splitlines()[2:7]]
    latex = re.findall(r"^\(\w\) s\d.*(?= \\\\$)", table.to_latex(), re.MULTILINE)
    order = sorted(range(5), key=lambda i: -measures[0].values[:, i].mean())
    for row, i in enumerate(order):
        cells = latex[row].split(" & ")
        assert text[row][0] == markdown[row][0] == cells[0] == f"({'abcde'[row]}) s{i}"
        for column, measure in enumerate(measures):
            means = measure.values.mean(axis=0)
            is_best = i == (means.argmax() if measure.higher_is_better else means.argmin())
            number, mark = f"{means[i]:.4f}", table.printed_columns()[column].marks[row]
            place = f"{number}*" if is_best else number
            assert f"{place} {mark}".strip() in " ".join(" ".join(text[row][1:]).split())
            raised = f"<sup>{mark}</sup>" if mark else ""
            bold = f"**{number}**" if is_best else number
            cell = re.sub("</?ins>", "", markdown[row][column + 1]).replace("\\-", "-")
            assert cell == bold + raised
            raised = rf"\textsuperscript{{{mark}}}" if mark else ""
            bold = rf"\textbf{{{number}}}" if is_best else number
            assert cells[2 * column + 2] == raised
            assert cells[2 * column + 1].replace(r"\underline{", "").strip("}") == bold.strip("}")


def test_letters_of_the_parts_are_those_of_the_overview() -> None:
    """Each measure has its own order, but a letter is the same system by all measures."""
    comparisons = compare(several(6, 1), test="t", resampling=FEW)
    table = overview(comparisons)
    assert len({tuple(each.order) for each in comparisons}) > 1
    lettered = {name.split()[1]: name[1] for name in table.names()}
    for comparison, column in zip(comparisons, table.printed_columns(), strict=True):
        rows = comparison.value_table().rows
        assert {row[1]: row[0] for row in rows} == lettered
        beats = {row[1]: row[-1] for row in rows}
        assert [beats[name.split()[1]] for name in table.names()] == column.marks
    alone: SystemComparison = compare(several(6, 1)[2], test="t", resampling=FEW)
    assert [row[0] for row in alone.value_table().rows] == [*"abcdef"]


@pytest.mark.parametrize(
    ("rows", "many", "text"),
    [
        ([0, 2, 3, 4], 10, "acde"),
        ([0, 2, 3, 4], 11, "a,c-e"),
        ([0, 1, 5], 26, "a,b,f"),
        ([1, 2, 3, 8, 10, 11, 12, 39], 40, "2-4,9,11-13,40"),
        ([], 40, ""),
    ],
)
def test_neighbours_of_many_systems_are_a_range(rows: list[int], many: int, text: str) -> None:
    assert letters(rows, many) == text


@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize("intervals", [False, True])
def test_latex_compiles_and_stays_in_its_line(tmp_path: Path, n: int, intervals: bool) -> None:
    table = overview(compare(several(n, 2), test="t", resampling=FEW), intervals=intervals)
    text = table.to_latex()
    assert ("bootstrap intervals" in text) == (r"\scriptsize" in text) == intervals
    assert "Overfull" not in compiled(text, tmp_path)


def test_measures_are_in_the_order_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("1 0 d 1\n2 0 e 1\n")
    for name in "ab":
        (tmp_path / name).write_text(f"1 Q0 d 1 2 {name}\n2 Q0 d 1 2 {name}\n2 Q0 e 2 1 {name}\n")
    runs = {name: tmp_path / name for name in "ab"}
    asked = ["kg_mrr", "P.5", "recip_rank", "AP@20", "P.1,5"]
    names = [of_measure.name for of_measure in samples_of_runs(tmp_path / "q", runs, asked)]
    assert names == ["kg_mrr_low", "kg_mrr_high", "P_5", "recip_rank", "AP@20", "P_1"]


def test_the_caption_names_the_test_and_what_it_is_over() -> None:
    ranks = systems(3)
    by_keys = samples_of_ranks(ranks, ["mrr", "tail.macro.mrr"])
    table = overview(compare(by_keys, test="wilcoxon", correction="bh", level=0.01, resampling=FEW))
    text = " ".join(str(table).split())
    n, questions = len(by_keys[0]), len(by_keys[1])
    assert f"Means over {n} instances or {questions} questions. Best with a star." in text
    assert "Wilcoxon" in text
    assert "p < 0.01)." in text
    assert "Superscripts: significantly better than these systems" in table.to_markdown()
    assert str(overview(table.comparisons, caption="Ours.")).endswith("\nOurs.\n")
    assert r"\label{tab:ours}" in overview(table.comparisons, label="tab:ours").to_latex()


def test_comparisons_of_different_kinds_are_refused() -> None:
    first, second = several(3)[:2]
    compared = compare(first, test="t", resampling=FEW)
    assert isinstance(overview(compared), ComparisonOverview)
    wrong = [
        ([], "no comparison is given"),
        ([first], "has no comparison of systems"),
        ([compared, compare(several(4)[1], test="t", resampling=FEW)], "compare different systems"),
        ([compared, compare(second, test="wilcoxon", resampling=FEW)], "are compared differently"),
        (
            [compared, compare(second, test="t", level=0.01, resampling=FEW)],
            "level 0.05, but t test",
        ),
        (
            [compared, compare(second, test="t", correction="none", resampling=FEW)],
            "none correction",
        ),
    ]
    for comparisons, text in wrong:
        with pytest.raises(UsageError, match=text):
            overview(comparisons)  # type: ignore[arg-type]
