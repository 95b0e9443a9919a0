"""Saved models are scored by the formula of the program that saved them.

Each formula is written out here once more, triple by triple, from the program's source code.
"""

from __future__ import annotations

import json
import math
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from question_cases import N, R, random_questions
from refusals import assert_refused, each_row

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.integrations.embeddings import load_factors

Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
DIM = 6
QUESTIONS = random_questions(np.random.default_rng(7))


def uniform(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-scale, scale, shape).astype(np.float32)


# -- Formulas of programs --------------------------------------------------------------------------


def chunks(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return vector[: len(vector) // 2], vector[len(vector) // 2 :]


def rotated(h: np.ndarray, phase: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of the turned head minus the tail."""
    (h_re, h_im), (t_re, t_im) = chunks(h), chunks(t)
    re, im = np.cos(phase), np.sin(phase)
    return h_re * re - h_im * im - t_re, h_re * im + h_im * re - t_im


def rotate_sum(scale: float) -> Score:
    """RotatE's own program, OpenKE and DGL-KE, which all divide by range / pi."""

    def score(h, r, t):
        re, im = rotated(h, r / (scale / math.pi), t)
        return -sum(math.sqrt(x * x + y * y) for x, y in zip(re, im, strict=True))

    return score


def rotate_l2(h, r, t):
    """PyTorch Geometric: the norm over both axes of the stacked parts."""
    re, im = rotated(h, r, t)
    return -math.sqrt(sum(re * re) + sum(im * im))


def protate(scale: float) -> Score:
    def score(h, r, t):
        h, r, t = (x / (scale / math.pi) for x in (h, r, t))
        return -sum(abs(math.sin(x)) for x in h + r - t)

    return score


def hake(scale: float, phase_weight: float, modulus_weight: float) -> Score:
    """HAKE's program, whose pi has a wrong ninth digit."""

    def score(h, r, t):
        (p_h, m_h), (p_t, m_t) = chunks(h), chunks(t)
        p_r, m_r, b_r = np.split(r, 3)
        phases, squares = 0.0, 0.0
        for d in range(len(p_h)):
            angle = (p_h[d] + p_r[d] - p_t[d]) / (scale / 3.14159262358979323846)
            phases += abs(math.sin(angle / 2))
            m, b = abs(m_r[d]), min(b_r[d], 1)
            b = -m if b < -m else b
            squares += (m_h[d] * (m + b) - m_t[d] * (1 - b)) ** 2
        return -(phases * phase_weight + math.sqrt(squares) * modulus_weight)

    return score


def mode(h, r, t):
    return -sum(abs(h * r - t))


def complex_parts(h, r, t):
    (h_re, h_im), (r_re, r_im), (t_re, t_im) = chunks(h), chunks(r), chunks(t)
    return sum(h_re * t_re * r_re + h_im * t_im * r_re + h_re * t_im * r_im - h_im * t_re * r_im)


def distmult(h, r, t):
    return sum(h * r * t)


def transe(norm: int) -> Score:
    return lambda h, r, t: -np.linalg.norm(h + r - t, ord=norm)


def rescal(h, r, t):
    return sum(h * (r.reshape(len(h), len(h)) @ t))


def simple(h, r, t):
    (h_i, h_j), (forward, backward), (t_i, t_j) = chunks(h), chunks(r), chunks(t)
    return (sum(h_i * forward * t_j) + sum(t_i * backward * h_j)) / 2


def scaled(vector: np.ndarray, norm: int = 2) -> np.ndarray:
    return vector / np.linalg.norm(vector, ord=norm)


def due_scores(score: Score, entity: np.ndarray, relation: np.ndarray) -> np.ndarray:
    """One row per question, one column per entity."""
    entity, relation = entity.astype(np.float64), relation.astype(np.float64)
    rows = []
    for side, e, r in zip(QUESTIONS.side, QUESTIONS.entity, QUESTIONS.relation, strict=True):
        pairs = [(entity[e], x) if side else (x, entity[e]) for x in entity]
        rows.append([score(h, relation[r], t) for h, t in pairs])
    return np.array(rows)


def assert_ranks(factors: kgtrec.Factors, due: np.ndarray) -> None:
    """Random scores differ by more than rounding, so ranks are equal."""
    ranks, expected = (kgtrec.rank(source, QUESTIONS)[0] for source in (factors, due))
    np.testing.assert_array_equal(ranks.greater, expected.greater)
    np.testing.assert_array_equal(ranks.equal, expected.equal)


# -- Files as programs write them ------------------------------------------------------------------


def save_rotate(folder: Path, name: str, entity: Any, relation: Any, **more: Any) -> Path:
    """RotatE's own program; RNNLogic has its files."""
    config = {
        "cuda": True,
        "data_path": "data/x",
        "model": name,
        "double_entity_embedding": name in ("RotatE", "ComplEx"),
        "double_relation_embedding": name == "ComplEx",
        "negative_sample_size": 128,
        "hidden_dim": DIM,
        "gamma": 12.0,
        "batch_size": 1024,
        "learning_rate": 1e-4,
        "nentity": N,
        "nrelation": R,
    }
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | more))
    np.save(folder / "entity_embedding.npy", entity)
    np.save(folder / "relation_embedding.npy", relation)
    return folder


def save_dgl(folder: Path, model: str, entity: Any, relation: Any, **more: Any) -> Path:
    config = {
        "dataset": "FB15k-237",
        "emb_size": DIM,
        "gamma": 12.0,
        "max_step": 80_000,
        "double_ent": model in ("RotatE", "SimplE"),
        "double_rel": model == "SimplE",
        "lr": 0.01,
        "neg_sample_size": 256,
    }
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | {"model_name": model} | more, indent=4))
    np.save(folder / f"FB15k-237_{model}_entity.npy", entity)
    np.save(folder / f"FB15k-237_{model}_relation.npy", relation)
    return folder


