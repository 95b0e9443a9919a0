"""Arrays of any framework as numpy arrays, and blocks of scores in the form for comparison.

A matrix of scores on a GPU never exists on the host. Its rows go through two pinned buffers, on a
separate stream, which waits for the computation of the scores. A block is copied while the previous
block is ranked. This module does not import torch, because a caller with a tensor has imported it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.integers import EXACT, exact_floats, rounded_integer
from kgtrec.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self


_FLOATS = ("float16", "bfloat16", "float32", "float64")
_OF_NUMPY = {np.dtype(name): name for name in _FLOATS if name != "bfloat16"}
_INTEGER = re.compile(r"u?int\d+")


def as_array(scores: Any, name: str = "scores") -> Array:
    """Return a numpy view of any framework's array, by DLPack or ``__array__``.

    The framework is not imported. InputError if the array cannot be read, or if numpy rounded an
    integer of a list.
    """
    if type(scores) is np.ndarray:
        return scores
    # A caller with a masked array has imported numpy.ma; importing it takes numpy a while.
    if "numpy.ma" in sys.modules and np.ma.is_masked(scores):
        raise InputError(
            f"{name} are a masked array with {np.ma.count_masked(scores)} masked values, whose "
            "ranks are unknown; fill them, for example with .filled(-numpy.inf)"
        )
    if isinstance(scores, np.ndarray):
        return scores
    if hasattr(scores, "resolve_neg"):  # torch exports a lazily negated tensor without its sign
        scores = scores.resolve_neg()
    if hasattr(scores, "detach"):  # a torch tensor that records gradients refuses to be exported
        scores = scores.detach()
    if str(getattr(scores, "dtype", "")) == "torch.bfloat16":
        scores = scores.float()  # numpy has no such type; widening is exact and keeps ties
    try:
        if hasattr(scores, "__dlpack__"):
            return np.from_dlpack(scores)
        array = np.asarray(scores)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        if hasattr(scores, "__dlpack__") and hasattr(scores, "__array__"):
            try:
                return np.asarray(scores)
            except (TypeError, ValueError, RuntimeError, BufferError):
                pass  # the first error says more
        kind = f"{type(scores).__module__}.{type(scores).__qualname__}"
        raise InputError(
            f"{name}: {kind} cannot be read as an array ({error}); "
            "move it to the CPU and to float32, or pass a numpy array"
        ) from None
    if isinstance(scores, (list, tuple)) and array.dtype.kind == "f":
        _check_listed_integers(scores, array, name)
    return array


def _check_listed_integers(scores: Any, array: Array, name: str) -> None:
    """Raise InputError if numpy rounded an integer of a list that also has floats."""
    if not (np.abs(array) >= EXACT).any():
        return
    listed = np.array(scores, dtype=object)
    if listed.shape != array.shape:
        return
    for value, rounded in zip(listed.ravel().tolist(), array.ravel().tolist(), strict=True):
        if isinstance(value, int) and value != rounded:
            raise rounded_integer(name, value)


def score_dtype(array: Array, name: str = "scores") -> str:
    """Return the name of the dtype in which scores are compared: float64 for integers."""
    dtype = _OF_NUMPY.get(array.dtype) or array.dtype.name  # numpy makes names anew each time
    if array.dtype.kind in "SU":
        raise InputError(
            f"{name} are texts (dtype {array.dtype}); they must be numbers: convert texts such as "
            "'0.5' with .astype('float32')"
        )
    if array.dtype.kind in "iu":
        return "float64"
    if dtype not in _FLOATS:
        raise InputError(
            f"{name} have dtype {array.dtype}; they must be integers or one of "
            f"{', '.join(_FLOATS)}: convert them with .astype('float32')"
        )
    return dtype


@dataclass(frozen=True, eq=False)
class ScoreBlock:
    """Consecutive rows of scores, with their type and direction.

    - array, (rows, columns): A tensor on a device, or an array for the native core. This has the
      machine's byte order, bfloat16 as bits, and integers as float64.
    - dtype: Name of the dtype for comparisons.
    - negate: True if lower scores are better.
    - start: Index of the first row in the ranking.
    """

    array: Any
    dtype: str
    negate: bool = False
    start: int = 0

    @classmethod
    def from_scores(
        cls, scores: Any, negate: bool = False, start: int = 0, name: str = "scores"
    ) -> Self:
        """Return scores of any framework as a block; InputError if they cannot be compared."""
        array = as_block(scores, name)
        if isinstance(array, np.ndarray) or not on_device(array):
            return cls._from_host(array, negate, start)
        dtype = str(array.dtype).rpartition(".")[2]
        if _INTEGER.fullmatch(dtype):
            return cls(array, "float64", negate, start)  # `pieces` converts them
        if dtype not in _FLOATS:
            raise InputError(
                f"scores have dtype {dtype}; they must be integers or one of "
                f"{', '.join(_FLOATS)}: convert them with .float()"
            )
        return cls(array, "float32" if dtype == "bfloat16" else dtype, negate, start)

    @classmethod
    def _from_host(cls, array: Array, negate: bool, start: int) -> Self:
        """Return an array on the host as a block."""
        dtype = score_dtype(array)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        array = exact_floats(array)
        return cls(array.view(np.uint16) if dtype == "bfloat16" else array, dtype, negate, start)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return len(self.array)

    @property
    def stop(self) -> int:
        """Index in the ranking of the last row, plus 1."""
        return self.start + len(self.array)

    def at(self, start: int) -> Self:
        """Return the same scores as other rows of a ranking, from `start` on."""
        return replace(self, start=start)

    def select(self, rows: Int64) -> Self:
        """Select rows of the block."""
        return replace(self, array=self.array[rows.tolist()])

    def values_at(self, *index: Any) -> Array:
        """Return the scores at an index as float64, negated if lower is better."""
        values = self.array[index]
        if self.dtype == "bfloat16":
            values = (np.asarray(values, dtype=np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):  # widening a signalling NaN
            values = np.asarray(values, dtype=np.float64)
        return -values if self.negate else values

    def pieces(self) -> Iterator[Self]:
        """Yield the block in pieces on the host; each is valid until the next but one."""
        if isinstance(self.array, np.ndarray) or not on_device(self.array):
            yield self
            return
        for start, array in _copy_pieces(self.array):
            yield self._from_host(array, self.negate, self.start + start)


COPIED_BYTES = 8 << 20
"""Size of each of the two buffers: large enough for the bus, small enough to overlap."""

_STREAMS = ("Stream", "Event", "stream", "current_stream")


def on_device(scores: object) -> bool:
    """Return whether this is a torch tensor that is not in the host's memory."""
    kind = getattr(getattr(scores, "device", None), "type", "cpu")
    if kind == "meta":
        raise InputError(
            "scores are a tensor on the meta device, which has a shape but no values; create "
            "the model on a real device, as with model.to_empty(device='cpu') and loaded weights"
        )
    return bool(kind != "cpu")


