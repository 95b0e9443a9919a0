"""``kgtrec eval``: golden files, options, streams and agreement with `kgtrec compare`.

tests/golden/make.py makes the golden files from definitions; tests/golden/cli/eval.txt has notes,
refusals, formats, ties, intervals and micro metrics.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import make
import numpy as np
import pytest
from transcripts import Outcome, run_command

from kgtrec._version import __version__
from kgtrec.trec.eval.output import trec_text
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


def invoke(*words: str, stdin: bytes = b"") -> Outcome:
    return run_command("eval", *words, stdin=stdin)


def line(measure: str, query: str, value: str) -> str:
    return f"{measure.ljust(22)}\t{query}\t{value}\n"


def refused(result: Outcome, code: int, *words: str) -> None:
    """One sentence with these words, nothing printed, no traceback."""
    assert result.code == code, result
    assert result.out_bytes == b""
    assert result.err.startswith("kgtrec: ")
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def test_unknown_options() -> None:
    """Not in a transcript: similar names are click's, and depend on its version."""
    for option in ("--nonsense", "-k"):
        refused(invoke(option, "qrels", "run"), 1, "has no option", option)


@pytest.mark.parametrize(
    ("plain", "others"),
    [
        (
            ["-q", "-n"],
            ["-qn", "-nq", "--per-query --no-summary", "--query_eval_wanted --nosummary"],
        ),
        (["-q", "-c"], ["-qc", "-cq", "-qq -c", "--complete -q", "-q --complete_rel_info_wanted"]),
        (
            ["-l", "2"],
            ["-l2", "--relevance-level 2", "--relevance-level=2", "--level_for_rel 2", "-l 1 -l 2"],
        ),
        (["-M", "1"], ["-M1", "--max-documents 1", "--Max_retrieved_per_topic=1"]),
        (
            ["-N", "9", "-m", "utility.1,-1,0,1"],
            ["-N9 -mutility.1,-1,0,1", "--Number_docs_in_coll 9 --measure utility.1,-1,0,1"],
        ),
        (["-J"], ["--judged-only", "--Judged_docs_only"]),
        (
            ["-q", "-m", "map"],
            [
                "-qmmap",
                "-qm map",
                "--measure map -q",
                "-m map -q -o",
                "-m map -q --Output_old_results_format x",
                "-m map -q -D 0 -R qrels -T trec_results",
                "-m map -q --Rel_info_format qrels --Results_format trec_results",
            ],
        ),
        (["-m", "P.5", "-m", "map"], ["-mmap -mP.5", "-m map -m P.5 -m P.10"]),
        ([], ["-m official", "-R qrels", "--compat 10", "-o", "--Debug_level 3", "-D0.10 -D 0"]),
    ],
)
def test_options_as_getopt_takes_them(files, plain: list[str], others: list[str]) -> None:
    expected = invoke(*plain, *files)
    assert expected.code == 0
    for other in others:
        words = other.split()
        assert invoke(*words, *files).out == expected.out, other
        assert invoke(files[0], *words, "--", files[1]).out == expected.out, other
    assert invoke(*files, *plain).out == expected.out


