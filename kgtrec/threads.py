"""Threads that share rows of work out among them."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["available_cores", "share_rows"]


def share_rows(
    do_part: Callable[[int, int], None], parts: list[tuple[int, int]], threads: int
) -> None:
    """Run the parts on threads; the first error is raised when the others have ended."""
    if threads == 1 or len(parts) <= 1:
        for part in parts:
            do_part(*part)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        try:
            for future in [pool.submit(do_part, *part) for part in parts]:
                future.result()
        except BaseException:  # Ctrl-C waits for the parts at work, not for all
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
