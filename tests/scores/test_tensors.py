"""Tensors read in place: of torch on the CPU, and on a fake device.

No GPU is needed: `fake_device` has torch's names, and copies as late as a device may.
"""

from __future__ import annotations

import fake_device
import numpy as np
import pytest
from question_cases import N, random_questions, run_lists, some_scores

import kgtrec
from kgtrec.errors import InputError
from kgtrec.scores import arrays, sources


def content(ranked) -> tuple:
    ranks, run = ranked
    names = ("greater", "equal", "tied_ahead", "macro_greater", "macro_equal", "answer_nan")
    columns = [getattr(ranks, name).tolist() for name in names]
    return columns, run_lists(run), run.scores.tolist(), ranks.manifest["scores"]


@pytest.fixture
def case(monkeypatch):
    """Questions, scores and expected results; pieces of three rows, blocks of seven."""
    fake_device.install(monkeypatch)
    rng = np.random.default_rng(1)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    monkeypatch.setattr(arrays, "COPIED_BYTES", 3 * scores[0].nbytes)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 7 * scores[0].nbytes)
    return questions, scores, content(kgtrec.rank(scores, questions, 5))


# -- A device ----------------------------------------------------------------------------------


def ways(questions, scores, kind: str = "npu"):
    """Every way to pass a matrix on a device."""

    def on(rows) -> fake_device.Tensor:
        return fake_device.Tensor(rows, kind)

    def by_batches(shuffled: bool):
        ranker = kgtrec.Ranker(questions, 5)
        order = np.arange(ranker.n_rows)
        if shuffled:
            order = np.random.default_rng(2).permutation(order)
            for start in range(0, len(order), 8):
                ranker.update(order[start : start + 8], on(scores[order[start : start + 8]]))
        else:
            for batch in ranker.batches(8):
                ranker.update(batch, on(scores[batch.start : batch.stop]))
        return ranker.finish()

    chunks = (on(scores[start : start + 5]) for start in range(0, len(scores), 5))
    yield "matrix", lambda: kgtrec.rank(on(scores), questions, 5)
    yield (
        "chunks",
        lambda: kgtrec.rank(chunks, questions, 5),
    )
    yield "callable", lambda: kgtrec.rank(lambda b: on(scores[b.start : b.stop]), questions, 5)
    yield "batches", lambda: by_batches(False)
    yield "shuffled", lambda: by_batches(True)


@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize("kind", ["npu", "tpu"])
@pytest.mark.parametrize("pinned", [True, False])
def test_a_device_gives_the_ranks_of_the_host(case, way, kind, pinned, monkeypatch) -> None:
    questions, scores, due = case
    monkeypatch.setattr(fake_device, "PINNED", pinned)
    _, rank = list(ways(questions, scores, kind))[way]
    assert content(rank()) == due
    if kind == "tpu":  # no streams, but piece by piece too
        assert set(fake_device.LOG) <= {f"plain copy of {n}" for n in (1, 2, 3)}
        return
    assert fake_device.LOG.count("arrived") == sum(e.startswith("begin") for e in fake_device.LOG)
    assert all(int(e.split()[1]) <= 3 for e in fake_device.LOG if e.startswith("begin"))


def test_the_next_piece_is_on_its_way_while_one_is_ranked(case, monkeypatch) -> None:
    questions, scores, _ = case
    rank_rows = kgtrec.ranking.kernel.NativeRanking.rank_rows

    def logged(self, block, *args, **kwargs) -> None:
        fake_device.LOG.append(f"rank {len(block)}")
        rank_rows(self, block, *args, **kwargs)

    monkeypatch.setattr(kgtrec.ranking.kernel.NativeRanking, "rank_rows", logged)
    ranker = kgtrec.Ranker(questions)
    ranker.update(ranker.batch(0, 8), fake_device.Tensor(scores[:8]))
    assert fake_device.LOG == [
        "begin 3", "begin 3", "arrived", "rank 3",
        "begin 2", "arrived", "rank 3",
        "arrived", "rank 2",
    ]  # fmt: skip


def test_an_error_leaves_no_copy_under_way(case) -> None:
    questions, scores, due = case
    spoilt = scores.copy()
    spoilt[1] = np.nan
    ranker = kgtrec.Ranker(questions, 5)
    with pytest.raises(InputError, match="NaN for question"):
        ranker.update(ranker.batch(0, 8), fake_device.Tensor(spoilt[:8]))
    for batch in ranker.batches(8):
        ranker.update(batch, fake_device.Tensor(scores[batch.start : batch.stop]))
    assert content(ranker.finish()) == due


