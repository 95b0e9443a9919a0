"""``kgtrec report --html``: a page in one file."""

from __future__ import annotations

from typing import Any

from kgtrec.cli._report import Report
from kgtrec.errors import UsageError


def write_page(files: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Read the files, and write the page."""
    from kgtrec._internal.files import atomic_write
    from kgtrec.cli.report.models import load_systems
    from kgtrec.questions.api import read_graph
    from kgtrec.study.reporting.page import page_data, page_text
    from kgtrec.trec.files.run import read_run_columns

    path, runs = options["page"], options["runs"]
    if runs and len(runs) != len(files):
        raise UsageError(
            f"--run is given {len(runs)} times for {len(files)} files; name the run of every file"
        )
    systems = load_systems(files, options["names"])
    if len(systems) > 1:
        raise UsageError(
            f"a page is of one graph, and these ranks are of {', '.join(systems)}; make one each"
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
