"""kgtrec report: the published table, parts of it, and one row per model."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from compare_cases import systems

import kgtrec
from kgtrec.cli import cli
from kgtrec.cli.report import command
from kgtrec.errors import KgtrecError, UsageError

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


def test_the_table(folder: Path) -> None:
    text = run(folder / "a.parquet")
    assert text.rstrip("\n") == str(loaded(folder / "a.parquet"))
    assert max(map(len, text.splitlines())) <= 80
    assert "agree to 1e-12" in text.replace("\n  ", " ")


def test_json_maps_keys_to_values(folder: Path) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    assert json.loads(run(a, "--format", "json")) == loaded(a).to_dict()
    both = json.loads(run(a, b, "--format", "json"))
    assert both == {str(a): loaded(a).to_dict(), str(b): loaded(b).to_dict()}


def test_measures_may_be_chosen(folder: Path) -> None:
    a = folder / "a.parquet"
    keys = ["both.micro.hits_at_7", "tail.stratified.mrr(0.25,1)"]
    printed = json.loads(run(a, "--format", "json", "-m", keys[0], "-m", keys[1]))
    result = loaded(a)
    assert printed == {
        "both.realistic.micro.hits@7": result[keys[0]],
        "tail.stratified.mrr(0.25,1)": result[keys[1]],
    }
    assert "tail.stratified.mrr(0.25,1)" in run(a, "-m", keys[1])


def test_several_files_stand_one_below_the_other(folder: Path) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    text = run(a, b)
    assert f"== {a}\n{loaded(a)}\n\n== {b}\n{loaded(b)}\n" == text


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


def test_bad_keys_are_all_named_before_any_file_is_read() -> None:
    with pytest.raises(UsageError) as caught:
        run("no-such.parquet", "-m", "both.micro.mmr", "-m", "nonsense")
    assert "mmr" in str(caught.value)
    assert "nonsense" in str(caught.value)


def test_files_that_are_no_ranks(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no parquet")
    for path in (tmp_path / "missing.parquet", tmp_path / "text.parquet", tmp_path):
        with pytest.raises(KgtrecError, match=str(path)):
            run(folder / "a.parquet", path)


def test_help_explains_itself() -> None:
    text = run("--help")
    assert "kgtrec report ranks.parquet" in text
    assert "--by" in text


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
    alone = run(folder / "a.parquet", *how, "-m", "mrr", "-m", "hits@10", "--format", "markdown")
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
    assert printed(models, *FILES, "--format", "latex").count(r" \\") == 1 + 3
    assert r"\toprule" in printed(models, *FILES, "--format", "latex")
    assert printed(models, *FILES, "--format", "html").count("<tr>") == 1 + 3
    assert printed(models, *FILES, "--format", "markdown").splitlines()[1].count("---") == 6
    assert "strong(" in printed(models, *FILES, "--format", "typst")
    text = printed(models, *FILES, "--columns", "mrr, tail.hits@10, map", "--digits", "2")
    assert text.splitlines()[1].split() == ["model", "MRR", "Hits@10", "MAP"]
    assert f"{due[FILES[0]]['mrr']:.2f}" in text


def test_names_sides_and_tests(models: Path) -> None:
    names = ("--name", "A", "--name", "B", "--name", "C")
    text = printed(models, *FILES, *names, "--side", "head,tail", "--columns", "mrr,macro.mrr",
                   "--test", "t", "--format", "markdown")  # fmt: skip
    assert "head, micro: MRR ↑ | head, macro: MRR ↑ | tail, micro: MRR ↑" in text
    assert "| (a) A |" in text.replace("\\", "")
    assert "paired t-test, Holm's correction, p \\< 0.05" in text
    assert printed(models, FILES[0], "-m", "mrr", "-m", "head.mr", "--format", "csv").splitlines()[
        0
    ] == ("model,both.realistic.micro.mrr,head.realistic.micro.mr")


def test_a_batch_is_models_by_graphs(models: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(models, "results", "--format", "csv"))))
    assert [row["model"] for row in rows] == ["s0", "s1"]
    for graph, seed in (("one", 0), ("two", 1)):
        for row, ranks in zip(rows, systems(2, seed=seed).values(), strict=True):
            due = kgtrec.Result(ranks)["mrr"]
            assert float(row[f"{graph}:both.realistic.micro.mrr"]) == due
    assert r"\multicolumn{5}{c}{one}" in printed(models, "results", "--format", "latex")


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


def test_a_page_never_overwrites_ranks_and_needs_one_graph(models: Path, tmp_path: Path) -> None:
    with pytest.raises(KgtrecError, match="would overwrite an input"):
        printed(models, *FILES, "--html", str(models / FILES[0]))
    with pytest.raises(KgtrecError, match="a page is for one graph"):
        printed(models, "results", "--html", str(tmp_path / "x.html"))


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


def test_systems_of_one_run_each_are_no_replicates(models: Path, tmp_path: Path) -> None:
    for name, ranks in systems(2).items():
        ranks.save(tmp_path / f"{name}x.parquet")
    words = [str(tmp_path / name) for name in ("s0x.parquet", "s1x.parquet")]
    with pytest.raises(KgtrecError, match="no two of s0x, s1x are runs of one system"):
        CliRunner().invoke(cli, ["compare", "replicates", *words], catch_exceptions=False)
