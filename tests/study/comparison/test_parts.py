"""Systems on parts of the questions and at other relation ratios, against loops over instances."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import mean

import pytest
from click.testing import CliRunner
from compare_cases import graph, systems

from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.parts import values_by_part, values_by_ratios


def reciprocal(ranks: Ranks) -> list[float]:
    return [1 / (g + 1 + e / 2) for g, e in zip(ranks.greater.tolist(), ranks.equal.tolist(),
            strict=True)]  # fmt: skip


def slow_tau(x: list[float], y: list[float]) -> float:
    """Kendall's tau-b by counting pairs."""
    sign = lambda v: (v > 0) - (v < 0)  # noqa: E731
    pairs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i, j in combinations(range(len(x)), 2)]
    above = sum(a * b for a, b in pairs)
    below = math.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    return above / below if below else math.nan


def test_parts_hold_what_their_instances_give() -> None:
    ranks = systems(4)
    (part,) = values_by_part(ranks, "relation,side", ["mrr"])
    first = ranks["s0"]
    whole = [mean(reciprocal(one)) for one in ranks.values()]
    for row in part.table.rows:
        relation, side, _, instances, *values, best, tau = row
        codes = {"head": (0,), "tail": (1,), "both": (0, 1)}[str(side)]
        members = [i for i, (r, s) in enumerate(zip(first.relation.tolist(), first.side.tolist(),
                   strict=True)) if str(r) == relation and s in codes]  # fmt: skip
        due = [mean(reciprocal(one)[i] for i in members) for one in ranks.values()]
        assert instances == len(members)
        assert values == pytest.approx(due)
        assert best == ", ".join(n for n, v in zip(ranks, values, strict=True) if v == max(values))
        assert tau == pytest.approx(slow_tau(due, whole), nan_ok=True)


def test_lower_is_better_where_it_is() -> None:
    (part,) = values_by_part(systems(3), "side", ["mr"])
    for row in part.table.rows:
        values = dict(zip(part.systems, row[3:6], strict=True))
        assert row[6] in [n for n, v in values.items() if v == min(values.values())]


def test_neither_end_is_best_of_a_deviation() -> None:
    (part,) = values_by_part(systems(3), "side", ["std"])
    assert [row[6] for row in part.table.rows] == [""] * len(part.table.rows)


def test_ratios_weigh_relations() -> None:
    ranks = systems(3)
    counts = {"0": 5.0, "1": 1.0, "3": 2.0, "unknown": 9.0}
    (part,) = values_by_ratios(ranks, counts, ["mrr"])
    own, weighted = part.table.rows
    for place, one in enumerate(ranks.values()):
        values = reciprocal(one)
        relations = [str(r) for r in one.relation.tolist()]
        assert own[1 + place] == pytest.approx(mean(values))
        size = Counter(relations)
        weights = [counts.get(r, 0) / size[r] for r in relations]
        due = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        assert weighted[1 + place] == pytest.approx(due)


def test_other_questions_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        values_by_part({"a": systems(1)["s0"], "b": systems(1, seed=2)["s0"]}, "side", ["mrr"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("parts")
    for name, ranks in systems(3).items():
        ranks.save(place / f"{name}.parquet")
    (place / "graph").mkdir()
    for split, rows in graph().splits.items():
        lines = "".join("{}\t{}\t{}\n".format(*row) for row in rows.tolist())
        (place / f"graph/{split}.txt").write_text(lines)
    return place


def invoke(folder: Path, *words: str) -> str:
    files = [str(folder / f"s{i}.parquet") for i in range(3)]
    done = CliRunner().invoke(cli, ["compare", *files, *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command(folder: Path) -> None:
    text = invoke(folder, "--by", "side", "-m", "mrr")
    assert [line.split()[0] for line in text.splitlines()[2:6]] == ["side", "head", "tail", "both"]
    text = invoke(folder, "--ratios", str(folder / "graph/train.txt"))
    assert "both.realistic.micro.mrr" in text
    assert "given" in text
    assert invoke(folder, "--by", "relation", "-m", "mrr", "--format", "csv").startswith("measure,")


@pytest.mark.parametrize(("words", "said"), [
    (("--by", "category"), "need the graph"),
    (("--by", "sides"), "cannot slice by 'sides'"),
    (("--by", "side", "--ratios", "x"), "ask for one"),
    (("--by", "side", "--plot", "x.pdf"), "no figure"),
    (("--by", "side", "--qrels", "q"), "need files of ranks"),
    (("--ratios", "nowhere.txt"), "nowhere.txt"),
    (("--by", "side", "--test", "t"), "--test has no part"),
])  # fmt: skip
def test_wrong_calls(folder: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(KgtrecError) as caught:
        invoke(folder, *words)
    assert said in str(caught.value)


def test_figures_of_formulas(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")

    def draw(*words: str) -> None:
        CliRunner().invoke(cli, ["openworld", *words], catch_exceptions=False)

    draw("--figure", "expected", "-m", "hits@10", "--plot", str(tmp_path / "a.svg"))
    assert "expected Hits@10" in (tmp_path / "a.svg").read_text("utf-8")
    draw("--figure", "approximation", "--sparsity", "0.25", "--plot", str(tmp_path / "b.svg"))
    assert "β = 0.25" in (tmp_path / "b.svg").read_text("utf-8")
    for words, said in [
        (("--figure", "expected"), "needs --plot"),
        (("--figure", "expected", "--study", "small", "--plot", "x.svg"), "is of formulas"),
        (("--figure", "approximation", "-m", "hits@1", "--plot", "x.svg"), "is of MRR"),
        (("--figure", "expected", "--answers", "2.5", "--plot", "x.svg"), "whole --answers"),
    ]:
        with pytest.raises(KgtrecError) as caught:
            draw(*words)
        assert said in str(caught.value)
