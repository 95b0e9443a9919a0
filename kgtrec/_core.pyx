# cython: boundscheck=False, wraparound=False, cdivision=True, embedsignature=True
"""The native core: takes buffers, makes one C call without the GIL, turns a status into an exception.

Indexing is unchecked in this file: ``&x[0]`` of an empty array is an address that C never reads.
Functions trust the meaning of their arguments. They check what would crash C: lengths, ids and
offsets out of range, item sizes.
"""

from operator import index
from os import environ

from kgtrec.errors import UsageError

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.dict cimport PyDict_SetItem
from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcpy, memset

from kgtrec cimport _csrc as c

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

DTYPES = {"float16": c.KGT_F16, "bfloat16": c.KGT_BF16, "float32": c.KGT_F32, "float64": c.KGT_F64}
LABEL_PAD = c.KGT_LABEL_PAD
METRICS = {"dot": c.KGT_DOT, "l2": c.KGT_L2, "l1": c.KGT_L1, "moduli": c.KGT_MODULI,
           "mode": c.KGT_MODE, "hake": c.KGT_HAKE}


cdef int raise_for(c.kgt_status status) except -1:
    """Turn a status into an exception; no other function does."""
    if status == c.KGT_NO_MEMORY:
        raise MemoryError("no memory for the scratch of the native core")
    if status != c.KGT_OK:
        raise ValueError("the kernel does not support this dtype")
    return 0


cdef int require(bint condition, str what) except -1:
    if not condition:
        raise ValueError(what)
    return 0


cdef c.kgt_csr csr_of(const int64_t[::1] offsets, const int32_t[::1] ids, int64_t n_entities,
                      str name) except *:
    """The lists, which the caller keeps alive. Check that offsets rise from 0 to len(ids), and the
    ids of each row strictly within the entities."""
    cdef int64_t row, i, start, end, n_rows = offsets.shape[0] - 1, descents = 0
    cdef bint sound = n_rows >= 0 and offsets[0] == 0 and offsets[n_rows] == ids.shape[0]
    with nogil:
        for row in range(n_rows):
            sound = sound and offsets[row] <= offsets[row + 1]
        if sound:
            # One pass that the compiler vectorises. Only a row's first id may be lower than the one before.
            for i in range(1, ids.shape[0]):
                descents += ids[i - 1] >= ids[i]
            for row in range(n_rows):
                start, end = offsets[row], offsets[row + 1]
                if start == end:
                    continue
                sound = sound and ids[start] >= 0 and ids[end - 1] < n_entities
                descents -= start > 0 and ids[start - 1] >= ids[start]
            sound = sound and descents == 0
    require(sound, f"{name}: not a CSR of ascending entity ids")
    return c.kgt_csr(&offsets[0], &ids[0])


cdef class Order:
    """The byte order of entities' document names, checked once for all rankings that use it.

    Parameters
    ----------
    position, entity_at : int32 (entities,)
        Position of an entity's document name in that order, and the inverse.
    """

    cdef readonly object position, entity_at
    cdef const int32_t[::1] position_of, entity

    def __init__(self, position, entity_at):
        cdef int64_t i, n
        self.position, self.entity_at = position, entity_at
        self.position_of, self.entity = position, entity_at
        n = self.position_of.shape[0]
        require(0 < n == self.entity.shape[0], "position: wrong length")
        for i in range(n):
            require(0 <= self.position_of[i] < n, "position: out of range")
            require(self.entity[self.position_of[i]] == i, "entity_at: not the inverse of position")

    def __reduce__(self):
        return Order, (self.position, self.entity_at)


cdef class Lists:
    """What is filtered and restricted per question, checked once for all rankings that use it.

    Parameters
    ----------
    n_entities : int
    known_offsets, known, removed_offsets, removed : int64 (questions + 1,), int32
        Entities that do not compete with an answer in its micro rank, and in its macro rank.
    order : Order or None
        The byte order of document names; None if ids have this order.
    list_offsets, lists, columns : int64, int32, int32 (len(lists),)
        Restricted candidates, and the score column of each of their ids, None if columns are
        entities. list_offsets None: nothing is restricted.
    """

    cdef c.kgt_csr known, removed, lists
    cdef const int32_t *columns
    cdef Order order
    cdef int64_t n_entities, n_questions, n_lists, last_column
    cdef tuple arguments

    def __init__(self, int64_t n_entities, known_offsets, known, removed_offsets, removed,
                 Order order, list_offsets, lists, columns):
        cdef const int32_t[::1] column_of
        cdef int64_t i
        self.arguments = (n_entities, known_offsets, known, removed_offsets, removed, order,
                          list_offsets, lists, columns)
        require(0 < n_entities < 2**31, "entities must number 1 .. 2^31 - 1")
        require(order is None or order.position_of.shape[0] == n_entities, "order: wrong length")
        require(len(removed_offsets) == len(known_offsets), "removed_offsets: wrong length")
        self.n_entities, self.order, self.n_questions = n_entities, order, len(known_offsets) - 1
        self.known = csr_of(known_offsets, known, n_entities, "known")
        self.removed = csr_of(removed_offsets, removed, n_entities, "removed")
        self.n_lists, self.last_column, self.columns = -1, n_entities - 1, NULL
        if list_offsets is None:
            return
        self.lists = csr_of(list_offsets, lists, n_entities, "lists")
        self.n_lists = len(list_offsets) - 1
        if columns is not None:
            column_of = columns
            require(column_of.shape[0] == len(lists), "columns: wrong length")
            self.last_column = -1
            for i in range(column_of.shape[0]):
                require(column_of[i] >= 0, "columns: out of range")
                self.last_column = max(self.last_column, column_of[i])
            self.columns = &column_of[0]

    def __reduce__(self):
        return Lists, self.arguments


cdef class Task:
    """The task of every score row, and the arrays for its results.

    Parameters
    ----------
    lists : Lists
    row_question : int64 (rows,)
        Question of each row.
    target_offsets, targets : int64 (rows + 1,), int32
        Answers whose counts are wanted, ascending per row.
    row_list : int64 (rows,) or None
        The row of the lists with a row's restricted candidates, or -1. None: they have none.
    counts : int64 (6, targets)
        Added to: greater, equal, tied_ahead, then the same three for macro candidates.
    best_slot : int64 (rows,)
        Place of a row's best entities in the next three arrays; -1 for none.
    best_ids, best_scores, best_length : int32 (slots, depth), float32 or float64, int32 (slots,)
        Overwritten with the best entities, in trec order.
    nan_count, nan_entity : int64 (rows,), int32 (rows,)
        NaN scores among the macro candidates, and the first of them.

    Attributes
    ----------
    any_nan : bool
        Whether a row that was ranked has such a NaN.
    """

    cdef readonly bint any_nan
    cdef c.kgt_task task
    cdef c.kgt_counts counts
    cdef c.kgt_best best
    cdef c.kgt_nans nans
    cdef Lists lists
    cdef readonly int64_t n_rows, n_targets
    cdef int64_t score_size
    # The arrays that C reads and writes, kept alive.
    cdef const int64_t[::1] row_question, target_offsets, row_list, best_slot
    cdef const int32_t[::1] targets
    cdef int64_t[:, ::1] count_rows
    cdef int32_t[:, ::1] best_ids
    cdef float[:, ::1] best_f32
    cdef double[:, ::1] best_f64
    cdef int32_t[::1] best_length, nan_entity
    cdef int64_t[::1] nan_count

    def __init__(self, Lists lists not None, const int64_t[::1] row_question,
                 const int64_t[::1] target_offsets, const int32_t[::1] targets, row_list,
                 int64_t[:, ::1] counts, const int64_t[::1] best_slot,
                 int32_t[:, ::1] best_ids, best_scores, int32_t[::1] best_length,
                 int64_t[::1] nan_count, int32_t[::1] nan_entity):
        cdef int64_t row, n_slots, depth
        self.lists, self.count_rows = lists, counts
        self.row_question, self.target_offsets = row_question, target_offsets
        self.targets, self.best_slot, self.best_ids = targets, best_slot, best_ids
        self.best_length, self.nan_count, self.nan_entity = best_length, nan_count, nan_entity
        self.n_rows = row_question.shape[0]
        self.n_targets = targets.shape[0]
        require(target_offsets.shape[0] == self.n_rows + 1, "target_offsets: wrong length")
        for row in range(self.n_rows):
            require(0 <= row_question[row] < lists.n_questions, "row_question: out of range")
        require(counts.shape[0] == 6 and counts.shape[1] == self.n_targets, "counts: wrong shape")
        require(best_slot.shape[0] == self.n_rows and best_length.shape[0] == best_ids.shape[0],
                "best: wrong shape")
        for row in range(self.n_rows):
            require(-1 <= best_slot[row] < best_ids.shape[0], "best_slot: out of range")
        require(best_ids.shape[1] <= lists.n_entities, "best: deeper than the entities")
        require(nan_count.shape[0] == self.n_rows == nan_entity.shape[0], "nans: wrong shape")
        self.score_size = best_scores.itemsize
        if self.score_size == 4:
            self.best_f32 = best_scores
            n_slots, depth = self.best_f32.shape[0], self.best_f32.shape[1]
            self.best.scores = <void *> &self.best_f32[0, 0]
        else:
            self.best_f64 = best_scores
            n_slots, depth = self.best_f64.shape[0], self.best_f64.shape[1]
            self.best.scores = <void *> &self.best_f64[0, 0]
        require(n_slots == best_ids.shape[0] and depth == best_ids.shape[1], "best: wrong shape")
        self.task.row_question = &row_question[0]
        self.task.targets = csr_of(target_offsets, targets, lists.n_entities, "targets")
        self.task.known = lists.known
        self.task.removed = lists.removed
        self.task.position = self.task.entity_at = NULL
        if lists.order is not None:
            self.task.position = &lists.order.position_of[0]
            self.task.entity_at = &lists.order.entity[0]
        self.set_lists(row_list)
        if self.n_targets:
            self.counts = c.kgt_counts(&counts[0, 0], &counts[1, 0], &counts[2, 0],
                                       &counts[3, 0], &counts[4, 0], &counts[5, 0])
        self.best.depth = best_ids.shape[1]
        self.best.slot = &best_slot[0]
        self.best.ids = &best_ids[0, 0]
        self.best.length = &best_length[0]
        self.nans.count = &nan_count[0]
        self.nans.first_entity = &nan_entity[0]

    cdef int set_lists(self, row_list) except -1:
        """Check that every target is among its row's candidates, because C reads its score there."""
        cdef const int64_t *offsets = self.lists.lists.offsets
        cdef const int32_t *ids = self.lists.lists.ids
        cdef int64_t row, target, at, end, number
        self.task.row_list = NULL
        self.task.columns = NULL
        require((row_list is None) == (self.lists.n_lists < 0), "row_list: does not fit the lists")
        if row_list is None:
            return 0
        self.row_list = row_list
        require(self.row_list.shape[0] == self.n_rows, "row_list: wrong length")
        for row in range(self.n_rows):
            number = self.row_list[row]
            require(-1 <= number < self.lists.n_lists, "row_list: out of range")
            if number < 0:
                require(self.lists.columns == NULL, "row_list: columns need a list for every row")
                continue
            at, end = offsets[number], offsets[number + 1]
            for target in range(self.task.targets.offsets[row], self.task.targets.offsets[row + 1]):
                while at < end and ids[at] < self.task.targets.ids[target]:
                    at += 1
                require(at < end and ids[at] == self.task.targets.ids[target],
                        "lists: lacks a target")
        self.task.columns = self.lists.columns
        self.task.row_list = &self.row_list[0]
        self.task.lists = self.lists.lists
        return 0

    cdef int end(self, c.kgt_status status, int64_t first_row, int64_t n_rows) except -1:
        """Raise for the status of a C call that has ranked rows, or look for their NaN."""
        cdef int64_t row
        raise_for(status)
        for row in range(first_row, first_row + n_rows):
            self.any_nan = self.any_nan or self.nan_count[row] > 0
        return 0

    cdef int check_width(self, int64_t first_entity, int64_t width) except -1:
        """Check that the columns of a block of scores fit the entities or the restricted candidates."""
        if self.task.row_list == NULL:
            return require(0 <= first_entity and first_entity + width <= self.lists.n_entities,
                           "scores: beyond the entities")
        return require(first_entity == 0 and self.lists.last_column < width, "scores: too few columns")

    cdef int check_rows(self, int64_t first_row, int64_t n_rows, dtype) except -1:
        require(0 <= first_row and first_row + n_rows <= self.n_rows, "rows out of range")
        return require((dtype == "float64") == (self.score_size == 8), "best scores: wrong dtype")


