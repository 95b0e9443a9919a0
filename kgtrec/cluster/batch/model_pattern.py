"""Models of a job file by a pattern of file names, such as ``runs/*.npz``."""

from __future__ import annotations

from collections.abc import Iterable
from glob import glob
from pathlib import Path

from kgtrec.errors import InputError

__all__ = ["models_by_pattern"]

_GRAPH = "{graph}"


def models_by_pattern(
    pattern: str, folder: Path, graphs: Iterable[str]
) -> dict[str, str | dict[str, str]]:
    """Scores of every model that a pattern matches, by the model's name, sorted.

    Parameters
    ----------
    pattern : str
        With ``*``, ``?``, ``[...]`` and ``**``, relative to `folder`. Where it has ``{graph}``,
        each graph has the models that match with its name put in.
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


def _matching(pattern: str, folder: Path) -> dict[str, str]:
    paths: dict[str, str] = {}
    for path in sorted(glob(pattern, root_dir=folder, recursive=True)):
        name = Path(path).name if (folder / path).is_dir() else Path(path).stem
        if name in paths:
            raise InputError(
                f"{paths[name]!r} and {path!r} would both be the model {name!r}; list the models "
                "by name"
            )
        paths[name] = path
    if not paths:
        raise InputError(f"no file matches {pattern!r}")
    return dict(sorted(paths.items()))
