"""``kgtrec eval``: what trec_eval prints for qrels and a run, and tables of several runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli._process import without_collector
from kgtrec.cli.eval import options
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.trec.eval.beyond import Beyond
    from kgtrec.trec.eval.output import Wanted
    from kgtrec.trec.eval.score import Scored
    from kgtrec.trec.measures.names import Column

AS_LISTED = (
    "kg_ measures are of ranks as listed: other answers in the qrels do not count, but what other "
    "splits know does, unless the run was filtered when it was made"
)


@click.command(short_help="trec_eval measures of TREC run files.", context_settings=options.CONTEXT)
@click.argument("qrels", metavar="QRELS", required=False)
@click.argument("runs", metavar="RUN...", nargs=-1)
@options.of_trec_eval
@options.beyond_trec_eval
def command(qrels: str | None, runs: tuple[str, ...], **given: Any) -> None:
    """Evaluate a RUN against QRELS and print what trec_eval prints.

    \b
    kgtrec eval qrels.txt sys.run                       the official measures
    kgtrec eval -q -m map_cut.20 -m P.5,10 qrels.txt sys.run.gz
    kgtrec eval -m all_trec -l2 -c qrels.txt sys.run    relevant from 2, all queries
    zcat sys.run.gz | kgtrec eval qrels.txt -           a run on standard input
    kgtrec eval --format markdown -m map qrels.txt a.run b.run
    kgtrec eval --ties expected --ci 95 -m map -m P.10 qrels.txt sys.run
    kgtrec eval -m kg_mr,kg_mrr,kg_hits.1,10 --entities 14541 qrels.txt sys.run
    kgtrec eval -h -m bpref -m set                      what these measures mean

    Options and output are those of trec_eval 10.0 (or 9.0.8: --compat 9), and may stand together
    (-qc, -l2) or behind the files. Documents are ordered by score, then by name, descending in
    byte order; ranks in the file are ignored. Names that end in .gz or .zst are decompressed; - is
    standard input. Queries that only one of the files has are left out and counted on standard
    error; with -c, those that the run lacks count as 0.

    The scores leave the order of ties open: --ties gives the mean, or the least or greatest value,
    over all of their orders, of those measures that have such a form (without -m, those of the
    official ones). A line on standard error counts the queries with ties that could change the
    asked measures; nothing is said if there are none.

    Measures kg_* are micro metrics, means over answers of realistic ranks as listed: other answers
    of a query do not count in a rank, but all else that the run holds does, also what other splits
    know, unless the run was filtered when it was made (as those of `kgtrec rank` are). They come as
    an interval, NAME_low and NAME_high, because an answer that the run does not hold may have any
    rank behind it, up to the number of entities; both are equal where the run holds all answers.

    With --ci, lines NAME_ci95_low and NAME_ci95_high follow every mean; sums (num_*) have none.

    Several RUNs: a block each, headed by a line `run_file all NAME`; or one table with a column for
    each, by --format.

    Exit codes: 0 done; 1 wrong call or unknown measure; 2 unreadable or malformed file or wrong
    parameters of a measure; 4 a document twice; 7 no query in both files.
    """
    with without_collector():
        _evaluate(qrels, runs, options.Call(**given))


def _evaluate(qrels: str | None, runs: tuple[str, ...], call: options.Call) -> None:
    if call.ci is None:
        _load_numpy_alone()
    from kgtrec.trec.eval.output import Wanted

    columns = call.columns(_is_given("measures"))
    beyond = call.beyond
    if qrels is None or not runs:
        raise click.UsageError(f"Missing argument '{'RUN' if qrels else 'QRELS'}'.")
    _check_files(qrels, runs)
    call.check_file_formats()
    wanted = Wanted([*columns, *beyond.micro], call.per_query, not call.no_summary)
    scored = _scored(qrels, runs, columns, beyond, call)
    _print(scored, wanted, call.form)
    for run in scored:
        _say_notes(run, call, f"{run.file}: " if len(runs) > 1 else "")
    _say_ignored([name for name in call.measures if not name.startswith("kg_")])


def _load_numpy_alone() -> None:
    """Without the threads of its linear algebra, which cost more than reading a small run."""
    name = "OPENBLAS_NUM_THREADS"
    if name not in os.environ and "numpy" not in sys.modules:
        os.environ[name] = "1"
        try:
            import numpy  # noqa: F401
        finally:
            del os.environ[name]


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def _check_files(qrels: str, runs: Sequence[str]) -> None:
    twice = next((run for place, run in enumerate(runs) if run in runs[:place]), None)
    if twice:
        raise UsageError(f"{twice!r} is named twice; name each run once")
    if qrels == "-" and "-" in runs:
        raise UsageError("both QRELS and a RUN are -, standard input; only one can be")


def _scored(
    qrels: str, runs: Sequence[str], columns: Sequence[Column], beyond: Beyond, call: options.Call
) -> list[Scored]:
    """Every run, before anything is printed."""
    from kgtrec.trec.eval.score import read_judgements, score

    beyond.check(columns, call.eval_options, call.zscores is not None)
    judgements = read_judgements(qrels)
    reference = None
    if call.zscores is not None:
        from kgtrec.trec.eval.zscores import read_reference

        reference = read_reference(call.zscores)
    return [
        score(
            judgements,
            run,
            columns,
            call.eval_options,
            reference=reference,
            only=call.only_query,
            beyond=beyond,
        )
        for run in runs
    ]


def _print(scored: Sequence[Scored], wanted: Wanted, form: str) -> None:
    from kgtrec.trec.eval import output

    if form == "trec":
        for run in scored:
            if len(scored) > 1:
                click.echo(output.heading_line(run), nl=False)
            for piece in output.trec_lines(run, wanted):
                click.echo(piece, nl=False)
        return
    if form == "json":
        text = output.as_json(scored, wanted)
    else:
        text = output.rendered(output.as_table(scored, wanted), form)
    # Bytes: an id may hold bytes that are no UTF-8, and they come out as they went in.
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


def _say_notes(run: Scored, call: options.Call, start: str) -> None:
    notes = []
    if run.unanswered:
        fate = "they count as if nothing were retrieved" if call.complete else "they are left out"
        total = f"{run.unanswered:,} of {run.n_asked:,} queries of the qrels"
        notes.append(f"{total} are not in the run; {fate}")
    if run.unasked:
        total = f"{run.unasked:,} of {run.n_answered:,} queries of the run"
        notes.append(f"{total} are not in the qrels; they are left out")
    if run.missing:
        notes.append(
            f"{run.missing:,} values have no mean and deviation in {call.zscores}; "
            "they are -1000000, in the averages too"
        )
    if run.tied:
        notes.append(_ties(run, call))
    if call.beyond.micro:
        notes.append(AS_LISTED)
    if run.missing_answers:
        notes.append(_missing_answers(run, call))
    if call.show_engines:
        notes.append(_engines(run))
    for note in notes:
        _say(start + note)


def _ties(run: Scored, call: options.Call) -> str:
    total = f"{run.tied:,} of {len(run.queries):,} queries"
    found = f"{total} have ties that could change the asked measures"
    if call.ties is None:
        return f"{found}; --ties expected averages over their orders"
    from kgtrec.trec.measures.ties import TIES

    return f"{found}; printed is {TIES[call.ties]}"


def _missing_answers(run: Scored, call: options.Call) -> str:
    total = f"{run.missing_answers:,} of {run.answers:,} answers are not in the run"
    if call.entities is None:
        return f"{total}; their ranks have no end without --entities N: low counts them as 0"
    return f"{total}; low and high bound the metrics for every rank that they may have"


def _engines(run: Scored) -> str:
    theirs = [name for name in run.values if name in run.from_pytrec_eval]
    ours = [name for name in run.values if name not in {*theirs, *run.for_size}]
    parts = [
        f"pytrec_eval computed {', '.join(theirs) or 'nothing'}",
        f"kgtrec, for the size of the lists, {', '.join(run.for_size)}" if run.for_size else "",
        f"kgtrec, because pytrec_eval lacks them, {', '.join(ours)}" if ours else "",
    ]
    return "; ".join(filter(None, parts))


def _say_ignored(measures: Sequence[str]) -> None:
    from kgtrec.trec.measures.names import ignored_parameters

    for name in ignored_parameters(measures):
        _say(f"-m {name}: its parameters are ignored, as in trec_eval: the first ones count")


def _say(note: str) -> None:
    click.echo(f"kgtrec eval: {note}".encode("utf-8", "surrogateescape"), err=True)
