"""FB15k-237 and two trained models: ranks and runs against numpy that shares no code.

DistMult goes through dense chunks and every single instance is ranked again by brute force. Both go
through Factors, where a sample of 100 instances is checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import kgtrec

pytestmark = [pytest.mark.data, pytest.mark.slow]
N_RELATIONS = 237
CHUNK = 1024
DEPTH = 20
SAMPLE = 100


class Asked(NamedTuple):
    """Answers of a question, entities known from other splits but no answers, and all known."""

    answers: list[int]
    removed: np.ndarray
    known: np.ndarray


@pytest.fixture(scope="module")
def questions(shared_data: Path) -> kgtrec.Questions:
    return kgtrec.read_graph(shared_data / "fb15k-237").questions("test")


@pytest.fixture(scope="module")
def asked(questions: kgtrec.Questions) -> list[Asked]:
    """All questions, by nothing but dictionaries of the triples."""
    found: tuple[defaultdict, defaultdict] = defaultdict(set), defaultdict(set)
    for name, triples in questions.graph.splits.items():
        for h, r, t in triples.tolist():
            found[name == "test"][0, t, r].add(h)
            found[name == "test"][1, h, r].add(t)
    keys = zip(
        *(part.tolist() for part in (questions.side, questions.entity, questions.relation)),
        strict=True,
    )
    pairs = [(found[True][key], found[False][key]) for key in keys]
    return [
        Asked(sorted(own), np.array(sorted(other - own), int), np.array(sorted(other | own), int))
        for own, other in pairs
    ]


def factors_of(shared_data: Path, name: str, questions: kgtrec.Questions) -> kgtrec.Factors:
    """One query vector per question; a head question asks for the inverse relation."""
    with np.load(shared_data / "models" / f"fb15k-237-{name}.npz") as file:
        entity, relation = file["entity"], file["relation"]
    e = entity[questions.entity]
    w = relation[questions.relation + np.where(questions.side == 0, N_RELATIONS, 0)]
    if name == "distmult":
        return kgtrec.Factors(e * w, entity, metric="dot")
    return kgtrec.Factors(e + w, entity, metric="l2")


def counts_against(others: np.ndarray, score: np.floating) -> tuple[int, int, int]:
    """greater, equal, candidates of an answer against all other candidates."""
    greater, equal = np.count_nonzero(others > score), np.count_nonzero(others == score)
    return int(greater), int(equal), len(others) + 1


def best_documents(row: np.ndarray, out: np.ndarray) -> list[int]:
    """The best in trec order; ids are in byte order of the labels, so higher ids win ties."""
    candidates = np.delete(np.arange(len(row)), out)
    least = np.partition(row[candidates], -DEPTH)[-DEPTH]
    candidates = candidates[row[candidates] >= least]
    order = np.lexsort((-candidates, -row[candidates]))
    return candidates[order[:DEPTH]].tolist()


def test_questions(asked: list[Asked], questions: kgtrec.Questions) -> None:
    assert len(asked) == len(questions)
    for number, one in enumerate(asked):
        for name in Asked._fields:
            assert getattr(questions, name)[number].tolist() == list(getattr(one, name)), name


@pytest.fixture(scope="module")
def dense(shared_data: Path, asked: list[Asked], questions: kgtrec.Questions):
    """DistMult by chunks: kgtrec's ranks and run, and brute force on the very same chunks."""
    model = factors_of(shared_data, "distmult", questions)
    micro, macro, best = {}, {}, []

    def chunks() -> Iterator[np.ndarray]:
        for start in range(0, len(model.queries), CHUNK):
            block = model.queries[start : start + CHUNK] @ model.entities.T
            for number, row in enumerate(block, start):
                own = asked[number]
                few, many = np.delete(row, own.known), np.delete(row, own.removed)
                for answer in own.answers:
                    micro[number, answer] = counts_against(few, row[answer])
                    greater, equal, candidates = counts_against(many, row[answer])
                    macro[number, answer] = greater, equal - 1, candidates - 1  # it is one of them
                best.append(best_documents(row, own.removed))
            yield block

    return *kgtrec.rank(chunks(), questions, run_depth=DEPTH), micro, macro, best


def test_dense_ranks_of_every_instance_and_the_run(dense) -> None:
    ranks, run, micro, macro, best = dense
    keys = list(zip(ranks.question.tolist(), ranks.answer.tolist(), strict=True))
    assert len(keys) == len(set(keys)) == len(micro) == 2 * 20466
    for prefix, due in (("", micro), ("macro_", macro)):
        names = (f"{prefix}{name}" for name in ("greater", "equal", "candidates"))
        got = zip(*(getattr(ranks, name).tolist() for name in names), strict=True)
        assert list(got) == [due[key] for key in keys]
    parts = np.split(np.asarray(run.documents), run.offsets[1:-1])
    assert [part.tolist() for part in parts] == best


@pytest.mark.parametrize("name", ["distmult", "transe"])
def test_sampled_ranks_of_factors(name: str, shared_data: Path, asked, questions, dense) -> None:
    """Exactly those of the scores that are ranked, which are the formula's up to rounding."""
    source = factors_of(shared_data, name, questions)
    ranks, _ = kgtrec.rank(source, questions)
    x = source.entities.astype(np.float64)
    squares = (x * x).sum(1)
    for row in np.random.default_rng(0).choice(len(ranks), SAMPLE, replace=False):
        number, answer = int(ranks.question[row]), int(ranks.answer[row])
        q = source.queries[number].astype(np.float64)
        due, size = x @ q, np.sqrt(squares * (q @ q))
        if name == "transe":
            due, size = 2 * due - squares - q @ q, 2 * size + squares + q @ q
        scores = source.scores(number, number + 1)[0]
        assert np.all(np.abs(scores - due) <= 8 * np.finfo(np.float32).eps * size)
        few = np.delete(scores, asked[number].known)
        got = (ranks.greater[row], ranks.equal[row], ranks.candidates[row])
        assert got == counts_against(few, scores[answer])
    mrr = np.mean(1 / ranks.rank("realistic"))
    assert 0.25 < mrr < 0.33  # as the README of the models says
    if name == "distmult":  # matrix products round differently from Factors: some near ties swap
        assert mrr == pytest.approx(np.mean(1 / dense[0].rank("realistic")), abs=1e-5)
        assert np.mean(ranks.greater != dense[0].greater) < 0.05
