"""The measures of trec_eval 10.0, one row each, in the order in which it prints them.

Everything that knows measures reads these rows: names and keys (`kgtrec.trec.measures.names`),
values, expectations and notes under ties, bounds, the provider of ir_measures, and all help.
"""

from __future__ import annotations

from kgtrec.trec.measures.family import Family
from kgtrec.trec.measures.group_rows import GROUP_ROWS
from kgtrec.trec.measures.qrels_rows import QRELS_ROWS

__all__ = ["FORMATS", "NICKNAMES", "OFFICIAL", "TABLE", "Family", "nickname"]

TABLE: dict[str, Family] = {**QRELS_ROWS, **GROUP_ROWS}

FORMATS = {"qrels": "qrels", "prefs": "prefs", "qrels_prefs": "prefs", "qrels_jg": "qrels_jg"}
"""Names of the formats of judgements (-R), and whose measures each has."""

OFFICIAL = {
    "qrels": "official", "prefs": "all_prefs", "qrels_prefs": "all_prefs", "qrels_jg": "qrels_jg",
}  # fmt: skip
"""The nickname of what is printed for each format where no measure is named."""

_OF_PREFERENCES = tuple(name for name, row in TABLE.items() if row.format in ("any", "prefs"))

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec",
                 "bpref", "recip_rank", "iprec_at_recall", "P"),
    "set": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P",
            "set_relative_P", "set_recall", "set_map", "set_F"),
    "all_trec": tuple(name for name, row in QRELS_ROWS.items()
                      if not row.ours and name not in ("dcg", "ideal_dcg", "yaap")),
    "prefs": _OF_PREFERENCES[:8],
    "all_prefs": _OF_PREFERENCES,
    "qrels_jg": tuple(name for name, row in TABLE.items() if row.format in ("any", "qrels_jg")),
}  # fmt: skip


def nickname(name: str, compat: int = 10) -> tuple[str, ...] | None:
    """Families behind a nickname in that version of trec_eval, in table order; None for others."""
    if name not in NICKNAMES:
        return None
    return tuple(n for n in NICKNAMES[name] if compat >= 10 or not TABLE[n].new)
