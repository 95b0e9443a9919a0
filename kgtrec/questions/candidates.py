"""Restricted candidates: the labels among which a question's answers are ranked.

Three protocols: one list of entities (or relations) for all questions; a list per relation and side
(type constraints); a list per question (sampled negatives). An answer outside its list is an error,
or gets the worst rank and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Int32, Int64
from kgtrec._internal.csr import Csr, contains, offsets_of, select_lists, to_csr, to_keys
from kgtrec.errors import InputError, UsageError, about, refuse_if
from kgtrec.graph import id_files
from kgtrec.graph.openke import read_type_constraints
from kgtrec.questions.candidate_lists import CandidateLists
from kgtrec.questions.selection import keep_well_answered
from kgtrec.questions.terms import PLURAL, NamedTerms

if TYPE_CHECKING:
    from kgtrec.questions.questions import AnyQuestions, QuestionData

_ONE_LIST = ("entities", "relation list")


def restrict(
    questions: AnyQuestions,
    columns: str = "entities",
    outside: str = "error",
    unknown: str = "error",
    **options: Any,
) -> AnyQuestions:
    """Restrict the candidates of questions; `Questions.restrict` has the parameters.

    ``options`` holds its kinds of restriction, None if omitted.
    """
    id_files.check_unknown(unknown)
    least = options.pop("min_answers", None)
    restrictions = {name: value for name, value in options.items() if value is not None}
    if least is not None:
        refuse_if(
            (
                restrictions or columns != "entities" or outside != "error",
                f"{argument('min_answers')} chooses questions; restrict their candidates by "
                "another call",
            )
        )
        return keep_well_answered(questions, least)
    _check_restrictions(questions, columns, outside, restrictions)
    plural = PLURAL[questions.kind]
    details: dict[str, Any] = {}
    if plural in restrictions:
        lists = [label_ids(plural, restrictions[plural], questions.n_labels)]
        kind = "relation list" if plural == "relations" else plural
        candidate_lists = _build_lists(questions, kind, lists, np.zeros(len(questions), int))
    elif "candidates" in restrictions:
        questions, candidate_lists = _read_question_lists(
            questions, restrictions["candidates"], columns, unknown, details
        )
    else:
        heads, tails = restrictions.get("heads", {}), restrictions.get("tails", {})
        if "type_constraints" in restrictions:
            labels = questions.graph.entities, questions.graph.relations
            heads, tails, file_details = read_type_constraints(
                restrictions["type_constraints"], *labels, unknown
            )
            details |= file_details
        candidate_lists = _build_relation_lists(questions, heads, tails)
        details["questions_without_list"] = int(np.count_nonzero(candidate_lists.of < 0))
    return apply_lists(questions, candidate_lists, outside, details)


def _check_restrictions(
    questions: QuestionData, columns: str, outside: str, restrictions: Mapping[str, Any]
) -> None:
    """Refuse unknown words, several restrictions, and those that do not fit the questions."""
    named, plural, kinds = ", ".join(restrictions), PLURAL[questions.kind], set(restrictions)
    earlier = None if questions.candidate_lists is None else questions.candidate_lists.kind
    of_entities = ("entities", "heads", "tails", "type_constraints")
    of_others = of_entities if plural == "relations" else ("relations",)
    wrong = [name for name in of_others if name in restrictions]
    refuse_if(
        (
            columns not in ("entities", "candidates") or outside not in ("error", "worst"),
            f"{argument('columns', columns, option='score_columns')}, "
            f"{argument('outside', outside)}; columns must be 'entities' or 'candidates', and "
            "outside 'error' or 'worst'",
        ),
        (
            len(restrictions) - ({"heads", "tails"} <= kinds) != 1,
            f"got {named or 'no restriction'}; restrict by exactly one of entities, relations, "
            "heads and tails, type_constraints, or candidates",
        ),
        (
            columns == "candidates" and questions.column_of is not None,
            f"these questions declare the columns of all entities ({argument('columns')}), but "
            f"{argument('columns', 'candidates', option='score_columns')} means that rows have "
            "only the candidates; leave one of them out",
        ),
        (
            columns == "candidates" and "candidates" not in restrictions,
            f"{argument('columns', 'candidates', option='score_columns')} needs "
            f"{argument('candidates')}: one list per question",
        ),
        (
            earlier not in (None, *_ONE_LIST),
            f"these questions are already restricted by {earlier}; to restrict twice, restrict by "
            f"a list of {plural} first",
        ),
        (
            questions.sides == "qualifier" and kinds & {"heads", "tails", "type_constraints"},
            f"{named}: lists of heads and tails do not fit a qualifier's values; restrict them by "
            "entities, or by candidates",
        ),
        (
            wrong,
            f"{', '.join(wrong)}: the candidates of these questions are {plural}; restrict by "
            f"{plural}, or by candidates",
        ),
    )


def separate(questions: AnyQuestions) -> AnyQuestions:
    """Make one question per (side, triple); see `Questions.separate`."""
    instance = questions.triple_rows
    question = questions.instance_question[instance].astype(np.int64)
    every, n = np.arange(len(instance)), questions.n_labels
    answers = questions.answers.ids[instance]
    known = select_lists(questions.known, question)
    keys = to_keys(known, n)
    other_known = keys[~contains(every * n + answers, keys)]
    separated = questions.select(
        question,
        instance,
        answers=Csr(np.arange(len(instance) + 1), answers),
        known=known,
        removed=to_csr(other_known, len(instance), n),
        instance_question=every,
        triple_rows=every,
        details={**questions.details, "separate": True},
    )
    if isinstance(separated.origin, NamedTerms):
        return separated
    return replace(separated, origin=separated.origin.name_triples())


def _build_relation_lists(
    questions: QuestionData, heads: Mapping[int, Any], tails: Mapping[int, Any]
) -> CandidateLists:
    """Build lists from those per relation and side. Without a list, every entity stays."""
    n_relations, n = questions.graph.n_relations, questions.n_labels
    lists: list[Int32] = []
    number = np.full(2 * n_relations, -1, dtype=np.int64)
    for side, (name, by_relation) in enumerate((("heads", heads), ("tails", tails))):
        if not isinstance(by_relation, Mapping):
            raise InputError(
                f"{name} has type {type(by_relation).__name__}; "
                "map relation ids to lists of entity ids"
            )
        for relation, ids in by_relation.items():
            if not isinstance(relation, (int, np.integer)) or not 0 <= relation < n_relations:
                raise InputError(
                    f"{name}: relation {relation!r} is not an id below {n_relations}; "
                    "graph.relations.ids([...]) gives the ids of labels"
                )
            number[2 * relation + side] = len(lists)
            lists.append(label_ids(f"{name}[{relation}]", ids, n))
    return _build_lists(
        questions, "relations", lists, number[2 * questions.relation + questions.side]
    )


def _read_question_lists(
    questions: AnyQuestions, candidates: Any, columns: str, unknown: str, details: dict[str, Any]
) -> tuple[AnyQuestions, CandidateLists]:
    """Return questions and their lists, from `candidates` as in `Questions.restrict`.

    Negatives are per triple and side: they make the questions separate. Adds to `details`.
    """
    path = candidates if isinstance(candidates, (str, PathLike)) else None
    if path is not None:
        details["file"] = str(path)
        if str(path).endswith(".npz"):
            candidates = id_files.read_negatives(path)
        else:
            labels, origin = questions.candidate_labels, questions.origin
            left_out = set() if isinstance(origin, NamedTerms) else origin.left_out_names
            candidates, file_details = id_files.read_candidates(
                path, questions.ids, labels, unknown, left_out
            )
            details |= file_details
    with about(path):
        negatives = isinstance(candidates, Mapping)
        if negatives:
            questions = separate(questions)
            candidates = _negatives(questions, candidates)
        return questions, _build_question_lists(questions, candidates, columns, negatives, details)


def _negatives(questions: QuestionData, arrays: Mapping[str, Any]) -> Array:
    """Return each answer and its negatives, (Q, 1 + negatives), of separate questions."""
    if questions.sides in ("relation", "qualifier"):
        raise InputError(
            "head_neg and tail_neg list heads and tails, but these questions ask for the "
            f"{questions.sides}; give a list of candidates for each question"
        )
    if questions.of_graph("triples").pairs is not None:
        raise UsageError(
            "negatives list candidates for every triple and side, but questions with few answers "
            f"are left out; give a list per question, or leave out {argument('min_answers')}"
        )
    triples = questions.triples
    sides = [side for side in (0, 1) if (questions.side == side).any()]
    names = [id_files.NEGATIVES[side] for side in sides]
    if not set(names) <= set(arrays) <= set(id_files.NEGATIVES):
        raise InputError(
            f"negatives has the arrays {', '.join(map(repr, arrays))}; it needs "
            f"{' and '.join(map(repr, names))}, with ids of shape ({len(triples)}, negatives)"
        )
    parts = []
    for side, name in zip(sides, names, strict=True):
        array = np.asarray(arrays[name])
        if array.ndim != 2 or len(array) != len(triples) or array.dtype.kind not in "iu":
            raise InputError(
                f"{name} has shape {array.shape} and dtype {array.dtype}; expected ids of shape "
                f"({len(triples)}, negatives): one row per evaluated triple of split "
                f"{questions.split!r}, in its order"
            )
        parts.append(np.column_stack([triples[:, 2 * side], array]))
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError(
            f"{names[0]} has {parts[0].shape[1] - 1} columns and {names[1]} "
            f"{parts[1].shape[1] - 1}; give the same number of negatives for both sides"
        )
    return np.concatenate(parts)


def _build_question_lists(
    questions: QuestionData, candidates: Any, columns: str, negatives: bool, details: dict[str, Any]
) -> CandidateLists:
    """Check the list of each question and build `CandidateLists`; count repeats in `details`."""
    if not hasattr(candidates, "__len__"):
        raise InputError(
            f"candidates has type {type(candidates).__name__}; give a list of ids per question"
        )
    if len(candidates) != len(questions):
        raise InputError(
            f"candidates has {len(candidates)} lists for {len(questions)} questions; give one "
            "list per question"
        )
    arrays = [np.asarray(ids) for ids in candidates]
    name = "negatives" if negatives else "candidates"
    lists = [label_ids(f"{name}[{i}]", ids, questions.n_labels) for i, ids in enumerate(arrays)]
    repeats = sum(map(len, arrays)) - sum(map(len, lists))
    details["repeats"] = repeats
    candidate_lists = _build_lists(questions, "candidates", lists, np.arange(len(questions)))
    if columns == "entities":
        return candidate_lists
    for number, (ids, distinct) in enumerate(zip(arrays, lists, strict=True)):
        if len(ids) != len(arrays[0]) or (len(ids) != len(distinct) and not negatives):
            raise InputError(
                f"candidates[{number}] has {len(ids)} ids, {len(distinct)} of them distinct; as "
                f"score columns, all lists need the same number ({len(arrays[0])}) of distinct ids"
            )
    # If a negative is repeated, the score in its first column is used.
    first = [np.unique(ids, return_index=True)[1] for ids in arrays]
    return replace(
        candidate_lists, columns=np.concatenate(first).astype(np.int32), width=len(arrays[0])
    )


def _build_lists(
    questions: QuestionData, kind: str, lists: list[Int32], of: Int64
) -> CandidateLists:
    """Join lists of ids; `of` has the index of each question's list."""
    ids = np.concatenate([np.empty(0, dtype=np.int32), *lists])
    csr = Csr(offsets_of([*map(len, lists)]), ids)
    return CandidateLists(kind, csr, of, None, questions.n_labels)


