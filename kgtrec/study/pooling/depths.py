"""How systems rank with the labels of each depth of a pool (Zhou et al. 2022, section 4.2).

With fewer judgements, other systems may lead. Triples that are pooled deeper than a depth are not
judged at that depth; all other judgements, such as the test set's own answers, stay. Runs are
evaluated with fewer judgements. Ranks need no scores: at depth k the true triples that are pooled
deeper are still unknown, so they are candidates instead of being filtered. The question-level
counts say how many of them score higher than an answer, or tie with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import COMPARING, Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.correlation import over_questions
from kgtrec.study.comparison.samples import (
    Samples,
    align_ranks,
    resample,
    samples_of_ranks,
    samples_of_runs,
)
from kgtrec.study.comparison.stability import DepthCurves, depth_curves
from kgtrec.study.pooling.seeds import Key, question_key, read_question_ids, split_names

if TYPE_CHECKING:
    from kgtrec.study.pooling.pool import Pool

Floats = NDArray[np.float64]
Qrels = Mapping[str, Mapping[str, int]]
Path = str | os.PathLike[str]


def depths_of(pool: Pool, names: Mapping[Key, str] | None = None) -> dict[str, dict[str, int]]:
    """Question, then candidate, to the smallest depth at which the pool contains it."""
    smallest: list[int] = pool.smallest.tolist()
    depths = pool.by_candidate(smallest)
    for triple, depth in zip(pool.triples.tolist(), smallest, strict=True):
        for side in (0, 1):
            own = (names or {}).get(question_key(triple, side))
            if own is not None:
                candidate = pool.graph.entities[triple[2 if side else 0]]
                depths.setdefault(own, {})[candidate] = depth
    return depths


def names_of_pool(pool: Pool, path: Path | None = None) -> dict[Key, str]:
    """How runs name questions, also those without a seed."""
    if path is not None:
        names = read_question_ids(path, pool.graph)
        if not _names_fit(pool, names):
            raise UsageError(
                f"{str(path)!r} has other names of questions than the pool; give the file that "
                "`kgtrec pool --questions` read"
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
    resampling: Resampling = COMPARING,
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
        Depths of the pooled documents; see `depths_of`.
    measures : sequence of str
        trec_eval's, and micro metrics such as "kg_mrr" and "kg_hits.10", which rank the answers of
        each depth without its other answers; see `samples_of_runs`.
    reference : int, optional
        Compare all depths with this one; by default the first with judgements: 0, the labels before
        pooling, unless these are empty.
    resampling : Resampling
        Of the intervals, which resample questions, the same ones at every depth.
    entities : int, optional
        Number of entities of the graph, for kg_mr.

    Returns
    -------
    DepthCurves
        With intervals.

    Raises
    ------
    UsageError
        Fewer than three runs, unknown measures, or a reference deeper than the pool.
    InputError
        No pooled document is judged.
    """
    from kgtrec.trec import read_qrels, read_run

    if len(runs) < 3:
        raise UsageError(f"{len(runs)} runs are too few to rank; give 3 or more")
    judged = qrels if isinstance(qrels, Mapping) else read_qrels(qrels)
    shared = sum(d in judged.get(query, {}) for query, row in depth_of.items() for d in row)
    if not shared:
        raise InputError(
            "no pooled document is judged in the qrels; name the qrels that were made with this "
            "pool (kgtrec complete --pool POOL --write-qrels QRELS)"
        )
    loaded = {name: read_run(path, as_="columns") for name, path in runs.items()}
    deepest = max(depth for row in depth_of.values() for depth in row.values())
    samples_at = {}
    for depth in range(deepest + 1):
        reduced = _reduced(judged, depth_of, depth)
        if any(reduced.values()):
            every = _undecided_where_empty(reduced, judged)
            samples_at[depth], _ = samples_of_runs(every, loaded, measures, entities=entities)
    return with_intervals(list(samples_at.values()), list(samples_at), reference, resampling)


