"""A closed world: family trees in which every true fact is known.

Births and marriages are drawn at random; everything else follows from `RULES`, so whether a fact is
true is never in doubt. The open-world paper (Yang et al. 2022, appendix A.3) evaluates on such a
graph: 20 families of 300 people, 23 relations, about 6,000 entities and 190,000 facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import UsageError
from kgtrec.questions.api import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "RELATIONS",
    "RULES",
    "FamilyTree",
    "Rule",
    "family_tree",
]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Triples = NDArray[np.int32]

RELATIONS = (
    "parentOf", "sisterOf", "brotherOf", "siblingOf", "motherOf", "fatherOf", "wifeOf", "husbandOf",
    "grandmotherOf", "grandfatherOf", "auntOf", "uncleOf", "girlCousinOf", "boyCousinOf",
    "cousinOf", "daughterOf", "sonOf", "childOf", "granddaughterOf", "grandsonOf", "grandchildOf",
    "nieceOf", "nephewOf",
)  # fmt: skip
"""The 23 relations, in the order in which appendix A.3 lists them: their ids."""


class Rule(NamedTuple):
    """``head(x, y)`` holds if a chain of relations leads from x to y, and x is of that gender.

    Nobody is related to themselves: where the chain leads back to x, nothing follows.
    """

    head: str
    chain: tuple[str, ...]
    gender: str = "any"


# In the order of evaluation. "spouseOf" and "parentOf" are what the generator draws.
RULES = (
    Rule("wifeOf", ("spouseOf",), "female"),
    Rule("husbandOf", ("spouseOf",), "male"),
    Rule("motherOf", ("parentOf",), "female"),
    Rule("fatherOf", ("parentOf",), "male"),
    Rule("childOf", ("inverse parentOf",)),
    Rule("daughterOf", ("childOf",), "female"),
    Rule("sonOf", ("childOf",), "male"),
    Rule("siblingOf", ("childOf", "parentOf")),
    Rule("sisterOf", ("siblingOf",), "female"),
    Rule("brotherOf", ("siblingOf",), "male"),
    Rule("grandmotherOf", ("motherOf", "parentOf")),
    Rule("grandfatherOf", ("fatherOf", "parentOf")),
    Rule("grandchildOf", ("childOf", "childOf")),
    Rule("granddaughterOf", ("grandchildOf",), "female"),
    Rule("grandsonOf", ("grandchildOf",), "male"),
    Rule("auntOf", ("sisterOf", "parentOf")),
    Rule("uncleOf", ("brotherOf", "parentOf")),
    Rule("nieceOf", ("childOf", "siblingOf"), "female"),
    Rule("nephewOf", ("childOf", "siblingOf"), "male"),
    Rule("cousinOf", ("childOf", "siblingOf", "parentOf")),
    Rule("girlCousinOf", ("cousinOf",), "female"),
    Rule("boyCousinOf", ("cousinOf",), "male"),
)

ANCESTRY = 0.6
"""Chance that somebody who married in gets parents, rather than a child, when chosen to grow the
family. It sets how many lines a family joins, and so how many facts there are."""


@dataclass(frozen=True, eq=False)
class FamilyTree(ShownInLines):
    """People, their births and marriages, and every fact that follows.

    Attributes
    ----------
    family, layer : ndarray of int64, shape (people,)
        Family of each person, and generation: 0 for the founding couple.
    female : ndarray of bool, shape (people,)
    mother, father : ndarray of int64, shape (people,)
        Ids of the parents; -1 for the founders and for those who married into the family.
    spouse : ndarray of int64, shape (people,)
        Id of the husband or wife, -1 for nobody.
    facts : ndarray of int32, shape (n, 3)
        Every true triple (head, relation, tail), ascending by relation, head, tail. Relation ids
        are positions in `RELATIONS`.
    """

    family: Ints
    layer: Ints
    female: Flags
    mother: Ints
    father: Ints
    spouse: Ints
    facts: Triples

    @property
    def labels(self) -> list[str]:
        """Entity labels in id order, such as ``f03p127``."""
        size = np.bincount(self.family)
        number = np.arange(len(self.family)) - np.repeat(np.cumsum(size) - size, size)
        pairs = zip(self.family.tolist(), number.tolist(), strict=True)
        return [f"f{family:02d}p{person:03d}" for family, person in pairs]

    def graph(self, train: Triples, test: Triples) -> Graph:
        """A `Graph` of some of the facts, with readable labels."""
        return Graph.from_arrays(
            train=train, test=test, entities=self.labels, relations=list(RELATIONS)
        )

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.family):,} people in {self.family.max() + 1:,} families",
            f"{len(RELATIONS)} relations, {len(self.facts):,} facts",
        )


def family_tree(
    families: int = 20, people: int = 300, depth: int = 3, width: int = 20, seed: int = 0
) -> FamilyTree:
    """Draw families and derive every fact about them (appendix A.3).

    A family starts with a couple. Then one of its people is chosen at random, over and over, until
    there are as many as asked for: who has married in may get parents, and so a line of their own;
    all others marry if need be and get a child.

    Parameters
    ----------
    families : int, default 20
    people : int, default 300
        People of each family, spouses included.
    depth : int, default 3
        Generations below the founders.
    width : int, default 20
        Most children that a couple can have.
    seed : int, default 0
        The same seed gives the same facts.

    Returns
    -------
    FamilyTree

    Raises
    ------
    UsageError
        A number below 1 (2 people are the least), or more people than such a tree can hold.
    """
    sizes = {"families": families, "people": people - 1, "depth": depth, "width": width}
    for name, value in sizes.items():
        if value < 1:
            shown = people if name == "people" else value
            raise UsageError(f"{name}={shown}; give {'2' if name == 'people' else '1'} or more")
    rng = np.random.default_rng(seed)
    grown = [_grow(rng, people, depth, width) for _ in range(families)]
    start = np.arange(families)[:, None] * people
    layer, female, mother, father, spouse = (
        np.array([getattr(one, name) for one in grown]) for name in _Family.COLUMNS
    )
    mother, father, spouse = (
        np.where(ids < 0, -1, ids + start) for ids in (mother, father, spouse)
    )
    layer, female, mother, father, spouse = (
        column.ravel() for column in (layer, female, mother, father, spouse)
    )
    facts = _derive(female, mother, father, spouse)
    family = np.repeat(np.arange(families), people)
    return FamilyTree(family, layer, female, mother, father, spouse, facts)


class _Family:
    """One family while it grows; ids count from 0 inside it."""

    COLUMNS = ("layer", "female", "mother", "father", "spouse")

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.layer: list[int] = []
        self.female: list[bool] = []
        self.mother: list[int] = []
        self.father: list[int] = []
        self.spouse: list[int] = []
        self.children: list[int] = []

    def add(self, layer: int, female: bool, mother: int = -1, father: int = -1) -> int:
        """A new person's id."""
        for name, value in zip(self.COLUMNS, (layer, female, mother, father, -1), strict=True):
            getattr(self, name).append(value)
        self.children.append(0)
        return len(self.layer) - 1

    def marry(self, person: int) -> None:
        """A spouse from outside, of the other sex."""
        other = self.add(self.layer[person], not self.female[person])
        self.spouse[person], self.spouse[other] = other, person

    def bear(self, person: int) -> None:
        """A child of a married person."""
        pair = (person, self.spouse[person])
        mother, father = pair if self.female[person] else pair[::-1]
        for parent in pair:
            self.children[parent] += 1
        self.add(self.layer[person] + 1, bool(self.rng.random() < 0.5), mother, father)

    def find_parents(self, person: int) -> None:
        """A couple whose child the person is."""
        mother = self.add(self.layer[person] - 1, True)
        self.marry(mother)
        self.mother[person], self.father[person] = mother, self.spouse[mother]
        for parent in (mother, self.spouse[mother]):
            self.children[parent] = 1


