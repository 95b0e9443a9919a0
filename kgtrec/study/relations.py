"""Relation distributions: metrics at other ratios, and how metrics differ between relations.

A micro metric is a mean over relations, weighted by their triples. The weights of another test set
give the metric that the model would have had with its relations (Zhou et al. 2022, Eq. 1, Table 4);
`spread` describes how it differs between relations (their Figure 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.locations import fetched
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import FileError, InputError, PathName, UsageError
from kgtrec.graph.statistics.relations import checked_counts
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.metric import same

if TYPE_CHECKING:
    from kgtrec.results.result import Result


USUAL = ("mr", "mrr", "hits@1", "hits@3", "hits@10")


def read_relation_counts(path: PathName) -> dict[str, int]:
    """Relation label -> distinct triples, from a file of triples (head, relation, tail; TSV).

    Raises
    ------
    FileError
        Missing, empty, or a bad line (the first one is named).
    """
    from kgtrec.graph.labels import Labels
    from kgtrec.graph.triples import drop_duplicates
    from kgtrec.graph.tsv import load_triples

    with fetched(path) as copy:
        if not copy.is_file():
            hint = "give a file of triples, such as test.txt"
            raise FileError(path, found="the file does not exist", hint=hint)
        triples, _, relations = load_triples({"given": copy}, progress=False)
    distinct = drop_duplicates(triples["given"])
    labels = Labels.from_arrow(relations)
    counts = np.bincount(distinct[:, 1], minlength=len(relations)).tolist()
    return dict(zip(labels, counts, strict=True))


# --- other ratios ---------------------------------------------------------------------------------


def reweighted_mean(values: ArrayLike, counts: ArrayLike) -> float:
    """sum of ratio(p) * value(p) over the relations p that have a value."""
    numbers, weights = np.asarray(values, np.float64), checked_counts("counts", counts)
    if numbers.shape != weights.shape:
        raise InputError(
            f"values have shape {numbers.shape}, but counts {weights.shape}; give one of each per "
            "relation"
        )
    held = ~np.isnan(numbers)
    total = float(weights[held].sum())
    if not total > 0:
        raise InputError(
            "no relation has both a value and a count; give sets that share relations, with the "
            "same labels"
        )
    return float(np.sum(weights[held] * numbers[held]) / total)


def is_micro_mean(measure: Measure) -> bool:
    """Whether a measure is a mean over instances, so relations' values can be weighted."""
    return measure.averaging == "micro" and not measure.is_trec and measure.row[0].of_mean is same


def reweighted(
    result: Result, measure: str | Measure, counts: ArrayLike | Mapping[str, float]
) -> float:
    """A micro metric with the relation ratios of another set of triples (Zhou et al., Table 4).

    Parameters
    ----------
    result : Result
    measure : key or Measure
        A micro average of a metric that is a mean over instances: MR, MRR, Hits@k, ...
    counts : array_like (n_relations,), or mapping of relation label to number
        Triples of each relation in the other set: ``graph.relation_counts("valid")``, or
        `read_relation_counts` of a file. Relations that either set lacks drop out, and the rest
        is renormalised. The set's own counts give the metric itself.

    Returns
    -------
    float
        In the range of the metric.

    Raises
    ------
    UsageError
        The measure is no such mean.
    InputError
        The sets share no relation.
    """
    spec = Measure.parse(measure)
    if not is_micro_mean(spec):
        raise UsageError(
            f"{spec} is not a mean over instances, so it has no relation ratios; use a micro "
            "average of MR, MRR or Hits@k, as in both.realistic.micro.mrr"
        )
    rows = result.slice("relation", [spec]).rows
    values = {str(row[0]): float(row[-1]) for row in rows}
    counts_by_label = _by_label(result, counts)
    weights = [counts_by_label.get(name, 0.0) for name in values]
    return reweighted_mean(list(values.values()), weights)