cdef const double *target_scores_of(Task task, const double[::1] scores) except? NULL:
    if scores is None:
        return NULL
    require(scores.shape[0] == task.n_targets, "target_scores: wrong length")
    return &scores[0]


cdef class ScoreBlock:
    """A two-dimensional strided buffer of scores, held during one call."""

    cdef Py_buffer view
    cdef bint held
    cdef c.kgt_scores scores

    def __cinit__(self, scores, dtype, int64_t first_entity, bint negate):
        PyObject_GetBuffer(scores, &self.view, PyBUF_STRIDES)
        self.held = True
        require(self.view.ndim == 2, "scores: not two-dimensional")
        require(self.view.itemsize == (8 if dtype == "float64" else 4 if dtype == "float32" else 2),
                "scores: item size does not fit the dtype")
        self.scores.data = self.view.buf
        self.scores.dtype = DTYPES[dtype]
        self.scores.n_rows = self.view.shape[0]
        self.scores.n_entities = self.view.shape[1]
        self.scores.row_stride = self.view.strides[0]
        self.scores.entity_stride = self.view.strides[1]
        self.scores.first_entity = <int32_t> first_entity
        self.scores.negate = negate

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


def rank_rows(Task task not None, scores, dtype, int64_t first_row, *, bint negate=False,
              int64_t first_entity=0, const double[::1] target_scores=None):
    """Rank a block of score rows (rows, entities of the range) as rows first_row... of the task."""
    cdef ScoreBlock block = ScoreBlock(scores, dtype, first_entity, negate)
    cdef const double *targets = target_scores_of(task, target_scores)
    cdef c.kgt_status status
    task.check_rows(first_row, block.scores.n_rows, dtype)
    task.check_width(first_entity, block.scores.n_entities)
    require(targets != NULL or task.task.row_list != NULL or task.n_targets == 0
            or block.scores.n_entities == task.lists.n_entities, "a range of entities needs target_scores")
    with nogil:
        status = c.kgt_rank_rows(&block.scores, &task.task, first_row, targets, &task.counts,
                                 &task.best, &task.nans)
    task.end(status, first_row, block.scores.n_rows)


def target_scores(Task task not None, scores, dtype, int64_t first_row, double[::1] out, *,
               bint negate=False, int64_t first_entity=0):
    """Write the scores of the targets that a block of rows holds to out (one per target of the task)."""
    cdef ScoreBlock block = ScoreBlock(scores, dtype, first_entity, negate)
    cdef c.kgt_status status
    task.check_rows(first_row, block.scores.n_rows, dtype)
    task.check_width(first_entity, block.scores.n_entities)
    require(out.shape[0] == task.n_targets, "out: wrong length")
    if task.n_targets == 0:
        return
    with nogil:
        status = c.kgt_target_scores(&block.scores, &task.task, first_row, &out[0])
    raise_for(status)


def query_dim(metric, int64_t dim):
    """Numbers of a query of a factorised model, for entities of `dim` numbers."""
    return c.kgt_query_dim(METRICS[metric], dim)


cdef class FactorBlock:
    """Views of a factorised model: some query rows, a range of entities or the entities `ids`, a bias."""

    cdef c.kgt_factors factors
    cdef tuple owners

    def __cinit__(self, queries, entities, bias, metric, int64_t first_entity, ids=None):
        cdef const float[:, ::1] q32, e32
        cdef const uint16_t[:, ::1] e16
        cdef const double[:, ::1] q64, e64
        cdef const float[::1] b32
        cdef const double[::1] b64
        cdef const int32_t[::1] ranked
        self.owners = (queries, entities, bias, ids)
        self.factors.metric = METRICS[metric]
        self.factors.n_rows = queries.shape[0]
        self.factors.dim = entities.shape[1]
        self.factors.n_entities = entities.shape[0]
        self.factors.first_entity = <int32_t> first_entity
        self.factors.ids = NULL
        if ids is not None:
            ranked = ids
            require(first_entity == 0, "ids name entities of a whole table")
            require(ranked.shape[0] == 0 or 0 <= ranked[0] <= ranked[ranked.shape[0] - 1] < len(entities),
                    "ids: beyond the entities")
            self.factors.ids = &ranked[0]
            self.factors.n_entities = ranked.shape[0]
        require(queries.shape[1] == query_dim(metric, entities.shape[1]),
                "queries and entities do not fit in dimension")
        require(bias is None or bias.shape == (entities.shape[0],), "bias: wrong shape")
        if queries.itemsize == 4:
            self.factors.dtype = c.KGT_F32
            q32 = queries
            self.factors.queries = &q32[0, 0]
            self.factors.half_entities = entities.itemsize == 2
            if self.factors.half_entities:
                e16 = entities.view("uint16")
                self.factors.entities = &e16[0, 0]
            else:
                e32 = entities
                self.factors.entities = &e32[0, 0]
            if bias is not None:
                b32 = bias
                self.factors.bias = &b32[0]
        else:
            self.factors.dtype = c.KGT_F64
            self.factors.half_entities = False
            q64 = queries
            e64 = entities
            self.factors.queries = &q64[0, 0]
            self.factors.entities = &e64[0, 0]
            if bias is not None:
                b64 = bias
                self.factors.bias = &b64[0]


cdef class Codes:
    """The entities of a factorised model as codes, shared by the calls of `rank_factors` that rank its rows.

    Each of these calls has at least `call_rows` rows. `n_parts` is 0 if shared codes do not pay.
    Encode every part once, from any thread, before the first of these calls.
    """

    cdef c.kgt_codes *codes
    cdef FactorBlock block

    def __cinit__(self, queries, entities, bias, metric, *, int64_t first_entity, int64_t call_rows,
                  int64_t depth, int64_t most_bytes):
        self.block = FactorBlock(queries, entities, bias, metric, first_entity)
        raise_for(c.kgt_codes_open(&self.block.factors, call_rows, depth, most_bytes, &self.codes))

    def __dealloc__(self):
        c.kgt_codes_close(self.codes)

    @property
    def n_parts(self):
        return 0 if self.codes == NULL else c.kgt_codes_parts(self.codes)

    def encode(self, int64_t first, int64_t end):
        """Encode the parts first .. end - 1."""
        cdef c.kgt_status status = c.KGT_OK
        require(0 <= first <= end <= self.n_parts, "parts out of range")
        with nogil:
            while first < end and status == c.KGT_OK:
                status = c.kgt_codes_encode(self.codes, first)
                first += 1
        raise_for(status)

    cdef const c.kgt_codes *of(self, FactorBlock model) except? NULL:
        require(self.block.factors.entities == model.factors.entities
                and self.block.factors.bias == model.factors.bias
                and self.block.factors.n_entities == model.factors.n_entities
                and self.block.factors.metric == model.factors.metric and model.factors.ids == NULL,
                "codes: of another model")
        return self.codes


