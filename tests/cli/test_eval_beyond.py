"""Additions of `kgtrec eval` to trec_eval: ties, intervals, and micro metrics over answers."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest
from transcripts import Ended, ended

# Query 1: two tied behind a relevant one, one of them relevant. Query 2: no ties that matter.
# Query 3: two relevant, of which the run holds one, in a tie of two.
QRELS = "1 0 a 1\n1 0 b 2\n1 0 c 0\n2 0 a 1\n2 0 b 0\n3 0 a 1\n3 0 z 1\n"

RUN = (
    "1 Q0 a 1 9 t\n1 Q0 b 2 5 t\n1 Q0 c 3 5 t\n"
    "2 Q0 b 1 3 t\n2 Q0 y 1 3 t\n2 Q0 a 2 1 t\n"
    "3 Q0 x 1 2 t\n3 Q0 a 2 2 t\n"
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return str(tmp_path / "qrels"), str(tmp_path / "run")


def invoke(*words: str) -> Ended:
    return ended("eval", *words)


def line(measure: str, value: str, query: str = "all") -> str:
    return f"{measure.ljust(22)}\t{query}\t{value}\n"


def refused(result: Ended, code: int, *words: str) -> None:
    assert result[:2] == (code, ""), result
    assert result.err.startswith("kgtrec: ")
    assert [word for word in words if word not in result.err] == [], result.err


# -- Ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "values"),
    [
        # AP of query 1: (1 + 1) / 2 or (1 + 2/3) / 2; of query 2: 1/3; of query 3: 1/2 or 1/4.
        ("expected", {"1": "0.9167", "2": "0.3333", "3": "0.3750", "all": "0.5417"}),
        ("min", {"1": "0.8333", "2": "0.3333", "3": "0.2500", "all": "0.4722"}),
        ("max", {"1": "1.0000", "2": "0.3333", "3": "0.5000", "all": "0.6111"}),
    ],
)
def test_ties_by_hand(files, ties: str, values: dict[str, str]) -> None:
    code, out, err = invoke("-q", "-m", "map", "--ties", ties, *files)
    assert (code, out) == (0, "".join(line("map", v, query) for query, v in values.items()))
    what = {"expected": "the mean", "min": "the lowest", "max": "the highest"}[ties]
    assert err.startswith(
        "kgtrec: 2 of 3 queries have ties that could change these measures; kgtrec prints "
    )
    assert what in err


def test_ties_are_counted_where_they_can_change_what_is_asked(files) -> None:
    def said(*words: str) -> str:
        return invoke(*words, *files)[2]

    expected = (
        "kgtrec: {} of 3 queries have ties that could change these measures; "
        "--ties expected averages over their orders\n"
    )
    assert said("-m", "map") == expected.format(2)
    assert said("-m", "recip_rank") == expected.format(1)  # query 1 has one above the tie
    assert said("-m", "ndcg_cut.1") == expected.format(1)
    assert said("-m", "P.3") == said("-m", "set_P") == said("-m", "map", "-l3") == ""
    assert said("-m", "P.2", "-m", "map_cut.1") == expected.format(2)
    assert "3 of 3" in said("-m", "relstring")  # b is judged, y is not
    assert "1 of 1 queries" in said("-m", "map", "-D", "1.3")
    assert "ties" not in said("-m", "map", "-D", "1.2")


def test_without_m_the_official_measures_that_have_a_form(files) -> None:
    names = [text.split()[0] for text in invoke("--ties", "expected", *files)[1].splitlines()]
    assert names[:9] == ["runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "Rprec",
                         "recip_rank", "P_5"]  # fmt: skip
    assert not {"bpref", "gm_map"} & {*names}
    refused(invoke("--ties", "expected", "-m", "official", *files), 1, "gm_map", "bpref",
            "map_cut", "leave them out")  # fmt: skip


def test_limits_with_ties(files) -> None:
    def value(*words: str) -> str:
        return invoke("-m", "recall.3", "-n", "-q", "-D1.1", *words, *files)[1].split()[-1]

    assert value() == "1.0000"
    # Two are read: c comes before b, as in trec_eval; in one order of two, it does not.
    assert [value("-M2"), value("-M2", "--ties", "expected")] == ["0.5000", "0.7500"]
    assert [value("-M2", "--ties", end) for end in ("min", "max")] == ["0.5000", "1.0000"]
    refused(invoke("-M2", "--ties", "min", "-m", "num_rel_ret", *files), 1, "num_rel_ret")


def test_plain_output_has_the_same_bytes_whatever_is_tied(tmp_path: Path) -> None:
    """Counting ties reads more documents; the output does not change."""
    (tmp_path / "q").write_text("1 0 d5 1\n1 0 d8 1\n")
    tied = "".join(f"1 Q0 d{i} 1 1.0 t\n" for i in range(10))
    clear = "".join(f"1 Q0 d{i} 1 {i} t\n" for i in range(10))
    for options in (["-m", "P.2", "-m", "map_cut.2"], ["-M3"], ["-M3", "-J"], ["-qM4", "-c"],
                  ["-m", "all_trec"], ["-m", "all_trec", "-J"], ["-m", "P.2", "-J"]):  # fmt: skip
        outputs = []
        for text in (tied, clear):
            (tmp_path / "r").write_text(text)
            code, out, _ = invoke(*options, str(tmp_path / "q"), str(tmp_path / "r"))
            assert code == 0
            outputs.append(out)
        assert outputs[0] == outputs[1], options


# -- Intervals ---------------------------------------------------------------------------------


def test_lines_of_intervals(files) -> None:
    options = ["-q", "-m", "num_ret", "-m", "map", "-m", "gm_map", "-m", "P.1"]
    plain = invoke(*options, *files)[1]
    code, out, _ = invoke(*options, "--ci", "95", *files)
    assert code == 0
    lines = out.splitlines(keepends=True)
    ends = [text for text in lines if "_ci95_" in text]
    assert "".join(text for text in lines if text not in ends) == plain
    names = [text.split()[0] for text in lines if text.split()[1] == "all"]
    assert names == ["num_ret", "map", "map_ci95_low", "map_ci95_high", "gm_map",
                     "gm_map_ci95_low", "gm_map_ci95_high", "P_1", "P_1_ci95_low",
                     "P_1_ci95_high"]  # fmt: skip
    assert all(text.split()[1] == "all" for text in ends)
    values = {text.split()[0]: float(text.split()[2]) for text in lines if "all" in text}
    for name in ("map", "gm_map", "P_1"):
        assert 0 <= values[f"{name}_ci95_low"] < values[name] < values[f"{name}_ci95_high"] <= 1
    # Of three queries, all three draws are the same one in 1 of 27: 3.7 %, more than 2.5 %.
    assert (values["P_1_ci95_low"], values["P_1_ci95_high"]) == (0.0, 1.0)


def test_intervals_are_seeded(files) -> None:
    def out(*words: str) -> str:
        return invoke("-m", "map", "--ci", *words, "--format", "json", *files)[1]

    assert out("80") == out("80.0") == out("80", "--seed", "0", "--resamples", "2000")
    assert len({out("80", "--resamples", "100", "--seed", str(seed)) for seed in range(4)}) == 4
    assert "map_ci80_low" in invoke("-m", "map", "--ci", "80", *files)[1]
    assert "map_ci99.9_low" in invoke("-m", "map", "--ci", "99.9", *files)[1]
    refused(invoke("--ci", "0.95", *files), 1, "0.95", "1 to 99.9")
    refused(invoke("--ci", "x", *files), 1, "'x'")
    refused(invoke("--seed", "1", *files), 1, "--ci")
    refused(invoke("--ci", "95", "--resamples", "5", *files), 1, "100 to")


def test_intervals_in_tables(tmp_path: Path, files) -> None:
    (tmp_path / "b.run").write_text(RUN.replace("1 Q0 a 1 9", "1 Q0 a 1 1"))
    runs = [*files, str(tmp_path / "b.run")]
    options = ["-m", "map", "-m", "num_ret", "--ci", "90", "--format"]
    rows = [*csv.reader(io.StringIO(invoke(*options, "csv", *runs)[1]))]
    first, second = runs[1:]
    assert rows[0] == ["measure", first, f"{first} ci90_low", f"{first} ci90_high",
                       second, f"{second} ci90_low", f"{second} ci90_high"]  # fmt: skip
    assert rows[1] == ["num_ret", "8", "", "", "8", "", ""]
    assert float(rows[2][2]) < float(rows[2][1]) < float(rows[2][3])
    head = invoke(*options, "markdown", *runs)[1].splitlines()[0]
    assert head == "| measure | run | 90% low | 90% high | b.run | 90% low | 90% high |"
    per_query = [*csv.reader(io.StringIO(invoke("-q", *options, "csv", *runs)[1]))]
    assert {len(row) for row in per_query} == {8}
    assert per_query[1][3:5] == ["", ""]
    printed = json.loads(invoke(*options, "json", *runs)[1])
    assert printed[first]["bootstrap"] == {"percent": 90.0, "resamples": 2000, "seed": 0}
    assert [*printed[first]["intervals"]] == ["map"]
    assert printed[first]["intervals"]["map"] == [float(rows[2][2]), float(rows[2][3])]


def test_intervals_with_absent_queries_and_z_scores(tmp_path: Path, files) -> None:
    (tmp_path / "short").write_text("".join(RUN.splitlines(keepends=True)[:6]))
    for compat in ("9", "10"):
        out = invoke("-c", "-m", "map", "-m", "gm_map", "--ci", "95", "--compat", compat, files[0],
                     str(tmp_path / "short"))[1]  # fmt: skip
        values = {text.split()[0]: float(text.split()[2]) for text in out.splitlines()}
        assert values["map_ci95_low"] == 0.0  # three draws of the absent query
        assert values["gm_map_ci95_low"] == 0.0
        assert values["map_ci95_low"] < values["map"] < values["map_ci95_high"]
    (tmp_path / "z").write_text("".join(f"{q} map 0.5 0.1\n" for q in "123"))
    out = invoke("-Z", str(tmp_path / "z"), "-m", "map", "--ci", "95", *files)[1]
    assert [text.split()[0] for text in out.splitlines()] == [
        "Zmap", "Zmap_ci95_low", "Zmap_ci95_high"
    ]  # fmt: skip


# -- Micro metrics of graphs -------------------------------------------------------------------

KG = ["-m", "kg_mr,kg_mrr,kg_hits.1,3,10,kg_amr", "--n-entities", "10"]


def test_micro_metrics_by_hand(files) -> None:
    """Ranks: a and b of 1: 1, 1.5; a of 2: 3; a of 3: 1.5, and z from 2 to 10 - 2 + 1."""
    code, out, err = invoke(*KG, *files)
    assert (code, out) == (0, (
        line("kg_mr_low", "1.8000") + line("kg_mr_high", "3.2000")
        + line("kg_mrr_low", "0.5556") + line("kg_mrr_high", "0.6333")
        + line("kg_hits_1_low", "0.2000") + line("kg_hits_1_high", "0.2000")
        + line("kg_hits_3_low", "0.8000") + line("kg_hits_3_high", "1.0000")
        + line("kg_hits_10_low", "1.0000") + line("kg_hits_10_high", "1.0000")
        + line("kg_amr_low", "0.3529") + line("kg_amr_high", "0.6275")  # over 5.1
    ))  # fmt: skip
    assert err == (
        "kgtrec: kg_ measures use ranks as listed: other answers in the qrels do not count, but "
        "answers known from other splits do, unless the run is filtered; --graph DIR filters it\n"
        "kgtrec: 1 of 5 answers are not in the run; low and high bound the metrics for every "
        "rank they may have\n"
    )


def test_micro_metrics_without_entities(files) -> None:
    _, out, err = invoke("-q", "-m", "kg_hits.1", "-m", "kg_mrr", "-m", "map", *files)
    names = [text.split()[0] for text in out.splitlines() if text.split()[1] == "2"]
    assert names == ["map", "kg_mrr_low", "kg_mrr_high", "kg_hits_1_low", "kg_hits_1_high"]
    assert line("kg_mrr_low", "0.3333", "2") + line("kg_mrr_high", "0.3333", "2") in out
    assert line("kg_mrr_low", "0.3333", "3") + line("kg_mrr_high", "0.5833", "3") in out
    assert line("kg_mrr_low", "0.5333") + line("kg_mrr_high", "0.6333") in out
    assert "1 of 5 answers are not in the run" in err
    assert "--n-entities N" in err
    refused(invoke("-m", "kg_mr,kg_mrr", *files), 1, "kg_mr need", "--n-entities")
    refused(invoke("-m", "map", "--n-entities", "9", *files), 1, "--n-entities needs kg_")


def test_micro_metrics_at_a_level_and_over_all_queries(tmp_path: Path, files):
    out = invoke("-l2", "-m", "kg_mr", "-q", "--n-entities", "10", *files)[1]
    assert line("kg_mr_low", "2.5000", "1") in out  # a counts now like any other document
    assert line("kg_mr_low", "   nan", "2") in out
    assert line("kg_mr_low", "2.5000") in out
    runs = json.loads(invoke("-l2", "-qm", "kg_mrr", "--format", "json", *files)[1])
    assert runs[files[1]]["queries"]["2"]["kg_mrr_low"] is None
    (tmp_path / "short").write_text("".join(RUN.splitlines(keepends=True)[:6]))
    short = files[0], str(tmp_path / "short")
    _, out, err = invoke("-m", "kg_mr", "--n-entities", "10", *short)
    assert out == line("kg_mr_low", "1.8333") + line("kg_mr_high", "1.8333")
    assert "1 of 3 queries of the qrels are not in the run; they are left out" in err
    out = invoke("-c", "-m", "kg_mr", "--n-entities", "10", *short)[1]
    assert out == line("kg_mr_low", "1.5000") + line("kg_mr_high", "4.7000")  # 1 to 9, twice


def test_micro_metrics_with_intervals_ties_and_formats(files) -> None:
    out = invoke(*KG, "--ci", "95", *files)[1]
    values = {text.split()[0]: float(text.split()[2]) for text in out.splitlines()}
    assert len(values) == 12 * 3
    for name in ("kg_mr_high", "kg_mrr_low", "kg_amr_high"):
        assert values[f"{name}_ci95_low"] < values[name] < values[f"{name}_ci95_high"]
    assert (values["kg_mr_low_ci95_low"], values["kg_mr_low_ci95_high"]) == (1.25, 3.0)
    least, most = (invoke("-m", "kg_mrr", "--ties", t, *files)[1] for t in ("min", "max"))
    assert least == line("kg_mrr_low", "0.4667") + line("kg_mrr_high", "0.5667")
    assert most == line("kg_mrr_low", "0.6667") + line("kg_mrr_high", "0.7667")
    table = invoke(*KG, "--format", "markdown", *files)[1]
    assert "| kg_mr_high | 3.2000 |" in table
    exact = json.loads(invoke(*KG, "--format", "json", *files)[1])[files[1]]["summary"]
    assert exact["kg_mr_low"] == 1.8
    assert math.isclose(exact["kg_mrr_low"], (1 + 2 / 3 + 1 / 3 + 2 / 3 + 1 / 9) / 5)


def test_wrong_micro_metrics(files) -> None:
    refused(invoke("-m", "kg_mmr", *files), 1, "'kg_mmr'")
    refused(invoke("-m", "kg_mr,map", *files), 1, "'map'", "in a separate -m")
    refused(invoke("-m", "kg_hits.0", *files), 2, "'kg_hits.0'")
    refused(invoke("-m", "kg_mr", "--n-entities", "2", *files), 2, "'1'", "--n-entities is 2")
    refused(invoke("-J", "-m", "kg_mrr", *files), 1, "-J")
    refused(invoke("-Z", files[0], "-m", "kg_mrr", *files), 1, "-Z")
    refused(invoke("-m", "kg_mrr", "--n-entities", "x", *files), 1, "'x'")


def test_help() -> None:
    text = invoke("--help")[1]
    for word in ("--ties [expected|min|max]", "--n-entities N", "--ci PERCENT", "kg_amri"):
        assert word in text
    text = invoke("-h", "-m", "kg_mrr", "-m", "bpref", "-m", "kg_hits.5")[1]
    assert text.startswith("bpref\n    ")
    assert "kg_mrr\n    Mean of 1 / rank over the answers, as listed." in text
    assert "Default: -m kg_hits.1,3,10" in text
    assert "kg_mr\n" not in text


# -- Judged negatives --------------------------------------------------------------------------


def test_judged_negatives_by_hand(tmp_path: Path) -> None:
    """The list is n r - n r r, with n judged not relevant and - without a judgement.

    bpref: R = 3, N = 2: 1 - 1/2, then 1 - 2/2 twice. infAP: at rank 2, 1/2 + 1/2 (1/1 * e / (1 +
    2e)); e = 0.00001. Behind it 1 and 2 relevant ones, and 2 others, stand above.
    """
    (tmp_path / "q").write_text("1 0 a 0\n1 0 b 1\n1 0 d 0\n1 0 e 1\n1 0 f 1\n")
    listed = "".join(f"1 Q0 {d} {i} {10 - i} t\n" for i, d in enumerate("abxdef", 1))
    (tmp_path / "r").write_text(listed)
    options = ["-m", "bpref", "-m", "infAP", "-m", "unj.2,3,6", "-m", "num_nonrel_judged_ret"]
    out = invoke(*options, str(tmp_path / "q"), str(tmp_path / "r"))[1]
    e = 1e-5
    second = 1 / 2 + 1 / 2 * e / (1 + 2 * e)
    fifth = 1 / 5 + 4 / 5 * (3 / 4) * (1 + e) / (3 + 2 * e)
    sixth = 1 / 6 + 5 / 6 * (4 / 5) * (2 + e) / (4 + 2 * e)
    assert out == (
        line("bpref", "0.1667") + line("infAP", f"{(second + fifth + sixth) / 3:.4f}")
        + line("num_nonrel_judged_ret", "2")
        + line("unj_2", "0.0000") + line("unj_3", "0.3333") + line("unj_6", "0.1667")
    )  # fmt: skip
    # Without the judged negatives, bpref is recall, and a list that drops them is better.
    (tmp_path / "q").write_text("1 0 b 1\n1 0 e 1\n1 0 f 1\n")
    out = invoke(*options, str(tmp_path / "q"), str(tmp_path / "r"))[1]
    assert line("bpref", "1.0000") in out
    assert line("unj_6", "0.5000") in out


# -- Micro metrics of several commands ---------------------------------------------------------

QUICK = ("--permutations", "200", "--resamples", "200")


@pytest.fixture(scope="module")
def kg_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of 12 queries with 1 to 3 answers; a run lacks some of them."""
    place = tmp_path_factory.mktemp("kg")
    answers = {f"q{i:02}": "abc"[: 1 + i % 3] for i in range(12)}
    lines = "".join(f"{q} 0 {d} 1\n{q} 0 z 0\n" for q, own in answers.items() for d in own)
    (place / "q.qrels").write_text("".join(dict.fromkeys(lines.splitlines(keepends=True))))
    for name, order in {"one": "axbyc", "two": "xyabz", "three": "zxyca"}.items():
        text = "".join(
            f"{q} Q0 {d} 1 {9 - k - (i % 2) * (k % 2)} {name}\n"
            for i, q in enumerate(answers) for k, d in enumerate(order)
        )  # fmt: skip
        (place / f"{name}.run").write_text(text)
    return place


