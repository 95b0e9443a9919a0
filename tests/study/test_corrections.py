"""Ranks without and with added labels, against lists of candidates, and Table 1 of the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.study import label_corrections

SPORTS = [
    "water polo",
    "boxing",
    "dressage",
    "show jumping",
    "swimming",
    "sailing",
    "curling",
    "luge",
    "canoe sprint",
    "skeleton",
    "cycling",
]
MISSING = ("water polo", "boxing", "dressage", "show jumping", "canoe sprint", "cycling")


def olympics(test: tuple[str, ...]) -> kgtrec.Ranks:
    """Ranks of the sports of Table 1, which the model orders as `SPORTS`; two tie."""
    names = ["1956", *SPORTS]
    graph = kgtrec.Graph.from_arrays(
        test=[[0, 0, names.index(sport)] for sport in test], entities=names, relations=["held"]
    )
    scores = np.array([[-1.0, *(-np.arange(len(SPORTS), dtype=float))]])
    scores[0, names.index("sailing")] = scores[0, names.index("swimming")]
    scores[0, 0] = -99
    questions = graph.questions(sides="tail")
    return kgtrec.rank(scores, questions, progress=False)[0]


def test_table_1_of_the_paper() -> None:
    sparse, completed = (
        olympics(("swimming", "sailing")),
        olympics(("swimming", "sailing", *MISSING)),
    )
    corrections = label_corrections(sparse, completed)
    rows = [(row[2], row[3], *row[4:]) for row in corrections.question_table("tail0").rows]
    assert sorted(rows[:2]) == [("sailing", "test", 5, 1), ("swimming", "test", 5, 1)]
    assert rows[2:] == [
        ("water polo", "missing", 1, 1),
        ("boxing", "missing", 2, 1),
        ("dressage", "missing", 3, 1),
        ("show jumping", "missing", 4, 1),
        ("canoe sprint", "missing", 7, 3),
        ("cycling", "missing", 9, 4),
    ]
    (row,) = corrections.table().rows
    assert row[:4] == ("tail", 1, 2, 6)
    assert row[4:] == (0.2, 1.0, pytest.approx(0.822917, abs=1e-6))  # the paper: 20 % and 82 %


def world(seed: int) -> tuple[kgtrec.Graph, kgtrec.Graph, int]:
    """A graph, and the same with more test triples; the entities keep their labels, not ids."""
    rng = np.random.default_rng(seed)
    n = 8
    train = rng.integers(0, (n, 2, n), (5, 3))
    test = np.unique(rng.integers(0, (n, 2, n), (18, 3)), axis=0)
    known = {tuple(row) for row in train.tolist()}  # an added answer must not be known before
    test = rng.permutation([row for row in test.tolist() if tuple(row) not in known])
    size = int(rng.integers(1, len(test)))
    names = [f"e{number}" for number in rng.permutation(n)]
    return (
        kgtrec.Graph.from_arrays(train=train, test=test[:size], entities=names, n_relations=2),
        kgtrec.Graph.from_arrays(
            train=train, test=rng.permutation(test), entities=names, n_relations=2
        ),
        n,
    )


@given(seed=st.integers(0, 10**6))
def test_ranks_without_correction_are_those_of_the_sparse_labels(seed: int) -> None:
    graph, full, n = world(seed)
    table = np.random.default_rng(seed).integers(0, 4, (2, n, 2, n)).astype(np.float32)
    ranks = {}
    for name, one in (("sparse", graph), ("full", full)):
        questions = one.questions()
        scores = table[questions.side, questions.entity, questions.relation]
        ranks[name], _ = kgtrec.rank(scores, questions, progress=False)
    corrections = label_corrections(ranks["sparse"], ranks["full"])
    known = {tuple(row) for split in graph.splits.values() for row in split.tolist()}
    every = {tuple(row) for split in full.splits.values() for row in split.tolist()}
    test = {tuple(row) for row in graph.splits["test"].tolist()}
    part = corrections.ranks
    for row in range(len(part)):
        side, given, relation, answer = (
            int(getattr(part, column)[row]) for column in ("side", "given", "relation", "answer")
        )

        def triple(entity: int, side: int = side, given: int = given, relation: int = relation):
            return (entity, relation, given) if side == 0 else (given, relation, entity)

        assert corrections.is_missing[row] == (triple(answer) not in test)
        for facts, rank in ((known, corrections.without), (every, corrections.corrected)):
            others = [e for e in range(n) if e != answer and triple(e) not in facts]
            scores = table[side, given, relation]
            above = sum(scores[e] > scores[answer] for e in others)
            tied = sum(scores[e] == scores[answer] for e in others)
            assert rank[row] == 1 + above + tied / 2
    summary = corrections.table().to_dict()
    sparse = kgtrec.Result(ranks["sparse"])
    for side, cells in summary.items():
        assert cells["without"] == pytest.approx(sparse[f"{side}.realistic.question.mrr"])
    shifted = ranks["sparse"].subset(slice(None))
    shifted.greater[0] += 1
    with pytest.raises(InputError, match="do not follow from the added"):
        label_corrections(shifted, ranks["full"])
    if len(test) < len({tuple(row) for row in full.splits["test"].tolist()}):
        with pytest.raises(InputError, match="are not in the completed ranks"):
            label_corrections(ranks["full"], ranks["sparse"])


def test_the_command_and_its_refusals(tmp_path: Path) -> None:
    sparse, completed = (
        olympics(("swimming", "sailing")),
        olympics(("swimming", "sailing", *MISSING)),
    )
    for name, ranks in (("s", sparse), ("c", completed)):
        ranks.save(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / "s.parquet"), str(tmp_path / "c.parquet")]

    def call(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["changes", *words])
        return result.exit_code, result.output + str(result.exception or "")

    code, text = call(*files, "--corrected")
    assert code == 0
    assert text.splitlines()[1].split() == ["tail", "1", "2", "6", "0.2000", "1.0000", "0.8229"]
    code, text = call(*files, "--corrected", "--question", "tail0", "--format", "csv")
    assert code == 0
    assert 'tail0,"(1956, held, ?)",canoe sprint,missing,7.0,3.0' in text
    with pytest.raises(UsageError, match="have no question 'tail9'; they have tail0"):
        label_corrections(sparse, completed).question_table("tail9")
    raw = kgtrec.Graph.from_arrays(test=[[0, 0, 1]]).questions(filter="raw")
    ranks, _ = kgtrec.rank(np.zeros((2, 2), np.float32), raw, progress=False)
    with pytest.raises(UsageError, match="whose filter lacks their own split"):
        label_corrections(ranks, ranks)
