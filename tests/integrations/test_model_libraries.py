"""PyTorch Geometric, TorchKGE and LibKGE: the numbers of their evaluators, and saved models."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError

torch = pytest.importorskip("torch")

from kgtrec.integrations.libkge_checkpoint import checkpoint_factors  # noqa: E402

warnings_ignored = pytest.mark.filterwarnings("ignore")  # the libraries' own


N, R = 40, 4


def splits() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    triples = np.unique(rng.integers(0, (N, R, N), (400, 3)), axis=0)
    rng.shuffle(triples)
    # Every entity and relation is in train, so that no library omits one.
    rows = [[e, e % R, (e + 1) % N] for e in range(N)]
    rest = np.array([row for row in triples.tolist() if row not in rows])
    return {
        "train": np.concatenate([rows, rest[:200]]),
        "valid": rest[200:260],
        "test": rest[260:320],
    }


# -- PyTorch Geometric -------------------------------------------------------------------------


def pyg_data() -> dict[str, Any]:
    data = pytest.importorskip("torch_geometric.data")
    return {
        name: data.Data(
            edge_index=torch.from_numpy(rows[:, [0, 2]].T.copy()),
            edge_type=torch.from_numpy(rows[:, 1].copy()),
        )
        for name, rows in splits().items()
    }


@warnings_ignored
@pytest.mark.parametrize("name", ["DistMult", "ComplEx", "TransE", "RotatE"])
def test_pyg(name: str) -> None:
    kge = pytest.importorskip("torch_geometric.nn.kge")
    from kgtrec.integrations.pyg import evaluate

    data = pyg_data()
    torch.manual_seed(3)
    model, test = getattr(kge, name)(N, R, 8), data["test"]
    edges = test.edge_index[0], test.edge_type, test.edge_index[1]
    mean_rank, mrr, hits = model.eval().test(*edges, batch_size=1000, k=10, log=False)
    model.train()
    raw = evaluate(model, test, known=None, sides="tail", batch_size=7)
    assert model.training
    assert raw["tail.realistic.micro.mr"] - 1 == pytest.approx(mean_rank, rel=1e-6)
    assert raw["tail.realistic.micro.mrr"] == pytest.approx(mrr, rel=1e-6)
    assert raw["tail.realistic.micro.hits@10"] == pytest.approx(hits, rel=1e-6)
    result = evaluate(model, edges, known=[data["train"], data["valid"]])
    model.eval()
    grid = torch.cartesian_prod(torch.arange(N), torch.arange(R), torch.arange(N))
    with torch.inference_mode():
        scores = model(*grid.T).view(N, R, N).numpy()
    questions = kgtrec.Graph.from_arrays(**splits()).questions("test")
    asked = zip(questions.side, questions.entity, questions.relation, strict=True)
    rows = np.stack([scores[e, r] if side else scores[:, r, e] for side, e, r in asked])
    due = dict(kgtrec.evaluate(rows, questions))
    # Popularity counts all splits, and only this graph has more than one.
    assert {key for key in due if result[key] != pytest.approx(due[key], 1e-12, nan_ok=True)} == {
        "both.stratified.mrr(0.5,0.5)",
        "both.stratified.hits@10(0.5,0.5)",
    }


@warnings_ignored
def test_pyg_names_what_does_not_fit() -> None:
    kge = pytest.importorskip("torch_geometric.nn.kge")
    from kgtrec.integrations.pyg import evaluate

    model, ids = kge.DistMult(N, R, 8), torch.arange(3)
    for data, error, said in (
        ((ids, ids[:2], ids), InputError, r"the shapes \(3,\), \(2,\), \(3,\)"),
        ((ids + N, ids, ids), InputError, "40"),
        (kgtrec.Graph.from_arrays(**splits()), UsageError, "of type Graph; pass a Data object"),
    ):
        with pytest.raises(error, match=said):
            evaluate(model, data)


# -- TorchKGE ----------------------------------------------------------------------------------


def torchkge_splits(rows: np.ndarray, **how: Any) -> Any:
    pytest.importorskip("torchkge")
    pandas = pytest.importorskip("pandas")
    from torchkge.data_structures import KnowledgeGraph

    frame = pandas.DataFrame(rows, columns=["from", "rel", "to"])
    return KnowledgeGraph(df=frame).split_kg(**how)


def torchkge_model(name: str, n: int, r: int) -> Any:
    from torchkge import models

    torch.manual_seed(4)
    dims = (8, 6) if name == "TransR" else (8,)
    norm = {"dissimilarity_type": "L2"} if name == "TransE" else {}
    model = getattr(models, f"{name}Model")(*dims, n, r, **norm)
    model.normalize_parameters()
    return model


def assert_torchkge(result: Any, side: str, theirs: Any, place: int) -> None:
    """Its evaluators give raw values, then filtered ones."""
    values = {"mr": theirs.mean_rank(), "mrr": theirs.mrr(), "hits@3": theirs.hit_at_k(3)}
    for metric, due in values.items():
        value = result[f"{side}.pessimistic.micro.{metric}"]
        assert value == pytest.approx(due[place], rel=1e-6), (metric, place)


@warnings_ignored
@pytest.mark.parametrize("name", ["TransE", "DistMult", "ComplEx", "RESCAL", "TransH", "TransR"])
def test_torchkge(name: str) -> None:
    pytest.importorskip("torchkge")
    from torchkge.evaluation import LinkPredictionEvaluator

    from kgtrec.integrations.torchkge import evaluate

    parts = splits()
    sizes = tuple(len(rows) for rows in parts.values())
    train, valid, test = torchkge_splits(np.concatenate(list(parts.values())), sizes=sizes)
    model = torchkge_model(name, N, R)
    theirs = LinkPredictionEvaluator(model, test)
    theirs.evaluate(b_size=16, verbose=False)
    # split_kg() keeps the facts of all splits in each: they are known by default.
    for known, place in ((None, 0), ([train, valid], 1), ((), 1)):
        result = evaluate(model, test, known=known, batch_size=9)
        assert_torchkge(result, "both", theirs, place)


@warnings_ignored
@pytest.mark.parametrize("name", ["TransE", "DistMult", "ComplEx", "RESCAL"])
def test_torchkge_relation_questions(name: str) -> None:
    pytest.importorskip("torchkge")
    from torchkge.evaluation import RelationPredictionEvaluator

    from kgtrec.integrations.torchkge import evaluate

    rng = np.random.default_rng(2)  # dense, so that pairs have several relations
    rows = np.unique(rng.integers(0, (12, 9, 12), (700, 3)), axis=0)
    rng.shuffle(rows)
    # Rows where an entity or a relation occurs first are in the training split.
    first = np.concatenate([np.unique(rows[:, c], return_index=True)[1] for c in range(3)])
    rows = rows[np.argsort(~np.isin(np.arange(len(rows)), first))]
    train, valid, test = torchkge_splits(rows, sizes=(len(rows) - 200, 100, 100), share=0.8)
    model = torchkge_model(name, 12, 9)
    theirs = RelationPredictionEvaluator(model, test)
    theirs.evaluate(b_size=16, verbose=False)
    both = theirs.rank_true_rels, theirs.filt_rank_true_rels
    for place, known in enumerate((None, [train, valid])):
        result = evaluate(model, test, known=known, sides="relation", batch_size=9)
        order = np.argsort(result.ranks.triple)
        assert result.ranks.rank("pessimistic")[order].tolist() == both[place].tolist()
        assert_torchkge(result, "relation", theirs, place)


# -- LibKGE, by doubles of its classes ----------------------------------------------------------


KGE_N, KGE_R = 30, 3


class KgeDataset:
    """As `kge.Dataset`: splits are int32 tensors of rows subject, predicate, object."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        rows = np.unique(rng.integers(0, (KGE_N, KGE_R, KGE_N), (250, 3)), axis=0)
        rng.shuffle(rows)
        parts = {"train": rows[:150], "valid": rows[150:190], "test": rows[190:]}
        self.split = {k: torch.from_numpy(v.astype(np.int32)) for k, v in parts.items()}.get
        self.num_entities, self.num_relations = (lambda: KGE_N), (lambda: KGE_R)


