"""Rules that label a pooled triple false without a judge, each of which is named (Zhou et al. 3.1).

- ``1-1:head``, ``1-N:head``: the head was asked for, of a relation in which a tail has one head;
  the seed names it. ``1-1:tail``, ``N-1:tail``: likewise for the tail.
- ``type:head``, ``type:tail``: the relation wants entities of a type there, and nothing that is
  known of this one shows it to be of that type.

A rule can err: `rule_table` counts how often judges said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import FileError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.statistics.categories import Categories
from kgtrec.graph.statistics.splits import SplitNames, triples_of
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.triple_files import Judgements, label_ids

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph

__all__ = ["RULES", "RelationTypes", "read_relation_types", "rule_table", "trivial_rules"]

RelationTypes = Mapping[int, tuple[str, str]]
"""Relation to the types of its heads and of its tails."""

RULES = {
    "1-1:head": "the head was asked for, of a 1-1 relation",
    "1-N:head": "the head was asked for, of a 1-N relation",
    "1-1:tail": "the tail was asked for, of a 1-1 relation",
    "N-1:tail": "the tail was asked for, of an N-1 relation",
    "type:head": "the head is not known to be of the type that the relation wants",
    "type:tail": "the tail is not known to be of the type that the relation wants",
}
"""Every rule, in the order in which they are tried, and what it says."""

_CATEGORY_RULES = (("1-1:head", 0, "1-1"), ("1-N:head", 0, "1-N"), ("1-1:tail", 1, "1-1"),
                   ("N-1:tail", 1, "N-1"))  # fmt: skip


def trivial_rules(
    pool: Pool,
    *,
    categories: Categories | None = None,
    types: RelationTypes | None = None,
    known: SplitNames = None,
) -> list[str]:
    """The first rule that fires for each pooled triple, or "".

    Parameters
    ----------
    pool : Pool
    categories : Categories, optional
        To try the rules of categories; see
        `kgtrec.graph.statistics.categories.relation_categories`. A triple that was put forward for
        both its questions is false if either says so.
    types : mapping of int to (str, str), optional
        To try the rules of types; relations without types never fire. An entity is of a type if
        it stands where a relation wants that type, in a known triple.
    known : names of splits
        Where the types of entities are looked up; all by default.

    Returns
    -------
    list of str
        Keys of `RULES`, length n.
    """
    rules = np.full(len(pool), "", dtype=object)
    if categories is not None:
        for name, side, category in _CATEGORY_RULES:
            fires = np.isin(pool.triples[:, 1], categories.members(category)) & pool.asked[:, side]
            rules[fires & (rules == "")] = name
    if types is not None:
        for name, wrong in zip(("type:head", "type:tail"), _of_wrong_type(pool, types, known),
                               strict=True):  # fmt: skip
            rules[wrong & (rules == "")] = name
    return [str(name) for name in rules]


def _of_wrong_type(
    pool: Pool, types: RelationTypes, known: SplitNames
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether each pooled triple's head, and whether its tail, lacks the type that is wanted."""
    graph = pool.graph
    names = sorted({name for pair in types.values() for name in pair})
    number = {name: i for i, name in enumerate(names)}
    required = np.full((graph.n_relations, 2), -1, np.int64)
    for relation, (head, tail) in types.items():
        required[relation] = number[head], number[tail]
    rows = triples_of(graph, known)
    has = np.zeros((graph.n_entities, len(names) + 1), bool)  # the last column: no type is wanted
    for end, column in ((0, 0), (2, 1)):
        has[rows[:, end], required[rows[:, 1], column]] = True
    has[:, -1] = True
    head, relation, tail = pool.triples.T
    return ~has[head, required[relation, 0]], ~has[tail, required[relation, 1]]


def read_relation_types(path: str | PathLike[str], graph: Graph) -> dict[int, tuple[str, str]]:
    """Types of heads and tails from lines ``relation<TAB>type of heads<TAB>type of tails``.

    Raises
    ------
    FileError
        Missing, empty, malformed, with a relation that the graph lacks or that comes twice: the
        line is named.
    """
    hint = "write relation<TAB>type of its heads<TAB>type of its tails"
    lines, rows = [], []
    for number, raw in lines_of(path):
        cells = text_of(raw).split("\t")
        if len(cells) != 3 or not all(cell.strip() for cell in cells):
            raise FileError(path, number, found=f"{text_of(raw)[:120]!r}", hint=hint)
        lines.append(number)
        rows.append(cells)
    if not lines:
        raise FileError(path, found="no relation: the file is empty", hint=hint)
    ids = label_ids(path, graph.relations, "relation", lines, [row[0] for row in rows])
    types: dict[int, tuple[str, str]] = {}
    at: dict[int, int] = {}
    for line, relation, (name, head, tail) in zip(lines, ids.tolist(), rows, strict=True):
        if relation in types:
            problem = f"relation {name!r} again (line {at[relation]} has it)"
            raise FileError(path, line, found=problem, hint="give each relation one line")
        types[relation], at[relation] = (head.strip(), tail.strip()), line
    return types


def rule_table(pool: Pool, rules: Sequence[str], judgements: Judgements | None = None) -> Table:
    """A row per rule that fired: how often, and with judgements what judges said of its triples."""
    fired = np.array(rules, dtype=object)
    said = None if judgements is None else judgements.of(pool.triples)
    rows: list[tuple[Cell, ...]] = []
    for name in (name for name in RULES if name in rules):
        mine = fired == name
        row: tuple[Cell, ...] = (name, int(mine.sum()))
        if said is not None:
            row += (int((said[mine] == 0).sum()), int((said[mine] == 1).sum()))
        rows.append(row)
    heads = ("rule", "triples") + (() if said is None else ("judged N", "judged Y"))
    keys = tuple(head.replace(" ", "_") for head in heads)
    return Table(heads, keys, (0,) * len(heads), rows)
