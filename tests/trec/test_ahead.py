"""Lists of plain files, and files that are not plain. test_reading.py and reader_checks.py compare
the lists with the oracle's."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from kgtrec.errors import FileError, RunWarning
from kgtrec.trec.eval.request import Request
from kgtrec.trec.eval.score import score
from kgtrec.trec.files import text as ahead_module
from kgtrec.trec.files.text import Cut, ReadAhead
from kgtrec.trec.measures import judge

QRELS = b"a 0 d 1\na 0 e 0\nb 0 d 1\n"
RUN = b"b Q0 d 1 2 t\n\nc Q0 d 1 1 t\na Q0 e 1 2.5 t\na Q0 d 2 0.5 t\n"


def lists_of(folder: Path, qrels: bytes = QRELS, run: bytes = RUN, name: str = "run"):
    (folder / "qrels").write_bytes(qrels)
    (folder / name).write_bytes(run)
    with ReadAhead(str(folder / "qrels"), [str(folder / name)], Cut()) as ahead:
        pass
    return ahead.lists(str(folder / name), Cut())


def test_only_plain_files_have_lists(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lists_of(Path())[:2] == (3, b"t")
    assert lists_of(Path(), QRELS[:-1], RUN[:-1])[:2] == (3, b"t")
    for run in (
        RUN.replace(b"2.5", b"nan"),
        RUN + b"\nb Q0 d 1 2 t",
        b"# \n",
        RUN.replace(b"1 1 t", b"1"),
        b"\xef\xbb\xbf" + RUN,
        RUN + b"\na Q0 f 1 2 tb Q0 f 1 2 t",
        b"\x1f\x8b" + RUN,
        b"#",
        RUN + b"\nb Q0 e 1 2 t",
        RUN + b" #",
        RUN.replace(b"2.5", b"0.1"),
        RUN.replace(b" d ", b" f ").replace(b" e ", b" g "),
    ):
        assert lists_of(Path(), run=run) is None, run
    for name in ("run.gz", "run.zst", "-"):
        assert lists_of(Path(), name=name) is None, name
    lowest = QRELS + b"a 0 f -9223372036854775808\n"
    for qrels in (QRELS + b"\n", lowest, QRELS + QRELS, b"# \n"):
        assert lists_of(Path(), qrels) is None, qrels
    for judged, run in (("none", "run"), ("qrels", "none"), ("qrels", "")):
        lists_of(Path())
        with ReadAhead(judged, [run], Cut()) as ahead:
            pass
        assert ahead.lists(run, Cut()) is None
    monkeypatch.setattr(ahead_module, "_MOST_BYTES", len(RUN) - 1)
    assert lists_of(Path()) is None


def test_reads_until_stopped(tmp_path):
    lists_of(tmp_path)
    with ReadAhead(str(tmp_path / "qrels"), [str(tmp_path / "run")], Cut(1)) as ahead:
        while not ahead._lists:
            time.sleep(0.001)
    assert ahead.lists(str(tmp_path / "run"), Cut(2)) is None
    (tmp_path / "run").write_bytes(b"")
    assert ahead.lists(str(tmp_path / "run"), Cut(1)) is None, "it has changed"


def test_an_interrupted_stop_can_be_repeated(tmp_path: Path) -> None:
    """Since Python 3.14, an interrupt may come just after the main thread has locked."""

    stopping, calls, refused = threading.Event(), [0], []

    class Late(ReadAhead):
        def _read_all(self) -> None:
            stopping.wait(30)
            super()._read_all()

    class Interrupted:
        """A lock whose second `acquire`, that of `stop`, is interrupted when it has locked."""

        def __init__(self) -> None:
            self.lock = threading.Lock()

        def acquire(self) -> None:
            calls[0] += 1
            if calls[0] == 2:
                stopping.set()
            if not self.lock.acquire(timeout=5):
                refused.append(calls[0])
            if calls[0] == 2:
                raise KeyboardInterrupt

        __enter__ = acquire

        def __exit__(self, *_: object) -> None:
            self.release()

        def release(self) -> None:
            self.lock.release()

    interval = sys.getswitchinterval()
    ahead = Late(str(tmp_path / "qrels"), [str(tmp_path / "run")], Cut(1))
    ahead._reading = Interrupted()  # type: ignore[assignment]
    with ahead:
        with pytest.raises(KeyboardInterrupt):
            ahead.stop()
        ahead.stop()
    assert calls[0] >= 2
    assert not refused
    assert sys.getswitchinterval() == interval


def test_many_groups(tmp_path, monkeypatch):
    """More of both than the first allocations have room for, and runs in another order."""
    queries = [f"q{i // 4:03}" for i in range(2_000)]
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{i} 1\n" for i, q in enumerate(queries)))
    run = "".join(
        f"{q} 0 d{1_999 - i ^ 2} 0 {i * 37 % 101} t\n" for i, q in enumerate(reversed(queries))
    )
    assert summary(tmp_path, run, monkeypatch, True) == summary(tmp_path, run, monkeypatch, False)


def summary(folder: Path, run: str, monkeypatch, is_ahead: bool):
    """Values of a run; with or without the reader of plain files."""
    (folder / "run").write_text(run)
    request = Request(str(folder / "qrels"), [str(folder / "run")], ["map", "num_q", "runid"])
    with monkeypatch.context() as patch, request.read_ahead() as ahead:
        if is_ahead:
            patch.setattr(judge, "_documents_of_file", None)
        (scored,) = score(request, ahead if is_ahead else None)
    return scored.summary, scored.queries, {n: v.tolist() for n, v in scored.values.items()}


def test_changed_qrels_are_read_again_and_messages_stay(tmp_path) -> None:
    lists_of(tmp_path)
    request = Request(str(tmp_path / "qrels"), [str(tmp_path / "run")], ["num_rel"])
    with request.read_ahead() as ahead:
        ahead.stop()
        (tmp_path / "qrels").write_bytes(QRELS + b"b 0 x 1\n")
        assert score(request, ahead)[0].summary["num_rel"] == 3
    lists_of(tmp_path, run=RUN + b"\na Q0 f 1 2 tb Q0 f 1 2 t")
    with request.read_ahead() as ahead, pytest.warns(RunWarning, match="run:7: 'a Q0 f 1 2 tb"):
        score(request, ahead)
    lists_of(tmp_path, run=RUN.replace(b"0.5", b"x"))
    with request.read_ahead() as ahead, pytest.raises(FileError, match=r"run:5: score 'x'"):
        score(request, ahead)
