"""Relation distributions of sets: against plain Python, and the divergences of Zhou et al."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import study
from kgtrec.errors import FileError

DATA = ROOT.parent / "shared" / "data"
TRIPLE = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 3))
SETS = st.lists(TRIPLE, min_size=1, max_size=25)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")
@given(SETS, SETS, SETS, st.integers(2, 8))
def test_shares_and_divergences_are_those_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory,
    train: list[tuple[int, int, int]],
    test: list[tuple[int, int, int]],
    other: list[tuple[int, int, int]],
    classes: int,
) -> None:
    train = [*train, *((0, r, 0) for r in range(7))]
    folder = tmp_path_factory.mktemp("sets")
    for name, rows in (("train", train), ("test", test), ("other", other)):
        text = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in rows)
        (folder / f"{name}.txt").write_text(text)
    graph = kgtrec.read_graph(folder)
    compared = study.relation_distributions(graph, {"o": folder / "other.txt"}, classes=classes)
    counts = [Counter(r for _, r, _ in {*rows}) for rows in (test, other)]
    order = sorted(range(7), key=lambda r: (-counts[0][r], r))
    groups = [[r] for r in order]
    if classes < 7:
        groups = [*groups[: classes - 1], order[classes - 1 :]]
    for number, of_set in enumerate(counts):
        due = [sum(of_set[r] for r in group) / of_set.total() for group in groups]
        assert compared.shares[number].tolist() == pytest.approx(due)
    assert [label for label in compared.classes if "rarer" not in label] == [
        f"r{group[0]}" for group in groups if len(group) == 1
    ]
    p, q = ([(of_set[r] + 1) / (of_set.total() + 7) for r in range(7)] for of_set in counts)
    due = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert compared.divergence.tolist() == pytest.approx([0, due], abs=1e-12)


@pytest.mark.data
def test_divergences_are_those_of_zhou() -> None:
    """Section 3.1 prints 0.0889 and 0.2386 for the sample and its completed labels."""
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data")
    sets = DATA / "kgc-sparsity" / "data"
    files = {"S": sets / "FB-Test-S" / "samples.txt", "S-C": sets / "FB-Test-S-C" / "test.txt"}
    compared = study.relation_distributions(kgtrec.read_graph(DATA / "fb15k-237"), files)
    assert compared.divergence.tolist() == pytest.approx([0, 0.0889, 0.2386], abs=1e-4)
    assert compared.counts.shape == (3, 50)
    assert compared.counts.sum(axis=1).tolist() == [20466, 1023, 2738]


def test_a_relation_that_the_graph_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("a\tnew\tb\n")
    graph = kgtrec.Graph.from_arrays(train=[(0, 0, 1)], test=[(1, 0, 0)], relations=["r"])
    with pytest.raises(FileError, match=r"other\.txt: relation 'new', which the graph lacks"):
        study.relation_distributions(graph, {"o": tmp_path / "other.txt"})
