"""Pools: what systems put forward for the questions of seed triples (Zhou et al. 2022, 3.1).

The pool of depth k holds the k best candidates of each system, for each question that a seed
triple asks, without what is known and without the seeds. Each triple remembers the best place at
which every system has it, so that one pool of depth 10 is also all pools of depth 1 to 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import contains, to_keys
from kgtrec._internal.notebook import ShownAsTables
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import pack_triples
from kgtrec.questions.api import Graph
from kgtrec.study.pooling.judged_sample import Draw
from kgtrec.study.pooling.ranked_lists import RankedLists
from kgtrec.study.pooling.seed_questions import SeedQuestions, question_key
from kgtrec.study.pooling.triple_files import lines_of_triples

__all__ = ["Pool", "make_pool"]

Ints = npt.NDArray[np.int64]
SIDES = ("head", "tail")


@dataclass(frozen=True, eq=False)
class Pool(ShownAsTables):
    """Pooled triples, each once.

    Attributes
    ----------
    graph : Graph
    systems : tuple of str
    depth : int
        Largest place at which a candidate was taken.
    triples : int64 array (n, 3)
        In the order of the questions; those of one question by smallest depth, then by id.
    places : int64 array (n, n_systems)
        Best place at which each system has the triple, over its head and its tail question; 0 if
        it does not have it within the depth.
    asked : bool array (n, 2)
        Whether it was put forward for a head question, and whether for a tail question.
    questions : sequence of str, length n
        Names of the seed questions that it answers, head before tail, joined with a comma: those
        for which it was put forward, and its other question if a seed asks that one too. A label
        serves both.
    draw : Draw, optional
        Which triples are to be judged, if not all of them; see `sampled`.
    """

    _shown = ("depth_table", "overlap_table")

    graph: Graph
    systems: tuple[str, ...]
    depth: int
    triples: Ints
    places: Ints
    asked: npt.NDArray[np.bool_]
    questions: Sequence[str]
    draw: Draw | None = None

    def __len__(self) -> int:
        return len(self.triples)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} triples of {len(self.systems):,} systems, depth {self.depth}",
            ", ".join(self.systems),
        )

    @property
    def smallest(self) -> Ints:
        """Smallest depth at which each triple is in the pool, shape (n,)."""
        return np.where(self.places > 0, self.places, self.depth + 1).min(axis=1)

    @property
    def sides(self) -> list[str]:
        """Which entity of each triple was put forward: "head", "tail" or "both"."""
        return ["both" if h and t else "head" if h else "tail" for h, t in self.asked.tolist()]

    def by_question(self) -> Iterator[tuple[int, str, int]]:
        """Row of a triple, name of a seed question that it answers, and the entity that answers."""
        rows = zip(self.triples.tolist(), self.asked.tolist(), self.questions, strict=True)
        for row, (triple, ends, joined) in enumerate(rows):
            names = joined.split(",")
            sides = (0, 1) if len(names) == 2 else (ends.index(True),)
            for side, name in zip(sides, names, strict=True):
                yield row, name, triple[2 if side else 0]

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which triples are in the sample that is to be judged; all, if none was drawn."""
        if self.draw is None:
            return np.ones(len(self), bool)
        return self.draw.takes(lines_of_triples(self.graph, self.triples))

    def sampled(self, share: float, seed: int = 0) -> Pool:
        """The pool with a random sample of its triples to be judged, as inferred AP wants it.

        Parameters
        ----------
        share : float
            Chance of every triple to be drawn, above 0 and at most 1.
        seed : int
            Of the draw. With the same seed, a larger share, a larger depth and more systems keep
            what was drawn.

        Raises
        ------
        UsageError
            A share or a seed out of range.
        """
        return replace(self, draw=Draw(share, seed))

    def at(self, depth: int) -> Pool:
        """The pool of a smaller depth.

        Raises
        ------
        UsageError
            The depth is not from 1 to that of this pool.
        """
        self._check(depth)
        places = np.where(self.places <= depth, self.places, 0)
        return self._chosen(replace(self, depth=depth, places=places))

    def without(self, system: str) -> Pool:
        """The pool that the other systems make.

        Raises
        ------
        UsageError
            The pool has no such system, or no other.
        """
        if system not in self.systems or len(self.systems) == 1:
            raise UsageError(
                f"system {system!r} cannot be left out; the pool is of {', '.join(self.systems)}"
            )
        at = self.systems.index(system)
        places = np.delete(self.places, at, axis=1)
        systems = tuple(name for name in self.systems if name != system)
        return self._chosen(replace(self, systems=systems, places=places))

    def _chosen(self, pool: Pool) -> Pool:
        """The triples that some system has, with the places of another pool."""
        present = (pool.places > 0).any(axis=1)
        names = [self.questions[row] for row in np.flatnonzero(present).tolist()]
        return replace(
            pool,
            triples=pool.triples[present],
            places=pool.places[present],
            asked=pool.asked[present],
            questions=names,
        )

    def _check(self, depth: int) -> None:
        if isinstance(depth, bool) or not 1 <= depth <= self.depth:
            raise UsageError(f"depth {depth} is out of range: this pool has 1 to {self.depth}")

    def contributed(self, depth: int | None = None) -> Ints:
        """How many triples each system has put into the pool of a depth, shape (n_systems,)."""
        return self._members(depth).sum(axis=0)

    def unique(self, depth: int | None = None) -> Ints:
        """How many triples no other system has put into the pool of a depth."""
        members = self._members(depth)
        return members[members.sum(axis=1) == 1].sum(axis=0)

    def overlap(self, depth: int | None = None) -> Ints:
        """Triples that both of two systems have put in, shape (n_systems, n_systems)."""
        members = self._members(depth).astype(np.int64)
        return members.T @ members

    def _members(self, depth: int | None) -> npt.NDArray[np.bool_]:
        depth = self.depth if depth is None else depth
        self._check(depth)
        return (self.places > 0) & (self.places <= depth)

    def depth_table(self, rules: Sequence[str] | None = None) -> Table:
        """A row per depth: triples and new ones; with rules and a sample, what is left to judge."""
        every = np.ones(len(self), bool)
        fired = np.array([bool(rule) for rule in rules or [""] * len(self)], bool)
        columns = {"pooled": every}
        if rules is not None:
            columns["by rule"] = fired
        if self.draw is not None:
            columns["drawn"] = self.drawn
        if len(columns) > 1:
            columns["to judge"] = self.drawn & ~fired
        counts = np.array([self._by_depth(mask) for mask in columns.values()])
        rows: list[tuple[Cell, ...]] = [
            (str(depth), total[0], total[0] - before[0], *total[1:])
            for depth, (before, total) in enumerate(pairwise(counts.T.tolist()), start=1)
        ]
        heads = ("depth", "pooled", "new", *list(columns)[1:])
        keys = tuple(head.replace(" ", "_") for head in heads)
        return Table(heads, keys, (0,) * len(heads), rows)

    def _by_depth(self, mask: npt.NDArray[np.bool_]) -> Ints:
        """How many of some triples are in the pool of depth 0, 1, ..."""
        return np.cumsum(np.bincount(self.smallest[mask], minlength=self.depth + 1))

    def system_table(self, lists: Sequence[RankedLists] = ()) -> Table:
        """A row per system: what it put in, alone and with others; and how its lists were."""
        own, alone = self.contributed().tolist(), self.unique().tolist()
        rows: list[tuple[Cell, ...]] = []
        for i, name in enumerate(self.systems):
            share = 100 * alone[i] / own[i] if own[i] else 0.0
            row: tuple[Cell, ...] = (name, own[i], alone[i], share)
            if lists:
                one = lists[i]
                row += (one.found, one.known, one.missing, one.shorter_than(self.depth))
            rows.append(row)
        heads: tuple[str, ...] = ("system", "pooled", "alone", "alone %")
        if lists:
            heads += ("seeds found", "known out", "missing", "short")
        keys = tuple(head.replace("%", "percent").replace(" ", "_") for head in heads)
        return Table(heads, keys, (0, 0, 0, 1, 0, 0, 0, 0)[: len(heads)], rows)

    def overlap_table(self) -> Table:
        """Triples that both of two systems put in; on the diagonal, those of one."""
        rows: list[tuple[Cell, ...]] = [
            (name, *line) for name, line in zip(self.systems, self.overlap().tolist(), strict=True)
        ]
        heads = ("system", *self.systems)
        return Table(heads, heads, (0,) * len(heads), rows)


