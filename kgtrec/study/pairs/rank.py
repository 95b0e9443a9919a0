"""Rank the pairs of relations: scores and a graph in, ranks, measures and the best pairs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.csr import number_values
from kgtrec._internal.progress import progress_bar
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec._internal.threads import available_cores
from kgtrec.errors import UsageError, choose
from kgtrec.graph.graph import GraphData
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

    - graph: The graph of the relations and entities.
    - counts: Relation and counts of each evaluated pair, relations ascending.
    - head, tail, int64 (pairs,), scores, float64 (pairs,): Ids and score of each evaluated pair.
    - questions: The questions, their answers and known pairs; None for ranks of files.
    - best: The best pairs of each relation; None if none were requested.
    """

    graph: GraphData
    counts: Counts
    head: Int64
    tail: Int64
    scores: Float64
    questions: PairQuestions | None = None
    best: BestPairs | None = None

    def __len__(self) -> int:
        return len(self.head)

    def _subject(self) -> str:
        relations = f" of {len(np.unique(self.counts.relation)):,} relations"
        if self.questions is None:
            return relations
        heads, tails = self.questions.axes.shape
        return f"{relations}, {heads:,} x {tails:,} pairs each"

    def notes(self) -> list[str]:
        """Return sentences that help readers of the numbers, on ignored triples and ties."""
        lines = []
        if (questions := self.questions) is not None and questions.outside:
            lines.append(
                f"{questions.outside:,} triples of split {questions.split!r} are not among the "
                "heads and tails; they are not evaluated"
            )
        if self.best is not None and (tied := int(self.best.tied.sum())):
            lines.append(
                f"{tied:,} more pairs tie with the last of their relation's {self.best.k:,} best; "
                "ties are in the order of entities"
            )
        return lines

    def table(self, measures: Any = None, rank_type: str = "realistic") -> Table:
        """Return a table of measures over all relations.

        Column "by pairs" weighs relations by their evaluated pairs (for MAP as Wang et al. 2019).
        Column "by relation" is the plain mean over relations. Least and greatest are the values by
        pairs in the worst and the best order of ties.

        Parameters
        ----------
        measures : str or sequence of str, optional
            Metrics of ranks (micro), such as ``mrr``, ``hits@100`` and ``amri``; measures of
            trec_eval (macro, a relation is the query), such as ``map``, ``ndcg_cut_100``,
            ``P_100`` and ``recall_1000``; and ``auroc``.
        rank_type : {"optimistic", "realistic", "pessimistic", "expected"}
            Rank type of metrics of ranks whose keys name none.
        """
        parsed = parse_measures(measures, rank_type)
        per_relation = relation_values(self.counts, parsed)
        overall = overall_values(self.counts, parsed, per_relation)
        rows: list[tuple[Cell, ...]] = [
            (
                title_of(measure),
                key_of(measure),
                float(by_pairs.value[0]),
                float(by_relation.value.mean()),
                float(by_pairs.least[0]),
                float(by_pairs.greatest[0]),
            )
            for measure, by_relation, by_pairs in zip(parsed, per_relation, overall, strict=True)
        ]
        heads = "measure,key,by pairs:4,by relation:4,least:4,greatest:4"
        return Table.from_rows(heads, rows, names=2)

    def values(self, measures: Any = None, rank_type: str = "realistic") -> list[float]:
        """Return the value of each measure by pairs: the column of that name in `table`."""
        parsed = parse_measures(measures, rank_type)
        overall = overall_values(self.counts, parsed, relation_values(self.counts, parsed))
        return [float(bounds.value[0]) for bounds in overall]

    def by(self, group: str, measures: Any = None, rank_type: str = "realistic") -> Table:
        """Return a table of measures per relation, or per category of relations.

        The relations of a category are weighted by their evaluated pairs.
        """
        choose("by", group, GROUPS)
        parsed = parse_measures(measures, rank_type)
        relations, index = number_values(self.counts.relation)
        per_relation = relation_values(self.counts, parsed)
        titles = [(title_of(measure), key_of(measure), DIGITS) for measure in parsed]
        pairs = np.bincount(index)
        if group == "relation":
            first = np.searchsorted(self.counts.relation, relations)
            candidates = self.counts.macro_candidates[first].tolist()
            values = np.stack([bounds.value for bounds in per_relation], axis=1).tolist()
            rows: list[tuple[Cell, ...]] = [
                (self.graph.relations[relation], n, total, *row)
                for relation, n, total, row in zip(
                    relations.tolist(), pairs.tolist(), candidates, values, strict=True
                )
            ]
            return Table.from_rows(["relation", "pairs", "candidates", *titles], rows)
        return self._by_category(parsed, relations, titles)

    def _by_category(self, parsed: Any, relations: Any, titles: Any) -> Table:
        """Return a table of measures per category; "unseen" are relations not in train."""
        categories = relation_categories(self.graph)
        category_of = [categories[relation] for relation in relations.tolist()]
        rows: list[tuple[Cell, ...]] = []
        for name in sorted({*category_of}):
            chosen = relations[np.array([category == name for category in category_of])]
            keep = np.isin(self.counts.relation, chosen)
            part = Counts(*(column[keep] for column in vars(self.counts).values()))
            values: list[Bounds] = overall_values(part, parsed, relation_values(part, parsed))
            numbers = [float(bounds.value[0]) for bounds in values]
            rows.append((name, len(chosen), int(keep.sum()), *numbers))
        return Table.from_rows(["category", "relations", "pairs", *titles], rows)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the counts of each evaluated pair as TSV; see `RANK_COLUMNS`."""
        graph, counts = self.graph, vars(self.counts)
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

    The question is (?, relation, ?). Candidates are all pairs of heads and tails. Micro ranks
    exclude the pairs that a split of the filter contains. The matrix of pairs is never in memory.

    Parameters
    ----------
    scores : callable, mapping, Factors or array
        A callable ``(relation, heads)``, of an id and an array of ids, returns the scores of these
        heads with all tails: an array with a row per head, or `Factors` with a query per head. It
        must return the same score of a pair in every call, because blocks with known pairs are
        computed twice. `PairVectors` makes such a callable from the vectors of a model. A mapping
        has relations (ids or labels) as keys, and arrays (heads, tails) or `Factors` with a query
        per head. A single array or `Factors` serves a single relation.
    graph : Graph
    split : str
        Split whose pairs are evaluated.
    filter : str or sequence of str
        Splits whose pairs are known: ``all``, ``test``, ``valid``, ``raw``, or names of splits.
    relations : sequence of int, optional
        Ids of relations. By default, all relations with an evaluated pair.
    heads, tails : sequence of int, optional
        Ids of the entities to pair, such as drugs and diseases. Rows and columns of arrays have
        their order. By default every entity.
    k : int
        Number of best pairs of each relation to keep, without pairs of other splits of the filter.
        Ties are in the order of head and tail ids.
    keep_known : bool
        True if known pairs may be among the best.
    heads_per_call : int, optional
        Heads per call of the scores. By default, as many as have scores of about 32 MB.
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
    questions = pair_questions(graph, split, filter, relations, heads, tails)
    k = check_count("k", k, 0)
    if heads_per_call is not None:
        check_count("heads_per_call", heads_per_call)
    n_threads = available_cores() if threads is None else check_count("threads", threads)
    _check_depth(questions, k, keep_known)
    axes, by_id = questions.axes, _key_by_id(scores, graph)
    source = as_pair_source(by_id, questions.relations, axes, questions.name)
    counts: list[PairCounts] = []
    with progress_bar(len(axes.heads) * len(questions.questions), "heads", progress) as bar:
        for question in questions.questions:
            counts.append(
                count_pairs(
                    source,
                    question,
                    axes,
                    questions.name(question.relation),
                    depth=k,
                    keep_known=keep_known,
                    heads_per_call=heads_per_call,
                    threads=n_threads,
                    higher_is_better=higher_is_better,
                    advance=bar.update,
                )
            )
    return _join_counts(questions, counts, k)


def _key_by_id(scores: Any, graph: Graph) -> Any:
    """Return a mapping with ids instead of labels as keys; other scores unchanged."""
    if not isinstance(scores, Mapping):
        return scores
    if not all(isinstance(key, (str, int, np.integer)) for key in scores):
        raise UsageError("keys of scores must be relations: their labels, or their ids")
    labels = [key for key in scores if isinstance(key, str)]
    ids = dict(zip(labels, graph.relations.ids(labels).tolist(), strict=True)) if labels else {}
    return {ids[key] if isinstance(key, str) else int(key): scores[key] for key in scores}


def _check_depth(questions: PairQuestions, k: int, keep_known: bool) -> None:
    """Raise UsageError if a relation has fewer candidates than the best pairs to keep."""

    def candidates(question: PairQuestion) -> int:
        return questions.axes.n_pairs - (0 if keep_known else len(question.removed))

    fewest = min(questions.questions, key=candidates)
    if k > candidates(fewest):
        raise UsageError(
            f"k={k:,} is more than the {candidates(fewest):,} candidate pairs of relation "
            f"{questions.name(fewest.relation)!r}; choose at most {candidates(fewest):,}"
        )


def _join_counts(questions: PairQuestions, counts: list[PairCounts], k: int) -> PairRanks:
    """Return the ranks of all relations, from the counts of each."""
    lengths = [len(of_relation.greater) for of_relation in counts]
    answers = [questions.axes.ids(question.answers) for question in questions.questions]
    heads, tails = zip(*answers, strict=True)
    joined = Counts(
        relation=np.repeat(questions.relations, lengths),
        greater=np.concatenate([of_relation.greater for of_relation in counts]),
        equal=np.concatenate([of_relation.equal for of_relation in counts]),
        candidates=np.concatenate([of_relation.candidates for of_relation in counts]),
        macro_greater=np.concatenate([of_relation.macro_greater for of_relation in counts]),
        macro_equal=np.concatenate([of_relation.macro_equal for of_relation in counts]),
        macro_candidates=np.repeat(
            [of_relation.macro_candidates for of_relation in counts], lengths
        ),
    )
    scores = np.concatenate([of_relation.scores for of_relation in counts])
    best = BestPairs.from_counts(questions, counts, k) if k else None
    return PairRanks(
        graph=questions.graph,
        counts=joined,
        head=np.concatenate(heads),
        tail=np.concatenate(tails),
        scores=scores,
        questions=questions,
        best=best,
    )
