"""Pools: the candidates of systems for the questions of seed triples (Zhou et al. 2022, 3.1).

The pool of depth k contains the k best candidates of each system, for each question of a seed
triple, without known triples and without the seeds. Each triple records its best place in every
system, so that a pool of depth 10 contains all pools of depth 1 to 9.

If there are too many triples to judge, a random draw selects some. Inferred AP (Yilmaz and Aslam
2006) needs a sample of everything that is or may be true. So seeds, and triples that a rule labels,
are drawn like all others. The draw of a triple depends only on its names, the share and the seed. A
deeper pool, or one of more systems, therefore keeps the triples that were drawn, and a larger share
adds to them.

A pool file is a header and one line per pooled triple, with the columns ``head relation tail side
question depth systems rule``. The side is head, tail or both. The question column contains the
names of the seed questions that the triple answers, head before tail, even if it was pooled for
only one of them.
The depth is the smallest at which the triple is pooled. Systems are ``name:place,name:place``. The
rule is the one that labels the triple false without a judge, or nothing. With a sample, a ninth
column has the name of the draw, such as ``sample=0.3,seed=1``, and contains ``in`` or ``out``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np

from kgtrec._internal.arguments import check_seed, require_items, require_type
from kgtrec._internal.arrays import Bools, Int64
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import FileError, InputError, PathName, UsageError, must_be, refuse_if
from kgtrec.graph.triples import pack_triples
from kgtrec.questions.api import Graph
from kgtrec.study.pooling.edited_files import EditedFile, lines_of_triples, write_lines
from kgtrec.study.pooling.lists import RankedLists, check_depth
from kgtrec.study.pooling.seeds import Names, SeedQuestions, questions_of

_BITS = 64
_WRITTEN = re.compile(r"sample=([0-9.e+-]+),seed=([0-9]+)")


@dataclass(frozen=True)
class Draw:
    """An independent random draw of triples, each with probability `share`."""

    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        refuse_if(
            (
                isinstance(self.share, bool) or not 0 < self.share <= 1,
                f"sample {self.share} is not a share to draw; give one above 0, up to 1",
            ),
        )
        check_seed(self.seed)

    def draws(self, triples: Iterable[tuple[str, ...]]) -> Bools:
        """Return True for each triple, as labels, that is drawn; bool (n,)."""
        limit, seed = self.share * 2**_BITS, str(self.seed)
        lines = ("\t".join((seed, *triple)) for triple in triples)
        texts = (line.encode("utf-8", "surrogateescape") for line in lines)
        digests = (hashlib.blake2b(text, digest_size=_BITS // 8).digest() for text in texts)
        return np.array([int.from_bytes(digest, "big") < limit for digest in digests], bool)

    def __str__(self) -> str:
        """The name in pool files: ``sample=0.3,seed=1``."""
        return f"sample={self.share!r},seed={self.seed}"


def read_draw(text: str) -> Draw | None:
    """Parse the name of a draw in pool files; return None for any other text."""
    match = _WRITTEN.fullmatch(text)
    try:
        return Draw(float(match[1]), int(match[2])) if match else None
    except (ValueError, UsageError):
        return None


T = TypeVar("T")
Labelled = dict[str, dict[str, T]]
"""Values by question and by the label of a candidate."""
SIDES = ("head", "tail")


@dataclass(frozen=True, eq=False)
class Pool(ShownAsTables):
    """Pooled triples, each once.

    - depth: Largest place from which candidates were pooled.
    - triples, int64 (n, 3): Sorted by question, then by smallest depth, then by id.
    - best_ranks, int64 (n, n_systems): Best rank of the triple in each system, from 1, over its
      head and its tail question; 0 if it is not within the depth.
    - pooled_for, bool (n, 2): True if the triple was pooled for its head question, and for its
      tail question.
    - questions: Names of the seed questions for its head and for its tail, "" if no seed asks it.
      The triple was pooled for at least one of them, and its label serves both.
    - draw: Draw of the triples to judge; None to judge all. See `with_sample`.
    """

    _shown = ("depth_table", "overlap_table")

    graph: Graph
    systems: tuple[str, ...]
    depth: int
    triples: Int64
    best_ranks: Int64
    pooled_for: Bools
    questions: Sequence[tuple[str, str]]
    draw: Draw | None = None

    def __len__(self) -> int:
        return len(self.triples)

    def _lines(self) -> tuple[str, str]:
        return (
            f"{len(self):,} triples of {len(self.systems):,} systems, depth {self.depth}",
            ", ".join(self.systems),
        )

    @property
    def smallest(self) -> Int64:
        """Smallest depth at which each triple is in the pool, shape (n,)."""
        return np.where(self.best_ranks > 0, self.best_ranks, self.depth + 1).min(axis=1)

    @property
    def sides(self) -> list[str]:
        """The entity of each triple that is the candidate: "head", "tail" or "both"."""
        return ["both" if h and t else "head" if h else "tail" for h, t in self.pooled_for.tolist()]

    def by_candidate(self, values: Sequence[T], names: Names | None = None) -> Labelled[T]:
        """Return the value of each triple by question and by the label of the candidate.

        With `names`, all questions with a name are included, otherwise those of the seeds.
        """
        keys, answers = questions_of(self.graph, self.triples)
        named = self.questions
        if names:
            named = [(names.get(head, ""), names.get(tail, "")) for head, tail in keys.tolist()]
        rows: Labelled[T] = {}
        for pair, entities, value in zip(named, answers.tolist(), values, strict=True):
            for question, entity in zip(pair, entities, strict=True):
                if question:
                    rows.setdefault(question, {})[self.graph.entities[entity]] = value
        return rows

    @property
    def drawn(self) -> Bools:
        """True for each triple in the sample to judge, or for all triples without a draw."""
        if self.draw is None:
            return np.ones(len(self), bool)
        return self.draw.draws(lines_of_triples(self.graph, self.triples))

    def with_sample(self, share: float, seed: int = 0) -> Pool:
        """Return the pool with a random sample of its triples to judge, for inferred AP."""
        return replace(self, draw=Draw(share, seed))

    def without(self, system: str) -> Pool:
        """Return the pool of the other systems."""
        if system not in self.systems or len(self.systems) == 1:
            raise UsageError(
                f"system {system!r} is not in this pool; its systems are {', '.join(self.systems)}"
            )
        index = self.systems.index(system)
        remaining = np.delete(self.best_ranks, index, axis=1)
        systems = tuple(name for name in self.systems if name != system)
        rows = np.flatnonzero(
            (remaining > 0).any(axis=1)
        )  # triples that another system contributed
        return replace(
            self,
            systems=systems,
            best_ranks=remaining[rows],
            triples=self.triples[rows],
            pooled_for=self.pooled_for[rows],
            questions=[self.questions[row] for row in rows.tolist()],
        )

    def depth_table(self, rules: Sequence[str] | None = None) -> Table:
        """Return a table with one row per depth: numbers of triples and of new triples.

        With rules or a sample, it also contains the number of triples to judge.
        """
        fired = mark_ruled_out(self, rules)
        columns = {"pooled": np.ones(len(self), bool)}
        if rules is not None:
            columns["by rule"] = fired
        if self.draw is not None:
            columns["drawn"] = self.drawn
        if len(columns) > 1:
            columns["to judge"] = self.drawn & ~fired
        smallest, depths = self.smallest, self.depth + 1
        new = [np.bincount(smallest[mask], minlength=depths) for mask in columns.values()]
        counts = np.cumsum(new, axis=1)
        rows = [
            (str(depth), total[0], total[0] - before[0], *total[1:])
            for depth, (before, total) in enumerate(pairwise(counts.T.tolist()), start=1)
        ]
        return Table.from_rows(", ".join(["depth, pooled, new", *list(columns)[1:]]), rows)

    def system_table(self, lists: Sequence[RankedLists] = ()) -> Table:
        """Return a table with one row per system.

        It contains the numbers of its triples and of those that no other system contributed, and
        properties of its lists, if these are given.
        """
        contributed = self.best_ranks > 0
        n_pooled = contributed.sum(axis=0)
        n_unique = contributed[contributed.sum(axis=1) == 1].sum(axis=0)
        heads = "system, pooled, alone, alone %:1"
        columns = [self.systems, n_pooled, n_unique, 100 * n_unique / np.maximum(n_pooled, 1)]
        if lists:
            heads += ", seeds found, known out, missing, short"
            seed_columns = [
                (system.seeds_listed, system.known, system.missing, system.shorter_than(self.depth))
                for system in lists
            ]
            columns += zip(*seed_columns, strict=True)
        return Table.from_columns(heads, *columns)

    def overlap_table(self) -> Table:
        """Return a table of the number of triples that two systems share.

        The diagonal has the number of triples of each system.
        """
        heads = ((name, name, 0) for name in self.systems)
        brought = (self.best_ranks > 0).astype(np.int64)
        return Table.from_columns(["system", *heads], self.systems, *brought.T @ brought)


def check_rules(pool: Pool, rules: Sequence[str] | None) -> Sequence[str]:
    """Return the rule of each pooled triple, "" for none; UsageError if their number is wrong."""
    if rules is not None and len(rules) != len(pool):
        raise UsageError(
            f"{len(rules)} rules for {len(pool)} pooled triples; give one rule per triple"
        )
    return [""] * len(pool) if rules is None else rules


def mark_ruled_out(pool: Pool, rules: Sequence[str] | None) -> Bools:
    """Return True for each pooled triple that a rule labels false; bool (n,)."""
    return np.array(check_rules(pool, rules), object).astype(bool)


def make_pool(lists: Sequence[RankedLists], seeds: SeedQuestions, depth: int = 10) -> Pool:
    """Pool the lists of systems to a depth.

    Seeds keep their places in the lists, but are not pooled: if a seed is among the 10 best of a
    system, the system brings 9 triples.

    Parameters
    ----------
    lists : sequence of RankedLists
        One per system, all with the same kind of places.
    seeds : SeedQuestions
    depth : int
        From 1.

    Raises
    ------
    UsageError
        No lists, two systems of one name, places of both kinds, a depth below 1, or a question
        with a comma in its name.
    InputError
        The places of a run are raw, but the run contains no known candidates.
    """
    _check_lists(lists, seeds, depth)
    parts = [_select_pooled(system, depth) for system in lists]
    columns = zip(*parts, strict=True)
    question, entity, rank_in_list = (np.concatenate(column) for column in columns)
    system = np.repeat(np.arange(len(lists)), [len(part[0]) for part in parts])
    questions = seeds.questions
    side, anchor = questions.side[question], questions.entity[question]
    relation = questions.relation[question]
    triples = np.stack(
        [np.where(side == 0, entity, anchor), relation, np.where(side == 0, anchor, entity)], axis=1
    )
    keys = pack_triples(triples.astype(np.int32), questions.n_entities, seeds.graph.n_relations)
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    best_ranks = np.full((len(first), len(lists)), depth + 1, np.int64)
    np.minimum.at(best_ranks, (row, system), rank_in_list)
    numbers = np.full((len(first), 2), -1, np.int64)
    numbers[row, side] = question
    smallest = best_ranks.min(axis=1)
    best_ranks[best_ranks > depth] = 0
    owner = np.where(numbers[:, 0] >= 0, numbers[:, 0], numbers[:, 1])
    triples = triples[first]
    order = np.lexsort((triples[:, 2], triples[:, 0], smallest, owner))
    triples, names = triples[order], dict(zip(seeds.keys.tolist(), seeds.ids, strict=True))
    return Pool(
        graph=seeds.graph,
        systems=tuple(system.name for system in lists),
        depth=depth,
        triples=triples,
        best_ranks=best_ranks[order],
        pooled_for=numbers[order] >= 0,
        questions=[
            (names.get(head, ""), names.get(tail, ""))
            for head, tail in questions_of(seeds.graph, triples)[0].tolist()
        ],
    )


def _check_lists(lists: Sequence[RankedLists], seeds: SeedQuestions, depth: int) -> None:
    """Raise UsageError or InputError if these lists cannot be pooled together."""
    require_items("lists", lists, RankedLists, "RankedLists (study.run_lists or study.score_lists)")
    require_type("seeds", seeds, SeedQuestions, "SeedQuestions (study.seed_questions)")
    names = [system.name for system in lists]
    twice = next((name for name in names if names.count(name) > 1), None)
    comma = next((name for name in seeds.ids if "," in name), None)
    check_depth(depth)
    refuse_if(
        (not lists, "no run is given; give the run of at least one system"),
        (twice is not None, f"two systems are named {twice!r}; give each a different name"),
        (
            comma is not None,
            f"question {comma!r} has a comma in its name, but commas separate names; rename it",
        ),
        (
            len({system.kind for system in lists}) > 1,
            "some places are raw and some filtered; use one kind for all systems",
        ),
    )
    runs = [system for system in lists if not system.from_scores]
    filtered = [system.name for system in runs if system.kind == "raw" and not system.unfiltered]
    if filtered and len(seeds.elsewhere.ids):
        raise InputError(
            f"raw places count known candidates, but the run {filtered[0]} is already filtered; "
            "rank without a filter, or use filtered places"
        )


def _select_pooled(lists: RankedLists, depth: int) -> tuple[Int64, Int64, Int64]:
    """Return question, entity and place of the candidates down to a depth, without seeds."""
    shallow = (lists.ranks <= depth) & ~lists.of_seeds
    return lists.owner[shallow], lists.entities[shallow].astype(np.int64), lists.ranks[shallow]


COLUMNS = ("head", "relation", "tail", "side", "question", "depth", "systems", "rule")
ASKED = {"head": (True, False), "tail": (False, True), "both": (True, True)}
_HINT = "give a file that `kgtrec pool` wrote, with its columns unchanged"
_DRAWN = ("out", "in")


def write_pool(path: PathName, pool: Pool, rules: Sequence[str] | None = None) -> None:
    """Write a pool file, with the rule of every triple if `rules` are given.

    Raises
    ------
    FileError
        The target cannot be written.
    InputError
        A label has a tab or line end in it, or the name of a system a separator.
    UsageError
        There are more or fewer rules than triples.
    """
    require_type("pool", pool, Pool, "a Pool (study.make_pool or study.read_pool)")
    named = check_rules(pool, rules)
    bad = next((name for name in pool.systems if not name or set(name) & set(",\t\r\n")), None)
    if bad is not None:
        raise InputError(f"the system's name {bad!r} cannot be written to a pool file; rename it")
    header = COLUMNS if pool.draw is None else (*COLUMNS, str(pool.draw))
    write_lines(path, chain([header], _format_rows(pool, named)))


def _format_rows(pool: Pool, rules: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """Yield the cells of each line of a pool file below its header."""
    rows = zip(
        lines_of_triples(pool.graph, pool.triples),
        pool.sides,
        (",".join(filter(None, names)) for names in pool.questions),
        pool.smallest.tolist(),
        pool.best_ranks.tolist(),
        rules,
        pool.drawn.tolist(),
        strict=True,
    )
    for triple, side, question, depth, row, rule, drawn in rows:
        rank_per_system = zip(pool.systems, row, strict=True)
        systems = ",".join(f"{name}:{rank}" for name, rank in rank_per_system if rank)
        drawn_field = () if pool.draw is None else (_DRAWN[drawn],)
        yield *triple, side, question, str(depth), systems, rule, *drawn_field


def read_pool(path: PathName, graph: Graph) -> tuple[Pool, list[str]]:
    """Read a pool file; return the pool, and the rule of every triple ("" for none).

    Systems are in byte order of their names. The depth of the pool is the largest place in the
    file.

    Raises
    ------
    FileError
        Missing, empty, another header, malformed lines, labels that the graph lacks, triples that
        are in two lines, or a sample that is not the one of the draw: these lines are listed.
    """
    file = EditedFile(path, _HINT)
    draw = read_draw(file.first[-1])
    header = (*COLUMNS, file.first[-1]) if draw else COLUMNS
    lines = [*file.below(header)]
    ranks_of_lines = [_parse_systems(file, number, cells) for number, cells in lines]
    shown = [tuple(cells[name] for name in COLUMNS[:3]) for _, cells in lines]
    in_sample = draw.draws(shown).tolist() if draw else ()
    for (number, cells), drawn in zip(lines, in_sample, strict=False):
        if cells[header[-1]] != _DRAWN[drawn]:
            said = f"{cells[header[-1]]!r} where the draw {draw} says {_DRAWN[drawn]!r}"
            file.fault(number, said)
    file.refuse_faults()
    if not lines:
        raise FileError(path, found="the file has no pooled triple", hint=_HINT)
    ids = file.triple_ids(graph, lines)
    for (number, _), triple in zip(lines, shown, strict=True):
        file.is_new(number, triple, repr(" ".join(triple)), "keep one of the lines")
    file.refuse_faults()
    systems = sorted({name for rank_of in ranks_of_lines for name in rank_of})
    best_ranks = np.array(
        [[rank_of.get(name, 0) for name in systems] for rank_of in ranks_of_lines], np.int64
    )
    pool = Pool(
        graph=graph,
        systems=tuple(systems),
        depth=int(best_ranks.max()),
        triples=ids,
        best_ranks=best_ranks,
        pooled_for=np.array([ASKED[cells["side"]] for _, cells in lines], bool),
        questions=[_split_names(cells) for _, cells in lines],
        draw=draw,
    )
    return pool, [cells["rule"] for _, cells in lines]


def _split_names(cells: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of the seed questions for the head and for the tail of a line."""
    head, comma, tail = cells["question"].partition(",")
    return (head, tail) if comma or cells["side"] == "head" else ("", head)


def _parse_systems(file: EditedFile, number: int, cells: Mapping[str, str]) -> dict[str, int]:
    """Return the place of a line's triple in each system; note faults of the line."""
    side, question, depth, systems = (cells[name] for name in COLUMNS[3:7])
    if side not in ASKED:
        file.fault(number, f"side {side!r} is unknown; {must_be(side, ASKED)}")
    elif question.count(",") != 1 and ("," in question or side == "both"):
        names = "give one or two names (two for both)"
        file.fault(number, f"questions {question!r} beside side {side!r}: {names}")
    rank_of: dict[str, int] = {}
    for part in systems.split(","):
        name, _, digits = part.rpartition(":")
        if not name or not digits.isascii() or not digits.isdigit() or name in rank_of:
            file.fault(number, f"systems {systems!r}; write name:place,name:place")
            return {}
        rank_of[name] = int(digits)
    smallest = min(rank_of.values())
    if smallest < 1 or depth != str(smallest):
        problem = f"depth {depth!r} with systems {systems!r}: it must be their smallest place"
        file.fault(number, problem)
    return rank_of
