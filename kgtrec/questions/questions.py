"""Questions: answers, further known answers, candidates, and the terms that distinguish questions.

`Questions` knows no graph. `Questions.asked` says where they come from and what they give:
`GraphTerms` for a graph's split, or `NamedTerms` for given answers.

Column order: the entity of each column of a model's scores, declared once by labels or ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.csr import (
    Array,
    Bools,
    Csr,
    Int64,
    Integers,
    contains,
    inverse,
    owners,
    to_keys,
)
from kgtrec._internal.table import lines_as_html
from kgtrec.errors import InputError, UsageError
from kgtrec.graph.triples import hash_array
from kgtrec.questions.terms import PLURAL, TERM, taken

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.questions.candidates import CandidateLists
    from kgtrec.questions.graph_terms import GraphTerms
    from kgtrec.questions.terms import NamedTerms, Term


def column_of_label(columns: Any, labels: Labels, kind: str = "entity") -> Int64:
    """The column of each entity (or relation): int64, shape (len(labels),)."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise InputError(
            f"columns={columns!r} is not an order of {PLURAL[kind]}; give their labels or ids in "
            "the order of the columns, or a mapping of label to column"
        )
    if isinstance(columns, Mapping):
        places, names = np.asarray(list(columns.values())), list(columns)
        if places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(len(places))):
            raise InputError(
                f"columns maps {len(names)} labels, but not to the columns 0 to {len(names) - 1}; "
                "give each label its own column"
            )
        columns = [names[at] for at in np.argsort(places).tolist()]
    ids = _as_ids(columns, labels, kind)
    counts = np.bincount(ids, minlength=len(labels))
    if (counts > 1).any():
        twice = int(np.flatnonzero(counts > 1)[0])
        first, second = np.flatnonzero(ids == twice)[:2].tolist()
        raise InputError(
            f"columns {first} and {second} are both declared as {labels[twice]!r} (id "
            f"{twice}); give each {kind} one column"
        )
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        named = ", ".join(repr(label) for label in labels[missing[:5]])
        raise InputError(
            f"{len(missing)} of {len(labels)} {PLURAL[kind]} have no column: {named}"
            f"{', ...' if len(missing) > 5 else ''}; add columns for them (a constant such as -inf "
            "if the model was not trained on them), or leave them out of the graph"
        )
    return inverse(ids)


def _as_ids(columns: Any, labels: Labels, kind: str) -> Int64:
    values = columns if isinstance(columns, np.ndarray) else list(columns)
    if len(values) and isinstance(values[0], str):
        try:
            return labels.ids(values if isinstance(values, list) else values.tolist())
        except InputError as error:
            raise InputError(f"columns: {error}") from None
    ids = np.asarray(values)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"columns has shape {ids.shape} and dtype {ids.dtype}; give the label or the id of "
            f"the {kind} of each column"
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= len(labels)))
    if len(wrong):
        raise InputError(
            f"column {wrong[0]} is declared as {kind} {ids[wrong[0]]}, which is not an id below "
            f"{len(labels)}"
        )
    return ids.astype(np.int64)


def require_columns_by_id(questions: Questions, what: str) -> None:
    """UsageError if these questions declare columns in another order than by id."""
    if questions.column_of is not None:
        raise UsageError(
            f"{what} needs columns in id order, but these questions declare another order "
            "(columns=); leave columns= out, and give columns in id order"
        )


def is_usual_filter(
    name: str | None, evaluated: str | None, context: str | None, splits: Collection[str]
) -> bool:
    """Whether a known protocol leaves these splits out of the filter: then there is no warning.

    Two protocols do so: validation on the validation split, and TGB 2.0, whose conflicts at a time
    come from the evaluated split alone.
    """
    at_validation = (name, evaluated) == ("valid", "valid")
    return at_validation or (context == "time" and set(splits) == {evaluated})


