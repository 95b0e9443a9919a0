"""Fingerprints of what users see of a fixed set of evaluations, through the command line.

    python benchmarks/baseline.py --record before.json   # before a change that must change nothing
    python benchmarks/baseline.py --check before.json    # after it; names what differs

Hashes the columns of ranks, runs, qrels, a batch's dataset, and what `rank`, `report`, `eval`,
`compare` and `stats` print, for FB15k-237 with its four models (`../shared/data`, skipped without
it) and for the countries of the demo. Hashes are of one machine: other processors may round a
demo's SVD otherwise. Each text has a second hash of its numbers alone, for changes of words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from data import FOLDER, SHARED_DATA

import kgtrec

Array = npt.NDArray[Any]
MODELS = ("distmult", "complex", "transe", "rotate")
NUMBER = re.compile(rb"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")

JOBS = """
output = "batch"
measures = ["realistic.micro.mrr", "macro.map_cut_20"]
[graphs.countries]
path = "kgtrec-demo/graph"
[models.popularity]
scores = "popularity.npy"
[models.rounded]
scores = "rounded.npy"
[protocols.filtered]
[protocols.raw]
filter = "raw"
"""


class Recorder:
    """Collects a hash for each thing that is looked at.

    Attributes
    ----------
    folder : Path
        Where the commands run; paths in what they print are relative to it.
    hashes : dict of str to str
        Name to hash; of a text also ``NAME (numbers)``, the hash of the numbers in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}

    def bytes(self, name: str, content: bytes) -> None:
        self.hashes[name] = hashlib.blake2b(content, digest_size=16).hexdigest()

    def run(self, name: str, *arguments: str) -> None:
        """Run a command of kgtrec and record what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "kgtrec", *arguments], cwd=self.folder, capture_output=True
        )
        if done.returncode:
            sys.exit(f"{name} failed:\n{done.stderr.decode()}")
        self.bytes(name, done.stdout)
        self.bytes(f"{name} (numbers)", b" ".join(NUMBER.findall(done.stdout)))

    def file(self, name: str) -> None:
        self.bytes(name, (self.folder / name).read_bytes())

    def columns(self, name: str) -> None:
        """Record every column of a Parquet file."""
        table = pq.read_table(self.folder / name)
        for column in table.column_names:
            values = table[column].combine_chunks()
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            sink = pa.BufferOutputStream()
            only = pa.table({column: values})
            with pa.ipc.new_stream(sink, only.schema) as writer:
                writer.write_table(only)
            self.bytes(f"{name} {column}", sink.getvalue().to_pybytes())


def queries(name: str, questions: kgtrec.Questions) -> tuple[Array, Array, str]:
    """Query vectors, entity vectors and metric of a model (see ../shared/data/README.md)."""
    with np.load(SHARED_DATA / "models" / f"fb15k-237-{name}.npz", allow_pickle=False) as file:
        entity, relation, scale = file["entity"], file["relation"], file["logscale"]
    inverse = questions.relation + questions.graph.n_relations
    e = entity[questions.entity]
    w = relation[np.where(questions.side == 0, inverse, questions.relation)]
    if name == "distmult":
        return e * w, entity, "dot"
    if name == "transe":
        return np.exp(scale / 2) * (e + w), np.exp(scale / 2) * entity, "l2"
    half = entity.shape[1] // 2
    left = e[:, :half] + 1j * e[:, half:]
    if name == "complex":
        product = left * (w[:, :half] + 1j * w[:, half:])
        return np.hstack([product.real, product.imag]).astype(np.float32), entity, "dot"
    angle = (10 * w[:, :half]).astype(np.float32)
    product = left * (np.cos(angle) + 1j * np.sin(angle))
    scaled = np.hstack([product.real, product.imag]).astype(np.float32)
    return np.exp(scale / 2) * scaled, np.exp(scale / 2) * entity, "l2"


def rank_and_report(recorder: Recorder, graph: str, name: str, scores: str) -> None:
    """Ranks, run, qrels and printed tables of one system."""
    ranks, run = f"{name}.parquet", f"{name}.run"
    recorder.run(f"rank {name}", "rank", "--graph", graph, "--scores", scores, "-o", ranks,
                 "--run", run)  # fmt: skip
    recorder.columns(ranks)
    recorder.file(run)
    recorder.run(f"report {name}", "report", ranks)
    recorder.run(f"report {name} json", "report", ranks, "--format", "json")
    recorder.run(f"report {name} relation", "report", ranks, "--by", "relation")
    recorder.run(f"report {name} category", "report", ranks, "--by", "category,side",
                 "--graph", graph)  # fmt: skip
    recorder.run(f"report {name} ranks", "report", ranks, "--rank-types")


def compare_and_eval(recorder: Recorder, graph: str, label: str, names: list[str]) -> None:
    """What several systems are compared by."""
    qrels, questions = f"{label}.qrels", f"{label}.questions"
    recorder.run(f"convert {label}", "convert", "--graph", graph, "--qrels", qrels,
                 "--questions", questions)  # fmt: skip
    recorder.file(qrels)
    recorder.file(questions)
    recorder.run(f"stats {label}", "stats", graph)
    recorder.run(f"compare {label}", "compare", *[f"{name}.parquet" for name in names])
    runs = [f"{name}.run" for name in names]
    recorder.run(f"eval {label}", "eval", "-m", "all_trec", qrels, runs[0])
    recorder.run(f"eval {label} table", "eval", "-m", "map", "-m", "ndcg_cut.20", "-m", "kg_mrr",
                 "--ties", "expected", "--format", "csv", qrels, *runs)  # fmt: skip


def record(folder: Path) -> dict[str, str]:
    """Everything, in an empty folder."""
    recorder = Recorder(folder)
    recorder.run("demo", "demo")
    for name in ("svd", "popularity", "random"):
        recorder.columns(f"kgtrec-demo/{name}.ranks.parquet")
        recorder.file(f"kgtrec-demo/{name}.run")
    countries = ["popularity", "rounded"]
    scores = np.load(folder / "kgtrec-demo" / "popularity.npy", allow_pickle=False)
    noise = np.random.default_rng(0).normal(size=scores.shape)
    np.save(folder / "popularity.npy", scores)
    np.save(folder / "rounded.npy", np.round(scores + noise).astype(np.float32))  # many ties
    for name in countries:
        rank_and_report(recorder, "kgtrec-demo/graph", name, f"{name}.npy")
    compare_and_eval(recorder, "kgtrec-demo/graph", "countries", countries)
    (folder / "jobs.toml").write_text(JOBS)
    recorder.run("batch", "batch", "jobs.toml", "--workers", "1")
    for path in sorted((folder / "batch" / "ranks").rglob("*.parquet")):
        recorder.columns(str(path.relative_to(folder)))
    if FOLDER.is_dir():
        questions = kgtrec.read_graph(FOLDER).questions("test")
        for name in MODELS:
            vectors, entities, metric = queries(name, questions)
            np.savez(folder / f"{name}.npz", queries=vectors, entities=entities,
                     metric=metric)  # fmt: skip
            rank_and_report(recorder, str(FOLDER), name, f"{name}.npz")
        compare_and_eval(recorder, str(FOLDER), "fb15k-237", list(MODELS))
    return recorder.hashes


def differences(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    """A line for each thing that is not as it was."""
    for name in before.keys() | now.keys():
        if before.get(name) != now.get(name):
            state = "gone" if name not in now else "new" if name not in before else "differs"
            yield f"{name}: {state}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", metavar="FILE", type=Path)
    action.add_argument("--check", metavar="FILE", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hashes = record(Path(folder))
    if options.record:
        options.record.write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")
        return
    lines = sorted(differences(json.loads(options.check.read_text()), hashes))
    print("\n".join(lines) or f"{len(hashes)} hashes, all as before")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
