"""Expectation and bounds under ties: against every order, and against pytrec_eval without ties."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from slow import slow_after
from trec_cases import lists_of
from trec_oracle import over_orders

from kgtrec.errors import UsageError
from kgtrec.trec.measures.bounds import bounds, why_unbounded
from kgtrec.trec.measures.judge import read_lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.rows import QRELS_ROWS
from kgtrec.trec.measures.ties import TIES, tie_effect, values_over_ties
from kgtrec.trec.measures.trec_measure import EvalOptions
from kgtrec.trec.measures.values import values

CUTS = (1, 2, 3, 5, 8)

WITH_CUTS = (
    *("recip_rank_cut", "success", "P", "recall", "relative_P", "map_cut", "ndcg_cut"),
    *("judged", "unj", "relative_map", "map_hits", "F1"),
)

PLAIN = ("recip_rank", "map", "Rprec", "ndcg", "dcg", "bpref", "infAP", "Rprec_mult.0.6,1.4")

SETS = ("set_P", "set_relative_P", "set_recall", "set_map", "set_F.0.5", "utility_2,-3,1,0.5")

TYPED = ("set_F_0.5", "utility_2,-3,1,0.5")

COLUMNS = resolve(
    [*PLAIN, *SETS, *(f"{family}.{','.join(map(str, CUTS))}" for family in WITH_CUTS)]
)

Document = tuple[float, int | None]

Query = tuple[list[Document], list[int]]


def tied_lists(queries: Sequence[Query], depth: int | None = None) -> Lists:
    """Lists of queries given as documents, best first, and relevances of judged ones missed."""
    lists = []
    for documents, _ in queries:
        last = len(documents) if depth is None else min(depth, len(documents))
        while 0 < last < len(documents) and documents[last][0] == documents[last - 1][0]:
            last += 1
        lists.append(documents[:last])
    return lists_of(
        [
            ([r for _, r in own], judged_of(query))
            for own, query in zip(lists, queries, strict=True)
        ],
        scores=[score for own in lists for score, _ in own],
        retrieved=[len(documents) for documents, _ in queries],
    )


def judged_of(query: Query) -> list[int]:
    documents, missed = query
    return sorted([r for _, r in documents if r is not None] + missed, reverse=True)


relevances = st.sampled_from([None, None, 0, 1, 1, 2, 3, -1])


@st.composite
def a_query(draw: st.DrawFn) -> Query:
    """Few documents, and few scores: every order can be tried."""
    scores = draw(st.lists(st.sampled_from([3.0, 2.0, 2.0, 1.0, -np.inf]), max_size=6))
    documents = [(score, draw(relevances)) for score in sorted(scores, reverse=True)]
    return documents, draw(st.lists(st.sampled_from([0, 1, 2, -1]), max_size=3))


@given(
    queries=st.lists(a_query(), min_size=1, max_size=3),
    level=st.sampled_from([1, 1, 2, 0]),
    most=st.sampled_from([None, None, 1, 2, 3, 4, 6]),
    judged_only=st.booleans(),
    part=st.sampled_from([3, 1 << 20]),
)
def test_every_order(queries, level, most, judged_only, part) -> None:
    """The values, and the number of queries that an order changes; in parts, too."""
    options = EvalOptions(level=level, most=most, judged_only=judged_only)
    lists = tied_lists(queries, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgtrec.trec.measures.ties._PART_DOCUMENTS", part)
        values_of = {ties: values_over_ties(lists, COLUMNS, options, ties=ties) for ties in TIES}
        effects = {c.name: tie_effect(lists, [c], options).queries for c in COLUMNS}
    slow = [
        over_orders(one[0], judged_of(one), level, most, judged_only, CUTS, TYPED)
        for one in queries
    ]
    for column in COLUMNS:
        for i, rows in enumerate(slow):
            for ties in TIES:
                fast = values_of[ties][column.name][i]
                due = pytest.approx(rows[column.name][ties], rel=1e-12, abs=1e-14)
                assert fast == due, (ties, column.name)
        ends = [rows[column.name] for rows in slow]
        changing = sum(one["max"] - one["min"] > 1e-12 for one in ends)
        counted = effects[column.name]
        # A tie with two opposite effects is counted: AP can stay the same.
        assert counted >= changing, column.name
        if level and not (most and judged_only):
            exact = column.measure in ("recip_rank", "recip_rank_cut", "success", "P", "dcg")
            assert not exact or counted == changing, column.name


def test_first_relevant_of_a_large_tie() -> None:
    """McSherry and Najork: R relevant of n tied; E[1/rank] of one is H(n) / n."""
    n = 5000
    lists = tied_lists([([(1.0, int(i == 17)) for i in range(n)], [])])
    values = values_over_ties(lists, resolve(["recip_rank", "success.10", "map"]), ties="expected")
    harmonic = (1 / np.arange(1, n + 1)).sum() / n
    assert values["recip_rank"][0] == pytest.approx(harmonic, rel=1e-12)
    assert values["map"][0] == pytest.approx(harmonic, rel=1e-12)
    assert values["success_10"][0] == pytest.approx(10 / n, rel=1e-12)
    many = tied_lists([([(1.0, int(i % 2)) for i in range(n)], [])])
    values = values_over_ties(
        many, resolve(["recip_rank", "success.10", "success.4000"]), ties="expected"
    )
    assert values["success_10"][0] == pytest.approx(
        1 - np.prod((2500 - np.arange(10)) / (n - np.arange(10)))
    )
    assert values["success_4000"][0] == 1.0


def test_single_precision_ties_under_compat_9() -> None:
    lists = tied_lists([([(1.000000001, 0), (1.0, 1)], [])])
    columns = resolve(["recip_rank"])
    assert values_over_ties(lists, columns, ties="expected")["recip_rank"][0] == 0.5
    nine = EvalOptions(compat=9)
    assert values_over_ties(lists, columns, nine, ties="expected")["recip_rank"][0] == 0.75
    assert [tie_effect(lists, columns, options).queries for options in (None, nine)] == [0, 1]
    huge = tied_lists([([(1e300, 0), (1e299, 1)], [])])  # both are infinite
    assert values_over_ties(huge, columns, nine, ties="max")["recip_rank"][0] == 1.0


def test_a_group_that_both_m_and_j_cut_is_a_hypergeometric_draw() -> None:
    """Three of 40 tied documents are judged, 25 of the 40 are looked at."""
    documents: list[Document] = [(1.0, None)] * 37 + [(1.0, 1)] * 3
    lists = tied_lists([(documents, [])])
    options = EvalOptions(most=25, judged_only=True)
    row = values_over_ties(lists, resolve(["recall.3", "success.1"]), options, ties="expected")
    assert row["recall_3"][0] == pytest.approx(25 / 40, rel=1e-13)
    none = 15 * 14 * 13 / (40 * 39 * 38)
    assert row["success_1"][0] == pytest.approx(1 - none, rel=1e-13)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("most", [None, 3, 4, 5])
def test_values_of_all_orders_of_six_documents(most: int | None, judged_only: bool) -> None:
    """Kinds of documents at random: relevant, judged, pooled and unjudged ones tie."""
    rng = np.random.default_rng([most or 0, judged_only])
    columns = resolve([*PLAIN[5:], *SETS, "judged.1,3,8", "unj.1,3,8"])
    options = EvalOptions(most=most, judged_only=judged_only)
    for trial in range(25):
        kinds = rng.choice([1, 1, 0, 0, -1, -2], 6).tolist()  # -2: no judgement
        shown = [None if kind == -2 else kind for kind in kinds]
        scores = sorted(rng.choice([3.0, 2.0, 2.0, 2.0, 1.0], 6).tolist(), reverse=True)
        judged = [r for r in shown if r is not None] + [1, 0, 0]
        orders = [[shown[i] for i in order] for order in all_orders(scores)]
        rows = values(lists_of([(order, judged) for order in orders]), columns, options)
        lists = tied_lists(
            [(list(zip(scores, shown, strict=True)), [1, 0, 0])], most if trial % 2 else None
        )
        for ties, pick in (("expected", np.mean), ("min", np.min), ("max", np.max)):
            due = {name: pytest.approx(pick(row), abs=1e-12) for name, row in rows.items()}
            fast = values_over_ties(lists, columns, options, ties=ties)
            assert {name: row[0] for name, row in fast.items()} == due, (ties, kinds, scores)


def test_infap_of_a_large_tie_by_all_numbers_of_documents_above() -> None:
    """One document at every place, with every number of documents of each kind before it."""
    above, tied = [2, None, 0, -1], [1] * 9 + [0] * 11 + [-1] * 8 + [None] * 14
    n, hits, worse, pooled = len(tied), 9, 11, 8
    total = 0.0
    for i in range(n):
        ways = 0.0
        for h, w, p in itertools.product(range(hits), range(worse + 1), range(pooled + 1)):
            u = i - h - w - p
            if not 0 <= u <= 14:
                continue
            combinations = zip((8, worse, pooled, 14), (h, w, p, u), strict=True)
            share = math.prod(math.comb(whole, part) for whole, part in combinations)
            estimate = (h + 1 + 1e-5) / (h + 1 + w + 1 + 2e-5)
            value = 1 + (h + 1 + w + 1 + p + 1) * estimate
            ways += share / math.comb(n - 1, i) * value / (len(above) + i + 1)
        total += hits / n * ways
    documents: list[Document] = [(float(9 - i), r) for i, r in enumerate(above)]
    lists = tied_lists([(documents + [(1.0, r) for r in tied], [])])
    (row,) = values_over_ties(lists, resolve(["infAP"]), ties="expected").values()
    assert row[0] == pytest.approx((1 + total) / 10, rel=1e-12)


def test_bpref_of_a_large_tie_of_which_a_part_is_kept() -> None:
    """5 of 60 tied documents are relevant and 12 judged otherwise; 33 are kept."""
    tied: list[Document] = [(1.0, r) for r in [1] * 5 + [0] * 12 + [None] * 43]
    lists = tied_lists([([(2.0, 0), *tied], [0])])
    options = EvalOptions(most=34)
    row = values_over_ties(lists, resolve(["bpref"]), options, ties="expected")["bpref"]
    due = 0.0
    for place in range(33):  # of a relevant document; w of the 12 before it
        for w in range(min(12, place) + 1):
            chance = math.comb(12, w) * math.comb(47, place - w) / math.comb(59, place)
            due += chance / 60 * (1 - min(1 + w, 5) / min(14, 5))
    assert row[0] == pytest.approx(due, rel=1e-12)
    whole = values_over_ties(lists, resolve(["bpref"]), ties="expected")["bpref"][0]
    assert whole == pytest.approx(sum(1 - min(1 + j, 5) / 5 for j in range(13)) / 13, rel=1e-14)


def test_pooled_documents_may_raise_infap() -> None:
    """Ten documents of no pool, then a tie: the pooled document is best before the relevant one."""
    documents: list[Document] = [(9.0, 1), *((8.0 - i, None) for i in range(10))]
    lists = tied_lists([([*documents, (-9.0, 1), (-9.0, -1)], [])])
    ends = [values_over_ties(lists, resolve(["infAP"]), ties=t)["infAP"][0] for t in ("min", "max")]
    first, second = ((1 + (1 + p) * (1 + 1e-5) / (1 + 2e-5)) / (12 + p) for p in (0, 1))
    assert second > first
    assert ends == pytest.approx([(1 + first) / 2, (1 + second) / 2], rel=1e-14)


# -- Do ties matter? What is said is held against every order of the tied documents --------------

NOTED = resolve(
    [
        "bpref",
        "iprec_at_recall.0.5",
        "11pt_avg",
        "map",
        "map_cut.2",
        "relative_map.2",
        "map_hits.3",
        "F1.2",
        "Rprec",
        "Rprec_mult.0.6",
        "success.2",
        "P.2",
        "recall.2",
        "RR",
        "RR@2",
        "ndcg",
        "ndcg_cut.3",
        "ndcg_rel",
        "Rndcg",
        "G",
        "binG",
        "rbp",
        "rbp_resid",
        "dcg",
        "infAP",
        "judged@2",
        "unj.2",
        "yaap",
        "set_F",
        "num_rel_ret",
        "num_nonrel_judged_ret",
        "relstring.2",
        "ndcg.1=3,2=1",
        "rbp.1=0,2=1,0=1",
    ]
)


def all_orders(scores: list[float]):
    groups = [list(g) for _, g in itertools.groupby(range(len(scores)), key=lambda i: scores[i])]
    for order in itertools.product(*map(itertools.permutations, groups)):
        yield [i for group in order for i in group]


@pytest.mark.parametrize(
    ("cut", "trials"), slow_after(2, [(False, 40), (True, 20), (False, 200), (True, 80)])
)
def test_no_warning_in_vain_and_none_missed(cut: bool, trials: int) -> None:
    """Of whole lists, and with -M and -J."""
    rng = np.random.default_rng(2)
    counts: Counter[str] = Counter()
    docs = [f"d{i}" for i in range(7)]
    for trial in range(trials):
        pick = rng.choice(7, rng.integers(2, 6), replace=False)
        run = {"q": {docs[i]: float(rng.integers(0, 3)) for i in pick}}
        judged = rng.choice(7, rng.integers(1, 7), replace=False)
        qrels = {"q": {docs[i]: int(rng.integers(-1, 2 + trial % 2)) for i in judged}}
        level, most = int(rng.integers(1, 3)), int(rng.integers(1, 4)) if cut else None
        judged_only = cut and bool(rng.integers(0, 2))
        options = EvalOptions(level=level, most=most, judged_only=judged_only)
        lists = read_lists(qrels, run)
        shown = lists.relevance.tolist()
        orders = [[shown[i] for i in order] for order in all_orders(lists.scores.tolist())]
        # All scores differ in each, so that no tie remains.
        every = lists_of(
            [([None if r == UNJUDGED else r for r in one], lists.judged.tolist()) for one in orders]
        )
        seen = {
            name: {one if isinstance(one, str) else f"{one:.11f}" for one in row.tolist()}
            for name, row in values(every, NOTED, options).items()
        }
        for column in NOTED:
            matters = len(seen[column.name]) > 1
            said = tie_effect(lists, [column], options).queries > 0
            counts["tried"] += 1
            counts[f"in vain: {column.name}"] += said and not matters
            counts[f"missed: {column.name}"] += matters and not said
    wrong = {what: n for what, n in counts.items() if n and what != "tried"}
    assert wrong == {}
    assert counts["tried"] == trials * len(NOTED)


# -- Bounds of measures against all labellings of what is open, one by one -----------------------

NAMES = [
    "P_3",
    "success_2",
    "recip_rank",
    "recip_rank_cut_3",
    "rbp",
    "rbp_p=0.5",
    "dcg",
    "set_P",
    "map",
    "gm_map",
    "map_cut_3",
    "yaap",
    "ndcg",
    "ndcg_cut_3",
    "recall_3",
    "relative_P_3",
    "relative_map_3",
    "F1_3",
    "binG",
    "iprec_at_recall_0.40",
    "11pt_avg",
    "set_recall",
    "set_relative_P",
    "set_map",
    "set_F_0.5",
    "Rprec",
    "Rprec_mult_1.40",
    "bpref",
    "gm_bpref",
    "ndcg_rel",
    "Rndcg",
    "G",
]

BOUNDED = resolve(NAMES)

OPEN = None

# A query: what the documents of its list are (1, 0, -1: pooled and closed, "-": unjudged and
# closed, None: open), open ones that are not in it, and judgements of others that are not.
OpenQuery = tuple[list[object], int, list[int]]

QUERY = st.tuples(
    st.lists(st.sampled_from([1, 0, -1, "-", OPEN, OPEN]), max_size=7),
    st.integers(0, 2),
    st.lists(st.sampled_from([1, 0]), max_size=3),
)


def open_lists(queries: list[tuple[list[object], list[int]]]) -> Lists:
    """Lists of 1, 0, -1, "-" and None, and judgements of documents outside them."""
    shown = [[None if one == "-" else one for one in own] for own, _ in queries]
    return lists_of(
        [
            (own, [r for r in own if r is not None] + rest)
            for own, (_, rest) in zip(shown, queries, strict=True)
        ]
    )


def bounds_of(queries: list[OpenQuery]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    lists = open_lists([(own, rest) for own, _, rest in queries])
    is_open = np.array([one is OPEN for own, _, _ in queries for one in own], bool)
    return bounds(lists, is_open, np.array([outside for _, outside, _ in queries]), BOUNDED)


def extremes(query: OpenQuery) -> dict[str, tuple[float, float]]:
    """Lowest and highest value over every labelling of open documents."""
    own, outside, rest = query
    unknown = own.count(OPEN) + outside
    worlds = []
    for labels in itertools.product((0, 1), repeat=unknown):
        open_labels = iter(labels)
        filled = [next(open_labels) if one is OPEN else one for one in own]
        worlds.append((filled, [*rest, *open_labels]))
    rows = values(open_lists(worlds), BOUNDED)
    return {name: (float(row.min()), float(row.max())) for name, row in rows.items()}


@examples(1.5)
@given(st.lists(QUERY, min_size=1, max_size=4))
def test_bounds_are_the_extremes_of_all_labellings(queries: list[OpenQuery]) -> None:
    got = bounds_of(queries)
    assert list(got) == [column.name for column in BOUNDED]
    for number, query in enumerate(queries):
        for name, (low, high) in extremes(query).items():
            assert got[name][0][number] == pytest.approx(low, abs=1e-12), (name, "low")
            assert got[name][1][number] == pytest.approx(high, abs=1e-12), (name, "high")


def test_what_has_no_bounds_says_why() -> None:
    every = resolve([name for name in QRELS_ROWS if name != "runid"])
    without = {c.measure for c in every if why_unbounded(c)}
    assert {
        "map_hits",
        "lrap",
        "infAP",
        "judged",
        "unj",
        "utility",
        "num_rel",
        "relstring",
        "rbp_resid",
    } <= without
    assert {c.measure for c in BOUNDED} | without == {c.measure for c in every}
    lists = open_lists([([1, OPEN], [])])
    is_open, none = np.array([False, True]), np.zeros(1, np.int64)
    assert "it estimates from a sample" in why_unbounded(*resolve(["infAP"]))
    assert "it has other gains than relevant" in why_unbounded(*resolve(["ndcg.1=3"]))
    with pytest.raises(UsageError, match="judged document is marked as open"):
        bounds(lists, ~is_open, none, resolve(["P_5"]))
