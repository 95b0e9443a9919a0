"""Random predicted lists and their ranks, in plain Python over labels."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

Triple = tuple[str, str, str]
Question = tuple[int, str, str]  # 0: the head is asked; given entity; relation


@dataclass
class ListCase:
    """A graph of labels, and for some questions a list of labels or of (label, score)."""

    splits: dict[str, list[Triple]]
    lists: dict[Question, list[tuple[str, float | None]]] = field(default_factory=dict)
    scored: bool = False

    @property
    def entities(self) -> list[str]:
        """Labels in byte order."""
        rows = [row for split in self.splits.values() for row in split]
        return sorted({label for head, _, tail in rows for label in (head, tail)})


def random_case(seed: int, scored: bool) -> ListCase:
    """Few entities, many ties, repeats, unknown labels, missing and empty lists."""
    rng = random.Random(seed)
    names = [f"e{number}" for number in range(rng.randint(3, 6))]
    splits: dict[str, list[Triple]] = {}
    for split in ("train", "valid", "test"):
        rows = {
            (rng.choice(names), rng.choice("rs"), rng.choice(names))
            for _ in range(rng.randint(2, 6))
        }
        splits[split] = sorted(rows)
    case = ListCase(splits, scored=scored)
    for side, entity, relation in sorted(questions_of(case)):
        if rng.random() < 0.15:
            continue
        labels = rng.choices([*case.entities, "nobody", "nothing"], k=rng.randint(0, 6))
        scores = [float(rng.randint(0, 3)) if scored else None for _ in labels]
        case.lists[side, entity, relation] = list(zip(labels, scores, strict=True))
    return case


def questions_of(case: ListCase) -> set[Question]:
    """The questions of the test split."""
    heads = {(0, tail, relation) for _, relation, tail in case.splits["test"]}
    return heads | {(1, head, relation) for head, relation, _ in case.splits["test"]}


def answers_in(rows: list[Triple], question: Question) -> set[str]:
    """Entities that answer a question in some triples."""
    side, entity, relation = question
    if side == 0:
        return {h for h, r, t in rows if (r, t) == (relation, entity)}
    return {t for h, r, t in rows if (h, r) == (entity, relation)}


def expected(
    case: ListCase,
    question: Question,
    answer: str,
    filtered: set[str],
    unlinkable: str,
    by_place: bool = False,
) -> tuple[float, float, float, bool]:
    """Best, realistic and worst rank of an answer among unfiltered candidates; is it beyond?"""
    candidates = len([e for e in case.entities if e not in filtered or e == answer])
    ordered = list(enumerate(case.lists.get(question, [])))
    if case.scored and not by_place:
        ordered.sort(key=lambda item: -item[1][1])
    seen: set[str] = set()
    left: list[tuple[str, float | None]] = []
    for _, (label, score) in ordered:
        drop = unlinkable == "drop" and label not in case.entities
        if label in seen or drop or (label in filtered and label != answer):
            continue
        seen.add(label)
        left.append((label, score))
    own = next((score for label, score in left if label == answer), "beyond")
    if own == "beyond":
        return min(len(left) + 1, candidates), -1, candidates, True
    if case.scored and not by_place:
        above = sum(score > own for _, score in left)
        tied = sum(score == own for _, score in left) - 1
    else:
        above, tied = [label for label, _ in left].index(answer), 0
    best = min(above + 1, candidates)
    worst = min(best + tied, candidates)
    return best, (best + worst) / 2, worst, False
