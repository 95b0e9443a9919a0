"""Tests of the oracle on hand-worked examples, and of its comparisons on wrong output."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, Phase, find, settings
from strategies import graph_cases

NAN, INF = math.nan, math.inf

# For find(): the first example is enough; the smallest would take seconds.
SEARCH = settings(
    max_examples=20_000,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

# Entities 0..4, one relation. (0, 0, 3) is in test twice; 1 and 2 are known from other splits.
SPLITS = {
    "train": [(0, 0, 1)],
    "valid": [(0, 0, 2)],
    "test": [(0, 0, 3), (0, 0, 4), (0, 0, 3), (2, 0, 3)],
}
DOCNOS = [b"0", b"1", b"2", b"3", b"4"]
#        head0 (?, 0, 3)      head1 (?, 0, 4)      tail0 (0, 0, ?)      tail1 (2, 0, ?)
ROWS = [[1, 2, 1, 1, 0.5], [0, 0, 0, 0, -0.0], [5, 9, 9, 5, 7], [INF, 3, -INF, -INF, 0]]


def outcome(rows=ROWS, **how) -> oracle.Outcome:
    questions = oracle.ask(SPLITS)
    return oracle.score(questions, oracle.instances_of(SPLITS, questions), rows, DOCNOS, **how)


def counts_of(result: oracle.Outcome, name: str, answer: int, macro: bool = False):
    for number, instance in enumerate(result.instances):
        if (result.questions[instance.question].name, instance.answer) == (name, answer):
            counts = (result.macro if macro else result.micro)[number]
            return (counts.greater, counts.equal, counts.tied_ahead, counts.candidates)
    raise KeyError((name, answer))


# -- Questions ---------------------------------------------------------------------------------


def test_questions_worked_by_hand():
    questions = oracle.ask(SPLITS)
    assert [(q.name, q.entity, q.relation, q.answers) for q in questions] == [
        ("head0", 3, 0, (0, 2)),
        ("head1", 4, 0, (0,)),
        ("tail0", 0, 0, (3, 4)),
        ("tail1", 2, 0, (3,)),
    ]
    assert questions[2].known == {1, 2, 3, 4}
    assert questions[2].removed == {1, 2}
    assert questions[3].known == {3}


def test_instances_and_their_rows():
    instances = oracle.instances_of(SPLITS, oracle.ask(SPLITS))
    assert [(i.question, i.answer, i.triple, i.row) for i in instances] == [
        (0, 0, 0, 0),
        (0, 2, 2, 2),
        (1, 0, 1, 1),
        (2, 3, 0, 3),
        (2, 4, 1, 4),
        (3, 3, 2, 5),
    ]


def test_tail_questions_alone_number_their_rows_from_zero():
    questions = oracle.ask(SPLITS, sides="tail")
    assert [q.name for q in questions] == ["tail0", "tail1"]
    assert [i.row for i in oracle.instances_of(SPLITS, questions, sides="tail")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("filter_splits", "known", "removed"),
    [
        ((), set(), set()),
        (("test",), {3, 4}, set()),
        (("train",), {1}, {1}),
        (("train", "valid"), {1, 2}, {1, 2}),
    ],
)
def test_filter_splits_decide_what_is_known(filter_splits, known, removed):
    question = oracle.ask(SPLITS, filter_splits=filter_splits)[2]
    assert question.known == known
    assert question.removed == removed


def test_extra_known_is_known_but_never_takes_an_answer_away():
    question = oracle.ask(SPLITS, extra_known=[(0, 0, 0), (0, 0, 3), (2, 0, 1)])[2]
    assert question.known == {0, 1, 2, 3, 4}
    assert question.removed == {0, 1, 2}
    assert oracle.micro_candidates(question, 3, 5) == {3}
    assert oracle.macro_candidates(question, 5) == {3, 4}


# -- Counts and ranks --------------------------------------------------------------------------


def test_counts_worked_by_hand():
    result = outcome()
    assert counts_of(result, "tail0", 3) == (0, 1, 0, 2)  # against 0 alone: tied, "0" < "3"
    assert counts_of(result, "tail0", 3, macro=True) == (1, 1, 0, 3)  # 4 is ahead too
    assert counts_of(result, "tail0", 4) == (0, 0, 0, 2)
    assert counts_of(result, "head0", 0) == (1, 1, 1, 4)  # 3 ties and comes ahead; 2 is known
    assert counts_of(result, "head0", 0, macro=True) == (1, 2, 2, 5)
    assert counts_of(result, "head1", 0) == (0, 4, 4, 5)  # minus zero ties with zero
    assert counts_of(result, "tail1", 3) == (3, 1, 0, 5)  # minus infinity ties with itself
    lower = outcome(higher_is_better=False)
    assert counts_of(lower, "head0", 0) == (1, 1, 1, 4)  # only 4 scores less
    assert counts_of(lower, "tail1", 3) == (0, 1, 0, 5)


def test_ranks_of_each_kind():
    counts = oracle.Counts(greater=3, equal=3, tied_ahead=2, candidates=9, answer_nan=False)
    ranks = [oracle.rank_of(kind, counts) for kind in oracle.RANK_KINDS]
    assert ranks == [4, Fraction(11, 2), 7, 6]


def test_run_is_cut_in_trec_order():
    result = outcome(depth=2)
    assert result.run == [[1, 3], [4, 3], [4, 3], [0, 1]]
    assert result.run_scores == [[2, 1], [-0.0, 0], [7, 5], [INF, 3]]
    lower = outcome(depth=2, higher_is_better=False)
    assert lower.run == [[4, 3], [4, 3], [3, 0], [3, 2]]
    assert lower.run_scores == [[-0.5, -1], [0, 0], [-5, -5], [INF, INF]]
    assert outcome().run == [[], [], [], []]


def test_nan_is_an_error_but_not_at_a_known_entity():
    rows = [list(row) for row in ROWS]
    rows[2][1] = rows[2][2] = NAN
    assert oracle_text(outcome(rows)) == oracle_text(outcome())
    rows[2][0] = NAN
    with pytest.raises(oracle.NanScore) as caught:
        outcome(rows)
    assert caught.value.args == ("tail0", 0)


def test_nan_worst():
    rows = [list(row) for row in ROWS]
    rows[2] = [NAN, 9, 9, NAN, 7]
    result = outcome(rows, nan="worst", depth=5)
    assert counts_of(result, "tail0", 3) == (1, 0, 0, 2)
    assert counts_of(result, "tail0", 3, macro=True) == (2, 0, 0, 3)
    assert counts_of(result, "tail0", 4) == (0, 0, 0, 2)
    assert [c.answer_nan for c in result.micro] == [False, False, False, True, False, False]
    assert result.run[2] == [4]


def test_rows_per_instance_use_the_own_row_for_micro_and_the_first_for_macro():
    rows = [[0.0] * 5 for _ in range(6)]
    rows[4] = [1, 0, 0, 0, 0]  # the second row of tail0, where 4 is the answer
    result = outcome(rows, per_instance=True, depth=1)
    assert counts_of(result, "tail0", 3) == (0, 1, 0, 2)
    assert counts_of(result, "tail0", 4) == (1, 0, 0, 2)
    assert counts_of(result, "tail0", 4, macro=True) == (0, 2, 0, 3)
    assert result.run[2] == [4]


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("plain", b"plain"),
        ("100%", b"100%"),
        ("a b", b"a%20b"),
        ("a b%", b"a%20b%25"),
        ("a%20b", b"a%2520b"),
        ("\t\n", b"%09%0A"),
        ("é", b"\xc3\xa9"),
        ("\udcff", b"\xff"),
    ],
)
def test_docno(label, written):
    assert oracle.docno(label) == written


# -- Metrics -----------------------------------------------------------------------------------


def test_metrics_worked_by_hand():
    ranks = [Fraction(1), Fraction(3, 2), Fraction(4)]
    assert oracle.mean_rank(ranks) == Fraction(13, 6)
    assert oracle.mrr(ranks) == (1 + Fraction(2, 3) + Fraction(1, 4)) / 3
    assert oracle.hits(ranks, 1) == Fraction(1, 3)
    assert oracle.hits(ranks, 3) == Fraction(2, 3)
    assert oracle.gmr(ranks) == pytest.approx(6 ** (1 / 3))
    assert oracle.amr([Fraction(2), Fraction(2)], [3, 3]) == 1
    assert oracle.amri([Fraction(2), Fraction(2)], [3, 3]) == 0
    assert oracle.amri([Fraction(1), Fraction(1)], [3, 8]) == 1
    assert oracle.amri([Fraction(3), Fraction(8)], [3, 8]) == -1
    assert oracle.harmonic(4) == Fraction(25, 12)


def test_expected_metrics_worked_by_hand():
    counts = oracle.Counts(greater=1, equal=2, tied_ahead=0, candidates=9, answer_nan=False)
    assert oracle.expected(oracle.reciprocal, counts) == Fraction(13, 36)
    assert oracle.expected(oracle.hit(3), counts) == Fraction(2, 3)
    assert oracle.expected(lambda r: r, counts) == oracle.rank_of("realistic", counts)
    closed = (oracle.harmonic(4) - oracle.harmonic(1)) / 3
    assert oracle.expected(oracle.reciprocal, counts) == closed


def test_expected_first_answer_worked_by_hand():
    """Two of three tied candidates are answers: the first of them is first or second."""
    two = [oracle.Counts(1, 2, ahead, 9, False) for ahead in (0, 1)]
    worse = oracle.Counts(4, 0, 0, 9, False)
    assert oracle.expected_first(lambda r: r, [worse, *two]) == Fraction(2 + 2 + 3, 3)
    assert oracle.expected_first(oracle.reciprocal, [worse]) == Fraction(1, 5)
    one = two[:1]
    assert oracle.expected_first(oracle.hit(3), one) == oracle.expected(oracle.hit(3), one[0])
    ranks = {kind: oracle.first_rank(kind, [worse, *two]) for kind in oracle.RANK_KINDS}
    due = {"optimistic": 2, "realistic": Fraction(5, 2), "pessimistic": 3, "ordinal": 2}
    assert ranks == due
    alone = [oracle.Counts(0, 1, ahead, 9, False) for ahead in (0, 1)]  # two answers at the top
    assert {oracle.first_rank(kind, alone) for kind in oracle.RANK_KINDS} == {1}


def test_rows_of_a_side_and_of_a_question():
    result = outcome()
    assert [row[0].answer for row in oracle.of_side(result, "tail")] == [3, 4, 3]
    grouped = oracle.per_question(oracle.of_side(result, "both"))
    assert [len(answers) for answers in grouped] == [2, 1, 2, 1]


def test_trec_measures_worked_by_hand():
    assert oracle.average_precision([9, 1, 8, 2], {1, 2, 3}, 20) == Fraction(1, 3)
    assert oracle.average_precision([9, 1, 8, 2], {1, 2, 3}, 2) == Fraction(1, 6)
    assert oracle.ndcg([1, 9, 2], {1, 2}, 20) == pytest.approx(1.5 / (1 + 1 / math.log2(3)))
    assert oracle.ndcg([9, 1], {1, 2, 3}, 1) == 0
    assert oracle.ndcg([1, 9], {1, 2, 3}, 1) == 1


def test_stratified_lemmas():
    splits = {"test": [(0, 0, 1), (1, 0, 2), (2, 0, 0), (3, 1, 4)]}
    questions = oracle.ask(splits)
    instances = oracle.instances_of(splits, questions)
    rows = [[0.0] * 5 for _ in questions]
    result = oracle.score(questions, instances, rows, DOCNOS)
    values = [1 / (n + 1) for n in range(len(instances))]
    micro = math.fsum(values) / len(values)
    assert oracle.stratified(splits, result, values, 0, -1) == pytest.approx(micro)
    lone = [v for i, v in zip(instances, values, strict=True) if i.triple == 3]
    many = [v for i, v in zip(instances, values, strict=True) if i.triple != 3]
    by_relation = (math.fsum(lone) / 2 + math.fsum(many) / 6) / 2
    assert oracle.stratified(splits, result, values, 0, 0) == pytest.approx(by_relation)


def test_stratified_weights_are_those_of_the_predicted_entity():
    splits = {"test": [(0, 0, 1)], "train": [(2, 0, 1), (3, 0, 1)]}  # counts 1 and 3
    questions = oracle.ask(splits)
    instances = oracle.instances_of(splits, questions)
    result = oracle.score(questions, instances, [[0.0] * 5] * 2, DOCNOS)
    assert [i.answer for i in instances] == [0, 1]
    assert oracle.stratified(splits, result, [1.0, 0.0], 1, 0) == pytest.approx(0.75)
    assert oracle.stratified(splits, result, [1.0, 0.0], -1, 0) == pytest.approx(0.25)


# -- The comparisons must be able to fail ------------------------------------------------------


def oracle_text(result: oracle.Outcome) -> str:
    return f"{result.micro} {result.macro} {result.run}"


def as_ranks(result: oracle.Outcome) -> SimpleNamespace:
    """Columns in the form of kgtrec's Ranks, straight from the oracle."""
    rows = [oracle.due_row(result, number) for number in range(len(result.instances))]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    columns["question"] = np.array([i.question for i in result.instances])
    columns["answer"] = np.array([i.answer for i in result.instances])
    ranks = SimpleNamespace(**columns)
    ranks.rank = lambda kind: columns[f"rank {kind}"]
    ranks.macro_rank = lambda kind: columns[f"macro_rank {kind}"]
    ranks.columns = columns
    return ranks


