"""Micro or macro: shares of categories and gaps, against a slow definition."""

from __future__ import annotations

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import UsageError
from kgtrec.results.averages import averages_of, sentence_on


def world(seed: int) -> tuple[kgtrec.Graph, kgtrec.Questions, np.ndarray]:
    """Relations of all categories, one of them only in test; scores without ties."""
    rng = np.random.default_rng(seed)
    rows = [(h, 0, h + 6) for h in range(5)]  # 1-1
    rows += [(h, 1, int(t)) for h in range(2) for t in rng.choice(12, 4, False)]
    rows += [(int(h), 2, t) for t in range(2) for h in rng.choice(12, 4, False)]
    rows += [(h, 3, t) for h in range(3) for t in range(5)]
    rows = sorted({*rows})
    test = [rows[i] for i in rng.choice(len(rows), 9, False)]
    train = [row for row in rows if row not in test]
    test += [(0, 4, 3)] * (seed % 2)
    graph = kgtrec.Graph.from_arrays(train=train, test=test, n_entities=12, n_relations=5)
    questions = graph.questions("test", sides=("both", "head", "tail")[seed % 3])
    scores = rng.permuted(np.tile(np.arange(12.0, dtype=np.float32), (len(questions), 1)), axis=1)
    return graph, questions, scores


def slow_category(train: list[tuple[int, int, int]], relation: int) -> str:
    pairs = {(h, t) for h, r, t in train if r == relation}
    if not pairs:
        return "unseen"
    tails = len(pairs) / len({h for h, _ in pairs})
    heads = len(pairs) / len({t for _, t in pairs})
    return f"{'N' if heads >= 1.5 else '1'}-{'N' if tails >= 1.5 else '1'}"


@pytest.mark.parametrize("seed", range(12))
def test_shares_and_gaps_are_those_of_a_slow_definition(seed: int) -> None:
    graph, questions, scores = world(seed)
    result = kgtrec.evaluate(scores, questions, progress=False)
    train = [tuple(row) for row in graph.split("train").tolist()]
    values: list[tuple[int, int, float]] = []  # relation, question, 1 / rank
    answers_of = np.split(questions.answers.ids, questions.answers.offsets[1:-1])
    removed_of = np.split(questions.removed.ids, questions.removed.offsets[1:-1])
    relations = questions.relation.tolist()
    for row, (answers, removed) in enumerate(zip(answers_of, removed_of, strict=True)):
        out = {*answers.tolist(), *removed.tolist()}
        for answer in answers.tolist():
            better = [e for e in range(12) if scores[row, e] > scores[row, answer]]
            rank = 1 + len([e for e in better if e not in out])
            values.append((relations[row], row, 1 / rank))
    averages = averages_of(result, graph)
    due: dict[str, int] = {}
    for relation, _, _ in values:
        name = slow_category(train, relation)
        due[name] = due.get(name, 0) + 1
    assert {k: v for k, v in averages.shares.items() if v} == pytest.approx(
        {name: count / len(values) for name, count in due.items()}
    )
    assert [*averages.shares][:4] == ["1-1", "1-N", "N-1", "N-N"]

    def equally(index: int, choose) -> float:
        groups: dict[int, list[float]] = {}
        for one in values:
            groups.setdefault(one[index], []).append(one[2])
        return sum(map(choose, groups.values())) / len(groups)

    micro = sum(value for *_, value in values) / len(values)
    macro = equally(1, max)  # of the first answer, whose filtered rank is its rank
    over_relations = equally(0, lambda some: sum(some) / len(some))
    side = result.sides[-1]
    numbers = averages.to_dict(f"{side}.realistic")
    assert numbers[f"gap.{side}.realistic.macro.mrr"] == pytest.approx(micro - macro)
    assert numbers[f"gap.{side}.realistic.macro_relation.mrr"] == pytest.approx(
        micro - over_relations
    )
    text = averages.sentence()
    assert f"micro {micro:.4f}" in text
    assert f"relations equally {over_relations:.4f} (gap {micro - over_relations:+.4f})" in text
    assert f"N-N {100 * averages.shares['N-N']:.1f} %" in text
    assert sentence_on({"A": averages, "B": averages}).count("micro") >= 2


def test_another_graph_is_refused() -> None:
    _, questions, scores = world(0)
    result = kgtrec.evaluate(scores, questions, progress=False)
    with pytest.raises(UsageError, match="graph"):
        averages_of(result, world(4)[0])
