"""T1 to T3 and T5: trec_eval measures of run files, whole processes from files to printed numbers;
T4: calls in one process, on dicts and arrays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from data import N_ENTITIES, SEED
from rows import Row, Settings, at_least, at_most, not_run, require
from timing import Contestant, compete

import kgtrec

__all__ = ["BARS"]

MEASURES = ("map_cut.20", "ndcg_cut.20")
DEPTH = 1_000
T1_QUERIES = 2_000
FLAGS = [part for measure in MEASURES for part in ("-m", measure)]
KGTREC = ("-c", "from kgtrec.cli import run; run()", "eval", *FLAGS)
WATCHED = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from kgtrec.cli import main
from memory import peak_bytes
try:
    main()
finally:
    print(peak_bytes(), file=sys.stderr)
"""
# The example of pytrec_eval's documentation, and nothing else.
PYTREC_EVAL = """
import sys, time
import pytrec_eval
with open(sys.argv[1]) as file: qrels = pytrec_eval.parse_qrel(file)
with open(sys.argv[2]) as file: run = pytrec_eval.parse_run(file)
started = time.perf_counter()
evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map_cut.20", "ndcg_cut.20"})
values = evaluator.evaluate(run).values()
for name in ("map_cut_20", "ndcg_cut_20"):
    print(name, "all", f"{sum(v[name] for v in values) / len(values):.4f}")
print("evaluate", "seconds", time.perf_counter() - started)
"""

GROUPED = {
    "map": ["-m", "map"],
    "one group": ["-R", "qrels_prefs"],
    "overlapping": ["-R", "qrels_prefs"],
    "partial": ["-R", "prefs"],
    "assessors": ["-R", "qrels_jg"],
}

RANX = """
import sys
from ranx import Qrels, Run, evaluate
qrels, run = (kind.from_file(path, kind="trec") for kind, path in zip((Qrels, Run), sys.argv[1:]))
for name, value in evaluate(qrels, run, ["map@20", "ndcg@20"]).items():
    print(name, f"{value:.4f}")
"""


