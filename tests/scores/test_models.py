"""What models give: vectors of known formulas, and tensors that are read in place."""

from __future__ import annotations

import cmath
import math
from typing import Any

import fake_device
import numpy as np
import pytest
from question_cases import N, R, random_questions, run_lists, some_scores

import kgtrec
from kgtrec.errors import InputError, UsageError
from kgtrec.scores import arrays, sources
from kgtrec.scores.formulas import FORMULAS, REFUSED

DIM = 4


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(abs(hash(shape)) % 1000).normal(size=shape)


def complex_normal(*shape: int) -> np.ndarray:
    return normal(*shape) + 1j * normal(*shape[::-1]).T


def unit(*shape: int) -> np.ndarray:
    return np.exp(1j * normal(*shape))


# -- Scores of one triple, by the papers -------------------------------------------------------


def distmult(h, r, t, **_):
    return sum(a * b * c for a, b, c in zip(h, r, t, strict=True))


def complex_(h, r, t, **_):
    return sum((a * b * c.conjugate()).real for a, b, c in zip(h, r, t, strict=True))


def transe_l2(h, r, t, **_):
    return -math.sqrt(sum((a + b - c) ** 2 for a, b, c in zip(h, r, t, strict=True)))


def transe_l1(h, r, t, **_):
    return -sum(abs(a + b - c) for a, b, c in zip(h, r, t, strict=True))


def rotate(h, r, t, **_):
    turned = [b if isinstance(b, complex) else cmath.exp(1j * b) for b in r]
    return -math.sqrt(sum(abs(a * b - c) ** 2 for a, b, c in zip(h, turned, t, strict=True)))


def rescal(h, r, t, **_):
    return sum(h[i] * r[i][j] * t[j] for i in range(len(h)) for j in range(len(t)))


def cp(h, r, t, t_tail, **_):
    return distmult(h, r, t_tail)


def simple(h, r, t, t_tail, h_tail, r_inverse, **_):
    return (distmult(h, r, t_tail) + distmult(t, r_inverse, h_tail)) / 2


def hole(h, r, t, **_):
    n = len(h)
    return sum(r[k] * sum(h[i] * t[(k + i) % n] for i in range(n)) for k in range(n))


def tucker(h, r, t, core, **_):
    return sum(
        core[i][j][k] * h[i] * r[j] * t[k]
        for i in range(len(h)) for j in range(len(r)) for k in range(len(t))
    )  # fmt: skip


def quate(h, r, t, **_):
    """i j = k, j k = i, k i = j, squares are -1."""
    table = {("1", x): (1, x) for x in "1ijk"} | {(x, "1"): (1, x) for x in "1ijk"}
    table |= {(x, x): (-1, "1") for x in "ijk"}
    for x, y, z in ("ijk", "jki", "kij"):
        table |= {(x, y): (1, z), (y, x): (-1, z)}
    d, score = len(h) // 4, 0.0
    part = {name: at * d for at, name in enumerate("1ijk")}
    for m in range(d):
        length = math.sqrt(sum(r[part[x] + m] ** 2 for x in "1ijk"))
        for x in "1ijk":
            for y in "1ijk":
                sign, z = table[x, y]
                score += sign * h[part[x] + m] * r[part[y] + m] / length * t[part[z] + m]
    return score


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "distmult": (distmult, {"entity": normal(N, DIM), "relation": normal(R, DIM)}),
    "complex": (complex_, {"entity": complex_normal(N, DIM), "relation": complex_normal(R, DIM)}),
    "transe": (transe_l2, {"entity": normal(N, DIM), "relation": normal(R, DIM)}),
    "transe l1": (transe_l1, {"entity": normal(N, DIM), "relation": normal(R, DIM), "norm": "l1"}),
    "rotate": (rotate, {"entity": complex_normal(N, DIM), "relation": unit(R, DIM)}),
    "rotate phases": (rotate, {"entity": complex_normal(N, DIM), "relation": normal(R, DIM)}),
    "rescal": (rescal, {"entity": normal(N, DIM), "relation": normal(R, DIM, DIM)}),
    "cp": (cp, {"entity": normal(N, DIM), "relation": normal(R, DIM),
                "entity_tail": normal(N, DIM + 1)[:, 1:]}),
    "simple": (simple, {"entity": normal(N, DIM), "relation": normal(R, DIM),
                        "entity_tail": normal(N, DIM + 1)[:, 1:],
                        "relation_inverse": normal(R, DIM + 1)[:, 1:]}),
    "hole": (hole, {"entity": normal(N, 5), "relation": normal(R, 5)}),
    "tucker": (tucker, {"entity": normal(N, DIM), "relation": normal(R, 3),
                        "core": normal(DIM, 3, DIM)}),
    "quate": (quate, {"entity": normal(N, 8), "relation": normal(R, 8)}),
}  # fmt: skip


