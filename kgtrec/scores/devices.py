"""Tensors on a device: copied block by block while the block before is ranked.

A matrix of scores on a GPU never exists on the host: rows go through two pinned buffers, on a
stream of their own, which waits for what computes the scores. torch is not imported here: whoever
hands over a tensor has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError
from kgtrec.scores.arrays import as_array, score_dtype

__all__ = ["as_block", "block_dtype", "host_blocks", "on_device", "to_host"]

Array = npt.NDArray[Any]

COPIED_BYTES = 8 << 20
"""Size of each of the two buffers: large enough for the bus, small enough to overlap."""

_STREAMS = ("Stream", "Event", "stream", "current_stream")


def on_device(scores: Any) -> bool:
    """Whether this is a torch tensor that is not in the host's memory.

    Raises
    ------
    InputError
        It is on the meta device, and so has no values.
    """
    kind = getattr(getattr(scores, "device", None), "type", "cpu")
    if kind == "meta":
        raise InputError(
            "scores are a tensor on the meta device, which has a shape and no values; make the "
            "model on a real device, as with model.to_empty(device='cpu') and loaded weights"
        )
    return bool(kind != "cpu")


def to_host(values: Any) -> Any:
    """Few values, such as ids, in the host's memory."""
    return values.detach().cpu() if on_device(values) else values


def as_block(scores: Any, name: str = "scores") -> Any:
    """A tensor on a device as it is, any other array as numpy sees it (see `as_array`)."""
    return scores.detach() if on_device(scores) else as_array(scores, name)


def block_dtype(block: Any) -> str:
    """Name of the dtype in which the scores of `host_blocks` are compared; see `score_dtype`."""
    if not on_device(block):
        return score_dtype(block)
    name = str(block.dtype).rpartition(".")[2]
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise InputError(
            f"scores have dtype {name}; they must be one of float16, bfloat16, float32, float64: "
            "convert them with .float()"
        )
    return "float32" if name == "bfloat16" else name


def host_blocks(block: Any) -> Iterator[tuple[int, Array]]:
    """First row and numpy array of pieces of a block, in order; one piece where it is on the host.

    What is yielded is overwritten once the next but one is asked for.
    """
    if not on_device(block):
        yield 0, block
        return
    if hasattr(block, "resolve_neg"):
        block = block.resolve_neg()
    torch = sys.modules[type(block).__module__.partition(".")[0]]
    row_bytes = max(1, block.shape[1] * block.element_size())
    height = min(len(block), max(1, COPIED_BYTES // row_bytes))
    streams = getattr(torch, block.device.type, None)
    if all(hasattr(streams, name) for name in _STREAMS):
        yield from _streamed(torch, streams, block, height)
        return
    for start in range(0, len(block), height):
        yield start, as_array(block[start : start + height].cpu())


def _streamed(torch: Any, streams: Any, block: Any, height: int) -> Iterator[tuple[int, Array]]:
    side = streams.Stream(device=block.device)
    side.wait_stream(streams.current_stream(block.device))
    dtype = torch.float32 if block.dtype == torch.bfloat16 else block.dtype
    buffers = [_pinned(torch, (height, block.shape[1]), dtype) for _ in range(2)]

    def begin(number: int) -> tuple[Any, Any]:
        """Have a piece copied; its buffer, and the event of its arrival."""
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
        under_way = begin(0)
        for number in range(n_pieces):
            buffer, arrival = under_way
            if number + 1 < n_pieces:
                under_way = begin(number + 1)
            arrival.synchronize()
            yield number * height, np.from_dlpack(buffer)
    finally:
        side.synchronize()  # nothing writes to the buffers when they are freed


def _pinned(torch: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """Page-locked memory, which a device reads and writes by itself; any, where there is none."""
    try:
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    except RuntimeError:
        return torch.empty(shape, dtype=dtype)
