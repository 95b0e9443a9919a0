"""Random questions over one small graph, their scores, and the lists of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import kgtrec

N, R, DEPTH = 23, 3, 7


def random_questions(rng: np.random.Generator, n: int = N) -> kgtrec.Questions:
    triples = {
        split: np.stack(
            [rng.integers(0, n, size), rng.integers(0, R, size), rng.integers(0, n, size)], 1
        )
        for split, size in (("train", 60), ("valid", 10), ("test", 12))
    }
    graph = kgtrec.Graph.from_arrays(**triples, n_entities=n, n_relations=R)
    return graph.questions()


def some_scores(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.integers(0, 6, shape).astype(np.float32)


def run_lists(run: kgtrec.Run) -> list[list[int]]:
    bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
    return [run.documents[low:high].tolist() for low, high in bounds]


def assert_same(got: Any, expected: Any) -> None:
    """Ranks and run are those expected: all columns, what is said of the scores, all candidates."""
    for name in kgtrec.Ranks.__annotations__:
        np.testing.assert_array_equal(getattr(got[0], name), getattr(expected[0], name), name)
    said, due = (each[0].manifest["scores"] for each in (got, expected))
    assert {key: said.get(key) for key in due} == due
    assert run_lists(got[1]) == run_lists(expected[1])
    np.testing.assert_array_equal(got[1].scores, expected[1].scores)


def assert_same_bytes(got: Any, expected: Any, folder: Path) -> None:
    """Two rankings leave the same files: of the ranks, manifest included, and of the run."""
    for (ranks, run), name in ((got, "got"), (expected, "expected")):
        ranks.save(folder / f"{name}.parquet")
        if run.depth:
            run.write(folder / f"{name}.run", tag="same")
    assert got[1].depth == expected[1].depth
    for path in folder.glob("expected.*"):
        assert path.with_stem("got").read_bytes() == path.read_bytes(), path.suffix


def graded_answers(rng: np.random.Generator, n_questions: int = 23) -> kgtrec.Questions:
    """Questions that no graph has asked, with names, terms, known answers and grades."""
    sizes = rng.integers(1, 5, n_questions)
    lists = [rng.choice(N, size + 2, replace=False).tolist() for size in sizes]
    answers = [own[2:] for own in lists]
    return kgtrec.Questions.from_answers(
        {f"q{number}": own for number, own in enumerate(answers)}, [own[:2] for own in lists],
        labels=[f"d{number:03}" for number in rng.permutation(N)],
        terms={"kind": [f"k{size}" for size in sizes], "size": sizes},
        grades=[rng.integers(1, 4, len(own)).tolist() for own in answers],
    )  # fmt: skip
