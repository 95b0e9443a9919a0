"""Candidates drawn for every question, with exactly known inclusion probabilities.

The design is stratified. Every entity has a weight for the heads of a relation, and another for its
tails. Target probabilities are proportional to the weights, plus an even part so that none is 0,
and at most 1. Entities with about the same target form a stratum. Each question draws a fixed
number from each stratum, evenly and without replacement. So the inclusion probability of an entity
is the number drawn from its stratum, divided by the size of the stratum.

Poisson sampling and draws with replacement lack some advantages of this design: lists have the same
length, counts of a stratum stay integers, no entity is scored twice, and the exact hypergeometric
tails are known. The price, probabilities in steps of 4, costs little precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import QUESTIONS, random_generator, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import Csr, distinct, to_csr, to_keys
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import InputError, UsageError, choose, refuse_if
from kgtrec.questions.api import Questions
from kgtrec.questions.candidate_lists import CandidateLists
from kgtrec.questions.candidates import apply_lists
from kgtrec.questions.graph_terms import ASKS
from kgtrec.questions.terms import NAMES as SIDE_NAMES
from kgtrec.scores.files import load_matrix
from kgtrec.scores.mapped_files import reading
from kgtrec.study.semantics import FittingEntities, fitting_observed

Weights = Callable[[int, int], Float64]

NAMES = ("observed", "uniform", "frequency")

POWER = 0.75  # frequent entities are drawn more often, but less often than they are in train

_SIDES = ("heads", "tails")


def weights_of(by: Any, questions: Questions, file: str = "") -> tuple[Weights, str]:
    """Return the function from (side, relation) to the weight of every entity, and its description.

    ``file`` is the name of the file of an array.
    """
    name = fspath(by) if isinstance(by, (str, PathLike)) else None
    if name == "uniform":
        ones = np.ones(questions.n_entities)
        return (lambda side, relation: ones), "uniform"
    if name == "frequency":
        return _weigh_by_frequency(questions)
    if questions.sides == "qualifier":
        raise UsageError(
            "weights are for heads and tails, but these questions ask for values of qualifiers; "
            f"choose {argument('by', 'uniform')} or {argument('by', 'frequency')}"
        )
    if name == "observed":
        by = fitting_observed(questions.graph)
    if isinstance(by, FittingEntities):
        return _weigh_fitting(by, questions)
    if callable(by):
        return _check_weights(by, questions), "weights of a function"
    if name is not None:
        choose("by", name, NAMES, also="a .npy file")
    if hasattr(by, "__array__"):
        weights = _weigh_by_matrix(np.asarray(by), questions, file or "weights")
        return weights, f"weights of {file or 'an array'}"
    raise UsageError(
        f"by has the unknown type {type(by).__name__}; give one of {', '.join(NAMES)}, entities "
        "that fit (study.fitting_observed), an array, a .npy file, or a function"
    )


def _weigh_by_frequency(questions: Questions) -> tuple[Weights, str]:
    """Weigh entities by how often they are on that side of the relation in train."""
    graph = questions.graph
    if "train" not in graph.splits:
        raise UsageError(
            f"{argument('by', 'frequency')} counts the triples of train, but this graph has no "
            "split train; choose "
            f"{argument('by', 'uniform')} or give weights"
        )
    rows = questions.of_graph().aspects[0].facts("train")
    order = np.argsort(rows[:, 1], kind="stable")
    bounds = np.searchsorted(rows[order, 1], np.arange(graph.n_relations + 1))

    def weights(side: int, relation: int) -> Float64:
        rows_of_relation = order[bounds[relation] : bounds[relation + 1]]
        counts = np.bincount(rows[rows_of_relation, ASKS[side].answer], minlength=graph.n_entities)
        return counts.astype(np.float64) ** POWER

    return weights, f"frequency in train, to the power of {POWER}"


def _weigh_fitting(fitting: FittingEntities, questions: Questions) -> tuple[Weights, str]:
    """Give weight 1 to entities that fit the relation, and 0 to others."""
    n = questions.n_entities

    def weights(side: int, relation: int) -> Float64:
        start = (2 * relation + side) * n
        low, high = np.searchsorted(fitting.keys, (start, start + n))
        fits = np.zeros(n)
        fits[fitting.keys[low:high] - start] = 1.0
        return fits

    return weights, f"type: {fitting.source}"


def _weigh_by_matrix(array: npt.NDArray[Any], questions: Questions, name: str) -> Weights:
    """Return the weights of a matrix; InputError if its shape does not fit."""
    n_relations = questions.graph.n_relations
    shape = (2 * n_relations, questions.n_entities)
    if array.shape != shape:
        raise InputError(
            f"{name}: shape {array.shape}; expected {shape}: one row per relation for its heads, "
            "then one row per relation for its tails, and one column per entity"
        )
    return _check_weights(
        lambda side, relation: array[side * n_relations + relation], questions, name
    )


def _check_weights(
    weights: Callable[[int, int], Any], questions: Questions, name: str = ""
) -> Weights:
    """Return a function that checks the weights whenever it computes them; InputError if invalid.

    `name` is the origin of a matrix of weights, for messages.
    """
    n = questions.n_entities

    def check_values(side: int, relation: int) -> Float64:
        """Return the weights of a side of a relation; InputError unless all are 0 or more."""
        values = np.asarray(weights(side, relation), np.float64)
        if values.shape != (n,) or not np.isfinite(values).all() or (values < 0).any():
            problem = (
                f"shape {values.shape}"
                if values.shape != (n,)
                else "a negative, infinite or NaN weight"
            )
            relation_name = questions.graph.relations[relation]
            raise InputError(
                f"{name or 'the function of weights'}: {problem} for the {_SIDES[side]} of "
                f"relation {relation_name!r}; give {n} weights, one per entity, each 0 or more"
            )
        return values

    return check_values


STRATA = 5
STEP = 4.0  # from one stratum to the next, inclusion probabilities fall by about this factor
EVEN = 0.25  # the part of each list that is drawn evenly
LEAST = 2  # drawn from each stratum: one alone gives no variance


@dataclass(frozen=True, eq=False)
class CandidateDraw(ShownInLines):
    """The drawn candidates of every question.

    - questions: The questions, among all candidates.
    - strata: Per stratum, the drawn entities of each question, ascending; answers are never drawn.
    - population, drawn, int64 (Q, strata): Number of entities of each stratum that are neither
      known nor answers, and number of those that were drawn. Their inclusion probability is
      drawn / population.
    - source: Origin of the weights, as tables print it.
    """

    questions: Questions
    strata: tuple[Csr, ...]
    population: Int64
    drawn: Int64
    source: str
    seed: int

    def _lines(self) -> tuple[str, str]:
        drawn, available = (numbers.sum(axis=1).mean() for numbers in (self.drawn, self.population))
        return (
            f"{len(self.drawn):,} questions, {drawn:,.1f} of {available:,.1f} candidates each",
            f"by {self.source}; seed {self.seed}",
        )

    @cached_property
    def lists(self) -> Csr:
        """Candidates of every question, ascending: its answers and the drawn entities."""
        return to_csr(self._keys(*self.strata), len(self.questions), self.questions.n_entities)

    @property
    def candidates(self) -> npt.NDArray[np.int32]:
        """The lists that a model has to score, as a matrix of shape (Q, longest).

        Shorter lists repeat their last candidate; the scores of the repeats are not read.
        """
        lists = self.lists
        width = int(lists.lengths.max(initial=0))
        index = np.minimum(np.arange(width), lists.lengths[:, None] - 1)
        return lists.ids[lists.offsets[:-1, None] + index]

    def by_stratum(self, columns: str = "entities") -> dict[str, Questions]:
        """Return the questions with their lists ("sampled"), with the answers, and per stratum."""
        choose("columns", columns, ("entities", "candidates"))
        named = {"sampled": self.lists, "answers": self.questions.answers}
        named |= {
            str(number): to_csr(self._keys(stratum), len(self.questions), self.questions.n_entities)
            for number, stratum in enumerate(self.strata)
        }
        details = {"drawn_by": self.source, "seed": self.seed}
        questions = self.questions
        if columns == "candidates":  # whose columns have no other order
            questions = replace(questions, column_of=None)
        return {
            name: apply_lists(questions, self._candidate_lists(csr, columns), "error", details)
            for name, csr in named.items()
        }

    def _keys(self, *lists: Csr) -> Int64:
        """Return the sorted (question, entity) keys of some lists and of the answers."""
        n = self.questions.n_entities
        return distinct([to_keys(part, n) for part in (self.questions.answers, *lists)])

    def _candidate_lists(self, csr: Csr, columns: str) -> CandidateLists:
        """Return lists as the candidates of the questions, with columns as for `by_stratum`."""
        n, every = self.questions.n_entities, np.arange(len(csr))
        if columns == "entities":
            return CandidateLists("candidates", csr, every, None, n)
        question = np.repeat(every, csr.lengths)
        index = np.searchsorted(to_keys(self.lists, n), to_keys(csr, n))
        column = (index - self.lists.offsets[question]).astype(np.int32)
        return CandidateLists("candidates", csr, every, column, int(self.lists.lengths.max()))


def draw_candidates(
    questions: Questions, size: int, by: Any = "frequency", *, seed: int = 0
) -> CandidateDraw:
    """Draw candidates for every question separately.

    Parameters
    ----------
    questions : Questions
        Among all entities, or restricted to a list of them.
    size : int
        Candidates per question besides its answers, 10 or more; questions with fewer keep all.
    by : object
        Weights of the candidates. "uniform": all equal. "frequency": how often an entity is on that
        side of the relation in train, to the power of 0.75. "observed": entities on that side of
        the relation in train. `FittingEntities` (such as `study.fitting_by_types`): by type. Your
        own recommender: an array or ``.npy`` file of shape (2 relations, entities), heads of every
        relation first, or a function of (side, relation) that gives a weight per entity. A quarter
        of each list is drawn evenly, so every candidate can be drawn.
    seed : int

    Raises
    ------
    UsageError
        A size below 10, questions with another restriction, or an unknown `by`.
    InputError
        Weights of another shape, negative or infinite.
    """
    require_type("questions", questions, Questions, QUESTIONS)
    require_type("size", size, Real, "a number of candidates")
    lists = questions.candidate_lists
    refuse_if(
        (size < LEAST * STRATA, f"size={size!r}; draw {LEAST * STRATA} candidates or more"),
        (
            questions.outside is not None or (lists is not None and lists.kind != "entities"),
            "candidates can be drawn only from all entities, or from a list of entities that "
            "contains every answer; remove the other restrictions",
        ),
    )
    file = fspath(by) if isinstance(by, (str, PathLike)) and fspath(by).endswith(".npy") else ""
    matrix = load_matrix(file) if file else by
    with reading(file or "weights", matrix):
        weights, source = weights_of(matrix, questions, file)
        return _draw_strata(questions, size, weights, source, seed)


def _draw_strata(
    questions: Questions, size: int, weights: Weights, source: str, seed: int
) -> CandidateDraw:
    """Draw candidates by a function of weights; see `draw_candidates`."""
    lists = questions.candidate_lists
    n, rng = questions.n_entities, random_generator(seed)
    population = np.zeros((len(questions), STRATA), np.int64)
    drawn = np.zeros_like(population)
    keys: list[list[Int64]] = [[] for _ in range(STRATA)]
    allowed, is_left_out = np.full(n, lists is None), np.zeros(n, bool)
    if lists is not None:
        allowed[lists.lists.ids] = True
    code = len(SIDE_NAMES) * questions.relation.astype(np.int64) + questions.side
    order = np.argsort(code, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if not len(members):
            continue
        relation, side = divmod(int(code[members[0]]), len(SIDE_NAMES))
        of_group = np.where(allowed, weights(side, relation), 0)
        stratum, targets = _form_strata(inclusion_targets(of_group, allowed, size), allowed)
        pools = [np.flatnonzero(stratum == number) for number in range(STRATA)]
        for question in members.tolist():
            left_out = np.union1d(questions.known[question], questions.answers[question])
            reserves = np.bincount(stratum[left_out], minlength=STRATA + 1)[:STRATA]
            population[question] = [len(pool) for pool in pools] - reserves
            many = _allocate(targets, population[question], size)
            is_left_out[left_out] = True
            for number, (pool, reserve) in enumerate(zip(pools, reserves.tolist(), strict=True)):
                ids, most = pool, many[number] + reserve
                if most < len(pool):
                    # The first ones that remain, in random order, are an even draw from all.
                    ids = rng.choice(pool, most, replace=False) if many[number] else pool[:0]
                ids = ids[~is_left_out[ids]][: many[number]]
                drawn[question, number] = len(ids)
                keys[number].append(question * n + ids)
            is_left_out[left_out] = False
    strata = tuple(to_csr(distinct(stratum_keys), len(questions), n) for stratum_keys in keys)
    return CandidateDraw(questions, strata, population, drawn, source, seed)


def _form_strata(probability: Float64, allowed: Bools) -> tuple[Int64, Int64]:
    """Return the stratum of every entity, and the number to draw from each stratum.

    The stratum is STRATA for entities that are not candidates.
    """
    with np.errstate(divide="ignore"):
        steps = np.ceil(-np.log(probability) / np.log(STEP) - 1e-9)
    stratum = np.where(allowed, np.clip(steps, 0, STRATA - 1), STRATA).astype(np.int64)
    sums = np.bincount(stratum, probability, STRATA + 1)[:STRATA]
    return stratum, np.rint(sums).astype(np.int64)


def inclusion_targets(weights: Float64, allowed: Bools, size: int) -> Float64:
    """Mix weights with an even part; return probabilities up to 1 that sum to `size`."""
    even, total = allowed / max(1, int(allowed.sum())), weights.sum()
    return cap_probabilities(
        even if total == 0 else EVEN * even + (1 - EVEN) * weights / total, size
    )


def cap_probabilities(weights: Float64, total: float) -> Float64:
    """Return probabilities proportional to weights that sum to `total`, capped at 1."""
    positive = int(np.count_nonzero(weights))
    if total >= positive:
        return (weights > 0).astype(np.float64)
    ordered = np.sort(weights[weights > 0])[::-1]
    weight_from = np.cumsum(ordered[::-1])[::-1]  # of the weights from each on
    # The first i are drawn for sure if the factor of the rest would put the i-th at 1 or above.
    factors = (total - np.arange(len(ordered))) / weight_from
    certain = int(np.argmin(ordered * factors >= 1))
    return np.minimum(1.0, weights * factors[certain])


def _allocate(targets: Int64, population: Int64, size: int) -> list[int]:
    """Return the number to draw from each stratum: `size` in total, or everything."""
    numbers = np.minimum(np.maximum(targets, LEAST), population)
    surplus = int(numbers.sum()) - min(size, int(population.sum()))
    for stratum in np.argsort(-numbers, kind="stable").tolist():
        lowest, highest = min(LEAST, population[stratum]), population[stratum]
        number = min(max(int(numbers[stratum]) - surplus, int(lowest)), int(highest))
        surplus -= int(numbers[stratum]) - number
        numbers[stratum] = number
    return [int(number) for number in numbers]
