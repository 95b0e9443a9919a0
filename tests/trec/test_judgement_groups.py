"""Preferences and several assessors against slow definitions.

tests/golden/cli/preferences.txt has worked examples, faults and refusals.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from slow import slow_after
from trec_oracle import Contradiction, Line, assessor_values, preference_values

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.trec.measures import judgement_groups, preferences
from kgtrec.trec.measures.rows import TABLE

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")


DOCS = [f"d{i}" for i in range(9)]

JG = ["map_avgjg", "P_avgjg.1,2,5", "Rprec_mult_avgjg.-0.5,0.5,1,2.5"]


def random_lines(rng: np.random.Generator, query: str, n_subgroups: int) -> list[Line]:
    """Groups that share documents: ties, repeated lines, cycles, sometimes levels below 0."""
    lines: list[Line] = []
    worth = rng.permutation(9) // rng.integers(1, 5)  # mostly of one mind
    for g in range(rng.integers(1, 4)):
        odd = rng.random() < 0.25
        for s in range(rng.integers(1, n_subgroups + 1)):
            for d in rng.choice(9, rng.integers(1, 7), replace=False):
                level = float(rng.integers(-1, 3) if odd else worth[d])
                lines.append((query, f"g{g}", f"s{s}", DOCS[d], level))
        if rng.random() < 0.15:
            again = lines[rng.integers(len(lines))]
            lines.append((*again[:4], again[4] + (rng.random() < 0.3)))
    return lines


def random_run(rng: np.random.Generator) -> dict[str, float]:
    some = rng.choice(9, rng.integers(1, 9), replace=False)
    run = {DOCS[i]: float(rng.integers(0, 4)) for i in some}
    return run | {f"u{i}": float(rng.integers(0, 4)) for i in range(rng.integers(0, 3))}


def write(folder: Path, form: str, lines: list[Line], runs: dict[str, dict[str, float]]):
    qrels, run = folder / "judged", folder / "run"
    with open(qrels, "w") as file:
        for query, group, subgroup, document, level in lines:
            middle = f"{group} {subgroup}" if form == "prefs" else group
            text = str(int(level)) if form == "qrels_jg" else repr(level)
            file.write(f"{query} {middle} {document} {text}\n")
    with open(run, "w") as file:
        for query, documents in runs.items():
            file.writelines(f"{query} Q0 {d} 0 {s} tag\n" for d, s in documents.items())
    return qrels, run


@pytest.mark.parametrize("trials", slow_after(1, [40, 150]))
@pytest.mark.parametrize("form", ["prefs", "qrels_prefs"])
def test_preferences_are_those_of_the_slow_definition(form, trials, tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(1)
    n_subgroups = 3 if form == "prefs" else 1
    seen: Counter[str] = Counter()
    for trial in range(trials):
        if trial == trials // 2:  # the closure by rows of bits
            monkeypatch.setattr(preferences, "_MATRIX", 1)
        names = [f"q{i}" for i in range(rng.integers(1, 4))]
        lines = [line for q in names for line in random_lines(rng, q, n_subgroups)]
        runs = {q: random_run(rng) for q in names}
        most = [None, 1, 2, 4][rng.integers(4)]
        rng.shuffle(lines)
        qrels, run = write(tmp_path, form, lines, runs)
        try:
            due = {
                q: preference_values([one for one in lines if one[0] == q], runs[q], most)
                for q in names
            }
        except Contradiction:
            seen["refused"] += 1
            with pytest.raises(judgement_groups.Contradiction) as caught:
                trec.evaluate(qrels, run, ["all_prefs"], qrels_format=form, most=most)
            assert caught.value.exit_code == 4
            assert caught.value.line is not None
            continue
        values = trec.evaluate(qrels, run, ["all_prefs"], qrels_format=form, most=most)
        seen["values"] += 1
        assert list(values) == names
        for q in names:
            for name, value in due[q].items():
                assert values[q][name] == pytest.approx(value, rel=1e-14, abs=0), (name, trial)
                seen[f"{name} between"] += 0 < value < 1
    assert seen["values"] > 0.37 * trials
    assert seen["refused"] > 0.02 * trials
    for name, row in TABLE.items():
        if row.format == "prefs" and row.output == "double":
            assert seen[f"{name} between"] > trials / 8, name


@pytest.mark.parametrize("levels", [(1.0, -1.0), (-1.0, 1.0), (2.0, 1.0, -2.0)])
def test_of_a_repeated_document_the_lowest_level_counts(levels, tmp_path) -> None:
    """Above 0 and below it in one subgroup: neither relevant nor not."""
    lines = [("q", "g", "s", "b", 2.0), ("q", "g", "s", "c", 0.0), ("q", "g", "t", "b", 3.0)]
    lines += [("q", "g", "t", "a", level) for level in levels]
    documents = {"a": 3.0, "b": 2.0, "c": 1.0}
    values = trec.evaluate(
        *write(tmp_path, "prefs", lines, {"q": documents}), ["all_prefs"], qrels_format="prefs"
    )["q"]
    for name, due in preference_values(lines, documents).items():
        assert values[name] == pytest.approx(due, rel=1e-14, abs=0), name


def test_several_assessors_are_those_of_the_slow_definition(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        names = [f"q{i}" for i in range(rng.integers(1, 4))]
        lines = []
        for q in names:
            for g in range(rng.integers(1, 4)):
                some = rng.choice(9, rng.integers(1, 8), replace=False)
                lines += [(q, f"g{g}", "", DOCS[d], int(rng.integers(-1, 3))) for d in some]
        runs = {q: random_run(rng) for q in names}
        most = [None, 1, 2, 4][rng.integers(4)]
        level, judged_only = int(rng.integers(0, 3)), bool(rng.integers(2))
        qrels, run = write(tmp_path, "qrels_jg", lines, runs)
        values = trec.evaluate(
            qrels, run, JG, qrels_format="qrels_jg", most=most, level=level, judged_only=judged_only
        )
        for q in names:
            mine = [line for line in lines if line[0] == q]
            due = assessor_values(mine, runs[q], most, level, judged_only)
            assert values[q].keys() == due.keys()
            for name, value in due.items():
                assert values[q][name] == pytest.approx(value, rel=1e-14, abs=1e-15), name


def test_queries_with_ties_are_those_that_some_order_changes(tmp_path: Path) -> None:
    """All orders of the ties, by slightly different scores: no message if nothing changes."""
    rng = np.random.default_rng(8)
    said_of = 0
    for _ in range(40):
        form, name = [("qrels_prefs", "all_prefs"), ("qrels_jg", "qrels_jg")][rng.integers(2)]
        n = int(rng.integers(2, 4))
        levels = {DOCS[d]: int(rng.integers(0, 3)) for d in range(n)}
        ties = {DOCS[d]: float(rng.integers(0, 2)) for d in range(n)}
        values = set()
        for order in permutations(range(n)):
            apart = {DOCS[d]: ties[DOCS[d]] + place / 100 for d, place in enumerate(order)}
            groups = {"q": {"g": levels}}
            row = trec.evaluate(groups, {"q": apart}, [name], qrels_format=form)["q"]
            values.add(tuple(round(value, 9) for value in row.values()))
        lines = [("q", "g", "", *judged) for judged in levels.items()]
        words = [*map(str, write(tmp_path, form, lines, {"q": ties}))]
        said = "ties" in CliRunner().invoke(cli, ["eval", "-R", form, "-m", name, *words]).stderr
        assert said == (len(values) > 1)
        said_of += said
    assert said_of > 8


def test_white_space_of_any_kind_parts_fields(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_bytes(b" \tq\v0\fa 1 \r\nq 0 b 0")
    run = {"q": {"a": 2.0, "b": 1.0}}
    rows = trec.evaluate(tmp_path / "qrels", run, ["prefs_simp"], qrels_format="qrels_prefs")
    assert rows == {"q": {"prefs_simp": 1.0}}
