"""Family trees: every fact against first principles; which facts are hidden, and how."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import assert_refused, refusals

from kgtrec.errors import UsageError
from kgtrec.study.openworld.family_tree import (
    RELATIONS,
    RULES,
    family_tree,
    random_removal,
    ranked_removal,
)


def kinship(tree):
    """Every relation as a set of pairs, from births and marriages alone."""
    people = range(len(tree.family))
    parents = [{int(p) for p in (tree.mother[x], tree.father[x]) if p >= 0} for x in people]
    children = [set() for _ in people]
    for child in people:
        for parent in parents[child]:
            children[parent].add(child)

    def siblings(x):
        return {y for p in parents[x] for y in children[p]} - {x}

    def cousins(x):
        return {y for p in parents[x] for u in siblings(p) for y in children[u]} - {x}

    facts = {name: set() for name in RELATIONS}

    def state(x, y, general, female, male):
        if general:
            facts[general].add((x, y))
        facts[female if tree.female[x] else male].add((x, y))

    for x in people:
        if tree.spouse[x] >= 0:
            state(x, int(tree.spouse[x]), None, "wifeOf", "husbandOf")
        for child in children[x]:
            state(x, child, "parentOf", "motherOf", "fatherOf")
            for grandchild in children[child]:
                state(x, grandchild, None, "grandmotherOf", "grandfatherOf")
        for parent in parents[x]:
            state(x, parent, "childOf", "daughterOf", "sonOf")
            for grandparent in parents[parent]:
                state(x, grandparent, "grandchildOf", "granddaughterOf", "grandsonOf")
            for aunt_or_uncle in siblings(parent):
                state(x, aunt_or_uncle, None, "nieceOf", "nephewOf")
        for sibling in siblings(x):
            state(x, sibling, "siblingOf", "sisterOf", "brotherOf")
            for niece_or_nephew in children[sibling]:
                state(x, niece_or_nephew, None, "auntOf", "uncleOf")
        for cousin in cousins(x):
            state(x, cousin, "cousinOf", "girlCousinOf", "boyCousinOf")
    return facts


@pytest.fixture(scope="module")
def tree():
    return family_tree()


def test_every_fact_follows_from_first_principles_and_none_is_left_out(tree):
    expected = kinship(tree)
    for number, name in enumerate(RELATIONS):
        rows = tree.facts[tree.facts[:, 1] == number]
        pairs = {(int(head), int(tail)) for head, _, tail in rows}
        assert len(pairs) == len(rows), f"{name} has repeated facts"
        assert pairs == expected[name], name


def test_it_has_the_size_of_the_papers_graph(tree):
    assert len(RELATIONS) == 23
    assert len(tree.family) == 6000  # the paper's has 6,004
    assert len(tree.facts) == pytest.approx(192_532, rel=0.03)
    sizes = [len(family_tree(seed=seed).facts) for seed in range(1, 6)]
    assert np.mean(sizes) == pytest.approx(192_532, rel=0.05)
    assert (np.bincount(tree.facts[:, 1], minlength=23) > 0).all()


def test_rules_define_every_relation_but_the_one_that_is_drawn():
    assert {rule.head for rule in RULES} == set(RELATIONS) - {"parentOf"}


def test_families_are_sound(tree):
    people = np.arange(len(tree.family))
    born = tree.mother >= 0
    assert (born == (tree.father >= 0)).all()
    assert tree.female[tree.mother[born]].all()
    assert not tree.female[tree.father[born]].any()
    for parent in (tree.mother, tree.father):
        assert (tree.layer[parent[born]] == tree.layer[born] - 1).all()
        assert (tree.family[parent[born]] == tree.family[born]).all()
    assert (tree.spouse[tree.mother[born]] == tree.father[born]).all()
    married = tree.spouse >= 0
    assert (tree.spouse[tree.spouse[married]] == people[married]).all()
    assert (tree.female[tree.spouse[married]] != tree.female[married]).all()
    assert tree.layer.min() == 0
    assert tree.layer.max() == 3
    assert np.bincount(tree.mother[born]).max() <= 20
    assert (np.bincount(tree.family) == 300).all()
    heads, tails = tree.facts[:, 0], tree.facts[:, 2]
    assert (tree.family[heads] == tree.family[tails]).all()
    assert (heads != tails).all()


def test_nobody_is_their_own_ancestor_or_marries_a_sibling(tree):
    siblings = {tuple(row) for row in tree.facts[tree.facts[:, 1] == 3][:, [0, 2]].tolist()}
    couples = [(x, int(y)) for x, y in enumerate(tree.spouse) if y >= 0]
    assert not siblings.intersection(couples)


def test_the_same_seed_gives_the_same_graph():
    one, same, other = (family_tree(2, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.facts, same.facts)
    assert not np.array_equal(one.facts, other.facts)
    assert repr(one).startswith("FamilyTree\n  600 people in 2 families\n  23 relations, ")


def test_its_graph_has_readable_labels(tree):
    graph = tree.graph(tree.facts[:100], tree.facts[100:200])
    assert graph.n_entities == 6000
    assert list(graph.relations) == list(RELATIONS)
    assert graph.entities[0] == "f00p000"
    assert graph.entities[5999] == "f19p299"


# -- Hidden facts ----------------------------------------------------------------------------------


def as_set(*parts):
    return {tuple(row) for part in parts for row in part.tolist()}


@pytest.fixture(scope="module")
def world():
    """A small tree; a quarter of its facts is not recorded."""
    return random_removal(family_tree(4, people=120, seed=3).facts, 0.75, seed=2)


def test_random_removal_takes_the_shares_of_the_appendix(world):
    facts = family_tree(4, people=120, seed=3).facts
    total = len(facts)
    for part, share in ((world.train, 0.525), (world.test, 0.225), (world.missing, 0.25)):
        assert abs(len(part) - share * total) < 4 * (share * (1 - share) * total) ** 0.5
    assert world.sparsity == len(world.missing) / len(world.full_test)
    assert len(world.train) + len(world.test) + len(world.missing) == total
    assert as_set(world.train, world.test, world.missing) == as_set(facts)
    assert np.array_equal(world.test, random_removal(facts, 0.75, seed=2).test)
    assert not np.array_equal(world.test, random_removal(facts, 0.75, seed=3).test)
    assert len(random_removal(facts, 1.0).missing) == 0


def test_ranked_removal_hides_the_worst_of_each_question_and_never_all(world):
    facts = world.full_test
    rank = np.random.default_rng(3).integers(1, 50, len(facts))
    removed = ranked_removal(world, rank, 0.5, seed=4)
    of = {tuple(fact): int(r) for fact, r in zip(facts.tolist(), rank, strict=True)}
    questions = {}
    for part, hidden in ((removed.test, False), (removed.missing, True)):
        for row in part.tolist():
            questions.setdefault((row[0], row[1]), []).append((of[tuple(row)], hidden))
    for answers in questions.values():
        shown = [r for r, hidden in answers if not hidden]
        gone = [r for r, hidden in answers if hidden]
        assert shown
        assert not gone or max(shown) <= min(gone)
    assert as_set(removed.full_test) == as_set(facts)
    several = [hidden for a in questions.values() if len(a) >= 10 for _, hidden in a]
    assert np.mean(several) == pytest.approx(0.5, abs=4 * 0.5 / len(several) ** 0.5)


FACTS = family_tree(1, people=40).facts
SMALL = random_removal(FACTS, 0.75)
TENTH = np.arange(len(SMALL.full_test)) % 10 == 0


@refusals(
    ("families", lambda: family_tree(families=0), UsageError, ("families=0",)),
    ("people", lambda: family_tree(people=1), UsageError, ("people=1; give 2",)),
    ("depth", lambda: family_tree(depth=0), UsageError, ("depth=0",)),
    ("width", lambda: family_tree(width=0), UsageError, ("width=0",)),
    ("too many", lambda: family_tree(1, people=50, depth=1, width=1), UsageError,
     ("give fewer people",)),
    ("sparsity", lambda: ranked_removal(SMALL, TENTH, 1), UsageError, ("sparsity=1",)),
    ("ranks", lambda: ranked_removal(SMALL, TENTH[1:], 0.5), UsageError, ("give one value",)),
    *((f"{density} {share}", lambda d=density, s=share: random_removal(FACTS, d, s), UsageError,
       ("out of range",)) for density, share in ((0, 0.7), (1.1, 0.7), (0.5, 1.0), (0.5, -0.1))),
)  # fmt: skip
def test_refusals(call, error, words):
    assert_refused(call, error, words)
