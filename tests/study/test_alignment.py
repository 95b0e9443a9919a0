"""Entity alignment against plain loops: candidates, similarities, CSLS, sizes, the command."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.cli import cli
from kgtrec.cli.align import SIMILARITIES as OFFERED
from kgtrec.study.alignment import SIMILARITIES, align, size_experiment


def similarity(name: str, a: list[float], b: list[float]) -> float:
    pairs = list(zip(a, b, strict=True))
    if name == "dot":
        return sum(x * y for x, y in pairs)
    if name == "l2":
        return -sum((x - y) ** 2 for x, y in pairs)
    if name == "l1":
        return -sum(abs(x - y) for x, y in pairs)
    lengths = [math.sqrt(sum(x * x for x in v)) for v in (a, b)]
    return sum(x * y for x, y in pairs) / lengths[0] / lengths[1]


def csls(
    values: dict[tuple[int, int], float], lefts: list[int], rights: list[int], k: int
) -> dict[tuple[int, int], float]:
    """Conneau et al.: 2 sim(x, y) - r(x) - r(y), r the mean of the k largest."""

    def mean(scores: list[float]) -> float:
        best = sorted(scores, reverse=True)[:k]
        return sum(best) / len(best)

    of_left = {x: mean([values[x, y] for y in rights]) for x in lefts}
    of_right = {y: mean([values[x, y] for x in lefts]) for y in rights}
    return {(x, y): 2 * values[x, y] - of_left[x] - of_right[y] for x in lefts for y in rights}


def slow_ranks(
    pairs: list[tuple[int, int]],
    values: dict[tuple[int, int], float],
    candidates: tuple[list[int], list[int]] | None = None,
) -> dict[tuple[int, int, int], tuple[int, int, int]]:
    """(left, right, side) -> greater, equal, candidates; by default those of the pairs."""
    lefts, rights = candidates or ([*{x for x, _ in pairs}], [*{y for _, y in pairs}])
    counts = {}
    for x, y in pairs:
        heads = [o for o in lefts if o != x and (o, y) not in pairs]
        tails = [o for o in rights if o != y and (x, o) not in pairs]
        for side, others in ((0, [(o, y) for o in heads]), (1, [(x, o) for o in tails])):
            own = values[x, y]
            counts[x, y, side] = (
                sum(values[o] > own for o in others),
                sum(values[o] == own for o in others),
                len(others) + 1,
            )
    return counts


def fast_ranks(ranks: kgtrec.Ranks, n_left: int) -> dict[tuple[int, int, int], tuple[int, ...]]:
    left = np.where(ranks.side == 0, ranks.answer, ranks.given)
    right = np.where(ranks.side == 0, ranks.given, ranks.answer) - n_left
    keys = zip(left.tolist(), right.tolist(), ranks.side.tolist(), strict=True)
    counts = zip(
        ranks.greater.tolist(), ranks.equal.tolist(), ranks.candidates.tolist(), strict=True
    )
    return dict(zip(keys, counts, strict=True))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    n_left, n_right = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    pair = st.tuples(st.integers(0, n_left - 1), st.integers(0, n_right - 1))
    pairs = draw(st.lists(pair, min_size=1, max_size=9, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return pairs, *(rng.integers(-3, 4, (n, 3)).astype("f4") for n in (n_left, n_right))


def all_values(name: str, left: np.ndarray, right: np.ndarray) -> dict[tuple[int, int], float]:
    return {
        (x, y): similarity(name, a, b)
        for x, a in enumerate(left.tolist())
        for y, b in enumerate(right.tolist())
    }


@given(case=cases(), name=st.sampled_from(["dot", "l2", "l1"]), dtype=st.sampled_from(["f2", "f4"]))
def test_ranks_with_all_their_ties(case: tuple, name: str, dtype: str) -> None:
    pairs, left, right = case
    values = all_values(name, left, right)
    expected = slow_ranks(pairs, values)
    result = align(pairs, left.astype(dtype), right.astype(dtype), similarity=name)
    assert fast_ranks(result.ranks, len(left)) == expected
    matrix = np.array([*values.values()], dtype).reshape(len(left), len(right))
    assert fast_ranks(align(pairs, similarity=matrix).ranks, len(left)) == expected


@given(case=cases(), data=st.data(), k=st.sampled_from([0, 0, 2]))
def test_ranks_among_all_entities_and_among_lists(case: tuple, data: st.DataObject, k: int) -> None:
    pairs, left, right = case
    n_left, n_right = len(left), len(right)
    lists = tuple(
        sorted(data.draw(st.sets(st.integers(0, n - 1))) | {pair[side] for pair in pairs})
        for side, n in enumerate((n_left, n_right))
    )
    values = all_values("dot", left, right)
    for candidates, due in (("all", (range(n_left), range(n_right))), (lists, lists)):
        scaled = csls(values, [*due[0]], [*due[1]], k) if k else values
        expected = slow_ranks(pairs, scaled, due)
        matrix = np.array([*values.values()]).reshape(n_left, n_right)
        for model in ((left.astype("f8"), right.astype("f8"), "dot"), (None, None, matrix)):
            result = align(pairs, *model[:2], similarity=model[2], csls=k, candidates=candidates)
            got = fast_ranks(result.ranks, n_left)
            assert {key: sizes[2] for key, sizes in got.items()} == {
                key: sizes[2] for key, sizes in expected.items()
            }
            if k == 0:  # integers: no rounding, so ties are ties
                assert got == expected
            named = "all" if candidates == "all" else "lists"
            assert result.ranks.manifest["alignment"]["candidates"] == named


def test_csls_among_all_entities() -> None:
    """Scores without ties: the neighbours are among all entities, as the candidates are."""
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(9, 4)), rng.normal(size=(11, 4))
    pairs = [(1, 3), (4, 0), (8, 7)]
    every = [*range(9)], [*range(11)]
    scaled = csls(all_values("dot", left, right), *every, 3)
    expected = slow_ranks(pairs, scaled, every)
    for model in (
        {"left": left, "right": right, "similarity": "dot"},
        {"similarity": left @ right.T},
    ):
        assert fast_ranks(align(pairs, csls=3, candidates="all", **model).ranks, 9) == expected


def test_amr_depends_less_on_the_choice_of_candidates_than_mr() -> None:
    """Berrendorf et al., section 3.2: with all entities, MR grows with their number."""
    left, right, pairs = noisy_world(400, 1.0)
    few, every = (
        size_experiment(
            pairs, left, right, sizes=[50, 400], repeats=3, metrics=["mr", "amr"], candidates=name
        )
        for name in ("test", "all")
    )
    ratio = {key: few.values[key][0].mean() / every.values[key][0].mean() for key in few.values}
    assert ratio["mr"] < 0.25
    assert 0.6 < ratio["amr"] < 1.6
    assert few.values["mr"][1].tolist() == every.values["mr"][1].tolist()  # all are test entities
    assert (few.candidates, every.candidates) == ("test", "all")


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize(("k", "dtype"), [(0, "f8"), (1, "f4"), (3, "f8"), (3, "f4"), (50, "f4")])
def test_csls_and_cosine_order_as_by_definition(name: str, k: int, dtype: str) -> None:
    rng = np.random.default_rng(8)
    left, right = rng.normal(size=(12, 4)).astype(dtype), rng.normal(size=(15, 4)).astype(dtype)
    pairs = [
        (int(x), int(y))
        for x, y in zip(rng.permutation(12)[:8], rng.permutation(15)[:8], strict=True)
    ]
    lefts, rights = sorted(x for x, _ in pairs), sorted(y for _, y in pairs)
    values = all_values(name, left, right)
    scaled = csls(values, lefts, rights, k) if k else values
    table = np.array([[scaled[x, y] for y in rights] for x in lefts])
    gaps = [np.diff(np.sort(table, axis=axis), axis=axis).min() for axis in (0, 1)]
    assert min(gaps) > (1e-6 if dtype == "f4" else 1e-12)  # rounding can't matter
    expected = slow_ranks(pairs, scaled)
    result = align(pairs, left, right, similarity=name, csls=k)
    assert fast_ranks(result.ranks, 12) == expected
    matrix = np.array([[values[x, y] for y in range(15)] for x in range(12)])
    other = align(pairs, similarity=matrix, csls=k)
    assert fast_ranks(other.ranks, 12) == expected
    assert result.ranks.manifest["alignment"] == {
        "similarity": name,
        "csls": k,
        "n_left": 12,
        "n_right": 15,
    }
    assert other.ranks.manifest["alignment"]["similarity"] == "matrix"


@pytest.mark.parametrize("name", [*SIMILARITIES, "matrix"])
def test_csls_of_values_near_the_largest_float_through_the_command(
    name: str, tmp_path: Path
) -> None:
    """The same ranks as of the same values in a smaller unit, and no warning of numpy."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(12, 4)).clip(-1.5, 1.5)
    right = (left + 0.8 * rng.normal(size=(12, 4))).clip(-1.5, 1.5)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{i}\t{i}\n" for i in range(12)))
    arrays = {"left": left, "right": right}
    if name == "matrix":
        arrays = {"matrix": left @ right.T / 10}
    found = []
    for unit in (1.0, 2.0**1023):
        words = ["align", "--pairs", pairs, "--csls", 3, "-o", tmp_path / f"{unit}.parquet"]
        words += ["--similarity", name] if name != "matrix" else []
        for key, array in arrays.items():
            np.save(tmp_path / f"{key}.npy", array * unit)
            words += [f"--{key}", tmp_path / f"{key}.npy"]
        done = CliRunner().invoke(cli, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        assert "overflow" not in done.output
        found.append(fast_ranks(kgtrec.Ranks.load(tmp_path / f"{unit}.parquet"), 12))
    assert found[0] == found[1]


def test_the_command_offers_every_similarity() -> None:
    assert OFFERED == SIMILARITIES


def noisy_world(n: int, noise: float) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    rng = np.random.default_rng(1)
    base = rng.normal(size=(n, 8))
    left, right = (base + noise * rng.normal(size=base.shape) for _ in range(2))
    order = rng.permutation(n)
    return left, right[order], [(int(order[i]), i) for i in range(n)]


def test_the_experiment_is_that_of_its_parts() -> None:
    left, right, pairs = noisy_world(40, 0.8)
    how = {"csls": 2, "sides": "head", "similarity": "l2"}
    experiment = size_experiment(
        pairs, left, right, sizes=[40, 7], repeats=2, seed=9, metrics=["mr", "hits@3"], **how
    )
    assert list(experiment.values) == ["mr", "hits@3"]
    for repeat in range(2):
        chosen = np.random.default_rng([9, repeat]).permutation(40)[:7]
        part = align([pairs[i] for i in chosen], left, right, **how)
        assert experiment.values["mr"][0, repeat] == part["head.realistic.micro.mr"]
    assert experiment.sizes.tolist() == [7, 40]
    whole = align(pairs, left, right, **how)["head.realistic.micro.mr"]
    assert experiment.values["mr"][1].tolist() == [whole, whole]  # all alignments, in any order
    table = experiment.table()
    assert table.keys == ["pairs", "mr", "mr.sd", "hits@3", "hits@3.sd"]
    assert table.rows[0][2] == pytest.approx(experiment.values["mr"][0].std(ddof=1))
    sizes = size_experiment(pairs, left, right, repeats=1).sizes
    assert sizes.tolist() == [10, 12, 15, 18, 22, 27, 33, 40]
