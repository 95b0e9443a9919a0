"""Rank the pairs of relations: scores and a graph in, ranks, measures and the best pairs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import numbered
from kgtrec._internal.runtime import available_cores, progress_bar
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import UsageError, choose
from kgtrec.graph.statistics.relations import relation_categories
from kgtrec.questions.api import Graph
from kgtrec.ranking.pairs import PairCounts, PairQuestion, count_pairs
from kgtrec.scores.pairs import as_pair_source
from kgtrec.study.pairs.lists import BestPairs
from kgtrec.study.pairs.measures import (
    Bounds,
    Counts,
    key_of,
    overall_values,
    parse_measures,
    relation_values,
    title_of,
)
from kgtrec.study.pairs.questions import PairQuestions, pair_questions
from kgtrec.study.pooling.edited_files import write_lines

DIGITS = 4
GROUPS = ("relation", "category")

RANK_COLUMNS = (
    "relation",
    "head",
    "tail",
    "score",
    "greater",
    "equal",
    "candidates",
    "macro_greater",
    "macro_equal",
    "macro_candidates",
)


@dataclass(frozen=True, eq=False)
class PairRanks(ShownAsTables):
    """Ranks of the evaluated pairs of relations, among all other pairs.

    - questions: What was asked.
    - counts: Relation and counts per evaluated pair, relations ascending.
    - head, tail, int64 (pairs,), scores, float64 (pairs,)
    - best: The best pairs of each relation; None if none were requested.
    """

    questions: PairQuestions
    counts: Counts
    head: Int64
    tail: Int64
    scores: Float64
    best: BestPairs | None = None

    def __len__(self) -> int:
        return len(self.head)

    def _subject(self) -> str:
        heads, tails = self.questions.axes.shape
        return f" of {len(self.questions.questions):,} relations, {heads:,} x {tails:,} pairs each"

    def notes(self) -> list[str]:
        """What a reader must know of the numbers."""
        lines = []
        if outside := self.questions.outside:
            lines.append(
                f"{outside:,} triples of split {self.questions.split!r} are not among the heads "
                "and tails; they are not evaluated"
            )
        if self.best is not None and (tied := int(self.best.tied.sum())):
            lines.append(
                f"{tied:,} more pairs tie with the last of their relation's {self.best.k:,} best; "
                "ties are in the order of entities"
            )
        return lines

    def table(self, measures: Any = None, rank_type: str = "realistic") -> Table:
        """Each measure over all relations.

        Column "by pairs" weighs relations by their evaluated pairs (for MAP as Wang et al. 2019),
        "by relation" is the plain mean over relations. Least and greatest are the values by pairs
        in the worst and the best order of ties.

        Parameters
        ----------
        measures : str or sequence of str, optional
            Metrics of ranks (micro), such as ``mrr``, ``hits@100`` and ``amri``; measures of
            trec_eval (macro, a relation is the query), such as ``map``, ``ndcg_cut_100``,
            ``P_100`` and ``recall_1000``; and ``auroc``.
        rank_type : {"optimistic", "realistic", "pessimistic", "expected"}
            Of metrics of ranks, for keys that name none.
        """
        parsed = parse_measures(measures, rank_type)
        per_relation = relation_values(self.counts, parsed)
        overall = overall_values(self.counts, parsed, per_relation)
        rows: list[tuple[Cell, ...]] = [
            (
                title_of(one),
                key_of(one),
                float(by_pairs.value[0]),
                float(own.value.mean()),
                float(by_pairs.least[0]),
                float(by_pairs.greatest[0]),
            )
            for one, own, by_pairs in zip(parsed, per_relation, overall, strict=True)
        ]
        heads = "measure,key,by pairs:4,by relation:4,least:4,greatest:4"
        return Table.of(heads, rows, names=2)

    def by(self, group: str, measures: Any = None, rank_type: str = "realistic") -> Table:
        """The measures per relation, or per category of relations (weighted by evaluated pairs)."""
        choose("by", group, GROUPS)
        parsed = parse_measures(measures, rank_type)
        relations, place = numbered(self.counts.relation)
        per_relation = relation_values(self.counts, parsed)
        titles = [(title_of(one), key_of(one), DIGITS) for one in parsed]
        pairs = np.bincount(place)
        if group == "relation":
            first = np.searchsorted(self.counts.relation, relations)
            candidates = self.counts.macro_candidates[first].tolist()
            values = np.stack([one.value for one in per_relation], axis=1).tolist()
            rows: list[tuple[Cell, ...]] = [
                (self.questions.name(relation), n, total, *own)
                for relation, n, total, own in zip(
                    relations.tolist(), pairs.tolist(), candidates, values, strict=True
                )
            ]
            return Table.of(["relation", "pairs", "candidates", *titles], rows)
        return self._by_category(parsed, relations, titles)

    def _by_category(self, parsed: Any, relations: Any, titles: Any) -> Table:
        """The measures of each category; relations without train triples are "unseen"."""
        categories = relation_categories(self.questions.graph)
        of = [categories[relation] for relation in relations.tolist()]
        rows: list[tuple[Cell, ...]] = []
        for name in sorted({*of}):
            chosen = relations[np.array([one == name for one in of])]
            keep = np.isin(self.counts.relation, chosen)
            part = Counts(*(column[keep] for column in vars(self.counts).values()))
            values: list[Bounds] = overall_values(part, parsed, relation_values(part, parsed))
            numbers = [float(one.value[0]) for one in values]
            rows.append((name, len(chosen), int(keep.sum()), *numbers))
        return Table.of(["category", "relations", "pairs", *titles], rows)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the counts of each evaluated pair as TSV; see `RANK_COLUMNS`."""
        graph = self.questions.graph
        counts = vars(self.counts)
        columns = [
            graph.relations[self.counts.relation],
            graph.entities[self.head],
            graph.entities[self.tail],
            map(repr, self.scores.tolist()),
            *(map(str, counts[name].tolist()) for name in RANK_COLUMNS[4:]),
        ]
        write_lines(path, [RANK_COLUMNS, *zip(*columns, strict=True)])


