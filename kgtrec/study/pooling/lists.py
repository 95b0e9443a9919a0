"""The lists of candidates that each system has for the questions of seed triples.

They come from a run, or from the scores of a model. Known candidates are omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import MOST_PARTS, check_count, require_type
from kgtrec._internal.arrays import Array, Bools, Int32, Int64
from kgtrec._internal.csr import contains, owners, spans, to_keys
from kgtrec._internal.locations import is_folder
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose
from kgtrec.graph.id_files import text_of
from kgtrec.graph.labels import Labels
from kgtrec.ranking.rank import rank
from kgtrec.scores.factors import Factors
from kgtrec.scores.sources import load_scores, select_rows
from kgtrec.study.pooling.seeds import SeedQuestions, find_indices, keys_of, questions_of
from kgtrec.trec.files.run import Run, read_run_columns

PLACES = ("filtered", "raw")
ROWS = ("questions", "instances")


def check_depth(depth: int) -> None:
    """Raise UsageError if a pool cannot have this depth."""
    if isinstance(depth, bool) or depth < 1:
        raise UsageError(f"depth {depth} is below 1; give 1 or more (papers use 10)")
    check_count("depth", depth, most=MOST_PARTS)


def is_scores(path: PathName) -> bool:
    """Return True for a path of scores: it ends in ``.npy`` or ``.npz``, or is a folder."""
    return Path(path).suffix in (".npy", ".npz") or is_folder(path)


@dataclass(frozen=True, eq=False)
class RankedLists(ShownInLines):
    """Candidates of every seed question in a run, best first, without known entities.

    - offsets, int64 (Q + 1,): Question i has the entries ``offsets[i]:offsets[i + 1]``.
    - entities, int32 (n,): With the answers of the seeds, without other known entities.
    - keys, int64 (n,): Question and entity as one number, question * n_entities + entity.
    - of_seeds, bool (n,): True for answers of the seeds.
    - scores: Score of every entry, shape (n,).
    - ranks, int64 (n,): Rank of every entry, from 1. If the kind is "filtered", it is the place
      among these candidates. If it is "raw", it is the place in the run, with known candidates.
    - missing: Number of seed questions that the run lacks.
    - known: Number of omitted known candidates.
    - unfiltered: Number of omitted candidates that are known from other splits than that of the
      seeds; 0 for a filtered run.
    - from_scores: True if `score_lists` ranked them.
    """

    name: str
    offsets: Int64
    entities: Int32
    keys: Int64
    of_seeds: Bools
    scores: Array
    ranks: Int64
    kind: str
    missing: int
    known: int
    unfiltered: int
    from_scores: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _lines(self) -> tuple[str, str]:
        return (
            f"{self.name}: {len(self.entities):,} candidates of {len(self):,} questions",
            f"{self.kind} places, {self.missing:,} questions missing, "
            f"{self.seeds_listed:,} seeds found",
        )

    @property
    def seeds_listed(self) -> int:
        """Number of answers of the seeds in their lists."""
        return int(self.of_seeds.sum())

    @property
    def owner(self) -> Int64:
        """Question of every entry, shape (n,)."""
        return owners(self.offsets)

    @property
    def positions(self) -> Int64:
        """Index of every entry in its list, from 0; shape (n,)."""
        return spans(0, np.diff(self.offsets))[1]

    def shorter_than(self, depth: int) -> int:
        """Count the questions of the run whose list ends before this depth."""
        if self.from_scores:  # raw places lack only known candidates
            return 0
        deepest = np.zeros(len(self), np.int64)
        np.maximum.at(deepest, self.owner, self.ranks)
        return int((deepest < depth).sum()) - self.missing

    def to_run(self, seeds: SeedQuestions) -> Run:
        """Return the lists as a run, with the names of the questions."""
        docnos = seeds.graph.entities.docnos
        depth = int(np.diff(self.offsets).max(initial=0))
        return Run(seeds.ids, self.offsets, self.entities, self.scores, docnos, depth)


def run_lists(
    run: Run | PathName,
    seeds: SeedQuestions,
    name: str,
    *,
    places: str = "filtered",
    threads: int | None = None,
) -> RankedLists:
    """Return the lists of a run for the seeds' questions.

    Parameters
    ----------
    run : Run or path
        Any TREC run file; candidates get trec_eval's order.
    seeds : SeedQuestions
    name : str
        Name of the system.
    places : {"filtered", "raw"}
        "raw" counts the known candidates above a candidate in its place, "filtered" does not. The
        lists omit known candidates in both cases.
    threads : int, optional

    Raises
    ------
    FileError
        The file is missing or malformed.
    InputError
        A candidate is not an entity of the graph, or no seed question is in the run.
    UsageError
        An unknown kind of places.
    """
    require_type("seeds", seeds, SeedQuestions, "SeedQuestions (study.seed_questions)")
    choose("places", places, PLACES)
    graph = seeds.graph
    number = {text: i for i, text in enumerate(seeds.ids)}
    where = name if isinstance(run, Run) else run
    queries, owner, entities, scores = run_entries(run, number, graph.entities, where, threads)
    present = np.unique(owner)
    if not len(present):
        raise InputError(
            f"{where}: none of the {len(seeds):,} seed questions ({seeds.ids[0]!r}, ...) is in "
            f"this run ({', '.join(map(repr, queries[:1]))}, ...); give the list of its questions "
            f"({argument('questions')})"
        )
    keys = owner * graph.n_entities + entities
    removed, answers, elsewhere = (
        contains(to_keys(known, graph.n_entities), keys)
        for known in (seeds.questions.removed, seeds.questions.answers, seeds.elsewhere)
    )
    kept = ~removed
    _, raw = spans(1, np.bincount(owner, minlength=len(seeds)))
    offsets, filtered = spans(1, np.bincount(owner[kept], minlength=len(seeds)))
    return RankedLists(
        name=name,
        offsets=offsets,
        entities=entities[kept].astype(np.int32),
        keys=keys[kept],
        of_seeds=answers[kept],
        scores=scores[kept],
        ranks=filtered if places == "filtered" else raw[kept],
        kind=places,
        missing=len(seeds) - len(present),
        known=int(removed.sum()),
        unfiltered=int(elsewhere.sum()),
    )


def run_entries(
    run: Run | PathName,
    number: Mapping[str, int],
    labels: Labels,
    where: PathName,
    threads: int | None,
) -> tuple[Sequence[str], Int64, Int64, Array]:
    """Read the entries of a run for some questions.

    `number` is the index of each question by its name. Returns the names of all queries of the run,
    then question, entity and score of every entry, in trec_eval's order, shape (n,) each.
    """
    if isinstance(run, Run):
        if run.docnos != labels.docnos:
            raise InputError(
                f"run {where} has {len(run.docnos):,} entities, which are not the {len(labels):,} "
                "of the graph; give the graph that it was made on"
            )
        queries, offsets = run.query_ids, run.offsets
    else:
        if is_scores(run) or Path(run).suffix == ".parquet":
            raise FileError(
                run,
                found="this file has scores or ranks, not a TREC run",
                hint="make one: kgtrec rank --graph DIR --scores SCORES -o RANKS --write-run RUN",
            )
        columns = read_run_columns(run, threads=threads)
        queries, offsets = columns.queries, columns.offsets
    question = np.array([number.get(text, -1) for text in queries], np.int64)
    question_of_row = np.repeat(question, np.diff(offsets))
    rows = np.flatnonzero(question_of_row >= 0)
    if isinstance(run, Run):
        order = np.argsort(question_of_row[rows], kind="stable")
        rows = rows[order]
        return (
            queries,
            question_of_row[rows],
            run.documents[rows].astype(np.int64),
            run.scores[rows],
        )
    scores = columns.scores[rows]
    entities = _read_entity_ids(columns.documents, rows, labels, where)
    position = labels.trec_order
    name_order = entities if position is None else position[entities].astype(np.int64)
    order = np.lexsort((-name_order, -scores, question_of_row[rows]))
    return queries, question_of_row[rows][order], entities[order], scores[order]


def _read_entity_ids(documents: Any, rows: Int64, labels: Labels, where: PathName) -> Int64:
    """Return the entities of some rows of a run; FileError if the graph lacks one."""
    import pyarrow as pa

    names = documents.take(pa.array(rows))
    ids = labels.docnos.positions(names)
    if (ids < 0).any():
        first = names[int(np.argmax(ids < 0))].as_py()
        raise FileError(
            where,
            found=f"{int((ids < 0).sum()):,} candidates are not entities of the graph, such as "
            f"{text_of(first)!r}",
            hint="give the graph that the run was made on",
        )
    return ids


def doubts(lists: Sequence[RankedLists], seeds: SeedQuestions, depth: int) -> list[str]:
    """Return sentences on suspicious features of the lists down to a depth."""
    answers = seeds.questions.n_instances
    notes = []
    for system in lists:
        if system.missing:
            notes.append(
                f"{system.name} lacks {system.missing:,} of {len(system):,} seed questions"
            )
        if short := system.shorter_than(depth):
            notes.append(
                f"{system.name}: the lists of {short:,} questions are shorter than depth {depth}"
            )
        if system.seeds_listed < 0.1 * answers:
            advice = "check that the run is not very short, and the names of its questions"
            if system.from_scores:
                advice = "check the model, and the order of the rows and columns of the scores"
            notes.append(
                f"{system.name} has {system.seeds_listed:,} of the seeds' {answers:,} answers; "
                f"{advice}"
            )
    return notes


def score_lists(
    scores: Factors | PathName,
    seeds: SeedQuestions,
    name: str,
    depth: int,
    *,
    places: str = "filtered",
    rows: str = "questions",
    higher_is_better: bool = True,
    nan: str = "error",
    threads: int | None = None,
    progress: bool | None = None,
) -> RankedLists:
    """Rank the seeds' questions with the scores of a model; return its lists.

    Parameters
    ----------
    scores : Factors or path
        A ``.npy`` matrix, a folder of ``.npy`` shards, or an ``.npz`` with a factorised model, as
        for `kgtrec.rank`. It has one row per question of the seeds' split, in the order of
        ``kgtrec convert --write-questions``; or one row per question of the seeds: heads first,
        each by first appearance among the seeds. Factors have the same rows.
    seeds : SeedQuestions
    name : str
        Name of the system.
    depth : int
        Number of places, from 1.
    places : {"filtered", "raw"}
        As for `run_lists`.
    rows, higher_is_better, nan, threads, progress
        As for `kgtrec.rank`.

    Raises
    ------
    FileError
        No such file, or a file without scores.
    InputError
        Scores of a wrong shape, or with NaN.
    UsageError
        An unknown kind of places or rows, or a depth below 1.
    """
    require_type("seeds", seeds, SeedQuestions, "SeedQuestions (study.seed_questions)")
    choose("places", places, PLACES)
    choose("rows", rows, ROWS)
    check_depth(depth)
    source = scores if isinstance(scores, Factors) else load_scores(scores)
    where = name if isinstance(scores, Factors) else fspath(scores)
    n_rows = len(source.queries) if isinstance(source, Factors) else source.n_rows
    chosen = _find_rows(seeds, rows, n_rows, where)
    source = source if chosen is None else select_rows(source, chosen)
    questions = seeds.questions
    if places == "raw":
        questions = questions.graph.questions(seeds.split, filter="raw")
    try:
        _, run = rank(
            source if isinstance(source, Factors) else source.blocks(),
            questions,
            run_depth=depth,
            threads=threads,
            higher_is_better=higher_is_better,
            nan=nan,
            progress=progress,
        )
    except InputError as error:
        if isinstance(error, FileError):
            raise
        raise InputError(f"{getattr(source, 'place', '') or where}: {error.marked}") from None
    lists = run_lists(replace(run, query_ids=seeds.ids), seeds, name, places=places)
    return replace(lists, from_scores=True)


def _find_rows(seeds: SeedQuestions, rows: str, n_rows: int | None, path: PathName) -> Int64 | None:
    """Return the rows of the seeds' questions in the scores; None if there are no other rows."""
    whole = seeds.graph.questions(seeds.split)
    counts = {"questions": len(whole), "instances": whole.n_instances}
    if n_rows == counts[rows]:
        keys = keys_of(whole)
        if rows == "instances":  # all head sides come before all tail sides
            keys = questions_of(seeds.graph, seeds.graph.split(seeds.split))[0].T.ravel()
        return find_indices(keys, seeds.keys)
    if rows == "questions" and n_rows == len(seeds):
        return None
    other = "instances" if rows == "questions" else "questions"
    hint = (
        f"; {n_rows:,} is the number of {other}, so try {argument('rows', other)}"
        if n_rows == counts[other]
        else ""
    )
    raise FileError(
        path,
        found=f"{n_rows:,} rows of scores, but the split {seeds.split!r} has {counts[rows]:,} "
        f"{rows}, and the seeds {len(seeds):,} questions{hint}",
        hint="give the scores of all questions of the split (kgtrec convert --write-questions "
        "lists them), or only of the seeds' questions",
    )
