"""Allowed imports, modules that stay unloaded, and modules that never appear."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT, circle, inner, parsed, statements

import kgtrec

PACKAGE = ROOT / "kgtrec"

# From left to right: a module imports from its own folder, and from those above it in this list. A
# folder inside another may have another place than its parent.
LAYERS = (
    "_version",
    "errors",
    "_internal",
    "_core",
    "graph",
    "graph.statistics",
    "scores.mapped_files",
    "trec.files",
    "questions",
    "scores",
    "predictions",
    "ranking",
    "trec.measures",
    "measures",
    "results",
    "trec.eval",
    "trec",
    "study",
    "plots",
    "cluster",
    "integrations",
    "demo",
    "guides",
    "cli",
    "__main__",
)
NATIVE = (
    "graph.tsv", "measures", "ranking", "scores.factors", "scores.mapped_files",
    "study.comparison.significance", "trec",
)  # fmt: skip
FACADE = ("cli", "demo")  # may use the package as its users do: `import kgtrec`
HEAVY = {"dask", "distributed", "matplotlib", "pandas", "pyarrow", "pytrec_eval", "scipy", "tqdm"}
LIBRARIES = {"lightning", "ogb", "pykeen", "pytorch_lightning", "safetensors", "torch",
             "torch_geometric", "torchkge", "torchmetrics", "kge"}  # fmt: skip
UNSAFE = {"_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}


class Import(NamedTuple):
    """One import: the full name of the module, and whether it happens when a module is loaded."""

    module: str
    at_load: bool
    line: int


@functools.cache
def imports_of(source: str) -> tuple[Import, ...]:
    """Every import of a module except those for type checkers."""
    return tuple(_walk(parsed(source), True, kgtrec._HOMES))


def _walk(node: ast.AST, at_load: bool, homes: dict[str, str]) -> Iterator[Import]:
    """`homes` maps the names of ``from kgtrec import NAME`` to their modules."""
    for child in inner(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, at_load, child.lineno)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute here"
            for alias in child.names:
                yield Import(_module(child.module or "", alias.name, homes), at_load, child.lineno)
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from _walk(other, at_load, homes)
        else:
            deferred = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _walk(child, at_load and not deferred, homes)


def _module(module: str, name: str, homes: dict[str, str]) -> str:
    """The module that ``from module import name`` loads."""
    if module == "kgtrec":
        return homes.get(name, f"kgtrec.{name}")
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def layer_of(module: str) -> str | None:
    """``kgtrec.trec.files.run`` -> ``trec.files``; None for other packages and kgtrec itself."""
    parts = module.split(".")
    if parts[0] != "kgtrec" or len(parts) < 2:
        return None
    names = [".".join(parts[1 : 1 + length]) for length in range(len(parts) - 1, 0, -1)]
    return next((name for name in names if name in LAYERS), names[-1])


def within(module: str, places: Iterable[str]) -> bool:
    """Whether a module is one of these, or in one of these folders."""
    return any(f"{module}.".startswith(f"kgtrec.{place}.") for place in places)


def complaints(module: str, imported: Import) -> Iterator[str]:
    """What is wrong with an import of `module`."""
    own, target = layer_of(module), layer_of(imported.module)
    assert own is not None
    if imported.module == "kgtrec" and own not in FACADE:
        yield "imports the package, not a module of it"
    if target is not None and target != own:
        if target not in LAYERS:
            yield f"imports {target}, which is not in LAYERS"
        elif LAYERS.index(target) > LAYERS.index(own):
            yield f"imports {target}, which is not above it in LAYERS"
    if target == "_core" and not within(module, NATIVE):
        yield f"imports _core, which only {', '.join(NATIVE)} may"
    top = imported.module.partition(".")[0]
    if top in HEAVY and imported.at_load:
        yield f"imports {top} when it is loaded; do so in the function that needs it"
    if top in LIBRARIES and own != "integrations":
        yield f"imports {top}, which belongs to the integrations"
    if target == "integrations" and own not in ("integrations", "cli"):
        yield "imports an integration, which only users and the command line do"
    if top == "click" and own != "cli":
        yield "imports click, which belongs to the command line"
    if top in UNSAFE:
        yield f"imports {top}: nothing is ever unpickled"


class Module(NamedTuple):
    """A module: its dotted name, its path below ``kgtrec/`` and its text."""

    name: str
    path: str
    text: str

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def tree(self) -> ast.Module:
        return parsed(self.text)


def module_of(path: Path) -> Module:
    below = path.relative_to(PACKAGE)
    name = ".".join(["kgtrec", *below.with_suffix("").parts]).removesuffix(".__init__")
    return Module(name, below.as_posix(), path.read_text("utf-8"))


ALL = [*map(module_of, sorted(PACKAGE.rglob("*.py")))]
# Without the package's own lazy exports.
SOURCES = {module.name: module.text for module in ALL if module.name != "kgtrec"}
MODULES = {*SOURCES, "kgtrec._core"}


def test_every_folder_has_its_layer_and_every_layer_its_folder():
    assert len(list(PACKAGE.glob("*.py"))) <= 6
    assert {layer_of(module) for module in MODULES} == set(LAYERS)


def test_imports_follow_the_layers():
    wrong = [
        f"{module}:{imported.line} {complaint}"
        for module, text in SOURCES.items()
        for imported in imports_of(text)
        for complaint in complaints(module, imported)
    ]
    assert wrong == []


def test_no_modules_import_one_another_not_even_in_a_call():
    edges = {
        module: {
            imported.module
            for imported in imports_of(text)
            if imported.module in SOURCES and imported.module != module
        }
        for module, text in SOURCES.items()
    }
    assert circle(edges) == []
    assert circle(edges | {"kgtrec.errors": {"kgtrec.cli"}}) != []


def test_the_front_page_loads_nothing():
    text = ALL[0].text
    loaded = {imported.module for imported in imports_of(text) if imported.at_load}
    ours = {name for name in loaded if name.startswith("kgtrec")}
    assert ours == {"kgtrec._version", "kgtrec._internal.lazy"}


@pytest.mark.parametrize(
    "statement",
    [
        "import kgtrec; dir(kgtrec); kgtrec.InputError, kgtrec.Graph, kgtrec.Ranker, kgtrec.Ranks,"
        " kgtrec.Run, kgtrec.evaluate",
        "import kgtrec.cli.about, kgtrec.cli.rank.command, kgtrec.cli.report,"
        " kgtrec.cli.convert, kgtrec.cli.eval",
    ],
    ids=["package", "commands"],
)
def test_heavy_libraries_stay_unloaded(statement: str, tmp_path: Path):
    # Outside the checkout, so that the installed package is tested.
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    unwanted = HEAVY | UNSAFE - {"_pickle", "marshal", "pickle"}  # numpy and Python load those
    if "cli" not in statement:
        unwanted |= {"click"}
    assert loaded & unwanted == set()


# -- Pickles -----------------------------------------------------------------------------------


def postponed_faults(tree: ast.Module) -> list[str]:
    """Uses of names of a `with lazily()` block that do not work: they stand for what they name."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    blocks = [node for node in blocks if ast.unparse(node.items[0]) == "lazily()"]
    imported = [(statement, alias) for block in blocks for statement in block.body
                for alias in statement.names]  # fmt: skip
    names = {alias.asname or alias.name for _, alias in imported}
    faults = [f"import {alias.name}" for statement, alias in imported
              if not isinstance(statement, ast.ImportFrom)]  # fmt: skip
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        own = [getattr(node, "name", ""), *(ast.unparse(target) for target in targets)]
        faults += [f"{name} hides the import" for name in own if name in names]
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kind]):
                kinds = [kind]
            case ast.ExceptHandler(type=ast.expr() as kind):
                kinds = [kind]
            case ast.ClassDef(bases=kinds):
                pass
            case _:
                continue
        used = {part.id for kind in kinds for part in ast.walk(kind) if isinstance(part, ast.Name)}
        faults += [f"{name} at line {node.lineno} is not a class" for name in used & names]
    return faults


