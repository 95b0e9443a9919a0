"""The guides: every block runs, every name is explained, and every command has its guide."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from markdown_blocks import blocks_of, commands_of, run_blocks
from slow import slow_but

from kgtrec import guides
from kgtrec.cli import COMMANDS, cli
from kgtrec.cli.guide import rendered
from kgtrec.demo import run_demo
from kgtrec.errors import UsageError
from kgtrec.measures import AVERAGINGS, METRICS, RANK_TYPES

# The first texts for a reader of README, and the use of the package from Python.
QUICK = ("first-evaluation", "ties", "filters-and-protocols")
TEXTS = {name: guides.text(name) for name in guides.ORDER}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    run_demo(folder / "kgtrec-demo")
    return folder


@pytest.mark.parametrize("name", slow_but(QUICK, guides.ORDER))
def test_every_block_runs(
    name: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(TEXTS[name])
    assert blocks
    assert not run_blocks(blocks, guides.path(name))


def test_every_file_is_a_guide_and_every_guide_a_file() -> None:
    files = {path.stem for path in guides.path("ties").parent.glob("*.md")}
    assert files == set(guides.ORDER)
    assert len(guides.ORDER) == len(files)
    assert all(text.startswith("# ") for text in TEXTS.values())


@pytest.mark.parametrize("name", guides.ORDER)
def test_a_guide_begins_with_what_you_get_and_ends_with_the_next(name: str) -> None:
    paragraphs = TEXTS[name].rstrip("\n").split("\n\n")
    assert paragraphs[1].startswith("You ")
    following = re.fullmatch(r"Next: `kgtrec guide ([\w-]+)` [^.]+\.", paragraphs[-1])
    assert following
    assert following[1] in {*guides.ORDER} - {name}


def test_links_lead_to_guides() -> None:
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert guides.path(name).with_name(target).exists(), (name, target)


def test_every_word_of_a_key_is_explained() -> None:
    words = [*RANK_TYPES, *AVERAGINGS, *(metric.name for metric in METRICS)]
    text = TEXTS["numbers"] + TEXTS["adjusted-metrics"]
    assert [word for word in words if f"`{word}`" not in text] == []


def test_every_command_is_shown_and_names_its_guide() -> None:
    shown = {
        next(word for word in words[1:] if not word.startswith("-"))
        for text in TEXTS.values()
        for block in blocks_of(text)
        if block.language == "sh"
        for words in commands_of(block)
        if words[0] == "kgtrec"
    }
    assert shown == set(COMMANDS)
    for name, entry in COMMANDS.items():
        said = CliRunner().invoke(cli, [name, "--help"]).output
        if name != "guide":
            assert f"Guide: kgtrec guide {entry.guide}\n" in said
            assert entry.guide in guides.ORDER
    assert "Guide: " in CliRunner().invoke(cli, ["judge", "serve", "--help"]).output


def test_the_command_lists_and_shows() -> None:
    listed = CliRunner().invoke(cli, ["guide"]).output
    assert [line.split()[0] for line in listed.splitlines()] == list(guides.ORDER)
    assert all(guides.title(name) in listed for name in guides.ORDER)
    assert CliRunner().invoke(cli, ["guide", "ties"]).output == TEXTS["ties"]
    where = CliRunner().invoke(cli, ["guide", "ties", "--path"]).output.rstrip("\n")
    assert Path(where).read_text(encoding="utf-8") == TEXTS["ties"]


EXAMPLE = r"""# A title

Words in `code`, **stress** and *italics*, then [Ties](ties.md) and [a page](numbers.md) and
[elsewhere](https://example.org/x).

- One item that is long enough to be wrapped
  over lines.
- Another:

  ```sh
  kgtrec guide   ties
  ```

```toml jobs.toml
a = 1
```

## Next

| option | |
|---|---|
| `a \| b` | what it does, in so many words that they must be wrapped |
""".replace("\\\\", "\\")


def test_a_terminal_gets_markdown_laid_out() -> None:
    shown = rendered(EXAMPLE, 40)
    assert click.unstyle(shown).splitlines() == [
        "A title",
        "",
        "Words in code, stress and italics, then",
        "Ties and a page (kgtrec guide numbers)",
        "and elsewhere (https://example.org/x).",
        "",
        "- One item that is long enough to be",
        "  wrapped over lines.",
        "- Another:",
        "",
        "      kgtrec guide   ties",
        "",
        "jobs.toml:",
        "    a = 1",
        "",
        "Next",
        "",
        "option",
        "------  --------------------------------",
        "a | b   what it does, in so many words",
        "        that they must be wrapped",
    ]
    assert shown.startswith(click.style("A title", bold=True, underline=True))
    assert click.style("Next", bold=True) in shown
    assert click.style("code,", bold=True) not in shown
    assert click.style("Ties", underline=True) in shown


@pytest.mark.parametrize("name", guides.ORDER)
def test_a_terminal_gets_every_word_within_its_width(name: str) -> None:
    shown = click.unstyle(rendered(TEXTS[name], 80))
    code = {line.strip() for block in blocks_of(TEXTS[name]) for line in block.text.splitlines()}
    code.add("")
    lines = [line for line in shown.splitlines() if line.strip() not in code]
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
    assert [line for line in lines if line.startswith(("#", "```", "|"))] == []
    text = re.sub(r"\]\([^)]+\)|^ *```.*$|^\|[-|]+\|$", "", TEXTS[name], flags=re.M)
    assert {*re.findall(r"\w+", text)} <= {*re.findall(r"\w+", shown)}


def test_a_terminal_pages_and_a_pipe_gets_plain_markdown() -> None:
    program = [sys.executable, "-m", "kgtrec", "guide", "ties"]
    assert subprocess.run(program, capture_output=True, check=True).stdout.decode() == TEXTS["ties"]
    terminal, there = pty.openpty()
    environment = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "60"}
    with subprocess.Popen(program, stdout=there, stdin=there, env=environment) as process:
        os.close(there)
        printed = b""
        with contextlib.suppress(OSError):  # Linux's error at the end of a terminal
            while part := os.read(terminal, 1 << 16):
                printed += part
    os.close(terminal)
    assert process.returncode == 0
    text = printed.decode().replace("\r\n", "\n")
    assert click.unstyle(text) == click.unstyle(rendered(TEXTS["ties"], 60)) + "\n"


def test_a_name_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"'tie' is not a guide; did you mean 'ties'\?"):
        guides.path("tie")
    with pytest.raises(UsageError, match="choose one of first-evaluation, "):
        guides.path("../../setup")


def test_the_site_has_every_guide() -> None:
    index = (guides.path("ties").parent / "site" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^\.\./([\w-]+)$", index, re.M) == list(guides.ORDER)


def test_complete_compare_and_eval_average_the_same_queries() -> None:
    """Without -c, eval leaves out a query that the run lacks; the others count it as 0."""
    lines = TEXTS["sparse-labels"].splitlines()
    shown = [line for line in lines if line.startswith("kgtrec eval") and "complete.qrels" in line]
    assert shown
    assert all(" -c " in line for line in shown)
