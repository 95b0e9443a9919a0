"""Abstention: is a set empty where a question has no answer, and is it sure where it is right?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kgtrec._internal.arrays import Float64
from kgtrec._internal.table import ShownAsTables, Table


@dataclass(frozen=True, eq=False)
class RiskCurve(ShownAsTables):
    """Risk against coverage: questions are answered in descending order of confidence.

    - coverage, float64 (n,): Share of all questions that are answered.
    - risk, float64 (n,): Share of the answered questions whose set has no answer. Of questions with
      equal confidence, the mean over all orders.
    """

    coverage: Float64
    risk: Float64

    @property
    def aurc(self) -> float:
        """Area under the curve: the mean risk over all coverages."""
        return float(self.risk.mean()) if len(self.risk) else float("nan")

    def table(self) -> Table:
        """Return a table of the risk at up to 10 coverages."""
        n = len(self.risk)
        rows = np.unique(np.linspace(0, n - 1, min(n, 10)).round().astype(int))
        return Table.from_columns("coverage:4, risk:4", self.coverage[rows], self.risk[rows])


def risk_curve(confidence: Float64, wrong: Float64, sizes: Float64) -> RiskCurve:
    """Compute risk against coverage for the questions whose sets are not empty.

    - confidence, wrong, sizes, float64 (Q,): Confidence of each set, the probability that it has no
      answer, and its size.
    """
    rows = np.flatnonzero(sizes)
    order = rows[np.argsort(-confidence[rows], kind="stable")]
    differs = confidence[order][1:] != confidence[order][:-1]
    tie = np.concatenate([[0], np.cumsum(differs)])[: len(order)].astype(np.int64)
    mean = (np.bincount(tie, wrong[order]) / np.maximum(np.bincount(tie), 1))[tie]
    answered = np.arange(1, len(order) + 1)
    return RiskCurve(answered / len(confidence), np.cumsum(mean) / answered)


def abstention_table(sizes: Float64, unanswerable: Float64) -> Table:
    """Return precision, recall and F1 of empty sets, which claim that a question has no answer.

    - sizes, unanswerable, float64 (n,), (m,): Sizes of the sets of questions with and without an
      answer.
    """
    right, wrong = float((unanswerable == 0).sum()), float((sizes == 0).sum())
    precision = right / (right + wrong) if right + wrong else float("nan")
    recall = right / len(unanswerable)
    f1 = 2 * right / (right + wrong + len(unanswerable))
    columns = "questions without answer=unanswerable, empty, precision:4, recall:4, F1=f1:4"
    return Table.from_rows(
        columns, [(len(unanswerable), int(right + wrong), precision, recall, f1)]
    )
