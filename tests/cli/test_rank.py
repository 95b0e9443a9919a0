"""kgtrec rank: several filters in one pass, and questions without a graph."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
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


# -- Questions without a graph -----------------------------------------------------------------

LINES = [
    {"id": "2p-0", "terms": {"structure": "2p"}, "answers": ["d1", "d3"], "known": ["d0"]},
    {"id": "2i-0", "terms": {"structure": "2i"}, "answers": ["d2"]},
]

QRELS = {"a": {"d0": 2, "d3": 1, "d4": 0}, "b": {"d1": 1}, "c": {"d4": 3}}


@pytest.fixture
def answers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    Path("labels.txt").write_text("".join(f"d{n}\n" for n in range(5)))
    np.save("two.npy", rng.normal(size=(2, 5)).astype(np.float32))
    vectors = {"queries": rng.normal(size=(2, 4)), "entities": rng.normal(size=(5, 4))}
    np.savez("v.npz", **{name: array.astype(np.float32) for name, array in vectors.items()})
    rows = [f"{q} 0 {d} {r}\n" for q, row in QRELS.items() for d, r in row.items()]
    Path("qrels.txt.gz").write_bytes(gzip.compress("".join(rows).encode()))
    Path("ids.txt").write_text("b\na\n")
    return tmp_path


def call(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(cli, [*words])
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return str(result.exception) if fails else result.output


ASK = ("rank", "--questions", "questions.jsonl", "--candidates", "labels.txt",
       "--scores", "two.npy", "-o", "r.parquet")  # fmt: skip

RELS = ("rank", "--qrels", "qrels.txt.gz", "--documents", "labels.txt", "--queries", "ids.txt",
        "--scores", "v.npz", "-o", "q.parquet")  # fmt: skip


def test_questions_are_ranked_reported_compared_drawn_and_shown(answers_folder: Path) -> None:
    text = call(*ASK)
    assert "2 questions · 3 instances · 5 candidates" in text
    assert "Equally by structure" in text
    questions = kgtrec.Questions.from_answers("questions.jsonl", labels=[f"d{n}" for n in range(5)])
    expected = kgtrec.rank(np.load("two.npy"), questions)[0]
    expected.save("expected.parquet")
    assert Path("r.parquet").read_bytes() == Path("expected.parquet").read_bytes()
    np.save("other.npy", -np.load("two.npy"))
    call(*ASK[:-4], "--scores", "other.npy", "-o", "o.parquet")
    table = call("report", "r.parquet", "--by", "structure", "-m", "mrr", "--format", "csv")
    assert [row.split(",")[0] for row in table.splitlines()] == ["structure", "2i", "2p"]
    call("plot", "slices", "--by", "structure", "r.parquet", "o.parquet", "-o", "slices.svg")
    assert Path("slices.svg").stat().st_size
    call(*ASK, "--write-run", "r.run")
    call(*ASK[:-4], "--scores", "other.npy", "-o", "o.parquet", "--write-run", "o.run")
    runs = ("--run", "r.run", "--run", "o.run")
    call("report", "r.parquet", "o.parquet", "--html", "page.html", "--name", "A", "--name", "B",
         *runs)  # fmt: skip
    assert "2p-0" in call("changes", "r.parquet", "o.parquet", *runs)
    page = Path("page.html").read_text()
    assert '"structure 2i"' in page
    assert "<title>Ranking</title>" in page
    assert '"models":["A","B"]' in page
    group = "group.mrr(structure)"
    assert group in call("compare", "r.parquet", "o.parquet", "-m", group)


def test_qrels_are_ranked_as_a_complete_run_is_evaluated(answers_folder: Path) -> None:
    text = call(*RELS, "--write-run", "out.run")
    with np.load("v.npz") as arrays:
        scores = arrays["queries"] @ arrays["entities"].T
    complete = {
        query: {f"d{n}": float(score) for n, score in enumerate(row)}
        for query, row in zip("ba", scores, strict=True)
    }
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut.10"}).evaluate(complete)
    for name in ("map", "ndcg_cut_10"):
        mean = sum(each[name] for each in theirs.values()) / 2
        assert f"{mean:.4f}" in text
        assert f"{mean:.4f}" in call("report", "q.parquet", "-m", f"macro.{name}")
    assert len(Path("out.run").read_text().splitlines()) == 10
    assert kgtrec.Ranks.load("q.parquet").question_ids == ["b", "a", "a"]


@pytest.mark.parametrize("words", [ASK, RELS])
def test_shards_are_merged_to_the_same_file(answers_folder: Path, words: tuple[str, ...]) -> None:
    call(*words)
    for number in (2, 1):
        call(*words[:-1], "shards", "--shard", f"{number}/2")
    call("merge", "shards", "-o", "merged")
    assert Path("merged").read_bytes() == Path(words[-1]).read_bytes()


def test_ranks_without_a_row_are_named(answers_folder: Path) -> None:
    call(*ASK)
    kgtrec.Ranks.load("r.parquet").subset(slice(0)).save("r.parquet")
    text = call("report", "r.parquet", fails=True)
    assert text.startswith("r.parquet: impossible ranks: there are no rows; give a file")
