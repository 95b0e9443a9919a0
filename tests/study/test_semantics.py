"""Sem@k against sets and loops, from every source of what fits, and ``kgtrec semantics``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import FileError
from kgtrec.study import (
    fitting_by_constraints,
    fitting_by_types,
    fitting_observed,
    semantic_shares,
)
from kgtrec.study.pooling.seeds import read_question_ids

N = 12


def world(seed: int) -> tuple[kgtrec.Graph, dict[str, list[tuple[int, int, int]]], np.ndarray]:
    """A small graph, its splits as lists, and scores of its questions."""
    random = np.random.default_rng(seed)
    rows = random.permutation(np.unique(random.integers(0, (N, 3, N), (60, 3)), axis=0))
    splits = {"train": rows[:25], "valid": rows[25:35], "test": rows[35:]}
    graph = kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=3)
    scores = np.tile(np.arange(N, dtype=np.float32), (len(graph.questions()), 1))
    lists = {name: list(map(tuple, part.tolist())) for name, part in splits.items()}
    return graph, lists, random.permuted(scores, axis=1)


def shares_by_hand(splits, scores, fits, cutoffs):
    """Share of the k best that fit, and of all candidates, of every question in turn."""
    questions = []
    for side in (0, 1):
        keys = dict.fromkeys((t[2 - 2 * side], t[1]) for t in splits["test"])
        questions += [(side, *key) for key in keys]
    everything = [triple for part in splits.values() for triple in part]
    values, chance = [], []
    for (side, entity, relation), row in zip(questions, scores.tolist(), strict=True):

        def completes(triple, side=side, entity=entity, relation=relation):
            return triple[2 - 2 * side] == entity and triple[1] == relation

        answers = {t[2 * side] for t in splits["test"] if completes(t)}
        known = {t[2 * side] for t in everything if completes(t)} - answers
        candidates = [e for e in range(N) if e not in known]
        best = sorted(candidates, key=lambda e, row=row: -row[e])
        fitting = fits.get((relation, side), set())
        if not fitting:
            values.append([np.nan] * len(cutoffs))
            chance.append(np.nan)
            continue
        values.append([sum(e in fitting for e in best[:k]) / len(best[:k]) for k in cutoffs])
        chance.append(sum(e in fitting for e in candidates) / len(candidates))
    return np.array(values).T, np.array(chance)


def observed_by_hand(triples):
    fits = {}
    for head, relation, tail in triples:
        fits.setdefault((relation, 0), set()).add(head)
        fits.setdefault((relation, 1), set()).add(tail)
    return fits


@given(st.integers(0, 10_000), st.sampled_from(["train", "valid", "train,valid"]))
def test_shares_are_those_of_sets_and_loops(seed, names):
    graph, splits, scores = world(seed)
    questions = graph.questions()
    _, run = kgtrec.rank(scores, questions, run_depth=N, progress=False)
    cutoffs = (1, 3, 20)
    result = semantic_shares({"a": run}, questions, fitting_observed(graph, names), cutoffs=cutoffs)
    fits = observed_by_hand([t for name in names.split(",") for t in splits[name]])
    values, chance = shares_by_hand(splits, scores, fits, cutoffs)
    np.testing.assert_array_equal(result.values[0], values)
    np.testing.assert_allclose(result.chance, chance, rtol=1e-15)
    assert result.source == f"observed in {names}"


@given(st.integers(0, 10_000))
def test_means_over_triples_count_a_question_once_per_answer(seed):
    graph, _, scores = world(seed)
    questions = graph.questions()
    _, run = kgtrec.rank(scores, questions, run_depth=N, progress=False)
    result = semantic_shares({"a": run}, questions, cutoffs=(1, 3), resampling=Resampling(95, 100))
    triples = np.repeat(np.arange(len(questions)), questions.answers.lengths)
    asked = [("head", "tail")[number] for number in result.side.tolist()]
    for name, side, measure, over, n, value, low, high, chance in result.table().rows:
        own = [q for q in (triples if over == "triples" else range(len(questions)))
               if side in ("both", asked[q]) and not np.isnan(result.chance[q])]  # fmt: skip
        assert (name, n) == ("a", len(own))
        shares = result.values[0, result.cutoffs.index(int(measure[4:]))]
        assert value == pytest.approx(shares[own].mean() if own else np.nan, nan_ok=True)
        assert chance == pytest.approx(result.chance[own].mean() if own else np.nan, nan_ok=True)
        assert not own or low - 1e-12 <= value <= high + 1e-12


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, kgtrec.Graph]:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "train.txt").write_text("a\tr\tx\nb\tr\ty\nc\ts\tx\n")
    (tmp_path / "g" / "test.txt").write_text("a\tr\ty\nc\tq\ta\n")
    (tmp_path / "a.run").write_text(
        "tail0 Q0 y 1 3 t\ntail0 Q0 c 2 2 t\ntail0 Q0 x 3 1 t\n"
        "head0 Q0 c 1 3 t\nhead0 Q0 b 2 2 t\nhead0 Q0 a 3 1 t\n"
    )
    return tmp_path, kgtrec.read_graph(tmp_path / "g")


def test_a_run_file_by_hand(folder):
    path, graph = folder
    result = semantic_shares({"a": path / "a.run"}, graph.questions(), cutoffs=(1, 2))
    # tail0 = (a, r, ?): x is known and out; y fits r's tails {x, y}, c does not: 1, 1/2.
    # head0 = (?, r, y): b is known and out; c does not fit r's heads {a, b}, a does: 0, 1/2.
    # Of q nothing is known.
    assert [graph.questions().ids[i] for i in np.flatnonzero(~np.isnan(result.chance))] == [
        "head0", "tail0",
    ]  # fmt: skip
    rows = {row[1:4]: row[4:6] for row in result.table().rows}
    assert rows["tail", "Sem@1", "questions"] == (1, 1.0)
    assert rows["tail", "Sem@2", "triples"] == (1, 0.5)
    assert rows["head", "Sem@1", "questions"] == (1, 0.0)
    assert rows["both", "Sem@2", "questions"] == (2, 0.5)
    assert result.chance[~np.isnan(result.chance)].tolist() == [1 / 4, 1 / 4]
    assert result.notes() == [
        "2 questions are left out: the entities that fit their relation are unknown"
    ]


def test_lists_of_types(folder):
    path, graph = folder
    types, roles = path / "types.tsv", path / "roles.tsv"
    types.write_text("a\tperson\nb\tperson\tplace\nx\tplace\nnobody\tperson\n")
    roles.write_text("r\tperson\tplace\nq\tperson\tghost\n")
    fitting = fitting_by_types(graph, types, roles)
    n = graph.n_entities
    pairs = {
        (graph.relations[int(key // n // 2)], int(key // n % 2), graph.entities[int(key % n)])
        for key in fitting.keys
    }
    assert pairs == {
        ("r", 0, "a"), ("r", 0, "b"), ("r", 1, "b"), ("r", 1, "x"), ("q", 0, "a"), ("q", 0, "b"),
    }  # fmt: skip
    for text, message in (("a\n", r"types.tsv:1: 'a'"), ("", "the file is empty"),
                          ("z\tperson\n", "no entity of this graph"),
                          ("a\tp\nb\t\n", "types.tsv:2")):  # fmt: skip
        types.write_text(text)
        with pytest.raises(FileError, match=message):
            fitting_by_types(graph, types, roles)


def test_openke_lists_are_as_good_as_the_same_types(folder):
    path, graph = folder
    (path / "entity2id.txt").write_text("5\na\t0\nb\t1\nc\t2\nx\t3\ny\t4\n")
    (path / "relation2id.txt").write_text("1\nr\t0\n")
    (path / "type_constrain.txt").write_text("1\n0\t2\t0\t1\n0\t2\t1\t3\n")
    lists = fitting_by_constraints(graph, path / "type_constrain.txt")
    (path / "types.tsv").write_text("a\tp\nb\tp\tq\nx\tq\n")
    (path / "roles.tsv").write_text("r\tp\tq\n")
    types = fitting_by_types(graph, path / "types.tsv", path / "roles.tsv")
    assert lists.keys.tolist() == types.keys.tolist()


def test_what_is_said_of_short_and_missing_lists(folder):
    path, graph = folder
    (path / "a.run").write_text("tail0 Q0 y 1 3 t\n")
    result = semantic_shares(
        {"a": path / "a.run"}, graph.questions(), fitting_observed(graph, "all"), cutoffs=(2,)
    )
    assert result.notes() == [
        "a: 1 lists have fewer candidates than the 2 best",
        "a has no candidate for 3 questions, which are left out",
    ]  # fmt: skip
    assert repr(result).splitlines()[0] == "SemanticShares of 1 systems, 4 questions"
    assert "<table>" in result._repr_html_()


def test_names_of_questions_in_other_runs(folder):
    path, graph = folder
    (path / "names.tsv").write_text("tail77\ta\tr\nhead77\ty\tr\n")
    text = (path / "a.run").read_text()
    (path / "b.run").write_text(text.replace("tail0", "tail77").replace("head0", "head77"))
    names = read_question_ids(path / "names.tsv", graph)
    renamed = semantic_shares({"b": path / "b.run"}, graph.questions(), names=names)
    plain = semantic_shares({"b": path / "a.run"}, graph.questions())
    np.testing.assert_array_equal(renamed.values, plain.values)
