"""`rank_to_file`: blocks of a few instances make the file that one process makes of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_cases import graded_answers
from slow import slow_after

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking import parquet
from kgtrec.ranking import ranks as ranks_module

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

from distributed import Client

import kgtrec.cluster
from kgtrec.cluster import stored_ranks
from kgtrec.cluster.dask.rank import rank_parts
from kgtrec.cluster.dask.workers import TaskOptions
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.stored_ranks import StoredRanks, stored_result
from kgtrec.ranking.settings import Settings

N = 30


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with Client(processes=False, **options) as client:
        yield client


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of 64 instances, sums of 128, runs of 50 questions: some hundreds are many."""
    for module in (parquet, stored_ranks):
        monkeypatch.setattr(module, "ROW_GROUP", 64)
    monkeypatch.setattr(ranks_module, "_BLOCK", 128)
    monkeypatch.setattr(stored_ranks, "_CANDIDATES", 200)


def questions_of(filters: tuple[str, ...] | None = None, sides: str = "both") -> kgtrec.Questions:
    rng = np.random.default_rng(5)
    triples = np.stack([rng.integers(0, size, 400) for size in (N, 4, N)], axis=1)
    labels = [f"\u00e9{number}" for number in range(N)]
    graph = kgtrec.Graph.from_arrays(triples[:150], None, triples[150:], N, 4, entities=labels)
    return graph.questions("test", sides, filter=filters)


def scores_of(questions: kgtrec.Questions, rows: str) -> np.ndarray:
    n = len(questions) if rows == "questions" else questions.n_instances
    scores = np.random.default_rng(6).integers(0, 9, (n, questions.n_labels)).astype(np.float32)
    scores[::7, ::3] = np.nan
    return scores


@pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")
@pytest.mark.parametrize("stored", slow_after(1, [True, False]))
@pytest.mark.parametrize("rows", slow_after(1, ["questions", "instances"]))
@pytest.mark.parametrize(
    "case", ["all known", "train known", "restricted", "relations", "timed", "values", "answers"]
)
def test_the_file_is_that_of_one_process(
    tmp_path: Path, client: Client, case: str, rows: str, stored: bool
) -> None:
    sides = "relation" if case == "relations" else "both"
    questions = questions_of(("train",) if case == "train known" else None, sides)
    if case == "timed":
        graph, rng = questions.graph, np.random.default_rng(7)
        facts = {
            name: np.column_stack([rows, rng.integers(0, 3, len(rows))])
            for name, rows in graph.splits.items()
        }
        questions = kgtrec.Graph.from_arrays(**facts, n_entities=N).questions(context="time")
    if case == "values":
        splits, rng = questions.graph.splits, np.random.default_rng(8)
        qualifiers = {
            name: (2 * np.arange(len(rows) + 1), rng.integers(0, 3, (2 * len(rows), 2)))
            for name, rows in splits.items()
        }
        graph = kgtrec.Graph.from_arrays(**splits, n_entities=N, qualifiers=qualifiers)
        questions = graph.questions(sides="qualifier", context="qualifiers")
    if case == "answers":
        questions = graded_answers(np.random.default_rng(9), 150)
    if case == "restricted":
        questions = questions.restrict(heads={0: range(15)}, outside="worst")
    scores = scores_of(questions, rows)
    ranks, run = kgtrec.rank(scores, questions, 4, rows=rows, nan="worst")
    assert len(ranks) > 3 * 64
    ranks.save(tmp_path / "one")
    run.write(tmp_path / "run")
    asked = questions
    if stored:
        asked = kgtrec.cluster.store_questions(questions, tmp_path / "store", rows)
    path, run_path = tmp_path / "blocks", tmp_path / "run-blocks"
    kgtrec.cluster.rank_to_file(
        scores, asked, path, client, run=run_path, run_depth=4, rows=rows, nan="worst",
        folder=tmp_path / "work",
    )  # fmt: skip
    assert path.read_bytes() == (tmp_path / "one").read_bytes()
    assert run_path.read_bytes() == (tmp_path / "run").read_bytes()
    assert not list((tmp_path / "work").glob(".kgtrec-*"))


@pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")
@pytest.mark.parametrize("rows", slow_after(1, ["questions", "instances"]))
@pytest.mark.parametrize("filters", [None, ("train",)])
def test_a_result_of_files_is_that_of_one_process(
    tmp_path: Path, client: Client, rows: str, filters: tuple[str, ...] | None
) -> None:
    questions = questions_of(filters)
    scores, names = scores_of(questions, rows), ["mrr", "map_cut_20", "head.ndcg_cut_5", "gm_map",
        "tail.P_3", "macro_relation.mrr", "question.amri", "triple.hits@3"]  # fmt: skip
    due = kgtrec.evaluate(scores, questions, names, rows=rows, nan="worst")
    work = tmp_path / "work"
    inputs = make_inputs(scores, questions, work, Settings(20, rows=rows, nan="worst", threads=1))
    stored = StoredRanks(tmp_path, inputs)
    rank_parts(inputs, client, stored.add, TaskOptions(progress=False))
    result = stored_result(stored, tmp_path, kgtrec.measures.parse_all(names))
    assert result.to_dict() == due.to_dict()
    assert result.agreement == due.agreement
    for name, ranks in (("due", due.ranks), ("blocks", result.ranks)):
        ranks.save(tmp_path / name, "realistic")
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "due").read_bytes()


def test_it_goes_on_with_parts_that_are_there(tmp_path: Path, client: Client) -> None:
    questions = questions_of()
    scores = np.nan_to_num(scores_of(questions, "questions"))
    ranks, _ = kgtrec.cluster.rank(scores, questions, client, folder=tmp_path / "work")
    ranks.save(tmp_path / "one")
    tasks = [path.name for path in (tmp_path / "work").glob("parts-*/*.part")]
    assert tasks
    for path in (tmp_path / "work").glob("parts-*/*.part"):
        path.touch()
    kgtrec.cluster.rank_to_file(
        scores, questions, tmp_path / "blocks", client, folder=tmp_path / "work"
    )
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "one").read_bytes()
    assert [path.name for path in (tmp_path / "work").glob("parts-*/*.part")] == tasks


def test_what_is_refused(tmp_path: Path, client: Client) -> None:
    questions = questions_of()
    scores = scores_of(questions, "questions")
    with pytest.raises(UsageError, match=r"to write [0-9]+ ranks takes .* grant more"):
        kgtrec.cluster.rank_to_file(scores, questions, tmp_path / "x", client, "50MB")
    with pytest.raises(InputError, match="NaN"):
        kgtrec.cluster.rank_to_file(scores, questions, tmp_path / "x", client)
    with pytest.raises(FileError, match="No such file"):
        kgtrec.cluster.rank_to_file(scores, tmp_path / "none", tmp_path / "x", client)
    with pytest.raises(UsageError, match="rows='row' is unknown"):
        kgtrec.cluster.store_questions(questions, tmp_path, "row")
    stored = kgtrec.cluster.store_questions(questions, tmp_path)
    with pytest.raises(UsageError, match="store the questions with rows='instances'"):
        kgtrec.cluster.rank_to_file({"head": scores, "tail": scores}, stored, tmp_path / "x")
    with pytest.raises(FileError, match="folder"):
        kgtrec.cluster.rank_to_file(scores, questions, tmp_path / "no" / "x", client)
    assert not (tmp_path / "x").exists()


@given(st.integers(0, 3000), st.integers(0, 99))
def test_sums_of_blocks_have_the_bits_of_the_whole(n: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(n)
    total = ranks_module.tree_sum(lambda a, b: float(np.add.reduce(values[a:b])), 0, n)
    assert total == float(np.add.reduce(values))
