"""Scores that are written to, cut short, replaced or removed during ranking: one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from slow import slow_after, slow_but

import kgtrec
from kgtrec import _core
from kgtrec.errors import FileError, InputError
from kgtrec.scores.mapped_files import Watch, guarded_maps, mapped_file

N = 4096  # entities: a row of float32 is four pages

# A command in a separate process, where the file changes at some point of the work.
_PATCHED = """
import os, sys
import numpy as np
from kgtrec import cli
from kgtrec.ranking.ranker import Ranker
from kgtrec.scores import sources
sources.BLOCK_BYTES = 1 << 17
path, act, block = sys.argv[1], sys.argv[2], int(sys.argv[3])
rank_rows, seen = Ranker.rank_rows, []

def changed(*args):
    seen.append(1)
    if len(seen) == block:
        if act == "cut":
            os.truncate(path, 200)
        elif act == "cut half":
            os.truncate(path, os.path.getsize(path) // 2)
        elif act == "write":
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) - 4)
                file.write(bytes(4))
        elif act == "write and set the time back":
            before = os.stat(path)
            with open(path, "r+b") as file:
                file.seek(256)
                file.write(bytes(4))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        elif act == "nan":
            with open(path, "r+b") as file:
                file.seek(128)
                file.write(np.full(os.path.getsize(path) // 4 - 32, np.nan, np.float32).tobytes())
        elif act == "replace":
            np.save(path + ".npy", np.zeros((40, 4096), np.float32))
            os.replace(path + ".npy", path)
        elif act == "remove":
            os.unlink(path)
    return rank_rows(*args)

Ranker.rank_rows = changed
sys.argv[1:] = sys.argv[4:]
cli.main()
"""
SAID = {
    "cut": "it was cut short while it was read",
    "cut half": "it was cut short while it was read",
    "write": "it was written to while it was read",
    "write and set the time back": "it was written to while it was read",
    "nan": "it was written to while it was read",
    "replace": "it was cut short while it was read",
    "remove": "it disappeared while it was read",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(3)
    (tmp_path / "g").mkdir()
    triples = rng.integers(0, (N, 3, N), (60, 3))
    lines = [f"e{h:05}\tr{r}\te{t:05}\n" for h, r, t in triples.tolist()]
    (tmp_path / "g" / "test.txt").write_text("".join(lines[:30]))
    (tmp_path / "g" / "train.txt").write_text(
        "".join(lines[30:] + [f"e{e:05}\tr0\te{e:05}\n" for e in range(N)])
    )
    monkeypatch.chdir(tmp_path)
    n = len(kgtrec.read_graph("g", progress=False).questions())
    np.save("s.npy", rng.random((n, N), dtype=np.float32))
    np.save("f.npy", np.asfortranarray(rng.random((n, N), dtype=np.float32)))
    os.mkdir("parts")
    for number, piece in enumerate(np.array_split(rng.random((n, N), dtype=np.float32), 3)):
        np.save(f"parts/{number}.npy", piece)
    return tmp_path


def ranked(path: str, act: str, block: int, scores: str, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", _PATCHED, path, act, str(block), "rank", "--graph", "g",
         "--scores", scores, "-o", "o.parquet", "--write-run", "o.run", "--write-qrels", "o.qrels",
         *more],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def refused(done: subprocess.CompletedProcess, path: str, said: str) -> None:
    """One line, code 2, nothing written."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    *warned, last = done.stderr.splitlines()
    assert last.startswith(f"kgtrec: {path}: {said}"), done.stderr
    assert last.endswith("; try again when nothing writes to it")
    assert all("the graph has no split 'valid'" in line for line in warned)
    assert not list(Path().glob("o.*"))
    assert not list(Path().glob(".kgtrec-*"))


@pytest.mark.parametrize(
    ("act", "block"), slow_but([("cut", 1), ("cut half", 3)], product(SAID, (1, 3)))
)
def test_a_file_that_changes_while_it_is_ranked(home: Path, act: str, block: int) -> None:
    refused(ranked("s.npy", act, block, "s.npy"), "s.npy", SAID[act])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "scores", "more"),
    slow_after(
        1,
        [
            ("f.npy", "f.npy", ()),
            ("parts/0.npy", "parts", ()),
            ("parts/2.npy", "parts", ()),
            ("s.npy", "s.npy", ("--relations", "some.txt")),
        ],
    ),
)
def test_other_layouts(home: Path, path: str, scores: str, more: tuple[str, ...]) -> None:
    Path("some.txt").write_text("r0\nr1\n")
    assert ranked("nothing", "", 0, scores, *more).returncode == 0
    for name in ("o.parquet", "o.run", "o.qrels"):
        os.unlink(name)
    for act in ("cut", "write"):
        content = Path(path).read_bytes()
        refused(ranked(path, act, 2, scores, *more), path, SAID[act])
        Path(path).write_bytes(content)


@pytest.mark.parametrize("act", slow_after(1, ["write", "cut"]))
def test_the_last_block(home: Path, act: str) -> None:
    """Files that change after the last check between blocks."""
    rows = np.load("s.npy", mmap_mode="r").shape[0]
    blocks = -(-rows // ((1 << 17) // (4 * N)))
    refused(ranked("s.npy", act, blocks, "s.npy"), "s.npy", SAID[act])


def test_arrays_that_numpy_has_mapped(home: Path) -> None:
    questions = kgtrec.read_graph("g", progress=False).questions()
    matrix = np.load("s.npy", mmap_mode="r")
    expected = kgtrec.rank(matrix, questions)[0]
    again = kgtrec.rank(np.asarray(matrix), questions)[0]
    assert (again.greater == expected.greater).all()
    for array in (matrix, np.asarray(matrix), matrix[:]):
        assert mapped_file(array) == str(home / "s.npy")
    assert mapped_file(np.array(matrix)) is None
    assert mapped_file(np.load("s.npy", mmap_mode="r+")) is None  # open for writing

    def blocks():
        yield matrix[:4]
        os.truncate("s.npy", 5000)
        yield matrix[4:]

    with pytest.raises(FileError, match="could not be read: it was cut short"):
        kgtrec.rank(blocks(), questions)


def test_an_archive_that_is_written_to_while_it_is_loaded(home: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    questions = kgtrec.read_graph("g", progress=False).questions()
    np.savez("m.npz", queries=rng.random((len(questions), 2)), entities=rng.random((N, 2)))
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
        capture_output=True, text=True, check=False, env={**os.environ, "ASAN_OPTIONS": options},
    )  # fmt: skip
    assert done.returncode == -signal.SIGBUS, done
    assert done.stdout == said
