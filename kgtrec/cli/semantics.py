"""``kgtrec semantics``: Sem@k, how many of the best candidates fit the relation at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._output import echo, note, rendered, warn
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec.questions.api import Graph
    from kgtrec.study.semantics import FittingEntities


@click.command(short_help="Sem@k: how many of the best candidates fit the relation at all.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@shared.GRAPH
@shared.split("Split whose questions the runs answer.")
@shared.CONTEXT
@click.option(
    "--k", "cutoffs", default="1,3,10", show_default=True, metavar="K,K,...",
    help="How many of the best candidates are looked at.",
)  # fmt: skip
@click.option(
    "--observed", metavar="SPLITS",
    help="A candidate fits if it stands on that side of the relation in these splits, as "
    "train,valid.  [default: train]",
)  # fmt: skip
@click.option(
    "--type-constraints", metavar="FILE", help="Or if OpenKE's type_constrain.txt lists it."
)
@click.option(
    "--entity-types", metavar="FILE",
    help="Or if it is of the type that --relation-types requires: lines entity<TAB>type...",
)  # fmt: skip
@click.option(
    "--relation-types", metavar="FILE",
    help="Lines relation<TAB>type of its heads<TAB>type of its tails.",
)  # fmt: skip
@shared.QUESTION_NAMES
@shared.intervals("questions", 2000)
@shared.form("table", "csv", "tsv", "markdown", "latex", "json")
@shared.THREADS
def command(
    runs: tuple[str, ...], graph: str, split: str, context: str | None, cutoffs: str,
    observed: str | None, type_constraints: str | None, entity_types: str | None,
    relation_types: str | None, questions: str | None, ci: float, resamples: int, seed: int,
    form: str, threads: int | None,
) -> None:  # fmt: skip
    """Of the k best candidates of each question in RUNs, the share that fits the relation: a place
    where a place is asked for, right or wrong. Beside it stands what a random order would reach.

    Candidates that the graph knows as answers to the question are left out first, as in ranks; the
    answers that are asked for stay in.

    \b
    kgtrec semantics --graph FB15k-237 a.run b.run
    kgtrec semantics --graph FB15k-237 a.run --k 1,10,100 --type-constraints type_constrain.txt
    kgtrec semantics --graph FB15k-237 a.run --entity-types types.tsv --relation-types roles.tsv
    """
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.questions.api import read_graph
    from kgtrec.study.pooling.ranked_lists import system_names
    from kgtrec.study.pooling.seed_questions import read_question_ids
    from kgtrec.study.semantics import semantic_shares

    chosen = shared.cutoffs_of(cutoffs)
    resampling = Resampling(ci, resamples, seed)
    paths = dict(zip(system_names(runs), runs, strict=True))
    _check_sources(observed, type_constraints, entity_types, relation_types)
    loaded = read_graph(graph)
    fitting = _fitting(loaded, observed, type_constraints, entity_types, relation_types)
    names = None if questions is None else read_question_ids(questions, loaded)
    result = semantic_shares(
        paths, loaded.questions(split, context=context), fitting, cutoffs=chosen, names=names,
        resampling=resampling, threads=threads,
    )  # fmt: skip
    echo(str(result) if form == "table" else rendered(result.table(), form))
    for text in result.notes():
        (warn if "lists" in text else note)(text)


def _check_sources(
    observed: str | None, constraints: str | None, entities: str | None, relations: str | None
) -> None:
    if (entities is None) != (relations is None):
        raise UsageError("--entity-types and --relation-types go together; name both")
    if sum(source is not None for source in (observed, constraints, entities)) > 1:
        raise UsageError(
            "--observed, --type-constraints and --entity-types each say what fits; name one"
        )


def _fitting(
    graph: Graph, observed: str | None, constraints: str | None, entities: str | None,
    relations: str | None,
) -> FittingEntities:  # fmt: skip
    """What fits, from whichever source is named."""
    from kgtrec.study.semantics import fitting_by_constraints, fitting_by_types, fitting_observed

    if constraints is not None:
        return fitting_by_constraints(graph, constraints)
    if entities is not None and relations is not None:
        return fitting_by_types(graph, entities, relations)
    return fitting_observed(graph, observed or "train")
