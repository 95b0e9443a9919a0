"""Damage the files that the command line reads at random, and run its commands on them.

For any content of a file, a command must end with code 0, 1 or 2. Unless it is 0, it must print a
message of kgtrec: no exception of a decoder, no abort, no signal. The suite runs this for a few
seconds; by hand::

    python tests/helpers/fuzz_files.py --minutes 30 --seed 1
    python tests/helpers/fuzz_files.py --minutes 9 --only x/     # files with this beginning
    python tests/helpers/fuzz_files.py --seed 1 --case 137     # one case again, with its message

Each case runs in a child process, so that a crash is a finding too. It depends only on seed and
number.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import gzip
import io
import json
import math
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import transcripts
from click import ClickException
from click.testing import CliRunner
from graph_files import GraphFiles, lines, write

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import KgtrecError

N = 12  # entities
MEMORY = 6 << 30
GOLDEN = Path(__file__).parents[1] / "golden"


@functools.cache
def reads() -> dict[str, list[list[str]]]:
    """File to the commands that read it."""
    commands_of: dict[str, list[list[str]]] = {}
    for line in (GOLDEN / "reads.txt").read_text("utf-8").splitlines():
        path, _, command = line.partition(": ")
        if not path.startswith("#"):
            commands_of.setdefault(path, []).append(shlex.split(command))
    return commands_of


def make_home() -> None:
    """Sound files of every kind, in the working folder; home.txt has those of text."""
    rng = np.random.default_rng(1)
    entities, relations = [f"e{e:02}" for e in range(N)], ["r0", "r1"]
    splits = {}
    for split, rows in (("train", 30), ("valid", 5), ("test", 8)):
        triples = rng.integers(0, (N, 2, N), (rows, 3)).tolist()
        if split == "train":
            triples += [[e, e % 2, e] for e in range(N)]
        splits[split] = [(entities[h], relations[r], entities[t]) for h, r, t in triples]
        write(Path("g", f"{split}.txt"), lines(splits[split]))
    files = GraphFiles(splits, entities, relations, splits["train"])
    for form in {path.split("/")[1] for path in reads() if path.startswith("x/")}:
        files.make(form, Path("x", form))
    shutil.copy("g/test.txt", "seed.tsv")
    n, n_test = len(kgtrec.read_graph("g", progress=False).questions()), len(splits["test"])
    whole = rng.random((n, N)).astype(np.float32)
    np.save("s.npy", whole)
    os.symlink("s.npy", "link.npy")
    np.save("f.npy", np.asfortranarray(whole.astype(np.float64)))
    for folder in ("parts", "out"):
        os.mkdir(folder)
    for number, part in enumerate(np.array_split(whole, 3)):
        np.save(f"parts/{number}.npy", part)
    model = {"queries": rng.random((n, 3)), "entities": rng.random((N, 3)), "bias": rng.random(N)}
    np.savez("m.npz", **model)
    np.savez_compressed("c.npz", **model, metric=np.array("l2"))
    np.savez(
        "neg.npz", **{f"{side}_neg": rng.integers(0, N, (n_test, 4)) for side in ("head", "tail")}
    )
    queries = [f"{side}{i}" for side in ("head", "tail") for i in range(n)][:n]
    np.savez("t.npz", scores=whole, queries=queries, documents=entities)
    best = np.tile([3, 1, 4, 0, 5, *[-1] * 5], (n_test, 1))
    np.savez("p.npz", h_pred_top10=best, t_pred_top10=best)
    for name in ("values", "more"):
        rows = [(f"s{i}", f"r{r}", rng.random()) for i in range(4) for r in range(2)]
        write(Path(f"{name}.csv"), lines([("system", "relation", "mrr"), *rows], ","))
    for name, shape in (("left", (9, 3)), ("right", (9, 3)), ("w", (4, N)), ("q", (3, 5))):
        np.save(f"{name}.npy", rng.random(shape))
    os.mkdir("rotate")
    np.save("rotate/entity_embedding.npy", rng.normal(size=(N, 6)).astype("f4"))
    np.save("rotate/relation_embedding.npy", rng.uniform(-5, 5, (2, 3)).astype("f4"))
    for command, below in transcripts.parse_blocks((GOLDEN / "home.txt").read_text("utf-8")):
        transcripts.run_block(command, below)
    for path in reads():
        said = run_commands(path)
        assert not said, said  # otherwise damage would find nothing


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
        content[at : rng.choice((at + 1, at + 1, at, stop, len(content)))] = rng.choice(
            (
                bytes([content[at] ^ 1 << rng.randrange(8)]),
                b"",
                content[at:stop],
                bytes([rng.choice((0, 1, 9, 10, 32, 39, 40, 127, 128, 255))]) * (stop - at),
                content[other : other + stop - at],
            )
        )
    return bytes(content)


SHAPES = (
    "(3, 4",
    "((3, 4)",
    "[3, 4]",
    "(-1, 4)",
    "(4, -1)",
    "(3,)",
    "()",
    "(3, 4, 1)",
    "(True, 12)",
    "('a', 'b')",
    "((3, 4),)",
    "3",
    "None",
    "(1.5, 2)",
    f"({1 << 62}, {1 << 62})",
    "(0, 12)",
    "(12, 0)",
    "(0, 0)",
    f"({1 << 40}, 12)",
    "(1, 1)",
    "lambda: 0",
    "(" * 300,
    "-" * 5000 + "1",
    "f'{1}'",
    "{1: 2}",
    "'''",
    "\\",
    "(3, 4) (",
    "1e400",
    "9" * 5000,
)
TYPES = (
    "'<f4'",
    "'<f8'",
    "'>f4'",
    "'<f2'",
    "'|O'",
    "'<i8'",
    "'|V4'",
    "'<c8'",
    "'<U4'",
    "'|S3'",
    "'<M8[s]'",
    "[('a', '<f4')]",
    "('<f4', (2,))",
    "'|b1'",
    "'<f16'",
    "'nonsense'",
    "None",
    "7",
    "'<f4",
    "'f4,f4'",
    "'<f" + "4" * 400 + "'",
    "('<f4', (0,))",
    "'|V0'",
    "'<U0'",
    "'|S0'",
)
VALUES: tuple[Any, ...] = (
    None,
    -1,
    7,
    1 << 62,
    1 << 70,
    1.5,
    -1e308,
    math.nan,
    True,
    "",
    "x",
    "tail",
    "../..",
    "\ud800",
    [],
    {"a": 1},
    [[1, 2, 3]],
)


def odd_npy(rng: random.Random) -> bytes:
    """An array with an odd header, or one that disagrees with the data."""
    shape = rng.choice((*SHAPES, f"(16, {N})", "(16, 3)", f"({N}, 3)", f"({N},)"))
    kind, order = rng.choice((*TYPES, *["'<f8'"] * 20)), rng.choice(("False", "True", "None"))
    more = rng.choice(("", "", "'more': 1, ", "1: 2, ", "'shape': (1, 1), "))
    header = f"{{{more}'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode()
    head = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header
    return head + np.random.default_rng(rng.randrange(99)).random(rng.choice((0, 5, 500))).tobytes()


def odd_zip(path: str, rng: random.Random) -> bytes:
    """An archive with an odd, missing, duplicate or renamed member."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = rng.randrange(len(members))
    name, data = members[at]
    other = rng.choice((damaged_bytes(data, rng), odd_npy(rng), b"", rng.choice(members)[1]))
    renamed = rng.choice(("../x.npy", "", "x", "/abs.npy", "metric.npy", "ü.npy"))
    members[at : at + 1] = rng.choice(
        ([(name, other)], [(name, other)], [(renamed, data)], [], [(name, data)] * 2)
    )
    out = io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    return out.getvalue()


