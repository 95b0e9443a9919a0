"""``kgtrec eval``: golden files, options, diagnostics, exit codes, several runs and formats.

The script tests/golden/make.py makes the golden files from definitions.
"""

from __future__ import annotations

import csv
import ctypes
import errno
import gzip
import io
import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import make
import numpy as np
import pytest
from transcripts import Ended, ended

from kgtrec._version import __version__
from kgtrec.trec.eval.output import trec_lines
from kgtrec.trec.eval.request import Request
from kgtrec.trec.eval.score import Scored

CASES = make.cases()


@pytest.mark.parametrize("name", CASES)
def test_output_is_that_of_the_golden_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make.HERE)
    printed = invoke(*shlex.split(CASES[name]))
    assert printed.code == 0, printed.err
    expected = (make.HERE / f"{name}.out").read_bytes()
    assert printed.out_bytes.splitlines() == expected.splitlines()
    assert printed.out_bytes == expected
    assert make.expected(CASES[name]) == expected


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in make.HERE.glob("*.out")} == set(CASES)
    assert len(CASES) >= 30


QRELS = "10 0 a 1\n10 0 b 0\n9 0 a 1\n9 0 z 1\n8 0 a 1\n"

RUN = "9 Q0 b 1 3 x\n9 Q0 a 2 2 x\n10 Q0 a 1 7 x\n7 Q0 a 1 1 sys\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return str(tmp_path / "qrels"), str(tmp_path / "run")


def invoke(*words: str, stdin: bytes = b"") -> Ended:
    return ended("eval", *words, stdin=stdin)


def line(measure: str, query: str, value: str) -> str:
    return f"{measure.ljust(22)}\t{query}\t{value}\n"


def refused(result: Ended, code: int, *words: str) -> None:
    """One sentence with these words, nothing printed, no traceback."""
    assert result.code == code, result
    assert result.out_bytes == b""
    assert result.err.startswith("kgtrec: ")
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def test_per_query_lines_then_summary_in_table_order(files) -> None:
    result = invoke("-q", "-m", "map_cut.20", "-mP_2,1", "-m", "num_ret", "-m", "runid", *files)
    assert result.code == 0
    assert result.out == (
        line("num_ret", "10", "1") + line("P_1", "10", "1.0000") + line("P_2", "10", "0.5000")
        + line("map_cut_20", "10", "1.0000")
        + line("num_ret", "9", "2") + line("P_1", "9", "0.0000") + line("P_2", "9", "0.5000")
        + line("map_cut_20", "9", "0.2500")
        + line("runid", "all", "sys") + line("num_ret", "all", "3") + line("P_1", "all", "0.5000")
        + line("P_2", "all", "0.5000") + line("map_cut_20", "all", "0.6250")
    )  # fmt: skip
    assert result.err == (
        "kgtrec: 1 of 3 queries of the qrels are not in the run; they are left out\n"
        "kgtrec: 1 of 3 queries of the run are not in the qrels; they are left out\n"
    )


@pytest.mark.parametrize(
    ("plain", "others"),
    [
        (["-q", "-n"], ["-qn", "-nq", "--per-query --no-summary",
                        "--query_eval_wanted --nosummary"]),
        (["-q", "-c"], ["-qc", "-cq", "-qq -c", "--complete -q", "-q --complete_rel_info_wanted"]),
        (["-l", "2"], ["-l2", "--relevance-level 2", "--relevance-level=2", "--level_for_rel 2",
            "-l 1 -l 2"]),
        (["-M", "1"], ["-M1", "--max-documents 1", "--Max_retrieved_per_topic=1"]),
        (["-N", "9", "-m", "utility.1,-1,0,1"],
         ["-N9 -mutility.1,-1,0,1", "--Number_docs_in_coll 9 --measure utility.1,-1,0,1"]),
        (["-J"], ["--judged-only", "--Judged_docs_only"]),
        (["-q", "-m", "map"], ["-qmmap", "-qm map", "--measure map -q", "-m map -q -o",
                               "-m map -q --Output_old_results_format x",
                               "-m map -q -D 0 -R qrels -T trec_results",
                               "-m map -q --Rel_info_format qrels --Results_format trec_results"]),
        (["-m", "P.5", "-m", "map"], ["-mmap -mP.5", "-m map -m P.5 -m P.10"]),
        ([], ["-m official", "-R qrels", "--compat 10", "-o", "--Debug_level 3", "-D0.10 -D 0"]),
    ],
)  # fmt: skip
def test_options_as_getopt_takes_them(files, plain: list[str], others: list[str]) -> None:
    expected = invoke(*plain, *files)
    assert expected.code == 0
    for other in others:
        words = other.split()
        assert invoke(*words, *files).out == expected.out, other
        assert invoke(files[0], *words, "--", files[1]).out == expected.out, other
    assert invoke(*files, *plain).out == expected.out


