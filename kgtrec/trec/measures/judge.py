"""Judged lists of a run and qrels, from files (faster) or from memory.

The same native code orders and judges both.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec import _core
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import offsets_of, owners, spans
from kgtrec._internal.integers import exact_floats
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.files.forms import recognise
from kgtrec.trec.files.parse import Fault, Packed, gather, order_lines, raise_first, share_queries
from kgtrec.trec.files.score_archives import is_score_archive, read_score_archive
from kgtrec.trec.files.text import (
    UNJUDGED,
    WHOLE,
    Cut,
    PathName,
    ReadAhead,
    Text,
    Warn,
    decode_name,
    last_tag,
    read_text,
)
from kgtrec.trec.measures.relevant import Lists, QueryMatch, Signs

if TYPE_CHECKING:
    from kgtrec.trec.files.columns import QrelsData, RunData


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """Qrels, read once, to judge any number of runs.

    - names: Queries in byte order.
    - offsets: int64 (n_queries + 1,)
    - judged, int64 (n_judged,): Relevance of every judged document of each query, highest first.
    """

    path: PathName
    names: list[bytes]
    offsets: Int64
    judged: Int64
    native: _core.TrecDocuments

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def number(self) -> dict[bytes, int]:
        """Index of each name among the names."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def texts(self) -> list[str]:
        """Names as text."""
        return [decode_name(name) for name in self.names]

    @cached_property
    def best(self) -> Int64:
        """Highest relevance of each query; `UNJUDGED` without a judgement."""
        best = np.full(len(self), UNJUDGED)
        has_any = np.diff(self.offsets) > 0
        best[has_any] = self.judged[self.offsets[:-1][has_any]]
        return best

    @cached_property
    def least_best(self) -> int:
        """Lowest `best` of all queries: from 1 on, every query has a relevant document."""
        return int(self.best.min(initial=np.iinfo(np.int64).max))

    @cached_property
    def lowest(self) -> int:
        """Lowest relevance, at most 0."""
        return int(self.judged.min(initial=0))

    def name_of(self, query: int) -> str:
        """Return the name of the first document of a query."""
        return decode_name(self.native.name(int(self.offsets[query])))

    def lists(
        self, placed: Sequence[NDArray[Any]], tag: str, match: QueryMatch, absent: bool = False
    ) -> Lists:
        """Make the lists of a run; with `absent`, of all queries of the qrels.

        `placed` has the numbers of the queries that both have; length, retrieved, relevance and
        scores of these, as in `Lists`.
        """
        query, length, retrieved, relevance, scores = placed
        n_shared = len(query)
        if absent:
            sizes = np.zeros((2, len(self)), dtype=np.int64)
            sizes[:, query] = length, retrieved
            query, (length, retrieved) = np.arange(len(self)), sizes
        judged_offsets, judged = self.offsets, self.judged
        if len(query) < len(self) or not (query[1:] > query[:-1]).all():
            judged_offsets, rows = spans(self.offsets[query], np.diff(self.offsets)[query])
            judged = self.judged[rows]
        return Lists(
            queries=[self.texts[i] for i in query.tolist()],
            offsets=offsets_of(length),
            relevance=relevance,
            scores=scores,
            retrieved=retrieved,
            judged_offsets=judged_offsets,
            judged=judged,
            tag=tag,
            unanswered=len(self) - n_shared,
            unasked=match.n_run - n_shared,
            match=match,
        )


def read_judged_queries(
    qrels: PathName | QrelsData,
    *,
    threads: int | None = None,
    form: str | None = None,
    comments: bool = True,
) -> JudgedQueries:
    """Read qrels, lines ``query iter document relevance``, in any order.

    With `comments`, lines that start with ``#`` are skipped. A relevance is a whole number within
    64 bits; the measures interpret negative ones. `form` is a key of `forms.QRELS_FORMATS`.
    """
    if isinstance(qrels, (str, os.PathLike)):
        from kgtrec.trec.files.documents import read_documents

        return judgements(
            qrels, read_documents(qrels, False, threads, form=form, comments=comments)
        )
    from kgtrec.trec.files.columns import pack_qrels

    return judgements("the qrels", pack_qrels(qrels))


