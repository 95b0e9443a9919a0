"""Samples for the comparison of systems: the values of a measure per item, on the same items.

An item is the unit of the measure's averaging (`kgtrec.measures.AVERAGINGS`): an instance for
``micro``, a question for ``macro`` and ``question``, a question in its group for ``group``, a
triple for ``triple``, a relation for ``relation`` and ``macro_relation``, and a query of the qrels
for runs. The value of a system is the plain mean over its items, or a monotone function of the mean
(GMR is exp of the mean of ln rank).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.bootstrap import (
    COMPARING,
    Resampled,
    Resampling,
    cluster_sums,
    resample_means,
)
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import Cell, ShownInLines, Table
from kgtrec.errors import InputError, UsageError, list_problems, refuse_if
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.averaging import (
    SIDES,
    Weighing,
    instance_ties,
    question_rows,
    question_ties,
    require_graph,
    require_side,
    sides_present,
)
from kgtrec.measures.calculator import OF_GRAPHS
from kgtrec.measures.measure import term_of_group
from kgtrec.measures.metric import FALLING, OfMean, same
from kgtrec.ranking.ranks import Ranks, RanksAndRun
from kgtrec.results.comparability import comparable
from kgtrec.results.result import Result
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import native_values, refuse_without_judged

if TYPE_CHECKING:
    from kgtrec.trec.eval.score import Scored

SystemRanks = Ranks | Result | RanksAndRun
"""The ranks of a system."""


@dataclass(frozen=True, eq=False)
class Samples(ShownInLines):
    """The values of a measure for several systems on the same items.

    - name, title: Key of the measure, and its heading in tables.
    - values, float64 (n, s): Value of each item for each system; all finite.
    - cluster, int64 (n,): Question of each item, from 0 on. Items of the same question are not
      independent. Items that share no question are separate clusters.
    - unit: Kind of the items: "instances", "questions", "triples", "relations" or "queries".
    - transform: Monotone function from means over items to values of the measure.
    - items: Names of the items, if they are queries.
    - unanswered: Number of queries of the qrels that each system lacks, if they are queries.
    - weight, float64 (n,) or None: Factor in the values of each item; the mean of all is 1. Draws
      divide by the sum of their weights, so that means stay within the measure's range.
    """

    name: str
    title: str
    systems: tuple[str, ...]
    values: Float64
    cluster: Int64
    unit: str
    higher_is_better: bool = True
    transform: OfMean = same
    digits: int = 4
    weight: Float64 | None = None
    items: Sequence[str] = ()
    unanswered: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = self.values
        if not len(values):
            raise InputError(f"{self.name}: there are no items to compare; give one or more")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0].tolist()
            raise InputError(
                f"{self.name} of {self.systems[column]} is {values[row, column]} on item {row}; "
                "leave out items without a finite value"
            )

    def _lines(self) -> tuple[str, str]:
        size = f"{len(self):,} {self.unit} of {self.n_clusters:,} clusters"
        return f"{self.name}: {size}", f"systems: {', '.join(self.systems)}"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max()) + 1

    @property
    def sign(self) -> float:
        """1.0 if a higher mean over items is better, else -1.0."""
        rises = self.higher_is_better != (self.transform in FALLING)
        return 1.0 if rises else -1.0

    def means(self) -> Float64:
        """Return the value of the measure for each system, float64 (s,)."""
        return self.transform(self.values.mean(axis=0))

    def by_cluster(self) -> Samples:
        """Return the samples with an item per cluster, so that items are independent.

        The value of a cluster is the sum over its items, times clusters / items. So the plain mean
        over clusters is the mean over items, as if the sizes of clusters were fixed.
        """
        if self.n_clusters == len(self):
            return self
        columns = np.column_stack([self.values, *([] if self.weight is None else [self.weight])])
        sums = cluster_sums(columns, self.cluster)
        values, weight = np.split(sums * (len(sums) / len(self)), [self.values.shape[1]], axis=1)
        return replace(
            self,
            values=values,
            cluster=np.arange(len(sums)),
            unit="questions",
            weight=None if self.weight is None else weight[:, 0],
        )


def resample(samples: Samples, resampling: Resampling = COMPARING) -> Resampled:
    """Resample the questions, and compute the values of all systems on the same draws."""
    if samples.n_clusters < 2:
        raise UsageError(f"{samples.name}: one question is too few to draw from; give two or more")
    return resample_means(
        samples.values, samples.cluster, samples.transform, resampling, samples.weight
    )


def short_name(key: str) -> str:
    """Return the key of a measure without its default parts, such as "micro.mrr"."""
    return key.replace("both.", "").replace("realistic.", "")


def distinct_titles(titles: Sequence[str], keys: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of measures; the short key replaces a title that several of them have."""
    return tuple(
        title if titles.count(title) == 1 else short_name(key)
        for title, key in zip(titles, keys, strict=True)
    )


