"""Questions with answers, known answers and terms in plain Python, and their measures by loops.

It imports nothing from kgtrec.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up", "2in", "3in", "inp", "pin",
              "pni")  # fmt: skip


@dataclass
class Asked:
    """Random questions by name: hard answers, easy ones, and a structure each."""

    n: int
    hard: dict[str, list[int]] = field(default_factory=dict)
    easy: dict[str, list[int]] = field(default_factory=dict)
    structure: dict[str, str] = field(default_factory=dict)
    candidates: dict[str, list[int]] = field(default_factory=dict)


def random_questions(seed: int, n: int = 40, each: int = 4, listed: bool = False) -> Asked:
    rng = np.random.default_rng(seed)
    asked = Asked(n)
    for structure in STRUCTURES:
        for number in range(int(rng.integers(1, each + 1))):
            name = f"{structure}-{number}"
            size, hard = int(rng.integers(2, 12)), int(rng.integers(1, 6))
            chosen = rng.choice(n, size + hard, replace=False).tolist()
            asked.hard[name], asked.easy[name] = chosen[:hard], chosen[hard:]
            asked.structure[name] = structure
            if listed:
                others = rng.choice(n, 15, replace=False).tolist()
                asked.candidates[name] = sorted({*chosen[:hard], *others})
    return asked


def ranks_of(asked: Asked, scores: np.ndarray) -> dict[tuple[str, int], float]:
    """The realistic rank of each hard answer among entities that are neither answers nor known."""
    ranks = {}
    for row, name in enumerate(asked.hard):
        away = {*asked.hard[name], *asked.easy[name]}
        among = asked.candidates.get(name, range(asked.n))
        for answer in asked.hard[name]:
            greater = equal = 0
            for other in among:
                if other in away:
                    continue
                greater += bool(scores[row, other] > scores[row, answer])
                equal += bool(scores[row, other] == scores[row, answer])
            ranks[name, answer] = 1 + greater + equal / 2
    return ranks


def by_structure(
    asked: Asked, ranks: dict[tuple[str, int], float], value: object
) -> dict[str, float]:
    """BetaE's averages: over the answers of a question, then over the questions of a structure."""
    of_question = defaultdict(list)
    for (name, _), rank in ranks.items():
        of_question[name].append(value(rank))  # type: ignore[operator]
    of_structure = defaultdict(list)
    for name, values in of_question.items():
        of_structure[asked.structure[name]].append(sum(values) / len(values))
    return {name: sum(values) / len(values) for name, values in of_structure.items()}
