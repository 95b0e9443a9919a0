"""Several systems, one measure: values with intervals, tests of every pair, and conclusions.

Results of `kgtrec._internal.bootstrap` and `kgtrec.study.comparison.significance` as tables and a
sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.bootstrap import COMPARING, Resampled, Resampling
from kgtrec._internal.csr import Float64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.study.comparison.samples import Samples, resample
from kgtrec.study.comparison.significance import PERMUTATIONS, Effects, PairTests, effects, pairwise

TEST_NAMES = {
    "randomisation": "paired randomisation test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "bootstrap": "paired bootstrap test",
}
CORRECTION_NAMES = {
    "holm": "Holm's correction",
    "bh": "Benjamini and Hochberg's correction",
    "bonferroni": "Bonferroni's correction",
    "none": "no correction for the number of pairs",
}


@dataclass(frozen=True, eq=False)
class SystemComparison(ShownAsTables):
    """Systems by one measure.

    - resampled: Draws of the questions, the same for all systems.
    - level: Level of significance.
    """

    _shown = ("value_table", "pair_table")

    samples: Samples
    resampled: Resampled
    tests: PairTests
    effects: Effects
    level: float = 0.05

    @property
    def resampling(self) -> Resampling:
        """Of the intervals."""
        return self.resampled.resampling

    @property
    def order(self) -> list[int]:
        """Systems, best first; equal ones in the order given."""
        sign = -1.0 if self.samples.higher_is_better else 1.0
        return np.argsort(sign * self.resampled.estimate, kind="stable").tolist()

    def intervals(self) -> Float64:
        """Ends of the systems' intervals, float64 (2, s)."""
        return self.resampled.interval()

    def value_table(self) -> Table:
        """A row per system, best first: value, interval, and whom it significantly beats."""
        low, high = self.intervals().tolist()
        many = len(self.order)
        rows: list[tuple[Cell, ...]] = [
            (letter(row, many), self.samples.systems[i], float(self.resampled.estimate[i]), low[i],
             high[i], letters(beaten, many))
            for row, (i, beaten) in enumerate(zip(self.order, self.beaten(), strict=True))
        ]  # fmt: skip
        digits = self.samples.digits
        columns = ["=letter", "system", f"{self.samples.title}=value:{digits}",
                   *self.resampling.columns(digits), "better than"]  # fmt: skip
        return Table.of(columns, rows, names=2)

    def pair_table(self) -> Table:
        """A row per pair, the better system first: difference, interval, p, effect sizes."""
        place = {system: rank for rank, system in enumerate(self.order)}
        low, high = self.resampled.difference_interval(self.tests.pairs)  # not corrected
        names, pairs = self.samples.systems, []
        for k, (i, j) in enumerate(self.tests.pairs.tolist()):
            turned = place[i] > place[j]
            sign = -1.0 if turned else 1.0
            ends = sorted((sign * float(low[k]), sign * float(high[k])))
            first, second = (j, i) if turned else (i, j)
            share = float(self.effects.superiority[k])
            pairs.append(
                (place[first], place[second], names[first], names[second],
                 sign * float(self.effects.difference[k]), *ends, float(self.tests.p[k]),
                 float(self.tests.corrected[k]), sign * float(self.effects.d_z[k]),
                 1 - share if turned else share)
            )  # fmt: skip
        digits = self.samples.digits
        columns = ["system", "against", f"difference:{digits}", *self.resampling.columns(digits),
                   "p:5", f"{self._p_title()}=p.corrected:5", "d_z:3",
                   "wins=superiority:3"]  # fmt: skip
        rows = [row[2:] for row in sorted(pairs, key=lambda row: row[:2])]
        return Table.of(columns, rows, names=2)

    def method(self) -> str:
        """The test in words: "paired t-test over 20,466 instances, Holm's correction"."""
        return (
            f"{TEST_NAMES[self.tests.test]} over {len(self.tests.samples):,} "
            f"{self.tests.samples.unit}, {CORRECTION_NAMES[self.tests.correction]}"
        )

    def sentence(self, name: str = "") -> str:
        """Conclusions on a measure (its key or another name), and what remains open."""
        better = self.tests.better(self.level)
        names, order = self.samples.systems, self.order
        n_pairs, n_better = len(self.tests.pairs), int(better.sum())
        best = order[0]
        tied = [names[i] for i in order[1:] if not better[best, i]]
        head = f"{name or self.samples.name}: "
        if n_pairs == 1:
            first, second = names[best], names[order[1]]
            p = float(self.tests.corrected[0])
            if n_better:
                head += f"{first} is better than {second}"
            else:
                head += f"{first} and {second} do not differ significantly"
            return f"{head} ({self.method()}: p = {p:.4g})."
        if not tied:
            head += f"{names[best]} is better than every other system"
        elif np.ptp(self.samples.means()) == 0:
            head += "all systems have the same value"
        elif len(tied) == len(order) - 1:
            head += f"{names[best]} comes first, but is not significantly better than any other"
        else:
            head += (
                f"{names[best]} comes first, but is not significantly better than {_listed(tied)}"
            )
        pairs = f"{n_better} of {n_pairs} pairs differ at p < {self.level:g}"
        return f"{head}; {pairs} ({self.method()})."

    def to_dict(self) -> dict[str, object]:
        """Everything, for JSON."""
        values = self.value_table()
        systems = [dict(zip(values.keys, row, strict=True)) for row in values.rows]
        pairs = self.pair_table()
        return {
            "measure": self.samples.name,
            "unit": self.samples.unit,
            "items": len(self.samples),
            "questions": self.samples.n_clusters,
            "higher_is_better": self.samples.higher_is_better,
            "test": self.tests.test,
            "tested_over": self.tests.samples.unit,
            "correction": self.tests.correction,
            "confidence": self.resampling.percent / 100,
            "level": self.level,
            "systems": systems,
            "pairs": [dict(zip(pairs.keys, row, strict=True)) for row in pairs.rows],
            "conclusion": self.sentence(),
        }

    def _of(self) -> str:
        return f" by {self.samples.name}"

    def _lines(self) -> tuple[str, str]:
        names = ", ".join(self.samples.systems)
        return f"{len(self.samples):,} {self.samples.unit}; {names}", self.sentence()

    def _p_title(self) -> str:
        return {"none": "p as it is", "bh": "p (BH)"}.get(
            self.tests.correction, f"p ({self.tests.correction.capitalize()})"
        )

    def beaten(self) -> list[list[int]]:
        """Places of the systems that each significantly beats, best system first."""
        better = self.tests.better(self.level)[np.ix_(self.order, self.order)]
        return [np.flatnonzero(row).tolist() for row in better]


