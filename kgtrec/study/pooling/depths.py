"""Trust in a pool: with fewer judgements, and for a system that did not contribute.

With fewer judgements, other systems may lead (Zhou et al. 2022, section 4.2). Triples that are
pooled deeper than a depth are not judged at that depth; all other judgements, such as the test
set's own answers, stay. Runs are evaluated with fewer judgements. Ranks need no scores: at depth k,
true triples that are pooled deeper are still unknown, so they are candidates and not filtered. The
question-level counts say how many of them score higher than an answer, or tie with it.

Leaving one system out removes the judgements that only it brought into the pool, as if it had come
later, and evaluates all systems again. If it falls, the pool punishes newcomers (Zobel 1998;
Buckley et al. 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Float64, Int64, Integers
from kgtrec._internal.bootstrap import COMPARING, Resampling
from kgtrec._internal.csr import inverse, number_values
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import ShownAsTables, Table
from kgtrec.errors import InputError, PathName, UsageError, refuse_if
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.triple_labels import triples_in_labels
from kgtrec.study.comparison.correlation import over_questions, places_of, tau_b
from kgtrec.study.comparison.parts import SystemValues
from kgtrec.study.comparison.rankings import DepthCurves
from kgtrec.study.comparison.samples import (
    Samples,
    SystemRanks,
    align_ranks,
    ranks_by_name,
    resample,
    samples_of_ranks,
    samples_of_runs,
)
from kgtrec.study.pooling.edited_files import lines_of_triples
from kgtrec.study.pooling.seeds import Names, questions_of, read_question_ids, split_names
from kgtrec.trec import read_qrels, read_run

if TYPE_CHECKING:
    from kgtrec.study.pooling.pool import Pool

Contributors = Mapping[str, Mapping[str, frozenset[str]]]
Qrels = Mapping[str, Mapping[str, int]]


def depths_of(pool: Pool, names: Names | None = None) -> dict[str, dict[str, int]]:
    """Return the smallest depth at which the pool contains each candidate, by question."""
    smallest: list[int] = pool.smallest.tolist()
    return pool.by_candidate(smallest, names)


def names_of_pool(pool: Pool, path: PathName | None = None) -> Names:
    """Return the names of questions in runs, also of questions without a seed.

    They are read from the file `path` if it is given. Otherwise they are those of the split that
    the pool's questions come from; empty if they come from no split.
    """
    if path is not None:
        names = read_question_ids(path, pool.graph)
        if not _has_names(pool, names):
            raise UsageError(
                f"{str(path)!r} has other question names than the pool; give the file that "
                "`kgtrec pool --questions` read"
            )
        return names
    every = (split_names(pool.graph, split) for split in pool.graph.splits)
    return next((names for names in every if _has_names(pool, names)), {})


def _has_names(pool: Pool, names: Names) -> bool:
    """Return True if `names` contains all names of the pool's questions."""
    keys = questions_of(pool.graph, pool.triples)[0].ravel().tolist()
    return all(
        name in ("", names.get(key)) for key, name in zip(keys, chain(*pool.questions), strict=True)
    )


