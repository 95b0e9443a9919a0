"""The same results for any source of scores, or one line about a source that changes.

test_refusals.txt has faulty sources.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from question_cases import assert_same
from refusals import each_row
from slow import slow_after

import kgtrec
from kgtrec import _core
from kgtrec._internal.locations import RangedFile
from kgtrec.cli import cli
from kgtrec.errors import FileError, InputError
from kgtrec.ranking import blocks
from kgtrec.scores import files
from kgtrec.scores.mapped_files import Watch, find_mapped_file, guarded_maps

N_ENTITIES = 301


@pytest.fixture(scope="module")
def questions():
    triples = np.random.default_rng(7).integers(0, (N_ENTITIES, 4, 40), (900, 3))
    splits = np.split(triples, [500, 600])
    return kgtrec.Graph.from_arrays(*splits, n_entities=N_ENTITIES).questions()


@pytest.fixture(scope="module")
def scores(questions) -> np.ndarray:
    """Many ties: a few values only."""
    shape = (len(questions), N_ENTITIES)
    return np.random.default_rng(8).integers(0, 25, shape).astype(np.float32)


@pytest.fixture(scope="module")
def due(scores, questions):
    return kgtrec.rank(scores, questions, run_depth=20, threads=1)


@pytest.fixture(scope="module")
def factors(questions) -> kgtrec.Factors:
    """Whole numbers, so that scores tie."""
    rng = np.random.default_rng(9)
    return kgtrec.Factors(
        rng.integers(-2, 3, (len(questions), 6)).astype(np.float32),
        rng.integers(-2, 3, (N_ENTITIES, 6)).astype(np.float32),
    )


def in_blocks_of(rows: int, monkeypatch) -> None:
    """Sources that choose their own block size choose this one."""
    monkeypatch.setattr("kgtrec.scores.sources.BLOCK_BYTES", rows * N_ENTITIES * 4)
    monkeypatch.setattr("kgtrec.ranking.kernel._FACTOR_ROWS", rows)


@pytest.mark.parametrize("metric", ["dot", "l2"])
@pytest.mark.parametrize("bias", [False, True])
def test_threads_and_chunks_of_factors(metric, bias, factors, questions, monkeypatch):
    offsets = np.arange(N_ENTITIES, dtype=np.float32) % 5 if bias else None
    source = kgtrec.Factors(factors.queries, factors.entities, bias=offsets, metric=metric)
    due = kgtrec.rank(source, questions, run_depth=20, threads=1)
    for threads in (1, 2, 3, 7):
        for rows in (1, 17, 10_000):
            in_blocks_of(rows, monkeypatch)
            got = kgtrec.rank(source, questions, run_depth=20, threads=threads)
            assert_same(got, due)
    q, x = factors.queries.astype(np.float64), factors.entities.astype(np.float64)
    dense = q @ x.T if metric == "dot" else -((q[:, None, :] - x[None]) ** 2).sum(-1)
    dense = (dense if offsets is None else dense + offsets).astype(np.float32)
    assert_same(kgtrec.rank(dense, questions, run_depth=20), due)  # whole numbers: exact


def in_chunks(scores: np.ndarray, sizes=(1, 5, 40)):
    """Chunks of uneven sizes, which together are the scores."""
    start = step = 0
    while start < len(scores):
        stop = start + sizes[step % len(sizes)]
        yield scores[start:stop]
        start, step = stop, step + 1


def saved(folder: Path, scores: np.ndarray) -> Path:
    np.save(folder / "scores.npy", scores)
    return folder / "scores.npy"


def in_shards(folder: Path, scores: np.ndarray) -> Path:
    for number, chunk in enumerate(in_chunks(scores, (100, 7))):
        np.save(folder / f"part-{number:03}.npy", chunk)
    return folder


class ByArray:
    """What any framework's tensor on the CPU can do."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.scores, dtype=dtype)  # numpy 1 knows no copy=None


