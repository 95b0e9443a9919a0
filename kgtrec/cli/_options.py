"""Options that several commands have: one name, one type, one default and one meaning each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli._names import long_name
from kgtrec.cli._report import (
    DRAW,
    FORMATS,
    GRAPH_FOLDER,
    READ,
    WRITE,
    Choice,
    PathType,
)
from kgtrec.cli._report import LATER as LATER
from kgtrec.cli._report import PRINT_TO as PRINT_TO
from kgtrec.cli._report import SCORES as SCORES
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling

TESTS = ("randomisation", "t", "wilcoxon", "bootstrap")
CORRECTIONS = ("holm", "bh", "bonferroni", "none")


def system_names(files: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each file: as given, or its own without folder and ending."""
    from kgtrec.ranking.parquet import system_name

    refuse(one_per_file("--name", names, files))
    return names or tuple(map(system_name, files))


def refuse(*rows: tuple[object, str]) -> None:
    """UsageError with the sentences of all rows whose condition holds."""
    problems = [problem for applies, problem in rows if applies]
    if problems:
        raise UsageError("; ".join(problems))


def one_per_file(
    option: str, values: Sequence[object], files: Sequence[object]
) -> tuple[bool, str]:
    """A row for `refuse`: an option that is given for some of the files only."""
    counts = f"{len(values)} given for {len(files)} files"
    return bool(values) and len(values) != len(files), f"give one {option} per file ({counts})"


Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def on_command_line(name: str) -> bool:
    """Whether the user has typed an option, even if with its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def option_of(name: str) -> str:
    """How the user spells the option with a parameter of this name."""
    command = click.get_current_context().command
    return next(long_name(one) for one in command.params if one.name == name)


def all_of(*options: Decorator) -> Decorator:
    """One decorator of several, listed by --help in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- What is read ----------------------------------------------------------------------------------

GRAPH = click.option(
    "--graph", required=True, type=GRAPH_FOLDER, metavar="DIR",
    help="Folder with the splits train, valid and test. The format is detected from the file "
    "names, or given as FORMAT:DIR (see `kgtrec formats`).",
)  # fmt: skip
SIDE_NAMES = ("head", "tail", "both", "relation", "qualifier")
ENTITY_SIDE_NAMES = SIDE_NAMES[:3]


def sides(text: str, names: Sequence[str] = ENTITY_SIDE_NAMES) -> Decorator:
    return click.option("--sides", type=Choice(names), default="both", show_default=True, help=text)


SIDES = sides(
    "Which entity of a triple to ask for; or its relation, (h, ?, t); or the values of its "
    "qualifiers.",
    SIDE_NAMES,
)
CONTEXT = click.option(
    "--context", type=Choice(["time", "qualifiers"]),
    help="Required if facts have a time (timed:DIR) or qualifiers (statements:DIR): ask at the "
    "time, or with the qualifiers, of each fact.",
)  # fmt: skip
SIDE = click.option(
    "--side", type=Choice(SIDE_NAMES),
    help="Predicted side of the triple. Default: all sides in the ranks.",
)  # fmt: skip
SEED_TRIPLES = click.option(
    "--seed-triples", required=True, type=READ, metavar="FILE",
    help="Triples of the split whose questions are pooled; see `kgtrec sample`.",
)  # fmt: skip
QUESTION_NAMES = click.option(
    "--questions", type=READ, metavar="FILE",
    help="Names of questions in the runs, lines name<TAB>entity<TAB>relation. Default: those of "
    "`kgtrec convert --write-questions` and `kgtrec rank` for the split.",
)  # fmt: skip


def graph(text: str, *, required: bool = False) -> Decorator:
    """A graph that some calls need only."""
    return click.option("--graph", type=GRAPH_FOLDER, metavar="DIR", required=required, help=text)


def runs(text: str) -> Decorator:
    """Runs beside files of ranks."""
    return click.option(
        "--run", "runs", type=READ, multiple=True, metavar="RUN",
        help=f"A TREC run per file of ranks, in their order: {text}",
    )  # fmt: skip


def split(text: str) -> Decorator:
    return click.option("--split", default="test", show_default=True, help=text)


# -- How it is computed ----------------------------------------------------------------------------