def curves_of_runs(
    qrels: PathName | Qrels,
    runs: Named[PathName],
    depth_of: Mapping[str, Mapping[str, int]],
    measures: Sequence[str],
    *,
    resampling: Resampling = COMPARING,
    entities: int | None = None,
    ties: str | None = None,
) -> DepthCurves:
    """Rank systems with the labels of every depth of a pool, with intervals.

    All depths are compared with the first that has judgements. This is 0, the labels before
    pooling, unless there are none.

    Parameters
    ----------
    qrels : path, or mapping of query to mapping of document to relevance
        Judgements of the whole pool.
    runs : mapping of str to path-like, or sequence of path-like
        By the names of the systems, three at least; those of a sequence are called like their
        files.
    depth_of : mapping of query to mapping of document to int
        Depths of the pooled documents; see `depths_of`.
    measures : sequence of str
        trec_eval's, and micro metrics such as "kg_mrr" and "kg_hits.10", which rank the answers of
        each depth without its other answers; see `samples_of_runs`.
    resampling : Resampling
        How to make intervals; the same questions are resampled at every depth.
    entities : int, optional
        Number of entities of the graph, for kg_mr.
    ties : {"expected", "min", "max", "name"}, optional
        Order of tied documents; see `samples_of_runs`.

    Raises
    ------
    UsageError
        Fewer than three runs, or unknown measures.
    InputError
        No pooled document is judged.
    """
    runs = by_name("runs", runs)
    if len(runs) < 3:
        raise UsageError(f"{len(runs)} runs are too few to rank; give 3 or more")
    judged = qrels if isinstance(qrels, Mapping) else read_qrels(qrels)
    shared = sum(d in judged.get(query, {}) for query, row in depth_of.items() for d in row)
    if not shared:
        raise InputError(
            "the qrels judge no pooled document; give the qrels that were made with this pool "
            "(kgtrec complete --pool POOL --write-qrels QRELS)"
        )
    loaded = {name: read_run(path, as_="columns") for name, path in runs.items()}
    known = {query: depth_of.get(query, {}) for query in judged}
    shallowest = min(known[query].get(d, 0) for query, row in judged.items() for d in row)
    deepest = max(depth for row in depth_of.values() for depth in row.values())
    depths, samples = range(shallowest, deepest + 1), []
    for depth in depths:
        reduced = _without(judged, lambda query, d, most=depth: known[query].get(d, 0) > most)
        order = ties if depth == deepest else ties or "name"  # warn of ties once
        samples.append(samples_of_runs(reduced, loaded, measures, entities=entities, ties=order))
    return with_intervals(samples, depths, resampling)


def with_intervals(
    samples: Sequence[Sequence[Samples]], depths: Sequence[int], resampling: Resampling
) -> DepthCurves:
    """Return depth curves with intervals over questions, from samples per depth and measure."""
    parts: list[tuple[str, ...]] = [(str(depth),) for depth in depths]
    agreements, values = {}, []
    for of_depths in zip(*samples, strict=True):
        first, *_ = of_depths
        name, higher = first.name, first.higher_is_better
        whole, *_ = drawn = [
            resample(samples_of_depth, resampling) for samples_of_depth in of_depths
        ]
        for part, samples_of_depth in zip(parts, drawn, strict=True):
            agreements[name, part] = over_questions(
                whole, samples_of_depth, x_higher=higher, y_higher=higher
            )
        rows = {
            part: samples_of_depth.estimate
            for part, samples_of_depth in zip(parts, drawn, strict=True)
        }
        values.append(SystemValues(name, first.systems, rows, ("depth",), higher))
    return DepthCurves(
        ("depth",), values[0].systems, agreements, reference=depths[0], values=tuple(values)
    )


def _without(judged: Qrels, is_dropped: Callable[..., bool]) -> Qrels:
    """Return the judgements without those for which ``is_dropped(query, document)`` is true.

    If a query loses all of its documents, they get the relevance -1, so that the query stays. It
    has no answer, but it counts: its AP is 0, and it has the minimum in gm_map.
    """
    rest = {
        query: {d: r for d, r in row.items() if not is_dropped(query, d)}
        for query, row in judged.items()
    }
    return {query: row or dict.fromkeys(judged[query], -1) for query, row in rest.items()}


def instance_depths(ranks: Ranks, pool: Pool) -> Int64:
    """Return the smallest depth at which each instance's triple is pooled; int64 (n,).

    It is 0 for triples that are not pooled.

    Labels identify triples: the graphs of the pool and of the ranks may differ in their test
    splits.
    """
    of_triples = ranks.kind == "entity" and ranks.given_relation is None
    if not of_triples or ranks.entity_labels is None or ranks.relation_labels is None:
        raise UsageError(
            "depths need ranks of entities with labels; save such ranks with `kgtrec rank`"
        )
    pooled = lines_of_triples(pool.graph, pool.triples)
    depth_of = dict(zip(pooled, pool.smallest.tolist(), strict=True))
    depths = np.array([depth_of.get(triple, 0) for triple in triples_in_labels(ranks)], np.int64)
    if not depths.any():
        raise InputError(
            "none of the evaluated triples is in the pool; rank on the complete test split that "
            "`kgtrec complete --write-split` writes"
        )
    return depths


