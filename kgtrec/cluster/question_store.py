"""Questions as files, written once; workers memory-map the parts that they rank.

A store is a folder of ``.npy`` arrays, Arrow files with the labels, and ``meta.json``, which holds
a hash of every other file. It appears complete or not at all: it is written under another name,
then renamed. Its files never change.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array
from kgtrec._internal.csr import Csr
from kgtrec._internal.files import (
    atomic_write,
    make_folder,
    map_array,
    read_arrow,
    sync_folder,
    write_array,
)
from kgtrec._internal.locations import path_below, require_local_folder
from kgtrec._internal.system import read_at
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import (
    explain_unreadable,
    hash_file,
    hash_text,
    read_json,
    write_json,
)
from kgtrec.errors import FileError, PathName, system_error
from kgtrec.graph.labels import Labels
from kgtrec.graph.triples import QualifierSets
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.candidate_lists import CandidateLists
from kgtrec.questions.graph_terms import GraphTerms
from kgtrec.questions.terms import NamedTerms, Term
from kgtrec.ranking.rows import RowPlan, plan_rows
from kgtrec.ranking.settings import Settings
from kgtrec.scores.files import RangedArray

FORMAT = 8
_GAP_BYTES = 1 << 14  # between two rows: a smaller gap is read with them
_TASK_ARRAYS = (
    *(f"plan_{name}" for name in ("question", "target_offsets", "targets", "slot")),
    *(f"{lists}_{name}" for lists in ("known", "removed") for name in ("offsets", "ids")),
    *(f"candidate_lists_{name}" for name in ("lists_offsets", "lists_ids", "of", "columns")),
    "position",
)
_GRAPH_MEMBERS = (
    "facts",
    "duplicates",
    "entities",
    "relations",
    "contexts",
    "qualifiers",
    "name",
    "column_order",
    "fingerprint",
    "statements",
)
_HINT = "remove this folder and rank a part again, which writes it again from the graph"


def read_rows(array: Array, ids: Array) -> Array:
    """Return rows of an array; those of a mapped array are read instead of mapped.

    Access to a page may load up to 2 MB around it, which stay in memory until the map is
    dropped: too much for rows that are far apart.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if not isinstance(array, np.memmap) or not array.flags.c_contiguous:
        return np.array(array[ids])
    with open(str(array.filename), "rb", buffering=0) as file:
        # With the interface of `RangedFile`.
        opened = SimpleNamespace(
            url=str(array.filename),
            read=lambda start, n_bytes: read_at(file.fileno(), n_bytes, start),
        )
        return RangedArray(opened, array.offset, array.shape, array.dtype, gap=_GAP_BYTES)[ids]


def store_questions(questions: Questions, folder: PathName, rows: str = "questions") -> Path:
    """Write questions as files that a cluster maps, for `kgtrec.cluster.rank_to_file`.

    Parameters
    ----------
    questions : Questions
    folder : path
        Created if it does not exist.
    rows : {"questions", "instances"}
        What a row of scores will represent.

    Returns
    -------
    Path
        A folder in ``folder``, named after the questions' content.

    Raises
    ------
    FileError
        The store exists and is damaged.
    UsageError
        Another word for `rows`, or questions with their own order of columns.
    """
    return save_questions(questions, Settings(rows=rows).rows, folder)


def save_questions(
    questions: Questions, rows: str, folder: PathName, key: str | None = None
) -> Path:
    """Write a store of questions into a folder unless it exists; return the store's folder.

    - rows: Meaning of a row of scores, "questions" or "instances".
    - key: Name of the store; None: a hash of the questions.
    """
    parent = require_local_folder(folder, "stored questions")
    if key is None:
        order = questions.column_of
        columns = [] if order is None else [hash_text(",".join(map(str, order.tolist())))]
        facts = [questions.describe(), rows, __version__, *columns]
        key = hash_text(json.dumps(facts, sort_keys=True))
    target = parent / f"questions-{key}"
    if target.is_dir():
        Store(target, verify=True)  # it may have been written days ago
        return target
    temporary = target.with_name(f".kgtrec-{secrets.token_hex(8)}.tmp")
    make_folder(temporary.parent)
    temporary.mkdir()
    try:
        _write_files(questions, rows, temporary)
        os.rename(temporary, target)
        sync_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        # Else another process was first, with the same content; Ctrl-C is never ignored.
        if not isinstance(error, Exception) or not target.is_dir():
            raise
    return target


