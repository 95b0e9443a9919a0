"""Repeat the study on four models of our own: runs, pool, judgements looked up, metrics, tau."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np
from zhou_labels import Labels
from zhou_published import METRICS, Files
from zhou_tables import column

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.table import Table
from kgtrec.study.comparison.rankings import DepthCurves, data_sensitivity, depth_curves
from kgtrec.study.comparison.samples import Samples, samples_of_ranks
from kgtrec.study.comparison.significance import pairwise
from kgtrec.study.pooling.completion import Completion, complete, depth_table
from kgtrec.study.pooling.depths import with_intervals
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Pool, make_pool
from kgtrec.study.pooling.seeds import replace_split
from kgtrec.study.pooling.unjudged import (
    evaluate_judged,
    interval_table,
    intervals,
    mean_columns,
    open_candidates,
    share_table,
)

__all__ = ["MODELS", "Curves", "Study", "factors", "report"]

MODELS = ("distmult", "complex", "transe", "rotate")
MEASURES = {
    **{f"micro_{name}": f"both.realistic.micro.{name}" for name in METRICS},
    "macro_mrr": "both.realistic.macro.mrr",
    "macro_hits@10": "both.realistic.macro.hits@10",
    "map_cut_20": "both.macro.map_cut_20",
    "ndcg_cut_20": "both.macro.ndcg_cut_20",
}
JUDGED = ("bpref", "infAP", "P_10", "rbp")
RUN_DEPTH = {"all": 200, "raw": 400}
DEPTHS = range(11)
DRAWS = 1_000


def factors(files: Files, model: str, questions: kgtrec.Questions) -> kgtrec.Factors:
    """A trained model as query and entity vectors; see the README of the data."""
    path = files.folder / "models" / f"fb15k-237-{model}.npz"
    with np.load(path, allow_pickle=False) as weights:
        entity, relation = weights["entity"], weights["relation"]
    inverse = questions.relation + questions.graph.n_relations
    entities = entity[questions.entity]
    operator = relation[np.where(questions.side == 0, inverse, questions.relation)]
    half = entity.shape[1] // 2
    if model == "distmult":
        return kgtrec.Factors(entities * operator, entity)
    if model == "transe":
        return kgtrec.Factors(entities + operator, entity, metric="l2")
    point = entities[:, :half] + 1j * entities[:, half:]
    if model == "complex":
        turned = point * (operator[:, :half] + 1j * operator[:, half:])
    else:
        turned = point * np.exp(10j * operator[:, :half])
    queries = np.concatenate([turned.real, turned.imag], axis=1).astype(entity.dtype)
    return kgtrec.Factors(queries, entity, metric="dot" if model == "complex" else "l2")


@dataclass(frozen=True, eq=False)
class Curves:
    """Rankings of models at every depth of a pool.

    Attributes
    ----------
    done : list of Completion
    ranked : DepthCurves
        By metrics of ranks, with intervals over questions.
    judged : dict of str to ndarray, shape (depths, models)
        Values by measures of lists; `of_lists` are the curves, without intervals.
    settled : list of int
        At each depth, pairs of models that differ significantly, summed over the metrics.
    """

    done: list[Completion]
    ranked: DepthCurves
    judged: dict[str, np.ndarray]
    of_lists: DepthCurves
    settled: list[int]

    def values(self) -> dict[str, np.ndarray]:
        """Metric to values, (depths, models)."""
        ranked = {one.measure: np.array([*one.parts.values()]) for one in self.ranked.values}
        return ranked | self.judged

    def taus(self) -> Table:
        """tau-b to depth 0 of all metrics, one row per depth."""
        tables = self.ranked.table(), self.of_lists.table()
        rows = [
            (*one, *other[1:]) for one, other in zip(*(table.rows for table in tables), strict=True)
        ]
        heads = [(*a, *b[1:]) for a, b in ((tables[0].titles, tables[1].titles),) * 2]
        digits = (*tables[0].digits, *tables[1].digits[1:])
        return Table(heads[0], heads[1], digits, rows)

    def ends(self) -> Table:
        """Intervals of tau at some depths."""
        table = self.ranked.interval_table()
        rows = [row for row in table.rows if row[1] in ("1", "2", "5", "10")]
        return Table(table.titles, table.keys, table.digits, rows, table.names)

    def verdict(self) -> str:
        """What the curves show, and what they cannot show with so few models."""
        n = len(self.ranked.systems)
        pairs = n * (n - 1) // 2
        measures = (*self.ranked.measures, *self.of_lists.measures)
        tau = np.concatenate([self.ranked.tau, self.of_lists.tau])
        moved = [
            f"{name} (lowest {line.min():.3f}, at depth {DEPTHS[int(line.argmin())]})"
            for name, line in zip(measures, tau, strict=True)
            if line.min() < 1
        ]
        same = [name for name, line in zip(measures, tau, strict=True) if line.min() == 1]
        low = self.ranked.interval[0, :, -1]
        least = int(low.argmin())
        n_tests = len(self.ranked.measures) * pairs
        return (
            f"tau = 1 at every depth: {', '.join(same) or 'none'}.\n"
            f"Below 1 somewhere: {', '.join(moved) or 'none'}.\n"
            f"Intervals over questions at depth {DEPTHS[-1]} begin between {low.min():.3f} "
            f"({self.ranked.measures[least]}) and {low.max():.3f}.\n"
            f"{n} models have {pairs} pairs, so that one exchange takes {2 / pairs:.3f} from tau, "
            f"and random rankings agree in full with a chance of 1 in {factorial(n)}; "
            f"{self.settled[0]} of {n_tests} pairs (all metrics of ranks) differ significantly at "
            f"depth 0, {self.settled[-1]} at depth {DEPTHS[-1]} (paired t-test over questions, "
            "Holm)."
        )


def _settled(samples: Samples) -> int:
    tests = pairwise(samples.by_cluster(), "t", "holm")
    return int((tests.corrected < 0.05).sum())


@dataclass(frozen=True, eq=False)
class Study:
    """Four models, on the seeds and judgements of FB-Test-S-C.

    Attributes
    ----------
    files : Files
    labels : Labels
    models : tuple of str
    """

    files: Files
    labels: Labels
    models: tuple[str, ...] = MODELS

    def results(self, questions: kgtrec.Questions, depth: int = 20) -> dict[str, Any]:
        """Results of `kgtrec.evaluate` for every model."""
        return {
            model: kgtrec.evaluate(
                factors(self.files, model, questions), questions, run_depth=depth, progress=False
            )
            for model in self.models
        }

    def lists(self, filtered: str) -> list[RankedLists]:
        """Lists of all models for the seeds' questions, from runs over the whole test split.

        "all": of filtered runs, as from `kgtrec rank`. "raw": with the places of raw runs.
        """
        questions = self.labels.graph.questions("test", filter=filtered)
        places = "raw" if filtered == "raw" else "filtered"
        results = self.results(questions, RUN_DEPTH[filtered])
        return [
            run_lists(result.run, self.labels.seeds, model, places=places)
            for model, result in results.items()
        ]

    @cached_property
    def filtered(self) -> list[RankedLists]:
        """Lists with their places after removing known candidates."""
        return self.lists("all")

    def pool(self, filtered: str) -> Pool:
        """The pool of our models, to depth 10."""
        lists = self.filtered if filtered == "all" else self.lists(filtered)
        return make_pool(lists, self.labels.seeds, 10)

    def questions_of(self, completion: Completion) -> kgtrec.Questions:
        """Questions of a complete split, filtered by all triples of the original splits."""
        graph = self.labels.graph
        own = replace_split(graph, completion.split, "test")
        return own.questions("test", extra_known=graph.split("test"))

    def samples(self, completion: Completion) -> list[Samples]:
        """Metrics of the models on a complete split, item by item."""
        results = self.results(self.questions_of(completion))
        ranks = {model: result.ranks for model, result in results.items()}
        samples = samples_of_ranks(ranks, list(MEASURES.values()))
        return [replace(one, name=name) for one, name in zip(samples, MEASURES, strict=True)]

    def judged(self, completion: Completion) -> dict[str, list[float]]:
        """Measures of the models' lists with the qrels of a completion."""
        columns = mean_columns(JUDGED)
        by_model = [evaluate_judged(one, completion, columns) for one in self.filtered]
        return {name: [own[name] for own in by_model] for name in JUDGED}

    def curves(self, pool: Pool) -> Curves:
        """Rankings of the models by every metric at every depth of a pool."""
        labels = self.labels
        done = [complete(labels.seeds, pool, labels.judgements, depth=k) for k in DEPTHS]
        samples = [self.samples(one) for one in done]
        ranked = with_intervals(samples, DEPTHS, Resampling(resamples=DRAWS))
        lists = [self.judged(one) for one in done]
        judged = {name: np.array([own[name] for own in lists]) for name in JUDGED}
        settled = [sum(map(_settled, row)) for row in samples]
        return Curves(done, ranked, judged, depth_curves(judged, DEPTHS), settled)


