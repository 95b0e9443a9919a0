"""Names of systems: those of a mapping or of pairs, of files, or numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from kgtrec._internal.argument_names import argument
from kgtrec._internal.text import shorten
from kgtrec.errors import PathName, UsageError, refuse_if

T = TypeVar("T")
Named = Mapping[str, T] | Iterable[T] | Iterable[tuple[str, T]]
"""Values of several systems; `by_name` returns them by name."""

_ENDINGS = re.compile(r"^(.+?)(?:\.(?:gz|zst|run|txt|trec|tsv|npy|npz))+$")


def system_names(paths: Iterable[PathName]) -> list[str]:
    """Return a short name per file: its name without endings, or its path if names are equal."""
    files = [fspath(path) for path in paths]
    stems = [_ENDINGS.sub(r"\1", Path(file).name) for file in files]
    names = [
        stem if stems.count(stem) == 1 else file for stem, file in zip(stems, files, strict=True)
    ]
    refuse_if(
        *(
            (files.count(file) > 1, f"run {file!r} is given twice; give each run once")
            for file in dict.fromkeys(files)
        ),
        *(
            (
                set(name) & set(",\t\r\n"),
                f"the name of run {name!r} has a comma or tab; rename the file",
            )
            for name in names
        ),
    )
    return names


def by_name(name: str, systems: object, noun: str = "system") -> dict[str, Any]:
    """Return the values of several systems by their names.

    - name: The argument's name in messages.
    - systems: A mapping keeps its names, and so do pairs (name, value). In other sequences, paths
      are called like their files, and all else "system 1", "system 2", ...
    - noun: What a value is, instead of a "system".

    UsageError for a single value, a name that is not a text, and a repeated name.
    """
    if isinstance(systems, Mapping):
        pairs = list(systems.items())
    elif isinstance(systems, Iterable) and not isinstance(systems, str | bytes | PathLike):
        pairs = _name_items(list(systems), noun)
    else:
        raise UsageError(
            f"{argument(name, type(systems).__name__)} is not several {noun}s; pass a dict by "
            "their names, as in {'a': first, 'b': second}, or a list"
        )
    names = [of_value for of_value, _ in pairs]
    for of_value in names:
        refuse_if(
            (
                not isinstance(of_value, str),
                f"{argument(name)} has the name {of_value!r}, which is not a text; name every "
                f"{noun} by a text, as in 'a'",
            ),
            (
                names.count(of_value) > 1,
                f"{argument(name)} has the name {of_value!r} twice; give every {noun} its own name",
            ),
        )
    return dict(pairs)


def by_names_of(
    name: str, values: object, names: Iterable[str], noun: str = "system"
) -> dict[str, Any]:
    """Return a value per name: those of a mapping or of pairs by name, other sequences in order.

    UsageError if a name has no value, or a sequence has another length; else as `by_name`.
    """
    names = list(names)
    if isinstance(values, Iterable) and not isinstance(values, Mapping | str | PathLike):
        values = list(values)
        if not any(map(_is_pair, values)):
            if len(values) != len(names):
                raise UsageError(
                    f"{argument(name)} has length {len(values)}, but there are {len(names)} "
                    f"{noun}s; give one per {noun}, in the same order"
                )
            return dict(zip(names, values, strict=True))
    named = by_name(name, values, noun)
    if lacking := [of_system for of_system in names if of_system not in named]:
        raise UsageError(
            f"{argument(name)} has no {lacking[0]!r}, but {shorten(repr([*named]), 200)}; give one "
            f"per {noun}, by the same names"
        )
    return {of_system: named[of_system] for of_system in names}


def _name_items(items: list[Any], noun: str) -> list[tuple[Any, Any]]:
    """Return pairs of a name and a value for the items of a sequence; see `by_name`."""
    paths = [item for item in items if isinstance(item, str | PathLike)]
    of_paths = iter(system_names(paths))
    pairs = []
    for number, item in enumerate(items, start=1):
        if _is_pair(item):
            pairs.append(item)
        elif isinstance(item, str | PathLike):
            pairs.append((next(of_paths), item))
        else:
            pairs.append((f"{noun} {number}", item))
    return pairs


def _is_pair(item: object) -> bool:
    """Return True for a name and a value."""
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
