"""Names of systems whose files or values users give."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import fspath
from pathlib import Path

from kgtrec.errors import PathName, refuse_if

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