def ranks_at_depth(ranks: Ranks, depths: Int64, depth: int) -> Ranks:
    """Return the ranks that result if only triples pooled up to `depth` are labelled.

    `depths`, int64 (n,), are those of `instance_depths`.
    """
    _check(ranks)
    deep = depths > depth
    columns: dict[str, Any] = ranks.columns()
    changed = ("greater", "equal", "tied_ahead", "candidates")
    for name, more in zip(changed, _deeper_answers(ranks, deep), strict=True):
        columns[name] = columns[name] + more
    columns |= _popularity(ranks, deep)
    facts = {**ranks.manifest.get("questions", {}), "pool_depth": depth}
    facts.pop("questions_hash", None)
    manifest = {**ranks.manifest, "questions": facts}
    whole = Ranks(columns, manifest, ranks.relation_labels, ranks.entity_labels)
    return whole.subset(~deep)


def _check(ranks: Ranks) -> None:
    """Raise UsageError if the order of a question's answers does not follow from its counts."""
    facts = ranks.provenance
    doubts = {
        "whose filter lacks their own split": facts.filter_splits is not None
        and facts.split not in facts.filter_splits,
        "among sampled candidates": ranks.sampled,
        "of shortened lists": ranks.n_unlisted > 0,
        "with a tolerance for ties": facts.tie_tolerance,
        "with answers whose score is NaN": ranks.answer_nan.any() or ranks.macro_answer_nan.any(),
        "with answers outside their candidates": facts.outside,
        "of a part of the triples": facts.subset,
        "of questions with many answers": facts.min_answers,
    }
    if reasons := " and ".join(reason for reason, applies in doubts.items() if applies):
        raise UsageError(
            f"ranks {reasons} do not show the order of the answers of a question; "
            f"give full ranks, or runs and {argument('qrels')}"
        )


def _deeper_answers(ranks: Ranks, deep: Bools) -> list[Int64]:
    """Count the deep answers of each instance's question; four int64 arrays (n,).

    These are the deep answers above the instance's answer, tied with it, tied and ahead of it, and
    all of them.
    """
    question = number_values(ranks.question)[1]
    width = int(ranks.macro_greater.max(initial=0)) + 1
    tie = number_values(question.astype(np.int64) * width + ranks.macro_greater)[1]
    order = np.lexsort((ranks.macro_tied_ahead, tie))
    before: Int64 = (np.cumsum(deep[order]) - deep[order])[inverse(order)]

    def count_before(group: Integers) -> tuple[Int64, Int64]:
        # Returns the deep answers in the group of each instance, and in all groups before it.
        counts = np.bincount(group, deep).astype(np.int64)
        return counts[group], (np.cumsum(counts) - counts)[group]

    (tied, before_tie), (every, before_question) = count_before(tie), count_before(question)
    return [before_tie - before_question, tied, before - before_tie, every]


def _popularity(ranks: Ranks, deep: Bools) -> dict[str, Int64]:
    """Return the popularity of answers and relations without the deep triples.

    A triple counts once, also if questions ask for both its head and its tail.
    """
    first = np.zeros(len(ranks), bool)
    first[np.unique(ranks.triple, return_index=True)[1]] = True
    removed = first & deep
    ends = np.concatenate([ranks.answer[removed], ranks.given[removed]])
    lost = np.bincount(ends, minlength=int(ranks.answer.max()) + 1)
    left = np.bincount(ranks.relation[first & ~deep], minlength=int(ranks.relation.max()) + 1)
    return {
        "answer_popularity": ranks.answer_popularity - lost[ranks.answer],
        "relation_popularity": left[ranks.relation],
    }


