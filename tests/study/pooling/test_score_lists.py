"""Pools from scores, ranked on the spot: the same as from runs that were ranked before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import Case, cases, slow_pool, write_case

import kgtrec
from kgtrec.cli.pool import command
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.study.pooling.lists import doubts, is_scores, run_lists, score_lists
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool

KINDS = st.sampled_from(["filtered", "raw"])
FORMS = st.sampled_from(["whole", "seeds", "instances", "parts"])


def places_of(pool: Pool) -> dict[tuple[int, ...], dict[str, int]]:
    """Triple to the places of the systems that have it."""
    rows = zip(pool.triples.tolist(), pool.places.tolist(), strict=True)
    return {
        tuple(triple): {n: p for n, p in zip(pool.systems, own, strict=True) if p}
        for triple, own in rows
    }


@given(case=cases(), depth=st.integers(1, 8), kind=KINDS, form=FORMS)
def test_scores_are_pooled_as_their_runs_would_be(
    case: Case, depth: int, kind: str, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, seeds, lists = tmp_path_factory.mktemp("s"), case.questions, []
    whole = case.graph.questions("test")
    number = {name: i for i, name in enumerate(whole.ids)}
    for name, scores in case.scores.items():
        rows = {
            "seeds": [number[one] for one in seeds.ids],
            "instances": questions_of_instances(case),
        }.get(form)
        if form == "seeds" and len(seeds) == len(whole):
            rows = None  # there are no fewer: they stand as in the split
        row_scores = scores if rows is None else scores[rows]
        path = place / f"{name}.npy"
        if form == "parts":
            path = place / name
            path.mkdir()
            cut = len(scores) // 2
            np.save(path / "1.npy", scores[:cut])
            np.save(path / "2.npy", scores[cut:])
        else:
            np.save(path, row_scores)
        assert is_scores(path)
        per = "instances" if form == "instances" else "questions"
        lists.append(score_lists(path, seeds, name, depth, places=kind, rows=per, progress=False))
    assert places_of(make_pool(lists, seeds, depth)) == slow_pool(case, depth, kind)


def questions_of_instances(case: Case) -> list[int]:
    """Question of every triple with its head asked, then with its tail asked."""
    questions = case.graph.questions("test")
    columns = questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist()
    row = {key: i for i, key in enumerate(zip(*columns, strict=True))}
    triples = case.graph.splits["test"].tolist()
    return [row[0, t, r] for _, r, t in triples] + [row[1, h, r] for h, r, _ in triples]


def test_a_factorised_model_and_distances(tmp_path: Path) -> None:
    case = small()
    random = np.random.default_rng(3)
    questions, n = case.graph.questions(), case.graph.n_entities
    queries, entities = random.random((len(questions), 4)), random.random((n, 4))
    np.savez(tmp_path / "model.npz", queries=queries, entities=entities)
    np.save(tmp_path / "far.npy", -(queries @ entities.T))
    seeds = case.questions
    one = score_lists(tmp_path / "model.npz", seeds, "m", 5)
    other = score_lists(tmp_path / "far.npy", seeds, "m", 5, higher_is_better=False)
    assert one.entities.tolist() == other.entities.tolist()
    assert one.offsets.tolist() == other.offsets.tolist()


def small() -> Case:
    rows = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 0]])
    graph = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=7)
    random = np.random.default_rng(1)
    scores = {name: random.random((len(graph.questions()), 7)) for name in "ab"}
    return Case(graph, [(2, 0, 3)], scores)


def test_wrong_scores_are_refused(tmp_path: Path) -> None:
    case, path = small(), tmp_path / "s.npy"
    seeds, right = case.questions, case.scores["a"]
    broken = right.copy()
    broken[:, 4] = np.nan
    for scores, kind, said in (
        (right[:-1], FileError, r"s.npy: 5 rows of scores, but the split 'test' has 6 questions"),
        (right[:, :-1], InputError, r"s.npy: .*7 columns"),
        (broken, InputError, r"s.npy: .*NaN"),
        (right[0], FileError, r"s.npy: .*two-dimensional"),
        (right.astype(int), InputError, r"s.npy: .*dtype int64"),
    ):
        np.save(path, scores)
        with pytest.raises(kind, match=said):
            score_lists(path, seeds, "s", 3)
    np.save(path, broken)
    assert len(score_lists(path, seeds, "s", 3, nan="worst").entities)
    np.save(path, np.repeat(right, 2, axis=0)[:6])
    for options, said in (
        ({"places": "mixed"}, "places='mixed'"),
        ({"rows": "lines"}, "rows='lines'"),
        ({"depth": 0}, "depth 0 is below 1"),
    ):
        with pytest.raises(UsageError, match=said):
            score_lists(path, seeds, "s", **{"depth": 3, **options})
    with pytest.raises(FileError, match="No such file"):
        score_lists(tmp_path / "none.npy", seeds, "s", 3)


def test_where_a_run_is_wanted_scores_are_none(tmp_path: Path) -> None:
    case = small()
    for name in ("s.npy", "s.npz", "ranks.parquet"):
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(FileError, match=f"{name}: scores or ranks instead of a TREC run"):
            run_lists(tmp_path / name, case.questions, "s")


def test_rows_of_the_other_kind_are_pointed_out(tmp_path: Path) -> None:
    rows = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3]])  # four questions, six instances
    graph = kgtrec.Graph.from_arrays(test=rows, n_entities=5)
    case = Case(graph, [(0, 0, 1)], {})
    for size, per, said in ((6, "questions", "--rows instances"), (4, "instances", "--rows q")):
        np.save(tmp_path / "s.npy", np.zeros((size, 5)))
        with pytest.raises(FileError, match=said):
            score_lists(tmp_path / "s.npy", case.questions, "s", 3, rows=per)


def test_a_weak_model_is_pointed_out() -> None:
    case = small()
    lists = case.lists()[0]
    weak = replace(lists, found=0, from_scores=True)
    assert "a weak model, or scores with another order" in doubts([weak], case.questions, 99)[0]
    assert len(doubts([weak], case.questions, 99)) == 1  # nor are they called short


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph, seeds, two runs, and the scores that they were made from."""
    for name, scores in write_case(tmp_path).items():
        np.save(tmp_path / f"{name}.npy", scores)
    return tmp_path


