"""Ranks: the result of a ranking, one row per instance. Every metric is computed from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from os.path import splitext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import PATH, require_items, require_type
from kgtrec._internal.arrays import Array, Bools, Float64, Int64
from kgtrec._internal.table import import_pandas, lines_as_html
from kgtrec.errors import InputError, UsageError, choose
from kgtrec.graph.labels import Labels
from kgtrec.questions.api import Questions
from kgtrec.questions.terms import NAMES, SIDES, TERM
from kgtrec.ranking.columns import (
    COUNTED,
    ONLY_OF_GRAPHS,
    OPTIONAL,
    REQUIRED,
    QuestionSource,
    RanksSource,
    StoredSource,
    build_count_columns,
    convert_columns,
    get_or_make,
)
from kgtrec.ranking.provenance import EVALUATION, SCORING, Provenance, check_alike
from kgtrec.ranking.tie_report import tie_report

if TYPE_CHECKING:
    import pandas

    from kgtrec.trec.files.run import Run

RANK_TYPES = ("optimistic", "realistic", "pessimistic", "ordinal")

T = TypeVar("T")

_OTHER_ENDINGS = (".csv", ".tsv", ".txt", ".json", ".npy", ".npz", ".pkl", ".feather", ".xlsx")
"""Endings of formats in which ranks are not saved."""


class Ranks:
    """Counts per instance (an answer of a question), as numpy columns of shape (n,).

    Counts are stored. The other columns come from the questions and are computed when they are
    first read. `column` reads the columns of terms (`Questions.from_answers`).

    Parameters
    ----------
    columns : mapping of str to array_like
        Every column by name; `kgtrec.ranking.columns.COLUMN_TYPES` lists them.
    manifest : dict, optional
        See `manifest`.
    relation_labels, entity_labels : sequence of str, optional
        Label of every relation id, and of every entity id.
    source : RanksSource, optional
        The source of all columns but the counts, of manifest and labels. `columns` then contains
        only the counts, in their types.

    Attributes
    ----------
    greater, equal, tied_ahead, candidates : ndarray of int64
        Numbers of micro candidates that score higher than the answer, and that tie with it. Number
        of tied ones that precede the answer in trec order. Number of all, the answer included.
    macro_greater, macro_equal, macro_tied_ahead, macro_candidates : ndarray of int64
        The same among the question-level candidates.
    answer_nan, macro_answer_nan : ndarray of bool
        True if the answer's score was NaN (only with ``nan="worst"``). Its rank is ``candidates``,
        and no run contains it. The two differ only if a question has several rows of scores.
    unlisted, macro_unlisted : ndarray of bool, or None
        True if the answer is beyond the end of its predicted list (`rank_lists`). Its rank is any
        from ``greater + 1`` to ``candidates``. None if the ranks do not come from lists.

    Raises
    ------
    InputError
        Columns are missing, differ in length, or contain values that are not whole numbers.
    """

    greater: Int64
    equal: Int64
    tied_ahead: Int64
    candidates: Int64
    macro_greater: Int64
    macro_equal: Int64
    macro_tied_ahead: Int64
    macro_candidates: Int64
    answer_nan: Bools
    macro_answer_nan: Bools
    unlisted: Bools | None
    macro_unlisted: Bools | None

    def __init__(
        self,
        columns: Mapping[str, npt.ArrayLike],
        manifest: dict[str, Any] | None = None,
        relation_labels: Sequence[str] | None = None,
        entity_labels: Sequence[str] | None = None,
        *,
        source: RanksSource | None = None,
    ) -> None:
        if source is None:
            facts = {} if manifest is None else manifest
            columns = _complete_columns(columns, facts)
            others = {
                name: column for name, column in columns.items() if name not in _RANKED_COLUMNS
            }
            source = StoredSource(others, facts, relation_labels, entity_labels)
        self._source: RanksSource = source
        counted: Mapping[str, Any] = columns
        for name in _RANKED_COLUMNS:
            setattr(self, name, counted.get(name))

    @classmethod
    def from_counts(
        cls,
        questions: Questions,
        counts: Int64,
        unscored: Iterable[Bools],
        scores: Callable[[], dict[str, Any]],
        further: dict[str, Array] | None = None,
    ) -> Ranks:
        """Return the ranks of all instances of questions, from the kernel's counts.

        Parameters
        ----------
        counts : ndarray of int64, shape (6, n)
            See `build_count_columns`.
        unscored : pair of ndarray of bool, shape (n,)
            Answers without a score, among micro and among macro candidates.
        scores : callable
            Returns the description of the scores for the manifest.
        further : dict of str to ndarray of int64 or bool, shape (n,), optional
            Optional columns of counts.
        """
        counted = build_count_columns(questions, counts, unscored) | (further or {})
        return cls(counted, source=QuestionSource(questions, scores))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle or copy; columns that were not read yet are computed."""
        source = self._source
        stored = StoredSource(
            source.columns, self.manifest, self.relation_labels, self.entity_labels
        )
        return {**vars(self), "_source": stored}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Origin of the ranks, in plain JSON types.

        It describes the questions (splits, sizes, hashes, filter), the scores (dtype, direction,
        NaN count) and versions.
        """
        return self._source.manifest

    @cached_property
    def relation_labels(self) -> Sequence[str] | None:
        """Label of every relation id; None if ids are their own labels."""
        return self._source.relation_labels

    @cached_property
    def entity_labels(self) -> Sequence[str] | None:
        """Label of every entity id; None if ids are their own labels."""
        return self._source.entity_labels

    @cached_property
    def triple(self) -> Int64:
        """Row of the instance's triple in the evaluated split: int64, shape (n,).

        If the value of a qualifier was asked, it is the row in ``graph.qualifier_facts(split)``.
        """
        return self._column_of_source("triple")

    @cached_property
    def question(self) -> Int64:
        """Index of the instance's question: int64, shape (n,). `question_ids` names them."""
        return self._column_of_source("question")

    @cached_property
    def side(self) -> Int64:
        """Code of the side that was asked: int64, shape (n,).

        0: head, 1: tail, 2: relation, 3: value of a qualifier.
        """
        return self._column_of_source("side")

    @cached_property
    def relation(self) -> Int64:
        """Id of the relation: int64, shape (n,).

        If the value of a qualifier was asked, it is the relation of the qualifier.
        """
        return self._column_of_source("relation")

    @cached_property
    def given(self) -> Int64:
        """Id of the given entity: int64, shape (n,).

        If the value of a qualifier was asked, it is the head of the statement.
        """
        return self._column_of_source("given")

    @cached_property
    def answer(self) -> Int64:
        """Id of the answer: an entity, or a relation if that was asked. Int64, shape (n,)."""
        return self._column_of_source("answer")

    @cached_property
    def answer_popularity(self) -> Int64:
        """Occurrences of the answer in the triples of all splits: int64, shape (n,)."""
        return self._column_of_source("answer_popularity")

    @cached_property
    def relation_popularity(self) -> Int64:
        """Number of triples of the evaluated split with the relation: int64, shape (n,)."""
        return self._column_of_source("relation_popularity")

    @cached_property
    def given_relation(self) -> Int64 | None:
        """Relation of the statement if a qualifier's value was asked, otherwise None.

        int64, shape (n,).
        """
        return self._optional_column("given_relation")

    @cached_property
    def given_tail(self) -> Int64 | None:
        """Id of the given tail if the relation or a qualifier's value was asked, otherwise None.

        int64, shape (n,). `given` has the head.
        """
        return self._optional_column("given_tail")

    @cached_property
    def context(self) -> Int64 | None:
        """Number of the question's time, or set of qualifiers; None without them.

        int64, shape (n,). `context_labels` names it.
        """
        return self._optional_column("context")

    @cached_property
    def full_candidates(self) -> Int64 | None:
        """Number of micro candidates before sampling: int64, shape (n,).

        None if candidates were not sampled.
        """
        return self._optional_column("full_candidates")

    @cached_property
    def grade(self) -> Int64 | None:
        """Relevance of the answer: int64, shape (n,).

        None if questions have no grades (`Questions.from_answers`).
        """
        return self._optional_column("grade")

    def _optional_column(self, name: str) -> Int64 | None:
        """Return a column of the source, or None if it lacks the column."""
        return self._source.columns.get(name)

    def _column_of_source(self, name: str) -> Int64:
        """Return a column of the source, or a constant one that only graph questions have."""
        if name in ONLY_OF_GRAPHS and not self.of_graph:
            return np.broadcast_to(np.int64(ONLY_OF_GRAPHS[name]), len(self))
        return self._source.columns[name]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that these ranks have, those of terms last."""
        names = _list_required_columns(self.provenance)
        names += [name for name in OPTIONAL if self.column(name) is not None]
        return names if self.of_graph else sorted(names, key=lambda name: name.startswith(TERM))

    def column(self, name: str) -> Any:
        """Return a column by its name: int64 or bool, shape (n,); None if it is absent."""
        return self._optional_column(name) if name.startswith(TERM) else getattr(self, name)

    def columns(self) -> dict[str, Array]:
        """Return all columns by name: int64 or bool, shape (n,)."""
        return {name: self.column(name) for name in self.column_names}

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas frame with a row per instance: all columns, and the realistic rank.

        Ids are as in the columns; `entity_labels` and `relation_labels` name them.
        """
        pandas = import_pandas("columns")
        return pandas.DataFrame({"rank": self.rank(), **self.columns()})

    def compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return a value that depends on the questions alone; `make` computes it the first time.

        All ranks of the same questions share it.
        """
        return get_or_make(self._source.cache, name, make)

    def __len__(self) -> int:
        return len(self.greater)

    def __repr__(self) -> str:
        facts = self.provenance
        of = [f" of {facts.graph_name}" if facts.graph_name else ""]
        of += [f"split {facts.split}"] if facts.split else []
        among = " among sampled candidates" if self.sampled else ""
        ties = int(np.count_nonzero(self.equal))
        return (
            f"Ranks{', '.join(of)}\n"
            f"  {len(self):,} instances of {len(np.unique(self.question)):,} questions{among}\n"
            f"  ties: {ties:,} instances"
        )

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))

    @cached_property
    def of_graph(self) -> bool:
        """True if the questions come from a graph; otherwise the manifest names them."""
        return not self.provenance.question_ids

    @property
    def provenance(self) -> Provenance:
        """The manifest as a typed value."""
        return Provenance.from_manifest(self.manifest)

    @cached_property
    def context_labels(self) -> dict[int, str]:
        """Labels of the times, or sets of qualifiers, by number; empty if questions have none."""
        return {int(number): text for number, text in self.provenance.contexts.items()}

    @property
    def kind(self) -> str:
        """Kind of the answers: "entity" or "relation"."""
        return (
            "relation" if self.given_tail is not None and self.given_relation is None else "entity"
        )

    @property
    def sampled(self) -> bool:
        """True if each question had a separate list of candidates, such as sampled ones."""
        return self.provenance.sampled

    def rank(self, kind: str = "realistic") -> Float64:
        """Compute the filtered rank of every instance, float64 (n,), from 1 to ``candidates``.

        Parameters
        ----------
        kind : {"optimistic", "realistic", "pessimistic", "ordinal"}
            With g greater and e equal: g + 1, g + 1 + e/2, g + e + 1, and g + 1 + tied_ahead, the
            rank in trec order.
        """
        return _rank(kind, self.greater, self.equal, self.tied_ahead)

    def macro_rank(self, kind: str = "realistic") -> Float64:
        """Compute ranks as `rank` does, among the macro candidates; float64, shape (n,)."""
        return _rank(kind, self.macro_greater, self.macro_equal, self.macro_tied_ahead)

    @property
    def n_unlisted(self) -> int:
        """Number of instances whose answer is beyond the end of its predicted list."""
        return 0 if self.unlisted is None else int(np.count_nonzero(self.unlisted))

    def best_and_worst(self) -> tuple[Ranks, Ranks] | None:
        """Return these ranks twice: with the best and with the worst ranks beyond predicted lists.

        At best, answers beyond the end of a list follow right after it. At worst, they come last.
        Several such answers of a question get consecutive macro ranks. Returns None if every rank
        is known.
        """
        if self.unlisted is None or self.macro_unlisted is None:
            return None
        if not self.unlisted.any() and not self.macro_unlisted.any():
            return None
        micro = bound_unlisted(self.unlisted, self.greater, self.candidates, None)
        macro = bound_unlisted(
            self.macro_unlisted, self.macro_greater, self.macro_candidates, self.question
        )
        return self._with_greater(micro[0], macro[0]), self._with_greater(micro[1], macro[1])

    def _with_greater(self, greater: Int64, macro_greater: Int64) -> Ranks:
        """Return the ranks with these counts, in which no answer is unlisted."""
        columns: dict[str, Any] = self.columns()
        columns |= {"greater": greater, "macro_greater": macro_greater}
        for prefix in ("", "macro_"):
            beyond = columns.pop(f"{prefix}unlisted")
            for name in ("equal", "tied_ahead"):
                columns[prefix + name] = np.where(beyond, 0, columns[prefix + name])
        return Ranks(columns, self.manifest, self.relation_labels, self.entity_labels)

    def subset(
        self,
        rows: npt.ArrayLike | slice = slice(None),
        *,
        side: str | None = None,
        relation: str | int | None = None,
    ) -> Ranks:
        """Return the ranks of some instances.

        >>> ranks.subset(side="tail", relation="borders")               # doctest: +SKIP
        >>> ranks.subset(ranks.candidates > 100)                        # doctest: +SKIP

        Parameters
        ----------
        rows : array of bool, shape (n,), array of int, shape (k,), or slice
            A mask of the instances, or their indices. Columns contain ids, not names: a mask
            ``ranks.side == "tail"`` marks nothing.
        side : {"head", "tail", "both", "relation", "qualifier", "all"}, optional
            Of `rows`, only the instances that ask this side.
        relation : str or int, optional
            Of `rows`, only the instances of a relation, by its label or id.

        Raises
        ------
        UsageError
            A mask that marks nothing, a side or a relation that no instance has, or rows that are
            not those of instances.
        """
        chosen = _check_rows(rows, len(self))
        if side is not None or relation is not None:
            chosen = self._select_names(np.arange(len(self))[chosen], side, relation)
        columns = {name: column[chosen] for name, column in self.columns().items()}
        # Checks of all questions do not apply to some of them.
        manifest = {key: self.manifest[key] for key in self.manifest if key != "trec_agreement"}
        return Ranks(columns, manifest, self.relation_labels, self.entity_labels)

    def _select_names(self, rows: Int64, side: str | None, relation: str | int | None) -> Int64:
        """Return those rows, int64 (k,), that have a side and a relation; see `subset`."""
        keep = np.ones(len(self), bool)
        if side is not None:
            choose("side", side, SIDES)
            keep &= np.isin(self.side, SIDES[side])
        if relation is not None:
            ids, labels = np.unique(self.relation).tolist(), self.relation_labels
            names = {number if labels is None else labels[number]: number for number in ids}
            choose("relation", relation, names if isinstance(relation, str) else ids)
            keep &= self.relation == names.get(relation, relation)
        selected = rows[keep[rows]]
        if not len(selected):
            given = {"side": side, "relation": relation}
            told = [argument(name, value) for name, value in given.items() if value is not None]
            raise UsageError(
                f"no instance among {argument('rows')} has {' and '.join(told)}; choose others"
            )
        return selected

    @property
    def question_ids(self) -> list[str]:
        """Name of the question of each instance, as in TREC files: head0, ..., tail0, ...

        If relations are asked, names are relation0, ...
        """
        facts = self.provenance
        if facts.question_ids:
            return [facts.question_ids[number] for number in self.question.tolist()]
        if facts.question_numbers:
            numbers = np.asarray(facts.question_numbers)[self.question]
        else:
            numbers = self.question - facts.n_head_questions * (self.side == 1)
        pairs = zip(self.side.tolist(), numbers.tolist(), strict=True)
        names = [f"{NAMES[side]}{number}" for side, number in pairs]
        if self.context is None:
            return names
        texts = self.context_labels
        contexts, context_of = np.unique(self.context, return_inverse=True)
        times = Labels.from_strings([texts[int(number)] for number in contexts]).docnos[context_of]
        return [f"{name}@{time}" for name, time in zip(names, times, strict=True)]

    def tie_report(self) -> dict[str, Any]:
        """Show how much ties matter, over all instances and micro candidates.

        Returns
        -------
        dict
            ``tied_share``: share of instances with a tie; ``mean_equal``, ``max_equal``: tied
            candidates per instance; ``width``: optimistic minus pessimistic value (absolute) of mr,
            mrr and hits@k.
        """
        ends = self.best_and_worst()  # answers beyond a list have unknown ranks, but do not tie
        counted = self if ends is None else ends[0]

        def counts(start: int, stop: int) -> tuple[Int64, Int64]:
            return counted.greater[start:stop], counted.equal[start:stop]

        return tie_report(counts, len(self))

    def save(self, path: str | PathLike[str], rank_type: str | None = None) -> None:
        """Write the columns, labels and manifest as one Parquet file, through a temporary file.

        Parameters
        ----------
        path : path
        rank_type : {"optimistic", "realistic", "pessimistic", "ordinal"}, optional
            Add a column ``rank`` of this type, for SQL and frames. `load` checks it and leaves it
            out. It is NaN if the answer is beyond its predicted list.

        Raises
        ------
        UsageError
            The path has the ending of another format.
        FileError
            The file cannot be written.
        """
        from kgtrec.ranking.parquet import ROW_GROUP, find_used_ids, write_blocks

        require_type("path", path, (str, PathLike), PATH)
        if splitext(path)[1] in _OTHER_ENDINGS:
            raise UsageError(
                f"{fspath(path)}: kgtrec writes ranks as Parquet; give a .parquet file, or take "
                "their table from ranks.to_frame()"
            )
        columns = self.columns()
        manifest = self.manifest | {"tie_report": self.tie_report()}

        def blocks() -> Iterator[dict[str, Array]]:
            for start in range(0, max(1, len(self)), ROW_GROUP):
                rows = slice(start, start + ROW_GROUP)
                block = {name: column[rows] for name, column in columns.items()}
                rank = {} if rank_type is None else {"rank": self._rank_or_nan(rank_type, rows)}
                yield block | rank

        labels = self.relation_labels, self.entity_labels
        write_blocks(path, blocks(), manifest, find_used_ids(columns, manifest), *labels)

    def _rank_or_nan(self, kind: str, rows: slice = slice(None)) -> Float64:
        """Compute the `rank` of some rows; NaN if the answer is beyond its predicted list."""
        rank = _rank(kind, self.greater[rows], self.equal[rows], self.tied_ahead[rows])
        return rank if self.unlisted is None else np.where(self.unlisted[rows], np.nan, rank)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Ranks:
        """Read a file of `save`.

        Raises
        ------
        FileError
            The file is missing, cut short, or not a ranks file.
        """
        from kgtrec.ranking.parquet import not_ranks, read_ranks

        columns, header, entities = read_ranks(path)
        rank = columns.pop("rank", None)
        try:
            ranks = cls(columns, header["manifest"], header["relation_labels"], entities)
        except InputError as error:
            raise not_ranks(path, str(error)) from None
        if fault := _find_fault(ranks) or _find_rank_fault(ranks, rank):
            raise not_ranks(path, f"impossible ranks: {fault}")
        return ranks

    @classmethod
    def concat(cls, parts: Sequence[Ranks]) -> Ranks:
        """Join several Ranks of the same graph and filter that share no instance.

        Raises
        ------
        UsageError
            Nothing to join, parts of different evaluations (the message names what differs), or an
            instance that is in two parts.
        """
        require_items("parts", parts, Ranks, "Ranks (kgtrec.rank, Ranks.load or result.ranks)")
        if not parts:
            raise UsageError("concat needs at least one Ranks")
        ours = parts[0].provenance
        for number, part in enumerate(parts[1:], start=1):
            of = f"part {number} and part 0"
            check_alike(of, part.provenance, ours, EVALUATION + SCORING)
        columns = {
            name: np.concatenate([part.column(name) for part in parts])
            for name in parts[0].column_names
        }
        joined = cls(
            columns, _join_manifests(parts), parts[0].relation_labels, parts[0].entity_labels
        )
        _check_distinct(joined)
        return joined


_RANKED_COLUMNS = (*COUNTED, "candidates", "macro_candidates", "unlisted", "macro_unlisted")
"""Columns that come from a ranking. All others come from the questions."""


class RanksAndRun(NamedTuple):
    """What `kgtrec.rank` returns: ``ranks, run = kgtrec.rank(scores, questions)``.

    - ranks: Counts per instance.
    - run: The best candidates of every question.
    """

    ranks: Ranks
    run: Run

    def __repr__(self) -> str:
        first, second = repr(self.ranks).splitlines()[1], repr(self.run).splitlines()[1]
        return f"RanksAndRun\n  ranks: {first.strip()}\n  run: {second.strip()}"

    def _repr_html_(self) -> str:
        return self.ranks._repr_html_() + self.run._repr_html_()


def _check_rows(rows: npt.ArrayLike | slice, n: int) -> Array | slice:
    """Return a mask, indices or a slice of `n` instances; UsageError for anything else."""
    if isinstance(rows, slice):
        return rows
    chosen = np.asarray(rows)
    chosen = chosen if chosen.size else chosen.astype(np.int64)
    is_mask = chosen.dtype == bool
    if chosen.ndim != 1 or not (is_mask or chosen.dtype.kind in "iu"):
        raise UsageError(
            f"{argument('rows')} is {chosen.dtype} of shape {chosen.shape}; give a mask, as in "
            "ranks.candidates > 100, indices, or a slice"
        )
    if is_mask and len(chosen) != n:
        raise UsageError(
            f"{argument('rows')} is a mask of {len(chosen):,} instances, but there are {n:,}; give "
            "a mask of these ranks"
        )
    if is_mask and not chosen.any():
        raise UsageError(
            f"{argument('rows')} is a mask that marks no instance; columns contain ids, not names: "
            "select a side or relation by its name, as in ranks.subset(side='tail')"
        )
    if not is_mask and len(chosen) and not -n <= chosen.min() <= chosen.max() < n:
        wrong = chosen[(chosen < -n) | (chosen >= n)][0]
        raise UsageError(
            f"{argument('rows')} has the index {wrong}, but there are {n:,} instances; give "
            f"indices from 0 to {n - 1}"
        )
    return chosen


def _list_required_columns(provenance: Provenance) -> list[str]:
    """Return the names of the columns that ranks of these questions cannot lack."""
    if not provenance.question_ids:
        return list(REQUIRED)
    terms = [f"{TERM}{name}" for name in provenance.terms]
    return [name for name in REQUIRED if name not in ONLY_OF_GRAPHS] + terms


def _complete_columns(
    columns: Mapping[str, npt.ArrayLike], manifest: dict[str, Any]
) -> dict[str, Array]:
    """Return the columns in their types; InputError if some are missing or differ in length."""
    expected = _list_required_columns(Provenance.from_manifest(manifest))
    if missing := [name for name in expected if columns.get(name) is None]:
        raise InputError(f"ranks lack the columns {', '.join(missing)}; make them with rank()")
    names = {*expected, *OPTIONAL} & {*columns}
    typed = convert_columns({name: columns[name] for name in columns if name in names})
    lengths = {name: len(column) for name, column in typed.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of ranks differ in length: {lengths}")
    return typed


def _rank(kind: str, greater: Int64, equal: Int64, tied_ahead: Int64) -> Float64:
    """Compute ranks of a type from counts, float64 (n,); UsageError for an unknown type."""
    choose("rank_type", kind, RANK_TYPES)
    behind: dict[str, Any] = {
        "optimistic": 0,
        "realistic": equal / 2,
        "pessimistic": equal,
        "ordinal": tied_ahead,
    }
    rank: Float64 = greater + 1.0 + behind[kind]
    return rank


def bound_unlisted(
    beyond: Bools, greater: Int64, candidates: Int64, question: Int64 | None
) -> tuple[Int64, Int64]:
    """Return the lowest and the highest possible `greater` of each answer, int64 (n,) each.

    - beyond, bool (n,): True for answers beyond the end of their list.
    - question: Answers of the same question rank one after another. None: each answer is the only
      one among its candidates.
    """
    after, answers = np.zeros_like(greater), np.ones_like(greater)
    rows = np.flatnonzero(beyond)
    if question is not None and len(rows):
        order = rows[np.argsort(question[rows], kind="stable")]
        _, starts, lengths = np.unique(question[order], return_index=True, return_counts=True)
        after[order] = np.arange(len(order)) - np.repeat(starts, lengths)
        answers[order] = np.repeat(lengths, lengths)
    last = np.where(beyond, candidates - answers + after, greater)
    return np.where(beyond, np.minimum(greater + after, last), greater), last


def _find_fault(ranks: Ranks) -> str | None:
    """Return a description of a fault that no ranking can produce, or None if there is none."""
    for kind in ("", "macro_"):
        greater, equal, tied_ahead, candidates = (
            getattr(ranks, kind + name) for name in ("greater", "equal", "tied_ahead", "candidates")
        )
        wrong = (greater < 0) | (equal < 0) | (tied_ahead < 0) | (tied_ahead > equal)
        wrong |= greater + equal + 1 > candidates
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            return (
                f"in row {row}, {kind}greater {greater[row]}, {kind}equal {equal[row]}, "
                f"{kind}tied_ahead {tied_ahead[row]} of {candidates[row]} {kind}candidates"
            )
    full = ranks.full_candidates
    if full is not None and (full < ranks.candidates).any():
        row = int(np.flatnonzero(full < ranks.candidates)[0])
        return f"in row {row}, {ranks.candidates[row]} candidates, but {full[row]} in all"
    if not ranks.of_graph:
        return _find_fault_of_terms(ranks)
    labels, used = ranks.relation_labels, ranks.relation
    if labels is not None and ((used < 0) | (used >= len(labels))).any():
        return f"relations {used.min()} to {used.max()}, but {len(labels)} relation labels"
    if numbers := ranks.provenance.question_numbers:
        used = ranks.question
        if ((used < 0) | (used >= len(numbers))).any():
            return f"questions {used.min()} to {used.max()}, but {len(numbers)} question numbers"
    return None


def _find_fault_of_terms(ranks: Ranks) -> str | None:
    """Return a fault if there are no rows, or if a question or value of a term has no name."""
    if not len(ranks):
        return "there are no rows"
    facts = ranks.provenance
    named = {f"{TERM}{name}": labels for name, labels in facts.terms.items()}
    for name, labels in {"question": facts.question_ids, **named}.items():
        codes = ranks.column(name)
        if labels is not None and not 0 <= codes.min() <= codes.max() < len(labels):
            return f"{name} from {codes.min()} to {codes.max()}, but {len(labels)} names"
    return None


def _find_rank_fault(ranks: Ranks, rank: Float64 | None) -> str | None:
    """Return a fault if a file's column ``rank`` agrees with its counts under no rank type."""
    if rank is None:
        return None
    rows = []
    for kind in RANK_TYPES:
        expected = ranks._rank_or_nan(kind)
        wrong = (rank != expected) & ~(np.isnan(rank) & np.isnan(expected))
        if not wrong.any():
            return None
        rows.append(int(np.flatnonzero(wrong)[0]))
    row = max(rows)
    return f"in row {row}, rank {rank[row]:g}, but {ranks.greater[row]} greater"


