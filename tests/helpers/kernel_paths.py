"""Paths of the kernel that tests force: all that this machine can run.

With ``KGTREC_TEST_PATHS=few``, only the best and the portable one. The native tests check all
paths under sanitizers; these tests check the calling code.
"""

from __future__ import annotations

import os

from kgtrec import _core

__all__ = ["BOUNDED", "BY_SCORES", "PATHS"]

PATHS = list(_core.available_paths())
# Paths that multiply bytes, and paths that only sum their differences.
BYTES = ("avx512vnni", "avxvnni", "avx2madd", "neondot", "scalar8")
L1_ALONE = ("avx512sad", "neonsad")

if os.environ.get("KGTREC_TEST_PATHS") == "few":
    few = {PATHS[0], "scalar", "scalar8"} - ({"scalar8"} if PATHS[0] in BYTES else set())
    PATHS = [path for path in PATHS if path in few]

# Each path with the metrics of factorised models that it ranks by bounds.
BOUNDED = [
    (path, metric)
    for path in BYTES + L1_ALONE
    for metric in ("dot", "l2", "l1")
    if path in PATHS and (path in BYTES or metric == "l1")
]

BY_SCORES = next(path for path in PATHS if path not in BYTES + L1_ALONE)
"""The best path without bounds: results by bounds are compared with its results."""
