"""kgtrec compare: from files of ranks or runs to tables; the numbers are those of kgtrec.study."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import systems
from scipy import stats
from slow import slow_but

import kgtrec
from kgtrec.cli.compare.command import command
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.pooling.pool import Pool, write_pool

QUICK = ("--permutations", "2000", "--resamples", "200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ranks of three systems; runs a, b, c with qrels, a pool and its graph."""
    place = tmp_path_factory.mktemp("compare")
    (place / "other").mkdir()
    for name, ranks in systems(3, levels=30).items():
        ranks.save(place / f"{name}.parquet")
    for name, ranks in systems(3, seed=5, levels=30).items():  # other labels: another graph
        ranks.save(place / "other" / f"{name}.parquet")
    graph = place / "graph"
    graph.mkdir()
    questions = range(12)
    lines = "".join(f"e{q}\tr\tw\ne{q}\tr\tx\ne{q}\tr\ty\ne{q}\tr\tz\n" for q in questions)
    (graph / "test.txt").write_text(lines)
    for name, order in {"a": "xyz", "b": "yzx", "c": "wyx"}.items():
        text = "".join(
            f"tail{q} Q0 {d} 1 {9 - k} {name}\n" for q in questions for k, d in enumerate(order)
            if (name, q, k) != ("b", 3, 1)
        )  # fmt: skip
        (place / f"{name}.run").write_text(text)
    judged = {"w": 1, "x": 1, "y": 0, "z": 1}
    text = "".join(f"tail{q} 0 {d} {r}\n" for q in questions for d, r in judged.items())
    (place / "q.qrels").write_text(text)
    (place / "sparse.qrels").write_text("".join(f"tail{q} 0 y 1\n" for q in questions))
    read = kgtrec.read_graph(graph)
    ids = read.splits["test"].astype(np.int64)
    brought = {"w": (0, 0, 1), "x": (1, 3, 0), "y": (2, 1, 2), "z": (0, 2, 0)}
    places = np.array([brought[read.entities[t]] for t in ids[:, 2].tolist()])
    sides = np.array([[False, True]] * len(ids))
    names = [f"tail{read.entities[h][1:]}" for h in ids[:, 0].tolist()]
    write_pool(place / "pool.tsv", Pool(read, ("a", "b", "c"), 3, ids, places, sides, names))
    return place


def run(folder: Path, *arguments: str) -> str:
    """Standard output; names with an ending that exist are files of the folder."""
    words = [str(folder / a) if (folder / a).exists() and a else a for a in arguments]
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


RANKS = ("s0.parquet", "s1.parquet", "s2.parquet")
RUNS = ("--qrels", "q.qrels", "a.run", "b.run", "c.run")


def test_json_holds_what_scipy_finds(folder: Path) -> None:
    report = json.loads(
        run(folder, *RANKS, "--test", "t", "--resamples", "200", "--format", "json",
            "-m", "both.realistic.micro.mrr", "-m", "tail.realistic.macro.hits@3")
    )  # fmt: skip
    assert list(report)[:2] == ["both.realistic.micro.mrr", "tail.realistic.macro.hits@3"]
    micro = report["both.realistic.micro.mrr"]
    ranks = {name: Ranks.load(folder / f"{name}.parquet") for name in ("s0", "s1", "s2")}
    values = {one["system"]: one["value"] for one in micro["systems"]}
    for name, one in ranks.items():
        assert values[name] == pytest.approx(np.mean(1 / one.rank()))
    for pair in micro["pairs"]:
        first, second = (1 / ranks[pair[name]].rank() for name in ("system", "against"))
        assert pair["p"] == pytest.approx(stats.ttest_rel(first, second).pvalue)
        assert pair["difference"] == pytest.approx((first - second).mean())
        assert pair["low"] < pair["difference"] < pair["high"]
    assert (micro["items"], micro["unit"], micro["tested_over"]) == (120, "instances", "instances")
    assert "rankings" in report


def test_the_options_of_tests_and_intervals_count(folder: Path) -> None:
    def first_of(*words: str) -> dict[str, Any]:
        text = run(folder, *RANKS, *QUICK, "-m", "mrr", "--format", "json", *words)
        return json.loads(text)["both.realistic.micro.mrr"]

    plain = first_of()
    assert plain["test"] == "randomisation"
    ends = [(one["systems"][0]["low"], one["systems"][0]["high"])
            for one in (plain, first_of("--ci", "50"), first_of("--seed", "7"))]  # fmt: skip
    assert ends[0][0] < ends[1][0] < ends[1][1] < ends[0][1]
    assert ends[2] != ends[0]


