"""The rules that keep kgtrec small: budgets, files, names, docstrings, shared settings.

A commit that raises a budget says why.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from checkout import ROOT, parsed, statements

PACKAGE = ROOT / "kgtrec"

# Lines of Python per folder, at most. These are what has been reached; they only go down.
BUDGET = {
    "graph": 3_990,
    "questions": 2_640,
    "scores": 1_460,
    "ranking": 4_420,
    "predictions": 550,
    "measures": 2_970,
    "trec": 8_320,
    "results": 1_630,
    "study": 17_930,
    "plots": 1_790,
    "cluster": 5_270,
    "integrations": 1_650,
    "cli": 6_350,
    "others": 2_680,
}
FILES = 245

# Packages that users import from: these declare names and describe them at length.
FRONT_DOORS = (
    "kgtrec", "kgtrec.study", "kgtrec.study.openworld", "kgtrec.plots", "kgtrec.trec",
    "kgtrec.measures", "kgtrec.cluster",
)  # fmt: skip
INTEGRATIONS = "kgtrec.integrations."
SECTION = re.compile(r"^\s*(Parameters|Returns|Yields|Raises|Attributes)\n\s*-{3,}\n", re.M)

# Files of fewer than 150 lines: entries of a registry, and what must load without the rest.
REGISTRIES = ("cli", "graph/readers", "predictions", "integrations", "demo", "guides")
SMALL = {
    "_version.py": "the version and nothing else",
    "__main__.py": "python -m kgtrec",
    "errors.py": "loaded by everything",
    "_internal/lazy.py": "loaded by import kgtrec, before anything else",
    "_internal/formats.py": "the table of formats of graphs and of predictions alike",
    "_internal/runtime.py": "threads and progress, loaded by small commands",
    "scores/mapped_files.py": "loaded by kgtrec eval, which needs no scores",
    "trec/eval/kg_names.py": "loaded by kgtrec eval, which needs no metrics of ranks",
    "graph/statistics/summary.py": "above all other statistics",
    "ranking/settings.py": "below all other modules of the folder",
    "ranking/provenance.py": "below ranks and their comparison",
    "ranking/ranked_rows.py": "what processes send, above partial rankings",
    "results/triple_labels.py": "labels per triple, for slices alone",
}
SHORTEST, LONGEST = 150, 600


class Module(NamedTuple):
    """A module: its dotted name, its path below ``kgtrec/``, its lines and its syntax tree."""

    name: str
    path: str
    lines: int
    tree: ast.Module


def module_of(path: Path) -> Module:
    below = path.relative_to(PACKAGE).as_posix()
    name = ".".join(["kgtrec", *Path(below).with_suffix("").parts]).removesuffix(".__init__")
    text = path.read_text("utf-8")
    return Module(name, below, text.count("\n"), parsed(text))


@functools.cache
def modules() -> tuple[Module, ...]:
    return tuple(map(module_of, sorted(PACKAGE.rglob("*.py"))))


def folder_of(module: Module) -> str:
    first, _, rest = module.path.partition("/")
    return first if rest and first in BUDGET else "others"


def over_budget(lines: dict[str, int], budget: dict[str, int]) -> list[str]:
    return [f"{k}: {lines[k]} lines of {v}" for k, v in budget.items() if lines.get(k, 0) > v]


def test_folders_keep_their_budget() -> None:
    lines: dict[str, int] = defaultdict(int)
    for module in modules():
        lines[folder_of(module)] += module.lines
    assert over_budget(lines, BUDGET) == []
    assert len(modules()) <= FILES
    assert over_budget({"graph": 11}, {"graph": 10}) == ["graph: 11 lines of 10"]


def is_entry(module: Module) -> bool:
    """Whether a file may be short: a front door, a row of a registry, or one that is named."""
    return (
        module.path.endswith("__init__.py")
        or module.path in SMALL
        or any(module.path.startswith(f"{folder}/") for folder in REGISTRIES)
    )


def test_files_are_neither_crumbs_nor_loaves() -> None:
    short = [m.path for m in modules() if m.lines < SHORTEST and not is_entry(m)]
    long = [f"{m.path}: {m.lines}" for m in modules() if m.lines > LONGEST]
    assert (short, long) == ([], [])
    assert {*SMALL} <= {m.path for m in modules()}


def repeated(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    homes: dict[str, list[str]] = defaultdict(list)
    for name, home in names:
        homes[name].append(home)
    return {name: where for name, where in homes.items() if len(where) > 1}


def test_a_class_name_is_defined_once() -> None:
    classes = [
        (node.name, module.name)
        for module in modules()
        for node in statements(module.tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert repeated(classes) == {}
    assert repeated([("A", "x"), ("B", "x"), ("A", "y")]) == {"A": ["x", "y"]}


def test_only_front_doors_declare_names() -> None:
    declaring = [
        module.name
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert set(declaring) <= {*FRONT_DOORS}


def public_names() -> set[tuple[str, str]]:
    """Module and name of everything that a front door exports."""
    return {
        (node.module or "", alias.name)
        for module in modules()
        if module.name in FRONT_DOORS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, tuple[str, ...]]]:
    """Every function, and the names of what it is defined in, its own last."""

    def below(
        node: ast.AST, names: tuple[str, ...]
    ) -> Iterator[tuple[ast.FunctionDef, tuple[str, ...]]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield child, (*names, child.name)
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                yield from below(child, (*names, child.name))

    yield from below(tree, ())


def is_public(module: Module, names: tuple[str, ...], exported: set[tuple[str, str]]) -> bool:
    named = not any(name.startswith("_") and not name.startswith("__") for name in names)
    return named and ((module.name, names[0]) in exported or module.name.startswith(INTEGRATIONS))


def test_only_front_doors_have_long_docstrings() -> None:
    exported = public_names()
    long = [
        f"{module.name}.{'.'.join(names)}"
        for module in modules()
        for function, names in functions(module.tree)
        if SECTION.search(ast.get_docstring(function) or "")
        and not is_public(module, names, exported)
    ]
    assert long == []


# Settings that travel together, and the value that carries them.
VALUES = {
    "Settings": {"run_depth", "threads", "rows", "higher_is_better", "nan", "columns", "atol",
                 "rtol", "duplicates"},
    "Resampling": {"confidence", "percent", "draws", "resamples", "seed"},
}  # fmt: skip
TOGETHER = 3


def loose_settings(function: ast.FunctionDef) -> list[str]:
    """The values whose parts a function takes one by one, three or more of them."""
    taken = function.args
    names = {a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
    return [value for value, parts in VALUES.items() if len(names & parts) >= TOGETHER]


def test_settings_travel_as_one_value() -> None:
    exported = public_names()
    loose = [
        f"{module.name}.{'.'.join(names)}: {value}"
        for module in modules()
        for function, names in functions(module.tree)
        if not is_public(module, names, exported)
        for value in loose_settings(function)
    ]
    assert loose == []
    (example,) = ast.parse("def f(rows, threads, *, nan=None): pass").body
    assert isinstance(example, ast.FunctionDef)
    assert loose_settings(example) == ["Settings"]