def as_run(result: oracle.Outcome) -> SimpleNamespace:
    """A run in the form of kgtrec's Run, straight from the oracle."""
    lengths = [len(documents) for documents in result.run]
    return SimpleNamespace(
        query_ids=[q.name for q in result.questions],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        documents=np.concatenate([np.array(d, dtype=np.int32) for d in result.run]),
        scores=np.concatenate([np.array(s, dtype=np.float64) for s in result.run_scores]),
    )


def picked(result: oracle.Outcome, rows) -> SimpleNamespace:
    """Some rows of Ranks, in some order."""
    ranks = as_ranks(result)
    for name, column in ranks.columns.items():
        ranks.columns[name] = column[rows]
        setattr(ranks, name, column[rows])
    return ranks


def test_right_output_passes_in_any_order():
    result = outcome(depth=3)
    assert oracle.rank_differences(as_ranks(result), result) == []
    assert oracle.rank_differences(picked(result, slice(None, None, -1)), result) == []
    assert oracle.run_differences(as_run(result), result) == []


def test_every_wrong_entry_of_ranks_is_flagged():
    result = outcome()
    missed = []
    for column, row in itertools.product(sorted(as_ranks(result).columns), range(6)):
        ranks = as_ranks(result)
        changed = ranks.columns[column].copy()
        changed[row] = not changed[row] if changed.dtype == bool else changed[row] + 1
        ranks.columns[column] = changed
        setattr(ranks, column, changed)
        if not oracle.rank_differences(ranks, result):
            missed.append((column, row))
    assert missed == []


