"""``kgtrec openworld``: are two models different enough to trust, with answers missing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note
from kgtrec.cli._plot_style import style_option
from kgtrec.cli._process import keep_blas_single
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.study.openworld import Comparison, FamilyStudy
    from kgtrec.study.openworld.simulate import Simulation

SPARSITIES = (0.2, 0.5, 0.8)


@click.command(short_help="Can two models be told apart where answers are missing?")
@click.argument("files", nargs=-1, metavar="[A.parquet B.parquet]")
@click.option(
    "--sparsity", "sparsities", type=float, multiple=True, metavar="BETA",
    help="Share of the true answers that the test set lacks; repeatable. Default: 0.2, 0.5 and "
    "0.8, to see how much depends on it.",
)  # fmt: skip
@click.option(
    "--density", "densities", type=float, multiple=True, metavar="D",
    help="Instead: share of all true facts that the graph holds; repeatable.",
)  # fmt: skip
@click.option(
    "--train-share", type=float, metavar="ETA",
    help="With --density: share of the graph's facts outside the test set. Default: as in the "
    "ranks files.",
)  # fmt: skip
@click.option(
    "--values", type=float, nargs=2, metavar="A B",
    help="Two published values instead of files; needs --questions and --answers.",
)  # fmt: skip
@click.option(
    "--questions", type=int, metavar="N",
    help="With --values: number of questions; with --figure simulated: of each point [500].",
)  # fmt: skip
@click.option(
    "--answers", type=float, metavar="N",
    help="With --values: test answers a question has on average (test triples / questions); with "
    "--figure: a whole number of them [43].",
)  # fmt: skip
@click.option(
    "--entities",
    type=int,
    metavar="N",
    help="With --values, --figure expected and simulated: entities of the graph [14505].",
)
@click.option(
    "-m", "--metric", default="mrr", show_default=True, metavar="NAME",
    help="mrr, hits@10, log_mrr, p_mrr@0.5, ...: averaged inside a question first.",
)  # fmt: skip
@click.option(
    "--level", type=float, default=0.05, show_default=True, metavar="P",
    help="Probability of the wrong order that you put up with.",
)  # fmt: skip
@click.option(
    "--study", type=click.Choice(["small", "paper"]),
    help="No models of yours: show sparse against full metrics on generated family trees, in "
    "seconds, or at the paper's size in minutes.",
)  # fmt: skip
@shared.seed("Of --study, and of --figure simulated.")
@shared.form(
    "text", "json", "csv", text="csv: one row for each sparsity, or checkpoint of the study."
)
@click.option(
    "--figure", type=click.Choice(["expected", "approximation", "simulated"]),
    help="Instead, with --plot: against the strength of a model at several sparsities, a metric's "
    "exact expectation; the MRR's beside its logarithmic approximation; or simulated questions "
    "beside both, with bands of two standard errors (Yang et al., Figure 1; csv and json too).",
)  # fmt: skip
@click.option(
    "--correlation", "correlations", type=float, multiple=True, metavar="RHO",
    help="With --figure simulated: of what is missing and what is predicted; several have a panel "
    "a sparsity (Figure 2).  [default: 0]",
)  # fmt: skip
@shared.PLOT
@style_option
def command(**options: Any) -> None:
    """Are my two models' metrics different enough to trust, where answers are missing?

    A test set lacks true answers. Models that predict those are punished, so that metrics saturate,
    and the weaker of two models may come out ahead (Yang et al. 2022). Given two files of ranks and
    how sparse the test set may be, this says what difference complete labels would show, how likely
    the order is wrong, how many questions it would take, and when the theory does not fit.

    \b
    kgtrec openworld a.parquet b.parquet --sparsity 0.3 --sparsity 0.6
    kgtrec openworld a.parquet b.parquet --density 0.7 --format json
    kgtrec openworld --values 0.190 0.193 --questions 500 --answers 28 --sparsity 0.35
    kgtrec openworld --study small --plot curves.pdf
    kgtrec openworld --figure expected -m hits@10 --plot expected.pdf
    kgtrec openworld --figure approximation --sparsity 0.1 --sparsity 0.5 --plot bound.pdf
    kgtrec openworld --figure simulated --plot figure1.pdf --format csv > figure1.csv
    kgtrec openworld --figure simulated --correlation -0.1 --correlation 0 \\
        --correlation 0.1 --correlation 0.2 --plot figure2.pdf
    """
    request = _Request(**options)
    _refuse(request.correlations and request.figure != "simulated", "--correlation",
            "goes with --figure simulated")  # fmt: skip
    if request.study is not None:
        keep_blas_single()
    if request.plot is not None:
        from kgtrec.plots.style import check_plot

        check_plot(request.plot)
    if request.figure is not None:
        _draw_figure(request)
    elif request.study is not None:
        _refuse(request.files or request.values, "--study",
                "compares models of its own: leave files and values out")  # fmt: skip
        _refuse_numbers(request)
        _refuse(request.sparsities or request.densities, "--study",
                "removes facts of its own: leave --sparsity and --density out")  # fmt: skip
        _show_study(_run_study(request.study, request.seed), request.form, request.plot)
    elif request.values is not None:
        _refuse(request.files, "--values",
                "and files are two ways of saying the same: give one of them")  # fmt: skip
        _show(_of_values(request, request.values), request.form, request.plot)
    elif request.files:
        _refuse_numbers(request)
        _show(_of_files(request), request.form, request.plot)
    else:
        raise UsageError(
            "nothing to compare; name two ranks files, or give --values A B, or --study small"
        )


@dataclass(frozen=True)
class _Request:
    """What was typed, by the names of the options."""

    files: tuple[str, ...]
    sparsities: tuple[float, ...]
    densities: tuple[float, ...]
    train_share: float | None
    values: tuple[float, float] | None
    questions: int | None
    answers: float | None
    entities: int | None
    metric: str
    level: float
    study: str | None
    seed: int
    form: str
    figure: str | None
    correlations: tuple[float, ...]
    plot: str | None

    def betas(self, train_share: float | None = None) -> tuple[float, ...]:
        """The sparsities that are asked about; a share of the ranks' own serves densities."""
        share = train_share if self.train_share is None else self.train_share
        return _sparsities(self.sparsities, self.densities, share)