def run(folder: Path, *arguments: object) -> str:
    words = ["--graph", folder / "graph", "--seed-triples", folder / "seed.tsv", *arguments]
    done = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stderr


def test_runs_and_scores_may_be_mixed(folder: Path) -> None:
    graph = kgtrec.read_graph(folder / "graph")
    pools = []
    for systems in (("a.run", "b.run"), ("a.npy", "b.npy"), ("a.npy", "b.run")):
        paths = [folder / name for name in systems]
        output = run(folder, *paths, "-o", folder / "pool.tsv", "--depth", 6)
        assert "warning" not in output
        pools.append(places_of(read_pool(folder / "pool.tsv", graph)[0]))
    assert pools[0] == pools[1] == pools[2]
    run(folder, folder / "a.npy", "-o", folder / "raw.tsv", "--depth", 6, "--places", "raw")
    raw = places_of(read_pool(folder / "raw.tsv", graph)[0])
    assert set(raw) < {triple for triple, own in pools[0].items() if "a" in own}


def test_the_command_refuses_what_does_not_fit(folder: Path) -> None:
    out = folder / "pool.tsv"
    np.save(folder / "few.npy", np.zeros((3, 20)))
    (folder / "text.npy").write_text("scores")
    (folder / "empty").mkdir()
    for arguments, said in (
        ((folder / "a.run", "--lower-is-better"), "these are all runs"),
        ((folder / "a.run", "--rows", "instances"), "these are all runs"),
        ((folder / "few.npy",), "few.npy: 3 rows of scores"),
        ((folder / "text.npy",), "text.npy: .*numpy.save"),
        ((folder / "empty",), "empty: no .npy shard"),
        ((folder / "none.npz",), "none.npz: No such file"),
        ((folder / "a.npy", folder / "a.npy"), "named twice"),
        ((folder / "a.npy", "-o", folder / "a.npy"), "overwrite"),
    ):
        with pytest.raises(KgtrecError, match=said):
            run(folder, "-o", out, *arguments)
        assert not out.exists()
