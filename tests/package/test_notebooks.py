"""What notebooks and consoles show: three lines, HTML that labels cannot break, bars, silence."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compare_cases import systems

import kgtrec
from kgtrec import study
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.runtime import progress_bar
from kgtrec.study import openworld
from kgtrec.study.comparison.parts import ValueTable, values_by_part
from kgtrec.study.openworld.compare import compare_values
from kgtrec.study.openworld.experiment import MODELS
from kgtrec.study.pooling.edited_files import Judgements
from kgtrec.study.suite.cells import SuiteCells

EVIL = "<script>alert(1)</script> & \udce9"

SOME = Resampling(resamples=100)
QRELS = {"q": {"x": 1, "y": 0}, "p": {"y": 1}}
RUNS = {name: {"q": {"x": 2.0, "y": 1.0}, "p": {"y": 1.0}} for name in (EVIL, "b", "c")}
CONTRIBUTORS = {"q": {"x": (EVIL,), "y": ("b", "c")}}


def judged(graph: kgtrec.Graph, run: kgtrec.Run) -> dict[str, Any]:
    """From seeds to labels."""
    seeds = study.seed_questions(graph, graph.split("test")[:1])
    lists = study.run_lists(run, seeds, EVIL)
    pool = study.make_pool([lists], seeds, 2)
    judgements = Judgements({tuple(pool.triples[0].tolist()): 1}, 1)
    completion = study.complete(seeds, pool, judgements)
    return {
        "seed sample": study.sample_seeds(graph, 0.5), "seeds": seeds, "lists": lists, "pool": pool,
        "judgements": judgements, "completion": completion, "qrels": completion.qrels(),
        "unjudged": study.intervals(lists, completion)["P_10"],
    }  # fmt: skip


def open_worlds() -> dict[str, Any]:
    tree = study.family_tree(families=1, people=30)
    return {
        "tree": tree, "removal": study.random_removal(tree.facts, 0.5),
        "moments": openworld.moments((0.5, 0.6), 0.2, 9),
        "simulation": openworld.simulate((0.5, 0.6), (0.2,), repeats=9),
        "open world": compare_values((0.3, 0.25), 500, 4.0, [0.2], names=(EVIL, "b")),
    }  # fmt: skip


def of_sampled(questions: kgtrec.Questions, scores: np.ndarray) -> dict[str, Any]:
    draw = study.draw_candidates(questions, 10, "uniform")
    counts = study.count_sampled(draw, scores)
    return {
        "draw": draw, "counts": counts, "check": study.draw_check(counts, 1),
        "estimates": study.full_estimates(counts),
    }  # fmt: skip


def of_graphs(graph: kgtrec.Graph) -> dict[str, Any]:
    sampled = kgtrec.evaluate(
        np.arange(9.0).reshape(3, 3), graph.questions().restrict(candidates=[[0, 1, 2]] * 3),
        progress=False,
    )  # fmt: skip
    labelled = kgtrec.LabelledTriples([[0, 0, 1], [1, 0, 0]] * 9, [1, 0] * 9, np.arange(18.0))
    return {
        "frequencies": study.entity_frequencies(graph), "mix": study.triple_mix(graph),
        "correlations": study.popularity_correlations(graph), "leaks": study.find_leaks(graph),
        "categories": study.relation_categories(graph), "bounds": study.rank_bounds(sampled.ranks),
        "fitting": study.fitting_observed(graph), "labelled": labelled,
        "classification": kgtrec.classify(labelled, labelled, resampling=SOME),
    }  # fmt: skip


def of_tables(questions: kgtrec.Questions, ranks: dict[str, kgtrec.Ranks]) -> dict[str, Any]:
    numbers = {EVIL: {"mrr": "0.5", "hits@1": "0.9"}}
    cells = SuiteCells(kgtrec.Measure.parse("mrr"), ("a", EVIL), ("g", "h"),
                       np.array([[0.1, 0.2], [0.3, np.nan]]), np.ones((2, 2), int))  # fmt: skip
    return {
        "audit": study.audit(numbers, instances=9, entities=9), "cells": cells,
        "protocols": study.protocols_of(numbers, {EVIL: {"filtered": ranks["m"]}}),
        "suite": study.suites([cells], resampling=SOME)[0],
    }  # fmt: skip


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every kind of result once."""
    written = {name: tmp_path_factory.mktemp("runs") / "run" for name in "ab"}
    for path in written.values():
        path.write_text("q Q0 x 1 2 t\nq Q0 y 2 1 t\np Q0 y 1 1 t\n")
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2)], entities=["a", "b", EVIL], relations=[EVIL]
    )
    graph.name = EVIL
    questions = graph.questions()
    scores = np.random.default_rng(0).random((len(questions), 3)).astype(np.float32)
    result = kgtrec.evaluate(scores, questions, progress=False)
    answers = kgtrec.AnswerScores(questions)
    answers.fill(scores)
    ranks = systems(2)
    (samples,) = study.samples_of_ranks({EVIL: ranks["s0"], "b": ranks["s1"]}, ["mrr"])
    runs = {EVIL: list(systems(2).values()), "b": [ranks["s1"]]}
    named = {EVIL: ranks["s0"], "b": ranks["s1"]}
    three = {**named, "c": systems(3)["s2"]}
    of_three = study.samples_of_ranks(three, ["mrr", "mr"])
    rankings = study.rankings_of_samples({one.name: one for one in of_three}, resampling=SOME)
    values = values_by_part(three, "side", ["mrr"])[0]
    return {
        "multiplicity": study.multiplicity(named),
        "parts": values_by_part(named, "side", ["mrr"])[0],
        "models": study.table_of_models({"": named}, ["mrr"]),
        "grid": study.beta_grid(ranks["s0"], metrics=("mrr",)),
        "sensitivity": study.data_sensitivity(three, ["mrr"], repeats=2, progress=None),
        "discrimination": study.discriminate(of_three, "t"),
        "rankings": rankings, "agreement": rankings.over_questions[0],
        "values": values, "part rankings": study.rankings_by_part(*[[values]] * 2, resampling=SOME),
        "published": ValueTable(EVIL, (EVIL, "mrr"), EVIL, ()),
        "samples": samples, "pairs": study.pairwise(samples, "t"),
        "depths": study.depth_curves({"mrr": [[1, 2, 3], [3, 2, 1]]}, [0, 1]),
        "overlap": study.rank_biased_overlap(["a"], ["b"]),
        "reuse": study.leave_one_out(QRELS, RUNS, CONTRIBUTORS, "map"),
        "reproduction": study.reproduction_of(QRELS, written, ["map"])[0],
        "changes": study.answer_changes(named),
        "semantics": study.semantic_shares({EVIL: result.run}, questions,
                                           study.fitting_observed(graph)),
        "sizes": study.size_experiment([(i, i) for i in range(9)], np.eye(9), np.eye(9), sizes=[4]),
        **judged(graph, result.run), **open_worlds(), **of_graphs(graph),
        **of_sampled(questions, scores),
        **of_tables(questions, {"m": result.ranks}),
        "study": openworld.family_study(
            families=1, n_questions=20, models=[replace(MODELS[0], steps=(2, 4))], progress=False
        ),
        "graph": graph, "questions": questions, "ranks": result.ranks, "result": result,
        "run": result.run, "partial": kgtrec.rank_range(scores, answers),
        "table": result.slice("relation"),
        "comparison": study.compare(samples, "t", resampling=SOME),
        "replicates": study.compare_replicates(runs, ["mrr"], resampling=SOME)[0],
    }  # fmt: skip