def report(files: Files, labels: Labels) -> Iterator[str]:
    """Text, section by section."""
    study = Study(files, labels)
    yield from _pools(study)
    own = study.pool("raw")
    for title, pool in (
        ("Labels from our own pool (raw places), judgements looked up", own),
        ("Labels from the published pool", labels.pool),
    ):
        curves = study.curves(pool)
        yield f"## {title}"
        yield depth_table(curves.done).to_text(120)
        yield "Values, by depth: " + ", ".join(study.models)
        yield _value_table(curves.values(), study.models).to_text(120)
        yield "tau-b to depth 0"
        yield curves.taus().to_text(200)
        yield "tau-b and tau-AP to depth 0 with 95 % intervals from drawing the questions anew"
        yield curves.ends().to_text(120)
        yield curves.verdict()
    last = labels.at(10)
    yield "## How much of our runs the published labels judge"
    yield share_table(study.filtered, last).to_text(120)
    candidates = open_candidates(study.filtered, last)
    by_model = {one.name: intervals(one, last, candidates=candidates) for one in study.filtered}
    yield interval_table(by_model).to_text(120)
    yield "## Our models and the published systems of the same names, micro MRR"
    yield _beside(study, files).to_text(120)
    yield "## A pool without one of our systems: what its own labels are worth to it"
    yield _left_out(study, own).to_text(120)
    yield "## Data sensitivity of our models on the whole test split (Figure 7a): mean tau"
    yield _sensitivity(study).to_text(160)


