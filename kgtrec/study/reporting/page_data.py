"""What the report page shows, as plain types: everything is computed here, nothing on the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.table import Interval
from kgtrec._version import __version__
from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.measures.registry import AVERAGINGS, find_metric
from kgtrec.results.report import warnings_of
from kgtrec.results.result import Result
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.reporting.model_table import table_of_models
from kgtrec.study.reporting.page_changes import changes_data
from kgtrec.study.reporting.page_questions import questions_data

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.questions.api import Graph
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.reporting.model_table import ModelTable
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["page_data"]

Floats = NDArray[np.float64]

HEADLINE = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri", "macro.mrr", "macro.hits@10",
            "macro.map_cut_20", "macro.ndcg_cut_20")  # fmt: skip
BY_PART = ("mrr", "hits@1", "hits@10", "mr")
COMPARED = ("mrr", "hits@10", "macro.mrr")
DRAWS = 1000
CUTS = 60
DIGITS = 6


def page_data(
    systems: Mapping[str, Ranks],
    *,
    graph: Graph | None = None,
    runs: Mapping[str, RunColumns] | None = None,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.05,
) -> dict[str, Any]:
    """All that the page shows.

    Parameters
    ----------
    systems : mapping of str to Ranks
        Models that answered the same questions, by their names.
    graph : Graph, optional
        Theirs, for relation categories.
    runs : mapping of str to RunColumns, optional
        Runs of some of the models, from which what was ranked first is taken.
    test, correction, level
        See `kgtrec.study.comparison.report.compare`.

    Raises
    ------
    UsageError
        No model, or another graph.
    InputError
        Models that did not answer the same questions.
    """
    if not systems:
        raise UsageError("a report page needs one model at least")
    aligned = align_ranks(systems) if len(systems) > 1 else dict(systems)
    results = {name: Result(ranks) for name, ranks in aligned.items()}
    side = next(iter(results.values())).sides[-1]
    headline = table_of_models({"": aligned}, HEADLINE)
    ranks = next(iter(aligned.values()))
    facts = ranks.manifest.get("questions") or {}
    return {
        "kgtrec": __version__,
        "graph": str(facts.get("graph_name") or ""),
        "side": side,
        "caption": headline.caption().replace("Best in bold, second best underlined.", "").strip(),
        "warnings": _warnings(results),
        "models": list(aligned),
        "headline": _headline(headline),
        "definitions": _definitions([c.measure for c in headline.columns], side),
        "metrics": list(BY_PART),
        "parts": _parts(results, graph, side),
        "relations": _relations(results, graph, side),
        "distribution": _distribution(aligned),
        "ties": {name: result.ranks.tie_report() for name, result in results.items()},
        "popularity": _popularity(aligned),
        "comparisons": _comparisons(aligned, side, test, correction, level),
        "changes": changes_data(aligned, runs or {}),
        "questions": questions_data(aligned, runs or {}),
    }


def _warnings(results: Mapping[str, Result]) -> list[str]:
    warnings = []
    for name, result in results.items():
        warnings += [f"{name}: {text}" for text in warnings_of(result)]
        beyond = result.ranks.n_unlisted
        if beyond:
            warnings.append(
                f"{name}: {beyond:,} of {len(result.ranks):,} answers are beyond their predicted "
                "lists. The first table shows between what its values lie; all else on the page "
                "ranks such an answer in the middle of the places behind its list."
            )
    return warnings


def _headline(table: ModelTable) -> dict[str, Any]:
    """The table of models; ``ends``: between what a value lies, None where it is one number."""
    return {
        "keys": [column.measure.key for column in table.columns],
        "kinds": [column.heading.kind for column in table.columns],
        "values": [list(map(_number, column.values)) for column in table.columns],
        "ends": [list(map(_ends, column.values)) for column in table.columns],
    }


def _ends(value: float) -> list[float] | None:
    return [value.low, value.high] if isinstance(value, Interval) else None


def _definitions(measures: Iterable[Measure], side: str) -> dict[str, dict[str, Any]]:
    """What is said of each measure where it is pointed at, by its key."""
    definitions: dict[str, dict[str, Any]] = {}
    for measure in [*measures, *(Measure.parse(f"{side}.{metric}") for metric in BY_PART)]:
        row = None if measure.is_trec else find_metric(measure.metric)
        if row is None:
            definitions[measure.key] = {
                "title": measure.title,
                "help": f"trec_eval's {measure.metric}, averaged over questions.",
                "formula": "", "range": "[0, 1]", "higher": True, "digits": measure.digits,
            }  # fmt: skip
            continue
        metric = row[0]
        definitions[measure.key] = {
            "title": measure.title,
            "help": f"{metric.help} {measure.averaging.replace('_', ' ').capitalize()}: "
            f"{AVERAGINGS[measure.averaging]}.",
            "formula": metric.formula,
            "range": metric.range,
            "higher": metric.higher_is_better,
            "digits": measure.digits,
        }
    return definitions


def _sliced(results: Mapping[str, Result], by: str, side: str, graph: Graph | None) -> Table:
    """Slices of all models in one table: a column for each metric and model, metric by metric."""
    tables = [
        result.slice(by, [f"{side}.{metric}" for metric in BY_PART], graph=graph)
        for result in results.values()
    ]
    first = tables[0]
    place = {row[: first.names]: number for number, row in enumerate(first.rows)}
    values = np.full((len(BY_PART), len(tables), len(first.rows)), math.nan)
    for model, table in enumerate(tables):
        for row in table.rows:
            values[:, model, place[row[: first.names]]] = row[-len(BY_PART) :]
    rows = [
        (*row[: len(row) - len(BY_PART)], *values[:, :, number].reshape(-1).tolist())
        for number, row in enumerate(first.rows)
    ]
    heads = list(first.keys[: len(first.keys) - len(BY_PART)])
    heads += [f"{metric}:{name}" for metric in BY_PART for name in results]
    return type(first)(heads, heads, (0,) * len(heads), rows, first.names)


def _values(table: Table, models: int) -> dict[str, list[list[float | None]]]:
    """Metric -> model -> row."""
    columns = [list(column) for column in zip(*table.rows, strict=True)]
    numbers = columns[len(table.keys) - models * len(BY_PART) :]
    return {
        metric: [list(map(_rounded, column)) for column in numbers[i * models : (i + 1) * models]]
        for i, metric in enumerate(BY_PART)
    }


def _parts(results: Mapping[str, Result], graph: Graph | None, side: str) -> dict[str, Any]:
    """Sides, and with a graph categories and quartiles; values by the qualifiers beside them."""
    dimensions = ["side", "qualifiers"] if side == "qualifier" else ["side"]
    if graph is not None:
        dimensions += ["quartile"] if side == "qualifier" else ["category,side", "quartile"]
    parts: dict[str, Any] = {"names": [], "questions": [], "instances": [], "values": {}}
    for by in dimensions:
        table = _sliced(results, by, side, graph)
        at = {name: list(table.keys).index(name) for name in ("questions", "instances")}
        for row in table.rows:
            name = ", ".join(map(str, row[: table.names]))
            if by == "quartile":
                name = f"popularity {name}: {row[1]:,} to {row[2]:,} triples"
            if by == "qualifiers":
                name = f"{name} other qualifiers"
            parts["names"].append(name)
            for name, column in at.items():
                parts[name].append(row[column])
        for metric, models in _values(table, len(results)).items():
            whole = parts["values"].setdefault(metric, [[] for _ in models])
            for series, values in zip(whole, models, strict=True):
                series.extend(values)
    return parts


def _relations(results: Mapping[str, Result], graph: Graph | None, side: str) -> dict[str, Any]:
    table = _sliced(results, "relation", side, graph)
    names = [str(row[0]) for row in table.rows]
    relations: dict[str, Any] = {"names": names, "instances": [row[1] for row in table.rows]}
    if graph is not None and "train" in graph.splits and side != "qualifier":
        from kgtrec.graph.statistics.categories import CATEGORIES, UNSEEN, relation_categories

        code = relation_categories(graph).code
        kinds = (*CATEGORIES, UNSEEN)
        of = {str(name): kinds[int(c)] for name, c in zip(graph.relations, code, strict=True)}
        relations["categories"] = [of.get(name, "") for name in names]
    relations["values"] = _values(table, len(results))
    return relations


def _distribution(systems: Mapping[str, Ranks]) -> dict[str, Any]:
    """Share of instances with a realistic rank of at most k."""
    most = max(int(ranks.candidates.max()) for ranks in systems.values())
    cuts = np.unique(np.round(np.geomspace(1, max(2, most), CUTS)).astype(np.int64))
    share = []
    for ranks in systems.values():
        ordered = np.sort(ranks.rank())
        shares = np.searchsorted(ordered, cuts, side="right") / len(ordered)
        share.append(list(map(_rounded, shares.tolist())))
    return {"k": cuts.tolist(), "share": share}


def _popularity(systems: Mapping[str, Ranks]) -> dict[str, Any]:
    """Metrics by how popular the predicted entity is, in bins from one power of 2 to the next."""
    first = next(iter(systems.values()))
    counts = first.answer_popularity
    code = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))) + 1, 0).astype(np.int64)
    bins = np.unique(code)
    members = [np.flatnonzero(code == number) for number in bins]
    values: dict[str, list[list[float | None]]] = {metric: [] for metric in BY_PART}
    for ranks in systems.values():
        r = ranks.rank()
        gains: dict[str, Any] = {"mrr": 1 / r, "hits@1": r <= 1, "hits@10": r <= 10, "mr": r}
        for metric, gain in gains.items():
            values[metric].append([_rounded(float(np.mean(gain[rows]))) for rows in members])
    return {
        "from": [int(counts[rows].min()) for rows in members],
        "to": [int(counts[rows].max()) for rows in members],
        "instances": [len(rows) for rows in members],
        "values": values,
    }


def _comparisons(
    systems: Mapping[str, Ranks], side: str, test: str, correction: str, level: float
) -> list[dict[str, Any]]:
    n_questions = len(np.unique(next(iter(systems.values())).question))
    if len(systems) < 2 or n_questions < 2:  # of one question there is no spread to test
        return []
    comparisons = []
    for samples in samples_of_ranks(systems, [f"{side}.{metric}" for metric in COMPARED]):
        one = compare(samples, test, correction, draws=DRAWS, level=level)
        n = len(systems)
        p = np.full((n, n), math.nan)
        gap = np.full((n, n), math.nan)
        for (i, j), value, difference in zip(
            one.tests.pairs.tolist(), one.tests.corrected, one.effects.difference, strict=True
        ):
            p[i, j] = p[j, i] = value
            gap[i, j], gap[j, i] = difference, -difference
        low, high = one.intervals()
        comparisons.append({
            "key": samples.name, "title": samples.title, "digits": samples.digits,
            "higher": samples.higher_is_better, "sentence": one.sentence(),
            "method": one.method(), "level": level, "confidence": one.confidence,
            "order": one.order, "values": _list(one.resampled.estimate), "low": _list(low),
            "high": _list(high), "p": [_list(row) for row in p],
            "difference": [_list(row) for row in gap],
        })  # fmt: skip
    return comparisons


def _list(values: Sequence[float] | Floats) -> list[float | None]:
    return [_rounded(float(value)) for value in values]


def _rounded(value: float) -> float | None:
    """Six digits: more than is shown, and a file of half the size."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
