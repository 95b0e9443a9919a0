"""What a work folder keeps from one call to the next is read again before it is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kgtrec
from kgtrec.cluster.array_files import FactorFiles
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.merge_parts import finish, perform
from kgtrec.cluster.part import Inputs
from kgtrec.cluster.question_store import Store, gather, save_questions
from kgtrec.cluster.score_files import describe_scores
from kgtrec.errors import FileError

N = 40


@pytest.fixture
def questions():
    rng = np.random.default_rng(2)
    splits = {name: rng.integers(0, (N, 3, N), (rows, 3)) for name, rows in
              (("train", 90), ("valid", 9), ("test", 20))}  # fmt: skip
    return kgtrec.Graph.from_arrays(**splits, n_entities=N).questions()


def flip(path: Path, at: int = -1) -> None:
    """One bit of the last byte, or of another one."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def ranked(inputs: Inputs) -> kgtrec.Ranks:
    store = inputs.store()
    return finish([perform((0, store.n_rows), [(0, store.n_labels)], inputs)], inputs)[0]


def test_every_file_of_a_store_is_checked_before_it_is_used_again(
    questions, tmp_path: Path
) -> None:
    scores = np.random.default_rng(0).random((len(questions), N))
    store = Path(make_inputs(scores, questions, tmp_path).folder)
    names = sorted(path.name for path in store.iterdir())
    assert "known_ids.npy" in names
    for name in names:
        whole = (store / name).read_bytes()
        flip(store / name)
        with pytest.raises(FileError, match="damaged") as raised:
            make_inputs(scores, questions, tmp_path)
        assert name in str(raised.value)
        with pytest.raises(FileError, match="damaged"):
            save_questions(questions, "questions", tmp_path)
        (store / name).write_bytes(whole)
    assert make_inputs(scores, questions, tmp_path).folder == str(store)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove"])
def test_chosen_rows_are_written_again(questions, tmp_path: Path, damage: str) -> None:
    part = questions.graph.questions(relations=[0, 1])
    scores = np.random.default_rng(0).random((len(questions), N))
    first = make_inputs(scores, part, tmp_path)
    assert first.files is not None
    expected = ranked(first)
    chosen = Path(first.files.selection)
    whole = chosen.read_bytes()
    if damage == "flip":
        flip(chosen, -8)
    elif damage == "remove":
        chosen.unlink()
    else:
        chosen.write_bytes(whole[: 20 * (damage == "cut")])
    again = ranked(make_inputs(scores, part, tmp_path))
    assert chosen.read_bytes() == whole
    assert (again.greater == expected.greater).all()


def test_an_unpacked_model_is_unpacked_again(questions, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"queries": rng.random((len(questions), 3)), "entities": rng.random((N, 3))}
    np.savez_compressed(tmp_path / "c.npz", **arrays)
    files = describe_scores(tmp_path / "c.npz", tmp_path)
    assert isinstance(files, FactorFiles)
    for damage in (lambda path: flip(path), lambda path: path.write_bytes(b"short")):
        damage(Path(files.entities.path))
        again = describe_scores(tmp_path / "c.npz", tmp_path)
        assert isinstance(again, FactorFiles)
        assert (again.entities.open() == arrays["entities"]).all()
        assert (again.queries.open() == arrays["queries"]).all()


def test_a_store_that_is_cut_short_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1000))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(500)
    with pytest.raises(FileError, match="it was cut short"):
        gather(mapped, np.array([3, 999]))
    assert Store  # its arrays are read the same way


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("(99, 3)", "bytes, of which"),
        ("(-3, 3)", "shape"),
        ("(True, 3)", "shape"),
        ("(4, 3", ".npz"),
    ],
)
def test_arrays_larger_than_their_members(tmp_path: Path, header: str, said: str) -> None:
    """A mapped array would go on with the bytes of whatever stands behind it."""
    import io
    import zipfile

    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        for name, shape in (("queries", header), ("entities", "(4, 3)")):
            out = io.BytesIO()
            text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
            out.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
            out.write(np.zeros((4, 3)).tobytes())
            archive.writestr(f"{name}.npy", out.getvalue())
    with pytest.raises(FileError, match=r"not a readable \.npz archive") as raised:
        describe_scores(tmp_path / "m.npz", tmp_path)
    assert said in str(raised.value)
