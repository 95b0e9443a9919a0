"""Known answers of a graph's questions: filter protocols, evaluated triples, files of facts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int32, Int64
from kgtrec._internal.csr import (
    Csr,
    contains,
    distinct,
    finder,
    inverse,
    offsets_of,
    owners,
    position_type,
    spans,
    stack,
    to_csr,
)
from kgtrec.errors import FilterWarning, InputError, PathName, UsageError, choose, refuse
from kgtrec.graph.graph import GraphData
from kgtrec.graph.id_files import SKIP, check_unknown
from kgtrec.graph.labels import Labels
from kgtrec.graph.readers.text import read_known_file
from kgtrec.graph.triples import (
    QualifierSets,
    as_triples,
    build_given_rows,
    build_value_rows,
    check_ids,
    number_sets,
    set_labels,
)
from kgtrec.questions.candidates import label_ids
from kgtrec.questions.graph_terms import COLUMNS, AskedSide, GraphTerms
from kgtrec.questions.questions import is_usual_filter
from kgtrec.questions.terms import SIDES


class KnownFacts(NamedTuple):
    """Facts that count as known.

    - facts, int32 (n, 3) or (n, 4): Ids of the graph. The fourth column is the time or the set of
      qualifiers; -1 if the graph does not have it.
    - values, int32 (m, 4) or None: Facts about qualifiers' values, as in
      `GraphData.qualifier_facts`. None: they are derived from the facts.
    """

    facts: Int32
    values: Int32 | None = None


def read_known(
    path: PathName,
    graph: GraphData,
    unknown: str = "error",
    context: str | None = None,
    hint: str = SKIP,
    order: str = "hrt",
) -> tuple[KnownFacts, dict[str, Any]]:
    """Read known facts from a file with lines as in a split; return them and facts for manifests.

    A label of an entity or relation that the graph does not have is an error, whose advice is
    `hint`; with `unknown="skip"`, its line is left out and counted. A time or set of qualifiers may
    be new. ``order`` is that of head, relation and tail in a line.
    """
    check_unknown(unknown)
    tables = read_known_file(path, context, None if order == "hrt" else order)
    rows, offsets, pairs = tables.splits["known"], np.zeros(1, np.int64), np.empty((0, 2), np.int64)
    if tables.qualifiers is not None:
        offsets, pairs = tables.qualifiers["known"]
    ids_of = [*map(_find_ids, (graph.entities, graph.relations), tables.labels)]
    every, owner = np.arange(len(rows)), owners(offsets)
    # Per column of labels: name, row of the fact, kind, number in the file, and id in the graph.
    columns = [
        (name, fact, kind, codes, ids_of[kind][codes])
        for name, fact, kind, codes in (
            ("head", every, 0, rows[:, 0]),
            ("relation", every, 1, rows[:, 1]),
            ("tail", every, 0, rows[:, 2]),
            ("qualifier relation", owner, 1, pairs[:, 0]),
            ("qualifier value", owner, 0, pairs[:, 1]),
        )
    ]
    all_ids = [column[-1] for column in columns]
    bad = np.zeros(len(rows), bool)
    for _, fact, _, _, ids in columns:
        bad[fact[ids < 0]] = True
    n_bad = int(bad.sum())
    if n_bad and unknown == "error":
        row = int(np.argmax(bad))
        name, label = next(
            (name, tables.labels[kind][codes[at]])
            for name, fact, kind, codes, ids in columns
            for at in np.flatnonzero((fact == row) & (ids < 0))
        )
        lines = f", nor are labels of {n_bad - 1:,} more lines" if n_bad > 1 else ""
        refuse(path, row + 1, f"{name} {label!r} is not in the graph{lines}", hint)
    details = {"file": str(path), "triples": len(rows) - n_bad, "unknown": n_bad}
    triples = np.column_stack(all_ids[:3])[~bad]
    pairs = np.column_stack(all_ids[3:])[~bad[owner]]
    if tables.qualifiers is not None:
        return _join_qualifiers(graph, triples, np.diff(offsets)[~bad], pairs), details
    times = [_find_ids(graph.contexts, tables.times)[rows[~bad, 3]]] if tables.times else []
    return KnownFacts(np.column_stack([triples, *times]).astype(np.int32)), details


def _join_qualifiers(graph: GraphData, triples: Int64, counts: Int64, pairs: Int64) -> KnownFacts:
    """Join triples of a file with their qualifiers.

    - counts (n,): Number of qualifiers of each triple.
    - pairs (m, 2): Ids of relation and value of all qualifiers, triple after triple.
    """
    numbers, sets = number_sets({"known": (offsets_of(counts), pairs)})
    id_of = _find_ids(graph.contexts, set_labels(sets, graph.entities, graph.relations))
    # Sets are numbered as in the file, but the sets that remain without a pair as in the graph.
    without = np.where(sets.without < 0, -1, id_of[sets.without]).astype(np.int32)
    file_sets = QualifierSets(sets.offsets, sets.pairs, without)
    facts, in_file = (
        np.column_stack([triples, column]).astype(np.int32)
        for column in (id_of[numbers["known"]], numbers["known"])
    )
    return KnownFacts(facts, graph.map_qualifiers(build_value_rows, in_file, file_sets))


def _find_ids(labels: Labels | None, names: Any) -> Int64:
    """Return the id of each name; -1 for names that are not among the labels."""
    assert labels is not None  # the graph has contexts, and a reader gives all labels
    return labels.positions(Labels.from_strings(names).to_arrow())


_CHUNK = 1 << 18
"""Number of triples of other splits that are looked up at a time."""

PROTOCOLS: dict[str, tuple[str, ...] | None] = {
    "all": None,
    "test": ("train", "valid", "test"),
    "valid": ("train", "valid"),
    "raw": (),
    "none": (),
}
"""Splits of each named filter; None is every split. "test" and "valid" are what is known then."""


CONTEXT_FILTERS = {
    "time": ("time-aware", "static", "raw"),
    "qualifiers": ("qualifier-aware", "static", "raw"),
}
"""Filters per kind of context: facts at the same context are known; at any context; none."""

CONTEXT_FILTER_NAMES = ("time-aware", "qualifier-aware", "static")
"""Filters that need a graph with contexts."""


class Filter(NamedTuple):
    """The arguments of `Graph.questions` that decide which facts are known.

    They are `filter`, `filter_splits`, `extra_known`, `known`, `unknown` and `context`.
    """

    name: str | Iterable[str] | None = None
    splits: Iterable[str] | None = None
    extra: npt.ArrayLike | None = None
    files: PathName | Sequence[PathName] = ()
    unknown: str = "error"
    context: str | None = None


def split_fields(
    graph: GraphData, split: str, sides: str, known: Filter, entities: Any, relations: Any
) -> dict[str, Any]:
    """Return the fields of the questions of a split; `Graph.questions` has the parameters."""
    choose("sides", sides, COLUMNS)
    if not len(graph.split(split)):
        raise UsageError(
            f"split {split!r} has no triples, so it has no questions; choose another split"
        )
    if sides == "qualifier" and not graph.n_qualified.get(split):
        raise UsageError(
            f"no fact of split {split!r} has a qualifier, so there is no question for one; choose "
            f"another split, or {argument('sides', 'both')}"
        )
    known, at_context = _check_context(graph, known)
    filters, details = filter_splits(graph, known, split)
    details |= at_context
    static = at_context.get("context_filter") == "static"
    extra, n_extra = _read_further(graph, known, details)
    aspects = [AskedSide.from_graph(graph, code) for code in SIDES[sides]]
    rows = _select_rows(aspects[0], split, entities, relations, details)
    parts = [
        _ask(side, split, rows, _others(side, split, filters, extra, static), split in filters)
        for side in aspects
    ]
    codes = np.array([side.code for side in aspects], np.int8)
    codes = np.repeat(codes, [part.pop("n") for part in parts])
    fields = _join_parts(parts)
    if rows is not None:
        fields["instance_triple"] = rows[fields["instance_triple"]]
    given, context = fields.pop("given"), fields.pop("context")
    terms = GraphTerms(graph, split, sides, filters, n_extra, codes, given, context, rows)
    if rows is not None:
        terms = terms.keep_names()
    return {"origin": terms, **fields, "details": details}


def _check_context(graph: GraphData, known: Filter) -> tuple[Filter, dict[str, Any]]:
    """Check `filter` and `context` of the arguments against the graph's contexts.

    Return the arguments with a filter by splits alone, and the manifest's entries on the context.
    """
    name = graph.context_name
    if name is None:
        if known.context is not None or known.name in CONTEXT_FILTER_NAMES:
            values = {"context": known.context, "filter": known.name}
            shown = [argument(name, value) for name, value in values.items() if value is not None]
            raise UsageError(
                f"{', '.join(shown)}: the facts of this graph have no time and no qualifiers; read "
                "it as timed:DIR or statements:DIR, or give arrays with a fourth column, or with "
                f"{argument('qualifiers')}"
            )
        return known, {}
    choices = CONTEXT_FILTERS[name]
    if known.context != name:
        have = "a time" if name == "time" else "qualifiers"
        but = f", but {argument('context', known.context)}" if known.context is not None else ""
        raise UsageError(
            f"the facts of this graph have {have}{but}; pass {argument('context', name)}; the "
            f"filter is then {choices[0]!r}, 'static' or 'raw'"
        )
    chosen = choices[0] if known.name is None else known.name
    if isinstance(chosen, str) and ":" in chosen:  # time-aware:test
        chosen, _, splits = chosen.partition(":")
        if known.splits is not None:
            raise UsageError(
                f"{argument('filter', known.name)} and {argument('filter_splits', known.splits)} "
                "both name splits; give one of them"
            )
        known = known._replace(splits=tuple(splits.split("+")))
    unclear = f"does not say which facts are known at a context ({name})"
    choose("filter", chosen, choices, unclear, f"one with splits, as {choices[0]}:train+test")
    details = {"context": name, "context_filter": chosen}
    return (known if chosen == "raw" else known._replace(name=None)), details


def filter_splits(
    graph: GraphData, known: Filter, evaluated: str
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the splits whose triples are known, and the manifest's entries on the filter.

    FilterWarning if splits are left out and no known protocol does so.
    """
    choice, name = known.splits, "all" if known.splits is None else None
    if known.name is not None:
        if choice is not None:
            raise UsageError(
                f"{argument('filter', known.name)} and {argument('filter_splits', choice)} both "
                "choose the filter; give "
                "one"
            )
        name, choice = _find_protocol(graph, known.name)
    if choice is None:
        names = set(graph.splits)
    elif isinstance(choice, Iterable):
        names = {choice} if isinstance(choice, str) else set(choice)
    else:
        raise UsageError(
            f"{argument('filter_splits', choice)} names no splits; give a tuple such as ('train',)"
        )
    for split in sorted(names, key=str):
        graph.split(split)  # raises, naming the splits that exist
    left_out = [split for split in graph.splits if split not in names]
    if names and left_out and not is_usual_filter(name, evaluated, known.context, names):
        warnings.warn(FilterWarning(_left_out(name, left_out)), stacklevel=4)  # questions()' caller
    splits = tuple(split for split in graph.splits if split in names)
    return splits, {"filter": name, "filter_left_out": left_out}


