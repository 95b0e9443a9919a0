"""Allowed imports, modules that stay unloaded, and modules that never appear."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT, inner, parsed

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


def sources() -> dict[str, str]:
    """Module -> text, of every Python module but the package's own lazy exports."""
    texts = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        texts[".".join(parts).removesuffix(".__init__")] = path.read_text("utf-8")
    del texts["kgtrec"]
    return texts


SOURCES = sources()
MODULES = {*SOURCES, "kgtrec._core"}


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, at load or in a call."""
    reached = {module: _reachable(module, edges) for module in edges}
    groups = {
        tuple(sorted({module, *(other for other in reached[module] if module in reached[other])}))
        for module in edges
    }
    return sorted(list(group) for group in groups if len(group) > 1)


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in edges.get(waiting.pop(), set()) - seen:
            seen.add(target)
            waiting.append(target)
    return seen & edges.keys()


def test_every_folder_has_its_layer_and_every_layer_its_folder():
    assert {layer_of(module) for module in MODULES} == set(LAYERS)


def test_the_root_of_the_package_stays_small():
    assert len(list(PACKAGE.glob("*.py"))) <= 6


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
    assert cycles(edges) == []


def test_the_front_page_loads_nothing():
    text = (PACKAGE / "__init__.py").read_text("utf-8")
    loaded = {imported.module for imported in imports_of(text) if imported.at_load}
    ours = {name for name in loaded if name.startswith("kgtrec")}
    assert ours == {"kgtrec._version", "kgtrec._internal.lazy"}


@pytest.mark.parametrize(
    "statement",
    [
        "import kgtrec",
        "import kgtrec; dir(kgtrec); kgtrec.InputError",
        "import kgtrec.cli.about, kgtrec.cli.rank.command, kgtrec.cli.report",
        "import kgtrec.cli.convert, kgtrec.cli.eval",
        "import kgtrec; kgtrec.Graph, kgtrec.Ranker, kgtrec.Ranks, kgtrec.Run, kgtrec.evaluate",
    ],
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


def test_importing_kgtrec_does_not_even_load_numpy(tmp_path: Path):
    code = "import sys, kgtrec; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


# -- Pickles -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("trec.run", "from kgtrec.cli import main", "imports cli, which is not above it"),
        ("trec.run", "def f():\n    import kgtrec.cli.rank", "imports cli, which is not above it"),
        (
            "graph.graph",
            "def f():\n    from kgtrec.questions.filters import Filter",
            "imports questions, which is not",
        ),
        (
            "graph.graph",
            "from kgtrec.graph.statistics.summary import overview",
            "imports graph.statistics, which is not",
        ),
        (
            "trec.files.run",
            "try:\n    import kgtrec.trec.measures.ties\nexcept E: pass",
            "imports trec.measures, which is",
        ),
        ("results.result", "from kgtrec import _core", "imports _core, which only graph.tsv,"),
        ("ranking.rank", "import kgtrec", "imports the package"),
        ("ranking.rank", "from kgtrec import evaluate", "imports results, which is not above it"),
        ("ranking.rank", "import kgtrec.cellar", "imports cellar, which is not in LAYERS"),
        ("graph.graph", "import pyarrow.compute as pc", "imports pyarrow when it is loaded"),
        ("graph.graph", "class A:\n    import scipy", "imports scipy when it is loaded"),
        ("graph.graph", "import click", "imports click, which belongs to the command line"),
        ("graph.graph", "def f():\n    import pickle", "imports pickle: nothing is ever unpickled"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, complaint: str):
    said = [
        text for imported in imports_of(source) for text in complaints(f"kgtrec.{module}", imported)
    ]
    assert len(said) == 1
    assert said[0].startswith(complaint)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("questions.api", "def f():\n    from kgtrec.questions.filters import build_questions"),
        ("graph.graph", "if TYPE_CHECKING:\n    from kgtrec.questions.api import Questions"),
        ("graph.graph", "def f():\n    import pyarrow"),
        ("cli.rank", "import click\nfrom kgtrec.questions.api import read_graph"),
        ("demo.run", "import kgtrec"),
        ("trec.eval.score", "from kgtrec.trec.files.run import Run"),
        ("scores.factors", "from kgtrec import _core"),
    ],
)
def test_a_right_import_is_let_pass(module: str, source: str):
    assert not [
        text for imported in imports_of(source) for text in complaints(f"kgtrec.{module}", imported)
    ]


def test_cycles_are_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    "source",
    [
        "np.load(p)",
        "np.load(p, mmap_mode='r')",
        "np.load(p, allow_pickle=True)",
        "np.load(p, allow_pickle=flag)",
        "np.save(p, x, allow_pickle=True)",
    ],
)
def test_a_call_that_could_unpickle_is_found(source: str):
    assert len(pickle_faults(source)) == 1


# -- Lazy exports ------------------------------------------------------------------------------


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
    """Earlier imports would decide which of the two one gets."""
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
