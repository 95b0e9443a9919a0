"""Users' labels of evaluated triples: a TSV file, or one label per triple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from kgtrec._internal.arrays import Int64
from kgtrec.errors import InputError, UsageError, refuse
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.triples import COLUMNS
from kgtrec.ranking.instances import triple_ids
from kgtrec.ranking.parquet import encode_labels
from kgtrec.ranking.ranks import Ranks

UNLABELLED = "(no label)"
TripleLabels = str | PathLike[str] | Sequence[str]
Triple = tuple[str, str, str]


def triple_labels(ranks: Ranks, source: TripleLabels) -> tuple[Int64, list[str]]:
    """Return the label of every instance's triple: a code, int64 (n,), and the labels by code."""
    if isinstance(source, (str, PathLike)):
        labels = _from_file(ranks, Path(source))
    else:
        labels = _from_sequence(ranks, source)
    names = sorted({label for label in labels if label is not None})
    index_of: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    index_of[None] = len(names)
    code = np.array([index_of[label] for label in labels], np.int64)
    return code, names + [UNLABELLED] * bool((code == len(names)).any())


def _from_sequence(ranks: Ranks, labels: Sequence[str]) -> list[str | None]:
    """Check one label per triple of the split, and return one per instance."""
    facts, least = ranks.provenance, int(ranks.triple.max(initial=-1)) + 1
    of_triples = facts.sides != "qualifier"  # rows of "qualifier" are qualifiers
    n_triples = facts.triples.get(facts.split or "") if of_triples else None
    # A surplus label would shift others.
    if len(labels) < least if n_triples is None else len(labels) != n_triples:
        size = f"at least {least}" if n_triples is None else f"{n_triples}"
        repeats = facts.duplicates_dropped.get(facts.split or "")
        raise InputError(
            f"{len(labels)} labels were given for {size} triples; give one label per triple, in "
            f"the order of the split{f' without its {repeats} repeats' if repeats else ''}"
        )
    for row, label in enumerate(labels):
        if not isinstance(label, str) or not label:
            raise InputError(f"label {row} is {label!r}; labels must be texts that are not empty")
    return [str(labels[row]) for row in ranks.triple.tolist()]


def _from_file(ranks: Ranks, path: Path) -> list[str | None]:
    """Read the labels of a TSV file; None for triples that it lacks."""
    triples = triples_in_labels(ranks)
    evaluated, order = set(triples), ranks.provenance.column_order
    entries: dict[Triple, tuple[str, int]] = {}
    first: tuple[Triple, int] | None = None
    for number, triple, label in _lines(path, order):
        first = first or (triple, number)
        if triple not in evaluated:
            continue
        known, line = entries.setdefault(triple, (label, number))
        if known != label:
            problem = f"{' '.join(triple)!r} has label {label!r}, but {known!r} in line {line}"
            refuse(path, number, problem, "keep one label per triple")
    if not entries and first is None:
        refuse(path, None, "the file is empty", _line_form(order))
    if not entries and first is not None:
        problem = f"no triple of this file was evaluated; this one is {' '.join(first[0])!r}"
        names = ", ".join(_names(order))
        example = " ".join(triples[0]["hrt".index(letter)] for letter in order)
        form = f"write {names} and label, as in {example!r}"
        refuse(path, first[1], problem, form)
    return [entries[triple][0] if triple in entries else None for triple in triples]


def triples_in_labels(ranks: Ranks) -> list[Triple]:
    """Return (head, relation, tail) of every instance, in labels."""
    relations, entities = ranks.relation_labels, ranks.entity_labels
    if relations is None or entities is None:
        raise UsageError(
            "these ranks have no labels of entities and relations, which a file of labels needs; "
            "give a sequence with one label per triple of the evaluated split"
        )
    heads, relation, tails = triple_ids(ranks)
    ends = (heads, tails)
    used = np.unique(ends)
    encoded = encode_labels(entities, used).to_pylist()
    names = (name.decode("utf-8", "surrogateescape") for name in encoded)
    label = dict(zip(used.tolist(), names, strict=True))
    rows = zip(heads.tolist(), relation.tolist(), tails.tolist(), strict=True)
    return [(label[head], relations[number], label[tail]) for head, number, tail in rows]


def _names(order: str) -> list[str]:
    """Return the names of columns in an order such as "hrt"."""
    return [COLUMNS["hrt".index(letter)] for letter in order]


def _line_form(order: str) -> str:
    """Return the form of a line, for messages."""
    return "each line must be " + "<TAB>".join([*_names(order), "label"])


def _lines(path: Path, order: str) -> Iterator[tuple[int, Triple, str]]:
    """Yield number, triple and label of every line; spaces around the label are dropped."""
    head, relation, tail = (order.index(letter) for letter in "hrt")
    for number, line in lines_of(path):
        cells = text_of(line).split("\t")
        if len(cells) != 4:
            refuse(
                path, number, f"{len(cells)} columns in {text_of(line)[:200]!r}", _line_form(order)
            )
        if not cells[3].strip():
            refuse(path, number, "an empty label", _line_form(order))
        yield number, (cells[head], cells[relation], cells[tail]), cells[3].strip()
