"""The reports of ``kgtrec compare``, from files to text and figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kgtrec.cli.compare.labels import against, depths, reuse
from kgtrec.cli.compare.parts import by_parts, of_table
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
    from kgtrec._internal.table import Table
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.discriminative_power import Discrimination
    from kgtrec.study.comparison.multiplicity import Multiplicity
    from kgtrec.study.comparison.rankings import Rankings
    from kgtrec.study.comparison.report import Comparison
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.stability import Sensitivity
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["CompareOptions", "Report", "make_report"]

DISCRIMINATIVE = ("both.realistic.micro.mrr", "both.realistic.micro.hits@10",
                  "both.realistic.macro.mrr", "both.realistic.macro.hits@10",
                  "both.macro.map_cut_20", "both.macro.ndcg_cut_20")  # fmt: skip


def make_report(request: CompareOptions) -> Report:
    """Read the files and make the report that is wished for."""
    if request.stability:
        return _stability(request)
    if request.discriminative:
        return _discriminative(request)
    if request.table is not None:
        return of_table(request, request.table)
    if request.by is not None or request.ratios is not None:
        return by_parts(request)
    if request.replicates:
        return _replicates(request)
    if request.reproduction:
        return _reproduction(request)
    if request.reuse is not None:
        return reuse(request, request.reuse)
    if request.depths is not None:
        return depths(request, request.depths)
    if request.against is not None:
        return against(request, request.against)
    return _comparison(request)


def _samples(request: CompareOptions, keys: Sequence[str]) -> tuple[list[Samples], list[str]]:
    from kgtrec.study.comparison.run_samples import samples_of_runs
    from kgtrec.study.comparison.samples import samples_of_ranks

    if request.qrels is None:
        return samples_of_ranks(load_ranks(request.systems), keys), []
    samples, missing = samples_of_runs(
        request.qrels, request.systems, keys, entities=request.entities
    )
    return samples, missing_notes(missing, len(samples[0]))


# -- Values, intervals, pairs ------------------------------------------------------------------


def _comparison(request: CompareOptions) -> Report:
    from kgtrec.study.comparison.rank_correlation import correlation_table
    from kgtrec.study.comparison.report import compare

    samples, notes = _samples(request, request.keys)
    compared = [
        compare(
            one, request.test or "randomisation", request.correction, clustered=request.cluster,
            permutations=request.permutations, draws=request.draws, seed=request.seed,
            confidence=request.confidence, level=request.level,
        )
        for one in samples
    ]  # fmt: skip
    parts = [
        (_heading(one.samples, request), [one.value_table(), one.pair_table()], one.sentence())
        for one in compared
    ]
    data: dict[str, object] = {one.samples.name: one.to_dict() for one in compared}
    figures: dict[str, tuple[str, str, Any]] = {
        "": ("compare", "intervals", compared), "pairs": ("compare", "pair_matrix", compared)
    }  # fmt: skip
    rankings = _rankings(compared, request)
    if rankings is not None:
        text = (
            "Correlation of the systems' rankings by two measures; intervals from drawing the "
            "questions anew. tau-AP weighs the top more."
        )
        names = list(combinations(rankings.names, 2))
        alike = correlation_table(names, rankings.over_questions)
        parts.append(("Do the measures rank alike?", [alike], text))
        data["rankings"] = alike.to_dict()
        figures["rankings"] = ("rankings", "bump_chart", rankings)
    pairs = {one.samples.name: one.pair_table() for one in compared}
    return Report(
        parts, data, by_measure(pairs), [one.latex() for one in compared], notes, figures
    )  # fmt: skip


def _heading(samples: Samples, request: CompareOptions) -> str:
    what = f"{samples.name}: {len(samples):,} {samples.unit}"
    if samples.n_clusters != len(samples):
        what += f" of {samples.n_clusters:,} questions"
    better = "higher" if samples.higher_is_better else "lower"
    return f"{what} · {better} is better · {request.confidence:.0%} intervals (drawn by question)"


def _rankings(compared: Sequence[Comparison], request: CompareOptions) -> Rankings | None:
    """The measures' rankings, if there is more than one and they are of three systems or more."""
    from kgtrec.study.comparison.rankings import rankings_of_samples

    if len(compared) < 2 or len(request.systems) < 3:
        return None
    return rankings_of_samples(
        {short_key(one.samples): one.samples for one in compared},
        resampled=[one.resampled for one in compared],
        draws=request.draws, seed=request.seed, confidence=request.confidence,
    )  # fmt: skip


# -- Stability, discriminative power -------------------------------------------------------------


def _stability(request: CompareOptions) -> Report:
    from kgtrec.study.comparison.stability import data_sensitivity

    sensitivity: Sensitivity = data_sensitivity(
        load_ranks(request.systems),
        request.keys or None,
        repeats=request.repeats,
        seed=request.seed,
        progress=None,
    )
    table = sensitivity.table()
    heading = (
        f"Mean tau-b of the ranking of {len(sensitivity.systems)} systems on random parts of "
        f"the {sensitivity.triples:,} test triples to that on all ({request.repeats} parts of "
        "each size)"
    )
    whole = sensitivity.spread_table()
    return Report([(heading, [table], sensitivity.sentence())], whole.to_dict(), whole,
                  figures={"": ("rankings", "sensitivity", sensitivity)})  # fmt: skip