def _find_protocol(graph: GraphData, choice: Any) -> tuple[str | None, Iterable[str] | None]:
    """Return the name of the protocol, and those of its splits that the graph has.

    The name is None if `choice` names splits; the splits are None for every split.
    """
    if not isinstance(choice, str):
        return None, choice
    if choice not in PROTOCOLS:
        if choice in graph.splits:
            return None, (choice,)
        known = dict.fromkeys([*PROTOCOLS, *graph.splits])
        choose("filter", choice, known, also="several splits, as in train,test")
    name = "raw" if choice == "none" else choice
    splits = PROTOCOLS[choice]
    present = None if splits is None else tuple(split for split in splits if split in graph.splits)
    if splits and not present:
        raise UsageError(
            f"{argument('filter', choice)} means {', '.join(splits)}, but this graph has only "
            f"{', '.join(graph.splits)}; choose 'all', or 'raw' for no filter"
        )
    return name, present


def _left_out(name: str | None, left_out: list[str]) -> str:
    """Return the text of the warning that a filter leaves out splits."""
    splits = ", ".join(map(repr, left_out))
    if name == "valid":
        return (
            f"filter leaves out {splits}, as at validation time: answers known only from there "
            f"count as wrong, and ranks are not comparable with {argument('filter', 'test')}"
        )
    return (
        f"filter leaves out {splits}: answers known only from there count as wrong; "
        f"to filter by every split, leave out {argument('filter')} and "
        f"{argument('filter_splits', option='filter')}"
    )


