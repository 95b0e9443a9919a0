"""Ranks of one model with sparse and with completed labels (Yang et al. 2022, Table 1).

A missing answer that ranks above a test answer counts as a mistake. When it is added to the labels,
it does not compete any more, so the ranks of the test answers improve: these are the ranks without
and with correction. Those of missing answers without correction follow from the completed ranks:
the macro counts, among which all answers compete, give the order of a question's answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgtrec._internal.arguments import RANKS, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.terms import NAMES
from kgtrec.ranking.instances import answer_label, question_text
from kgtrec.ranking.ranks import Ranks

ANSWER_KINDS = ("test", "missing")


@dataclass(frozen=True, eq=False)
class LabelCorrections(ShownAsTables):
    """Ranks of the answers of the sparse questions, without and with the added labels.

    - ranks: Completed ranks of these questions.
    - is_missing, bool (n,): Answers that only the completed labels have.
    - without, float64 (n,): Realistic rank with the sparse labels as the only ones. That of a
      missing answer is its rank if it were a further test answer.
    - names: Name of each question in the sparse ranks, by its number in the completed ranks.
    - n_new: Questions that only the completed labels ask; they are left out.
    """

    ranks: Ranks
    is_missing: Bools
    without: Float64
    names: Mapping[int, str]
    n_new: int

    @cached_property
    def corrected(self) -> Float64:
        """Realistic rank with the completed labels: float64, shape (n,)."""
        return self.ranks.rank()

    def table(self) -> Table:
        """Return a table per side: MRR without correction of the test answers, and with correction
        of the test answers and of all answers; averaged within each question first."""
        rows: list[tuple[Cell, ...]] = []
        sides = [name for code, name in enumerate(NAMES) if (self.ranks.side == code).any()]
        for name in [*sides, "both"] if len(sides) > 1 else sides:
            chosen = np.ones(len(self.ranks), bool)
            if name != "both":
                chosen = self.ranks.side == NAMES.index(name)
            rows.append((name, *self._summary(chosen)))
        columns = (
            "side, questions, test answers=test, missing answers=missing, MRR without=without:4, "
            "test with=test_with:4, all with=all_with:4"
        )
        return Table.from_rows(columns, rows)

    def _summary(self, chosen: Bools) -> tuple[Cell, ...]:
        test = chosen & ~self.is_missing
        return (
            len(np.unique(self.ranks.question[chosen])),
            int(test.sum()),
            int((chosen & self.is_missing).sum()),
            _mean_of_questions(self.ranks.question[test], 1 / self.without[test]),
            _mean_of_questions(self.ranks.question[test], 1 / self.corrected[test]),
            _mean_of_questions(self.ranks.question[chosen], 1 / self.corrected[chosen]),
        )

    def question_table(self, name: str) -> Table:
        """Return the ranks of a question's answers, test answers first, as Table 1 of the paper.

        UsageError if the sparse ranks have no question of this name.
        """
        number = next((n for n, other in self.names.items() if other == name), None)
        if number is None:
            some = ", ".join(sorted(self.names.values())[:3])
            raise UsageError(f"the sparse ranks have no question {name!r}; they have {some}, ...")
        rows = np.flatnonzero(self.ranks.question == number)
        rows = rows[np.lexsort((self.without[rows], self.is_missing[rows]))]
        return self._list(rows)

    def largest(self, n: int = 10) -> Table:
        """Return the `n` test answers whose reciprocal rank the correction changes most."""
        change = np.where(self.is_missing, 0.0, 1 / self.corrected - 1 / self.without)
        order = np.argsort(-change, kind="stable")[:n]
        return self._list(order[change[order] > 0])

    def _list(self, rows: Int64) -> Table:
        names = [self.names[number] for number in self.ranks.question[rows].tolist()]
        answers = self.ranks.answer[rows].tolist()
        return Table.from_columns(
            "name, question, answer, label, rank without=without:1, rank with=corrected:1",
            names,
            [question_text(self.ranks, row) for row in rows.tolist()],
            [answer_label(self.ranks, answer) for answer in answers],
            [ANSWER_KINDS[is_missing] for is_missing in self.is_missing[rows].tolist()],
            self.without[rows],
            self.corrected[rows],
            names=4,
        )


def _mean_of_questions(question: Int64, values: Float64) -> float:
    """Return the mean over questions of the mean within each; NaN without values."""
    if not len(values):
        return float("nan")
    _, index = np.unique(question, return_inverse=True)
    index = index.reshape(-1)
    return float((np.bincount(index, values) / np.bincount(index)).mean())


def label_corrections(sparse: Ranks, completed: Ranks) -> LabelCorrections:
    """Compare the ranks of the same scores with sparse and with completed labels.

    Parameters
    ----------
    sparse : Ranks
        Ranks with the answers that were known, filtered by their test split.
    completed : Ranks
        Ranks of the same scores on the graph whose test split has the missing answers, too.

    Returns
    -------
    LabelCorrections

    Raises
    ------
    InputError
        The completed ranks lack an answer of the sparse ones, an added label is also in train, or
        the ranks are not of the same scores: those of a test answer differ by something else than
        the added answers.
    UsageError
        Ranks without a graph, for relations or qualifiers, from lists or with a tolerance, or
        filtered without their own split.
    """
    for ranks in (sparse, completed):
        _check(ranks)
    _refuse_known_labels(sparse, completed)
    in_sparse, in_completed = _key_questions(sparse), _key_questions(completed)
    shared = {in_completed[key]: number for key, number in in_sparse.items() if key in in_completed}
    part = completed.subset(np.isin(completed.question, list(shared)))
    before = _key_answers(sparse, {number: number for number in in_sparse.values()})
    after = _key_answers(part, shared)
    lacking = before.keys() - after.keys()
    if lacking:
        row = min(before[key] for key in lacking)
        raise InputError(
            f"{len(lacking)} of {len(before)} answers are not in the completed ranks, first "
            f"{answer_label(sparse, int(sparse.answer[row]))!r} of {question_text(sparse, row)}; "
            "complete the labels by adding answers, and rank the same model on them"
        )
    is_missing = np.ones(len(part), bool)
    rows = np.array([after[key] for key in before], np.int64)
    is_missing[rows] = False
    without = _uncorrect(part, is_missing)
    expected = sparse.rank()[list(before.values())]
    _check_same_scores(part, rows, without, expected)
    names = dict(zip(sparse.question.tolist(), sparse.question_ids, strict=True))
    by_number = {number: names[other] for number, other in shared.items()}
    return LabelCorrections(part, is_missing, without, by_number, len(in_completed) - len(shared))


def _check(ranks: Ranks) -> None:
    """Raise UsageError for ranks whose answers have no order that follows from the counts."""
    require_type("ranks", ranks, Ranks, RANKS)
    facts = ranks.provenance
    reasons = {
        "without a graph": not ranks.of_graph,
        "for relations or qualifiers": ranks.kind != "entity" or ranks.given_relation is not None,
        "among sampled candidates": ranks.sampled,
        "from lists": ranks.unlisted is not None,
        "with a tolerance for ties": bool(facts.tie_tolerance),
        "with NaN answers": bool(ranks.answer_nan.any() or ranks.macro_answer_nan.any()),
        "whose filter lacks their own split": facts.filter_splits is not None
        and facts.split not in facts.filter_splits,
    }
    if problems := [reason for reason, applies in reasons.items() if applies]:
        raise UsageError(
            f"ranks {' and '.join(problems)} do not show what added labels change; rank heads and "
            "tails of a graph among all entities, filtered by all splits"
        )


def _refuse_known_labels(sparse: Ranks, completed: Ranks) -> None:
    """Raise InputError for added labels that train contains, which are not missing facts.

    Without correction they did not compete, so nothing changes by adding them.
    """
    known = [ranks.provenance.overlap.get("known", 0) for ranks in (sparse, completed)]
    added = known[1] - known[0]
    if added > 0:
        noun = "an added label is" if added == 1 else f"{added:,} added labels are"
        raise InputError(
            f"{noun} also in train, so no missing fact; remove the triples that train or valid has "
            "from the completed test split, and rank again"
        )


def _key_questions(ranks: Ranks) -> dict[str, int]:
    """Return the number of each question by its text, which is the same in both graphs."""
    numbers, rows = np.unique(ranks.question, return_index=True)
    texts = (question_text(ranks, row) for row in rows.tolist())
    return dict(zip(texts, numbers.tolist(), strict=True))


def _key_answers(ranks: Ranks, questions: Mapping[int, int]) -> dict[tuple[int, str], int]:
    """Return the row of each answer by the number of its question in the sparse ranks and label."""
    keys = zip(ranks.question.tolist(), ranks.answer.tolist(), strict=True)
    return {
        (questions[question], answer_label(ranks, answer)): row
        for row, (question, answer) in enumerate(keys)
    }


def _uncorrect(ranks: Ranks, is_missing: Bools) -> Float64:
    """Return the ranks if the missing answers were candidates like any other.

    Missing answers of the same question that score higher, or as high, move an answer down.
    """
    order = np.lexsort((ranks.macro_greater, ranks.question))
    question, greater = ranks.question[order], ranks.macro_greater[order]
    starts = np.flatnonzero(np.append(True, np.diff(question) != 0))
    ties = np.flatnonzero(np.append(True, (np.diff(question) != 0) | (np.diff(greater) != 0)))
    before = np.concatenate([[0], np.cumsum(is_missing[order])])
    question_table = starts[np.searchsorted(starts, np.arange(len(order)), side="right") - 1]
    number = np.searchsorted(ties, np.arange(len(order)), side="right") - 1
    first, last = ties[number], np.append(ties[1:], len(order))[number]
    above, equal = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    above[order] = before[first] - before[question_table]
    equal[order] = before[last] - before[first]
    equal -= is_missing  # an answer does not compete with itself
    return ranks.rank() + above + equal / 2


def _check_same_scores(ranks: Ranks, rows: Int64, without: Float64, expected: Float64) -> None:
    """Raise InputError unless the sparse ranks follow from the completed ones."""
    wrong = np.flatnonzero(without[rows] != expected)
    if len(wrong):
        row = int(rows[wrong[0]])
        raise InputError(
            f"the ranks of {len(wrong)} of {len(rows)} test answers do not follow from the added "
            f"answers, first {answer_label(ranks, int(ranks.answer[row]))!r} of "
            f"{question_text(ranks, row)}: rank {expected[wrong[0]]:g} without correction, but "
            f"{without[row]:g} by the completed ranks; give ranks of the same scores, with filters "
            "that differ only in the added answers, none of which is in another split"
        )
