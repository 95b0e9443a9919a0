"""Restricted evaluation by files and by arguments, against sets; outside answers are counted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from question_cases import (
    DEPTH,
    FACTOR_METRICS,
    N,
    R,
    assert_due,
    assert_same,
    expected_of,
    factor_dims,
    random_questions,
    some_scores,
)

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.graph.id_files import read_labels, read_pairs
from kgtrec.graph.openke import read_type_constraints
from kgtrec.results.comparability import comparable

# -- Entity and relation subsets ---------------------------------------------------------------


def subset(rng: np.random.Generator, size: int, share: float) -> list[int]:
    return np.flatnonzero(rng.random(size) < share).tolist()


@given(seed=st.integers(0, 10**6), sides=st.sampled_from(["both", "head", "tail"]))
def test_only_triples_of_the_subsets_are_asked(seed: int, sides: str) -> None:
    rng = np.random.default_rng(seed)
    graph = random_questions(rng).graph
    entities, relations = set(subset(rng, N, 0.8)), set(subset(rng, R, 0.8))
    rows = [tuple(row) for row in graph.splits["test"].tolist()]
    evaluated = [
        i for i, (h, r, t) in enumerate(rows) if h in entities and t in entities and r in relations
    ]
    how = {"entities": list(entities), "relations": list(relations), "sides": sides}
    if not evaluated:
        with pytest.raises(InputError, match="none of the"):
            graph.questions(**how)
        return
    questions = graph.questions(**how)
    every = graph.questions(sides=sides)
    side_numbers = [(0, 1), (0,), (1,)][("both", "head", "tail").index(sides)]
    expected = {(s, rows[i][2 - 2 * s], rows[i][1]) for i in evaluated for s in side_numbers}
    keys = list(zip(questions.side, questions.entity, questions.relation, strict=True))
    all_keys = list(zip(every.side, every.entity, every.relation, strict=True))
    assert keys == [key for key in all_keys if key in expected]  # in the order of all questions
    got = set(
        zip(
            questions.instance_triple.tolist(),
            questions.side[questions.instance_question],
            strict=True,
        )
    )
    assert got == {(i, s) for i in evaluated for s in side_numbers}
    for row, instance in enumerate(questions.triple_rows):
        assert questions.instance_triple[instance] == evaluated[row % len(evaluated)]
    for kind, n_rows in (("instances", every.n_instances), ("questions", len(every))):
        scores = some_scores(rng, (n_rows, N))  # those of all questions will do
        at, total = questions.rows_among(kind)
        assert total == n_rows
        ranks, run = kgtrec.rank(scores, questions, run_depth=DEPTH, rows=kind)
        assert_same(kgtrec.rank(scores[at], questions, run_depth=DEPTH, rows=kind), (ranks, run))
    scores, lists = scores[at], [entities] * len(questions)
    assert_due((ranks, run), expected_of(scores, questions, DEPTH, lists))
    n_relation = [sum(rows[i][1] == r for i in evaluated) for r in range(R)]
    assert ranks.relation_popularity.tolist() == [n_relation[r] for r in ranks.relation]
    assert ranks.manifest["questions"]["subset"] == {
        "entities": len(entities),
        "relations": len(relations),
        "triples_kept": len(evaluated),
        "triples_dropped": len(rows) - len(evaluated),
    }


def test_shards_factors_and_sides_of_all_questions(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    every = random_questions(rng)
    part = every.graph.questions(relations=[int(every.relation[0])])
    factors = kgtrec.Factors(rng.normal(size=(len(every), 4)), rng.normal(size=(N, 4)))
    scores = factors.scores()
    expected = kgtrec.rank(scores, part)[0].greater
    np.testing.assert_array_equal(kgtrec.rank(factors, part)[0].greater, expected)
    for number, start in enumerate(range(0, len(scores), 5)):
        np.save(tmp_path / f"{number}.npy", scores[start : start + 5])
    np.testing.assert_array_equal(kgtrec.rank(tmp_path, part)[0].greater, expected)
    rows = scores[every.instance_question[every.triple_rows]]
    sides = dict(zip(("head", "tail"), np.split(rows, 2), strict=True))
    np.testing.assert_array_equal(kgtrec.rank(sides, part)[0].greater, expected)
    np.save(tmp_path / "1.npy", scores[:5].astype("f4"))
    with pytest.raises(InputError, match=r"1\.npy.*write all shards alike"):
        kgtrec.rank(tmp_path, part)
    with pytest.raises(InputError, match="expected"):
        kgtrec.rank(scores[:-1], part)


# -- Questions with enough answers -------------------------------------------------------------


def dense_graph(rng: np.random.Generator) -> kgtrec.Graph:
    """A graph of few entities and many test triples, so that questions have several answers."""
    triples = {
        split: np.stack([rng.integers(0, n, size) for n in (5, 2, 8)], 1)
        for split, size in (("train", 10), ("test", 25))
    }
    return kgtrec.Graph.from_arrays(**triples, n_entities=9, n_relations=2)


@given(
    seed=st.integers(0, 10**6),
    sides=st.sampled_from(["both", "head", "tail", "relation"]),
    least=st.integers(1, 4),
    of_relation=st.booleans(),
)
def test_only_questions_with_enough_answers_are_asked(
    seed: int, sides: str, least: int, of_relation: bool
) -> None:
    rng = np.random.default_rng(seed)
    graph = dense_graph(rng)
    relations = [int(graph.splits["test"][0, 1])] if of_relation else None
    every = graph.questions(sides=sides)
    some = graph.questions(sides=sides, relations=relations)
    number = every.n_labels
    due = [
        (side, *given, sorted(ids))
        for side, given, ids in questions_of_rows(graph, sides, relations)
        if len(ids) >= least
    ]
    if not due:
        with pytest.raises(UsageError, match="leaves no question"):
            some.restrict(min_answers=least)
        return
    kept = some.restrict(min_answers=least)
    offsets = kept.answers.offsets
    got = [
        (side, first, second, kept.answers.ids[low:high].tolist())
        for side, first, second, low, high in zip(
            kept.side, *kept.given, offsets[:-1], offsets[1:], strict=True
        )
    ]
    assert sorted(got) == sorted(due)
    facts = kept.details["min_answers"]
    assert facts["questions_kept"] + facts["questions_dropped"] == len(some)
    for kind, n_rows in (("instances", every.n_instances), ("questions", len(every))):
        scores = some_scores(rng, (n_rows, number))
        whole, _ = kgtrec.rank(scores, some, rows=kind)
        ranks, run = kgtrec.rank(scores, kept, run_depth=DEPTH, rows=kind)  # rows of all questions
        rows, total = kept.rows_among(kind)
        assert total == n_rows
        assert_same(kgtrec.rank(scores[rows], kept, run_depth=DEPTH, rows=kind), (ranks, run))
        asked = whole.subset(np.bincount(whole.question)[whole.question] >= least)
        for name in ("greater", "equal", "candidates", "macro_greater", "triple", "side", "answer"):
            np.testing.assert_array_equal(getattr(ranks, name), getattr(asked, name), name)
    evaluated = {(int(side), int(row)) for side, row in zip(asked.side, asked.triple, strict=True)}
    of_triples = [
        sum(graph.splits["test"][row, 1] == relation for row in {row for _, row in evaluated})
        for relation in range(2)
    ]
    assert ranks.relation_popularity.tolist() == [of_triples[r] for r in ranks.relation]


def questions_of_rows(
    graph: kgtrec.Graph, sides: str, relations: list[int] | None
) -> list[tuple[int, tuple[int, int], set[int]]]:
    """Side, given pair and answers of every question about the test triples of some relations."""
    answers: dict[tuple[int, int, int], set[int]] = {}
    for h, r, t in graph.splits["test"].tolist():
        if relations is None or r in relations:
            asked = {"head": [(0, t, r, h)], "tail": [(1, h, r, t)], "relation": [(2, h, t, r)]}
            asked["both"] = asked["head"] + asked["tail"]
            for side, first, second, answer in asked[sides]:
                answers.setdefault((side, first, second), set()).add(answer)
    return [(side, (first, second), ids) for (side, first, second), ids in answers.items()]


@given(
    seed=st.integers(0, 10**6),
    sides=st.sampled_from(["both", "head", "tail", "relation"]),
    least=st.integers(1, 2),
    lists=st.sets(st.sampled_from(["entities", "relations"])),
)
def test_questions_keep_their_names_when_others_are_left_out(
    seed: int, sides: str, least: int, lists: set[str]
) -> None:
    rng = np.random.default_rng(seed)
    graph = dense_graph(rng)
    every = graph.questions(sides=sides)
    chosen = {"entities": range(7), "relations": [int(graph.splits["test"][0, 1])]}
    try:
        part = graph.questions(sides=sides, **{name: chosen[name] for name in lists})
        part = part.restrict(min_answers=least)
    except (InputError, UsageError):  # nothing is left
        return
    assert list(part.ids) == [every.ids[row] for row in part.rows_among()[0]]
    scores = rng.permuted(np.tile(np.arange(every.n_labels), (len(every), 1)), axis=1)
    run = kgtrec.rank(scores, every, run_depth=N)[1]
    ranks = kgtrec.rank(scores, part)[0]
    assert ranks.question_ids == [part.ids[number] for number in ranks.question]
    listed = kgtrec.rank_lists(run, part)
    for name in ("greater", "equal", "candidates", "macro_greater"):
        np.testing.assert_array_equal(getattr(listed, name), getattr(ranks, name), name)


def test_rows_of_kept_triples_that_may_be_those_of_all_questions() -> None:
    """Eight pairs (triple, side) of twelve are kept, and the split has eight questions."""
    test = [[2, 0, 2], [0, 0, 0], [0, 0, 2], [2, 0, 0], [1, 1, 3], [2, 1, 2]]
    graph = kgtrec.Graph.from_arrays(test=test, n_entities=5, n_relations=2)
    every, part = graph.questions(), graph.questions(relations=[0])
    negatives = np.array([[1, 4], [3, 4], [1, 3], [3, 4]])
    separate = part.restrict(candidates={"head_neg": negatives, "tail_neg": negatives})
    scores = np.random.default_rng(0).random((len(every), 5))
    assert len(separate) == len(every) == 8
    with pytest.raises(InputError, match=r"also that of all questions .*; give 12 rows"):
        kgtrec.rank(scores, separate)
    ranks = kgtrec.rank(scores[every.instance_question[every.triple_rows]], separate)[0]
    due = kgtrec.rank(scores[part.rows_among()[0]], part)[0]
    assert (ranks.greater <= due.greater[part.triple_rows]).all()  # fewer candidates


def test_separate_questions_are_named_by_their_triples() -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [0, 1, 2], [0, 1, 3]], n_entities=5)
    part = graph.questions(sides="tail", relations=[1]).separate()
    assert list(part.ids) == ["tail1", "tail2"]


def test_rows_of_questions_that_are_left_out() -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [0, 0, 2], [3, 0, 1], [4, 1, 5]])
    kept = graph.questions(filter="raw").restrict(min_answers=2)
    assert list(zip(kept.side.tolist(), kept.entity.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert kept.kept.tolist() == [0, 1, 2]  # the last triple is asked on no side
    for rows, due in (("questions", [0, 0]), ("instances", [0, 1])):
        ranker = kgtrec.Ranker(kept, rows=rows)
        assert ranker.rows_of([[0, 0, 1], [3, 0, 1]], "head").tolist() == due
        with pytest.raises(InputError, match="triple 1 has too few answers"):
            ranker.rows_of([[0, 0, 1], [3, 0, 1]], "tail")
    again = kept.restrict(min_answers=2)
    assert again.rows_among("instances")[0].tolist() == kept.rows_among("instances")[0].tolist()
    assert again.details["min_answers"]["questions_dropped"] == 0


def test_answers_without_a_graph_and_candidates() -> None:
    named = kgtrec.Questions.from_answers({"a": [1], "b": [0, 2], "c": [2, 3]}, labels=4)
    scores = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]], np.float32)
    kept = named.restrict(min_answers=2)
    assert list(kept.ids) == ["b", "c"]
    for rows in (scores, scores[1:]):
        assert kgtrec.rank(rows, kept)[0].greater.tolist() == [0, 1, 0, 0]
    listed = named.restrict(candidates=[[1, 2], [0, 2, 3], [2, 3]]).restrict(min_answers=2)
    ranks, _ = kgtrec.rank(scores, listed)
    assert ranks.candidates.tolist() == [2, 2, 1, 1]


# -- Negatives in OGB's form -------------------------------------------------------------------


def negatives(rng: np.random.Generator, questions: kgtrec.Questions, m: int) -> dict:
    shape = len(questions.graph.splits["test"]), m
    return {"head_neg": rng.integers(0, N, shape), "tail_neg": rng.integers(0, N, shape)}


@given(seed=st.integers(0, 10**6), m=st.integers(1, 9), raw=st.booleans())
def test_each_triple_is_ranked_among_its_own_negatives(seed: int, m: int, raw: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = random_questions(rng).graph
    questions = graph.questions(filter="raw" if raw else "all")
    arrays = negatives(rng, questions, m)
    sampled = questions.restrict(candidates=arrays)
    assert len(sampled) == sampled.n_instances == 2 * len(questions.triples)
    scores = some_scores(rng, (len(questions), N))  # one row per question serves all its triples
    ranks, run = kgtrec.rank(scores, sampled)
    listed = np.concatenate([arrays["head_neg"], arrays["tail_neg"]]).tolist()
    answers = questions.answers.ids[questions.triple_rows].tolist()
    lists = [{*own, answer} for own, answer in zip(listed, answers, strict=True)]
    own_rows = questions.instance_question[questions.triple_rows]
    assert_due((ranks, run), expected_of(scores[own_rows], sampled, 0, lists))
    full = questions.candidates[questions.triple_rows]
    assert ranks.full_candidates.tolist() == full.tolist()


def test_columns_of_negatives_are_the_answer_and_them() -> None:
    rng = np.random.default_rng(2)
    questions = random_questions(rng)
    arrays = negatives(rng, questions, 6)
    arrays["head_neg"][0, :2] = 5  # twice
    wide = questions.restrict(candidates=arrays)
    narrow = questions.restrict(candidates=arrays, columns="candidates")
    assert narrow.n_columns == 7
    scores = some_scores(rng, (len(wide), N))
    answers = np.concatenate([questions.triples[:, [0]], questions.triples[:, [2]]])
    lists = np.concatenate([answers, np.concatenate(list(arrays.values()))], axis=1)
    one, _ = kgtrec.rank(scores, wide)
    other, _ = kgtrec.rank(np.take_along_axis(scores, lists, axis=1), narrow)
    for name in ("greater", "equal", "candidates"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    with pytest.raises(InputError, match="expected 7 columns, one per listed candidate"):
        kgtrec.rank(np.zeros((len(narrow), N), "f4"), narrow)
    factors = kgtrec.Factors(rng.normal(size=(len(questions), 3)), rng.normal(size=(N, 3)))
    np.testing.assert_array_equal(
        kgtrec.rank(factors, narrow)[0].greater, kgtrec.rank(factors.scores(), wide)[0].greater
    )
    expected = sum(len(row) - len(set(row)) for row in lists.tolist())
    assert one.manifest["questions"]["lists"]["repeats"] == expected > 0


def test_the_first_column_of_a_repeated_negative_counts() -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], n_entities=4)
    questions = graph.questions(sides="tail")
    narrow = questions.restrict(candidates={"tail_neg": [[2, 3, 2]]}, columns="candidates")
    for scores, greater in (([[1.0, 2.0, 0.0, 0.0]], 1), ([[1.0, 0.0, 0.0, 2.0]], 0)):
        assert kgtrec.rank(np.array(scores), narrow)[0].greater.tolist() == [greater]


def test_separate_questions_keep_every_answer_and_its_filter() -> None:
    questions = random_questions(np.random.default_rng(3))
    apart = questions.separate()
    assert len(set(apart.ids)) == len(apart) == questions.n_instances
    assert apart.candidates.tolist() == questions.candidates[questions.triple_rows].tolist()
    assert apart.macro_candidates.tolist() == apart.candidates.tolist()
    assert apart.separate().fingerprint == apart.fingerprint


# -- Files -------------------------------------------------------------------------------------


@pytest.fixture
def openke(tmp_path: Path) -> Path:
    """A graph in TSV and, with other numbers, OpenKE's files."""
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "train.txt").write_text("a\tr\tb\nc\ts\td\n")
    (tmp_path / "g" / "test.txt").write_text("a\tr\td\nc\ts\ta\n")
    (tmp_path / "entity2id.txt").write_bytes(b"5\r\nd\t0\r\nc\t1\r\nb\t2\r\na\t3\r\nzz\t4\r\n")
    (tmp_path / "relation2id.txt").write_text("2\ns\t0\nr\t1\n")
    (tmp_path / "type_constrain.txt").write_text("2\n1\t2\t3\t2\n1\t1\t0\n0\t1\t1\n0\t2\t0\t3\n")
    return tmp_path


