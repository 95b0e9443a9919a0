"""Every option refuses extreme values in one sentence, and every text is safe to print."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
from pathlib import Path

import click
import fuzz_options
import numpy as np
import pytest
from slow import slow_after
from transcripts import run_command

from kgtrec._internal.text import LONGEST_MESSAGE, split_measures, visible
from kgtrec.cli._names import long_name
from kgtrec.cli._options import Number, choose_columns, read_measures
from kgtrec.trec.measures.rows import NICKNAMES, TABLE


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    before = os.getcwd()
    os.chdir(folder)
    try:
        fuzz_options.make_home()
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def home(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(sound, tmp_path / "home", symlinks=True)
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def test_every_command_has_calls_that_succeed(home: Path) -> None:
    """Otherwise a fault of their other arguments would hide those of extreme options."""
    quick = {words: rows for words, rows in fuzz_options.calls().items() if words != ("judge",)}
    for words, rows in quick.items():
        if words and words[0] != "demo" and words != ("judge", "serve"):
            for row in rows:
                assert run_command(*words, *row).code == 0, (words, row)


@pytest.mark.parametrize("count", slow_after(1, [300, 8000]))
def test_no_option_has_a_value_that_ends_badly(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    home = fuzz_options.Home(str(sound), str(tmp_path / "copy"))
    singles = fuzz_options.single_cases("")
    random.Random(count).shuffle(singles)
    cases = [args for args in singles if args[0] != "demo" and args[:2] != ["judge", "serve"]]
    named = ((f"single {number}", args) for number, args in enumerate(cases[:count]))
    with fuzz_options.limited():
        ran, faults = fuzz_options.run(named, home, float("inf"))
    assert ran == count
    assert not faults, "\n\n".join(faults)


ALIGN = "align --left left.npy --right right.npy --pairs pairs.tsv --sizes"
DEPTHS = "compare depths --qrels full.qrels a.run b.run c.run --pool pool3.tsv --graph g"
EXTREME = {
    f"{ALIGN} ²": "'²' is not a count",
    f"{ALIGN} 5 --repeats 2147483648": "is not a whole number from 1 to 1000000",
    "classify --valid-triples valid.tsv --test-triples valid.tsv --bins 9223372036854775808": (
        "is not a whole number from 2 to 1000000"
    ),
    "sample g --size 2 -o fresh/s --seed 18446744073709551616": (
        "is not a whole number from 0 to 18446744073709551615"
    ),
    "sample g --share 1e-320 -o fresh/s": "too close to 0",
    "sample g --share nan -o fresh/s": "not a finite number",
    f"{DEPTHS} --questions ''": "'': a folder, not a file",
    "semantics --graph g t.run --questions ''": "'': a folder, not a file",
    "openworld --figure simulated --n-questions 2 --correlation 1 --format csv": "",
    "openworld --figure simulated --sparsity 0.3 --n-questions 2 --correlation -1 --plot x.svg": (
        "rho=-1.0; the logarithmic approximation needs"
    ),
    "rank --graph g --scores file:///x%00y -o fresh/o": "the URL contains a null byte",
    "judge merge judged.tsv / -o fresh/m.tsv": "/: this is a folder",
    f"eval t.qrels t.run -M {'9' * 5000}": "is not a whole number from 0",
    f"rank --graph g --scores {'x' * 300} -o fresh/o": "the name is too long",
}


@pytest.mark.parametrize(("words", "text"), EXTREME.items(), ids=range(len(EXTREME)))
def test_extreme_values_get_a_sentence(home: Path, words: str, text: str) -> None:
    """The calls of the issue that named them, whose causes differed."""
    args = shlex.split(words)
    assert fuzz_options.fault_of(args) == ""
    said = run_command(*args)
    assert said.code in ((1, 2) if text else (0,))
    assert text in said.err, said.err


# -- Ranges ------------------------------------------------------------------------------------

WITHOUT_LIMITS = {"--phase-weight", "--modulus-weight", "--values"}
"""Options of any number."""
RANGES = {  # calls with numbers just inside of the limits that --help shows, and beyond them
    "compare a.parquet b.parquet --resamples": ("100", "99"),
    "eval t.qrels t.run --ci 95 --resamples": ("100", "1000001"),
    "eval t.qrels t.run --ci": ("99.9", "100"),
    "classify --valid-triples valid.tsv --test-triples valid.tsv --bins": ("2", "1000001"),
    "sample g -o fresh/s --share": ("1", "0"),
    "sample g -o fresh/s --size": ("1", "0"),
    "stratify a.parquet --points 2 --at-alpha": ("-0.5", "-0.51"),
    "stratify a.parquet --points": ("2", "1"),
    "pool --graph g --seed-triples seed.tsv t.run -o fresh/p --depth": ("1", "0"),
    "pool --graph g --seed-triples seed.tsv t.run -o fresh/p --sample": ("1", "0"),
    "openworld a.parquet b.parquet --sparsity 0.1 --level": ("0.4999", "0.5"),
    "openworld a.parquet b.parquet --sparsity": ("0", "1"),
    "gate a.parquet b.parquet --margin 0.1 --level": ("0.4999", "0.5"),
}


def test_help_shows_the_limits_of_numbers() -> None:
    numbers = {
        (" ".join(words), long_name(option)): option.type
        for words, command in fuzz_options.tree()
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, Number)
    }
    free = {name for (_, name), kind in numbers.items() if not kind._describe_range()}
    assert free == WITHOUT_LIMITS


@pytest.mark.parametrize(("words", "limits"), RANGES.items(), ids=range(len(RANGES)))
def test_limits_in_help_are_those_of_the_command(
    home: Path, words: str, limits: tuple[str, str]
) -> None:
    inside, outside = limits
    *args, name = shlex.split(words)
    accepted = run_command(*args, name, inside)
    assert accepted.code in (0, 20, 21), accepted.err
    refused = run_command(*args, name, outside)
    assert refused.code == 1
    assert f"Invalid value for '{name}'" in refused.err


# -- Texts -------------------------------------------------------------------------------------


def test_visible_texts() -> None:
    assert visible("plain ü") == "plain ü"
    assert visible("a\nb\tc\x1b[31m") == "a\\nb\\tc\\x1b[31m"
    assert visible("caf\udce9 \ud800") == "caf\\xe9 \\ud800"
    assert visible("\u202e\u2028\x9b") == "\\u202e\\u2028\\x9b"
    assert visible("a\nb\x07", keep="\n\t") == "a\nb\\x07"


NAMES = ("\x1b[2J", "caf\udce9", "=1+1", "-r", "@x", "+y", "a\u202eb")


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph whose relations have names that terminals and spreadsheet programs obey."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("g")
    lines = [f"e{i}\t{name}\te{(i + 1) % 9}\n" for i in range(9) for name in NAMES]
    for split in ("train", "test"):
        Path(f"g/{split}.txt").write_text("".join(lines), "utf-8", "surrogateescape")
    np.save("s.npy", np.random.default_rng(1).random((126, 9)))
    for name in ("o", "p"):
        words = ("rank", "--graph", "g", "--scores", "s.npy", "-o", f"{name}.parquet", "-q")
        assert run_command(*words).code == 0
    return tmp_path


@pytest.mark.parametrize("form", ["table", "csv", "tsv", "markdown", "latex", "json"])
def test_names_are_escaped_in_every_format(odd: Path, form: str) -> None:
    words = f"compare parts o.parquet p.parquet --by relation -m mrr --format {form}"
    said = run_command(*words.split())
    assert said.code == 0, said
    text = said.out_bytes.decode("utf-8")
    assert not fuzz_options.ODD.search(text)
    assert "u202eb" in text
    if form in ("csv", "tsv"):
        cells = [cell for line in text.splitlines() for cell in re.split("[,\t]", line)]
        assert {"'=1+1", "'-r", "'@x", "'+y"} <= set(cells)
    if form == "table":
        assert {"\\x1b[2J", "caf\\xe9"} <= set(text.split())


def test_negative_numbers_stay_numbers(odd: Path) -> None:
    words = ("report", "o.parquet", "--by", "relation", "-m", "amri", "--format", "csv")
    values = [line.rpartition(",")[2] for line in run_command(*words).out.splitlines()[1:]]
    assert any(value.startswith("-") for value in values)
    assert all(float(value) < 1 for value in values)


def test_names_of_files_are_escaped(odd: Path) -> None:
    for name in ("a\nb", "\x1b[2J", "\udcff"):
        os.rename("o.parquet", f"{name}.parquet")
        file = f"{name}.parquet"
        for words in (
            ["report", file, file],
            ["report", f"{name}.none"],
            ["changes", file, file],
            ["plot", "ties", file, "-o", f"{name}.svg"],
            ["compare", file, file],
            ["rank", "--graph", name, "--scores", "s.npy", "-o", "x.parquet"],
        ):
            assert fuzz_options.fault_of(words) == ""
        os.rename(f"{name}.parquet", "o.parquet")


def test_long_names_give_short_messages(odd: Path) -> None:
    said = run_command("report", "o.parquet", "-m", "x" * 10_000).err
    assert len(said) <= LONGEST_MESSAGE + 1
    assert said.endswith("\n")


def test_options_that_need_others_exist() -> None:
    """A misspelt row would refuse every call, or none."""
    from kgtrec.cli import _needs

    options = {
        " ".join(words): {name for one in command.params for name in one.opts}
        for words, command in fuzz_options.tree()
    }
    for table in (_needs.NEEDS, _needs.NOTED, _needs.IDLE):
        for command, rows in table.items():
            for row in rows:
                named = {word.partition("=")[0] for part in row for word in part.split()}
                assert named <= options[command], (command, row)


def test_measures_may_be_a_list_in_every_command() -> None:
    several = []
    for words, command in fuzz_options.tree():
        for option in (each for each in command.params if "-m" in each.opts):
            with click.Context(command) as context:
                if not option.multiple:
                    assert words == ("openworld",)  # computes one metric
                    continue
                values = option.process_value(context, ("mrr,hits@10", "P.5,10"))
            assert values == ("mrr", "hits@10", "P.5,10")
            several.append(words[0])
    assert {"eval", "report", "compare", "gate", "plot", "suite"} < set(several)


def test_commas_of_parameters_stay_in_measures() -> None:
    names = [
        *TABLE,
        *NICKNAMES,
        "P.5,10",
        "p@10",
        "P_10",
        "R@5",
        "F1@5",
        "f1_10",
        "rbp.p=0.5,p=0.8",
        "utility.1,-1,0,0",
        "ndcg.1=3,2=9",
        "iprec_at_recall.0.1,.5",
        "nDCG(gains={0:0,1:5})@10",
        "P(rel=2, judged_only=True)@5",
        "both.stratified.mrr(0.5,0.5)",
        "relstring.3",
    ]
    random.Random(0).shuffle(names)
    assert split_measures([",".join(names)]) == tuple(names)
    assert split_measures([", ".join(names[::2]), *names[1::2]]) == tuple(names[::2] + names[1::2])
    typed = read_measures(["mrr, all,map", "mr,hits@1"])  # one is a column of a table
    assert choose_columns(typed, {"mrr, all,map"}.__contains__) == ["mrr, all,map", "mr", "hits@1"]
    assert split_measures([" ".join(names)]) == tuple(names)  # as ir_measures' program
    assert split_measures([" AP P.5, 10\tRR@10 "]) == ("AP", "P.5, 10", "RR@10")
    assert split_measures(["nDCG(dcg='log2', rel=2)@5 map"]) == ("nDCG(dcg='log2', rel=2)@5", "map")
    assert split_measures(["P.5,x"]) == ("P.5,x",)  # a wrong parameter, for its message
