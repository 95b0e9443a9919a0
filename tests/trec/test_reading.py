"""Readers of run and qrels files against an oracle in plain Python: values, faults, threads."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import reader_checks
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from refusals import each_row
from slow import slow_after

from kgtrec.cli import cli
from kgtrec.errors import FileError
from kgtrec.trec.files import parse
from kgtrec.trec.files import text as file_texts
from kgtrec.trec.files.run import read_run
from kgtrec.trec.measures.judge import read_judged_queries, read_lists
from kgtrec.trec.measures.relevant import UNJUDGED


def write(folder: Path, content: bytes | str, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


names = st.binary(min_size=1, max_size=12).filter(lambda b: b.split() == [b] and b[:1] != b"#")

few = st.sampled_from(
    [b"q", b"q1", b"qq", b"\xff", b"d", b"d1", b"dd", b"d\0", b"longer-than-eight"]
)

blanks = st.sampled_from([b" ", b"\t", b"  ", b" \v", b"\f", b"\r "])

edges = st.sampled_from([b"", b"", b"", b" ", b"\t"])

endings = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"])

scores = st.one_of(
    st.sampled_from([b"1", b"1.0", b"0.5", b"-0", b"0", b"inf", b"-inf", b"1e-400", b"1e400"]),
    st.floats(allow_nan=False).map(lambda x: repr(x).encode()),
    st.integers(-(10**20), 10**20).map(lambda x: b"%d" % x),
)

levels = st.integers(-3, 4).map(lambda x: b"%d" % x) | st.sampled_from([b"+2", b"007", b"-0"])


@st.composite
def files(draw, is_run: bool) -> bytes:
    """Mostly valid: each fault has its own probability."""
    chunks = [draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))]
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.integers(0, 19))
        if kind == 0:
            chunks.append(draw(st.sampled_from([b"#", b" # a b", b"#q 0 d 1 1 t"])) + b"\n")
            continue
        if kind == 1 and is_run:
            chunks.append(draw(st.sampled_from([b"\n", b" \t\n", b"\r\n"])))
            continue
        fields = [draw(few | names), b"0", draw(few | names)]
        fields += [b"1", draw(scores), draw(few)] if is_run else [draw(levels)]
        if kind == 2:
            place = draw(st.integers(0, len(fields) - 1))
            fields[place] = draw(st.sampled_from([b"", b"x y", b"nan", b"1.5", b"9" * 20, b"#"]))
        if kind == 3:
            fields.append(draw(few))
        line = draw(edges)
        for place, field in enumerate(fields):
            line += (draw(blanks) if place else b"") + field
        chunks.append(line + draw(edges) + draw(endings))
    data = b"".join(chunks)
    return data[:-1] if data.endswith(b"\n") and draw(st.booleans()) else data


@st.composite
def short_files(draw) -> bytes:
    """Lines of three columns: ranks of MS MARCO, scores, and faults."""
    ranks, chunks = {}, []
    for _ in range(draw(st.integers(0, 8))):
        query, document = draw(few), draw(few | names)
        ranks[query] = ranks.get(query, 0) + 1
        value = b"%d" % ranks[query] if draw(st.integers(0, 9)) else draw(scores | st.just(b"x"))
        chunks += [draw(edges), b"\t".join([query, document, value]), draw(endings)]
        if not draw(st.integers(0, 9)):
            chunks.append(draw(st.sampled_from([b"# a b c\n", b"\n", b"q d\n", b"q 0 d 1\n"])))
    return b"".join(chunks)


words = st.sampled_from(["q", "q1", "d", "d1", "\u00e9", "x y", ""])

other_files = st.one_of(
    st.dictionaries(
        words,
        st.dictionaries(words, st.sampled_from([0, 1, 2.0, 0.5, -1, "1", None, True, 2**63])),
        max_size=3,
    ).map(lambda data: json.dumps(data).encode()),
    st.tuples(
        st.sampled_from(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]),
        st.text("qd1 \n\0\u00e9", max_size=20),
    ).map(lambda pair: pair[1].encode(pair[0])),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reading")


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@pytest.mark.parametrize("is_run", [True, False])
@given(data=st.data(), threads=st.integers(1, 3), small=st.booleans())
def test_columns_are_the_oracles(folder, is_run, data, threads, small):
    lines = st.from_regex(rb"([qd0-9.#\x85\xa0 \t]{0,12}\n){0,4}")
    content = data.draw(st.one_of(files(is_run), files(is_run), st.binary(max_size=80), lines))
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(parse, "_PART_BYTES", 8)
            patch.setattr(parse, "_PART_DOCUMENTS", 1)
            patch.setattr(parse, "_FEW_GROUPS", 1)
        reader_checks.check_columns(write(folder, content), content, is_run, threads)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@pytest.mark.parametrize("is_run", [True, False])
@given(short=short_files(), other=other_files)
def test_other_forms_are_the_oracles(folder, is_run, short, other):
    for content in (short, other):
        reader_checks.check_columns(write(folder, content), content, is_run, 1)


options = st.fixed_dictionaries(
    {
        "depth": st.none() | st.integers(0, 8),
        "keep_ties": st.booleans(),
        "judged_only": st.booleans(),
        "single": st.booleans(),
        "absent": st.booleans(),
    }
)

near = [1.0, 1.0 + 1e-9, 1.0 - 1e-9, 0.0, -0.0, 5e-324, 1e300, 1e301, -1e300, float("inf")]

# The lowest are the mark of documents without a judgement, and its neighbour.
grades = st.integers(-3, 3) | st.sampled_from([-(2**63), 1 - 2**63, 2 - 2**63, -(2**31)])

tables = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(
        st.text("de\u00e9\udc80", min_size=1, max_size=3),
        st.tuples(st.sampled_from(near) | st.floats(allow_nan=False), grades),
        min_size=1,
        max_size=25,
    ),
    min_size=1,
)


def as_bytes(table, value=lambda x: x):
    def raw(name: str) -> bytes:
        return name.encode("utf-8", "surrogateescape")

    return {raw(q): {raw(d): value(v) for d, v in ds.items()} for q, ds in table.items()}


def looks_misread(qrels, lines: list[bytes]) -> bool:
    """Whether no retrieved document is judged, or all lists rise; these lines have no ranks."""
    scores, retrieved, judged, rises, falls = {}, 0, 0, 0, 0
    for query, _, document, _, score, _ in map(bytes.split, lines):
        if query in qrels:
            retrieved += 1
            judged += document in qrels[query]
            before = scores.get(query, float(score))
            rises += float(score) > before
            falls += float(score) < before
            scores[query] = float(score)
    return (retrieved > 0 and not judged) or (rises >= 3 and not falls)


@given(run=tables, qrels=tables, options=options, data=st.data(), threads=st.integers(1, 3))
def test_lists_are_the_oracles(folder, run, qrels, options, data, threads):
    """From files, lines in any order, and from dicts."""
    run = {q: {d: score for d, (score, _) in ds.items()} for q, ds in run.items()}
    qrels = {q: {d: level for d, (_, level) in ds.items()} for q, ds in qrels.items()}
    raw_run, raw_qrels = as_bytes(run), as_bytes(qrels)
    lines = [
        b"%s Q0 %s 0 %s t\n" % (q, d, repr(v).encode())
        for q in raw_run
        for d, v in raw_run[q].items()
    ]
    judged = [b"%s 0 %s %d\n" % (q, d, v) for q in raw_qrels for d, v in raw_qrels[q].items()]
    judged, lines = (data.draw(st.permutations(part)) for part in (judged, lines))
    if data.draw(st.booleans()):
        lines.sort(key=lambda line: line.split()[0])  # only such a run is read in one pass
    queries = [line.split()[0] for line in lines]
    lowest = min(level for levels in qrels.values() for level in levels.values())
    is_plain = len(list(groupby(queries))) == len(raw_run) and lowest > 1 - 2**63
    is_plain = is_plain and not looks_misread(raw_qrels, lines)
    paths = [write(folder, b"".join(judged), "qrels"), write(folder, b"".join(lines), "run")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "_PART_DOCUMENTS", data.draw(st.sampled_from([1, 10, 1000])))
        checked = reader_checks.check_lists(*paths, raw_qrels, raw_run, options, threads)
        assert checked == is_plain
    how = reader_checks.cut_of(options)
    from_files, from_dicts = read_lists(*paths, **how), read_lists(qrels, run, **how)
    for name in ("offsets", "relevance", "scores", "retrieved", "judged_offsets", "judged"):
        one, other = getattr(from_files, name), getattr(from_dicts, name)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), name
    for name in ("queries", "unanswered", "unasked"):
        assert getattr(from_files, name) == getattr(from_dicts, name)
    assert (from_files.tag, from_dicts.tag) == ("t", "")


@pytest.mark.parametrize("order", ["sorted", "shuffled", "reversed", "interleaved"])
def test_long_lists(tmp_path: Path, order: str) -> None:
    """More documents than reach a heap or a merge in the small cases, with and without ties."""
    rng = np.random.default_rng(3)
    run, lines = {}, []
    for query in (b"10", b"9", b"x"):
        scores = np.round(rng.standard_normal(700), 1 if query == b"9" else 12)
        run[query] = {b"d%d" % i: float(s) for i, s in enumerate(scores.tolist())}
        ranked = sorted(run[query], key=lambda d, q=query: (run[q][d], d), reverse=True)
        ranked = ranked[::-1] if order == "reversed" else ranked
        texts = [repr(run[query][d]).encode() for d in ranked]
        pairs = zip(ranked, texts, strict=True)
        lines += [b"%s Q0 %s 1 %s t\n" % (query, d, text) for d, text in pairs]
    if order in ("shuffled", "interleaved"):
        lines = [lines[i] for i in rng.permutation(len(lines))]
    qrels = {q: {b"d%d" % i: int(i % 3) - 1 for i in range(0, 700, 7)} for q in run}
    judged = b"".join(b"%s 0 %s %d\n" % (q, d, v) for q in qrels for d, v in qrels[q].items())
    paths = write(tmp_path, judged, "q"), write(tmp_path, b"".join(lines), "r")
    for depth in (None, 1, 20, 349, 351, 700):
        for more in ({}, {"keep_ties": True}, {"judged_only": True}, {"single": True}):
            reader_checks.check_lists(*paths, qrels, run, {"depth": depth, **more}, 2)


@pytest.mark.parametrize("separator", " \t")
def test_lines_like_the_last_one(tmp_path, separator: str) -> None:
    """Such lines are compared, not split: numbers of all lengths, and almost."""
    scores = [
        f"{sign}{'4072539168'[:whole]}.{'9385126074'[:fraction]}".removesuffix(".")
        for sign in ("", "-", "+")
        for whole in range(1, 10)
        for fraction in range(11)
    ]
    scores += ["inf", "-inf", ".5", "5.", "1e3", "-1E-3", "0", "00000001.5"]
    scores.append("1.50000000000000000001")
    documents = [f"d{i}{'-' * (i % 45)}" for i in range(len(scores))]
    text = "".join(
        separator.join(("q", "Q0", document, str(i), score, "a\x01tag")) + "\n"
        for i, (document, score) in enumerate(zip(documents, scores, strict=True))
    )
    last = "q Q0 e\x01f 1 2 a\x01tag\nqq Q0 d 1 2 a\x01tag\nq Q0  g 1 3  a\x01tag\n"
    by_name = dict(zip(documents, map(float, scores), strict=True)) | {"e\x01f": 2.0, "g": 3.0}
    expected = {"q": by_name, "qq": {"d": 2.0}}
    found = read_run(write(tmp_path, text + last))
    assert found == expected
    assert str(found) == str(expected)  # also the sign of zero
    faults = "d 1 2,d 1 2x T,d 1 nan T,d 1 1.2.3 T,d 1 1-2 T,d 1 T,d\x011 2 T,d0 1 2 T"
    for line in faults.replace("T", "a\x01tag").split(","):
        wrong = f"q Q0 {line}\n".replace(" ", separator) + text[:200].replace("q", "p")
        with pytest.raises(FileError, match=f":{len(scores) + 1}: "):
            read_run(write(tmp_path, text + wrong))


def test_a_long_line_with_more_columns(tmp_path) -> None:
    """tests/golden/cli/trec-files.txt has faults and lines that were joined."""
    run = read_run(write(tmp_path, f"q Q0 {'d' * 5000} 1 1 t and more\n"))
    assert list(run["q"]) == ["d" * 5000]


RUN, QRELS = b"q Q0 d 1 2 t\nq Q0 e 2 1 t", b"q 0 e 1\n"


def check_pair(qrels, run) -> None:
    lists = read_lists(qrels, run)
    assert lists.relevance.tolist() == [UNJUDGED, 1]
    assert (lists.queries, lists.tag) == (["q"], "t")


def packed(data: bytes, suffix: str) -> bytes:
    return gzip.compress(data) if suffix == ".gz" else pa.compress(data, "zstd", asbytes=True)


def test_packed_files(tmp_path) -> None:
    halves = gzip.compress(RUN[:9]) + gzip.compress(RUN[9:]) + b"\0" * 8  # as by cat, and a tape
    check_pair(write(tmp_path, QRELS, "q"), write(tmp_path, halves, "r.gz"))
    check_pair(
        *(write(tmp_path, packed(data, ".zst"), f"{i}.zst") for i, data in enumerate((QRELS, RUN)))
    )


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_files_that_are_damaged(tmp_path, suffix) -> None:
    whole = packed(b"".join(b"q%d Q0 d 1 1 t\n" % i for i in range(10_000)), suffix)
    for content in (whole[:-9], whole[:50], whole[:3], b"no such data", whole + b"garbage"):
        plain = suffix == ".gz" and content == b"no such data"
        text = "not gzip data, as the name says" if plain else "damaged or cut short"
        with pytest.raises(FileError, match=text):
            read_run(write(tmp_path, content, "r" + suffix))
    with pytest.raises(FileError, match="give it a name that ends in " + suffix):
        read_run(write(tmp_path, whole, "r.txt"))
    for content in (b"", packed(b"", suffix)):
        with pytest.raises(FileError, match="contains no lines"):
            read_run(write(tmp_path, content, "e" + suffix))


@each_row(
    "content, said",
    [(gzip.compress(RUN), ": .* gzip data; unpack it first: zcat"), (b"q Q0 d\n", ":1: 3 columns")],
)
def test_faults_of_standard_input(monkeypatch, content: bytes, said: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with pytest.raises(FileError, match=f"^standard input{said}"):
        read_run("-")


def test_dicts_without_documents() -> None:
    lists = read_lists({"b": {"d": True}, "none": {}}, {"b": {}, "none": {"x": 1}})
    assert (lists.queries, lists.offsets.tolist(), lists.judged.tolist()) == (["b"], [0, 0], [1])
    assert (lists.unanswered, lists.unasked, len(read_lists({}, {}))) == (0, 1, 0)


TOKENS = [
    b" ",
    b"\n",
    b"\t",
    b"\r",
    b"\v",
    b"\f",
    b"\0",
    b"#",
    b"-",
    b"+",
    b".",
    b"e",
    b"_",
    b"nan",
    b"inf",
    b"0",
    b"9",
    b"1e-400",
    b"1e-4000",
    b"1.0",
    b"2e0",
    b"12345678901234567890",
    b"0x1p3",
    b"\xff",
    b"\xc3\xa9",
    b"\n\n",
    b" 1 2 3",
    b"\xef\xbb\xbf",
    b"4.9e-324",
]


@st.composite
def damaged(draw, is_run: bool) -> bytes:
    data = draw(files(is_run))
    for _ in range(draw(st.integers(0, 3))):
        at, lost = draw(st.integers(0, len(data))), draw(st.integers(0, 8))
        data = data[:at] + draw(st.sampled_from(TOKENS) | st.binary(max_size=2)) + data[at + lost :]
    return data


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@examples(3)
@given(run=damaged(True), qrels=damaged(False), options=options, sizes=st.data())
def test_damaged_files(folder, run, qrels, options, sizes):
    paths = write(folder, qrels, "qrels"), write(folder, run, "run")
    with pytest.MonkeyPatch.context() as patch:
        for name, few in (("_PART_BYTES", 16), ("_PART_DOCUMENTS", 3), ("_FEW_GROUPS", 2)):
            some = [1, few, getattr(parse, name)]
            patch.setattr(parse, name, sizes.draw(st.sampled_from(some)))
        threads = sizes.draw(st.integers(1, 3))
        ranked = reader_checks.check_columns(paths[1], run, True, threads)
        judged = reader_checks.check_columns(paths[0], qrels, False, threads)
        if ranked is not None and judged is not None:
            reader_checks.check_lists(*paths, judged, ranked, options, threads)
        elif reader_checks.is_trec(run, True) and reader_checks.is_trec(qrels, False):
            ahead = reader_checks.read_ahead(*paths, reader_checks.Cut())
            assert ahead.lists(str(paths[1]), ahead.cut) is None


# -- Run and qrels files that are read in parts, on threads: the parts never show ----------------

# Queries go on over any cut, come back later, and begin alike; lines of all kinds between them.
PART_RUNS = {
    "sound": b"a 0 d1 1 9 t\na 0 d2 2 8 t\n\n#a 0 d1\nab 0 d1 1 1e1 t\n a 0 d3 3 7 t\nb 0 d1 1 2 t"
    b"\r\nb 0 d2 2 3 t x\nab 0 d2 9 9 last",
    "a document twice, in two parts": b"a 0 d1 1 9 t\nb 0 d1 1 8 t\nb 0 d2 2 7 t\na 0 d1 2 6 t\n",
    "two faults": b"a 0 d1 1 9 t\nb 0 d1 1 8 t\nb 0 d2 2 x t\na 0 d2 2 6\nb 0 d1 3 5 t\n",
    "a fault, then a document twice": b"a 0 d 1 9 t\n\nb 0 d 1 y t\na 0 d 1 9 t\n",
    "comments only": b"#a 0 d 1 9 t\n\n# b\n",
}

QRELS_PARTS = {
    "sound": b"a 0 d1 1\na 0 d2 0\n#a\nab 0 d1 2\n a 0 d3 -1\nb 0 d1 1\r\nab 0 d2 3",
    "blank lines": b"a 0 d1 1\nb 0 d1 1\n \nb 0 d2 1\n\na 0 d2 1\n",
    "a fault before a blank line": b"a 0 d1 1\nb 0 d1 1.5\nb 0 d2 1\n\na 0 d2 1\n",
    "a document twice, in two parts": b"a 0 d1 1\nb 0 d1 0\na 0 d1 0\n\n",
}
in_parts = pytest.mark.parametrize(
    ("is_run", "text"),
    [
        pytest.param(is_run, text, id=kind)
        for texts, is_run in ((PART_RUNS, 1), (QRELS_PARTS, 0))
        for kind, text in texts.items()
    ],
)
on_threads = pytest.mark.parametrize("threads", slow_after(1, (2, 1, 7)))


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@on_threads
@in_parts
def test_parts_of_any_size(tmp_path: Path, monkeypatch, threads, is_run, text) -> None:
    path = tmp_path / "file"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + text)
        for size in range(1, len(text)):
            monkeypatch.setattr(parse, "_PART_BYTES", size)
            monkeypatch.setattr(parse, "_PART_DOCUMENTS", size % 5)
            reader_checks.check_columns(path, mark + text, is_run, threads)


LINE = b"q1 Q0 doc 12 3.25 tag"

BEHIND = [b"# " * 50 + b"\n", b"#" * 100 + b"\n"]  # far from the end; with and without white space


def check_line(folder: Path, line: bytes) -> None:
    path = folder / "file"
    for behind in BEHIND:
        text = b"q1 Q0 first 1 9.5 tag\n" + line + b"\n" + behind
        path.write_bytes(text)
        reader_checks.check_columns(path, text, True, 1)


@pytest.mark.parametrize("byte", slow_after(5, b" \n\r\0#.\t\v\f\x08\x0e\x1f!0-e\x80\xa0\xff"))
def test_a_byte_at_any_place_of_a_line(tmp_path: Path, byte: int) -> None:
    for place in range(len(LINE) + 1):
        check_line(tmp_path, LINE[:place] + bytes([byte]) + LINE[place:])
        check_line(tmp_path, LINE[:place] + bytes([byte]) + LINE[place + 1 :])


LENGTHS = [*range(1, 19), *range(30, 35), *range(62, 67), *range(126, 131)]  # at edges of vectors


@pytest.mark.parametrize("place", slow_after(2, [0, 2, 6, 9, 13, 19, len(LINE)]))
def test_lines_of_any_length(tmp_path: Path, place: int) -> None:
    for n in LENGTHS:
        for filler in (b"0" * n, b" " * n, b" 1" * n, b" " + b"x" * n):
            check_line(tmp_path, LINE[:place] + filler + LINE[place:])


def test_a_line_at_any_distance_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for n in (0, *LENGTHS):
        for end in (b"", b"\n"):
            text = b"a 0 d 1 0.5 t\n" + LINE + b"\n" + b"#" * n + end
            path.write_bytes(text)
            reader_checks.check_columns(path, text, True, 1)


# -- Run and qrels files that are written to, cut short or replaced while they are read: one line


def change_while_read(monkeypatch: pytest.MonkeyPatch, path: str, act: str) -> None:
    """Change a file before its first bytes are read; test_sources.py has other changes."""
    number = os.stat(path).st_ino

    def changing(read):
        def changed(file, *where):
            own = os.stat(file).st_ino == number  # a descriptor, or a path
            if own and act == "cut":
                os.truncate(path, 100)
            elif own:
                with open(path, "r+b") as out:
                    out.seek(-40, os.SEEK_END)
                    out.write(b"x" * 40)
            return read(file, *where)

        return changed

    for module, name in ((os, "pread"), (os, "preadv"), (file_texts, "_gunzip")):
        monkeypatch.setattr(module, name, changing(getattr(module, name)))
    monkeypatch.setattr(file_texts, "_MOST_BYTES", 0)  # it would read a changed file again
    if path == "parts.run":
        monkeypatch.setattr(file_texts, "_PART", 100)


SAID = {"cut": "it was cut short while it was read", "write": "it was written to while it was read"}

DEPTH = 400


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run = [f"q{q} 0 d{d:04} {d} {DEPTH - d} tag\n" for q in range(5) for d in range(DEPTH)]
    qrels = [f"q{q} 0 d{d:04} {d % 2}\n" for q in range(5) for d in range(0, DEPTH, 7)]
    for name, lines in (("a.run", run), ("parts.run", run), ("a.qrels", qrels)):
        Path(name).write_text("".join(lines))
    Path("no-end.run").write_text("".join(run).rstrip("\n"))
    Path("a.run.gz").write_bytes(gzip.compress("".join(run).encode()))
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))  # later writes differ, however soon they come
    return tmp_path


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("act", SAID)
@pytest.mark.parametrize("path", ["a.run", "parts.run", "a.run.gz", "a.qrels", "no-end.run"])
def test_a_file_that_changes_while_it_is_read(monkeypatch, path: str, act: str) -> None:
    """And files before it print nothing."""
    change_while_read(monkeypatch, path, act)
    files = dict.fromkeys(("a.qrels", "a.run", path))
    done = CliRunner().invoke(cli, ["eval", "-m", "map", *files])
    assert isinstance(done.exception, FileError)
    assert (done.exception.exit_code, done.stdout) == (2, "")
    assert str(done.exception).startswith(f"{path}: {SAID[act]}")
    assert str(done.exception).endswith("; try again when nothing writes to it")


@pytest.mark.usefixtures("home")
def test_a_pipe_is_no_file_that_changes() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m kgtrec eval -m map <(cat a.qrels) <(cat a.run)"],
        capture_output=True,
        text=True,
        check=True,
    )
    due = CliRunner().invoke(cli, ["eval", "-m", "map", "a.qrels", "a.run"]).stdout
    assert done.stdout == due != ""


@pytest.mark.usefixtures("home")
def test_what_is_written_afterwards_changes_nothing() -> None:
    """Judgements stay while run after run is read: as a copy, not as a view of the file."""
    judgements = read_judged_queries("a.qrels")
    before = read_lists(judgements, "a.run")
    with open("a.qrels", "r+b") as file:
        file.write(b"x" * 1000)
    assert (read_lists(judgements, "a.run").relevance == before.relevance).all()
    os.truncate("a.qrels", 0)
    assert (read_lists(judgements, "a.run").relevance == before.relevance).all()
