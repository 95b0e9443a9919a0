"""Sem@k: the share of the k best candidates whose type fits the question (Hubert et al. 2023).

A candidate fits if it is in the relation's domain (for a head) or range (for a tail). The train
split or lists of types determine the entities that fit. A wrong answer of the right type is a
better mistake than a city as somebody's spouse, but rank metrics do not show this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import GRAPH, QUESTIONS, require_type
from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.bootstrap import Resampling, ratio_intervals
from kgtrec._internal.csr import contains, distinct, group_pairs, to_keys
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table
from kgtrec.errors import FileError, PathName, refuse_if
from kgtrec.graph.graph import GraphData
from kgtrec.graph.id_files import arrow_bytes, lines_of, text_of
from kgtrec.graph.openke import read_type_constraints
from kgtrec.graph.statistics.popularity import SplitNames, triples_of
from kgtrec.questions.api import Graph, Questions
from kgtrec.study.changes import by_side
from kgtrec.study.pooling.completion import read_relation_types
from kgtrec.study.pooling.lists import run_entries
from kgtrec.study.pooling.seeds import Names, keys_of
from kgtrec.trec.files.run import Run

CUTOFFS = (1, 3, 10)

_SIDES = (("head", 0), ("tail", 1))


@dataclass(frozen=True, eq=False)
class FittingEntities(ShownInLines):
    """Entities that fit each relation as head and as tail.

    - keys, int64 (n,): (2 · relation + side) · n_entities + entity, ascending; side 0 is the head.
    - source: Origin of this information, as tables show it.
    """

    keys: Int64
    source: str

    def _lines(self) -> tuple[str, str]:
        return f"{len(self.keys):,} entities that fit as head or tail of a relation", self.source


def fitting_observed(graph: GraphData, splits: SplitNames = "train") -> FittingEntities:
    """Return the entities that are heads or tails of each relation in some splits."""
    rows = triples_of(graph, splits).astype(np.int64)
    keys = [(2 * rows[:, 1] + side) * graph.n_entities + rows[:, 2 * side] for _, side in _SIDES]
    named = splits if isinstance(splits, str) else ",".join(splits or graph.splits)
    return FittingEntities(distinct(keys), f"observed in {named}")


def fitting_by_constraints(graph: GraphData, path: PathName) -> FittingEntities:
    """Read heads and tails from OpenKE's ``type_constrain.txt``; errors as for its reader."""
    require_type("graph", graph, GraphData, GRAPH)
    sides = read_type_constraints(path, graph.entities, graph.relations)[:2]
    keys = [
        (2 * relation + side) * graph.n_entities + ids
        for side, lists in enumerate(sides)
        for relation, ids in lists.items()
    ]
    return FittingEntities(distinct(keys), f"type constraints of {fspath(path)}")


def fitting_by_types(
    graph: Graph, entity_types: PathName, relation_types: PathName
) -> FittingEntities:
    """Return the entities of the types that each relation requires at its head and at its tail.

    Parameters
    ----------
    graph : Graph
    entity_types : path
        Lines ``entity<TAB>type``, with any number of further types. An entity may have several
        lines. Entities that the graph lacks are ignored.
    relation_types : path
        Lines ``relation<TAB>type of its heads<TAB>type of its tails``.

    Raises
    ------
    FileError
        A file is missing, empty or malformed: the line is named.
    """
    require_type("graph", graph, GraphData, GRAPH)
    members = _read_members(graph, entity_types)
    keys = []
    for relation, types in read_relation_types(relation_types, graph).items():
        for (_, side), name in zip(_SIDES, types, strict=True):
            ids = members.get(name, np.empty(0, np.int64))
            keys.append((2 * relation + side) * graph.n_entities + ids)
    return FittingEntities(distinct(keys), f"types of {fspath(entity_types)}")


def _read_members(graph: Graph, path: PathName) -> dict[str, Int64]:
    """Read the entities of each type."""
    hint = "write entity<TAB>type, or entity<TAB>type<TAB>type..."
    names: list[bytes] = []
    types: list[str] = []
    for line, raw in lines_of(path):
        entity, *of_entity = raw.split(b"\t")
        if not entity or not of_entity or b"" in of_entity:
            raise FileError(path, line, found=f"{text_of(raw)[:120]!r}", hint=hint)
        names += [entity] * len(of_entity)
        types += map(text_of, of_entity)
    if not names:
        raise FileError(path, found="the file is empty", hint=hint)
    ids = graph.entities.positions(arrow_bytes(names))
    if (ids < 0).all():
        hint = "labels must match the graph's byte for byte"
        raise FileError(path, found="no entity of this graph", hint=hint)
    pairs = zip(types, ids.tolist(), strict=True)
    members = group_pairs((name, entity) for name, entity in pairs if entity >= 0)
    return {name: np.array(entities, np.int64) for name, entities in members.items()}


