"""``kgtrec eval``: output to the byte, diagnostics, exit codes."""

from __future__ import annotations

import gzip
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgtrec.cli import main

QRELS = "10 0 a 1\n10 0 b 0\n9 0 a 1\n9 0 z 1\n8 0 a 1\n"
RUN = "9 Q0 b 1 3 x\n9 Q0 a 2 2 x\n10 Q0 a 1 7 x\n7 Q0 a 1 1 sys\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return str(tmp_path / "qrels"), str(tmp_path / "run")


@dataclass
class Result:
    exit_code: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capfdbinary):
    """Call the command line as the installed script does."""

    def call(*args: str) -> Result:
        monkeypatch.setattr("sys.argv", ["kgtrec", "eval", *args])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capfdbinary.readouterr()
        return Result(end.value.code, captured.out, captured.err.decode())

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main() replaces it
    return call


def line(measure: str, query: str, value: str) -> str:
    return f"{measure.ljust(22)}\t{query}\t{value}\n"


def test_per_query_lines_then_summary_in_table_order(invoke, files) -> None:
    asked = ["-m", "map_cut.20", "-mP_2,1", "-m", "set"]
    result = invoke("-q", *asked, *files)
    assert result.exit_code == 0
    per_query = {"num_ret": "{}", "num_rel": "{}", "num_rel_ret": "1", "P_1": "{}", "P_2": "0.5000",
                 "utility": "{}", "map_cut_20": "{}"}  # fmt: skip
    first = "".join(
        line(name, "10", text.format(value))
        for (name, text), value in zip(
            per_query.items(), ["1", "1", "", "1.0000", "", "1.0000", "1.0000"], strict=True
        )
    )
    assert result.stdout.startswith(first)
    end = (
        line("num_q", "all", "2")
        + line("num_ret", "all", "3")
        + line("num_rel", "all", "3")
        + line("num_rel_ret", "all", "2")
        + line("P_1", "all", "0.5000")
        + line("P_2", "all", "0.5000")
        + line("utility", "all", "0.5000")
        + line("map_cut_20", "all", "0.6250")
        + line("set_P", "all", "0.7500")
        + line("set_relative_P", "all", "0.7500")
        + line("set_recall", "all", "0.7500")
        + line("set_map", "all", "0.6250")
        + line("set_F", "all", "0.7500")
    )
    assert result.stdout.endswith(line("runid", "all", "sys") + end)
    queries = [text.split("\t")[1] for text in result.stdout.splitlines()]
    assert list(dict.fromkeys(queries)) == ["10", "9", "all"]  # byte order
    assert "runid                 \t9" not in result.stdout
    assert result.stderr == (
        "kgtrec eval: 1 of 3 queries of the qrels are not in the run and "
        "1 of 3 queries of the run are not in the qrels; they are left out\n"
    )


def test_official_is_the_default(invoke, files) -> None:
    result = invoke(*files)
    assert result.stdout == invoke("-m", "official", *files).stdout
    names = [text.split("\t")[0].strip() for text in result.stdout.splitlines()]
    assert names[:10] == ["runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map",
                          "Rprec", "bpref", "recip_rank"]  # fmt: skip
    assert names[10] == "iprec_at_recall_0.00"
    assert names[-1] == "P_1000"
    assert len(names) == 30
    assert line("gm_map", "all", "0.5000") in result.stdout


def test_all_trec_says_what_it_leaves_out(invoke, files) -> None:
    assert "relstring" in invoke("-q", "-m", "all_trec", *files).stderr
    assert "relstring" not in invoke("-m", "all_trec", *files).stderr


def test_runid_alone_and_any_bytes(invoke, tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(b"\xff 0 \xfe 1\n")
    with gzip.open(tmp_path / "r.gz", "wb") as out:
        out.write(b"\xff Q0 \xfe 1 1 t\xfd\n")
    files = str(tmp_path / "q"), str(tmp_path / "r.gz")
    assert invoke("-m", "runid", *files).stdout_bytes == b"runid                 \tall\tt\xfd\n"
    expected = b"P_1                   \t%s\t1.0000\n"
    assert invoke("-q", "-m", "P.1", *files).stdout_bytes == expected % b"\xff" + expected % b"all"


def test_exit_codes(invoke, tmp_path: Path, files) -> None:
    qrels, run = files
    twice = tmp_path / "twice"
    twice.write_text(RUN + "9 Q0 b 9 9 x\n")
    other = tmp_path / "other"
    other.write_text("other Q0 a 1 1 x\n")
    cases = {
        ("-m", "foo", "-m", "bar", qrels, "no such file"): (1, "'foo'"),
        (qrels,): (1, "Missing argument 'RUN'"),
        ("--nonsense", qrels, run): (1, "--nonsense"),
        ("-m", "P.0", qrels, run): (2, "'P.0'"),
        (qrels, "none"): (2, "no such file"),
        (run, qrels): (2, ":1: "),
        (qrels, str(twice)): (4, "twice:5: "),
        (qrels, str(other)): (7, "share no query"),
    }
    for args, (code, text) in cases.items():
        result = invoke(*args)
        assert result.exit_code == code, args
        assert result.stdout == ""
        assert text in result.stderr
        assert "Traceback" not in result.stderr