RANGE = 14 / DIM
OF_CONFIG: dict[str, tuple[Any, str, Score, int, int, tuple[str, ...]]] = {
    "RotatE": (
        save_rotate,
        "RotatE",
        rotate_sum(RANGE),
        2 * DIM,
        DIM,
        (
            "model: rotate, from config.json",
            "norm: l1 (sum of moduli), as in RotatE's own program",
            "phases: relation * pi / 2.33333, from config.json",
        ),
    ),
    "pRotatE": (
        save_rotate,
        "pRotatE",
        protate(RANGE),
        DIM,
        DIM,
        ("model: protate, from config.json", "phases: value * pi / 2.33333, from config.json"),
    ),
    "TransE": (
        save_rotate,
        "TransE",
        transe(1),
        DIM,
        DIM,
        ("model: transe, from config.json", "norm: l1, as in RotatE's own program"),
    ),
    "ComplEx": (
        save_rotate,
        "ComplEx",
        complex_parts,
        2 * DIM,
        2 * DIM,
        ("model: complex, from config.json",),
    ),
    "DistMult": (
        save_rotate,
        "DistMult",
        distmult,
        DIM,
        DIM,
        ("model: distmult, from config.json",),
    ),
    "ModE": (save_rotate, "ModE", mode, DIM, DIM, ("model: mode, from config.json",)),
    "DGL RotatE": (
        save_dgl,
        "RotatE",
        rotate_sum(RANGE),
        2 * DIM,
        DIM,
        (
            "model: rotate, from config.json",
            "norm: l1 (sum of moduli), as in DGL-KE",
            "phases: relation * pi / 2.33333, from config.json",
        ),
    ),
    "DGL TransE": (
        save_dgl,
        "TransE",
        transe(2),
        DIM,
        DIM,
        ("model: transe, from config.json", "norm: l2, as in DGL-KE"),
    ),
    "DGL TransE_l1": (
        save_dgl,
        "TransE_l1",
        transe(1),
        DIM,
        DIM,
        ("model: transe, from config.json", "norm: l1, as in DGL-KE"),
    ),
    "DGL TransE_l2": (
        save_dgl,
        "TransE_l2",
        transe(2),
        DIM,
        DIM,
        ("model: transe, from config.json", "norm: l2, as in DGL-KE"),
    ),
    "DGL ComplEx": (
        save_dgl,
        "ComplEx",
        complex_parts,
        DIM,
        DIM,
        ("model: complex, from config.json",),
    ),
    "DGL DistMult": (
        save_dgl,
        "DistMult",
        distmult,
        DIM,
        DIM,
        ("model: distmult, from config.json",),
    ),
    "DGL RESCAL": (
        save_dgl,
        "RESCAL",
        rescal,
        DIM,
        DIM * DIM,
        ("model: rescal, from config.json",),
    ),
    "DGL SimplE": (
        save_dgl,
        "SimplE",
        simple,
        2 * DIM,
        2 * DIM,
        ("model: simple, from config.json",),
    ),
}


@pytest.mark.parametrize("name", OF_CONFIG)
def test_the_configuration_names_the_formula(name: str, tmp_path: Path) -> None:
    save, model, score, entity_dim, relation_dim, facts = OF_CONFIG[name]
    entity = uniform(1, N, entity_dim, scale=RANGE)
    relation = uniform(2, R, relation_dim, scale=RANGE)
    folder = save(tmp_path / "model", model, entity, relation)
    factors = load_factors(folder, QUESTIONS)
    assert factors.facts == facts
    due = due_scores(score, entity, relation)
    assert_ranks(factors, due)
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, entity=entity, relation=relation)
    apart = load_factors(arrays, QUESTIONS, model_config=folder / "config.json")
    assert apart.facts == facts
    assert_ranks(apart, due)


def test_older_configurations_of_dgl_ke(tmp_path: Path) -> None:
    """They name the model as ``model`` beside ``emb_size``."""
    entity, relation = uniform(1, N, DIM), uniform(2, R, DIM)
    folder = save_dgl(tmp_path / "m", "TransE_l2", entity, relation)
    config = json.loads((folder / "config.json").read_text())
    config["model"] = config.pop("model_name")
    (folder / "config.json").write_text(json.dumps(config))
    assert_ranks(load_factors(folder, QUESTIONS), due_scores(transe(2), entity, relation))