class ByDlpack:
    """What newer tensors can do; those that record gradients must be detached first."""

    def __init__(self, scores: np.ndarray, detached: bool = False) -> None:
        self.scores, self.detached = scores, detached

    def detach(self) -> ByDlpack:
        return ByDlpack(self.scores, True)

    def __dlpack__(self, **how: object) -> object:
        if not self.detached:
            raise BufferError("cannot export a tensor that requires gradients")
        return self.scores.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.scores.__dlpack_device__()


SOURCES: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "matrix": lambda folder, scores: scores,
    "memmap": lambda folder, scores: np.load(saved(folder, scores), mmap_mode="r"),
    "memoryview": lambda folder, scores: memoryview(scores),
    "name": lambda folder, scores: str(saved(folder, scores)),
    "path": saved,
    "Fortran's order": lambda folder, scores: saved(folder, np.asfortranarray(scores)),
    "shards": in_shards,
    "list": lambda folder, scores: list(in_chunks(scores)),
    "iterator": lambda folder, scores: in_chunks(scores),
    "callable": lambda folder, scores: lambda batch: scores[batch.question],
    "tensor": lambda folder, scores: ByArray(scores),
    "dlpack": lambda folder, scores: ByDlpack(scores),
    "tensors": lambda folder, scores: map(ByArray, in_chunks(scores)),
    "dlpacks": lambda folder, scores: map(ByDlpack, in_chunks(scores)),
}


@pytest.mark.parametrize(("rows", "threads"), [(9, 3), (64, 64), (10_000, 2)])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source(source, rows, threads, tmp_path, scores, questions, due, monkeypatch):
    in_blocks_of(rows, monkeypatch)
    got = kgtrec.rank(SOURCES[source](tmp_path, scores), questions, run_depth=20, threads=threads)
    assert_same(got, due)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i8"]
)
def test_integers_rank_as_their_float64(source, dtype, tmp_path, scores, questions, monkeypatch):
    if dtype == ">i8" and "dlpack" in source:
        pytest.skip("DLPack has no byte order")
    in_blocks_of(64, monkeypatch)
    integers = scores.astype(dtype) if dtype[0] == "u" else (scores - 12).astype(dtype)
    got = kgtrec.rank(SOURCES[source](tmp_path, integers), questions, run_depth=20)
    assert_same(got, kgtrec.rank(integers.astype(np.float64), questions, run_depth=20))


NEAR_LIMITS = [
    *(sign * (2**53 + step) for sign in (1, -1) for step in (-2, -1, 0, 1, 2, 3)),
    *(sign * 2**power for sign in (1, -1) for power in (54, 62, 63, 64)),
    *(2**power - 1 for power in (62, 63, 64)),
    0,
]


