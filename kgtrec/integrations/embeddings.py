"""Read models' vectors from files, by their names there. Nothing is unpickled.

Examples
--------
>>> load_factors("model.npz", questions, "distmult")                             # doctest: +SKIP
>>> vectors = load_embeddings("model.safetensors")                               # doctest: +SKIP
>>> Factors.from_embeddings(questions, "complex", entity=vectors["entity"],      # doctest: +SKIP
...                         relation=vectors["relation"])
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array
from kgtrec._internal.locations import is_folder, is_location, local_copy
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.integrations.saved_models import (
    CHECKPOINT,
    SavedModel,
    ask_of_program,
    check_config,
    from_arrays,
    from_config,
    from_weights,
    read_configuration,
    split_single_values,
)
from kgtrec.questions.api import Questions
from kgtrec.scores.archives import FORMULA, Formula, one_line, read_arrays, read_formula
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import EVERY_ROW, Factors, build_factors, read_parts
from kgtrec.scores.formulas import Parts, check_model, describe, half_turn_of
from kgtrec.scores.pairs import PairVectors

_ENTITY = {"entity", "ent", "e", "node"}
_ROLES: tuple[tuple[str, set[str], set[str]], ...] = (
    ("core", {"core"}, set()),
    ("bias", {"bias"}, set()),
    ("entity_tail", _ENTITY, {"tail", "t"}),
    ("entity", _ENTITY, set()),
    ("relation_inverse", {"relation", "rel", "r"}, {"inverse", "inv"}),
    ("relation", {"relation", "rel", "r"}, set()),
)
"""Arguments of `Factors.from_embeddings`, and words of the names that mean them.

A name has a word of the first set and, if that is not empty, a word of the second.
"""

_IMAGINARY = {"im", "img", "imag", "imaginary"}
_OF_DGL_KE = re.compile(r".+_(?:Trans\w+|RESCAL|DistMult|ComplEx|RotatE|SimplE)_(entity|relation)")
_STATES = ("model_state_dict", "state_dict", "model")
"""Keys under which training loops save a model's state dict, beside that of the optimizer."""


def load_factors(
    path: PathName,
    questions: Questions,
    model: str | None = None,
    *,
    norm: str | None = None,
    phases: float | str | None = None,
    normalize: str | None = None,
    phase_weight: float | None = None,
    modulus_weight: float | None = None,
    model_config: PathName | None = None,
    inverse: str = "none",
    rows: str = "questions",
) -> Factors:
    """Read the vectors of a known embedding model as `Factors` for the questions.

    The model is scored by the formula of the program that saved it, if names in the file or a
    configuration tell which program that was.

    Parameters
    ----------
    path : path
        As for `load_embeddings`. The arrays are found by their names, such as ``entity``,
        ``entities``, ``ent_embeddings.weight`` and ``relation``, ``rel_emb``; real and imaginary
        parts may be separate arrays (``ent_re_embeddings``). Known single values, such as
        ``rel_embedding_range``, are used or ignored by their names.
    questions : Questions
    model : str, optional
        As for `Factors.from_embeddings`. By default, the model that the configuration names.
    norm, phases, normalize, phase_weight, modulus_weight, inverse, rows
        As for `Factors.from_embeddings`. HAKE's weights, and the scale of its phases, are by
        default those of the file ``checkpoint`` in the folder of the arrays (with torch).
    model_config : path, optional
        The ``config.json`` of RotatE's own program (or RNNLogic), HAKE's or DGL-KE. By default, the
        one in the folder of the arrays, if it is such a file.

    Raises
    ------
    FileError
        As for `load_embeddings`; arrays with unknown names, or two names of the same role; a
        configuration that cannot be read.
    InputError, UsageError
        As for `Factors.from_embeddings`; the message names the file. Also if a configuration
        contradicts the arrays or an argument, or if programs differ and nothing says which one
        saved the model.
    """
    file = ModelFile(
        path,
        model,
        norm,
        phases,
        normalize,
        phase_weight,
        modulus_weight,
        model_config,
        inverse,
    )
    return file.factors(questions, rows)