@pytest.mark.parametrize("keep", [slice(0, 5), slice(1, 6), [0, 1, 2, 3, 4, 5, 5]])
def test_missing_and_repeated_instances_are_flagged(keep):
    result = outcome()
    assert oracle.rank_differences(picked(result, keep), result)


def test_every_wrong_run_is_flagged():
    result = outcome(depth=3)
    right = as_run(result)
    finite = [n for n, score in enumerate(right.scores) if math.isfinite(score)]
    for column, positions in (("documents", range(len(right.documents))), ("scores", finite)):
        for position in positions:
            wrong = as_run(result)
            getattr(wrong, column)[position] = getattr(right, column)[position] - 1
            assert oracle.run_differences(wrong, result), (column, position)
    swapped = as_run(result)
    swapped.documents[:2] = right.documents[1::-1]
    assert oracle.run_differences(swapped, result)
    shorter = as_run(result)
    shorter.documents, shorter.scores = right.documents[:-1], right.scores[:-1]
    assert oracle.run_differences(shorter, result)
    moved = as_run(result)
    moved.offsets[1] -= 1
    assert oracle.run_differences(moved, result)
    renamed = as_run(result)
    renamed.query_ids = renamed.query_ids[::-1]
    assert oracle.run_differences(renamed, result)
    undefined = as_run(result)
    undefined.scores[0] = NAN
    assert oracle.run_differences(undefined, result)


# -- The strategies keep their promises --------------------------------------------------------


@pytest.mark.parametrize(
    "shows",
    [
        lambda c: len(c.splits[c.evaluated]) != len(set(c.splits[c.evaluated])),
        lambda c: set(c.splits.get("train", [])) & set(c.splits[c.evaluated]),
        lambda c: c.n_entities == 1,
        lambda c: c.n_entities > 10 and c.labels is None,
        lambda c: any(b"%20" in oracle.docno(label) for label in c.entity_labels()),
        lambda c: any(h == t for h, _, t in c.splits[c.evaluated]),
        lambda c: c.filter_splits is not None and c.evaluated not in c.filter_splits,
        lambda c: set(c.extra_known) & set(c.splits[c.evaluated]),
    ],
    ids=["duplicate", "overlap", "lone", "decimal", "encoded", "loop", "other filter", "extra"],
)
def test_awkward_graphs_are_drawn(shows):
    find(graph_cases(), shows, settings=SEARCH)