def rank_factors(Task task not None, queries, entities, bias, metric, int64_t first_row, *,
                 int64_t first_entity=0, ids=None, const double[::1] target_scores=None,
                 Codes codes=None):
    """Rank a block of query vectors against the entities, a range of them, or ids.

    Returns four numbers: all scores; those computed in tiles; comparisons that reached the second
    level of bounds; and those of them whose scores were computed one by one.
    """
    cdef c.kgt_tally tally = c.kgt_tally(0, 0, 0, 0)
    cdef FactorBlock block = FactorBlock(queries, entities, bias, metric, first_entity, ids)
    cdef const double *targets = target_scores_of(task, target_scores)
    cdef const c.kgt_codes *shared = NULL
    cdef c.kgt_status status
    task.check_rows(first_row, block.factors.n_rows, queries.dtype.name)
    require(0 <= first_entity and first_entity + len(entities) <= task.lists.n_entities,
            "entities: beyond the graph's")
    require(targets != NULL or task.n_targets == 0, "target_scores are needed")
    if codes is not None:
        shared = codes.of(block)
    with nogil:
        status = c.kgt_rank_factors(&block.factors, &task.task, first_row, targets, shared,
                                    &task.counts, &task.best, &task.nans, &tally)
    task.end(status, first_row, block.factors.n_rows)
    return tally.pairs, tally.tiled, tally.open, tally.close


def factor_target_scores(Task task not None, queries, entities, bias, metric, int64_t first_row,
                      double[::1] out, *, int64_t first_entity=0):
    """Write the scores of the targets that a range of entities holds to out (one per target of the task)."""
    cdef FactorBlock block = FactorBlock(queries, entities, bias, metric, first_entity)
    cdef c.kgt_status status
    task.check_rows(first_row, block.factors.n_rows, queries.dtype.name)
    require(0 <= first_entity and first_entity + len(entities) <= task.lists.n_entities,
            "entities: beyond the graph's")
    require(out.shape[0] == task.n_targets, "out: wrong length")
    if task.n_targets == 0:
        return
    with nogil:
        status = c.kgt_factor_target_scores(&block.factors, &task.task, first_row, &out[0])
    raise_for(status)


def factor_scores(queries, entities, bias, metric, out):
    """Write the scores of a factorised model to out (rows, entities), with the bits that ranking uses."""
    cdef FactorBlock block = FactorBlock(queries, entities, bias, metric, 0)
    cdef float[:, ::1] out32
    cdef double[:, ::1] out64
    cdef void *target
    cdef c.kgt_status status
    require(out.shape == (queries.shape[0], entities.shape[0]), "out: wrong shape")
    require(out.dtype == queries.dtype, "out: wrong dtype")
    if out.size == 0:
        return
    if out.itemsize == 4:
        out32 = out
        target = &out32[0, 0]
    else:
        out64 = out
        target = &out64[0, 0]
    with nogil:
        status = c.kgt_factor_scores(&block.factors, target)
    raise_for(status)


cdef c.kgt_pair_counts pair_counts_of(const double[::1] thresholds, int64_t[:, ::1] counts,
                                      double bound, int64_t[::1] cells,
                                      double[::1] scores) except *:
    """Views of thresholds, of the counts to add to, and of the cells that reach the bound."""
    cdef c.kgt_pair_counts out
    require(counts.shape[0] == 2 and counts.shape[1] == thresholds.shape[0], "counts: wrong shape")
    require(scores.shape[0] == cells.shape[0], "cells: their scores have another length")
    out.n, out.capacity, out.used = thresholds.shape[0], cells.shape[0], 0
    out.thresholds, out.bound, out.nan = &thresholds[0], bound, False
    out.greater, out.at_least = &counts[0, 0], &counts[1, 0]
    out.cells, out.scores = &cells[0], &scores[0]
    return out


def count_rows(scores, dtype, thresholds, counts, bound, cells, cell_scores, *, bint negate=False):
    """Count the scores of a block, all rows together, against thresholds (float64, none NaN).

    Adds to counts, int64 (2, thresholds): how many are greater, and how many at least as great.
    Writes up to len(cells) cells (row * columns + column, in any order) with a score of at least
    ``bound``, and their scores. Returns how many there are, and whether any score is NaN.
    """
    cdef ScoreBlock block = ScoreBlock(scores, dtype, 0, negate)
    cdef c.kgt_pair_counts out = pair_counts_of(thresholds, counts, bound, cells, cell_scores)
    cdef c.kgt_status status
    with nogil:
        status = c.kgt_count_rows(&block.scores, &out)
    raise_for(status)
    return out.used, bool(out.nan)


def count_factors(queries, entities, bias, metric, thresholds, counts, bound, cells, cell_scores,
                  *, ids=None):
    """As `count_rows`, for the scores of query vectors with all entities, or with those of `ids`."""
    cdef FactorBlock block = FactorBlock(queries, entities, bias, metric, 0, ids)
    cdef c.kgt_pair_counts out = pair_counts_of(thresholds, counts, bound, cells, cell_scores)
    cdef c.kgt_status status
    with nogil:
        status = c.kgt_count_factors(&block.factors, &out)
    raise_for(status)
    return out.used, bool(out.nan)


cdef c.kgt_ties ties_of(const int64_t[::1] greater, const int64_t[::1] size,
                        const int64_t[::1] answers, const double[::1] out):
    """Views of tied answers."""
    cdef int64_t n = greater.shape[0]
    require(size.shape[0] == n and answers.shape[0] == n and out.shape[0] == n,
            "ties: lengths differ")
    return c.kgt_ties(n, &greater[0], &size[0], &answers[0])


def expected_reciprocal(const int64_t[::1] greater, const int64_t[::1] size,
                        const int64_t[::1] answers, double[::1] out):
    """Write the expected 1/rank of the first answer of every tie to out (n,)."""
    cdef c.kgt_ties ties = ties_of(greater, size, answers, out)
    with nogil:
        c.kgt_expected_reciprocal(&ties, &out[0])


def expected_hits(const int64_t[::1] greater, const int64_t[::1] size,
                  const int64_t[::1] answers, int64_t k, double[::1] out):
    """Write the probability that the first answer of every tie ranks within k to out (n,)."""
    cdef c.kgt_ties ties = ties_of(greater, size, answers, out)
    with nogil:
        c.kgt_expected_hits(&ties, k, &out[0])


def expected_log(const int64_t[::1] greater, const int64_t[::1] size, double[::1] out):
    """Write the expected ln(rank) of the one answer of every tie to out (n,)."""
    cdef c.kgt_ties ties = ties_of(greater, size, size, out)
    with nogil:
        c.kgt_expected_log(&ties, &out[0])


cdef int check_offsets(const int64_t[::1] offsets, int64_t n, str name) except -1:
    """Check that offsets rise strictly from 0 to n, so no row is empty."""
    cdef int64_t i, n_rows = offsets.shape[0] - 1
    cdef bint sound = n_rows >= 0 and offsets[0] == 0 and offsets[n_rows] == n
    for i in range(n_rows):
        sound = sound and offsets[i] < offsets[i + 1]
    return require(sound, f"{name}: not ascending offsets")


def stratify(const int64_t[::1] relations, const int64_t[::1] triples, const int64_t[::1] row,
             const int32_t[::1] popularity_of, const double[::1] popularity,
             const double[::1] relation_popularity, const double[:, ::1] values,
             const double[::1] beta_e, const double[::1] beta_r, double[:, :, ::1] out):
    """Write stratified means of values (metrics, rows) to out (metrics, beta_e, beta_r).

    Instances are sorted by triple and triples by relation, with the offsets `triples` and `relations`.
    `row` and `popularity_of` are an instance's column of `values` and index in `popularity`.
    """
    cdef int64_t i, n = row.shape[0]
    cdef bint sound = popularity_of.shape[0] == n
    cdef c.kgt_strata strata
    cdef c.kgt_grid grid
    cdef c.kgt_status status
    check_offsets(triples, n, "triples")
    check_offsets(relations, triples.shape[0] - 1, "relations")
    require(relation_popularity.shape[0] == relations.shape[0] - 1,
            "relation_popularity: wrong length")
    for i in range(n):
        sound = sound and 0 <= row[i] < values.shape[1]
        sound = sound and 0 <= popularity_of[i] < popularity.shape[0]
    require(sound, "row, popularity_of: out of range")
    require(out.shape[0] == values.shape[0] and out.shape[1] == beta_e.shape[0]
            and out.shape[2] == beta_r.shape[0], "out: wrong shape")
    strata = c.kgt_strata(relations.shape[0] - 1, triples.shape[0] - 1, n, popularity.shape[0],
                          &relations[0], &triples[0], &row[0], &popularity_of[0], &popularity[0],
                          &relation_popularity[0])
    grid = c.kgt_grid(&values[0, 0], &beta_e[0], &beta_r[0], values.shape[0], values.shape[1],
                      beta_e.shape[0], beta_r.shape[0])
    with nogil:
        status = c.kgt_stratify(&strata, &grid, &out[0, 0, 0])
    raise_for(status)


