"""The demo: the facts of its graph, its baselines, its files and its text."""

from __future__ import annotations

import hashlib
import itertools
import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from trec_oracle import measures

import kgtrec
from kgtrec.cli.about import demo as command
from kgtrec.demo.baselines import popularity_scores, random_scores, svd_factors
from kgtrec.demo.lessons import _describe_orders
from kgtrec.demo.run import COUNTRIES, run_demo
from kgtrec.errors import FileError
from kgtrec.trec import read_qrels, read_run

SPLITS = ("train", "valid", "test")

SYSTEMS = ("svd", "popularity", "random")

FACTS = "4afc1f7c79aea6aff02e6ecdca0365a3f970e835cd5eebd63158894d66152507"


def test_the_facts_are_those_that_were_checked():
    """Check changed facts against SOURCES.md, then put their digest here."""
    texts = {name: (COUNTRIES / f"{name}.txt").read_text("utf-8") for name in SPLITS}
    assert hashlib.sha256("".join(texts.values()).encode()).hexdigest() == FACTS
    facts = {name: [line.split("\t") for line in text.splitlines()] for name, text in texts.items()}
    heads, relations, tails = map(set, zip(*itertools.chain(*facts.values()), strict=True))
    seen_heads, seen_relations, seen_tails = map(set, zip(*facts["train"], strict=True))
    assert heads | tails == seen_heads | seen_tails
    assert relations == seen_relations
    for triples in facts.values():
        borders = {(head, tail) for head, relation, tail in triples if relation == "borders"}
        assert borders == {(tail, head) for head, tail in borders}
    sources = (COUNTRIES / "SOURCES.md").read_text("utf-8")
    for words in (*(f"| `{relation}` |" for relation in relations), "3,395 statements"):
        assert words in sources
    assert sum(map(len, facts.values())) == 3395


# --- the baselines


@pytest.fixture(scope="module")
def questions():
    return kgtrec.read_graph(COUNTRIES, progress=False).questions()


def _small(test):
    """Four entities, two relations; only `test` differs."""
    train = np.array([[0, 0, 1], [2, 0, 1], [3, 0, 2], [0, 1, 3], [2, 1, 3], [1, 1, 0]])
    return kgtrec.Graph.from_arrays(train=train, test=test, n_entities=4, n_relations=2).questions()


def _dense(factors):
    return np.asarray(factors.queries) @ np.asarray(factors.entities).T


def test_popularity_counts_the_training_answers_of_the_relation_and_side():
    small = _small(np.array([[1, 0, 2]]))
    assert small.side.tolist() == [0, 1]
    assert popularity_scores(small).tolist() == [[1, 0, 1, 1], [0, 2, 1, 0]]
    first = random_scores(small, seed=3)
    assert np.array_equal(first, random_scores(small, seed=3))
    assert not np.array_equal(first, random_scores(small, seed=4))
    for scores in (popularity_scores(small), first):
        assert (scores.dtype, scores.shape) == (np.float32, (2, 4))


def test_baselines_do_not_look_at_test_triples():
    triples = np.array([[1, 0, 2], [1, 0, 0]])
    one, other = _small(triples[:1]), _small(triples)
    same = {(e, r, s): i for i, (e, r, s) in enumerate(_keys(other))}
    rows = [same[key] for key in _keys(one)]
    assert np.array_equal(popularity_scores(one), popularity_scores(other)[rows])
    # near, not equal: a product of another shape may sum in another order
    assert np.allclose(
        _dense(svd_factors(one, rank=2)), _dense(svd_factors(other, rank=2))[rows], atol=1e-5
    )


def _keys(questions):
    columns = (questions.entity, questions.relation, questions.side)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.slow
def test_svd_scores_depend_on_its_seed_only_by_rounding(questions):
    first, second = (_dense(svd_factors(questions, seed=seed)) for seed in (0, 9))
    assert np.isfinite(first).all()
    assert np.allclose(first, second, atol=1e-4)


def test_svd_answers_questions_without_a_training_row(questions):
    graph = questions.graph
    head, relation, tail = graph.split("train").T.astype(int)
    seen = set(zip(tail, relation, [0] * len(tail), strict=True))
    seen |= set(zip(head, relation, [1] * len(head), strict=True))
    unseen = [i for i, key in enumerate(_keys(questions)) if key not in seen]
    assert unseen
    scores = _dense(svd_factors(questions))[unseen]
    assert (np.ptp(scores, axis=1) > 0).all()


# --- the flow


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder that the command fills, and its text."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "kgtrec-demo"
    done = CliRunner().invoke(command, ["--output", str(folder), "--seed", "5"])
    assert done.exit_code == 0, done.output
    return folder, done.stdout_bytes.decode("utf-8")