def score_of(name: str, h: int, r: int, t: int) -> float:
    """The score of one triple, in loops over Python's own numbers."""
    function, values = MODELS[name]
    arrays = {key: value.tolist() for key, value in values.items() if key != "norm"}
    more = {}
    if "entity_tail" in arrays:
        more |= {"t_tail": arrays["entity_tail"][t], "h_tail": arrays["entity_tail"][h]}
    if "relation_inverse" in arrays:
        more |= {"r_inverse": arrays["relation_inverse"][r]}
    if "core" in arrays:
        more |= {"core": arrays["core"]}
    return function(arrays["entity"][h], arrays["relation"][r], arrays["entity"][t], **more)


def due_scores(name: str, questions: kgtrec.Questions) -> np.ndarray:
    rows = []
    keys = zip(questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist(),
                strict=True)  # fmt: skip
    for side, entity, relation in keys:
        triples = [(entity, relation, e) if side else (e, relation, entity) for e in range(N)]
        rows.append([score_of(name, *triple) for triple in triples])
    return np.array(rows)


def assert_scores(factors: kgtrec.Factors, due: np.ndarray, rel: float) -> None:
    got = factors.scores().astype(np.float64)
    if factors.metric == "l2":
        got = -np.sqrt(np.maximum(-got, 0))  # minus the square
    np.testing.assert_allclose(got, due, rtol=rel, atol=rel)


def test_every_formula_has_its_test() -> None:
    assert {name.split()[0] for name in MODELS} == set(FORMULAS)


@pytest.fixture(scope="module")
def questions() -> kgtrec.Questions:
    return random_questions(np.random.default_rng(1))


@pytest.mark.parametrize("name", MODELS)
def test_every_formula_scores_each_triple(name: str, questions: kgtrec.Questions) -> None:
    due = due_scores(name, questions)
    arrays = MODELS[name][1]
    assert due.std() > 0.1
    assert_scores(kgtrec.Factors.from_embeddings(questions, name.split()[0], **arrays), due, 1e-6)
    ranks, _ = kgtrec.rank(
        kgtrec.Factors.from_embeddings(questions, name.split()[0], **arrays), questions
    )
    # Scores of hundreds of triples, which differ by far more than rounding.
    np.testing.assert_array_equal(ranks.greater, kgtrec.rank(due, questions)[0].greater)
    single = {k: v if isinstance(v, str) else v.astype("c8" if v.dtype.kind == "c" else "f4")
              for k, v in arrays.items()}  # fmt: skip
    small = kgtrec.Factors.from_embeddings(questions, name.split()[0], **single)
    assert small.dtype == np.float32
    assert_scores(small, due, 1e-2 if small.metric == "l2" else 1e-4)


@pytest.mark.parametrize("name", ["complex", "rotate"])
def test_halves_are_real_and_imaginary(name: str, questions: kgtrec.Questions) -> None:
    parts = MODELS[name][1]
    halves = {k: np.hstack([v.real, v.imag]) for k, v in parts.items()}
    one, other = (
        kgtrec.Factors.from_embeddings(questions, name, **arrays) for arrays in (parts, halves)
    )
    assert one.scores().tobytes() == other.scores().tobytes()


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("inverse", ["offset", "interleaved"])
def test_inverse_relations(rows: str, inverse: str, questions: kgtrec.Questions) -> None:
    """Head questions are tail questions of the inverse relation."""
    entity, forward, backward = normal(N, DIM), normal(R, DIM), normal(R + 1, DIM)[1:]
    if inverse == "offset":
        relation = np.concatenate([forward, backward])
    else:
        relation = np.stack([forward, backward], axis=1).reshape(2 * R, DIM)
    factors = kgtrec.Factors.from_embeddings(
        questions, "transe", entity=entity, relation=relation, inverse=inverse, rows=rows
    )
    number = np.arange(len(questions))
    if rows == "instances":
        number = questions.instance_question[questions.triple_rows]
    due = []
    for question in number.tolist():
        side, relation_id = questions.side[question], questions.relation[question]
        r = (backward, forward)[side][relation_id]
        vector = entity[questions.entity[question]]
        due.append([-math.sqrt(sum((vector + r - entity[e]) ** 2)) for e in range(N)])
    assert_scores(factors, np.array(due), 1e-6)
    kgtrec.rank(factors, questions, rows=rows)


