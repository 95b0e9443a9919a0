"""The text of a result: what was evaluated, the published table, and what to beware of."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.table import WIDTH, Table, printed_cell
from kgtrec.measures import Measure, required_depth
from kgtrec.results.comparability import context_note, tolerance_text
from kgtrec.results.tables import OVER_RELATIONS, PUBLISHED, QUESTIONWISE, by_filter

if TYPE_CHECKING:
    from kgtrec.results.result import Result

__all__ = ["fitting", "side_by_side", "summary", "tie_note", "warnings_of"]

AGREEMENT = 1e-12

RANDOM, INSTANCES = 0.02, 100
"""Scores look random where |AMRI| is below this on every side, over more instances than this."""


def summary(result: Result) -> str:
    """The whole text, at most 80 columns wide."""
    parts = [_header(result)]
    if result.measures is None:
        parts += _published(result)
    else:
        parts.append(result.wide_table().to_text())
    parts.append(_wrapped([_ties(result), *_trec_notes(result)]))
    warnings = warnings_of(result)
    if warnings:
        parts.append(_wrapped([f"WARNING: {warning}" for warning in warnings]))
    return "\n\n".join(parts)


def side_by_side(results: Mapping[str, Result]) -> str:
    """The text of results that differ in their filter alone, by its name."""
    first = next(iter(results.values()))
    parts = [_header(first, f"filters {', '.join(results)}")]
    headings = {
        "Micro, {} (per instance, realistic ranks)": PUBLISHED,
        "Macro, {} (per question; MRR and Hits of its first answer)": QUESTIONWISE,
    }
    intervals = any(result.has_intervals for result in results.values())
    for heading, tails in headings.items():
        for side in first.sides:
            table = by_filter(results, side, tails)
            text = (table.transposed() if intervals else table).to_text()
            parts.append(_sampled(first) + heading.format(_sides(side)) + "\n" + text)
    parts.append(_wrapped([f"{name}: {_ties(result)}" for name, result in results.items()]))
    warnings = [
        f"WARNING: {name}: {warning}"
        for name, result in results.items()
        for warning in warnings_of(result)
    ]
    return "\n\n".join([*parts, *([_wrapped(warnings)] if warnings else [])])


def _published(result: Result) -> list[str]:
    side = result.sides[-1]
    return [
        f"{_sampled(result)}Micro (per instance, realistic ranks)\n"
        + fitting(result, result.side_table(PUBLISHED)),
        f"{_sampled(result)}What ties can do (micro, {side})\n"
        + fitting(result, result.rank_type_table()),
        f"{_sampled(result)}Macro (per question; MRR and Hits of its first answer)\n"
        + fitting(result, result.side_table(QUESTIONWISE)),
        _over_relations(result, side),
    ]


def fitting(result: Result, table: Table) -> str:
    """As text; intervals are too wide to stand side by side, and their metrics go down the page."""
    return (table.transposed() if result.has_intervals else table).to_text()


def _sampled(result: Result) -> str:
    return "SAMPLED candidates: " if result.ranks.sampled else ""


def _over_relations(result: Result, side: str) -> str:
    """Averages that weigh relations, as sentences: "Relations equally: MRR ..., Hits@10 ..."."""
    groups: dict[str, list[str]] = {}
    for tail in OVER_RELATIONS:
        measure = Measure.parse(f"{side}.{tail}")
        beta = "beta_e {:g}, beta_r {:g}".format(*measure.params) if measure.params else ""
        name = f"Stratified ({side}, {beta})" if beta else f"Relations equally ({side})"
        title = measure.title.removeprefix("strat-").partition("(")[0]
        groups.setdefault(_sampled(result) + name, []).append(
            f"{title} {printed_cell(result[measure], measure.digits)}"
        )
    return "\n".join(f"{name}: {', '.join(values)}" for name, values in groups.items())


def _sides(side: str) -> str:
    return "both sides" if side == "both" else f"{side} side"


def _header(result: Result, filters: str | None = None) -> str:
    """What was evaluated; ``filters`` in place of the result's own filter."""
    facts = _facts(result.ranks.manifest)
    side = result.sides[-1]
    questions, instances = result.count(side)
    name = facts.get("graph_name") or facts.get("graph")
    first = ["kgtrec", str(name) if isinstance(name, str) else "", _split(facts), _sides(side)]
    second = [f"{questions:,} questions", f"{instances:,} instances"]
    what = "relations" if side == "relation" else "entities"
    if f"n_{what}" in facts:
        second.append(f"{facts[f'n_{what}']:,} {what}")
    first.append(filters or _filter(facts))
    lines = [" · ".join(part for part in first if part), " · ".join(second)]
    sizes = result.ranks.candidates
    if facts.get("restricted") and len(sizes):
        lines.append(
            f"{sizes.min():,} to {sizes.max():,} candidates, {sizes.mean():,.1f} on average"
        )
    return _wrapped([*lines, *_restrictions(facts), *_predictions(result), *_tolerance(result)])


