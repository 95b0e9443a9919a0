"""Verdicts by several measures and labels, against a slow definition."""

from __future__ import annotations

import math
from statistics import mean, stdev

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph, samples
from scipy import stats

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.study.comparison.report import SystemComparison, compare
from kgtrec.study.comparison.samples import samples_of_ranks
from kgtrec.study.comparison.verdicts import MEASURES, Verdicts, compare_verdicts

FEW = Resampling(resamples=100)
SIX = ("micro.mrr", "log-MRR", "0.5-MRR", "Hits@10", "macro.mrr", "MAP@20")


def comparison(values: object, name: str, level: float = 0.05, **more: bool) -> SystemComparison:
    return compare(samples(values, name=name, **more), test="t", resampling=FEW, level=level)


def scored(seed: int, strengths: list[float]) -> tuple[kgtrec.Questions, list[np.ndarray]]:
    """Scores without ties; stronger systems raise more answers, odd ones by less."""
    questions = graph(seed).questions("test")
    systems = []
    for number, strength in enumerate(strengths):
        rng = np.random.default_rng([seed, number])
        scores = rng.permuted(
            np.tile(np.arange(N_ENTITIES, dtype=np.float32), (len(questions), 1)), axis=1
        )
        for row, answers in enumerate(
            np.split(questions.answers.ids, questions.answers.offsets[1:-1])
        ):
            raised = answers[rng.random(len(answers)) < strength]
            scores[row, raised] += np.float32(30.5 if number % 2 else 60.5)
        systems.append(scores)
    return questions, systems


# -- The definition, slowly ------------------------------------------------------------------------


def slow_items(questions: kgtrec.Questions, scores: np.ndarray) -> dict[str, list[float]]:
    """Values per item of all six measures: per instance, or per question."""
    items: dict[str, list[float]] = {name: [] for name in SIX}
    answers_of = np.split(questions.answers.ids, questions.answers.offsets[1:-1])
    removed_of = np.split(questions.removed.ids, questions.removed.offsets[1:-1])
    for row, (answers, removed) in enumerate(zip(answers_of, removed_of, strict=True)):
        answers, known = {*answers.tolist()}, {*removed.tolist()}
        order = sorted(range(N_ENTITIES), key=lambda e: -float(scores[row, e]))
        order = [entity for entity in order if entity not in known or entity in answers]
        ranks: dict[int, int] = {}
        precisions = []
        for place, entity in enumerate(order, start=1):
            if entity in answers:
                ranks[entity] = place - len(ranks)  # the answers before it are filtered
                precisions.append(len(ranks) / place if place <= 20 else 0.0)
        for answer in sorted(answers):  # systems are paired by answer
            rank = ranks[answer]
            items["micro.mrr"].append(1 / rank)
            items["log-MRR"].append(1 / math.log2(rank + 1))
            items["0.5-MRR"].append(rank**-0.5)
            items["Hits@10"].append(float(rank <= 10))
        items["macro.mrr"].append(1 / min(ranks.values()))
        items["MAP@20"].append(sum(precisions) / len(answers))
    return items


def slow_p(gap: list[float]) -> float:
    deviation = stdev(gap)
    if deviation == 0:
        return 1.0 if mean(gap) == 0 else 0.0
    t = mean(gap) / (deviation / len(gap) ** 0.5)
    return float(2 * stats.t.sf(abs(t), len(gap) - 1))


def slow_holm(p: list[float]) -> list[float]:
    order = sorted(range(len(p)), key=lambda k: p[k])
    fixed, largest = [0.0] * len(p), 0.0
    for step, k in enumerate(order):
        largest = max(largest, (len(p) - step) * p[k])
        fixed[k] = min(1.0, largest)
    return fixed


def slow_verdicts(
    systems: list[dict[str, list[float]]], level: float
) -> dict[tuple[int, int, str], tuple[int, bool, float, float]]:
    """Sign and significance of every pair i < j by every measure, mean difference, corrected p."""
    pairs = [(i, j) for i in range(len(systems)) for j in range(i + 1, len(systems))]
    verdicts = {}
    for name in SIX:
        gaps = [
            [a - b for a, b in zip(systems[i][name], systems[j][name], strict=True)]
            for i, j in pairs
        ]
        for pair, gap, p in zip(pairs, gaps, slow_holm([*map(slow_p, gaps)]), strict=True):
            total = 0 if abs(mean(gap)) < 1e-12 else mean(gap)
            sign = (total > 0) - (total < 0)
            verdicts[(*pair, name)] = (sign, p < level and sign != 0, mean(gap), p)
    return verdicts


