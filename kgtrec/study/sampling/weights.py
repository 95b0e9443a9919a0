"""How likely an entity is drawn as a candidate of a relation's heads or tails."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.questions.sides import ASKED, facts_of
from kgtrec.scores.files import load_matrix
from kgtrec.study.semantics import FittingEntities

if TYPE_CHECKING:
    from kgtrec.questions.questions import QuestionData

__all__ = ["NAMES", "Weights", "weights_of"]

Float64 = npt.NDArray[np.float64]
Weights = Callable[[int, int], Float64]

NAMES = ("uniform", "frequency")

POWER = 0.75  # what is frequent is drawn more often, but less so than it stands in train

_SIDES = ("heads", "tails")


def weights_of(by: Any, questions: QuestionData) -> tuple[Weights, str]:
    """A function of (side, relation) that gives the weight of every entity, and its description.

    Parameters
    ----------
    by : object
        As for `kgtrec.study.sampling.draw.draw_candidates`.
    questions : Questions

    Raises
    ------
    UsageError
        Another name, or an object that is none of these.
    InputError
        An array or file of another shape, or one that cannot be read. (Negative or infinite weights
        are refused when they are used.)
    """
    if isinstance(by, str) and by in NAMES:
        return _uniform(questions) if by == "uniform" else _frequency(questions)
    if questions.sides == "qualifier":
        raise UsageError(
            "weights are of heads and tails, and these questions ask for values of qualifiers; "
            f"draw by one of {', '.join(NAMES)}"
        )
    if isinstance(by, FittingEntities):
        return _fitting(by, questions)
    if callable(by):
        return _checked(by, questions), "weights of a function"
    if isinstance(by, (str, PathLike)):
        if not fspath(by).endswith(".npy"):
            raise UsageError(f"by={fspath(by)!r}; name one of {', '.join(NAMES)}, or a .npy file")
        return _of_matrix(load_matrix(by), questions, fspath(by)), f"weights of {fspath(by)}"
    if hasattr(by, "__array__"):
        return _of_matrix(np.asarray(by), questions, "weights"), "weights of an array"
    raise UsageError(
        f"by is of type {type(by).__name__}; name one of {', '.join(NAMES)}, or hand over entities "
        "that fit (study.fitting_observed), an array, a .npy file, or a function"
    )


def _uniform(questions: QuestionData) -> tuple[Weights, str]:
    ones = np.ones(questions.n_entities)
    return (lambda side, relation: ones), "uniform"


def _frequency(questions: QuestionData) -> tuple[Weights, str]:
    """How often each entity stands on that side of the relation in train."""
    graph = questions.graph
    if "train" not in graph.splits:
        raise UsageError("by='frequency' counts triples of train, and this graph has no such split")
    rows = facts_of(graph, "train", int(questions.side[0]))
    order = np.argsort(rows[:, 1], kind="stable")
    bounds = np.searchsorted(rows[order, 1], np.arange(graph.n_relations + 1))

    def weights(side: int, relation: int) -> Float64:
        own = order[bounds[relation] : bounds[relation + 1]]
        counts = np.bincount(rows[own, ASKED[side]], minlength=graph.n_entities)
        return counts.astype(np.float64) ** POWER

    return weights, f"frequency in train, to the power of {POWER}"


def _fitting(fitting: FittingEntities, questions: QuestionData) -> tuple[Weights, str]:
    n = questions.n_entities

    def weights(side: int, relation: int) -> Float64:
        start = (2 * relation + side) * n
        low, high = np.searchsorted(fitting.keys, (start, start + n))
        fits = np.zeros(n)
        fits[fitting.keys[low:high] - start] = 1.0
        return fits

    return weights, f"type: {fitting.source}"


def _of_matrix(array: npt.NDArray[Any], questions: QuestionData, name: str) -> Weights:
    n_relations = questions.graph.n_relations
    shape = (2 * n_relations, questions.n_entities)
    if array.shape != shape:
        raise InputError(
            f"{name}: shape {array.shape}; expected {shape}: rows for the heads of every relation, "
            "then for the tails of every relation, a column per entity"
        )
    return _checked(lambda side, relation: array[side * n_relations + relation], questions, name)


def _checked(
    weights: Callable[[int, int], Any], questions: QuestionData, name: str = ""
) -> Weights:
    n = questions.n_entities

    def checked(side: int, relation: int) -> Float64:
        values = np.asarray(weights(side, relation), np.float64)
        if values.shape != (n,) or not np.isfinite(values).all() or (values < 0).any():
            what = (
                f"shape {values.shape}" if values.shape != (n,) else "a negative or infinite weight"
            )
            relation_name = questions.graph.relations[relation]
            raise InputError(
                f"{name or 'the function of weights'}: {what} for the {_SIDES[side]} of relation "
                f"{relation_name!r}; give {n} weights, one an entity, each 0 or more"
            )
        return values

    return checked