class KgeModel(torch.nn.Module):
    """As `kge.model.KgeModel`, of ComplEx's kind: scores differ by direction."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table = torch.nn.Parameter(torch.randn(KGE_N, KGE_R, KGE_N).round(decimals=1))

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


CONFIG = type("Config", (), {"__module__": "kge.config"})


@contextmanager
def libkge_in_place() -> Iterator[None]:
    """Stand-ins for LibKGE's modules of jobs and configurations."""
    modules = {name: ModuleType(name) for name in ("kge", "kge.job", "kge.config")}
    modules["kge.job"].EvaluationJob = EvaluationJob  # type: ignore[attr-defined]
    modules["kge.config"].Config = CONFIG  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patched:
        for name, module in modules.items():
            patched.setitem(sys.modules, name, module)
        yield


@pytest.fixture
def libkge() -> Any:
    with libkge_in_place():
        from kgtrec.integrations import libkge

        yield libkge


@pytest.mark.parametrize("known", [None, ["train", "valid"], ["train", "valid", "test"]])
def test_a_function(libkge: Any, known: list[str] | None) -> None:
    split = "valid" if known == ["train", "valid"] else "test"
    result = libkge.evaluate(KgeModel(), KgeDataset(), split, known=known, batch_size=7)
    ranks = ranks_of_libkge(split, known, "mean_rank")
    assert result["both.realistic.micro.mr"] == pytest.approx(np.mean(ranks), rel=1e-12)