def _read_further(
    graph: GraphData, known: Filter, details: dict[str, Any]
) -> tuple[list[KnownFacts], int]:
    """Return the facts of `extra_known` and of the files of `known`, and their number.

    Adds an entry per file to `details`.
    """
    parts = []
    if known.extra is not None:
        n_contexts = 0 if graph.contexts is None else len(graph.contexts)
        extra = as_triples("extra_known", known.extra, (4,) if n_contexts else (3,))
        sizes = graph.n_entities, graph.n_relations, n_contexts
        parts.append(KnownFacts(check_ids("extra_known", extra, *sizes)))
    files: Any = known.files
    single = isinstance(files, (str, PathLike)) or not isinstance(files, Iterable)
    paths = [files] if single else list(files)
    if not all(isinstance(path, (str, PathLike)) for path in paths):
        raise UsageError(f"{argument('known', files)} is neither a path nor a list of paths")
    for path in paths:
        part, detail = read_known(
            path, graph, known.unknown, graph.context_name, order=graph.column_order
        )
        parts.append(part)
        details.setdefault("known_files", []).append(detail)
    return parts, sum(len(part.facts) for part in parts)


def _others(
    side: AskedSide, split: str, filters: Sequence[str], extra: list[KnownFacts], static: bool
) -> list[tuple[Int32, bool]]:
    """Return the facts of a side that are known beside the evaluated ones.

    Each array comes with True if its facts are known at any context.
    """
    others = [side.facts(name) for name in filters if static or name != split]
    if not side.asks.of_statements:
        return [(rows, static) for rows in [*others, *(part.facts for part in extra)]]
    graph = side.graph
    for part in extra:
        values = part.values
        others.append(
            graph.map_qualifiers(build_value_rows, part.facts) if values is None else values
        )
    known = [(rows, static) for rows in others]
    # A question for one of several values gives the others: these are known unless nothing is.
    of_question = graph.map_qualifiers(build_given_rows, graph.facts[split])
    return [*known, (of_question, False)] if filters or extra else known


