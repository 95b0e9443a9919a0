"""PyKEEN: `KgtrecEvaluator` instead of `RankBasedEvaluator`, and `evaluate(model, dataset)`.

Examples
--------
>>> pipeline(dataset="Nations", model="TransE", evaluator=KgtrecEvaluator)   # doctest: +SKIP
>>> print(evaluate(result.model, dataset))                                   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from pykeen.evaluation import RankBasedEvaluator

from kgtrec.errors import InputError, UsageError
from kgtrec.graph.labels import Labels
from kgtrec.integrations._filtered_rows import FilteredRows
from kgtrec.integrations._models import (
    Int64,
    evaluate_model,
    ids_of,
    questions_of,
    require_entity_sides,
)
from kgtrec.questions.api import Graph, Questions
from kgtrec.ranking.ranker import Ranker
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result

_NOTHING = "nothing was evaluated yet; call evaluate() or run the pipeline"
_SPLITS = {"train": "training", "valid": "validation", "test": "testing"}


class KgtrecEvaluator(RankBasedEvaluator):
    """PyKEEN's rank-based evaluator, with the ranks of kgtrec.

    It works wherever PyKEEN takes an evaluator: in `pipeline`, in its own `evaluate`, in evaluation
    loops and in the callback "evaluation-loop". It gives every key of `RankBasedMetricResults`.
    Ranks are exact integers. It neither changes nor keeps scores, and avoids PyKEEN's in-place
    work (NaN over known scores, a mask of batch x all triples).

    Parameters
    ----------
    filtered : bool
        Whether to filter out known triples: those evaluated and those passed by PyKEEN.
    higher_is_better : bool
        False for a model whose scores are distances (PyKEEN's own models negate them).
    **options
        As for PyKEEN's `RankBasedEvaluator`.

    Attributes
    ----------
    kgtrec_ranks : Ranks or None
        Ranks of the last evaluation, by instance.
    result : Result
        Every number of kgtrec, from these ranks.

    Notes
    -----
    A repeated evaluated triple counts once; PyKEEN counts it twice. Evaluation loops filter scores
    before the evaluator gets them, by NaN; so a NaN of the model is taken for a known answer there,
    as by PyKEEN, unless it contradicts another row or is the answer's score.
    """

    filtered: bool

    def __init__(
        self, filtered: bool = True, *, higher_is_better: bool = True, **options: Any
    ) -> None:
        super().__init__(filtered=filtered, **options)
        self.higher_is_better = higher_is_better
        self.kgtrec_ranks: Ranks | None = None
        self._questions: Questions | None = None
        self._ranker: Ranker | None = None
        self._loop: FilteredRows | None = None
        self._loop_ended = False

    @property
    def result(self) -> Result:
        """See the class; UsageError before the first evaluation."""
        if self.kgtrec_ranks is None:
            raise UsageError(_NOTHING)
        return Result(self.kgtrec_ranks)

    def evaluate(
        self,
        model: Any,
        mapped_triples: Any,
        *args: Any,
        additional_filter_triples: Any = None,
        restrict_entities_to: Collection[int] | None = None,
        restrict_relations_to: Collection[int] | None = None,
        pre_filtered_triples: bool = True,
        targets: Collection[str] = ("head", "tail"),
        **kwargs: Any,
    ) -> Any:
        """Evaluate a model as PyKEEN does, but with the restrictions of kgtrec's questions."""
        for target in targets:
            require_entity_sides(target)
        triples = ids_of(mapped_triples)
        more = [] if additional_filter_triples is None else additional_filter_triples
        more = more if isinstance(more, (list, tuple)) else [more]
        known = [ids_of(part) for part in more] if self.filtered else None
        n_relations = max(int(part[:, 1].max(initial=-1)) + 1 for part in (triples, *(known or ())))
        mode = self.mode
        n_entities = model.num_entities if mode is None else model._get_entity_len(mode=mode)
        self._questions = questions_of(
            triples,
            known,
            (n_entities, max(model.num_relations, n_relations)),
            "both" if len(set(targets)) == 2 else next(iter(targets)),
            entities=_ids(restrict_entities_to),
            relations=_ids(restrict_relations_to),
        )
        test_triples = self._questions.triples
        distinct = len(self._questions.graph.splits["test"])
        dropped = distinct - len(test_triples)
        if dropped and pre_filtered_triples and self._questions.kept is not None:
            raise InputError(
                f"{dropped} of {distinct} triples have an entity or relation outside the "
                "restriction of the evaluation; pass pre_filtered_triples=False to drop them"
            )
        filtered = self.filtered
        # Else PyKEEN writes NaN over known scores. The attribute becomes True again when PyKEEN
        # reads it to decide whether to pass filter triples.
        self.filtered = False
        tensor = torch.from_numpy(test_triples.astype(np.int64))
        try:
            return super().evaluate(model, tensor, *args, targets=targets, **kwargs)
        finally:
            self.filtered, self._questions = filtered, None

    def clear(self) -> None:
        """Forget everything; PyKEEN calls this when it tries another batch size."""
        super().clear()
        self._ranker = self._loop = None
        if self._questions is not None:
            self._ranker = Ranker(
                self._questions, rows="instances", higher_is_better=self.higher_is_better
            )

    def process_scores_(
        self,
        hrt_batch: Any,
        target: str,
        scores: Any,
        true_scores: Any = None,
        dense_positive_mask: Any = None,
    ) -> None:
        """Rank the answers of one batch. Loops of PyKEEN call this without `evaluate`."""
        self.num_entities = scores.shape[1]
        if self._questions is not None:
            assert self._ranker is not None, "evaluate() calls clear() first"
            self._ranker.update(self._ranker.rows_of(hrt_batch, target), scores)
            return
        if self._loop is None or self._loop_ended:
            self._loop = FilteredRows(scores.shape[1], self.filtered, self.higher_is_better)
            self._loop_ended = False
        self._loop.add(hrt_batch, target, scores)

    def finalize(self) -> Any:
        """Return all keys of PyKEEN, computed from kgtrec's ranks."""
        if self._loop is not None:
            ranks, self._loop_ended = self._loop.ranks(), True
        elif self._ranker is not None:
            ranks, _ = self._ranker.finish()
        else:
            raise UsageError(_NOTHING)
        self.kgtrec_ranks = ranks
        order = np.argsort(ranks.triple, kind="stable")
        for side in np.unique(ranks.side).tolist():
            mine, target = order[ranks.side[order] == side], ("head", "tail")[side]
            self.num_candidates[target] = [ranks.candidates[mine]]
            for rank_type in ("optimistic", "realistic", "pessimistic"):
                self.ranks[target, rank_type] = [ranks.rank(rank_type)[mine]]
        return super().finalize()


def evaluate(
    model: Any,
    dataset: Any,
    split: str = "test",
    *,
    batch_size: int = 512,
    slice_size: int | None = None,
    sides: str = "both",
    filter: str | Collection[str] | None = None,
    entities: Collection[int | str] | None = None,
    relations: Collection[int | str] | None = None,
    **options: Any,
) -> Result:
    """Rank a model of PyKEEN on a split of a data set; see `kgtrec.integrations`.

    Scores equal questions once; PyKEEN's own evaluation scores each triple.

    Parameters
    ----------
    model : pykeen.models.Model
    dataset : pykeen.datasets.Dataset
    split : {"test", "valid", "train"}
    slice_size : int, optional
        Entities scored at a time, by default all.
    filter
        As for `Graph.questions`.
    entities, relations : collection of int or of str, optional
        Numbers or labels. Evaluate only triples of these entities and relations; the entities are
        also the only candidates, as PyKEEN's page "Understanding the Evaluation" describes.
    """
    require_entity_sides(sides)
    graph = graph_of(dataset)
    questions = graph.questions(
        split,
        sides,
        filter=filter,
        entities=_numbers(entities, graph.entities),
        relations=_numbers(relations, graph.relations),
    )
    if model.num_entities != questions.n_entities:
        raise InputError(
            f"the model has {model.num_entities} entities and the data set "
            f"{questions.n_entities}; pass the data set that it was trained on"
        )

    def score(entity: torch.Tensor, relation: torch.Tensor, side: str) -> Any:
        # PyKEEN ignores the asked column.
        hrt = torch.stack([entity, relation, entity], dim=1)
        return model.predict(hrt_batch=hrt, target=side, slice_size=slice_size)

    return evaluate_model(score, model, questions, batch_size, model.device, **options)


def graph_of(dataset: Any) -> Graph:
    """Convert a data set of PyKEEN to a graph with the same numbers and, if any, labels.

    Returns
    -------
    Graph
        Graph with the splits train, test and, if there is one, valid. It has the name of the data
        set's class, unless that is one of PyKEEN's general classes.
    """
    factories = {name: getattr(dataset, theirs, None) for name, theirs in _SPLITS.items()}
    splits: dict[str, Any] = {
        name: ids_of(f.mapped_triples) for name, f in factories.items() if f is not None
    }
    training = factories["train"]
    labels = getattr(training, "entity_to_id", None), getattr(training, "relation_to_id", None)
    if None not in labels:
        graph = Graph.from_arrays(**splits, entities=labels[0], relations=labels[1])
    else:
        graph = Graph.from_arrays(
            **splits, n_entities=dataset.num_entities, n_relations=dataset.num_relations
        )
    # PyKEEN's own data sets are classes; a data set made from triples has no such name.
    if not type(dataset).__module__.startswith("pykeen.datasets.base"):
        graph.name = type(dataset).__name__
    return graph


def _numbers(items: Collection[int | str] | None, labels: Labels) -> Int64 | None:
    """Return numbers as int64; labels are looked up."""
    if items is None:
        return None
    listed = list(items)
    if listed and all(isinstance(item, str) for item in listed):
        return labels.ids([str(item) for item in listed])
    return np.asarray(listed)


def _ids(ids: Collection[int] | None) -> Int64 | None:
    return None if ids is None else np.asarray([int(number) for number in ids])