def table_by_measure(
    heads: Sequence[str],
    parts: Sequence[tuple[Cell, ...]],
    measures: Mapping[str, str],
    values: ArrayLike,
    names: int = 1,
) -> Table:
    """Return a table with a row per part and a column per measure.

    - heads, parts: Headings, and the cells of each part below them.
    - measures: Titles by key.
    - values: Array-like of shape (measures, parts).
    - names: Number of columns that name a row.
    """
    columns = np.asarray(values, np.float64).reshape(len(measures), len(parts))
    rows = [(*part, *row) for part, row in zip(parts, columns.T.tolist(), strict=True)]
    titled = ((title, key, 4) for key, title in measures.items())
    return Table.from_rows([*((head, head, 0) for head in heads), *titled], rows, names)


def ranks_by_name(name: str, systems: object, noun: str = "system") -> dict[str, Ranks]:
    """Return the ranks of several systems, given as Ranks or Results, by their names.

    `name` and `noun` as of `by_name`, whose errors this raises, too. UsageError for anything else.
    """
    if is_ranks(systems):
        raise UsageError(
            f"{argument(name, type(systems).__name__)} is a single {noun}; pass several in a dict, "
            "as in {'a': ranks, 'b': others}"
        )
    named = by_name(name, systems, noun)
    return {of_system: _require_ranks(name, value) for of_system, value in named.items()}


def runs_by_name(name: str, systems: object, noun: str = "system") -> dict[str, list[Ranks]]:
    """Return the ranks of all runs of several systems by their names.

    A system may be a single Ranks or Result. Other arguments and errors as of `ranks_by_name`.
    """
    return {
        of_system: [_require_ranks(name, run) for run in _list_runs(runs)]
        for of_system, runs in by_name(name, systems, noun).items()
    }


def _list_runs(runs: object) -> list[object]:
    """Return the runs of a system, which may be a single one, as a list."""
    single = is_ranks(runs) or isinstance(runs, str) or not isinstance(runs, Iterable)
    return [runs] if single else list(runs)  # type: ignore[call-overload]


def is_ranks(value: object) -> bool:
    """Return True for the ranks of a single system: Ranks, a Result, or what `rank` returns."""
    return isinstance(value, Ranks | Result | RanksAndRun)


def _require_ranks(name: str, value: object) -> Ranks:
    """Return the ranks of Ranks or a Result; UsageError for anything else."""
    ranks = value.ranks if isinstance(value, Result | RanksAndRun) else value
    if isinstance(ranks, Ranks):
        return ranks
    raise UsageError(
        f"{argument(name, type(value).__name__)} is not ranks by the names of systems; pass a "
        "dict, as in {'svd': kgtrec.Ranks.load('svd.parquet')}, or a list of ranks"
    )


