"""Ranks that commands load and save, and warnings that readers must not miss."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kgtrec.cli._report import File, warn

if TYPE_CHECKING:
    from kgtrec import Questions, Ranks, Result

FILES = ("output", "run", "qrels")
"""Parameters of the files of a ranking."""


def warn_of(results: Mapping[str, Result], *, compared: bool = True, printed: bool = False) -> None:
    """Say which files cannot be compared and, unless their printed text does so, what misleads."""
    from kgtrec import comparable
    from kgtrec.results.report import warnings_of

    first, *others = results
    for file in others if compared else ():
        alike = comparable(results[first].ranks, results[file].ranks)
        if not alike:
            warn(f"NOT COMPARABLE: {first} and {file}: {'; '.join(alike.reasons)}")
    for file, result in results.items():
        for text in () if printed else warnings_of(result):
            warn(f"{file}: {text}")


def load_ranks(files: Mapping[str, str], *, compared: bool = True) -> dict[str, Ranks]:
    """Ranks by name, with warnings; not `compared` for functions that refuse incomparable ranks."""
    from kgtrec import Ranks, Result

    loaded = {name: Ranks.load(path) for name, path in files.items()}
    results = {name if compared else files[name]: Result(one) for name, one in loaded.items()}
    warn_of(results, compared=compared)
    return loaded


def load_comparable(files: Mapping[str, str]) -> dict[str, Ranks]:
    """The same for commands that refuse incomparable ranks; warnings name the files."""
    return load_ranks(files, compared=False)


def files_of(
    result: Any,
    questions: Questions | None,
    files: Mapping[str, str | None],
    options: Mapping[str, Any],
) -> list[File]:
    """What writes the ranks, run and qrels of a result into `files`."""
    from kgtrec import write_qrels

    def run(path: str) -> None:
        result.run.cut(options["run_depth"]).write(path, options["tag"])

    qrels = partial(write_qrels, questions)
    return [(files["output"], result.ranks.save), (files["run"], run), (files["qrels"], qrels)]


def ranks_of_batch(folder: str) -> Iterator[tuple[str, str, str]]:
    """Graph (and protocol, if there are several), model and path of a batch's finished ranks."""
    from kgtrec.cluster.batch.records import list_finished_ranks

    finished = list_finished_ranks(folder)
    several = len({protocol for _, protocol, _, _ in finished}) > 1
    for graph, protocol, model, path in finished:
        yield f"{graph}, {protocol}" if several else graph, model, str(path)


def bounds_block(result: Result) -> str:
    """A table of bounds on full ranks from sampled ones; empty for full ranks."""
    from kgtrec.study.sampling.counts import full_bounds

    if result.ranks.full_candidates is None:
        return ""
    table = full_bounds(result.ranks)
    text = (
        "Estimates for ranking among all candidates, with 95 % confidence, if the samples were "
        "drawn uniformly, without replacement and for each question separately (micro, "
        f"{result.sides[-1]}; nan: no estimate)"
    )
    return f"\n\n{textwrap.fill(text, 80)}\n{table.to_text()}"


def bounds_by_key(result: Result) -> dict[str, float]:
    """The same bounds as numbers, for JSON: ``full.low.both.realistic.micro.mrr`` and so on."""
    from kgtrec.study.sampling.counts import full_bounds

    if result.ranks.full_candidates is None:
        return {}
    side, bounds = result.sides[-1], {}
    for name, _, *values in full_bounds(result.ranks).rows:
        for kind, value in zip(("estimate", "low", "high"), values, strict=True):
            bounds[f"full.{kind}.{side}.realistic.micro.{str(name).lower()}"] = float(value)
    return bounds
