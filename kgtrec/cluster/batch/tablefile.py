"""Tables of settings in TOML, YAML or JSON, read into plain Python types."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kgtrec.errors import FileError

__all__ = ["read_tables"]


def read_tables(path: Path) -> Any:
    """What a file in one of the three formats holds, in plain Python types.

    Raises
    ------
    FileError
        Missing, of another suffix, malformed (the line is named), or with a key twice.
    """
    readers = {".toml": _load_toml, ".yaml": _load_yaml, ".yml": _load_yaml, ".json": _load_json}
    if path.suffix not in readers:
        raise FileError(
            path, found=f"a job file named {path.suffix or 'without suffix'}",
            mend="write it as .toml, .yaml or .json",
        )  # fmt: skip
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        mend = "check the name and the working folder"
        raise FileError(path, found=error.strerror or str(error), mend=mend) from None
    except UnicodeDecodeError as error:
        found = f"not UTF-8 (byte {error.start})"
        raise FileError(path, found=found, mend="save the file as UTF-8") from None
    return readers[path.suffix](path, text)


def _load_toml(path: Path, text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _malformed(path, "TOML", str(error)) from None


def _load_json(path: Path, text: str) -> Any:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise _twice(path, next(name for name in names if names.count(name) > 1))
        return found

    try:
        return json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise _malformed(path, "JSON", error.msg, error.lineno) from None


def _load_yaml(path: Path, text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise FileError(
            path, found="YAML cannot be read here: PyYAML is missing",
            mend="pip install 'kgtrec[cluster]', or write the jobs as .toml or .json",
        ) from None  # fmt: skip

    class Loader(yaml.SafeLoader):
        """Plain values only; a key that stands twice is an error."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            for number, name in enumerate(names):
                if name in names[:number]:
                    line = node.value[number][0].start_mark.line + 1
                    raise _twice(path, name, line)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # Loader is a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise _malformed(path, "YAML", said, mark and mark.line + 1) from None


def _malformed(path: Path, kind: str, said: str, line: int | None = None) -> FileError:
    return FileError(path, line, found=f"not {kind}: {said}", mend="mend it there")


def _twice(path: Path, name: Any, line: int | None = None) -> FileError:
    return FileError(path, line, found=f"the key {name!r} stands twice", mend="leave one of them")
