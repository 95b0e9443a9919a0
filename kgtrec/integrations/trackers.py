"""Experiment trackers: results as plain dictionaries, with names that all trackers accept.

Imports no tracker: Weights & Biases, MLflow and TensorBoard can all log the result of `metrics`
(``kgtrec guide training-loop`` has a line for each).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from kgtrec.errors import UsageError
from kgtrec.results.result import Result

_REFUSED = re.compile(r"[^0-9A-Za-z_./-]+")


def metrics(
    result: Result, measures: Sequence[str] | None = None, *, prefix: str = "kgtrec"
) -> dict[str, float]:
    """Return values under names that stay the same from run to run.

    Parameters
    ----------
    result : Result
    measures : sequence of str, optional
        Keys to log; by default all keys of the result.
    prefix : str
        Text before the first slash, by which trackers group; "" for none.

    Returns
    -------
    dict of str to float
        ``kgtrec/both.realistic.micro.hits_at_10``: ``@`` becomes ``_at_``, and characters that
        MLflow refuses (parentheses, commas) become ``_``. Measures without a value (NaN) are left
        out, because MLflow's servers refuse them.

    Raises
    ------
    UsageError
        A key that is not a measure, or two keys with the same name.
    """
    keys = list(result) if measures is None else list(measures)
    named: dict[str, str] = {}
    for key in keys:
        name = _REFUSED.sub("_", key.replace("@", "_at_")).rstrip("_")
        name = f"{prefix}/{name}" if prefix else name
        if named.setdefault(name, key) != key:
            raise UsageError(
                f"{named[name]!r} and {key!r} would both be logged as {name!r}; leave out one"
            )
    values = {name: float(result[key]) for name, key in named.items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}