@given(
    gamma=st.floats(0.1, 50),
    dim=st.integers(1, 8),
    turns=st.floats(0.1, 4),
    seed=st.integers(0, 99),
)
def test_every_scale_of_phases(
    gamma: float, dim: int, turns: float, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Relations of any size, from parts of a turn to many turns."""
    scale = (gamma + 2) / dim
    entity = uniform(seed, N, 2 * dim)
    relation = uniform(seed + 1, R, dim, scale=turns * scale)
    folder = tmp_path_factory.mktemp("model")
    save_rotate(folder, "RotatE", entity, relation, gamma=gamma, hidden_dim=dim)
    factors = load_factors(folder, QUESTIONS, "RotatE")
    due = due_scores(rotate_sum(scale), entity, relation)
    np.testing.assert_allclose(factors.scores(), due, rtol=1e-4, atol=1e-4)


# OpenKE's state_dict, as arrays: every model has zero_const and pi_const.
OPENKE = {"zero_const": np.zeros(1, "f4"), "pi_const": np.array([3.1415927], "f4")}
ENTITY, RELATION = uniform(3, N, DIM), uniform(4, R, DIM)
WIDE = uniform(5, N, 2 * DIM)
PLAIN = {"ent_embeddings.weight": ENTITY, "rel_embeddings.weight": RELATION}
HALVES = {
    "ent_re_embeddings.weight": chunks(WIDE.T)[0].T,
    "ent_im_embeddings.weight": chunks(WIDE.T)[1].T,
    "rel_re_embeddings.weight": chunks(RELATION.T)[0].T.repeat(2, 1),
    "rel_im_embeddings.weight": chunks(RELATION.T)[1].T.repeat(2, 1),
}
COMPLEX_RELATION = np.hstack(
    [HALVES["rel_re_embeddings.weight"], HALVES["rel_im_embeddings.weight"]]
)
ROTATE = {"ent_embeddings.weight": WIDE, "rel_embeddings.weight": 0.05 * RELATION}
UNIT = [np.stack([scaled(x) for x in part]) for part in (ENTITY, RELATION)]
PYKEEN_PLAIN = {
    "entity_representations.0._embeddings.weight": ENTITY,
    "relation_representations.0._embeddings.weight": RELATION,
}
TURNS = np.exp(1j * RELATION)


def in_pairs(vectors: np.ndarray) -> np.ndarray:
    """PyKEEN's tables of complex numbers: real, imaginary, real, ..."""
    return np.stack([vectors.real, vectors.imag], axis=2).reshape(len(vectors), -1).astype("f4")


def in_halves(vectors: np.ndarray) -> np.ndarray:
    return np.hstack([vectors.real, vectors.imag])


COMPLEX_ENTITY = chunks(WIDE.T)[0].T + 1j * chunks(WIDE.T)[1].T
PYKEEN = {
    "entity_representations.0._embeddings.weight": in_pairs(COMPLEX_ENTITY),
    "relation_representations.0._embeddings.weight": in_pairs(TURNS),
}
PYG = {
    "node_emb.weight": COMPLEX_ENTITY.real.copy(),
    "node_emb_im.weight": COMPLEX_ENTITY.imag.copy(),
    "rel_emb.weight": np.pi + RELATION,
}


def single(value: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, value, "f4")


OF_NAMES: dict[str, tuple[dict[str, np.ndarray], str, dict[str, Any], np.ndarray, list[str]]] = {
    "OpenKE TransE, margin": (
        OPENKE | PLAIN | {"margin": single(6, (1,))},
        "transe",
        {"norm": "l1"},
        due_scores(transe(1), ENTITY, RELATION),
        [
            "norm: l1",
            "normalization: vectors are used as they are, as in OpenKE with norm_flag=False",
        ],
    ),
    "OpenKE TransE, norm_flag": (
        OPENKE | PLAIN,
        "transe",
        {"norm": "l1", "normalize": "vectors"},
        due_scores(transe(1), *UNIT),
        ["norm: l1", "normalization: vectors are scaled to length 1"],
    ),
    "OpenKE DistMult": (
        OPENKE | PLAIN | {"embedding_range": single(1, (1, 1))},
        "distmult",
        {},
        due_scores(distmult, ENTITY, RELATION),
        [],
    ),
    "OpenKE ComplEx": (
        OPENKE | HALVES,
        "complex",
        {},
        due_scores(complex_parts, WIDE, COMPLEX_RELATION),
        [],
    ),
    "OpenKE RotatE": (
        OPENKE
        | ROTATE
        | {
            "ent_embedding_range": single(0.04, (1,)),
            "margin": single(6, (1,)),
            "epsilon": single(2, (1, 1)),
            "rel_embedding_range": single(0.08, (1,)),
        },
        "rotate",
        {},
        due_scores(rotate_sum(np.float32(0.08)), WIDE, 0.05 * RELATION),
        ["norm: l1 (sum of moduli), as in OpenKE", "phases: relation * pi / 0.08, from the file"],
    ),
    "OpenKE in its training strategy": (
        {f"model.{name}": array for name, array in (OPENKE | PLAIN).items()}
        | {"loss.margin": single(5, (1,)), "loss.zero_const": single(0, (1,))},
        "transe",
        {"norm": "l2", "normalize": "none"},
        due_scores(transe(2), ENTITY, RELATION),
        ["norm: l2"],
    ),
    "PyKEEN TransE": (
        PYKEEN_PLAIN,
        "transe",
        {"norm": "l1"},
        due_scores(transe(1), ENTITY, RELATION),
        ["norm: l1"],
    ),
    "PyKEEN DistMult": (PYKEEN_PLAIN, "distmult", {}, due_scores(distmult, ENTITY, RELATION), []),
    "PyKEEN ComplEx": (
        PYKEEN,
        "complex",
        {},
        due_scores(complex_parts, WIDE, in_halves(TURNS)),
        [],
    ),
    "PyKEEN RotatE": (
        PYKEEN,
        "rotate",
        {},
        due_scores(rotate_l2, WIDE, RELATION),
        ["norm: l2, as in PyKEEN"],
    ),
    "PyG RotatE": (
        PYG,
        "rotate",
        {},
        due_scores(rotate_l2, WIDE, np.pi + RELATION),
        ["norm: l2, as in PyTorch Geometric", "phases: radians, as in PyTorch Geometric"],
    ),
    "PyG ComplEx": (
        {
            "node_emb.weight": PYG["node_emb.weight"],
            "node_emb_im.weight": PYG["node_emb_im.weight"],
            "rel_emb.weight": chunks(COMPLEX_RELATION.T)[0].T,
            "rel_emb_im.weight": chunks(COMPLEX_RELATION.T)[1].T,
        },
        "complex",
        {},
        due_scores(complex_parts, WIDE, COMPLEX_RELATION),
        [],
    ),
    "PyG TransE": (
        {"node_emb.weight": ENTITY, "rel_emb.weight": RELATION},
        "transe",
        {"norm": "l1"},
        due_scores(transe(1), np.stack([scaled(x, 1) for x in ENTITY]), RELATION),
        ["norm: l1", "normalization: entities are scaled to length 1, as in PyTorch Geometric"],
    ),
    "RotatE's checkpoint": (
        {
            "entity_embedding": WIDE,
            "relation_embedding": 0.05 * RELATION,
            "gamma": single(12, (1,)),
            "embedding_range": single(0.14, (1,)),
        },
        "rotate",
        {},
        due_scores(rotate_sum(np.float32(0.14)), WIDE, 0.05 * RELATION),
        [
            "norm: l1 (sum of moduli), as in RotatE's own program",
            "phases: relation * pi / 0.14, from the file",
        ],
    ),
    "TorchKGE ComplEx": (
        {
            "re_ent_emb.weight": HALVES["ent_re_embeddings.weight"],
            "im_ent_emb.weight": HALVES["ent_im_embeddings.weight"],
            "re_rel_emb.weight": HALVES["rel_re_embeddings.weight"],
            "im_rel_emb.weight": HALVES["rel_im_embeddings.weight"],
        },
        "complex",
        {},
        due_scores(complex_parts, WIDE, COMPLEX_RELATION),
        [],
    ),
}


@pytest.mark.parametrize("name", OF_NAMES)
def test_names_of_arrays_tell_the_program(name: str, tmp_path: Path) -> None:
    arrays, model, options, due, facts = OF_NAMES[name]
    np.savez(tmp_path / "m.npz", **arrays)
    factors = load_factors(tmp_path / "m.npz", QUESTIONS, model, **options)
    assert list(factors.facts) == facts
    assert_ranks(factors, due)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_single_values_of_every_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    values = {
        name: single(0.08, shape)
        for name in ("zero_const", "pi_const", "margin", "epsilon", "rel_embedding_range")
    }
    np.savez(tmp_path / "m.npz", **ROTATE, **values)
    factors = load_factors(tmp_path / "m.npz", QUESTIONS, "rotate")
    due = due_scores(rotate_sum(np.float32(0.08)), WIDE, 0.05 * RELATION)
    assert_ranks(factors, due)


# -- What programs leave open, and contradictions --------------------------------------------------


def saved(tmp_path: Path, **arrays: np.ndarray) -> Path:
    np.savez(tmp_path / "m.npz", **arrays)
    return tmp_path / "m.npz"


RADIANS = {"entity": WIDE, "relation": np.float32(np.pi) * RELATION}
SMALL = {"entity": WIDE, "relation": 0.05 * RELATION}


@pytest.mark.parametrize("name", ["bias", "entity_bias", "ent_embeddings.bias"])
def test_biases_of_entities(name: str, tmp_path: Path) -> None:
    """They have an array in the file of the vectors; biases of other layers are refused."""
    entity, relation, bias = uniform(1, N, DIM), uniform(2, R, DIM), uniform(3, N, 1)[:, 0]
    vectors = {"entity": entity, "relation": relation}
    factors = load_factors(saved(tmp_path, **vectors, **{name: bias}), QUESTIONS, "distmult")
    assert_ranks(factors, due_scores(distmult, entity, relation) + bias)
    for layer in ("bn0.bias", "relation_bias"):
        path = saved(tmp_path, **vectors, **{layer: bias})
        with pytest.raises(FileError, match=f"an array '{layer}', whose meaning is unknown"):
            load_factors(path, QUESTIONS, "distmult")


@each_row(
    "arrays, model, options, words",
    [
        (
            RADIANS,
            "rotate",
            {},
            "rotate needs the norm of its distance, because programs differ: "
            "norm='l1' sums the moduli",
        ),
        (RADIANS, None, {}, "name the model of these vectors"),
        (SMALL, "rotate", {"norm": "l1"}, "the largest phase of a relation is 0.04"),
        ({**SMALL, "relation": 8 * RELATION}, "rotate", {"norm": "l2"}, "perhaps not radians"),
        (PLAIN, "protate", {}, "protate needs the scale of its phases"),
        (RADIANS, "rotate", {"norm": "l1", "phases": "-1"}, "phases='-1' is unknown"),
        (OPENKE | PLAIN, "transe", {}, "OpenKE saved it, without the norm of TransE"),
        (OPENKE | PLAIN, "transe", {"norm": "l1"}, "OpenKE saved it, without norm_flag"),
        (PYKEEN_PLAIN, "transe", {}, "PyKEEN saved it, without the norm of TransE"),
        (PYKEEN, "rotate", {"norm": "l1"}, "norm='l1' contradicts 'l2', as in PyKEEN"),
        (PLAIN, "transe", {"normalize": "all"}, "normalize='all' is unknown"),
        (PLAIN | {"norm_vector.weight": RELATION}, "transh", {}, "projects every entity"),
        (
            {"entity": uniform(6, N, 4), "relation": uniform(7, R, 6)},
            "hake",
            {"phase_weight": 1.0},
            "hake needs its two trained weights: pass phase_weight=0.7 and modulus_weight=3.5",
        ),
        (
            {"entity": uniform(6, N, 4), "relation": uniform(7, R, 6)},
            "hake",
            {"phase_weight": 1.0, "modulus_weight": 1.0},
            "hake needs the scale of its phases: HAKE's program computes value * pi / range",
        ),
        (PLAIN, "mode", {"phase_weight": 1.0}, "phase_weight=1.0 has no effect on mode"),
    ],
)
def test_open_questions_are_asked(
    arrays: dict[str, np.ndarray],
    model: str | None,
    options: dict[str, Any],
    words: str,
    tmp_path: Path,
) -> None:
    path = saved(tmp_path, **arrays)
    assert_refused(load_factors, UsageError, (words,), path, QUESTIONS, model, **options)


def test_answers_to_open_questions(tmp_path: Path) -> None:
    path = saved(tmp_path, **SMALL)
    factors = load_factors(path, QUESTIONS, "rotate", norm="l1", phases=0.14)
    assert factors.facts == ("norm: l1 (sum of moduli)", "phases: relation * pi / 0.14")
    assert_ranks(factors, due_scores(rotate_sum(0.14), WIDE, 0.05 * RELATION))
    factors = load_factors(path, QUESTIONS, "rotate", norm="l2", phases="radians")
    assert factors.facts == ("norm: l2", "phases: radians")
    assert_ranks(factors, due_scores(rotate_l2, WIDE, 0.05 * RELATION))
    path = saved(tmp_path, entity=ENTITY, relation=RELATION)
    assert load_factors(path, QUESTIONS, "transe").facts == ("norm: l2, by default",)
    assert load_factors(path, QUESTIONS, "distmult").facts == ()


@each_row(
    "model, changes, error, words",
    [
        (
            "RotatE",
            {"hidden_dim": 5},
            InputError,
            "hidden_dim 5 and double_entity_embedding true of rotate mean 10 numbers per entity, "
            "but the array has 12",
        ),
        ("RotatE", {"nentity": N + 1}, InputError, f"nentity is {N + 1}, but the array has {N}"),
        (
            "TransE",
            {"double_entity_embedding": True},
            InputError,
            "double_entity_embedding true of transe mean 12 numbers per entity",
        ),
        ("RotatE", {"gamma": None}, FileError, "gamma is None; it must be a positive number"),
        ("RotatE", {"hidden_dim": 2.5}, FileError, "hidden_dim is 2.5"),
        (
            "RotatE",
            {"model": "HAKE"},
            InputError,
            "of hake mean 18 numbers per relation, but the array has 6",
        ),
        (
            "RotatE",
            {"model": "PairRE"},
            UsageError,
            "names the model 'PairRE'; of this program, kgtrec scores TransE",
        ),
    ],
)
def test_contradictory_configurations(
    model: str, changes: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    entity = WIDE if model == "RotatE" else ENTITY
    folder = save_rotate(tmp_path / "m", model, entity, RELATION, **changes)
    assert_refused(load_factors, error, ("config.json", words), folder, QUESTIONS)


@each_row(
    "options, words",
    [
        ({"model": "transe"}, "model='transe' contradicts 'rotate', from config.json"),
        (
            {"model": "rotate", "norm": "l2"},
            "norm='l2' contradicts 'l1', as in RotatE's own program",
        ),
        (
            {"model": "rotate", "phases": "radians"},
            "phases='radians' contradicts 2.33333, from config.json; leave it out",
        ),
    ],
)
def test_contradictory_arguments(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    folder = save_rotate(tmp_path / "m", "RotatE", WIDE, RELATION)
    assert_refused(load_factors, UsageError, (words,), folder, QUESTIONS, **options)


def test_a_configuration_without_a_model(tmp_path: Path) -> None:
    """A user who knows gamma and the dimension can write one."""
    path = saved(tmp_path, **SMALL)
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"gamma": 9, "hidden_dim": DIM}))
    factors = load_factors(path, QUESTIONS, "rotate", model_config=config)
    assert factors.facts[-1] == "phases: relation * pi / 1.83333, from c.json"
    assert_ranks(factors, due_scores(rotate_sum(11 / DIM), WIDE, 0.05 * RELATION))
    with pytest.raises(UsageError, match=r"c\.json: the configuration names no model; pass model="):
        load_factors(path, QUESTIONS, model_config=config)
    config.write_text(json.dumps({"model": "RotatE", "hidden_dim": DIM, "gamma": -1}))
    with pytest.raises(FileError, match="gamma is -1; it must be a positive number"):
        load_factors(path, QUESTIONS, model_config=config)


