"""Embedding models as products or distances of two vectors, of a question and of an entity.

Each formula is that of the model's paper, split into two factors. A question (given entity,
relation, side) becomes a query. Every entity becomes a row of a table for both sides. Models that
cannot be split are refused, with the reason. Queries are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kgtrec import _core
from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Bools, Int64
from kgtrec.errors import InputError, UsageError, choose


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The questions for a model, one per row.

    - entity, relation, int64 (n,): Rows of the vectors of the given entity, and of the relation.
    - is_tail, bool (n,): True if the tail is asked, False if the head is.
    """

    entity: Int64
    relation: Int64
    is_tail: Bools


@dataclass(frozen=True, eq=False)
class Parts:
    """The arrays and declarations of a model.

    - norm: ``l1`` or ``l2``; None if the user did not declare it.
    - phases: Value in the arrays that means half a turn: pi for radians. None if the user did not
      declare it.
    - normalize: Vectors of TransE that are scaled to length 1: ``none``, ``vectors`` or
      ``entities``.
    - phase_weight, modulus_weight: HAKE's trained weights; None if the user did not declare them.
    """

    entity: Array
    relation: Array
    more: Mapping[str, Array] = field(default_factory=dict)
    norm: str | None = None
    phases: float | None = None
    normalize: str = "none"
    phase_weight: float | None = None
    modulus_weight: float | None = None

    def select_entities(self, rows: Int64) -> Parts:
        """Return the parts with these rows of all vectors of entities."""
        more = {
            name: array[rows] if name == "entity_tail" else array
            for name, array in self.more.items()
        }
        return replace(self, entity=self.entity[rows], more=more)


Built = tuple[Array, Array, str]
"""Queries, table of entities, metric of `Factors`."""


def _by_side(ids: QueryIds, tail: Array, head: Array) -> Array:
    """Return the queries of each row's side: rows of `tail` or of `head`."""
    out: Array = np.where(ids.is_tail.reshape(-1, *[1] * (tail.ndim - 1)), tail, head)
    return out


def _distmult(p: Parts, ids: QueryIds) -> Built:
    """DistMult (Yang et al. 2015): sum of h r t."""
    return _double(p.entity[ids.entity]) * _double(p.relation[ids.relation]), p.entity, "dot"


def _complex(p: Parts, ids: QueryIds) -> Built:
    """ComplEx (Trouillon et al. 2016): Re sum of h r conj(t)."""
    table, relation = _as_complex("entity", p.entity), _as_complex("relation", p.relation)
    if table.shape[1:] != relation.shape[1:]:
        raise InputError(
            f"complex: entity has {table.shape[1]} complex dimensions and relation "
            f"{relation.shape[1]}; both need the same"
        )
    e, r = _double(table[ids.entity]), _double(relation[ids.relation])
    return _as_real(e * _by_side(ids, r, r.conj())), _as_real(table), "dot"


def _transe(p: Parts, ids: QueryIds) -> Built:
    """TransE (Bordes et al. 2013): minus the norm of h + r - t, l1 or l2 (by default)."""
    choose("normalize", p.normalize, NORMALIZED)
    norm = _norm(p)
    entity, relation = p.entity, p.relation
    if p.normalize == "vectors":
        entity, relation = _normalise(entity, "l2"), _normalise(relation, "l2")
    elif p.normalize == "entities":
        entity = _normalise(entity, norm)
    r = _double(relation[ids.relation])
    return _double(entity[ids.entity]) + _by_side(ids, r, -r), entity, norm


NORMALIZED = ("none", "vectors", "entities")


def _normalise(vectors: Array, norm: str) -> Array:
    """Scale vectors to length 1 by a norm; zeros stay zeros."""
    values = _double(vectors)
    length = np.linalg.norm(values, ord=int(norm[1]), axis=1, keepdims=True)
    scaled: Array = (values / np.maximum(length, 1e-12)).astype(vectors.dtype)
    return scaled