def _tolerance(result: Result) -> list[str]:
    scores = result.ranks.manifest.get("scores", {})
    if not scores.get("tie_tolerance"):
        return []
    return [
        f"Micro ranks count scores {tolerance_text(scores)} of the answer's as ties; ordinal and "
        "macro ranks count equal ones alone."
    ]


def _predictions(result: Result) -> list[str]:
    """What was listed, of predicted lists, and what lies beyond them."""
    facts = result.ranks.manifest.get("scores", {}).get("predictions")
    if not facts:
        return []
    sentences = [f"{facts['lists']:,} predicted lists ({facts['format']}), filtered by the graph."]
    beyond = result.ranks.n_unlisted
    if beyond:
        sentences.append(
            f"{beyond:,} answers ({100 * beyond / len(result.ranks):.3g} %) are beyond their lists:"
            " their ranks are open, and values are intervals."
        )
    counted = {
        "questions_without_list": "questions have no list.",
        "not_asked": "lists are of questions that are not asked.",
        "questions_of_several_lists": "questions have a list for each triple: macro values are of "
        "all of them together, or without scores of the first.",
        "repeats": "predictions stood in a list twice and count once.",
        "n_unlinkable": "predictions name no entity and "
        + ("are dropped." if facts["unlinkable"] == "drop" else "take a place."),
    }
    return sentences + [f"{facts[key]:,} {text}" for key, text in counted.items() if facts[key]]


def _restrictions(facts: Mapping[str, Any]) -> list[str]:
    """What narrows questions and candidates, or widens the filter, a sentence each."""
    sentences = []
    subset = facts.get("subset") or {}
    if subset:
        sizes = [f"{subset[name]:,} {name}" for name in ("entities", "relations") if subset[name]]
        sentences.append(
            f"Restricted to {' and '.join(sizes)}: {subset['triples_kept']:,} triples are "
            f"evaluated, {subset['triples_dropped']:,} are not."
        )
    lists = facts.get("lists") or {}
    kind = facts.get("restricted")
    if kind in _LISTS:
        sentences.append(f"{_LISTS[kind]}{_from_file(lists)}.")
    if lists.get("questions_without_list"):
        sentences.append(
            f"{lists['questions_without_list']:,} questions have relations without a list, and "
            "every entity as a candidate."
        )
    if lists.get("repeats"):
        sentences.append(f"{lists['repeats']:,} candidates stood in a list twice and count once.")
    for file in facts.get("known_files") or ():
        sentences.append(f"{file['triples']:,} further known triples{_from_file(file)}.")
    return sentences


_LISTS = {
    "relations": "Candidates by relation and side",
    "candidates": "A list of candidates for each question",
}


def _from_file(facts: Mapping[str, Any]) -> str:
    place = f", from {facts['file']}" if "file" in facts else ""
    skipped = facts.get("unknown")
    return place + (f" ({skipped:,} with labels that the graph lacks)" if skipped else "")


def _split(facts: Mapping[str, Any]) -> str:
    return f"split {facts['split']}" if "split" in facts else ""


def _filter(facts: Mapping[str, Any]) -> str:
    splits = facts.get("filter_splits")
    if splits is None:
        return "filter not recorded"
    return f"filter {', '.join(splits)}{context_note(facts)}" if len(splits) else "unfiltered"


