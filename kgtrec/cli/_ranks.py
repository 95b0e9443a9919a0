"""Warnings about ranks that readers must not miss, in every output format."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from kgtrec.cli._process import lazily
from kgtrec.cli._report import warn

with lazily():
    from kgtrec import Ranks, Result, comparable
    from kgtrec.cluster.batch.records import finished_ranks
    from kgtrec.results.report import warnings_of
    from kgtrec.study.sampling.counts import full_bounds


def warn_of_results(results: Mapping[str, Result], form: str = "table") -> None:
    """Say on stderr which files can't be compared and, unless tables do so, print warnings.

    `form` is "table" if the text of every result is printed, which contains the warnings.
    """
    files = list(results)
    for file in files[1:]:
        alike = comparable(results[files[0]].ranks, results[file].ranks)
        if not alike:
            warn(f"NOT COMPARABLE: {files[0]} and {file}: {'; '.join(alike.reasons)}")
    if form != "table":
        for file, result in results.items():
            _warn_of(file, result)


def _warn_of(file: str, result: Result) -> None:
    for text in warnings_of(result):
        warn(f"{file}: {text}")


def warn_of_ranks(loaded: Mapping[str, Ranks]) -> None:
    """The same for ranks of which something other than the table is shown."""
    warn_of_results({name: Result(ranks) for name, ranks in loaded.items()}, "other")


def load_ranks(files: Mapping[str, str]) -> dict[str, Ranks]:
    """Ranks by name; warns about values that are easily misread."""
    loaded = {name: Ranks.load(path) for name, path in files.items()}
    warn_of_ranks(loaded)
    return loaded


def load_comparable(files: Mapping[str, str]) -> dict[str, Ranks]:
    """The same for commands that refuse incomparable ranks; warnings name the files."""
    loaded = {name: Ranks.load(path) for name, path in files.items()}
    for name, ranks in loaded.items():
        _warn_of(files[name], Result(ranks))
    return loaded


def ranks_of_batch(folder: str) -> Iterator[tuple[str, str, str]]:
    """Graph (and protocol, if there are several), model and path of a batch's finished ranks."""
    finished = finished_ranks(folder)
    several = len({one.protocol for one in finished}) > 1
    for one in finished:
        yield f"{one.graph}, {one.protocol}" if several else one.graph, one.model, str(one.path)


def bounds_block(result: Result) -> str:
    """A table of bounds on full ranks from sampled ones; empty for full ranks."""
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
    if result.ranks.full_candidates is None:
        return {}
    side, bounds = result.sides[-1], {}
    for name, _, *values in full_bounds(result.ranks).rows:
        for kind, value in zip(("estimate", "low", "high"), values, strict=True):
            bounds[f"full.{kind}.{side}.realistic.micro.{str(name).lower()}"] = float(value)
    return bounds
