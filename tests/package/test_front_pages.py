"""Lazy exports load on first use what they list, and nothing before."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

PAGES = ("kgtrec", "kgtrec.study", "kgtrec.plots", "kgtrec.trec")


@pytest.mark.parametrize("page", PAGES)
def test_every_name_is_there_and_is_what_its_home_has(page: str) -> None:
    module = import_module(page)
    assert set(module._HOMES) <= set(module.__all__)
    assert set(module._HOMES) <= set(dir(module))
    for name, home in module._HOMES.items():
        assert getattr(module, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("page", PAGES)
def test_type_checkers_are_told_the_same(page: str) -> None:
    module = import_module(page)
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    imported = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == module._HOMES


@pytest.mark.parametrize("page", PAGES)
def test_no_name_is_that_of_a_module_too(page: str) -> None:
    """Which of the two one got would hang on what was imported before."""
    module = import_module(page)
    folder = Path(str(module.__file__)).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix in (".py", ".so", "")}
    assert modules & set(module._HOMES) == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_name_that_is_not_there(page: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{page}' has no attribute 'cellar'"):
        import_module(page).cellar  # noqa: B018


def test_a_front_page_loads_nothing(tmp_path: Path) -> None:
    code = "import sys, kgtrec.study, kgtrec.plots, kgtrec.trec; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_the_site_describes_every_class_once() -> None:
    """A class that two pages have is left out of one: Sphinx refuses to describe it twice."""
    text = (files("kgtrec.guides") / "site" / "api.md").read_text("utf-8")
    described: dict[type, list[str]] = {}
    for page, options in re.findall(r"automodule:: (\S+)\n((?:   :.*\n)*)", text):
        module = import_module(page)
        for name in set(module.__all__) - set(re.findall(r"\w+", options)):
            if isinstance(value := getattr(module, name), type):
                described.setdefault(value, []).append(page)
    assert described
    assert {v.__name__: pages for v, pages in described.items() if len(pages) > 1} == {}
