"""Give every option and argument of every command extreme values.

Whatever a user types, a command must end soon, with a documented exit code. If it fails, it must
say so on standard error, in one sentence of at most 2,000 characters, without control characters,
and leave no file behind. No library may warn. The suite runs this for a few seconds; by hand::

    python tests/helpers/fuzz_options.py                         every option with every value
    python tests/helpers/fuzz_options.py --minutes 30 --seed 1   and as many with several options
    python tests/helpers/fuzz_options.py --calls 20000           until there are so many calls
    python tests/helpers/fuzz_options.py --only "compare power"  commands with this beginning
    python tests/helpers/fuzz_options.py --seed 1 --case 137     one case again

The commands and options are those of click's tree, the calls those of ``golden/calls.txt``. A case
depends only on seed and number.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import fuzz_files
import transcripts

from kgtrec.cli import cli

CALLS = Path(__file__).parents[1] / "golden/calls.txt"
LONGEST = 2_000  # characters of a message
SECONDS = 20  # of a call
CODES = {0, 1, 2}
CODES_OF = {"eval": {*CODES, 4, 7}, "audit": {*CODES, 3}, "gate": {*CODES, 20, 21}}

NUMBERS = (
    *[
        "-1",
        "0",
        "1",
        "2",
        "7",
        "100",
        "2147483647",
        "2147483648",
        "4294967296",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "1e-320",
        "1e-400",
        "1e400",
        "1e308",
        "0.5",
        "0.0",
        "-0.0",
        "0.1e1",
        "1_0",
        "0x10",
        "1e3",
        "²",
        "½",
        "\N{FULLWIDTH DIGIT ONE}",
        "٣",
        "100.0",
        "99.9",
        "95",
        "1e-17",
        "0.9999999999999999",
        "1,2",
        "1-2",
        "1.5.2",
        "1GB",
    ],
    "1 ",
    "9" * 400,
    "9" * 5000,
    "9" * 30 + "GB",
)
TEXTS = (
    *[
        "ü",
        "\ufeff",
        "=1+1",
        "-",
        "--",
        "---",
        ",",
        ",,,",
        "/proc",  # not "/": root may write there
        "//proc",
        ".",
        "..",
        "./",
        "a/b",
        "nowhere/x",
        "/dev/null",
        "/proc/self/mem",
        "~",
        "*",
        "%",
        "%s",
        "{}",
        "{0}",
        "{a}",
        "{label}",
        "${x}",
        "\\",
        "'",
        '"',
        "a:b",
        ":",
        "a=b",
        "=",
        "size=",
        "size=nan",
        "size=1e400,width=1e-320",
        "size=99999999999999999999",
        "tsv:",
        ":g",
        "tsv,htr:",
        "file:///x%00y",
        "file:///x%ff",
        "file:///",
        "file://host/x",
        "file:",
        "http://x",
        "https://x/y",
        "nonsense://x",
        "mailto:x",
        "mrr",
        "micro.mrr",
        "hits@0",
        "hits@-1",
        "P.0",
        "map_cut.²",
        "both.realistic.micro.mrr",
        "p_mrr",
        "group.mrr()",
        "group.mrr(x",
        "nan.nan",
        "train",
        "test",
        "side",
        "relation",
        "all",
        "auto",
        "0/0",
        "1/0",
        "2/1",
        "-1/2",
        "1/18446744073709551616",
        "²/³",
        "0.5,nan",
        "1e400,1",
        "1,",
        ",1",
        "1,1,1",
        "9223372036854775808,1",
        "a,a",
        "g",
        "s.npy",
        "a.parquet",
        "t.run",
        "sheet.tsv",
        "jobs.toml",
        "out",
        "link.npy",
    ],
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "a\nb",
        "\x1b[31mred\x1b[0m",
        "\x07",
        "\x7f",
        "\u202eabc",
        "\u2028",
    ),
    *("\udcff", "\udcff\udcfe.tsv", "e\u0301", "\U0001f600", "hits@" + "9" * 30, "P." + "9" * 30),
    *("x" * 300, "x" * 5000, "a/" * 3000, "x," * 3000, "[" * 3000, "(" * 3000, "1/" + "9" * 5000),
)
VALUES = NUMBERS + TEXTS
ODD = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff\ufdd0-\ufdef]"
)
"""What no message may contain: characters that change a terminal, or are no text."""


def tree(
    command: click.Command | None = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command, with the words that call it."""
    command = command or cli
    yield words, command
    context = click.Context(command)
    if isinstance(command, click.Group):
        names = {
            name: command.get_command(context, name) for name in command.list_commands(context)
        }
    else:
        names = getattr(command, "commands", {})
    for name, below in names.items():
        yield from tree(below, (*words, name))


@functools.cache
def calls() -> dict[tuple[str, ...], list[list[str]]]:
    """By command, the words after it in calls that succeed."""
    known = dict(tree())
    after = CALLS.read_text("utf-8").partition("# Mark")[2]
    by_command: dict[tuple[str, ...], list[list[str]]] = {words: [] for words in known}
    for line, _ in transcripts.parse_blocks(after):
        words = shlex.split(line)[1:]
        size = max(n for n in range(len(words) + 1) if tuple(words[:n]) in known)
        by_command[tuple(words[:size])].append(words[size:])
    return {words: rows or [[]] for words, rows in by_command.items()}


