"""Questions from answers, compared with plain loops; every form of them; mistakes."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from question_cases import assert_due, assert_same, expected_of
from refusals import each_row

import kgtrec
from kgtrec import Questions
from kgtrec.errors import FileError, UsageError
from kgtrec.questions.terms import Term
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import resample, samples_of_ranks

LABELS = ["a", "b", "c", "d", "é"]


STRUCTURES = (
    "1p",
    "2p",
    "3p",
    "2i",
    "3i",
    "ip",
    "pi",
    "2u",
    "up",
    "2in",
    "3in",
    "inp",
    "pin",
    "pni",
)


def complex_queries(
    seed: int, tied: bool = True, listed: bool = False
) -> tuple[Questions, np.ndarray]:
    """Questions with hard answers, easy ones and a structure, and their scores."""
    rng, n = np.random.default_rng(seed), 40
    structures = np.repeat(STRUCTURES, rng.integers(1, 5, len(STRUCTURES))).tolist()
    hard, easy, lists = [], [], []
    for _ in structures:
        chosen = rng.choice(n, rng.integers(7, 16), replace=False).tolist()
        cut = int(rng.integers(1, 6))
        hard.append(chosen[:cut])
        easy.append(chosen[cut:])
        lists.append(sorted({*hard[-1], *rng.choice(n, 15, replace=False).tolist()}))
    questions = Questions.from_answers(
        hard, easy, labels=n, terms={"structure": structures}, candidates=lists if listed else None
    )
    known = [sorted(own + more) for own, more in zip(hard, easy, strict=True)]
    assert [row.tolist() for row in questions.known] == known
    assert [row.tolist() for row in questions.removed] == [sorted(row) for row in easy]
    shape = len(questions), n
    scores = rng.integers(0, 6, shape) if tied else rng.normal(size=shape)
    return questions, scores.astype(np.float32)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_complex_queries_are_averaged_as_by_a_plain_loop(tied: bool, listed: bool) -> None:
    """As BetaE does: over the answers of a question, then over the questions of a structure."""
    questions, scores = complex_queries(3 + tied, tied, listed)
    ranked = kgtrec.rank(scores, questions)
    result, lists = Result(ranked[0]), questions.candidate_lists.lists if listed else None
    assert_due(ranked, expected_of(scores, questions, 0, lists))
    rank, prefix = result.ranks.greater + 1 + result.ranks.equal / 2, "sampled." * listed
    structure = np.array(questions.terms["structure"].labels)[questions.terms["structure"].codes]
    for metric, value in (("mrr", 1 / rank), ("hits@3", rank <= 3)):
        means = [value[result.ranks.question == q].mean() for q in range(len(questions))]
        values = {name: np.array(means)[structure == name].mean() for name in STRUCTURES}
        mean = sum(values.values()) / len(values)
        assert result[f"{prefix}group.{metric}(structure)"] == pytest.approx(mean, abs=1e-12)
        key = f"group.{metric}(structure:{'+'.join(STRUCTURES[:9])})"
        some = sum(values[name] for name in STRUCTURES[:9])
        assert result[key] == pytest.approx(some / 9, abs=1e-12)
        table = result.slice("structure", [f"question.{metric}"])
        assert {row[0]: row[-1] for row in table.rows} == pytest.approx(values, abs=1e-12)


def test_every_form_asks_the_same(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    answers = {"x": ["c", "a"], "y": ["é"]}
    known = {"y": ["a", "a"]}
    offsets = np.array([0, 2, 3])
    ids = ["x", "y"]
    lines = [{"id": "x", "answers": ["c", "a"]}, {"id": "y", "answers": ["é"], "known": ["a"]}]
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    made = [
        Questions.from_answers(answers, known, labels=LABELS),
        Questions.from_answers([[2, 0], [4]], [[], [0]], labels=LABELS, ids=ids),
        Questions.from_answers((offsets, np.array([2, 0, 4])), known, labels=LABELS, ids=ids),
        Questions.from_answers(path, labels=LABELS),
        Questions.from_answers(
            answers, {"x": ["a", "c"], "y": ["a", "é"]}, labels=LABELS, known_has_answers=True
        ),
    ]
    assert len({questions.fingerprint for questions in made}) == 1
    qrels = {"y": {"é": 1, "b": 0}, "x": {"c": 1, "a": 2, "d": -1}, "z": {"d": 1}}
    text = "".join(f"{q} 0 {d} {r}\n" for q, row in qrels.items() for d, r in row.items())
    (tmp_path / "qrels.txt").write_text(text)
    rows = [(q, d, r) for q, row in qrels.items() for d, r in row.items()]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    graded = [
        Questions.from_answers(source, labels=LABELS, ids=ids)
        for source in (qrels, frame, tmp_path / "qrels.txt")
    ]
    assert len({questions.fingerprint for questions in graded}) == 1
    assert graded[0].ids == ids
    assert graded[0].grades.tolist() == [2, 1, 1]
    assert graded[0].describe()["qrels"] == {
        "level": 1,
        "queries_not_asked": 1,
        "judged_below": 2,
    }
    high = Questions.from_answers(qrels, labels=LABELS, ids=["x"], level=2)
    assert high.answers.ids.tolist() == [0]


def test_ranks_keep_names_terms_grades_and_labels_of_answers(tmp_path: Path) -> None:
    lines = [
        {
            "id": "x",
            "terms": {"kind": "é", "year": 3},
            "answers": [{"label": "c", "part": "full"}, {"label": "a", "part": "some"}],
        },
        {
            "id": "y",
            "terms": {"kind": "b", "year": -1},
            "answers": [{"label": "d", "part": "full"}],
        },
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    questions = Questions.from_answers(path, labels=LABELS)
    scores = np.random.default_rng(2).normal(size=(2, 5)).astype(np.float32)
    result = kgtrec.evaluate(scores, questions)
    result.ranks.save(tmp_path / "r.parquet", "realistic")
    loaded = Result(kgtrec.Ranks.load(tmp_path / "r.parquet"))
    assert loaded.to_dict() == pytest.approx(result.to_dict(), nan_ok=True)
    assert loaded.ranks.question_ids == ["x", "x", "y"]
    for by in ("kind", "year", "part", "part,kind"):
        assert loaded.slice(by, ["mrr"]).rows == result.slice(by, ["mrr"]).rows
    assert [row[0] for row in loaded.slice("year", ["mrr"]).rows] == ["-1", "3"]
    rows = [row[:3] for row in loaded.slice("part", ["mrr"]).rows]
    assert rows == [("full", 2, 2), ("some", 1, 1)]
    with pytest.raises(UsageError, match=r"macro\.mrr needs all answers .* answers of 1 questions"):
        loaded.slice("part", ["macro.mrr"])
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert table["question_label"] == ["x", "x", "y"]
    assert table["answer_label"] == ["a", "c", "d"]
    assert table["term.part_label"] == ["some", "full", "full"]
    assert table["term.year"] == [3, 3, -1]


@pytest.mark.parametrize("tied", [False, True])
def test_graded_measures_are_those_of_complete_runs(tied: bool) -> None:
    rng = np.random.default_rng(7 + tied)
    documents = [f"d{number}" for number in rng.permutation(60)]
    qrels = {
        f"q{i}": {documents[j]: int(rng.integers(-1, 4)) for j in rng.choice(60, 15, replace=False)}
        | {documents[i]: 2}
        for i in range(12)
    }
    shape = len(qrels), len(documents)
    scores = (rng.integers(0, 9, shape) if tied else rng.normal(size=shape)).astype(np.float32)
    questions = Questions.from_answers(qrels, labels=documents)
    result = Result(kgtrec.rank(scores, questions)[0])
    run = {
        query: dict(zip(documents, row.tolist(), strict=True))
        for query, row in zip(qrels, scores, strict=True)
    }
    names = {
        "map",
        "ndcg",
        "ndcg_cut.5,10",
        "recip_rank",
        "P.5",
        "recall.20",
        "Rprec",
        "success.1",
        "map_cut.10",
        "gm_map",
        "ndcg_rel",
        "G",
        "binG",
        "num_rel",
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    for name in theirs["q0"]:
        expected = [theirs[query][name] for query in questions.ids]
        assert result.per_question(name).tolist() == expected, name
    # The run to a depth gives the same grades; the two computations are compared.
    kgtrec.evaluate(scores, questions, ["macro.ndcg_cut_20", "macro.map_cut_5"])
    deep = Questions.from_answers(qrels, labels=documents, level=2, ids=["q0"])
    with pytest.raises(UsageError, match="judged documents below relevance 2 matter"):
        Result(kgtrec.rank(scores[:1], deep)[0])["macro.ndcg"]


def test_answers_are_ranked_in_batches_and_one_by_one() -> None:
    questions, scores = complex_queries(9)
    whole, ranker = kgtrec.rank(scores, questions, 5), kgtrec.Ranker(questions, 5)
    for batch in list(ranker.batches(7))[::-1]:
        assert (batch.side == 4).all()
        ranker.update(batch, scores[batch.question])
    assert_same(ranker.finish(), whole)
    alone, _ = kgtrec.rank(scores[questions.instance_question], questions.separate())
    assert alone.rank().tolist() == whole[0].rank().tolist()


def test_group_averages_are_compared_question_by_question() -> None:
    questions, scores = complex_queries(11)
    ranks = {
        name: kgtrec.rank(scores[:, ::step], questions)[0]
        for name, step in (("one", 1), ("two", -1))
    }
    for key in (
        "group.mrr(structure)",
        "group.mrr(structure:2i+pni)",
        "group.map(structure)",
        "mrr",
    ):
        (samples,) = samples_of_ranks(ranks, [key])
        values = [Result(one)[key] for one in ranks.values()]
        assert samples.means() == pytest.approx(values, abs=1e-12)
        assert samples.n_clusters <= len(questions)
        for one in (samples, samples.by_cluster()) if samples.weight is not None else ():
            drawn = resample(replace(one, values=np.stack([one.weight, one.values[:, 0]], axis=1)))
            assert drawn.draws[:, 0] == pytest.approx(1)  # all values are 1
            assert drawn.draws[:, 1].max() <= 1


def test_terms_of_answers_part_questions() -> None:
    """Within a group a question counts once, by its answers there."""
    questions = Questions.from_answers([[0, 1, 2], [3]], labels=6)
    part = Term(np.array([0, 0, 1, 1]), ["full", "some"])
    questions = replace(questions, answer_terms={"part": part})
    scores = np.array([[5, 0, 3, 9, 4, 1], [6, 5, 4, 4, 1, 2]], np.float32)
    result = kgtrec.evaluate(scores, questions)
    ranks = result.ranks.rank()
    full, some = (1 / ranks[0] + 1 / ranks[1]) / 2, (1 / ranks[2] + 1 / ranks[3]) / 2
    assert result["group.mrr(part)"] == pytest.approx((full + some) / 2, abs=1e-12)
    three = replace(part, codes=np.array([0, 1, 1, 1]))  # both questions weigh the same
    result = kgtrec.evaluate(scores, replace(questions, answer_terms={"part": three}))
    some = ((1 / ranks[1] + 1 / ranks[2]) / 2 + 1 / ranks[3]) / 2
    assert result["group.mrr(part:some)"] == pytest.approx(some, abs=1e-12)


@each_row(
    "change, words",
    [
        ({"terms": True}, "its metadata is damaged"),
        ({"question_ids": 3}, "its metadata is damaged"),
        ({"question_ids": ["x"]}, "question from 0 to 1, but 1 names"),
        ({"terms": {"kind": ["b"]}}, "term.kind from 0 to 1, but 1 names"),
        ({"terms": {"kind": None, "year": None}}, "lack the columns term.year"),
    ],
)
def test_ranks_without_names_are_damaged(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    questions = Questions.from_answers([[0], [1]], labels=3, terms={"kind": ["a", "b"]})
    ranks, _ = kgtrec.rank(np.ones((2, 3), np.float32), questions)
    path, manifest = tmp_path / "r.parquet", dict(ranks.manifest)
    ranks.save(path)
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"kgtrec.ranks"])
    header["manifest"] = manifest | change
    metadata = {b"kgtrec.ranks": json.dumps(header).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(FileError) as caught:
        kgtrec.Ranks.load(path)
    assert words in str(caught.value)


def test_measures_of_whole_rankings_never_come_from_a_run_that_is_cut() -> None:
    rng = np.random.default_rng(8)
    answers = [rng.choice(90, 4, replace=False).tolist() for _ in range(5)]
    questions = kgtrec.Questions.from_answers(answers, labels=90)
    scores = rng.normal(size=(5, 90))
    exact = kgtrec.evaluate(kgtrec.rank(scores, questions)[0])
    for depth in (1, 20, 90):
        result = kgtrec.evaluate(scores, questions, ["macro.map"], run_depth=depth)
        for key in (
            "macro.map",
            "macro.recall_50",
            "macro.ndcg",
            "macro.P_5",
            "macro.relative_P_35",
            "macro.judged_35",
        ):
            assert result[key] == pytest.approx(exact[key], abs=1e-12), (depth, key)
