"""``kgtrec eval``: what trec_eval prints for qrels and a run, and tables of several runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli._process import keep_blas_single, without_collector
from kgtrec.cli._report import Command, Report
from kgtrec.cli.eval.options import CONTEXT, FORMATS, beyond_trec_eval, of_trec_eval, request_of
from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from kgtrec.trec.eval.kg_metrics import GraphFiltered
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.eval.score import Scored

AS_LISTED = (
    "kg_ measures use ranks as listed: other answers in the qrels do not count, but answers known "
    "from other splits do, unless the run is filtered; --graph DIR filters it"
)


@click.command(cls=Command, short_help="Evaluate runs like trec_eval.", context_settings=CONTEXT)
@click.argument("qrels", metavar="QRELS", required=False)
@click.argument("runs", metavar="RUN...", nargs=-1)
@of_trec_eval
@beyond_trec_eval
def command(qrels: str | None, runs: tuple[str, ...], show_engines: bool, **options: Any) -> Report:
    """Evaluate a RUN against QRELS and print what trec_eval prints.

    \b
    kgtrec eval qrels.txt sys.run                       the official measures
    kgtrec eval -q -m map_cut.20 -m P.5,10 qrels.txt sys.run.gz
    kgtrec eval -m all_trec -l2 -c qrels.txt sys.run    relevant from 2, all queries
    zcat sys.run.gz | kgtrec eval qrels.txt -           a run on standard input
    kgtrec eval --format markdown -m map qrels.txt a.run b.run
    kgtrec eval --ties expected --ci 95 -m map -m P.10 qrels.txt sys.run
    kgtrec eval -m kg_mr,kg_mrr,kg_hits.1,10 --n-entities 14541 qrels.txt sys.run
    kgtrec eval -m kg_mrr -m map --graph FB15k-237 qrels.txt raw.run   filtered by the graph
    kgtrec eval -R prefs -m all_prefs prefs.txt sys.run preferences between documents
    kgtrec eval -h -m bpref -m set                      what these measures mean

    Options and output are those of trec_eval 10.0 (or 9.0.8: --compat 9). You can combine options
    (-qc, -l2) or put them after the files. Documents are ordered by score, then by name, descending
    in byte order; ranks in the file are ignored. Files named .gz or .zst are decompressed, and - is
    standard input. Queries in only one of the files are left out and counted on standard error.
    With -c, queries that are not in the run count as 0.

    Scores do not order ties. --ties prints the mean, smallest or largest value over all orders, for
    measures that have such a form (without -m, the official ones among them). A line on standard
    error counts the queries whose ties could change the requested measures, if there are any.

    Measures kg_* are micro metrics: means over answers of realistic ranks as listed. Other answers
    of a query do not count in a rank. All other documents of the run count, also those that other
    splits know. Runs of `kgtrec rank` are filtered already; --graph DIR filters every RUN here. The
    values are intervals, NAME_low and NAME_high, because an answer that is not in the run may have
    any rank behind it, up to the number of entities. Both are equal if the run has all answers.

    With --ci, lines NAME_ci95_low and NAME_ci95_high follow every mean; sums (num_*) have none.

    Several RUNs: one block per run, after a line `run_file all NAME`; or, by --format, one table
    with a column per run.

    Exit codes: 0 done; 1 wrong call or unknown measure; 2 unreadable or malformed file or wrong
    parameters of a measure; 4 a document twice, contradictory preferences, or a measure that does
    not fit the judgements of -R; 7 no query in both files.
    """
    with without_collector():
        keep_blas_single()
        return _evaluate(qrels, runs, show_engines, options)


def _evaluate(
    qrels: str | None, runs: tuple[str, ...], engines: bool, options: dict[str, Any]
) -> Report:
    from kgtrec.trec.eval.score import score

    if qrels is None or not runs:
        raise click.UsageError(f"Missing argument '{'RUN' if qrels else 'QRELS'}'.")
    twice = next((run for place, run in enumerate(runs) if run in runs[:place]), None)
    if twice:
        raise UsageError(f"{twice!r} is named twice; name each run once")
    _refuse_ranks(qrels, runs)
    request = request_of(qrels, runs, options)
    scored = score(request)  # every run, before anything is printed
    notes = []
    for run in scored:
        start = f"{run.file}: " if len(runs) > 1 else ""
        notes += [
            start + text for text in _notes(run, request) + [_engines(run, request)] * engines
        ]
    notes += _ignored([name for name in request.measures or () if not name.startswith("kg_")])
    return _report(scored, request, notes)


def _refuse_ranks(qrels: str, runs: Sequence[str]) -> None:
    """FileError if a file is Parquet, as files of ranks are."""
    for path, what in ((qrels, "qrels"), *((run, "run") for run in runs)):
        with suppress(OSError), open(path, "rb") as file:
            if os.path.isfile(path) and file.read(4) == b"PAR1":
                found = f"a Parquet file, not {'a TREC run' if what == 'run' else 'TREC qrels'}"
                hint = f"name a file of {what} as text; for ranks, call `kgtrec report`"
                raise FileError(path, found=found, hint=hint)


def _report(scored: Sequence[Scored], request: Request, notes: list[str]) -> Report:
    from kgtrec.trec.eval import output

    def trec() -> bytes:
        pieces: list[bytes] = []
        for run in scored:
            pieces += [output.heading_line(run)] if len(scored) > 1 else []
            pieces += output.trec_lines(run, request)
        return b"".join(pieces)

    forms: dict[str, Callable[[], str | bytes]] = {
        "trec": trec,
        "json": lambda: output.as_json(scored, request),
    }
    for form in FORMATS:
        forms.setdefault(form, partial(_in_table, scored, request, form))
    return Report(forms=forms, notes=notes)


def _in_table(scored: Sequence[Scored], request: Request, form: str) -> str:
    from kgtrec.trec.eval import output

    return output.rendered(output.as_table(scored, request), form)


def _notes(run: Scored, request: Request) -> list[str]:
    notes = []
    if run.unanswered:
        is_complete = request.options.complete
        fate = "they count as if nothing were retrieved" if is_complete else "they are left out"
        total = f"{run.unanswered:,} of {run.n_asked:,} queries of the qrels"
        notes.append(f"{total} are not in the run; {fate}")
    if run.unasked:
        total = f"{run.unasked:,} of {run.n_answered:,} queries of the run"
        notes.append(f"{total} are not in the qrels; they are left out")
    if run.missing:
        notes.append(
            f"{run.missing:,} values have no mean and deviation in {request.zscores!s}; "
            "they are -1000000, in the averages too"
        )
    if run.tied.queries:
        notes.append(_ties(run, request))
    if run.filtered is not None:
        notes.append(_filtered(run.filtered, request))
    elif request.micro:
        notes.append(AS_LISTED)
    if run.missing_answers:
        notes.append(_missing_answers(run, request))
    return notes


def _ties(run: Scored, request: Request) -> str:
    from kgtrec.trec.measures.family import FIXED, OF_SETS
    from kgtrec.trec.measures.ties import TIES, has_tie_form

    total = f"{run.tied.queries:,} of {len(run.queries):,} queries"
    message = f"{total} have ties that could change the asked measures"
    if request.ties is not None:
        return f"{message}; printed is {TIES[request.ties]}"
    if request.qrels_format != "qrels":
        return message
    able = [column for column in request.columns if has_tie_form(column, request.options)]
    if len(able) == len(request.columns) or request.measures is None:
        return f"{message}; --ties expected averages over their orders"
    forms = [column.name for column in able if column.row.expected not in (FIXED, OF_SETS)]
    if not forms:
        return message
    if len(forms) > 5:
        some = f"{len(able)} of {len(request.columns)} measures"
        return f"{message}; --ties expected averages {some} over their orders"
    return f"{message}; --ties expected averages over their orders, of {', '.join(forms)} only"


def _filtered(filtered: GraphFiltered, request: Request) -> str:
    questions = request.questions
    assert questions is not None
    text = (
        f"filtered by {questions.graph.name}: {filtered.known:,} documents that "
        f"{', '.join(questions.filter_splits)} know left the run"
    )
    if filtered.unlinkable:
        text += f"; {filtered.unlinkable:,} name no {questions.kind} and keep their places"
    return text


def _missing_answers(run: Scored, request: Request) -> str:
    total = f"{run.missing_answers:,} of {run.answers:,} answers are not in the run"
    if request.entities is None and request.questions is None:
        return f"{total}; their ranks have no end without --n-entities N: low counts them as 0"
    return f"{total}; low and high bound the metrics for every rank that they may have"


def _engines(run: Scored, request: Request) -> str:
    from kgtrec.trec.measures.pytrec_eval import can_supply

    theirs = [c.name for c in request.columns if can_supply(c, request.options)]
    same = f"pytrec_eval has {', '.join(theirs) or 'none of them'}"
    return f"kgtrec computed {', '.join(run.values)}; {same}"


def _ignored(measures: Sequence[str]) -> list[str]:
    from kgtrec.trec.measures.names import ignored_parameters

    return [
        f"-m {name}: its parameters are ignored, as in trec_eval: the first ones count"
        for name in ignored_parameters(measures)
    ]
