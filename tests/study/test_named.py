"""Systems in a mapping, in pairs and in a sequence: the same values under the same names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compare_cases import systems

import kgtrec
from kgtrec import study
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.named import by_name, by_names_of
from kgtrec.errors import UsageError

FEW = Resampling(resamples=100)
RUNS = {"system 1": {"q": {"a": 2.0, "b": 1.0}}, "system 2": {"q": {"b": 2.0}}}
QRELS = {"q": {"a": 1, "b": 0}}
OF_RANKS: dict[str, Callable[[Any], Any]] = {
    "samples_of_ranks": lambda ranks: study.samples_of_ranks(ranks, ["mrr"])[0],
    "compare": lambda ranks: kgtrec.compare(ranks, "mrr", resampling=FEW)[0],
    "multiplicity": lambda ranks: study.multiplicity(ranks, 1.0),
    "data_sensitivity": lambda ranks: study.data_sensitivity(ranks, ["mrr"], repeats=2),
    "compare_replicates": lambda ranks: study.compare_replicates(ranks, ["mrr"], resampling=FEW)[0],
    "table_of_models": lambda ranks: study.table_of_models({"g": ranks}),
    "suite_of_ranks": lambda ranks: study.suite_of_ranks({"g": ranks, "h": ranks}, ["mrr"])[0],
}


@pytest.mark.parametrize("function", OF_RANKS)
def test_systems_may_be_a_mapping_pairs_or_a_sequence(function: str) -> None:
    values = list(systems(3).values())
    noun = "model" if function in ("table_of_models", "suite_of_ranks") else "system"
    by_number = {f"{noun} {number}": ranks for number, ranks in enumerate(values, start=1)}
    results = [kgtrec.evaluate(ranks) for ranks in values]
    show = OF_RANKS[function]
    expected = show(by_number)._repr_html_()
    for named in (values, tuple(values), [*by_number.items()], by_number.items(), results):
        assert show(named)._repr_html_() == expected


def test_two_models_of_changes_may_have_no_names() -> None:
    first, second = systems(2).values()
    by_number = {"system 1": first, "system 2": second}
    expected = study.answer_changes(by_number)._repr_html_()
    assert "system 2" in expected
    assert study.answer_changes([first, second])._repr_html_() == expected
    with pytest.raises(UsageError, match="between two models; ranks= has 1"):
        study.answer_changes([first])


def test_runs_may_be_a_mapping_pairs_or_a_sequence(tmp_path: Path) -> None:
    expected = study.samples_of_runs(QRELS, RUNS, ["map"])[0]
    for runs in ([*RUNS.values()], [*RUNS.items()]):
        (found,) = study.samples_of_runs(QRELS, runs, ["map"])
        assert found.systems == expected.systems
        assert found.values.tolist() == expected.values.tolist()
    paths = [tmp_path / "svd.run", tmp_path / "bm25.run.gz"]
    for path, run in zip(paths, RUNS.values(), strict=True):
        kgtrec.trec.write_run(run, path)
    (found,) = study.samples_of_runs(QRELS, paths, ["map"])
    assert found.systems == ("svd", "bm25")  # as in pools
    contributors = {"q": {"a": ["svd"], "b": ["bm25"]}}
    assert study.leave_one_out(QRELS, paths, contributors, "map").contributors == ("svd", "bm25")


def test_values_of_systems_follow_their_names_or_their_order() -> None:
    names = ["a", "b"]
    for values in ({"b": 2, "a": 1}, [("b", 2), ("a", 1)], [1, 2], iter([1, 2])):
        assert by_names_of("runs", values, names) == {"a": 1, "b": 2}
    for wrong in ({"a": 1}, [("a", 1), ("c", 2)]):
        with pytest.raises(UsageError, match=r"runs= has no .*by the same names"):
            by_names_of("runs", wrong, names)
    for wrong in ([1], [1, 2, 3]):
        with pytest.raises(UsageError, match=f"runs= has length {len(wrong)}, but there are 2"):
            by_names_of("runs", wrong, names)


@pytest.mark.parametrize("wrong", [{1: 2}, [("a", 1), ("a", 2)], "a", 1, None, {None: 1}])
def test_systems_without_names_are_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"runs=.*(not a text|twice|is not several systems)"):
        by_name("runs", wrong)
