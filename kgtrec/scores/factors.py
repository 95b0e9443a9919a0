"""Factorised models: their scores are products or distances of vectors.

They are ranked without a score matrix.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kgtrec import _core
from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Int64
from kgtrec._internal.files import atomic_write
from kgtrec._internal.locations import local_copy
from kgtrec.errors import FileError, InputError, PathName, UsageError, choose
from kgtrec.graph.graph import GraphData
from kgtrec.graph.labels import Labels
from kgtrec.questions.api import Questions
from kgtrec.questions.questions import column_of_label
from kgtrec.scores.archives import (
    FORMULA,
    Formula,
    check_factor_names,
    read_arrays,
    read_formula,
    unreadable,
)
from kgtrec.scores.arrays import as_array, to_host
from kgtrec.scores.formulas import Parts, QueryIds, build, check_model, describe, half_turn_of
from kgtrec.scores.mapped_files import Watch

METRICS = ("dot", "l2", "l1", "moduli", "mode", "hake")
"""Products and distances of vectors; the native core has the same names."""

EVERY_ROW = slice(None)


class Factors:
    """A factorised model. It is ranked in tiles, so its score matrix never exists.

    Parameters
    ----------
    queries : array of float16, float32 or float64, shape (rows, dim)
        A vector per row: per question, or per (triple, side), as declared in the call of `rank`.
    entities : array, shape (n_entities, dim)
        A vector per entity, in id order.
    bias : array, shape (n_entities,), optional
        Added to every score of an entity.
    columns : sequence of int, optional
        The entity id of each row of `entities` (and each bias), if they are not in id order.
        ``graph.entities.ids(labels)`` converts labels to ids.
    metric : {"dot", "l2", "l1", "moduli", "mode", "hake"}
        ``dot``: q·x + bias. ``l2``: -‖q - x‖² + bias, computed as 2 q·x - x·x - q·q.
        ``l1``: ``bias - (|q1 - x1| + |q2 - x2| + ...)``. ``moduli``: the l1 distance of complex
        vectors, with all real parts first: ``bias`` minus the sum of ``sqrt(re² + im²)`` of
        ``q - x``. ``mode``: queries are p and then w, each as long as x: ``bias - sum |p - w x|``.
        ``hake``: entities are c, s and x, of equal length, queries C, S, p and w, of that length,
        and two numbers a and b: ``bias - a sum |S c - C s| - b sqrt(sum (p - w x)²)``.

    Attributes
    ----------
    facts : tuple of str
        Sentences on the formula of a model: its norm, its phases. Results print them.
    declared : dict
        Of vectors of a model: its name and settings, by the names of `from_embeddings`.

    Notes
    -----
    Scores are computed in float64 if any array is float64, else in float32. Entities in float16 are
    stored as they are and widened when used, which halves their memory. Each dot product is a chain
    of fused multiply-adds in ascending dimension. So a score has the same bits in every tile,
    thread, chunk and kernel path, and entities with equal vectors (and biases) tie exactly.
    Distances that are equal for other reasons may differ in the last bits, as in any floating-point
    sum. No BLAS is used, because its threads would multiply with those that share the rows.

    Raises
    ------
    InputError
        Shapes or dtypes do not fit together.
    """

    def __init__(
        self,
        queries: Any,
        entities: Any,
        bias: Any = None,
        metric: str = "dot",
        *,
        columns: Any = None,
    ) -> None:
        choose("metric", metric, METRICS)
        arrays = [_check_floats("queries", queries, 2), _check_floats("entities", entities, 2)]
        if bias is not None:
            arrays.append(_check_floats("bias", bias, 1))
        _check_dimensions(metric, arrays[0].shape[1], arrays[1].shape[1])
        if bias is not None and len(arrays[2]) != len(arrays[1]):
            raise InputError(
                f"bias has {len(arrays[2])} values for {len(arrays[1])} entities; give one per "
                "entity"
            )
        if columns is not None:
            column_of = _inverse_of(columns, len(arrays[1]))
            arrays[1:] = [array[column_of] for array in arrays[1:]]
        double = any(array.dtype == np.float64 for array in arrays)
        dtype = np.dtype(np.float64 if double else np.float32)
        half = arrays[1].dtype == np.float16 and not double
        arrays = [
            np.ascontiguousarray(array, dtype=np.float16 if half and number == 1 else dtype)
            for number, array in enumerate(arrays)
        ]
        # The core accepts unaligned entities and biases of mapped files, but aligned queries only.
        self.queries, self.entities = np.require(arrays[0], requirements="A"), arrays[1]
        self.bias = arrays[2] if bias is not None else None
        self.metric = metric
        self.facts: tuple[str, ...] = ()
        self.declared: dict[str, str | float] = {}

    @classmethod
    def load(cls, path: PathName) -> Factors:
        """Read the ``.npz`` that `save` or ``numpy.savez`` wrote: queries, entities, bias, metric.

        FileError if its arrays are missing, unknown, or do not fit together.
        """
        with local_copy(path) as copy:
            try:
                watch = Watch([copy])
            except OSError as error:
                raise unreadable(copy, error) from None
            arrays = read_arrays(copy)
            watch.check()
        check_factor_names(path, arrays)
        metric = str(arrays["metric"]) if "metric" in arrays else "dot"
        try:
            factors = cls(arrays["queries"], arrays["entities"], arrays.get("bias"), metric)
        except (InputError, UsageError) as error:
            raise FileError(
                path, found=str(error), hint="correct the arrays and save them again"
            ) from None
        if FORMULA in arrays:
            formula = read_formula(path, arrays[FORMULA])
            factors.facts, factors.declared = formula.facts, dict(formula.declared)
        return factors

    def save(self, path: PathName) -> None:
        """Write the model to an ``.npz``, which `load` and ``kgtrec rank --scores`` read.

        Its ranks are the same to the bit. The file contains the name and the settings of the model,
        so that ``--model`` is not needed; if it is given, it must agree.

        Parameters
        ----------
        path : path
            It must end in ``.npz``.

        Raises
        ------
        UsageError
            The path has another ending.
        FileError
            The file cannot be written. Nothing half-written remains.
        """
        if os.path.splitext(path)[1] != ".npz":
            raise UsageError(
                f"{os.fspath(path)}: factors are saved as .npz; give a name that ends in .npz"
            )
        arrays: dict[str, Any] = {
            "queries": self.queries,
            "entities": self.entities,
            "metric": self.metric,
        }
        if self.bias is not None:
            arrays["bias"] = self.bias
        if self.declared or self.facts:
            arrays[FORMULA] = Formula(self.declared, self.facts).to_text()
        with atomic_write(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def from_embeddings(
        cls,
        questions: Questions,
        model: str,
        *,
        entity: Any,
        relation: Any,
        norm: str | None = None,
        phases: float | str | None = None,
        normalize: str = "none",
        phase_weight: float | None = None,
        modulus_weight: float | None = None,
        inverse: str = "none",
        rows: str = "questions",
        columns: Any = None,
        bias: Any = None,
        **more: Any,
    ) -> Factors:
        """Return the factors of a known embedding model for the questions to rank.

        Parameters
        ----------
        questions : Questions
        model : str
            ``distmult``, ``complex``, ``transe``, ``rotate``, ``protate``, ``rescal``, ``cp``,
            ``simple``, ``hole``, ``tucker``, ``quate``, ``hake`` or ``mode``;
            `kgtrec.scores.formulas` names their papers.
        entity, relation : array, shape (n, dim)
            Vectors of entities and relations, by id. Complex models have complex numbers, or all
            real parts followed by all imaginary ones. RotatE's relations may also be phases. RESCAL
            has a matrix per relation. QuatE has all four parts one after another. HAKE has phases
            and moduli of entities; phases, scales and biases of relations.
        norm : {"l2", "l1"}, optional
            Norm of the distance of TransE (by default l2) or RotatE (which needs it, because
            programs differ). RotatE's l1 sums the moduli of complex numbers. Ranks by l2 and by its
            square are the same.
        phases : "radians" or float, optional
            Unit of the phases of RotatE, pRotatE and HAKE: radians, or a number x that means half a
            turn, so that ``phase = value * pi / x``. By default RotatE's are radians, if they can
            be.
        normalize : {"none", "vectors", "entities"}
            TransE: scale all vectors to length 1 first (OpenKE with ``norm_flag``), or those of the
            entities, by the norm (PyTorch Geometric).
        phase_weight, modulus_weight : float, optional
            HAKE's trained weights of the distances of phases and of moduli. It needs both.
        inverse : {"none", "offset", "interleaved"}
            How to answer head questions: by the formula, or as tail questions of the inverse
            relation. Its id is ``r + n_relations`` (LibKGE, TuckER's code), or ``2 r + 1`` with ``2
            r`` for relation r (PyKEEN).
        rows : {"questions", "instances"}
            The meaning of a query, as for `Ranker`.
        columns : sequence of int, optional
            The entity id of each row of `entity` (and each bias), if they are not in id order. By
            default, rows have the order of columns that the questions declare.
        bias : array, shape (n_entities,), optional
            Added to every score of an entity.
        **more : array
            ``entity_tail`` of cp and simple: entities' vectors as tails; ``relation_inverse`` of
            simple; ``core`` of tucker, shape (dim, relation dim, dim).

        Raises
        ------
        UsageError
            An unknown model, or one that is not a product or distance of two vectors (TransH, ConvE
            and others), with the reason; missing or superfluous arrays.
        InputError
            Shapes that do not fit the questions or one another.
        """
        parts = read_parts(
            entity,
            relation,
            more,
            norm=norm,
            phases=phases,
            normalize=normalize,
            phase_weight=phase_weight,
            modulus_weight=modulus_weight,
        )
        if columns is not None:
            if questions.column_of is not None:
                raise UsageError("the questions already declare columns=; leave columns= out here")
            rows_in_order = _inverse_of(columns, len(parts.entity))
            parts, bias = parts.select_entities(rows_in_order), select_biases(bias, rows_in_order)
        return build_factors(questions, model, parts, inverse=inverse, rows=rows, bias=bias)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which scores are computed: float32 or float64."""
        return self.queries.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the scores: queries, entities."""
        return len(self.queries), len(self.entities)

    @property
    def table(self) -> tuple[Array, Array | None, str]:
        """Entities (n_entities, dim), bias (n_entities,) or None, and metric, for the core."""
        return self.entities, self.bias, self.metric

    def __repr__(self) -> str:
        bias = ", bias" if self.bias is not None else ""
        return (
            f"Factors({len(self.queries)} queries, {len(self.entities)} entities, "
            f"dim {self.queries.shape[1]}{bias}, {self.metric}, {self.dtype})"
        )

    def select_entities(self, rows: Int64) -> Factors:
        """Return the model with these rows of entities and biases, int64 (k,), in this order."""
        bias = None if self.bias is None else self.bias[rows]
        return Factors(self.queries, self.entities[rows], bias, self.metric)

    def scores(self, start: int = 0, stop: int | None = None) -> Array:
        """Compute the scores of rows, (rows, n_entities), with the same bits as in ranking."""
        queries = self.queries[start:stop]
        out = np.empty((len(queries), len(self.entities)), dtype=self.dtype)
        _core.factor_scores(queries, self.entities, self.bias, self.metric, out)
        return out


def build_factors(
    questions: Questions,
    model: str,
    parts: Parts,
    *,
    inverse: str,
    rows: str,
    bias: Any = None,
    span: slice = EVERY_ROW,
) -> Factors:
    """Return the factors of a model, with queries of the rows `span` only.

    Other parameters and errors are those of `Factors.from_embeddings`.
    """
    ids = _query_ids(questions, rows, inverse, parts, span)
    dtype = computing_type(parts)
    queries, table, metric = build(model, parts, ids)
    factors = Factors(queries.astype(dtype), table.astype(dtype), bias, metric)
    factors.facts = describe(check_model(model), parts, {})
    factors.declared = _declarations(check_model(model), parts, inverse)
    return factors


def _declarations(model: str, parts: Parts, inverse: str) -> dict[str, str | float]:
    """Return the name and the settings of a model, without those that do not apply."""
    values: dict[str, Any] = {
        "model": model,
        "norm": parts.norm or ("l2" if model == "transe" else None),
        "phases": parts.phases,
        "normalize": parts.normalize,
        "phase_weight": parts.phase_weight,
        "modulus_weight": parts.modulus_weight,
        "inverse": inverse,
    }
    given = {name: value for name, value in values.items() if value not in (None, "none")}
    return {
        name: value if isinstance(value, str) else float(value) for name, value in given.items()
    }


def read_parts(
    entity: Any,
    relation: Any,
    more: Mapping[str, Any],
    *,
    norm: str | None,
    phases: float | str | None,
    normalize: str,
    phase_weight: float | None,
    modulus_weight: float | None,
) -> Parts:
    """Return the arrays and declarations of a model; parameters as for `Factors.from_embeddings`.

    InputError if an array does not contain vectors, UsageError for unknown `phases`.
    """
    arrays = {name: _read_vectors(name, array) for name, array in more.items()}
    return Parts(
        _read_vectors("entity", entity),
        _read_vectors("relation", relation),
        arrays,
        norm,
        half_turn_of(phases),
        normalize,
        phase_weight,
        modulus_weight,
    )


def computing_type(parts: Parts) -> np.dtype[Any]:
    """Return the type in which the scores of a model are computed: float32 or float64."""
    double = np.result_type(parts.entity.real.dtype, parts.relation.real.dtype) == np.float64
    return np.dtype(np.float64 if double else np.float32)


def _check_dimensions(metric: str, of_query: int, of_entity: int) -> None:
    """Raise InputError unless the lengths of queries and entities fit the metric."""
    if metric == "hake" and of_entity % 3:
        raise InputError(
            f"entities have {of_entity} dimensions; for metric 'hake' they contain all cosines, "
            "then as many sines and as many moduli, so the number must be a multiple of 3"
        )
    due = _core.query_dim(metric, of_entity)
    if of_query != due:
        rule = "they must be the same"
        if due != of_entity:
            rule = f"metric {metric!r} needs queries of {due} for these entities"
        raise InputError(f"queries have {of_query} dimensions and entities {of_entity}; {rule}")
    if metric == "moduli" and of_entity % 2:
        raise InputError(
            f"vectors have {of_entity} dimensions; for metric 'moduli' they contain all real parts "
            "and then as many imaginary parts, so the number must be even"
        )


def _read_vectors(name: str, array: Any) -> Array:
    """Return vectors (or matrices) of any framework as an array; InputError for anything else."""
    values = as_array(to_host(array), name)
    if values.ndim < 2 or values.dtype.kind not in "fc":
        hint = "it must have one vector (or matrix) of floats or complex numbers per row"
        if values.ndim == 0:
            hint = "it is a single value, not embeddings: leave it out"
        elif values.dtype.kind == "O":
            hint = "it contains Python objects: convert it with numpy.stack(...).astype('float32')"
        raise InputError(f"{name} has shape {values.shape} and dtype {values.dtype}; {hint}")
    return values


def _query_ids(
    questions: Questions, rows: str, inverse: str, parts: Parts, span: slice
) -> QueryIds:
    """Return the question of each row of `span`, with the model's inverse relations."""
    choose("rows", rows, ("questions", "instances"))
    if questions.kind == "relation":
        raise UsageError(
            "from_embeddings makes queries only for questions for an entity; for the relation pass "
            "Factors(queries, relation vectors), with queries such as head * tail of DistMult"
        )
    n_relations = questions.graph.n_relations
    check_sizes(parts, questions.graph, inverse)
    number: Array = np.arange(len(questions))
    if rows == "instances":
        number = questions.instance_question[questions.triple_rows]
    number = number[span]
    relation = questions.relation[number].astype(np.int64)
    is_tail = questions.side[number] == 1
    if inverse != "none":
        step = 2 if inverse == "interleaved" else 1
        turned = n_relations if inverse == "offset" else 1
        relation, is_tail = step * relation + turned * ~is_tail, np.ones(len(number), dtype=bool)
    entity = questions.entity[number].astype(np.int64)
    if questions.column_of is not None:  # vectors of entities are in the order of the columns
        entity = questions.column_of[entity]
    return QueryIds(entity, relation, is_tail)


def check_sizes(parts: Parts, graph: GraphData, inverse: str) -> None:
    """Raise InputError unless there are vectors of all entities and relations of a graph."""
    choose("inverse", inverse, ("none", "offset", "interleaved"))
    due = graph.n_relations if inverse == "none" else 2 * graph.n_relations
    if (len(parts.entity), len(parts.relation)) != (graph.n_entities, due):
        raise InputError(_wrong_numbers(graph, inverse, due, parts))


def _wrong_numbers(graph: GraphData, inverse: str, due: int, parts: Parts) -> str:
    """Return the message on vectors of more or fewer entities or relations than the graph has."""
    n_entities, n_relations = len(parts.entity), len(parts.relation)
    text = (
        f"there are vectors of {n_entities} entities and {n_relations} relations; the graph has "
        f"{graph.n_entities} and {graph.n_relations}"
    )
    if n_relations != due:
        text += f", for which {argument('inverse', inverse)} needs {due} relations"
        if n_relations == 2 * due and inverse == "none":
            text += (
                f"; if the model has inverse relations, pass {argument('inverse', 'offset')} (r + "
                f"n_relations) or {argument('inverse', 'interleaved')} (2 r + 1)"
            )
        elif inverse != "none" and 2 * n_relations == due:
            text += f"; if the model has no inverse relations, leave {argument('inverse')} out"
    if n_entities == graph.n_entities:
        return text
    if hint := graph.hint_of_width(n_entities):
        return f"{text}; {hint}"
    if n_entities > graph.n_entities:
        return (
            f"{text}; if the model has entities that no triple names, copy its dictionary "
            "(entity2id.txt or entities.txt) into the graph's folder"
        )
    return f"{text}; give the vectors of the model that was trained on this graph"


def _inverse_of(columns: Any, n: int) -> Int64:
    """Return the row of each entity, int64 (n,); InputError unless `columns` has every id once."""
    ids = np.asarray(columns)
    if ids.dtype.kind in "US" or (ids.dtype == object and ids.ndim == 1):
        raise InputError(
            "columns of Factors must be ids; get them with graph.entities.ids(labels), or pass the "
            "labels to rank(..., columns=labels)"
        )
    if ids.shape != (n,):
        raise InputError(
            f"columns has shape {ids.shape} and dtype {ids.dtype}; give one entity id for each of "
            f"the {n} rows of entities"
        )
    return column_of_label(ids, Labels.decimal(n))


def select_biases(bias: Any, rows: Int64) -> Array | None:
    """Return the biases of these rows, in this order; None without biases.

    Biases that do not fit the number of rows are returned unchanged, and `Factors` refuses them.
    """
    if bias is None:
        return None
    values = _check_floats("bias", bias, 1)
    return values[rows] if len(values) == len(rows) else values


def _check_floats(name: str, array: Any, ndim: int) -> Array:
    """Return an array of any framework; InputError unless it has floats and `ndim` dimensions."""
    values = as_array(to_host(array), name)
    if values.ndim != ndim or values.dtype.name not in ("float16", "float32", "float64"):
        raise InputError(
            f"{name} has shape {values.shape} and dtype {values.dtype}; "
            f"it must be {ndim}-dimensional, of float16, float32 or float64"
        )
    return values
