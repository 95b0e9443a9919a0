"""Defects of other evaluators, each with a test that kgtrec does not share it.

They come from tools in use: each defect has changed published numbers.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import FilterWarning, InputError
from kgtrec.trec import evaluate

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

KINDS = ("optimistic", "realistic", "pessimistic", "ordinal")


def graph_of(n_entities: int, test, **splits) -> kgtrec.Graph:
    """A graph with one relation or more."""
    arrays = {name: np.array(triples).reshape(-1, 3) for name, triples in splits.items()}
    return kgtrec.Graph.from_arrays(test=np.array(test), n_entities=n_entities, **arrays)


def tail_ranks(graph: kgtrec.Graph, scores, dtype=np.float32, **how):
    """Ranks of the tail questions."""
    ask = {key: how.pop(key) for key in ("filter_splits", "extra_known") if key in how}
    questions = graph.questions(sides="tail", **ask)
    return kgtrec.rank(np.array(scores, dtype), questions, **how)[0]


# -- NaN and infinity --------------------------------------------------------------------------


def test_a_nan_answer_never_ranks_first():
    """Comparisons with NaN are false, so counting greater scores gives rank 1 (or 0.5, or 0)."""
    graph = graph_of(4, [(0, 0, 1)])
    scores = [[0, np.nan, 2, 3]]
    with pytest.raises(InputError, match=r"(?i)nan"):
        tail_ranks(graph, scores)
    ranks = tail_ranks(graph, scores, nan="worst")
    for kind in KINDS:
        assert ranks.rank(kind).tolist() == [4]
        assert ranks.macro_rank(kind).tolist() == [4]
    assert ranks.answer_nan.tolist() == [True]
    with pytest.raises(InputError):
        tail_ranks(graph, [[np.nan] * 4])
    assert tail_ranks(graph, [[np.nan] * 4], nan="worst").rank("optimistic").tolist() == [4]


def test_infinite_scores_stay_candidates():
    """Taking infinity for "filtered out" makes the candidate count, and so AMR, too small."""
    graph = graph_of(5, [(0, 0, 1)], train=[(0, 0, 4)])
    ranks = tail_ranks(graph, [[-np.inf, 0, np.inf, -np.inf, 9]])
    assert ranks.candidates.tolist() == [4]
    assert ranks.rank("realistic").tolist() == [2]
    tied = tail_ranks(graph, [[-np.inf, -np.inf, np.inf, -np.inf, 9]])
    assert tied.greater.tolist() == [1]
    assert tied.equal.tolist() == [2]


# -- Number types ------------------------------------------------------------------------------


def test_ranks_beyond_two_to_the_24():
    """float32 cannot hold 2**24 + 1: such ranks and their halves must survive."""
    graph = graph_of(3, [(0, 0, 1)])
    ranks = tail_ranks(graph, [[0, 0, 0]])
    ranks.greater[:] = 2**24
    ranks.equal[:] = 1
    assert ranks.rank("optimistic").tolist() == [2**24 + 1]
    assert ranks.rank("realistic").tolist() == [2**24 + 1.5]
    assert ranks.rank("pessimistic").tolist() == [2**24 + 2]
    ranks.greater[:] = 2**40
    assert ranks.rank("realistic").tolist() == [2**40 + 1.5]


@pytest.mark.slow
def test_entity_ids_beyond_two_to_the_24():
    """Ids passed through float32 turn 16777217 into 16777216."""
    big = 2**24
    test = [(big + 1, 0, big + 3), (big - 1, 0, big + 1)]
    graph = graph_of(big + 5, test, train=[(big + 1, 0, big + 2)])
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


def test_float64_scores_are_not_compared_as_float32():
    graph = graph_of(3, [(0, 0, 1)])
    scores = [[1.0, 1.0 + 1e-12, 1.0 - 1e-12]]
    ranks = tail_ranks(graph, scores, np.float64, run_depth=3)
    assert ranks.greater.tolist() == [0]
    assert ranks.equal.tolist() == [0]


# -- Filtering ---------------------------------------------------------------------------------


def test_duplicate_filter_triples_count_once():
    """Subtracting one per filter *line* gives rank 0 and below."""
    known = [(0, 0, 2)] * 5
    graph = graph_of(4, [(0, 0, 1)] * 3, train=known, valid=known)
    ranks = tail_ranks(graph, [[0, 1, 2, 3]], extra_known=np.array(known))
    assert ranks.rank("optimistic").tolist() == [2]
    assert ranks.candidates.tolist() == [3]
    assert len(ranks.answer) == 1


def test_unfiltered_worst_rank_does_not_count_the_answer_itself():
    graph = graph_of(3, [(0, 0, 1)])
    ranks = tail_ranks(graph, [[0, 5, 1]], filter_splits=())
    assert ranks.rank("pessimistic").tolist() == [1]
    assert tail_ranks(graph_of(1, [(0, 0, 0)]), [[4]]).rank("pessimistic").tolist() == [1]


def test_filtered_best_rank_is_never_zero():
    graph = graph_of(4, [(0, 0, 1), (0, 0, 2), (0, 0, 3)], train=[(0, 0, 0)])
    ranks = tail_ranks(graph, [[3, 3, 3, 3]])
    assert ranks.rank("optimistic").tolist() == [1, 1, 1]
    assert ranks.rank("pessimistic").tolist() == [1, 1, 1]
    assert ranks.candidates.tolist() == [1, 1, 1]


def test_validation_triples_are_filtered_unless_said_otherwise():
    """A filter without valid turned an MRR of 0.80 into 0.66, with only a warning in a log."""
    graph = graph_of(4, [(0, 0, 1)], train=[(0, 0, 2)], valid=[(0, 0, 3)])
    scores = [[0, 1, 2, 3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranks = tail_ranks(graph, scores)
    assert ranks.rank("realistic").tolist() == [1]
    with pytest.warns(FilterWarning, match="valid"):
        less = tail_ranks(graph, scores, filter_splits=("train", "test"))
    assert less.rank("realistic").tolist() == [2]
    assert less.manifest["questions"]["filter_splits"] == ["train", "test"]  # recorded too


# -- Off by one --------------------------------------------------------------------------------


def ladder(n_entities: int):
    """One tail question per entity; question i's answer has rank i + 1 of n_entities."""
    test = [(entity, 0, entity) for entity in range(n_entities)]
    scores = -np.arange(n_entities, dtype=np.float32)[None, :].repeat(n_entities, 0)
    return graph_of(n_entities, test), scores


