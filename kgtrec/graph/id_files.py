"""Files of known facts and possible answers: triples, lists of labels, candidates.

All are text with LF or CRLF line ends, plain, ``.gz`` or ``.zst``, except negatives, which are
arrays in an ``.npz``. Labels are unchanged bytes. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.csr import K, offsets_of
from kgtrec._internal.locations import local_copy
from kgtrec._internal.unpacking import check_members
from kgtrec.errors import FileError, PathName, choose, refuse
from kgtrec.graph.labels import Labels, first_repeat
from kgtrec.graph.tsv import iterate_lines

FIT = "labels must match the graph's byte for byte"
SKIP = f"{FIT}; to ignore labels that are not in the graph, pass {argument('unknown', 'skip')}"
_UNCLOSED = "a quoted field that does not end on the same line"
NEGATIVES = ("head_neg", "tail_neg")


def check_unknown(unknown: str) -> None:
    """Raise UsageError unless `unknown` is "error" or "skip"."""
    choose("unknown", unknown, ("error", "skip"))


def read_labels(path: PathName, labels: Labels, unknown: str = "error") -> tuple[Int64, int]:
    """Read labels, one per line; return their ids, and how many were ignored as unknown."""
    check_unknown(unknown)
    names = [text for _, text in lines_of(path)]
    for number, text in enumerate(names, start=1):
        if b"\t" in text:
            refuse(path, number, f"a tab in {text_of(text)!r}", "write one label per line")
    if not names:
        refuse(path, None, "no labels: the file is empty", "write one label per line")
    return find_ids(path, labels, arrow_bytes(names), range(1, len(names) + 1), unknown)


def read_column_order(path: PathName, labels: Labels) -> Int64:
    """Read the label of each column, one per line; return their ids, int64 (columns,)."""
    names = [text for _, text in lines_of(path)]
    ids = labels.positions(arrow_bytes(names))
    if (ids < 0).any():
        line = int(np.argmax(ids < 0))
        hint = (
            f"{FIT}; if scores have columns of entities that no triple names, copy the file into "
            "the graph's folder as entities.txt, and leave out "
            f"{argument('columns')}"
        )
        refuse(path, line + 1, f"{text_of(names[line])!r} is not in the graph", hint)
    return ids


def read_names(path: PathName, size: int) -> Labels:
    """Read the labels of `size` ids, one per line, in id order."""
    import pyarrow as pa

    texts = (text for _, text in lines_of(path))
    chunks = iter(lambda: list(islice(texts, 1 << 16)), [])  # never millions of objects
    array = pa.concat_arrays([arrow_bytes([]), *map(arrow_bytes, chunks)])
    if repeat := first_repeat(array):
        problem = (
            f"{text_of(array[repeat[1]].as_py())!r} is repeated (first in line {repeat[0] + 1})"
        )
        refuse(path, repeat[1] + 1, problem, "give each label once")
    if len(array) != size:
        refuse(path, None, f"{len(array):,} labels for {size:,} rows", "write one label per row")
    return Labels.from_arrow(array)


def read_pairs(path: PathName, left: Labels, right: Labels) -> Int64:
    """Read lines ``left<TAB>right``; return left and right ids, int64 (n, 2)."""
    at: dict[tuple[bytes, ...], int] = {}
    for number, text in lines_of(path):
        pair = tuple(text.split(b"\t"))
        if len(pair) != 2:
            columns = f"{len(pair)} column{'s' * (len(pair) > 1)} instead of 2"
            refuse(path, number, f"{columns}: {text_of(text)!r}", "write left<TAB>right")
        refuse_repeat(path, at, pair, number, repr(text_of(text)), "give each alignment once")
    if not at:
        refuse(path, None, "no pairs: the file is empty", "write left<TAB>right")
    parts = []
    for side, (name, labels) in enumerate((("left", left), ("right", right))):
        names = [pair[side] for pair in at]
        ids = labels.positions(arrow_bytes(names))
        if (ids < 0).any():
            first = int(np.flatnonzero(ids < 0)[0])
            problem = f"{text_of(names[first])!r} is not one of the {len(labels):,} {name} entities"
            hint = f"write row numbers from 0, or give labels as {argument(f'{name}_labels')}"
            refuse(path, list(at.values())[first], problem, hint)
        parts.append(ids)
    return np.stack(parts, axis=1)


def read_candidates(
    path: PathName,
    question_ids: Sequence[str],
    entities: Labels,
    unknown: str = "error",
    left_out: Collection[str] = (),
) -> tuple[list[Int64], dict[str, Any]]:
    """Read lines ``question<TAB>entity<TAB>entity...``.

    Lines of the questions `left_out` are ignored and counted.

    Returns the candidates' ids per question, in the order of `question_ids`, and facts on the file.
    """
    check_unknown(unknown)
    hint = (
        "write question<TAB>entity<TAB>entity..., with question ids as "
        "`kgtrec convert --write-questions` writes them"
    )
    names = [name.encode() for name in question_ids]
    known_names, ignored_names = set(names), {name.encode() for name in left_out}
    n_ignored = 0
    lists: dict[bytes, list[bytes]] = {}
    line_of: dict[bytes, int] = {}
    for line, text in lines_of(path):
        name, *labels = text.split(b"\t")
        if name in ignored_names:
            n_ignored += 1
            continue
        if name not in known_names:
            refuse(path, line, f"{text_of(name)!r} is not the id of a question", hint)
        if b"" in labels:
            refuse(path, line, f"an empty label in {text_of(text)!r}", hint)
        noun = f"question {text_of(name)!r}"
        refuse_repeat(path, line_of, name, line, noun, "give each question one line")
        lists[name] = labels
    if missing := [name for name in names if name not in lists]:
        problem = f"{len(missing):,} questions have no line, first {text_of(missing[0])!r}"
        refuse(path, None, problem, "give each question one line")
    lengths = [*map(len, lists.values())]
    at = np.repeat([*line_of.values()], lengths)
    labels = [*chain.from_iterable(lists.values())]
    ids, missed = find_ids(path, entities, arrow_bytes(labels), at, unknown, drop=False)
    of = dict(zip(lists, np.split(ids, offsets_of(lengths)[1:-1]), strict=True))
    facts = {"file": str(path), "unknown": missed}
    if n_ignored:
        facts["ignored"] = n_ignored
    return [of[name][of[name] >= 0] for name in names], facts


def read_negatives(path: PathName) -> dict[str, Array]:
    """Read the arrays ``head_neg`` and ``tail_neg`` (or one of them) of an ``.npz``, as in OGB."""
    hint = f"save {' and '.join(NEGATIVES)}, ids of shape (triples, negatives), with numpy.savez"
    return load_arrays(path, NEGATIVES, hint)


def load_arrays(path: PathName, names: Sequence[str], hint: str) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` that have these names, without unpickling."""
    try:
        with regular_file(path) as local_path, np.load(local_path, allow_pickle=False) as archive:
            check_members(path, archive.zip)
            arrays = {name: archive[name] for name in names if name in archive.files}
            present = archive.files
    except FileError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise their own errors
        reason = " ".join(str(error).split())
        raise FileError(path, found=f"not a readable .npz archive ({reason})", hint=hint) from None
    if not arrays:
        refuse(path, None, f"it contains the arrays {sorted(present)}", hint)
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # a member without numpy's header comes as bytes
            refuse(path, None, f"{name} is not a numpy array", hint)
    return arrays


