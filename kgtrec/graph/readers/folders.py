"""Folders of other programs: dictionaries beside splits, inductive benchmarks, LibKGE, OGB, PyKEEN.

Readers of inductive benchmarks return the inference graph: its triples are the split ``train``, its
entities are the candidates, and entities of valid and test that it lacks are an error. The training
graph gives only its relations, which the two share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.arrays import Array
from kgtrec._internal.system import reason_of
from kgtrec.errors import FileError, UsageError, refuse
from kgtrec.graph.id_files import bytes_of, lines_of, load_arrays, read_delimited_rows
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.common import (
    GraphTables,
    check_likely,
    id_column,
    labels_by_id,
    outsiders,
    read_number_triples,
    sort_labels,
    split_files,
    text_splits,
)
from kgtrec.graph.readers.dictionaries import (
    KINDS,
    PLURALS,
    Dictionary,
    Numbering,
    find_dictionary,
    refuse_repeated,
    renumber_tables,
)
from kgtrec.graph.readers.fields import read_label_triples
from kgtrec.graph.triples import COLUMNS, SPLITS
from kgtrec.graph.tsv import CODECS, renumber_column

_MAP = "each line must be number<TAB>label, with numbers from 0"
DECLARE = (
    "declare one: rotate:DIR if splits have labels in the order head, relation, tail "
    "(rotate,htr:DIR for another order), dgl-ke,hrt:DIR if they have numbers; or tsv:DIR to ignore "
    "the two files"
)


def read_rotate(folder: Path, columns: str | None = None) -> GraphTables:
    """Read splits by label, with the numbers of dictionaries; columns are hrt by default."""
    notes: list[str] = []
    dictionaries = [_dictionary(folder, kind, notes) for kind in KINDS]
    tables = read_label_triples(text_splits(folder), columns or "hrt")
    return _by_label(replace(tables, notes=(*tables.notes, *notes)), dictionaries, columns or "hrt")


def _by_label(tables: GraphTables, dictionaries: Sequence[Dictionary], columns: str) -> GraphTables:
    """Number the tables by dictionaries; FileError if these lack a label."""
    ids = [
        dictionary.labels.positions(labels.to_arrow()).astype(np.int32)
        for dictionary, labels in zip(dictionaries, tables.labels, strict=True)
    ]
    for path, line, column, label, _ in outsiders(
        tables.files, tables, [kind_ids >= 0 for kind_ids in ids]
    ):
        problem = f"{label!r} is not in {dictionaries[column & 1].path.name}"
        refuse(path, line, problem, f"correct it, or the declared order of columns ({columns})")
    for at, dictionary in enumerate(dictionaries):
        refuse_repeated(dictionary, at, tables)
    numberings = [
        Numbering(dictionary.labels, kind_ids, dictionary.path.name)
        for dictionary, kind_ids in zip(dictionaries, ids, strict=True)
    ]
    notes = filter(None, [numberings[0].describe_unnamed(PLURALS[0])])
    return renumber_tables(replace(tables, notes=(*tables.notes, *notes)), numberings)


def read_neural_lp(folder: Path, columns: str | None = None) -> GraphTables:
    """Read a folder of Neural LP, DRUM or RED-GNN.

    facts.txt and train.txt are the split train; lists number the labels by line.
    """
    splits = text_splits(folder)
    facts = next((folder / name for name in _FACTS if (folder / name).is_file()), None)
    if facts is None or "train" not in splits:
        refuse(
            folder, None, f"no {'train' if facts else 'facts'}.txt", "add it, or declare tsv:DIR"
        )
    notes: list[str] = []
    by_kind = [find_dictionary(folder, kind, notes) for kind in KINDS]
    tables = read_label_triples({"facts": facts, **splits}, columns or "hrt")
    tables = replace(tables, notes=(*tables.notes, *notes))
    dictionaries = [dictionary for dictionary in by_kind if dictionary is not None]
    if len(dictionaries) == len(KINDS):
        tables = _by_label(tables, dictionaries, columns or "hrt")
    splits_of = {name: rows for name, rows in tables.splits.items() if name != "facts"}
    splits_of["train"] = np.concatenate([tables.splits["facts"], splits_of["train"]])
    return replace(tables, splits=splits_of)


_FACTS = [f"facts{ending}{packed}" for ending in (".txt", ".tsv") for packed in ("", *CODECS)]


def read_dgl_ke(folder: Path, columns: str | None = None) -> GraphTables:
    """Read splits by number, with declared columns, as in DGL-KE's ``udd_hrt``."""
    if columns is None:
        hint = "declare it, as in dgl-ke,hrt:DIR"
        refuse(folder, None, "the order of its columns is unknown", hint)
    notes: list[str] = []
    labels = [_dictionary(folder, kind, notes).labels for kind in KINDS]
    form = f"each line must be three numbers from 0, in the order {columns}"
    tables = read_number_triples(text_splits(folder), labels, columns, form)
    return replace(tables, notes=(*tables.notes, *notes))


