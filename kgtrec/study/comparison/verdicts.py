"""Verdicts of several comparisons, which show if a conclusion depends on the measure or the labels.

A verdict has a sign (the system that is ahead) and a significance (is p below the level?). The
open-world paper (Yang et al. 2022, section 5) recommends measures in addition to MRR, because
missing answers can change the order of two systems by MRR. Zhou et al. (2022, section 5) compare
verdicts by sparse and by completed labels, and by micro and macro metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import ROUNDING
from kgtrec._internal.table import Cell, PValue, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.report import SystemComparison
from kgtrec.study.comparison.samples import distinct_titles

MEASURES = (
    "both.realistic.micro.mrr",
    "both.realistic.micro.log_mrr",
    "both.realistic.micro.p_mrr@0.5",
    "both.realistic.micro.hits@10",
    "both.realistic.macro.mrr",
    "both.macro.map_cut_20",
)
"""Measures that stress the first places to different degrees, per instance and per question."""
MEASURES_OF_RUNS = ("kg_mrr", "kg_hits.10", "recip_rank", "map_cut_20")
"""Those of `MEASURES` that can be computed from runs."""
MOST = 5
"""Most pairs that a sentence describes."""


@dataclass(frozen=True, eq=False)
class Verdicts(ShownAsTables):
    """Verdicts on every pair of systems, one per measure and set of labels.

    The first system of a pair is the system that is ahead by the first measure.

    - pairs, int64 (p, 2): Indices of both systems.
    - difference, float64 (p, m): Value of the first system minus that of the second.
    - sign, int64 (p, m): 1 if the first system is ahead, -1 if the second is, 0 if they are equal.
      By measures such as MR, the system with the lower value is ahead.
    - p, float64 (p, m): p-values, corrected for the number of pairs, not of measures.
    """

    _shown = ("table",)

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    labels: tuple[str, ...]
    pairs: Int64
    difference: Float64
    sign: Int64
    p: Float64
    level: float

    @property
    def significant(self) -> Bools:
        """True if the system that is ahead is significantly better, bool (p, m)."""
        return np.asarray((self.p < self.level) & (self.sign != 0))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the verdicts: measures, with their labels if there are several sets of these.

        For example, "MRR (complete)".
        """
        if len({*self.labels}) == 1:
            return self.measures
        named = zip(self.measures, self.labels, strict=True)
        return tuple(f"{measure} ({label})" for measure, label in named)

    def agree(self) -> Bools:
        """Return True for pairs whose verdicts have the same sign and significance, bool (p,)."""
        sure = self.significant
        same = (self.sign == self.sign[:, :1]) & (sure == sure[:, :1])
        return np.asarray(same.all(axis=1))

    def table(self) -> Table:
        """Return a table with a row per pair and verdict, with the difference and p."""
        labelled = len({*self.labels}) > 1
        rows: list[tuple[Cell, ...]] = []
        for row, pair in enumerate(self.pairs.tolist()):
            first, second = (self.systems[i] for i in pair)
            for k, measure in enumerate(self.measures):
                names = (first, second, measure, *([self.labels[k]] if labelled else []))
                numbers = float(self.difference[row, k]), PValue(self.p[row, k])
                rows.append((*names, *numbers, self._word(row, k)))
        columns = [
            "system",
            "against",
            "measure",
            *(["labels"] if labelled else []),
            "difference:4",
            "p (corrected)=p.corrected:4",
            "verdict",
        ]
        return Table.from_rows(columns, rows, names=3 + labelled)

    def _word(self, row: int, k: int) -> str:
        """Return the verdict on a pair by a measure in words."""
        if not self.significant[row, k]:
            return "not significant"
        return "better" if self.sign[row, k] > 0 else "worse"

    def sentence(self) -> str:
        """Return sentences on the pairs on which all verdicts agree, and on the other pairs."""
        agree = self.agree()
        if len(self.pairs) == 1:
            return self._on_pair(0)
        every = self._all.capitalize()
        head = f"{every} agree on {int(agree.sum())} of {len(agree)} pairs of systems."
        open_pairs = np.flatnonzero(~agree).tolist()
        texts = [head, *(self._on_pair(row) for row in open_pairs[:MOST])]
        if len(open_pairs) > MOST:
            texts.append(f"The table has {len(open_pairs) - MOST} more such pairs.")
        return " ".join(texts)

    @property
    def _all(self) -> str:
        """The words "both" or "all 3", for the number of verdicts per pair."""
        return "both" if len(self.measures) == 2 else f"all {len(self.measures)}"

    def _on_pair(self, row: int) -> str:
        """Return a sentence on the verdicts on a pair."""
        first, second = (self.systems[i] for i in self.pairs[row])
        sign, sure = self.sign[row], self.significant[row]
        if not sure.any():
            head = f"{first} and {second} do not differ significantly: {self._all} agree"
            return f"{head}{self._on_signs(first, second, sign)}."
        if (sign[sure] < 0).sum() > (sign[sure] > 0).sum():
            first, second, sign = second, first, -sign
        if sure.all() and (sign == sign[0]).all():
            return f"{first} is better than {second} (p < {self.level:g}): {self._all} agree."
        ahead = int((sure & (sign > 0)).sum())
        head = f"{first} is better than {second} (p < {self.level:g})"
        parts = [f"{head} by {ahead} of {len(self.measures)}"]
        kinds = (
            (f"{second} is better by", sure & (sign < 0)),
            ("not significant by", ~sure & (sign > 0)),
            (f"not significant, but {second} is ahead, by", ~sure & (sign < 0)),
            ("equal by", ~sure & (sign == 0)),
        )
        parts += [f"{text} {self._join_names(mask)}" for text, mask in kinds if mask.any()]
        return f"{'; '.join(parts)}."

    def _on_signs(self, first: str, second: str, sign: Int64) -> str:
        """Return a clause on the system that is ahead by each measure; "" if it is always the same.

        It is for pairs without a significant verdict.
        """
        if (sign == sign[0]).all():
            return ""
        kinds = (
            (f"{first} is ahead by", sign > 0),
            (f"{second} is ahead by", sign < 0),
            ("equal by", sign == 0),
        )
        signs = [f"{text} {self._join_names(mask)}" for text, mask in kinds if mask.any()]
        return f" on that, but not on the sign; {'; '.join(signs)}"

    def _join_names(self, mask: Bools) -> str:
        """Join the names of the verdicts that a mask marks."""
        return ", ".join(name for name, member in zip(self.names, mask, strict=True) if member)

    def to_dict(self) -> dict[str, object]:
        """Return all values in plain types for JSON."""
        table = self.table()
        return {
            "level": self.level,
            "verdicts": [dict(zip(table.keys, row, strict=True)) for row in table.rows],
            "all_agree": bool(self.agree().all()),
            "conclusion": self.sentence(),
        }

    def _lines(self) -> tuple[str, str]:
        return f"{len(self.measures)} verdicts on {len(self.pairs)} pairs", self.sentence()


