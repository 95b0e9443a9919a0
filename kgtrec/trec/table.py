"""The measures that ``kgtrec eval`` prints: their order, default cutoffs, nicknames and names.

What a family means and whether it takes a cutoff stands in `kgtrec.measures.trec_names`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from kgtrec.errors import UsageError
from kgtrec.measures.trec_names import TREC_FAMILIES

__all__ = ["GRADED", "NICKNAMES", "TABLE", "BadCutoff", "Column", "resolve"]

_DEEP = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_RECALL_POINTS = tuple(i / 10 for i in range(11))

# Family -> default cutoffs, in the order in which trec_eval prints.
TABLE: dict[str, tuple[float, ...]] = {
    "runid": (), "num_q": (), "num_ret": (), "num_rel": (), "num_rel_ret": (),
    "map": (), "gm_map": (), "Rprec": (), "bpref": (), "recip_rank": (),
    "iprec_at_recall": _RECALL_POINTS, "P": _DEEP, "recall": _DEEP, "infAP": (),
    "gm_bpref": (), "Rprec_mult": tuple(i / 5 for i in range(1, 11)), "utility": (),
    "11pt_avg": (), "binG": (), "G": (), "ndcg": (), "ndcg_rel": (), "Rndcg": (),
    "ndcg_cut": _DEEP, "map_cut": _DEEP, "relative_P": _DEEP, "success": (1, 5, 10),
    "set_P": (), "set_relative_P": (), "set_recall": (), "set_map": (), "set_F": (),
    "num_nonrel_judged_ret": (),
}  # fmt: skip

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec",
                 "bpref", "recip_rank", "iprec_at_recall", "P"),
    "set": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P",
            "set_relative_P", "set_recall", "set_map", "set_F"),
    "all_trec": tuple(TABLE),
}  # fmt: skip

_SUMMARY_ONLY = frozenset({"runid", "num_q", "gm_map", "gm_bpref"})
# Relevance counts here by its size, and the cost of most grows with the square of the largest.
GRADED = frozenset({"G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut"})

# Measures of trec_eval that exist but cannot be had from pytrec_eval.
_ELSEWHERE = {
    "relstring": "a string of relevances, which pytrec_eval does not give",
    "rbp": "new in trec_eval 10, which pytrec_eval does not follow",
    "rbp_resid": "new in trec_eval 10, which pytrec_eval does not follow",
    "unj": "new in trec_eval 10, which pytrec_eval does not follow",
    "dcg": "new in trec_eval 10, which pytrec_eval does not follow",
    "ideal_dcg": "new in trec_eval 10, which pytrec_eval does not follow",
    "yaap": "not among the measures of pytrec_eval",
    "prefs": "made for preference judgements, not for qrels",
    "all_prefs": "made for preference judgements, not for qrels",
    "qrels_jg": "made for qrels of several judges",
    "map_avgjg": "made for qrels of several judges",
    "P_avgjg": "made for qrels of several judges",
    "Rprec_mult_avgjg": "made for qrels of several judges",
}
_LARGEST_CUTOFF = 2**31 - 1


class BadCutoff(UsageError):
    """A measure that exists, with a cutoff that it cannot have (trec_eval's exit code: 2)."""

    exit_code = 2


@dataclass(frozen=True)
class Column:
    """One line of output a query: a family and, where it takes one, its cutoff.

    Attributes
    ----------
    family : str
        A key of `TABLE`.
    cutoff : float or None
        Rank, recall point or multiple; None for families without one.
    """

    family: str
    cutoff: float | None = None

    @property
    def name(self) -> str:
        """As trec_eval prints it: ``map``, ``P_10``, ``iprec_at_recall_0.10``."""
        return self.family if self.cutoff is None else f"{self.family}_{self.parameter}"

    @property
    def parameter(self) -> str:
        """The cutoff as text: ``10``, ``0.10``; empty without one."""
        if self.cutoff is None:
            return ""
        return str(int(self.cutoff)) if self._is_rank else f"{self.cutoff:.2f}"

    @property
    def _is_rank(self) -> bool:
        return self.cutoff is not None and TREC_FAMILIES[self.family][0] == "int"

    @property
    def is_count(self) -> bool:
        """True for the num_* families: printed as integers, summed over queries."""
        return self.family.startswith("num_")

    @property
    def is_summary_only(self) -> bool:
        """True for what trec_eval prints for all queries together, never for one."""
        return self.family in _SUMMARY_ONLY

    @property
    def sees(self) -> int | None:
        """Number of documents a query that matter; None when all do."""
        if self.family in ("num_q", "num_rel", "runid"):
            return 1
        return int(self.cutoff or 0) if self._is_rank else None


def resolve(measures: Iterable[str]) -> list[Column]:
    """Columns for measure names, in table order, without repeats.

    Parameters
    ----------
    measures : iterable of str
        ``map``, ``map_cut_20``, ``map_cut.20``, ``P.5,10``, or a nickname: ``official``, ``set``,
        ``all_trec``. A family that is named without cutoffs has its defaults; cutoffs that are
        named replace the defaults and add up over the names.

    Returns
    -------
    list of Column

    Raises
    ------
    UsageError
        Naming every measure that is unknown or that pytrec_eval cannot supply. If all are known
        and only their cutoffs are wrong, the error is a `BadCutoff`.
    """
    measures = [measures] if isinstance(measures, str) else list(measures)
    if not measures:
        raise UsageError("no measure was asked for; name some, such as map_cut_20, or 'official'")
    asked: dict[str, set[float]] = {}
    unknown: list[str] = []
    wrong: list[str] = []
    for name in measures:
        if name in NICKNAMES:
            for family in NICKNAMES[name]:
                asked.setdefault(family, set())
            continue
        family, dot, text = _split(name)
        if family not in TABLE:
            unknown.append(_why_unknown(name, family))
            continue
        cutoffs, problem = _cutoffs(family, text) if dot else (set(), None)
        if problem:
            wrong.append(f"{name!r}: {problem}")
        asked.setdefault(family, set()).update(cutoffs)
    if unknown:
        raise UsageError("; ".join([*unknown, *wrong]))
    if wrong:
        raise BadCutoff("; ".join(wrong))
    return [
        Column(family, cutoff)
        for family, defaults in TABLE.items()
        if family in asked
        for cutoff in (*sorted(asked[family] or defaults),) or (None,)
    ]


def _split(name: str) -> tuple[str, str, str]:
    """Family, separator and parameters; the separator is empty for a bare family."""
    if name in TABLE or name in _ELSEWHERE:
        return name, "", ""
    # The longest first, so that Rprec_mult is not read as Rprec with the parameter "mult".
    for family in sorted([*TABLE, *_ELSEWHERE], key=len, reverse=True):
        rest = name[len(family) :]
        if name.startswith(family) and (rest[0] == "." or (rest[0] == "_" and rest[1:2].isdigit())):
            return family, rest[0], rest[1:]
    return name, "", ""


def _cutoffs(family: str, text: str) -> tuple[set[float], str | None]:
    kind = TREC_FAMILIES[family][0] if family in TREC_FAMILIES else None
    if kind is None:
        return set(), f"{family} with parameters is not supplied here; leave them out"
    parts = text.split(",")
    if kind == "int":
        if not all(p.isascii() and p.isdigit() and 0 < int(p) <= _LARGEST_CUTOFF for p in parts):
            return set(), "cutoffs must be whole numbers from 1, as in P.5,10"
        return {int(p) for p in parts}, None
    if not all(p.isascii() and p.replace(".", "", 1).isdigit() for p in parts):
        return set(), f"cutoffs must be decimal numbers, as in {family}.0.2,0.5"
    values = {float(p) for p in parts}
    if any(abs(v * 100 - round(v * 100)) > 1e-9 for v in values):
        return set(), "cutoffs may have two decimals, which is what the output shows"
    if family == "iprec_at_recall" and max(values) > 1:
        return set(), "recall points lie between 0 and 1"
    return values, None


def _why_unknown(name: str, family: str) -> str:
    if family in _ELSEWHERE or name.startswith("prefs_"):
        reason = _ELSEWHERE.get(family, _ELSEWHERE["prefs"])
        return f"measure {name!r} is not supplied: it is {reason}"
    near = difflib.get_close_matches(name, [*TABLE, *NICKNAMES], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "the known ones are in `kgtrec eval --help`"
    return f"unknown measure {name!r}: {hint}"
