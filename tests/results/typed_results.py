"""What type checkers find in calls of ranking and evaluation; mypy checks it with the package."""

from __future__ import annotations

from typing import Any, assert_type

import kgtrec
from kgtrec._internal.table import Interval
from kgtrec.ranking.ranks import Ranks, RanksAndRun
from kgtrec.trec.files.run import Run


def use(scores: Any, questions: kgtrec.Questions) -> None:
    result = kgtrec.evaluate(scores, questions)
    mrr: float = result["mrr"]
    hits: float = result[kgtrec.Measure.parse("hits@10")]
    values: dict[str, float] = result.to_dict()
    name: str = result["mrr"]  # type: ignore[assignment]
    if isinstance(value := result["mrr"], Interval):  # of lists that lack answers
        assert_type(value, Interval)
    print(mrr, hits, values, name)

    ranks, run = kgtrec.rank(scores, questions, run_depth=20)
    assert_type(ranks, Ranks)
    assert_type(run, Run)
    assert_type(kgtrec.rank(scores, questions), RanksAndRun)
    assert_type(kgtrec.rank(scores, {"raw": questions})["raw"].run, Run)
    kgtrec.rank(scores, questions).save("ranks.parquet")  # type: ignore[attr-defined]
    kgtrec.compare([ranks, ranks])
    kgtrec.compare({"a": result, "b": result})
    kgtrec.compare([("a", ranks), ("b", ranks)])
    kgtrec.compare(ranks)  # type: ignore[call-overload]
