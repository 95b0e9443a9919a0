"""The parts of ``kgtrec openworld`` about closed worlds: writing them, and hiding their facts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from kgtrec.cli import _options as shared
from kgtrec.cli._report import File, Report
from kgtrec.errors import UsageError, about

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.openworld import CheckpointStudy

TREE, HIDE, CHECKPOINTS = "--family-tree", "--hide", "--checkpoints"
SIZES = ("families", "people", "depth", "width")

WRITING = shared.all_of(
    shared.option(
        "--family-tree tree",
        "Instead of comparing models: write the closed family-tree graph of the paper (Yang et "
        "al., appendix A.3) to this new folder, split as there.",
        type=shared.LATER,
        metavar="FOLDER",
    ),
    shared.option("--families", "Families of the tree.", type=shared.Count(), default=20),
    shared.option("--people", "People of each family.", type=shared.Count(2), default=300),
    shared.option(
        "--generations depth", "Generations below the founders.", type=shared.Count(), default=3
    ),
    shared.option(
        "--children width", "Most children of a couple.", type=shared.Count(), default=20
    ),
    shared.option(
        "--hide",
        "Hide facts of this closed graph (such as a family tree) at each --density, and write a "
        "folder per density with two graphs, sparse and full, that differ only in their test sets. "
        "Default densities: 0.95, 0.85, 0.75, 0.65 (A.3).",
        type=shared.READ,
        metavar="GRAPH",
    ),
    shared.option(
        "--hide-by",
        "Ranks of a model on the graph full of a folder that --hide wrote, with --sides tail: hide "
        "what it ranks worst (section 6.2). --hide is then that folder.",
        type=shared.READ,
        metavar="RANKS",
    ),
    shared.option(
        "--checkpoints",
        "Show sparse against full metrics of the models that this file lists (Yang et al., Figures "
        "3 to 5 and 8 to 14), and the pairs that the sparse ones misorder. Its lines are "
        "model<TAB>step<TAB>density<TAB>full ranks<TAB>sparse ranks, optionally <TAB>removal; "
        "paths are relative to it. With --measure one metric, by default six.",
        type=shared.READ,
        metavar="FILE",
    ),
    shared.draws(
        "--plot-pairs",
        "With --checkpoints: draw the two models of each world with the most misordered pairs, and "
        "the checkpoints that overtake (Figure 4).",
    ),
    shared.option(
        "--valid-share",
        "Share of the facts outside the test set that the valid split gets [0.1]; A.3 has no valid "
        "split, which is 0.",
        type=shared.Number(0, 1, max_open=True),
        metavar="V",
    ),
    shared.option(
        "-o --output",
        "With --hide: new folder of the worlds; of the one world with --hide-by.",
        type=shared.LATER,
        metavar="FOLDER",
    ),
)


def write_tree(request: SimpleNamespace) -> Report:
    """Draw a family tree and write its graph."""
    from kgtrec.study import family_tree
    from kgtrec.study.openworld import worlds

    _keep_only(TREE, "tree", *SIZES, "train_share", "valid_share", "seed")
    worlds.check_new_folder(request.tree)
    sizes = dict(zip(SIZES, (getattr(request, name) for name in SIZES), strict=True))
    tree = family_tree(**sizes, seed=request.seed)
    world = worlds.split_family_tree(tree, **_shares(request), seed=request.seed)
    table = worlds.tree_table(tree, world)
    files: list[File] = [(request.tree, world.write_closed)]
    return Report.from_table(table, files=files, content="a closed graph")


def hide(request: SimpleNamespace) -> Report:
    """Hide facts at each density, or those that a model ranks worst, and write the worlds."""
    from kgtrec import Ranks, read_graph
    from kgtrec.study.openworld import worlds
    from kgtrec.study.openworld.experiment import DENSITIES

    if request.output is None:
        raise UsageError("--hide writes folders; give a new folder as --output")
    worlds.check_new_folder(request.output)
    if request.hide_by is not None:
        _keep_only("--hide-by", "hide", "hide_by", "output", "seed")
        ranks = Ranks.load(request.hide_by)
        with about(request.hide_by):
            hidden = {"": worlds.hide_predicted_facts(request.hide, ranks, seed=request.seed)}
    else:
        _keep_only(
            HIDE, "hide", "output", "densities", "train_share", "valid_share", "questions", "seed"
        )
        graph = read_graph(request.hide)
        settings = {**_shares(request), "n_questions": request.questions, "seed": request.seed}
        hidden = {
            f"/d{density:g}": worlds.hide_facts(graph, density, **settings)
            for density in request.densities or DENSITIES
        }
    files: list[File] = [(f"{request.output}{name}", world.write) for name, world in hidden.items()]
    table = worlds.worlds_table([*hidden.values()])
    return Report.from_table(table, files=files, content="graphs sparse and full of each world")


def _shares(request: SimpleNamespace) -> dict[str, float]:
    """Return the shares that are typed; the library knows the others."""
    shares = {"train_share": request.train_share, "valid_share": request.valid_share}
    return {name: share for name, share in shares.items() if share is not None}


def _keep_only(mode: str, *names: str) -> None:
    """Refuse typed options, and files, that a mode does not use."""
    import click

    ctx = click.get_current_context()
    if ctx.params["files"]:
        raise UsageError(f"{mode} compares no two models: omit the files")
    unused = {str(parameter.name) for parameter in ctx.command.params} - {
        *names,
        "files",
        "form",
        "quiet",
    }
    shared.leave_out((True, sorted(unused), f"{{}}: no effect with {mode}; leave out"))


def compare_checkpoints(request: SimpleNamespace) -> Report:
    """Compare sparse with full values of the checkpoints that a file lists."""
    from kgtrec import plots
    from kgtrec.study.openworld import compare_checkpoints, read_checkpoints

    _keep_only(CHECKPOINTS, "checkpoints", "metric", "plot", "plot_pairs")
    rows = read_checkpoints(request.checkpoints)
    metrics = {"metrics": (request.metric,)} if shared.on_command_line("metric") else {}
    study = compare_checkpoints(rows, **metrics)
    figures = {
        "plot": lambda: plots.sparse_full(study.panels),
        "plot_pairs": lambda: plots.overtaking(study.panels, study.metrics[0]),
    }
    return Report(lambda: str(study), lambda: _study_data(study), study.points(), figures=figures)


def _study_data(study: CheckpointStudy) -> dict[str, object]:
    """Return the tables of a study: per panel and metric, per checkpoint, and per pair."""
    tables = {"panels": study.table(), "checkpoints": study.points()}
    pairs = {metric: _list_rows(study.overtaking(metric)) for metric in study.metrics}
    return {name: _list_rows(table) for name, table in tables.items()} | {"overtaking": pairs}


def _list_rows(table: Table) -> list[dict[str, object]]:
    return [dict(zip(table.keys, row, strict=True)) for row in table.rows]
