"""Sparse against full metrics on a closed world, with real models (section 6; Figures 3 to 14).

Every model is trained on the same training facts and evaluated twice on the same questions: against
all true answers (full), and against the recorded ones (sparse), so that the missing ones count as
mistakes. One point of a curve is one checkpoint of one model.

The factorisations train in seconds with numpy and scipy. Each takes training triples and yields
checkpoints, like a model that is trained longer; a step is the number of dimensions. They answer
tail questions: one row per (head, relation), whose candidates are the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.progress import progress_bar
from kgtrec.errors import UsageError
from kgtrec.questions.api import Questions
from kgtrec.ranking.rank import rank
from kgtrec.ranking.ranks import Ranks
from kgtrec.scores.factors import Factors
from kgtrec.study.openworld.compare import Mixture, question_values
from kgtrec.study.openworld.results import Curve, FamilyStudy, Panel
from kgtrec.study.openworld.simulate import (
    RELATIONS,
    FamilyTree,
    OpenWorld,
    Triples,
    family_tree,
    random_removal,
    ranked_removal,
)
from kgtrec.trec.measures.values import native_values

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

RIDGE = 0.1
START = 0.1  # spread of the initial random factors
OVERSAMPLING = 16
POWERS = 6


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A factorisation at one step of its training.

    The vector of a tail question is the vector of its head times the core of its relation.

    - step: Rank.
    - heads, tails, float64 (entities, d): Vectors of entities as head and as tail.
    - cores: Matrix (d, d) of each relation, float64.
    - seen, float64 (relations x entities, d): Added to the vectors of questions, if not None.
    """

    step: int
    heads: Float64
    cores: Sequence[Float64]
    tails: Float64
    seen: Float64 | None = None

    def ranks(self, questions: Questions) -> Ranks:
        """Rank the answers of tail questions."""
        heads, relations = questions.entity.astype(np.int64), questions.relation.astype(np.int64)
        queries = np.zeros((len(heads), self.step))
        if self.seen is not None:
            queries += self.seen[relations * len(self.heads) + heads]
        for relation in np.unique(relations):
            rows = relations == relation
            queries[rows] += self.heads[heads[rows]] @ self.cores[relation]
        scores = Factors(queries.astype(np.float32), self.tails.astype(np.float32))
        return rank(scores, questions, progress=False)[0]


@dataclass(frozen=True)
class Model:
    """A way of training and its settings; tables and legends show `label`."""

    label: str
    train: Callable[..., Iterator[Checkpoint]]
    setting: float
    steps: Sequence[int]

    def checkpoints(self, slices: list[csr_matrix], seed: int) -> Iterator[Checkpoint]:
        """Train on the relations' adjacency matrices, stopping at each step."""
        return self.train(slices, self.setting, self.steps, random_generator(seed))