def test_a_lack_of_memory_is_not_blamed_on_the_file(files, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_args: object, **_more: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("mmap.mmap", no_memory)
    monkeypatch.setattr("kgtrec.trec.files.text._PART", 0)  # as if the files were large
    result = invoke(*files)
    refused(result, 2, "out of memory", files[0], "allow more")
    assert "permissions" not in result.err


# -- Help --------------------------------------------------------------------------------------


def test_help_teaches(files) -> None:
    result = invoke("--help")
    assert (result.code, result.err) == (0, "")
    assert invoke("-h").out == result.out
    for word in (
        "kgtrec eval -q -m map_cut.20",
        "-Z, --zscores FILE",
        "--compat [9|10]",
        "Exit codes",
        "ndcg_cut",
        "rbp_resid",
        "official, set",
        "-h -m",
        "--ci PERCENT",
        "--ties [expected|min|max]",
        "--n-entities N",
        "kg_amri",
    ):
        assert word in result.out
    assert max(map(len, result.out.splitlines())) <= 100
    one = invoke("-h", "-m", "bpref").out
    for words in (["-m", "bpref", "-h"], ["-hm", "bpref"], ["-q", "-mbpref", "-h", *files]):
        assert invoke(*words).out == one
    for name in ("", "templates", "sheets", "serve", "export", "check", "agreement", "merge"):
        text = run_command("judge", *name.split(), "--help").out
        assert f"kgtrec judge {name}".strip() in text.partition("\n")[2]
        assert max(map(len, text.splitlines())) <= 100


def test_version_on_standard_error() -> None:
    for words, followed in ((["-v"], "10.0"), (["--version", "--compat", "9"], "9.0.8")):
        result = invoke(*words)
        assert (result.code, result.out) == (0, "")
        expected = f"kgtrec eval {__version__}, following trec_eval version {followed}\n"
        assert result.err == expected


# -- Files -------------------------------------------------------------------------------------


def test_a_plain_evaluation_starts_quickly(files) -> None:
    """It loads only what it needs, and leaves the environment unchanged."""
    code = (
        "import os, sys\n"
        "before = dict(os.environ)\n"
        "from kgtrec.cli import main\n"
        "assert 'numpy' not in sys.modules  # its threads are configured first\n"
        f"for words in (['--help'], ['-h', '-m', 'all_trec'], ['-m', 'map', *{list(files)!r}]):\n"
        "    sys.argv = ['kgtrec', 'eval', *words]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "assert dict(os.environ) == before\n"
        "needless = {'pyarrow', 'pandas', 'scipy', 'matplotlib', 'pytrec_eval', 'tqdm', 'logging',"
        " 'kgtrec._internal.table',"
        " 'kgtrec.trec.eval.kg_metrics',"
        " 'kgtrec.trec.measures.ties', 'kgtrec.trec.files.columns'}\n"
        "print(sorted(needless & {*sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(files[0]).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith(line("map", "all", "0.6250") + "[]\n")


def test_packed_files_and_any_bytes(tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(b"\xff 0 \xfe 1\n")
    run = b"\xff Q0 \xfe 1 1 t\xfd\n"
    (tmp_path / "r.gz").write_bytes(gzip.compress(run))
    files = str(tmp_path / "q"), str(tmp_path / "r.gz")
    assert invoke("-m", "runid", *files).out_bytes == b"runid                 \tall\tt\xfd\n"
    expected = b"P_1                   \t%s\t1.0000\n"
    assert invoke("-q", "-m", "P.1", *files).out_bytes == expected % b"\xff" + expected % b"all"
    output = invoke("--format", "csv", "-qn", "-m", "P.1", *files).out_bytes
    assert output.endswith(b"\n\\xff,P_1,1.0\n")
    (tmp_path / "z.gz").write_bytes(gzip.compress(b"\xff P_1 0.5 0.25\n"))
    scores = invoke("-Z", str(tmp_path / "z.gz"), "-m", "P.1", *files).out
    assert scores == "Z" + line("P_1", "all", "2.0000")


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


# -- Numbers as C prints them ------------------------------------------------------------------


def test_odd_numbers_are_printed_as_in_c() -> None:
    names = ["map", "num_ret", "recip_rank"]
    request = Request("", ["r"], names, per_query=True)
    odd = [math.nan, -math.nan, math.inf, -math.inf, -0.0, -0.00004, 0.00005, 12345.67891]
    plain = np.arange(len(odd)) / 8
    values = {"map": np.array(odd), "num_ret": np.arange(len(odd)) * 1.0, "recip_rank": plain}
    total = {"map": math.inf, "num_ret": 2**40, "recip_rank": 0.0}
    scored = Scored("r", [*"abcdefgh"], values, total, 0, 0)
    text = trec_text([scored], request).decode()
    rows = [line.split("\t") for line in text.splitlines()]
    assert {tuple(line[:2]) for line in rows} >= {(f"{name:<22s}", "a") for name in names}
    libc = ctypes.CDLL(None)
    for (name, _, printed), value in zip(
        rows,
        [v for row in zip(values["num_ret"], odd, plain, strict=True) for v in row],
        strict=False,
    ):
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
    scored = Scored("r", queries, values, {"P_1": 0.5}, 0, 0)
    text = trec_text([scored], request).decode()
    assert text == "".join(
        line("P_1", query, f"{place}.0000") + line("relstring", query, "'01%'")
        for place, query in enumerate(queries)
    )


# -- Beyond trec_eval ---------------------------------------------------------------------------


def test_plain_output_has_the_same_bytes_whatever_is_tied(tmp_path: Path) -> None:
    """Counting ties reads more documents; the output does not change."""
    (tmp_path / "q").write_text("1 0 d5 1\n1 0 d8 1\n")
    tied = "".join(f"1 Q0 d{i} 1 1.0 t\n" for i in range(10))
    clear = "".join(f"1 Q0 d{i} 1 {i} t\n" for i in range(10))
    for options in (
        ["-m", "P.2", "-m", "map_cut.2"],
        ["-M3"],
        ["-M3", "-J"],
        ["-qM4", "-c"],
        ["-m", "all_trec"],
        ["-m", "all_trec", "-J"],
        ["-m", "P.2", "-J"],
    ):
        outputs = []
        for text in (tied, clear):
            (tmp_path / "r").write_text(text)
            code, out, _ = invoke(*options, str(tmp_path / "q"), str(tmp_path / "r"))
            assert code == 0
            outputs.append(out)
        assert outputs[0] == outputs[1], options
