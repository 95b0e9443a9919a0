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
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest
from checkout import ROOT, circle, inner, parsed, statements

import kgtrec
from kgtrec._internal.lazy import read_homes

PACKAGE = ROOT / "kgtrec"

# From left to right: a module imports from its own folder, and from those above it in this list. A
# folder inside another may have another place than its parent.
LAYERS = (
    "_version",
    "_internal.locks",
    "_internal.system",
    "_internal.text",
    "_internal.urls",
    "_internal.argument_names",
    "errors",
    "_internal",
    "_core",
    "graph",
    "graph.statistics",
    "scores.archives",
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
    "graph.tsv",
    "measures",
    "ranking",
    "scores.factors",
    "scores.formulas",
    "scores.mapped_files",
    "study.comparison.significance",
    "trec",
)
FACADE = ("cli", "demo")  # may use the package as its users do: `import kgtrec`
HEAVY = {"dask", "distributed", "matplotlib", "pandas", "pyarrow", "pytrec_eval", "scipy", "tqdm"}
LOADS_HEAVY = {"kgtrec.cluster.dask.private_cluster"}
"""Loaded by functions only: its classes are Dask's, and its processes import them by name."""
LIBRARIES = {
    "lightning",
    "ogb",
    "pykeen",
    "pytorch_lightning",
    "safetensors",
    "torch",
    "torch_geometric",
    "torchkge",
    "torchmetrics",
    "kge",
}
ALLOWED = r"allow_pickle\s*=(?!False)"
UNSAFE = {"_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}


class Import(NamedTuple):
    """One import: the full name of the module, and whether it happens when a module is loaded."""

    module: str
    at_load: bool
    line: int


@functools.cache
def imports_of(source: str, for_types: bool = False) -> tuple[Import, ...]:
    """Every import of a module; those for type checkers only with `for_types`."""
    return tuple(_walk(parsed(source), True, for_types))


def _walk(node: ast.AST, at_load: bool, for_types: bool) -> Iterator[Import]:
    for child in inner(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, at_load, child.lineno)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute here"
            for alias in child.names:
                yield Import(_module(child.module or "", alias.name), at_load, child.lineno)
        elif not for_types and _is_for_types(child):
            yield from _walk(ast.Module(child.orelse, []), at_load, for_types)
        else:
            deferred = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _walk(child, at_load and not deferred, for_types)


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether only type checkers read the body of a statement."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _module(module: str, name: str) -> str:
    """The module that ``from module import name`` loads."""
    if module == "kgtrec":
        home = HOMES.get(name, "kgtrec")
        return f"kgtrec.{name}" if home == "kgtrec" else home
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
    if top in HEAVY and imported.at_load and module not in LOADS_HEAVY:
        yield f"imports {top} when it is loaded; do so in the function that needs it"
    if top in LIBRARIES and own != "integrations":
        yield f"imports {top}, which belongs to the integrations"
    if target == "integrations" and own not in ("integrations", "cli"):
        yield "imports an integration, which only users and the command line do"
    if top == "click" and own != "cli":
        yield "imports click, which belongs to the command line"
    if top in UNSAFE:
        yield f"imports {top}: nothing is ever unpickled"


# The texts of all modules, by their paths below `kgtrec/` and by their names.
FILES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
NAMED = {
    f"kgtrec.{path[:-3].replace('/', '.')}".removesuffix(".__init__"): text
    for path, text in FILES.items()
}
SOURCES = {name: text for name, text in NAMED.items() if name != "kgtrec"}  # which exports lazily
MODULES = {*SOURCES, "kgtrec._core"}
HOMES = read_homes(kgtrec.__path__[0])
STUBS = [path.read_text("utf-8") for path in sorted(Path(kgtrec.__path__[0]).rglob("__init__.pyi"))]


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


def edges(for_types: bool) -> dict[str, set[str]]:
    """The modules of the package that each module imports."""
    return {
        module: {
            imported.module
            for imported in imports_of(text, for_types)
            if imported.module in SOURCES and imported.module != module
        }
        for module, text in SOURCES.items()
    }


@pytest.mark.parametrize("for_types", [False, True], ids=["when run", "for type checkers"])
def test_no_modules_import_one_another_not_even_in_a_call(for_types: bool) -> None:
    needs = edges(for_types)
    assert circle(needs) == []
    assert circle(needs | {"kgtrec.errors": {"kgtrec.cli"}}) != []


def test_imports_for_type_checkers_are_found_on_request() -> None:
    source = "if TYPE_CHECKING:\n    import a\nelse:\n    import b"
    assert [imported.module for imported in imports_of(source)] == ["b"]
    assert [imported.module for imported in imports_of(source, True)] == ["a", "b"]


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import kgtrec; dir(kgtrec); kgtrec.InputError, kgtrec.Graph, kgtrec.Ranker, "
            "kgtrec.Ranks, kgtrec.Run, kgtrec.evaluate",
            {"click"},
        ),
        (
            "import kgtrec.cli.about, kgtrec.cli.rank.command, kgtrec.cli.report,"
            " kgtrec.cli.convert, kgtrec.cli.eval",
            set(),
        ),
        ("import kgtrec.study, kgtrec.plots, kgtrec.trec", {"click", "numpy"}),
    ],
    ids=["package", "commands", "front pages"],
)
def test_heavy_libraries_stay_unloaded(statement: str, unwanted: set[str], tmp_path: Path) -> None:
    # Outside the checkout, so that the installed package is tested.
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    unsafe = UNSAFE - {"_pickle", "marshal", "pickle"}  # numpy and Python load those
    assert loaded & (HEAVY | unsafe | unwanted) == set()


