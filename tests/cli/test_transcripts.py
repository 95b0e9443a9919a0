"""Commands print the texts of tests/golden/cli, name damaged files, and read object stores."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from itertools import product
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
from slow import slow_after, slow_but
from transcripts import PLACE, commands, play

import kgtrec
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


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.txt")), ids=lambda path: path.stem)
def test_commands_print_what_they_printed(
    path: Path, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    different = []
    for command, due in commands(path.read_text("utf-8")):
        printed = play(command)
        if printed.replace("\n\n", "\n") != due.replace("\n\n", "\n"):
            different.append(f"$ kgtrec {command}\n{printed}\n-- due:\n{due}")
    assert not different, "\n\n".join(different)
    assert not list(tmp_path.rglob("*.tmp"))


def test_transcripts_can_be_read() -> None:
    text = "# Why\n\n$ kgtrec a\nout\n! err\n= 1\n\n$ kgtrec b\n"
    assert [*commands(text)] == [("a", "out\n! err\n= 1"), ("b", "")]


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
    cases = 2 * len(fuzz_files.reads())
    assert fuzz_files.fuzz(seed=0, cases=cases, seconds=3600) == (cases, [])


def column(n: int, kind: str) -> pa.Array:
    if kind == "one null":
        return pa.array([None, *["a"] * (n - 1)])
    value = {"number": 7, "list": ["a"]}.get(kind)
    return pa.nulls(n, pa.string()) if kind == "null text" else pa.array([value] * n)


@pytest.mark.parametrize(
    ("name", "kind"),
    slow_but(
        [("given_label", "one null"), ("answer_label", "list"), ("relation_label", "null")],
        product(
            ["given_label", "answer_label", "relation_label"],
            ["null", "null text", "number", "list", "one null"],
        ),
    ),
)
def test_ranks_with_labels_that_are_none(home: Path, name: str, kind: str) -> None:
    table = pq.read_table("a.parquet")
    at = table.column_names.index(name)
    pq.write_table(table.set_column(at, name, column(table.num_rows, kind)), "a.parquet")
    if name == "relation_label":  # which no code reads: the description has the labels
        assert not [
            said for args in fuzz_files.reads()["a.parquet"] if (said := fuzz_files.call(args))
        ]
    else:
        assert all(f"column {name!r} has" in said for said in refused("a.parquet"))


def test_ranks_without_columns_or_rows(home: Path) -> None:
    table = pq.read_table("a.parquet")
    for name in table.column_names:
        if name.endswith("_label") or name in ("full_candidates",):
            continue
        pq.write_table(table.drop_columns([name]), "a.parquet")
        assert all(name in said for said in refused("a.parquet"))
    pq.write_table(table.select([]), "a.parquet")
    refused("a.parquet")


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

# {} is the input folder, {o} the output folder; in order, as some commands read earlier outputs.
COMMANDS = """
rank --graph {}/g --scores {}/s.npy -o {o}/a.parquet --write-run {o}/a.run.gz \
 --write-qrels {o}/a.qrels
rank --graph {}/g --scores {}/m.npz -o {o}/b.parquet --write-run {o}/b.run
rank --graph {}/g --scores {}/s.npy -o {o}/ab/a.parquet -q
rank --graph {}/g --scores {}/m.npz -o {o}/ab/b.parquet -q
rank --graph {}/g --scores {}/s2.npy -o {o}/ab/c.parquet -q
rank --graph {}/g --scores {}/s2.npy -o {o}/c.parquet -q
rank --graph {}/g --predictions {}/p.jsonl --predictions-format jsonl -o /dev/null
rank --graph {}/g --scores {}/s.npy --known {}/known.txt --entities {}/names.txt -o /dev/null
rank --graph {}/g --predictions {}/q.jsonl --predictions-format jsonl --sides relation \
 --relations {}/r.txt \
 -o /dev/null
rank --graph {}/g --scores {}/s.npy --candidates {}/c.tsv --outside worst -o /dev/null -q
rank --graph {}/g --scores {}/s.npy --type-constraints {}/k/types.txt --outside worst -q \
 -o /dev/null
report {o}/a.parquet {o}/b.parquet --format latex -o {o}/t.tex
report {o}/a.parquet {o}/b.parquet --html {o}/r.html --graph {}/g --run {o}/a.run.gz --run {o}/b.run
report {o}/a.parquet --ratios {}/known.txt
report {o}/a.parquet --by label --labels {}/sheet.tsv
plot ranks {o}/a.parquet {o}/b.parquet -o {o}/r.svg
compare labels {o}/a.parquet {o}/b.parquet {o}/c.parquet --against {o}/ab
compare labels {}/t1.csv --against {}/t2.csv -m micro_mrr -m macro_mrr --plot {o}/c.svg
compare --qrels {o}/a.qrels {o}/a.run.gz {o}/b.run
changes {o}/a.parquet {o}/b.parquet --run {o}/a.run.gz --run {o}/b.run
stratify {o}/a.parquet --graph {}/g --count-entities train --count-relations train
openworld {o}/a.parquet {o}/b.parquet --plot {o}/o.svg --sparsity 0.5
eval {o}/a.qrels {o}/b.run
stats {}/g --plot {o}/s.svg
convert --graph {}/g --write-qrels {o}/q.txt --write-questions {o}/q.tsv
semantics --graph {}/g {o}/a.run.gz --entity-types {}/et.txt --relation-types {}/rt.txt
estimate --graph {}/g --scores {}/s.npy --draw-by {}/w.npy --size 10 \
 --write-candidates {o}/drawn.npy
align --left {}/v.npy --right {}/v.npy --pairs {}/pairs.tsv --left-labels {}/n.txt -o {o}/l.parquet
align --matrix {}/v.npy --pairs {}/pairs.txt -o {o}/m.parquet --write-run {o}/m.run \
 --write-qrels {o}/m.qrels
