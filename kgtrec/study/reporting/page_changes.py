"""Which answers change from one model of the page to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgtrec.study.changes import changes_of_pairs

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.changes import AnswerChanges
    from kgtrec.trec.files.columns import RunColumns

__all__ = ["changes_data"]

LARGEST = 25


def changes_data(
    systems: Mapping[str, Ranks], runs: Mapping[str, RunColumns], largest: int = LARGEST
) -> list[dict[str, Any]]:
    """From each model to each that comes after it: nothing for one model alone.

    Parameters
    ----------
    systems : mapping of str to Ranks
        Models that answered the same questions.
    runs : mapping of str to RunColumns
        Of some of the models.
    largest : int
        Instances whose ranks change most.

    Returns
    -------
    list of dict
        A dict a pair: ``models`` (places of both) and tables, as a list of rows each: ``hits``,
        ``best`` (None unless both have runs) and ``largest``, which `AnswerChanges` defines.
    """
    if len(systems) < 2:
        return []
    labelled = all(ranks.entity_labels is not None for ranks in systems.values())
    place = {name: number for number, name in enumerate(systems)}
    return [
        {"models": [place[name] for name in changes.names], **_tables(changes, largest)}
        for changes in changes_of_pairs(systems, runs if labelled else None)
    ]


def _tables(changes: AnswerChanges, largest: int) -> dict[str, Any]:
    best = changes.best_table()
    return {
        "hits": _rows(changes.table()),
        "best": None if best is None else _rows(best),
        "largest": _rows(changes.largest(largest)),
    }


def _rows(table: Table) -> list[list[Any]]:
    return [list(row) for row in table.rows]
