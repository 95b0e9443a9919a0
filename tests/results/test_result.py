"""Result: keys, forms of output, slices, and the text that people read."""

from __future__ import annotations

import csv
import io
import itertools
import json
import pickle
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from rank_cases import Case, columns, make_ranks

import kgtrec
from kgtrec._internal.table import Table
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.measures import Measure
from kgtrec.ranking.provenance import SCORING, Provenance, differences
from kgtrec.results.result import Result
from kgtrec.trec.measures import pytrec_eval

LABELS = ["/film/film/release_date_s./film/film_regional_release_date/film_release_region", "b|&_"]
FACTS = {
    "split": "test",
    "filter_splits": ["train", "valid", "test"],
    "n_entities": 30,
    "triples": {"train": 50, "valid": 5, "test": 40},
}


def random_case(sides: tuple[int, ...] = (0, 1)) -> Case:
    random = np.random.default_rng(5)
    drawn = zip(*(random.integers(0, n, 40).tolist() for n in (30, 2, 30)), strict=True)
    triples = sorted(set(drawn))
    questions = sorted({Case.ask(side, t)[0] for side in sides for t in triples})
    return Case(30, triples, {q: random.integers(0, 20, 30).tolist() for q in questions}, sides)


@pytest.fixture(scope="module")
def result() -> Result:
    return make_result()


def make_result(sides: tuple[int, ...] = (0, 1), **more: object) -> Result:
    ranks = make_ranks(
        columns(random_case(sides)), manifest={"questions": FACTS}, relation_labels=LABELS
    )
    return Result(ranks, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("measures", [None, ["mrr", "tail.mrr"], ["both.macro.map_cut_20"]])
def test_questions_without_a_graph_have_keys_of_their_side(measures: list[str] | None) -> None:
    questions = kgtrec.Questions.from_answers([[0], [1, 2]], labels=5)
    scores = np.random.default_rng(0).random((2, 5))
    if measures and "tail.mrr" in measures:
        with pytest.raises(UsageError, match="needs the tail side"):
            kgtrec.evaluate(scores, questions, measures=measures)
        measures = measures[:1]
    result = kgtrec.evaluate(scores, questions, measures=measures)
    assert {key.partition(".")[0] for key in (*result, *result.to_dict())} == {"all"}
    assert {key.partition(",")[0].partition(".")[0] for key in result.to_csv().splitlines()} == {
        "key",
        "all",
    }
    assert result["both.realistic.micro.mrr"] == result["all.realistic.micro.mrr"]


def test_values_per_question_by_name_and_by_key(result: Result) -> None:
    due = result.per_question("P_1").tolist()
    assert result["macro.P_1"] == pytest.approx(np.mean(due))
    for key in ("macro.P_1", "both.macro.P_1"):
        assert result.per_question(key).tolist() == due
    with pytest.raises(UsageError, match=r"values per question are of all questions"):
        result.per_question("tail.macro.P_1")
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2]], n_entities=3)
    questions = graph.questions("test")
    scored = kgtrec.evaluate(np.eye(3)[np.arange(len(questions)) % 3], questions)
    assert scored.run is not None
    with pytest.raises(UsageError) as raised:
        scored.per_question("mrr")
    assert str(raised.value).count("unknown measure 'mrr'") == 1


def test_it_is_a_mapping_of_canonical_keys_that_computes_any(result: Result) -> None:
    assert len(result) == len(list(result)) == len(set(result)) == len(result.keys())
    assert all(str(Measure.parse(key)) == key for key in result)
    assert dict(result.items()) == result.to_dict()
    listed = {
        "both.realistic.micro.mrr",
        "tail.optimistic.micro.hits@10",
        "both.macro.map_cut_20",
        "both.expected.micro.mrr",
        "both.stratified.mrr(0.5,0.5)",
    }
    assert listed <= set(result)
    assert isinstance(result["both.realistic.micro.mrr"], float)
    assert "both.micro.hits_at_7" in result
    assert "both.micro.hits_at_7" not in list(result)
    assert result["both.micro.hits_at_7"] == result["both.realistic.micro.hits@7"]
    assert result[Measure.parse("both.micro.mrr")] == result["both.micro.mrr"]
    assert "nonsense" not in result
    assert 3 not in result
    with pytest.raises(UsageError, match="did you mean"):
        result["both.micro.mmr"]