def _dictionary(folder: Path, kind: str, notes: list[str]) -> Dictionary:
    """Return the dictionary of a kind; FileError if there is none."""
    dictionary = find_dictionary(folder, kind, notes)
    if dictionary is None:
        path = folder / f"{PLURALS[KINDS.index(kind)]}.dict"
        refuse(path, None, "the file does not exist", "check the name and the folder")
    return dictionary


def _read_map(path: Path) -> Labels:
    """Read labels from lines ``number<TAB>label``."""
    rows = ((line, text, *text.partition(b"\t")[::2]) for line, text in lines_of(path))
    return labels_by_id(path, rows, _MAP).labels


# Files with the training graph, the inference graph, valid (which may be missing), and test.
_ILPC = ("train.txt", "inference.txt", "inference_validation.txt", "inference_test.txt")
_INGRAM = ("train.txt", "msg.txt", "valid.txt", "test.txt")
_ULTRA = (
    ("transductive_train.txt", "inference_graph.txt", "inf_valid.txt", "inf_test.txt"),
    ("train.txt", "train_ind.txt", "valid_ind.txt", "test_ind.txt"),
)


def read_ilpc(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ILPC 2022: ``train``, ``inference``, ``inference_validation``, ``inference_test``."""
    return _read(folder, _ILPC)


def read_ingram(folder: Path, columns: str | None = None) -> GraphTables:
    """Read InGram: questions of ``valid`` and ``test`` are about the graph in ``msg.txt``."""
    return _read(folder, _INGRAM)


def read_ultra(folder: Path, columns: str | None = None) -> GraphTables:
    """Read a raw folder of ULTRA's inductive datasets, in either of their two layouts."""
    return _read(folder, *_ULTRA)


def read_grail(folder: Path, columns: str | None = None) -> GraphTables:
    """Read GraIL: the training graph in a folder NAME, the inference graph in ``NAME_ind``."""
    folder = folder.resolve()
    base = folder.with_name(folder.name.removesuffix("_ind"))
    ind = f"{base.name}_ind"
    files = (f"{ind}/{split}.txt" for split in ("train", "valid", "test"))
    return _read(base.parent, (f"{base.name}/train.txt", *files))


def _read(folder: Path, *layouts: tuple[str, ...]) -> GraphTables:
    """Read the inference graph of a folder; FileError if it has none of the layouts."""
    needed: list[list[str]] = [
        [name for name in (training, inference, test) if not (folder / name).is_file()]
        for training, inference, _, test in layouts
    ]
    if [] not in needed:
        hint = "it needs " + ", or ".join(", ".join(layout) for layout in layouts)
        lacks = min(needed, key=len)
        refuse(folder, None, f"no {' and no '.join(lacks)}", hint)
    training, inference, valid, test = (folder / name for name in layouts[needed.index([])])
    files = {"train": inference, "test": test, **({"valid": valid} if valid.is_file() else {})}
    tables = read_label_triples(files)
    entities, relations = tables.labels
    seen, every = np.zeros(len(entities), dtype=bool), np.ones(len(relations), dtype=bool)
    seen[tables.splits["train"][:, [0, 2]]] = True
    for path, line, column, label, n_lines in outsiders(files, tables, (seen, every)):
        problem = (
            f"{COLUMNS[column]} {label!r} is not in the inference graph {inference.name}, so it "
            f"is not a candidate ({n_lines:,} triples have such entities)"
        )
        hint = "leave these triples out, or add the entity's triples to the inference graph"
        refuse(path, line, problem, hint)
    trained = read_label_triples({"train": training}).labels[1]
    shared = sort_labels([relations.to_arrow(), trained.to_arrow()])
    new_ids = shared.positions(relations.to_arrow()).astype(np.int32)
    for rows in tables.splits.values():
        renumber_column(rows[:, 1], new_ids)
    return GraphTables(tables.splits, entities, shared)


_TRIPLES = "each line must be head, relation and tail, as numbers from 0"


def read_libkge(folder: Path, columns: str | None = None) -> GraphTables:
    """Read the splits that ``dataset.yaml`` names, with LibKGE's own numbers."""
    settings = _settings(folder / "dataset.yaml")
    names = [(f"files.{kind}_ids.filename", f"{kind}_ids.del") for kind in ("entity", "relation")]
    labels = [_read_map(folder / str(settings.get(*name))) for name in names]
    files = {}
    for split in SPLITS:
        named = settings.get(f"files.{split}.filename")
        path = folder / str(named or f"{split}.del")
        if named or path.is_file():
            files[split] = path
    if not files:
        hint = "run LibKGE's preprocessing of this dataset"
        refuse(folder, None, "no train.del, valid.del or test.del", hint)
    return read_number_triples(files, labels, columns or "hrt", _TRIPLES)


def list_named_files(folder: Path) -> set[str]:
    """Return the names of all files that LibKGE's ``dataset.yaml`` lists."""
    settings = _settings(folder / "dataset.yaml")
    return {str(name) for key, name in settings.items() if key.endswith(".filename")}


def _settings(path: Path) -> dict[str, Any]:
    """Read the keys under ``dataset``; nested keys are joined by dots, as in LibKGE."""
    try:
        import yaml
    except ImportError:
        raise UsageError(
            f"{path} needs PyYAML, which is not installed; pip install 'kgtrec[libkge]'"
        ) from None
    try:
        with open(path, "rb") as file:
            loaded = yaml.safe_load(file)
    except OSError as error:
        hint = "give a folder of LibKGE's data"
        raise FileError(path, found=f"cannot be read ({reason_of(error)})", hint=hint) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise FileError(
            path, line, found=f"not YAML ({problem})", hint="correct the file"
        ) from None
    settings = loaded.get("dataset") if isinstance(loaded, dict) else None
    if not isinstance(settings, dict):
        refuse(path, None, "no key 'dataset'", "use LibKGE's dataset.yaml")
    try:
        return dict(_flat(settings, ""))
    except RecursionError:  # an alias of a node that contains it
        raise FileError(path, found="a key that contains itself", hint="correct the file") from None


def _flat(settings: dict[Any, Any], start: str) -> Any:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{key}.")
        else:
            yield f"{start}{key}", value


_SIZES = ("num_nodes", "num_relations")
_HINT = (
    "save the arrays head, relation and tail of each split with numpy.savez, as integers of one "
    "length; add num_nodes and num_relations if some of them have no triple"
)


def read_ogb(folder: Path, columns: str | None = None) -> GraphTables:
    """Read ``train.npz``, ``valid.npz`` and ``test.npz``, with OGB's own numbers."""
    splits: dict[str, Array] = {}
    sizes: dict[str, int] = {}
    files = split_files(folder, (".npz",))
    for split, path in files.items():
        arrays = load_arrays(path, (*COLUMNS, *_SIZES), _HINT)
        parts = [_column(path, arrays, name) for name in COLUMNS]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(f"{name} {len(p)}" for name, p in zip(COLUMNS, parts, strict=True))
            problem = f"arrays of different lengths: {lengths}"
            refuse(path, None, problem, _HINT)
        splits[split] = np.stack(parts, axis=1)
        declared = {name: arrays[name] for name in _SIZES if name in arrays}
        sizes |= {
            n: int(a.max()) for n, a in declared.items() if a.size == 1 and a.dtype.kind in "iu"
        }
    for column, name in enumerate(COLUMNS):
        key = _SIZES[column == 1]
        if key not in sizes:
            check_likely(files, splits, column, f"correct it, or also save {key}")
            continue
        for split, rows in splits.items():
            if rows[:, column].max(initial=0) >= sizes[key]:
                problem = f"{name} {rows[:, column].max(initial=0)}, but {key} is {sizes[key]:,}"
                refuse(files[split], None, problem, "correct one of them")
    return GraphTables(splits, None, None, sizes.get("num_nodes"), sizes.get("num_relations"))


def _column(path: Path, arrays: dict[str, Array], name: str) -> Array:
    column = arrays.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind not in "iu":
        problem = f"no array {name}"
        if column is not None:
            problem = f"array {name} is {column.dtype} of shape {column.shape}"
        refuse(path, None, problem, _HINT)
    return id_column(path, name, column, "ids must be numbers from 0")


_FOLDERS = {"train": "training", "valid": "validation", "test": "testing"}
_PYKEEN_TRIPLES = "after the first line (head relation tail), write three numbers from 0 per line"
_PYKEEN_MAP = "after the first line (id label), write number<TAB>label per line, numbers from 0"


def read_pykeen(folder: Path, columns: str | None = None) -> GraphTables:
    """Read the splits of a dataset's folder, with PyKEEN's own numbers and labels."""
    homes = {split: folder / name for split, name in _FOLDERS.items() if (folder / name).is_dir()}
    if not homes and (folder / "numeric_triples.tsv.gz").is_file():
        homes = {"train": folder}
    if not homes:
        hint = "give the folder that dataset.to_directory_binary wrote"
        refuse(folder, None, "no training, validation or testing folder", hint)
    first = next(iter(homes.values()))
    labels = [_labels_of(first, kind) for kind in ("entity", "relation")]
    for home in homes.values():
        if labels != [_labels_of(home, kind) for kind in ("entity", "relation")]:
            refuse(
                home,
                None,
                f"its labels differ from those of {first}",
                "give all splits' factories the same entity_to_id= and relation_to_id=",
            )
    files = {split: home / "numeric_triples.tsv.gz" for split, home in homes.items()}

    def lines_in(path: Path) -> Iterator[tuple[int, bytes]]:
        for line, fields in _after_header(path, [*COLUMNS]):
            yield line, b"\t".join(fields)

    return read_number_triples(files, labels, "hrt", _PYKEEN_TRIPLES, lines_in)


def _labels_of(home: Path, kind: str) -> Labels:
    path = home / f"{kind}_to_id.tsv.gz"
    rows = (
        (line, b"\t".join(fields), *(fields if len(fields) == 2 else (b"", b"")))
        for line, fields in _after_header(path, ["id", "label"])
    )
    return labels_by_id(path, rows, _PYKEEN_MAP).labels


def _after_header(path: Path, header: list[str]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the fields of every line, with quotes as pandas writes them."""
    rows = read_delimited_rows(path, "\t", "write it again")
    _, first = next(rows, (1, []))
    if first != header:
        problem = f"the first line is {' '.join(first)[:60]!r}"
        refuse(path, 1, problem, f"it must be {' '.join(header)!r}")
    for line, fields in rows:
        yield line, [*map(bytes_of, fields)]