_ROTATE_NORMS = (
    f"rotate needs the norm of its distance, because programs differ: {argument('norm', 'l1')} "
    "sums the moduli of "
    "h r - t (RotatE's own program, RNNLogic, OpenKE, DGL-KE, and LibKGE if l_norm is 1); "
    f"{argument('norm', 'l2')} takes their l2 norm (PyKEEN, PyTorch Geometric, and LibKGE if "
    "l_norm is 2); the "
    f"first four also scale phases: pass {argument('phases', 0.28)} if (gamma + 2) / hidden_dim is "
    "0.28; for "
    f"vectors in a file, {argument('model_config', 'config.json')} says both"
)


def _rotate(p: Parts, ids: QueryIds) -> Built:
    """RotatE (Sun et al. 2019): minus a norm of the complex h r - t, with |r| = 1.

    l1 sums the moduli of the complex numbers; l2 is the norm over all real and imaginary parts.
    """
    if p.norm is None:
        raise UsageError(_ROTATE_NORMS)
    metric = "moduli" if _norm(p) == "l1" else "l2"
    table = _as_complex("entity", p.entity)
    if has_phases(p):
        half_turn = _half_turn(p)
        r = np.exp(1j * np.pi / half_turn * _double(p.relation[ids.relation]))
    else:
        r = _double(_as_complex("relation", p.relation)[ids.relation])
        away = float(np.abs(np.abs(r) - 1).max(initial=0))
        if away > 1e-3:
            raise InputError(
                f"rotate: moduli of relations differ from 1 by up to {away:.3g}, so they do "
                "not only rotate; normalise them, or give phases in radians, one per dimension"
            )
    # A rotation keeps distances: |h r - t| = |h - t conj(r)|.
    queries = _double(table[ids.entity]) * _by_side(ids, r, r.conj())
    return _as_real(queries), _as_real(table), metric


def has_phases(p: Parts) -> bool:
    """Return True if RotatE's relations are phases, one real number per complex dimension."""
    dims = p.entity.shape[1] if np.iscomplexobj(p.entity) else p.entity.shape[1] // 2
    return not np.iscomplexobj(p.relation) and p.relation.shape[1] == dims


def _half_turn(p: Parts) -> float:
    """Return the value of a phase that means half a turn; UsageError if the user must declare it.

    Trained phases in radians fill a turn, so that the largest is near pi or 2 pi.
    """
    if p.phases is not None:
        return p.phases
    largest = float(np.abs(p.relation).max(initial=0))
    if p.relation.size and not 1 <= largest <= 2 * math.pi + 1e-3:
        raise UsageError(
            f"the largest phase of a relation is {largest:.4g}, so phases are perhaps not radians: "
            "RotatE's own program, RNNLogic, OpenKE and DGL-KE compute relation * pi / range, "
            f"range = (gamma + 2) / hidden_dim; pass {argument('phases', 0.28)} if it is 0.28, "
            f"{argument('phases', 'radians')} if "
            f"they are; for vectors in a file, {argument('model_config', 'config.json')} says it"
        )
    return math.pi


_UNKNOWN_SCALE = (
    "{} needs the scale of its phases: {} computes value * pi / range, range = (gamma + 2) / "
    f"hidden_dim; pass {argument('phases', 0.28)} if it is 0.28, {argument('phases', 'radians')} "
    f"if they are; for vectors in a file, {argument('model_config', 'config.json')} says it"
)


def _protate(p: Parts, ids: QueryIds) -> Built:
    """pRotatE (Sun et al. 2019): minus the sum of |sin(h + r - t)| of phases.

    On the unit circle, points at angles 2 a and 2 b are 2 |sin(a - b)| apart.
    """
    if p.phases is None:
        raise UsageError(_UNKNOWN_SCALE.format("protate", "RotatE's own program"))
    double_angle = 2 * np.pi / p.phases
    r = _double(p.relation[ids.relation])
    angles = double_angle * (_double(p.entity[ids.entity]) + _by_side(ids, r, -r))
    table = _as_real(np.exp(1j * double_angle * _double(p.entity)))
    return _as_real(np.exp(1j * angles)), table, "moduli"


