"""Every way to rank on a cluster gives the bytes of `kgtrec.rank`, for any input.

Blocks of files are a few instances here, so that they begin inside questions.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_cases import FACTOR_METRICS, N, R, factor_dims, graded_answers, some_scores
from slow import slow_but

import kgtrec

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import dask.array as da
from dask_workers import pieces, plan_as

import kgtrec.cluster
from kgtrec.cluster import stored_ranks
from kgtrec.cluster.dask import rank as dask_rank
from kgtrec.cluster.dask.workers import TaskOptions
from kgtrec.cluster.inputs import build_inputs
from kgtrec.cluster.shards import merge_shards, open_shard, rank_shard
from kgtrec.cluster.stored_ranks import StoredRanks, evaluate_stored
from kgtrec.ranking import parquet, tie_report
from kgtrec.ranking.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")

WAYS = ("shards by questions", "shards by entities", "dask", "dask array", "file")
CASES = (
    "plain",
    "lower",
    "half",
    "restricted",
    "lists",
    "instances",
    "nan",
    "close",
    "dot",
    "l2",
    "l1",
    "moduli",
    "mode",
    "hake",
    "answers",
    "train known",
    "relations",
    "timed",
    "values",
    "timed rows",
    "chosen",
    "columns",
    "dot chosen",
    "integers",
)
CHOSEN = {"chosen", "columns", "dot chosen"}
WHOLE_ROWS = {"restricted", "lists"} | CHOSEN  # candidates are ranked with all entities
FACTORS = {*FACTOR_METRICS, "dot chosen"}
MATRIX = [
    (way, case)
    for way, case in itertools.product(WAYS, CASES)
    if not (way == "shards by entities" and case in WHOLE_ROWS)
    and not (way == "dask array" and case in FACTORS | {"instances", "timed rows"})
]
# Every case in files, and every other way with a fifth of the cases.
SOME = [
    (way, case)
    for way, case in MATRIX
    if way == "file" or (WAYS.index(way) + CASES.index(case)) % 5 == 0
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of 40 instances, runs of 40 questions, sums of 128 instances."""
    for module in (parquet, stored_ranks):
        monkeypatch.setattr(module, "ROW_GROUP", 40)
    monkeypatch.setattr(tie_report, "_BLOCK", 128)
    monkeypatch.setattr(stored_ranks, "_CANDIDATES", 200)


