"""PyTorch Geometric and TorchKGE: the numbers of their own evaluators, and further ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own

import kgtrec  # noqa: E402
from kgtrec.errors import InputError, UsageError  # noqa: E402

N, R = 40, 4


def splits() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    triples = np.unique(rng.integers(0, (N, R, N), (400, 3)), axis=0)
    rng.shuffle(triples)
    # Every entity and relation is in train, so that no library omits one.
    rows = [[e, e % R, (e + 1) % N] for e in range(N)]
    rest = np.array([row for row in triples.tolist() if row not in rows])
    return {"train": np.concatenate([rows, rest[:200]]), "valid": rest[200:260],
            "test": rest[260:320]}  # fmt: skip


def by_hand(scores: Any, test: np.ndarray, known: set[tuple[int, int, int]]) -> dict[str, list]:
    """Filtered realistic ranks by looking at every triple; ``scores(h, r, t)`` are exact."""
    ranks: dict[str, list[float]] = {"head": [], "tail": []}
    for h, r, t in test.tolist():
        own = scores(h, r, t)
        for side in ranks:
            other = [(e, r, t) if side == "head" else (h, r, e) for e in range(N)]
            values = [scores(*each) for each in other if each not in known or each == (h, r, t)]
            above = sum(value > own for value in values)
            ranks[side].append(above + 1 + (sum(value == own for value in values) - 1) / 2)
    return ranks


def assert_ranks(result: Any, ranks: dict[str, list]) -> None:
    for side, values in [*ranks.items(), ("both", ranks["head"] + ranks["tail"])]:
        due = {"mr": np.mean(values), "mrr": np.mean([1 / v for v in values]),
               "hits@10": np.mean([v <= 10 for v in values])}  # fmt: skip
        for metric, value in due.items():
            assert result[f"{side}.realistic.micro.{metric}"] == pytest.approx(value, rel=1e-12)


# -- PyTorch Geometric -------------------------------------------------------------------------


def pyg_data() -> dict[str, Any]:
    data = pytest.importorskip("torch_geometric.data")
    return {
        name: data.Data(edge_index=torch.from_numpy(rows[:, [0, 2]].T.copy()),
                        edge_type=torch.from_numpy(rows[:, 1].copy()))
        for name, rows in splits().items()
    }  # fmt: skip


@pytest.mark.parametrize("name", ["DistMult", "ComplEx", "TransE", "RotatE"])
def test_pyg(name: str) -> None:
    kge = pytest.importorskip("torch_geometric.nn.kge")
    from kgtrec.integrations.pyg import evaluate

    data = pyg_data()
    torch.manual_seed(3)
    model = getattr(kge, name)(N, R, 8)
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    train = data["train"]
    for _ in range(3):
        model.train()
        optimiser.zero_grad()
        loss = model.loss(train.edge_index[0], train.edge_type, train.edge_index[1])
        loss.backward()
        optimiser.step()
    test = data["test"]
    edges = test.edge_index[0], test.edge_type, test.edge_index[1]
    mean_rank, mrr, hits = model.eval().test(*edges, batch_size=1000, k=10, log=False)
    model.train()
    raw = evaluate(model, test, known=None, sides="tail", batch_size=7)
    assert model.training
    assert raw["tail.realistic.micro.mr"] - 1 == pytest.approx(mean_rank, rel=1e-6)
    assert raw["tail.realistic.micro.mrr"] == pytest.approx(mrr, rel=1e-6)
    assert raw["tail.realistic.micro.hits@10"] == pytest.approx(hits, rel=1e-6)
    result = evaluate(model, edges, known=[train, data["valid"]])
    model.eval()
    grid = torch.cartesian_prod(torch.arange(N), torch.arange(R), torch.arange(N))
    with torch.inference_mode():
        scores = model(*grid.T).view(N, R, N).numpy()
    known = {tuple(row) for rows in splits().values() for row in rows.tolist()}
    assert_ranks(result, by_hand(lambda h, r, t: scores[h, r, t], splits()["test"], known))
    graph = kgtrec.Graph.from_arrays(**splits())
    with pytest.raises(UsageError, match="data is of type Graph; pass a Data object"):
        evaluate(model, graph)


# -- TorchKGE ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TransE", "DistMult", "ComplEx", "RESCAL", "TransH", "TransR"])
def test_torchkge(name: str) -> None:
    models = pytest.importorskip("torchkge.models")
    pandas = pytest.importorskip("pandas")
    from torchkge.data_structures import KnowledgeGraph
    from torchkge.evaluation import LinkPredictionEvaluator

    from kgtrec.integrations.torchkge import evaluate

    parts = splits()
    frame = pandas.DataFrame(np.concatenate(list(parts.values())), columns=["from", "rel", "to"])
    whole = KnowledgeGraph(df=frame)
    sizes = tuple(len(rows) for rows in parts.values())
    train, valid, test = whole.split_kg(sizes=sizes)
    torch.manual_seed(4)
    made = {
        "TransE": lambda: models.TransEModel(8, N, R, dissimilarity_type="L2"),
        "DistMult": lambda: models.DistMultModel(8, N, R),
        "ComplEx": lambda: models.ComplExModel(8, N, R),
        "RESCAL": lambda: models.RESCALModel(8, N, R),
        "TransH": lambda: models.TransHModel(8, N, R),
        "TransR": lambda: models.TransRModel(8, 6, N, R),
    }
    model = made[name]()
    model.normalize_parameters()
    theirs = LinkPredictionEvaluator(model, test)
    theirs.evaluate(b_size=16, verbose=False)
    # split_kg() keeps the facts of all splits in each: they are known by default.
    for known, place in ((None, 0), ([train, valid], 1), ((), 1)):
        result = evaluate(model, test, known=known, batch_size=9)
        for metric, due in (("mr", theirs.mean_rank()), ("mrr", theirs.mrr()),
                            ("hits@10", theirs.hit_at_k(10))):  # fmt: skip
            value = result[f"both.pessimistic.micro.{metric}"]
            assert value == pytest.approx(due[place], rel=1e-6), (metric, place)


@pytest.mark.parametrize("name", ["TransE", "DistMult", "ComplEx", "RESCAL"])
def test_torchkge_relation_questions(name: str) -> None:
    models = pytest.importorskip("torchkge.models")
    pandas = pytest.importorskip("pandas")
    from torchkge.data_structures import KnowledgeGraph
    from torchkge.evaluation import RelationPredictionEvaluator

    from kgtrec.integrations.torchkge import evaluate

    rng = np.random.default_rng(2)  # dense, so that pairs have several relations
    rows = np.unique(rng.integers(0, (12, 9, 12), (700, 3)), axis=0)
    rng.shuffle(rows)
    rows = rows[np.argsort(~np.isin(np.arange(len(rows)), _first_of_each(rows)))]
    frame = pandas.DataFrame(rows, columns=["from", "rel", "to"])
    train, valid, test = KnowledgeGraph(df=frame).split_kg(
        sizes=(len(rows) - 200, 100, 100), share=0.8
    )
    torch.manual_seed(4)
    made = {
        "TransE": lambda: models.TransEModel(8, 12, 9, dissimilarity_type="L2"),
        "DistMult": lambda: models.DistMultModel(8, 12, 9),
        "ComplEx": lambda: models.ComplExModel(8, 12, 9),
        "RESCAL": lambda: models.RESCALModel(8, 12, 9),
    }
    model = made[name]()
    model.normalize_parameters()
    theirs = RelationPredictionEvaluator(model, test)
    theirs.evaluate(b_size=16, verbose=False)
    for known, ranks in (
        (None, theirs.rank_true_rels),
        ([train, valid], theirs.filt_rank_true_rels),
    ):
        result = evaluate(model, test, known=known, sides="relation", batch_size=9)
        place = np.argsort(result.ranks.triple)
        assert result.ranks.rank("pessimistic")[place].tolist() == ranks.tolist()
        place = 0 if known is None else 1
        for metric, due in (("mr", theirs.mean_rank()), ("mrr", theirs.mrr()),
                            ("hits@3", theirs.hit_at_k(3))):  # fmt: skip
            value = result[f"relation.pessimistic.micro.{metric}"]
            assert value == pytest.approx(due[place], rel=1e-6), (metric, place)


def _first_of_each(rows: np.ndarray) -> np.ndarray:
    """Rows where an entity or a relation occurs first, for the training split."""
    return np.concatenate([np.unique(rows[:, c], return_index=True)[1] for c in range(3)])


def test_what_does_not_fit_is_named() -> None:
    kge = pytest.importorskip("torch_geometric.nn.kge")
    from kgtrec.integrations.pyg import evaluate

    model, ids = kge.DistMult(N, R, 8), torch.arange(3)
    with pytest.raises(InputError, match=r"the shapes \(3,\), \(2,\), \(3,\)"):
        evaluate(model, (ids, ids[:2], ids))
    with pytest.raises(InputError, match="40"):
        evaluate(model, (ids + N, ids, ids))