@dataclass(frozen=True)
class ModelFile:
    """The vectors of a model in files, as scores for `kgtrec.cluster.rank` and job arrays.

    Parts of a ranking compute the queries of their own rows only.

    Parameters
    ----------
    path, model, norm, phases, normalize, phase_weight, modulus_weight, model_config, inverse
        As for `load_factors`.
    """

    path: PathName
    model: str | None = None
    norm: str | None = None
    phases: float | str | None = None
    normalize: str | None = None
    phase_weight: float | None = None
    modulus_weight: float | None = None
    model_config: PathName | None = None
    inverse: str = "none"

    @property
    def options(self) -> dict[str, Any]:
        """Return the options that say how the vectors are scored, by name."""
        names = [field.name for field in fields(self)][1:]
        return {name: getattr(self, name) for name in names if name != "model_config"}

    def has_factors(self) -> bool:
        """Return True if `Factors.save` wrote the file; UsageError if an option contradicts it."""
        formula = _read_saved_formula(self.path)
        if formula is None:
            return False
        if self.model_config is not None:
            raise UsageError(
                f"{self.path}: the file says how it is scored; leave {argument('model_config')} out"
            )
        for key, value in self.options.items():
            due = formula.declared.get(key, "none" if key in ("inverse", "normalize") else None)
            if value is None or (key == "inverse" and value == "none") or _agree(key, value, due):
                continue
            text = "has none" if due is None else f"has {due!r}"
            raise UsageError(
                f"{self.path}: {argument(key, value)} contradicts the file, which {text}; leave it "
                "out, or give the embeddings from which the file was computed"
            )
        return True

    def count_entities(self) -> int:
        """Count the entities with vectors; errors are those of `load_factors`."""
        return count_entities(self.path)

    def factors(
        self, questions: Questions, rows: str = "questions", span: slice = EVERY_ROW
    ) -> Factors:
        """Read the vectors as `load_factors` does, with queries of the rows `span` only.

        Factors that `Factors.save` wrote have all their queries.
        """
        if self.has_factors():
            return Factors.load(self.path)
        declared = {name: getattr(self, name) for name in _DECLARED}
        vectors = _read_vectors(self.path, self.model, declared, self.model_config)
        arrays = dict(vectors.arrays)
        entity, relation, bias = (arrays.pop(n, None) for n in ("entity", "relation", "bias"))
        try:
            parts = read_parts(entity, relation, arrays, **vectors.declared)
            factors = build_factors(
                questions,
                vectors.model,
                parts,
                inverse=self.inverse,
                rows=rows,
                bias=bias,
                span=span,
            )
        except (InputError, UsageError) as error:
            raise type(error)(f"{self.path}: {error.marked}") from None
        factors.facts = vectors.facts()
        return factors


def _agree(key: str, value: Any, due: str | float | None) -> bool:
    """Return whether an argument is what a file declares."""
    if isinstance(due, float):
        number = half_turn_of(value) if key == "phases" else float(value)
        return number is not None and math.isclose(number, due, rel_tol=1e-5)
    return str(value).lower() == str(due).lower()


def _read_saved_formula(path: PathName) -> Formula | None:
    """Read the formula in a file of `Factors.save`; None for any other file."""
    if not os.fspath(path).endswith(".npz"):
        return None
    with local_copy(path) as copy:
        names = _names_in_archive(copy)
        if not {"queries.npy", "entities.npy", f"{FORMULA}.npy"} <= names:
            return None
        return read_formula(path, read_arrays(copy, [FORMULA])[FORMULA])


