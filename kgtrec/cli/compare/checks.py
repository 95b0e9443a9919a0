"""Options of ``kgtrec compare`` that do not go together."""

from __future__ import annotations

from typing import Any

from kgtrec.cli._options import on_command_line
from kgtrec.errors import UsageError

__all__ = ["TABLES", "check_options", "check_table_options", "figure_option"]

REPORTS = (
    "stability", "discriminative", "reuse", "against", "depths", "reproduction", "replicates",
    "by", "ratios",
)  # fmt: skip

Rules = list[tuple[object, str]]
"""Whether the user has made a mistake (truth), and what to say then."""

TABLES = (".csv", ".tsv")
"""Endings of files of published values."""

OF_TABLES = {"keys", "against", "by", "ratios", "draws", "seed", "confidence"}
"""Options that tables of values have a use for, beside those of the output."""


def check_options(options: dict[str, Any], figures: dict[str, str | None], n_files: int) -> None:
    """Refuse options that would have no effect, before any file is read."""
    reports = [f"--{name}" for name in REPORTS if options[name]]
    rules = [
        *_report_rules(options, figures, reports),
        *_graph_and_part_rules(options, figures, reports),
        *_kg_measure_rules(options),
        *_idle_option_rules(options, figures, reports, n_files),
    ]
    problems = [problem for applies, problem in rules if applies]
    if problems:
        raise UsageError("; ".join(problems))


def check_table_options(
    files: tuple[str, ...], options: dict[str, Any], figures: dict[str, str | None]
) -> None:
    """Refuse what a table of values cannot answer: it holds all systems, and no questions."""
    other = options["against"] or ""
    idle = [name for name in options if name not in OF_TABLES and on_command_line(name)]
    rules: Rules = [
        (len(files) > 1,
         f"{files[0]!r} is a table of values of all systems; name one, and the other by --against"),
        (not other.endswith(TABLES),
         f"{files[0]!r} is a table of values, which is held against another one: --against "
         f"TABLE.csv{f', not {other!r}' if other else ''}"),
        (options["by"] and options["ratios"], "--by and --ratios are reports of their own; ask for "
         "one"),
        (idle, f"{', '.join(f'--{one}' for one in idle).replace('_', '-')}: tables of values have "
         "no questions to use that on; leave it out"),
        (figures[""] and (options["by"] or options["ratios"]),
         "--by and --ratios have no figure; leave --plot out"),
        (figures["pairs"] or figures["rankings"], "of tables there is one figure: --plot"),
    ]  # fmt: skip
    problems = [problem for applies, problem in rules if applies]
    if problems:
        raise UsageError("; ".join(problems))


def figure_option(kind: str) -> str:
    """Name of the option that draws a figure; kind "": the main one."""
    return f"--plot-{kind}" if kind else "--plot"


def _report_rules(
    options: dict[str, Any], figures: dict[str, str | None], reports: list[str]
) -> Rules:
    """Reports exclude each other; each is of ranks, or of runs, and not all have a figure."""
    qrels, replicates = options["qrels"], options["replicates"]
    parted = {"--by", "--ratios"} & set(reports)
    several = len(reports) > 2 or (len(reports) == 2 and not ("--against" in reports and parted))
    return [
        (several, f"{' and '.join(reports)} are reports of their own; ask for one"),
        (options["stability"] and qrels,
         "--stability needs files of ranks: in runs that were cut, answers have no rank"),
        (options["reuse"] and not qrels, "--reuse needs runs, and --qrels with their judgements"),
        (options["reproduction"] and not qrels,
         "--reproduction needs runs, and --qrels with their judgements"),
        (replicates and qrels, "--replicates needs files of ranks, not runs"),
        (replicates and figures[""], "--replicates has no figure; leave --plot out"),
        (replicates and options["cluster"],
         "--replicates draws whole questions in any case; leave --cluster out"),
        (on_command_line("epsilon") and not replicates, "--epsilon goes with --replicates"),
        (options["runs"] and not replicates, "--run goes with --replicates"),
        (options["reproduction"] and figures[""], "--reproduction has no figure; leave --plot out"),
    ]  # fmt: skip


def _graph_and_part_rules(
    options: dict[str, Any], figures: dict[str, str | None], reports: list[str]
) -> Rules:
    """What needs --graph, and what --by and --ratios exclude."""
    pool, parts = options["reuse"] or options["depths"], options["by"] or options["ratios"]
    return [
        (pool and not options["graph"],
         f"{''.join(reports[:1])} needs --graph DIR, the graph of the pool"),
        (options["graph"] and not (pool or options["by"]),
         "--graph goes with --reuse or --depths, or with --by"),
        (options["questions"] and not (options["depths"] and options["qrels"]),
         "--questions goes with --depths of runs"),
        (options["against_graph"] and not (options["against"] and options["graph"]),
         "--against-graph goes with --against, --by and --graph"),
        (options["qrels"] and parts, "--by and --ratios need files of ranks, not runs"),
        (figures[""] and parts, "--by and --ratios have no figure; leave --plot out"),
    ]  # fmt: skip


def _kg_measure_rules(options: dict[str, Any]) -> Rules:
    """Where measures of answers in runs can be had."""
    keys = [key for key in options["keys"] if key.startswith("kg_")]
    return [
        (keys and not options["qrels"],
         f"{', '.join(keys)}: of runs, with --qrels; of ranks, both.realistic.micro.mrr and "
         "the like are the filtered ones"),
        (keys and options["reuse"],
         f"{', '.join(keys)} cannot be valued again without a system's pool"),
        (options["entities"] and not keys, "--entities is for kg_ measures; ask for one"),
    ]  # fmt: skip


def _idle_option_rules(
    options: dict[str, Any], figures: dict[str, str | None], reports: list[str], n_files: int
) -> Rules:
    """Options that have no part in what is reported."""
    drawn = [figure_option(kind) for kind in ("pairs", "rankings") if figures[kind] and reports]
    one_measure = len(options["keys"]) == 1 and "," not in options["keys"][0]
    test = options["test"] or ("t" if options["discriminative"] else "randomisation")
    return [
        (drawn, f"{' and '.join(drawn)}: of the comparison itself only, not of "
         f"{' and '.join(reports)}; take --plot"),
        (on_command_line("repeats") and not options["stability"],
         "--repeats goes with --stability"),
        (figures["rankings"] and (one_measure or n_files < 3),
         "--plot-rankings holds rankings against each other: name two measures and three systems "
         "at least"),
        (options["test"] and reports and not options["discriminative"],
         "--test has no part in this report; leave it out"),
        (on_command_line("permutations") and test != "randomisation",
         f"--permutations are of the randomisation test, not of {test}"),
    ]  # fmt: skip
