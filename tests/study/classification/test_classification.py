"""Triple classification: files of labels; metrics, calibration and intervals against loops."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.study import LabelledTriples
from kgtrec.study.classification.classify import (
    METRICS,
    best_threshold,
    binary_metrics,
    calibrators,
    choose_thresholds,
    equal_mass_bins,
    isotonic,
    platt,
    reliability,
    uncalibrated,
)

SIZES = st.integers(2, 12)


@st.composite
def weighted(draw):
    """Labels of both kinds, scores with ties, predictions, and weights that leave both kinds."""
    n = draw(SIZES)
    labels = draw(arrays(bool, n))
    labels[:2] = True, False
    scores = draw(arrays(np.float64, n, elements=st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0])))
    weights = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    weights[:2] += 1
    return labels, scores, draw(arrays(bool, n)), weights.astype(np.float64)


@given(weighted())
def test_metrics_are_those_of_scikit_learn(case):
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    labels, scores, predicted, weights = case
    ours = binary_metrics(labels, scores, predicted, weights[None])[0]
    kind = {"y_true": labels, "y_pred": predicted, "sample_weight": weights}
    area = {"y_true": labels, "y_score": scores, "sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing predicted true: 0, with a warning
        theirs = [
            sklearn_metrics.accuracy_score(**kind),
            sklearn_metrics.precision_score(**kind),
            sklearn_metrics.recall_score(**kind),
            sklearn_metrics.f1_score(**kind),
            sklearn_metrics.matthews_corrcoef(**kind),
            sklearn_metrics.roc_auc_score(**area),
            sklearn_metrics.average_precision_score(**area),
        ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    alone = binary_metrics(labels[:1], scores[:1], labels[:1], np.ones((1, 1)))[0]
    assert (alone[0], *np.isnan(alone[-2:])) == (1, True, True)  # areas need both kinds


@given(weighted(), st.sampled_from(["accuracy", "f1"]))
def test_no_threshold_does_better(case, criterion):
    labels, scores, _, _ = case

    def quality(threshold):
        predicted = scores >= threshold
        if criterion == "accuracy":
            return sum(p == y for p, y in zip(predicted, labels, strict=True)) / len(labels)
        hits = sum(p and y for p, y in zip(predicted, labels, strict=True))
        return 2 * hits / (sum(predicted) + sum(labels))

    values = sorted(set(scores.tolist()))
    tried = [-np.inf, *((a + b) / 2 for a, b in pairwise(values)), np.inf]
    best = max(map(quality, tried))
    threshold = best_threshold(labels, scores, criterion)
    assert threshold == max(each for each in tried if quality(each) == best)


def test_a_threshold_between_neighbouring_floats_is_reached_by_the_upper_one():
    low = 1.0
    high = np.nextafter(low, 2)
    assert best_threshold(np.array([True, False]), np.array([high, low]), "accuracy") == high


def parts(n=60, seed=0, relations=3):
    random = np.random.default_rng(seed)
    triples = np.stack(
        [random.integers(0, 9, n), random.integers(0, relations, n), np.arange(n)], axis=1
    )
    labels = random.random(n) < 0.5
    scores = np.round(labels + random.normal(size=n), 1)
    return kgtrec.LabelledTriples(triples, labels, scores)


def test_a_relation_of_one_kind_has_the_overall_threshold():
    triples = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 4]])
    valid = kgtrec.LabelledTriples(triples, [1, 0, 1, 1], [4.0, 2.0, 0.5, 0.25])
    chosen = choose_thresholds(valid)
    assert chosen.of_relation == {0: 3.0}
    assert chosen.of(np.array([0, 1, 7])).tolist() == [3.0, chosen.overall, chosen.overall]
    assert choose_thresholds(valid, per_relation=False).of_relation == {}


def test_a_score_at_its_threshold_is_predicted_true():
    triples = np.array([[0, 0, 1], [0, 0, 2]])
    valid = LabelledTriples(triples, [1, 0], [2.0, 0.0])
    test = LabelledTriples(triples, [1, 0], [1.0, 0.5])
    result = kgtrec.classify(test, valid, resampling=Resampling(95, 100, 0))
    assert (result.thresholds.overall, result["accuracy"]) == (1.0, 1.0)


def test_the_result_the_long_way_round():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    valid, test = parts(200, 1), parts(120, 2)
    result = kgtrec.classify(test, valid, resampling=Resampling(95, 150, 3))
    predicted = []
    for (_, relation, _), score in zip(test.triples.tolist(), test.scores.tolist(), strict=True):
        rows = valid.triples[:, 1] == relation
        threshold = best_threshold(valid.labels[rows], valid.scores[rows], "accuracy")
        predicted.append(score >= threshold)
    predicted = np.array(predicted)
    assert result["accuracy"] == sklearn_metrics.accuracy_score(test.labels, predicted)
    by_relation = [
        sklearn_metrics.f1_score(test.labels[rows], predicted[rows])
        for rows in (test.triples[:, 1] == r for r in range(3))
    ]
    assert result.mean("f1") == pytest.approx(np.mean(by_relation), abs=1e-12)
    # Intervals: draw whole (head, relation) groups, and score the drawn triples again and again.
    groups = {}
    for row, (head, relation, _) in enumerate(test.triples.tolist()):
        groups.setdefault((head, relation), []).append(row)
    keys = sorted(groups)
    random = np.random.default_rng(3)
    areas = []
    for _ in range(150):
        rows = [row for i in random.integers(0, len(keys), len(keys)) for row in groups[keys[i]]]
        areas.append(sklearn_metrics.roc_auc_score(test.labels[rows], test.scores[rows]))
    ends = result.overall.values[METRICS.index("auc_roc"), 1:]
    np.testing.assert_allclose(ends, np.quantile(areas, (0.025, 0.975)), atol=1e-12)


def test_isotonic_is_that_of_scikit_learn():
    isotonic_of = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    valid, test = parts(80, 4), parts(80, 5)
    theirs = isotonic_of(out_of_bounds="clip").fit(valid.scores, valid.labels).predict(test.scores)
    ours = isotonic(valid.labels, valid.scores).probabilities(test.scores)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e4]))
def test_platt_has_the_largest_likelihood(seed, scale):
    valid = parts(50, seed)
    scores = valid.scores * scale + 3 * scale
    curve = platt(valid.labels, scores).probabilities
    n_true = int(valid.labels.sum())
    target = np.where(valid.labels, (n_true + 1) / (n_true + 2), 1 / (50 - n_true + 2))
    error = curve(scores) - target  # both derivatives of the likelihood are sums over it
    assert abs(error.mean()) < 1e-6
    assert abs((error * (scores - scores.mean())).mean()) < 1e-6 * scale


def test_scores_that_are_probabilities_stay_as_they_are():
    assert uncalibrated(np.array([0.0, 1.0])).probabilities(np.array([0.3, 1.2])).tolist() == [
        0.3,
        1.0,
    ]
    assert uncalibrated(np.array([0.0, 1.1])).probabilities(np.array([0.0])).tolist() == [0.5]
    assert [each.name for each in calibrators(parts())] == [
        "sigmoid of scores", "Platt", "isotonic",
    ]  # fmt: skip


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.sampled_from(np.linspace(0, 1, 9).tolist())),
    st.integers(2, 12),
)
def test_ties_stay_in_one_bin_and_bins_ascend(probabilities, n_bins):
    bins = equal_mass_bins(probabilities, n_bins)
    assert bins.min() >= 0
    assert bins.max() < n_bins
    order = np.argsort(probabilities, kind="stable")
    assert (np.diff(bins[order]) >= 0).all()
    assert len({*zip(probabilities.tolist(), bins.tolist(), strict=True)}) == len(
        set(probabilities.tolist())
    )
    for n in (100, 103):
        sizes = np.bincount(equal_mass_bins(np.random.default_rng(0).random(n), n_bins))
        assert len(sizes) == n_bins
        assert sizes.max() - sizes.min() <= 1


def test_brier_and_ece_by_hand():
    labels = np.array([True, False, True, True])
    scores = np.array([0.9, 0.2, 0.6, 0.3])
    curve = reliability(
        uncalibrated(scores), labels, scores, np.arange(4), 2, Resampling(resamples=100)
    )
    assert curve.brier[0] == pytest.approx((0.01 + 0.04 + 0.16 + 0.49) / 4)
    assert curve.predicted == pytest.approx([0.25, 0.75])
    assert curve.observed == pytest.approx([0.5, 1.0])
    assert curve.ece[0] == pytest.approx(0.25)
    assert curve.ece[1] <= curve.ece[0] <= curve.ece[2]


@pytest.mark.slow
@pytest.mark.parametrize("bent", [0.0, 0.15])
def test_the_interval_of_the_calibration_error_covers(bent):
    """Of many samples, at most 5 % (plus chance) have an interval without the true error."""
    random = np.random.default_rng(6)
    missed = 0
    for _ in range(80):
        claimed = random.random(300)
        true = np.clip(claimed + bent * np.sin(6 * claimed), 0, 1)
        labels = random.random(300) < true
        curve = reliability(
            uncalibrated(claimed), labels, claimed, np.arange(300), 10, Resampling(resamples=150)
        )
        bins = equal_mass_bins(claimed, 10)
        error = sum(abs((claimed - true)[bins == b].sum()) for b in range(10)) / 300
        missed += not curve.ece[1] <= error <= curve.ece[2]
    assert missed <= 9  # 4 expected at most; P(10 or more) below 1 %


def test_thresholds_beyond_all_scores_are_numbers_in_json():
    triples = np.array([[0, 0, 1], [1, 0, 2], [4, 0, 5], [2, 1, 3], [3, 1, 4]])
    above_all = kgtrec.LabelledTriples(triples, [1, 0, 0, 1, 0], [1.0, 2.0, 2.0, 2.0, 1.0])
    below_all = kgtrec.LabelledTriples(triples, [1, 0, 1, 1, 0], [1.0, 2.0, 1.0, 2.0, 1.0])
    for part, due in ((above_all, {"0": "inf", "1": 1.5}), (below_all, {"0": "-inf", "1": 1.5})):
        result = kgtrec.classify(part, part, resampling=Resampling(95, 100))
        relations = json.loads(result.to_json())["relations"]
        told = {name: row["threshold"] for name, row in relations.items()}
        assert told == due
        assert {name: float(value) for name, value in told.items()} == {
            row[0]: row[4] for row in result.relation_table().rows
        }


def test_what_is_shown():
    result = kgtrec.classify(
        parts(), parts(80, 1), resampling=Resampling(95, 100), relations=["a", "<b>", "c"]
    )
    for end, curve in zip(("", ".platt", ".isotonic"), result.curves, strict=True):
        assert (result[f"brier{end}"], result[f"ece{end}"]) == (curve.brier[0], curve.ece[0])
    assert set(result.to_dict()["relations"]) == {"a", "<b>", "c"}
    assert result.to_dict()["overall"]["F1"]["micro"] == result["f1"]
    assert "best accuracy on valid; 3 of 3 relations" in str(result)
    assert "100 draws of whole (head, relation) groups" in str(result)
