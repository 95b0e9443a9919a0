"""Options of several commands: one name, one type, one default and one meaning each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_PARTS
from kgtrec._internal.text import split_measures
from kgtrec.cli._names import long_name
from kgtrec.cli._report import (
    DRAW,
    FORMATS,
    GRAPH_FOLDER,
    READ,
    WRITE,
)
from kgtrec.cli._report import LATER as LATER
from kgtrec.cli._report import PRINT_TO as PRINT_TO
from kgtrec.cli._report import SCORES as SCORES
from kgtrec.cli._types import Choice as Choice
from kgtrec.cli._types import Count as Count
from kgtrec.cli._types import Number as Number
from kgtrec.cli._types import PathType
from kgtrec.cli._types import Percent as Percent
from kgtrec.cli._types import Seed as Seed
from kgtrec.cli._types import Share as Share
from kgtrec.cli._types import Shares as Shares
from kgtrec.cli._types import parse_counts as parse_counts
from kgtrec.errors import UsageError
from kgtrec.errors import refuse_if as refuse

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling

TESTS = ("randomisation", "t", "wilcoxon", "bootstrap")
CORRECTIONS = ("holm", "bh", "bonferroni", "none")


def system_names(
    files: Sequence[str], names: Sequence[str] = (), *, distinct: bool = True
) -> tuple[str, ...]:
    """Return a name per file: from `names`, the model of a batch's job, or the file's name
    without folder and ending. Files that would have the same name have their paths.

    - distinct: UsageError if two of `names` are equal.
    """
    from kgtrec.ranking.parquet import name_systems

    refuse(*name_problems(names, files, distinct=distinct))
    if names:
        return tuple(names)
    short = name_systems(files)
    return tuple(
        file if not stem or short.count(stem) > 1 else stem
        for stem, file in zip(short, files, strict=True)
    )


def name_problems(
    names: Sequence[str], files: Sequence[object], *, distinct: bool = True
) -> list[tuple[bool, str]]:
    """Return rows for `refuse`: not one --name per file, or two equal ones."""
    same = next((name for n, name in enumerate(names) if distinct and name in names[:n]), None)
    return [
        one_per_file("--name", names, files),
        (same is not None, f"two files are named {same!r}; give each its own --name"),
    ]


def run_names(files: Sequence[str], names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a name per TREC run as `system_names` does; by default as in pools."""
    from kgtrec._internal.named import system_names as names_in_pools

    return system_names(files, names) if names else tuple(names_in_pools(files))


