"""Run, qrels and question files: written files read back as the same order and answers."""

from __future__ import annotations

import gzip
import os
import stat
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kgtrec
from kgtrec._internal.files import atomic_write, check_writable
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.graph.labels import Labels, decode_docno
from kgtrec.trec import Run, write_qrels, write_questions
from kgtrec.trec.files import parse
from kgtrec.trec.files import text as file_lines
from kgtrec.trec.files.run import read_qrels, read_run
from kgtrec.trec.files.text import DuplicateDocument
from kgtrec.trec.files.write import write_run

LABELS = ["b c", "", "\udcff%20", "é", "z", "b", "a", "\U0001f600", "\uffff", "10", "9"]
LABELS.remove("")


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def trec_order(scores: dict[str, float]) -> list[str]:
    """The order in which trec_eval reads a list."""
    return sorted(scores, key=lambda name: (scores[name], as_bytes(name)), reverse=True)


def make_run(rows: list[np.ndarray], labels: list[str], dtype: type) -> Run:
    """Run over all entities; row i scores the first entities for question i."""
    docnos = Labels.from_strings(labels).docnos
    documents: list[int] = []
    scores: list[float] = []
    for row in rows:
        order = sorted(range(len(row)), key=lambda e: (row[e], as_bytes(docnos[e])), reverse=True)
        documents += order
        scores += [row[e] for e in order]
    return Run(
        query_ids=[f"tail{i}" for i in range(len(rows))],
        offsets=np.cumsum([0, *map(len, rows)]),
        documents=np.array(documents, np.int32),
        scores=np.array(scores, dtype),
        docnos=docnos,
        depth=len(labels),
    )