def _names_in_archive(path: Path) -> set[str]:
    """Return the names of the members of an ``.npz``; none if it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {*archive.namelist()}
    except (OSError, ValueError, zipfile.BadZipFile):
        return set()


def load_pair_vectors(
    path: PathName,
    graph: GraphData,
    model: str | None = None,
    *,
    inverse: str = "none",
    columns: Any = None,
    model_config: PathName | None = None,
    **declared: Any,
) -> PairVectors:
    """Read vectors as scores of pairs; arguments and errors are those of `load_factors`.

    `columns` is that of `PairVectors`: the entity of each row of the vectors.
    """
    vectors = _read_vectors(path, model, declared, model_config)
    try:
        how: dict[str, Any] = {"inverse": inverse, "columns": columns}
        options: dict[str, Any] = {**how, **vectors.declared, **vectors.arrays}
        scores = PairVectors(graph, vectors.model, **options)
    except (InputError, UsageError) as error:
        raise type(error)(f"{path}: {error.marked}") from None
    scores.facts = vectors.facts()
    return scores


class _Vectors(NamedTuple):
    """The vectors of a model, and what its file or the caller says about its formula.

    - declared: Arguments for the formula: norm, phases and normalize.
    - origin: Where each of these comes from, unless the caller gave it.
    - notes: Sentences about files that were ignored.
    """

    model: str
    arrays: dict[str, Array]
    declared: dict[str, Any]
    origin: dict[str, str]
    notes: tuple[str, ...]

    def facts(self) -> tuple[str, ...]:
        """Return sentences about the formula."""
        parts = Parts(self.arrays["entity"], self.arrays["relation"], **self.declared)
        return (*describe(self.model, parts, self.origin), *self.notes)


_DECLARED = ("norm", "phases", "normalize", "phase_weight", "modulus_weight")


def _read_vectors(
    path: PathName,
    model: str | None,
    declared: Mapping[str, Any],
    model_config: PathName | None = None,
) -> _Vectors:
    """Read the vectors and settle the formula; ``declared`` has other arguments by name."""
    arguments = {"model": model} | {name: declared.get(name) for name in _DECLARED}
    with local_copy(path, folders=True) as copy:
        arrays = _load(copy)
        vectors, values = split_single_values(arrays)
        texts = _read_texts(arrays)
        named = model if model is not None else texts.get("model")
        config = read_configuration(copy, model_config)
        if config.program:
            saved = from_config(config, named)
        else:
            saved = from_arrays(vectors, values, str(named).lower())
        saved = _with_texts(path, saved, texts)
        name = model if model is not None else saved.model
        if str(name).lower() == "hake" and saved.model in (None, "hake"):
            saved = _with_weights(saved, copy, vectors, values, arguments)
    if name is None:
        raise UsageError(f"{path}: name the model of these vectors (model='complex' or the like)")
    _refuse_contradictions(path, saved, arguments)
    name = _check_model_of_file(path, name)
    normalize = arguments["normalize"]
    if normalize is not None and name != "transe":
        raise UsageError(
            f"{argument('normalize', normalize)} has no effect on {name}; leave it out"
        )
    arrays = _arrange(name, saved, _by_role(path, vectors))
    if config.program:
        check_config(config, name, arrays)
    used: dict[str, Any] = {
        key: getattr(saved, key) if value is None else value for key, value in arguments.items()
    }
    ask_of_program(path, saved, name, used["norm"], used["normalize"])
    used["phases"] = half_turn_of(used["phases"])
    used["normalize"] = used["normalize"] or "none"
    origin = {key: text for key, text in saved.origin.items() if arguments[key] is None}
    return _Vectors(
        name, arrays, {key: used[key] for key in _DECLARED}, origin, tuple(config.notes)
    )


def _read_texts(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Return the model and its settings that an ``.npz`` names, as arrays of a single text."""
    names = ("model", "norm", "normalize", "phases")
    return {
        name: str(arrays[name])
        for name in names
        if name in arrays and arrays[name].ndim == 0 and arrays[name].dtype.kind == "U"
    }


