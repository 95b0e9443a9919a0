"""Damage the files that the command line reads at random, and run its commands on them.

For any content of a file, a command must end with code 0, 1 or 2. Unless it is 0, it must print a
message of kgtrec: no exception of a decoder, no abort, no signal. The suite runs this for a few
seconds; by hand::

    python tests/helpers/fuzz_files.py --minutes 30 --seed 1
    python tests/helpers/fuzz_files.py --minutes 9 --only x/     # files with this beginning
    python tests/helpers/fuzz_files.py --seed 1 --case 137     # one case again, with its message

Cases run in a child process, so that a crash is a finding too. A case depends only on seed and
number.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from graph_files import PLACES, GraphFiles, write

N = 12  # entities
MEMORY = 6 << 30
Reads = list[list[str]]

RANK = ["rank", "--graph", "g", "-q"]
OUT = ["-o", "out/o.parquet", "--write-run", "out/o.run"]
SHARD = ["--shard", "1/2", "-o", "out/shards"]


def scores(name: str) -> Reads:
    """Commands that read scores."""
    return [[*RANK, "--scores", name, *OUT], [*RANK, "--scores", name, *SHARD]]


def reads() -> dict[str, Reads]:
    """File to the commands that read it."""
    ranks: Reads = [
        ["report", "a.parquet"], ["report", "a.parquet", "--by", "relation"],
        ["stratify", "a.parquet"],
        ["compare", "a.parquet", "b.parquet", "--resamples", "100", "--test", "t"],
        ["plot", "ties", "a.parquet", "-o", "out/a.svg"],
        ["openworld", "a.parquet", "b.parquet", "--sparsity", "0.1"],
    ]  # fmt: skip
    judge = [["judge", "check", "sheet.tsv"], ["judge", "export", "sheet.tsv", "-o", "out/s"]]
    asked = [["rank", "--questions", "q.jsonl", "--candidates", "q.txt", "--scores", "q.npy", *OUT]]
    plain = [*RANK, "--scores", "s.npy", *OUT]
    return {
        "s.npy": scores("s.npy"),
        "f.npy": scores("f.npy"),
        "w.npy": [["estimate", "--graph", "g", "--scores", "s.npy", "--draw-by", "w.npy", "--size",
                   "10"]],
        "m.npz": scores("m.npz"),
        "c.npz": scores("c.npz"),
        "parts/1.npy": scores("parts"),
        "a.parquet": ranks,
        "shards/shard-1-of-2.arrow": [["merge", "shards", *OUT]],
        "neg.npz": [[*plain, "--candidates", "neg.npz", "--rows", "instances"]],
        "cand.tsv": [[*plain, "--candidates", "cand.tsv"]],
        "types.txt": [[*plain, "--type-constraints", "types.txt"]],
        "entity2id.txt": [[*plain, "--type-constraints", "types.txt"]],
        "some.txt": [[*plain, "--entities", "some.txt"]],
        "some_r.txt": [[*plain, "--relations", "some_r.txt"]],
        "g/train.txt": [plain, ["stats", "g"]],
        "g/test.txt": [plain, ["convert", "--graph", "g", "--write-qrels", "out/q"]],
        "t.run": [["eval", "t.qrels", "t.run"]],
        "t.qrels": [["eval", "t.qrels", "t.run"]],
        "jobs.toml": [["batch", "jobs.toml", "--status"]],
        "q.jsonl": asked,
        "q.txt": asked,
        "left.npy": [["align", "--left", "left.npy", "--right", "right.npy", "--pairs", "pairs.tsv",
                      "-o", "out/o.parquet"]],
        "values.csv": [["compare", "labels", "values.csv", "--against", "more.csv", "--by",
                        "relation"]],
        "sheet.tsv": judge,
        "sheet.tsv.journal": judge,
        "pool.tsv": [["judge", "sheets", "pool.tsv", "--annotators", "a", "-o", "out/sheets"]],
        **_format_reads(),
    }  # fmt: skip


# -- Sound files -------------------------------------------------------------------------------


def make_home() -> None:
    """Sound files of every kind, in the working folder."""
    import kgtrec

    rng = np.random.default_rng(1)
    os.mkdir("g")
    for split, rows in (("train", 30), ("valid", 5), ("test", 8)):
        triples = rng.integers(0, (N, 2, N), (rows, 3)).tolist()
        if split == "train":
            triples += [[e, e % 2, e] for e in range(N)]
        text = "".join(f"e{h:02}\tr{r}\te{t:02}\n" for h, r, t in triples)
        Path("g", f"{split}.txt").write_text(text)
    graph = kgtrec.read_graph("g", progress=False)
    questions = graph.questions()
    n, triples = len(questions), graph.split("test")
    whole = rng.random((n, N)).astype(np.float32)
    np.save("s.npy", whole)
    np.save("f.npy", np.asfortranarray(whole.astype(np.float64)))
    os.mkdir("parts")
    for number, part in enumerate(np.array_split(whole, 3)):
        np.save(f"parts/{number}.npy", part)
    model = {"queries": rng.random((n, 3)), "entities": rng.random((N, 3)), "bias": rng.random(N)}
    np.savez("m.npz", **model)
    np.savez_compressed("c.npz", **model, metric=np.array("l2"))
    negatives = {f"{side}_neg": rng.integers(0, N, (len(triples), 4)) for side in ("head", "tail")}
    np.savez("neg.npz", **negatives)
    Path("some.txt").write_text("".join(f"e{e:02}\n" for e in range(N)))
    Path("some_r.txt").write_text("r0\nr1\n")
    labels = "".join(f"\te{e:02}" for e in range(N))
    Path("cand.tsv").write_text("".join(f"{name}{labels}\n" for name in questions.ids))
    Path("entity2id.txt").write_text(f"{N}\n" + "".join(f"e{e:02}\t{e}\n" for e in range(N)))
    Path("relation2id.txt").write_text("2\nr0\t0\nr1\t1\n")
    every = "\t".join(map(str, range(N)))
    Path("types.txt").write_text("2\n" + "".join(f"{r}\t{N}\t{every}\n" * 2 for r in range(2)))
    for name in ("values", "more"):
        lines = [f"s{i},r{r},{rng.random()!r}" for i in range(4) for r in range(2)]
        Path(f"{name}.csv").write_text("\n".join(["system,relation,mrr", *lines]) + "\n")
    Path("seed.tsv").write_text(Path("g/test.txt").read_text())
    np.save("left.npy", rng.random((9, 3)))
    np.save("right.npy", rng.random((9, 3)))
    Path("pairs.tsv").write_text("".join(f"{i}\t{i}\n" for i in range(9)))
    Path("jobs.toml").write_text(
        'output = "out/results"\nmemory = "1GB"\n[graphs]\ng = "g"\n[models]\nm = "m.npz"\n'
        't = { scores = "s.npy", lower_is_better = true }\n[protocols.test]\nsplit = "test"\n'
    )
    header = "question\thead\trelation\ttail\tlabel\tevidence\tnote\n"
    Path("sheet.tsv").write_text(header + "".join(f"Q?\ta{i}\tr\tb{i}\t\t\t\n" for i in range(4)))
    _make_formats([tuple(triple) for triple in triples.tolist()])
    os.mkdir("out")
    for name, file in (("a", "s.npy"), ("b", "m.npz")):
        call([*RANK, "--scores", file, "-o", f"{name}.parquet", "--write-run", "t.run",
              "--write-qrels", "t.qrels"])  # fmt: skip
    for number in (1, 2):
        call([*RANK, "--scores", "m.npz", "--shard", f"{number}/2", "-o", "shards"])
    call(["pool", "--graph", "g", "--seed-triples", "seed.tsv", "--depth", "2", "-o", "pool.tsv",
          "t.run"])  # fmt: skip
    from kgtrec.study.judging.journal import Journal

    with Journal("sheet.tsv") as journal:
        journal.answer(0, "Y")
        journal.answer(1, "N", "http://x", "note")
    np.save("w.npy", rng.random((4, N)))
    np.save("q.npy", rng.random((3, 5)))
    Path("q.txt").write_text("".join(f"d{number}\n" for number in range(5)))
    lines = [
        {"id": f"q{number}", "terms": {"kind": "ab"[number % 2], "year": number},
         "answers": [{"label": f"d{number}", "grade": 2, "part": "x"}], "known": ["d4"]}
        for number in range(3)
    ]  # fmt: skip
    Path("q.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    for path in reads():
        said = run_commands(path)
        assert not said, said  # otherwise damage would find nothing


# -- Graphs and predictions in every format ---------------------------------------------------

ENTITIES = [f"e{e:02}" for e in range(N)]
RELATIONS = ["r0", "r1"]
SPLITS = ("train", "valid", "test")
Triples = list[tuple[int, int, int]]


GRAPHS = {
    "libkge": ["dataset.yaml", "train.del", "entity_ids.del"],
    "rotate": ["train.txt", "entities.dict"],
    "dgl_ke": ["test.txt", "relations.tsv"],
    "openke": ["train2id.txt", "entity2id.txt"],
    "pykeen": ["training/numeric_triples.tsv.gz", "training/entity_to_id.tsv.gz"],
    "ogb": ["train.npz"],
    "parquet": ["train.parquet"],
    "arrow": ["train.arrow", "test.arrow"],
    "csv_named": ["train.csv"],
    "csv_declared": ["test.csv.gz"],
    "tsv_in_order": ["train.txt"],
    "ntriples": ["train.nt"],
    "timed": ["train.txt"],
    "statements": ["train.txt"],
    "wikipeople": ["n-ary_train.json"],
    "ilpc": ["inference.txt", "inference_test.txt"],
    "grail": ["v1_ind/test.txt", "v1/train.txt"],
    "ultra": ["inference_graph.txt", "inf_test.txt"],
}
"""The files of a graph that are damaged, by its format in `graph_files`."""

PREDICTIONS = {"anyburl": "p.anyburl.txt", "jsonl": "p.jsonl", "pykeen": "p.csv",
               "ogb-lsc": "p.npz", "trec": "p.run"}  # fmt: skip


def _format_reads() -> dict[str, list[list[str]]]:
    """File to the commands that read it."""
    found = {}
    contexts = {"timed": "time", "statements": "qualifiers", "wikipeople": "qualifiers"}
    for form, names in GRAPHS.items():
        place = PLACES.get(form, "{}").format(f"x/{form}")
        words = ["--context", contexts[form]] if form in contexts else []
        for name in names:
            found[f"x/{form}/{name}"] = [
                ["convert", "--graph", place, "--write-qrels", "out/q", *words]
            ]
    for form, path in PREDICTIONS.items():
        found[path] = [["rank", "--graph", "g", "--predictions", path, "--predictions-format",
            form, "-q",
                        "--sides", "tail" if form == "pykeen" else "both",
                        "-o", "out/o.parquet", "--write-run", "out/o.run"]]  # fmt: skip
    return found


def _make_formats(test: Triples) -> None:
    """Write all of them into the working folder; ``test``: the triples that predictions answer."""
    rng = np.random.default_rng(5)
    numbers = {split: rng.integers(0, (N, 2, N), (n, 3)).tolist()
               for split, n in zip(SPLITS, (30, 5, 8), strict=True)}  # fmt: skip
    numbers["train"] += [(e, e % 2, e) for e in range(N)]
    splits = {
        split: [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in rows]
        for split, rows in numbers.items()
    }
    files = GraphFiles(splits, ENTITIES, RELATIONS, splits["train"])
    for form in GRAPHS:
        files.make(form, Path("x", form))
    _predictions(rng, test)


def _predictions(rng: np.random.Generator, test: Triples) -> None:
    best = [rng.permutation(N)[:5].tolist() for _ in range(2 * len(test))]
    anyburl, lists = "", {}
    frame = "head_label,relation_label,tail_label,score\n"
    for number, (h, r, t) in enumerate(test):
        heads, tails = best[2 * number], best[2 * number + 1]
        anyburl += f"{ENTITIES[h]} {RELATIONS[r]} {ENTITIES[t]}\n"
        for name, ids in (("Heads", heads), ("Tails", tails)):
            pairs = (f"{ENTITIES[e]}\t{1 / (i + 1):.3f}\t" for i, e in enumerate(ids))
            anyburl += f"{name}: {''.join(pairs)}\n"
        lists["tail", ENTITIES[t], RELATIONS[r]] = [ENTITIES[e] for e in heads]
        lists["head", ENTITIES[h], RELATIONS[r]] = [ENTITIES[e] for e in tails]
        for i, e in enumerate(tails):
            frame += f"{ENTITIES[h]},{RELATIONS[r]},{ENTITIES[e]},{9 - i}\n"
    write(Path(PREDICTIONS["anyburl"]), anyburl)
    objects = [
        {side: entity, "relation": relation, "predictions": answers}
        for (side, entity, relation), answers in lists.items()
    ]
    write(Path(PREDICTIONS["jsonl"]), "".join(json.dumps(each) + "\n" for each in objects))
    write(Path(PREDICTIONS["pykeen"]), frame)
    tens = np.pad(np.array(best), ((0, 0), (0, 5)), constant_values=-1)
    np.savez(PREDICTIONS["ogb-lsc"], h_pred_top10=tens[::2], t_pred_top10=tens[1::2])
    lines = (
        f"{question} Q0 {ENTITIES[e]} {i + 1} {9 - i} x\n"
        for question in ("head1", "tail1", "head2")
        for i, e in enumerate(best[0])
    )
    write(Path(PREDICTIONS["trec"]), "".join(lines))


# -- Damage ------------------------------------------------------------------------------------


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, removed or doubled, or the rest of the file removed."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not content:
            break
        # Formats store their structure at the ends of a file.
        span = rng.choice((len(content), min(len(content), 200)))
        at = rng.choice((rng.randrange(span), len(content) - 1 - rng.randrange(span)))
        stop = at + rng.choice((1, 1, 2, 4, 8, 64))
        other = rng.randrange(len(content))
        flipped = bytes([content[at] ^ 1 << rng.randrange(8)])
        stop, new = rng.choice((
            (at + 1, flipped), (at + 1, flipped),
            (at + 1, bytes([rng.choice((0, 1, 9, 10, 32, 39, 40, 127, 128, 255))])),
            (len(content), b""), (stop, b""), (at, content[at:stop]),
            (stop, rng.choice((b"\0", b"\xff")) * (stop - at)),
            (stop, content[other : other + stop - at]),
        ))  # fmt: skip
        content[at:stop] = new
    return bytes(content)


SHAPES = (
    "(3, 4", "((3, 4)", "[3, 4]", "(-1, 4)", "(4, -1)", "(3,)", "()", "(3, 4, 1)", "(True, 12)",
    "('a', 'b')", "((3, 4),)", "3", "None", "(1.5, 2)", f"({1 << 62}, {1 << 62})", "(0, 12)",
    "(12, 0)", "(0, 0)", f"({1 << 40}, 12)", "(1, 1)", "lambda: 0", "(" * 300, "-" * 5000 + "1",
    "f'{1}'", "{1: 2}", "'''", "\\", "(3, 4) (", "1e400", "9" * 5000,
)  # fmt: skip
TYPES = (
    "'<f4'", "'<f8'", "'>f4'", "'<f2'", "'|O'", "'<i8'", "'|V4'", "'<c8'", "'<U4'", "'|S3'",
    "'<M8[s]'", "[('a', '<f4')]", "('<f4', (2,))", "'|b1'", "'<f16'", "'nonsense'", "None", "7",
    "'<f4", "'f4,f4'", "'<f" + "4" * 400 + "'", "('<f4', (0,))", "'|V0'", "'<U0'", "'|S0'",
)  # fmt: skip


def odd_npy(rng: random.Random, rows: int = 16) -> bytes:
    """An array with an odd header, or one that disagrees with the data."""
    shape = rng.choice((*SHAPES, f"({rows}, {N})", f"({rows}, 3)", f"({N}, 3)", f"({N},)"))
    kind = rng.choice(TYPES) if rng.random() < 0.5 else "'<f8'"
    order = rng.choice(("False", "True", "0", "None", "'x'"))
    keys = [f"'descr': {kind}", f"'fortran_order': {order}", f"'shape': {shape}"]
    way = rng.random()
    if way < 0.1:
        keys.pop(rng.randrange(3))
    elif way < 0.2:
        keys.append(rng.choice(("'more': 1", "1: 2", "'shape': (1, 1)", "**{}", "")))
    header = ("{" + ", ".join(keys) + rng.choice(("}", ", }", "", "}}", "}\0"))).encode() + b"\n"
    version = rng.choice(((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (4, 0), (0, 0), (255, 255)))
    width = 2 if version == (1, 0) else 4
    size = len(header) if rng.random() < 0.9 else rng.choice((0, 1, len(header) * 9, 65535))
    head = b"\x93NUMPY" + bytes(version) + size.to_bytes(width, "little") + header
    return head + np.random.default_rng(rng.randrange(99)).random(rng.choice((0, 5, 500))).tobytes()


Members = list[tuple[str, bytes]]


def odd_zip(path: str, rng: random.Random) -> bytes:
    """An archive with odd, missing, duplicate or renamed members."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = rng.randrange(len(members))
    name, data = members[at]
    ways: list[Callable[[], Members]] = [
        *[lambda: [(name, odd_npy(rng))]] * 2,
        lambda: [(name, damaged_bytes(data, rng))], lambda: [], lambda: members[at : at + 1] * 2,
        lambda: [(rng.choice(("../x.npy", "", "x", "/abs.npy", "metric.npy", "ü.npy")), data)],
        lambda: [(name, b"")], lambda: [(name, rng.choice(members)[1])],
    ]  # fmt: skip
    if name.endswith(".json"):
        ways += [lambda: [(name, odd_json(data, rng))]] * 16
    members[at : at + 1] = rng.choice(ways)()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", kind) as archive:
        warnings.simplefilter("ignore")
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    content = out.getvalue()
    return damaged_bytes(content, rng) if rng.random() < 0.3 else content


