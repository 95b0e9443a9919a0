"""The audit of merged labels: balanced, blank, drawn evenly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgtrec.cli import cli
from kgtrec.errors import KgtrecError, UsageError
from kgtrec.study.judging.agreement import audit_sample
from kgtrec.study.judging.journal import judged_sheet
from kgtrec.study.judging.sheets import Item, write_sheet

LABELS = "YNNNY?NN" + "" * 2
ITEMS = [
    Item(f"h{i}", "r", f"t{i}", f"q{i}", (*LABELS, "")[i % 9], "http://x", "n") for i in range(90)
]


def test_as_many_true_as_false_and_nothing_given_away() -> None:
    labels = {item.triple: item.label for item in ITEMS}
    for seed in range(20):
        sample = audit_sample(ITEMS, 12, seed)
        assert Counter(labels[item.triple] for item in sample) == {"Y": 6, "N": 6}
        assert len({item.triple for item in sample}) == 12
        assert {(item.label, item.evidence, item.note) for item in sample} == {("", "", "")}
        assert audit_sample(reversed(ITEMS), 12, seed) == sample


def test_every_triple_has_the_same_chance() -> None:
    drawn = Counter(item.triple for seed in range(1500) for item in audit_sample(ITEMS, 4, seed))
    for label in "YN":
        own = [item.triple for item in ITEMS if item.label == label]
        due = 1500 * 2 / len(own)
        assert all(abs(drawn[triple] - due) < 6 * due**0.5 for triple in own)
    places = Counter(
        audit_sample(ITEMS, 2, seed)[0].triple in {i.triple for i in ITEMS if i.label == "Y"}
        for seed in range(400)
    )
    assert 140 < places[True] < 260


@pytest.mark.parametrize(("size", "said"), [(3, "even number"), (0, "even"), (1000, "at most 40")])
def test_wrong_sizes(size: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        audit_sample(ITEMS, size)


def test_the_command_and_the_agreement_with_it(tmp_path: Path) -> None:
    sheet, blank = tmp_path / "judged.tsv", tmp_path / "expert.tsv"
    write_sheet(sheet, ITEMS)

    def run(*words: object) -> str:
        done = CliRunner().invoke(cli, ["judge", *map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    run("audit", sheet, "-n", 20, "-o", blank)
    labels = {item.triple: item.label for item in ITEMS}
    items = judged_sheet(blank).items
    judged = [Item(*i.triple, i.question, labels[i.triple] if n else "?") for n, i in
            enumerate(items)]  # fmt: skip
    write_sheet(tmp_path / "expert.judged.tsv", judged)
    text = run("agreement", sheet, tmp_path / "expert.judged.tsv", "--format", "csv")
    assert text.splitlines()[1].split(",")[3:5] == ["20", "0.95"]
    with pytest.raises(KgtrecError, match="is there already"):
        run("audit", sheet, "-n", 20, "-o", blank)
