"""Load the ranks of commands with the warnings about them; list the files of a ranking."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kgtrec._internal.locations import is_folder, url_text
from kgtrec.cli._options import system_names
from kgtrec.cli._report import File, warn
from kgtrec.errors import UsageError, refuse_if

if TYPE_CHECKING:
    from kgtrec import Questions, Ranks, Result

FILES = ("output", "run", "qrels")
"""Parameters that name the files of a ranking."""


def warn_about(
    results: Mapping[str, Result], *, compared: bool = True, printed: bool = False
) -> None:
    """Warn of files that cannot be compared, and of results that could mislead.

    - compared: False if another function refuses incomparable ranks.
    - printed: True if the printed text contains the warnings about single results.
    """
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
    """Load ranks by name, with warnings.

    Pass `compared=False` for functions that refuse incomparable ranks; warnings then name files.
    """
    from kgtrec import Ranks, Result

    refuse_measures(files.values())
    loaded = {name: Ranks.load(path) for name, path in files.items()}
    results = {name if compared else files[name]: Result(ranks) for name, ranks in loaded.items()}
    warn_about(results, compared=compared)
    return loaded


def load_comparable(files: Mapping[str, str]) -> dict[str, Ranks]:
    """Load ranks for commands that refuse incomparable ranks; warnings name the files."""
    return load_ranks(files, compared=False)


def column_order(loaded: Mapping[str, Ranks]) -> str:
    """Return the order of columns, such as "hrt", in files of triples of the ranked graph."""
    orders = {ranks.provenance.column_order: name for name, ranks in loaded.items()}
    if len(orders) > 1:
        texts = ", ".join(f"{name}: {order}" for order, name in orders.items())
        raise UsageError(
            f"these ranks are of splits with different orders of columns ({texts}), so a file of "
            "triples fits only some; give ranks of the same order"
        )
    return next(iter(orders), "hrt")


def output_files(
    result: Any,
    questions: Questions | None,
    files: Mapping[str, str | None],
    options: Mapping[str, Any],
) -> list[File]:
    """Return the files of ranks, run and qrels, each with the function that writes it."""
    from kgtrec import write_qrels

    def run(path: str) -> None:
        result.run.cut(options["run_depth"]).write(path, options["tag"])

    qrels = partial(write_qrels, questions)
    return [(files["output"], result.ranks.save), (files["run"], run), (files["qrels"], qrels)]


def list_batch_ranks(folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield graph (with the protocol if there are several), model and path of finished ranks."""
    from kgtrec.cluster.batch.records import list_finished_ranks

    finished = list_finished_ranks(folder)
    several = len({protocol for _, protocol, _, _ in finished}) > 1
    for graph, protocol, model, path in finished:
        yield f"{graph}, {protocol}" if several else graph, model, str(path)


def refuse_measures(files: Iterable[str]) -> None:
    """Raise UsageError if a file that does not exist has the name of a measure, as `hits@10`."""
    from kgtrec.measures import Measure

    for file in files:
        if os.path.exists(file):
            continue
        try:
            Measure.parse(file)
        except UsageError:
            continue
        raise UsageError(
            f"{file!r} is a measure, not a file; write several measures with commas, as in "
            "mrr,hits@10"
        )


def list_files(
    files: Sequence[str], names: Sequence[str] = (), *, alike: bool = True
) -> tuple[str, ...]:
    """Return files of ranks, with those of the finished jobs instead of a batch's output folder.

    - names: The user's names of files; UsageError if a folder has several.
    - alike: UsageError if a batch has several graphs or protocols.
    """
    listed: list[str] = []
    for file in files:
        if not is_folder(file):
            listed.append(file)
            continue
        from kgtrec.cluster.batch.records import list_finished_ranks

        jobs = list_finished_ranks(file)
        kinds = sorted({(graph, protocol) for graph, protocol, _, _ in jobs})
        refuse_if(
            (bool(names), f"--name is for files; {file} is a folder, leave --name out"),
            (
                alike and len(kinds) > 1,
                f"{file} has ranks of {', '.join(f'{each[0]} ({each[1]})' for each in kinds)}; "
                f"give those of one: {url_text(str(jobs[0][3].parent.parent))}",
            ),
        )
        listed += [str(path) for _, _, _, path in jobs]
    return tuple(listed)


def name_files(files: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return files of ranks by name for commands that print one block per file.

    A batch's output folder stands for its files. Names are those of the user, or those of jobs, or
    else the files themselves.
    """
    from kgtrec.ranking.parquet import job_of

    listed = list_files(files, names, alike=False)
    twice = next((file for n, file in enumerate(listed) if file in listed[:n]), None)
    refuse_if((twice is not None, f"{twice!r} is given twice; give each file once"))
    named = system_names(listed, names)
    if not names:
        named = tuple(
            name if job_of(file) else file for name, file in zip(named, listed, strict=True)
        )
    return dict(zip(named, listed, strict=True))


def bounds_block(result: Result) -> str:
    """Return a table of bounds on full ranks from sampled ones; empty for full ranks."""
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
    """Return these bounds by key, for JSON: ``full.low.both.realistic.micro.mrr`` and so on."""
    from kgtrec.study.sampling.counts import full_bounds

    if result.ranks.full_candidates is None:
        return {}
    side, bounds = result.sides[-1], {}
    for name, _, *values in full_bounds(result.ranks).rows:
        for kind, value in zip(("estimate", "low", "high"), values, strict=True):
            bounds[f"full.{kind}.{side}.realistic.micro.{str(name).lower()}"] = float(value)
    return bounds