def test_postponed_imports_are_only_called():
    for name, source in SOURCES.items():
        assert postponed_faults(parsed(source)) == [], name
    wrong = "with lazily():\n    from a import B, c\n    import d\nisinstance(1, B)\nc = 2"
    assert len(postponed_faults(ast.parse(wrong))) == 3


def pickle_faults(source: str) -> list[str]:
    """Calls that could unpickle: ``np.load`` without ``allow_pickle=False``, or any with more."""
    faults = []
    if "load(" not in source and "allow_pickle" not in source:
        return []
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        keywords = {word.arg: word.value for word in node.keywords}
        allowed = keywords.get("allow_pickle")
        refused = isinstance(allowed, ast.Constant) and allowed.value is False
        if called in ("np.load", "numpy.load") and not refused:
            faults.append(f"line {node.lineno}: {called} without allow_pickle=False")
        elif allowed is not None and not refused:
            faults.append(f"line {node.lineno}: {called} with allow_pickle")
    return faults


def test_nothing_is_unpickled():
    wrong = [
        f"{module}, {fault}" for module, text in SOURCES.items() for fault in pickle_faults(text)
    ]
    assert wrong == []


# -- The helpers can fail ----------------------------------------------------------------------


WRONG = [
    ("trec.run", "from kgtrec.cli import main", "imports cli, which is not above it"),
    ("trec.run", "def f():\n    import kgtrec.cli.rank", "imports cli, which is not above it"),
    ("graph.graph", "def f():\n    from kgtrec.questions.filters import Filter",
     "imports questions, which is not"),
    ("graph.graph", "from kgtrec.graph.statistics.summary import overview",
     "imports graph.statistics, which is not"),
    ("trec.files.run", "try:\n    import kgtrec.trec.measures.ties\nexcept E: pass",
     "imports trec.measures, which is"),
    ("results.result", "from kgtrec import _core", "imports _core, which only graph.tsv,"),
    ("ranking.rank", "import kgtrec", "imports the package"),
    ("ranking.rank", "from kgtrec import evaluate", "imports results, which is not above it"),
    ("ranking.rank", "import kgtrec.cellar", "imports cellar, which is not in LAYERS"),
    ("graph.graph", "import pyarrow.compute as pc", "imports pyarrow when it is loaded"),
    ("graph.graph", "class A:\n    import scipy", "imports scipy when it is loaded"),
    ("graph.graph", "import click", "imports click, which belongs to the command line"),
    ("graph.graph", "def f():\n    import pickle", "imports pickle: nothing is ever unpickled"),
]  # fmt: skip


