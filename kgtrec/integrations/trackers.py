"""Experiment trackers: results as plain dictionaries, with names that all of them take.

Nothing is imported: Weights & Biases, MLflow and TensorBoard each log what `metrics` gives
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
    """Values by names that stay the same from run to run.

    Parameters
    ----------
    result : Result
    measures : sequence of str, optional
        Keys to log; by default all that the result lists.
    prefix : str
        What stands before the first slash, by which trackers group; "" for no such part.

    Returns
    -------
    dict of str to float
        ``kgtrec/both.realistic.micro.hits_at_10``: ``@`` becomes ``_at_``, and what MLflow refuses
        (parentheses, commas) ``_``. Measures without a value (NaN) are left out, as MLflow's
        servers refuse them.

    Raises
    ------
    UsageError
        A key that is not a measure, or two whose names are the same.
    """
    keys = list(result) if measures is None else list(measures)
    named: dict[str, str] = {}
    for key in keys:
        name = _REFUSED.sub("_", key.replace("@", "_at_")).rstrip("_")
        name = f"{prefix}/{name}" if prefix else name
        if named.setdefault(name, key) != key:
            raise UsageError(
                f"{named[name]!r} and {key!r} are both logged as {name!r}; leave out one"
            )
    values = {name: float(result[key]) for name, key in named.items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}
