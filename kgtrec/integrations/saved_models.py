"""The formula of a saved model, from its config.json, single values and names of arrays.

The tables here say what each program computes, according to its source code. `embeddings` reads the
arrays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array
from kgtrec._internal.locations import local_copy
from kgtrec._internal.system import reason_of
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.scores.archives import one_line
from kgtrec.scores.formulas import REFUSED

CONFIG = "config.json"
CHECKPOINT = "checkpoint"

_ROTATE, _DGL, _OPENKE = "RotatE's own program", "DGL-KE", "OpenKE"
_PYKEEN, _PYG = "PyKEEN", "PyTorch Geometric"
_HAKE = "HAKE's program"

SINGLE_VALUES = {
    "zero_const",
    "pi_const",
    "margin",
    "epsilon",
    "gamma",
    "embedding_range",
    "ent_embedding_range",
    "rel_embedding_range",
    "modulus",
    "phase_weight",
    "modulus_weight",
    "adv_temperature",
    "regularization_term",
    "epoch",
    "step",
    "current_learning_rate",
    "warm_up_steps",
}
"""Names of single values that programs save with their vectors, of shape (), (1,) or (1, 1)."""

_MODELS: dict[str, dict[str, tuple[str, str | None]]] = {
    _ROTATE: {
        "TransE": ("transe", "l1"),
        "DistMult": ("distmult", None),
        "ComplEx": ("complex", None),
        "RotatE": ("rotate", "l1"),
        "pRotatE": ("protate", None),
        "HAKE": ("hake", None),
        "ModE": ("mode", None),
    },
    _DGL: {
        "TransE": ("transe", "l2"),
        "TransE_l2": ("transe", "l2"),
        "TransE_l1": ("transe", "l1"),
        "DistMult": ("distmult", None),
        "ComplEx": ("complex", None),
        "RESCAL": ("rescal", None),
        "RotatE": ("rotate", "l1"),
        "SimplE": ("simple", None),
    },
}
"""Formula and norm of the models that a configuration names, by program."""

_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    _ROTATE: {
        "model": ("model",),
        "dim": ("hidden_dim",),
        "entity": ("double_entity_embedding",),
        "relation": ("double_relation_embedding",),
    },
    _DGL: {
        "model": ("model_name", "model"),
        "dim": ("hidden_dim", "emb_size"),
        "entity": ("double_ent",),
        "relation": ("double_rel",),
    },
}
"""Keys of a configuration, by program: the model, the dimension, and "vectors are doubled"."""

_NORMS = {
    _ROTATE: {"rotate": "l1", "transe": "l1"},
    _OPENKE: {"rotate": "l1"},
    _PYKEEN: {"rotate": "l2"},
    _PYG: {"rotate": "l2"},
}
"""Norms that a program always uses, by formula."""

_DEFAULT_NORMS = {
    _OPENKE: "p_norm is 1 by default",
    _PYKEEN: "scoring_fct_norm is 1 by default",
    _PYG: "p_norm is 1 by default",
}
"""Default norm of TransE in each program, for messages."""


@dataclass(frozen=True)
class SavedModel:
    """The formula of a model, as far as its files say it; None: they do not.

    - model, norm, phases, normalize, phase_weight, modulus_weight: As for
      `Factors.from_embeddings`, phases as a number.
    - origin: Where each of them comes from, by name.
    - pairs: True if complex vectors alternate real and imaginary parts: real, imaginary, ...
    - halves: True if a row of entities or relations holds two vectors, one after the other.
    """

    program: str = ""
    model: str | None = None
    norm: str | None = None
    phases: float | None = None
    normalize: str | None = None
    phase_weight: float | None = None
    modulus_weight: float | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    pairs: bool = False
    halves: bool = False


# -- config.json -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configuration:
    """The configuration that a program wrote beside its vectors.

    - program: Name of the program; empty if kgtrec does not know it, or there is no file.
    - notes: Sentences for users about a file that is ignored.
    """

    path: Path = Path()
    values: Mapping[str, Any] = field(default_factory=dict)
    program: str = ""
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> Any:
        """Return the value of ``model``, ``dim``, ``entity`` or ``relation``; None without one."""
        return next((self.values[key] for key in self.keys(name)), None)

    def keys(self, name: str) -> list[str]:
        """Return the keys of the file that mean ``name``."""
        return [key for key in _KEYS[self.program][name] if key in self.values]

    def number(self, key: str) -> float:
        """Return a positive number, or a gamma of 0; FileError for other values."""
        value = self.values.get(key)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        number = float(value or 0) if is_number else math.nan
        if 0 < number < 1e9 or (number == 0 and key == "gamma"):
            return number
        problem = f"{key} is {value!r}" if key in self.values else f"no {key}"
        raise FileError(self.path, found=problem, hint="it must be a positive number")

    @property
    def dim(self) -> int:
        """Dimension of the model, before any vectors are doubled."""
        key = next(iter(self.keys("dim")), "hidden_dim")
        value = self.number(key)
        if not value.is_integer():
            raise FileError(self.path, found=f"{key} is {value}", hint="give a whole number")
        return int(value)


def read_configuration(arrays: Path, path: PathName | None = None) -> Configuration:
    """Read the configuration at a path, by default the file beside the arrays.

    Parameters
    ----------
    arrays : path
        A folder of arrays, or a file with all.
    path : path, optional
        It must be the configuration of a program that kgtrec knows.
    """
    if path is not None:
        with local_copy(path) as copy:
            config = _read(copy, path)
        if not config.program:
            raise FileError(
                path,
                found="no configuration of a program that kgtrec knows",
                hint="it must have hidden_dim and gamma (RotatE's own program, RNNLogic, HAKE), or "
                "model_name, hidden_dim or emb_size, and gamma (DGL-KE)",
            )
        return config
    beside = (arrays if arrays.is_dir() else arrays.parent) / CONFIG
    if not beside.is_file():
        return Configuration()
    try:
        config = _read(beside, beside)
    except FileError:
        config = Configuration()
    if config.program or not arrays.is_dir():
        return config if config.program else Configuration()
    note = f"{CONFIG} is ignored: it names no model of RotatE's own program, HAKE's or DGL-KE"
    return Configuration(notes=(note,))


def _read(file: Path, path: PathName) -> Configuration:
    """Read a configuration and detect its program; FileError if it is not a JSON object.

    - path: The name for messages, if `file` is a copy.
    """
    hint = "give the config.json that the program wrote beside the vectors"
    try:
        values = json.loads(file.read_bytes())
    except OSError as error:
        raise FileError(path, found=reason_of(error), hint=hint) from None
    except ValueError as error:  # also of bytes that are not UTF-8
        raise FileError(path, found=f"not JSON ({one_line(error)})", hint=hint) from None
    if not isinstance(values, dict):
        raise FileError(path, found=f"a JSON {type(values).__name__}, not an object", hint=hint)
    return Configuration(Path(path), values, _program_of_config(values))


def _program_of_config(values: Mapping[str, Any]) -> str:
    """Return the program with these keys, of which one may be missing; "" if unknown."""
    if "model_name" in values or {"model", "emb_size"} <= values.keys():
        signs = {"hidden_dim", "emb_size", "gamma", "double_ent"}
        return _DGL if len(signs & values.keys()) > 1 else ""
    signs = {"hidden_dim", "gamma", "double_entity_embedding"}
    return _ROTATE if len(signs & values.keys()) > 1 else ""


def from_config(config: Configuration, model: str | None = None) -> SavedModel:
    """Return the model of a configuration; UsageError if kgtrec does not know its formula.

    A configuration without the name of a model belongs to the ``model`` that the user named.
    """
    name, known = config.value("model"), _MODELS[config.program]
    if name is None and model is not None:
        name = next(
            (known_name for known_name in known if known_name.lower() == model.lower()), model
        )
    if name is None:
        raise UsageError(
            f"{config.path}: the configuration names no model; pass {argument('model', 'rotate')}"
        )
    if name not in known:
        text = f"{config.path}: the configuration names the model {name!r}"
        if str(name).lower() in REFUSED:
            reason, remedy = REFUSED[str(name).lower()]
            raise UsageError(f"{text}, which {reason}; {remedy}")
        raise UsageError(
            f"{text}; of this program, kgtrec scores {', '.join(known)}; pass the scores of others"
        )
    formula, norm = known[name]
    origin = {"model": f"from {config.path.name}"}
    phases = None
    if norm is not None:
        origin["norm"] = f"as in {config.program}"
    if formula in ("rotate", "protate", "hake"):
        phases = (config.number("gamma") + 2) / config.dim
        origin["phases"] = f"from {config.path.name}"
    halves = config.program == _DGL and formula == "simple"
    return SavedModel(config.program, formula, norm, phases, origin=origin, halves=halves)


def check_config(config: Configuration, model: str, arrays: Mapping[str, Array]) -> None:
    """Raise InputError if a configuration contradicts the arrays of entities and relations."""
    for role, count in (("entity", "nentity"), ("relation", "nrelation")):
        array = arrays[role]
        if array.ndim != 2:  # matrices of RESCAL, or arrays that are refused later
            continue
        due, width = _due_width(config, model, role), _width(array, arrays.get(_SECOND[role]))
        if due is not None and width != due:
            double = config.keys(role)
            text = f"{config.keys('dim')[0]} {config.dim}"
            text += f" and {double[0]} {str(config.value(role)).lower()}" if double else ""
            raise InputError(
                f"{config.path}: {text} of {model} mean {due} numbers per {role}, but the array "
                f"has {width}; give the configuration of these vectors"
            )
        rows = config.values.get(count)
        if isinstance(rows, int) and rows and rows != len(array):
            raise InputError(
                f"{config.path}: {count} is {rows}, but the array has {len(array)} vectors; give "
                "the configuration of these vectors"
            )


_MULTIPLES = {
    "rotate": {"entity": 2, "relation": 1},
    "hake": {"entity": 2, "relation": 3},
    "mode": {"entity": 1, "relation": 1},
}
"""Numbers per vector in dimensions of the model, of models that always have so many."""

_SECOND = {"entity": "entity_tail", "relation": "relation_inverse"}


def _due_width(config: Configuration, model: str, role: str) -> int | None:
    """Return how many numbers a vector has by the configuration; None if it does not say it."""
    doubled = config.value(role)
    if model in _MULTIPLES:
        return config.dim * _MULTIPLES[model][role]
    return config.dim * (2 if doubled else 1) if isinstance(doubled, bool) else None


def _width(array: Array, second: Array | None) -> int:
    """Return how many numbers a vector has in the file; complex numbers count twice."""
    halves = 1 if second is None else 2
    return int(array.shape[1]) * halves * (2 if array.dtype.kind == "c" else 1)


# -- Arrays ----------------------------------------------------------------------------------------


def split_single_values(
    arrays: Mapping[str, Array],
) -> tuple[dict[str, Array], dict[str, float]]:
    """Separate vectors and known single values, these by the last part of their names.

    Values of a loss (``loss.margin``) do not belong to the model, so they are left out.
    """
    vectors, values = {}, {}
    for name, array in arrays.items():
        last = name.rpartition(".")[2]
        if array.ndim == 0 or (last in SINGLE_VALUES and array.size == 1):
            if not name.startswith("loss.") and array.dtype.kind in "fiu":
                values[last] = float(array.reshape(-1)[0])
        else:
            vectors[name] = array
    return vectors, values


def from_arrays(names: Iterable[str], values: Mapping[str, float], model: str) -> SavedModel:
    """Return the formula that names of arrays and single values tell, as far as they do."""
    program = _program_of_arrays(names, values)
    if not program:
        return SavedModel()
    if program == _HAKE:
        return from_weights(values, "from the file")
    phases = None
    origin = {}
    norm = _NORMS.get(program, {}).get(model)
    if norm is not None:
        origin["norm"] = f"as in {program}"
    scale = values.get("rel_embedding_range" if program == _OPENKE else "embedding_range")
    if model in ("rotate", "protate"):
        if scale is not None and program in (_OPENKE, _ROTATE):
            phases, origin["phases"] = scale, "from the file"
        elif program == _PYG:
            phases, origin["phases"] = math.pi, f"as in {program}"
    normalize = None
    if model == "transe" and program == _PYG:
        normalize, origin["normalize"] = "entities", f"as in {program}"
    if model == "transe" and program == _OPENKE and "margin" in values:
        normalize, origin["normalize"] = "none", "as in OpenKE with norm_flag=False"
    pairs = program == _PYKEEN
    return SavedModel(program, None, norm, phases, normalize, origin=origin, pairs=pairs)


def from_weights(values: Mapping[str, float], source: str) -> SavedModel:
    """Return HAKE with the single values of its checkpoint; ``source`` is their origin."""
    return SavedModel(
        _HAKE,
        "hake",
        phases=values.get("embedding_range"),
        phase_weight=values.get("phase_weight"),
        modulus_weight=values.get("modulus_weight"),
        origin=dict.fromkeys(("model", "phases", "phase_weight", "modulus_weight"), source),
    )


def _program_of_arrays(names: Iterable[str], values: Mapping[str, float]) -> str:
    """Return the program that uses such names; "" if unknown."""
    if {"zero_const", "pi_const", "rel_embedding_range"} & values.keys():
        return _OPENKE
    if {"phase_weight", "modulus_weight"} <= values.keys():
        return _HAKE
    if "embedding_range" in values and "gamma" in values:
        return _ROTATE
    names = list(names)
    if any("entity_representations." in name for name in names):
        return _PYKEEN
    return _PYG if any("node_emb." in name for name in names) else ""


def ask_of_program(
    path: PathName, saved: SavedModel, model: str, norm: str | None, normalize: str | None
) -> None:
    """Raise UsageError for TransE of a known program whose files do not tell the formula."""
    if model != "transe" or not saved.program:
        return
    if norm is None:
        raise UsageError(
            f"{path}: {saved.program} saved it, without the norm of TransE "
            f"({_DEFAULT_NORMS[saved.program]}); pass {argument('norm', 'l1')} or "
            f"{argument('norm', 'l2')}"
        )
    if normalize is None and saved.program == _OPENKE:
        raise UsageError(
            f"{path}: OpenKE saved it, without norm_flag (by default True: TransE scales vectors "
            f"to length 1); pass {argument('normalize', 'vectors')} or "
            f"{argument('normalize', 'none')}"
        )