def test_a_negative_argument_is_no_option(files) -> None:
    refused(invoke("-l", "-1", *files), 1, "'-1'", "--relevance-level")


@pytest.mark.parametrize("option", ["-l", "-M", "-N", "--level_for_rel"])
def test_numbers_must_be_numbers(files, option: str) -> None:
    for text in ("abc", "1.5", "2x", "", "9999999999999999999"):
        refused(invoke(option, text, *files), 1, "Invalid value", repr(text))


def test_all_wrong_calls_at_once(files) -> None:
    qrels, run = files
    cases = {
        ("-m", "foo", "-m", "bar", qrels, "no such file"): (1, "'foo'", "'bar'"),
        (): (1, "Missing argument 'QRELS'"),
        (qrels,): (1, "Missing argument 'RUN'"),
        ("--nonsense", qrels, run): (1, "--nonsense"),
        ("-k", qrels, run): (1, "-k"),
        ("--compat", "8", qrels, run): (1, "'8'"),
        ("--format", "xml", qrels, run): (1, "'xml'"),
        ("-D", "x", qrels, run): (1, "'x'", "-D 1.QUERY"),
        ("-", "-"): (1, "standard input"),
        (qrels, run, run): (1, "named twice"),
        ("-m", "P.", qrels, run): (1, "'P.'"),
        ("-m", "P.0", qrels, run): (2, "'P.0'"),
        ("-m", "P.2147483648", qrels, run): (2, "from 1 to 2147483647"),
        ("-m", "relstring.2000000000", qrels, run): (2, "up to 10000000"),
        ("-m", "P.5,5", qrels, run): (2, "twice"),
        ("-m", "ndcg.1", qrels, run): (2, "'ndcg.1'"),
        ("-R", "prefs", qrels, run): (2, "-R prefs", "must have 5: query group subgroup"),
        ("-R", "nonsense", qrels, run): (2, "-R nonsense", "is unknown"),
        ("-T", "nonsense", qrels, run): (2, "-T nonsense"),
        ("-R", "prefs", "-m", "foo", qrels, run): (1, "'foo'"),
    }
    for args, (code, *words) in cases.items():
        refused(invoke(*args), code, *words)


