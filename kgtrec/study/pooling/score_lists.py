"""What scores say about the questions of seed triples: their lists, ranked on the spot."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking.rank import rank
from kgtrec.scores.factors import Factors
from kgtrec.scores.sources import selected
from kgtrec.study.pooling.ranked_lists import PLACES, RankedLists, run_lists
from kgtrec.study.pooling.seed_questions import SeedQuestions

__all__ = ["score_lists"]

Ints = npt.NDArray[np.int64]
ROWS = ("questions", "instances")


def score_lists(
    scores: str | os.PathLike[str],
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
    """Lists of a model for the seeds' questions, which alone are ranked.

    Parameters
    ----------
    scores : path
        A ``.npy`` matrix, a folder of ``.npy`` shards, or an ``.npz`` with a factorised model, as
        for `kgtrec.rank`: a row for each question of the seeds' split, as ``kgtrec convert
        --questions`` lists them; or, if these are fewer, for the seeds' questions alone, in their
        order: heads that are asked first, each by first appearance among the seeds.
    seeds : SeedQuestions
    name : str
        Of the system.
    depth : int
        Places that are wanted, from 1.
    places : {"filtered", "raw"}
        As for `run_lists`.
    rows, higher_is_better, nan, threads, progress
        As for `kgtrec.rank`.

    Raises
    ------
    FileError
        No such file, or none with scores.
    InputError
        Scores of another shape, or NaN among them.
    UsageError
        An unknown kind of places or rows, or a depth below 1.
    """
    from kgtrec.scores.files import load_scores

    for what, value, choices in (("places", places, PLACES), ("rows", rows, ROWS)):
        if value not in choices:
            raise UsageError(f"{what}={value!r} is unknown; choose one of {', '.join(choices)}")
    if isinstance(depth, bool) or depth < 1:
        raise UsageError(f"depth {depth} is below 1; 10 is the published one")
    source = load_scores(scores)
    n_rows = len(source.queries) if isinstance(source, Factors) else source.n_rows
    chosen = _rows(seeds, rows, n_rows, scores)
    source = source if chosen is None else selected(source, chosen)
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
        raise InputError(f"{getattr(source, 'place', '') or os.fspath(scores)}: {error}") from None
    lists = run_lists(replace(run, query_ids=seeds.ids), seeds, name, places=places)
    return replace(lists, from_scores=True)


def _rows(
    seeds: SeedQuestions, rows: str, n_rows: int | None, path: str | os.PathLike[str]
) -> Ints | None:
    """Rows of the seeds' questions among those of the whole split; None: there are no others."""
    whole = seeds.graph.questions(seeds.split)
    total = len(whole) if rows == "questions" else whole.n_instances
    if n_rows == total:
        return _first_instances(seeds) if rows == "instances" else _numbers(seeds, whole)
    if rows == "questions" and n_rows == len(seeds):
        return None
    other = "instances" if rows == "questions" else "questions"
    counts = {"questions": len(whole), "instances": whole.n_instances}
    hint = (
        f"; {n_rows:,} is the number of {other}: --rows {other}" if n_rows == counts[other] else ""
    )
    raise FileError(
        path,
        found=f"{n_rows:,} rows of scores, where the split {seeds.split!r} has {total:,} {rows}, "
        f"and the seeds {len(seeds):,} questions{hint}",
        hint="give the scores of all questions of the split (kgtrec convert --questions lists "
        "them), or of the seeds' questions alone",
    )


def _numbers(seeds: SeedQuestions, whole: Any) -> Ints:
    columns = (whole.side.tolist(), whole.entity.tolist(), whole.relation.tolist())
    number = {key: i for i, key in enumerate(zip(*columns, strict=True))}
    return np.array([number[key] for key in seeds.keys], np.int64)


def _first_instances(seeds: SeedQuestions) -> Ints:
    """Row of a triple that asks each question; all head sides stand before all tail sides."""
    triples = seeds.graph.split(seeds.split).tolist()
    first: dict[tuple[int, int, int], int] = {}
    for number, (head, relation, tail) in enumerate(triples):
        first.setdefault((0, tail, relation), number)
        first.setdefault((1, head, relation), number + len(triples))
    return np.array([first[key] for key in seeds.keys], np.int64)
