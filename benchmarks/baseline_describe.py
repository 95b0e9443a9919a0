"""Describe a value, a file or a figure as a text, for `baseline.py` to compare.

Small contents are written in full; large ones as a hash with the first values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

LONGEST = 150_000  # characters of a text that are kept
LARGEST = 8 << 20  # bytes of a file that is read as text
SHOWN = 12  # values of a long array that are written


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


# ---- values ----


def value(given: Any) -> str:
    """Any value as a text of lines, with every digit of its numbers."""
    if isinstance(given, Figure):
        return figure(given)
    if isinstance(given, Mapping):
        return "\n".join(f"{key}: {value(item)}" for key, item in given.items())
    if isinstance(given, np.ndarray):
        return array(given)
    if isinstance(given, (list, tuple)) and not hasattr(given, "_fields"):
        return "\n".join(value(item) for item in given)
    if isinstance(given, (float, np.floating)):
        return repr(float(given))
    if callable(getattr(given, "table", None)):
        return f"{given}\n{given.table()}"
    return str(given)


def array(given: np.ndarray[Any, Any]) -> str:
    """Type, shape, and the values or their hash."""
    flat = given.ravel()
    if given.dtype.hasobject:
        flat = np.array([str(item) for item in flat])
    head = f"{given.dtype} {given.shape}"
    if flat.size <= SHOWN:
        return f"{head} {flat.tolist()}"
    return f"{head} {digest(np.ascontiguousarray(flat).tobytes())} {flat[:SHOWN].tolist()} ..."


# ---- files ----


def file(path: Path) -> Iterator[tuple[str, str]]:
    """Parts of what a file holds: a suffix for the record's name, and a text."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        yield "", columns(path)
        yield " header", header(path)
        yield " bytes", f"{len(content)} bytes {digest(content)}"
    elif path.suffix == ".npy":
        yield "", array(np.load(path, allow_pickle=False))
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            yield "", "\n".join(f"{name}: {array(arrays[name])}" for name in sorted(arrays))
    elif len(content) > LARGEST or b"\0" in content or path.suffix in (".svg", ".pdf"):
        yield "", f"{len(content)} bytes {digest(content)}"
    else:
        yield "", content.decode("utf-8", "backslashreplace")


def columns(path: Path) -> str:
    """Every column of a Parquet file: type, hash, first values."""
    table = pq.read_table(path)
    lines = [f"{table.num_rows} rows"]
    for name in table.column_names:
        values = table[name].combine_chunks()
        kind = values.type
        if pa.types.is_dictionary(kind):
            values = values.dictionary_decode()
        sink = pa.BufferOutputStream()
        only = pa.table({name: values})
        with pa.ipc.new_stream(sink, only.schema) as writer:
            writer.write_table(only)
        shown = values[:SHOWN].to_pylist()
        lines.append(f"{name}: {kind} {digest(sink.getvalue().to_pybytes())} {shown}")
    return "\n".join(lines)


def header(path: Path) -> str:
    """The metadata of a Parquet file, apart from its columns."""
    lines = []
    for key, content in sorted((pq.read_schema(path).metadata or {}).items()):
        try:
            text = json.dumps(json.loads(content), indent=1, sort_keys=True, ensure_ascii=False)
        except ValueError:
            text = digest(content)
        lines.append(f"{key.decode()}: {text}")
    return "\n".join(lines)


# ---- figures ----


def figure(drawn: Figure) -> str:
    """The content of a figure: the numbers of its artists, and its texts."""
    drawn.draw_without_rendering()  # ticks are made then
    lines = [f"size {numbers(drawn.get_size_inches())}"]
    for legend in drawn.legends:
        lines += [f"legend {text.get_text()}" for text in legend.get_texts()]
    lines += [f"text {text.get_text()}" for text in drawn.texts]
    for place, axes in enumerate(drawn.axes):
        lines += [f"axes {place} {line}" for line in _axes(axes)]
    return "\n".join(lines)


def numbers(given: Any) -> str:
    """Values to twelve digits, the precision of drawing; many values as a hash."""
    flat = np.asarray(np.ma.filled(given, np.nan), dtype=float).ravel()
    texts = [f"{item:.12g}" for item in flat]
    if flat.size <= 2 * SHOWN:
        return " ".join(texts)
    return f"{flat.size} values {digest(' '.join(texts).encode())} {' '.join(texts[:SHOWN])} ..."


def _axes(axes: Any) -> Iterator[str]:
    for where in ("left", "center", "right"):
        yield f"title {axes.get_title(loc=where)}"
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        yield f"{name} label {axis.get_label_text()}"
        yield f"{name} {axis.get_scale()} {numbers(axis.get_view_interval())}"
        yield f"{name} ticks {[text.get_text() for text in axis.get_ticklabels()]}"
    for line in axes.lines:
        yield f"line {line.get_label()} {line.get_linestyle()} {line.get_color()}"
        yield f"  x {numbers(line.get_xdata(orig=False))}"
        yield f"  y {numbers(line.get_ydata(orig=False))}"
    for patch in axes.patches:
        path = patch.get_patch_transform().transform_path(patch.get_path())
        yield f"{type(patch).__name__} {numbers(path.vertices)}"
    for collection in axes.collections:
        yield f"{type(collection).__name__} {collection.get_label()}"
        yield f"  offsets {numbers(collection.get_offsets())}"
        for path in collection.get_paths():
            yield f"  path {numbers(path.vertices)}"
        if collection.get_array() is not None:
            yield f"  array {numbers(collection.get_array())}"
    for image in axes.images:
        yield f"image {numbers(image.get_array())} {numbers(image.get_extent())}"
    for text in axes.texts:
        yield f"text {text.get_text()!r} {numbers(text.get_position())}"
