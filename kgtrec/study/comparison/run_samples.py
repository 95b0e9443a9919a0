"""What runs are compared by: values of trec_eval's measures, over all queries of the qrels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.study.comparison.samples import Samples

if TYPE_CHECKING:
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["samples_of_runs"]

# Measures of trec_eval that are no mean of values of queries, or of which neither end is better.
_COUNTS = ("num_", "relstring", "runid")
_UNDIRECTED = ("unj", "judged", "ideal_dcg")
_LOWER_IS_BETTER = ("rbp_resid",)


def samples_of_runs(
    qrels: str | os.PathLike[str] | Mapping[str, Mapping[str, int]],
    runs: Mapping[str, str | os.PathLike[str] | RunColumns],
    measures: Sequence[str],
    *,
    level: int = 1,
    judged_only: bool = False,
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
        ...
    level, judged_only
        As trec_eval's -l and -J.

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
    from kgtrec.trec.eval.score import read_judgements, score
    from kgtrec.trec.measures.names import resolve
    from kgtrec.trec.measures.options import EvalOptions

    if len(runs) < 2:
        raise UsageError(f"{len(runs)} run to compare; give two or more")
    columns = resolve(measures)
    wrong = [c.name for c in columns if c.family.startswith(_COUNTS) or c.family in _UNDIRECTED]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)}: counts and the like do not say which run is better; compare by "
            "map, ndcg_cut_20, bpref, ..."
        )
    if isinstance(qrels, Mapping):
        qrels = {query: row for query, row in qrels.items() if row}
    judgements = read_judgements(qrels)
    options = EvalOptions(level=level, judged_only=judged_only, complete=True)
    scored = {name: score(judgements, path, columns, options) for name, path in runs.items()}
    n_queries = len(next(iter(scored.values())).queries)
    found = [
        Samples(
            name=column.name,
            title=column.name,
            systems=tuple(runs),
            values=np.column_stack([one.values[column.name] for one in scored.values()]),
            cluster=np.arange(n_queries),
            unit="queries",
            higher_is_better=column.family not in _LOWER_IS_BETTER,
            transform=np.exp if column.is_geometric else np.asarray,
        )
        for column in columns
    ]
    return found, {name: one.unanswered for name, one in scored.items()}
