"""kg_ measures: the same in eval and compare, and called what they are, ranks as listed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgtrec.cli import cli

QUICK = ("--permutations", "200", "--resamples", "200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of 12 queries with 1 to 3 answers, some of which a run lacks."""
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


def run(folder: Path, *words: str) -> tuple[str, str]:
    arguments = [str(folder / word) if (folder / word).is_file() else word for word in words]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout, done.stderr


RUNS = ("one.run", "two.run", "three.run")
MEASURES = ("-m", "kg_mrr,kg_hits.1,3", "-m", "kg_mr")


def test_eval_and_compare_give_the_same_values(folder: Path) -> None:
    out, _ = run(
        folder, "eval", "--format", "json", *MEASURES, "--n-entities", "40", "q.qrels", *RUNS
    )
    evaluated = {Path(file).stem: one["summary"] for file, one in json.loads(out).items()}
    out, _ = run(folder, "compare", "--format", "json", *MEASURES, "--n-entities", "40", *QUICK,
                 "--qrels", "q.qrels", *RUNS)  # fmt: skip
    compared = json.loads(out)
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
def test_what_compare_cannot_do_with_them(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    arguments = [str(folder / word) if (folder / word).is_file() else word for word in words]
    done = CliRunner().invoke(cli, ["compare", *arguments])
    assert done.exit_code == 1
    assert message in str(done.exception or "") + done.stderr


def test_they_are_ranks_as_listed(folder: Path) -> None:
    """A run that holds what other splits know is not filtered of it, and nothing says it is."""
    out, err = run(folder, "eval", "-m", "kg_mrr", "q.qrels", "one.run")
    assert err.count("ranks as listed") == 1
    assert "filtered ones" not in out + err
    _, err = run(folder, "eval", "-m", "map", "q.qrels", "one.run")
    assert "as listed" not in err
    out, _ = run(folder, "eval", "-m", "kg_mrr", "--format", "json", "q.qrels", "one.run")
    (one,) = json.loads(out).values()
    assert one["kg_ranks"] == "as listed"
    for name in ("kg_mr", "kg_mrr", "kg_hits", "kg_amr", "kg_amri"):
        out, _ = run(folder, "eval", "-h", "-m", name)
        text = " ".join(out.split())
        assert "as listed" in text
        assert not re.search(r"filtered,? (realistic )?ranks?", text)