def _draw_figure(request: _Request) -> None:
    """A figure of formulas or simulations."""
    form, plot = request.form, request.plot
    _refuse(request.files or request.values or request.study, "--figure",
            "is of formulas: leave files, --values and --study out")  # fmt: skip
    betas = request.betas() if request.sparsities or request.densities else ()
    if request.figure == "simulated":
        _refuse(plot is None and form == "text", "--figure", "needs --plot FILE, or --format csv")
        _show_simulated(_simulated(request, betas), request.metric, form, plot)
    else:
        _refuse(plot is None, "--figure", "needs --plot FILE")
        _refuse(request.questions, "--questions", "goes with --values or --figure simulated")
        _save(_formula(request, betas), str(plot))
    if plot is not None:
        note(f"wrote {plot}")


def _refuse(condition: object, option: str, text: str) -> None:
    if condition:
        raise UsageError(f"{option} {text}")


def _refuse_numbers(request: _Request) -> None:
    """What files and the study tell themselves, and would pass over."""
    for option in ("questions", "answers", "entities"):
        _refuse(
            getattr(request, option) is not None, f"--{option}", "goes with --values or --figure"
        )


def _of_files(request: _Request) -> Comparison:
    from kgtrec.cli._warnings import warn_of_ranks
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.openworld.compare import compare_ranks, short_names, train_share_of

    files = request.files
    if len(files) != 2:
        raise UsageError(f"{len(files)} ranks file(s) given; name the two that are to be compared")
    first, second = (Ranks.load(file) for file in files)
    warn_of_ranks(dict(zip(files, (first, second), strict=True)))
    unknown = bool(request.densities) and request.train_share is None
    betas = request.betas(train_share_of(first) if unknown else None)
    return compare_ranks(first, second, betas, request.metric, request.level, short_names(*files))


def _of_values(request: _Request, values: tuple[float, float]) -> Comparison:
    from kgtrec.study.openworld.compare import compare_values
    from kgtrec.study.openworld.model import ENTITIES

    questions, answers = request.questions, request.answers
    if questions is None or answers is None:
        raise UsageError(
            "--values needs --questions N and --answers N: how many questions, and how many test "
            "answers each has on average"
        )
    return compare_values(
        values, questions, answers, request.betas(), request.entities or ENTITIES,
        request.metric, request.level,
    )  # fmt: skip


