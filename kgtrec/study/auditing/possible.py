"""The check whether published numbers can come from one ranking, by linear programming.

The unknown is the share of answers at every rank, in steps of one half. Every printed number is an
interval for a mean over that distribution, so all numbers together are a system of linear
inequalities. Neighbouring large ranks share a variable. Intervals are widened by the largest
effect that this can have on a mean, so a true table is never called impossible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Bools, Float64
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.measures.metric import RankMetric
from kgtrec.measures.ties import Ties
from kgtrec.study.auditing.claims import (
    BASES,
    Claim,
    Interval,
    Limit,
    Numbers,
    Paths,
    Rounding,
    Sizes,
    limits_of_claims,
    read_claims,
)

DENSE = 32
RATIO = 1.03
"""Each rank up to DENSE has a variable; larger ranks with one are apart by a factor of RATIO."""
INFEASIBLE, UNKNOWN = 2, 4  # states that scipy's solver may report
EXACT_ANSWERS, EXACT_CANDIDATES, EXACT_SECONDS = 30, 1_000, 1.0
"""Largest sizes for which whole numbers of answers are searched, and the time limit."""


class Problem(NamedTuple):
    """Numbers of a model that exclude each other.

    - allowed: Per number, the interval that the other numbers allow, in the unit of its measure. If
      no count of answers gives the number, the values of the two nearest counts.
    """

    model: str
    kind: str
    claims: tuple[Claim, ...]
    allowed: tuple[Interval, ...]
    answers: int | None

    @property
    def sentence(self) -> str:
        """A sentence that describes the problem."""
        first, *limits = self.lines
        return f"{first}: {', '.join(limits)}" if limits else first

    @property
    def lines(self) -> list[str]:
        """Numbers that exclude each other, with the values that the others allow for each."""
        if self.kind == "count":
            (claim,), ((low, high),) = self.claims, self.allowed
            return [
                f"{claim.name}: no number of hits among {self.answers:,} answers gives this value; "
                f"the nearest possible values are {low:.7g} and {high:.7g}"
            ]
        *most, last = [claim.name for claim in self.claims]
        limits = [
            f"{_format_bound(claim, *interval)} (printed: {claim.text})"
            for claim, interval in zip(self.claims, self.allowed, strict=True)
            if interval[0] <= interval[1]  # false for NaN: the way back is unknown
        ]
        if not most:
            return [f"{last}: no ranking has this value"]
        first = f"{', '.join(most)} and {last} exclude each other"
        return [f"{first}; the others require", *limits] if limits else [first]


def _format_bound(claim: Claim, low: float, high: float) -> str:
    """Return the allowed limit that the printed number violates, such as ``MRR <= 0.3``."""
    title = claim.name.removesuffix(claim.text).strip()
    return f"{title} <= {high:.4g}" if high < claim.low else f"{title} >= {low:.4g}"


@dataclass(frozen=True, eq=False)
class Audit(ShownAsTables):
    """The result of an audit of tables.

    - checked: Number of numbers that were checked, by model.
    - unchecked: Sentences on columns and measures that were not checked, with the reasons.
    - assumptions: Sentence on the assumptions behind a problem.
    """

    problems: tuple[Problem, ...]
    checked: dict[str, int]
    unchecked: tuple[str, ...]
    assumptions: str

    @property
    def possible(self) -> bool:
        """True if the audit found no problem."""
        return not self.problems

    def table(self) -> Table:
        """Return a table with one row per excluded number, and one per model without problems."""
        rows: list[tuple[str | int | float, ...]] = []
        for model, checked in self.checked.items():
            problems_of_model = [problem for problem in self.problems if problem.model == model]
            if not problems_of_model:
                rows.append((model, checked, "possible", "", "", math.nan, math.nan))
            rows += [
                (model, checked, "impossible", problem.kind, claim.name, *interval)
                for problem in problems_of_model
                for claim, interval in zip(problem.claims, problem.allowed, strict=True)
            ]
        columns = "model, numbers, verdict, conflict, printed, at least=low:5, at most=high:5"
        return Table.from_rows(columns, rows)

    def text(self) -> str:
        """Return a text: a verdict per model, its conflicts, and the assumptions."""
        lines = []
        for model, checked in self.checked.items():
            problems_of_model = [
                problem.lines for problem in self.problems if problem.model == model
            ]
            verdict = (
                "these cannot be the values of one ranking" if problems_of_model else "possible"
            )
            lines.append(f"{model} ({checked} numbers): {verdict}")
            for first, *limits in problems_of_model:
                lines += [f"  {first}", *(f"    {limit}" for limit in limits)]
        return "\n".join([*lines, "", fill(self.assumptions, 80)])


def audit(
    tables: Paths | Numbers,
    *,
    instances: int | None = None,
    entities: int | None = None,
    questions: Any = None,
    percent: bool = False,
    truncated: bool = False,
    side: str = "both",
    runs: int = 1,
) -> Audit:
    """Decide whether published numbers can be the values of one ranking.

    Parameters
    ----------
    tables : path, sequence of paths, or mapping
        CSV, TSV, Markdown or LaTeX tables, one row per model; or model -> measure -> number (text
        keeps the printed decimals). Rows of one model in several tables are about one ranking.
    instances : int, optional
        Number of ranks that every number averages; for both sides, twice the number of triples.
    entities : int, optional
        Largest number of candidates of a question. This or `questions` is required.
    questions : Questions, optional
        The test set, from which both numbers, also per side, and expectations by chance follow.
    percent : bool
        Metrics between 0 and 1 are printed as percentages.
    truncated : bool
        Numbers were cut off, not rounded.
    side : {"both", "head", "tail", "relation"}
        Side of rows and columns that name no side.
    runs : int
        Number of rankings that every number averages.

    Raises
    ------
    FileError
        A table cannot be read, a cell is not a number, or a measure cannot have a number.
    UsageError
        No number of entities, or a key that is not a measure.

    Examples
    --------
    >>> found = audit({"A": {"mrr": "0.06", "hits@1": "0.06", "hits@10": "0.30"}}, entities=1000)
    >>> found.possible
    False
    """
    if questions is not None:
        sizes = Sizes.from_questions(questions)
        side = questions.sides if side == "both" else side
    elif entities is None:
        raise UsageError("entities is required: the number of candidates bounds the ranks")
    else:
        sizes = Sizes.from_counts(instances, entities, side)
    rounding = Rounding(percent, truncated)
    by_model, ignored = read_claims(tables, rounding, side)
    problems: list[Problem] = []
    unchecked = [f"{column} is not a measure" for column in ignored]
    checked = {}
    for model, claims in by_model.items():
        limits, reasons = limits_of_claims(claims, sizes)
        unchecked += reasons
        checked[model] = len(limits)
        problems += _find_problems(model, limits, sizes, runs)
    answers = sizes.instances.get(side)
    of_answers = f"{answers:,} answers" if answers else "answers"
    assumptions = (
        f"Assumed: each model's numbers come from one ranking of {of_answers} among at most "
        f"{sizes.entities:,} candidates, if {'truncated' if truncated else 'rounded'} to the "
        "printed decimals."
    )
    return Audit(tuple(problems), checked, tuple(dict.fromkeys(unchecked)), assumptions)


# -- The distribution of ranks ---------------------------------------------------------------------


@lru_cache(maxsize=16)
def _choose_ranks(entities: int, steps: tuple[float, ...], dense: int) -> Float64:
    """Return the ranks that have a variable, ascending.

    These are all ranks up to `dense`, then ever fewer, and both ranks around every step.
    """
    ranks = [np.arange(2, 2 * min(dense, entities) + 1) / 2]
    if entities > dense:
        number = max(2, math.ceil(math.log(entities / dense, RATIO)))
        ranks.append(np.round(2 * np.geomspace(dense, entities, number)) / 2)
    edges = np.array([edge for step in steps for edge in (step, step + 0.5)])
    every = np.concatenate([*ranks, edges, [entities]])
    return np.unique(every[(every >= 1) & (every <= entities)])


def _evaluate_ranks(row: RankMetric, parameter: float, ranks: Float64) -> Float64:
    """Evaluate a metric at each of some whole or half ranks."""
    if row.name == "hits@k":
        return np.asarray(ranks <= parameter, np.float64)
    above = np.floor(ranks).astype(np.int64) - 1
    half = (ranks > np.floor(ranks)).astype(np.int64)
    ties = Ties(above, half, np.zeros_like(half), np.ones_like(half))
    return row.per_item(ties, "realistic", parameter)


_PIECE = 1 << 20  # ranks at a time: 100 million entities would take 20 GB at once


@lru_cache(maxsize=64)
def _bound_contributions(
    name: str, parameter: float, entities: int, steps: tuple[float, ...], dense: int
) -> tuple[Float64, Float64]:
    """Bound the contribution of the mass at each grid rank to a mean of a metric; two arrays.

    The mass at a rank between two grid ranks is divided between both, with the same mean rank.
    """
    grid, row = _choose_ranks(entities, steps, dense), BASES[name]
    at_grid = _evaluate_ranks(row, parameter, grid)
    low, high = np.zeros(len(grid)), np.zeros(len(grid))
    for first in range(2, 2 * entities + 1, _PIECE):  # of all ranks, whole and half
        every = np.arange(first, min(first + _PIECE, 2 * entities + 1)) / 2
        gap = _evaluate_ranks(row, parameter, every) - np.interp(every, grid, at_grid)
        segment = np.clip(np.searchsorted(grid, every, "right") - 1, 0, len(grid) - 1)
        np.minimum.at(low, segment, gap)
        np.maximum.at(high, segment, gap)
    # The mass at a rank comes from the segment below it, or from the one above.
    below_low, below_high = np.append(0, low[:-1]), np.append(0, high[:-1])
    return at_grid + np.minimum(low, below_low), at_grid + np.maximum(high, below_high)


class Program:
    """The linear program of one group of numbers, whose variables are masses at ranks per side.

    With `answers` per side, the masses are whole numbers of answers; otherwise they are shares.
    """

    def __init__(
        self, limits: Sequence[Limit], sizes: Sizes, answers: Sequence[int] | None = None
    ) -> None:
        self.limits, self.whole = limits, answers is not None
        blocks = blocks_of(limits)
        self.masses = np.array(answers or [1] * len(blocks), np.float64)
        steps = {float(limit.parameter) for limit in limits if limit.row.name == "hits@k"}
        grid = sizes.entities, tuple(sorted(steps)), sizes.entities if self.whole else DENSE
        ends = [
            np.kron(
                _weigh_blocks(limit, blocks, sizes) / self.masses,
                _bound_contributions(limit.row.name, limit.parameter, *grid),
            )
            for limit in limits
        ]
        self.scale = np.maximum(1.0, np.abs([limit.high for limit in limits]))
        self.least, self.most = np.swapaxes(ends, 0, 1) / self.scale[:, None]
        self.low, self.high = np.array([(limit.low, limit.high) for limit in limits]).T / self.scale
        self.totals = np.kron(np.eye(len(blocks)), np.ones(len(_choose_ranks(*grid))))
        self.met: list[Bools] = []

    def _minimize(self, rows: list[int], objective: Float64) -> Any:
        """Minimize an objective under the limits with the indices `rows`."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        nothing = np.full(len(rows), np.inf)
        constraints = LinearConstraint(
            np.vstack([self.most[rows], self.least[rows], self.totals]),
            np.concatenate([self.low[rows], -nothing, self.masses]),
            np.concatenate([nothing, self.high[rows], self.masses]),
        )
        # Programs of shares are small: presolving takes longer than it saves.
        for presolve in [True] if self.whole else [False, True]:
            options = {"presolve": presolve} | ({"time_limit": EXACT_SECONDS} if self.whole else {})
            done = milp(
                objective,
                integrality=int(self.whole),
                bounds=Bounds(0.0, np.inf),
                constraints=constraints,
                options=options,
            )
            if done.status != UNKNOWN:
                break
        return done

    def allows(self, rows: list[int]) -> bool:
        """Return True if some masses satisfy these limits; reuse solutions for other limits."""
        if any(met[rows].all() for met in self.met):
            return True
        done = self._minimize(rows, np.zeros(self.totals.shape[1]))
        if done.status == INFEASIBLE:
            return False
        if done.x is not None:
            met = (self.most @ done.x >= self.low) & (self.least @ done.x <= self.high)
            met[rows] = True
            self.met.append(met)
        return True

    def range_of(self, index: int, others: list[int]) -> Interval:
        """Return the interval that the other limits allow for a number; NaN if it is unknown."""
        low, high = (self._minimize(others, row) for row in (self.least[index], -self.most[index]))
        if low.fun is None or high.fun is None:
            return math.nan, math.nan
        back = self.limits[index].back
        ends = back(low.fun * self.scale[index]), back(-high.fun * self.scale[index])
        return min(ends), max(ends)