def test_other_configurations(tmp_path: Path) -> None:
    """One beside the arrays is ignored with a line; one that the user names is refused."""
    folder = save_rotate(tmp_path / "m", "RotatE", WIDE, np.float32(np.pi) * RELATION)
    for text in ('{"model_type": "bert"}', "[1]", "no JSON"):
        (folder / "config.json").write_text(text)
        factors = load_factors(folder, QUESTIONS, "rotate", norm="l1")
        assert factors.facts[-1].startswith("config.json is ignored: it names no model")
        with pytest.raises(FileError, match=r"config\.json: (no configuration|a JSON|not JSON)"):
            load_factors(folder, QUESTIONS, "rotate", model_config=folder / "config.json")


# -- Checkpoints of torch --------------------------------------------------------------------------


class Tensor(np.ndarray):
    """An array that looks like a tensor to the reader."""

    def detach(self) -> np.ndarray:
        return np.asarray(self)


def tensors(arrays: dict[str, np.ndarray]) -> dict[str, Tensor]:
    return {name: np.asarray(array).view(Tensor) for name, array in arrays.items()}


@pytest.mark.parametrize("name", ["m.ckpt", "m.pt", "m.pth", "checkpoint"])
def test_checkpoints_have_only_the_state_of_the_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The optimizer's tensors beside it have no meaning for scores."""
    arrays, model, options, due, facts = OF_NAMES["RotatE's checkpoint"]
    state = {
        "step": 3,
        "model_state_dict": tensors(arrays),
        "optimizer_state_dict": {"state": {0: tensors({"exp_avg": WIDE})}},
    }

    def load(path: Path, *, map_location: str, weights_only: bool) -> Any:
        assert weights_only
        return state

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))
    np.savez(tmp_path / "zip.npz", a=WIDE)  # a zip, as files of torch are
    (tmp_path / "zip.npz").rename(tmp_path / name)
    factors = load_factors(tmp_path / name, QUESTIONS, model, **options)
    assert list(factors.facts) == facts
    assert_ranks(factors, due)


