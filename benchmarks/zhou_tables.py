"""Compute their figures and tables from their published result tables of 13 systems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from zhou_published import METRICS, PUBLISHED, TABLE3, Files, Row, row

from kgtrec.study.comparison.correlation import tau_b
from kgtrec.study.comparison.rankings import depth_curves
from kgtrec.study.comparison.significance import discrimination_of

__all__ = ["table_rows"]

WHOLE, SEEDS, COMPLETE = "FB-Test-O", "FB-Test-S", "FB-Test-S-C"
DEPTHS = range(11)
TOP10 = {"L": 12.5, "A": 11.8, "D": 11.5}  # section 4.2, per cent


def table_rows(files: Files) -> Iterator[Row]:
    """Figures 3, 4, 5, 6, 8 and Tables 3 and 4."""
    yield from _figure3(files)
    yield from _depths(files)
    yield from _table3(files)
    yield from _table4(files)
    yield from _difficulty(files)
    yield from _figure8(files)
    yield Row("fig7", "curves", None, None, "needs ranks, which are not published; see part 2")


def column(files: Files, table: str, metric: str, **filters: str) -> dict[str, float]:
    """A metric by system, in the order of the names."""
    lines = files.table(table)
    chosen = [line for line in lines if all(line[k] == v for k, v in filters.items())]
    values = {line["System"]: float(line[metric]) for line in chosen}
    return dict(sorted(values.items()))


def correlation(one: dict[str, float], other: dict[str, float]) -> float:
    """Kendall's tau-b of two rankings of the same systems."""
    assert list(one) == list(other), "the tables are of other systems"
    return float(tau_b(list(one.values()), list(other.values())))


def _between(files: Files, one: str, other: str, metric: str, **filters: str) -> float:
    name = "lp_per_rel_type.csv" if filters else "evaluation.csv"
    first, second = (column(files, f"{split}/{name}", metric, **filters) for split in (one, other))
    return correlation(first, second)


def codes(files: Files) -> dict[str, str]:
    """The letters A to M: systems by falling micro MRR on FB-Test-O."""
    values = column(files, f"{WHOLE}/evaluation.csv", "micro_mrr")
    order = sorted(values, key=lambda name: -values[name])
    return dict(zip("ABCDEFGHIJKLM", order, strict=True))


def _figure3(files: Files) -> Iterator[Row]:
    yield row("000.fig3.S_vs_SC", _between(files, SEEDS, COMPLETE, "micro_mrr"))
    yield row("000.fig3.S_vs_O", _between(files, SEEDS, WHOLE, "micro_mrr"))
    whole = column(files, f"{COMPLETE}/evaluation.csv", "micro_mrr")
    order = sorted(whole, key=lambda name: -whole[name])
    named = codes(files)
    for code in "ADL":
        yield row(f"000.fig3.rank_SC.{code}", order.index(named[code]) + 1, named[code])
    precision = column(files, f"{COMPLETE}/evaluation.csv", "P_10")
    for code in "LAD":
        text = f"{TOP10[code]} % of {named[code]}'s first ten"
        note = f"needs their runs; P_10 in their table is {100 * precision[named[code]]:.1f} %"
        yield Row(f"section 4.2: true, model {code}", text, None, None, note)


def _depths(files: Files) -> Iterator[Row]:
    names = (*METRICS.values(), "macro_mrr", "macro_hits@10")
    values = {
        name: [
            list(column(files, f"{COMPLETE}/pooling_depth.csv", name, Depth=str(depth)).values())
            for depth in DEPTHS
        ]
        for name in names
    }
    curves = depth_curves(values, list(DEPTHS), lower_is_better=["micro_mr"])
    tau = dict(zip(names, curves.tau, strict=True))
    yield row("000.fig4.depth2.micro_mrr", float(tau["micro_mrr"][2]))
    fallen = all(tau[f"micro_{name}"][10] < 0 for name in ("mrr", "hits@1", "hits@3"))
    yield row("fig4: below 0 at depth 10", bool(fallen), "MRR, Hits@1 and Hits@3")
    pairs = {"mrr": "mrr", "hits10": "hits@10"}
    for key, name in pairs.items():
        gap = float(tau[f"macro_{name}"][10] - tau[f"micro_{name}"][10])
        yield row(f"000.fig5.gap10.{key}", gap)
    above = np.all([tau[f"macro_{n}"] > tau[f"micro_{n}"] for n in pairs.values()], axis=0)
    yield row("000.fig5.macro>micro at depths>=2", bool(above[2:].all()), "MRR and Hits@10")
    note = f"MRR at depth 1: macro {tau['macro_mrr'][1]:.4f}, micro {tau['micro_mrr'][1]:.4f}; "
    note += f"Hits@10: {tau['macro_hits@10'][1]:.4f}, {tau['micro_hits@10'][1]:.4f}"
    yield row("fig5: macro above micro at any depth", bool(above[1:].all()), note)
    for name in names:
        text = " ".join(f"{value:.3f}" for value in tau[name])
        yield Row(f"fig4, 5: tau of {name} by depth", None, None, None, text)


