"""Results of the open-world studies: curves of sparse against full metrics, and their wording."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import WIDTH, Cell, ShownAsTables, Table, finite
from kgtrec.study.openworld.formulas import title_of
from kgtrec.study.openworld.simulate import FamilyTree


@dataclass(frozen=True, eq=False)
class Curve:
    """The values of one model at each of its checkpoints.

    - values: Per metric, float64 (2, c): the full value, against all true answers, and the sparse
      value, against the recorded answers only.
    - rho, float64 (c,): Measured correlation of missing and predicted answers (Definition 4.1). An
      answer is predicted if its full rank is at most 10. NaN if one of them never varies.
    """

    model: str
    steps: Int64
    values: dict[str, Float64]
    rho: Float64


@dataclass(frozen=True, eq=False)
class Panel:
    """All models at one density and kind of removal.

    - density: Share of all facts that are recorded.
    - removal: "independent" or "correlated".
    - sparsity: Share of the questions' full-test answers that are missing.
    - full_answers, sparse_answers: Mean number of answers of a question.
    - theory: Per metric with a formula, float64 (2, strengths): its full and sparse expectation in
      the paper's model, for strengths from 0 to 1 and questions with these numbers of answers.
    """

    density: float
    removal: str
    sparsity: float
    n_questions: int
    full_answers: float
    sparse_answers: float
    curves: tuple[Curve, ...]
    theory: dict[str, Float64]

    def points(self, metric: str) -> tuple[Float64, Float64, Int64]:
        """Return the full and sparse value of every checkpoint, and the index of its curve."""
        full, sparse = np.concatenate([curve.values[metric] for curve in self.curves], axis=1)
        sizes = [len(curve.steps) for curve in self.curves]
        return full, sparse, np.repeat(np.arange(len(sizes)), sizes)

    def title(self, metric: str = "") -> str:
        """Return the density, the removal, and the metric if there is one."""
        head = f"d={100 * self.density:.4g}% {self.removal}"
        return f"{head}, {title_of(metric)}" if metric else head

    def inconsistency(self, metric: str) -> float:
        """Return the share of checkpoint pairs, of different models, that are misordered.

        The sparse metric orders these differently from the full one. Pairs that tie on either side
        do not count; NaN if no pair counts.
        """
        pairs = self.count_pairs(metric)
        return len(self.overtaking(metric)) / pairs if pairs else float("nan")

    def count_pairs(self, metric: str) -> int:
        """Count the pairs of checkpoints, of different models, that tie on neither side."""
        return len(self._select_pairs(metric)[0])

    def overtaking(self, metric: str) -> Int64:
        """Return the misordered pairs, int64 (n, 2): the weaker and the stronger checkpoint.

        The stronger has the higher full value. Checkpoints are numbered as in `points`.
        """
        pairs, full_gap, sparse_gap = self._select_pairs(metric)
        wrong = full_gap * sparse_gap < 0
        first_is_weaker = full_gap[wrong, None] < 0
        return np.where(first_is_weaker, pairs[wrong], pairs[wrong, ::-1])

    def _select_pairs(self, metric: str) -> tuple[Int64, Float64, Float64]:
        """Return the pairs of checkpoints to compare, and the signs of both their differences.

        These are pairs of different models that tie neither in full nor in sparse values. The signs
        are those of first minus second, in full and in sparse values.
        """
        full, sparse, curve = self.points(metric)
        first, second = np.triu_indices(len(full), 1)
        gaps = [np.sign(values[first] - values[second]) for values in (full, sparse)]
        counts = (curve[first] != curve[second]) & (gaps[0] * gaps[1] != 0)
        return np.stack([first, second], axis=1)[counts], gaps[0][counts], gaps[1][counts]

    def flattening(self, metric: str) -> float:
        """Return the ratio of the slopes of sparse over full values: upper half over lower half.

        The halves divide the range of full values; slopes are fitted by least squares. 1 means no
        degradation, 0 that the upper half is flat. NaN if a half has fewer than two different
        points.
        """
        full, sparse, _ = self.points(metric)
        middle = (full.min() + full.max()) / 2
        lower, upper = (
            _slope(full[half], sparse[half]) for half in (full < middle, full >= middle)
        )
        return upper / lower if lower else float("nan")

    def reach(self, metric: str) -> float:
        """Return the highest minus the lowest sparse value: the range that distinguishes models."""
        _, sparse, _ = self.points(metric)
        return float(sparse.max() - sparse.min())


def _slope(x: Float64, y: Float64) -> float:
    """Return the least-squares slope of y over x; NaN if x has fewer than two different values."""
    return float(np.polyfit(x, y, 1)[0]) if len(np.unique(x)) > 1 else math.nan


class PanelTables(ShownAsTables):
    """A table of the checkpoints of a study's `panels`, for its `metrics`."""

    metrics: tuple[str, ...]
    panels: tuple[Panel, ...]

    def points(self) -> Table:
        """Return a table with one row per checkpoint: all metrics, full and sparse, and rho."""
        rows: list[tuple[Cell, ...]] = []
        for panel in self.panels:
            for curve in panel.curves:
                sides = zip(*(curve.values[metric] for metric in self.metrics), strict=True)
                values = chain.from_iterable(sides)
                columns = [column.tolist() for column in (curve.steps, *values, curve.rho)]
                named = (curve.model, panel.density, panel.removal)
                rows += [(*named, *cells) for cells in zip(*columns, strict=True)]
        names = [(side, metric) for side in ("full", "sparse") for metric in self.metrics]
        first = ("model", "density:2", "removal", "step")
        heads = [(f"{side} {title_of(metric)}", f"{side}.{metric}", 4) for side, metric in names]
        return Table.from_rows([*first, *heads, "rho:3"], rows)


