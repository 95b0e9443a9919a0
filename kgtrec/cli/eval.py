"""``kgtrec eval``: what trec_eval prints for qrels and a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kgtrec.errors import InputError

if TYPE_CHECKING:
    from kgtrec.trec.table import Column


class NothingShared(InputError):
    """No query is in both files (trec_eval's exit code: 7)."""

    exit_code = 7


@click.command(short_help="trec_eval measures of a TREC run file.")
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@click.option(
    "-m", "--measure", "measures", multiple=True, metavar="MEASURE",
    help="A measure or a nickname (official, set, all_trec); repeatable. Default: official.",
)  # fmt: skip
@click.option("-q", "--per-query", is_flag=True, help="Lines for every query before the summary.")
def command(qrels: str, run: str, measures: tuple[str, ...], per_query: bool) -> None:
    """Evaluate a RUN against QRELS and print what trec_eval prints.

    \b
    kgtrec eval qrels.txt sys.run
    kgtrec eval -q -m map_cut.20 -m ndcg_cut_20 -m P.5,10 qrels.txt sys.run.gz

    Documents are ordered by score as a 64-bit number, then by name, descending in byte order; the
    rank column is ignored. Queries that only one of the files has are left out and counted on
    standard error. Exit codes: 1 wrong call or unknown measure, 2 unreadable or malformed file
    or bad cutoff, 4 a document twice, 7 no query in both files.

    Measures: runid, num_q, num_ret, num_rel, num_rel_ret, num_nonrel_judged_ret; map, gm_map,
    Rprec, bpref, gm_bpref, recip_rank, infAP, 11pt_avg, ndcg, ndcg_rel, Rndcg, G, binG, utility;
    set_P, set_recall, set_relative_P, set_map, set_F; with cutoffs, as in P.5,10 or P_5: P,
    recall, success, map_cut, ndcg_cut, relative_P, iprec_at_recall, Rprec_mult.
    """
    from kgtrec.trec.bridge import evaluate, summarise
    from kgtrec.trec.files import read_qrels, read_run_file
    from kgtrec.trec.table import resolve

    columns = resolve(measures or ("official",))  # before any file is read
    judged = read_qrels(qrels)
    found = read_run_file(run)
    if not judged.keys() & found.scores.keys():
        raise NothingShared(
            f"{qrels} and {run} share no query (the first are {next(iter(judged))!r} and "
            f"{next(iter(found.scores))!r}); give the qrels of the same questions"
        )
    names = [column.name for column in columns if column.family != "runid"] or ["num_q"]
    values = evaluate(judged, found.scores, names)
    total = summarise(values, names)
    lines: list[str] = []
    if per_query:
        for query, row in values.items():
            lines.extend(_lines(query, row, [c for c in columns if not c.is_summary_only]))
    lines.extend(_lines("all", {**total, "runid": found.tag}, columns))
    # Bytes: an id may hold bytes that are no UTF-8, and they come out as they went in.
    click.echo("".join(lines).encode("utf-8", "surrogateescape"), nl=False)
    _say_what_is_left_out(judged, found.scores, per_query and "all_trec" in measures)


def _lines(query: str, row: Mapping[str, float | str], columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        value = row[column.name]
        if isinstance(value, str):
            text = value
        else:
            text = f"{value:.0f}" if column.is_count else f"{value:6.4f}"
        yield f"{column.name:<22s}\t{query}\t{text}\n"


def _say_what_is_left_out(
    judged: Mapping[str, object], scores: Mapping[str, object], without_relstring: bool
) -> None:
    notes = []
    if unanswered := len(judged.keys() - scores.keys()):
        notes.append(f"{unanswered:,} of {len(judged):,} queries of the qrels are not in the run")
    if unjudged := len(scores.keys() - judged.keys()):
        notes.append(f"{unjudged:,} of {len(scores):,} queries of the run are not in the qrels")
    if notes:
        click.echo(f"kgtrec eval: {' and '.join(notes)}; they are left out", err=True)
    if without_relstring:
        click.echo("kgtrec eval: relstring, a string per query, is not printed", err=True)
