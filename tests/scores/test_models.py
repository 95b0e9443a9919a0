"""What models give: vectors of known formulas, and tensors that are read in place."""

from __future__ import annotations

import dataclasses
from typing import Any

import fake_device
import numpy as np
import pytest
from question_cases import N, R, random_questions, run_lists, some_scores

import kgtrec
from kgtrec import study
from kgtrec.errors import InputError, UsageError
from kgtrec.scores import arrays, sources
from kgtrec.scores.factors import build_factors, read_parts
from kgtrec.scores.formulas import FORMULAS

DIM = 4


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(abs(hash(shape)) % 1000).normal(size=shape)


def complex_normal(*shape: int) -> np.ndarray:
    return normal(*shape) + 1j * normal(*shape[::-1]).T


def unit(*shape: int) -> np.ndarray:
    return np.exp(1j * normal(*shape))


# -- Scores of one triple, by the papers -------------------------------------------------------


def quate(h, r, t):
    """i j = k, j k = i, k i = j, squares are -1."""
    table = {("1", x): (1, x) for x in "1ijk"} | {(x, "1"): (1, x) for x in "1ijk"}
    table |= {(x, x): (-1, "1") for x in "ijk"}
    for x, y, z in ("ijk", "jki", "kij"):
        table |= {(x, y): (1, z), (y, x): (-1, z)}
    h, r, t = (dict(zip("1ijk", vector.reshape(4, -1), strict=True)) for vector in (h, r, t))
    length = np.sqrt(sum(part**2 for part in r.values()))
    return sum((sign * h[x] * r[y] / length * t[z]).sum() for (x, y), (sign, z) in table.items())


def simple(h, r, t, h_tail, t_tail, r_inverse):
    return ((h * r * t_tail).sum() + (t * r_inverse * h_tail).sum()) / 2


def rotate(h, r, t):
    return -np.linalg.norm(h * (r if np.iscomplexobj(r) else np.exp(1j * r)) - t)


def rotate_l1(h, r, t):
    """Moduli of complex numbers; phases whose half turn is 2."""
    return -np.abs(h * (r if np.iscomplexobj(r) else np.exp(0.5j * np.pi * r)) - t).sum()


def protate(h, r, t):
    return -2 * np.abs(np.sin(np.pi / 2 * (h + r - t))).sum()


def hake(h, r, t):
    """A half turn is 2; weights 0.7 and 1.5."""
    (p_h, m_h), (p_t, m_t), (p_r, m_r, b_r) = np.split(h, 2), np.split(t, 2), np.split(r, 3)
    m_r = np.abs(m_r)
    b_r = np.where(b_r > 1, 1, np.where(b_r < -m_r, -m_r, b_r))
    phases = np.abs(np.sin(np.pi / 2 * (p_h + p_r - p_t) / 2)).sum()
    return -0.7 * phases - 1.5 * np.linalg.norm(m_h * (m_r + b_r) - m_t * (1 - b_r))


def transe_unit(h, r, t):
    return -np.abs(h / np.linalg.norm(h) + r / np.linalg.norm(r) - t / np.linalg.norm(t)).sum()


def transe_entities(h, r, t):
    return -np.linalg.norm(h / np.linalg.norm(h) + r - t / np.linalg.norm(t))


