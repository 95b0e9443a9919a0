"""The measures of trec_eval 10.0 for qrels, one row each, in the order in which it prints them.

A row carries its parameters, their defaults, where it is printed and its own help text, which
``kgtrec eval -h -m NAME`` shows. Names are parsed in `kgtrec.trec.measures.names`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ELSEWHERE", "FAMILIES", "NICKNAMES", "Family", "nickname"]

_DEEP = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_RECALL_POINTS = tuple(i / 10 for i in range(11))
_MULTIPLES = tuple(i / 5 for i in range(1, 11))


@dataclass(frozen=True)
class Family:
    """A measure and what its parameters are.

    Attributes
    ----------
    text : str
        What it measures, in one or more sentences.
    kind : str
        Of its parameters: "" none; "rank" whole numbers and "point" decimals, a column each;
        "number" decimals, a column each, in the name as typed; "numbers" decimals that make one
        column; "gains" pairs level=gain; "p" persistence p=; "p,gains" both.
    defaults : tuple of float
        Parameters where none are given.
    output : str
        "double", "count" (a whole number) or "string".
    shown : str
        "both", "query" or "summary": where it is printed.
    new : bool
        True for what trec_eval 9 does not know.
    ours : bool
        True for what trec_eval does not know at all.
    """

    text: str
    kind: str = ""
    defaults: tuple[float, ...] = ()
    output: str = "double"
    shown: str = "both"
    new: bool = False
    ours: bool = False


_GAINS = (
    " A document of relevance r gains r; level=gain pairs change that, as in {0}.1=3,2=9. The "
    "level of -l plays no part{1}."
)

FAMILIES: dict[str, Family] = {
    "runid": Family("Name of the run: the last column of its last line.",
                    output="string", shown="summary"),
    "num_q": Family("Number of queries that the averages are over; with -c, all of the qrels.",
                    output="count", shown="summary"),
    "num_ret": Family("Documents retrieved; the summary is their sum. -M and -J lower it.",
                      output="count"),
    "num_rel": Family("Relevant documents in the qrels, retrieved or not; the summary is their "
                      "sum (with -c over all queries, counting relevance from 1 whatever -l says).",
                      output="count"),
    "num_rel_ret": Family("Relevant documents retrieved; the summary is their sum.",
                          output="count"),
    "map": Family("Average precision: precision at the rank of every relevant document retrieved, "
                  "summed, over the number of relevant documents."),
    "gm_map": Family("Geometric mean of average precision over the queries, values below 0.00001 "
                     "counting as that.", shown="summary"),
    "Rprec": Family("Precision after as many documents as are relevant."),
    "bpref": Family("Share of the judged non-relevant documents that stand behind a relevant one, "
                    "of the first R of them (R relevant documents), averaged over the relevant "
                    "documents. Documents without a judgement play no part."),
    "recip_rank": Family("1 over the rank of the first relevant document; 0 without one."),
    "recip_rank_cut": Family("1 over the rank of the first relevant document if that is within "
                             "the first k, else 0. Written RR@10 or recip_rank_cut.10; trec_eval "
                             "has no such measure.", "rank", (10,), ours=True),
    "iprec_at_recall": Family("Interpolated precision: the best precision at any rank where recall "
                              "is at least so much. The recall point times the number of relevant "
                              "documents is rounded (trec_eval 9: .9 added and cut off).",
                              "point", _RECALL_POINTS),
    "P": Family("Precision: relevant documents among the first k, over k, even if fewer were "
                "retrieved.", "rank", _DEEP),
    "judged": Family("Documents among the first k that the qrels hold, with whatever relevance, "
                     "over k or the number retrieved if that is less. Written Judged@10, as in "
                     "ir_measures, or judged.10; trec_eval has no such measure.",
                     "rank", (10,), ours=True),
    "relstring": Family("Relevances of the first documents as a string, a character each: 0 to 9, "
                        "> for more, - without a judgement, . with a judgement below 0. The "
                        "parameter is its length.", "number", (10,), "string", "query"),
    "recall": Family("Relevant documents among the first k, over all relevant ones.",
                     "rank", _DEEP),
    "infAP": Family("Inferred average precision, for pools of which a sample was judged: precision "
                    "before a relevant document is estimated from the judged ones. Relevance "
                    "below 0 means in the pool but not judged; a document that the qrels lack was "
                    "not in the pool. (Yilmaz and Aslam, CIKM 2006)"),
    "gm_bpref": Family("Geometric mean of bpref over the queries, values below 0.00001 counting "
                       "as that.", shown="summary"),
    "Rprec_mult": Family("Precision after so many times as many documents as are relevant (.9 "
                         "added and cut off).", "point", _MULTIPLES),
    "utility": Family("a times the relevant documents retrieved, plus b times the others "
                      "retrieved, plus c times the relevant ones missed, plus d times the others "
                      "not retrieved (-N gives the collection size). Parameters: a,b,c,d.",
                      "numbers", (1, -1, 0, 0)),
    "11pt_avg": Family("Mean of iprec_at_recall over the recall points 0, .1, ... 1, or over those "
                       "given.", "numbers", _RECALL_POINTS),
    "binG": Family("Mean over the relevant documents of 1 / log2(2 + non-relevant documents before "
                   "it); 0 for those not retrieved."),
    "G": Family("Gain of each document over log2(2 + what the ideal list has gained down to its "
                "rank, at least 1 a rank, minus what the list itself has), summed, over the gain "
                "of all documents." + _GAINS.format("G", ""), "gains"),
    "dcg": Family("Discounted cumulative gain: gain / log2(rank + 1), summed."
                  + _GAINS.format("dcg", ""), "gains", new=True),
    "ideal_dcg": Family("Discounted cumulative gain of the best possible order of all judged "
                        "documents." + _GAINS.format("ideal_dcg", ""), "gains", new=True),
    "ndcg": Family("dcg over ideal_dcg. (Jarvelin and Kekalainen, TOIS 2002)"
                   + _GAINS.format("ndcg", ""), "gains"),
    "ndcg_rel": Family("nDCG at the rank of each document with a gain, averaged over them; those "
                       "not retrieved count with the nDCG of the whole list."
                       + _GAINS.format("ndcg_rel", ""), "gains"),
    "Rndcg": Family("nDCG averaged over the ranks where the ideal list passes to a lower gain, and "
                    "the end of the list." + _GAINS.format("Rndcg", ", except that a query "
                    "without a document of that level has 0"), "gains"),
    "ndcg_cut": Family("nDCG of the first k documents, against the best possible first k. The "
                       "gain of a document is its relevance.", "rank", _DEEP),
    "map_cut": Family("Average precision where documents behind rank k count as not retrieved; "
                      "also written AP@k.", "rank", _DEEP),
    "relative_P": Family("Relevant documents among the first k, over the most that is possible: k "
                         "or the number of relevant documents.", "rank", _DEEP),
    "success": Family("1 if a relevant document is among the first k, else 0; also written "
                      "Success@k or Hits@k.", "rank", (1, 5, 10)),
    "set_P": Family("Relevant documents retrieved, over all documents retrieved."),
    "set_relative_P": Family("Relevant documents retrieved, over the most that is possible: the "
                             "number retrieved or the number of relevant documents."),
    "set_recall": Family("Relevant documents retrieved, over all relevant documents."),
    "set_map": Family("set_P times set_recall."),
    "set_F": Family("(x + 1) P R / (x P + R) of set_P and set_recall; x is the parameter, larger "
                    "ones favour recall.", "number", (1,)),
    "num_nonrel_judged_ret": Family("Documents retrieved that were judged and are not relevant; "
                                    "the summary is their sum.", output="count"),
    "yaap": Family("log((1 + s) / (1 + R - s)), s being average precision before the division by "
                   "the number R of relevant documents. (Robertson, ECIR 2012)"),
    "rbp": Family("Rank-biased precision: (1 - p) times the sum of gain p^(rank - 1). Gains beyond "
                  "0 to 1 are scaled to that range, query by query. Parameters: p=0.8, level=gain "
                  "pairs; p is .9. (Moffat and Zobel, TOIS 2008) The level of -l plays no part.",
                  "p,gains", new=True),
    "rbp_resid": Family("By how much rank-biased precision could rise if all retrieved documents "
                        "without a judgement, and all beyond the list, had the highest gain; 0 if "
                        "all retrieved were judged. Parameter: p=0.8; p is .9.", "p", new=True),
    "unj": Family("Documents without a judgement from 0 up among the first k, over k.",
                  "rank", (5, 10, 20), new=True),
}  # fmt: skip

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec",
                 "bpref", "recip_rank", "iprec_at_recall", "P"),
    "set": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P",
            "set_relative_P", "set_recall", "set_map", "set_F"),
    "all_trec": tuple(name for name, family in FAMILIES.items()
                      if not family.ours and name not in ("dcg", "ideal_dcg", "yaap")),
}  # fmt: skip

_PREFERENCES = "made for preference judgements (-R prefs), which kgtrec does not read"
_JUDGES = "made for the judgements of several assessors (-R qrels_jg), which kgtrec does not read"

# Names of trec_eval that exist but belong to other formats than qrels.
ELSEWHERE = {
    "prefs": _PREFERENCES, "all_prefs": _PREFERENCES, "qrels_jg": _JUDGES, "map_avgjg": _JUDGES,
    "P_avgjg": _JUDGES, "Rprec_mult_avgjg": _JUDGES,
    **dict.fromkeys(
        ["prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"]
        + [f"prefs_{name}{end}" for name in ("simp", "pair", "avgjg")
           for end in ("", "_ret", "_imp")]
        + ["prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"], _PREFERENCES),
}  # fmt: skip


def nickname(name: str, compat: int = 10) -> tuple[str, ...] | None:
    """Families behind a nickname in that version of trec_eval, in table order; None for others."""
    if name not in NICKNAMES:
        return None
    return tuple(n for n in NICKNAMES[name] if compat >= 10 or not FAMILIES[n].new)
