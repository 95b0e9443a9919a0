"""torchmetrics and Lightning: the numbers of one pass, in loops, copies, processes, callbacks."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own

from question_cases import N, R, some_scores  # noqa: E402

import kgtrec  # noqa: E402
from kgtrec.errors import UsageError  # noqa: E402
from kgtrec.integrations.torchmetrics import LinkPrediction  # noqa: E402


def case(sides: str = "both") -> tuple[kgtrec.Questions, dict[str, torch.Tensor], dict[str, float]]:
    """Questions, scores by side, given entity and relation, and the result of one pass."""
    rng = np.random.default_rng(1)
    splits = {s: rng.integers(0, (N, R, N), (50, 3)) for s in ("train", "test")}
    questions = kgtrec.Graph.from_arrays(**splits, n_entities=N, n_relations=R).questions(
        sides=sides
    )
    tables = {side: torch.from_numpy(some_scores(rng, (N, R, N))) for side in ("head", "tail")}
    own = np.stack(
        [
            tables["tail" if side else "head"][entity, relation].numpy()
            for side, entity, relation in zip(
                questions.side, questions.entity, questions.relation, strict=True
            )
        ]
    )
    result = kgtrec.evaluate(own, questions)
    return questions, tables, result


def feed(metric: Any, questions: kgtrec.Questions, tables: Any, part: slice = slice(None)) -> None:
    order = torch.randperm(len(questions.triples), generator=torch.Generator().manual_seed(2))
    for some in torch.from_numpy(questions.triples.astype(np.int64))[order][part].split(7):
        for side, column in (("head", 2), ("tail", 0)):
            if questions.sides in (side, "both"):
                metric.update(tables[side][some[:, column], some[:, 1]], some, side)


@pytest.mark.parametrize("sides", ["both", "head", "tail"])
@pytest.mark.parametrize("rows", ["instances", "questions"])
def test_update_compute_reset(sides: str, rows: str) -> None:
    questions, tables, due = case(sides)
    metric = LinkPrediction(questions, rows=rows)
    for _ in range(2):
        feed(metric, questions, tables)
        values = metric.compute()
        assert type(values) is dict
        assert next(iter(values)) == f"{sides}.realistic.micro.mrr"
        assert {key: float(value) for key, value in values.items()} == {k: due[k] for k in values}
        metric.reset()
        with pytest.raises(UsageError, match="were never scored"):
            metric.compute()
        metric.reset()


def test_any_measure_and_the_whole_result() -> None:
    questions, tables, due = case()
    keys = ["head.pessimistic.micro.hits@5", "both.realistic.macro.mrr"]
    metric = LinkPrediction(questions, keys)
    feed(metric, questions, tables)
    assert {k: float(v) for k, v in metric.compute().items()} == {k: due[k] for k in keys}
    assert metric.result()["tail.realistic.micro.amri"] == due["tail.realistic.micro.amri"]
    partial = LinkPrediction(questions, incomplete="nan")
    feed(partial, questions, tables, slice(10))
    assert all(torch.isnan(value) for value in partial.compute().values())
    with pytest.raises(UsageError):
        LinkPrediction(questions, ["mmr"])
    with pytest.raises(UsageError, match="incomplete='zero' is unknown"):
        LinkPrediction(questions, incomplete="zero")


def test_copies_and_pickles_go_on_by_themselves() -> None:
    questions, tables, due = case()
    metric = LinkPrediction(questions)
    fresh = [(copy.deepcopy(metric), 0), (metric.clone(), 0)]
    feed(metric, questions, tables, slice(20))
    begun = [(copy.deepcopy(metric), 20), (pickle.loads(pickle.dumps(metric)), 20), (metric, 20)]
    for other, first in fresh + begun:
        feed(other, questions, tables, slice(first, None))
        assert float(next(iter(other.compute().values()))) == due["both.realistic.micro.mrr"]


def test_states_merge() -> None:
    questions, tables, due = case()
    metric, other, empty = (LinkPrediction(questions) for _ in range(3))
    feed(metric, questions, tables, slice(20))
    feed(other, questions, tables, slice(15, None))  # some rows twice: they count once
    metric.merge_state(empty)
    empty.merge_state(other)
    with pytest.raises(UsageError, match="were never scored"):
        empty.compute()
    metric.merge_state(empty)
    values = {key: float(value) for key, value in metric.compute().items()}
    assert values == {key: due[key] for key in values}
    with pytest.raises(UsageError, match="needs a LinkPrediction; got dict"):
        metric.merge_state(metric.metric_state)
    heads = case("head")[0]
    other = LinkPrediction(heads)
    feed(other, heads, tables)
    with pytest.raises(UsageError, match="other questions"):
        metric.merge_state(other)


PROCESS = """
import os, sys
sys.path[:0] = {paths!r}
import warnings; warnings.simplefilter("ignore")
import torch, torch.distributed as distributed
from test_torchmetrics import LinkPrediction, case, feed
rank, world = int(sys.argv[1]), int(sys.argv[2])
distributed.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank,
                               world_size=world)
