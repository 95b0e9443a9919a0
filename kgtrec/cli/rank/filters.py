"""``kgtrec rank`` with several filters: each has its own files, named by it, from one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgtrec.cli.rank.options import filter_name
from kgtrec.errors import UsageError

__all__ = ["filter_names", "outputs_by_filter"]

_PLACE = "{filter}"
_FILES = ("output", "run", "qrels")


def filter_names(filters: Sequence[str]) -> list[str]:
    """Names of the filters of a command line; UsageError if one stands there twice."""
    names = [filter_name(text) for text in filters]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--filter {name} is given twice; name each filter once")
    return names


def outputs_by_filter(
    options: Mapping[str, Any], names: Sequence[str]
) -> dict[str, dict[str, str | None]]:
    """The files that each filter's ranks, run and qrels are written to.

    Parameters
    ----------
    options : mapping
        ``output``, ``run`` and ``qrels``: paths in which ``{filter}`` stands for a filter's name,
        or None.
    names : sequence of str
        Of the filters.

    Returns
    -------
    dict of str to dict of str to (str or None)
        By the name of the filter, then by option. Qrels are those of every filter: where their
        path has no ``{filter}`` in it, the first filter alone has them.

    Raises
    ------
    UsageError
        One path for the ranks or runs of several filters.
    """
    for option in ("output", "run"):
        path = options[option]
        if len(names) > 1 and path is not None and _PLACE not in path:
            example = "ranks-{filter}.parquet" if option == "output" else "model-{filter}.run"
            raise UsageError(
                f"--{option} {path} is one file for the {len(names)} filters {', '.join(names)}; "
                f"let {_PLACE} stand for their names in it, as in {example}"
            )
    outputs = {
        name: {
            option: None if options[option] is None else options[option].replace(_PLACE, name)
            for option in _FILES
        }
        for name in names
    }
    if options["qrels"] is not None and _PLACE not in options["qrels"]:
        for name in names[1:]:
            outputs[name]["qrels"] = None
    return outputs
