"""Random questions over one small graph, their scores and runs, and their counts by definition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import oracle

import kgtrec
from kgtrec.questions.api import Questions
from kgtrec.ranking.columns import COLUMN_TYPES

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


def ranking_case(seed: int) -> tuple[kgtrec.Questions, np.ndarray]:
    """Questions and their scores."""
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    return questions, some_scores(rng, (len(questions), N))


def run_lists(run: kgtrec.Run) -> list[list[int]]:
    bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
    return [run.documents[low:high].tolist() for low, high in bounds]


def assert_same(got: Any, expected: Any) -> None:
    """Ranks and run are those expected: all columns, what is said of the scores, all candidates."""
    for name in COLUMN_TYPES:
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
    answers = [items[2:] for items in lists]
    return kgtrec.Questions.from_answers(
        {f"q{number}": items for number, items in enumerate(answers)},
        [items[:2] for items in lists],
        labels=[f"d{number:03}" for number in rng.permutation(N)],
        terms={"kind": [f"k{size}" for size in sizes], "size": sizes},
        grades=[rng.integers(1, 4, len(items)).tolist() for items in answers],
    )


@functools.lru_cache(maxsize=9)
def _places_by_name(questions: Questions) -> np.ndarray:
    """The place of every candidate's name among all."""
    names = [oracle.docno(label) for label in questions.candidate_labels]
    return np.argsort(np.argsort(np.array(names)))


Expected = tuple[dict[str, np.ndarray], list[list[int]], int]


def expected_of(
    scores: np.ndarray,
    questions: Questions,
    depth: int = 0,
    lists: Sequence[Collection[int]] | None = None,
    tied: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> Expected:
    """Counts of every instance, the best of every question and the number of NaN, with masks over
    whole rows. ``lists``: the candidates of each question; ``tied``: which scores tie with others.
    """
    n, names = scores.shape[1], _places_by_name(questions)
    counts: dict[str, list[np.ndarray]] = {}
    best, n_nan = [], 0
    for question, row in enumerate(scores):
        answers = questions.answers[question]
        own_score, nan = row[answers][:, None], np.isnan(row)
        listed = np.ones(n, bool)
        if lists is not None:
            listed = np.isin(np.arange(n), list(lists[question]))
        worst = nan[answers] | ~listed[answers]
        for prefix, out in (("", questions.known), ("macro_", questions.removed)):
            among = listed.copy()
            among[out[question]] = False
            equal, above = row == own_score, row > own_score
            ahead = (among & (above | equal & (names > names[answers][:, None]))).sum(axis=1)
            if tied and not prefix:
                equal = tied(row, own_score)
                above &= ~equal
            greater = (among & above).sum(axis=1)
            last = among.sum() - among[answers]
            due = {
                "greater": np.where(worst, last, greater),
                "equal": np.where(worst, 0, (among & equal).sum(axis=1) - among[answers]),
                "tied_ahead": np.where(worst, 0, ahead - greater),
                "candidates": last + 1,
            }
            for name, column in due.items():
                counts.setdefault(prefix + name, []).append(column)
        left = np.flatnonzero(among & ~nan)  # of the macro candidates
        order = np.lexsort((names[left], row[left]))
        best.append(left[order[::-1][:depth]].tolist())
        among[answers] = True
        n_nan += int((among & nan).sum())
    return {name: np.concatenate(columns) for name, columns in counts.items()}, best, n_nan


def assert_due(got: Any, due: Expected, *context: object) -> None:
    """Ranks and run have these counts, best candidates and number of NaN."""
    ranks, run = got
    for name, column in due[0].items():
        assert np.array_equal(getattr(ranks, name), column), (name, *context)
    assert run_lists(run) == due[1], context
    assert ranks.manifest["scores"].get("nan_count", 0) == due[2], context


def rewrite_as_openke(folder: Path) -> None:
    """Write a graph's files again, with numbers instead of names, and files of the names."""
    graph = kgtrec.read_graph(folder, progress=False)
    for split, rows in graph.splits.items():
        lines = "".join(f"{h} {t} {r}\n" for h, r, t in rows.tolist())
        (folder / f"{split}2id.txt").write_text(f"{len(rows)}\n{lines}")
        (folder / f"{split}.txt").unlink()
    for kind, labels in (("entity", graph.entities), ("relation", graph.relations)):
        lines = "".join(f"{label}\t{number}\n" for number, label in enumerate(labels))
        (folder / f"{kind}2id.txt").write_text(f"{len(labels)}\n{lines}")


FACTOR_METRICS = ("dot", "l2", "l1", "moduli", "mode", "hake")


def factor_dims(metric: str, n: int) -> tuple[int, int]:
    """How many numbers queries and entities of a factorised model have in `n` dimensions."""
    dims = {"moduli": (2 * n, 2 * n), "mode": (2 * n, n), "hake": (4 * n + 2, 3 * n)}
    return dims.get(metric, (n, n))
