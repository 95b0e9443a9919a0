"""The reports of ``kgtrec compare``, from files to text and figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kgtrec.errors import UsageError
from kgtrec.tables import Table, dump_json, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.ranks import Ranks
    from kgtrec.study.comparison import Comparison
    from kgtrec.study.discriminative import Discrimination
    from kgtrec.study.samples import Samples
    from kgtrec.study.stability import Sensitivity

__all__ = ["Report", "Wish", "make_report"]

DISCRIMINATIVE = ("both.realistic.micro.mrr", "both.realistic.micro.hits@10",
                  "both.realistic.macro.mrr", "both.realistic.macro.hits@10",
                  "both.macro.map_cut_20", "both.macro.ndcg_cut_20")  # fmt: skip


@dataclass(frozen=True)
class Wish:
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
    graph: str | None


@dataclass
class Report:
    """Titled tables with sentences, notes for standard error, and a figure.

    Attributes
    ----------
    parts : list of (heading, tables, sentence)
    data : object
        For JSON.
    rows : Table
        For CSV.
    latex : list of str
        In place of the parts' tables, if given.
    notes : list of str
    drawn : tuple of str and object
        Name of the function of `kgtrec.plots.compare`, and what it draws.
    """

    parts: list[tuple[str, list[Table], str]]
    data: object
    rows: Table
    latex: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    drawn: tuple[str, Any] | None = None

    def rendered(self, form: str) -> str:
        """The report in one of the formats of the command."""
        if form == "json":
            return dump_json(self.data)
        if form == "csv":
            return self.rows.to_csv()
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

    def figure(self) -> Figure:
        """The figure of the report.

        Raises
        ------
        UsageError
            It has none.
        """
        if self.drawn is None:
            raise UsageError("this report has no figure; leave out --plot")
        from kgtrec.plots import compare

        name, data = self.drawn
        made: Figure = getattr(compare, name)(data)
        return made


def make_report(wish: Wish) -> Report:
    """Read the files and make the report that is wished for."""
    if wish.stability:
        return _stability(wish)
    if wish.discriminative:
        return _discriminative(wish)
    if wish.reuse is not None:
        return _reuse(wish)
    if wish.against is not None:
        return _against(wish, wish.against)
    return _comparison(wish)


def _load(wish: Wish) -> dict[str, Ranks]:
    from kgtrec.ranks import Ranks

    return {name: Ranks.load(path) for name, path in wish.systems.items()}


def _samples(wish: Wish, keys: Sequence[str]) -> tuple[list[Samples], list[str]]:
    from kgtrec.study.run_samples import samples_of_runs
    from kgtrec.study.samples import samples_of_ranks

    if wish.qrels is None:
        return samples_of_ranks(_load(wish), keys), []
    samples, missing = samples_of_runs(wish.qrels, wish.systems, keys)
    return samples, _missing_notes(missing, len(samples[0]))


def _missing_notes(missing: Mapping[str, int], total: int) -> list[str]:
    return [
        f"{name}: {count:,} of {total:,} queries of the qrels are not in the run; they count as "
        "if nothing were retrieved"
        for name, count in missing.items()
        if count
    ]


# -- Values, intervals, pairs ------------------------------------------------------------------


def _comparison(wish: Wish) -> Report:
    from kgtrec.study.comparison import compare

    samples, notes = _samples(wish, wish.keys)
    compared = [
        compare(
            one, wish.test or "randomisation", wish.correction, clustered=wish.cluster,
            permutations=wish.permutations, draws=wish.draws, seed=wish.seed,
            confidence=wish.confidence, level=wish.level,
        )
        for one in samples
    ]  # fmt: skip
    parts = [
        (_heading(one.samples, wish), [one.value_table(), one.pair_table()], one.sentence())
        for one in compared
    ]
    data: dict[str, object] = {one.samples.name: one.to_dict() for one in compared}
    alike = _rankings_alike(compared, wish)
    if alike is not None:
        told = (
            "Correlation of the systems' rankings by two measures; intervals from drawing the "
            "questions anew. "
            "tau-AP weighs the top more."
        )
        parts.append(("Do the measures rank alike?", [alike], told))
        data["rankings"] = alike.to_dict()
    pairs = {one.samples.name: one.pair_table() for one in compared}
    return Report(
        parts, data, _by_measure(pairs), [one.latex() for one in compared], notes,
        ("intervals", compared),
    )  # fmt: skip


def _heading(samples: Samples, wish: Wish) -> str:
    what = f"{samples.name}: {len(samples):,} {samples.unit}"
    if samples.n_clusters != len(samples):
        what += f" of {samples.n_clusters:,} questions"
    better = "higher" if samples.higher_is_better else "lower"
    return f"{what} · {better} is better · {wish.confidence:.0%} intervals (drawn by question)"


def _rankings_alike(compared: Sequence[Comparison], wish: Wish) -> Table | None:
    from kgtrec.study.correlation import correlation_table, over_questions

    if len(compared) < 2 or len(wish.systems) < 3:
        return None
    names, found = [], []
    for one, other in combinations(compared, 2):
        names.append((_short(one.samples), _short(other.samples)))
        found.append(
            over_questions(
                one.resampled, other.resampled, x_higher=one.samples.higher_is_better,
                y_higher=other.samples.higher_is_better, confidence=wish.confidence,
            )
        )  # fmt: skip
    return correlation_table(names, found)


def _short(samples: Samples) -> str:
    return samples.name.replace("both.", "").replace("realistic.", "")


def _by_measure(tables: Mapping[str, Table]) -> Table:
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


# -- Two sets of labels ------------------------------------------------------------------------


def _against(wish: Wish, other: str) -> Report:
    from kgtrec.study.bootstrap import resample
    from kgtrec.study.correlation import correlation_table, over_questions, over_systems
    from kgtrec.study.run_samples import samples_of_runs

    if len(wish.systems) < 3:
        raise UsageError(f"{len(wish.systems)} runs have no ranking to speak of; give 3 or more")
    assert wish.qrels is not None
    ours, missing = samples_of_runs(wish.qrels, wish.systems, wish.keys)
    theirs, missing_there = samples_of_runs(other, wish.systems, wish.keys)
    names, found, values = [], [], []
    for one, two in zip(ours, theirs, strict=True):
        higher = one.higher_is_better
        drawn = [resample(each, wish.draws, wish.seed) for each in (one, two)]
        names += [(one.title, "questions"), (one.title, "systems")]
        found.append(over_questions(*drawn, x_higher=higher, y_higher=higher,
                                    confidence=wish.confidence))  # fmt: skip
        found.append(over_systems(one.means(), two.means(), x_higher=higher, y_higher=higher,
                                  draws=wish.draws, seed=wish.seed,
                                  confidence=wish.confidence))  # fmt: skip
        values += [
            (one.title, name, a, b)
            for name, a, b in zip(
                one.systems, one.means().tolist(), two.means().tolist(), strict=True
            )
        ]
    heads = ("measure", "system", wish.qrels, other)
    table = Table(heads, ("measure", "system", "value", "other"), (0, 0, 4, 4), values, 2)
    alike = correlation_table(names, found, ("rankings by", "drawn"))
    told = (
        f"{len(ours[0]):,} queries in {wish.qrels}, {len(theirs[0]):,} in {other}. Intervals from "
        "drawing the questions, or the systems, anew. tau-AP weighs the top more."
    )
    heading = f"Rankings of {len(wish.systems)} runs by {wish.qrels} and by {other}"
    data = {"values": table.to_dict(), "rankings": alike.to_dict()}
    notes = _missing_notes(missing, len(ours[0])) + _missing_notes(missing_there, len(theirs[0]))
    return Report([(heading, [table, alike], told)], data, alike, notes=notes)


# -- Stability, discriminative power, reuse ------------------------------------------------------


def _stability(wish: Wish) -> Report:
    from kgtrec.study.stability import data_sensitivity

    found: Sensitivity = data_sensitivity(
        _load(wish), wish.keys or None, repeats=wish.repeats, seed=wish.seed, progress=None
    )
    table = found.table()
    heading = (
        f"Mean tau-b of the ranking of {len(found.systems)} systems on random parts of the "
        f"{found.triples:,} test triples to that on all ({wish.repeats} parts of each size)"
    )
    mean = found.mean()
    worst = [int(line.argmin()) for line in mean]
    by_area = sorted(range(len(mean)), key=lambda k: -float(mean[k].mean()))
    ranked = ", ".join(f"{found.titles[k]} {mean[k].mean():.4f}" for k in by_area)
    least = min(range(len(mean)), key=lambda k: float(mean[k][worst[k]]))
    told = (
        f"Most stable first, by the mean over all sizes: {ranked}. Least of all: "
        f"{found.titles[least]} on {found.shares[worst[least]]:.0%} of the triples, "
        f"{mean[least][worst[least]]:.4f}."
    )
    return Report([(heading, [table], told)], table.to_dict(), table, drawn=("sensitivity", found))


def _discriminative(wish: Wish) -> Report:
    from kgtrec.study.discriminative import discriminate

    samples, notes = _samples(wish, wish.keys or DISCRIMINATIVE)
    samples = [one.by_cluster() if wish.cluster else one for one in samples]
    found: Discrimination = discriminate(
        samples, wish.test or "t", correction=wish.correction,
        permutations=wish.permutations, seed=wish.seed,
    )  # fmt: skip
    table = found.table(wish.level)
    heading = (
        f"p-values of all {found.p.shape[1]} pairs of {len(wish.systems)} systems "
        f"({found.test} test): the smaller the area, the more a measure tells apart"
    )
    told = "A measure that finds many differences need not find the right ones."
    data = {"summary": table.to_dict(), "p": dict(zip(found.measures, found.p.tolist(),
                                                      strict=True))}  # fmt: skip
    return Report(
        [(heading, [table], told)], data, found.curves(), notes=notes, drawn=("p_curves", found)
    )


def _reuse(wish: Wish) -> Report:
    from kgtrec.graph import read_graph
    from kgtrec.study.poolfile import read_pool
    from kgtrec.study.reuse import contributors_of, leave_one_out
    from kgtrec.trec import read_qrels, read_run

    assert wish.qrels is not None
    assert wish.reuse is not None
    assert wish.graph is not None
    pool, _ = read_pool(wish.reuse, read_graph(wish.graph))
    contributors = contributors_of(pool)
    qrels = read_qrels(wish.qrels)
    runs = {name: read_run(path) for name, path in wish.systems.items()}
    found = [leave_one_out(qrels, runs, contributors, key) for key in wish.keys]
    parts = [
        (f"{one.measure}: each system left out of the pool in turn", [one.table()], one.sentence())
        for one in found
    ]
    tables = {one.measure: one.table() for one in found}
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report(parts, data, _by_measure(tables))
