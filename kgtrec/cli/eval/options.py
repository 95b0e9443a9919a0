"""The options of ``kgtrec eval``: those of trec_eval by its letters and long names, and its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kgtrec._version import __version__
from kgtrec.cli import _options as shared
from kgtrec.cli._report import echo
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.questions.api import Questions
    from kgtrec.trec.eval.request import Request


FORMATS = ("trec", "tsv", "csv", "json", "markdown", "latex")
VERSIONS = {9: "9.0.8", 10: "10.0"}

# trec_eval's long names, where they differ from ours.
_LONG_NAMES = {
    "query_eval_wanted": "per-query", "nosummary": "no-summary",
    "complete_rel_info_wanted": "complete", "level_for_rel": "relevance-level",
    "Judged_docs_only": "judged-only", "Max_retrieved_per_topic": "max-documents",
    "Number_docs_in_coll": "collection", "Rel_info_format": "qrels-format",
    "Results_format": "run-format", "Zscore": "zscores", "Debug_level": "debug",
    "Output_old_results_format": "old-format",
}  # fmt: skip

CONTEXT = {
    # -h may ask for the help of a measure: see _help.
    "help_option_names": [],
    "token_normalize_func": lambda name: _LONG_NAMES.get(name, name),
}


class _Whole(click.ParamType):
    """A whole number from 0 that fits 64 bits, where C's atol takes whatever comes."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not (value.isascii() and value.isdigit() and int(value) < 2**63):
            self.fail(f"{value!r} is not a whole number from 0.", param, ctx)
        return int(value)


_WHOLE = _Whole()


def request_of(qrels: str, runs: Sequence[str], options: Mapping[str, Any]) -> Request:
    """What is asked for, by the values of the options."""
    from kgtrec.trec.eval.request import Request, UnknownFormat
    from kgtrec.trec.measures.family import EvalOptions

    if options["run_format"] != "trec_results":
        raise UnknownFormat(
            f"-T {options['run_format']} is not known; leave it out and give a run, "
            "lines of `query iter document rank score tag`"
        )
    eval_options = EvalOptions(
        level=options["level"],
        collection=options["collection"],
        compat=options["compat"],
        complete=options["complete"],
        most=options["depth"],
        judged_only=options["judged_only"],
    )
    for name in ("split", "sides", "context"):
        if options[name] is not None and options["graph"] is None:
            raise UsageError(f"--{name} goes with --graph DIR; leave it out")
    return Request(
        qrels,
        runs,
        options["measures"] or None,
        eval_options,
        per_query=options["per_query"],
        summary=not options["no_summary"],
        qrels_format=options["qrels_format"],
        only=(options["debug"] or "").partition(".")[2] or None,
        zscores=options["zscores"],
        ties=options["ties"],
        entities=options["entities"],
        questions=_questions(
            options["graph"],
            options["split"] or "test",
            options["sides"] or "both",
            options["context"],
        ),
        resampling=_resampling(options),
        command_line=True,
    )


def _questions(graph: str | None, split: str, sides: str, context: str | None) -> Questions | None:
    if graph is None:
        return None
    from kgtrec.questions.api import read_graph

    return read_graph(graph).questions(split, sides, context=context)


def _resampling(options: Mapping[str, Any]) -> Resampling | None:
    """How intervals are drawn, if any are."""
    resamples, seed = options["resamples"], options["seed"]
    if options["ci"] is None:
        if seed is not None or resamples is not None:
            raise UsageError("--seed and --resamples are for confidence intervals; add --ci 95")
        return None
    from kgtrec._internal.bootstrap import Resampling

    return Resampling(options["ci"], 2000 if resamples is None else resamples, seed or 0)


