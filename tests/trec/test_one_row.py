"""A measure is one row: every part of kgtrec knows a row added from outside."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import fuzz_readers
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from slow import slow_after

import kgtrec
from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import FileError, UsageError
from kgtrec.measures import Measure, keys
from kgtrec.measures.help import describe
from kgtrec.measures.metric import Metric
from kgtrec.measures.ties import Ranked, Scaled
from kgtrec.trec.files import parse
from kgtrec.trec.files.run import read_run_columns
from kgtrec.trec.measures import ties
from kgtrec.trec.measures.bounds import why_unbounded
from kgtrec.trec.measures.family import PLACES, EvalOptions, Family
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.own import own_values
from kgtrec.trec.measures.relevant import View
from kgtrec.trec.measures.rows import QRELS_ROWS, TABLE

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

# -- The one function, and the one row ----------------------------------------------------------


def double_hits(view: View, column: Column) -> np.ndarray:
    near = view.hits.query[view.hits.place < int(column.cutoff or 0)]
    return 2.0 * np.bincount(near, minlength=len(view.num_rel))


ROW = Family(
    "Twice the relevant documents among the first k.",
    kind="rank", defaults=(3,), ours=True, function=double_hits, aliases=("DoubleHits",),
    at=("dh",), bounds=PLACES, in_pytrec_eval=False,
)  # fmt: skip

QRELS = {"q": {"a": 1, "b": 0, "c": 1}}
RUN = {"q": {"a": 2.0, "b": 2.0, "x": 1.0, "c": 0.5}}


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "double_hits", ROW)


def test_a_row_that_is_taken_away_is_unknown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as within:
        within.setitem(TABLE, "double_hits", ROW)
        assert [column.name for column in resolve(["DH@3"])] == ["double_hits_3"]
    with pytest.raises(UsageError, match="DH@3"):
        resolve(["DH@3"])


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("name", ["double_hits_1", "double_hits.1", "DH@1", "dh@1"])
def test_every_spelling_is_known_everywhere(name: str) -> None:
    assert trec.evaluate(QRELS, RUN, [name]) == {"q": {"double_hits_1": 0.0}}  # b before a
    assert Measure.parse(f"both.macro.{name}").metric == "double_hits_1"
    assert describe(name)["help"] == ROW.text
    assert "double_hits_k" in CliRunner().invoke(cli, ["measures"]).stdout


@pytest.mark.usefixtures("added")
def test_the_command_line_knows_it(tmp_path) -> None:
    qrels, run = tmp_path / "q", tmp_path / "r"
    qrels.write_text("".join(f"q 0 {d} {r}\n" for d, r in QRELS["q"].items()))
    run.write_text("".join(f"q Q0 {d} 0 {s} t\n" for d, s in RUN["q"].items()))
    done = CliRunner().invoke(cli, ["eval", "-m", "double_hits.1,4", str(qrels), str(run)])
    assert done.stdout == (
        "double_hits_1         \tall\t0.0000\ndouble_hits_4         \tall\t4.0000\n"
    )
    # Its ties are found; measures without an expectation get no advice to use one.
    assert "1 of 1 queries have ties that could change these measures\n" in done.stderr
    text = CliRunner().invoke(cli, ["eval", "-h", "-m", "double_hits"]).stdout
    assert ROW.text in text
    assert "Default: -m double_hits.3" in text


@pytest.mark.usefixtures("added")
def test_ties_bounds_and_ranks_follow_from_the_row() -> None:
    (column,) = resolve(["DoubleHits"])
    assert column.name == "double_hits_3"
    assert column.sees == 3
    assert why_unbounded(column) == ""
    assert not ties.has_tie_form(column, EvalOptions())
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2], [0, 0, 3], [3, 0, 4]])
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), graph.n_entities))
    result = kgtrec.evaluate(scores, questions, measures=["both.macro.double_hits_2"])
    alone = kgtrec.Result(result.ranks)
    precision = alone["both.macro.P_2"]
    assert result["both.macro.double_hits_2"] == alone["both.macro.double_hits_2"] == 4 * precision


def test_every_row_has_what_its_parts_name() -> None:
    view = View(*_lists())
    for column in resolve(QRELS_ROWS):
        if column.family != "runid":
            assert len(own_values(view, [column])[column.name]) == 1, column.name
    for name, row in TABLE.items():
        assert row.text.endswith((".", ")")), name
        assert row.ir_measures.partition("(")[0] == "" or row.format in ("qrels", "any")
    spelled = [alias for row in TABLE.values() for alias in row.aliases]
    before_at = [stem for row in TABLE.values() for stem in row.at]
    assert len(spelled) == len(set(spelled))
    assert len(before_at) == len(set(before_at))


def _lists():
    from kgtrec.trec.measures.judge import read_lists

    return read_lists(QRELS, RUN), EvalOptions()


# -- The same for a metric of ranks --------------------------------------------------------------


def square(ties: Ranked, rank_type: str, parameter: float) -> Scaled:
    from kgtrec.measures.rank_metrics import mean_rank

    values = mean_rank(ties, rank_type, parameter)
    return Scaled(np.asarray(values.scaled / values.scale, np.float64) ** 2, 1)


def test_a_metric_of_ranks_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Metric(
        name="msr", title="MSR", help="Mean squared rank.", formula="sum r^2 / n",
        higher_is_better=False, range="[1, inf)", reference="here", averagings=("micro", "macro"),
        value=square, papers=("mean_squared_rank",),
    )  # fmt: skip
    for name in (row.name, *row.aliases):
        monkeypatch.setitem(keys._BY_NAME, name, row)
    assert keys.find_metric("mean_squared_rank") == (row, 0)
    graph = kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 2], [0, 0, 3], [3, 0, 4]])
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), graph.n_entities))
    result = kgtrec.evaluate(scores, questions)
    due = np.mean((result.ranks.greater + 1.0) ** 2)
    assert result["both.realistic.micro.mean_squared_rank"] == pytest.approx(due, rel=1e-14)
    assert describe("mean_squared_rank")["help"] == "Mean squared rank."


# -- Run and qrels files that are read in parts, on threads: the parts never show ----------------


THREADS = (1, 2, 3, 7)

# Queries go on over any cut, come back later, and begin alike; lines of all kinds between them.
RUNS = {
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
TEXTS = [(kind, is_run, text) for is_run, texts in ((True, RUNS), (False, QRELS_PARTS))
         for kind, text in texts.items()]  # fmt: skip


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@pytest.mark.parametrize("threads", slow_after(2, THREADS))
@pytest.mark.parametrize(("kind", "is_run", "text"), TEXTS, ids=lambda x: str(x)[:24])
def test_cut_at_any_byte(tmp_path: Path, monkeypatch, threads, kind, is_run, text) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    monkeypatch.setattr(parse, "_PART_DOCUMENTS", 1)
    monkeypatch.setattr(parse, "_FEW_GROUPS", 1)
    for cut in range(len(text)):
        monkeypatch.setattr(parse, "_text_parts", lambda *_, c=cut: _two_parts(text, c))
        fuzz_readers.check_columns(path, text, is_run, threads)


def _two_parts(text: bytes, cut: int) -> list[tuple[int, int]]:
    """The second part begins with the first line that begins behind the cut."""
    text = text if text.endswith(b"\n") else text + b"\n"
    begin = text.find(b"\n", cut) + 1
    return [(0, begin), (begin, len(text))] if begin < len(text) else [(0, len(text))]


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@pytest.mark.parametrize("threads", slow_after(2, THREADS))
@pytest.mark.parametrize(("kind", "is_run", "text"), TEXTS, ids=lambda x: str(x)[:24])
def test_parts_of_any_size(tmp_path: Path, monkeypatch, threads, kind, is_run, text) -> None:
    path = tmp_path / "file"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + text)
        for size in range(1, len(text)):
            monkeypatch.setattr(parse, "_PART_BYTES", size)
            monkeypatch.setattr(parse, "_PART_DOCUMENTS", size % 5)
            fuzz_readers.check_columns(path, mark + text, is_run, threads)


def test_parts_begin_at_lines_and_cover_the_text(monkeypatch) -> None:
    data = bytearray(b"".join(b"x" * (i % 7) + b"\n" for i in range(60)))
    text = parse.Text("file", True, data, 3)
    for size in range(1, len(data) + 2):
        monkeypatch.setattr(parse, "_PART_BYTES", size)
        for threads in THREADS:
            parts = parse._text_parts(text, threads)
            assert parts[0][0] == 3
            assert parts[-1][1] == len(data)
            assert all(a[1] == b[0] and data[b[0] - 1] == ord("\n")
                       for a, b in pairwise(parts))  # fmt: skip
            assert (len(parts) > 1) == (threads > 1 and size <= (len(data) - 3) // 2)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.RunWarning")
@pytest.mark.parametrize("kind", RUNS)
def test_packed_files_and_standard_input_in_parts(tmp_path: Path, monkeypatch, kind: str) -> None:
    text = RUNS[kind]
    monkeypatch.setattr(parse, "_PART_BYTES", 20)
    monkeypatch.setattr(parse, "_PART_DOCUMENTS", 1)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    contents = {
        "run": text,
        "run.gz": gzip.compress(text[:30]) + gzip.compress(text[30:]),
        "run.zst": pa.compress(text, "zstd", asbytes=True),
    }
    texts = {_text_of("-", "standard input")}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        texts.add(_text_of(tmp_path / name, str(tmp_path / name)))
    assert len(texts) == 1


def _text_of(path: Path | str, name: str) -> str:
    """All contents of a run, or the message that refuses it."""
    try:
        columns = read_run_columns(path, threads=7)
    except FileError as error:
        return str(error).removeprefix(name)
    documents = columns.documents.to_pylist()
    return repr((columns.queries, documents, columns.scores.tolist(), columns.tag))


# -- Lines that are split at a look ------------------------------------------------------------

LINE = b"q1 Q0 doc 12 3.25 tag"
BEHIND = [b"# " * 50 + b"\n", b"#" * 100 + b"\n"]  # far from the end; with and without white space


def check_line(folder: Path, line: bytes) -> None:
    path = folder / "file"
    for behind in BEHIND:
        text = b"q1 Q0 first 1 9.5 tag\n" + line + b"\n" + behind
        path.write_bytes(text)
        fuzz_readers.check_columns(path, text, True, 1)


@pytest.mark.parametrize("byte", slow_after(6, b" \n\r\0#.\t\v\f\x08\x0e\x1f!0-e\x80\xa0\xff"))
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
            fuzz_readers.check_columns(path, text, True, 1)
