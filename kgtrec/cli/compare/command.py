"""``kgtrec compare``: which system is better, and how sure is that?

The subcommands here ask how far a comparison depends on the triples, the measure or the run:
`stability`, `power`, `reproduction` and `replicates`. Others are in `labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import load_comparable
from kgtrec.cli._report import Command, Report
from kgtrec.cli.compare import labels
from kgtrec.cli.compare.inputs import (
    FILES,
    MEASURES,
    QRELS,
    QRELS_OF_RUNS,
    SYSTEMS,
    TEST,
    TIES,
    check_permutations,
    choose_measures,
    name_systems,
    order_of_ties,
    read_samples,
    stack_measures,
)
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec import Ranks
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec._internal.table import Table
    from kgtrec.study.comparison.choice import ChosenRuns
    from kgtrec.study.comparison.rankings import Rankings, Sensitivity
    from kgtrec.study.comparison.report import Multiplicity, SystemComparison
    from kgtrec.study.comparison.samples import Samples
    from kgtrec.study.comparison.verdicts import Verdicts


@click.command(cls=Command)
@SYSTEMS
@QRELS
@TIES
@MEASURES
@TEST
@shared.intervals("questions", 5_000)
@shared.LEVEL
@shared.N_ENTITIES
@shared.FORMAT
@shared.flag(
    "--overview",
    "Print only the table of all measures, without intervals and pairs. Several measures have it "
    "above the details, too.",
)
@shared.CAPTION
@shared.PLOT
@shared.draws("--plot-pairs", "Draw which pairs differ, and how much, as a matrix.")
@shared.draws("--plot-rankings", "Draw how the measures rank the systems, side by side.")
@shared.STYLE
@shared.flag(
    "--robust",
    "Compare by six measures (MRR, log-MRR, 0.5-MRR, Hits@10, macro MRR, MAP@20; or those of -m), "
    "and say whether all agree on the sign and significance of every difference (Yang et al. 2022, "
    "section 5; Zhou et al. 2022, section 5).",
)
@shared.reads(
    "--against",
    "With --robust: by other labels, too. Other qrels (with --qrels), or a folder with files of "
    "the same names (ranks).",
    metavar="QRELS|DIR",
)
def command(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Compare two or more systems on the same questions: FILEs of ranks (`kgtrec rank`), those of a
    BATCH (the output folder of `kgtrec batch`), or TREC runs with --qrels.

    With several measures, first a table of them all: the letters behind a value are those of the
    systems that it is significantly better than (superscripts in Markdown and LaTeX). --overview
    prints it alone.

    For each measure: values with bootstrap intervals, every pair of systems tested, p-values
    corrected for the number of pairs, effect sizes (d_z: mean difference in standard deviations of
    the differences; wins: share of items on which the first is better, ties half), and a sentence
    on what follows. Micro measures are tested over instances, macro ones over questions, runs over
    all queries of QRELS. With three or more systems: do the measures rank them alike?

    --robust asks whether the verdict depends on the measure or, with --against, on the labels. A
    run has no log-MRR and 0.5-MRR, so runs are compared by kg_mrr and kg_hits.10 (both
    ends), recip_rank and map_cut_20. p-values are not corrected for the number of measures.

    \b
    kgtrec compare distmult.parquet complex.parquet
    kgtrec compare *.parquet -m hits@10 --correction bh
    kgtrec compare *.parquet -m mrr,hits@1,hits@10 --overview
    kgtrec compare *.parquet --format latex --label tab:systems > table.tex
    kgtrec compare *.parquet --plot values.pdf --plot-pairs pairs.pdf
    kgtrec compare --qrels complete.qrels *.run -m map_cut_20 -m bpref

    The subcommands below ask other questions of the same files:

    \b
    kgtrec compare labels --qrels sparse.qrels --against complete.qrels *.run
    kgtrec compare parts *.parquet --by category,side --graph FB15k-237 -m mrr
    kgtrec compare stability *.parquet --plot sensitivity.pdf
    """
    from kgtrec.study.comparison.verdicts import compare_verdicts

    check_permutations(options["test"] or "randomisation")
    form = click.get_current_context().params["form"]
    shared.refuse(
        (
            form != "latex" and shared.list_typed(("caption", "label")),
            f"{', '.join(shared.list_typed(('caption', 'label')))}: only --format latex has these",
        ),
        (
            options["against"] and not options["robust"],
            "--against needs --robust; to compare only rankings: kgtrec compare labels",
        ),
        (
            options["robust"] and len(keys) == 1 and not options["against"],
            f"--robust compares verdicts, and {', '.join(keys)} alone has one; give two or more "
            "measures, or leave out -m",
        ),
        (
            options["robust"] and options["overview"],
            "--overview prints no verdicts of --robust; leave out one of them",
        ),
    )
    systems = name_systems(files, options["qrels"], names=options["names"])
    measures = _choose_measures(keys, options)
    samples, notes = read_samples(systems, measures, options["qrels"], options["n_entities"])
    resampling = shared.resampling(options)
    comparisons = _compare(samples, resampling, options)
    verdicts = None
    if options["robust"]:
        by_labels = {"": comparisons}
        if options["against"]:
            by_labels, more = _compare_labels(systems, measures, comparisons, options)
            notes += [note for note in more if note not in notes]
        verdicts = compare_verdicts(by_labels)
    report = _report(comparisons, _rankings(comparisons, resampling), notes, verdicts)
    return _add_overview(report, comparisons, options)