def label_ids(name: str, values: npt.ArrayLike, size: int) -> Int32:
    """Return the distinct ids, ascending; InputError, with `name`, if one is not below `size`."""
    ids = np.asarray(values)
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise InputError(
            f"{name} has shape {ids.shape} and dtype {ids.dtype}; give a list of ids "
            "(graph.entities.ids([...]) and graph.relations.ids([...]) give the ids of labels, "
            "numpy.flatnonzero those of a mask)"
        )
    wrong = ids[(ids < 0) | (ids >= size)]
    if len(wrong):
        raise InputError(f"{name} contains {wrong[0]}, which is not an id below {size}")
    distinct: Int32 = np.unique(ids).astype(np.int32)
    return distinct


def _intersect(outer: CandidateLists, inner: CandidateLists, n_labels: int) -> CandidateLists:
    """Return each question's list in `inner`, without labels that the list of `outer` lacks.

    `outer` has one list for all questions, which also replaces "every label" of `inner`.
    """
    member = np.zeros(n_labels, dtype=bool)
    member[outer.lists.ids] = True
    in_both = member[inner.lists.ids]
    offsets = offsets_of(in_both)[inner.lists.offsets]
    ids, columns = inner.lists.ids[in_both], inner.columns
    # The outer list comes last, for questions without their own list.
    lists = Csr(
        np.append(offsets, offsets[-1] + len(outer.lists.ids)),
        np.concatenate([ids, outer.lists.ids]),
    )
    of = np.where(inner.of < 0, len(inner.lists), inner.of)
    if columns is not None:
        spare = np.zeros(len(outer.lists.ids), dtype=np.int32)  # no question uses that list
        columns = np.concatenate([columns[in_both], spare])
    return replace(inner, lists=lists, of=of, columns=columns)


