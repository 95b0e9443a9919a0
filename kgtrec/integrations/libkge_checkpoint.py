"""Checkpoints of LibKGE as `Factors`, for the model in their configuration.

Needs torch, but not LibKGE: a checkpoint is read with ``weights_only``, and its configuration
object becomes a plain record of its attributes. No package index has LibKGE, so tests use files
written by a stand-in.

Examples
--------
>>> questions = read_graph("data/fb15k-237").questions()                         # doctest: +SKIP
>>> evaluate(checkpoint_factors("checkpoint_best.pt", questions), questions)     # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.torch_version import TorchVersion  # a str, in the options of every trained checkpoint

from kgtrec._internal.arrays import Array
from kgtrec._internal.locations import exists, is_folder, local_copy
from kgtrec.errors import FileError, PathName, UsageError
from kgtrec.integrations.embeddings import factors_of, load_weights
from kgtrec.questions.api import Questions
from kgtrec.scores.arrays import as_array
from kgtrec.scores.factors import Factors

_MODELS = {
    "DistMult": "distmult",
    "ComplEx": "complex",
    "TransE": "transe",
    "RotatE": "rotate",
    "Rescal": "rescal",
    "CP": "cp",
    "SimplE": "simple",
}
_RECIPROCAL = "ReciprocalRelationsModel"
CONVERT = (
    "import json, torch; c = torch.load('{path}', map_location='cpu', weights_only=False); "
    "torch.save({{'model': c['model'], 'config': json.loads(json.dumps(c['config'].options, "
    "default=str))}}, '{path}.plain')"
)
"""Python code that writes a checkpoint again without pickled objects; it needs LibKGE."""


class _Config:
    """The attributes of a checkpoint's ``kge.config.Config``, without its code."""

    options: Mapping[str, Any]


def checkpoint_factors(path: PathName, questions: Questions, *, rows: str = "questions") -> Factors:
    """Read the model of a checkpoint as `Factors` for the questions.

    Parameters
    ----------
    path : path
        A ``.pt`` file of LibKGE's training, or one with ``{"model": ..., "config": options}``.
    questions : Questions
        Questions of the data set's folder (``dataset.yaml``), with the checkpoint's numbers of
        entities and relations.
    rows : {"questions", "instances"}
        What a query represents, as for `kgtrec.Ranker`.

    Returns
    -------
    Factors
        The model: DistMult, ComplEx, TransE, RotatE, RESCAL, CP or SimplE with
        lookup embedders, also inside ReciprocalRelationsModel.

    Raises
    ------
    FileError
        Not a checkpoint of LibKGE, a damaged one, or one that only pickle could read.
    UsageError
        An unknown model, or one that is not a product or distance of two vectors, with the reason.
    InputError
        Vectors that do not fit the questions.
    """
    options, weights = _read(path)
    model, settings, reciprocal = _describe_model(path, options)
    vectors = (_vectors(path, weights, kind) for kind in ("entity", "relation"))
    inverse = "offset" if reciprocal else "none"
    norm = _norm(path, settings) if model in ("transe", "rotate") else "l2"
    return factors_of(
        path,
        questions,
        model,
        norm=norm,
        phases="radians",
        inverse=inverse,
        rows=rows,
        **_arrays(path, model, *vectors),
    )


