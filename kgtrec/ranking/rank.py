"""`rank`: ranks every answer of every question by any source of scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import QUESTIONS, require_items
from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.progress import progress_bar
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.questions.api import Questions
from kgtrec.questions.terms import PLURAL
from kgtrec.ranking.blocks import nan_error, rank_all, rank_block
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.partial import build_ranks, build_run
from kgtrec.ranking.ranker import Ranker, check_factors, prepare_rows
from kgtrec.ranking.ranks import RanksAndRun
from kgtrec.ranking.rows import QuestionLists, RowPlan
from kgtrec.ranking.settings import RankOptions, Settings
from kgtrec.scores.arrays import ScoreBlock
from kgtrec.scores.factors import Factors
from kgtrec.scores.mapped_files import reading
from kgtrec.scores.sources import BLOCK_BYTES, MatrixSource, as_source, select_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack


@overload
def rank(
    source: Any,
    questions: Questions,
    run_depth: int = 0,
    threads: int | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[RankOptions],
) -> RanksAndRun: ...
@overload
def rank(
    source: Any,
    questions: Mapping[str, Questions],
    run_depth: int = 0,
    threads: int | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[RankOptions],
) -> dict[str, RanksAndRun]: ...
def rank(
    source: Any,
    questions: Questions | Mapping[str, Questions],
    run_depth: int = 0,
    threads: int | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[RankOptions],
) -> RanksAndRun | dict[str, RanksAndRun]:
    """Rank every answer of every question by a source of scores.

    Parameters
    ----------
    source : object
        Scores, with rows in question order and columns in entity-id order:

        - a matrix (numpy, or anything with DLPack or ``__array__``);
        - the path of a ``.npy`` file, of a folder of ``.npy`` shards (joined by name, ``2.npy``
          before ``10.npy``), or of an ``.npz`` with a factorised model;
        - a mapping with ``head`` and ``tail`` matrices of one row per triple, which implies
          ``rows="instances"``;
        - `Factors`, a callable ``score(batch)``, or an iterable of matrices.

        If questions are about some of the triples (`entities`, `relations` of `Graph.questions`),
        or separate, a matrix, files or `Factors` may have the rows of all questions of the split.
    questions : Questions, or mapping of str to Questions
        A single pass over the scores ranks several questions that differ only in their filters
        (`Graph.questions_by_filter`).
    run_depth, threads, rows, higher_is_better, nan, columns, atol, rtol
        As for `Ranker`.
    progress : bool, optional
        A progress bar on standard error: None shows one on a terminal, for work that takes a while.

    Returns
    -------
    RanksAndRun
        A pair: ``ranks, run = kgtrec.rank(scores, questions, run_depth=20)``, or its attributes:

        - ranks : `Ranks`, counts per instance: greater, equal, candidates, for micro and macro
          candidates;
        - run : `Run`, the ``run_depth`` best candidates of every question in trec order, none
          without a depth.
    dict of str to RanksAndRun
        For a mapping: ranks and run by name; they equal those of separate passes.

    Raises
    ------
    InputError
        Wrong shapes or dtypes, NaN among the candidates, too few or too many rows.
    FileError
        A file cannot be read, or was written to or cut short while it was ranked; also the file of
        an array that ``numpy.load`` has mapped.
    """
    settings = Settings.from_options(
        "rank", RankOptions, options, run_depth=run_depth, threads=threads
    )
    several = questions if isinstance(questions, Mapping) else {"": questions}
    states = rank_natively(source, several, settings, progress)
    ranked = {
        name: RanksAndRun(build_ranks(state, each), build_run(state, each))
        for (name, each), state in zip(several.items(), states, strict=True)
    }
    return ranked if several is questions else ranked[""]


def rank_natively(
    source: Any, named: Mapping[str, Questions], settings: Settings, progress: bool | None = None
) -> list[NativeRanking]:
    """Rank as `rank` does, but return the native rankings, in the order of the named questions.

    Callers build only what they need: ranks, runs or both.
    """
    if isinstance(source, Mapping):  # a matrix per side has a row per triple
        settings = replace(settings, rows="instances")
    if len(named) != 1:
        _check_same_questions(named)
    questions = list(named.values())
    plans = [prepare_rows(each, settings) for each in questions]
    first, n_rows = questions[0], plans[0][1].n_rows
    path = source if isinstance(source, (str, PathLike)) else ""
    vectors = (source.queries, *source.table) if isinstance(source, Factors) else ()
    with reading(path or "scores", *vectors):
        scores = as_source(source, first, lambda n: Ranker(first, **vars(settings)).batches(n))
        facts = scores.facts if isinstance(scores, Factors) else ()
        by_entity = isinstance(scores, Factors)
        n_scored = len(scores.queries) if isinstance(scores, Factors) else scores.n_rows
        chosen = rows_to_rank(first, settings.rows, n_rows, n_scored, by_entity)
        scores = scores if chosen is None else select_rows(scores, chosen)
        rank = _rank_factors if isinstance(scores, Factors) else _rank_blocks
        try:
            states = rank(plans, questions, scores, settings, progress)
        except InputError as error:
            if isinstance(error, FileError) or not path:
                raise
            raise InputError(f"{getattr(scores, 'file', '') or path}: {error.marked}") from None
    for state in states:
        state.model_facts = facts
    return states


Plans = list[tuple[QuestionLists, RowPlan]]


def _rank_factors(
    plans: Plans, questions: list[Questions], factors: Any, settings: Settings, show: bool | None
) -> list[NativeRanking]:
    """Rank all rows of all questions by a factorised model."""
    n_rows, states = plans[0][1].n_rows, []
    check_factors(questions[0], n_rows, factors.shape, settings)
    for (lists, plan), each in zip(plans, questions, strict=True):
        make_error = partial(nan_error, each)
        ordered = factors if lists.column_of is None else factors.select_entities(lists.column_of)
        with progress_bar(n_rows, "rows", show) as bar:
            states.append(rank_all(lists, plan, ordered, settings, make_error, advance=bar.update))
    return states


def _rank_blocks(
    plans: Plans, questions: list[Questions], source: Any, settings: Settings, show: bool | None
) -> list[NativeRanking]:
    """Rank all rows of all questions by the blocks of a source, in a single pass over it."""
    first, states = questions[0], list[NativeRanking]()
    rows, n_rows, start = settings.rows, plans[0][1].n_rows, 0

    def rank_pieces(scores: Any) -> None:
        for piece in ScoreBlock.from_scores(scores, not settings.higher_is_better, start).pieces():
            if not states:
                states.extend(NativeRanking(*plan, settings, piece.dtype) for plan in plans)
            for state, each in zip(states, questions, strict=True):
                state.check_dtype(piece.dtype)
                rank_block(state, piece, partial(nan_error, each))

    if source.n_rows is not None and source.n_rows != n_rows:
        raise InputError(_wrong_rows(first, rows, source.n_rows, n_rows))
    matrices = [part.values for part in source.parts] if isinstance(source, MatrixSource) else []
    if len(matrices) == 1 and getattr(matrices[0], "nbytes", BLOCK_BYTES + 1) <= BLOCK_BYTES:
        show = False  # one block ends before a bar appears
    with progress_bar(n_rows, "rows", show) as bar:
        for block in source.blocks():
            stop = start + (len(block) if block.ndim else 0)
            if block.ndim != 2 or block.shape[1] != first.n_columns:
                raise InputError(_wrong_columns(first, block))
            if stop > n_rows:
                raise InputError(_wrong_rows(first, rows, stop, n_rows, "at least "))
            try:
                if stop > start:
                    rank_pieces(block)
            except InputError:
                source.check()  # half-written scores may cause an error that others do not
                raise
            bar.update(stop - start)
            start = stop
    if start < n_rows:
        raise InputError(_wrong_rows(first, rows, start, n_rows))
    return states


def _check_same_questions(questions: Mapping[str, Questions]) -> None:
    """Raise UsageError unless all questions are alike, apart from their filters."""
    if not questions:
        raise UsageError("the mapping of questions is empty; graph.questions_by_filter() makes one")
    require_items("questions", [*questions.values()], Questions, QUESTIONS)
    (name, first), *others = questions.items()
    for other, second in others:
        arrays, other_arrays = _collect_unfiltered(first), _collect_unfiltered(second)
        if arrays.keys() != other_arrays.keys() or not all(
            np.array_equal(array, other_arrays[key]) for key, array in arrays.items()
        ):
            raise UsageError(
                f"questions {name!r} and {other!r} differ in more than their filter; rank them one "
                "by one, or make them with graph.questions_by_filter"
            )


def _collect_unfiltered(questions: Questions) -> dict[str, Any]:
    """Return values by name that are equal if two sets of questions differ only in filters.

    They contain the questions in their order, and the meaning of rows and columns.
    """
    text, before, after = questions.origin.hash_parts()
    shape = {"text": text, "width": questions.n_columns, "rows": questions.triple_rows}
    return {**before, **after, **shape, "columns": np.array(questions.column_of)}


def rows_to_rank(
    questions: Questions, rows: str, n_rows: int, n_scored: int | None, by_entity: bool
) -> Int64 | None:
    """Select the `n_rows` rows of a ranking among `n_scored` rows of scores; return their indices.

    None if all rows are ranked, or if no selection fits. `by_entity` is True if columns are in the
    order of entities, as those of a factorised model, even if the questions declare another order.
    Raises InputError if rows may be those of the kept triples or those of all questions.
    """
    separate = bool(questions.details.get("separate"))
    if n_scored == n_rows:
        if separate and questions.origin.has_further_rows and not by_entity:
            _refuse_ambiguous_rows(questions, n_rows)
        return None
    if not questions.origin.has_further_rows and not separate:
        return None
    chosen, total = questions.origin.rows_among("instances" if separate else rows)
    if n_scored == total:
        return chosen
    if separate and (by_entity or questions.n_columns == questions.n_labels):
        chosen, total = questions.origin.rows_among("questions")
        if n_scored == total:
            return chosen
        used, chosen = np.unique(chosen, return_inverse=True)  # only of the kept triples
        if n_scored == len(used):
            return chosen.reshape(-1)
    return None


def _refuse_ambiguous_rows(questions: Questions, n_rows: int) -> None:
    """Raise InputError if there are as many questions in the split as kept pairs (triple, side)."""
    n_questions = questions.origin.rows_among("questions")[1]
    n_pairs = questions.origin.rows_among("instances")[1]
    if n_questions == n_rows < n_pairs and questions.n_columns == questions.n_labels:
        raise InputError(
            f"scores have {n_rows} rows: the number of (triple, side) pairs that are kept, and "
            f"also that of all questions{questions.origin.source}; give {n_pairs} rows, one per "
            "(triple, side) of the split"
        )


def check_shape(questions: Questions, rows: str, n_rows: int, shape: tuple[int, int]) -> None:
    """Raise InputError if a matrix of scores has another shape than the ranking."""
    if shape[0] != n_rows:
        raise InputError(_wrong_rows(questions, rows, shape[0], n_rows))
    if shape[1] != questions.n_columns:
        raise InputError(_wrong_columns(questions, np.broadcast_to(np.float32(0), shape)))


def _wrong_rows(questions: Questions, rows: str, n_rows: int, expected: int, more: str = "") -> str:
    """Return the message on scores with a wrong number of rows, with the likely reason."""
    kind = "question" if rows == "questions" else "(triple, side)"
    terms = ".entity, .tail" if questions.kind == "relation" else ".entity, .relation"
    source = questions.origin.source
    text = f"scores have {more}{n_rows} rows; expected {expected}, one per {kind}{source}"
    other = questions.n_instances if rows == "questions" else len(questions)
    if n_rows == other and not more and questions.split is not None:
        choice = "instances" if rows == "questions" else "questions"
        return (
            f"{text}; {n_rows} is the number of {choice}: if rows are {choice}, pass "
            f"{argument('rows', choice)}"
        )
    if n_rows == questions.n_labels and not more:
        labels = PLURAL[questions.kind]
        return f"{text}; {n_rows} is the number of {labels}: pass scores.T if they are transposed"
    if questions.split is None:
        return f"{text}; give the rows in the order of questions.ids"
    dropped = questions.graph.duplicates.get(questions.split, 0)
    if dropped and n_rows - expected in (dropped, 2 * dropped):
        return f"{text}; split {questions.split!r} has {dropped} repeated triples; score each once"
    return (
        f"{text}; score every question of questions{terms}, .side in that order "
        "(kgtrec convert --write-questions lists them)"
    )


def _wrong_columns(questions: Questions, block: Array) -> str:
    """Return the message on scores with a wrong number of columns, with the likely reason."""
    text = (
        f"scores have shape {tuple(block.shape)}; expected {questions.n_columns} columns, one per "
        f"{questions.kind if questions.n_columns == questions.n_labels else 'listed candidate'}"
    )
    if block.ndim != 2:
        shape = f"(rows, {questions.n_columns})"
        return f"a chunk of scores has shape {tuple(block.shape)}; each must be {shape}"
    if len(block) == questions.n_labels:
        return f"{text}; they look transposed: pass scores.T"
    if questions.split is None:
        return f"{text}; give the columns in the order of ids (questions.candidate_labels)"
    n, graph = block.shape[1], questions.graph
    where = f"graph.{PLURAL[questions.kind]}"
    text = f"{text}; give the columns in the order of {questions.kind} ids ({where})"
    if questions.kind != "entity" or n < questions.n_columns or n <= questions.n_labels:
        return text
    if hint := graph.hint_of_width(n):
        return f"{text}; {hint}"
    return (
        f"{text}; if the model has entities that no triple names, copy its dictionary "
        "(entity2id.txt or entities.txt) into the graph's folder"
    )
