"""``kgtrec align``: entity alignment, ranked in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._ranks import FILES, output_files
from kgtrec.cli._report import Command, Report
from kgtrec.errors import about

if TYPE_CHECKING:
    from kgtrec.graph.labels import Labels
    from kgtrec.study.alignment import SizeExperiment

SIMILARITIES = ("cosine", "dot", "l2", "l1")
ARRAYS = ("left", "right", "matrix")


@click.command(cls=Command)
@shared.reads("--left", "Embeddings of the left graph, .npy (entities, dim).")
@shared.reads("--right", "Embeddings of the right graph, likewise.")
@shared.reads(
    "--matrix", "Instead of embeddings: similarities, .npy (left, right); higher is more similar."
)
@shared.reads(
    "--pairs",
    "Test alignments, lines left<TAB>right: row numbers from 0, or labels.",
    required=True,
)
@shared.reads("--left-labels", "Labels of the left entities, one per line, in row order.")
@shared.reads("--right-labels", "Labels of the right entities, one per line, in row order.")
@shared.choice(
    "--similarity",
    SIMILARITIES,
    "Similarity of embeddings; l2 and l1 are minus the distance.",
    default="cosine",
)
@shared.option(
    "--csls",
    "Neighbours for cross-domain similarity local scaling; 10 is usual, 0 is none.",
    type=shared.Count(0),
    default=0,
    metavar="K",
)
@shared.choice(
    "--among",
    ["test", "all"],
    "Candidates: the entities of the test alignments, or all entities of the other graph "
    "(Berrendorf et al. 2020, sections 1 and 3.2).",
    default="test",
)
@shared.reads("--heads", "Instead of --among: left candidates, one per line, as in --pairs.")
@shared.reads("--tails", "Instead of --among: right candidates, likewise.")
@shared.sides("head: the left entity is asked for; tail: the right one.")
@shared.ranking_files(required=False)
@shared.option(
    "--other others",
    "With --sizes: a name and the embeddings of another model of the same entities, for the same "
    "table and figure (Berrendorf et al. 2020, Figure 1). Repeatable.",
    multiple=True,
    nargs=3,
    type=(str, shared.READ, shared.READ),
    metavar="NAME LEFT RIGHT",
)
@shared.option(
    "--sizes",
    "Evaluate random parts of the test alignments instead, of these sizes, "
    "such as 100,1000,all; 'auto' chooses eight.",
    metavar="N,N,...",
)
@shared.choice(
    "--assign",
    ["mutual", "stable", "optimal"],
    "Assign one to one instead, and judge the pairs: those that are each other's best; or so that "
    "no two entities prefer each other; or with the largest sum of similarities.",
)
@shared.reads(
    "--dangling",
    "With --assign: left entities without a counterpart, one per line; they should have none.",
)
@shared.repeats(5)
@shared.seed("Seed of the parts.")
@shared.PLOT
@shared.form("table", "csv", "markdown", "latex", "json")
@shared.THREADS
@shared.STYLE
def command(**options: Any) -> Report:
    """Rank test alignments in both directions, among the entities of the test alignments, all
    entities of the other graph, or lists.

    MR and Hits@k depend on the number of candidates; --sizes shows how much. Compare AMR between
    test sets and choices of candidates. AMR is at least 2 / (n + 1), where every answer is first.
    Compare AMRI for models that are almost always right.

    \b
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv -o ranks.parquet
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv --csls 10 -o ranks.parquet
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv --among all -o ranks.parquet
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv --sizes 100,1000,all
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv --sizes 100,1000,all \\
        --other RDGCN zh2.npy en2.npy --plot sizes.pdf
    kgtrec align --left zh.npy --right en.npy --pairs test.tsv --csls 10 --assign stable
    """
    from kgtrec import plots
    from kgtrec.trec.files.run import check_tag

    check_tag(options["tag"])
    _check(options)
    loaded = _load(options)
    matrix = loaded["matrix"]
    model: dict[str, Any] = {
        "left": loaded["left"],
        "right": loaded["right"],
        "csls": options["csls"],
        "sides": options["sides"],
        "candidates": loaded["candidates"],
        "threads": options["threads"],
        "similarity": options["similarity"] if matrix is None else matrix,
    }
    with about(", ".join(options[name] for name in ARRAYS if options[name])):
        if options["assign"] is not None:
            return _assign(loaded, model, options)
        if options["sizes"] is None:
            return _align(loaded, model, options)
        experiments = {_name_of(options): _size_experiment(loaded, model, options)}
    for name, left, right in options["others"]:
        with about(f"{left}, {right}"):
            arrays = _load_other(left, right, loaded["sizes"])
            experiments[name] = _size_experiment(loaded, model | arrays, options)
    if len(experiments) == 1:
        (experiment,) = experiments.values()
        figures = {"plot": lambda: plots.alignment_sizes(experiment)}
        return Report.from_table(experiment.table(), figures=figures)
    tables = {name: experiment.table() for name, experiment in experiments.items()}
    figures = {"plot": lambda: plots.alignment_sizes(experiments)}
    return Report.from_files(tables, named="model", figures=figures)


def _name_of(options: dict[str, Any]) -> str:
    """Return the name of the first model: that of its file of left embeddings."""
    return Path(options["matrix"] if options["left"] is None else options["left"]).stem


def _size_experiment(
    loaded: dict[str, Any], model: dict[str, Any], options: dict[str, Any]
) -> SizeExperiment:
    """Evaluate a model on random parts of the test alignments; models get the same parts."""
    from kgtrec.study.alignment import size_experiment

    return size_experiment(
        loaded["pairs"],
        sizes=_parse_sizes(options["sizes"], len(loaded["pairs"])),
        repeats=options["repeats"],
        seed=options["seed"],
        **model,
    )


def _load_other(left: str, right: str, sizes: tuple[int, int]) -> dict[str, Any]:
    """Load the embeddings of another model; InputError for other numbers of entities."""
    from kgtrec.errors import refuse
    from kgtrec.scores.files import load_matrix

    arrays = {"left": load_matrix(left), "right": load_matrix(right)}
    for (name, array), path, due in zip(arrays.items(), (left, right), sizes, strict=True):
        if len(array) != due:
            hint = f"the first model has {due:,} {name} entities; give models of the same graphs"
            refuse(path, None, f"{len(array):,} rows", hint)
    return arrays


def _align(loaded: dict[str, Any], model: dict[str, Any], options: dict[str, Any]) -> Report:
    """Rank the alignments and report them with their files."""
    from kgtrec import align
    from kgtrec.study.alignment import alignment_questions

    labels = {name: loaded[name] for name in ("left_labels", "right_labels")}
    depth = options["run_depth"] if options["run"] else 20
    result = align(loaded["pairs"], **model, **labels, run_depth=depth)
    questions = None
    if options["qrels"]:
        questions = alignment_questions(
            loaded["pairs"],
            *loaded["sizes"],
            sides=options["sides"],
            candidates=loaded["candidates"],
            **labels,
        )
    files = output_files(result, questions, {name: options[name] for name in FILES}, options)
    forms = {"csv": result.to_csv, "markdown": result.to_markdown, "latex": result.to_latex}
    return Report(lambda: str(result), result.to_dict, forms=forms, files=files)


def _assign(loaded: dict[str, Any], model: dict[str, Any], options: dict[str, Any]) -> Report:
    """Assign one to one; print the measures of sets, and those of abstention."""
    from kgtrec.study import assign

    for name in ("sides", "candidates", "threads"):
        del model[name]
    dangling = loaded["dangling"]
    sets = assign(loaded["pairs"], **model, method=options["assign"], dangling=dangling)
    tables = {"sets": sets.table()}
    if len(dangling):
        tables["abstention"] = sets.abstention()
    report = Report.from_tables(tables)
    report.rows = tables["sets"]
    return report


Rules = tuple[tuple[object, str], ...]
"""Conditions that refuse a command, and the texts that say so."""


def _check(options: dict[str, Any]) -> None:
    """Refuse options that are missing, contradict each other, or have no effect."""
    shared.refuse(*_input_rules(options), *_experiment_rules(options))


def _input_rules(options: dict[str, Any]) -> Rules:
    """Return the rules on a model's files and on candidates."""
    left, right, matrix = (options[name] is not None for name in ARRAYS)
    return (
        (
            not matrix and not (left and right),
            "give --left and --right embeddings, or a --matrix of similarities",
        ),
        (
            matrix and (left or right),
            "--matrix replaces --left and --right; give either the matrix or the embeddings",
        ),
        (
            matrix and shared.on_command_line("similarity"),
            "--similarity needs embeddings; a --matrix already contains similarities (higher is "
            "more similar; negate distances)",
        ),
        (
            (options["heads"] is None) != (options["tails"] is None),
            "give both lists of candidates, --heads FILE and --tails FILE, or none",
        ),
        (
            options["heads"] is not None and shared.on_command_line("among"),
            "--heads and --tails replace --among; leave it out",
        ),
    )