@dataclass(frozen=True, eq=False)
class FamilyStudy(PanelTables):
    """The result of `family_study`: a panel per density and removal."""

    tree: FamilyTree
    metrics: tuple[str, ...]
    panels: tuple[Panel, ...]

    def table(self) -> Table:
        """Return a table of reach, flattening and inconsistency per density, removal and metric."""
        rows = [
            (
                panel.title(metric),
                panel.sparsity,
                panel.reach(metric),
                panel.flattening(metric),
                panel.inconsistency(metric),
            )
            for panel in self.panels
            for metric in self.metrics
        ]
        columns = (
            "=panel, sparsity:3, range=reach:4, slope ratio=flattening:3, "
            "misordered=inconsistency:4"
        )
        return Table.from_rows(columns, rows)

    def __str__(self) -> str:
        first = self.panels[0]
        return (
            f"Sparse against full metrics, on\n{self.tree!r},\n"
            f"{len(first.curves)} models or more, {first.n_questions} tail questions per panel\n\n"
            f"{self.table().to_text()}\n\n{_LEGEND}"
        )


_LEGEND = """\
sparsity     share of the test answers that the sparse graph lacks
range        highest minus lowest sparse value
slope ratio  slope of sparse against full values in the upper half of the full
             values, divided by that in the lower half: 1 means no degradation,
             0 is flat
misordered   share of pairs of checkpoints, of different models, that the sparse
             values order differently from the full ones"""


@dataclass(frozen=True)
class Outlook:
    """The meaning of two observed values at one sparsity. Pairs are in the order of the models.

    - sparsity: Assumed share of the full test answers that are missing.
    - answers: Mean number of true answers of a question, missing ones included.
    - strengths: Strength l of each model; NaN if no strength explains its value.
    - ceiling: Value of a perfect model.
    - full: Expected metric of each model with complete labels.
    - full_difference, full_error: Second minus first of these, and its standard error.
    - p_model: Probability that complete labels order them the other way: Theorem 4.2, with exact
      expectations and variances of the paper's model and the same answers missing for both.
    - p_paper: Probability as printed in Theorem 4.2: logarithmic, for independent models and equal
      questions.
    - needed_model, needed_data: Questions needed for the accepted probability, by the model and by
      the spread of the data.
    - rho: Correlation with which the model of the higher value would be no stronger than the other,
      if the other has none; NaN if no possible correlation suffices.
    - curve: Strengths from 0 to 1, and the expected metric of each.
    - control: Expected Hits@10 of each fitted model, and the observed one (NaN if not known).
    """

    sparsity: float
    answers: float
    strengths: tuple[float, float]
    ceiling: float
    full: tuple[float, float]
    full_difference: float
    full_error: float
    p_model: float
    p_paper: float
    needed_model: float
    needed_data: float
    rho: float
    curve: tuple[tuple[float, ...], tuple[float, ...]]
    control: tuple[tuple[float, float], tuple[float, float]]

    @property
    def fits(self) -> bool:
        """False if no strength explains an observed value."""
        return not any(math.isnan(strength) for strength in self.strengths)


