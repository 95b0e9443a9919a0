"""How parts of a ranking become one: ranges of the same rows, then all rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kgtrec.cluster.part import Inputs, answer_scores, partial
from kgtrec.cluster.question_store import gather
from kgtrec.ranking import partial as parts_of
from kgtrec.ranking.partial import PartialRanks, Task, assemble
from kgtrec.scores.mapped_files import guarded_maps

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.trec.files.run import Run

__all__ = ["finish", "merge", "perform"]


def perform(
    rows: tuple[int, int], ranges: Sequence[tuple[int, int]], inputs: Inputs
) -> PartialRanks:
    """Rank a block of rows among adjacent ranges of entities, one after another."""
    answers = None
    with guarded_maps(inputs.files.place if inputs.files else inputs.folder):
        if len(ranges) > 1 or ranges[0] != (0, inputs.store().n_labels):
            everything = Task(*rows, 0, inputs.store().n_labels)
            answers = answer_scores(everything, inputs)[0]
        parts = (partial(Task(*rows, *entities), inputs, answers) for entities in ranges)
        return merge(parts, inputs)


def merge(parts: Iterable[PartialRanks], inputs: Inputs) -> PartialRanks:
    """`kgtrec.ranking.partial.merge`, with the order of names as the store has it."""
    store = inputs.store()
    if store.ordered:
        return parts_of.merge(parts, None)
    return parts_of.merge(parts, lambda ids: gather(store.array("position"), ids))


def finish(parts: Sequence[PartialRanks], inputs: Inputs) -> tuple[Ranks, Run]:
    """Ranks and run, the very ones of one pass, from parts with all entities of disjoint rows.

    Raises
    ------
    UsageError
        A gap, an overlap, a part of the entities only, or parts of different dtypes.
    """
    store = inputs.store()
    return assemble(
        parts,
        store.plan(),
        store.questions(mapped=False),
        rows=store.rows,
        higher_is_better=inputs.higher_is_better,
    )
