"""Paired values of sets against sets and loops."""

from __future__ import annotations

import numpy as np
import pytest
from sets_oracle import world

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.study import answer_sets, compare, samples_of_sets

FEW = Resampling(resamples=100)


def test_samples_have_the_value_of_each_question() -> None:
    test, _ = world(5, levels=0)
    systems = {f"top:{k}": answer_sets(test.ranks, f"top:{k}") for k in (1, 4)}
    keys = ("micro.recall", "macro.recall", "macro.f1", "size", "any", "all")
    for samples in samples_of_sets(systems, keys):
        assert samples.higher_is_better == (samples.name != "size")
        for number, k in enumerate((1, 4)):
            named = test.best(dict.fromkeys(test.questions, k), "all")
            due = []
            for question in test.questions:
                answers, chosen = test.answers[question], named[question]
                hits = len(answers & chosen)
                due += {
                    "micro.recall": [a in chosen for a in sorted(answers)],
                    "macro.recall": [hits / len(answers)],
                    "macro.f1": [2 * hits / (len(answers) + len(chosen))],
                    "size": [len(chosen)],
                    "any": [hits > 0],
                    "all": [hits == len(answers)],
                }[samples.name]
            assert samples.values[:, number] == pytest.approx(np.array(due, float), rel=1e-12)
            assert samples.means()[number] == pytest.approx(systems[f"top:{k}"][samples.name])
        assert samples.n_clusters == len(test.questions)
        assert len(compare(samples, test="t", resampling=FEW).pair_table()) == 1


def test_other_questions_and_measures_are_refused() -> None:
    test, valid = world(5, levels=0)
    one, two = (answer_sets(each.ranks, "top:2") for each in (test, valid))
    with pytest.raises(kgtrec.InputError, match="a and b cannot be compared"):
        samples_of_sets({"a": one, "b": two})
    with pytest.raises(kgtrec.UsageError, match="1 system cannot be compared"):
        samples_of_sets({"a": one})
    with pytest.raises(kgtrec.UsageError, match=r"cannot be paired by 'micro\.f1'"):
        samples_of_sets({"a": one, "b": one}, ["micro.f1"])
