"""Which answers change: counted by loops over instances and questions, and ``kgtrec changes``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.study import answer_changes
from kgtrec.study.reporting.page import page_data
from kgtrec.trec.files.run import read_run_columns

N = 15
NAMES = ("a b", "%41", *map(str, range(2, N)))  # labels that run files must encode


@pytest.fixture(scope="module")
def models() -> tuple[kgtrec.Questions, list[np.ndarray], list[kgtrec.Ranks], list[kgtrec.Run]]:
    random = np.random.default_rng(8)
    rows = random.permutation(np.unique(random.integers(0, (N, 2, N), (90, 3)), axis=0))
    graph = kgtrec.Graph.from_arrays(
        train=rows[40:], test=rows[:40], entities=NAMES, relations=["r", "s"]
    )
    questions = graph.questions()
    scores = [random.integers(0, 6, (len(questions), N)).astype(float) for _ in range(2)]
    for one in scores:
        one[:7] = np.arange(N)  # some questions on which both agree
    made = [kgtrec.rank(one, questions, run_depth=4, progress=False) for one in scores]
    return questions, scores, [ranks for ranks, _ in made], [run for _, run in made]


def by_name(ranks):
    return dict(zip(("old", "new"), ranks, strict=True))


def test_hits_are_counted_one_by_one(models):
    _, _, ranks, _ = models
    changes = answer_changes(by_name(ranks), cutoffs=(1, 4))
    for row in changes.table().to_dict().items():
        side, cells = row
        for measure, cell in cells.items():
            k = int(measure.removeprefix("Hits@"))
            gained = lost = hits_old = hits_new = instances = 0
            for i in range(len(ranks[0])):
                if side != "both" and ("head", "tail")[ranks[0].side[i]] != side:
                    continue
                old, new = (one.greater[i] + 1 + one.equal[i] / 2 <= k for one in ranks)
                instances += 1
                hits_old += old
                hits_new += new
                gained += new and not old
                lost += old and not new
            assert cell == {
                "instances": instances, "before": hits_old / instances,
                "after": hits_new / instances, "gained": gained, "lost": lost,
                "changed": (gained + lost) / instances,
            }  # fmt: skip


@pytest.mark.parametrize("as_files", [False, True])
def test_best_answers_are_those_of_sorted_candidates(models, tmp_path, as_files):
    questions, scores, ranks, runs = models
    if as_files:
        for number, run in enumerate(runs):
            run.write(tmp_path / f"{number}.run")
        runs = [tmp_path / "0.run", tmp_path / "1.run"]
    best = answer_changes(by_name(ranks), runs).best
    same, right = [], []
    for question in range(len(questions)):
        known = set(questions.removed[question].tolist())
        firsts = []
        for one in scores:
            names = {e: NAMES[e].replace("%", "%25").replace(" ", "%20") for e in range(N)}
            left = [e for e in range(N) if e not in known]
            firsts.append(
                max(left, key=lambda e, one=one, names=names: (one[question, e], names[e]))
            )
        same.append(firsts[0] == firsts[1])
        right.append([first in questions.answers[question] for first in firsts])
    assert best.same.tolist() == same
    assert best.right.tolist() == right
    assert best.side.tolist() == questions.side.tolist()
    cells = answer_changes(by_name(ranks), runs).best_table().to_dict()["both"]
    assert cells["agreement"] == np.mean(same)
    assert cells["only_after_right"] == sum(b and not a for a, b in right)
    counted = ("same_right", "same_wrong", "only_before_right", "only_after_right", "both_right",
               "both_wrong")  # fmt: skip
    assert sum(cells[key] for key in counted) == len(questions) == cells["questions"]


def test_the_largest_changes_come_first(models):
    _, _, ranks, _ = models
    changes = answer_changes(by_name(ranks))
    gaps = 1 / ranks[1].rank() - 1 / ranks[0].rank()
    for kind, wanted in (("changed", np.abs(gaps)), ("gained", gaps), ("lost", -gaps)):
        rows = changes.largest(1000, kind).rows
        shown = [1 / after - 1 / before for _, _, before, after in rows]
        shown = np.abs(shown) if kind == "changed" else np.array(shown) * (-1) ** (kind == "lost")
        np.testing.assert_allclose(shown, np.sort(wanted[wanted > 0])[::-1])
        assert changes.largest(2, kind).rows == rows[:2]
    first = changes.largest(1).rows[0]
    row = int(np.argmax(np.abs(gaps)))
    given, answer = (NAMES[column[row]] for column in (ranks[0].given, ranks[0].answer))
    relation = ["r", "s"][ranks[0].relation[row]]
    question = "({}, {}, {})".format(
        *(("?", relation, given) if ranks[0].side[row] == 0 else (given, relation, "?"))
    )
    assert first[:2] == (question, answer)


def test_what_is_refused(models):
    questions, _, ranks, runs = models
    with pytest.raises(UsageError, match="give ranks of two models, and two runs or none"):
        answer_changes({"a": ranks[0]})
    with pytest.raises(UsageError, match="give ranks of two models, and two runs or none"):
        answer_changes(by_name(ranks), runs[:1])
    with pytest.raises(UsageError, match="cutoffs"):
        answer_changes(by_name(ranks), cutoffs=(0,))
    with pytest.raises(UsageError, match="kind='worse' is unknown; it must be 'changed',"):
        answer_changes(by_name(ranks)).largest(kind="worse")
    other = questions.graph.questions(sides="tail")
    tails, run = kgtrec.rank(np.zeros((len(other), N)), other, run_depth=1, progress=False)
    with pytest.raises(InputError, match="cannot be compared"):
        answer_changes({"a": ranks[0], "b": tails})
    strange = kgtrec.Run(["q1"], run.offsets[:2], run.documents[:1], run.scores[:1], run.docnos, 1)
    with pytest.raises(
        InputError, match=r"run of 'old' does not have the questions of these ranks"
    ):
        answer_changes(by_name(ranks), [strange, strange])
    with pytest.raises(InputError, match=r"run of 'old' puts .* first for question"):
        answer_changes(by_name(ranks), runs[::-1])


def test_runs_of_something_else_are_refused(models):
    """In both directions: the first answer by ranks is not first, or another one is."""
    questions, scores, ranks, runs = models
    worse, better = scores[0].copy(), scores[0].copy()
    behind = np.flatnonzero(ranks[0].macro_rank("ordinal") > 1)[-1]
    ahead = np.flatnonzero(ranks[0].macro_rank("ordinal") == 1)[-1]
    worse[ranks[0].question[ahead], ranks[0].answer[ahead]] = -1
    better[ranks[0].question[behind], ranks[0].answer[behind]] = 99
    answer = NAMES[ranks[0].answer[ahead]]
    for changed, words in ((worse, f"but its ranks put {answer!r} first"),
                           (better, "but its ranks put")):  # fmt: skip
        _, run = kgtrec.rank(changed, questions, run_depth=2, progress=False)
        with pytest.raises(InputError, match=words):
            answer_changes(by_name(ranks), [run, runs[1]])
    with pytest.raises(InputError, match="run of 'one' puts"):
        page_data({"one": ranks[0]}, runs={"one": read_run_columns(written(run))})


def written(run: kgtrec.Run) -> str:
    path = Path(tempfile.mkdtemp()) / "x.run"
    run.write(path)
    return str(path)


def test_the_command(models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _, _, ranks, runs = models
    monkeypatch.chdir(tmp_path)
    for name, one, run in zip(("old", "new"), ranks, runs, strict=True):
        one.save(f"{name}.parquet")
        run.write(f"{name}.run")
    changes = answer_changes(by_name(ranks), runs, cutoffs=(2,))

    def run_command(*options: str):
        return CliRunner().invoke(
            cli, ["changes", "old.parquet", "new.parquet", *options], standalone_mode=False
        )

    both = ("--k", "2", "--run", "old.run", "--run", "new.run")
    done = json.loads(run_command(*both, "--format", "json").stdout)
    assert done["hits"] == json.loads(changes.table().to_json())
    assert done["best"] == json.loads(changes.best_table().to_json())
    lost = run_command("--show", "lost", "--largest", "3", "--format", "csv").stdout
    assert lost == changes.largest(3, "lost").to_csv()
    text = run_command(*both).stdout
    assert "same first" in text
    assert "Hits@2" in text
    assert "AnswerChanges from old to new" in repr(changes)
    assert "<table>" in changes._repr_html_()
    for options, message in (
        (("--run", "old.run"), "give one --run per file"),
        (("--show", "best"), "--show best needs runs"),
        (("--format", "csv"), "writes only one table"),
        (("--k", "x"), "--k 'x'"),
        (("--name", "a", "--name", "a"), "both models are named 'a'"),
    ):
        assert message in str(run_command(*options).exception)
