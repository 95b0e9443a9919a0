"""Random difficult graphs and scores: duplicates, overlaps, ties, NaN, unusual memory layouts.

Everything is small, so that hypothesis finds corner cases often and shrinks them to a few triples.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import oracle
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

if TYPE_CHECKING:
    from kgtrec import Questions

DTYPES = tuple(map(np.dtype, ("float32", "float64", "float16")))

# Letters that sort around each other once encoded: blank and % become %20 and %25, é is two bytes,
# \udcff is the lone byte 0xff, and digits make %20 a pattern that looks like an encoding.
LABEL_ALPHABET = "ab02 %\té\udcff"


@dataclass(frozen=True)
class GraphCase:
    """A graph, and the settings of its questions; triples may repeat inside and across splits."""

    n_entities: int
    n_relations: int
    splits: dict[str, list[tuple[int, int, int]]]
    labels: tuple[str, ...] | None
    evaluated: str
    sides: str
    filter_splits: tuple[str, ...] | None
    extra_known: tuple[tuple[int, int, int], ...]

    def entity_labels(self) -> tuple[str, ...]:
        """The labels; without labels, an id is its own label."""
        return self.labels or tuple(map(str, range(self.n_entities)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The splits as (n, 3) int64 arrays, duplicates kept."""
        return {
            name: np.array(triples, dtype=np.int64).reshape(-1, 3)
            for name, triples in self.splits.items()
        }

    def docnos(self) -> list[bytes]:
        """The names in TREC files, by the oracle."""
        return [oracle.docno(label) for label in self.entity_labels()]

    def oracle_questions(self) -> tuple[list[oracle.Question], list[oracle.Instance]]:
        """Questions and instances, by the oracle."""
        how = (self.evaluated, self.sides)
        questions = oracle.ask(self.splits, *how, self.filter_splits, self.extra_known)
        return questions, oracle.instances_of(self.splits, questions, *how)

    def questions(self, **more: object) -> Questions:
        """The same questions, by kgtrec."""
        import kgtrec

        graph = kgtrec.Graph.from_arrays(
            **self.arrays(),
            n_entities=self.n_entities,
            n_relations=self.n_relations,
            entities=self.labels,
        )
        extra = np.array(self.extra_known, dtype=np.int64).reshape(-1, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kgtrec.errors.FilterWarning)
            how = {"filter_splits": self.filter_splits, "extra_known": extra} | more
            return graph.questions(self.evaluated, self.sides, **how)


def triples_of(n_entities: int, n_relations: int) -> st.SearchStrategy[tuple[int, int, int]]:
    """One triple."""
    entity = st.integers(0, n_entities - 1)
    return st.tuples(entity, st.integers(0, n_relations - 1), entity)


@st.composite
def graph_cases(draw: st.DrawFn, max_entities: int = 12, max_triples: int = 8) -> GraphCase:
    """A small graph with duplicates and overlapping splits, and the settings of its questions."""
    n_entities = draw(st.one_of(st.integers(1, max_entities), st.integers(10, max_entities)))
    n_relations = draw(st.integers(1, 3))
    pool = draw(st.lists(triples_of(n_entities, n_relations), min_size=1, max_size=max_triples))
    some = st.lists(st.sampled_from(pool), max_size=max_triples)  # splits share triples and repeat
    evaluated = draw(st.sampled_from(["test", "test", "valid"]))
    splits = {}
    for name in ("train", "valid", "test"):
        if name == evaluated:
            splits[name] = draw(some.filter(bool))
        elif draw(st.booleans()):
            splits[name] = draw(some)
    filters = [None, (), ("test",), ("train",), ("train", "valid"), tuple(splits)]
    possible = [f for f in filters if f is None or set(f) <= set(splits)]
    label = st.text(LABEL_ALPHABET, min_size=1, max_size=4)
    labels = st.lists(label, min_size=n_entities, max_size=n_entities, unique=True).map(tuple)
    return GraphCase(
        n_entities=n_entities,
        n_relations=n_relations,
        splits=splits,
        labels=draw(st.one_of(st.none(), labels)),
        evaluated=evaluated,
        sides=draw(st.sampled_from(["both", "head", "tail"])),
        filter_splits=draw(st.sampled_from(possible)),
        extra_known=tuple(draw(st.lists(triples_of(n_entities, n_relations), max_size=3))),
    )