def test_a_checkpoint_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    arrays, model, options, due, _ = OF_NAMES["OpenKE RotatE"]
    state = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    torch.save(state, tmp_path / "rotate.ckpt")
    assert_ranks(load_factors(tmp_path / "rotate.ckpt", QUESTIONS, model, **options), due)


# -- HAKE ------------------------------------------------------------------------------------------

WEIGHTS = {"phase_weight": np.array([[0.7]], "f4"), "modulus_weight": np.array([[-1.25]], "f4")}
HAKE = {
    "entity_embedding": uniform(21, N, 2 * DIM, scale=RANGE),
    "relation_embedding": uniform(22, R, 3 * DIM, scale=2),  # beyond both limits of a bias
}
HAKE_FACTS = (
    "model: hake, from {}",
    "phases: value * pi / 2.33333, from {}",
    "weights: phases 0.7, moduli -1.25, from checkpoint",
)


def save_hake(folder: Path, **more: Any) -> Path:
    """The configuration has the first values of the weights."""
    arrays = HAKE["entity_embedding"], HAKE["relation_embedding"]
    save_rotate(folder, "HAKE", *arrays, phase_weight=0.5, modulus_weight=1.0, **more)
    for key in ("double_entity_embedding", "double_relation_embedding"):
        config = json.loads((folder / "config.json").read_text())
        config.pop(key)
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def hake_state(scale: float = RANGE) -> dict[str, np.ndarray]:
    """The state of a checkpoint of HAKE's program."""
    gamma, scales = np.array([12.0], "f4"), np.array([scale], "f4")
    return {"gamma": gamma, "embedding_range": scales} | HAKE | WEIGHTS


