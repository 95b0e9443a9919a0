"""Builds the extension module; pyproject.toml has all other settings of the package.

The compiler is gcc or clang; on Windows clang-cl, or gcc or clang of MinGW. cl.exe cannot compile
the C core: its C11 atomics are an experiment, and it has no attributes for kernels of processors.

KGTREC_BUILD=sanitize builds with AddressSanitizer and UndefinedBehaviorSanitizer (see .ci/run).
KGTREC_BUILD=debug builds without optimisation and with symbols. build/objects keeps each object
under a hash of its inputs, so a build compiles only what has changed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Flags to compile and to link. -g0, because Python's own flags ask for symbols, which take a
# quarter of the compiler's time. -g1 gives sanitizers' reports their lines; where variables are
# (-g) would take a third.
FLAVOURS = {
    "release": (["-O3", "-g0"], []),
    "debug": (["-O0", "-g"], []),
    "sanitize": (
        [
            *("-O1", "-g1", "-fno-omit-frame-pointer"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        ],
        ["-fsanitize=address,undefined"],
    ),
}
# Contraction would fuse multiplications with additions, so a score's bits would depend on the
# compiler. The source writes out the fused steps that it needs.
STANDARD = ["-std=c11", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"]
# Cython's generated code is not ours to lint.
GENERATED = [
    *("-Wno-unused-parameter", "-Wno-unused-function", "-Wno-missing-field-initializers"),
    "-Wno-incompatible-pointer-types-discards-qualifiers",  # clang's
]
# For Cython's file, which has no long loops: -O3 doubles the compiler's time and gains nothing.
GLUE_LEVEL = "-O1"
NO_CLANG_CL = """\
kgtrec needs clang-cl on Windows, because cl.exe does not compile its C core. It is not on PATH.
Install "C++ Clang tools for Windows" with the Visual Studio Installer, or LLVM; then try again in
a Developer Command Prompt, or set CC to the path of clang-cl.exe."""

OBJECTS = Path("build/objects")
FLAVOUR = os.environ.get("KGTREC_BUILD", "release")


def find_clang_cl() -> str:
    """Return the path of clang-cl: of CC, if that names it, or else on PATH. Ends without one."""
    chosen = os.environ.get("CC", "")
    names = [chosen] if "clang-cl" in chosen.lower() else []
    for name in [*names, "clang-cl"]:
        if path := shutil.which(name):
            return path
    raise SystemExit(NO_CLANG_CL)


def flags_for(kind: str, flavour: str) -> dict[str, list[str]]:
    """Return the settings of an extension for a kind of compiler and a flavour of the build.

    `kind` is setuptools' word: "msvc" (here clang-cl), "unix" or "mingw32" (gcc or clang).
    """
    compile_flags, link_flags = FLAVOURS[flavour]
    flags = STANDARD + GENERATED + compile_flags
    if kind != "msvc":
        libraries = ["m"] if kind == "unix" else []  # Windows has it in its C library
        return {
            "extra_compile_args": flags,
            "extra_link_args": link_flags,
            "libraries": libraries,
        }
    if link_flags:
        raise SystemExit(f"KGTREC_BUILD={flavour} needs gcc or clang, not clang-cl")
    hidden = "-fvisibility=hidden"  # Windows exports nothing unless a file says so
    quiet = "-Wno-unused-command-line-argument"  # setuptools passes options of cl.exe alone
    flags = [f"/clang:{flag}" for flag in [*flags, quiet] if flag != hidden]
    return {"extra_compile_args": flags, "extra_link_args": [], "libraries": []}


def is_c_core(source: str) -> bool:
    """Whether a source belongs to the C core, which does not depend on Python."""
    return Path("csrc") in Path(source).parents


def object_of(source: str, command: list[str]) -> Path:
    """Path of the object of a source, named by a hash of all its inputs.

    `command` is the command that compiles it, with the compiler's version. Python's version
    represents its headers, which only Cython's file includes.
    """
    python = "" if is_c_core(source) else sys.version
    digest = hashlib.sha256(repr([source, command, python]).encode())
    for path in [Path(source), *sorted(Path("csrc").rglob("*.h"))]:
        digest.update(repr((path.name, path.read_bytes())).encode())
    return OBJECTS / f"{digest.hexdigest()}.o"


def version_of(compiler: list[str]) -> str:
    """The version that a compiler prints; "" without a compiler, because compiling reports that."""
    try:
        done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


class CompileOnce(build_ext):
    """Compiles only what no build has compiled before, one file per core at a time."""

    def build_extension(self, ext: Extension) -> None:
        kind = self.compiler.compiler_type
        if kind == "msvc":
            self.compiler.initialize()
            self.compiler.cc = find_clang_cl()
        compile_in_turn = self.compiler.compile
        compiler = [self.compiler.cc] if kind == "msvc" else list(self.compiler.compiler_so)
        for name, value in flags_for(kind, FLAVOUR).items():
            setattr(ext, name, value)
        compiler.append(version_of(compiler))

        def compile_one(source: str, options: dict[str, Any]) -> str:
            levels = [flag for flag in options["extra_postargs"] if flag.endswith("-O3")]
            if not is_c_core(source) and levels:
                lower = levels[0].replace("-O3", GLUE_LEVEL)
                options = {**options, "extra_postargs": [*options["extra_postargs"], lower]}
            command = [*compiler, repr(options.get("macros")), *options["extra_postargs"]]
            path = object_of(source, command)
            if path.exists():
                return str(path)
            # Moved into place when complete: builds may be interrupted, or run at the same time.
            with TemporaryDirectory(dir=OBJECTS) as folder:
                (made,) = compile_in_turn([source], **{**options, "output_dir": folder})
                if object_of(source, command) != path:
                    raise SystemExit(f"{source}, or a header, has changed meanwhile: build again")
                os.replace(made, path)
            return str(path)

        def compile_together(sources: list[str], **options: Any) -> list[str]:
            OBJECTS.mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return list(pool.map(lambda source: compile_one(source, options), sources))

        self.compiler.compile = compile_together
        super().build_extension(ext)


def readme_for_index(readme: str, source: str, version: str) -> str:
    """README with absolute links, because a package index shows it without the repository's files.

    `source` is the address of the repository (`project.urls.Source`); links lead to the files of
    the release's tag.
    """

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["before"].startswith("src") else "blob"
        return f"{link['before']}{source}/{kind}/v{version}/{link['path']}{link['after']}"

    links = r"(?P<before>\]\()(?P<path>(?![a-z]+:|#)[^)]+)(?P<after>\))"
    images = r'(?P<before>src=")(?P<path>(?![a-z]+:)[^"]+)(?P<after>")'
    return re.sub(images, absolute, re.sub(links, absolute, readme))


def describe() -> dict[str, str]:
    """Return the long description of the package, from README.md and pyproject.toml."""
    version = re.search(r'__version__ = "(.+)"', Path("kgtrec/_version.py").read_text("utf-8"))
    source = re.search(r'^Source = "(.+)"$', Path("pyproject.toml").read_text("utf-8"), re.M)
    assert version is not None
    assert source is not None
    readme = Path("README.md").read_text("utf-8")
    return {
        "long_description": readme_for_index(readme, source[1], version[1]),
        "long_description_content_type": "text/markdown",
    }


if __name__ == "__main__":
    extension = Extension(
        "kgtrec._core",
        sources=["kgtrec/_core.pyx", *sorted(map(str, Path("csrc").rglob("*.c")))],
        include_dirs=["csrc"],
    )
    setup(
        **describe(),
        cmdclass={"build_ext": CompileOnce},
        ext_modules=cythonize([extension], language_level=3, build_dir="build/cython"),
        # Always link, because the library in build/ may have another flavour.
        options={"build_ext": {"force": True}},
    )
