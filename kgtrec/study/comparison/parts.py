"""Values of systems on parts of the questions, and question-level measures on subsets of triples.

Do systems rank alike on every kind of relation and on both sides (Zhou et al. 2022, Table 3), and
would they on a test set that has the relations of another (their Table 4)? What a question counts
on a subset depends on the order of its answers, and that on the system; `stability` uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import Resampling, resampled_means
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.averaging import SIDES
from kgtrec.measures.calculator import calculator_of
from kgtrec.measures.ties import Ties
from kgtrec.results.result import Result
from kgtrec.results.slices import rows_by_part
from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.samples import align_ranks, samples_of_aligned, transform_of
from kgtrec.study.relations import reweighted

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.ranking.ranks import Ranks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


WHOLE = ("all",)
"""The part that is all questions."""


@dataclass(frozen=True, eq=False)
class SystemValues(ShownAsTables):
    """Systems by one measure, on each part of the questions.

    - measure: Its key, or the heading under which it was published.
    - parts, float64 (n_systems,): By the names of the part; NaN where a system has no value.
    - dimensions: What the names of a part are; empty where the only part is all questions.
    - higher_is_better: None where neither end is better.
    - whole, float64 (n_systems,): Values on all instances, where these are known.
    - counts: How large each part is, under headings, where that is known.
    - intervals, float64 (2, n_systems): Ends by the names of the part, where they were drawn, and
      how they were (`resampling`).
    """

    measure: str
    systems: tuple[str, ...]
    parts: Mapping[tuple[str, ...], Floats]
    dimensions: tuple[str, ...] = ()
    higher_is_better: bool | None = True
    digits: int = 4
    whole: Floats | None = None
    counts: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    intervals: Mapping[tuple[str, ...], Floats] = field(default_factory=dict)
    resampling: Resampling | None = None

    def _lines(self) -> tuple[str, str]:
        by = f" by {', '.join(self.dimensions)}" if self.dimensions else ""
        return (
            f"{self.measure}: {len(self.systems):,} systems on {len(self.parts):,} parts{by}",
            ", ".join(self.systems),
        )

    @classmethod
    def of(
        cls,
        measure: str,
        parts: Mapping[tuple[str, ...], Mapping[str, float]],
        dimensions: tuple[str, ...],
        higher_is_better: bool | None,
    ) -> SystemValues:
        """From values by part and system; a system that a part lacks has no value there."""
        systems = tuple(dict.fromkeys(name for values in parts.values() for name in values))
        rows = {
            part: np.array([values.get(name, math.nan) for name in systems])
            for part, values in parts.items()
        }
        return cls(measure, systems, rows, dimensions, higher_is_better)

    def on(self, systems: Sequence[str]) -> SystemValues:
        """The same of some of the systems, in this order."""
        places = [self.systems.index(name) for name in systems]
        rows = {part: values[places] for part, values in self.parts.items()}
        whole = None if self.whole is None else self.whole[places]
        return replace(self, systems=tuple(systems), parts=rows, whole=whole)

    def table(self) -> Table:
        """A row per part: its size, the values, and how its order of systems is.

        That is which are best (if an end of the measure is), and tau-b of the order to that on all
        instances (NaN of fewer than three systems).
        """
        sizes = zip(*self.counts.values(), strict=True) if self.counts else [()] * len(self.parts)
        rows: list[tuple[Cell, ...]] = [
            (*part, *size, *values.tolist(), ", ".join(self._best(values)), self._tau(values))
            for (part, values), size in zip(self.parts.items(), sizes, strict=True)
        ]
        heads = self.dimensions or ("questions",)
        names = (*heads, *self.counts, *self.systems, "best")
        digits = (
            *(0,) * (len(heads) + len(self.counts)),
            *(self.digits,) * len(self.systems),
            0,
            4,
        )
        return Table((*names, "tau-b"), (*names, "tau_b"), digits, rows, len(heads))

    def _best(self, values: Floats) -> list[str]:
        known = values[~np.isnan(values)]
        if self.higher_is_better is None or not len(known):
            return []
        best = known.max() if self.higher_is_better else known.min()
        return [n for n, value in zip(self.systems, values.tolist(), strict=True) if value == best]

    def _tau(self, values: Floats) -> float:
        if self.whole is None or len(values) < 3 or np.isnan(values).any():
            return math.nan
        return float(tau_b(values, self.whole))


def values_by_part(
    ranks: Mapping[str, Ranks],
    by: str,
    measures: Sequence[str | Measure],
    *,
    graph: Graph | None = None,
    resampling: Resampling | None = None,
) -> list[SystemValues]:
    """Values of all systems on every part of the instances.

    With `resampling` also their intervals, of micro measures that are functions of means.
    """
    aligned = align_ranks(ranks) if len(ranks) > 1 else dict(ranks)
    results = {name: Result(one) for name, one in aligned.items()}
    return parts_of_results(results, by, parse_all(measures), graph=graph, resampling=resampling)


def parts_of_results(
    results: Mapping[str, Result],
    by: str,
    specs: Sequence[Measure],
    *,
    graph: Graph | None = None,
    resampling: Resampling | None = None,
) -> list[SystemValues]:
    """`values_by_part` of results whose instances have the same order."""
    valued = []
    drawn = _drawn_by_part(results, by, specs, graph, resampling) if resampling else {}
    for measure in specs:
        sliced = [one.slice(by, [measure], graph=graph) for one in results.values()]
        names, keys = sliced[0].names, sliced[0].keys
        of_parts = [{row[:names]: float(row[-1]) for row in table.rows} for table in sliced]
        parts = {
            tuple(map(str, part)): np.array([values[part] for values in of_parts])
            for part in of_parts[0]
        }
        counts = {keys[k]: [row[k] for row in sliced[0].rows] for k in range(names, len(keys) - 1)}
        one = _valued(measure, results, parts, keys[:names], counts)
        valued.append(replace(one, intervals=drawn.get(measure, {}), resampling=resampling))
    return valued


def _drawn_by_part(
    results: Mapping[str, Result], by: str, measures: Sequence[Measure], graph: Graph | None,
    resampling: Resampling,
) -> dict[Measure, dict[tuple[str, ...], Floats]]:  # fmt: skip
    """Intervals of every part, by measure: one draw of its questions serves all measures."""
    first = next(iter(results.values()))
    specs = [one for one in measures if one.side == first.sides[-1] and _is_mean(one)]
    if not specs:
        return {}
    samples = samples_of_aligned({name: one.ranks for name, one in results.items()}, specs)
    values = np.column_stack([one.values for one in samples])
    ends: dict[Measure, dict[tuple[str, ...], Floats]] = {measure: {} for measure in specs}

    def transformed(means: Floats) -> Floats:
        split = np.split(means, len(samples), axis=-1)
        columns = [one.transform(own) for one, own in zip(samples, split, strict=True)]
        return np.concatenate(columns, axis=-1)

    calculator = calculator_of(first.ranks, first.per_question)
    for names, rows in rows_by_part(calculator, by, graph=graph).items():
        cluster = np.unique(samples[0].cluster[rows], return_inverse=True)[1].astype(np.int64)
        if cluster.max() == 0:  # of one question there is no spread
            continue
        drawn = resampled_means(values[rows], cluster, transformed, resampling).interval()
        for measure, own in zip(specs, np.split(drawn, len(specs), axis=1), strict=True):
            ends[measure][names] = own
    return ends


def _is_mean(measure: Measure) -> bool:
    """Whether a value is a function of a mean over instances."""
    with suppress(UsageError):
        return bool(transform_of(measure)) and measure.averaging == "micro"
    return False


def values_by_ratios(
    ranks: Mapping[str, Ranks], counts: Mapping[str, float], measures: Sequence[str | Measure]
) -> list[SystemValues]:
    """Micro values of all systems at their test set's relation ratios, and at those of another."""
    results = {name: Result(one) for name, one in align_ranks(ranks).items()}
    valued = []
    for measure in parse_all(measures):
        parts: dict[tuple[str, ...], Floats] = {
            ("own",): np.array([one[measure] for one in results.values()]),
            ("given",): np.array([reweighted(one, measure, counts) for one in results.values()]),
        }
        valued.append(_valued(measure, results, parts, ("ratios",), {}))
    return valued


