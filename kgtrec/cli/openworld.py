"""``kgtrec openworld``: are two models different enough to trust if answers are missing?"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from kgtrec._internal.arguments import MOST_SIMULATED
from kgtrec.cli import _options as shared
from kgtrec.cli import _worlds as worlds
from kgtrec.cli._ranks import load_ranks
from kgtrec.cli._report import Command, Report
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.openworld import Comparison

SPARSITIES = (0.2, 0.5, 0.8)


_SIMULATED = shared.Count(1, MOST_SIMULATED)


@click.command(cls=Command)
@click.argument("files", nargs=-1, metavar="[A.parquet B.parquet ...]", type=shared.READ)
@shared.names("model")
@shared.option(
    "--sparsity sparsities",
    "Share of the true answers that the test set lacks; "
    "repeatable. Default: 0.2, 0.5 and 0.8, to show how much depends on it.",
    type=shared.Number(0, 1, max_open=True),
    multiple=True,
    metavar="BETA",
)
@shared.option(
    "--density densities",
    "Instead of --sparsity, and with --hide: share of all true facts that the graph contains; "
    "repeatable.",
    type=shared.Share(),
    multiple=True,
    metavar="D",
)
@shared.option(
    "--train-share",
    "With --density, --hide, --family-tree: share of the graph's facts outside the test set. "
    "Default: from the ranks files; 0.7 (A.3) with --hide and --family-tree.",
    type=shared.Number(0, 1, max_open=True),
    metavar="ETA",
)
@shared.option(
    "--values",
    "Two published values instead of files; needs --n-questions and --n-answers.",
    type=shared.Number(),
    nargs=2,
    metavar="A B",
)
@shared.option(
    "--n-questions questions",
    "With --values: number of questions; with --figure simulated: per point [500]; with --hide: "
    "keep the test facts of so many tail questions with 10 true answers, 500 in A.3 [all].",
    type=_SIMULATED,
    metavar="N",
)
@shared.option(
    "--n-answers answers",
    "With --values: mean number of test answers per question "
    "(test triples / questions); with --figure and --strength: a whole number of true ones [43].",
    type=shared.Number(0, min_open=True),
    metavar="N",
)
@shared.option(
    "--n-entities entities",
    "With --values, --strength, --figure expected and simulated: entities of the graph [14505].",
    type=_SIMULATED,
    metavar="N",
)
@shared.option(
    "-m --measure metric",
    "mrr, hits@10, log_mrr, p_mrr@0.5, ...: averaged within each question first.",
    default="mrr",
    metavar="NAME",
)
@shared.option(
    "--level",
    "Accepted probability of the wrong order.",
    type=shared.Number(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    metavar="P",
)
@shared.choice(
    "--study",
    ["small", "paper"],
    "Instead of your models: show sparse against full "
    "metrics on generated family trees, in seconds, or at the paper's size in "
    "minutes.",
)
@worlds.WRITING
@shared.seed("Seed of --family-tree, --hide, --study, and of --figure simulated.")
@shared.form(
    "table",
    "csv",
    "tsv",
    "markdown",
    "latex",
    "json",
    text="csv: one row per sparsity, or per checkpoint of --study and --checkpoints.",
)
@shared.choice(
    "--figure",
    ["expected", "approximation", "simulated"],
    "Draw theory instead of "
    "your models, with --plot: a metric against the strength of a model at several "
    "sparsities. Exact expectation; MRR and its logarithmic approximation; or both and "
    "simulated questions, with bands of two standard errors (Yang et al., Figure 1; "
    "also csv, json).",
)
@shared.flag(
    "--slope",
    "Print how fast the metric grows with the strength of a model (Yang et al., Corollaries 4.1 to "
    "4.3), how it falls with the correlation of missing and predicted answers (4.5), and delta of "
    "Lemma 4.1 with its bound: at each --strength, or at the strengths estimated for files of "
    "ranks.",
)
@shared.option(
    "--strength strengths",
    "With --slope: share of the true answers that the model predicts; repeatable.",
    type=shared.Number(0, 1),
    multiple=True,
    metavar="L",
)
@shared.option(
    "--correlation correlations",
    "With --figure simulated and --slope: correlation of missing and "
    "predicted; with several, the figure has one panel per sparsity (Figure 2).  [default: 0]",
    type=shared.Number(-1, 1),
    multiple=True,
    metavar="RHO",
)
@shared.PLOT
@shared.STYLE
def command(**_options: Any) -> Report:
    """Are the metrics of two models different enough to trust if answers are missing?

    A test set lacks true answers. Models that predict these are punished, so metrics saturate, and
    the weaker of two models may have the higher value (Yang et al. 2022). From two files of ranks
    and the sparsity of the test set, this command computes the difference with complete labels, the
    probability of the wrong order, and the number of questions needed. It also says if the theory
    does not fit.

    \b
    kgtrec openworld a.parquet b.parquet --sparsity 0.3 --sparsity 0.6
    kgtrec openworld a.parquet b.parquet --density 0.7 --format json
    kgtrec openworld --values 0.190 0.193 --n-questions 500 --n-answers 28 --sparsity 0.35
    kgtrec openworld --slope a.parquet b.parquet c.parquet --sparsity 0.3
    kgtrec openworld --slope --strength 0.3 --strength 0.9 --sparsity 0.35 --correlation 0.1
    kgtrec openworld --study small --plot curves.pdf
    kgtrec openworld --family-tree family
    kgtrec openworld --hide family --density 0.75 --n-questions 500 --output worlds
    kgtrec openworld --hide worlds/d0.75 --hide-by complex.ranks.parquet --output correlated
    kgtrec openworld --checkpoints checkpoints.tsv --plot sparse-full.pdf
    kgtrec openworld --figure expected -m hits@10 --plot expected.pdf
    kgtrec openworld --figure approximation --sparsity 0.1 --sparsity 0.5 --plot bound.pdf
    kgtrec openworld --figure simulated --plot figure1.pdf --format csv > figure1.csv
    kgtrec openworld --figure simulated --correlation -0.1 --correlation 0 \\
        --correlation 0.1 --correlation 0.2 --plot figure2.pdf
    """
    from kgtrec import plots

    request = SimpleNamespace(**click.get_current_context().params)
    if request.tree is not None:
        return worlds.write_tree(request)
    if request.hide is not None:
        return worlds.hide(request)
    if request.checkpoints is not None:
        return worlds.compare_checkpoints(request)
    for row in _contradictions(request):
        shared.refuse(row)
    shared.refuse((request.names and not request.files, "--name is for files of ranks; omit it"))
    if request.figure is not None:
        return _figure(request)
    if request.slope:
        return _slopes(request)
    if request.study is not None:
        return _study_report(request.study, request.seed)
    if request.values is None and not request.files:
        raise UsageError("nothing to compare; give two ranks files, --values A B, or --study small")
    result = _compare_files(request) if request.values is None else _compare_values(request)
    figures = {"plot": lambda: plots.comparison(result)}
    return Report(lambda: str(result), result.to_dict, result.table(), figures=figures)


def _contradictions(request: SimpleNamespace) -> list[tuple[object, str]]:
    """Return rows of a condition, true if options contradict each other, and its message."""
    figure, study, values, files = (
        getattr(request, name) for name in ("figure", "study", "values", "files")
    )
    drawn, simulated, bare = figure is not None, figure == "simulated", request.plot is None
    slope = request.slope
    whole = request.answers is None or request.answers == int(request.answers)
    of_ranks = not drawn and (study or values is None) and (study or files)
    return [
        *_slope_contradictions(request),
        (
            request.correlations and not simulated and not slope,
            "--correlation goes with --figure simulated or --slope",
        ),
        (
            drawn and (files or values or study),
            "--figure shows formulas: omit files, --values and --study",
        ),
        (
            drawn and bare and not (simulated and request.form != "table"),
            "--figure needs --plot FILE" + ", or --format csv" * simulated,
        ),
        (
            drawn and request.questions and not simulated,
            "--n-questions goes with --values or --figure simulated",
        ),
        (drawn and not whole, "--figure needs a whole number for --n-answers"),
        (
            figure == "approximation" and request.metric != "mrr",
            "--figure approximation shows MRR only; omit --measure",
        ),
        (
            not drawn and study and (files or values),
            "--study compares its own models: omit files and --values",
        ),
        (not drawn and values and files, "--values replaces ranks files; give one of them"),
        *(
            (
                of_ranks and getattr(request, name) is not None,
                f"{shared.option_of(name)} goes with --values or --figure"
                + ", or with --slope --strength" * (name != "questions"),
            )
            for name in ("questions", "answers", "entities")
        ),
        (
            not drawn and study and (request.sparsities or request.densities),
            "--study removes facts itself: omit --sparsity and --density",
        ),
    ]


def _slope_contradictions(request: SimpleNamespace) -> list[tuple[object, str]]:
    """Return such rows on --slope and --strength; see `_contradictions`."""
    slope, strengths, files = request.slope, request.strengths, request.files
    whole = request.answers is None or request.answers == int(request.answers)
    return [
        (strengths and not slope, "--strength goes with --slope"),
        (
            slope and (request.figure or request.study or request.values),
            "--slope prints numbers of its own: omit --figure, --study and --values",
        ),
        (slope and request.plot, "--slope draws no figure; omit --plot, or use --figure expected"),
        (
            slope and bool(strengths) == bool(files),
            "--slope needs strengths from one source: give --strength L, or files of ranks",
        ),
        (slope and request.questions is not None, "--n-questions goes with --values or --figure"),
        (slope and not whole, "--slope needs a whole number for --n-answers"),
    ]


def _slopes(request: SimpleNamespace) -> Report:
    """Report derivatives at the strengths of --strength, or at those estimated for ranks."""
    from kgtrec.study.openworld import compare, derivatives

    rhos = request.correlations or (0.0,)
    if request.strengths:
        sizes: dict[str, Any] = {}
        if request.answers is not None:
            sizes["n_answers"] = int(request.answers)
        if request.entities is not None:
            sizes["n_entities"] = request.entities
        betas = _betas(request)
        result = derivatives.slopes(
            request.strengths, betas, metric=request.metric, rhos=rhos, **sizes
        )
    else:
        loaded = load_ranks({file: file for file in request.files})
        first = next(iter(loaded.values()))
        unknown = bool(request.densities) and request.train_share is None
        betas = _betas(request, compare.train_share_of(first) if unknown else None)
        names = shared.system_names(request.files, request.names)
        loaded = dict(zip(names, loaded.values(), strict=True))
        result = derivatives.slopes_of_ranks(loaded, betas, request.metric, rhos)
    return _rows_report(result.table(), lambda: str(result))


def _rows_report(table: Table, text: Callable[[], str] | None, **more: Any) -> Report:
    """Make a report of a table; its JSON is a list of the rows."""
    rows = [dict(zip(table.keys, row, strict=True)) for row in table.rows]
    return Report(text, lambda: rows, table, **more)


def _betas(request: SimpleNamespace, train_share: float | None = None) -> tuple[float, ...]:
    """Return the sparsities, or those that densities and a train share mean."""
    from kgtrec.study.openworld.formulas import sparsity_of_density

    share: Any = train_share if request.train_share is None else request.train_share
    sparsities, densities = request.sparsities, request.densities
    shared.refuse(
        (sparsities and densities, "--sparsity and --density set the same value; give one of them"),
        (not densities and share is not None, "--train-share needs --density; give both"),
        (
            densities and share is None,
            "--density needs --train-share here: the share of facts outside the test",
        ),
    )
    betas = tuple(sparsity_of_density(density, share) for density in densities)
    return betas or sparsities or SPARSITIES


def _figure(request: SimpleNamespace) -> Report:
    """Report a figure of formulas or simulations. By default, its settings are the paper's."""
    from kgtrec import plots
    from kgtrec.study.openworld.simulate import simulate, simulation_table

    settings: dict[str, Any] = {}
    if request.sparsities or request.densities:
        settings["betas"] = _betas(request)
    if request.answers is not None:
        settings["n_answers"] = int(request.answers)
    if request.figure == "approximation":
        return Report(figures={"plot": lambda: plots.approximation_quality(**settings)})
    if request.entities:
        settings["n_entities"] = request.entities
    metric = request.metric
    if request.figure == "expected":
        return Report(figures={"plot": lambda: plots.expected_metric(metric, **settings)})
    if request.questions:
        settings["repeats"] = request.questions
    runs = [
        simulate(rho=rho, metrics=(metric,), seed=request.seed, **settings)
        for rho in request.correlations or (0.0,)
    ]
    table = simulation_table(runs, metric)
    figures = {"plot": lambda: plots.simulations(runs if len(runs) > 1 else runs[0], metric)}
    return _rows_report(table, None, figures=figures)


