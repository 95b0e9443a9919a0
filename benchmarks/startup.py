"""I1: what a user waits for before anything happens."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from rows import Row, Settings, at_most, require
from timing import Contestant, Timings, compete

__all__ = ["BARS"]

ALLOWED_MS = 60
HEAVY = ("scipy", "pyarrow", "matplotlib", "pandas", "pytrec_eval")
HELP = "from kgtrec.cli import main; main()"
COMMANDS = {
    "import numpy": ("-c", "import numpy"),
    "import kgtrec": ("-c", "import kgtrec"),
    "kgtrec eval --help": ("-c", HELP, "eval", "--help"),
}


def _python(arguments: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter, away from the checkout: the installed package is what counts."""
    command = [sys.executable, *options, *arguments]
    folder = tempfile.gettempdir()
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def _loaded(arguments: Sequence[str]) -> list[str]:
    """Top-level packages that a command imports."""
    done = _python(arguments, "-X", "importtime")
    require(done.returncode == 0, f"{' '.join(arguments)} failed: {done.stderr[-500:]}")
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    return sorted({name.partition(".")[0] for name in names})


def _i1(settings: Settings) -> list[Row]:
    contestants = {
        name: Contestant(lambda _, arguments=arguments: _python(arguments))
        for name, arguments in COMMANDS.items()
    }
    timings = compete(contestants, rounds=5 if settings.quick else 25)
    return [_row(name, timings) for name in COMMANDS if name != "import numpy"]


def _row(name: str, timings: Timings) -> Row:
    reference = timings.wall["import numpy"]
    extra = [1e3 * (a - b) for a, b in zip(timings.wall[name], reference, strict=True)]
    modules = _loaded(COMMANDS[name])
    heavy = [module for module in HEAVY if module in modules]
    row = at_most(
        "I1",
        f"{name}: ms beyond import numpy; loads {', '.join(heavy) or 'nothing heavy'}",
        f"{1e3 * timings.seconds(name):.0f} ms",
        f"{1e3 * timings.seconds('import numpy'):.0f} ms",
        median(extra),
        ALLOWED_MS,
        rounds=len(extra),
        extra_ms_min=min(extra),
        extra_ms_max=max(extra),
        numpy_loaded="numpy" in modules,
        heavy_loaded=heavy,
        modules=len(modules),
    )
    return replace(row, met=False) if heavy else row


BARS = {"I1": _i1}
