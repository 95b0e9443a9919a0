"""Every measure from places, grades and counts alone: trec_eval's values for complete runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from question_cases import N, graded_answers, random_questions, some_scores
from refusals import assert_refused, refusals
from trec_oracle import measures as slow_measures

import kgtrec
from kgtrec.trec import native_values, trec_values
from kgtrec.trec.measures.family import EvalOptions
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.pytrec_eval import can_supply
from kgtrec.trec.measures.rows import QRELS_ROWS
from kgtrec.trec.measures.values import follows_from_ranks

GAINED = ("dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg", "G", "rbp")
NAMES = [
    *(f"{family}.1,2,3,5,10,20" for family, row in QRELS_ROWS.items() if row.kind == "rank"),
    *(family for family, row in QRELS_ROWS.items() if row.kind not in ("rank", "ignored")),
    *(f"{family}.{gains}" for family in GAINED for gains in ("1=3,2=9,4=4.5", "0=0.25,1=0.5")),
    "set_F.0.5", "rbp.p=0.5", "rbp_resid.p=0.5", "11pt_avg..25,.5,.75",
]  # fmt: skip
COLUMNS = [c for c in resolve(NAMES) if c.family != "runid" and follows_from_ranks(c)]
FED = [column for column in COLUMNS if can_supply(column, EvalOptions())]


class World:
    """Graded qrels, some 0 or negative, and scores of all documents, often tied."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 40))
        self.documents = [f"d{number}" for number in rng.permutation(n)]
        self.qrels = {}
        for query in ("x", "y", "z"):
            judged = rng.permutation(n)[: rng.integers(1, n + 1)]
            grades = [3, *rng.integers(-2, 5, len(judged) - 1).tolist()]
            self.qrels[query] = {self.documents[d]: g for d, g in zip(judged, grades, strict=True)}
        shape = 3, n
        drawn = rng.integers(0, 6, shape) if seed % 2 else rng.normal(size=shape)
        self.scores = drawn.astype(np.float32)
        self.run = {
            query: dict(zip(self.documents, row, strict=True))
            for query, row in zip(self.qrels, self.scores.tolist(), strict=True)
        }

    def ranks(self, level: int) -> kgtrec.Ranks:
        questions = kgtrec.Questions.from_answers(self.qrels, labels=self.documents, level=level)
        return kgtrec.rank(self.scores, questions)[0]

    def slow(self, query: str, level: int) -> dict[str, float | str]:
        row, judged = self.run[query], self.qrels[query]
        order = sorted(row, key=lambda d: (row[d], d.encode()), reverse=True)
        return slow_measures([judged.get(d) for d in order], [*judged.values()], level)


@given(seed=st.integers(0, 10**6), level=st.sampled_from([0, 1, 2, 3]))
def test_they_are_those_of_complete_runs(seed: int, level: int) -> None:
    world = World(seed)
    names = [column.name for column in COLUMNS]
    got = native_values(world.ranks(-2), names, level)
    for number, query in enumerate(world.qrels):
        due = world.slow(query, level)
        for name in names:
            expected = pytest.approx(due[name], rel=1e-12, abs=1e-12, nan_ok=True)
            assert got[name][number] == expected, name
    if level == 0:
        return
    families = {column.family for column in FED}
    theirs = pytrec_eval.RelevanceEvaluator(world.qrels, families, relevance_level=level)
    bits = theirs.evaluate(world.run)
    alike = [c.name for c in FED if level == 1 or c.family != "Rndcg"]
    for name in {*alike} & bits["x"].keys():
        assert got[name].tolist() == [bits[query][name] for query in world.qrels], name


@given(seed=st.integers(0, 10**6), own=st.sampled_from([-1, 0, 1, 2, 3]))
def test_no_value_is_wrong_for_want_of_judged_documents(seed: int, own: int) -> None:
    world = World(seed)
    ranks, level = world.ranks(own), max(own, 0)
    whole = native_values(world.ranks(-2), [c.name for c in COLUMNS], level)
    held = 0
    for name, values in whole.items():
        try:
            got = native_values(ranks, [name], level)
        except kgtrec.UsageError:
            continue
        held += 1
        assert got[name].tolist() == values.tolist(), name
        if own >= 0:
            assert native_values(ranks, [name])[name].tolist() == values.tolist(), name
    assert held >= len([c for c in COLUMNS if not c.row.graded and c.row.judged_from is None])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [random_questions, graded_answers])
def test_graphs_and_lists_have_nothing_judged_but_their_answers(make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    questions = make(rng)
    if seed == 1:
        questions = questions.restrict(entities=np.flatnonzero(rng.random(N) < 0.6),
                                       outside="worst")  # fmt: skip
    scores = some_scores(rng, (len(questions), N))
    if seed == 2:  # answers without a score are not retrieved
        scores[questions.instance_question[::3], questions.answers.ids[::3]] = np.nan
    ranks, run = kgtrec.rank(scores, questions, run_depth=N, nan="worst")
    points = ("iprec_at_recall", "11pt_avg")  # of another version of trec_eval
    names = [column.name for column in COLUMNS if column.family not in points]
    theirs, ours = trec_values(run, questions, names), native_values(ranks, names)
    for name in names:
        assert ours[name].tolist() == theirs[name].tolist(), name
    assert (ours["bpref"] == ours["set_recall"]).all()
    assert ours["num_ret"].sum() == len(run.documents)


def test_results_have_all_keys_of_ranks() -> None:
    rng = np.random.default_rng(4)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    ranks, run = kgtrec.rank(scores, questions, run_depth=N)
    result = kgtrec.Result(ranks)
    assert result["num_ret"] == len(run.documents)
    assert result["macro.bpref"] == 1.0
    assert 0 < result["macro.set_P"] < result["macro.set_F_1"] < result["macro.infAP"] < 1


def holed() -> kgtrec.Ranks:
    """Ranks of a question without any score, among others."""
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    scores[0] = np.nan
    return kgtrec.rank(scores, questions, nan="worst")[0]


def asked(ranks: Callable[[], kgtrec.Ranks], names: str, *level: int) -> Callable[[], Any]:
    return lambda: native_values(ranks(), names.split(), *level)


def at_level(level: int) -> Callable[[], kgtrec.Ranks]:
    return lambda: World(8).ranks(level)


@refusals(
    ("gains below", asked(at_level(2), "map ndcg bpref"), kgtrec.UsageError,
     ("bpref, ndcg: judged documents below relevance 2 matter to it",)),
    ("pool", asked(at_level(0), "bpref infAP"), kgtrec.UsageError,
     ("infAP: judged documents below relevance 0", "rank at a lower level")),
    ("level below", asked(at_level(2), "map", 1), kgtrec.UsageError,
     ("level=1 needs documents below relevance 2", "; rank at level 1")),
    ("no level", asked(at_level(2), "map", -1), kgtrec.UsageError, ("relevance (-l) is -1",)),
    ("text", asked(at_level(1), "relstring map"), kgtrec.UsageError,
     ("relstring: ranks are not enough for it; evaluate a run",)),
    ("unjudged", asked(at_level(1), "ndcg.-1=2"), kgtrec.UsageError, ("ndcg_-1=2: ranks are",)),
    ("NaN", asked(holed, "map set_P"), kgtrec.UsageError,
     ("set_P: ", "scores of candidates were NaN")),
)  # fmt: skip
def test_what_ranks_do_not_hold(call, error, words) -> None:
    assert_refused(call, error, words)
