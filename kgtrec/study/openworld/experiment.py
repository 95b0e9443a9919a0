"""Sparse against full metrics on a closed world, with real models (section 6; Figures 3 to 14).

Every model is trained on the same training facts and evaluated twice on the same questions: against
all true answers (full), and against the recorded ones (sparse), so that the missing ones count as
mistakes. One point of a curve is one checkpoint of one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.runtime import progress_bar
from kgtrec.errors import UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.rank import rank
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.openworld.compare import question_values
from kgtrec.study.openworld.family_tree import (
    RELATIONS,
    FamilyTree,
    OpenWorld,
    family_tree,
    random_removal,
    ranked_removal,
)
from kgtrec.study.openworld.projection import MODELS, Checkpoint, Mixture, Model
from kgtrec.study.openworld.results import Curve, FamilyStudy, Panel
from kgtrec.trec.measures.values import native_values

Floats = NDArray[np.float64]
Triples = NDArray[np.int32]

DENSITIES = (0.95, 0.85, 0.75, 0.65)
"""Shares of all facts that are recorded (appendix A.3)."""
REMOVALS = ("independent", "correlated")
FORMULAS = ("mrr", "hits@10", "log_mrr", "p_mrr@0.5")
TREC = {"ndcg@20": "ndcg_cut_20", "map@20": "map_cut_20"}
METRICS = (*FORMULAS, *TREC)

LEAST_ANSWERS = 10
"""Full-test answers that a question must have, beside one sparse one (appendix A.3)."""
PREDICTED = 10
"""A fact counts as predicted, for the correlation, if its full rank is at most this."""
REFERENCE = "RESCAL, 4 rounds"
REFERENCE_RANK = 64
"""The model that decides which facts are missing in the correlated case; it has no curve there."""


def family_study(
    seed: int = 0,
    families: int = 3,
    densities: Sequence[float] = (0.75,),
    removals: Sequence[str] = REMOVALS,
    n_questions: int = 500,
    train_share: float = 0.7,
    models: Sequence[Model] = MODELS,
    progress: bool | None = None,
) -> FamilyStudy:
    """Generate a family-tree graph, hide facts, train models, and evaluate them sparse and full.

    The paper's experiment is ``family_study(families=20, densities=DENSITIES)``; the default takes
    seconds.

    Parameters
    ----------
    seed : int, default 0
        Of the graph, the missing facts, the questions and the models. With the same number of BLAS
        threads, every run gives the same curves.
    families : int, default 3
        Families of 300 people.
    densities : sequence of float in (0, 1], default (0.75,)
        Share of all facts that are recorded.
    removals : sequence of {"independent", "correlated"}
        Whether chance removes facts, or those go missing that a reference model ranks worst.
    n_questions : int, default 500
        Number of tail questions, drawn from those with 10 full-test answers and a sparse one; all
        of them if there are fewer.
    train_share : float, default 0.7
    models : sequence of Model
    progress : bool, optional
        A bar on standard error: None shows one on a terminal.

    Returns
    -------
    FamilyStudy
        One panel for each density and removal.

    Raises
    ------
    UsageError
        A value out of range, or a graph so small that no question is left.
    """
    unknown = [name for name in removals if name not in REMOVALS]
    if unknown or not removals or not densities or not models:
        raise UsageError(
            f"removals={tuple(removals)} with {len(densities)} densities and {len(models)} models; "
            f"give one or more of each, removals out of {', '.join(REMOVALS)}"
        )
    tree = family_tree(families, seed=seed)
    total = len(densities) * sum(len(model.steps) for model in models)
    with progress_bar(total, "checkpoints", progress) as bar:
        panels = [
            panel
            for density in densities
            for panel in _panels(
                tree, density, removals, n_questions, train_share, models, seed, bar
            )
        ]
    return FamilyStudy(tree, tuple(METRICS), tuple(panels))


class _Case(NamedTuple):
    """One way of hiding facts: its sparse questions, and which full-test rows are missing."""

    removal: str
    sparse: Questions
    missing: NDArray[np.bool_]


def _panels(
    tree: FamilyTree,
    density: float,
    removals: Sequence[str],
    n_questions: int,
    train_share: float,
    models: Sequence[Model],
    seed: int,
    bar: Any,
) -> Iterator[Panel]:
    """The panels of one density; every model is trained once."""
    world = _chosen(tree, random_removal(tree.facts, density, train_share, seed), n_questions, seed)
    full = tree.graph(world.train, _ordered(world.full_test)).questions(sides="tail")
    cases = [_case(tree, world, full, removal, seed) for removal in removals]
    curves: dict[str, list[Curve]] = {removal: [] for removal in removals}
    for model in models:
        points: dict[str, list[_Point]] = {removal: [] for removal in removals}
        for checkpoint in model.checkpoints(world.train, full.n_entities, len(RELATIONS), seed):
            complete = _ranks(checkpoint, full)
            for case in cases:
                points[case.removal].append(_point(checkpoint, complete, case))
            bar.update(1)
        for case in cases:
            if case.removal == "independent" or model.label != REFERENCE:
                curves[case.removal].append(_curve(model.label, points[case.removal]))
    for case in cases:
        yield _panel(density, full, case, curves[case.removal])


def _chosen(tree: FamilyTree, world: OpenWorld, n_questions: int, seed: int) -> OpenWorld:
    """The world with the test facts of a few questions."""
    people = len(tree.family)
    full, sparse = (_question_of(rows, people) for rows in (world.full_test, world.test))
    question, count = np.unique(full, return_counts=True)
    fit = question[(count >= LEAST_ANSWERS) & np.isin(question, sparse)]
    if not len(fit):
        raise UsageError(
            f"no question has {LEAST_ANSWERS} full-test answers and a sparse one; "
            "give more families, or a lower density or train_share"
        )
    rng = np.random.default_rng([seed, 1])
    taken = rng.choice(fit, min(n_questions, len(fit)), replace=False)
    keep = [
        rows[np.isin(_question_of(rows, people), taken)] for rows in (world.test, world.missing)
    ]
    return OpenWorld(world.train, *keep)


def _question_of(rows: Triples, people: int) -> NDArray[np.int64]:
    return rows[:, 1].astype(np.int64) * people + rows[:, 0]


def _ordered(rows: Triples) -> Triples:
    """By question, so that questions are in the same order whichever answers are left."""
    return rows[np.lexsort((rows[:, 2], rows[:, 0], rows[:, 1]))]


def _case(tree: FamilyTree, world: OpenWorld, full: Questions, removal: str, seed: int) -> _Case:
    rows = full.graph.split("test")
    if removal == "correlated":
        model = next(model for model in MODELS if model.label == REFERENCE)
        one = Model(model.label, model.train, model.setting, (REFERENCE_RANK,))
        reference = next(one.checkpoints(world.train, full.n_entities, len(RELATIONS), seed))
        ranks = _ranks(reference, full)
        place = np.empty(len(rows))
        place[ranks.triple] = ranks.rank()
        whole = OpenWorld(world.train, rows, rows[:0])
        world = ranked_removal(whole, place, world.sparsity, seed)
    sparse = tree.graph(world.train, _ordered(world.test)).questions(sides="tail")
    people = full.n_entities
    every, gone = (
        _question_of(part, people) * people + part[:, 2] for part in (rows, world.missing)
    )
    return _Case(removal, sparse, np.isin(every, gone))


def _ranks(checkpoint: Checkpoint, questions: Questions) -> Ranks:
    return rank(checkpoint.factors(questions), questions, progress=False)[0]


class _Point(NamedTuple):
    step: int
    full: list[float]
    sparse: list[float]
    rho: float


def _point(checkpoint: Checkpoint, complete: Ranks, case: _Case) -> _Point:
    left = _ranks(checkpoint, case.sparse)
    predicted = complete.rank() <= PREDICTED
    missing = case.missing[complete.triple]
    flat = predicted.all() or not predicted.any() or missing.all() or not missing.any()
    rho = float("nan") if flat else float(np.corrcoef(missing, predicted)[0, 1])
    return _Point(checkpoint.step, _metrics(complete), _metrics(left), rho)


def _metrics(ranks: Ranks) -> list[float]:
    """Values of `METRICS`, averaged inside each question first."""
    values = [float(question_values(ranks, metric)[0].mean()) for metric in FORMULAS]
    trec = native_values(ranks, list(TREC.values()))
    return values + [float(trec[name].mean()) for name in TREC.values()]


def _curve(label: str, points: Sequence[_Point]) -> Curve:
    full, sparse = (np.array([getattr(p, side) for p in points]).T for side in ("full", "sparse"))
    return Curve(
        label,
        np.array([point.step for point in points]),
        dict(zip(METRICS, full, strict=True)),
        dict(zip(METRICS, sparse, strict=True)),
        np.array([point.rho for point in points]),
    )


def _panel(density: float, full: Questions, case: _Case, curves: list[Curve]) -> Panel:
    sparsity = float(case.missing.mean())
    count, times = np.unique(full.answers.lengths, return_counts=True)
    weight = times / times.sum()
    known = int(full.removed.lengths.mean())  # training answers are no candidates
    worlds = [Mixture(beta, count, weight, full.n_entities - known) for beta in (0.0, sparsity)]
    theory = {
        metric: (worlds[0].curve(metric)[1], worlds[1].curve(metric)[1]) for metric in FORMULAS
    }
    return Panel(
        density,
        case.removal,
        sparsity,
        len(full),
        float(full.answers.lengths.mean()),
        float(case.sparse.answers.lengths.mean()),
        tuple(curves),
        theory,
    )