def blocks_of(limits: Sequence[Limit]) -> tuple[str, ...]:
    """Return the sides whose ranks are separate unknowns."""
    sides = {limit.claim.measure.side for limit in limits}
    return ("head", "tail") if sides & {"head", "tail"} else tuple(sides)


def _weigh_blocks(limit: Limit, blocks: Sequence[str], sizes: Sizes) -> Float64:
    """Return the weight of each block in the mean of a limit's side."""
    side = limit.claim.measure.side
    if len(blocks) == 1:
        return np.ones(1)
    if side != "both":
        return np.array([float(block == side) for block in blocks])
    of_side = sizes.questions if limit.claim.measure.averaging == "macro" else sizes.instances
    counts = np.array([of_side.get(block, 1) for block in blocks])
    return counts / counts.sum()


# -- Problems --------------------------------------------------------------------------------------


def _find_problems(
    model: str, limits: Sequence[Limit], sizes: Sizes, runs: int
) -> Iterator[Problem]:
    """Yield the problems of a model's numbers: those without a count, then those that conflict."""
    groups: dict[tuple[object, ...], list[Limit]] = {}
    for limit in limits:
        answers = None if limit.claim.is_mean and runs == 1 else _count_answers(limit, sizes)
        if answers is not None:
            total = answers * runs
            low, high = math.ceil(limit.low * total), math.floor(limit.high * total)
            if low > high:
                nearest = max(high, 0) / total, min(low, total) / total
                yield Problem(model, "count", (limit.claim,), (nearest,), answers)
                continue
            slack = 1e-12
            limit = limit._replace(low=low / total - slack, high=high / total + slack)
        # Numbers of one group average the same ranks with the same weights. The weights of the
        # sides in a macro average depend on their numbers of questions, which may be unknown.
        measure = limit.claim.measure
        alone = measure.side if measure.averaging == "macro" and not sizes.questions else None
        groups.setdefault((measure.rank_type, measure.averaging, measure.params, alone), []).append(
            limit
        )
    for group in groups.values():
        yield from _find_conflict(model, group, sizes, runs)


