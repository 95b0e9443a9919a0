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

import numpy as np

from kgtrec._internal.csr import Bools, Int32, Int64
from kgtrec._internal.files import atomic_write
from kgtrec._internal.table import Cell, ShownAsTables, ShownInLines, Table
from kgtrec.errors import PathName, UsageError
from kgtrec.graph.statistics.popularity import triples_of
from kgtrec.graph.statistics.relations import Categories
from kgtrec.questions.api import Graph
from kgtrec.study.pooling.edited_files import EditedFile, Judgements, lines_of_triples
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.seeds import Key, SeedQuestions, questions_of

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

_CATEGORY_RULES = (("1-1:head", 0, "1-1"), ("1-N:head", 0, "1-N"), ("1-1:tail", 1, "1-1"),
                   ("N-1:tail", 1, "N-1"))  # fmt: skip


def trivial_rules(
    pool: Pool,
    *,
    categories: Categories | None = None,
    types: RelationTypes | None = None,
) -> list[str]:
    """The first rule that fires for each pooled triple, or "".

    Parameters
    ----------
    pool : Pool
    categories : Categories, optional
        Apply the rules of categories; see
        `kgtrec.graph.statistics.relations.relation_categories`. A triple pooled for both its
        questions is false if the rule of either fires.
    types : mapping of int to (str, str), optional
        Apply the rules of types; relations without types never fire. An entity has a type if a
        triple of any split has it where the relation requires that type.

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
        for end, wrong in zip(("head", "tail"), _of_wrong_type(pool, types), strict=True):
            rules[wrong & (rules == "")] = f"type:{end}"
    return [str(name) for name in rules]


def _of_wrong_type(pool: Pool, types: RelationTypes) -> tuple[Bools, Bools]:
    """Whether the head of each pooled triple lacks the required type, and whether the tail does."""
    graph = pool.graph
    names = sorted({name for pair in types.values() for name in pair})
    number = {name: i for i, name in enumerate(names)}
    required = np.full((graph.n_relations, 2), -1, np.int64)
    for relation, (head, tail) in types.items():
        required[relation] = number[head], number[tail]
    rows = triples_of(graph, None)
    has = np.zeros((graph.n_entities, len(names) + 1), bool)  # the last column: no type is required
    for end, column in ((0, 0), (2, 1)):
        has[rows[:, end], required[rows[:, 1], column]] = True
    has[:, -1] = True
    head, relation, tail = pool.triples.T
    return ~has[head, required[relation, 0]], ~has[tail, required[relation, 1]]


def read_relation_types(path: PathName, graph: Graph) -> dict[int, tuple[str, str]]:
    """Types of heads and tails from lines ``relation<TAB>type of heads<TAB>type of tails``."""
    file = EditedFile(path, "write relation<TAB>type of its heads<TAB>type of its tails")
    rows = []
    for number, cells in file.rows(3):
        if all(cell.strip() for cell in cells):
            rows.append((number, cells))
        else:
            file.fault(number, f"an empty name in {' '.join(cells)!r}")
    file.refuse_faults()
    ids = file.ids(graph.relations, "relation", rows, 0).tolist()
    types: dict[int, tuple[str, str]] = {}
    for relation, (line, (name, head, tail)) in zip(ids, rows, strict=True):
        file.is_new(line, name, f"relation {name!r}", "give each relation one line")
        types[relation] = head.strip(), tail.strip()
    file.refuse_faults()
    return types


def rule_table(pool: Pool, rules: Sequence[str], judgements: Judgements | None = None) -> Table:
    """One row per rule that fired: how often, and the labels that judges gave to its triples."""
    names = [name for name in RULES if name in rules]
    fired = np.array(names, object)[:, None] == np.array(rules, object)
    heads, columns = "rule, triples", [fired.sum(axis=1)]
    if judgements is not None:
        said = judgements.of(pool.triples)
        heads += ", judged N, judged Y"
        columns += [(fired & (said == label)).sum(axis=1) for label in (FALSE, TRUE)]
    return Table.of_columns(heads, names, *columns)


TRUE, FALSE, UNKNOWN = 1, 0, -1
"""Labels: true; false; pooled but undecided (trec_eval's -1)."""


@dataclass(frozen=True, eq=False)
class Qrels(ShownInLines):
    """Judgements by question.

    - offsets: int64 (n_questions + 1,)
    - entities, int64 (n,): Ascending within each question.
    - labels, int64 (n,): 1, 0, or -1 for pooled and undecided.
    - nameless: Number of omitted questions, for which runs have no name.
    """

    graph: Graph
    ids: list[str]
    offsets: Int64
    entities: Int64
    labels: Int64
    nameless: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def _lines(self) -> tuple[str, str]:
        counts = [int((self.labels == label).sum()) for label in (TRUE, FALSE, UNKNOWN)]
        return (
            f"{len(self):,} questions, {len(self.entities):,} judged candidates",
            "{:,} true, {:,} false, {:,} undecided".format(*counts),
        )

    @property
    def owner(self) -> Int64:
        """Question of every entry, shape (n,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def keys(self) -> Int64:
        """Question and entity of every entry as one number, shape (n,), ascending."""
        return self.owner * self.graph.n_entities + self.entities

    @property
    def answered(self) -> Bools:
        """Whether each question has an answer, label 1; shape (n_questions,)."""
        return np.bincount(self.owner[self.labels == TRUE], minlength=len(self)) > 0

    def of_answered(self) -> Qrels:
        """Only questions with an answer; for others there is no estimate."""
        keep = self.answered
        rows = keep[self.owner]
        lengths = np.diff(self.offsets)[keep]
        return replace(
            self,
            ids=[name for name, answered in zip(self.ids, keep.tolist(), strict=True) if answered],
            offsets=np.concatenate(([0], np.cumsum(lengths))),
            entities=self.entities[rows],
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
    - triples, int64 (n, 3): The seeds in their order, then the pooled triples in theirs.
    - labels, int64 (n,): 1 true, 0 false, -1 undecided.
    - by_rule, bool (n,): A rule labels it false, and no judge does.
    - overruled: Number of triples that a rule calls false and a judge true (they are true).
    - doubted: Number of seeds that a judge calls false (they stay true).
    - unused: Number of judged triples that are neither seeds nor pooled to this depth.
    - drawn, bool (n,): With a sample: the triples in the sample, seeds among them.
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
        """The labels of the drawn triples only, for infAP; all others are pooled and unjudged.

        A seed that was not drawn is unjudged, too. Otherwise it would count as part of the sample,
        and true triples would look more frequent than they are.
        """
        if self.drawn is None:
            raise UsageError("this pool has no sample; draw one with kgtrec pool --sample")
        return replace(self, labels=np.where(self.drawn, self.labels, UNKNOWN))

    def of(self, label: int) -> Int64:
        """Triples with a label, shape (m, 3)."""
        return self.triples[self.labels == label]

    @property
    def split(self) -> Int32:
        """The complete test split: seeds, and pooled triples that are true; int32 (m, 3)."""
        return self.of(TRUE).astype(np.int32)

    @property
    def reverse(self) -> list[Key]:
        """Questions of the complete split that have no seed, so nothing was pooled for them.

        A true pooled (h', r, t) answers the seed's (?, r, t), and adds the question (h', r, ?).
        """
        seeded = set(self.seeds.keys)
        asked = questions_of(self.split)
        new = dict.fromkeys(each[side][0] for side in (0, 1) for each in asked)
        return [key for key in new if key not in seeded]

    def qrels(self, reverse: bool = False) -> Qrels:
        """The labels by question, as runs name them."""
        return self._qrels_with(self.reverse) if reverse else self._seed_qrels

    @cached_property
    def _seed_qrels(self) -> Qrels:
        return self._qrels_with([])

    def _qrels_with(self, added: Sequence[Key]) -> Qrels:
        """Labels of the seeds' questions, and of the added ones."""
        keys = [*self.seeds.keys, *added]
        named = [key for key in keys if key in self.seeds.names]
        number = {key: i for i, key in enumerate(named)}
        rows = sorted(
            (number[key], entity, label)
            for asked, label in zip(questions_of(self.triples), self.labels.tolist(), strict=True)
            for key, entity in asked
            if key in number
        )
        table = np.array(rows, np.int64).reshape(-1, 3)
        offsets = np.searchsorted(table[:, 0], np.arange(len(named) + 1)).astype(np.int64)
        return Qrels(
            graph=self.seeds.graph,
            ids=[self.seeds.names[key] for key in named],
            offsets=offsets,
            entities=table[:, 1],
            labels=table[:, 2],
            nameless=len(keys) - len(named),
        )

    def table(self) -> Table:
        """The labels as one row; see `depth_table`."""
        return depth_table([self])

    def _lines(self) -> tuple[str, str]:
        sizes = self.counts()
        named = ("true", "added", "false", "undecided")
        counts = ", ".join(f"{sizes[name]:,} {name}" for name in named)
        return f"{len(self):,} triples, pooled to depth {self.depth}", counts

    def counts(self) -> dict[str, int]:
        """Sizes, by name."""
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
    depth = pool.depth if depth is None else depth
    if isinstance(depth, bool) or not 0 <= depth <= pool.depth:
        raise UsageError(f"depth {depth} is out of range: this pool has 0 to {pool.depth}")
    if rules is not None and len(rules) != len(pool):
        raise UsageError(
            f"{len(rules)} rules for {len(pool)} pooled triples; give one rule per triple"
        )
    in_depth = pool.smallest <= depth
    pooled = pool.triples[in_depth]
    fired = np.array([bool(rule) for rule in rules or [""] * len(pool)], bool)[in_depth]
    said = judgements.of(pooled)
    labels = np.where(said >= 0, said, UNKNOWN)
    by_rule = fired & (said < 0)
    labels[by_rule] = FALSE
    own = seeds.seeds.astype(np.int64)
    said_of_seeds = judgements.of(own)
    drawn = None
    if pool.draw is not None:
        drawn_seeds = pool.draw.takes(lines_of_triples(seeds.graph, own))
        drawn = np.concatenate([drawn_seeds, pool.drawn[in_depth]])
    return Completion(
        seeds=seeds,
        depth=depth,
        triples=np.concatenate([own, pooled]),
        labels=np.concatenate([np.full(len(own), TRUE), labels]),
        by_rule=np.concatenate([np.zeros(len(own), bool), by_rule]),
        overruled=int((fired & (said == TRUE)).sum()),
        doubted=int((said_of_seeds == FALSE).sum()),
        unused=len(judgements) - int((said > -2).sum()) - int((said_of_seeds > -2).sum()),
        drawn=drawn,
    )


def depth_table(completions: Sequence[Completion]) -> Table:
    """One row per completion: the labels at its depth."""
    rows: list[tuple[Cell, ...]] = [(str(c.depth), *c.counts().values()) for c in completions]
    return Table.of(", ".join(["depth", *completions[0].counts()]), rows)


def remarks(completion: Completion, judgements: Judgements) -> list[str]:
    """Sentences that users should know about a completion, if any."""
    counts = completion.counts()
    sampled = [] if completion.drawn is None else _sample_remarks(completion, completion.drawn)
    before = {
        "judgements were repeated, with the same label": judgements.repeated,
        "blank labels count as --blank says": judgements.blank,
        "pooled triples are not decided (-1 in qrels)": counts["undecided"],
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


def _sample_remarks(completion: Completion, drawn: Bools) -> list[str]:
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
