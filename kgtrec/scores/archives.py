"""Arrays of ``.npy`` and ``.npz`` files, read whole, with errors that name file and remedy.

Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array
from kgtrec._internal.structured import parse_json
from kgtrec._internal.system import reason_of
from kgtrec._internal.unpacking import check_members
from kgtrec.errors import FileError, PathName

FORMULA = "formula"
"""Name of the array with the text of a `Formula`."""

_FACTORS = ("queries", "entities", "bias", "metric")


@dataclass(frozen=True)
class Formula:
    """What a file of `Factors` says about the model that they come from.

    - declared: The model and its settings, by the names of `Factors.from_embeddings`.
    - facts: Sentences on the formula, which results print.
    """

    declared: Mapping[str, str | float] = field(default_factory=dict)
    facts: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return the formula as JSON."""
        return json.dumps({"declared": dict(self.declared), "facts": self.facts}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Formula:
        """Read what `to_text` returned; ValueError for any other text."""
        content = parse_json(text)
        declared, facts = content["declared"], content["facts"]
        if not isinstance(declared, dict) or not isinstance(facts, list):
            raise ValueError("no declarations, or no facts")
        if not all(isinstance(value, (str, float)) for value in declared.values()):
            raise ValueError("a declaration that is neither a text nor a number")
        if not all(isinstance(fact, str) for fact in facts):
            raise ValueError("a fact that is not a text")
        return cls(declared, tuple(facts))


def check_factor_names(path: PathName, names: Iterable[str]) -> None:
    """Raise FileError if an archive lacks an array of a factorised model, or has another array."""
    arrays = set(names)
    if not {"queries", "entities"} <= arrays:
        raise FileError(
            path,
            found=f"arrays {sorted(arrays)}, but a factorised model needs 'queries' and 'entities'",
            hint="save queries (rows, dim), entities (entities, dim) and, if any, bias; or save "
            "a score matrix as .npy; if these are embeddings of a known model, name it where they "
            "are ranked: option model of kgtrec rank, key model of a job file, argument model of "
            "Factors.from_embeddings",
        )
    unknown = sorted(arrays - {*_FACTORS, FORMULA})
    if unknown:  # a bias under another name would be lost silently
        raise FileError(
            path,
            found=f"unknown arrays: {', '.join(map(repr, unknown))}",
            hint=f"leave them out; a factorised model has {', '.join(_FACTORS)}",
        )


def read_formula(path: PathName, text: Any) -> Formula:
    """Parse the array `FORMULA` of an archive; FileError if `Factors.save` did not write it."""
    try:
        return Formula.from_text(str(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = f"an array {FORMULA!r} that Factors.save did not write"
        raise FileError(path, found=problem, hint="save the factors again") from None


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an ``.npz``, without reading them; FileError."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as loaded:
            return [*loaded.files]
    except Exception as error:  # zipfile, zlib and numpy each raise their own errors
        raise _explain_failure(path, error) from None


def read_arrays(
    path: Path, names: Iterable[str] | None = None, *, texts: Collection[str] = ()
) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` by name, or the array of a ``.npy`` with the file's name.

    - names: Arrays of an ``.npz`` to read; None: all.
    - texts: Arrays that contain texts; the error for Python objects then says how to save these.
    """
    reading = ""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {path.stem: loaded}
            check_members(path, loaded.zip)
            arrays = {}
            for reading in names or loaded.files:
                arrays[reading] = loaded[reading]
            others = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
            if not others:
                return arrays
            reason = f"its member {others[0]!r} is not an array"
    except FileError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise their own errors
        raise _explain_failure(path, error, reading if reading in texts else "") from None
    raise _not_readable(path, reason)


def _explain_failure(path: Path, error: Exception, texts: str = "") -> FileError:
    """Return the error for arrays that cannot be read; `texts` names the array of texts that was
    read, if any."""
    if isinstance(error, OSError) and error.errno is not None:
        return unreadable(path, error)
    reason = one_line(error)
    if texts and "Python objects" in reason:
        problem = f"array {texts!r} contains Python objects, which are never unpickled"
        hint = f"save it as numpy.array({texts}, dtype=str)"
        return FileError(path, found=problem, hint=hint)
    return _not_readable(path, reason)


def _not_readable(path: Path, reason: str) -> FileError:
    """Return the error for a file that has no arrays, or cut or pickled ones."""
    kind, save = ("array", "save") if path.suffix == ".npy" else ("archive", "savez")
    problem = f"not a readable {path.suffix} {kind} ({reason})"
    hint = f"save it with numpy.{save}; it may be cut short or contain Python objects"
    return FileError(path, found=problem, hint=hint)


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
