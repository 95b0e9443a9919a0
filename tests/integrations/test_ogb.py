"""OGB: its protocol to the digit, and kgtrec's."""

from __future__ import annotations

import numpy as np
import pytest

from kgtrec.errors import InputError, UsageError
from kgtrec.integrations.ogb import as_lists, evaluate


def predictions(seed: int, n: int = 200, m: int = 50, dtype: str = "f4") -> dict[str, np.ndarray]:
    """Coarse scores, so that many tie."""
    rng = np.random.default_rng(seed)
    pos, neg = rng.normal(size=n) + 1, rng.normal(size=(n, m))
    return {"y_pred_pos": pos.round(1).astype(dtype), "y_pred_neg": neg.round(1).astype(dtype)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["ogbl-wikikg2", "ogbl-biokg"])
@pytest.mark.filterwarnings("ignore")
def test_the_lists_of_its_evaluator(seed: int, dtype: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    evaluator = pytest.importorskip("ogb.linkproppred").Evaluator(name=name)
    arrays = predictions(seed, dtype=dtype)
    tensors = {key: torch.from_numpy(values) for key, values in arrays.items()}
    due = evaluator.eval(tensors)
    for form in (arrays, tensors):
        result = evaluate(form)
        lists = as_lists(result)
        assert set(lists) == set(due)
        for key, values in due.items():
            assert lists[key].tobytes() == values.numpy().tobytes(), key
            metric = key.removesuffix("_list")
            mean = float(values.double().mean())
            assert result[f"tail.realistic.micro.{metric}"] == pytest.approx(mean, abs=1e-7)
            assert float(values.mean()) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("kind", ["optimistic", "realistic", "pessimistic"])
def test_every_candidate_once(kind: str) -> None:
    rng = np.random.default_rng(4)
    arrays = predictions(5, 60, 20)
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
        ranks.append(
            above + 1 + {"optimistic": 0, "realistic": ties / 2, "pessimistic": ties}[kind]
        )
        assert result.ranks.candidates[row] == 1 + len(others)
    assert result[f"head.{kind}.micro.mr"] == pytest.approx(np.mean(ranks), rel=1e-12)
    doubled = evaluate(arrays)
    assert (doubled.ranks.greater >= result.ranks.greater).all()
    assert (doubled.ranks.greater > result.ranks.greater).any()
    assert doubled.ranks.candidates.tolist() == [21] * 60
    assert "sampled" in str(result)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y_pred_neg": None}, "predictions lack y_pred_neg"),
        ({"y_pred_pos": np.zeros((3, 1), "f4")}, r"y_pred_pos has shape \(3, 1\)"),
        ({"y_pred_neg": np.zeros(9, "f4")}, r"y_pred_neg \(9,\); expected .*one list of negatives"),
        ({"y_pred_neg": np.zeros((2, 4), "f4")}, r"y_pred_neg \(2, 4\)"),
        ({"y_pred_neg": np.zeros((3, 4), "f8")}, "dtype float32 and y_pred_neg float64"),
        ({"y_pred_neg": np.zeros((3, 4), "i4")}, "dtype int32"),
        ({"y_pred_pos": np.array([0, np.nan, 1], "f4")}, "y_pred_pos contains NaN in row 1"),
        ({"y_pred_neg": np.full((3, 4), np.nan, "f4")}, "y_pred_neg contains NaN in row 0"),
    ],
)
def test_bad_predictions_are_named(change, said) -> None:
    arrays = {"y_pred_pos": np.zeros(3, "f4"), "y_pred_neg": np.zeros((3, 4), "f4")} | change
    with pytest.raises(InputError, match=said):
        evaluate({name: values for name, values in arrays.items() if values is not None})


def test_bad_options_are_named() -> None:
    arrays = {"y_pred_pos": np.zeros(3, "f4"), "y_pred_neg": np.zeros((3, 4), "f4")}
    with pytest.raises(UsageError, match="protocol='pbg' is unknown"):
        evaluate(arrays, protocol="pbg")
    with pytest.raises(UsageError, match="side='both' is unknown"):
        evaluate(arrays, side="both")
    with pytest.raises(UsageError, match="needs the ids"):
        evaluate(arrays, protocol="kgtrec", answers=[0, 1, 2])
    with pytest.raises(InputError, match=r"expected ids of shape \(3,\) and \(3, 4\)"):
        evaluate(arrays, protocol="kgtrec", answers=[0, 1], negatives=np.zeros((3, 4), int))
    with pytest.raises(InputError, match="there are no predictions"):
        evaluate({"y_pred_pos": np.zeros(0, "f4"), "y_pred_neg": np.zeros((0, 4), "f4")})
