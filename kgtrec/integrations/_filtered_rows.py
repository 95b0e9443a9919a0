"""Ranks from rows of scores in which known answers are NaN, without any questions.

Training libraries filter such rows themselves and do not say which triples they know. The NaN show
it: together with the evaluated triples they determine the questions, and so every count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kgtrec._internal.arrays import Float64, Int64, Integers
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.integrations._models import ids_of, questions_of, require_entity_sides
from kgtrec.questions.api import Questions
from kgtrec.questions.graph_terms import fact_rows
from kgtrec.questions.questions import describe_question
from kgtrec.questions.terms import NAMES, SIDES
from kgtrec.ranking.columns import EQUAL, GREATER, MICRO, TIED_AHEAD
from kgtrec.ranking.ranks import Ranks

_ASKED = {"head": 0, "tail": 2}


class FilteredRows:
    """Counts of the answers of rows, one row per triple and side. A later row replaces an earlier.

    Parameters
    ----------
    n_entities : int
        Number of columns of the rows.
    filtered : bool
        True if a NaN marks a known answer; otherwise it is an error.
    higher_is_better : bool
        False for distances.
    """

    def __init__(self, n_entities: int, filtered: bool, higher_is_better: bool) -> None:
        self.n_entities, self.filtered = n_entities, filtered
        self.higher_is_better = higher_is_better
        self.dtype = ""
        order = Labels.decimal(n_entities).trec_order
        self._order = np.arange(n_entities) if order is None else order.astype(np.int64)
        self._rows: list[tuple[str, Int64, Int64, Float64]] = []
        self._known: list[Int64] = []
        self._questions: set[tuple[str, int, int]] = set()  # whose known answers were collected

    def add(self, hrt_batch: Any, target: str, scores: Any) -> None:
        """Count the candidates above, beside and tied ahead of each row's answer.

        Shapes: hrt_batch int (n, 3), scores (n, n_entities), on any device.
        """
        require_entity_sides(target)
        triples, scores = ids_of(hrt_batch), scores.detach()
        answer = torch.from_numpy(triples[:, _ASKED[target]]).to(scores.device)[:, None]
        order = torch.from_numpy(self._order).to(scores.device)
        answer_score = scores.gather(1, answer)
        is_nan = torch.isnan(scores)
        bad = is_nan.gather(1, answer)[:, 0] if self.filtered else is_nan.any(dim=1)
        if bad.any():
            row = int(bad.nonzero()[0])
            raise InputError(
                f"scores: NaN for the {target} of triple {tuple(triples[row].tolist())}; fix the "
                "model"
            )
        is_above = scores > answer_score if self.higher_is_better else scores < answer_score
        is_tied = scores == answer_score
        is_ahead = is_tied & (order > order[answer])
        counts = [is_above.sum(dim=1), is_tied.sum(dim=1) - 1, is_ahead.sum(dim=1)]
        counts.append((~is_nan).sum(dim=1))
        values = answer_score[:, 0].double().cpu().numpy()
        self.dtype = str(scores.dtype).removeprefix("torch.")
        self._rows.append((target, triples, ids_of(torch.stack(counts)), values))
        self._collect_known(triples, target, is_nan)

    def _collect_known(self, triples: Int64, target: str, is_nan: torch.Tensor) -> None:
        """Keep the known triples of questions that have no row yet."""
        others = np.delete(triples, _ASKED[target], axis=1)
        rows = []
        for row, (first, second) in enumerate(others.tolist()):
            if (target, first, second) not in self._questions:
                self._questions.add((target, first, second))
                rows.append(row)
        at, entity = ids_of(is_nan[rows].nonzero()).T
        known = triples[rows][at]
        known[:, _ASKED[target]] = entity
        self._known.append(known)

    def ranks(self) -> Ranks:
        """Return the ranks of all rows.

        Raises
        ------
        UsageError
            A triple has a row for one side only.
        InputError
            The NaN of two rows contradict each other.
        """
        targets = {target for target, *_ in self._rows}
        triples = np.concatenate([rows for _, rows, *_ in self._rows])
        known = np.unique(np.concatenate(self._known), axis=0) if self.filtered else None
        n_relations = 1 + max(int(part[:, 1].max(initial=0)) for part in (triples, *self._known))
        questions = questions_of(
            triples,
            None if known is None else [known],
            (self.n_entities, n_relations),
            "both" if len(targets) == 2 else next(iter(targets)),
        )
        counts, values = self._by_instance(questions)
        macro = counts[MICRO].copy()
        if self.filtered:  # micro counts lack the question's other answers
            answers = questions.answers.ids
            macro += _counts_among_answers(
                questions.instance_question,
                values if self.higher_is_better else -values,
                self._order[answers],
            )
        described = {
            "dtype": self.dtype,
            "rows": "instances",
            "higher_is_better": self.higher_is_better,
            "nan": "error",
            "nan_count": 0,
            "kernel_path": "torch",
        }
        scored = np.zeros(questions.n_instances, bool)
        both = np.concatenate([counts[MICRO], macro])
        return Ranks.from_counts(questions, both, (scored, scored), lambda: described)

    def _by_instance(self, questions: Questions) -> tuple[Int64, Float64]:
        """Order rows by instance: counts, int64 (4, n_instances), and scores of the answers.

        UsageError if an instance has no row; InputError if the NaN contradict the questions.
        """
        n = questions.n_instances
        counts, values = np.full((4, n), -1), np.empty(n)
        codes = [NAMES[code] for code in SIDES[questions.sides]]
        for target, triples, of_rows, scores in self._rows:
            facts = fact_rows(questions.of_graph("triples"), triples)
            triple_sides = facts + codes.index(target) * len(questions.triples)
            instance = questions.triple_rows[triple_sides]
            counts[:, instance], values[instance] = of_rows, scores
        n_scores = counts[3]
        if (n_scores < 0).any():
            question = int(questions.instance_question[np.argmin(n_scores)])
            raise UsageError(
                f"{describe_question(questions, question)} has no row of scores; pass every triple "
                "for both sides"
            )
        wrong = np.flatnonzero(n_scores != questions.candidates)
        if len(wrong):
            question = int(questions.instance_question[wrong[0]])
            raise InputError(
                f"{describe_question(questions, question)} has {n_scores[wrong[0]]} scores that "
                f"are not NaN, but the filter leaves {questions.candidates[wrong[0]]} candidates; "
                "fix the model, or pass the same filter triples for both sides"
            )
        return counts, values


def _counts_among_answers(question: Integers, score: Float64, order: Int64) -> Int64:
    """Count the other answers of its question above, beside and tied ahead of each answer.

    Shapes: all (n,) -> int64 (3, n).
    """
    by_rank = np.lexsort((-order, -score, question))
    question, score = question[by_rank], score[by_rank]
    is_first = np.append(True, question[1:] != question[:-1])
    is_new = is_first | np.append(True, score[1:] != score[:-1])
    first, tied = np.flatnonzero(is_first), np.flatnonzero(is_new)
    tie = np.cumsum(is_new) - 1
    start = tied[tie]
    counts = np.empty((3, len(score)), np.int64)
    counts[GREATER, by_rank] = start - first[np.cumsum(is_first) - 1]
    counts[EQUAL, by_rank] = np.diff(np.append(tied, len(score)))[tie] - 1
    counts[TIED_AHEAD, by_rank] = np.arange(len(score)) - start
    return counts
