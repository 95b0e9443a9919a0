"""Files that a work folder keeps between calls are read again before use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from question_cases import random_questions, some_scores

import kgtrec
from kgtrec.cluster import content_hash
from kgtrec.cluster.content_hash import describe_files
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.plan import PartFiles
from kgtrec.cluster.question_store import Store, read_rows, save_questions
from kgtrec.cluster.ranges import Inputs, join_parts, rank_block
from kgtrec.cluster.score_files import FactorFiles, describe_scores
from kgtrec.errors import FileError, InputError
from kgtrec.ranking.settings import Settings
from kgtrec.scores.files import load_scores
from kgtrec.scores.sources import selected

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
    return join_parts([rank_block((0, store.n_rows), [(0, store.n_labels)], inputs)], inputs)[0]


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
    with pytest.raises(FileError, match="the file was cut short"):
        read_rows(mapped, np.array([3, 999]))
    assert Store  # its arrays are read the same way


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("(99, 3)", "bytes, but the file has only"),
        ("(-3, 3)", "shape"),
        ("(True, 3)", "shape"),
        ("(4, 3", ".npz"),
    ],
)
def test_arrays_larger_than_their_members(tmp_path: Path, header: str, said: str) -> None:
    """A mapped array would continue with the bytes of the following member."""
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


def test_shards_of_mixed_byte_order_are_equal(tmp_path: Path) -> None:
    """`kgtrec.rank` always accepted them; parts and chosen rows refused their type."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, (10, 4)).astype("f4")
    np.save(tmp_path / "1.npy", scores[:6])
    np.save(tmp_path / "2.npy", scores[6:].astype(">f4"))
    files = describe_scores(tmp_path, tmp_path)
    np.testing.assert_array_equal(files.block(0, 10, slice(None)), scores)
    np.testing.assert_array_equal(files.block(7, 9, slice(1, 3)), scores[7:9, 1:3])
    rows, columns = np.arange(10), rng.integers(0, 4, 10)
    np.testing.assert_array_equal(files.elements(rows, columns), scores[rows, columns])
    picked = selected(load_scores(tmp_path), np.array([8, 2, 9]))
    np.testing.assert_array_equal(np.concatenate(list(picked.blocks())), scores[[8, 2, 9]])
    np.save(tmp_path / "3.npy", scores.astype("f8"))
    with pytest.raises(FileError, match="save all shards with the same columns"):
        describe_scores(tmp_path, tmp_path)


# -- What mutants of the code around damaged and foreign work survived ---------------------------


def inputs_of(tmp_path: Path, scores: np.ndarray | None = None, **settings: Any) -> Inputs:
    rng = np.random.default_rng(5)
    questions = random_questions(rng, N)
    if scores is None:
        scores = some_scores(rng, (len(questions), N))
    return make_inputs(scores, questions, tmp_path / "work", Settings(threads=1, **settings))


def test_nan_in_a_range_is_named_as_in_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    questions = random_questions(rng, N)
    scores = some_scores(rng, (len(questions), N))
    scores[2, 15] = np.nan
    with pytest.raises(InputError) as whole:
        kgtrec.rank(scores, questions)
    inputs = inputs_of(tmp_path, scores)
    with pytest.raises(InputError) as ranges:
        rank_block((0, 4), [(0, 10), (10, N)], inputs)
    assert str(ranges.value).endswith(str(whole.value).removeprefix("scores: "))


def test_parts_and_notes_that_are_not_what_they_were_are_not_there(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path)
    files, part = PartFiles(tmp_path / "parts"), rank_block((0, 3), [(0, N)], inputs)
    files.save(part)
    assert files.load(part.task).task == part.task
    (path,) = files.folder.glob("*.part")
    other = replace(part.task, first_row=1)
    path.rename(path.with_name(f"1-{path.name.partition('-')[2]}"))
    assert files.load(other) is None
    files.save_note("tasks", [[0, 3]])
    assert files.load_note("tasks") == [[0, 3]]
    note = files.folder / "tasks.json"
    note.write_text(note.read_text().replace("[[0, 3]]", "[[0, 2]]"))
    assert files.load_note("tasks") is None


def test_questions_of_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = inputs_of(tmp_path)
    monkeypatch.setattr("kgtrec.cluster.question_store.__version__", "9.9")
    with pytest.raises(FileError, match=r"questions of kgtrec .*, but this is kgtrec 9\.9"):
        inputs.store()


def test_first_and_last_bytes_of_a_large_file_are_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WHOLE", 100), ("_SAMPLES", 3), ("_SAMPLE", 8)):
        monkeypatch.setattr(content_hash, name, value)
    path, content = tmp_path / "large.npy", bytes(200)
    hashes = set()
    for place in (None, 0, 7, 192, 199):
        changed = bytearray(content)
        if place is not None:
            changed[place] = 1
        path.write_bytes(changed)
        hashes.add(describe_files([path])["sampled_hash"][0])
    assert len(hashes) == 5


def test_a_write_between_the_samples_shows_on_one_machine_whatever_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WHOLE", 100), ("_SAMPLES", 1), ("_SAMPLE", 8)):
        monkeypatch.setattr(content_hash, name, value)
    path = tmp_path / "large.npy"
    path.write_bytes(bytes(200))
    before = [describe_files([path], here=here) for here in (False, True)]
    stat = path.stat()
    path.write_bytes(bytes(100) + b"x" + bytes(99))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert describe_files([path]) == before[0]  # other machines see only this
    assert describe_files([path], here=True) != before[1]


def test_parts_depend_on_every_setting_that_counts(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    from kgtrec.cluster.dask.rank import identity

    inputs = inputs_of(tmp_path)
    changes = ({}, {"run_depth": 3}, {"higher_is_better": False}, {"nan": "worst"}, {"atol": 0.1})
    known = {
        identity(replace(inputs, settings=replace(inputs.settings, **change))) for change in changes
    }
    assert len(known) == len(changes)
    assert identity(replace(inputs, settings=replace(inputs.settings, threads=3))) in known
