"""Files that pyarrow opens itself, so that its threads hold nothing of Python's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["arrow_file"]


@contextmanager
def arrow_file(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A `pyarrow.OSFile` for whatever reads with several threads: Parquet and Arrow files.

    pyarrow's threads drop what they have read shortly after the reader has returned. Bytes that
    came from a Python file take the interpreter's lock for that, and where Python is ending by then
    it ends the thread, which aborts the process: once in sixty runs of one that does nothing else.

    Raises
    ------
    OSError
        With the system's own reason, if it cannot be opened.
    """
    import pyarrow as pa

    with open(path, "rb"):  # an error of pyarrow's own says its reason in the midst of others
        pass
    # Text it would encode as UTF-8, which not every name is.
    with pa.OSFile(os.fsencode(path)) as file:
        yield file
