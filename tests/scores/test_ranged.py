"""Arrays of which parts are read: what numpy takes of them, and no request for what is idle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgtrec._internal.locations import RangedFile
from kgtrec.errors import FileError
from kgtrec.scores import files


class Counting:
    """A file in memory that keeps what was asked of it."""

    url = "s3://b/x.npy"

    def __init__(self, data: bytes) -> None:
        self.data, self.asked = data, list[tuple[int, int]]()

    def read(self, start: int, n_bytes: int) -> bytes:
        self.asked.append((start, n_bytes))
        return self.data[start : start + n_bytes]


@given(st.data())
def test_parts_of_arrays(data: st.DataObject) -> None:
    gap, span = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 60))
    n, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    shape = data.draw(st.sampled_from([(n,), (n, width)]))
    dtype = np.dtype(data.draw(st.sampled_from(["<f4", ">f4", "<f8", "<f2"])))
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    file: Any = Counting(b"head" + array.tobytes())
    part = files.RangedArray(file, 4, shape, dtype)
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), np.int64)
    some_rows, some_columns = data.draw(st.slices(n)), data.draw(st.slices(width))
    some_rows, some_columns = _plain(some_rows, n), _plain(some_columns, width)
    keys: list[Any] = [some_rows, rows]
    if len(shape) == 2:
        columns = np.array([data.draw(st.integers(0, width - 1)) for _ in rows], np.int64)
        keys += [(rows, some_columns), (some_rows, some_columns), (rows, columns)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_GAP", gap)
        patch.setattr(files, "_SPAN", span)
        for key in keys:
            file.asked.clear()
            values = part[key]
            np.testing.assert_array_equal(values, array[key], strict=True)
            needed = set(np.arange(array.size).reshape(shape)[key].reshape(-1).tolist())
            for start, n_bytes in file.asked:
                first, count = (start - 4) // dtype.itemsize, n_bytes // dtype.itemsize
                assert {first, first + count - 1} <= needed
                idle = np.diff(sorted(needed & set(range(first, first + count)))) - 1
                assert (idle * dtype.itemsize <= gap).all()
                assert (
                    key is some_rows
                    or n_bytes <= max(span, width * dtype.itemsize)
                    or (_is_whole(key, width))
                )


def _plain(part: slice, size: int) -> slice:
    """A slice that goes up one by one."""
    first, stop, step = part.indices(size)
    return slice(first, max(first, stop)) if step > 0 else slice(max(stop, 0), first)


def _is_whole(key: Any, width: int) -> bool:
    """Whether rows are asked for that lie together, which is one request however long."""
    return isinstance(key, tuple) and isinstance(key[0], slice) and key[1] == slice(0, width)


def test_a_file_that_is_cut_short() -> None:
    file: Any = Counting(np.arange(6, dtype="<f4").tobytes()[:-1])
    part = files.RangedArray(file, 0, (2, 3), "<f4")
    assert part[:1].tolist() == [[0, 1, 2]]
    with pytest.raises(FileError, match=r"^s3://b/x.npy: it was cut short: 11 of 12 bytes"):
        part[1:]


def test_a_file_as_a_stream(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9
    (tmp_path / "x").write_bytes(content)
    with RangedFile((tmp_path / "x").as_uri()).stream() as stream:
        assert stream.read() == content
        assert stream.seek(-5, 2) == len(content) - 5
        assert stream.read(9) == content[-5:]
        stream.seek(7)
        assert stream.read(3) == content[7:10]
        assert stream.seek(2, 1) == 12
