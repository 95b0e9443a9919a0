"""A measure as a value: which side, rank type, averaging, metric and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Float64
from kgtrec.errors import UsageError, list_problems
from kgtrec.measures.averaging import sides_present
from kgtrec.measures.keys import (
    FORM,
    KeyParts,
    RankMetric,
    find_metric,
    number,
    problem_of,
    split_key,
)
from kgtrec.measures.ties import Ranked
from kgtrec.ranking.instances import term_names, term_of
from kgtrec.trec.measures.names import Column, key_column

if TYPE_CHECKING:
    from kgtrec.questions.terms import Term
    from kgtrec.ranking.ranks import Ranks


@dataclass(frozen=True, repr=False)
class Measure(KeyParts):
    """One number that a result can give.

    Attributes
    ----------
    side : {"head", "tail", "both", "relation", "qualifier", "all"}
        Side of the predicted entity; "all" for questions without a graph.
    rank_type : {"optimistic", "realistic", "pessimistic", "expected", "ordinal"} or None
        None for trec_eval measures, which see the order of the run.
    averaging : {"micro", "macro", "question", "group", "relation", "triple", ...}
        See `kgtrec.measures.AVERAGINGS`.
    metric : str
        Canonical name with its parameter after "@" or "_": "mrr", "hits@10", "p_mrr@0.5",
        "map_cut_20". Parameters in parentheses belong to the averaging.
    params : tuple of float
        (beta_e, beta_r) of stratified averages, else empty.
    term : str
        For group averages: the term over whose values to average, "structure"; or some of its
        values, "structure:2i+3i".

    Raises
    ------
    UsageError
        The parts do not form a measure; the message names the part and near misses.

    Examples
    --------
    >>> measure = Measure.parse("both.stratified.hits_at_10(0.5, 0.5)")
    >>> measure
    Measure.parse('both.stratified.hits@10(0.5,0.5)')
    >>> eval(repr(measure)) == measure
    True
    """

    def __post_init__(self) -> None:
        problem = problem_of(self)
        if problem:
            raise UsageError(f"no measure {self.key!r}: {problem}")

    @classmethod
    def parse(cls, key: str | Measure) -> Measure:
        """Read a key; case does not matter and aliases such as ``hits_at_10`` are understood.

        The defaults are both sides, realistic ranks and the micro average: ``mrr`` is
        ``both.realistic.micro.mrr``, ``tail.hits@10`` is ``tail.realistic.micro.hits@10``, and
        ``map``, which has no micro average, is ``both.macro.map``.

        trec_eval's measures are understood in every spelling that `kgtrec.trec.evaluate` knows.
        ``RBP`` in capitals has p = 0.8, as in ir_measures.

        PyKEEN's keys ``side.rank_type.metric`` are understood as micro averages.

        Raises
        ------
        UsageError
            Not a measure; quotes the key and offers near misses.
        """
        if isinstance(key, Measure):
            return key
        if not isinstance(key, str):
            raise UsageError(f"a measure key is text, not {type(key).__name__}; write {FORM}")
        return _parse_key(key)

    @property
    def key(self) -> str:
        """Canonical key; ``Measure.parse`` reads it back."""
        silent = self.rank_type is None or (
            self.averaging == "stratified" and self.rank_type == "realistic"
        )
        parts = [self.side, self.averaging, self.metric]
        if not silent:
            parts.insert(1, str(self.rank_type))
        inside = self.term or ",".join(number(value) for value in self.params)
        return ".".join(parts) + (f"({inside})" if inside else "")

    def __str__(self) -> str:
        return self.key

    def __repr__(self) -> str:
        return f"Measure.parse({self.key!r})"

    @property
    def is_trec(self) -> bool:
        """True for a trec_eval measure, False for a rank metric."""
        return self.rank_type is None

    @property
    def row(self) -> tuple[RankMetric, Any]:
        """Row of the metric table and its parameter (0 if it takes none); rank metrics only."""
        row = find_metric(self.metric)
        if row is None:
            raise UsageError(f"{self.key} is a trec_eval measure: it has no row of rank metrics")
        return row

    @property
    def column(self) -> Column:
        """Name and parameters of a trec_eval measure."""
        column = key_column(self.metric)
        assert column is not None, f"{self.key} is a metric of ranks"
        return column

    @property
    def higher_is_better(self) -> bool | None:
        """True if greater values are better; None if neither end is better."""
        return (self.column.row if self.is_trec else self.row[0]).higher_is_better

    @property
    def base(self) -> Measure:
        """Measure whose mean over the same items orders systems in the same way."""
        metric, parameter = self.row
        return replace(self, metric=metric.base_name_with(parameter))

    def per_item(self, ties: Ranked) -> Float64:
        """Compute a rank metric for each item, float64 (n,)."""
        metric, parameter = self.row
        assert self.rank_type is not None
        return metric.per_item(ties, self.rank_type, parameter)

    @property
    def title(self) -> str:
        """Column heading: "Hits@10", "MAP@20", "strat-MRR(0.5,0.5)"."""
        if self.is_trec:
            return trec_title(self.metric)
        metric, parameter = self.row
        title = metric.title_with(parameter)
        if self.averaging == "stratified":
            return f"strat-{title}({','.join(number(value) for value in self.params)})"
        return title

    @property
    def digits(self) -> int:
        """Decimals that tables print."""
        return 4 if self.is_trec else self.row[0].digits


_TREC_TITLES = {
    "map": "MAP",
    "map_cut_": "MAP@",
    "ndcg": "nDCG",
    "ndcg_cut_": "nDCG@",
    "P_": "P@",
    "F1_": "F1@",
    "lrap": "LRAP",
    "recall_": "R@",
    "success_": "Success@",
    "recip_rank": "RR",
    "recip_rank_cut_": "RR@",
}


def trec_title(name: str) -> str:
    """Return the heading of a trec_eval measure: "nDCG@10" for "ndcg_cut_10".

    Other names are unchanged.
    """
    stem = name.rstrip("0123456789")
    return _TREC_TITLES.get(stem, stem) + name[len(stem) :]


@lru_cache(maxsize=1 << 10)
def _parse_key(key: str) -> Measure:
    """Read a key as `Measure.parse` does; cached."""
    parts = split_key(key)
    problem = parts if isinstance(parts, str) else problem_of(parts)
    if isinstance(parts, str) or problem:
        raise UsageError(f"no measure {key!r}: {problem}")
    return Measure(**vars(parts))


def headings(measures: Sequence[Measure], *, sides: bool = True) -> list[str]:
    """Return titles of adjacent columns, with the average if there are several averages.

    So "MRR" is never micro in one column and macro in the next: "micro MRR", "macro Hits@10".
    If titles are still equal, keys replace them, with their sides if `sides`.
    """
    averages = {measure.averaging for measure in measures} - {"stratified"}
    named = averages if len(averages) > 1 else set()
    titles = [
        f"{measure.averaging} " * (measure.averaging in named) + measure.title
        for measure in measures
    ]
    keys = [measure.key if sides else measure.key.split(".", 1)[1] for measure in measures]
    pairs = zip(titles, keys, strict=True)
    return [title if titles.count(title) == 1 else key for title, key in pairs]


_SHOWN_PROBLEMS = 10


def parse_all(keys: Iterable[str | Measure]) -> list[Measure]:
    """Parse several keys, dropping repeats.

    Raises
    ------
    UsageError
        Some keys are not measures; the message names all of them.
    """
    if isinstance(keys, (str, Measure)):
        keys = [keys]
    require_type("measures", keys, Iterable, "a list of keys, such as ['mrr']")
    measures, problems = [], []
    for key in dict.fromkeys(keys):
        try:
            measures.append(Measure.parse(key))
        except UsageError as error:
            problems.append(error.marked)
    if problems := [*dict.fromkeys(problems)]:
        n_further = len(problems) - _SHOWN_PROBLEMS
        rest = [f"and {n_further:,} more that are not measures"] if n_further > 0 else []
        head = f"{len(problems):,} keys are not measures"
        raise UsageError(list_problems(head, [*problems[:_SHOWN_PROBLEMS], *rest]))
    return list(dict.fromkeys(measures))


def use_side_of_ranks(measures: Iterable[Measure], ranks: Ranks) -> list[Measure]:
    """Return the measures with the side that the ranks have, each once.

    Both sides of a graph's questions are "both", and questions without a graph have the side
    "all": either name means all questions.
    """
    present = sides_present(ranks)
    side = "all" if present == ("all",) else "both" if "both" in present else None
    if side is None:
        return list(measures)
    renamed = [
        replace(item, side=side) if item.side in ("both", "all") else item for item in measures
    ]
    return list(dict.fromkeys(renamed))


def term_of_group(measure: Measure, ranks: Ranks) -> tuple[Term, list[str]]:
    """Return the term of a group average, and the values of it that the measure names."""
    name, _, named = measure.term.partition(":")
    term = term_of(ranks, name)
    if term is None:
        known = ", ".join(term_names(ranks)) or "none"
        raise UsageError(f"{measure}: questions have no term {name!r}; their terms: {known}")
    names = [key.strip() for key in named.split("+")] if named else []
    values = term.texts(np.unique(term.codes))
    if missing := [each for each in names if each not in values]:
        problem = f"no question has {name} {missing[0]!r}, only {', '.join(values)}"
        raise UsageError(f"{measure}: {problem}")
    return term, names
