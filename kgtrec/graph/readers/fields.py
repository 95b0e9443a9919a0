"""Tab-separated labels as triples, with notes on unusual labels.

In: files with a line per fact. Out: `GraphTables` with notes. `read_label_triples` is the reader of
usual folders. `add_notes` checks the labels of any reader that numbers them in byte order.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.arrays import Array, Int64
from kgtrec.errors import refuse
from kgtrec.graph.id_files import arrow_bytes, bytes_of
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.common import GraphTables, sort_labels
from kgtrec.graph.readers.faults import scan
from kgtrec.graph.readers.headings import Heading, decide_order, read_headings
from kgtrec.graph.tsv import Explain, load_facts, quote_line, renumber_column

ENTITY, RELATION = 0, 1
"""Indices of the kinds of labels in `GraphTables.labels`."""


def read_label_triples(
    files: Mapping[str, Path], columns: str | None = None, progress: bool = False, form: str = ""
) -> GraphTables:
    """Read lines of three labels with tabs between them; ids are in the order of `order_labels`.

    The order of columns is hrt unless it is declared, or a first line names the columns. With the
    name of a format that takes a declaration, ``form``, a doubtful order gets a note.
    """
    n_tabs = dict.fromkeys(files, 2)
    explain = partial(scan, columns=columns or "hrt", files=files)
    return fact_tables(files, n_tabs, explain, columns, progress, form)[0]


def fact_tables(
    files: Mapping[str, Path],
    n_tabs: Mapping[str, int],
    explain: Explain,
    columns: str | None = None,
    progress: bool = False,
    form: str = "",
) -> tuple[GraphTables, Any]:
    """Read the facts of files, with notes; also return an Arrow array of their times.

    The arguments are those of `read_label_triples` and of `load_facts`.
    """
    headings = read_headings(files, columns)
    order = decide_order(columns, headings)
    times = None

    def load(with_heading: frozenset[str]) -> GraphTables:
        nonlocal times
        facts, entities, relations, times = load_facts(
            files, n_tabs, explain, progress, order, with_heading
        )
        return GraphTables({**facts}, entities, relations, files=files, with_heading=with_heading)

    tables = below_headings(headings, load)
    if form and not columns and not headings and (doubt := order_doubt(tables, form)):
        tables = replace(tables, notes=(*tables.notes, doubt))
    return tables, times


def below_headings(
    headings: Mapping[str, Heading],
    load: Callable[[frozenset[str]], GraphTables],
    is_required: bool = False,
) -> GraphTables:
    """Load facts without headings, with notes; ``load`` takes the splits that have a heading.

    A heading that the format requires is skipped without a note.
    """
    tables = load(frozenset(headings))
    everywhere = is_required or 1 < len(tables.files) == len(headings)
    if everywhere:
        _refuse_repeated_headings(headings, tables)
    facts = [] if everywhere else [split for split in headings if _recurs(headings[split], tables)]
    if facts:
        tables = load(frozenset(headings) - set(facts))
    notes = () if is_required else tuple(_heading_notes(headings, facts))
    return add_notes(replace(tables, notes=notes))


def _ids_of(heading: Heading, tables: GraphTables) -> list[int]:
    """Return ids of the names of head, relation, tail as labels; -1 if a name is not a label."""
    names = [arrow_bytes([name]) for name in heading.labels]
    return [int(tables.labels[at & 1].positions(name)[0]) for at, name in enumerate(names)]


def _recurs(heading: Heading, tables: GraphTables) -> bool:
    """Return whether a name is a label in another line, so that the heading may be a fact."""
    return any(number >= 0 for number in _ids_of(heading, tables))


def _refuse_repeated_headings(headings: Mapping[str, Heading], tables: GraphTables) -> None:
    for split, heading in headings.items():
        ids = _ids_of(heading, tables)
        again = np.flatnonzero((tables.splits[split][:, :3] == ids).all(axis=1))
        if len(again):
            problem = f"the names of the columns again: {quote_line(heading.line)}"
            line = tables.line_of(split, int(again[0]))
            refuse(heading.path, line, problem, "delete this line")


def _heading_notes(headings: Mapping[str, Heading], facts: Collection[str]) -> Iterator[str]:
    if skipped := [heading for split, heading in headings.items() if split not in facts]:
        files = ", ".join(heading.path.name for heading in skipped)
        yield (
            f"the first line of {files} names the columns ({skipped[0].names}), so it is skipped; "
            "if it is a triple, move it to another line"
        )
    for split in facts:
        yield (
            f"the first line of {headings[split].path.name} ({headings[split].names}) looks like "
            "names of columns, but its labels also occur in other lines, so it is read as a "
            "triple; delete it if it names the columns"
        )


# -- Blanks around labels --------------------------------------------------------------------------

_INVISIBLE = "\ufeff\u200b"
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _INVISIBLE
_ENDS = np.zeros((2, 256), bool)  # bytes with which a blank begins, and ends
_ENDS[0, [blank.encode()[0] for blank in _BLANKS]] = True
_ENDS[1, [blank.encode()[-1] for blank in _BLANKS]] = True


def add_notes(tables: GraphTables, has_lines: bool = True) -> GraphTables:
    """Add notes on labels to tables; merge labels that differ only in outer blanks.

    Notes name lines if ``has_lines``: each fact is a line of its file.
    """
    tables = _without_blanks(tables, has_lines)
    return replace(tables, notes=(*tables.notes, *_encoding_notes(tables, has_lines)))


def _without_blanks(tables: GraphTables, has_lines: bool) -> GraphTables:
    """Remove blanks around labels if that merges some or leaves only numbers; else note them."""
    padded = [_find_padded(labels) for labels in tables.labels]
    n_padded = sum(map(len, padded))
    if not n_padded:
        return tables
    stripped = [
        _strip_blanks(labels, ids) for labels, ids in zip(tables.labels, padded, strict=True)
    ]
    labels = [sort_labels([texts]) for texts in stripped]
    n_merged = sum(map(len, tables.labels)) - sum(map(len, labels))
    label, where = _example(tables, padded, has_lines)
    few = f"{n_padded:,} labels begin or end with blanks, first {label!r} in {where}"
    if not n_merged and not all(map(_are_numbers, labels)):
        note = f"{few}; the blanks are parts of the labels: remove them if they only fill columns"
        return replace(tables, notes=(*tables.notes, note))
    note = f"{few}; the blanks are removed"
    if n_merged:
        note += f", because {n_merged:,} labels occur with and without them"
    new_ids = [
        kind_labels.positions(texts).astype(np.int32)
        for kind_labels, texts in zip(labels, stripped, strict=True)
    ]
    for kind, column in _columns_of(tables):
        renumber_column(column, new_ids[kind])
    return replace(
        tables, entities=labels[ENTITY], relations=labels[RELATION], notes=(*tables.notes, note)
    )


def _columns_of(tables: GraphTables) -> Iterator[tuple[int, Array]]:
    """Yield every column of ids, and whether these are entities or relations."""
    for rows in tables.splits.values():
        yield from ((ENTITY, rows[:, 0]), (RELATION, rows[:, 1]), (ENTITY, rows[:, 2]))
    for _, pairs in (tables.qualifiers or {}).values():
        yield from ((RELATION, pairs[:, 0]), (ENTITY, pairs[:, 1]))


def _find_padded(labels: Labels) -> Int64:
    """Return ids of labels that begin or end with blanks and have other characters, too."""
    if labels.is_decimal:
        return np.empty(0, np.int64)
    bounds, content = labels.text
    raw = np.frombuffer(content, np.uint8)
    likely = _ENDS[0][raw[bounds[:-1]]] | _ENDS[1][raw[bounds[1:] - 1]]
    ids = np.flatnonzero(likely)
    texts = labels[ids]
    some = [text.strip(_BLANKS) not in ("", text) for text in texts]
    return ids[np.array(some, bool)]


def _strip_blanks(labels: Labels, padded: Int64) -> Any:
    """Return labels as an Arrow array, without the blanks around the padded ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = np.zeros(len(labels), bool)
    mask[padded] = True
    texts = arrow_bytes([bytes_of(text.strip(_BLANKS)) for text in labels[padded]])
    return pc.replace_with_mask(labels.to_arrow(), pa.array(mask), texts)