def curves_of_ranks(
    ranks: Named[SystemRanks],
    pool: Pool,
    measures: Sequence[str],
    *,
    resampling: Resampling = COMPARING,
) -> DepthCurves:
    """Rank systems with the labels of every depth of a pool, without their scores.

    Parameters
    ----------
    ranks : mapping of str to Ranks or Result, or sequence of them
        Three systems or more, on the complete test split; see `samples_of_ranks`.
    pool : Pool
    measures : sequence of keys
        As for `samples_of_ranks`: micro and macro metrics, ``map``, ...
    resampling : Resampling
        How to make intervals; the questions of each depth are resampled.

    Raises
    ------
    UsageError, InputError
        As `instance_depths`, `ranks_at_depth` and `align_ranks`; fewer than three systems.
    """
    ranks = ranks_by_name("ranks", ranks)
    if len(ranks) < 3:
        raise UsageError(f"{len(ranks)} systems are too few to rank; give 3 or more")
    aligned = align_ranks(ranks)
    depths = instance_depths(next(iter(aligned.values())), pool)
    depth_range = range(int(depths.min()), int(depths.max()) + 1)
    ranks_by_depth = (
        {
            name: ranks_at_depth(ranks_of_system, depths, depth)
            for name, ranks_of_system in aligned.items()
        }
        for depth in depth_range
    )
    samples = [samples_of_ranks(ranks_of_depth, measures) for ranks_of_depth in ranks_by_depth]
    return with_intervals(samples, depth_range, resampling)


# --- Systems that did not contribute ---


@dataclass(frozen=True, eq=False)
class Reuse(ShownAsTables):
    """Losses of each system without the judgements that only it contributed to the pool.

    - contributors: The systems that contributed to the pool; the others lose nothing.
    - full, left_out, float64 (s,): Value with all judgements, and without those that only this
      system contributed.
    - rank, rank_left_out, int64 (s,): Rank among all systems (1: the best) with all judgements,
      and without those that only this system contributed.
    - judged, relevant, int64 (s,): Number of judgements that only this system contributed, and how
      many of them are relevant.
    - tau, float64 (s,): tau-b of the rankings of all systems with and without these judgements.
    """

    measure: str
    systems: tuple[str, ...]
    contributors: tuple[str, ...]
    full: Float64
    left_out: Float64
    rank: Int64
    rank_left_out: Int64
    judged: Int64
    relevant: Int64
    tau: Float64

    def table(self) -> Table:
        """Return a table with one row per system, the best first."""
        table = Table.from_columns(
            "system, all judged=full:4, left out:4, change:4, place, then=place_left_out, "
            "own=judged, relevant, tau-b=tau_b:4",
            self.systems,
            self.full,
            self.left_out,
            self.left_out - self.full,
            self.rank,
            self.rank_left_out,
            self.judged,
            self.relevant,
            self.tau,
        )
        return table.in_order(np.argsort(-self.full, kind="stable"))

    def sentence(self) -> str:
        """Return the result as a sentence."""
        took_part = [i for i, name in enumerate(self.systems) if name in self.contributors]
        fallen = [i for i in took_part if self.rank_left_out[i] > self.rank[i]]
        change = np.abs((self.left_out - self.full)[took_part])
        largest = took_part[int(change.argmax())]
        head = (
            f"{self.measure}: {len(fallen)} of {len(took_part)} systems would rank lower if they "
            "were left out of the pool"
        )
        if fallen:
            moved = max(int(self.rank_left_out[i] - self.rank[i]) for i in fallen)
            head += f" (by up to {moved} place{'s' * (moved > 1)})"
        return (
            f"{head}; the largest change is {self.left_out[largest] - self.full[largest]:+.4f} "
            f"({self.systems[largest]})."
        )


def contributors_of(pool: Pool) -> dict[str, dict[str, frozenset[str]]]:
    """Return the systems that contributed each candidate to the pool, by question."""
    contributed = (pool.best_ranks > 0).tolist()
    return pool.by_candidate([frozenset(compress(pool.systems, row)) for row in contributed])