def _facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest, with what it nests one level down lifted up."""
    facts: dict[str, Any] = {}
    for value in manifest.values():
        if isinstance(value, Mapping):
            facts.update(value)
    return facts | dict(manifest)


def tie_note(result: Result) -> str:
    """The tie report as a paragraph."""
    return _wrapped([_ties(result)])


def _ties(result: Result) -> str:
    report = result.ranks.tie_report()
    if not report["max_equal"]:
        return "Ties: none; every rank type gives the same values."
    names = {"mrr": "MRR", "hits@10": "Hits@10", "mr": "MR"}
    widths = [f"{name} by {report['width'][key]:.4g}" for key, name in names.items()]
    share = f"{100 * report['tied_share']:.3g} %"
    return (
        f"Ties: {share} of the instances are tied, with {report['mean_equal']:.4g} other "
        f"candidates on average over all instances and {report['max_equal']:,} at most; "
        f"they can move {', '.join(widths)}."
    )


def _trec_notes(result: Result) -> list[str]:
    """Where the trec_eval values come from, and that both computations agree."""
    measures = result.measures or [
        Measure.parse(f"{result.sides[-1]}.{key}") for key in QUESTIONWISE
    ]
    shown = {m.metric: m.title for m in measures if m.is_trec}
    notes = []
    if result.agreement:
        notes.append(
            "MAP@20 and nDCG@20: pytrec_eval and native values agree to "
            f"{AGREEMENT:.0e} (largest difference {max(result.agreement.values()):.2g})."
        )
    unchecked = [title for name, title in shown.items() if name not in result.agreement]
    if unchecked and result.run is None:
        notes.append(
            f"{', '.join(unchecked)}: native, from the answers' ordinal ranks; no run was at "
            "hand to compare with pytrec_eval."
        )
    whole = [name for name in shown if required_depth(name) is None]
    if whole and result.run is not None:
        notes.append(
            f"{', '.join(whole)}: of the run, which holds the {result.run.depth:,} best "
            "candidates of every question; answers below them count as not retrieved."
        )
    return notes


def warnings_of(result: Result) -> list[str]:
    """What makes its numbers other than people take them for, a sentence each."""
    facts = _facts(result.ranks.manifest)
    sentences = []
    outside = int(facts.get("outside") or 0)  # these have no score either, and their own sentence
    unscored = int(np.count_nonzero(result.ranks.answer_nan)) - outside
    nan_count = int(facts.get("nan_count") or 0)
    lost = [f"{nan_count:,} scores were NaN and counted below everything"] * (nan_count > 0)
    lost += [f"{unscored:,} answers had no score and got the worst rank"] * (unscored > 0)
    if lost:
        sentences.append("; ".join(lost) + ".")
    splits = facts.get("filter_splits")
    if splits is not None and not len(splits):
        sentences.append("unfiltered: other known answers count as wrong candidates.")
    elif splits is not None:
        missing = [name for name in facts.get("triples", ()) if name not in splits]
        if missing and (facts.get("filter"), facts.get("split")) != ("valid", "valid"):
            sentences.append(
                f"{' and '.join(missing)} left out of the filter: its answers count as wrong."
            )
    if outside:
        sentences.append(
            f"{outside:,} answers were not among their candidates and count at the worst rank."
        )
    if facts.get("sampled"):
        sentences.append("sampled candidates: not comparable with full ranking.")
    if _looks_random(result):
        sentences.append("scores look random: AMRI is about 0; check the order of entity columns.")
    one = "amri" in " ".join(map(str, result.measures or ("amri",)))
    if one and (result.ranks.candidates <= 1).all():
        sentences.append("AMRI is undefined (nan): every instance has one candidate only.")
    return sentences


def _looks_random(result: Result) -> bool:
    """Whether ranks on every side are, on average, what a random scorer's would be."""
    if len(result.ranks) <= INSTANCES:
        return False
    sides = ("head", "tail") if result.sides[-1] == "both" else result.sides
    values = [result[f"{side}.realistic.micro.amri"] for side in sides]
    return all(abs(value) < RANDOM for value in values)  # nan, of single candidates, is not below


def _wrapped(lines: list[str]) -> str:
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines
    )
