"""The two experiments of the open-world paper: a closed world, and a simulation without models.

The closed world consists of family trees, in which every true fact is known. Births and marriages
are random; all other facts follow from `RULES`. Then facts are hidden from the test set: at random,
or those that a model ranks worst. The open-world paper (Yang et al. 2022, appendix A.3) evaluates
on such a graph: 20 families of 300 people, 23 relations, about 6,000 entities and 190,000 facts.

The vectorised simulation (appendix A.2) is for comparison with theory. Missing and predicted
answers are drawn at random. The answers of a question are drawn in their random order, so running
sums give every filtered rank: earlier missing answers of the same class rank above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table
from kgtrec.errors import UsageError, choose
from kgtrec.questions.api import Graph
from kgtrec.study.openworld.formulas import (
    ENTITIES,
    approximation,
    check,
    check_entities,
    check_share,
    check_strength,
    expectation,
    split_strength,
    sum_of_gains,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


Triples = NDArray[np.int32]

RELATIONS = (
    "parentOf",
    "sisterOf",
    "brotherOf",
    "siblingOf",
    "motherOf",
    "fatherOf",
    "wifeOf",
    "husbandOf",
    "grandmotherOf",
    "grandfatherOf",
    "auntOf",
    "uncleOf",
    "girlCousinOf",
    "boyCousinOf",
    "cousinOf",
    "daughterOf",
    "sonOf",
    "childOf",
    "granddaughterOf",
    "grandsonOf",
    "grandchildOf",
    "nieceOf",
    "nephewOf",
)
"""The 23 relations in the order of appendix A.3; the index of a relation is its id."""


class Rule(NamedTuple):
    """A rule: ``head(x, y)`` is true if a chain of relations leads from x to y.

    In addition, x must have the gender. Nobody is related to themselves, so a chain that leads back
    to x implies nothing.
    """

    head: str
    chain: tuple[str, ...]
    gender: str = "any"


# In the order of evaluation. "spouseOf" and "parentOf" come from the generator.
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
"""Probability that a chosen person who married into the family gets parents, and not a child. It
determines how many lines of ancestors a family joins, and so the number of facts."""


@dataclass(frozen=True, eq=False)
class FamilyTree(ShownInLines):
    """People, their births and marriages, and all facts that follow from these.

    - family, layer, int64 (people,): Family of each person, and generation: 0 for the founding
      couple.
    - female, bool (people,): True for women.
    - mother, father, int64 (people,): Ids of the parents; -1 for the founders and for those who
      married into the family.
    - spouse, int64 (people,): Id of the husband or wife, -1 for nobody.
    - facts, int32 (n, 3): Every true triple (head, relation, tail), ascending by relation, head,
      tail. Relation ids are positions in `RELATIONS`.
    """

    family: Int64
    layer: Int64
    female: Bools
    mother: Int64
    father: Int64
    spouse: Int64
    facts: Triples

    @property
    def labels(self) -> list[str]:
        """Entity labels in id order, such as ``f03p127``."""
        size = np.bincount(self.family)
        number = np.arange(len(self.family)) - np.repeat(np.cumsum(size) - size, size)
        pairs = zip(self.family.tolist(), number.tolist(), strict=True)
        return [f"f{family:02d}p{person:03d}" for family, person in pairs]

    def graph(self, train: Triples, test: Triples) -> Graph:
        """Return a `Graph` of some of the facts, with readable labels."""
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

    A family starts with a couple. Until it has enough people, one of them is chosen at random.
    Somebody who married into the family may get parents, which adds a line of ancestors. All others
    marry if they are single, or get a child.

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

    Raises
    ------
    UsageError
        A number below 1 (2 people are the least), or more people than such a tree can hold.
    """
    sizes = {"families": families, "people": people, "depth": depth, "width": width}
    for name, value in sizes.items():
        require_type(name, value, Real, "a whole number")
        least = 2 if name == "people" else 1
        check(name, value, value >= least, f"{least} or more")
    rng = random_generator(seed)
    grown = [_grow(rng, people, depth, width) for _ in range(families)]
    start = np.arange(families)[:, None] * people
    layer, female, *ids = (
        np.array([[getattr(person, name) for person in family] for family in grown])
        for name in ("layer", "female", "mother", "father", "spouse")
    )
    mother, father, spouse = (np.where(part < 0, -1, part + start).ravel() for part in ids)
    layer, female = layer.ravel(), female.ravel()
    facts = _derive(female, mother, father, spouse)
    family = np.repeat(np.arange(families), people)
    return FamilyTree(family, layer, female, mother, father, spouse, facts)


