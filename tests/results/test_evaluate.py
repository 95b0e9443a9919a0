"""evaluate(): the call that users make, from scores and from ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.ranking.provenance import SCORING, Provenance, differences
from kgtrec.trec.measures import pytrec_eval


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    random = np.random.default_rng(2)
    triples = np.unique(np.stack([random.integers(0, n, 90) for n in (40, 3, 40)], axis=1), axis=0)
    return kgtrec.Graph.from_arrays(train=triples[:20], test=triples[20:]).questions()


@pytest.fixture(scope="module")
def scores(questions: kgtrec.Questions) -> np.ndarray:
    shape = len(questions), questions.n_entities
    return np.random.default_rng(3).integers(0, 30, shape).astype(np.float32)


def test_both_computations_agree_and_it_says_so(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions)
    assert max(result.agreement.values()) <= 1e-12
    text = str(result).replace("\n  ", " ")
    assert "MAP@20 and nDCG@20: pytrec_eval and native values agree to 1e-12" in text
    assert result.run.depth >= 20
    assert len(result.ranks.greater) == questions.n_instances
    assert kgtrec.Result(result.ranks)["both.macro.map_cut_20"] == pytest.approx(
        result["both.macro.map_cut_20"], abs=1e-12
    )


def test_the_run_is_as_deep_as_the_measures_see(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.P_30", "both.macro.bpref"])
    assert result.run.depth >= 30
    assert list(result) == ["both.macro.P_30", "both.macro.bpref"]
    text = str(result).replace("\n  ", " ")
    assert f"bpref: computed from the run, which has the {result.run.depth} best candidates" in text


def test_other_measures_follow_from_the_run_or_the_ranks(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    result = kgtrec.evaluate(scores, questions)
    assert result["both.macro.P_10"] == pytest.approx(
        kgtrec.Result(result.ranks)["both.macro.P_10"], abs=1e-12
    )
    assert 0 < result["both.macro.map"] < 1
    deep = kgtrec.evaluate(scores, questions, run_depth=40)
    assert result["both.macro.recall_35"] == pytest.approx(deep["both.macro.recall_35"], abs=1e-12)
    for key in ("both.macro.relative_P_35", "both.macro.judged_35"):
        assert result[key] == pytest.approx(deep[key], abs=1e-12)


def test_the_run_is_compared_when_its_measures_are_wanted(
    questions: kgtrec.Questions, scores: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    other = questions.graph.questions(sides="tail")
    with pytest.raises(InputError, match="belong to other questions"):
        kgtrec.evaluate(result.ranks, other)


def test_rows_may_belong_to_instances(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    of_instance = scores[questions.instance_question[questions.triple_rows]]
    result = kgtrec.evaluate(of_instance, questions, rows="instances")
    assert result.to_dict() == kgtrec.evaluate(scores, questions).to_dict()


def test_nan_counted_worst_is_said(questions: kgtrec.Questions, scores: np.ndarray) -> None:
    broken = scores.copy()
    broken[0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        kgtrec.evaluate(broken, questions)
    text = str(kgtrec.evaluate(broken, questions, nan="worst"))
    assert f"WARNING: {questions.n_entities} scores were NaN" in text.replace("\n  ", " ")


def test_questions_and_keys_are_asked_for_first(
    questions: kgtrec.Questions, scores: np.ndarray
) -> None:
    with pytest.raises(UsageError, match="questions of the scores are missing"):
        kgtrec.evaluate(scores)
    with pytest.raises(UsageError, match="mmr") as caught:
        kgtrec.evaluate("no-such-file.npy", questions, ["both.micro.mmr", "both.micro.hits"])
    assert "cutoff" in str(caught.value)


# -- Equal graphs in folders of different names are one graph; different ones of one name are two


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


@pytest.mark.parametrize("command", ["report", "compare"])
def test_the_name_of_a_folder_says_nothing(tmp_path: Path, command: str) -> None:
    one, other = (ranks_of(graph_in(tmp_path / name)) for name in ("graph", "copy"))
    unnamed = graph_in(tmp_path / "third")
    unnamed.name = None
    assert kgtrec.comparable(one, other)
    assert kgtrec.comparable(one, ranks_of(unnamed)).reasons == ()

    one.save(tmp_path / "one.parquet")
    other.save(tmp_path / "other.parquet")
    files = [str(tmp_path / name) for name in ("one.parquet", "other.parquet")]
    done = CliRunner().invoke(cli, [command, *files])
    assert done.exit_code == 0, done.stderr
    assert "NOT COMPARABLE" not in done.stderr


def test_a_provenance_says_what_the_manifest_says(tmp_path: Path) -> None:
    manifest = ranks_of(graph_in(tmp_path / "graph")).manifest
    read = Provenance.of(manifest)
    said = {**manifest["questions"], **manifest["scores"]}
    for name in Provenance.__dataclass_fields__.keys() & said.keys() - {"tie_tolerance"}:
        value = getattr(read, name)
        assert (list(value) if isinstance(value, tuple) else value) == said[name], name
    assert {"graph_hash", "filter_splits", "dtype", "nan_count", "triples"} <= said.keys()
    assert read.asked
    assert not Provenance.of({"versions": {}}).asked
    assert Provenance.of({"questions": {"subset": None}}) == Provenance(asked=True)
    assert differences(read, read) == []
    for name, other in (("split", "valid"), ("filter_splits", ()), ("questions_hash", "")):
        assert differences(read, replace(read, **{name: other})) == [name]
    assert differences(read, replace(read, dtype="float16")) == []
    assert differences(read, replace(read, dtype="float16"), SCORING) == ["dtype"]


def test_one_name_for_two_graphs(tmp_path: Path) -> None:
    one = ranks_of(graph_in(tmp_path / "x" / "graph"))
    other = ranks_of(graph_in(tmp_path / "y" / "graph", TRAIN.replace("a\tr\tb", "a\tr\td")))
    (reason,) = kgtrec.comparable(one, other).reasons
    first, second = (r.manifest["questions"]["graph_hash"][:8] for r in (one, other))
    assert reason == f"graph: graph ({first}) against graph ({second})"


# -- Ranks no better than random get a line: the usual cause is the order of columns -------------


LINE = "scores look random: AMRI ("
WORSE = "ranks are worse than by chance: AMRI"


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


@pytest.mark.parametrize("sides", ["both", "tail"])
def test_columns_in_another_order_are_noticed(sides: str) -> None:
    questions = graph_of(3000).questions(sides=sides)
    scores = good(questions, 1.2)
    assert LINE not in text_of(scores, questions)
    assert LINE in text_of(scores[:, np.random.default_rng(5).permutation(200)], questions)
    assert LINE in text_of(np.zeros_like(scores), questions)  # all tied: as good as random


def test_one_side_alone_is_no_sign() -> None:
    questions = graph_of(3000).questions()
    scores = good(questions, 1.2)
    mixed = np.where(
        questions.side[:, None] == 1, scores, np.random.default_rng(0).random(scores.shape)
    )
    result = kgtrec.evaluate(mixed, questions)
    assert abs(result["head.realistic.micro.amri"]) < 0.02 < result["tail.realistic.micro.amri"]
    assert LINE not in text_of(mixed, questions)


@pytest.mark.parametrize("seed", range(6))
def test_random_matrices_are_noticed_whatever_the_number_of_instances(seed: int) -> None:
    questions = graph_of(60 * (1 + seed)).questions()
    scores = np.random.default_rng(seed).random((len(questions), 200))
    assert LINE in text_of(scores, questions)


def test_permuted_columns_of_one_order_for_all_questions_are_noticed() -> None:
    """Ranks of one answer then move together: AMRI is rarely within 0.02, or within 3 deviations of
    independent ranks."""
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
    for seed in range(20):
        result = kgtrec.evaluate(scores[:, np.random.default_rng(seed).permutation(200)], questions)
        assert LINE in " ".join(str(result).split())
        far += abs(result["head.realistic.micro.amri"]) > 0.02
    assert far > 10


def test_negated_scores_are_said_to_be_worse_than_chance() -> None:
    questions = graph_of(3000).questions()
    scores = good(questions, 1.2)
    assert WORSE not in text_of(scores, questions)
    text = text_of(-scores, questions)
    assert f"{WORSE} (head -0." in text
    assert ", tail -0." in text
    assert LINE not in text
    assert "higher_is_better=False, --lower-is-better" in text
    one = np.where(questions.side[:, None] == 1, scores, -scores)
    assert f"{WORSE} (head -0." in text_of(one, questions)
    assert WORSE not in str(kgtrec.evaluate(-scores, questions, higher_is_better=False))


def test_a_perfect_model_of_few_answers_is_not_taken_for_random() -> None:
    """With few distinct answers, even the best ranks are too few to differ by answers alone."""
    random = np.random.default_rng(4)
    rows = np.unique(random.integers(0, (200, 3, 4), (900, 3)), axis=0)
    questions = kgtrec.Graph.from_arrays(
        train=rows[:1], test=rows[1:], n_entities=200
    ).questions(sides="tail")  # fmt: skip
    assert LINE not in text_of(good(questions, 0.5), questions)


def test_few_instances_say_nothing() -> None:
    for n_test, is_noticed in ((50, False), (51, True)):
        questions = graph_of(n_test).questions()
        assert len(questions.instance_triple) == 2 * n_test
        assert (LINE in text_of(np.zeros((len(questions), 200)), questions)) == is_noticed