def to_host(values: Any) -> Any:
    """Return values in the host's memory; for small arrays, such as ids."""
    return values.detach().cpu() if on_device(values) else values


def as_block(scores: Any, name: str = "scores") -> Any:
    """Return a tensor on a device unchanged, any other array as a numpy view; see `as_array`."""
    if isinstance(scores, np.ndarray) or not on_device(scores):
        return as_array(scores, name)
    return scores.detach()


def _copy_pieces(block: Any) -> Iterator[tuple[int, Array]]:
    """Copy a tensor on a device in pieces; yield the first row and the array of each."""
    if hasattr(block, "resolve_neg"):
        block = block.resolve_neg()
    torch = sys.modules[type(block).__module__.partition(".")[0]]
    row_bytes = max(1, block.shape[1] * block.element_size())
    height = min(len(block), max(1, COPIED_BYTES // row_bytes))
    streams = getattr(torch, block.device.type, None)
    if all(hasattr(streams, name) for name in _STREAMS):
        yield from _stream_pieces(torch, streams, block, height)
        return
    for start in range(0, len(block), height):
        yield start, as_array(block[start : start + height].cpu())


def _stream_pieces(
    torch: Any, streams: Any, block: Any, height: int
) -> Iterator[tuple[int, Array]]:
    """Copy pieces of `height` rows through pinned buffers; yield first row and array of each."""
    side = streams.Stream(device=block.device)
    side.wait_stream(streams.current_stream(block.device))
    dtype = torch.float32 if block.dtype == torch.bfloat16 else block.dtype
    buffers = [_allocate_pinned(torch, (height, block.shape[1]), dtype) for _ in range(2)]

    def begin(number: int) -> tuple[Any, Any]:
        """Start to copy a piece; return its buffer, and the event of its arrival."""
        rows = block[number * height : (number + 1) * height]
        buffer = buffers[number % 2][: len(rows)]
        with streams.stream(side):
            # Widened on the device: a copy between types would pass through pageable memory.
            buffer.copy_(rows.to(dtype), non_blocking=True)
            arrival = streams.Event()
            arrival.record(side)
        return buffer, arrival

    try:
        n_pieces = -(-len(block) // height)
        in_flight = begin(0)
        for number in range(n_pieces):
            buffer, arrival = in_flight
            if number + 1 < n_pieces:
                in_flight = begin(number + 1)
            arrival.synchronize()
            yield number * height, np.from_dlpack(buffer)
    finally:
        side.synchronize()  # nothing writes to the buffers when they are freed


def _allocate_pinned(torch: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """Allocate page-locked memory, which a device accesses directly; else ordinary memory."""
    try:
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    except RuntimeError:
        return torch.empty(shape, dtype=dtype)