def _select_rows(
    side: AskedSide, split: str, entities: Any, relations: Any, details: dict[str, Any]
) -> Int64 | None:
    """Return the rows of a side's facts whose entities and relation are all among the given ones.

    None: all rows. Adds an entry on the subset to `details`.
    """
    if entities is None and relations is None:
        return None
    graph, triples = side.graph, side.facts(split)
    ends = triples[:, (0, 2)]
    if side.asks.of_statements:
        ends = np.column_stack([graph.statements[triples[:, 0]][:, (0, 2)], triples[:, 2]])
    mask = np.ones(len(triples), dtype=bool)
    sizes: dict[str, int | None] = {}
    for name, values, columns, size in (
        ("entities", entities, ends, graph.n_entities),
        ("relations", relations, triples[:, 1:2], graph.n_relations),
    ):
        ids = None if values is None else label_ids(name, values, size)
        sizes[name] = None if ids is None else len(ids)
        if ids is not None:
            mask &= np.isin(columns, ids, kind="table").all(axis=1)
    rows = np.flatnonzero(mask)
    if not len(rows):
        raise InputError(
            f"none of the {len(triples)} triples of split {split!r} is among the given "
            "entities and relations; check that they are those of this graph"
        )
    counts = {"triples_kept": len(rows), "triples_dropped": len(triples) - len(rows)}
    details["subset"] = sizes | counts
    return rows