def reweighted_table(
    result: Result,
    counts: ArrayLike | Mapping[str, float],
    measures: Sequence[str | Measure] | None = None,
) -> Table:
    """A row per measure: with the relation ratios of `counts`, and with its own.

    Parameters
    ----------
    result, counts
        As in `reweighted`.
    measures : sequence of keys or Measure, optional
        Micro averages; by default MR, MRR and Hits@1, 3, 10.

    Raises
    ------
    UsageError, InputError
        As `reweighted`.
    """
    side = result.sides[-1]
    specs = parse_all(measures or [f"{side}.realistic.micro.{name}" for name in USUAL])
    rows: list[tuple[Cell, ...]] = [
        (result.label + measure.key, result[measure], reweighted(result, measure, counts))
        for measure in specs
    ]
    return Table.of("measure, own ratios=own:4, given ratios=given:4", rows)


def coverage_note(result: Result, counts: Mapping[str, float]) -> str | None:
    """A sentence on the relations that only one of two sets has; None if there is none."""
    ranks = result.ranks
    labels = ranks.relation_labels
    evaluated = {str(r) if labels is None else labels[r] for r in np.unique(ranks.relation)}
    weighted = {name for name, count in counts.items() if count > 0}
    parts = []
    if foreign := weighted - evaluated:
        triples = sum(counts[name] for name in foreign)
        parts.append(
            f"{len(foreign):,} given relations ({triples:,.10g} of {sum(counts.values()):,.10g} "
            "triples) were not evaluated and are ignored"
        )
    if unweighted := evaluated - weighted:
        held = [label in unweighted for label in labels] if labels else None
        instances = int(np.asarray(held)[ranks.relation].sum()) if held else 0
        parts.append(
            f"{len(unweighted):,} evaluated relations ({instances:,} of {len(ranks):,} instances) "
            "have no given triple and are ignored"
        )
    return "; ".join(parts) or None


def _by_label(result: Result, counts: ArrayLike | Mapping[str, float]) -> Mapping[str, float]:
    if isinstance(counts, Mapping):
        return counts
    numbers = checked_counts("counts", counts)
    labels = result.ranks.relation_labels or [str(i) for i in range(len(numbers))]
    if len(labels) != len(numbers):
        raise InputError(
            f"counts have {len(numbers)} numbers for {len(labels)} relations; give one for each "
            "relation of the graph, or a mapping of labels to numbers"
        )
    return dict(zip(labels, numbers.tolist(), strict=True))


COUNTS = {"count", "questions", "instances", "from", "to"}
"""Columns of sliced tables that are not measures."""

STATISTICS = ("min", "q1", "median", "q3", "max", "mean", "groups")


def spread(values: ArrayLike) -> dict[str, float]:
    """Least value, quartiles (numpy's linear percentiles), largest value and mean of a metric.

    The values are of relations or other groups (Zhou et al., Figure 6); those that are NaN do not
    count as groups.
    """
    numbers = np.asarray(values, np.float64)
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        raise InputError("no group has a value; give values that are not nan")
    quartiles = np.percentile(known, (0, 25, 50, 75, 100)).tolist()
    return dict(zip(STATISTICS, (*quartiles, float(known.mean()), len(known)), strict=True))


def spreads(table: Table) -> Table:
    """Quartiles and mean of each measure of a sliced table over its groups.

    Parameters
    ----------
    table : Table
        From `Result.slice`.

    Returns
    -------
    Table
        Rows min, q1, median, q3, max, mean, and groups (how many have a value); the measures of
        `table` as columns, without its numbers of questions and instances.

    Raises
    ------
    InputError
        No group has a value.
    """
    positions = [i for i, key in enumerate(table.keys) if i >= table.names and key not in COUNTS]
    columns = [spread([float(row[i]) for row in table.rows]) for i in positions]
    rows: list[tuple[Cell, ...]] = [(name, *(one[name] for one in columns)) for name in STATISTICS]
    titles, keys = (
        ("over groups", *(heads[i] for i in positions)) for heads in (table.titles, table.keys)
    )
    return Table(titles, keys, (0, *(table.digits[i] for i in positions)), rows)
