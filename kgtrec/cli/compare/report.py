"""What ``kgtrec compare`` is asked for, and the report that it makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kgtrec._internal.table import Table, dump_json, stacked
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.samples import Samples

__all__ = ["CompareOptions", "Report", "by_measure", "load_ranks", "missing_notes", "short_key"]


@dataclass(frozen=True)
class CompareOptions:
    """What was asked for, by the names of the options."""

    systems: Mapping[str, str]
    keys: Sequence[str]
    qrels: str | None
    test: str | None
    correction: str
    cluster: bool
    permutations: int
    draws: int
    seed: int
    level: float
    confidence: float
    against: str | None
    stability: bool
    repeats: int
    discriminative: bool
    reuse: str | None
    depths: str | None
    reproduction: bool
    graph: str | None
    by: str | None = None
    ratios: str | None = None
    replicates: bool = False
    epsilon: float = 0.01
    runs: Sequence[str] = ()
    entities: int | None = None
    table: str | None = None
    against_graph: str | None = None
    questions: str | None = None


@dataclass
class Report:
    """Titled tables with sentences, notes for standard error, and figures.

    Attributes
    ----------
    parts : list of (heading, tables, sentence)
    data : object
        For JSON.
    rows : Table
        For CSV and TSV.
    latex : list of str
        In place of the parts' tables, if given.
    notes : list of str
    figures : dict of str to (str, str, object)
        "" for --plot, "pairs" for --plot-pairs, ... to the module of `kgtrec.plots`, its function,
        and what that draws.
    """

    parts: list[tuple[str, list[Table], str]]
    data: object
    rows: Table
    latex: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, tuple[str, str, Any]] = field(default_factory=dict)

    def rendered(self, form: str) -> str:
        """The report in one of the formats of the command."""
        if form == "json":
            return dump_json(self.data)
        if form in ("csv", "tsv"):
            return self.rows.to_csv("," if form == "csv" else "\t")
        if form == "latex":
            own = [t.to_latex() for _, tables, _ in self.parts for t in tables]
            return "\n".join(self.latex or own)
        from textwrap import fill

        blocks: list[str] = []
        for heading, tables, sentence in self.parts:
            if form == "markdown":
                blocks += [f"**{heading}**", *(table.to_markdown().rstrip() for table in tables)]
                blocks.append(sentence)
            else:
                blocks += [fill(heading, 80), *(table.to_text() for table in tables)]
                blocks.append(fill(sentence, 80, break_on_hyphens=False))
        return "\n\n".join(block for block in blocks if block)

    def figure(self, kind: str = "") -> Figure:
        """One of the figures of the report.

        Raises
        ------
        UsageError
            There is none: one measure's ranking has no other beside it.
        """
        from importlib import import_module

        if kind not in self.figures:
            raise UsageError("--plot-rankings holds measures against each other; name two at least")
        module, name, data = self.figures[kind]
        made: Figure = getattr(import_module(f"kgtrec.plots.{module}"), name)(data)
        return made


def load_ranks(files: Mapping[str, str]) -> dict[str, Ranks]:
    """Ranks by system, with warnings of what makes their values other than people take them for."""
    from kgtrec.cli._warnings import warn_of_each
    from kgtrec.ranking.ranks import Ranks

    loaded = {name: Ranks.load(path) for name, path in files.items()}
    warn_of_each({files[name]: ranks for name, ranks in loaded.items()})
    return loaded


def missing_notes(missing: Mapping[str, int], total: int) -> list[str]:
    """What is said of runs that lack queries."""
    return [
        f"{name}: {count:,} of {total:,} queries of the qrels are not in the run; they count as "
        "if nothing were retrieved"
        for name, count in missing.items()
        if count
    ]


def short_key(samples: Samples) -> str:
    """A measure's key without what is most often said: "micro.mrr"."""
    from kgtrec.study.comparison.samples import short_name

    return short_name(samples.name)


def by_measure(tables: Mapping[str, Table]) -> Table:
    """One table of several, a first column naming the measure, also where it is one."""
    table = next(iter(tables.values()))
    whole = stacked(tables)
    if whole is table:
        (name,) = tables
        rows = [(name, *row) for row in table.rows]
        return Table(("measure", *table.titles), ("measure", *table.keys), (0, *table.digits),
                     rows, table.names + 1)  # fmt: skip
    return Table(("measure", *whole.titles[1:]), ("measure", *whole.keys[1:]), whole.digits,
                 whole.rows, whole.names)  # fmt: skip
