"""Intervals of the median size and of CovGap, from the same draws in loops."""

from __future__ import annotations

from statistics import mean, median
from typing import Any

import numpy as np
import pytest
from sets_oracle import world

from kgtrec._internal.bootstrap import Resampling, on_draws
from kgtrec.study import answer_sets
from kgtrec.study.sets.sets import AnswerSets

FEW = Resampling(resamples=100)


def ends_of(sets: AnswerSets) -> dict[str, list[float]]:
    return {str(key): [low, high] for _, key, _, low, high in sets.table().rows}  # type: ignore[misc]


def drawn(n: int) -> list[list[int]]:
    """The questions of each draw, with repeats."""
    times: Any = on_draws(lambda times: times, n, FEW)
    return [np.repeat(np.arange(n), row.astype(int)).tolist() for row in times]


@pytest.mark.parametrize("cover", ["answer", "question-any", "question-all"])
@pytest.mark.parametrize("seed", [4, 5])
def test_intervals_are_of_draws_of_questions(seed: int, cover: str) -> None:
    test, valid = world(seed, levels=6, n=20)
    sets = answer_sets(
        test.ranks, "conformal:0.3", valid=valid.ranks, per="relation", cover=cover, resampling=FEW
    )
    sizes, ends = sets.sizes.tolist(), ends_of(sets)
    medians = [median(sizes[q] for q in questions) for questions in drawn(len(sizes))]
    assert ends["size.median"] == pytest.approx(np.quantile(medians, [0.025, 0.975]))

    of_question: dict[int, list[float]] = {}
    for row, number in enumerate(sets.question.tolist()):
        of_question.setdefault(number, []).append(float(sets.inside[row]))
    gaps = []
    for questions in drawn(len(sizes)):
        units: dict[int, list[float]] = {}
        for q in questions:
            values = of_question[q]
            if cover != "answer":
                values = [min(values) if cover == "question-all" else max(values)]
            units.setdefault(test.questions[q][1], []).extend(values)
        gaps.append(mean(abs(mean(values) - sets.claim) for values in units.values()))
    shift = sets["covgap"] - mean(gaps)
    due = np.quantile([max(gap + shift, 0.0) for gap in gaps], [0.025, 0.975])
    assert ends["covgap"] == pytest.approx(due)
    assert ends["covgap"][0] <= sets["covgap"] <= ends["covgap"][1]


def test_a_single_question_has_no_intervals() -> None:
    test, _ = world(5, levels=0)
    sets = answer_sets(test.ranks.subset([0]), "top:2", resampling=FEW)
    assert all(np.isnan(ends).all() for ends in ends_of(sets).values())
