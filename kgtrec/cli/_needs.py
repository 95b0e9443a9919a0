"""Options that matter only together with another option: a call without it is refused, or noted.

A new option of this kind is a row here. Rows say only what the other options show; what depends on
files is checked where they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
from click.core import ParameterSource

from kgtrec.cli._names import long_name
from kgtrec.errors import refuse_if

_OF_RUNS = ("--run-depth --tag", "--write-run")

NEEDS: dict[str, tuple[tuple[str, str], ...]] = {
    "rank": (
        ("--run-depth", "--write-run --shard"),
        ("--tag", "--write-run"),
        ("--outside", "--candidates --type-constraints"),
        ("--unknown", "--candidates --type-constraints --entities --relations --known"),
    ),
    "pool": (("--by --write-sample", "--sample-questions"),),
    "complete": (
        ("--sample --target --ci --seed", "--judge"),
        ("--write-sample", "--target"),
        ("--asked", "--judgements"),
    ),
    "pairs": (("--unknown", "--heads --tails --relations"),),
    "merge": (_OF_RUNS,),
    "align": (_OF_RUNS, ("--dangling", "--assign")),
    "estimate": (
        (
            "--lower-is-better --nan --score-columns --write-full-questions --full-scores",
            "--scores",
        ),
    ),
    "sets": (("--least", "--per"), ("--graph", "--by --scores --predictions")),
    "audit": (("--split --sides", "--graph"),),
    "openworld": (
        ("--seed", "--study --figure=simulated --family-tree --hide"),
        ("--families --people --generations --children", "--family-tree"),
        ("--valid-share", "--family-tree --hide"),
        ("--hide-by --output", "--hide"),
        ("--plot-pairs", "--checkpoints"),
    ),
    "judge merge": (("--seed", "--conflicts"),),
    "plot": (("--ties", "--qrels"),),
    "compare": (("--ties", "--qrels"),),
    "compare labels": (("--ties", "--qrels"),),
    "compare depths": (("--ties", "--qrels"),),
    "compare power": (("--seed", "--test=randomisation --test=bootstrap"), ("--ties", "--qrels")),
}
"""Per command, options, and the others of which they need one (`=`: with that value)."""

NOTED: dict[str, tuple[tuple[str, str], ...]] = {
    # Its three steps take the same options.
    "estimate": (("--full --half-width --ci --threads --format", "--scores"),),
}
"""As `NEEDS`, but users may have a reason for such options, so a note says they have no effect."""

IDLE: dict[str, tuple[tuple[str, str, str], ...]] = {
    "complete": (("--top --within --examples --alpha --write-sample-qrels", "--judge", ""),),
    "classify": (("--bins", "--show=relations --show=intervals", "--plot"),),
}
"""Per command, options, others with which they have no effect, and others that need them anyway."""


def check_needs(ctx: click.Context) -> list[str]:
    """Raise UsageError for options that `NEEDS` or `IDLE` refuse; return notes on `NOTED`."""
    refuse_if(
        *(
            (True, f"{names}: no effect without {needs}; leave out")
            for names, needs in _idle(ctx, NEEDS)
        ),
        *(
            (True, f"{names}: no effect with {other}; leave out")
            for names, other in _idle_beside(ctx)
        ),
    )
    return [f"{names}: no effect without {needs}" for names, needs in _idle(ctx, NOTED)]


def _idle(
    ctx: click.Context, table: Mapping[str, tuple[tuple[str, str], ...]]
) -> Iterator[tuple[str, str]]:
    """Yield typed options without effect, and the options that they need, per row of `table`.

    Typed options of a row have no effect if all options that they need are absent.
    """
    values = _read_typed(ctx)
    for options, needs in table.get(_command_of(ctx), ()):
        typed = [option for option in options.split() if option in values]
        if typed and not _present(needs, values):
            *most, last = (need.replace("=", " ") for need in needs.split())
            yield ", ".join(typed), " or ".join(filter(None, [", ".join(most), last]))


def _idle_beside(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield typed options without effect, and the option that makes them so, per row of `IDLE`."""
    values = _read_typed(ctx)
    for options, others, exceptions in IDLE.get(_command_of(ctx), ()):
        typed = [option for option in options.split() if option in values]
        beside = _present(others, values)
        if typed and beside and not _present(exceptions, values):
            yield ", ".join(typed), beside[0].replace("=", " ")


def _command_of(ctx: click.Context) -> str:
    """Return the words of a command, without the program."""
    return " ".join(ctx.command_path.split()[1:])


def _read_typed(ctx: click.Context) -> dict[str, object]:
    """Return the values of the typed options by name."""
    return {
        long_name(parameter): ctx.params.get(str(parameter.name))
        for parameter in ctx.command.params
        if ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    }


def _present(needs: str, values: Mapping[str, object]) -> list[str]:
    """Return the needed options that are typed; one with `=` needs that value."""
    return [
        need
        for need in needs.split()
        if (parts := need.partition("="))[0] in values
        and (not parts[2] or values[parts[0]] == parts[2])
    ]