def odd_json(data: bytes, rng: random.Random) -> bytes:
    """JSON with one changed value."""
    try:
        tree = node = json.loads(data)
    except ValueError:
        return damaged_bytes(data, rng)
    while isinstance(node, (dict, list)) and node:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if rng.random() < 0.4 or not isinstance(node[key], (dict, list)) or not node[key]:
            if rng.random() < 0.3:
                del node[key]
            else:
                node[key] = rng.choice(VALUES)
            break
        node = node[key]
    return json.dumps(tree).encode()


def odd_array(value: Any, rng: random.Random) -> Any:
    """An array of another shape or type, or of impossible numbers."""
    return rng.choice(
        (
            value[..., :-1],
            np.concatenate([value, value], -1),
            value[None],
            value.T.copy(),
            value.reshape(-1)[:0],
            value.astype("f2"),
            value.astype("i1"),
            value.astype("U4"),
            value * 0 + 99,
            ~value if value.dtype == bool else -value,
        )
    )


def odd_shard(path: str, rng: random.Random) -> bytes:
    """A shard with a correct hash and wrong content."""
    from kgtrec.ranking.partial import read_about, read_parts, write_parts

    about, parts = read_about(path), list(read_parts(path))
    at = rng.randrange(len(parts))
    changed = parts[at]
    if rng.random() < 0.3:
        changed = rng.choice((changed.task, changed))
    name, value = rng.choice([*vars(changed).items()])
    new = odd_array(value, rng) if isinstance(value, np.ndarray) else rng.choice(VALUES)
    other = dataclasses.replace(changed, **{name: new})
    parts[at] = other if changed is parts[at] else dataclasses.replace(parts[at], task=other)
    if rng.random() < 0.2:
        about, parts = rng.choice(
            (
                (json.loads(odd_json(json.dumps(about).encode(), rng)), parts),
                (about, parts * 2),
                (about, []),
            )
        )
    try:
        write_parts(Path("out/shard"), about, parts)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return b""
    return Path("out/shard").read_bytes()


