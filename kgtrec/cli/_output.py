"""How commands print: results on standard output, notes and warnings on standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kgtrec._internal.atomic_file import atomic_write

if TYPE_CHECKING:
    from kgtrec._internal.table import Table

__all__ = ["blocks", "echo", "echo_or_write", "echo_parts", "note", "of_files", "rendered", "warn"]


def echo(text: str, *, err: bool = False) -> None:
    """A text and a newline. Bytes of ids that are no UTF-8 come out as they went in."""
    click.echo(text.rstrip("\n").encode("utf-8", "surrogateescape"), err=err)


def echo_or_write(text: str, output: str | None) -> None:
    """`echo`, or the same into a file, which a note names."""
    if output is None:
        echo(text)
        return
    with atomic_write(output) as file:
        file.write(f"{text.rstrip()}\n".encode("utf-8", "surrogateescape"))
    note(f"wrote {output}")


def note(text: str) -> None:
    """A line on standard error: what was written, left out, or is good to know.

    Where nobody takes it (a full disk, a reader that has gone), the work and its exit code are
    those of before.
    """
    with suppress(OSError):
        echo(f"kgtrec: {text}", err=True)


def warn(text: str) -> None:
    """A line on standard error that must not be missed."""
    note(f"warning: {text}")


def rendered(table: Table, form: str) -> str:
    """The table in one of the formats: table, csv, tsv, markdown, latex, json."""
    if form == "tsv":
        return table.to_csv("\t")
    render: dict[str, Callable[[], str]] = {
        "table": table.to_text, "csv": table.to_csv, "markdown": table.to_markdown,
        "latex": table.to_latex, "json": table.to_json,
    }  # fmt: skip
    return render[form]()


def of_files(tables: Mapping[str, Table], form: str) -> str:
    """A table of each file: blocks of text, JSON by file, or one table that names the files."""
    from kgtrec._internal.table import dump_json, stacked

    if form == "table":
        return blocks({file: table.to_text() for file, table in tables.items()})
    if form == "json":
        parts = {file: table.to_dict() for file, table in tables.items()}
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    return rendered(stacked(tables), form)


def blocks(texts: Mapping[str, str]) -> str:
    """Texts of files under their names; of one file alone, without."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"== {file}\n{text}" for file, text in texts.items())


def echo_parts(parts: Mapping[str, Table], form: str) -> None:
    """Print tables one under another, or as one JSON object."""
    from kgtrec._internal.table import dump_json

    if form == "json":
        echo(dump_json({name: table.to_dict() for name, table in parts.items()}))
    else:
        echo("\n\n".join(table.to_text() for table in parts.values()))
