"""Every command treats files in an object store like files of this machine."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from object_store import AGREES, SETTINGS, new_bucket

import kgtrec
from kgtrec._internal.locations import files_below, read_bytes
from kgtrec.cli import cli

pytestmark = pytest.mark.slow

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
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of every kind that a command reads."""
    home, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(7)
    for folder in ("g", "k"):
        (home / folder).mkdir()

    def write(name: str, *lines: str) -> None:
        (home / name).write_text("".join(f"{line}\n" for line in lines))

    for split, size in (("train", 60), ("valid", 9), ("test", 20)):
        rows = {
            f"e{rng.integers(15)}\tr{rng.integers(2)}\te{rng.integers(15)}" for _ in range(size)
        }
        write(f"g/{split}.txt", *sorted(rows))
    graph = kgtrec.read_graph(home / "g", progress=False)
    questions, names = graph.questions(), list(graph.entities)
    scores = rng.integers(0, 9, (len(questions), questions.n_entities)).astype(np.float32)
    np.save(home / "s.npy", scores)
    np.save(home / "s2.npy", -scores)
    np.save(home / "w.npy", np.ones((4, questions.n_entities)))
    np.savez(home / "m.npz", queries=scores[:, :3], entities=scores[: scores.shape[1], :3])
    test = (home / "g" / "test.txt").read_text().splitlines()
    write("known.txt", *(home / "g" / "valid.txt").read_text().splitlines())
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
    np.save(home / "v.npy", rng.random((4, 4)))
    write("n.txt", *"wxyz")
    write("pairs.tsv", "w\t0", "x\t1", "y\t2", "z\t3")
    write("pairs.txt", "0\t0", "1\t1", "2\t2", "3\t3")
    write("cv.tsv", *(f"{line}\t{number % 2}" for number, line in enumerate(test)))
    np.save(home / "cs.npy", rng.random(len(test)))
    write("cs.txt", *map(str, rng.random(len(test)).tolist()))
    for name, count in (("sheet.tsv", 6), ("other.tsv", 5)):
        rows = [f"{line}\t{'YN'[number % 2]}" for number, line in enumerate(test[:count])]
        write(name, "head\trelation\ttail\tlabel", *rows)
    return home


@pytest.fixture
def store(s3_server: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3_server}")
    new_bucket(s3_server, URL.removeprefix("s3://"), home)


def printed(command: str, inputs: str, outputs: str) -> str:
    """The output of a command, without the places of its files."""
    words = shlex.split(command.replace("{o}", outputs).replace("{}", inputs))
    result: Any = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.exception is None, (command, result.exception, result.output)
    text = result.output.replace(outputs, "{o}").replace(inputs, "{}")
    return " ".join(text.split())  # longer names change the line breaks


@pytest.mark.skipif(not AGREES, reason="the server and this pyarrow disagree on uploads in parts")
def test_every_command(home: Path, store: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    os.makedirs(out / "ab")
    for command in COMMANDS.replace("\\\n", "").strip().splitlines():
        there = printed(command, URL, f"{URL}/out")
        assert there == printed(command, str(home), str(out)), command
    written = files_below(out)
    assert len(written) > 30
    assert files_below(f"{URL}/out") == written
    for name in written:
        assert read_bytes(f"{URL}/out/{name}") == (out / name).read_bytes(), name
