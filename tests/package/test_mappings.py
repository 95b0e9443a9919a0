"""Results that are read by key: `[]`, `get` and `in` agree for every spelling of a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import kgtrec
from kgtrec import trec
from kgtrec.errors import UsageError

QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
RUN = {"q1": {"a": 0.5, "b": 0.75, "d": 0.25}, "q2": {"c": 1.0, "d": 2.0}}
MEASURES = ["nDCG@10", "map_cut.20", "recip_rank"]
OF_TREC = [*MEASURES, "ndcg_cut_10", "ndcg_cut.10", "AP@20", "map_cut_20", "RR"]
OF_RANKS = ["mrr", "MRR", "hits@10", "hits_at_10", "all.realistic.micro.mrr", "macro.ndcg_cut_10"]
UNKNOWN = ["nonsense", "", "nDCG@", "tail.nonsense"]


def make_result(**options: Any) -> kgtrec.Result:
    questions = kgtrec.Questions.from_answers([[0], [1, 2]], labels=9)
    scores = np.random.default_rng(1).random((2, 9))
    return kgtrec.evaluate(scores, questions, **options)


MAPPINGS: dict[str, tuple[Callable[[], Mapping[str, Any]], list[str]]] = {
    "result": (make_result, OF_RANKS),
    "result of measures": (lambda: make_result(measures=["mrr"]), OF_RANKS),
    "row of a query": (lambda: trec.evaluate(QRELS, RUN, MEASURES)["q1"], OF_TREC),
    "row of arrays": (lambda: trec.evaluate(QRELS, RUN, [*MEASURES, "runid"])["q2"], OF_TREC),
    "summary": (lambda: trec.evaluate(QRELS, RUN, MEASURES, summary=True), OF_TREC),
    "summary of rows": (
        lambda: trec.summarise(trec.evaluate(QRELS, RUN, MEASURES), MEASURES),
        OF_TREC,
    ),
}


@pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")
@pytest.mark.parametrize("name", MAPPINGS)
def test_every_way_of_reading_a_key_agrees(name: str) -> None:
    make, known = MAPPINGS[name]
    values = make()
    assert len(values) == len([*values]) == len({*values})
    for key in [*values, *known]:
        assert key in values
        assert values.get(key) == values.get(key, "none") == values[key]
    for key in UNKNOWN:
        assert key not in values
        assert values.get(key) is None
        assert values.get(key, "none") == "none"
        with pytest.raises((KeyError, UsageError)):
            values[key]
