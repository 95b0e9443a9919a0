"""``kgtrec guide``: the guides that come with the package."""

from __future__ import annotations

import sys

import click


@click.command(short_help="How to do it, and why: the guides that come with kgtrec.")
@click.argument("name", required=False)
@click.option("--path", "as_path", is_flag=True, help="Print where the guide's file is.")
def command(name: str | None, as_path: bool) -> None:
    """List the guides, or show the guide NAME, in a pager if the output is a terminal.

    Their examples use the files that `kgtrec demo` leaves, and can be pasted as they are.

    \b
    kgtrec guide
    kgtrec guide ties
    kgtrec guide runs-and-qrels > runs-and-qrels.md
    """
    from kgtrec import guides

    if name is None:
        width = max(map(len, guides.ORDER))
        for one in guides.ORDER:
            click.echo(f"{one:{width}}  {guides.title(one)}")
    elif as_path:
        click.echo(str(guides.path(name)))
    elif sys.stdout.isatty():
        click.echo_via_pager(guides.text(name))
    else:
        click.echo(guides.text(name), nl=False)
