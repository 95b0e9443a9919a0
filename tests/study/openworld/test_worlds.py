"""Worlds as folders: every fact is in one split, and hidden facts only in the full test set."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.cli.openworld import command
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.study import family_tree
from kgtrec.study import openworld as ow


def run(*arguments: object) -> str:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def lines(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()]


def relatives(births: set[tuple[str, str]], marriages: set[tuple[str, str]], women: set[str]):
    """Every fact, by a search from each person along births and marriages."""
    people = {person for pair in births | marriages for person in pair}
    parents = {x: {p for p, child in births if child == x} for x in people}
    children = {x: {child for p, child in births if p == x} for x in people}

    def reach(start: str, *steps: dict[str, set[str]]) -> set[str]:
        seen = {start}
        for step in steps:
            seen = {y for x in seen for y in step[x]}
        return seen - {start}

    siblings = {x: reach(x, parents, children) for x in people}
    ways = {
        "parentOf motherOf fatherOf": (children,),
        "childOf daughterOf sonOf": (parents,),
        "siblingOf sisterOf brotherOf": (siblings,),
        "- grandmotherOf grandfatherOf": (children, children),
        "grandchildOf granddaughterOf grandsonOf": (parents, parents),
        "- auntOf uncleOf": (siblings, children),
        "- nieceOf nephewOf": (parents, siblings),
        "cousinOf girlCousinOf boyCousinOf": (parents, siblings, children),
    }
    facts = set()
    for names, steps in ways.items():
        general, female, male = names.split()
        for x in people:
            for y in reach(x, *steps):
                facts |= {(x, female if x in women else male, y)}
                facts |= {(x, general, y)} - {(x, "-", y)}
    for x, y in marriages:
        facts.add((x, "wifeOf" if x in women else "husbandOf", y))
    return facts


SMALL = ("--families", "2", "--people", "100")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("closed") / "family"
    run("--family-tree", folder, *SMALL, "--seed", "4")
    return folder


def test_the_folder_has_every_fact_that_births_and_marriages_imply(tree):
    splits = [lines(tree / f"{name}.txt") for name in ("train", "valid", "test")]
    facts = [fact for rows in splits for fact in rows]
    assert max(Counter(facts).values()) == 1
    by_relation = {name: {(h, t) for h, r, t in facts if r == name} for _, name, _ in facts}
    women = {h for h, r, _ in facts if r in ("wifeOf", "motherOf", "daughterOf", "sisterOf")}
    marriages = by_relation["wifeOf"] | by_relation["husbandOf"]
    assert set(facts) == relatives(by_relation["parentOf"], marriages, women)
    total = len(facts)
    for rows, share in zip(splits, (0.63, 0.07, 0.3), strict=True):
        assert abs(len(rows) - share * total) < 4 * (share * (1 - share) * total) ** 0.5
    assert lines(tree / "relations.txt")[0] == ("parentOf",)
    assert len(lines(tree / "entities.txt")) == 200


def test_a_family_tree_is_the_same_for_a_seed(tree, tmp_path):
    for seed in (4, 5):
        run("--family-tree", tmp_path / f"s{seed}", *SMALL, "--seed", seed)
    for name in ("train", "valid", "test", "entities", "relations"):
        one, same, other = (
            (folder / f"{name}.txt").read_bytes()
            for folder in (tree, tmp_path / "s4", tmp_path / "s5")
        )
        assert one == same
        assert name in ("entities", "relations") or one != other
    with pytest.raises(FileError, match="not empty; give a new folder"):
        run("--family-tree", tree)


@pytest.mark.slow
def test_the_tree_of_the_appendix_has_about_the_printed_size(tmp_path):
    run("--family-tree", tmp_path / "family")
    graph = kgtrec.read_graph(tmp_path / "family")
    assert abs(len(graph.entities) - 6004) <= 4
    assert len(graph.relations) == 23
    facts = sum(len(rows) for rows in graph.splits.values())
    assert abs(facts / 192_532 - 1) < 0.03


@pytest.mark.parametrize("more", [(), ("--n-questions", "7")])
def test_worlds_hide_facts_from_the_sparse_test_only(tree, tmp_path, more):
    run("--hide", tree, "--density", "0.6", "--density", "1", "-o", tmp_path / "w", *more)
    closed = {fact for n in ("train", "valid", "test") for fact in lines(tree / f"{n}.txt")}
    for density in ("0.6", "1"):
        sparse, full = (
            {
                name: lines(tmp_path / "w" / f"d{density}" / kind / f"{name}.txt")
                for name in ("train", "valid", "test", "entities", "relations")
            }
            for kind in ("sparse", "full")
        )
        assert all(sparse[name] == full[name] for name in sparse if name != "test")
        assert sparse["entities"] == lines(tree / "entities.txt")
        learned, left, every = (
            set(rows) for rows in (sparse["train"] + sparse["valid"], sparse["test"], full["test"])
        )
        assert left <= every
        assert not learned & every
        assert (left == every) == (density == "1")
        if not more:
            assert learned | every == closed
            n, d = len(closed), float(density)
            for size, share in ((len(learned), d * 0.7), (len(left), d * 0.3)):
                assert abs(size - share * n) < 4 * (share * (1 - share) * n) ** 0.5
        else:
            asked = {fact[:2] for fact in every}
            true = Counter(fact[:2] for fact in closed)
            assert len(asked) == 7
            assert all(true[question] >= 10 for question in asked)
            assert asked == {fact[:2] for fact in left}
            assert every == {fact for fact in closed - learned if fact[:2] in asked}


@pytest.mark.filterwarnings("ignore:.*no triple names:kgtrec.errors.GraphWarning")
def test_a_model_hides_the_facts_that_it_ranks_worst(tree, tmp_path):
    run("--hide", tree, "--density", "0.7", "-o", tmp_path / "w")
    world = tmp_path / "w" / "d0.7"
    questions = kgtrec.read_graph(world / "full").questions(sides="tail")
    scores = np.random.default_rng(1).random((len(questions), questions.n_entities))
    ranks = kgtrec.rank(scores.astype(np.float32), questions, progress=False)[0]
    ranks.save(tmp_path / "full.parquet")
    run("--hide", world, "--hide-by", tmp_path / "full.parquet", "-o", tmp_path / "hidden")
    for name in ("full/test", "full/train", "sparse/train", "sparse/entities"):
        old, new = (folder / f"{name}.txt" for folder in (world, tmp_path / "hidden"))
        assert old.read_bytes() == new.read_bytes()
    names = questions.graph.entities, questions.graph.relations
    rank_of = {
        (names[0][h], names[1][r], names[0][t]): rank
        for h, r, t, rank in zip(
            ranks.given, ranks.relation, ranks.answer, ranks.rank(), strict=True
        )
    }
    kept = set(lines(tmp_path / "hidden/sparse/test.txt"))
    hidden = set(lines(world / "full/test.txt")) - kept
    assert len(kept | hidden) == len(rank_of)
    asked = {fact[:2] for fact in kept}
    assert asked == {fact[:2] for fact in rank_of}  # no question loses all answers
    for question in asked:
        worst = max(rank_of[fact] for fact in kept if fact[:2] == question)
        assert worst <= min([rank_of[f] for f in hidden if f[:2] == question], default=worst)
    old = len(lines(world / "sparse/test.txt"))
    assert 0.6 * old < len(kept) < 1.7 * old
    sparse = kgtrec.read_graph(world / "sparse").questions(sides="tail")
    few = kgtrec.rank(scores[: len(sparse)].astype(np.float32), sparse, progress=False)[0]
    with pytest.raises(InputError, match="of the world's full test set"):
        ow.hide_predicted_facts(world, few)
    with pytest.raises(FileError, match="there is no graph 'sparse' in it"):
        ow.hide_predicted_facts(tree, ranks)


def test_expected_share() -> None:
    """Of the facts outside training, d (1 - s) of all are recorded, and 1 - d s are true."""
    closed = family_tree(2, people=60, seed=1)
    graph = closed.graph(closed.facts, closed.facts[:9])
    for density, train_share in ((0.5, 0.6), (0.8, 0.2), (1.0, 0.7)):
        world = ow.hide_facts(graph, density, train_share=train_share)
        share, n = len(world.test) / len(world.full_test), len(world.full_test)
        deviation = (world.expected * (1 - world.expected) / n) ** 0.5
        assert abs(share - world.expected) <= 4 * deviation
        row = dict(zip(world.table().keys, world.table().rows[0], strict=True))
        assert (row["share"], row["expected"]) == (share, world.expected)


@given(st.floats(0.3, 1), st.floats(0.1, 0.9), st.floats(0, 0.9), st.integers(0, 5))
def test_every_fact_is_in_one_split(density, train_share, valid_share, seed):
    closed = family_tree(1, people=25, seed=seed)
    graph = closed.graph(closed.facts, closed.facts[:9])
    shares = {"train_share": train_share, "valid_share": valid_share, "seed": seed}
    try:
        world = ow.hide_facts(graph, density, **shares)
    except UsageError as error:
        assert "is in the" in str(error)  # noqa: PT017
        return
    parts = [{tuple(row) for row in part.tolist()} for part in (world.train, world.valid)]
    full, sparse = ({tuple(row) for row in p.tolist()} for p in (world.full_test, world.test))
    assert sparse <= full
    assert sum(map(len, [*parts, full])) == len(closed.facts)
    assert set().union(*parts, full) == {tuple(row) for row in closed.facts.tolist()}
