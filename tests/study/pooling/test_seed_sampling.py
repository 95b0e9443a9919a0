"""Seed samples: drawn as published, in proportion, and with every bad argument refused."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from study_cases import graphs, listed

import kgtrec
from kgtrec.cli.sample import command
from kgtrec.errors import FileError, KgtrecError, UsageError
from kgtrec.study.pooling.seeds import sample_seeds


def graph_of(relations: list[int]) -> kgtrec.Graph:
    """A test split whose triples have these relations."""
    rows = [(i, relation, i + 1) for i, relation in enumerate(relations)]
    return kgtrec.Graph.from_arrays(test=np.array(rows), n_relations=max(relations) + 1)


@pytest.mark.data
def test_fb_test_s_comes_out_row_for_row(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    folder = shared_data / "kgc-sparsity" / "data" / "FB-Test-S"

    sample = sample_seeds(graph, 0.05, seed=42)

    assert sample.rows.tolist() == [
        int(x) for x in (folder / "sample_idxs.txt").read_text().split()
    ]
    lines = [line.split("\t") for line in (folder / "samples.txt").read_text().splitlines()]
    ours = [[graph.entities[h], graph.relations[r], graph.entities[t]]
            for h, r, t in sample.triples.tolist()]  # fmt: skip
    assert ours == lines
    assert sample.divergence == pytest.approx(0.088964, abs=5e-7)
    assert sample.table().rows == [
        ("test", 20466, 224, 10348, 22850), ("sample", 1023, 154, 1569, 1745)
    ]  # fmt: skip


@given(graphs(), st.integers(0, 2**40), st.data())
def test_rows_are_those_of_python(graph: kgtrec.Graph, seed: int, data: st.DataObject) -> None:
    total = len(graph.splits["test"])
    size = data.draw(st.integers(1, total))
    random.seed(seed)
    expected = sorted(random.sample(range(total), size))

    sample = sample_seeds(graph, size=size, seed=seed)

    assert sample.rows.tolist() == expected
    assert [tuple(t) for t in sample.triples.tolist()] == [
        listed(graph, "test")[i] for i in expected
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.data())
def test_every_relation_has_its_share(relations: list[int], data: st.DataObject) -> None:
    graph, size = graph_of(relations), data.draw(st.integers(1, len(relations)))

    sample = sample_seeds(graph, size=size, seed=3, by_relation=True)

    drawn = Counter(relations[row] for row in sample.rows.tolist())
    assert len(set(sample.rows.tolist())) == len(sample) == size
    # Largest remainders: sort all fractions, and give one more to the largest.
    exact = {r: Fraction(size * n, len(relations)) for r, n in Counter(relations).items()}
    expected = {r: math.floor(x) for r, x in exact.items()}
    left = size - sum(expected.values())
    for relation in sorted(exact, key=lambda r: (-(exact[r] % 1), r))[:left]:
        expected[relation] += 1
    assert drawn == Counter({r: n for r, n in expected.items() if n})


def test_members_of_a_relation_are_equally_likely() -> None:
    graph = graph_of([0] * 6 + [1] * 4)
    hits = Counter()
    for seed in range(600):
        hits.update(sample_seeds(graph, size=5, seed=seed, by_relation=True).rows.tolist())
    assert set(hits) == set(range(10))
    assert all(abs(count - 300) < 75 for count in hits.values())  # 6 standard deviations


def test_divergence_is_that_of_the_definition() -> None:
    graph = graph_of([0, 0, 0, 1, 1, 2])
    sample = sample_seeds(graph, size=2, seed=0)
    whole, drawn = [3, 2, 1], [0, 0, 0]
    for row in sample.rows.tolist():
        drawn[[0, 0, 0, 1, 1, 2][row]] += 1
    p, q = ([(n + 1) / (sum(counts) + 3) for n in counts] for counts in (whole, drawn))
    expected = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert sample.divergence == pytest.approx(expected, rel=1e-12)


def test_shares_round_down_but_not_by_floating_point() -> None:
    graph = graph_of([0] * 100)
    assert len(sample_seeds(graph, 0.29)) == 29  # 0.29 * 100 is 28.999...
    assert len(sample_seeds(graph, 0.299)) == 29
    assert len(sample_seeds(graph)) == 5
    assert len(sample_seeds(graph, 1)) == 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"share": 0}, "share 0 is not above 0"),
        ({"share": 1.5}, "share 1.5 is not"),
        ({"share": float("nan")}, "share nan"),
        ({"share": 0.05}, "less than one triple"),
        ({"size": 0}, "give 1 to 10"),
        ({"size": 11}, "give 1 to 10"),
        ({"share": 0.5, "size": 3}, "give one of them"),
        ({"size": 1, "seed": "x"}, "seed 'x' is not a whole number"),
        ({"size": 1, "split": "dev"}, "no split 'dev'"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sample_seeds(graph_of([0] * 10), **arguments)  # type: ignore[arg-type]


# -- The command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"e{i}\tr{i % 3}\té{i}" for i in range(40)]
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "test.txt").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "graph" / "train.txt").write_text("e1\tr1\te2\n")
    return tmp_path


def run(folder: Path, *arguments: object) -> str:
    words = [str(folder / "graph"), *map(str, arguments)]
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_file_holds_lines_of_the_split_in_its_order(folder: Path) -> None:
    output = run(folder, "-o", folder / "seed.tsv", "--size", 7, "--by-relation")
    lines = (folder / "graph" / "test.txt").read_text("utf-8").splitlines()
    drawn = (folder / "seed.tsv").read_text("utf-8").splitlines()
    assert drawn == [line for line in lines if line in drawn]
    assert len(drawn) == 7
    assert "KL(test || sample)" in output
    first = (folder / "seed.tsv").read_bytes()
    run(folder, "-o", folder / "again.tsv", "--size", 7, "--by-relation")
    assert (folder / "again.tsv").read_bytes() == first


def test_the_command_refuses_what_would_cost_a_file(folder: Path) -> None:
    test = folder / "graph" / "test.txt"
    with pytest.raises(KgtrecError, match="would overwrite the graph"):
        run(folder, "-o", test)
    with pytest.raises(FileError, match="make it first"):
        run(folder, "-o", folder / "nowhere" / "seed.tsv")
    with pytest.raises(UsageError, match="less than one triple"):
        run(folder, "-o", folder / "seed.tsv", "--share", 0.01)
    assert not (folder / "seed.tsv").exists()


def test_counts_are_plain_numbers(folder: Path) -> None:
    graph = kgtrec.read_graph(folder / "graph")
    assert json.loads(sample_seeds(graph, 0.5).table().to_json())["sample"]["triples"] == 20
