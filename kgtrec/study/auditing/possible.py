"""Can published numbers be those of one ranking? A linear program over distributions of ranks.

The unknown is the share of answers at every rank, in steps of one half. Every printed number is an
interval for a mean over that distribution, so all numbers together are a system of linear
inequalities. Above the dense ranks, neighbours share a variable; what this changes in a mean is
bounded exactly and left open, so true tables are always possible.
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
from numpy.typing import NDArray

from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.measures.metric import Metric
from kgtrec.measures.ties import Ties
from kgtrec.study.auditing.claims import Claim, Numbers, Paths, Rounding, read_claims
from kgtrec.study.auditing.limits import BASES, Interval, Limit, Sizes, limits_of_claims

Floats = NDArray[np.float64]

DENSE = 32
RATIO = 1.03
"""Ranks up to the one have a variable each; above, a variable per so large a step."""
EXACT_ANSWERS, EXACT_CANDIDATES, EXACT_SECONDS = 30, 1_000, 1.0
"""Up to these sizes, whole numbers of answers are searched, too."""


class Problem(NamedTuple):
    """Numbers of a model that exclude each other, and what the others allow for each.

    - allowed: An interval per number, in the unit of its measure; a pair of counts' values for a
      number that no count of answers gives.
    """

    model: str
    kind: str
    claims: tuple[Claim, ...]
    allowed: tuple[Interval, ...]
    answers: int | None

    @property
    def sentence(self) -> str:
        """What is wrong, without a verdict on anybody."""
        first, *limits = self.lines
        return f"{first}: {', '.join(limits)}" if limits else first

    @property
    def lines(self) -> list[str]:
        """The numbers that exclude each other, then what the others allow for each."""
        if self.kind == "count":
            (claim,), ((low, high),) = self.claims, self.allowed
            return [
                f"{claim.name}: no count out of {self.answers:,} gives it; "
                f"the nearest give {low:.7g} and {high:.7g}"
            ]
        *most, last = [claim.name for claim in self.claims]
        limits = [
            f"{_bound(claim, *interval)} (printed: {claim.text})"
            for claim, interval in zip(self.claims, self.allowed, strict=True)
            if interval[0] <= interval[1]  # not NaN, where the way back is unknown
        ]
        if not most:
            return [f"{last}: no ranking has it"]
        first = f"{', '.join(most)} and {last} exclude each other"
        return [f"{first}; the others require", *limits] if limits else [first]


def _bound(claim: Claim, low: float, high: float) -> str:
    """The side of the interval on which the printed number does not lie."""
    title = claim.name.removesuffix(claim.text).strip()
    return f"{title} <= {high:.4g}" if high < claim.low else f"{title} >= {low:.4g}"


@dataclass(frozen=True, eq=False)
class Audit(ShownAsTables):
    """What an audit of a table found.

    Attributes
    ----------
    problems : tuple of Problem
    checked : dict of str to int
        Numbers that were checked, by model.
    unchecked : tuple of str
        Columns and measures that were left out, and why.
    assumptions : str
        What a problem rests on.
    """

    problems: tuple[Problem, ...]
    checked: dict[str, int]
    unchecked: tuple[str, ...]
    assumptions: str

    @property
    def possible(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def table(self) -> Table:
        """One row per number that others exclude, and one per model without any."""
        rows: list[tuple[str | int | float, ...]] = []
        for model, checked in self.checked.items():
            own = [one for one in self.problems if one.model == model]
            if not own:
                rows.append((model, checked, "possible", "", "", math.nan, math.nan))
            rows += [
                (model, checked, "impossible", one.kind, claim.name, *interval)
                for one in own
                for claim, interval in zip(one.claims, one.allowed, strict=True)
            ]
        titles = ("model", "numbers", "verdict", "conflict", "printed", "at least", "at most")
        keys = ("model", "numbers", "verdict", "conflict", "printed", "low", "high")
        return Table(titles, keys, (0, 0, 0, 0, 0, 5, 5), rows)

    def text(self) -> str:
        """For people: a sentence per problem, and what it rests on."""
        lines = []
        for model, checked in self.checked.items():
            own = [one.lines for one in self.problems if one.model == model]
            verdict = "these cannot be the values of one ranking" if own else "possible"
            lines.append(f"{model} ({checked} numbers): {verdict}")
            for first, *limits in own:
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
        Ranks that every number averages: of both sides, twice the number of triples.
    entities : int, optional
        Candidates of a question at most. This or `questions` is required.
    questions : Questions, optional
        The test set itself: gives both numbers, those per side, and the expectations by chance.
    percent : bool
        Metrics between 0 and 1 are printed as percentages.
    truncated : bool
        Numbers were cut off, not rounded.
    side : {"both", "head", "tail", "relation"}
        Side of rows and columns that name none.
    runs : int
        Every number is a mean over so many rankings.

    Returns
    -------
    Audit
        ``possible``, ``problems`` and ``table()``.

    Raises
    ------
    FileError
        A table cannot be read, or a cell is no number or one that its measure cannot have.
    UsageError
        No number of entities, or a key that is not a measure.

    Examples
    --------
    >>> found = audit({"A": {"mrr": "0.06", "hits@1": "0.06", "hits@10": "0.30"}}, entities=1000)
    >>> found.possible
    False
    """
    if questions is not None:
        sizes = Sizes.of_questions(questions)
        side = questions.sides if side == "both" else side
    elif entities is None:
        raise UsageError("entities is required: the number of candidates bounds the ranks")
    else:
        sizes = Sizes.of_counts(instances, entities, side)
    rounding = Rounding(percent, truncated)
    read = read_claims(tables, rounding, side)
    problems: list[Problem] = []
    unchecked = [f"{column} is not a measure" for column in read.ignored]
    checked = {}
    for model, claims in read.by_model().items():
        limits, reasons = limits_of_claims(claims, sizes)
        unchecked += reasons
        checked[model] = len(limits)
        problems += _problems(model, limits, sizes, runs)
    answers = sizes.instances.get(side)
    of_answers = f"{answers:,} answers" if answers else "answers"
    assumptions = (
        f"Assumed: each model's numbers are of one ranking of {of_answers} among at most "
        f"{sizes.entities:,} candidates, {rounding.words} to the printed decimals."
    )
    return Audit(tuple(problems), checked, tuple(dict.fromkeys(unchecked)), assumptions)


