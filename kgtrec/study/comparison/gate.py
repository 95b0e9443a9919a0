"""Is a new system worse than a base by a margin or more, and could this test set have shown it?

The gain of a measure is new - base, or base - new if lower is better. Its bounds are those of
Student's paired t interval over the units of the measure, clustered by question as in `compare`;
`level` is the error probability of one bound.

========== ====================================================================================
pass       the lower bound of every measure is above -margin
fail       the upper bound of a measure is below -margin, after Holm's correction for the measures
undecided  neither, or the order of tied answers decides
========== ====================================================================================

"All measures pass" needs no correction: a wrong pass needs an error at the measure that is worse
(intersection-union test). The resolution is the true drop that a test of "no drop" at this level
finds with probability `POWER`. It does not depend on the margin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.bootstrap import ROUNDING
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec._internal.text import visible
from kgtrec.errors import UsageError, refuse_if
from kgtrec.measures.metric import same
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.changes import AnswerChanges
from kgtrec.study.comparison.samples import (
    Samples,
    align_ranks,
    checked,
    samples_of_aligned,
    samples_of_runs,
    short_name,
)
from kgtrec.study.comparison.significance import corrected
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.ties import has_tie_form
from kgtrec.trec.measures.trec_measure import EvalOptions

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
ORDERS = ("usual", "optimistic", "pessimistic")
"""Orders of tied answers: that of the measure, all answers win their ties, and all lose them."""
POWER = 0.8
LARGEST = 5
"""Losses and gains that are listed."""
_MOST_UNITS = 1 << 50
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def margin_of(margin: str | float, base: float) -> float:
    """The margin ``0.005``, or ``5%`` of the base's value; UsageError for anything else."""
    text = str(margin).strip()
    number = text.removesuffix("%")
    amount = float(number) if _NUMBER.fullmatch(number) else math.inf
    if not math.isfinite(amount):
        raise UsageError(
            f"{argument('margin', margin)} is not a number from 0 or a percentage of the base; "
            "write 0.005 or 5%"
        )
    return amount if number == text else amount / 100 * abs(base)


@dataclass(frozen=True)
class Gain:
    """The mean gain of a measure over n independent units.

    - error: Standard error of the mean; 0 if all units gain the same.
    """

    mean: float
    error: float
    n: int

    @classmethod
    def of(cls, samples: Samples) -> Gain:
        """The gain from the first system to the second."""
        values = samples.by_cluster().values
        gains = samples.sign * (values[:, 1] - values[:, 0])
        deviation = float(gains.std(ddof=1))
        if deviation <= ROUNDING * np.abs(gains).max():
            deviation = 0.0
        return cls(float(gains.mean()), deviation / math.sqrt(len(gains)), len(gains))

    def reach(self, level: float) -> float:
        """Distance of each bound from the mean."""
        return _quantile(1 - level, self.n) * self.error

    def p_not_worse(self, margin: float) -> float:
        """p of the hypothesis that the true gain is -margin or more."""
        from scipy.special import stdtr

        distance = self.mean + margin
        if not self.error:
            return 0.0 if distance < 0 else 1.0
        return float(stdtr(self.n - 1, distance / self.error))

    def resolution(self, level: float, n: int | None = None) -> float:
        """The smallest detectable drop on n units, by default on those that there are.

        NaN if all units gain the same: their spread is then unknown.
        """
        n = n or self.n
        both = _quantile(1 - level, n) + _quantile(POWER, n)
        return both * self.error * math.sqrt(self.n / n) if self.error else math.nan

    def needed(self, level: float, drop: float) -> int | None:
        """Number of units whose resolution is `drop`; None if that is unknown or too large."""
        if not self.error:
            return None
        low, high = 1, 2
        while self.resolution(level, high) > drop:
            low, high = high, 2 * high
            if high > _MOST_UNITS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.resolution(level, middle) > drop else (low, middle)
        return high


