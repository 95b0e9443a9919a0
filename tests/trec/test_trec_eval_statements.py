"""Known facts about trec_eval, statement by statement, each as a call with its whole output.

Values were computed by hand from the statement; version 9 is also compared with pytrec_eval.
Preferences and several assessors follow: worked examples, faults, and slow definitions.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner
from group_oracle import Line, Refused, assessor_values, preference_values
from slow import slow_after

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.trec.measures import judgement_groups, preferences
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.rows import TABLE

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

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


DOCS = [f"d{i}" for i in range(9)]
JG = ["map_avgjg", "P_avgjg.1,2,5", "Rprec_mult_avgjg.-0.5,0.5,1,2.5"]
WIDTH = {"prefs": 5, "qrels_prefs": 4, "qrels_jg": 4}


def random_lines(rng: np.random.Generator, query: str, n_subgroups: int) -> list[Line]:
    """Groups that share documents: ties, repeated lines, cycles, sometimes levels below 0."""
    lines: list[Line] = []
    worth = rng.permutation(9) // rng.integers(1, 5)  # mostly of one mind
    for g in range(rng.integers(1, 4)):
        odd = rng.random() < 0.25
        for s in range(rng.integers(1, n_subgroups + 1)):
            for d in rng.choice(9, rng.integers(1, 7), replace=False):
                level = float(rng.integers(-1, 3) if odd else worth[d])
                lines.append((query, f"g{g}", f"s{s}", DOCS[d], level))
        if rng.random() < 0.15:
            again = lines[rng.integers(len(lines))]
            lines.append((*again[:4], again[4] + (rng.random() < 0.3)))
    return lines


def random_run(rng: np.random.Generator) -> dict[str, float]:
    some = rng.choice(9, rng.integers(1, 9), replace=False)
    run = {DOCS[i]: float(rng.integers(0, 4)) for i in some}
    return run | {f"u{i}": float(rng.integers(0, 4)) for i in range(rng.integers(0, 3))}


def write(folder: Path, form: str, lines: list[Line], runs: dict[str, dict[str, float]]):
    qrels, run = folder / "judged", folder / "run"
    with open(qrels, "w") as file:
        for query, group, subgroup, document, level in lines:
            middle = f"{group} {subgroup}" if form == "prefs" else group
            text = str(int(level)) if form == "qrels_jg" else repr(level)
            file.write(f"{query} {middle} {document} {text}\n")
    with open(run, "w") as file:
        for query, documents in runs.items():
            file.writelines(f"{query} Q0 {d} 0 {s} tag\n" for d, s in documents.items())
    return qrels, run


@pytest.mark.parametrize("trials", slow_after(1, [60, 400]))
@pytest.mark.parametrize("form", ["prefs", "qrels_prefs"])
def test_preferences_are_those_of_the_slow_definition(
    form: str, trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    n_subgroups = 3 if form == "prefs" else 1
    seen: Counter[str] = Counter()
    for trial in range(trials):
        if trial == trials // 2:  # rows of a matrix in blocks; the closure by rows of bits
            monkeypatch.setattr(preferences, "_CELLS", 5)
            monkeypatch.setattr(preferences, "_MATRIX", 1)
        names = [f"q{i}" for i in range(rng.integers(1, 4))]
        lines = [line for q in names for line in random_lines(rng, q, n_subgroups)]
        runs = {q: random_run(rng) for q in names}
        most = [None, 1, 2, 4][rng.integers(4)]
        rng.shuffle(lines)
        qrels, run = write(tmp_path, form, lines, runs)
        try:
            due = {
                q: preference_values([one for one in lines if one[0] == q], runs[q], most)
                for q in names
            }
        except Refused:
            seen["refused"] += 1
            with pytest.raises(judgement_groups.Contradiction) as caught:
                trec.evaluate(qrels, run, ["all_prefs"], qrels_format=form, most=most)
            assert caught.value.exit_code == 4
            assert caught.value.line is not None
            continue
        values = trec.evaluate(qrels, run, ["all_prefs"], qrels_format=form, most=most)
        seen["values"] += 1
        assert list(values) == names
        for q in names:
            for name, value in due[q].items():
                assert values[q][name] == pytest.approx(value, rel=1e-14, abs=0), (name, trial)
                seen[f"{name} between"] += 0 < value < 1
    assert seen["values"] > 0.37 * trials
    assert seen["refused"] > 0.02 * trials
    for name, row in TABLE.items():
        if row.format == "prefs" and row.output == "double":
            assert seen[f"{name} between"] > trials / 8, name


@pytest.mark.parametrize("levels", [(1.0, -1.0), (-1.0, 1.0), (2.0, 1.0, -2.0)])
def test_of_a_repeated_document_the_lowest_level_counts(
    levels: tuple[float, ...], tmp_path: Path
) -> None:
    """Above 0 and below it in one subgroup: neither relevant nor not."""
    lines = [("q", "g", "s", "b", 2.0), ("q", "g", "s", "c", 0.0), ("q", "g", "t", "b", 3.0)]
    lines += [("q", "g", "t", "a", level) for level in levels]
    documents = {"a": 3.0, "b": 2.0, "c": 1.0}
    values = trec.evaluate(
        *write(tmp_path, "prefs", lines, {"q": documents}), ["all_prefs"], qrels_format="prefs"
    )["q"]
    for name, due in preference_values(lines, documents).items():
        assert values[name] == pytest.approx(due, rel=1e-14, abs=0), name


def test_several_assessors_are_those_of_the_slow_definition(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        names = [f"q{i}" for i in range(rng.integers(1, 4))]
        lines = []
        for q in names:
            for g in range(rng.integers(1, 4)):
                some = rng.choice(9, rng.integers(1, 8), replace=False)
                lines += [(q, f"g{g}", "", DOCS[d], int(rng.integers(-1, 3))) for d in some]
        runs = {q: random_run(rng) for q in names}
        most = [None, 1, 2, 4][rng.integers(4)]
        level, judged_only = int(rng.integers(0, 3)), bool(rng.integers(2))
        qrels, run = write(tmp_path, "qrels_jg", lines, runs)
        values = trec.evaluate(qrels, run, JG, qrels_format="qrels_jg", most=most, level=level,
                               judged_only=judged_only)  # fmt: skip
        for q in names:
            mine = [line for line in lines if line[0] == q]
            due = assessor_values(mine, runs[q], most, level, judged_only)
            assert values[q].keys() == due.keys()
            for name, value in due.items():
                assert values[q][name] == pytest.approx(value, rel=1e-14, abs=1e-15), name


def test_one_group_is_the_ordinary_format() -> None:
    rng = np.random.default_rng(3)
    qrels = {f"q{i}": {DOCS[d]: int(rng.integers(-1, 3)) for d in range(7)} for i in range(9)}
    run = {q: random_run(rng) for q in qrels}
    groups = {q: {"g": documents} for q, documents in qrels.items()}
    ours = trec.evaluate(groups, run, ["qrels_jg"], qrels_format="qrels_jg")
    theirs = trec.evaluate(qrels, run, ["map", "P", "Rprec_mult"])
    for q, row in theirs.items():
        mine = {name.replace("_avgjg", ""): value for name, value in ours[q].items()}
        assert mine.pop("num_q", 1) == 1
        assert mine == pytest.approx(row, rel=1e-15)


# -- The command line ----------------------------------------------------------------------------


def evaluated(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["eval", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        code = getattr(done.exception, "exit_code", None)
        return code, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def files(folder: Path, judged: str, *documents: str, score: float | None = None):
    """`judged` has "group[ subgroup] document level" separated by commas, of query q."""
    qrels, run = folder / "judged", folder / "run"
    qrels.write_text("".join(f"q {line.strip()}\n" for line in judged.split(",")))
    run.write_text("".join(
        f"q Q0 {d} 0 {-i if score is None else score} tag\n" for i, d in enumerate(documents)
    ))  # fmt: skip
    return qrels, run


PREFS = ("prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret", "prefs_simp",
         "prefs_pair", "prefs_avgjg", "prefs_avgjg_Rnonrel", "prefs_simp_ret", "prefs_pair_ret",
         "prefs_avgjg_ret", "prefs_avgjg_Rnonrel_ret", "prefs_simp_imp", "prefs_pair_imp",
         "prefs_avgjg_imp")  # fmt: skip
EXAMPLES = [
    ("prefs", "g s a 1, g s b 0, g s c 2, g s d 2, g s e 0", "a b u c", "all_prefs",
     "8 3 1 0.3750 0.3750 0.3750 0.4545 0.3333 0.3333 0.3333 0.5000 0.4286 0.4286 0.4286"),
    ("prefs", "g s a 1, g s b 0, g s c 0, g s d 0", "a b c", "all_prefs",
     "3 3 2 1.0000 1.0000 1.0000 0.2500 1.0000 1.0000 1.0000 0.3333 1.0000 1.0000 1.0000"),
    ("prefs", "g s a 1, g s b 0, g s c 0, g t a 1, g t c 0, g t d 0", "a b c", "all_prefs",
     "3 3 2 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000"),
    ("prefs", "g s a 3, g s b 2, g s c 1, g t b 5, g t d 4", "a b c", "prefs",
     "5 5 3 1.0000 1.0000 1.0000"),
    ("qrels_prefs", "g1 a 2, g1 b 1, g1 c 0, g2 b 1, g2 a 0", "a b", "prefs",
     "4 3 1 0.7500 0.8333 0.5000"),
    ("prefs", "g1 s a 1, g1 s b 0, g2 s c 0", "a b c", "all_prefs",
     "1 1 1 1.0000 1.0000 0.5000 0.0000 1.0000 1.0000 0.5000 0.0000 1.0000 1.0000 0.5000"),
    ("qrels_prefs", "g a 1, g b 1", "a b c", "all_prefs",
     "0 0 0 0.0000 0.0000 0.0000 1.0000 0.0000 0.0000 0.0000 1.0000 0.0000 0.0000 0.0000"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "judged", "shown", "measure", "due"), EXAMPLES)
def test_worked_examples(
    form: str, judged: str, shown: str, measure: str, due: str, tmp_path: Path
) -> None:
    qrels, run = files(tmp_path, judged, *shown.split())
    code, printed, said = evaluated("-R", form, "-q", "-n", "-m", measure, qrels, run)
    text = "".join(
        f"{name:<22}\tq\t{value}\n" for name, value in zip(PREFS, due.split(), strict=False)
    )
    assert (code, printed, said) == (0, text, "")
    code, printed, _ = evaluated("-R", form, "-m", measure, qrels, run)
    lead = f"{'runid':<22}\tall\ttag\n{'num_q':<22}\tall\t1\n"
    assert printed == lead + text.replace("\tq\t", "\tall\t")


def test_worked_example_of_several_assessors(tmp_path: Path) -> None:
    judged = "g1 a 1, g1 c 1, g1 e 1, g2 a 0, g2 b 2, g2 c -1"
    qrels, run = files(tmp_path, judged, *"abcd")
    measures = ("-m", "map_avgjg", "-m", "P_avgjg.2,10", "-m", "Rprec_mult_avgjg.0.5,1,2.5")
    names = ("map_avgjg", "P_avgjg_2", "P_avgjg_10", "Rprec_mult_avgjg_0.50",
             "Rprec_mult_avgjg_1.00", "Rprec_mult_avgjg_2.50")  # fmt: skip
    for flags, due in (
        ((), "0.5278 0.5000 0.1500 0.2500 0.3333 0.2917"),
        (("-J",), "0.5833 0.7500 0.1500 0.5000 0.3333 0.2917"),
    ):
        text = "".join(f"{n:<22}\tq\t{v}\n" for n, v in zip(names, due.split(), strict=True))
        ended = evaluated("-R", "qrels_jg", "-qn", *flags, *measures, qrels, run)
        assert ended == (0, text, "")


def test_ties_go_by_name_and_are_said(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "g a 1, g b 0", "a", "b", score=1.0)
    note = "kgtrec: 1 of 1 queries have ties that could change these measures\n"
    for form, measure, value in (
        ("qrels_prefs", "prefs_simp", "1.0000"), ("qrels_jg", "map_avgjg", "0.5000")
    ):  # fmt: skip
        assert evaluated("-R", form, "-m", measure, qrels, run) == (
            0, f"{measure:<22}\tall\t{value}\n", note
        )  # fmt: skip


def test_ties_that_both_orders_by_name_hide_are_said_too(tmp_path: Path) -> None:
    """The relevant one of three is second in both orders, and could be first."""
    qrels, run = files(tmp_path, "g a 0, g b 1, g c 0", "a", "b", "c", score=1.0)
    for form, measure in (("qrels_prefs", "prefs_simp"), ("qrels_jg", "map_avgjg")):
        code, printed, said = evaluated("-R", form, "-m", measure, qrels, run)
        assert (code, printed) == (0, f"{measure:<22}\tall\t0.5000\n")
        assert "1 of 1 queries have ties that could change these measures" in said
    # All three at one level: no order changes anything.
    qrels.write_text("q g a 1\nq g b 1\nq g c 1\n")
    assert evaluated("-R", "qrels_jg", "-m", "map_avgjg", qrels, run)[2] == ""


def test_queries_with_ties_are_those_that_some_order_changes(tmp_path: Path) -> None:
    """All orders of the ties, by slightly different scores: no message if nothing changes."""
    rng = np.random.default_rng(8)
    missed = said_of = 0
    for _ in range(40):
        form = ("qrels_prefs", "qrels_jg")[rng.integers(2)]
        n = int(rng.integers(2, 4))
        lines = [("q", "g0", "", DOCS[d], int(rng.integers(0, 3))) for d in range(n)]
        ties = {DOCS[d]: float(rng.integers(0, 2)) for d in range(n)}
        names = ["all_prefs"] if form == "qrels_prefs" else ["qrels_jg"]
        values = set()
        for order in permutations(range(n)):
            apart = {DOCS[d]: ties[DOCS[d]] + place / 100 for d, place in enumerate(order)}
            qrels, run = write(tmp_path, form, lines, {"q": apart})
            row = trec.evaluate(qrels, run, names, qrels_format=form)["q"]
            values.add(tuple(round(value, 9) for value in row.values()))
        qrels, run = write(tmp_path, form, lines, {"q": ties})
        measure = ("-m", names[0])
        said = "ties" in evaluated("-R", form, *measure, qrels, run)[2]
        assert not said or len(values) > 1
        missed += (len(values) > 1) and not said
        said_of += said
    assert said_of > 8
    assert missed == 0


def test_absent_queries_count_with_c(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "g s a 1, g s b 0", "a", "b")
    qrels.write_text(qrels.read_text() + "p g s a 1\np g s b 0\np g s c 0\n# p g s\n")
    measures = ("-m", "prefs_num_prefs_poss", "-m", "prefs_simp", "-m", "num_q")
    code, printed, said = evaluated("-R", "prefs", "-q", *measures, qrels, run)
    assert printed == (
        "prefs_num_prefs_poss  \tq\t1\nprefs_simp            \tq\t1.0000\n"
        "num_q                 \tall\t1\nprefs_num_prefs_poss  \tall\t1\n"
        "prefs_simp            \tall\t1.0000\n"
    )
    assert code == 0
    assert "1 of 2 queries of the qrels are not in the run; they are left out" in said
    code, printed, said = evaluated("-R", "prefs", "-qc", *measures, qrels, run)
    assert printed == (
        "prefs_num_prefs_poss  \tp\t2\nprefs_simp            \tp\t0.0000\n"
        "prefs_num_prefs_poss  \tq\t1\nprefs_simp            \tq\t1.0000\n"
        "num_q                 \tall\t2\nprefs_num_prefs_poss  \tall\t3\n"
        "prefs_simp            \tall\t0.5000\n"
    )
    nine = evaluated("-R", "prefs", "-qc", "--compat", "9", *measures, qrels, run)[1]
    assert nine.count("\tp\t") == 0
    assert "prefs_simp            \tall\t0.5000\n" in nine


def test_several_runs_tables_intervals_and_z_scores(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "g a 1, g b 0", "a", "b")
    qrels.write_text(qrels.read_text() + "p g a 1\np g b 0\n")
    other = tmp_path / "other"
    other.write_text("q Q0 b 0 2 two\nq Q0 a 0 1 two\np Q0 a 0 1 two\n")
    run.write_text(run.read_text() + "p Q0 b 0 1 tag\n")
    base = ("-R", "qrels_prefs", "-m", "prefs_simp", "-m", "prefs_num_prefs_ful")
    code, printed, _ = evaluated(*base, "--format", "tsv", qrels, run, other)
    assert code == 0
    assert printed.splitlines()[1:] == ["prefs_num_prefs_ful\t1\t1", "prefs_simp\t0.5\t0.5"]
    printed = evaluated(*base, "--ci", "95", qrels, run)[1]
    assert "prefs_simp_ci95_low   \tall\t0.0000\n" in printed
    reference = tmp_path / "z"
    reference.write_text("q prefs_simp 0.5 0.25\np prefs_simp 0 1\nq prefs_num_prefs_ful 0 1\n")
    printed = evaluated(*base, "-q", "-Z", reference, qrels, run)[1]
    assert printed == (
        "Zprefs_num_prefs_ful  \tp\t-1000000.0000\nZprefs_simp            \tp\t0.0000\n"
        "Zprefs_num_prefs_ful  \tq\t1.0000\nZprefs_simp            \tq\t2.0000\n"
        "Zprefs_num_prefs_ful  \tall\t-999999.0000\nZprefs_simp            \tall\t1.0000\n"
    ).replace("Zprefs_num_prefs_ful  ", "Zprefs_num_prefs_ful   ")
    assert evaluated(*base, "-q", "-n", "-D", "1.p", qrels, run)[1].count("\tq\t") == 0
    twice = evaluated(*base, qrels, run, other)[1]
    assert twice.count("run_file") == 2


@pytest.mark.parametrize(
    ("form", "text", "line", "problem", "code"),
    [
        ("prefs", "q g s a 1\n\nq g s b 0\n", 2, "a blank line", 2),
        ("prefs", "q g s a 1\nq g b 0\n", 2, "4 columns", 2),
        ("qrels_prefs", "# one\n# two\nq g a 1\n # q g a 1\n", 4, "5 columns", 2),
        ("qrels_prefs", "q g a x\n", 1, "level 'x'", 2),
        ("qrels_prefs", "q g a 1\nq g b inf\n", 2, "level 'inf'", 2),
        ("qrels_prefs", "q g a 1_0\n", 1, "level '1_0'", 2),
        ("qrels_jg", "q g a 1\nq g b 1.9\n", 2, "relevance '1.9'", 2),
        ("qrels_jg", "q g b 99999999999999999999\n", 1, "whole number", 2),
        ("qrels_jg", "q g a 1\nq h a 1\nq g a 2\n", 3, "duplicate docs", 2),
        ("prefs", "", None, "contains no lines", 2),
        ("prefs", "# only\n", None, "contains no lines", 2),
        ("prefs", "q g s a 1\nq g s b 1\nq g s a 0\n", 3, "different levels", 4),
        ("prefs", "q g s a 1\nq g t a 0\nq g t b 1\n", 2, "both 0 and non-0", 4),
        ("prefs", "q g s a 2\nq g s b 1\nq g t b 2\nq g t a 1\n", None, "Pref inconsistency", 4),
        ("prefs", "q g s a 2\nq g s b 1\nq g t b 2\nq g t c 1\nq g u c 2\nq g u a 1\n", None,
         "query 'q', group 'g'", 4),
    ],
)  # fmt: skip
def test_faults_name_line_and_hint(
    form: str, text: str, line: int | None, problem: str, code: int | None, tmp_path: Path
) -> None:
    qrels, run = files(tmp_path, "g a 1", "a", "b")
    qrels.write_text(text)
    ended, printed, said = evaluated("-R", form, qrels, run)
    assert ended == (code or 2)
    assert printed == ""
    assert problem in said
    if line is not None:
        assert f":{line}: " in said
    assert "; " in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-R", "prefs", "-m", "map"), 4), (("-R", "qrels_jg", "-m", "prefs_simp"), 4),
        (("-m", "prefs_simp"), 4), (("-m", "qrels_jg"), 4), (("-R", "prefs", "-m", "official"), 4),
        (("-R", "qrels_jg", "-m", "num_ret"), 4), (("-R", "nonsense"), 2),
        (("-R", "prefs", "-m", "prefs_simp."), 1), (("-R", "qrels_jg", "-m", "P_avgjg.5,5"), 2),
        (("-R", "qrels_jg", "-m", "P_avgjg.0"), 2), (("-R", "qrels_jg", "-m", "P_avgjg.x"), 2),
        (("-R", "qrels_jg", "-m", "Rprec_mult_avgjg.1,1"), 2),
        (("-R", "prefs", "--ties", "expected"), 1), (("-R", "prefs", "-m", "kg_mrr"), 1),
    ],
)  # fmt: skip
def test_wrong_calls(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    ended, printed, said = evaluated(*arguments, missing, missing)
    assert (ended, printed) == (code, "")
    assert "missing" not in said  # refused before any file is read


def test_parameters_of_preferences_are_ignored(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "g s a 1, g s b 0", "a", "b")
    plain = evaluated("-R", "prefs", "-m", "prefs_simp", qrels, run)[1]
    code, printed, said = evaluated("-R", "prefs", "-m", "prefs_simp.3", qrels, run)
    assert (code, printed) == (0, plain)
    assert "parameters are ignored" in said
    nick = evaluated("-R", "prefs", "-m", "prefs.3", qrels, run)[1]
    assert nick == evaluated("-R", "prefs", "-m", "prefs", qrels, run)[1]


def test_white_space_and_names_are_bytes(tmp_path: Path) -> None:
    qrels, run = tmp_path / "q", tmp_path / "r"
    qrels.write_bytes(b"\t q\x0bg s \xff\r1 \r\n  q g\x0cs b 0")
    run.write_bytes(b"q Q0 \xff 1 2 t\nq Q0 b 2 1 t\n")
    assert evaluated("-R", "prefs", "-m", "prefs_simp", qrels, run)[1].endswith("1.0000\n")


def test_python_takes_nested_dicts() -> None:
    run = {"q": {"a": 2.0, "b": 1.0}}
    prefs = {"q": {"g": {"s": {"a": 1.5, "b": 0}}}}
    assert trec.evaluate(prefs, run, ["prefs_simp"], qrels_format="prefs", summary=True) == {
        "prefs_simp": 1.0
    }
    for wrong in ({"q": {"g": {"a": 1}}}, {"q": {"g": {"s": {"a": "1"}}}}, {}):
        with pytest.raises(InputError):
            trec.evaluate(wrong, run, ["prefs_simp"], qrels_format="prefs")
    cycle = {"q": {"g": {"s": {"a": 2, "b": 1}, "t": {"b": 2, "a": 1}}}}
    with pytest.raises(InputError, match="each preferred"):
        trec.evaluate(cycle, run, ["prefs_simp"], qrels_format="prefs")
    with pytest.raises(UsageError, match="pairs: this qrels_format is unknown"):
        trec.evaluate(prefs, run, ["prefs_simp"], qrels_format="pairs")
    frame = trec.evaluate(prefs, run, ["prefs"], qrels_format="prefs", as_="frame")
    assert frame.loc["q", "prefs_avgjg"] == 1.0


def test_help_explains_each() -> None:
    for name, row in TABLE.items():
        if row.format != "qrels":
            text = "".join(evaluated("-h", "-m", name)[1].split())
            assert text.startswith("".join(f"{name} {row.text}".split())), name