def _are_numbers(labels: Labels) -> bool:
    import pyarrow.compute as pc

    return labels.is_decimal or bool(
        pc.all(pc.match_substring_regex(labels.to_arrow(), "^[0-9]+$")).as_py()
    )


def _example(tables: GraphTables, ids: Sequence[Int64], has_lines: bool) -> tuple[str, str]:
    """Return the first label in files that has one of these ids, and its file and line.

    ``ids`` has ids of entities, and ids of relations.
    """
    masks = [np.zeros(len(labels), bool) for labels in tables.labels]
    for mask, some in zip(masks, ids, strict=True):
        mask[some] = True
    for split, rows in tables.splits.items():
        hits = np.stack([masks[at & 1][rows[:, at]] for at in range(3)], axis=1)
        if hits.any():
            row, at = map(int, np.argwhere(hits)[0])
            name = tables.files[split].name if split in tables.files else split
            label = tables.labels[at & 1][int(rows[row, at])]
            return label, name + f":{tables.line_of(split, row)}" * has_lines
    kind = int(not len(ids[ENTITY]))
    return tables.labels[kind][int(ids[kind][0])], "a qualifier"


# -- Encodings -------------------------------------------------------------------------------------


def _encoding_notes(tables: GraphTables, has_lines: bool) -> Iterator[str]:
    """Yield notes on labels in several encodings, and in several Unicode forms."""
    forms = [_forms(labels) for labels in tables.labels]
    foreign = [_ids(forms_of_kind, lambda form: not form.is_utf8) for forms_of_kind in forms]
    modern = [_ids(forms_of_kind, lambda form: form.is_utf8) for forms_of_kind in forms]
    if any(map(len, foreign)) and any(map(len, modern)):
        (other, at), (utf8, there) = (_example(tables, ids, has_lines) for ids in (foreign, modern))
        yield (
            f"{sum(map(len, foreign)):,} labels are not UTF-8, first {show_label(other)} in {at}, "
            f"but {sum(map(len, modern)):,} are, first {show_label(utf8)} in {there}; save all "
            "files as UTF-8, so that equal labels are equal"
        )
    for name, forms_of_kind, labels in zip(
        ("entities", "relations"), forms, tables.labels, strict=True
    ):
        groups: dict[str, list[int]] = defaultdict(list)
        for form in forms_of_kind:
            groups[form.text].append(form.number)
        twins = [ids for ids in groups.values() if len(ids) > 1]
        if twins:
            examples = " and ".join(show_label(labels[number]) for number in twins[0])
            yield (
                f"{sum(map(len, twins)):,} {name} are the same text in another encoding or Unicode "
                f"form, first {examples}; write the files in one encoding (UTF-8) and form (NFC), "
                "or they count as different"
            )