def test_type_constraints_by_their_labels(openke: Path) -> None:
    path = openke / "type_constrain.txt"
    graph = kgtrec.read_graph(openke / "g")
    heads, tails, details = read_type_constraints(path, graph.entities, graph.relations)
    named = [
        {graph.relations[r]: {graph.entities[int(e)] for e in ids} for r, ids in side.items()}
        for side in (heads, tails)
    ]
    assert named == [{"r": {"a", "b"}, "s": {"c"}}, {"r": {"d"}, "s": {"d", "a"}}]
    assert (details["relations"], details["unknown"]) == (2, 0)  # zz is in no list
    questions = graph.questions().restrict(type_constraints=path)
    assert questions.candidates.tolist() == [2, 1, 1, 1]
    assert questions.describe()["lists"]["questions_without_list"] == 0
    path.write_text("1\n1\t3\t3\t2\t4\n1\t1\t0\n")
    lists = graph.questions().restrict(type_constraints=path, unknown="skip").describe()["lists"]
    assert (lists["unknown"], lists["questions_without_list"]) == (1, 2)  # those of relation s
    path.write_text("1\n0\t1\t0\n0\t1\t0\n")
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: 2 of 4 answers are not among"):
        graph.questions().restrict(type_constraints=path)
    (openke / "entity2id.txt").unlink()
    with pytest.raises(FileError, match=r"entity2id\.txt: the file does not exist"):
        graph.questions().restrict(type_constraints=path)