@given(data=st.data(), dtype=st.sampled_from(["int64", "uint64", "list"]))
def test_integers_are_exact_or_refused(data: st.DataObject, dtype: str) -> None:
    kind = np.iinfo("uint64" if dtype == "uint64" else "int64")
    fitting = [value for value in NEAR_LIMITS if kind.min <= value <= kind.max]
    row = data.draw(st.lists(st.sampled_from(fitting), min_size=4, max_size=4))
    triple = np.array([[0, 0, 1]])
    one_question = kgtrec.Graph.from_arrays(triple[:0], triple[:0], triple, n_entities=4).questions(
        sides="tail"
    )
    matrix = [[*row[:3], float(row[3])]] if dtype == "list" else np.array([row], dtype)
    if any(int(float(value)) != value for value in row[: 3 if dtype == "list" else 4]):
        with pytest.raises(InputError, match="is beyond 2\\^53, and float64 rounds it"):
            kgtrec.rank(matrix, one_question)
        return
    ranks, _ = kgtrec.rank(matrix, one_question)
    row[3] = int(float(row[3]))
    assert ranks.greater.tolist() == [sum(value > row[1] for value in row)]
    assert ranks.equal.tolist() == [sum(value == row[1] for value in row) - 1]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_that_was_refused_may_be_given_again(threads, scores, questions, due):
    ranker = kgtrec.Ranker(questions, run_depth=20, threads=threads)
    for number, batch in enumerate(ranker.batches(100)):
        right = scores[batch.start : batch.stop]
        wrong = right.copy()
        wrong[len(wrong) // 2] = np.nan
        with pytest.raises(InputError, match="NaN"):
            ranker.update(batch, wrong)
        if number % 2:
            with pytest.raises(InputError, match="shape"):
                ranker.update(batch, right[:-1])
        ranker.update(batch, right)
    assert_same(ranker.finish(), due)


class Counting:
    """A file in memory that records the requests to it."""

    url = "s3://b/x.npy"

    def __init__(self, data: bytes) -> None:
        self.data, self.asked = data, list[tuple[int, int]]()

    def read(self, start: int, n_bytes: int) -> bytes:
        self.asked.append((start, n_bytes))
        return self.data[start : start + n_bytes]


@given(st.data())
def test_parts_of_arrays(data: st.DataObject) -> None:
    gap, span = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 60))
    n, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    shape = data.draw(st.sampled_from([(n,), (n, width)]))
    dtype = np.dtype(data.draw(st.sampled_from(["<f4", ">f4", "<f8", "<f2"])))
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    file: Any = Counting(b"head" + array.tobytes())
    part = files.RangedArray(file, 4, shape, dtype, gap)
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), np.int64)
    some_rows, some_columns = (
        slice(*sorted((data.draw(st.integers(0, size)), data.draw(st.integers(0, size)))))
        for size in (n, width)
    )
    keys: list[Any] = [some_rows, rows]
    if len(shape) == 2:
        columns = np.array([data.draw(st.integers(0, width - 1)) for _ in rows], np.int64)
        keys += [(rows, some_columns), (some_rows, some_columns), (rows, columns)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_SPAN", span)
        for key in keys:
            file.asked.clear()
            values = part[key]
            np.testing.assert_array_equal(values, array[key], strict=True)
            needed = set(np.arange(array.size).reshape(shape)[key].reshape(-1).tolist())
            for start, n_bytes in file.asked:
                first, count = (start - 4) // dtype.itemsize, n_bytes // dtype.itemsize
                assert {first, first + count - 1} <= needed
                idle = np.diff(sorted(needed & set(range(first, first + count)))) - 1
                assert (idle * dtype.itemsize <= gap).all()
                assert (
                    key is some_rows
                    or n_bytes <= max(span, width * dtype.itemsize)
                    or (_is_whole(key, width))
                )


def _is_whole(key: Any, width: int) -> bool:
    """Whether the requested rows are adjacent, which is one request of any length."""
    return isinstance(key, tuple) and isinstance(key[0], slice) and key[1] == slice(0, width)


def test_a_file_that_is_cut_short() -> None:
    file: Any = Counting(np.arange(6, dtype="<f4").tobytes()[:-1])
    part = files.RangedArray(file, 0, (2, 3), "<f4")
    assert part[:1].tolist() == [[0, 1, 2]]
    with pytest.raises(FileError, match=r"^s3://b/x.npy: it was cut short: it has 11 of 12 bytes"):
        part[1:]


def test_a_file_as_a_stream(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9
    (tmp_path / "x").write_bytes(content)
    with RangedFile((tmp_path / "x").as_uri()).stream() as stream:
        assert stream.read() == content
        assert stream.seek(-5, 2) == len(content) - 5
        assert stream.read(9) == content[-5:]
        stream.seek(7)
        assert stream.read(3) == content[7:10]
        assert stream.seek(2, 1) == 12


# -- Files that change while they are ranked ------------------------------------------------------

PAGES = 4096  # entities: a row of float32 is four pages


def written(path: str, place: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(data)


def written_with_its_time_set_back(path: str) -> None:
    before = os.stat(path)
    written(path, 256, bytes(4))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: str) -> None:
    np.save(f"{path}.npy", np.zeros((40, PAGES), np.float32))
    os.replace(f"{path}.npy", path)


NAN = np.full(PAGES, np.nan, np.float32).tobytes()
CUT, WRITTEN = (f"it was {what} while it was read" for what in ("cut short", "written to"))
ACTS: dict[str, tuple[Callable[[str], None], str]] = {
    "cut": (lambda path: os.truncate(path, 200), CUT),
    "cut half": (lambda path: os.truncate(path, os.path.getsize(path) // 2), CUT),
    "write": (lambda path: written(path, os.path.getsize(path) - 4, bytes(4)), WRITTEN),
    "write and set the time back": (written_with_its_time_set_back, WRITTEN),
    "nan": (
        lambda path: written(path, 128, NAN * (os.path.getsize(path) // len(NAN) - 1)),
        WRITTEN,
    ),
    "replace": (replaced, CUT),
    "remove": (os.unlink, "it disappeared while it was read"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(3)
    (tmp_path / "g").mkdir()
    triples = rng.integers(0, (PAGES, 3, PAGES), (60, 3))
    lines = [f"e{h:05}\tr{r}\te{t:05}\n" for h, r, t in triples.tolist()]
    (tmp_path / "g" / "test.txt").write_text("".join(lines[:30]))
    (tmp_path / "g" / "valid.txt").write_text(lines[30])
    (tmp_path / "g" / "train.txt").write_text(
        "".join(lines[30:] + [f"e{e:05}\tr0\te{e:05}\n" for e in range(PAGES)])
    )
    (tmp_path / "some.txt").write_text("r0\nr1\n")
    monkeypatch.chdir(tmp_path)
    n = len(kgtrec.read_graph("g", progress=False).questions())
    np.save("s.npy", rng.random((n, PAGES), dtype=np.float32))
    np.save("f.npy", np.asfortranarray(rng.random((n, PAGES), dtype=np.float32)))
    os.mkdir("parts")
    for number, piece in enumerate(np.array_split(rng.random((n, PAGES), dtype=np.float32), 3)):
        np.save(f"parts/{number}.npy", piece)
    return tmp_path


def ranked(scores: str, change: Callable[[], None], block: int, *more: str) -> Any:
    """Rank with the command; change something before this block of rows. Return what it raised."""
    rank_block, seen = blocks.rank_block, []

    def changed(*args) -> None:
        seen.append(1)
        if len(seen) == block:
            change()
        rank_block(*args)

    words = ["rank", "--graph", "g", "--scores", scores, "-o", "o.parquet", "--write-run", "o.run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgtrec.ranking.rank.rank_block", changed)
        patch.setattr("kgtrec.scores.sources.BLOCK_BYTES", 1 << 17)
        return CliRunner().invoke(cli, [*words, "--write-qrels", "o.qrels", *more]).exception


FEW = ("--relations", "some.txt")
CHANGES = [
    *(("s.npy", "s.npy", (), act, block) for act in ACTS for block in (1, 3)),
    *(
        (path, scores, more, act, 2)
        for path, scores, more in (
            ("f.npy", "f.npy", ()),
            ("parts/0.npy", "parts", ()),
            ("parts/2.npy", "parts", ()),
            ("s.npy", "s.npy", FEW),
        )
        for act in ("cut", "write")
    ),
    *(("s.npy", "s.npy", (), act, 8) for act in ("cut", "write")),  # the last block of 60 rows
]


@each_row("path, scores, more, act, block", CHANGES)
def test_a_file_that_changes_while_it_is_ranked(home, path, scores, more, act, block) -> None:
    """One line about the file, code 2, nothing written; as it was, the file is ranked."""
    content, (change, said) = Path(path).read_bytes(), ACTS[act]
    error = ranked(scores, lambda: change(path), block, *more)
    assert isinstance(error, FileError)
    assert error.exit_code == 2
    assert str(error).startswith(f"{path}: {said}")
    assert str(error).endswith("; try again when nothing writes to it")
    assert "\n" not in str(error)
    assert not [*Path().glob("o.*"), *Path().glob(".kgtrec-*")]
    Path(path).write_bytes(content)
    assert ranked(scores, lambda: None, 0, *more) is None
    for name in ("o.parquet", "o.run", "o.qrels"):
        os.unlink(name)


def test_arrays_that_numpy_has_mapped(home: Path) -> None:
    questions = kgtrec.read_graph("g", progress=False).questions()
    matrix = np.load("s.npy", mmap_mode="r")
    expected = kgtrec.rank(matrix, questions)[0]
    again = kgtrec.rank(np.asarray(matrix), questions)[0]
    assert (again.greater == expected.greater).all()
    for array in (matrix, np.asarray(matrix), matrix[:]):
        assert find_mapped_file(array) == str(home / "s.npy")
    assert find_mapped_file(np.array(matrix)) is None
    assert find_mapped_file(np.load("s.npy", mmap_mode="r+")) is None  # open for writing

    def blocks():
        yield matrix[:4]
        os.truncate("s.npy", 5000)
        yield matrix[4:]

    with pytest.raises(FileError, match="could not be read: it was cut short"):
        kgtrec.rank(blocks(), questions)


def test_an_archive_that_is_written_to_while_it_is_loaded(home: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    questions = kgtrec.read_graph("g", progress=False).questions()
    np.savez("m.npz", queries=rng.random((len(questions), 2)), entities=rng.random((PAGES, 2)))
    load = np.load

    def slow(*args, **options):
        with open("m.npz", "ab") as file:
            file.write(b"x")
        return load(*args, **options)

    monkeypatch.setattr(np, "load", slow)
    with pytest.raises(FileError, match="it was written to while it was read"):
        kgtrec.rank("m.npz", questions)


# -- The guard ---------------------------------------------------------------------------------


def test_pages_that_are_gone_are_zeros_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\1" * (8 * 4096))
    mapped = np.memmap(path, np.uint8, "r")
    before = _core.map_faults()

    def cut() -> None:
        with guarded_maps(path):
            os.truncate(path, 4096)
            assert mapped.sum() == 4096
            assert _core.map_faults() == before + 7

    def cut_and_seen() -> None:
        with guarded_maps(path, Watch([path])):
            os.truncate(path, 10)

    with pytest.raises(FileError, match="could not be read"):
        cut()
    with pytest.raises(FileError, match="cut short while it was read"):
        cut_and_seen()
    with guarded_maps(path):  # earlier counts are no fault of this file
        pass
    with pytest.raises(InputError, match="mine"), guarded_maps(path):
        raise InputError("mine")


_AFTER = """
import os, signal, sys
import numpy as np
from kgtrec.scores.mapped_files import guarded_maps
from kgtrec import _core
open(sys.argv[1], "wb").write(bytes(8192))
mapped = np.memmap(sys.argv[1], np.uint8, "r")
_core.map_guard_begin()
with guarded_maps("x"):
    pass
if sys.argv[2] == "inside":
    os.kill(os.getpid(), signal.SIGBUS)
os.truncate(sys.argv[1], 0)
mapped.sum()  # still guarded: pairs are nested
_core.map_guard_end()
mapped = np.memmap(sys.argv[1] + "2", np.uint8, "w+", shape=8192)
os.truncate(sys.argv[1] + "2", 0)
print("guarded", flush=True)
mapped.sum()
"""


@pytest.mark.parametrize(("where", "said"), [("after", "guarded\n"), ("inside", "")])
def test_sigbus_is_what_it_was_for_all_else(tmp_path: Path, where: str, said: str) -> None:
    # A loaded sanitizer has its own handler, which would end the process in another way.
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:handle_sigbus=0"
    done = subprocess.run(
        [sys.executable, "-c", _AFTER, str(tmp_path / "x"), where],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": options},
    )
    assert done.returncode == -signal.SIGBUS, done
    assert done.stdout == said


# -- Every reader of mapped files --------------------------------------------------------------

_READERS = """
import os, sys
import numpy as np
import kgtrec
import kgtrec.ranking.rank
import kgtrec.ranking.ranker
from kgtrec import study
from kgtrec.errors import FileError
from kgtrec.scores.files import load_matrix
from kgtrec.study.sampling import draw

reader, act = sys.argv[1:]
N = 3000
names = [f"e{number:04}" for number in range(N)]
triples = np.stack([np.arange(40), np.zeros(40, int), np.arange(40) + 50], axis=1)
graph = kgtrec.Graph.from_arrays(
    train=triples, test=triples[:20], entities=names, relations=["r"]
)
questions = graph.questions("test")
rng = np.random.default_rng(0)
tables = {"left": (400, 64), "right": (400, 64), "weights": (2, N), "scores": (len(questions), N),
          "queries": (len(questions), 256), "entities": (N, 256), "matrix": (400, 400)}
for name, shape in tables.items():
    np.save(f"{name}.npy", rng.random(shape) + 0.1)

def change(name):
    size = os.path.getsize(f"{name}.npy")
    if act == "cut":
        os.truncate(f"{name}.npy", 200)
    else:
        with open(f"{name}.npy", "r+b") as file:
            file.seek(size - 4096)
            file.write(bytes(4096))

def loaded(name):
    matrix = load_matrix(f"{name}.npy")
    if name == changing:
        change(name)
    return matrix

pairs = np.stack([np.arange(300)] * 2, axis=1)
changing = {"align": "left", "sizes": "right", "matrix": "matrix", "csls": "matrix",
            "array": "weights"}.get(reader, "")

def from_file():
    of_matrix = draw._weigh_by_matrix
    def changed(*arguments):
        change("weights")
        return of_matrix(*arguments)
    draw._weigh_by_matrix = changed
    study.draw_candidates(questions, 10, "weights.npy")

def updates():
    ranker = kgtrec.Ranker(questions)
    array = np.load("scores.npy", mmap_mode="r")
    first = ranker.batch(0, 2)
    ranker.update(first, array[:2])
    rank_block = kgtrec.ranking.ranker.rank_block
    def changed(*arguments):
        kgtrec.ranking.ranker.rank_block = rank_block
        change("scores")
        rank_block(*arguments)
    kgtrec.ranking.ranker.rank_block = changed
    try:
        ranker.update(ranker.batch(2, len(questions)), array[2:])
    finally:
        assert ranker.n_scored == 2  # nothing of the batch is kept

def factors():
    vectors = [np.load(f"{name}.npy", mmap_mode="r") for name in ("queries", "entities")]
    model = kgtrec.Factors(*vectors)
    rank_all = kgtrec.ranking.rank.rank_all
    def changed(*arguments, **options):
        change("entities")
        return rank_all(*arguments, **options)
    kgtrec.ranking.rank.rank_all = changed
    kgtrec.rank(model, questions)

readers = {
    "align": lambda: kgtrec.align(pairs, loaded("left"), loaded("right")),
    "sizes": lambda: study.size_experiment(pairs, loaded("left"), loaded("right"), repeats=1),
    "matrix": lambda: kgtrec.align(pairs, similarity=loaded("matrix")),
    "csls": lambda: kgtrec.align(pairs, similarity=loaded("matrix"), csls=3),
    "array": lambda: study.draw_candidates(questions, 10, loaded("weights")),
    "file": from_file, "update": updates, "factors": factors,
}
try:
    readers[reader]()
except FileError as error:
    print(error)
"""


@pytest.mark.parametrize("act", ["cut", "write"])
@pytest.mark.parametrize(
    ("reader", "path"),
    slow_after(
        4,
        [
            ("align", "left"),
            ("update", "scores"),
            ("file", "weights"),
            ("csls", "matrix"),
            ("sizes", "right"),
            ("matrix", "matrix"),
            ("array", "weights"),
            ("factors", "entities"),
        ],
    ),
)
def test_every_reader_notices_that_its_file_changes(
    reader: str, path: str, act: str, tmp_path: Path
) -> None:
    """In a process of its own, which the system killed where a page of the file was gone."""
    done = subprocess.run(
        [sys.executable, "-c", _READERS, reader, act],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert f"{path}.npy: it was {'cut short' if act == 'cut' else 'written to'}" in done.stdout
