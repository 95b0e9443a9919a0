"""Decision whether a new system is worse than a base by a margin or more (non-inferiority).

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
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.bootstrap import ROUNDING
from kgtrec._internal.student import student_quantile
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec._internal.text import visible
from kgtrec.errors import UsageError, refuse_if
from kgtrec.ranking.instances import answer_label, question_text
from kgtrec.study.comparison.reference import ORDERS, Reference
from kgtrec.study.comparison.samples import Samples, short_name
from kgtrec.study.comparison.significance import correct_p_values

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
POWER = 0.8
LARGEST = 5
"""Losses and gains that are listed."""
NOT_LISTED = "not listed"
"""The rank of a document that a run lacks."""
_MOST_UNITS = 1 << 50
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def parse_margin(margin: str | float, base: float) -> float:
    """Parse the margin ``0.005``, or ``5%`` of the base's value; UsageError for anything else."""
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
    def from_samples(cls, samples: Samples) -> Gain:
        """Compute the gain from the first system to the second; the units are the clusters."""
        values = samples.values
        gains = samples.sign * (values[:, 1] - values[:, 0])
        deviation = float(gains.std(ddof=1))
        if deviation <= ROUNDING * np.abs(gains).max():
            deviation = 0.0
        return cls(float(gains.mean()), deviation / math.sqrt(len(gains)), len(gains))

    def reach(self, level: float) -> float:
        """Return the distance of each bound from the mean gain."""
        return float(student_quantile(self.n - 1, 1 - level)) * self.error

    def p_not_worse(self, margin: float) -> float:
        """Return p of the hypothesis that the true gain is -margin or more."""
        from scipy.special import stdtr

        distance = self.mean + margin
        if not self.error:
            return 0.0 if distance < 0 else 1.0
        return float(stdtr(self.n - 1, distance / self.error))

    def resolution(self, level: float, n: int | None = None) -> float:
        """Return the smallest detectable drop on `n` units, by default on those of this gain.

        It is 0 if all units gain the same, which then also show no spread.
        """
        n = n or self.n
        both = student_quantile(n - 1, 1 - level) + student_quantile(n - 1, POWER)
        return float(both) * self.error * math.sqrt(self.n / n)

    def units_needed(self, level: float, drop: float) -> int | None:
        """Return the number of units whose resolution is `drop`; None if unknown or too large."""
        if not self.error:
            return None
        sizes = range(2, _MOST_UNITS)
        first = bisect_left(sizes, True, key=lambda n: self.resolution(level, n) <= drop)
        return sizes[first] if first < len(sizes) else None