def _write(folder: Path, n_queries: int) -> tuple[Path, Path]:
    """Write a run with distinct scores, and qrels with two documents per query."""
    rng = np.random.default_rng(SEED)
    # A window of a random permutation gives distinct documents per query, fast for millions.
    shuffled = np.tile(rng.permutation(N_ENTITIES).astype(np.int32), 2)
    start = rng.integers(0, N_ENTITIES, n_queries)
    documents = shuffled[start[:, None] + np.arange(DEPTH)]
    places = np.column_stack([rng.integers(0, 30, n_queries), rng.integers(30, DEPTH, n_queries)])
    answers = np.take_along_axis(documents, places, axis=1)
    head = np.repeat(np.arange(n_queries), 2)
    graph = kgtrec.Graph.from_arrays(
        test=np.column_stack([head % N_ENTITIES, head // N_ENTITIES, answers.ravel()]),
        entities=[f"/m/{i:06x}" for i in range(N_ENTITIES)],
    )
    questions = graph.questions("test", sides="tail")
    steps = rng.integers(1, 1 << 12, (n_queries, DEPTH))
    scores = (np.cumsum(steps, axis=1)[:, ::-1] / 1024).astype(np.float32)
    offsets = np.arange(n_queries + 1, dtype=np.int64) * DEPTH
    run = kgtrec.Run(
        query_ids=questions.ids,
        offsets=offsets,
        documents=documents.ravel(),
        scores=scores.ravel(),
        docnos=graph.entities.docnos,
        depth=DEPTH,
    )
    qrels_path, run_path = folder / "qrels.txt", folder / "run.txt"
    run.write(run_path)
    kgtrec.write_qrels(questions, qrels_path)
    return qrels_path, run_path


def _output(command: Sequence[str], folder: Path) -> str:
    """What a program prints. Python compiles modules once, into the folder, as for any user."""
    cache = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tempfile.gettempdir(),
        env=os.environ | cache,
    )
    require(done.returncode == 0, f"{command[0]} failed: {done.stderr[-500:]}")
    return done.stdout


def _values(output: str) -> dict[str, float]:
    """The numbers of a summary by name: the first and the last field of each line."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    return {line[0]: float(line[-1]) for line in lines}


def _ours(files: tuple[Path, Path]) -> list[str]:
    return [sys.executable, *KGTREC, *map(str, files)]


def _theirs(files: tuple[Path, Path]) -> list[str]:
    return [sys.executable, "-c", PYTREC_EVAL, *map(str, files)]


def _ir_measures() -> str | None:
    """The command of ir_measures beside this interpreter or on PATH, if it is installed."""
    if find_spec("ir_measures") is None:
        return None
    beside = Path(sys.executable).with_name("ir_measures")
    return str(beside) if beside.exists() else shutil.which("ir_measures")


def _missing(name: str) -> str:
    if name == "trec_eval":
        return "no such program on PATH"
    return "too slow to start for --quick" if find_spec(name) else "install .[bench]"


def _t1(settings: Settings) -> list[Row]:
    n_queries = T1_QUERIES // 20 if settings.quick else T1_QUERIES
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder), n_queries)
        return _t1_rows(files, n_queries, settings.quick)


def _t1_rows(files: tuple[Path, Path], n_queries: int, quick: bool) -> list[Row]:
    what = f"eval of {n_queries:,} x {DEPTH:,} lines against "
    outputs: dict[str, str] = {}
    commands = {"ours": _ours(files), "pytrec_eval": _theirs(files)}
    tool = _ir_measures()
    if tool is not None:
        commands["ir_measures"] = [tool, *map(str, files), "AP@20 nDCG@20"]
    if find_spec("ranx") is not None and not quick:  # it compiles for some seconds at every start
        commands["ranx"] = [sys.executable, "-c", RANX, *map(str, files)]
    program = shutil.which("trec_eval")
    if program is not None:
        commands["trec_eval"] = [program, *FLAGS, *map(str, files)]
    folder = files[0].parent
    contestants = {
        name: Contestant(lambda _, n=name, c=command: outputs.update({n: _output(c, folder)}))
        for name, command in commands.items()
    }
    timings = compete(contestants, rounds=3)
    ours, theirs = _values(outputs["ours"]), _values(outputs["pytrec_eval"])
    evaluating = theirs.pop("evaluate")
    require(ours == theirs, f"ours {ours}, pytrec_eval's {theirs}")

    def row(what: str, name: str, bar: float, **more: Any) -> Row:
        return at_least(
            "T1",
            what,
            f"{timings.seconds('ours'):.2f} s",
            f"{timings.seconds(name):.2f} s",
            timings.ratio(name, "ours"),
            bar,
            **timings.detail(name, "ours"),
            **more,
        )

    alone = Row(
        "T1",
        what + "its evaluate() alone",
        f"{timings.seconds('ours'):.2f} s",
        f"{evaluating:.2f} s",
        evaluating / timings.seconds("ours"),
        "none",
        None,
        {"note": "our whole process, files to numbers, against dicts that are there already"},
    )
    rows = [row(what + "pytrec_eval, with its parsers", "pytrec_eval", 8), alone]
    for name, bar in (("ir_measures", 12), ("ranx", 0), ("trec_eval", 0)):
        if name not in commands:
            rows.append(not_run("T1", what + name, _missing(name)))
            continue
        values = list(_values(outputs[name]).values())
        require(np.allclose(sorted(values), sorted(ours.values()), atol=1e-4), f"{name}: {values}")
        library_row = row(what + name, name, bar)
        rows.append(library_row if bar else replace(library_row, bar="none", met=None))
    return rows


# ---- T2 ----


def _peak_of(files: tuple[Path, Path]) -> int:
    """Largest resident size of our process in bytes, as it reports."""
    command = [sys.executable, "-c", WATCHED, *_ours(files)[3:]]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir()
    )
    require(done.returncode == 0, f"kgtrec eval failed: {done.stderr[-500:]}")
    return int(done.stderr.split()[-1])


def _t2(settings: Settings) -> list[Row]:
    small, large = (50, 500) if settings.quick else (T1_QUERIES, 10 * T1_QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("small", "large")]
        for place in places:
            place.mkdir()
        few, many = (_write(place, n) for place, n in zip(places, (small, large), strict=True))
        contestants = {
            "many": Contestant(lambda _: _output(_ours(many), places[0])),
            "few": Contestant(lambda _: _output(_ours(few), places[0])),
        }
        timings = compete(contestants, rounds=1 if settings.quick else 3, warm_ups=0)
        size, peak = many[1].stat().st_size, _peak_of(many)
    lines = f"{large * DEPTH:,} lines"
    return [
        at_most(
            "T2",
            f"eval of {lines}: time, against a tenth of them",
            f"{timings.seconds('many'):.1f} s",
            f"{timings.seconds('few'):.2f} s",
            timings.ratio("many", "few"),
            11,
            **timings.detail("many", "few"),
        ),
        at_most(
            "T2",
            f"eval of {lines}: peak memory, against the file",
            f"{peak / 1e6:,.0f} MB",
            f"{size / 1e6:,.0f} MB",
            peak / size,
            1.5,
        ),
    ]


def _write_groups(folder: Path, n_queries: int) -> dict[str, tuple[Path, Path]]:
    """Write judgements of 100 documents per query in every format, and a run with half of them."""
    rng = np.random.default_rng(SEED)
    run = folder / "run"
    lines: dict[str, list[str]] = {name: [] for name in GROUPED}
    with open(run, "w") as file:
        for query in range(n_queries):
            documents = [f"e{d:06d}" for d in rng.choice(N_ENTITIES, 150, replace=False)]
            order = np.concatenate([rng.permutation(50), np.arange(100, 150)])
            file.writelines(
                f"q{query} Q0 {documents[d]} 0 {100 - i} run\n" for i, d in enumerate(order)
            )
            for document, level in zip(documents[:100], rng.integers(0, 4, 100), strict=True):
                start = f"q{query} g"
                for name in ("map", "one group", "assessors"):
                    lines[name].append(f"{start} {document} {level}\n")
                lines["partial"].append(f"{start} s{level % 2} {document} {level + 1}\n")
            for group in range(5):
                for d in rng.choice(40, 20, replace=False):
                    level = rng.integers(0, 4)
                    lines["overlapping"].append(f"q{query} g{group} {documents[d]} {level}\n")
    for name, own in lines.items():
        (folder / name).write_text("".join(own))
    return {name: (folder / name, run) for name in lines}


def _t3(settings: Settings) -> list[Row]:
    n_queries = 50 if settings.quick else 1_000
    start = [sys.executable, "-c", "from kgtrec.cli import run; run()", "eval"]
    with tempfile.TemporaryDirectory() as folder:
        files = _write_groups(Path(folder), n_queries)
        commands = {
            name: [*start, *flags, *map(str, files[name])] for name, flags in GROUPED.items()
        }
        contestants = {
            name: Contestant(lambda _, command=command: _output(command, Path(folder)))
            for name, command in commands.items()
        }
        timings = compete(contestants, rounds=1 if settings.quick else 3, warm_ups=0)
    return [
        at_most(
            "T3",
            f"{n_queries * 100:,} judgements, {' '.join(GROUPED[name][:2])}, {name}",
            f"{timings.seconds(name):.2f} s",
            f"{timings.seconds('map'):.2f} s",
            timings.ratio(name, "map"),
            5,
            **timings.detail(name, "map"),
        )
        for name in GROUPED
        if name != "map"
    ]


# ---- T4 ----


def _in_memory(n_queries: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Qrels and a run of 100 documents per query, and the run's scores as an array."""
    rng = np.random.default_rng(SEED)
    scores = rng.random((n_queries, 100))
    queries = [f"q{i:05d}" for i in range(n_queries)]
    run = {
        query: {str(i): score for i, score in enumerate(row)}
        for query, row in zip(queries, scores.tolist(), strict=True)
    }
    judged = rng.integers(0, 100, (n_queries, 5)).tolist()
    levels = rng.integers(0, 3, (n_queries, 5)).tolist()
    qrels = {
        query: {str(d): level for d, level in zip(*pair, strict=True)}
        for query, *pair in zip(queries, judged, levels, strict=True)
    }
    return qrels, run, scores


def _t4(settings: Settings) -> list[Row]:
    sizes = (1, 10, 100) if settings.quick else (1, 10, 100, 1_000, 7_000)
    rounds = 3 if settings.quick else 9
    rows = [row for size in sizes for row in _t4_rows(size, rounds)]
    return rows + [row for size in (100, 1_000) for row in _t4_ties(size, rounds)]


def _t4_rows(n_queries: int, rounds: int) -> list[Row]:
    import pytrec_eval

    from kgtrec import trec

    qrels, run, scores = _in_memory(n_queries)
    ours = trec.Evaluator(qrels, MEASURES)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {*MEASURES})
    given, due = ours.evaluate(run), theirs.evaluate(run)
    require(given == due == ours.evaluate_scores(scores), "values differ from pytrec_eval's")
    calls = range(max(1, 300 // n_queries))
    timings = compete(
        {
            "dicts": Contestant(lambda _: [ours.evaluate(run) for _ in calls]),
            "arrays": Contestant(lambda _: [ours.evaluate_scores(scores) for _ in calls]),
            "pytrec_eval": Contestant(lambda _: [theirs.evaluate(run) for _ in calls]),
        },
        rounds=rounds,
    )
    rows = []
    for name, bar in (("dicts", 1.0), ("arrays", 0.2)):
        detail = timings.detail(name, "pytrec_eval")
        each = {n: 1e6 * detail["seconds_cpu"][n] / len(calls) for n in (name, "pytrec_eval")}
        rows.append(
            at_most(
                "T4",
                f"Evaluator, {name}, {n_queries:,} queries x 100: CPU against pytrec_eval",
                f"{each[name]:,.0f} us",
                f"{each['pytrec_eval']:,.0f} us",
                detail["ratio_cpu"],
                bar,
                **detail,
            )
        )
    return rows


def _t4_ties(n_queries: int, rounds: int) -> list[Row]:
    """Values, and what they are over all orders of ties; scores have two decimals."""
    import trm

    from kgtrec import trec

    qrels, run, _ = _in_memory(n_queries)
    run = {q: {d: round(score, 2) for d, score in row.items()} for q, row in run.items()}
    scores = [[*row.values()] for row in run.values()]
    relevant = [[qrels[q].get(d, 0) > 0 for d in row] for q, row in run.items()]
    ours = trec.Evaluator(qrels, ["map_cut.20", "recip_rank_cut.20"], ties="name")
    theirs = partial(trm.evaluate, scores, relevant, ["map", "mrr"], [20])
    got, due = ours.evaluate_ties(run), theirs().per_query
    for name, key in (("map", "map_cut_20"), ("mrr", "recip_rank_cut_20")):
        ends = [(one.expected, one.minimum, one.maximum) for one in due[name][20]]
        found = [[form[q][key] for form in got[1:4]] for q in run]
        require(np.allclose(found, ends, rtol=0, atol=1e-12), f"{name} under ties differs")
    calls = range(max(1, 1_000 // n_queries))
    timings = compete(
        {
            "ties": Contestant(lambda _: [ours.evaluate_ties(run) for _ in calls]),
            "plain": Contestant(lambda _: [ours.evaluate(run) for _ in calls]),
            "trm": Contestant(lambda _: [theirs() for _ in calls]),
        },
        rounds=rounds,
    )
    rows = []
    for name, bar in (("plain", 1.3), ("trm", 1.0)):
        detail = timings.detail("ties", name)
        each = {n: 1e6 * detail["seconds_cpu"][n] / len(calls) for n in ("ties", name)}
        what = {"plain": "evaluate", "trm": "tie-aware-retrieval-metrics"}[name]
        rows.append(
            at_most(
                "T4",
                f"evaluate_ties, {n_queries:,} queries x 100: CPU against {what}",
                f"{each['ties']:,.0f} us",
                f"{each[name]:,.0f} us",
                detail["ratio_cpu"],
                bar,
                **detail,
            )
        )
    return rows


# ---- T5 ----


def _t5(settings: Settings) -> list[Row]:
    """Many runs in one call, against one process of trec_eval per run, if it is installed."""
    n_runs = 3 if settings.quick else 100
    program = shutil.which("trec_eval")
    with tempfile.TemporaryDirectory() as folder:
        qrels, first = _write(Path(folder), 50)
        runs = [str(Path(folder, f"run{i}")) for i in range(n_runs)]
        for run in runs:
            shutil.copyfile(first, run)
        commands = [[program or sys.executable, *FLAGS, str(qrels), run] for run in runs]
        if program is None:
            commands = [[sys.executable, "-c", PYTREC_EVAL, str(qrels), run] for run in runs]
        together = [sys.executable, *KGTREC, str(qrels), *runs]
        contestants = {
            "ours": Contestant(lambda _: _output(together, Path(folder))),
            "theirs": Contestant(lambda _: [_output(each, Path(folder)) for each in commands]),
        }
        _output(together, Path(folder))
        timings = compete(contestants, rounds=1 if settings.quick else 3, warm_ups=0)
    name = "trec_eval" if program else "pytrec_eval and its parsers (no trec_eval here)"
    row = at_least(
        "T5",
        f"{n_runs} runs of 50,000 lines in one call against a process each of {name}",
        f"{timings.seconds('ours'):.2f} s",
        f"{timings.seconds('theirs'):.2f} s",
        timings.ratio("theirs", "ours"),
        20,
        **timings.detail("theirs", "ours"),
    )
    # The bar is against trec_eval, which starts without Python.
    return [row if program else replace(row, bar="none", met=None)]


BARS = {"T1": _t1, "T2": _t2, "T3": _t3, "T4": _t4, "T5": _t5}