def one_per_file(
    option: str, values: Sequence[object], files: Sequence[object]
) -> tuple[bool, str]:
    """Return a row for `refuse`: an option has values, but not one per file."""
    counts = f"{len(values)} given for {len(files)} files"
    return bool(values) and len(values) != len(files), f"give one {option} per file ({counts})"


Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def on_command_line(name: str) -> bool:
    """Return True if the user typed an option, even with its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def option_of(name: str) -> str:
    """Return the option of a parameter, as users spell it."""
    command = click.get_current_context().command
    return next(long_name(parameter) for parameter in command.params if parameter.name == name)


def list_typed(names: Iterable[str]) -> list[str]:
    """Return the options that the user typed, of some parameters."""
    return [option_of(name) for name in names if on_command_line(name)]


def leave_out(*rows: tuple[object, Sequence[str], str]) -> None:
    """Raise UsageError for the first true row with a typed option, which its sentence names."""
    for applies, names, text in rows:
        if applies and (wrong := list_typed(names)):
            raise UsageError(text.format(", ".join(wrong)))


def all_of(*options: Decorator) -> Decorator:
    """Combine decorators into one; --help lists their options in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(names: str, text: str | None = None, **settings: Any) -> Decorator:
    """Make an option from its names, as in "-o --output" or "--run runs". --help shows defaults."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(*names.split(), help=text, **settings)


def choice(names: str, choices: Sequence[str], text: str, **settings: Any) -> Decorator:
    """Make an option that is one of several words."""
    return option(names, text, type=Choice(choices), **settings)


def measures(names: str, text: str, metavar: str = "NAME", **settings: Any) -> Decorator:
    """Make the option -m, --measure, of several measures: ``-m mrr,hits@10 -m mr``."""
    return option(
        names,
        text,
        multiple=True,
        metavar=f"{metavar},{metavar},...",
        callback=lambda _context, _parameter, typed: read_measures(typed),
        **settings,
    )


def names(
    system: str,
    default: str = "the model of a batch's job, or the file name without folder and ending",
    more: str = "",
) -> Decorator:
    """Make the option --name of a command whose output names the systems of its files."""
    return option(
        "--name names",
        f"Name of a {system}, once per file in their order.{more} Default: {default}.",
        multiple=True,
        metavar="NAME",
    )


flag = partial(option, is_flag=True)
reads = partial(option, type=READ, metavar="FILE")
writes = partial(option, type=WRITE, metavar="FILE")
draws = partial(option, type=DRAW, metavar="FILE")


def files(name: str, metavar: str) -> Decorator:
    """Make an argument of one or more files to read."""
    return click.argument(name, nargs=-1, required=True, metavar=metavar, type=READ)


# -- What is read ----------------------------------------------------------------------------------

GRAPH = option(
    "--graph",
    "Folder with the splits train, valid and test. The format is detected "
    "from the file names, or given as FORMAT:DIR (see `kgtrec formats`).",
    required=True,
    type=GRAPH_FOLDER,
    metavar="DIR",
)
SIDE_NAMES = ("head", "tail", "both", "relation", "qualifier")
ENTITY_SIDE_NAMES = SIDE_NAMES[:3]


def sides(text: str, names: Sequence[str] = ENTITY_SIDE_NAMES) -> Decorator:
    """Make the option --sides."""
    return choice("--sides", names, text, default="both")


SIDES = sides(
    "Which entity of a triple to ask for; or its relation, (h, ?, t); or the values of its "
    "qualifiers.",
    SIDE_NAMES,
)
CONTEXT = choice(
    "--context",
    ["time", "qualifiers"],
    "Required if facts have a time (timed:DIR) "
    "or qualifiers (statements:DIR): ask at the time, or with the qualifiers, of each "
    "fact.",
)
SIDE = choice(
    "--side", SIDE_NAMES, "Predicted side of the triple. Default: all sides in the ranks."
)
SEED_TRIPLES = reads(
    "--seed-triples",
    "Triples of the split whose questions are pooled; see `kgtrec sample`.",
    required=True,
)
QUESTION_NAMES = reads(
    "--questions",
    "Names of questions in the runs, lines "
    "name<TAB>entity<TAB>relation. Default: those of `kgtrec convert "
    "--write-questions` and `kgtrec rank` for the split.",
)

QUESTION_SAMPLE = reads(
    "--sample sample_file",
    "The questions whose whole pool people judge, from `kgtrec pool --write-sample`.",
)

ASKED = reads(
    "--asked",
    "The unfilled sheet, or the folder of all: missing lines, other triples and changed questions "
    "are faults.",
    metavar="SHEET|FOLDER",
)


def graph(text: str, *, required: bool = False) -> Decorator:
    """Make the option --graph of a command that needs it only in some calls."""
    return option("--graph", text, type=GRAPH_FOLDER, metavar="DIR", required=required)


def runs(text: str) -> Decorator:
    """Make the option --run: a run per file of ranks."""
    return reads(
        "--run runs",
        f"One TREC run per file of ranks, in the same order: {text}",
        multiple=True,
        metavar="RUN",
    )


def split(text: str) -> Decorator:
    """Make the option --split."""
    return option("--split", text, default="test")


# -- How it is computed ----------------------------------------------------------------------------

THREADS = option("--threads", "Threads; every core by default.", type=Count(largest=10**400))
COLUMN_LABELS = reads(
    "--columns column_labels",
    "Labels, one per line, in the order of the columns of scores of all entities. By default "
    "columns are in the order of ids (see `kgtrec rank --help`).",
)
LOWER_IS_BETTER = flag("--lower-is-better", "The scores are distances.")
NAN = choice(
    "--nan",
    ["error", "worst"],
    "Treat a NaN score as an error, or as lower than every other score.",
    default="error",
)
HOW_SCORED = all_of(
    choice(
        "--rows",
        ["questions", "instances"],
        "Rows of scores: one per question (as listed by "
        "`kgtrec convert --write-questions`), or one per triple, first all heads in file order, "
        "then all tails.",
        default="questions",
    ),
    LOWER_IS_BETTER,
    NAN,
    THREADS,
)


def seed(text: str, default: int | None = 0) -> Decorator:
    """Make the option --seed. Pass the default None to see whether the user typed it."""
    return option("--seed", text, type=Seed(), metavar="N", default=default)


def confidence(scope: str) -> Decorator:
    """Make the option --ci; `scope` says what the intervals are about."""
    return option(
        "--ci",
        f"Confidence of the intervals, {scope}.",
        type=Percent(),
        default=95.0,
        metavar="PERCENT",
    )


RESAMPLES = Count(100, 1_000_000)


def intervals(drawn: str, resamples: int) -> Decorator:
    """Make the options --ci, --resamples and --seed of intervals that resample whole `drawn`."""
    return all_of(
        confidence(f"which resample whole {drawn}"),
        option("--resamples", "Resamples.", type=RESAMPLES, default=resamples),
        seed("Seed of the draws."),
    )


def resampling(options: Mapping[str, Any]) -> Resampling:
    """Return the resampling from --ci, --resamples and --seed."""
    from kgtrec._internal.bootstrap import Resampling

    return Resampling(options["ci"], options["resamples"], options["seed"])


class MeasureNames(tuple[str, ...]):
    """Names of measures, and the texts that the user typed, which may be lists of names."""

    typed: tuple[str, ...] = ()


def read_measures(typed: Iterable[str]) -> MeasureNames:
    """Split lists of measures, and keep the texts."""
    texts = tuple(typed)
    names = MeasureNames(split_measures(texts))
    names.typed = texts
    return names


def choose_columns(names: Sequence[str], is_column: Callable[[str], object]) -> Sequence[str]:
    """Return the columns of a table that -m names; a typed text that is a column is not split."""
    if not isinstance(names, MeasureNames):
        return names
    texts = names.typed
    return [n for text in texts for n in ([text] if is_column(text) else split_measures([text]))]


def parse_cutoffs(text: str) -> tuple[int, ...]:
    """Parse ``--k 1,3,10``. Return the numbers in ascending order; UsageError for others."""
    return tuple(sorted(set(parse_counts("--k", text))))


N_ENTITIES = option(
    "--n-entities",
    "With --qrels: entities of the graph, for kg_mr, kg_mrr, kg_hits, as in `kgtrec eval`.",
    type=Count(),
    metavar="N",
)
TEST = choice(
    "--test",
    TESTS,
    "Paired test for every pair of systems.  [default: randomisation; of `power` t]",
)
CORRECTION = choice(
    "--correction",
    CORRECTIONS,
    "Correction for many pairs: of any false finding (holm, bonferroni) or their share (bh).",
    default="holm",
)
LEVEL = option(
    "--level",
    "Accepted error probability: p below it is significant.",
    type=Share(whole=False),
    default=0.05,
    metavar="P",
)


def repeats(default: int) -> Decorator:
    """Make the option --repeats."""
    return option(
        "--repeats",
        "Random parts per size.",
        type=Count(1, MOST_PARTS),
        default=default,
        metavar="N",
    )


# -- What is written -------------------------------------------------------------------------------

PLOT = draws("--plot", "Also draw a figure into this file: .pdf, .svg, .png, ...")


def _use_style(ctx: click.Context, _param: click.Parameter, text: str | None) -> None:
    if text is not None:
        from kgtrec.plots.style import Style, using

        ctx.with_resource(using(Style.parse(text)))


STYLE = option(
    "--style",
    "Style of figures: size=9 (points), width=3.25 (inches of a column), "
    "family=serif (font), text=outlines (SVG that needs no font), or several: "
    "size=9,width=3.25.  [default: size=8,width=3.4]",
    metavar="SETTINGS",
    expose_value=False,
    callback=_use_style,
)
FORMAT = choice(
    "--format form",
    FORMATS,
    "Format of the output; csv, tsv and json have full precision.",
    default="table",
)


def _check_label(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    refuse(
        (
            text is not None and not re.fullmatch(r"[A-Za-z0-9:._-]+", text),
            f"--label {text!r} is not a name for references; use letters, digits, colons, dots and "
            "hyphens, as in tab:results",
        )
    )
    return text


def captions(text: str, forms: str = "LaTeX") -> Decorator:
    """Make the options --caption and --label; `forms` are the formats with labels."""
    return all_of(
        option("--caption", text, metavar="TEXT"),
        option(
            "--label",
            f"Name of the table for references in {forms}, such as tab:results.",
            callback=_check_label,
            metavar="NAME",
        ),
    )


CAPTION = captions(
    "Caption of the table, instead of the one that states how models were evaluated.",
    "LaTeX and Typst",
)
LATEX_CAPTION = captions("With --format latex: print a table that floats, with this caption.")


def caption_rules() -> list[tuple[object, str]]:
    """Return rows for `refuse`: --caption and --label of tables that have them only in LaTeX."""
    params = click.get_current_context().params
    typed = ", ".join(list_typed(("caption", "label")))
    return [
        (params["form"] != "latex" and typed, f"{typed}: only --format latex has these"),
        (
            params["label"] and not params["caption"],
            "--label needs --caption, because LaTeX numbers a table by its caption; give both",
        ),
    ]


def note_on_width(points: float, advice: str) -> list[str]:
    """Return a note if LaTeX would make a table's letters small; `advice` says what to leave out.

    - points: Width of the table before LaTeX scales it to its line.
    """
    from kgtrec.study.reporting.formats import PAGE_WIDTH, SMALLEST_LETTERS, letter_size

    size = letter_size(points)
    if size >= SMALLEST_LETTERS:
        return []
    return [
        f"the table is wide: on a line of {PAGE_WIDTH:.0f} pt, LaTeX scales letters of 10 pt to "
        f"about {size:.0f} pt; {advice}"
    ]


def output(text: str, *, required: bool = True, kind: PathType = WRITE) -> Decorator:
    """Make the option -o, --output."""
    return option("-o --output", text, required=required, type=kind, metavar="FILE")


def ranking_files(
    ranks: str = "Ranks, as Parquet.",
    *,
    required: bool = True,
    kind: PathType = WRITE,
    depth: str = "Candidates per question in the run.",
    default_depth: int | None = 1000,
) -> Decorator:
    """Make the options for ranks, a run with its depth and tag, and qrels."""
    return all_of(
        output(ranks, required=required, kind=kind),
        option(
            "--write-run run",
            "Also write the best candidates as a TREC run.",
            type=kind,
            metavar="FILE",
        ),
        option(
            "--write-qrels qrels",
            "Also write the answers as TREC qrels.",
            type=kind,
            metavar="FILE",
        ),
        option("--run-depth", depth, type=Count(), default=default_depth),
        option("--tag", "Name of the run in its file.", default="kgtrec"),
    )


def form(*forms: str, text: str = "Format of the output.") -> Decorator:
    """Make the option --format; the first format is the default."""
    return choice("--format form", forms, text, default=forms[0])
