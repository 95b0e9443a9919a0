"""Closed worlds with hidden facts, as folders of graphs for models of any program (appendix A.3).

A closed graph contains every true fact: the family tree, or a graph of the user. Facts are hidden
at random, or those that a trained model ranks worst. A world is a folder of two graphs, ``sparse``
and ``full``. They have the same train and valid splits, entities and relations, so a model that is
trained once is ranked on both. Only the test splits differ.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.files import make_folder
from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import FileError, GraphWarning, InputError, PathName, UsageError
from kgtrec.questions.api import Graph, read_graph
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.openworld.formulas import check, check_share
from kgtrec.study.openworld.simulate import (
    FamilyTree,
    OpenWorld,
    Triples,
    random_removal,
    ranked_removal,
)
from kgtrec.study.pooling.edited_files import write_lines, write_triples

PRINTED_SIZES = {"entities": 6004, "relations": 23, "facts": 192_532}
"""Sizes of the family-tree graph of the paper (appendix A.3)."""
PRINTED_SHARES = {0.95: 0.85, 0.85: 0.63, 0.75: 0.47, 0.65: 0.35}
"""Share of the full test facts that the sparse test set contains, as printed, by density."""
LEAST_TRUE_ANSWERS = 10
"""Answers in the closed graph that a sampled tail question must have (appendix A.3)."""
TRAIN_SHARE, VALID_SHARE = 0.7, 0.1
SPARSE, FULL = "sparse", "full"
TAIL = 1  # code of the tail side in `Ranks.side`


@dataclass(frozen=True, eq=False)
class HiddenWorld(ShownAsTables):
    """A closed graph of which facts are hidden from the test set.

    - graph: Whose entities and relations the ids are of.
    - removal: "independent", or "correlated" with the predictions of a model.
    - density: Share of all facts that are recorded, as requested; of a correlated world the share
      among its facts.
    - expected: Share of the full test facts that the sparse test is expected to contain.
    - train, valid, test, full_test, int32 (n, 3): Facts of each split, ascending by relation, head
      and tail. `full_test` also has the missing facts.
    """

    graph: Graph
    removal: str
    density: float
    expected: float
    train: Triples
    valid: Triples
    test: Triples
    full_test: Triples

    def table(self) -> Table:
        """Return a table of the sizes of the splits."""
        return worlds_table([self])

    def write(self, folder: PathName) -> None:
        """Write the graphs ``sparse`` and ``full``; FileError if the folder has files already."""
        check_new_folder(folder)
        for name, test in ((SPARSE, self.test), (FULL, self.full_test)):
            self._write_graph(Path(folder) / name, test)

    def write_closed(self, folder: PathName) -> None:
        """Write a single graph with the full test set; FileError if the folder has files."""
        check_new_folder(folder)
        self._write_graph(Path(folder), self.full_test)

    def _write_graph(self, folder: Path, test: Triples) -> None:
        """Write splits with facts, and the labels of all entities and relations in id order.

        The labels keep the columns of scores alike in graphs that differ in facts.
        """
        make_folder(folder)
        for name, rows in (("train", self.train), ("valid", self.valid), ("test", test)):
            if len(rows):
                write_triples(folder / f"{name}.txt", self.graph, rows)
        labels = {"entities": self.graph.entities, "relations": self.graph.relations}
        for name, texts in labels.items():
            write_lines(folder / f"{name}.txt", ((text,) for text in texts))


def worlds_table(worlds: Sequence[HiddenWorld]) -> Table:
    """Return a table of the splits of several worlds, with the shares that the paper prints."""
    rows: list[tuple[Cell, ...]] = [
        (
            f"{world.density:g}",
            world.removal,
            len(world.train),
            len(world.valid),
            len(world.test),
            len(world.full_test),
            len(np.unique(_number_questions(world.full_test, len(world.graph.entities)))),
            len(world.test) / len(world.full_test),
            world.expected,
            PRINTED_SHARES.get(world.density, float("nan")),
        )
        for world in worlds
    ]
    columns = (
        "density, removal, train, valid, sparse test=test, full test=full_test, questions, "
        "sparse/full=share:3, expected:3, paper:2"
    )
    return Table.from_rows(columns, rows, names=2)


def tree_table(tree: FamilyTree, world: HiddenWorld) -> Table:
    """Return a table of the sizes of a family-tree graph beside those that the paper prints."""
    nan = float("nan")
    sizes = {
        "entities": len(tree.family),
        "relations": len(world.graph.relations),
        "facts": len(tree.facts),
        "train": len(world.train),
        "valid": len(world.valid),
        "test": len(world.test),
    }
    rows = [(name, size, PRINTED_SIZES.get(name, nan)) for name, size in sizes.items()]
    return Table.from_rows("size, this graph=graph, Yang et al.=paper", rows)


def hide_facts(
    graph: Graph,
    density: float,
    *,
    train_share: float = TRAIN_SHARE,
    valid_share: float = VALID_SHARE,
    n_questions: int | None = None,
    seed: int = 0,
) -> HiddenWorld:
    """Hide facts of a closed graph at random, and split the others (appendix A.3).

    Each fact is missing with probability 1 - density. Of the recorded facts, a share is for
    training, and the others are test facts.

    Parameters
    ----------
    graph : Graph
        The closed graph. The facts of all its splits are used; which split has them is ignored.
    density : float in (0, 1]
        Share of all facts that are recorded. With 1, the sparse test is the full test.
    train_share : float in [0, 1), default 0.7
        Share of the recorded facts outside the test set.
    valid_share : float in [0, 1), default 0.1
        Share of these that the valid split gets; the appendix has no valid split, which is 0.
    n_questions : int, optional
        Keep only the test facts of so many random tail questions with 10 true answers in the closed
        graph, one of which is a sparse test fact; the appendix has 500. Default: all test facts.
    seed : int, default 0
        The same seed gives the same facts.

    Raises
    ------
    UsageError
        A share out of range, or shares with which a split has no fact or no question is left.
    """
    check_share("valid_share", valid_share)
    facts = _sort(np.unique(np.concatenate([*graph.splits.values()])[:, :3], axis=0))
    world = random_removal(facts, density, train_share, seed)
    train, test, missing = world.train, world.test, world.missing
    is_valid = random_generator(seed, 2).random(len(train)) < valid_share
    if n_questions is not None:
        check("n_questions", n_questions, n_questions >= 1, "1 or more")
        count = len(graph.entities)
        chosen = _sample_questions(facts, test, count, n_questions, seed)
        test, missing = (
            rows[np.isin(_number_questions(rows, count), chosen)] for rows in (test, missing)
        )
    for name, rows in (("train", train[~is_valid]), ("test", test)):
        if not len(rows):
            raise UsageError(
                f"at density {density:g} none of {len(facts):,} facts is in the {name} split; "
                f"give a larger {argument('density')}, or another {argument('train_share')} or "
                f"{argument('valid_share')}"
            )
    full = _sort(np.concatenate([test, missing]))
    expected = density * (1 - train_share) / (1 - density * train_share)
    splits = (train[~is_valid], train[is_valid], test, full)
    return HiddenWorld(graph, "independent", density, expected, *splits)


def hide_predicted_facts(folder: PathName, ranks: Ranks, *, seed: int = 0) -> HiddenWorld:
    """Hide the test facts of a world that a model ranks worst (section 6.2).

    The number of hidden answers of each tail question is drawn from a binomial distribution with
    the sparsity of the world; at least one answer stays. The training facts stay, so models that
    were trained on this world need no further training.

    Parameters
    ----------
    folder : path
        A world that `HiddenWorld.write` wrote.
    ranks : Ranks
        The model's ranks of the tail questions of the world's graph ``full``.
    seed : int, default 0

    Raises
    ------
    FileError
        The folder lacks the graphs ``sparse`` and ``full``.
    InputError
        Ranks that are not of the tail questions of the full test set.
    """
    sparse, full = _read_world(Path(folder))
    full_test = _sort(full.split("test"))
    rank = _rank_of_facts(full, full_test, ranks)
    n_sparse = len(np.unique(sparse.split("test"), axis=0))
    share = n_sparse / len(full_test)
    train, valid = (_rows_of(full, name) for name in ("train", "valid"))
    world = ranked_removal(OpenWorld(train, full_test, full_test[:0]), rank, 1 - share, seed)
    n_learned = len(train) + len(valid)
    density = round((n_learned + n_sparse) / (n_learned + len(full_test)), 4)
    test = _sort(world.test)
    return HiddenWorld(full, "correlated", density, share, train, valid, test, full_test)


def split_family_tree(
    tree: FamilyTree,
    *,
    train_share: float = TRAIN_SHARE,
    valid_share: float = VALID_SHARE,
    seed: int = 0,
) -> HiddenWorld:
    """Split all facts of a family tree, without hiding any; `hide_facts` has the parameters."""
    graph = tree.graph(tree.facts, tree.facts[:0])
    return hide_facts(graph, 1.0, train_share=train_share, valid_share=valid_share, seed=seed)


def check_new_folder(folder: PathName) -> None:
    """Raise FileError if a folder for new graphs has files, or is a file."""
    hint = "give a new folder, or remove it first"
    if os.path.isdir(folder):
        if os.listdir(folder):
            raise FileError(folder, found="the folder is not empty", hint=hint)
    elif os.path.lexists(folder):
        raise FileError(folder, found="this is a file, not a folder", hint=hint)


def _sort(rows: Triples) -> Triples:
    """Sort facts by relation, head and tail."""
    return rows[np.lexsort((rows[:, 2], rows[:, 0], rows[:, 1]))]


def _rows_of(graph: Graph, split: str) -> Triples:
    """Return the distinct facts of a split, sorted; none if the graph lacks it."""
    rows = graph.splits.get(split)
    return np.empty((0, 3), np.int32) if rows is None else _sort(np.unique(rows, axis=0))


def _number_questions(rows: Triples, n_entities: int) -> Int64:
    """Return one number per fact for its tail question."""
    return rows[:, 1].astype(np.int64) * n_entities + rows[:, 0]


def _sample_questions(
    facts: Triples, test: Triples, n_entities: int, n_questions: int, seed: int
) -> Int64:
    """Draw tail questions with enough true answers and a sparse test fact."""
    question, count = np.unique(_number_questions(facts, n_entities), return_counts=True)
    tested = np.isin(question, _number_questions(test, n_entities))
    fit = question[(count >= LEAST_TRUE_ANSWERS) & tested]
    if not len(fit):
        raise UsageError(
            f"no tail question has {LEAST_TRUE_ANSWERS} true answers and a sparse test fact; "
            f"leave out {argument('n_questions')}, or give a larger graph"
        )
    return random_generator(seed, 1).choice(fit, min(n_questions, len(fit)), replace=False)


def _read_world(folder: Path) -> tuple[Graph, Graph]:
    """Read the graphs of a world; FileError if they are missing or do not fit together."""
    for name in (SPARSE, FULL):
        if not (folder / name).is_dir():
            hint = (
                "give a folder that `kgtrec openworld --hide GRAPH --output FOLDER` wrote for a "
                "density"
            )
            raise FileError(folder, found=f"there is no graph {name!r} in it", hint=hint)
    with warnings.catch_warnings():
        # These graphs warn rightly of entities without a fact: all facts of some are hidden.
        warnings.simplefilter("ignore", GraphWarning)
        sparse, full = read_graph(folder / SPARSE), read_graph(folder / FULL)
    alike = list(sparse.entities) == list(full.entities) and all(
        np.array_equal(_rows_of(sparse, name), _rows_of(full, name)) for name in ("train", "valid")
    )
    if not alike:
        hint = "hide the facts of the closed graph again"
        problem = "its graphs 'sparse' and 'full' differ in more than their test facts"
        raise FileError(folder, found=problem, hint=hint)
    return sparse, full


def _rank_of_facts(graph: Graph, facts: Triples, ranks: Ranks) -> Float64:
    """Return the rank of each fact among the tails of its question; InputError if one has none."""
    of_graph = ranks.provenance.graph_hash in (None, graph.fingerprint)
    is_tail = ranks.side == TAIL
    keys = [
        (rows[0].astype(np.int64) * len(graph.relations) + rows[1]) * len(graph.entities) + rows[2]
        for rows in (facts.T, np.stack([ranks.given, ranks.relation, ranks.answer])[:, is_tail])
    ]
    order = np.argsort(keys[1], kind="stable")
    index = np.minimum(np.searchsorted(keys[1][order], keys[0]), max(len(order) - 1, 0))
    fits = len(order) == len(facts) and np.array_equal(keys[1][order][index], keys[0])
    if not (fits and of_graph):
        raise InputError(
            f"these ranks, with {len(order):,} answers of tail questions, are not those of the "
            f"{len(facts):,} facts of the world's full test set; rank the tail questions of its "
            f"graph {FULL!r}"
        )
    return np.asarray(ranks.rank()[is_tail][order][index])