def sign_sums(const double[:, ::1] values, uint64_t seed, int64_t first, double[:, ::1] out):
    """Write the sums of the columns of values under the signs of permutations first, first + 1, ... to out.

    out: (permutations, columns of values).
    """
    cdef c.kgt_paired paired
    require(values.shape[0] > 0 and values.shape[1] > 0, "values: empty")
    require(out.shape[1] == values.shape[1] and first >= 0, "out: wrong shape")
    if out.shape[0] == 0:
        return
    paired = c.kgt_paired(&values[0, 0], values.shape[0], values.shape[1], seed)
    with nogil:
        c.kgt_sign_sums(&paired, first, out.shape[0], &out[0, 0])


FAULTS = {c.KGT_BLANK_LINE: "blank", c.KGT_COLUMNS: "columns", c.KGT_SCORE: "score",
          c.KGT_RELEVANCE: "relevance", c.KGT_DUPLICATE: "duplicate", c.KGT_LONG_NAME: "long"}


cdef object fault_tuple(c.kgt_fault fault):
    """A fault as (line, kind, begin of the line), which sorts by line; None if there is none."""
    return (fault.line, FAULTS[fault.kind], fault.begin) if fault.line else None


cdef class TrecText:
    """The bytes of a run or qrels file; the last is a newline. Short lines have three columns."""

    cdef c.kgt_text text
    cdef const unsigned char[::1] owner

    def __init__(self, const unsigned char[::1] data not None, bint is_run, bint short=False,
                 bint comments=True):
        cdef c.kgt_trec_kind kind = c.KGT_RUN if is_run else c.KGT_QRELS
        if short:
            kind = c.KGT_SHORT_RUN if is_run else c.KGT_SHORT_QRELS
        self.owner = data
        require(data.shape[0] > 0 and data[data.shape[0] - 1] == 10, "text: no newline at its end")
        self.text = c.kgt_text(<const char *> &data[0], data.shape[0], kind, comments)

    def groups(self, int64_t at, int64_t stop, int64_t line, int64_t query, int64_t[::1] begin,
               int64_t[::1] lines):
        """Groups from byte `at`, a line's start, to `stop`: as many as `begin` and `lines` hold.

        Returns how many, then at, line and query for the next call, a fault or None, and the
        number of comments among the lines.
        """
        cdef int64_t n_groups, capacity = begin.shape[0]
        cdef c.kgt_scan scan
        scan.at, scan.line, scan.query, scan.n_comments = at, line, query, 0
        scan.fault = c.kgt_fault(c.KGT_NO_FAULT, 0, 0)
        require(0 <= at <= stop <= self.text.size and -1 <= query < self.text.size,
                "groups: beyond the text")
        require(lines.shape[0] == capacity, "groups: lengths differ")
        with nogil:
            n_groups = c.kgt_trec_groups(&self.text, stop, capacity, &scan, &begin[0], &lines[0])
        return (n_groups, scan.at, scan.line, scan.query, fault_tuple(scan.fault),
                scan.n_comments)

    def queries(self, const int64_t[::1] begin, int64_t[::1] query_of, int64_t[::1] name_begin,
                int64_t[::1] name_size):
        """Number the groups' queries in order of appearance, and write their names; return how many."""
        cdef int64_t i, n_queries = 0, n = begin.shape[0]
        cdef c.kgt_status status
        require(query_of.shape[0] == n == name_begin.shape[0] == name_size.shape[0],
                "queries: lengths differ")
        for i in range(n):
            require(0 <= begin[i] < self.text.size, "queries: beyond the text")
        with nogil:
            status = c.kgt_trec_queries(&self.text, n, &begin[0], &query_of[0], &name_begin[0],
                                        &name_size[0], &n_queries)
        raise_for(status)
        return n_queries


cdef class TrecLines:
    """The lines of every query of a text: groups `group`, CSR by query, of `begin` and `line`."""

    cdef c.kgt_lines lines
    cdef readonly int64_t n_queries
    cdef bint is_run, has_ranks
    cdef tuple owners

    def __init__(self, TrecText text not None, const int64_t[::1] first, const int64_t[::1] group,
                 const int64_t[::1] begin, const int64_t[::1] line):
        cdef int64_t i, n = begin.shape[0] - 1
        self.n_queries = first.shape[0] - 1
        self.has_ranks = text.text.kind == c.KGT_RUN
        self.is_run = text.text.kind == c.KGT_RUN or text.text.kind == c.KGT_SHORT_RUN
        check_offsets(first, group.shape[0], "lines")
        require(n == group.shape[0] and line.shape[0] == n + 1, "lines: lengths differ")
        require(0 <= begin[0] and begin[n] == text.text.size, "lines: they do not cover the text")
        for i in range(n):
            require(begin[i] < begin[i + 1] and line[i] < line[i + 1], "lines: not ascending")
            require(0 <= group[i] < n, "lines: group out of range")
        self.lines = c.kgt_lines(&text.text, &first[0], &group[0], &begin[0], &line[0])
        self.owners = (text, first, group, begin, line)

    cdef int check_capacity(self, int64_t first, int64_t stop, int64_t capacity) except -1:
        """Check that there are places for one document per line, query after query."""
        cdef int64_t query, i, group
        require(0 <= first <= stop <= self.n_queries, "queries: out of range")
        for i in range(self.lines.first[first], self.lines.first[stop]):
            group = self.lines.group[i]
            capacity -= self.lines.line[group + 1] - self.lines.line[group]
        return require(capacity >= 0, "documents: capacity too small")

    def documents(self, int64_t first, int64_t stop, int64_t[::1] begin, int32_t[::1] size,
                  values, int64_t[::1] count):
        """Documents of queries first .. stop - 1: begin, size, values, (n,), and count, (queries,).

        values are float64 scores of a run or int64 relevances of qrels. Returns a fault or None.
        """
        cdef double[::1] scores
        cdef int64_t[::1] relevance
        cdef double *to_scores = NULL
        cdef int64_t *to_relevance = NULL
        cdef c.kgt_fault fault = c.kgt_fault(c.KGT_NO_FAULT, 0, 0)
        cdef c.kgt_status status
        self.check_capacity(first, stop, begin.shape[0])
        require(begin.shape[0] == size.shape[0] == len(values), "documents: lengths differ")
        require(count.shape[0] == stop - first, "count: wrong length")
        if self.is_run:
            scores = values
            to_scores = &scores[0]
        else:
            relevance = values
            to_relevance = &relevance[0]
        with nogil:
            status = c.kgt_trec_documents(&self.lines, first, stop - first, &begin[0], &size[0],
                                          to_scores, to_relevance, &count[0], &fault)
        raise_for(status)
        return fault_tuple(fault)


cdef class TrecDocuments:
    """Documents of queries: names in a buffer, and scores (float64) or relevance (int64)."""

    cdef c.kgt_documents documents
    cdef readonly int64_t n_queries
    cdef tuple owners
    cdef void *numbers  # owned memory, if any: see documents_of
    cdef char *names

    def __cinit__(self):
        self.numbers = NULL
        self.names = NULL

    def __dealloc__(self):
        free(self.numbers)
        free(self.names)

    def __init__(self, const unsigned char[::1] text not None, const int64_t[::1] offsets,
                 const int64_t[::1] begin, const int32_t[::1] size, values, bint is_run,
                 const int64_t[::1] ranks=None):
        cdef int64_t i, n = begin.shape[0]
        cdef const double[::1] scores
        cdef const int64_t[::1] relevance
        self.n_queries = offsets.shape[0] - 1
        require(self.n_queries >= 0 and offsets[0] == 0 and offsets[self.n_queries] == n,
                "documents: not ascending offsets")
        for i in range(self.n_queries):
            require(offsets[i] <= offsets[i + 1], "documents: not ascending offsets")
        require(size.shape[0] == n == len(values), "documents: lengths differ")
        for i in range(n):
            require(begin[i] >= 0 and size[i] >= 0 and begin[i] + size[i] <= text.shape[0],
                    "documents: beyond the text")
        self.documents.text = <const char *> &text[0]
        self.documents.offsets = &offsets[0]
        self.documents.begin = &begin[0]
        self.documents.size = &size[0]
        self.documents.scores = NULL
        self.documents.relevance = NULL
        if is_run:
            scores = values
            self.documents.scores = &scores[0]
            if ranks is not None:
                require(ranks.shape[0] == n, "documents: lengths differ")
                self.documents.relevance = &ranks[0]
        else:
            relevance = values
            self.documents.relevance = &relevance[0]
        self.owners = (text, offsets, begin, size, values, ranks)

    def parts(self):
        """Copies of its arrays as bytes: offsets, text, begin, size, and scores or relevance."""
        cdef int64_t n = self.documents.offsets[self.n_queries]
        cdef int64_t end = self.documents.begin[n - 1] + self.documents.size[n - 1] if n else 0
        cdef const char *values = <const char *> self.documents.scores
        if values == NULL:
            values = <const char *> self.documents.relevance
        return ((<const char *> self.documents.offsets)[:8 * (self.n_queries + 1)],
                self.documents.text[:end], (<const char *> self.documents.begin)[:8 * n],
                (<const char *> self.documents.size)[:4 * n], values[:8 * n])

    def name(self, int64_t at):
        """The name of a document, by its number among all."""
        require(0 <= at < self.documents.offsets[self.n_queries], "name: out of range")
        cdef const char *start = self.documents.text + self.documents.begin[at]
        return start[:self.documents.size[at]]


class WrongValue(ValueError):
    """A value that is not a number, or not a whole one. Arguments: mapping, name, value."""