def _experiment_rules(options: dict[str, Any]) -> Rules:
    """Return the rules on the three experiments: ranks, --sizes and --assign."""
    left, _, matrix = (options[name] is not None for name in ARRAYS)
    ranks, assigned = options["sizes"] is None, options["assign"] is not None
    return (
        (
            ranks and any(map(shared.on_command_line, ("repeats", "seed"))),
            "--repeats and --seed set how --sizes draws random parts; add --sizes, or leave "
            "them out",
        ),
        (
            ranks and not assigned and options["output"] is None,
            "give a file for the ranks: -o FILE (or --sizes for the experiment)",
        ),
        (
            options["others"] and (ranks or matrix),
            "--other needs --sizes, and embeddings of all models; leave it out, or give them",
        ),
        (
            (left or matrix)
            and len({_name_of(options), *(name for name, _, _ in options["others"])})
            <= len(options["others"]),
            "two models have the same name; give each --other its own",
        ),
        (
            assigned and (not ranks or shared.on_command_line("sides")),
            "--assign is one experiment, from both sides; leave out --sizes and --sides",
        ),
        (
            assigned and (options["heads"] is not None or shared.on_command_line("among")),
            "--assign assigns the entities of the test alignments; leave out --among, --heads and "
            "--tails",
        ),
        (
            assigned and any(options[name] for name in ("output", "run", "qrels")),
            "--assign writes no ranks; leave out -o, --write-run and --write-qrels",
        ),
        (
            not ranks and any(options[name] for name in ("output", "run", "qrels")),
            "--sizes writes no ranks; leave out -o, --write-run and --write-qrels",
        ),
        (
            ranks and shared.on_command_line("plot"),
            "--plot needs --sizes; `kgtrec plot` draws files of ranks",
        ),
    )


