"""Names of the per-question trec_eval measures, and how deep into a run each of them looks."""

from __future__ import annotations

import re

__all__ = ["TREC_FAMILIES", "canonical_trec", "required_depth", "trec_family"]

LARGEST_CUTOFF = 2**31 - 1

# family -> (cutoff, what it is); a cutoff is "int" (P_10), "real" (Rprec_mult_0.20) or None
TREC_FAMILIES: dict[str, tuple[str | None, str]] = {
    "P": ("int", "precision within the first k candidates"),
    "recall": ("int", "share of the answers within the first k"),
    "success": ("int", "1 if an answer is within the first k"),
    "relative_P": ("int", "precision at k relative to the best possible"),
    "map_cut": ("int", "average precision, ranks beyond k counting 0"),
    "ndcg_cut": ("int", "normalised discounted cumulative gain within the first k"),
    "iprec_at_recall": ("real", "interpolated precision at a recall level"),
    "Rprec_mult": ("real", "precision at a multiple of the number of answers"),
    "map": (None, "average precision"),
    "gm_map": (None, "geometric mean of average precision, floored at 1e-5"),
    "Rprec": (None, "precision at the number of answers"),
    "bpref": (None, "preference of answers over judged negatives"),
    "gm_bpref": (None, "geometric mean of bpref, floored at 1e-5"),
    "recip_rank": (None, "reciprocal rank of the first answer"),
    "infAP": (None, "inferred average precision"),
    "11pt_avg": (None, "interpolated precision averaged over 11 recall levels"),
    "ndcg": (None, "normalised discounted cumulative gain"),
    "ndcg_rel": (None, "nDCG averaged over the places of the answers"),
    "Rndcg": (None, "nDCG at the number of answers"),
    "binG": (None, "binary G"),
    "G": (None, "normalised gain"),
    "utility": (None, "answers retrieved minus other candidates retrieved"),
    "set_P": (None, "precision of the run as a set"),
    "set_recall": (None, "recall of the run as a set"),
    "set_relative_P": (None, "relative precision of the run as a set"),
    "set_map": (None, "set precision times set recall"),
    "set_F": (None, "harmonic mean of set precision and set recall"),
    "num_ret": (None, "candidates in the run; summed over questions"),
    "num_rel": (None, "answers; summed over questions"),
    "num_rel_ret": (None, "answers in the run; summed over questions"),
    "num_nonrel_judged_ret": (None, "judged negatives in the run; summed over questions"),
}

_SHORT = {"map@": "map_cut_", "ndcg@": "ndcg_cut_", "p@": "p_", "recall@": "recall_",
          "success@": "success_"}  # fmt: skip
_BY_LOWER = {family.lower(): family for family in TREC_FAMILIES}


def canonical_trec(name: str) -> str | None:
    """trec_eval's spelling of `name` ("MAP@20" -> "map_cut_20"), None when it is no measure."""
    lower = name.lower()
    for short, long in _SHORT.items():
        if lower.startswith(short):
            lower = long + lower[len(short) :]
    if lower in _BY_LOWER:
        family = _BY_LOWER[lower]
        return family if TREC_FAMILIES[family][0] is None else None
    stem, _, cut = lower.rpartition("_")
    kind = TREC_FAMILIES[_BY_LOWER[stem]][0] if stem in _BY_LOWER else None
    if kind == "int" and re.fullmatch("[0-9]{1,10}", cut) and 0 < int(cut) <= LARGEST_CUTOFF:
        return f"{_BY_LOWER[stem]}_{int(cut)}"
    if kind == "real" and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,2}0*)?", cut):
        return f"{_BY_LOWER[stem]}_{float(cut):.2f}"
    return None


def trec_family(name: str) -> str:
    """Family of a canonical name: "map_cut_20" -> "map_cut"."""
    return name if name in TREC_FAMILIES else name.rpartition("_")[0]


def required_depth(name: str) -> int | None:
    """Candidates a question that the measure can see; None when it sees the whole run."""
    if TREC_FAMILIES[trec_family(name)][0] != "int":
        return None
    return int(name.rpartition("_")[2])