def documents_of(list mappings, bint is_run, name_bytes):
    """TrecDocuments of mappings from name to score or relevance, with copies of all names and values.

    name_bytes(name) gives the bytes of names that are not ASCII str. Raises WrongValue for a score
    that is NaN, not a number or an integer that float64 rounds, and for a relevance that is not a
    whole number within 64 bits.
    """
    cdef TrecDocuments documents = TrecDocuments.__new__(TrecDocuments)
    cdef int64_t i, query, n_queries = len(mappings), n = 0, capacity = 64, used = 0
    cdef Py_ssize_t size
    cdef const char *text
    cdef double score
    cdef int64_t level
    cdef bytes raw
    for mapping in mappings:
        n += len(mapping)
    documents.n_queries = n_queries
    documents.numbers = malloc((n_queries + 1) * 8 + n * 20 + 8)
    capacity += 16 * n
    documents.names = <char *> malloc(capacity)
    if documents.numbers == NULL or documents.names == NULL:
        raise MemoryError
    cdef int64_t *offsets = <int64_t *> documents.numbers
    cdef int64_t *begin = offsets + n_queries + 1
    cdef int64_t *levels = begin + n
    cdef double *scores = <double *> levels
    cdef int32_t *sizes = <int32_t *> (levels + n)
    i = 0
    for query in range(n_queries):
        offsets[query] = i
        for name, value in mappings[query].items():
            require(i < n, "documents: a mapping grew while it was read")
            if is_run:
                score = score_of(value, query, name)
                scores[i] = score
            else:
                level = level_of(value, query, name)
                levels[i] = level
            text = NULL
            if type(name) is str and PyUnicode_IS_COMPACT_ASCII(name):
                text = <const char *> PyUnicode_DATA(name)
                size = PyUnicode_GET_LENGTH(name)
            else:
                raw = name_bytes(name)
                text, size = raw, len(raw)
            require(size < 1 << 31, "documents: a name has 2^31 bytes or more")
            if used + size > capacity:
                capacity = 2 * (used + size)
                grown = realloc(documents.names, capacity)
                if grown == NULL:
                    raise MemoryError
                documents.names = <char *> grown
            memcpy(documents.names + used, text, size)
            begin[i], sizes[i] = used, <int32_t> size
            used += size
            i += 1
    require(i == n, "documents: a mapping shrank while it was read")
    offsets[n_queries] = n
    documents.documents = c.kgt_documents(documents.names, offsets, begin, sizes, NULL, NULL)
    if is_run:
        documents.documents.scores = scores
    else:
        documents.documents.relevance = levels
    return documents


cdef double score_of(value, int64_t query, name) except? -1.0:
    cdef double score
    if type(value) is float:
        score = PyFloat_AS_DOUBLE(value)
    else:
        try:
            score = value
        except (TypeError, ValueError, OverflowError):
            raise WrongValue(query, name, value) from None
        # float64 has every integer up to 2^53, but rounds some beyond it.
        if not -9007199254740992.0 < score < 9007199254740992.0 and hasattr(value, "__index__"):
            if index(value) != score:
                raise WrongValue(query, name, value)
    if score != score:
        raise WrongValue(query, name, value)
    return score


cdef int64_t level_of(value, int64_t query, name) except? -1:
    """A relevance: a whole number, or a float such as 1.0 that has no fraction, up to 2^53."""
    cdef double number
    try:
        return value if type(value) is int else index(value)
    except (TypeError, OverflowError):
        pass
    try:
        number = value if hasattr(type(value), "__float__") else 0.5
    except (TypeError, ValueError, OverflowError):
        number = 0.5
    if not (-9007199254740992.0 <= number <= 9007199254740992.0 and number == <int64_t> number):
        raise WrongValue(query, name, value)
    return <int64_t> number


cdef tuple signs_of(const c.kgt_signs *signs, int64_t n):
    """Signs of n queries: documents, judged, rises of all; how many queries have ranks that
    contradict the scores, in how many of these the order is reversed; and of the first its number,
    upper and lower rank, and whether it is reversed."""
    cdef int64_t i, first = -1, n_wrong = 0, n_reversed = 0
    cdef c.kgt_signs total = c.kgt_signs(0, 0, 0, 0, 0, 0)
    for i in range(n):
        c.kgt_add_signs(&total, &signs[i])
        if signs[i].upper != signs[i].lower:
            first = i if first < 0 else first
            n_wrong += 1
            n_reversed += signs[i].reversed
    return (total.documents, total.judged, total.rises, n_wrong, n_reversed, first, total.upper,
            total.lower, total.reversed)


RISES = c.KGT_RISES


cdef class TrecListing:
    """The lists of a run, which is TrecLines or TrecDocuments; see kgt_listing."""

    cdef c.kgt_listing listing
    cdef TrecLines lines
    cdef TrecDocuments documents
    cdef tuple owners

    def __init__(self, run not None, TrecDocuments judged not None,
                 const int64_t[::1] judged_query, int64_t depth, bint keep_ties,
                 bint judged_only, bint single, int64_t unjudged):
        cdef int64_t i
        self.listing.lines = NULL
        self.listing.documents = NULL
        self.listing.ranked = isinstance(run, TrecLines) and (<TrecLines> run).has_ranks
        if isinstance(run, TrecLines):
            self.lines = run
            require(self.lines.is_run, "run: qrels are not listed")
            self.listing.lines = &self.lines.lines
        else:
            self.documents = run
            require(self.documents.documents.scores != NULL, "run: without scores")
            self.listing.documents = &self.documents.documents
        require(judged.documents.relevance != NULL, "judged: without relevance")
        require(judged_query.shape[0] == run.n_queries, "judged_query: wrong length")
        for i in range(judged_query.shape[0]):
            require(-1 <= judged_query[i] < judged.n_queries, "judged_query: out of range")
        require(depth >= 0, "depth: negative")
        self.listing.judged = &judged.documents
        self.listing.judged_query = &judged_query[0]
        self.listing.cut = c.kgt_cut(depth, keep_ties, judged_only, single)
        self.listing.unjudged = unjudged
        self.owners = (run, judged, judged_query)

    def lists(self, int64_t first, int64_t stop, int64_t[::1] relevance, double[::1] scores,
              int64_t[::1] length, int64_t[::1] retrieved):
        """Lists of queries first .. stop - 1, one after the other.

        Returns a fault or None, and the signs of all these queries: a tuple as of `kgt_signs`.
        """
        cdef int64_t query, capacity = relevance.shape[0]
        cdef c.kgt_fault fault = c.kgt_fault(c.KGT_NO_FAULT, 0, 0)
        cdef c.kgt_status status
        require(0 <= first <= stop <= self.owners[2].shape[0], "queries: out of range")
        for query in range(first, stop):
            if self.listing.judged_query[query] >= 0:
                capacity -= self.most(query)
        require(capacity >= 0, "lists: capacity too small")
        require(scores.shape[0] == relevance.shape[0], "lists: lengths differ")
        require(length.shape[0] == stop - first == retrieved.shape[0], "length: wrong length")
        cdef c.kgt_signs *signs = <c.kgt_signs *> malloc((stop - first + 1) * sizeof(c.kgt_signs))
        if signs == NULL:
            raise MemoryError
        try:
            with nogil:
                status = c.kgt_trec_lists(&self.listing, first, stop - first, &relevance[0],
                                          &scores[0], &length[0], &retrieved[0], signs, &fault)
            raise_for(status)
            return fault_tuple(fault), signs_of(signs, stop - first)
        finally:
            free(signs)

    cdef int64_t most(self, int64_t query):
        """The most documents that a query's list can have."""
        cdef int64_t i, group, size = 0
        if self.listing.lines == NULL:
            size = (self.listing.documents.offsets[query + 1]
                    - self.listing.documents.offsets[query])
        else:
            for i in range(self.listing.lines.first[query], self.listing.lines.first[query + 1]):
                group = self.listing.lines.group[i]
                size += self.listing.lines.line[group + 1] - self.listing.lines.line[group]
        return size if self.listing.cut.keep_ties else min(size, self.listing.cut.depth)


cdef class TrecQrels:
    """Judgements of a plain file, and lists of plain runs by them; see trec_plain.c.

    An object of a file that is not plain is false.
    """

    cdef c.kgt_trec_qrels *qrels

    def __init__(self, bytes path not None, int64_t size, int64_t unjudged):
        cdef const char *name = path
        require(self.qrels == NULL and size >= 0, "qrels: opened twice")
        with nogil:
            self.qrels = c.kgt_trec_open_qrels(name, size, unjudged)

    def __dealloc__(self):
        c.kgt_trec_close_qrels(self.qrels)

    def __bool__(self):
        return self.qrels != NULL

    def has(self, TrecDocuments documents not None):
        """Whether documents are from a text with the same bytes."""
        cdef const unsigned char[::1] text
        require(self.qrels != NULL, "qrels: not plain")
        if documents.owners is None:
            return False
        text = documents.owners[0]
        return text.shape[0] > 0 and c.kgt_trec_same_qrels(
            self.qrels, <const char *> &text[0], text.shape[0])

    def lists(self, bytes path not None, int64_t size, int64_t depth, bint keep_ties,
              bint judged_only, bint single):
        """Lists of a run's judged queries, None if it is not plain: number of all its queries, tag,
        first query that the qrels lack, and bytes of query, length, retrieved, relevance and
        scores."""
        cdef const char *name = path
        cdef c.kgt_cut cut = c.kgt_cut(depth, keep_ties, judged_only, single)
        cdef c.kgt_trec_listed out
        cdef bint plain
        require(self.qrels != NULL and depth >= 0 and size >= 0, "lists: wrong arguments")
        with nogil:
            plain = c.kgt_trec_list_file(self.qrels, name, size, cut, &out)
        try:
            if not plain:
                return None
            return (out.n_queries, out.tag[:out.tag_size], out.foreign[:out.foreign_size],
                    (<char *> out.query)[:8 * out.n_shared],
                    (<char *> out.length)[:8 * out.n_shared],
                    (<char *> out.retrieved)[:8 * out.n_shared],
                    (<char *> out.relevance)[:8 * out.n_documents],
                    (<char *> out.scores)[:8 * out.n_documents])
        finally:
            c.kgt_trec_free_listed(&out)