def test_ranks_start_at_one_and_each_cutoff_counts_its_own():
    graph, scores = ladder(12)
    for kind in KINDS:
        assert tail_ranks(graph, scores).rank(kind).tolist() == list(range(1, 13))
    result = kgtrec.evaluate(scores, graph.questions(sides="tail"))
    for kind in ("optimistic", "realistic", "pessimistic", "expected"):
        values = [result[f"tail.{kind}.micro.hits@{k}"] for k in (1, 3, 10)]
        assert values == [1 / 12, 3 / 12, 10 / 12]


# -- Ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_answer_and_candidates_are_scored_by_the_same_arithmetic(metric):
    """An entity with the answer's embedding ties with it, at any place in the matrix.

    Scoring the answer alone (a dot product) and the candidates together (a matrix product) rounds
    differently, and ties vanish or turn into wins.
    """
    n_entities = 203
    copies = [0, 1, 15, 16, 63, 64, 100, 127, 128, 201, 202]
    test = [(number, 0, copy) for number, copy in enumerate(copies)]
    questions = graph_of(n_entities, test).questions(sides="tail")
    for dim, dtype in itertools.product((1, 7, 64, 100, 257), (np.float32, np.float64)):
        rng = np.random.default_rng(dim)
        entities = rng.normal(size=(n_entities, dim)).astype(dtype)
        entities[copies] = entities[0]
        queries = rng.normal(size=(len(copies), dim)).astype(dtype)
        ranks, _ = kgtrec.rank(kgtrec.Factors(queries, entities, metric=metric), questions)
        assert ranks.equal.tolist() == [len(copies) - 1] * len(copies)


def test_a_perfect_model_has_mean_rank_1_and_a_constant_one_has_not():
    """Counting only greater scores gives a constant model MRR 1: it knows nothing."""
    questions = graph_of(9, [(0, 0, 1), (2, 0, 3)]).questions(sides="tail")
    scores = np.zeros((2, 9), np.float32)
    result = kgtrec.evaluate(scores, questions)
    assert result["tail.optimistic.micro.mrr"] == 1
    assert result["tail.realistic.micro.mr"] == 5
    assert result["tail.realistic.micro.amri"] == 0
    harmonic = math.fsum(1 / i for i in range(1, 10))
    assert result["tail.expected.micro.mrr"] == pytest.approx(harmonic / 9, abs=1e-15)
    scores[0, 1] = scores[1, 3] = 1
    result = kgtrec.evaluate(scores, questions)
    assert [result[f"tail.realistic.micro.{name}"] for name in ("mr", "mrr", "amri")] == [1, 1, 1]


def test_minus_zero_ties_with_zero():
    ranks = tail_ranks(graph_of(3, [(0, 0, 1)]), [[0.0, -0.0, -1]])
    assert ranks.equal.tolist() == [1]


# -- Information retrieval's side --------------------------------------------------------------


def tied_run() -> dict[str, dict[str, float]]:
    """Ten documents with one score: only their names order them."""
    return {"q": {f"d{number}": 1.0 for number in range(10)}}


def test_ties_in_a_run_are_ordered_by_name_every_time():
    """An unstable sort, or one by hash, gives a measure that depends on the order of the lines."""
    measures = ["recip_rank", "map", "P_5"]
    due = None
    for seed in range(8):
        names = np.random.default_rng(seed).permutation(sorted(tied_run()["q"])).tolist()
        values = evaluate({"q": {"d7": 1}}, {"q": dict.fromkeys(names, 1.0)}, measures)
        due = due or values
        assert values == due
    assert due["q"]["recip_rank"] == pytest.approx(1 / 3)  # d9 d8 d7 ...


def test_one_list_has_one_order_for_every_measure():
    """Two providers in one report gave RR 0.33 and RR@10 0.50 for one list."""
    measures = ["recip_rank", "map_cut_20", "P_5", "success_1", "success_5", "recall_5"]
    values = evaluate({"q": {"d7": 1}}, tied_run(), measures)["q"]
    assert values["recip_rank"] == values["map_cut_20"] == pytest.approx(1 / 3)
    assert values["P_5"] == pytest.approx(1 / 5)
    assert (values["success_1"], values["success_5"], values["recall_5"]) == (0, 1, 1)


def test_bpref_with_positives_only_is_not_zero():
    """Dividing by min(R, N) with N = 0 makes bpref 0 on every KG's qrels."""
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    assert evaluate({"q": {"a": 1, "c": 1}}, run, ["bpref"])["q"]["bpref"] == 1
    assert evaluate({"q": {"a": 1, "x": 1}}, run, ["bpref"])["q"]["bpref"] == 0.5


def test_float64_scores_of_a_run_are_not_rounded_to_float32():
    run = {"q": {"a": 1.000000001, "b": 1.0}}
    assert evaluate({"q": {"a": 1}}, run, ["recip_rank"])["q"]["recip_rank"] == 1
