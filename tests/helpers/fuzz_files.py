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
import functools
import gzip
import io
import json
import os
import random
import re
import resource
import shlex
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
    found: dict[str, list[list[str]]] = {}
    for line in (GOLDEN / "reads.txt").read_text("utf-8").splitlines():
        path, _, command = line.partition(": ")
        if not path.startswith("#"):
            found.setdefault(path, []).append(shlex.split(command))
    return found


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
    np.savez("neg.npz", **{f"{side}_neg": rng.integers(0, N, (n_test, 4))
                           for side in ("head", "tail")})  # fmt: skip
    best = np.tile([3, 1, 4, 0, 5, *[-1] * 5], (n_test, 1))
    np.savez("p.npz", h_pred_top10=best, t_pred_top10=best)
    for name in ("values", "more"):
        rows = [(f"s{i}", f"r{r}", rng.random()) for i in range(4) for r in range(2)]
        write(Path(f"{name}.csv"), lines([("system", "relation", "mrr"), *rows], ","))
    for name, shape in (("left", (9, 3)), ("right", (9, 3)), ("w", (4, N)), ("q", (3, 5))):
        np.save(f"{name}.npy", rng.random(shape))
    for command, below in transcripts.commands((GOLDEN / "home.txt").read_text("utf-8")):
        transcripts.step(command, below)
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
    at = rng.randrange(len(parts))
    part = parts[at]
    name = rng.choice(("about", *["counts", "answer_nan", "lengths", "documents", "scores"] * 2,
                       "task", "more", "dtype", "path", "nan_count"))  # fmt: skip
    value: Any = getattr(part, name, None)
    if isinstance(value, np.ndarray):
        other = ~value if value.dtype == bool else -value
        value = rng.choice((
            value[..., :-1], np.concatenate([value, value], -1), value[None], value.astype("f2"),
            value.astype("i1"), other, value.reshape(-1)[:0], other * 0 + 99, value.astype("U4"),
            value.T.copy(),
        ))  # fmt: skip
    elif name == "task":
        numbers = [*vars(part.task).values()]
        numbers[rng.randrange(4)] = rng.choice((-1, 0, 1, 2, 7, N, 1 << 40, "x", None, 1.0))
        value = Task(*numbers)
    else:
        value = rng.choice((None, -1, "x", "float64", [], 1.5))
    if name == "more":
        parts = rng.choice((parts * 2, [], parts[::-1] + parts[:1]))
    elif name != "about":
        parts[at] = replace(part, **{name: value})
    out = Path("out/shard")
    try:
        if name == "about":
            about = json.loads(odd_json(json.dumps(about).encode(), rng))
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
        lambda: rng.choices(("x", "", "ü", "head", "tail"), k=n),
        lambda: rng.choices((0, -1, 1 << 62, -(1 << 63), 7), k=n),
        lambda: rng.choices((0.5, float("nan"), -1e308), k=n),
        lambda: rng.choice(([[1]], [{"a": 1}])) * n,
        lambda: pa.array([*column.to_pylist()[:-1], *[None][:n]], column.type),
    ]
    ways: list[Callable[[], Any]] = [
        *[lambda: table.set_column(at, name, pa.array(rng.choice(columns)()))] * 6,
        lambda: table.remove_column(at), lambda: table.slice(0, rng.randrange(n + 1)),
        lambda: table.select([]),
        lambda: table.append_column(rng.choice((name, "more", "x_label")), column),
    ]  # fmt: skip
    with contextlib.suppress(pa.ArrowException):
        table = rng.choice(ways)()
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
    places = [path.rpartition("/")[0] or path, *(arg for arg in args if "." in arg), "2id.txt"]
    if said[0] == "2" and not any(place in text for place in places):
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


def run_case(seed: int, number: int, only: str, verbose: bool = False) -> str:
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


def child(seed: int, first: int, stop: int, until: float, only: str) -> None:
    """Run cases one after another; announce each, so that the parent knows which one crashed."""
    make_home()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    for number in range(first, stop):
        if time.time() > until:
            return
        print(f"case {number}", flush=True)
        if fault := run_case(seed, number, only):
            print(f"FAULT {json.dumps(fault)}", flush=True)


def fuzz(seed: int, cases: int, seconds: float, only: str = "") -> tuple[int, list[str]]:
    """Run cases in child processes, a new one after a crash; return their number, and findings."""
    until, first, ran, problems, ended = time.time() + seconds, -1, 0, [], 1
    while ended and first < ran < cases and time.time() < until:
        first = ran
        words = [sys.executable, __file__, "--child", *map(str, (seed, ran, cases, until, only))]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(words, cwd=folder, text=True, capture_output=True, check=False,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                                  )  # fmt: skip
        for line in done.stdout.splitlines():
            ran += line.startswith("case ")
            if line.startswith("FAULT "):
                problems.append(f"case {ran - 1}: {json.loads(line[6:])}")
        ended = done.returncode
        if ended:
            problems.append(f"case {ran - 1}: ended by {ended}: {done.stderr[-2000:]}")
    return ran, problems


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--only", default="", help="files whose names begin with this")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        seed, first, stop, until, only = options.child
        child(int(seed), int(first), int(stop), float(until), only)
    elif options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            make_home()
            print(run_case(options.seed, options.case, options.only, verbose=True) or "sound")
            os.chdir("/")
    else:
        ran, problems = fuzz(options.seed, options.cases, 60 * options.minutes, options.only)
        print("\n".join(problems) or "nothing found", f"\n{ran} cases")
        sys.exit(bool(problems))


if __name__ == "__main__":
    main()
