"""Readers of run and qrels files: what they take, and the sentence that each fault gets."""

from __future__ import annotations

import gzip
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgtrec._internal.atomic_file import atomic_write, check_writable
from kgtrec.errors import FileError, KgtrecError
from kgtrec.trec.files.read import DuplicateDocument, read_qrels, read_run
from kgtrec.trec.files.write import write_run


def write(folder: Path, content: bytes | str, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_any_white_space_any_order_and_blank_lines(tmp_path: Path) -> None:
    run = write(tmp_path, "q2 Q0 a 1 2.5 t\r\n\n \t\nq1\tQ0  b\v9\f-1e-3 t\nq2 Q0 c x inf last")
    assert read_run(run) == {"q2": {"a": 2.5, "c": float("inf")}, "q1": {"b": -0.001}}
    assert read_run(run, "columns").tag == "last"
    qrels = write(tmp_path, "# made by hand\nq2 0 a 1\r\nq1\t0\tb\t-1\n  #q9\nq2 0 c +2")
    assert read_qrels(qrels) == {"q2": {"a": 1, "c": 2}, "q1": {"b": -1}}


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, b"\xff\xfe Q0 d\x80\xc2\xa0 1 0.5 t\n"))
    ((query, documents),) = run.items()
    assert query.encode("utf-8", "surrogateescape") == b"\xff\xfe"
    assert [d.encode("utf-8", "surrogateescape") for d in documents] == [b"d\x80\xc2\xa0"]


def test_byte_order_mark_is_no_part_of_the_first_id(tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path, b"\xef\xbb\xbfq 0 d 1\n")) == {"q": {"d": 1}}


def test_gzip_by_name(tmp_path: Path) -> None:
    content = gzip.compress(b"q 0 d 1\n" * 1)
    assert read_qrels(write(tmp_path, content, "q.gz")) == {"q": {"d": 1}}
    with pytest.raises(FileError, match=r"gzip data; give it a name that ends in \.gz"):
        read_qrels(write(tmp_path, content, "q.txt"))
    with pytest.raises(FileError, match="damaged or cut short"):
        read_qrels(write(tmp_path, gzip.compress(os.urandom(50_000))[:20_000], "cut.gz"))
    with pytest.raises(FileError, match="damaged or cut short"):
        read_qrels(write(tmp_path, b"q 0 d 1\n", "plain.gz"))


BAD_RUNS = {
    "q Q0 d 1 0.5": ("5 columns in 'q Q0 d 1 0.5'", 2),
    "q Q0 New York 1 0.5 t": ("written as %20", 2),
    "q Q0 d 1 abc t": ("score 'abc'", 2),
    "q Q0 d 1 nan t": ("score 'nan'", 2),
    "q Q0 d 1 -NaN t": ("score '-NaN'", 2),
    "q Q0 d 1 1_0 t": ("score '1_0'", 2),
    "q Q0 d 1 0x1p3 t": ("score '0x1p3'", 2),
    "q Q0 first 1 2 t": ("document 'first' comes a second time under query 'q'", 4),
}


@pytest.mark.parametrize("line", BAD_RUNS)
def test_faults_in_runs_name_line_and_hint(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"q Q0 first 1 1.0 t\n\n{line}\nq Q0 z 1 0.5 t\n")
    with pytest.raises(FileError) as caught:
        read_run(path)
    text, code = BAD_RUNS[line]
    assert str(caught.value).startswith(f"{path}:3: ")
    assert text in str(caught.value)
    assert caught.value.exit_code == code
    assert caught.value.hint


BAD_QRELS = {
    "": ("a blank line; remove it", 2),
    "q 0 d": ("3 columns", 2),
    "q 0 d 1 # why": ("6 columns", 2),
    "q 0 d 1.9": ("relevance '1.9'", 2),
    "q 0 d yes": ("relevance 'yes'", 2),
    "q 0 d 1_0": ("relevance '1_0'", 2),
    "q 0 first 0": ("document 'first' comes a second time", 4),
}


@pytest.mark.parametrize("line", BAD_QRELS)
def test_faults_in_qrels_name_line_and_hint(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"q 0 first 1\n# note\n{line}\nq 0 z 1\n")
    with pytest.raises(FileError) as caught:
        read_qrels(path)
    text, code = BAD_QRELS[line]
    assert str(caught.value).startswith(f"{path}:3: ")
    assert text in str(caught.value)
    assert caught.value.exit_code == code