def _grow(rng: np.random.Generator, people: int, depth: int, width: int) -> _Family:
    family = _Family(rng)
    family.add(0, bool(rng.random() < 0.5))
    family.marry(0)
    idle = 0
    while len(family.layer) < people:
        idle += 1
        if idle > 100 * people:
            raise UsageError(
                f"people={people}, but a family with depth={depth} and width={width} ended at "
                f"{len(family.layer)}; give fewer people, or more depth or width"
            )
        person, missing = int(rng.integers(len(family.layer))), people - len(family.layer)
        rooted = family.mother[person] >= 0 or family.layer[person] == 0
        if not rooted and rng.random() < ANCESTRY:
            if missing >= 2:
                family.find_parents(person)
                idle = 0
        elif family.spouse[person] < 0:
            if family.layer[person] < depth:
                family.marry(person)
                idle = 0
        elif family.layer[person] < depth and family.children[person] < width:
            family.bear(person)
            idle = 0
    return family


def _derive(female: Flags, mother: Ints, father: Ints, spouse: Ints) -> Triples:
    """All facts of births and marriages, by `RULES`: (n, 3), ascending by relation, head, tail."""
    from scipy.sparse import csr_matrix

    count = len(female)
    everybody = np.arange(count)

    def pairs(heads: Ints, tails: Ints) -> csr_matrix:
        cells = csr_matrix((np.ones(len(heads), dtype=np.int32), (heads, tails)), (count, count))
        cells.data[:] = 1
        return cells

    born, married = mother >= 0, spouse >= 0
    parents, children = np.concatenate([mother, father]), np.tile(everybody, 2)
    known = {
        "parentOf": pairs(parents[np.tile(born, 2)], children[np.tile(born, 2)]),
        "spouseOf": pairs(everybody[married], spouse[married]),
    }
    known["inverse parentOf"] = known["parentOf"].T.tocsr()
    genders = {"any": np.ones(count, dtype=bool), "female": female, "male": ~female}
    for rule in RULES:
        known[rule.head] = _follow(rule, known, genders[rule.gender])
    parts = []
    for number, name in enumerate(RELATIONS):
        cells = known[name].tocoo()
        order = np.lexsort((cells.col, cells.row))
        relation = np.full(len(order), number)
        parts.append(np.column_stack([cells.row[order], relation, cells.col[order]]))
    return np.concatenate(parts).astype(np.int32)


def _follow(rule: Rule, known: dict[str, csr_matrix], heads: Flags) -> csr_matrix:
    """Pairs that a rule makes true: products of its chain's adjacency matrices."""
    reached: Any = known[rule.chain[0]]
    for name in rule.chain[1:]:
        reached = reached @ known[name]
        reached.data[:] = 1  # that a chain exists counts, not how many
    cells = reached.tocoo()
    keep = heads[cells.row] & (cells.row != cells.col)
    rows, columns = cells.row[keep], cells.col[keep]
    data = np.ones(len(rows), dtype=np.int32)
    return type(reached)((data, (rows, columns)), shape=reached.shape)
