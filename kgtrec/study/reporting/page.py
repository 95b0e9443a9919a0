"""The report page: one HTML file with its data, styles and script; it loads nothing.

The page computes nothing. This module gives it plain types: values by part, questions where a model
is worst, best and furthest ahead, and answers that change between models. Labels of the graph and
names of models reach the page only as data: a block of JSON without ``<``, which the script puts
into text nodes. A content security policy lets nothing else run or load; it names the one script by
its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import Interval, Value, escape_html, finite
from kgtrec._version import __version__
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN, relation_categories
from kgtrec.measures import Measure
from kgtrec.measures.keys import AVERAGINGS, find_metric
from kgtrec.ranking.instances import answer_label, question_text, term_names
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.averages import averages_of, sentence_on
from kgtrec.results.report import warnings_of
from kgtrec.results.result import Result
from kgtrec.study.changes import answers_by_question, best_labels, changes_of_pairs, read_firsts
from kgtrec.study.comparison.parts import SystemValues, values_by_part
from kgtrec.study.comparison.report import compare
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.reporting.columns import kind_of
from kgtrec.study.reporting.model_table import ModelTable, table_of_models

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.trec.files.columns import RunColumns

LARGEST = 25


def changes_data(
    systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns]
) -> list[dict[str, Any]]:
    """Return the changes from each model to each later one; an empty list for a single model."""
    if len(systems) < 2:
        return []
    labelled = all(ranks.entity_labels is not None for ranks in systems.values())
    place = {name: number for number, name in enumerate(systems)}
    data = []
    for changes in changes_of_pairs(systems, runs if labelled else None):
        best = changes.best_table()
        data.append(
            {
                "models": [place[name] for name in changes.names],
                "hits": changes.table().rows,
                "best": None if best is None else best.rows,
                "largest": changes.largest(LARGEST).rows,
            }
        )
    return data


Head = tuple[str, bool]

SHOWN = 20
FIRST = 3


def questions_data(systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns]) -> dict[str, Any]:
    """Return instances to look at, with the rank by every model and, from runs, its first ones."""
    first = next(iter(systems.values()))
    chosen = {name: _chosen(name, systems) for name in systems}
    rows = np.unique(np.concatenate([rows for lists in chosen.values() for rows in lists.values()]))
    ranks = np.stack([one.rank()[rows] for one in systems.values()], axis=1)
    heads = _best_candidates(first, rows, systems, runs)
    instances = [
        {
            "question": question_text(first, row),
            "answer": answer_label(first, int(first.answer[row])),
            "popularity": int(first.answer_popularity[row]),
            "ranks": ranks[number].tolist(),
            "first": heads[number],
        }
        for number, row in enumerate(rows.tolist())
    ]
    lists = {
        name: {kind: np.searchsorted(rows, own).tolist() for kind, own in one.items()}
        for name, one in chosen.items()
    }
    return {"rows": instances, "lists": lists, "runs": sorted(runs)}


def _chosen(name: str, systems: Mapping[str, Ranks]) -> dict[str, Int64]:
    own, ranks = systems[name].rank(), systems[name]
    # For equal ranks: the most popular of the worst answers, the rarest of the best.
    worst = np.lexsort((-ranks.answer_popularity, -own))[:SHOWN]
    best = np.lexsort((ranks.answer_popularity, own))[:SHOWN]
    lists = {"worst": worst, "best": best}
    others = [1 / other.rank() for label, other in systems.items() if label != name]
    if others:
        ahead = 1 / own - np.mean(others, axis=0)
        lists["ahead"] = np.lexsort((ranks.answer_popularity, -ahead))[:SHOWN]
    return lists


def _best_candidates(
    ranks: Ranks,
    rows: Int64,
    systems: Mapping[str, Ranks],
    runs: Mapping[str, RunColumns],
) -> list[list[list[Head] | None]]:
    """Return the best candidates by row and model: pairs (label, whether it is an answer)."""
    ids = ranks.subset(rows).question_ids
    asked = ranks.subset(np.isin(ranks.question, ranks.question[rows]))
    is_named = runs and ranks.entity_labels is not None
    answers = answers_by_question(asked) if is_named else {}
    cells: list[list[list[Head] | None]] = [[] for _ in rows]
    for name in systems:
        best = best_labels(runs[name], FIRST, set(ids)) if name in runs else {}
        for number, query in enumerate(ids):
            names, right = best.get(query), answers.get(query, ())
            heads = None if names is None else [(label, label in right) for label in names]
            cells[number].append(heads)
    return cells


HEADLINE = (
    "mrr",
    "hits@1",
    "hits@3",
    "hits@10",
    "mr",
    "amri",
    "macro.mrr",
    "macro.hits@10",
    "macro.map_cut_20",
    "macro.ndcg_cut_20",
)
BY_PART = ("mrr", "hits@1", "hits@10", "mr")
COMPARED = ("mrr", "hits@10", "macro.mrr")
DRAWN = Resampling(resamples=1000)
CUTS = 60
TINY = 0.0001
"""The summary omits smaller changes of MRR."""


def page_data(
    systems: Mapping[str, Ranks],
    *,
    graph: Graph | None = None,
    runs: Mapping[str, RunColumns] | None = None,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.05,
) -> dict[str, Any]:
    """Compute the data of the page, in plain JSON types."""
    if not systems:
        raise UsageError("a report page needs at least one model; give files of ranks")
    aligned = align_ranks(systems) if len(systems) > 1 else dict(systems)
    if len(aligned) == 1 and next(iter(aligned.values())).entity_labels is not None:
        for name, run in (runs or {}).items():  # of several, changes_data looks at them
            read_firsts(name, aligned[name], run)
    results = {name: Result(ranks) for name, ranks in aligned.items()}
    side = next(iter(results.values())).sides[-1]
    headline = table_of_models({"": aligned}, HEADLINE)
    ranks = next(iter(aligned.values()))
    parts = _parts(results, graph, side)
    comparisons = _comparisons(aligned, side, test, correction, level)
    ties = {name: result.ranks.tie_report() for name, result in results.items()}
    return {
        "kgtrec": __version__,
        "graph": ranks.provenance.graph_name or "",
        "side": side,
        "caption": headline.caption().replace("Best in bold, second best underlined.", "").strip(),
        "warnings": _warnings(results),
        "models": list(aligned),
        "summary": [
            *_outcome(headline),
            *(one["sentence"] for one in comparisons[:1]),
            *_tie_summary(ties),
            *_part_summary(headline, parts),
            *_average_summary(results, graph, side),
        ],
        "headline": {
            "keys": [column.measure.key for column in headline.columns],
            "kinds": [kind_of(column.measure) for column in headline.columns],
            "values": [_numbers(column.values) for column in headline.columns],
            "ends": [list(map(_ends, column.values)) for column in headline.columns],
        },
        "definitions": _definitions([c.measure for c in headline.columns], side),
        "metrics": list(BY_PART),
        "parts": parts,
        "relations": _relations(results, graph, side),
        "distribution": _distribution(aligned),
        "ties": ties,
        "popularity": _popularity(aligned),
        "comparisons": comparisons,
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
                "lists. The first table shows intervals for its values. The rest of the page "
                "ranks such an answer in the middle of the places after its list."
            )
    return warnings


def _outcome(table: ModelTable) -> list[str]:
    """Say how much was evaluated, and which model is best by each micro measure."""
    (protocol,) = table.protocols.values()
    size = f"{protocol.questions:,} questions with {protocol.instances:,} answers"
    if len(table.models) == 1:
        values = [
            f"{one.measure.title} {one.format_values()[0]}"
            for one in table.columns
            if one.measure.averaging == "micro"
        ]
        return [f"{table.name(0)} on {size}: {', '.join(values)}."]
    best = group_pairs(
        (
            " and ".join(
                table.name(row) for row, place in enumerate(one.mark_best()) if place == 1
            ),
            one.measure.title,
        )
        for one in table.columns
        if one.measure.averaging == "micro"
    )
    sentences = [f"{names} by {', '.join(titles)}" for names, titles in best.items() if names]
    outcome = (
        f"Best of all: {'; '.join(sentences)}." if sentences else "All models have equal values."
    )
    return [f"{len(table.models):,} models on {size}.", outcome]


def _tie_summary(ties: Mapping[str, Mapping[str, Any]]) -> list[str]:
    widths = {name: float(report["width"]["mrr"]) for name, report in ties.items()}
    name = max(widths, key=lambda name: widths[name])
    if not any(report["max_equal"] for report in ties.values()):
        return ["No answer ties with another candidate."]
    if widths[name] < TINY:
        return [f"Ties change no MRR by {TINY:g} or more."]
    return [f"Ties can change MRR by up to {widths[name]:.4f} ({name})."]


def _part_summary(table: ModelTable, parts: Mapping[str, Any]) -> list[str]:
    """Say on which sides the best model by MRR has its highest and its lowest value."""
    column = table.columns[0]
    row = column.mark_best().index(1) if 1 in column.mark_best() else 0
    values = [*zip(parts["names"], parts["values"]["mrr"][row], strict=True)]
    on_sides = [one for one in values if one[0].endswith((", head", ", tail"))]
    on_sides = on_sides or [one for one in values if one[0] in ("head", "tail")]
    if len(on_sides) < 2:
        return []
    ends = (end(on_sides, key=itemgetter(1)) for end in (max, min))
    highest, lowest = (f"{name} ({value:.4f})" for name, value in ends)
    return [f"{table.name(row)} has its highest MRR on {highest}, its lowest on {lowest}."]


def _average_summary(results: Mapping[str, Result], graph: Graph | None, side: str) -> list[str]:
    """Say micro and macro MRR of each model, and categories of answers; nothing without a graph."""
    ranks = next(iter(results.values())).ranks
    if graph is None or not ranks.of_graph or "train" not in graph.splits or side == "qualifier":
        return []
    averages = {name: averages_of(result, graph) for name, result in results.items()}
    if len(averages) > 1:
        return [sentence_on({f"MRR of {name}": one for name, one in averages.items()})]
    return [one.sentence() for one in averages.values()]


def _ends(value: Value) -> list[float] | None:
    """Return the ends of an interval; None for a single number."""
    return [value.low, value.high] if isinstance(value, Interval) else None


def _definitions(measures: Iterable[Measure], side: str) -> dict[str, dict[str, Any]]:
    """Return the explanation of each measure by its key, which the page shows on hovering."""
    definitions: dict[str, dict[str, Any]] = {}
    for measure in [*measures, *(Measure.parse(f"{side}.{metric}") for metric in BY_PART)]:
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


def _valued(
    results: Mapping[str, Result],
    dimensions: Sequence[str],
    graph: Graph | None,
    resampling: Resampling | None = None,
) -> tuple[list[SystemValues], dict[str, Any]]:
    """Compute values by the parts of each dimension.

    Returns the values of the first metric by dimension, and lists with the values of all metrics of
    `BY_PART`, by metric, model and part of any dimension.
    """
    keys = [f"{next(iter(results.values())).sides[-1]}.{metric}" for metric in BY_PART]
    valued = [
        values_by_part(results, by, keys, graph=graph, resampling=resampling) for by in dimensions
    ]
    none = np.full((2, len(results)), math.nan)
    lists: dict[str, Any] = {"values": {}, "low": {}, "high": {}}
    for metric, by_dimension in zip(BY_PART, zip(*valued, strict=True), strict=True):
        columns = np.array(
            [
                (own, *one.intervals.get(part, none))
                for one in by_dimension
                for part, own in one.parts.items()
            ]
        )
        for name, column in zip(lists, columns.swapaxes(0, 1), strict=True):
            lists[name][metric] = [_numbers(own) for own in column.T]
    return [one[0] for one in valued], lists


def _parts(results: Mapping[str, Result], graph: Graph | None, side: str) -> dict[str, Any]:
    """Compute values and intervals on sides or terms; with a graph, on categories and quartiles."""
    terms = term_names(next(iter(results.values())).ranks)
    dimensions = ["side", "qualifiers"] if side == "qualifier" else ["side", *terms]
    if graph is not None:
        dimensions += ["quartile"] if side == "qualifier" else ["category,side", "quartile"]
    valued, lists = _valued(results, dimensions, graph, DRAWN)
    parts: dict[str, Any] = {"names": [], "questions": [], "instances": [], **lists}
    for by, one in zip(dimensions, valued, strict=True):
        names = _part_names(one, by)
        parts["names"] += [f"{by} {name}" for name in names] if by in terms else names
        for name in ("questions", "instances"):
            parts[name] += one.counts[name]
    return parts


def _part_names(values: SystemValues, by: str) -> list[str]:
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


def _relations(
    results: Mapping[str, Result], graph: Graph | None, side: str
) -> dict[str, Any] | None:
    """Compute values by relation; None for questions without a graph."""
    if not next(iter(results.values())).ranks.of_graph:
        return None
    (valued,), lists = _valued(results, ["relation"], graph)
    names = [name for (name,) in valued.parts]
    relations: dict[str, Any] = {"names": names, "instances": list(valued.counts["count"])}
    if graph is not None and "train" in graph.splits and side != "qualifier":
        code = relation_categories(graph).code
        kinds = (*CATEGORIES, UNSEEN)
        of = {str(name): kinds[int(c)] for name, c in zip(graph.relations, code, strict=True)}
        relations["categories"] = [of.get(name, "") for name in names]
    relations["values"] = lists["values"]
    return relations


def _distribution(systems: Mapping[str, Ranks]) -> dict[str, Any]:
    """Compute the share of instances with a realistic rank of at most k, for some k."""
    most = max(int(ranks.candidates.max()) for ranks in systems.values())
    cuts = np.unique(np.round(np.geomspace(1, max(2, most), CUTS)).astype(np.int64))
    share = [
        _numbers(np.searchsorted(np.sort(one.rank()), cuts, side="right") / len(one))
        for one in systems.values()
    ]
    return {"k": cuts.tolist(), "share": share}


def _popularity(systems: Mapping[str, Ranks]) -> dict[str, Any]:
    """Compute metrics by popularity of the answer, in bins from one power of 2 to the next."""
    first = next(iter(systems.values()))
    counts = first.answer_popularity
    code = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))) + 1, 0).astype(np.int64)
    bins = np.unique(code)
    members = [np.flatnonzero(code == number) for number in bins]
    parts = [[Result(ranks.subset(rows)) for rows in members] for ranks in systems.values()]
    values = {
        metric: [_numbers(one[f"{one.sides[-1]}.{metric}"] for one in own) for own in parts]
        for metric in BY_PART
    }
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
    if len(systems) < 2 or n_questions < 2:  # one question has no spread to test
        return []
    comparisons = []
    for samples in samples_of_ranks(systems, [f"{side}.{metric}" for metric in COMPARED]):
        one = compare(samples, test, correction, resampling=DRAWN, level=level)
        n = len(systems)
        p, gap = np.full((2, n, n), math.nan)
        i, j = one.tests.pairs.T
        p[i, j] = p[j, i] = one.tests.corrected
        gap[i, j], gap[j, i] = one.effects.difference, -one.effects.difference
        low, high = one.intervals()
        comparisons.append(
            {
                "key": samples.name,
                "title": samples.title,
                "digits": samples.digits,
                "higher": samples.higher_is_better,
                "sentence": one.sentence(f"{samples.title} over {samples.unit}"),
                "method": one.method(),
                "level": level,
                "confidence": one.resampling.percent / 100,
                "order": one.order,
                "values": _numbers(one.resampled.estimate),
                "low": _numbers(low),
                "high": _numbers(high),
                "p": [_numbers(row) for row in p],
                "difference": [_numbers(row) for row in gap],
            }
        )
    return comparisons


def _numbers(values: Iterable[Value]) -> list[float | None]:
    """Convert values to plain numbers; None for values that are not finite."""
    return [float(value) if math.isfinite(value) else None for value in values]


SCRIPTS = ("charts.js", "tables.js", "report.js")


def page_text(data: dict[str, Any]) -> str:
    """Return the HTML of the page from the data of `page_data`."""
    task = "Ranking" if data["side"] == "all" else "Link prediction"
    heading = ": ".join(filter(None, (task, data["graph"])))
    script = "".join(_asset(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "title": escape_html(heading),
        "style": _asset("report.css"),
        "data": embedded_json(data),
        "script": script,
    }
    # Inserted text is not searched for marks.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _asset("report.html"))


def embedded_json(value: object) -> str:
    """Return JSON that is safe in a ``script`` element: ASCII without ``<``, ``>`` and ``&``."""
    text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return (resources.files("kgtrec.study.reporting") / "assets" / name).read_text("utf-8")