@dataclass
class _Person:
    """A person of a family that grows; ids count from 0 inside the family, and -1 is nobody."""

    layer: int
    female: bool
    mother: int = -1
    father: int = -1
    spouse: int = -1
    children: int = 0


def _grow(rng: np.random.Generator, people: int, depth: int, width: int) -> list[_Person]:
    """Draw a family; UsageError if it cannot have so many people."""
    family = [_Person(0, bool(rng.random() < 0.5))]
    _marry(family, 0)
    idle = 0
    while len(family) < people:
        idle += 1
        if idle > 100 * people:
            raise UsageError(
                f"{argument('people', people)}, but a family with {argument('depth', depth)} and "
                f"{argument('width', width)} stops growing "
                f"at {len(family)} people; give fewer people, or larger values of these"
            )
        chosen = int(rng.integers(len(family)))
        member, before = family[chosen], len(family)
        if member.mother < 0 and member.layer != 0 and rng.random() < ANCESTRY:
            if people - before >= 2:
                _find_parents(family, chosen)
        elif member.spouse < 0:
            if member.layer < depth:
                _marry(family, chosen)
        elif member.layer < depth and member.children < width:
            _bear(family, chosen, bool(rng.random() < 0.5))
        if len(family) > before:
            idle = 0
    return family


def _marry(family: list[_Person], person: int) -> None:
    """Add a spouse of the other sex from outside the family."""
    partner = family[person]
    partner.spouse = len(family)
    family.append(_Person(partner.layer, not partner.female, spouse=person))


def _bear(family: list[_Person], person: int, female: bool) -> None:
    """Add a child of a married person."""
    parent = family[person]
    mother, father = (person, parent.spouse) if parent.female else (parent.spouse, person)
    for number in (mother, father):
        family[number].children += 1
    family.append(_Person(parent.layer + 1, female, mother, father))


def _find_parents(family: list[_Person], person: int) -> None:
    """Add the parents of a person."""
    child, mother = family[person], len(family)
    family.append(_Person(child.layer - 1, True))
    _marry(family, mother)
    child.mother, child.father = mother, mother + 1
    for parent in (mother, mother + 1):
        family[parent].children = 1


def _derive(female: Bools, mother: Int64, father: Int64, spouse: Int64) -> Triples:
    """Derive all facts by `RULES` from births and marriages.

    Returns int32 (n, 3), ascending by relation, head and tail.
    """
    from scipy.sparse import csr_matrix

    count = len(female)
    everybody = np.arange(count)

    def pairs(heads: Int64, tails: Int64) -> csr_matrix:
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


def _follow(rule: Rule, known: dict[str, csr_matrix], heads: Bools) -> csr_matrix:
    """Return the matrix of pairs that a rule implies: the product of its chain's matrices."""
    reached: Any = known[rule.chain[0]]
    for name in rule.chain[1:]:
        reached = reached @ known[name]
        reached.data[:] = 1  # only the existence of a chain counts
    cells = reached.tocoo()
    keep = heads[cells.row] & (cells.row != cells.col)
    rows, columns = cells.row[keep], cells.col[keep]
    data = np.ones(len(rows), dtype=np.int32)
    return type(reached)((data, (rows, columns)), shape=reached.shape)


@dataclass(frozen=True, eq=False)
class OpenWorld(ShownInLines):
    """The facts of a closed world, of which some are missing.

    - train, test, missing, int32 (n, 3): Training facts, sparse test facts, and true facts that
      are not recorded. Every fact is in exactly one of them.
    """

    train: Triples
    test: Triples
    missing: Triples

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.train):,} training facts, {len(self.test):,} test facts",
            f"{len(self.missing):,} missing: sparsity {self.sparsity:.3f}",
        )

    @property
    def full_test(self) -> Triples:
        """All true facts that are not for training: sparse test facts, then missing ones."""
        return np.concatenate([self.test, self.missing])

    @property
    def sparsity(self) -> float:
        """Share of the full test facts that are missing."""
        return len(self.missing) / max(len(self.test) + len(self.missing), 1)


def random_removal(
    facts: Triples, density: float, train_share: float = 0.7, seed: int = 0
) -> OpenWorld:
    """Hide facts at random (appendix A.3).

    Each fact is independently missing with probability 1 - d, or a training fact with probability
    d eta. The rest are test facts.

    Parameters
    ----------
    facts : ndarray of int, shape (n, 3)
    density : float in (0, 1]
        Share d of all facts that are recorded.
    train_share : float in [0, 1), default 0.7
        Share eta of the recorded facts that go to training.
    seed : int, default 0

    Raises
    ------
    UsageError
        A share out of its range.
    """
    require_type("density", density, Real, "a number")
    check("density", density, 0 < density <= 1, "a number above 0 and up to 1")
    check_share("train_share", train_share)
    draw = random_generator(seed).random(len(facts))
    train, recorded = draw < density * train_share, draw < density
    return OpenWorld(facts[train], facts[recorded & ~train], facts[~recorded])