def value_pools(dtype: np.dtype) -> list[list[float]]:
    """Sets of values for a score matrix; few values give many ties."""
    info = np.finfo(dtype)
    unit = dtype.type(1)
    above, below = np.nextafter(unit, dtype.type(2)), np.nextafter(unit, dtype.type(0))
    subnormal = float(info.smallest_subnormal)
    # The largest whole numbers that this dtype distinguishes; in a smaller dtype they tie.
    whole = {2: 2**11, 4: 2**24, 8: 2**53}[dtype.itemsize]
    return [
        [0.0],
        [0.0, -0.0],
        [0.0, 1.0, 2.0],
        [-0.0, 0.0, subnormal, -subnormal, float(info.tiny)],
        [1.0, float(above), float(below)],
        [float("inf"), float("-inf"), 0.0],
        [float(info.max), float(info.min), float("inf"), float("-inf"), 1.0],
        [float(whole - 1), float(whole), float(whole - 2)],
    ]


@st.composite
def score_matrices(
    draw: st.DrawFn, shape: tuple[int, int], dtype: np.dtype, nan: bool = False
) -> np.ndarray:
    """A C-contiguous matrix of scores with many ties; with ``nan``, it has some NaN."""
    pool = draw(st.sampled_from(value_pools(dtype)))
    elements = st.sampled_from([*pool, float("nan")] if nan else pool)
    if draw(st.integers(0, 4)) == 0:
        elements = st.floats(width=dtype.itemsize * 8, allow_nan=nan)
    return draw(hnp.arrays(dtype, shape, elements=elements))


LAYOUTS = (
    "contiguous",
    "fortran",
    "row_strided",
    "column_strided",
    "both_strided",
    "rows_reversed",
    "columns_reversed",
    "offset",
    "unaligned",
    "packed",
    "byte_swapped",
    "read_only",
)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in another layout, with NaN between them to reveal wrong reads."""
    n, m = array.shape
    inside = {
        "row_strided": ((2 * n, m), np.s_[::2, :]),
        "column_strided": ((n, 2 * m), np.s_[:, 1::2]),
        "both_strided": ((3 * n, 2 * m), np.s_[1::3, ::2]),
        "rows_reversed": ((n, m), np.s_[::-1, :]),
        "columns_reversed": ((n, m), np.s_[:, ::-1]),
        "offset": ((n, m + 3), np.s_[:, 1 : m + 1]),
    }
    if layout in inside:
        return _inside(array, *inside[layout])
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "byte_swapped":
        return array.astype(array.dtype.newbyteorder())
    if layout == "packed":  # an entity's scores are adjacent; the next entity's are not aligned
        records = np.zeros(m, [("scores", array.dtype, (n,)), ("flag", np.uint8)])
        records["scores"] = array.T
        return records["scores"].T
    copy = np.ascontiguousarray(array)
    if layout == "unaligned":
        copy = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(n, m)
        copy[...] = array
    if layout == "read_only":
        copy = array.copy()
        copy.flags.writeable = False
    return copy


def _inside(array: np.ndarray, shape: tuple[int, int], where: tuple[slice, slice]) -> np.ndarray:
    around = np.full(shape, np.nan, dtype=array.dtype)
    around[where] = array
    return around[where]


@dataclass(frozen=True)
class RankCase:
    """A graph, scores for its questions (or for its triple rows), and the way they are passed."""

    graph: GraphCase
    per_instance: bool
    scores: np.ndarray
    layout: str
    higher_is_better: bool
    nan: str
    depth: int

    def source(self) -> np.ndarray:
        """The scores in the drawn memory layout."""
        return laid_out(self.scores, self.layout)

    def outcome(self) -> oracle.Outcome:
        """The oracle's results; raises oracle.NanScore if NaN is an error."""
        return oracle.score(
            *self.graph.oracle_questions(),
            self.scores.tolist(),
            self.graph.docnos(),
            depth=self.depth,
            per_instance=self.per_instance,
            higher_is_better=self.higher_is_better,
            nan=self.nan,
        )

    def options(self) -> dict[str, object]:
        """The same settings as keyword arguments of kgtrec.rank and kgtrec.Ranker."""
        return {
            "run_depth": self.depth,
            "rows": "instances" if self.per_instance else "questions",
            "higher_is_better": self.higher_is_better,
            "nan": self.nan,
        }


@st.composite
def rank_cases(draw: st.DrawFn, dtypes: tuple[np.dtype, ...] = DTYPES) -> RankCase:
    """All inputs of one call of ``kgtrec.rank`` on an array."""
    graph = draw(graph_cases())
    per_instance = draw(st.booleans())
    questions, instances = graph.oracle_questions()
    dtype = draw(st.sampled_from(dtypes))
    shape = (len(instances if per_instance else questions), graph.n_entities)
    return RankCase(
        graph=graph,
        per_instance=per_instance,
        scores=draw(score_matrices(shape, dtype, nan=draw(st.booleans()))),
        layout=draw(st.sampled_from(LAYOUTS)),
        higher_is_better=draw(st.booleans()),
        nan=draw(st.sampled_from(["error", "worst"])),
        depth=draw(st.sampled_from([0, 1, 2, 5, 12, 100])),
    )