class Config(dict[str, Any]):
    """As `kge.Config`, whose `get` has no default."""

    def get(self, key: str) -> Any:  # type: ignore[override]
        return self[key]


SETTINGS = {
    "eval.batch_size": 9,
    "eval.split": "valid",
    "entity_ranking.filter_splits": ["train", "valid"],
}
KNOWN = {
    "": None,
    "_filtered": ["train", "valid"],
    "_filtered_with_test": ["train", "valid", "test"],
}


def ranks_of_libkge(
    split: str, known: list[str] | None, kind: str, atol: float = 0, rtol: float = 0
) -> Any:
    """Count as its job does, pair by pair: the answer is one of its own ties."""
    dataset, table = KgeDataset(), KgeModel().table.detach()
    taken = {tuple(row) for name in known or [] for row in dataset.split(name).tolist()}
    ranks = []
    for s, p, o in dataset.split(split).tolist():
        for other in ([(e, p, o) for e in range(KGE_N)], [(s, p, e) for e in range(KGE_N)]):
            rivals = [t for t in other if t == (s, p, o) or t not in taken]
            scores = torch.stack([table[t] for t in rivals])
            own = table[s, p, o]
            close = torch.isclose(scores, own, rtol=rtol, atol=atol)
            rank, ties = int(((scores > own) & ~close).sum()), int(close.sum())
            behind = {
                "rounded_mean_rank": ties // 2,
                "mean_rank": (ties - 1) / 2,
                "best_rank": 0,
                "worst_rank": ties - 1,
            }
            ranks.append(1 + rank + behind[kind])
    return np.array(ranks)


@pytest.mark.parametrize(
    ("handling", "kind", "atol", "rtol"),
    [
        (None, "rounded_mean_rank", 1e-5, 1e-4),
        (
            {"type": "rounded_mean_rank", "atol": "1e-5", "rtol": 1e-4},
            "rounded_mean_rank",
            1e-5,
            1e-4,
        ),
        ({"type": "best_rank", "atol": 0.15, "rtol": 0.1}, "best_rank", 0.15, 0.1),
        ({"type": "worst_rank", "atol": 0.15, "rtol": 0.1}, "worst_rank", 0.15, 0.1),
        ("worst_rank", "worst_rank", 0.0, 0.0),
    ],
)
def test_a_job_has_the_numbers_of_libkge(
    libkge: Any, handling: Any, kind: str, atol: float, rtol: float
) -> None:
    config = Config(SETTINGS)
    if handling is not None:
        config |= {"entity_ranking.tie_handling": handling, "entity_ranking.hits_at_k_s": [1, 5]}
    model = KgeModel().train()
    job = libkge.KgtrecJob(config, KgeDataset(), None, model)
    seen: list[Any] = []
    job.pre_epoch_hooks.append(lambda job: seen.append(dict(job.current_trace["epoch"])))
    trace = job.run()
    assert model.training
    assert job.prepared == 1
    assert seen[0].items() <= trace.items()
    assert seen[0] == {
        "type": "entity_ranking",
        "scope": "epoch",
        "split": "valid",
        "epoch": 7,
        "filter_splits": ["train", "valid"],
        "size": 40,
        "batches": 5,
    }
    assert trace["event"] == "eval_completed"
    assert trace["epoch_time"] > 0
    for ending, known in KNOWN.items():
        ranks = ranks_of_libkge("valid", known, kind, atol, rtol)
        assert trace[f"mean_rank{ending}"] == pytest.approx(np.mean(ranks), rel=1e-12)
        mrr = np.mean(1 / ranks)
        assert trace[f"mean_reciprocal_rank{ending}"] == pytest.approx(mrr, rel=1e-12)
        assert {name for name in trace if name.startswith("hits_at_50")} == set()  # of 30 entities
        for k in (1, 3, 10) if handling is None else (1, 5):
            assert trace[f"hits_at_{k}{ending}"] == pytest.approx(np.mean(ranks <= k), rel=1e-12)
    assert trace["mean_rank"] > trace["mean_rank_filtered_with_test"]
    assert job.results["_filtered"].sides == ("head", "tail", "both")


