"""The text of the demo: small tables, and sentences on what their numbers show."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.table import WIDTH, Cell, Table

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.results.result import Result


MRR = "both.realistic.micro.mrr"
AMRI = "both.realistic.micro.amri"
MAIN = {
    "MRR": MRR,
    "Hits@1": "both.realistic.micro.hits@1",
    "Hits@10": "both.realistic.micro.hits@10",
    "MR": "both.realistic.micro.mr",
    "AMRI": AMRI,
    "MAP@20": "both.macro.map_cut_20",
    "nDCG@20": "both.macro.ndcg_cut_20",
}
TIES = {kind: f"both.{kind}.micro.mrr" for kind in ("optimistic", "realistic", "pessimistic")}
AVERAGES = {
    "micro MRR": MRR,
    "macro MRR": "both.realistic.macro.mrr",
    "relations": "both.realistic.macro_relation.mrr",
    "MAP@20": "both.macro.map_cut_20",
    "nDCG@20": "both.macro.ndcg_cut_20",
}


@dataclass(frozen=True)
class DemoResults:
    """All results of the demo: filtered and unfiltered ones by system, and a constant scorer's."""

    questions: Questions
    filtered: Mapping[str, Result]
    raw: Mapping[str, Result]
    constant: Result


def report(results: DemoResults) -> str:
    """Return the whole text, at most 80 columns wide."""
    parts = [
        part(results)
        for part in (
            _describe_graph,
            _show_example,
            _section_on_systems,
            _section_on_ties,
            _section_on_filtering,
            _section_on_averages,
        )
    ]
    return "\n\n".join(parts)


def _describe_graph(results: DemoResults) -> str:
    """Describe the graph and its questions."""
    questions, graph = results.questions, results.questions.graph
    sizes = {name: len(triples) for name, triples in graph.splits.items()}
    splits = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return _wrap(
        f"The countries of the world as a knowledge graph: {graph.n_entities:,} entities, "
        f"{graph.n_relations} relations, {sum(sizes.values()):,} facts ({splits}). Three systems "
        "learn from train. Each test fact asks two questions, for its tail and for its head: "
        f"{questions.n_instances:,} instances of {len(questions):,} different questions.",
    )


def _show_example(results: DemoResults) -> str:
    """Show the question about borders with most answers, and each system's best candidates."""
    questions = results.questions
    graph = questions.graph
    borders = questions.relation == graph.relations.index("borders")
    lengths = np.diff(questions.answers.offsets)
    number = int(np.argmax(lengths * (borders & (questions.side == 1))))
    answers = {int(answer) for answer in questions.answers[number]}
    entity = graph.entities[int(questions.entity[number])]
    lines = [
        f"For example ({entity}, borders, ?), {questions.ids[number]} in the files. Best answers "
        "of each system (* = right):"
    ]
    width = max(map(len, results.filtered))
    for name, result in results.filtered.items():
        run = result.run
        assert run is not None  # the demo asks for runs
        best = run.documents[run.offsets[number] : run.offsets[number + 1]][:5]
        shown = [f"{graph.entities[int(e)]}{' *' if int(e) in answers else ''}" for e in best]
        while len(", ".join(shown)) + width + 4 > WIDTH:
            shown.pop()
        lines.append(f"  {name:<{width}}  {', '.join(shown)}")
    return "\n".join([*_wrap(lines[0]).splitlines(), *lines[1:]])


def _section_on_systems(results: DemoResults) -> str:
    """Return the section that compares three systems."""
    names = _order(results.filtered, MRR)
    values = {name: float(results.filtered[name][MRR]) for name in names}
    ratio = f"{values[names[0]] / values[names[1]]:.1f} times that of {names[1]}"
    return _section(
        "1. Three systems (both sides, filtered, realistic ranks)",
        _compare_systems(results.filtered, MAIN),
        f"{names[0]} has the best MRR, {values[names[0]]:.3f}: {ratio}. AMRI is 0 for a random "
        "scorer and 1 for a perfect one; here random has "
        f"{results.filtered['random'][AMRI]:+.3f}.",
    )


def _section_on_ties(results: DemoResults) -> str:
    """Return the section that compares rank types."""
    systems = {**results.filtered, "constant": results.constant}
    rows: list[tuple[Any, ...]] = [
        (
            name,
            *(result[key] for key in TIES.values()),
            100 * float(np.mean(result.ranks.equal > 0)),
        )
        for name, result in systems.items()
    ]
    *ours, constant = rows
    name, most, _, least, _ = max(ours, key=lambda row: row[1] - row[3])
    texts = [
        "constant gives every entity the same score. If ties count as wins, its MRR is "
        f"{constant[1]:.3f}; by realistic ranks it is {constant[2]:.3f}, with AMRI "
        f"{results.constant[AMRI]:.3f}: it has learned nothing.",
        f"Among the systems, ties change {name} most: from {most:.3f} if all are wins to "
        f"{least:.3f} if all are losses.",
        _describe_orders(systems, TIES),
    ]
    return _section("2. Ties: MRR by rank type", _table([*TIES, "% tied"], rows), *texts)