def _sparsities(
    sparsities: tuple[float, ...], densities: tuple[float, ...], train_share: float | None
) -> tuple[float, ...]:
    from kgtrec.study.openworld.model import sparsity_of_density

    if sparsities and densities:
        raise UsageError("--sparsity and --density say the same in two ways; give one of them")
    if not densities:
        _refuse(train_share is not None, "--train-share", "belongs to --density; give that too")
        return sparsities or SPARSITIES
    if train_share is None:
        raise UsageError("--density needs --train-share here: the share of facts outside the test")
    return tuple(sparsity_of_density(density, train_share) for density in densities)


def _run_study(size: str, seed: int) -> FamilyStudy:
    from kgtrec.study.openworld.experiment import DENSITIES, family_study

    if size == "paper":
        return family_study(seed, families=20, densities=DENSITIES)
    return family_study(seed)


def _show_study(study: FamilyStudy, form: str, plot: str | None) -> None:
    if plot is not None:
        from kgtrec.plots.openworld import sparse_full

        _save(sparse_full(study.panels), plot)
    table = study.points() if form == "csv" else study.table()
    texts = {"csv": table.to_csv, "json": table.to_json, "text": lambda: str(study)}
    echo(texts[form]())


def _show(result: Comparison, form: str, plot: str | None) -> None:
    from kgtrec._internal.table import dump_json
    from kgtrec.study.openworld.report import outlook_table

    if plot is not None:
        from kgtrec.plots.openworld import comparison

        _save(comparison(result), plot)
    texts = {
        "csv": lambda: outlook_table(result).to_csv(),
        "json": lambda: dump_json(result.to_dict()),
        "text": lambda: str(result),
    }
    echo(texts[form]())


def _simulated(request: _Request, betas: tuple[float, ...]) -> list[Simulation]:
    """A simulation for each correlation: what is not given is as in the paper."""
    from kgtrec.study.openworld.model import ENTITIES
    from kgtrec.study.openworld.simulate import BETAS, N_ANSWERS, REPEATS, simulate

    n_answers = _whole_answers(request, N_ANSWERS)
    return [
        simulate(
            betas=betas or BETAS, n_answers=n_answers, rho=rho, metrics=(request.metric,),
            repeats=request.questions or REPEATS, n_entities=request.entities or ENTITIES,
            seed=request.seed,
        )
        for rho in request.correlations or (0.0,)
    ]  # fmt: skip


def _show_simulated(runs: list[Simulation], metric: str, form: str, plot: str | None) -> None:
    from kgtrec._internal.table import dump_json

    if plot is not None:
        from kgtrec.plots.openworld import simulated

        _save(simulated(runs if len(runs) > 1 else runs[0], metric), plot)
    if form == "text":
        return
    from kgtrec.study.openworld.simulation_table import simulation_table

    table = simulation_table(runs, metric)
    if form == "csv":
        echo(table.to_csv())
    else:
        rows = [dict(zip(table.keys, row, strict=True)) for row in table.rows]
        echo(dump_json(rows))


def _formula(request: _Request, betas: tuple[float, ...]) -> Figure:
    """A figure of formulas: what is not given is as in the paper."""
    from kgtrec.plots.openworld import approximation_quality, expected_metric
    from kgtrec.study.openworld.model import ENTITIES
    from kgtrec.study.openworld.simulate import BETAS, N_ANSWERS

    n_answers = _whole_answers(request, N_ANSWERS)
    if request.figure == "expected":
        n_entities = request.entities or ENTITIES
        return expected_metric(request.metric, betas or (0.0, *BETAS), n_answers, n_entities)
    _refuse(request.metric != "mrr", "--figure approximation", "is of MRR; leave --metric out")
    return approximation_quality(betas or BETAS, n_answers)


def _whole_answers(request: _Request, default: int) -> int:
    number = default if request.answers is None else int(request.answers)
    whole = request.answers is None or request.answers == number
    _refuse(not whole, "--figure", "takes whole --answers")
    return number


def _save(figure: Figure, path: str) -> None:
    from kgtrec.plots.style import save

    save(figure, path)