@pytest.mark.parametrize("sides", ["both", "tail", "relation"])
def test_a_file_of_the_whole_split_serves_some_of_its_questions(tmp_path: Path, sides: str) -> None:
    """Lines of questions that are left out are ignored and counted; other names are refused."""
    rng = np.random.default_rng(6)
    graph = random_questions(rng).graph
    part, whole = graph.questions(relations=[0, 1], sides=sides), graph.questions(sides=sides)
    labels = [*whole.candidate_labels]
    lists = {name: [*rng.permutation(labels)] for name in whole.ids}
    path = tmp_path / "candidates.tsv"

    def write(names: list[str]) -> Path:
        path.write_text("".join("\t".join([name, *lists[name]]) + "\n" for name in names))
        return path

    assert 0 < len(part) < len(whole)
    due = part.restrict(candidates=write([*part.ids]), outside="worst")
    got = part.restrict(candidates=write([*whole.ids]), outside="worst")
    assert got.candidates.tolist() == due.candidates.tolist()
    assert got.describe()["lists"]["ignored"] == len(whole) - len(part)
    assert "ignored" not in due.describe()["lists"]
    name = f"{whole.ids[-1]}9"
    lists[name] = labels
    with pytest.raises(FileError, match=f"{name}' is not the id of a question"):
        part.restrict(candidates=write([*whole.ids, name]))


