"""Check estimates of full ranking from drawn candidates, on four trained models of FB15k-237.

    python benchmarks/sampled.py [--size 300] [--full 300] [--draws 25] [--checks 25] [--by NAME]

For each model and measure it prints the value of full ranking, the mean of the sampled values, and
the mean and standard deviation of the estimates. It also prints the mean half width and the
coverage of the 95 % intervals. These use the questions of 800 test triples (the others are known)
and many draws. Then it prints one estimate each on the whole test split, and the cost of MRR within
0.002.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from agree_pykeen import queries_of
from data import FOLDER

import kgtrec
from kgtrec import study
from kgtrec.study.sampling.counts import DECREASING

MODELS = ("distmult", "complex", "transe", "rotate")
TRIPLES = 800


def part(graph: kgtrec.Graph) -> kgtrec.Questions:
    """Questions of some test triples; the other triples are known."""
    test = np.random.default_rng(5).permutation(graph.split("test"))
    splits = {"train": graph.split("train"), "test": test[:TRIPLES]}
    valid = np.concatenate([graph.split("valid"), test[TRIPLES:]])
    labels = {"entities": list(graph.entities), "relations": list(graph.relations)}
    return kgtrec.Graph.from_arrays(**splits, valid=valid, **labels).questions()


def score_matrix(name: str, questions: kgtrec.Questions) -> npt.NDArray[np.float32]:
    query, entity, metric = queries_of(name, questions)
    scores = query @ entity.T
    if metric == "l2":
        scores = 2 * scores - (entity**2).sum(axis=1)
    return scores.astype(np.float32, copy=False)


def true_values(ranks: kgtrec.Ranks) -> dict[str, float]:
    own = ranks.rank()
    return {"MR": float(own.mean())} | {n: float(f(own).mean()) for n, f in DECREASING.items()}


def coverage(questions: kgtrec.Questions, options: argparse.Namespace) -> None:
    scores = {name: score_matrix(name, questions) for name in MODELS}
    full = {name: kgtrec.rank(one, questions, progress=False)[0] for name, one in scores.items()}
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for seed in range(options.draws):
        draw = study.draw_candidates(questions, options.size, options.by, seed=seed)
        for name, one in scores.items():
            counts = study.count_sampled(draw, one, progress=False)
            for number in range(options.checks):
                check = study.draw_check(counts, options.full, 1000 * seed + number)
                ranks = study.rank_some(one, questions, check.questions, progress=False)
                table = study.full_estimates(counts, check, ranks).table()
                for measure, *values in table.rows:
                    rows.setdefault((name, str(measure)), []).append(values)
    repeats = f"{options.draws} x {options.checks} draws"
    print(f"{len(questions):,} questions, {options.size} candidates by {options.by}, {repeats}")
    print(f"{options.full} questions in full")
    print("model     measure       full   sampled  estimate        sd     width  coverage")
    for (name, measure), values in rows.items():
        true = true_values(full[name])[measure]
        sampled, estimate, low, high = np.array(values).T
        held = float(((low <= true) & (true <= high)).mean())
        print(
            f"{name:<9} {measure:<8} {true:9.4f} {sampled.mean():9.4f} {estimate.mean():9.4f} "
            f"{estimate.std():9.4f} {(high - low).mean() / 2:9.4f} {held:9.3f}"
        )


def whole(graph: kgtrec.Graph, options: argparse.Namespace) -> None:
    questions = graph.questions()
    draws: dict[int, Any] = {
        size: study.draw_candidates(questions, size, options.by) for size in (100, 300, 1000)
    }
    print("\nmodel      size      full   sampled  estimate      low     high  needed  share")
    for name in MODELS:
        query, entity, metric = queries_of(name, questions)
        factors = kgtrec.Factors(query, entity, metric=metric)
        true = true_values(kgtrec.rank(factors, questions, progress=False)[0])["MRR"]
        for size, draw in draws.items():
            counts = study.count_sampled(draw, factors, progress=False)
            check = study.draw_check(counts, 1000)
            ranks = study.rank_some(factors, questions, check.questions, progress=False)
            estimates = study.full_estimates(counts, check, ranks)
            values = [float(value) for value in estimates.table().rows[1][1:]]
            needed = estimates.questions_needed("MRR", 0.002) or 0
            print(
                f"{name:<9} {size:>5} {true:9.4f} {values[0]:9.4f} {values[1]:9.4f} "
                f"{values[2]:8.4f} {values[3]:8.4f} {needed:7,} {estimates.cost(needed):6.1%}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--by", default="frequency")
    for name, default in (("size", 300), ("full", 300), ("draws", 25), ("checks", 25)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    graph = kgtrec.read_graph(FOLDER)
    if options.draws:
        coverage(part(graph), options)
    whole(graph, options)


if __name__ == "__main__":
    main()
