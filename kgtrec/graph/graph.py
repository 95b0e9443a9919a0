"""Graph: the splits of a knowledge graph as sets of integer triples, with their labels."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arguments import PATH, require_type
from kgtrec._internal.arrays import Array, Int32, Int64
from kgtrec._internal.locations import is_location, local_copy
from kgtrec._internal.table import import_pandas, lines_as_html
from kgtrec.errors import (
    FilterWarning,
    GraphWarning,
    InputError,
    PathName,
    UsageError,
    must_be,
    refuse,
)
from kgtrec.graph.labels import Labels, resolve_labels, whole_numbers
from kgtrec.graph.triples import (
    SPLITS,
    QualifierSets,
    as_triples,
    build_value_rows,
    check_ids,
    check_qualifiers,
    count_entities,
    drop_duplicates,
    hash_array,
    number_sets,
    pack_triples,
    set_labels,
)

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Self

    from kgtrec.graph.readers.common import GraphTables


# In smaller graphs, a relation can occur only in first lines by chance.
_MANY = 10


@dataclass(eq=False, repr=False)
class GraphData:
    """Splits of a knowledge graph as arrays.

    `kgtrec.Graph`, which adds methods for users, documents the attributes.
    """

    facts: dict[str, Int32]
    duplicates: dict[str, int]
    entities: Labels
    relations: Labels
    contexts: Labels | None = None
    qualifiers: QualifierSets | None = None
    name: str | None = field(default=None, init=False)
    has_open_end: bool = field(default=False, init=False)
    """Labels of entities are whole numbers, and no file says how many entities there are."""
    column_order: str = field(default="hrt", init=False)
    """Order of head, relation and tail in lines of labels, such as those of known facts."""
    _qualifier_facts: dict[str, Int32] = field(default_factory=dict, init=False)

    @cached_property
    def splits(self) -> dict[str, Int32]:
        """The facts without their context."""
        if self.contexts is None:
            return self.facts
        return {name: rows[:, :3] for name, rows in self.facts.items()}

    @classmethod
    def _build(
        cls,
        triples: Mapping[str, Int32],
        entities: Labels,
        relations: Labels,
        contexts: Labels | None = None,
        qualifiers: QualifierSets | None = None,
    ) -> Self:
        """Build a graph from triples; it takes the arrays over and drops their duplicates."""
        splits, duplicates = {}, {}
        for name, rows in triples.items():
            n_rows = len(rows)
            distinct = drop_duplicates(rows, in_place=True)
            distinct.flags.writeable = False  # the fingerprint and all questions depend on them
            splits[name] = distinct
            duplicates[name] = n_rows - len(distinct)
        return cls(splits, duplicates, entities, relations, contexts, qualifiers)

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
        qualifiers: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    ) -> Self:
        """Graph from integer triples (n, 3), with a time as a fourth column, or with qualifiers."""
        splits = {"train": train, "valid": valid, "test": test}
        arrays_by_split = {name: array for name, array in splits.items() if array is not None}
        if not arrays_by_split:
            raise UsageError("from_arrays got no triples; give at least one of train, valid, test")
        widths = (3, 4) if qualifiers is None else (3,)
        arrays = _require_one_width(
            {n: as_triples(n, a, widths) for n, a in arrays_by_split.items()}
        )
        is_timed = next(iter(arrays.values())).shape[1] == 4
        if times is not None and not is_timed:
            raise InputError(
                "times= names the times of a fourth column, but no split has one; add the column, "
                "or leave times= out"
            )
        if qualifiers is not None and set(qualifiers) != set(arrays):
            raise InputError(
                f"qualifiers are given for the splits {', '.join(qualifiers)}, but triples for "
                f"{', '.join(arrays)}; give both for each split"
            )
        pairs = {
            name: check_qualifiers(name, pairs_of_split, len(arrays[name]))
            for name, pairs_of_split in (qualifiers or {}).items()
        }
        columns = [[rows[:, c] for rows in arrays.values()] for c in range(3)]
        more = [[rows[:, c] for _, rows in pairs.values()] for c in range(2)]
        ends = [*columns[0], *columns[2], *more[1]]
        entity_labels = resolve_labels("entities", n_entities, entities, ends)
        kinds = [*columns[1], *more[0]]
        relation_labels = resolve_labels("relations", n_relations, relations, kinds)
        if pairs:
            return cls._build_qualified(arrays, pairs, entity_labels, relation_labels)
        at = [rows[:, 3] for rows in arrays.values()] if is_timed else []
        time_labels = resolve_labels("times", None, times, at) if is_timed else None
        sizes = len(entity_labels), len(relation_labels), len(time_labels or ())
        checked = {name: check_ids(name, array, *sizes) for name, array in arrays.items()}
        return cls._build(checked, entity_labels, relation_labels, time_labels)

    @classmethod
    def _build_qualified(
        cls,
        triples: Mapping[str, Array],
        pairs: Mapping[str, tuple[Int64, Int64]],
        entities: Labels,
        relations: Labels,
    ) -> Self:
        """Build a graph from triples and qualifiers, whose sets become a fourth column."""
        sizes = len(entities), len(relations)
        for name, (_, pairs_of_split) in pairs.items():
            check_ids(
                f"qualifiers[{name!r}]", pairs_of_split, *sizes, columns=("relation", "value")
            )
        numbers, sets = number_sets(pairs)
        splits = {
            name: np.column_stack([check_ids(name, rows, *sizes), numbers[name]])
            for name, rows in triples.items()
        }
        contexts = Labels.from_strings(set_labels(sets, entities, relations))
        return cls._build(splits, entities, relations, contexts, sets)

    @classmethod
    def _from_tables(cls, tables: GraphTables) -> Self:
        """Build a graph from the arrays and labels that a reader returns."""
        return cls.from_arrays(
            train=tables.splits.get("train"),
            valid=tables.splits.get("valid"),
            test=tables.splits.get("test"),
            n_entities=tables.n_entities,
            n_relations=tables.n_relations,
            entities=tables.entities,
            relations=tables.relations,
            times=tables.times,
            qualifiers=tables.qualifiers,
        )

    @classmethod
    def read(
        cls,
        folder: PathName,
        *,
        format: str | None = None,
        columns: str | None = None,
        progress: bool | None = None,
        used: Iterable[PathName] = (),
    ) -> Self:
        """Read a folder of files; see `kgtrec.read_graph`.

        ``used`` are files that the caller reads, such as known facts. No warning mentions them.
        """
        from kgtrec.graph.formats import (
            GRAPHS,
            NUMBERED_BESIDE,
            graph_place,
            label_columns,
            split_format,
        )
        from kgtrec.graph.openke import is_numbered
        from kgtrec.graph.readers.dictionaries import number_by_dictionaries
        from kgtrec.graph.readers.fields import read_label_triples
        from kgtrec.graph.readers.unread import unread_files
        from kgtrec.graph.tsv import check_folder, find_split_files

        require_type("folder", folder, (str, PathLike), PATH)
        declared, location = split_format(fspath(folder))
        if is_location(location):
            with local_copy(location, folders=True) as copy:
                return cls.read(
                    f"{declared}{copy}",
                    format=format,
                    columns=columns,
                    progress=progress,
                    used=used,
                )
        source = graph_place(folder, format, columns)
        is_usual = source.format == "tsv" and source.columns in (None, "hrt")
        files = find_split_files(source.folder, check=False) if is_usual else {}
        is_native = bool(files) and (source.is_declared or not is_numbered(files))
        if is_native:  # another reader checks the folder itself
            check_folder(source.folder, files)
            draws = sys.stderr.isatty() if progress is None else progress
            name, tables = "tsv", read_label_triples(files, source.columns, draws, form="tsv")
        else:
            name = "openke" if files else source.format
            tables = GRAPHS.find_row(name).load()(source.folder, source.columns)
            if not any(map(len, tables.splits.values())):
                hint = "add triples to at least one split"
                refuse(source.folder, None, "no triple in any split", hint)
        if name in NUMBERED_BESIDE and not source.is_alone:
            tables = number_by_dictionaries(source.folder, tables)
        graph = cls._build(tables.splits, *tables.labels) if is_native else cls._from_tables(tables)
        # The name as given, not that of a link's target; "." and "data/.." do not name a folder.
        folder_name = source.folder.name
        graph.name = folder_name if folder_name not in ("", "..") else source.folder.resolve().name
        graph.has_open_end = tables.has_open_end and tables.qualifiers is None
        graph.column_order = label_columns(name, source.columns)
        for doubt in (*tables.notes, *graph.doubts()):
            warnings.warn(f"{folder}: {doubt}", GraphWarning, stacklevel=3)  # read_graph's caller
        read = {*tables.files.values(), *map(Path, used)}
        labels = graph.entities, graph.relations
        sizes = {
            split: {len(rows), len(rows) + graph.duplicates.get(split, 0)}
            for split, rows in graph.facts.items()
        }
        unread = unread_files(source.folder, name, read, *labels, sizes)
        for doubt in () if source.is_alone else unread:
            warnings.warn(FilterWarning(f"{folder}: {doubt}"), stacklevel=3)
        return graph

    def with_entities(self, n: int) -> Self:
        """Return the graph with the entities 0 to n - 1, numbered as the columns of scores.

        Parameters
        ----------
        n : int
            Number of entities. Those that no fact names are candidates, too.

        Raises
        ------
        UsageError
            The labels of the entities are not whole numbers below n.
        """
        numbers = whole_numbers(self.entities.to_arrow())
        if numbers is None or int(numbers.max(initial=-1)) >= n:
            texts = "not all whole numbers" if numbers is None else f"numbers up to {numbers.max()}"
            raise UsageError(
                f"with_entities({n}) needs labels of entities that are numbers below {n}; the "
                f"labels are {texts}"
            )
        facts = {name: rows.copy() for name, rows in self.facts.items()}
        for rows in facts.values():
            rows[:, [0, 2]] = numbers[rows[:, [0, 2]]]
            rows.flags.writeable = False
        grown = type(self)(facts, self.duplicates, Labels.decimal(n), self.relations, self.contexts)
        grown.name, grown.column_order = self.name, self.column_order
        return grown

    def hint_of_width(self, n: int) -> str:
        """Return advice for scores of more entities than the triples name; "" if there is none.

        Only graphs whose labels are whole numbers get advice.
        """
        if not self.has_open_end or n <= self.n_entities or int(self.entities[-1]) >= n:
            return ""
        return (
            f"if column e is entity e, ask the questions of graph.with_entities({n}), or write "
            f"'{n} {self.n_relations}', the numbers of entities and of relations, into stat.txt in "
            "the graph's folder"
        )

    def doubts(self) -> Iterator[str]:
        """Yield a sentence per sign that the graph was misread: splits, first lines, relations."""
        absent = [name for name in SPLITS if name not in self.splits]
        if "test" in self.splits and absent:
            names = " and ".join(map(repr, absent))
            yield (
                f"the graph has no split {names}, so no triple of it is filtered; add its file if "
                "you have it"
            )
        counts = sum(map(self.relation_counts, self.splits), np.zeros(self.n_relations, int))
        first = {name: int(rows[0, 1]) for name, rows in self.splits.items() if len(rows)}
        for relation in dict.fromkeys(first.values()):
            alone = [name for name, first_relation in first.items() if first_relation == relation]
            label = self.relations[relation]
            is_rare = counts[relation] == len(alone) and counts.sum() >= _MANY
            if is_rare and label not in self.entities:  # like a heading
                yield (
                    f"relation {label!r} occurs only in the first line of "
                    f"{', '.join(alone)}; delete these lines if they are headers"
                )
        trained = self.relation_counts("train") if "train" in self.splits else counts[:0]
        for name in ("valid", "test"):
            if not trained.any() or name not in self.splits:
                continue
            occurs = self.relation_counts(name) > 0
            if n_new := int((occurs & (trained == 0)).sum()):
                yield (
                    f"{n_new:,} of {int(occurs.sum()):,} relations of split {name!r} do not occur "
                    "in train"
                )

    @property
    def n_entities(self) -> int:
        """Number of entities."""
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        """Number of relations."""
        return len(self.relations)

    def split(self, name: str) -> Int32:
        """Return the distinct triples of a split, int32 (n, 3); UsageError if it is missing."""
        if not isinstance(name, str) or name not in self.splits:
            which = "this graph" if self.name is None else f"graph {self.name!r}"
            raise UsageError(f"{which} has no split {name!r}; {must_be(name, self.splits)}")
        return self.splits[name]

    def to_frame(self, split: str) -> pandas.DataFrame:
        """Return a pandas frame of the labels of a split's triples: head, relation, tail.

        UsageError if the split is missing.
        """
        head, relation, tail = self.split(split).T
        return import_pandas("split and entities").DataFrame(
            {
                "head": self.entities[head],
                "relation": self.relations[relation],
                "tail": self.entities[tail],
            }
        )

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

    def entity_counts(self) -> Int64:
        """Count how often each entity is head, tail or qualifier's value: int64 (n_entities,)."""
        return self._entity_counts

    @cached_property
    def _entity_counts(self) -> Int64:
        counts = np.zeros(self.n_entities, dtype=np.int64)
        for rows in self.splits.values():
            counts += count_entities(rows, self.n_entities)
        if self.qualifiers is not None:
            for name in self.splits:
                values = self.qualifier_facts(name)[:, 2]
                counts += np.bincount(values, minlength=self.n_entities)
        counts.flags.writeable = False  # shared by all who ask
        return counts

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """Labels of all relations as strings, cached because many take a while to make."""
        return tuple(self.relations)

    def relation_counts(self, split: str) -> Int64:
        """Count the triples of a split with each relation: int64, shape (n_relations,)."""
        return np.bincount(self.split(split)[:, 1], minlength=self.n_relations).astype(np.int64)

    @property
    def context_name(self) -> str | None:
        """The meaning of the facts' fourth column: "time", "qualifiers", or None without one."""
        if self.qualifiers is not None:
            return "qualifiers"
        return None if self.contexts is None else "time"

    @cached_property
    def statements(self) -> Int32:
        """The distinct primary triples of all facts with qualifiers, ascending: int32, (n, 3)."""
        if self.qualifiers is None:
            return np.empty((0, 3), np.int32)
        lengths = self.qualifiers.lengths
        rows = [facts[lengths[facts[:, 3]] > 0, :3] for facts in self.facts.values()]
        return np.unique(np.concatenate(rows), axis=0)

    def qualifier_facts(self, split: str) -> Int32:
        """Return facts for questions about qualifiers' values, one per qualifier: int32 (n, 4)."""
        self.split(split)  # raises, naming the splits that exist
        if split not in self._qualifier_facts:
            self._qualifier_facts[split] = self.map_qualifiers(build_value_rows, self.facts[split])
        return self._qualifier_facts[split]

    def map_qualifiers(
        self, how: Callable[..., Int32], facts: Int32, sets: QualifierSets | None = None
    ) -> Int32:
        """Apply `build_value_rows` or `build_given_rows` to the facts that have qualifiers.

        Returns int32 (m, 4). ``sets`` are the graph's own by default.
        """
        sets = self.qualifiers if sets is None else sets
        if sets is None or not len(self.statements):
            return np.empty((0, 4), np.int32)
        keys, fact_keys = self._triple_keys(self.statements), self._triple_keys(facts)
        at = np.minimum(np.searchsorted(keys, fact_keys), len(keys) - 1)
        rows = how(sets, facts, np.where(keys[at] == fact_keys, at, -1))
        return rows[rows[:, 0] >= 0]

    def _triple_keys(self, triples: Int32) -> Int64:
        """Return a key per triple, int64 (n,); InputError if keys do not fit into int64."""
        if self.n_entities**2 * self.n_relations > np.iinfo(np.int64).max:
            raise InputError(
                f"{self.n_entities:,} entities and {self.n_relations:,} relations are too many for "
                "facts with qualifiers; leave out those that occur in no fact"
            )
        return pack_triples(triples, self.n_entities, self.n_relations)

    @property
    def n_qualified(self) -> dict[str, int]:
        """Number of facts with a qualifier, by split; empty if the graph has no qualifiers."""
        if self.qualifiers is None:
            return {}
        lengths = self.qualifiers.lengths
        return {name: int((lengths[rows[:, 3]] > 0).sum()) for name, rows in self.facts.items()}

    @property
    def _sizes(self) -> str:
        text = f"{self.n_entities:,} entities, {self.n_relations:,} relations"
        if self.qualifiers is not None:
            return f"{text}, {sum(self.n_qualified.values()):,} facts with qualifiers"
        return text if self.contexts is None else f"{text}, {len(self.contexts):,} times"

    def summary(self) -> str:
        """Return a few lines for people: the sizes, and how many duplicates were dropped."""
        lines = [self._sizes]
        for name, rows in self.splits.items():
            dropped = self.duplicates[name]
            note = f" ({dropped:,} duplicates dropped)" if dropped else ""
            lines.append(f"{name:5} {len(rows):>13,} triples{note}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in self.splits.items())
        name = f" {self.name}" if self.name else ""
        return f"Graph{name}\n  {self._sizes}\n  triples: {sizes}"

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))


def _require_one_width(arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays; InputError if some facts have a time and others have none.

    Empty arrays get the width of the others.
    """
    widths = {name: rows.shape[1] for name, rows in arrays.items() if len(rows)}
    if len(set(widths.values())) > 1:
        raise InputError(
            f"the splits have different numbers of columns: {widths}; give times to all splits or "
            "to none"
        )
    width = next(iter(widths.values()), 3)
    return {
        name: rows if len(rows) else np.empty((0, width), rows.dtype)
        for name, rows in arrays.items()
    }
