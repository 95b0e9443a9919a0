"""The same metrics for parts of the instances: by category, side, quartile, label, or products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import contains, distinct
from kgtrec._internal.table import Cell, Table, Value
from kgtrec.errors import UsageError
from kgtrec.graph.statistics.leakage import ENOUGH, REDUNDANCIES, relation_redundancy
from kgtrec.graph.statistics.popularity import (
    entity_popularity,
    popular_items,
    popular_parts,
    relation_popularity,
)
from kgtrec.graph.statistics.relations import CATEGORIES, UNSEEN, relation_categories
from kgtrec.graph.triples import n_qualifiers
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.averaging import SIDES, sides_present
from kgtrec.measures.calculator import Calculator
from kgtrec.ranking.instances import term_names, term_of, triple_ids
from kgtrec.results.comparability import check_graph
from kgtrec.results.tables import BY_RELATION, BY_SIDE, measure_table
from kgtrec.results.triple_labels import UNLABELLED, TripleLabels, triple_labels

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.questions.terms import Term
    from kgtrec.ranking.ranks import Ranks


DIMENSIONS = (
    "relation",
    "side",
    "category",
    "quartile",
    "given-quartile",
    "relation-quartile",
    "mix",
    "frequency",
    "answers",
    "redundancy",
    "half-links",
    "label",
    "time",
    "qualifiers",
)
"""Dimensions for slices of graph questions."""

QUARTILES = ("Q1", "Q2", "Q3", "Q4")
MIXES = ("all popular", "mixed", "all unpopular")
"""Triples whose subject, relation and object are all popular, some of them, or none."""
EDGES = (0, 1, 2, 5, 10, 20, 50, 100)
"""Least numbers of the classes of frequency and of answers; the last class is open."""
HALF_LINKS = ("both", "given only", "asked only", "neither")
"""Halves of a test triple that train contains: (h, r, .) and (., r, t); see arXiv 2606.18001."""


@dataclass(frozen=True)
class _Groups:
    """Groups of one dimension: per instance the index of its group in `names`, in row order."""

    code: Int64
    names: Sequence[str]
    notes: Sequence[tuple[int, int]] = ()  # further columns of a group


def parse_by(by: str | Iterable[str], terms: Sequence[str] | None = ()) -> tuple[str, ...]:
    """Split "category,side", or a list of names, into dimensions; the side is last.

    ``terms`` are names of terms; None if unknown yet: any name may be one.
    """
    require_type("by", by, Iterable, "'relation' or a list of such names")
    names = by.split(",") if isinstance(by, str) else list(by)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        if not name or (terms is not None and name not in (*DIMENSIONS, *terms)):
            *most, last = map(repr, DIMENSIONS)
            named = "".join(f", or {term!r}" for term in terms or ())
            raise UsageError(
                f"cannot slice by {name!r}; slice by {', '.join(most)} or {last}{named}, or by "
                "several, as in 'category,side'"
            )
    if not names or len(set(names)) < len(names):
        raise UsageError(f"cannot slice by {by!r}; name each dimension once, as in category,side")
    return tuple(sorted(names, key=lambda name: name == "side"))


def slice_result(
    calculator: Calculator,
    by: str | Iterable[str],
    measures: Sequence[str | Measure] | None = None,
    *,
    graph: Graph | None = None,
    labels: TripleLabels | None = None,
    percentile: float = 90.0,
    edges: Sequence[int] = EDGES,
    enough: float = ENOUGH,
) -> Table:
    """Compute measures for parts of the instances; see `Result.slice` for the arguments."""
    dimensions = parse_by(by, term_names(calculator.ranks))
    tails = BY_SIDE if by == "side" else BY_RELATION
    parsed = parse_all(measures or [f"{calculator.sides[-1]}.{tail}" for tail in tails])
    for measure in parsed:
        calculator.value(measure)  # refuses impossible measures, with the reason
    sources = _Sources(calculator.ranks, graph, labels, percentile, edges, enough)
    parts = {name: _find_groups(name, sources) for name in dimensions if name != "side"}
    _check_whole_questions(calculator.ranks, parsed, dimensions, [*parts.values()])
    keys: list[str] | None = None
    sides: tuple[str, ...] = ("",)
    if "side" in dimensions:
        # A measure of each side becomes one column: the row gives the side.
        sides = calculator.sides
        parsed = list(dict.fromkeys(replace(measure, side=sides[-1]) for measure in parsed))
        keys = [measure.key.partition(".")[2] for measure in parsed]
    rows = [
        row
        for names, notes, members in _groups([*parts.values()], len(calculator.ranks))
        for row in _rows(calculator, names, notes, members, parsed, sides)
    ]
    noted = [name for name, part in parts.items() if part.notes]
    ends = [f"{name} " * (len(noted) > 1) + end for name in noted for end in ("from", "to")]
    counts = (*ends, "questions", "instances")
    return measure_table(calculator.ranks, dimensions, parsed, rows, counts, keys)


def rows_by_part(
    ranks: Ranks,
    by: str | Iterable[str],
    measures: Sequence[Measure] = (),
    *,
    graph: Graph | None = None,
) -> dict[tuple[str, ...], Int64]:
    """Return the rows of the instances in each part, by the names of the part.

    Parts are in the order of `slice_result`.

    Parts that divide questions are refused for measures of whole questions.
    """
    dimensions = parse_by(by, term_names(ranks))
    sources = _Sources(ranks, graph, None)
    parts = [_find_groups(name, sources) for name in dimensions if name != "side"]
    _check_whole_questions(ranks, measures, dimensions, parts)
    rows = {names: members for names, _, members in _groups(parts, len(ranks))}
    if "side" in dimensions:
        rows = {
            (*names, side): members[np.isin(ranks.side[members], SIDES[side])]
            for names, members in rows.items()
            for side in sides_present(ranks)
        }
    return {names: members for names, members in rows.items() if len(members)}


def _groups(
    parts: Sequence[_Groups], n: int
) -> Iterable[tuple[tuple[str, ...], tuple[int, ...], Int64]]:
    """Yield names, notes and instances of every group with instances, in the order of the names."""
    sizes = [1, *(len(part.names) for part in parts)]
    code = np.ravel_multi_index([np.zeros(n, np.int64), *(part.code for part in parts)], sizes)
    order = np.argsort(code, kind="stable")
    numbers, starts = np.unique(code[order], return_index=True)
    _, *indices = np.unravel_index(numbers, sizes)
    for *index, members in zip(*indices, np.split(order, starts[1:]), strict=True):
        groups = [*zip(parts, index, strict=True)]
        notes = chain.from_iterable(part.notes[at] for part, at in groups if part.notes)
        yield tuple(part.names[at] for part, at in groups), tuple(notes), members


def _rows(
    calculator: Calculator,
    names: tuple[str, ...],
    notes: tuple[int, ...],
    members: Int64,
    measures: Sequence[Measure],
    sides: Sequence[str],
) -> Iterable[tuple[Cell, ...]]:
    """Yield one row per side that has instances; for the side "", a row of measures of any side."""
    is_all = len(members) == len(calculator.ranks)
    trec = [measure.metric for measure in measures if measure.is_trec]
    part = calculator if is_all else calculator.part(members, trec)
    asked_sides = {measure.side for measure in measures}
    usual = asked_sides.pop() if len(asked_sides) == 1 else calculator.sides[-1]
    for side in sides:
        present = side_of_part(side or usual, part.sides)
        if present is None and side:
            continue
        count = (0, 0) if present is None else part.count(present)
        values = (_value(part, measure, side or measure.side) for measure in measures)
        yield (*names, *filter(None, [side]), *notes, *count, *values)


def side_of_part(side: str, present: Sequence[str]) -> str | None:
    """Return the side to request from a part; None if the part lacks it.

    For "both", it is the only side of the part.
    """
    if side in present:
        return side
    return present[-1] if side == "both" else None


def _value(part: Calculator, measure: Measure, side: str) -> Value:
    """Compute a measure on a side; NaN if the part has no instance there."""
    present = side_of_part(side, part.sides)
    return float("nan") if present is None else part.value(replace(measure, side=present))


def _check_whole_questions(
    ranks: Ranks, measures: Sequence[Measure], dimensions: Sequence[str], parts: Sequence[_Groups]
) -> None:
    """Refuse questions whose answers are in several groups: they have a value in none."""
    whole = [measure for measure in measures if measure.averaging == "macro"]
    if not whole or not parts:
        return
    pairs = np.unique(np.stack([ranks.question, *(part.code for part in parts)]), axis=1)
    torn = int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
    if torn:
        raise UsageError(
            f"{whole[0]} needs all answers of a question in one group, but {','.join(dimensions)} "
            f"puts answers of {torn:,} questions into several groups; ask for micro measures, or "
            "slice by relation, category or side"
        )


# --- dimensions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sources:
    """Data from which dimensions are computed."""

    ranks: Ranks
    graph: Graph | None
    labels: TripleLabels | None
    percentile: float = 90.0
    edges: Sequence[int] = EDGES
    enough: float = ENOUGH

    def require_graph(self, dimension: str) -> Graph:
        """Return the graph; UsageError if there is none, or if the ranks are of another."""
        if not self.ranks.of_graph:
            known = ", ".join(term_names(self.ranks)) or "none"
            raise UsageError(
                f"slices by {dimension} need questions from a graph; slice by a term instead "
                f"({known})"
            )
        if self.graph is None:
            raise UsageError(
                f"slices by {dimension} need the graph that the ranks were made on; give "
                f"{argument('graph')}"
            )
        check_graph(self.ranks, self.graph)
        return self.graph


def _find_groups(name: str, sources: _Sources) -> _Groups:
    """Compute the groups of a dimension.

    They are the values of a term in their order (relations by size), or derived from terms.
    """
    term = term_of(sources.ranks, name)
    if term is None and name in _WITHOUT_TERM:
        raise UsageError(f"slices by {name} need questions {_WITHOUT_TERM[name]}")
    if term is None:
        return _DERIVED[name](sources)
    if name == "qualifiers":
        return _by_number(term)
    numbers, code = np.unique(term.codes, return_inverse=True)
    names = term.texts(numbers)
    if sources.ranks.of_graph and name == "relation":
        return _largest_first(code.reshape(-1), names)
    return _Groups(code.reshape(-1).astype(np.int64), names)


def _by_category(sources: _Sources) -> _Groups:
    """Group by the category of the relation in train: 1-1, 1-N, N-1 or N-N."""
    if sources.ranks.given_relation is not None:
        raise UsageError(
            "only relations of primary triples have categories, but these ranks are of values of "
            "qualifiers; slice by 'relation' or 'qualifiers'"
        )
    graph = sources.require_graph("category")
    if "train" not in graph.splits:
        raise UsageError("slices by category need a train split; give a graph with train")
    return _Groups(relation_categories(graph).code[sources.ranks.relation], (*CATEGORIES, UNSEEN))


def _by_quartile(sources: _Sources, dimension: str = "quartile", column: str = "answer") -> _Groups:
    """Group by the quarter of all entities (relations) with the instance's value in `column`."""
    graph = sources.require_graph(dimension)
    of_relations = column == "relation" or (column == "answer" and sources.ranks.kind == "relation")
    counts = relation_popularity(graph) if of_relations else graph.entity_counts()
    quartile = np.searchsorted(np.percentile(counts, (25, 50, 75)), counts, side="left")
    held = [counts[quartile == number] for number in range(len(QUARTILES))]
    notes = [(int(part.min()), int(part.max())) if len(part) else (0, 0) for part in held]
    return _Groups(quartile[getattr(sources.ranks, column)].astype(np.int64), QUARTILES, notes)


