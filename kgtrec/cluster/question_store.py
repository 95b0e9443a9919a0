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
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.csr import Array, Csr
from kgtrec._internal.files import atomic_write, make_folder, map_array, sync_folder, write_array
from kgtrec._internal.locations import mapped_folder
from kgtrec._version import __version__
from kgtrec.cluster.content_hash import hash_file, hash_text
from kgtrec.errors import FileError, PathName, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.graph.triples import QualifierSets
from kgtrec.questions.api import Graph, Questions
from kgtrec.questions.candidates import CandidateLists
from kgtrec.questions.graph_terms import GraphTerms
from kgtrec.questions.questions import require_columns_by_id
from kgtrec.questions.terms import NamedTerms, Term
from kgtrec.ranking.rows import RowPlan, plan_rows

FORMAT = 5
_WINDOW, _GAP = 1 << 24, 1 << 14  # bytes to read at a time, and gaps that are read, too
_LISTS = ("answers", "known", "removed")
_CSR = ("offsets", "ids")
_ARRAYS = ("instance_question", "instance_triple", "triple_rows")
_GIVEN = ("given_first", "given_second")
_OPTIONAL = ("outside", "full_candidates", "grades")
_OF_GRAPHS = ("side", "kept", "context")
_PLAN = ("question", "target_offsets", "targets", "micro", "macro", "slot")
_OF_TASKS = tuple(
    f"{name}.npy"
    for name in (
        *(f"plan_{name}" for name in ("question", "target_offsets", "targets", "slot")),
        *(f"{lists}_{name}" for lists in ("known", "removed", "lists") for name in _CSR),
        "lists_of", "lists_columns", "position",
    )
)  # fmt: skip
_LABELS = ("entities", "relations", "contexts")
_QUALIFIERS = ("offsets", "pairs", "without")
_FACTS = ("split", "sides", "n_extra_known")
_HINT = "remove this folder and rank a part again, which writes it again from the graph"


