"""The demo's flow: embedded graph -> three baselines -> results -> files and one text."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import atomic_write, make_folder, write_array, write_text
from kgtrec._internal.system import reason_of, shell_word
from kgtrec._internal.table import WIDTH, dump_json
from kgtrec._internal.urls import is_url, url_text
from kgtrec._version import __version__
from kgtrec.errors import FileError

if TYPE_CHECKING:
    from kgtrec.demo.lessons import DemoResults
    from kgtrec.questions.api import Questions


COUNTRIES = Path(__file__).parent / "countries"
RUN_DEPTH = 100


def run_demo(out: str | os.PathLike[str] = "kgtrec-demo", *, seed: int = 0) -> str:
    """Evaluate three baselines on the embedded graph of countries; write files, return the text."""
    from kgtrec.demo.lessons import report

    folder = _output_folder(out)
    results, popularity = _evaluate(seed)
    _write_files(folder, results)
    with atomic_write(folder / "popularity.npy") as file:
        write_array(file, popularity)
    text = f"{report(results)}\n\n{_closing(folder)}\n"
    write_text(folder / "report.txt", text)
    write_text(folder / "report.json", dump_json(_numbers(results, seed)) + "\n")
    return text


def _evaluate(seed: int) -> tuple[DemoResults, Any]:
    """Return all results, and the scores of popularity."""
    import kgtrec
    from kgtrec.demo.baselines import popularity_scores, random_scores, svd_factors
    from kgtrec.demo.lessons import DemoResults
    from kgtrec.results.result import evaluate_silently  # the text explains the random scores

    graph = kgtrec.read_graph(COUNTRIES, progress=False)
    questions = graph.questions("test")
    raw = graph.questions("test", filter_splits=())
    scores = {
        "svd": svd_factors(questions, seed=seed),
        "popularity": popularity_scores(questions),
        "random": random_scores(questions, seed=seed),
    }
    constant = np.zeros((len(questions), questions.n_entities), np.float32)

    def evaluate(source: Any, questions: Questions) -> kgtrec.Result:
        return evaluate_silently(source, questions, run_depth=RUN_DEPTH, progress=False)

    results = DemoResults(
        questions=questions,
        filtered={name: evaluate(source, questions) for name, source in scores.items()},
        raw={name: evaluate(source, raw) for name, source in scores.items()},
        constant=evaluate(constant, questions),
    )
    return results, scores["popularity"]


def _output_folder(out: str | os.PathLike[str]) -> Path:
    """Return the output folder, created if necessary; FileError before anything is computed."""
    folder = Path(out)
    hint = f"give another folder: {argument('folder', option='output')}"
    try:
        make_folder(folder / "graph")
    except OSError as error:
        problem = f"the folder cannot be created ({reason_of(error)})"
        raise FileError(folder, found=problem, hint=hint) from error
    return folder


def _write_files(folder: Path, results: DemoResults) -> None:
    """Write questions, runs, ranks, and the graph for readers and ``kgtrec rank --graph``."""
    from kgtrec.trec import write_qrels, write_questions

    for source in sorted(COUNTRIES.iterdir()):
        with atomic_write(folder / "graph" / source.name) as file:
            file.write(source.read_bytes())
    write_qrels(results.questions, folder / "qrels.txt")
    write_questions(results.questions, folder / "questions.tsv")
    for name, result in results.filtered.items():
        assert result.run is not None  # evaluate() always makes one from scores
        result.run.write(folder / f"{name}.run", tag=name)
        result.ranks.save(folder / f"{name}.ranks.parquet")


def _numbers(results: DemoResults, seed: int) -> dict[str, Any]:
    """Return the content of report.json: every listed key of every result, in full precision."""
    return {
        "kgtrec": __version__,
        "seed": seed,
        "questions": results.questions.describe(),
        "filtered": {
            **{name: result.to_dict() for name, result in results.filtered.items()},
            "constant": results.constant.to_dict(),
        },
        "unfiltered": {name: result.to_dict() for name, result in results.raw.items()},
    }


def _closing(folder: Path) -> str:
    """Return a text on the files, with commands to try next."""

    location = url_text(str(folder)) if is_url(str(folder)) else str(folder)

    def at(name: str) -> str:
        return shell_word(os.path.join(location, name))

    left = (
        f"Files in {os.path.join(location, '')}: graph/ (its SOURCES.md names the source of each "
        "fact), qrels.txt, questions.tsv, popularity.npy, report.txt, report.json, and "
        "SYSTEM.run and SYSTEM.ranks.parquet of each system. Qrels and runs write a blank in a "
        "name as %20, because their columns are separated by blanks."
    )
    lines = [
        textwrap.fill(left, WIDTH, break_long_words=False, break_on_hyphens=False),
        "",
        "Try next:",
        f"  kgtrec report {at('svd.ranks.parquet')} --by relation",
        f"  kgtrec eval {at('qrels.txt')} {at('svd.run')} -m map_cut.20",
        f"  kgtrec rank --graph {at('graph')} \\",
        f"    --scores {at('popularity.npy')} -o {at('again.parquet')}",
        "  kgtrec guide",
    ]
    return "\n".join(lines)