def _add_overview(
    report: Report, comparisons: Sequence[SystemComparison], options: Mapping[str, Any]
) -> Report:
    """Print the table of all measures first if there are several, or alone with --overview.

    LaTeX has only this table. Note if it is too wide there.
    """
    from kgtrec.study.reporting.formats import latex_width
    from kgtrec.study.reporting.overview import overview

    alone, form = options["overview"], click.get_current_context().params["form"]
    texts = {"caption": options["caption"] or "", "label": options["label"] or ""}
    table = overview(comparisons, intervals=form == "latex" and not alone, **texts)
    if form == "latex":
        report.notes += shared.note_on_width(latex_width(table), "give fewer -m")
    forms: dict[str, Callable[[], str | bytes]] = {**report.forms, "latex": table.to_latex}
    if alone:
        values, forms = table.values(), {**forms, "markdown": table.to_markdown}
        return replace(report, text=table.to_text, data=values.to_dict, rows=values, forms=forms)
    if len(comparisons) > 1:
        details, in_markdown = report.text, report.forms["markdown"]
        assert details is not None
        forms["markdown"] = lambda: f"{table.to_markdown()}\n{in_markdown()!s}"
        return replace(report, text=lambda: f"{table.to_text()}\n{details()}", forms=forms)
    return replace(report, forms=forms)


def _choose_measures(keys: tuple[str, ...], options: Mapping[str, Any]) -> Sequence[str]:
    """Return the requested measures, or the usual ones. --robust has more usual ones."""
    from kgtrec.study.comparison import verdicts

    measures = choose_measures(keys, options["qrels"])
    if keys or not options["robust"]:
        return measures
    return verdicts.MEASURES_OF_RUNS if options["qrels"] else verdicts.MEASURES


def _compare(
    samples: Sequence[Samples], resampling: Resampling, options: Mapping[str, Any]
) -> list[SystemComparison]:
    """Compare the systems by each measure."""
    from kgtrec.study import compare

    return compare(
        samples,
        test=options["test"] or "randomisation",
        correction=options["correction"],
        clustered=options["cluster"],
        permutations=options["permutations"],
        level=options["level"],
        resampling=resampling,
    )


def _compare_labels(
    systems: Mapping[str, str],
    measures: Sequence[str],
    comparisons: list[SystemComparison],
    options: Mapping[str, Any],
) -> tuple[dict[str, list[SystemComparison]], list[str]]:
    """Compare by the labels of --against, too. Return the comparisons by labels, and notes."""
    qrels, against = options["qrels"], options["against"]
    ours, theirs = labels.name_label_sets(qrels or next(iter(systems.values())), against)
    others = systems if qrels else labels.find_siblings(systems, against)
    samples, notes = read_samples(others, measures, qrels and against, options["n_entities"])
    resampling = shared.resampling(options)
    return {ours: comparisons, theirs: _compare(samples, resampling, options)}, notes


