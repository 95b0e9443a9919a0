"""Who may import whom, what stays unloaded, and what never appears: the rooms, as a test."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import ROOT

import kgtrec

PACKAGE = ROOT / "kgtrec"
CSRC = ROOT / "csrc"

# From left to right: a module imports from its own folder, and from those above it in this list. A
# folder inside another may stand elsewhere than its parent.
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


parsed = functools.cache(ast.parse)


def imports_of(source: str, homes: dict[str, str] | None = None) -> Iterator[Import]:
    """Every import of a module except those for type checkers.

    `homes` maps the names of ``from kgtrec import NAME`` to their modules.
    """
    yield from _walk(parsed(source), True, homes or {})


def _walk(node: ast.AST, at_load: bool, homes: dict[str, str]) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
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
            deferred = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _walk(child, at_load and not deferred, homes)


def _module(module: str, name: str, homes: dict[str, str]) -> str:
    """The module that ``from module import name`` is about."""
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
        for imported in imports_of(text, kgtrec._HOMES)
        for complaint in complaints(module, imported)
    ]
    assert wrong == []


def test_no_modules_import_one_another_not_even_in_a_call():
    edges = {
        module: {
            imported.module
            for imported in imports_of(text, kgtrec._HOMES)
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
    # Elsewhere than the checkout, so that what is installed is what is looked at.
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


# -- The C core --------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<(?P<system>[^>]+)>|"(?P<own>[^"]+)")', re.M)
STANDARD = {
    "arm_neon.h", "cpuid.h", "immintrin.h", "locale.h", "math.h", "stdatomic.h", "stdbool.h",
    "stddef.h", "stdint.h", "stdlib.h", "string.h",
    "sys/auxv.h", "sys/syscall.h", "unistd.h",  # what only the system can be asked
}  # fmt: skip
# What is of the operating system, in the one file that asks it for something.
SYSTEM = {
    "label_table.c": {"sys/mman.h"},  # on Linux
    "map_guard.c": {"errno.h", "signal.h", "sys/mman.h", "unistd.h"},
    "isa_platform.h": {"xlocale.h"},  # on macOS
}
# A file's name begins with its family; the umbrella and what all families share are the exceptions.
FAMILIES = ("factors", "isa", "label", "map", "rank", "stat", "trec")
SHARED = {"kgtrec.h", "kgt_status.h"}
# Rows of one table are below what uses the table; a family's public header knows no internal one.
OWN = {
    "kgtrec.h": {f"{family}.h" for family in FAMILIES},
    "kgt_status.h": set(),
    "isa.h": set(),
    "label.h": {"kgt_status.h"},
    "map.h": set(),
    "rank.h": {"kgt_status.h"},
    "factors.h": {"kgt_status.h", "rank.h"},
    "stat.h": {"kgt_status.h"},
    "trec.h": {"kgt_status.h"},
    "isa_platform.h": set(),
    "isa_kernel.h": {"isa_platform.h"},
    "isa_avx2_pack.h": set(),
    "isa_bytes.h": {"isa_kernel.h"},
    "isa_dispatch.c": {"isa_bytes.h", "isa_kernel.h", "isa.h"},
    "rank_topk.h": {"isa_kernel.h"},
    "rank_topk.c": {"rank_topk.h", "rank_topk_body.h"},
    "rank_row.h": {"isa_kernel.h", "rank.h", "rank_topk.h"},
    "rank_row.c": {"rank_row.h", "rank_row_body.h"},
    "rank_rows.c": {"rank_row.h", "rank_rows_body.h", "rank_columns_body.h"},
    "factors_vectors.h": {"factors.h", "isa_kernel.h", "factors_vectors_body.h"},
    "factors_targets.c": {"factors_vectors.h", "isa_bytes.h", "rank_row.h"},
    "factors_tiles.h": {"factors_vectors.h", "rank_row.h"},
    "factors_tiles.c": {"factors_tiles.h", "factors_tiles_body.h"},
    "factors_bounds.h": {"factors_vectors.h", "isa_bytes.h"},
    "factors_steps.h": {"factors_bounds.h"},
    "factors_steps.c": {"factors_steps.h"},
    "factors_block.h": {"factors_steps.h"},
    "factors_block.c": {"factors_block.h"},
    "factors_codes.h": {"factors_block.h"},
    "factors_codes.c": {"factors_codes.h"},
    "factors_queries.h": {"factors_steps.h"},
    "factors_queries.c": {"factors_queries.h"},
    "factors_settle.h": {"factors_codes.h", "factors_queries.h", "factors_tiles.h"},
    "factors_settle.c": {"factors_settle.h"},
    "factors_rows.c": {"factors_settle.h", "factors_rows_body.h"},
    "factors_run.c": {"factors_settle.h"},
    "factors_call.c": {"factors_settle.h"},
    "label_lines.c": {"label.h", "trec_fields.h"},
    "label_order.c": {"label.h", "trec_fields.h"},
    "label_table.c": {"label.h", "trec_fields.h"},
    "map_guard.c": {"map.h"},
    "stat_expected.c": {"stat.h"},
    "stat_stratify.c": {"stat.h"},
    "stat_permute.c": {"stat.h"},
    "trec_fields.h": {"isa_platform.h"},
    "trec_decimal.h": {"isa_platform.h"},
    "trec_decimal_powers.h": set(),
    "trec_decimal.c": {"trec_decimal.h", "trec_decimal_powers.h", "trec_fields.h"},
    "trec_file.h": {"trec_fields.h", "trec.h"},
    "trec_file.c": {"trec_file.h", "trec_decimal.h"},
    "trec_list.c": {"trec_file.h"},
    "trec_places.c": {"trec.h"},
    "trec_shortest.c": {"trec_decimal.h", "trec_decimal_powers.h"},
    "trec_query.h": {"trec.h"},
    "trec_ties.c": {"trec_query.h"},
    "trec_values.c": {"trec_query.h"},
    "trec_write.c": {"trec.h", "trec_decimal.h"},
}
ISA_MAY = {"isa_kernel.h", "isa_undef.h", "isa_undef_load.h", "isa_avx2_pack.h"} | {
    f"isa_{part}_body.h"
    for part in (
        *("scalar", "count", "fold", "order", "sift", "short", "tile", "transpose", "locate"),
        "ties",
    )
}
BYTES_MAY = {"isa_bytes.h"} | {
    f"isa_{part}_body.h"
    for part in (
        *("bits", "quantise", "quantise_l1", "judge", "pairs", "refine"),
        *("bytes_avx512", "bytes_avx2", "bytes_neon"),
    )
}
C_FILES = sorted(path.name for path in CSRC.glob("*.[ch]"))


def included(text: str) -> tuple[set[str], set[str]]:
    """System headers and own headers that a C file includes."""
    matches = list(INCLUDE.finditer(text))
    system, own = ({m[kind] for m in matches if m[kind]} for kind in ("system", "own"))
    return system, own


def test_c_files_include_standard_headers_and_what_is_below_them():
    wrong = {name: unwanted for name in C_FILES if (unwanted := unwanted_includes(name))}
    assert wrong == {}


def unwanted_includes(name: str) -> set[str]:
    """Headers that a C file includes and may not."""
    system, own = included((CSRC / name).read_text("utf-8"))
    unwanted = system - STANDARD - SYSTEM.get(name, set())  # Python.h, and anything of numpy
    if name in OWN:
        allowed = OWN[name]
    elif name.endswith("_body.h") or name.startswith("isa_undef"):
        # Templates: their includer has what they need, but one may be a part of another.
        allowed = {other for other in C_FILES if other.endswith("_body.h")}
    else:
        assert name.startswith("isa_"), f"{name} is new: say in OWN what it may include"
        allowed = BYTES_MAY if name.startswith("isa_bytes_") else ISA_MAY
    return unwanted | own - allowed


def test_the_name_of_a_c_file_begins_with_its_family():
    named = {name for name in C_FILES if re.split(r"[_.]", name)[0] in FAMILIES}
    assert set(C_FILES) - named == SHARED


def test_c_files_do_not_mention_python_objects():
    for name in C_FILES:
        text = (CSRC / name).read_text("utf-8")
        assert not re.search(r"\bPy_?[A-Z]\w+\(|\bPyObject\b|\bnpy_\w+|\bPyArray", text), name


def test_cpu_features_are_looked_up_in_isa_files_only():
    question = re.compile(r"__builtin_cpu_\w+\(|kgt_cpu_has_\w+\(\)|__get_cpuid\(")
    asking = {name for name in C_FILES if question.search((CSRC / name).read_text("utf-8"))}
    # isa_platform.h asks for what not every compiler's builtin knows, on behalf of the ISA files.
    assert {name[:4] for name in asking} == {"isa_"}


def has_kernels(name: str) -> bool:
    return "static bool available(void)" in (CSRC / name).read_text("utf-8")


def unasked(text: str) -> set[str]:
    """Features that a kernel file compiles for, less those that its ``available()`` asks for.

    A file with several paths has a section with a target, and an ``available_...()`` behind it, for
    each; all use what the first section holds.
    """
    sections = [
        (match.start(), {name.replace("-", "_") for name in match[1].split(",")})
        for match in re.finditer(r'KGT_TARGET_BEGIN\("([^"=]*)"\)', text)
    ]
    asked: dict[str, set[str]] = {}
    missing: set[str] = set()
    for match in re.finditer(r"static bool (available\w*)\(void\) \{(.*?)\}", text, re.S):
        name, body = match.groups()
        pairs = re.findall(r'__builtin_cpu_supports\("(\w+)"\)|kgt_cpu_has_(\w+)\(\)', body)
        inherited = [asked[other] for other in asked if f"{other}()" in body]
        asked[name] = {a or b for a, b in pairs}.union(*inherited)
        enabled = [features for start, features in sections if start < match.start()]
        missing |= set().union(*enabled[:1], *enabled[-1:]) - asked[name]
    return missing


def test_a_path_is_available_only_where_all_its_features_are():
    missing = {
        name: unasked((CSRC / name).read_text("utf-8")) for name in C_FILES if has_kernels(name)
    }
    assert len(missing) > 3
    assert {name: features for name, features in missing.items() if features} == {}


def test_the_cython_mirror_takes_the_public_headers_one_block_each():
    mirrored = re.findall(r'cdef extern from "([^"]+)"', (PACKAGE / "_csrc.pxd").read_text("utf-8"))
    own = [name for name in mirrored if not name.startswith("<")]
    assert sorted(own) == sorted({*OWN["kgtrec.h"], "kgt_status.h"})


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
        text
        for imported in imports_of(source, kgtrec._HOMES)
        for text in complaints(f"kgtrec.{module}", imported)
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


def test_a_feature_that_nobody_asks_for_is_found():
    text = (
        'KGT_TARGET_BEGIN("avx2,f16c,bmi2")\n'
        'static bool available(void) { return __builtin_cpu_supports("avx2"); }\n'
        'static bool other(void) { return __builtin_cpu_supports("bmi2"); }\n'
    )
    assert unasked(text) == {"f16c", "bmi2"}
    text = text.replace('"avx2");', '"avx2") && kgt_cpu_has_f16c();')
    assert unasked(text) == {"bmi2"}
    text = text.replace(",bmi2", "") + 'KGT_TARGET_BEGIN("avx2,avx-vnni")\n'
    more = "static bool available_more(void) { return available() && kgt_cpu_has_avx_vnni(); }\n"
    assert unasked(text + more) == set()
    assert unasked(text + more.replace("available()", "true")) == {"avx2", "f16c"}
    assert unasked(text + more.replace("kgt_cpu_has_avx_vnni()", "true")) == {"avx_vnni"}


def test_includes_are_read():
    text = '#include <Python.h>\n# include "numpy/arrayobject.h"\n/* #include <x.h> */\n'
    assert included(text) == ({"Python.h"}, {"numpy/arrayobject.h"})
