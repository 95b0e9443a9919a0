"""The text of a result: what was evaluated, the published table, and warnings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from kgtrec._internal.table import WIDTH, Table, format_cell
from kgtrec.graph.statistics.overlap import SplitOverlap
from kgtrec.measures import Measure, find_depth
from kgtrec.measures.averaging import SIDES
from kgtrec.questions.questions import is_usual_filter
from kgtrec.ranking.provenance import Provenance
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import filter_text, tolerance_text
from kgtrec.results.interface import ResultValues
from kgtrec.results.tables import PUBLISHED, QUESTIONWISE, by_filter, over_groups

AGREEMENT = 1e-12

INSTANCES = 100
"""Fewer instances than this get no warning about random scores."""
FEW_NEW = 0.1
"""Up to this share of triples with entities that train lacks, as in FB15k-237 (0.1 %) and WN18RR
(7 %), the head of a report is silent about them."""
MOSTLY = 0.5
"""Up to this share of triples that are mirrored in their split, symmetric relations explain it."""
BEYOND_CHANCE = 4.8916
"""Random scores exceed this |z| once in a million tests."""


def summary(result: ResultValues) -> str:
    """Write the whole text on a result, at most 80 columns wide."""
    parts = [_header(result)]
    if result.measures is None:
        side = result.sides[-1]
        tables = {"Micro (per instance, realistic ranks)": result.side_table(PUBLISHED)}
        if result.ranks.equal.any():  # otherwise all rows of this table are the same
            shown = [f"{side}.micro.{tail}" for tail in ("mrr", "hits@1", "hits@10", "mr", "amr")]
            tables[f"What ties can do (micro, {side})"] = result.rank_types(shown)
        last = "Macro (per question; MRR and Hits of its first answer)"
        tables[last] = result.side_table(QUESTIONWISE)
        parts += [
            f"{_sampling_note(result)}{name}\n{fitting(result, t)}" for name, t in tables.items()
        ]
        parts.append(_over_relations(result, side))
    else:
        parts.append(result.wide_table().to_text())
    parts.append(_wrap_lines([_ties(result), *_trec_notes(result)]))
    parts.append(_wrap_lines([f"WARNING: {warning}" for warning in warnings_of(result)]))
    return "\n\n".join(filter(None, parts))


def side_by_side(results: Mapping[str, ResultValues]) -> str:
    """Write the text of results that differ only in their filter; keys are the filters' names."""
    first = next(iter(results.values()))
    parts = [_header(first, f"filters {', '.join(results)}")]
    headings = {
        "Micro, {} (per instance, realistic ranks)": PUBLISHED,
        "Macro, {} (per question; MRR and Hits of its first answer)": QUESTIONWISE,
    }
    widest = next((result for result in results.values() if result.has_intervals), first)
    for heading, tails in headings.items():
        for side in first.sides:
            text = fitting(widest, by_filter(results, side, tails))
            parts.append(f"{_sampling_note(first)}{heading.format(_sides(side))}\n{text}")
    parts.append(_wrap_lines([f"{name}: {_ties(result)}" for name, result in results.items()]))
    warnings = [
        f"WARNING: {name}: {warning}"
        for name, result in results.items()
        for warning in warnings_of(result)
    ]
    return "\n\n".join(filter(None, [*parts, _wrap_lines(warnings)]))


def fitting(result: ResultValues, table: Table) -> str:
    """Format a table as text; intervals are too wide for columns, so their metrics become rows."""
    return (table.transpose() if result.has_intervals else table).to_text()


def _sampling_note(result: ResultValues) -> str:
    """Return a warning for headings if candidates were sampled, else ""."""
    return "SAMPLED candidates: " if result.ranks.sampled else ""


def _over_relations(result: ResultValues, side: str) -> str:
    """Write averages with weighted relations: "Relations equally: MRR ..., Hits@10 ..."."""
    groups: dict[str, list[str]] = {}
    for tail in over_groups(result.ranks):
        measure = Measure.parse(f"{side}.{tail}")
        beta = "beta_e {:g}, beta_r {:g}".format(*measure.params) if measure.params else ""
        name = f"Stratified ({side}, {beta})" if beta else f"Relations equally ({side})"
        if measure.term:
            name = f"Equally by {measure.term} (question averages)"
        title = measure.title.removeprefix("strat-").partition("(")[0]
        groups.setdefault(_sampling_note(result) + name, []).append(
            f"{title} {format_cell(result[measure], measure.digits)}"
        )
    return "\n".join(f"{name}: {', '.join(values)}" for name, values in groups.items())