def _by_mix(sources: _Sources) -> _Groups:
    """Group by whether subject, relation and object are popular (Mohamed et al. 2020, Table 1)."""
    graph, ranks = sources.require_graph("mix"), sources.ranks
    if ranks.kind != "entity" or ranks.given_relation is not None:
        raise UsageError("slices by mix need questions for heads or tails")
    _, entity, relation = popular_items(graph, sources.percentile)
    triples = np.stack(triple_ids(ranks), axis=1)
    return _Groups(np.array([2, 1, 1, 0])[popular_parts(triples, entity, relation)], MIXES)


def _by_frequency(sources: _Sources) -> _Groups:
    """Group by the number of train triples with the answer, in classes."""
    graph = sources.require_graph("frequency")
    if "train" not in graph.splits:
        raise UsageError("slices by frequency need a train split; give a graph with train")
    count = relation_popularity if sources.ranks.kind == "relation" else entity_popularity
    return _classes(count(graph, "train")[sources.ranks.answer], sources.edges, least=0)


def _by_answers(sources: _Sources) -> _Groups:
    """Group by the number of answers that the question has in the evaluated split, in classes."""
    question = sources.ranks.question
    return _classes(np.bincount(question)[question], sources.edges, least=1)


def _classes(counts: Int64, edges: Sequence[int], least: int) -> _Groups:
    """Group counts in classes that begin at `edges`; the first begins at 0, or at `least`."""
    starts = np.asarray(edges)
    whole = starts.ndim == 1 and starts.dtype.kind in "iu" and len(starts) > 0
    if not whole or starts[0] not in (0, least) or (np.diff(starts) <= 0).any():
        raise UsageError(
            f"{argument('edges', list(edges))} are not ascending whole numbers from {least} on; "
            f"give the least number of each class, as {least},{least + 1},5,10"
        )
    starts = np.unique(np.maximum(starts, least))
    code = np.searchsorted(starts, counts, side="right") - 1
    ends = zip(starts[:-1].tolist(), (starts[1:] - 1).tolist(), strict=True)
    names = [f"{low}" if low == high else f"{low}-{high}" for low, high in ends]
    return _Groups(code.astype(np.int64), [*names, f"{starts[-1]}+"])


