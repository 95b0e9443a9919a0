"""``kgtrec report``: the published table of saved ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kgtrec.result import Result
    from kgtrec.tables import Table

FORMATS = ("table", "json", "csv", "latex", "markdown")


@click.command(short_help="The published table of saved ranks.")
@click.argument("files", nargs=-1, required=True, metavar="RANKS.parquet ...")
@click.option(
    "--by", type=click.Choice(["side", "relation"]), help="One row per side or per relation."
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
    help="json maps keys to values, in full precision, as csv does.",
)  # fmt: skip
@click.option(
    "-m", "--measure", "keys", multiple=True, metavar="KEY",
    help="Only this measure, such as both.realistic.micro.hits@10; repeatable.",
)  # fmt: skip
def command(files: tuple[str, ...], by: str | None, form: str, keys: tuple[str, ...]) -> None:
    """Print the published table of one or more files of ranks.

    \b
    kgtrec report ranks.parquet
    kgtrec report a.parquet b.parquet --format json
    kgtrec report ranks.parquet --by relation -m both.realistic.micro.amri
    """
    from kgtrec.measures import parse_all
    from kgtrec.ranks import Ranks
    from kgtrec.result import Result

    measures = parse_all(keys) if keys else None
    results = {file: Result(Ranks.load(file), measures=measures) for file in files}
    if by is None:
        text = _whole(results, form)
    else:
        text = _sliced({file: result.slice(by, measures) for file, result in results.items()}, form)
    # bytes: a label may hold bytes that are no UTF-8, and they come out as they went in
    click.echo(text.rstrip("\n").encode("utf-8", "surrogateescape"))


def _whole(results: dict[str, Result], form: str) -> str:
    from kgtrec.tables import dump_json, stacked

    if form == "table":
        return _blocks({file: str(result) for file, result in results.items()})
    if form == "json":
        parts = {file: result.to_dict() for file, result in results.items()}
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    if form == "csv":
        tables = {file: result.long_table() for file, result in results.items()}
    else:
        tables = {file: result.wide_table() for file, result in results.items()}
    return _rendered(stacked(tables), form)


def _sliced(tables: dict[str, Table], form: str) -> str:
    from kgtrec.tables import dump_json, stacked

    if form == "table":
        return _blocks({file: table.to_text() for file, table in tables.items()})
    if form == "json":
        parts = {file: table.to_dict() for file, table in tables.items()}
        return dump_json(next(iter(parts.values())) if len(parts) == 1 else parts)
    return _rendered(stacked(tables), form)


def _blocks(texts: dict[str, str]) -> str:
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"== {file}\n{text}" for file, text in texts.items())


def _rendered(table: Table, form: str) -> str:
    render = {"csv": table.to_csv, "latex": table.to_latex, "markdown": table.to_markdown}
    return render[form]()
