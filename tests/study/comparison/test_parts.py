"""Systems on parts of the questions: values, and agreement of two sets of labels on orders."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import N_ENTITIES, graph, systems
from refusals import assert_refused, refusals

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.parts import (
    SystemValues,
    read_value_table,
    values_at_ratios,
    values_by_part,
    values_by_ratios,
    values_of_table,
)
from kgtrec.study.comparison.rankings import (
    WHOLE,
    rankings_by_part,
)


def slow_tau(x: list[float], y: list[float]) -> float:
    """Kendall's tau-b by counting pairs."""
    pairs = [((x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j]))
             for i, j in combinations(range(len(x)), 2)]  # fmt: skip
    above = sum(a * b for a, b in pairs)
    below = math.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    return above / below if below else math.nan


def reciprocal(ranks: Ranks) -> list[float]:
    return [1 / (g + 1 + e / 2) for g, e in zip(ranks.greater.tolist(), ranks.equal.tolist(),
            strict=True)]  # fmt: skip


def test_parts_hold_what_their_instances_give() -> None:
    ranks = systems(4)
    (part,) = values_by_part(ranks, "relation,side", ["mrr"])
    first = ranks["s0"]
    whole = [mean(reciprocal(one)) for one in ranks.values()]
    for row in part.table().rows:
        relation, side, _, instances, *values, best, tau = row
        codes = {"head": (0,), "tail": (1,), "both": (0, 1)}[str(side)]
        members = [i for i, (r, s) in enumerate(zip(first.relation.tolist(), first.side.tolist(),
                   strict=True)) if str(r) == relation and s in codes]  # fmt: skip
        due = [mean(reciprocal(one)[i] for i in members) for one in ranks.values()]
        assert instances == len(members)
        assert values == pytest.approx(due)
        assert best == ", ".join(n for n, v in zip(ranks, values, strict=True) if v == max(values))
        assert tau == pytest.approx(slow_tau(due, whole), nan_ok=True)


def test_the_lowest_is_best_of_ranks_and_nothing_of_deviations() -> None:
    ranks, deviations = values_by_part(systems(3), "side", ["mr", "std"])
    for row in ranks.table().rows:
        values = dict(zip(ranks.systems, row[3:6], strict=True))
        assert row[6] in [n for n, v in values.items() if v == min(values.values())]
    assert {row[6] for row in deviations.table().rows} == {""}


def test_ratios_weigh_relations() -> None:
    ranks = systems(3)
    counts = {"0": 5.0, "1": 1.0, "3": 2.0, "unknown": 9.0}
    (part,) = values_by_ratios(ranks, counts, ["mrr"])
    own, weighted = part.table().rows
    for place, one in enumerate(ranks.values()):
        values = reciprocal(one)
        relations = [str(r) for r in one.relation.tolist()]
        assert own[1 + place] == pytest.approx(mean(values))
        size = Counter(relations)
        weights = [counts.get(r, 0) / size[r] for r in relations]
        due = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        assert weighted[1 + place] == pytest.approx(due)


def mrr(ranks: Ranks, relation: int, side: str) -> float:
    """The metric over the instances of a part, one after the other."""
    codes = {"head": (0,), "tail": (1,), "both": (0, 1)}[side]
    rows = zip(*(c.tolist() for c in (ranks.relation, ranks.side, ranks.greater, ranks.equal)),
               strict=True)  # fmt: skip
    values = [1 / (g + 1 + e / 2) for r, s, g, e in rows if r == relation and s in codes]
    return sum(values) / len(values)


def test_parts_of_ranks_are_held_against_the_same_parts() -> None:
    ours, theirs = systems(5), systems(5, seed=5)
    rankings = rankings_by_part(
        *(values_by_part(each, "relation,side", ["mrr"])
          for each in (ours, theirs)),
        resampling=Resampling(resamples=100),
    )  # fmt: skip
    assert rankings.dimensions == ("relation", "side")
    assert len(rankings.parts) == 12
    for relation, side, tau in rankings.table().rows:
        due = [[mrr(one, int(relation), str(side)) for one in each.values()]
               for each in (ours, theirs)]  # fmt: skip
        assert tau == pytest.approx(slow_tau(*due)), (relation, side)


