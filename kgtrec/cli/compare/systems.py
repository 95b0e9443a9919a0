"""The reports of ``kgtrec compare``, from files to text and figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kgtrec.cli.compare.labels import against, depths, reuse
from kgtrec.cli.compare.report import Report, Wish, by_measure, missing_notes, short_key

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.discriminative_power import Discrimination
    from kgtrec.study.comparison.rankings import Rankings
    from kgtrec.study.comparison.report import Comparison
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.stability import Sensitivity

__all__ = ["Report", "Wish", "make_report"]

DISCRIMINATIVE = ("both.realistic.micro.mrr", "both.realistic.micro.hits@10",
                  "both.realistic.macro.mrr", "both.realistic.macro.hits@10",
                  "both.macro.map_cut_20", "both.macro.ndcg_cut_20")  # fmt: skip


def make_report(wish: Wish) -> Report:
    """Read the files and make the report that is wished for."""
    if wish.stability:
        return _stability(wish)
    if wish.discriminative:
        return _discriminative(wish)
    if wish.reuse is not None:
        return reuse(wish, wish.reuse)
    if wish.depths is not None:
        return depths(wish, wish.depths)
    if wish.against is not None:
        return against(wish, wish.against)
    return _comparison(wish)


def _load(wish: Wish) -> dict[str, Ranks]:
    from kgtrec.ranking.ranks import Ranks

    return {name: Ranks.load(path) for name, path in wish.systems.items()}


def _samples(wish: Wish, keys: Sequence[str]) -> tuple[list[Samples], list[str]]:
    from kgtrec.study.comparison.run_samples import samples_of_runs
    from kgtrec.study.comparison.samples import samples_of_ranks

    if wish.qrels is None:
        return samples_of_ranks(_load(wish), keys), []
    samples, missing = samples_of_runs(wish.qrels, wish.systems, keys, entities=wish.entities)
    return samples, missing_notes(missing, len(samples[0]))


# -- Values, intervals, pairs ------------------------------------------------------------------


def _comparison(wish: Wish) -> Report:
    from kgtrec.study.comparison.rank_correlation import correlation_table
    from kgtrec.study.comparison.report import compare

    samples, notes = _samples(wish, wish.keys)
    compared = [
        compare(
            one, wish.test or "randomisation", wish.correction, clustered=wish.cluster,
            permutations=wish.permutations, draws=wish.draws, seed=wish.seed,
            confidence=wish.confidence, level=wish.level,
        )
        for one in samples
    ]  # fmt: skip
    parts = [
        (_heading(one.samples, wish), [one.value_table(), one.pair_table()], one.sentence())
        for one in compared
    ]
    data: dict[str, object] = {one.samples.name: one.to_dict() for one in compared}
    figures: dict[str, tuple[str, str, Any]] = {
        "": ("compare", "intervals", compared), "pairs": ("compare", "pair_matrix", compared)
    }  # fmt: skip
    found = _rankings(compared, wish)
    if found is not None:
        told = (
            "Correlation of the systems' rankings by two measures; intervals from drawing the "
            "questions anew. tau-AP weighs the top more."
        )
        names = list(combinations(found.names, 2))
        alike = correlation_table(names, found.over_questions)
        parts.append(("Do the measures rank alike?", [alike], told))
        data["rankings"] = alike.to_dict()
        figures["rankings"] = ("rankings", "bump_chart", found)
    pairs = {one.samples.name: one.pair_table() for one in compared}
    return Report(
        parts, data, by_measure(pairs), [one.latex() for one in compared], notes, figures
    )  # fmt: skip


def _heading(samples: Samples, wish: Wish) -> str:
    what = f"{samples.name}: {len(samples):,} {samples.unit}"
    if samples.n_clusters != len(samples):
        what += f" of {samples.n_clusters:,} questions"
    better = "higher" if samples.higher_is_better else "lower"
    return f"{what} · {better} is better · {wish.confidence:.0%} intervals (drawn by question)"


def _rankings(compared: Sequence[Comparison], wish: Wish) -> Rankings | None:
    """The measures' rankings, if there is more than one and they are of three systems or more."""
    from kgtrec.study.comparison.rankings import rankings_of_samples

    if len(compared) < 2 or len(wish.systems) < 3:
        return None
    return rankings_of_samples(
        {short_key(one.samples): one.samples for one in compared},
        resampled=[one.resampled for one in compared],
        draws=wish.draws, seed=wish.seed, confidence=wish.confidence,
    )  # fmt: skip


# -- Stability, discriminative power -------------------------------------------------------------


def _stability(wish: Wish) -> Report:
    from kgtrec.study.comparison.stability import data_sensitivity

    found: Sensitivity = data_sensitivity(
        _load(wish), wish.keys or None, repeats=wish.repeats, seed=wish.seed, progress=None
    )
    table = found.table()
    heading = (
        f"Mean tau-b of the ranking of {len(found.systems)} systems on random parts of the "
        f"{found.triples:,} test triples to that on all ({wish.repeats} parts of each size)"
    )
    mean = found.mean()
    worst = [int(line.argmin()) for line in mean]
    by_area = sorted(range(len(mean)), key=lambda k: -float(mean[k].mean()))
    ranked = ", ".join(f"{found.titles[k]} {mean[k].mean():.4f}" for k in by_area)
    least = min(range(len(mean)), key=lambda k: float(mean[k][worst[k]]))
    told = (
        f"Most stable first, by the mean over all sizes: {ranked}. Least of all: "
        f"{found.titles[least]} on {found.shares[worst[least]]:.0%} of the triples, "
        f"{mean[least][worst[least]]:.4f}."
    )
    whole = found.spread_table()
    return Report([(heading, [table], told)], whole.to_dict(), whole,
                  figures={"": ("rankings", "sensitivity", found)})  # fmt: skip


def _discriminative(wish: Wish) -> Report:
    from kgtrec.study.comparison.discriminative_power import discriminate

    samples, notes = _samples(wish, wish.keys or DISCRIMINATIVE)
    samples = [one.by_cluster() if wish.cluster else one for one in samples]
    found: Discrimination = discriminate(
        samples, wish.test or "t", correction=wish.correction,
        permutations=wish.permutations, seed=wish.seed,
    )  # fmt: skip
    table = found.table(wish.level)
    heading = (
        f"p-values of all {found.p.shape[1]} pairs of {len(wish.systems)} systems "
        f"({found.test} test): the smaller the area, the more a measure tells apart"
    )
    told = "A measure that finds many differences need not find the right ones."
    data = {"summary": table.to_dict(), "p": dict(zip(found.measures, found.p.tolist(),
                                                      strict=True))}  # fmt: skip
    return Report([(heading, [table], told)], data, found.curves(), notes=notes,
                  figures={"": ("compare", "p_curves", found)})  # fmt: skip
