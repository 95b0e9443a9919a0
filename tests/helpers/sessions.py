"""Sessions of Python in ``test_refusals.txt`` and ``test_texts.txt``: write their outputs again.

`rewrite` runs them by pytest, as the suite does, and replaces the output of every example that
fails. Examples that pass keep their line breaks. A text that differs between machines is written
as ``...`` in an example with the directive ``# doctest: +ELLIPSIS``; such an example is rewritten
only if the rest of its output differs.
"""

from __future__ import annotations

import doctest
import re
import textwrap
import traceback
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
WIDTH = 100
TRACEBACK = "Traceback (most recent call last):"


class Output(NamedTuple):
    """What an example printed, and the lines of the file that hold its previous output."""

    first: int
    """0-based number of the first line of the previous output"""
    n_lines: int
    indent: int
    text: str


class Recorder:
    """A plugin of pytest that collects the outputs of examples that fail, by file."""

    def __init__(self) -> None:
        # pytest may report a failure several times
        self.outputs: dict[Path, set[Output]] = defaultdict(set)

    def pytest_exception_interact(
        self, node: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        error = call.excinfo.value if call.excinfo else None
        for failure in getattr(error, "failures", ()):
            if isinstance(failure, doctest.DocTestFailure | doctest.UnexpectedException):
                self.outputs[node.path].add(output_of(failure))


def output_of(failure: doctest.DocTestFailure | doctest.UnexpectedException) -> Output:
    """Return the output of a failed example, as a session shows it."""
    example = failure.example
    if isinstance(failure, doctest.UnexpectedException):
        text = shown_error("".join(traceback.format_exception_only(*failure.exc_info[:2])))
    elif TRACEBACK in failure.got:
        before, _, after = failure.got.partition(TRACEBACK)
        text = before + shown_error(re.sub(r"\A(\s.*)?\n([ \t].*\n)*", "", after))
    else:
        text = re.sub(r"^[ \t]*$", "<BLANKLINE>", failure.got.removesuffix("\n"), flags=re.M)
    first = example.lineno + example.source.count("\n")
    return Output(first, example.want.count("\n"), example.indent, text)


def shown_error(message: str) -> str:
    """Return the lines of an exception in a session, broken at `WIDTH`."""
    lines = [
        textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        for line in message.rstrip("\n").split("\n")
    ]
    return "\n".join([TRACEBACK, *lines])


def replace_outputs(text: str, outputs: Iterable[Output]) -> str:
    """Return a session with these outputs instead of the previous ones."""
    lines = text.split("\n")
    for output in sorted(outputs, reverse=True):
        new = textwrap.indent(output.text, " " * output.indent).split("\n") if output.text else []
        lines[output.first : output.first + output.n_lines] = new
    return "\n".join(lines)


def session_files() -> list[Path]:
    """Return the files of all sessions."""
    return sorted(path for path in TESTS.rglob("test_*.txt") if "golden" not in path.parts)


def rewrite(paths: list[Path]) -> None:
    """Run sessions and write the outputs that differ into their files."""
    recorder = Recorder()
    options = ["-n", "0", "-p", "no:cacheprovider", "--tb=no", "--doctest-continue-on-failure"]
    pytest.main([*options, *map(str, paths)], plugins=[recorder])
    for path, outputs in recorder.outputs.items():
        text = replace_outputs(path.read_text("utf-8"), outputs)
        path.write_text(text, "utf-8", "backslashreplace")  # labels need not be UTF-8
        print(f"{path.relative_to(TESTS)}: {len(outputs)} outputs rewritten")