def test_candidates_of_a_text_file(openke: Path) -> None:
    questions = kgtrec.read_graph(openke / "g").questions()
    assert questions.ids == ["head0", "head1", "tail0", "tail1"]
    path = openke / "c.tsv"
    path.write_text("tail1\ta\tb\ta\nhead0\ta\tb\tc\nhead1\tc\ntail0\td\n")
    part = questions.restrict(candidates=path)
    names = [
        {questions.graph.entities[int(e)] for e in part.candidate_lists.lists[i]} for i in range(4)
    ]
    assert names == [{"a", "b", "c"}, {"c"}, {"d"}, {"a", "b"}]
    assert part.describe()["lists"] == {"file": str(path), "unknown": 0, "repeats": 1}
    assert part.describe()["sampled"] is True
    path.write_text("tail1\ta\tx\nhead0\ta\nhead1\tc\ntail0\td\n")
    assert questions.restrict(candidates=path, unknown="skip").describe()["lists"]["unknown"] == 1


def test_files_of_labels_and_of_pairs(tmp_path: Path) -> None:
    entities = kgtrec.Graph.from_arrays(
        test=[(0, 0, 1)], entities=["a", "b b"], relations=["r"]
    ).entities
    path = tmp_path / "list"
    path.write_bytes(b"b b\r\na\r\nb b")
    ids, missed = read_labels(path, entities)
    assert (ids.tolist(), missed) == ([1, 0, 1], 0)
    path.write_text("a\tb b\n")
    assert read_pairs(path, entities, entities).tolist() == [[0, 1]]


