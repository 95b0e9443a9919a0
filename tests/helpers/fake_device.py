"""A fake device: torch's names for tensors, streams and events, over numpy.

A copy on a stream happens only when code waits for an event after it, as late as on a real device.
Code that reads a buffer too early reads NaN.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np

LOG: list[str] = []
PINNED = True
_current: list[Stream] = []


class Tensor:
    """A matrix on the device."""

    def __init__(self, values: np.ndarray, kind: str = "npu") -> None:
        self.values, self.kind = values, kind
        self.device = SimpleNamespace(type=kind)
        self.dtype = values.dtype

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows) -> Tensor:
        assert isinstance(rows, (slice, list)), "what torch takes"
        return Tensor(self.values[rows], self.kind)

    def detach(self) -> Tensor:
        return self

    def element_size(self) -> int:
        return self.values.itemsize

    def to(self, dtype) -> Tensor:
        return Tensor(self.values.astype(dtype), self.kind)

    def cpu(self) -> np.ndarray:
        LOG.append(f"plain copy of {len(self)}")
        return self.values.copy()

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        raise TypeError("can't convert npu device type tensor to numpy")


UNREAD = {"f": np.nan, "i": 77}
"""Values of memory that was not copied yet."""


class Host:
    """A tensor in the host's memory, for copies."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __getitem__(self, rows: slice) -> Host:
        return Host(self.values[rows])

    def copy_(self, source: Tensor, non_blocking: bool) -> None:
        assert non_blocking
        assert _current, "copies are asked for on a stream"
        _current[-1].ask(lambda: np.copyto(self.values, source.values), self.values)

    def __dlpack__(self, **how: object) -> object:
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class Stream:
    def __init__(self, device: object) -> None:
        self.waiting: list = []
        self.behind_producer = False

    def wait_stream(self, other: Stream) -> None:
        self.behind_producer = True

    def ask(self, copy, target: np.ndarray) -> None:
        assert self.behind_producer, "a copy may overtake what computes the scores"
        target.fill(UNREAD[target.dtype.kind])  # a device may write at any time from now on
        LOG.append(f"begin {len(target)}")
        self.waiting.append(copy)

    def synchronize(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


class Event:
    def record(self, stream: Stream) -> None:
        self.stream, self.behind = stream, list(stream.waiting)

    def synchronize(self) -> None:
        for copy in self.behind:
            if copy in self.stream.waiting:
                self.stream.waiting.remove(copy)
                copy()
        LOG.append("arrived")


@contextmanager
def stream(chosen: Stream):
    _current.append(chosen)
    yield
    _current.pop()


def empty(shape: tuple[int, int], dtype: object, pin_memory: bool = False) -> Host:
    if pin_memory and not PINNED:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return Host(np.full(shape, UNREAD[np.dtype(dtype).kind], dtype))


def install(monkeypatch) -> None:
    """Install this module as `faketorch`, with the devices `npu`, which has streams, and `tpu`."""
    npu = SimpleNamespace(
        Stream=Stream, Event=Event, stream=stream, current_stream=lambda device: None
    )
    module = ModuleType("faketorch")
    vars(module).update(empty=empty, npu=npu, float32=np.dtype("f4"), bfloat16="bfloat16")
    monkeypatch.setitem(sys.modules, "faketorch", module)
    monkeypatch.setattr(Tensor, "__module__", "faketorch")
    LOG.clear()