def _rescal(p: Parts, ids: QueryIds) -> Built:
    """RESCAL (Nickel et al. 2011): h' M t, a matrix per relation, shape (relations, dim, dim)."""
    _check_shape("relation", p.relation, (None, p.entity.shape[1], p.entity.shape[1]))
    return _by_matrix(p, ids, lambda number: _double(p.relation[number])), p.entity, "dot"


def _by_matrix(p: Parts, ids: QueryIds, matrix_of: Callable[[int], Array]) -> Array:
    """Compute queries from a matrix per relation.

    Relations are computed in turn, because the matrices of all rows would be large.
    """
    vectors = _double(p.entity[ids.entity])
    queries = np.empty_like(vectors)
    for number in np.unique(ids.relation).tolist():
        matrix = matrix_of(number)
        for side in (False, True):
            rows = (ids.relation == number) & (ids.is_tail == side)
            queries[rows] = _multiply(vectors[rows], matrix.T if side else matrix)
    return queries


def _multiply(vectors: Array, matrix: Array) -> Array:
    """Return the products of vectors (n, dim) with the rows of a matrix (m, dim), shape (n, m).

    A product has the same bits for any number of vectors, unlike those of a BLAS. So a part of a
    ranking has the queries of the whole.
    """
    products = np.empty((len(vectors), len(matrix)))
    rows = np.ascontiguousarray(matrix, np.float64)
    _core.factor_scores(np.ascontiguousarray(vectors, np.float64), rows, None, "dot", products)
    return products


def _cp(p: Parts, ids: QueryIds) -> Built:
    """CP (Hitchcock 1927): sum of h r t, where entities have separate vectors as tails."""
    heads, tails = p.entity, p.more["entity_tail"]
    _check_shape("entity_tail", tails, heads.shape)
    r = _double(p.relation[ids.relation])
    nothing = np.zeros_like(r)
    tail = np.hstack([nothing, _double(heads[ids.entity]) * r])
    head = np.hstack([_double(tails[ids.entity]) * r, nothing])
    return _by_side(ids, tail, head), np.hstack([heads, tails]), "dot"


def _simple(p: Parts, ids: QueryIds) -> Built:
    """SimplE (Kazemi and Poole 2018): mean of CP of h, r, t and of t, the inverse of r, h."""
    heads, tails = p.entity, p.more["entity_tail"]
    _check_shape("entity_tail", tails, heads.shape)
    _check_shape("relation_inverse", p.more["relation_inverse"], p.relation.shape)
    r = _double(p.relation[ids.relation])
    inverse = _double(p.more["relation_inverse"][ids.relation])
    tail = np.hstack([_double(tails[ids.entity]) * inverse, _double(heads[ids.entity]) * r])
    head = np.hstack([_double(tails[ids.entity]) * r, _double(heads[ids.entity]) * inverse])
    return _by_side(ids, tail, head) / 2, np.hstack([heads, tails]), "dot"


def _hole(p: Parts, ids: QueryIds) -> Built:
    """HolE (Nickel et al. 2016): r times the circular correlation of h and t.

    This is h' M t with M[i, j] = r[(j - i) % dim]. A Fourier transform would take fewer steps, but
    on arm64 numpy's rounds a row by its place in the array, so a part would have other queries
    than the whole.
    """
    steps = np.arange(p.entity.shape[1])
    turns = (steps - steps[:, None]) % len(steps)
    return _by_matrix(p, ids, lambda number: _double(p.relation[number])[turns]), p.entity, "dot"


def _tucker(p: Parts, ids: QueryIds) -> Built:
    """TuckER (Balazevic et al. 2019): the core (d, r, d) times h, r, t, without normalisation."""
    core, dim = p.more["core"], p.entity.shape[1]
    _check_shape("core", core, (dim, p.relation.shape[1], dim))
    by_relation = _double(core).transpose(0, 2, 1).reshape(dim * dim, -1)

    def matrix_of(number: int) -> Array:
        return _multiply(_double(p.relation[number])[None], by_relation).reshape(dim, dim)

    return _by_matrix(p, ids, matrix_of), p.entity, "dot"


