"""I1 and P4: how long a user waits before anything happens, and for the shortest reports."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from data import SEED, fb15k_237
from rows import Row, Settings, at_most, require
from timing import Contestant, Timings, compete

import kgtrec

__all__ = ["BARS"]

ALLOWED_MS = 60
HEAVY = ("scipy", "pyarrow", "matplotlib", "pandas", "pytrec_eval")
HELP = "from kgtrec.cli import run; run()"
COMMANDS = {
    "import numpy": ("-c", "import numpy"),
    "import kgtrec": ("-c", "import kgtrec"),
    "kgtrec eval --help": ("-c", HELP, "eval", "--help"),
}


def _python(
    arguments: Sequence[str], *options: str, compiled: str | None = None
) -> subprocess.CompletedProcess[str]:
    """A new interpreter outside the checkout, so that it uses the installed package.

    Modules are compiled once into the folder `compiled`, whatever the environment sets.
    """
    command = [sys.executable, *options, *arguments]
    environment = dict(os.environ)
    if compiled is not None:
        environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tempfile.gettempdir(),
        env=environment,
    )


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


def _p4(settings: Settings) -> list[Row]:
    """CPU time of whole processes; the files that they read are in the disk cache."""
    graph = fb15k_237().graph
    questions = graph.questions("test")
    rng = np.random.default_rng(SEED)
    entities, queries = (
        rng.normal(size=(n, 16)).astype(np.float32) for n in (graph.n_entities, len(questions))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.ranks.parquet"
        kgtrec.evaluate(kgtrec.Factors(queries, entities), questions).ranks.save(path)
        commands = {"numpy": ("-c", "import numpy"), "report": ("-c", HELP, "report", path)}
        done = _python(commands["report"], compiled=folder)
        require(done.returncode == 0, f"kgtrec report failed: {done.stderr[-500:]}")
        contestants = {
            name: Contestant(lambda _, command=command: _python(command, compiled=folder))
            for name, command in commands.items()
        }
        timings = compete(contestants, rounds=3 if settings.quick else 15)
        modules = _loaded(commands["report"])
    milliseconds = {name: 1e3 * min(timings.cpu[name]) for name in commands}
    return [
        at_most(
            "P4",
            f"kgtrec report of {questions.n_instances:,} instances: CPU ms beyond numpy",
            f"{milliseconds['report']:.0f} ms",
            f"{milliseconds['numpy']:.0f} ms",
            milliseconds["report"] - milliseconds["numpy"],
            120,
            heavy_loaded=[module for module in HEAVY if module in modules],
        )
    ]


BARS = {"I1": _i1, "P4": _p4}