def values(*rows: tuple[str, list[float]], measure: str = "mrr") -> SystemValues:
    names = [f"s{i}" for i in range(len(rows[0][1]))]
    parts = {(part,): dict(zip(names, numbers, strict=True)) for part, numbers in rows}
    dimensions = () if rows[0][0] == "all" else ("part",)
    return SystemValues.of(measure, parts, dimensions, True)


def test_a_part_is_held_against_all_questions_where_there_are_no_others() -> None:
    whole = values(("all", [3.0, 2.0, 1.0]))
    parts = values(("a", [3.0, 2.0, 1.0]), ("b", [1.0, 2.0, 3.0]), ("c", [1.0, math.nan, 3.0]))
    for pair in ([whole], [parts]), ([parts], [whole]):
        table = rankings_by_part(*pair, resampling=Resampling(resamples=100)).table()
        assert table.rows[:2] == [("a", 1.0), ("b", -1.0)]
        assert np.isnan(table.rows[2][1])


def test_what_only_one_has_is_left_out_and_named() -> None:
    one = values(("a", [3.0, 2.0, 1.0, 9.0]), ("b", [3.0, 2.0, 1.0, 9.0]))
    other = values(("b", [1.0, 2.0, 3.0]), ("c", [1.0, 2.0, 3.0]))
    rankings = rankings_by_part([one], [other], resampling=Resampling(resamples=100))
    assert rankings.systems == ("s0", "s1", "s2")
    assert rankings.parts == (("b",),)
    assert rankings.left_out == (("a",), ("c",))
    assert rankings.tau("mrr", ("b",)) == -1


ONE = values(("a", [3.0, 2.0, 1.0]))


@refusals(
    ("no part", lambda: rankings_by_part([ONE], [values(("z", [1.0, 2.0, 3.0]))]), InputError,
     ("the sets share no part: a is in one, z in the other",)),
    ("too few", lambda: rankings_by_part([ONE], [values(("a", [1.0, 2.0]))]), UsageError,
     ("2 systems are in both (of 3 and 2), too few to rank",)),
    ("measures", lambda: rankings_by_part([ONE], [values(("a", [1.0, 2.0, 3.0]), measure="mr")]),
     UsageError, ("values of the same measures",)),
    ("questions", lambda: values_by_part(
        {"a": systems(1)["s0"], "b": systems(1, seed=2)["s0"]}, "side", ["mrr"]),
     InputError, ("cannot be compared",)),
)  # fmt: skip
def test_what_cannot_be_held_against_each_other(
    call: Callable[[], object], error: type[Exception], words: tuple[str, ...]
) -> None:
    assert_refused(call, error, words)