def _sides(side: str) -> str:
    """Name a side in words."""
    return {"both": "both sides", "all": ""}.get(side, f"{side} side")


def _header(result: ResultValues, filters: str | None = None) -> str:
    """Write the lines on what was evaluated; ``filters`` replaces the result's own filter."""
    facts = result.ranks.provenance
    side = result.sides[-1]
    questions, instances = result.count(side)
    split = f"split {facts.split}" if facts.split else ""
    filtered = filters or (_filter(facts) if result.ranks.of_graph else "")
    first = ["kgtrec", facts.graph_name or "", split, _sides(side), filtered]
    second = [f"{questions:,} questions", f"{instances:,} instances"]
    if side == "relation" and facts.n_relations is not None:
        second.append(f"{facts.n_relations:,} relations")
    elif side != "relation" and facts.n_entities is not None:
        kind = "entities" if result.ranks.of_graph else "candidates"
        second.append(f"{facts.n_entities:,} {kind}")
    lines = [" · ".join(part for part in first if part), " · ".join(second)]
    sizes = result.ranks.candidates
    if facts.restricted and len(sizes):
        lines.append(
            f"{sizes.min():,} to {sizes.max():,} candidates, {sizes.mean():,.1f} on average"
        )
    lines += [
        *facts.model_facts,
        *_restrictions(facts),
        *_predictions(result),
        *overlap_notes(facts),
    ]
    if facts.tie_tolerance:
        lines.append(
            f"Micro ranks count scores {tolerance_text(facts.tie_tolerance)} of the answer's as "
            "ties; ordinal and macro ranks count only equal scores."
        )
    return _wrap_lines(lines)


def overlap_notes(facts: Provenance) -> Iterator[str]:
    """Yield sentences on what the split shares with train and with itself.

    Some are said only if more than `FEW_NEW` or `MOSTLY` of the triples are concerned.
    """
    try:
        overlap = SplitOverlap(**facts.overlap)
    except TypeError:  # without train, or by another version
        return
    split = facts.split
    if overlap.known:
        yield f"{_some(overlap.known, overlap.facts, f'{split} triples')} also in train."
    if overlap.of_new_entities > FEW_NEW * overlap.facts:
        yield (
            f"{_some(overlap.new_entities, overlap.entities, 'entities of the questions')} in no "
            f"train triple ({_triples(overlap.of_new_entities)})."
        )
    if overlap.new_relations:
        yield (
            f"{_some(overlap.new_relations, overlap.relations, 'relations of the questions')} in "
            f"no train triple ({_triples(overlap.of_new_relations)})."
        )
    if overlap.mirrored > MOSTLY * overlap.facts:
        yield (
            f"{_some(overlap.mirrored, overlap.facts, f'{split} triples')} mirrored in {split}, as "
            "if it contained inverse relations: each question is asked twice; evaluate one half "
            "of the triples, or ask only for tails."
        )


def _some(n: int, total: int, noun: str) -> str:
    return f"{n:,} of {total:,} {noun} {'is' if n == 1 else 'are'}"


def _triples(n: int) -> str:
    return f"{n:,} triple{'s' * (n != 1)}"


def _predictions(result: ResultValues) -> Iterator[str]:
    """Yield sentences on predicted lists, and on answers beyond them."""
    facts = result.ranks.provenance.predictions
    if not facts:
        return
    yield f"{facts['lists']:,} predicted lists ({facts['format']}), filtered by the graph."
    beyond = result.ranks.n_unlisted
    if beyond:
        yield (
            f"{beyond:,} answers ({100 * beyond / len(result.ranks):.3g} %) are not in their lists:"
            " their ranks are unknown, so values are intervals."
        )
    if facts.get("list_order") == "listed":
        yield "Answers are ranked by their place in the list, even among equal scores."
    counted = {
        "questions_without_list": "questions have no list.",
        "not_asked": "lists belong to questions that are not asked.",
        "questions_of_several_lists": "questions have one list per triple: macro values use all "
        "lists together, or only the first list if there are no scores.",
        "repeats": "predictions were repeated in a list and count once.",
    }
    yield from (f"{facts[key]:,} {text}" for key, text in counted.items() if facts[key])
    if facts["n_unlinkable"]:
        yield _unlinkable(facts)


