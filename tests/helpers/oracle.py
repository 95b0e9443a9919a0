"""The definitions of every number, in slow plain Python.

Nothing here is imported from kgtrec, and nothing is fast. Graphs are dictionaries of triple lists,
candidate sets are sets, orders are ``sorted()``, means are exact fractions. Scores are rows of
Python floats. float16 and float32 convert to them without loss, so comparisons give the results of
the original dtype.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

HEAD, TAIL = 0, 1
SIDE_NAMES = ("head", "tail")
ASKED = {"head": (HEAD,), "tail": (TAIL,), "both": (HEAD, TAIL)}

Triple = tuple[int, int, int]
Row = Sequence[float]
Splits = Mapping[str, Iterable[Sequence[int]]]


class NanScore(Exception):
    """A NaN among the candidates of a row; args are (question, entity)."""


# -- Graph, question, instance ---------------------------------------------------------------


def distinct(triples: Iterable[Sequence[int]]) -> list[Triple]:
    """The distinct triples of a split, in order of first appearance."""
    return list(dict.fromkeys((int(h), int(r), int(t)) for h, r, t in triples))


@dataclass(frozen=True)
class Question:
    """One (side, given entity, relation), its answers, and the entities that are not candidates."""

    name: str
    side: int
    entity: int
    relation: int
    answers: tuple[int, ...]
    known: frozenset[int]
    removed: frozenset[int]


@dataclass(frozen=True)
class Instance:
    """The answer ``answer`` of question number ``question``; ``row`` is its (triple, side) row."""

    question: int
    answer: int
    triple: int
    row: int


def asked_by(triple: Triple, side: int) -> tuple[tuple[int, int, int], int]:
    """The question (side, entity, relation) that a triple asks on a side, and its answer."""
    head, relation, tail = triple
    return ((side, tail, relation), head) if side == HEAD else ((side, head, relation), tail)


def answering(triples: Iterable[Sequence[int]], question: tuple[int, int, int]) -> set[int]:
    """All entities that answer a question in some triples."""
    answers = set()
    for triple in distinct(triples):
        key, answer = asked_by(triple, question[0])
        if key == question:
            answers.add(answer)
    return answers


def ask(
    splits: Splits,
    evaluated: str = "test",
    sides: str = "both",
    filter_splits: Sequence[str] | None = None,
    extra_known: Iterable[Sequence[int]] = (),
) -> list[Question]:
    """All questions of a split: heads first, then tails, each in order of first appearance."""
    if filter_splits is None:
        filter_splits = [name for name in ("train", "valid", "test") if name in splits]
    extra = list(extra_known)
    questions = []
    for side in ASKED[sides]:
        keys = dict.fromkeys(asked_by(triple, side)[0] for triple in distinct(splits[evaluated]))
        for number, key in enumerate(keys):
            answers = answering(splits[evaluated], key)
            elsewhere = answering(extra, key)
            for name in filter_splits:
                if name != evaluated:
                    elsewhere |= answering(splits[name], key)
            known = elsewhere | (answers if evaluated in filter_splits else set())
            question = f"{SIDE_NAMES[side]}{number}", *key, tuple(sorted(answers))
            questions.append(Question(*question, frozenset(known), frozenset(elsewhere - answers)))
    return questions


def instances_of(
    splits: Splits, questions: Sequence[Question], evaluated: str = "test", sides: str = "both"
) -> list[Instance]:
    """One instance per answer, question after question; rows count head triples, then tail ones."""
    triples = distinct(splits[evaluated])
    instances = []
    for number, question in enumerate(questions):
        for answer in question.answers:
            if question.side == HEAD:
                triple = triples.index((answer, question.relation, question.entity))
            else:
                triple = triples.index((question.entity, question.relation, answer))
            row = ASKED[sides].index(question.side) * len(triples) + triple
            instances.append(Instance(number, answer, triple, row))
    return instances


# -- Candidates, counts, ranks ---------------------------------------------------------------


def micro_candidates(question: Question, answer: int, n_entities: int) -> set[int]:
    """(D minus known) and the answer itself, by id."""
    return (set(range(n_entities)) - question.known) | {answer}


def macro_candidates(question: Question, n_entities: int) -> set[int]:
    """D minus answers known from other filter splits; all answers of the evaluated split stay."""
    return (set(range(n_entities)) - question.removed) | set(question.answers)


def docno(label: str) -> bytes:
    """The label in TREC files: if white space or NUL would break a line, or ``%XX`` would look like
    an encoding, white space, NUL and ``%`` become ``%XX``."""
    raw = label.encode("utf-8", "surrogateescape")
    if not re.search(rb"[ \t\n\v\f\r\0]|%[0-9A-Fa-f]{2}", raw):
        return raw
    return re.sub(rb"[ \t\n\v\f\r\0%]", lambda byte: b"%%%02X" % ord(byte[0]), raw)


@dataclass(frozen=True)
class Counts:
    """The counts of an answer among its candidates."""

    greater: int
    equal: int
    tied_ahead: int
    candidates: int
    answer_nan: bool


def count(
    row: Row,
    answer: int,
    candidates: set[int],
    docnos: Sequence[bytes],
    higher_is_better: bool = True,
) -> Counts:
    """greater, equal and the ties ahead in trec order; a NaN answer is behind everything."""
    assert answer in candidates
    score = row[answer]
    if math.isnan(score):
        return Counts(len(candidates) - 1, 0, 0, len(candidates), True)
    greater = equal = ahead = 0
    for other in sorted(candidates - {answer}):
        if row[other] == score:
            equal += 1
            ahead += docnos[other] > docnos[answer]
        elif (row[other] > score) if higher_is_better else (row[other] < score):
            greater += 1
    return Counts(greater, equal, ahead, len(candidates), False)


def reject_nan(row: Row, candidates: set[int], question: Question) -> None:
    """The default rule for NaN: one among the candidates is an error."""
    for entity in sorted(candidates):
        if math.isnan(row[entity]):
            raise NanScore(question.name, entity)


def best(
    row: Row,
    candidates: set[int],
    docnos: Sequence[bytes],
    depth: int,
    higher_is_better: bool = True,
) -> list[int]:
    """The ``depth`` best candidates in trec order: score descending, then docno descending."""
    sign = 1.0 if higher_is_better else -1.0
    scored = [entity for entity in candidates if not math.isnan(row[entity])]
    return sorted(scored, key=lambda c: (sign * row[c], docnos[c]), reverse=True)[:depth]


RANK_KINDS = ("optimistic", "realistic", "pessimistic", "ordinal")


def rank_of(kind: str, counts: Counts) -> Fraction:
    """The rank of each kind; only the realistic one can be a half-integer."""
    g, e = counts.greater, counts.equal
    return {
        "optimistic": Fraction(g + 1),
        "realistic": Fraction(g + 1) + Fraction(e, 2),
        "pessimistic": Fraction(g + e + 1),
        "ordinal": Fraction(g + 1 + counts.tied_ahead),
    }[kind]


def sampled_hits(rank: Fraction, candidates: int, k: int, n: int) -> Fraction:
    """P(fewer than k of n - 1 draws are above the answer); draws are with replacement."""
    if candidates == 1:
        return Fraction(1)
    above = Fraction(rank - 1) / (candidates - 1)
    return sum(
        (math.comb(n - 1, i) * above**i * (1 - above) ** (n - 1 - i) for i in range(min(k, n))),
        Fraction(0),
    )


def reciprocal_within(rank: Fraction, k: float = math.inf, listed: bool = True) -> Fraction:
    """1/rank, or 0 beyond rank k and for answers beyond the end of their list."""
    return 1 / Fraction(rank) if listed and rank <= k else Fraction(0)


@dataclass(frozen=True)
class Outcome:
    """The results for a set of questions: counts per instance, documents per question."""

    questions: list[Question]
    instances: list[Instance]
    micro: list[Counts]
    macro: list[Counts]
    run: list[list[int]]
    run_scores: list[list[float]]


def score(
    questions: Sequence[Question],
    instances: Sequence[Instance],
    rows: Sequence[Row],
    docnos: Sequence[bytes],
    *,
    depth: int = 0,
    per_instance: bool = False,
    higher_is_better: bool = True,
    nan: str = "error",
) -> Outcome:
    """Rank every instance; ``rows`` are one per question, or one per (triple, side).

    If rows are per (triple, side), micro counts come from an instance's own row. Macro counts and
    the run come from the first row of the question.
    """
    n_entities = len(docnos)
    first: dict[int, Row] = {}
    for instance in sorted(instances, key=lambda i: i.row):
        first.setdefault(
            instance.question, rows[instance.row if per_instance else instance.question]
        )
    micro, macro = [], []
    for instance in instances:
        question = questions[instance.question]
        scores_of_row = rows[instance.row] if per_instance else rows[instance.question]
        few = micro_candidates(question, instance.answer, n_entities)
        many = macro_candidates(question, n_entities)
        if nan == "error":
            reject_nan(scores_of_row, few, question)
            reject_nan(first[instance.question], many, question)
        micro.append(count(scores_of_row, instance.answer, few, docnos, higher_is_better))
        macro.append(
            count(first[instance.question], instance.answer, many, docnos, higher_is_better)
        )
    run = [
        best(first[q], macro_candidates(question, n_entities), docnos, depth, higher_is_better)
        for q, question in enumerate(questions)
    ]
    # Scores of a run descend, so their sign is reversed if lower is better.
    sign = 1.0 if higher_is_better else -1.0
    run_scores = [[sign * first[q][entity] for entity in ranked] for q, ranked in enumerate(run)]
    return Outcome(list(questions), list(instances), micro, macro, run, run_scores)


def entity_popularity(splits: Splits) -> dict[int, int]:
    """Times an entity is head, plus times it is tail, in triples of all splits."""
    counts: dict[int, int] = {}
    for triples in splits.values():
        for head, _, tail in distinct(triples):
            for entity in (head, tail):
                counts[entity] = counts.get(entity, 0) + 1
    return counts


# -- Comparing kgtrec's output with an Outcome -----------------------------------------------

COUNT_COLUMNS = ("greater", "equal", "tied_ahead", "candidates")


def rank_differences(ranks: object, outcome: Outcome) -> list[str]:
    """All differences of a Ranks-like object from the oracle; [] if none.

    Rows are matched by (question, answer), because their order is not specified.
    """
    wrong = []
    keys = list(zip(as_list(ranks.question), as_list(ranks.answer), strict=True))
    due = {(i.question, i.answer): n for n, i in enumerate(outcome.instances)}
    if sorted(keys) != sorted(due):
        return [f"instances {sorted(keys)} instead of {sorted(due)}"]
    columns = {}
    for name in ("triple", "side", "relation", "given", "answer_nan", "macro_answer_nan"):
        columns[name] = as_list(getattr(ranks, name))
    for name in COUNT_COLUMNS:
        columns[name] = as_list(getattr(ranks, name))
        columns["macro_" + name] = as_list(getattr(ranks, "macro_" + name))
    for kind in RANK_KINDS:
        columns[f"rank {kind}"] = as_list(ranks.rank(kind))
        columns[f"macro_rank {kind}"] = as_list(ranks.macro_rank(kind))
    for row, key in enumerate(keys):
        for name, value in due_row(outcome, due[key]).items():
            if len(columns[name]) != len(keys) or columns[name][row] != value:
                wrong.append(f"{key}: {name} is {columns[name][row : row + 1]}, not {value}")
    return wrong


def due_row(outcome: Outcome, number: int) -> dict[str, object]:
    """The expected columns of one instance."""
    instance = outcome.instances[number]
    question = outcome.questions[instance.question]
    row: dict[str, object] = {
        "triple": instance.triple,
        "side": question.side,
        "relation": question.relation,
        "given": question.entity,
    }
    for prefix, counts in (("", outcome.micro[number]), ("macro_", outcome.macro[number])):
        for name in COUNT_COLUMNS:
            row[prefix + name] = getattr(counts, name)
        row[prefix + "answer_nan"] = counts.answer_nan
        for kind in RANK_KINDS:
            row[f"{prefix}rank {kind}"] = float(rank_of(kind, counts))
    return row


def run_differences(run: object, outcome: Outcome) -> list[str]:
    """All differences of a Run-like object from the oracle's documents and scores."""
    names = [question.name for question in outcome.questions]
    if list(run.query_ids) != names:
        return [f"query ids {list(run.query_ids)} instead of {names}"]
    offsets, documents, scores = map(as_list, (run.offsets, run.documents, run.scores))
    if len(offsets) != len(names) + 1 or offsets[-1] != len(documents) or offsets[0] != 0:
        return [f"offsets {offsets} for {len(names)} questions and {len(documents)} documents"]
    if len(scores) != len(documents):
        return [f"{len(scores)} scores for {len(documents)} documents"]
    wrong = []
    for q, name in enumerate(names):
        span = slice(offsets[q], offsets[q + 1])
        if documents[span] != outcome.run[q]:
            wrong.append(f"{name}: documents {documents[span]} instead of {outcome.run[q]}")
        elif scores[span] != outcome.run_scores[q]:
            wrong.append(f"{name}: scores {scores[span]} instead of {outcome.run_scores[q]}")
    return wrong


def as_list(column: object) -> list:
    """A column as plain Python numbers."""
    return column.tolist() if hasattr(column, "tolist") else list(column)