def _ask(
    side: AskedSide,
    split: str,
    rows: Int64 | None,
    others: list[tuple[Int32, bool]],
    evaluated_is_known: bool,
) -> dict[str, Any]:
    """Return the fields of the questions of one side, numbered within the side.

    - rows: Rows of the evaluated facts; None: all.
    - others: Other known facts, as `_others` returns them.
    - evaluated_is_known: True if the evaluated split is in the filter.
    """
    n_labels, triples = side.n_labels, side.facts(split)
    every = side.keys(triples)
    triples, pairs = (triples, every) if rows is None else (triples[rows], every[rows])
    pairs, first, number = np.unique(pairs, return_index=True, return_inverse=True)
    if rows is not None:  # in the order of all questions, with gaps
        everywhere, appeared = np.unique(every, return_index=True)
        first = appeared[np.searchsorted(everywhere, pairs)]
    appearance = np.argsort(first)
    rank = inverse(appearance)
    # Rows of a split are distinct, so these keys are too: the sort need not be stable.
    keys = rank[number] * n_labels + triples[:, side.asks.answer]
    del number, first
    order = np.argsort(keys)
    answers = keys[order]
    del keys
    order = order.astype(position_type(len(order)))
    elsewhere = distinct([keys for other in others for keys in _look_up(side, pairs, rank, *other)])
    questions = pairs[appearance]
    del pairs, rank, appearance
    fields: dict[str, Any] = {"instance_triple": order, "n": len(questions)}
    fields["given"], fields["context"] = side.split_keys(questions)
    n_questions = len(questions)
    del questions
    # Keys are freed as soon as they are lists.
    removed = to_csr(elsewhere[~contains(answers, elsewhere)], n_questions, n_labels)
    known = distinct([elsewhere, answers]) if evaluated_is_known else elsewhere
    del elsewhere
    fields["known"] = to_csr(known, n_questions, n_labels)
    del known
    return fields | {"answers": to_csr(answers, n_questions, n_labels), "removed": removed}


def _look_up(
    side: AskedSide, pairs: Int64, rank: Int64, triples: Int32, static: bool
) -> Iterator[Int64]:
    """Yield keys of (question, answer) of the triples that answer a question.

    The keys are not sorted, and may repeat. With `static`, a triple answers at any context.
    """
    n_labels, n_contexts = side.n_labels, side.sizes[3]
    if static:  # a pair is asked in several contexts, and a fact answers it in all of them
        every, starts, counts = np.unique(
            pairs // n_contexts, return_index=True, return_counts=True
        )
        pairs, n_contexts = every, 1
    first_column, second = side.asks.given
    # Few of many million triples touch an asked entity: a table look-up drops the rest before
    # the binary search.
    touched = np.zeros(side.sizes[first_column], dtype=bool)
    touched[pairs // (n_contexts * side.sizes[second])] = True
    find = finder(pairs, len(triples))
    for start in range(0, len(triples), _CHUNK):
        rows = triples[start : start + _CHUNK]
        likely = touched[rows[:, first_column]]
        if 2 * np.count_nonzero(likely) < len(rows):
            rows = rows[likely]
        if rows.shape[1] > 3 and not static:
            rows = rows[rows[:, 3] >= 0]  # others have a context that no question has
        at = find(side.keys(rows, not static))
        hit = at >= 0
        if not static:
            yield rank[at[hit]] * n_labels + rows[hit, side.asks.answer]
            continue
        keys = np.unique(at[hit] * n_labels + rows[hit, side.asks.answer])
        pair, answer = keys // n_labels, keys % n_labels
        times = counts[pair]
        yield rank[spans(starts[pair], times)[1]] * n_labels + np.repeat(answer, times)


def _join_parts(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the fields of all sides into those of `Questions`. Frees the fields of the parts."""
    n_triples = len(parts[0]["instance_triple"])

    def pop(name: str) -> list[Any]:
        return [part.pop(name) for part in parts]

    fields: dict[str, Any] = {}
    for name in ("answers", "known", "removed"):
        fields[name] = stack(pop(name))
    fields["given"] = tuple(map(np.concatenate, zip(*pop("given"), strict=True)))
    contexts = pop("context")
    fields["context"] = None if contexts[0] is None else np.concatenate(contexts)
    fields["instance_triple"] = np.concatenate(pop("instance_triple"))
    # Every question has an answer: its number is the count of questions begun before.
    answers: Csr = fields["answers"]
    number = np.zeros(len(answers.ids), position_type(len(answers)))
    number[answers.offsets[1:-1]] = 1
    fields["instance_question"] = np.cumsum(number, dtype=number.dtype, out=number)
    # The instance of each triple, one side after the other.
    rows = fields["triple_rows"] = np.empty(len(number), position_type(len(number)))
    for start in range(0, len(rows), n_triples):
        triple = fields["instance_triple"][start : start + n_triples]
        of_side = rows[start : start + n_triples]
        of_side[triple] = np.arange(start, start + n_triples, dtype=rows.dtype)
    return fields
