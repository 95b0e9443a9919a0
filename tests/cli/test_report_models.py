"""kgtrec report: a row a model, from files and from the output of a batch."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from compare_cases import systems

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import KgtrecError

FILES = ("s0.parquet", "s1.parquet", "s2.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of one graph, and the output folder of a batch on two graphs."""
    place = tmp_path_factory.mktemp("models")
    for name, ranks in systems(3).items():
        ranks.save(place / f"{name}.parquet")
    for graph, seed in (("one", 0), ("two", 1)):
        for name, ranks in systems(2, seed=seed).items():
            home = place / f"results/ranks/graph={graph}/protocol=test/model={name}"
            home.mkdir(parents=True)
            ranks.save(home / "ranks.parquet")
    return place


def run(folder: Path, *arguments: str) -> str:
    words = [str(folder / word) if word in (*FILES, "results") else word for word in arguments]
    done = CliRunner().invoke(cli, ["report", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_row_a_model_in_every_format(folder: Path) -> None:
    due = {name: kgtrec.Result(kgtrec.Ranks.load(folder / name)) for name in FILES}
    rows = list(csv.DictReader(io.StringIO(run(folder, *FILES, "--format", "csv"))))
    assert [row["model"] for row in rows] == ["s0", "s1", "s2"]
    for row, name in zip(rows, FILES, strict=True):
        for key in ("mrr", "hits@1", "hits@3", "hits@10", "mr"):
            assert float(row[f"both.realistic.micro.{key}"]) == due[name][key]
    assert run(folder, *FILES, "--format", "latex").count(r" \\") == 1 + 3
    assert r"\toprule" in run(folder, *FILES, "--format", "latex")
    assert run(folder, *FILES, "--format", "html").count("<tr>") == 1 + 3
    assert run(folder, *FILES, "--format", "markdown").splitlines()[1].count("---") == 6
    assert "strong(" in run(folder, *FILES, "--format", "typst")
    text = run(folder, *FILES, "--columns", "mrr, tail.hits@10, map", "--digits", "2")
    assert text.splitlines()[1].split() == ["model", "MRR", "Hits@10", "MAP"]
    assert f"{due[FILES[0]]['mrr']:.2f}" in text


def test_names_sides_and_tests(folder: Path) -> None:
    text = run(folder, *FILES, "--name", "A", "--name", "B", "--name", "C", "--side", "head,tail",
               "--columns", "mrr,macro.mrr", "--test", "t", "--format", "markdown")  # fmt: skip
    assert "head, micro: MRR ↑ | head, macro: MRR ↑ | tail, micro: MRR ↑" in text
    assert "| (a) A |" in text.replace("\\", "")
    assert "paired t-test, Holm's correction, p \\< 0.05" in text
    assert run(folder, FILES[0], "-m", "mrr", "-m", "head.mr", "--format", "csv").splitlines()[
        0
    ] == ("model,both.realistic.micro.mrr,head.realistic.micro.mr")


def test_a_batch_is_models_by_graphs(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(folder, "results", "--format", "csv"))))
    assert [row["model"] for row in rows] == ["s0", "s1"]
    for graph, seed in (("one", 0), ("two", 1)):
        for row, ranks in zip(rows, systems(2, seed=seed).values(), strict=True):
            due = kgtrec.Result(ranks)["mrr"]
            assert float(row[f"{graph}:both.realistic.micro.mrr"]) == due
    assert r"\multicolumn{5}{c}{one}" in run(folder, "results", "--format", "latex")


def test_a_table_goes_into_a_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.tex"
    for more in (("--format", "latex"), ("--by", "relation"), ("--format", "json"), ()):
        assert run(folder, *FILES, *more, "-o", str(out)) == ""
        assert out.read_text("utf-8") == run(folder, *FILES, *more)
    for wrong in (folder / FILES[0], tmp_path / "absent" / "table.tex", tmp_path):
        with pytest.raises(KgtrecError, match=str(wrong)):
            run(folder, *FILES, "-o", str(wrong))
    assert kgtrec.Ranks.load(folder / FILES[0])


def test_a_page_is_written(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(folder, *FILES, "--html", str(page), "--name", "A", "--name", "B", "--name", "C")
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert '"models":["A","B","C"]' in text
    assert f"{kgtrec.Result(kgtrec.Ranks.load(folder / FILES[0]))['mrr']!r}" in text


def test_a_page_never_overwrites_ranks_and_needs_one_graph(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(KgtrecError, match="would overwrite an input"):
        run(folder, *FILES, "--html", str(folder / FILES[0]))
    with pytest.raises(KgtrecError, match="a page is for one graph"):
        run(folder, "results", "--html", str(tmp_path / "x.html"))


def test_runs_of_one_model(folder: Path, tmp_path: Path) -> None:
    from statistics import mean, stdev

    names = ("m-1.parquet", "m-2.parquet", "n-1.parquet")
    for name, ranks in zip(names, systems(3).values(), strict=True):
        ranks.save(tmp_path / name)
    words = [str(tmp_path / name) for name in names]
    values = [kgtrec.Result(kgtrec.Ranks.load(word))["mrr"] for word in words]
    (m, n) = csv.DictReader(io.StringIO(run(folder, *words, "--replicates", "--format", "csv")))
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


def test_runs_say_whose_best_answer_is_another(folder: Path, tmp_path: Path) -> None:
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


def test_folds_are_runs_of_one_model(folder: Path, tmp_path: Path) -> None:
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
    assert "is not said of folds" in done.stderr
    assert f"{mean(values[::2]):.4f}" in done.stdout
    rows = csv.DictReader(io.StringIO(run(folder, *words, "--replicates", "--format", "csv")))
    key = "both.realistic.micro.mrr"
    assert [float(row[key]) for row in rows] == [mean(values[::2]), mean(values[1::2])]
    text = run(folder, *words, "--replicates", "--format", "latex", "--test", "bootstrap")
    assert "Means over 2 folds; the counts are those of the first." in text
    assert "NOT COMPARABLE" not in text


def test_systems_of_one_run_each_are_no_replicates(folder: Path, tmp_path: Path) -> None:
    for name, ranks in systems(2).items():
        ranks.save(tmp_path / f"{name}x.parquet")
    words = [str(tmp_path / name) for name in ("s0x.parquet", "s1x.parquet")]
    with pytest.raises(KgtrecError, match="no two of s0x, s1x are runs of one system"):
        CliRunner().invoke(cli, ["compare", "replicates", *words], catch_exceptions=False)
