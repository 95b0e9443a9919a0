"""The kernel paths without Python: tests/native, compiled and run here and under an emulator.

All are slow: they compile as setup.py does and check everything, with sanitizers and valgrind too.
If this machine lacks a tool (a C compiler, sanitizers, a cross-compiler with its emulator,
valgrind), the check is skipped with that reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

from kgtrec import _core

SOURCES = [*sorted(ROOT.glob("tests/native/*.c")), *sorted(ROOT.glob("csrc/*.c"))]
# Flags as in setup.py, but a warning is an error.
FLAGS = ["-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic"]
RELEASE = ["-O3"]
SANITIZE = [
    *("-O1", "-g1", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
]
# Faults that the program can make on purpose, and the check that must notice each.
WRONGS = {
    "count_end": "count_f32",
    "count_ties": "count_f32",
    "count_nan": "count_f32",
    "compress": "compress_f32",
    "select": "select_f32",
    "fold_low": "fold_f",
    "fold_twice": "fold_f",
    "fold_nan": "fold_f",
    "tile": "tile_f32",
    "tile_l1": "tile_l1_f32",
    "norms": "norms_f32",
    "pair": "pair_f32",
    "pair_l1": "pair_l1_f32",
    "widen_f16": "widen_f16",
    "sort_keys": "sort_keys",
    "mark": "mark",
    "transpose": "transpose_f32",
    "locate": "locate_f32",
    "histogram": "locate_f32",
    "cells": "cells_f32",
    "cells_nan": "cells_f32",
    "tied_up_to": "tied_up_to_f32",
    "count_short": "count_short_f32",
    "count_f16": "count_f16",
    "maxima": "maxima_f32",
    "rows": "kgt_rank_rows",
    "factors": "kgt_rank_factors",
    "codes": "kgt_rank_factors",
    "files": "kgt_trec_lists",
    "lines": "kgt_trec_write_run",
    "labels": "kgt_label_order",
    "product": "product",
    "reaching": "reaching",
    "pairs": "pairs",
    "pairs_f64": "pairs_f64",
    "refine": "refine",
    "judge": "judge",
    "highest_lower": "highest_lower",
    "quantise": "quantise",
    "quantise_fine": "quantise_fine",
    "bound": "bound",
    "fine bound": "fine bound",
    "rounding": "bound",
    "product_l1": "product_l1",
    "pairs_l1": "pairs_l1",
    "pairs_l1_f64": "pairs_l1_f64",
    "refine_l1": "refine_l1",
    "quantise_l1": "quantise_l1",
    "bound l1": "bound l1",
    "fine bound l1": "fine bound l1",
    "query bound l1": "bound l1",
}
# Only a path with products or distances of bytes has these. A residual, or a whole bound, is
# 3 % too small.
BYTES = {
    *("product", "reaching", "pairs", "pairs_f64", "refine", "judge", "quantise", "quantise_fine"),
    *("bound", "fine bound", "rounding", "codes", "highest_lower"),
    *(wrong for wrong in WRONGS if "l1" in wrong and wrong not in {"tile_l1", "pair_l1"}),
}


def tool(*names: str) -> str:
    """The first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no {' or '.join(names)} on this machine")


def build(compiler: str, flags: list[str], out: Path) -> Path:
    """The test program, compiled with the given flags."""
    command = [compiler, *FLAGS, *flags, "-I", ROOT / "csrc", *SOURCES, "-lm", "-o", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def run(*command: str | Path, status: int = 0) -> str:
    """The output of a command on both streams; its exit status must be the expected one."""
    # A suite under a sanitizer has settings that these programs must not get.
    alien = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")
    done = subprocess.run(
        command,
        env={name: value for name, value in os.environ.items() if name not in alien},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def agreeing(output: str) -> set[str]:
    """The paths that agree with the scalar one in a run's output."""
    return set(re.findall(r"^(\w+): \d{6,} checks against scalar, 0 failed$", output, re.M))


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return build(tool("cc", "gcc", "clang"), RELEASE, tmp_path_factory.mktemp("native") / "paths")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sanitized")
    compiler, probe = tool("cc", "gcc", "clang"), folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    command = [compiler, *SANITIZE, probe, "-o", folder / "probe"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine's C compiler has no sanitizers")
    return build(compiler, SANITIZE, folder / "paths")


@pytest.mark.slow
def test_every_path_of_this_machine(program):
    assert agreeing(run(program)) == set(_core.available_paths())


@pytest.mark.slow
def test_every_path_under_sanitizers(sanitized):
    assert "scalar" in agreeing(run(sanitized, "--brief"))


@pytest.mark.slow
def test_paths_under_valgrind(program):
    """Of the paths that valgrind knows, those that have all features of the others."""
    valgrind = tool("valgrind")
    for path in {*_core.available_paths()} & {"scalar8", "avx2madd", "neondot"}:
        command = [valgrind, "-q", "--error-exitcode=9", "--leak-check=full", program]
        assert agreeing(run(*command, "--brief", path)) == {path}


@pytest.mark.slow
def test_neon_under_an_emulator(tmp_path):
    compiler, emulator = tool("aarch64-linux-gnu-gcc"), tool("qemu-aarch64", "qemu-aarch64-static")
    emulated = build(compiler, [*RELEASE, "-static"], tmp_path / "paths")
    assert agreeing(run(emulator, emulated)) == {"neondot", "neonsad", "neon", "scalar", "scalar8"}
    assert "count_f32" in run(emulator, emulated, "--wrong", "count_end", "neon", status=1)


def check_that_it_is_found(program: Path, wrong: str) -> None:
    path = "scalar8" if wrong in BYTES else "scalar"
    output = run(program, "--wrong", wrong, path, status=1)
    assert f"{path}: {WRONGS[wrong]}" in output
    assert output.endswith("FAILED\n")


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONGS)
def test_a_wrong_primitive_is_found(program, wrong):
    check_that_it_is_found(program, wrong)


@pytest.mark.slow
def test_reading_past_the_end_is_found(sanitized):
    assert "heap-buffer-overflow" in run(sanitized, "--wrong", "overread", "scalar", status=1)


@pytest.mark.slow
def test_an_unknown_path_is_refused(program):
    output = run(program, "nonesuch", status=1)
    assert "nonesuch: not a path that this build and machine can run; there are:" in output