def _read(path: PathName) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Read the options and the state dict of a checkpoint."""
    if not exists(path) or is_folder(path):
        raise FileError(path, found="the file does not exist", hint="give a checkpoint (.pt)")
    convert = "convert it where LibKGE is installed: " + CONVERT.format(path=path)
    known = [(_Config, "kge.config.Config"), TorchVersion]
    with local_copy(path) as copy, torch.serialization.safe_globals(known):
        loaded = load_weights(copy, "weights and a configuration", convert)
    parts = loaded if isinstance(loaded, Mapping) else {}
    config, model = parts.get("config"), parts.get("model")
    options = getattr(config, "options", None) if isinstance(config, _Config) else config
    weights = model[0] if isinstance(model, (tuple, list)) and model else model
    if not isinstance(options, Mapping) or not isinstance(weights, Mapping):
        problem = "the file contains no model with its configuration"
        raise FileError(path, found=problem, hint="give a checkpoint that LibKGE wrote")
    return options, weights


def _describe_model(path: PathName, options: Mapping[str, Any]) -> tuple[str, dict[str, Any], bool]:
    """Return the name of the formula, its settings, and True if relations have reciprocals."""
    settings = _resolve_settings(options, options.get("model"))
    reciprocal = settings.get("class_name") == _RECIPROCAL
    if reciprocal:
        settings = _resolve_settings(options, settings.get("base_model"))
    name = settings.get("class_name")
    if not isinstance(name, str):
        problem = f"its configuration names no known model ({options.get('model')!r})"
        raise FileError(path, found=problem, hint="give a checkpoint that LibKGE wrote")
    return _MODELS.get(name, name.lower()), settings, reciprocal


def _resolve_settings(options: Mapping[str, Any], section: Any) -> dict[str, Any]:
    """Return the settings of a section, or of its name, with those of the types it names.

    The settings of a section replace those of its type.
    """
    settings: dict[str, Any] = {}
    for _ in range(len(options)):  # types do not refer to each other in a circle
        if isinstance(section, str):
            section = options.get(section)
        if not isinstance(section, Mapping):
            break
        settings = {**section, **settings}
        section = section.get("type")
    return settings


def _norm(path: PathName, settings: Mapping[str, Any]) -> str:
    """Return the norm of a distance, l1 or l2; UsageError for another one."""
    norm = settings.get("l_norm", 1.0)
    if norm not in (1, 2):
        raise UsageError(f"{path}: l_norm is {norm!r}; kgtrec ranks norms 1 and 2 only")
    return f"l{int(norm)}"


def _vectors(path: PathName, weights: Mapping[str, Any], kind: str) -> Array:
    """Return the table of a lookup embedder, which has another name in older checkpoints."""
    for name in ("_embeddings", "embeddings"):
        for owner in ("", "_base_model."):
            key = f"{owner}_{kind}_embedder.{name}.weight"
            if hasattr(weights.get(key), "detach"):
                array = as_array(weights[key], key)
                if array.ndim == 2 and array.size:
                    return array
                hint = "expected a matrix with one row per entity or relation"
                raise FileError(path, found=f"{key} has shape {array.shape}", hint=hint)
    some = ", ".join(map(str, list(weights)[:4])) or "it is empty"
    raise FileError(
        path,
        found=f"no lookup embeddings for {kind} ids ({some})",
        hint="kgtrec reads models with lookup embedders; rank the scores of others with "
        "kgtrec.integrations.libkge",
    )


def _arrays(path: PathName, model: str, entity: Array, relation: Array) -> dict[str, Array]:
    """Convert vectors to the arrays of `Factors.from_embeddings`, by argument."""
    if model == "rescal":
        dim = entity.shape[1]
        if relation.shape[1] != dim * dim:
            problem = f"{relation.shape[1]} numbers per relation, {dim} per entity"
            raise FileError(path, found=problem, hint=f"RESCAL needs {dim} x {dim} per relation")
        return {"entity": entity, "relation": relation.reshape(-1, dim, dim)}
    if model not in ("cp", "simple"):
        return {"entity": entity, "relation": relation}
    if entity.shape[1] % 2 or (model == "simple" and relation.shape[1] % 2):
        problem = f"{entity.shape[1]} numbers per entity, {relation.shape[1]} per relation"
        raise FileError(path, found=problem, hint=f"{model} needs two halves, for heads and tails")
    head, tail = np.hsplit(entity, 2)
    if model == "cp":
        return {"entity": head, "entity_tail": tail, "relation": relation}
    forward, backward = np.hsplit(relation, 2)
    return {"entity": head, "entity_tail": tail, "relation": forward, "relation_inverse": backward}
