"""OpenKE's folders as a reader of the table; the format itself is in ``kgtrec.graph.openke``."""

from __future__ import annotations

from pathlib import Path

from kgtrec.graph.openke import load_openke
from kgtrec.graph.readers.common import GraphTables, check_order
from kgtrec.graph.tsv import find_split_files

__all__ = ["read_openke"]


def read_openke(folder: Path, columns: str | None = None) -> GraphTables:
    """``train2id.txt`` and so on; see `load_openke`."""
    check_order(columns, "htr")
    splits, labels = load_openke(find_split_files(folder))
    return GraphTables(dict(splits), labels["entities"], labels["relations"])
