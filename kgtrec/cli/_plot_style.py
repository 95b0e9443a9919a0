"""``--style`` of the commands that draw."""

from __future__ import annotations

import click

__all__ = ["style_option"]


def _choose(ctx: click.Context, _param: click.Parameter, text: str | None) -> None:
    if text is not None:
        from kgtrec.plots.style import Style, using

        ctx.with_resource(using(Style.parse(text)))


style_option = click.option(
    "--style", metavar="SETTINGS", expose_value=False, callback=_choose,
    help="Of figures, as a paper asks: size=9,width=3.25,family=serif (points, inches of a column, "
    "a font), text=outlines (SVG that needs no font), or some of them.  "
    "[default: size=8,width=3.4]",
)  # fmt: skip
"""The option, for commands with figures: it holds until the command ends."""
