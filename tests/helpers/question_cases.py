"""Random questions over one small graph, their scores and runs, and their counts by definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracle

import kgtrec
from kgtrec.questions.api import Questions
from kgtrec.ranking.ranks import Ranks

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


def _candidates(questions: Questions, lists: list[set[int]] | None, question: int) -> set[int]:
    return set(range(questions.n_labels)) if lists is None else lists[question]


def _docnos(questions: Questions) -> list[bytes]:
    return [oracle.docno(label) for label in questions.candidate_labels]


def expected_counts(
    questions: Questions, scores: np.ndarray, lists: list[set[int]] | None = None
) -> dict[str, list[int]]:
    """Micro and macro counts; ``lists``: the candidates of each question, all entities if None."""
    names = ("greater", "equal", "tied_ahead", "candidates")
    columns: dict[str, list[int]] = {f"{p}{name}": [] for p in ("", "macro_") for name in names}
    docnos = _docnos(questions)
    for question, row in enumerate(scores):
        candidates = _candidates(questions, lists, question)
        for answer in questions.answers[question].tolist():
            for prefix, away in (("", questions.known), ("macro_", questions.removed)):
                among = candidates - set(away[question].tolist()) | {answer}
                counts = oracle.count(row, answer, among, docnos)
                if answer not in candidates:
                    counts = oracle.Counts(len(among) - 1, 0, 0, len(among), False)
                for name in names:
                    columns[f"{prefix}{name}"].append(getattr(counts, name))
    return columns


def expected_best(
    questions: Questions, scores: np.ndarray, depth: int, lists: list[set[int]] | None = None
) -> list[list[int]]:
    """The best macro candidates of every question, in trec order."""
    docnos = _docnos(questions)
    return [
        oracle.best(row, _candidates(questions, lists, q) - set(questions.removed[q].tolist()),
                    docnos, depth) for q, row in enumerate(scores)
    ]  # fmt: skip


def assert_counts(ranks: Ranks, expected: dict[str, list[int]]) -> None:
    """Check every column of counts."""
    for name, values in expected.items():
        np.testing.assert_array_equal(getattr(ranks, name), values, err_msg=name)


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