def returned_classes() -> set[type]:
    """Classes of kgtrec that public functions declare as their results."""
    import importlib
    import inspect
    import pkgutil
    import re

    modules = [importlib.import_module(module.name)
               for module in pkgutil.walk_packages(kgtrec.study.__path__, "kgtrec.study.")
               if "page" not in module.name]  # fmt: skip
    homes = (kgtrec, study, openworld)
    functions = [getattr(home, name) for home in homes for name in home.__all__]
    classes = set()
    for function in filter(inspect.isfunction, functions):
        words = set(re.findall(r"[A-Z]\w+", str(function.__annotations__.get("return"))))
        own = importlib.import_module(function.__module__)
        for module in (own, *modules):
            for word in words & set(vars(module)):
                words.discard(word)
                cls = getattr(module, word)
                if inspect.isclass(cls) and cls.__module__.startswith("kgtrec."):
                    classes.add(cls)
    return classes


def test_every_result_of_public_functions_shows_itself(things: dict[str, Any]) -> None:
    """So each of them is among the shown results of this file."""
    # Excluded: line-by-line readers and writers, and pairs of arrays.
    plain = {"Sheet", "Templates", "Fault", "PooledTriple", "Strengths", "Journal",
             "Comparability"}  # fmt: skip
    returned = {cls for cls in returned_classes() if cls.__name__ not in plain}
    assert returned <= {type(thing) for thing in things.values()}
    assert len(returned) >= 35


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_results_show_three_lines_and_html_that_holds_labels_as_text(things: dict) -> None:
    labelled = {"graph", "table", "comparison", "replicates", "parts", "models", "open world"}
    for name, thing in things.items():
        text = repr(thing)
        assert name == "table" or len(text.splitlines()) == 3, text
        assert any(character.isdigit() for character in text), name
        shown = thing._repr_html_()
        shown.encode("utf-8")
        reader = Tags()
        reader.feed(shown)
        assert reader.open == []
        allowed = {"div", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "p"}
        assert reader.seen <= allowed | ({"caption", "u"} if name == "models" else set()), name
        assert name not in labelled or "&lt;script&gt;" in shown, name


def test_long_tables_say_what_is_left_out() -> None:
    from kgtrec._internal.table import MOST, Table

    rows = [(f"r{i}", i) for i in range(MOST + 7)]
    text = Table(("name", "n"), ("name", "n"), (0, 0), rows)._repr_html_()
    assert text.count("<tr>") == MOST + 1
    assert "7 more rows" in text


def test_bars_are_shown_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_bar(3, "steps").enter_result.disable  # no terminal here
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("kgtrec._internal.runtime.find_spec", lambda name: None)
    with progress_bar(3, "steps") as bar:
        assert not bar.disable
    assert progress_bar(3, "steps", show=False).enter_result.disable


@pytest.mark.parametrize(("words", "place", "completion"), [
    ("kgtrec report --repl", "2", "--replicates"),
    ("kgtrec judge aud", "2", "audit"),
])  # fmt: skip
def test_shells_complete(words: str, place: str, completion: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("kgtrec")], capture_output=True, text=True, check=False,
        env={**os.environ, "_KGTREC_COMPLETE": "bash_complete", "COMP_WORDS": words,
             "COMP_CWORD": place},
    )  # fmt: skip
    assert f"plain,{completion}" in done.stdout.splitlines()