def make_pool(lists: Sequence[RankedLists], seeds: SeedQuestions, depth: int = 10) -> Pool:
    """Pool the lists of systems to a depth.

    Seeds keep their places in the lists and are left out of the pool: the 10 best of a system that
    has the seed among them bring 9 triples.

    Parameters
    ----------
    lists : sequence of RankedLists
        One for each system, all with places of one kind.
    seeds : SeedQuestions
    depth : int
        From 1.

    Raises
    ------
    UsageError
        No lists, two systems of one name, places of both kinds, a depth below 1, or a question
        with a comma in its name.
    InputError
        The places of a run are raw, but what is known had been taken out of it before.
    """
    _check_lists(lists, seeds, depth)
    parts = [_within(one, seeds, depth) for one in lists]
    question, entity, place = (np.concatenate(column) for column in zip(*parts, strict=True))
    system = np.repeat(np.arange(len(lists)), [len(part[0]) for part in parts])
    questions = seeds.questions
    side, anchor = questions.side[question], questions.entity[question]
    relation = questions.relation[question]
    triples = np.stack(
        [np.where(side == 0, entity, anchor), relation, np.where(side == 0, anchor, entity)], axis=1
    )
    keys = pack_triples(triples.astype(np.int32), questions.n_entities, seeds.graph.n_relations)
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    places = np.full((len(first), len(lists)), depth + 1, np.int64)
    np.minimum.at(places, (row, system), place)
    numbers = np.full((len(first), 2), -1, np.int64)
    numbers[row, side] = question
    smallest = places.min(axis=1)
    places[places > depth] = 0
    owner = np.where(numbers[:, 0] >= 0, numbers[:, 0], numbers[:, 1])
    triples = triples[first]
    order = np.lexsort((triples[:, 2], triples[:, 0], smallest, owner))
    triples = triples[order]
    return Pool(
        graph=seeds.graph,
        systems=tuple(one.name for one in lists),
        depth=depth,
        triples=triples,
        places=places[order],
        asked=numbers[order] >= 0,
        questions=_seed_questions_of(triples, seeds),
    )