def rank_pairs(
    scores: Any,
    graph: Graph,
    *,
    split: str = "test",
    filter: Any = "all",
    relations: Any = None,
    heads: Any = None,
    tails: Any = None,
    k: int = 0,
    keep_known: bool = False,
    heads_per_call: int | None = None,
    higher_is_better: bool = True,
    threads: int | None = None,
    progress: bool | None = None,
) -> PairRanks:
    """Rank each evaluated pair of a relation among all other pairs (Zhou et al. 2022, 6.2).

    The question is (?, relation, ?). Candidates are all pairs of heads and tails. For micro ranks,
    those that a split of the filter knows are left out. The matrix of pairs is never in memory.

    Parameters
    ----------
    scores : callable, mapping, Factors or array
        A callable ``(relation, heads)``, of an id and an array of ids, returns the scores of these
        heads with all tails: an array with one row per head, or `Factors` whose queries are those
        heads. It must give a pair the same score in every call: blocks with known pairs are asked
        twice. `PairVectors` makes one from the vectors of a model. A mapping has relations (ids or
        labels) as keys, and arrays (heads, tails) or `Factors` with a query per head. A single
        array or `Factors` serves a single relation.
    graph : Graph
    split : str
        Split whose pairs are evaluated.
    filter : str or sequence of str
        Splits whose pairs are known: ``all``, ``test``, ``valid``, ``raw``, or names of splits.
    relations : sequence of int, optional
        Ids of relations. By default all with an evaluated pair.
    heads, tails : sequence of int, optional
        Ids of the entities to pair, such as drugs and diseases. Rows and columns of arrays have
        their order. By default every entity.
    k : int
        How many best pairs of each relation to keep, without those that other splits of the filter
        know. Ties are in the order of head and tail ids.
    keep_known : bool
        Whether known pairs may be among the best.
    heads_per_call : int, optional
        Heads per call of the scores; by default as many as have scores of about 32 MB.
    higher_is_better : bool
    threads : int, optional
    progress : bool, optional
        By default a bar is shown on terminals, after a second.

    Returns
    -------
    PairRanks

    Raises
    ------
    UsageError
        Unknown splits, no relation or pair to rank, or fewer candidates than `k`.
    InputError
        Ids out of range, scores of a wrong shape, a NaN, or scores that change.

    Examples
    --------
    >>> score = study.PairVectors(graph, "distmult", entity=e, relation=r)  # doctest: +SKIP
    >>> print(study.rank_pairs(score, graph, k=100).table())                # doctest: +SKIP
    """
    asked = pair_questions(graph, split, filter, relations, heads, tails)
    k = check_count("k", k, 0)
    if heads_per_call is not None:
        check_count("heads_per_call", heads_per_call)
    n_threads = available_cores() if threads is None else check_count("threads", threads)
    _check_depth(asked, k, keep_known)
    source = as_pair_source(_by_id(scores, graph), asked.relations, asked.axes, asked.name)
    counted: list[PairCounts] = []
    n_heads = len(asked.axes.heads) * len(asked.questions)
    with progress_bar(n_heads, "heads", progress) as bar:
        for question in asked.questions:
            counted.append(
                count_pairs(
                    source,
                    question,
                    asked.axes,
                    asked.name(question.relation),
                    depth=k,
                    keep_known=keep_known,
                    heads_per_call=heads_per_call,
                    threads=n_threads,
                    higher_is_better=higher_is_better,
                    advance=bar.update,
                )
            )
    return _joined(asked, counted, k)