def odd_parquet(path: str, rng: random.Random) -> bytes:
    """Ranks without a column, with one of other values, or with odd metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = dict(table.schema.metadata or {})
    at = rng.randrange(table.num_columns)
    name, values = table.column_names[at], table.column(at).to_pylist()
    value = rng.choice(VALUES)
    new = rng.choice(([value, *values[1:]], [value] * len(values), [*values[:-1], None]))
    with contextlib.suppress(pa.ArrowException, OverflowError, UnicodeEncodeError):
        table = rng.choice(
            (
                *[table.set_column(at, name, pa.array(new))] * 4,
                table.remove_column(at),
                table,
                table.slice(0, rng.randrange(len(table) + 1)),
                table.append_column(name, table[at]),
            )
        )
    for key in metadata:
        if rng.random() < 0.3:
            metadata[key] = odd_json(metadata[key], rng)
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out)
    return out.getvalue()


def damaged(path: str, data: bytes, rng: random.Random) -> bytes:
    """Damaged bytes for a file."""
    if rng.random() < 0.2:
        return damaged_bytes(data, rng)
    if path.endswith(".npy"):
        return odd_npy(rng)
    if path.startswith("shards/"):
        return odd_shard(path, rng)
    if path.endswith(".npz"):
        return odd_zip(path, rng)
    if path.endswith(".parquet"):
        return odd_parquet(path, rng)
    if path.endswith(".gz"):
        return gzip.compress(damaged(path[:-3], gzip.decompress(data), rng), 1, mtime=0)
    if path.endswith((".journal", ".jsonl")) and rng.random() < 0.5:
        return b"\n".join(odd_json(line, rng) for line in data.split(b"\n"))
    old = rng.choice((b"\t", b"\n", b"0", b"e"))
    return data.replace(
        old,
        rng.choice(
            (
                b"\t\t",
                b"\0",
                b"\xff\xfe",
                b"\r",
                b"\n\n",
                b"9" * 30,
                b"9" * 5000,
                b"-1",
                b"nan",
                b"\xef\xbb\xbf",
            )
        ),
        2,
    )


# -- Running -----------------------------------------------------------------------------------


def call(args: list[str]) -> str:
    """Run a command in this process; return its complaint, or "".

    Raises all exceptions other than kgtrec's and click's.
    """
    match CliRunner().invoke(cli, args, standalone_mode=False).exception:
        case None:
            return ""
        case KgtrecError() as error:
            return f"{error.exit_code} {error}"
        case ClickException() as error:
            return f"1 {error.format_message()}"
        case error:
            raise error


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
    names = [path.rpartition("/")[0] or path, *(arg for arg in args if "." in arg), "2id.txt"]
    if said[0] == "2" and not any(name in text for name in names):
        return f"{path} is not named"
    return ""


def run_commands(path: str, verbose: bool = False, sound: bool = True) -> str:
    """Run all commands that read a file; return the first fault."""
    for args in reads()[path]:
        said = fault = ""
        try:
            said = call(args)
            fault = said and (said if sound else fault_of(said, path, args))
        except Exception as error:
            fault = "".join(traceback.format_exception(error)[-3:])
        except SystemExit as end:
            fault = f"exit {end.code}" * (sound or end.code not in (0, 2))
        if verbose:
            print(" ".join(args), "->", said or "done")
        shutil.rmtree("out")
        os.mkdir("out")
        if fault:
            return f"{path}: kgtrec {' '.join(args)}\n  {said}\n  {fault}"
    return ""


def case_of(seed: int, number: int, only: str, verbose: bool = False) -> str:
    """Damage one file and run the commands that read it in a child process; return the fault."""
    rng = random.Random(f"{seed} {number}")
    paths = [path for path in reads() if path.startswith(only)]
    path = paths[number % len(paths)]
    sound = Path(path).read_bytes()
    Path(path).write_bytes(damaged(path, sound, rng))
    if (process := os.fork()) == 0:
        fault = run_commands(path, verbose, sound=False)
        print(fault, end="", flush=True)
        os._exit(bool(fault))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    Path(path).write_bytes(sound)
    return f"case {number}, {path}, ended by {code}" if code else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", default="", help="files whose names begin with this")
    options = parser.parse_args()
    numbers = range(options.cases) if options.case is None else [options.case]
    until, ran, faults = time.time() + 60 * options.minutes, 0, 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.chdir(folder)
        make_home()
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it maps terabytes
            import resource  # Windows has none

            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        warnings.simplefilter("ignore")
        for number in numbers:
            ran += 1
            if fault := case_of(options.seed, number, options.only, len(numbers) == 1):
                print(f"\n{fault}\n", flush=True)
                faults += 1
            if time.time() > until:
                break
    print(f"{ran} cases, {faults} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
