"""What notebooks and consoles show: three lines, HTML that labels cannot break, bars, silence."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kgtrec
from kgtrec import study
from kgtrec._internal.progress import progress_bar
from kgtrec._internal.table import MOST, Table
from kgtrec.study import openworld


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of the session in test_results.txt, by name."""
    text = Path(__file__).with_name("test_results.txt").read_text("utf-8")
    names = {"getfixture": lambda name: tmp_path_factory.mktemp("runs")}
    session = doctest.DocTestParser().get_doctest(text, names, "test_results.txt", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(session, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    return {k: v for k, v in session.globs.items() if hasattr(type(v), "_repr_html_")}


def returned_classes() -> set[type]:
    """Classes of kgtrec that public functions declare as their results."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(kgtrec.study.__path__, "kgtrec.study.")
        if "page" not in module.name
    ]
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
    # Excluded: line-by-line readers and writers, rows of files, and pairs of arrays.
    plain = {"Sheet", "Templates", "Fault", "PooledTriple", "Strengths", "Journal", "Comparability"}
    plain.add("RankedCheckpoint")
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
    labelled = {
        "graph",
        "table",
        "comparison",
        "comparisons",
        "overview",
        "replicates",
        "parts",
        "models",
        "open_world",
    }
    for name, thing in things.items():
        assert name in ("table", "comparisons") or len(repr(thing).splitlines()) == 3, name
        shown = thing._repr_html_()
        shown.encode("utf-8")
        reader = Tags()
        reader.feed(shown)
        assert reader.open == []
        allowed = {"div", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "p"}
        allowed |= {"caption", "u", "sup"} if name in ("models", "overview") else set()
        assert reader.seen <= allowed, name
        assert name not in labelled or "&lt;script&gt;" in shown, name
    rows = [(f"r{i}", i) for i in range(MOST + 7)]
    text = Table(("name", "n"), ("name", "n"), (0, 0), rows)._repr_html_()
    assert text.count("<tr>") == MOST + 1
    assert "7 more rows" in text


def test_bars_are_shown_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_bar(3, "steps").enter_result.disable  # no terminal here
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("kgtrec._internal.progress.find_spec", lambda name: None)
    with progress_bar(3, "steps") as bar:
        assert not bar.disable
    assert progress_bar(3, "steps", show=False).enter_result.disable


@pytest.mark.parametrize(
    ("words", "place", "completion"),
    [
        ("kgtrec report --repl", "2", "--replicates"),
        ("kgtrec judge aud", "2", "audit"),
    ],
)
def test_shells_complete(words: str, place: str, completion: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("kgtrec")],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_KGTREC_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": place,
        },
    )
    assert f"plain,{completion}" in done.stdout.splitlines()