def _help(context: click.Context, _parameter: click.Parameter, flag: bool) -> None:
    """All of the help; or, with -m, what these measures are."""
    if not flag or context.resilient_parsing:
        return
    from kgtrec.cli.eval.help import measure_help, overview

    measures = context.params.get("measures")
    click.echo(measure_help(measures) if measures else overview(context))
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
    # Eager: -h and -v answer for them, wherever they stand.
    click.option(
        "-m", "--measure", "measures", multiple=True, metavar="MEASURE",
        is_eager=True,
        help="A measure, with parameters behind a dot (P.5,10), or a nickname: official, set, "
        "all_trec; prefs, all_prefs; qrels_jg. Repeatable. Default: official, or all of -R.",
    ),
    click.option("-q", "--per-query", is_flag=True, help="Also print lines for every query."),
    click.option("-n", "--no-summary", is_flag=True, help="Print no lines over all queries."),
    click.option(
        "-c", "--complete", is_flag=True,
        help="Average over all queries of QRELS; a query that is not in the run counts as 0.",
    ),
    click.option(
        "-l", "--relevance-level", "level", type=_WHOLE, default=1, metavar="N",
        help="Relevant from this level (default: 1). nDCG and other gains ignore it.",
    ),
    click.option(
        "-J", "--judged-only", is_flag=True, help="Drop documents that were not judged."
    ),
    click.option(
        "-M", "--max-documents", "depth", type=_WHOLE, metavar="N",
        help="Look at no more documents per query."
    ),
    click.option(
        "-N", "--collection", type=_WHOLE, default=0, metavar="N",
        help="Documents in the collection, for utility.",
    ),
    click.option(
        "-Z", "--zscores", metavar="FILE",
        help="Print z-scores: FILE has lines `query measure mean deviation`.",
    ),
    click.option(
        "-R", "--qrels-format", default="qrels", metavar="NAME",
        help="qrels (default); preferences: prefs, lines of `query group subgroup document level`, "
        "or qrels_prefs, the same without subgroup; qrels_jg: judgements of several assessors, "
        "`query assessor document relevance`.",
    ),
    click.option(
        "-T", "--run-format", default="trec_results", metavar="NAME",
        help="Only trec_results is read.",
    ),
    click.option(
        "-D", "--debug", metavar="LEVEL[.QUERY]", callback=_debug_level,
        help="Only this QUERY; there is no other debug output.",
    ),
    click.option("-o", is_flag=True, expose_value=False, help="Ignored, as in trec_eval."),
    click.option("--old-format", expose_value=False, hidden=True),
    click.option(
        "-v", "--version", is_flag=True, expose_value=False, callback=_version,
        help="Print the version on standard error.",
    ),
    click.option(
        "-h", "--help", is_flag=True, expose_value=False, callback=_help,
        help="Print this; with -m, explain these measures.",
    ),
)  # fmt: skip

beyond_trec_eval = shared.all_of(
    click.option(
        "--compat", type=shared.Choice(["9", "10"]), default="10", is_eager=True,
        callback=lambda _context, _parameter, text: int(text),
        help="As trec_eval 10.0 (default), or as 9.0.8: scores compared in single precision, its "
        "recall points, its -c and its all_trec.",
    ),
    click.option(
        "--format", "form", type=shared.Choice(FORMATS), default="trec",
        help="trec (default): trec_eval's lines. Others: one table, a column per run; tsv, csv and "
        "json with every digit.",
    ),
    click.option(
        "--ties", type=shared.Choice(("expected", "min", "max")),
        help="Mean, smallest or largest value over all orders of tied documents, for map, "
        "map_cut, recip_rank, recip_rank_cut, success, P, recall, relative_P, Rprec, ndcg, "
        "ndcg_cut, dcg.",
    ),
    click.option(
        "--n-entities", "entities", type=_WHOLE, metavar="N",
        help="Entities of the graph, for kg_mr, kg_mrr, kg_hits, kg_amr, kg_amri.",
    ),
    click.option(
        "--graph", type=shared.GRAPH_FOLDER, metavar="DIR",
        help="Filter the runs by this graph: remove what its other splits know about a question "
        "(head0, ..., tail0, ...). Also sets the number of entities.",
    ),
    click.option(
        "--split", metavar="NAME", help="With --graph: split of the questions. Default: test."
    ),
    click.option(
        "--sides", type=shared.Choice(shared.SIDE_NAMES),
        help="With --graph: what to ask about its triples. Default: both (head and tail).",
    ),
    shared.CONTEXT,
    click.option(
        "--ci", type=float, metavar="PERCENT",
        help="Confidence intervals of the means, 1 to 99.9, by resampling the queries.",
    ),
    click.option(
        "--seed", type=_WHOLE, metavar="N", help="Seed of the resampling. Default: 0."
    ),
    click.option(
        "--resamples", type=_WHOLE, metavar="N", help="Number of resamples. Default: 2000."
    ),
    click.option(
        "--show-engines", is_flag=True,
        help="Print on standard error what kgtrec computed, and what pytrec_eval has too.",
    ),
)  # fmt: skip