TREC_MEASURES = {
    "num_q": c.KGT_NUM_Q, "num_ret": c.KGT_NUM_RET, "num_rel": c.KGT_NUM_REL,
    "num_rel_ret": c.KGT_NUM_REL_RET, "num_nonrel_judged_ret": c.KGT_NUM_NONREL_JUDGED_RET,
    "map": c.KGT_MAP, "map_cut": c.KGT_MAP_CUT, "relative_map": c.KGT_RELATIVE_MAP, "F1": c.KGT_F1,
    "gm_map": c.KGT_GM_MAP, "yaap": c.KGT_YAAP,
    "bpref": c.KGT_BPREF, "gm_bpref": c.KGT_GM_BPREF, "infAP": c.KGT_INFAP,
    "recip_rank": c.KGT_RECIP_RANK, "recip_rank_cut": c.KGT_RECIP_RANK_CUT, "P": c.KGT_P,
    "recall": c.KGT_RECALL, "relative_P": c.KGT_RELATIVE_P, "success": c.KGT_SUCCESS,
    "Rprec": c.KGT_RPREC, "Rprec_mult": c.KGT_RPREC_MULT, "iprec_at_recall": c.KGT_IPREC,
    "binG": c.KGT_BING, "judged": c.KGT_JUDGED_CUT, "unj": c.KGT_UNJ, "set_P": c.KGT_SET_P,
    "set_recall": c.KGT_SET_RECALL, "set_relative_P": c.KGT_SET_RELATIVE_P,
    "set_map": c.KGT_SET_MAP, "set_F": c.KGT_SET_F, "dcg": c.KGT_DCG,
    "ideal_dcg": c.KGT_IDEAL_DCG, "ndcg": c.KGT_NDCG, "ndcg_cut": c.KGT_NDCG_CUT,
}


cdef int check_bounds(const int64_t[::1] offsets, int64_t n) except -1:
    cdef int64_t i
    cdef bint sound = offsets[0] == 0 and offsets[offsets.shape[0] - 1] == n
    for i in range(offsets.shape[0] - 1):
        sound &= offsets[i] <= offsets[i + 1]
    return require(sound, "values: not ascending offsets")


cdef class TrecColumns:
    """Measures of TREC_MEASURES, each with its one parameter, in trec_eval's version."""

    cdef c.kgt_column *columns
    cdef readonly int64_t n

    def __cinit__(self, list measures, int64_t compat):
        cdef int64_t i
        self.n = len(measures)
        self.columns = <c.kgt_column *> malloc((self.n + 1) * sizeof(c.kgt_column))
        if self.columns == NULL:
            raise MemoryError
        for i in range(self.n):
            name, parameter = measures[i]
            self.columns[i].measure = TREC_MEASURES[name]
            self.columns[i].parameter = parameter
            if name == "iprec_at_recall" and compat < 10:
                self.columns[i].measure = c.KGT_IPREC_9

    def __dealloc__(self):
        free(self.columns)

    def values(self, tuple documents, double[:, ::1] out):
        """Values of judged lists, (columns, queries).

        documents: offsets, rank or None, relevance, retrieved, judged_offsets, judged, unjudged
        and level of kgt_judged_lists.
        """
        cdef const int64_t[::1] offsets, rank, relevance, retrieved, judged_offsets, judged
        cdef int64_t unjudged, level
        offsets, rank, relevance, retrieved, judged_offsets, judged, unjudged, level = documents
        cdef c.kgt_judged_lists lists
        cdef c.kgt_status status
        cdef int64_t n = retrieved.shape[0]
        require(offsets.shape[0] == n + 1 == judged_offsets.shape[0], "values: lengths differ")
        check_bounds(offsets, relevance.shape[0])
        check_bounds(judged_offsets, judged.shape[0])
        require(rank is None or rank.shape[0] == relevance.shape[0], "rank: wrong length")
        require(out.shape[0] == self.n and out.shape[1] == n, "out: wrong shape")
        lists = c.kgt_judged_lists(n, &offsets[0], NULL, &relevance[0], &retrieved[0], NULL,
                                   &judged_offsets[0], &judged[0], unjudged, level)
        if rank is not None:
            lists.rank = &rank[0]
        with nogil:
            status = c.kgt_trec_values(&lists, self.columns, self.n, &out[0, 0])
        raise_for(status)

    def ties(self, tuple documents, const double[::1] scores not None, bint forms):
        """What the order of documents with equal scores changes; see `changes_of`.

        documents: as for `values`, with all documents; rank is None.
        """
        cdef const int64_t[::1] offsets, relevance, retrieved, judged_offsets, judged
        cdef int64_t unjudged, level
        offsets, _, relevance, retrieved, judged_offsets, judged, unjudged, level = documents
        cdef int64_t n = retrieved.shape[0]
        require(offsets.shape[0] == n + 1 == judged_offsets.shape[0], "ties: lengths differ")
        check_bounds(offsets, relevance.shape[0])
        check_bounds(judged_offsets, judged.shape[0])
        require(scores.shape[0] == relevance.shape[0], "scores: wrong length")
        cdef c.kgt_judged_lists lists = c.kgt_judged_lists(
            n, &offsets[0], NULL, &relevance[0], &retrieved[0], NULL, &judged_offsets[0],
            &judged[0], unjudged, level)
        cdef c.kgt_tied_places ties = c.kgt_tied_places(&scores[0], NULL, NULL)
        return changes_of(&lists, &ties, self, forms)


    def placed_ties(self, tuple documents, const int64_t[::1] first, const int64_t[::1] size):
        """As `ties` with its forms, for lists of judged documents alone.

        documents: as for `values`. first, size: the first rank with the score of each document,
        and how many documents have it.
        """
        cdef const int64_t[::1] offsets, rank, relevance, retrieved, judged_offsets, judged
        cdef int64_t unjudged, level
        offsets, rank, relevance, retrieved, judged_offsets, judged, unjudged, level = documents
        cdef int64_t n = retrieved.shape[0]
        require(offsets.shape[0] == n + 1 == judged_offsets.shape[0], "ties: lengths differ")
        check_bounds(offsets, relevance.shape[0])
        check_bounds(judged_offsets, judged.shape[0])
        require(first.shape[0] == size.shape[0] == rank.shape[0] == relevance.shape[0],
                "ties: wrong length")
        cdef c.kgt_judged_lists lists = c.kgt_judged_lists(
            n, &offsets[0], &rank[0], &relevance[0], &retrieved[0], NULL, &judged_offsets[0],
            &judged[0], unjudged, level)
        cdef c.kgt_tied_places ties = c.kgt_tied_places(NULL, &first[0], &size[0])
        return changes_of(&lists, &ties, self, True)


def measure_rows(object kind, list queries, list names, bytes values not None, dict like=None,
                 bytes differs=None):
    """A dict per query, of the given kind, from name to value. values: float64 (names, queries).

    If a query does not differ, its dict is a copy of that in `like`.
    """
    cdef int64_t i, k, n = len(queries), n_names = len(names)
    require(len(values) == 8 * n * n_names, "values: wrong size")
    require(like is None or (differs is not None and len(differs) == n), "differs: wrong size")
    cdef const double *cells = <const double *> PyBytes_AS_STRING(values)
    cdef const char *news = PyBytes_AS_STRING(differs) if like is not None else NULL
    cdef dict rows = {}
    row = None
    for i in range(n):
        if like is not None and not news[i]:
            rows[queries[i]] = kind(like[queries[i]])
            continue
        # A copy of the row before already has its final size.
        row = kind() if row is None else kind(row)
        for k in range(n_names):
            PyDict_SetItem(row, names[k], cells[k * n + i])
        rows[queries[i]] = row
    return rows


cdef tuple changes_of(const c.kgt_judged_lists *lists, const c.kgt_tied_places *ties,
                      TrecColumns columns, bint forms):
    """Bytes per query: whether ties change it. The most that each measure changes. If `forms`, also the
    mean, least and greatest values of the changed queries, bytes of float64 (columns, queries); if
    not, an empty tuple where ties change nothing."""
    cdef int64_t i, n = lists.n_queries, size = columns.n * n if forms else 0
    cdef c.kgt_status status
    cdef c.kgt_tie_values out
    cdef double *block = <double *> malloc((columns.n + 3 * size + 1) * sizeof(double) + n)
    if block == NULL:
        raise MemoryError
    cdef double *first = block + columns.n
    try:
        out = c.kgt_tie_values(<uint8_t *> (first + 3 * size), block, NULL, NULL, NULL)
        if forms:
            out.expected, out.least, out.greatest = first, first + size, first + 2 * size
        with nogil:
            status = c.kgt_trec_ties(lists, ties, columns.columns, columns.n, &out)
        raise_for(status)
        if not forms and memchr(out.differs, 1, n) == NULL:
            return ()
        kinds = [(<char *> (first + k * size))[:8 * size] for k in range(3 if forms else 0)]
        differs = (<char *> out.differs)[:n]
        return differs, [block[i] for i in range(columns.n)], kinds
    finally:
        free(block)


