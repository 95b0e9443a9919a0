"""Estimates of full ranking for four trained models; `benchmarks/sampled.py` has more."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import numpy as np
import pytest

import kgtrec
from kgtrec import study

MODELS = ("distmult", "complex", "transe", "rotate")
TRIPLES, SIZE, FULL, DRAWS, CHECKS = 250, 300, 120, 3, 5


def score_matrix(folder: Path, name: str, questions: kgtrec.Questions) -> np.ndarray:
    """Scores, higher is better, without terms that are equal for all candidates."""
    with np.load(folder / "models" / f"fb15k-237-{name}.npz") as file:
        entity, relation = file["entity"], file["relation"]
    inverse = questions.relation + questions.graph.n_relations
    e, w = entity[questions.entity], relation[np.where(questions.side, questions.relation, inverse)]
    if name in ("distmult", "transe"):
        query = e * w if name == "distmult" else e + w
    else:
        half = e.shape[1] // 2
        turn = w[:, :half] + 1j * w[:, half:] if name == "complex" else np.exp(10j * w[:, :half])
        turned = (e[:, :half] + 1j * e[:, half:]) * turn
        query = np.hstack([turned.real, turned.imag])
    scores = query.astype(np.float32) @ entity.T
    return 2 * scores - (entity**2).sum(axis=1) if name in ("transe", "rotate") else scores


@pytest.mark.slow
@pytest.mark.data
def test_intervals_hold_the_values_of_full_ranking(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    test = np.random.default_rng(9).permutation(graph.split("test"))
    part = kgtrec.Graph.from_arrays(
        train=graph.split("train"), test=test[:TRIPLES], entities=list(graph.entities),
        valid=np.concatenate([graph.split("valid"), test[TRIPLES:]]),
        relations=list(graph.relations),
    )  # fmt: skip
    questions = part.questions()
    draws = [study.draw_candidates(questions, SIZE, seed=seed) for seed in range(DRAWS)]
    held: dict[str, list[bool]] = {}
    for name in MODELS:
        scores = score_matrix(shared_data, name, questions)
        own = kgtrec.rank(scores, questions, progress=False)[0].rank()
        true = {f"Hits@{k}": float((own <= k).mean()) for k in (1, 3, 10)}
        true |= {"MR": float(own.mean()), "MRR": float((1 / own).mean())}
        assert true["MRR"] > 0.2  # a trained model, with the right columns
        errors = []
        for seed, draw in enumerate(draws):
            counts = study.count_sampled(draw, scores, progress=False)
            for number in range(CHECKS):
                check = study.draw_check(counts, FULL, 10 * seed + number)
                full = study.rank_some(scores, questions, check.questions, progress=False)
                rows = study.full_estimates(counts, check, full).table().to_dict()
                for measure, row in rows.items():
                    inside = bool(row["low"] <= true[measure] <= row["high"])
                    held.setdefault(measure, []).append(inside)
                errors.append(rows["MRR"]["estimate"] - true["MRR"])
                assert rows["MRR"]["sampled"] > true["MRR"] + 0.03  # so no estimate
        assert abs(mean(errors)) < 0.012
    for measure, inside in held.items():
        assert mean(inside) >= 0.93, measure