def _quantile(probability: float, n: int) -> float:
    """Quantile of Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, probability))


@dataclass(frozen=True, eq=False)
class MeasureVerdict:
    """The verdict by one measure.

    - margin: In units of the measure.
    - verdicts: In each of `ORDERS` of ties; `gain` is that in the first.
    """

    samples: Samples
    margin: float
    gain: Gain
    level: float
    verdicts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The measure's key without its default parts: "mrr"."""
        return short_name(self.samples.name).removeprefix("micro.")

    @property
    def verdict(self) -> str:
        """ "pass", "fail" or "undecided", also if another order of ties gives another verdict."""
        return self.verdicts[0] if len(set(self.verdicts)) == 1 else UNDECIDED

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        gain, reach = self.gain, self.gain.reach(self.level)
        base, new = self.samples.means().tolist()
        return {
            "measure": self.samples.name,
            "base": base,
            "new": new,
            "gain": gain.mean,
            "low": gain.mean - reach,
            "high": gain.mean + reach,
            "margin": self.margin,
            "verdict": self.verdict,
            "n": gain.n,
            "unit": self.samples.by_cluster().unit,
            "resolution": gain.resolution(self.level),
            "n_for_margin": gain.needed(self.level, self.margin),
            "verdicts_by_ties": dict(zip(ORDERS, self.verdicts, strict=True)),
        }

    def sentence(self) -> str:
        """The verdict in words; if there is none, what is missing for it."""
        facts, digits = self.to_dict(), self.samples.digits + 1
        gain, low, high, resolution = (
            f"{facts[name]:.{digits}f}" for name in ("gain", "low", "high", "resolution")
        )
        text = (
            f"{self.name}: {self.verdict} at a margin of {self.margin:.6g} "
            f"(gain {gain}, between {low} and {high})."
        )
        if len(set(self.verdicts)) > 1:
            orders = ", ".join(
                f"{order} {name}" for order, name in facts["verdicts_by_ties"].items()
            )
            return f"{text} The order of tied answers decides: {orders}. Break the ties."
        if self.verdict != UNDECIDED:
            return text
        if not self.gain.error:
            return f"{text} All {facts['unit']} gain the same; a larger margin passes."
        least = facts["n_for_margin"]
        more = "no number of them is enough for" if least is None else f"about {least:,} can show"
        return (
            f"{text} {facts['n']:,} {facts['unit']} can show a drop of {resolution}; "
            f"{more} one as small as the margin."
        )


@dataclass(frozen=True, eq=False)
class Gate(ShownAsTables):
    """The verdict by all measures; true if it is "pass".

    - losses, gains: The questions with the largest changes, with ranks before and after.
    - notes: Queries that runs lack, and measures for which only one order of ties is known.
    """

    _shown = ("table", "resolution_table", "losses", "gains")

    names: tuple[str, str]
    measures: tuple[MeasureVerdict, ...]
    level: float
    losses: Table
    gains: Table
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """ "pass" if all measures pass, "fail" if any fails, else "undecided"."""
        verdicts = {measure.verdict for measure in self.measures}
        return FAIL if FAIL in verdicts else PASS if verdicts == {PASS} else UNDECIDED

    def __bool__(self) -> bool:
        return self.verdict == PASS

    def table(self) -> Table:
        """A row per measure: values, gain, its bounds, margin and verdict."""
        digits = max(measure.samples.digits for measure in self.measures)
        before, after = self.names
        bounds = [(name, name, digits + 1) for name in ("gain", "low", "high", "margin")]
        columns = [("measure", "measure", 0), (before, "base", digits), (after, "new", digits)]
        return self._table([*columns, *bounds, ("verdict", "verdict", 0)])

    def resolution_table(self) -> Table:
        """A row per measure: the smallest detectable drop, and the units needed for the margin."""
        digits = max(measure.samples.digits for measure in self.measures)
        return self._table(
            [
                ("measure", "measure", 0),
                ("n", "n", 0),
                ("of", "unit", 0),
                ("smallest drop", "resolution", digits + 1),
                ("n for the margin", "n_for_margin", 0),
            ]
        )

    def _table(self, columns: Sequence[tuple[str, str, int]]) -> Table:
        facts = [{**each.to_dict(), "measure": each.name} for each in self.measures]
        rows = [
            tuple("-" if row[key] is None else row[key] for _, key, _ in columns) for row in facts
        ]
        return Table.of(columns, rows)

    def heading(self) -> str:
        """The verdict in one line."""
        before, after = self.names
        return f"{self.verdict.upper()}: is {after} worse than {before} by the margin or more?"

    def sentence(self) -> str:
        """The verdict by each measure, and what the bounds mean."""
        texts = [measure.sentence() for measure in self.measures]
        return " ".join([*texts, f"Each bound holds with {100 * (1 - self.level):g} % confidence."])

    def _lines(self) -> tuple[str, str]:
        return self.heading(), self.sentence()

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        losses, gains = (
            [dict(zip(table.keys, row, strict=True)) for row in table.rows]
            for table in (self.losses, self.gains)
        )
        return {
            "verdict": self.verdict,
            "base": self.names[0],
            "new": self.names[1],
            "level": self.level,
            "power": POWER,
            "losses": losses,
            "gains": gains,
            "measures": [measure.to_dict() for measure in self.measures],
            "notes": [*self.notes],
        }

    def to_junit(self, *, strict: bool = False) -> str:
        """JUnit XML: a test per measure. Undecided ones are skipped, or fail if `strict`."""
        from xml.etree.ElementTree import Element, SubElement, indent, tostring

        suite = Element("testsuite", name=f"kgtrec gate {visible(' '.join(self.names))}")
        failing = {FAIL, UNDECIDED} if strict else {FAIL}
        verdicts = [measure.verdict for measure in self.measures]
        suite.set("tests", str(len(verdicts)))
        suite.set("failures", str(sum(verdict in failing for verdict in verdicts)))
        suite.set("skipped", str(sum(v == UNDECIDED and not strict for v in verdicts)))
        for measure in self.measures:
            case = SubElement(suite, "testcase", classname="kgtrec.gate", name=measure.name)
            if measure.verdict != PASS:
                kind = "failure" if measure.verdict in failing else "skipped"
                SubElement(case, kind, message=visible(measure.sentence()))
            SubElement(case, "system-out").text = visible(measure.sentence())
        indent(suite)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suite, encoding="unicode")