classify --valid-triples {}/cv.tsv --test-triples {}/cv.tsv --valid-scores {}/cs.npy \
 --test-scores {}/cs.txt
sample {}/g --share 0.5 -o {o}/seeds.tsv
pool --graph {}/g --seed-triples {o}/seeds.tsv --depth 2 -o {o}/pool.tsv {}/s.npy {o}/b.run
judge templates {o}/pool.tsv -o {o}/templates.tsv
judge sheets {o}/pool.tsv --annotators a,b -o {o}/sheets --templates {o}/templates.tsv
judge check {}/sheet.tsv
judge export {}/sheet.tsv -o {o}/exported.tsv
judge merge {}/sheet.tsv {}/other.tsv -o {o}/merged.tsv --conflicts {o}/conflicts.tsv
judge audit {}/sheet.tsv -n 2 -o {o}/audit.tsv
complete --graph {}/g --seed-triples {o}/seeds.tsv --pool {o}/pool.tsv --judgements {}/sheet.tsv \
 --no-rules --depth 0 --write-qrels {o}/full.qrels --write-split {o}/full.tsv \
 --write-runs {o}/runs {o}/b.run
"""


@pytest.fixture(scope="module")
def store_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of every kind that a command reads."""
    store_home, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(7)
    for folder in ("g", "k"):
        (store_home / folder).mkdir()

    def write(name: str, *lines: str) -> None:
        (store_home / name).write_text("".join(f"{line}\n" for line in lines))

    for split, size in (("train", 60), ("valid", 9), ("test", 20)):
        rows = {
            f"e{rng.integers(15)}\tr{rng.integers(2)}\te{rng.integers(15)}" for _ in range(size)
        }
        write(f"g/{split}.txt", *sorted(rows))
    graph = kgtrec.read_graph(store_home / "g", progress=False)
    questions, names = graph.questions(), list(graph.entities)
    scores = rng.integers(0, 9, (len(questions), questions.n_entities)).astype(np.float32)
    np.save(store_home / "s.npy", scores)
    np.save(store_home / "s2.npy", -scores)
    np.save(store_home / "w.npy", np.ones((4, questions.n_entities)))
    np.savez(store_home / "m.npz", queries=scores[:, :3], entities=scores[: scores.shape[1], :3])
    test = (store_home / "g" / "test.txt").read_text().splitlines()
    write("known.txt", *(store_home / "g" / "valid.txt").read_text().splitlines())
    write("names.txt", *names)
    write("r.txt", *graph.relations)
    write("c.tsv", *("\t".join([name, *names[:5]]) for name in questions.ids))
    for name, labels in (("entity2id.txt", names), ("relation2id.txt", list(graph.relations))):
        write(f"k/{name}", str(len(labels)), *(f"{x}\t{i}" for i, x in enumerate(labels)))
    write("k/types.txt", "2", *(f"{r}\t4\t0\t1\t2\t3" for r in (0, 0, 1, 1)))
    head, relation, tail = test[0].split("\t")
    predicted = {"head": head, "relation": relation, "predictions": names[:4]}
    write("p.jsonl", json.dumps(predicted))
    pair = {"head": head, "tail": tail, "predictions": [relation]}
    write("q.jsonl", json.dumps(pair))
    write("t1.csv", "system,micro_mrr,macro_mrr", "a,0.1,0.2", "b,0.3,0.1", "c,0.2,0.3")
    write("t2.csv", "system,micro_mrr,macro_mrr", "a,0.2,0.2", "b,0.1,0.1", "c,0.2,0.4")
    write("et.txt", *(f"{name}\tT" for name in names))
    write("rt.txt", *(f"{name}\tT\tT" for name in graph.relations))
    np.save(store_home / "v.npy", rng.random((4, 4)))
    write("n.txt", *"wxyz")
    write("pairs.tsv", "w\t0", "x\t1", "y\t2", "z\t3")
    write("pairs.txt", "0\t0", "1\t1", "2\t2", "3\t3")
    write("cv.tsv", *(f"{line}\t{number % 2}" for number, line in enumerate(test)))
    np.save(store_home / "cs.npy", rng.random(len(test)))
    write("cs.txt", *map(str, rng.random(len(test)).tolist()))
    for name, count in (("sheet.tsv", 6), ("other.tsv", 5)):
        rows = [f"{line}\t{'YN'[number % 2]}" for number, line in enumerate(test[:count])]
        write(name, "head\trelation\ttail\tlabel", *rows)
    return store_home


@pytest.fixture
def store(s3_server: str, store_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3_server}")
    new_bucket(s3_server, URL.removeprefix("s3://"), store_home)


def printed(command: str, inputs: str, outputs: str) -> str:
    """The output of a command, without the places of its files."""
    words = shlex.split(command.replace("{o}", outputs).replace("{}", inputs))
    result: Any = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.exception is None, (command, result.exception, result.output)
    text = result.output.replace(outputs, "{o}").replace(inputs, "{}")
    return " ".join(text.split())  # longer names change the line breaks


@pytest.mark.skipif(not AGREES, reason="the server and this pyarrow disagree on uploads in parts")
def test_every_command(store_home: Path, store: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    os.makedirs(out / "ab")
    for command in COMMANDS.replace("\\\n", "").strip().splitlines():
        there = printed(command, URL, f"{URL}/out")
        assert there == printed(command, str(store_home), str(out)), command
    written = files_below(out)
    assert len(written) > 30
    assert files_below(f"{URL}/out") == written
    for name in written:
        assert read_bytes(f"{URL}/out/{name}") == (out / name).read_bytes(), name
