"""Measures from pytrec_eval, from ranks, and from places and grades alone, and where they agree."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from question_cases import N, graded_answers, random_questions, ranking_case, some_scores
from trec_oracle import label_ranking
from trec_oracle import measures as slow_measures

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.trec import evaluate, native_values, summarise, trec_values
from kgtrec.trec.measures import agreement
from kgtrec.trec.measures import pytrec_eval as bridge
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.pytrec_eval import can_supply
from kgtrec.trec.measures.rows import QRELS_ROWS
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import follows_from_ranks

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

# pytrec_eval's measures: it returns 0.0 for runid and relstring.
FAMILIES = {*pytrec_eval.supported_nicknames["all_trec"]} - {"runid", "relstring"}

NAMES = [column.name for column in resolve(FAMILIES)]

DOCNO = ["d1", "d10", "d2", "é", "\udc80", "\udcff", "\U0001f600", "x\x00y", "no query", "0", "u0"]

graded = st.dictionaries(st.sampled_from([*DOCNO, "never"]), st.integers(-9, 5), min_size=1)


# What plain pytrec_eval can take: harmless ids, scores that are apart in float32, a query with a
# judgement from 0 up, because without one it gives what the query before left behind.
@given(
    qrels=st.lists(graded.filter(lambda q: max(q.values()) >= 0), min_size=1, max_size=3),
    runs=st.lists(st.permutations(DOCNO), min_size=1, max_size=3),
    lengths=st.lists(st.integers(1, len(DOCNO)), min_size=3, max_size=3),
)
def test_every_measure_against_plain_pytrec_eval(qrels, runs, lengths) -> None:
    safe = {name: f"s{i}" for i, name in enumerate([*DOCNO, "never"])}
    ours_qrels, ours_run, their_qrels, their_run = {}, {}, {}, {}
    for i, judged, order, length in zip(count(), qrels, runs, lengths, strict=False):
        scores = {name: -float(place) for place, name in enumerate(order[:length])}
        ours_qrels[f"q{i}"], ours_run[f"q{i}"] = judged, scores
        their_qrels[f"q{i}"] = {safe[name]: grade for name, grade in judged.items()}
        their_run[f"q{i}"] = {safe[name]: score for name, score in scores.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(their_qrels, FAMILIES)
    due = evaluator.evaluate(their_run)
    got = evaluate(ours_qrels, ours_run, NAMES, compat=9)
    assert list(got) == sorted(due)
    for query, row in got.items():
        assert sorted(row) == sorted(due[query])
        assert row == {name: due[query][name] for name in row}
    total = summarise(got, NAMES)
    for name in NAMES:
        theirs = [row[name] for row in due.values()]
        assert total[name] == pytest.approx(
            pytrec_eval.compute_aggregated_measure(name, theirs), abs=1e-12
        )


def test_runs_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    questions, scores = ranking_case(1)
    answers = questions.answers
    run = kgtrec.rank(scores, questions, run_depth=10)[1]
    agreement.trec_values(run, answers, ["P_10", "map"])
    assert float(np.float32(bridge._MOST_DOCUMENTS)) == bridge._MOST_DOCUMENTS
    assert np.float32(bridge._MOST_DOCUMENTS + 2) == np.float32(bridge._MOST_DOCUMENTS + 1)
    monkeypatch.setattr(bridge, "_MOST_DOCUMENTS", 9)
    with pytest.raises(UsageError, match="allow at most 9"):
        agreement.trec_values(run, answers, ["map"])
    empty = World(1).ranks(1).subset(slice(0))
    assert native_values(empty, ["map_cut_20"])["map_cut_20"].shape == (0,)


GAINED = ("dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg", "G", "rbp")

RANKED = [
    *(f"{family}.1,2,3,5,10,20" for family, row in QRELS_ROWS.items() if row.kind == "rank"),
    *(family for family, row in QRELS_ROWS.items() if row.kind not in ("rank", "ignored")),
    *(f"{family}.{gains}" for family in GAINED for gains in ("1=3,2=9,4=4.5", "0=0.25,1=0.5")),
    "set_F.0.5",
    "rbp.p=0.5",
    "rbp_resid.p=0.5",
    "11pt_avg..25,.5,.75",
]

COLUMNS = [c for c in resolve(RANKED) if c.measure != "runid" and follows_from_ranks(c)]

# One depth, one recall point and one multiple are enough where each column has its own call.
FEW = [c for c in COLUMNS if c.row.kind != "rank" or c.cutoff == 3]

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
        values = slow_measures([judged.get(d) for d in order], [*judged.values()], level)
        documents = [(row[d], judged.get(d)) for d in order]
        return values | {"lrap": label_ranking(documents, [*judged.values()], level)}


@examples(0.5)
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
    families = {column.measure for column in FED}
    theirs = pytrec_eval.RelevanceEvaluator(world.qrels, families, relevance_level=level)
    bits = theirs.evaluate(world.run)
    alike = [c.name for c in FED if level == 1 or c.measure != "Rndcg"]
    for name in {*alike} & bits["x"].keys():
        assert got[name].tolist() == [bits[query][name] for query in world.qrels], name


@examples(0.5)
@given(seed=st.integers(0, 10**6), own=st.sampled_from([-1, 0, 1, 2, 3]))
def test_no_value_is_wrong_for_want_of_judged_documents(seed: int, own: int) -> None:
    world = World(seed)
    ranks, level = world.ranks(own), max(own, 0)
    whole = native_values(world.ranks(-2), [c.name for c in FEW], level)
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
    assert held >= len([c for c in FEW if not c.row.graded and c.row.judged_from is None])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [random_questions, graded_answers])
def test_graphs_and_lists_have_nothing_judged_but_their_answers(make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    questions = make(rng)
    if seed == 1:
        questions = questions.restrict(
            entities=np.flatnonzero(rng.random(N) < 0.6), outside="worst"
        )
    scores = some_scores(rng, (len(questions), N))
    if seed == 2:  # answers without a score are not retrieved
        scores[questions.instance_question[::3], questions.answers.ids[::3]] = np.nan
    ranks, run = kgtrec.rank(scores, questions, run_depth=N, nan="worst")
    points = ("iprec_at_recall", "11pt_avg")  # of another version of trec_eval
    names = [column.name for column in COLUMNS if column.measure not in points]
    theirs, ours = trec_values(run, questions, names), native_values(ranks, names)
    for name in names:
        assert ours[name].tolist() == theirs[name].tolist(), name
    named = agreement.check_agreement(ranks, run, questions)
    assert list(named) == ["ndcg_cut_20", "map_cut_20"]
    rows = evaluate(questions, run, names, compat=9)  # by labels
    for number, query in enumerate(questions.ids):
        assert rows[query] == {name: theirs[name][number] for name in rows[query]}
    assert (ours["bpref"] == ours["set_recall"]).all()
    assert ours["num_ret"].sum() == len(run.documents)
