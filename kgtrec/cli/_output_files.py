"""Checks on the files that a command is to write, before the work begins."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from kgtrec._internal.atomic_file import check_writable
from kgtrec._internal.locations import is_folder, is_location, names_in, real_path
from kgtrec.errors import UsageError

__all__ = ["check_outputs", "keep_inputs"]


def check_outputs(outputs: Mapping[str, str | None], graph: str, scores: str | None = None) -> None:
    """Refuse outputs that cannot be written, and those that would cost the user a file.

    Parameters
    ----------
    outputs : mapping of str to str or None
        Option to the file that it names, if any.
    graph : str
        Folder of the graph.
    scores : str, optional
        File or folder with scores.

    Raises
    ------
    UsageError
        Two outputs are one file, or an output is an input.
    FileError
        An output cannot be written, or the graph's folder holds no split.
    """
    check_writable(*outputs.values())
    with warnings.catch_warnings():  # they come when the graph is read
        warnings.simplefilter("ignore")
        splits = _graph_files(graph)
    taken = {real_path(path): "the graph" for path in splits.values()}
    taken |= {real_path(path): "the scores" for path in _files(scores)}
    _refuse_taken(outputs, taken)


def _graph_files(graph: str) -> Mapping[str, str | Path]:
    from kgtrec.graph.formats import graph_files, split_format

    url = split_format(graph)[1]
    if not is_location(url):
        return graph_files(graph)
    return {name: f"{url}/{name}" for name in names_in(url) or ()}


def keep_inputs(inputs: Iterable[str | None], outputs: Mapping[str, str | None]) -> None:
    """UsageError if an output is one of the input files, or two outputs are one file."""
    taken = {real_path(path): "an input" for path in inputs if path is not None}
    _refuse_taken(outputs, taken)


def _refuse_taken(outputs: Mapping[str, str | None], taken: dict[str, str]) -> None:
    """UsageError if an output is a file that `taken` names, by its real path, or another output."""
    for option, path in outputs.items():
        if path is None or (os.path.exists(path) and not os.path.isfile(path)):
            continue  # a pipe or /dev/null takes whatever comes
        other = taken.setdefault(real_path(path), option)
        if other is not option:
            raise UsageError(
                f"{option} {path} would overwrite {other}; give the name of another file"
            )


def _files(scores: str | None) -> Iterable[str]:
    if scores is None:
        return []
    if not is_folder(scores):
        return [scores]
    return [f"{scores}/{name}" for name in names_in(scores) or () if name.endswith(".npy")]
