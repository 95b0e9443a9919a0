"""LibKGE's checkpoints, as a stand-in writes them: the model's own score of every triple."""

from __future__ import annotations

import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError

torch = pytest.importorskip("torch")

from kgtrec.integrations.libkge_checkpoint import checkpoint_factors  # noqa: E402

N, R, DIM = 12, 3, 4
CLASSES = {"distmult": "DistMult", "complex": "ComplEx", "transe": "TransE", "rotate": "RotatE",
           "rescal": "Rescal", "cp": "CP", "simple": "SimplE"}  # fmt: skip
RELATION_DIM = {"rotate": DIM // 2, "rescal": DIM * DIM, "cp": DIM // 2}


def score(model: str, s: Any, p: Any, o: Any, norm: float) -> float:
    """The score of one triple, by the papers' formulas on LibKGE's halves of vectors."""
    half = DIM // 2
    if model == "distmult":
        return float((s * p * o).sum())
    if model == "transe":
        return -float(np.linalg.norm(s + p - o, ord=norm))
    if model == "rescal":
        return float(s @ p.reshape(DIM, DIM) @ o)
    if model == "cp":
        return float((s[:half] * p * o[half:]).sum())
    if model == "simple":
        there = (s[:half] * p[:half] * o[half:]).sum()
        back = (s[half:] * p[half:] * o[:half]).sum()
        return float(there + back) / 2
    s, o = s[:half] + 1j * s[half:], o[:half] + 1j * o[half:]
    if model == "rotate":
        return -float(np.linalg.norm(np.abs(s * np.exp(1j * p) - o), ord=norm))
    return float((s * (p[:half] + 1j * p[half:]) * o.conj()).sum().real)


def questions_of() -> Any:
    triples = np.random.default_rng(2).integers(0, (N, R, N), (25, 3))
    return kgtrec.Graph.from_arrays(test=triples, n_entities=N, n_relations=R).questions()


def options_of(model: str, reciprocal: bool = False, norm: float = 2.0) -> dict[str, Any]:
    version = torch.torch_version.TorchVersion("2.1.0")  # as training jobs store it
    options: dict[str, Any] = {"job": {"type": "train"}, "import": [model], "torch": version}
    options[model] = {"class_name": CLASSES.get(model, model), "l_norm": 1.0,
                      "entity_embedder": {"type": "lookup_embedder"}}  # fmt: skip
    if not reciprocal:
        options[model]["l_norm"] = norm
        return options | {"model": model}
    options["reciprocal_relations_model"] = {
        "class_name": "ReciprocalRelationsModel", "base_model": {"type": model, "l_norm": norm},
    }  # fmt: skip
    return options | {"model": "reciprocal_relations_model"}


def tables(model: str, reciprocal: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    shape = (R * (1 + reciprocal), RELATION_DIM.get(model, DIM))
    return rng.normal(size=(N, DIM)).astype("f4"), rng.normal(size=shape).astype("f4")


CONFIG = type("Config", (), {"__module__": "kge.config"})


@contextmanager
def libkge_in_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for LibKGE's module of configurations."""
    package, module = ModuleType("kge"), ModuleType("kge.config")
    module.Config = CONFIG  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "kge", package)
        patched.setitem(sys.modules, "kge.config", module)
        yield


def save(path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, weights: Any) -> None:
    """As `TrainingJob.save` does: the configuration is an object of LibKGE's class."""
    with libkge_in_place(monkeypatch):
        config = CONFIG()
        vars(config).update(options=options, folder="local/x", log_folder=None, log_prefix=None)
        torch.save(
            {
                "type": "train", "epoch": 3, "valid_trace": [{"mean_rank": 4.5, "epoch": 2}],
                "model": (weights, {}), "optimizer_state_dict": {}, "job_id": "0f",
                "config": config, "dataset": {},
            },
            path,
        )  # fmt: skip


def state_dict(entity: Any, relation: Any, owner: str = "", name: str = "_embeddings") -> Any:
    pairs = (("entity", entity), ("relation", relation))
    return OrderedDict(
        (f"{owner}_{kind}_embedder.{name}.weight", torch.from_numpy(array)) for kind, array in pairs
    )


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("model", CLASSES)
def test_scores_are_those_of_every_triple(
    model: str, reciprocal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, path = questions_of(), tmp_path / "checkpoint_best.pt"
    entity, relation = tables(model, reciprocal)
    owner, name = ("_base_model.", "embeddings") if reciprocal else ("", "_embeddings")
    save(
        path, monkeypatch, options_of(model, reciprocal), state_dict(entity, relation, owner, name)
    )
    factors = checkpoint_factors(path, questions)
    scores = factors.scores()
    for row, (side, given, number) in enumerate(
        zip(questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist(),
            strict=True)
    ):  # fmt: skip
        for other in range(N):
            s, o = (other, given) if side == 0 else (given, other)
            p = number
            if side == 0 and reciprocal:
                s, o, p = o, s, number + R
            due = score(model, entity[s].astype(float), relation[p].astype(float),
                        entity[o].astype(float), 2.0)  # fmt: skip
            value = float(scores[row, other])
            assert value in (pytest.approx(due, abs=1e-4), pytest.approx(-(due**2), abs=1e-3))


def test_transe_by_default_has_l1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions, path = questions_of(), tmp_path / "c.pt"
    entity, relation = tables("transe", False)
    save(path, monkeypatch, options_of("transe", norm=1.0), state_dict(entity, relation))
    scores = checkpoint_factors(path, questions).scores()
    first = int(np.flatnonzero(questions.side == 1)[0])
    given, number = questions.entity[first], questions.relation[first]
    due = [score("transe", entity[given], relation[number], tail, 1) for tail in entity]
    np.testing.assert_allclose(scores[first], due, rtol=1e-5)


def test_the_printed_conversion_makes_a_checkpoint_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration with any other object is refused; the message says what to run."""
    path, questions = tmp_path / "c.pt", questions_of()
    weights = state_dict(*tables("distmult", False))
    save(path, monkeypatch, options_of("distmult"), weights)
    due = checkpoint_factors(path, questions).scores()
    save(path, monkeypatch, options_of("distmult") | {"folder": PurePosixPath("x")}, weights)
    with pytest.raises(FileError, match="kgtrec unpickles nothing") as refused:
        checkpoint_factors(path, questions)
    code = str(refused.value).partition("where LibKGE is: ")[2]
    with libkge_in_place(monkeypatch):
        exec(code, {})  # what the user would run
    np.testing.assert_array_equal(checkpoint_factors(f"{path}.plain", questions).scores(), due)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)

    def __init__(self, target: Path) -> None:
        self.target = target


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions, path = questions_of(), tmp_path / "c.pt"
    weights = state_dict(*tables("distmult", False))

    def refused(kind: type[Exception], match: str) -> None:
        with pytest.raises(kind, match=match) as raised:
            checkpoint_factors(path, questions)
        assert str(path) in str(raised.value)

    refused(FileError, "the file does not exist")
    path.write_bytes(b"not a checkpoint")
    refused(FileError, "more than weights and a configuration, or a damaged file")
    path.write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    refused(FileError, "kgtrec unpickles nothing")
    torch.save({"model": (weights, {}), "config": Evil(tmp_path / "ran")}, path)
    refused(FileError, "kgtrec unpickles nothing")
    assert not (tmp_path / "ran").exists()
    for content in ([1, 2], {"model": weights}, {"config": {}}, {"model": 3, "config": {}}):
        torch.save(content, path)
        refused(FileError, "contains no model with its configuration")
    for options in ({}, {"model": "x"}, {"model": {"type": "x"}, "x": {"type": "x"}}):
        torch.save({"model": (weights, {}), "config": options}, path)
        refused(FileError, "its configuration names no known model")
    save(path, monkeypatch, options_of("conve"), weights)
    refused(UsageError, "conve makes its query with a network")
    save(path, monkeypatch, options_of("transe", norm=3.0), weights)
    refused(UsageError, "l_norm is 3.0")
    entity, relation = tables("rotate", False)
    save(path, monkeypatch, options_of("rotate", norm=1.0), state_dict(entity, relation))
    refused(UsageError, "neither a product nor a distance")
    save(path, monkeypatch, options_of("distmult"), state_dict(entity[:-1], entity[:R]))
    refused(InputError, "11|12|entit")
    save(path, monkeypatch, options_of("rescal"), weights)
    refused(FileError, "relations of 4 numbers, entities of 4")
    save(path, monkeypatch, options_of("simple"), state_dict(entity[:, :3], entity[:R, :3]))
    refused(FileError, "vectors of 3 and 3 numbers")
    projected = {"_entity_embedder.projection.weight": torch.zeros(3, 3)}
    save(path, monkeypatch, options_of("distmult"), projected)
    refused(FileError, "no lookup embeddings for entity ids .*projection")
    whole = path.read_bytes()
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:cut])
        refused(FileError, "more than weights and a configuration, or a damaged file")
