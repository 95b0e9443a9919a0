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
    last factorised model: 0.8 % of its scores computed, bounds decided on the others
    threads: 2 (cores that this process may use)
    """
    from kgtrec.ranking.kernel import (
        active_path,
        available_cores,
        available_paths,
        last_computed,
    )

    paths, path, isa = available_paths(), active_path(), os.environ.get("KGTREC_ISA")
    why = f"the best of {', '.join(paths)} that this machine runs"
    if isa:
        why = f"KGTREC_ISA={isa}; there are {', '.join(paths)}"
    elif path != paths[0]:
        why = f"forced by the program; there are {', '.join(paths)}"
    computed = last_computed()
    bounds = "" if computed is None else f"{100 * computed:.2g} % of its scores computed"
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        [
            f"kgtrec {__version__}, Python {platform.python_version()}, {system}",
            f"kernel path: {path} ({why})",
            *([f"last factorised model: {bounds}, bounds decided on the others"] if bounds else []),
            f"threads: {available_cores()} (cores that this process may use)",
        ]
    )