def read_rows(array: Array, ids: Array) -> Array:
    """Rows of a mapped array, read instead of mapped.

    Access to a page may load up to 2 MB around it, which stay in memory until the map is
    dropped: too much for rows that are far apart.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if not isinstance(array, np.memmap) or not array.flags.c_contiguous:
        return np.array(array[ids])
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    read = np.empty((len(ids), *array.shape[1:]), dtype=array.dtype)
    size = max(1, array.itemsize * int(np.prod(array.shape[1:])))
    breaks = np.append(np.flatnonzero(np.diff(ordered) * size > _GAP) + 1, len(ordered))
    start = 0
    with open(str(array.filename), "rb", buffering=0) as file:
        for end in breaks.tolist():
            while start < end:
                first = int(ordered[start])
                stop = min(end, int(np.searchsorted(ordered, first + max(1, _WINDOW // size))))
                rows = _read_span(file, array, first, int(ordered[stop - 1]) - first + 1)
                read[order[start:stop]] = rows[ordered[start:stop] - first]
                start = stop
    return read


def _read_span(file: Any, array: np.memmap[Any, Any], first: int, n: int) -> Array:
    """Consecutive rows of a mapped array; FileError if its file has become too short."""
    size = array.itemsize * int(np.prod(array.shape[1:]))
    file.seek(array.offset + first * size)
    rows = np.fromfile(file, dtype=array.dtype, count=n * size // array.itemsize)
    if len(rows) * array.itemsize != n * size:
        there = f"{len(rows) * array.itemsize:,} of {n * size:,} bytes are left"
        raise FileError(str(array.filename), found=f"the file was cut short: {there}",
                        hint="rank again when nothing writes to it")  # fmt: skip
    return rows.reshape(-1, *array.shape[1:])


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
    if rows not in ("questions", "instances"):
        raise UsageError(f"rows={rows!r} is unknown; choose 'questions' or 'instances'")
    return save_questions(questions, rows, folder)


def save_questions(
    questions: Questions, rows: str, folder: PathName, key: str | None = None
) -> Path:
    """Write a store below ``folder`` unless it exists."""
    require_columns_by_id(questions, "a ranking in parts")
    place = mapped_folder(folder, "stored questions")
    if key is None:
        key = hash_text(json.dumps([questions.describe(), rows, __version__], sort_keys=True))
    target = place / f"questions-{key}"
    if target.is_dir():
        Store(target, verify=True)  # it may have been written days ago
        return target
    beside = target.with_name(f".kgtrec-{secrets.token_hex(8)}.tmp")
    make_folder(beside.parent)
    beside.mkdir()
    try:
        _write(questions, rows, beside)
        os.rename(beside, target)
        sync_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        # Else another process was first, with the same content; Ctrl-C is never ignored.
        if not isinstance(error, Exception) or not target.is_dir():
            raise
    return target


def _write(questions: Questions, rows: str, folder: Path) -> None:
    asked, plan = questions.asked, plan_rows(questions, rows)
    of_graph = isinstance(asked, GraphTerms)
    arrays, labels, facts = _packed_graph(asked) if of_graph else _packed_terms(asked)
    arrays |= _arrays(questions, plan)
    for name, array in arrays.items():
        with atomic_write(folder / f"{name}.npy") as file:
            write_array(file, np.ascontiguousarray(array))
    for kind, texts in labels.items():
        _write_labels(texts, folder / f"{kind}.arrow")
    candidate_lists = questions.candidate_lists
    body = {
        "format": FORMAT,
        "kgtrec": __version__,
        "rows": rows,
        "details": questions.details,
        "answer_terms": {name: term.labels for name, term in questions.answer_terms.items()},
        "candidate_lists": None
        if candidate_lists is None
        else {"kind": candidate_lists.kind, "width": candidate_lists.width},
        "asked": facts,
        "sizes": {kind: len(texts) for kind, texts in labels.items()},
        "n_labels": questions.n_labels,
        "fingerprint": questions.fingerprint,
        "files": {path.name: hash_file(path) for path in sorted(folder.iterdir())},
    }
    text = json.dumps(body)  # in the order of manifests
    with atomic_write(folder / "meta.json") as file:
        file.write(json.dumps({"hash": hash_text(text), "body": body}).encode())


_Packed = tuple[dict[str, Array], dict[str, Labels], dict[str, Any]]


def _packed_graph(asked: Any) -> _Packed:
    """Arrays, labels and facts of a graph's terms, with the graph."""
    graph = asked.graph
    arrays: dict[str, Array] = dict(zip(_GIVEN, asked.given, strict=True))
    for name in _OF_GRAPHS:
        if (value := getattr(asked, name)) is not None:
            arrays[name] = value
    arrays |= {f"split_{name}": rows for name, rows in graph.facts.items()}
    if (sets := graph.qualifiers) is not None:
        arrays |= {f"qualifier_{name}": getattr(sets, name) for name in _QUALIFIERS}
        arrays["statements"] = graph.statements
    labels = {kind: getattr(graph, kind) for kind in _LABELS if getattr(graph, kind) is not None}
    facts = {
        **{name: getattr(asked, name) for name in _FACTS},
        "filter_splits": list(asked.filter_splits),
        "graph_name": graph.name,
        "duplicates": graph.duplicates,
        "splits": list(graph.splits),
        "graph_hash": graph.fingerprint,
    }
    return arrays, labels, facts


def _packed_terms(asked: Any) -> _Packed:
    """Arrays, labels and facts of named terms."""
    arrays = {f"term_{number}": term.codes for number, term in enumerate(asked.terms.values())}
    labels = {"candidates": asked.candidate_labels, "ids": Labels.from_strings(asked.ids)}
    terms = {name: term.labels for name, term in asked.terms.items()}
    return arrays, labels, {"sides": asked.sides, "terms": terms, "origin": asked.origin}


