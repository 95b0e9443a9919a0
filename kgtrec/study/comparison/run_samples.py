"""What runs are compared by: values of trec_eval's measures, over all queries of the qrels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.study.comparison.samples import Samples

if TYPE_CHECKING:
    from kgtrec.trec.eval.kg_names import MicroColumn
    from kgtrec.trec.eval.score import Scored
    from kgtrec.trec.files.columns import RunColumns
    from kgtrec.trec.measures.names import Column

__all__ = ["has_direction", "is_lower_better", "samples_of_runs"]

# Measures of trec_eval that are no mean of values of queries, or of which neither end is better.
_COUNTS = ("num_", "relstring", "runid")
_UNDIRECTED = ("unj", "judged", "ideal_dcg")
_LOWER_IS_BETTER = ("rbp_resid",)
_QUOTIENTS = ("kg_amr", "kg_amri")


def has_direction(column: Column) -> bool:
    """Whether more, or less, of a measure of trec_eval is better: of counts and the like, not."""
    return not (column.family.startswith(_COUNTS) or column.family in _UNDIRECTED)


def is_lower_better(column: Column) -> bool:
    """Whether less of a measure of trec_eval is better."""
    return column.family in _LOWER_IS_BETTER


def samples_of_runs(
    qrels: str | os.PathLike[str] | Mapping[str, Mapping[str, int]],
    runs: Mapping[str, str | os.PathLike[str] | RunColumns],
    measures: Sequence[str],
    *,
    level: int = 1,
    judged_only: bool = False,
    entities: int | None = None,
) -> tuple[list[Samples], dict[str, int]]:
    """Values of trec_eval measures for several runs, over all queries of the qrels.

    Parameters
    ----------
    qrels : str, path-like, or mapping of query to mapping of document to relevance
        Queries without a judgement are left out.
    runs : mapping of str to path-like or RunColumns
        By the names of the systems.
    measures : sequence of str
        As `kgtrec.trec.measures.names.resolve` reads them: "map", "ndcg_cut_20", "P.5,10", "AP@20",
        ...; and micro metrics as `kgtrec eval` has them, "kg_mrr" or "kg_hits.1,10", of which both
        ends are compared.
    level, judged_only
        As trec_eval's -l and -J.
    entities : int, optional
        Of the graph, which kg_mr needs.

    Returns
    -------
    list of Samples
        One for each measure. A query that a run lacks counts as if it had retrieved nothing
        (trec_eval -c), so that all systems have the same queries.
    dict of str to int
        How many queries of the qrels each run lacks.

    Raises
    ------
    FileError
        A file cannot be read or is malformed.
    InputError
        A run shares no query with the qrels.
    UsageError
        Fewer than two runs; unknown measures, or counts, which have no mean.
    """
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.eval.score import score
    from kgtrec.trec.measures.options import EvalOptions

    if len(runs) < 2:
        raise UsageError(f"{len(runs)} run to compare; give two or more")
    if isinstance(qrels, Mapping):
        qrels = {query: row for query, row in qrels.items() if row}
    options = EvalOptions(level=level, judged_only=judged_only, complete=True)
    request = Request(qrels, [*runs.values()], measures, options, entities=entities)
    columns, micro = request.columns, request.micro
    wrong = [c.name for c in columns if not has_direction(c)]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)}: counts and the like do not say which run is better; compare by "
            "map, ndcg_cut_20, bpref, ..."
        )
    if quotients := [c.name for c in micro if c.family in _QUOTIENTS]:
        raise UsageError(
            f"{', '.join(quotients)}: no mean over queries or answers; compare by kg_mr, which "
            "ranks systems alike"
        )
    scored = dict(zip(runs, score(request), strict=True))
    n_queries = len(next(iter(scored.values())).queries)
    samples = [
        Samples(
            name=column.name,
            title=column.name,
            systems=tuple(runs),
            values=np.column_stack([one.values[column.name] for one in scored.values()]),
            cluster=np.arange(n_queries),
            unit="queries",
            higher_is_better=not is_lower_better(column),
            transform=np.exp if column.is_geometric else np.asarray,
        )
        for column in columns
    ]
    samples += [_of_answers(column, scored) for column in micro]
    return samples, {name: one.unanswered for name, one in scored.items()}


def _of_answers(column: MicroColumn, scored: Mapping[str, Scored]) -> Samples:
    """A micro metric, one value a query: its sum over answers, by the mean number of answers.

    The mean of these over queries is that over all answers, as if the queries' sizes were fixed
    (see `Samples.by_cluster`).
    """
    from kgtrec.trec.eval.kg_names import LOWER_IS_BETTER

    parts = [one.micro.parts[column.name] for one in scored.values() if one.micro is not None]
    values = np.column_stack([sums * (len(sums) / answers.sum()) for sums, answers in parts])
    return Samples(
        name=column.name,
        title=column.name,
        systems=tuple(scored),
        values=values,
        cluster=np.arange(len(values)),
        unit="queries",
        higher_is_better=column.family not in LOWER_IS_BETTER,
    )