def compare_verdicts(comparisons: Mapping[str, Sequence[SystemComparison]]) -> Verdicts:
    """Compare the conclusions of several measures, and sets of labels, on the same systems.

    Parameters
    ----------
    comparisons : mapping of str to sequence of SystemComparison
        Comparisons of the same systems (`compare`, one per measure; see `MEASURES`), by the name of
        their labels: {"sparse": [...], "complete": [...]}, or a single entry.

    Raises
    ------
    InputError
        Fewer than two comparisons, or comparisons of different systems.
    UsageError
        The comparisons have different levels of significance.
    """
    require_type(
        "comparisons", comparisons, Mapping, "a mapping of labels to comparisons (kgtrec.compare)"
    )
    flat = [(label, comparison) for label, several in comparisons.items() for comparison in several]
    if len(flat) < 2:
        raise InputError(
            f"{len(flat)} comparison has nothing to agree with; give comparisons by two or more "
            "measures, or by two sets of labels"
        )
    first = flat[0][1]
    for _, other in flat[1:]:
        if other.samples.systems != first.samples.systems:
            raise InputError(
                f"{other.samples.name} compares {', '.join(other.samples.systems)}, but "
                f"{first.samples.name} compares {', '.join(first.samples.systems)}; give the same "
                "systems in the same order"
            )
        if other.level != first.level:
            raise UsageError(
                f"the comparisons have the levels {first.level:g} and {other.level:g}; compare all "
                "at the same level"
            )
    columns = [_of_comparison(comparison) for _, comparison in flat]
    difference, sign, p = (np.column_stack(part) for part in zip(*columns, strict=True))
    turned = sign[:, 0] < 0
    # Adding 0.0 changes -0.0 to 0.0.
    flip = np.where(turned, -1, 1)[:, None]
    pairs = np.where(turned[:, None], first.tests.pairs[:, ::-1], first.tests.pairs)
    titles = _titles(comparisons)
    labels = tuple(label for label, _ in flat)
    return Verdicts(
        first.samples.systems,
        titles,
        labels,
        pairs,
        difference * flip + 0.0,
        sign * flip,
        p,
        first.level,
    )


def _of_comparison(comparison: SystemComparison) -> tuple[Float64, Int64, Float64]:
    """Return difference, sign and corrected p of every pair, (p,) each.

    Differences that are only rounding are 0.
    """
    values = comparison.samples.means()
    first, second = (values[comparison.tests.pairs[:, k]] for k in (0, 1))
    difference = first - second
    equal = np.abs(difference) <= ROUNDING * np.maximum(np.abs(first), np.abs(second))
    better = difference if comparison.samples.higher_is_better else -difference
    sign = np.where(equal, 0, np.sign(better)).astype(np.int64)
    return np.where(equal, 0.0, difference), sign, comparison.tests.corrected


def _titles(comparisons: Mapping[str, Sequence[SystemComparison]]) -> tuple[str, ...]:
    """Return the titles of all comparisons, distinct within each set of labels."""
    titles: list[str] = []
    for several in comparisons.values():
        samples = [comparison.samples for comparison in several]
        keys = [of_measure.name for of_measure in samples]
        titles += distinct_titles([of_measure.title for of_measure in samples], keys)
    return tuple(titles)
