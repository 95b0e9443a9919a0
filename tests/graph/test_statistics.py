"""Statistics of a graph by hand, by sets and as published: popularity, categories, leakage."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_cases import N_ENTITIES, N_RELATIONS, Triples, category, graphs, listed, percentile, wn18

import kgtrec
from kgtrec.errors import InputError
from kgtrec.graph.statistics.leakage import find_leaks
from kgtrec.graph.statistics.popularity import (
    entity_frequencies,
    entity_popularity,
    popularity_correlations,
    relation_frequencies,
    relation_popularity,
    triple_mix,
)
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN, relation_categories
from kgtrec.graph.statistics.tails import fit_tail

SPLITS = [None, "all", "train", "train,test", ["valid", "test"]]
NAMES = [(), (), ("train",), ("train", "test"), ("valid", "test")]


def roles(triples: list[tuple[int, int, int]]) -> list[int]:
    return [sum((h == e) + (t == e) for h, _, t in triples) for e in range(N_ENTITIES)]


def uses(triples: list[tuple[int, int, int]]) -> list[int]:
    return [sum(r == q for _, r, _ in triples) for q in range(N_RELATIONS)]


@given(graphs(), st.integers(0, len(SPLITS) - 1))
def test_counts(graph: kgtrec.Graph, case: int) -> None:
    triples = listed(graph, *NAMES[case])
    assert entity_popularity(graph, SPLITS[case]).tolist() == roles(triples)
    assert relation_popularity(graph, SPLITS[case]).tolist() == uses(triples)
    # The default is what ranks hold.
    assert entity_popularity(graph).tolist() == graph.entity_counts().tolist()


@given(graphs(), st.sampled_from([0, 50, 75, 80, 90, 100]))
def test_table_1(graph: kgtrec.Graph, percent: float) -> None:
    triples = listed(graph)
    entity, relation = roles(triples), uses(triples)
    limits = percentile(entity, percent), percentile(relation, percent)
    kinds = [
        (entity[h] >= limits[0]) + (relation[r] >= limits[1]) + (entity[t] >= limits[0])
        for h, r, t in triples
    ]
    mix = triple_mix(graph, percent)
    assert (mix.entity_threshold, mix.relation_threshold) == pytest.approx(limits)
    counts = [mix.all_unpopular, mix.mixed, mix.all_popular]
    assert counts == [kinds.count(0), kinds.count(1) + kinds.count(2), kinds.count(3)]
    assert mix.triples == len(triples)
    assert mix.popular_entities == sum(count >= limits[0] for count in entity)
    assert mix.popular_relations == sum(count >= limits[1] for count in relation)
    assert sum(row[2] for row in mix.table().rows) == pytest.approx(100)


@pytest.mark.data
def test_table_1_of_wn18(shared_data: Path) -> None:
    graph = wn18(shared_data)
    mix = triple_mix(graph)
    assert (mix.all_popular, mix.all_unpopular, mix.mixed) == (7_612, 26_691, 117_139)
    # "We tried different thresholds (e.g., 20 % and 25 %) and the same phenomenon persists."
    for percent in (75, 80):
        assert triple_mix(graph, percent).mixed > mix.triples / 2


@given(graphs(), st.floats(0.5, 100))
def test_figure_1(graph: kgtrec.Graph, percent: float) -> None:
    triples = listed(graph)
    ends = [(h, t) for h, _, t in triples]
    for frequencies, parts, size in (
        (entity_frequencies(graph), ends, N_ENTITIES),
        (relation_frequencies(graph), [(r,) for _, r, _ in triples], N_RELATIONS),
    ):
        count = {x: sum(each.count(x) for each in parts) for x in range(size)}
        order = sorted(count, key=lambda x: (-count[x], x))
        assert frequencies.ids.tolist() == order
        assert frequencies.counts.tolist() == [count[x] for x in order]
        items, share = frequencies.top(percent)
        assert items == math.ceil(size * percent / 100)
        top = set(order[:items])
        assert share == sum(bool(top & set(part)) for part in parts) / len(triples)
        assert frequencies.top(100) == (size, 1.0)


def test_figure_1_as_a_table() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1], [0, 0, 2], [0, 1, 3], [3, 1, 4]])
    table = entity_frequencies(graph).table([20, 40])
    assert table.rows == [("20 %", 1, 3, 75.0), ("40 %", 2, 2, 100.0)]
    # 0.1 % of 1,000 items is one, although 0.1 is no binary number.
    chain = kgtrec.Graph.from_arrays(train=[[i, 0, i + 1] for i in range(999)])
    assert entity_frequencies(chain).top(0.1)[0] == 1


def pearson(x: list[float], y: list[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    scale = sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)
    return top / math.sqrt(scale) if scale > 1e-12 else math.nan


def mean_places(x: list[float]) -> list[float]:
    return [sum(b < a for b in x) + (sum(b == a for b in x) + 1) / 2 for a in x]


@given(graphs())
def test_correlations(graph: kgtrec.Graph) -> None:
    triples = listed(graph)
    entity = roles(triples)
    relation = [float(uses(triples)[r]) for _, r, _ in triples]
    correlations = popularity_correlations(graph)
    for place, value, ranked in (
        (0, correlations.subject_relation, correlations.subject_relation_rank),
        (2, correlations.object_relation, correlations.object_relation_rank),
    ):
        ends = [float(entity[triple[place]]) for triple in triples]
        assert value == pytest.approx(pearson(ends, relation), abs=1e-9, nan_ok=True)
        due = pearson(mean_places(ends), mean_places(relation))
        assert ranked == pytest.approx(due, abs=1e-9, nan_ok=True)


PUBLISHED = {"one_to_one": "1-1", "one_to_many": "1-N", "many_to_one": "N-1", "many_to_many": "N-N"}


@given(graphs(), st.sampled_from(["train", "all", "train,valid"]), st.sampled_from([1.5, 1.2, 3]))
def test_by_hand(graph: kgtrec.Graph, splits: str, threshold: float) -> None:
    categories = relation_categories(graph, splits, threshold)
    # A triple in several splits is one fact.
    triples = set(listed(graph, *(() if splits == "all" else splits.split(","))))
    due = [
        category([(h, t) for h, q, t in triples if q == r], threshold) for r in range(N_RELATIONS)
    ]
    assert [categories[r] for r in range(N_RELATIONS)] == due
    for name in (*CATEGORIES, UNSEEN):
        assert categories.members(name).tolist() == [r for r, own in enumerate(due) if own == name]
    table = categories.table(graph).to_dict()
    for name, row in table.items():
        assert row["relations"] == due.count(name)
        for split in graph.splits:
            assert row[split] == sum(due[r] == name for _, r, _ in listed(graph, split))


def test_one_and_a_half_is_many_and_nothing_is_unseen() -> None:
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 2], [0, 0, 3], [1, 0, 4]], test=[[0, 1, 1]])
    categories = relation_categories(graph)
    assert categories.listing(graph).rows[0] == ("0", "1-N", 1.5, 1.0)
    assert (categories[1], math.isnan(categories.tails_per_head[1])) == (UNSEEN, True)
    assert UNSEEN in categories.table(graph).to_dict()
    assert UNSEEN not in relation_categories(graph, "all").table(graph).to_dict()


@pytest.mark.data
def test_the_published_lists(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    categories = relation_categories(graph)
    lists = shared_data / "kgc-sparsity" / "data" / "FB-Test-O" / "type_information"
    seen = 0
    for name, kind in PUBLISHED.items():
        labels = {line.strip() for line in (lists / f"{name}.txt").read_text().splitlines()}
        assert {graph.relations[r] for r in categories.members(kind).tolist()} == labels
        seen += len(labels)
    assert seen == 237


def mirrors_of(known: Triples, enough: float, fewest: int) -> dict[tuple[int, int, bool], float]:
    """(relation, other, turned) -> share, without triples from an entity to itself."""
    pairs = {r: {(h, t) for h, q, t in known if q == r and h != t} for r in range(N_RELATIONS)}
    shares = {}
    for relation, own in pairs.items():
        for other, theirs in pairs.items():
            for turned in (False, True):
                if len(own) < fewest or (relation == other and not turned):
                    continue
                expected = {(t, h) for h, t in own} if turned else own
                share = len(expected & theirs) / len(own)
                if share >= enough:
                    shares[relation, other, turned] = share
    return shares


@given(graphs(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 4))
def test_by_sets(graph: kgtrec.Graph, enough: float, fewest: int) -> None:
    known, evaluated = listed(graph, "train", "valid"), listed(graph, "test")
    leaks = find_leaks(graph, "test", "train,valid", enough, fewest)
    # A triple may be in both known splits: it is one fact.
    facts = set(known)
    linked = {(h, t): {r for a, r, b in facts if (a, b) == (h, t)} for h, _, t in facts}
    assert leaks.triples == len(evaluated)
    assert leaks.repeated == sum(triple in facts for triple in evaluated)
    assert leaks.same_pair == sum(bool(linked.get((h, t), set()) - {r}) for h, r, t in evaluated)
    assert leaks.turned_pair == sum((t, h) in linked for h, _, t in evaluated)
    due = mirrors_of(list(facts), enough, fewest)
    assert {(m.relation, m.other, m.turned): m.share for m in leaks.mirrors} == pytest.approx(due)
    rules = set(due) | {(other, relation, turned) for relation, other, turned in due}
    follows = [
        any((r, q, False) in rules for q in linked.get((h, t), ()))
        or any((r, q, True) in rules for q in linked.get((t, h), ()))
        for h, r, t in evaluated
    ]
    assert leaks.mirrored == sum(follows)
    mutual = {rule for rule in due if (rule[1], rule[0], rule[2]) in due}
    reverses = {relation for relation, _, turned in mutual if turned}
    copies = {relation for relation, _, turned in mutual if not turned} - reverses
    assert leaks.of_reverses == sum(r in reverses for _, r, _ in evaluated)
    assert leaks.of_duplicates == sum(r in copies for _, r, _ in evaluated)


def test_kinds_and_tables() -> None:
    pairs = [(i, i + 10) for i in range(10)]
    train = [(h, 0, t) for h, t in pairs] + [(t, 1, h) for h, t in pairs]
    train += [(h, 2, t) for h, t in pairs[:5]] + [(t, 2, h) for h, t in pairs[:5]]
    graph = kgtrec.Graph.from_arrays(
        train=train, test=[[0, 3, 1]], relations=["parent", "child", "near", "none"]
    )
    leaks = find_leaks(graph, fewest=10)
    kinds = {(m.relation, m.other): m.kind for m in leaks.mirrors}
    assert kinds == {(0, 1): "inverse", (1, 0): "inverse", (2, 2): "symmetric"}
    table = leaks.mirror_table(graph).to_dict()
    assert table["parent"]["child"]["inverse"] == {"triples": 10, "percent": 100.0}
    assert find_leaks(graph, fewest=11).mirrors == ()


@pytest.mark.slow
@pytest.mark.data
def test_the_benchmarks(shared_data: Path) -> None:
    """Reversed triples answer WN18 (Dettmers et al. 2018: 94 %); FB15k-237 was cleaned of all pairs
    that train links."""
    leaky = find_leaks(wn18(shared_data))
    assert round(leaky.turned_pair / leaky.triples, 2) == 0.94
    assert leaky.mirrored / leaky.triples > 0.93
    clean = find_leaks(kgtrec.read_graph(shared_data / "fb15k-237"))
    assert (clean.repeated, clean.same_pair, clean.turned_pair, clean.mirrored) == (0, 0, 0, 0)
    # WN18RR still has its symmetric relations.
    half = find_leaks(kgtrec.read_graph(shared_data / "wn18rr"))
    assert {m.kind for m in half.mirrors} == {"symmetric"}
    assert half.mirrored / half.triples == pytest.approx(0.336, abs=0.001)


def slow_fit(counts: list[int], grid: list[float]) -> tuple[float, int, float]:
    """The least distance over all starts; exponents on a grid, and sums in place of zeta."""
    best = (math.inf, 0.0, 0)
    for least in sorted(set(counts))[:-1]:
        tail = sorted(count for count in counts if count >= least)
        if len(tail) < 10:
            break
        logs = sum(math.log(count) for count in tail)
        scored = []
        for exponent in grid:
            # Terms up to n, and the integral of the others (Euler and Maclaurin).
            n = 3000
            whole = sum(x**-exponent for x in range(least, n)) + n**-exponent / 2
            whole += n ** (1 - exponent) / (exponent - 1) + exponent * n ** (-exponent - 1) / 12
            scored.append((len(tail) * math.log(whole) + exponent * logs, exponent, whole))
        _, exponent, whole = min(scored)
        distance = upto = 0.0
        for x in range(least, tail[-1] + 1):
            upto += x**-exponent / whole
            if x in tail:
                share = sum(count <= x for count in tail) / len(tail)
                distance = max(distance, abs(share - upto))
        best = min(best, (distance, exponent, least))
    return best[1], best[2], best[0]


@pytest.mark.parametrize("seed", range(3))
def test_tails_are_those_of_a_slow_search(seed: int) -> None:
    counts = np.random.default_rng(seed).zipf(2.2, 40).clip(max=60)
    fit = fit_tail(np.append(counts, [0, 0]))
    grid = [
        fit.exponent + 0.005 * step for step in range(-60, 61) if fit.exponent + 0.005 * step > 1.01
    ]
    exponent, least, distance = slow_fit(counts.tolist(), grid)
    assert (fit.least, fit.items) == (least, (counts >= least).sum())
    assert fit.exponent == pytest.approx(exponent, abs=0.006)
    assert fit.distance == pytest.approx(distance, abs=0.003)


def test_tail_indices_of_known_power_laws() -> None:
    for exponent in (1.8, 2.5):
        counts = np.random.default_rng(1).zipf(exponent, 20_000)
        assert fit_tail(counts).exponent == pytest.approx(exponent, abs=0.06)
    with pytest.raises(InputError, match="a tail needs 10 items with two or more"):
        fit_tail(np.full(30, 4))
    with pytest.raises(InputError, match="9 items occur"):
        fit_tail(np.arange(10))


@given(graphs())
def test_histograms_count_every_item_that_occurs(graph: kgtrec.Graph) -> None:
    for frequencies in (entity_frequencies(graph), relation_frequencies(graph)):
        counts = [count for count in frequencies.counts.tolist() if count]
        ends, shares = frequencies.histogram()
        for low, high, share in zip(ends[:-1], ends[1:], shares, strict=True):
            number = sum(low <= count < high for count in counts)
            assert share * (high - low) * max(len(counts), 1) == pytest.approx(number)
        assert sum(shares * np.diff(ends)) == pytest.approx(1.0 if counts else 0.0)