FORMS = ("table", "markdown", "latex", "csv", "tsv", "json")
REPORTS = (
    (*RANKS, *QUICK),
    (*RANKS, *QUICK, "--cluster", "--correction", "bh"),
    ("stability", *RANKS, "--repeats", "2"),
    ("power", *RANKS),
    ("power", *RANKS, "--cluster", "--test", "wilcoxon"),
    (*RUNS, *QUICK, "-m", "map", "-m", "P.5"),
    ("labels", *RUNS, "--resamples", "200", "--against", "sparse.qrels", "-m", "map"),
    ("labels", *RANKS, "--resamples", "200", "--against", "other"),
    ("depths", *RUNS, "--resamples", "200", "--pool", "pool.tsv", "--graph", "graph"),
    ("power", *RUNS, "-m", "map"),
    ("reuse", *RUNS, "--pool", "pool.tsv", "--graph", "graph", "-m", "recip_rank"),
)
# Every report in three of the forms, every form of half the reports.
SOME = [(form, report) for i, form in enumerate(FORMS) for report in REPORTS[i % 2 :: 2]]


@pytest.mark.parametrize(("form", "report"), slow_but(SOME, itertools.product(FORMS, REPORTS)))
def test_every_report_has_every_form_and_is_the_same_again(
    folder: Path, report: tuple[str, ...], form: str
) -> None:
    text = run(folder, *report, "--format", form)
    assert text == run(folder, *report, "--format", form)
    if form == "json":
        json.loads(text)
    elif form in ("csv", "tsv"):
        rows = list(csv.reader(io.StringIO(text), delimiter="," if form == "csv" else "\t"))
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1
    elif form == "latex":
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0
    elif form == "markdown":
        assert text.startswith("**")
        assert "| ---" in text


def test_the_table_says_what_follows(folder: Path) -> None:
    text = run(folder, *RANKS, *QUICK, "-m", "both.realistic.micro.mr")
    assert "both.realistic.micro.mr: 120 instances of 79 questions · lower is better" in text
    assert "s0 is better than every other system; 3 of 3 pairs" in " ".join(text.split())
    latex = run(folder, *RANKS, *QUICK, "-m", "both.realistic.micro.mr", "--format", "latex")
    assert "$^{\\mathrm{bc}}$" in latex


def test_runs_answer_all_queries(folder: Path) -> None:
    report = json.loads(run(folder, *RUNS, *QUICK, "-m", "recip_rank", "--format", "json"))
    values = {one["system"]: one["value"] for one in report["recip_rank"]["systems"]}
    assert values == pytest.approx({"a": 1.0, "b": 0.5, "c": 1.0})
    (folder / "short.run").write_text("tail0 Q0 x 1 9 t\n")
    runs = [str(folder / one) for one in ("a.run", "short.run")]
    done = CliRunner().invoke(command, ["--qrels", str(folder / "q.qrels"), *runs, *QUICK])
    assert "short: 11 of 12 queries of the qrels are not in the run" in done.stderr


def test_reuse(folder: Path) -> None:
    report = ("--pool", "pool.tsv", "--graph", "graph", "-m", "recip_rank")
    systems = json.loads(run(folder, "reuse", *RUNS, *report, "--format", "json"))["recip_rank"]
    assert systems["c"]["left_out"] == pytest.approx(1 / 3)
    assert (systems["c"]["judged"], systems["c"]["relevant"]) == (12, 12)
    assert systems["a"]["judged"] == 0  # b has x too
    assert "c" in run(folder, "reuse", *RUNS, *report)


def test_depths(folder: Path) -> None:
    report = ("--pool", "pool.tsv", "--graph", "graph", "-m", "recip_rank", "--resamples", "200")
    printed = json.loads(run(folder, "depths", *RUNS, *report, "--format", "json"))
    # Nothing is judged before pooling; w enters at depth 1 with c, x with a, y with b, z at 2.
    values = printed["values"]["recip_rank"]
    assert list(values) == ["1", "2"]
    assert values["1"] == pytest.approx({"a": 1.0, "b": (11 / 3 + 1 / 2) / 12, "c": 1.0})
    assert values["2"] == pytest.approx({"a": 1.0, "b": 0.5, "c": 1.0})
    assert printed["rankings"]["recip_rank"]["2"]["tau_b"] == 1.0


