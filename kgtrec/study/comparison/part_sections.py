"""Sections of the report page with the values of systems on parts of the questions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from kgtrec.study.comparison.parts import SystemValues
from kgtrec.study.section import Section, plain_numbers


def parts_section(
    metrics: Sequence[str],
    by_dimension: Mapping[str, Sequence[SystemValues]],
    terms: Collection[str],
    best: tuple[int, str],
) -> Section:
    """Return values and intervals on the parts of several dimensions, one after another.

    Parameters
    ----------
    metrics : sequence of str
        Names of the metrics; the first is MRR.
    by_dimension : mapping of str to sequence of SystemValues
        Values by dimension and metric.
    terms : collection of str
        Dimensions that are terms; their name precedes those of their parts.
    best : tuple of int and str
        Number and name of the model for the sentence on sides.
    """
    parts: dict[str, Any] = {"names": [], "questions": [], "instances": []}
    parts |= _lists_by_metric(metrics, list(by_dimension.values()))
    for by, (values, *_) in by_dimension.items():
        names = _name_parts(values, by)
        parts["names"] += [f"{by} {name}" for name in names] if by in terms else names
        for count in ("questions", "instances"):
            parts[count] += values.counts[count]
    return Section({"metrics": list(metrics), "parts": parts}, _best_sides(parts, *best))


def relations_section(
    metrics: Sequence[str],
    values: Sequence[SystemValues] | None,
    categories: Mapping[str, str] | None = None,
) -> Section:
    """Return values by relation, and its category if known; None without relations."""
    if values is None:
        return Section({"relations": None})
    names = [name for (name,) in values[0].parts]
    relations: dict[str, Any] = {"names": names, "instances": list(values[0].counts["count"])}
    if categories is not None:
        relations["categories"] = [categories.get(name, "") for name in names]
    relations["values"] = _lists_by_metric(metrics, [values])["values"]
    return Section({"relations": relations})


def _lists_by_metric(
    metrics: Sequence[str], by_dimension: Sequence[Sequence[SystemValues]]
) -> dict[str, dict[str, Any]]:
    """Return values and ends of intervals by metric, model and part of any dimension."""
    lists: dict[str, dict[str, Any]] = {"values": {}, "low": {}, "high": {}}
    for metric, of_metric in zip(metrics, zip(*by_dimension, strict=True), strict=True):
        columns = np.array(
            [
                (row, *values.intervals.get(part, np.full((2, len(values.systems)), math.nan)))
                for values in of_metric
                for part, row in values.parts.items()
            ]
        )
        for name, column in zip(lists, columns.swapaxes(0, 1), strict=True):
            lists[name][metric] = [plain_numbers(of_model) for of_model in column.T]
    return lists


def _name_parts(values: SystemValues, by: str) -> list[str]:
    """Return the names of the parts; those of quartiles say which popularity they have."""
    names = [", ".join(part) for part in values.parts]
    if by == "qualifiers":
        return [f"{name} other qualifiers" for name in names]
    if by != "quartile":
        return names
    ends = zip(values.counts["from"], values.counts["to"], strict=True)
    return [
        f"popularity {name}: {low:,} to {high:,} triples"
        for name, (low, high) in zip(names, ends, strict=True)
    ]


def _best_sides(parts: Mapping[str, Any], row: int, model: str) -> tuple[str, ...]:
    """Say on which sides a model has its highest and its lowest MRR; nothing for a single side."""
    values = [*zip(parts["names"], parts["values"]["mrr"][row], strict=True)]
    on_sides = [pair for pair in values if pair[0].endswith((", head", ", tail"))]
    on_sides = on_sides or [pair for pair in values if pair[0] in ("head", "tail")]
    if len(on_sides) < 2:
        return ()
    ends = (end(on_sides, key=itemgetter(1)) for end in (max, min))
    highest, lowest = (f"{name} ({value:.4f})" for name, value in ends)
    return (f"{model} has its highest MRR on {highest}, its lowest on {lowest}.",)
