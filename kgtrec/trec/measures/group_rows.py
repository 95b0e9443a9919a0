"""Rows of the measures for judgements in groups: preferences, and several assessors."""

from __future__ import annotations

from kgtrec.trec.measures.family import Family

__all__ = ["GROUP_ROWS"]

_DEEP = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_MULTIPLES = tuple(i / 5 for i in range(1, 11))
_NOT_PREFERENCES = "is of preferences or of groups, not of one list of judgements"

_PREFERENCE = (
    " A preference is fulfilled if the preferred document is retrieved, and before the other, "
    "which may be missing."
)
_RETRIEVED = " Only preferences between two retrieved documents count."
_IMPLIED = " Preferences between two documents that were not retrieved do not count."
_BALANCED = (
    " Relevant documents (of a level above 0) beyond the number of non-relevant ones count as if "
    "each were preferred to one more; non-relevant ones beyond the number of relevant ones, lowest "
    "in the list, do not count. 0 if a group has nothing to compare."
)


def _preferences(text: str, name: str, output: str = "double") -> Family:
    return Family(
        text, kind="ignored", output=output, format="prefs", function=f"preferences.{name}",
        bounds=_NOT_PREFERENCES, in_pytrec_eval=False,
    )  # fmt: skip


def _assessors(text: str, name: str, kind: str, defaults: tuple[float, ...]) -> Family:
    return Family(
        text, kind=kind, defaults=defaults, format="qrels_jg", function=f"judge_groups.{name}",
        bounds=_NOT_PREFERENCES, in_pytrec_eval=False,
    )  # fmt: skip


_SIMPLE = "Preferences fulfilled, of all groups together, over all that there are."
_PAIRS = (
    "Mean over the pairs of documents that some group orders of the share of its preferences that "
    "are fulfilled."
)
_GROUPS = "Preferences fulfilled over all that there are, group by group, and averaged over them."

GROUP_ROWS: dict[str, Family] = {
    "prefs_num_prefs_poss": _preferences(
        "Preferences of the judgements; the summary is their sum.", "possible", "count"),
    "prefs_num_prefs_ful": _preferences(
        "Preferences fulfilled; the summary is their sum." + _PREFERENCE, "fulfilled", "count"),
    "prefs_num_prefs_ful_ret": _preferences(
        "Preferences fulfilled between two retrieved documents; the summary is their sum.",
        "fulfilled_retrieved", "count"),
    "prefs_simp": _preferences(_SIMPLE + _PREFERENCE, "simple"),
    "prefs_pair": _preferences(_PAIRS + _PREFERENCE, "pairs"),
    "prefs_avgjg": _preferences(_GROUPS + _PREFERENCE, "groups"),
    "prefs_avgjg_Rnonrel": _preferences(
        "As prefs_avgjg, with as many non-relevant documents as relevant ones." + _BALANCED,
        "balanced"),
    "prefs_simp_ret": _preferences(_SIMPLE + _RETRIEVED, "simple_retrieved"),
    "prefs_pair_ret": _preferences(_PAIRS + _RETRIEVED, "pairs_retrieved"),
    "prefs_avgjg_ret": _preferences(_GROUPS + _RETRIEVED, "groups_retrieved"),
    "prefs_avgjg_Rnonrel_ret": _preferences(
        "As prefs_avgjg_ret, with as many non-relevant documents as relevant ones, of those "
        "retrieved." + _BALANCED, "balanced_retrieved"),
    "prefs_simp_imp": _preferences(_SIMPLE + _IMPLIED, "simple_implied"),
    "prefs_pair_imp": _preferences(_PAIRS + _IMPLIED, "pairs_implied"),
    "prefs_avgjg_imp": _preferences(_GROUPS + _IMPLIED, "groups_implied"),
    "map_avgjg": _assessors(
        "Average precision by the judgements of each group, averaged over the groups.",
        "average_precision", "ignored", ()),
    "P_avgjg": _assessors(
        "Precision among the first k by the judgements of each group, averaged over the groups.",
        "precision", "rank", _DEEP),
    "Rprec_mult_avgjg": _assessors(
        "Precision after so many times as many documents as are relevant in a group (.9 added and "
        "cut off), averaged over the groups.", "r_precision_mult", "signed point", _MULTIPLES),
}  # fmt: skip