# -- The distribution of ranks ---------------------------------------------------------------------


@lru_cache(maxsize=16)
def _grid(entities: int, steps: tuple[float, ...]) -> Floats:
    """Ranks that have a variable: all up to DENSE, both sides of every step, then ever fewer."""
    top = float(entities)
    dense = np.arange(2, 2 * min(DENSE, entities) + 1) / 2
    sparse = np.geomspace(DENSE, top, max(2, math.ceil(math.log(top / DENSE, RATIO)))) if (
        top > DENSE
    ) else np.empty(0)  # fmt: skip
    edges = np.array([edge for step in steps for edge in (step, step + 0.5)])
    ranks = np.concatenate([dense, np.round(2 * sparse) / 2, edges, [top]])
    return np.unique(ranks[(ranks >= 1) & (ranks <= top)])


def _values(row: Metric, parameter: float, ranks: Floats) -> Floats:
    """A metric of single ranks, whole or half."""
    if row.name == "hits@k":
        return np.asarray(ranks <= parameter, np.float64)
    above = np.floor(ranks).astype(np.int64) - 1
    half = (ranks > np.floor(ranks)).astype(np.int64)
    ties = Ties(above, half, np.zeros_like(half), np.ones_like(half))
    return row.per_item(ties, "realistic", parameter)


@lru_cache(maxsize=64)
def _column(
    name: str, parameter: float, entities: int, steps: tuple[float, ...]
) -> tuple[Floats, Floats, Floats]:
    """A metric at the ranks of the grid, and by how much a mean between them may be less or more.

    A rank between two of the grid is a mixture of both with the same mean rank.
    """
    grid, row = _grid(entities, steps), BASES[name]
    at_grid = _values(row, parameter, grid)
    every = np.arange(2, 2 * entities + 1) / 2
    exact = _values(row, parameter, every)
    gap = exact - np.interp(every, grid, at_grid)
    segment = np.clip(np.searchsorted(grid, every, "right") - 1, 0, len(grid) - 1)
    low, high = np.zeros(len(grid)), np.zeros(len(grid))
    np.minimum.at(low, segment, gap)
    np.maximum.at(high, segment, gap)
    # The mass at a rank comes from the segment below it, or from the one above.
    below_low, below_high = np.append(0, low[:-1]), np.append(0, high[:-1])
    return at_grid, np.minimum(low, below_low), np.maximum(high, below_high)


