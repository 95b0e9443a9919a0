"""The table of models and the page: one row per model, from files or the output of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kgtrec._internal.locations import is_folder
from kgtrec.cli._options import one_per_file, refuse
from kgtrec.cli._report import Report
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks


class _Evaluation(NamedTuple):
    """A file of ranks, its model's name, and that of its graph; "" where its ranks say it."""

    model: str
    dataset: str
    path: str


def models_report(files: tuple[str, ...], keys: Sequence[str], options: dict[str, Any]) -> Report:
    """The table of models, in every format."""
    from kgtrec.study.reporting.formats import FORMATS
    from kgtrec.study.reporting.model_table import COLUMNS, Significance, table_of_models

    columns = keys or _listed(options["columns"]) or COLUMNS
    sides = _listed(options["sides"]) or None
    test = options["test"]
    significance = test and Significance(test, options["correction"], options["level"])
    _check(columns, sides)
    systems = load_systems(files, options["names"], options["replicates"])
    table = table_of_models(
        systems, columns, sides=sides, significance=significance or None, digits=options["digits"]
    )
    return Report(forms={form: partial(render, table) for form, render in FORMATS.items()})


def write_page(files: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Read the files, and write the page."""
    from kgtrec._internal.files import atomic_write
    from kgtrec.questions.api import read_graph
    from kgtrec.study.reporting.page import page_data, page_text
    from kgtrec.trec.files.run import read_run_columns

    path, runs = options["page"], options["runs"]
    refuse(one_per_file("--run", runs, files))
    systems = load_systems(files, options["names"])
    if len(systems) > 1:
        raise UsageError(
            f"a page is for one graph, not {', '.join(systems)}; make one page per graph"
        )
    (runs_of,) = systems.values()
    ranks = {name: own[0] for name, own in runs_of.items()}
    text = page_text(
        page_data(
            ranks,
            graph=read_graph(options["graph"]) if options["graph"] else None,
            runs=dict(zip(ranks, map(read_run_columns, runs), strict=True)) if runs else None,
            test=options["test"] or "t",
            correction=options["correction"],
            level=options["level"],
        )
    )
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))
    return Report(notes=[f"wrote {path}"])


def _listed(text: str | None) -> list[str]:
    """The items of a list with commas, and perhaps blanks."""
    return [item.strip() for item in text.split(",")] if text else []


def _check(columns: Sequence[str], sides: Sequence[str] | None) -> None:
    """Refuse what is not a measure or a side before any file is read."""
    from kgtrec.measures import parse_all
    from kgtrec.measures.averaging import SIDES

    parse_all(columns)
    for side in sides or ():
        if side.strip() not in SIDES:
            raise UsageError(f"--side {side!r} is not a side; name head, tail, both, or several")


def load_systems(
    files: tuple[str, ...], names: tuple[str, ...], replicates: bool = False
) -> dict[str, dict[str, list[Ranks]]]:
    """Ranks by graph and model; files are named as given, those of batches by their batch.

    A model has several only with `replicates`: files whose names differ in a number at the end.
    """
    from kgtrec.cli._ranks import warn_of_ranks
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.comparison.replicates import grouped_names

    systems: dict[str, dict[str, list[Ranks]]] = {}
    called: dict[tuple[str, str], str] = {}
    graphs: dict[str, str] = {}
    for model, dataset, path in _evaluations(files, names):
        if replicates and not names:
            (model,) = grouped_names([model])
        ranks = Ranks.load(path)
        place = dataset or _dataset(ranks, graphs)
        other = called.setdefault((place, model), path)
        if model in systems.get(place, {}) and not replicates:
            raise UsageError(f"{other} and {path} would both be {model!r}; give each a --name")
        systems.setdefault(place, {}).setdefault(model, []).append(ranks)
    if replicates:
        systems = _folds_as_one(systems)
    for loaded in systems.values():
        warn_of_ranks({
            f"{model} (run {number})" if len(runs) > 1 else model: one
            for model, runs in loaded.items() for number, one in enumerate(runs, start=1)
        })  # fmt: skip
    return systems


def _folds_as_one(systems: dict[str, dict[str, list[Ranks]]]) -> dict[str, dict[str, list[Ranks]]]:
    """One column of several graphs that are folds: every model was run on each, once."""
    places = list(systems.values())
    once = all(len(runs) == 1 for one in places for runs in one.values())
    if len(places) < 2 or not once or any(one.keys() != places[0].keys() for one in places):
        return systems
    name = f"{len(places)} folds of {next(iter(systems))}"
    return {name: {model: [one[model][0] for one in places] for model in places[0]}}


def _dataset(ranks: Ranks, graphs: dict[str, str]) -> str:
    """What the graph of ranks is called: by its folder, numbered where two are called alike."""
    facts = ranks.provenance
    name, key = facts.graph_name or "graph", str(facts.graph_hash)
    if key not in graphs:
        alike = sum(known.partition(" (")[0] == name for known in graphs.values())
        graphs[key] = f"{name} ({alike + 1})" if alike else name
    return graphs[key]


def _evaluations(files: tuple[str, ...], names: tuple[str, ...]) -> list[_Evaluation]:
    from kgtrec.cli._options import system_names

    batches = [file for file in files if is_folder(file)]
    if not batches:
        called = zip(system_names(files, names), files, strict=True)
        return [_Evaluation(name, "", file) for name, file in called]
    if names:
        raise UsageError(f"--name is for files; {batches[0]} is a folder, leave --name out")
    from kgtrec.cluster.batch.records import finished_ranks

    evaluations: list[_Evaluation] = []
    for file in files:
        if file not in batches:
            evaluations.append(_Evaluation(system_names((file,), ())[0], "", file))
            continue
        ranks = finished_ranks(file)
        several = len({one.protocol for one in ranks}) > 1
        for one in ranks:
            dataset = f"{one.graph}, {one.protocol}" if several else one.graph
            evaluations.append(_Evaluation(one.model, dataset, str(one.path)))
    return evaluations
