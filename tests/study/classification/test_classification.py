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
from transcripts import run_command

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import LabelWarning
from kgtrec.study import read_labelled
from kgtrec.study.classification.classify import (
    METRICS,
    best_threshold,
    binary_metrics,
    equal_mass_bins,
    isotonic,
    leave_uncalibrated,
    platt,
    reliability,
)

VALID = "ann\tlikes\tbob\t1\t0.9\nann\tlikes\tcleo\t-1\t0.1\n"


def test_triples_that_are_both_true_and_false(tmp_path, monkeypatch) -> None:
    """Case classify-contradictory-line: as in WN11 and FB13, whose lines all count."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "valid.tsv").write_text(VALID)
    dan = "ann\tlikes\tdan\t{}\t0.8\n"
    (tmp_path / "test.tsv").write_text(
        dan.format(1) + dan.format(-1) + "ann\tlikes\teve\t-1\t0.2\n"
    )
    ids: dict[str, int] = {}
    test, valid = (read_labelled(f"{name}.tsv", ids) for name in ("test", "valid"))
    found = "test: 1 triple is both true and false; the first is true at test.tsv:1 and false at "
    with pytest.warns(LabelWarning, match=found + "test.tsv:2. All rows count") as seen:
        assert kgtrec.classify(test, valid)["accuracy"] == 2 / 3
    assert len(seen) == 1
    done = run_command("classify", "--valid-triples", "valid.tsv", "--test-triples", "test.tsv")
    assert (done.code, found in done.err, "accuracy     0.6667" in done.out) == (0, True, True)
    several = kgtrec.LabelledTriples([[0, 0, 1], [2, 0, 3]] * 3, [1, 0, 0, 1, 1, 1], [1.0] * 6)
    with pytest.warns(LabelWarning, match="2 triples .* true in row 0 and false in row 2"):
        kgtrec.classify(several, several.negate(), criterion="f1")


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


def parts(n=60, seed=0, relations=3):
    random = np.random.default_rng(seed)
    triples = np.stack(
        [random.integers(0, 9, n), random.integers(0, relations, n), np.arange(n)], axis=1
    )
    labels = random.random(n) < 0.5
    scores = np.round(labels + random.normal(size=n), 1)
    return kgtrec.LabelledTriples(triples, labels, scores)


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
        leave_uncalibrated(scores), labels, scores, np.arange(4), 2, Resampling(resamples=100)
    )
    assert curve.brier[0] == pytest.approx((0.01 + 0.04 + 0.16 + 0.49) / 4)
    assert curve.predicted == pytest.approx([0.25, 0.75])
    assert curve.observed == pytest.approx([0.5, 1.0])
    # Chance adds to the distances of bins: the lower end subtracts what it may have added.
    errors, bins = scores - labels, np.array([1, 0, 1, 0])
    rows = np.random.default_rng(0).integers(0, 4, (100, 4))
    drawn = np.array([np.bincount(bins[one], errors[one], 2) for one in rows]) / 4
    added = np.abs(drawn - np.bincount(bins, errors) / 4).sum(axis=1)
    low, high = (np.quantile(one, 0.975) for one in (added, np.abs(drawn).sum(axis=1)))
    assert curve.ece == pytest.approx([0.25, max(0.0, 0.25 - low), high])


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


@pytest.mark.parametrize("exponent", [400, 1000, 1020])
def test_calibration_does_not_depend_on_the_unit_of_scores(exponent: int) -> None:
    """Scores near the largest float overflow nowhere: any numpy warning is an error."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.5
    scores, unit = rng.normal(size=200).clip(-1, 1) + labels, 2.0**exponent
    due = platt(labels, scores).probabilities(scores)
    got = platt(labels, scores * unit).probabilities(scores * unit)
    assert np.array_equal(got, due)


@pytest.mark.parametrize("unit", [2.0**997, 2.0**1020, 2.0**-990])
def test_scores_near_the_ends_of_floats_through_the_command(tmp_path, monkeypatch, unit) -> None:
    """No warning of numpy; the values are those of the same scores in another unit."""
    monkeypatch.chdir(tmp_path)
    rng, loss = np.random.default_rng(5), 0.0
    for name in ("valid", "test"):
        true = np.arange(40) % 2
        scores = rng.normal(size=40) + true
        for prefix, values in (("", scores), ("far-", scores * unit)):
            lines = (
                f"e{i}\tr{i % 3}\te{i + 1}\t{2 * true[i] - 1}\t{values[i]!r}\n".replace(
                    "np.float64(", ""
                ).replace(")", "")
                for i in range(40)
            )
            (tmp_path / f"{prefix}{name}.tsv").write_text("".join(lines))
        # The logistic function of such a score is 0 or 1; of one near 0 it is 1/2.
        chance = np.where(unit > 1, scores > 0, 0.5)
        loss = float(np.mean((chance - true) ** 2))
    found = []
    for prefix in ("", "far-"):
        words = (
            "classify",
            "--valid-triples",
            f"{prefix}valid.tsv",
            "--test-triples",
            f"{prefix}test.tsv",
            "--resamples",
            "200",
            "--format",
            "json",
        )
        done = run_command(*words)
        assert (done.code, done.err) == (0, ""), done.err
        found.append(json.loads(done.out))
    near, far = found
    brier = far["calibration"]["sigmoid of scores"]["brier"]
    assert brier == pytest.approx(loss)
    assert far["overall"] == near["overall"]
    for relation, row in near["relations"].items():
        assert far["relations"][relation]["threshold"] == row["threshold"] * unit
    for name in ("Platt", "isotonic"):
        ours, theirs = (one["calibration"][name]["brier"] for one in (far, near))
        assert ours == pytest.approx(theirs, rel=1e-6), name