def _arrays(questions: Questions, plan: RowPlan) -> dict[str, Array]:
    arrays: dict[str, Array] = {name: getattr(questions, name) for name in _ARRAYS}
    for number, term in enumerate(questions.answer_terms.values()):
        arrays[f"answer_term_{number}"] = term.codes
    for name in _OPTIONAL:
        if (value := getattr(questions, name)) is not None:
            arrays[name] = value
    for name in _LISTS:
        csr: Csr = getattr(questions, name)
        arrays |= {f"{name}_offsets": csr.offsets, f"{name}_ids": csr.ids}
    if (candidate_lists := questions.candidate_lists) is not None:
        arrays |= {"lists_of": candidate_lists.of, "lists_offsets": candidate_lists.lists.offsets}
        arrays["lists_ids"] = candidate_lists.lists.ids
        if candidate_lists.columns is not None:
            arrays["lists_columns"] = candidate_lists.columns
    arrays |= {f"plan_{name}": getattr(plan, name) for name in _PLAN}
    position = questions.candidate_labels.trec_order
    return arrays if position is None else arrays | {"position": position}


def _write_labels(labels: Labels, path: Path) -> None:
    """Write labels, unless they are decimal numbers."""
    import pyarrow as pa

    if labels == Labels.decimal(len(labels)):
        return
    table = pa.table({"label": labels.to_arrow()})
    with atomic_write(path) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _terms(labels: dict[str, Any], name: str, arrays: Callable[[str], Array]) -> dict[str, Term]:
    """Terms from their arrays, whose numbers follow the order of the terms' names."""
    return {
        term: Term(arrays(f"{name}_{number}"), texts)
        for number, (term, texts) in enumerate(labels.items())
    }


