"""Vectors of entities and relations as scores of stored questions.

In: the vectors of a model in the user's files, and a store of questions. Out: `FactorFiles` in a
work folder, with the queries of some rows. Only `kgtrec.integrations` reads files of models, so it
provides the vectors (`ModelVectors`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from kgtrec._internal.locations import is_folder, is_location, names_in
from kgtrec.cluster.content_hash import stamps_of
from kgtrec.cluster.plan import BASE, format_bytes
from kgtrec.cluster.question_store import Store
from kgtrec.cluster.score_files import FactorFiles, Files, describe_scores, save_scores
from kgtrec.errors import InputError, PathName, UsageError
from kgtrec.questions.api import Questions
from kgtrec.scores.factors import EVERY_ROW, Factors

_MEMORY_FACTOR = 3  # memory to read and convert vectors, in sizes of their files
_BESIDE = ("config.json", "checkpoint")  # files that say how vectors beside them are scored


@runtime_checkable
class ModelVectors(Protocol):
    """The vectors of a model in files: `kgtrec.integrations.embeddings.ModelFile`."""

    @property
    def path(self) -> PathName:
        """File or folder of the vectors."""

    @property
    def model_config(self) -> PathName | None:
        """Configuration of the model, if the user named one."""

    @property
    def options(self) -> dict[str, Any]:
        """Other options that say how the vectors are scored, by name."""

    def has_factors(self) -> bool:
        """Return True if `Factors.save` wrote the file, so that it already has queries."""

    def count_entities(self) -> int:
        """Count the entities with vectors."""

    def factors(self, questions: Questions, rows: str, span: slice) -> Factors:
        """Return the model with the queries of a span of rows."""


def describe_vectors(
    source: ModelVectors, store: Store, folder: Path, span: slice = EVERY_ROW
) -> Files:
    """Write queries and entities of a model into a folder, and describe these files.

    - span: Rows to compute queries of.
    """
    if source.has_factors():
        return describe_scores(source.path, folder)
    paths = vector_files(source.path, source.model_config)
    before = stamps_of(paths)
    factors = source.factors(store.questions(), store.rows, span)
    if stamps_of(paths) != before:
        raise InputError(
            f"{source.path}: the vectors changed while they were read; try again when nothing "
            "writes to them"
        )
    saved = save_scores(factors, folder)
    assert isinstance(saved, FactorFiles)
    first, stop, _ = span.indices(store.n_rows)
    return FactorFiles(
        saved.parts,
        location=str(source.path),
        metric=saved.metric,
        facts=saved.facts,
        origin=tuple(map(str, paths)),
        formula=json.dumps(source.options, sort_keys=True),
        span=None if (first, stop) == (0, store.n_rows) else (first, store.n_rows),
    )


def vector_files(path: PathName, model_config: PathName | None = None) -> list[PathName]:
    """Return the files of a model's vectors, and those that say how they are scored."""
    named = [] if model_config is None else [model_config]
    folder = Path(path)
    if is_folder(path):
        names = sorted(names_in(path) or ())
        return [*(folder / name for name in names if not is_folder(folder / name)), *named]
    beside = [] if is_location(path) else [folder.parent / name for name in _BESIDE]
    return [path, *(file for file in beside if file.is_file()), *named]


def reading_bytes(paths: Sequence[PathName]) -> int:
    """Return the memory of a process that reads and converts vectors, in bytes; 0 without files."""
    return BASE + _MEMORY_FACTOR * sum(size for size, *_ in stamps_of(paths)) if paths else 0


def check_memory(source: ModelVectors, memory: int) -> None:
    """Raise UsageError if reading the vectors takes more memory than allowed."""
    if source.has_factors():
        return
    needed = reading_bytes(vector_files(source.path, source.model_config))
    if needed > memory:
        raise UsageError(
            f"the memory limit is too low: reading the vectors of {source.path} takes about "
            f"{format_bytes(needed)}; allow more ({math.ceil(needed / 1e6)}MB)"
        )
