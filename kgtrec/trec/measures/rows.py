"""The measures of trec_eval 10.0 and ours, one row each, in trec_eval's order of output.

All code about measures reads these rows: names and keys (`kgtrec.trec.measures.names`), values,
expectations and notes under ties, bounds, the provider of ir_measures, and all help. Measures of
qrels come first, then measures of judgements in groups: preferences, and several assessors. The
last ones are metrics of graphs, which are means over answers.
"""

from __future__ import annotations

from kgtrec.trec.measures.trec_measure import (
    ALL_JUDGED,
    EITHER,
    FALLING,
    FIXED,
    OF_SCORES,
    OF_SETS,
    PLACES,
    TrecMeasure,
)

_DEEP = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_RECALL_POINTS = tuple(i / 10 for i in range(11))
_MULTIPLES = tuple(i / 5 for i in range(1, 11))


def _gains(name: str, exception: str = "") -> str:
    """Describe the default gains in the help of a measure."""
    return (
        f" A document of relevance r gains r; level=gain pairs change that, as in {name}.1=3,2=9, "
        f"and {name}.exp gives it 2^r - 1. The level of -l has no effect{exception}."
    )


QRELS_ROWS: dict[str, TrecMeasure] = {
    "runid": TrecMeasure(
        "Name of the run: the last column of its last line.",
        output="string", shown="summary", expected=FIXED, sees="nothing",
        format="any",
    ),
    "num_q": TrecMeasure(
        "Number of queries in the averages; with -c, all queries of the qrels.",
        output="count", shown="summary", function="formulas.num_q", aliases=("NumQ",),
        ir_measures="NumQ", expected=FIXED, sees="nothing", format="any",
    ),
    "num_ret": TrecMeasure(
        "Documents retrieved; the summary is their sum. -M and -J lower it.",
        output="count", function="core", aliases=("NumRet",), ir_measures="NumRet",
        expected=OF_SETS, sees="nothing",
        counts_all=True,
    ),
    "num_rel": TrecMeasure(
        "Relevant documents in the qrels, retrieved or not; the summary is their sum (with -c "
        "over all queries, counting relevance from 1 whatever -l says).",
        output="count", function="core", aliases=("NumRel",), ir_measures="NumRel",
        expected=FIXED, sees="nothing",
    ),
    "num_rel_ret": TrecMeasure(
        "Relevant documents retrieved; the summary is their sum.",
        output="count", function="core", aliases=("NumRelRet",),
        ir_measures="NumRet(rel)", expected=OF_SETS,
    ),
    "map": TrecMeasure(
        "Average precision: precision at the rank of every relevant document retrieved, summed, "
        "over the number of relevant documents.",
        function="core", aliases=("AP", "MAP"), ir_measures="AP",
        expected="expectations.average_precision", bounds=FALLING,
    ),
    "gm_map": TrecMeasure(
        "Geometric mean of average precision over the queries; values below 0.00001 count as "
        "0.00001.",
        shown="summary", function="core", bounds=FALLING,
    ),
    "Rprec": TrecMeasure(
        "Precision at rank R, the number of relevant documents.",
        function="core", aliases=("RPrec",), ir_measures="Rprec",
        expected="expectations.r_precision", bounds=EITHER,
    ),
    "bpref": TrecMeasure(
        "Share of the first R judged non-relevant documents that come after a relevant one, "
        "averaged over the relevant documents. R is their number. Documents without a judgement "
        "are ignored.",
        function="core", aliases=("Bpref",), ir_measures="Bpref",
        expected="expectations.bpref", bounds=EITHER, judged_from=0,
    ),
    "recip_rank": TrecMeasure(
        "1 over the rank of the first relevant document; 0 without one.",
        function="core", aliases=("RR", "MRR"), ir_measures="RR",
        expected="expectations.reciprocal_rank", bounds=PLACES,
    ),
    "recip_rank_cut": TrecMeasure(
        "1 over the rank of the first relevant document if that is within the first k, else 0. "
        "Written RR@10 or recip_rank_cut.10; trec_eval has no such measure.",
        kind="rank", defaults=(10,), ours=True, function="core",
        at=("rr", "mrr"), ir_measures="RR(cutoff)",
        expected="expectations.reciprocal_rank", bounds=PLACES,
    ),
    "iprec_at_recall": TrecMeasure(
        "Interpolated precision: the best precision at any rank whose recall is at least the "
        "recall point. This point times the number of relevant documents is rounded (trec_eval 9: "
        "plus .9, rounded down).",
        kind="point", defaults=_RECALL_POINTS, function="core",
        at=("iprec",), ir_measures="IPrec(recall)", bounds=FALLING,
    ),
    "P": TrecMeasure(
        "Precision: relevant documents among the first k, over k, even if fewer were retrieved.",
        kind="rank", defaults=_DEEP, function="core", at=("p", "precision"),
        ir_measures="P(cutoff)", expected="expectations.precision", bounds=PLACES,
    ),
    "judged": TrecMeasure(
        "Documents among the first k that are in the qrels, with any relevance, over k or the "
        "number retrieved if that is less. Written Judged@10, as in ir_measures, or judged.10; "
        "trec_eval has no such measure.",
        kind="rank", defaults=(10,), ours=True, function="core", at=("judged",),
        ir_measures="Judged(cutoff)", expected="expectations.judged",
        bounds="it says how much is judged, not how good a list is",
        direction=None, counts_all=True, judged_from=ALL_JUDGED,
    ),
    "relstring": TrecMeasure(
        "Relevances of the first documents, one character each: 0 to 9, > for more, - "
        "without a judgement, . with a judgement below 0. The parameter is its length.",
        kind="number", defaults=(10,), output="string", shown="query",
        function="formulas.relevance_string", sees="cutoff",
    ),
    "recall": TrecMeasure(
        "Relevant documents among the first k, over all relevant ones.",
        kind="rank", defaults=_DEEP, function="core", at=("r", "recall"),
        ir_measures="R(cutoff)", expected="expectations.recall", bounds=FALLING,
    ),
    "infAP": TrecMeasure(
        "Inferred average precision, for pools of which a sample was judged: precision before a "
        "relevant document is estimated from the judged ones. Relevance below 0 means in the pool "
        "but not judged; documents outside the qrels were not in the pool. (Yilmaz and Aslam, "
        "CIKM 2006)",
        function="core", aliases=("InfAP",), ir_measures="infAP",
        expected="expectations.inferred_ap",
        bounds="it estimates from a sample of judgements, so more judgements do not bound it",
        judged_from=ALL_JUDGED,
    ),
    "gm_bpref": TrecMeasure(
        "Geometric mean of bpref over the queries; values below 0.00001 count as 0.00001.",
        shown="summary", function="core", bounds=EITHER, judged_from=0,
    ),
    "Rprec_mult": TrecMeasure(
        "Precision at rank multiple * R, R relevant documents (plus .9, rounded down).",
        kind="point", defaults=_MULTIPLES, function="core",
        expected="expectations.r_precision_multiple", bounds=EITHER,
    ),
    "utility": TrecMeasure(
        "a times the relevant documents retrieved, plus b times the others retrieved, plus c "
        "times the relevant ones missed, plus d times the others not retrieved (-N gives the "
        "collection size). Parameters: a,b,c,d.",
        kind="numbers", defaults=(1, -1, 0, 0), function="formulas.utility", expected=OF_SETS,
        bounds="its parameters may reward what is not relevant",
        counts_all=True,
    ),
    "11pt_avg": TrecMeasure(
        "Mean of iprec_at_recall over the recall points 0, .1, ... 1, or over the given ones.",
        kind="numbers", defaults=_RECALL_POINTS, function="formulas.eleven_points", bounds=FALLING,
    ),
    "binG": TrecMeasure(
        "Mean over the relevant documents of 1 / log2(2 + non-relevant documents before it); 0 "
        "for those not retrieved.",
        function="core", bounds=FALLING,
    ),
    "G": TrecMeasure(
        "Gain of each document over log2(2 + gain of the ideal list down to its rank, at least 1 "
        "per rank, - gain of the list itself), summed, over the gain of all documents."
        + _gains("G"),
        kind="gains", function="formulas.gain_over_cost", bounds=FALLING, graded=True,
    ),
    "dcg": TrecMeasure(
        "Discounted cumulative gain: gain / log2(rank + 1), summed."
        + _gains("dcg"),
        kind="gains", new=True, function="formulas.dcg", expected="expectations.dcg", bounds=PLACES,
        graded=True,
    ),
    "ideal_dcg": TrecMeasure(
        "Discounted cumulative gain of the best possible order of all judged documents."
        + _gains("ideal_dcg"),
        kind="gains", new=True, function="formulas.ideal_dcg", expected=FIXED,
        bounds="it does not depend on the list", graded=True, sees="nothing",
        direction=None,
    ),
    "ndcg": TrecMeasure(
        "dcg over ideal_dcg. (Jarvelin and Kekalainen, TOIS 2002)"
        + _gains("ndcg"),
        kind="gains", function="formulas.ndcg", aliases=("nDCG", "NDCG"), ir_measures="nDCG",
        expected="expectations.ndcg", bounds=FALLING, graded=True,
    ),
    "ndcg_rel": TrecMeasure(
        "nDCG at the rank of each document with a gain, averaged over them; those not retrieved "
        "count with the nDCG of the whole list."
        + _gains("ndcg_rel"),
        kind="gains", function="formulas.ndcg_at_relevant", bounds=EITHER, graded=True,
    ),
    "Rndcg": TrecMeasure(
        "nDCG averaged over the end of the list and the ranks where the gain of the ideal list "
        "falls."
        + _gains("Rndcg", ", except that a query without a document of that level has 0"),
        kind="gains", function="formulas.ndcg_at_levels", bounds=EITHER, graded=True,
        counts_all=True,
    ),
    "ndcg_cut": TrecMeasure(
        "DCG of the first k documents over that of the best possible first k. A document of "
        "relevance r gains r; level=gain pairs behind the cutoff change that, as in "
        "ndcg_cut.10.1=3,2=9, and ndcg_cut.10.exp gives it 2^r - 1.",
        kind="rank", defaults=_DEEP, function="formulas.ndcg_cut", at=("ndcg",),
        ir_measures="nDCG(cutoff)", expected="expectations.ndcg", bounds=FALLING, graded=True,
    ),
    "map_cut": TrecMeasure(
        "Average precision where documents after rank k count as not retrieved; also written "
        "AP@k.",
        kind="rank", defaults=_DEEP, function="core", at=("ap", "map"),
        ir_measures="AP(cutoff)", expected="expectations.average_precision", bounds=FALLING,
    ),
    "relative_map": TrecMeasure(
        "Average precision of the first k over its greatest possible value: the precisions at the "
        "ranks of the relevant documents among the first k, summed, over k or the number of "
        "relevant documents, whichever is less. It is the MAP@k of recommender systems; trec_eval "
        "has no such measure.",
        kind="rank", defaults=(10,), ours=True, function="core",
        at=("relative_ap", "relative_map"), expected="expectations.relative_average_precision",
        bounds=FALLING,
    ),
    "map_hits": TrecMeasure(
        "The same sum of precisions, over the number of relevant documents among the first k: 1 "
        "for a list whose only relevant document is the first. A further one below it lowers the "
        "value. trec_eval has no such measure.",
        kind="rank", defaults=(10,), ours=True, function="over_hits.precision_over_hits",
        at=("ap_hits", "map_hits"), expected="over_hits.expected_over_hits",
        ends="over_hits.ends_over_hits",
        bounds="one more relevant document among the first k can lower it",
    ),
    "F1": TrecMeasure(
        "2 P R / (P + R) with P the precision and R the recall of the first k documents. Written "
        "F1@10 or F1.10; trec_eval has no such measure.",
        kind="rank", defaults=(10,), ours=True, function="core", at=("f1",),
        expected="expectations.f_measure", bounds=FALLING,
    ),
    "lrap": TrecMeasure(
        "Label ranking average precision: average precision in which tied documents share the last "
        "rank of their tie, so that no order of them changes it. A relevant document that was not "
        "retrieved counts 0. trec_eval has no such measure.",
        ours=True, function="over_hits.label_ranking_precision", aliases=("LRAP",),
        expected=OF_SCORES, sees="ties",
        bounds="documents of the same score share a rank, so one more relevant one can lower it",
    ),
    "relative_P": TrecMeasure(
        "Relevant documents among the first k, over their greatest possible number: k or the "
        "number of relevant documents, whichever is less.",
        kind="rank", defaults=_DEEP, function="core",
        expected="expectations.relative_precision", bounds=FALLING,
    ),
    "success": TrecMeasure(
        "1 if a relevant document is among the first k, else 0; also written Success@k or Hits@k.",
        kind="rank", defaults=(1, 5, 10), function="core", at=("success", "hits", "hit"),
        ir_measures="Success(cutoff)", expected="expectations.success", bounds=PLACES,
    ),
    "set_P": TrecMeasure(
        "Relevant documents retrieved, over all documents retrieved.",
        function="core", aliases=("SetP",), ir_measures="SetP", expected=OF_SETS, bounds=PLACES,
        counts_all=True,
    ),
    "set_relative_P": TrecMeasure(
        "Relevant documents retrieved, over their greatest possible number: the number retrieved "
        "or the number of relevant documents, whichever is less.",
        function="core", aliases=("SetRelP",), ir_measures="SetP(relative)",
        expected=OF_SETS, bounds=FALLING, counts_all=True,
    ),
    "set_recall": TrecMeasure(
        "Relevant documents retrieved, over all relevant documents.",
        function="core", aliases=("SetR",), ir_measures="SetR", expected=OF_SETS,
        bounds=FALLING,
    ),
    "set_map": TrecMeasure(
        "set_P times set_recall.",
        function="core", aliases=("SetAP",), ir_measures="SetAP", expected=OF_SETS,
        bounds=FALLING, counts_all=True,
    ),
    "set_F": TrecMeasure(
        "(x + 1) P R / (x P + R) with P = set_P and R = set_recall; x is the parameter. A larger "
        "x favours recall.",
        kind="number", defaults=(1,), function="core", aliases=("SetF",),
        ir_measures="SetF(beta)", expected=OF_SETS, bounds=FALLING, counts_all=True,
    ),
    "num_nonrel_judged_ret": TrecMeasure(
        "Documents retrieved that were judged and are not relevant; the summary is their sum.",
        output="count", function="core", expected=OF_SETS, judged_from=0,
    ),
    "yaap": TrecMeasure(
        "log((1 + s) / (1 + R - s)), where R is the number of relevant documents and s is average "
        "precision times R. (Robertson, ECIR 2012)",
        function="core", bounds=FALLING,
    ),
    "rbp": TrecMeasure(
        "Rank-biased precision: (1 - p) times the sum of gain p^(rank - 1). Gains beyond 0 to 1 "
        "are scaled to that range per query. Parameters: p=0.8, level=gain pairs (default: p=.9). "
        "(Moffat and Zobel, TOIS 2008) The level of -l has no effect.",
        kind="p,gains", new=True, function="formulas.rank_biased", aliases=("RBP:p=0.8",),
        ir_measures="RBP(p)", bounds=PLACES, graded=True,
    ),
    "rbp_resid": TrecMeasure(
        "How much rank-biased precision would rise if all retrieved documents without a "
        "judgement, and all after the list, had the highest gain; 0 if all retrieved ones are "
        "judged. Parameter: p=0.8; p is .9 by default.",
        kind="p", new=True, function="formulas.residual",
        bounds="it is the width of rbp's own interval", direction=False,
        counts_all=True, judged_from=0,
    ),
    "unj": TrecMeasure(
        "Documents without a judgement of 0 or more among the first k, over k.",
        kind="rank", defaults=(5, 10, 20), new=True, function="core", at=("unj",),
        expected="expectations.unjudged",
        bounds="it says how much is judged, not how good a list is",
        direction=None, counts_all=True, judged_from=0,
    ),
}  # fmt: skip


