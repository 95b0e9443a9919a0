"""Values that users give, checked where they enter: their types, counts, seeds and shares.

The command line's option types and the functions of Python refuse the same numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from kgtrec._internal.arrays import Float64

LARGEST_COUNT = 2**31 - 1
"""Largest value of most counts, because ids are int32."""

LARGEST_SEED = 2**64 - 1
"""The random generators in C take seeds of 64 bits."""

MOST_PARTS = 1_000_000
"""Random parts of an experiment: every part has a value in memory."""

MOST_PERMUTATIONS = 100_000_000
"""Permutations of a test: more would take hours for a few questions."""

MOST_SIMULATED = 100_000_000
"""Entities or questions of a simulation, whose memory grows with them."""

MOST_AUDITED = 100_000_000
"""Entities of an audit, which computes every metric at every rank up to their number."""

MOST_POINTS = 10_000
"""Points of a curve; a grid has as many rows as columns."""

SMALLEST = 1e-300
"""Smallest decimal number other than 0: reciprocals of smaller ones overflow."""


PATH = "a path (text or pathlib.Path)"
GRAPH = "a Graph (kgtrec.read_graph or Graph.from_arrays)"
QUESTIONS = "Questions (graph.questions or Questions.from_answers)"
RANKS = "Ranks (kgtrec.rank, Ranks.load or result.ranks)"


def require_type(name: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError unless an argument has one of some types.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
    types : type or tuple of types
    expected : str
        What the argument must be, and in brackets what returns it, such as `RANKS`.
    """
    if not isinstance(value, types):
        found = "None" if value is None else f"an object of type {type(value).__name__}"
        raise UsageError(f"{name} must be {expected}, found {found}")


def require_items(name: str, values: object, types: type, expected: str) -> None:
    """Raise UsageError unless an argument is a sequence of values of a type.

    Parameters as for `require_type`; `expected` says what an item must be.
    """
    require_type(name, values, Sequence, f"a list of {expected}")
    for value in cast("Sequence[object]", values):
        require_type(f"every item of {name}", value, types, expected)


def as_floats(name: str, values: object) -> Float64:
    """Return an argument as an array of float64; UsageError unless it consists of numbers."""
    import numpy as np

    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        found = f"an object of type {type(values).__name__}"
        raise UsageError(f"{name} must be numbers, found {found}; give an array of them") from None


def check_count(name: str, value: object, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """Return a value as an int; UsageError unless it is a whole number between two limits.

    `name` is the argument's name in the message.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{argument(name, value)} is not a whole number; give {least} or more")
    number = operator.index(value)
    if number < least:
        raise UsageError(f"{argument(name, number)} is too few; give {least} or more")
    if number > most:
        raise UsageError(f"{argument(name, number)} is too many; give at most {most}")
    return number


def check_seed(seed: object) -> int:
    """Return a seed as an int; UsageError unless it is a whole number of 64 bits, 0 or more."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise UsageError(f"seed {seed!r} is not a whole number; give one, such as 42")
    number = operator.index(seed)
    if number < 0:
        raise UsageError(f"the seed is {number}; it must be 0 or more")
    if number > LARGEST_SEED:
        raise UsageError(f"the seed is {number}; it must be at most {LARGEST_SEED}")
    return number


def random_generator(seed: object, *numbers: int) -> np.random.Generator:
    """Return the generator of a seed, or of one of the streams that numbers distinguish.

    Raises
    ------
    UsageError
        A seed that is not a whole number of 64 bits.
    """
    import numpy as np

    start = check_seed(seed)
    return np.random.default_rng([start, *numbers] if numbers else start)
