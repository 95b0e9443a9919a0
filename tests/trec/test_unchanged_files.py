"""Run and qrels files that are written to, cut short or replaced while they are read: one line."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgtrec.errors import FileError
from kgtrec.trec.files.read import read_qrels, read_run
from kgtrec.trec.measures.judge import read_judgements, read_lists

# A command in a process of its own, in which a file changes when its first bytes have been read.
_PATCHED = """
import builtins, io, os, sys
from kgtrec import cli
from kgtrec.trec.files import text
path, act = sys.argv[1:3]

def change():
    if act == "cut":
        os.truncate(path, 100)
    elif act == "empty":
        os.truncate(path, 0)
    elif act == "write":
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) - 40)
            file.write(b"x" * 40)
    elif act == "write and set the time back":
        before = os.stat(path)
        with open(path, "r+b") as file:
            file.write(b"x")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif act == "append":
        with open(path, "ab") as file:
            file.write(b"\\n")
    elif act == "replace":
        with open(path + ".new", "wb") as file:
            file.write(b"q0 0 d0 0 1 tag\\n")
        os.replace(path + ".new", path)
    elif act == "remove":
        os.unlink(path)

class Changed(io.BufferedReader):
    # of a packed file, which is read piece by piece
    pieces = 0

    def read(self, size=-1):
        self.pieces += 1
        if self.pieces == 2:
            change()
        return super().read(64 if self.pieces == 1 else size)

def opened(name, mode):
    file = builtins.open(name, mode)
    watched = os.fspath(name) == path and path.endswith(".gz")
    return Changed(file.detach()) if watched else file

preadv = os.preadv

def changed(number, room, at):
    # of a plain file, which is read in large parts
    if at == 0 and act and os.fstat(number).st_ino == os.stat(path).st_ino:
        done = preadv(number, [room[0][:64]], 0)
        change()
        return done
    return preadv(number, room, at)

text.open, os.preadv = opened, changed
sys.argv[1:] = sys.argv[3:]
cli.main()
"""
SAID = {
    "cut": "it was cut short while it was read",
    "empty": "it was cut short while it was read",
    "write": "it was written to while it was read",
    "write and set the time back": "it was written to while it was read",
    "append": "it was written to while it was read",
    "replace": "it was cut short while it was read",
    "remove": "it is gone while it is read",
}
DEPTH = 400


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run = [f"q{q} 0 d{d:04} {d} {DEPTH - d} tag\n" for q in range(5) for d in range(DEPTH)]
    qrels = [f"q{q} 0 d{d:04} {d % 2}\n" for q in range(5) for d in range(0, DEPTH, 7)]
    for name, lines in (("a.run", run), ("b.run", run), ("a.qrels", qrels)):
        Path(name).write_text("".join(lines))
    Path("no-end.run").write_text("".join(run).rstrip("\n"))
    Path("a.run.gz").write_bytes(gzip.compress("".join(run).encode()))
    return tmp_path


def evaluated(path: str, act: str, *files: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", _PATCHED, path, act, "eval", "-m", "map", *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def refused(done: subprocess.CompletedProcess, path: str, said: str) -> None:
    """One line, code 2, nothing printed."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr == f"kgtrec: {path}: {said}" + done.stderr.partition(said)[2]
    assert done.stderr.endswith("; try again when it stays as it is\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("act", SAID)
@pytest.mark.parametrize("path", ["a.run", "a.run.gz"])
def test_a_run_that_changes_while_it_is_read(path: str, act: str) -> None:
    refused(evaluated(path, act, "a.qrels", path), path, SAID[act])


@pytest.mark.parametrize("act", ["cut", "write"])
@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("a.qrels", ("a.qrels", "a.run")),
        ("no-end.run", ("a.qrels", "no-end.run")),
        ("b.run", ("a.qrels", "a.run", "b.run")),  # and nothing is printed of the first
    ],
)
def test_other_files(path: str, files: tuple[str, ...], act: str) -> None:
    assert evaluated("nothing", "", *files).returncode == 0
    refused(evaluated(path, act, *files), path, SAID[act])


def test_what_is_written_afterwards_changes_nothing() -> None:
    """Judgements are kept while run after run is read: as a copy, no view of the file."""
    judgements = read_judgements("a.qrels")
    before = read_lists(judgements, "a.run")
    with open("a.qrels", "r+b") as file:
        file.write(b"x" * 1000)
    assert (read_lists(judgements, "a.run").relevance == before.relevance).all()
    os.truncate("a.qrels", 0)
    assert (read_lists(judgements, "a.run").relevance == before.relevance).all()


def test_a_pipe_is_no_file_that_changes() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m kgtrec eval -m map a.qrels <(cat a.run)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == evaluated("nothing", "", "a.qrels", "a.run").stdout


def test_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from kgtrec.trec.files import text

    read_plain = text._read_plain

    def slow(raw):
        data = read_plain(raw)
        os.utime(raw.name)
        return data

    monkeypatch.setattr(text, "_read_plain", slow)
    for read, path in ((read_run, "a.run"), (read_qrels, "a.qrels")):
        with pytest.raises(FileError, match=rf"^{path}: it was written to while it was read"):
            read(path)
