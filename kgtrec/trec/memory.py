"""Judged lists of what is in memory, ordered and judged by the same native code as files."""

from __future__ import annotations

import numpy as np

from kgtrec.trec.lists import Lists
from kgtrec.trec.packed import QrelsData, RunData, pack_qrels, pack_run
from kgtrec.trec.reading import Cut, Judgements, list_documents, ranked

__all__ = ["judgements_of", "lists_in_memory"]


def lists_in_memory(
    qrels: QrelsData | Judgements,
    run: RunData,
    *,
    limit: int | None = None,
    depth: int | None = None,
    keep_ties: bool = False,
    judged_only: bool = False,
    single: bool = False,
    absent: bool = False,
    tag: str = "",
    threads: int | None = None,
) -> Lists:
    """Judged lists of a run in memory; the options are those of `kgtrec.trec.reading.read_lists`.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to int, QrelsColumns or Judgements
        Query, then document, to its relevance. A query without any judgement does not count.
    run : mapping of str to mapping of str to float, or RunColumns
        Query, then document, to its score. A query may have an empty list.
    tag : str
        Name of the run; columns have their own.

    Raises
    ------
    InputError
        A NaN or something that is no number among the scores, a relevance that is no whole
        number within 64 bits, a name that is no str, a document that columns of a run have twice.
    UsageError
        A negative limit or depth.
    """
    cut = Cut(limit, depth, keep_ties, judged_only, single)
    if not isinstance(qrels, Judgements):
        qrels = judgements_of(qrels)
    packed = pack_run(run)
    lists, fault = list_documents(
        qrels,
        packed.names,
        packed.native(),
        np.diff(packed.offsets),
        cut,
        absent,
        getattr(run, "tag", tag),
        threads,
    )
    if fault is not None:
        raise packed.duplicate(fault[0] - 1)
    return lists


def judgements_of(qrels: QrelsData) -> Judgements:
    """Qrels in memory, to list any number of runs against."""
    packed = pack_qrels(qrels)
    judged = ranked(packed.offsets, packed.values)
    return Judgements("the qrels", packed.names, packed.offsets, judged, packed.native())
