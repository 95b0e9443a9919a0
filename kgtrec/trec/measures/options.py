"""What changes the values of all measures: trec_eval's -l, -N, -c, -M and -J, and its version."""

from __future__ import annotations

from dataclasses import dataclass

from kgtrec.errors import UsageError

__all__ = ["EvalOptions", "is_whole"]

_VERSIONS = (9, 10)


def is_whole(value: object) -> bool:
    """Whether this is a whole number that fits 64 bits; numpy's are."""
    return hasattr(value, "__index__") and -(2**63) <= value.__index__() < 2**63


@dataclass(frozen=True)
class EvalOptions:
    """Options of an evaluation; the defaults are trec_eval's.

    Attributes
    ----------
    level : int
        Relevance from which a document is relevant, from 0 (-l). Gains take no notice of it.
    collection : int
        Documents in the collection (-N), which the fourth parameter of utility multiplies.
    compat : int
        10 or 9: recall points are rounded, or .9 is added and the rest cut off; queries without
        a run have rows of their own under `complete`, or count in the averages only.
    complete : bool
        Average over all queries of the qrels (-c). The lists must then hold the queries that the
        run lacks, as empty lists.
    most : int or None
        At most so many documents of a query, the first in order, are looked at (-M).
    judged_only : bool
        Documents without a judgement from 0 up leave the lists (-J), after `most` has cut them,
        as in trec_eval.
    native : bool or None
        Whether kgtrec computes what pytrec_eval could give too; None lets the size decide, see
        `kgtrec.trec.measures.values.NATIVE_DOCUMENTS`.

    Raises
    ------
    UsageError
        A level or a number of documents below 0 or that is not a whole number within 64 bits, or a
        version other than 9 and 10.
    """

    level: int = 1
    collection: int = 0
    compat: int = 10
    complete: bool = False
    most: int | None = None
    judged_only: bool = False
    native: bool | None = None

    def __post_init__(self) -> None:
        for name in ("level", "collection", "most", "compat"):
            value = getattr(self, name)
            if not (is_whole(value) or (name == "most" and value is None)):
                raise UsageError(f"{name}={value!r} is not a whole number within 64 bits; give one")
        if self.level < 0:
            raise UsageError(
                f"the level of relevance (-l) is {self.level}; it must be 0 or more, because "
                "relevances below 0 mean that a document was not judged"
            )
        if self.collection < 0:
            raise UsageError(f"the collection size (-N) is {self.collection}; it must be 0 or more")
        if self.most is not None and self.most < 0:
            raise UsageError(f"the number of documents (-M) is {self.most}; it must be 0 or more")
        if self.compat not in _VERSIONS:
            raise UsageError(f"trec_eval's version (--compat) is {self.compat}; it must be 9 or 10")
