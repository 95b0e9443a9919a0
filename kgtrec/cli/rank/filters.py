"""The files of ``kgtrec rank``: those of several filters, named by them, and what is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgtrec.cli._options import option_of
from kgtrec.cli._report import Report
from kgtrec.cli.rank.answers import shown_of_answers
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Questions
    from kgtrec.results.result import Result

_PLACE = "{filter}"
_FILES = ("output", "run", "qrels")


def filter_names(filters: Sequence[str]) -> list[str]:
    """Names of the filters of a command line; UsageError if one stands there twice."""
    from kgtrec.cluster.inputs import filter_name

    names = [filter_name(text) for text in filters]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--filter {name} is given twice; name each filter once")
    return names


def outputs_by_filter(
    options: Mapping[str, Any], names: Sequence[str]
) -> dict[str, dict[str, str | None]]:
    """The files that each filter's ranks, run and qrels are written to."""
    for option in ("output", "run"):
        path = options[option]
        if len(names) > 1 and path is not None and _PLACE not in path:
            example = "ranks-{filter}.parquet" if option == "output" else "model-{filter}.run"
            raise UsageError(
                f"{option_of(option)} {path} is one file for the {len(names)} filters "
                f"{', '.join(names)}; let {_PLACE} stand for their names in it, as in {example}"
            )
    outputs = {
        name: {
            option: None if options[option] is None else options[option].replace(_PLACE, name)
            for option in _FILES
        }
        for name in names
    }
    if options["qrels"] is not None and _PLACE not in options["qrels"]:
        for name in names[1:]:
            outputs[name]["qrels"] = None
    return outputs


def report_of(results: dict[str, Result], questions: Questions, written: list[str]) -> Report:
    """The table, of several filters side by side, and what was written."""
    from kgtrec.results.report import side_by_side

    single = next(iter(results.values())) if len(results) == 1 else None
    if single and not single.ranks.of_graph:
        single = shown_of_answers(single.ranks)
    notes = [f"wrote {', '.join(written)}"]
    encoded = questions.labels[1].n_encoded
    if encoded and len(written) > len(results):
        notes.append(f"{encoded:,} labels with blanks are percent-encoded in TREC files")
    return Report(lambda: str(single) if single else side_by_side(results), notes=notes)


def write_result(
    result: Result, questions: Questions, files: Mapping[str, Any], run_depth: int, tag: str
) -> list[str]:
    """Write ranks, run and qrels as far as asked for; the names of the files."""
    result.ranks.save(files["output"])
    if files["run"]:
        assert result.run is not None  # it comes from scores, not from saved ranks
        result.run.cut(run_depth).write(files["run"], tag)
    if files["qrels"]:
        from kgtrec.trec.files.write import write_qrels

        write_qrels(questions, files["qrels"])
    return [files[name] for name in _FILES if files[name]]