def test_jobs_of_other_settings(libkge: Any) -> None:
    for change in (
        {"entity_ranking.filter_with_test": False},
        {"entity_ranking.filter_splits": ["train", "valid", "test"]},
    ):
        job = libkge.KgtrecJob(Config(SETTINGS | change), KgeDataset(), None, KgeModel())
        job.run()
        assert list(job.results) == ["", "_filtered"]
    config = Config(SETTINGS, **{"entity_ranking.tie_handling": "random"})
    with pytest.raises(UsageError, match="type='random' is unknown; it must be 'rounded_"):
        libkge.KgtrecJob(config, KgeDataset(), None, KgeModel()).run()


SAVED_N, SAVED_R, DIM = 12, 3, 4
CLASSES = {
    "distmult": "DistMult",
    "complex": "ComplEx",
    "transe": "TransE",
    "rotate": "RotatE",
    "rescal": "Rescal",
    "cp": "CP",
    "simple": "SimplE",
}
RELATION_DIM = {"rotate": DIM // 2, "rescal": DIM * DIM, "cp": DIM // 2}


def halves(x: Any) -> tuple[Any, Any]:
    return x[: len(x) // 2], x[len(x) // 2 :]


def complex_of(x: Any) -> Any:
    real, imaginary = halves(x)
    return real + 1j * imaginary


def simple(s: Any, p: Any, o: Any, norm: float) -> float:
    (s1, s2), (p1, p2), (o1, o2) = map(halves, (s, p, o))
    return ((s1 * p1 * o2).sum() + (s2 * p2 * o1).sum()) / 2


def rotate(s: Any, p: Any, o: Any, norm: float) -> float:
    moved = complex_of(s) * np.exp(1j * p) - complex_of(o)
    return -np.linalg.norm(np.abs(moved), ord=norm)


# The score of one triple, by the papers' formulas on LibKGE's halves of vectors.
SCORES: dict[str, Callable[..., float]] = {
    "distmult": lambda s, p, o, norm: (s * p * o).sum(),
    "complex": lambda s, p, o, norm: (
        (complex_of(s) * complex_of(p) * complex_of(o).conj()).sum().real
    ),
    "transe": lambda s, p, o, norm: -np.linalg.norm(s + p - o, ord=norm),
    "rotate": rotate,
    "rescal": lambda s, p, o, norm: s @ p.reshape(DIM, DIM) @ o,
    "cp": lambda s, p, o, norm: (halves(s)[0] * p * halves(o)[1]).sum(),
    "simple": simple,
}


def questions_of() -> Any:
    triples = np.random.default_rng(2).integers(0, (SAVED_N, SAVED_R, SAVED_N), (25, 3))
    return kgtrec.Graph.from_arrays(
        test=triples, n_entities=SAVED_N, n_relations=SAVED_R
    ).questions()


def options_of(model: str, reciprocal: bool = False, norm: float = 2) -> dict[str, Any]:
    version = torch.torch_version.TorchVersion("2.1.0")  # as training jobs store it
    options: dict[str, Any] = {"job": {"type": "train"}, "import": [model], "torch": version}
    options[model] = {
        "class_name": CLASSES.get(model, model),
        "l_norm": 1.0,
        "entity_embedder": {"type": "lookup_embedder"},
    }
    if not reciprocal:
        options[model]["l_norm"] = norm
        return options | {"model": model}
    options["reciprocal_relations_model"] = {
        "class_name": "ReciprocalRelationsModel",
        "base_model": {"type": model, "l_norm": norm},
    }
    return options | {"model": "reciprocal_relations_model"}


def tables(model: str, reciprocal: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    shape = (SAVED_R * (1 + reciprocal), RELATION_DIM.get(model, DIM))
    return rng.normal(size=(SAVED_N, DIM)).astype("f4"), rng.normal(size=shape).astype("f4")


def save(path: Path, options: Any, weights: Any) -> None:
    """As `TrainingJob.save` does: the configuration is an object of LibKGE's class."""
    with libkge_in_place():
        config = CONFIG()
        vars(config).update(options=options, folder="local/x", log_folder=None, log_prefix=None)
        torch.save(
            {
                "type": "train",
                "epoch": 3,
                "valid_trace": [{"mean_rank": 4.5, "epoch": 2}],
                "model": (weights, {}),
                "optimizer_state_dict": {},
                "job_id": "0f",
                "config": config,
                "dataset": {},
            },
            path,
        )


def state_dict(entity: Any, relation: Any, owner: str = "", name: str = "_embeddings") -> Any:
    pairs = (("entity", entity), ("relation", relation))
    return OrderedDict(
        (f"{owner}_{kind}_embedder.{name}.weight", torch.from_numpy(array)) for kind, array in pairs
    )


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize(
    ("model", "norm"), [*((model, 2) for model in CLASSES), ("transe", 1), ("rotate", 1)]
)
def test_scores_are_those_of_every_triple(
    model: str, norm: int, reciprocal: bool, tmp_path: Path
) -> None:
    questions, path = questions_of(), tmp_path / "checkpoint_best.pt"
    entity, relation = tables(model, reciprocal)
    owner, name = ("_base_model.", "embeddings") if reciprocal else ("", "_embeddings")
    weights = state_dict(entity, relation, owner, name)
    save(path, options_of(model, reciprocal, norm), weights)
    scores = checkpoint_factors(path, questions).scores()
    asked = zip(questions.side, questions.entity, questions.relation, strict=True)
    for row, (side, given, p) in enumerate(asked):
        for other in range(SAVED_N):
            s, o = (given, other) if side or reciprocal else (other, given)
            vectors = (entity[s], relation[p + SAVED_R * (reciprocal and not side)], entity[o])
            due = SCORES[model](*(vector.astype(float) for vector in vectors), norm)
            value = float(scores[row, other])
            assert value in (pytest.approx(due, abs=1e-4), pytest.approx(-(due**2), abs=1e-3))


def test_the_printed_conversion_makes_a_checkpoint_that_is_read(tmp_path: Path) -> None:
    """A configuration with any other object is refused; the message says what to run."""
    path, questions = tmp_path / "c.pt", questions_of()
    weights = state_dict(*tables("distmult", False))
    save(path, options_of("distmult"), weights)
    due = checkpoint_factors(path, questions).scores()
    save(path, options_of("distmult") | {"folder": PurePosixPath("x")}, weights)
    with pytest.raises(FileError, match="kgtrec unpickles nothing") as refused:
        checkpoint_factors(path, questions)
    code = str(refused.value).partition("where LibKGE is installed: ")[2]
    with libkge_in_place():
        exec(code, {})  # what the user would run
    np.testing.assert_array_equal(checkpoint_factors(f"{path}.plain", questions).scores(), due)


class Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return Path.touch, (self.target,)


def test_what_is_refused(tmp_path: Path) -> None:
    questions, path = questions_of(), tmp_path / "c.pt"
    weights = state_dict(*tables("distmult", False))

    def refused(kind: type[Exception], match: str) -> None:
        with pytest.raises(kind, match=match) as raised:
            checkpoint_factors(path, questions)
        assert str(path) in str(raised.value)

    refused(FileError, "the file does not exist")
    path.write_bytes(b"not a checkpoint")
    refused(FileError, "more than weights and a configuration, or is damaged")
    path.write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    refused(FileError, "kgtrec unpickles nothing")
    torch.save({"model": (weights, {}), "config": Evil(tmp_path / "ran")}, path)
    refused(FileError, "kgtrec unpickles nothing")
    assert not (tmp_path / "ran").exists()
    for content in ([1, 2], {"model": weights}, {"config": {}}, {"model": 3, "config": {}}):
        torch.save(content, path)
        refused(FileError, "contains no model with its configuration")
    for options in ({}, {"model": "x"}, {"model": {"type": "x"}, "x": {"type": "x"}}):
        torch.save({"model": (weights, {}), "config": options}, path)
        refused(FileError, "its configuration names no known model")
    entity, _ = tables("rotate", False)
    short = state_dict(entity[:-1], entity[:SAVED_R])
    odd = state_dict(entity[:, :3], entity[:SAVED_R, :3])
    projected = {"_entity_embedder.projection.weight": torch.zeros(3, 3)}
    for options, content, kind, match in (
        (options_of("conve"), weights, UsageError, "conve makes its query with a network"),
        (options_of("transe", norm=3), weights, UsageError, "l_norm is 3"),
        (options_of("distmult"), short, InputError, "11|12|entit"),
        (options_of("rescal"), weights, FileError, "4 numbers per relation, 4 per entity"),
        (options_of("simple"), odd, FileError, "3 numbers per entity, 3 per relation"),
        (
            options_of("distmult"),
            projected,
            FileError,
            "no lookup embeddings for entity ids .*projection",
        ),
    ):
        save(path, options, content)
        refused(kind, match)
    whole = path.read_bytes()
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:cut])
        refused(FileError, "more than weights and a configuration, or is damaged")
