"""Builds the one extension module; everything else about the package is in pyproject.toml.

KGTREC_BUILD=sanitize builds with AddressSanitizer and UndefinedBehaviorSanitizer (see .ci/run),
KGTREC_BUILD=debug without optimisation and with symbols.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FLAVOURS = {
    "release": (["-O3"], []),
    "debug": (["-O0", "-g"], []),
    "sanitize": (
        [
            *("-O1", "-g", "-fno-omit-frame-pointer"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        ],
        ["-fsanitize=address,undefined"],
    ),
}
# Contraction would fuse a multiply with an add where the source does not, and a score's bits would
# depend on the compiler; fused steps are written out where they are meant.
STANDARD = ["-std=c11", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"]
# What Cython generates is not ours to lint.
GENERATED = [
    *("-Wno-unused-parameter", "-Wno-unused-function", "-Wno-missing-field-initializers"),
    "-Wno-incompatible-pointer-types-discards-qualifiers",  # clang's
]

compile_flags, link_flags = FLAVOURS[os.environ.get("KGTREC_BUILD", "release")]
extension = Extension(
    "kgtrec._core",
    sources=["kgtrec/_core.pyx", *sorted(glob("csrc/*.c"))],
    include_dirs=["csrc"],
    depends=sorted(glob("csrc/*.h")),
    libraries=["m"],
    extra_compile_args=STANDARD + GENERATED + compile_flags,
    extra_link_args=link_flags,
)


class BuildOnAllCores(build_ext):
    """Compiles as many source files at a time as there are cores; setuptools takes one by one."""

    def build_extension(self, ext: Extension) -> None:
        compile_in_turn = self.compiler.compile

        def compile_together(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_in_turn([source], **options), sources)
                return [path for paths in objects for path in paths]

        self.compiler.compile = compile_together
        super().build_extension(ext)


setup(
    cmdclass={"build_ext": BuildOnAllCores},
    ext_modules=cythonize([extension], language_level=3, build_dir="build/cython"),
    # A build of another flavour may lie in build/: its objects are not ours.
    options={"build_ext": {"force": True}},
)
