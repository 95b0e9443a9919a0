"""Read models' vectors from files, by their names there. Nothing is unpickled.

Examples
--------
>>> load_factors("model.npz", questions, "distmult")                             # doctest: +SKIP
>>> vectors = load_embeddings("model.safetensors")                               # doctest: +SKIP
>>> Factors.from_embeddings(questions, "complex", entity=vectors["entity"],      # doctest: +SKIP
...                         relation=vectors["relation"])
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgtrec._internal.csr import Array
from kgtrec._internal.locations import fetched
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.questions.questions import Questions
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import Factors
from kgtrec.scores.files import one_line, read_arrays

_ROLES: tuple[tuple[str, set[str], set[str]], ...] = (
    ("core", {"core"}, set()),
    ("bias", {"bias"}, set()),
    ("entity_tail", {"entity", "ent", "e"}, {"tail", "t"}),
    ("entity", {"entity", "ent", "e"}, set()),
    ("relation_inverse", {"relation", "rel", "r"}, {"inverse", "inv"}),
    ("relation", {"relation", "rel", "r"}, set()),
)
"""Arguments of `Factors.from_embeddings`: a name in a file has a word of both sets (if any)."""


def load_factors(
    path: PathName,
    questions: Questions,
    model: str,
    *,
    norm: str = "l2",
    inverse: str = "none",
    rows: str = "questions",
) -> Factors:
    """A known embedding model for the questions, from the vectors in a file.

    Parameters
    ----------
    path : path
        As for `load_embeddings`. The arrays are found by their names, such as ``entity``,
        ``entities``, ``ent_embeddings.weight`` and ``relation``, ``rel_emb``. Single values, such
        as the number of an epoch, are ignored.
    questions : Questions
    model, norm, inverse, rows : str
        As for `Factors.from_embeddings`.

    Raises
    ------
    FileError
        As for `load_embeddings`; arrays with unknown names, or two names of the same role.
    InputError, UsageError
        As for `Factors.from_embeddings`; the message names the file.
    """
    arrays = _by_role(path, load_embeddings(path))
    return factors_of(path, questions, model, norm=norm, inverse=inverse, rows=rows, **arrays)


def factors_of(path: PathName, questions: Questions, model: str, **options: Any) -> Factors:
    """`Factors.from_embeddings`, whose errors name the file."""
    try:
        return Factors.from_embeddings(questions, model, **options)
    except (InputError, UsageError) as error:
        raise type(error)(f"{path}: {error}") from None


def _by_role(path: PathName, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Arrays by argument; FileError if entity or relation is missing, or any name is unknown."""
    roles: dict[str, str] = {}
    arrays = {name: array for name, array in arrays.items() if array.ndim}
    for name in arrays:
        words = {word.removesuffix("s") for word in re.findall("[a-z]+", name.lower())}
        words |= {"entity"} if "entitie" in words else set()
        fitting = (r for r, one, two in _ROLES if words & one and (words & two or not two))
        role = next(fitting, "")
        if not role or role in roles:
            problem = f"an array {name!r}, whose meaning is unknown"
            if role:
                problem = f"arrays {roles[role]!r} and {name!r}, which both look like {role}"
            raise _misnamed(path, problem)
        roles[role] = name
    if not {"entity", "relation"} <= roles.keys():
        raise _misnamed(path, f"arrays {', '.join(map(repr, arrays)) or 'without a dimension'}")
    return {role: arrays[name] for role, name in roles.items()}


def _misnamed(path: PathName, found: str) -> FileError:
    hint = "save only the embeddings, with numpy.savez(path, entity=..., relation=...)"
    return FileError(path, found=found, hint=hint)


def load_embeddings(path: PathName) -> dict[str, Array]:
    """Arrays of a model by their names in the file.

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
        A file that is missing, damaged or of another kind, that only pickle could read, or whose
        library is not installed.
    """
    with fetched(path, folders=True) as copy:
        return _loaded(copy)


def _loaded(path: Path) -> dict[str, Array]:
    if not path.exists():
        raise FileError(path, found="the file does not exist", hint="check the name")
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        if not files:
            raise FileError(path, found="no .npy file in this folder", hint="give a file")
        return {file.stem: read_arrays(file)[file.stem] for file in files}
    if path.suffix in (".npz", ".npy"):
        return read_arrays(path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix in (".pt", ".pth"):
        save = (
            "load it in torch and save only the weights with torch.save(model.state_dict(), path)"
        )
        arrays = dict(_tensors(load_weights(path, "weights", save), ""))
        if arrays:
            return arrays
        raise FileError(path, found="the file contains no tensor", hint="save model.state_dict()")
    raise FileError(
        path,
        found=f"a file {f'ending in {path.suffix}' if path.suffix else 'without an ending'}",
        hint="kgtrec reads vectors from .npz, .npy, .safetensors, .pt, .pth; convert it with "
        "numpy.savez",
    )


def _read_safetensors(path: Path) -> dict[str, Array]:
    try:
        from safetensors import safe_open
    except ImportError:
        raise _needs(path, "safetensors") from None
    try:
        framework = "numpy"
        with suppress(ImportError):
            import torch  # noqa: F401

            framework = "pt"  # numpy has no bfloat16
        with safe_open(path, framework=framework) as file:
            return {name: as_array(file.get_tensor(name), name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        problem = f"safetensors cannot read it ({one_line(error)})"
        raise FileError(path, found=problem, hint="it may be incomplete; save it again") from None


def load_weights(path: Path, content: str, advice: str) -> Any:
    """What torch reads from a file that should have only the `content`; no code in it runs."""
    try:
        import torch
    except ImportError:
        raise _needs(path, "torch") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of zipfile, the unpickler and torch itself
        problem = f"the file contains more than {content}, or is damaged ({one_line(error)})"
        hint = f"kgtrec unpickles nothing; if you trust the file, {advice}"
        raise FileError(path, found=problem, hint=hint) from None


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
        found=f"a {path.suffix} file needs {library}, which is not installed",
        hint="pip install 'kgtrec[embeddings]', or convert it with numpy.savez",
    )