_NOT_PREFERENCES = "it needs preferences or groups, not one list of judgements"

_PREFERENCE = (
    " A preference is fulfilled if the preferred document is retrieved, and the other is below it "
    "or missing."
)
_RETRIEVED = " Only preferences between two retrieved documents count."
_IMPLIED = " Preferences between two documents that were not retrieved do not count."
_BALANCED = (
    " If there are more relevant documents (level above 0) than others, each surplus one counts "
    "as preferred to one more document. Surplus non-relevant documents, the lowest in the list, do "
    "not count. 0 if a group has nothing to compare."
)


def _preferences(text: str, output: str = "double") -> TrecMeasure:
    """Make a row of preferences."""
    return TrecMeasure(
        text,
        kind="ignored",
        output=output,
        format="prefs",
        function="preferences.value",
        bounds=_NOT_PREFERENCES,
    )


def _assessors(text: str, kind: str, defaults: tuple[float, ...]) -> TrecMeasure:
    """Make a row that averages over groups of judgements."""
    return TrecMeasure(
        text,
        kind=kind,
        defaults=defaults,
        format="qrels_jg",
        function="judgement_groups.value",
        bounds=_NOT_PREFERENCES,
    )


_SIMPLE = "Fulfilled preferences of all groups together, over all preferences."
_PAIRS = (
    "Share of fulfilled preferences of each pair of documents that some group orders, averaged "
    "over these pairs."
)
_GROUPS = "Fulfilled preferences of each group over all its preferences, averaged over the groups."

