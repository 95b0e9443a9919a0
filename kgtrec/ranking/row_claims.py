"""Which rows of a ranking have their scores, and which are being ranked by calls under way."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from kgtrec.errors import InputError, UsageError
from kgtrec.scores.arrays import as_array
from kgtrec.scores.devices import to_host

__all__ = ["RowClaims", "as_index", "checked_rows", "is_run", "name_rows"]

Int64 = npt.NDArray[np.int64]


class RowClaims:
    """Every row is ranked once, however many threads bring it.

    Parameters
    ----------
    n_rows : int
    duplicates : {"error", "ignore"}
        What a row is that comes a second time.
    describe : function
        Names what a row asks, for messages.

    Attributes
    ----------
    scored : ndarray of bool, shape (n_rows,)
        Rows that are ranked.
    at_work : dict of object to ndarray of int64
        Rows that calls are ranking, by their claims. A call takes its own out when it leaves.
    """

    def __init__(self, n_rows: int, duplicates: str, describe: Callable[[int], str]) -> None:
        if duplicates not in ("error", "ignore"):
            raise UsageError(f"duplicates={duplicates!r} is unknown; choose 'error' or 'ignore'")
        self.scored = np.zeros(n_rows, dtype=bool)
        self.at_work: dict[object, Int64] = {}
        self._ignore, self._describe = duplicates == "ignore", describe
        self._finished, self._lock = False, Lock()

    def take(self, claim: object, rows: Int64) -> npt.NDArray[np.bool_]:
        """Claim rows that no other call may rank until the claim is taken out of `at_work`.

        Returns
        -------
        ndarray of bool, shape (len(rows),)
            Which of them are to be ranked now: all, unless duplicates are ignored.
        """
        with self._lock:
            if self._finished:
                raise UsageError("this ranker is finished; make a new one")
            new = np.ones(len(rows), dtype=bool) if is_run(rows) else self._first(rows)
            # Those at work first: a call marks its rows as scored before it leaves them.
            for other in list(self.at_work.values()):
                taken = np.isin(rows, other)
                if taken.any() and not self._ignore:
                    raise UsageError(
                        f"{name_rows(rows)}: another thread is ranking {name_rows(other)} now; "
                        "give every batch once"
                    )
                new &= ~taken
            again = self.scored[as_index(rows)]
            if again.any() and not self._ignore:
                row = int(rows[again][0])
                raise UsageError(
                    f"{name_rows(rows)} were given twice: row {row} ({self._describe(row)}) has "
                    "its scores already; give every batch once, or let what samplers repeat pass: "
                    "duplicates='ignore'"
                )
            new &= ~again
            self.at_work[claim] = rows if new.all() else rows[new]
            return new

    def _first(self, rows: Int64) -> npt.NDArray[np.bool_]:
        """Where each of several rows stands first."""
        first = np.zeros(len(rows), dtype=bool)
        first[np.unique(rows, return_index=True)[1]] = True
        if not self._ignore and not first.all():
            row = int(rows[~first][0])
            raise UsageError(
                f"row {row} ({self._describe(row)}) stands twice in one batch; give every row "
                "once, or let what samplers repeat pass: duplicates='ignore'"
            )
        return first

    def close(self) -> None:
        """No more rows; UsageError if some have no scores, or are being ranked now."""
        with self._lock:
            for rows in list(self.at_work.values()):
                raise UsageError(
                    f"another thread is ranking {name_rows(rows)} now; finish() when every "
                    "update() has returned"
                )
            missing = np.flatnonzero(~self.scored)
            if len(missing):
                ends = np.flatnonzero(np.diff(missing) > 1)
                last = missing[ends[0]] if len(ends) else missing[-1]
                raise UsageError(
                    f"{len(missing)} of {len(self.scored)} rows were never scored, the first of "
                    f"them rows {missing[0]} to {last} ({self._describe(int(missing[0]))}); "
                    "update() every batch before finish()"
                )
            self._finished = True


def checked_rows(rows: Any, n_rows: int) -> Int64:
    """Ids of rows, shape (n,); InputError if they are something else."""
    if isinstance(rows, range) and rows.step > 0 and 0 <= rows.start < rows.stop <= n_rows:
        return np.arange(rows.start, rows.stop, rows.step)  # asarray() goes number by number
    rows = to_host(rows)
    ids = as_array(rows, "rows") if hasattr(rows, "__dlpack__") else np.asarray(rows)
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
        raise InputError(
            f"rows have shape {ids.shape} and dtype {ids.dtype}; give a Batch of this ranker, or "
            "a list of row ids, one per row of scores (ranker.rows_of() finds those of triples)"
        )
    wrong = ids[(ids < 0) | (ids >= n_rows)]
    if len(wrong):
        raise InputError(f"rows hold {wrong[0]}, which is not the id of a row: there are {n_rows}")
    return ids.astype(np.int64)


def is_run(rows: Int64) -> bool:
    """Whether rows follow one another."""
    if len(rows) < 2:
        return True
    return bool(rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())


def as_index(rows: Int64) -> slice | Int64:
    """Rows as an index: a slice, if they follow one another, which is read ten times as fast."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if is_run(rows) else rows


def name_rows(rows: Int64) -> str:
    """Rows as messages name them."""
    if is_run(rows):
        return f"rows {rows[0]} to {rows[-1]}"
    return f"{len(rows)} rows between {rows.min()} and {rows.max()}"
