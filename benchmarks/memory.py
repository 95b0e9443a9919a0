"""Peak memory of this process, for the child processes that are measured."""

import sys
from pathlib import Path

__all__ = ["peak_bytes"]


def peak_bytes() -> int:
    """Largest resident size of this process so far.

    On Linux, ru_maxrss of a child includes the size of its parent at the fork, and the parent may
    hold a large matrix. VmHWM starts anew with the program.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10
