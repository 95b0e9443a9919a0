"""Runs, qrels and questions as files: decimal numbers to the bit, and what is written."""

from __future__ import annotations

import locale
import os
import re
import stat
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from checkout import ROOT
from hypothesis import example, given
from hypothesis import strategies as st
from trec_oracle import number

import kgtrec
from kgtrec import _core
from kgtrec._internal.files import atomic_write
from kgtrec.errors import FileError
from kgtrec.graph.labels import Labels, decode_docno
from kgtrec.trec import Run, write_qrels, write_questions
from kgtrec.trec.files import text as file_lines
from kgtrec.trec.files.run import read_qrels, read_run
from kgtrec.trec.files.write import write_run

HEADER = ROOT / "csrc" / "trec_decimal_powers.h"


def read(text: bytes) -> float | None:
    return _core.trec_score(text + b" t\n")


def check(text: str | bytes) -> None:
    # Digits are read eight at a time; none may be missed near the end of the text.
    text = text.encode() if isinstance(text, str) else text
    for ending in (b"\n", b" t\n", b"\t1234567890\n"):
        got, due = _core.trec_score(text + ending), number(text)
        assert (got is None) == (due is None), (text, got, due)
        if due is not None:
            assert struct.pack("d", got) == struct.pack("d", due), (text, got, due)


def test_the_table_holds_the_first_128_bits_of_each_power():
    text = HEADER.read_text("utf-8")
    first = int(re.search(r"KGT_FIRST_POWER \((-?\d+)\)", text)[1])
    last = int(re.search(r"KGT_LAST_POWER (\d+)", text)[1])
    rows = re.findall(r"\{0x([0-9a-f]{16}), 0x([0-9a-f]{16})\}", text)
    assert len(rows) == last - first + 1
    for exponent, (upper, lower) in enumerate(rows, first):
        power = Fraction(5) ** exponent
        due = (power.numerator << 1000) // power.denominator
        assert int(upper + lower, 16) == (due << 128) >> due.bit_length(), exponent


def test_whatever_byte_ends_the_digits() -> None:
    for byte in sorted({*range(256)} - {*b" \t\n\v\f\r"}):
        for n in (0, 1, 3, 7, 8, 9, 15, 16, 17):
            for digits in ("9" * n, "0123456789987654321"[:n]):
                check(digits.encode() + bytes([byte]))
                check(b"." + digits.encode() + bytes([byte]) + b"12345678")


digits = st.text("0123456789", min_size=1, max_size=25)

signs = st.sampled_from(["", "+", "-"])

exponents = st.just("") | st.builds(
    "{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 400) | st.integers(0, 10**30)
)


@given(
    st.builds("{}{}{}".format, signs, digits, exponents)
    | st.builds("{}{}.{}{}".format, signs, digits | st.just(""), digits | st.just(""), exponents)
)
@example("0.00000000000000000000001234567890123456789")
@example("9007199254740993")
@example("18446744073709551615e63")
@example("9999999999999999999")
@example("99999999999999999999999999")
@example(".")
@example("1e")
@example("1e+")
@example("-0")
@example("-0e-99999999999999999999999")
def test_numbers_of_every_form(text):
    check(text)


def exactly(value: Fraction) -> str:
    """All digits of a fraction whose denominator is a power of two."""
    shift = value.denominator.bit_length() - 1
    plain = str(value.numerator * 5**shift).rjust(shift + 1, "0")
    return plain[: len(plain) - shift] + ("." + plain[len(plain) - shift :]) * (shift > 0)


@given(
    st.integers(1, 0x7FEFFFFFFFFFFFFE) | st.integers(1000 << 52, 1060 << 52) | st.integers(1, 1000),
    st.sampled_from(["", "0", "1", "000000000000000000000001"]),
    st.booleans(),
)
@example(1, "", False)  # subnormal
@example(0x000FFFFFFFFFFFFF, "", False)  # the largest subnormal
@example(0x7FEFFFFFFFFFFFFE, "1", False)
def test_halves_between_two_numbers(below, more, less):
    """Exact halves, with up to 770 digits, and numbers close to them."""
    low, high = (struct.unpack("d", struct.pack("Q", below + i))[0] for i in (0, 1))
    text = exactly((Fraction(low) + Fraction(high)) / 2)
    text += ("." if "." not in text else "") + more
    if less:
        place = len(text.rstrip("0.")) - 1
        text = text[:place] + str(int(text[place]) - 1) + "9" * 30
    check(text)