@dataclass(frozen=True, eq=False)
class SemanticShares(ShownAsTables):
    """The Sem@k of systems for each question.

    - side, int64 (Q,): 0 if the question asks for a head, 1 for a tail.
    - values, float64 (systems, cutoffs, Q): Share of the k best (or of all, in shorter lists) that
      fit; NaN for questions that a system does not list, and if no fitting entity is known.
    - chance, float64 (Q,): Share of all candidates that fit, which is the mean of a random order
      at every k.
    - shorter: Per system, number of questions whose list ends before the largest k.
    - triples, int64 (Q,): Number of evaluated triples of each question, which is its weight in
      means over triples.
    """

    names: tuple[str, ...]
    cutoffs: tuple[int, ...]
    side: Int64
    values: Float64
    chance: Float64
    shorter: tuple[int, ...]
    source: str
    resampling: Resampling
    triples: Int64

    def _subject(self) -> str:
        return f" of {len(self.names)} systems, {len(self.side):,} questions"

    def _lines(self) -> tuple[str, str]:
        known = int((~np.isnan(self.chance)).sum())
        return (
            f"{known:,} questions of relations with entities that fit",
            f"entities that fit are {self.source}",
        )

    def __str__(self) -> str:
        return f"entities that fit: {self.source}\n\n{self.table().to_text()}"

    def table(self) -> Table:
        """Return a table of means over questions and over triples, per system, side and k.

        The authors of Sem@k average over triples, so a question counts once per answer.
        """
        sides = by_side(self.side)
        rows: list[tuple[Cell, ...]] = []
        for system, name in enumerate(self.names):
            for side, of_side in sides:
                chosen = of_side & ~np.isnan(self.values[system, 0])
                triples = self.triples[chosen]
                for over, weights in (("questions", np.ones_like(triples)), ("triples", triples)):
                    means = self._means(system, chosen, weights.astype(np.float64))
                    rows += [
                        (name, side, f"Sem@{k}", over, int(weights.sum()), *row)
                        for k, row in zip(self.cutoffs, means, strict=True)
                    ]
        columns = "system, side, measure, over, n, value:4, low:4, high:4, chance:4"
        return Table.from_rows(columns, rows, names=4)

    def _means(self, system: int, chosen: Bools, weights: Float64) -> list[list[float]]:
        """Return the weighted mean, its interval and chance for each k; draw whole questions."""
        sums = np.vstack([self.values[system], self.chance])[:, chosen] * weights
        *shares, _ = sums
        ends = ratio_intervals(shares, [weights] * len(shares), self.resampling)
        with np.errstate(invalid="ignore"):  # without a question, all is NaN
            *means, chance = sums.sum(axis=1) / weights.sum()
        return np.column_stack([means, ends, np.full(len(shares), chance)]).tolist()

    def notes(self) -> list[str]:
        """Return a sentence per kind of omission."""
        unknown = np.isnan(self.chance)
        notes = []
        if unknown.any():
            notes.append(
                f"{int(unknown.sum()):,} questions are left out: the entities that fit their "
                "relation are unknown"
            )
        for name, values, short in zip(self.names, self.values, self.shorter, strict=True):
            if short:
                notes.append(
                    f"{name}: {short:,} lists have fewer candidates than the {max(self.cutoffs)} "
                    "best"
                )
            if missing := int((np.isnan(values[0]) & ~unknown).sum()):
                notes.append(
                    f"{name} has no candidate for {missing:,} questions, which are left out"
                )
        return notes


