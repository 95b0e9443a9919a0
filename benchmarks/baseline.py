"""Record what users see of a fixed set of evaluations before a change, and compare it afterwards.

    python benchmarks/baseline.py --record before.json   # before a change that must change nothing
    python benchmarks/baseline.py --check before.json    # after it; names what differs
    python benchmarks/baseline.py --check before.json --only 'compare/*' --show 'compare/*'

The commands, calls and mistakes are tables: `baseline_cases.py`, `baseline_errors.py` and
`baseline_bad_files.py`, over the files of `baseline_inputs.py`. A record has a name and a text: the
output of a command, a file that it wrote, the numbers in a figure (`baseline_describe.py`), a
value, or an error. --real adds FB15k-237 with its four models (`../shared/data`).

If a change renames an option, rename it in the tables too, and keep the names of records. --only
takes whole groups, such as ``compare/*``; lines that a group needs from others always run. Compare
only texts of one machine, because other processors may round differently.
"""

from __future__ import annotations

import os

# Set before numpy is loaded: sums must not depend on free cores, nor lines on the terminal.
os.environ.update(COLUMNS="100", OPENBLAS_NUM_THREADS="1", MPLBACKEND="agg")

import argparse
import difflib
import fnmatch
import json
import re
import shlex
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isclose
from pathlib import Path
from typing import Any

import baseline_bad_files as bad_files
import baseline_cases as cases
import baseline_describe as describe
import baseline_errors as errors
import baseline_inputs as inputs
from matplotlib import rcParams
from matplotlib.figure import Figure

import kgtrec
from kgtrec.cli import cli, main

Records = dict[str, dict[str, str]]
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
PACKAGE = str(Path(kgtrec.__file__).parent)
STATES = SAME, CLOSE, WORDS, DIFFERS, MISSING, NEW = (
    "same", "last digits differ", "numbers same but text differs", "differs", "missing", "new",
)  # fmt: skip
TRACEBACK = 99  # in place of an exit code
Stamps = dict[Path, tuple[int, int]]


class Recorder:
    """Runs the lines of the tables in one folder, and keeps one text per name.

    Attributes
    ----------
    records : dict of str to dict
        ``text`` (long ones cut), ``hash`` and ``numbers`` (the hash of the numbers in the text).
    """

    def __init__(self, home: Path, only: str) -> None:
        self.home = home
        self.only = only
        self.records: Records = {}
        self.figures: list[Figure] = []

    def wants(self, name: str) -> bool:
        return fnmatch.fnmatchcase(name, self.only)

    def keep(self, name: str, text: str) -> None:
        """Keep a text under a new name."""
        assert name not in self.records, f"two records {name!r}"
        text = text.replace(str(self.home), ".").replace(PACKAGE, "<package>")
        for pattern, instead in cases.UNSTEADY:
            text = re.sub(pattern, instead, text)
        cut = text[: describe.LONGEST] + f"\n... of {len(text)} characters"
        self.records[name] = {
            "text": text if len(text) <= describe.LONGEST else cut,
            "hash": describe.digest(text.encode()),
            "numbers": describe.digest(" ".join(NUMBER.findall(text)).encode()),
        }

    # ---- commands ----

    def command(self, name: str, line: str) -> None:
        """Record a command that must succeed: its output, every file and every figure."""
        before = stamps(self.home)
        self.figures.clear()
        code, out, err = call(shlex.split(line))
        if code:
            print(f"{name} ended with {code}: kgtrec {line}\n{err}", file=sys.stderr)
            out = f"exit code {code}\n{out}"
        if not self.wants(name):
            return
        self.keep(f"{name}", out)
        if err and name in cases.ANY_ORDER:
            err = "\n".join(sorted(err.splitlines()))
        if err:
            self.keep(f"{name} stderr", err)
        for number, figure in enumerate(self.figures):
            self.keep(f"{name} figure {number}", describe.figure(figure))
        for path in changed(before, stamps(self.home)):
            for suffix, text in describe.file(path):
                self.keep(f"{name} > {path.relative_to(self.home)}{suffix}", text)
            if path.name.startswith("out"):  # nothing else reads it
                path.unlink()

    def commands(self, table: str, *, always: bool = False) -> None:
        """Record lines ``name  command line``; each ``<x|y>`` gives one record per choice."""
        for name, line in rows_of(table):
            for full, chosen in spelt_out(name, line):
                if always or self.wants(full):
                    self.command(full, chosen)

    # ---- values and mistakes ----

    def value(self, name: str, expression: str, world: dict[str, Any]) -> None:
        if self.wants(name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    text = describe.value(eval(expression, world))
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                    print(f"{name}: {text}\n  {expression}", file=sys.stderr)
            self.keep(name, text)

    def mistake(self, name: str, line: str) -> None:
        """Record a command line that must be refused; remove the files that it leaves."""
        if not self.wants(name):
            return
        before = stamps(self.home)
        code, out, err = call(shlex.split(line))
        left = list(changed(before, stamps(self.home)))
        said = [f"exit code {code}", err.rstrip("\n")]
        said += [f"printed: {out}"] if out else []
        said += [f"left behind: {path.relative_to(self.home)}" for path in left]
        for path in left:
            path.unlink()
            with suppress(OSError):  # only empty folders
                os.removedirs(path.parent)
        self.keep(name, "\n".join(said))

    def wrong_call(self, name: str, expression: str, world: dict[str, Any]) -> None:
        """Record an expression that must raise."""
        if not self.wants(name):
            return
        try:
            made = eval(expression, world)
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__[:-2]]
            self.keep(name, f"{' < '.join(kinds)}\n{error}")
        else:
            self.keep(name, f"no error: {describe.value(made)}")


