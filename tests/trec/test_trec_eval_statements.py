"""Known facts about trec_eval, statement by statement, each as a call with its whole output.

Values were computed by hand from the statement; version 9 is also compared with pytrec_eval.
The worked examples of preferences and assessors are in test_groups.py.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import KgtrecError
from kgtrec.trec.measures.names import resolve

# Query 1 lists b a u c, query 2 d a; the run lacks query 3. u has no judgement.
QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 a 0\n2 0 d 1\n3 0 e 1\n"
RUN = "".join(
    f"{q} Q0 {d} 0 {s} man\n"
    for q, d, s in [(1, "b", 4), (1, "a", 3), (1, "u", 2), (1, "c", 1), (2, "d", 2), (2, "a", 1)]
)
CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


class Ended(NamedTuple):
    code: int
    out: str
    said: str


def call(folder: Path, arguments: str, qrels: str = QRELS, run: str = RUN) -> Ended:
    """``kgtrec eval`` on files with these contents; FOLDER is their folder."""
    (folder / "qrels").write_bytes(qrels.encode())
    (folder / "run").write_bytes(run.encode())
    words = [*arguments.replace("FOLDER", str(folder)).split()]
    done = CliRunner().invoke(cli, ["eval", *words, str(folder / "qrels"), str(folder / "run")])
    if isinstance(done.exception, KgtrecError):
        return Ended(done.exception.exit_code, done.stdout, str(done.exception))
    return Ended(done.exit_code, done.stdout, done.stderr)


def lines(text: str) -> str:
    """``"map 1 0.5; num_q all 2"`` as trec_eval prints it: names in 22 columns, then tabs."""
    cells = [line.split() for line in text.split(";") if line.strip()]
    return "".join(f"{name:<22s}\t{query}\t{value}\n" for name, query, value in cells)


# -- Options, measures and output of the ordinary format -------------------------------------------

STATEMENTS = [
    ("-q: lines per query too, in byte order, all last", "-q -m map",
     "map 1 0.5000; map 2 1.0000; map all 0.7500"),
    ("-n: no summary", "-n -q -m map", "map 1 0.5000; map 2 1.0000"),
    ("-n without -q: nothing", "-n -m map", ""),
    ("-c: average over all queries of the qrels", "-c -m num_q -m map",
     "num_q all 3; map all 0.5000"),
    ("-c -q in 10.0: rows of zeros for absent queries, also of utility, unj and rbp_resid",
     "-qc -m num_ret -m map -m utility -m rbp_resid -m unj.5",
     "num_ret 1 4; map 1 0.5000; utility 1 0.0000; rbp_resid 1 0.7371; unj_5 1 0.2000;"
     "num_ret 2 2; map 2 1.0000; utility 2 0.0000; rbp_resid 2 0.0000; unj_5 2 0.0000;"
     "num_ret 3 0; map 3 0.0000; utility 3 0.0000; rbp_resid 3 0.0000; unj_5 3 0.0000;"
     "num_ret all 6; map all 0.5000; utility all 0.0000; rbp_resid all 0.2457; unj_5 all 0.0667"),
    ("-c in 9.0.8 changes only the averages", "--compat 9 -qc -m num_ret -m map",
     "num_ret 1 4; map 1 0.5000; num_ret 2 2; map 2 1.0000; num_ret all 6; map all 0.5000"),
    ("-l: relevant from that level", "-l 2 -m num_rel -m recip_rank",
     "num_rel all 1; recip_rank all 0.1250"),
    ("-l: ndcg ignores it", "-l 2 -m ndcg", "ndcg all 0.7836"),
    ("default of -l is 1", "-m ndcg -m num_rel", "num_rel all 3; ndcg all 0.7836"),
    ("-l: so does num_rel of the summary under -c", "-c -l2 -m num_rel", "num_rel all 4"),
    ("-J: unjudged documents go, after sorting", "-J -m P.3 -m num_ret",
     "num_ret all 5; P_3 all 0.5000"),
    ("-M: no more documents, after sorting", "-M 2 -m num_ret -m map",
     "num_ret all 4; map all 0.6250"),
    ("-M first, then -J", "-J -M 3 -m P.3 -m num_ret", "num_ret all 4; P_3 all 0.3333"),
    ("-N: collection size, for utility", "-m utility.1,-1,0,.1 -N 10",
     "utility_1,-1,0,.1 all 0.7000"),
    ("-m name.params", "-m P.5,10", "P_5 all 0.3000; P_10 all 0.1500"),
    ("parameters are sorted", "-m P.10,5", "P_5 all 0.3000; P_10 all 0.1500"),
    ("-m repeatable, in the table's order", "-m bpref -m map", "map all 0.7500; bpref all 0.5000"),
    ("a second parameter set is ignored", "-m P.5 -m P.10", "P_5 all 0.3000"),
    ("-m set", "-m set",
     "runid all man; num_q all 2; num_ret all 6; num_rel all 3; num_rel_ret all 3;"
     "utility all 0.0000; set_P all 0.5000; set_relative_P all 1.0000; set_recall all 1.0000;"
     "set_map all 0.5000; set_F all 0.6667"),
    ("official is the default", "", "runid all man; num_q all 2; num_ret all 6; num_rel all 3;"
     "num_rel_ret all 3; map all 0.7500; gm_map all 0.7071; Rprec all 0.7500; bpref all 0.5000;"
     "recip_rank all 0.7500;"
     + "".join(f"iprec_at_recall_{i / 10:.2f} all 0.7500;" for i in range(11))
     + "".join(f"P_{k} all {1.5 / k:.4f};" for k in CUTOFFS)),
    ("-R qrels and -T trec_results are the defaults", "-R qrels -T trec_results -m map",
     "map all 0.7500"),
    ("-o is ignored", "-o -m map", "map all 0.7500"),
    ("-D without a query changes nothing", "-D 1 -m map", "map all 0.7500"),
    ("options may be clustered", "-qcn -l2 -mnum_rel",
     "num_rel 1 1; num_rel 2 0; num_rel 3 0"),
    ("relstring is quoted, per query only", "-q -m relstring.4 -m num_q",
     "relstring_4 1 '01-2'; relstring_4 2 '10'; num_q all 2"),
    ("relstring of 10", "-qn -m relstring", "relstring 1 '01-2'; relstring 2 '10'"),
    ("runid, num_q and gm_* in the summary only", "-q -m runid -m num_q -m gm_map -m map",
     "map 1 0.5000; map 2 1.0000; runid all man; num_q all 2; map all 0.7500; gm_map all 0.7071"),
    ("gm_*: a floor of 1e-5 under the logarithm", "-c -m gm_map", "gm_map all 0.0171"),
    ("num_* are sums of whole numbers", "-q -m num_rel_ret",
     "num_rel_ret 1 2; num_rel_ret 2 1; num_rel_ret all 3"),
    ("names longer than 22 columns are not cut", "-m num_nonrel_judged_ret",
     "num_nonrel_judged_ret all 2"),
    ("recall", "-m recall.2", "recall_2 all 0.7500"),
    ("success 1,5,10", "-m success", "success_1 all 0.5000; success_5 all 1.0000;"
     "success_10 all 1.0000"),
    ("relative_P: of what could be there", "-m relative_P.1,5",
     "relative_P_1 all 0.5000; relative_P_5 all 1.0000"),
    ("Rprec_mult", "-m Rprec_mult.0.5,1",
     "Rprec_mult_0.50 all 0.5000; Rprec_mult_1.00 all 0.7500"),
    ("iprec_at_recall takes points", "-m iprec_at_recall.0.5", "iprec_at_recall_0.50 all 0.7500"),
    ("11pt_avg", "-m 11pt_avg", "11pt_avg all 0.7500"),
    ("utility 1,-1,0,0", "-m utility", "utility all 0.0000"),
    ("parameters of utility stand in its name", "-m utility.1,-1,0,0",
     "utility_1,-1,0,0 all 0.0000"),
    ("set_F 1.0", "-m set_F -m set_P -m set_recall",
     "set_P all 0.5000; set_recall all 1.0000; set_F all 0.6667"),
    ("set_F with a beta", "-m set_F.0.5", "set_F_0.5 all 0.6000"),
    ("ndcg takes level=gain", "-m ndcg.1=3.5,2=9.0", "ndcg_1=3.5,2=9.0 all 0.7714"),
    ("map_cut", "-m map_cut.2,4", "map_cut_2 all 0.6250; map_cut_4 all 0.7500"),
    ("rbp, p = .9, gains over the highest, and its residual", "-q -n -m rbp -m rbp_resid",
     "rbp 1 0.1179; rbp_resid 1 0.7371; rbp 2 0.1000; rbp_resid 2 0.0000"),
    ("unj 5,10,20", "-m unj", "unj_5 all 0.1000; unj_10 all 0.0500; unj_20 all 0.0250"),
    ("dcg and ideal_dcg by name", "-qn -m dcg -m ideal_dcg",
     "dcg 1 1.4923; ideal_dcg 1 2.6309; dcg 2 1.0000; ideal_dcg 2 1.0000"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "due"), [row[1:] for row in STATEMENTS], ids=[row[0] for row in STATEMENTS]
)
def test_statement(arguments: str, due: str, tmp_path: Path) -> None:
    ended = call(tmp_path, arguments)
    assert (ended.code, ended.out) == (0, lines(due))


@pytest.mark.parametrize("family", ["P", "recall", "ndcg_cut", "map_cut", "relative_P"])
def test_cutoffs_where_none_are_given(family: str, tmp_path: Path) -> None:
    printed = call(tmp_path, f"-m {family}").out
    assert [line.split()[0] for line in printed.splitlines()] == [f"{family}_{k}" for k in CUTOFFS]


@pytest.mark.parametrize(
    ("family", "points"),
    [("iprec_at_recall", range(11)), ("Rprec_mult", range(2, 21, 2))],
)
def test_points_where_none_are_given(family: str, points: range, tmp_path: Path) -> None:
    printed = call(tmp_path, f"-m {family}").out
    assert [line.split()[0] for line in printed.splitlines()] == [
        f"{family}_{i / 10:.2f}" for i in points
    ]


def test_all_trec_of_either_version(tmp_path: Path) -> None:
    def families(arguments: str) -> set[str]:
        printed = call(tmp_path, f"-q -m all_trec {arguments}").out
        names = {line.split()[0] for line in printed.splitlines()}
        cut = {re.sub(r"_[\d.]+$", "", name) for name in names}
        return {"relstring" if name.startswith("relstring") else name for name in cut}

    ten, nine = families(""), families("--compat 9")
    assert ten - nine == {"rbp", "rbp_resid", "unj"}
    assert nine - ten == set()
    assert not ten & {"dcg", "ideal_dcg", "yaap"}
    assert len(nine) == 34


def test_help_of_a_measure_and_the_version(tmp_path: Path) -> None:
    shown = call(tmp_path, "-h -m bpref")
    assert (shown.code, shown.out.split()[0]) == (0, "bpref")
    version = call(tmp_path, "-v")
    assert (version.code, version.out) == (0, "")
    assert "10.0" in version.said


def test_z_scores(tmp_path: Path) -> None:
    (tmp_path / "z").write_text("1 map 0.25 0.5\n2 map 1.5 0.25\n")
    ended = call(tmp_path, "-q -m map -m runid -Z FOLDER/z")
    assert ended.out == (
        "Zmap                   \t1\t0.5000\nZmap                   \t2\t-2.0000\n"
        "runid                 \tall\tman\nZmap                   \tall\t-0.7500\n"
    )


# -- Order and ties, files -------------------------------------------------------------------------


def test_order_is_by_score_then_by_name_descending_in_byte_order(tmp_path: Path) -> None:
    run = "1 Q0 b 9 1 t\n1 Q0 a 1 1 t\n1 Q0 C 2 1 t\n1 Q0 \u00e9 3 1 t\n1 Q0 z 4 .5 t\n"
    qrels = "1 0 a 2\n1 0 b 3\n1 0 C 1\n1 0 \u00e9 4\n1 0 z 5\n"
    assert call(tmp_path, "-qn -m relstring", qrels, run).out == lines("relstring 1 '43215'")
    turned = "".join(reversed(run.splitlines(keepends=True)))
    assert call(tmp_path, "-qn -m relstring", qrels, turned).out == lines("relstring 1 '43215'")


def test_scores_are_doubles_in_10_and_floats_in_9(tmp_path: Path) -> None:
    run = "1 Q0 a 0 1.000000001 t\n1 Q0 b 0 1.0 t\n"
    for arguments, due in (("", "'10'"), ("--compat 9", "'01'")):
        printed = call(tmp_path, f"-qn -m relstring {arguments}", "1 0 a 1\n1 0 b 0\n", run).out
        assert printed == lines(f"relstring 1 {due}")


def test_queries_stand_in_byte_order(tmp_path: Path) -> None:
    qrels = "9 0 a 1\n10 0 a 1\n"
    printed = call(tmp_path, "-qn -m map", qrels, "9 Q0 a 0 1 t\n10 Q0 a 0 1 t\n").out
    assert printed == lines("map 10 1.0000; map 9 1.0000")


FINE = [
    ("blank lines in a run", QRELS, RUN.replace("\n", "\n\n", 2)),
    ("comments, also in the last line", "# one\n# two\n" + QRELS + "# end", RUN + "# end"),
    ("any white space", QRELS.replace(" ", "\t"), RUN.replace(" ", " \t ")),
    ("no end of the last line", QRELS[:-1], RUN[:-1]),
    ("lines in any order", "".join(sorted(QRELS.splitlines(True), reverse=True)),
     "".join(sorted(RUN.splitlines(True)))),
    ("ranks count for nothing", QRELS, RUN.replace(" 0 4 ", " 99 4 ")),
]  # fmt: skip


@pytest.mark.parametrize(("qrels", "run"), [row[1:] for row in FINE], ids=[row[0] for row in FINE])
def test_files_that_are_fine(qrels: str, run: str, tmp_path: Path) -> None:
    assert call(tmp_path, "-q -m all_trec", qrels, run).out == call(tmp_path, "-q -m all_trec").out


FAULTS = [
    ("a blank line in qrels", "", "1 0 a 1\n\n1 0 b 0\n", RUN, 2, "qrels:2: a blank line"),
    ("a malformed line of the run", "", QRELS, "1 Q0 a 0 1\n", 2, "run:1: "),
    ("an empty file", "", "", RUN, 2, "qrels: "),
    ("an empty run", "", QRELS, "", 2, "run: "),
    ("bad cutoffs", "-m P.0", QRELS, RUN, 2, "P.0"),
    ("an unknown measure", "-m nonsense", QRELS, RUN, 1, "'nonsense'"),
    ("an unknown option", "--nonsense", QRELS, RUN, 2, "--nonsense"),
    ("a document twice", "", QRELS, RUN + "1 Q0 a 0 1 t\n", 4, "twice"),
    ("no query in both", "", QRELS, "8 Q0 a 0 1 t\n", 7, "share no query"),
    ("a score that is no number", "", QRELS, "1 Q0 a 0 abc t\n", 2, "score 'abc'"),
    ("a score that is NaN", "", QRELS, "1 Q0 a 0 nan t\n", 2, "score 'nan'"),
    ("a relevance that is not whole", "", "1 0 a 1.9\n", RUN, 2, "relevance '1.9'"),
    ("-l that is no number", "-l abc", QRELS, RUN, 2, "'abc' is not a whole number"),
]


@pytest.mark.parametrize(
    ("arguments", "qrels", "run", "code", "word"),
    [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS],
)  # fmt: skip
def test_faults(arguments: str, qrels: str, run: str, code: int, word: str, tmp_path: Path) -> None:
    ended = call(tmp_path, arguments, qrels, run)
    # An unknown option: click itself ends with 2, which main() turns into 1.
    assert (ended.code, ended.out) == (code, "")
    assert word in ended.said


def test_a_query_of_the_qrels_that_the_run_lacks_is_counted_on_standard_error(
    tmp_path: Path,
) -> None:
    ended = call(tmp_path, "-m num_q")
    assert ended.out == lines("num_q all 2")
    assert "1 of 3 queries of the qrels are not in the run; they are left out" in ended.said


def test_files_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "q.gz").write_bytes(gzip.compress(QRELS.encode()))
    (tmp_path / "r.gz").write_bytes(gzip.compress(RUN.encode()))
    done = CliRunner().invoke(cli, ["eval", str(tmp_path / "q.gz"), str(tmp_path / "r.gz")])
    assert done.stdout == call(tmp_path, "").out


@pytest.mark.parametrize("compat", [10, 9])
def test_recall_points_are_rounded_or_cut(compat: int, tmp_path: Path) -> None:
    """0.4 of 3 relevant documents: lround(1.2) is the 1st, trunc(1.2 + .9) the 2nd; of .5 both."""
    qrels = "".join(f"1 0 d{i} {int(i in (0, 4, 9))}\n" for i in range(10))
    run = "".join(f"1 Q0 d{i} 0 {-i} t\n" for i in range(10))
    due = {10: {"0.40": 1.0, "0.50": 0.4}, 9: {"0.40": 0.4, "0.50": 0.4}}[compat]
    points = ",".join(due)
    printed = call(tmp_path, f"--compat {compat} -m iprec_at_recall.{points}", qrels, run).out
    assert printed == lines(
        ";".join(f"iprec_at_recall_{p} all {value:.4f}" for p, value in due.items())
    )


# -- The three other formats -----------------------------------------------------------------------

ABC = "q Q0 a 0 3 tag\nq Q0 b 0 2 tag\nq Q0 c 0 1 tag\n"
POSSIBLE = "-R {} -m prefs_num_prefs_poss -m prefs_num_prefs_ful"
GROUPS = [
    ("prefs has five fields", "-R prefs -m prefs_simp", "q g s a 1\nq g s b 0\n",
     "prefs_simp all 1.0000"),
    ("qrels_prefs four: ordinary qrels will do", "-R qrels_prefs -m prefs_simp",
     "q 0 a 1\nq 0 b 0\n", "prefs_simp all 1.0000"),
    ("any white space, around the line too", "-R qrels_prefs -m prefs_simp",
     " \tq\v0\fa 1 \r\nq 0 b 0", "prefs_simp all 1.0000"),
    ("lines in any order, comments anywhere", "-R prefs -m prefs_simp",
     "# x\n# y\nq g s b 0\n#\nq g s a 1\n# z", "prefs_simp all 1.0000"),
    ("a comment behind a blank is data", "-R qrels_prefs -m num_q",
     "q 0 a 1\nq 0 b 0\n # 0 a 1\n", "num_q all 1"),
    ("levels of prefs are decimals", "-R prefs -m prefs_simp", "q g s a .5\nq g s b .25\n",
     "prefs_simp all 1.0000"),
    ("a level below 0 is one more, lower class", POSSIBLE.format("qrels_prefs"),
     "q g a 0\nq g b -1\n", "prefs_num_prefs_poss all 1; prefs_num_prefs_ful all 1"),
    ("no preference within a level", POSSIBLE.format("qrels_prefs"), "q g a 1\nq g b 1\n",
     "prefs_num_prefs_poss all 0; prefs_num_prefs_ful all 0"),
    ("a line that comes twice counts twice", POSSIBLE.format("qrels_prefs"),
     "q g a 2\nq g a 2\nq g b 1\n", "prefs_num_prefs_poss all 2; prefs_num_prefs_ful all 2"),
    ("pairs of sub-groups are a set", POSSIBLE.format("prefs"),
     "q g s a 2\nq g s b 1\nq g t a 5\nq g t b 4\n",
     "prefs_num_prefs_poss all 1; prefs_num_prefs_ful all 1"),
    ("level in one sub-group, ordered in another: the order counts", POSSIBLE.format("prefs"),
     "q g s a 1\nq g s b 1\nq g t a 2\nq g t b 1\n",
     "prefs_num_prefs_poss all 1; prefs_num_prefs_ful all 1"),
    ("sub-groups are closed transitively", POSSIBLE.format("prefs"),
     "q g s a 2\nq g s b 1\nq g t b 2\nq g t c 1\n",
     "prefs_num_prefs_poss all 3; prefs_num_prefs_ful all 3"),
    ("groups may contradict each other", POSSIBLE.format("qrels_prefs"),
     "q g a 2\nq g b 1\nq h b 2\nq h a 1\n",
     "prefs_num_prefs_poss all 2; prefs_num_prefs_ful all 1"),
    ("-l, -J and -N change nothing of preferences", "-R prefs -l 2 -J -N 9 -m prefs_simp",
     "q g s a 1\nq g s b 0\n", "prefs_simp all 1.0000"),
    ("-M cuts the run first", "-R qrels_prefs -M 1 -m prefs_simp_ret -m prefs_simp_imp",
     "q g a 1\nq g b 0\n", "prefs_simp_ret all 0.0000; prefs_simp_imp all 1.0000"),
    ("a document of two groups is none twice", "-R qrels_jg -m map_avgjg", "q g a 1\nq h a 1\n",
     "map_avgjg all 1.0000"),
    ("a negative relevance is not judged", "-R qrels_jg -J -m P_avgjg.1",
     "q g a -1\nq g b 1\n", "P_avgjg_1 all 1.0000"),
    ("-l of assessors, 0 too", "-R qrels_jg -l0 -m map_avgjg", "q g a 0\nq g b 0\n",
     "map_avgjg all 1.0000"),
    ("groups without relevant documents count as 0", "-R qrels_jg -m map_avgjg",
     "q g a 1\nq h a 0\n", "map_avgjg all 0.5000"),
    ("multiples may be below 0", "-R qrels_jg -m Rprec_mult_avgjg.-1,1", "q g a 1\n",
     "Rprec_mult_avgjg_-1.00 all 0.0000; Rprec_mult_avgjg_1.00 all 1.0000"),
    ("defaults of P_avgjg", "-R qrels_jg -m P_avgjg", "q g a 1\n",
     "".join(f"P_avgjg_{k} all {1 / k:.4f};" for k in CUTOFFS)),
    ("-c: absent queries are 0", "-R qrels_jg -qc -m map_avgjg", "q g a 1\nr g a 1\n",
     "map_avgjg q 1.0000; map_avgjg r 0.0000; map_avgjg all 0.5000"),
    ("without -m: qrels_jg", "-R qrels_jg -q -n -M 1", "q g a 1\n",
     "map_avgjg q 1.0000;" + "".join(f"P_avgjg_{k} q {1 / k:.4f};" for k in CUTOFFS)
     + "".join(f"Rprec_mult_avgjg_{i / 5:.2f} q {float(i <= 5 and i > 0) if i <= 5 else 0.5:.4f};"
               for i in range(1, 11))),
    ("without -m: all_prefs", "-R prefs -n -q", "q g s a 1\nq g s b 0\n",
     "prefs_num_prefs_poss q 1; prefs_num_prefs_ful q 1; prefs_num_prefs_ful_ret q 1;"
     "prefs_simp q 1.0000; prefs_pair q 1.0000; prefs_avgjg q 1.0000;"
     "prefs_avgjg_Rnonrel q 1.0000; prefs_simp_ret q 1.0000; prefs_pair_ret q 1.0000;"
     "prefs_avgjg_ret q 1.0000; prefs_avgjg_Rnonrel_ret q 1.0000; prefs_simp_imp q 1.0000;"
     "prefs_pair_imp q 1.0000; prefs_avgjg_imp q 1.0000"),
    ("-m prefs: the first six", "-R prefs -m prefs", "q g s a 1\nq g s b 0\n",
     "runid all tag; num_q all 1; prefs_num_prefs_poss all 1; prefs_num_prefs_ful all 1;"
     "prefs_num_prefs_ful_ret all 1; prefs_simp all 1.0000; prefs_pair all 1.0000;"
     "prefs_avgjg all 1.0000"),
    ("parameters of a nickname are ignored", "-R prefs -m prefs.3 -n", "q g s a 1\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "judged", "due"), [row[1:] for row in GROUPS], ids=[row[0] for row in GROUPS]
)
def test_statement_of_other_formats(arguments: str, judged: str, due: str, tmp_path: Path) -> None:
    ended = call(tmp_path, arguments, judged, ABC)
    assert (ended.code, ended.out) == (0, lines(due))


GROUP_FAULTS = [
    ("a document twice in a group", "-R qrels_jg", "q g a 1\nq g a 1\n", ABC, 2, "duplicate docs"),
    ("a document twice in the run", "-R prefs", "q g s a 1\n", ABC + ABC, 4, "twice"),
    ("a level that is no number", "-R prefs", "q g s a x\n", ABC, 2, "level 'x'"),
    ("a relevance that is not whole", "-R qrels_jg", "q g a 1.9\n", ABC, 2, "relevance '1.9'"),
    ("a blank line, by its physical number", "-R prefs", "# x\n\nq g s a 1\n", ABC, 2, ":2: "),
    ("too many fields", "-R qrels_jg", "q g s a 1\n", ABC, 2, "5 columns"),
    ("a negative -l is refused", "-R qrels_jg -l -1", "q g a 1\n", ABC, 2, "'-1'"),
    ("the judgements are read before the run", "-R prefs", "", "nonsense\n", 2, "qrels: "),
    ("a wrong pair of measure and format", "-R prefs -m map", "q g s a 1\n", ABC, 4, "'map'"),
    ("an unknown format", "-R pairs", "q g s a 1\n", ABC, 2, "-R pairs"),
    ("an empty parameter", "-R prefs -m prefs_simp.", "q g s a 1\n", ABC, 1, "'prefs_simp.'"),
]


@pytest.mark.parametrize(
    ("arguments", "judged", "run", "code", "word"),
    [row[1:] for row in GROUP_FAULTS], ids=[row[0] for row in GROUP_FAULTS],
)  # fmt: skip
def test_faults_of_other_formats(
    arguments: str, judged: str, run: str, code: int, word: str, tmp_path: Path
) -> None:
    ended = call(tmp_path, arguments, judged, run)
    assert (ended.code, ended.out) == (code, "")
    assert word in ended.said


# -- Version 9 -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")
def test_version_9_is_pytrec_eval_in_every_shared_measure() -> None:
    """All 34 families, 282 values: version 10 differs in recall points, and only there."""
    rng = np.random.default_rng(4)
    qrels = {
        f"q{i}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.choice(40, 20, replace=False)}
        for i in range(3)
    }
    for one in qrels.values():
        one["d0"] = 1
    run = {
        q: {f"d{d}": float(rng.integers(0, 15)) for d in rng.choice(40, 25, replace=False)}
        for q in qrels
    }
    families = {*pytrec_eval.supported_nicknames["all_trec"]} - {"runid", "relstring"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, families).evaluate(run)
    names = [column.name for column in resolve(families)]
    nine, ten = (trec.evaluate(qrels, run, families, compat=c) for c in (9, 10))
    compared, elsewhere = 0, set()
    for q in qrels:
        for name in names:
            if name not in theirs[q] or name == "num_q":
                continue
            compared += 1
            assert nine[q][name] == pytest.approx(theirs[q][name], abs=1e-15), name
            if abs(ten[q][name] - theirs[q][name]) > 1e-15:
                elsewhere.add(name.partition("_0")[0].partition("_1.")[0])
    assert compared >= 270
    assert elsewhere <= {"iprec_at_recall", "11pt_avg"}
    assert elsewhere
