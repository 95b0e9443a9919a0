"""Models of a job file that a pattern of paths names."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path

from kgtrec._internal.locations import files_below, is_location, local_path
from kgtrec._internal.urls import url_text
from kgtrec.errors import InputError

_GRAPH = "{graph}"


def models_by_pattern(
    pattern: str, folder: Path, graphs: Iterable[str]
) -> dict[str, str | dict[str, str]]:
    """Return the paths of scores that match a pattern, by name of the model, sorted by name.

    If the pattern contains ``{graph}``, a model has a path per graph, by name of the graph.
    """
    if _GRAPH not in pattern:
        return dict(_models_matching(pattern, folder))
    models: dict[str, str | dict[str, str]] = {}
    for graph in graphs:
        for name, path in _models_matching(pattern.replace(_GRAPH, graph), folder).items():
            by_graph = models.setdefault(name, {})
            assert isinstance(by_graph, dict)
            by_graph[graph] = path
    return dict(sorted(models.items()))


def _models_matching(pattern: str, folder: Path) -> dict[str, str]:
    """Return the paths that match a pattern, by name; InputError if none does, or names repeat."""
    paths: dict[str, str] = {}
    for path, is_folder in _match_paths(pattern, folder):
        name = Path(path).name if is_folder else Path(path).stem
        if name in paths:
            raise InputError(
                f"{paths[name]!r} and {path!r} would have the same model name {name!r}; list the "
                "models by name"
            )
        paths[name] = path
    if not paths:
        raise InputError(f"no file matches {pattern!r}; correct the pattern")
    return dict(sorted(paths.items()))


def _match_paths(pattern: str, folder: Path) -> list[tuple[str, bool]]:
    """Return the paths that match a pattern, each with whether it is a folder; sorted."""
    if is_location(folder / pattern) and not is_location(pattern):
        pattern = f"{url_text(str(folder))}/{pattern}"
    if is_location(pattern) and (local := local_path(pattern)) is not None:
        pattern = local
    if not is_location(pattern):
        paths = sorted(glob(pattern, root_dir=folder, recursive=True))
        return [(path, (folder / path).is_dir()) for path in paths]
    steps = pattern.split("/")
    fixed = next((n for n, step in enumerate(steps) if has_magic(step)), len(steps) - 1)
    base = "/".join(steps[:fixed])
    files = {tuple(name.split("/")) for name in files_below(base)}
    folders = {name[:n] for name in files for n in range(1, len(name))}
    matching = sorted(name for name in files | folders if _matches(name, tuple(steps[fixed:])))
    return [("/".join([base, *name]), name in folders) for name in matching]


def _matches(name: tuple[str, ...], steps: tuple[str, ...]) -> bool:
    """Return whether the steps of a name match those of a pattern, as in `glob`."""
    if not steps or not name:
        return not name and all(step == "**" for step in steps)
    first = steps[0]
    hidden = name[0].startswith(".") and not first.startswith(".")
    if first == "**":
        return _matches(name, steps[1:]) or (not hidden and _matches(name[1:], steps))
    return not hidden and fnmatchcase(name[0], first) and _matches(name[1:], steps[1:])
