"""Matrices of scores: the parts that sources are built from."""

from __future__ import annotations

from typing import Any, NamedTuple

from kgtrec.errors import InputError
from kgtrec.scores.mapped_files import Watch


class Matrix(NamedTuple):
    """A matrix in memory, memory-mapped, in an object store or on a device.

    - file: Path or URL for messages; "" if there is none.
    - watch: Watch of the file that began before it was opened.
    """

    values: Any
    file: str
    watch: Any

    @classmethod
    def from_values(cls, values: Any, file: str = "", watch: Any = None) -> Matrix:
        """Return the matrix of an array; InputError if it is not two-dimensional."""
        if values.ndim != 2:
            raise InputError(
                f"scores have shape {tuple(values.shape)}; "
                "they must be two-dimensional: one row per question, one column per entity"
            )
        return cls(values, file, watch or Watch.from_arrays(values))


def alike(left: Any, right: Any) -> bool:
    """Return True if two matrices have the same number of columns and type, in any byte order."""
    kinds = (matrix.dtype.newbyteorder("=") for matrix in (left, right))
    return bool(left.shape[1] == right.shape[1] and next(kinds) == next(kinds))