def make_home() -> None:
    """The home of `fuzz_files`, with the files that the calls need."""
    fuzz_files.make_home()
    for command, below in transcripts.parse_blocks(CALLS.read_text("utf-8").partition("# Mark")[0]):
        said = transcripts.run_block(command, below)
        assert "= " not in said.splitlines()[-1:], said
    os.mkdir("fresh")


# -- Cases -------------------------------------------------------------------------------------


def with_option(row: list[str], option: click.Parameter, values: list[str]) -> list[str]:
    """A call with these values of an option, or of an argument, instead of its own."""
    if not isinstance(option, click.Option):
        return [*row, *values]
    row = list(row)
    for name in option.opts:
        if name in row:
            at = row.index(name)
            del row[at : at + 1 + option.nargs * (not option.is_flag)]
    return [*row, option.opts[-1], *([] if option.is_flag else values)]


def single_cases(only: str) -> list[list[str]]:
    """Every option and argument with every value."""
    cases = []
    for words, command in tree():
        if not " ".join(words).startswith(only):
            continue
        for option in command.params:
            is_flag = isinstance(option, click.Option) and (option.is_flag or option.count)
            for row in calls()[words]:
                for value in VALUES[:1] if is_flag else VALUES:
                    values = [value] * max(option.nargs, 1)
                    cases.append([*words, *with_option(row, option, values)])
                    if not isinstance(option, click.Option):  # instead of the call's arguments
                        cases.append([*words, value])
    return cases


def random_case(rng: random.Random, only: str) -> list[str]:
    """A call of a command with a few odd options."""
    chosen = [pair for pair in tree() if " ".join(pair[0]).startswith(only) and pair[1].params]
    words, command = rng.choice(chosen)
    row = list(rng.choice(calls()[words]))
    for _ in range(rng.choice((1, 2, 2, 3, 5))):
        option = rng.choice(command.params)
        values = [rng.choice(VALUES) for _ in range(max(option.nargs, 1))]
        kind = option.type
        if isinstance(kind, click.Choice) and rng.random() < 0.7:
            values = [rng.choice([*kind.choices])]
        elif isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
            values = [rng.choice(NUMBERS) for _ in values]
        row = with_option(row, option, values)
    if row and rng.random() < 0.05:
        row[rng.randrange(len(row))] = rng.choice(VALUES)
    return [*words, *row]


# -- Running -----------------------------------------------------------------------------------


class TooLongError(BaseException):
    """A call took longer than `SECONDS`."""


def _stop(*_: object) -> None:
    raise TooLongError


def fault_of(args: list[str]) -> str:
    """Run a command in this process and folder; return its fault, or ""."""
    serves = args[:2] == ["judge", "serve"]
    before = set(content(os.getcwd()))
    # A page is served until somebody ends it.
    signal.signal(signal.SIGALRM, signal.default_int_handler if serves else _stop)
    signal.setitimer(signal.ITIMER_REAL, 0.4 if serves else SECONDS, 0.4 if serves else 0)
    try:
        ended = transcripts.run_command(*args)
    except TooLongError:
        return f"more than {SECONDS} seconds"
    except BaseException as error:
        return "".join(traceback.format_exception(error)[-3:])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    new = sorted(set(content(os.getcwd())) - before)
    return fault_of_texts(args, ended) or fault_of_files(args, ended.code, new)


ALARMS = re.compile(
    r"Traceback|object at 0x|\w(Error|Exception|Warning)\b|encountered in|out of memory"
    r"|cannot convert|NoneType"
)
"""What only an exception or a warning of a library says."""


def fault_of_texts(args: list[str], ended: transcripts.Outcome) -> str:
    """The fault of a command's exit code and of what it printed, or ""."""
    code, out, err = ended
    printed = f"{err[-LONGEST:]}\n{out[-LONGEST:]}"
    serves = args[:2] == ["judge", "serve"] and code == 130
    if code not in CODES_OF.get(args[0] if args else "", CODES) and not serves:
        return f"exit code {code}: {printed}"
    if alarm := ALARMS.search(without_words(err, args)) or re.search("Traceback", out):
        return f"{alarm[0]}: {printed}"
    if odd := ODD.search(err) or ODD.search(out):
        return f"the character {odd[0]!r} is printed: {printed!r}"
    messages = re.split(r"^kgtrec: ", err, flags=re.MULTILINE)
    if (longest := max(map(len, messages))) > LONGEST + 1:
        return f"a message of {longest} characters: {err[:LONGEST]}"
    # These print the text of --help, and trec_eval's version, on standard error.
    helps = not args or set(args) <= {"-q", "--quiet"} or (args[0] == "eval" and not code)
    if messages[0] and not helps:
        return f"not a message of kgtrec: {messages[0]}"
    if code and not serves and not helps and not is_result(args, code):
        return fault_of_message(messages[-1])
    return ""