def odd_json(data: bytes, rng: random.Random) -> bytes:
    """JSON with one changed value."""
    values = (None, -1, 1 << 70, "x", [], {}, 1.5, True, "", [[]], [[1, 2, 3]], "../..", "\ud800")
    try:
        tree = json.loads(data)
    except ValueError:
        return damaged_bytes(data, rng)
    node, steps = tree, rng.randrange(4)
    while isinstance(node, (dict, list)) and node:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if steps == 0 or not isinstance(node[key], (dict, list)) or not node[key]:
            if rng.random() < 0.3 and isinstance(node, dict):
                del node[key]
            else:
                node[key] = rng.choice(values)
            break
        node, steps = node[key], steps - 1
    return json.dumps(tree).encode()


def odd_shard(path: str, rng: random.Random) -> bytes:
    """A shard with a correct hash and wrong content."""
    from dataclasses import replace

    from kgtrec.ranking.partial import Task, read_about, read_parts, write_parts

    about, parts = read_about(path), list(read_parts(path))
    if rng.random() < 0.3:
        with contextlib.suppress(ValueError, TypeError, UnicodeEncodeError):
            about = json.loads(odd_json(json.dumps(about).encode(), rng))
    else:
        at = rng.randrange(len(parts))
        part = parts[at]
        name = rng.choice(("counts", "answer_nan", "lengths", "documents", "scores", "task", "more",
                           "dtype", "path", "nan_count"))  # fmt: skip
        value: object = getattr(part, name, None)
        if isinstance(value, np.ndarray):
            value = rng.choice((
                value[..., :-1], np.concatenate([value, value], -1), value[None],
                value.astype("f2"), value.astype("i1"), -value if value.dtype != bool else ~value,
                value.reshape(-1)[:0], value * 0 + 99 if value.dtype != bool else value,
                value.astype("U4"), value.T.copy(),
            ))  # fmt: skip
            parts[at] = replace(part, **{name: value})
        elif name == "task":
            task = part.task
            numbers = [task.first_row, task.stop_row, task.first_entity, task.stop_entity]
            numbers[rng.randrange(4)] = rng.choice((-1, 0, 1, 2, 7, N, 1 << 40, "x", None, 1.0))
            parts[at] = replace(part, task=Task(*numbers))
        elif name == "more":
            parts = rng.choice((parts * 2, [], parts[::-1] + parts[:1]))
        else:
            parts[at] = replace(part, **{name: rng.choice((None, -1, "x", "float64", [], 1.5))})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "shard")
        try:
            write_parts(out, about, parts)
        except (TypeError, ValueError, AttributeError):
            return b""
        return out.read_bytes()