def due_of_hake(scale: float = RANGE) -> np.ndarray:
    weights = (float(weight[0, 0]) for weight in WEIGHTS.values())
    return due_scores(hake(scale, *weights), HAKE["entity_embedding"], HAKE["relation_embedding"])


def stand_in_for_torch(monkeypatch: pytest.MonkeyPatch, state: dict[str, np.ndarray]) -> None:
    """A torch that reads one state, with an optimizer's beside it."""
    loaded = {
        "step": 99_999,
        "model_state_dict": tensors(state),
        "optimizer_state_dict": {"state": {0: tensors({"exp_avg": WIDE})}},
    }

    def load(path: Path, *, map_location: str, weights_only: bool) -> Any:
        assert weights_only
        return loaded

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"")


def test_hake_with_the_weights_of_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint's scale counts: a later config.json may have another gamma."""
    folder = save_hake(tmp_path / "m", gamma=24.0)
    stand_in_for_torch(monkeypatch, hake_state())
    write_zip(folder / "checkpoint")
    facts = tuple(HAKE_FACTS[i].format(n) for i, n in enumerate(("config.json", "checkpoint", "")))
    for model in (None, "hake", "HAKE"):
        factors = load_factors(folder, QUESTIONS, model)
        assert factors.facts == (facts if model is None else facts[1:])
        assert_ranks(factors, due_of_hake())
        np.testing.assert_allclose(factors.scores(), due_of_hake(), rtol=1e-4, atol=1e-4)
    alone = load_factors(folder / "checkpoint", QUESTIONS, "hake")
    assert_ranks(alone, due_of_hake())
    apart = (folder / "checkpoint").rename(tmp_path / "checkpoint")
    assert load_factors(apart, QUESTIONS).facts[0] == "model: hake, from the file"
    with pytest.raises(UsageError, match="model='rotate' contradicts 'hake', from the file"):
        load_factors(apart, QUESTIONS, "rotate")


def test_a_checkpoint_of_hake_that_does_not_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_hake(tmp_path / "m")
    with pytest.raises(UsageError, match=r"saves them in the file 'checkpoint' beside the vectors"):
        load_factors(folder, QUESTIONS)
    monkeypatch.setitem(sys.modules, "torch", None)
    write_zip(folder / "checkpoint")
    with pytest.raises(FileError, match=r"checkpoint: the file needs torch.*phase_weight=0\.7 and"):
        load_factors(folder, QUESTIONS)
    stand_in_for_torch(monkeypatch, hake_state() | {"entity_embedding": ENTITY})
    with pytest.raises(FileError, match=r"another entity_embedding than entity_embedding\.npy"):
        load_factors(folder, QUESTIONS)
    stand_in_for_torch(monkeypatch, HAKE)
    with pytest.raises(UsageError, match="hake needs its two trained weights"):
        load_factors(folder, QUESTIONS)


def test_hake_with_weights_of_the_caller(tmp_path: Path) -> None:
    """No torch is needed then, even beside a checkpoint."""
    folder = save_hake(tmp_path / "m")
    write_zip(folder / "checkpoint")
    weights = {name: float(value[0, 0]) for name, value in WEIGHTS.items()}
    factors = load_factors(folder, QUESTIONS, **weights)
    assert factors.facts == (
        "model: hake, from config.json",
        "phases: value * pi / 2.33333, from config.json",
        "weights: phases 0.7, moduli -1.25",
    )
    assert_ranks(factors, due_of_hake())
    arrays = {"entity": HAKE["entity_embedding"], "relation": HAKE["relation_embedding"]}
    direct = kgtrec.Factors.from_embeddings(QUESTIONS, "hake", **arrays, phases=RANGE, **weights)
    assert direct.scores().tobytes() == factors.scores().tobytes()
    assert direct.facts == ("phases: value * pi / 2.33333", "weights: phases 0.7, moduli -1.25")


def test_a_checkpoint_of_torch_has_the_weights_of_hake(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = save_hake(tmp_path / "m")
    state = {name: torch.from_numpy(array.copy()) for name, array in hake_state().items()}
    torch.save({"step": 9, "model_state_dict": state}, folder / "checkpoint")
    assert_ranks(load_factors(folder, QUESTIONS), due_of_hake())


@given(
    gamma=st.floats(0.1, 50),
    dim=st.integers(1, 8),
    weights=st.tuples(*[st.floats(-4, 4)] * 2),
    seed=st.integers(0, 99),
)
def test_hake_of_every_size(
    gamma: float, dim: int, weights: tuple[float, float], seed: int
) -> None:
    """On both sides, with biases beyond their limits, and weights of either sign."""
    scale = (gamma + 2) / dim
    entity, relation = uniform(seed, N, 2 * dim, scale=scale), uniform(seed + 1, R, 3 * dim)
    entity[1] = entity[0]
    factors = kgtrec.Factors.from_embeddings(
        QUESTIONS,
        "hake",
        entity=entity,
        relation=3 * relation,
        phases=scale,
        phase_weight=weights[0],
        modulus_weight=weights[1],
    )
    due = due_scores(hake(scale, *weights), entity, 3 * relation)
    scores = factors.scores()
    np.testing.assert_allclose(scores, due, rtol=1e-4, atol=1e-4 * (1 + scale))
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])


