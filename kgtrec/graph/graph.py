"""Graph: the splits of a knowledge graph as sets of integer triples, with their labels."""

from __future__ import annotations

import hashlib
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.graph.triples import as_triples, checked_ids, drop_duplicates, hash_array

if TYPE_CHECKING:
    from kgtrec.questions.questions import Questions

__all__ = ["Graph", "read_graph"]

_MAX_ID = (1 << 31) - 1  # ids are int32 wherever there is one per triple or candidate


def read_graph(folder: str | PathLike[str], *, progress: bool | None = None) -> Graph:
    """Read a graph from a folder of tab-separated files, or in OpenKE's format.

    The folder holds at least one of ``train``, ``valid`` (or ``dev``) and ``test``, ending in
    ``.txt``, ``.tsv`` or nothing, optionally packed (``.gz``, ``.zst``). Each line is
    ``head<TAB>relation<TAB>tail``. Labels are bytes taken as they are: no quoting, no escapes, no
    stripping, any encoding. LF and CRLF line ends, a missing last line end, empty lines at the
    end and a byte order mark at the start are accepted.

    Where every split begins with a line that holds a number alone, or none is there but
    ``train2id.txt``, ``valid2id.txt`` or ``test2id.txt`` are, it is OpenKE's format: lines are head
    tail relation, as numbers, and ``entity2id.txt`` and ``relation2id.txt`` hold their labels.

    Parameters
    ----------
    folder : str or path-like
        The folder.
    progress : bool, optional
        Draw a progress bar on stderr. Default: only if stderr is a terminal.

    Returns
    -------
    Graph
        Ids are positions in the byte order of the labels over all splits; from OpenKE's format they
        are OpenKE's numbers, as its models have them.

    Raises
    ------
    FileError
        If a file is missing, unreadable, empty, or has a bad line (the first one is named).
    """
    from kgtrec.graph.openke import is_numbered, load_openke
    from kgtrec.graph.tsv import find_split_files, load_triples

    files = find_split_files(folder)
    if is_numbered(files):
        arrays, labels = load_openke(files)
        graph = Graph.from_arrays(
            arrays.get("train"), arrays.get("valid"), arrays.get("test"),
            entities=labels["entities"], relations=labels["relations"],
        )  # fmt: skip
    else:
        triples, entities, relations = load_triples(
            files, sys.stderr.isatty() if progress is None else progress
        )
        graph = Graph._build(triples, Labels.from_arrow(entities), Labels.from_arrow(relations))
    graph.name = Path(folder).resolve().name
    return graph


