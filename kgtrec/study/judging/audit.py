"""How far two annotators agree: share, and Cohen's kappa with its standard error, by relation.

`audit_sample` draws merged labels for a second look, as many true as false ones, shown blank: Zhou
et al. (2022, section 3.2) have an expert judge a balanced sample anew. Where most labels are false,
a plain sample would hold few true ones, and say little about them.

References
----------
.. [1] J. Cohen. A coefficient of agreement for nominal scales. 1960.
.. [2] J. L. Fleiss, J. Cohen, B. S. Everitt. Large sample standard errors of kappa and weighted
   kappa. 1969. Equation 13: the standard error around any kappa, not only around zero.

"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.judging.sheets import Item, Triple
from kgtrec.study.pooling.triple_files import LABELS

ALL = "all relations"
_PLACE = {label: place for place, label in enumerate(LABELS)}


@dataclass(frozen=True, eq=False)
class Agreement(ShownAsTables):
    """Two annotators on the triples that both have judged.

    Attributes
    ----------
    first, second : str
        The annotators.
    relation : str
        Of the triples; `ALL` for every relation together.
    counts : int64 array (3, 3)
        Triples by the first one's label (rows: Y, N, ?) and the second one's.
    """

    first: str
    second: str
    relation: str
    counts: npt.NDArray[np.int64]

    def table(self) -> Table:
        """A row; see `agreement_table`."""
        return agreement_table([self])

    def _lines(self) -> tuple[str, str]:
        return (
            f"{self.first} and {self.second}: {self.n:,} triples ({self.relation})",
            f"agreed {self.share:.3f}, kappa {self.kappa:.3f}",
        )

    @property
    def n(self) -> int:
        """Triples that both have judged."""
        return int(self.counts.sum())

    @property
    def share(self) -> float:
        """Share of them with one label, 0 to 1."""
        return float(np.trace(self.counts)) / self.n if self.n else math.nan

    @property
    def kappa(self) -> float:
        """Cohen's kappa; NaN where both only ever say the same single word."""
        return cohen(self.counts)[0]

    @property
    def error(self) -> float:
        """Standard error of kappa; NaN with it."""
        return cohen(self.counts)[1]


def cohen(counts: npt.ArrayLike) -> tuple[float, float]:
    """Cohen's kappa [1]_ and its large-sample standard error [2]_.

    Parameters
    ----------
    counts : array_like of int, shape (k, k)
        Items by the first rater's category (rows) and by the second one's (columns).

    Returns
    -------
    kappa : float
        1 for full agreement, 0 for that of chance; NaN without items, or where chance agreement is
        certain.
    error : float
        NaN where kappa is. It is 0 where kappa is 1, and where one rater has a single category, so
        that kappa could only be 0: neither means certainty.

    Raises
    ------
    InputError
        No square table, or negative counts.
    """
    table = np.asarray(counts, np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not (table >= 0).all():
        raise InputError(f"counts of shape {table.shape}: give a square table, nothing below 0")
    n = table.sum()
    if n == 0:
        return math.nan, math.nan
    p = table / n
    first, second = p.sum(axis=1), p.sum(axis=0)
    chance = float(first @ second)
    if np.count_nonzero(table) == 1 == np.count_nonzero(np.diag(table)):  # chance is exactly 1
        return math.nan, math.nan
    kappa = (float(np.trace(p)) - chance) / (1 - chance)
    both = second[:, None] + first[None, :]  # row i, column j: p(.i) + p(j.)
    agreed = np.diag(p) @ (1 - np.diag(both) * (1 - kappa)) ** 2
    apart = (1 - kappa) ** 2 * float((p * both**2).sum() - np.diag(p) @ np.diag(both) ** 2)
    spread = agreed + apart - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(0.0, float(spread)) / n) / (1 - chance)


def agreements(judged: Mapping[str, Sequence[Item]], by_relation: bool = False) -> list[Agreement]:
    """Agreement of every two annotators who share triples.

    Parameters
    ----------
    judged : mapping of str to sequence of Item
        Annotator to items; blank ones are passed over.
    by_relation : bool
        For each pair a value for all, then one for each relation, in byte order.

    Raises
    ------
    InputError
        No triple was judged by two annotators.
    """
    labels: dict[str, dict[Triple, str]] = {
        name: {item.triple: item.label for item in items if item.label}
        for name, items in judged.items()
    }
    results: list[Agreement] = []
    for first, second in combinations(labels, 2):
        common = [triple for triple in labels[first] if triple in labels[second]]
        if not common:
            continue
        groups: dict[str, list[Triple]] = {ALL: common}
        if by_relation:
            for triple in sorted(common, key=lambda triple: triple[1]):
                groups.setdefault(triple[1], []).append(triple)
        results += [
            Agreement(first, second, name, _counts(labels[first], labels[second], triples))
            for name, triples in groups.items()
        ]
    if not results:
        raise InputError(
            "no triple was judged by two annotators, so nothing can be said of agreement; give the "
            "sheets of at least two, with labels in them"
        )
    return results


def _counts(
    first: Mapping[Triple, str], second: Mapping[Triple, str], triples: Sequence[Triple]
) -> npt.NDArray[np.int64]:
    counts = np.zeros((len(LABELS), len(LABELS)), np.int64)
    for triple in triples:
        counts[_PLACE[first[triple]], _PLACE[second[triple]]] += 1
    return counts


def agreement_table(agreements: Sequence[Agreement]) -> Table:
    """A row per pair of annotators and relation; how often each said Y, N and ? stands in it."""
    rows: list[tuple[Cell, ...]] = []
    for one in agreements:
        says = [
            "/".join(f"{count}" for count in one.counts.sum(axis=axis).tolist()) for axis in (1, 0)
        ]
        pair = f"{one.first}, {one.second}"
        rows.append((pair, one.relation, one.n, one.share, one.kappa, one.error, *says))
    keys = ("annotators", "relation", "triples", "agreed", "kappa", "error", "first", "second")
    titles = (*keys[:5], "s.e.", "Y/N/?", "Y/N/?")
    return Table(titles, keys, (0, 0, 0, 3, 3, 3, 0, 0), rows, 2)


def audit_sample(items: Iterable[Item], size: int, seed: int = 0) -> list[Item]:
    """A balanced sample of judged triples, to be judged again by somebody else."""
    if size < 2 or size % 2:
        raise UsageError(f"an audit of {size} triples; give an even number, 2 or more")
    if seed < 0:
        raise UsageError(f"seed {seed} is below 0; give 0 or more")
    rng = np.random.default_rng(seed)
    chosen: list[Item] = []
    known = sorted(items, key=lambda item: item.triple)
    for label in ("Y", "N"):
        own = [item for item in known if item.label == label]
        if len(own) < size // 2:
            raise UsageError(
                f"{len(own):,} triples are labelled {label}, and {size // 2:,} were to be drawn; "
                f"ask for at most {2 * len(own):,}"
            )
        places = rng.choice(len(own), size // 2, replace=False)
        chosen += [own[place] for place in places.tolist()]
    order = rng.permutation(len(chosen)).tolist()
    return [replace(chosen[i], label="", evidence="", note="", line=0) for i in order]
