"""The texts of a table of models: its caption, letters, places and headings.

The caption says what was evaluated: graph, split, filter, candidates, averages, ties.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.table import Interval
from kgtrec.measures import Measure
from kgtrec.ranking.provenance import Provenance
from kgtrec.results.comparability import comparable

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

TIES = {
    "optimistic": "ties count for the model (optimistic ranks)",
    "realistic": "a tied answer has the mean rank of its tie (realistic ranks)",
    "pessimistic": "ties count against the model (pessimistic ranks)",
    "expected": "expectation over all orders of ties",
    "ordinal": "tied answers in the order of trec_eval (ordinal ranks)",
}
AVERAGES = {
    "micro": "micro: over {instances:,} answers",
    "macro": "macro: over {questions:,} questions",
    "question": "question: over {questions:,} questions, all answers of each",
    "group": "group: mean over the values of a term, with equal weight for its questions",
    "triple": "triple: over triples, by the mean rank of both sides",
    "relation": "relation: one mean with equal weight for relations",
    "macro_relation": "macro relation: mean over relations of their micro values",
    "stratified": "stratified: by popularity, (beta_e, beta_r)",
}


@dataclass(frozen=True)
class Protocol:
    """How models were evaluated on a graph.

    - filter: In words: "filtered by train, valid and test".
    - candidates: In words: "among all 14,541 entities".
    - sampled: Whether the candidates of every model were.
    - differences: One sentence per reason why models are incomparable.
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
    """How the first of several models was evaluated, and how others differ."""
    (first, ranks), *others = systems.items()
    facts = ranks.provenance
    differences = []
    for name, other in others:
        if reasons := comparable(ranks, other).reasons:
            differences.append(f"NOT COMPARABLE: {first} and {name} ({'; '.join(reasons)}).")
    return Protocol(
        split=facts.split or "",
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


def _filter(facts: Provenance) -> str:
    if facts.filter_splits is None:
        return "" if facts.sides == "all" else "filter not recorded"
    if not facts.filter_splits:
        return "unfiltered"
    *most, last = facts.filter_splits
    names = f"{', '.join(most)} and {last}" if most else last
    names += f" ({facts.context_filter})" if facts.context_filter else ""
    extra = facts.extra_known
    return f"filtered by {names}" + (f" and {extra:,} further triples" if extra else "")


def _candidates(facts: Provenance) -> str:
    if facts.sampled:
        return "among SAMPLED candidates"
    if facts.restricted:
        return f"candidates restricted by {facts.restricted}"
    kinds = {"relation": "relations", "all": "candidates"}
    what = kinds.get(facts.sides or "", "entities")
    n = facts.n_relations if facts.sides == "relation" else facts.n_entities
    return f"among all {n:,} {what}" if n else ""


def spans(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Equal neighbours merged, with their number."""
    spans: list[tuple[str, int]] = []
    for text in texts:
        if spans and spans[-1][0] == text:
            spans[-1] = (text, spans[-1][1] + 1)
        else:
            spans.append((text, 1))
    return spans


def place_marks(values: Sequence[float], digits: int, better: bool | None) -> list[int]:
    """1 for the best, 2 for the second best, 0 for others.

    Values with the same printed text share a place; if two are best, there is no second. Nothing is
    marked if there are fewer than two different values, or one is an interval.
    """
    shown = [None if math.isnan(v) else float(f"{v:.{digits}f}") for v in map(float, values)]
    distinct = sorted({v for v in shown if v is not None}, reverse=bool(better))
    open_ended = any(isinstance(v, Interval) for v in values)
    if open_ended or better is None or len(distinct) < 2:
        return [0] * len(shown)
    second = distinct[1] if shown.count(distinct[0]) == 1 else None
    return [1 if v == distinct[0] else 2 if v is not None and v == second else 0 for v in shown]


def arrow(better: bool | None, up: str, down: str) -> str:
    """Which direction is better, as one of two signs."""
    return "" if better is None else up if better else down


def kind_of(measure: Measure) -> str:
    """Side, average and, unless realistic, rank type: "tail, micro"."""
    side = {"both": "both sides"}.get(measure.side, measure.side)
    ranks = [measure.rank_type] if measure.rank_type not in (None, "realistic") else []
    return ", ".join([side, measure.averaging.replace("_", " "), *ranks])