def test_against_a_folder_of_ranks(folder: Path) -> None:
    report = ("--against", "other", "--resamples", "200")
    printed = json.loads(run(folder, "labels", *RANKS, *report, "--format", "json"))
    assert list(printed["values"]) == [f"both.realistic.{kind}.mrr" for kind in ("micro", "macro")]
    values = printed["values"]["both.realistic.micro.mrr"]
    for name in ("s0", "s1", "s2"):
        for place, key in ((folder, "value"), (folder / "other", "other")):
            ranks = Ranks.load(place / f"{name}.parquet")
            assert values[name][key] == pytest.approx(np.mean(1 / ranks.rank()))
    here, there = ([values[name][key] for name in values] for key in ("value", "other"))
    due = stats.kendalltau(here, there).statistic
    alike = printed["rankings"]["both.realistic.micro.mrr"]
    assert alike["questions"]["tau_b"] == alike["systems"]["tau_b"] == pytest.approx(due)
    text = run(folder, "labels", *RANKS, *report)
    assert "micro.mrr" in text
    assert "macro.mrr" in text
    assert "random rankings" in text  # they agree in full


SMALL = ("--resamples", "200")


@pytest.mark.parametrize(
    ("report", "texts"),
    [
        ((*RANKS, *QUICK), ("s0", "MRR (instances)")),
        (("stability", *RANKS, "--repeats", "2"), ("micro MRR", "test triples kept (%)")),
        (("power", *RANKS), ("p (t test)", "pair of systems, largest p-value first")),
        ((*RUNS, *QUICK), ("a", "map_cut_20 (queries)")),
        (("labels", *RUNS, *SMALL, "--against", "sparse.qrels"), ("q.qrels", "sparse.qrels")),
        (
            ("labels", *RANKS, *SMALL, "--against", "other"),
            ("macro.mrr: 95% intervals over questions",),
        ),
        (
            ("reuse", *RUNS, "--pool", "pool.tsv", "--graph", "graph"),
            ("without its own", "map_cut_20"),
        ),
        (
            ("depths", *RUNS, *SMALL, "--pool", "pool.tsv", "--graph", "graph"),
            ("pool depth (bars: 95% intervals)",),
        ),
    ],
)
def test_figures(
    folder: Path, report: tuple[str, ...], texts: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    run(folder, *report, "--plot", str(tmp_path / "x.svg"))
    drawn = (tmp_path / "x.svg").read_text("utf-8")
    assert drawn.startswith("<?xml")
    for text in texts:
        assert f">{text}<" in drawn


def test_all_figures_of_a_comparison_at_once(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    pairs, ranked = tmp_path / "pairs.svg", tmp_path / "ranked.svg"
    run(folder, *RANKS, *QUICK, "--plot-pairs", str(pairs), "--plot-rankings", str(ranked))
    assert "above: Holm's p;  below: effect size d$_z$" in pairs.read_text("utf-8")
    assert ">macro.mrr<" in ranked.read_text("utf-8")


# Of three systems; tests/golden/cli/refusals.txt has all other mistakes.
WRONG = [
    (("labels", *RANKS, "--against", "sparse.qrels"), UsageError, "is not a folder"),
    (("labels", *RANKS, "--against", "graph"), UsageError, "does not contain 's0.parquet'"),
    (("depths", *RUNS[:4], "--pool", "pool.tsv", "--graph", "graph"), UsageError, "3 or more"),
    ((*RANKS, "--plot-rankings", "x.svg", "-m", "both.micro.mrr"), UsageError, "two measures"),
    ((*RUNS, "-m", "num_ret"), UsageError, "do not say which run is better"),
    ((RANKS[0], "q.qrels"), KgtrecError, "q.qrels"),
]


@pytest.mark.parametrize(("arguments", "kind", "said"), WRONG)
def test_wrong_calls(
    folder: Path, arguments: tuple[str, ...], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as caught:
        run(folder, *arguments)
    assert said in str(caught.value)


def test_a_figure_never_costs_an_input(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    link = folder / "link.png"
    link.symlink_to(folder / "s0.parquet")
    before = (folder / "s0.parquet").read_bytes()
    with pytest.raises(UsageError, match="would overwrite an input"):
        run(folder, *RANKS, "--plot", str(link))
    with pytest.raises(UsageError, match="give another file name"):
        run(folder, *RANKS, "--plot", "same.svg", "--plot-pairs", "same.svg")
    assert (folder / "s0.parquet").read_bytes() == before


def test_other_questions_are_named(folder: Path, tmp_path: Path) -> None:
    other = next(iter(systems(1, seed=9).values()))
    other.save(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="s0 and other cannot be compared: graph"):
        run(folder, "s0.parquet", str(tmp_path / "other.parquet"))
