"""``kgtrec semantics``: Sem@k, how many of the best candidates fit the relation at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report, warning

if TYPE_CHECKING:
    from kgtrec import Graph
    from kgtrec.study import semantics


@click.command(cls=Command)
@shared.files("runs", "RUN...")
@shared.GRAPH
@shared.split("Split whose questions the runs answer.")
@shared.CONTEXT
@shared.option(
    "--k cutoffs", "Numbers of best candidates to evaluate.", default="1,3,10", metavar="K,K,..."
)
@shared.option(
    "--observed",
    "A candidate fits if it is on that side of the relation in these "
    "splits, such as train,valid.  [default: train]",
    metavar="SPLITS",
)
@shared.reads("--type-constraints", "A candidate fits if OpenKE's type_constrain.txt lists it.")
@shared.reads(
    "--entity-types",
    "A candidate fits if it has the type in --relation-types: lines entity<TAB>type...",
)
@shared.reads("--relation-types", "Lines relation<TAB>type of its heads<TAB>type of its tails.")
@shared.QUESTION_NAMES
@shared.names("run", "the file name without folder and ending")
@shared.intervals("questions", 2000)
@shared.FORMAT
@shared.THREADS
def command(runs: tuple[str, ...], graph: str, cutoffs: str, **options: Any) -> Report:
    """Print the share of the k best candidates in RUNs that fit the relation: a place if a place is
    asked for, right or wrong. Also prints the share in a random order.

    Omits other answers that the graph knows, as in ranks. The evaluated answers stay in the lists.

    \b
    kgtrec semantics --graph FB15k-237 a.run b.run
    kgtrec semantics --graph FB15k-237 a.run --k 1,10,100 --type-constraints type_constrain.txt
    kgtrec semantics --graph FB15k-237 a.run --entity-types types.tsv --relation-types roles.tsv
    """
    from kgtrec import read_graph
    from kgtrec.study import semantics
    from kgtrec.study.pooling.seeds import read_question_ids

    chosen, resampling = shared.parse_cutoffs(cutoffs), shared.resampling(options)
    paths = dict(zip(shared.run_names(runs, options["names"]), runs, strict=True))
    sources = [options[name] for name in ("observed", "type_constraints", "entity_types")]
    shared.refuse(
        (
            (options["entity_types"] is None) != (options["relation_types"] is None),
            "--entity-types and --relation-types need each other; give both",
        ),
        (
            sum(source is not None for source in sources) > 1,
            "--observed, --type-constraints and --entity-types all define what fits; give one",
        ),
    )
    loaded = read_graph(graph)
    fitting = _find_fitting(loaded, options)
    names = None
    if options["questions"] is not None:
        names = read_question_ids(options["questions"], loaded)
    result = semantics.semantic_shares(
        paths,
        loaded.questions(options["split"], context=options["context"]),
        fitting,
        cutoffs=chosen,
        names=names,
        resampling=resampling,
        threads=options["threads"],
    )
    notes = [warning(text) if "lists" in text else text for text in result.notes()]
    return Report.from_table(result.table(), lambda: str(result), notes=notes)


def _find_fitting(graph: Graph, options: Mapping[str, Any]) -> semantics.FittingEntities:
    """Return the entities that fit each relation, from the source that the options name."""
    from kgtrec.study import semantics

    if options["type_constraints"] is not None:
        return semantics.fitting_by_constraints(graph, options["type_constraints"])
    if options["entity_types"] is not None:
        return semantics.fitting_by_types(graph, options["entity_types"], options["relation_types"])
    return semantics.fitting_observed(graph, options["observed"] or "train")
