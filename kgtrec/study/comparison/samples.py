"""What systems are compared by: the values of one measure, item by item, the same items for all.

An item is what the measure's averaging counts (`kgtrec.measures.AVERAGINGS`): an instance for
``micro``, a question for ``macro`` and ``question``, a triple for ``triple``, a relation for
``relation`` and ``macro_relation``, and a query for runs. The value of a system is the plain mean
over its items, or a monotone function of it (GMR is exp of the mean of ln rank).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS, Resampled, cluster_sums, resampled_means
from kgtrec._internal.notebook import ShownInLines
from kgtrec.errors import InputError, UsageError
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.averaging import SIDES, Weighing, require_side, sides_present
from kgtrec.measures.metric import plain
from kgtrec.results.comparability import comparable

if TYPE_CHECKING:
    from kgtrec.measures.tied_ranks import Ranked
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Samples", "align_ranks", "distinct_titles", "resample", "samples_of_ranks",
           "short_name", "transform_of"]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Transform = Callable[[Floats], Floats]


def _same(mean: Floats) -> Floats:
    return mean


def _reciprocal(mean: Floats) -> Floats:
    return np.asarray(1.0 / mean)


def _inverse_exp(mean: Floats) -> Floats:
    return np.asarray(np.exp(-mean))


_OF_MEAN: dict[str, Transform] = {
    "gmr": np.exp,
    "igmr": _inverse_exp,
    "hmr": _reciprocal,
    "imr": _reciprocal,
}
_FALLS = (_reciprocal, _inverse_exp)


@dataclass(frozen=True, eq=False)
class Samples(ShownInLines):
    """One measure of several systems on the same items.

    Attributes
    ----------
    name, title : str
        The measure's key, and its heading in tables.
    systems : tuple of str, length s
    values : ndarray of float64, shape (n, s)
        Value of every item; all finite.
    cluster : ndarray of int64, shape (n,)
        Question of each item, from 0 on: items of one question are not independent of each other.
        Items that no question holds together are clusters of their own.
    unit : str
        What an item is: "instances", "questions", "triples", "relations" or "queries".
    higher_is_better : bool
    transform : function
        From means over items to values of the measure; monotone.
    digits : int
        Decimals in tables.
    """

    name: str
    title: str
    systems: tuple[str, ...]
    values: Floats
    cluster: Ints
    unit: str
    higher_is_better: bool = True
    transform: Transform = _same
    digits: int = 4

    def __post_init__(self) -> None:
        values = self.values
        if values.ndim != 2 or values.shape[1] != len(self.systems) or not len(values):
            raise InputError(
                f"{self.name}: values have shape {values.shape}; expected one row an item, at "
                f"least one, and a column for each of the {len(self.systems)} systems"
            )
        if self.cluster.shape != (len(values),):
            raise InputError(
                f"{self.name}: {self.cluster.shape} clusters for {len(values)} items; give one each"
            )
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0].tolist()
            raise InputError(
                f"{self.name} of {self.systems[column]} is {values[row, column]} on item {row}; "
                "a mean over such items says nothing"
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
        """1.0 where a higher mean over items is the better one, else -1.0."""
        rises = self.higher_is_better != (self.transform in _FALLS)
        return 1.0 if rises else -1.0

    def means(self) -> Floats:
        """Value of the measure for each system, float64 (s,)."""
        return self.transform(self.values.mean(axis=0))

    def by_cluster(self) -> Samples:
        """The same with one item per cluster, so that items are independent.

        A cluster's value is the sum over its items, times clusters / items: the plain mean over
        clusters is then the mean over items, as if the clusters' sizes were fixed.
        """
        if self.n_clusters == len(self):
            return self
        sums = cluster_sums(self.values, self.cluster)
        values = sums * (len(sums) / len(self))
        return replace(self, values=values, cluster=np.arange(len(sums)), unit="questions")


def resample(samples: Samples, draws: int = DRAWS, seed: int = 0) -> Resampled:
    """Draw the questions anew, and value all systems on the same draws.

    Parameters
    ----------
    samples : Samples
    draws : int
        Bootstrap samples B; 100 at least.
    seed : int
        The same seed gives the same bits, for any number of threads.

    Raises
    ------
    UsageError
        Too few draws, or one cluster only.
    """
    if draws < 100:
        raise UsageError(f"draws={draws!r} are too few for an interval; take 100 or more")
    if samples.n_clusters < 2:
        raise UsageError(
            f"{samples.name}: one question alone has no spread to draw from; give two or more"
        )
    return resampled_means(samples.values, samples.cluster, samples.transform, draws, seed)


def short_name(key: str) -> str:
    """A measure's key without what is most often said: "micro.mrr"."""
    return key.replace("both.", "").replace("realistic.", "")


