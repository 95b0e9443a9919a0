"""LibKGE, which no package index has: a stand-in with the used parts of its interface."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kgtrec.errors import UsageError

torch = pytest.importorskip("torch")

N, R = 30, 3


class Dataset:
    """As `kge.Dataset`: splits are int32 tensors of rows subject, predicate, object."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        rows = np.unique(rng.integers(0, (N, R, N), (250, 3)), axis=0)
        rng.shuffle(rows)
        parts = {"train": rows[:150], "valid": rows[150:190], "test": rows[190:]}
        self.parts = {k: torch.from_numpy(v.astype(np.int32)) for k, v in parts.items()}

    def split(self, name: str) -> Any:
        return self.parts[name]

    def num_entities(self) -> int:
        return N

    def num_relations(self) -> int:
        return R


class Model(torch.nn.Module):
    """As `kge.model.KgeModel`, of ComplEx's kind: scores differ by direction."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table = torch.nn.Parameter(torch.randn(N, R, N).round(decimals=1))

    def score_sp(self, s: Any, p: Any, o: Any = None) -> Any:
        assert not self.training
        return self.table[s, p]

    def score_po(self, p: Any, o: Any, s: Any = None) -> Any:
        return self.table[:, p, o].T


class EvaluationJob:
    """As `kge.job.EvaluationJob`: a subclass makes the trace of the epoch, which is None before."""

    def __init__(self, config: Any, dataset: Any, parent_job: Any, model: Any) -> None:
        self.config, self.dataset, self.model = config, dataset, model
        self.batch_size, self.eval_split = config["eval.batch_size"], config["eval.split"]
        self.epoch, self.pre_epoch_hooks, self.prepared = 7, [], 0
        self.current_trace: dict[str, Any] = {"batch": None, "epoch": None}

    def _prepare(self) -> None:
        self.prepared += 1

    def run(self) -> dict[str, Any]:
        self._prepare()
        self._evaluate()
        trace, self.current_trace["epoch"] = self.current_trace["epoch"], None
        return trace


@pytest.fixture
def libkge(monkeypatch: pytest.MonkeyPatch) -> Any:
    package, job = ModuleType("kge"), ModuleType("kge.job")
    job.EvaluationJob = EvaluationJob  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kge", package)
    monkeypatch.setitem(sys.modules, "kge.job", job)
    monkeypatch.delitem(sys.modules, "kgtrec.integrations.libkge", raising=False)
    from kgtrec.integrations import libkge

    yield libkge
    sys.modules.pop("kgtrec.integrations.libkge", None)


def by_hand(split: str, known: list[str] | None) -> list[float]:
    dataset, table = Dataset(), Model().table.tolist()
    taken = {tuple(row) for name in known or [] for row in dataset.split(name).tolist()}
    ranks = []
    for s, p, o in dataset.split(split).tolist():
        for other in ([(e, p, o) for e in range(N)], [(s, p, e) for e in range(N)]):
            rivals = [t for t in other if t != (s, p, o) and t not in taken]
            values = [table[a][b][c] for a, b, c in rivals]
            own = table[s][p][o]
            ties = sum(value == own for value in values)
            ranks.append(1 + sum(value > own for value in values) + ties / 2)
    return ranks


@pytest.mark.parametrize("known", [None, ["train", "valid"], ["train", "valid", "test"]])
def test_a_function(libkge: Any, known: list[str] | None) -> None:
    split = "valid" if known == ["train", "valid"] else "test"
    result = libkge.evaluate(Model(), Dataset(), split, known=known, batch_size=7)
    ranks = by_hand(split, known)
    assert result["both.realistic.micro.mr"] == pytest.approx(np.mean(ranks), rel=1e-12)


class Config(dict[str, Any]):
    """As `kge.Config`, whose `get` has no default."""

    def get(self, key: str) -> Any:  # type: ignore[override]
        return self[key]


SETTINGS = {"eval.batch_size": 9, "eval.split": "valid",
            "entity_ranking.filter_splits": ["train", "valid"]}  # fmt: skip
KNOWN = {"": None, "_filtered": ["train", "valid"],
         "_filtered_with_test": ["train", "valid", "test"]}  # fmt: skip


def ranks_of_libkge(known: list[str] | None, kind: str, atol: float, rtol: float) -> Any:
    """Count as its job does, pair by pair: the answer is one of its own ties."""
    dataset, table = Dataset(), Model().table.detach()
    taken = {tuple(row) for name in known or [] for row in dataset.split(name).tolist()}
    ranks = []
    for s, p, o in dataset.split("valid").tolist():
        for other in ([(e, p, o) for e in range(N)], [(s, p, e) for e in range(N)]):
            rivals = [t for t in other if t == (s, p, o) or t not in taken]
            scores = torch.stack([table[t] for t in rivals])
            own = table[s, p, o]
            close = torch.isclose(scores, own, rtol=rtol, atol=atol)
            rank, ties = int(((scores > own) & ~close).sum()), int(close.sum())
            ranks.append(1 + rank + {"rounded_mean_rank": ties // 2, "best_rank": 0,
                                     "worst_rank": ties - 1}[kind])  # fmt: skip
    return np.array(ranks)


@pytest.mark.parametrize(
    ("handling", "kind", "atol", "rtol"),
    [
        (None, "rounded_mean_rank", 1e-5, 1e-4),
        ({"type": "rounded_mean_rank", "atol": "1e-5", "rtol": 1e-4}, "rounded_mean_rank", 1e-5,
         1e-4),
        ({"type": "best_rank", "atol": 0.15, "rtol": 0.1}, "best_rank", 0.15, 0.1),
        ({"type": "worst_rank", "atol": 0.15, "rtol": 0.1}, "worst_rank", 0.15, 0.1),
        ("worst_rank", "worst_rank", 0.0, 0.0),
    ],
)  # fmt: skip
def test_a_job_has_the_numbers_of_libkge(
    libkge: Any, handling: Any, kind: str, atol: float, rtol: float
) -> None:
    config = Config(SETTINGS)
    if handling is not None:
        config |= {"entity_ranking.tie_handling": handling, "entity_ranking.hits_at_k_s": [1, 5]}
    model = Model().train()
    job = libkge.KgtrecJob(config, Dataset(), None, model)
    seen: list[Any] = []
    job.pre_epoch_hooks.append(lambda job: seen.append(dict(job.current_trace["epoch"])))
    trace = job.run()
    assert model.training
    assert job.prepared == 1
    assert seen[0].items() <= trace.items()
    assert seen[0] == {"type": "entity_ranking", "scope": "epoch", "split": "valid", "epoch": 7,
                       "filter_splits": ["train", "valid"], "size": 40, "batches": 5}  # fmt: skip
    assert trace["event"] == "eval_completed"
    assert trace["epoch_time"] > 0
    for ending, known in KNOWN.items():
        ranks = ranks_of_libkge(known, kind, atol, rtol)
        assert trace[f"mean_rank{ending}"] == pytest.approx(np.mean(ranks), rel=1e-12)
        mrr = np.mean(1 / ranks)
        assert trace[f"mean_reciprocal_rank{ending}"] == pytest.approx(mrr, rel=1e-12)
        assert {name for name in trace if name.startswith("hits_at_50")} == set()  # of 30 entities
        for k in (1, 3, 10) if handling is None else (1, 5):
            assert trace[f"hits_at_{k}{ending}"] == pytest.approx(np.mean(ranks <= k), rel=1e-12)
    assert trace["mean_rank"] > trace["mean_rank_filtered_with_test"]
    assert job.results["_filtered"].sides == ("head", "tail", "both")


@pytest.mark.parametrize(
    "change",
    [{"entity_ranking.filter_with_test": False},
     {"entity_ranking.filter_splits": ["train", "valid", "test"]}],
)  # fmt: skip
def test_a_job_without_a_third_filter(libkge: Any, change: dict[str, Any]) -> None:
    job = libkge.KgtrecJob(Config(SETTINGS | change), Dataset(), None, Model())
    job.run()
    assert list(job.results) == ["", "_filtered"]


def test_a_job_of_another_rule(libkge: Any) -> None:
    config = Config(SETTINGS, **{"entity_ranking.tie_handling": "random"})
    with pytest.raises(UsageError, match="type='random' is unknown; it must be 'rounded_"):
        libkge.KgtrecJob(config, Dataset(), None, Model()).run()