cdef class TrecQueries:
    """Judged queries, for many evaluations in memory: documents, and their relevance, ranked."""

    cdef TrecDocuments documents
    cdef const int64_t[::1] ranked

    def __init__(self, TrecDocuments documents not None, const int64_t[::1] ranked not None):
        require(documents.documents.relevance != NULL, "queries: without relevance")
        require(documents.documents.offsets[documents.n_queries] == ranked.shape[0],
                "queries: lengths differ")
        self.documents, self.ranked = documents, ranked

    def of_run(self, TrecDocuments run not None, list queries, TrecColumns columns not None,
               bint single, int64_t level, int64_t unjudged, int ties):
        """Values over all documents of a run whose queries have these numbers.

        Returns bytes of values, (columns, queries); a fault or None; if `ties`, the result of
        `changes_of`, with forms if `ties` is 2; and the signs, see `signs_of`.
        """
        cdef int64_t i, n = run.n_queries, size = run.documents.offsets[n]
        cdef int64_t n_judged = self.documents.n_queries
        cdef c.kgt_fault fault = c.kgt_fault(c.KGT_NO_FAULT, 0, 0)
        cdef c.kgt_listing listing
        cdef c.kgt_judged_lists lists
        cdef c.kgt_status status
        cdef c.kgt_tied_places tied
        require(len(queries) == n and run.documents.scores != NULL, "of_run: the run does not fit the queries")
        cdef int64_t *block = <int64_t *> malloc(
            (4 * n + 1 + 2 * size + columns.n * n + 1) * 8 + n * sizeof(c.kgt_signs))
        if block == NULL:
            raise MemoryError
        cdef int64_t *judged_query = block
        cdef int64_t *length = block + n
        cdef int64_t *retrieved = block + 2 * n
        cdef int64_t *offsets = block + 3 * n
        cdef int64_t *relevance = offsets + n + 1
        cdef double *scores = <double *> (relevance + size)
        cdef double *values = scores + size
        cdef c.kgt_signs *signs = <c.kgt_signs *> (values + columns.n * n)
        try:
            for i in range(n):
                judged_query[i] = queries[i]
                require(0 <= judged_query[i] < n_judged, "queries: out of range")
            listing = c.kgt_listing(NULL, &run.documents, &self.documents.documents, judged_query,
                                    c.kgt_cut((<int64_t> 1) << 62, True, False, single), unjudged,
                                    False)
            lists = c.kgt_judged_lists(n, offsets, NULL, relevance, retrieved, judged_query,
                                       self.documents.documents.offsets, &self.ranked[0], unjudged,
                                       level)
            with nogil:
                status = c.kgt_trec_lists(&listing, 0, n, relevance, scores, length, retrieved,
                                          signs, &fault)
                offsets[0] = 0
                for i in range(n):
                    offsets[i + 1] = offsets[i] + length[i]
                if status == c.KGT_OK:
                    status = c.kgt_trec_values(&lists, columns.columns, columns.n, values)
            raise_for(status)
            tied = c.kgt_tied_places(scores, NULL, NULL)
            changes = changes_of(&lists, &tied, columns, ties == 2) if ties else ()
            return ((<char *> values)[:8 * n * columns.n], fault_tuple(fault), changes,
                    signs_of(signs, n))
        finally:
            free(block)


cdef class TrecNumbers:
    """Judged documents as numbers, ascending per query, and their relevance; also ranked."""

    cdef const int64_t[::1] offsets, numbers, relevance, ranked
    cdef int64_t most

    def __init__(self, const int64_t[::1] offsets not None, const int64_t[::1] numbers not None,
                 const int64_t[::1] relevance not None, const int64_t[::1] ranked not None):
        cdef int64_t i
        check_bounds(offsets, numbers.shape[0])
        require(relevance.shape[0] == numbers.shape[0] == ranked.shape[0], "numbers: lengths")
        self.offsets, self.numbers = offsets, numbers
        self.relevance, self.ranked = relevance, ranked
        self.most = 0
        for i in range(offsets.shape[0] - 1):
            self.most = max(self.most, offsets[i + 1] - offsets[i])

    def of_scores(self, scores, const int64_t[:, ::1] names, bint decimal, list queries not None,
                  TrecColumns columns not None, int64_t level, int64_t unjudged, bint ties,
                  bint parts):
        """Values of rows of scores (float32 or float64, C order) for the queries with these numbers.

        names: one row per row of scores, or one for all; None: the columns' positions.
        Returns bytes of values, (columns, queries); the first row with a judged document twice, or -1;
        if `ties`, the result of `changes_of`; and if `parts`, bytes of count, retrieved, rank and
        relevance of kgt_trec_places.
        """
        cdef Py_buffer view  # a typed memoryview would cost as much as a short row
        cdef c.kgt_score_rows rows
        cdef c.kgt_judged_lists lists
        cdef c.kgt_placed placed
        cdef c.kgt_tied_places tied
        cdef c.kgt_status status = c.KGT_OK
        cdef int64_t i, twice, size, n_judged = 0, n = len(queries)
        cdef int64_t *block = NULL
        cdef int64_t *count
        cdef int64_t *retrieved
        cdef int64_t *offsets
        cdef int64_t *rank
        cdef int64_t *relevance
        cdef int64_t *seen
        cdef double *bounds
        cdef double *values
        PyObject_GetBuffer(scores, &view, PyBUF_C_CONTIGUOUS)
        try:
            require(view.ndim == 2 and view.shape[0] == n, "scores: wrong shape")
            require(view.itemsize == 8 or view.itemsize == 4, "scores: wrong item size")
            rows.singles = <const float *> view.buf if view.itemsize == 4 else NULL
            rows.doubles = <const double *> view.buf if view.itemsize == 8 else NULL
            rows.n_rows, rows.n, rows.stride = n, view.shape[1], view.shape[1]
            rows.names, rows.names_stride, rows.decimal = NULL, 0, decimal
            if names is not None:
                require(names.shape[1] == rows.n and names.shape[0] in (1, n), "names: wrong shape")
                rows.names = &names[0, 0]
                rows.names_stride = rows.n if names.shape[0] == n else 0
            for i in queries:
                require(0 <= i < self.offsets.shape[0] - 1, "queries: out of range")
                n_judged += self.offsets[i + 1] - self.offsets[i]
            size = 4 * n + 1 + 4 * n_judged + columns.n * n
            block = <int64_t *> malloc((size + 2 * (self.most + 1)) * 8)
            if block == NULL:
                raise MemoryError
            for i in range(n):
                block[i] = queries[i]
            count, retrieved, offsets = block + n, block + 2 * n, block + 3 * n
            rank = offsets + n + 1
            relevance = rank + n_judged
            placed = c.kgt_placed(rank, relevance, relevance + n_judged, relevance + 2 * n_judged)
            tied = c.kgt_tied_places(NULL, placed.first, placed.size)
            values = <double *> (relevance + 3 * n_judged)
            rows.judged_query, rows.judged_offsets = block, &self.offsets[0]
            rows.judged, rows.relevance = &self.numbers[0], &self.relevance[0]
            lists = c.kgt_judged_lists(n, offsets, rank, relevance, retrieved, block,
                                       &self.offsets[0], &self.ranked[0], unjudged, level)
            seen, bounds = block + size, <double *> (block + size + self.most + 1)
            memset(seen, 0, (self.most + 1) * 8)
            with nogil:
                twice = c.kgt_trec_places(&rows, placed, count, retrieved, seen, bounds)
                if twice < 0:
                    offsets[0] = 0
                    for i in range(n):
                        offsets[i + 1] = offsets[i] + count[i]
                    status = c.kgt_trec_values(&lists, columns.columns, columns.n, values)
            raise_for(status)
            if twice >= 0:
                return b"", twice, (), ()
            changes = changes_of(&lists, &tied, columns, False) if ties else ()
            return (<char *> values)[:8 * n * columns.n], -1, changes, () if not parts else (
                (<char *> count)[:8 * n], (<char *> retrieved)[:8 * n],
                (<char *> rank)[:8 * offsets[n]], (<char *> relevance)[:8 * offsets[n]])
        finally:
            free(block)
            PyBuffer_Release(&view)


def trec_score(const unsigned char[::1] text not None):
    """The number in a field that ends with a newline; None if it is not a number."""
    cdef double score = 0
    require(text.shape[0] > 0 and text[text.shape[0] - 1] == 10, "text: no newline at its end")
    is_number = c.kgt_trec_score(<const char *> &text[0], text.shape[0], &score)
    return score if is_number else None


cdef int64_t count_spans(const int64_t[::1] offsets, int64_t most, str name) except -1:
    """The number of spans. Checks that offsets never fall, from 0 or more to `most` at most."""
    cdef int64_t i, n = offsets.shape[0] - 1
    cdef bint sound = n >= 0 and 0 <= offsets[0] and offsets[n] <= most
    for i in range(n):
        sound = sound and offsets[i] <= offsets[i + 1]
    require(sound, f"{name}: not ascending offsets")
    return n


