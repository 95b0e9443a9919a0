"""Files of vectors: what was saved, or one sentence that names the file."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from kgtrec.errors import FileError
from kgtrec.integrations.embeddings import load_embeddings

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
    with pytest.raises(FileError, match=r"model\.safetensors: not readable as safetensors"):
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
    with pytest.raises(FileError, match="no tensor in it"):
        load_embeddings(path)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(FileError, match="torch is not installed"):
            load_embeddings(path)


class Trap:
    """What pickle would call."""

    fired = False

    def __reduce__(self):
        return (setattr, (Trap, "fired", True))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for suffix in (".pt", ".pth"):
        torch.save({"model": Trap()}, tmp_path / f"trap{suffix}")
        with pytest.raises(FileError, match="more than weights, or damaged"):
            load_embeddings(tmp_path / f"trap{suffix}")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileError, match="more than weights, or damaged"):
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
        ("model.pkl", r"a file named \.pkl; vectors are read from"),
        ("model.npz", "not readable as numpy arrays"),
        ("empty", r"no \.npy file"),
        ("absent.npz", "there is no such file"),
    ):
        with pytest.raises(FileError, match=f"{name}: {said}"):
            load_embeddings(tmp_path / name)