def letter(row: int, many: int) -> str:
    """The name of a row in superscripts: a, b, ...; numbers if there are more than 26 rows."""
    return chr(97 + row) if many <= 26 else str(row + 1)


def letters(rows: Sequence[int], many: int) -> str:
    """The names of several rows as a superscript."""
    return ("" if many <= 26 else ",").join(letter(row, many) for row in rows)


def compare(
    samples: Samples,
    test: str = "randomisation",
    correction: str = "holm",
    *,
    clustered: bool = False,
    permutations: int = PERMUTATIONS,
    resampling: Resampling = COMPARING,
    level: float = 0.05,
) -> SystemComparison:
    """Compare systems by one measure.

    Parameters
    ----------
    samples : Samples
    test, correction, permutations
        See `kgtrec.study.comparison.significance.pairwise`.
    clustered : bool
        If items are instances, test over questions: valid if instances of a question depend on each
        other, with some loss of power. Intervals draw whole questions in either case.
    resampling : Resampling
        How to make intervals and the bootstrap test; the randomisation test uses its seed, too.
    level : float
        Level of significance.

    Raises
    ------
    UsageError
        As for `pairwise` and `resample`; or a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise UsageError(f"level={level!r} is not between 0 and 1; 0.05 is usual")
    resampled = resample(samples, resampling)
    tests = pairwise(
        samples.by_cluster() if clustered else samples, test, correction,
        permutations=permutations, seed=resampling.seed, resampled=resampled,
    )  # fmt: skip
    return SystemComparison(samples, resampled, tests, effects(samples), level)


def _listed(names: list[str], most: int = 5) -> str:
    shown = names if len(names) <= most else names[: most - 1]
    text = ", ".join(shown)
    return text if len(shown) == len(names) else f"{text} and {len(names) - len(shown)} others"