class Graph:
    """Splits of a knowledge graph. Make one with `read_graph` or `Graph.from_arrays`.

    Attributes
    ----------
    splits : dict of ndarray of int32, shape (n, 3)
        Split name to distinct triples (head, relation, tail), in order of first appearance.
        Read-only arrays, in the order train, valid, test.
    duplicates : dict of int
        Split name to the number of repeated triples that were dropped.
    entities, relations : Labels
        Labels in id order.
    name : str or None
        Name of the folder that it was read from.
    """

    splits: dict[str, npt.NDArray[np.int32]]
    duplicates: dict[str, int]
    entities: Labels
    relations: Labels

    def __init__(
        self,
        splits: dict[str, npt.NDArray[np.int32]],
        duplicates: dict[str, int],
        entities: Labels,
        relations: Labels,
    ) -> None:
        self.splits = splits
        self.duplicates = duplicates
        self.entities = entities
        self.relations = relations
        self.name: str | None = None

    @classmethod
    def _build(
        cls, triples: Mapping[str, npt.NDArray[np.int32]], entities: Labels, relations: Labels
    ) -> Graph:
        splits, duplicates = {}, {}
        for name, rows in triples.items():
            distinct = drop_duplicates(rows, len(entities), len(relations))
            distinct.flags.writeable = False  # the fingerprint and all questions rest on them
            splits[name] = distinct
            duplicates[name] = len(rows) - len(distinct)
        return cls(splits, duplicates, entities, relations)

    @classmethod
    def from_arrays(
        cls,
        train: npt.ArrayLike | None = None,
        valid: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        n_entities: int | None = None,
        n_relations: int | None = None,
        entities: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
    ) -> Graph:
        """Graph from integer triples.

        Parameters
        ----------
        train, valid, test : array-like of int, shape (n, 3), optional
            Rows head, relation, tail; ids count from 0. At least one is needed. The arrays are
            copied, never changed.
        n_entities, n_relations : int, optional
            Default: the number of labels, or without labels the largest id plus one.
        entities, relations : sequence of str, optional
            Labels in id order. Default: the ids in decimal.

        Raises
        ------
        InputError
            On anything but integers of shape (n, 3), or an id out of range: split, row, column
            and value are named.
        UsageError
            If no split is given, or a size contradicts its labels.
        """
        given = {"train": train, "valid": valid, "test": test}
        arrays = {name: as_triples(name, a) for name, a in given.items() if a is not None}
        if not arrays:
            raise UsageError("from_arrays got no triples; give at least one of train, valid, test")
        entity_labels = _resolve_labels("entities", n_entities, entities, arrays.values(), (0, 2))
        relation_labels = _resolve_labels(
            "relations", n_relations, relations, arrays.values(), (1,)
        )
        sizes = len(entity_labels), len(relation_labels)
        checked = {name: checked_ids(name, array, *sizes) for name, array in arrays.items()}
        return cls._build(checked, entity_labels, relation_labels)

    @property
    def n_entities(self) -> int:
        """Number of entities."""
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        """Number of relations."""
        return len(self.relations)

    def split(self, name: str) -> npt.NDArray[np.int32]:
        """Distinct triples of one split, shape (n, 3); UsageError if the graph lacks it."""
        if not isinstance(name, str) or name not in self.splits:
            have = ", ".join(map(repr, self.splits))
            which = "this graph" if self.name is None else f"graph {self.name!r}"
            raise UsageError(f"{which} has no split {name!r}; choose one of: {have}")
        return self.splits[name]

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) over the triples of all splits, in order, and all labels."""
        hasher = hashlib.blake2b(digest_size=16)
        for name, rows in self.splits.items():
            hash_array(hasher, name, rows)
        hasher.update(self.entities.digest())
        hasher.update(self.relations.digest())
        return hasher.hexdigest()

    def entity_counts(self) -> npt.NDArray[np.int64]:
        """Triples of all splits in which each entity stands, as head or tail.

        A triple from an entity to itself counts once.

        Returns
        -------
        ndarray of int64, shape (n_entities,)
        """
        return self._entity_counts

    @cached_property
    def _entity_counts(self) -> npt.NDArray[np.int64]:
        counts = np.zeros(self.n_entities, dtype=np.int64)
        for rows in self.splits.values():
            heads, tails = rows[:, 0], rows[:, 2]
            for ids, sign in ((heads, 1), (tails, 1), (heads[heads == tails], -1)):
                counts += sign * np.bincount(ids, minlength=self.n_entities)
        counts.flags.writeable = False  # shared by all who ask
        return counts

    def relation_counts(self, split: str) -> npt.NDArray[np.int64]:
        """Triples of one split with each relation: int64, shape (n_relations,)."""
        return np.bincount(self.split(split)[:, 1], minlength=self.n_relations).astype(np.int64)

    def questions(
        self,
        split: str = "test",
        sides: str = "both",
        filter_splits: Iterable[str] | None = None,
        extra_known: npt.ArrayLike | None = None,
        *,
        filter: str | Iterable[str] | None = None,
        known: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        unknown: str = "error",
        entities: npt.ArrayLike | None = None,
        relations: npt.ArrayLike | None = None,
    ) -> Questions:
        """Questions that the triples of a split ask, with their answers and known entities.

        Parameters
        ----------
        split : str
            The evaluated split: "train", "valid" or "test".
        sides : {"both", "head", "tail"}
            Which entity is asked for.
        filter_splits : iterable of str, optional
            Splits whose triples count as known, one by one: the long form of `filter`, which
            knows no protocols (here "valid" is that split alone). An empty tuple gives raw
            (unfiltered) ranking.
        extra_known : array-like of int, shape (n, 3), optional
            More triples that count as known.
        filter : {"all", "test", "valid", "raw"} or iterable of str, optional
            Which splits' triples count as known, by protocol: "all", the default, is every split;
            "test" is train, valid and test, as when a model is tested; "valid" is train and valid,
            as when a model is chosen on its validation scores; "raw" (or "none") is unfiltered.
            An iterable names splits.
        known : path or sequence of paths, optional
            Files with more triples that count as known, with lines as in a split.
        unknown : {"error", "skip"}
            A triple of `known` with a label that the graph lacks: an error, or passed over and
            counted.
        entities, relations : sequence of int, optional
            Evaluate only triples with head and tail among these entities, and a relation among
            these; the entities are also the candidates (PyKEEN's restriction).

        Raises
        ------
        UsageError
            On a split, filter or side that does not exist, or a split without triples.
        InputError
            If `extra_known`, `known`, `entities` or `relations` are malformed, or keep no triple.

        Warns
        -----
        FilterWarning
            If a split is left out of a filter that is not empty.
        """
        from kgtrec.questions.filters import Filter, build_questions

        how = Filter(filter, filter_splits, extra_known, known, unknown)
        return build_questions(self, split, sides, how, entities, relations)

    def summary(self) -> str:
        """A few lines for people: sizes, and duplicates dropped."""
        lines = [f"{self.n_entities:,} entities, {self.n_relations:,} relations"]
        for name, rows in self.splits.items():
            dropped = self.duplicates[name]
            note = f" ({dropped:,} duplicates dropped)" if dropped else ""
            lines.append(f"{name:5} {len(rows):>13,} triples{note}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={len(rows)}" for name, rows in self.splits.items())
        return f"Graph({sizes}, n_entities={self.n_entities}, n_relations={self.n_relations})"


def _resolve_labels(
    name: str,
    size: int | None,
    labels: Sequence[str] | None,
    arrays: Iterable[npt.NDArray[Any]],
    columns: tuple[int, ...],
) -> Labels:
    """Labels of all ids: those given, or decimal ones up to the given or the largest id."""
    if size is not None:
        try:
            size = operator.index(size)
        except TypeError:
            raise UsageError(
                f"n_{name}={size!r} is not an integer; give the number of {name}"
            ) from None
    if labels is not None:
        named = Labels.from_strings(labels)
        if size is not None and size != len(named):
            raise UsageError(
                f"n_{name}={size}, but {name}= holds {len(named)} labels; leave n_{name} out"
            )
        size = len(named)
    if size is None:
        size = 1 + max((int(a[:, c].max()) for a in arrays for c in columns if len(a)), default=-1)
        if size > _MAX_ID:
            raise InputError(f"the largest id of {name} is {size - 1}; ids must be below {_MAX_ID}")
        size = max(size, 1)
    if not 1 <= size <= _MAX_ID:
        raise UsageError(f"n_{name}={size}; it must be between 1 and {_MAX_ID}")
    return named if labels is not None else Labels.decimal(size)