PLAIN = {"entity": normal(N, DIM), "relation": normal(R, DIM)}
COMPLEX = {"entity": complex_normal(N, DIM), "relation": complex_normal(R, DIM)}
TAILS = PLAIN | {"entity_tail": normal(N, DIM + 1)[:, 1:]}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "distmult": (lambda h, r, t: (h * r * t).sum(), PLAIN),
    "complex": (lambda h, r, t: (h * r * t.conj()).sum().real, COMPLEX),
    "transe": (lambda h, r, t: -np.linalg.norm(h + r - t), PLAIN),
    "transe l1": (lambda h, r, t: -np.abs(h + r - t).sum(), PLAIN | {"norm": "l1"}),
    "transe vectors": (transe_unit, PLAIN | {"norm": "l1", "normalize": "vectors"}),
    "transe entities": (transe_entities, PLAIN | {"norm": "l2", "normalize": "entities"}),
    "rotate": (rotate, COMPLEX | {"relation": unit(R, DIM), "norm": "l2"}),
    "rotate phases": (rotate, COMPLEX | {"relation": normal(R, DIM), "norm": "l2"}),
    "rotate l1": (rotate_l1, COMPLEX | {"relation": unit(R, DIM), "norm": "l1"}),
    "rotate l1 phases": (
        rotate_l1,
        COMPLEX | {"relation": normal(R, DIM), "norm": "l1", "phases": 2},
    ),
    "protate": (protate, PLAIN | {"phases": 2.0}),
    "rescal": (lambda h, r, t: h @ r @ t, PLAIN | {"relation": normal(R, DIM, DIM)}),
    "cp": (lambda h, r, t, h_tail, t_tail: (h * r * t_tail).sum(), TAILS),
    "simple": (simple, TAILS | {"relation_inverse": normal(R, DIM + 1)[:, 1:]}),
    "hole": (
        lambda h, r, t: sum(r[k] * (h @ np.roll(t, -k)) for k in range(5)),
        {"entity": normal(N, 5), "relation": normal(R, 5)},
    ),
    "tucker": (
        lambda h, r, t, core: np.einsum("ijk,i,j,k", core, h, r, t),
        PLAIN | {"relation": normal(R, 3), "core": normal(DIM, 3, DIM)},
    ),
    "quate": (quate, {"entity": normal(N, 8), "relation": normal(R, 8)}),
    "hake": (
        hake,
        {"entity": normal(N, 2 * DIM), "relation": normal(R, 3 * DIM)}
        | {"phases": 2.0, "phase_weight": 0.7, "modulus_weight": 1.5},
    ),
    "mode": (lambda h, r, t: -np.abs(h * r - t).sum(), PLAIN),
}


def score_of(name: str, h: int, r: int, t: int) -> float:
    function, arrays = MODELS[name]
    more = {"core": arrays["core"]} if "core" in arrays else {}
    if "entity_tail" in arrays:
        more |= {"h_tail": arrays["entity_tail"][h], "t_tail": arrays["entity_tail"][t]}
    if "relation_inverse" in arrays:
        more["r_inverse"] = arrays["relation_inverse"][r]
    return function(arrays["entity"][h], arrays["relation"][r], arrays["entity"][t], **more)


def due_scores(name: str, questions: kgtrec.Questions) -> np.ndarray:
    rows = []
    keys = zip(
        questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist(), strict=True
    )
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
    factors = kgtrec.Factors.from_embeddings(questions, name.split()[0], **arrays)
    assert_scores(factors, due, 1e-6)
    ranks, _ = kgtrec.rank(factors, questions)
    # Scores of hundreds of triples, which differ by far more than rounding.
    np.testing.assert_array_equal(ranks.greater, kgtrec.rank(due, questions)[0].greater)
    single = {
        k: v.astype("c8" if v.dtype.kind == "c" else "f4") if isinstance(v, np.ndarray) else v
        for k, v in arrays.items()
    }
    small = kgtrec.Factors.from_embeddings(questions, name.split()[0], **single)
    assert small.dtype == np.float32
    assert_scores(small, due, 1e-2 if small.metric == "l2" else 1e-4)


def test_halves_a_models_order_and_a_bias(questions: kgtrec.Questions) -> None:
    make, order = kgtrec.Factors.from_embeddings, np.random.default_rng(3).permutation(N)
    for name in ("complex", "rotate"):
        arrays = MODELS[name][1]
        halves = {
            k: v if isinstance(v, str) else np.hstack([v.real, v.imag]) for k, v in arrays.items()
        }
        one, other = (make(questions, name, **each).scores() for each in (arrays, halves))
        assert one.tobytes() == other.tobytes()
    for name in ("distmult", "simple"):
        arrays = MODELS[name][1]
        theirs = {k: v[order] if k.startswith("entity") else v for k, v in arrays.items()}
        one, bias = make(questions, name, **arrays).scores(), normal(N, 1)[:, 0]
        other = make(questions, name, columns=order, **theirs)
        assert one.tobytes() == other.scores().tobytes()
        biased = make(questions, name, bias=bias, **arrays).scores()
        np.testing.assert_allclose(biased, one + bias, rtol=1e-12, atol=1e-12)
        turned = make(questions, name, columns=order, bias=bias[order], **theirs).scores()
        assert turned.tobytes() == biased.tobytes()
        with pytest.raises(InputError, match=f"bias has 1 values for {N} entities"):
            make(questions, name, columns=order, bias=bias[:1], **theirs)


