"""Arrays as files: numpy's bytes, and one sentence if they cannot be written."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kgtrec._internal.files import atomic_write, write_array
from kgtrec.errors import FileError

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "array",
    [MATRIX, np.asfortranarray(MATRIX), MATRIX[:, ::2], MATRIX.T[::-1], MATRIX[:0], MATRIX[:, :0],
     np.zeros(0, np.int64), np.array(3.0), np.array([True, False]), MATRIX.astype(">i8"),
     np.zeros(100_000, np.float16)],
)  # fmt: skip
def test_the_bytes_are_numpys(array: npt.NDArray[Any]) -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    write_array(ours, array)
    np.save(theirs, array)
    assert ours.getvalue() == theirs.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize("n", [1, 1000, 100_000])
def test_a_full_disk(n: int) -> None:
    with (
        pytest.raises(FileError, match="/dev/full: the disk is full"),
        atomic_write("/dev/full") as file,
    ):
        write_array(file, np.zeros(n))