def _write_files(questions: Questions, rows: str, folder: Path) -> None:
    """Write all files of a store into a folder."""
    import pyarrow as pa

    plan, position = plan_rows(questions, rows), questions.candidate_labels.trec_order
    arrays: dict[str, Array] = {} if position is None else {"position": position}
    labels: dict[str, Labels] = {}
    _pack("plan", plan, arrays, labels)
    packed = _pack("", questions, arrays, labels)
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as file:
            write_array(file, np.ascontiguousarray(array))
    for name, texts in labels.items():
        if texts != Labels.decimal(len(texts)):
            table = pa.table({"label": texts.to_arrow()})
            path = folder / f"{name}.arrow"
            with atomic_write(path) as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    body = {
        "format": FORMAT,
        "kgtrec": __version__,
        "rows": rows,
        "questions": packed,
        "n_rows": plan.n_rows,
        "n_labels": questions.n_labels,
        "n_columns": questions.n_columns,
        "n_targets": len(plan.targets),
        "n_instances": questions.n_instances,
        "fingerprint": questions.fingerprint,
        "files": {path.name: hash_file(path) for path in sorted(folder.iterdir())},
    }
    write_json(folder / "meta.json", body)  # in the order of manifests


def _pack(name: str, value: Any, arrays: dict[str, Array], labels: dict[str, Labels]) -> Any:
    """Convert a value to plain JSON types in which names stand for its arrays and labels.

    The arrays and labels are added to `arrays` and `labels`, under names that begin with `name`.
    """
    if isinstance(value, Labels):
        labels[name] = value
        return {"labels": [name, len(value)]}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, list):
        return [_pack(f"{name}_{n}", item, arrays, labels) for n, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _pack(name, [*value], arrays, labels)}
    if isinstance(value, Mapping):
        members = _pack(name, [*value.values()], arrays, labels)
        return {"dict": [*zip(value, members, strict=True)]}
    if not isinstance(value, Graph) and not is_dataclass(value):
        return value
    if isinstance(value, NamedTerms):
        value = replace(value, ids=Labels.from_strings(value.ids))
    names = _GRAPH_MEMBERS if isinstance(value, Graph) else [field.name for field in fields(value)]
    prefix = f"{name}_" if name else ""
    pairs = [(key, _pack(prefix + key, getattr(value, key), arrays, labels)) for key in names]
    return {type(value).__name__: pairs}


_CLASSES: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (Questions, GraphTerms, NamedTerms, Term, CandidateLists, QualifierSets, Csr)
}


