"""setup.py compiles a source again exactly if something that its object depends on has changed.

No compiler runs: a function replaces it and records the requests."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checkout import ROOT

from kgtrec import _core

HEADER = Path("csrc/a.h")
GENERATED = "build/cython/c.c"
SOURCES = [GENERATED, "csrc/a.c", "csrc/b.c"]


class BuildExt:
    """The parts of setuptools' build_ext that setup.py needs."""

    compiler: Any
    linked: list[str]

    def build_extension(self, ext: Any) -> None:
        how = {"macros": [*ext.macros], "depends": [], "extra_postargs": [*ext.flags]}
        self.linked = self.compiler.compile(SOURCES, output_dir="build/temp", **how)


STUBS: dict[str, dict[str, Any]] = {
    "setuptools": {"Extension": object, "setup": None},
    "setuptools.command": {},
    "setuptools.command.build_ext": {"build_ext": BuildExt},
    "Cython": {},
    "Cython.Build": {"cythonize": None},
}


class Toolchain:
    """A compiler, and builds by setup.py with it in the current folder."""

    def __init__(self, program: Path) -> None:
        self.setup = runpy.run_path(str(ROOT / "setup.py"))
        self.compiled: list[str] = []
        self.halfway: Callable[[str], object] = lambda source: None  # while it is compiled
        self.program = program
        self.prints("gcc 12")

    def prints(self, version: str) -> None:
        """The program's answer to --version."""
        self.program.write_text(f"#!/bin/sh\necho '{version}'\n")
        self.program.chmod(0o755)

    def compile(self, sources: list[str], *, output_dir: str, **_: Any) -> list[str]:
        (source,) = sources
        self.compiled.append(source)
        made = Path(output_dir, source).with_suffix(".o")
        made.parent.mkdir(parents=True)
        made.write_text(f"half of {source}")
        self.halfway(source)
        made.write_text(f"object of {source}: {Path(source).read_text()}")
        return [str(made)]

    def build(self, *flags: str, macros: tuple[str, ...] = (), program: str = "") -> list[str]:
        """The sources that a build compiles; it links an object of each of them."""
        self.compiled.clear()
        command = self.setup["CompileOnce"]()
        command.compiler = SimpleNamespace(
            compile=self.compile,
            compiler_type="unix",
            compiler_so=[program or str(self.program), "-fPIC"],
        )
        command.build_extension(SimpleNamespace(flags=flags, macros=macros))
        assert [Path(path).read_text() for path in command.linked] == [
            f"object of {source}: {Path(source).read_text()}" for source in SOURCES
        ]
        return sorted(self.compiled)


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Toolchain:
    monkeypatch.chdir(tmp_path)
    Path("csrc").mkdir()
    Path("build/cython").mkdir(parents=True)
    for path in [*SOURCES, HEADER]:
        Path(path).write_text(f"/* {path} */")
    for name, members in STUBS.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**members))
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # one file after the other
    return Toolchain(tmp_path / "cc")


def test_what_has_changed_is_compiled_again_and_nothing_else(tools):
    assert tools.build() == SOURCES
    for path in [*SOURCES, HEADER]:
        Path(path).write_text(Path(path).read_text())
    assert tools.build() == []  # written anew, but the same
    Path("csrc/b.c").write_text("other")
    assert tools.build() == ["csrc/b.c"]
    Path("csrc/b.c").write_text("/* csrc/b.c */")
    assert tools.build() == []
    HEADER.write_text("other")
    assert tools.build() == SOURCES
    HEADER.unlink()
    assert tools.build() == SOURCES
    Path("csrc/math.h").write_text("")  # may hide another header
    assert tools.build() == SOURCES