@dataclass(frozen=True, eq=False, repr=False)
class Questions:
    """Aggregated questions. Made by `Graph.questions`, or by `Questions.from_answers`.

    Q questions of a graph's split: the head side first, then the tail side, each in order of first
    appearance in the split; or only those for the relation. A question gives a pair and asks for
    the entity or relation that completes it to a triple. An instance is one answer of one question;
    instances are in the order of ``answers.ids`` ("instance order").

    Attributes
    ----------
    graph : Graph
    split : str
        The evaluated split.
    sides : {"head", "tail", "both", "relation", "qualifier"}
    filter_splits : tuple of str
        Splits whose triples count as known.
    n_extra_known : int
        Further known triples: rows of `extra_known`, and triples of the files of `known`.
    side : ndarray of int64, shape (Q,)
        0: the head is asked, the tail is given. 1: the tail is asked, the head is given. 2: the
        relation is asked, head and tail are given. 3: a qualifier's value is asked, the statement
        and the qualifier's relation are given.
    given : pair of ndarray of int32, shape (Q,)
        The given pair: entity and relation, or head and tail, or the statement's number in
        ``graph.statements`` and the relation. Cast to int64 before products such as keys of pairs.
    entity, relation, tail : ndarray of int32, shape (Q,)
        The same by name; questions for the relation have no `relation`, others have no `tail`.
    statement : ndarray of int32, shape (Q, 3)
        Head, relation and tail of the statement. Only questions for a qualifier's value have it;
        they have no `entity`, and `relation` is the qualifier's.
    kind : {"entity", "relation"}
        The kind of candidates; `candidate_labels` has their labels, and `n_labels` their number.
    context : ndarray of int32, shape (Q,), or None
        The question's time, by its place in ``graph.contexts``, or its set of (other) qualifiers,
        by its place there and in ``graph.qualifiers``.
    answers : Csr
        Entities (or relations) that answer the question in the evaluated split.
    known, removed : Csr
        Those that answer it in any filter split or further known triple (for micro filtering); and
        in one other than the evaluated split, but not there (for macro filtering).
    instance_question, instance_triple : ndarray of int32, shape (n_instances,)
        Question of each instance, and row of its triple in ``graph.splits[split]`` (of a
        qualifier's value, of ``graph.qualifier_facts(split)``); int64 from 2^31 instances on.
    triple_rows : ndarray of int32, shape (n_instances,)
        Instance of each (side, triple): all kept triples in split order with the head asked, then
        all with the tail asked (of a single side, those alone).
    kept : ndarray of int64, shape (n,), or None
        Rows of the split that are evaluated; None: all of them.
    candidate_lists : CandidateLists or None
        Candidate lists, if the candidates are restricted.
    outside : ndarray of bool, shape (n_instances,), or None
        Instances whose answer is not in its list; None if there is no such instance.
    full_candidates : ndarray of int64, shape (n_instances,), or None
        `candidates` before the questions got a list each; None if they have none.
    details : dict
        Further facts about filter and restriction, in plain JSON types.
    ids : sequence of str
        Names of the questions.
    asked : GraphTerms or NamedTerms
        What questions give and where they come from; its attributes are those of the questions,
        too. If made from answers, it has `terms`, by name, and lacks the attributes from `graph` to
        `kept` that name a graph, side or given terms.
    grades : ndarray of int64, shape (n_instances,), or None
        Relevance of each answer, if any are graded.
    answer_terms : dict of str to Term
        Terms of single answers, by name.
    column_of : ndarray of int64, shape (n_labels,), or None
        The column of each entity (or relation) in rows of scores; None: columns go by id.
    """

    asked: GraphTerms | NamedTerms
    answers: Csr
    known: Csr
    removed: Csr
    instance_question: Integers
    instance_triple: Integers
    triple_rows: Integers
    candidate_lists: CandidateLists | None = None
    outside: Bools | None = None
    full_candidates: Int64 | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    column_of: Int64 | None = None
    grades: Int64 | None = None
    answer_terms: Mapping[str, Term] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "asked" not in vars(self):  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.asked, name)

    def __repr__(self) -> str:
        among = "restricted" if self.candidate_lists is not None else f"{self.n_labels:,}"
        size = f"{len(self):,} questions, {self.n_instances:,} instances"
        first, sides, filtered = self.asked.lines(self.details)
        return f"Questions{first}\n  {size}{sides}\n  {filtered}; {among} candidates"

    def _repr_html_(self) -> str:
        return lines_as_html(repr(self))

    @property
    def n_labels(self) -> int:
        """Number of candidate labels: the width of a score row without listed candidates."""
        return len(self.asked.candidate_labels)

    @property
    def column(self) -> Integers:
        """The given entity in the model's numbers, which is its column: int32 or int64, (Q,)."""
        entity: Integers = self.asked.entity
        if self.column_of is None or self.asked.kind == "relation":
            return entity
        return self.column_of[entity]

    @property
    def n_instances(self) -> int:
        """Number of (question, answer) pairs."""
        return len(self.answers.ids)

    def taken(self, questions: Any, instances: Any, **changes: Any) -> Questions:
        """Some questions and instances, as slices or numbers, with ``changes`` of other fields."""
        of_instances = ("instance_triple", "outside", "full_candidates", "grades")
        fields: dict[str, Any] = {
            name: taken(getattr(self, name), instances) for name in of_instances
        }
        fields["asked"] = self.asked.taken(questions)
        if (lists := self.candidate_lists) is not None:
            fields["candidate_lists"] = replace(lists, of=taken(lists.of, questions))
        terms = self.answer_terms.items()
        fields["answer_terms"] = {name: term.taken(instances) for name, term in terms}
        return replace(self, **fields | changes)

    @cached_property
    def candidates(self) -> Int64:
        """Micro candidates of each instance, its answer included: int64, shape (n_instances,)."""
        others = self._sizes_without(self.known)[self.instance_question]
        if self.asked.split in self.asked.filter_splits:
            return others + 1  # every answer is known, but its id is kept
        answers, known = (to_keys(csr, self.n_labels) for csr in (self.answers, self.known))
        is_known = contains(known, answers)
        return others + (is_known if self.outside is None else is_known | self.outside)

    @cached_property
    def macro_candidates(self) -> Int64:
        """Macro candidates of each instance's question: int64, shape (n_instances,)."""
        others = self._sizes_without(self.removed)[self.instance_question]
        return others if self.outside is None else others + self.outside

    def _sizes_without(self, filtered: Csr) -> Int64:
        """Candidates of each question less those of a filter: int64, shape (Q,)."""
        if self.candidate_lists is None:
            return self.n_labels - filtered.lengths
        question = owners(filtered.offsets)
        inside = self.candidate_lists.holds(question, filtered.ids, self.n_labels)
        taken = np.bincount(question[inside], minlength=len(self))
        return self.candidate_lists.sizes(self.n_labels) - taken

    @property
    def n_columns(self) -> int:
        """Number of columns of a score row: entities, relations, or only the listed candidates."""
        return self.n_labels if self.candidate_lists is None else self.candidate_lists.width

    @cached_property
    def fingerprint(self) -> str:
        """Hash (32 hexadecimal digits) of the questions, their answers and both filters."""
        text, before, after = self.asked.hashed()
        arrays = dict(before)
        for name in ("answers", "known", "removed"):
            csr: Csr = getattr(self, name)
            arrays |= {f"{name} offsets": csr.offsets, f"{name} ids": csr.ids}
        arrays |= after
        if (own := self.candidate_lists) is not None:
            arrays |= {"domain of": own.of, "domain offsets": own.lists.offsets,
                       "domain ids": own.lists.ids}  # fmt: skip
        if self.grades is not None:
            arrays["grades"] = self.grades
        arrays |= {f"answers by {name}": term.codes for name, term in self.answer_terms.items()}
        hasher = hashlib.blake2b(text.encode(), digest_size=16)
        for name, array in arrays.items():
            hash_array(hasher, name, array)
        return hasher.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Where the questions come from, in plain JSON types, for manifests."""
        facts = {
            "restricted": None if self.candidate_lists is None else self.candidate_lists.kind,
            "sampled": self.candidate_lists is not None and self.candidate_lists.sampled,
            "outside": 0 if self.outside is None else int(self.outside.sum()),
            "n_questions": len(self),
            "n_instances": self.n_instances,
        }
        described = self.asked.described(facts, dict(self.details))
        return {**described, "questions_hash": self.fingerprint}

    def manifest(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """For a manifest of ranks: further facts on the questions, and further entries."""
        facts, entries = self.asked.manifest()
        if "terms" in entries:
            entries["terms"] |= {name: term.labels for name, term in self.answer_terms.items()}
        return facts, entries

    @property
    def columns(self) -> dict[str, tuple[Array, bool]]:
        """Terms as columns of ranks: values, and whether there is one per question."""
        columns = {name: (ids, True) for name, ids in self.asked.columns.items()}
        of_answers = {f"{TERM}{name}": term for name, term in self.answer_terms.items()}
        return columns | {name: (term.codes, False) for name, term in of_answers.items()}

    @staticmethod
    def from_answers(
        answers: Any,
        known: Any = None,
        *,
        candidates: Any = None,
        labels: Any = None,
        ids: Iterable[str] | None = None,
        terms: Mapping[str, Any] | None = None,
        grades: Any = None,
        level: int = 1,
        known_has_answers: bool = False,
        exclude_query_document: bool = False,
        name: str | None = None,
    ) -> Questions:
        """Questions without a graph, from answers, known answers and named terms.

        Parameters
        ----------
        answers : mapping, sequence, pair of arrays, path or qrels
            Answers of each question: a mapping of its name to labels or ids of candidates, a list
            of such lists, or arrays (offsets, ids). Or qrels, as a path, a mapping of query to
            mapping of document to relevance, a frame, or columns: a document of relevance `level`
            or more is an answer, with its relevance as its grade; others are ordinary candidates.
            Queries without such a document are left out, with a warning; scores may have rows for
            all queries, whose rows are then not used, or only for the others.
            Or the path of a ``.jsonl`` file with a line ``{"id": ..., "answers": [...]}`` per
            question, and "known", "candidates" and "terms" if need be.
        known : mapping, sequence or pair of arrays, optional
            Further answers of each question, which do not compete with the ranked ones.
        candidates : mapping, sequence or pair of arrays, optional
            The candidates of each question; by default all. Results are labelled as sampled.
        labels : sequence of str, or int
            Labels of the candidates in the order of the columns of scores, or their number.
        ids : iterable of str, optional
            Names of the questions: those of a mapping, or "0", "1", ...; of qrels, which queries
            are asked, in the order of rows of scores.
        terms : mapping of str to sequence, optional
            By name, a text or whole number per question, to slice results by.
        grades : sequence, optional
            The relevance of each answer, a whole number, in the form of the answers.
        level : int, default 1
            Least relevance of an answer in qrels.
        known_has_answers : bool, default False
            Whether `known` may contain the answers.
        exclude_query_document : bool, default False
            For qrels: the document with the name of a query does not compete with its answers. (If
            it is an answer itself, it stays one.)
        name : str, optional
            Name of the data, for reports.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            A question without answers; an answer that is not a candidate, is known, or is repeated;
            a repeated name. The message names question and label; for a file, the line.
        UsageError
            `labels` are missing, or options contradict each other.

        Examples
        --------
        >>> questions = kgtrec.Questions.from_answers(
        ...     {"2p-0": ["Q5"], "2i-0": ["Q7", "Q9"]}, {"2p-0": ["Q7"]},
        ...     labels=["Q5", "Q7", "Q9"], terms={"structure": ["2p", "2i"]},
        ... )
        >>> len(questions), questions.n_instances
        (2, 3)
        """
        from kgtrec.questions import answers as given

        table = given.table_of(answers, known, candidates, ids, terms, grades, level)
        if exclude_query_document and "qrels" not in table.origin:
            raise UsageError("exclude_query_document=True needs qrels, whose queries have names")
        numbered = given.as_labels(labels)
        fields = given.fields_of(table, numbered, known_has_answers, name, exclude_query_document)
        return given.restricted(Questions(**fields), table, numbered)

    def separate(self) -> Questions:
        """One question per (side, triple), even if several are equal: each has a single answer.

        Rows of scores are those of ``rows="instances"``. If the evaluated split is in the filter,
        each question knows the answers of its equals, so micro and macro candidates are the same.
        """
        from kgtrec.questions.candidates import separate

        return separate(self)

    def restrict(
        self,
        *,
        entities: npt.ArrayLike | None = None,
        relations: npt.ArrayLike | None = None,
        heads: Mapping[int, npt.ArrayLike] | None = None,
        tails: Mapping[int, npt.ArrayLike] | None = None,
        type_constraints: str | PathLike[str] | None = None,
        candidates: Any = None,
        columns: str = "entities",
        outside: str = "error",
        unknown: str = "error",
    ) -> Questions:
        """The same questions, with answers ranked only among given candidates.

        Lists by relation or by question combine with an earlier list of entities: a candidate must
        be in both.

        Parameters
        ----------
        entities : sequence of int, optional
            Entities that are candidates of every question. (To leave out triples with other
            entities as well, give `entities` to `Graph.questions`.)
        relations : sequence of int, optional
            Relations that are candidates of every question for the relation.
        heads, tails : mapping of int to sequence of int, optional
            Candidates by relation for questions for the head and for the tail, such as type
            constraints. Relations without a list keep every entity.
        type_constraints : path, optional
            The same from OpenKE's ``type_constrain.txt``, with ``entity2id.txt`` and
            ``relation2id.txt`` beside it.
        candidates : array of int, shape (Q, m), or sequence of Q sequences, optional
            Candidates of each question, such as its answer and sampled negatives. Results are
            labelled as sampled. Or a mapping with arrays ``head_neg`` and ``tail_neg``, shape
            (triples, m), in split order, as OGB has them: every triple and side becomes a separate
            question (`separate`), and its answer joins its negatives. Or the path of an ``.npz``
            with these arrays, or of a text file with a line ``question<TAB>entity<TAB>...`` per
            question.
        columns : {"entities", "candidates"}
            The columns of score rows: every entity, in id order, or (with `candidates`, lists of
            one length) a question's own candidates in listed order; with negatives the answer comes
            first.
        outside : {"error", "worst"}
            Treat an answer outside its candidates as an error, or rank it behind them all.
        unknown : {"error", "skip"}
            Treat a label that is not in the graph as an error, or ignore and count it.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            Unknown ids or labels, a wrong number of lists, or an answer outside.
        UsageError
            Not exactly one kind of restriction, or one that cannot combine with an earlier one.
        """
        from kgtrec.questions.candidates import restrict

        return restrict(
            self,
            columns,
            outside,
            unknown,
            entities=entities,
            relations=relations,
            heads=heads,
            tails=tails,
            type_constraints=type_constraints,
            candidates=candidates,
        )


def describe_question(questions: Questions, question: int) -> str:
    """A question as people read it: ``question head12 (?, born_in, Rome)``."""
    return f"question {questions.ids[question]} {questions.asked.text(question)}".rstrip()
