"""Raw runs that a graph filters: the numbers of filtered ranks, from `eval` and from lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli

N = 25


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, its qrels, and a run of the ten best of everything, known answers not left out."""
    home = tmp_path_factory.mktemp("filter")
    rng = np.random.default_rng(11)
    (home / "g").mkdir()
    for split, size in (("train", 120), ("valid", 20), ("test", 40)):
        rows = rng.integers(0, (N, 2, N), (size, 3)).tolist()
        text = "".join(f"e {h:02}\tr{r}\te {t:02}\n" for h, r, t in rows)
        (home / "g" / f"{split}.txt").write_text(text)
    questions = kgtrec.read_graph(home / "g").questions()
    kgtrec.write_qrels(questions, home / "q.qrels")
    raw = kgtrec.read_graph(home / "g").questions(filter="raw")
    scores = rng.integers(0, 12, (len(raw), N)).astype(np.float32)  # ties
    kgtrec.rank(scores, raw, run_depth=10)[1].write(home / "raw.run")
    return home


def test_numbers_are_those_of_filtered_lists(home: Path) -> None:
    questions = kgtrec.read_graph(home / "g").questions()
    names = ["kg_mr", "kg_mrr", "kg_hits.1,3", "kg_amri", "map_cut.5"]
    row = trec.evaluate(
        home / "q.qrels", home / "raw.run", names, summary=True, questions=questions
    )
    result = kgtrec.Result(kgtrec.rank_lists(home / "raw.run", questions, "trec"))
    for ours, key in (("mr", "mr"), ("mrr", "mrr"), ("hits_1", "hits@1"), ("amri", "amri")):
        value = result[f"both.realistic.micro.{key}"]
        low, high = getattr(value, "low", value), getattr(value, "high", value)
        ends = sorted((row[f"kg_{ours}_low"], row[f"kg_{ours}_high"]))
        assert ends == pytest.approx([low, high]), key
    assert row["kg_mrr_low"] < row["kg_mrr_high"]
    listed = trec.evaluate(
        home / "q.qrels", home / "raw.run", ["kg_mrr", "map_cut.5"], summary=True
    )
    assert row["kg_mrr_low"] > listed["kg_mrr_low"] + 0.01  # the filter does something
    assert row["map_cut_5"] > listed["map_cut_5"]


def test_the_filtered_run_is_that_of_the_ranker(home: Path) -> None:
    """map of a raw run with --graph is that of the run which a filtered ranking writes."""
    questions = kgtrec.read_graph(home / "g").questions()
    run = trec.read_run(home / "raw.run")
    filtered: dict[str, dict[str, float]] = {}
    for number, query in enumerate(questions.ids):
        known = {f"e%20{entity:02}" for entity in questions.removed[number].tolist()}
        filtered[query] = {doc: s for doc, s in run[query].items() if doc not in known}
    names = ["map", "bpref", "ndcg_cut.5", "num_ret"]
    ours = trec.evaluate(questions, run, names, questions=questions)
    assert ours == trec.evaluate(questions, filtered, names)
    frame = trec.read_run(home / "raw.run", as_="frame")
    assert ours == trec.evaluate(questions, frame, names, questions=questions)


def test_the_command_says_what_it_left_out(home: Path) -> None:
    words = ["eval", "-m", "kg_mrr", "--graph", home / "g", home / "q.qrels", home / "raw.run"]
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.exception
    assert "filtered by g: " in done.stderr
    assert "documents that train, valid, test know left the run" in done.stderr
    assert "as listed" not in done.stderr
    done = CliRunner().invoke(cli, [str(word) for word in [*words, "--format", "json"]])
    (one,) = json.loads(done.stdout).values()
    assert one["kg_ranks"] == "filtered by the graph"


def test_documents_that_are_no_entities_keep_their_places(home: Path) -> None:
    questions = kgtrec.read_graph(home / "g").questions()
    query = questions.ids[0]
    answers = [f"e%20{int(entity):02}" for entity in questions.answers[0]]
    run = {query: {"nobody": 3.0, **dict.fromkeys(answers, 1.0)}}
    qrels = {query: dict.fromkeys(answers, 1)}
    row = trec.evaluate(qrels, run, ["recip_rank", "kg_mrr"], questions=questions, summary=True)
    assert (row["recip_rank"], row["kg_mrr_low"], row["kg_mrr_high"]) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--graph", "g", "--entities", "25", "-m", "kg_mr"], "leave --entities out"),
        (["--split", "valid"], "--split goes with --graph"),
        (["--graph", "g", "--split", "valid"], "are not questions of split 'valid'"),
        (["--graph", "g", "--split", "dev"], "no split 'dev'"),
        (["--graph", "nowhere"], "nowhere: this folder does not exist"),
    ],
    ids=["entities", "split", "other", "none", "folder"],
)
def test_what_cannot_be_filtered(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(home)
    done = CliRunner().invoke(cli, ["eval", *words, "q.qrels", "raw.run"])
    assert isinstance(done.exception, kgtrec.KgtrecError)
    assert message in str(done.exception)
