"""Names of micro metrics to columns: how they are asked for, printed and explained."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgtrec.errors import UsageError
from kgtrec.trec.measures.names import BadCutoff

__all__ = [
    "LOWER_IS_BETTER",
    "MICRO",
    "NEEDS_ENTITIES",
    "MicroColumn",
    "micro_columns",
    "micro_help",
]

MICRO = {
    "kg_mr": "Mean rank of the answers, as listed.",
    "kg_mrr": "Mean of 1 / rank over the answers, as listed.",
    "kg_hits": "Share of the answers with a rank up to k, as listed; as in kg_hits.1,3,10.",
    "kg_amr": "Mean rank, as listed, over that of a random order, the mean of (candidates + 1) / "
    "2: 1 is random, lower is better. (Berrendorf et al. 2020)",
    "kg_amri": "1 - (mean rank, as listed, - 1) / (that of a random order - 1): 1 is perfect, 0 "
    "random.",
}
_COMMON = (
    "An answer is a relevant document; other answers of its query do not count in its rank, and "
    "documents that tie with it count half. As listed: whatever else the run holds counts, also "
    "what other splits know, unless the run was filtered when it was made. Printed as NAME_low and "
    "NAME_high, for an answer that the run does not hold has a rank between the run's end and the "
    "number of candidates, which is that of the entities (--entities) without the other answers."
)
_CUTOFFS = (1, 3, 10)
_ENDS = ("low", "high")
NEEDS_ENTITIES = frozenset({"kg_mr", "kg_amr", "kg_amri"})
LOWER_IS_BETTER = frozenset({"kg_mr", "kg_amr"})


@dataclass(frozen=True)
class MicroColumn:
    """One line of output a query: a metric, its cutoff, and which end of its interval."""

    family: str
    cutoff: int | None
    end: str

    is_count = False
    is_text = False
    is_summary_only = False
    is_query_only = False
    is_geometric = False

    @property
    def name(self) -> str:
        """``kg_mrr_low``, ``kg_hits_10_high``."""
        cutoff = "" if self.cutoff is None else f"_{self.cutoff}"
        return f"{self.family}{cutoff}_{self.end}"

    @property
    def is_at_worst_ranks(self) -> bool:
        """Whether this end is that of the worst ranks that the answers may have."""
        return (self.end == "high") == (self.family in LOWER_IS_BETTER)


def micro_columns(measures: Iterable[str]) -> tuple[list[MicroColumn], list[str]]:
    """Columns of the ``kg_`` names among measures, and the other names as they are.

    Parameters
    ----------
    measures : iterable of str
        ``kg_mrr``; several with commas, ``kg_mr,kg_mrr,kg_hits.1,3,10,kg_amr``; cutoffs also as
        ``kg_hits_10`` and ``kg_hits@10``, by default 1, 3 and 10. Cutoffs of several names add up.

    Raises
    ------
    UsageError
        Naming what is unknown; `BadCutoff` where only parameters are wrong.
    """
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
            if name != "kg_hits":
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
        cutoffs = sorted(cutoffs_of[name] or _CUTOFFS) if name == "kg_hits" else [None]
        columns.extend(MicroColumn(name, cutoff, end) for cutoff in cutoffs for end in _ENDS)
    return columns, others


def _why_unknown(word: str, measure: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, MICRO, n=1)
    where = "" if word == measure else f" in {measure!r}"
    hint = f"did you mean {near[0]!r}?" if near else f"those of answers are {', '.join(MICRO)}"
    if word and not word.startswith("kg_"):
        hint = f"{hint}; give other measures an -m of their own"
    return f"unknown measure {word!r}{where}: {hint}"


def micro_help(columns: Iterable[MicroColumn]) -> str:
    """What ``-h -m NAME`` prints: each metric once."""
    import textwrap

    paragraphs = []
    for family in dict.fromkeys(column.family for column in columns):
        text = f"{MICRO[family]} {_COMMON}"
        if family in NEEDS_ENTITIES:
            text += " Needs --entities."
        wrapped = textwrap.wrap(text, 76, initial_indent="    ", subsequent_indent="    ")
        paragraphs.append("\n".join([family, *wrapped]) + "\n")
        if family == "kg_hits":
            paragraphs.append("    Default: -m kg_hits.1,3,10\n")
    return "".join(paragraphs)