def _count_answers(limit: Limit, sizes: Sizes) -> int | None:
    """Return the number of answers behind a share of hits; None if unknown or another measure."""
    measure = limit.claim.measure
    is_own = limit.row.name == "hits@k" and measure.metric == limit.row.name_with(limit.parameter)
    if not is_own or measure.rank_type == "expected":
        return None
    of_average = {"micro": sizes.instances, "macro": sizes.questions}
    return of_average.get(measure.averaging, {}).get(measure.side)


def _find_conflict(
    model: str, limits: Sequence[Limit], sizes: Sizes, runs: int
) -> Iterator[Problem]:
    """Yield the smallest set of numbers that exclude each other, if there is one."""
    program = Program(limits, sizes)
    rows = group_pairs((limit.claim, i) for i, limit in enumerate(limits))
    claims = list(rows)

    def fails(chosen: Sequence[Claim]) -> bool:
        return not program.allows([i for claim in chosen for i in rows[claim]])

    if not fails(claims):
        if not _has_whole_counts(limits, sizes, runs):
            nothing = (math.nan, math.nan)
            yield Problem(model, "whole answers", tuple(claims), (nothing,) * len(claims), None)
        return
    smallest = _find_smallest(claims, fails)
    allowed = []
    for claim in smallest:
        other_rows = [i for other in smallest if other != claim for i in rows[other]]
        allowed.append(program.range_of(rows[claim][0], other_rows))
    yield Problem(model, "conflict", tuple(smallest), tuple(allowed), None)


def _find_smallest(claims: list[Claim], fails: Callable[[Sequence[Claim]], bool]) -> list[Claim]:
    """Find a set of claims that fails, while every smaller set that was tried does not."""
    needed = list(claims)
    for claim in claims:
        without = [kept for kept in needed if kept != claim]
        if without and fails(without):
            needed = without
    for size in range(2, len(needed)):
        if math.comb(len(claims), size) > 300:
            break
        for chosen in combinations(claims, size):
            if fails(chosen):
                return list(chosen)
    return needed


def _has_whole_counts(limits: Sequence[Limit], sizes: Sizes, runs: int) -> bool:
    """Return True if whole numbers of answers can have these means, or if there are too many."""
    answers = [sizes.instances.get(block, 0) * runs for block in blocks_of(limits)]
    averages = {limit.claim.measure.averaging for limit in limits}
    types = {limit.claim.measure.rank_type for limit in limits}
    if (
        averages != {"micro"}
        or "expected" in types
        or not all(answers)
        or max(answers) > EXACT_ANSWERS
        or sizes.entities > EXACT_CANDIDATES
    ):
        return True
    return Program(limits, sizes, answers).allows([*range(len(limits))])
