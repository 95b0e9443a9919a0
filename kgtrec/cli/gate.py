"""``kgtrec gate``: pass, fail or undecided, for every change of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.locations import is_folder
from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_comparable
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare.inputs import QRELS, choose_measures, name_systems

if TYPE_CHECKING:
    from kgtrec.study.comparison.gate import Gate

CODES = {"pass": 0, "fail": 20, "undecided": 21}
"""Exit codes by verdict. No error has 20 or 21."""


@click.command(cls=Command)
@shared.files("files", "BASE [NEW]")
@shared.measures(
    "-m --measure keys",
    "hits@10 (both.realistic.micro.hits@10), tail.macro.mrr, map_cut_20, ...; with --qrels map, "
    "P.10, ...; repeatable. Default: those of a reference; otherwise micro and macro MRR, with "
    "--qrels MAP@20 and nDCG@20.",
    "KEY",
)
@shared.option(
    "--margin",
    "The loss that is accepted in each measure: 0.005, or 5% of the base's value.",
    metavar="M",
)
@shared.option(
    "--level",
    "Error probability of each bound of the gain.",
    type=shared.Number(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    metavar="P",
)
@QRELS
@shared.names("system")
@shared.flag("--strict", "Exit with 20, too, if the gate is undecided.")
@shared.form(
    "text",
    "json",
    "markdown",
    "junit",
    text="Format of the output: markdown for a pull request, junit for reports of tests.",
)
@shared.option(
    "-o --output",
    "Write the output to FILE instead of printing it.",
    type=shared.PRINT_TO,
    metavar="FILE",
)
@shared.option(
    "--save",
    "Only write BASE to FILE as a reference: its values per question. FILE is then a BASE.",
    type=shared.WRITE,
    metavar="FILE",
)
def command(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Is NEW worse than BASE by the margin or more, and could this test set have shown it? Both are
    ranks (`kgtrec rank`) of the same questions, or TREC runs with --qrels. BASE can be a reference.

    The gain of a measure is NEW - BASE, or BASE - NEW if lower is better. Its bounds are those of a
    paired t interval over questions. The gate passes if the lower bound of every measure is above
    -M, and fails if the upper bound of one is below -M (Holm's correction for several measures). It
    is undecided otherwise, or if the order of tied answers decides. The smallest drop that the test
    set finds with probability 0.8 is always printed.

    \b
    kgtrec gate main.parquet branch.parquet -m mrr -m hits@10 --margin 0.005
    kgtrec gate main.run branch.run --qrels test.qrels -m ndcg_cut_10 --margin 5%
    kgtrec gate main.parquet -m mrr --save reference.json
    kgtrec gate reference.json branch.parquet --margin 0.01 --format junit -o gate.xml

    Exit codes: 0 pass; 20 fail; 21 undecided (--strict: 20); others as in `kgtrec --help`.
    """
    folder = next((file for file in files if is_folder(file)), None)
    shared.refuse((folder is not None, f"{folder!r} is a folder; give files as BASE and NEW"))
    if options["save"]:
        return _save(files, keys, options)
    shared.refuse(
        (len(files) != 2, f"a gate needs BASE and NEW; give two files, not {len(files)}"),
        (options["margin"] is None, "--margin is missing; give the accepted loss: 0.005 or 5%"),
    )
    decided = _decide(files, keys, options)
    sections = [
        (decided.heading(), [decided.table()], decided.sentence()),
        ("The smallest drop that this test set finds", [decided.resolution_table()], ""),
        ("Largest losses", [decided.losses], "" if len(decided.losses) else "None."),
        ("Largest gains", [decided.gains], "" if len(decided.gains) else "None."),
    ]
    report = Report.from_sections(
        sections, decided.to_dict(), decided.table(), notes=[*decided.notes]
    )
    assert report.text is not None
    strict = options["strict"]
    junit = partial(decided.to_junit, strict=strict)
    report.forms = {**report.forms, "text": report.text, "junit": junit}
    report.code = CODES["fail" if strict and decided.verdict == "undecided" else decided.verdict]
    return report


def _decide(files: tuple[str, ...], keys: tuple[str, ...], options: Mapping[str, Any]) -> Gate:
    """Compare the two files; return the verdict by each measure."""
    from kgtrec.study import Reference, gate

    qrels, base, names = options["qrels"], files[0], options["names"]
    shared.refuse(shared.one_per_file("--name", names, files))
    reference = Reference.load(base) if _is_json(base) else None
    read = slice(reference is not None, None)
    runs_by_name = name_systems(files[read], qrels, least=1, names=names[read])
    systems: dict[str, Any] = dict(runs_by_name if qrels else load_comparable(runs_by_name))
    if reference is not None:
        name = names[0] if names else Path(base).stem
        systems = {base if name in systems else name: reference, **systems}
        keys = keys or tuple(reference.measures)
    measures = choose_measures(keys, qrels)
    before, after = systems
    return gate(
        systems[before],
        systems[after],
        measures,
        options["margin"],
        level=options["level"],
        qrels=qrels,
        names=(before, after),
    )


def _save(files: tuple[str, ...], keys: tuple[str, ...], options: Mapping[str, Any]) -> Report:
    """Write the reference of a file."""
    from kgtrec.study import Reference

    idle = shared.list_typed(["margin", "level", "strict", "form", "output"])
    shared.refuse(
        (len(files) != 1, f"--save writes only BASE; give one file, not {len(files)}"),
        (idle, f"--save gives no verdict; leave out {', '.join(idle)}"),
    )
    qrels = options["qrels"]
    measures = choose_measures(keys, qrels)
    ((name, file),) = name_systems(files, qrels, least=1, names=options["names"]).items()
    system: Any = file if qrels else load_comparable({name: file})[name]
    reference = Reference.from_system(system, measures, qrels=qrels, name=name)
    content = f"{', '.join(reference.measures)} of {reference.size()}"
    return Report(
        files=[(options["save"], reference.save)], content=content, notes=[*reference.notes]
    )


def _is_json(path: str) -> bool:
    """Return True if a file begins like a saved reference; ranks and runs begin differently."""
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(1) == b"{"
    return False