@pytest.mark.parametrize("seed", range(6))
def test_verdicts_are_those_of_a_slow_definition(seed: int) -> None:
    strengths = [[0.5, 0.55], [0.7, 0.4, 0.45], [0.3, 0.9, 0.8, 0.2]][seed % 3]
    questions, systems = scored(seed, strengths)
    ranks = {
        f"s{k}": kgtrec.evaluate(one, questions, progress=False).ranks
        for k, one in enumerate(systems)
    }
    columns = samples_of_ranks(ranks, MEASURES)
    verdicts = compare_verdicts({"": [compare(one, test="t", resampling=FEW) for one in columns]})
    due = slow_verdicts([slow_items(questions, one) for one in systems], 0.05)
    assert verdicts.measures == SIX
    assert len(verdicts.pairs) == len(due) // 6
    for row, (i, j) in enumerate(verdicts.pairs.tolist()):
        turn = 1 if i < j else -1
        expected = [due[(min(i, j), max(i, j), name)] for name in SIX]
        assert verdicts.sign[row].tolist() == [turn * sign for sign, *_ in expected]
        assert verdicts.significant[row].tolist() == [sure for _, sure, *_ in expected]
        assert verdicts.difference[row].tolist() == pytest.approx(
            [turn * gap for _, _, gap, _ in expected], abs=1e-12
        )
        assert verdicts.p[row].tolist() == pytest.approx([p for *_, p in expected], rel=1e-6)
        assert expected[0][0] * turn >= 0  # the first is ahead by the first measure
        kinds = {(sign, sure) for sign, sure, *_ in expected}
        assert bool(verdicts.agree()[row]) == (len(kinds) == 1)
    n_agree = int(verdicts.agree().sum())
    if len(verdicts.pairs) > 1:
        assert f"All 6 agree on {n_agree} of {len(verdicts.pairs)} pairs" in verdicts.sentence()
    else:
        assert ("all 6 agree." in verdicts.sentence()) == (n_agree == 1)


# -- Sentences -------------------------------------------------------------------------------------

AHEAD = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.9, 0.0], [1.0, 0.2], [0.7, 0.0]]
BEHIND = [[b, a] for a, b in AHEAD]
UNSURE = [[1.0, 0.0], [0.0, 0.9]] * 3  # ahead on average, but far from significant
BACK = [[b, a] for a, b in UNSURE]
SAME = [[0.5, 0.5], [0.2, 0.2]] * 3


def sentence(*columns: list[list[float]], labels: int = 1) -> str:
    made = [comparison(values, f"m{k}") for k, values in enumerate(columns)]
    each = len(made) // labels
    return compare_verdicts(
        {f"L{k}": made[k * each : (k + 1) * each] for k in range(labels)}
    ).sentence()


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ((AHEAD, AHEAD), "s0 is better than s1 (p < 0.05): both agree."),
        ((BEHIND, BEHIND), "s1 is better than s0 (p < 0.05): both agree."),
        ((UNSURE, UNSURE, UNSURE), "s0 and s1 do not differ significantly: all 3 agree."),
        ((SAME, SAME), "s0 and s1 do not differ significantly: both agree."),
        (
            (UNSURE, BACK, SAME),
            "s0 and s1 do not differ significantly: all 3 agree on that, but not on the sign; s0 "
            "is ahead by m0; s1 is ahead by m1; equal by m2.",
        ),
        (
            (AHEAD, UNSURE, BACK, SAME, AHEAD, BEHIND),
            "s0 is better than s1 (p < 0.05) by 2 of 6; s1 is better by m5; not significant by m1; "
            "not significant, but s1 is ahead, by m2; equal by m3.",
        ),
        (
            (AHEAD, BEHIND, BEHIND),
            "s1 is better than s0 (p < 0.05) by 2 of 3; s0 is better by m0.",
        ),
    ],
)
def test_a_sentence_names_the_verdicts_that_differ(columns, text: str) -> None:
    assert sentence(*columns) == text


def test_labels_are_named_only_if_there_are_several() -> None:
    text = sentence(AHEAD, UNSURE, AHEAD, AHEAD, labels=2)
    assert text == "s0 is better than s1 (p < 0.05) by 3 of 4; not significant by m1 (L0)."
    both = compare_verdicts(
        {"sparse": [comparison(AHEAD, "m")], "complete": [comparison(BEHIND, "m")]}
    )
    assert "s1 is better by M (complete)" in both.sentence()
    assert both.table().keys[3] == "labels"
    assert [row[-1] for row in both.table().rows] == ["better", "worse"]


def test_a_lower_value_is_ahead_if_lower_is_better() -> None:
    made = [comparison(AHEAD, "a"), comparison(AHEAD, "b", higher_is_better=False)]
    verdicts = compare_verdicts({"": made})
    assert verdicts.sign.tolist() == [[1, -1]]
    assert verdicts.difference[0, 0] == verdicts.difference[0, 1] > 0


def test_a_difference_of_rounding_is_none() -> None:
    thirds = [[0.1, 0.3], [0.2, 0.2], [0.3, 0.1]]
    verdicts = compare_verdicts({"": [comparison(thirds, "a"), comparison(thirds, "b")]})
    assert verdicts.sign.tolist() == [[0, 0]]


def test_many_disagreements_are_counted() -> None:
    rng = np.random.default_rng(0)
    noise = rng.random((40, 6)) * 1e-3
    up, down = noise + np.arange(6), noise - np.arange(6)
    verdicts: Verdicts = compare_verdicts({"": [comparison(up, "a"), comparison(down, "b")]})
    assert not verdicts.agree().any()
    text = verdicts.sentence()
    assert text.startswith("Both agree on 0 of 15 pairs of systems.")
    assert text.endswith("The table has 10 more such pairs.")
    assert len(verdicts.table()) == 30