def test_exit_codes_of_files(tmp_path: Path, files) -> None:
    qrels, run = files
    texts = {
        "twice": RUN + "9 Q0 b 9 9 x\n",
        "other": "other Q0 a 1 1 x\n",
        "empty": "",
        "five": "9 Q0 b 1 3 x\n9 Q0 a 2 2\n",
        "abc": "9 Q0 b 1 3 x\n9 Q0 a 2 abc x\n",
        "nan": "9 Q0 b 1 nan x\n",
        "half": "9 0 b 1.9\n",
        "huge": "9 0 b 9223372036854775808\n",
        "again": QRELS + "9 0 z 1\n",
        "blank": "9 0 b 1\n\n9 0 c 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def at(name: str) -> str:
        return str(tmp_path / name)

    refused(invoke(qrels, at("none")), 2, "none: ", "does not exist")
    refused(invoke(qrels, str(tmp_path)), 2, str(tmp_path), "folder")
    refused(invoke(run, qrels), 2, "run:1: ", "6 columns")
    refused(invoke(qrels, at("empty")), 2, "empty: ")
    refused(invoke(at("empty"), run), 2, "empty: ")
    refused(invoke(qrels, at("five")), 2, "five:2: ", "5 columns")
    refused(invoke(qrels, at("abc")), 2, "abc:2: ", "'abc'")
    refused(invoke(qrels, at("nan")), 2, "nan:1: ")
    refused(invoke(at("half"), run), 2, "half:1: ", "'1.9'")
    refused(invoke(at("huge"), run), 2, "huge:1: ", "'9223372036854775808'", "64 bits")
    refused(invoke(at("blank"), run), 2, "blank:2: ", "blank line")
    refused(invoke(qrels, at("twice")), 4, "twice:5: ", "'b'", "'9'")
    refused(invoke(at("again"), run), 4, "again:6: ", "'z'")
    refused(invoke(qrels, at("other")), 7, "other", "share no query")
    refused(invoke("-c", qrels, at("other")), 7, "share no query")
    refused(invoke("-D", "1.77", qrels, run), 7, "'77'")


def test_a_lack_of_memory_is_not_blamed_on_the_file(files, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_args: object, **_more: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("mmap.mmap", no_memory)
    monkeypatch.setattr("kgtrec.trec.files.text._PART", 0)  # as if the files were large
    result = invoke(*files)
    refused(result, 2, "out of memory", files[0], "allow more")
    assert "permissions" not in result.err


def test_queries_missing_from_the_run(files) -> None:
    result = invoke("-c", "-m", "num_q", "-m", "map", *files)
    assert result.out == line("num_q", "all", "3") + line("map", "all", "0.4167")
    first, second = result.err.splitlines()
    assert first.endswith("1 of 3 queries of the qrels are not in the run; "
                          "they count as if nothing were retrieved")  # fmt: skip
    assert second.endswith("1 of 3 queries of the run are not in the qrels; they are left out")


def test_one_query_only(files) -> None:
    result = invoke("-D", "1.9", "-q", "-m", "map", "-m", "num_q", *files)
    expected = line("map", "9", "0.2500") + line("num_q", "all", "1") + line("map", "all", "0.2500")
    assert result.out == expected


def test_nothing_wanted_prints_nothing(files) -> None:
    for arguments in (["-n"], ["-m", "relstring"], ["-qn", "-m", "runid"], ["-qn", "-m", "num_q"]):
        result = invoke(*arguments, *files)
        assert (result.code, result.out) == (0, "")


def test_parameters_that_count_for_nothing_are_named(files) -> None:
    result = invoke("-m", "P.1", "-m", "P.2", *files)
    assert result.out == line("P_1", "all", "0.5000")
    assert "-m P.2: " in result.err
    assert "ignored" in result.err


def test_engines_are_named_on_demand(files) -> None:
    result = invoke("--show-engines", "-m", "map", "-m", "rbp", *files)
    said = next(text for text in result.err.splitlines() if "pytrec_eval" in text)
    assert said.index("map") < said.index("rbp")
    assert result.out == invoke("-m", "map", "-m", "rbp", *files).out
    assert "pytrec_eval" not in invoke("-m", "map", "-m", "rbp", *files).err


# -- Help --------------------------------------------------------------------------------------


def test_help_teaches() -> None:
    result = invoke("--help")
    assert (result.code, result.err) == (0, "")
    assert invoke("-h").out == result.out
    for word in ("kgtrec eval -q -m map_cut.20", "-Z, --zscores FILE", "--compat [9|10]",
                 "Exit codes", "ndcg_cut", "rbp_resid", "official, set", "-h -m"):  # fmt: skip
        assert word in result.out
    assert max(map(len, result.out.splitlines())) <= 100


def test_help_of_measures(files) -> None:
    result = invoke("-h", "-m", "bpref")
    assert result.code == 0
    assert result.out.startswith("bpref\n    ")
    assert "Usage" not in result.out
    for words in (["-m", "bpref", "-h"], ["-hm", "bpref"], ["-q", "-mbpref", "-h", *files]):
        assert invoke(*words).out == result.out
    both = invoke("-h", "-m", "P.5", "-m", "bpref").out
    assert "bpref\n    " in both
    assert "P\n    " in both
    nickname = invoke("-h", "-m", "set").out
    for name in ("runid", "num_rel_ret", "utility", "set_P", "set_F"):
        assert f"{name}\n    " in nickname
    assert nickname.startswith("set: runid, num_q")
    refused(invoke("-h", "-m", "nonsense"), 1, "'nonsense'")


def test_version_on_standard_error() -> None:
    for words, followed in ((["-v"], "10.0"), (["--version", "--compat", "9"], "9.0.8")):
        result = invoke(*words)
        assert (result.code, result.out) == (0, "")
        expected = f"kgtrec eval {__version__}, following trec_eval version {followed}\n"
        assert result.err == expected


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from kgtrec.cli import main\n"
        "for words in (['--help'], ['-h', '-m', 'all_trec'], ['-v']):\n"
        "    sys.argv = ['kgtrec', 'eval', *words]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "kgtrec" in loaded
    assert not loaded & {"scipy", "pyarrow", "matplotlib", "pandas", "pytrec_eval", "tqdm"}


# -- Files -------------------------------------------------------------------------------------


def test_a_plain_evaluation_starts_quickly(files) -> None:
    """It loads only what it needs, and leaves the environment unchanged."""
    code = (
        "import os, sys\n"
        "before = dict(os.environ)\n"
        "from kgtrec.cli import main\n"
        "assert 'numpy' not in sys.modules  # its threads are configured first\n"
        f"sys.argv = ['kgtrec', 'eval', '-m', 'map', *{list(files)!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert dict(os.environ) == before\n"
        "needless = {'pyarrow', 'pandas', 'scipy', 'logging', 'kgtrec._internal.table',"
        " 'kgtrec.trec.eval.kg_metrics',"
        " 'kgtrec.trec.measures.ties', 'kgtrec.trec.files.columns'}\n"
        "print(sorted(needless & {*sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(files[0]).parent, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == line("map", "all", "0.6250") + "[]\n"


def test_packed_files_and_any_bytes(tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(b"\xff 0 \xfe 1\n")
    run = b"\xff Q0 \xfe 1 1 t\xfd\n"
    (tmp_path / "r.gz").write_bytes(gzip.compress(run))
    files = str(tmp_path / "q"), str(tmp_path / "r.gz")
    assert invoke("-m", "runid", *files).out_bytes == b"runid                 \tall\tt\xfd\n"
    expected = b"P_1                   \t%s\t1.0000\n"
    assert invoke("-q", "-m", "P.1", *files).out_bytes == expected % b"\xff" + expected % b"all"
    output = invoke("--format", "csv", "-qn", "-m", "P.1", *files).out_bytes
    assert output.endswith(b"\n\xff,P_1,1.0\n")


@pytest.mark.parametrize("piped", [0, 1])
def test_standard_input_for_either(files, piped: int) -> None:
    words = ["-q", "-m", "map", "-m", "runid"]
    names = list(files)
    content = Path(names[piped]).read_bytes()
    names[piped] = "-"
    assert invoke(*words, *names, stdin=content) == invoke(*words, *files)


def test_a_closed_standard_input_gets_a_sentence(files) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m kgtrec eval {shlex.quote(files[0])} - <&-"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=Path(files[0]).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kgtrec: standard input: ")
    assert "Traceback" not in done.stderr


# -- Several runs and formats ------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path, files) -> list[str]:
    """Qrels, and two runs with one tag that answer different queries."""
    (tmp_path / "b.run").write_text("8 Q0 a 1 1 sys\n9 Q0 a 2 2 sys\n9 Q0 z 2 1 sys\n")
    return [*files, str(tmp_path / "b.run")]


def test_a_block_per_run(three) -> None:
    qrels, first, second = three
    arguments = ["-q", "-m", "map", "-m", "runid"]
    result = invoke(*arguments, *three)
    assert result.out == (
        line("run_file", "all", first) + invoke(*arguments, qrels, first).out
        + line("run_file", "all", second) + invoke(*arguments, qrels, second).out
    )  # fmt: skip
    notes = result.err.splitlines()
    assert [note.split(": ")[1] for note in notes] == [first, first, second]


def test_one_faulty_run_of_several(tmp_path: Path, three) -> None:
    (tmp_path / "bad").write_text("9 Q0 a 1 x t\n")
    refused(invoke("-q", *three, str(tmp_path / "bad")), 2, "bad:1: ", "'x'")
    (tmp_path / "far").write_text("far Q0 a 1 1 t\n")
    refused(invoke("-q", *three, str(tmp_path / "far")), 7, "far")


def test_csv_and_tsv_in_full_precision(three) -> None:
    _, first, second = three
    arguments = ["-m", "num_q", "-m", "map", "-m", "runid", "-m", "gm_map"]
    text = invoke("--format", "csv", *arguments, *three).out
    # map of query 9: (1/2)/2 in the first run, 1 in the second.
    assert list(csv.reader(io.StringIO(text))) == [
        ["measure", first, second], ["runid", "sys", "sys"], ["num_q", "2", "2"],
        ["map", "0.625", "1.0"], ["gm_map", "0.5", "1.0"],
    ]  # fmt: skip
    assert invoke("--format", "tsv", *arguments, *three).out == text.replace(",", "\t")


def test_csv_per_query_leaves_cells_empty(three) -> None:
    text = invoke("--format", "csv", "-qn", "-m", "map", "-m", "relstring", *three).out
    assert text.splitlines()[1:] == [
        "10,map,1.0,", "10,relstring,'1',", "8,map,,1.0", "8,relstring,,'1'",
        "9,map,0.25,1.0", "9,relstring,'-1','11'",
    ]  # fmt: skip
    text = invoke("--format", "csv", "-q", "-m", "num_ret", *three).out
    assert text.splitlines()[1:] == ["10,num_ret,1,", "8,num_ret,,1", "9,num_ret,2,2",
                                     "all,num_ret,3,3"]  # fmt: skip


def test_json_is_the_same_for_one_run_and_several(three) -> None:
    qrels, first, second = three
    arguments = ["--format", "json", "-q", "-m", "map", "-m", "num_ret", "-m", "relstring",
                 "-m", "P.3"]  # fmt: skip
    runs = json.loads(invoke(*arguments, *three).out)
    assert list(runs) == [first, second]
    assert runs[first]["queries"]["9"] == {
        "num_ret": 2, "map": 0.25, "P_3": 1 / 3, "relstring": "-1",
    }  # fmt: skip
    assert list(runs[second]["queries"]) == ["8", "9"]
    assert runs[first]["summary"] == {"num_ret": 3, "map": 0.625, "P_3": 1 / 3}
    assert isinstance(runs[first]["summary"]["num_ret"], int)
    alone = json.loads(invoke(*arguments, qrels, second).out)
    assert alone == {second: runs[second]}
    short = json.loads(invoke("--format", "json", "-m", "map", qrels, first).out)
    assert short == {first: {"summary": {"map": 0.625}}}


def test_markdown_and_latex_name_runs_apart(tmp_path: Path, three) -> None:
    qrels, first, _ = three
    result = invoke("--format", "markdown", "-m", "map", "-m", "num_q", "-m", "P.5", *three)
    assert result.out.splitlines() == [
        "| measure | run | b.run |", "| --- | ---: | ---: |", "| num_q | 2 | 2 |",
        "| map | 0.6250 | 1.0000 |", "| P_5 | 0.2000 | 0.3000 |",
    ]  # fmt: skip
    (tmp_path / "other").mkdir()
    namesake = tmp_path / "other" / "run"
    namesake.write_text(RUN)
    text = invoke("--format", "latex", "-m", "map", qrels, first, str(namesake)).out
    assert r"map & 0.6250 & 0.6250 \\" in text.splitlines()
    assert str(namesake).replace("_", r"\_") in text


# -- z-scores ----------------------------------------------------------------------------------


def test_zscores_say_what_is_missing(tmp_path: Path, files) -> None:
    reference = tmp_path / "z"
    reference.write_text("10 map 0.5 0.25\n9 map 0.25 0\n")
    result = invoke("-q", "-m", "map", "-m", "num_q", "-Z", str(reference), *files)
    assert result.out == (
        "Z" + line("map", "10", "2.0000") + "Z" + line("map", "9", "0.0000")
        + "Z" + line("num_q", "all", "2.0000") + "Z" + line("map", "all", "1.0000")
    )  # fmt: skip
    assert "no mean" not in result.err
    (tmp_path / "z.gz").write_bytes(gzip.compress(reference.read_bytes()))
    packed = invoke("-q", "-m", "map", "-m", "num_q", "-Z", f"{reference}.gz", *files)
    assert packed.out == result.out
    result = invoke("-m", "Rprec", "--Zscore", str(reference), *files)
    assert result.out == "Z" + line("Rprec", "all", "-1000000.0000")
    assert "2 values have no mean and deviation" in result.err
    table = invoke("--format", "csv", "-m", "map", "-Z", str(reference), *files).out
    assert table.splitlines()[1] == "Zmap,1.0"


def test_a_reference_of_nothing_but_nan(tmp_path: Path, files) -> None:
    """As in files of old versions, which divided 0 by 0: no refusal, and no number."""
    reference = tmp_path / "z"
    reference.write_text("10 map 0.5 0.25\n9 map nan nan\n10 Rprec nan 0\n9 Rprec 0 NaN\n")
    result = invoke("-q", "-m", "map", "-m", "Rprec", "-Z", str(reference), *files)
    assert result.out == "".join(
        "Z" + line(*row)
        for row in (
            ("map", "10", "2.0000"), ("Rprec", "10", "-1000000.0000"),
            ("map", "9", "   nan"), ("Rprec", "9", "   nan"),
            ("map", "all", "   nan"), ("Rprec", "all", "   nan"),
        )
    )  # fmt: skip
    assert "1 values have no mean and deviation" in result.err
    table = json.loads(invoke("--format", "json", "-m", "map", "-Z", str(reference), *files).out)
    assert table[files[1]]["summary"] == {"Zmap": None}


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("10 map 0.5\n", ":1: ", "3 columns"),
        ("10 map 0.5 1 x\n", ":1: ", "5 columns"),
        ("9 map 1 1\n\n10 map 0.5 1\n", ":2: ", "empty line"),
        ("9 map 1 1\n10 map abc 1\n", ":2: ", "'abc'"),
        ("9 map 1 nano\n", ":1: ", "'nano'"),
        ("9 map inf 1\n", ":1: ", "'inf'"),
        ("9 map 1_0 1\n", ":1: ", "'1_0'"),
        ("9 map 1 -1\n", ":1: ", "'-1'"),
        ("9 map 1 1\n9 P_5 1 1\n9 map 2 1\n", ":3: ", "twice"),
        ("", ": ", "no line"),
        (None, ": ", ""),
    ],
)
def test_faults_of_a_zscore_file(tmp_path: Path, files, text, place: str, word: str) -> None:
    reference = tmp_path / "reference"
    if text is not None:
        reference.write_text(text)
    refused(invoke("-Z", str(reference), *files), 2, f"reference{place}", word)


# -- Numbers as C prints them ------------------------------------------------------------------


def test_odd_numbers_are_printed_as_in_c() -> None:
    names = ["map", "num_ret", "recip_rank"]
    request = Request("", ["r"], names, per_query=True)
    odd = [math.nan, -math.nan, math.inf, -math.inf, -0.0, -0.00004, 0.00005, 12345.67891]
    plain = np.arange(len(odd)) / 8
    values = {"map": np.array(odd), "num_ret": np.arange(len(odd)) * 1.0, "recip_rank": plain}
    total = {"map": math.inf, "num_ret": 2**40, "recip_rank": 0.0}
    scored = Scored("r", [*"abcdefgh"], values, total, 8, 8, 0, 0)
    text = b"".join(trec_lines(scored, request)).decode()
    rows = [line.split("\t") for line in text.splitlines()]
    assert {tuple(line[:2]) for line in rows} >= {(f"{name:<22s}", "a") for name in names}
    libc = ctypes.CDLL(None)
    for (name, _, printed), value in zip(
        rows, [v for row in zip(values["num_ret"], odd, plain, strict=True) for v in row],
        strict=False,
    ):  # fmt: skip
        buffer = ctypes.create_string_buffer(64)
        if name.startswith("num"):
            libc.snprintf(buffer, 64, b"%ld", ctypes.c_long(int(value)))
        else:
            libc.snprintf(buffer, 64, b"%6.4f", ctypes.c_double(value))
        assert printed == buffer.value.decode()
    end = line("num_ret", "all", str(2**40)) + line("map", "all", "   inf")
    assert text.endswith(end + line("recip_rank", "all", "0.0000"))


def test_many_queries_are_printed_in_order() -> None:
    """More than are formatted at once."""
    request = Request("", ["r"], ["P.1", "relstring"], per_query=True, summary=False)
    count = 4_321
    values = {"P_1": np.arange(count) * 1.0, "relstring": np.array(["01%"] * count, object)}
    queries = [f"q%s{number}" for number in range(count)]
    scored = Scored("r", queries, values, {"P_1": 0.5}, count, count, 0, 0)
    text = b"".join(trec_lines(scored, request)).decode()
    assert text == "".join(
        line("P_1", query, f"{place}.0000") + line("relstring", query, "'01%'")
        for place, query in enumerate(queries)
    )
