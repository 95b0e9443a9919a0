"""Read fenced blocks of Markdown, run them in order, and compare their outputs with the text.

A block of ``python`` is executed. If it names a library after the language, as in ```` ```python
torch ````, it needs that library. Every line of ``sh`` is a command of kgtrec (installing lines
are ignored). ``text`` is the output of the blocks above it. Any other block is a file with the
name after the language: ```` ```toml jobs.toml ````.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import textwrap
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from kgtrec.cli import cli
from kgtrec.errors import FilterWarning

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+) *(?P<name>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
ALMOST = 0.02  # other libraries may move the last digits of the factorisation
INSTALLS = ("pip", "python")


class Block(NamedTuple):
    """A fenced block, the first line of its content, and its file name."""

    language: str
    line: int
    text: str
    name: str = ""


def blocks_of(markdown: str) -> list[Block]:
    return [
        Block(
            match["language"],
            markdown.count("\n", 0, match.start("text")) + 1,
            textwrap.dedent(match["text"]),
            match["name"],
        )
        for match in FENCE.finditer(markdown)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """Words of every command line, continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def lines_missing(shown: str, printed: str) -> list[str]:
    """Lines of `shown` that `printed` lacks, apart from blanks and the last digits."""
    rows = [line.split() for line in printed.splitlines()]
    return [
        line
        for line in shown.splitlines()
        if not any(_alike(line.split(), words) for words in rows)
    ]


def _alike(left: list[str], right: list[str]) -> bool:
    return len(left) == len(right) and all(map(_same_word, left, right))


def _same_word(left: str, right: str) -> bool:
    if not (NUMBER.fullmatch(left) and NUMBER.fullmatch(right)):
        return left == right
    a, b = (float(word.replace(",", "")) for word in (left, right))
    return a == pytest.approx(b, rel=ALMOST, abs=0.002)


def run_blocks(blocks: list[Block], source: Path) -> list[str]:
    """Run the blocks of a file in the working folder; return shown lines that were not printed."""
    names: dict[str, object] = {"__name__": "guide"}
    printed, missing = "", []
    for block in blocks:
        if block.language == "python" and block.name and not find_spec(block.name):
            continue  # its library is not installed; `.ci/run integrations` has it
        if block.language == "python":
            printed += _printed_by_python(block, source, names)
        elif block.language == "sh":
            printed += "".join(map(_printed_by_command, commands_of(block)))
        elif block.language == "text":
            missing += lines_missing(block.text, printed)
        else:
            assert block.name, f"{source.name}:{block.line}: a file's block gives its name"
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text, encoding="utf-8")
    return missing


def _printed_by_python(block: Block, source: Path, names: dict[str, object]) -> str:
    # Leading blank lines give a traceback the line numbers of the file.
    code = compile("\n" * (block.line - 1) + block.text, str(source), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as output, warnings.catch_warnings():
        warnings.simplefilter("default", FilterWarning)  # examples of a guide may warn
        if block.name:
            warnings.simplefilter("ignore")  # warnings of other libraries
        exec(code, names)
    return output.getvalue()


def _printed_by_command(words: list[str]) -> str:
    program, *arguments = words
    if program in INSTALLS:
        return ""
    assert program == "kgtrec", words
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    expected = (0, 3) if arguments[0] == "audit" else (0,)  # 3: numbers exclude each other
    assert done.exit_code in expected, f"{arguments}: {done.output}"
    assert done.output, f"{arguments}: said nothing, on neither output"
    return done.output
