"""Answers that change from one model or seed to another: gains and losses, by side and instance.

Two models with the same MRR may be right about different questions. Gains and losses count
instances (an answer of a question) by realistic ranks. Best answers count questions, and need runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools, Int64
from kgtrec._internal.named import Named, by_names_of
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, PathName, UsageError, about, choose
from kgtrec.questions.terms import NAMES
from kgtrec.ranking.instances import answer_label, question_text
from kgtrec.study.comparison.samples import SystemRanks, align_ranks, ranks_by_name
from kgtrec.study.section import Section

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.columns import RunColumns
    from kgtrec.trec.files.run import Run


CUTOFFS = (1, 3, 10)


@dataclass(frozen=True, eq=False)
class AnswerChanges(ShownAsTables):
    """Ranks of the same answers by two models.

    - names: Names of the model before and the model after.
    - before, after: Ranks of the same instances in the same order.
    - best, int64 (q, 4): A row per question that both runs list; None without runs. The first
      column is the side: 0 asks for the head, 1 for the tail, 2 for the relation. Then come three
      flags. The first is 1 if both models put the same entity first. The others are 1 if the first
      entity of the model before, and of the model after, is an answer.
    """

    names: tuple[str, str]
    before: Ranks
    after: Ranks
    cutoffs: tuple[int, ...]
    best: Int64 | None

    def _subject(self) -> str:
        return f" from {self.names[0]} to {self.names[1]}"

    def _lines(self) -> tuple[str, str]:
        gained, lost = (int(mask.sum()) for mask in self.mark_changes(self.cutoffs[0]))
        return (
            f"{len(self.before):,} instances",
            f"Hits@{self.cutoffs[0]}: {gained:,} gained, {lost:,} lost",
        )

    def __str__(self) -> str:
        tables = [self.table(), self.best_table(), self.largest()]
        return "\n\n".join(table.to_text() for table in tables if table is not None)

    def mark_changes(self, k: int) -> tuple[Bools, Bools]:
        """Mark instances among the k best after but not before, and the reverse; bool (n,) each."""
        before, after = (ranks.rank() <= k for ranks in (self.before, self.after))
        return after & ~before, before & ~after

    def table(self) -> Table:
        """Return a table of Hits@k, and of the instances gained and lost, per side and k."""
        rows: list[tuple[Cell, ...]] = []
        ranks = [model_ranks.rank() for model_ranks in (self.before, self.after)]
        for name, chosen in by_side(self.before.side):
            for k in self.cutoffs:
                gained, lost = (int(mask[chosen].sum()) for mask in self.mark_changes(k))
                hits = [float((model_ranks[chosen] <= k).mean()) for model_ranks in ranks]
                n = int(chosen.sum())
                rows.append((name, f"Hits@{k}", n, *hits, gained, lost, (gained + lost) / n))
        before, after = self.names
        columns = [
            "side",
            "measure",
            "instances",
            f"{before}=before:4",
            f"{after}=after:4",
            "gained",
            "lost",
            "changed:4",
        ]
        return Table.from_rows(columns, rows, names=2)

    def best_table(self) -> Table | None:
        """Return a table that counts questions per side by the first entities of both models.

        It distinguishes questions with the same first entity, and models whose first is an answer.
        """
        if self.best is None:
            return None
        rows: list[tuple[Cell, ...]] = []
        for name, chosen in by_side(self.best[:, 0]):
            same, first, second = self.best[chosen, 1:].T > 0
            counts = (
                same & first,
                same & ~first,
                ~same & first & ~second,
                ~same & second & ~first,
                ~same & first & second,
                ~same & ~first & ~second,
            )
            agreement = float(same.mean())
            rows.append((name, len(same), agreement, *(int(mask.sum()) for mask in counts)))
        before, after = self.names
        columns = [
            "side",
            "questions",
            "same first=agreement:4",
            "right=same_right",
            "wrong=same_wrong",
            f"only {before} right=only_before_right",
            f"only {after} right=only_after_right",
            "both right",
            "both wrong",
        ]
        return Table.from_rows(columns, rows)

    def largest(self, n: int = 10, kind: str = "changed") -> Table:
        """Return a table of the `n` instances whose reciprocal ranks differ most."""
        change = 1 / self.after.rank() - 1 / self.before.rank()
        order_by = {"changed": np.abs(change), "gained": change, "lost": -change}
        choose("kind", kind, order_by)
        order = np.argsort(-order_by[kind], kind="stable")[:n]
        rows = order[order_by[kind][order] > 0].tolist()
        before, after = self.names
        return Table.from_columns(
            ["question", "answer", f"{before}=before:1", f"{after}=after:1"],
            [question_text(self.before, row) for row in rows],
            [answer_label(self.before, int(self.before.answer[row])) for row in rows],
            *(ranks.rank()[rows] for ranks in (self.before, self.after)),
            names=2,
        )


def answer_changes(
    ranks: Named[SystemRanks],
    runs: Named[Run | RunColumns | PathName] | None = None,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
) -> AnswerChanges:
    """Compare the answers of two models: gains and losses from the first to the second.

    Parameters
    ----------
    ranks : mapping of str to Ranks or Result, or sequence of two
        Ranks of the same questions by two models, by their names; in a sequence, they are called
        "system 1" and "system 2", unless it has pairs (name, ranks).
    runs : two of Run, RunColumns or path, or mapping of str to them, optional
        Runs of the same models in the same order, or by the same names; for their best answers.
    cutoffs : sequence of int
        k of Hits@k.

    Raises
    ------
    UsageError
        Not two models, or not as many runs; a cutoff below 1.
    InputError
        Ranks of different questions or without labels, runs that share no question, or a malformed
        run.
    """
    ranks = ranks_by_name("ranks", ranks)
    if len(ranks) != 2:
        raise UsageError(f"changes are between two models; {argument('ranks')} has {len(ranks)}")
    of_models = None if runs is None else by_names_of("runs", runs, ranks, "model")
    (changes,) = changes_of_pairs(ranks, of_models, cutoffs=cutoffs)
    return changes


def changes_of_pairs(
    ranks: Mapping[str, Ranks],
    runs: Mapping[str, Run | RunColumns | PathName] | None = None,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
) -> list[AnswerChanges]:
    """Compare the answers of each of several models with those of each later one."""
    if not cutoffs or min(cutoffs) < 1:
        raise UsageError(
            f"{argument('cutoffs', list(cutoffs))} is not a list of cutoffs; give cutoffs of 1 or "
            "more"
        )
    aligned = align_ranks(ranks)
    firsts = {name: read_firsts(name, aligned[name], run) for name, run in (runs or {}).items()}
    first_ranks = next(iter(aligned.values()))
    answers = answers_by_question(first_ranks) if firsts else {}
    sides = (
        dict(zip(first_ranks.question_ids, first_ranks.side.tolist(), strict=True))
        if firsts
        else {}
    )
    return [
        AnswerChanges(
            (a, b),
            aligned[a],
            aligned[b],
            tuple(cutoffs),
            _compare_firsts(answers, sides, firsts[a], firsts[b])
            if {a, b} <= firsts.keys()
            else None,
        )
        for a, b in combinations(aligned, 2)
    ]


def _compare_firsts(
    answers: Mapping[str, set[str]],
    sides: Mapping[str, int],
    first: Mapping[str, str],
    second: Mapping[str, str],
) -> Int64:
    """Compare the first entities of two models; return the rows of `AnswerChanges.best`."""
    rows = [
        (
            sides[name],
            first[name] == second[name],
            first[name] in answers_of_question,
            second[name] in answers_of_question,
        )
        for name, answers_of_question in answers.items()
        if name in first and name in second
    ]
    if not rows:
        raise InputError("the runs share no question; give runs of the same questions")
    return np.array(rows, np.int64)


def answers_by_question(ranks: Ranks) -> dict[str, set[str]]:
    """Return the labels of the answers of every question."""
    if ranks.entity_labels is None:
        raise InputError("these ranks have no entity labels, which runs need; leave the runs out")
    answers: dict[str, set[str]] = {}
    in_order = ranks.subset(np.argsort(ranks.question, kind="stable"))
    for name, answer in zip(in_order.question_ids, in_order.answer.tolist(), strict=True):
        answers.setdefault(name, set()).add(answer_label(ranks, answer))
    return answers


def read_firsts(name: str, ranks: Ranks, run: Run | RunColumns | PathName) -> dict[str, str]:
    """Return the label that a model's run puts first, by question.

    An answer that has the first rank must be first in the run, and the reverse. InputError, with
    the run's file, if the two disagree.
    """
    firsts = {query: labels[0] for query, labels in best_labels(run).items()}
    path = run if isinstance(run, (str, PathLike)) else getattr(run, "path", "")
    with about(path):
        _check_firsts(name, ranks, firsts)
    return firsts


def _check_firsts(name: str, ranks: Ranks, firsts: Mapping[str, str]) -> None:
    """Raise InputError if a run's first labels are not those of a model's ranks."""
    answers = answers_by_question(ranks)
    if not answers.keys() & firsts.keys():
        raise InputError(
            f"the run of {name!r} does not have the questions of these ranks, such as "
            f"{next(iter(answers))!r}; give the run that was written with these ranks"
        )
    is_first = ranks.macro_rank("ordinal") == 1
    if ranks.macro_unlisted is not None:
        is_first &= ~ranks.macro_unlisted
    best = np.flatnonzero(is_first)
    names = ranks.subset(best).question_ids
    due = {
        query: answer_label(ranks, int(ranks.answer[row]))
        for query, row in zip(names, best.tolist(), strict=True)
    }
    for query, first in firsts.items():
        if query not in answers:
            continue
        expected = due.get(query)
        if first != expected and (expected is not None or first in answers[query]):
            placed = f"put {expected!r}" if expected else "put no answer"
            raise InputError(
                f"the run of {name!r} puts {first!r} first for question {query}, but its ranks "
                f"{placed} first; give the run that was written with these ranks, in their order"
            )


def best_labels(
    run: Run | RunColumns | PathName, depth: int = 1, queries: Collection[str] | None = None
) -> dict[str, list[str]]:
    """Return the first `depth` labels of a run, by question, in trec_eval's order.

    A `Run` gives only the first label of each question.
    """
    from kgtrec.graph.labels import decode_docno
    from kgtrec.trec.files.columns import RunColumns
    from kgtrec.trec.files.run import read_run_columns

    columns = read_run_columns(run) if isinstance(run, (str, PathLike)) else run
    if isinstance(columns, RunColumns):
        docnos = columns.best(depth, queries)
    else:  # of a ranking with documents in order
        rows = np.flatnonzero(np.diff(columns.offsets) > 0)
        labels = columns.docnos[columns.documents[columns.offsets[rows]].astype(np.int64)]
        docnos = {
            columns.query_ids[row]: [label.encode("utf-8", "surrogateescape")]
            for row, label in zip(rows.tolist(), labels, strict=True)
        }
    return {
        query: [decode_docno(name).decode("utf-8", "surrogateescape") for name in names]
        for query, names in docnos.items()
    }


def by_side(side: Int64) -> list[tuple[str, Bools]]:
    """Return the names and masks of the sides that exist, and of both if there are several."""
    masks = [(name, side == number) for number, name in enumerate(NAMES) if (side == number).any()]
    return [*masks, ("both", np.ones(len(side), bool))] if len(masks) > 1 else masks


LARGEST = 25
"""Instances with the largest changes on the report page, per pair of models."""


def changes_section(models: Sequence[str], changes: Sequence[AnswerChanges]) -> Section:
    """Return the changes between pairs of models for the report page."""
    number_of = {name: number for number, name in enumerate(models)}
    data = []
    for of_pair in changes:
        best = of_pair.best_table()
        data.append(
            {
                "models": [number_of[name] for name in of_pair.names],
                "hits": of_pair.table().rows,
                "best": None if best is None else best.rows,
                "largest": of_pair.largest(LARGEST).rows,
            }
        )
    return Section({"changes": data})
