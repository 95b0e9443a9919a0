"""Every option name has one meaning, one heading and one type in all commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

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
