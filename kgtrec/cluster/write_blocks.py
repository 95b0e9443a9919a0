"""Ranks of a store's questions as a file, read and written a block of instances at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import Csr
from kgtrec.cluster.count_files import CountFiles
from kgtrec.cluster.question_store import Store
from kgtrec.ranking.instance_columns import (
    GIVEN_COLUMNS,
    Popularities,
    instance_columns,
    popularities,
    ranks_manifest,
)
from kgtrec.ranking.parquet import ROW_GROUP, write_blocks
from kgtrec.ranking.ranks import typed_columns
from kgtrec.ranking.tie_totals import tie_report

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions

__all__ = ["write_stored_ranks"]

Columns = dict[str, npt.NDArray[Any]]


def write_stored_ranks(
    path: str | PathLike[str], store: Store, counts: CountFiles, scores: dict[str, Any]
) -> None:
    """Write the file that `kgtrec.Ranks.save` writes of the same ranks, byte for byte.

    Parameters
    ----------
    path : path
    store : Store
    counts : CountFiles
        Filled.
    scores : dict
        What the manifest says of the scores.
    """
    questions = store.questions()
    n, popular = questions.n_instances, popularities(questions)
    manifest = ranks_manifest(questions, scores)
    labels = list(questions.graph.relations), questions.graph.entities
    used = _used(questions)
    del questions  # and the pages that it has mapped

    def places(start: int, stop: int) -> tuple[Any, Any]:
        columns = _columns(store, counts, popular, start, stop)
        return columns["greater"], columns["equal"]

    def blocks() -> Iterator[Columns]:
        for start in range(0, max(1, n), ROW_GROUP):
            yield _columns(store, counts, popular, start, min(start + ROW_GROUP, n))

    manifest |= {"tie_report": tie_report(places, n)}
    write_blocks(path, blocks(), manifest, used, *labels)


def _used(questions: Questions) -> dict[str, npt.NDArray[np.int64]]:
    """Ids that stand in the columns `IDS`; every question has an answer."""
    n_entities, n_relations = questions.n_entities, questions.graph.n_relations
    sizes = {"entity": n_entities, "relation": n_relations}
    columns = {
        name: (ids, sizes[kind])
        for name, (kind, ids) in zip(
            GIVEN_COLUMNS[questions.sides], questions.given_terms, strict=True
        )
    }
    columns["answer"] = questions.answers.ids, sizes[questions.kind]
    if questions.kind == "relation":
        columns["relation"] = columns["answer"]
    if questions.context is not None and questions.graph.contexts is not None:
        columns["context"] = questions.context, len(questions.graph.contexts)
    used = {}
    for name, (ids, size) in columns.items():
        mask = np.zeros(size, bool)
        mask[ids] = True
        used[name] = np.flatnonzero(mask)
    return used


def _columns(
    store: Store, counts: CountFiles, popular: Popularities, start: int, stop: int
) -> Columns:
    """Columns of a range of instances, as `Ranks` has them."""
    some, question, own = _some_questions(store.questions(), start, stop)
    # Counts of the whole questions: candidates are counted by question.
    first = start - own.start
    columns = instance_columns(some, *counts.read(first, first + some.n_instances), popular)
    columns["question"] = columns["question"] + np.int64(question)
    return {name: column[own] for name, column in typed_columns(columns).items()}


def _some_questions(questions: Questions, start: int, stop: int) -> tuple[Questions, int, slice]:
    """The questions of a range of instances, in memory; the number of the first; and where the
    instances stand among theirs."""
    if start == stop:
        first = last = 0
    else:
        first = int(questions.instance_question[start])
        last = int(questions.instance_question[stop - 1]) + 1
    low, high = (int(questions.answers.offsets[at]) for at in (first, last))
    lists, rows = questions.candidate_lists, slice(first, last)

    def part(csr: Csr) -> Csr:
        offsets = np.array(csr.offsets[first : last + 1])
        return Csr(offsets - offsets[0], np.array(csr.ids[offsets[0] : offsets[-1]]))

    outside, full = questions.outside, questions.full_candidates
    context = questions.context
    some = replace(
        questions,
        side=np.array(questions.side[rows]),
        given=(np.array(questions.given[0][rows]), np.array(questions.given[1][rows])),
        context=None if context is None else np.array(context[rows]),
        answers=part(questions.answers),
        known=part(questions.known),
        removed=part(questions.removed),
        instance_question=np.array(questions.instance_question[low:high]) - first,
        instance_triple=np.array(questions.instance_triple[low:high]),
        candidate_lists=None if lists is None else replace(lists, of=np.array(lists.of[rows])),
        outside=None if outside is None else np.array(outside[low:high]),
        full_candidates=None if full is None else np.array(full[low:high]),
    )
    return some, first, slice(start - low, stop - low)