def judgements(path: PathName, documents: Packed) -> JudgedQueries:
    """Read the judged documents of queries in byte order."""
    relevance = documents.values
    if relevance.min(initial=0) <= UNJUDGED:  # this value is reserved
        relevance = np.maximum(relevance, UNJUDGED + 1)
        documents = replace(documents, values=relevance)
    judged = sort_relevance(documents.offsets, relevance)
    return JudgedQueries(path, documents.names, documents.offsets, judged, documents.native())


def sort_relevance(offsets: Int64, relevance: Int64) -> Int64:
    """Sort the relevances of every query, highest first."""
    return relevance[np.lexsort((-relevance, owners(offsets)))]


def read_lists(
    qrels: PathName | QrelsData | JudgedQueries,
    run: PathName | RunData,
    cut: Cut = WHOLE,
    *,
    absent: bool = False,
    threads: int | None = None,
    ahead: ReadAhead | None = None,
    form: str | None = None,
    comments: bool = True,
    warn: Warn = warnings.warn,
) -> Lists:
    """Read a run, lines ``query iter document rank score tag``, and judge it.

    The iter column is ignored, and the rank column only leads to `Signs`. Lines may come in any
    order, blank lines are skipped, with `comments` also those that start with ``#``. Columns beyond
    the sixth are ignored, as in trec_eval, unless they look like a document name with white space
    in it. Every line is checked, also of queries without judgements. `form` is a key of
    `forms.RUN_FORMATS`. An ``.npz`` of scores is a run, too, see `read_score_archive`. `warn`
    receives warnings about the run.
    """
    if not isinstance(qrels, JudgedQueries):
        qrels = read_judged_queries(qrels, threads=threads, comments=comments)
    if ahead is not None and isinstance(run, str) and (listed := ahead.lists(run, cut)):
        n_run, tag, foreign, *parts = listed
        query, length, retrieved, relevance = (np.frombuffer(part, np.int64) for part in parts[:4])
        placed = _in_order(query, length, retrieved, relevance, np.frombuffer(parts[4]))
        match = QueryMatch(placed[0].tolist(), n_run, decode_name(foreign))
        return qrels.lists(placed, decode_name(tag), match, absent)
    if isinstance(run, (str, os.PathLike)) and is_score_archive(run):
        documents = _documents_of(read_score_archive(run, form))
    elif isinstance(run, (str, os.PathLike)):
        text = replace(read_text(run, True), comments=comments, warn=warn)
        documents = _documents_of_file(recognise(text, form), threads)
    else:
        documents = _documents_in_memory(run)
    placed, signs, fault = _judge_lists(qrels, documents, cut, threads)
    documents.raise_first(fault)
    foreign = next((name for name in documents.names if name not in qrels.number), b"")
    match = QueryMatch(placed[0].tolist(), len(documents.names), decode_name(foreign), signs)
    return qrels.lists(placed, documents.tag, match, absent)


def _in_order(
    query: Int64, length: Int64, retrieved: Int64, relevance: Int64, scores: NDArray[np.float64]
) -> Sequence[NDArray[Any]]:
    """Sort the lists into the order of the qrels."""
    if (query[1:] > query[:-1]).all():
        return query, length, retrieved, relevance, scores
    order = np.argsort(query)
    _, rows = spans((np.cumsum(length) - length)[order], length[order])
    return query[order], length[order], retrieved[order], relevance[rows], scores[rows]


@dataclass(frozen=True)
class _Documents:
    """Run for the native core: queries in byte order, and an upper bound on their documents.

    `raise_first` receives the first fault, or None. `first_document` receives the number of a
    query that has documents.
    """

    names: list[bytes]
    native: _core.TrecLines | _core.TrecDocuments
    work: Int64
    tag: str
    raise_first: Callable[[Fault | None], None]
    first_document: Callable[[int], bytes]


def _documents_of_file(text: Text, threads: int | None) -> _Documents:
    """Scan the text of a run for the native core."""
    if text.form:
        from kgtrec.trec.files.documents import documents_of_text

        return _documents_of(documents_of_text(text, threads))
    groups, names, lines, work = order_lines(text, threads)

    def first_document(query: int) -> bytes:
        n = int(work[query])
        begin, size, count = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(1, np.int64)
        lines.documents(query, query + 1, begin, size, np.empty(n), count)
        return bytes(text.data[begin[0] : begin[0] + size[0]])

    fault = partial(raise_first, groups)
    return _Documents(names, lines, work, last_tag(text), fault, first_document)