questions, tables, due = case()
metric = LinkPrediction(questions)
n = len(questions.triples)
for _ in range(2):
    # Shared out unevenly, some triples twice; the last process has none.
    parts = [slice(0, 30), slice(25, n), slice(0, 0)]
    feed(metric, questions, tables, parts[rank])
    values = {{key: float(value) for key, value in metric.compute().items()}}
    assert values == {{key: due[key] for key in values}}, (values, due)
    assert metric._ranker.n_scored < metric._ranker.n_rows
    metric.reset()
distributed.destroy_process_group()
print("agreed")
"""


def test_processes_merge(tmp_path: Path) -> None:
    here = Path(__file__)
    program = PROCESS.format(paths=[str(here.parent), str(here.parents[1] / "helpers")])
    (tmp_path / "run.py").write_text(program)
    processes = [
        subprocess.Popen(
            [sys.executable, tmp_path / "run.py", str(rank), "3", tmp_path / "meet"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert out.strip() == "agreed", err


# -- Lightning ---------------------------------------------------------------------------------


def test_early_stopping_on_validation_mrr(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    from kgtrec.integrations.lightning import RankingCallback

    questions, tables, due = case()
    value = due["both.realistic.micro.mrr"]

    class Model(lightning.LightningModule):
        """Scores of the tables, which no epoch improves."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(()))
            self.metric = LinkPrediction(questions, incomplete="nan")

        def training_step(self, batch: Any, number: int) -> Any:
            return (self.weight * 0).sum()

        def validation_step(self, batch: Any, number: int) -> None:
            (triples,) = batch
            for side, column in (("head", 2), ("tail", 0)):
                self.metric.update(tables[side][triples[:, column], triples[:, 1]], triples, side)

        def on_validation_epoch_end(self) -> None:
            self.log_dict({f"metric.{k}": v for k, v in self.metric.compute().items()})
            self.metric.reset()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def score(model: Any, batch: kgtrec.Batch) -> Any:
        assert not model.training
        return tables["tail" if batch.side[0] else "head"][batch.entity, batch.relation]

    triples = torch.from_numpy(questions.triples.astype(np.int64))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(triples), batch_size=6, shuffle=True
    )
    ranking = RankingCallback(questions, score, every=2)
    stopping = lightning.callbacks.EarlyStopping("both.realistic.micro.mrr", patience=2, mode="max")
    trainer = lightning.Trainer(
        max_epochs=20,
        callbacks=[ranking, stopping],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=tmp_path,
    )
    trainer.fit(Model(), loader, loader)
    assert trainer.current_epoch == 3  # the first is the best, two more change nothing
    assert float(stopping.best_score) == pytest.approx(value, rel=1e-6)
    assert ranking.result["both.realistic.micro.mrr"] == value
    logged = trainer.callback_metrics["metric.both.realistic.micro.mrr"]
    assert float(logged) == pytest.approx(value, rel=1e-6)
    with pytest.raises(UsageError, match="every=0"):
        RankingCallback(questions, score, every=0)