def with_intervals(
    samples: Sequence[Sequence[Samples]],
    depths: Sequence[int],
    reference: int | None = None,
    resampling: Resampling = COMPARING,
) -> DepthCurves:
    """Depth curves with intervals over questions."""
    drawn = [[resample(one, resampling) for one in row] for row in samples]
    names = [one.name for one in samples[0]]
    lower = [one.name for one in samples[0] if not one.higher_is_better]
    values = {name: [row[k].estimate for row in drawn] for k, name in enumerate(names)}
    curves = depth_curves(values, depths, reference, lower_is_better=lower)
    at = curves.depths.index(curves.reference)
    agreements = tuple(
        tuple(
            over_questions(
                drawn[at][k], row[k], x_higher=name not in lower, y_higher=name not in lower
            )
            for row in drawn
        )
        for k, name in enumerate(names)
    )
    return replace(curves, systems=samples[0][0].systems, agreements=agreements)


def _reduced(
    judged: Qrels, depth_of: Mapping[str, Mapping[str, int]], depth: int
) -> dict[str, dict[str, int]]:
    """The judgements without those of documents pooled deeper."""
    rest = {}
    for query, row in judged.items():
        own = depth_of.get(query, {})
        rest[query] = {document: r for document, r in row.items() if own.get(document, 0) <= depth}
    return rest


def _undecided_where_empty(reduced: Qrels, judged: Qrels) -> dict[str, Mapping[str, int]]:
    """Give -1 to later judgements in queries without others, so that all depths have all queries.

    Such a query has no answer, but it counts: its AP is 0, and the minimum of gm_map.
    """
    return {query: row or dict.fromkeys(judged[query], -1) for query, row in reduced.items()}


Ints = NDArray[np.int64]


def instance_depths(ranks: Ranks, pool: Pool) -> Ints:
    """Smallest depth at which each instance's triple is pooled, 0 if never; int64 (n,).

    Labels identify triples: the graphs of the pool and of the ranks may differ in their test
    splits.
    """
    of_triples = ranks.kind == "entity" and ranks.given_relation is None
    if not of_triples or ranks.entity_labels is None or ranks.relation_labels is None:
        raise UsageError(
            "depths need ranks of entities with their labels; `kgtrec rank` saves such"
        )
    entities, relations = pool.graph.entities, pool.graph.relations
    depth_of = {
        (entities[h], relations[r], entities[t]): depth
        for (h, r, t), depth in zip(pool.triples.tolist(), pool.smallest.tolist(), strict=True)
    }
    rows = zip(*(c.tolist() for c in (ranks.side, ranks.given, ranks.relation, ranks.answer)),
               strict=True)  # fmt: skip
    depths = np.zeros(len(ranks), np.int64)
    for row, (side, given, relation, answer) in enumerate(rows):
        head, tail = (given, answer) if side else (answer, given)
        labels = ranks.entity_labels[head], ranks.relation_labels[relation]
        depths[row] = depth_of.get((*labels, ranks.entity_labels[tail]), 0)
    if not depths.any():
        raise InputError(
            "none of the evaluated triples is in the pool; rank on the complete test split that "
            "`kgtrec complete --write-split` writes"
        )
    return depths


def ranks_at_depth(ranks: Ranks, depths: Ints, depth: int) -> Ranks:
    """The ranks with the labels of a depth.

    Shapes: depths int64 (n,).
    """
    _check(ranks)
    deep = depths > depth
    above, tied, ahead, all_deep = _deeper_answers(ranks, deep)
    columns: dict[str, Any] = {name: getattr(ranks, name) for name in ranks._names}
    for name, more in (
        ("greater", above), ("equal", tied), ("tied_ahead", ahead), ("candidates", all_deep)
    ):  # fmt: skip
        columns[name] = columns[name] + more
    columns |= _popularity(ranks, deep)
    facts = {**ranks.manifest.get("questions", {}), "pool_depth": depth}
    facts.pop("questions_hash", None)
    manifest = {**ranks.manifest, "questions": facts}
    whole = Ranks(columns, manifest, ranks.relation_labels, ranks.entity_labels)
    return whole.subset(~deep)