def _documents_in_memory(run: RunData) -> _Documents:
    """Pack a run in memory for the native core."""
    from kgtrec.trec.files.columns import pack_run

    return _documents_of(pack_run(run), getattr(run, "tag", ""))


def _documents_of(packed: Packed, tag: str = "") -> _Documents:
    """Wrap packed documents, with the errors and names that they can report."""

    def raise_duplicate(fault: Fault | None) -> None:
        if fault is not None:
            raise packed.duplicate(fault[0] - 1)

    def first_document(query: int) -> bytes:
        at = int(packed.offsets[query])
        return bytes(packed.text[packed.begin[at] : packed.begin[at] + packed.size[at]])

    work = np.diff(packed.offsets)
    return _Documents(packed.names, packed.native(), work, tag, raise_duplicate, first_document)


def _judge_lists(
    qrels: JudgedQueries, documents: _Documents, cut: Cut, threads: int | None
) -> tuple[Sequence[NDArray[Any]], Signs, Fault | None]:
    """Judge the documents of a run.

    Returns the judged queries, ascending, with length and retrieved of each, and relevance and
    scores of their documents; signs of a misread run; the first fault.
    """
    names, work = documents.names, documents.work
    judged_query = np.array([qrels.number.get(name, -1) for name in names], dtype=np.int64)
    shared = judged_query >= 0
    listing = _core.TrecListing(
        documents.native, qrels.native, judged_query, cut.most, *cut[1:], UNJUDGED
    )
    most = work if cut.keep_ties else np.minimum(work, cut.most)
    capacity = np.where(shared, most, 0)
    sparse = cut.keep_ties and cut.depth is not None
    counts = np.zeros((2, len(names)), dtype=np.int64)
    relevance, scores, signs, fault = _fill_lists(listing, work, capacity, counts, sparse, threads)
    length, retrieved = (count[shared] for count in counts)
    if fault is None:
        signs = _with_names(signs, qrels, documents, judged_query)
    return (judged_query[shared], length, retrieved, relevance, scores), signs, fault


def _with_names(
    signs: Signs, qrels: JudgedQueries, documents: _Documents, judged_query: Int64
) -> Signs:
    """Add the names that a message shows to the signs."""
    if signs.n_wrong:
        signs = signs._replace(query=decode_name(documents.names[signs.first]))
    if signs.documents and not signs.judged:
        query = next(i for i in np.flatnonzero(judged_query >= 0) if documents.work[i])
        signs = signs._replace(
            run_document=decode_name(documents.first_document(int(query))),
            qrels_document=qrels.name_of(int(judged_query[query])),
        )
    return signs


def _fill_lists(
    listing: _core.TrecListing,
    work: Int64,
    capacity: Int64,
    counts: Int64,
    sparse: bool,
    threads: int | None,
) -> tuple[Int64, NDArray[np.float64], Signs, Fault | None]:
    """Read relevance and score of all listed documents, and signs of a misread run.

    Sets the numbers listed and retrieved per query in `counts`.

    With `sparse`, queries may fill little of their capacity; it is then allocated for a part of
    them at a time.
    """
    relevance = np.empty(0 if sparse else int(capacity.sum()), dtype=np.int64)
    scores = np.empty(len(relevance))
    pieces: dict[int, tuple[Int64, NDArray[np.float64]]] = {}
    signs: dict[int, Signs] = {}

    def fill(first: int, stop: int, part: slice) -> Fault | None:
        length, retrieved = counts[:, first:stop]
        if not sparse:
            into = relevance[part], scores[part]
            fault, of_part = listing.lists(first, stop, *into, length, retrieved)
            signs[first] = Signs(*of_part)
            return fault
        size = part.stop - part.start
        into = np.empty(size, dtype=np.int64), np.empty(size)
        fault, of_part = listing.lists(first, stop, *into, length, retrieved)
        signs[first] = Signs(*of_part)
        n = int(length.sum())
        pieces[first] = into[0][:n].copy(), into[1][:n].copy()
        return fault

    filled, fault = share_queries(fill, work, capacity, counts[0], threads)
    if not sparse:
        relevance, scores = gather(filled, relevance, scores)
    elif pieces:
        columns = zip(*(pieces[first] for first in sorted(pieces)), strict=True)
        relevance, scores = map(np.concatenate, columns)
    return relevance, scores, _add_signs(signs), fault


