"""Reproduce Zhou et al. (2022): their labels and tables, then their study on our own models.

Part 1 recomputes every figure that their published files allow. It prints the name, the published
value, ours and whether they match. Part 2 repeats their study with four trained models: scores,
runs, a pool, judgements looked up in theirs, qrels, metrics at every depth, and rank correlations.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from zhou_published import SHARED_DATA, Files, Row

__all__ = ["main", "published_rows"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both parts; return 1 if a published figure differs, 2 without the data."""
    options = _parse(arguments)
    files = Files(options.data)
    if not files.graph.is_dir() or not files.labels("annotations.txt").is_file():
        print(
            f"{options.data}: no fb15k-237 and kgc-sparsity in it; give their folder: --data DIR",
            file=sys.stderr,
        )
        return 2
    start = time.perf_counter()
    rows = published_rows(files)
    print(format_rows(rows))
    print(f"\n{summary(rows)}  [{time.perf_counter() - start:.1f} s]", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    if not options.published_only:
        _print_own_models(files)
        print(f"\n[{time.perf_counter() - start:.1f} s]")
    return int(any(one.match is False and one.key not in DIFFER for one in rows))


DIFFER = {"fig5: macro above micro at any depth": "at depth 1 it is not"}
"""Claims that their own files contradict."""


def published_rows(files: Files) -> list[Row]:
    """All of part 1."""
    from zhou_labels import label_rows, read_labels
    from zhou_tables import table_rows

    return [*label_rows(files, read_labels(files)), *table_rows(files)]


def _print_own_models(files: Files) -> None:
    from zhou_labels import read_labels
    from zhou_models import report

    print("\n# Part 2: the same study on our own models")
    for text in report(files, read_labels(files)):
        print(f"\n{text}", flush=True)


def format_rows(rows: Sequence[Row]) -> str:
    """Aligned columns."""
    lines = [("figure", "published", "ours", "match", "note")]
    lines += [(r.key, _shown(r.published), _shown(r.ours), _verdict(r), r.note) for r in rows]
    widths = [min(max(len(line[i]) for line in lines), most) for i, most in enumerate((46, 26, 46))]
    return "\n".join(
        f"{key:{widths[0]}}  {paper:>{widths[1]}}  {ours:>{widths[2]}}  {match:5}  {note}".rstrip()
        for key, paper, ours, match, note in lines
    )


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _verdict(one: Row) -> str:
    if one.match is None:
        return "-"
    return "yes" if one.match else ("NO *" if one.key in DIFFER else "NO")


def summary(rows: Sequence[Row]) -> str:
    """The number of matches, and why the others differ."""
    judged = [one for one in rows if one.match is not None]
    text = f"{sum(bool(r.match) for r in judged)} of {len(judged)} published figures come out"
    missed = [one.key for one in judged if not one.match]
    reasons = "; ".join(f"{key}: {DIFFER.get(key, 'not explained')}" for key in missed)
    return f"{text}; * {reasons}" if missed else text


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/reproduce_zhou2022.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=SHARED_DATA, help="default: %(default)s")
    parser.add_argument("--published-only", action="store_true", help="part 1 alone: some seconds")
    parser.add_argument("--json", type=Path, help="write part 1 to this file, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
