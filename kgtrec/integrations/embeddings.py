"""Vectors of models from files, by the names that they have there. Nothing is unpickled.

Examples
--------
>>> vectors = load_embeddings("model.safetensors")                               # doctest: +SKIP
>>> Factors.from_embeddings(questions, "complex", entity=vectors["entity"],      # doctest: +SKIP
...                         relation=vectors["relation"])
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import fetched
from kgtrec.errors import FileError
from kgtrec.scores.arrays import as_array
from kgtrec.scores.files import one_line

Array = npt.NDArray[Any]

_KINDS = (".npz", ".npy", ".safetensors", ".pt", ".pth")


def load_embeddings(path: str | PathLike[str]) -> dict[str, Array]:
    """Arrays of a model by the names that they have in the file.

    Parameters
    ----------
    path : path
        ``.npz``; ``.npy`` (one array, named like the file); ``.safetensors`` (with that library);
        ``.pt`` or ``.pth``, a state dict (with torch, ``weights_only``: no code runs). A folder:
        its ``.npy`` files.

    Returns
    -------
    dict of str to ndarray
        bfloat16 becomes float32, exactly. Nested state dicts have names with dots.

    Raises
    ------
    FileError
        No such file, another kind, damaged, one that only pickle could read, or without the library
        that reads it.
    """
    with fetched(path, folders=True) as copy:
        return _loaded(copy)


def _loaded(path: Path) -> dict[str, Array]:
    if not path.exists():
        raise FileError(path, found="there is no such file", hint="check the name")
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        if not files:
            raise FileError(path, found="no .npy file in this folder", hint="name a file")
        return {file.stem: _read_numpy(file)[file.stem] for file in files}
    if path.suffix in (".npz", ".npy"):
        return _read_numpy(path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix in (".pt", ".pth"):
        return _read_torch(path)
    raise FileError(
        path,
        found=f"a file named {path.suffix or 'without suffix'}",
        hint=f"vectors are read from {', '.join(_KINDS)}; convert it with numpy.savez",
    )


def _read_numpy(path: Path) -> dict[str, Array]:
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {path.stem: loaded}
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:  # zipfile, zlib and numpy each have errors of their own
        raise FileError(
            path,
            found=f"not readable as numpy arrays ({one_line(error)})",
            hint="it may be cut short or hold Python objects: save arrays of floats again",
        ) from None


def _read_safetensors(path: Path) -> dict[str, Array]:
    try:
        from safetensors import safe_open
    except ImportError:
        raise _needs(path, "safetensors") from None
    framework = "numpy"
    try:
        try:
            import torch  # noqa: F401

            framework = "pt"  # numpy has no bfloat16
        except ImportError:
            pass
        with safe_open(path, framework=framework) as file:
            return {name: as_array(file.get_tensor(name), name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        problem = f"not readable as safetensors ({one_line(error)})"
        raise FileError(path, found=problem, hint="save it again; it may be cut short") from None


def _read_torch(path: Path) -> dict[str, Array]:
    try:
        import torch
    except ImportError:
        raise _needs(path, "torch") from None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise FileError(
            path,
            found=f"more than weights, or damaged ({one_line(error)})",
            hint="nothing is unpickled here; where you trust it, save the weights alone with "
            "torch.save(model.state_dict(), path)",
        ) from None
    arrays = dict(_tensors(loaded, ""))
    if not arrays:
        raise FileError(path, found="no tensor in it", hint="save model.state_dict()")
    return arrays


def _tensors(loaded: Any, name: str) -> list[tuple[str, Array]]:
    if isinstance(loaded, Mapping):
        prefix = f"{name}." if name else ""
        return [pair for key in loaded for pair in _tensors(loaded[key], f"{prefix}{key}")]
    if hasattr(loaded, "detach"):
        return [(name or "tensor", as_array(loaded, name))]
    return []


def _needs(path: Path, library: str) -> FileError:
    return FileError(
        path,
        found=f"a {path.suffix} file, which {library} reads, and {library} is not installed",
        hint="pip install 'kgtrec[embeddings]', or convert it with numpy.savez",
    )