def _replicates(request: CompareOptions) -> Report:
    from kgtrec.ranking.parquet import system_name
    from kgtrec.study.comparison.multiplicity import multiplicity
    from kgtrec.study.comparison.replicates import compare_replicates, grouped_names

    runs, files = load_ranks(request.systems), list(request.systems.values())
    systems: dict[str, list[Ranks]] = {}
    names = grouped_names([system_name(file) for file in files])
    for name, ranks in zip(names, runs.values(), strict=True):
        systems.setdefault(name, []).append(ranks)
    if len(systems) == len(runs):
        raise UsageError(
            f"no two of {', '.join(systems)} are runs of one system; name runs system-1, system-2, "
            "..., or put files of the same name into several folders"
        )
    comparisons = compare_replicates(
        systems, request.keys, correction=request.correction, draws=request.draws,
        seed=request.seed,
    )  # fmt: skip
    text = (
        "std: deviation between runs. Intervals and p: questions and runs (or folds) are drawn "
        f"anew ({request.draws:,} times), {request.correction} correction."
    )
    parts = []
    for one in comparisons:
        tables = [one.value_table(request.confidence)]
        tables += [one.pair_table(request.confidence)] if len(systems) > 1 else []
        folds = f" on {one.folds} folds" if one.folds > 1 else ""
        heading = f"{one.name}: {len(runs)} runs of {len(systems)} systems{folds}"
        parts.append((heading, tables, text))
    data: dict[str, object] = {
        one.name: {"systems": one.value_table(request.confidence).to_dict(),
                   "pairs": one.pair_table(request.confidence).to_dict()}
        for one in comparisons
    }  # fmt: skip
    notes = []
    if comparisons[0].folds > 1:
        notes = ["how far runs as good as the best disagree is not said of folds: their questions "
                 "are others"]  # fmt: skip
    else:
        close = multiplicity(runs, request.epsilon, runs=_trec_runs(request))
        parts.append(_multiplicity_part(close))
        data["multiplicity"] = {
            "best": close.best, "models": list(close.models), "epsilon": close.epsilon,
            "by": close.table().to_dict(),
        }  # fmt: skip
    values = {one.name: one.value_table(request.confidence) for one in comparisons}
    return Report(parts, data, by_measure(values), notes=notes)


def _trec_runs(request: CompareOptions) -> dict[str, RunColumns] | None:
    """What each file of ranks ranked first, if that was said."""
    from kgtrec.trec.files.read import read_run_columns

    if not request.runs:
        return None
    if len(request.runs) != len(request.systems):
        raise UsageError(
            f"--run is given {len(request.runs)} times for {len(request.systems)} files; name the "
            "run of every file"
        )
    return dict(zip(request.systems, map(read_run_columns, request.runs), strict=True))


def _multiplicity_part(close: Multiplicity) -> tuple[str, list[Table], str]:
    heading = (
        f"How far do runs disagree whose MRR is at most {close.epsilon:g} below that of "
        f"{close.best}?"
    )
    text = (
        "Ambiguity: share of answers on which some run makes a hit and the best run none, or the "
        "reverse; discrepancy: the same of the one run that differs most."
    )
    if close.best_answer is not None:
        text += " Best answer: shares of the questions for which another entity is ranked first."
    return heading, [close.table()], text


def _reproduction(request: CompareOptions) -> Report:
    from kgtrec.study.comparison.reproduction import DEPTH, PERSISTENCE, reproduction_of

    reproduction, missing = reproduction_of(request.qrels, request.systems, request.keys)
    orders, effects = reproduction.order_table(), reproduction.table()
    text = (
        f"tau union: Kendall's tau of the {DEPTH:,} best, numbered in their union (1: the same "
        f"order); RBO: rank-biased overlap, p = {PERSISTENCE}, extrapolated, and how much it "
        "may exceed its least value; RMSE: of the values of queries, 0 if all are the same. "
        "Effect ratio: 1 if the improvement was reproduced, 0 if it was not; delta RI: 0 if the "
        "relative improvement was. (Breuer et al., SIGIR 2020)"
    )
    parts = [("Is one experiment what the other was?", [orders, effects], text)]
    notes = [
        f"{name}: {count:,} queries of the qrels are not in the run; they count as if nothing were "
        "retrieved, and not for tau union and RBO"
        for name, count in missing.items()
        if count
    ]
    data = {"orders": orders.to_dict(), "effects": effects.to_dict()}
    return Report(parts, data, effects, notes=notes)


def _discriminative(request: CompareOptions) -> Report:
    from kgtrec.study.comparison.discriminative_power import discriminate

    samples, notes = _samples(request, request.keys or DISCRIMINATIVE)
    samples = [one.by_cluster() if request.cluster else one for one in samples]
    discrimination: Discrimination = discriminate(
        samples, request.test or "t", correction=request.correction,
        permutations=request.permutations, seed=request.seed,
    )  # fmt: skip
    table = discrimination.table(request.level)
    heading = (
        f"p-values of all {discrimination.p.shape[1]} pairs of {len(request.systems)} systems "
        f"({discrimination.test} test): the smaller the area, the more a measure tells apart"
    )
    text = "A measure that finds many differences need not find the right ones."
    p_values = dict(zip(discrimination.measures, discrimination.p.tolist(), strict=True))
    data = {"summary": table.to_dict(), "p": p_values}
    return Report([(heading, [table], text)], data, discrimination.curves(), notes=notes,
                  figures={"": ("compare", "p_curves", discrimination)})  # fmt: skip
