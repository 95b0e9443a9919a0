"""Stability on fewer labels, of runs with their qrels and of tables of published values.

`rankings.data_sensitivity` does it for ranks, as Zhou et al. (2022, section 5.1, Figure 7). A run
with qrels has no triples: random parts of its relevant judgements are kept.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgtrec._internal.arguments import MOST_PARTS, check_count, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.named import Named, by_name
from kgtrec.errors import FileError, InputError, TieWarning, UsageError, refuse_if
from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.parts import ValueTable, values_of_table
from kgtrec.study.comparison.rankings import (
    REPEATS,
    SHARES,
    Sensitivity,
    check_parts,
    correlate_parts,
)
from kgtrec.study.comparison.samples import check_columns
from kgtrec.study.comparison.subsets import (
    ListedAnswers,
    subset_values_of_answers,
    subset_values_of_runs,
)
from kgtrec.trec.eval.kg_metrics import check_micro, micro_values
from kgtrec.trec.files.columns import RunData, name_bytes
from kgtrec.trec.measures.judge import read_lists
from kgtrec.trec.measures.names import Column, resolve
from kgtrec.trec.measures.relevant import Lists, View
from kgtrec.trec.measures.ties import tie_effect, tie_groups
from kgtrec.trec.measures.trec_measure import EvalOptions

MEASURES_OF_RUNS = ("map_cut_20", "ndcg_cut_20", "recip_rank", "success_10")


def data_sensitivity_of_runs(
    qrels: Mapping[str, Mapping[str, int]],
    runs: Named[RunData | str],
    measures: Sequence[str] = MEASURES_OF_RUNS,
    *,
    shares: Sequence[float] = SHARES,
    repeats: int = REPEATS,
    seed: int = 0,
    entities: int | None = None,
    threads: int | None = None,
    progress: bool | None = False,
) -> Sensitivity:
    """Compute how the ranking of runs changes if fewer relevant documents are judged.

    Random parts of the relevant judgements are kept, and the others count as not relevant; a query
    without a kept judgement is left out. A run counts as having retrieved nothing for a query that
    it lacks (trec_eval -c).

    Parameters
    ----------
    qrels : mapping of query to mapping of document to relevance
        Documents from relevance 1 are relevant; grades make no difference.
    runs : mapping of str to path, RunColumns, or mapping of query to document to score; or sequence
        By the names of the systems, three at least; in a sequence, paths are called like their
        files.
    measures : sequence of str
        map, map_cut_K, ndcg_cut_K, recall_K, P_K, success_K, recip_rank or recip_rank_cut_K, with
        tied documents in trec_eval's order, by name; a warning says if ties matter. Or kg_mrr,
        kg_hits.K or kg_mr, of which both ends are compared.
    entities : int, optional
        Number of entities of the graph; kg_mr needs it.
    shares, repeats, seed, threads, progress
        See `data_sensitivity`; parts are of the judgements.

    Raises
    ------
    UsageError
        Fewer than three runs, a share outside (0, 1), no repeats, or an unknown measure.
    FileError, InputError
        A run that cannot be read, qrels without a relevant document, or too few entities.
    """
    runs = by_name("runs", runs)
    sizes = check_parts(len(runs), shares)
    repeats = check_count("repeats", repeats, most=MOST_PARTS)
    of_queries, of_answers = _parse_measures(measures, entities)
    columns = resolve(of_queries) if of_queries else []
    answers = _find_answers(qrels, runs, columns, of_answers, entities)
    for note in answers.ties:
        warnings.warn(TieWarning(note), stacklevel=2)
    n = len(answers.question)
    parts = []
    if of_queries:
        parts.append(subset_values_of_runs(answers.question, answers.ranks, of_queries))
    if of_answers:
        listed = answers.listed
        parts.append(subset_values_of_answers(answers.question, listed, of_answers, entities))

    def values_on(subsets: Bools) -> Float64:
        return np.concatenate([values_of(subsets) for values_of in parts])

    tau = correlate_parts(
        values_on, (n, n), sizes, repeats, seed=seed, threads=threads, progress=progress
    )
    names = (*of_queries, *(column.name for column in of_answers))
    return Sensitivity(names, names, tuple(runs), sizes, tau, n, seed, "judgements")


def _parse_measures(
    measures: Sequence[str], entities: int | None
) -> tuple[list[str], list[Column]]:
    """Split measures into those of queries and the columns of those of answers."""
    of_queries = [name for name in measures if not name.startswith("kg_")]
    of_answers = [name for name in measures if name.startswith("kg_")]
    columns = resolve(of_answers, of_answers=True) if of_answers else []
    check_columns((), columns)
    check_micro(columns, EvalOptions(), entities)
    return of_queries, columns


@dataclass(frozen=True, eq=False)
class _RelevantAnswers:
    """The relevant documents of all queries, in every run.

    - question, int64 (n,): Query of each, ascending.
    - ranks, float64 (n, s): Rank in each run, in trec_eval's order; infinite if the run lacks it.
    - listed: What `subset_values_of_answers` needs, per run.
    - ties: Notes on runs whose ties change a measure.
    """

    question: Int64
    ranks: Float64
    listed: list[ListedAnswers]
    ties: list[str]


def _find_answers(
    qrels: Mapping[str, Mapping[str, int]],
    runs: Mapping[str, RunData | str],
    columns: Sequence[Column],
    of_answers: Sequence[Column],
    entities: int | None,
) -> _RelevantAnswers:
    """Find every relevant document in each run."""
    relevant = {
        query: [document for document, grade in row.items() if grade > 0]
        for query, row in qrels.items()
    }
    queries = sorted(
        (query for query, row in relevant.items() if row),
        key=lambda query: name_bytes(query, "query"),
    )
    if not queries:
        raise InputError("no query has a relevant document; give the qrels of these runs")
    sizes = [len(relevant[query]) for query in queries]
    # The relevance is the number of the document, which identifies it in the judged list.
    numbered = {query: {d: i for i, d in enumerate(relevant[query], start=1)} for query in queries}
    starts = np.cumsum([0, *sizes])
    ranks = np.full((int(starts[-1]), len(runs)), np.inf)
    listed, notes = [], []
    for column, (name, run) in enumerate(runs.items()):
        lists = read_lists(numbered, run, absent=True)
        if lists.unanswered == len(queries):
            raise InputError(f"{name} shares no query with the qrels; give the qrels of this run")
        view = View(lists, EvalOptions())
        hits = view.hits
        rows = starts[hits.query] + lists.relevance[hits.position] - 1
        ranks[rows, column] = hits.rank + 1
        if of_answers:
            micro_values(lists, of_answers, EvalOptions(), entities=entities)  # checks `entities`
            groups = tie_groups(lists, EvalOptions(), lists.relevance > 0)
            group = np.searchsorted(groups.first, hits.position, side="right") - 1
            above, tied = np.full(len(ranks), -1), np.zeros(len(ranks), np.int64)
            above[rows], tied[rows] = groups.start[group], groups.size[group]
            listed.append(ListedAnswers(above, tied, view.length))
        notes += _tie_notes(name, lists, columns)
    return _RelevantAnswers(np.repeat(np.arange(len(queries)), sizes), ranks, listed, notes)


def _tie_notes(name: str, lists: Lists, columns: Sequence[Column]) -> list[str]:
    """Return a note if the order of tied documents changes a measure; empty if not."""
    if not (columns and (lists.scores[1:] == lists.scores[:-1]).any()):
        return []
    binary = replace(
        lists, relevance=np.minimum(lists.relevance, 1), judged=np.minimum(lists.judged, 1)
    )
    effect = tie_effect(binary, columns)
    if not effect.queries:
        return []
    most = f", {effect.measure} by up to {effect.most:.4g}" if effect.measure else ""
    return [
        f"{name}: {effect.queries:,} of {len(lists):,} queries have ties that change a measure"
        f"{most}; parts order tied documents by name, as trec_eval does"
    ]


WHOLE_TEST_SET = 1.0
"""Share of rows that are about the whole test set."""


def sensitivity_of_table(table: ValueTable, measures: Sequence[str]) -> Sensitivity:
    """Correlate published rankings on parts of the test set with that on all of it.

    The table has a column ``share`` (from 0 to 1; rows with 1 are about the whole test set), and
    may have a column ``repeat`` that numbers the parts of each share.

    Raises
    ------
    UsageError
        No column ``share``, no row with share 1, no other row, or fewer than three systems.
    FileError
        A share that is not a number from 0 to 1.
    """
    require_type("table", table, ValueTable, "a ValueTable (study.read_value_table)")
    by = [name for name in ("share", "repeat") if table.column(name)]
    if "share" not in by:
        raise UsageError(
            f"{table.path} has no column 'share'; stability needs the values of systems on parts "
            "of the test set, with the share of it that each row is about (1: all)"
        )
    per_measure = values_of_table(table, measures, by)
    shares = _read_shares(table)
    parts = {part: shares[part[0]] for part in per_measure[0].parts}
    wholes = [part for part, share in parts.items() if share == WHOLE_TEST_SET]
    refuse_if(
        (len(wholes) != 1, f"{table.path}: {len(wholes)} parts have share 1; give one"),
        (len(parts) == len(wholes), f"{table.path}: no part has a share below 1; add such rows"),
    )
    sizes = check_parts(
        len(per_measure[0].systems), sorted({s for s in parts.values() if s < WHOLE_TEST_SET})
    )
    of_share = [[part for part, share in parts.items() if share == size] for size in sizes]
    tau = np.full((len(per_measure), len(sizes), max(map(len, of_share))), np.nan)
    for row, values in zip(tau, per_measure, strict=True):
        whole = values.parts[wholes[0]]
        for line, names in zip(row, of_share, strict=True):
            for repeat, name in enumerate(names):
                if np.isfinite(values.parts[name]).all() and np.isfinite(whole).all():
                    line[repeat] = tau_b(values.parts[name][None, :], whole)[0]
    keys = tuple(values.measure for values in per_measure)
    return Sensitivity(keys, keys, per_measure[0].systems, sizes, tau, 0, 0, "test set")


def _read_shares(table: ValueTable) -> dict[str, float]:
    """Return the number of each share in the table; FileError if it is not one from 0 to 1."""
    column, numbers = str(table.column("share")), {}
    for line, row in table.rows:
        try:
            numbers[row[column]] = float(row[column])
        except ValueError:
            numbers[row[column]] = math.nan
        if not 0 < numbers[row[column]] <= WHOLE_TEST_SET:
            raise FileError(
                table.path,
                line,
                found=f"{row[column]!r} under {column!r}",
                hint="write the share of the test set, above 0 and up to 1",
            )
    return numbers
