"""kgtrec report and compare: tables and figures, and facts that change the meaning of numbers."""

from __future__ import annotations

import csv
import io
import itertools
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from compare_cases import systems
from scipy import stats
from slow import slow_after, slow_but

import kgtrec
from kgtrec.cli import cli
from kgtrec.cli.compare import command as compare_command
from kgtrec.cli.report import command
from kgtrec.errors import KgtrecError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.pooling.pool import Pool, write_pool

RELATIONS = ["borders", "caf\udce9_|&"]  # the second has a byte that is not UTF-8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ranks of two models, a.parquet and b.parquet."""
    random = np.random.default_rng(1)
    test = np.unique(np.stack([random.integers(0, n, 60) for n in (12, 2, 12)], axis=1), axis=0)
    graph = kgtrec.Graph.from_arrays(
        train=test[:10], test=test[10:], n_entities=12, n_relations=2, relations=RELATIONS
    )
    questions = graph.questions()
    place = tmp_path_factory.mktemp("report")
    for name in ("a", "b"):
        scores = random.integers(0, 6, (len(questions), 12)).astype(np.float32)
        kgtrec.evaluate(scores, questions).ranks.save(place / f"{name}.parquet")
    return place


def run(*arguments: object) -> str:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode("utf-8", "surrogateescape")


def loaded(path: Path) -> kgtrec.Result:
    return kgtrec.Result(kgtrec.Ranks.load(path))


def test_files_one_below_the_other_and_as_json(folder: Path) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    assert f"== {a}\n{loaded(a)}\n\n== {b}\n{loaded(b)}\n" == run(a, b)
    text = run(a)
    assert text.rstrip("\n") == str(loaded(a))
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(run(a, "--format", "json")) == loaded(a).to_dict()
    both = json.loads(run(a, b, "--format", "json"))
    assert both == {str(a): loaded(a).to_dict(), str(b): loaded(b).to_dict()}
    keys = ["both.realistic.micro.hits@7", "tail.stratified.mrr(0.25,1)"]
    words = ("-m", "both.micro.hits_at_7", "-m", keys[1])
    assert json.loads(run(a, "--format", "json", *words)) == {key: loaded(a)[key] for key in keys}
    assert keys[1] in run(a, *words)


def test_by_relation_and_by_side(folder: Path) -> None:
    a = folder / "a.parquet"
    result = loaded(a)
    for by in ("relation", "side"):
        table = result.slice(by)
        assert run(a, "--by", by).rstrip("\n") == table.to_text()
        assert json.loads(run(a, "--by", by, "--format", "json")) == table.to_dict()
        for form, text in [
            ("csv", table.to_csv()),
            ("latex", table.to_latex()),
            ("markdown", table.to_markdown()),
        ]:
            assert run(a, "--by", by, "--format", form) == text
    assert RELATIONS[1] in run(a, "--by", "relation")
    one = json.loads(run(a, "--by", "relation", "--format", "json", "-m", "tail.macro.map@20"))
    assert set(one["borders"]) == {"count", "tail.macro.map_cut_20"}


@pytest.mark.parametrize("how", [("--by", "side"), ("--by", "relation"), ("--rank-types",),
                                 ("--by", "relation", "--spread")])  # fmt: skip
@pytest.mark.parametrize("form", ["table", "csv", "latex", "markdown"])
def test_micro_and_macro_never_share_a_heading(
    folder: Path, how: tuple[str, ...], form: str
) -> None:
    keys = ("mrr", "macro.mrr", "macro.hits@10", "question.mrr")
    words = [word for key in keys for word in ("-m", key)]
    text = run(folder / "a.parquet", *how, *words, "--format", form)
    heads = ("micro MRR", "macro MRR", "macro Hits@10", "question MRR")
    if form == "csv":
        heads = ("micro.mrr", "macro.mrr", "macro.hits@10", "question.mrr")
    assert all(head in text for head in heads)
    if form == "markdown":
        alone = run(folder / "a.parquet", *how, "-m", "mrr", "-m", "hits@10", "--format", form)
        assert "| MRR | Hits@10 |" in alone