def _report(
    comparisons: Sequence[SystemComparison],
    rankings: Rankings | None,
    notes: list[str],
    verdicts: Verdicts | None,
) -> Report:
    from kgtrec import plots
    from kgtrec.study.comparison.correlation import agreement_table

    sections = [
        (_heading(each), [each.value_table(), each.pair_table()], each.sentence())
        for each in comparisons
    ]
    data: dict[str, object] = {each.samples.name: each.to_dict() for each in comparisons}
    figures: dict[str, Callable[[], Any]] = {
        "plot": lambda: plots.intervals(comparisons),
        "plot_pairs": lambda: plots.pair_matrix(comparisons),
    }
    if rankings is not None:
        text = (
            "Correlation of the systems' rankings by two measures; intervals resample the "
            "questions. tau-AP gives the top more weight."
        )
        names = list(combinations(rankings.names, 2))
        alike = agreement_table(("ranking by", "and by"), names, rankings.over_questions)
        sections.append(("Do the measures rank alike?", [alike], text))
        data["rankings"] = alike.to_dict()
        figures["plot_rankings"] = lambda: plots.bump_chart(rankings)
    elif shared.on_command_line("plot_rankings"):
        raise UsageError(
            "--plot-rankings compares rankings: give at least two measures and three systems"
        )
    rows = stack_measures({each.samples.name: each.pair_table() for each in comparisons})
    if verdicts is not None:
        rows = verdicts.table()
        text = f"{verdicts.sentence()} p-values are not corrected for the number of measures."
        sections.append(("Do the verdicts agree?", [rows], text))
        data["verdicts"] = verdicts.to_dict()
    return Report.from_sections(sections, data, rows, notes=notes, figures=figures)


def _heading(comparison: SystemComparison) -> str:
    samples, percent = comparison.samples, comparison.resampling.percent
    title = f"{samples.name}: {len(samples):,} {samples.unit}"
    if samples.n_clusters != len(samples):
        title += f" of {samples.n_clusters:,} questions"
    better = "higher" if samples.higher_is_better else "lower"
    return f"{title} · {better} is better · {percent:g}% intervals (drawn by question)"


def _rankings(comparisons: Sequence[SystemComparison], resampling: Resampling) -> Rankings | None:
    """Rank three or more systems by each of two or more measures; None for fewer."""
    from kgtrec.study.comparison.rankings import rankings_of_samples
    from kgtrec.study.comparison.samples import short_name

    if len(comparisons) < 2 or len(comparisons[0].samples.systems) < 3:
        return None
    return rankings_of_samples(
        {short_name(each.samples.name): each.samples for each in comparisons},
        resampled=[each.resampled for each in comparisons],
        resampling=resampling,
    )


# -- How far a comparison depends on triples, measures and runs ------------------------------------