def semantic_shares(
    runs: Named[Run | PathName],
    questions: Questions,
    fitting: FittingEntities | None = None,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    names: Names | None = None,
    resampling: Resampling | None = None,
    threads: int | None = None,
) -> SemanticShares:
    """Compute Sem@k of runs: means over questions and over triples, with intervals and chance.

    Entities that the questions' filter knows are first removed from the lists, except the answers.
    Answers fit only if they are among the fitting entities, like every other candidate.

    Parameters
    ----------
    runs : mapping of str to Run or path, or sequence of them
        Systems by name, as deep as the largest k or deeper. In a sequence, paths are called like
        their files, and runs "system 1", "system 2", ...
    questions : Questions
        Questions of the graph, not restricted.
    fitting : FittingEntities, optional
        By default `fitting_observed` of the train split.
    cutoffs : sequence of int
        k, each at least 1.
    names : mapping of int to str, optional
        Names of the questions in runs (`read_question_ids`); by default those of `questions`.
    resampling : Resampling, optional
        How to make intervals; whole questions are drawn. 95 % by default.
    threads : int, optional

    Raises
    ------
    UsageError
        No run, no k or one below 1, or restricted questions.
    FileError, InputError
        A run is malformed, of another graph, or answers none of the questions.
    """
    require_type("questions", questions, Questions, QUESTIONS)
    runs = by_name("runs", runs)
    refuse_if(
        (
            questions.sides == "qualifier",
            "domains and ranges describe primary triples, but these questions ask for values of "
            "qualifiers; ask for heads or tails",
        ),
        (
            questions.candidate_lists is not None,
            "Sem@k needs all candidates; give questions without restrictions",
        ),
        (
            not runs or not cutoffs or min(cutoffs) < 1,
            "runs or cutoffs are missing; give at least one run, and cutoffs of 1 or more",
        ),
    )
    fitting = fitting_observed(questions.graph) if fitting is None else fitting
    chance = _compute_chance(questions, fitting)
    named = questions.ids if names is None else map(names.get, keys_of(questions).tolist())
    ids = {name: number for number, name in enumerate(named) if name is not None}
    of_runs = [
        _evaluate_run(run, name, ids, questions, fitting, cutoffs, threads)
        for name, run in runs.items()
    ]
    values = np.stack([shares for shares, _ in of_runs])
    values[:, :, np.isnan(chance)] = np.nan
    return SemanticShares(
        tuple(runs),
        tuple(cutoffs),
        questions.side.astype(np.int64),
        values,
        chance,
        tuple(short for _, short in of_runs),
        fitting.source,
        resampling or Resampling(),
        questions.answers.lengths.astype(np.int64),
    )


def _questions_error(where: PathName, queries: Sequence[str]) -> FileError:
    """Return the error for a run that answers none of the questions."""
    names = argument("names", option="questions")
    hint = f"give the graph and the split of the run, or its questions' names: {names}"
    if queries[0].startswith("relation"):
        both = argument("sides", "both")
        hint = f"Sem@k needs predicted entities; rank with {both}, 'head' or 'tail'"
    problem = (
        f"none of its {len(queries):,} queries is one of these questions; the first is "
        f"{queries[0]!r}"
    )
    return FileError(where, found=problem, hint=hint)


def _compute_chance(questions: Questions, fitting: FittingEntities) -> Float64:
    """Return the share of each question's candidates that fit; NaN if none is known to fit."""
    n = questions.n_entities
    group = 2 * questions.relation.astype(np.int64) + questions.side
    sizes = np.bincount(fitting.keys // n, minlength=2 * questions.graph.n_relations)
    owner = np.repeat(np.arange(len(questions)), questions.removed.lengths)
    removed_fits = contains(fitting.keys, group[owner] * n + questions.removed.ids)
    fit = sizes[group] - np.bincount(owner[removed_fits], minlength=len(questions))
    candidates = n - questions.removed.lengths
    known = (sizes[group] > 0) & (candidates > 0)
    return np.divide(fit, candidates, out=np.full(len(questions), np.nan), where=known)


def _evaluate_run(
    run: Run | PathName,
    name: str,
    ids: Mapping[str, int],
    questions: Questions,
    fitting: FittingEntities,
    cutoffs: Sequence[int],
    threads: int | None,
) -> tuple[Float64, int]:
    """Return the shares of a run that fit, and the number of lists that end before the largest k.

    The shares are float64 (cutoffs, Q), NaN for questions without a candidate.
    """
    n = questions.n_entities
    where = name if not isinstance(run, (str, PathLike)) else run
    queries, owner, entity, _ = run_entries(run, ids, questions.graph.entities, where, threads)
    if len(queries) and not ids.keys() & set(queries):
        raise _questions_error(where, queries)
    is_listed = ~contains(to_keys(questions.removed, n), owner * n + entity)
    owner, entity = owner[is_listed], entity[is_listed]
    index = np.arange(len(owner)) - np.searchsorted(owner, np.arange(len(questions)))[owner]
    group = 2 * questions.relation[owner].astype(np.int64) + questions.side[owner]
    fits = contains(fitting.keys, group * n + entity)
    shares = np.full((len(cutoffs), len(questions)), np.nan)
    lengths = np.bincount(owner, minlength=len(questions))
    for row, k in zip(shares, cutoffs, strict=True):
        counts = np.bincount(owner[fits & (index < k)], minlength=len(questions))
        np.divide(counts, np.minimum(lengths, k), out=row, where=lengths > 0)
    deepest = np.minimum(n - questions.removed.lengths, max(cutoffs))
    return shares, int(((lengths > 0) & (lengths < deepest)).sum())
