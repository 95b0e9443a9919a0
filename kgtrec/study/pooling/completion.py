"""From a pool and judgements to qrels and to a complete test split, at any pooling depth.

Seeds are true. The judge's label of a pooled triple counts; without a judge, a rule may label it.
All other triples are unjudged, also those that were never pooled. The rules (Zhou et al. 2022,
section 3.1) label a triple false; `RULES` lists them. A rule can err: `rule_table` counts how often
judges disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress

import numpy as np

from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Bools, Int32, Int64
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table
from kgtrec.errors import PathName, UsageError
from kgtrec.graph.statistics.popularity import triples_of
from kgtrec.graph.statistics.relations import Categories
from kgtrec.questions.api import Graph
from kgtrec.study.pooling.edited_files import EditedFile, Judgements, lines_of_triples
from kgtrec.study.pooling.pool import SIDES, Pool, mark_ruled_out
from kgtrec.study.pooling.seeds import (
    SeedQuestions,
    describe_question,
    find_indices,
    questions_of,
)

RelationTypes = Mapping[int, tuple[str, str]]
"""Relation to the types of its heads and of its tails."""

RULES = {
    "1-1:head": "the question asks for the head of a 1-1 relation",
    "1-N:head": "the question asks for the head of a 1-N relation",
    "1-1:tail": "the question asks for the tail of a 1-1 relation",
    "N-1:tail": "the question asks for the tail of an N-1 relation",
    "type:head": "the head is not known to have the type that the relation requires",
    "type:tail": "the tail is not known to have the type that the relation requires",
}
"""Every rule and its reason, in the order of application."""


def trivial_rules(
    pool: Pool,
    *,
    categories: Categories | None = None,
    types: RelationTypes | None = None,
) -> list[str]:
    """Return the first rule that labels each pooled triple false, or "" if none does.

    Parameters
    ----------
    pool : Pool
    categories : Categories, optional
        Apply the rules of categories; see
        `kgtrec.graph.statistics.relations.relation_categories`. A triple pooled for both its
        questions is false if the rule of either fires.
    types : mapping of int to (str, str), optional
        Apply the rules of types, except to relations without types. An entity has a type if it is
        the head or tail of a triple, in any split, whose relation requires that type there.

    Returns
    -------
    list of str
        Keys of `RULES`, length n.
    """
    require_type("pool", pool, Pool, "a Pool (study.make_pool or study.read_pool)")
    rules = np.full(len(pool), "", dtype=object)
    wrong = np.zeros((len(pool), 2), bool) if types is None else _find_wrong_types(pool, types)
    for name in RULES:
        kind, _, end = name.partition(":")
        side = SIDES.index(end)
        if kind == "type":
            fires = wrong[:, side]
        else:
            members = () if categories is None else categories.members(kind)
            fires = np.isin(pool.triples[:, 1], members) & pool.pooled_for[:, side]
        rules[fires & (rules == "")] = name
    return [str(name) for name in rules]


def _find_wrong_types(pool: Pool, types: RelationTypes) -> Bools:
    """Mark the heads and tails of pooled triples that lack the required type, shape (n, 2)."""
    graph = pool.graph
    names = {name: number for number, name in enumerate(sorted({*chain(*types.values())}))}
    required = np.full((graph.n_relations, 2), len(names))  # the last number: no type is required
    for relation, pair in types.items():
        required[relation] = [names[name] for name in pair]
    has = np.zeros((graph.n_entities, len(names) + 1), bool)
    rows, ends = triples_of(graph, None), [0, 2]
    has[rows[:, ends], required[rows[:, 1]]] = True
    has[:, -1] = True
    return ~has[pool.triples[:, ends], required[pool.triples[:, 1]]]


def read_relation_types(path: PathName, graph: Graph) -> dict[int, tuple[str, str]]:
    """Read lines ``relation<TAB>type of heads<TAB>type of tails``; return the types by relation."""
    file = EditedFile(path)
    rows = [*file.rows(("relation", "type of its heads", "type of its tails"))]
    for number, cells in rows:
        if not all(cell.strip() for cell in cells.values()):
            file.fault(number, f"an empty name in {' '.join(cells.values())!r}")
    file.refuse_faults()
    types: dict[int, tuple[str, str]] = {}
    ids = file.ids(graph.relations, "relation", rows).tolist()
    for relation, (line, cells) in zip(ids, rows, strict=True):
        name, head, tail = cells.values()
        file.is_new(line, name, f"relation {name!r}", "give each relation one line")
        types[relation] = head.strip(), tail.strip()
    file.refuse_faults()
    return types


def rule_table(pool: Pool, rules: Sequence[str], judgements: Judgements | None = None) -> Table:
    """Return a table with one row per rule that labels triples.

    It contains their number and, with judgements, the labels that judges gave to them.
    """
    names = [name for name in RULES if name in rules]
    fired = np.array(names, object)[:, None] == np.array(rules, object)
    heads, columns = "rule, triples", [fired.sum(axis=1)]
    if judgements is not None:
        said = judgements.labels_of(pool.triples)
        heads += ", judged N, judged Y"
        columns += [(fired & (said == label)).sum(axis=1) for label in (FALSE, TRUE)]
    return Table.from_columns(heads, names, *columns)


SHOWN_ANSWERS = 5
"""Original, and added, answers of a question that an example shows."""
TRUE, FALSE, UNKNOWN = 1, 0, -1
"""Labels: true; false; pooled but undecided (trec_eval's -1)."""


@dataclass(frozen=True, eq=False)
class Qrels(ShownInLines):
    """Judgements by question.

    - keys, int64 (n,): Question and entity, question * n_entities + entity; ascending.
    - labels, int64 (n,): 1, 0, or -1 for pooled and undecided.
    - nameless: Number of omitted questions, for which runs have no name.
    """

    graph: Graph
    ids: list[str]
    keys: Int64
    labels: Int64
    nameless: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def _lines(self) -> tuple[str, str]:
        counts = [int((self.labels == label).sum()) for label in (TRUE, FALSE, UNKNOWN)]
        return (
            f"{len(self):,} questions, {len(self.keys):,} judged candidates",
            "{:,} true, {:,} false, {:,} undecided".format(*counts),
        )

    @property
    def owner(self) -> Int64:
        """Question of every entry, shape (n,)."""
        return self.keys // self.graph.n_entities

    @property
    def entities(self) -> Int64:
        """Entity of every entry, shape (n,), ascending within each question."""
        return self.keys % self.graph.n_entities

    @property
    def answered(self) -> Bools:
        """True for questions with an answer (label 1); shape (n_questions,)."""
        return np.bincount(self.owner[self.labels == TRUE], minlength=len(self)) > 0

    def keep_answered(self) -> Qrels:
        """Return the qrels of the questions with an answer; infAP has no estimate for others."""
        keep, owner = self.answered, self.owner
        rows = keep[owner]
        moved = np.cumsum(~keep)[owner] * self.graph.n_entities
        return replace(
            self,
            ids=[*compress(self.ids, keep.tolist())],
            keys=(self.keys - moved)[rows],
            labels=self.labels[rows],
        )

    def write(self, path: PathName) -> None:
        """Write lines ``question 0 entity label``."""
        names = self.graph.entities.docnos[self.entities]
        owner, labels = self.owner.tolist(), self.labels.tolist()
        with atomic_write(path) as out:
            for question, name, label in zip(owner, names, labels, strict=True):
                line = f"{self.ids[question]} 0 {name} {label}\n"
                out.write(line.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, eq=False)
class Completion(ShownAsTables):
    """Labelled triples: the seeds, then those of a pool.

    - depth: Depth of the pool; 0 for the seeds alone.
    - triples, int64 (n, 3): The seeds, then the pooled triples, each in their order.
    - labels, int64 (n,): 1 true, 0 false, -1 undecided.
    - by_rule, bool (n,): True if a rule labels the triple false, and no judge has labelled it.
    - overruled: Number of triples that a rule calls false and a judge true (they are true).
    - doubted: Number of seeds that a judge calls false (they stay true).
    - unused: Number of judged triples that are neither seeds nor pooled to this depth.
    - drawn, bool (n,): True for triples in the sample, also seeds; None without a sample.
    """

    seeds: SeedQuestions
    depth: int
    triples: Int64
    labels: Int64
    by_rule: Bools
    overruled: int
    doubted: int
    unused: int
    drawn: Bools | None = None

    def __len__(self) -> int:
        return len(self.triples)

    @cached_property
    def sample(self) -> Completion:
        """The completion with the labels of drawn triples only, for infAP.

        All other triples are pooled and unjudged, also seeds. Otherwise these would count as part
        of the sample, and true triples would look more frequent than they are.
        """
        if self.drawn is None:
            raise UsageError("this pool has no sample; draw one with kgtrec pool --sample")
        return replace(self, labels=np.where(self.drawn, self.labels, UNKNOWN))

    def with_label(self, label: int) -> Int64:
        """Return the triples with a label, shape (m, 3)."""
        return self.triples[self.labels == label]

    @property
    def split(self) -> Int32:
        """The complete test split: seeds, and pooled triples that are true; int32 (m, 3)."""
        return self.with_label(TRUE).astype(np.int32)

    @property
    def reverse(self) -> Int64:
        """Keys of the questions of the complete split that no seed asks and nothing was pooled for.

        For example, a true pooled (h', r, t) answers the seed's question (?, r, t). It also adds
        the question (h', r, ?).
        """
        keys = questions_of(self.seeds.graph, self.split)[0].T.ravel()
        in_order = keys[np.sort(np.unique(keys, return_index=True)[1])]
        return in_order[~np.isin(in_order, self.seeds.keys)]

    def qrels(self, reverse: bool = False) -> Qrels:
        """Return the labels by question; `reverse` adds the questions of that property."""
        return self._qrels_with(self.reverse) if reverse else self._seed_qrels

    @cached_property
    def _seed_qrels(self) -> Qrels:
        """Labels of the questions that the seeds ask."""
        return self._qrels_with(np.empty(0, np.int64))

    def _qrels_with(self, added: Int64) -> Qrels:
        """Return the labels of the seeds' questions, and of the questions with the keys `added`."""
        graph, names = self.seeds.graph, self.seeds.names
        keys = [*self.seeds.keys.tolist(), *added.tolist()]
        named = [key for key in keys if key in names]
        question_of_triples, answers = (
            column.ravel() for column in questions_of(graph, self.triples)
        )
        number = find_indices(np.array(named, np.int64), question_of_triples)
        rows = np.flatnonzero(number >= 0)
        entries = number[rows] * graph.n_entities + answers[rows]
        order = np.argsort(entries)
        return Qrels(
            graph=graph,
            ids=[names[key] for key in named],
            keys=entries[order],
            labels=np.repeat(self.labels, 2)[rows[order]],
            nameless=len(keys) - len(named),
        )

    def example_table(self, most: int, names: Mapping[str, str] | None = None) -> Table:
        """Return the questions with the most added answers (Zhou et al. 2022, Table 2).

        Each of at most `most` questions has a row per original answer (a seed) and per added one
        (true and pooled), up to `SHOWN_ANSWERS` of both; "of" is the number of all. `names`
        replaces labels of entities.
        """
        graph, names = self.seeds.graph, names or {}
        keys, answers = (column.ravel() for column in questions_of(graph, self.triples))
        number = find_indices(self.seeds.keys, keys)
        is_seed = np.repeat(np.arange(len(self)) < len(self.seeds.seeds), 2)
        is_added = np.repeat(self.labels == TRUE, 2) & ~is_seed
        counts = np.bincount(number[is_added & (number >= 0)], minlength=len(self.seeds))
        order = np.argsort(-counts, kind="stable")[: min(most, int((counts > 0).sum()))]
        rows: list[tuple[Cell, ...]] = []
        for question in order.tolist():
            text = describe_question(graph, int(self.seeds.keys[question]), names)
            for kind, chosen in (("original", is_seed), ("added", is_added)):
                entities = answers[(number == question) & chosen].tolist()
                labels = [graph.entities[entity] for entity in entities[:SHOWN_ANSWERS]]
                rows += [(text, kind, names.get(label, label), len(entities)) for label in labels]
        return Table.from_rows("question, answers, entity, of", rows, names=3)

    def table(self) -> Table:
        """Return the labels as one row; see `depth_table`."""
        return depth_table([self])

    def _lines(self) -> tuple[str, str]:
        sizes = self.counts()
        named = ("true", "added", "false", "undecided")
        counts = ", ".join(f"{sizes[name]:,} {name}" for name in named)
        return f"{len(self):,} triples, pooled to depth {self.depth}", counts

    def counts(self) -> dict[str, int]:
        """Count triples by label, and questions; return the counts by name."""
        true, false = (int((self.labels == label).sum()) for label in (TRUE, FALSE))
        drawn = {} if self.drawn is None else {"drawn": int(self.drawn.sum())}
        return {
            "triples": len(self),
            "true": true,
            "seeds": len(self.seeds.seeds),
            "added": true - len(self.seeds.seeds),
            "false": false,
            "false by rule": int(self.by_rule.sum()),
            "undecided": len(self) - true - false,
            **drawn,
            "questions": len(self.seeds) + len(self.reverse),
            "never pooled": len(self.reverse),
        }


def complete(
    seeds: SeedQuestions,
    pool: Pool,
    judgements: Judgements,
    rules: Sequence[str] | None = None,
    depth: int | None = None,
) -> Completion:
    """Label the triples of a pool.

    Parameters
    ----------
    seeds : SeedQuestions
        The seeds of the pool.
    pool : Pool
    judgements : Judgements
    rules : sequence of str, optional
        The name of a rule, or "", for each pooled triple; see `trivial_rules`.
    depth : int, optional
        Use the pool to this depth; all of it by default, 0 for none.

    Raises
    ------
    UsageError
        A depth that the pool does not have, or more or fewer rules than triples.
    """
    require_type("seeds", seeds, SeedQuestions, "SeedQuestions (study.seed_questions)")
    require_type("pool", pool, Pool, "a Pool (study.make_pool or study.read_pool)")
    require_type("judgements", judgements, Judgements, "Judgements (study.read_judgements)")
    depth = pool.depth if depth is None else depth
    if isinstance(depth, bool) or not 0 <= depth <= pool.depth:
        raise UsageError(f"depth {depth} is out of range: this pool has 0 to {pool.depth}")
    in_depth = pool.smallest <= depth
    pooled, fired = pool.triples[in_depth], mark_ruled_out(pool, rules)[in_depth]
    said = judgements.labels_of(pooled)
    labels = np.where(said >= 0, said, UNKNOWN)
    by_rule = fired & (said < 0)
    labels[by_rule] = FALSE
    seed_triples = seeds.seeds.astype(np.int64)
    said_of_seeds = judgements.labels_of(seed_triples)
    drawn = None
    if pool.draw is not None:
        drawn_seeds = pool.draw.draws(lines_of_triples(seeds.graph, seed_triples))
        drawn = np.concatenate([drawn_seeds, pool.drawn[in_depth]])
    return Completion(
        seeds=seeds,
        depth=depth,
        triples=np.concatenate([seed_triples, pooled]),
        labels=np.concatenate([np.full(len(seed_triples), TRUE), labels]),
        by_rule=np.concatenate([np.zeros(len(seed_triples), bool), by_rule]),
        overruled=int((fired & (said == TRUE)).sum()),
        doubted=int((said_of_seeds == FALSE).sum()),
        unused=len(judgements) - int((said > -2).sum()) - int((said_of_seeds > -2).sum()),
        drawn=drawn,
    )


def depth_table(completions: Sequence[Completion]) -> Table:
    """Return a table with one row per completion: the labels at its depth."""
    rows: list[tuple[Cell, ...]] = [(str(c.depth), *c.counts().values()) for c in completions]
    return Table.from_rows(", ".join(["depth", *completions[0].counts()]), rows)


def remarks(completion: Completion, judgements: Judgements) -> list[str]:
    """Return sentences on a completion that users should know."""
    counts = completion.counts()
    sampled = [] if completion.drawn is None else _sample_remarks(completion, completion.drawn)
    before = {
        "judgements were repeated, with the same label": judgements.repeated,
        "blank labels count as chosen": judgements.blank,
        "pooled triples are not decided (-1 in qrels)": counts["undecided"],
        "of them without a line in the judgements: sheets are open or lost lines (`kgtrec judge "
        "check` compares them with those that were asked)": _count_unjudged(completion, judgements),
    }
    after = {
        "judged triples are neither seeds nor pooled to this depth": completion.unused,
        "triples are false by a rule but judged true": completion.overruled,
        "seeds are judged false but stay true": completion.doubted,
        f"of the {counts['questions']:,} questions of the complete split come only from added "
        "triples: nothing was pooled for them": counts["never pooled"],
    }
    first, last = ([f"{n:,} {text}" for text, n in part.items() if n] for part in (before, after))
    return [*first, *sampled, *last]


def _count_unjudged(completion: Completion, judgements: Judgements) -> int:
    """Count the triples to judge that no judgement labels, not even as undecided.

    0 without any judgements, and triples outside the sample are not to be judged.
    """
    if not len(judgements):
        return 0
    to_judge = completion.labels == UNKNOWN
    if completion.drawn is not None:
        to_judge &= completion.drawn
    return int((judgements.labels_of(completion.triples[to_judge]) == -2).sum())


def _sample_remarks(completion: Completion, drawn: Bools) -> list[str]:
    """Return sentences on the sample: its size, missing labels, and questions that infAP omits."""
    notes = [f"{int(drawn.sum()):,} of {len(drawn):,} seeds and pooled triples are in the sample"]
    if open_ := int((drawn & (completion.labels == UNKNOWN)).sum()):
        notes[0] += f", but {open_:,} of them have no label and count as not drawn"
    qrels = completion.sample.qrels()
    if lost := len(qrels) - int(qrels.answered.sum()):
        notes.append(
            f"{lost:,} of {len(qrels):,} questions have no true triple in the sample: infAP omits "
            "them; draw a larger sample"
        )
    return notes
