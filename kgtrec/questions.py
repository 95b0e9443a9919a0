"""Questions of a split: what is asked, the answers, and what else is known.

Everything is computed on sorted int64 keys ``question * n_entities + entity``: a sorted,
duplicate-free key array is a set of (question, entity) pairs, and cuts into CSR form at once.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FilterWarning, UsageError
from kgtrec.triples import as_triples, checked_ids, hash_array

if TYPE_CHECKING:
    from kgtrec.domains import Domain
    from kgtrec.graph import Graph

__all__ = ["Csr", "Questions", "build_questions"]

_SIDES = {"head": (0,), "tail": (1,), "both": (0, 1)}

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Csr:
    """Entity ids per question, ascending and without repeats.

    Attributes
    ----------
    offsets : ndarray of int64, shape (m + 1,)
        Question i owns ``ids[offsets[i]:offsets[i + 1]]``.
    ids : ndarray of int32, shape (offsets[-1],)
    """

    offsets: Int64
    ids: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> npt.NDArray[np.int32]:
        row = range(len(self))[index]  # IndexError and negative indices as everywhere
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Int64:
        """Number of ids of each question, shape (m,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False, repr=False)
class Questions:
    """Aggregated questions of one split. Made by `Graph.questions`.

    Q questions: the head side first, then the tail side, each in order of first appearance in
    the split. An instance is one answer of one question; instances stand in the order of
    ``answers.ids`` ("instance order").

    Attributes
    ----------
    graph : Graph
    split : str
        The evaluated split.
    sides : {"head", "tail", "both"}
    filter_splits : tuple of str
        Splits whose triples count as known.
    n_extra_known : int
        Rows of `extra_known` that were given.
    side : ndarray of int64, shape (Q,)
        0: the head is asked, the tail is given. 1: the tail is asked, the head is given.
    entity, relation : ndarray of int64, shape (Q,)
        The given entity and the relation.
    answers : Csr
        Entities that answer the question in the evaluated split.
    known : Csr
        Entities that answer it in any filter split or in `extra_known` (micro filtering).
    removed : Csr
        Entities that answer it in a filter split other than the evaluated one, or in
        `extra_known`, but not in the evaluated split (macro filtering).
    instance_question, instance_triple : ndarray of int64, shape (n_instances,)
        Question of each instance, and row of its triple in ``graph.splits[split]``.
    triple_rows : ndarray of int64, shape (n_instances,)
        Instance of each (side, triple): all triples in split order with the head asked, then
        all with the tail asked (of a single side, those alone).
    domain : Domain or None
        Candidate lists, if the candidates are restricted.
    outside : ndarray of bool, shape (n_instances,), or None
        Instances whose answer is not in its list; None if there is no such instance.
    """

    graph: Graph
    split: str
    sides: str
    filter_splits: tuple[str, ...]
    n_extra_known: int
    side: Int64
    entity: Int64
    relation: Int64
    answers: Csr
    known: Csr
    removed: Csr
    instance_question: Int64
    instance_triple: Int64
    triple_rows: Int64
    domain: Domain | None = None
    outside: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.side)

    def __repr__(self) -> str:
        filtered = "+".join(self.filter_splits) or "raw"
        return (
            f"Questions({self.split!r}, sides={self.sides!r}, filter={filtered}: "
            f"{len(self)} questions, {self.n_instances} instances, {self.n_entities} entities)"
        )

    @property
    def n_entities(self) -> int:
        """Number of entities of the graph, which is the width of a score row."""
        return self.graph.n_entities

    @property
    def n_instances(self) -> int:
        """Number of (question, answer) pairs."""
        return len(self.answers.ids)

    @cached_property
    def ids(self) -> list[str]:
        """Names of the questions in TREC files: head0, head1, ..., tail0, tail1, ..."""
        heads = int(np.count_nonzero(self.side == 0))
        names = [f"head{number}" for number in range(heads)]
        return names + [f"tail{number}" for number in range(len(self) - heads)]

    @cached_property
    def candidates(self) -> Int64:
        """Micro candidates of each instance, its answer included: int64, shape (n_instances,)."""
        others = self._sizes_without(self.known)[self.instance_question]
        if self.split in self.filter_splits:
            return others + 1  # every answer is among the known, and is kept by id
        answers, known = (_to_keys(csr, self.n_entities) for csr in (self.answers, self.known))
        kept = _contains(known, answers)
        return others + (kept if self.outside is None else kept | self.outside)

    @cached_property
    def macro_candidates(self) -> Int64:
        """Macro candidates of each instance's question: int64, shape (n_instances,)."""
        others = self._sizes_without(self.removed)[self.instance_question]
        return others if self.outside is None else others + self.outside

    def _sizes_without(self, filtered: Csr) -> Int64:
        """Candidates of each question less those of a filter: int64, shape (Q,)."""
        if self.domain is None:
            return self.n_entities - filtered.lengths
        question = np.repeat(np.arange(len(self)), filtered.lengths)
        inside = self.domain.holds(question, filtered.ids, self.n_entities)
        taken = np.bincount(question[inside], minlength=len(self))
        return self.domain.sizes(self.n_entities) - taken

    def restrict(
        self,
        *,
        entities: npt.ArrayLike | None = None,
        heads: Mapping[int, npt.ArrayLike] | None = None,
        tails: Mapping[int, npt.ArrayLike] | None = None,
        candidates: Sequence[npt.ArrayLike] | npt.ArrayLike | None = None,
        columns: str = "entities",
        outside: str = "error",
    ) -> Questions:
        """The same questions with their answers ranked among given candidates only.

        Parameters
        ----------
        entities : sequence of int, optional
            Entities that are candidates of every question.
        heads, tails : mapping of int to sequence of int, optional
            Candidates by relation where the head, and where the tail is asked, such as type
            constraints. Relations without a list keep every entity.
        candidates : array of int, shape (Q, m), or sequence of Q sequences, optional
            Candidates of each question, such as its answer and sampled negatives. Results are
            labelled as sampled.
        columns : {"entities", "candidates"}
            What the columns of score rows stand for: every entity, in id order, or (with
            `candidates`, lists of one length) a question's own candidates as they are listed.
        outside : {"error", "worst"}
            An answer that is not among its candidates: an error, or ranked behind them all.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            Unknown ids, a wrong number of lists, or an answer outside (which is named).
        UsageError
            More or less than one kind of restriction.
        """
        from kgtrec.domains import restrict

        return restrict(self, entities, heads, tails, candidates, columns, outside)

    @property
    def n_columns(self) -> int:
        """Columns of a score row: the entities, or the candidates that it holds alone."""
        return self.n_entities if self.domain is None else self.domain.width

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) of the graph, the questions and both filters."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(f"{self.graph.fingerprint} {self.split} {self.sides}".encode())
        for name in ("side", "entity", "relation"):
            hash_array(hasher, name, getattr(self, name))
        for name in ("answers", "known", "removed"):
            csr: Csr = getattr(self, name)
            hash_array(hasher, f"{name} offsets", csr.offsets)
            hash_array(hasher, f"{name} ids", csr.ids)
        if self.domain is not None:
            hash_array(hasher, "domain of", self.domain.of)
            hash_array(hasher, "domain offsets", self.domain.lists.offsets)
            hash_array(hasher, "domain ids", self.domain.lists.ids)
        return hasher.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Where the questions come from, in plain JSON types, for manifests."""
        graph = self.graph
        return {
            "graph_name": graph.name,
            "split": self.split,
            "sides": self.sides,
            "filter_splits": list(self.filter_splits),
            "extra_known": self.n_extra_known,
            "restricted": None if self.domain is None else self.domain.kind,
            "sampled": self.domain is not None and self.domain.sampled,
            "outside": 0 if self.outside is None else int(self.outside.sum()),
            "n_questions": len(self),
            "n_instances": self.n_instances,
            "n_entities": graph.n_entities,
            "n_relations": graph.n_relations,
            "triples": {name: len(rows) for name, rows in graph.splits.items()},
            "duplicates_dropped": dict(graph.duplicates),
            "graph_hash": graph.fingerprint,
            "questions_hash": self.fingerprint,
        }


def build_questions(
    graph: Graph,
    split: str = "test",
    sides: str = "both",
    filter_splits: Iterable[str] | None = None,
    extra_known: npt.ArrayLike | None = None,
) -> Questions:
    """Questions of a split; see `Graph.questions` for the parameters."""
    if not isinstance(sides, str) or sides not in _SIDES:
        raise UsageError(
            f"sides={sides!r} is unknown; choose one of: {', '.join(map(repr, _SIDES))}"
        )
    if not len(graph.split(split)):
        raise UsageError(
            f"split {split!r} holds no triples, so it asks no questions; choose another"
        )
    filters = _resolve_filter(graph, filter_splits)
    others = [graph.splits[name] for name in filters if name != split]
    if extra_known is not None:
        extra = as_triples("extra_known", extra_known)
        others.append(checked_ids("extra_known", extra, graph.n_entities, graph.n_relations))
    parts = [_ask(graph, split, side, others, split in filters) for side in _SIDES[sides]]
    instances = _instances(parts)
    return Questions(
        graph=graph,
        split=split,
        sides=sides,
        filter_splits=filters,
        n_extra_known=0 if extra_known is None else len(others[-1]),
        side=np.repeat(np.array(_SIDES[sides]), [len(part.entity) for part in parts]),
        entity=np.concatenate([part.entity for part in parts]),
        relation=np.concatenate([part.relation for part in parts]),
        answers=_stack([part.answers for part in parts]),
        known=_stack([part.known for part in parts]),
        removed=_stack([part.removed for part in parts]),
        instance_question=instances["instance_question"],
        instance_triple=instances["instance_triple"],
        triple_rows=instances["triple_rows"],
    )


def _resolve_filter(graph: Graph, asked: Iterable[str] | None) -> tuple[str, ...]:
    if asked is None:
        return tuple(graph.splits)
    if not isinstance(asked, Iterable):
        raise UsageError(
            f"filter_splits={asked!r} names no splits; give a tuple such as ('train',)"
        )
    wanted = {asked} if isinstance(asked, str) else set(asked)
    for name in sorted(wanted, key=str):
        graph.split(name)  # raises, naming the splits that exist
    left_out = [name for name in graph.splits if name not in wanted]
    if wanted and left_out:
        names = ", ".join(map(repr, left_out))
        warnings.warn(
            f"filter leaves out {names}: answers known only from there count as wrong; "
            "leave filter_splits (--filter) out to filter by every split",
            FilterWarning,
            stacklevel=4,  # the caller of Graph.questions
        )
    return tuple(name for name in graph.splits if name in wanted)


class _Part(NamedTuple):
    """Questions of one side; instances and triples numbered within it."""

    entity: Int64
    relation: Int64
    answers: Csr
    known: Csr
    removed: Csr
    instance_triple: Int64


def _ask(
    graph: Graph,
    split: str,
    side: int,
    others: list[npt.NDArray[np.int32]],
    evaluated_is_known: bool,
) -> _Part:
    """Questions of one side, with what the other triples say about them."""
    given, asked = (2, 0) if side == 0 else (0, 2)
    triples, n_entities = graph.splits[split], graph.n_entities
    pairs = triples[:, given].astype(np.int64) * graph.n_relations + triples[:, 1]
    pairs, first, number = np.unique(pairs, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    rank = _inverse(appearance)
    # Rows of a split are distinct, so these keys are too: any sort keeps them apart.
    keys = rank[number] * n_entities + triples[:, asked]
    del number, first
    order = np.argsort(keys)
    answers = keys[order]
    found = [_look_up(pairs, rank, rows, given, graph) for rows in others]
    elsewhere = _distinct(found)
    known = _distinct([elsewhere, answers]) if evaluated_is_known else elsewhere
    removed = elsewhere[~_contains(answers, elsewhere)]
    entity, relation = np.divmod(pairs[appearance], graph.n_relations)
    return _Part(
        entity,
        relation,
        answers=_to_csr(answers, len(pairs), n_entities),
        known=_to_csr(known, len(pairs), n_entities),
        removed=_to_csr(removed, len(pairs), n_entities),
        instance_triple=order.astype(np.int64, copy=False),
    )


def _look_up(
    pairs: Int64, rank: Int64, triples: npt.NDArray[np.int32], given: int, graph: Graph
) -> Int64:
    """Keys (question, entity) of the triples whose pair is asked, unsorted, with repeats."""
    # Few of many million triples touch an asked entity: a table look-up drops the rest before
    # the binary search.
    touched = np.zeros(graph.n_entities, dtype=bool)
    touched[pairs // graph.n_relations] = True
    rows = np.flatnonzero(touched[triples[:, given]])
    wanted = triples[rows, given].astype(np.int64) * graph.n_relations + triples[rows, 1]
    at = np.searchsorted(pairs, wanted)
    at[at == len(pairs)] = 0
    hit = pairs[at] == wanted
    keys: Int64 = rank[at[hit]] * graph.n_entities + triples[rows[hit], 2 - given]
    return keys


def _distinct(parts: list[Int64]) -> Int64:
    """Sorted union of key arrays."""
    keys = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def _contains(ordered: Int64, keys: Int64) -> npt.NDArray[np.bool_]:
    """Whether each key is in a sorted array."""
    if not len(ordered):
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(ordered, keys)
    at[at == len(ordered)] = 0
    found: npt.NDArray[np.bool_] = ordered[at] == keys
    return found


def _inverse(permutation: Int64) -> Int64:
    """Position of each number in a permutation."""
    inverse = np.empty(len(permutation), dtype=np.int64)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


def _to_csr(keys: Int64, n_questions: int, n_entities: int) -> Csr:
    bounds = np.arange(n_questions + 1, dtype=np.int64) * n_entities
    offsets = np.searchsorted(keys, bounds).astype(np.int64, copy=False)
    return Csr(offsets, (keys % n_entities).astype(np.int32))


def _to_keys(csr: Csr, n_entities: int) -> Int64:
    return np.repeat(np.arange(len(csr)), csr.lengths) * n_entities + csr.ids


def _stack(parts: list[Csr]) -> Csr:
    starts = np.cumsum([0] + [len(part.ids) for part in parts])
    tails = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
    zero = np.zeros(1, dtype=np.int64)
    return Csr(np.concatenate([zero, *tails]), np.concatenate([part.ids for part in parts]))


def _instances(parts: list[_Part]) -> dict[str, Int64]:
    """How instances, questions and triples of all sides refer to one another."""
    lengths = np.concatenate([part.answers.lengths for part in parts])
    n_triples = len(parts[0].instance_triple)
    rows = [_inverse(part.instance_triple) + n_triples * i for i, part in enumerate(parts)]
    return {
        "instance_question": np.repeat(np.arange(len(lengths)), lengths),
        "instance_triple": np.concatenate([part.instance_triple for part in parts]),
        "triple_rows": np.concatenate(rows),
    }
