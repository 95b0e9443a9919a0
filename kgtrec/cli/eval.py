"""``kgtrec eval``: trec_eval's output for qrels and a run, and tables of several runs.

The options are those of trec_eval, with its letters and long names, and kgtrec's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kgtrec._version import __version__
from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report, echo, render
from kgtrec.errors import FileError, UsageError

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.eval.score import Scored

FORMATS = ("trec", "tsv", "csv", "json", "markdown", "latex")
VERSIONS = {9: "9.0.8", 10: "10.0"}

# trec_eval's long names, if they differ from ours.
_LONG_NAMES = {
    "query_eval_wanted": "per-query",
    "nosummary": "no-summary",
    "complete_rel_info_wanted": "complete",
    "level_for_rel": "relevance-level",
    "Judged_docs_only": "judged-only",
    "Max_retrieved_per_topic": "max-documents",
    "Number_docs_in_coll": "collection",
    "Rel_info_format": "qrels-format",
    "Results_format": "run-format",
    "Zscore": "zscores",
    "Debug_level": "debug",
    "Output_old_results_format": "old-format",
}

CONTEXT = {
    # -h may ask for the help of a measure: see _help.
    "help_option_names": [],
    "token_normalize_func": lambda name: _LONG_NAMES.get(name, name),
}


_WHOLE = shared.Count(0, largest=2**63 - 1)


def _help(context: click.Context, _parameter: click.Parameter, flag: bool) -> None:
    """Print the help, or with -m descriptions of these measures, and exit."""
    if not flag or context.resilient_parsing:
        return
    measures = context.params.get("measures")
    click.echo(_measure_help(measures) if measures else _overview(context))
    context.exit()


def _version(context: click.Context, _parameter: click.Parameter, flag: bool) -> None:
    if flag and not context.resilient_parsing:
        followed = VERSIONS[context.params.get("compat", 10)]
        echo(f"kgtrec eval {__version__}, following trec_eval version {followed}", err=True)
        context.exit()


def _debug_level(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Any:
    level = (text or "0").partition(".")[0]
    if not level.isascii() or not level.isdigit():
        raise click.BadParameter(f"{text!r} is not a level, as in -D 1, or -D 1.QUERY.")
    return text


of_trec_eval = shared.all_of(
    # Eager: -h and -v take effect in any position.
    shared.measures(
        "-m --measure measures",
        "A measure, with parameters after a dot (P.5,10), or a "
        "nickname: official, set, all_trec; prefs, all_prefs; qrels_jg. Repeatable. "
        "Default: official, or all of -R.",
        "MEASURE",
        is_eager=True,
    ),
    shared.flag("-q --per-query", "Also print lines for every query."),
    shared.flag("-n --no-summary", "Print no lines over all queries."),
    shared.flag(
        "-c --complete",
        "Average over all queries of QRELS; a query that is not in the run counts as 0.",
    ),
    shared.option(
        "-l --relevance-level level",
        "Relevant from this level (default: 1). nDCG and other gains ignore it.",
        type=_WHOLE,
        default=1,
        metavar="N",
        show_default=False,
    ),
    shared.flag("-J --judged-only", "Drop documents that were not judged."),
    shared.option(
        "-M --max-documents depth",
        "Evaluate at most this many documents per query.",
        type=_WHOLE,
        metavar="N",
    ),
    shared.option(
        "-N --collection",
        "Number of documents in the collection, for utility.",
        type=_WHOLE,
        default=0,
        metavar="N",
        show_default=False,
    ),
    shared.option(
        "-Z --zscores",
        "Print z-scores: FILE has lines `query measure mean deviation`.",
        metavar="FILE",
    ),
    shared.option(
        "-R --qrels-format",
        "qrels (default), TREC's, BEIR's under their heading, or "
        "JSON; beir: lines of `query document relevance`; json; preferences: prefs, "
        "lines of `query group subgroup document level`, or qrels_prefs, without "
        "subgroup; qrels_jg: judgements of several assessors, `query assessor document "
        "relevance`.",
        default="qrels",
        metavar="NAME",
        show_default=False,
    ),
    shared.option(
        "-T --run-format",
        "trec_results (default), TREC's, or a form that the first "
        "lines show; msmarco: lines of `query document rank`; scores: lines of `query "
        "document score`; json: {query: {document: score}}.",
        default="trec_results",
        metavar="NAME",
        show_default=False,
    ),
    shared.option(
        "-D --debug",
        "Only this QUERY; there is no other debug output.",
        metavar="LEVEL[.QUERY]",
        callback=_debug_level,
    ),
    shared.flag("-o old_output", "Ignored, as in trec_eval: redirect the output with > FILE."),
    shared.option("--old-format", expose_value=False, hidden=True),
    shared.flag(
        "-v --version",
        "Print the version on standard error.",
        expose_value=False,
        callback=_version,
    ),
    shared.flag(
        "-h --help",
        "Print this; with -m, explain these measures.",
        expose_value=False,
        callback=_help,
    ),
)

beyond_trec_eval = shared.all_of(
    shared.reads(
        "--qrels qrels_file",
        "The judgements, as in other commands; every file behind the options is then a RUN.",
        metavar="QRELS",
    ),
    shared.choice(
        "--compat",
        ["9", "10"],
        "Compute like trec_eval 10.0 (default), or like 9.0.8: "
        "compare scores in single precision, and use its recall points, its -c and its "
        "all_trec.",
        default="10",
        is_eager=True,
        show_default=False,
        callback=lambda _context, _parameter, text: int(text),
    ),
    shared.choice(
        "--format form",
        FORMATS,
        "trec (default): trec_eval's lines. Others: one table, "
        "a column per run (in Markdown a row per run); tsv, csv and json with every digit.",
        default="trec",
        show_default=False,
    ),
    shared.choice(
        "--ties",
        ("expected", "min", "max"),
        "Mean, smallest or largest value over all "
        "orders of tied documents, for map, map_cut, recip_rank, recip_rank_cut, "
        "success, P, recall, relative_P, relative_map, map_hits, F1, Rprec, Rprec_mult, ndcg, "
        "ndcg_cut, dcg, bpref, infAP, judged, unj, and measures of sets.",
    ),
    shared.option(
        "--n-entities entities",
        "Entities of the graph, for kg_mr, kg_mrr, kg_hits, kg_amr, kg_amri. With --graph only if "
        "its entities are numbers and the run has others, too.",
        type=shared.Count(1, largest=2**63 - 1),
        metavar="N",
    ),
    shared.graph(
        "Filter the runs by this graph: remove what its other splits know "
        "about a question (head0, ..., tail0, ...). Also sets the number of entities."
    ),
    shared.option(
        "--split", "With --graph: split of the questions. Default: test.", metavar="NAME"
    ),
    shared.choice(
        "--sides",
        shared.SIDE_NAMES,
        "With --graph: what to ask about its triples. Default: both (head and tail).",
    ),
    shared.CONTEXT,
    shared.option(
        "--ci",
        "Confidence intervals of the means, by resampling the queries.",
        type=shared.Percent(),
        metavar="PERCENT",
    ),
    shared.option("--seed", "Seed of the resampling. Default: 0.", type=shared.Seed(), metavar="N"),
    shared.option(
        "--resamples",
        "Number of resamples. Default: 2000.",
        type=shared.RESAMPLES,
        metavar="N",
    ),
    shared.flag(
        "--show-engines",
        "Print on standard error what kgtrec computed, and what pytrec_eval also has.",
    ),
)


@click.command(cls=Command, context_settings=CONTEXT)
@click.argument("qrels", metavar="QRELS", required=False)
@click.argument("runs", metavar="RUN...", nargs=-1)
@of_trec_eval
@beyond_trec_eval
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    qrels_file: str | None,
    show_engines: bool,
    **options: Any,
) -> Report:
    """Evaluate a RUN against QRELS and print what trec_eval prints.

    \b
    kgtrec eval qrels.txt sys.run                       the official measures
    kgtrec eval -q -m map_cut.20,P.5,10 --qrels qrels.txt sys.run.gz
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
    in byte order; a line on standard error says if ranks in the file disagree with that. Files
    named .gz or .zst are decompressed, and - is standard input. A RUN may be an .npz with the
    arrays scores, queries and documents. Queries in only one of the files are left out and counted
    on standard error. With -c, queries that are not in the run count as 0.

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
    with a column per run. In Markdown several runs have a row each, unless -q is given.

    Exit codes: 0 done; 1 wrong call or unknown measure; 2 unreadable or malformed file or wrong
    parameters of a measure; 4 a document twice, contradictory preferences, or a measure that does
    not fit the judgements of -R; 7 no query in both files.
    """
    if qrels_file is not None:
        qrels, runs = qrels_file, runs if qrels is None else (qrels, *runs)
    return _evaluate(qrels, runs, show_engines, options)


def _evaluate(
    qrels: str | None, runs: tuple[str, ...], engines: bool, options: dict[str, Any]
) -> Report:
    from kgtrec.trec.eval.score import score
    from kgtrec.trec.measures import names as every
    from kgtrec.trec.measures.pytrec_eval import can_supply

    if qrels is None or not runs:
        missing, ctx = "RUN" if qrels else "QRELS", click.get_current_context()
        raise click.UsageError(f"Missing argument {missing!r}. {ctx.get_usage()}")
    twice = next((run for n, run in enumerate(runs) if run in runs[:n]), None)
    if twice:
        raise UsageError(f"{twice!r} is named twice; name each run once")
    request = _make_request(qrels, runs, options)
    try:
        with request.read_ahead() as ahead:  # until numpy is loaded
            scored = score(request, ahead)  # all runs, before anything is printed
    except FileError as error:
        _refuse_ranks(qrels, runs)
        if options["old_output"] and not os.path.exists(error.path):
            error.add("; -o is ignored, as in trec_eval; to write a file, redirect: > FILE")
        raise
    notes = []
    for run in scored:
        texts = _notes(run, request)
        if engines:
            theirs = [c.name for c in request.columns if can_supply(c, request.options)]
            same = f"pytrec_eval has {', '.join(theirs) or 'none of them'}"
            texts.append(f"kgtrec computed {', '.join(run.values)}; {same}")
        notes += [f"{run.file}: " * (len(runs) > 1) + text for text in texts]
    notes += [
        f"-m {name}: its parameters are ignored, as in trec_eval: the first ones count"
        for name in every.list_ignored_parameters(request.measures or ())
    ]
    return _report(scored, request, notes)


def _make_request(qrels: str, runs: Sequence[str], options: Mapping[str, Any]) -> Request:
    """Make the request from the options; UsageError if they contradict each other."""
    from kgtrec.trec.eval.request import Request
    from kgtrec.trec.measures.trec_measure import EvalOptions

    names = ("level", "collection", "compat", "complete", "judged_only")
    eval_options = EvalOptions(most=options["depth"], **{name: options[name] for name in names})
    for name in ("split", "sides", "context"):
        if options[name] is not None and options["graph"] is None:
            raise UsageError(f"--{name} needs --graph DIR; without a graph, leave it out")
    questions = None
    if options["graph"] is not None:
        from kgtrec import read_graph

        graph, n_entities = read_graph(options["graph"]), options["entities"]
        if n_entities is not None and graph.has_open_end:
            graph, options = graph.with_entities(n_entities), {**options, "entities": None}
        questions = graph.questions(
            options["split"] or "test", options["sides"] or "both", context=options["context"]
        )
    same = ("per_query", "qrels_format", "run_format", "zscores", "ties", "entities")
    return Request(
        qrels,
        runs,
        options["measures"] or None,
        eval_options,
        summary=not options["no_summary"],
        questions=questions,
        resampling=_parse_resampling(options),
        only=(options["debug"] or "").partition(".")[2] or None,
        command_line=True,
        **{name: options[name] for name in same},
    )


def _parse_resampling(options: Mapping[str, Any]) -> Resampling | None:
    """Return the resampling for intervals, None without --ci."""
    resamples, seed = options["resamples"], options["seed"]
    if options["ci"] is None:
        if seed is not None or resamples is not None:
            raise UsageError("--seed and --resamples are for confidence intervals; add --ci 95")
        return None
    from kgtrec._internal.bootstrap import Resampling

    return Resampling(options["ci"], 2000 if resamples is None else resamples, seed or 0)


def _refuse_ranks(qrels: str, runs: Sequence[str]) -> None:
    """Raise FileError if a file is Parquet, as ranks are; a pipe would wait for a writer."""
    for path, kind in ((qrels, "qrels"), *((run, "run") for run in runs)):
        with suppress(OSError), open(path if os.path.isfile(path) else os.devnull, "rb") as file:
            if file.read(4) == b"PAR1":
                problem = f"a Parquet file, not {'a TREC run' if kind == 'run' else 'TREC qrels'}"
                hint = f"give the {kind} as a text file; for ranks, use `kgtrec report`"
                raise FileError(path, found=problem, hint=hint)


def _report(scored: Sequence[Scored], request: Request, notes: list[str]) -> Report:
    from kgtrec.trec.eval import output

    def table(form: str) -> str:
        if form == "markdown" and len(scored) > 1 and not request.per_query:
            return render(output.as_table_of_runs(scored, request), form)
        return render(output.as_table(scored, request), form)

    forms: dict[str, Callable[[], str | bytes]] = {form: partial(table, form) for form in FORMATS}
    forms["trec"] = lambda: output.trec_text(scored, request)
    del forms["json"]
    return Report(data=lambda: output.as_data(scored, request), forms=forms, notes=notes)


def _notes(run: Scored, request: Request) -> list[str]:
    """Return the notes on a run: remarks of readers, missing z-scores, and ties."""
    from kgtrec.trec.eval.answer_notes import remarks_on_answers

    notes = [remark.marked for remark in run.remarks]
    if run.missing:
        notes.append(
            f"{run.missing:,} values have no mean and deviation in {request.zscores!s}; they count "
            "as -1000000, also in the averages"
        )
    if run.tied.queries:
        notes.append(_tie_note(run, request))
    notes += (remark.marked for remark in remarks_on_answers(run, request))
    return notes


def _tie_note(run: Scored, request: Request) -> str:
    """Return how many queries have ties, and what --ties would print."""
    from kgtrec.trec.measures import ties, trec_measure
    from kgtrec.trec.measures.ties import has_tie_form

    total = f"{run.tied.queries:,} of {len(run.queries):,} queries"
    message = f"{total} have ties that could change these measures"
    if request.ties is not None:
        return f"{message}; kgtrec prints {ties.TIES[request.ties]}"
    if request.is_grouped:
        return message
    able = [column for column in request.columns if has_tie_form(column, request.options)]
    if len(able) == len(request.columns) or request.measures is None:
        return f"{message}; --ties expected averages over their orders"
    fixed = (trec_measure.FIXED, trec_measure.OF_SETS, trec_measure.OF_SCORES)
    forms = [column.name for column in able if column.row.expected not in fixed]
    if not forms:
        return message
    if len(forms) > 5:
        some = f"{len(able)} of {len(request.columns)} measures"
        return f"{message}; --ties expected averages {some} over their orders"
    return f"{message}; --ties expected averages over their orders, of {', '.join(forms)} only"


# -- Help ------------------------------------------------------------------------------------------


def _measure_help(measures: Sequence[str]) -> str:
    """Describe each measure; for a nickname, all its measures."""
    from kgtrec.trec.measures import names as every

    nicknames = {name: every.NICKNAMES[name] for name in measures if name in every.NICKNAMES}
    heads = [f"{name}: {', '.join(meant)}\n" for name, meant in nicknames.items()]
    columns = every.resolve(measures, command_line=True, qrels_format=None, of_answers=True)
    return "\n".join([*heads, every.help_text(columns)]).rstrip("\n")


def _overview(context: click.Context) -> str:
    """Return the command's help, then the measures."""
    formatter = context.make_formatter()
    context.command.format_help(context, formatter)
    with formatter.section("Measures (-h -m NAME explains one)"):
        for names in _group_measures().values():
            formatter.write_text(names)
    return formatter.getvalue().rstrip("\n")


def _group_measures() -> dict[str, str]:
    """Return texts that list the measures by their kind of parameters."""
    from kgtrec.trec.measures import names as every

    heads = {
        "": "without parameters",
        "rank": "at ranks, as P.5,10",
        "point": "at decimals",
        "number": "with numbers",
        "numbers": "with numbers",
        "gains": "with gains, as ndcg.1=3,2=9",
        "p": "with p, as rbp.p=0.8",
        "p,gains": "with p, as rbp.p=0.8",
    }
    by_head: dict[str, list[str]] = {}
    for name, row in every.TABLE.items():
        head = heads.get(row.kind, "")
        if row.format not in ("any", "qrels"):
            head = f"of judgements in groups, -R {row.format}"
        if row.of_answers:
            head = "over answers, as kg_mrr,kg_hits.1,3,10"
        by_head.setdefault(head, []).append(name)
    return {head: f"{', '.join(names)} ({head})" for head, names in by_head.items()}
