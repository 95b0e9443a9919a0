"""Expected output of ``kgtrec eval`` for the cases of ``eval/cases.txt``, computed slowly.

    python tests/golden/make.py           write eval/NAME.out of every case
    python tests/golden/make.py --check   name the files that differ from the present ones

Plain Python from the definitions in tests/helpers/trec_oracle.py and the output format of
trec_eval. It shares no code with the package. tests/cli/test_eval.py compares the golden files.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from trec_oracle import FIFTHS, TENTHS, UNJUDGED, lists, measures, read

HERE = Path(__file__).parent / "eval"
DEEP = [5, 10, 15, 20, 30, 100, 200, 500, 1000]
DEFAULTS = {
    **dict.fromkeys(("P", "recall", "ndcg_cut", "map_cut", "relative_P"), DEEP),
    "iprec_at_recall": TENTHS,
    "Rprec_mult": FIFTHS,
    "success": [1, 5, 10],
    "unj": [5, 10, 20],
}


def words(text: str) -> list[str]:
    return text.split()


OFFICIAL = words(
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
)
ORDER = OFFICIAL + words(
    "relstring recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G dcg ideal_dcg ndcg "
    "ndcg_rel Rndcg ndcg_cut map_cut relative_P success set_P set_relative_P set_recall set_map "
    "set_F num_nonrel_judged_ret rbp rbp_resid unj"
)
NICKNAMES = {
    "official": OFFICIAL,
    "set": OFFICIAL[:5] + words("utility set_P set_relative_P set_recall set_map set_F"),
    "all_trec": [name for name in ORDER if name not in ("dcg", "ideal_dcg")],
}
NEW_IN_10 = ("rbp", "rbp_resid", "unj")
POINTS = ("iprec_at_recall", "Rprec_mult")
FLOOR = 1e-5
Column = tuple[str, str, float | None]


def options_of(words: list[str]) -> argparse.Namespace:
    """The flags and files of a call."""
    parser = argparse.ArgumentParser()
    for letter in "qncJ":
        parser.add_argument(f"-{letter}", action="store_true")
    for letter, name, default in (("l", "level", 1), ("M", "most", None), ("N", "collection", 0)):
        parser.add_argument(f"-{letter}", dest=name, type=int, default=default)
    parser.add_argument("-m", dest="measures", action="append", default=[])
    parser.add_argument("-Z", dest="reference")
    parser.add_argument("--compat", type=int, default=10)
    parser.add_argument("files", nargs="*")
    return parser.parse_intermixed_args(words)


def columns(options: argparse.Namespace) -> list[Column]:
    """Measure, printed name and cutoff of every column, in trec_eval's order."""
    parameters_of: dict[str, str] = {}
    for measure in options.measures or ["official"]:
        family, _, parameters = measure.partition(".")
        for name in NICKNAMES.get(family, [family]):
            if family in NICKNAMES and options.compat == 9 and name in NEW_IN_10:
                continue
            parameters_of[name] = parameters_of.get(name) or parameters
    rows: list[Column] = []
    for family in ORDER:
        typed = parameters_of.get(family)
        if family in DEFAULTS and typed is not None:
            for cut in sorted(map(float, typed.split(","))) if typed else DEFAULTS[family]:
                name = f"{family}_{cut:.2f}" if family in POINTS else f"{family}_{int(cut)}"
                rows.append((family, name, cut))
        elif typed is not None:
            rows.append((family, f"{family}_{typed}" if typed else family, None))
    return rows


Row = tuple[bytes, dict[str, object], bool]


def queries_of(options: argparse.Namespace, run: Path) -> tuple[list[Row], list[int], bytes]:
    """Queries in byte order: values, whether the run has it; all judgements; the run's tag."""
    qrels, _ = read((HERE / options.files[0]).read_bytes(), False)
    retrieved, tag = read(run.read_bytes(), True)
    wanted = columns(options)
    cuts = {int(cut) for family, _, cut in wanted if cut is not None and family not in POINTS}
    points, multiples = ([c for f, _, c in wanted if f == family] for family in POINTS)
    typed = [
        name
        for family, name, _ in wanted
        if (name != family and family not in DEFAULTS) or family == "relstring"
    ]
    complete, single = options.c, options.compat == 9
    made = lists(qrels, retrieved, absent=complete, single_precision=single)
    rows: list[Row] = []
    for query, (relevance, _, _, judged) in made.items():
        shown = [None if r == UNJUDGED else r for r in relevance[: options.most]]
        if options.J:
            shown = [r for r in shown if r is not None and r >= 0]
        values = measures(
            shown,
            judged,
            options.level,
            options.compat,
            options.collection,
            cuts=sorted(cuts),
            points=points,
            multiples=multiples,
            typed=typed,
        )
        rows.append((query, values, query in retrieved))
    return rows, [grade for grades in qrels.values() for grade in grades.values()], tag


def standard(options: argparse.Namespace, query: bytes, name: str, value: float) -> float:
    for text in (HERE / options.reference).read_bytes().splitlines():
        where, what, mean, deviation = text.split()
        if (where, what.decode()) == (query, name):
            if float(deviation):
                return (value - float(mean)) / float(deviation)
            return 0.0 if value == float(mean) else -1e6
    return -1e6


def line(options: argparse.Namespace, family: str, name: str, query: bytes, value: object) -> bytes:
    if family in ("runid", "relstring"):
        raw = value if isinstance(value, bytes) else str(value).encode()
        text = raw if family == "runid" else b"'" + raw + b"'"
        return b"%-22s\t%s\t%s\n" % (name.encode(), query, text)
    if options.reference:
        return b"Z%-22s\t%s\t%6.4f\n" % (name.encode(), query, value)
    if family.startswith("num_"):
        return b"%-22s\t%s\t%d\n" % (name.encode(), query, value)
    return b"%-22s\t%s\t%6.4f\n" % (name.encode(), query, value)


def block(options: argparse.Namespace, run: Path) -> bytes:
    """What trec_eval prints for one run."""
    rows, grades, tag = queries_of(options, run)
    # 9.0.8 under -c prints and sums the answered queries only, but divides by all of them.
    shown = [row for row in rows if row[2] or options.compat == 10]
    text = b""
    sums: dict[str, float] = {}
    for query, values, _ in shown:
        for family, name, _ in columns(options):
            if family == "runid":
                continue
            value = values[name]
            if options.reference and family != "relstring":
                value = standard(options, query, name, value)
            if family != "relstring":
                sums[name] = sums.get(name, 0) + value
            if options.q and family not in ("num_q", "gm_map", "gm_bpref"):
                text += line(options, family, name, query, value)
    if options.n:
        return text
    for family, name, _ in columns(options):
        if family == "relstring":
            continue
        if family == "runid":
            value = tag
        elif family == "num_q":
            value = len(rows)
        elif family == "num_rel" and options.c:
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
    options = options_of(shlex.split(arguments))
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