GROUP_ROWS: dict[str, TrecMeasure] = {
    "prefs_num_prefs_poss": _preferences(
        "Preferences of the judgements; the summary is their sum.", "count"
    ),
    "prefs_num_prefs_ful": _preferences(
        "Preferences fulfilled; the summary is their sum." + _PREFERENCE, "count"
    ),
    "prefs_num_prefs_ful_ret": _preferences(
        "Preferences fulfilled between two retrieved documents; the summary is their sum.", "count"
    ),
    "prefs_simp": _preferences(_SIMPLE + _PREFERENCE),
    "prefs_pair": _preferences(_PAIRS + _PREFERENCE),
    "prefs_avgjg": _preferences(_GROUPS + _PREFERENCE),
    "prefs_avgjg_Rnonrel": _preferences(
        "As prefs_avgjg, with as many non-relevant documents as relevant ones." + _BALANCED
    ),
    "prefs_simp_ret": _preferences(_SIMPLE + _RETRIEVED),
    "prefs_pair_ret": _preferences(_PAIRS + _RETRIEVED),
    "prefs_avgjg_ret": _preferences(_GROUPS + _RETRIEVED),
    "prefs_avgjg_Rnonrel_ret": _preferences(
        "As prefs_avgjg_ret, with as many non-relevant documents as relevant ones, of those "
        "retrieved." + _BALANCED
    ),
    "prefs_simp_imp": _preferences(_SIMPLE + _IMPLIED),
    "prefs_pair_imp": _preferences(_PAIRS + _IMPLIED),
    "prefs_avgjg_imp": _preferences(_GROUPS + _IMPLIED),
    "map_avgjg": _assessors(
        "Average precision by the judgements of each group, averaged over the groups.",
        "ignored",
        (),
    ),
    "P_avgjg": _assessors(
        "Precision among the first k by the judgements of each group, averaged over the groups.",
        "rank",
        _DEEP,
    ),
    "Rprec_mult_avgjg": _assessors(
        "Precision at rank multiple * R, R relevant documents in a group (plus .9, rounded down), "
        "averaged over the groups.",
        "signed point",
        _MULTIPLES,
    ),
}