def align_ranks(systems: Named[SystemRanks], least: int = 2) -> dict[str, Ranks]:
    """Return the ranks of all systems with the same instances in the same order.

    UsageError for fewer systems than `least`; InputError if their instances differ.
    """
    ranks = ranks_by_name("ranks", systems)
    if len(ranks) < least:
        raise UsageError(
            f"{len(ranks)} system{'s' * (len(ranks) != 1)} cannot be compared; give the ranks of "
            "two or more"
        )
    aligned = {}
    for name, ranks_of_system in ranks.items():
        order = np.lexsort((ranks_of_system.side, ranks_of_system.triple))
        in_order = bool((order == np.arange(len(order))).all())
        aligned[name] = ranks_of_system if in_order else ranks_of_system.subset(order)
    first, *others = aligned
    reasons = {other: comparable(aligned[first], aligned[other]).reasons for other in others}
    if any(reasons.values()):
        remedy = "rank all systems on the same questions"
        problems = [
            f"{first} and {other} cannot be compared: {'; '.join(differences)}"
            for other, differences in reasons.items()
            if differences
        ]
        problems = [f"{problems[0]}; {remedy}"] if len(problems) == 1 else problems
        raise InputError(list_problems(f"{len(problems)} systems differ; {remedy}", problems))
    for other in others:
        for column in ("triple", "side", "question", "answer", "candidates"):
            if not np.array_equal(getattr(aligned[first], column), getattr(aligned[other], column)):
                raise InputError(
                    f"{first} and {other} cannot be compared: their columns {column!r} differ; "
                    "rank all systems on the same questions"
                )
    return aligned


def transform_of(measure: Measure) -> OfMean:
    """Return the function from the mean over items to the measure.

    UsageError if the measure is not a function of a mean, or has no better end.
    """
    if measure.averaging == "stratified":
        micro, macro = (
            f"{measure.side}.{measure.rank_type}.{averaging}.{measure.metric}"
            for averaging in ("micro", "macro")
        )
        raise UsageError(
            f"{measure} weights relations by popularity, so it is not a mean over items; compare "
            f"systems by {micro} or {macro}"
        )
    if measure.higher_is_better is None:
        raise UsageError(
            f"{measure} does not say which system is better; compare by a metric such as "
            f"{measure.side}.{measure.rank_type}.micro.mrr"
        )
    metric, _ = measure.row
    if metric.of_mean is same:
        return same
    if metric.of_mean is None or measure.averaging in ("macro_relation", "group"):
        base = measure.base
        base = base if base.row[0].of_mean is not None else base.base
        raise UsageError(
            f"{measure} is not a mean over items, so items cannot be paired; on the same "
            f"questions, compare systems by {base}"
        )
    return metric.of_mean


def samples_of_ranks(ranks: Named[SystemRanks], measures: Sequence[str | Measure]) -> list[Samples]:
    """Compute each measure per item, for several systems on the same questions.

    Parameters
    ----------
    ranks : mapping of str to Ranks or Result, or sequence of them
        By the names of the systems; those of a sequence are called "system 1", "system 2", ...
        Pairs (name, ranks) keep their names.
    measures : sequence of keys or Measure
        Rank metrics that are (functions of) means, and trec_eval measures that ranks determine.

    Raises
    ------
    UsageError
        A measure has no value per item; all such measures are named.
    InputError
        Systems cannot be compared; see `align_ranks`.
    """
    specs = parse_item_measures(measures)
    return samples_of_aligned(align_ranks(ranks), specs)


def parse_item_measures(measures: Sequence[str | Measure]) -> list[Measure]:
    """Parse measures; UsageError, which names all of them that have no value per item."""
    specs, problems = parse_all(measures), []
    for measure in specs:
        try:
            if not measure.is_trec:
                transform_of(measure)
            elif any(
                column.is_count or column.is_geometric for column in resolve([measure.metric])
            ):
                raise UsageError(f"{measure} is not a mean over questions; choose another measure")
        except UsageError as error:
            problems.append(error.marked)
    if problems:
        raise UsageError(list_problems(f"{len(problems)} measures do not fit", problems))
    return specs


def samples_of_aligned(aligned: Mapping[str, Ranks], measures: Sequence[Measure]) -> list[Samples]:
    """Compute each measure per item, for systems whose instances have the same order."""
    return [_of_measure(aligned, measure) for measure in measures]