def _by_id(scores: Any, graph: Graph) -> Any:
    """A mapping with ids instead of labels as keys; other scores unchanged."""
    if not isinstance(scores, Mapping):
        return scores
    if not all(isinstance(key, (str, int, np.integer)) for key in scores):
        raise UsageError("keys of scores must be relations: their labels, or their ids")
    labels = [key for key in scores if isinstance(key, str)]
    ids = dict(zip(labels, graph.relations.ids(labels).tolist(), strict=True)) if labels else {}
    return {ids[key] if isinstance(key, str) else int(key): scores[key] for key in scores}


def _check_depth(asked: PairQuestions, k: int, keep_known: bool) -> None:
    """UsageError if a relation has fewer candidates than the best pairs to keep."""

    def candidates(question: PairQuestion) -> int:
        return asked.axes.n_pairs - (0 if keep_known else len(question.removed))

    fewest = min(asked.questions, key=candidates)
    if k > candidates(fewest):
        raise UsageError(
            f"k={k:,} is more than the {candidates(fewest):,} candidate pairs of relation "
            f"{asked.name(fewest.relation)!r}; choose at most {candidates(fewest):,}"
        )


def _joined(asked: PairQuestions, counted: list[PairCounts], k: int) -> PairRanks:
    """The counts of all relations as columns."""
    lengths = [len(one.greater) for one in counted]
    heads, tails = zip(*(asked.axes.ids(one.answers) for one in asked.questions), strict=True)
    counts = Counts(
        relation=np.repeat(asked.relations, lengths),
        greater=np.concatenate([one.greater for one in counted]),
        equal=np.concatenate([one.equal for one in counted]),
        candidates=np.concatenate([one.candidates for one in counted]),
        macro_greater=np.concatenate([one.macro_greater for one in counted]),
        macro_equal=np.concatenate([one.macro_equal for one in counted]),
        macro_candidates=np.repeat([one.macro_candidates for one in counted], lengths),
    )
    scores = np.concatenate([one.scores for one in counted])
    best = BestPairs.of(asked, counted, k) if k else None
    return PairRanks(asked, counts, np.concatenate(heads), np.concatenate(tails), scores, best)
