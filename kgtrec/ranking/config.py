"""What this build can do, and what it does here."""

from __future__ import annotations

import os
import platform

from kgtrec._version import __version__

__all__ = ["show_config"]


def show_config() -> str:
    """Version, kernel path in use and why, and threads: a text for bug reports.

    Examples
    --------
    >>> print(kgtrec.show_config())  # doctest: +SKIP
    kgtrec 0.1.0, Python 3.11.7, Linux x86_64
    kernel path: avx512vnni (the best of avx512vnni, avx512, avx2, scalar that this machine runs)
    last factorised model: 1.1 % of its scores computed, 1.2 % decided by 16 bits, the rest by 8
    threads: 2 (cores that this process may use)
    """
    from kgtrec.ranking.kernel import (
        active_path,
        available_cores,
        available_paths,
        last_shares,
    )

    paths, path, isa = available_paths(), active_path(), os.environ.get("KGTREC_ISA")
    why = f"the best of {', '.join(paths)} that this machine runs"
    if isa:
        why = f"KGTREC_ISA={isa}; there are {', '.join(paths)}"
    elif path != paths[0]:
        why = f"forced by the program; there are {', '.join(paths)}"
    bounds = []
    if shares := last_shares():
        computed, refined = (f"{100 * share:.2g} %" for share in shares)
        bounds.append(
            f"last factorised model: {computed} of its scores computed, "
            f"{refined} decided by 16 bits, the rest by 8"
        )
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        [
            f"kgtrec {__version__}, Python {platform.python_version()}, {system}",
            f"kernel path: {path} ({why})",
            *bounds,
            f"threads: {available_cores()} (cores that this process may use)",
        ]
    )
