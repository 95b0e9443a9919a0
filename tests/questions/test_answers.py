"""Questions from answers, compared with plain loops; every form of them; mistakes."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from question_cases import assert_same
from refusals import assert_refused, each_row

import kgtrec
from kgtrec import Questions
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.questions.terms import Term
from kgtrec.results.result import Result
from kgtrec.study.comparison.samples import samples_of_ranks

LABELS = ["a", "b", "c", "d", "é"]


def scores_for(asked: Asked, seed: int, tied: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = len(asked.hard), asked.n
    return (rng.integers(0, 6, shape) if tied else rng.normal(size=shape)).astype(np.float32)


def questions_of(asked: Asked, **more: Any) -> Questions:
    terms = {"structure": list(asked.structure.values())}
    return Questions.from_answers(asked.hard, asked.easy, labels=asked.n, terms=terms, **more)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_complex_queries_are_averaged_as_by_a_plain_loop(tied: bool, listed: bool) -> None:
    asked = random_questions(3 + tied, listed=listed)
    scores = scores_for(asked, 5, tied)
    questions = questions_of(asked, candidates=asked.candidates or None)
    result = kgtrec.evaluate(scores, questions)
    expected = ranks_of(asked, scores)
    names = [
        (questions.ids[int(question)], int(answer))
        for question, answer in zip(result.ranks.question, result.ranks.answer, strict=True)
    ]
    assert dict(zip(names, result.ranks.rank().tolist(), strict=True)) == expected
    prefix = "sampled." * listed
    for metric, value in (("mrr", lambda r: 1 / r), ("hits@3", lambda r: float(r <= 3))):
        values = by_structure(asked, expected, value)
        mean = sum(values.values()) / len(values)
        assert result[f"{prefix}group.{metric}(structure)"] == pytest.approx(mean, abs=1e-12)
        some = [values[name] for name in STRUCTURES[:9]]
        key = f"group.{metric}(structure:{'+'.join(STRUCTURES[:9])})"
        assert result[key] == pytest.approx(sum(some) / 9, abs=1e-12)
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
        Questions.from_answers(answers, {"x": ["a", "c"], "y": ["a", "é"]}, labels=LABELS,
                               known_has_answers=True),
    ]  # fmt: skip
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
        "level": 1, "queries_not_asked": 1, "judged_below": 2,
    }  # fmt: skip
    high = Questions.from_answers(qrels, labels=LABELS, ids=["x"], level=2)
    assert high.answers.ids.tolist() == [0]


def test_ranks_keep_names_terms_grades_and_labels_of_answers(tmp_path: Path) -> None:
    lines = [
        {"id": "x", "terms": {"kind": "é", "year": 3},
         "answers": [{"label": "c", "part": "full"}, {"label": "a", "part": "some"}]},
        {"id": "y", "terms": {"kind": "b", "year": -1},
         "answers": [{"label": "d", "part": "full"}]},
    ]  # fmt: skip
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
    names = {"map", "ndcg", "ndcg_cut.5,10", "recip_rank", "P.5", "recall.20", "Rprec", "success.1",
             "map_cut.10", "gm_map", "ndcg_rel", "G", "binG", "num_rel"}  # fmt: skip
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
    asked = random_questions(9)
    questions, scores = questions_of(asked), scores_for(asked, 4, True)
    whole, ranker = kgtrec.rank(scores, questions, 5), kgtrec.Ranker(questions, 5)
    for batch in list(ranker.batches(7))[::-1]:
        assert (batch.side == 4).all()
        ranker.update(batch, scores[batch.question])
    assert_same(ranker.finish(), whole)
    alone, _ = kgtrec.rank(scores[questions.instance_question], questions.separate())
    assert alone.rank().tolist() == whole[0].rank().tolist()


def test_group_averages_are_compared_question_by_question() -> None:
    asked = random_questions(11)
    questions = questions_of(asked)
    ranks = {
        name: kgtrec.rank(scores_for(asked, seed, True), questions)[0]
        for name, seed in (("one", 1), ("two", 2))
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


def test_what_needs_a_graph_says_so() -> None:
    questions = Questions.from_answers([["a"]], labels=LABELS, terms={"kind": ["x"]})
    result = kgtrec.evaluate(np.ones((1, 5), np.float32), questions)
    both = dict.fromkeys("ab", result.ranks)
    for call, words in (
        (lambda: questions.graph, "no 'graph'"),
        (lambda: questions.relation, "no 'relation'"),
        (lambda: result["macro_relation.mrr"], "group.METRIC(TERM)"),
        (lambda: result["stratified.mrr(0,0)"], "not of a graph"),
        (lambda: result["tail.mrr"], "needs the tail side"),
        (lambda: result["group.mrr(colour)"], "no term 'colour'; their terms: kind"),
        (lambda: result["group.mrr(kind:y)"], "no question has kind 'y', only x"),
        (lambda: result["group.mrr"], "have a term"),
        (lambda: samples_of_ranks(both, ["all.group.mrr(x)"]), "no term 'x'; their terms: kind"),
        (lambda: result.slice("relation"), "slice by a term"),
        (lambda: result.slice("category"), "slice by a term instead (kind)"),
        (lambda: result.slice("colour"), "or 'kind', or by several"),
    ):
        assert_refused(call, UsageError, (words,))
    assert not hasattr(questions, "entity")


@each_row("arguments, options, words", [
    (([[5]],), {"labels": 5}, "question '0' has the answer 5"),
    (({"q": ["a"]}, {"q": ["y"]}), {}, "known answer 'y'"),
    (({"q": ["a"]}, {"r": ["b"]}), {}, "known has a list for 'r'"),
    (({"q": ["a", "a"]},), {}, "question 'q' has the answer 'a' twice"),
    (([["a"], ["b"]],), {"ids": "qq"}, "question 'q' is repeated"),
    (({"q r": ["a"]},), {}, "'q r'"),
    (({"q": ["a"]},), {"candidates": {"q": ["b", "c"]}},
     "question 'q' has the answer 'a', which is not among its candidates"),
    (({"q": ["a"]},), {"labels": None}, "labels= is missing"),
    (([["a", 1]],), {}, "contains 1"),
    ((["ab"],), {}, "answers of question 0 is 'ab'"),
    (([["a"]], [["b"], ["c"]]), {}, "known has 2 lists for 1 questions"),
    (((np.array([0, 2]), np.array([1])),), {}, "offsets of answers"),
    (([["a"]],), {"ids": ["p", "q"]}, "2 ids for 1 questions"),
    (([["a"]],), {"terms": {"t": ["x", "y"]}}, "term 't' has 2 values for 1 questions"),
    (([["a"]],), {"terms": {"t": [1.5]}}, "1.5"),
    (([["a"]],), {"terms": {"a.b": [1]}}, "term 'a.b'"),
    (([["a"]],), {"grades": [[1, 2]]}, "each of the 1 answers"),
    (({"q": {"a": 0}},), {}, "judged 1 or more"),
])  # fmt: skip
def test_mistakes(arguments: tuple, options: dict[str, Any], words: str) -> None:
    error = UsageError if options.get("labels", 0) is None else InputError
    call = Questions.from_answers
    assert_refused(call, error, (words,), *arguments, **{"labels": LABELS} | options)


def test_scores_of_another_number_of_questions() -> None:
    words = ("scores have 3 rows; expected 1", "questions.ids")
    questions = Questions.from_answers([["a"]], labels=LABELS)
    assert_refused(kgtrec.rank, InputError, words, np.ones((3, 5)), questions)


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
        for key in ("macro.map", "macro.recall_50", "macro.ndcg", "macro.P_5",
                    "macro.relative_P_35", "macro.judged_35"):  # fmt: skip
            assert result[key] == pytest.approx(exact[key], abs=1e-12), (depth, key)


# -- Questions with answers, known answers and terms in plain Python, and their measures by loops --


STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up", "2in", "3in", "inp", "pin",
              "pni")  # fmt: skip


@dataclass
class Asked:
    """Random questions by name: hard answers, easy ones, and a structure each."""

    n: int
    hard: dict[str, list[int]] = field(default_factory=dict)
    easy: dict[str, list[int]] = field(default_factory=dict)
    structure: dict[str, str] = field(default_factory=dict)
    candidates: dict[str, list[int]] = field(default_factory=dict)


def random_questions(seed: int, n: int = 40, each: int = 4, listed: bool = False) -> Asked:
    rng = np.random.default_rng(seed)
    asked = Asked(n)
    for structure in STRUCTURES:
        for number in range(int(rng.integers(1, each + 1))):
            name = f"{structure}-{number}"
            size, hard = int(rng.integers(2, 12)), int(rng.integers(1, 6))
            chosen = rng.choice(n, size + hard, replace=False).tolist()
            asked.hard[name], asked.easy[name] = chosen[:hard], chosen[hard:]
            asked.structure[name] = structure
            if listed:
                others = rng.choice(n, 15, replace=False).tolist()
                asked.candidates[name] = sorted({*chosen[:hard], *others})
    return asked


def ranks_of(asked: Asked, scores: np.ndarray) -> dict[tuple[str, int], float]:
    """The realistic rank of each hard answer among entities that are neither answers nor known."""
    ranks = {}
    for row, (name, hard) in zip(scores, asked.hard.items(), strict=True):
        among = np.setdiff1d(asked.candidates.get(name, range(asked.n)), hard + asked.easy[name])
        for answer in hard:
            greater, equal = (row[among] > row[answer]).sum(), (row[among] == row[answer]).sum()
            ranks[name, answer] = float(1 + greater + equal / 2)
    return ranks


def by_structure(
    asked: Asked, ranks: dict[tuple[str, int], float], value: object
) -> dict[str, float]:
    """BetaE's averages: over the answers of a question, then over the questions of a structure."""
    of_question = defaultdict(list)
    for (name, _), rank in ranks.items():
        of_question[name].append(value(rank))  # type: ignore[operator]
    of_structure = defaultdict(list)
    for name, values in of_question.items():
        of_structure[asked.structure[name]].append(sum(values) / len(values))
    return {name: sum(values) / len(values) for name, values in of_structure.items()}
