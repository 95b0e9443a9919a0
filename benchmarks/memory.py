"""Peak memory of this process: imported by the child processes that are measured."""

import sys
from pathlib import Path

__all__ = ["peak_bytes"]


def peak_bytes() -> int:
    """Largest resident size of this process so far.

    ru_maxrss would do, but on Linux a child inherits in it the size that its parent had at the
    fork, and a parent may have held a large matrix; VmHWM starts anew with the program.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10
