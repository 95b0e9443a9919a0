"""Arrays of ``.npy`` and ``.npz`` files, read whole, with errors that name file and remedy.

Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array
from kgtrec._internal.system import reason_of
from kgtrec._internal.unpacking import check_members
from kgtrec.errors import FileError, PathName

_FACTORS = ("queries", "entities", "bias", "metric")


def check_factor_names(path: PathName, names: Iterable[str]) -> None:
    """Raise FileError if an archive lacks an array of a factorised model, or has another array."""
    arrays = set(names)
    if not {"queries", "entities"} <= arrays:
        raise FileError(
            path,
            found=f"arrays {sorted(arrays)}, but a factorised model needs 'queries' and 'entities'",
            hint="save queries (rows, dim), entities (entities, dim) and, if any, bias; or save "
            "a score matrix as .npy; if these are embeddings of a known model, name it: "
            f"{argument('model')} (of Factors.from_embeddings)",
        )
    unknown = sorted(arrays - set(_FACTORS))
    if unknown:  # a bias under another name would be lost silently
        raise FileError(
            path,
            found=f"unknown arrays: {', '.join(map(repr, unknown))}",
            hint=f"leave them out; a factorised model has {', '.join(_FACTORS)}",
        )


def read_arrays(path: Path) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` by name, or the array of a ``.npy`` with the file's name."""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {path.stem: loaded}
            check_members(path, loaded.zip)
            arrays = {name: loaded[name] for name in loaded.files}
            others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
            if not others:
                return arrays
            reason = f"its member {others[0]!r} is not an array"
    except FileError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise their own errors
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(path, error) from None
        reason = one_line(error)
    kind, save = ("array", "save") if path.suffix == ".npy" else ("archive", "savez")
    problem = f"not a readable {path.suffix} {kind} ({reason})"
    hint = f"save it with numpy.{save}; it may be cut short or contain Python objects"
    raise FileError(path, found=problem, hint=hint)


def one_line(error: BaseException) -> str:
    """Return the message of a decoder's error, in a line of reasonable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    if "Object arrays" in text or "Python objects in dtype" in text:
        return "it contains Python objects: convert it with numpy.stack(...).astype('float32')"
    return text if len(text) <= 160 else f"{text[:160]}..."


def unreadable(path: Path, error: OSError) -> FileError:
    """Return the error for a file that the system cannot open or map, with a remedy."""
    hint = "check the path and its permissions"
    if error.errno == errno.ENOMEM:
        hint = "give a folder of smaller shards, or raise the limit on memory (ulimit -v)"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        hint = "raise the limit of open files (ulimit -n), or give fewer, larger shards"
    elif error.errno == errno.ENOENT:
        hint = "check the name and the working folder"
    return FileError(path, found=reason_of(error), hint=hint)
