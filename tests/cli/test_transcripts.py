"""Commands print the texts of tests/golden/cli, name damaged files, and read object stores."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import fuzz_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from object_store import AGREES, SETTINGS, new_bucket
from refusals import each_row
from slow import slow_after
from transcripts import (
    CASES,
    GOLDEN_CLI,
    REAL,
    make_real_home,
    parse_blocks,
    run_block,
    run_command,
)

from kgtrec._internal.locations import files_below, read_bytes
from kgtrec.cli import cli
from kgtrec.cli._report import Command, Report
from kgtrec.errors import KgtrecError


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    before = os.getcwd()
    os.chdir(folder)
    try:
        fuzz_files.make_home()
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize("path", sorted(GOLDEN_CLI.glob("*.txt")), ids=lambda path: path.stem)
def test_commands_print_what_they_printed(
    path: Path, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    different = differences(path)
    assert not different, "\n\n".join(different)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_files_of_other_people(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its right value or a message, and the advice of the message is followed."""
    monkeypatch.chdir(tmp_path)
    assert differences(path) == []


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("path", sorted(REAL.glob("*.txt")), ids=lambda path: path.stem)
def test_real_models_print_what_they_printed(
    path: Path, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_real_home()
    assert differences(path) == []


def differences(path: Path) -> list[str]:
    """Run a transcript in this folder; return the commands whose outputs differ."""
    different = []
    for command, due in parse_blocks(path.read_text("utf-8")):
        printed = run_block(command, due)
        if not is_same(printed, due):
            different.append(f"$ {command}\n{printed}\n-- due:\n{due}")
    return different


LONG_NUMBER = re.compile(r"-?\d+\.\d{12,}(?:e-?\d+)?")


def is_same(printed: str, due: str) -> bool:
    """Without empty lines; numbers of full precision to 1e-13, because numpy's versions differ."""
    texts = [text.replace("\n\n", "\n") for text in (printed, due)]
    if os.name == "nt":  # paths
        texts = [re.sub(r"\\+", "/", text) for text in texts]
    numbers = [[float(number) for number in LONG_NUMBER.findall(text)] for text in texts]
    return LONG_NUMBER.sub("#", texts[0]) == LONG_NUMBER.sub("#", texts[1]) and all(
        math.isclose(number, other, rel_tol=1e-13, abs_tol=1e-15)
        for number, other in zip(*numbers, strict=True)
    )


def test_transcripts_can_be_read() -> None:
    text = "# Why\n\n$ kgtrec a\nout\n! err\n= 1\n\n$ kgtrec b\n"
    assert [*parse_blocks(text)] == [("kgtrec a", "out\n! err\n= 1"), ("kgtrec b", "")]


QUICK = ("--permutations", "200", "--resamples", "200")
RANKS = ("a.parquet", "b.parquet", "c.parquet", "--permutations", "200", "--resamples", "200")
JUDGED = ("--qrels", "full.qrels", "a.run", "b.run", "c.run")
POOLED = (*JUDGED, "--pool", "pool3.tsv", "--graph", "g")


@pytest.fixture(scope="module")
def compared(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands of compare.txt compare."""
    folder = tmp_path_factory.mktemp("compared")
    shutil.copytree(sound, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command, below in parse_blocks((GOLDEN_CLI / "compare.txt").read_text("utf-8")):
            if not command.startswith("kgtrec compare"):
                run_block(command, below)
    return folder


@pytest.mark.parametrize(
    ("words", "texts"),
    slow_after(
        3,
        [
            (
                (*RANKS, "--plot-pairs", "y.svg", "--plot-rankings", "x.svg"),
                ("macro.mrr", "above: Holm's p;  below: effect size d$_z$"),
            ),
            (("labels", *JUDGED, "--against", "t.qrels"), ("full.qrels", "t.qrels")),
            (("depths", *POOLED, "--resamples", "200"), ("pool depth (bars: 95% intervals)",)),
            (RANKS, ("a", "MRR (instances)")),
            (("stability", *RANKS[:3], "--repeats", "2"), ("micro MRR", "test triples kept (%)")),
            (("power", *RANKS[:3]), ("p (t test)", "pair of systems, largest p-value first")),
            ((*JUDGED, *QUICK), ("a", "map_cut_20 (queries)")),
            (
                ("labels", *RANKS[:3], "--against", "two"),
                ("macro.mrr", "(b) two: τ = \N{MINUS SIGN}1.00 [\N{MINUS SIGN}1.00, 1.00]"),
            ),
            (("reuse", *POOLED), ("without its own", "map_cut_20")),
        ],
    ),
)
def test_figures_of_comparisons(
    compared: Path, words: tuple[str, ...], texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(compared)
    plot = () if "x.svg" in words else ("--plot", "x.svg")
    assert run_command("compare", *words, *plot).code == 0
    drawn = "".join(path.read_text("utf-8") for path in Path().glob("*.svg"))
    drawn = drawn.replace("<!-- ", ">").replace(" -->", "<")  # texts with formulas are comments
    assert [text for text in texts if f">{text}<" not in drawn] == []


def test_results_of_a_call_that_failed_in_part_are_shown() -> None:
    @click.command(cls=Command)
    def partly() -> Report:
        return Report(lambda: "rows", error="1 of 2 jobs failed")

    done = CliRunner().invoke(partly, [])
    assert done.stdout == "rows\n"
    assert isinstance(done.exception, KgtrecError)
    assert str(done.exception) == "1 of 2 jobs failed"


# -- Damaged files -----------------------------------------------------------------------------


@pytest.fixture
def home(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(sound, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def refused(path: str) -> list[str]:
    """The message of each command that reads a file: code 2, one line, the file by name."""
    messages = []
    for args in fuzz_files.reads()[path]:
        said = fuzz_files.call(args)
        assert said.startswith("2 "), (args, said)
        assert not fuzz_files.fault_of(said, path, args), (args, said)
        assert ";" in said  # a hint
        messages.append(said)
    return messages


@pytest.mark.slow
def test_damaged_at_random() -> None:
    """Two of every kind of file; `python tests/helpers/fuzz_files.py --minutes 30` runs more."""
    cases = str(2 * len(fuzz_files.reads()))
    program = [sys.executable, fuzz_files.__file__, "--cases", cases]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{cases} cases, 0 faults\n"


IMPOSSIBLE = [  # a column, or the description, and what it becomes
    ("given_label", lambda old: [None, *old[1:]], "column 'given_label' has nulls"),
    ("given_label", lambda old: [None] * len(old), "column 'given_label' has type null"),
    ("answer_label", lambda old: [["a"]] * len(old), "column 'answer_label' has type list"),
    ("answer_label", lambda old: [7] * len(old), "column 'answer_label' has type int64"),
    ("greater", lambda old: [None, *old[1:]], "1 nulls"),
    ("greater", lambda old: [*map(str, old)], "string"),
    ("greater", lambda old: [*map(float, old)], "double"),
    ("greater", lambda old: [-1, *old[1:]], "impossible ranks: in row 0, greater -1"),
    ("greater", lambda old: [12, *old[1:]], "impossible ranks: in row 0, greater 12"),
    ("", lambda old: [1], "its metadata is damaged"),
    ("", lambda old: {"format": 1}, "its metadata is damaged"),
    ("", lambda old: old | {"manifest": []}, "its metadata is damaged"),
    ("", lambda old: old | {"relation_labels": ["r0"]}, "1 relation labels"),
    *(
        (
            "",
            lambda old, key=key, value=value: old | {"manifest": old["manifest"] | {key: value}},
            "its metadata is damaged",
        )
        for key, value in (
            ("question_ids", [1, 2]),
            ("question_ids", "2p-0"),
            ("terms", {"kind": ["2i", None]}),
            ("terms", ["kind"]),
            ("questions", {"qrels": "file"}),
            ("questions", {"qrels": {"level": "two"}}),
            ("questions", 7),
            ("questions", []),
            ("scores", 0.5),
            ("scores", {"dtype": 32}),
            ("split", ["test"]),
            ("triples", [1]),
            ("nan_count", "none"),
            ("trec_agreement", "exact"),
            ("trec_agreement", {"map_cut_20": "exact"}),
            ("split", "\ud800"),
        )
    ),
]


@each_row("name, change, words", IMPOSSIBLE)
def test_ranks_that_cannot_be(sound: Path, name: str, change, words: str, tmp_path: Path) -> None:
    table, path = pq.read_table(sound / "a.parquet"), str(tmp_path / "a.parquet")
    if name:
        at, old = table.column_names.index(name), table[name].to_pylist()
        table = table.set_column(at, name, pa.array(change(old)))
    else:
        header = json.dumps(change(json.loads(table.schema.metadata[b"kgtrec.ranks"])))
        table = table.replace_schema_metadata({b"kgtrec.ranks": header})
    pq.write_table(table, path)
    said = fuzz_files.call(["report", path])
    assert said.startswith(f"2 {path}: ")
    assert words in said


def test_ranks_without_columns_rows_or_bytes(home: Path) -> None:
    good = Path("a.parquet").read_bytes()
    table = pq.read_table("a.parquet")
    for name in table.column_names:
        if name.endswith("_label") or name in ("full_candidates",):
            continue
        pq.write_table(table.drop_columns([name]), "a.parquet")
        assert all(name in said for said in refused("a.parquet"))
    pq.write_table(table.select([]), "a.parquet")
    refused("a.parquet")
    content = bytearray(good)
    content[60] ^= 0xFF
    Path("a.parquet").write_bytes(content)
    assert all("not a readable Parquet file" in said for said in refused("a.parquet"))
    pq.write_table(table.replace_schema_metadata({b"kgtrec.ranks": b"{not JSON"}), "a.parquet")
    assert all("its metadata is damaged" in said for said in refused("a.parquet"))


@pytest.mark.parametrize("name", slow_after(1, ["left.npy", "s.npy"]))
def test_headers_of_arrays(home: Path, name: str) -> None:
    for shape in fuzz_files.SHAPES:
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        head = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text
        Path(name).write_bytes(head + bytes(10_000))
        refused(name)


def test_spoilt_compressed_models(home: Path) -> None:
    whole = Path("c.npz").read_bytes()
    for at in (0.2, 0.4, 0.6):
        data = bytearray(whole)
        for place in range(int(len(data) * at), int(len(data) * at) + 30):
            data[place] ^= 0x55
        Path("c.npz").write_bytes(data)
        refused("c.npz")


_TASK = "rows 0 to 6, entities 0 to 11"

_UNFIT = f" or incomplete (the arrays of {_TASK} do not fit together)"

_MISTYPED = f" or incomplete (the arrays of {_TASK} have wrong types)"

_IMPOSSIBLE = f": its content is impossible ({{}} in {_TASK})"


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("counts", lambda x: x[:, :-1], _UNFIT),
        ("counts", lambda x: x[:-1], _UNFIT),
        ("counts", lambda x: x.astype(np.int32), _MISTYPED),
        ("counts", lambda x: -1 - x, _IMPOSSIBLE.format("counts below 0")),
        ("answer_nan", lambda x: x[:-1], _UNFIT),
        ("lengths", lambda x: x * 0 + 99, _UNFIT),
        ("lengths", lambda x: x - 2, _UNFIT),
        ("documents", lambda x: x * 0 + fuzz_files.N, _IMPOSSIBLE.format("entities from 12 to 12")),
        ("documents", lambda x: x[:-1], _UNFIT),
        ("scores", lambda x: x[:-1], _UNFIT),
        ("scores", lambda x: x.astype("U3"), _MISTYPED),
    ],
)
def test_shards_whose_hash_is_right(home: Path, name: str, change, problem: str) -> None:
    from dataclasses import replace

    from kgtrec.ranking.partial import read_about, read_parts, write_parts

    path = "shards/shard-1-of-2.arrow"
    about, (part,) = read_about(path), read_parts(path)
    write_parts(path, about, [replace(part, **{name: change(getattr(part, name))})])
    (said,) = refused(path)
    assert f"shard-1-of-2.arrow: damaged{problem}; rank this shard again" in said


URL = "s3://kgtrec-commands"


def printed(command: str, inputs: str, outputs: str) -> str:
    """The output of a command, without the places of its files."""
    words = shlex.split(command.replace("{o}", outputs).replace("{}", inputs))
    result: Any = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.exception is None, (command, result.exception, result.output)
    text = result.output.replace(outputs, "{o}").replace(inputs, "{}")
    return " ".join(text.split())  # longer names change the line breaks


@pytest.mark.skipif(not AGREES, reason="the server and this pyarrow disagree on uploads in parts")
def test_every_command(
    home: Path, s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3_server}")
    test = Path("g/test.txt").read_text().splitlines()
    np.save("cs.npy", np.arange(len(test)) / 10)
    for name, words, rows in (
        ("cv", "01", test),
        ("labels", "YN", test),
        ("other", "YN", test[:3]),
    ):
        labelled = [f"{line}\t{words[i % 2]}" for i, line in enumerate(rows)]
        Path(f"{name}.tsv").write_text("\n".join(labelled) + "\n")
    calls = []
    for command, below in parse_blocks((GOLDEN_CLI.parent / "at_urls.txt").read_text("utf-8")):
        if command.startswith("file"):
            run_block(command, below)
        else:
            calls.append(command.removeprefix("kgtrec "))
    new_bucket(s3_server, URL.removeprefix("s3://"), home)
    out = tmp_path / "written"
    os.makedirs(out / "ab")
    for command in calls:
        assert printed(command, URL, f"{URL}/written") == printed(command, str(home), str(out)), (
            command
        )
    written = files_below(out)
    assert len(written) > 30
    assert files_below(f"{URL}/written") == written
    for name in written:
        assert read_bytes(f"{URL}/written/{name}") == (out / name).read_bytes(), name