cdef class RunLines:
    """Lines of a run to write. Names are (text, offsets); the lines of queries are CSR `offsets`."""

    cdef c.kgt_run_lines lines
    cdef int64_t n_documents
    cdef tuple owners

    def __init__(self, queries, documents, const int64_t[::1] offsets not None, bytes tag not None):
        cdef const unsigned char[::1] query_text = queries[0], document_text = documents[0]
        cdef const int64_t[::1] query_offsets = queries[1], document_offsets = documents[1]
        self.lines.n_queries = count_spans(query_offsets, query_text.shape[0], "queries")
        self.n_documents = count_spans(document_offsets, document_text.shape[0], "documents")
        require(offsets.shape[0] == self.lines.n_queries + 1 and offsets[0] == 0,
                "lines: they do not fit the queries")
        count_spans(offsets, offsets[self.lines.n_queries], "lines")
        self.lines.queries = c.kgt_names(<const char *> &query_text[0], &query_offsets[0])
        self.lines.documents = c.kgt_names(<const char *> &document_text[0], &document_offsets[0])
        self.lines.offsets = &offsets[0]
        self.lines.tag = tag
        self.lines.tag_size = len(tag)
        self.owners = (query_text, query_offsets, document_text, document_offsets, offsets, tag)

    def text(self, int64_t first, const int64_t[::1] documents not None, scores not None):
        """Lines from `first` on as bytes: the name and the score (float32 or float64) of each document."""
        cdef const float[::1] singles
        cdef const double[::1] doubles
        cdef c.kgt_run_block block
        cdef int64_t i, capacity, size, n = documents.shape[0]
        cdef bint sound = True
        cdef bytearray out
        cdef char *start
        block.first, block.n, block.document = first, n, &documents[0]
        block.singles, block.doubles = NULL, NULL
        require(0 <= first and first + n <= self.lines.offsets[self.lines.n_queries],
                "lines: out of range")
        require(len(scores) == n, "scores: wrong length")
        if scores.itemsize == 4:
            singles = scores
            block.singles = &singles[0]
        else:
            doubles = scores
            block.doubles = &doubles[0]
        with nogil:
            for i in range(n):
                sound = sound and 0 <= documents[i] < self.n_documents
            capacity = c.kgt_trec_run_capacity(&self.lines, &block) if sound else 0
        require(sound, "documents: out of range")
        out = PyByteArray_FromStringAndSize(NULL, capacity)
        start = PyByteArray_AS_STRING(out)
        with nogil:
            size = c.kgt_trec_write_run(&self.lines, &block, start)
        return memoryview(out)[:size]


def copy_names(const unsigned char[::1] text not None, const int64_t[::1] begin,
               const int32_t[::1] size, unsigned char[::1] out):
    """Write the bytes of the names, one after the other, to out."""
    cdef int64_t i, at = 0, n = begin.shape[0]
    require(size.shape[0] == n, "names: lengths differ")
    for i in range(n):
        require(begin[i] >= 0 and size[i] >= 0 and begin[i] + size[i] <= text.shape[0],
                "names: beyond the text")
        at += size[i]
    require(out.shape[0] == at, "names: wrong size")
    at = 0
    with nogil:
        for i in range(n):
            memcpy(&out[at], &text[begin[i]], <size_t> size[i])
            at += size[i]


cdef class TripleLines:
    """Labels of some lines ``head<TAB>relation<TAB>tail``; it keeps their text alive.

    Parameters
    ----------
    capacity : int
        Most lines per call of `read`.
    n_tabs : {2, 3, 4}
        Tabs per line: 3 with a time, 4 with an interval, whose two ends are one label.
    """

    cdef c.kgt_label *labels
    cdef const unsigned char[::1] text
    cdef readonly int64_t capacity, n
    cdef readonly int n_tabs, n_labels

    def __cinit__(self, int64_t capacity, int n_tabs=2):
        require(0 < capacity < 1 << 40, "lines: capacity out of range")
        require(2 <= n_tabs <= 4, "lines: number of tabs out of range")
        self.capacity, self.n_tabs, self.n_labels = capacity, n_tabs, c.kgt_labels_of(n_tabs)
        self.labels = <c.kgt_label *> malloc(<size_t> capacity * self.n_labels
                                             * sizeof(c.kgt_label))
        if self.labels == NULL:
            raise MemoryError("no memory for the labels of some lines")

    def __dealloc__(self):
        free(self.labels)

    def read(self, const unsigned char[::1] text not None, int64_t size, int64_t at, bint blank):
        """Read at most `capacity` lines of text[at:size], which ends with a newline.

        `LABEL_PAD` bytes must follow; their values do not matter. Returns where to continue, whether
        there were blank lines (pass this to the next call), and whether the next line is faulty.
        """
        cdef c.kgt_label_scan scan = c.kgt_label_scan(at, self.n_tabs, blank, False)
        self.n = 0
        require(0 <= at <= size <= text.shape[0] - c.KGT_LABEL_PAD
                and size < (<int64_t> 1 << 32) - c.KGT_LABEL_PAD,
                "lines: beyond the text")
        require(at == size or text[size - 1] == 10, "lines: no newline at the end")
        self.text = text
        with nogil:
            self.n = c.kgt_label_lines(<const char *> &text[0], size, self.capacity, &scan,
                                       self.labels)
        return scan.at, bool(scan.blank), bool(scan.faulty)


cdef class LabelTable:
    """Distinct labels, and their numbers."""

    cdef c.kgt_label_table table

    def __cinit__(self):
        if not c.kgt_label_open(&self.table):
            raise MemoryError("no memory for a table of labels")

    def __dealloc__(self):
        c.kgt_label_close(&self.table)

    @property
    def n(self):
        """Number of labels."""
        return self.table.n

    @property
    def n_bytes(self):
        """Bytes of all labels."""
        return self.table.n_bytes

    def number(self, TripleLines lines not None, int column, int32_t[:, ::1] rows not None):
        """Write the numbers of the labels in one column of the lines to that column of rows, (n, 3) or
        (n, 4)."""
        cdef c.kgt_status status
        require(rows.shape[0] == lines.n and rows.shape[1] == lines.n_labels
                and 0 <= column < lines.n_labels, "rows: wrong shape")
        require(self.table.records != NULL, "the table is closed")
        require(self.table.n + lines.n < <int64_t> 1 << 31, "more labels than int32 has numbers")
        if lines.n == 0:
            return
        with nogil:
            status = c.kgt_label_numbers(&self.table, <const char *> &lines.text[0], lines.n,
                                         lines.n_labels, lines.labels + column, &rows[0, column])
        if status != c.KGT_OK:
            c.kgt_label_close(&self.table)
        raise_for(status)

    def close(self, int64_t[::1] offsets not None, unsigned char[::1] text not None,
              int32_t[::1] position not None):
        """Write the labels in byte order and the position of each number, and free the table.

        Shapes (n + 1,), (n_bytes,) and (n,).
        """
        cdef c.kgt_status status
        require(self.table.records != NULL, "the table is closed")
        require(offsets.shape[0] == self.table.n + 1 and text.shape[0] == self.table.n_bytes
                and position.shape[0] == self.table.n, "labels: wrong size")
        with nogil:
            status = c.kgt_label_order(&self.table, &offsets[0], <char *> &text[0], &position[0])
            c.kgt_label_close(&self.table)
        raise_for(status)


def renumber_triples(int32_t[:, ::1] rows not None, const int32_t[::1] entities not None,
                     const int32_t[::1] relations not None):
    """Replace the numbers x in rows, (n, 3) or (n, 4), by entities[x] and relations[x]."""
    cdef int64_t i, n = rows.shape[0]
    cdef int32_t n_entities = <int32_t> entities.shape[0], n_relations = <int32_t> relations.shape[0]
    cdef uint32_t head = 0, relation = 0, tail = 0
    require(3 <= rows.shape[1] <= 4, "rows: wrong shape")
    with nogil:
        for i in range(n):
            head = max(head, <uint32_t> rows[i, 0])
            relation = max(relation, <uint32_t> rows[i, 1])
            tail = max(tail, <uint32_t> rows[i, 2])
    require(n == 0 or (max(head, tail) < <uint32_t> n_entities
                       and relation < <uint32_t> n_relations), "rows: a number out of range")
    with nogil:
        c.kgt_label_renumber(&rows[0, 0], n, rows.shape[1], &entities[0], &relations[0])


def map_guard_begin():
    """From now on, lost pages of mapped files are read as zeros and counted; see map.h.

    Pairs of begin and end may be nested and may come from any thread; the GIL separates the calls.
    """
    c.kgt_map_guard_begin()


def map_guard_end():
    """End what `map_guard_begin` began."""
    c.kgt_map_guard_end()


def map_faults():
    """How many such pages were read since the process began."""
    return c.kgt_map_faults()


def available_paths():
    """Names of the kernel paths that this build and machine can run, best first."""
    cdef const char *name
    cdef int i = 0
    names = []
    while True:
        name = c.kgt_path_name(i)
        if name == NULL:
            return names
        names.append(name.decode())
        i += 1


def best_path():
    """Name of the path that is used unless another is forced.

    It is the first of `available_paths` that has run on a processor, not only in an emulator.
    """
    return c.kgt_path_best().decode()


def active_path():
    """Name of the kernel path in use."""
    return c.kgt_path_active().decode()


def force_path(name):
    """Use the named kernel path from now on (None: `best_path`). UsageError if it is not available."""
    cdef bytes encoded = b"" if name is None else name.encode()
    cdef const char *chosen = NULL
    if name is not None:
        chosen = encoded
    if not c.kgt_path_force(chosen):
        raise UsageError(
            f"kernel path {name!r} is not available here; choose one of {available_paths()}")


if environ.get("KGTREC_ISA"):
    try:
        force_path(environ["KGTREC_ISA"])
    except UsageError as error:
        raise UsageError(f"environment variable KGTREC_ISA: {error}") from None