def distinct_titles(titles: Sequence[str], keys: Sequence[str]) -> tuple[str, ...]:
    """Titles of measures, with the short key in place of one that several have (of either side)."""
    return tuple(
        title if titles.count(title) == 1 else short_name(key)
        for title, key in zip(titles, keys, strict=True)
    )


def align_ranks(ranks: Mapping[str, Ranks]) -> dict[str, Ranks]:
    """The same instances in the same order for every system.

    Raises
    ------
    UsageError
        Fewer than two systems.
    InputError
        Systems that answered other questions, or among other candidates (sampled ones against
        all): every such file is named with what differs.
    """
    if len(ranks) < 2:
        raise UsageError(f"{len(ranks)} system to compare; give the ranks of two or more")
    aligned = {}
    for name, one in ranks.items():
        order = np.lexsort((one.side, one.triple))
        in_order = bool((order == np.arange(len(order))).all())
        aligned[name] = one if in_order else one.subset(order)
    first, *others = aligned
    problems = []
    for other in others:
        reasons = comparable(aligned[first], aligned[other])
        if reasons:
            problems.append(f"{first} and {other} cannot be compared: {'; '.join(reasons)}")
    if problems:
        message = "\n".join(problems)
        raise InputError(f"{message}; rank all systems on the same questions")
    for other in others:
        for column in ("triple", "side", "question", "answer", "candidates"):
            if not np.array_equal(getattr(aligned[first], column), getattr(aligned[other], column)):
                raise InputError(
                    f"{first} and {other} cannot be compared: their columns {column!r} differ; "
                    "rank all systems on the same questions"
                )
    return aligned


def transform_of(measure: Measure) -> Transform:
    """What makes a measure of the mean over items.

    Raises
    ------
    UsageError
        It is not a function of a mean over items, or neither end of it is better.
    """
    if measure.averaging == "stratified":
        raise UsageError(
            f"{measure} weighs relations by popularity, so that no plain mean over items gives it; "
            f"compare systems by {_sibling(measure, 'micro')} or {_sibling(measure, 'macro')}"
        )
    metric, _ = measure.row
    if metric.higher_is_better is None:
        raise UsageError(
            f"{measure} says nothing of which system is better; compare by a metric such as "
            f"{measure.side}.{measure.rank_type}.micro.mrr"
        )
    if metric.finish is plain:
        return _same
    transform = _OF_MEAN.get(metric.name)
    if transform is None or measure.averaging == "macro_relation":
        base = _base_metric(metric.name, measure.metric)
        raise UsageError(
            f"{measure} is not a mean over items, so that there is nothing to pair; on the same "
            f"questions compare systems by {measure.side}.{measure.rank_type}."
            f"{measure.averaging}.{base}"
        )
    return transform


def _sibling(measure: Measure, averaging: str) -> str:
    return f"{measure.side}.{measure.rank_type}.{averaging}.{measure.metric}"


def _base_metric(name: str, metric: str) -> str:
    if "hits" in name:
        return f"hits@{metric.rpartition('@')[2]}"
    return "mr" if name in ("amr", "amri", "z_mr", "imr") else "gmr" if "gm" in name else "mrr"


