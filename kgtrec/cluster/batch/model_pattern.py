"""Models of a job file by a pattern of file names, such as ``runs/*.npz``."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path

from kgtrec._internal.locations import files_below, is_location, local_path
from kgtrec.errors import InputError, url_text

__all__ = ["models_by_pattern"]

_GRAPH = "{graph}"


def models_by_pattern(
    pattern: str, folder: Path, graphs: Iterable[str]
) -> dict[str, str | dict[str, str]]:
    """Scores of every model that a pattern matches, by the model's name, sorted.

    Parameters
    ----------
    pattern : str
        With ``*``, ``?``, ``[...]`` and ``**``, relative to `folder`, or a URL.
        Where it has ``{graph}``, each graph has the models that match with its name put in.
    folder : Path
    graphs : iterable of str

    Returns
    -------
    dict of str to str, or to a dict by graph
        A name is that of the file without its last suffix, or that of the folder of shards.

    Raises
    ------
    InputError
        Nothing matches for one of the graphs, or two files would be models of one name.
    """
    if _GRAPH not in pattern:
        return dict(_matching(pattern, folder))
    models: dict[str, str | dict[str, str]] = {}
    for graph in graphs:
        for name, path in _matching(pattern.replace(_GRAPH, graph), folder).items():
            by_graph = models.setdefault(name, {})
            assert isinstance(by_graph, dict)
            by_graph[graph] = path
    return dict(sorted(models.items()))


def _named(pattern: str, folder: Path) -> list[tuple[str, bool]]:
    """Files and folders that a pattern matches, and which are folders; sorted."""
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
    """Whether the steps of a name match those of a pattern, as `glob` has it."""
    if not steps or not name:
        return not name and all(step == "**" for step in steps)
    first = steps[0]
    hidden = name[0].startswith(".") and not first.startswith(".")
    if first == "**":
        return _matches(name, steps[1:]) or (not hidden and _matches(name[1:], steps))
    return not hidden and fnmatchcase(name[0], first) and _matches(name[1:], steps[1:])


def _matching(pattern: str, folder: Path) -> dict[str, str]:
    paths: dict[str, str] = {}
    for path, is_folder in _named(pattern, folder):
        name = Path(path).name if is_folder else Path(path).stem
        if name in paths:
            raise InputError(
                f"{paths[name]!r} and {path!r} would both be the model {name!r}; list the models "
                "by name"
            )
        paths[name] = path
    if not paths:
        raise InputError(f"no file matches {pattern!r}")
    return dict(sorted(paths.items()))
