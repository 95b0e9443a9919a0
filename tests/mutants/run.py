"""Tries mutants: small faults that the tests must notice.

    python tests/mutants/run.py                     # all of them, with the tests that each names
    python tests/mutants/run.py --only ranking      # the mutants of one file in this folder
    python tests/mutants/run.py --number cluster:7  # one, with what pytest prints
    python tests/mutants/run.py --check             # every mutant still fits the code; runs nothing

A file of mutants is TOML: ``[[mutant]]`` with ``file``, the text ``old`` that occurs there once,
its replacement ``new``, ``why`` it is wrong, and ``tests`` that notice it, none of them slow.
About 150 are kept, most of them of what decides numbers: ranking, questions, scores, measures.

Each is tried in a copy of the checkout, where C sources are compiled again. A mutant that does not
compile is an error in its list, because tests have nothing to notice.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 600  # seconds per mutant; a hanging test has noticed it
COPIED = (
    "kgtrec",
    "csrc",
    "tests",
    "benchmarks",
    "pyproject.toml",
    "setup.py",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "MANIFEST.in",
    "LICENSE",
    ".ci",
    "build",
)


class Mutant(NamedTuple):
    """One small fault: its place, its change, why it is wrong, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: Sequence[str]

    @property
    def is_native(self) -> bool:
        return not self.file.endswith(".py")


def mutants(only: str = "") -> Iterator[Mutant]:
    """All mutants, or those of one file."""
    for path in sorted(HERE.glob("*.toml")):
        if only and path.stem != only:
            continue
        for number, row in enumerate(tomllib.loads(path.read_text("utf-8"))["mutant"], 1):
            yield Mutant(f"{path.stem}:{number}", **row)


def misfits(all_mutants: Iterable[Mutant]) -> list[str]:
    """Faults of mutants: text that is missing or repeated, tests that do not exist."""
    wrong = []
    for mutant in all_mutants:
        path = ROOT / mutant.file
        count = path.read_text("utf-8").count(mutant.old) if path.is_file() else 0
        if count != 1:
            wrong.append(f"{mutant.name}: {mutant.file} holds its text {count} times, not once")
        if mutant.old == mutant.new:
            wrong.append(f"{mutant.name}: changes nothing")
        if not mutant.tests:
            wrong.append(f"{mutant.name}: names no test")
        wrong += [
            f"{mutant.name}: no file {test.partition('::')[0]}"
            for test in mutant.tests
            if not (ROOT / test.partition("::")[0]).exists()
        ]
    return wrong


def copied_checkout(folder: Path) -> Path:
    """A copy of the checkout with its compiled extension."""
    place = folder / "checkout"
    place.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, place / name)
    if not any((place / "kgtrec").glob("_core*.so")):
        compile_sound(place)
    return place


def compile_extension(place: Path) -> str:
    """Compile the copy's C sources; return the last message if that fails."""
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["no reason"])[-1] if done.returncode else ""


def compile_sound(place: Path) -> None:
    """Run the tests without a mutant. They must pass, or no verdict means anything."""
    if said := compile_extension(place):
        raise SystemExit(f"the sources in C do not compile, with no mutant in them: {said}")


def verdict_on(mutant: Mutant, place: Path, show: bool) -> str:
    """Return "killed" if the tests that the mutant names fail on it, else "SURVIVED"; "NO BUILD" if
    its change does not compile."""
    path = place / mutant.file
    sound = path.read_text("utf-8")
    path.write_text(sound.replace(mutant.old, mutant.new), "utf-8")
    try:
        if mutant.is_native and compile_extension(place):
            return "NO BUILD"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-x", "-q"]
        command.append("--hypothesis-profile=mutants")
        environment = {**os.environ, "PYTHONPATH": str(place)}
        try:
            done = subprocess.run(
                [*command, *mutant.tests],
                cwd=place,
                env=environment,
                timeout=LIMIT,
                capture_output=not show,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed"
        if done.returncode > 2:  # 5: no test ran; below 0: a crash
            raise SystemExit(f"{mutant.name}: pytest ended with {done.returncode}")
        return "killed" if done.returncode else "SURVIVED"
    finally:
        path.write_text(sound, "utf-8")
        if mutant.is_native:
            compile_sound(place)


def main() -> int:
    parser = argparse.ArgumentParser(description="Try mutants: faults that the tests must notice.")
    parser.add_argument("--only", default="", help="name of one file of mutants, without .toml")
    parser.add_argument("--number", default="", help="one mutant, as cluster:7")
    parser.add_argument("--check", action="store_true", help="see whether they fit; run nothing")
    given = parser.parse_args()
    chosen = [*mutants(given.only or given.number.partition(":")[0])]
    if given.number:
        chosen = [mutant for mutant in chosen if mutant.name == given.number]
    wrong = misfits(chosen)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong or given.check or not chosen:
        return bool(wrong) or not chosen
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        place = copied_checkout(Path(folder))
        for mutant in chosen:
            verdict = verdict_on(mutant, place, bool(given.number))
            print(f"{verdict:10} {mutant.name} {mutant.file}: {mutant.why}", flush=True)
            survivors += [] if verdict == "killed" else [mutant.name]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
