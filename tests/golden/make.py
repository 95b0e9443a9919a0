"""Expected output of ``kgtrec eval`` for the cases of ``eval/cases.txt``, computed slowly.

    python tests/golden/make.py           write eval/NAME.out of every case
    python tests/golden/make.py --check   name the files that differ from the present ones

Plain Python from the published definitions of the measures (slow_measures.py) and the output format
of trec_eval. It shares no code with the package. tests/cli/test_eval.py compares its
measures with those that pytrec_eval has.
"""

from __future__ import annotations

import ctypes
import math
import shlex
import sys
from pathlib import Path

from slow_measures import (
    AT,
    DEFAULTS,
    FLOOR,
    NEW_IN_10,
    NICKNAMES,
    NOT_IN_POOL,
    NOT_JUDGED,
    ORDER,
    PLAIN,
    WITH,
    Query,
)

HERE = Path(__file__).parent / "eval"


class Options:
    """The flags of a call."""

    def __init__(self, words: list[str]) -> None:
        self.measures: list[str] = []
        self.flags = ""
        self.level, self.collection, self.compat = 1, 0, 10
        self.most: int | None = None
        self.reference = ""
        self.files: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--compat":
                self.compat = int(words.pop(0))
                continue
            if not word.startswith("-"):
                self.files.append(word)
                continue
            for place, letter in enumerate(word[1:], 1):
                if letter in "qncJ":
                    self.flags += letter
                    continue
                self.take(letter, word[place + 1 :] or words.pop(0))
                break

    def take(self, letter: str, value: str) -> None:
        if letter == "m":
            self.measures.append(value)
        elif letter == "l":
            self.level = int(value)
        elif letter == "M":
            self.most = int(value)
        elif letter == "N":
            self.collection = int(value)
        elif letter == "Z":
            self.reference = value
        else:
            raise SystemExit(f"unknown flag -{letter}")


def columns(options: Options) -> list[tuple[str, str, object]]:
    """Family, printed name and function of every column, in trec_eval's order."""
    parameters_of: dict[str, str] = {}
    for measure in options.measures or ["official"]:
        family, _, parameters = measure.partition(".")
        for name in NICKNAMES.get(family, [family]):
            if family in NICKNAMES and options.compat == 9 and name in NEW_IN_10:
                continue
            parameters_of[name] = parameters_of.get(name) or parameters
    rows = []
    for family in ORDER:
        if family not in parameters_of:
            continue
        texts = parameters_of[family].split(",") if parameters_of[family] else []
        if family in AT:
            cuts = sorted(map(float, texts)) or DEFAULTS[family]
            for cut in cuts:
                whole = family not in ("iprec_at_recall", "Rprec_mult")
                name = f"{family}_{int(cut)}" if whole else f"{family}_{cut:.2f}"
                cut = int(cut) if whole else cut
                rows.append((family, name, lambda q, f=AT[family], cut=cut: f(q, cut)))
        elif texts:
            values = [float(text) for text in texts]
            name = f"{family}_{parameters_of[family]}"
            rows.append((family, name, lambda q, f=WITH[family], v=values: f(q, *v)))
        else:
            rows.append((family, family, PLAIN.get(family)))
    return rows


# -- Files -------------------------------------------------------------------------------------


def fields(path: Path) -> list[list[bytes]]:
    lines = (line for line in path.read_bytes().split(b"\n") if not line.startswith(b"#"))
    return [parts for line in lines if (parts := line.split())]


def single(score: float) -> float:
    return ctypes.c_float(score).value


def queries_of(options: Options, run: Path) -> tuple[list[tuple[bytes, Query, bool]], list[int]]:
    """Queries in byte order, whether the run has each, and all judgements of the qrels."""
    judged: dict[bytes, dict[bytes, int]] = {}
    for query, _, document, grade in fields(HERE / options.files[0]):
        judged.setdefault(query, {})[document] = int(grade)
    retrieved: dict[bytes, list[tuple[float, bytes]]] = {}
    for query, _, document, _, score, _ in fields(run):
        value = float(score) if options.compat == 10 else single(float(score))
        retrieved.setdefault(query, []).append((value, document))
    queries = []
    for query in sorted(judged):
        if query not in retrieved and "c" not in options.flags:
            continue
        grades = judged[query]
        order = sorted(retrieved.get(query, []), reverse=True)[: options.most]
        ranked = [worth(grades.get(name)) for _, name in order]
        if "J" in options.flags:
            ranked = [grade for grade in ranked if grade >= 0]
        queries.append((query, Query(ranked, [*grades.values()], options), query in retrieved))
    return queries, [grade for grades in judged.values() for grade in grades.values()]


