"""N-Triples: a line a triple, IRIs in angle brackets and blank nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kgtrec.graph.id_files import lines_of, refuse, text_of
from kgtrec.graph.readers.common import GraphTables, check_order, label_rows, split_files

__all__ = ["read_ntriples"]

_STEMS = {"train": ("train",), "valid": ("valid", "dev"), "test": ("test",)}
_NODE = rb"<([^<>\"{}|^`\\\s]+)>|(_:[^\s<>\"]+)"
_LINE = re.compile(rb"\s*(?:%s)\s+<([^<>\"{}|^`\\\s]+)>\s+(?:%s)\s*\.\s*(?:#.*)?" % (_NODE, _NODE))
_LITERAL = re.compile(rb"\s*\S+\s+<[^<>]*>\s*\"")
_HINT = "a line is <head> <relation> <tail> . with IRIs (without escapes) or blank nodes _:name"


def read_ntriples(folder: Path, columns: str | None = None) -> GraphTables:
    """``train.nt`` and so on; labels are the IRIs without their brackets, and ``_:name``."""
    check_order(columns)
    files = split_files(folder, _STEMS, (".nt",))
    return label_rows({split: _rows(path) for split, path in files.items()})


def _rows(path: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    for line, text in lines_of(path, gaps=True):
        match = _LINE.fullmatch(text)
        if match is not None:
            head, blank_head, relation, tail, blank_tail = match.groups()
            yield head or blank_head or b"", relation, tail or blank_tail or b""
        elif text.strip() and not text.lstrip().startswith(b"#"):
            if _LITERAL.match(text):
                what = f"a literal in {text_of(text[:60])!r}, which is not an entity"
                refuse(path, line, what, "leave triples with literals out of the file")
            refuse(path, line, f"{text_of(text[:60])!r}", _HINT)
