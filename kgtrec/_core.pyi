from collections.abc import Callable
from mmap import mmap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Anything with a contiguous buffer of bytes; typing has no name for it before Python 3.12.
Buffer = bytes | bytearray | memoryview | mmap | NDArray[np.uint8]

_Row = TypeVar("_Row", bound=dict[str, Any])

DTYPES: dict[str, int]
METRICS: dict[str, int]

class Order:
    position: NDArray[np.int32]
    entity_at: NDArray[np.int32]
    def __init__(self, position: NDArray[np.int32], entity_at: NDArray[np.int32]) -> None: ...

class Lists:
    def __init__(
        self,
        n_entities: int,
        known_offsets: NDArray[np.int64],
        known: NDArray[np.int32],
        removed_offsets: NDArray[np.int64],
        removed: NDArray[np.int32],
        order: Order | None,
        list_offsets: NDArray[np.int64] | None,
        lists: NDArray[np.int32] | None,
        columns: NDArray[np.int32] | None,
    ) -> None: ...

class Task:
    any_nan: bool
    n_rows: int
    n_targets: int
    def __init__(
        self,
        lists: Lists,
        row_question: NDArray[np.int64],
        target_offsets: NDArray[np.int64],
        targets: NDArray[np.int32],
        row_list: NDArray[np.int64] | None,
        counts: NDArray[np.int64],
        best_slot: NDArray[np.int64],
        best_ids: NDArray[np.int32],
        best_scores: NDArray[Any],
        best_length: NDArray[np.int32],
        nan_count: NDArray[np.int64],
        nan_entity: NDArray[np.int32],
    ) -> None: ...

def rank_rows(
    task: Task,
    scores: NDArray[Any],
    dtype: str,
    first_row: int,
    *,
    negate: bool = False,
    first_entity: int = 0,
    target_scores: NDArray[np.float64] | None = None,
) -> None: ...
def target_scores(
    task: Task,
    scores: NDArray[Any],
    dtype: str,
    first_row: int,
    out: NDArray[np.float64],
    *,
    negate: bool = False,
    first_entity: int = 0,
) -> None: ...

class Codes:
    n_parts: int
    def __init__(
        self,
        queries: NDArray[Any],
        entities: NDArray[Any],
        bias: NDArray[Any] | None,
        metric: str,
        *,
        first_entity: int,
        call_rows: int,
        depth: int,
        most_bytes: int,
    ) -> None: ...
    def encode(self, first: int, end: int) -> None: ...

