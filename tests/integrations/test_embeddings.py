"""Files of vectors: the saved values, or one sentence that names the file."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import FileError, InputError
from kgtrec.integrations.embeddings import load_embeddings, load_factors

VECTORS = {
    "entity": np.arange(12, dtype=np.float32).reshape(4, 3),
    "relation": np.arange(6, dtype=np.float64).reshape(2, 3),
}


def assert_vectors(arrays: dict[str, np.ndarray]) -> None:
    assert set(arrays) == set(VECTORS)
    for name, values in VECTORS.items():
        assert arrays[name].dtype == values.dtype
        np.testing.assert_array_equal(arrays[name], values)


def test_numpy_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **VECTORS)
    assert_vectors(load_embeddings(tmp_path / "model.npz"))
    (tmp_path / "folder").mkdir()
    for name, values in VECTORS.items():
        np.save(tmp_path / "folder" / f"{name}.npy", values)
    assert_vectors(load_embeddings(str(tmp_path / "folder")))
    assert list(load_embeddings(tmp_path / "folder" / "entity.npy")) == ["entity"]


def test_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "model.safetensors"
    library.save_file(VECTORS, path)
    assert_vectors(load_embeddings(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    with pytest.raises(FileError, match=r"model\.safetensors: safetensors cannot read it"):
        load_embeddings(path)
    path.write_bytes(whole)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        assert_vectors(load_embeddings(path))
        without.setitem(sys.modules, "safetensors", None)
        with pytest.raises(FileError, match=r"pip install 'kgtrec\[embeddings\]'"):
            load_embeddings(path)


def test_torch_weights_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    state = {name: torch.from_numpy(values) for name, values in VECTORS.items()}
    torch.save(state, path)
    assert_vectors(load_embeddings(path))
    torch.save({"state_dict": {"e": {"weight": state["entity"].bfloat16()}}, "epoch": 3}, path)
    ((name, values),) = load_embeddings(path).items()
    assert name == "state_dict.e.weight"
    np.testing.assert_array_equal(values, VECTORS["entity"])
    torch.save({"epoch": 3}, path)
    with pytest.raises(FileError, match="contains no tensor"):
        load_embeddings(path)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(FileError, match="torch is not installed"):
            load_embeddings(path)


class Trap:
    """A function that pickle would call."""

    fired = False

    def __reduce__(self):
        return (setattr, (Trap, "fired", True))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for suffix in (".pt", ".pth"):
        torch.save({"model": Trap()}, tmp_path / f"trap{suffix}")
        with pytest.raises(FileError, match="more than weights, or is damaged"):
            load_embeddings(tmp_path / f"trap{suffix}")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileError, match="more than weights, or is damaged"):
        load_embeddings(tmp_path / "plain.pt")
    np.savez(tmp_path / "trap.npz", entity=np.array([Trap()], dtype=object))
    with pytest.raises(FileError, match="Python objects"):
        load_embeddings(tmp_path / "trap.npz")
    assert not Trap.fired


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"x")
    (tmp_path / "model.npz").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("model.pkl", r"a file ending in \.pkl; kgtrec reads vectors from"),
        ("model.npz", "not a readable .npz archive"),
        ("empty", r"no \.npy file"),
        ("absent.npz", "the file does not exist"),
    ):
        with pytest.raises(FileError, match=f"{name}: {said}"):
            load_embeddings(tmp_path / name)


# -- Models ------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
GRAPH = kgtrec.Graph.from_arrays(
    train=np.array([[0, 0, 1], [2, 1, 3]]), test=np.array([[1, 0, 2], [3, 1, 4]]), n_entities=5
)
QUESTIONS = GRAPH.questions()
ENTITY, RELATION = RNG.normal(size=(5, 4)), RNG.normal(size=(2, 4))


@pytest.mark.parametrize("names", [
    ("entity", "relation"), ("entities", "relations"), ("E.weight", "R.weight"),
    ("ent_embeddings.weight", "rel_embeddings.weight"), ("model.entity_emb", "model.relation_emb"),
])  # fmt: skip
def test_arrays_are_found_by_their_names(names: tuple[str, str], tmp_path: Path) -> None:
    arrays = {names[0]: ENTITY, names[1]: RELATION, "epoch": np.array(3)}
    np.savez(tmp_path / "m.npz", **arrays)
    factors = load_factors(tmp_path / "m.npz", QUESTIONS, "distmult")
    expected = kgtrec.Factors.from_embeddings(
        QUESTIONS, "distmult", entity=ENTITY, relation=RELATION
    )
    assert np.array_equal(factors.queries, expected.queries)


@pytest.mark.parametrize(("arrays", "error", "words"), [
    ({"entity": ENTITY}, FileError, "m.npz: arrays 'entity'; save only the embeddings"),
    ({"entity": ENTITY, "ents": ENTITY, "rel": RELATION}, FileError, "'entity' and 'ents', which"),
    ({"entity": ENTITY, "rel": RELATION, "gate": RELATION}, FileError, "'gate', whose meaning"),
    ({"entity": ENTITY, "rel": np.tile(RELATION, (2, 1))}, InputError, "pass inverse='offset'"),
    ({"entity": ENTITY.astype(object), "rel": RELATION}, FileError, "contains Python objects"),
])  # fmt: skip
def test_mistakes(
    arrays: dict[str, np.ndarray], error: type[Exception], words: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(error) as caught:
        load_factors(tmp_path / "m.npz", QUESTIONS, "distmult")
    assert words in str(caught.value)


def test_a_single_value_is_no_embedding() -> None:
    with pytest.raises(InputError, match=r"epoch .* single value, not embeddings: leave it out"):
        kgtrec.Factors.from_embeddings(
            QUESTIONS, "distmult", entity=ENTITY, relation=RELATION, epoch=np.array(3.0)
        )
