"""Pair ranking against a plain oracle, on random worlds with ties, filters and restricted pairs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pair_oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import study
from kgtrec.ranking import pairs as counting
from kgtrec.study.pairs.measures import relation_values

SOURCES = ("callable", "mapping", "vectors", "vectors per relation", "half", "distances")
FILTERS = ("all", "valid", "raw", ("train", "test"))
KEYS = ("map", "ndcg_cut_2", "ndcg_cut_7", "P_3", "recall_1", "recall_4", "auroc")
POOL = [-np.inf, -2.0, -0.0, 0.0, 0.5, 1.0, np.inf]


@dataclass(frozen=True)
class PairCase:
    """A world, the scores of all pairs of each relation, and how they are ranked."""

    graph: kgtrec.Graph
    world: pair_oracle.PairWorld
    scores: dict[int, np.ndarray]
    """By relation, (entities, entities)."""
    source: str
    options: dict[str, Any]

    def of(self, relation: int) -> dict[tuple[int, int], float]:
        matrix = self.scores[relation]
        return {pair: float(matrix[pair]) for pair in self.world.pairs()}

    def given(self) -> Any:
        """The scores in the form of the case."""
        heads, tails = np.array(self.world.heads), np.array(self.world.tails)
        tables = {
            relation: (matrix if self.source.startswith("vectors") else matrix[:, tails])
            for relation, matrix in self.scores.items()
        }
        eye = np.eye(self.graph.n_entities, dtype=np.float32)
        if self.source == "vectors":
            return lambda relation, ids: kgtrec.Factors(tables[relation][ids], eye)
        if self.source == "vectors per relation":
            return {r: kgtrec.Factors(matrix[heads], eye) for r, matrix in tables.items()}
        if self.source == "callable":
            return lambda relation, ids: tables[relation][ids]
        sign = -1 if self.source == "distances" else 1
        kind = np.float16 if self.source == "half" else np.float64
        return {r: (sign * matrix[heads]).astype(kind) for r, matrix in tables.items()}

    def rank(self, **changed: Any) -> study.pairs.rank.PairRanks:
        options = {**self.options, **changed}
        if self.source == "distances":
            options["higher_is_better"] = False
        return study.rank_pairs(self.given(), self.graph, progress=False, **options)


def subsets(draw: st.DrawFn, n: int) -> tuple[list[int], list[int] | None]:
    """Entities as candidates, and what is said of them: nothing, or a list in any order."""
    if draw(st.booleans()):
        return list(range(n)), None
    chosen = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    return chosen, chosen


@st.composite
def pair_cases(draw: st.DrawFn) -> PairCase:
    n, relations = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    triple = st.tuples(st.integers(0, n - 1), st.integers(0, relations - 1), st.integers(0, n - 1))
    splits = {
        name: draw(st.lists(triple, min_size=1, max_size=9)) for name in ("train", "valid", "test")
    }
    (heads, named), (tails, named_tails) = subsets(draw, n), subsets(draw, n)
    split = draw(st.sampled_from(["test", "test", "valid"]))
    pick = draw(st.sampled_from(splits[split]))  # so that there is something to rank
    for own, entity in ((heads, pick[0]), (tails, pick[2])):
        if entity not in own:
            own.append(entity)
    filter = draw(st.sampled_from(FILTERS))
    filters = {"all": ("train", "valid", "test"), "valid": ("train", "valid"), "raw": ()}
    used = filters[filter] if isinstance(filter, str) else filter
    source = draw(st.sampled_from(SOURCES))
    pool = POOL[1:-1] if source.startswith("vectors") else POOL
    cells = st.lists(st.sampled_from(pool), min_size=n * n, max_size=n * n)
    scores = {r: np.array(draw(cells), np.float32).reshape(n, n) for r in range(relations)}
    return PairCase(
        kgtrec.Graph.from_arrays(
            **{name: np.array(rows) for name, rows in splits.items()},
            n_entities=n,
            n_relations=relations,
        ),
        pair_oracle.PairWorld(splits, heads, tails, split, used),
        scores,
        source,
        {
            "split": split,
            "filter": filter,
            "heads": named,
            "tails": named_tails,
            "heads_per_call": draw(st.sampled_from([None, 1, 2, 3])),
            "threads": draw(st.integers(1, 3)),
        },
    )


pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")


def close(ours: Any, due: Any) -> bool:
    return np.allclose(ours, due, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.hypothesis
@given(pair_cases())
def test_counts_and_measures_are_those_of_the_oracle(case):
    ranks, world = case.rank(), case.world
    relations = world.relations()
    due = [(r, *pair) for r in relations for pair in world.answers(r)]
    counts = ranks.counts
    assert list(zip(counts.relation, ranks.head, ranks.tail, strict=True)) == due
    micro = [pair_oracle.counts(case.of(r), world.micro(r, (h, t)), (h, t)) for r, h, t in due]
    macro = [pair_oracle.counts(case.of(r), world.macro(r), (h, t)) for r, h, t in due]
    columns = (counts.greater, counts.equal, counts.candidates)
    assert list(zip(*columns, strict=True)) == micro
    columns = (counts.macro_greater, counts.macro_equal, counts.macro_candidates)
    assert list(zip(*columns, strict=True)) == macro
    for kind in ("optimistic", "realistic", "pessimistic", "expected"):
        rows = ranks.table(["mr", "mrr", "hits@2"], kind).rows
        for row, value in zip(rows, (lambda r: r, lambda r: 1 / r, lambda r: r <= 2), strict=True):
            assert close(row[2], float(pair_oracle.mean_over(micro, kind, value)))
            ends = [
                float(pair_oracle.mean_over(micro, end, value))
                for end in ("optimistic", "pessimistic")
            ]
            assert close(row[4:], sorted(ends))
    bounds = relation_values(counts, study.pairs.measures.parse_measures(KEYS))
    weights = np.array([len(world.answers(r)) for r in relations])
    for key, ours, row in zip(KEYS, bounds, ranks.table(KEYS).rows, strict=True):
        own = [_due(case, key, relation) for relation in relations]
        assert close(np.array(ours).T, own), key
        weighted = weights @ np.array(own) / weights.sum()
        assert close([row[2], row[4], row[5]], weighted), key
        assert close(row[3], np.mean(own, axis=0)[0]), key


def _due(case: PairCase, key: str, relation: int) -> tuple[float, float, float]:
    world, scores = case.world, case.of(relation)
    candidates, answers = world.macro(relation), world.answers(relation)
    if key == "auroc":
        return pair_oracle.auroc(scores, candidates, answers)
    name, _, cutoff = key.replace("ndcg_cut", "ndcg").partition("_")
    return pair_oracle.measure(
        name, int(cutoff or 0), pair_oracle.ties(scores, candidates, answers)
    )


@pytest.mark.hypothesis
@given(pair_cases(), st.integers(1, 6), st.booleans(), st.sampled_from([1, 3, 1 << 17]))
def test_the_best_pairs_are_those_of_the_oracle(case, k, keep_known, room):
    world, relations = case.world, case.world.relations()
    pools = [world.pairs() if keep_known else world.macro(r) for r in relations]
    k = min(k, *map(len, pools))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "CELLS_KEPT", room)  # so that calls find too many pairs
        best = case.rank(k=k, keep_known=keep_known).best
    due = [pair_oracle.best(case.of(r), pool, k) for r, pool in zip(relations, pools, strict=True)]
    found = [*zip(best.head.tolist(), best.tail.tolist(), strict=True)]
    assert [found[at : at + k] for at in range(0, len(found), k)] == [pairs for pairs, _ in due]
    assert best.tied.tolist() == [tied for _, tied in due]
    for (head, tail), relation, mark in zip(found, best.relation.tolist(), best.known, strict=True):
        names = [n for n, rows in world.splits.items() if (head, relation, tail) in rows]
        assert mark == (",".join(names) or "-")


@pytest.mark.hypothesis
@given(pair_cases())
def test_blocks_and_threads_make_no_difference(case):
    pairs = [case.world.macro(relation) for relation in case.world.relations()]
    k = min(3, *map(len, pairs))
    due = case.rank(k=k)
    for heads, threads in itertools.product((1, 2, None), (1, 2, 5)):
        other = case.rank(heads_per_call=heads, threads=threads, k=k)
        assert all(map(np.array_equal, vars(due.counts).values(), vars(other.counts).values()))
        assert np.array_equal(due.best.head, other.best.head)
        assert np.array_equal(due.best.tail, other.best.tail)
        assert np.array_equal(due.best.tied, other.best.tied)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_rows_longer_than_a_block_have_the_counts_of_a_sort(dtype):
    """Three heads with 5,000 tails each, of which some tie; more answers than a few."""
    rng = np.random.default_rng(8)
    tails = rng.choice(5_000, 60, replace=False)
    triples = np.stack([rng.integers(0, 3, 60), np.zeros(60, int), tails], axis=1)
    graph = kgtrec.Graph.from_arrays(test=triples, n_entities=5_000, n_relations=1)
    scores = rng.integers(-999, 1_000, (3, 5_000)).astype(dtype)
    ranks = study.rank_pairs({0: scores}, graph, filter="raw", heads=[0, 1, 2], k=50)
    values = scores.reshape(-1).astype(float)
    cells = np.sort(triples[:, 0] * 5_000 + triples[:, 2])
    assert (ranks.head * 5_000 + ranks.tail).tolist() == cells.tolist()
    assert ranks.counts.greater.tolist() == [int((values > values[c]).sum()) for c in cells]
    assert ranks.counts.equal.tolist() == [int((values == values[c]).sum()) - 1 for c in cells]
    best = sorted(range(15_000), key=lambda cell: (-values[cell], cell))
    head, tail = np.divmod(best[:50], 5_000)
    assert ranks.best.head.tolist() == head.tolist()
    assert ranks.best.tail.tolist() == tail.tolist()