def test_a_models_own_order(questions: kgtrec.Questions) -> None:
    order = np.random.default_rng(3).permutation(N)
    for name in ("distmult", "simple"):
        arrays = MODELS[name][1]
        theirs = {k: v[order] if k.startswith("entity") else v for k, v in arrays.items()}
        one = kgtrec.Factors.from_embeddings(questions, name, **arrays)
        other = kgtrec.Factors.from_embeddings(questions, name, columns=order, **theirs)
        assert one.scores().tobytes() == other.scores().tobytes()


def test_a_bias_is_added(questions: kgtrec.Questions) -> None:
    bias = normal(N, 1)[:, 0]
    plain, biased = (
        kgtrec.Factors.from_embeddings(questions, "distmult", bias=b, **MODELS["distmult"][1])
        for b in (None, bias)
    )
    np.testing.assert_allclose(biased.scores(), plain.scores() + bias, rtol=1e-12, atol=1e-12)


def test_vectors_of_torch(questions: kgtrec.Questions) -> None:
    torch = pytest.importorskip("torch")
    for name, kind in (("distmult", torch.float32), ("complex", torch.complex64)):
        arrays = MODELS[name][1]
        tensors = {k: torch.nn.Parameter(torch.tensor(v).to(kind)) for k, v in arrays.items()}
        got = kgtrec.Factors.from_embeddings(questions, name, **tensors)
        assert_scores(got, due_scores(name, questions), 1e-4)


@pytest.mark.parametrize("model", [*REFUSED, "TransH", "ConvE"])
def test_what_does_not_fall_apart_is_refused(model: str, questions: kgtrec.Questions) -> None:
    with pytest.raises(UsageError, match=r"so it has no Factors; pass its scores"):
        kgtrec.Factors.from_embeddings(
            questions, model, entity=normal(N, DIM), relation=normal(R, DIM)
        )


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        (
            "distmul",
            {},
            "model='distmul' is unknown; it must be 'distmult', 'complex'",
        ),
        ("cp", {}, "cp has the arrays entity, relation, entity_tail; got entity, relation"),
        ("distmult", {"core": normal(4, 4, 4)}, "distmult has the arrays entity, relation; got"),
        ("distmult", {"relation": normal(R, 5)}, "both need the same dimensions"),
        ("distmult", {"entity": normal(N - 1, DIM)}, "vectors of 22 entities and 3 relations"),
        ("distmult", {"relation": normal(2 * R, DIM)}, "inverse='none' needs 3 relations"),
        ("distmult", {"inverse": "offset"}, "inverse='offset' needs 6 relations"),
        ("distmult", {"inverse": "both"}, "inverse='both' is unknown"),
        ("distmult", {"rows": "triples"}, "rows='triples' is unknown"),
        ("distmult", {"entity": np.zeros((N, DIM), int)}, "entity has shape .* and dtype int64"),
        ("distmult", {"entity": normal(N, 1)[:, 0]}, r"entity has shape \(23,\)"),
        ("transe", {"norm": "l3"}, "norm='l3' is unknown"),
        ("rotate", {"norm": "l1"}, "sums moduli"),
        ("rotate", {"relation": normal(R, DIM)}, "moduli of relations differ from 1 by up to"),
        ("complex", {"entity": normal(N, 5)}, "entity has 5 dimensions; give complex numbers"),
        ("quate", {"entity": normal(N, 6), "relation": normal(R, 6)}, "a quaternion has four"),
        ("rescal", {}, r"relation has shape \(3, 4\); expected \(n, 4, 4\)"),
        ("tucker", {"core": normal(4, 4, 3)}, r"core has shape \(4, 4, 3\); expected \(4, 4, 4\)"),
        ("cp", {"entity_tail": normal(N, 3)}, r"entity_tail has shape \(23, 3\)"),
    ],
)
def test_bad_arrays_are_named(model, change, said, questions: kgtrec.Questions) -> None:
    arrays = {"entity": normal(N, DIM), "relation": normal(R, DIM)} | change
    with pytest.raises((UsageError, InputError), match=said):
        kgtrec.Factors.from_embeddings(questions, model, **arrays)


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