def _check_distinct(ranks: Ranks) -> None:
    """Raise UsageError if an instance occurs twice."""
    keys = ranks.triple * len(NAMES) + ranks.side
    values, counts = np.unique(keys, return_counts=True)
    if (counts > 1).any():
        key = int(values[counts > 1][0])
        triple, side = key // len(NAMES), NAMES[key % len(NAMES)]
        raise UsageError(
            f"the {side} question of triple {triple} is in more than one part "
            f"({int((counts > 1).sum())} such instances); join disjoint parts"
        )


def _join_manifests(parts: Sequence[Ranks]) -> dict[str, Any]:
    """Return the manifest of all parts: that of the first, with added counts."""
    manifest: dict[str, Any] = json.loads(json.dumps(parts[0].manifest))
    if "scores" in manifest:
        facts = [part.provenance for part in parts]
        manifest["scores"]["nan_count"] = sum(fact.nan_count for fact in facts)
        lists = [fact.predictions for fact in facts]
        if all(lists):
            manifest["scores"]["predictions"] |= {
                key: sum(entry[key] for entry in lists)
                for key, value in lists[0].items()
                if isinstance(value, int)
            }
            strangers = [entry["stranger"] for entry in lists if entry.get("stranger")]
            if stranger := next(iter(strangers), None):
                manifest["scores"]["predictions"]["stranger"] = stranger
    # Checks of one part do not apply to the whole.
    manifest.pop("trec_agreement", None)
    return manifest