def questions_of(case: str, rng: np.random.Generator) -> kgtrec.Questions:
    """Questions with several answers, and labels in another order than ids."""
    if case == "answers":
        return graded_answers(rng, 60)
    facts = {
        split: np.stack([rng.integers(0, size, rows) for size in (N, R, N)], axis=1)
        for split, rows in (("train", 60), ("valid", 10), ("test", 70))
    }
    options: dict[str, Any] = {"filter": ("train",)} if case == "train known" else {}
    further: dict[str, Any] = {}
    if case.startswith("timed"):
        facts = {
            split: np.column_stack([rows, rng.integers(0, 3, len(rows))])
            for split, rows in facts.items()
        }
        options["context"] = "time"
    if case == "values":
        further["qualifiers"] = {
            split: (2 * np.arange(len(rows) + 1), rng.integers(0, R, (2 * len(rows), 2)))
            for split, rows in facts.items()
        }
        options |= {"sides": "qualifier", "context": "qualifiers"}
    if case == "relations":
        options["sides"] = "relation"
    labels = [f"\u00e9{number}" for number in range(N)]
    graph = kgtrec.Graph.from_arrays(
        **facts, n_entities=N, n_relations=R, entities=labels, **further
    )
    questions = graph.questions(**options)
    if case == "restricted":
        return questions.restrict(entities=range(0, N, 2), outside="worst")
    if case == "lists":
        return questions.restrict(heads={0: range(N // 2)}, outside="worst")
    if case in CHOSEN:
        lists = np.stack([rng.permutation(N)[:9] for _ in range(len(questions))])
        columns = "candidates" if case == "columns" else "entities"
        return questions.restrict(candidates=lists, columns=columns, outside="worst")
    return questions


def case_of(name: str, rng: np.random.Generator) -> tuple[Any, kgtrec.Questions, dict[str, Any]]:
    """Scores, questions and settings."""
    questions, settings = questions_of(name, rng), {"run_depth": 5}
    scores: Any = some_scores(rng, (len(questions), questions.n_columns))
    if name in FACTORS:
        metric = name.split()[0]
        of_query, of_entity = factor_dims(metric, 5)
        entities = rng.normal(size=(N, of_entity)).astype(np.float32)
        entities[rng.integers(0, N, 6)] = entities[3]  # equal vectors tie exactly
        queries = rng.normal(size=(len(questions), of_query)).astype(np.float32)
        bias = rng.integers(0, 2, N).astype(np.float32)
        return kgtrec.Factors(queries, entities, bias, metric), questions, settings
    if name == "lower":
        settings |= {"higher_is_better": False}
    if name == "half":
        scores = scores.astype(np.float16)
    if name == "integers":
        scores = np.round(10 * scores).astype(np.int64)
    if name == "instances":
        n = len(questions.triples)
        scores = {side: some_scores(rng, (n, N)) for side in ("head", "tail")}
    if name == "timed rows":
        settings |= {"rows": "instances"}
        scores = some_scores(rng, (questions.n_instances, N))
    if name in ("nan", "lists", "timed", "values", "timed rows", "columns"):
        scores[rng.random(scores.shape) < 0.05] = np.nan
        settings |= {"nan": "worst"}
    if name == "close":
        scores += 1
        settings |= {"atol": 1e-3, "rtol": 0.3}
    return scores, questions, settings


def by_shards(source, questions, settings, way: str, folder: Path):
    inputs = build_inputs(source, questions, folder, Settings(threads=1, **settings))
    for number in (3, 1, 2):
        shard = open_shard(inputs, folder, number, 3, way)
        rank_shard(shard, shard.plan("2GB", calibrate=False), progress=False)
        assert shard.state() == "whole"
    ranks, run, merged = merge_shards(folder)
    assert merged.fingerprint == questions.fingerprint
    return ranks, run


@pytest.mark.parametrize(("way", "case"), slow_but(SOME, MATRIX))
def test_every_way_gives_the_bytes_of_one_process(way, case, client, tmp_path, monkeypatch) -> None:
    number = CASES.index(case)
    rng = np.random.default_rng(number)
    source, questions, settings = case_of(case, rng)
    ranks, run = kgtrec.rank(source, questions, **settings)
    assert len(ranks) > 40
    if case == "nan":
        assert ranks.manifest["scores"]["nan_count"]
    if case == "close":
        assert (ranks.equal > kgtrec.rank(source, questions)[0].equal).any()
    ranks.save(tmp_path / "one.parquet")
    run.write(tmp_path / "one.run")

    whole = case in WHOLE_ROWS
    by_row = case in ("instances", "timed rows")
    n_rows = questions.n_instances if by_row else len(questions)
    ranges = ((0, N),) if whole else pieces(rng, questions.n_labels, 2)
    plan_as(monkeypatch, pieces(rng, n_rows, 2), ranges)
    got, work = (tmp_path / "got.parquet", tmp_path / "got.run"), tmp_path / "work"
    if way == "file":
        asked: Any = questions
        if number % 2 or case == "timed rows":
            rows = "instances" if by_row else "questions"
            asked = kgtrec.cluster.store_questions(questions, tmp_path / "store", rows)
        options = {"run": got[1], "folder": work, **settings}
        kgtrec.cluster.rank_to_file(source, asked, got[0], client, **options)
        assert not list(work.glob(".kgtrec-*"))
    else:
        if way.startswith("shards"):
            ranked = by_shards(source, questions, settings, way.split()[-1], work)
        else:
            chunks = [(50, N), (40, 9), (500, 7)][number % 3]
            scores = da.from_array(source, chunks=chunks) if way == "dask array" else source
            ranked = kgtrec.cluster.rank(scores, questions, client, folder=work, **settings)
        ranked[0].save(got[0])
        ranked[1].write(got[1])
        assert ranked[1].depth == run.depth
    assert got[0].read_bytes() == (tmp_path / "one.parquet").read_bytes()
    assert got[1].read_bytes() == (tmp_path / "one.run").read_bytes()


@pytest.mark.parametrize(("case", "rows"), [("plain", "questions"), ("train known", "instances")])
def test_a_result_of_files_is_that_of_one_process(tmp_path, client, case, rows) -> None:
    rng = np.random.default_rng(6)
    questions = questions_of(case, rng)
    n_rows = len(questions) if rows == "questions" else questions.n_instances
    scores = some_scores(rng, (n_rows, N))
    scores[::7, ::3] = np.nan
    names = [
        "mrr",
        "map_cut_20",
        "head.ndcg_cut_5",
        "gm_map",
        "tail.P_3",
        "macro_relation.mrr",
        "question.amri",
        "triple.hits@3",
    ]
    due = kgtrec.evaluate(scores, questions, names, rows=rows, nan="worst")
    settings = Settings(20, rows=rows, nan="worst", threads=1)
    inputs = build_inputs(scores, questions, tmp_path / "work", settings)
    stored = StoredRanks(tmp_path, inputs)
    dask_rank.rank_parts(inputs, client, stored.add, TaskOptions(progress=False))
    result = evaluate_stored(stored, tmp_path, kgtrec.measures.parse_all(names))
    assert result.to_dict() == due.to_dict()
    assert result.agreement == due.agreement
    for name, ranks in (("due", due.ranks), ("blocks", result.ranks)):
        ranks.save(tmp_path / name, "realistic")
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "due").read_bytes()


@given(st.integers(0, 3000), st.integers(0, 99))
def test_sums_of_blocks_have_the_bits_of_the_whole(n: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(n)
    total = tie_report.tree_sum(lambda a, b: float(np.add.reduce(values[a:b])), 0, n)
    assert total == float(np.add.reduce(values))