def test_each_flavour_compiler_and_version_compiles_once(tools, tmp_path, monkeypatch):
    assert tools.build("-O3") == tools.build("-O1", "-g") == SOURCES
    assert tools.build("-O3") == tools.build("-O1", "-g") == []
    assert tools.build("-O3", macros=("X",)) == tools.build() == SOURCES
    tools.prints("gcc 13")
    assert tools.build() == SOURCES
    other = shutil.copy(tools.program, tmp_path / "clang")
    assert tools.build(program=str(other)) == SOURCES
    tools.prints("gcc 12")
    assert tools.build() == []
    assert tools.build(program="no-such-compiler") == SOURCES  # its compiling fails, not setup.py
    monkeypatch.setattr(sys, "version", "3.99")
    assert tools.build() == [GENERATED]


def test_a_build_that_stops_leaves_no_half_of_an_object(tools):
    def stops(source: str) -> None:
        raise KeyboardInterrupt

    tools.halfway = stops
    with pytest.raises(KeyboardInterrupt):
        tools.build()
    assert list(Path("build/objects").iterdir()) == []


def test_two_builds_at_once_link_whole_objects(tools):
    def another_build(source: str) -> None:
        tools.halfway = lambda source: None
        assert source in tools.build()

    tools.halfway = another_build
    tools.build()
    assert tools.build() == []


def test_what_changes_while_it_is_compiled_is_not_kept(tools):
    tools.halfway = lambda source: HEADER.write_text("other")
    with pytest.raises(SystemExit, match=r"build/cython/c\.c, or a header, has changed meanwhile"):
        tools.build()
    tools.halfway = lambda source: None
    HEADER.write_text(f"/* {HEADER} */")
    assert tools.build() == SOURCES


# -- Each compiler gets flags that it knows --------------------------------------------------------


def test_gcc_and_clang_get_their_flags(tools) -> None:
    flags_for = tools.setup["flags_for"]
    release = flags_for("unix", "release")
    assert {"-std=c11", "-ffp-contract=off", "-O3"} <= set(release["extra_compile_args"])
    assert release["libraries"] == ["m"]
    assert flags_for("mingw32", "release") == {**release, "libraries": []}
    assert "-fsanitize=address,undefined" in flags_for("unix", "sanitize")["extra_link_args"]


def test_clang_cl_gets_the_same_flags_in_its_spelling(tools) -> None:
    flags_for = tools.setup["flags_for"]
    windows = flags_for("msvc", "release")
    plain = {flag.removeprefix("/clang:") for flag in windows["extra_compile_args"]}
    assert all(flag.startswith("/clang:-") for flag in windows["extra_compile_args"])
    ours = set(flags_for("unix", "release")["extra_compile_args"])
    assert ours - plain == {"-fvisibility=hidden"}
    assert plain - ours == {"-Wno-unused-command-line-argument"}
    assert windows["libraries"] == windows["extra_link_args"] == []
    with pytest.raises(SystemExit, match="KGTREC_BUILD=sanitize needs gcc or clang"):
        flags_for("msvc", "sanitize")


class Msvc:
    """setuptools' compiler for Windows, which would call cl.exe."""

    compiler_type = "msvc"
    cc = ""

    def __init__(self, compile: Callable[..., list[str]]) -> None:
        self.compile = compile

    def initialize(self) -> None:
        self.cc = "cl.exe"


@pytest.mark.parametrize("chosen", ["", "clang-cl", "gcc", "C:/LLVM/clang-cl.exe"])
def test_windows_compiles_with_clang_cl(tools, tmp_path, monkeypatch, chosen: str) -> None:
    program = tmp_path / "clang-cl"
    shutil.copy(tools.program, program)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", chosen)
    seen: dict[str, list[str]] = {}

    def compile_one(sources: list[str], **options: Any) -> list[str]:
        seen[sources[0]] = options["extra_postargs"]
        return tools.compile(sources, **options)

    command = tools.setup["CompileOnce"]()
    command.compiler = Msvc(compile_one)
    extension = SimpleNamespace(flags=["/clang:-O3"], macros=())
    command.build_extension(extension)
    assert command.compiler.cc == str(program)
    assert (
        extension.extra_compile_args
        == tools.setup["flags_for"]("msvc", "release")["extra_compile_args"]
    )
    assert seen == {
        GENERATED: ["/clang:-O3", "/clang:-O1"],
        "csrc/a.c": ["/clang:-O3"],
        "csrc/b.c": ["/clang:-O3"],
    }