@given(st.integers(2**51, 2**52 - 1), st.integers(1, 3), st.sampled_from([1, 2, 4, 1024]))
def test_one_bit_above_a_half(mantissa, exponent, above):
    """Exact products that are even plus a half, and one bit more: round up, never to even."""
    power = 5**exponent
    # A mantissa of 53 bits near the wanted one, so that 10^exponent divides the product.
    for even in range(2 * mantissa, 2 * mantissa + 2 * power, 2):
        product = (even << 12) + 0x800 + above
        if product % power == 0:
            check(b"%de%d" % (product // power, exponent))


ENDS = [
    "1e308",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "2e308",
    "1e309",
    "1e99999999999",
    "4.9e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1e-400",
    "1e-99999999999",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "0e999999999999999999999999999",
]


def test_the_ends_of_the_range_and_hundreds_of_digits() -> None:
    for text in ENDS:
        check(text)
        check("-" + text)
    for digit in "159":
        for text in (
            digit * 800,
            "0." + digit * 800,
            "0." + "0" * 400 + digit * 400,
            digit * 400 + "e-500",
            "1" + "0" * 800 + "e-800",
            digit * 310,
        ):
            check(text)


def test_what_is_a_number_and_what_is_none() -> None:
    for text in (
        "inf",
        "-inf",
        "+Inf",
        "INFINITY",
        "-iNfInItY",
        "nan",
        "-nan",
        "NaN",
        "nan(1)",
        "0x10",
        "0x1p3",
        "1_000",
        "1,5",
        "abc",
        "",
        "+",
        "-",
        "--1",
        "1-",
        "1.2.3",
        ".",
        "-.",
        "e5",
        "1e",
        "1e+",
        "1e5.0",
        "infi",
        "infinit",
        "infinityy",
        "inf1",
        "1f",
        "1d0",
        "\u0661",
        "1\0",
        "\0",
        "1e5e5",
        "+-1",
    ):
        check(text)


def test_the_decimal_point_is_a_point_in_every_locale():
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "nl_NL.UTF-8"):
            try:
                locale.setlocale(locale.LC_NUMERIC, name)
                break
            except locale.Error:
                continue
        else:
            pytest.skip("no locale with a decimal comma on this machine")
        assert read(b"1.5e-310") == 1.5e-310  # too small for the table
        assert read(b"1,5e-310") is None
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def written(values: np.ndarray) -> list[str]:
    """Scores in the form of a run file."""
    n = len(values)
    names = np.frombuffer(b"qd", np.uint8), np.array([0, 1], np.int64)
    lines = _core.RunLines(names, names, np.array([0, n], np.int64), b"t")
    text = bytes(lines.text(0, np.zeros(n, np.int64), values)).decode()
    return [line.split(" ")[4] for line in text.splitlines()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_written_as_pyarrow_writes_them(dtype) -> None:
    """Many bit patterns; runs were written by pyarrow's cast before."""
    kind = np.uint32 if dtype is np.float32 else np.uint64
    rng = np.random.default_rng(3)
    patterns = rng.integers(0, np.iinfo(kind).max, 50_000, kind, endpoint=True)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    tens = np.array([float(f"1e{i}") for i in range(-323, 309)])
    with np.errstate(over="ignore", under="ignore"):
        edges = np.concatenate([powers, tens, powers[1:] * (1 - 2**-53)]).astype(dtype)
        edges = np.concatenate(
            [edges, np.nextafter(edges, dtype(0)), np.nextafter(edges, edges + edges)]
        )
    halves = np.arange(20_000) / 8
    for values in (patterns.view(dtype), edges, -halves.astype(dtype)):
        assert written(values) == pa.array(values).cast(pa.string()).to_pylist()


LABELS = ["b c", "\udcff%20", "é", "z", "b", "a", "\U0001f600", "\uffff", "10", "9"]


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


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


@pytest.mark.parametrize(
    ("dtype", "codec"), [(np.float32, None), (np.float64, "gzip"), (np.float32, "zstd")]
)
def test_many_lines_as_plain_python_writes_them(tmp_path: Path, monkeypatch, dtype, codec) -> None:
    """Many more than at a time; empty queries, long ranks, names of many lengths."""
    monkeypatch.setattr(file_lines, "LINES_AT_A_TIME", 2_500)
    rng = np.random.default_rng(2)
    sizes = [0, 7_500, 0, 0, 1, 6_000, 1_500, 0]
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


@pytest.fixture
def questions():
    test = np.array([[0, 0, 1], [0, 0, 2], [3, 1, 1], [0, 0, 1]])
    labels = ["an entity", "b", "100%", "é\udcff"]
    graph = kgtrec.Graph.from_arrays(test=test, entities=labels, relations=["r 0", "r1"])
    return graph.questions("test")


def test_qrels_and_question_lines(tmp_path: Path, questions) -> None:
    write_qrels(questions, tmp_path / "q.gz")
    read = read_qrels(tmp_path / "q.gz")
    assert list(read) == list(questions.ids)
    for place, judged in enumerate(read.values()):
        labels = [as_bytes(questions.graph.entities[e]) for e in questions.answers[place].tolist()]
        assert [decode_docno(as_bytes(docno)) for docno in judged] == labels
        assert set(judged.values()) == {1}
    write_questions(questions, tmp_path / "questions.txt")
    lines = (tmp_path / "questions.txt").read_bytes().split(b"\n")
    assert lines[0] == b"head0\tb\tr%200"
    assert lines[3] == b"tail0\tan%20entity\tr%200"
    assert len(lines) == len(questions) + 1


@pytest.mark.data
@pytest.mark.parametrize(("name", "published"), [("fb15k-237", "FB-Test-O"), ("wn18rr", "WN18RR")])
def test_published_questions_are_reproduced(tmp_path, shared_data, name, published) -> None:
    questions = kgtrec.read_graph(shared_data / name).questions("test")
    write_questions(questions, tmp_path / "mine")
    due = shared_data / "kgc-sparsity" / "data" / published / "trec_queries.txt"
    mine = (tmp_path / "mine").read_bytes().split(b"\n")
    assert mine == due.read_bytes().replace(b"\r\n", b"\n").split(b"\n")


@pytest.mark.parametrize("name", ["file.txt", "file.gz", "file.zst"])
def test_atomic_write_leaves_nothing_behind_on_any_exception(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    write_run({"q": {"a": 1.0}}, target)
    old = target.read_bytes()
    for fault in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(fault), atomic_write(target) as out:  # noqa: PT012
            out.write(b"new")
            raise fault
        assert target.read_bytes() == old
    write_run({"q": {"b": 1.0}}, target)
    assert read_run(target) == {"q": {"b": 1.0}}
    write_run({"q": {"a": 1.0}}, target)
    assert target.read_bytes() == old  # packed files have no time
    assert os.listdir(tmp_path) == [name]


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
    with atomic_write("/dev/null") as out:
        out.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