def test_nothing_is_unpickled() -> None:
    """By default, numpy refuses to."""
    assert [name for name, text in SOURCES.items() if re.search(ALLOWED, text)] == []
    assert re.search(ALLOWED, "np.load(p, allow_pickle=no)")


WRONG = [
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
]


def test_wrong_imports_are_found():
    for module, source, complaint in WRONG:
        said = [
            text
            for imported in imports_of(source)
            for text in complaints(f"kgtrec.{module}", imported)
        ]
        assert len(said) == 1, source
        assert said[0].startswith(complaint), said


# -- Lazy exports ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["kgtrec", "kgtrec.study", "kgtrec.plots", "kgtrec.trec"])
def test_every_name_is_there_and_is_what_its_home_has(page: str) -> None:
    module = import_module(page)
    folder = Path(module.__path__[0])
    homes = read_homes(str(folder))
    stub = ast.parse((folder / "__init__.pyi").read_text("utf-8")).body
    assert len(stub) == len(homes) > 10
    for line in stub:  # what type checkers read is what the package loads
        assert isinstance(line, ast.ImportFrom)
        assert [(line.module, alias.name, alias.asname) for alias in line.names] == [
            (home, name, name) for name, home in homes.items() if name == line.names[0].name
        ]
    assert set(homes) <= set(dir(module))
    assert set(module.__all__) == {name for name, home in homes.items() if home != page}
    for name, home in homes.items():
        value = import_module(f"{page}.{name}") if home == page else import_module(home)
        assert getattr(module, name) is (value if home == page else getattr(value, name))
    with pytest.raises(AttributeError, match=f"module '{page}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    # A name of a module too: earlier imports would decide which of the two one gets.
    modules = {path.stem for path in folder.iterdir() if path.suffix in (".py", ".so", "")}
    assert modules & set(module.__all__) == set()


def test_modules_are_there_after_the_import_of_the_package(tmp_path: Path) -> None:
    code = (
        "import sys, kgtrec; before = 'numpy' in sys.modules;"
        "print(before, kgtrec.trec.evaluate.__name__, kgtrec.study.openworld.expectation.__name__,"
        "kgtrec.plots.__name__, kgtrec.measures.Measure is kgtrec.Measure, kgtrec.__version__)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    due = f"False evaluate expectation kgtrec.plots True {kgtrec.__version__}"
    assert done.stdout.strip() == due


def test_the_site_describes_every_class_once() -> None:
    """A class on two pages is left out of one: Sphinx refuses to describe it twice."""
    pages = (ROOT / "kgtrec" / "guides" / "api").glob("*.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    described: dict[type, list[str]] = {}
    for page, options in re.findall(r"automodule:: (\S+)\n((?:   :.*\n)*)", text):
        module = import_module(page)
        for name in set(module.__all__) - set(re.findall(r"\w+", options)):
            if isinstance(value := getattr(module, name), type):
                described.setdefault(value, []).append(page)
    assert described
    assert {v.__name__: pages for v, pages in described.items() if len(pages) > 1} == {}


# -- One home per class and per idea; settings travel as values ------------------------------------


# Packages that users import from: these declare names and describe them at length.
FRONT_DOORS = (
    "kgtrec",
    "kgtrec.study",
    "kgtrec.study.openworld",
    "kgtrec.plots",
    "kgtrec.trec",
    "kgtrec.measures",
    "kgtrec.cluster",
)
INTEGRATIONS = "kgtrec.integrations."


def test_a_class_name_is_defined_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for name, text in NAMED.items():
        for node in statements(parsed(text)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
    assert len(homes) > 100


def test_only_front_doors_declare_names() -> None:
    declaring = {
        name for name, text in NAMED.items() if re.search(r"^[^#\n]*__all__\b.* =", text, re.M)
    }
    assert declaring == {*FRONT_DOORS}


# Settings that travel together, and the value that carries them.
VALUES = {
    "Settings": {
        "run_depth",
        "threads",
        "rows",
        "higher_is_better",
        "nan",
        "columns",
        "atol",
        "rtol",
        "duplicates",
    },
    "Resampling": {"confidence", "percent", "draws", "resamples", "seed"},
}
TOGETHER = 3


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(
    node: ast.AST, names: tuple[str, ...] = ()
) -> Iterator[tuple[Definition, tuple[str, ...]]]:
    """Every function and class, and the names of what it is defined in, its own last."""
    for child in inner(node):
        own = names
        if isinstance(child, Definition):
            own = (*names, child.name)
            yield child, own
        yield from definitions(child, own)


def loose_settings(function: Definition) -> list[str]:
    """The values whose parts a function takes one by one, three or more of them."""
    if isinstance(function, ast.ClassDef):
        return []
    taken = function.args
    names = {a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
    return [value for value, parts in VALUES.items() if len(names & parts) >= TOGETHER]


def test_only_public_functions_take_settings_one_by_one() -> None:
    exported = {
        (imported.module, alias.name)
        for text in (*map(NAMED.__getitem__, FRONT_DOORS), *STUBS)
        for imported in ast.walk(parsed(text))
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }
    wrong = [
        f"{module}.{'.'.join(names)}"
        for module, text in NAMED.items()
        for function, names in definitions(parsed(text))
        if loose_settings(function)
        if any(re.match("_(?!_)", name) for name in names)
        or ((module, names[0]) not in exported and not module.startswith(INTEGRATIONS))
    ]
    assert wrong == []
    ((example, _),) = definitions(ast.parse("async def f(rows, threads, *, nan=None): pass"))
    assert loose_settings(example) == ["Settings"]


# What aligns text by hand: the shared table, the two layouts of other programs, and lists of names.
ALIGNING = {
    "_internal/table.py": "the shared table",
    "study/reporting/formats.py": "tables of papers, whose headings span columns",
    "trec/eval/output.py": "trec_eval's own layout",
    "measures/help.py": "names with wrapped texts",
    "graph/graph.py": "the repr of a graph",
    "cli/about.py": "a list of guides",
    "demo/lessons.py": "a list of lessons",
}
ALIGNED = re.compile(
    r"\.[lr]just\(|\.center\(|\{[^{}\n]*:[^\s{}]?[<>^]\S|\{[^{}\n]*:[1-9][\d,]*(\.\d+)?[a-z]?\}"
)


def test_tables_figures_and_refusals_are_made_in_one_place_each() -> None:
    assert {path for path, text in FILES.items() if ALIGNED.search(text)} == {*ALIGNING}
    drawing = re.compile(r"\.subplots\(|\bplt\.|import pyplot|\bFigure\(")
    assert {
        path
        for path, text in FILES.items()
        if drawing.search(text) and not path.startswith("plots/")
    } == set()
    assert drawing.search(FILES["plots/style.py"])
    # `errors.must_be` lists the choices of an unknown word.
    listing = re.compile(r"choose (one of|from)\b")
    assert {path for path, text in FILES.items() if listing.search(text)} == set()


UNINTERRUPTED = {
    # Threads other than the main thread, and a lock for which nobody waits before its block begins.
    "_internal/threads.py": {"help", "can_start_threads", "_pass"},
    "cluster/batch/batch.py": {"record_size", "record_tasks", "_store"},  # threads of jobs
    "cluster/dask/shipment.py": {"locate_inputs"},  # threads of workers
}
LOCK = re.compile(r"(lock|LOCK|PARSING|barrier|working|_moving|_reading)$")


def _locking(source: str) -> set[str]:
    """Return the functions that lock by `with`."""
    return {
        function.name
        for function in ast.walk(parsed(source))
        if isinstance(function, ast.FunctionDef)
        for block in statements(function)
        if isinstance(block, ast.With)
        for item in block.items
        for part in [getattr(item.context_expr, "target", item.context_expr)]
        if LOCK.search(getattr(part, "attr", getattr(part, "id", "")))
    }


def test_the_main_thread_does_not_lock_by_with() -> None:
    """Since Python 3.14, an interrupt may leave such a lock locked: see `call_locked`."""
    found = {path: _locking(text) for path, text in FILES.items()}
    assert {path: names for path, names in found.items() if names} == UNINTERRUPTED
