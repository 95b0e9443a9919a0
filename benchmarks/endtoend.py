"""E1, E2 and E4: evaluations against PyKEEN's, an argsort per triple, and the kernel alone."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
from data import Benchmark, fb15k_237
from rows import Row, Settings, at_least, at_most, not_run, require
from timing import Contestant, compete

import kgtrec
from kgtrec._internal.threads import available_cores
from kgtrec.ranking.kernel import NativeRanking
from kgtrec.ranking.ranker import prepare_rows
from kgtrec.ranking.settings import Settings as Options
from kgtrec.scores.arrays import ScoreBlock

__all__ = ["BARS"]

Array = npt.NDArray[Any]
Answers = dict[str, float]

# PyKEEN's default on a CPU, and faster than 256 or 1,024 on the machine used.
PYKEEN_BATCH = 32
PYKEEN_NAMES = {
    "mr": "arithmetic_mean_rank",
    "mrr": "inverse_harmonic_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@10": "hits_at_10",
    "amri": "adjusted_arithmetic_mean_rank_index",
}


# ---- E1 ----


def _ours(bench: Benchmark, graph: kgtrec.Graph, threads: int, dtype: str = "float32") -> Answers:
    """From weights and triples to every metric, including questions and filters."""
    questions = graph.questions("test")
    bench = bench.astype(dtype)
    factors = kgtrec.Factors(bench.queries(questions), bench.entity)
    result = kgtrec.evaluate(factors, questions, threads=threads, progress=False)
    every = result.to_dict()
    return {name: every[f"both.realistic.micro.{name}"] for name in PYKEEN_NAMES}


class _PyKEEN:
    """DistMult with the same weights, PyKEEN's inverse relations, and filters by all splits."""

    def __init__(
        self, bench: Benchmark, graph: kgtrec.Graph, threads: int, dtype: str = "float32"
    ) -> None:
        import torch
        from pykeen.models import DistMult
        from pykeen.triples import CoreTriplesFactory

        logging.getLogger("pykeen").setLevel(logging.ERROR)
        torch.set_num_threads(threads)
        self.splits = {
            name: torch.as_tensor(np.asarray(rows, dtype=np.int64))
            for name, rows in graph.splits.items()
        }
        factory = CoreTriplesFactory(
            self.splits["train"],
            num_entities=graph.n_entities,
            num_relations=graph.n_relations,
            create_inverse_triples=True,
        )
        dim = bench.entity.shape[1]
        self.model = DistMult(triples_factory=factory, embedding_dim=dim, random_seed=0)
        self.model.to(getattr(torch, dtype))
        relation = np.empty_like(bench.relation)  # PyKEEN puts an inverse after its relation
        relation[0::2], relation[1::2] = np.split(bench.relation, 2)
        for representations, weights in (
            (self.model.entity_representations, bench.entity),
            (self.model.relation_representations, relation),
        ):
            representations[0]._embeddings.weight.data.copy_(torch.as_tensor(weights))

    def evaluate(self) -> tuple[Answers, Array]:
        """PyKEEN's metrics, and their realistic ranks, all heads first, in float64."""
        from pykeen.evaluation import RankBasedEvaluator

        ranks: list[Array] = []

        class Keeping(RankBasedEvaluator):  # type: ignore[misc]
            def finalize(self) -> Any:
                for side in ("head", "tail"):
                    ranks.extend(self.ranks[side, "realistic"])
                return super().finalize()

        result = Keeping(filtered=True).evaluate(
            self.model,
            self.splits["test"],
            batch_size=PYKEEN_BATCH,
            additional_filter_triples=[self.splits["train"], self.splits["valid"]],
            use_tqdm=False,
        )
        values = result.to_flat_dict()
        answers = {ours: values[f"both.realistic.{name}"] for ours, name in PYKEEN_NAMES.items()}
        return answers, np.concatenate(ranks).astype(np.float64)


def _check_pykeen(ours: Answers, theirs: Answers, ranks: Array, relative: bool) -> None:
    """Check MR from PyKEEN's ranks, because it averages them in float32, to 7 digits only."""
    for name, value in {**theirs, "mr": float(ranks.mean())}.items():
        tolerance = 1e-6 * (max(1.0, abs(value)) if relative else 1.0)
        say = f"{name}: ours {ours[name]!r}, PyKEEN's {value!r}"
        require(abs(ours[name] - value) <= tolerance, say)


def _check_in_double(bench: Benchmark, n_triples: int) -> None:
    """Check equality to 1e-6 with scores in float64.

    In float32, the two libraries' products differ in the last bit. So a few near ties of 600
    million comparisons differ: ranks move by one, and the mean rank by about 1e-4.
    """
    graph = bench.cut(n_triples)
    theirs = _PyKEEN(bench, graph, 1, "float64").evaluate()
    _check_pykeen(_ours(bench, graph, 1, "float64"), *theirs, relative=False)


def _e1(settings: Settings) -> list[Row]:
    """One full round (PyKEEN takes minutes). It also compares the results of the timed runs."""
    bench = fb15k_237()
    what = f"weights to every metric, {settings.threads} thread"
    graph = bench.cut(100) if settings.quick else bench.graph
    try:
        pykeen = _PyKEEN(bench, graph, settings.threads)
    except ImportError as error:
        return [not_run("E1", what, f"{error.name} is missing: install .[bench]", ">= 50")]
    _check_in_double(bench, 100 if settings.quick else 2_000)
    answers: dict[str, Any] = {}
    contestants = {
        "ours": Contestant(lambda _: answers.update(ours=_ours(bench, graph, settings.threads))),
        "reference": Contestant(lambda _: answers.update(pykeen=pykeen.evaluate())),
    }
    _ours(bench, graph, settings.threads)  # warm-up
    timings = compete(contestants, rounds=1, warm_ups=0)
    _check_pykeen(answers["ours"], *answers["pykeen"], relative=True)
    row = at_least(
        "E1",
        what,
        f"{timings.seconds('ours'):.2f} s",
        f"PyKEEN {timings.seconds('reference'):.1f} s",
        timings.ratio("reference", "ours"),
        50,
        **timings.detail("reference", "ours"),
        answers=answers["ours"],
        pykeen_answers=answers["pykeen"][0],
        pykeen_mr_of_its_ranks=float(answers["pykeen"][1].mean()),
        triples=len(graph.splits["test"]),
    )
    return [row]