class Store:
    """An open store: arrays are mapped on request, and leave memory when they are dropped.

    - folder, path: Result of `save_questions`.
    - verify, bool: Read all files once and compare their hashes.

    - rows: What a row of scores represents.
    - n_labels, n_columns: Number of entities (or relations, if asked), and columns of a score row.
    - restricted: Whether candidates are restricted.
    - ordered: Whether ids of candidates ascend in the byte order of their names.
    """

    def __init__(self, folder: PathName, verify: bool = False) -> None:
        self.folder = Path(folder)
        path = self.folder / "meta.json"
        try:
            meta = json.loads(path.read_bytes())
            self.body: dict[str, Any] = meta["body"]
            sound = hash_text(json.dumps(self.body)) == meta["hash"]
        except OSError as error:
            raise FileError(path, found=error.strerror or "unreadable", hint=_HINT) from None
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            raise FileError(path, found="a damaged description of questions", hint=_HINT)
        if (self.body["format"], self.body["kgtrec"]) != (FORMAT, __version__):
            problem = f"questions of kgtrec {self.body['kgtrec']}, but this is kgtrec {__version__}"
            raise FileError(path, found=problem, hint=_HINT)
        lists = self.body["candidate_lists"]
        self.rows: str = self.body["rows"]
        self.n_labels: int = self.body["n_labels"]
        self.n_columns: int = self.n_labels if lists is None else lists["width"]
        self.restricted, self.ordered = lists is not None, not self.has("position")
        if verify:
            self._verify()

    def _verify(self) -> None:
        for name, expected in self.body["files"].items():
            path = self.folder / name
            try:
                actual = hash_file(path)
            except OSError as error:
                raise FileError(path, found=error.strerror or "unreadable", hint=_HINT) from None
            if actual != expected:
                raise FileError(path, found="a damaged file: its hash differs", hint=_HINT)

    def task_files(self) -> list[Path]:
        """The files that tasks read, without splits, labels and answers."""
        names = [name for name in _OF_TASKS if name in self.body["files"]]
        return [self.folder / name for name in ("meta.json", *names)]

    @property
    def whole(self) -> bool:
        """Whether all files are here, not only those that tasks read."""
        return (self.folder / "answers_ids.npy").exists()

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of scores."""
        return len(self.array("plan_question"))

    @cached_property
    def n_targets(self) -> int:
        """Number of answers, counted over all rows."""
        return len(self.array("plan_targets"))

    @cached_property
    def n_instances(self) -> int:
        """Number of pairs of a question and an answer."""
        return len(self.array("answers_ids"))

    def has(self, name: str) -> bool:
        """Whether the store holds an array."""
        return f"{name}.npy" in self.body["files"]

    def array(self, name: str) -> Array:
        """An array, in a new map."""
        path = self.folder / f"{name}.npy"
        try:
            return map_array(path)
        except (OSError, ValueError) as error:
            raise FileError(path, found=f"cannot be mapped ({error})", hint=_HINT) from None

    def plan(self) -> RowPlan:
        """The rows, mapped."""
        return RowPlan(**{name: self.array(f"plan_{name}") for name in _PLAN})

    def questions(self, mapped: bool = True) -> Questions:
        """The questions, equal to those saved; ``mapped=False`` reads them into memory."""

        def arrays(name: str) -> Array:
            return self.array(name) if mapped else np.array(self.array(name))

        fields: dict[str, Any] = {name: arrays(name) for name in _ARRAYS}
        fields |= {name: arrays(name) for name in _OPTIONAL if self.has(name)}
        for name in _LISTS:
            fields[name] = Csr(arrays(f"{name}_offsets"), arrays(f"{name}_ids"))
        unpack = self._named_terms if "terms" in self.body["asked"] else self._graph_terms
        questions = Questions(
            asked=unpack(arrays),
            candidate_lists=self._candidate_lists(),
            details=self.body["details"],
            answer_terms=_terms(self.body["answer_terms"], "answer_term", arrays),
            **fields,
        )
        # Saved with the arrays, whose bytes are checked: computing it would read them all again.
        vars(questions)["fingerprint"] = self.body["fingerprint"]
        if self.has("position"):
            vars(questions.candidate_labels)["trec_order"] = self.array("position")
        return questions

    def _candidate_lists(self) -> CandidateLists | None:
        if self.body["candidate_lists"] is None:
            return None
        lists = Csr(self.array("lists_offsets"), self.array("lists_ids"))
        columns = self.array("lists_columns") if self.has("lists_columns") else None
        facts = self.body["candidate_lists"]
        return CandidateLists(facts["kind"], lists, self.array("lists_of"), columns, facts["width"])

    def _named_terms(self, arrays: Callable[[str], Array]) -> NamedTerms:
        facts = self.body["asked"]
        labels, ids = self._labels("candidates"), list(self._labels("ids"))
        return NamedTerms(ids, _terms(facts["terms"], "term", arrays), labels, facts["origin"])

    def _graph_terms(self, arrays: Callable[[str], Array]) -> GraphTerms:
        facts = self.body["asked"]
        fields: dict[str, Any] = {name: facts[name] for name in _FACTS}
        fields |= {name: arrays(name) for name in _OF_GRAPHS if self.has(name)}
        fields["given"] = tuple(map(arrays, _GIVEN))
        filters = tuple(facts["filter_splits"])
        return GraphTerms(graph=self._graph(facts), filter_splits=filters, **fields)

    def _graph(self, facts: dict[str, Any]) -> Graph:
        splits = {name: self.array(f"split_{name}") for name in facts["splits"]}
        labels = {kind: self._labels(kind) for kind in _LABELS if kind in self.body["sizes"]}
        sets = None
        if self.has("statements"):
            sets = QualifierSets(*(self.array(f"qualifier_{name}") for name in _QUALIFIERS))
        graph = Graph(splits, facts["duplicates"], **labels, qualifiers=sets)
        if sets is not None:
            vars(graph)["statements"] = self.array("statements")
        graph.name = facts["graph_name"]
        vars(graph)["fingerprint"] = facts["graph_hash"]
        return graph

    def _labels(self, kind: str) -> Labels:
        import pyarrow as pa

        if f"{kind}.arrow" not in self.body["files"]:
            return Labels.decimal(self.body["sizes"][kind])
        # Text would be encoded as UTF-8, but not every name is UTF-8.
        source = pa.memory_map(os.fsencode(self.folder / f"{kind}.arrow"))
        column = pa.ipc.open_file(source).read_all().column("label")
        chunks: list[Any] = column.chunks
        return Labels(len(column), chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))
