"""Options: one meaning, heading and type per name; and texts name those that exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from checkout import parsed

import kgtrec
from kgtrec.cli import cli
from kgtrec.cli._names import HEADINGS, long_name
from kgtrec.cli._report import PathType

NAMES = [name for names in HEADINGS.values() for name in names.split()]
SEVERAL_TYPES = {"--n-entities", "--seed", "--resamples", "--size", "--output", "--side"} | {
    "--level", "--depth", "--ci"
}  # fmt: skip
"""Numbers that trec_eval's parser or a study checks more closely."""


def commands(
    command: click.Command, context: click.Context | None = None, path: str = ""
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command, parent=context)
    yield path, command
    if isinstance(command, click.Group):
        found = {
            name: command.get_command(context, name) for name in command.list_commands(context)
        }
    else:
        found = dict(getattr(command, "commands", {}))
    for name, inner in found.items():
        assert inner is not None
        yield from commands(inner, context, f"{path} {name}".strip())


OPTIONS = [
    (path, one)
    for path, command in commands(cli)
    for one in command.params
    if isinstance(one, click.Option) and not one.hidden and long_name(one).startswith("--")
]


def test_every_option_is_in_the_table_and_every_row_is_an_option() -> None:
    names = {long_name(one) for _, one in OPTIONS}
    assert names - set(NAMES) == set()
    assert set(NAMES) - names - {"--help"} == set()
    assert len(NAMES) == len(set(NAMES))  # under one heading each


@pytest.mark.parametrize("name", ["--run", "--qrels", "--graph"])
def test_inputs_are_inputs_and_outputs_say_so(name: str) -> None:
    types = {path: one.type for path, one in OPTIONS if long_name(one) == name}
    assert types
    for path, kind in types.items():
        assert isinstance(kind, PathType), path
        assert not kind.is_output, path
    for path, one in OPTIONS:
        if long_name(one).startswith("--write-"):
            assert isinstance(one.type, PathType), path
            assert one.type.is_output, path


def test_a_name_has_one_type() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for _, one in OPTIONS:
        kinds[long_name(one)].add("flag" if one.is_flag else type(one.type).__name__)
    several = {name for name, types in kinds.items() if len(types) > 1}
    assert several <= SEVERAL_TYPES, {name: kinds[name] for name in several - SEVERAL_TYPES}


# -- Options that texts name -------------------------------------------------------------------


PACKAGE = Path(str(kgtrec.__file__)).parent
OPTION = re.compile(r"(?<![-\w{}$/])--[a-z][a-z0-9-]*(?![-\w]*\{)")
ELSEWHERE = {"--array", "--help", "--version", "--nworkers", "--nthreads", "--memory-limit"}
"""Of the commands of schedulers, which messages and pages name; and of click itself."""


KNOWN = {
    name
    for _, command in commands(cli)
    for one in command.params
    for name in (*one.opts, *one.secondary_opts)
} | ELSEWHERE


def texts_of(path: Path) -> Iterator[str]:
    """Every text of a module, the constant parts of f-strings, and whole guides."""
    if path.suffix == ".md":
        yield path.read_text("utf-8")
        return
    for node in ast.walk(parsed(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named(text: str) -> set[str]:
    return {match.group().rstrip("-") for match in OPTION.finditer(text)}


def may_be_wrong(path: Path) -> bool:
    """Whether the bytes of a file name an unknown option; its texts then say if it is one."""
    lines = path.read_text("utf-8").replace("\\n", "\n")
    lines = re.sub(r'"\s+f?"', "", lines)  # literals that Python joins
    return path.name != "_names.py" and bool(named(lines) - KNOWN)


def test_every_option_that_is_named_exists() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.md")]
    wrong = {
        f"{path.relative_to(PACKAGE)}: {option}"
        for path in filter(may_be_wrong, files)
        for text in texts_of(path) for option in named(text) - KNOWN
    }  # fmt: skip
    assert wrong == set()


def test_what_looks_can_find_a_wrong_name() -> None:
    assert named("give --retry or --plot{}; a--b; --workers 2, `--quiet`") - KNOWN == {"--retry"}
    assert {"--replicates", "--patience", "--quiet"} <= KNOWN
