"""Restricted candidates: which entities a question's answer is ranked among.

Three protocols: one list of entities for all questions; a list per relation and side (type
constraints); a list per question (sampled negatives). An answer outside its list is an error, or
counts at the worst rank and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError

if TYPE_CHECKING:
    from kgtrec.questions import Csr, Questions

__all__ = ["Domain", "restrict"]

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Domain:
    """Candidate lists of questions.

    Attributes
    ----------
    kind : {"entities", "relations", "candidates"}
        What a list belongs to.
    lists : Csr
        Ascending entity ids, list after list.
    of : ndarray of int64, shape (Q,)
        The list of each question; -1: every entity.
    columns : ndarray of int32, shape (len(lists.ids),), or None
        Score column of each id, where score rows hold the candidates alone; None: columns go by id.
    width : int
        Columns of a score row.
    """

    kind: str
    lists: Csr
    of: Int64
    columns: npt.NDArray[np.int32] | None
    width: int

    @property
    def sampled(self) -> bool:
        """Ranks among a list per question can't be compared with full ones."""
        return self.kind == "candidates"

    def sizes(self, n_entities: int) -> Int64:
        """Entities in each question's list, shape (Q,)."""
        lengths = np.append(self.lists.lengths, n_entities)
        return lengths[self.of]

    def holds(self, question: Int64, entity: npt.NDArray[Any], n_entities: int) -> Any:
        """Whether each entity is in its question's list: bool, shape of the arrays."""
        keys = np.repeat(np.arange(len(self.lists)), self.lists.lengths) * n_entities
        keys = keys + self.lists.ids
        wanted = self.of[question] * n_entities + entity
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        found = keys[at] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        return found | (self.of[question] < 0)


def restrict(
    questions: Questions,
    entities: npt.ArrayLike | None,
    heads: Mapping[int, npt.ArrayLike] | None,
    tails: Mapping[int, npt.ArrayLike] | None,
    candidates: Sequence[npt.ArrayLike] | npt.ArrayLike | None,
    columns: str,
    outside: str,
) -> Questions:
    """See `Questions.restrict`."""
    if columns not in ("entities", "candidates") or outside not in ("error", "worst"):
        raise UsageError(
            f"columns={columns!r}, outside={outside!r}; columns is 'entities' or 'candidates', "
            "outside is 'error' or 'worst'"
        )
    by_relation = heads is not None or tails is not None
    if (entities is not None) + by_relation + (candidates is not None) != 1:
        raise UsageError("restrict by entities, by heads and tails, or by candidates: one of them")
    if columns == "candidates" and candidates is None:
        raise UsageError("columns='candidates' needs candidates: one list per question")
    if entities is not None:
        lists = [_ids("entities", entities, questions.n_entities)]
        domain = _domain(questions, "entities", lists, np.zeros(len(questions), dtype=np.int64))
    elif by_relation:
        domain = _by_relation(questions, heads or {}, tails or {})
    else:
        domain = _by_question(questions, candidates, columns)
    return _apply(questions, domain, outside)


def _by_relation(
    questions: Questions, heads: Mapping[int, Any], tails: Mapping[int, Any]
) -> Domain:
    """Relations without a list keep every entity."""
    n_relations, n = questions.graph.n_relations, questions.n_entities
    lists: list[npt.NDArray[np.int32]] = []
    number = np.full(2 * n_relations, -1, dtype=np.int64)
    for side, (name, given) in enumerate((("heads", heads), ("tails", tails))):
        if not isinstance(given, Mapping):
            raise InputError(
                f"{name} is of type {type(given).__name__}; map relation ids to lists of entity ids"
            )
        for relation, ids in given.items():
            if not isinstance(relation, (int, np.integer)) or not 0 <= relation < n_relations:
                raise InputError(
                    f"{name}: relation {relation!r} is no id below {n_relations}; "
                    "graph.relations.ids([...]) gives the ids of labels"
                )
            number[2 * relation + side] = len(lists)
            lists.append(_ids(f"{name}[{relation}]", ids, n))
    return _domain(questions, "relations", lists, number[2 * questions.relation + questions.side])


def _by_question(questions: Questions, candidates: Any, columns: str) -> Domain:
    if not hasattr(candidates, "__len__"):
        raise InputError(
            f"candidates are of type {type(candidates).__name__}; give a list of ids per question"
        )
    if len(candidates) != len(questions):
        raise InputError(
            f"candidates hold {len(candidates)} lists for {len(questions)} questions; give one each"
        )
    given = [np.asarray(ids) for ids in candidates]
    lists = [_ids(f"candidates[{i}]", ids, questions.n_entities) for i, ids in enumerate(given)]
    every = np.arange(len(questions))
    domain = _domain(questions, "candidates", lists, every)
    if columns == "entities":
        return domain
    for number, (ids, distinct) in enumerate(zip(given, lists, strict=True)):
        if len(ids) != len(distinct) or len(ids) != len(given[0]):
            raise InputError(
                f"candidates[{number}] has {len(ids)} ids, {len(distinct)} of them distinct; as "
                f"score columns, all lists need the same number ({len(given[0])}) of distinct ids"
            )
    order = np.argsort(np.stack(given), axis=1, kind="stable").astype(np.int32)
    return replace(domain, columns=order.ravel(), width=len(given[0]))


def _domain(
    questions: Questions, kind: str, lists: list[npt.NDArray[np.int32]], of: Int64
) -> Domain:
    from kgtrec.questions import Csr

    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(ids) for ids in lists], out=offsets[1:])
    ids = np.concatenate([np.empty(0, dtype=np.int32), *lists])
    return Domain(kind, Csr(offsets, ids), of, None, questions.n_entities)


def _ids(name: str, given: npt.ArrayLike, n_entities: int) -> npt.NDArray[np.int32]:
    ids = np.asarray(given)
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise InputError(
            f"{name} has shape {ids.shape} and dtype {ids.dtype}; give a list of entity ids "
            "(graph.entities.ids([...]) gives those of labels, numpy.flatnonzero those of a mask)"
        )
    wrong = ids[(ids < 0) | (ids >= n_entities)]
    if len(wrong):
        raise InputError(f"{name} holds {wrong[0]}, which is no entity id below {n_entities}")
    distinct: npt.NDArray[np.int32] = np.unique(ids).astype(np.int32)
    return distinct


def _apply(questions: Questions, domain: Domain, outside: str) -> Questions:
    question, answers = questions.instance_question, questions.answers.ids
    out = ~domain.holds(question, answers, questions.n_entities)
    if out.any() and outside == "error":
        first = int(np.flatnonzero(out)[0])
        raise InputError(
            f"{int(out.sum())} of {len(out)} answers are not among their candidates, the first is "
            f"{questions.graph.entities[int(answers[first])]!r} for question "
            f"{questions.ids[int(question[first])]}; add it to its list, or count such answers at "
            "the worst rank with outside='worst'"
        )
    return replace(questions, domain=domain, outside=out if out.any() else None)