def _of_measure(aligned: Mapping[str, Ranks], measure: Measure) -> Samples:
    """Compute the samples of one measure; see `samples_of_aligned`."""
    first = next(iter(aligned.values()))
    measure = replace(measure, side=require_side(measure, measure.side, sides_present(first)))
    if measure.averaging in OF_GRAPHS:
        require_graph(measure, first)
    items = [_items(ranks, measure) for ranks in aligned.values()]
    _, cluster, unit, weight = items[0]
    return Samples(
        name="sampled." * first.sampled + measure.key,
        title=measure.title,
        systems=tuple(aligned),
        values=np.column_stack([values for values, *_ in items]),
        cluster=np.unique(cluster, return_inverse=True)[1].astype(np.int64),
        unit=unit,
        higher_is_better=measure.higher_is_better is not False,
        transform=same if measure.is_trec else transform_of(measure),
        digits=measure.digits,
        weight=weight,
    )


def _items(ranks: Ranks, measure: Measure) -> tuple[Float64, Int64, str, Float64 | None]:
    """Return the value and the cluster of each item, the unit of items, and their weights.

    The order is the same for all systems. Arrays have shape (n,); weights are None if all are 1.
    """
    if measure.averaging == "group":
        return _in_groups(ranks, measure)
    if measure.averaging == "triple":
        ties = Weighing.from_ranks(ranks, "triple", measure.side).ties
        return measure.per_item(ties), np.unique(ranks.triple), "triples", None
    ranks = ranks.subset(np.isin(ranks.side, SIDES[measure.side]))
    if measure.averaging == "macro":
        if measure.is_trec:
            refuse_without_judged(measure.metric)
            values = native_values(ranks, [measure.metric])[measure.metric]
        else:
            values = measure.per_item(question_ties(ranks, *question_rows(ranks)))
        return values, np.unique(ranks.question), "questions", None
    values = measure.per_item(instance_ties(ranks))
    if measure.averaging == "micro":
        return values, ranks.question, "instances", None
    by_question = measure.averaging == "question"
    ids = ranks.question if by_question else ranks.relation
    owners, owner = np.unique(ids, return_inverse=True)
    return _means(values, owner), owners, "questions" if by_question else "relations", None


def _in_groups(ranks: Ranks, measure: Measure) -> tuple[Float64, Int64, str, Float64]:
    """Return the items of a mean over groups, one per group and question; see `_items`.

    Weights make the plain mean of the items' values equal to the mean over groups.
    """
    term, names = term_of_group(measure, ranks)
    rows = np.arange(len(ranks))
    if names:
        rows = np.flatnonzero(np.isin(term.texts(term.codes), names))
    pairs = np.stack([term.codes[rows], ranks.question[rows]])
    distinct, owner = np.unique(pairs, axis=1, return_inverse=True)
    if measure.is_trec:
        refuse_without_judged(measure.metric)
        numbers = np.unique(ranks.question)
        by_question = native_values(ranks, [measure.metric])[measure.metric]
        values = by_question[np.searchsorted(numbers, distinct[1])]
    else:
        values = _means(measure.per_item(instance_ties(ranks.subset(rows))), owner.reshape(-1))
    groups, group = np.unique(distinct[0], return_inverse=True)
    sizes = np.bincount(group)
    weight = len(values) / (len(groups) * sizes[group])
    return values * weight, distinct[1], "questions", weight


def _means(values: Float64, owner: Int64) -> Float64:
    """Return the mean of the values of each owner, float64 (owners,)."""
    return np.bincount(owner, weights=values) / np.bincount(owner)