def test_ignored_rows_stay_on_the_device(case) -> None:
    questions, scores, due = case
    ranker = kgtrec.Ranker(questions, 5, duplicates="ignore")
    ranker.update([4, 2], fake_device.Tensor(scores[[4, 2]]))
    fake_device.LOG.clear()
    ranker.update([2, 7, 4], fake_device.Tensor(scores[[2, 7, 4]]))
    assert fake_device.LOG == ["begin 1", "arrived"]
    ranker.update(np.arange(len(questions)), fake_device.Tensor(scores))
    assert content(ranker.finish()) == due


def test_parts_of_a_matrix_on_a_device(case) -> None:
    questions, _, _ = case
    graph, rng = questions.graph, np.random.default_rng(4)
    some = graph.questions(relations=[0, 1])
    whole = some_scores(rng, (len(graph.questions()), N))
    due = content(kgtrec.rank(whole, some, 5))
    assert content(kgtrec.rank(fake_device.Tensor(whole), some, 5)) == due
    n = len(graph.splits["test"])
    sides = {side: some_scores(rng, (n, N)) for side in ("head", "tail")}
    tensors = {side: fake_device.Tensor(values) for side, values in sides.items()}
    due = content(kgtrec.rank(sides, graph.questions(), 5))
    assert content(kgtrec.rank(tensors, graph.questions(), 5)) == due
    with pytest.raises(InputError, match=r"move them with \.cpu\(\)"):
        kgtrec.rank(tensors, some)


def test_wrong_tensors_on_a_device_are_named(case) -> None:
    questions, scores, _ = case
    ranker = kgtrec.Ranker(questions)
    with pytest.raises(InputError, match=r"scores have shape \(8, 22\) for Batch"):
        ranker.update(ranker.batch(0, 8), fake_device.Tensor(scores[:8, 1:]))
    with pytest.raises(InputError, match="scores have dtype int64"):
        ranker.update(ranker.batch(0, 8), fake_device.Tensor(scores[:8].astype(np.int64)))
    with pytest.raises(InputError, match="must be two-dimensional"):
        kgtrec.rank(fake_device.Tensor(scores[0]), questions)
    with pytest.raises(InputError, match="meta device, which has a shape but no values"):
        kgtrec.rank(fake_device.Tensor(scores, "meta"), questions)


# -- torch on the CPU --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda torch, t: t.requires_grad_(),
        lambda torch, t: torch.nn.Parameter(t),
        lambda torch, t: t.requires_grad_() * 1,
        lambda torch, t: t.bfloat16(),
        lambda torch, t: t.half(),
        lambda torch, t: t.double(),
        lambda torch, t: t.bfloat16().requires_grad_(),
        lambda torch, t: t.T.contiguous().T,
        lambda torch, t: torch.cat([t, t], 1)[:, : t.shape[1]],
        lambda torch, t: torch.stack([t, t], 2)[..., 1],
        lambda torch, t: t[:1].expand(len(t), -1) * 0 + t,
        lambda torch, t: torch._neg_view(-t),
        lambda torch, t: t.bfloat16().T.contiguous().T,
    ],
    ids=["grad", "parameter", "graph", "bfloat16", "half", "double", "bfloat16 grad", "transposed",
         "wide rows", "stride 2", "expanded", "negative bit", "bfloat16 transposed"],
)  # fmt: skip
def test_tensors_of_torch(case, change) -> None:
    torch = pytest.importorskip("torch")
    questions, scores, due = case
    tensor = change(torch, torch.from_numpy(scores.copy()))
    columns, lists, run, _ = content(kgtrec.rank(tensor, questions, 5))
    assert (columns, lists, run) == due[:3]  # whole numbers, which every type holds
    ranker = kgtrec.Ranker(questions, 5)
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(3))
    for rows in order.split(6):
        ranker.update(rows, tensor[rows])
    assert content(ranker.finish())[:3] == due[:3]


def test_a_meta_tensor_is_refused() -> None:
    torch = pytest.importorskip("torch")
    questions = random_questions(np.random.default_rng(1))
    scores = torch.empty((len(questions), N), device="meta")
    ranker = kgtrec.Ranker(questions)
    for call in (
        lambda: kgtrec.rank(scores, questions),
        lambda: ranker.update(ranker.batch(0, 2), scores[:2]),
        lambda: kgtrec.rank([scores], questions),
        lambda: kgtrec.Factors(scores, scores),
    ):
        with pytest.raises(InputError, match="meta device, which has a shape but no values"):
            call()


def test_integers_and_sparse_tensors_are_refused() -> None:
    torch = pytest.importorskip("torch")
    questions = random_questions(np.random.default_rng(1))
    ones = torch.ones((len(questions), N))
    with pytest.raises(InputError, match="dtype int64"):
        kgtrec.rank(ones.long(), questions)
    with pytest.raises(InputError, match="cannot be read as an array"):
        kgtrec.rank(ones.to_sparse(), questions)