def _add_signs(parts: Mapping[int, Signs]) -> Signs:
    """Add the signs of parts; each key is the first query of its part."""
    rises = [part.rises for part in parts.values()]
    total = Signs(
        documents=sum(part.documents for part in parts.values()),
        judged=sum(part.judged for part in parts.values()),
        rises=-1 if min(rises, default=0) < 0 else sum(rises),
        n_wrong=sum(part.n_wrong for part in parts.values()),
        n_reversed=sum(part.n_reversed for part in parts.values()),
    )
    for first in sorted(parts):
        part = parts[first]
        if part.n_wrong:
            return total._replace(
                first=first + part.first,
                upper=part.upper,
                lower=part.lower,
                reversed=part.reversed,
            )
    return total


# -- Rows of scores ------------------------------------------------------------------------------


class NumberedDocuments:
    """Judged documents by number: those of a vocabulary in byte order, or decimal names.

    - native: For the core.
    - is_decimal: Whether the names are the numbers in decimal.
    """

    def __init__(self, judged: JudgedQueries, documents: Sequence[str] | None) -> None:
        from kgtrec.trec.files.columns import name_bytes

        self._judged, self.is_decimal = judged, documents is None
        named = [name_bytes(name, "document") for name in documents or ()]
        self._vocabulary = sorted({*named})
        turn = {name: i for i, name in enumerate(self._vocabulary)}
        if len(turn) < len(named):
            twice = next(name for i, name in enumerate(named) if name in named[:i])
            raise InputError(
                f"document {decode_name(twice)!r} is given twice; give each document once"
            )
        self._turns = np.array([turn[name] for name in named], np.int64)
        offsets, _, _, _, relevance = judged.native.parts()
        ends = np.frombuffer(offsets, np.int64)
        names = [judged.native.name(i) for i in range(int(ends[-1]))]
        if documents is None:
            turn = {name: int(name) for name in names if _is_decimal(name)}
        self._highest = max(turn, key=turn.__getitem__, default=b"")
        self._first = names[0] if names else b""
        self._named = () if any(name in turn for name in names) else named
        numbers = np.array([turn.get(name, -1 - i) for i, name in enumerate(names)], np.int64)
        order = np.lexsort((numbers, owners(ends)))
        graded = np.frombuffer(relevance, np.int64)[order]
        self._judged_numbers = np.unique(numbers[numbers >= 0])
        self.native = _core.TrecNumbers(ends, numbers[order], graded, judged.judged)

    def foreign_number(self, numbers: Int64 | None) -> tuple[str, str] | None:
        """Return a document's number and a judged document if no number is judged, else None.

        `numbers` are as from `order_of`, int64 (rows, width). The first row alone mostly decides.
        """
        if numbers is None or not self._first:
            return None
        if any(np.isin(part, self._judged_numbers).any() for part in (numbers[:1], numbers)):
            return None
        listed = numbers[numbers >= 0]
        if not len(listed):
            return None
        first = int(listed[0])
        name = str(first) if self.is_decimal else decode_name(self._vocabulary[first])
        return name, decode_name(self._first)

    def foreign(self) -> tuple[str, str] | None:
        """Return a document of the vocabulary and one of the qrels if none is in both, else
        None."""
        if not self._named or not self._first:
            return None
        return decode_name(self._named[0]), decode_name(self._first)

    def order_of(self, documents: Any, width: int) -> Int64 | None:
        """Return numbers that order the documents of columns; None if column numbers are the
        names.

        Shapes: documents (width,) or (queries, width); the result has two dimensions.
        """
        if documents is None:
            self._check_columns(width)
            if self.is_decimal:
                return None
        numbers = np.arange(width) if documents is None else np.asarray(documents)
        if numbers.dtype.kind not in "iu" or numbers.shape[-1:] != (width,) or numbers.ndim > 2:
            raise UsageError(
                f"documents are {numbers.dtype} of shape {numbers.shape}; give {width} whole "
                "numbers, for all rows or for each row"
            )
        numbers = np.ascontiguousarray(np.atleast_2d(numbers), np.int64)
        if self.is_decimal:
            return numbers
        if numbers.max(initial=-1) >= len(self._turns):
            raise UsageError(
                f"document {numbers.max()} is not one of the Evaluator's {len(self._turns)} "
                "documents; add it there, or give a negative number if there is no document"
            )
        return np.where(numbers < 0, -1, self._turns[numbers])

    def _check_columns(self, width: int) -> None:
        """Refuse scores without a column for each document, or for each judged one."""
        how = "pass documents= with the number of each column's document"
        if not self.is_decimal:
            if width != len(self._turns):
                raise UsageError(
                    f"the scores have {width:,} columns for the Evaluator's {len(self._turns):,} "
                    f"documents; give a column per document, or {how}"
                )
        elif self._first and not self._highest:
            raise InputError(
                f"no judged document is the number of a column, the first is "
                f"{decode_name(self._first)!r}; name the documents of the columns by documents= of "
                "the Evaluator"
            )
        elif self._highest and int(self._highest) >= width:
            raise InputError(
                f"the scores have {width:,} columns, but document {decode_name(self._highest)!r} "
                f"is judged; give a column per document, or {how}"
            )

    def lists(
        self,
        matrix: NDArray[Any],
        names: Int64 | None,
        queries: Int64,
        parts: Sequence[bytes],
        all_queries: bool,
    ) -> Lists:
        """Make lists of rows of scores from the core's result; with `all_queries`, also of
        others."""
        count, retrieved, rank, relevance = (np.frombuffer(part, np.int64) for part in parts)
        absent = np.isnan(matrix) if names is None else np.isnan(matrix) | (names < 0)
        ordered = -np.sort(np.where(absent, np.nan, -matrix), axis=1)
        scores = ordered[np.arange(matrix.shape[1]) < retrieved[:, None]].astype(np.float64)
        listed = np.full(len(scores), UNJUDGED)
        listed[np.repeat(np.cumsum(retrieved) - retrieved, count) + rank] = relevance
        placed = queries, retrieved, retrieved, listed, scores
        match = QueryMatch(queries.tolist(), len(queries))
        return self._judged.lists(placed, "", match, all_queries)