def rank_factors(
    task: Task,
    queries: NDArray[Any],
    entities: NDArray[Any],
    bias: NDArray[Any] | None,
    metric: str,
    first_row: int,
    *,
    first_entity: int = 0,
    ids: NDArray[np.int32] | None = None,
    target_scores: NDArray[np.float64] | None = None,
    codes: Codes | None = None,
) -> tuple[int, int, int, int]: ...
def factor_target_scores(
    task: Task,
    queries: NDArray[Any],
    entities: NDArray[Any],
    bias: NDArray[Any] | None,
    metric: str,
    first_row: int,
    out: NDArray[np.float64],
    *,
    first_entity: int = 0,
) -> None: ...
def query_dim(metric: str, dim: int) -> int: ...
def factor_scores(
    queries: NDArray[Any],
    entities: NDArray[Any],
    bias: NDArray[Any] | None,
    metric: str,
    out: NDArray[Any],
) -> None: ...
def count_rows(
    scores: NDArray[Any],
    dtype: str,
    thresholds: NDArray[np.float64],
    counts: NDArray[np.int64],
    bound: float,
    cells: NDArray[np.int64],
    cell_scores: NDArray[np.float64],
    *,
    negate: bool = False,
) -> tuple[int, bool]: ...
def count_factors(
    queries: NDArray[Any],
    entities: NDArray[Any],
    bias: NDArray[Any] | None,
    metric: str,
    thresholds: NDArray[np.float64],
    counts: NDArray[np.int64],
    bound: float,
    cells: NDArray[np.int64],
    cell_scores: NDArray[np.float64],
    *,
    ids: NDArray[np.int32] | None = None,
) -> tuple[int, bool]: ...
def expected_reciprocal(
    greater: NDArray[np.int64],
    size: NDArray[np.int64],
    answers: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None: ...
def expected_hits(
    greater: NDArray[np.int64],
    size: NDArray[np.int64],
    answers: NDArray[np.int64],
    k: int,
    out: NDArray[np.float64],
) -> None: ...
def expected_log(
    greater: NDArray[np.int64],
    size: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None: ...
def stratify(
    relations: NDArray[np.int64],
    triples: NDArray[np.int64],
    row: NDArray[np.int64],
    popularity_of: NDArray[np.int32],
    popularity: NDArray[np.float64],
    relation_popularity: NDArray[np.float64],
    values: NDArray[np.float64],
    beta_e: NDArray[np.float64],
    beta_r: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def sign_sums(
    values: NDArray[np.float64], seed: int, first: int, out: NDArray[np.float64]
) -> None: ...

Fault = tuple[int, str, int]
FAULTS: dict[int, str]

class TrecText:
    def __init__(
        self, data: Buffer, is_run: bool, short: bool = False, comments: bool = True
    ) -> None: ...
    def groups(
        self,
        at: int,
        stop: int,
        line: int,
        query: int,
        begin: NDArray[np.int64],
        lines: NDArray[np.int64],
    ) -> tuple[int, int, int, int, Fault | None, int]: ...
    def queries(
        self,
        begin: NDArray[np.int64],
        query_of: NDArray[np.int64],
        name_begin: NDArray[np.int64],
        name_size: NDArray[np.int64],
    ) -> int: ...

class TrecLines:
    n_queries: int
    def __init__(
        self,
        text: TrecText,
        first: NDArray[np.int64],
        group: NDArray[np.int64],
        begin: NDArray[np.int64],
        line: NDArray[np.int64],
    ) -> None: ...
    def documents(
        self,
        first: int,
        stop: int,
        begin: NDArray[np.int64],
        size: NDArray[np.int32],
        values: NDArray[Any],
        count: NDArray[np.int64],
    ) -> Fault | None: ...

class TrecDocuments:
    n_queries: int
    def __init__(
        self,
        text: Buffer,
        offsets: NDArray[np.int64],
        begin: NDArray[np.int64],
        size: NDArray[np.int32],
        values: NDArray[Any],
        is_run: bool,
        ranks: NDArray[np.int64] | None = None,
    ) -> None: ...
    def parts(self) -> tuple[bytes, bytes, bytes, bytes, bytes]: ...
    def name(self, at: int) -> bytes: ...

class WrongValue(ValueError): ...

def documents_of(
    mappings: list[Any], is_run: bool, name_bytes: Callable[[Any], bytes]
) -> TrecDocuments: ...

TREC_MEASURES: dict[str, int]

class TrecColumns:
    n: int
    def __init__(self, measures: list[tuple[str, float]], compat: int) -> None: ...
    def values(self, documents: tuple[Any, ...], out: NDArray[np.float64]) -> None: ...
    def ties(
        self,
        documents: tuple[Any, ...],
        scores: NDArray[np.float64],
        forms: bool,
    ) -> tuple[bytes, list[float], list[bytes]]: ...
    def placed_ties(
        self, documents: tuple[Any, ...], first: NDArray[np.int64], size: NDArray[np.int64]
    ) -> tuple[bytes, list[float], list[bytes]]: ...

def measure_rows(
    kind: type[_Row],
    queries: list[str],
    names: list[str],
    values: bytes,
    like: dict[str, _Row] | None = None,
    differs: bytes | None = None,
) -> dict[str, _Row]: ...

class TrecQueries:
    def __init__(self, documents: TrecDocuments, ranked: NDArray[np.int64]) -> None: ...
    def of_run(
        self,
        run: TrecDocuments,
        queries: list[int],
        columns: TrecColumns,
        single: bool,
        level: int,
        unjudged: int,
        ties: int,
    ) -> tuple[bytes, Fault | None, tuple[Any, ...], tuple[Any, ...]]: ...

class TrecNumbers:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        numbers: NDArray[np.int64],
        relevance: NDArray[np.int64],
        ranked: NDArray[np.int64],
    ) -> None: ...
    def of_scores(
        self,
        scores: NDArray[Any],
        names: NDArray[np.int64] | None,
        decimal: bool,
        queries: list[int],
        columns: TrecColumns,
        level: int,
        unjudged: int,
        ties: bool,
        parts: bool,
    ) -> tuple[bytes, int, tuple[Any, ...], tuple[bytes, ...]]: ...

class TrecListing:
    def __init__(
        self,
        run: TrecLines | TrecDocuments,
        judged: TrecDocuments,
        judged_query: NDArray[np.int64],
        depth: int,
        keep_ties: bool,
        judged_only: bool,
        single: bool,
        unjudged: int,
    ) -> None: ...
    def lists(
        self,
        first: int,
        stop: int,
        relevance: NDArray[np.int64],
        scores: NDArray[np.float64],
        length: NDArray[np.int64],
        retrieved: NDArray[np.int64],
    ) -> tuple[Fault | None, tuple[Any, ...]]: ...

RISES: int

ListedRun = tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, bytes]

class TrecQrels:
    def __init__(self, path: bytes, size: int, unjudged: int) -> None: ...
    def __bool__(self) -> bool: ...
    def has(self, documents: TrecDocuments) -> bool: ...
    def lists(
        self,
        path: bytes,
        size: int,
        depth: int,
        keep_ties: bool,
        judged_only: bool,
        single: bool,
    ) -> ListedRun | None: ...

def trec_score(text: Buffer) -> float | None: ...

class RunLines:
    def __init__(
        self,
        queries: tuple[Buffer, NDArray[np.int64]],
        documents: tuple[Buffer, NDArray[np.int64]],
        offsets: NDArray[np.int64],
        tag: bytes,
    ) -> None: ...
    def text(
        self, first: int, documents: NDArray[np.int64], scores: NDArray[Any]
    ) -> memoryview: ...

def copy_names(
    text: Buffer, begin: NDArray[np.int64], size: NDArray[np.int32], out: NDArray[np.uint8]
) -> None: ...

LABEL_PAD: int

class TripleLines:
    capacity: int
    n: int
    n_tabs: int
    n_labels: int
    def __init__(self, capacity: int, n_tabs: int = 2) -> None: ...
    def read(self, text: Buffer, size: int, at: int, blank: bool) -> tuple[int, bool, bool]: ...

class LabelTable:
    n: int
    n_bytes: int
    def number(self, lines: TripleLines, column: int, rows: NDArray[np.int32]) -> None: ...
    def close(
        self, offsets: NDArray[np.int64], text: NDArray[np.uint8], position: NDArray[np.int32]
    ) -> None: ...

def renumber_triples(
    rows: NDArray[np.int32], entities: NDArray[np.int32], relations: NDArray[np.int32]
) -> None: ...
def map_guard_begin() -> None: ...
def map_guard_end() -> None: ...
def map_faults() -> int: ...
def available_paths() -> list[str]: ...
def best_path() -> str: ...
def active_path() -> str: ...
def force_path(name: str | None) -> None: ...