def _with_texts(path: PathName, saved: SavedModel, texts: Mapping[str, str]) -> SavedModel:
    """Add what a file names to a model; UsageError if its configuration names something else."""
    _refuse_contradictions(path, saved, texts)
    origin = {**saved.origin, **dict.fromkeys(texts, "from the file")}
    settings: dict[str, Any] = dict(texts)
    if "phases" in texts:
        settings["phases"] = half_turn_of(texts["phases"])
    return replace(saved, **settings, origin=origin)


def _with_weights(
    saved: SavedModel,
    path: Path,
    vectors: Mapping[str, Array],
    values: Mapping[str, float],
    arguments: Mapping[str, str | float | None],
) -> SavedModel:
    """HAKE with the weights and the scale of its checkpoint: the file itself, or in its folder.

    The scale in the checkpoint is that of the training, which a later config.json may not have.
    """
    weights = ("phase_weight", "modulus_weight")
    of_model = {key: text for key, text in saved.origin.items() if key == "model"}
    if {*weights} <= values.keys():
        of_file = from_weights(values, "from the file")
        return replace(of_file, origin={**of_file.origin, **of_model})
    file = path / CHECKPOINT
    if all(arguments[name] is not None for name in weights) or not file.is_file():
        return saved
    try:
        state, values = split_single_values(_load(file))
    except FileError as error:
        raise error.add(
            f"; or pass the trained weights that it has, as in {argument('phase_weight', 0.7)} and "
            f"{argument('modulus_weight', 3.5)}"
        ) from None
    for name, array in vectors.items():
        if name in state and not np.array_equal(array, state[name]):
            problem = f"another {name} than {name}.npy beside it"
            raise FileError(file, found=problem, hint="give the files of one model")
    of_file = from_weights(values, f"from {CHECKPOINT}")
    return replace(of_file, origin={**of_file.origin, **of_model})


def count_entities(path: PathName) -> int:
    """Count the entities with vectors in a file; errors are those of `load_factors`."""
    with local_copy(path, folders=True) as copy:
        vectors, _ = split_single_values(_load(copy))
    return len(_by_role(path, vectors)["entity"])


def is_vector_file(path: PathName) -> bool:
    """Return True if a path may have embeddings: an ending of `load_embeddings`, or a folder.

    False for ``.npy`` files, which are score matrices, and for files of queries and entities.
    """
    if Path(path).suffix == ".npz":
        with local_copy(path) as copy:
            return "queries.npy" not in _names_in_archive(copy)
    return Path(path).suffix in (".safetensors", ".pt", ".pth", ".ckpt") or is_folder(path)


def is_saved_model(path: PathName) -> bool:
    """Return True for vectors whose file names their model.

    It is an ``.npz`` with ``model``, or lies beside the configuration of a program that kgtrec
    knows. False for files of queries and entities, and for ``.npy`` files, which are score
    matrices.
    """
    if not is_location(path) and Path(path).suffix == ".npz":
        names = _names_in_archive(Path(path))
        if "model.npy" in names and "queries.npy" not in names:
            return True
    if is_location(path) or not Path(path).exists() or not read_configuration(Path(path)).program:
        return False
    file = Path(path)
    if file.is_dir():
        words = set().union(*(_words(array.stem) for array in file.glob("*.npy")))
        return {"entity", "relation"} <= words
    if file.suffix == ".npz" and zipfile.is_zipfile(file):
        return "queries.npy" not in _names_in_archive(file)
    return file.suffix != ".npy"