THREADS = click.option("--threads", type=click.IntRange(1), help="Threads; every core by default.")
LOWER_IS_BETTER = click.option("--lower-is-better", is_flag=True, help="The scores are distances.")
NAN = click.option(
    "--nan", type=Choice(["error", "worst"]), default="error", show_default=True,
    help="Treat a NaN score as an error, or as lower than every other score.",
)  # fmt: skip
HOW_SCORED = all_of(
    click.option(
        "--rows", type=Choice(["questions", "instances"]), default="questions",
        show_default=True,
        help="Rows of scores: one per question (as listed by `kgtrec convert --write-questions`), "
        "or one per triple, first all heads in file order, then all tails.",
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
    """--ci, --resamples and --seed of intervals that resample whole `drawn`."""
    return all_of(
        confidence(f"which resample whole {drawn}"),
        click.option(
            "--resamples", type=int, default=resamples, show_default=True, help="Resamples."
        ),
        seed("Seed of the draws."),
    )  # fmt: skip


def resampling(options: Mapping[str, Any]) -> Resampling:
    """What --ci, --resamples and --seed say."""
    from kgtrec._internal.bootstrap import Resampling

    return Resampling(options["ci"], options["resamples"], options["seed"])


def cutoffs_of(text: str) -> tuple[int, ...]:
    """The numbers of ``--k 1,3,10``, ascending; UsageError if one is not."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UsageError(f"--k {text!r}: write numbers of 1 or more, as 1,3,10")
    return tuple(sorted({int(word) for word in words}))


N_ENTITIES = click.option(
    "--n-entities", type=click.IntRange(1), metavar="N",
    help="With --qrels: entities of the graph, for kg_mr, kg_mrr, kg_hits, as in `kgtrec eval`.",
)  # fmt: skip
TEST = click.option(
    "--test", type=Choice(TESTS),
    help="Paired test for every pair of systems.  [default: randomisation; of `power` t]",
)  # fmt: skip
CORRECTION = click.option(
    "--correction", type=Choice(CORRECTIONS), default="holm", show_default=True,
    help="Correction for many pairs: of any false finding (holm, bonferroni) or their share (bh).",
)  # fmt: skip
LEVEL = click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, metavar="P", help="Accepted error probability: p below it is significant.",
)  # fmt: skip


def repeats(default: int) -> Decorator:
    return click.option(
        "--repeats", type=click.IntRange(1), default=default, show_default=True, metavar="N",
        help="Random parts per size.",
    )  # fmt: skip


# -- What is written -------------------------------------------------------------------------------

PLOT = click.option(
    "--plot", type=DRAW, metavar="FILE", help="Also draw this: .pdf, .svg, .png, ..."
)


def _use_style(ctx: click.Context, _param: click.Parameter, text: str | None) -> None:
    if text is not None:
        from kgtrec.plots.style import Style, using

        ctx.with_resource(using(Style.parse(text)))


STYLE = click.option(
    "--style", metavar="SETTINGS", expose_value=False, callback=_use_style,
    help="Of figures, as a paper asks: size=9,width=3.25,family=serif (points, inches of a column, "
    "a font), text=outlines (SVG that needs no font), or some of them.  "
    "[default: size=8,width=3.4]",
)  # fmt: skip
FORMAT = click.option(
    "--format", "form", type=Choice(FORMATS), default="table", show_default=True,
    help="Format of the output; csv, tsv and json have full precision.",
)  # fmt: skip


def output(text: str, *, required: bool = True, kind: PathType = WRITE) -> Decorator:
    return click.option("-o", "--output", required=required, type=kind, metavar="FILE", help=text)


def ranking_files(
    ranks: str = "Ranks, as Parquet.", *, required: bool = True, kind: PathType = WRITE,
    depth: str = "Candidates per question in the run.", default_depth: int | None = 1000,
) -> Decorator:  # fmt: skip
    """The ranks, a run with its depth and tag, and qrels."""
    return all_of(
        output(ranks, required=required, kind=kind),
        click.option(
            "--write-run", "run", type=kind, metavar="FILE",
            help="Also write the best candidates as a TREC run.",
        ),
        click.option(
            "--write-qrels", "qrels", type=kind, metavar="FILE",
            help="Also write the answers as TREC qrels."
        ),
        click.option(
            "--run-depth", type=click.IntRange(1), default=default_depth, show_default=True,
            help=depth,
        ),
        click.option("--tag", default="kgtrec", show_default=True,
                     help="Name of the run in its file."),
    )  # fmt: skip


def form(*forms: str, text: str = "Format of the output.") -> Decorator:
    """--format; the first is the default."""
    return click.option(
        "--format", "form", type=Choice(forms), default=forms[0], show_default=True, help=text
    )