def without_words(text: str, args: list[str]) -> str:
    """A text without the words of the call that it repeats."""
    for word in args:
        text = text.replace(word, "") if len(word) > 4 else text
    return text


def is_result(args: list[str], code: int) -> bool:
    """Whether an exit code tells a result: impossible numbers, or a gate that does not pass."""
    return (args[0], code) in {("audit", 3), ("gate", 20), ("gate", 21)}


def fault_of_message(message: str) -> str:
    """The fault of the message of a call that failed, or "".

    It is one line. A list has a head that ends with a colon, and two spaces before each line.
    """
    head, *more = message.rstrip("\n").partition("\nTry '")[0].splitlines() or [""]
    if len(head.split()) < 3:
        return f"no sentence: {message!r}"
    if more and not (head.endswith(":") and all(line.startswith("  ") for line in more)):
        return f"more than one line: {message}"
    return ""


def fault_of_files(args: list[str], code: int, new: list[str]) -> str:
    """The fault of the files that a call has left behind, or ""."""
    if unfinished := [path for path in new if re.search(r"\.tmp$|\.kgtrec-", path)]:
        return f"left half-written: {unfinished}"
    # Finished jobs of a batch are kept, and what all jobs of an array share: a folder, questions.
    shared = args[0] == "batch" or "--shard" in args
    if code in (1, 2) and new and not shared:
        return f"failed, and left {new}"
    return ""


def content(folder: str) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file below a folder."""
    files = {}
    for path in Path(folder).rglob("*"):
        about = path.lstat()
        files[str(path)] = (
            about.st_size if path.is_file() else 0,
            about.st_mtime_ns * path.is_file(),
        )
    return files


class Home:
    """A copy of the sound home, renewed after each call that changed its files."""

    def __init__(self, sound: str, copy: str) -> None:
        self.sound, self.copy = sound, copy
        self.files: dict[str, tuple[int, int]] = {}
        self.renew()

    def renew(self) -> None:
        os.chdir(self.sound)
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.sound, self.copy, symlinks=True)
        os.chdir(self.copy)
        self.files = content(self.copy)

    def clean(self) -> None:
        """Remove new files; renew the home if an old one has changed."""
        now = content(self.copy)
        if any(now.get(path) != about for path, about in self.files.items()):
            return self.renew()
        for path in sorted(set(now) - set(self.files)):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return None


def shown(args: list[str]) -> str:
    """A call in short, for people."""
    return "kgtrec " + " ".join(
        ascii(word) if len(word) < 80 else f"{word[:20]!a}x{len(word)}" for word in args
    )


def run(cases: Iterator[tuple[str, list[str]]], home: Home, until: float) -> tuple[int, list[str]]:
    """Run cases until a time; return their number and their faults."""
    ran, faults = 0, []
    for name, args in cases:
        if time.time() > until:
            break
        ran += 1
        started = time.time()
        fault = fault_of(args)
        if (took := time.time() - started) > 3 and args[:1] != ["demo"]:
            print(f"slow: case {name}, {took:.1f} s: {shown(args)}", flush=True)
        home.clean()
        if fault:
            faults.append(f"case {name}: {shown(args)}\n  {fault}")
            print(f"\n{ascii(faults[-1]) if ODD.search(faults[-1]) else faults[-1]}", flush=True)
    return ran, faults


def all_cases(seed: int, only: str, several: bool) -> Iterator[tuple[str, list[str]]]:
    """Every option with every value in a random order.

    With `several`, a random call with several options after each, and endless ones at the end.
    """
    singles = single_cases(only)
    random.Random(seed).shuffle(singles)
    left = enumerate(singles)
    for number in itertools.count():
        single = next(left, None)
        if single is not None:
            yield f"single {single[0]}", single[1]
        elif not several:
            return
        if several:
            yield str(number), random_case(random.Random(f"{seed} {number}"), only)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Let calls use at most the memory that `fuzz_files` allows."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (fuzz_files.MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--case", type=int, help="a random case")
    parser.add_argument("--single", type=int, help="an option with a value")
    parser.add_argument("--skip", type=int, default=0, help="cases left out at the beginning")
    parser.add_argument("--only", default="", help="commands whose words begin with this")
    options = parser.parse_args()
    several = bool(options.minutes or options.calls)
    cases = all_cases(options.seed, options.only, several)
    if options.case is not None:
        args = random_case(random.Random(f"{options.seed} {options.case}"), options.only)
        cases = iter([(str(options.case), args)])
    if options.single is not None:
        cases = (case for case in cases if case[0] == f"single {options.single}")
    end = options.skip + options.calls if options.calls else None
    cases = itertools.islice(cases, options.skip, end)
    until = time.time() + 60 * options.minutes if options.minutes else float("inf")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.mkdir(sound := f"{folder}/sound")
        os.chdir(sound)
        make_home()
        warnings.simplefilter("ignore")
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # it maps terabytes
            stack.enter_context(limited())
        ran, faults = run(cases, Home(sound, f"{folder}/copy"), until)
    print(f"{ran} calls, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