class Program:
    """The linear program of one group of numbers: shares at ranks, of one side or of two."""

    def __init__(self, limits: Sequence[Limit], sizes: Sizes, runs: int) -> None:
        sides = {limit.claim.measure.side for limit in limits}
        self.blocks = ("head", "tail") if sides & {"head", "tail"} else tuple(sides)
        self.limits, self.sizes, self.runs = limits, sizes, runs
        self.steps = tuple(sorted({
            float(limit.parameter) for limit in limits if limit.row.name == "hits@k"
        }))  # fmt: skip
        self.grid = _grid(sizes.entities, self.steps)
        kinds = dict.fromkeys((one.row.name, one.parameter) for one in limits)
        self.smooth = [kind for kind in kinds if kind[0] not in ("hits@k", "mr", "imr")]
        rows = [self._row(limit) for limit in limits]
        self.matrix = np.array(rows)
        self.scale = np.maximum(1.0, np.abs([limit.high for limit in limits]))
        self.slack = self._slack_rows()
        own = np.arange(len(self.grid) + len(self.smooth)) < len(self.grid)
        self.is_share = np.tile(own, len(self.blocks))
        self.totals = np.kron(np.eye(len(self.blocks)), own.astype(np.float64))

    @property
    def n_columns(self) -> int:
        return len(self.blocks) * (len(self.grid) + len(self.smooth))

    def weights(self, side: str) -> list[float]:
        """How much each block counts in a side's mean."""
        if len(self.blocks) == 1:
            return [1.0]
        counts = [self.sizes.instances.get(block, 1) for block in self.blocks]
        if side == "both":
            return [count / sum(counts) for count in counts]
        return [float(block == side) for block in self.blocks]

    def _row(self, limit: Limit) -> Floats:
        size, n_grid = len(self.grid) + len(self.smooth), len(self.grid)
        kind = (limit.row.name, limit.parameter)
        values, _, _ = _column(*kind, self.sizes.entities, self.steps)
        row = np.zeros(self.n_columns)
        for block, weight in enumerate(self.weights(limit.claim.measure.side)):
            row[block * size : block * size + n_grid] = weight * values
            if kind in self.smooth:
                row[block * size + n_grid + self.smooth.index(kind)] = weight
        return row

    def _slack_rows(self) -> Floats:
        """What is at most 0: a mean's deviation from the grid's, and bounds by the masses."""
        size, n_grid = len(self.grid) + len(self.smooth), len(self.grid)
        rows = []
        for block in range(len(self.blocks)):
            for place, kind in enumerate(self.smooth):
                _, low, high = _column(*kind, self.sizes.entities, self.steps)
                for sign, gap in ((1.0, high), (-1.0, -low)):
                    row = np.zeros(self.n_columns)
                    row[block * size : block * size + n_grid] = -gap
                    row[block * size + n_grid + place] = sign
                    rows.append(row)
        return np.array(rows).reshape(-1, self.n_columns)

    def solve(self, chosen: Sequence[int], objective: Floats | None = None) -> float | None:
        """The least value of an objective under the chosen limits; None if there is none."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        rows, n_slack, n_blocks = list(chosen), len(self.slack), len(self.blocks)
        scale = self.scale[rows]
        low = np.array([self.limits[i].low for i in rows]) / scale
        high = np.array([self.limits[i].high for i in rows]) / scale
        constraints = LinearConstraint(
            np.vstack([self.matrix[rows] / scale[:, None], self.slack, self.totals]),
            np.concatenate([low, np.full(n_slack, -np.inf), np.ones(n_blocks)]),
            np.concatenate([high, np.zeros(n_slack), np.ones(n_blocks)]),
        )
        done = milp(
            np.zeros(self.n_columns) if objective is None else objective,
            bounds=Bounds(np.where(self.is_share, 0.0, -np.inf), np.inf),
            constraints=constraints,
            options={"presolve": False},  # these programs are small: it takes longer than it saves
        )
        return None if done.status == 2 else float(done.fun if done.fun is not None else 0.0)

    def range_of(self, index: int, others: Sequence[int]) -> Interval:
        """What the other limits allow for a number."""
        row, limit = self.matrix[index], self.limits[index]
        low, high = self.solve(others, row), self.solve(others, -row)
        if low is None or high is None:
            return math.nan, math.nan
        ends = limit.back(low), limit.back(-high)
        return min(ends), max(ends)


# -- Problems --------------------------------------------------------------------------------------


def _problems(model: str, limits: Sequence[Limit], sizes: Sizes, runs: int) -> Iterator[Problem]:
    """What is wrong with a model's numbers: those without a count, then those that conflict."""
    groups: dict[tuple[object, ...], list[Limit]] = {}
    for limit in limits:
        counts = None if limit.claim.is_mean and runs == 1 else _answers(limit, sizes)
        if counts is not None:
            nearest = _nearest_counts(limit, counts * runs)
            if nearest is not None:
                yield Problem(model, "count", (limit.claim,), (nearest,), counts)
                continue
            limit = _at_counts(limit, counts * runs)
        groups.setdefault(limit.claim.group, []).append(limit)
    for group in groups.values():
        yield from _conflict(model, group, sizes, runs)


