"""Systems of several runs: against a bootstrap in plain Python that draws runs and questions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import mean, stdev

import numpy as np
import pytest
from compare_cases import N_ENTITIES, graph
from refusals import assert_refused, refusals

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import InputError, UsageError
from kgtrec.ranking.ranks import Ranks
from kgtrec.study.comparison.replicates import compare_replicates, grouped_names, multiplicity
from kgtrec.study.comparison.samples import resample, samples_of_ranks
from kgtrec.trec.files.columns import RunColumns


def runs(name: int, n: int, noise: float, level: float = 1.0, seed: int = 0) -> list[Ranks]:
    """Runs of one system: scores have a common part and one per run."""
    questions = graph(seed).questions("test")
    common = np.random.default_rng([name, seed]).random((len(questions), N_ENTITIES))
    ranks = []
    for run in range(n):
        own = np.random.default_rng([name, seed, run]).random(common.shape)
        scores = (common + noise * own).astype(np.float32)
        for row, answers in enumerate(
            np.split(questions.answers.ids, questions.answers.offsets[1:-1])
        ):
            scores[row, answers] += level
        ranks.append(kgtrec.evaluate(scores, questions, progress=False).ranks)
    return ranks


@pytest.fixture(scope="module")
def systems() -> dict[str, list[Ranks]]:
    return {"a": runs(1, 4, 0.5, 0.6), "b": runs(2, 3, 2.0, 0.5), "c": runs(3, 1, 0.5, 0.1)}


def slow_values(ranks: Ranks) -> dict[int, list[float]]:
    """Reciprocal ranks by question."""
    values: dict[int, list[float]] = {}
    for question, g, e in zip(ranks.question.tolist(), ranks.greater.tolist(),
                              ranks.equal.tolist(), strict=True):  # fmt: skip
        values.setdefault(question, []).append(1 / (g + 1 + e / 2))
    return values


def slow_two_way(systems: Sequence[Sequence[Ranks]], draws: int, seed: int) -> list[list[float]]:
    """Means of each system on draws of runs and of questions: loops over lists."""
    rng = random.Random(seed)
    tables = [[slow_values(run) for run in own] for own in systems]
    questions = list(tables[0][0])
    lines = []
    for _ in range(draws):
        drawn = rng.choices(questions, k=len(questions))
        line = []
        for own in tables:
            picked = rng.choices(own, k=len(own))
            line.append(mean(mean(v for q in drawn for v in run[q]) for run in picked))
        lines.append(line)
    return lines


def test_means_and_deviations_are_those_of_the_runs(systems: dict[str, list[Ranks]]) -> None:
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=100))
    for place, own in enumerate(systems.values()):
        values = [kgtrec.Result(run)["mrr"] for run in own]
        assert replicates.values[place].tolist() == pytest.approx(values, abs=1e-12)
        assert replicates.means[place] == pytest.approx(mean(values), abs=1e-12)
        if len(values) > 1:
            assert replicates.deviations[place] == pytest.approx(stdev(values), abs=1e-12)
    assert np.isnan(replicates.deviations[2])


@pytest.mark.slow
def test_draws_are_distributed_as_those_of_a_slow_bootstrap(
    systems: dict[str, list[Ranks]],
) -> None:
    draws = 1200
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=20_000))
    slow = np.array(slow_two_way(list(systems.values()), draws, 1))
    for i in range(3):
        error = slow[:, i].std() / draws**0.5
        assert abs(replicates.draws[:, i].mean() - slow[:, i].mean()) < 5 * error
        # of a deviation: relative error of about 1 / sqrt(2 draws)
        assert replicates.draws[:, i].std() == pytest.approx(
            slow[:, i].std(), rel=5 / (2 * draws) ** 0.5
        )
    for i, j in ((0, 1), (0, 2), (1, 2)):
        fast, due = (d[:, i] - d[:, j] for d in (replicates.draws, slow))
        assert fast.std() == pytest.approx(due.std(), rel=5 / (2 * draws) ** 0.5)
        ends = np.quantile(due, [0.05, 0.95])
        assert np.quantile(fast, [0.05, 0.95]) == pytest.approx(ends, abs=0.35 * due.std())


def test_the_spread_between_runs_widens_intervals(systems: dict[str, list[Ranks]]) -> None:
    own = {"b": systems["b"], "a": systems["a"]}
    (replicates,) = compare_replicates(own, ["mrr"], resampling=Resampling(resamples=5000))
    (samples,) = samples_of_ranks({str(i): run for i, run in enumerate(own["b"])}, ["mrr"])
    only_questions = resample(samples, Resampling(resamples=5000)).draws.mean(axis=1)
    assert replicates.draws[:, 0].std() > only_questions.std()


def slow_folds(folds: Sequence[Sequence[Ranks]], draws: int) -> list[list[float]]:
    """Means of each system on draws of folds, common to all, and of questions in each fold."""
    rng = random.Random(4)
    tables = [[slow_values(run) for run in own] for own in folds]
    lines = []
    for _ in range(draws):
        parts = []
        for fold in rng.choices(tables, k=len(tables)):
            drawn = rng.choices(list(fold[0]), k=len(fold[0]))
            parts.append([mean([v for q in drawn for v in run[q]]) for run in fold])
        lines.append([mean(line) for line in zip(*parts, strict=True)])
    return lines


def test_folds_have_questions_of_their_own() -> None:
    folds = [[runs(1, 1, 0.5, 0.6, seed)[0], runs(2, 1, 0.5, 0.5, seed)[0]] for seed in range(4)]
    systems = {"a": [fold[0] for fold in folds], "b": [fold[1] for fold in reversed(folds)]}
    draws = 300
    (replicates,) = compare_replicates(systems, ["mrr"], resampling=Resampling(resamples=4_000))
    assert replicates.folds == 4
    for place, name in enumerate(systems):
        due = [mean(v for one in slow_values(fold[place]).values() for v in one) for fold in folds]
        assert replicates.values[place].tolist() == pytest.approx(due), name
    slow = np.array(slow_folds(folds, draws))
    pairs = [(replicates.draws[:, i], slow[:, i]) for i in range(2)]
    pairs.append((replicates.draws[:, 0] - replicates.draws[:, 1], slow[:, 0] - slow[:, 1]))
    for fast, due in pairs:
        assert fast.mean() == pytest.approx(due.mean(), abs=5 * due.std() / draws**0.5)
        assert fast.std() == pytest.approx(due.std(), rel=5 / (2 * draws) ** 0.5)


def test_a_system_on_folds_alone() -> None:
    own = [runs(1, 1, 0.5, 0.6, seed)[0] for seed in range(3)]
    (replicates,) = compare_replicates({"a": own}, ["mrr"], resampling=Resampling(resamples=200))
    assert replicates.draws.shape == (200, 1)
    assert len(replicates.values[0]) == replicates.folds == 3


def test_every_system_was_run_on_every_fold() -> None:
    one, two = runs(1, 2, 1.0, seed=1), runs(1, 2, 1.0, seed=2)
    for wrong in ({"a": [one[0], two[0]], "b": [one[1]]},
                  {"a": [one[0], two[0]], "b": [one[1], one[0]]}):  # fmt: skip
        with pytest.raises(
            InputError, match=r"cannot be compared: graph.*every system on each fold"
        ):
            compare_replicates(wrong, ["mrr"])
    raw = kgtrec.evaluate(
        np.zeros((len(graph(2).questions("test")), N_ENTITIES), np.float32),
        graph(2).questions("test", filter="raw"), progress=False,
    ).ranks  # fmt: skip
    with pytest.raises(InputError, match=r"cannot be compared.*filter"):
        compare_replicates({"a": [one[0], raw], "b": [one[1], raw]}, ["mrr"])


def test_a_single_run_each_is_the_bootstrap_over_questions() -> None:
    one = {"a": runs(1, 1, 0.5, 0.6), "b": runs(2, 1, 0.5, 0.4)}
    (replicates,) = compare_replicates(one, ["mrr"], resampling=Resampling(resamples=500, seed=3))
    (samples,) = samples_of_ranks({n: own[0] for n, own in one.items()}, ["mrr"])
    assert np.array_equal(
        replicates.draws, resample(samples, Resampling(resamples=500, seed=3)).draws
    )


@pytest.mark.slow
def test_false_findings_are_rare_and_true_ones_found() -> None:
    """Systems of one kind: at most about 5 % of pairs differ at 5 %."""
    wrong = 0
    for seed in range(40):
        alike = {"a": runs(1, 4, 1.0, 0.4, seed), "b": runs(2, 4, 1.0, 0.4, seed)}
        (replicates,) = compare_replicates(alike, ["mrr"], resampling=Resampling(resamples=400))
        wrong += bool(replicates.better(0.05).any())
    assert wrong <= 6
    unlike = {"a": runs(1, 4, 1.0, 0.8), "b": runs(2, 4, 1.0, 0.1)}
    (replicates,) = compare_replicates(unlike, ["mrr"], resampling=Resampling(resamples=400))
    assert replicates.better()[0, 1]
    assert not replicates.better()[1, 0]


def test_tables(systems: dict[str, list[Ranks]]) -> None:
    of_mrr, of_rank = compare_replicates(
        systems, ["mrr", "mr"], resampling=Resampling(resamples=200)
    )
    rows = of_mrr.value_table().rows
    assert [row[1] for row in rows] == [len(systems[str(row[0])]) for row in rows]
    values = [float(row[2]) for row in rows]
    assert values == sorted(values, reverse=True)
    lowest = [float(row[2]) for row in of_rank.value_table().rows]
    assert lowest == sorted(lowest)
    for row in of_mrr.pair_table().rows:
        assert float(row[2]) >= 0
        assert float(row[3]) <= float(row[2]) <= float(row[4])
    assert all(float(row[2]) <= 0 for row in of_rank.pair_table().rows)


@pytest.mark.parametrize(("name", "system"), [
    ("transe-1", "transe"), ("transe_seed2", "transe"), ("transe.fold3", "transe"),
    ("transe-run-04", "transe"), ("TransE-S7", "TransE"), ("complex", "complex"), ("12", "12"),
    ("distmult512-1", "distmult512"), ("TuckER-1", "TuckER"), ("tucker2", "tucker"),
    ("TuckER_r2", "TuckER"), ("cross.s-3", "cross"),
])  # fmt: skip
def test_runs_are_named_with_a_number(name: str, system: str) -> None:
    assert grouped_names([name]) == [system]


def test_multiplicity_is_that_of_loops(systems: dict[str, list[Ranks]]) -> None:
    models = {f"{n}{i}": run for n, own in systems.items() for i, run in enumerate(own)}
    ranks = {n: [g + 1 + e / 2 for g, e in zip(r.greater.tolist(), r.equal.tolist(), strict=True)]
             for n, r in models.items()}  # fmt: skip
    mrr = {n: mean(1 / x for x in r) for n, r in ranks.items()}
    best = max(mrr, key=lambda n: mrr[n])
    for epsilon in (0.0, 0.02, 0.1, 1.0):
        result = multiplicity(models, epsilon, (1, 5))
        close = [n for n in models if mrr[best] - mrr[n] <= epsilon]
        assert list(result.models) == close
        for k, ambiguity, discrepancy in zip((1, 5), result.ambiguity, result.discrepancy,
                                             strict=True):  # fmt: skip
            items = range(len(ranks[best]))
            differs = {n: [(ranks[n][i] <= k) != (ranks[best][i] <= k) for i in items]
                       for n in close}  # fmt: skip
            assert ambiguity == pytest.approx(
                mean(any(differs[n][i] for n in close) for i in items)
            )
            assert discrepancy == pytest.approx(max(mean(d) for d in differs.values()))


def slow_run(queries: Sequence[str], seed: int) -> dict[str, list[tuple[bytes, float]]]:
    """Every second model ranks much like the one before it."""
    rng = random.Random(seed // 2)
    noise = random.Random(seed)
    names = [b"e9", b"e10", b"\xc3\xa9", b"E", b"e1"]
    return {q: [(name, float(rng.randrange(3) + (noise.random() < 0.1)))
                for name in noise.sample(names, len(names))] for q in queries}  # fmt: skip


def columns(run: dict[str, list[tuple[bytes, float]]]) -> RunColumns:
    rows = [row for one in run.values() for row in one]
    ends = np.cumsum([0, *(len(name) for name, _ in rows)])
    sizes = np.cumsum([0, *(len(one) for one in run.values())])
    text = np.frombuffer(b"".join(name for name, _ in rows), np.uint8)
    return RunColumns(list(run), sizes, ends, text, np.array([s for _, s in rows]), "t")


def test_best_answers_are_those_of_loops(systems: dict[str, list[Ranks]]) -> None:
    """Runs with many ties, in any order of lines: sorted by score, then by name."""
    models = {f"{n}{i}": run for n, own in systems.items() for i, run in enumerate(own)}
    queries = sorted(set(models["a0"].question_ids))
    lists = {n: slow_run(queries, seed) for seed, n in enumerate(models)}
    first = {n: {q: max(rows, key=lambda row: (row[1], row[0]))[0] for q, rows in run.items()}
             for n, run in lists.items()}  # fmt: skip
    runs = {n: columns(run) for n, run in lists.items()}
    for epsilon in (0.0, 0.1, 1.0):
        result = multiplicity(models, epsilon, runs=runs)
        differs = {n: [first[n][q] != first[result.best][q] for q in queries]
                   for n in result.models}  # fmt: skip
        some = mean(any(line[i] for line in differs.values()) for i in range(len(queries)))
        most = max(mean(line) for line in differs.values())
        assert result.best_answer == pytest.approx((some, most))
        assert result.table().rows[0] == ("best answer", len(result.models), some, most)
    assert 0 < result.best_answer[1] < result.best_answer[0]
    with pytest.raises(UsageError, match="'c0' has no run"):
        multiplicity(models, runs={n: run for n, run in runs.items() if n != "c0"})
    less = {n: columns({q: run[q] for q in queries[1:]}) for n, run in lists.items()}
    with pytest.raises(InputError, match=f"does not have question {queries[0]}"):
        multiplicity(models, 1.0, runs=less)


@refusals(
    ("no run", lambda a: compare_replicates({"a": a, "x": []}, ["mrr"]), UsageError,
     ("'x' has no run",)),
    ("graphs", lambda a: compare_replicates({"a": a, "o": runs(1, 2, 1.0, seed=5)}, ["mrr"]),
     InputError, ("cannot be compared",)),
    ("epsilon", lambda a: multiplicity({"a": a[0], "b": a[1]}, -0.1), UsageError, ("epsilon",)),
    ("cut", lambda a: multiplicity({"a": a[0], "b": a[1]}, 0.1, (0,)), UsageError,
     ("give cutoffs of 1 or more",)),
)  # fmt: skip
def test_wrong_calls(
    systems: dict[str, list[Ranks]],
    call: Callable[..., object], error: type[Exception], words: tuple[str, ...],
) -> None:  # fmt: skip
    assert_refused(call, error, words, systems["a"])
