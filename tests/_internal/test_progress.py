"""Progress bars on terminals that report a size, and on those of containers, which may not."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

fcntl = pytest.importorskip("fcntl", reason="this system has no pseudo terminals")
import termios  # noqa: E402

BARS = """
import time
from kgtrec._internal.progress import JobBar, progress_bar
with progress_bar(3, "rows") as bar:
    for _ in range(3):
        time.sleep(0.6)
        bar.update()
jobs = JobBar(2, 0)
time.sleep(1.1)
jobs.update("0 of 2 jobs done", 0.5)
jobs.close()
"""


@pytest.mark.parametrize(("rows", "columns", "width"), [(0, 0, 80), (0, 60, 80), (30, 60, 60)])
def test_a_bar_appears_on_a_terminal_of_any_size(rows: int, columns: int, width: int) -> None:
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    subprocess.run([sys.executable, "-c", BARS], stderr=terminal, check=True)
    os.close(terminal)
    printed = os.read(controller, 1 << 16).decode()
    os.close(controller)
    lines = [line for line in printed.split("\r") if "|" in line]
    assert any("3/3" in line for line in lines)
    assert any("0 of 2 jobs done" in line for line in lines)
    assert all(width - 2 <= len(line) <= width for line in lines)