def rows_of(table: str) -> Iterator[tuple[str, str]]:
    """Names and lines of a table; indented lines continue the line before."""
    for row in re.sub(r"\n[ \t]+", " ", table).strip().splitlines():
        name, _, line = row.partition(" ")
        if name and not name.startswith("#"):
            yield name, spelt(line.strip())


def spelt(line: str) -> str:
    """A line whose words ``$word`` are replaced by those of `SHORT`."""
    while "$" in line:
        line = re.sub(r"\$(\w+)", lambda match: cases.SHORT[match[1]], line)
    return line


def spelt_out(name: str, line: str) -> Iterator[tuple[str, str]]:
    """The lines without choices, and their names, which end with the first choice."""
    match = re.search(r"<([^<>|]+(?:\|[^<>|]+)+)>", line)
    if match is None:
        yield name, line
        return
    for choice in match[1].split("|"):
        chosen = line[: match.start()] + choice + line[match.end() :]
        yield from spelt_out(f"{name}/{choice}", chosen)


def call(words: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of kgtrec with these words, in this process."""
    before, sys.argv = sys.argv, ["kgtrec", *words]
    code: Any = 0
    try:
        with captured(1) as out, captured(2) as err, warnings.catch_warnings():
            try:
                main()
            except SystemExit as end:
                code = end.code
            except Exception:  # main() should catch all of these
                code = TRACEBACK
                traceback.print_exc()
    finally:
        sys.argv = before
    return int(code or 0), *(
        Path(path).read_text("utf-8", "backslashreplace") for path in (out, err)
    )


@contextmanager
def captured(number: int) -> Iterator[str]:
    """Redirect a stream of the process, with output of C code, into a file; yields its path."""
    stream = {1: sys.stdout, 2: sys.stderr}[number]
    stream.flush()
    path = os.path.join(tempfile.gettempdir(), f"baseline-{os.getpid()}-{number}")
    kept, target = os.dup(number), os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(target, number)
    try:
        yield path
    finally:
        stream.flush()
        os.dup2(kept, number)
        os.close(kept)
        os.close(target)


def stamps(home: Path) -> Stamps:
    """Every file below a folder, with values that change when it is written."""
    made = {}
    for folder, _, names in os.walk(home):
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                status = path.stat()
                made[path] = (status.st_mtime_ns, status.st_ino)
    return made


def changed(before: Stamps, now: Stamps) -> Iterator[Path]:
    """New and rewritten files."""
    return (path for path, stamp in sorted(now.items()) if before.get(path) != stamp)


# ---- recording ----


def record(home: Path, *, real: bool, only: str) -> Records:
    """Record everything whose name matches, in an empty folder."""
    recorder = Recorder(home, only)
    rcParams["svg.hashsalt"] = "baseline"
    plain = Figure.savefig

    def savefig(figure: Figure, *args: Any, **options: Any) -> None:
        recorder.figures.append(figure)
        plain(figure, *args, **options)

    Figure.savefig = savefig  # type: ignore[method-assign,assignment]
    recorder.commands(cases.DEMO, always=True)
    inputs.write_inputs(home)
    recorder.commands(cases.INPUTS, always=True)
    inputs.judgements(home)
    recorder.commands(cases.MERGED, always=True)
    inputs.adjudication(home)
    recorder.commands(cases.SETTLED, always=True)
    inputs.complete_split(home)
    recorder.commands(cases.WHOLE, always=True)
    recorder.commands(cases.COMMANDS)
    options_of(recorder, "kgtrec", cli)
    for name, line, path in bad_files.cases(home):
        recorder.mistake(f"error/file/{name}", spelt(line).replace("{file}", path))
    for name, line in rows_of(errors.LINES):
        recorder.mistake(f"error/line/{name}", line)
    world = cases.world(home)
    for name, expression in rows_of(cases.VALUES):
        recorder.value(name, expression, world)
    for name, expression in rows_of(errors.CALLS):
        recorder.wrong_call(f"error/call/{name}", expression, world)
    if real:
        inputs.write_real(home)
        recorder.commands(cases.REAL)
    Figure.savefig = plain  # type: ignore[method-assign]
    return recorder.records


def options_of(recorder: Recorder, name: str, command: Any) -> None:
    """The names, kinds, choices and defaults of the options of a command and its subcommands."""
    if hasattr(command, "list_commands"):
        context = command.make_context(name, [], resilient_parsing=True)
        for each in command.list_commands(context):
            options_of(recorder, f"{name} {each}", command.get_command(context, each))
    lines = sorted(
        f"{' '.join([*each.opts, *each.secondary_opts])} {choices(each.type)} "
        f"default={each.default!r} multiple={each.multiple} required={each.required}"
        if each.param_type_name == "option" else f"argument {each.name} {each.nargs}"
        for each in command.params
    )  # fmt: skip
    if recorder.wants(f"options/{name}"):
        recorder.keep(f"options/{name}", "\n".join(lines))


def choices(kind: Any) -> str:
    if hasattr(kind, "choices"):
        return "|".join(map(str, kind.choices))
    return str(kind.name if " object at " in str(kind) else kind)


# ---- comparing ----


def close(before: str, now: str) -> bool:
    """Whether two texts have the same words, and the same numbers up to the order of sums."""
    pairs = zip(NUMBER.findall(before), NUMBER.findall(now), strict=False)
    return NUMBER.sub("#", before) == NUMBER.sub("#", now) and all(
        isclose(*(float(each.replace(",", "")) for each in pair), rel_tol=1e-12) for pair in pairs
    )


def state(before: dict[str, str] | None, now: dict[str, str] | None) -> str:
    if before is None or now is None:
        return NEW if before is None else MISSING
    if before["hash"] == now["hash"]:
        return SAME
    if close(before["text"], now["text"]):
        return CLOSE
    return WORDS if before["numbers"] == now["numbers"] else DIFFERS


def show(name: str, before: dict[str, str] | None, now: dict[str, str] | None) -> None:
    """The two texts of a record as a diff."""
    texts = [(each or {"text": ""})["text"].splitlines() for each in (before, now)]
    heads = f"{name} (before)", f"{name} (now)"
    print("\n".join(difflib.unified_diff(*texts, *heads, lineterm="", n=2)) or f"{name}: same")


def check(before: Records, now: Records, shown: str | None) -> bool:
    """Print the records that differ and the number of equal ones; return whether all are equal."""
    names = sorted(before.keys() | now.keys())
    states = {name: state(before.get(name), now.get(name)) for name in names}
    for name, found in states.items():
        if found != SAME:
            print(f"{name}: {found}")
    for name in names if shown else ():
        if fnmatch.fnmatchcase(name, shown) and (states[name] != SAME or name == shown):
            show(name, before.get(name), now.get(name))
    counts = Counter(states.values())
    print(", ".join(f"{counts[kind]} {kind}" for kind in STATES))
    return counts[SAME] == len(names)


def run() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", metavar="FILE", type=Path)
    action.add_argument("--check", metavar="FILE", type=Path)
    parser.add_argument("--show", metavar="NAME", help="with --check: texts of records, by pattern")
    parser.add_argument("--only", metavar="NAME", default="*", help="records by pattern")
    parser.add_argument("--real", action="store_true", help="FB15k-237 with its models, too")
    options = parser.parse_args()
    kept = json.loads(options.check.read_text()) if options.check else {}
    target = options.record and options.record.resolve()
    place = Path(tempfile.mkdtemp(prefix="baseline-")).resolve()
    home = place / "home"  # a constant name, because some tables name the folder
    try:
        home.mkdir()
        os.chdir(home)
        now = record(home, real=options.real, only=options.only)
    finally:
        os.chdir("/")
        shutil.rmtree(place)
    print(f"{len(now)} records in {time.process_time():.0f} s of CPU", file=sys.stderr)
    if target:
        target.write_text(json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        return
    names = fnmatch.filter(kept, options.only)
    before = {name: kept[name] for name in names if options.real or not name.startswith("real/")}
    sys.exit(not check(before, now, options.show))


if __name__ == "__main__":
    run()