def _refuse_contradictions(
    path: PathName, saved: SavedModel, arguments: Mapping[str, str | float | None]
) -> None:
    """Raise UsageError if an argument contradicts what the files of a model say."""
    for key, value in arguments.items():
        due = getattr(saved, key)
        if value is None or due is None:
            continue
        if isinstance(due, float):
            half_turn, text = half_turn_of(value), f"{due:.6g}"
            same = half_turn is not None and math.isclose(due, half_turn, rel_tol=1e-5)
        else:
            same, text = str(value).lower() == str(due).lower(), repr(due)
        if not same:
            raise UsageError(
                f"{path}: {argument(key, value)} contradicts {text}, {saved.origin.get(key, '')}; "
                "leave "
                "it out, or give the arrays without the file that says so"
            )


def _check_model_of_file(path: PathName, model: str) -> str:
    """Return the name of a known model in lower case; the UsageError names the file."""
    try:
        return check_model(model)
    except UsageError as error:
        raise UsageError(f"{path}: {error.marked}") from None


def factors_of(path: PathName, questions: Questions, model: str, **options: Any) -> Factors:
    """Call `Factors.from_embeddings`; its errors name the file."""
    try:
        return Factors.from_embeddings(questions, model, **options)
    except (InputError, UsageError) as error:
        raise type(error)(f"{path}: {error.marked}") from None


