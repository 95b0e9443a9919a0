"""Compute the results for the report page, and let each study render its section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.text import shorten_names
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN, relation_categories
from kgtrec.measures import Measure
from kgtrec.ranking.instances import term_names
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.averages import averages_of, sentence_on
from kgtrec.results.report import warnings_of
from kgtrec.results.result import Result
from kgtrec.study.changes import AnswerChanges, changes_of_pairs, changes_section, read_firsts
from kgtrec.study.comparison.part_sections import parts_section, relations_section
from kgtrec.study.comparison.parts import SystemValues, values_by_part
from kgtrec.study.comparison.report import SystemComparison, compare, comparisons_section
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.reporting.curves import distribution_section, popularity_section, ties_section
from kgtrec.study.reporting.examples import examples_section
from kgtrec.study.reporting.headline import caption_of_page, headline_section
from kgtrec.study.reporting.model_table import table_of_models
from kgtrec.study.reporting.page import assemble_data
from kgtrec.study.section import Section

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.trec.files.columns import RunColumns

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
NAME_WIDTH = 28
"""Most characters of a model's name in headings, legends and charts."""
FEW = 3
"""Most models whose averages the summary states."""


def build_page_data(
    systems: Mapping[str, Ranks],
    *,
    graph: Graph | None = None,
    runs: Mapping[str, RunColumns] | None = None,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.05,
) -> dict[str, Any]:
    """Compute the data of the report page on models of a graph, in plain JSON types.

    Parameters
    ----------
    systems : mapping of str to Ranks
        Ranks of the same questions, by the names of the models.
    graph : Graph, optional
        The graph of the ranks, for categories, quartiles and averages.
    runs : mapping of str to RunColumns, optional
        Runs by model, for the candidates that it puts first.
    test, correction, level
        As for `compare`.
    """
    if not systems:
        raise UsageError("a report page needs at least one model; give files of ranks")
    aligned, runs = _check_systems(systems, runs or {}), runs or {}
    results = {name: Result(ranks) for name, ranks in aligned.items()}
    first = next(iter(results.values()))
    side = first.sides[-1]
    table = table_of_models({"": aligned}, HEADLINE)
    headline = headline_section(table, [Measure.parse(f"{side}.{metric}") for metric in BY_PART])
    parts = parts_section(
        BY_PART, _values_by_part(results, graph, side), term_names(first.ranks), table.best_model()
    )
    comparisons = comparisons_section(_compare_all(aligned, side, test, correction, level))
    ties = ties_section({name: result.ranks.tie_report() for name, result in results.items()})
    sections = [
        headline,
        parts,
        _relations(results, graph, side),
        distribution_section(aligned),
        ties,
        popularity_section(aligned, BY_PART),
        comparisons,
        changes_section(list(aligned), _changes(aligned, runs)),
        examples_section(aligned, runs),
    ]
    head = {
        "graph": first.ranks.provenance.graph_name or "",
        "side": side,
        "caption": caption_of_page(table),
        "warnings": _list_warnings(results),
        "models": list(aligned),
        "short": shorten_names(list(aligned), NAME_WIDTH),
    }
    averages = Section({}, _average_sentences(results, graph, side, table.best_model()[1]))
    return assemble_data(head, sections, [headline, comparisons, ties, parts, averages])


def _check_systems(
    systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns]
) -> dict[str, Ranks]:
    """Align the ranks of models; InputError if they, or a single model's run, do not fit."""
    aligned = align_ranks(systems) if len(systems) > 1 else dict(systems)
    if len(aligned) == 1 and next(iter(aligned.values())).entity_labels is not None:
        for name, run in runs.items():  # of several models, changes_of_pairs looks at them
            read_firsts(name, aligned[name], run)
    return aligned


def _list_warnings(results: Mapping[str, Result]) -> list[str]:
    """List the warnings on each model's numbers, and on answers beyond its predicted lists."""
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


def _values_by_part(
    results: Mapping[str, Result], graph: Graph | None, side: str
) -> dict[str, list[SystemValues]]:
    """Compute values and intervals on sides or terms; with a graph, on categories and quartiles.

    Returns the values of each metric of `BY_PART`, by the name of the dimension.
    """
    terms = term_names(next(iter(results.values())).ranks)
    dimensions = ["side", "qualifiers"] if side == "qualifier" else ["side", *terms]
    if graph is not None:
        dimensions += ["quartile"] if side == "qualifier" else ["category,side", "quartile"]
    keys = [f"{side}.{metric}" for metric in BY_PART]
    return {
        by: values_by_part(results, by, keys, graph=graph, resampling=DRAWN) for by in dimensions
    }


def _relations(results: Mapping[str, Result], graph: Graph | None, side: str) -> Section:
    """Compute the section of values by relation; it is empty for questions without a graph."""
    if not next(iter(results.values())).ranks.of_graph:
        return relations_section(BY_PART, None)
    values = values_by_part(
        results, "relation", [f"{side}.{metric}" for metric in BY_PART], graph=graph
    )
    categories = None
    if graph is not None and "train" in graph.splits and side != "qualifier":
        codes = relation_categories(graph).code
        names = (*CATEGORIES, UNSEEN)
        categories = {
            str(relation): names[int(code)]
            for relation, code in zip(graph.relations, codes, strict=True)
        }
    return relations_section(BY_PART, values, categories)


def _compare_all(
    systems: Mapping[str, Ranks], side: str, test: str, correction: str, level: float
) -> list[SystemComparison]:
    """Compare the models by each measure of `COMPARED`; empty if there is nothing to test."""
    n_questions = len(np.unique(next(iter(systems.values())).question))
    if len(systems) < 2 or n_questions < 2:  # one question has no spread to test
        return []
    return [
        compare(samples, test=test, correction=correction, resampling=DRAWN, level=level)
        for samples in samples_of_ranks(systems, [f"{side}.{metric}" for metric in COMPARED])
    ]


def _changes(systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns]) -> list[AnswerChanges]:
    """Compare each model's answers with each later one's; empty for a single model."""
    if len(systems) < 2:
        return []
    is_labelled = all(ranks.entity_labels is not None for ranks in systems.values())
    return changes_of_pairs(systems, runs if is_labelled else None)


def _average_sentences(
    results: Mapping[str, Result], graph: Graph | None, side: str, best: str
) -> tuple[str, ...]:
    """Say micro and macro MRR of each model, and categories of answers; nothing without a graph.

    Of more than `FEW` models, only the best is in the sentence: the table has the others.
    """
    ranks = next(iter(results.values())).ranks
    if graph is None or not ranks.of_graph or "train" not in graph.splits or side == "qualifier":
        return ()
    several, shown = len(results) > 1, results
    if len(results) > FEW:
        shown = {best: results[best]}
    averages = {name: averages_of(result, graph) for name, result in shown.items()}
    if several:
        return (sentence_on({f"MRR of {name}": each for name, each in averages.items()}),)
    return tuple(each.sentence() for each in averages.values())