def test_a_document_comes_back_after_another_query(tmp_path: Path) -> None:
    path = write(tmp_path, "a Q0 d 1 1 t\nb Q0 d 1 1 t\na Q0 d 1 2 t\n")
    with pytest.raises(DuplicateDocument, match=":3: "):
        read_run(path)


@pytest.mark.parametrize("reader", [read_run, read_qrels])
def test_files_that_cannot_be_read(tmp_path: Path, reader) -> None:
    with pytest.raises(FileError, match="there is no such file"):
        reader(tmp_path / "none")
    with pytest.raises(FileError, match="this is a folder"):
        reader(tmp_path)
    with pytest.raises(FileError, match="holds no line"):
        reader(write(tmp_path, ""))
    with pytest.raises(FileError, match="holds no line"):
        reader(write(tmp_path, gzip.compress(b""), "e.gz"))
    if reader is read_qrels:
        with pytest.raises(FileError, match="holds no line"):
            reader(write(tmp_path, "# nothing\n"))


@pytest.mark.parametrize("reader", [read_run, read_qrels])
@given(content=st.binary(max_size=80) | st.from_regex(rb"([qd0-9.#\x85\xa0 \t]{0,12}\n){0,4}"))
@example(content=b"q 0 d " + b"9" * 5000)
def test_any_bytes_are_read_or_refused_with_a_sentence(tmp_path_factory, reader, content) -> None:
    path = write(tmp_path_factory.getbasetemp(), content, "fuzz.txt")
    message = str(path)
    try:
        assert reader(path)
    except KgtrecError as error:
        message = str(error)
    assert message.startswith(str(path))
    message.encode()  # a terminal can show it


def test_atomic_write_leaves_nothing_behind_on_any_exception(tmp_path: Path) -> None:
    target = write(tmp_path, "old")
    for fault in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(fault), atomic_write(target) as out:  # noqa: PT012
            out.write(b"new")
            raise fault
    assert os.listdir(tmp_path) == ["file.txt"]
    assert target.read_bytes() == b"old"
    with atomic_write(target) as out:
        out.write(b"new")
        assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.txt"]
    assert target.read_bytes() == b"new"


def test_atomic_write_gives_the_usual_permissions_and_follows_links(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    old = os.umask(0o027)
    try:
        with atomic_write(link) as out:
            out.write(b"x")
    finally:
        os.umask(old)
    assert link.is_symlink()
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_atomic_write_to_a_device_leaves_it_one() -> None:
    with atomic_write("/dev/null") as out:
        out.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_atomic_gzip_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with atomic_write(tmp_path / name) as out:
            out.write(b"q 0 d 1\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert read_qrels(tmp_path / "a.gz") == {"q": {"d": 1}}


def test_atomic_zstd_is_what_readers_unpack(tmp_path: Path) -> None:
    run = {"q": {f"d{i}": float(i) for i in range(1000)}}
    for name in ("run", "run.gz", "run.zst"):
        write_run(run, tmp_path / name)
        assert read_run(tmp_path / name) == run
    packed = (tmp_path / "run.zst").read_bytes()
    assert packed.startswith(b"\x28\xb5\x2f\xfd")
    assert len(packed) < (tmp_path / "run").stat().st_size
    with suppress(ZeroDivisionError), atomic_write(tmp_path / "run.zst") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert (tmp_path / "run.zst").read_bytes() == packed
    assert len(list(tmp_path.iterdir())) == 3


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no folder .*none'; make it first"):
        atomic_write(tmp_path / "none" / "file").__enter__()
    with pytest.raises(FileError, match="this is a folder"), atomic_write(tmp_path) as out:
        out.write(b"x")
    for folder in (tmp_path, "/"):
        with pytest.raises(FileError, match="this is a folder"):
            check_writable(folder)
    with pytest.raises(FileError, match="the disk is full"), atomic_write("/dev/full") as out:
        out.write(b"x" * 100_000)
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "x"):
        open(tmp_path / "input that is missing")  # noqa: SIM115
    assert os.listdir(tmp_path) == []