def _by_role(path: PathName, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays by argument; FileError for an unknown name, or without entity or relation.

    Separate arrays of real and imaginary parts become one array of complex numbers.
    """
    names: dict[tuple[str, bool], str] = {}
    _refuse_scores(path, arrays)
    for name in arrays:
        words, role = _words(name), _role_of(name)
        key = role, bool(words & _IMAGINARY)
        if not role or key in names:
            problem = f"an array {name!r}, whose meaning is unknown"
            if role:
                problem = f"arrays {names[key]!r} and {name!r}, which both look like {role}"
            raise _naming_error(path, problem)
        names[key] = name
    roles = {role: arrays[name] for (role, imaginary), name in names.items() if not imaginary}
    for (role, imaginary), name in names.items():
        if imaginary and (role not in roles or roles[role].shape != arrays[name].shape):
            raise _naming_error(path, f"an array {name!r} without real parts of the same shape")
        if imaginary:
            roles[role] = roles[role] + np.complex64(1j) * arrays[name]
    if not {"entity", "relation"} <= roles.keys():
        raise _naming_error(path, f"arrays {', '.join(map(repr, arrays)) or 'without a dimension'}")
    return roles


def _refuse_scores(path: PathName, arrays: Mapping[str, Array]) -> None:
    """Raise FileError for scores, and for queries and entities, which need no formula."""
    problem = ""
    if {"queries", "entities"} <= arrays.keys():
        problem = "queries and entities, which are scored as they are"
    elif arrays and not any(map(_role_of, arrays)) and {a.ndim for a in arrays.values()} == {2}:
        shown = ", ".join(map(repr, [*arrays][:3])) + ", ..." * (len(arrays) > 3)
        problem = f"no vectors of entities and relations, only {shown}"
    if problem:
        hint = (
            f"if these are scores, leave out {argument('model')} and {argument('model_config')}; "
            "if they are vectors, save them with numpy.savez(path, entity=..., relation=...)"
        )
        raise FileError(path, found=problem, hint=hint)


def _role_of(name: str) -> str:
    """Return the argument that an array's name means; empty if its meaning is unknown."""
    words = _words(name)
    fitting = (r for r, first, second in _ROLES if words & first and (words & second or not second))
    role = next(fitting, "")
    is_of_layer = role == "bias" and len(words) > 1 and not words & _ENTITY  # such as bn0.bias
    return "" if is_of_layer else role


def _words(name: str) -> set[str]:
    """Return the words of an array's name, in the singular."""
    saved = _OF_DGL_KE.fullmatch(name)
    words = re.findall("[a-z]+", (saved[1] if saved else name).lower())
    singular = {"entities": "entity", "bias": "bias"}
    return {singular.get(word, word.removesuffix("s")) for word in words}


def _arrange(model: str, saved: SavedModel, arrays: dict[str, Array]) -> dict[str, Array]:
    """Convert arrays for `Factors.from_embeddings`: complex numbers, matrices, halves."""
    entity, relation = arrays["entity"], arrays["relation"]
    if saved.pairs and model in ("complex", "rotate"):
        for role, array in arrays.items():
            if array.ndim == 2 and array.shape[1] % 2 == 0 and array.dtype.kind == "f":
                arrays[role] = array[:, ::2] + np.complex64(1j) * array[:, 1::2]
    dim = entity.shape[-1]
    if model == "rescal" and relation.ndim == 2 and relation.shape[1] == dim * dim:
        arrays["relation"] = relation.reshape(-1, dim, dim)
    if model == "simple" and saved.halves and not dim % 2 and not relation.shape[-1] % 2:
        arrays["entity"], arrays["entity_tail"] = np.hsplit(entity, 2)
        arrays["relation"], arrays["relation_inverse"] = np.hsplit(relation, 2)
    return arrays


def _naming_error(path: PathName, problem: str) -> FileError:
    hint = "save only the embeddings, with numpy.savez(path, entity=..., relation=...)"
    return FileError(path, found=problem, hint=hint)


def load_embeddings(path: PathName) -> dict[str, Array]:
    """Read the arrays of a model, by their names in the file.

    Parameters
    ----------
    path : path
        ``.npz``; ``.npy`` (one array, named like the file); ``.safetensors`` (with that library);
        ``.pt``, ``.pth``, ``.ckpt`` or a file without an ending (RotatE's ``checkpoint``), a state
        dict (with torch, ``weights_only``: no code runs). A folder: its ``.npy`` files.

    Returns
    -------
    dict of str to ndarray
        bfloat16 becomes float32, exactly. Nested state dicts have names with dots; of a training
        loop's checkpoint, only the model's state dict is read.

    Raises
    ------
    FileError
        A file that is missing, damaged or of another kind, that only pickle could read, or whose
        library is not installed.
    """
    with local_copy(path, folders=True) as copy:
        return _load(copy)


def _load(path: Path) -> dict[str, Array]:
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
    if path.suffix in (".pt", ".pth", ".ckpt") or (not path.suffix and zipfile.is_zipfile(path)):
        save = (
            "load it in torch and save only the weights with torch.save(model.state_dict(), path)"
        )
        arrays = dict(_tensors(_state_of_model(load_weights(path, "weights", save)), ""))
        if arrays:
            return arrays
        raise FileError(path, found="the file contains no tensor", hint="save model.state_dict()")
    raise FileError(
        path,
        found=f"a file {f'ending in {path.suffix}' if path.suffix else 'without an ending'}",
        hint="kgtrec reads vectors from .npz, .npy, .safetensors, .pt, .pth, .ckpt; convert it "
        "with numpy.savez",
    )


def _state_of_model(loaded: Any) -> Any:
    """Return the model's state dict of a training loop's checkpoint, or all of another file."""
    while isinstance(loaded, Mapping):
        key = next((key for key in _STATES if isinstance(loaded.get(key), Mapping)), None)
        if key is None or not _tensors(loaded[key], ""):
            break
        loaded = loaded[key]
    return loaded


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
    """Read a file with torch; no code in it runs.

    FileError if it contains more than `content`, with the `advice` for files that users trust.
    """
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
    """Return the names and arrays of all tensors in nested dictionaries."""
    if isinstance(loaded, Mapping):
        prefix = f"{name}." if name else ""
        return [pair for key in loaded for pair in _tensors(loaded[key], f"{prefix}{key}")]
    if hasattr(loaded, "detach"):
        return [(name or "tensor", as_array(loaded, name))]
    return []


def _needs(path: Path, library: str) -> FileError:
    return FileError(
        path,
        found=f"{f'a {path.suffix} file' if path.suffix else 'the file'} needs {library}, which is "
        "not installed",
        hint="pip install 'kgtrec[embeddings]', or convert it with numpy.savez",
    )