TWO_SIDED = 1.959963984540054  # standard errors of a 95 % interval
FRAGILE = 0.1
"""Largest difference in correlation between models in the paper's simulations (Figure 2). If a
weaker correlation explains a difference, it says little about strength, even with many questions.
"""
MISFIT = 0.05
PARAGRAPHS = 3
"""Largest number of sparsities that are described in paragraphs; more are shown in a table."""
FEW = 50
"""The normal approximation of Theorem 4.2 needs more questions than this."""

ASSUMPTIONS = (
    "a model predicts every true answer of a question with the same probability, its strength, "
    "and no false one; answers that are predicted come first, in random order (section 4)",
    "answers are missing independently of each other and of what the models predict; a known "
    "exception is a graph that was completed with the help of a similar model (section 4.3)",
    "a question with n test answers has n / (1 - sparsity) true answers; the sparsity is that of "
    "the test set, not of the graph (appendix A.3), and cannot be measured from the graph itself",
)


@dataclass(frozen=True)
class Comparison(ShownAsTables):
    """The comparison of two models on the same questions.

    - values: Metric of each model, averaged over the answers of a question first, then over
      questions. Ties are broken at random.
    - difference: Second value minus first.
    - answers_seen: Mean number of test answers of a question.
    - paired_error: Standard error of the difference, computed from the difference of each
      question; NaN without ranks.
    - p_data: Probability of the other order by that error; NaN without ranks.
    - level: Accepted probability of the wrong order.
    - highest_sparsity: Sparsity above which even a perfect model could not reach the higher value.
    - outlooks: One per sparsity, ascending.
    - sampled: True if the ranks are among sampled candidates, which the paper's model does not
      cover.
    """

    names: tuple[str, str]
    metric: str
    values: tuple[float, float]
    difference: float
    n_questions: int
    answers_seen: float
    paired_error: float
    p_data: float
    level: float
    highest_sparsity: float
    outlooks: tuple[Outlook, ...]
    sampled: bool = False

    def p_of(self, outlook: Outlook) -> float:
        """Return the probability of the other order: by the ranks if given, else by the model."""
        return outlook.p_model if math.isnan(self.p_data) else self.p_data

    @property
    def ordered(self) -> tuple[str, str]:
        """The names of the models; the model with the higher value comes first."""
        return self.names[::-1] if self.difference > 0 else self.names

    @property
    def verdict(self) -> str:
        """One of: ``equal``, ``too close``, ``model does not fit``, ``fragile``, ``trust``.

        It is the most careful answer over the sparsities. "Too close" means that the probability of
        the other order exceeds the level at some sparsity. "Fragile" means that a correlation
        weaker than 0.1 would explain the whole difference.
        """
        if self.difference == 0:
            return "equal"
        if any(self.p_of(outlook) > self.level for outlook in self.outlooks):
            return "too close"
        if not all(outlook.fits for outlook in self.outlooks):
            return "model does not fit"
        if any(abs(outlook.rho) < FRAGILE for outlook in self.outlooks):
            return "fragile"
        return "trust"

    def table(self) -> Table:
        """Return a table per sparsity: strengths, values with complete labels, and probability."""
        first, second = self.names
        title = title_of(self.metric)
        rows = [
            (
                f"{100 * o.sparsity:.3g} %",
                *o.strengths,
                *o.full,
                o.full_difference,
                self.p_of(o),
                o.rho,
            )
            for o in self.outlooks
        ]
        columns = [
            "missing=sparsity",
            f"l {first}=strength_first:3",
            f"l {second}=strength_second:3",
            f"{title} {first}=full_first:4",
            f"{title} {second}=full_second:4",
            "difference=full_difference:4",
            "P(wrong)=p_wrong:4",
            "rho=explaining_rho:3",
        ]
        return Table.from_rows(columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all values in plain types for JSON; unknown or infinite values are None."""
        values = asdict(self)
        for shown, outlook in zip(values["outlooks"], self.outlooks, strict=True):
            shown["fits"] = outlook.fits
        plain: Any = finite(values | {"verdict": self.verdict})
        return dict(plain)

    def __str__(self) -> str:
        """Return the whole text, at most 80 columns wide."""
        parts = [_describe_values(self)]
        if len(self.outlooks) > PARAGRAPHS:
            parts.append(self.table().to_text())
        else:
            parts += [_describe_outlook(self, outlook) for outlook in self.outlooks]
        parts.append(_wrap(f"Verdict: {_describe_verdict(self)}"))
        doubts = _list_doubts(self)
        if doubts:
            parts.append("\n".join(_wrap(f"Beware: {doubt}") for doubt in doubts))
        listed = "\n".join(_wrap(f"- {text}.") for text in ASSUMPTIONS)
        parts.append("Assumptions (Yang et al. 2022):\n" + listed)
        return "\n\n".join(parts)


def _describe_values(result: Comparison) -> str:
    """Return the paragraph on the observed values of both models."""
    values = zip(result.names, result.values, strict=True)
    error = f" (standard error {result.paired_error:.4f}, question by question)"
    lines = [
        f"{title_of(result.metric)}, averaged inside each question first, then over "
        f"{result.n_questions:,} questions with {result.answers_seen:.3g} test answers each on "
        "average",
        *(f"  {name}: {value:.4f}" for name, value in values),
        f"  difference: {result.difference:+.4f}{'' if math.isnan(result.paired_error) else error}",
    ]
    return "\n".join(_wrap(line) for line in lines)


def _describe_outlook(result: Comparison, at: Outlook) -> str:
    """Return the paragraph on one sparsity."""
    first, second = result.names
    title = title_of(result.metric)
    lines = [f"If {100 * at.sparsity:.3g} % of the true answers are missing:"]
    if not at.fits:
        lines.append(
            f"  No strength explains these values: even a perfect model would score "
            f"{at.ceiling:.4f} here. {_advise_on_ceiling(result)}"
        )
    else:
        lines.append(
            f"  Strengths: {first} {at.strengths[0]:.3f}, {second} {at.strengths[1]:.3f} (1 is "
            f"perfect, and would score {at.ceiling:.4f})."
        )
        reach = TWO_SIDED * at.full_error
        lines.append(
            f"  With complete labels: {title} {at.full[0]:.4f} and {at.full[1]:.4f}, a difference "
            f"of {at.full_difference:+.4f} (95 % interval {at.full_difference - reach:+.4f} to "
            f"{at.full_difference + reach:+.4f})."
        )
    if result.difference:
        lines.append(f"  {_describe_probability(result, at)}")
    lines.append(f"  {_describe_needed(result, at)}")
    if not math.isnan(at.rho) and result.difference:
        better, other = result.ordered
        lines.append(
            f"  {better} would be no stronger than {other} if missing and predicted answers had "
            f"the correlation {at.rho:.3f} for {better} and none for {other}; more questions "
            "do not help."
        )
    return "\n".join(_wrap(line) for line in lines)


def _describe_probability(result: Comparison, at: Outlook) -> str:
    """Return the sentence on the probability of the other order."""
    chance = (
        f"{_format_percent(at.p_model)} by Theorem 4.2 with exact variances, as if the models "
        "erred independently"
    )
    if not math.isnan(result.p_data):
        chance = f"{_format_percent(result.p_data)} by the questions' own differences ({chance})"
    return f"Probability that complete labels order them the other way: {chance}."


def _describe_needed(result: Comparison, at: Outlook) -> str:
    """Return a sentence on the number of questions needed."""
    if result.difference == 0:
        return "No number of questions distinguishes equal values."
    count = at.needed_model if math.isnan(at.needed_data) else at.needed_data
    enough = "enough" if count <= result.n_questions else "not enough"
    return (
        f"Questions needed for {_format_percent(result.level)}: {math.ceil(count):,} (there are "
        f"{result.n_questions:,}: {enough})."
    )


def _describe_verdict(result: Comparison) -> str:
    """Return the verdict in words."""
    better, other = result.ordered
    kind = result.verdict
    if kind == "equal":
        return "the two values are equal; nothing here distinguishes the models."
    worst = max(result.p_of(outlook) for outlook in result.outlooks)
    if kind == "too close":
        return (
            f"too close to call. The order may be wrong with a probability of up to "
            f"{_format_percent(worst)}, more than {_format_percent(result.level)}."
        )
    share = _format_percent(worst)
    sure = f"the lead of {better} is not due to the choice of questions ({share} or less)"
    if kind == "model does not fit":
        return (
            f"{sure}, but at some of these sparsities the paper's model does not fit, so it says "
            f"nothing about complete labels there. {_advise_on_ceiling(result)}"
        )
    if kind == "fragile":
        least = min((o.rho for o in result.outlooks if not math.isnan(o.rho)), key=abs)
        return (
            f"{sure}, but it need not mean a stronger model: a correlation of {least:.3f} between "
            f"missing and predicted answers would explain the whole difference, and the paper "
            f"expects up to ±{FRAGILE}. Look at a less top-heavy metric, too, such as log_mrr."
        )
    return (
        f"{sure}, and only a correlation beyond ±{FRAGILE} between missing and predicted answers "
        f"would make {better} no stronger than {other}."
    )


def _list_doubts(result: Comparison) -> list[str]:
    """Return reasons to doubt that the paper's model describes the data."""
    doubts = []
    if result.sampled:
        doubts.append(
            "these ranks are among sampled candidates: values, strengths and ceilings are not "
            "those of full ranking."
        )
    if result.n_questions <= FEW:
        doubts.append(
            f"with {result.n_questions} questions the normal approximation is rough; the paper "
            f"asks for more than {FEW}."
        )
    misses = [
        (name, *pair, outlook.sparsity)
        for outlook in result.outlooks
        if outlook.fits
        for name, pair in zip(result.names, outlook.control, strict=True)
        if abs(pair[0] - pair[1]) > MISFIT
    ]
    if misses:
        name, expected, seen, sparsity = max(misses, key=lambda miss: abs(miss[1] - miss[2]))
        doubts.append(
            "the paper's model does not describe these models well: fitted to "
            f"{title_of(result.metric)}, it expects Hits@10 {expected:.3f} for {name} at sparsity "
            f"{sparsity:.4g}, but the ranks give {seen:.3f}. Strengths and complete-label values "
            "are rough; the probability from the questions' own differences does not depend on "
            "them."
        )
    if math.isnan(result.p_data):
        doubts.append(
            "two values do not show how far the models agree question by question, and every "
            "question is assumed to have the same number of answers; compare ranks files instead."
        )
    return doubts


def _advise_on_ceiling(result: Comparison) -> str:
    """Return advice for a value above that of a perfect model."""
    return (
        f"Either less than {100 * result.highest_sparsity:.3g} % is missing, or recorded answers "
        "are easier to predict than missing ones (a negative correlation)."
    )


def _format_percent(share: float) -> str:
    if share == 0:
        return "less than 1e-300"
    return f"{100 * share:.3g} %" if share >= 1e-4 else f"{share:.1e}"


def _wrap(line: str) -> str:
    """Wrap a line to the width of texts; further lines have a hanging indent."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line.strip(),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