def _quate(p: Parts, ids: QueryIds) -> Built:
    """QuatE (Zhang et al. 2019): the Hamilton product of h and r / |r|, times t."""
    table, r = (
        _quaternions("entity", p.entity),
        _double(_quaternions("relation", p.relation)[ids.relation]),
    )
    length = np.sqrt((r**2).sum(axis=1, keepdims=True))
    r = r / np.where(length == 0, 1, length)
    conjugate = r * np.array([1, -1, -1, -1]).reshape(1, 4, 1)
    queries = _hamilton(_double(table[ids.entity]), _by_side(ids, r, conjugate))
    dim = p.entity.shape[1]
    return queries.reshape(len(queries), dim), table.reshape(len(table), dim), "dot"


_HAKE_WEIGHTS = (
    f"hake needs its two trained weights: pass {argument('phase_weight', 0.7)} and "
    f"{argument('modulus_weight', 3.5)} (these are examples); HAKE's program saves them in the "
    "file 'checkpoint' beside the vectors, in model_state_dict; config.json has only their first "
    "values"
)


def _hake(p: Parts, ids: QueryIds) -> Built:
    """HAKE (Zhang et al. 2020): minus a weighted distance of phases and one of moduli.

    Of an entity, the halves are its phases p and its moduli m; of a relation, the thirds are
    phases, scales s and biases b. With s = |s| and b between -s and 1, the distances are the sum of
    |sin((p_h + p_r - p_t) / 2)| and the l2 norm of m_h (s + b) - m_t (1 - b).
    """
    n = p.entity.shape[1] // 2
    _check_shape("entity", p.entity, (None, 2 * n))
    _check_shape("relation", p.relation, (None, 3 * n))
    if p.phase_weight is None or p.modulus_weight is None:
        raise UsageError(_HAKE_WEIGHTS)
    if p.phases is None:
        raise UsageError(_UNKNOWN_SCALE.format("hake", "HAKE's program"))
    half = np.pi / p.phases / 2
    angle, modulus = np.hsplit(_double(p.entity), 2)
    turn, scale, bias = np.hsplit(_double(p.relation[ids.relation]), 3)
    scale = np.abs(scale)
    bias = np.maximum(np.minimum(bias, 1), -scale)
    of_head, of_tail = scale + bias, 1 - bias
    angles = half * (angle[ids.entity] + _by_side(ids, turn, -turn))
    products = modulus[ids.entity] * _by_side(ids, of_head, of_tail)
    weights = np.tile([p.phase_weight, p.modulus_weight], (len(products), 1))
    factors = _by_side(ids, of_tail, of_head)
    queries = np.hstack([np.cos(angles), np.sin(angles), products, factors, weights])
    return queries, np.hstack([np.cos(half * angle), np.sin(half * angle), modulus]), "hake"


def _mode(p: Parts, ids: QueryIds) -> Built:
    """ModE (Zhang et al. 2020): minus the l1 norm of h r - t, of real numbers."""
    known, r = _double(p.entity[ids.entity]), _double(p.relation[ids.relation])
    queries = np.hstack([_by_side(ids, known * r, known), _by_side(ids, np.ones_like(r), r)])
    return queries, p.entity, "mode"


FORMULAS: dict[str, tuple[Callable[[Parts, QueryIds], Built], tuple[str, ...]]] = {
    "distmult": (_distmult, ()),
    "complex": (_complex, ()),
    "transe": (_transe, ()),
    "rotate": (_rotate, ()),
    "protate": (_protate, ()),
    "rescal": (_rescal, ()),
    "cp": (_cp, ("entity_tail",)),
    "simple": (_simple, ("entity_tail", "relation_inverse")),
    "hole": (_hole, ()),
    "tucker": (_tucker, ("core",)),
    "quate": (_quate, ()),
    "hake": (_hake, ()),
    "mode": (_mode, ()),
}
"""The function that splits each model's scores, and its arrays other than entity and relation."""


