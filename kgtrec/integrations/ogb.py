"""OGB: scores of answers and of their fixed negatives, by OGB's protocol or by kgtrec's.

Does not import OGB, and takes the same input as `ogb.linkproppred.Evaluator.eval`.

Examples
--------
>>> result = evaluate({"y_pred_pos": pos, "y_pred_neg": neg})      # doctest: +SKIP
>>> result["realistic.micro.mrr"], as_lists(result)["mrr_list"]    # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec._internal.arrays import Bools, Int64
from kgtrec.errors import InputError, UsageError, choose
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.scores.arrays import ScoreBlock, as_array, as_block, to_host

_HITS = (1, 3, 10)


def evaluate(
    predictions: Mapping[str, Any],
    *,
    protocol: str = "ogb",
    answers: Any = None,
    negatives: Any = None,
    side: str = "tail",
) -> Result:
    """Rank every answer among its negatives.

    Parameters
    ----------
    predictions : mapping
        ``y_pred_pos``, shape (n,), and ``y_pred_neg``, shape (n, negatives), as OGB's evaluator
        takes them: arrays of numpy or tensors on any device. Higher is better.
    protocol : {"ogb", "kgtrec"}
        "ogb": every column is a negative. So a negative that was drawn twice counts twice, and one
        that is the answer itself ties with it. "kgtrec": a candidate counts once.
    answers, negatives : array of int, shape (n,) and (n, negatives), optional
        Ids of the scored entities; "kgtrec" needs them to detect repeats.
    side : {"tail", "head"}
        Side that these questions ask.

    Returns
    -------
    Result
        Result for sampled candidates. Ties count half: OGB's ranks are the realistic ones.

    Raises
    ------
    InputError
        Missing arrays, arrays of wrong shapes, or NaN among the scores (OGB ranks a NaN first).
    UsageError
        An unknown protocol, or "kgtrec" without ids.
    """
    choose("protocol", protocol, ("ogb", "kgtrec"))
    choose("side", side, ("head", "tail"))
    missing = [name for name in ("y_pred_pos", "y_pred_neg") if name not in predictions]
    if missing:
        raise InputError(
            f"predictions lack {' and '.join(missing)}; pass the dictionary that OGB's evaluator "
            "takes, {'y_pred_pos': ..., 'y_pred_neg': ...}"
        )
    columns, dtype = _check_scores(predictions["y_pred_pos"], predictions["y_pred_neg"])
    counted = None
    if protocol == "kgtrec":
        counted = _mark_distinct(answers, negatives, columns[1].shape)
    greater, equal = _count(*columns, counted)
    n_negatives = np.full(len(greater), columns[1].shape[1], dtype=np.int64)
    candidates = 1 + (n_negatives if counted is None else counted.sum(axis=1))
    return Result(_ranks(greater, equal, candidates, side, protocol, dtype))


def as_lists(result: Result) -> dict[str, npt.NDArray[np.float32]]:
    """Return the values of OGB's evaluator, to the bit: ``mrr_list``, ``hits@1_list``, ...

    Parameters
    ----------
    result : Result
        From `evaluate`.
    """
    rank = result.ranks.rank("realistic").astype(np.float32)
    lists = {f"hits@{k}_list": (rank <= k).astype(np.float32) for k in _HITS}
    return lists | {"mrr_list": np.float32(1) / rank}


def _check_scores(positive: Any, negative: Any) -> tuple[tuple[Any, Any], str]:
    """Return both arrays and their dtype; InputError if shapes or dtypes do not fit."""
    blocks = as_block(positive, "y_pred_pos"), as_block(negative, "y_pred_neg")
    shapes = [tuple(block.shape) for block in blocks]
    if len(shapes[0]) != 1 or len(shapes[1]) != 2 or shapes[0][0] != shapes[1][0]:
        raise InputError(
            f"y_pred_pos has shape {shapes[0]} and y_pred_neg {shapes[1]}; expected (n,) and "
            "(n, negatives). (kgtrec does not evaluate data sets with one list of "
            "negatives for all edges, for which OGB computes Hits@K only.)"
        )
    if not shapes[0][0]:
        raise InputError("there are no predictions; y_pred_pos has shape (0,)")
    dtypes = [ScoreBlock.from_scores(block).dtype for block in blocks]
    if dtypes[0] != dtypes[1]:
        raise InputError(
            f"y_pred_pos has dtype {dtypes[0]} and y_pred_neg {dtypes[1]}; ties are exact only "
            "within one dtype; convert both to the same"
        )
    return blocks, dtypes[0]


def _count(positive: Any, negative: Any, counted: Bools | None) -> tuple[Int64, Int64]:
    """Count the negatives above each answer, and those tied with it: int64, shape (n,) each."""
    answer = ScoreBlock.from_scores(to_host(positive)).values_at(slice(None))
    greater, equal = np.zeros((2, len(answer)), dtype=np.int64)
    _refuse_nan(np.asarray(np.isnan(answer)), "y_pred_pos", 0)
    for piece in ScoreBlock.from_scores(negative).pieces():
        for row in range(0, len(piece), 1024):
            scores = piece.values_at(slice(row, row + 1024))
            low, high = piece.start + row, piece.start + row + len(scores)
            _refuse_nan(np.asarray(np.isnan(scores).any(axis=1)), "y_pred_neg", low)
            answer_scores = answer[low:high, None]
            mask = True if counted is None else counted[low:high]
            greater[low:high] = ((scores > answer_scores) & mask).sum(axis=1)
            equal[low:high] = ((scores == answer_scores) & mask).sum(axis=1)
    return greater, equal


def _refuse_nan(is_nan: Bools, name: str, first: int) -> None:
    """Raise InputError for the first NaN of an array's rows from number `first` on."""
    if is_nan.any():
        row = first + int(np.flatnonzero(is_nan)[0])
        raise InputError(
            f"{name} contains NaN in row {row}, which OGB would rank first; fix the model"
        )


