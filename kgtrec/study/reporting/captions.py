"""What a table of models has to say below it: graph, split, filter, candidates, averages, ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec.measures import Measure
from kgtrec.results.comparability import comparable, context_note

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

__all__ = ["Protocol", "caption", "protocol_of"]

TIES = {
    "optimistic": "ties count for the model (optimistic ranks)",
    "realistic": "an answer that ties stands in the middle of its tie (realistic ranks)",
    "pessimistic": "ties count against the model (pessimistic ranks)",
    "expected": "expectation over all orders of ties",
    "ordinal": "ties in trec_eval's order (ordinal ranks)",
}
AVERAGES = {
    "micro": "micro: over {instances:,} answers",
    "macro": "macro: over {questions:,} questions",
    "question": "question: over {questions:,} questions, all answers of each",
    "triple": "triple: over triples, by the mean rank of both sides",
    "relation": "relation: relations equally, in one mean",
    "macro_relation": "macro relation: mean over relations of their micro values",
    "stratified": "stratified: by popularity, (beta_e, beta_r)",
}


@dataclass(frozen=True)
class Protocol:
    """How models were evaluated on a graph.

    Attributes
    ----------
    split : str
    filter : str
        In words: "filtered by train, valid and test".
    candidates : str
        In words: "among all 14,541 entities".
    questions, instances : int
    sampled : bool
        Whether the candidates of every model were.
    differences : tuple of str
        What makes models incomparable: a sentence each.
    """

    split: str
    filter: str
    candidates: str
    questions: int
    instances: int
    sampled: bool = False
    differences: tuple[str, ...] = ()

    def text(self) -> str:
        """In one line: "test split, filtered by train, valid and test, among ..."."""
        parts = (f"{self.split} split" if self.split else "", self.filter, self.candidates)
        return ", ".join(filter(None, parts))


def protocol_of(systems: Mapping[str, Ranks]) -> Protocol:
    """How the first of several models was evaluated, and wherein others differ from it."""
    (first, ranks), *others = systems.items()
    facts: dict[str, Any] = ranks.manifest.get("questions") or {}
    differences = []
    for name, other in others:
        if reasons := comparable(ranks, other):
            differences.append(f"NOT COMPARABLE: {first} and {name} ({'; '.join(reasons)}).")
    return Protocol(
        split=str(facts.get("split", "")),
        filter=_filter(facts),
        candidates=_candidates(facts),
        questions=len(np.unique(ranks.question)),
        instances=len(ranks),
        sampled=all(one.sampled for one in systems.values()),
        differences=tuple(differences),
    )


def caption(protocols: Mapping[str, Protocol], measures: Sequence[Measure], note: str) -> str:
    """The whole caption, in sentences."""
    sentences = []
    for name, protocol in protocols.items():
        text = protocol.text()
        sentences.append(f"{name}: {text}." if name else f"{text[:1].upper()}{text[1:]}.")
    one = next(iter(protocols.values()))
    sides = list(dict.fromkeys(measure.side for measure in measures))
    words = {"both": "both sides"}
    sentences.append(f"Predicted: {', '.join(words.get(side, side) for side in sides)}.")
    averages = list(dict.fromkeys(measure.averaging for measure in measures))
    counted = len(protocols) == 1 and sides == ["both"]
    sentences.append(f"Averages: {'; '.join(_average(a, one, counted) for a in averages)}.")
    sentences.append(_ties(measures))
    sentences.append("Best in bold, second best underlined.")
    sentences += [note] if note else []
    for protocol in protocols.values():
        sentences += protocol.differences
    return " ".join(sentences)


def _average(averaging: str, protocol: Protocol, counted: bool) -> str:
    text = AVERAGES[averaging]
    if counted:
        return text.format(instances=protocol.instances, questions=protocol.questions)
    return text.replace("{instances:,} ", "").replace("{questions:,} ", "")


def _ties(measures: Sequence[Measure]) -> str:
    kinds = list(dict.fromkeys(m.rank_type for m in measures if m.rank_type is not None))
    sentences = [TIES[kind] for kind in kinds]
    trec = list(dict.fromkeys(measure.title for measure in measures if measure.is_trec))
    sentences += [f"{', '.join(trec)}: {TIES['ordinal']}"] if trec else []
    return f"Ties: {'; '.join(sentences)}."


def _filter(facts: Mapping[str, Any]) -> str:
    splits = facts.get("filter_splits")
    if splits is None:
        return "filter not recorded"
    if not splits:
        return "unfiltered"
    *most, last = splits
    names = f"{', '.join(most)} and {last}" if most else last
    extra = facts.get("extra_known")
    return f"filtered by {names}{context_note(facts)}" + (
        f" and {extra:,} further triples" if extra else ""
    )


def _candidates(facts: Mapping[str, Any]) -> str:
    if facts.get("sampled"):
        return "among SAMPLED candidates"
    if facts.get("restricted"):
        return f"candidates restricted by {facts['restricted']}"
    what = "relations" if facts.get("sides") == "relation" else "entities"
    n = facts.get(f"n_{what}")
    return f"among all {n:,} {what}" if n else ""