@pytest.mark.parametrize("name", ["distmult", "complex", "simple", "rescal", "hake"])
def test_vectors_in_the_order_of_columns_that_questions_declare(
    name: str, questions: kgtrec.Questions
) -> None:
    order, arrays = np.random.default_rng(3).permutation(N), MODELS[name][1]
    theirs = {k: v[order] if k.startswith("entity") else v for k, v in arrays.items()}
    ordered = dataclasses.replace(questions, column_of=np.argsort(order))
    make = kgtrec.Factors.from_embeddings
    ranks = kgtrec.rank(make(ordered, name, **theirs), ordered)[0]
    due = kgtrec.rank(make(questions, name, **arrays), questions)[0]
    np.testing.assert_array_equal(ranks.greater, due.greater)
    with pytest.raises(UsageError, match="the questions already declare columns=; leave columns="):
        make(ordered, name, columns=order, **theirs)


@pytest.mark.parametrize("name", MODELS)
def test_pairs_of_a_relation_in_the_order_of_columns(
    name: str, questions: kgtrec.Questions
) -> None:
    graph, arrays = questions.graph, MODELS[name][1]
    order, bias = np.random.default_rng(3).permutation(N), normal(N, 1)[:, 0]
    theirs = {k: v[order] if k.startswith("entity") else v for k, v in arrays.items()}
    heads, make = np.array([0, N - 1, 3]), study.PairVectors
    scores = make(graph, name.split()[0], **arrays)(1, heads)
    due = [[score_of(name, int(head), 1, tail) for tail in range(N)] for head in heads]
    assert_scores(scores, np.array(due), 1e-6)
    biased = make(graph, name.split()[0], bias=bias, **arrays)(1, heads).scores()
    assert biased.tobytes() != scores.scores().tobytes()
    for columns in (order, graph.entities[order]):
        turned = make(graph, name.split()[0], columns=columns, bias=bias[order], **theirs)
        assert turned(1, heads).scores().tobytes() == biased.tobytes()
    with pytest.raises(InputError, match="columns 0 and 1 are both declared as "):
        make(graph, name.split()[0], columns=[order[1], *order[1:]], **theirs)


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("name", MODELS)
def test_queries_of_some_rows_have_the_bits_of_all(
    name: str, rows: str, questions: kgtrec.Questions
) -> None:
    arrays = {k: v for k, v in MODELS[name][1].items() if isinstance(v, np.ndarray)}
    declared = {k: v for k, v in MODELS[name][1].items() if k not in arrays}
    whole = kgtrec.Factors.from_embeddings(
        questions, name.split()[0], rows=rows, **arrays, **declared
    )
    plain: dict[str, Any] = {
        "norm": None,
        "phases": None,
        "normalize": "none",
        "phase_weight": None,
        "modulus_weight": None,
    }
    more = {k: arrays[k] for k in arrays if k not in ("entity", "relation")}
    parts = read_parts(arrays["entity"], arrays["relation"], more, **plain | declared)
    for span in (slice(0, 1), slice(3, 10), slice(7, None), slice(5, 5)):
        some = build_factors(
            questions, name.split()[0], parts, inverse="none", rows=rows, span=span
        )
        assert some.queries.tobytes() == whole.queries[span].tobytes()
        assert some.entities.tobytes() == whole.entities.tobytes()


@pytest.mark.parametrize("rows", ["questions", "instances"])
@pytest.mark.parametrize("inverse", ["offset", "interleaved"])
def test_inverse_relations(rows: str, inverse: str, questions: kgtrec.Questions) -> None:
    """Head questions are tail questions of the inverse relation."""
    entity, both = normal(N, DIM), np.stack([normal(R + 1, DIM)[1:], normal(R, DIM)])
    if inverse == "offset":  # after the forward relations, or after each of them
        relation = np.concatenate(both[::-1])
    else:
        relation = both[::-1].swapaxes(0, 1).reshape(2 * R, DIM)
    factors = kgtrec.Factors.from_embeddings(
        questions, "transe", entity=entity, relation=relation, inverse=inverse, rows=rows
    )
    chosen = np.arange(len(questions))
    if rows == "instances":
        chosen = questions.instance_question[questions.triple_rows]
    turned = entity[questions.entity] + both[questions.side, questions.relation]
    due = -np.sqrt(((turned[chosen, None] - entity) ** 2).sum(axis=-1))
    assert_scores(factors, due, 1e-6)
    kgtrec.rank(factors, questions, rows=rows)