def test_wrong_imports_are_found():
    for module, source, complaint in WRONG:
        said = [text for imported in imports_of(source)
                for text in complaints(f"kgtrec.{module}", imported)]  # fmt: skip
        assert len(said) == 1, source
        assert said[0].startswith(complaint), said


def test_a_call_that_could_unpickle_is_found():
    for source in ("np.load(p)", "np.load(p, mmap_mode='r')", "np.load(p, allow_pickle=True)",
                   "np.load(p, allow_pickle=no)", "np.save(p, x, allow_pickle=True)"):  # fmt: skip
        assert len(pickle_faults(source)) == 1


# -- Lazy exports ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["kgtrec", "kgtrec.study", "kgtrec.plots", "kgtrec.trec"])
def test_every_name_is_there_and_is_what_its_home_has(page: str) -> None:
    module = import_module(page)
    assert set(module._HOMES) <= set(module.__all__) & set(dir(module))
    for name, home in module._HOMES.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    with pytest.raises(AttributeError, match=f"module '{page}' has no attribute 'cellar'"):
        module.cellar  # noqa: B018
    file = Path(str(module.__file__))
    imported = {
        alias.name: node.module
        for block in ast.parse(file.read_text("utf-8")).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == module._HOMES  # type checkers are told the same
    # A name of a module too: earlier imports would decide which of the two one gets.
    modules = {path.stem for path in file.parent.iterdir() if path.suffix in (".py", ".so", "")}
    assert modules & set(module._HOMES) == set()


def test_a_front_page_loads_nothing(tmp_path: Path) -> None:
    code = "import sys, kgtrec.study, kgtrec.plots, kgtrec.trec; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_the_site_describes_every_class_once() -> None:
    """A class on two pages is left out of one: Sphinx refuses to describe it twice."""
    text = (files("kgtrec.guides") / "site" / "api.md").read_text("utf-8")
    described: dict[type, list[str]] = {}
    for page, options in re.findall(r"automodule:: (\S+)\n((?:   :.*\n)*)", text):
        module = import_module(page)
        for name in set(module.__all__) - set(re.findall(r"\w+", options)):
            if isinstance(value := getattr(module, name), type):
                described.setdefault(value, []).append(page)
    assert described
    assert {v.__name__: pages for v, pages in described.items() if len(pages) > 1} == {}


# -- The rules that keep kgtrec small: budgets, files, names, docstrings, shared settings ----------


# Lines of Python per folder, at most. These are what has been reached; they only go down.
BUDGET = {
    "graph": 3_870,
    "questions": 2_620,
    "scores": 1_420,
    "ranking": 4_440,
    "predictions": 510,
    "measures": 2_870,
    "trec": 7_560,
    "results": 1_610,
    "study": 16_670,
    "plots": 1_650,
    "cluster": 4_950,
    "integrations": 1_550,
    "cli": 5_950,
    "others": 2_650,
}
FILES = 237

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


def folder_of(module: Module) -> str:
    first, _, rest = module.path.partition("/")
    return first if rest and first in BUDGET else "others"


def test_folders_keep_their_budget() -> None:
    lines: dict[str, int] = defaultdict(int)
    for module in ALL:
        lines[folder_of(module)] += module.lines
    over = {folder: lines[folder] for folder in BUDGET if lines[folder] > BUDGET[folder]}
    assert over == {}
    assert len(ALL) <= FILES


def is_entry(module: Module) -> bool:
    """Whether a file may be short: a front door, a row of a registry, or one that is named."""
    return (
        module.path.endswith("__init__.py")
        or module.path in SMALL
        or any(module.path.startswith(f"{folder}/") for folder in REGISTRIES)
    )


def test_files_are_neither_crumbs_nor_loaves() -> None:
    short = [m.path for m in ALL if m.lines < SHORTEST and not is_entry(m)]
    long = [f"{m.path}: {m.lines}" for m in ALL if m.lines > LONGEST]
    assert (short, long) == ([], [])
    assert {*SMALL} <= {m.path for m in ALL}


def test_a_class_name_is_defined_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in ALL:
        for node in statements(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
    assert len(homes) > 100


def test_only_front_doors_declare_names() -> None:
    declaring = [
        module.name
        for module in ALL
        for node in module.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert set(declaring) <= {*FRONT_DOORS}


def public_names() -> set[tuple[str, str]]:
    """Module and name of everything that a front door exports."""
    return {
        (node.module or "", alias.name)
        for module in ALL
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
        for module in ALL
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
        for module in ALL
        for function, names in functions(module.tree)
        if not is_public(module, names, exported)
        for value in loose_settings(function)
    ]
    assert loose == []
    (example,) = ast.parse("def f(rows, threads, *, nan=None): pass").body
    assert isinstance(example, ast.FunctionDef)
    assert loose_settings(example) == ["Settings"]