class _Form(NamedTuple):
    """A label beyond ASCII: its id, its text in Unicode's form NFC, and whether it is UTF-8."""

    number: int
    text: str
    is_utf8: bool


def _forms(labels: Labels) -> list[_Form]:
    """Return the labels beyond ASCII, decoded as UTF-8 or Latin-1 and normalised."""
    forms = []
    for number in _beyond_ascii(labels).tolist():
        raw, is_utf8 = bytes_of(labels[number]), True
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text, is_utf8 = raw.decode("latin-1"), False
        else:
            with suppress(UnicodeError):  # UTF-8 that was read as Latin-1 and written again
                text = text.encode("latin-1").decode()
        forms.append(_Form(number, unicodedata.normalize("NFC", text), is_utf8))
    return forms


def _ids(forms: Sequence[_Form], is_chosen: Callable[[_Form], bool]) -> Int64:
    return np.array([form.number for form in forms if is_chosen(form)], np.int64)


_BYTES = 1 << 24


def _beyond_ascii(labels: Labels) -> Int64:
    """Return the ids of labels with bytes above 127."""
    if labels.is_decimal:
        return np.empty(0, np.int64)
    bounds, content = labels.text
    raw = np.frombuffer(content, np.uint8)
    parts = [np.empty(0, np.int64)]
    for start in range(int(bounds[0]), int(bounds[-1]), _BYTES):
        at = start + np.flatnonzero(raw[start : min(start + _BYTES, int(bounds[-1]))] > 127)
        parts.append(np.unique(np.searchsorted(bounds, at, side="right") - 1))
    return np.unique(np.concatenate(parts))


def show_label(label: str) -> str:
    """Escape a label for messages, so that its bytes and code points are visible."""
    return ascii(label.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


# -- The order of columns --------------------------------------------------------------------------

_DOUBTFUL = 0.1
_WHOLE = re.compile(rb"[0-9]+")


def order_doubt(tables: GraphTables, form: str) -> str:
    """Return a warning if many relations are also entities, and name a better order, if any.

    In graphs that are read rightly, no label of a relation is one of an entity, unless labels are
    numbers.
    """
    entities, relations = tables.labels
    shared = [n for n, at in enumerate(_find_positions(relations, entities)) if at >= 0]
    shared = [n for n in shared if not _WHOLE.fullmatch(bytes_of(relations[n]))]
    if len(shared) <= _DOUBTFUL * len(relations):
        return ""
    doubt = (
        f"{len(shared):,} of {len(relations):,} relations are also entities, first "
        f"{relations[shared[0]]!r}"
    )
    shares = _shared_labels(tables)
    best = int(np.argmin(shares))
    if shares[best] >= shares[1]:
        return f"{doubt}; check the order of the columns, which must be head, relation, tail"
    order, other, column = ("rht", "rth", "first") if best == 0 else ("htr", "thr", "third")
    return (
        f"{doubt}; the {column} column looks like the relation: declare the order, as in "
        f"{form},{order}:DIR ({other} if tails come before heads)"
    )


def _find_positions(some: Labels, labels: Labels) -> list[int]:
    """Return the id of each of some labels among others; -1 if it is absent."""
    if not labels.is_ascending or 64 * len(some) > len(labels):
        return labels.positions(some.to_arrow()).tolist()
    array, positions = labels.to_arrow(), []
    for text in map(bytes_of, some):
        at = bisect_left(range(len(labels)), text, key=lambda number: array[number].as_py())
        positions.append(at if at < len(labels) and array[at].as_py() == text else -1)
    return positions


def _shared_labels(tables: GraphTables) -> list[float]:
    """Return, per column, the share of its labels that also occur in the other two."""
    entities, relations = tables.labels
    known = entities.positions(relations.to_arrow())
    number = np.where(known >= 0, known, len(entities) + np.arange(len(relations)))
    occurs = np.zeros((3, len(entities) + len(relations)), bool)
    for rows in tables.splits.values():
        occurs[0, rows[:, 0]] = occurs[2, rows[:, 2]] = True
        occurs[1, number[rows[:, 1]]] = True
    return [
        float((occurs[at] & (occurs[at - 1] | occurs[at - 2])).sum() / occurs[at].sum())
        for at in range(3)
    ]
