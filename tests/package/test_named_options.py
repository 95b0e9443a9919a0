"""Options that texts of the package name exist: messages, help, guides, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import kgtrec
from kgtrec.cli import cli

PACKAGE = Path(str(kgtrec.__file__)).parent
OPTION = re.compile(r"(?<![-\w{}$/])--[a-z][a-z0-9-]*(?![-\w]*\{)")
ELSEWHERE = {"--array", "--help", "--version", "--nworkers", "--nthreads", "--memory-limit"}
"""Of the commands of schedulers, which messages and pages name; and of click itself."""


def options_of(command: click.Command, context: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, parent=context)
    for parameter in command.get_params(context):
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in subcommands(command, context).values():
        yield from options_of(inner, context)


def subcommands(command: click.Command, context: click.Context) -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return dict(getattr(command, "commands", {}))
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: inner for name, inner in found.items() if inner is not None}


KNOWN = set(options_of(cli)) | ELSEWHERE


def texts_of(path: Path) -> Iterator[str]:
    """Every text of a module, of f-strings the parts around what is filled in, and guides whole."""
    if path.suffix == ".md":
        yield path.read_text("utf-8")
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named(text: str) -> set[str]:
    return {match.group().rstrip("-") for match in OPTION.finditer(text)}


FOLDERS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})


@pytest.mark.parametrize("folder", [*FOLDERS, "guides"])
def test_every_option_that_is_named_exists(folder: str) -> None:
    place = PACKAGE / folder
    files = [*place.rglob("*.py"), *place.rglob("*.md")] if place.is_dir() else [place]
    wrong = {
        f"{path.relative_to(PACKAGE)}: {option}"
        for path in files if path.name != "_names.py"
        for text in texts_of(path) for option in named(text) - KNOWN
    }  # fmt: skip
    assert wrong == set()


def test_what_looks_can_find_a_wrong_name() -> None:
    assert named("give --retry or --plot{}; a--b; --workers 2, `--quiet`") - KNOWN == {"--retry"}
    assert {"--replicates", "--patience", "--quiet"} <= KNOWN