class Refusal(NamedTuple):
    """The refusal of a model whose scores are not a product or distance of a query and an entity.

    - reason: Operation of the model that cannot be split.
    - remedy: Advice on how to rank the model.
    """

    reason: str
    remedy: str


_PROJECTED = Refusal(
    "projects every entity by the relation, so each relation has its own vectors of entities",
    "rank it relation by relation, as `kgtrec guide training-loop` does with TransH",
)
_BY_NETWORK = "pass its scores, from an array, a file or a callable (`kgtrec guide training-loop`)"
REFUSED = {
    "transh": _PROJECTED,
    "transr": _PROJECTED,
    "transd": _PROJECTED,
    "stranse": _PROJECTED,
    "ntn": Refusal("passes head and tail through a layer together", _BY_NETWORK),
    "ermlp": Refusal("passes head, relation and tail through a network together", _BY_NETWORK),
    "conve": Refusal(
        "makes its query with a network, whose weights are not embeddings",
        "pass the network's vectors of the questions: Factors(queries, entities, bias), or an .npz "
        "with these three arrays and no name of a model",
    ),
    "kg2e": Refusal("compares distributions of entities, with variances", _BY_NETWORK),
}
"""Models whose scores are not a product or distance of a query and a vector per entity."""


def check_model(model: object) -> str:
    """Return the name of a model in lower case; UsageError if kgtrec lacks its formula."""
    name = model.lower() if isinstance(model, str) else ""
    if name in REFUSED:
        reason, remedy = REFUSED[name]
        raise UsageError(f"{model} {reason}; {remedy}")
    if name not in FORMULAS:
        choose("model", model, FORMULAS)
    return name


def build(model: str, parts: Parts, ids: QueryIds) -> Built:
    """Return queries, table and metric of a model; errors as for `Factors.from_embeddings`."""
    name = check_model(model)
    formula, more = FORMULAS[name]
    if set(parts.more) != set(more):
        needed = ", ".join(("entity", "relation", *more))
        present = ", ".join(("entity", "relation", *parts.more))
        raise UsageError(f"{name} has the arrays {needed}; got {present}")
    _refuse_idle(name, parts)
    if name not in ("complex", "rotate", "rescal", "tucker", "hake") and (
        parts.entity.shape[1:] != parts.relation.shape[1:]
    ):
        raise InputError(
            f"{name}: entity has shape {parts.entity.shape} and relation {parts.relation.shape}; "
            "both need the same dimensions"
        )
    return formula(parts, ids)


_DECLARED_FOR = {
    "norm": ("transe", "rotate"),
    "phases": ("rotate", "protate", "hake"),
    "normalize": ("transe",),
    "phase_weight": ("hake",),
    "modulus_weight": ("hake",),
}
"""Models whose formula reads a declaration of `Parts`."""


def _refuse_idle(model: str, parts: Parts) -> None:
    """Raise UsageError for a declaration that the model's formula would ignore."""
    phases = "radians" if parts.phases == math.pi else parts.phases
    values = {option: getattr(parts, option) for option in _DECLARED_FOR} | {"phases": phases}
    for option, models in _DECLARED_FOR.items():
        value = values[option]
        if value not in (None, "none") and model not in models:
            named = argument(option, value)
            raise UsageError(
                f"{named} has no effect on {model}, only on {_join_words(models)}; leave it out"
            )
    if parts.phases is not None and model == "rotate" and not has_phases(parts):
        raise UsageError(
            f"{argument('phases', phases)} has no effect on relations that are complex numbers; "
            "leave it out"
        )