def test_without_clang_cl_one_sentence_says_what_to_install(tools, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "cl.exe")
    command = tools.setup["CompileOnce"]()
    command.compiler = Msvc(tools.compile)
    with pytest.raises(SystemExit, match=r'"C\+\+ Clang tools for Windows"'):
        command.build_extension(SimpleNamespace(flags=[], macros=()))
    assert tools.compiled == []


# -- In a checkout, the source folder hides the installed package and must lead to it --------------


COMPILED = Path(_core.__file__)


def copied(folder: Path, *left_out: str) -> Path:
    """A copy of the package, without what is compiled."""
    unwanted = shutil.ignore_patterns("*.so", *left_out)
    shutil.copytree(ROOT / "kgtrec", folder / "kgtrec", ignore=unwanted)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing was compiled."""
    return copied(tmp_path_factory.mktemp("checkout"), "__pycache__")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `pip install .` in site-packages."""
    folder = copied(tmp_path_factory.mktemp("site"), "*.pyx", "*.pxd")  # compiled Python is kept
    shutil.copy(COMPILED, folder / "kgtrec")
    return folder


def run(checkout: Path, site: Path, *arguments: str, text: str = "") -> str:
    """Python's output in the checkout, with kgtrec installed at `site`; fails if Python fails."""
    # Options for this pytest (PYTEST_ADDOPTS) must not reach the one that is started.
    environment = {name: text for name, text in os.environ.items() if name[:7] != "PYTEST_"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.slow
def test_the_first_example_of_the_readme_can_be_pasted(checkout: Path, site: Path) -> None:
    demo = "from kgtrec.demo.run import run_demo\nrun_demo('kgtrec-demo')\n"
    readme = (ROOT / "README.md").read_text("utf-8")
    example = re.search(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    assert example is not None
    assert "kgtrec-demo" in example[1]
    assert "MRR" in run(checkout, site, "-", text=demo + example[1])


def test_no_module_is_the_checkouts(checkout: Path, site: Path) -> None:
    """Otherwise one version's Python would call another's C."""
    code = (
        "import sys, pathlib, kgtrec.cli, kgtrec.ranking.rank\n"
        "for name, module in sys.modules.items():\n"
        "    if name.startswith('kgtrec.'): print(pathlib.Path(module.__file__).resolve())\n"
    )
    places = run(checkout, site, "-c", code).splitlines()
    assert len(places) > 10
    assert [place for place in places if not Path(place).is_relative_to(site.resolve())] == []


@pytest.mark.slow
def test_pytest_as_a_module_finds_it_too(checkout: Path, site: Path) -> None:
    (checkout / "test_it.py").write_text(
        "import kgtrec.graph.labels\nfrom kgtrec import _core\n"
        f"def test(): assert _core.__file__ == {str(site / 'kgtrec' / COMPILED.name)!r}\n"
    )
    run(checkout, site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")


def test_where_nothing_is_compiled_one_line_says_what_to_do(checkout: Path) -> None:
    bare = [sys.executable, "-S", "-E", "-c", "import kgtrec"]  # without site-packages
    done = subprocess.run(bare, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: kgtrec is neither compiled in {checkout / 'kgtrec'} nor installed for "
        f"{sys.executable}; run: {sys.executable} -m pip install {checkout}"
    )


def test_a_checkout_that_is_compiled_is_used_itself(checkout: Path, site: Path) -> None:
    """As after `pip install -e .`, regardless of other installations."""
    own = checkout / "kgtrec" / COMPILED.name
    shutil.copy(COMPILED, own)
    try:
        code = "import kgtrec.errors; from kgtrec import _core; print(_core.__file__)"
        assert run(checkout, site, "-c", code).strip() == str(own)
    finally:
        own.unlink()