def _answers(limit: Limit, sizes: Sizes) -> int | None:
    """How many answers a share of hits counts; None where it is no count of known size."""
    measure = limit.claim.measure
    of_average = {"micro": sizes.instances, "macro": sizes.questions}
    if measure.metric != limit.row.named(limit.parameter) or limit.row.name != "hits@k":
        return None
    if measure.rank_type == "expected":
        return None
    return of_average.get(measure.averaging, {}).get(measure.side)


def _nearest_counts(limit: Limit, answers: int) -> Interval | None:
    """The shares around a number that is none; None if it is one."""
    below, above = math.floor(limit.high * answers), math.ceil(limit.low * answers)
    if below >= above:
        return None
    return max(below, 0) / answers, min(above, answers) / answers


def _at_counts(limit: Limit, answers: int) -> Limit:
    """The same limit between the counts that it allows."""
    low, high = math.ceil(limit.low * answers), math.floor(limit.high * answers)
    slack = 1e-12
    return limit._replace(low=low / answers - slack, high=high / answers + slack)


def _conflict(model: str, limits: Sequence[Limit], sizes: Sizes, runs: int) -> Iterator[Problem]:
    """The smallest set of numbers that exclude each other, if any."""
    program = Program(limits, sizes, runs)
    claims = list(dict.fromkeys(limit.claim for limit in limits))
    rows = {claim: [i for i, one in enumerate(limits) if one.claim == claim] for claim in claims}

    def fails(chosen: Sequence[Claim]) -> bool:
        return program.solve([i for claim in chosen for i in rows[claim]]) is None

    if not fails(claims):
        if not _has_whole_counts(program):
            nothing = (math.nan, math.nan)
            yield Problem(model, "whole answers", tuple(claims), (nothing,) * len(claims), None)
        return
    smallest = _smallest(claims, fails)
    allowed = []
    for claim in smallest:
        others = [i for other in smallest if other != claim for i in rows[other]]
        allowed.append(program.range_of(rows[claim][0], others))
    yield Problem(model, "conflict", tuple(smallest), tuple(allowed), None)


def _smallest(claims: list[Claim], fails: Callable[[Sequence[Claim]], bool]) -> list[Claim]:
    """A set of claims that fails, of which every smaller set that was tried does not."""
    needed = list(claims)
    for claim in claims:
        without = [one for one in needed if one != claim]
        if without and fails(without):
            needed = without
    for size in range(2, len(needed)):
        if math.comb(len(claims), size) > 300:
            break
        for chosen in combinations(claims, size):
            if fails(chosen):
                return list(chosen)
    return needed


def _has_whole_counts(program: Program) -> bool:
    """Whether whole numbers of answers have these means; True where there are too many to try."""
    answers = program.sizes.instances
    sizes = [answers.get(block, 0) * program.runs for block in program.blocks]
    averages = {limit.claim.measure.averaging for limit in program.limits}
    types = {limit.claim.measure.rank_type for limit in program.limits}
    if (
        averages != {"micro"} or "expected" in types or not all(sizes)
        or max(sizes) > EXACT_ANSWERS or program.sizes.entities > EXACT_CANDIDATES
    ):  # fmt: skip
        return True
    from scipy.optimize import Bounds, LinearConstraint, milp

    ranks = np.arange(2, 2 * program.sizes.entities + 1) / 2
    rows = []
    for limit in program.limits:
        values = _values(limit.row, limit.parameter, ranks)
        weights = program.weights(limit.claim.measure.side)
        rows.append(np.concatenate([
            weight / size * values for weight, size in zip(weights, sizes, strict=True)
        ]))  # fmt: skip
    ends = [(limit.low, limit.high) for limit in program.limits]
    total = np.kron(np.eye(len(sizes)), np.ones(len(ranks)))
    low, high = np.array(ends).T
    done = milp(
        np.zeros(total.shape[1]), integrality=1, bounds=Bounds(0, max(sizes)),
        constraints=[
            LinearConstraint(np.array(rows) / program.scale[:, None], low / program.scale,
                             high / program.scale),
            LinearConstraint(total, sizes, sizes),
        ],
        options={"time_limit": EXACT_SECONDS},
    )  # fmt: skip
    return bool(done.status != 2)
