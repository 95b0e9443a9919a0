"""Facts about a run and its judgements that change the meaning of the values, as warnings.

`kgtrec eval` prints them, and `kgtrec.trec.evaluate` warns of them, under the same conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec.errors import KgtrecWarning, QueryWarning, RunWarning
from kgtrec.trec.measures.names import Column
from kgtrec.trec.measures.trec_measure import EvalOptions

if TYPE_CHECKING:
    from kgtrec.trec.measures.judge import JudgedQueries
    from kgtrec.trec.measures.relevant import QueryMatch, Signs

Remarks = list[KgtrecWarning]


def remarks_of(
    judged: JudgedQueries,
    match: QueryMatch,
    columns: Sequence[Column],
    options: EvalOptions,
    *,
    command_line: bool,
    is_grouped: bool = False,
) -> Remarks:
    """Return warnings about queries and documents of a run that is matched with judgements.

    - columns: The requested measures.
    - command_line: Whether queries without a run are told even if they count as 0.
    - is_grouped: Whether the judgements are in groups, so that no relevance is an absolute one.
    """
    n_shared = len(match.numbers)
    remarks: Remarks = []
    # Small calls of an `Evaluator` come by here often: each condition is checked before any work.
    if not len(judged) == n_shared == match.n_run:
        remarks += _missing_queries(judged, match, options, command_line)
    if match.signs is not None:
        remarks += _signs(match.signs, n_shared)
    own_levels = [column.level for column in columns if column.level is not None]
    least = max(options.level, 1, *own_levels)
    has_relevant = judged.least_best >= least  # every query of the qrels
    if not is_grouped and not (has_relevant and not options.judged_only):
        usual = [column for column in columns if column.level is None]
        remarks += _judgements(judged, match, usual, options)
        for level in dict.fromkeys(own_levels):
            at_level = [column for column in columns if column.level == level]
            of_level = replace(options, level=level, judged_only=False)
            remarks += _judgements(judged, match, at_level, of_level)
    return remarks


def foreign_documents(document: str, judged: str) -> Warning:
    """Return the warning for scores of named documents of which none is judged."""
    return RunWarning(
        f"none of documents= is judged; the first are {quote_name(document)} there and "
        f"{quote_name(judged)} in the qrels; give documents the same names in both"
    )


def quote_name(name: str, most: int = 60) -> str:
    """Quote a name; bytes that are not UTF-8 are shown as ``\\xe9``."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    text = text if len(text) <= most else text[:most] + "..."
    return f"'{text}'" if text.isprintable() and "'" not in text else repr(text)


def _missing_queries(
    judged: JudgedQueries, match: QueryMatch, options: EvalOptions, command_line: bool
) -> Iterable[KgtrecWarning]:
    """Warn of queries that only one side has."""
    unanswered = len(judged) - len(match.numbers)
    if unanswered and (command_line or not options.complete):
        fate = f"are left out; pass {argument('complete', True)} to count them as 0"
        if options.complete:
            fate = "count as if nothing were retrieved"
        shared = {*match.numbers}
        first = next(i for i in range(len(judged)) if i not in shared)
        yield QueryWarning(
            f"{unanswered:,} of {len(judged):,} queries of the qrels are not in the run; they "
            f"{fate} (the first is {quote_name(judged.texts[first])})"
        )
    unasked = match.n_run - len(match.numbers)
    if unasked:
        yield QueryWarning(
            f"{unasked:,} of {match.n_run:,} queries of the run are not in the qrels; they are "
            f"left out (the first is {quote_name(match.foreign)})"
        )


def _signs(signs: Signs, n_queries: int) -> Iterable[KgtrecWarning]:
    """Warn of names that differ between run and qrels, and of scores that contradict the run's
    order."""
    if signs.documents and not signs.judged:
        run, qrels = signs.run_document, signs.qrels_document
        other = [quote_name(name) for name in (run, qrels) if not _is_utf8(name)]
        hint = "give documents the same names in both"
        if other:
            hint = f"{' and '.join(other)} is not UTF-8; save both as UTF-8"
        subject = f"none of the {signs.documents:,} documents of the run is judged; the first are"
        if signs.documents == 1:
            subject = "the only document of the run is not judged; names are"
        yield RunWarning(
            f"{subject} {quote_name(run)} in the run and {quote_name(qrels)} in the qrels; {hint}"
        )
    if signs.n_wrong:
        example = f"rank {signs.lower} scores more than rank {signs.upper}"
        if signs.reversed:
            example = f"rank {signs.upper} has the lowest score"
        hint = ". If the ranks are right, write scores that fall from rank to rank"
        if 2 * signs.n_reversed > n_queries:
            hint = ". Are they distances? Negate them"
        yield RunWarning(
            f"the rank column disagrees with the scores in {signs.n_wrong:,} of {n_queries:,} "
            f"queries ({_plain(signs.query)}: {example}); only scores count{hint}"
        )
    elif signs.is_rising:
        lists = "all lists of the run rise" if n_queries > 1 else "the only list of the run rise"
        yield RunWarning(
            f"the scores of {lists} from its first document to its last, but the highest score "
            "counts as best. Are they distances? Negate them"
        )