def _join_words(words: tuple[str, ...]) -> str:
    """Join words by commas and "and"."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def half_turn_of(phases: float | str | None) -> float | None:
    """Return the value that means half a turn: pi for ``radians``, or a positive number.

    None if phases are not declared; UsageError for any other value.
    """
    if phases is None or phases == "radians":
        return math.pi if phases else None
    try:
        value = float(phases)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(
            f"{argument('phases', phases)} is unknown; it must be 'radians' or the positive number "
            "that means "
            "half a turn"
        )
    return value


def describe(model: str, parts: Parts, origin: Mapping[str, str]) -> tuple[str, ...]:
    """Describe the declarations that a formula used, in lines of text.

    `origin` contains the source of a value, by ``model``, ``norm``, ``phases`` and ``normalize``.
    """
    since = {key: f", {text}" for key, text in origin.items()}
    lines = [f"model: {model}{since['model']}"] if "model" in since else []
    if model in ("transe", "rotate"):
        norm = f"{_norm(parts)} (sum of moduli)" * (model == "rotate" and parts.norm == "l1")
        default = ", by default" if parts.norm is None else ""
        lines.append(f"norm: {norm or _norm(parts)}{since.get('norm', default)}")
    if model in ("protate", "hake") or (model == "rotate" and has_phases(parts)):
        scaled = parts.phases is not None and not math.isclose(parts.phases, math.pi)
        value = "relation" if model == "rotate" else "value"
        text = f"{value} * pi / {parts.phases:.6g}" if scaled else "radians"
        lines.append(f"phases: {text}{since.get('phases', '')}")
    if model == "hake":
        text = f"phases {parts.phase_weight:.6g}, moduli {parts.modulus_weight:.6g}"
        lines.append(f"weights: {text}{since.get('phase_weight', '')}")
    if model == "transe" and (parts.normalize != "none" or "normalize" in since):
        text = f"{parts.normalize} are scaled to length 1"
        if parts.normalize == "none":
            text = "vectors are used as they are"
        lines.append(f"normalization: {text}{since.get('normalize', '')}")
    return tuple(lines)


def _double(array: Array) -> Array:
    """Return an array as float64, or complex128 if it is complex."""
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _norm(parts: Parts) -> str:
    """Return the norm of a distance; l2 if the user did not declare it."""
    norm = "l2" if parts.norm is None else parts.norm
    choose("norm", norm, ("l1", "l2"))
    return norm


def _check_shape(name: str, array: Array, shape: tuple[int | None, ...]) -> None:
    """Raise InputError if an array has another shape; None stands for any size."""
    fits = array.ndim == len(shape) and all(
        due is None or size == due for size, due in zip(array.shape, shape, strict=True)
    )
    if not fits:
        due_text = ", ".join("n" if size is None else str(size) for size in shape)
        raise InputError(f"{name} has shape {array.shape}; expected ({due_text})")


def _as_complex(name: str, array: Array) -> Array:
    """Return vectors as complex ones; the halves of real vectors are real and imaginary parts."""
    if np.iscomplexobj(array):
        return array
    if array.shape[1] % 2:
        raise InputError(
            f"{name} has {array.shape[1]} dimensions; give complex numbers, or all real parts "
            "followed by all imaginary parts"
        )
    half = array.shape[1] // 2
    return array[:, :half] + 1j * array[:, half:]


def _as_real(array: Array) -> Array:
    """Return complex vectors as real ones: all real parts, then all imaginary parts."""
    return np.hstack([array.real, array.imag])


def _quaternions(name: str, array: Array) -> Array:
    """Return vectors in the shape (n, 4, dim): real part, i, j, k."""
    if array.ndim != 2 or array.shape[1] % 4:
        raise InputError(
            f"{name} has shape {array.shape}; a quaternion has four parts: (n, 4 dim), all real "
            "parts first, then all i, all j, all k"
        )
    return array.reshape(len(array), 4, -1)


def _hamilton(p: Array, q: Array) -> Array:
    """Return the Hamilton products of quaternions, shape (n, 4, dim)."""
    a, b, c, d = (p[:, part] for part in range(4))
    e, f, g, h = (q[:, part] for part in range(4))
    return np.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        axis=1,
    )