_LISTED = (
    " An answer is a relevant document. Its rank does not count other answers of its query, and "
    "counts documents that tie with it half. As listed: all other documents of the run count, even "
    "answers in other splits, unless the run itself was filtered. Printed as NAME_low and "
    "NAME_high: the rank of an answer that is not in the run lies between the run's end and the "
    "number of candidates. That is the number of entities (--n-entities) without other answers."
)
_OF_ANSWERS = "it is a mean over answers, and has a low and a high end itself"


def _answers(
    text: str,
    function: str,
    of_answers: str = "mean",
    *,
    higher: bool = True,
    defaults: tuple[float, ...] = (),
    at: tuple[str, ...] = (),
) -> TrecMeasure:
    """Make a row of a measure of answers."""
    needs = " Needs --n-entities." if function == "mr" else ""
    return TrecMeasure(
        text + _LISTED + needs,
        kind="rank" if defaults else "",
        defaults=defaults,
        ours=True,
        function=function,
        at=at,
        bounds=_OF_ANSWERS,
        direction=higher,
        of_answers=of_answers,
    )


ANSWER_ROWS: dict[str, TrecMeasure] = {
    "kg_mr": _answers("Mean rank of the answers, as listed.", "mr", higher=False),
    "kg_mrr": _answers("Mean of 1 / rank over the answers, as listed.", "mrr"),
    "kg_hits": _answers(
        "Share of the answers with a rank up to k, as listed. Example: kg_hits.1,3,10.",
        "hits",
        defaults=(1, 3, 10),
        at=("kg_hits",),
    ),
    "kg_amr": _answers(
        "Mean rank, as listed, over the mean rank of a random order, which is the mean of "
        "(candidates + 1) / 2. 1 is random, lower is better. (Berrendorf et al. 2020)",
        "mr",
        "ratio",
        higher=False,
    ),
    "kg_amri": _answers(
        "1 - (mean rank, as listed, - 1) / (mean rank at random - 1): 1 is perfect, 0 is random.",
        "mr",
        "index",
    ),
}

