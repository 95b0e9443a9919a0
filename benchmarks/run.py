"""Measure every bar of the project in one table: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rows import Row, Settings, WrongAnswer, format_table, not_run

# The module that measures each bar. A module is imported when one of its bars is selected.
BARS = {
    "K1": "kernels",
    "K2": "kernels",
    "K3": "kernels",
    "K4": "kernels",
    "K5": "kernels",
    "KP": "kernels",
    "K6": "shapes",
    "K7": "shapes",
    "K8": "shapes",
    "K9": "growth",
    "KU": "shapes",
    "KG": "growth",
    "F1": "factors",
    "F2": "factors",
    "Q1": "bounds",
    "Q2": "bounds",
    "Q3": "bounds",
    "Q4": "bounds",
    "Q5": "bounds",
    "Q6": "bounds",
    "Q8": "bounds",
    "Q9": "bounds",
    "Q10": "bounds",
    "Q11": "bounds",
    "E1": "endtoend",
    "E2": "endtoend",
    "E3": "retrieval",
    "E4": "endtoend",
    "T1": "trec",
    "T2": "trec",
    "T3": "trec",
    "T4": "trec",
    "T5": "trec",
    "S1": "grids",
    "I1": "startup",
    "P1": "files",
    "P2": "files",
    "P3": "files",
    "P4": "startup",
    "P5": "files",
    "P6": "files",
    "P7": "files",
    "P8": "pairs",
    "C1": "cluster",
}
BLAS_THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# References use the kernel that the BLAS chooses, the best for this processor.
BLAS_KERNEL = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write JSON. Return 1 if answers differ or a bar could not run, else 0."""
    options = _parse(arguments)
    # Set before numpy is imported, because its BLAS reads these once.
    os.environ.update(dict.fromkeys(BLAS_THREADS, str(options.threads)))
    for name in BLAS_KERNEL:
        os.environ.pop(name, None)
    machine_module = import_module("machine")
    machine = machine_module.describe_machine(options.quick)
    print(machine_module.describe(machine), end="\n\n", flush=True)
    settings = Settings(options.quick, options.threads)
    rows = [row for bar_id in options.only for row in _measure(bar_id, settings)]
    print(format_table(rows))
    print("\n" + _verdict(rows) + ("  (--quick: sizes are too small for the bars)" * options.quick))
    options.json.write_text(json.dumps(_as_json(machine, settings, rows), indent=1) + "\n")
    print(f"JSON: {options.json}")
    return int(any(row.met is False and row.ratio is None for row in rows))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument(
        "--only", type=_bar_ids, default=list(BARS), metavar="K1,K2", help=f"of {','.join(BARS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute: a smoke")
    parser.add_argument(
        "--json", type=Path, default=Path("benchmarks.json"), help="default: %(default)s"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="of F1, E1, E2, S1 and of BLAS; default 1"
    )
    return parser.parse_args(arguments)


def _bar_ids(text: str) -> list[str]:
    names = [name.strip().upper() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in BARS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{unknown or text!r}: choose from {', '.join(BARS)}")
    return [name for name in BARS if name in names]


def _measure(bar_id: str, settings: Settings) -> list[Row]:
    """Rows of one bar; an error becomes a row, so that the rest is still measured."""
    started = time.perf_counter()
    no_compiler: type[Exception] = import_module("bandwidth").NoCompiler
    try:
        from kgtrec import _core  # after the number of BLAS threads is set

        measure: Callable[[Settings], list[Row]] = import_module(BARS[bar_id]).BARS[bar_id]
        rows = measure(settings)
        _core.force_path(None)  # a bar may have forced one; the next starts with the machine's best
    except no_compiler as error:
        rows = [not_run(bar_id, "", str(error))]
    except Exception as error:  # keep half an hour of other figures
        kind = (
            "WRONG ANSWER" if isinstance(error, WrongAnswer) else f"FAILED, {type(error).__name__}"
        )
        rows = [replace(not_run(bar_id, kind, str(error)), met=False)]
    print(f"{bar_id}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return rows


def _verdict(rows: Sequence[Row]) -> str:
    met = sum(row.met is True for row in rows)
    missed = [row.bar_id for row in rows if row.met is False]
    names = f" ({', '.join(dict.fromkeys(missed))})" if missed else ""
    skipped = sum("not_run" in row.detail for row in rows)
    return f"{met} met, {len(missed)} missed{names}, {skipped} not run"


def _as_json(machine: dict[str, Any], settings: Settings, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "machine": machine,
        "load_average_at_end": list(os.getloadavg()),
        "quick": settings.quick,
        "threads": settings.threads,
        "rows": [asdict(row) for row in rows],
    }


if __name__ == "__main__":
    sys.exit(main())
