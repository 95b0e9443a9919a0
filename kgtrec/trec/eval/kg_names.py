"""Parse, print and explain the names of micro metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kgtrec.errors import UsageError, suggestion
from kgtrec.trec.measures.names import BadCutoff, wrapped


class MicroMetric(NamedTuple):
    """A metric of answers, as `kgtrec eval` has it.

    - value: The function of `kgtrec.measures.rank_metrics` that gives it for each answer.
    - over_chance: Whether it is divided by its value for a random order.
    - is_index: Whether it is 1 minus that quotient, with ranks from 0.
    - needs_entities: Whether the last rank of missing answers needs the number of entities.
    - cutoffs: Default cutoffs; empty for metrics without cutoffs.
    """

    help: str
    value: str = "mean_rank"
    higher_is_better: bool = False
    over_chance: bool = False
    is_index: bool = False
    needs_entities: bool = True
    cutoffs: tuple[int, ...] = ()


MICRO = {
    "kg_mr": MicroMetric("Mean rank of the answers, as listed."),
    "kg_mrr": MicroMetric(
        "Mean of 1 / rank over the answers, as listed.",
        "reciprocal_rank", higher_is_better=True, needs_entities=False,
    ),
    "kg_hits": MicroMetric(
        "Share of the answers with a rank up to k, as listed. Example: kg_hits.1,3,10.",
        "hits", higher_is_better=True, needs_entities=False, cutoffs=(1, 3, 10),
    ),
    "kg_amr": MicroMetric(
        "Mean rank, as listed, over the mean rank of a random order, which is the mean of "
        "(candidates + 1) / 2. 1 is random, lower is better. (Berrendorf et al. 2020)",
        over_chance=True,
    ),
    "kg_amri": MicroMetric(
        "1 - (mean rank, as listed, - 1) / (mean rank at random - 1): 1 is perfect, 0 is random.",
        higher_is_better=True, over_chance=True, is_index=True,
    ),
}  # fmt: skip
_COMMON = (
    "An answer is a relevant document. Its rank does not count other answers of its query, and "
    "counts documents that tie with it half. As listed: all other documents of the run count, even "
    "answers in other splits, unless the run itself was filtered. Printed as NAME_low and "
    "NAME_high: the rank of an answer that is not in the run lies between the run's end and the "
    "number of candidates. That is the number of entities (--n-entities) without other answers."
)
_ENDS = ("low", "high")


def row_of(column: str) -> MicroMetric:
    """The metric that a column is named after: ``kg_hits_10_high``."""
    return next(row for family, row in MICRO.items() if column.startswith(f"{family}_"))


@dataclass(frozen=True)
class MicroColumn:
    """One line of output per query: a metric, its cutoff, and the end of its interval."""

    family: str
    cutoff: int | None
    end: str

    is_count = False
    is_text = False
    is_summary_only = False
    is_query_only = False
    is_geometric = False

    @property
    def row(self) -> MicroMetric:
        """The metric's row in the table."""
        return MICRO[self.family]

    @property
    def name(self) -> str:
        """``kg_mrr_low``, ``kg_hits_10_high``."""
        cutoff = "" if self.cutoff is None else f"_{self.cutoff}"
        return f"{self.family}{cutoff}_{self.end}"

    @property
    def is_at_worst_ranks(self) -> bool:
        """Whether this end assumes the worst ranks that the answers may have."""
        return (self.end == "low") == self.row.higher_is_better


def micro_columns(measures: Iterable[str]) -> tuple[list[MicroColumn], list[str]]:
    """Columns of the ``kg_`` names among measures, and the other names unchanged."""
    cutoffs_of: dict[str, set[int]] = {}
    others, unknown, wrong = [], [], []
    for measure in measures:
        if not measure.startswith("kg_"):
            others.append(measure)
            continue
        family = ""
        for word in measure.split(","):
            name, _, cutoff = re.sub(r"^(kg_hits)[_@]", r"\1.", word).partition(".")
            if word.isascii() and word.isdigit() and family:
                name, cutoff = family, word
            if name not in MICRO:
                unknown.append(_why_unknown(word, measure))
                continue
            family = name
            cutoffs_of.setdefault(name, set())
            if word == name:
                continue
            if not MICRO[name].cutoffs:
                wrong.append(f"{measure!r}: {name} takes no parameters; leave them out")
            elif not re.fullmatch("0*[1-9][0-9]{0,8}", cutoff, re.ASCII):
                wrong.append(f"{word!r}: cutoffs must be whole numbers from 1, as in kg_hits.1,10")
            else:
                cutoffs_of[name].add(int(cutoff))
    if unknown:
        raise UsageError("; ".join([*unknown, *wrong]))
    if wrong:
        raise BadCutoff("; ".join(wrong))
    columns: list[MicroColumn] = []
    for name in filter(cutoffs_of.__contains__, MICRO):
        cutoffs: list[Any] = sorted(cutoffs_of[name] or MICRO[name].cutoffs) or [None]
        columns.extend(MicroColumn(name, cutoff, end) for cutoff in cutoffs for end in _ENDS)
    return columns, others


def _why_unknown(word: str, measure: str) -> str:
    where = "" if word == measure else f" in {measure!r}"
    hint = suggestion(word, MICRO, f"the kg_ measures are {', '.join(MICRO)}")
    if word and not word.startswith("kg_"):
        hint = f"{hint}; give measures that are not kg_ in a separate -m"
    return f"unknown measure {word!r}{where}: {hint}"


def micro_help(columns: Iterable[MicroColumn]) -> str:
    """What ``-h -m NAME`` prints: each metric once."""
    paragraphs = []
    for family in dict.fromkeys(column.family for column in columns):
        row = MICRO[family]
        text = f"{row.help} {_COMMON}"
        if row.needs_entities:
            text += " Needs --n-entities."
        paragraphs.append("\n".join([family, *wrapped(text)]) + "\n")
        if row.cutoffs:
            paragraphs.append(f"    Default: -m {family}.{','.join(map(str, row.cutoffs))}\n")
    return "".join(paragraphs)