def _unlinkable(facts: Mapping[str, Any]) -> str:
    """Count the predictions that name no entity, and quote the first of them."""
    n, is_dropped = facts["n_unlinkable"], facts["unlinkable"] == "drop"
    text = f"{n:,} predictions name no entity and "
    text += "are dropped" if is_dropped else "keep their places"
    if n == 1:
        text = "1 prediction names no entity and "
        text += "is dropped" if is_dropped else "keeps its place"
    if not (first := facts.get("stranger")):
        return f"{text}."
    near = f"; the graph has {first['near']!r}" if first["near"] else ""
    which = "" if n == 1 else "the first is "
    return f"{text} ({which}{first['label']!r} in {first['place']} of {facts['file']}{near})."


def _restrictions(facts: Provenance) -> Iterator[str]:
    """Yield a sentence per restriction of questions or candidates, and per addition to filters."""
    subset, lists = facts.subset, facts.lists
    if subset:
        sizes = [f"{subset[name]:,} {name}" for name in ("entities", "relations") if subset[name]]
        yield (
            f"Restricted to {' and '.join(sizes)}: {subset['triples_kept']:,} triples are "
            f"evaluated, {subset['triples_dropped']:,} are not."
        )
    if few := facts.min_answers:
        total = few["questions_kept"] + few["questions_dropped"]
        yield (
            f"Only questions with {few['least']:,} or more answers: {few['questions_kept']:,} of "
            f"{total:,}."
        )
    if facts.restricted in _LISTS:
        yield f"{_LISTS[facts.restricted]}{_from_file(lists)}."
    if lists.get("ignored"):
        yield f"{lists['ignored']:,} lists of candidates are of questions that were left out."
    if lists.get("questions_without_list"):
        yield (
            f"{lists['questions_without_list']:,} questions have relations without a list; every "
            "entity is their candidate."
        )
    if lists.get("repeats"):
        yield f"{lists['repeats']:,} candidates were repeated in a list and count once."
    for file in facts.known_files:
        yield f"{file['triples']:,} further known triples{_from_file(file)}."


_LISTS = {
    "relations": "Candidates by relation and side",
    "candidates": "One list of candidates per question",
}


def _from_file(facts: Mapping[str, Any]) -> str:
    """Name the file of the facts, and count its unknown labels."""
    origin = f", from {facts['file']}" if "file" in facts else ""
    skipped = facts.get("unknown")
    return origin + (f" ({skipped:,} have labels that are not in the graph)" if skipped else "")


def _filter(facts: Provenance) -> str:
    """Describe the filter in a few words."""
    return f"filter {filter_text(facts)}" if facts.filter_splits != () else "unfiltered"


def tie_note(result: ResultValues) -> str:
    """Format the tie report as a paragraph."""
    return _wrap_lines([_ties(result)])


def _ties(result: ResultValues) -> str:
    """Describe the ties of the instances and what they can change."""
    report = result.ranks.tie_report()
    if not report["max_equal"]:
        return "Ties: none; every rank type gives the same values."
    names = {"mrr": "MRR", "hits@10": "Hits@10", "mr": "MR"}
    widths = [f"{name} by {report['width'][key]:.4g}" for key, name in names.items()]
    share = f"{100 * report['tied_share']:.3g} %"
    return (
        f"Ties: {share} of the instances are tied, with {report['mean_equal']:.4g} other "
        f"candidates on average over all instances and {report['max_equal']:,} at most; "
        f"ties can change {', '.join(widths)}."
    )


def _trec_notes(result: ResultValues) -> Iterator[str]:
    """Yield the source of the trec_eval values, and the agreement of both computations."""
    measures = result.measures or [
        Measure.parse(f"{result.sides[-1]}.{key}") for key in QUESTIONWISE
    ]
    shown = {m.metric: m.title for m in measures if m.is_trec}
    if result.agreement:
        yield (
            "MAP@20 and nDCG@20: pytrec_eval and native values agree to "
            f"{AGREEMENT:.0e} (largest difference {max(result.agreement.values()):.2g})."
        )
    unchecked = [title for name, title in shown.items() if name not in result.agreement]
    if unchecked and result.run is None:
        yield (
            f"{', '.join(unchecked)}: computed natively from the answers' ordinal ranks; without "
            "a run, they are not compared with pytrec_eval."
        )
    whole = [name for name in shown if find_depth(name) is None]
    if whole and result.run is not None:
        yield (
            f"{', '.join(whole)}: computed from the run, which has the {result.run.depth:,} best "
            "candidates of every question; answers below them count as not retrieved."
        )