def rows_of(dtype: type) -> st.SearchStrategy[list[np.ndarray]]:
    width = 64 if dtype is np.float64 else 32
    few = st.sampled_from([0.0, -0.0, 1.0, float("inf"), float("-inf"), 1e-45, 0.1, 1.0000001])
    value = st.floats(width=width, allow_nan=False) | few.map(lambda x: float(dtype(x)))
    row = hnp.arrays(dtype, st.integers(0, len(LABELS)), elements=value)
    return st.lists(row, min_size=1, max_size=4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_reading_a_run_restores_its_order(tmp_path_factory, dtype, data) -> None:
    run = make_run(data.draw(rows_of(dtype)), LABELS, dtype)
    path = tmp_path_factory.getbasetemp() / "order.run"
    run.write(path, tag="t")
    read = read_run(path) if len(run.documents) else {}
    for i, query in enumerate(run.query_ids):
        rows = slice(run.offsets[i], run.offsets[i + 1])
        scores = read.get(query, {})
        assert trec_order(scores) == run.docnos[run.documents[rows]]
        # narrowing the text restores the score; so does trec_eval 9, which reads floats
        back = np.array(list(scores.values()), np.float64).astype(dtype)
        np.testing.assert_array_equal(back, run.scores[rows])


def test_lines_and_shortest_digits(tmp_path: Path) -> None:
    run = make_run(
        [np.array([0.1, 2.0, 1e10], np.float32), np.array([], np.float32)],
        ["a", "b", "c"],
        np.float32,
    )
    run.write(tmp_path / "x.run", tag="system")
    assert (tmp_path / "x.run").read_text().splitlines() == [
        "tail0 Q0 c 1 1e+10 system",
        "tail0 Q0 b 2 2 system",
        "tail0 Q0 a 3 0.1 system",
    ]
    run.write(tmp_path / "x.run.gz")
    assert read_run(tmp_path / "x.run.gz", "columns").tag == "kgtrec"
    assert read_run(tmp_path / "x.run.gz") == read_run(tmp_path / "x.run")


def test_pieces_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    run = make_run([rng.random(n) for n in (4, 0, 10, 1, 10)], LABELS, np.float64)
    run.write(tmp_path / "whole")
    for threads in (1, 2, 3):
        monkeypatch.setattr(file_lines, "LINES_AT_A_TIME", 3)
        monkeypatch.setattr(parse, "available_cores", lambda threads=threads: threads)
        run.write(tmp_path / "pieces")
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_many_lines_as_plain_python_writes_them(tmp_path: Path, monkeypatch, dtype, codec) -> None:
    """Many more than at a time; empty queries, long ranks, names of many lengths."""
    monkeypatch.setattr(file_lines, "LINES_AT_A_TIME", 5_000)
    rng = np.random.default_rng(2)
    sizes = [0, 15_000, 0, 0, 1, 12_000, 3_000, 0]
    scores = np.concatenate([-np.sort(-rng.normal(0, 100, n)) for n in sizes]).astype(dtype)
    labels = [f"{i}-" + "x" * int(n) for i, n in enumerate(rng.integers(0, 40, 1_000))]
    documents = rng.integers(0, len(labels), len(scores), dtype=np.int32)
    queries = [f"{'q' * i}{i}" for i in range(len(sizes))]
    offsets = np.cumsum([0, *sizes])
    run = Run(queries, offsets, documents, scores, Labels.from_strings(labels), max(sizes))
    path = tmp_path / {None: "x", "gzip": "x.gz", "zstd": "x.zst"}[codec]
    run.write(path, tag="some-system")
    digits = [np.format_float_positional(score, trim="-") for score in scores]
    owners = [(query, rank) for query, n in zip(queries, sizes, strict=True) for rank in range(n)]
    due = [
        f"{query} Q0 {labels[document]} {rank + 1} {score} some-system"
        for (query, rank), document, score in zip(owners, documents, digits, strict=True)
    ]
    raw = path.read_bytes()
    if codec:
        raw = pa.CompressedInputStream(pa.BufferReader(raw), codec).read()
    assert raw.decode().splitlines() == due


def test_a_disk_that_fills_up_while_lines_are_formatted(monkeypatch) -> None:
    run = make_run([np.arange(float(len(LABELS)))] * 50, LABELS, np.float64)
    monkeypatch.setattr(file_lines, "LINES_AT_A_TIME", 8)
    with pytest.raises(FileError, match="the disk is full"):
        run.write("/dev/full")


def test_cut_keeps_the_best_of_every_question() -> None:
    run = make_run([np.arange(n, dtype=np.float32) for n in (4, 0, 1, 3)], LABELS, np.float32)
    short = run.cut(2)
    assert short.depth == 2
    assert short.offsets.tolist() == [0, 2, 2, 3, 5]
    assert short.documents.tolist() == [3, 2, 0, 2, 1]
    assert short.scores.tolist() == [3, 2, 0, 2, 1]
    assert run.cut(len(LABELS)) is run


def test_runs_that_cannot_be_written(tmp_path: Path) -> None:
    run = make_run([np.array([3.0, 2.0, 1.0])], ["a", "b", "c"], np.float64)
    with pytest.raises(UsageError, match="'my system' cannot be written to a TREC file"):
        run.write(tmp_path / "x", tag="my system")
    with pytest.raises(UsageError, match="cannot be written"):
        run.write(tmp_path / "x", tag="")
    with pytest.raises(FileError, match="there is no folder"):
        run.write(tmp_path / "none" / "x")
    parts = {name: getattr(run, name) for name in run.__dataclass_fields__}
    with pytest.raises(UsageError, match="run_depth=1000"):
        Run(**{**parts, "depth": 0}).write(tmp_path / "x")
    with pytest.raises(UsageError, match="scores of question 'tail0' increase"):
        Run(**{**parts, "scores": -run.scores}).write(tmp_path / "x")
    with pytest.raises(UsageError, match="the three must be equal"):
        Run(**{**parts, "scores": run.scores[:2]})
    with pytest.raises(UsageError, match="one entry more than there are questions"):
        Run(**{**parts, "query_ids": []})
    with pytest.raises(UsageError, match="float16; they must be float32 or float64"):
        Run(**{**parts, "scores": run.scores.astype(np.float16)})
    assert os.listdir(tmp_path) == []


def test_order_is_checked_inside_questions_only(tmp_path: Path) -> None:
    rows = [np.array([]), np.array([1.0]), np.array([]), np.array([9.0, 8.0]), np.array([])]
    make_run(rows, ["a", "b"], np.float64).write(tmp_path / "x")
    assert read_run(tmp_path / "x") == {"tail1": {"a": 1.0}, "tail3": {"a": 9.0, "b": 8.0}}


@pytest.fixture
def questions():
    test = np.array([[0, 0, 1], [0, 0, 2], [3, 1, 1], [0, 0, 1]])
    labels = ["an entity", "b", "100%", "é\udcff"]
    graph = kgtrec.Graph.from_arrays(test=test, entities=labels, relations=["r 0", "r1"])
    return graph.questions("test")


def test_qrels_hold_every_answer(tmp_path: Path, questions) -> None:
    write_qrels(questions, tmp_path / "q.gz")
    read = read_qrels(tmp_path / "q.gz")
    assert list(read) == list(questions.ids)
    for number, judged in enumerate(read.values()):
        labels = [as_bytes(questions.graph.entities[e]) for e in questions.answers[number].tolist()]
        assert [decode_docno(as_bytes(docno)) for docno in judged] == labels
        assert set(judged.values()) == {1}


def test_question_lines(tmp_path: Path, questions) -> None:
    write_questions(questions, tmp_path / "questions.txt")
    lines = (tmp_path / "questions.txt").read_bytes().split(b"\n")
    assert lines[0] == b"head0\tb\tr%200"
    assert lines[3] == b"tail0\tan%20entity\tr%200"
    assert len(lines) == len(questions) + 1


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "published"),
    [("fb15k-237", "FB-Test-O"), ("wn18rr", "WN18RR")],
)
def test_published_questions_are_reproduced(
    tmp_path: Path, shared_data: Path, name: str, published: str
) -> None:
    questions = kgtrec.read_graph(shared_data / name).questions("test")
    write_questions(questions, tmp_path / "mine")
    due = shared_data / "kgc-sparsity" / "data" / published / "trec_queries.txt"
    mine = (tmp_path / "mine").read_bytes().split(b"\n")
    assert mine == due.read_bytes().replace(b"\r\n", b"\n").split(b"\n")


# -- Readers of run and qrels files: what they take, and the sentence that each fault gets -------


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
    "q Q0 first 1 2 t": ("query 'q' has document 'first' twice", 4),
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
    "q 0 first 0": ("has document 'first' twice", 4),
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
    with pytest.raises(FileError, match="the file does not exist"):
        reader(tmp_path / "none")
    with pytest.raises(FileError, match="this is a folder"):
        reader(tmp_path)
    with pytest.raises(FileError, match="contains no lines"):
        reader(write(tmp_path, ""))
    with pytest.raises(FileError, match="contains no lines"):
        reader(write(tmp_path, gzip.compress(b""), "e.gz"))
    if reader is read_qrels:
        with pytest.raises(FileError, match="contains no lines"):
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