def _is_decimal(name: bytes) -> bool:
    """Return whether this is a whole number from 0, written as Python does."""
    return name.isdigit() and len(name) < 19 and (name == b"0" or not name.startswith(b"0"))


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def matrix_of(scores: Any, mask: Any, single: bool) -> NDArray[Any]:
    """Return scores as a float32 or float64 matrix, (queries, documents); NaN means no document.

    InputError for integers that float64 does not have, unless all is float32 (`single`).
    """
    if (
        type(scores) is np.ndarray
        and mask is None
        and scores.ndim == 2
        and (scores.dtype is _SINGLE or (scores.dtype is _DOUBLE and not single))
        and scores.flags.c_contiguous
    ):
        return scores
    if hasattr(scores, "detach"):  # a tensor of torch, on any device
        scores = scores.detach().cpu()
        scores = (scores.float() if "float16" in str(scores.dtype) else scores).numpy()
    matrix = np.asarray(scores)
    kind = matrix.dtype.name
    if matrix.ndim != 2 or not (matrix.dtype.kind in "iuf" or kind == "bfloat16"):
        raise UsageError(
            f"scores have dtype {matrix.dtype} and shape {matrix.shape}; they must be numbers, "
            "with one row per query and one column per document"
        )
    hidden = np.ma.getmaskarray(scores) if isinstance(scores, np.ma.MaskedArray) else None
    masks = [
        np.asarray(mask_or_none) for mask_or_none in (hidden, mask) if mask_or_none is not None
    ]
    for absent in masks:
        if absent.dtype != bool or absent.shape != matrix.shape:
            raise UsageError(
                f"the mask is {absent.dtype} of shape {absent.shape}; it must be bool of shape "
                f"{matrix.shape}"
            )
        if matrix.dtype.kind in "iu":  # such as the largest integer, which no float is
            matrix = np.where(absent, matrix.dtype.type(0), matrix)
    narrow = single or kind in ("float16", "bfloat16", "float32")
    matrix = matrix if single else exact_floats(matrix)  # float32 was chosen: ties are meant
    matrix = np.ascontiguousarray(matrix, np.float32 if narrow else np.float64)
    for absent in masks:
        matrix = np.where(absent, matrix.dtype.type(np.nan), matrix)
    return matrix
