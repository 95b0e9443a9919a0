"""``kgtrec rank`` with several filters: each has its own files, named by it, from one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgtrec.cli._options import option_of
from kgtrec.cli.rank.options import filter_name
from kgtrec.errors import UsageError

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
    """The files that each filter's ranks, run and qrels are written to."""
    for option in ("output", "run"):
        path = options[option]
        if len(names) > 1 and path is not None and _PLACE not in path:
            example = "ranks-{filter}.parquet" if option == "output" else "model-{filter}.run"
            raise UsageError(
                f"{option_of(option)} {path} is one file for the {len(names)} filters "
                f"{', '.join(names)}; let {_PLACE} stand for their names in it, as in {example}"
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
