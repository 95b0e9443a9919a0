"""LibKGE's datasets: ``dataset.yaml``, triples by number in ``.del`` files, maps of the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgtrec.errors import FileError, UsageError
from kgtrec.graph.id_files import lines_of
from kgtrec.graph.readers.common import GraphTables, labels_by_id, number_rows

__all__ = ["read_libkge"]

_TRIPLES = "lines are head, relation and tail, as numbers from 0"
_MAP = "lines are number<TAB>label, numbers from 0"


def read_libkge(folder: Path, columns: str | None = None) -> GraphTables:
    """The splits that ``dataset.yaml`` names, under LibKGE's own numbers.

    Raises
    ------
    FileError
        Missing or malformed; the line is named.
    UsageError
        PyYAML is not installed.
    """
    settings = _settings(folder / "dataset.yaml")
    labels = {kind: _labels(folder, settings, f"{kind}_ids") for kind in ("entity", "relation")}
    sizes = len(labels["entity"]), len(labels["relation"])
    splits = {}
    for split in ("train", "valid", "test"):
        name = settings.get(f"files.{split}.filename", f"{split}.del")
        path = folder / str(name)
        if path.is_file() or f"files.{split}.filename" in settings:
            splits[split] = number_rows(path, lines_of(path), columns or "hrt", *sizes, _TRIPLES)
    if not splits:
        raise FileError(folder, found="no train.del, valid.del or test.del",
                        hint="run LibKGE's preprocessing of this dataset")  # fmt: skip
    return GraphTables(splits, labels["entity"], labels["relation"])


def _labels(folder: Path, settings: dict[str, Any], name: str) -> list[str]:
    path = folder / str(settings.get(f"files.{name}.filename", f"{name}.del"))
    rows = ((line, text.split(b"\t", 1)) for line, text in lines_of(path))
    return labels_by_id(path, rows, _MAP)


def _settings(path: Path) -> dict[str, Any]:
    """Keys under ``dataset``, nested ones joined by dots, as LibKGE writes and reads them."""
    try:
        import yaml
    except ImportError:
        raise UsageError(
            f"{path} needs PyYAML, which is not installed; pip install 'kgtrec[libkge]'"
        ) from None
    try:
        with open(path, "rb") as file:
            loaded = yaml.safe_load(file)
    except OSError as error:
        hint = "name a folder of LibKGE's data"
        raise FileError(path, found=f"cannot be read ({error.strerror})", hint=hint) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise FileError(path, line, found=f"not YAML ({what})", hint="correct it") from None
    settings = loaded.get("dataset") if isinstance(loaded, dict) else None
    if not isinstance(settings, dict):
        raise FileError(path, found="no key 'dataset'", hint="take LibKGE's dataset.yaml")
    try:
        return dict(_flat(settings, ""))
    except RecursionError:  # an alias of what it stands in
        raise FileError(path, found="keys inside themselves", hint="correct it") from None


def _flat(settings: dict[Any, Any], start: str) -> Any:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{key}.")
        else:
            yield f"{start}{key}", value