def find_ids(
    path: PathName,
    labels: Labels,
    names: Any,
    lines: Sequence[int] | Int64,
    unknown: str,
    drop: bool = True,
) -> tuple[Int64, int]:
    """Return the ids of an Arrow array of labels, and how many labels are unknown.

    Unknown labels are an error if `unknown` is "error". Otherwise they are dropped, or have id -1
    without `drop`. ``lines`` has the line of each label.
    """
    ids = labels.positions(names)
    bad = ids < 0
    if bad.any() and unknown == "error":
        first = int(np.flatnonzero(bad)[0])
        note_on_further = f" (nor are {int(bad.sum()) - 1:,} more labels)" if bad.sum() > 1 else ""
        refuse(
            path,
            int(lines[first]),
            f"{text_of(names[first].as_py())!r} is not in the graph{note_on_further}",
            SKIP,
        )
    return ids[~bad] if drop else ids, int(bad.sum())


def refuse_repeat(
    path: PathName, lines: dict[K, int], key: K, line: int, noun: str, hint: str
) -> None:
    """Remember the line of a key; FileError if an earlier line has the same key."""
    if lines.setdefault(key, line) != line:
        refuse(path, line, f"{noun} is repeated (first in line {lines[key]})", hint)


def arrow_bytes(names: list[bytes]) -> Any:
    """Convert labels to an Arrow array."""
    import pyarrow as pa

    return pa.array(names, type=pa.large_binary())


def lines_of(path: PathName, gaps: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of every line that is not empty.

    FileError for an empty line before the end, unless `gaps` allows it.
    """
    blank = 0
    with regular_file(path) as local_path:
        for number, text in iterate_lines(local_path):
            if not text:
                blank = blank or number
            elif blank and not gaps:
                refuse(path, blank, "an empty line", "delete it")
            else:
                yield number, text


def read_delimited_rows(
    path: PathName, delimiter: str, hint: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield number and fields of every line; fields may be quoted as in CSV.

    A quoted field must end in its line. Otherwise its quotation mark is almost always unclosed, and
    all lines up to the next mark would be part of a label.
    """
    texts = (text_of(text) for _, text in lines_of(path))
    reader, line = csv.reader(texts, delimiter=delimiter, strict=True), 0
    try:
        for line, fields in enumerate(reader, start=1):
            if reader.line_num > line:
                refuse(path, line, _UNCLOSED, hint)
            yield line, fields
    except csv.Error as error:
        problem = _UNCLOSED if reader.line_num > line + 1 else str(error)
        raise FileError(path, line + 1, found=problem, hint=hint) from None


@contextmanager
def regular_file(path: PathName) -> Iterator[Path]:
    """Provide a local path of the file until the context ends; FileError if it is not a file."""
    with local_copy(path) as local_path:
        if not local_path.exists():
            refuse(path, None, "the file does not exist", "check the name and the folder")
        if local_path.is_dir():
            refuse(path, None, "a folder, not a file", "give a file in this folder")
        yield local_path


def text_of(raw: bytes) -> str:
    """Decode a label's bytes; bytes that are not UTF-8 become surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode a label that `text_of` decoded."""
    return text.encode("utf-8", "surrogateescape")
