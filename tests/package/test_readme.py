"""The README is run: its Python and its commands, in order, on the graph that the demo leaves."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT
from click.testing import CliRunner

from kgtrec.cli import cli
from kgtrec.demo import run_demo
from kgtrec.measures import AVERAGINGS, METRICS, RANK_TYPES

README = ROOT / "README.md"
INSTALL = "pip install . && kgtrec demo"
TEST = "pip install '.[test]' && pytest"
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
ALMOST = 0.02  # other libraries may move the last digits of the factorisation


class Block(NamedTuple):
    """A fenced block and the line on which its content begins."""

    language: str
    line: int
    text: str


def blocks_of(markdown: str) -> list[Block]:
    return [
        Block(
            found["language"],
            markdown.count("\n", 0, found.start("text")) + 1,
            textwrap.dedent(found["text"]),
        )
        for found in FENCE.finditer(markdown)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """Words of every command line, continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def lines_missing(shown: str, printed: str) -> list[str]:
    """Lines of `shown` that `printed` does not have, but for blanks and the last digits."""
    given = [line.split() for line in printed.splitlines()]
    return [
        line
        for line in shown.splitlines()
        if not any(_alike(line.split(), words) for words in given)
    ]


def _alike(left: list[str], right: list[str]) -> bool:
    return len(left) == len(right) and all(map(_same_word, left, right))


def _same_word(left: str, right: str) -> bool:
    if not (NUMBER.fullmatch(left) and NUMBER.fullmatch(right)):
        return left == right
    a, b = (float(word.replace(",", "")) for word in (left, right))
    return a == pytest.approx(b, rel=ALMOST, abs=0.002)


BLOCKS = blocks_of(README.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the demo has been run, and what it printed."""
    folder = tmp_path_factory.mktemp("reader")
    return folder, run_demo(folder / "kgtrec-demo")


def test_the_two_commands_come_first_and_alone():
    shell = [block.text for block in BLOCKS if block.language == "sh"]
    assert shell[:2] == [f"{INSTALL}\n", f"{TEST}\n"]


def test_continuous_integration_runs_the_same_two_commands():
    script = ROOT / ".ci" / "run"
    if not script.is_file():
        pytest.skip(f"{script} is not part of this tree")
    text = script.read_text(encoding="utf-8")
    assert f'"{INSTALL}"' in text
    assert f'"{TEST}"' in text


def test_every_python_block_runs(
    demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(demo[0])
    names: dict[str, object] = {"__name__": "readme"}
    blocks = [block for block in BLOCKS if block.language == "python"]
    assert len(blocks) >= 3
    for block in blocks:
        # Blank lines in front make the line numbers of a traceback those of the README.
        code = "\n" * (block.line - 1) + block.text
        exec(compile(code, str(README), "exec"), names)
    shown = [block.text for block in BLOCKS if block.language == "text"]
    assert not lines_missing(shown[1], capsys.readouterr().out)


def test_the_table_shown_is_what_the_demo_prints(demo: tuple[Path, str]):
    shown = next(block for block in BLOCKS if block.language == "text")
    assert not lines_missing(shown.text, demo[1])


def test_every_kgtrec_command_runs(demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(demo[0])
    commands = [
        words
        for block in BLOCKS
        if block.language == "sh" and block.text.strip() not in (INSTALL, TEST)
        for words in commands_of(block)
    ]
    assert {words[1] for words in commands} >= {"rank", "report", "convert", "eval"}
    for program, *arguments in commands:
        assert program == "kgtrec"
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert done.exit_code == 0, f"{arguments}: {done.output}"
        assert done.output, f"{arguments}: said nothing, on neither output"


@pytest.mark.parametrize(
    "name", [*RANK_TYPES, *AVERAGINGS, *(metric.name for metric in METRICS)], ids=str
)
def test_every_word_of_a_key_is_explained(name: str):
    assert f"`{name}`" in README.read_text(encoding="utf-8")


def test_links_lead_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


# -- The helpers can fail ----------------------------------------------------------------------


def test_blocks_know_their_lines_and_lose_their_indent():
    found = blocks_of("a\n\n```sh\nb\n```\n- c\n\n  ```python\n  d = 1\n  ```\n")
    assert found == [Block("sh", 4, "b\n"), Block("python", 9, "d = 1\n")]


def test_continued_lines_and_comments_make_one_command():
    block = Block("sh", 1, "kgtrec rank \\\n  -o 'a b'  # note\n\nkgtrec demo\n")
    assert commands_of(block) == [["kgtrec", "rank", "-o", "a b"], ["kgtrec", "demo"]]


def test_a_number_that_differs_is_missing():
    printed = "svd  0.501  22.8\nrandom  0.009  438.5"
    assert lines_missing("svd 0.501 22.8\n\nrandom 0.009 438.4", printed + "\n\n") == []
    assert lines_missing("svd 0.601 22.8", printed) == ["svd 0.601 22.8"]
    assert lines_missing("tsv 0.501 22.8", printed) == ["tsv 0.501 22.8"]
    assert lines_missing("svd 0.501", printed) == ["svd 0.501"]