def _check(ranks: Ranks) -> None:
    facts = ranks.provenance
    reasons = {
        "that their own split does not filter": facts.filter_splits is not None
        and facts.split not in facts.filter_splits,
        "among sampled candidates": ranks.sampled,
        "of lists that were cut": ranks.n_unlisted > 0,
        "with a tolerance for ties": facts.tie_tolerance,
        "with answers whose score is NaN": ranks.answer_nan.any() or ranks.macro_answer_nan.any(),
        "with answers outside their candidates": facts.outside,
        "of a part of the triples": facts.subset,
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(
                f"ranks {reason} do not show the order of the answers of a question; "
                "give full ranks, or runs with --qrels"
            )


def _deeper_answers(ranks: Ranks, deep: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints, Ints]:
    """Deep answers of each instance's question: above it, tied, tied and ahead, and all."""
    keys = (ranks.macro_tied_ahead, ranks.macro_greater, ranks.question)
    order = np.lexsort(keys)
    question, place = ranks.question[order], ranks.macro_greater[order]
    new_question = np.append(True, question[1:] != question[:-1])[: len(order)]
    new_tie = new_question | np.append(True, place[1:] != place[:-1])[: len(order)]
    before = np.concatenate([[0], np.cumsum(deep[order])]).astype(np.int64)
    (first, last), (top, bottom) = (_rank_ends(new) for new in (new_tie, new_question))
    sorted_counts = (
        before[first] - before[top],
        before[last] - before[first],
        before[:-1] - before[first],
        before[bottom] - before[top],
    )
    counts = []
    for values in sorted_counts:
        column = np.empty(len(order), np.int64)
        column[order] = values
        counts.append(column)
    return counts[0], counts[1], counts[2], counts[3]


def _rank_ends(new: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """First row of each row's group, and the row after its last."""
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    return starts[group], np.append(starts[1:], len(new))[group]


def _popularity(ranks: Ranks, deep: NDArray[np.bool_]) -> dict[str, Ints]:
    """Popularities without the deep triples, each of which counts once."""
    first = np.zeros(len(ranks), bool)
    first[np.unique(ranks.triple, return_index=True)[1]] = True
    gone = first & deep
    ends = np.concatenate([ranks.answer[gone], ranks.given[gone]])
    lost = np.bincount(ends, minlength=int(ranks.answer.max()) + 1)
    left = np.bincount(ranks.relation[first & ~deep], minlength=int(ranks.relation.max()) + 1)
    return {
        "answer_popularity": ranks.answer_popularity - lost[ranks.answer],
        "relation_popularity": left[ranks.relation],
    }


def curves_of_ranks(
    ranks: Mapping[str, Ranks],
    pool: Pool,
    measures: Sequence[str],
    *,
    resampling: Resampling = COMPARING,
) -> DepthCurves:
    """Rank systems with the labels of every depth of a pool, without their scores.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        Three systems or more, on the complete test split.
    pool : Pool
    measures : sequence of keys
        As for `samples_of_ranks`: micro and macro metrics, ``map``, ...
    resampling : Resampling
        Of the intervals, which resample the questions of each depth.

    Raises
    ------
    UsageError, InputError
        As `instance_depths`, `ranks_at_depth` and `align_ranks`; fewer than three systems.
    """
    if len(ranks) < 3:
        raise UsageError(f"{len(ranks)} systems are too few to rank; give 3 or more")
    aligned = align_ranks(ranks)
    depths = instance_depths(next(iter(aligned.values())), pool)
    held = range(int(depths.min()), int(depths.max()) + 1)
    samples = []
    for depth in held:
        at = {name: ranks_at_depth(one, depths, depth) for name, one in aligned.items()}
        samples.append(samples_of_ranks(at, measures))
    return with_intervals(samples, held, None, resampling)
