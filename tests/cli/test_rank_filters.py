"""`kgtrec rank` with several filters: files and numbers of each are those of a run of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")

FILTERS = {"raw": "raw", "valid": "valid", "train,test": "train+test"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for split in ("train", "valid", "test"):
        rows = rng.integers(0, (12, 2, 12), (40, 3)).tolist()
        lines = "".join(f"e{h:02d}\tr{r}\te{t:02d}\n" for h, r, t in rows)
        (tmp_path / f"{split}.txt").write_text(lines)
    n_rows = len(kgtrec.read_graph(tmp_path).questions())
    np.save(tmp_path / "scores.npy", rng.integers(0, 5, (n_rows, 12)).astype(np.float32))
    lines = [f"head{n} Q0 e{e:02d} 1 {9 - e} x\n" for n in (1, 2) for e in range(5)]
    (tmp_path / "lists.run").write_text("".join(lines))
    return tmp_path


def run(folder: Path, *words: str, fails: bool = False) -> str:
    source = ("--scores", "scores.npy") if "--predictions" not in words else ()
    pairs = zip(("--graph", *source[:1]), ("", *source[1:]), strict=True)
    paths = [word for name, path in pairs for word in (name, str(folder / path))]
    result = CliRunner().invoke(cli, ["rank", *paths, *words])
    assert (result.exit_code != 0) == fails, result.output
    return str(result.exception) if fails else result.output


def chosen(*names: str) -> list[str]:
    return [word for name in names for word in ("--filter", name)]


@pytest.mark.parametrize("predictions", [False, True])
def test_each_filter_has_the_files_of_a_run_of_its_own(folder: Path, predictions: bool) -> None:
    lists = (
        ("--predictions", str(folder / "lists.run"), "--predictions-format", "trec")
        if predictions
        else ()
    )
    names = [f"{folder}/{{filter}}.parquet", f"{folder}/{{filter}}.run", f"{folder}/{{filter}}.q"]
    outputs = ["-o", names[0], "--write-run", names[1], "--write-qrels", names[2],
               "--tag", "mine"]  # fmt: skip
    table = run(folder, *lists, *outputs, *chosen(*FILTERS))
    for filtered, name in FILTERS.items():
        alone = [word.replace("{filter}", "alone") for word in outputs]
        run(folder, *lists, *alone, *chosen(filtered), "--quiet")
        for ending in ("parquet", "run", "q"):
            paths = (folder / f"{name}.{ending}", folder / f"alone.{ending}")
            assert paths[0].read_bytes() == paths[1].read_bytes(), paths
        result = kgtrec.evaluate(kgtrec.Ranks.load(folder / f"{name}.parquet"))
        lines = [line.split() for line in table.splitlines() if line.startswith(f"{name} ")]
        assert len(lines) == (0 if predictions else 6)
        if not predictions:
            keys = ("head.micro.mrr", "tail.micro.mrr", "both.micro.mrr")
            assert [line[2] for line in lines[:3]] == [f"{result[key]:.4f}" for key in keys]
    assert all(line.endswith(" mine") for line in (folder / "raw.run").read_text().splitlines())
    assert "filters raw, valid, train+test" in " ".join(table.split())
    assert "WARNING: raw: unfiltered" in table


def test_one_filter_takes_its_name_too_and_qrels_are_those_of_all(folder: Path) -> None:
    run(folder, "-o", f"{folder}/x-{{filter}}.parquet", *chosen("train,test"), "--quiet")
    assert (folder / "x-train+test.parquet").is_file()
    qrels = str(folder / "qrels")
    run(folder, "-o", f"{folder}/{{filter}}.parquet", "--write-qrels", qrels, *chosen("raw", "all"))
    assert (folder / "qrels").is_file()


@pytest.mark.parametrize("depth", [1, 3])
def test_a_run_is_as_deep_as_asked(folder: Path, depth: int) -> None:
    out = [str(folder / name) for name in ("o.parquet", "o.run")]
    run(folder, "-o", out[0], "--write-run", out[1], "--run-depth", str(depth))
    queries = [line.split()[0] for line in Path(out[1]).read_text().splitlines()]
    assert {queries.count(query) for query in queries} == {depth}


@pytest.mark.parametrize("option", ["--known", "--entities", "--relations", "--candidates"])
def test_an_output_never_costs_a_list(folder: Path, option: str) -> None:
    (folder / "list.txt").write_text("e00\tr0\te01\n")
    said = run(folder, option, f"{folder}/list.txt", "-o", f"{folder}/list.txt", fails=True)
    assert "would overwrite an input" in said
    assert (folder / "list.txt").read_text() == "e00\tr0\te01\n"


def test_convert_asks_the_sides_that_are_named(folder: Path) -> None:
    words = ["convert", "--graph", str(folder), "--sides", "tail", "--write-qrels", f"{folder}/t"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert all(line.startswith("tail") for line in (folder / "t").read_text().splitlines())