@dataclass(frozen=True, eq=False)
class MeasureVerdict:
    """The verdict by one measure.

    - margin: Margin in units of the measure.
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
        """Return all values in plain types for JSON."""
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
            "unit": self.samples.unit,
            "resolution": gain.resolution(self.level),
            "n_for_margin": gain.units_needed(self.level, self.margin),
            "verdicts_by_ties": dict(zip(ORDERS, self.verdicts, strict=True)),
        }

    def sentence(self) -> str:
        """Return the verdict in words. If it is undecided, say what is missing."""
        facts, digits = self.to_dict(), self.samples.digits + 1
        gain, low, high, resolution = (
            f"{facts[name]:.{digits}f}" for name in ("gain", "low", "high", "resolution")
        )
        text = (
            f"{self.name}: {self.verdict} at a margin of {self.margin:.6g} "
            f"(gain {gain}, between {low} and {high})."
        )
        if len(set(self.verdicts)) > 1:
            orders = ", ".join(map(" ".join, facts["verdicts_by_ties"].items()))
            return f"{text} The order of tied answers decides: {orders}. Break the ties."
        units = f"{facts['n']:,} {facts['unit']}"
        if not self.gain.error:
            text += f" All {units} gain the same; without a spread, the smallest drop is 0."
            return text + " A larger margin passes." * (self.verdict == UNDECIDED)
        if self.verdict != UNDECIDED:
            return text
        least = facts["n_for_margin"]
        more = "no number of them is enough for" if least is None else f"about {least:,} can show"
        return f"{text} {units} can show a drop of {resolution}; {more} one as small as the margin."


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
        """Return a table with a row per measure: values, gain, its bounds, margin and verdict."""
        digits = max(measure.samples.digits for measure in self.measures)
        before, after = self.names
        bounds = [(name, name, digits + 1) for name in ("gain", "low", "high", "margin")]
        columns = [("measure", "measure", 0), (before, "base", digits), (after, "new", digits)]
        return self._table([*columns, *bounds, ("verdict", "verdict", 0)])

    def resolution_table(self) -> Table:
        """Return a table with a row per measure.

        It has the smallest detectable drop, and the units needed for the margin."""
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
        return Table.from_rows(columns, rows)

    def heading(self) -> str:
        """Return the verdict in one line."""
        before, after = self.names
        return f"{self.verdict.upper()}: is {after} worse than {before} by the margin or more?"

    def sentence(self) -> str:
        """Return sentences with the verdict by each measure, and the meaning of the bounds."""
        texts = [measure.sentence() for measure in self.measures]
        return " ".join([*texts, f"Each bound holds with {100 * (1 - self.level):g} % confidence."])

    def _lines(self) -> tuple[str, str]:
        return self.heading(), self.sentence()

    def to_dict(self) -> dict[str, Any]:
        """Return all values in plain types for JSON."""
        return {
            "verdict": self.verdict,
            "base": self.names[0],
            "new": self.names[1],
            "level": self.level,
            "power": POWER,
            "losses": _rows_of(self.losses),
            "gains": _rows_of(self.gains),
            "measures": [measure.to_dict() for measure in self.measures],
            "notes": [*self.notes],
        }

    def to_junit(self, *, strict: bool = False) -> str:
        """Return JUnit XML: a test per measure; undecided ones are skipped, or fail if `strict`."""
        from xml.etree.ElementTree import Element, SubElement, indent, tostring

        suite = Element("testsuite", name=f"kgtrec gate {visible(' '.join(self.names))}")
        failing = {FAIL, UNDECIDED} if strict else {FAIL}
        verdicts = [measure.verdict for measure in self.measures]
        suite.set("tests", str(len(verdicts)))
        suite.set("errors", "0")
        suite.set("failures", str(sum(verdict in failing for verdict in verdicts)))
        suite.set("skipped", str(sum(v == UNDECIDED and not strict for v in verdicts)))
        for measure in self.measures:
            case = SubElement(
                suite, "testcase", classname="kgtrec.gate", name=measure.name, time="0"
            )
            if measure.verdict != PASS:
                kind = "failure" if measure.verdict in failing else "skipped"
                SubElement(case, kind, message=visible(measure.sentence()))
            SubElement(case, "system-out").text = visible(measure.sentence())
        indent(suite)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suite, encoding="unicode")


def gate(
    base: Any,
    new: Any,
    measures: Sequence[str] | None = None,
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
        Ranks of the same questions; or, with `qrels`, runs. The base can also be a `Reference`.
    measures : sequence of str, optional
        Measures that are means, such as "mrr", "macro.hits@10", "map_cut_20". By default those of
        the reference, or "mrr".
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
        Systems of other questions, filters or candidates.
    """
    if not 0 < level < 0.5:
        raise UsageError(f"{argument('level', level)} is not between 0 and 0.5; 0.05 is usual")
    parse_margin(margin, 0.0)
    refuse_if((names[0] == names[1], f"both systems are named {names[0]!r}; name them differently"))
    if isinstance(base, Reference):
        measures = base.measures if measures is None else measures
    else:
        measures = ("mrr",) if measures is None else measures
        base = Reference.from_system(base, measures, qrels=qrels, name=names[0])
    base.check_same_questions(new, qrels, names)
    after = Reference.from_system(new, measures, qrels=qrels, name=names[1])
    orders = [
        [_pair_samples(names, *pair) for pair in zip(*order, strict=True)]
        for order in zip(base.select(after.orders[0]), after.orders, strict=True)
    ]
    margins = [parse_margin(margin, float(samples.means()[0])) for samples in orders[0]]
    gains = [[Gain.from_samples(samples) for samples in order] for order in orders]
    decided = zip(*(_decide(of_order, margins, level) for of_order in gains), strict=True)
    rows = zip(orders[0], margins, gains[0], decided, strict=True)
    verdicts = [MeasureVerdict(*row[:3], level, row[3]) for row in rows]
    losses, won = (_largest(base, after, orders[0][0], sign) for sign in (-1, 1))
    notes = dict.fromkeys([*base.notes, *after.notes])
    return Gate(names, tuple(verdicts), level, losses, won, tuple(notes))


def _rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows for JSON; the rank of a document that is not listed is null."""
    return [
        {
            key: None if key.startswith("rank_") and cell == NOT_LISTED else cell
            for key, cell in zip(table.keys, row, strict=True)
        }
        for row in table.rows
    ]


def _pair_samples(names: tuple[str, str], before: Samples, after: Samples) -> Samples:
    """Return samples with the values of both systems side by side."""
    values = np.column_stack([before.values, after.values])
    return replace(after, systems=names, values=values, weight=None)


def _decide(gains: Sequence[Gain], margins: Sequence[float], level: float) -> list[str]:
    """Return the verdict by each measure. Failures are corrected for the number of measures."""
    pairs = list(zip(gains, margins, strict=True))
    p = correct_p_values(np.array([gain.p_not_worse(margin) for gain, margin in pairs]), "holm")
    return [
        PASS
        if gain.mean - gain.reach(level) > -margin
        else FAIL
        if p_of_measure < level
        else UNDECIDED
        for (gain, margin), p_of_measure in zip(pairs, p.tolist(), strict=True)
    ]


def _largest(before: Reference, after: Reference, samples: Samples, sign: int) -> Table:
    """Return a table of the largest gains (`sign` 1) or losses (-1).

    Of ranks, these are the answers by reciprocal rank; of runs, the queries by the first measure.
    """
    old, new = before.ranks, after.ranks
    if after.ranked is None:
        gains = sign * samples.sign * (samples.values[:, 1] - samples.values[:, 0])
    else:
        gains = sign * (1 / new - 1 / old)
    order = np.argsort(-gains, kind="stable")[:LARGEST]
    rows = order[gains[order] > 0].tolist()
    base, changed = samples.systems
    if after.ranked is not None:
        labels = [answer_label(after.ranked, int(after.ranked.answer[row])) for row in rows]
        questions = [question_text(after.ranked, row) for row in rows]
        columns: list[Any] = ["question", "answer", (base, "before", 1), (changed, "after", 1)]
        return Table.from_columns(columns, questions, labels, old[rows], new[rows], names=2)
    ranks = [
        [NOT_LISTED if math.isinf(rank) else rank for rank in ranks[rows].tolist()]
        for ranks in (old, new)
    ]
    columns = ["query", (base, "base", samples.digits), (changed, "new", samples.digits)]
    columns += ["rank before:0", "rank after:0"]
    queries = [after.questions[row] for row in rows]
    return Table.from_columns(columns, queries, *samples.values[rows].T, *ranks)