def leave_one_out(
    qrels: Qrels,
    runs: Named[Any],
    contributors: Contributors,
    measure: str,
    *,
    ties: str | None = None,
) -> Reuse:
    """Evaluate every system with and without the judgements that only it contributed to the pool.

    Parameters
    ----------
    qrels : mapping of query to mapping of document to relevance
        All judgements. Those of documents that no system contributed (the answers of the test set)
        always stay.
    runs : mapping of str to path-like, RunColumns, or mapping of query to document to score; or
        sequence of them
        By the names of the systems; in a sequence, paths are called like their files, as in pools.
    contributors : mapping of query to mapping of document to systems
        Systems of the pooled documents; see `contributors_of`.
    measure : str
        A measure of trec_eval; more must be better.
    ties : {"expected", "min", "max", "name"}, optional
        Order of tied documents; see `samples_of_runs`.

    Raises
    ------
    UsageError
        Fewer than two runs, not one measure, or a measure of which less is better.
    InputError
        No contributor has a run.
    """
    runs = by_name("runs", runs)
    if len(runs) < 2:
        raise UsageError(f"{len(runs)} run is too few to leave one out; give two or more")
    name = _check_measure(measure)
    unique_by_system = _unique_judgements(qrels, contributors)
    took_part = _select_contributors(runs, contributors)

    def means(judged: Qrels, ties: str | None) -> Float64:
        (samples,) = samples_of_runs(judged, runs, [name], ties=ties)
        return samples.means()

    rows, counts = [means(qrels, ties)], []
    for unique in (unique_by_system.get(system, {}) for system in runs):
        others = _without(qrels, lambda query, d, unique=unique: d in unique.get(query, ()))
        rows.append(means(others, ties or "name"))  # warn of ties once
        relevances = [qrels[query][d] for query, row in unique.items() for d in row]
        counts.append((len(relevances), sum(r > 0 for r in relevances)))
    full, *left_out = rows
    ranks_full, *ranks_left_out = places_of(np.array(rows))
    judged, relevant = np.array(counts).T
    return Reuse(
        measure=name,
        systems=tuple(runs),
        contributors=took_part,
        full=full,
        left_out=np.diagonal(left_out),
        rank=ranks_full,
        rank_left_out=np.diagonal(ranks_left_out),
        judged=judged,
        relevant=relevant,
        tau=tau_b(left_out, full),
    )


def _select_contributors(runs: Mapping[str, Any], contributors: Contributors) -> tuple[str, ...]:
    """Return the runs that are systems of the pool; InputError if none is."""
    pooled_by = {
        system for row in contributors.values() for systems in row.values() for system in systems
    }
    took_part = tuple(system for system in runs if system in pooled_by)
    if not took_part:
        raise InputError(
            f"none of the runs {', '.join(runs)} is in the pool, whose systems are "
            f"{', '.join(sorted(pooled_by))}; give the runs the names of these systems"
        )
    return took_part


def _unique_judgements(qrels: Qrels, contributors: Contributors) -> dict[str, dict[str, set[str]]]:
    """Return the judged documents that no other system contributed, by system and query."""
    documents_of: dict[str, dict[str, set[str]]] = {}
    for query, documents in contributors.items():
        judged = qrels.get(query, {})
        for document, systems in documents.items():
            if len(systems) == 1 and judged.get(document, -1) >= 0:
                (system,) = systems
                documents_of.setdefault(system, {}).setdefault(query, set()).add(document)
    return documents_of


def _check_measure(measure: str) -> str:
    """Return the full name of a measure; UsageError if higher values are not better."""
    from kgtrec.study.pooling.unjudged import mean_columns

    columns = mean_columns([measure])
    refuse_if(
        (len(columns) != 1, f"{measure!r} must be one measure, such as map_cut_20"),
        (
            not columns[0].row.higher_is_better,
            f"higher values of {measure!r} are not better; choose another measure, such as "
            "map_cut_20",
        ),
    )
    return columns[0].name
