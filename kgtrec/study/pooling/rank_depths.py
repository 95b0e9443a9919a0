"""Ranks with the labels of each depth of a pool, from one ranking of the complete test split.

What a depth lacks are answers: at depth k the true triples that are pooled deeper are not known
yet, so that they stand among the candidates instead of being filtered. How many of them score
higher than an answer, or tie with it, follows from the question-level counts, in which all answers
of a question stay. So ranks of every depth come out exactly, and no score is needed (Zhou et al.
2022, Figures 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.bootstrap import DRAWS
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.samples import align_ranks, samples_of_ranks
from kgtrec.study.pooling.depths import with_intervals

if TYPE_CHECKING:
    from kgtrec.study.comparison.stability import DepthCurves
    from kgtrec.study.pooling.pool import Pool

__all__ = ["curves_of_ranks", "instance_depths", "ranks_at_depth"]

Ints = NDArray[np.int64]


def instance_depths(ranks: Ranks, pool: Pool) -> Ints:
    """Smallest depth at which each instance's triple is pooled, 0 if it never was; int64 (n,).

    Triples are told apart by their labels: the pool's graph and that of the ranks may differ in
    their test splits.

    Raises
    ------
    UsageError
        The ranks are of relations, or hold no labels.
    InputError
        No pooled triple was evaluated.
    """
    of_triples = ranks.kind == "entity" and ranks.given_relation is None
    if not of_triples or ranks.entity_labels is None or ranks.relation_labels is None:
        raise UsageError("depths need ranks of entities with their labels, as `kgtrec rank` saves")
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
            "`kgtrec complete --test` writes"
        )
    return depths


def ranks_at_depth(ranks: Ranks, depths: Ints, depth: int) -> Ranks:
    """The ranks that the labels of a depth give.

    Parameters
    ----------
    ranks : Ranks
        Of the complete test split.
    depths : int64 array (n,)
        Of each instance's triple, 0 for those that were known before; see `instance_depths`.
    depth : int

    Returns
    -------
    Ranks
        Of the triples down to this depth. Deeper ones are among the candidates.

    Raises
    ------
    UsageError
        Ranks whose counts do not say where the other answers are: among sampled candidates, of
        lists that were cut, with a tolerance for ties, with NaN, or of a part of the questions.
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
    questions, scored = (ranks.manifest.get(key, {}) for key in ("questions", "scores"))
    split, filtered = questions.get("split"), questions.get("filter_splits")
    reasons = {
        "that their own split does not filter": filtered is not None and split not in filtered,
        "among sampled candidates": ranks.sampled,
        "of lists that were cut": ranks.n_unlisted > 0,
        "with a tolerance for ties": scored.get("tie_tolerance"),
        "with answers whose score is NaN": ranks.answer_nan.any() or ranks.macro_answer_nan.any(),
        "with answers outside their candidates": questions.get("outside"),
        "of a part of the triples": questions.get("subset"),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(
                f"ranks {reason} do not say how the answers of a question stand to each other; "
                "give full ranks, or runs with --qrels"
            )


def _deeper_answers(ranks: Ranks, deep: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints, Ints]:
    """Of each instance's question, the deep answers above it, tied, tied and ahead, and all."""
    keys = (ranks.macro_tied_ahead, ranks.macro_greater, ranks.question)
    order = np.lexsort(keys)
    question, place = ranks.question[order], ranks.macro_greater[order]
    new_question = np.append(True, question[1:] != question[:-1])[: len(order)]
    new_tie = new_question | np.append(True, place[1:] != place[:-1])[: len(order)]
    before = np.concatenate([[0], np.cumsum(deep[order])]).astype(np.int64)
    (first, last), (top, bottom) = (_ends(new) for new in (new_tie, new_question))
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


def _ends(new: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """First row of each row's group, and the one behind its last."""
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    return starts[group], np.append(starts[1:], len(new))[group]


def _popularity(ranks: Ranks, deep: NDArray[np.bool_]) -> dict[str, Ints]:
    """Popularities without the deep triples, each of which is counted once."""
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
    draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> DepthCurves:
    """Rank systems with the labels of every depth of a pool, without their scores.

    Parameters
    ----------
    ranks : mapping of str to Ranks
        Three systems or more, on the complete test split.
    pool : Pool
    measures : sequence of keys
        As for `samples_of_ranks`: micro and macro metrics, ``map``, ...
    draws, seed, confidence
        Of the intervals, from drawing the questions of each depth anew.

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
    return with_intervals(samples, held, None, draws, seed, confidence)
