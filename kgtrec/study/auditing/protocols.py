"""Which protocol gives published numbers? All that ranks allow are compared with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import UsageError
from kgtrec.measures import RANK_TYPES, Measure
from kgtrec.results.result import Result
from kgtrec.study.auditing.claims import Claim, Numbers, Paths, Rounding, read_claims

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks

AVERAGES = ("micro", "macro", "question", "relation", "macro_relation", "triple")
FILTERS = ("all", "raw", ("train",), "valid", ("train", "test"))
"""The filters that papers use, the default first; "valid" is train and valid."""
_FILTER_WORDS = {
    "raw": "unfiltered", "train": "train alone filtered", "valid": "train and valid filtered",
    "train+test": "train and test filtered",
}  # fmt: skip
CUTOFFS = range(1, 101)
"""Cutoffs to search for a share of hits that no protocol gives."""


class TriedProtocol(NamedTuple):
    """One way to compute numbers from scores; `words` says how it differs from the default."""

    filter: str
    side: str
    rank_type: str
    averaging: str

    def words(self, sides: Sequence[str], filters: Sequence[str]) -> str:
        """What differs from all known answers filtered, both sides, realistic ranks and micro."""
        parts = []
        if self.side != sides[0]:
            parts.append(f"{self.side} only")
        if self.filter != filters[0]:
            parts.append(_FILTER_WORDS.get(self.filter, f"filter {self.filter}"))
        if self.rank_type != "realistic":
            parts.append(f"{self.rank_type} ranks")
        if self.averaging != "micro":
            parts.append(f"{self.averaging} average")
        return ", ".join(parts) or "the default protocol"


class Match(NamedTuple):
    """A protocol and how far its values are from the printed ones.

    - distance: Largest difference, as a share of the printed number; 0 if all agree in print.
    - values: By the printed number's name.
    """

    model: str
    words: str
    distance: float
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class ProtocolSearch(ShownAsTables):
    """Protocols that give a model's printed numbers, or the nearest one.

    - matches: By model, the fewest differences from the default first; the nearest one if none
      agrees.
    - hints: Numbers that no protocol gives and that are Hits at another cutoff.
    - tried: Protocols per model.
    """

    matches: dict[str, tuple[Match, ...]]
    hints: tuple[str, ...]
    tried: int

    def table(self) -> Table:
        """One row per protocol that agrees, or for the nearest one."""
        rows = [
            (model, "agrees" if one.distance == 0 else "nearest", one.words, 100 * one.distance)
            for model, matches in self.matches.items()
            for one in matches
        ]
        return Table.of("model, verdict, protocol, difference %:2", rows)

    def text(self) -> str:
        """For people: the protocols in words."""
        lines = []
        for model, matches in self.matches.items():
            if matches[0].distance == 0:
                lines.append(f"{model}: every number agrees with:")
                lines += [f"  {one.words}" for one in matches]
                continue
            nearest = matches[0]
            lines.append(
                f"{model}: none of {self.tried} protocols gives every number; the nearest is "
                f"{nearest.words}, at most {100 * nearest.distance:.2g} % away"
            )
            values = [f"{name}: {value:.5g} computed" for name, value in nearest.values.items()]
            lines.append(f"  {'; '.join(values)}")
        return "\n".join([*lines, *self.hints])


def protocols_of(
    tables: Paths | Numbers,
    ranks: Mapping[str, Ranks | Mapping[str, Ranks]],
    *,
    percent: bool = False,
    truncated: bool = False,
) -> ProtocolSearch:
    """Find the protocols that give the published numbers of models.

    Parameters
    ----------
    tables : path, sequence of paths, or mapping
        As for `audit`. Sides that the table names are kept; all averages, rank types and other
        sides are tried.
    ranks : mapping of str to Ranks, or to mapping of str to Ranks
        By model. Name several of one model by their filter or candidates, the default first. A
        table with one model takes the only ranks under any name.
    percent, truncated : bool
        As for `audit`.

    Returns
    -------
    ProtocolSearch

    Raises
    ------
    FileError
        As for `audit`.
    UsageError
        No model of the table has ranks, or no number of it can be computed from them.
    """
    claims, _ = read_claims(tables, Rounding(percent, truncated))
    if len(claims) == len(ranks) == 1:
        ranks = {next(iter(claims)): next(iter(ranks.values()))}
    both = [model for model in claims if model in ranks]
    if not both:
        raise UsageError(
            f"no model of the table has ranks: the table has {', '.join(claims)}; "
            f"the ranks are of {', '.join(ranks)}; give them the same names"
        )
    matches: dict[str, tuple[Match, ...]] = {}
    hints: list[str] = []
    tried = 0
    for model in both:
        given = ranks[model]
        by_filter = given if isinstance(given, Mapping) else {"": given}
        results = {name: Result(one) for name, one in by_filter.items()}
        found = [*_matches(model, claims[model], results)]
        if not found:
            raise UsageError(
                f"none of the numbers of {model} can be computed from its ranks; the table needs "
                "measures of ranks, such as mrr or hits@10"
            )
        tried = max(tried, len(found))
        agreeing = [one for one in found if one.distance == 0]
        matches[model] = tuple(agreeing or [min(found, key=lambda one: one.distance)])
        if not agreeing:
            hints += _other_cutoffs(claims[model], next(iter(results.values())))
    return ProtocolSearch(matches, tuple(hints), tried)


def _protocols(results: Mapping[str, Result]) -> Iterator[tuple[TriedProtocol, str]]:
    """Every protocol and its words, the fewest differences from the default first."""
    sides = next(iter(results.values())).sides[::-1]
    filters = tuple(results)
    every = [TriedProtocol(*one) for one in product(filters, sides, RANK_TYPES, AVERAGES)]
    default = TriedProtocol(filters[0], sides[0], "realistic", "micro")
    every.sort(key=lambda one: sum(a != b for a, b in zip(one, default, strict=True)))
    return ((one, one.words(sides, filters)) for one in every)


def _matches(model: str, claims: Sequence[Claim], results: Mapping[str, Result]) -> Iterator[Match]:
    for protocol, words in _protocols(results):
        result, values, distance = results[protocol.filter], {}, 0.0
        for claim in claims:
            value = _value(claim.measure, protocol, result)
            if value is None:
                break
            values[claim.name] = value
            if not claim.contains(value):
                printed = (claim.low + claim.high) / 2
                distance = max(distance, abs(value - printed) / max(abs(printed), 1e-12))
        else:
            if values and not math.isnan(distance):
                yield Match(model, words, distance, values)


def _value(measure: Measure, protocol: TriedProtocol, result: Result) -> float | None:
    """The value of a measure by a protocol; None if the protocol has no such value."""
    own = protocol.side if measure.side == "both" else measure.side
    if measure.is_trec:
        asked: Any = replace(measure, side=own)
        return result.get(asked) if protocol[2:] == ("realistic", "micro") else None
    if protocol.averaging not in measure.row[0].averagings:
        return None
    if protocol.averaging == "triple" and own != "both":
        return None
    value: float | None = result.get(
        Measure(own, protocol.rank_type, protocol.averaging, measure.metric)
    )
    return value


def _other_cutoffs(claims: Sequence[Claim], result: Result) -> Iterator[str]:
    """Hits that equal those at another cutoff, as when any of k predictions may be right."""
    for claim in claims:
        if claim.measure.is_trec or claim.measure.row[0].name != "hits@k":
            continue
        own = claim.measure.row[1]
        for averaging in ("micro", "macro"):
            values = {
                k: result[f"{claim.measure.side}.{averaging}.hits@{k}"] for k in CUTOFFS if k != own
            }
            k = next((k for k, value in values.items() if claim.contains(value)), None)
            if k is not None:
                yield f"{claim.model}: {claim.name} is the {averaging} Hits@{k} of these ranks"
                break


def ranks_by_filter(
    scores: Any, graph: Any, type_constraints: str | None = None, **options: Any
) -> dict[str, Ranks]:
    """Ranks under every filter that papers use, from one pass over the scores.

    With type constraints, those among the candidates of each relation come from a second pass.
    """
    from kgtrec.ranking.rank import rank

    has = [each for each in FILTERS if isinstance(each, str) or set(each) <= set(graph.splits)]
    asked = graph.questions_by_filter(has, **options)
    ranked = {name: ranks for name, (ranks, _) in rank(scores, asked, run_depth=0).items()}
    if type_constraints is not None:
        fewer = asked["all"].restrict(type_constraints=type_constraints, outside="worst")
        ranked["type-constrained candidates"] = rank(scores, fewer, run_depth=0)[0]
    return ranked
