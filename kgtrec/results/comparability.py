"""Whether two sets of ranks may stand in one table: what differs in how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.results.result import Result

__all__ = ["check_graph", "comparable", "context_note", "tolerance_text"]


def comparable(a: Ranks | Result, b: Ranks | Result) -> list[str]:
    """Why numbers of two evaluations can't be held against each other.

    Parameters
    ----------
    a, b : Ranks or Result
        Of any models.

    Returns
    -------
    list of str
        One phrase a reason, `a` before `b`; empty if both answer the same questions among the same
        candidates.
    """
    one, other = _ranks_of(a), _ranks_of(b)
    ours, theirs = (dict(ranks.manifest.get("questions") or {}) for ranks in (one, other))
    if not ours or not theirs:
        return [] if ours == theirs else ["one of them does not say what was asked"]
    reasons = []
    for name, decides, tell in _FACTS:
        if decides(ours) != decides(theirs):
            reasons.append(f"{name}: {tell(ours)} against {tell(theirs)}")
    for name, say in _SCORING:
        mine, its = (say(ranks.manifest.get("scores") or {}) for ranks in (one, other))
        if mine != its and mine and its:
            reasons.append(f"{name}: {mine} against {its}")
    if not reasons and ours.get("questions_hash") != theirs.get("questions_hash"):
        reasons.append("questions, answers or candidates differ (their hashes do)")
    if not reasons and (len(one) != len(other) or (one.candidates != other.candidates).any()):
        reasons.append("one of them is a part of the evaluation only")
    return reasons


def _ranks_of(source: Ranks | Result) -> Ranks:
    untyped: Any = source
    ranks: Ranks = getattr(untyped, "ranks", untyped)
    return ranks


def _graph(facts: Mapping[str, Any]) -> str:
    name = facts.get("graph_name") or "unnamed"
    return f"{name} ({str(facts.get('graph_hash', 'unknown'))[:8]})"


def _filter(facts: Mapping[str, Any]) -> str:
    splits = facts.get("filter_splits")
    if splits is None:
        return "not recorded"
    extra = facts.get("extra_known")
    names = ", ".join(splits) + context_note(facts) if splits else "unfiltered"
    return f"{names} and {extra:,} further triples" if extra else names


def context_note(facts: Mapping[str, Any]) -> str:
    """What a filter counts as known of questions at a context, behind the names of its splits."""
    return f" ({facts['context_filter']})" if facts.get("context_filter") else ""


def _context(facts: Mapping[str, Any]) -> str:
    how = {None: "none", "time": "asked at a time", "qualifiers": "asked with qualifiers"}
    return how.get(facts.get("context"), str(facts.get("context")))


def _candidates(facts: Mapping[str, Any]) -> str:
    if facts.get("sampled"):
        return "sampled candidates"
    kind = facts.get("restricted")
    return f"candidates restricted by {kind}" if kind else "all candidates"


def _evaluated(facts: Mapping[str, Any]) -> str:
    subset = facts.get("subset")
    return f"{subset['triples_kept']:,} triples" if subset else "every triple"


def _split(facts: Mapping[str, Any]) -> str:
    return str(facts.get("split"))


def _sides(facts: Mapping[str, Any]) -> str:
    return str(facts.get("sides"))


def _outside(facts: Mapping[str, Any]) -> str:
    return str(facts.get("outside", 0))


# What a fact is called, what decides whether it differs, and how it is told. A graph's folder may
# have any name: its triples and labels decide.
_FACTS = (
    ("candidates", _candidates, _candidates),
    ("graph", lambda facts: facts.get("graph_hash"), _graph),
    ("split", _split, _split),
    ("sides", _sides, _sides),
    ("context", _context, _context),
    ("filter", _filter, _filter),
    ("evaluated", _evaluated, _evaluated),
    ("answers at the worst rank", _outside, _outside),
)


def tolerance_text(facts: Mapping[str, Any]) -> str:
    """What ties with an answer, of the manifest's facts about scores."""
    tolerance = facts.get("tie_tolerance")
    return (
        f"within {tolerance['atol']:g} + {tolerance['rtol']:g} |score|"
        if tolerance
        else "equal scores"
    )


def _unlinkable(facts: Mapping[str, Any]) -> str | None:
    lists = facts.get("predictions")
    if not lists:
        return None
    fate = {"place": "take a place", "drop": "are dropped"}
    return fate[lists["unlinkable"]] if lists["n_unlinkable"] else None


# What is said of scores, and how; None: it makes no difference.
_SCORING = (("predictions that name no entity", _unlinkable), ("ties", tolerance_text))


def check_graph(ranks: Ranks, graph: Graph) -> None:
    """Refuse a graph on which the ranks were not made.

    Raises
    ------
    UsageError
        The fingerprints differ, or ids of ranks without a manifest are out of range.
    """
    made_on: dict[str, Any] = ranks.manifest.get("questions", {})
    name = graph.name or "the graph"
    if made_on.get("graph_hash", graph.fingerprint) != graph.fingerprint:
        raise UsageError(
            f"{name} ({graph.n_entities:,} entities, {graph.n_relations:,} relations) is not the "
            f"graph that these ranks were made on ({made_on.get('graph_name') or 'without a name'}"
            f", {made_on.get('n_entities', 0):,} entities, {made_on.get('n_relations', 0):,} "
            "relations): labels or triples differ; give the folder that `kgtrec rank` was given"
        )
    for what, ids, size in (
        ("relation", ranks.relation, graph.n_relations),
        ("entity", ranks.answer if ranks.kind == "entity" else ranks.given, graph.n_entities),
    ):
        if len(ids) and not 0 <= ids.min() <= ids.max() < size:
            raise UsageError(
                f"the ranks hold {what} {ids.max()}, and {name} has {size:,} of them; "
                "give the graph that the ranks were made on"
            )
