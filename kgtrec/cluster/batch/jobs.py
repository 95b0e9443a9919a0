"""The jobs of a batch: what each evaluates, and its measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgtrec._internal.locations import is_location
from kgtrec._internal.urls import url_text
from kgtrec.cluster.batch.pair_jobs import PairRequest
from kgtrec.errors import KgtrecError
from kgtrec.questions.requests import AnswerRequest, QuestionRequest
from kgtrec.ranking.settings import Settings
from kgtrec.study.pairs import measures as pair_measures

PAIRS_ONLY = ("auroc", "macro.auroc")
"""Measures of pairs that ranks of entities do not have."""

FILE_KEYS = (
    "entities",
    "heads",
    "tails",
    "relations",
    "type_constraints",
    "questions",
    "qrels",
    "queries",
    "documents",
    "candidates",
    "column_labels",
)
"""Keys of graphs and protocols whose values are paths."""

SETTING_KEYS = {"nan", "atol", "rtol"}
"""Keys of protocols that set how scores are ranked."""

SIDES = ["head", "tail", "both", "relation", "qualifier"]


@dataclass(frozen=True)
class Job:
    """One evaluation: a model on a graph under a protocol.

    - model, graph, protocol: Names, as in the job file.
    - request: The questions to ask.
    - scores: File or folder with the model's scores.
    - settings: The protocol's keys as in the job file, its paths resolved.
    - vectors: If the scores are vectors of a model, the keys that say how they are scored.
    """

    model: str
    graph: str
    protocol: str
    request: QuestionRequest | AnswerRequest | PairRequest
    scores: str
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] | None = None

    @property
    def of_graph(self) -> bool:
        """True if the questions come from a graph."""
        return isinstance(self.request, QuestionRequest)

    @property
    def of_pairs(self) -> bool:
        """True if the questions are relations, and pairs are ranked."""
        return isinstance(self.request, PairRequest)

    @property
    def sides(self) -> str:
        """The sides that are asked, as in keys of measures."""
        return self.settings.get("sides", "both") if self.of_graph else "all"

    def measure_key(self, key: str) -> str | None:
        """Return the key of a measure for this job; None if its side is not asked.

        A key without a side gets the sides that the job asks. Jobs of pairs have no sides.
        """
        if self.of_pairs or key in PAIRS_ONLY:
            return key if self.of_pairs and _is_pair_measure(key) else None
        sided = complete_key(key, self.sides)
        first = sided.partition(".")[0]
        return sided if first == self.sides or (self.sides == "both" and first != "all") else None

    def describe_error(self, error: Exception) -> str:
        """Return an error's message. If it is about a file, the key of the job file precedes it."""
        path, files = getattr(error, "path", None), getattr(self.request, "files", {})
        key = next((f"graphs.{self.graph}.{key}: " for key in files if files[key] == path), "")
        return f"{key}{error}"

    def settings_for(self, run_depth: int) -> Settings:
        """Return the settings to rank its scores, with `run_depth` candidates kept per question."""
        options = {key: value for key, value in self.settings.items() if key in SETTING_KEYS}
        return Settings.convert(
            run_depth=run_depth, higher_is_better=self.higher_is_better, threads=1, **options
        )

    @property
    def name(self) -> str:
        """The text ``MODEL on GRAPH, PROTOCOL``."""
        return f"{self.model} on {self.graph}, {self.protocol}"


@dataclass(frozen=True)
class JobBatch:
    """The content of a job file.

    - path, output: The file, and the folder for the results, which may be at a URL.
    - work: Folder of this machine for files that are needed until all jobs are done.
    - memory: Most that one task may use, such as "2GB".
    - measures: Columns of the summary; a key without a side covers all sides that a protocol
      asks.
    - jobs: Graph by graph, protocol by protocol, in the order of the file.
    """

    path: Path
    output: Path
    work: Path
    memory: str
    measures: tuple[str, ...]
    jobs: tuple[Job, ...]

    @property
    def output_name(self) -> str:
        """The output folder as a path or URL, for messages and files."""
        path = str(self.output)
        return url_text(path) if is_location(path) else path


def complete_key(key: str, side: str = "both") -> str:
    """Return the key of a measure with a side; a key without a side gets `side`."""
    return key if key.partition(".")[0] in ("all", *SIDES) else f"{side}.{key}"


def _is_pair_measure(key: str) -> bool:
    """Return whether a key is a measure of pairs."""
    try:
        return bool(pair_measures.parse_measures(key))
    except KgtrecError:
        return False
