"""One graph in the files of every format: each method of `GraphFiles` writes one into a folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PLACES = {
    "rotate": "rotate:{}",
    "rotate_in_order": "rotate,thr:{}",
    "dgl_ke": "dgl-ke,rth:{}",
    "openke": "openke:{}",
    "csv_declared": "csv,htr:{}",
    "tsv_in_order": "tsv,htr:{}",
    "ntriples": "ntriples:{}",
    "timed": "timed:{}",
    "statements": "statements:{}",
    "ilpc": "ilpc:{}",
    "grail": "grail:{}/v1",
    "ultra": "ultra:{}",
    "ultra_grail": "ultra:{}",
}
"""How commands name the folder of a format, unless by its path alone."""

COLUMNS = ("head", "relation", "tail")


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def lines(rows: Iterable[tuple[Any, ...]], separator: str = "\t") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


@dataclass
class GraphFiles:
    """Triples by label, and the labels in the order of their numbers."""

    splits: dict[str, list[tuple[str, str, str]]]
    entities: list[str]
    relations: list[str]
    trained: list[tuple[str, str, str]]
    """The training graph of inductive benchmarks."""

    def make(self, name: str, home: Path) -> str:
        """Write a format, and return how commands name the folder."""
        getattr(self, name)(home)
        return PLACES.get(name, "{}").format(home)

    def numbers(self, split: str) -> list[tuple[int, int, int]]:
        entity, relation = self.entities.index, self.relations.index
        return [(entity(h), relation(r), entity(t)) for h, r, t in self.splits[split]]

    def _each(self, home: Path, name: str, order: str = "hrt", separator: str = "\t") -> None:
        """The labels of each split in that order."""
        columns = ["hrt".index(c) for c in order]
        for split, rows in self.splits.items():
            text = lines((tuple(row[i] for i in columns) for row in rows), separator)
            write(home / name.format(split), text)

    def _maps(self, home: Path, *names: str, header: str = "") -> None:
        for name, labels in zip(names, (self.entities, self.relations), strict=True):
            write(home / name, header + lines(list(enumerate(labels))))

    def libkge(self, home: Path) -> None:
        write(
            home / "dataset.yaml",
            (
                "dataset:\n  files.entity_ids.filename: entity_ids.del\n  files.train:\n"
                "    filename: train.del\n  files.valid.filename: valid.del\n  num_entities: 3\n"
            ),
        )
        self._maps(home, "entity_ids.del", "relation_ids.del")
        for split in self.splits:
            write(home / f"{split}.del", lines(self.numbers(split)))
        self._each(home, "{}.txt")  # LibKGE keeps the raw files

    def rotate(self, home: Path) -> None:
        self._maps(home, "entities.dict", "relations.dict")
        self._each(home, "{}.txt")

    def rotate_in_order(self, home: Path) -> None:
        self._maps(home, "entities.dict", "relations.dict")
        self._each(home, "{}.txt", "thr")

    def dgl_ke(self, home: Path) -> None:
        self._maps(home, "entities.tsv", "relations.tsv")
        for split in self.splits:
            write(home / f"{split}.txt", lines([(r, t, h) for h, r, t in self.numbers(split)]))

    def pykeen(self, home: Path) -> None:
        for split, name in (("train", "training"), ("valid", "validation"), ("test", "testing")):
            self._maps(
                home / name, "entity_to_id.tsv.gz", "relation_to_id.tsv.gz", header="id\tlabel\n"
            )
            text = "head\trelation\ttail\n" + lines(self.numbers(split))
            write(home / name / "numeric_triples.tsv.gz", text)
        write(home / "metadata.pth", "x")

    def openke(self, home: Path) -> None:
        for name, labels in (("entity2id", self.entities), ("relation2id", self.relations)):
            rows = [(label, i) for i, label in enumerate(labels)]
            write(home / f"{name}.txt", f"{len(rows)}\n" + lines(rows))
        for split in self.splits:
            numbers = [(h, t, r) for h, r, t in self.numbers(split)]
            write(home / f"{split}2id.txt", f"{len(numbers)}\n" + lines(numbers, " "))

    def ogb(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        for split in self.splits:
            head, relation, tail = np.array(self.numbers(split)).T
            np.savez(
                home / f"{split}.npz",
                head=head,
                relation=relation,
                tail=tail,
                num_nodes=9 + len(self.entities),
                head_neg=np.zeros((len(head), 2), int),
            )

    def csv_named(self, home: Path) -> None:
        for split, rows in self.splits.items():
            quoted = [(f'"{t}"', '"a, ""b"""', h, r) for h, r, t in rows]
            write(home / f"{split}.csv", "tail,note,head,relation\n" + lines(quoted, ","))

    def csv_declared(self, home: Path) -> None:
        self._each(home, "{}.csv.gz", "htr", ",")

    def tsv_in_order(self, home: Path) -> None:
        self._each(home, "{}.txt", "htr")

    def _tables(self, home: Path) -> Any:
        import pyarrow as pa

        home.mkdir(parents=True, exist_ok=True)
        for split, rows in self.splits.items():
            columns = map(list, zip(*rows, strict=True))
            yield split, pa.table(dict(zip(COLUMNS, columns, strict=True)))

    def parquet(self, home: Path) -> None:
        import pyarrow.parquet as pq

        for split, table in self._tables(home):
            coded = table.set_column(1, "relation", table["relation"].dictionary_encode())
            pq.write_table(coded.select(["tail", "relation", "head"]), home / f"{split}.parquet")

    def arrow(self, home: Path) -> None:
        import pyarrow as pa

        for split, table in self._tables(home):
            opened = pa.ipc.new_stream if split == "train" else pa.ipc.new_file
            with opened(home / f"{split}.arrow", table.schema) as writer:
                writer.write_table(table)

    def ntriples(self, home: Path) -> None:
        for split, rows in self.splits.items():
            text = "".join(f"<http://x/{h}> <http://x/{r}> <http://x/{t}> .\n" for h, r, t in rows)
            write(home / f"{split}.nt", text.replace("b c", "bc"))

    def timed(self, home: Path) -> None:
        for split, rows in self.splits.items():
            write(home / f"{split}.txt", lines((*row, i % 3) for i, row in enumerate(rows)))

    def statements(self, home: Path) -> None:
        """Every other triple has a qualifier."""
        for split, rows in self.splits.items():
            facts = ((*row, *row[1:][: 2 * (i % 2)]) for i, row in enumerate(rows))
            write(home / f"{split}.txt", lines(facts, ","))

    def wikipeople(self, home: Path) -> None:
        for split, rows in self.splits.items():
            records = ({f"{r}_h": h, f"{r}_t": t, "N": 4, r: [h, t]} for h, r, t in rows)
            text = "".join(json.dumps(record) + "\n" for record in records)
            write(home / f"n-ary_{split}.json", text)

    def _inductive(self, home: Path, training: str, *names: str) -> None:
        write(home / training, lines(self.trained))
        for name, rows in zip(names, self.splits.values(), strict=True):
            write(home / name, lines(rows))

    def ilpc(self, home: Path) -> None:
        self._inductive(
            home, "train.txt", "inference.txt", "inference_validation.txt", "inference_test.txt"
        )

    def grail(self, home: Path) -> None:
        self._inductive(home, "v1/train.txt", *(f"v1_ind/{split}.txt" for split in self.splits))

    def ultra(self, home: Path) -> None:
        self._inductive(
            home, "transductive_train.txt", "inference_graph.txt", "inf_valid.txt", "inf_test.txt"
        )

    def ultra_grail(self, home: Path) -> None:
        self._inductive(home, "train.txt", *(f"{split}_ind.txt" for split in self.splits))
