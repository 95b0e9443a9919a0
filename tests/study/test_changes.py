"""Which answers change, and the shift of relations between splits: counted by loops."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_cases import Case, cases, columns, make_ranks

import kgtrec
from kgtrec import Result
from kgtrec.errors import InputError
from kgtrec.graph.statistics.relations import kl_divergence
from kgtrec.study import answer_changes
from kgtrec.study.reporting.builder import build_page_data
from kgtrec.study.stratified import read_relation_counts, reweight, reweight_mean
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
    for side, cells in answer_changes(by_name(ranks), cutoffs=(1, 4)).table().to_dict().items():
        own = [
            i for i, code in enumerate(ranks[0].side) if side in ("both", ("head", "tail")[code])
        ]
        for measure, cell in cells.items():
            k = int(measure.removeprefix("Hits@"))
            old, new = ([one.greater[i] + 1 + one.equal[i] / 2 <= k for i in own] for one in ranks)
            gained, lost = (
                sum(b and not a for a, b in zip(*two, strict=True))
                for two in ((old, new), (new, old))
            )
            assert cell == {
                "instances": len(own),
                "before": np.mean(old),
                "after": np.mean(new),
                "gained": gained,
                "lost": lost,
                "changed": (gained + lost) / len(own),
            }


def test_best_answers_are_those_of_sorted_candidates(models, tmp_path):
    questions, scores, ranks, runs = models
    names = [name.replace("%", "%25").replace(" ", "%20") for name in NAMES]
    firsts, right = [], []
    for question in range(len(questions)):
        left = set(range(N)) - set(questions.removed[question].tolist())
        firsts.append([max((one[question, e], names[e], e) for e in left)[2] for one in scores])
        right.append([first in questions.answers[question] for first in firsts[-1]])
    same = [one == other for one, other in firsts]
    for number, run in enumerate(runs):
        run.write(tmp_path / f"{number}.run")
    for given_runs in (runs, [tmp_path / "0.run", tmp_path / "1.run"]):
        changes = answer_changes(by_name(ranks), given_runs)
        assert changes.best[:, 0].tolist() == questions.side.tolist()
        assert changes.best[:, 1].tolist() == same
        assert changes.best[:, 2:].tolist() == right
    cells = changes.best_table().to_dict()["both"]
    assert cells["agreement"] == np.mean(same)
    assert cells["only_after_right"] == sum(b and not a for a, b in right)
    counted = (
        "same_right",
        "same_wrong",
        "only_before_right",
        "only_after_right",
        "both_right",
        "both_wrong",
    )
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


def test_runs_of_something_else_are_refused(models, tmp_path):
    """In both directions: the first answer by ranks is not first, or another one is."""
    questions, scores, ranks, runs = models
    worse, better = scores[0].copy(), scores[0].copy()
    behind = np.flatnonzero(ranks[0].macro_rank("ordinal") > 1)[-1]
    ahead = np.flatnonzero(ranks[0].macro_rank("ordinal") == 1)[-1]
    worse[ranks[0].question[ahead], ranks[0].answer[ahead]] = -1
    better[ranks[0].question[behind], ranks[0].answer[behind]] = 99
    answer = NAMES[ranks[0].answer[ahead]]
    for changed, words in (
        (worse, f"but its ranks put {answer!r} first"),
        (better, "but its ranks put"),
    ):
        _, run = kgtrec.rank(changed, questions, run_depth=2, progress=False)
        with pytest.raises(InputError, match=words):
            answer_changes(by_name(ranks), [run, runs[1]])
    run.write(tmp_path / "x.run")
    with pytest.raises(InputError, match="run of 'one' puts"):
        build_page_data({"one": ranks[0]}, runs={"one": read_run_columns(str(tmp_path / "x.run"))})


COUNTS = st.lists(st.integers(0, 50), min_size=3, max_size=3)


@given(COUNTS, COUNTS, st.sampled_from([0.5, 1.0]))
def test_divergence_by_hand(reference: list[int], other: list[int], extra: float) -> None:
    p = [(count + extra) / (sum(reference) + 3 * extra) for count in reference]
    q = [(count + extra) / (sum(other) + 3 * extra) for count in other]
    due = math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    divergence = kl_divergence(reference, other, extra)
    assert divergence == pytest.approx(due, abs=1e-12)
    assert divergence >= -1e-15


@given(cases(), COUNTS)
def test_reweighting_by_hand(case: Case, counts: list[int]) -> None:
    ranks = make_ranks(columns(case))
    result = Result(ranks)
    relations = sorted(set(ranks.relation.tolist()))
    own = np.bincount(ranks.relation, minlength=3)
    total = sum(counts[r] for r in relations)
    for name, f in (("mr", lambda r: r), ("mrr", lambda r: 1 / r), ("hits@1", lambda r: r <= 1)):
        key = f"{result.sides[-1]}.realistic.micro.{name}"
        assert reweight(result, key, own) == pytest.approx(result[key], rel=1e-12)
        if not total:
            with pytest.raises(InputError, match="share relations"):
                reweight(result, key, counts)
            continue
        values = f(ranks.rank())
        due = sum(counts[r] / total * values[ranks.relation == r].mean() for r in relations)
        assert reweight(result, key, counts) == pytest.approx(due, rel=1e-12)


@pytest.mark.data
def test_published_metrics_with_the_sparse_ratios(shared_data: Path) -> None:
    """13 systems, 12 metrics: FB-Test-S-C's values per relation, FB-Test-S's ratios."""
    place = shared_data / "kgc-sparsity"
    counts = read_relation_counts(place / "data" / "FB-Test-S" / "samples.txt")
    assert sum(counts.values()) == 1_023
    per_relation, published = (
        list(csv.DictReader((place / "result" / "FB-Test-S-C" / name).read_text().splitlines()))
        for name in ("lp_per_rel.csv", "lp_sample_rel_dist.csv")
    )
    metrics = [key for key in published[0] if key.startswith("micro_")]
    assert (len(published), len(metrics)) == (13, 12)
    for row in published:
        own = {r["Relation"]: r for r in per_relation if r["System"] == row["System"]}
        for metric in metrics:
            values = [float(own[label][metric]) if label in own else math.nan for label in counts]
            value = reweight_mean(values, list(counts.values()))
            assert value == pytest.approx(float(row[metric]), rel=1e-12)
