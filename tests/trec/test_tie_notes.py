"""Do ties matter? What is said is held against every order of the tied documents."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kgtrec.trec.measures.judge import read_lists
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.ties import queries_with_ties
from kgtrec.trec.measures.values import values

COLUMNS = resolve([
    "bpref", "iprec_at_recall.0.5", "11pt_avg", "map", "map_cut.2", "Rprec", "Rprec_mult.0.6",
    "success.2", "P.2", "recall.2", "RR", "RR@2", "ndcg", "ndcg_cut.3", "ndcg_rel", "Rndcg", "G",
    "binG", "rbp", "rbp_resid", "dcg", "infAP", "judged@2", "unj.2", "yaap", "set_F", "num_rel_ret",
    "num_nonrel_judged_ret", "relstring.2", "ndcg.1=3,2=1", "rbp.1=0,2=1,0=1",
])  # fmt: skip


def all_orders(scores: list[float]):
    groups = [list(g) for _, g in itertools.groupby(range(len(scores)), key=lambda i: scores[i])]
    for order in itertools.product(*map(itertools.permutations, groups)):
        yield [i for group in order for i in group]


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "with -M and -J"])
def test_no_warning_in_vain_and_none_missed(cut: bool) -> None:
    rng = np.random.default_rng(2)
    counts: Counter[str] = Counter()
    docs = [f"d{i}" for i in range(7)]
    for trial in range(60 if cut else 250):
        pick = rng.choice(7, rng.integers(2, 6), replace=False)
        run = {"q": {docs[i]: float(rng.integers(0, 3)) for i in pick}}
        judged = rng.choice(7, rng.integers(1, 7), replace=False)
        qrels = {"q": {docs[i]: int(rng.integers(-1, 2 + trial % 2)) for i in judged}}
        level, most = int(rng.integers(1, 3)), int(rng.integers(1, 4)) if cut else None
        judged_only = cut and bool(rng.integers(0, 2))
        options = EvalOptions(native=True, level=level, most=most, judged_only=judged_only)
        lists = read_lists(qrels, run)
        seen: dict[str, set[str]] = {column.name: set() for column in COLUMNS}
        for order in all_orders(lists.scores.tolist()):
            # Apart from each other, so that no order of ties is left open.
            one = replace(lists, relevance=lists.relevance[order],
                          scores=-np.arange(len(order), dtype=np.float64))  # fmt: skip
            for name, (value,) in values(one, COLUMNS, options).items():
                seen[name].add(value if isinstance(value, str) else f"{value:.11f}")
        for column in COLUMNS:
            matters = len(seen[column.name]) > 1
            said = queries_with_ties(lists, [column], options) > 0
            counts["tried"] += 1
            counts[f"in vain: {column.name}"] += said and not matters
            counts[f"missed: {column.name}"] += matters and not said
    wrong = {what: n for what, n in counts.items() if n and what != "tried"}
    assert wrong == {}
    assert counts["tried"] == (60 if cut else 250) * len(COLUMNS)