def samples_of_ranks(
    ranks: Mapping[str, Ranks], measures: Sequence[str | Measure]
) -> list[Samples]:
    """Values of measures for several systems on the same questions, paired item by item.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        By the names of the systems; see `align_ranks`.
    measures : sequence of keys or Measure
        Rank metrics that are (functions of) means, and trec_eval measures that follow from ranks.

    Returns
    -------
    list of Samples
        One for each measure.

    Raises
    ------
    UsageError
        A measure that has no value per item; all such measures are named.
    InputError
        Systems that cannot be compared, see `align_ranks`.
    """
    specs = parse_all(measures)
    problems = []
    for measure in specs:
        try:
            _check(measure)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    aligned = align_ranks(ranks)
    return [_of_measure(aligned, measure) for measure in specs]


def _check(measure: Measure) -> None:
    if not measure.is_trec:
        transform_of(measure)
        return
    from kgtrec.trec.measures.from_ranks import follows_from_ranks
    from kgtrec.trec.measures.names import resolve

    for column in resolve([measure.metric]):
        if not follows_from_ranks(column):
            raise UsageError(
                f"{measure} does not follow from ranks; compare runs: "
                "kgtrec compare --qrels QRELS RUN..."
            )
        if column.is_count or column.is_geometric:
            raise UsageError(f"{measure} is not a mean over questions; take another")


def _of_measure(aligned: Mapping[str, Ranks], measure: Measure) -> Samples:
    first = next(iter(aligned.values()))
    require_side(measure, measure.side, sides_present(first))
    columns = [_item_values(ranks, measure) for ranks in aligned.values()]
    cluster, unit = _items(first, measure)
    return Samples(
        name="sampled." * first.sampled + measure.key,
        title=measure.title,
        systems=tuple(aligned),
        values=np.ascontiguousarray(np.column_stack(columns)),
        cluster=np.unique(cluster, return_inverse=True)[1].astype(np.int64),
        unit=unit,
        higher_is_better=measure.is_trec or bool(measure.row[0].higher_is_better),
        transform=_same if measure.is_trec else transform_of(measure),
        digits=measure.digits,
    )


def _item_values(ranks: Ranks, measure: Measure) -> Floats:
    """Value of each item of the measure, in an order that is the same for all systems."""
    of_side = np.isin(ranks.side, SIDES[measure.side])
    if measure.averaging == "macro":
        if measure.is_trec:
            from kgtrec.trec.measures.from_ranks import native_values

            return native_values(ranks.subset(of_side), [measure.metric])[measure.metric]
        own = ranks.subset(of_side)
        return _values(measure, Weighing.of(own, "macro", measure.side).ties)
    if measure.averaging == "triple":
        return _values(measure, Weighing.of(ranks, "triple", measure.side).ties)
    micro = Weighing.of(ranks.subset(of_side), "micro", measure.side)
    values = _values(measure, micro.ties)
    if measure.averaging == "micro":
        return values
    column = ranks.question if measure.averaging == "question" else ranks.relation
    owner = np.unique(column[of_side], return_inverse=True)[1]
    return np.bincount(owner, weights=values) / np.bincount(owner)


def _values(measure: Measure, ties: Ranked) -> Floats:
    metric, parameter = measure.row
    assert measure.rank_type is not None
    values = metric.value(ties, measure.rank_type, parameter)
    return np.asarray(values.scaled / values.scale, np.float64)


def _items(ranks: Ranks, measure: Measure) -> tuple[Ints, str]:
    """Cluster of each item, and what an item is."""
    of_side = np.isin(ranks.side, SIDES[measure.side])
    if measure.averaging == "micro":
        return ranks.question[of_side], "instances"
    if measure.averaging in ("macro", "question"):
        return np.unique(ranks.question[of_side]), "questions"
    if measure.averaging == "triple":
        return np.unique(ranks.triple), "triples"
    return np.unique(ranks.relation[of_side]), "relations"