def apply_lists(
    questions: AnyQuestions, candidate_lists: CandidateLists, outside: str, details: dict[str, Any]
) -> AnyQuestions:
    """Return the questions with these lists, combined with an earlier list for all questions.

    InputError if an answer is not in its list and `outside` is "error".
    """
    full = questions.candidates if candidate_lists.sampled else None
    if questions.candidate_lists is not None:
        candidate_lists = _intersect(questions.candidate_lists, candidate_lists, questions.n_labels)
    question = questions.instance_question.astype(np.int64)
    answers = questions.answers.ids
    out = ~candidate_lists.holds(question, answers, questions.n_labels)
    if out.any() and outside == "error":
        first = int(np.flatnonzero(out)[0])
        file = f"{details['file']}: " if "file" in details else ""
        raise InputError(
            f"{file}{int(out.sum())} of {len(out)} answers are not among their candidates, "
            f"first {questions.candidate_labels[int(answers[first])]!r} of question "
            f"{questions.ids[int(question[first])]}; add it to its list, or give such answers the "
            f"worst rank with {argument('outside', 'worst')}"
        )
    return replace(
        questions,
        candidate_lists=candidate_lists,
        outside=out if out.any() else None,
        full_candidates=full,
        details={**questions.details, **({"lists": details} if details else {})},
    )
