"""Play and rewrite transcripts: commands of the command line, with their outputs.

    python tests/helpers/transcripts.py            write the outputs in tests/golden/cli again,
                                                   and those of all sessions of Python
    python tests/helpers/transcripts.py refusals   those of tests/golden/cli/refusals.txt
    python tests/helpers/transcripts.py cases      those of tests/golden/cases: files of other
                                                   people that were misread once, each in a folder
    python tests/helpers/transcripts.py real       those of tests/golden/real: graphs and models of
                                                   ../shared/data, two minutes
    python tests/helpers/transcripts.py tests/graph/test_refusals.txt
                                                   those of one session; see `sessions`

Read the difference in git.

A line ``$ kgtrec ...`` is a command, and the lines below it are its standard output. Lines of
standard error begin with ``! ``; ``= 2`` is the exit code unless it is 0. ``$ file NAME`` makes a
file of the lines below it that begin with ``| ``, ``$ cat NAME`` shows one, ``$ cmp NAME NAME``
compares two, and ``$ grep REGEX NAME`` shows each matching text once. ``$ python NAME`` runs a
script in this process, whose warnings are lines of standard error; ``$ awk``, ``$ sed``,
``$ iconv`` and ``$ sh`` are lines of a shell, as messages suggest them. The blocks run one after
another in one folder, the home of `fuzz_files`, which they call HOME. Lines with ``#`` are for
readers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from checkout import SHARED_DATA
from graph_files import write

import kgtrec
from kgtrec.cli import main

GOLDEN_CLI = Path(__file__).parents[1] / "golden/cli"
REAL = Path(__file__).parents[1] / "golden/real"
CASES = Path(__file__).parents[1] / "golden/cases"
START = "$ "


def parse_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield every block of a transcript: its command, and the lines below it."""
    for block in f"\n{text}".split(f"\n{START}")[1:]:
        command, _, printed = block.partition("\n")
        lines = [line for line in printed.splitlines() if not line.startswith("# ")]
        yield command, "\n".join(lines).rstrip("\n")


class Outcome(NamedTuple):
    """Exit code and both streams of a command; bytes that are not text are lone surrogates."""

    code: int
    out: str
    err: str

    @property
    def out_bytes(self) -> bytes:
        return self.out.encode("utf-8", "surrogateescape")


def run_command(*words: str, stdin: bytes = b"") -> Outcome:
    """Run a command in this process, like the installed script."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["kgtrec", *words]),
        patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin))),
        patch.object(warnings, "showwarning", warnings.showwarning),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    texts = (stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err))
    return Outcome(code, *texts)


def play(command: str) -> str:
    """Run a command in this process and this folder; return the lines of its output."""
    code, *texts = run_command(*shlex.split(command))
    here = os.getcwd()  # on Windows, with backslashes; quoted texts double them
    homes = [text.replace(here, "HOME").replace(repr(here)[1:-1], "HOME") for text in texts]
    out, err = (text.splitlines() for text in homes)
    return "\n".join([*out, *(f"! {line}" for line in err), *([f"= {code}"] if code else [])])


def play_script(path: str) -> str:
    """Run a script of Python in this process and this folder, like `play`."""
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        runpy.run_path(path, run_name="__main__")
    remarks = [f"! {kind.category.__name__}: {kind.message}" for kind in caught]
    return "\n".join([*out.getvalue().splitlines(), *remarks]).replace(os.getcwd(), "HOME")


def run_block(command: str, below: str) -> str:
    """Run a command or make a file; return the lines that belong below it."""
    program, _, words = command.partition(" ")
    if program == "kgtrec":
        return play(words.replace("HOME", Path.cwd().as_posix()))
    if program == "python":
        return play_script(words)
    if program in ("awk", "sed", "iconv", "sh"):
        line = words if program == "sh" else command
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")
    if program == "cat":
        return Path(words).read_text("utf-8").rstrip("\n")
    if program == "cmp":
        first, second = (Path(name).read_bytes() for name in words.split())
        return "the same" if first == second else "different"
    if program == "grep":
        pattern, path = shlex.split(words)
        return "\n".join(dict.fromkeys(re.findall(pattern, Path(path).read_text("utf-8"))))
    assert program == "file", command
    write(Path(words), "".join(f"{line[2:]}\n" for line in below.splitlines()))
    return below


def replay(text: str) -> str:
    """Run all blocks of a transcript; return its text with their current outputs."""
    blocks = []
    for block in re.split(r"\n+(?=\$ |# )", text.strip()):
        head, _, below = block.partition("\n")
        if head.startswith(START):
            below = run_block(head.removeprefix(START), below.rstrip("\n"))
        blocks.append("\n".join(filter(None, [head, below])))
    return "\n\n".join(blocks) + "\n"


def make_real_home() -> None:
    """Link the graphs and models of `SHARED_DATA` into this folder.

    ``rotate.npz`` holds a vector per question instead: its phases are 10 times its relations.
    """
    for name in ("fb15k-237", "openke-fb15k237", "wn18rr", "wn18"):
        os.symlink(SHARED_DATA / name, name)
    for name in ("distmult", "complex", "transe"):
        os.symlink(SHARED_DATA / "models" / f"fb15k-237-{name}.npz", f"{name}.npz")
    questions = kgtrec.read_graph("fb15k-237").questions("test")
    with np.load(SHARED_DATA / "models" / "fb15k-237-rotate.npz") as arrays:
        entity, relation, logscale = arrays["entity"], arrays["relation"], arrays["logscale"]
    half = entity.shape[1] // 2
    inverse = np.where(questions.side == 0, questions.graph.n_relations, 0)
    phases = np.float32(10) * relation[questions.relation + inverse, :half]
    vectors = entity[questions.entity, :half] + 1j * entity[questions.entity, half:]
    turned = vectors * np.exp(1j * phases)
    queries = np.hstack([turned.real, turned.imag]).astype(np.float32)
    scale = np.exp(logscale / 2)
    np.savez("rotate.npz", queries=scale * queries, entities=scale * entity, metric="l2")


def rewrite(folder: Path, names: list[str], make_home: Callable[[], None]) -> None:
    """Write the outputs of transcripts in a folder again; each begins in a fresh home."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/home")
        os.chdir(f"{work}/home")
        make_home()
        for name in names:
            shutil.copytree(f"{work}/home", f"{work}/{name}", symlinks=True)
            os.chdir(f"{work}/{name}")
            path = folder / f"{name}.txt"
            path.write_text(replay(path.read_text("utf-8")), "utf-8")


def list_names(folder: Path) -> list[str]:
    """Return the names of the transcripts in a folder."""
    return sorted(path.stem for path in folder.glob("*.txt"))


def main_program(words: list[str]) -> None:
    """Rewrite the files that these words name, or all."""
    import fuzz_files
    import sessions

    paths = [Path(word).resolve() for word in words if word.endswith(".txt")]
    if paths or not words:
        sessions.rewrite(paths or sessions.session_files())
    if names := [name for name in list_names(GOLDEN_CLI) if name in words or not words]:
        rewrite(GOLDEN_CLI, names, fuzz_files.make_home)
    if "cases" in words or not words:
        rewrite(CASES, list_names(CASES), lambda: None)
    if "real" in words:
        rewrite(REAL, list_names(REAL), make_real_home)


if __name__ == "__main__":
    main_program(sys.argv[1:])