@click.command(cls=Command, short_help="Do random parts of the test triples rank systems alike?")
@SYSTEMS
@QRELS
@MEASURES
@shared.option(
    "--shares",
    "Shares of the test triples to keep, such as 0.05,0.2,0.8.  [default: 0.01, 0.05, 0.1, ..., "
    "0.95]",
    type=shared.Shares(),
    metavar="S,S,...",
)
@shared.repeats(50)
@shared.seed("Seed of the parts.")
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def stability(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Do random parts of the test triples, from 1 to 95 % of them, rank the systems as all do (Zhou
    et al. 2022, section 5.1, Figure 7)?

    FILEs are ranks, or TREC runs with --qrels: parts are then of the relevant judgements, and a
    document without a kept judgement is not relevant, also for kg_mrr, kg_hits.10 and kg_mr. Or one
    table of published values (.csv, .tsv): a row per system, share and repeat, with columns system,
    share (1: the whole test set) and perhaps repeat.

    \b
    kgtrec compare stability *.parquet --plot sensitivity.pdf
    kgtrec compare stability --qrels complete.qrels *.run -m map_cut_20,kg_mrr --shares 0.1,0.5
    kgtrec compare stability published.csv -m micro_mrr
    """
    from kgtrec import plots

    sensitivity, parts = _compute_sensitivity(files, keys, options)
    known = "the test set"
    if sensitivity.triples:
        known = f"the {sensitivity.triples:,} {sensitivity.unit}"
    heading = (
        f"Mean tau-b of the ranking of {len(sensitivity.systems)} systems on random parts of "
        f"{known.replace('triples', 'test triples')} to that on all ({parts})"
    )
    whole = sensitivity.spread_table()
    return Report.from_sections(
        [(heading, [sensitivity.table()], sensitivity.sentence())],
        whole.to_dict(),
        whole,
        figures={"plot": lambda: plots.sensitivity(sensitivity)},
    )


def _compute_sensitivity(
    files: tuple[str, ...], keys: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[Sensitivity, str]:
    """Compute the sensitivity of ranks, runs or a table; also return how many parts there are."""
    from kgtrec.study.comparison import rankings, sensitivity

    qrels, repeats = options["qrels"], options["repeats"]
    parts = f"{repeats} parts of each size"
    if files[0].endswith(labels.TABLES):
        return _sensitivity_of_table(files, keys, options)
    how: dict[str, Any] = {"repeats": repeats, "seed": options["seed"], "progress": None}
    if options["shares"]:
        how["shares"] = options["shares"]
    systems = name_systems(files, qrels, names=options["names"])
    if qrels is None:
        measures = tuple(choose_measures(keys, None, ())) or None
        return rankings.data_sensitivity(load_comparable(systems), measures, **how), parts
    from kgtrec.trec import read_qrels

    choose_measures(keys, qrels)  # refuses --n-entities without a measure that needs it
    measures = keys or sensitivity.MEASURES_OF_RUNS
    how["entities"] = options["n_entities"]
    judged = read_qrels(qrels)
    return sensitivity.data_sensitivity_of_runs(judged, systems, measures, **how), parts


def _sensitivity_of_table(
    files: tuple[str, ...], keys: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[Sensitivity, str]:
    """Compute the sensitivity in a table of values, which has its own parts."""
    from kgtrec.study.comparison.parts import read_value_table
    from kgtrec.study.comparison.sensitivity import sensitivity_of_table

    names = ("qrels", "shares", "repeats", "seed", "n_entities")
    idle = [name for name in names if shared.on_command_line(name)]
    shared.refuse(
        (
            len(files) > 1,
            f"{files[0]!r} contains the values of all systems; give this table alone",
        ),
        (
            idle,
            f"{', '.join(map(shared.option_of, idle))}: a table of values has its own parts; "
            "leave it out",
        ),
        (options["names"], labels.NAMED_BY_TABLE),
    )
    table = read_value_table(files[0])
    columns = shared.choose_columns(keys, table.column)
    result = sensitivity_of_table(table, columns or labels.usual_columns([table], micro=False))
    return result, f"up to {result.tau.shape[2]} parts of each size"


@click.command(cls=Command, short_help="Which measure distinguishes systems best?")
@SYSTEMS
@QRELS
@TIES
@MEASURES
@TEST
@shared.seed("Seed of the randomisation test.")
@shared.LEVEL
@shared.N_ENTITIES
@shared.FORMAT
@shared.PLOT
@shared.STYLE
def power(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Which measure distinguishes the systems best? Sorted p-values of all pairs (by default of the
    t test), and their area.

    \b
    kgtrec compare power *.parquet -m mrr -m map_cut_20
    """
    from kgtrec import plots
    from kgtrec.study.comparison import rankings as orders
    from kgtrec.study.comparison.significance import discriminate

    test = options["test"] or "t"
    check_permutations(test)
    systems = name_systems(files, options["qrels"], names=options["names"])
    keys = tuple(choose_measures(keys, None, ())) if not options["qrels"] else keys
    samples, notes = read_samples(
        systems, keys or orders.MEASURES, options["qrels"], options["n_entities"]
    )
    if options["cluster"]:
        samples = [sample.by_cluster() for sample in samples]
    discrimination = discriminate(
        samples,
        test,
        correction=options["correction"],
        permutations=options["permutations"],
        seed=options["seed"],
    )
    table = discrimination.table(options["level"])
    heading = (
        f"p-values of all {discrimination.p.shape[1]} pairs of {len(systems)} systems "
        f"({discrimination.test} test): a smaller area distinguishes more pairs"
    )
    text = "A measure that finds many differences need not find the right ones."
    p_values = dict(zip(discrimination.measures, discrimination.p.tolist(), strict=True))
    data = {"summary": table.to_dict(), "p": p_values}
    return Report.from_sections(
        [(heading, [table], text)],
        data,
        discrimination.curves(),
        notes=notes,
        figures={"plot": lambda: plots.p_curves(discrimination)},
    )


@click.command(cls=Command, short_help="Does one experiment reproduce another?")
@SYSTEMS
@QRELS_OF_RUNS
@TIES
@MEASURES
@shared.FORMAT
def reproduction(
    files: tuple[str, ...], names: tuple[str, ...], qrels: str, keys: tuple[str, ...]
) -> Report:
    """Does the second run reproduce the first? Or do the third and fourth (baseline and advanced
    system) reproduce the first two? tau union, RBO, RMSE, effect ratio.

    \b
    kgtrec compare reproduction --qrels complete.qrels ours.run theirs.run
    """
    from kgtrec.study.comparison import correlation
    from kgtrec.study.comparison.correlation import reproduction_of
    from kgtrec.study.comparison.samples import notes_on_missing

    systems = name_systems(files, qrels, names=names)
    result, missing = reproduction_of(
        qrels, systems, choose_measures(keys, qrels), ties=order_of_ties()
    )
    orders, effects = result.order_table(), result.table()
    text = (
        f"tau union: Kendall's tau of the {correlation.DEPTH:,} best documents, as positions in "
        "their union (1: the same order). RBO: extrapolated rank-biased overlap, p = "
        f"{correlation.PERSISTENCE}, and how far it may exceed its lower bound. RMSE: over the "
        "values of queries (0: all are the same). Effect ratio: 1 if the improvement was "
        "reproduced, 0 if not. delta RI: 0 if the relative improvement was reproduced. "
        "(Breuer et al., SIGIR 2020; their program repro_eval 0.5.0 takes p = 0.95 for RBO and "
        "does not extrapolate it.)"
    )
    notes = [*notes_on_missing(missing, more="; tau union and RBO ignore them"), *result.notes()]
    return Report.from_sections(
        [("Does one experiment reproduce the other?", [orders, effects], text)],
        {"orders": orders.to_dict(), "effects": effects.to_dict()},
        effects,
        notes=notes,
    )


@click.command(cls=Command, short_help="Several runs (seeds) of each system.")
@FILES
@shared.names(
    "run's system", "the file name without its number at the end", " Runs of one name are of one."
)
@MEASURES
@shared.CORRECTION
@shared.option(
    "--epsilon",
    "Compare runs whose MRR is at most E below the best: how far do they disagree?",
    type=shared.Number(0),
    default=0.01,
    metavar="E",
)
@shared.runs("how often do equally good runs rank another entity first?")
@shared.reads(
    "--valid",
    "Ranks of the same run on the validation split; one per file, in the same order: report the "
    "run of each system with the best validation MRR (Zhou et al. 2022, section 4.1).",
    multiple=True,
    metavar="FILE",
)
@shared.intervals("questions and runs", 5_000)
@shared.FORMAT
def replicates(files: tuple[str, ...], keys: tuple[str, ...], **options: Any) -> Report:
    """Several runs (seeds) of each system, named system-1, system-2, ... or alike in several
    folders: means, deviations, and intervals and tests over both runs and questions.

    --valid chooses the run of each system with the best validation MRR, and reports its test value.
    Optimism is by how much the best test value of all runs is better than this value. Zhou et al.
    choose the best of ten runs so (2022, section 4.1).

    \b
    kgtrec compare replicates transe-*.parquet rotate-*.parquet
    kgtrec compare replicates m-1.parquet m-2.parquet --valid v/m-1.parquet --valid v/m-2.parquet
    """
    from kgtrec.study import compare_replicates, multiplicity
    from kgtrec.trec.files.run import read_run_columns

    paths, resampling = name_systems(files, None), shared.resampling(options)
    keys = tuple(choose_measures(keys, None))
    runs = load_comparable(paths)
    named = _system_of_runs(paths, options["names"])
    systems = _group_runs(runs, named)
    correction = options["correction"]
    comparisons = compare_replicates(systems, keys, correction=correction, resampling=resampling)
    text = (
        "std: deviation between runs. Intervals and p: questions and runs (or folds) are drawn "
        f"anew ({resampling.resamples:,} times), {correction} correction."
    )
    folds = comparisons[0].folds
    size = f"{len(runs)} runs of {len(systems)} system{'s' * (len(systems) > 1)}"
    size += f" on {folds} folds" * (folds > 1)
    rows = stack_measures({each.name: each.value_table() for each in comparisons})
    sections, notes = [], []
    data: dict[str, object] = {}
    for each in comparisons:
        values, pairs = each.value_table(), each.pair_table()
        tables = [values, pairs] if len(systems) > 1 else [values]
        sections.append((f"{each.name}: {size}", tables, text))
        data[each.name] = {"systems": values.to_dict(), "pairs": pairs.to_dict()}
    if options["valid"]:
        chosen = _choose_runs(systems, paths, named, options["valid"], keys)
        sections.append(_choice_section(chosen))
        data["chosen"] = {result.name: result.table().to_dict() for result in chosen}
    if folds > 1:
        notes = [
            "kgtrec compares how far the best runs disagree only on the same questions; folds "
            "have different ones"
        ]
    else:
        shared.refuse(shared.one_per_file("--run", options["runs"], list(paths)))
        columns = map(read_run_columns, options["runs"])
        first = dict(zip(paths, columns, strict=True)) if options["runs"] else None
        close = multiplicity(runs, options["epsilon"], runs=first)
        sections.append(_multiplicity_section(close))
        data["multiplicity"] = {
            "best": close.best,
            "models": list(close.models),
            "epsilon": close.epsilon,
            "by": close.table().to_dict(),
        }
    return Report.from_sections(sections, data, rows, notes=notes)


def _system_of_runs(paths: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the system of each run: from `names`, or its file's name without a number."""
    from kgtrec.ranking.parquet import system_name
    from kgtrec.study.comparison.report import group_names

    shared.refuse(shared.one_per_file("--name", names, list(paths)))
    return list(names) or group_names([system_name(file) for file in paths.values()])


def _group_runs(runs: Mapping[str, Ranks], names: Sequence[str]) -> dict[str, list[Ranks]]:
    """Group runs by the names of their systems; UsageError if no system has several."""
    from kgtrec._internal.csr import group_pairs

    systems = group_pairs(zip(names, runs.values(), strict=True))
    if len(systems) == len(runs):
        raise UsageError(
            f"no two of {', '.join(systems)} are runs of one system; name runs system-1, system-2, "
            "..., put files of the same name into several folders, or give the system of each run "
            "by --name"
        )
    return systems


def _choose_runs(
    systems: Mapping[str, Sequence[Ranks]],
    paths: Mapping[str, str],
    names: Sequence[str],
    valid: tuple[str, ...],
    keys: Sequence[str],
) -> list[ChosenRuns]:
    """Choose by the ranks of --valid, which are in the order of the files.

    - names: The system of each file.
    """
    from pathlib import Path

    from kgtrec._internal.csr import group_pairs
    from kgtrec.study import choose_runs

    test_names, valid_names = ([Path(file).name for file in of] for of in (paths.values(), valid))
    shared.refuse(
        shared.one_per_file("--valid", valid, list(paths)),
        (
            sorted(test_names) == sorted(valid_names) and test_names != valid_names,
            "--valid names the same runs as the files, but in another order; give them in the same "
            "order",
        ),
    )
    ranks = load_comparable({file: file for file in valid})
    by_name = group_pairs(zip(names, (ranks[file] for file in valid), strict=True))
    return choose_runs(systems, by_name, keys, names=group_pairs(zip(names, paths, strict=True)))


def _choice_section(chosen: Sequence[ChosenRuns]) -> tuple[str, list[Table], str]:
    """Return heading, tables and sentence on the runs that validation chooses."""
    text = (
        "Chosen: the run with the highest validation MRR (micro, realistic ranks), and its test "
        "value. Optimism: by how much the best test value of all runs is better, that is, what "
        "choosing by test would gain without a better system."
    )
    return "Which run does validation choose?", [result.table() for result in chosen], text


def _multiplicity_section(close: Multiplicity) -> tuple[str, list[Table], str]:
    """Return heading, tables and sentence on how far equally good runs disagree."""
    heading = (
        f"How far do runs disagree whose MRR is at most {close.epsilon:g} below that of "
        f"{close.best}?"
    )
    text = (
        "Ambiguity: share of answers that some run hits and the best run misses, or the reverse. "
        "Discrepancy: this share for the single run that differs most."
    )
    if close.best_answer is not None:
        text += " Best answer: shares of the questions for which another entity is ranked first."
    return heading, [close.table()], text


command.add(
    labels.labels,
    labels.parts,
    labels.depths,
    labels.reuse,
    stability,
    power,
    reproduction,
    replicates,
)