def _is_utf8(name: str) -> bool:
    """Return whether a name can be encoded as UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _plain(name: str) -> str:
    """Return a name without quotes if no character needs them."""
    text = quote_name(name)
    return text[1:-1] if text[1:-1] == name else text


def _judgements(
    judged: JudgedQueries, match: QueryMatch, columns: Sequence[Column], options: EvalOptions
) -> Iterable[KgtrecWarning]:
    """Warn of queries whose value no run can change, and of judgements that -J removes."""
    counted = range(len(judged)) if options.complete else match.numbers
    if not len(counted):
        return
    numbers = np.asarray(counted, np.int64)
    best = judged.best[numbers]
    zero = [column for column in columns if _is_zero_without_relevant(column)]
    level = options.level if any(not c.row.graded for c in zero) else 1
    barren = numbers[best < level]
    if zero and len(barren):
        yield QueryWarning(_barren(judged, barren, len(numbers), columns, zero, options))
    if options.judged_only and judged.lowest < 0:
        yield from _negative(judged, numbers)


def _is_zero_without_relevant(column: Column) -> bool:
    """Return whether the value of a query without a relevant document (or gain) is always 0."""
    row = column.row
    is_value = row.output == "double" and row.direction is True and row.format == "qrels"
    return is_value and not row.of_answers and column.measure != "utility"


def _barren(
    judged: JudgedQueries,
    barren: Int64,
    n_counted: int,
    columns: Sequence[Column],
    zero: Sequence[Column],
    options: EvalOptions,
) -> str:
    """Describe queries without a relevant document, and the measures that are 0 for them."""
    n, first = len(barren), _plain(judged.texts[int(barren[0])])
    level = columns[0].level
    kind = "no relevant document" if level is None else f"no document of relevance {level} or more"
    if n == 1:
        subject = f"1 of {n_counted:,} queries has {kind} ({first}); its"
    else:
        subject = f"{n:,} of {n_counted:,} queries have {kind} (the first is {first}); their"
    # Values of others, and gains, which ignore the level, may differ from 0.
    ever_zero = [c for c in zero if not (c.row.graded and options.level > 1)] or list(zero)
    others = [c for c in columns if not c.is_count and not c.is_text and c not in ever_zero]
    if not others and level is None:
        return f"{subject} value{'s are' if n > 1 else ' is'} 0 whatever the run does"
    more = f" and {len(ever_zero) - 1:,} more measures" if len(ever_zero) > 1 else ""
    verb = "are" if n > 1 or more else "is"
    return f"{subject} {ever_zero[0].key}{more} {verb} 0 whatever the run does"


def _negative(judged: JudgedQueries, numbers: Int64) -> Iterable[KgtrecWarning]:
    """Warn of judgements below 0, which judged-only lists lose."""
    offsets, _, _, _, relevance = judged.native.parts()
    ends, grades = np.frombuffer(offsets, np.int64), np.frombuffer(relevance, np.int64)
    is_counted = np.zeros(len(judged), bool)
    is_counted[numbers] = True
    below = np.flatnonzero((grades < 0) & np.repeat(is_counted, np.diff(ends)))
    if not len(below):
        return
    query = int(np.searchsorted(ends, below[0], side="right")) - 1
    document = judged.native.name(int(below[0])).decode("utf-8", "surrogateescape")
    option = argument("judged_only", True)
    first = f"document {quote_name(document)} of query {quote_name(judged.texts[query])}"
    count = f"{len(below):,} judgements are" if len(below) > 1 else "1 judgement is"
    yield QueryWarning(
        f"{count} below 0 (the first is {first}); {option} drops such documents like those "
        "without a judgement"
    )
