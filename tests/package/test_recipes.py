"""The recipes of CONTRIBUTING.md work as they are written there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

import kgtrec
from kgtrec import trec
from kgtrec._internal.formats import Format, Formats
from kgtrec.graph.formats import GRAPHS
from kgtrec.measures import keys
from kgtrec.predictions.readers import PREDICTIONS
from kgtrec.trec.measures.rows import TABLE

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
if not CONTRIBUTING.is_file():
    pytest.skip(f"no {CONTRIBUTING}: this is not a checkout", allow_module_level=True)
RECIPES = dict(
    re.findall(r"^```python (\w+)\n(.*?)^```", CONTRIBUTING.read_text("utf-8"), re.M | re.S)
)


@pytest.fixture
def recipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that all recipes up to the parameter define, also as a module `our_package`."""
    module = ModuleType("our_package")
    for name, code in RECIPES.items():
        exec(compile(code, f"CONTRIBUTING.md, {name}", "exec"), module.__dict__)
        if name == request.param:
            break
    monkeypatch.setitem(sys.modules, "our_package", module)
    return module.__dict__


def small_questions() -> kgtrec.Questions:
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2)], entities=["a", "b", "c"], relations=["r"]
    )
    return graph.questions(sides="tail")


def add_row(monkeypatch: pytest.MonkeyPatch, formats: Formats, row: Format) -> None:
    """Let another package's entry point provide a format."""
    rows = {**formats.all(), row.name: row}
    monkeypatch.setattr(Formats, "all", lambda self: rows)


@pytest.mark.parametrize("recipe", ["metric"], indirect=True)
def test_metric(recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for stem in recipe["row"].stems:
        monkeypatch.setitem(keys.STEMS, stem, recipe["row"])
    result = kgtrec.evaluate(np.array([[3.0, 2, 1], [3, 2, 1]]), small_questions())
    assert result["tail.msr"] == np.mean(result.ranks.rank() ** 2) > 1


@pytest.mark.parametrize("recipe", ["measure"], indirect=True)
def test_measure(recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "double_hits", recipe["row"])
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    values = trec.evaluate(qrels, run, ["double_hits_2"])
    assert values == {"q": {"double_hits_2": 2.0}}
    assert trec.evaluate(qrels, run, ["DoubleHits"]) == {"q": {"DoubleHits": 4.0}}


@pytest.mark.parametrize("recipe", ["graph"], indirect=True)
def test_format_of_graphs(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_row(monkeypatch, GRAPHS, recipe["row"])
    (tmp_path / "train.arrows").write_text("b -> r -> a\na -> s -> b\n")
    graph = kgtrec.read_graph(tmp_path, format="arrows")
    assert [*graph.entities] == ["a", "b"]
    assert graph.splits["train"].tolist() == [[1, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize("recipe", ["predictions"], indirect=True)
def test_format_of_predictions(
    recipe: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_row(monkeypatch, PREDICTIONS, recipe["row"])
    (tmp_path / "lists").write_text("a r c\nb r a\n")
    ranks = kgtrec.rank_lists(tmp_path / "lists", small_questions(), "best")
    assert ranks.rank("optimistic").tolist() == [1, 2]
    assert ranks.unlisted.tolist() == [False, True]


def test_every_recipe_is_tested() -> None:
    text = Path(__file__).read_text("utf-8")
    assert all(f'["{name}"]' in text for name in RECIPES)
    assert len(RECIPES) == 4
