"""Select questions: some of them by number, or those with enough answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import check_count
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import find_sorted, select_lists, spans
from kgtrec.errors import InputError, UsageError
from kgtrec.questions.graph_terms import GraphTerms
from kgtrec.questions.terms import NamedTerms

if TYPE_CHECKING:
    from kgtrec.questions.questions import AnyQuestions, QuestionData


def instances_of(questions: QuestionData, chosen: Int64) -> Int64:
    """Return the instances of some questions, question after question."""
    answers = questions.answers
    return spans(answers.offsets[chosen], answers.lengths[chosen])[1]


def select_questions(questions: AnyQuestions, chosen: Int64, **changes: Any) -> AnyQuestions:
    """Select questions by ascending numbers. Scores have rows for these questions alone.

    ``changes`` are further fields of the result.
    """
    instances = instances_of(questions, chosen)
    index = np.full(questions.n_instances, -1, np.int64)
    index[instances] = np.arange(len(instances))
    rows = index[questions.triple_rows]
    lists = questions.candidate_lists
    fields: dict[str, Any] = {
        "answers": select_lists(questions.answers, chosen),
        "known": select_lists(questions.known, chosen),
        "removed": select_lists(questions.removed, chosen),
        "instance_question": np.repeat(np.arange(len(chosen)), questions.answers.lengths[chosen]),
        "triple_rows": rows[rows >= 0],
        "candidate_lists": None if lists is None else lists.select(chosen),
    }
    return questions.select(chosen, instances, **fields | changes)


def keep_well_answered(questions: AnyQuestions, least: int) -> AnyQuestions:
    """Keep the questions with `least` or more answers in the evaluated split.

    Scores have rows for all questions, or only for the kept ones.
    """
    least = check_count("min_answers", least)
    if questions.details.get("separate"):
        raise UsageError(
            f"{argument('min_answers', least)}: each question has one triple and side here, as "
            f"with negatives, and so a single answer; leave out {argument('min_answers')}"
        )
    lengths = questions.answers.lengths
    chosen = np.flatnonzero(lengths >= least)
    if not len(chosen):
        raise UsageError(
            f"{argument('min_answers', least)} leaves no question: the most answers of a question "
            f"are {int(lengths.max(initial=0))}; give at most that number"
        )
    counts = {"questions_kept": len(chosen), "questions_dropped": len(lengths) - len(chosen)}
    facts = {"min_answers": {"least": least, **counts}}
    part = select_questions(questions, chosen, details={**questions.details, **facts})
    rows = np.flatnonzero(np.isin(questions.triple_rows, instances_of(questions, chosen)))
    if isinstance(questions.origin, NamedTerms):
        origin: Any = _name_rows(questions.origin).select(chosen)
    else:
        origin = _keep_pairs(questions.origin.keep_names(), rows).select(chosen)
    return replace(part, origin=origin)


def _name_rows(terms: NamedTerms) -> NamedTerms:
    """Record the rows of scores of all these questions."""
    if terms.score_rows is not None:
        return terms
    return replace(terms, score_rows=np.arange(len(terms)), n_score_rows=len(terms))


def _keep_pairs(terms: GraphTerms, rows: Int64) -> GraphTerms:
    """Keep some (side, triple) pairs, by their ascending numbers in `triple_rows`."""
    n_triples = len(terms.triples)
    pairs = rows if terms.pairs is None else terms.pairs[rows]
    side, triple = np.divmod(pairs, n_triples)
    used, triple = np.unique(triple, return_inverse=True)
    kept = used if terms.kept is None else terms.kept[used]
    return replace(terms, kept=kept, pairs=side * len(used) + triple.reshape(-1))


def pair_rows(terms: GraphTerms, pairs: Int64) -> Int64:
    """Return the index in `triple_rows` of each (side, triple) pair; InputError if it is left out.

    A pair is numbered by side, then by evaluated triple.
    """
    if terms.pairs is None:
        return pairs
    rows = find_sorted(terms.pairs, pairs)
    if (rows < 0).any():
        first = int(np.flatnonzero(rows < 0)[0])
        raise InputError(
            f"the question about triple {first} has too few answers "
            f"({argument('min_answers')}); leave out such triples"
        )
    return rows