def svd(
    slices: list[csr_matrix], power: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """Compute truncated SVDs of the (relation, head) x tail matrix; a step is a number of vectors.

    The scores of a question come from its own row and from the rows of its relation, weighted by
    the similarity of their heads to its head, both in terms of the singular vectors. Cells are
    damped by the counts of row and column to the given power.
    """
    from scipy.sparse import diags, vstack

    count = slices[0].shape[0]
    stacked = vstack(slices).tocsr()
    rows, columns = (
        np.maximum(np.asarray(stacked.sum(axis=axis)).ravel(), 1.0) ** -power for axis in (1, 0)
    )
    damped = (diags(rows) @ stacked @ diags(columns)).tocsr()
    most = min(max(steps), *damped.shape)
    vectors = _right_vectors(damped, most, rng)
    seen = damped @ vectors
    cores = [vectors.T @ seen[r * count : (r + 1) * count] for r in range(len(slices))]

    for step in steps:
        if step <= most:
            few = vectors[:, :step]
            yield Checkpoint(step, few, [c[:step, :step] for c in cores], few, seen[:, :step])


def _right_vectors(matrix: csr_matrix, count: int, rng: np.random.Generator) -> Float64:
    """Compute leading right singular vectors, (columns, count), by subspace iteration.

    See Halko et al. (2011).

    Lanczos iteration takes minutes here: similar families have nearly equal singular values.
    """
    width = min(count + OVERSAMPLING, *matrix.shape)
    basis = np.linalg.qr(rng.standard_normal((matrix.shape[1], width)))[0]
    gram = matrix.T @ matrix
    for _ in range(POWERS):
        basis = np.linalg.qr(gram @ basis)[0]
    _, turned = np.linalg.eigh(basis.T @ (gram @ basis))
    return np.asarray((basis @ turned[:, ::-1])[:, :count])


def rescal(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """Fit RESCAL, X_r = A R_r A', by rounds of alternating least squares; a step is the rank."""
    for size in steps:
        if size > slices[0].shape[0]:
            return
        entity = rng.standard_normal((slices[0].shape[0], size)) * START
        core = _fit_cores(slices, entity)
        for _ in range(int(rounds)):
            gram = entity.T @ entity
            both = sum(r @ gram @ r.T + r.T @ gram @ r for r in core) + RIDGE * np.eye(size)
            right = sum(
                cells @ (entity @ r.T) + cells.T @ (entity @ r)
                for cells, r in zip(slices, core, strict=True)
            )
            entity = _solve(both, np.asarray(right))
            core = _fit_cores(slices, entity)
        yield Checkpoint(size, entity, core, entity)


def _fit_cores(slices: list[csr_matrix], entity: Float64) -> list[Float64]:
    """Fit the R of each relation to X = A R A', with a ridge, by the singular vectors of A."""
    left, size, right = np.linalg.svd(entity, full_matrices=False)
    weight = np.outer(size, size)
    weight = weight / (weight**2 + RIDGE)
    return [right.T @ (weight * (left.T @ (cells @ left))) @ right for cells in slices]


def cp(
    slices: list[csr_matrix], rounds: float, steps: Sequence[int], rng: np.random.Generator
) -> Iterator[Checkpoint]:
    """Fit CP, a sum of head x relation x tail, by rounds of least squares; a step is the rank."""
    count = slices[0].shape[0]
    for size in steps:
        head, tail = (rng.standard_normal((count, size)) * START for _ in range(2))
        weight = rng.standard_normal((len(slices), size)) * START
        ridge = RIDGE * np.eye(size)
        for _ in range(int(rounds)):
            forward = [cells @ tail for cells in slices]
            total = sum(part * w for part, w in zip(forward, weight, strict=True))
            head = _solve((tail.T @ tail) * (weight.T @ weight) + ridge, np.asarray(total))
            backward = [cells.T @ head for cells in slices]
            total = sum(part * w for part, w in zip(backward, weight, strict=True))
            tail = _solve((head.T @ head) * (weight.T @ weight) + ridge, np.asarray(total))
            sums = np.array([(part * tail).sum(axis=0) for part in backward])
            weight = _solve((head.T @ head) * (tail.T @ tail) + ridge, sums)
        yield Checkpoint(size, head, [np.diag(row) for row in weight], tail)


def _solve(gram: Float64, right: Float64) -> Float64:
    """Solve ``x @ gram = right`` for the rows x; `gram` is symmetric."""
    return np.asarray(np.linalg.solve(gram, right.T).T)


def _build_slices(triples: NDArray[Any], n_entities: int, n_relations: int) -> list[csr_matrix]:
    """Return the adjacency matrix of each relation, float64."""
    from scipy.sparse import csr_matrix

    shape = (n_entities, n_entities)
    parts = (triples[triples[:, 1] == relation] for relation in range(n_relations))
    return [
        csr_matrix((np.ones(len(facts)), (facts[:, 0], facts[:, 2])), shape=shape)
        for facts in parts
    ]


RANKS = (2, 4, 8, 16, 32, 64, 128, 192)

MODELS = (
    Model("SVD, plain", svd, 0.0, RANKS),
    Model("SVD, damped 1/8", svd, 0.125, RANKS),
    Model("SVD, damped 1/4", svd, 0.25, RANKS),
    Model("RESCAL, 1 round", rescal, 1, RANKS),
    Model("RESCAL, 2 rounds", rescal, 2, RANKS),
    Model("RESCAL, 4 rounds", rescal, 4, RANKS),
    Model("CP, 1 round", cp, 1, RANKS),
    Model("CP, 2 rounds", cp, 2, RANKS),
    Model("CP, 4 rounds", cp, 4, RANKS),
)
"""The models of the study: three ways of training with three settings each, growing in rank."""


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
        Seed of the graph, missing facts, questions and models. With the same number of BLAS
        threads, every run gives the same curves.
    families : int, default 3
        Families of 300 people.
    densities : sequence of float in (0, 1], default (0.75,)
        Share of all facts that are recorded.
    removals : sequence of {"independent", "correlated"}
        Remove facts at random, or those that a reference model ranks worst.
    n_questions : int, default 500
        Tail questions, drawn from those with 10 full-test answers and a sparse one.
    train_share : float, default 0.7
    models : sequence of Model
        Ways of training, each with the ranks of its checkpoints.
    progress : bool, optional
        A bar on standard error: None shows one on a terminal.
    """
    unknown = [name for name in removals if name not in REMOVALS]
    if unknown or not removals or not densities or not models:
        raise UsageError(
            f"{argument('removals', tuple(removals))} with {len(densities)} densities and "
            f"{len(models)} models; "
            f"give one or more of each, and choose removals from {', '.join(REMOVALS)}"
        )
    tree = family_tree(families, seed=seed)
    total = len(densities) * sum(len(model.steps) for model in models)
    with progress_bar(total, "checkpoints", progress) as bar:
        panels: list[Panel] = []
        for density in densities:
            hidden = random_removal(tree.facts, density, train_share, seed)
            world = _sample_questions(tree, hidden, n_questions, seed)
            panels += _run_panels(tree, density, world, removals, models, seed, bar)
    return FamilyStudy(tree, METRICS, tuple(panels))


class _Case(NamedTuple):
    """A way of hiding facts.

    - sparse: Questions with the recorded answers only.
    - missing: True for the facts of the full test set that are missing.
    - curves: A curve per model, filled during the study.
    """

    removal: str
    sparse: Questions
    missing: Bools
    curves: list[Curve]


def _run_panels(
    tree: FamilyTree,
    density: float,
    world: OpenWorld,
    removals: Sequence[str],
    models: Sequence[Model],
    seed: int,
    bar: Any,
) -> Iterator[Panel]:
    """Yield a panel per removal at one density; train every model once."""
    full = tree.graph(world.train, _sort_by_question(world.full_test)).questions(sides="tail")
    slices = _build_slices(world.train, full.n_entities, len(RELATIONS))
    cases = [_hide_facts(tree, world, full, slices, removal, seed) for removal in removals]
    for model in models:
        points = []
        for checkpoint in model.checkpoints(slices, seed):
            complete = checkpoint.ranks(full)
            points.append([_measure(checkpoint, complete, case) for case in cases])
            bar.update(1)
        for case, points_of_case in zip(cases, zip(*points, strict=True), strict=True):
            if case.removal == "independent" or model.label != REFERENCE:
                case.curves.append(_build_curve(model.label, points_of_case))
    for case in cases:
        yield _build_panel(density, full, case)


def _sample_questions(tree: FamilyTree, world: OpenWorld, n_questions: int, seed: int) -> OpenWorld:
    """Keep the test facts of `n_questions` random questions with enough answers."""
    people = len(tree.family)
    full, sparse = (_question_of(rows, people) for rows in (world.full_test, world.test))
    question, count = np.unique(full, return_counts=True)
    fit = question[(count >= LEAST_ANSWERS) & np.isin(question, sparse)]
    if not len(fit):
        raise UsageError(
            f"no question has {LEAST_ANSWERS} answers in the full test set and one in the sparse; "
            "give more families, or a lower density or train_share"
        )
    rng = random_generator(seed, 1)
    questions = rng.choice(fit, min(n_questions, len(fit)), replace=False)
    keep = [
        rows[np.isin(_question_of(rows, people), questions)] for rows in (world.test, world.missing)
    ]
    return OpenWorld(world.train, *keep)


def _question_of(rows: Triples, people: int) -> Int64:
    """Return one number per fact for its tail question."""
    return rows[:, 1].astype(np.int64) * people + rows[:, 0]


def _sort_by_question(rows: Triples) -> Triples:
    """Sort facts by question, so that the order does not depend on which answers are missing."""
    return rows[np.lexsort((rows[:, 2], rows[:, 0], rows[:, 1]))]


def _hide_facts(
    tree: FamilyTree,
    world: OpenWorld,
    full: Questions,
    slices: list[csr_matrix],
    removal: str,
    seed: int,
) -> _Case:
    """Return the case of a removal: facts of `world` are hidden at random.

    In the correlated case, as many facts are hidden, those that the reference model ranks worst.
    """
    rows = full.graph.split("test")
    if removal == "correlated":
        model = next(model for model in MODELS if model.label == REFERENCE)
        reference = replace(model, steps=(REFERENCE_RANK,))
        ranks = next(reference.checkpoints(slices, seed)).ranks(full)
        rank_of_fact = np.empty(len(rows))
        rank_of_fact[ranks.triple] = ranks.rank()
        whole = OpenWorld(world.train, rows, rows[:0])
        world = ranked_removal(whole, rank_of_fact, world.sparsity, seed)
    sparse = tree.graph(world.train, _sort_by_question(world.test)).questions(sides="tail")
    people = full.n_entities
    all_facts, hidden = (
        _question_of(part, people) * people + part[:, 2] for part in (rows, world.missing)
    )
    return _Case(removal, sparse, np.isin(all_facts, hidden), [])


def _measure(checkpoint: Checkpoint, complete: Ranks, case: _Case) -> list[float]:
    """Return the step, the correlation, the full values of all metrics, and the sparse ones."""
    sparse = checkpoint.ranks(case.sparse)
    rho = correlate(case.missing[complete.triple], complete)
    return [checkpoint.step, rho, *metric_values(complete), *metric_values(sparse)]


def correlate(missing: Bools, complete: Ranks) -> float:
    """Return the correlation of missing and predicted answers; NaN if one of them never varies.

    `missing` is True for the instances of the full ranks that the sparse test set lacks.
    """
    predicted = complete.rank() <= PREDICTED
    flat = predicted.all() or not predicted.any() or missing.all() or not missing.any()
    return float("nan") if flat else float(np.corrcoef(missing, predicted)[0, 1])


def metric_values(ranks: Ranks, metrics: Sequence[str] = METRICS) -> list[float]:
    """Return the value of each metric, averaged over the answers of each question first."""
    names = [TREC[metric] for metric in metrics if metric in TREC]
    trec = native_values(ranks, names) if names else {}
    return [
        float((trec[TREC[m]] if m in TREC else question_values(ranks, m)[0]).mean())
        for m in metrics
    ]


def _build_curve(label: str, points: Sequence[list[float]]) -> Curve:
    """Build a model's curve from the results of `_measure` at its checkpoints."""
    step, rho, *sides = np.array(points).T
    values = np.array(sides).reshape(2, len(METRICS), -1).swapaxes(0, 1)
    return Curve(label, step.astype(np.int64), dict(zip(METRICS, values, strict=True)), rho)


def _build_panel(density: float, full: Questions, case: _Case) -> Panel:
    """Build the panel of one way of hiding facts, with the expectations of the paper's model."""
    sparsity = float(case.missing.mean())
    count, times = np.unique(full.answers.lengths, return_counts=True)
    weight = times / times.sum()
    known = int(full.removed.lengths.mean())  # training answers are not candidates
    worlds = [Mixture(beta, count, weight, full.n_entities - known) for beta in (0.0, sparsity)]
    theory = {metric: np.array([world.curve(metric)[1] for world in worlds]) for metric in FORMULAS}
    full_answers, sparse_answers = (
        float(test.answers.lengths.mean()) for test in (full, case.sparse)
    )
    curves = tuple(case.curves)
    return Panel(
        density, case.removal, sparsity, len(full), full_answers, sparse_answers, curves, theory
    )