def samples_of_runs(
    qrels: str | os.PathLike[str] | Mapping[str, Mapping[str, int]],
    runs: Named[Any],
    measures: Sequence[str],
    *,
    entities: int | None = None,
    ties: str | None = None,
    least: int = 2,
) -> list[Samples]:
    """Compute trec_eval measures per query for several runs, over all queries of the qrels.

    Parameters
    ----------
    qrels : str, path-like, or mapping of query to mapping of document to relevance
        Queries without a judgement are left out.
    runs : mapping of str to path-like or RunColumns, or sequence of them
        Runs by the names of the systems; in a sequence, paths are called like their files.
    measures : sequence of str
        Names as `kgtrec.trec.measures.names.resolve` reads them: "map", "ndcg_cut_20", "P.5,10",
        "AP@20", ...; and micro metrics of `kgtrec eval`, "kg_mrr" or "kg_hits.1,10", whose both
        ends are compared.
    entities : int, optional
        Number of entities of the graph; kg_mr needs it.
    ties : {"expected", "min", "max", "name"}, optional
        Mean, smallest or largest value over all orders of tied documents, as in `kgtrec eval`; or
        the value in their order by name. By default, this one, with a warning if ties matter.
    least : int
        Number of runs from which on they are accepted.

    Returns
    -------
    list of Samples
        Samples of each measure, in the order of `measures`. All systems have the same queries: if
        a run lacks a query, it counts as having retrieved nothing (trec_eval -c), and
        ``unanswered`` counts such queries.

    Raises
    ------
    FileError
        A file cannot be read or is malformed.
    InputError
        A run shares no query with the qrels.
    UsageError
        Fewer runs than `least`; unknown measures, or counts, which have no mean.
    """
    from kgtrec.trec.eval.evaluate import tie_warning
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.eval.score import score

    runs = by_name("runs", runs)
    if len(runs) < least:
        raise UsageError(f"{len(runs)} run cannot be compared; give two or more")
    if isinstance(qrels, Mapping):
        qrels = {query: row for query, row in qrels.items() if row}
    options = EvalOptions(complete=True)
    order = None if ties == "name" else ties
    request = Request(qrels, [*runs.values()], measures, options, entities=entities, ties=order)
    check_columns(request.columns, request.micro)
    scored = dict(zip(runs, score(request), strict=True))
    for name, run in scored.items():
        if ties is None and run.tied.queries:
            warnings.warn(tie_warning(run.tied, len(run.queries), name), stacklevel=2)
    queries = next(iter(scored.values())).queries
    unanswered = {name: run.unanswered for name, run in scored.items()}

    def sample(column: Any, values: list[Float64], transform: OfMean = same) -> Samples:
        better = column.row.higher_is_better is not False
        return Samples(
            column.key,
            column.key,
            tuple(runs),
            np.column_stack(values),
            np.arange(len(values[0])),
            "queries",
            better,
            transform,
            items=queries,
            unanswered=unanswered,
        )

    samples = [
        sample(
            column,
            [run.values[column.name] for run in scored.values()],
            column.of_mean if column.is_geometric else same,
        )
        for column in request.columns
    ]
    samples += [sample(column, _of_answers(column, scored)) for column in request.micro]
    of_key = {of_measure.name: of_measure for of_measure in samples}
    return [of_key[column.key] for column in request.asked]


def check_columns(columns: Iterable[Any], micro: Iterable[Any]) -> None:
    """Raise UsageError for measures that have no better end, or are not a mean over items."""
    wrong = [c.name for c in columns if c.row.higher_is_better is None]
    quotients = [c.name for c in micro if c.row.of_answers != "mean"]
    refuse_if(
        (
            wrong,
            f"{', '.join(wrong)}: these measures do not say which run is better; compare by "
            "map, ndcg_cut_20, bpref, ...",
        ),
        (
            quotients,
            f"{', '.join(quotients)}: not a mean over queries or answers; compare by "
            "kg_mr, which ranks systems the same way",
        ),
    )


def notes_on_missing(missing: Mapping[str, int], of_all: str = "", more: str = "") -> list[str]:
    """Return notes on the queries that are not in the runs, per system."""
    return [
        f"{name}: {count:,} {of_all}queries of the qrels are not in the run; they count as if "
        f"nothing were retrieved{more}"
        for name, count in missing.items()
        if count
    ]


def _of_answers(column: Column, scored: Mapping[str, Scored]) -> list[Float64]:
    """Compute the values of a micro metric per query, float64 (queries,) for each run.

    The value of a query is the sum over its answers, divided by the mean number of answers. So the
    mean over queries equals the mean over all answers, as if the sizes of queries were fixed (see
    `Samples.by_cluster`).
    """
    parts = [run.micro.parts[column] for run in scored.values() if run.micro is not None]
    return [sums * (len(sums) / answers.sum()) for sums, answers in parts]
