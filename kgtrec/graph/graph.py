"""Graph: the splits of a knowledge graph as sets of integer triples, with their labels."""

from __future__ import annotations

import hashlib
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.locations import fetched, is_location
from kgtrec._internal.notebook import lines_as_html
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.graph.triples import (
    as_triples,
    checked_ids,
    count_entities,
    drop_duplicates,
    hash_array,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["GraphData"]

_MAX_ID = (1 << 31) - 1  # ids are int32 wherever there is one per triple or candidate


class GraphData:
    """Splits of a knowledge graph as data.

    `kgtrec.Graph`, which adds what is asked of them, says what the attributes are.
    """

    splits: dict[str, npt.NDArray[np.int32]]
    duplicates: dict[str, int]
    entities: Labels
    relations: Labels
    facts: dict[str, npt.NDArray[np.int32]]
    contexts: Labels | None

    def __init__(
        self,
        splits: dict[str, npt.NDArray[np.int32]],
        duplicates: dict[str, int],
        entities: Labels,
        relations: Labels,
        contexts: Labels | None = None,
    ) -> None:
        self.facts, self.contexts = splits, contexts
        self.splits = (
            {name: rows[:, :3] for name, rows in splits.items()} if contexts is not None else splits
        )
        self.duplicates = duplicates
        self.entities = entities
        self.relations = relations
        self.name: str | None = None

    @classmethod
    def _build(
        cls,
        triples: Mapping[str, npt.NDArray[np.int32]],
        entities: Labels,
        relations: Labels,
        contexts: Labels | None = None,
    ) -> Self:
        """From triples that the graph takes over."""
        splits, duplicates = {}, {}
        for name, rows in triples.items():
            n_rows = len(rows)
            distinct = drop_duplicates(rows, in_place=True)
            distinct.flags.writeable = False  # the fingerprint and all questions rest on them
            splits[name] = distinct
            duplicates[name] = n_rows - len(distinct)
        return cls(splits, duplicates, entities, relations, contexts)

    @classmethod
    def from_arrays(
        cls,
        train: npt.ArrayLike | None = None,
        valid: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        n_entities: int | None = None,
        n_relations: int | None = None,
        entities: Sequence[str] | Mapping[str, int] | None = None,
        relations: Sequence[str] | Mapping[str, int] | None = None,
        times: Sequence[str] | Mapping[str, int] | None = None,
    ) -> Self:
        """Graph from integer triples, or from facts with a fourth column: the time of each.

        Parameters
        ----------
        train, valid, test : array-like of int, shape (n, 3) or (n, 4), optional
            Rows head, relation, tail; with a fourth column in all of them, the time (or another
            context, such as a source) of each fact, as a number; ids count from 0. At least one is
            needed. The arrays are copied, never changed.
        n_entities, n_relations : int, optional
            Default: the number of labels, or without labels the largest id plus one.
        entities, relations : sequence of str, or mapping of str to int, optional
            Labels in id order, or the id of each label: 0, 1, ..., each once. Default: the ids in
            decimal.
        times : sequence of str, or mapping of str to int, optional
            Labels of the fourth column, in the order of time.

        Raises
        ------
        InputError
            On anything but integers of shape (n, 3), or of (n, 4) in every split, or an id out of
            range: split, row, column and value are named.
        UsageError
            If no split is given, a size contradicts its labels, labels have no order, or ids of
            labels are not 0, 1, ...
        """
        splits = {"train": train, "valid": valid, "test": test}
        given = {name: array for name, array in splits.items() if array is not None}
        if not given:
            raise UsageError("from_arrays got no triples; give at least one of train, valid, test")
        arrays = _of_one_width({n: as_triples(n, a, (3, 4)) for n, a in given.items()})
        if times is not None and not _is_timed(arrays):
            raise InputError("times= are labels of a fourth column, which no split has")
        entity_labels = _resolve_labels("entities", n_entities, entities, arrays.values(), (0, 2))
        relation_labels = _resolve_labels(
            "relations", n_relations, relations, arrays.values(), (1,)
        )
        time_labels = None
        if _is_timed(arrays):
            time_labels = _resolve_labels("times", None, times, arrays.values(), (3,))
        sizes = len(entity_labels), len(relation_labels), len(time_labels or ())
        checked = {name: checked_ids(name, array, *sizes) for name, array in arrays.items()}
        return cls._build(checked, entity_labels, relation_labels, time_labels)

    @classmethod
    def read(
        cls,
        folder: str | PathLike[str],
        *,
        format: str | None = None,
        columns: str | None = None,
        progress: bool | None = None,
    ) -> Self:
        """From a folder of files; see `kgtrec.read_graph`."""
        from kgtrec.graph.formats import GRAPHS, graph_place, split_format

        declared, location = split_format(fspath(folder))
        if is_location(location):
            with fetched(location, folders=True) as copy:
                return cls.read(f"{declared}{copy}", format=format, columns=columns,
                                progress=progress)  # fmt: skip
        place = graph_place(folder, format, columns)
        graph = None
        if place.format == "tsv" and place.columns in (None, "hrt"):
            graph = cls._read_labels(place.folder, progress, place.is_declared)
        if graph is None:
            name = "openke" if place.format == "tsv" and not place.columns else place.format
            tables = GRAPHS.named(name).load()(place.folder, place.columns)
            train, valid, test = (tables.splits.get(name) for name in ("train", "valid", "test"))
            graph = cls.from_arrays(
                train, valid, test,
                tables.n_entities, tables.n_relations, tables.entities, tables.relations,
                tables.times,
            )  # fmt: skip
        graph.name = place.folder.resolve().name
        return graph

    @classmethod
    def _read_labels(cls, folder: Path, progress: bool | None, is_declared: bool) -> Self | None:
        """From tab-separated labels; None if the files turn out to be OpenKE's."""
        from kgtrec.graph.openke import is_numbered
        from kgtrec.graph.tsv import find_split_files
        from kgtrec.graph.tsv_triples import load_triples

        files = find_split_files(folder)
        if not is_declared and is_numbered(files):
            return None
        triples, entities, relations = load_triples(
            files, sys.stderr.isatty() if progress is None else progress
        )
        return cls._build(
            triples,
            Labels.from_arrow(entities, ascending=True),
            Labels.from_arrow(relations, ascending=True),
        )

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
        for name, rows in self.facts.items():
            hash_array(hasher, name, rows)
        for labels in (self.entities, self.relations, self.contexts):
            if labels is not None:
                hasher.update(labels.digest())
        return hasher.hexdigest()

    def entity_counts(self) -> npt.NDArray[np.int64]:
        """Popularity: how often each entity stands in the triples of all splits, as head or tail.

        A triple from an entity to itself counts twice.

        Returns
        -------
        ndarray of int64, shape (n_entities,)
        """
        return self._entity_counts

    @cached_property
    def _entity_counts(self) -> npt.NDArray[np.int64]:
        counts = np.zeros(self.n_entities, dtype=np.int64)
        for rows in self.splits.values():
            counts += count_entities(rows, self.n_entities)
        counts.flags.writeable = False  # shared by all who ask
        return counts

    def relation_counts(self, split: str) -> npt.NDArray[np.int64]:
        """Triples of one split with each relation: int64, shape (n_relations,)."""
        return np.bincount(self.split(split)[:, 1], minlength=self.n_relations).astype(np.int64)

    @property
    def _times(self) -> str:
        return "" if self.contexts is None else f", {len(self.contexts):,} times"

    def summary(self) -> str:
        """A few lines for people: sizes, and duplicates dropped."""
        lines = [f"{self.n_entities:,} entities, {self.n_relations:,} relations{self._times}"]
        for name, rows in self.splits.items():
            dropped = self.duplicates[name]
            note = f" ({dropped:,} duplicates dropped)" if dropped else ""
            lines.append(f"{name:5} {len(rows):>13,} triples{note}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in self.splits.items())
        name = f" {self.name}" if self.name else ""
        return (
            f"Graph{name}\n  {self.n_entities:,} entities, {self.n_relations:,} relations"
            f"{self._times}\n"
            f"  triples: {sizes}"
        )

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))