def _valued(
    measure: Measure, results: Mapping[str, Result], parts: Mapping[tuple[str, ...], Floats],
    dimensions: Sequence[str], counts: Mapping[str, Sequence[Cell]],
) -> SystemValues:  # fmt: skip
    whole = np.array([float(one[measure]) for one in results.values()])
    return SystemValues(
        measure.key, tuple(results), parts, tuple(dimensions), measure.higher_is_better,
        measure.digits, whole, counts,
    )  # fmt: skip


def triple_index(ranks: Ranks) -> Ints:
    """Place of each row's triple among all of them, ascending, int64 (n,)."""
    return np.unique(ranks.triple, return_inverse=True)[1].astype(np.int64)


def product(left: Floats, right: Floats) -> Floats:
    """Matrix product in the thread that asks: a BLAS's own threads wait for each other here."""
    return np.asarray(np.einsum("ij,jk->ik", left, right))


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers of one side: first those that are alone in their question, then the others by place.

    The others stand in levels: the best answers of all their questions, then the second ones, and
    so on, each system's own. Questions with more answers come first in every level, so that a level
    is a part of the one before, and running numbers of answers are sums of whole blocks.

    - rows: Rows of the aligned ranks.
    - triple: Place of the triple of each of these rows.
    - alone: How many rows come first whose question has one answer.
    - levels: First row of each level, counted from `alone`, and the end of the last one.
    - question, last: Place inside its level of each row that is not alone; last row of each such
      question.
    """

    rows: list[Ints]
    triple: list[Ints]
    alone: int
    levels: Ints
    question: Ints
    last: Ints

    @classmethod
    def of(cls, aligned: Mapping[str, Ranks], side: str) -> _Answers:
        first = next(iter(aligned.values()))
        of_side = np.flatnonzero(np.isin(first.side, SIDES[side]))
        question = np.unique(first.question[of_side], return_inverse=True)[1]
        sizes = np.bincount(question)
        larger = np.empty(len(sizes), np.int64)
        larger[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        owner = np.repeat(np.arange(len(sizes)), sizes)
        level = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        by_level = np.lexsort((larger[owner], level, sizes[owner] > 1))
        triple, rows = triple_index(first), []
        for ranks in aligned.values():
            in_order = np.lexsort((_ordinal(ranks)[of_side], question))
            rows.append(of_side[in_order[by_level]])
        alone = int((sizes == 1).sum())
        inside = larger[owner[by_level]][alone:]
        counts = np.bincount(level[by_level][alone:])
        levels = np.concatenate([[0], np.cumsum(counts)])
        shared = np.sort(sizes[sizes > 1])[::-1]
        last = levels[shared - 1] + np.arange(len(shared))
        return cls(rows, [triple[each] for each in rows], alone, levels, inside, last)

    def running(self, chosen: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Of those that are not alone: answers chosen of its question up to each, same shape."""
        running = chosen.astype(np.uint32)
        for before, start, stop in zip(self.levels, self.levels[1:], self.levels[2:], strict=False):
            running[start:stop] += running[before : before + stop - start]
        return running


