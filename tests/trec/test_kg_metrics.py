"""Micro metrics from a run and qrels: a slow oracle, numbers by hand, and kgtrec's own ranks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from transcripts import run_command

import kgtrec
from kgtrec import trec
from kgtrec.errors import InputError
from kgtrec.trec.eval.kg_metrics import Micro, micro_values
from kgtrec.trec.measures.judge import read_lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.trec_measure import EvalOptions

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

ASKED = "kg_mr,kg_mrr,kg_hits.1,3,10,kg_amr,kg_amri"

COLUMNS = resolve([ASKED], of_answers=True)

Qrels = dict[str, dict[str, int]]

Run = dict[str, dict[str, float]]


def micro_of(qrels: Qrels, run: Run, options: EvalOptions | None = None, **more) -> Micro:
    lists = read_lists(qrels, run, absent=bool(options and options.complete))
    columns = more.pop("columns", COLUMNS)
    return micro_values(lists, columns, options or EvalOptions(), **more)


def ends_of_ranks(
    qrels: Qrels, run: Run, level: int, entities: int, kind: str = "realistic"
) -> list[tuple[Fraction, Fraction, int]]:
    """Best rank, worst rank and number of candidates of every answer."""
    ends = []
    for query in qrels:
        answers = {d for d, grade in qrels[query].items() if grade >= level}
        scores = run.get(query, {})
        others = {d: s for d, s in scores.items() if d not in answers}
        candidates = entities - len(answers) + 1
        for answer in answers:
            if answer not in scores:
                ends.append((Fraction(len(others) + 1), Fraction(candidates), candidates))
                continue
            above = sum(s > scores[answer] for s in others.values())
            tied = sum(s == scores[answer] for s in others.values())
            share = {"realistic": Fraction(tied, 2), "best": 0, "worst": tied}[kind]
            ends.append((above + 1 + share, above + 1 + share, candidates))
    return ends


def oracle(ends: Sequence[tuple[Fraction, Fraction, int]]) -> dict[str, float]:
    """Both ends of every metric over some answers."""
    n = len(ends)
    values: dict[str, Fraction] = {}
    expected = sum(Fraction(c + 1, 2) for _, _, c in ends) / n
    for name, ranks in (("best", [e[0] for e in ends]), ("worst", [e[1] for e in ends])):
        up, down = ("low", "high") if name == "best" else ("high", "low")
        mean = sum(ranks) / n
        values[f"kg_mr_{up}"] = mean
        values[f"kg_amr_{up}"] = mean / expected
        if expected > 1:
            values[f"kg_amri_{down}"] = 1 - (mean - 1) / (expected - 1)
        values[f"kg_mrr_{down}"] = sum(1 / Fraction(rank) for rank in ranks) / n
        for k in (1, 3, 10):
            values[f"kg_hits_{k}_{down}"] = Fraction(sum(rank <= k for rank in ranks), n)
    return {name: float(value) for name, value in values.items()}


names = st.sampled_from([f"d{i}" for i in range(7)])


@st.composite
def a_case(draw: st.DrawFn) -> tuple[Qrels, Run]:
    queries = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True))
    grades = st.dictionaries(names, st.sampled_from([-1, 0, 1, 1, 2]), min_size=1, max_size=4)
    scores = st.dictionaries(names, st.sampled_from([0.0, 1.0, 2.0, -0.0]), min_size=1, max_size=6)
    qrels = {query: draw(grades) for query in queries}
    return qrels, {query: draw(scores) for query in queries if draw(st.booleans())}


@examples(1.5)
@given(a_case(), st.sampled_from([1, 2]), st.integers(12, 30))
def test_against_the_oracle(case: tuple[Qrels, Run], level: int, entities: int) -> None:
    qrels, run = case
    answered = {query: grades for query, grades in qrels.items() if query in run}
    for complete, judged in ((True, qrels), (False, answered)):
        options = EvalOptions(level=level, complete=complete)
        ends = ends_of_ranks(judged, run, level, entities)
        if not ends:
            with pytest.raises(InputError, match=f"relevance {level} or more"):
                micro_of(qrels, run, options, entities=entities)
            continue
        micro = micro_of(qrels, run, options, entities=entities)
        assert micro.summary() == pytest.approx(oracle(ends))
        per_query = micro.values()
        for place, query in enumerate(sorted(judged)):
            own = ends_of_ranks({query: judged[query]}, run, level, entities)
            assert micro.answers[place] == len(own)
            relevant = {d for d, grade in judged[query].items() if grade >= level}
            assert micro.missing[place] == len(relevant - run.get(query, {}).keys())
            if own:
                row = {name: values[place] for name, values in per_query.items()}
                assert row == pytest.approx(oracle(own))
            else:
                assert all(np.isnan(values[place]) for values in per_query.values())


@given(a_case())
def test_least_and_greatest_over_ties(case: tuple[Qrels, Run]) -> None:
    qrels, run = case
    options = EvalOptions(complete=True)
    if not any(grade >= 1 for grades in qrels.values() for grade in grades.values()):
        return
    best, worst = (oracle(ends_of_ranks(qrels, run, 1, 20, kind)) for kind in ("best", "worst"))
    least = micro_of(qrels, run, options, entities=20, ties="min").summary()
    greatest = micro_of(qrels, run, options, entities=20, ties="max").summary()
    for name in least:
        assert least[name] == pytest.approx(min(best[name], worst[name]))
        assert greatest[name] == pytest.approx(max(best[name], worst[name]))


QRELS = {"q": {"a": 1, "b": 1, "c": 1, "n": 0}}

RUN = {"q": {"x": 9.0, "a": 8.0, "y": 7.0, "b": 7.0, "n": 7.0, "z": 1.0}}


def test_expected_ranks_the_limit_and_an_open_end() -> None:
    columns = resolve(["kg_mrr"], of_answers=True)
    summary = micro_of(QRELS, RUN, columns=columns, ties="expected").summary()
    assert summary["kg_mrr_low"] == pytest.approx((1 / 2 + (1 / 2 + 1 / 3 + 1 / 4) / 3) / 3)
    without_entities = micro_of(QRELS, RUN, columns=columns).summary()
    assert without_entities["kg_mrr_low"] == pytest.approx((1 / 2 + 1 / 3) / 3)
    assert without_entities["kg_mrr_high"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 5) / 3)
    cut = micro_of(QRELS, RUN, EvalOptions(most=2), entities=20).summary()
    assert cut["kg_mr_low"] == pytest.approx((2 + 2 + 2) / 3)
    assert cut["kg_mr_high"] == pytest.approx((2 + 18 + 18) / 3)


def test_names() -> None:
    def names_of(*measures: str) -> list[str]:
        columns = resolve(measures, of_answers=True)
        return [column.name for column in columns if column.end != "high"]

    assert names_of("kg_hits.10,1", "kg_mr") == ["kg_mr_low", "kg_hits_1_low", "kg_hits_10_low"]
    assert names_of("kg_hits.1,kg_mrr,kg_hits_3") == names_of("kg_mrr", "kg_hits@3", "kg_hits.1")
    assert names_of("kg_hits") == names_of("kg_hits.1,3,10")
    both = names_of("kg_mrr,map,P.5,10", "kg_mr")
    assert both == ["map", "P_5", "P_10", "kg_mr_low", "kg_mrr_low"]
    ends = [column.name for column in resolve(["kg_mrr"], of_answers=True)]
    assert ends == ["kg_mrr_low", "kg_mrr_high"]


# -- Raw runs that a graph filters: the numbers of filtered ranks, from `eval` and from lists ----

N = 25


@pytest.fixture(scope="module")
def raw() -> tuple[kgtrec.Questions, kgtrec.Run]:
    """Questions, and a run of the ten best candidates, known answers included."""
    rng = np.random.default_rng(11)
    graph = kgtrec.Graph.from_arrays(
        **{
            split: rng.integers(0, (N, 2, N), (size, 3))
            for split, size in (("train", 120), ("valid", 20), ("test", 40))
        },
        n_entities=N,
        n_relations=2,
        entities=[f"e {number:02}" for number in range(N)],
    )
    questions = graph.questions(filter="raw")
    scores = rng.integers(0, 12, (len(questions), N)).astype(np.float32)  # ties
    return graph.questions(), kgtrec.rank(scores, questions, run_depth=10)[1]


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
def test_numbers_are_those_of_filtered_lists(raw, tmp_path: Path) -> None:
    questions, run = raw
    run.write(tmp_path / "raw.run")
    names = ["kg_mr", "kg_mrr", "kg_hits.1,3", "kg_amri", "map_cut.5"]
    row = trec.evaluate(questions, run, names, summary=True, questions=questions)
    result = kgtrec.Result(kgtrec.rank_lists(tmp_path / "raw.run", questions, "trec"))
    for ours, key in (("mr", "mr"), ("mrr", "mrr"), ("hits_1", "hits@1"), ("amri", "amri")):
        value = result[f"both.realistic.micro.{key}"]
        low, high = getattr(value, "low", value), getattr(value, "high", value)
        ends = sorted((row[f"kg_{ours}_low"], row[f"kg_{ours}_high"]))
        assert ends == pytest.approx([low, high]), key
    assert row["kg_mrr_low"] < row["kg_mrr_high"]
    listed = trec.evaluate(questions, run, ["kg_mrr", "map_cut.5"], summary=True)
    assert row["kg_mrr_low"] > listed["kg_mrr_low"] + 0.01  # the filter does something
    assert row["map_cut_5"] > listed["map_cut_5"]


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
def test_the_filtered_run_is_that_of_the_ranker(raw, tmp_path: Path) -> None:
    """A raw run with a graph has the map of the run that a filtered ranking writes."""
    questions, run = raw
    trec.write_run(run, tmp_path / "raw.run")
    documents, frame = (trec.read_run(tmp_path / "raw.run", form) for form in ("dict", "frame"))
    filtered: dict[str, dict[str, float]] = {}
    for number, query in enumerate(questions.ids):
        known = {f"e%20{entity:02}" for entity in questions.removed[number].tolist()}
        filtered[query] = {doc: s for doc, s in documents[query].items() if doc not in known}
    names = ["map", "bpref", "ndcg_cut.5", "num_ret"]
    due = trec.evaluate(questions, filtered, names)
    for form in (run, documents, frame):
        assert trec.evaluate(questions, form, names, questions=questions) == due


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
def test_documents_that_are_no_entities_keep_their_places(raw) -> None:
    """Also where the first entity is known, and leaves the list alone."""
    questions, _ = raw
    knows = [0 in questions.removed[number].tolist() for number in range(len(questions))]
    names = ["recip_rank", "kg_mrr", "num_ret"]
    for number, documents in (
        (0, {"nobody": 3.0}),
        (knows.index(True), {"nobody": 3.0, "e%2000": 2.0}),
    ):
        query = questions.ids[number]
        answers = [f"e%20{int(entity):02}" for entity in questions.answers[number]]
        run = {query: {**documents, **dict.fromkeys(answers, 1.0)}}
        qrels = {query: dict.fromkeys(answers, 1)}
        row = trec.evaluate(qrels, run, names, questions=questions, summary=True)
        assert (row["recip_rank"], row["kg_mrr_low"], row["kg_mrr_high"]) == (0.5, 0.5, 0.5)
        assert row["num_ret"] == 1 + len(answers)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.AnswerNote")
@pytest.mark.parametrize("n_strangers", [3, N - 2, 3 * N])
def test_no_answer_is_behind_the_last_candidate(raw, tmp_path: Path, n_strangers: int) -> None:
    """Lists with more names than there are entities have the numbers of `rank_lists`."""
    questions, run = raw
    path = tmp_path / "raw.run"
    run.write(path)
    with path.open("a") as file:
        for query in questions.ids:
            file.writelines(f"{query} Q0 x{i} 1 {i % 9}.5 x\n" for i in range(n_strangers))
    names = ["kg_mr", "kg_mrr", "kg_hits.3", "kg_amri"]
    row = trec.evaluate(questions, path, names, summary=True, questions=questions)
    result = kgtrec.Result(kgtrec.rank_lists(path, questions, "trec"))
    for ours, key in (("mr", "mr"), ("mrr", "mrr"), ("hits_3", "hits@3"), ("amri", "amri")):
        value = result[f"both.realistic.micro.{key}"]
        low, high = getattr(value, "low", value), getattr(value, "high", value)
        ends = sorted((row[f"kg_{ours}_low"], row[f"kg_{ours}_high"]))
        assert ends == pytest.approx([low, high]), key


def test_numbers_that_no_fact_names_are_entities_if_their_number_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g").mkdir()
    Path("g/train.txt").write_text("0\tr\t3\n3\tr\t7\n9\ts\t0\n")
    Path("g/test.txt").write_text("0\tr\t7\n3\ts\t9\n")
    np.save("s.npy", np.random.default_rng(1).random((4, 12)))
    files = ["-o", "r.parquet", "--write-run", "r.run", "--write-qrels", "r.qrels"]
    assert run_command("rank", "--graph", "g", "--scores", "s.npy", *files).code == 0
    due = kgtrec.Result(kgtrec.Ranks.load("r.parquet"))
    command = ["eval", "-m", "kg_amri", "-m", "kg_mrr", "--graph", "g", "r.qrels", "r.run"]
    assert "not in the graph" in (without := run_command(*command)).err
    assert "give the number of all by --n-entities" in without.err
    done = run_command(*command, "--n-entities", "12")
    values = {
        name.strip(): float(value) for name, _, value in map(str.split, done.out.splitlines())
    }
    for name in ("amri", "mrr"):
        for end in ("low", "high"):
            expected = pytest.approx(due[f"both.realistic.micro.{name}"], abs=5e-5)
            assert values[f"kg_{name}_{end}"] == expected
