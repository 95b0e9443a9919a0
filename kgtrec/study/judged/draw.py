"""Random samples of questions whose whole pool people judge, with recorded probabilities.

A sample file has the header ``question<TAB>probability`` and a line per drawn question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kgtrec._internal.arguments import check_count, random_generator, require_type
from kgtrec._internal.arrays import Float64, Int64
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import FileError, PathName, UsageError, choose
from kgtrec.graph.statistics.relations import relation_categories
from kgtrec.study.pooling.edited_files import EditedFile, write_lines
from kgtrec.study.pooling.seeds import SeedQuestions
from kgtrec.study.sampling.draw import cap_probabilities

COLUMNS = ("question", "probability")
GROUPS = ("", "category")
_FAR = 5.0
"""Standard deviations by which the sum of 1 / p may differ from the number of questions."""
_RARE = 0.1
"""Least weight of a question, as a share of the mean weight."""
_HINT = "give a file that `kgtrec pool --write-sample` wrote, with all of its lines"


@dataclass(frozen=True, eq=False)
class QuestionSample(ShownInLines):
    """Drawn questions.

    - ids: Names of all questions.
    - drawn, int64 (n,): Numbers of the drawn questions, ascending.
    - probability, float64 (n,): Probability with which each of them was drawn.
    - lines: Line of each drawn question in the file of the sample; empty without a file.
    """

    ids: Sequence[str]
    drawn: Int64
    probability: Float64
    lines: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.drawn)

    def _lines(self) -> tuple[str, str]:
        low, high = self.probability.min(initial=1), self.probability.max(initial=0)
        return (
            f"{len(self):,} of {len(self.ids):,} questions",
            f"drawn with probabilities from {low:.4g} to {high:.4g}",
        )

    def write(self, path: PathName) -> None:
        """Write a sample file."""
        rows = zip(self.drawn.tolist(), self.probability.tolist(), strict=True)
        write_lines(path, [COLUMNS, *((self.ids[i], repr(p)) for i, p in rows)])


def draw_questions(
    seeds: SeedQuestions,
    size: int,
    *,
    by: str = "",
    weights: ArrayLike | None = None,
    seed: int = 0,
) -> QuestionSample:
    """Draw questions of seeds.

    Parameters
    ----------
    seeds : SeedQuestions
    size : int
        Number of questions. If probabilities differ, questions are drawn independently, and this is
        the expected number.
    by : {"", "category"}
        "category" gives each category of relations (train split) the same expected number of
        questions. By default, all questions have the same probability.
    weights : array-like of float (Q,), optional
        Probabilities are proportional to these, but at least a tenth of their mean.
    seed : int

    Raises
    ------
    UsageError
        A size below 1, or above the number of questions; an unknown `by`.
    """
    require_type("seeds", seeds, SeedQuestions, "SeedQuestions (study.seed_questions)")
    total = len(seeds)
    choose("by", by, GROUPS)
    if check_count("size", size) > total:
        raise UsageError(f"{size:,} questions cannot be drawn: the seeds have {total:,}")
    rng = random_generator(seed, 3)
    if not by and weights is None:
        drawn = np.sort(rng.choice(total, size, replace=False))
        return QuestionSample(seeds.ids, drawn, np.full(size, size / total))
    if weights is None:
        code = relation_categories(seeds.graph).code[seeds.questions.relation]
        weights = 1 / np.bincount(code)[code]
    probability = probabilities_of(weights, size)
    drawn = np.flatnonzero(rng.random(total) < probability)
    return QuestionSample(seeds.ids, drawn, probability[drawn])


def probabilities_of(weights: ArrayLike, size: int) -> Float64:
    """Return probabilities proportional to weights, with the sum `size`, float64 (Q,).

    None is above 1, and a weight is at least a tenth of the mean: every question can be drawn.
    """
    shares = np.asarray(weights, np.float64)
    return cap_probabilities(np.maximum(shares, _RARE * shares.mean()), size)


def read_drawn_names(path: PathName) -> frozenset[str]:
    """Read the names of the questions in a sample file; FileError if it is malformed."""
    file = EditedFile(path, _HINT)
    names = frozenset(cells["question"] for _, cells in file.below(COLUMNS))
    file.refuse_faults()
    return names


def read_question_sample(path: PathName, seeds: SeedQuestions) -> QuestionSample:
    """Read a sample file.

    Raises
    ------
    FileError
        Missing, another header, malformed lines, questions that are unknown or in two lines,
        probabilities that are missing, zero or above 1: these lines are listed. Or the
        probabilities do not fit the number of questions.
    """
    file = EditedFile(path, _HINT)
    number = {name: index for index, name in enumerate(seeds.ids)}
    probability_of: dict[int, float] = {}
    line_of: dict[int, int] = {}
    for line, cells in file.below(COLUMNS):
        name = cells["question"]
        if name not in number:
            file.fault(line, f"{name!r} is not a question of the seeds")
        elif file.is_new(line, name, f"question {name!r}", "give each question one line"):
            line_of[number[name]] = line
            probability_of[number[name]] = _parse_probability(file, line, cells["probability"])
    file.refuse_faults()
    if not line_of:
        raise FileError(path, found="no question below the header", hint=_HINT)
    drawn = np.array(sorted(probability_of), np.int64)
    probability = np.array([probability_of[index] for index in drawn.tolist()])
    _check_fit(path, probability, len(seeds))
    return QuestionSample(seeds.ids, drawn, probability, line_of)


def _parse_probability(file: EditedFile, line: int, text: str) -> float:
    """Return a probability above 0, at most 1; note a fault for other texts."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        problem = f"probability {text!r}" if text.strip() else "no probability"
        remedy = "give the one with which the question was drawn, above 0 and at most 1"
        file.fault(line, problem, remedy)
        return math.nan
    return value


def _check_fit(path: PathName, probability: Float64, total: int) -> None:
    """Raise FileError if a sample with these probabilities cannot have these questions."""
    implied = float((1 / probability).sum())
    spread = float(np.sqrt(((1 - probability) / probability**2).sum()))
    if abs(implied - total) > _FAR * spread + 1e-6 * total:
        raise FileError(
            path,
            found=f"by their probabilities, its {len(probability):,} questions stand for about "
            f"{implied:,.0f} (the sum of 1 / probability), but the seeds have {total:,}",
            hint=_HINT,
        )