def test_demo_leaves_everything_and_no_half_files(demo):
    folder, text = demo
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "qrels.txt",
        "questions.tsv",
        "report.txt",
        "report.json",
        "popularity.npy",
        *(f"graph/{name}.txt" for name in SPLITS),
        "graph/SOURCES.md",
        *(f"{name}.run" for name in SYSTEMS),
        *(f"{name}.ranks.parquet" for name in SYSTEMS),
    }
    assert (folder / "report.txt").read_text(encoding="utf-8") == text
    printed = text[: text.index("Files in")]
    assert max(map(len, printed.splitlines())) <= 80
    for words in ("kgtrec report", "kgtrec eval", "kgtrec rank"):
        assert f"  {words} " in text
    assert str(folder / "qrels.txt") in text


def test_printed_numbers_are_those_of_the_ranks(demo):
    folder, text = demo
    numbers = json.loads((folder / "report.json").read_text())
    for name in SYSTEMS:
        ranks = kgtrec.Ranks.load(folder / f"{name}.ranks.parquet")
        mrr = np.mean(1 / (ranks.greater + 1 + ranks.equal / 2))
        due = pytest.approx(mrr, abs=1e-12)
        assert numbers["filtered"][name]["both.realistic.micro.mrr"] == due
        rows = [line.split() for line in text.splitlines() if line.startswith(f"  {name} ")]
        assert any(f"{mrr:.3f}" in row for row in rows)
    constant = numbers["filtered"]["constant"]
    assert constant["both.optimistic.micro.mrr"] == 1
    assert constant["both.realistic.micro.amri"] == pytest.approx(0)
    # The systems do what they are there to show.
    filtered, raw = numbers["filtered"], numbers["unfiltered"]
    mrr = {name: filtered[name]["both.realistic.micro.mrr"] for name in filtered}
    assert mrr["svd"] > 2 * mrr["popularity"] > 4 * mrr["random"]
    assert abs(filtered["random"]["both.realistic.micro.amri"]) < 0.1
    popular = filtered["popularity"]
    assert popular["both.optimistic.micro.mrr"] > popular["both.pessimistic.micro.mrr"]
    assert mrr["svd"] > raw["svd"]["both.realistic.micro.mrr"]


def test_files_agree_with_each_other_and_encode_blanks(demo):
    folder = demo[0]
    qrels = read_qrels(folder / "qrels.txt")
    assert sum(map(len, qrels.values())) == 680
    assert any("%20" in name for answers in qrels.values() for name in answers)
    numbers = json.loads((folder / "report.json").read_text())
    for name in SYSTEMS:
        run = read_run(folder / f"{name}.run")
        assert set(run) == set(qrels)
        orders = {
            q: sorted(d, key=lambda name: (d[name], name.encode()), reverse=True)
            for q, d in run.items()
        }
        shown = {q: [qrels[q].get(name) for name in order[:20]] for q, order in orders.items()}
        ap = [measures(shown[q], [*qrels[q].values()], cuts=[20])["map_cut_20"] for q in qrels]
        expected = numbers["filtered"][name]["both.macro.map_cut_20"]
        assert np.mean(ap) == pytest.approx(expected, abs=1e-9)


def test_graph_and_scores_left_behind_give_the_same_ranks_again(demo):
    folder = demo[0]
    again = kgtrec.read_graph(folder / "graph", progress=False).questions()
    ranks, _ = kgtrec.rank(np.load(folder / "popularity.npy"), again)
    saved = kgtrec.Ranks.load(folder / "popularity.ranks.parquet")
    for column in ("greater", "equal", "candidates", "macro_greater", "macro_candidates"):
        assert np.array_equal(getattr(ranks, column), getattr(saved, column)), column


@pytest.mark.slow
def test_demo_can_be_repeated_in_the_same_folder(tmp_path):
    first = run_demo(tmp_path, seed=1)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.run")}
    assert run_demo(tmp_path, seed=1) == first
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.run")} == before


def test_orders_are_computed_not_claimed():
    agreeing = {"a": {"x": 0.2, "y": 0.4}, "b": {"x": 0.1, "y": 0.3}}
    assert "same order: a > b" in _describe_orders(agreeing, {"X": "x", "Y": "y"})
    said = _describe_orders(agreeing | {"a": {"x": 0.2, "y": 0.1}}, {"X": "x", "Y": "y"})
    assert "changes" in said
    assert "by X a > b; by Y b > a" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_one_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="permission"):
        run_demo(tmp_path / "out")
    tmp_path.chmod(0o700)
