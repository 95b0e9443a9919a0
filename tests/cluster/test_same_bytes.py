"""Every way to rank on a cluster gives the bytes of `kgtrec.rank`, whatever is ranked."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from question_cases import N, graded_answers, random_questions, some_scores
from slow import slow_but

import kgtrec

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import dask.array as da
from distributed import Client

import kgtrec.cluster
from kgtrec.cluster.dask import rank as dask_rank
from kgtrec.cluster.inputs import make_inputs
from kgtrec.cluster.plan import Plan
from kgtrec.cluster.ranges import join_parts, rank_block
from kgtrec.cluster.shards import merge_shards, open_shard, rank_shard
from kgtrec.ranking.settings import Settings

WAYS = ("ranges", "shards by questions", "shards by entities", "dask", "dask array", "file")
CASES = ("plain", "lower", "half", "restricted", "instances", "nan", "close", "dot", "l2", "l1",
         "answers")  # fmt: skip
WHOLE_ROWS = {"restricted"}  # candidates are ranked with all entities
FACTORS = {"dot", "l2", "l1"}
MATRIX = [
    (way, case)
    for way, case in itertools.product(WAYS, CASES)
    if not (way == "shards by entities" and case in WHOLE_ROWS)
    and not (way == "dask array" and case in FACTORS | {"instances"})
]


def case_of(name: str, rng: np.random.Generator) -> tuple[Any, kgtrec.Questions, dict[str, Any]]:
    """Scores, questions and settings."""
    questions, settings = random_questions(rng), {"run_depth": 5}
    if name == "answers":
        questions = graded_answers(rng)
    scores: Any = some_scores(rng, (len(questions), N))
    if name in FACTORS:
        entities = rng.normal(size=(N, 9)).astype(np.float32)
        entities[rng.integers(0, N, 6)] = entities[3]  # equal vectors tie exactly
        queries = rng.normal(size=(len(questions), 9)).astype(np.float32)
        bias = rng.integers(0, 2, N).astype(np.float32)
        return kgtrec.Factors(queries, entities, bias, name), questions, settings
    if name == "lower":
        settings |= {"higher_is_better": False}
    if name == "half":
        scores = scores.astype(np.float16)
    if name == "restricted":
        questions = questions.restrict(entities=range(0, N, 2), outside="worst")
    if name == "instances":
        n = len(questions.triples)
        scores = {side: some_scores(rng, (n, N)) for side in ("head", "tail")}
    if name == "nan":
        scores[rng.random(scores.shape) < 0.05] = np.nan
        settings |= {"nan": "worst"}
    if name == "close":
        scores += 1
        settings |= {"atol": 1e-3, "rtol": 0.3}
    return scores, questions, settings


def pieces(rng: np.random.Generator, stop: int, most: int = 4) -> tuple[tuple[int, int], ...]:
    cuts = rng.choice(np.arange(1, stop), most, replace=False)
    return tuple(itertools.pairwise([0, *sorted(cuts.tolist()), stop]))


def by_ranges(source, questions, settings, rng, folder: Path):
    inputs = make_inputs(source, questions, folder, Settings(threads=1, **settings))
    store = inputs.store()
    ranges = ((0, N),) if store.restricted else pieces(rng, N)
    blocks = pieces(rng, store.n_rows)[::-1]
    return join_parts([rank_block(rows, ranges, inputs) for rows in blocks], inputs)


def by_shards(source, questions, settings, way: str, folder: Path):
    inputs = make_inputs(source, questions, folder, Settings(threads=1, **settings))
    for number in (3, 1, 2):
        shard = open_shard(inputs, folder, number, 3, way)
        rank_shard(shard, shard.plan("2GB", calibrate=False), progress=False)
        assert shard.state() == "whole"
    ranks, run, merged = merge_shards(folder)
    assert merged.fingerprint == questions.fingerprint
    return ranks, run


# Every way and every case by default, a third of their pairs.
SOME = [(way, case) for way, case in MATRIX if (WAYS.index(way) + CASES.index(case)) % 3 == 0]


@pytest.mark.parametrize(("way", "case"), slow_but(SOME, MATRIX))
def test_every_way_gives_the_bytes_of_one_process(
    way: str, case: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(CASES.index(case))
    source, questions, settings = case_of(case, rng)
    ranks, run = kgtrec.rank(source, questions, **settings)
    if case == "nan":
        assert ranks.manifest["scores"]["nan_count"]
    if case == "close":
        assert (ranks.equal > kgtrec.rank(source, questions)[0].equal).any()
    ranks.save(tmp_path / "one.parquet")
    run.write(tmp_path / "one.run", tag="one")

    def plan(inputs, *_: object, sent: int = 0, **__: object) -> Plan:
        store = inputs.store()
        ranges = ((0, N),) if store.restricted else pieces(rng, N)
        return Plan(pieces(rng, store.n_rows), ranges, 0, 0, sent=sent)

    monkeypatch.setattr(dask_rank, "make_plan", plan)
    got = tmp_path / "got.parquet", tmp_path / "got.run"
    work = tmp_path / "work"
    if way == "file":
        kgtrec.cluster.rank_to_file(source, questions, got[0], client, run=got[1], **settings)
        run.write(tmp_path / "one.run")
    else:
        if way == "ranges":
            ranked = by_ranges(source, questions, settings, rng, work)
        elif way.startswith("shards"):
            ranked = by_shards(source, questions, settings, way.split()[-1], work)
        else:
            scores = da.from_array(source, chunks=(5, 9)) if way == "dask array" else source
            ranked = kgtrec.cluster.rank(scores, questions, client, folder=work, **settings)
        ranked[0].save(got[0])
        ranked[1].write(got[1], tag="one")
        assert ranked[1].depth == run.depth
    assert got[0].read_bytes() == (tmp_path / "one.parquet").read_bytes()
    assert got[1].read_bytes() == (tmp_path / "one.run").read_bytes()
