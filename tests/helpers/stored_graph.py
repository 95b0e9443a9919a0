"""A small graph and its scores in files, for tests of object stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

Floats = npt.NDArray[np.float32]


def call(*args: str) -> str:
    """The output of a command; raises its errors."""
    result = CliRunner().invoke(cli, list(args), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def write_graph_and_scores(
    home: Path, n_train: int, n_test: int, n_entities: int, prefix: str = ""
) -> tuple[kgtrec.Questions, Floats]:
    """Write `g/`, its scores as `s.npy` and as 11 files of `shards/`; entities are prefix and
    number. Scores are few integers, so that many are tied."""
    rng = np.random.default_rng(5)
    (home / "g").mkdir()
    for split, size in (("train", n_train), ("test", n_test)):
        lines = {f"{prefix}{rng.integers(n_entities)}\tr{rng.integers(2)}"
                 f"\t{prefix}{rng.integers(n_entities)}\n" for _ in range(size)}  # fmt: skip
        (home / "g" / f"{split}.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    questions = kgtrec.read_graph(home / "g", progress=False).questions()
    scores = rng.integers(0, 5, (len(questions), questions.n_entities)).astype(np.float32)
    np.save(home / "s.npy", scores)
    (home / "shards").mkdir()
    for number, rows in enumerate(np.array_split(scores, 11)):
        np.save(home / "shards" / f"{number}.npy", rows)
    return questions, scores