def ranked_removal(
    world: OpenWorld, rank: NDArray[Any], sparsity: float, seed: int = 0
) -> OpenWorld:
    """Hide the facts that a model ranks worst, question by question (section 6.2).

    A draw from Binomial(N, sparsity) decides how many of the N answers of a tail question are
    missing, but never all. These are the answers with the worst ranks; ties are in random order.

    Parameters
    ----------
    world : OpenWorld
    rank : ndarray, shape (len(world.full_test),)
        The model's rank of each fact of ``world.full_test`` in its tail question; lower is better.
    sparsity : float in [0, 1)
    seed : int, default 0

    Raises
    ------
    UsageError
        Ranks of another shape, or a sparsity out of its range.
    """
    require_type("world", world, OpenWorld, "an OpenWorld (study.random_removal)")
    facts = world.full_test
    rank = np.asarray(rank, np.float64)
    valid = f"one value for each of the {len(facts)} facts of world.full_test"
    check("shape of rank", rank.shape, rank.shape == (len(facts),), valid)
    check_share("sparsity", sparsity)
    rng = random_generator(seed)
    question = facts[:, 1].astype(np.int64) * (int(facts[:, 0].max(initial=0)) + 1) + facts[:, 0]
    _, index, count = np.unique(question, return_inverse=True, return_counts=True)
    hidden = np.minimum(rng.binomial(count, sparsity), count - 1)
    order = np.lexsort((rng.random(len(facts)), rank, index))
    rank_in_question = np.arange(len(facts)) - np.repeat(np.cumsum(count) - count, count)
    missing = np.empty(len(facts), dtype=bool)
    missing[order] = rank_in_question >= np.repeat(count - hidden, count)
    return OpenWorld(world.train, facts[~missing], facts[missing])


STRENGTHS = tuple(np.round(np.arange(0.30, 1.005, 0.01), 2).tolist())
BETAS = (0.2, 0.35, 0.5, 0.65)
N_ANSWERS = 43
REPEATS = 500
"""The grid of Figures 1 and 2: 71 strengths, 4 sparsities; 43 answers per question, which is 14505
x 1 % x 30 %; 500 questions per point."""

BLOCK = 1 << 22
"""Cells (questions x answers) that are drawn at a time, to limit memory."""


@dataclass(frozen=True, eq=False)
class Simulation(ShownAsTables):
    """Simulated values of metrics over a grid.

    - mean, std: Per metric, float64 (betas, strengths): mean and standard deviation over the
      questions with a test answer; NaN if the correlation is impossible.
    - tested, int64 (betas, strengths): Number of these questions.
    """

    strengths: tuple[float, ...]
    betas: tuple[float, ...]
    rho: float
    n_answers: int
    n_entities: int
    repeats: int
    mean: dict[str, Float64]
    std: dict[str, Float64]
    tested: Int64

    def table(self, metric: str | None = None) -> Table:
        """Return a table of simulated, exact and approximate values per sparsity and strength."""
        return simulation_table([self], next(iter(self.mean)) if metric is None else metric)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self.strengths):,} strengths, {len(self.betas):,} sparsities, "
            f"{self.repeats:,} questions each of {self.n_answers:,} answers",
            f"{', '.join(self.mean)}; correlation {self.rho:g}",
        )

    def error(self, metric: str) -> Float64:
        """Return the standard error of the mean, shape (betas, strengths).

        The shaded bands of the paper are twice this.
        """
        return self.std[metric] / np.sqrt(self.tested)

    def exact(self, metric: str, row: int) -> Float64:
        """Return the exact expectation at each strength of a sparsity; NaN if not simulated."""
        choose("metric", metric, self.mean, "was not simulated")
        done, values = np.isfinite(self.mean[metric][row]), np.full(len(self.strengths), np.nan)
        values[done] = expectation(
            np.array(self.strengths)[done],
            self.betas[row],
            self.n_answers,
            self.n_entities,
            metric,
            self.rho,
            kept=True,
        )
        return values


