"""The same study on four models of our own: runs, pool, judgements looked up, metrics, tau."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from zhou_labels import Labels
from zhou_published import METRICS, Files
from zhou_tables import column

import kgtrec
from kgtrec.study.completion import Completion, complete, depth_table
from kgtrec.study.judged import interval_table, intervals, share_table
from kgtrec.study.pooling import Pool, make_pool
from kgtrec.study.runlists import RankedLists, run_lists
from kgtrec.study.seeds import replaced_split
from kgtrec.study.stability import DepthCurves, data_sensitivity, depth_curves
from kgtrec.tables import Table

__all__ = ["MODELS", "Study", "factors", "report"]

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


def factors(files: Files, model: str, questions: kgtrec.Questions) -> kgtrec.Factors:
    """A trained model as query and entity vectors; see the README of the data."""
    path = files.folder / "models" / f"fb15k-237-{model}.npz"
    with np.load(path, allow_pickle=False) as weights:
        entity, relation = weights["entity"], weights["relation"]
    inverse = questions.relation + questions.graph.n_relations
    given = entity[questions.entity]
    asked = relation[np.where(questions.side == 0, inverse, questions.relation)]
    half = entity.shape[1] // 2
    if model == "distmult":
        return kgtrec.Factors(given * asked, entity)
    if model == "transe":
        return kgtrec.Factors(given + asked, entity, metric="l2")
    point = given[:, :half] + 1j * given[:, half:]
    if model == "complex":
        turned = point * (asked[:, :half] + 1j * asked[:, half:])
    else:
        turned = point * np.exp(10j * asked[:, :half])
    queries = np.concatenate([turned.real, turned.imag], axis=1).astype(entity.dtype)
    return kgtrec.Factors(queries, entity, metric="dot" if model == "complex" else "l2")


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
        """What `kgtrec.evaluate` gives for every model."""
        return {
            model: kgtrec.evaluate(
                factors(self.files, model, questions), questions, run_depth=depth, progress=False
            )
            for model in self.models
        }

    def lists(self, filtered: str) -> list[RankedLists]:
        """Lists of all models for the seeds' questions, from runs over the whole test split.

        "all": of filtered runs, as `kgtrec rank` makes them. "raw": with the places of raw runs.
        """
        questions = self.labels.graph.questions("test", filter=filtered)
        places = "raw" if filtered == "raw" else "filtered"
        found = self.results(questions, RUN_DEPTH[filtered])
        return [
            run_lists(result.run, self.labels.seeds, model, places=places)
            for model, result in found.items()
        ]

    @cached_property
    def filtered(self) -> list[RankedLists]:
        """Lists with the places that known candidates leave."""
        return self.lists("all")

    def pool(self, filtered: str) -> Pool:
        """The pool of our models, to depth 10."""
        lists = self.filtered if filtered == "all" else self.lists(filtered)
        return make_pool(lists, self.labels.seeds, 10)

    def questions_of(self, completion: Completion) -> kgtrec.Questions:
        """Questions of a complete split; all that the original splits know is filtered."""
        graph = self.labels.graph
        own = replaced_split(graph, completion.split, "test")
        return own.questions("test", extra_known=graph.split("test"))

    def values(self, completion: Completion) -> dict[str, list[float]]:
        """Metrics of the models on a complete split, and of their lists with its qrels."""
        found = self.results(self.questions_of(completion))
        values = {
            name: [float(result[key]) for result in found.values()]
            for name, key in MEASURES.items()
        }
        judged = [intervals(one, completion) for one in self.filtered]
        return values | {name: [own[name].low for own in judged] for name in JUDGED}

    def curves(self, pool: Pool) -> tuple[dict[str, np.ndarray], DepthCurves, list[Completion]]:
        """Values (depths, models) of every metric, tau to depth 0, and the labels of each depth."""
        labels = self.labels
        done = [complete(labels.seeds, pool, labels.judgements, depth=k) for k in range(11)]
        found = [self.values(one) for one in done]
        values = {name: np.array([own[name] for own in found]) for name in found[0]}
        return values, depth_curves(values, list(range(11)), lower_is_better=["micro_mr"]), done


def report(files: Files, labels: Labels) -> Iterator[str]:
    """Text, section by section."""
    study = Study(files, labels)
    yield from _pools(study)
    own = study.pool("raw")
    for title, pool in (
        ("Labels from our own pool (raw places), judgements looked up", own),
        ("Labels from the published pool", labels.pool),
    ):
        values, curves, done = study.curves(pool)
        yield f"## {title}"
        yield depth_table(done).to_text(120)
        yield "Values, by depth: " + ", ".join(study.models)
        yield _value_table(values, study.models).to_text(120)
        yield "tau-b to depth 0"
        yield curves.table().to_text(200)
    last = labels.at(10)
    yield "## How much of our runs the published labels judge"
    yield share_table(study.filtered, last).to_text(120)
    found = {one.name: intervals(one, last) for one in study.filtered}
    yield interval_table(found).to_text(120)
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
        said = study.labels.judgements.of(pool.triples)
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
    """Micro MRR with labels of all systems, and with those that the others alone would have."""
    labels, key = study.labels, "both.realistic.micro.mrr"
    whole = complete(labels.seeds, pool, labels.judgements)
    every = study.results(study.questions_of(whole))
    place = _ranking({model: float(result[key]) for model, result in every.items()})
    rows = []
    for model in study.models:
        less = complete(labels.seeds, pool.without(model), labels.judgements)
        found = study.results(study.questions_of(less))
        moved = _ranking({name: float(result[key]) for name, result in found.items()})
        lost = whole.counts()["added"] - less.counts()["added"]
        cells = float(every[model][key]), float(found[model][key]), place[model], moved[model]
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