def odd_table(table: Any, rng: random.Random) -> Any:
    """A table with a column that is missing, null, of another type, or has impossible values."""
    import pyarrow as pa

    n, at = table.num_rows, rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    columns: list[Callable[[], Any]] = [
        lambda: pa.nulls(n, rng.choice((column.type, pa.null(), pa.string(), pa.int64()))),
        lambda: pa.array(rng.choices(("x", "", "ü", "head", "tail"), k=n)),
        lambda: pa.array(rng.choices((0, -1, 1 << 62, -(1 << 63), 7), k=n)),
        lambda: pa.array(rng.choices((0.5, float("nan"), -1e308), k=n)),
        lambda: pa.array(rng.choice(([[1]], [{"a": 1}])) * n),
        lambda: pa.array([*column.to_pylist()[:-1], *[None][:n]], column.type),
    ]
    way = rng.randrange(9)
    if way == 6:
        return table.remove_column(at)
    if way == 7:
        return table.slice(0, rng.randrange(n + 1)) if rng.random() < 0.7 else table.select([])
    if way == 8:
        return table.append_column(rng.choice((name, "more", "x_label")), column)
    with contextlib.suppress(pa.ArrowException):
        table = table.set_column(at, name, columns[way]())
    return table


def odd_parquet(path: str, rng: random.Random) -> bytes:
    """Ranks with an odd table or odd metadata."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = dict(table.schema.metadata or {})
    for _ in range(rng.choice((1, 1, 2))):
        if table.num_columns:
            table = odd_table(table, rng)
    for key in metadata:
        if rng.random() < 0.3:
            metadata[key] = odd_json(metadata[key], rng)
    out = io.BytesIO()
    kind = rng.choice(("zstd", "none", "snappy"))
    pq.write_table(table.replace_schema_metadata(metadata), out, compression=kind)
    return out.getvalue()


def damaged(path: str, data: bytes, rng: random.Random) -> bytes:
    """Damaged bytes for a file."""
    kinds: list[Callable[[], bytes]] = [lambda: damaged_bytes(data, rng)]
    if path.endswith(".npy"):
        kinds += [lambda: odd_npy(rng)] * 2
    elif path.startswith("shards/"):
        kinds += [lambda: odd_shard(path, rng)] * 5
    elif path.endswith(".npz"):
        kinds += [lambda: odd_zip(path, rng)] * 2
    elif path.endswith(".parquet"):
        kinds += [lambda: odd_parquet(path, rng)] * 3
    elif path.endswith(".gz"):
        content = gzip.decompress(data)
        kinds += [lambda: gzip.compress(damaged(path[:-3], content, rng), 1, mtime=0)] * 4
    elif path.endswith((".journal", ".jsonl")):
        kinds += [lambda: b"\n".join(odd_json(line, rng) for line in data.split(b"\n"))]
    else:
        words = (b"\t\t", b"\0", b"\xff\xfe", b"\r", b"\n\n", b"9" * 30, b"9" * 5000, b"-1", b"nan",
                 b"\xef\xbb\xbf")  # fmt: skip
        kinds += [
            lambda: data.replace(rng.choice((b"\t", b"\n", b"0", b"e")), rng.choice(words), 2)
        ]
    return rng.choice(kinds)()


# -- Running -----------------------------------------------------------------------------------


def call(args: list[str]) -> str:
    """Run a command in this process; return its complaint, or "".

    Raises all exceptions other than kgtrec's and click's.
    """
    import click

    from kgtrec.cli import cli
    from kgtrec.errors import KgtrecError

    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            cli.main(args, prog_name="kgtrec", standalone_mode=False)
        except KgtrecError as error:
            return f"{error.exit_code} {error}"
        except click.ClickException as error:
            return f"1 {error.format_message()}"
    return ""


def fault_of(said: str, path: str, args: list[str]) -> str:
    """The fault of a complaint, if any."""
    text = said[2:]
    if not text.strip():
        return "it says nothing"
    if "\n" in text and "faults" not in text:
        return "more than one line"
    if len(text) > 20_000:  # names are printed in full
        return "a message of more than 20,000 characters"
    # A valid file may not fit another one.
    if "give a run and ranks of the same scores and questions" in text:
        return ""  # a forged value, found by the second way to compute a measure
    if path == "a.parquet" and re.match("a and b (cannot be compared|rank different)", text):
        return ""  # systems by name
    places = [path.rpartition("/")[0] or path, *(arg for arg in args if "." in arg), "2id.txt"]
    if said[0] == "2" and not any(place in text for place in places):
        return f"{path} is not named"
    return ""


def run_commands(path: str, verbose: bool = False, sound: bool = True) -> str:
    """Run all commands that read a file; return the first fault."""
    for args in reads()[path]:
        try:
            said = call(args)
            fault = said and (sound or fault_of(said, path, args))
        except Exception as error:
            said, fault = "", "".join(traceback.format_exception(error)[-3:])
        except SystemExit as end:
            said, fault = "", f"exit {end.code}" * (sound or end.code not in (0, 2))
        if verbose:
            print(" ".join(args), "->", said or "done")
        shutil.rmtree("out")
        os.mkdir("out")
        if fault:
            return f"{path}: kgtrec {' '.join(args)}\n  {said}\n  {fault}"
    return ""


def run_case(seed: int, number: int, verbose: bool = False, only: str = "") -> str:
    """Run all commands that read one damaged file; return the first fault."""
    rng = random.Random(f"{seed} {number}")
    paths = [path for path in reads() if path.startswith(only)]
    path = paths[number % len(paths)]
    sound = Path(path).read_bytes()
    try:
        Path(path).write_bytes(damaged(path, sound, rng))
        return run_commands(path, verbose, sound=False)
    finally:
        Path(path).write_bytes(sound)


def child(seed: int, first: int, stop: int, until: float, only: str = "") -> None:
    """Run cases one after another; announce each, so that the parent knows which one crashed."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    for number in range(first, stop):
        if time.time() > until:
            return
        print(f"case {number}", flush=True)
        if fault := run_case(seed, number, only=only):
            print(f"FAULT {json.dumps(fault)}", flush=True)