def simulate(
    strengths: Sequence[float] = STRENGTHS,
    betas: Sequence[float] = BETAS,
    n_answers: int = N_ANSWERS,
    rho: float = 0.0,
    metrics: Sequence[str] = ("mrr",),
    repeats: int = REPEATS,
    n_entities: int = ENTITIES,
    seed: int = 0,
) -> Simulation:
    """Simulate `repeats` questions for every strength and sparsity (Figures 1 and 2).

    Cells with an impossible correlation become NaN. UsageError if it is impossible in all cells.
    """
    check_entities(n_answers, n_entities)
    check("repeats", repeats, repeats >= 2, "2 or more, to measure a spread")
    for beta in betas:
        check_strength(strengths, beta)
    sums = {metric: sum_of_gains(metric, n_entities + 1) for metric in metrics}
    shape = len(betas), len(strengths)
    mean = {metric: np.full(shape, np.nan) for metric in metrics}
    std = {metric: np.full(shape, np.nan) for metric in metrics}
    tested = np.zeros(shape, np.int64)
    rng = random_generator(seed)
    last: UsageError | None = None
    for i, beta in enumerate(betas):
        for j, strength in enumerate(strengths):
            try:
                split_strength(strength, beta, rho)
            except UsageError as error:
                last = error
                continue
            draw = partial(draw_ranks, rng, strength, beta, rho, n_answers, n_entities)
            values = _simulate_questions(draw, repeats, max(BLOCK // n_answers, 1), sums)
            tested[i, j] = len(values[0])
            for metric, value in zip(metrics, values, strict=True):
                if len(value):
                    mean[metric][i, j], std[metric][i, j] = value.mean(), value.std()
    if last is not None and not tested.any():
        raise last
    return Simulation(
        tuple(strengths), tuple(betas), rho, n_answers, n_entities, repeats, mean, std, tested
    )


def draw_ranks(
    rng: np.random.Generator,
    strength: float,
    beta: float,
    rho: float,
    n_answers: int,
    n_entities: int,
    questions: int,
) -> tuple[Int64, Bools]:
    """Draw the answers of questions; return their filtered ranks, and True for missing answers.

    Both arrays have the shape (questions, n_answers).
    """
    l1, l2 = split_strength(strength, beta, rho)
    shape = questions, n_answers
    missing = rng.random(shape) < beta
    predicted = rng.random(shape) < np.where(missing, l1, l2)
    above = _count_before(missing & predicted)
    n_above = (missing & predicted).sum(axis=1, keepdims=True)
    gaps = rng.standard_exponential((questions, n_answers + 1))
    gaps /= gaps.sum(axis=1, keepdims=True)
    false = rng.multinomial(n_entities - n_answers, gaps)[:, :-1].cumsum(axis=1)
    below = n_above + _count_before(missing & ~predicted) + false
    return np.where(predicted, above, below) + 1, missing


def _count_before(flags: Bools) -> Int64:
    """Count the true flags before each position of a row."""
    return flags.cumsum(axis=1) - flags


def _simulate_questions(
    draw: Callable[[int], tuple[Int64, Bools]], repeats: int, block: int, sums: dict[str, Float64]
) -> list[Float64]:
    """Return the values of each metric, for all drawn questions with a test answer.

    `draw` draws a number of questions; `block` of them are drawn at a time.
    """
    parts: list[list[Float64]] = []
    for start in range(0, repeats, block):
        rank, missing = draw(min(block, repeats - start))
        has_answer = ~missing.all(axis=1)
        rank, recorded = rank[has_answer], ~missing[has_answer]
        gains = (np.where(recorded, total[rank] - total[rank - 1], 0.0) for total in sums.values())
        parts.append([gain.sum(axis=1) / recorded.sum(axis=1) for gain in gains])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def simulation_table(runs: Sequence[Simulation], metric: str = "mrr") -> Table:
    """Return a table of simulated, exact and approximate values of several simulations.

    It has one row per correlation, sparsity and strength.
    """
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        for index, beta in enumerate(run.betas):
            exact = run.exact(metric, index)
            close = np.full(len(exact), np.nan)
            positive = np.isfinite(exact) & (np.array(run.strengths) > 0)
            if metric == "mrr" and beta > 0:
                strengths = np.array(run.strengths)[positive]
                close[positive] = approximation(strengths, beta, run.n_answers, run.rho)
            columns = (
                run.tested[index],
                run.mean[metric][index],
                run.std[metric][index],
                run.error(metric)[index],
                exact,
                close,
            )
            cells = (column.tolist() for column in columns)
            rows += [(run.rho, beta, *row) for row in zip(run.strengths, *cells, strict=True)]
    heads = (
        "correlation:2, sparsity:4, strength:2, questions, mean:4, std:4, error:4, exact:4, "
        "approximation:4"
    )
    return Table.from_rows(heads, rows, names=3)