def _by_redundancy(sources: _Sources) -> _Groups:
    """Group by whether the relation repeats another, or links all to all (Akrami et al. 2020)."""
    graph = sources.require_graph("redundancy")
    if sources.ranks.given_relation is not None or "train" not in graph.splits:
        raise UsageError("redundancy needs a train split, and questions about primary triples")
    kind = relation_redundancy(graph, "train", sources.enough)
    return _Groups(kind[sources.ranks.relation], REDUNDANCIES)


def _by_half_links(sources: _Sources) -> _Groups:
    """Group by whether train has the given and the asked entity at this end of the relation."""
    graph, ranks = sources.require_graph("half-links"), sources.ranks
    if ranks.kind != "entity" or ranks.given_relation is not None or "train" not in graph.splits:
        raise UsageError("half-links need a train split, and questions for heads or tails")
    head, relation, tail = (ids.astype(np.int64) for ids in triple_ids(ranks))
    train, n = graph.splits["train"].astype(np.int64), np.int64(len(graph.entities))
    of_head, of_tail = (
        contains(distinct([train[:, 1] * n + train[:, column]]), relation * n + ids)
        for ids, column in ((head, 0), (tail, 2))
    )
    has_given, has_asked = np.where(ranks.side == 1, (of_head, of_tail), (of_tail, of_head))
    return _Groups(np.int64(2) * ~has_given + ~has_asked, HALF_LINKS)


