"""How systems rank with the labels of each depth of a pool, from runs and the whole pool's qrels.

With fewer systems' favourites judged, other systems may lead: Zhou et al. (2022), section 4.2.
What was pooled below a depth is not judged at that depth; all other judgements, the test set's own
answers, stay. The runs are the same at every depth.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS, Resampled
from kgtrec.errors import InputError, UsageError
from kgtrec.study.comparison.rank_correlation import over_questions
from kgtrec.study.comparison.run_samples import samples_of_runs
from kgtrec.study.comparison.samples import Samples, resample
from kgtrec.study.comparison.stability import DepthCurves, depth_curves
from kgtrec.study.pooling.seed_questions import (
    Key,
    question_key,
    read_question_ids,
    split_names,
)

if TYPE_CHECKING:
    from kgtrec.study.pooling.pool import Pool

__all__ = ["curves_of_runs", "depths_of", "names_of_pool", "with_intervals"]

Floats = NDArray[np.float64]
Qrels = Mapping[str, Mapping[str, int]]
Path = str | os.PathLike[str]


def depths_of(pool: Pool, names: Mapping[Key, str] | None = None) -> dict[str, dict[str, int]]:
    """Question, then candidate, to the smallest depth at which the pool holds it.

    Parameters
    ----------
    pool : Pool
    names : mapping of (side, entity, relation) to str, optional
        Names of questions that no seed asks, too (see `names_of_pool`): a pooled triple that is
        true asks its reverse question from its own depth on.
    """
    depths: dict[str, dict[str, int]] = {}
    labels = pool.graph.entities
    smallest = pool.smallest.tolist()
    for row, question, entity in pool.by_question():
        depths.setdefault(question, {})[labels[entity]] = smallest[row]
    for triple, depth in zip(pool.triples.tolist(), smallest, strict=True):
        for side in (0, 1):
            own = (names or {}).get(question_key(triple, side))
            if own is not None:
                depths.setdefault(own, {})[labels[triple[2 if side else 0]]] = depth
    return depths


def names_of_pool(pool: Pool, path: Path | None = None) -> dict[Key, str]:
    """How runs name questions, those that no seed asks included.

    Parameters
    ----------
    pool : Pool
    path : path-like, optional
        Lines ``name<TAB>entity<TAB>relation``. By default the names that `kgtrec convert` gives to
        the questions of a split, if the pool has these; else none.

    Raises
    ------
    FileError
        As `read_question_ids`.
    UsageError
        The file names a question of the pool otherwise.
    """
    if path is not None:
        names = read_question_ids(path, pool.graph)
        if not _names_fit(pool, names):
            raise UsageError(
                f"{str(path)!r} names questions otherwise than the pool does; give the file that "
                "was given to `kgtrec pool --questions`"
            )
        return names
    for split in pool.graph.splits:
        names = split_names(pool.graph, split)
        if _names_fit(pool, names):
            return names
    return {}


def _names_fit(pool: Pool, names: Mapping[Key, str]) -> bool:
    return all(
        set(joined.split(",")) <= {names.get(question_key(triple, side)) for side in (0, 1)}
        for triple, joined in zip(pool.triples.tolist(), pool.questions, strict=True)
    )


def curves_of_runs(
    qrels: Path | Qrels,
    runs: Mapping[str, Path],
    depth_of: Mapping[str, Mapping[str, int]],
    measures: Sequence[str],
    *,
    reference: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
    entities: int | None = None,
) -> DepthCurves:
    """Rank systems with the labels of every depth of a pool.

    Parameters
    ----------
    qrels : path, or mapping of query to mapping of document to relevance
        Judgements of the whole pool.
    runs : mapping of str to path-like
        By the names of the systems, three at least.
    depth_of : mapping of query to mapping of document to int
        Of what was pooled; see `depths_of`.
    measures : sequence of str
        trec_eval's, and micro metrics such as "kg_mrr" and "kg_hits.10", in which each depth's
        answers are ranked without that depth's other answers; see `samples_of_runs`.
    reference : int, optional
        Depth that all are compared with; by default the first at which anything is judged: 0, the
        labels before pooling, unless these are empty.
    draws, seed, confidence
        Of the intervals, from drawing the questions anew, the same ones at every depth.
    entities : int, optional
        Of the graph, which kg_mr needs.

    Returns
    -------
    DepthCurves
        With intervals.

    Raises
    ------
    UsageError
        Fewer than three runs, unknown measures, or a reference deeper than the pool.
    InputError
        No judgement is of a pooled document.
    """
    from kgtrec.trec import read_qrels, read_run

    if len(runs) < 3:
        raise UsageError(f"{len(runs)} runs are too few to rank; give 3 or more")
    judged = qrels if isinstance(qrels, Mapping) else read_qrels(qrels)
    shared = sum(d in judged.get(query, {}) for query, row in depth_of.items() for d in row)
    if not shared:
        raise InputError(
            "no pooled document is judged in the qrels; name the qrels that were made with this "
            "pool (kgtrec complete --pool POOL --qrels QRELS)"
        )
    loaded = {name: read_run(path, as_="columns") for name, path in runs.items()}
    deepest = max(depth for row in depth_of.values() for depth in row.values())
    samples_at = {}
    for depth in range(deepest + 1):
        reduced = _reduced(judged, depth_of, depth)
        if any(reduced.values()):
            every = _undecided_where_empty(reduced, judged)
            samples_at[depth], _ = samples_of_runs(every, loaded, measures, entities=entities)
    return with_intervals(
        list(samples_at.values()), list(samples_at), reference, draws, seed, confidence
    )  # fmt: skip


def with_intervals(
    samples: Sequence[Sequence[Samples]],
    depths: Sequence[int],
    reference: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> DepthCurves:
    """Depth curves with intervals over questions.

    Parameters
    ----------
    samples : sequence of sequences of Samples
        Of every depth the same measures of the same systems.
    depths : sequence of int
        Ascending.
    reference : int, optional
        As for `kgtrec.study.comparison.stability.depth_curves`.
    draws, seed, confidence
        Of the intervals.
    """
    drawn = [[resample(one, draws, seed) for one in row] for row in samples]
    names = [one.name for one in samples[0]]
    lower = [one.name for one in samples[0] if not one.higher_is_better]
    values = {
        name: np.array([row[k].estimate for row in drawn]) for k, name in enumerate(names)
    }  # fmt: skip
    curves = depth_curves(values, depths, reference, lower_is_better=lower)
    at = curves.depths.index(curves.reference)
    ends = [
        [_ends(drawn[at][k], row[k], name not in lower, confidence) for row in drawn]
        for k, name in enumerate(names)
    ]
    interval, interval_ap = np.moveaxis(np.array(ends), (2, 3), (0, 1))
    return replace(
        curves, systems=samples[0][0].systems, values=np.array(list(values.values())),
        interval=interval, interval_ap=interval_ap, confidence=confidence,
    )  # fmt: skip


def _ends(
    whole: Resampled, one: Resampled, higher: bool, confidence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    agreement = over_questions(whole, one, x_higher=higher, y_higher=higher, confidence=confidence)
    return agreement.tau_interval, agreement.tau_ap_interval


def _reduced(
    judged: Qrels, depth_of: Mapping[str, Mapping[str, int]], depth: int
) -> dict[str, dict[str, int]]:
    """The judgements without those of documents that are pooled deeper."""
    rest = {}
    for query, row in judged.items():
        own = depth_of.get(query, {})
        rest[query] = {document: r for document, r in row.items() if own.get(document, 0) <= depth}
    return rest


def _undecided_where_empty(reduced: Qrels, judged: Qrels) -> dict[str, Mapping[str, int]]:
    """With -1 for what is judged later only, where nothing else is, so that all depths pair.

    Such a query has no answer, but it counts: its AP is 0, and the least that gm_map knows.
    """
    return {query: row or dict.fromkeys(judged[query], -1) for query, row in reduced.items()}
