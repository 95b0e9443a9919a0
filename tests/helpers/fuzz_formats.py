"""Small valid graphs and predictions in every format for `fuzz_files`, and their commands."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np

N = 12  # entities, as in the graph of `fuzz_files`
ENTITIES = [f"e{e:02}" for e in range(N)]
RELATIONS = ["r0", "r1"]
SPLITS = ("train", "valid", "test")
Triples = list[tuple[int, int, int]]


def graphs() -> dict[str, list[str]]:
    """Place of a graph, as commands name it, to the files that are damaged."""
    return {
        "libkge:x/libkge": ["dataset.yaml", "train.del", "entity_ids.del"],
        "rotate:x/rotate": ["train.txt", "entities.dict"],
        "dgl-ke,hrt:x/dgl": ["test.txt", "relations.dict"],
        "openke:x/openke": ["train2id.txt", "entity2id.txt"],
        "pykeen:x/pykeen": ["training/numeric_triples.tsv.gz", "training/entity_to_id.tsv.gz"],
        "ogb:x/ogb": ["train.npz"],
        "arrow:x/arrow": ["train.parquet", "valid.arrow", "test.feather"],
        "csv:x/csv": ["train.csv"],
        "csv,hrt:x/plain": ["test.csv"],
        "ntriples:x/nt": ["train.nt"],
        "timed:x/timed": ["train.txt"],
        "statements:x/statements": ["train.txt"],
        "wikipeople:x/wikipeople": ["n-ary_train.json"],
        "ilpc:x/ilpc": ["inference.txt", "inference_test.txt"],
        "grail:x/grail": ["../grail_ind/test.txt", "train.txt"],
        "ultra:x/ultra": ["inference_graph.txt", "inf_test.txt"],
    }


PREDICTIONS = {"anyburl": "p.anyburl.txt", "jsonl": "p.jsonl", "pykeen": "p.csv",
               "ogb-lsc": "p.npz", "trec": "p.run"}  # fmt: skip


def reads() -> dict[str, list[list[str]]]:
    """File to the commands that read it."""
    found = {}
    for place, names in graphs().items():
        folder = place.rpartition(":")[2]
        for name in names:
            path = os.path.normpath(f"{folder}/{name}")
            contexts = {"timed": "time", "statements": "qualifiers", "wikipeople": "qualifiers"}
            context = contexts.get(place.partition(":")[0])
            words = ["--context", context] if context else []
            found[path] = [["convert", "--graph", place, "--write-qrels", "out/q", *words]]
    for form, path in PREDICTIONS.items():
        found[path] = [["rank", "--graph", "g", "--predictions", path, "--predictions-format",
            form, "-q",
                        "--sides", "tail" if form == "pykeen" else "both",
                        "-o", "out/o.parquet", "--write-run", "out/o.run"]]  # fmt: skip
    return found


def make(test: Triples) -> None:
    """Write all of them into the working folder; ``test``: the triples that predictions answer."""
    rng = np.random.default_rng(5)
    splits = {split: _triples(rng, n) for split, n in zip(SPLITS, (30, 5, 8), strict=True)}
    splits["train"] += [(e, e % 2, e) for e in range(N)]
    _numbered(splits)
    _binary(splits)
    _labelled(splits)
    _predictions(rng, test)


def _triples(rng: np.random.Generator, n: int) -> Triples:
    return [(int(h), int(r), int(t)) for h, r, t in rng.integers(0, (N, 2, N), (n, 3))]


def _write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    raw = text.encode()
    Path(path).write_bytes(gzip.compress(raw, mtime=0) if path.endswith(".gz") else raw)


def _lines(rows: list[tuple[object, ...]], separator: str = "\t") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def _labels(rows: Triples) -> list[tuple[object, ...]]:
    return [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in rows]


def _maps(folder: str, *names: str, header: str = "") -> None:
    for name, labels in zip(names, (ENTITIES, RELATIONS), strict=True):
        _write(f"{folder}/{name}", header + _lines(list(enumerate(labels))))


def _numbered(splits: dict[str, Triples]) -> None:
    """Formats with numbers, or with labels and a map of numbers."""
    files = "".join(f"  files.{split}.filename: {split}.del\n" for split in splits)
    _write("x/libkge/dataset.yaml", f"dataset:\n{files}  num_entities: {N}\n")
    _maps("x/libkge", "entity_ids.del", "relation_ids.del")
    for folder in ("rotate", "dgl"):
        _maps(f"x/{folder}", "entities.dict", "relations.dict")
    for name, labels in (("entity2id.txt", ENTITIES), ("relation2id.txt", RELATIONS)):
        rows = [(label, number) for number, label in enumerate(labels)]
        _write(f"x/openke/{name}", f"{len(rows)}\n" + _lines(rows))
    for split, folder in zip(splits, ("training", "validation", "testing"), strict=True):
        rows = list(splits[split])
        _write(f"x/libkge/{split}.del", _lines(rows))
        _write(f"x/rotate/{split}.txt", _lines(_labels(rows)))
        _write(f"x/timed/{split}.txt", _lines([(*row, h) for row, (h, _, _) in
                                               zip(_labels(rows), rows, strict=True)]))  # fmt: skip
        labels = _labels(rows)
        statements = [
            (*row, *row[1:][: 2 * (h % 2)]) for row, (h, _, _) in zip(labels, rows, strict=True)
        ]
        _write(f"x/statements/{split}.txt", _lines(statements, ","))
        _write(f"x/wikipeople/n-ary_{split}.json", "".join(
            json.dumps({f"{r}_h": h, f"{r}_t": t, "N": 4, r: [h, t]}) + "\n"
            for h, r, t in _labels(rows)))  # fmt: skip
        _write(f"x/dgl/{split}.txt", _lines(rows))
        swapped = [(h, t, r) for h, r, t in rows]
        _write(f"x/openke/{split}2id.txt", f"{len(rows)}\n" + _lines(swapped, " "))
        place = f"x/pykeen/{folder}"
        _maps(place, "entity_to_id.tsv.gz", "relation_to_id.tsv.gz", header="id\tlabel\n")
        _write(f"{place}/numeric_triples.tsv.gz", "head\trelation\ttail\n" + _lines(rows))


def _binary(splits: dict[str, Triples]) -> None:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    os.makedirs("x/ogb")
    os.makedirs("x/arrow")
    names = ("head", "relation", "tail")
    tables = {}
    for split, rows in splits.items():
        columns = np.array(rows).T
        np.savez(f"x/ogb/{split}.npz", **dict(zip(names, columns, strict=True)))
        labels = zip(*_labels(rows), strict=True)
        tables[split] = pa.table(dict(zip(names, map(list, labels), strict=True)))
    pq.write_table(tables["train"], "x/arrow/train.parquet")
    with pa.ipc.new_file("x/arrow/valid.arrow", tables["valid"].schema) as writer:
        writer.write_table(tables["valid"])
    feather.write_feather(tables["test"], "x/arrow/test.feather", compression="uncompressed")


def _labelled(splits: dict[str, Triples]) -> None:
    """Formats with labels only; inductive ones have a second graph."""
    for split, rows in splits.items():
        labels = _labels(rows)
        _write(f"x/csv/{split}.csv", "tail,head,relation\n" + _lines(
            [(t, f'"{h}"', r) for h, r, t in labels], ","
        ))  # fmt: skip
        _write(f"x/plain/{split}.csv", _lines(labels, ","))
        _write(f"x/nt/{split}.nt", "".join(
            f"<http://x/{h}> <http://x/{r}> <http://x/{t}> .\n" for h, r, t in labels
        ))  # fmt: skip
        _write(f"x/grail_ind/{split}.txt", _lines(labels))
    train, valid, test = (_lines(_labels(splits[split])) for split in SPLITS)
    _write("x/grail/train.txt", train)
    for name, text in (("train", train), ("inference", train), ("inference_validation", valid),
                       ("inference_test", test)):  # fmt: skip
        _write(f"x/ilpc/{name}.txt", text)
    for name, text in (("transductive_train", train), ("inference_graph", train),
                       ("inf_valid", valid), ("inf_test", test)):  # fmt: skip
        _write(f"x/ultra/{name}.txt", text)


def _predictions(rng: np.random.Generator, test: Triples) -> None:
    best = [rng.permutation(N)[:5].tolist() for _ in range(2 * len(test))]
    anyburl, lists = "", {}
    frame = "head_label,relation_label,tail_label,score\n"
    for number, (h, r, t) in enumerate(test):
        heads, tails = best[2 * number], best[2 * number + 1]
        anyburl += f"{ENTITIES[h]} {RELATIONS[r]} {ENTITIES[t]}\n"
        for name, ids in (("Heads", heads), ("Tails", tails)):
            pairs = (f"{ENTITIES[e]}\t{1 / (i + 1):.3f}\t" for i, e in enumerate(ids))
            anyburl += f"{name}: {''.join(pairs)}\n"
        lists["tail", ENTITIES[t], RELATIONS[r]] = [ENTITIES[e] for e in heads]
        lists["head", ENTITIES[h], RELATIONS[r]] = [ENTITIES[e] for e in tails]
        for i, e in enumerate(tails):
            frame += f"{ENTITIES[h]},{RELATIONS[r]},{ENTITIES[e]},{9 - i}\n"
    _write(PREDICTIONS["anyburl"], anyburl)
    objects = [
        {side: entity, "relation": relation, "predictions": answers}
        for (side, entity, relation), answers in lists.items()
    ]
    _write(PREDICTIONS["jsonl"], "".join(json.dumps(each) + "\n" for each in objects))
    _write(PREDICTIONS["pykeen"], frame)
    tens = np.pad(np.array(best), ((0, 0), (0, 5)), constant_values=-1)
    np.savez(PREDICTIONS["ogb-lsc"], h_pred_top10=tens[::2], t_pred_top10=tens[1::2])
    lines = (
        f"{question} Q0 {ENTITIES[e]} {i + 1} {9 - i} x\n"
        for question in ("head1", "tail1", "head2")
        for i, e in enumerate(best[0])
    )
    _write(PREDICTIONS["trec"], "".join(lines))