@given(dim=st.integers(1, 9), seed=st.integers(0, 99))
def test_mode_of_every_size(dim: int, seed: int) -> None:
    entity, relation = uniform(seed, N, dim), uniform(seed + 1, R, dim, scale=3)
    arrays = {"entity": entity, "relation": relation}
    factors = kgtrec.Factors.from_embeddings(QUESTIONS, "mode", **arrays)
    np.testing.assert_allclose(factors.scores(), due_scores(mode, entity, relation), atol=1e-4)


# -- The command -----------------------------------------------------------------------------------


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, ["rank", "--sides", "tail", *words], standalone_mode=False)


def graph_of_answers(folder: Path) -> None:
    """start, answer and other; the answer is right."""
    folder.mkdir()
    labels = {"entities.dict": ["start", "answer", "other"], "relations.dict": ["turns"]}
    for name, words in labels.items():
        (folder / name).write_text("".join(f"{i}\t{word}\n" for i, word in enumerate(words)))
    for name, text in (
        ("train", "other\tturns\tstart"),
        ("valid", "other\tturns\tother"),
        ("test", "start\tturns\tanswer"),
    ):
        (folder / f"{name}.txt").write_text(f"{text}\n")


def test_phases_by_range_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """7 of a range of 14 is a quarter turn: (1, 0) turns to (0, 1), not to (0.754, 0.657)."""
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    entity = np.array([[1, 0], [0, 1], [np.cos(7), np.sin(7)]], "f4")
    config = {"hidden_dim": 1, "nentity": 3, "nrelation": 1}
    save_rotate(tmp_path / "m", "RotatE", entity, np.array([[7]], "f4"), **config)
    for words in (["--model", "rotate"], []):
        done = run("--graph", "rotate:g", "--scores", "m", *words, "-o", "r.parquet")
        assert "tail  1.00  1.0000" in done.stdout
        assert "\nphases: relation * pi / 14, from config.json\n" in done.stdout
    ranks = kgtrec.Ranks.load("r.parquet")
    assert "model: rotate, from config.json" in str(kgtrec.Result(ranks))
    (tmp_path / "m" / "config.json").rename(tmp_path / "c.json")
    done = run(
        "--graph", "rotate:g", "--scores", "m", "--model-config", "c.json", "-o", "s.parquet"
    )
    assert "phases: relation * pi / 14, from c.json\n" in done.stdout
    done = run("--graph", "rotate:g", "--scores", "m", "--model", "rotate", "-o", "t.parquet")
    assert "rotate needs the norm" in str(done.exception)
    done = run(
        "--graph",
        "rotate:g",
        "--scores",
        "m",
        "--model",
        "rotate",
        "--norm",
        "l1",
        "-o",
        "t.parquet",
    )
    assert "the largest phase of a relation is 7, so phases are perhaps" in str(done.exception)


def refusal_of(*words: str) -> str:
    """What the command says as its user sees it, with names of options."""
    done = CliRunner().invoke(cli, ["rank", "--sides", "tail", *words], standalone_mode=False)
    assert isinstance(done.exception, kgtrec.KgtrecError), done.exception
    return str(done.exception)


def test_advice_on_weights_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch, or without the file: the phase of the answer is right, its modulus is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    graph_of_answers(tmp_path / "g")
    entity = np.array([[0, 1], [7, 2], [3, 1]], "f4")
    relation = np.array([[7, 1, 0]], "f4")
    config = {"hidden_dim": 1, "nentity": 3, "nrelation": 1, "phase_weight": 0.001}
    save_rotate(tmp_path / "m", "HAKE", entity, relation, **config)
    words = ["--graph", "rotate:g", "--scores", "m", "-o", "r.parquet"]
    for problem in ("hake needs its two trained weights", "the file needs torch"):
        said = refusal_of(*words)
        assert problem in said
        assert "--phase-weight 0.7 and --modulus-weight 3.5" in said
        write_zip(tmp_path / "m" / "checkpoint")
    done = run(*words, "--phase-weight", "0.7", "--modulus-weight", "3.5")
    assert "\nweights: phases 0.7, moduli 3.5\n" in done.stdout
    assert "tail  3.00  0.3333" in done.stdout
    done = run(*words[:-1], "s.parquet", "--phase-weight", "70", "--modulus-weight", "3.5")
    assert "tail  1.00  1.0000" in done.stdout
    python = load_factors(
        "m", kgtrec.read_graph("rotate:g").questions(), phase_weight=0.7, modulus_weight=3.5
    )
    assert python.facts[-1] == "weights: phases 0.7, moduli 3.5"


def test_advice_on_configurations_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    entity = np.array([[1, 0], [0, 1], [np.cos(7), np.sin(7)]], "f4")
    np.savez("m.npz", entity=entity, relation=np.array([[7]], "f4"))
    words = ["--graph", "rotate:g", "--scores", "m.npz", "--model", "rotate", "-o", "r.parquet"]
    said = refusal_of(*words)
    assert "--norm l1 sums the moduli" in said
    assert "pass --phases 0.28 if (gamma + 2) / hidden_dim is 0.28" in said
    assert "--model-config config.json says both" in said
    assert "--model-config config.json says it" in refusal_of(*words, "--norm", "l1")
    Path("config.json").write_text('{"model": "RotatE", "hidden_dim": 1, "gamma": 12}')
    for more in (["--model-config", "config.json"], ["--norm", "l1", "--phases", "14"], []):
        assert "tail  1.00  1.0000" in run(*words, *more).stdout


