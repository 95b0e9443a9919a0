"""Standard scores: a value less the mean of reference runs, in their standard deviations.

A reference file has lines ``query measure mean deviation``. Where it says nothing of a query's
measure, or gives a deviation of 0 and a mean other than the value, the score is `MISSING`. Where
it says nan, as programs do that divided 0 by 0, so is the score: that is seen wherever it goes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, text_of

__all__ = ["MISSING", "Reference", "read_reference", "standardise"]

MISSING = -1_000_000.0
"""What trec_eval gives where there is no standard score; it enters the averages like any other."""

Reference = dict[str, dict[str, tuple[float, float]]]
"""Query, then measure, to mean and standard deviation."""

_COLUMNS = "query measure mean deviation"


def read_reference(path: str | os.PathLike[str]) -> Reference:
    """Means and standard deviations of reference runs.

    Parameters
    ----------
    path : str or path-like
        Lines ``query measure mean deviation``, separated by white space, in any order; measures by
        the names that trec_eval prints. Names that end in .gz or .zst are decompressed.

    Returns
    -------
    dict of str to dict of str to (float, float)

    Raises
    ------
    FileError
        Naming the line: missing or surplus columns, a mean or deviation that is neither a finite
        number nor nan, a negative deviation, or a measure that comes twice; or the file cannot be
        read or is empty.
    """
    reference: Reference = {}
    for number, line in lines_of(path):
        fields = line.split()
        if len(fields) != 4:
            problem = f"{len(fields)} columns in {text_of(line)!r}" if fields else "a blank line"
            raise FileError(path, number, found=problem, hint=f"a line has 4: {_COLUMNS}")
        query, measure = text_of(fields[0]), text_of(fields[1])
        mean, deviation = (_number(path, number, text) for text in fields[2:])
        if deviation < 0:
            hint = "the fourth column must be 0 or more"
            raise FileError(path, number, found=f"deviation {text_of(fields[3])!r}", hint=hint)
        measures = reference.setdefault(query, {})
        if measure in measures:
            problem = f"measure {measure!r} comes a second time under query {query!r}"
            raise FileError(path, number, found=problem, hint="keep one of the two lines")
        measures[measure] = mean, deviation
    if not reference:
        raise FileError(path, found="this file holds no line", hint=f"lines are {_COLUMNS!r}")
    return reference


def standardise(
    values: Mapping[str, NDArray[Any]], queries: Sequence[str], reference: Reference
) -> tuple[dict[str, NDArray[Any]], int]:
    """Standard scores of all values that are numbers; strings stay as they are.

    Parameters
    ----------
    values : mapping of str to ndarray, shape (n_queries,)
        Measure to its value for every query.
    queries : sequence of str, length n_queries
    reference : Reference

    Returns
    -------
    scores : dict of str to ndarray of float64, shape (n_queries,)
    missing : int
        Values that became `MISSING`.
    """
    nothing: dict[str, tuple[float, float]] = {}
    rows = [reference.get(query, nothing) for query in queries]
    scores: dict[str, NDArray[Any]] = {}
    missing = 0
    for name, column in values.items():
        if column.dtype.kind not in "fiu":
            scores[name] = column
            continue
        # Without a line, as with a deviation of 0 and a mean that is not the value.
        known = [row.get(name, (math.nan, 0.0)) for row in rows]
        mean, deviation = np.array(known, dtype=np.float64).reshape(-1, 2).T
        with np.errstate(divide="ignore", invalid="ignore"):
            score = (column - mean) / deviation
        score = np.where(deviation == 0, np.where(column == mean, 0.0, MISSING), score)
        missing += int((score == MISSING).sum())
        scores[name] = score
    return scores, missing


def _number(path: str | os.PathLike[str], line: int, text: bytes) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value) or b"_" in text:
        hint = "the third and fourth columns must be decimal numbers, or nan"
        raise FileError(path, line, found=f"{text_of(text)!r} for a number", hint=hint)
    return value
