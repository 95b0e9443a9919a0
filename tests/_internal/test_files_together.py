"""Outputs of one command: folders that a failed command made, and limits on threads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kgtrec._internal import files, threads
from kgtrec._internal.files import atomic_write, make_folder, write_together

UID = 61_234  # a user without other processes, whose number of threads is set
PROGRAMS = ("setpriv", "prlimit")


def test_a_failed_block_removes_its_folders(tmp_path: Path) -> None:
    """But no folder that was there before, or that holds a file."""
    (tmp_path / "old").mkdir()

    def fail() -> None:
        make_folder(tmp_path / "old")
        make_folder(tmp_path / "a" / "b")
        make_folder(tmp_path / "c" / "d")
        (tmp_path / "c" / "x").touch()
        with atomic_write(tmp_path / "a" / "b" / "y") as file:
            file.write(b"y")
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"), write_together():
        fail()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"old", "c", "c/x"}
    with write_together():
        make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_threads_are_counted_by_starting_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads.can_start_threads(3)
    start, started = threads.start_new_thread, []

    def start_two(*arguments: object) -> int:
        if len(started) == 2:
            raise RuntimeError(threads.NO_THREAD)
        started.append(arguments)
        return start(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(threads, "start_new_thread", start_two)
    assert not threads.can_start_threads(3)
    started.clear()
    assert threads.can_start_threads(2)


def limited(n_threads: int, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run kgtrec as another user with so many threads, who may use the files of this one."""
    files_of_root = "-all,+dac_override"  # Python itself may be in a private folder
    program = (
        "setpriv",
        f"--reuid={UID}",
        f"--regid={UID}",
        "--clear-groups",
        f"--inh-caps={files_of_root}",
        f"--ambient-caps={files_of_root}",
        f"--bounding-set={files_of_root}",
        "prlimit",
        f"--nproc={n_threads}",
        sys.executable,
        "-m",
        "kgtrec",
    )
    return subprocess.run(
        (*program, *words), cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def write_inputs(folder: Path) -> None:
    """A graph and its scores."""
    (folder / "g").mkdir()
    (folder / "g" / "test.txt").write_text("".join(f"e{i}\tr\te{i + 1}\n" for i in range(40)))
    np.save(folder / "s.npy", np.random.default_rng(1).random((80, 41), dtype=np.float32))
    (folder / "jobs.toml").write_text('output = "out"\n[graphs]\ng = "g"\n[models]\ns = "s.npy"\n')


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)),
    reason="only root can become a user without processes, with setpriv and prlimit",
)
def test_commands_go_on_where_no_thread_starts(tmp_path: Path) -> None:
    """Two threads: Python's and one of pyarrow's allocator."""
    write_inputs(tmp_path)
    rank = ("rank", "--graph", "g", "--scores", "s.npy", "--threads", "4")
    outputs = ("-o", "o.parquet", "--write-run", "o.run", "--write-qrels", "o.qrels")
    for words in ((*rank, *outputs), ("report", "o.parquet"), ("eval", "o.qrels", "o.run")):
        done = limited(2, tmp_path, *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        assert "thread" not in done.stderr
    done = limited(2, tmp_path, "batch", "jobs.toml")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    said = "did not start (can't start new thread); allow more processes and threads (ulimit -u)"
    assert said in done.stderr


@pytest.mark.parametrize("can_start", [False, True])
def test_arrow_files_with_and_without_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_start: bool
) -> None:
    """Without threads a file is read as the stream in it; one that was cut off is refused."""
    import pyarrow as pa

    monkeypatch.setattr(files, "can_start_threads", lambda _: can_start)
    table = pa.table({"label": ["a", "b", "c"]})
    for name, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        with new(tmp_path / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
        with files.arrow_file(tmp_path / name) as file:
            assert files.read_arrow(file) == table
    (tmp_path / "cut").write_bytes((tmp_path / "file").read_bytes()[:-10])
    with files.arrow_file(tmp_path / "cut") as file, pytest.raises(pa.ArrowInvalid):
        files.read_arrow(file)