def test_one_side_only() -> None:
    result = make_result(sides=(1,))
    assert result.sides == ("tail",)
    assert all(key.startswith("tail.") for key in result)
    assert "both.micro.mrr" not in result
    assert "tail side" in str(result)
    assert len(result.slice("side")) == 1
    assert len(result.slice("relation")) == 2


def test_asked_measures_are_listed_alone() -> None:
    result = make_result(measures=["both.micro.mrr", "tail.macro.MAP@20"])
    assert list(result) == ["both.realistic.micro.mrr", "tail.macro.map_cut_20"]
    assert "tail.macro.map_cut_20" in str(result)
    assert "AMRI" not in str(result)
    assert make_result(measures=["both.macro.num_q"]).to_dict().keys() == {"both.macro.num_q"}


def test_given_trec_values_are_used() -> None:
    n = len(np.unique(make_result().ranks.question))
    result = make_result(trec_values={"map": np.linspace(0, 1, n)})
    assert result["both.macro.map"] == pytest.approx(0.5)
    with pytest.raises(InputError, match=f"map has 3 values, but the ranks have {n} questions"):
        make_result(trec_values={"map": np.zeros(3)})["both.macro.map"]


def undefined() -> Result:
    """One entity: nothing to rank, so AMRI is undefined."""
    return Result(make_ranks(columns(Case(1, [(0, 0, 0)], {(0, 0, 0): [1], (1, 0, 0): [1]}))))


def test_ranks_and_run_are_completed_when_they_are_read() -> None:
    """Scores that change before that change nothing; other processes get them completed."""
    rng = np.random.default_rng(0)
    questions = kgtrec.Graph.from_arrays(test=rng.integers(0, 5, (9, 3)), n_entities=30).questions()
    scores = rng.random((len(questions), 30), dtype=np.float32)
    ranks, run = kgtrec.rank(scores.copy(), questions, run_depth=20)
    result, other = (kgtrec.evaluate(scores, questions) for _ in range(2))
    scores[:] = 0
    assert result["mrr"] == Result(ranks)["mrr"]
    assert (result.run.documents == run.documents).all()
    assert (result.run.scores == run.scores).all()
    assert dict(result) == dict(Result(ranks, run=run, questions=questions))
    again = pickle.loads(pickle.dumps(other))
    assert dict(again) == dict(result)
    for key in ("expected.agmri", "both.stratified.mrr(0.5,0.5)", "both.macro.ndcg_cut_20", "P_5"):
        assert again[key] == result[key], key


@pytest.mark.parametrize(("good", "bad"), [("run_depth", 20.0), ("threads", True), ("atol", False)])
def test_settings_that_equal_checked_ones_are_checked(good: str, bad: object) -> None:
    questions = kgtrec.Graph.from_arrays(test=np.array([[0, 0, 1]])).questions()
    scores = np.zeros((2, 2))
    kgtrec.evaluate(scores, questions, **{good: int(bad)})
    with pytest.raises(UsageError, match=good):
        kgtrec.evaluate(scores, questions, **{good: bad})


def test_json_is_strict() -> None:
    values = json.loads(make_result().to_json())
    assert values == make_result().to_dict()
    nothing = json.loads(undefined().to_json())
    assert nothing["both.realistic.micro.amri"] is None
    assert nothing["both.realistic.micro.amr"] == 1
    assert "AMRI is undefined" in str(undefined())


