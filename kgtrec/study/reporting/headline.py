"""The first section of the report page: the table of models, and what its measures mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import Interval, Value
from kgtrec.measures import Measure
from kgtrec.measures.keys import AVERAGINGS, find_metric
from kgtrec.study.reporting.columns import kind_of, replace_explanation
from kgtrec.study.reporting.model_table import ModelTable
from kgtrec.study.section import Section, plain_numbers


def headline_section(table: ModelTable, further: Sequence[Measure]) -> Section:
    """Return the values of a table of models, and definitions of its and `further` measures.

    The sentences say how much was evaluated, and which model is best by each micro measure.
    """
    headline = {
        "keys": [column.measure.key for column in table.columns],
        "kinds": [kind_of(column.measure) for column in table.columns],
        "values": [plain_numbers(column.values) for column in table.columns],
        "ends": [list(map(_ends, column.values)) for column in table.columns],
    }
    measures = [*(column.measure for column in table.columns), *further]
    return Section({"headline": headline, "definitions": _define(measures)}, _outcome(table))


def caption_of_page(table: ModelTable) -> str:
    """Return the caption of a table without the meaning of marks, which the page does not have."""
    return replace_explanation(table.caption(), "").strip()


def _outcome(table: ModelTable) -> tuple[str, ...]:
    """Say how much was evaluated, and which model is best by each micro measure."""
    (protocol,) = table.protocols.values()
    size = f"{protocol.questions:,} questions with {protocol.instances:,} answers"
    micro = [column for column in table.columns if column.measure.averaging == "micro"]
    if len(table.models) == 1:
        values = [f"{column.measure.title} {column.format_values()[0]}" for column in micro]
        return (f"{table.name(0)} on {size}: {', '.join(values)}.",)
    best = group_pairs(
        (
            " and ".join(
                table.name(row) for row, mark in enumerate(column.mark_best()) if mark == 1
            ),
            column.measure.title,
        )
        for column in micro
    )
    sentences = [f"{names} by {', '.join(titles)}" for names, titles in best.items() if names]
    outcome = (
        f"Best of all: {'; '.join(sentences)}." if sentences else "All models have equal values."
    )
    return f"{len(table.models):,} models on {size}.", outcome


def _ends(value: Value) -> list[float] | None:
    """Return the ends of an interval; None for a single number."""
    return [value.low, value.high] if isinstance(value, Interval) else None


def _define(measures: Iterable[Measure]) -> dict[str, dict[str, Any]]:
    """Return the explanation of each measure by its key, which the page shows on hovering."""
    definitions: dict[str, dict[str, Any]] = {}
    for measure in measures:
        row = None if measure.is_trec else find_metric(measure.metric)
        definition = (
            {
                "help": f"trec_eval's {measure.metric}, averaged over questions.",
                "formula": "",
                "range": "[0, 1]",
                "higher": True,
            }
            if row is None
            else {
                "help": f"{row[0].help} {measure.averaging.replace('_', ' ').capitalize()}: "
                f"{AVERAGINGS[measure.averaging]}.",
                "formula": row[0].formula,
                "range": row[0].range,
                "higher": row[0].higher_is_better,
            }
        )
        definitions[measure.key] = {
            "title": measure.title,
            **definition,
            "digits": measure.digits,
        }
    return definitions