def gate(
    base: Any,
    new: Any,
    measures: Sequence[str] = ("mrr",),
    margin: str | float = 0.0,
    *,
    level: float = 0.05,
    qrels: Any = None,
    names: tuple[str, str] = ("base", "new"),
) -> Gate:
    """Decide whether a new system is worse than a base by a margin or more.

    Parameters
    ----------
    base, new : Ranks, or path or RunColumns
        Ranks of the same questions; or, with `qrels`, runs.
    measures : sequence of str
        Measures that are means, such as "mrr", "macro.hits@10", "map_cut_20".
    margin : float or str
        The accepted loss of every measure: 0.005, or "5%" of the base's value.
    level : float
        Error probability of each bound, below 0.5.
    qrels : path or mapping, optional
        Judgements of the runs.
    names : pair of str
        Names of both systems in tables.

    Returns
    -------
    Gate
        True if the new system passes.

    Raises
    ------
    UsageError
        An unknown measure or one that is not a mean, a margin that is neither a number nor a
        percentage, or a level outside (0, 0.5).
    InputError
        Systems that cannot be compared, see `kgtrec.study.samples_of_ranks`.
    """
    if not 0 < level < 0.5:
        raise UsageError(f"{argument('level', level)} is not between 0 and 0.5; 0.05 is usual")
    margin_of(margin, 0.0)
    keys = [measures] if isinstance(measures, str) else measures
    before, after = names
    refuse_if((before == after, f"both systems are named {before!r}; give different names"))
    systems = {before: base, after: new}
    notes: list[str] = []
    if qrels is None:
        aligned = align_ranks(systems)
        orders = _samples_by_ties(aligned, keys)
        changes = AnswerChanges(names, aligned[before], aligned[after], (1,), None)
        losses, gains = (changes.largest(LARGEST, kind) for kind in ("lost", "gained"))
    else:
        orders, notes = _samples_of_runs_by_ties(qrels, systems, keys)
        losses, gains = (_largest_of_runs(qrels, systems, orders[0][0], sign) for sign in (-1, 1))
    _check_means(orders[0])
    margins = [margin_of(margin, float(samples.means()[0])) for samples in orders[0]]
    by_order = [[Gain.of(samples) for samples in order] for order in orders]
    decided = [_decide(of_order, margins, level) for of_order in by_order]
    rows = zip(orders[0], margins, by_order[0], zip(*decided, strict=True), strict=True)
    verdicts = [MeasureVerdict(*row[:3], level, row[3]) for row in rows]
    return Gate(names, tuple(verdicts), level, losses, gains, tuple(notes))


def _check_means(several: Sequence[Samples]) -> None:
    """UsageError for measures without an interval of the mean, and for a single unit."""
    curved = [short_name(samples.name) for samples in several if samples.transform is not same]
    single = [samples for samples in several if samples.by_cluster().n_clusters < 2]
    refuse_if(
        (
            curved,
            f"{', '.join(curved)}: not a plain mean, so a margin has no paired interval; "
            "choose a measure such as mrr or hits@10",
        ),
        (
            single,
            f"a verdict needs two or more {single[0].by_cluster().unit if single else ''}, "
            "not 1; evaluate on more questions",
        ),
    )


def _decide(gains: Sequence[Gain], margins: Sequence[float], level: float) -> list[str]:
    """The verdict by each measure; failures are corrected for the number of measures."""
    pairs = list(zip(gains, margins, strict=True))
    p = corrected(np.array([gain.p_not_worse(margin) for gain, margin in pairs]), "holm")
    return [
        PASS
        if gain.mean - gain.reach(level) > -margin
        else FAIL
        if p_of_measure < level
        else UNDECIDED
        for (gain, margin), p_of_measure in zip(pairs, p.tolist(), strict=True)
    ]