# -- Comparable results, and every list against sets ----------------------------------------------


def test_reasons_not_to_compare() -> None:
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    graph = questions.graph
    scores = some_scores(rng, (len(questions), N))

    def ranks(questions: kgtrec.Questions) -> kgtrec.Ranks:
        return kgtrec.rank(scores, questions)[0]

    base = ranks(questions)
    assert comparable(base, ranks(graph.questions()))
    assert comparable(base, kgtrec.rank(scores + 1, questions)[0])
    part, bare = base.subset(np.arange(3)), base.subset(np.arange(3))
    bare.manifest = {}
    tails = kgtrec.rank(scores[questions.side == 1], graph.questions(sides="tail"))[0]
    of_heads, of_tails = (
        ranks(questions.restrict(**{s: {0: range(N)}})) for s in ("heads", "tails")
    )
    sampled = questions.restrict(candidates=[range(N)] * len(questions))
    one_relation = graph.questions(relations=[int(questions.relation[0])])
    for one, other, reason in (
        (base, ranks(sampled), "candidates: all candidates against sampled"),
        (
            base,
            ranks(questions.restrict(entities=range(N))),
            "candidates: all candidates against candidates restricted by entities",
        ),
        (
            base,
            ranks(graph.questions(filter="raw")),
            "filter: train, valid, test against unfiltered",
        ),
        (
            base,
            ranks(graph.questions(extra_known=[(0, 0, 0)])),
            "filter: train, valid, test against train, valid, test and 1",
        ),
        (base, ranks(one_relation), "evaluated: every triple against"),
        (base, tails, "sides: both against tail"),
        (of_heads, of_tails, "questions, answers or candidates differ (the hashes are not equal)"),
        (base, part, "one of them is only a part of the evaluation"),
        (base, bare, "one of them does not record which questions were asked"),
    ):
        (found,) = comparable(one, other).reasons
        assert found.startswith(reason)
        assert len(comparable(other, one).reasons) == 1


