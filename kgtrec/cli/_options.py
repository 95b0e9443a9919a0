"""Options that several commands have: one name, one type, one default and one meaning each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from kgtrec.errors import UsageError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def on_command_line(name: str) -> bool:
    """Whether the user has typed an option, even if with its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def all_of(*options: Decorator) -> Decorator:
    """One decorator of several, listed by --help in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- What is read ----------------------------------------------------------------------------------

GRAPH = click.option(
    "--graph", required=True, metavar="DIR",
    help="Folder with train, valid, test TSV, or in another format, which file names tell, or the "
    "user: FORMAT:DIR (see `kgtrec formats`).",
)  # fmt: skip
SIDE_NAMES = ("head", "tail", "both", "relation", "qualifier")
ENTITY_SIDE_NAMES = SIDE_NAMES[:3]


def sides(text: str, names: Sequence[str] = ENTITY_SIDE_NAMES) -> Decorator:
    return click.option(
        "--sides", type=click.Choice(names), default="both", show_default=True, help=text
    )


SIDES = sides(
    "Which entity of a triple is asked; or its relation, (h, ?, t); or the values of its "
    "qualifiers.",
    SIDE_NAMES,
)
CONTEXT = click.option(
    "--context", type=click.Choice(["time", "qualifiers"]),
    help="Of a graph whose facts have a time (timed:DIR): ask at the time of each fact. Or of one "
    "whose facts have qualifiers (statements:DIR): ask with these.",
)  # fmt: skip
SIDE = click.option(
    "--side", type=click.Choice(SIDE_NAMES),
    help="Side of the triple that is predicted; by default all that the ranks hold.",
)  # fmt: skip
SEED_TRIPLES = click.option(
    "--seed-triples", required=True, metavar="FILE",
    help="Triples of the split whose questions are pooled; see `kgtrec sample`.",
)  # fmt: skip
QUESTION_NAMES = click.option(
    "--questions", metavar="FILE",
    help="How runs name their questions, lines name<TAB>entity<TAB>relation; by default as "
    "`kgtrec convert --questions` and `kgtrec rank` do for the split.",
)  # fmt: skip


def graph(text: str) -> Decorator:
    """A graph that some calls need only."""
    return click.option("--graph", metavar="DIR", help=text)


def split(text: str) -> Decorator:
    return click.option("--split", default="test", show_default=True, help=text)


# -- How it is computed ----------------------------------------------------------------------------

THREADS = click.option("--threads", type=click.IntRange(1), help="Threads; every core by default.")
LOWER_IS_BETTER = click.option("--lower-is-better", is_flag=True, help="The scores are distances.")
NAN = click.option(
    "--nan", type=click.Choice(["error", "worst"]), default="error", show_default=True,
    help="A NaN score is an error, or below every other.",
)  # fmt: skip
HOW_SCORED = all_of(
    click.option(
        "--rows", type=click.Choice(["questions", "instances"]), default="questions",
        show_default=True,
        help="What a row of scores stands for: a question (as `kgtrec convert --questions` lists "
        "them), or a triple with its head asked, all in file order, then with its tail asked.",
    ),
    LOWER_IS_BETTER,
    NAN,
    THREADS,
)  # fmt: skip


def seed(text: str, default: int | None = 0) -> Decorator:
    """None where it must be known whether it was given."""
    return click.option(
        "--seed", type=click.IntRange(0), metavar="N", default=default, show_default=True, help=text
    )


def confidence(of: str) -> Decorator:
    return click.option(
        "--ci", type=float, default=95.0, show_default=True, metavar="PERCENT",
        help=f"Confidence of the intervals, {of}.",
    )  # fmt: skip


def intervals(drawn: str, resamples: int) -> Decorator:
    """--ci, --resamples and --seed of intervals that draw whole `drawn` anew."""
    return all_of(
        confidence(f"which draw whole {drawn}"),
        click.option(
            "--resamples", type=int, default=resamples, show_default=True, help="Draws of them."
        ),
        seed("Of the draws."),
    )  # fmt: skip


def cutoffs_of(text: str) -> tuple[int, ...]:
    """The numbers of ``--k 1,3,10``, ascending; UsageError if one is not."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UsageError(f"--k {text!r}: write numbers of 1 or more, as 1,3,10")
    return tuple(sorted({int(word) for word in words}))


# -- What is written -------------------------------------------------------------------------------

PLOT = click.option("--plot", metavar="FILE", help="Draw it too: .pdf, .svg, .png, ...")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Neither progress nor table.")


def output(text: str, *, required: bool = True) -> Decorator:
    return click.option("-o", "--output", required=required, metavar="FILE", help=text)


def ranking_files(
    ranks: str = "Ranks, as Parquet.", *, required: bool = True,
    depth: str = "Candidates per question in the run.", default_depth: int | None = 1000,
) -> Decorator:  # fmt: skip
    """The ranks, a run with its depth and tag, and qrels."""
    return all_of(
        output(ranks, required=required),
        click.option("--run", metavar="FILE", help="Also write the best candidates as a TREC run."),
        click.option("--qrels", metavar="FILE", help="Also write the answers as TREC qrels."),
        click.option(
            "--run-depth", type=click.IntRange(1), default=default_depth, show_default=True,
            help=depth,
        ),
        click.option("--tag", default="kgtrec", show_default=True,
                     help="Name of the run in its file."),
    )  # fmt: skip


def form(*forms: str, text: str = "Of what is printed.") -> Decorator:
    """--format; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text
    )
