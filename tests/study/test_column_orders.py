"""Files of triples beside a graph have the order of columns that the graph declares.

Labels of entities and relations are the same numbers, so that every order of columns fits.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from transcripts import run_command

import kgtrec
from kgtrec import Ranks, Result, study
from kgtrec.study.pooling.edited_files import read_triples, write_triples

Rows = list[tuple[str, str, str]]
TRIPLES: Rows = [(str(h), str(r), str(t)) for h, r, t in product(range(4), repeat=3)]
LABELS = "XYZ"


def write(path: Path, rows: Rows, order: str, labels: str = "") -> None:
    """Write triples in an order of columns, each with the next letter of ``labels`` if any."""
    lines = [[row["hrt".index(letter)] for letter in order] for row in rows]
    cells = [[*line, *labels[i : i + 1]] for i, line in enumerate(lines)]
    path.write_text("".join("\t".join(line) + "\n" for line in cells))


def build(folder: Path, form: str = "", order: str = "hrt", ending: str = ".txt") -> str:
    """Write a graph, two files of ranks and files of triples; return the graph's name."""
    random = Random(4)
    test = random.sample(TRIPLES, 12)
    (folder / "g").mkdir(parents=True)
    write(folder / f"g/train{ending}", TRIPLES[::2], order)
    write(folder / f"g/test{ending}", test, order)
    write(folder / "other.tsv", random.sample(test, 5) + random.sample(TRIPLES, 3), order)
    write(folder / "labels.tsv", test, order, "".join(random.choices(LABELS, k=len(test))))
    name = f"{form}{folder / 'g'}"
    questions = kgtrec.read_graph(name).questions()
    for seed in range(2):
        scores = np.random.default_rng(seed).random((len(questions), 4))
        kgtrec.rank(scores, questions, progress=False).ranks.save(folder / f"{seed}.parquet")
    return name


def results(folder: Path, name: str) -> list[object]:
    """Return what depends on the files of triples."""
    graph = kgtrec.read_graph(name)
    sets = study.relation_distributions(graph, {"other": folder / "other.tsv"})
    values: list[object] = [
        sets.shares.tolist(),
        read_triples(folder / "other.tsv", graph).tolist(),
    ]
    values.append(
        Result(Ranks.load(folder / "0.parquet")).slice("label", labels=folder / "labels.tsv")
    )
    files = [str(folder / f"{seed}.parquet") for seed in range(2)]
    ratios = ["--ratios", str(folder / "other.tsv"), "--format", "json"]
    for command in (["report", files[0]], ["compare", "parts", *files]):
        outcome = run_command(*command, *ratios)
        assert outcome.code == 0, outcome
        values.append(outcome.out)
    return [str(value) for value in values]


@pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")
@pytest.mark.parametrize(
    ("form", "order", "ending"),
    [("tsv,htr:", "htr", ".txt"), ("tsv,trh:", "trh", ".txt"), ("multihopkg:", "htr", ".triples")],
)
def test_files_of_triples_have_the_columns_of_the_splits(
    tmp_path: Path, form: str, order: str, ending: str
) -> None:
    usual = build(tmp_path / "usual")
    other = build(tmp_path / "other", form, order, ending)
    assert results(tmp_path / "other", other) == results(tmp_path / "usual", usual)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")
@pytest.mark.parametrize("order", ["hrt", "htr", "trh"])
def test_written_triples_are_read_back_as_seeds_and_as_a_split(tmp_path: Path, order: str) -> None:
    name = build(tmp_path, f"tsv,{order}:", order)
    graph = kgtrec.read_graph(name)
    triples = graph.split("test")[:7]
    write_triples(tmp_path / "seeds.tsv", graph, triples)
    assert read_triples(tmp_path / "seeds.tsv", graph).tolist() == triples.tolist()
    (tmp_path / "seeds.tsv").replace(tmp_path / "g/test.txt")
    assert kgtrec.read_graph(name).split("test").tolist() == triples.tolist()


@pytest.mark.filterwarnings("ignore::kgtrec.errors.KgtrecWarning")
def test_ranks_of_splits_with_different_columns_share_no_ratios(tmp_path: Path) -> None:
    build(tmp_path / "usual")
    build(tmp_path / "other", "tsv,htr:", "htr")
    files = [str(tmp_path / name / "0.parquet") for name in ("usual", "other")]
    outcome = run_command("report", *files, "--ratios", str(tmp_path / "usual/other.tsv"))
    assert outcome.code == 1
    assert "different orders of columns" in outcome.err
    assert "give ranks of the same order" in outcome.err
