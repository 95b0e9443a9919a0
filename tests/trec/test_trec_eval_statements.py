"""Preferences and several assessors: known facts, worked examples, faults, slow definitions."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from slow import slow_after
from trec_oracle import Contradiction, Line, assessor_values, preference_values

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, KgtrecError, UsageError
from kgtrec.trec.measures import judgement_groups, preferences
from kgtrec.trec.measures.rows import TABLE

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")


CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


class Ended(NamedTuple):
    code: int
    out: str
    said: str


def call(folder: Path, arguments: str, qrels: str, run: str) -> Ended:
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
    ("a document twice in a group", "-R qrels_jg", "q g a 1\nq g a 1\n", 2, "duplicate docs"),
    ("a document again after another group", "-R qrels_jg", "q g a 1\nq h a 1\nq g a 2\n", 2,
     "qrels:3: "),
    ("a level that is no number", "-R prefs", "q g s a x\n", 2, "level 'x'"),
    ("a level that is infinite", "-R qrels_prefs", "q g a 1\nq g b inf\n", 2, ":2: level 'inf'"),
    ("a level with an underscore", "-R qrels_prefs", "q g a 1_0\n", 2, "level '1_0'"),
    ("a relevance that is not whole", "-R qrels_jg", "q g b 1\nq g a 1.9\n", 2,
     ":2: relevance '1.9'"),
    ("a relevance beyond 64 bits", "-R qrels_jg", "q g b 99999999999999999999\n", 2,
     "whole number"),
    ("a blank line, by its physical number", "-R prefs", "# x\n\nq g s a 1\n", 2,
     ":2: a blank line"),
    ("too few fields", "-R prefs", "q g s a 1\nq g b 0\n", 2, ":2: 4 columns"),
    ("too many fields", "-R qrels_jg", "q g s a 1\n", 2, "5 columns"),
    ("a comment behind a blank", "-R qrels_prefs", "# one\nq g a 1\n # q g a 1\n", 2,
     ":3: 5 columns"),
    ("no lines, read before the run", "-R prefs", "# only\n", 2, "contains no lines"),
    ("different levels", "-R prefs", "q g s a 1\nq g s b 1\nq g s a 0\n", 4,
     ":3: "),
    ("both 0 and not", "-R prefs", "q g s a 1\nq g t a 0\nq g t b 1\n", 4, "both 0 and non-0"),
    ("a cycle of two", "-R prefs", "q g s a 2\nq g s b 1\nq g t b 2\nq g t a 1\n", 4,
     "Pref inconsistency"),
    ("a cycle of three", "-R prefs",
     "q g s a 2\nq g s b 1\nq g t b 2\nq g t c 1\nq g u c 2\nq g u a 1\n", 4,
     "query 'q', group 'g'"),
]  # fmt: skip

# Refused before any file is read: there is none.
GROUP_MISTAKES = [
    ("-R qrels_jg -l -1", 2, "'-1'"), ("-R prefs -m map", 4, "'map'"),
    ("-R qrels_jg -m prefs_simp", 4, "'prefs_simp'"), ("-m prefs_simp", 4, "'prefs_simp'"),
    ("-m qrels_jg", 4, "avgjg"), ("-R prefs -m official", 4, ""), ("-R qrels_jg -m num_ret", 4, ""),
    ("-R pairs", 2, "-R pairs"), ("-R prefs -m prefs_simp.", 1, "'prefs_simp.'"),
    ("-R qrels_jg -m P_avgjg.5,5", 2, ""), ("-R qrels_jg -m P_avgjg.0", 2, ""),
    ("-R qrels_jg -m P_avgjg.x", 2, ""), ("-R qrels_jg -m Rprec_mult_avgjg.1,1", 2, ""),
    ("-R prefs --ties expected", 1, ""), ("-R prefs -m kg_mrr", 1, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "judged", "code", "word"),
    [row[1:] for row in GROUP_FAULTS], ids=[row[0] for row in GROUP_FAULTS],
)  # fmt: skip
def test_faults_of_other_formats(
    arguments: str, judged: str, code: int, word: str, tmp_path: Path
) -> None:
    ended = call(tmp_path, arguments, judged, ABC if code == 4 else "nonsense\n")
    assert (ended.code, ended.out) == (code, "")
    assert ended.said.startswith(f"{tmp_path}/qrels")
    assert word in ended.said
    assert "; " in ended.said


@pytest.mark.parametrize(("arguments", "code", "word"), GROUP_MISTAKES)
def test_wrong_calls(arguments: str, code: int, word: str) -> None:
    done = CliRunner().invoke(cli, ["eval", *arguments.split(), "missing", "missing"])
    said = str(done.exception) + done.stderr
    assert (getattr(done.exception, "exit_code", done.exit_code), done.stdout) == (code, "")
    assert word in said
    assert "missing" not in said


DOCS = [f"d{i}" for i in range(9)]

JG = ["map_avgjg", "P_avgjg.1,2,5", "Rprec_mult_avgjg.-0.5,0.5,1,2.5"]


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


@pytest.mark.parametrize("trials", slow_after(1, [40, 150]))
@pytest.mark.parametrize("form", ["prefs", "qrels_prefs"])
def test_preferences_are_those_of_the_slow_definition(
    form: str, trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    n_subgroups = 3 if form == "prefs" else 1
    seen: Counter[str] = Counter()
    for trial in range(trials):
        if trial == trials // 2:  # the closure by rows of bits
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
        except Contradiction:
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
    for _ in range(40):
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


# -- The command line ----------------------------------------------------------------------------


def judged_by(judged: str, *documents: str, score: float | None = None) -> tuple[str, str]:
    """Qrels from "group[ subgroup] document level" separated by commas, and a run, of query q."""
    run = (f"q Q0 {d} 0 {-i if score is None else score} tag\n" for i, d in enumerate(documents))
    return "".join(f"q {line.strip()}\n" for line in judged.split(",")), "".join(run)


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
    for flags, query, lead in (("-q -n", "q", ""), ("", "all", "runid all tag; num_q all 1;")):
        values = zip(PREFS, due.split(), strict=False)
        text = lead + ";".join(f"{name} {query} {value}" for name, value in values)
        ended = call(
            tmp_path, f"-R {form} {flags} -m {measure}", *judged_by(judged, *shown.split())
        )
        assert ended == (0, lines(text), "")


# The relevant one of three is second in both orders by name, and could be first; with all three
# at one level, no order changes anything.
@pytest.mark.parametrize(
    ("form", "measure", "judged", "value", "said"),
    [
        ("qrels_prefs", "prefs_simp", "g a 1, g b 0", "1.0000", True),
        ("qrels_jg", "map_avgjg", "g a 1, g b 0", "0.5000", True),
        ("qrels_prefs", "prefs_simp", "g a 0, g b 1, g c 0", "0.5000", True),
        ("qrels_jg", "map_avgjg", "g a 0, g b 1, g c 0", "0.5000", True),
        ("qrels_jg", "map_avgjg", "g a 1, g b 1, g c 1", "1.0000", False),
    ],
)
def test_ties_go_by_name_and_are_said(form, measure, judged, value, said, tmp_path: Path) -> None:
    note = "kgtrec: 1 of 1 queries have ties that could change these measures\n"
    files = judged_by(judged, *"abc"[: judged.count("g")], score=1.0)
    ended = call(tmp_path, f"-R {form} -m {measure}", *files)
    assert ended == (0, lines(f"{measure} all {value}"), note * said)


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
        groups = {"q": {"g0": {document: int(level) for _, _, _, document, level in lines}}}
        values = set()
        for order in permutations(range(n)):
            apart = {DOCS[d]: ties[DOCS[d]] + place / 100 for d, place in enumerate(order)}
            row = trec.evaluate(groups, {"q": apart}, names, qrels_format=form)["q"]
            values.add(tuple(round(value, 9) for value in row.values()))
        qrels, run = write(tmp_path, form, lines, {"q": ties})
        words = ["eval", "-R", form, "-m", names[0], str(qrels), str(run)]
        said = "ties" in CliRunner().invoke(cli, words).stderr
        assert not said or len(values) > 1
        missed += (len(values) > 1) and not said
        said_of += said
    assert said_of > 8
    assert missed == 0


def test_several_runs_tables_intervals_and_z_scores(tmp_path: Path) -> None:
    qrels = "q g a 1\nq g b 0\np g a 1\np g b 0\n"
    run = "q Q0 a 0 0 tag\nq Q0 b 0 -1 tag\np Q0 b 0 1 tag\n"
    (tmp_path / "other").write_text("q Q0 b 0 2 two\nq Q0 a 0 1 two\np Q0 a 0 1 two\n")
    (tmp_path / "z").write_text(
        "q prefs_simp 0.5 0.25\np prefs_simp 0 1\nq prefs_num_prefs_ful 0 1\n"
    )
    base = "-R qrels_prefs -m prefs_simp -m prefs_num_prefs_ful"
    call(tmp_path, base, qrels, run)
    files = [str(tmp_path / name) for name in ("qrels", "run", "other")]
    done = CliRunner().invoke(cli, ["eval", *base.split(), "--format", "tsv", *files])
    assert done.stdout.splitlines()[1:] == ["prefs_num_prefs_ful\t1\t1", "prefs_simp\t0.5\t0.5"]
    assert CliRunner().invoke(cli, ["eval", *base.split(), *files]).stdout.count("run_file") == 2
    assert (
        "prefs_simp_ci95_low   \tall\t0.0000\n" in call(tmp_path, f"{base} --ci 95", qrels, run).out
    )
    assert call(tmp_path, f"{base} -q -Z FOLDER/z", qrels, run).out == (
        "Zprefs_num_prefs_ful   \tp\t-1000000.0000\nZprefs_simp            \tp\t0.0000\n"
        "Zprefs_num_prefs_ful   \tq\t1.0000\nZprefs_simp            \tq\t2.0000\n"
        "Zprefs_num_prefs_ful   \tall\t-999999.0000\nZprefs_simp            \tall\t1.0000\n"
    )
    assert "\tq\t" not in call(tmp_path, f"{base} -q -n -D 1.p", qrels, run).out


def test_parameters_of_preferences_are_ignored(tmp_path: Path) -> None:
    judged = "q g s a 1\nq g s b 0\n"
    plain = call(tmp_path, "-R prefs -m prefs_simp", judged, ABC)
    ended = call(tmp_path, "-R prefs -m prefs_simp.3", judged, ABC)
    assert ended[:2] == plain[:2]
    assert "parameters are ignored" in ended.said


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
