"""Bounds of measures against all labellings of what is open, one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgtrec.errors import UsageError
from kgtrec.trec.measures.bounds import bounds, why_unbounded
from kgtrec.trec.measures.judged_lists import UNJUDGED, Lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.qrels_rows import QRELS_ROWS
from kgtrec.trec.measures.values import values

NAMES = [
    "P_3", "success_2", "recip_rank", "recip_rank_cut_3", "rbp", "rbp_p=0.5", "dcg", "set_P",
    "map", "gm_map", "map_cut_3", "yaap", "ndcg", "ndcg_cut_3", "recall_3", "relative_P_3", "binG",
    "iprec_at_recall_0.40", "11pt_avg", "set_recall", "set_relative_P", "set_map", "set_F_0.5",
    "Rprec", "Rprec_mult_1.40", "bpref", "gm_bpref",
    "ndcg_rel", "Rndcg", "G",
]  # fmt: skip
COLUMNS = resolve(NAMES)
OPEN = None

# A query: what the documents of its list are (1, 0, -1: pooled and closed, "-": unjudged and
# closed, None: open), open ones that are not in it, and judgements of others that are not.
Query = tuple[list[object], int, list[int]]
QUERY = st.tuples(
    st.lists(st.sampled_from([1, 0, -1, "-", OPEN, OPEN]), max_size=9),
    st.integers(0, 2),
    st.lists(st.sampled_from([1, 0]), max_size=3),
)


def lists_of(queries: list[tuple[list[object], list[int]]]) -> Lists:
    """Lists of 1, 0, -1, "-" and None, beside judgements of what is not in them."""
    marks: dict[object, int] = {"-": UNJUDGED, None: UNJUDGED}
    relevance = [[marks.get(one, one) for one in own] for own, _ in queries]
    judged = [
        sorted([r for r in own if r != UNJUDGED] + rest, reverse=True)
        for own, (_, rest) in zip(relevance, queries, strict=True)
    ]
    flat = [r for own in relevance for r in own]
    return Lists(
        queries=[str(i) for i in range(len(queries))],
        offsets=np.cumsum([0, *map(len, relevance)]),
        relevance=np.array(flat, np.int64),
        scores=-np.arange(len(flat), dtype=np.float64),
        retrieved=np.array([len(own) for own in relevance], np.int64),
        judged_offsets=np.cumsum([0, *map(len, judged)]),
        judged=np.array([r for own in judged for r in own], np.int64),
        tag="t",
        unanswered=0,
        unasked=0,
    )


def bounds_of(queries: list[Query]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    lists = lists_of([(own, rest) for own, _, rest in queries])
    is_open = np.array([one is OPEN for own, _, _ in queries for one in own], bool)
    return bounds(lists, is_open, np.array([outside for _, outside, _ in queries]), COLUMNS)


def extremes(query: Query) -> dict[str, tuple[float, float]]:
    """Lowest and highest value over every labelling of what is open."""
    own, outside, rest = query
    unknown = own.count(OPEN) + outside
    worlds = []
    for labels in itertools.product((0, 1), repeat=unknown):
        open_labels = iter(labels)
        filled = [next(open_labels) if one is OPEN else one for one in own]
        worlds.append((filled, [*rest, *open_labels]))
    rows = values(lists_of(worlds), COLUMNS, EvalOptions(native=True))
    return {name: (float(row.min()), float(row.max())) for name, row in rows.items()}


@settings(max_examples=150, deadline=None)
@given(st.lists(QUERY, min_size=1, max_size=4))
def test_bounds_are_the_extremes_of_all_labellings(queries: list[Query]) -> None:
    got = bounds_of(queries)
    assert list(got) == [column.name for column in COLUMNS]
    for number, query in enumerate(queries):
        for name, (low, high) in extremes(query).items():
            assert got[name][0][number] == pytest.approx(low, abs=1e-12), (name, "low")
            assert got[name][1][number] == pytest.approx(high, abs=1e-12), (name, "high")


def test_what_has_no_bounds_says_why() -> None:
    every = resolve([name for name in QRELS_ROWS if name != "runid"])
    without = {c.family for c in every if why_unbounded(c)}
    assert {"infAP", "judged", "unj", "utility", "num_rel", "relstring", "rbp_resid"} <= without
    assert {c.family for c in COLUMNS} | without == {c.family for c in every}
    lists = lists_of([([1, OPEN], [])])
    is_open, none = np.array([False, True]), np.zeros(1, np.int64)
    with pytest.raises(UsageError, match=r"infAP has no bounds \(an estimate from a sample"):
        bounds(lists, is_open, none, resolve(["infAP"]))
    with pytest.raises(UsageError, match="gains are not those"):
        bounds(lists, is_open, none, resolve(["ndcg.1=3"]))
    with pytest.raises(UsageError, match="judged and open at once"):
        bounds(lists, ~is_open, none, resolve(["P_5"]))
    graded = replace(lists, judged=np.array([2]))
    with pytest.raises(UsageError, match="relevance 2 is judged"):
        bounds(graded, is_open, none, resolve(["P_5"]))


def test_without_open_documents_the_bounds_are_the_value() -> None:
    lists = lists_of([([1, "-", 0, 1], [1]), ([], [1]), ([0, "-"], [])])
    nothing = np.zeros(len(lists.relevance), bool)
    got = bounds(lists, nothing, np.zeros(3, np.int64), COLUMNS)
    for name, row in values(lists, COLUMNS, EvalOptions(native=True)).items():
        for end in got[name]:
            assert end == pytest.approx(row, abs=1e-15), name


def test_figures_by_hand() -> None:
    # Lists [open, relevant], nothing else. AP: 1 if the open one is relevant, 1/2 if not. bpref:
    # 1, or 0 below the one judged non-relevant document.
    # With another open one elsewhere, AP is at least (1/2) / 2.
    one = bounds(lists_of([([OPEN, 1], [])]), np.array([True, False]), np.array([0]), COLUMNS)
    assert [float(end[0]) for end in one["map"]] == [0.5, 1.0]
    assert [float(end[0]) for end in one["bpref"]] == [0.0, 1.0]
    two = bounds(lists_of([([OPEN, 1], [])]), np.array([True, False]), np.array([1]), COLUMNS)
    assert [float(end[0]) for end in two["map"]] == [0.25, 1.0]