class Store:
    """An open store. Arrays are mapped on request, and leave memory when they are dropped.

    - folder, path: Result of `save_questions`.
    - verify, bool: Read all files once and compare their hashes.

    - rows, n_rows: What a row of scores represents, and the number of rows.
    - n_labels, n_columns: Number of entities (or relations, if asked), and columns of a score row.
    - n_targets, n_instances: Number of answers over all rows; of pairs of a question and an answer.
    - restricted, of_graph: True if candidates are restricted; if the questions are a graph's.
    - ordered: True if ids of candidates ascend in the byte order of their names.
    """

    def __init__(self, folder: PathName, verify: bool = False) -> None:
        self.folder = Path(folder)
        path = self.folder / "meta.json"
        try:
            with explain_unreadable([path], _HINT):
                self.body: dict[str, Any] = read_json(path)
        except FileError:
            raise
        except ValueError:
            problem = "a damaged description of questions"
            raise FileError(path, found=problem, hint=_HINT) from None
        if (self.body["format"], self.body["kgtrec"]) != (FORMAT, __version__):
            problem = f"questions of kgtrec {self.body['kgtrec']}, but this is kgtrec {__version__}"
            raise FileError(path, found=problem, hint=_HINT)
        self.rows: str = self.body["rows"]
        sizes = ("n_rows", "n_labels", "n_columns", "n_targets", "n_instances")
        self.n_rows, self.n_labels, self.n_columns, self.n_targets, self.n_instances = (
            int(self.body[name]) for name in sizes
        )
        self.restricted = self.has("candidate_lists_of")
        self.of_graph = GraphTerms.__name__ in dict(self.body["questions"]["Questions"])["origin"]
        self.ordered = not self.has("position")
        for name, expected in self.body["files"].items() if verify else ():
            path = self._path(name)
            with explain_unreadable([path], _HINT):
                actual = hash_file(path)
            if actual != expected:
                raise FileError(path, found="a damaged file: its hash differs", hint=_HINT)

    def _path(self, name: str) -> Path:
        """Return the path of a file that the description names."""
        return path_below(self.folder, name, self.folder / "meta.json")

    def task_files(self) -> list[Path]:
        """Return the files that tasks read: all but splits, labels and answers."""
        names = [f"{name}.npy" for name in _TASK_ARRAYS if self.has(name)]
        return [self.folder / name for name in ("meta.json", *names)]

    @property
    def has_all_files(self) -> bool:
        """True if all files are here, not only those that tasks read."""
        return (self.folder / "answers_ids.npy").exists()

    def has(self, name: str) -> bool:
        """Return whether the store has an array of this name."""
        return f"{name}.npy" in self.body["files"]

    def array(self, name: str) -> Array:
        """Open an array in a new memory map; FileError if that fails."""
        path = self._path(f"{name}.npy")
        try:
            return map_array(path)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                raise system_error(path, error) from None
            raise FileError(path, found=f"cannot be mapped ({error})", hint=_HINT) from None

    def plan(self) -> RowPlan:
        """Open the plan of rows, mapped."""
        return RowPlan(
            **{field.name: self.array(f"plan_{field.name}") for field in fields(RowPlan)}
        )

    def questions(self, mapped: bool = True) -> Questions:
        """Open the questions; ``mapped=False`` reads them into memory."""
        questions: Questions = self._unpack(self.body["questions"], mapped)
        # Saved with the arrays, whose bytes are checked: computing it would read them all again.
        vars(questions)["fingerprint"] = self.body["fingerprint"]
        if self.has("position"):
            vars(questions.candidate_labels)["trec_order"] = self.array("position")
        return questions

    def candidate_lists(self) -> CandidateLists | None:
        """Open the candidate lists of the questions, mapped; None if they have none."""
        members = dict(self.body["questions"]["Questions"])
        lists: CandidateLists | None = self._unpack(members["candidate_lists"], True)
        return lists

    def _unpack(self, value: Any, mapped: bool) -> Any:
        """Convert what `_pack` returned to its value."""
        if isinstance(value, list):
            return [self._unpack(item, mapped) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "array":
            return self.array(content) if mapped else np.array(self.array(content))
        if kind == "labels":
            return self._labels(*content)
        content = self._unpack(content, mapped or kind in ("Graph", "CandidateLists"))
        if kind == "tuple":
            return tuple(content)
        members = dict(content)
        if kind == "Graph":
            graph = Graph(*(members.pop(name) for name in _GRAPH_MEMBERS[:6]))
            vars(graph).update(members)  # checked with the files, as the fingerprint
            return graph
        if kind == "NamedTerms":
            members["ids"] = list(members["ids"])
        return members if kind == "dict" else _CLASSES[kind](**members)

    def _labels(self, name: str, size: int) -> Labels:
        """Open labels; without a file they are the numbers from 0."""
        import pyarrow as pa

        if f"{name}.arrow" not in self.body["files"]:
            return Labels.decimal(size)
        # Text would be encoded as UTF-8, but not every name is UTF-8.
        source = pa.memory_map(os.fsencode(self._path(f"{name}.arrow")))
        column = read_arrow(source).column("label")
        chunks: list[Any] = column.chunks
        return Labels(len(column), chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))