def test_vectors_of_torch(questions: kgtrec.Questions) -> None:
    torch = pytest.importorskip("torch")
    for name, kind in (("distmult", torch.float32), ("complex", torch.complex64)):
        arrays = MODELS[name][1]
        tensors = {k: torch.nn.Parameter(torch.tensor(v).to(kind)) for k, v in arrays.items()}
        got = kgtrec.Factors.from_embeddings(questions, name, **tensors)
        assert_scores(got, due_scores(name, questions), 1e-4)


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


def by_batches(questions, scores, on, order):
    ranker = kgtrec.Ranker(questions, 5)
    for start in range(0, len(order), 8):
        rows = order[start : start + 8]
        ranker.update(rows, on(scores[rows]))
    return ranker.finish()


WAYS = {
    "matrix": lambda q, scores, on: kgtrec.rank(on(scores), q, 5),
    "chunks": lambda q, scores, on: kgtrec.rank(map(on, np.split(scores, [5, 10, 15])), q, 5),
    "callable": lambda q, scores, on: kgtrec.rank(lambda b: on(scores[b.start : b.stop]), q, 5),
    "batches": lambda q, scores, on: by_batches(q, scores, on, np.arange(len(scores))),
    "shuffled": lambda q, scores, on: by_batches(
        q, scores, on, np.random.default_rng(2).permutation(len(scores))
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["npu", "tpu"])
@pytest.mark.parametrize("pinned", [True, False])
def test_a_device_gives_the_ranks_of_the_host(case, way, kind, pinned, monkeypatch) -> None:
    questions, scores, due = case
    monkeypatch.setattr(fake_device, "PINNED", pinned)
    got = WAYS[way](questions, scores, lambda rows: fake_device.Tensor(rows, kind))
    assert content(got) == due
    if kind == "tpu":  # no streams, but piece by piece too
        assert set(fake_device.LOG) <= {f"plain copy of {n}" for n in (1, 2, 3)}
        return
    begun = [int(event.split()[1]) for event in fake_device.LOG if event.startswith("begin")]
    assert fake_device.LOG.count("arrived") == len(begun)
    assert max(begun) <= 3


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_integers_on_a_device_rank_as_their_float64(case, dtype) -> None:
    questions, scores, _ = case
    ranked = kgtrec.rank(fake_device.Tensor(scores.astype(dtype)), questions, 5)
    assert content(ranked) == content(kgtrec.rank(scores.astype(np.float64), questions, 5))


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
        "begin 3",
        "begin 3",
        "arrived",
        "rank 3",
        "begin 2",
        "arrived",
        "rank 3",
        "arrived",
        "rank 2",
    ]


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
    ids=[
        "grad",
        "parameter",
        "graph",
        "bfloat16",
        "half",
        "double",
        "bfloat16 grad",
        "transposed",
        "wide rows",
        "stride 2",
        "expanded",
        "negative bit",
        "bfloat16 transposed",
    ],
)
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


def test_tensors_without_scores_are_refused() -> None:
    torch = pytest.importorskip("torch")
    questions = random_questions(np.random.default_rng(1))
    meta = torch.empty((len(questions), N), device="meta")
    ones, ranker = torch.ones((len(questions), N)), kgtrec.Ranker(questions)
    no_values = "meta device, which has a shape but no values"
    for call, words in (
        (lambda: kgtrec.rank(meta, questions), no_values),
        (lambda: ranker.update(ranker.batch(0, 2), meta[:2]), no_values),
        (lambda: kgtrec.rank([meta], questions), no_values),
        (lambda: kgtrec.Factors(meta, meta), no_values),
        (lambda: kgtrec.rank(ones.long(), questions), "dtype int64"),
        (lambda: kgtrec.rank(ones.to_sparse(), questions), "cannot be read as an array"),
    ):
        with pytest.raises(InputError, match=words):
            call()
