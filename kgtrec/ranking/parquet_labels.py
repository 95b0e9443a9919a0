"""Labels as columns of text or bytes: of those in use, and looked up by id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.graph.labels import Labels

__all__ = ["EntityLabels", "column_values", "encoded", "encoded_labels"]

_FEW_LABELS = 1 << 16


def column_values(values: Any) -> Any:
    """The values of a column: of a pyarrow array of bytes, large or not, or of text."""
    import pyarrow as pa

    few = len(values) <= _FEW_LABELS and values.nbytes < 1 << 31
    if few and pa.types.is_large_binary(values.type):
        values = _plain_text(values)
    else:
        values = values.cast(pa.binary())
        with suppress(pa.ArrowInvalid):  # a label that is not UTF-8 stays as bytes
            values = values.cast(pa.string())
    return values


def _plain_text(labels: Any) -> Any:
    """What the casts of `column_values` make of bytes, without pyarrow's compute module.

    That takes longer to import than to write a file.
    """
    import pyarrow as pa

    first, n = labels.offset, len(labels)
    _, offsets, content = labels.buffers()
    bounds = np.frombuffer(offsets or bytes(8), np.int64)[first : first + n + 1]
    data = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = (bounds - bounds[0]).astype(np.int32)
    # Cut between characters, a text is UTF-8 if its parts are.
    starts = data[bounds[:-1][np.diff(bounds) > 0]]
    kind = pa.string()
    try:
        data.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        kind = pa.binary()
    if ((starts & 0xC0) == 0x80).any():
        kind = pa.binary()
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def encoded_labels(labels: Any, ids: npt.NDArray[np.int64]) -> Any:
    """Labels of many ids as a pyarrow array of bytes, from what `Ranks.entity_labels` may be."""
    if isinstance(labels, (Labels, EntityLabels)):
        return labels.arrow_of(ids)
    return encoded(labels[i] for i in ids.tolist())


def encoded(labels: Iterable[str]) -> Any:
    import pyarrow as pa

    encoded = [label.encode("utf-8", "surrogateescape") for label in labels]
    return pa.array(encoded, pa.large_binary())


class EntityLabels(Mapping[int, str]):
    """Labels of the entities that stand in a ranks file, by id.

    There are tens of thousands of them and few readers want any: they stay in their columns until
    one is asked for.
    """

    def __init__(self, columns: Sequence[tuple[npt.NDArray[np.int64], Any]]) -> None:
        """Pairs of ids and labels, row by row; an id of several has the label of the first."""
        self._columns = columns

    @cached_property
    def _distinct(self) -> tuple[npt.NDArray[np.int64], Any]:
        """Ids, ascending, and a pyarrow array of their labels as bytes."""
        import pyarrow as pa

        ids, labels = [], []
        for all_ids, column in self._columns:
            first = np.unique(all_ids, return_index=True)[1]
            ids.append(all_ids[first])
            labels.append(_plain(column.take(pa.array(first))))
        known, place = np.unique(np.concatenate(ids), return_index=True)
        return known, pa.concat_arrays(labels).take(pa.array(place))

    def arrow_of(self, ids: npt.NDArray[np.int64]) -> Any:
        """Labels of many ids as a pyarrow array; KeyError for one that stands nowhere."""
        import pyarrow as pa

        known, labels = self._distinct
        places = np.searchsorted(known, ids)
        strangers = places == len(known)
        strangers[~strangers] = known[places[~strangers]] != ids[~strangers]
        if strangers.any():
            raise KeyError(int(ids[np.argmax(strangers)]))
        return labels.take(pa.array(places))

    def __getitem__(self, number: int) -> str:
        label: bytes = self.arrow_of(np.array([number]))[0].as_py()
        return label.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[int]:
        return iter(self._distinct[0].tolist())

    def __len__(self) -> int:
        return len(self._distinct[0])


def _plain(column: Any) -> Any:
    """A column of labels as one array of bytes."""
    import pyarrow as pa

    column = column.combine_chunks()
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.binary())
