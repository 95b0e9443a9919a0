"""LibKGE, which no index has: a stand-in with the parts of its interface that are used."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

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
    """As `kge.job.EvaluationJob`: a subclass writes into the trace of the epoch."""

    def __init__(self, config: Any, dataset: Any, parent_job: Any, model: Any) -> None:
        self.config, self.dataset, self.model = config, dataset, model
        self.batch_size, self.eval_split = config["eval.batch_size"], config["eval.split"]
        self.current_trace: dict[str, Any] = {"batch": None, "epoch": None}

    def _prepare(self) -> None:
        pass

    def run(self) -> dict[str, Any]:
        self._prepare()
        self.current_trace["epoch"] = {"type": "entity_ranking", "split": self.eval_split}
        self._evaluate()
        return self.current_trace["epoch"]


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


def test_a_job(libkge: Any) -> None:
    class Config(dict[str, Any]):
        """As `kge.Config`, whose `get` has no default."""

        def get(self, key: str) -> Any:  # type: ignore[override]
            return self[key]

    config = Config({"eval.batch_size": 9, "eval.split": "valid",
                     "entity_ranking.filter_splits": ["train", "valid"]})  # fmt: skip
    model = Model().train()
    job = libkge.KgtrecJob(config, Dataset(), None, model)
    trace = job.run()
    assert model.training
    assert trace["split"] == "valid"
    for ending, known in (("", None), ("_filtered", ["train", "valid"]),
                          ("_filtered_with_test", ["train", "valid", "test"])):  # fmt: skip
        ranks = by_hand("valid", known)
        assert trace[f"mean_rank{ending}"] == pytest.approx(np.mean(ranks), rel=1e-12)
        mrr = np.mean([1 / rank for rank in ranks])
        assert trace[f"mean_reciprocal_rank{ending}"] == pytest.approx(mrr, rel=1e-12)
        hits = np.mean([rank <= 3 for rank in ranks])
        assert trace[f"hits_at_3{ending}"] == pytest.approx(hits, rel=1e-12)
    assert trace["mean_rank"] > trace["mean_rank_filtered_with_test"]
    assert job.results["_filtered"].sides == ("head", "tail", "both")