def _by_label(sources: _Sources) -> _Groups:
    """Group by the users' labels of triples."""
    if sources.labels is None:
        raise UsageError(
            f"slices by label need labels; give {argument('labels')}, a file of lines "
            "(head<TAB>relation<TAB>tail<TAB>label)"
        )
    return _largest_first(*triple_labels(sources.ranks, sources.labels))


def _by_number(qualifiers: Term) -> _Groups:
    """Group by the number of (other) qualifiers that the question gives."""
    counts = np.array([n_qualifiers(text) for text in qualifiers.labels or ()])[qualifiers.codes]
    sizes, code = np.unique(counts, return_inverse=True)
    return _Groups(code.reshape(-1).astype(np.int64), list(map(str, sizes.tolist())))


def _largest_first(code: Array, names: Sequence[str]) -> _Groups:
    """Order groups by size, then by name; those without a label last."""
    size = np.bincount(code, minlength=len(names))
    order = sorted(range(len(names)), key=lambda i: (names[i] == UNLABELLED, -size[i], names[i]))
    position = np.empty(len(names), np.int64)
    position[order] = np.arange(len(names))
    return _Groups(position[code], [names[i] for i in order])


_WITHOUT_TERM = {
    "relation": "from a graph; slice by a term of these questions",
    "time": f"that give a time; rank with {argument('context', 'time')}",
    "qualifiers": f"that give qualifiers; rank with {argument('context', 'qualifiers')}",
}
_DERIVED: dict[str, Callable[[_Sources], _Groups]] = {
    "category": _by_category,
    "quartile": _by_quartile,
    "given-quartile": partial(_by_quartile, dimension="given-quartile", column="given"),
    "relation-quartile": partial(_by_quartile, dimension="relation-quartile", column="relation"),
    "mix": _by_mix,
    "frequency": _by_frequency,
    "answers": _by_answers,
    "redundancy": _by_redundancy,
    "half-links": _by_half_links,
    "label": _by_label,
}