def _mark_distinct(answers: Any, negatives: Any, shape: tuple[int, int]) -> Bools:
    """Mark negatives, bool (n, negatives): the first of each id, unless it is the answer."""
    if answers is None or negatives is None:
        raise UsageError(
            "protocol='kgtrec' counts every candidate once, and needs the ids: pass answers= of "
            "shape (n,) and negatives= of shape (n, negatives)"
        )
    answer_ids, ids = (
        as_array(to_host(values), name) if hasattr(values, "dtype") else np.array(values)
        for name, values in (("answers", answers), ("negatives", negatives))
    )
    are_integers = {answer_ids.dtype.kind, ids.dtype.kind} <= {*"iu"}
    if answer_ids.shape != shape[:1] or ids.shape != shape or not are_integers:
        raise InputError(
            f"answers have shape {answer_ids.shape} and dtype {answer_ids.dtype}, negatives "
            f"{ids.shape} and {ids.dtype}; expected ids of shape {shape[:1]} and {shape}, like "
            "the scores"
        )
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    first = np.ones(shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    counted = np.empty(shape, dtype=bool)
    np.put_along_axis(counted, order, first, axis=1)
    return counted & (ids != answer_ids[:, None])


def _ranks(
    greater: Int64, equal: Int64, candidates: Int64, side: str, protocol: str, dtype: str
) -> Ranks:
    """Make ranks in which every answer is the instance of a separate question."""
    n = len(greater)
    number, nothing = np.arange(n), np.zeros(n, dtype=np.int64)
    counts = {"greater": greater, "equal": equal, "candidates": candidates, "tied_ahead": nothing}
    columns = counts | {f"macro_{name}": values for name, values in counts.items()}
    columns |= {"triple": number, "question": number}
    columns |= {"side": nothing + (side == "tail")}
    columns |= dict.fromkeys(("relation", "given", "answer"), nothing)
    # Unknown here: all equal, so that weights by popularity have no effect.
    columns |= dict.fromkeys(("answer_popularity", "relation_popularity"), nothing + 1)
    flags = dict.fromkeys(("answer_nan", "macro_answer_nan"), np.zeros(n, dtype=bool))
    manifest = {
        "questions": {
            "sampled": True,
            "sides": side,
            "n_questions": n,
            "n_instances": n,
            "n_head_questions": n if side == "head" else 0,
            "protocol": protocol,
        },
        "scores": {"dtype": dtype, "higher_is_better": True, "nan": "error", "nan_count": 0},
    }
    return Ranks({**columns, **flags}, manifest)