TABLE: dict[str, TrecMeasure] = {**QRELS_ROWS, **GROUP_ROWS, **ANSWER_ROWS}

FORMATS = {
    "qrels": "qrels",
    "beir": "qrels",
    "json": "qrels",
    "prefs": "prefs",
    "qrels_prefs": "prefs",
    "qrels_jg": "qrels_jg",
}
"""Names of the formats of judgements (-R), and the format whose measures each uses."""

OFFICIAL = {"qrels": "official", "prefs": "all_prefs", "qrels_jg": "qrels_jg"}
"""The nickname of the default measures, for each value of `FORMATS`."""

_OF_PREFERENCES = tuple(name for name, row in TABLE.items() if row.format in ("any", "prefs"))

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": (
        "runid",
        "num_q",
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "map",
        "gm_map",
        "Rprec",
        "bpref",
        "recip_rank",
        "iprec_at_recall",
        "P",
    ),
    "set": (
        "runid",
        "num_q",
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "utility",
        "set_P",
        "set_relative_P",
        "set_recall",
        "set_map",
        "set_F",
    ),
    "all_trec": tuple(
        name
        for name, row in QRELS_ROWS.items()
        if not row.ours and name not in ("dcg", "ideal_dcg", "yaap")
    ),
    "prefs": _OF_PREFERENCES[:8],
    "all_prefs": _OF_PREFERENCES,
    "qrels_jg": tuple(name for name, row in TABLE.items() if row.format in ("any", "qrels_jg")),
}


def nickname(name: str, compat: int = 10) -> tuple[str, ...] | None:
    """Return the measures behind a nickname in that version of trec_eval, in table order; None for
    others."""
    if name not in NICKNAMES:
        return None
    return tuple(n for n in NICKNAMES[name] if compat >= 10 or not TABLE[n].new)
