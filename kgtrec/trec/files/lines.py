"""Lines of TREC files from whole columns, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import UsageError

__all__ = ["identifiers", "joined", "lines", "numbers", "pieces", "texts"]

LINES_AT_A_TIME = 250_000

_COMMENT = b"#"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def identifiers(ids: Sequence[str], *, first: bool = False) -> list[bytes]:
    """Ids or tags as bytes; UsageError where a reader would split one.

    With `first` they begin a line: one that a reader would skip or cut is refused too.
    """
    for text in ids:
        if not isinstance(text, str):
            raise UsageError(f"{text!r} cannot stand in a TREC file; ids and tags are texts")
    raw = [text.encode("utf-8", "surrogateescape") for text in ids]
    for text, each in zip(ids, raw, strict=True):
        if each.split() != [each]:
            hint = "use a name without white space"
            raise UsageError(f"{text!r} cannot stand in a TREC file; {hint}")
        if first and each.startswith((_COMMENT, _BYTE_ORDER_MARK)):
            hint = "readers skip what begins like a comment or a byte order mark: rename it"
            raise UsageError(f"query {text!r} cannot begin a line of a TREC file; {hint}")
    return raw


def pieces(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, Any]]:
    """Rows of a CSR in bounded pieces, with the owner of each as an Arrow array."""
    import pyarrow as pa

    for start in range(int(offsets[0]), int(offsets[-1]), LINES_AT_A_TIME):
        stop = min(start + LINES_AT_A_TIME, int(offsets[-1]))
        rows = np.arange(start, stop)
        owner = np.searchsorted(offsets, rows, side="right") - 1
        yield slice(start, stop), pa.array(owner)


def texts(raw: list[bytes]) -> Any:
    """An Arrow array of them."""
    import pyarrow as pa

    return pa.array(raw, pa.large_binary())


def numbers(values: NDArray[Any]) -> Any:
    """Decimal texts; Arrow's cast gives the shortest one that reads back as the same number."""
    import pyarrow as pa

    return pa.array(values).cast(pa.large_string()).cast(pa.large_binary())


def joined(columns: Sequence[Any], separator: bytes) -> Any:
    """Columns side by side, as one Arrow array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*columns, pa.scalar(separator, pa.large_binary()))


def lines(columns: Sequence[Any], separator: bytes) -> memoryview:
    """Bytes of the lines that the columns make, the last column ending each line."""
    whole = joined(columns, separator)
    ends = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset :]
    return memoryview(whole.buffers()[2])[ends[0] : ends[len(whole)]]