def _samples_by_ties(aligned: Mapping[str, Ranks], keys: Sequence[str]) -> list[list[Samples]]:
    """Samples in each of `ORDERS`."""
    measures = checked(keys)
    ends = [ends_of_ties(ranks) for ranks in aligned.values()]
    orders = [aligned, *(dict(zip(aligned, end, strict=True)) for end in zip(*ends, strict=True))]
    return [samples_of_aligned(order, measures) for order in orders]


def ends_of_ties(ranks: Ranks) -> tuple[Ranks, Ranks]:
    """The ranks without ties: if all answers win their ties, and if all lose them.

    Of an answer beyond the end of its list, the first and the last possible rank.
    """
    best, worst = ranks.listed_ends() or (ranks, ranks)
    return _break_ties(best, won=True), _break_ties(worst, won=False)


def _break_ties(ranks: Ranks, *, won: bool) -> Ranks:
    columns: dict[str, Any] = ranks.columns()
    before, n_answers = _places_in_ties(ranks, won=won)
    lost = 0 if won else 1
    columns["greater"] = ranks.greater + lost * ranks.equal
    # Answers of a question that tie have consecutive ranks, before or behind all others.
    beyond = lost * (ranks.macro_equal + 1 - n_answers)
    columns["macro_greater"] = ranks.macro_greater + before + beyond
    for name in ("equal", "tied_ahead", "macro_equal", "macro_tied_ahead"):
        columns[name] = np.zeros_like(columns[name])
    return Ranks(columns, ranks.manifest, ranks.relation_labels, ranks.entity_labels)


def _places_in_ties(ranks: Ranks, *, won: bool) -> tuple[Int64, Int64]:
    """How many answers of the same tie precede each answer, and how many there are."""
    grade = np.zeros(len(ranks), np.int64) if ranks.grade is None else ranks.grade
    order = np.lexsort((-grade if won else grade, ranks.macro_greater, ranks.question))
    keys = np.stack([ranks.question, ranks.macro_greater])[:, order]
    starts = np.flatnonzero(np.append(True, (np.diff(keys) != 0).any(axis=0)))
    sizes = np.diff(np.append(starts, len(order)))
    before, n_answers = np.empty((2, len(order)), np.int64)
    before[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    n_answers[order] = np.repeat(sizes, sizes)
    return before, n_answers


def _samples_of_runs_by_ties(
    qrels: Any, systems: Mapping[str, Any], keys: Sequence[str]
) -> tuple[list[list[Samples]], list[str]]:
    """Samples in each of `ORDERS`, and notes. Some measures know only trec_eval's order of ties."""
    if of_answers := [key for key in keys if key.startswith("kg_")]:
        raise UsageError(
            f"{', '.join(of_answers)}: a gate of runs has no measures of answers; give ranks, or a "
            "measure such as map_cut_20"
        )
    usual, missing = samples_of_runs(qrels, systems, keys)
    notes = [
        f"{name}: {count:,} queries of the qrels are not in the run; they count as if nothing "
        "were retrieved"
        for name, count in missing.items()
        if count
    ]
    tied = [column.name for column in resolve(keys) if has_tie_form(column, EvalOptions())]
    notes += [
        f"{samples.name}: tied documents are only in trec_eval's order, so ties may decide"
        for samples in usual
        if samples.name not in tied
    ]
    orders = [usual]
    for end in ("max", "min") if tied else ():
        ends, _ = samples_of_runs(qrels, systems, tied, ties=end)
        by_name = {samples.name: samples for samples in ends}
        orders.append([by_name.get(samples.name, samples) for samples in usual])
    return orders if tied else [usual] * 3, notes


def _largest_of_runs(qrels: Any, systems: Mapping[str, Any], samples: Samples, sign: int) -> Table:
    """The queries with the largest gains (sign 1) or losses (-1), and their first ranks."""
    first, _ = samples_of_runs(qrels, systems, ["recip_rank"])
    gains = sign * samples.sign * (samples.values[:, 1] - samples.values[:, 0])
    order = np.argsort(-gains, kind="stable")[:LARGEST]
    rows = order[gains[order] > 0]
    with np.errstate(divide="ignore"):
        ranks = 1 / first[0].values[rows]
    before, after = samples.systems
    columns: list[Any] = ["query", (before, "base", samples.digits), (after, "new", samples.digits)]
    columns += ["rank before:0", "rank after:0"]
    cells = [samples.items[row] for row in rows.tolist()]
    return Table.of_columns(columns, cells, *samples.values[rows].T, *ranks.T)