def _table3(files: Files) -> Iterator[Row]:
    for key, cells in TABLE3.items():
        side, kind = key.split(".")
        for name, value in zip(("mrr", "hits@1", "hits@3", "hits@10"), cells, strict=True):
            metric = METRICS[name]
            ours = _between(files, SEEDS, COMPLETE, metric, QuestionType=side, RelationType=kind)
            note = "" if value is not None else "not legible in the scan at hand"
            yield row(f"000.t3.{key}.{metric}", ours, note)


def _table4(files: Files) -> Iterator[Row]:
    for metric in METRICS.values():
        sample = column(files, f"{SEEDS}/evaluation.csv", metric)
        whole = column(files, f"{COMPLETE}/evaluation.csv", metric)
        sparse = column(files, f"{COMPLETE}/lp_sample_rel_dist.csv", metric)
        yield row(f"000.t4.complete.{metric}", correlation(sample, whole))
        yield row(f"000.t4.sparse.{metric}", correlation(sample, sparse))
        largest = max(abs(_reweighted(files, name, metric) - sparse[name]) for name in sparse)
        note = "largest difference of 13 systems"
        yield row(f"sparse {metric} from metrics by relation", largest < 1e-9, note, True)


def _reweighted(files: Files, system: str, metric: str) -> float:
    """FB-Test-S-C's metrics by relation, with the ratios of FB-Test-S (Equation 1)."""
    from kgtrec.study.stratified import reweight_mean

    graph = _relation_counts(files)
    lines = [x for x in files.table(f"{COMPLETE}/lp_per_rel.csv") if x["System"] == system]
    values = [float(line[metric]) for line in lines]
    return reweight_mean(values, [graph.get(line["Relation"], 0) for line in lines])


def _relation_counts(files: Files) -> dict[str, int]:
    from kgtrec.study.stratified import read_relation_counts

    return read_relation_counts(files.data("FB-Test-S/samples.txt"))


def _difficulty(files: Files) -> Iterator[Row]:
    medians = []
    for split in (WHOLE, SEEDS, COMPLETE):
        lines = files.table(f"{split}/lp_per_rel.csv")
        own = [float(x["micro_mrr"]) for x in lines if x["System"] == "fb15k-237-hitter"]
        medians.append(f"{split[8:]} {float(np.median(own)):.4f}")
    yield row("000.fig6.median_hitter", ", ".join(medians), "median over relations of micro MRR")
    means = []
    for split in (WHOLE, SEEDS, COMPLETE, "WN18RR"):
        ranks = column(files, f"{split}/evaluation.csv", "micro_mr")
        means.append(f"{split} {np.mean(list(ranks.values())):.1f}")
    yield Row("000.mean_MR", PUBLISHED["000.mean_MR"], None, None, ", ".join(means))


def _figure8(files: Files) -> Iterator[Row]:
    names = (
        "micro_mrr",
        "macro_mrr",
        "micro_hits@10",
        "macro_hits@10",
        "map_cut_20",
        "ndcg_cut_20",
    )
    areas: dict[tuple[str, str], float] = {}
    for split in (WHOLE, COMPLETE, "WN18RR"):
        lines = files.table(f"{split}/discriminative_power.csv")
        once = [x for x in lines if x["SystemA"] < x["SystemB"]]
        power = discrimination_of({name: [float(x[name]) for x in once] for name in names})
        areas |= {(split, name): float(area) for name, area in zip(names, power.area, strict=True)}
        text = ", ".join(f"{name} {areas[split, name]:.4f}" for name in names)
        yield Row(f"fig8: mean p, {len(once)} pairs, {split}", None, None, None, text)
    for key, name in (("MRR", "mrr"), ("Hits@10", "hits@10")):
        sharper = areas[WHOLE, f"macro_{name}"] < areas[WHOLE, f"micro_{name}"]
        yield row(f"fig8: macro {key} sharper on {WHOLE}", bool(sharper), "has the smaller area")
    gaps = [areas[s, "micro_mrr"] - areas[s, "macro_mrr"] for s in (WHOLE, COMPLETE)]
    note = f"micro less macro MRR: {gaps[0]:.4f} on {WHOLE}, {gaps[1]:.4f} on {COMPLETE}"
    yield row(f"fig8: gap of MRR smaller on {COMPLETE}", bool(abs(gaps[1]) < abs(gaps[0])), note)