def _compare_files(request: SimpleNamespace) -> Comparison:
    from kgtrec.study.openworld import compare

    files = request.files
    if len(files) != 2:
        raise UsageError(f"{len(files)} ranks file(s); give the two to compare")
    loaded = load_ranks({file: file for file in files})
    first, second = (loaded[file] for file in files)
    unknown = bool(request.densities) and request.train_share is None
    betas = _betas(request, compare.train_share_of(first) if unknown else None)
    names = shared.system_names(files, request.names)
    return compare.compare_ranks(
        first, second, betas, request.metric, request.level, (names[0], names[1])
    )


def _compare_values(request: SimpleNamespace) -> Comparison:
    from kgtrec.study.openworld import compare

    questions, answers = request.questions, request.answers
    if questions is None or answers is None:
        raise UsageError(
            "--values needs --n-questions N and --n-answers N: the number of questions, and of "
            "test answers per question"
        )
    more = {"n_entities": request.entities} if request.entities else {}
    return compare.compare_values(
        request.values,
        questions,
        answers,
        _betas(request),
        metric=request.metric,
        level=request.level,
        **more,
    )


def _study_report(size: str, seed: int) -> Report:
    from kgtrec import plots
    from kgtrec.study.openworld import experiment
    from kgtrec.study.openworld.experiment import family_study

    of_paper: dict[str, Any] = {"families": 20, "densities": experiment.DENSITIES}
    study = family_study(seed, **(of_paper if size == "paper" else {}))
    figures = {"plot": lambda: plots.sparse_full(study.panels)}
    forms = {"json": study.table().to_json}
    return Report(lambda: str(study), None, study.points(), forms, figures=figures)