# ---- E2 ----


def _instances_and_known(graph: kgtrec.Graph) -> tuple[list[Any], dict[Any, list[int]]]:
    """(question, answer) of every row, heads first; every entity known to answer a question."""
    known: dict[tuple[int, int, int], list[int]] = {}
    for rows in graph.splits.values():
        for h, r, t in rows.tolist():
            known.setdefault((0, t, r), []).append(h)
            known.setdefault((1, h, r), []).append(t)
    triples = graph.splits["test"].tolist()
    return [((0, t, r), h) for h, r, t in triples] + [((1, h, r), t) for h, r, t in triples], known


def _argsort_ranks(instances: list[Any], known: dict[Any, list[int]], scores: Array) -> Array:
    """Filtered ranks as in the evaluation code of papers: per triple, mask and argsort."""
    ranks = np.empty(len(instances), dtype=np.int64)
    for row, (question, answer) in enumerate(instances):
        values = scores[row].copy()
        own = values[answer]
        values[known[question]] = -np.inf
        values[answer] = own
        order = np.argsort(-values)
        ranks[row] = np.flatnonzero(order == answer)[0] + 1
    return ranks


def _e2(settings: Settings) -> list[Row]:
    """DistMult's scores of rows (triple, side) of a part of the test split, given in chunks."""
    bench = fb15k_237()
    graph = bench.cut(100 if settings.quick else 3_000)
    questions = graph.questions("test")
    rows = questions.instance_question[questions.triple_rows]
    scores = kgtrec.Factors(bench.queries(questions)[rows], bench.entity).scores()
    chunks = [scores[i : i + 512] for i in range(0, len(scores), 512)]
    filters = _instances_and_known(graph)  # both contestants get finished filters
    answers: dict[str, Any] = {}

    def ours(_: None) -> None:
        results = kgtrec.rank(iter(chunks), questions, threads=settings.threads, rows="instances")
        answers["ours"] = results[0]

    contestants = {
        "ours": Contestant(ours),
        "reference": Contestant(lambda _: answers.update(argsort=_argsort_ranks(*filters, scores))),
    }
    timings = compete(contestants, rounds=3)
    ranks = answers["ours"]
    tied = ranks.equal > 0
    by_row = np.empty(len(ranks), dtype=np.int64)
    by_row[questions.triple_rows] = answers["argsort"]
    best, worst = ranks.rank("optimistic"), ranks.rank("pessimistic")
    require(np.all((best <= by_row) & (by_row <= worst)), "ranks differ from those of argsort")
    row = at_least(
        "E2",
        f"ranks of {len(scores):,} given rows, {settings.threads} thread",
        f"{1e6 * timings.seconds('ours') / len(scores):.1f} us/row",
        f"argsort {1e6 * timings.seconds('reference') / len(scores):.0f} us/row",
        timings.ratio("reference", "ours"),
        30,
        **timings.detail("reference", "ours"),
        tied_rows=int(tied.sum()),
        data=bench.name,
    )
    return [row]


# ---- E4 ----


def _e4(settings: Settings) -> list[Row]:
    """A validation after every epoch: new scores for the same 200 questions, the 20 best kept."""
    bench = fb15k_237()
    questions = bench.cut(100).questions("test")
    scores = kgtrec.Factors(bench.queries(questions), bench.entity).scores()
    block, calls = ScoreBlock.from_scores(scores), 5 if settings.quick else 100
    rows = []
    for threads in (1, None):
        kept = Options(run_depth=20, threads=threads)
        state = NativeRanking(*prepare_rows(questions, kept), kept, block.dtype)

        def evaluate(_: None, threads: int | None = threads) -> None:
            for _ in range(calls):
                kgtrec.evaluate(scores, questions, threads=threads)

        def evaluate_and_read(_: None, threads: int | None = threads) -> None:
            for _ in range(calls):
                kgtrec.evaluate(scores, questions, threads=threads)["mrr"]

        def kernel(_: None, state: NativeRanking = state) -> None:
            for _ in range(calls):
                state.rank_rows(block)

        contestants = {
            "ours": Contestant(evaluate),
            "ours, mrr read": Contestant(evaluate_and_read),
            "reference": Contestant(kernel),
        }
        timings = compete(contestants, rounds=3 if settings.quick else 15)
        for ours, what in (("ours", ""), ("ours, mrr read", "['mrr']")):
            detail = timings.detail(ours, "reference")
            seconds = {name: time / calls for name, time in detail["seconds_cpu"].items()}
            row = at_most(
                "E4",
                f"evaluate(){what} again, {len(questions)} questions, "
                + ("1 thread" if threads else f"{available_cores()} threads, the default"),
                f"{1e3 * seconds[ours]:.2f} ms",
                f"kernel {1e3 * seconds['reference']:.2f} ms",
                detail["ratio_cpu"],
                1.3,
                **detail,
                calls=calls,
                data=bench.name,
            )
            rows.append(row)
    return rows


BARS = {"E1": _e1, "E2": _e2, "E4": _e4}
