"""Results of stored ranks: trec_eval's measures by blocks of questions, sums of mapped columns.

Sums run in the order of relations, of some instances at a time: of micro and macro means no more is
in memory than that order, and the best answer of each question. Other measures (spreads, weights,
expected and stratified values) look at a few columns of all instances. Runs never are in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.cluster.question_store import Store
from kgtrec.cluster.write_blocks import StoredRanks
from kgtrec.measures import Measure
from kgtrec.measures.rank_metrics import SPREAD_ROWS
from kgtrec.ranking.parquet import ROW_GROUP
from kgtrec.results.evaluate import checked_values
from kgtrec.results.result import Result

__all__ = ["result_bytes", "stored_result"]

# Bytes, measured and rounded up: of a block of instances, of an instance (for means of micro and
# macro ranks, for other measures), of an entity.
_BLOCK, _SUMMED, _INSTANCE, _ENTITY = 300, 80, 100, 64


def result_bytes(store: Store, measures: list[Measure]) -> int:
    """What this process needs for the result of stored ranks, besides what it always needs."""
    n = store.n_instances
    each = _SUMMED if all(map(_is_summed, measures)) else _INSTANCE
    return _BLOCK * min(n, ROW_GROUP) + each * n + _ENTITY * store.n_labels


def _is_summed(measure: Measure) -> bool:
    """Whether it is made of a mean of values of some instances at a time."""
    if measure.is_trec:
        return True
    streamed = measure.averaging in ("micro", "macro", "macro_relation")
    return streamed and measure.rank_type != "expected" and measure.row[0] not in SPREAD_ROWS


def stored_result(stored: StoredRanks, folder: Path, measures: list[Measure]) -> Result:
    """The `Result` of `kgtrec.results.evaluate.checked_result`, without questions and run.

    Parameters
    ----------
    stored : StoredRanks
        With a run of at least 20 candidates a question.
    folder : Path
        There; columns of the ranks stand in it as long as the result is of use.
    measures : list of Measure
    """
    ranks = stored.mapped(folder)
    values: dict[str, list[npt.NDArray[Any]]] = {}
    agreement: dict[str, float] = {}
    for run, answers, rows in stored.runs():
        some, differences = checked_values(ranks.subset(rows), run, answers, measures)
        for name, array in some.items():
            values.setdefault(name, []).append(array)
        for name, difference in differences.items():
            agreement[name] = max(agreement.get(name, 0.0), difference)
    ranks.manifest["trec_agreement"] = agreement
    whole = {name: np.concatenate(arrays) for name, arrays in values.items()}
    return Result(ranks, trec_values=whole, agreement=agreement, measures=measures)