def warnings_of(result: ResultValues, ranks: Ranks | None = None) -> Iterator[str]:
    """Yield warnings about easily misread numbers, one sentence each.

    Pass the result's `ranks` to read them without their comparison with the run.
    """
    ranks = result.ranks if ranks is None else ranks
    facts = ranks.provenance
    # Answers outside have no score either, but their own sentence.
    outside, nan_count = facts.outside, facts.nan_count
    unscored = int(np.count_nonzero(ranks.answer_nan)) - outside
    lost = [f"{nan_count:,} scores were NaN and counted as the lowest"] * (nan_count > 0)
    lost += [f"{unscored:,} answers had no score and got the worst rank"] * (unscored > 0)
    if lost:
        yield "; ".join(lost) + "."
    if facts.filter_splits == ():
        yield "unfiltered: other known answers count as wrong."
    elif facts.filter_splits is not None:
        missing = [name for name in facts.triples if name not in facts.filter_splits]
        usual = (facts.filter, facts.split, facts.context, facts.filter_splits)
        if missing and not is_usual_filter(*usual):
            yield (
                f"the filter leaves out {' and '.join(missing)}: answers from there count as wrong."
            )
    if outside:
        yield f"{outside:,} answers were not among their candidates and got the worst rank."
    if facts.sampled:
        yield "sampled candidates: do not compare these values with full ranking."
    yield from chance_warnings(result, ranks)
    shows_amri = "amri" in " ".join(map(str, result.measures or ("amri",)))
    if shows_amri and (ranks.candidates <= 1).all():
        yield "AMRI is undefined (nan): every instance has only one candidate."


def chance_warnings(result: ResultValues, ranks: Ranks) -> Iterator[str]:
    """Warn if all sides are at chance level, or one is worse, by a z-test per side."""
    if len(ranks) <= INSTANCES:
        return
    sides = ("head", "tail") if result.sides[-1] == "both" else result.sides
    amri = {side: float(result[f"{side}.realistic.micro.amri"]) for side in sides}
    z = {side: value / _spread_by_chance(ranks, side) for side, value in amri.items()}
    if all(abs(value) < BEYOND_CHANCE for value in z.values()):  # not nan, of single candidates
        yield (
            f"scores look random: AMRI ({_format_amri(amri)}) does not differ from 0 (z-test per "
            "side at p = 1e-6); check that the columns of the scores are in the order of the "
            "entities, as the model numbers them; for a model of distances, check the norm, and "
            "whether its phases are radians."
        )
    elif worse := {side: amri[side] for side, value in z.items() if value < -BEYOND_CHANCE}:
        yield (
            f"ranks are worse than by chance: AMRI ({_format_amri(worse)}) is below 0 (z-test per "
            "side at p = 1e-6); if lower scores are better, say so when you rank them."
        )


def _format_amri(amri: Mapping[str, float]) -> str:
    """Format the AMRI of each side."""
    return ", ".join(f"{side} {value:.3f}" for side, value in amri.items())


def _spread_by_chance(ranks: Ranks, side: str) -> float:
    """Return an upper bound on the standard deviation of a side's AMRI under random scores.

    The ranks of one answer move together if columns were permuted, and are independent if scores
    are random numbers. The bound assumes that they move together. If answers are too few for that
    test to notice an AMRI of 0.5, it assumes that all instances are independent.
    """
    rows = np.isin(ranks.side, SIDES[side])
    size = ranks.candidates[rows].astype(np.float64)
    deviation = np.sqrt((size**2 - 1) / 12)
    best = ((size - 1) / 2).sum()  # the difference from chance at an AMRI of 1
    answers = np.unique(ranks.answer[rows], return_inverse=True)[1]
    together = np.sqrt((np.bincount(answers.reshape(-1), weights=deviation) ** 2).sum())
    alone = np.sqrt((deviation**2).sum())
    spread = together if together * 2 * BEYOND_CHANCE < best else alone
    return float(spread / best) if best else np.nan


def warning_lines(result: ResultValues, ranks: Ranks) -> list[str]:
    """Return the warnings as lines of a repr, which begin with two spaces."""
    texts = [f"  WARNING: {text}" for text in warnings_of(result, ranks)]
    return _wrap_lines(texts, "    ").splitlines()


def _wrap_lines(lines: Iterable[str], indent: str = "  ") -> str:
    """Wrap each line to the width of reports."""
    fill = partial(textwrap.fill, break_on_hyphens=False, break_long_words=False)  # names of files
    return "\n".join(fill(line, WIDTH, subsequent_indent=indent) for line in lines)