def _load(options: dict[str, Any]) -> dict[str, Any]:
    """Read all files: arrays, labels (None if not given), sizes and pairs of row numbers."""
    from kgtrec.graph.id_files import read_labels, read_names, read_pairs
    from kgtrec.graph.labels import Labels
    from kgtrec.scores.files import load_matrix

    loaded: dict[str, Any] = {
        name: None if options[name] is None else load_matrix(options[name]) for name in ARRAYS
    }
    matrix = loaded["matrix"]
    sizes = matrix.shape if matrix is not None else (len(loaded["left"]), len(loaded["right"]))
    loaded["sizes"] = sizes
    names: list[Labels] = []
    for key, size in zip(("left_labels", "right_labels"), sizes, strict=True):
        path = options[key]
        names.append(Labels.decimal(size) if path is None else read_names(path, size))
        loaded[key] = None if path is None else names[-1]
    loaded["pairs"] = read_pairs(options["pairs"], *names)
    path = options["dangling"]
    loaded["dangling"] = [] if path is None else read_labels(path, names[0])[0].tolist()
    loaded["candidates"] = options["among"]
    if options["heads"] is not None:
        paths = (options["heads"], options["tails"])
        loaded["candidates"] = [
            read_labels(path, labels)[0] for path, labels in zip(paths, names, strict=True)
        ]
    return loaded


def _parse_sizes(text: str, n_pairs: int) -> list[int] | None:
    return None if text == "auto" else shared.parse_counts("--sizes", text, {"all": n_pairs})
