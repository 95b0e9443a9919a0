"""The kernel paths without Python: tests/native, compiled and run here and under an emulator.

All are slow: they compile as setup.py does and check everything, with sanitizers and valgrind too.
If this machine lacks a tool (a C compiler, sanitizers, a cross-compiler with its emulator,
valgrind), the check is skipped with that reason.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

from kgtrec import _core

SOURCES = [*sorted(ROOT.glob("tests/native/*.c")), *sorted(ROOT.glob("csrc/**/*.c"))]
# Flags as in setup.py, but a warning is an error.
FLAGS = ["-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic"]
RELEASE = ["-O3"]
SANITIZE = [
    *("-O1", "-g1", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
]
# Checks, and the faults that the program can make on purpose that each must notice; faults of
# which the check has the name.
FOUND_BY = {
    "count_f32": "count_end, count_ties, count_nan",
    "compress_f32": "compress",
    "select_f32": "select",
    "fold_f": "fold_low, fold_twice, fold_nan",
    "tile_f32": "tile",
    "tile_l1_f32": "tile_l1",
    "tile_moduli_f32": "tile_moduli",
    "tile_mode_f32": "tile_mode",
    "tile_hake_f32": "tile_hake",
    "norms_f32": "norms",
    "pair_f32": "pair",
    "pair_l1_f32": "pair_l1",
    "pair_moduli_f32": "pair_moduli",
    "pair_mode_f32": "pair_mode",
    "pair_hake_f32": "pair_hake",
    "transpose_f32": "transpose",
    "locate_f32": "locate, histogram",
    "cells_f32": "cells, cells_nan",
    "tied_up_to_f32": "tied_up_to",
    "count_short_f32": "count_short",
    "maxima_f32": "maxima",
    "kgt_rank_rows": "rows",
    "kgt_rank_factors": "factors, codes",
    "kgt_pairs": "pair_counts, pair_vectors",
    "kgt_trec_lists": "files",
    "kgt_trec_write_run": "lines",
    "kgt_label_order": "labels",
    "bound": "bound, rounding",
    "bound l1": "bound l1, query bound l1",
}
OWN = (
    "widen_f16, sort_keys, mark, count_f16, product, reaching, pairs, pairs_f64, refine, "
    "judge, highest_lower, quantise, quantise_fine, fine bound, product_l1, pairs_l1, "
    "pairs_l1_f64, refine_l1, quantise_l1, fine bound l1"
)
WRONGS = {wrong: check for check, wrongs in FOUND_BY.items() for wrong in wrongs.split(", ")} | {
    wrong: wrong for wrong in OWN.split(", ")
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


FLAGS_OF_PATHS = {
    "avx2": "avx2 fma f16c bmi1 bmi2 popcnt",
    "avx512": "avx512f avx512bw avx512dq avx512vl avx2 fma f16c bmi2 popcnt",
    "avx512vnni": "avx512f avx512bw avx512dq avx512vl avx2 fma f16c bmi2 popcnt avx512_vnni",
    "avxvnni": "avx2 fma f16c bmi1 bmi2 popcnt avx_vnni",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of x86-64")
def test_paths_are_available_if_linux_names_their_features():
    """A compiler whose builtin knows no feature once made wheels that ran the scalar path alone."""
    text = Path("/proc/cpuinfo").read_text("utf-8")
    flags = {*re.search(r"^flags\s*:(.*)$", text, re.M)[1].split()}
    for path, needed in FLAGS_OF_PATHS.items():
        assert (path in _core.available_paths()) == ({*needed.split()} <= flags), path


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
@pytest.mark.timeout(1200)  # two minutes on a quiet machine; the emulator is slow on a busy one
def test_neon_under_an_emulator(tmp_path):
    compiler, emulator = tool("aarch64-linux-gnu-gcc"), tool("qemu-aarch64", "qemu-aarch64-static")
    emulated = build(compiler, [*RELEASE, "-static"], tmp_path / "paths")
    assert agreeing(run(emulator, emulated)) == {"neondot", "neonsad", "neon", "scalar", "scalar8"}
    assert "count_f32" in run(emulator, emulated, "--wrong", "count_end", "neon", status=1)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONGS)
def test_a_wrong_primitive_is_found(program, wrong):
    path = "scalar8" if wrong in BYTES else "scalar"
    output = run(program, "--wrong", wrong, path, status=1)
    assert f"{path}: {WRONGS[wrong]}" in output
    assert output.endswith("FAILED\n")


@pytest.mark.slow
def test_reading_past_the_end_is_found(sanitized):
    assert "heap-buffer-overflow" in run(sanitized, "--wrong", "overread", "scalar", status=1)


@pytest.mark.slow
def test_an_unknown_path_is_refused(program):
    output = run(program, "nonesuch", status=1)
    assert "nonesuch: not a path that this build and machine can run; there are:" in output
