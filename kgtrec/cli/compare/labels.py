"""The reports of ``kgtrec compare`` that hold sets of labels against each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgtrec._internal.locations import exists, is_folder
from kgtrec._internal.table import Cell, Table
from kgtrec.cli.compare.report import (
    CompareOptions,
    Report,
    by_measure,
    load_ranks,
    missing_notes,
    short_key,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.rankings import Rankings
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.stability import DepthCurves
    from kgtrec.study.pooling.pool import Pool

__all__ = ["against", "depths", "names_of_labels", "other_ranks", "reuse", "value_rows"]


def against(request: CompareOptions, other: str) -> Report:
    """Do other labels rank the systems alike?"""
    from kgtrec.study.comparison.rank_correlation import correlation_table
    from kgtrec.study.comparison.rankings import full_agreement, rankings_of_samples

    if len(request.systems) < 3:
        raise UsageError(f"{len(request.systems)} systems are too few to rank; give 3 or more")
    names = names_of_labels(request.qrels or next(iter(request.systems.values())), other)
    (ours, theirs), notes = _two_sets(request, other)
    per_measure = [
        rankings_of_samples(
            dict(zip(names, pair, strict=True)), short_key(pair[0]),
            draws=request.draws, seed=request.seed, confidence=request.confidence,
        )
        for pair in zip(ours, theirs, strict=True)
    ]  # fmt: skip
    both = [each for one in per_measure for each in (*one.over_questions, *one.over_systems)]

    def tables(measures: list[str]) -> tuple[Table, Table]:
        drawn = [(name, over) for name in measures for over in ("questions", "systems")]
        alike = correlation_table(drawn, both, ("rankings by", "drawn"))
        return value_rows(measures, per_measure), alike

    table, alike = tables([one.title for one in per_measure])
    values, rankings = tables([one.name for one in ours])
    text = (
        f"{ours[0].n_clusters:,} questions in {names[0]}, {theirs[0].n_clusters:,} in {names[1]}. "
        "Intervals from drawing the questions, or the systems, anew. tau-AP weighs the top more."
        + full_agreement(per_measure)
    )
    heading = f"Rankings of {len(request.systems)} systems by {names[0]} and by {names[1]}"
    data = {"values": values.to_dict(), "rankings": rankings.to_dict()}
    return Report([(heading, [table, alike], text)], data, rankings, notes=notes,
                  figures={"": ("rankings", "bump_chart", per_measure)})  # fmt: skip


def names_of_labels(ours: str, other: str) -> tuple[str, str]:
    """What two sets of labels are called: by their files, or by the folders of files of ranks."""
    if ours.endswith(".parquet"):
        ours = os.path.dirname(ours) or "."
    ends = [os.path.abspath(path).split(os.sep) for path in (ours, other)]
    different = [pair for pair in zip(*map(reversed, ends), strict=False) if len({*pair}) > 1]
    return different[0] if different and "" not in different[0] else (ours, other)


def _two_sets(
    request: CompareOptions, other: str
) -> tuple[tuple[list[Samples], list[Samples]], list[str]]:
    """Samples by both sets of labels, and notes."""
    if request.qrels is not None:
        from kgtrec.study.comparison.run_samples import samples_of_runs

        ours, missing = samples_of_runs(
            request.qrels, request.systems, request.keys, entities=request.entities
        )
        theirs, missing_there = samples_of_runs(
            other, request.systems, request.keys, entities=request.entities
        )
        notes = missing_notes(missing, len(ours[0])) + missing_notes(missing_there, len(theirs[0]))
        return (ours, theirs), notes
    from kgtrec.study.comparison.samples import samples_of_ranks

    here = load_ranks(request.systems)
    samples = [samples_of_ranks(each, request.keys) for each in (here, other_ranks(request, other))]
    return (samples[0], samples[1]), []


def other_ranks(request: CompareOptions, folder: str) -> dict[str, Ranks]:
    """Ranks of the same systems by other labels: the files of the same names in a folder."""
    return load_ranks({name: _sibling(path, folder) for name, path in request.systems.items()})


def _sibling(path: str, folder: str) -> str:
    """The file of the same name in the folder of the other labels' ranks."""
    if not is_folder(folder):
        raise UsageError(
            f"--against {folder!r} is not a folder; with files of ranks it names a folder that "
            "holds files of the same names, made with other labels (with runs and --qrels, other "
            "qrels)"
        )
    there = os.path.join(folder, os.path.basename(path))
    if not exists(there) or is_folder(there):
        raise UsageError(
            f"--against {folder!r} holds no {os.path.basename(path)!r}; give it a file of ranks "
            "for each system, of the same name"
        )
    return there


def value_rows(measures: list[str], rankings: list[Rankings]) -> Table:
    """A row per measure and system: value and place by both sets of labels."""
    tables = [one.value_table() for one in rankings]
    rows: list[tuple[Cell, ...]] = [
        (name, *row) for name, table in zip(measures, tables, strict=True) for row in table.rows
    ]
    keys = ("measure", "system", "value", "place", "other", "other.place")
    return Table(("measure", *tables[0].titles), keys, (0, *tables[0].digits), rows, 2)


def _pool(request: CompareOptions, path: str) -> Pool:
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.pool_file import read_pool

    assert request.graph is not None
    pool, _ = read_pool(path, read_graph(request.graph))
    return pool


def reuse(request: CompareOptions, path: str) -> Report:
    """What does a system lose if the pool was made without it?"""
    from kgtrec.study.pooling.reusability import contributors_of, leave_one_out
    from kgtrec.trec import read_qrels, read_run

    assert request.qrels is not None
    contributors = contributors_of(_pool(request, path))
    qrels = read_qrels(request.qrels)
    runs = {name: read_run(one) for name, one in request.systems.items()}
    results = [leave_one_out(qrels, runs, contributors, key) for key in request.keys]
    parts = [
        (f"{one.measure}: each system left out of the pool in turn", [one.table()], one.sentence())
        for one in results
    ]
    tables = {one.measure: one.table() for one in results}
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report(parts, data, by_measure(tables), figures={"": ("compare", "left_out", results)})


def depths(request: CompareOptions, path: str) -> Report:
    """How does the ranking change as the pool grows deeper?"""
    pool = _pool(request, path)
    curves = _depth_curves(request, pool)
    table, whole = curves.table(), curves.interval_table()
    heading = (
        f"tau-b of the ranking of {len(request.systems)} systems with the labels of each pool "
        f"depth to that at depth {curves.reference}"
    )
    text = f"{curves.least_alike()} Intervals draw the questions anew."
    data: Mapping[str, object] = {"rankings": whole.to_dict(), "values": curves.values_by_name()}
    return Report([(heading, [table, whole], text)], data, whole,
                  figures={"": ("rankings", "depth_curves", curves)})  # fmt: skip


def _depth_curves(request: CompareOptions, pool: Pool) -> DepthCurves:
    """Of runs, or of ranks on the complete split."""
    drawn: dict[str, Any] = {
        "draws": request.draws, "seed": request.seed, "confidence": request.confidence
    }  # fmt: skip
    if request.qrels is None:
        from kgtrec.study.pooling.rank_depths import curves_of_ranks

        return curves_of_ranks(load_ranks(request.systems), pool, request.keys, **drawn)
    from kgtrec.study.pooling.depths import curves_of_runs, depths_of, names_of_pool

    depth_of = depths_of(pool, names_of_pool(pool, request.questions))
    return curves_of_runs(
        request.qrels, request.systems, depth_of, request.keys, entities=request.entities, **drawn
    )