def _seed_questions_of(triples: Ints, seeds: SeedQuestions) -> list[str]:
    """Names of the seed questions that each triple answers, whichever of them brought it."""
    names = dict(zip(seeds.keys, seeds.ids, strict=True))
    return [
        ",".join(names[key] for side in (0, 1) if (key := question_key(triple, side)) in names)
        for triple in triples.tolist()
    ]


def _check_lists(lists: Sequence[RankedLists], seeds: SeedQuestions, depth: int) -> None:
    if not lists:
        raise UsageError("there is nothing to pool; give the run of at least one system")
    names = [one.name for one in lists]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two systems are named {twice!r}; give each a name of its own")
    if isinstance(depth, bool) or depth < 1:
        raise UsageError(f"depth {depth} is below 1; 10 is the published one")
    comma = next((name for name in seeds.ids if "," in name), None)
    if comma is not None:
        raise UsageError(f"question {comma!r} has a comma in its name, which separates names here")
    kinds = {one.kind for one in lists}
    if len(kinds) > 1:
        raise UsageError("some places are raw and some filtered; take one kind for all systems")
    runs = [one for one in lists if not one.from_scores]
    filtered = [one.name for one in runs if one.kind == "raw" and not one.unfiltered]
    if filtered and len(seeds.elsewhere.ids):
        raise InputError(
            f"raw places count known candidates, but {filtered[0]} holds none that another split "
            "knows: that run was filtered when it was made; rank with --filter raw, or take "
            "filtered places"
        )


def _within(one: RankedLists, seeds: SeedQuestions, depth: int) -> tuple[Ints, Ints, Ints]:
    """Question, entity and place of the candidates down to a depth that are no seeds."""
    width = seeds.questions.n_entities
    owner, entities = one.owner, one.entities.astype(np.int64)
    seed = contains(to_keys(seeds.questions.answers, width), owner * width + entities)
    shallow = (one.places <= depth) & ~seed
    return owner[shallow], entities[shallow], one.places[shallow]
