"""Decide whether a table may compare two sets of ranks, by differences of their protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgtrec._internal.arguments import GRAPH, RANKS, require_type
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.ranking.provenance import Provenance, differences
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.interface import HasRanks

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph, Questions


@dataclass(frozen=True)
class Comparability:
    """Answer to whether one table may compare two evaluations; true if it may.

    - reasons: Why not: one phrase per difference, the first evaluation before the second.
    """

    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "comparable" if self else f"not comparable: {'; '.join(self.reasons)}"


def comparable(a: Ranks | HasRanks, b: Ranks | HasRanks) -> Comparability:
    """Return whether one table may compare the numbers of two evaluations, and why not.

    Parameters
    ----------
    a, b : Ranks or Result
        Ranks or results of any models.

    Returns
    -------
    Comparability
        True if both answer the same questions among the same candidates; ``reasons`` lists the
        differences.

    Examples
    --------
    >>> same = comparable(ranks, other)  # doctest: +SKIP
    >>> if not same:
    ...     print("; ".join(same.reasons))
    """
    first: Any = getattr(a, "ranks", a)
    second: Any = getattr(b, "ranks", b)
    require_type("a", first, Ranks, RANKS)
    require_type("b", second, Ranks, RANKS)
    reasons = provenance_reasons(first.provenance, second.provenance)
    if not reasons and (len(first) != len(second) or (first.candidates != second.candidates).any()):
        reasons.append(PARTIAL)
    return Comparability(tuple(reasons))


PARTIAL = "one of them is only a part of the evaluation"


def provenance_reasons(ours: Provenance, theirs: Provenance) -> list[str]:
    """Return why evaluations of these provenances cannot be compared; empty if they can."""
    if not (ours.has_questions and theirs.has_questions):
        unknown = ["one of them does not record which questions were asked"]
        return [] if ours.has_questions == theirs.has_questions else unknown
    reasons = []
    for name, tell in _FACTS.items():
        mine, its = tell(ours), tell(theirs)
        differs = differences(ours, theirs, ["graph_hash"]) if name == "graph" else mine != its
        if differs and mine is not None and its is not None:
            reasons.append(f"{name}: {mine} against {its}")
    if not reasons and differences(ours, theirs, ["questions_hash"]):
        reasons.append("questions, answers or candidates differ (the hashes are not equal)")
    return reasons


def _graph(facts: Provenance) -> str:
    """Name a graph with the start of its hash."""
    return f"{facts.graph_name or 'unnamed'} ({(facts.graph_hash or 'unknown')[:8]})"


def filter_text(facts: Provenance) -> str:
    """Name the splits that filter, and the known answers they give for questions with a context."""
    if facts.filter_splits is None:
        return "not recorded"
    at_context = f" ({facts.context_filter})" if facts.context_filter else ""
    return ", ".join(facts.filter_splits) + at_context if facts.filter_splits else "unfiltered"


def _filter(facts: Provenance) -> str:
    """Describe the filter with further known triples."""
    extra = facts.extra_known if facts.filter_splits is not None else 0
    return filter_text(facts) + (f" and {extra:,} further triples" if extra else "")


def _context(facts: Provenance) -> str:
    """Say which context the questions give."""
    how = {None: "none", "time": "asked at a time", "qualifiers": "asked with qualifiers"}
    return how.get(facts.context, str(facts.context))


def _candidates(facts: Provenance) -> str:
    """Describe the candidates."""
    if facts.sampled:
        return "sampled candidates"
    return f"candidates restricted by {facts.restricted}" if facts.restricted else "all candidates"


def tolerance_text(tolerance: Mapping[str, float] | None) -> str:
    """Describe the tolerance within which scores tie with an answer."""
    return "within {atol:g} + {rtol:g} |score|".format(**tolerance) if tolerance else "equal scores"


def _unlinkable(facts: Provenance) -> str | None:
    """Say what happens to predictions that name no entity; None without such predictions."""
    lists = facts.predictions
    if not lists or not lists["n_unlinkable"]:
        return None
    return {"place": "keep their places", "drop": "are dropped"}[lists["unlinkable"]]


COMPARED = (
    *("graph_name", "graph_hash", "split", "sides", "context", "context_filter", "filter_splits"),
    *("extra_known", "restricted", "sampled", "subset", "outside", "predictions", "tie_tolerance"),
    "questions_hash",
)
"""Fields of a provenance on which `provenance_reasons` depends."""

# Text for each fact; None if it makes no difference. A graph's folder may have any name: its
# triples and labels decide.
_FACTS: dict[str, Callable[[Provenance], str | None]] = {
    "candidates": _candidates,
    "graph": _graph,
    "split": lambda facts: str(facts.split),
    "sides": lambda facts: str(facts.sides),
    "context": _context,
    "filter": _filter,
    "evaluated": lambda facts: (
        f"{facts.subset['triples_kept']:,} triples" if facts.subset else "every triple"
    ),
    "questions": lambda facts: (
        f"those with {facts.min_answers['least']:,} or more answers" if facts.min_answers else "all"
    ),
    "answers at the worst rank": lambda facts: str(facts.outside),
    "predictions that name no entity": _unlinkable,
    "order of lists": lambda facts: facts.predictions.get("list_order"),
    "ties": lambda facts: tolerance_text(facts.tie_tolerance),
}


def check_questions(ranks: Ranks, questions: Questions) -> None:
    """Refuse ranks of other questions than those given: no number would reveal the mistake."""
    recorded = ranks.provenance.questions_hash
    if recorded not in (None, questions.fingerprint):
        raise InputError(
            f"the ranks belong to other questions (hash {recorded}) than the given ones "
            f"({questions.fingerprint}); pass the questions that were ranked, or leave them out"
        )


def check_graph(ranks: Ranks, graph: Graph) -> None:
    """Refuse a graph other than the one of the ranks."""
    require_type("graph", graph, GraphData, GRAPH)
    made_on, name = ranks.provenance, graph.name or "the graph"
    if made_on.graph_hash not in (None, graph.fingerprint):
        raise UsageError(
            f"{name} ({graph.n_entities:,} entities, {graph.n_relations:,} relations) is not the "
            f"graph of these ranks ({made_on.graph_name or 'without a name'}, "
            f"{made_on.n_entities or 0:,} entities, {made_on.n_relations or 0:,} relations): "
            "labels or triples differ; give the graph that was passed to `kgtrec rank`"
        )
    for kind, ids, size in (
        ("relation", ranks.relation, graph.n_relations),
        ("entity", ranks.answer if ranks.kind == "entity" else ranks.given, graph.n_entities),
    ):
        if len(ids) and not 0 <= ids.min() <= ids.max() < size:
            raise UsageError(
                f"the ranks contain {kind} {ids.max()}, but ids of {name} end at {size - 1}; "
                "give the graph that the ranks were made on"
            )
