"""kgtrec judge for a new user: the whole workflow, and a message for every mistake."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from transcripts import Ended, ended

from kgtrec.study.judging.journal import Journal
from kgtrec.study.judging.sheets import read_sheet, write_sheet

POOL = (
    "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
    "a\t/people/person/languages\ten\ttail\ttail0\t1\tx:1\t\n"
    "a\t/people/person/languages\tfr\ttail\ttail0\t3\ty:3\t\n"
    "b\t/people/person/gender\tmale\ttail\ttail1\t2\tx:2,y:2\t\n"
    "b\t/people/person/gender\ten\ttail\ttail1\t4\tx:4\ttype:tail\n"
)

NAMES = "a\tAnn\nb\tBob\nen\tEnglish\nfr\tFrench\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.tsv").write_text(POOL)
    (tmp_path / "names.tsv").write_text(NAMES)


def call(*words: str) -> Ended:
    return ended("judge", *words)


def say(path: str, answers: str) -> None:
    """Answer a sheet's triples, by byte order of the triples, as the page would."""
    with Journal(path) as journal:
        order = sorted(range(len(journal)), key=lambda row: journal.items[row].triple)
        for row, label in zip(order, answers, strict=True):
            journal.answer(row, label, f"http://{label}" if label != "?" else "")


def test_from_a_pool_to_one_judgement():
    assert call("templates", "pool.tsv", "-o", "t.tsv").code == 0
    text = Path("t.tsv").read_text()
    assert "Does the person {head} have {tail} among its languages?" in text
    Path("t.tsv").write_text(text.replace("have {tail} among its languages", "speak {tail}"))
    made = call("sheets", "pool.tsv", "--templates", "t.tsv", "--names", "names.tsv",
                "--annotators", "anna, ben", "-o", "sheets")  # fmt: skip
    assert (made.code, made.out) == (0, "2 sheets in sheets: anna.tsv to ben.tsv\n")
    assert "3 triples to judge, 1 left out" in made.err
    assert "1 entities have no name, the first is 'male'" in made.err
    questions = {item.question for item in read_sheet("sheets/anna.tsv").items}
    assert questions == {
        "Does the person Ann speak English?", "Does the person Ann speak French?",
        "Does the person Bob have the gender male?",
    }  # fmt: skip
    assert "depth" not in Path("sheets/anna.tsv").read_text()
    say("sheets/anna.tsv", "YNY")
    say("sheets/ben.tsv", "YYN")
    assert call("export", "sheets/anna.tsv").code == 0
    done = call("export", "sheets/ben.tsv", "-o", "ben.tsv")
    assert "wrote ben.tsv: 3 triples, Y 2, N 1, ? 0, open 0" in done.err
    files = "sheets/anna.judged.tsv", "ben.tsv"

    table = call("agreement", *files, "--by-relation", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(table.out)))
    assert [(row["relation"], row["triples"]) for row in rows] == [
        ("all relations", "3"), ("/people/person/gender", "1"), ("/people/person/languages", "2"),
    ]  # fmt: skip
    assert float(rows[0]["agreed"]) == pytest.approx(1 / 3)
    assert float(rows[0]["kappa"]) == pytest.approx((1 / 3 - 5 / 9) / (4 / 9))

    merged = call("merge", *files, "--conflicts", "carla.tsv", "-o", "judged.tsv")
    assert merged.code == 0
    assert [item.label for item in read_sheet("judged.tsv").items] == ["Y"]
    say("carla.tsv", "?Y")
    again = call("merge", *files, "--adjudicated", "carla.tsv", "-o", "judged.tsv")
    assert again.code == 0
    assert [(item.tail, item.label) for item in read_sheet("judged.tsv").items] == [
        ("male", "Y"), ("en", "Y"), ("fr", "?"),
    ]  # fmt: skip
    assert "settled by the adjudicator         2" in again.out
    assert call("check", "judged.tsv").out.endswith("Y 2, N 0, ? 1, open 0, 0 faults\n")


def test_labels_of_a_spreadsheet_are_not_written_over():
    call("sheets", "pool.tsv", "--annotators", "anna", "-o", "s")
    blank = Path("s/anna.tsv").read_text()
    items = read_sheet("s/anna.tsv").items
    write_sheet("s/anna.judged.tsv", [replace(item, label="Y") for item in items])
    filled = Path("s/anna.judged.tsv").read_bytes()
    for command in ("export", "serve"):
        refused = call(command, "s/anna.tsv")
        assert refused.code == 1
        assert "has 3 labels that were not given on the page" in refused.err
        assert Path("s/anna.judged.tsv").read_bytes() == filled
    assert call("export", "s/anna.tsv", "-o", "s/anna.judged.tsv").code == 0  # by its name
    with Journal("s/anna.tsv") as journal:
        journal.answer(0, "N")
        assert call("export", "s/anna.tsv").code == 0
        journal.undo()  # the label of an earlier export may go
    assert call("export", "s/anna.tsv").code == 0
    assert Path("s/anna.judged.tsv").read_text() == blank
    Path("s/anna.judged.tsv").write_text("something else\n")
    assert "is not a copy of s/anna.tsv" in call("export", "s/anna.tsv").err


def test_help_teaches():
    for name in ("", "templates", "sheets", "serve", "export", "check", "agreement", "merge"):
        text = call(*name.split(), "--help").out
        assert f"kgtrec judge {name}".strip() in text.partition("\n")[2]
        assert max(map(len, text.splitlines())) <= 100