# -- The commands ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets of labels on two graphs: ranks, and tables of their values."""
    place = tmp_path_factory.mktemp("parts")
    for name, seed in (("sparse", 0), ("complete", 5)):
        (place / name / "graph").mkdir(parents=True)
        for system, ranks in systems(4, seed=seed).items():
            ranks.save(place / name / f"{system}.parquet")
        for split, rows in graph(seed).splits.items():
            lines = "".join("{}\t{}\t{}\n".format(*row) for row in rows.tolist())
            (place / name / "graph" / f"{split}.txt").write_text(lines)
        lines = ["model,relation,micro_mrr,micro_mr"]
        tables = [one.table() for one in values_by_part(systems(4, seed=seed), "relation",
                                                      ["mrr", "mr"])]  # fmt: skip
        first = list(tables[0].keys).index("s0")
        for one, other in zip(*(table.rows for table in tables), strict=True):
            lines += [f"s{i},{one[0]},{one[first + i]!r},{other[first + i]!r}" for i in range(4)]
        (place / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return place


def invoke(*words: object, report: str = "labels") -> str:
    done = CliRunner().invoke(cli, ["compare", report, *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def parts_of(folder: Path, *words: str) -> str:
    return invoke(*(folder / f"sparse/s{i}.parquet" for i in range(3)), *words, report="parts")


def taus(text: str) -> dict[tuple[str, ...], float]:
    """Measure and part to tau, from CSV."""
    head, *rows = csv.reader(text.splitlines())
    names = head.index("systems")
    return {tuple(row[:names]): float(row[names + 1]) for row in rows}


def test_the_command_of_parts(folder: Path) -> None:
    text = parts_of(folder, "--by", "side", "-m", "mrr")
    assert [line.split()[0] for line in text.splitlines()[2:6]] == ["side", "head", "tail", "both"]
    text = parts_of(folder, "--ratios", str(folder / "sparse/graph/train.txt"))
    assert "both.realistic.micro.mrr" in text
    assert "given" in text
    assert parts_of(folder, "--by", "relation", "-m", "mrr", "--format", "csv").startswith(
        "measure,"
    )


@pytest.mark.parametrize("words", [("--by", "relation"), ("--ratios", "sparse/graph/train.txt")])
def test_ranks_and_published_values_give_the_same(folder: Path, words: tuple[str, str]) -> None:
    how = [str(folder / word) if "/" in word else word for word in words]
    files = [folder / "sparse" / f"s{i}.parquet" for i in range(4)]
    ranks = taus(invoke(*files, "--against", folder / "complete", *how, "-m", "mrr", "-m", "mr",
                        "--format", "csv"))  # fmt: skip
    tables = taus(invoke(folder / "sparse.csv", "--against", folder / "complete.csv", *how,
                         "-m", "micro_mrr", "-m", "micro_mr", "--format", "csv"))  # fmt: skip
    assert len(tables) == (8 if "--by" in words else 2)
    for (measure, part), tau in tables.items():
        assert ranks[f"both.realistic.{measure.replace('_', '.')}", part] == tau


def test_each_set_of_ranks_has_its_graph(folder: Path, tmp_path: Path) -> None:
    for name in ("sparse", "complete"):
        (tmp_path / name).mkdir()
        questions = kgtrec.read_graph(folder / name / "graph", progress=False).questions("test")
        for seed in range(3):
            scores = np.random.default_rng(seed).random((len(questions), N_ENTITIES))
            ranks = kgtrec.evaluate(scores[:, : questions.n_entities], questions, progress=False)
            ranks.ranks.save(tmp_path / name / f"m{seed}.parquet")
    files = [tmp_path / "sparse" / f"m{seed}.parquet" for seed in range(3)]
    words = ("--against", tmp_path / "complete", "--by", "category", "--graph",
             folder / "sparse/graph", "-m", "mrr")  # fmt: skip
    with pytest.raises(KgtrecError, match=r"not the graph of these ranks .* --against-graph"):
        invoke(*files, *words)
    text = invoke(*files, *words, "--against-graph", folder / "complete/graph")
    assert {line.split()[0] for line in text.splitlines()[3:5]} <= {"1-1", "1-N", "N-1", "N-N"}
    with pytest.raises(KgtrecError, match="--against-graph needs --by"):
        invoke(*files, *words[:2], "--by", "side", "--against-graph", "graph")


def test_the_text_and_the_other_forms(folder: Path) -> None:
    words = (folder / "sparse.csv", "--against", folder / "complete.csv", "--by", "relation")
    text = invoke(*words, "-m", "mrr", "-m", "mr")
    assert text.startswith("tau-b of the rankings of 4 systems by sparse.csv and by complete.csv")
    assert text.splitlines()[2].split() == ["relation", "mrr", "mr"]
    report = json.loads(invoke(*words, "--format", "json"))
    assert report["rankings"]["micro_mrr"]["0"]["systems"] == 4
    assert set(report["values"]["micro_mrr"]["sparse.csv"]["0"]) == {"s0", "s1", "s2", "s3"}
    assert r"\begin{tabular}" in invoke(*words, "--format", "latex")


def test_whole_tables_show_places_and_a_figure(folder: Path, tmp_path: Path) -> None:
    for name, order in (("a", "3210"), ("b", "0123")):
        lines = "".join(f"s{i}\t0.{value}\t{value}\n" for i, value in enumerate(order))
        (tmp_path / f"{name}.tsv").write_text(f"\ufeffSystem\tMRR\tMR\n{lines}", "utf-8")
    words = [tmp_path / "a.tsv", "--against", tmp_path / "b.tsv"]
    text = invoke(*words, "-m", "mrr", "-m", "mr")
    lines = [line.split() for line in text.splitlines()]
    assert ["mrr", "s0", "0.3000", "1", "0.0000", "4"] in lines
    assert ["mr", "s0", "3.0000", "4", "0.0000", "1"] in lines  # lower is better
    assert [line[3] for line in lines if line[:2] == ["mrr", "systems"]] == ["-1.0000"]
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    invoke(*words, "--plot", tmp_path / "places.svg")
    assert (tmp_path / "places.svg").stat().st_size > 1000


@pytest.mark.parametrize(("text", "said"), [
    ("", "the table has no row below its header"),
    ("System,mrr\na,x\nb,1\nc,2\n", r"t.csv:2: 'x' under 'mrr'"),
    ("System,mrr\na,1\nb\n", r"t.csv:3: this line has 1 cells"),
    ("System,mrr\na,1\na,2\nb,3\n", r"t.csv:3: another row of 'a'.*--by"),
    ("System,mrr,MRR\na,1,2\n", r"t.csv:1: two columns"),
    ("System,mrr\na,inf\n", r"'inf' under"),
    ('System,mrr,note\na,1,"x\nb,2,y\nc,3,z\n', "unexpected end of data"),
    ("System,other\na,1\n", "has no column 'mrr'; it has other"),
    ("System,mrr\n\udcff,1\n", "UTF-8"),
    (None, "No such file"),
])  # fmt: skip
def test_bad_tables_are_named_by_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "t.csv").write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(KgtrecError, match=said):
        values_of_table(read_value_table(tmp_path / "t.csv"), ["mrr"])


def test_blank_cells_are_no_values(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("System,mrr\na,\nb,-\nc,.5\n\n")
    (one,) = values_of_table(read_value_table(tmp_path / "t.csv"), ["mrr"])
    assert np.isnan(one.parts[WHOLE]).tolist() == [True, True, False]


@pytest.mark.parametrize("name", ["micro_gmr", "micro_amri", "macro_mrr"])
def test_relations_are_weighed_for_means_over_instances_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_text(f"model,relation,{name}\na,r,2\na,s,8\n")
    with pytest.raises(UsageError, match="not a mean over instances"):
        values_at_ratios(read_value_table(tmp_path / "t.csv"), [name], {"r": 1, "s": 1})


@pytest.mark.parametrize(("words", "said"), [
    (("--by", "category"), "need the graph"),
    (("--by", "sides"), "cannot slice by 'sides'"),
    (("--by", "side", "--ratios", "x"), "different reports; choose one"),
    ((), "give the parts: --by"),
    (("--ratios", "nowhere.txt"), "nowhere.txt"),
    (("--ratios", "x", "--graph", "g"), "--graph needs --by"),
    (("--against", "graph"), "--against must name another table (.csv or .tsv), not"),
    (("--against", "complete.csv", "--graph", "x"), "--graph: tables of values contain no"),
    (("--against", "complete.csv", "--by", "x"), "neither table has a column 'x'"),
    (("--against", "complete.csv", "--by", "relation", "--ratios", "x"), "choose one"),
    (("--against", "complete.csv", "--by", "relation", "--plot", "x.pdf"), "no figure"),
    (("--against", "complete.csv"), "another row of 's0'"),
    (("--against", "complete.csv", "--by", "relation", "-m", "hits@3"), "no column 'hits@3'"),
    (("sparse.csv", "--against", "complete.csv"), "contains the values of all systems"),
])  # fmt: skip
def test_wrong_calls(folder: Path, words: tuple[str, ...], said: str) -> None:
    paths = [str(folder / word) if word.endswith(".csv") else word for word in words]
    with pytest.raises(KgtrecError) as caught:
        _ = (
            invoke(folder / "sparse.csv", *paths)
            if "--against" in words
            else parts_of(folder, *words)
        )
    assert said in str(caught.value)
