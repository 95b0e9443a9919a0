"""Compare adjusted and other rank metrics with PyKEEN's own functions, for the same ranks.

    python benchmarks/agree_pykeen.py [MODEL ...]

Both sides compute every rank metric that PyKEEN lists from the ranks of the four trained models
(FB15k-237, made by kgtrec). They use the same numbers of candidates, unweighted and with PyKEEN's
weights of questions (its MacroRankBasedEvaluator). For the first model it prints the metric,
PyKEEN's value, ours and their relative difference; then the largest difference over all, and where
PyKEEN is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from data import FOLDER, MODEL, SHARED_DATA

import kgtrec

Array = npt.NDArray[Any]

MODELS = ("distmult", "complex", "transe", "rotate")
CUTOFFS = (1, 3, 5, 10)
AGREE = 1e-9
HITS = ("HitsAtK", "AdjustedHitsAtK", "ZHitsAtK")
NO_WEIGHTS = ("Count", "StandardDeviation", "Variance")

# PyKEEN's variance of the GMR is a difference of nearly equal products; see WRONG.
AGREE_Z_GMR = 1e-5

WRONG = {
    "standard_deviation, variance": "weights are ignored: MacroRankBasedEvaluator gives the "
    "unweighted values. Ours are weighted.",
    "median_absolute_deviation": "times 1.4826 without weights, plain with weights: two scales "
    "under one name. Ours is always times 1.4826.",
    "z_hits_at_k, adjusted_hits_at_k": "the key does not hold k: of the cutoffs 1, 3, 5, 10 only "
    "the last survives in the results. Ours are z_hits@1, z_hits@3, ...",
    "adjusted indices and z-scores": "where E is 1 or Var is 0 (one candidate everywhere, k >= all "
    "candidates) the divisor is raised to 1e-12, and the result is 0, as if random. Ours are NaN.",
    "adjusted keys of other rank types": "computed and stored for optimistic and pessimistic "
    "ranks, but refused when they are asked for by name.",
    "ranks": "kept as float32 by the evaluator: mean ranks are right to 7 digits, and ranks above "
    "2^24 are rounded.",
    "median_rank with weights": "cumulated weights are compared with exactly 0.5: whether two "
    "middle ranks are averaged hangs on rounding. Ours allows 1e-12.",
    "z_geometric_mean_rank": "the variance is E[GMR^2] - E[GMR]^2 of rounded products, and loses "
    "half of its digits. Ours takes no such difference.",
}


class Compared(NamedTuple):
    """One metric of one model, computed by both."""

    key: str
    pykeen: float
    ours: float

    @property
    def difference(self) -> float:
        """Relative, or absolute for values below 1."""
        return abs(self.pykeen - self.ours) / max(1.0, abs(self.pykeen))

    @property
    def agrees(self) -> bool:
        """Whether only rounding differs."""
        return self.difference <= (AGREE_Z_GMR if "z_geometric" in self.key else AGREE)


def queries_of(name: str, questions: kgtrec.Questions) -> tuple[Array, Array, str]:
    """Query vectors, entity vectors and metric of a trained model (see the data's README)."""
    with np.load(MODEL.with_name(f"fb15k-237-{name}.npz"), allow_pickle=False) as weights:
        entity, relation = weights["entity"], weights["relation"]
    inverse = questions.relation + questions.graph.n_relations
    e = entity[questions.entity]
    w = relation[np.where(questions.side == 0, inverse, questions.relation)]
    half = e.shape[1] // 2
    if name == "distmult":
        return e * w, entity, "dot"
    if name == "transe":
        return e + w, entity, "l2"
    points = e[:, :half] + 1j * e[:, half:]
    turn = w[:, :half] + 1j * w[:, half:] if name == "complex" else np.exp(10j * w[:, :half])
    turned = points * turn
    queries = np.concatenate([turned.real, turned.imag], axis=1).astype(np.float32)
    return queries, entity, "dot" if name == "complex" else "l2"


def ranks_of(name: str, questions: kgtrec.Questions) -> kgtrec.Ranks:
    """Filtered ranks of head and tail questions."""
    queries, entity, metric = queries_of(name, questions)
    factors = kgtrec.Factors(np.ascontiguousarray(queries), entity, metric=metric)
    return kgtrec.rank(factors, questions, progress=False)[0]


def compared(ranks: kgtrec.Ranks) -> Iterator[Compared]:
    """Every metric that PyKEEN lists, for both sides, unweighted and weighted by questions."""
    from pykeen.metrics.ranking import rank_based_metric_resolver as known

    result = kgtrec.Result(ranks)
    _, place, size = np.unique(ranks.question, return_inverse=True, return_counts=True)
    weights = {"micro": None, "question": 1.0 / size[place]}
    for cls in sorted(known, key=lambda c: c.__name__):
        for k in CUTOFFS if cls.__name__ in HITS else (None,):
            metric = cls() if k is None else cls(k=k)
            key = metric.key if k is None else f"{metric.key.rpartition('_')[0]}_{k}"
            for averaging, weight in weights.items():
                if weight is not None and cls.__name__ in NO_WEIGHTS:
                    continue
                for kind in ("realistic", "pessimistic"):
                    measure = f"both.{kind}.{averaging}.{key}"
                    theirs = metric(
                        ranks=ranks.rank(kind), num_candidates=ranks.candidates, weights=weight
                    )
                    yield Compared(measure, float(theirs), result[measure])


def scale_of_mad(pair: Compared) -> Compared:
    """PyKEEN's weighted MAD on the scale of its unweighted one."""
    if "question.median_absolute" not in pair.key:
        return pair
    from kgtrec.measures.rank_metrics import TO_DEVIATION

    return pair._replace(key=pair.key + " * 1.4826", pykeen=pair.pykeen * TO_DEVIATION)


def precise_z_gmr(ranks: kgtrec.Ranks) -> float:
    """The unweighted z-score of the GMR, with 64 binary digits and a table of all ranks."""
    counts = ranks.candidates
    log = np.log(np.arange(1, counts.max() + 1, dtype=np.longdouble))
    power = 1 / np.longdouble(len(counts))
    of = [np.log1p(np.cumsum(np.expm1(t * power * log))[counts - 1] / counts) for t in (1, 2)]
    mean = np.exp(of[0].sum())
    deviation = mean * np.sqrt(np.expm1((of[1] - 2 * of[0]).sum()))
    gmr = np.exp(np.log(ranks.rank("realistic").astype(np.longdouble)).mean())
    return float((mean - gmr) / deviation)


def main(names: list[str]) -> int:
    """Compare; return 1 if anything differs by more than rounding."""
    questions = kgtrec.read_graph(FOLDER, progress=False).questions("test")
    agree = True
    for number, name in enumerate(names):
        ranks = ranks_of(name, questions)
        table = [scale_of_mad(row) for row in compared(ranks)]
        if number == 0:
            print(f"{'':66}{'PyKEEN':>16}{'kgtrec':>16}{'difference':>12}")
            for row in table:
                values = f"{row.pykeen:16.9g}{row.ours:16.9g}{row.difference:12.1e}"
                print(f"{row.key:66}{values}")
        others = [row for row in table if "z_geometric" not in row.key]
        most = max(others, key=lambda row: row.difference)
        print(f"{name}: {len(table)} values; largest difference {most.difference:.1e} ({most.key})")
        z = next(row for row in table if row.key == "both.realistic.micro.z_geometric_mean_rank")
        print(f"  z_gmr {z.pykeen:.9g}, ours {z.ours:.9g}, precisely {precise_z_gmr(ranks):.9g}")
        agree = agree and all(row.agrees for row in table)
    print("\nWhere PyKEEN is not right, or says less:")
    for what, why in WRONG.items():
        print(f"  {what}: {why}")
    return int(not agree)


if __name__ == "__main__":
    if not SHARED_DATA.is_dir():
        sys.exit(f"{SHARED_DATA}: the trained models are needed")
    sys.exit(main(sys.argv[1:] or list(MODELS)))
