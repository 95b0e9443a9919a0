"""What helps to judge a triple: a page about each entity elsewhere, and facts of the graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.study.judging.templates import Names

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

__all__ = ["Context", "EntityFacts", "check_link"]

LABEL = "{label}"
# The label may stand behind the host's name only: it must not lead to another host.
_TEMPLATE = re.compile(r"https?://[^\s/{}?#@]+[/?#][^\s{}]*\{label\}[^\s{}]*")


def check_link(template: str) -> str:
    """The template of a link, if it is one.

    Raises
    ------
    UsageError
        No http address, or ``{label}`` is missing, stands twice or is part of the host's name.
    """
    if not _TEMPLATE.fullmatch(template):
        raise UsageError(
            f"--link {template!r} is not a template: write an address with {LABEL} once, behind "
            "the name of the host, such as https://www.wikidata.org/wiki/{label}"
        )
    return template


@dataclass(frozen=True, eq=False)
class EntityFacts:
    """Triples of a graph's train split, as sentences about one of their entities.

    Parameters
    ----------
    graph : Graph
    names : Names
        What entities are called.
    most : int
        Facts an entity; of different relations first.
    """

    graph: Graph
    names: Names
    most: int = 5

    def of(self, entity: str, question: tuple[str, str, str]) -> list[list[str]]:
        """Facts about an entity: head, relation, tail, by names; not the triple that is asked."""
        ids = self.graph.entities
        try:
            number = ids.index(entity)
        except ValueError:
            return []
        train = self.graph.splits.get("train", np.empty((0, 3), np.int32))
        rows = train[(train[:, 0] == number) | (train[:, 2] == number)]
        kinds = [(int(r), bool(h == number)) for h, r, _ in rows]
        first = {kind: place for place, kind in reversed(list(enumerate(kinds)))}
        order = sorted(range(len(rows)), key=lambda i: (first[kinds[i]] != i, i))
        facts = []
        for head, relation, tail in rows[order].tolist():
            triple = (str(ids[head]), str(self.graph.relations[relation]), str(ids[tail]))
            if triple != question:
                facts.append([self.names.of(triple[0]), triple[1], self.names.of(triple[2])])
            if len(facts) == self.most:
                break
        return facts


@dataclass(frozen=True, eq=False)
class Context:
    """What the page shows beside a triple.

    Parameters
    ----------
    link : str, optional
        Template of an address, see `check_link`.
    facts : EntityFacts, optional
    """

    link: str | None = None
    facts: EntityFacts | None = None

    def of(self, head: str, relation: str, tail: str) -> dict[str, object]:
        """Links and facts of both entities, by "head" and "tail"; empty without any."""
        shown: dict[str, object] = {}
        for place, entity in (("head", head), ("tail", tail)):
            details: dict[str, object] = {}
            if self.link is not None:
                details["link"] = self._address(entity)
            if self.facts is not None:
                details["facts"] = self.facts.of(entity, (head, relation, tail))
            if details:
                shown[place] = details
        return shown

    def _address(self, entity: str) -> str:
        """The template with the label in it: nothing of it but its slashes means anything there."""
        assert self.link is not None
        before, _, behind = self.link.partition(LABEL)
        label = quote(entity.encode("utf-8", "surrogateescape"), safe="/")
        return before + (label.removeprefix("/") if before.endswith("/") else label) + behind