# -- The table of models -----------------------------------------------------------------------

FILES = ("s0.parquet", "s1.parquet", "s2.parquet")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of one graph, and the output models of a batch on two graphs."""
    place = tmp_path_factory.mktemp("models")
    for name, ranks in systems(3).items():
        ranks.save(place / f"{name}.parquet")
    for graph, seed in (("one", 0), ("two", 1)):
        for name, ranks in systems(2, seed=seed).items():
            home = place / f"results/ranks/graph={graph}/protocol=test/model={name}"
            home.mkdir(parents=True)
            ranks.save(home / "ranks.parquet")
    return place


def printed(models: Path, *arguments: str) -> str:
    words = [str(models / word) if word in (*FILES, "results") else word for word in arguments]
    done = CliRunner().invoke(cli, ["report", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_row_a_model_in_every_format(models: Path) -> None:
    due = {name: kgtrec.Result(kgtrec.Ranks.load(models / name)) for name in FILES}
    rows = list(csv.DictReader(io.StringIO(printed(models, *FILES, "--format", "csv"))))
    assert [row["model"] for row in rows] == ["s0", "s1", "s2"]
    for row, name in zip(rows, FILES, strict=True):
        for key in ("mrr", "hits@1", "hits@3", "hits@10", "mr"):
            assert float(row[f"both.realistic.micro.{key}"]) == due[name][key]
    for form, mark in (("latex", r"\toprule"), ("html", "<tr>"), ("typst", "strong(")):
        assert mark in printed(models, *FILES, "--format", form)
    text = printed(models, *FILES, "--columns", "mrr, tail.hits@10, map", "--digits", "2")
    assert text.splitlines()[1].split() == ["model", "MRR", "Hits@10", "MAP"]
    assert f"{due[FILES[0]]['mrr']:.2f}" in text
    names = ("--name", "A", "--name", "B", "--name", "C")
    text = printed(models, *FILES, *names, "--side", "head,tail", "--columns", "mrr,macro.mrr",
                   "--test", "t", "--format", "markdown")  # fmt: skip
    assert "head, micro: MRR ↑ | head, macro: MRR ↑ | tail, micro: MRR ↑" in text
    assert "| (a) A |" in text.replace("\\", "")
    assert "paired t-test, Holm's correction, p \\< 0.05" in text
    head = printed(models, FILES[0], "-m", "mrr", "-m", "head.mr", "--format", "csv").splitlines()
    assert head[0] == "model,both.realistic.micro.mrr,head.realistic.micro.mr"


def test_a_batch_is_models_by_graphs(models: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(models, "results", "--format", "csv"))))
    assert [row["model"] for row in rows] == ["s0", "s1"]
    for graph, seed in (("one", 0), ("two", 1)):
        for row, ranks in zip(rows, systems(2, seed=seed).values(), strict=True):
            due = kgtrec.Result(ranks)["mrr"]
            assert float(row[f"{graph}:both.realistic.micro.mrr"]) == due
    assert r"\multicolumn{5}{c}{one}" in printed(models, "results", "--format", "latex")
    with pytest.raises(KgtrecError, match="a page is for one graph"):
        printed(models, "results", "--html", "x.html")


def test_a_table_goes_into_a_file(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.tex"
    for more in (("--format", "latex"), ("--by", "relation"), ("--format", "json"), ()):
        assert printed(models, *FILES, *more, "-o", str(out)) == ""
        assert out.read_text("utf-8") == printed(models, *FILES, *more)
    for wrong in (models / FILES[0], tmp_path / "absent" / "table.tex", tmp_path):
        with pytest.raises(KgtrecError, match=str(wrong)):
            printed(models, *FILES, "-o", str(wrong))
    assert kgtrec.Ranks.load(models / FILES[0])


def test_a_page_is_written(models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    printed(models, *FILES, "--html", str(page), "--name", "A", "--name", "B", "--name", "C")
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert '"models":["A","B","C"]' in text
    assert f"{kgtrec.Result(kgtrec.Ranks.load(models / FILES[0]))['mrr']!r}" in text


def test_runs_of_one_model(models: Path, tmp_path: Path) -> None:
    from statistics import mean, stdev

    names = ("m-1.parquet", "m-2.parquet", "n-1.parquet")
    for name, ranks in zip(names, systems(3).values(), strict=True):
        ranks.save(tmp_path / name)
    words = [str(tmp_path / name) for name in names]
    values = [kgtrec.Result(kgtrec.Ranks.load(word))["mrr"] for word in words]
    (m, n) = csv.DictReader(io.StringIO(printed(models, *words, "--replicates", "--format", "csv")))
    assert (m["model"], n["model"]) == ("m", "n")
    assert float(m["both.realistic.micro.mrr"]) == pytest.approx(mean(values[:2]))
    assert float(m["both.realistic.micro.mrr:std"]) == pytest.approx(stdev(values[:2]))
    done = CliRunner().invoke(
        cli, ["compare", "replicates", *words, "--resamples", "200", "-m", "mrr"],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert f"{mean(values[:2]):.4f}" in done.stdout
    assert "3 runs of 2 systems" in done.stdout
    assert "ambiguity" in done.stdout


def test_runs_say_whose_best_answer_is_another(models: Path, tmp_path: Path) -> None:
    from statistics import mean

    words, runs = [], []
    for number, ranks in enumerate(systems(2).values()):
        words.append(str(tmp_path / f"m-{number}.parquet"))
        ranks.save(words[-1])
        runs.append(str(tmp_path / f"{number}.run"))
        queries = list(dict.fromkeys(ranks.question_ids))
        first = ["e1" if i % 3 or not number else "e2" for i in range(len(queries))]
        lines = [f"{q} Q0 {e} 1 1.0 t\n" for q, e in zip(queries, first, strict=True)]
        Path(runs[-1]).write_text("".join(lines))
    options = [word for name in runs for word in ("--run", name)]
    command = ["compare", "replicates", *words, "--resamples", "100", "-m", "mrr", "--epsilon", "1"]
    done = CliRunner().invoke(cli, [*command, *options], catch_exceptions=False)
    share = mean(i % 3 == 0 for i in range(len(queries)))
    assert f"best answer       2     {share:.4f}       {share:.4f}" in done.stdout
    with pytest.raises(KgtrecError, match="give one --run per file"):
        CliRunner().invoke(cli, [*command, *options[:2]], catch_exceptions=False)


def test_folds_are_runs_of_one_model(models: Path, tmp_path: Path) -> None:
    from statistics import mean

    words, values = [], []
    for seed in (0, 1):
        for name, ranks in systems(2, seed=seed).items():
            words.append(str(tmp_path / f"{name}x-fold{seed}.parquet"))
            ranks.save(words[-1])
            values.append(kgtrec.Result(ranks)["mrr"])
    command = ["compare", "replicates", *words, "--resamples", "100", "-m", "mrr"]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert "4 runs of 2 systems on 2 folds" in done.stdout
    assert "ambiguity" not in done.stdout
    assert "folds have different ones" in done.stderr
    assert f"{mean(values[::2]):.4f}" in done.stdout
    rows = csv.DictReader(io.StringIO(printed(models, *words, "--replicates", "--format", "csv")))
    key = "both.realistic.micro.mrr"
    assert [float(row[key]) for row in rows] == [mean(values[::2]), mean(values[1::2])]
    text = printed(models, *words, "--replicates", "--format", "latex", "--test", "bootstrap")
    assert "Means over 2 folds; the counts are of the first fold." in text
    assert "NOT COMPARABLE" not in text


QUICK = ("--permutations", "2000", "--resamples", "200")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def compare(compared: Path, *arguments: str) -> str:
    """Standard output; names with an ending that exist are files of the folder."""
    words = [str(compared / a) if (compared / a).exists() and a else a for a in arguments]
    done = CliRunner().invoke(compare_command.command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


RANKS = ("s0.parquet", "s1.parquet", "s2.parquet")

RUNS = ("--qrels", "q.qrels", "a.run", "b.run", "c.run")


def test_the_options_of_tests_and_intervals_count(compared: Path) -> None:
    def first_of(*words: str, how: tuple[str, ...] = QUICK) -> dict[str, Any]:
        text = compare(compared, *RANKS, *how, "-m", "mrr", "--format", "json", *words)
        return json.loads(text)["both.realistic.micro.mrr"]

    plain = first_of()
    assert plain["test"] == "randomisation"
    assert first_of("--test", "t", how=QUICK[2:])["test"] == "t"
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

# Every report in one form, every form of some report.
SOME = [(FORMS[i % len(FORMS)], report) for i, report in enumerate(REPORTS)]


@pytest.mark.parametrize(("form", "report"), slow_but(SOME, itertools.product(FORMS, REPORTS)))
def test_every_report_has_every_form_and_is_the_same_again(
    compared: Path, report: tuple[str, ...], form: str
) -> None:
    text = compare(compared, *report, "--format", form)
    if form == "json":
        assert text == compare(compared, *report, "--format", form)
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


def test_the_table_says_what_follows(compared: Path) -> None:
    text = compare(compared, *RANKS, *QUICK, "-m", "both.realistic.micro.mr")
    assert "both.realistic.micro.mr: 120 instances of 79 questions · lower is better" in text
    assert "s0 is better than every other system; 3 of 3 pairs" in " ".join(text.split())
    latex = compare(compared, *RANKS, *QUICK, "-m", "both.realistic.micro.mr", "--format", "latex")
    assert "$^{\\mathrm{bc}}$" in latex


def test_runs_answer_all_queries(compared: Path) -> None:
    report = json.loads(compare(compared, *RUNS, *QUICK, "-m", "recip_rank", "--format", "json"))
    values = {one["system"]: one["value"] for one in report["recip_rank"]["systems"]}
    assert values == pytest.approx({"a": 1.0, "b": 0.5, "c": 1.0})
    (compared / "short.run").write_text("tail0 Q0 x 1 9 t\n")
    runs = [str(compared / one) for one in ("a.run", "short.run")]
    done = CliRunner().invoke(
        compare_command.command, ["--qrels", str(compared / "q.qrels"), *runs, *QUICK]
    )
    assert "short: 11 of 12 queries of the qrels are not in the run" in done.stderr


def test_against_a_folder_of_ranks(compared: Path) -> None:
    report = ("--against", "other", "--resamples", "200")
    printed = json.loads(compare(compared, "labels", *RANKS, *report, "--format", "json"))
    assert list(printed["values"]) == [f"both.realistic.{kind}.mrr" for kind in ("micro", "macro")]
    values = printed["values"]["both.realistic.micro.mrr"]
    for name in ("s0", "s1", "s2"):
        for place, key in ((compared, "value"), (compared / "other", "other")):
            ranks = Ranks.load(place / f"{name}.parquet")
            assert values[name][key] == pytest.approx(np.mean(1 / ranks.rank()))
    here, there = ([values[name][key] for name in values] for key in ("value", "other"))
    due = stats.kendalltau(here, there).statistic
    alike = printed["rankings"]["both.realistic.micro.mrr"]
    assert alike["questions"]["tau_b"] == alike["systems"]["tau_b"] == pytest.approx(due)
    text = compare(compared, "labels", *RANKS, *report)
    assert "micro.mrr" in text
    assert "macro.mrr" in text
    assert "random rankings" in text  # they agree in full


SMALL = ("--resamples", "200")
POOLED = ("--pool", "pool.tsv", "--graph", "graph")


@pytest.mark.parametrize(
    ("report", "texts"),
    slow_after(3, [
        ((*RANKS, *QUICK), ("s0", "MRR (instances)")),
        (("labels", *RUNS, *SMALL, "--against", "sparse.qrels"), ("q.qrels", "sparse.qrels")),
        (("depths", *RUNS, *SMALL, *POOLED), ("pool depth (bars: 95% intervals)",)),
        (("stability", *RANKS, "--repeats", "2"), ("micro MRR", "test triples kept (%)")),
        (("power", *RANKS), ("p (t test)", "pair of systems, largest p-value first")),
        ((*RUNS, *QUICK), ("a", "map_cut_20 (queries)")),
        (("labels", *RANKS, *SMALL, "--against", "other"),
         ("macro.mrr: 95% intervals over questions",)),
        (("reuse", *RUNS, *POOLED), ("without its own", "map_cut_20")),
    ]),
)  # fmt: skip
def test_figures(
    compared: Path, report: tuple[str, ...], texts: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    compare(compared, *report, "--plot", str(tmp_path / "x.svg"))
    drawn = (tmp_path / "x.svg").read_text("utf-8")
    assert drawn.startswith("<?xml")
    for text in texts:
        assert f">{text}<" in drawn


def test_all_figures_of_a_comparison_at_once(compared: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    pairs, ranked = tmp_path / "pairs.svg", tmp_path / "ranked.svg"
    compare(compared, *RANKS, *QUICK, "--plot-pairs", str(pairs), "--plot-rankings", str(ranked))
    assert "above: Holm's p;  below: effect size d$_z$" in pairs.read_text("utf-8")
    assert ">macro.mrr<" in ranked.read_text("utf-8")


N = 40

SAMPLED = "sampled candidates: do not compare these values with full ranking"


@pytest.fixture(scope="module")
def results() -> dict[str, kgtrec.Result]:
    """The same scores, ranked in full, without a filter, and among sampled candidates."""
    rng = np.random.default_rng(3)
    triples = np.unique(np.c_[rng.integers(0, N, 300), rng.integers(0, 3, 300),
                              rng.integers(0, N, 300)], axis=0)  # fmt: skip
    triples = rng.permutation(triples)
    graph = kgtrec.Graph.from_arrays(train=triples[80:], valid=triples[:20], test=triples[20:80])
    full = graph.questions("test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parted = graph.questions("test", filter=("train", "test"))
    lists = [rng.choice(N, 12, replace=False) for _ in range(len(full))]
    variants = {
        "full": full,
        "raw": graph.questions("test", filter="raw"),
        "parted": parted,
        "sampled": full.restrict(candidates=lists, outside="worst"),
    }
    left, right = rng.normal(size=(N, 4)), rng.normal(size=(3, 4))
    return {
        name: kgtrec.evaluate(kgtrec.Factors(left[q.entity] * right[q.relation], left), q)
        for name, q in variants.items()
    }


@pytest.fixture(scope="module")
def rank_files(
    results: dict[str, kgtrec.Result], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("ranks")
    for name, result in results.items():
        result.ranks.save(folder / f"{name}.parquet")
    results["full"].ranks.save(folder / "again.parquet")
    return {name: str(folder / f"{name}.parquet") for name in (*results, "again")}


def command_of(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def commands(folder: Path) -> list[list[str]]:
    pytest.importorskip("matplotlib")
    plots = [
        ["plot", kind, "-o", str(folder / f"{kind}.svg")]
        for kind in ("ranks", "beta-grid")  # every figure uses the data of `load_ranks`
    ]
    return [
        *plots,
        ["report"],
        ["report", "--rank-types"],
        ["report", "--by", "relation"],
        ["report", "--format", "csv"],
        ["report", "--format", "latex"],
        ["stratify", "--points", "2"],
        ["stratify", "--points", "2", "--format", "json"],
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    slow_after(1, [
        ("sampled", SAMPLED), ("raw", "unfiltered: other known answers count as wrong"),
        ("parted", "the filter leaves out valid: answers from there count as wrong"),
    ]),
)  # fmt: skip
def test_every_command_says_it(
    name: str, said: str, rank_files: dict[str, str], tmp_path: Path
) -> None:
    for words in commands(tmp_path):
        done = command_of(*words, rank_files[name])
        assert done.exit_code == 0, done.output
        assert said in done.output.replace("\n  ", " "), words


@pytest.mark.parametrize(
    ("name", "said"), slow_after(1, [("sampled", SAMPLED), ("raw", "unfiltered")])
)
def test_comparisons_say_it_of_every_file(
    name: str, said: str, rank_files: dict[str, str], tmp_path: Path
) -> None:
    several = [str(tmp_path / f"system-{number}.parquet") for number in range(3)]
    (tmp_path / "other").mkdir()
    for path in several:
        shutil.copy(rank_files[name], path)
        shutil.copy(rank_files[name], tmp_path / "other" / Path(path).name)
    (tmp_path / "ratios.tsv").write_text("a\t0\tb\n")
    least, few = ("-m", "mrr"), ("--resamples", "100")
    other = ("--against", str(tmp_path / "other"))
    reports = (
        few, ("parts", "--by", "side"), ("power",), ("stability", "--repeats", "1"),
        ("replicates", *few), ("labels", *other, *few), ("labels", "--by", "side", *other, *few),
        ("parts", "--ratios", str(tmp_path / "ratios.tsv")),
    )  # fmt: skip
    for words in (*(("compare", *one, *several, *least) for one in reports),
                  ("changes", *several[:2])):  # fmt: skip
        done = command_of(*words)
        assert done.exit_code == 0, done.output
        paths = [path for path in words if path in several]
        if other[0] in words:
            paths += [str(tmp_path / "other" / Path(path).name) for path in several]
        for path in paths:
            assert f"{path}: {said}" in done.stderr, words
        assert "NOT COMPARABLE" not in done.stderr


def test_the_open_world_says_it(rank_files: dict[str, str]) -> None:
    done = command_of("openworld", rank_files["parted"], rank_files["parted"], "--sparsity", "0.5")
    assert "the filter leaves out valid" in done.stderr
    assert "valid left out" not in done.stdout


def test_every_command_says_what_cannot_be_compared(
    rank_files: dict[str, str], tmp_path: Path
) -> None:
    for words in commands(tmp_path):
        if "beta-grid" in words:  # draws one file only
            continue
        done = command_of(*words, rank_files["full"], rank_files["sampled"])
        assert "NOT COMPARABLE" in done.stderr, words
        assert "all candidates against sampled candidates" in done.stderr
    for name in ("report", "stratify"):
        assert (
            "NOT COMPARABLE" not in command_of(name, rank_files["full"], rank_files["again"]).stderr
        )


def test_figures_name_sampled_candidates(results: dict[str, kgtrec.Result]) -> None:
    pytest.importorskip("matplotlib")
    from kgtrec.plots import ranks as figures
    from kgtrec.plots.studies import beta_curves, beta_heat_map
    from kgtrec.study.stratified import beta_curve, beta_grid

    both = {name: results[name] for name in ("full", "sampled")}
    ranks = {name: result.ranks for name, result in both.items()}
    curves = {name: beta_curve(each, metrics=("mrr",)) for name, each in ranks.items()}
    for drawn in (figures.rank_distribution(ranks), figures.tie_widths(ranks), beta_curves(curves)):
        texts = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert [text.startswith("sampled (sampled)") for text in texts if "full" not in text][-1]
        assert not any("(sampled)" in text for text in texts if text.startswith("full"))
    for drawn in (figures.rank_types(both), figures.relations(both)):
        texts = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
        assert ["(sampled)" in text for text in texts] == [False, True]
    heat = beta_heat_map(beta_grid(ranks["sampled"], metrics=("mrr",)))
    assert heat.axes[-1].get_ylabel() == "sampled strat-MRR"


def test_keys_of_sampled_ranks_are_not_those_of_full_ones(
    results: dict[str, kgtrec.Result],
) -> None:
    sampled, full = results["sampled"], results["full"]
    key = "both.realistic.micro.mrr"
    assert sampled[f"sampled.{key}"] == sampled[key]
    assert all(name.startswith("sampled.") for name in sampled)
    with pytest.raises(UsageError, match=r"no candidates were sampled; ask for 'both\."):
        full[f"sampled.{key}"]


def test_results_can_be_compared_as_their_ranks(results: dict[str, kgtrec.Result]) -> None:
    full, sampled = results["full"], results["sampled"]
    different = kgtrec.comparable(full.ranks, sampled.ranks)
    assert not different
    assert str(different) == f"not comparable: {'; '.join(different.reasons)}"
    assert kgtrec.comparable(full, sampled) == different
    assert kgtrec.comparable(full, sampled.ranks) == different
    assert kgtrec.comparable(full, full)
    assert str(kgtrec.comparable(full, full)) == "comparable"