def _section_on_filtering(results: DemoResults) -> str:
    """Return the section that compares filtered and unfiltered results."""
    hits = MAIN["Hits@10"]
    rows = [
        (name, results.raw[name][MRR], result[MRR], results.raw[name][hits], result[hits])
        for name, result in results.filtered.items()
    ]
    titles = ("raw MRR", "filtered MRR", "raw Hits@10", "filtered Hits@10")
    lost = {
        name: 1 - float(results.raw[name][MRR]) / float(result[MRR])
        for name, result in results.filtered.items()
    }
    most = max(lost, key=lambda name: lost[name])
    most_known = int(np.diff(results.questions.known.offsets).max(initial=0))
    text = (
        f"Unfiltered, {most} loses {100 * lost[most]:.0f} % of its MRR: other true answers "
        "above the expected one count as mistakes. Questions have up to "
        f"{most_known:,} known answers."
    )
    return _section("3. Filtering: other true answers are not mistakes", _table(titles, rows), text)


def _section_on_averages(results: DemoResults) -> str:
    """Return the section that compares averages over instances and over questions."""
    return _section(
        "4. Micro and macro: instances or questions",
        _compare_systems(results.filtered, AVERAGES),
        _describe_weights(results),
        _describe_lead(results),
        _describe_orders(results.filtered, AVERAGES),
        _describe_exceptions(results),
    )


def _describe_weights(results: DemoResults) -> str:
    """Describe the weight of questions with many answers in micro averages, and their results."""
    lengths = np.diff(results.questions.answers.offsets)
    largest = np.argsort(-lengths, kind="stable")[: max(len(lengths) // 10, 1)]
    best = _order(results.filtered, MRR)[0]
    ranks = results.filtered[best].ranks
    reciprocal = 1 / ranks.rank("realistic")
    among = np.isin(ranks.question, largest)
    return (
        f"Micro counts instances: the {len(largest)} questions with most answers (10 %) make up "
        f"{100 * among.mean():.0f} %. On them {best} has MRR {reciprocal[among].mean():.3f}, on "
        f"the others {reciprocal[~among].mean():.3f}. Macro MRR, MAP@20 and nDCG@20 count each "
        "question once. Macro MRR uses only its best answer. 'relations' is micro MRR with each "
        "relation counted once."
    )


def _describe_lead(results: DemoResults) -> str:
    """Describe how the lead of the best system depends on the average."""
    first, second = _order(results.filtered, MRR)[:2]
    leads = {
        title: float(results.filtered[first][key]) / float(results.filtered[second][key])
        for title, key in AVERAGES.items()
    }
    least, most = min(leads, key=lambda t: leads[t]), max(leads, key=lambda t: leads[t])
    return (
        f"The lead of {first} over {second} depends on the average: {leads[most]:.1f} times by "
        f"{most}, {leads[least]:.1f} times by {least}."
    )


def _describe_exceptions(results: DemoResults) -> str:
    """Name the relations on which the best system overall is not the best."""
    best = _order(results.filtered, MRR)[0]
    tables = {name: result.slice("relation", [MRR]) for name, result in results.filtered.items()}
    by = {name: {str(row[0]): float(row[2]) for row in t.rows} for name, t in tables.items()}
    texts = []
    for relation, value in by[best].items():
        winner = max(by, key=lambda name: by[name][relation])
        if by[winner][relation] > value:
            texts.append(f"{relation} ({winner} {by[winner][relation]:.3f}, {best} {value:.3f})")
    if not texts:
        return f"{best} is also best on each of the {len(by[best])} relations."
    return f"By relation, {best} is best on all but {len(texts)}: {', '.join(texts)}."


def _describe_orders(systems: Mapping[str, Result], keys: Mapping[str, str]) -> str:
    """Return a sentence on which columns agree on the order of the systems."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for title, key in keys.items():
        columns.setdefault(_order(systems, key), []).append(title)
    if len(columns) == 1:
        names = " > ".join(next(iter(columns)))
        return f"Every column puts the systems in the same order: {names}."
    texts = [f"by {', '.join(titles)} {' > '.join(order)}" for order, titles in columns.items()]
    return f"The order of the systems changes: {'; '.join(texts)}."


def _order(systems: Mapping[str, Result], key: str) -> tuple[str, ...]:
    """Return the names of systems, best first."""
    return tuple(sorted(systems, key=lambda name: -float(systems[name][key])))


def _compare_systems(systems: Mapping[str, Result], keys: Mapping[str, str]) -> Table:
    """Return a table with one row per system and one column per measure."""
    rows: list[tuple[Cell, ...]] = [
        (name, *(result[key] for key in keys.values())) for name, result in systems.items()
    ]
    return _table(list(keys), rows)


def _table(titles: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    """Return a table whose first column names systems."""
    columns = [(title, title, 1 if title in ("MR", "% tied") else 3) for title in titles]
    return Table.from_rows(["system", *columns], rows)


def _section(title: str, table: Table, *texts: str) -> str:
    """Join a title, a table and texts."""
    indented = textwrap.indent(table.to_text(WIDTH - 2), "  ")
    return "\n".join([title, indented, *map(_wrap, texts)])


def _wrap(text: str) -> str:
    """Break a text into lines."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