RUNS = ("one.run", "two.run", "three.run")

MEASURES = ("-m", "kg_mrr,kg_hits.1,3", "-m", "kg_mr")


def called(kg_folder: Path, *words: str) -> Ended:
    """A command on files of the folder."""
    return ended(
        *(str(kg_folder / word) if (kg_folder / word).is_file() else word for word in words)
    )


def test_eval_and_compare_give_the_same_values(kg_folder: Path) -> None:
    measures = ("--format", "json", *MEASURES, "--n-entities", "40")
    out = called(kg_folder, "eval", *measures, "q.qrels", *RUNS).out
    evaluated = {Path(file).stem: one["summary"] for file, one in json.loads(out).items()}
    compared = json.loads(
        called(kg_folder, "compare", *measures, *QUICK, "--qrels", "q.qrels", *RUNS).out
    )
    del compared["rankings"]
    names = ["kg_mrr", "kg_hits_1", "kg_hits_3", "kg_mr"]
    assert sorted(compared) == sorted(f"{name}_{end}" for name in names for end in ("low", "high"))
    for measure, report in compared.items():
        assert report["higher_is_better"] == ("kg_mr_" not in measure)
        for system in report["systems"]:
            assert system["value"] == pytest.approx(evaluated[system["system"]][measure])
    assert compared["kg_mrr_low"]["systems"][0]["system"] == "one"
    assert compared["kg_mrr_low"]["systems"] != compared["kg_mrr_high"]["systems"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-m", "kg_amri", "--n-entities", "40", "--qrels", "q.qrels", *RUNS), "compare by kg_mr"),
        (("-m", "kg_mr", "--qrels", "q.qrels", *RUNS), "--n-entities N"),
        (("-m", "map", "--n-entities", "40", "--qrels", "q.qrels", *RUNS), "needs a kg_ measure"),
        (("-m", "kg_mrr", "a.parquet", "b.parquet"), "both.realistic.micro.mrr"),
    ],
)
def test_what_compare_cannot_do_with_them(kg_folder: Path, words: tuple[str, ...], message: str):
    done = called(kg_folder, "compare", *words)
    assert done.code == 1
    assert message in done.err


def test_they_are_ranks_as_listed(kg_folder: Path) -> None:
    """A run with answers of other splits stays unfiltered, and no message claims otherwise."""
    _, out, err = called(kg_folder, "eval", "-m", "kg_mrr", "q.qrels", "one.run")
    assert err.count("ranks as listed") == 1
    assert "filtered ones" not in out + err
    assert "as listed" not in called(kg_folder, "eval", "-m", "map", "q.qrels", "one.run").err
    out = called(kg_folder, "eval", "-m", "kg_mrr", "--format", "json", "q.qrels", "one.run").out
    (one,) = json.loads(out).values()
    assert one["kg_ranks"] == "as listed"
    for name in ("kg_mr", "kg_mrr", "kg_hits", "kg_amr", "kg_amri"):
        text = " ".join(invoke("-h", "-m", name).out.split())
        assert "as listed" in text
        assert not re.search(r"filtered,? (realistic )?ranks?", text)
