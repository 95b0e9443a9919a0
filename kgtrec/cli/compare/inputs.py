"""Inputs of `kgtrec compare` and its subcommands: systems, measures, and their values."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kgtrec._internal.arguments import MOST_PERMUTATIONS
from kgtrec._internal.locations import exists
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import list_files, load_comparable
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.comparison.samples import Samples

OF_RANKS = ("both.realistic.micro.mrr", "both.realistic.macro.mrr")
OF_RUNS = ("map_cut_20", "ndcg_cut_20")

FILES = shared.files("files", "FILE FILE ...|BATCH")
NAMES = shared.names("system")
SYSTEMS = shared.all_of(FILES, NAMES)
QRELS = shared.reads(
    "--qrels", "The files are TREC runs; these are their judgements.", metavar="QRELS"
)
TIES = shared.option(
    "--ties",
    "With --qrels: mean, smallest or largest value over all orders of tied documents, or the "
    "value in their order by name. Default: by name, with a warning if ties matter.",
    type=shared.Choice(("expected", "min", "max", "name")),
    expose_value=False,
    callback=lambda ctx, _parameter, value: ctx.meta.update({_TIES: value}),
)
_TIES = "ties of runs"
QRELS_OF_RUNS = shared.reads("--qrels", "Judgements of the runs.", metavar="QRELS", required=True)
MEASURES = shared.measures(
    "-m --measure keys",
    "hits@10 (both.realistic.micro.hits@10), "
    "tail.macro.mrr, map_cut_20, ...; with --qrels map, P.10, AP@20, kg_mrr, "
    "...; repeatable. Default: micro and macro MRR; with --qrels MAP@20 and "
    "nDCG@20.",
    "KEY",
)
TEST = shared.all_of(
    shared.TEST,
    shared.option(
        "--permutations",
        "Number of random sign flips in the randomisation test.",
        type=shared.Count(1, MOST_PERMUTATIONS),
        default=100_000,
    ),
    shared.CORRECTION,
    shared.flag(
        "--cluster",
        "Test micro measures over questions, not instances: valid even if the "
        "instances of a question depend on each other. Intervals always resample whole "
        "questions.",
    ),
)


def check_permutations(test: str) -> None:
    """Raise UsageError for --permutations with another test than randomisation."""
    is_idle = test != "randomisation" and shared.on_command_line("permutations")
    shared.refuse((is_idle, f"--permutations needs --test randomisation, not {test}"))


def name_systems(
    files: tuple[str, ...], qrels: object, least: int = 2, names: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return files by name: from `names`, or names of jobs and file names without endings, or full
    paths if these are equal. A batch's output folder stands for its files.

    UsageError for a repeated file or name, a single file, or the wrong kind of files.
    """
    files = files if qrels else list_files(files, names)
    twice = next((file for n, file in enumerate(files) if file in files[:n]), None)
    shared.refuse(
        (twice is not None, f"{twice!r} is named twice; name each system once"),
        (len(files) < least, _describe_single(files[0])),
    )
    _check_kinds((*files, str(qrels)) if qrels else files, bool(qrels))
    name = shared.run_names if qrels else shared.system_names
    return dict(zip(name(files, names), files, strict=True))


def _describe_single(file: str) -> str:
    """Say why one file is not enough; a pattern that no file matches reaches us unchanged."""
    if glob.has_magic(file) and not exists(file):
        return f"no file matches {file!r}; check the name and the folder"
    return f"one file cannot be compared ({file!r}); give two or more"


def _check_kinds(files: tuple[str, ...], runs: bool) -> None:
    """Refuse runs instead of ranks and ranks instead of runs, by the first bytes of files."""
    for file in filter(os.path.isfile, files):
        with suppress(OSError), open(file, "rb") as stream:
            ranks = stream.read(4) == b"PAR1"
            if runs and ranks:
                raise UsageError(
                    f"{file!r} is a Parquet file, but --qrels needs TREC runs; to compare files of "
                    "ranks, leave out --qrels"
                )
            if not (runs or ranks or file.endswith(".parquet")):
                raise UsageError(
                    f"{file!r} is not a file of ranks, as `kgtrec rank -o` writes them; if it is a "
                    "TREC run, add --qrels QRELS"
                )


def choose_measures(
    keys: Sequence[str], qrels: object, usual: Sequence[str] = OF_RANKS
) -> Sequence[str]:
    """Return the requested measures, or the usual ones; refuse kg_ measures for ranks."""
    of_answers = [key for key in keys if key.startswith("kg_")]
    options = click.get_current_context().params
    shared.refuse(
        (
            of_answers and not qrels,
            f"{', '.join(of_answers)}: kg_ measures need TREC runs and --qrels; for ranks, choose "
            "both.realistic.micro.mrr and the like, which are filtered",
        ),
        (
            options.get("n_entities") and not of_answers,
            "--n-entities needs a kg_ measure; add -m kg_mrr, or leave it out",
        ),
    )
    return keys or (OF_RUNS if qrels else usual)


def order_of_ties() -> str | None:
    """Return the value of --ties; None if it was not given."""
    ties: str | None = click.get_current_context().meta.get(_TIES)
    return ties


def read_samples(
    systems: Mapping[str, str], keys: Sequence[str], qrels: str | None, n_entities: int | None
) -> tuple[list[Samples], list[str]]:
    """Read the values of all systems, per measure; return them and notes."""
    from kgtrec.study import samples_of_ranks, samples_of_runs
    from kgtrec.study.comparison.samples import notes_on_missing

    if qrels is None:
        return samples_of_ranks(load_comparable(systems), keys), []
    ties = order_of_ties()
    samples = samples_of_runs(qrels, systems, keys, entities=n_entities, ties=ties)
    return samples, notes_on_missing(samples[0].unanswered, f"of {len(samples[0]):,} ")


def stack_measures(tables: Mapping[str, Table]) -> Table:
    """Stack tables of measures into one, with the measure in the first column."""
    from kgtrec._internal.table import stack_tables

    return stack_tables(tables, named="measure")