def _of_one_width(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The same; InputError if some facts have a time and others none."""
    widths = {name: rows.shape[1] for name, rows in arrays.items() if len(rows)}
    if len(set(widths.values())) > 1:
        raise InputError(
            f"the splits have {widths} columns; all of them need the time of their facts, or none"
        )
    width = next(iter(widths.values()), 3)
    return {
        name: rows if len(rows) else np.empty((0, width), rows.dtype)
        for name, rows in arrays.items()
    }


def _is_timed(arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    return any(rows.shape[1] == 4 for rows in arrays.values())


def _in_id_order(name: str, labels: Sequence[str] | Mapping[str, int]) -> Sequence[str]:
    """Labels as a sequence, whose places are their ids."""
    hint = "give labels in id order, or a mapping of each label to its id"
    if isinstance(labels, Set):  # keys of a mapping, too: their order need not be that of ids
        raise UsageError(f"{name}= is a {type(labels).__name__}, which has no order; {hint}")
    if not isinstance(labels, Mapping):
        return labels
    if any(isinstance(i, (bool, np.bool_)) for i in labels.values()):
        raise UsageError(f"{name}= maps labels to True or False, which are no ids; {hint}")
    ordered: list[str | None] = [None] * len(labels)
    for label, number in labels.items():
        try:
            place = operator.index(number)
        except TypeError:
            raise UsageError(
                f"{name}= maps {label!r} to {number!r}, which is not an id; {hint}"
            ) from None
        if not 0 <= place < len(ordered):
            raise UsageError(
                f"{name}= maps {label!r} to {place}, but {len(ordered)} labels have the ids 0 to "
                f"{len(ordered) - 1}; {hint}"
            )
        if ordered[place] is not None:
            raise UsageError(
                f"{name}= maps both {ordered[place]!r} and {label!r} to {place}; {hint}"
            )
        ordered[place] = label
    return ordered  # type: ignore[return-value]  # every place is taken, as each is taken once


def _resolve_labels(
    name: str,
    size: int | None,
    labels: Sequence[str] | Mapping[str, int] | None,
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
        named = Labels.from_strings(_in_id_order(name, labels))
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
