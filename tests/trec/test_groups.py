"""Preferences and several assessors: slow definitions, worked examples, and their faults."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from group_oracle import Line, Refused, assessor_values, preference_values
from slow import slow_after

from kgtrec import trec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.trec.measures import judgement_groups, preferences
from kgtrec.trec.measures.rows import TABLE

# Ties in evaluated scores are intended here, or drawn.
pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.TieWarning")

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