def fuzz(seed: int, cases: int, seconds: float, only: str = "") -> tuple[int, list[str]]:
    """Run cases; return their number and the findings."""
    until, number, ran, problems = time.time() + seconds, 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(Path(__file__).resolve())]
        subprocess.run([*command, "--make"], cwd=folder, env=environment, check=True)
        while number < cases and time.time() < until:
            more = ["--child", str(seed), str(number), str(cases), str(until), "--only", only]
            done = subprocess.run([*command, *more], cwd=folder, env=environment, text=True,
                                  capture_output=True, check=False)  # fmt: skip
            last = number - 1
            for line in done.stdout.splitlines():
                if line.startswith("case "):
                    last, ran = int(line[5:]), ran + 1
                elif line.startswith("FAULT "):
                    problems.append(f"case {last}: {json.loads(line[6:])}")
            if done.returncode == 0:
                break
            problems.append(f"case {last}: ended by {done.returncode}: {done.stderr[-2000:]}")
            number = last + 1
            shutil.rmtree(folder)  # the damaged file is still there
            os.mkdir(folder)
            subprocess.run([*command, "--make"], cwd=folder, env=environment, check=True)
    return ran, problems


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", default="", help="files whose names begin with this")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_home()
    elif options.child:
        seed, first, stop, until = options.child
        child(int(seed), int(first), int(stop), float(until), options.only)
    elif options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            make_home()
            print(run_case(options.seed, options.case, True, options.only) or "sound")
            os.chdir("/")
    else:
        ran, problems = fuzz(options.seed, options.cases, 60 * options.minutes, options.only)
        print("\n".join(problems) or "nothing found", f"\n{ran} cases")
        sys.exit(bool(problems))


if __name__ == "__main__":
    main()