def test_csv_and_frame_keep_every_digit(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert {line["key"]: float(line["value"]) for line in lines} == result.to_dict()
    line = next(line for line in lines if line["key"] == "both.stratified.mrr(0.5,0.5)")
    assert (line["averaging"], line["metric"]) == ("stratified", "mrr(0.5,0.5)")
    frame = result.to_frame()
    assert dict(zip(frame["key"], frame["value"], strict=True)) == result.to_dict()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        result.to_frame()


def test_tables_have_a_row_per_side_and_labels_that_are_escaped_or_cut(result: Result) -> None:
    assert [line.count("|") for line in result.to_markdown().splitlines()] == [13] * 5
    assert f"{result['both.micro.mrr']:.4f}" in result.to_latex()
    assert f"{len(result.ranks)} instances" in repr(result)
    table = result.slice("relation")
    assert r"b\textbar{}\&\_" in table.to_latex()
    assert r"b\|&_" in table.to_markdown()
    text = table.to_text()  # long labels are cut in the middle
    assert max(map(len, text.splitlines())) <= 80
    assert "…" in text


def test_slices_by_relation_are_what_those_instances_alone_give(result: Result) -> None:
    measures = ["tail.expected.micro.mrr", "tail.micro.amri", "tail.macro.map_cut_20"]
    table = result.slice("relation", measures).to_dict()
    assert set(table) == set(LABELS)
    counts = [row["count"] for row in table.values()]
    assert counts == sorted(counts, reverse=True)
    for number, label in enumerate(LABELS):
        part = {k: v[result.ranks.relation == number] for k, v in columns(random_case()).items()}
        alone = Result(make_ranks(part))
        assert table[label]["count"] == alone.count("tail")[1]
        for key in measures:
            key = str(Measure.parse(key))
            assert table[label][key] == pytest.approx(alone[key], rel=1e-13)


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    random = np.random.default_rng(2)
    triples = np.unique(np.stack([random.integers(0, n, 90) for n in (40, 3, 40)], axis=1), axis=0)
    return kgtrec.Graph.from_arrays(train=triples[:20], test=triples[20:]).questions()


@pytest.fixture(scope="module")
def scores(questions: kgtrec.Questions) -> np.ndarray:
    shape = len(questions), questions.n_entities
    return np.random.default_rng(3).integers(0, 30, shape).astype(np.float32)


def test_both_computations_agree_and_it_says_so(questions, scores) -> None:
    result = kgtrec.evaluate(scores, questions)
    assert max(result.agreement.values()) <= 1e-12
    text = str(result).replace("\n  ", " ")
    assert "MAP@20 and nDCG@20: pytrec_eval and native values agree to 1e-12" in text
    assert result.run.depth >= 20
    assert len(result.ranks.greater) == questions.n_instances
    assert kgtrec.Result(result.ranks)["both.macro.map_cut_20"] == pytest.approx(
        result["both.macro.map_cut_20"], abs=1e-12
    )


def test_the_run_is_as_deep_as_the_measures_see(questions, scores) -> None:
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.P_30", "both.macro.binG"])
    assert result.run.depth >= 30
    assert list(result) == ["both.macro.P_30", "both.macro.binG"]
    text = str(result).replace("\n  ", " ")
    assert f"binG: computed from the run, which has the {result.run.depth} best candidates" in text


def test_the_run_is_compared_when_its_measures_are_wanted(questions, scores, monkeypatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(pytrec_eval, "_call", lambda *_: calls.append("called") or {})
    result = kgtrec.evaluate(scores, questions)
    assert result["mrr"] > 0
    assert calls == []
    for want in (lambda r: r["macro.map_cut_20"], lambda r: r.ranks, lambda r: r.agreement):
        with pytest.raises(KgtrecError, match="from pytrec_eval but"):
            want(kgtrec.evaluate(scores, questions))


def test_ranks_can_be_evaluated_again(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    result = kgtrec.evaluate(scores, questions)
    again = kgtrec.evaluate(result.ranks)
    assert again["both.micro.mrr"] == result["both.micro.mrr"]
    same = kgtrec.evaluate(result.ranks, questions, ["tail.macro.map@20"])
    assert same["tail.macro.map_cut_20"] == pytest.approx(result["tail.macro.map_cut_20"])


def test_rows_may_belong_to_instances(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    of_instance = scores[questions.instance_question[questions.triple_rows]]
    result = kgtrec.evaluate(of_instance, questions, rows="instances")
    assert result.to_dict() == kgtrec.evaluate(scores, questions).to_dict()


def test_nan_counted_worst_is_said(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    broken = scores.copy()
    broken[0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        kgtrec.evaluate(broken, questions)
    text = str(kgtrec.evaluate(broken, questions, nan="worst")).replace("\n  ", " ")
    assert f"WARNING: {questions.n_entities} scores were NaN" in text
    assert f"{len(questions.answers[0])} answers had no score" in text


TRAIN, TEST = "a\tr\tb\nb\tr\tc\nc\tr\td\n", "a\tr\tc\nd\tr\tb\n"


def graph_in(folder: Path, train: str = TRAIN) -> kgtrec.Graph:
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text(train)
    (folder / "test.txt").write_text(TEST)
    return kgtrec.read_graph(folder)


def ranks_of(graph: kgtrec.Graph) -> kgtrec.Ranks:
    questions = graph.questions()
    return kgtrec.rank(
        np.random.default_rng(0).random((len(questions), graph.n_entities)), questions
    )[0]


def test_the_name_of_a_folder_says_nothing(tmp_path: Path) -> None:
    places = ("x/graph", "copy", "third", "y/graph")
    one, copy, third, other = (
        graph_in(
            tmp_path / place, TRAIN.replace("a\tr\tb", "a\tr\td") if place[0] == "y" else TRAIN
        )
        for place in places
    )
    third.name = None
    ranks = ranks_of(one)
    assert kgtrec.comparable(ranks, ranks_of(copy))
    assert kgtrec.comparable(ranks, ranks_of(third)).reasons == ()
    (reason,) = kgtrec.comparable(ranks, ranks_of(other)).reasons
    first, second = (graph.fingerprint[:8] for graph in (one, other))
    assert reason == f"graph: graph ({first}) against graph ({second})"


def test_a_provenance_says_what_the_manifest_says(tmp_path: Path) -> None:
    manifest = ranks_of(graph_in(tmp_path / "graph")).manifest
    read = Provenance.from_manifest(manifest)
    said = {**manifest["questions"], **manifest["scores"]}
    for name in Provenance.__dataclass_fields__.keys() & said.keys() - {"tie_tolerance"}:
        value = getattr(read, name)
        assert (list(value) if isinstance(value, tuple) else value) == said[name], name
    assert {"graph_hash", "filter_splits", "dtype", "nan_count", "triples"} <= said.keys()
    assert read.has_questions
    assert not Provenance.from_manifest({"versions": {}}).has_questions
    assert Provenance.from_manifest({"questions": {"subset": None}}) == Provenance(
        has_questions=True
    )
    assert differences(read, read) == []
    for name, other in (("split", "valid"), ("filter_splits", ()), ("questions_hash", "")):
        assert differences(read, replace(read, **{name: other})) == [name]
    assert differences(read, replace(read, dtype="float16")) == []
    assert differences(read, replace(read, dtype="float16"), SCORING) == ["dtype"]


LINE = "scores look random: AMRI ("
WORSE = "ranks are worse than by chance: AMRI"


@cache
def graph_of(n_test: int) -> kgtrec.Graph:
    random = np.random.default_rng(1)
    rows = np.unique(random.integers(0, (200, 3, 200), (9000, 3)), axis=0)
    rows = random.permutation(rows)
    return kgtrec.Graph.from_arrays(train=rows[n_test:], test=rows[:n_test], n_entities=200)


def good(questions: kgtrec.Questions, noise: float) -> np.ndarray:
    scores = np.random.default_rng(3).random((len(questions), 200)) * noise
    for row in range(len(questions)):
        scores[row, questions.answers[row]] += 1
    return scores


def text_of(scores: np.ndarray, questions: kgtrec.Questions) -> str:
    return " ".join(str(kgtrec.evaluate(scores, questions)).split())


def said(scores: np.ndarray, questions: kgtrec.Questions) -> list[bool]:
    """Whether scores are said to look random, and to be worse than chance."""
    return [line in text_of(scores, questions) for line in (LINE, WORSE)]


@pytest.mark.parametrize("sides", ["both", "tail"])
def test_columns_in_another_order_and_negated_scores_are_noticed(sides: str) -> None:
    questions, random = graph_of(3000).questions(sides=sides), np.random.default_rng(5)
    scores = good(questions, 1.2)
    assert said(scores, questions) == [False, False]
    assert said(scores[:, random.permutation(200)], questions) == [True, False]
    assert said(np.zeros_like(scores), questions) == [True, False]  # all tied
    assert said(-scores, questions) == [False, True]
    assert WORSE not in str(kgtrec.evaluate(-scores, questions, higher_is_better=False))
    if sides == "both":
        is_tail = questions.side[:, None] == 1
        one_side = np.where(is_tail, scores, random.random(scores.shape))
        assert said(one_side, questions) == [False, False]  # no sign
        text = text_of(np.where(is_tail, scores, -scores), questions)
        assert f"{WORSE} (head -0." in text
        assert "if lower scores are better" in text


def test_random_scores_are_noticed_if_there_are_enough_instances() -> None:
    for seed in (0, 1, 5):
        questions = graph_of(60 * (1 + seed)).questions()
        scores = np.random.default_rng(seed).random((len(questions), 200))
        assert LINE in text_of(scores, questions)
    for n_test in (50, 51):
        questions = graph_of(n_test).questions()
        assert len(questions.instance_triple) == 2 * n_test
        assert said(np.zeros((len(questions), 200)), questions) == [n_test == 51, False]
    # With few distinct answers, even the best ranks are too few to differ by answers alone.
    rows = np.unique(np.random.default_rng(4).integers(0, (200, 3, 4), (900, 3)), axis=0)
    few = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=200)
    questions = few.questions(sides="tail")
    assert said(good(questions, 0.5), questions) == [False, False]


def test_permuted_columns_of_one_order_for_all_questions_are_noticed() -> None:
    """Ranks of one answer then move together: AMRI is rarely within 0.02."""
    random = np.random.default_rng(2)
    share = np.arange(1, 201) ** -0.8
    ends = random.choice(200, (9000, 2), p=share / share.sum())
    rows = np.insert(ends, 1, random.integers(0, 3, 9000), axis=1)
    rows = random.permutation(np.unique(rows, axis=0))
    graph = kgtrec.Graph.from_arrays(train=rows[900:], test=rows[:900], n_entities=200)
    questions = graph.questions()
    popular = np.bincount(rows[:, [0, 2]].ravel(), minlength=200) + 0.5 * random.random(200)
    scores = np.broadcast_to(popular, (len(questions), 200))
    assert LINE not in text_of(scores, questions)
    far = 0
    for seed in range(9):
        result = kgtrec.evaluate(scores[:, np.random.default_rng(seed).permutation(200)], questions)
        assert LINE in " ".join(str(result).split())
        far += abs(result["head.realistic.micro.amri"]) > 0.02
    assert far > 4


def test_every_display_and_a_python_warning_say_that_scores_look_random() -> None:
    questions = graph_of(300).questions()
    constant = np.zeros((len(questions), 200), np.float32)
    with pytest.warns(kgtrec.ChanceWarning, match="scores look random: AMRI") as caught:
        result = kgtrec.evaluate(constant, questions)
    assert [each.filename for each in caught] == [__file__]
    console, notebook = repr(result), result._repr_html_()
    assert "\n  WARNING: scores look random: AMRI (" in console
    assert max(map(len, console.splitlines()[3:])) <= 80
    assert notebook.index("WARNING: scores look random") < notebook.index("<table")
    assert notebook.count("<br>") == 2  # the size and the warning; the table has the values
    (warning,) = result.warnings
    assert warning in " ".join(str(result).split())
    assert result.to_markdown().endswith(f" |\n\nWARNING: {warning}\n")
    assert result.to_latex().endswith(f"\n% WARNING: {warning}\n")
    assert result.to_frame().attrs == {"warnings": [warning]}
    with pytest.warns(kgtrec.ChanceWarning, match="scores look random"):
        kgtrec.evaluate(result.ranks)
    both = {"filtered": questions, "again": questions}
    with pytest.warns(kgtrec.ChanceWarning, match="worse than by chance") as caught:
        kgtrec.evaluate(-good(questions, 0.5), both)
    assert len(caught) == 1  # not one per filter
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained = kgtrec.evaluate(good(questions, 0.5), questions)
    assert "WARNING" not in repr(trained) + trained._repr_html_()


def test_consoles_show_twenty_rows_of_a_table() -> None:
    for n, shown in ((20, 20), (21, 20), (500, 20)):
        table = Table.from_rows("name,count", [(f"row {row}", row) for row in range(n)])
        lines = repr(table).splitlines()
        last = [f"... {n - shown} more rows; print() shows all"] * (n > shown)
        assert lines[0].split() == ["name", "count"]
        assert lines[1 : shown + 1] == table.in_order(range(shown)).to_text().splitlines()[1:]
        assert lines[shown + 1 :] == last
        assert str(table).count("\n") == n


def test_frames_of_ranks_have_every_column_and_the_realistic_rank() -> None:
    ranks = kgtrec.evaluate(good(graph_of(60).questions(), 0.5), graph_of(60).questions()).ranks
    frame = ranks.to_frame()
    assert list(frame) == ["rank", *ranks.column_names]
    assert frame["rank"].tolist() == [
        1 + greater + equal / 2
        for greater, equal in zip(ranks.greater.tolist(), ranks.equal.tolist(), strict=True)
    ]
    for name, column in ranks.columns().items():
        assert frame[name].tolist() == column.tolist()


def test_displays_do_not_compare_the_run_with_the_ranks() -> None:
    questions = graph_of(60).questions()
    result = kgtrec.evaluate(good(questions, 0.5), questions)
    assert "MRR" in repr(result)
    assert "trec_agreement" not in result._ranks.manifest
    result.ranks  # noqa: B018 - reading compares
    assert "trec_agreement" in result._ranks.manifest


@pytest.mark.slow
def test_entity_ids_beyond_two_to_the_24():
    """Ids passed through float32 turn 16777217 into 16777216."""
    big = 2**24
    test = [(big + 1, 0, big + 3), (big - 1, 0, big + 1)]
    graph = kgtrec.Graph.from_arrays(train=[(big + 1, 0, big + 2)], test=test, n_entities=big + 5)
    questions = graph.questions(sides="tail")
    assert questions.entity.tolist() == [big + 1, big - 1]
    assert questions.answers[0].tolist() == [big + 3]
    assert questions.known[0].tolist() == [big + 2, big + 3]
    scores = np.zeros((1, big + 5), np.float32)
    scores[0, [big, big + 1, big + 2, big + 3]] = [1, 5, 9, 3]
    ranks, run = kgtrec.rank(iter([scores, scores]), questions, run_depth=2, threads=1)
    assert ranks.answer.tolist() == [big + 3, big + 1]
    assert ranks.greater.tolist() == [1, 1]  # of the first: big + 1, because big + 2 is known
    assert ranks.candidates.tolist() == [big + 4, big + 5]
    assert run.documents.tolist() == [big + 1, big + 3, big + 2, big + 1]


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_answer_and_candidates_are_scored_by_the_same_arithmetic(metric):
    """A dot product and a matrix product round differently: ties would vanish or turn into wins."""
    n_entities = 203
    copies = [0, 1, 15, 16, 63, 64, 100, 127, 128, 201, 202]
    test = [(number, 0, copy) for number, copy in enumerate(copies)]
    questions = kgtrec.Graph.from_arrays(test=test, n_entities=n_entities).questions(sides="tail")
    for dim, dtype in itertools.product((1, 7, 64, 100, 257), (np.float32, np.float64)):
        rng = np.random.default_rng(dim)
        entities = rng.normal(size=(n_entities, dim)).astype(dtype)
        entities[copies] = entities[0]
        queries = rng.normal(size=(len(copies), dim)).astype(dtype)
        ranks, _ = kgtrec.rank(kgtrec.Factors(queries, entities, metric=metric), questions)
        assert ranks.equal.tolist() == [len(copies) - 1] * len(copies)
