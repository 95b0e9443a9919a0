"""Files of vectors, OGB's predictions and values for trackers, which need no other library."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from question_cases import N, random_questions, some_scores
from refusals import assert_refused, each_row

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.integrations.embeddings import load_embeddings, load_factors
from kgtrec.integrations.ogb import as_lists, evaluate
from kgtrec.integrations.trackers import metrics

VECTORS = {
    "entity": np.arange(12, dtype=np.float32).reshape(4, 3),
    "relation": np.arange(6, dtype=np.float64).reshape(2, 3),
}


def assert_vectors(arrays: dict[str, np.ndarray]) -> None:
    assert set(arrays) == set(VECTORS)
    for name, values in VECTORS.items():
        assert arrays[name].dtype == values.dtype
        np.testing.assert_array_equal(arrays[name], values)


def test_numpy_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **VECTORS)
    assert_vectors(load_embeddings(tmp_path / "model.npz"))
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(FileError, match=r"folder: no \.npy file"):
        load_embeddings(folder)
    for name, values in VECTORS.items():
        np.save(folder / f"{name}.npy", values)
    assert_vectors(load_embeddings(str(folder)))
    assert list(load_embeddings(folder / "entity.npy")) == ["entity"]
    for name, content, said in (
        ("model.pkl", b"x", r"a file ending in \.pkl; kgtrec reads vectors from"),
        ("model.npz", b"PK\x03\x04 cut", "not a readable .npz archive"),
        ("absent.npz", None, "the file does not exist"),
    ):
        if content:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=f"{name}: {said}"):
            load_embeddings(tmp_path / name)


def test_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "model.safetensors"
    library.save_file(VECTORS, path)
    assert_vectors(load_embeddings(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    with pytest.raises(FileError, match=r"model\.safetensors: safetensors cannot read it"):
        load_embeddings(path)
    path.write_bytes(whole)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        assert_vectors(load_embeddings(path))
        without.setitem(sys.modules, "safetensors", None)
        with pytest.raises(FileError, match=r"pip install 'kgtrec\[embeddings\]'"):
            load_embeddings(path)


def test_torch_weights_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    state = {name: torch.from_numpy(values) for name, values in VECTORS.items()}
    torch.save(state, path)
    assert_vectors(load_embeddings(path))
    torch.save({"state_dict": {"e": {"weight": state["entity"].bfloat16()}}, "epoch": 3}, path)
    ((name, values),) = load_embeddings(path).items()
    assert name == "e.weight"  # the state of the model alone, as in test_saved_models
    np.testing.assert_array_equal(values, VECTORS["entity"])
    torch.save({"epoch": 3}, path)
    with pytest.raises(FileError, match="contains no tensor"):
        load_embeddings(path)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(FileError, match="needs torch, which is not installed"):
            load_embeddings(path)


class Trap:
    """A function that pickle would call."""

    fired = False

    def __reduce__(self):
        return (setattr, (Trap, "fired", True))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for suffix in (".pt", ".pth"):
        torch.save({"model": Trap()}, tmp_path / f"trap{suffix}")
        with pytest.raises(FileError, match="more than weights, or is damaged"):
            load_embeddings(tmp_path / f"trap{suffix}")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileError, match="more than weights, or is damaged"):
        load_embeddings(tmp_path / "plain.pt")
    np.savez(tmp_path / "trap.npz", entity=np.array([Trap()], dtype=object))
    with pytest.raises(FileError, match="Python objects"):
        load_embeddings(tmp_path / "trap.npz")
    assert not Trap.fired


# -- Models ------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
GRAPH = kgtrec.Graph.from_arrays(
    train=np.array([[0, 0, 1], [2, 1, 3]]), test=np.array([[1, 0, 2], [3, 1, 4]]), n_entities=5
)
QUESTIONS = GRAPH.questions()
ENTITY, RELATION = RNG.normal(size=(5, 4)), RNG.normal(size=(2, 4))


@each_row(
    "names",
    [
        ("entity", "relation"),
        ("entities", "relations"),
        ("E.weight", "R.weight"),
        ("ent_embeddings.weight", "rel_embeddings.weight"),
        ("model.entity_emb", "model.relation_emb"),
    ],
)
def test_arrays_are_found_by_their_names(names: tuple[str, str], tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **{names[0]: ENTITY, names[1]: RELATION, "epoch": np.array(3)})
    factors = load_factors(tmp_path / "m.npz", QUESTIONS, "distmult")
    arrays = {"entity": ENTITY, "relation": RELATION}
    due = kgtrec.Factors.from_embeddings(QUESTIONS, "distmult", **arrays)
    assert np.array_equal(factors.queries, due.queries)
    with pytest.raises(InputError, match=r"epoch .* single value, not embeddings: leave it out"):
        kgtrec.Factors.from_embeddings(QUESTIONS, "distmult", **arrays, epoch=np.array(3.0))


@each_row(
    "arrays, error, words",
    [
        ({"entity": ENTITY}, FileError, "m.npz: arrays 'entity'; save only the embeddings"),
        (
            {"entity": ENTITY, "ents": ENTITY, "rel": RELATION},
            FileError,
            "'entity' and 'ents', which",
        ),
        ({"entity": ENTITY, "rel": RELATION, "gate": RELATION}, FileError, "'gate', whose meaning"),
        ({"entity": ENTITY, "rel": np.tile(RELATION, (2, 1))}, InputError, "pass inverse='offset'"),
        ({"entity": ENTITY.astype(object), "rel": RELATION}, FileError, "contains Python objects"),
    ],
)
def test_mistakes(arrays, error, words, tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    assert_refused(load_factors, error, (words,), tmp_path / "m.npz", QUESTIONS, "distmult")


# -- OGB's predictions -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["ogbl-wikikg2", "ogbl-biokg"])
@pytest.mark.filterwarnings("ignore")
def test_the_lists_of_its_evaluator(seed: int, dtype: str, name: str) -> None:
    """Coarse scores, so that many tie."""
    torch = pytest.importorskip("torch")
    evaluator = pytest.importorskip("ogb.linkproppred").Evaluator(name=name)
    rng = np.random.default_rng(seed)
    scores = {"y_pred_pos": rng.normal(size=200) + 1, "y_pred_neg": rng.normal(size=(200, 50))}
    arrays = {key: values.round(1).astype(dtype) for key, values in scores.items()}
    tensors = {key: torch.from_numpy(values) for key, values in arrays.items()}
    due = evaluator.eval(tensors)
    for form in (arrays, tensors):
        result = evaluate(form)
        lists = as_lists(result)
        assert set(lists) == set(due)
        for key, values in due.items():
            assert lists[key].tobytes() == values.numpy().tobytes(), key
            mean = float(values.double().mean())
            value = result[f"tail.realistic.micro.{key.removesuffix('_list')}"]
            assert value == pytest.approx(mean, abs=1e-7)


@pytest.mark.parametrize("kind", ["optimistic", "realistic", "pessimistic"])
def test_every_candidate_once(kind: str) -> None:
    rng = np.random.default_rng(4)
    answers, ids = rng.integers(0, 9, 60), rng.integers(0, 9, (60, 20))
    table = rng.integers(0, 5, (60, 9)).astype(np.float32)  # equal ids have equal scores
    arrays = {
        "y_pred_pos": table[np.arange(60), answers],
        "y_pred_neg": np.take_along_axis(table, ids, axis=1),
    }
    result = evaluate(arrays, protocol="kgtrec", answers=answers, negatives=ids, side="head")
    ranks = []
    for row in range(60):
        own = table[row, answers[row]]
        others = [table[row, e] for e in set(ids[row].tolist()) - {int(answers[row])}]
        above, ties = sum(s > own for s in others), sum(s == own for s in others)
        behind = {"optimistic": 0, "realistic": ties / 2, "pessimistic": ties}[kind]
        ranks.append(above + 1 + behind)
        assert result.ranks.candidates[row] == 1 + len(others)
    assert result[f"head.{kind}.micro.mr"] == pytest.approx(np.mean(ranks), rel=1e-12)
    doubled = evaluate(arrays)
    assert (doubled.ranks.greater >= result.ranks.greater).all()
    assert (doubled.ranks.greater > result.ranks.greater).any()
    assert doubled.ranks.candidates.tolist() == [21] * 60
    assert "sampled" in str(result)


PAIR = {"y_pred_pos": np.zeros(3, "f4"), "y_pred_neg": np.zeros((3, 4), "f4")}


@each_row(
    "change, options, said",
    [
        (
            {"y_pred_pos": np.zeros(0, "f4"), "y_pred_neg": np.zeros((0, 4), "f4")},
            {},
            "there are no predictions",
        ),
        ({"y_pred_neg": None}, {}, "predictions lack y_pred_neg"),
        ({"y_pred_pos": np.zeros((3, 1), "f4")}, {}, r"y_pred_pos has shape \(3, 1\)"),
        (
            {"y_pred_neg": np.zeros(9, "f4")},
            {},
            r"y_pred_neg \(9,\); expected .*one list of negatives",
        ),
        ({"y_pred_neg": np.zeros((2, 4), "f4")}, {}, r"y_pred_neg \(2, 4\)"),
        ({"y_pred_neg": np.zeros((3, 4), "f8")}, {}, "dtype float32 and y_pred_neg float64"),
        ({"y_pred_neg": np.zeros((3, 4), "c8")}, {}, "dtype complex64"),
        ({"y_pred_pos": np.array([0, np.nan, 1], "f4")}, {}, "y_pred_pos contains NaN in row 1"),
        ({"y_pred_neg": np.full((3, 4), np.nan, "f4")}, {}, "y_pred_neg contains NaN in row 0"),
        ({}, {"protocol": "pbg"}, "protocol='pbg' is unknown"),
        ({}, {"side": "both"}, "side='both' is unknown"),
        ({}, {"protocol": "kgtrec", "answers": [0, 1, 2]}, "needs the ids"),
        (
            {},
            {"protocol": "kgtrec", "answers": [0, 1], "negatives": np.zeros((3, 4), int)},
            r"expected ids of shape \(3,\) and \(3, 4\)",
        ),
    ],
)
def test_bad_predictions_and_options_are_named(change, options, said) -> None:
    arrays = {key: values for key, values in (PAIR | change).items() if values is not None}
    with pytest.raises((UsageError, InputError) if options else InputError, match=said):
        evaluate(arrays, **options)


# -- Values for trackers -----------------------------------------------------------------------


MLFLOW = re.compile(r"[\w.\- :/]+", re.ASCII)  # mlflow.utils.validation


def test_names_and_values_for_trackers() -> None:
    questions = random_questions(np.random.default_rng(1))
    scores = some_scores(np.random.default_rng(2), (len(questions), N))
    result = kgtrec.evaluate(scores, questions)
    values = metrics(result)
    assert len(values) == len([key for key in result if result[key] == result[key]])
    assert all(MLFLOW.fullmatch(name) for name in values)
    assert all(type(value) is float for value in values.values())
    hits = result["both.realistic.micro.hits@10"]
    assert values["kgtrec/both.realistic.micro.hits_at_10"] == hits
    keys = ["tail.realistic.micro.mrr", "both.realistic.micro.p-mrr(0.5)", "both.macro.map_cut_20"]
    assert metrics(result, keys, prefix="valid") == {
        "valid/tail.realistic.micro.mrr": result[keys[0]],
        "valid/both.realistic.micro.p-mrr_0.5": result[keys[1]],
        "valid/both.macro.map_cut_20": result[keys[2]],
    }
    assert list(metrics(result, keys[:1], prefix="")) == ["tail.realistic.micro.mrr"]
    with pytest.raises(UsageError):
        metrics(result, ["tail.realistic.micro.mmr"])
    said = r"'a\(1\)' and 'a\[1\]' would both be logged as 'kgtrec/a_1'"
    with pytest.raises(UsageError, match=said):
        metrics({"a(1)": 1.0, "a[1]": 2.0})  # type: ignore[arg-type]
    assert metrics({"a": float("nan"), "b": 1.0}) == {"kgtrec/b": 1.0}  # type: ignore[arg-type]