@dataclass(frozen=True, eq=False)
class _TiedAnswers:
    """Answers that tie with others of their question, whose ranks depend on how many are chosen.

    - rows: Their places among the answers that are not alone in their question.
    - tie, int64 (rows,): The tie of each.
    - values, float64 (measures, rows, most): Values where 1, 2, ... answers of the tie are chosen.
    """

    rows: Ints
    tie: Ints
    values: Floats

    @classmethod
    def of(cls, ranks: Ranks, rows: Ints, measures: Sequence[Measure]) -> _TiedAnswers:
        keys = np.column_stack([ranks.question[rows], ranks.macro_greater[rows]])
        _, tie, size = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        tie = tie.reshape(-1)
        shared = np.flatnonzero((size[tie] > 1) & (ranks.macro_equal[rows] > 0))
        most = int(size[tie[shared]].max(initial=1))
        values = [
            [_answer_values(ranks, measure, count)[rows[shared]] for count in range(1, most + 1)]
            for measure in measures
        ]
        numbers = np.array(values).reshape(len(measures), most, len(shared))
        return cls(shared, tie[shared], np.ascontiguousarray(numbers.transpose(0, 2, 1)))

    def changes(self, chosen: NDArray[np.uint8], weight: Floats) -> Floats:
        """By how much several chosen answers of a tie change the sums, float64 (measures, B).

        Shapes: chosen (answers, B), weight float64 (answers, B).
        """
        if not len(self.rows):
            return np.zeros((len(self.values), 1))
        ties, place = np.unique(self.tie, return_inverse=True)
        counts = np.zeros((len(ties), chosen.shape[1]), np.int64)
        np.add.at(counts, place.reshape(-1), chosen[self.rows])
        each = np.maximum(counts[place.reshape(-1)] - 1, 0)
        one = np.arange(len(self.rows))[:, None]
        gained = self.values[:, one, each] - self.values[:, :, :1]
        return np.asarray((gained * weight[self.rows]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ByQuestion:
    """Several measures: means over questions that keep an answer of sums over their answers.

    - firsts, places, float64 (measures, answers): Values in the order of the system's rows: of
      measures that only see the first answer, and of AP@k, which is the sum of place x value over
      the answers, divided by their number.
    - tied: What `firsts` become where several answers of a question tie.
    """

    answers: _Answers
    firsts: list[Floats]
    places: list[Floats]
    tied: list[_TiedAnswers]

    def of(self, subsets: Bools) -> Floats:
        """Values, float64 (measures, B, s): of `firsts`, then of `places`."""
        answers, turned = self.answers, np.ascontiguousarray(subsets.T).view(np.uint8)
        single = turned[answers.triple[0][: answers.alone]].astype(np.float64)
        counts = answers.running(turned[answers.triple[0][answers.alone :]])[answers.last]
        total = single.sum(axis=0) + (counts > 0).sum(axis=0)
        share = 1.0 / np.maximum(counts, 1)
        n_first, alone = len(self.firsts[0]), answers.alone
        n_measures = n_first + len(self.places[0])
        sums = np.empty((n_measures, len(subsets), len(answers.rows)))
        for system, (first, place) in enumerate(zip(self.firsts, self.places, strict=True)):
            chosen = turned[answers.triple[system][alone:]]
            running = answers.running(chosen)
            sums[:, :, system] = product(np.concatenate([first, place])[:, :alone], single)
            if n_first:
                weight = (chosen * (running == 1)).astype(np.float64)
                sums[:n_first, :, system] += product(first[:, alone:], weight)
                sums[:n_first, :, system] += self.tied[system].changes(chosen, weight)
            if n_first < n_measures:
                weight = (chosen * running) * share[answers.question]
                sums[n_first:, :, system] += product(place[:, alone:], weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / total[:, None])


def _ordinal(ranks: Ranks) -> Floats:
    """Place of each answer in a run of unlimited depth; unscored ones stand in none."""
    return np.where(ranks.macro_answer_nan, np.inf, ranks.macro_rank("ordinal"))


def by_question(
    aligned: Mapping[str, Ranks], side: str, first: Sequence[Measure], place: Sequence[Measure]
) -> ByQuestion:
    answers = _Answers.of(aligned, side)
    columns = [
        tuple(
            np.array([_answer_values(ranks, measure)[rows] for measure in measures])
            .reshape(len(measures), len(rows))
            for measures in (first, place)
        )
        for ranks, rows in zip(aligned.values(), answers.rows, strict=True)
    ]  # fmt: skip
    tied = [
        _TiedAnswers.of(ranks, rows[answers.alone :], first)
        for ranks, rows in zip(aligned.values(), answers.rows, strict=True)
    ]
    firsts, places = ([each[k] for each in columns] for k in (0, 1))
    return ByQuestion(answers, firsts, places, tied)


def _answer_values(ranks: Ranks, measure: Measure, tied: int = 1) -> Floats:
    """What each answer is worth to a question-level measure, as one of so many in its tie."""
    if measure.is_trec:
        family, k = trec_family(measure)
        return SEEN[family][1](_ordinal(ranks), k)
    columns = (ranks.macro_greater, ranks.macro_equal, ranks.macro_tied_ahead)
    return measure.per_item(Ties(*columns, np.minimum(tied, ranks.macro_equal + 1)))


def trec_family(measure: Measure) -> tuple[str, int]:
    from kgtrec.trec.measures.names import resolve

    column = resolve([measure.metric])[0]
    if column.family not in SEEN:
        raise UsageError(f"{measure} does not follow from ranks; possible are {', '.join(SEEN)}")
    return column.family, int(column.cutoff or 0)


@dataclass(frozen=True, eq=False)
class _OverAnswers:
    """Mean over questions that keep an answer of a plain sum over their answers.

    Weights depend on the subset only: on how many answers of its question it keeps.

    - values, float64 (n, s): Sorted by question.
    """

    values: Floats
    triple: Ints
    starts: Ints
    divisor: Callable[[Ints], Floats]

    def of(self, subsets: Bools) -> Floats:
        chosen = subsets[:, self.triple].astype(np.float64)
        counts = np.add.reduceat(chosen, self.starts, axis=1).astype(np.int64)
        share = 1.0 / self.divisor(np.maximum(counts, 1))
        chosen *= np.repeat(share, np.diff(self.starts, append=len(self.triple)), axis=1)
        total = (counts > 0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(product(chosen, self.values) / total[:, None])


def over_answers(aligned: Mapping[str, Ranks], measure: Measure) -> _OverAnswers:
    family, k = trec_family(measure)
    first = next(iter(aligned.values()))
    rows = np.flatnonzero(np.isin(first.side, SIDES[measure.side]))
    rows = rows[np.argsort(first.question[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(first.question[rows], prepend=-1))
    values = np.column_stack([_answer_values(ranks, measure)[rows] for ranks in aligned.values()])
    return _OverAnswers(
        np.ascontiguousarray(values), triple_index(first)[rows], starts, _DIVISORS[family](k)
    )


def _ideal(k: int) -> Callable[[Ints], Floats]:
    gains = np.cumsum(1.0 / np.log2(np.arange(2.0, k + 2.0)))
    return lambda counts: gains[np.minimum(counts, k) - 1]


_DIVISORS: dict[str, Callable[[int], Callable[[Ints], Floats]]] = {
    "ndcg_cut": _ideal,
    "recall": lambda k: lambda counts: counts.astype(np.float64),
    "P": lambda k: lambda counts: np.full(counts.shape, float(k)),
}


def _within(rank: Floats, k: int) -> Floats:
    return (rank <= k).astype(np.float64)


_Row = tuple[str, Callable[[Floats, int], Floats]]

SEEN: dict[str, _Row] = {
    "map_cut": ("place", lambda rank, k: np.where(rank <= k, 1.0 / rank, 0.0)),
    "success": ("first", _within),
    "recip_rank": ("first", lambda rank, k: 1.0 / rank),
    "ndcg_cut": ("each", lambda rank, k: np.where(rank <= k, 1.0 / np.log2(rank + 1.0), 0.0)),
    "recall": ("each", _within),
    "P": ("each", _within),
}
"""What is seen of a question's answers, and what an answer at a rank is worth."""