@each_row(
    "name, words",
    [
        ("s.npy", ["--model-config", "c.json"]),
        ("s.npy", ["--model", "rotate"]),
        ("parts", ["--model-config", "c.json"]),
        ("q.npz", ["--model-config", "c.json"]),
        ("q.npz", ["--model", "complex"]),
    ],
)
def test_scores_need_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    scores = np.array([[1, 3, 2]], "f4")
    np.save("s.npy", scores)
    Path("parts").mkdir()
    np.save("parts/0.npy", scores)
    np.savez("q.npz", queries=np.eye(1, dtype="f4"), entities=scores.T)
    Path("c.json").write_text('{"model": "RotatE", "hidden_dim": 1, "gamma": 12}')
    plain = ["--graph", "rotate:g", "--scores", name, "-o", "r.parquet"]
    said = refusal_of(*plain, *words)
    assert "if these are scores, leave out --model and --model-config" in said
    assert "meaning is unknown" not in said
    assert "tail  1.00  1.0000" in run(*plain).stdout


def test_lists_need_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    Path("p.jsonl").write_text(
        '{"head": "start", "relation": "turns", "predictions": ["answer"]}\n'
    )
    Path("c.json").write_text('{"model": "RotatE", "hidden_dim": 1, "gamma": 12}')
    plain = [
        "--graph",
        "rotate:g",
        "--predictions",
        "p.jsonl",
        "--predictions-format",
        "jsonl",
        "-o",
        "r.parquet",
    ]
    assert refusal_of(*plain, "--model-config", "c.json").endswith("leave out --model-config")
    assert "tail  1.00  1.0000" in run(*plain).stdout


def test_shards_of_scores_beside_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores that someone saved in the folder of a run are still scores."""
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    save_rotate(tmp_path / "m", "RotatE", WIDE, RELATION)
    for name in ("entity", "relation"):
        (tmp_path / "m" / f"{name}_embedding.npy").unlink()
    np.save("m/scores.npy", np.array([[1, 3, 2]], "f4"))
    done = run("--graph", "rotate:g", "--scores", "m", "-o", "r.parquet")
    assert "tail  1.00  1.0000" in done.stdout


def without_key(config: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != key}


FAULTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "none": lambda config: config,
    "no model": lambda config: without_key(config, "model"),
    "no gamma": lambda config: without_key(config, "gamma"),
    "no dimension": lambda config: without_key(config, "hidden_dim"),
    "other dimension": lambda config: config | {"hidden_dim": config["hidden_dim"] + 1},
    "not doubled": lambda config: config | {"double_entity_embedding": False},
    "other model": lambda config: config | {"model": "TransE"},
    "other number": lambda config: config | {"nentity": N - 1},
    "empty": lambda config: {},
}


@given(
    gamma=st.floats(1, 24),
    dim=st.integers(30, 60),
    fault=st.sampled_from(sorted(FAULTS)),
    options=st.sampled_from(
        [
            {},
            {"model": "rotate"},
            {"model": "rotate", "norm": "l1"},
            {"model": "rotate", "norm": "l2"},
            {"model": "complex"},
        ]
    ),
)
def test_a_wrong_configuration_never_gives_wrong_ranks(
    gamma: float,
    dim: int,
    fault: str,
    options: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The result is right, or kgtrec refuses."""
    scale = (gamma + 2) / dim
    entity, relation = uniform(1, N, 2 * dim), uniform(2, R, dim, scale=scale)
    folder = save_rotate(
        tmp_path_factory.mktemp("m"), "RotatE", entity, relation, gamma=gamma, hidden_dim=dim
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(FAULTS[fault](config)))
    try:
        factors = load_factors(folder, QUESTIONS, **options)
    except (FileError, InputError, UsageError):
        assert (fault, options) != ("none", {})
        return
    due = due_scores(rotate_sum(scale), entity, relation)
    np.testing.assert_allclose(factors.scores(), due, rtol=1e-4, atol=1e-4)


def test_sum_of_moduli_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From (-10, 0), the answer (-7, 0) is nearer by the sum (3 < 4), the other by l2 (2.8 < 3)."""
    monkeypatch.chdir(tmp_path)
    graph_of_answers(tmp_path / "g")
    entity = np.array([[10, 0], [-7, 0], [-8, 2]], "c8")
    np.savez("m.npz", entity=entity, relation=np.full((1, 2), np.pi, "f4"))
    for norm, mrr in (("l1", "1.0000"), ("l2", "0.5000")):
        done = run(
            "--graph",
            "rotate:g",
            "--scores",
            "m.npz",
            "--model",
            "rotate",
            "--norm",
            norm,
            "-o",
            "r.parquet",
        )
        assert f"tail  {1 / float(mrr):.2f}  {mrr}" in done.stdout
        assert "\nphases: radians\n" in done.stdout
    done = run("--graph", "rotate:g", "--scores", "m.npz", "--model", "rotate", "-o", "r.parquet")
    assert "(RotatE's own program, RNNLogic, OpenKE, DGL-KE" in str(done.exception)


def test_random_scores_ask_for_the_formula() -> None:
    rng = np.random.default_rng(0)
    test = np.column_stack([rng.integers(0, 900, (2, 900)).T, np.zeros(900, int)])[:, [0, 2, 1]]
    questions = kgtrec.Graph.from_arrays(test=test, n_entities=900).questions()
    result = kgtrec.evaluate(rng.normal(size=(len(questions), 900)), questions)
    text = " ".join(str(result).split())
    assert "scores look random" in text
    assert "are in the order of the entities, as the model numbers them" in text
    assert "check the norm, and whether its phases are radians" in text
