"""What type checkers find in calls of kgtrec.trec; mypy checks it with the package.

An error that is not found is a needless ``type: ignore``, of which mypy warns.
"""

from __future__ import annotations

from typing import assert_type

from kgtrec import trec
from kgtrec.trec.eval.measure_rows import MeasureRow

assert_type(trec.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, ["map"]), dict[str, MeasureRow])
assert_type(trec.evaluate("a", "b", ["map"], summary=True), MeasureRow)
assert_type(trec.evaluate({1: {2: 1}}, {1: {2: 0.5}}, ["map"], level=2), dict[str, MeasureRow])
trec.evaluate("a", "b", ["map"], as_="frame").describe()
trec.evaluate("a", 5, ["map"])  # type: ignore[call-overload]
trec.evaluate("a", "b", ["map"], summary="yes")  # type: ignore[call-overload]
trec.Evaluator("a", ["map"], levels=2)  # type: ignore[call-arg]
