"""Mistakes in a call that click finds, with what to do: it says only what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

_MOST_NAMED = 4
"""Commands that a message names."""


@contextmanager
def with_advice(ctx: click.Context) -> Iterator[None]:
    """Add advice to click's errors about the words of a call.

    An unknown option gets the commands that have it, an option without its value its help, and a
    missing argument the usage of the command. Click chooses the similar names of options.
    """
    try:
        yield
    except click.NoSuchOption as error:
        raise click.UsageError(_describe_option(error, ctx), ctx) from None
    except click.BadOptionUsage as error:
        text = f"{error.message} {_help_of(error.option_name, ctx.command)}".rstrip()
        raise click.BadOptionUsage(error.option_name, text, ctx) from None
    except click.MissingParameter as error:
        text = _help_of_parameter(error.param) or ctx.get_usage()
        raise click.MissingParameter(text, ctx, error.param) from None


def refuse_extra_arguments(ctx: click.Context) -> None:
    """Raise UsageError for words that are neither options nor arguments of the command."""
    if not ctx.args or ctx.resilient_parsing:
        return
    words = " ".join(map(repr, ctx.args[:3])) + " ..." * (len(ctx.args) > 3)
    usage = " ".join(ctx.command.collect_usage_pieces(ctx)[1:])
    takes = f"{ctx.command_path} takes {usage or 'options only'}"
    ctx.fail(
        f"unexpected {words}: {takes}; an option has one value after its name: quote values with "
        "spaces or *, and write lists with commas (mrr,hits@10)"
    )


def _describe_option(error: click.NoSuchOption, ctx: click.Context) -> str:
    """Return what is wrong with an unknown option; versions of click word it differently."""
    similar = ", ".join(sorted(error.possibilities or ()))
    advice = _advise_on_option(error.option_name, ctx, bool(similar))
    text = f"`{ctx.command_path}` has no option {error.option_name}"
    return text + f"; {advice}" * bool(advice) + "." + f" Similar: {similar}." * bool(similar)


def _advise_on_option(name: str, ctx: click.Context, has_similar: bool) -> str:
    """Name the commands with an option, or else the help; "" if similar names are enough."""
    root = ctx.find_root()
    commands = _walk(root.command, root.command_path)
    paths = [path for path, command in commands if name in _names_of(command)]
    if not paths:
        return "" if has_similar else f"`{ctx.command_path} --help` lists the options"
    shown = ", ".join(f"`{path}`" for path in paths[:_MOST_NAMED])
    further = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"{shown}{further} {'has' if len(paths) == 1 else 'have'} it"


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it, in the order of --help."""
    yield path, command
    names = getattr(command, "commands", {})
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        names = {n: command.get_command(ctx, n) for n in command.list_commands(ctx)}
    for name, below in names.items():
        yield from _walk(below, f"{path} {name}")


def _spellings(option: click.Parameter) -> list[str]:
    """Return how an option can be typed, such as --name and -n."""
    return [*option.opts, *option.secondary_opts]


def _names_of(command: click.Command) -> set[str]:
    return {name for option in command.params for name in _spellings(option)}


def _help_of(name: str, command: click.Command) -> str:
    """Return the first sentence of the help of an option; "" for an unknown one."""
    options = [option for option in command.params if name in _spellings(option)]
    return _help_of_parameter(options[0]) if options else ""


def _help_of_parameter(parameter: click.Parameter | None) -> str:
    text = getattr(parameter, "help", None) or ""
    return text.split(". ")[0].rstrip(".") + "." if text else ""