KINDS = ("one list", "by relation", "by question", "columns")


@examples(3)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    share=st.sampled_from([0.2, 0.6, 1.0]),
    form=st.sampled_from(["scores", *FACTOR_METRICS, "instances"]),
    before=st.booleans(),
    shuffled=st.booleans(),
)
def test_lists_restrict_as_sets_do(
    seed: int, kind: str, share: float, form: str, before: bool, shuffled: bool
) -> None:
    rng = np.random.default_rng(seed)
    every = questions = random_questions(rng)
    n, first = len(questions), set(range(N))
    if before and kind != "one list":
        first = set(subset(rng, N, 0.6))
        questions = questions.restrict(entities=list(first), outside="worst")
    if kind == "one list":
        one = subset(rng, N, share)
        options, lists = {"entities": one}, [set(one)] * n
    elif kind == "by relation":
        of = [{r: subset(rng, N, share) for r in range(R) if rng.random() < 0.7} for _ in range(2)]
        options = dict(zip(("heads", "tails"), of, strict=True))
        asked = zip(questions.side, questions.relation, strict=True)
        lists = [set(of[side].get(relation, range(N))) for side, relation in asked]
    else:
        own = np.stack([rng.permutation(N)[: max(1, round(share * N))] for _ in range(n)])
        options, lists = {"candidates": own}, [set(ids) for ids in own.tolist()]
    lists = [ids & first for ids in lists]
    source = scores = some_scores(rng, (n, N))
    if form in FACTOR_METRICS:
        shapes = zip((n, N), factor_dims(form, 2), strict=True)
        queries, entities = (rng.integers(-2, 3, shape).astype("f4") for shape in shapes)
        source = kgtrec.Factors(queries, entities, rng.integers(0, 2, N).astype("f4"), form)
        scores = source.scores()
    elif kind == "columns":
        options["columns"] = "candidates"
        source = np.take_along_axis(scores, own, axis=1)
    elif form == "instances":
        source = scores[questions.instance_question[questions.triple_rows]]
    restricted = questions.restrict(**options, outside="worst")
    rows = "instances" if form == "instances" and kind != "columns" else "questions"
    if shuffled and isinstance(source, np.ndarray):
        ranker, other = (kgtrec.Ranker(restricted, DEPTH, rows=rows) for _ in range(2))
        order = rng.permutation(len(source))
        ranker.update(order[::2], source[order[::2]])
        other.update(order[1::2], source[order[1::2]])
        ranker.merge(other.partial())
        ranks, run = ranker.finish()
    else:
        ranks, run = kgtrec.rank(source, restricted, run_depth=DEPTH, rows=rows)
    assert_due((ranks, run), expected_of(scores, every, DEPTH, lists))
    sampled = "candidates" in options
    if sampled:
        assert restricted.full_candidates.tolist() == questions.candidates.tolist()
        with pytest.raises(UsageError, match="already restricted by candidates"):
            restricted.restrict(entities=[0])
    assert ranks.manifest["questions"]["sampled"] is sampled
    assert ("sampled" in str(kgtrec.Result(ranks))) is sampled
    separate = restricted.separate()
    answers = separate.answers.ids.tolist()
    outside = np.zeros(len(answers), bool) if separate.outside is None else separate.outside
    due = [lists[question] for question in restricted.instance_question[restricted.triple_rows]]
    assert outside.tolist() == [a not in own for a, own in zip(answers, due, strict=True)]


def test_nan_among_listed_candidates_only() -> None:
    graph = kgtrec.Graph.from_arrays(test=[(0, 0, 1)], n_entities=4)
    questions = graph.questions(sides="tail")
    scores = np.array([[0, 1, 2, np.nan]], np.float32)
    kgtrec.rank(scores, questions.restrict(entities=[0, 1, 2]))
    narrow = questions.restrict(candidates=[[2, 1, 3]], columns="candidates")
    with pytest.raises(InputError, match=r"NaN .* entity '3'"):
        kgtrec.rank(scores[:, [2, 1, 3]], narrow)
    kgtrec.rank(np.array([[0, 1, 0]], np.float32), narrow)