def _pools(study: Study) -> Iterator[str]:
    yield "## Pools of our four models"
    for filtered in ("raw", "all"):
        pool = study.pool(filtered)
        said = study.labels.judgements.labels_of(pool.triples)
        kind = "raw" if filtered == "raw" else "filtered"
        covered, total = int((said > -2).sum()), len(study.labels.pool)
        yield (
            f"{kind} places: {len(pool):,} triples, of which {covered:,} "
            f"({100 * covered / len(pool):.1f} %) are judged: {100 * covered / total:.1f} % of the "
            f"published pool"
        )
        yield pool.depth_table().to_text()
        yield pool.overlap_table().to_text()
    smallest = np.bincount(study.labels.pool.smallest, minlength=11)[1:].tolist()
    yield f"published pool, new triples by depth: {smallest}"


def _value_table(values: Mapping[str, np.ndarray], models: tuple[str, ...]) -> Table:
    rows = [
        (name, model, *(float(values[name][depth, i]) for depth in (0, 1, 2, 5, 10)))
        for name in values
        for i, model in enumerate(models)
    ]
    heads = ("metric", "model", "depth 0", "1", "2", "5", "10")
    return Table(heads, heads, (0, 0, 4, 4, 4, 4, 4), rows, names=2)


def _beside(study: Study, files: Files) -> Table:
    sets = {"FB-Test-S": 0, "FB-Test-S-C": 10}
    ours = {
        name: study.results(study.questions_of(study.labels.at(depth)))
        for name, depth in sets.items()
    }
    rows = []
    for model in study.models:
        cells = []
        for name in sets:
            theirs = column(files, f"{name}/evaluation.csv", "micro_mrr")[f"fb15k-237-{model}"]
            cells += [float(ours[name][model]["both.realistic.micro.mrr"]), theirs]
        rows.append((model, *cells))
    heads = ("model", "S, ours", "S, theirs", "S-C, ours", "S-C, theirs")
    return Table(heads, heads, (0, 4, 4, 4, 4), rows)


def _left_out(study: Study, pool: Pool) -> Table:
    """Micro MRR with labels of all systems, and with labels of the other systems only."""
    labels, key = study.labels, "both.realistic.micro.mrr"
    whole = complete(labels.seeds, pool, labels.judgements)
    every = study.results(study.questions_of(whole))
    place = _ranking({model: float(result[key]) for model, result in every.items()})
    rows = []
    for model in study.models:
        less = complete(labels.seeds, pool.without(model), labels.judgements)
        results = study.results(study.questions_of(less))
        moved = _ranking({name: float(result[key]) for name, result in results.items()})
        lost = whole.counts()["added"] - less.counts()["added"]
        cells = float(every[model][key]), float(results[model][key]), place[model], moved[model]
        rows.append((model, lost, *cells))
    heads = ("model", "true ones lost", "MRR, all", "MRR, without", "rank, all", "rank, without")
    return Table(heads, heads, (0, 0, 4, 4, 0, 0), rows)


def _ranking(values: Mapping[str, float]) -> dict[str, int]:
    order = sorted(values, key=lambda name: -values[name])
    return {name: order.index(name) + 1 for name in values}


def _sensitivity(study: Study) -> Table:
    questions = study.labels.graph.questions("test")
    ranks = {model: result.ranks for model, result in study.results(questions).items()}
    return data_sensitivity(ranks, shares=(0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.95), seed=42).table()
