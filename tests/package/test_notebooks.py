"""What notebooks and consoles show: three lines, HTML that labels cannot break, bars, silence."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from compare_cases import systems

import kgtrec
from kgtrec._internal.progress import progress_bar
from kgtrec.study import (
    beta_grid,
    compare,
    compare_replicates,
    data_sensitivity,
    discriminate,
    multiplicity,
    rankings_of_samples,
    samples_of_ranks,
    table_of_models,
)
from kgtrec.study.comparison.parts import values_by_part
from kgtrec.study.openworld.compare import compare_values

EVIL = "<script>alert(1)</script> & \udce9"


@pytest.fixture(scope="module")
def things() -> dict[str, Any]:
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2)], entities=["a", "b", EVIL], relations=[EVIL]
    )
    graph.name = EVIL
    questions = graph.questions()
    import numpy as np

    scores = np.random.default_rng(0).random((len(questions), 3)).astype(np.float32)
    result = kgtrec.evaluate(scores, questions, progress=False)
    ranks = systems(2)
    (samples,) = samples_of_ranks({EVIL: ranks["s0"], "b": ranks["s1"]}, ["mrr"])
    runs = {EVIL: list(systems(2).values()), "b": [ranks["s1"]]}
    named = {EVIL: ranks["s0"], "b": ranks["s1"]}
    three = {**named, "c": systems(3)["s2"]}
    of_three = samples_of_ranks(three, ["mrr", "mr"])
    return {
        "multiplicity": multiplicity(named), "parts": values_by_part(named, "side", ["mrr"])[0],
        "models": table_of_models({"": named}, ["mrr"]),
        "grid": beta_grid(ranks["s0"], metrics=("mrr",)),
        "sensitivity": data_sensitivity(three, ["mrr"], repeats=2, progress=None),
        "discrimination": discriminate(of_three, "t"),
        "rankings": rankings_of_samples({one.name: one for one in of_three}, draws=100),
        "open world": compare_values((0.3, 0.25), 500, 4.0, [0.2], names=(EVIL, "b")),
        "graph": graph, "questions": questions, "ranks": result.ranks, "result": result,
        "table": result.slice("relation"), "comparison": compare(samples, "t", draws=100),
        "replicates": compare_replicates(runs, ["mrr"], draws=100)[0],
    }  # fmt: skip


STUDIES = ("replicates", "multiplicity", "parts", "models", "grid", "sensitivity", "discrimination",
           "rankings", "open world")  # fmt: skip


@pytest.mark.parametrize("name", ["graph", "questions", "ranks", "result", "comparison", *STUDIES])
def test_a_repr_says_in_three_lines_what_is_inside(things: dict[str, Any], name: str) -> None:
    text = repr(things[name])
    assert len(text.splitlines()) == 3
    assert any(character.isdigit() for character in text)


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


@pytest.mark.parametrize(
    "name", ["graph", "questions", "ranks", "result", "table", "comparison", *STUDIES]
)
def test_html_holds_labels_as_text(things: dict[str, Any], name: str) -> None:
    text = things[name]._repr_html_()
    text.encode("utf-8")
    reader = Tags()
    reader.feed(text)
    assert reader.open == []
    allowed = {"div", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "p"}
    assert reader.seen <= allowed | ({"caption", "u"} if name == "models" else set())
    if name in ("graph", "table", "comparison", "replicates", "parts", "models", "open world"):
        assert "&lt;script&gt;" in text


def test_every_result_with_a_table_shows_itself() -> None:
    """Classes of the whole package; what needs a graph to be told cannot show itself alone."""
    import importlib
    import inspect
    import pkgutil

    lacking, seen = [], set()
    for module in pkgutil.walk_packages(kgtrec.__path__, "kgtrec."):
        if module.name.startswith(("kgtrec.integrations", "kgtrec.cli", "kgtrec.__main__")):
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if not inspect.isclass(cls) or cls.__module__ != module.name:
                continue
            table = getattr(cls, "table", None) or getattr(cls, "value_table", None)
            if not inspect.isfunction(table) or len(inspect.signature(table).parameters) > 1:
                continue
            seen.add(cls.__name__)
            if not hasattr(cls, "_repr_html_"):
                lacking.append(cls)
    assert lacking == []
    assert len(seen) >= 12


def test_long_tables_say_what_is_left_out() -> None:
    from kgtrec._internal.table import MOST, Table

    rows = [(f"r{i}", i) for i in range(MOST + 7)]
    text = Table(("name", "n"), ("name", "n"), (0, 0), rows)._repr_html_()
    assert text.count("<tr>") == MOST + 1
    assert "7 more rows" in text


def test_bars_are_shown_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_bar(3, "steps").disable  # no terminal here
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("kgtrec._internal.progress.find_spec", lambda name: None)
    with progress_bar(3, "steps") as bar:
        assert not bar.disable
    assert progress_bar(3, "steps", show=False).disable


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kgtrec", *words], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_quiet_leaves_errors_alone(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n")
    (tmp_path / "r").write_text("1 Q0 a 0 1 t\n1 Q0 b 0 1 t\n")
    files = (str(tmp_path / "q"), str(tmp_path / "r"))
    loud, quiet = run("eval", *files), run("--quiet", "eval", *files)
    assert loud.stderr != ""
    assert (quiet.stdout, quiet.stderr, quiet.returncode) == (loud.stdout, "", 0)
    wrong = run("--quiet", "report", str(tmp_path / "none.parquet"))
    assert wrong.returncode == 2
    assert "none.parquet" in wrong.stderr


@pytest.mark.parametrize(("words", "place", "completion"), [
    ("kgtrec rep", "1", "report"), ("kgtrec report --repl", "2", "--replicates"),
    ("kgtrec judge aud", "2", "audit"),
])  # fmt: skip
def test_shells_complete(words: str, place: str, completion: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("kgtrec")], capture_output=True, text=True, check=False,
        env={**os.environ, "_KGTREC_COMPLETE": "bash_complete", "COMP_WORDS": words,
             "COMP_CWORD": place},
    )  # fmt: skip
    assert f"plain,{completion}" in done.stdout.splitlines()
