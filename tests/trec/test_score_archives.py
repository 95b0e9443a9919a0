"""Runs as an .npz of scores with ids of queries and documents: as the same run in lines of text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from trec_oracle import lists, measures

from kgtrec import trec

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")

NAMES = ["d1", "d10", "d2", "é", "0", "a b", "Z", "\U0001f600"]
FEW = ["map", "ndcg_cut_2", "recip_rank", "num_ret", "bpref"]


@st.composite
def archives(draw: Any) -> dict[str, np.ndarray]:
    """The arrays of a run, with many ties; each query may have its own documents."""
    n, width = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    ids = st.permutations(draw(st.sampled_from([NAMES, list(range(-1, 9))])))
    queries = np.array(draw(ids)[:n])
    documents = np.array([draw(ids)[:width] for _ in range(n)])
    if draw(st.booleans()):
        documents = documents[0]
    if documents.dtype.kind == "i" and draw(st.booleans()):
        documents = documents.astype("S")
    dtype = draw(st.sampled_from(["f2", "f4", "f8", ">f8", "i1", "i8"]))
    values = st.integers(-3, 3) if "i" in dtype else st.sampled_from([-np.inf, -1.5, 0.1, 1 / 3, 7])
    cells = draw(st.lists(values, min_size=n * width, max_size=n * width))
    scores = np.array(cells).astype(dtype).reshape(n, width)
    return {
        "scores": np.asfortranarray(scores) if draw(st.booleans()) else scores,
        "queries": queries,
        "documents": documents,
    }


def text_of(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def run_of(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The run, by loops."""
    run: dict[str, dict[str, float]] = {}
    for row, query in enumerate(arrays["queries"].tolist()):
        documents = arrays["documents"]
        documents = (documents if documents.ndim == 1 else documents[row]).tolist()
        scores = arrays["scores"][row].tolist()
        run[text_of(query)] = {
            text_of(name): float(score) for name, score in zip(documents, scores, strict=True)
        }
    return run


@given(archives(), st.data())
@examples(60)
def test_as_the_same_run_in_memory_and_by_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.npz"
    save = data.draw(st.sampled_from([np.savez, np.savez_compressed]))
    save(path, **arrays)
    run = run_of(arrays)
    assert trec.read_run(path) == run
    assert [*trec.read_run(path)] == [*run]  # in the order of the rows
    qrels = {query: {name: len(name) % 3 for name in names} for query, names in run.items()}
    qrels["other"] = {"d1": 1}
    for compat in (9, 10):
        values = trec.evaluate(qrels, path, FEW, compat=compat)
        assert values == trec.evaluate(qrels, run, FEW, compat=compat)
        slow = lists(qrels, run, single_precision=compat == 9)
        assert [*values] == [*slow]
        for query, (shown, _, retrieved, judged) in slow.items():
            due = measures(shown, judged, compat=compat)
            due["num_ret"] = retrieved
            for name in FEW:
                assert values[query][name] == pytest.approx(due[name], abs=1e-12)


def test_as_the_same_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (12, 40)).astype(np.float32) / 7
    queries, documents = [f"q{i}" for i in range(12)], [f"d{i}" for i in range(40)]
    np.savez(tmp_path / "run.npz", scores=scores, queries=queries, documents=documents)
    lines = [
        f"{query} Q0 {document} 0 {scores[i, j]} tag\n"
        for i, query in enumerate(queries)
        for j, document in enumerate(documents)
    ]
    (tmp_path / "run.txt").write_text("".join(lines))
    judged = [f"{q} 0 {d} {rng.integers(0, 3)}\n" for q in queries for d in documents[::2]]
    (tmp_path / "qrels").write_text("".join(judged))
    names = ["all_trec"]
    texts, arrays = (
        trec.evaluate(tmp_path / "qrels", tmp_path / name, names) for name in ("run.txt", "run.npz")
    )
    for row in [*texts.values(), *arrays.values()]:
        row.pop("runid", None)
    assert arrays == texts


def test_a_text_run_may_have_that_name(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_text("PQ Q0 d1 1 2.5 tag\n")
    assert trec.read_run(path) == {"PQ": {"d1": 2.5}}