def worth(grade: int | None) -> int:
    if grade is None:
        return NOT_IN_POOL
    return grade if grade >= 0 else NOT_JUDGED


def standard(options: Options, query: bytes, name: str, value: float) -> float:
    for where, what, mean, deviation in fields(HERE / options.reference):
        if (where, what.decode()) == (query, name):
            if float(deviation):
                return (value - float(mean)) / float(deviation)
            return 0.0 if value == float(mean) else -1e6
    return -1e6


# -- Output ------------------------------------------------------------------------------------


def line(options: Options, family: str, name: str, query: bytes, value: object) -> bytes:
    if family in ("runid", "relstring"):
        raw = value if isinstance(value, bytes) else str(value).encode()
        text = raw if family == "runid" else b"'" + raw + b"'"
        return b"%-22s\t%s\t%s\n" % (name.encode(), query, text)
    if options.reference:
        return b"Z%-22s\t%s\t%6.4f\n" % (name.encode(), query, value)
    if family.startswith("num_"):
        return b"%-22s\t%s\t%d\n" % (name.encode(), query, value)
    return b"%-22s\t%s\t%6.4f\n" % (name.encode(), query, value)


def block(options: Options, run: Path) -> bytes:
    """What trec_eval prints for one run."""
    rows, grades = queries_of(options, run)
    # 9.0.8 under -c prints and sums the answered queries only, but divides by all of them.
    shown = [row for row in rows if row[2] or options.compat == 10]
    text = b""
    sums: dict[str, float] = {}
    for query, q, _ in shown:
        for family, name, measure in columns(options):
            if measure is None:
                continue
            value = measure(q)
            if options.reference and family != "relstring":
                value = standard(options, query, name, value)
            if family != "relstring":
                sums[name] = sums.get(name, 0) + value
            if "q" in options.flags and family not in ("num_q", "gm_map", "gm_bpref"):
                text += line(options, family, name, query, value)
    if "n" in options.flags:
        return text
    for family, name, _ in columns(options):
        if family == "runid":
            value = fields(run)[-1][5]
        elif family == "relstring":
            continue
        elif family == "num_q":
            value = len(rows)
        elif family == "num_rel" and "c" in options.flags:
            value = sum(grade > 0 for grade in grades)  # for any level
        elif family.startswith("num_"):
            value = sums[name]
        elif family.startswith("gm_"):
            value = math.exp((sums[name] + (len(rows) - len(shown)) * math.log(FLOOR)) / len(rows))
        else:
            value = sums[name] / len(rows)
        text += line(options, family, name, b"all", value)
    return text


def expected(arguments: str) -> bytes:
    """What a case prints."""
    options = Options(shlex.split(arguments))
    runs = options.files[1:]
    if len(runs) == 1:
        return block(options, HERE / runs[0])
    return b"".join(
        b"%-22s\tall\t%s\n" % (b"run_file", run.encode()) + block(options, HERE / run)
        for run in runs
    )


def cases() -> dict[str, str]:
    """Name of every case and its arguments."""
    lines = (HERE / "cases.txt").read_text().splitlines()
    pairs = (entry.split(None, 1) for entry in lines if entry and not entry.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs}


def main() -> None:
    differing = []
    for name, arguments in cases().items():
        path, text = HERE / f"{name}.out", expected(arguments)
        if "--check" not in sys.argv:
            path.write_bytes(text)
        elif path.read_bytes() != text:
            differing.append(name)
    if differing:
        raise SystemExit(f"differ: {' '.join(differing)}")


if __name__ == "__main__":
    main()
