"""Sums of some items at a time have the bits of those of all at once."""

from __future__ import annotations

import numpy as np
import pytest

from kgtrec.measures import averaging
from kgtrec.ranking.ranks import _COLUMNS, _FLAGS, Ranks
from kgtrec.results.result import Result

KEYS = (
    "mr", "mrr", "hits@10", "amri", "gmr", "head.mrr", "macro.mr", "macro.mrr", "macro.hits@3",
    "expected.macro.mr", "expected.macro.mrr", "expected.mrr", "macro_relation.mrr",
    "question.mrr", "both.realistic.relation.mrr", "triple.mrr", "median_rank", "std",
    "stratified.mrr(0.5,0.5)", "macro.map_cut_20", "macro.num_rel",
)  # fmt: skip


def some_ranks(n_triples: int, shuffled: bool) -> Ranks:
    """Relations of very different sizes, questions of several answers, ties."""
    rng = np.random.default_rng(3)
    n = 2 * n_triples
    relation = np.minimum(rng.geometric(0.3, n_triples), 9)
    columns = {name: np.zeros(n, np.int64) for name in _COLUMNS}
    columns["side"] = np.repeat([0, 1], n_triples)
    columns["triple"] = np.tile(np.arange(n_triples), 2)
    columns["relation"] = relation[columns["triple"]]
    columns["question"] = np.concatenate(
        [np.sort(rng.integers(first, first + n_triples // 2, n_triples)) for first in (0, n)]
    )
    columns["greater"], columns["macro_greater"] = rng.geometric(0.1, (2, n)) - 1
    for prefix in ("", "macro_"):
        columns[f"{prefix}equal"] = rng.integers(0, 3, n)
        columns[f"{prefix}tied_ahead"] = columns[f"{prefix}equal"] // 2
        columns[f"{prefix}candidates"] = rng.integers(200, 300, n)
    columns["answer_popularity"] = rng.integers(1, 50, n)
    columns["relation_popularity"] = np.bincount(relation)[columns["relation"]]
    columns |= {name: np.zeros(n, bool) for name in _FLAGS}
    order = rng.permutation(n) if shuffled else np.arange(n)
    return Ranks({name: column[order] for name, column in columns.items()}, {"questions": {}})


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100, 1_500])
def test_pieces_have_the_bits_of_the_whole(
    size: int, shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = some_ranks(1_000, shuffled)
    whole = [Result(ranks)[key] for key in KEYS]
    tables = Result(ranks).slice("relation").to_csv()
    monkeypatch.setattr(averaging, "_ITEMS", size)
    assert [Result(ranks)[key] for key in KEYS] == whole
    assert Result(ranks).slice("relation").to_csv() == tables


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_mean_is_that_of_every_cell_in_the_order_of_its_rows(shuffled: bool) -> None:
    """numpy's sum of the cells, by relation and side, one after the other."""
    ranks = some_ranks(1_000, shuffled)
    values = 1 / ranks.rank("realistic")
    order = np.lexsort((ranks.side, ranks.relation))
    cells, starts = np.unique(
        np.stack([ranks.relation, ranks.side])[:, order], axis=1, return_index=True
    )
    sums = np.add.reduceat(values[order], starts)
    assert Result(ranks)["mrr"] == sums.sum() / len(ranks)
    assert Result(ranks)["tail.mrr"] == sums[cells[1] == 1].sum() / (ranks.side == 1).sum()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("size", [1, 100, 1 << 18])
def test_best_answers_are_those_of_a_sort(
    size: int, shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(averaging, "_ITEMS", size)
    ranks = some_ranks(300, shuffled)
    best: dict[int, tuple[int, int, int]] = {}
    for row in range(len(ranks)):
        place = int(ranks.macro_greater[row]), int(ranks.macro_tied_ahead[row]), row
        best[int(ranks.question[row])] = min(place, best.get(int(ranks.question[row]), place))
    rows, level = averaging.question_rows(ranks)
    assert rows.tolist() == [best[question][2] for question in sorted(best)]
    assert level.tolist() == [
        int(((ranks.question == q) & (ranks.macro_greater == best[q][0])).sum())
        for q in sorted(best)
    ]
