"""A measure as a value: which side, rank type, averaging, metric and parameters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kgtrec.errors import UsageError
from kgtrec.measures.sample import SIDES
from kgtrec.measures.table import AVERAGINGS, METRICS, Metric, find_metric
from kgtrec.measures.ties import RANK_TYPES
from kgtrec.measures.trec_names import TREC_FAMILIES, canonical_trec

__all__ = ["Measure", "parse_all"]

FORM = "side.rank_type.averaging.metric, for example both.realistic.micro.hits@10"


@dataclass(frozen=True)
class Measure:
    """One number that can be asked of a result.

    Attributes
    ----------
    side : {"head", "tail", "both"}
        Side of the entity that is predicted.
    rank_type : {"optimistic", "realistic", "pessimistic", "expected", "ordinal"} or None
        None for trec_eval measures, which see the order of the run.
    averaging : {"micro", "macro", "macro_relation", "stratified"}
    metric : str
        Canonical name with its cutoff: "mrr", "hits@10", "map_cut_20".
    params : tuple of float
        (beta_e, beta_r) of stratified averages, else empty.

    Raises
    ------
    UsageError
        The parts do not make a measure; the message names the part and near misses.

    Examples
    --------
    >>> measure = Measure.parse("both.stratified.hits_at_10(0.5, 0.5)")
    >>> measure
    Measure.parse('both.stratified.hits@10(0.5,0.5)')
    >>> eval(repr(measure)) == measure
    True
    """

    side: str
    rank_type: str | None
    averaging: str
    metric: str
    params: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise UsageError(f"no measure {self.key!r}: {problem}")

    @classmethod
    def parse(cls, key: str | Measure) -> Measure:
        """Read a key; case does not matter and aliases such as ``hits_at_10`` are understood.

        Raises
        ------
        UsageError
            Not a measure; quotes the key and offers near misses.
        """
        if isinstance(key, Measure):
            return key
        if not isinstance(key, str):
            raise UsageError(f"a measure key is text, not {type(key).__name__}; write {FORM}")
        parts = _split(key)
        if isinstance(parts, str):
            raise UsageError(f"no measure {key!r}: {parts}")
        side, rank_type, averaging, metric, params = parts
        row = find_metric(metric)
        if row is not None:
            metric = row[0].name.replace("@k", f"@{row[1]}")
            rank_type = rank_type or "realistic"
        else:
            metric = canonical_trec(metric) or metric
        try:
            return cls(side, rank_type, averaging, metric, params)
        except UsageError as error:
            reason = str(error).partition(": ")[2]
            raise UsageError(f"no measure {key!r}: {reason}") from None

    @property
    def key(self) -> str:
        """Canonical key; ``Measure.parse`` reads it back."""
        silent = self.rank_type is None or (
            self.averaging == "stratified" and self.rank_type == "realistic"
        )
        parts = [self.side, self.averaging, self.metric]
        if not silent:
            parts.insert(1, str(self.rank_type))
        numbers = ",".join(_number(value) for value in self.params)
        return ".".join(parts) + (f"({numbers})" if self.params else "")

    def __str__(self) -> str:
        return self.key

    def __repr__(self) -> str:
        return f"Measure.parse({self.key!r})"

    @property
    def is_trec(self) -> bool:
        """True for a trec_eval measure, False for a rank metric."""
        return self.rank_type is None

    @property
    def row(self) -> tuple[Metric, int]:
        """Row of the metric table and the cutoff (0 where there is none); rank metrics only."""
        row = find_metric(self.metric)
        if row is None:
            raise UsageError(f"{self.key} is a trec_eval measure: it has no row of rank metrics")
        return row

    @property
    def title(self) -> str:
        """Column heading: "Hits@10", "MAP@20", "strat-MRR(0.5,0.5)"."""
        if self.is_trec:
            stem, _, cut = self.metric.rpartition("_")
            return {"map_cut": f"MAP@{cut}", "ndcg_cut": f"nDCG@{cut}"}.get(stem, self.metric)
        metric, k = self.row
        title = metric.title.replace("{k}", str(k))
        if self.averaging == "stratified":
            return f"strat-{title}({','.join(_number(value) for value in self.params)})"
        return title

    @property
    def digits(self) -> int:
        """Decimals that tables print."""
        return 4 if self.is_trec else self.row[0].digits


def parse_all(keys: Iterable[str | Measure]) -> list[Measure]:
    """Parse several keys, dropping repeats.

    Raises
    ------
    UsageError
        Names every key that is no measure, not only the first.
    """
    if isinstance(keys, (str, Measure)):
        keys = [keys]
    measures, problems = [], []
    for key in keys:
        try:
            measures.append(Measure.parse(key))
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    return list(dict.fromkeys(measures))


Parts = tuple[str, "str | None", str, str, tuple[float, ...]]


def _split(key: str) -> Parts | str:
    """Take a key apart; a sentence when it does not have the form of one."""
    found = re.fullmatch(r"([^()]*)(?:\(([^()]*)\))?", key.strip().lower())
    if found is None:
        return f"unbalanced parentheses; write {FORM}"
    names = found[1].strip().split(".")
    try:
        params = tuple(float(text) for text in found[2].split(",")) if found[2] else ()
    except ValueError:
        return f"({found[2]}) is not a list of numbers; write (beta_e,beta_r), as in (0.5,0.5)"
    if len(names) < 3:
        return f"a key is {FORM}" + _near_keys(key)
    side, *rest = names
    rank_type = rest.pop(0) if rest[0] not in AVERAGINGS else None
    if len(rest) < 2 or (rank_type is not None and rest[0] not in AVERAGINGS):
        return _misplaced(key, rank_type or rest[0], rest)
    return side, rank_type, rest[0], ".".join(rest[1:]), params


def _misplaced(key: str, first: str, rest: list[str]) -> str:
    """Say which word is neither rank type nor averaging."""
    word = rest[0] if first in RANK_TYPES else first
    kinds = tuple(AVERAGINGS) if first in RANK_TYPES else (*RANK_TYPES, *AVERAGINGS)
    if word in kinds:
        return f"a key is {FORM}" + _near_keys(key)
    return f"{word!r} is none of {', '.join(kinds)}" + _near_keys(key)


def _problem(measure: Measure) -> str | None:
    """What is wrong with the parts, in one sentence; None when nothing is."""
    if measure.side not in SIDES:
        return f"{measure.side!r} is no side" + _near(measure.side, SIDES)
    if measure.averaging not in AVERAGINGS:
        return f"{measure.averaging!r} is no averaging" + _near(measure.averaging, AVERAGINGS)
    if measure.rank_type is not None and measure.rank_type not in RANK_TYPES:
        return f"{measure.rank_type!r} is no rank type" + _near(measure.rank_type, RANK_TYPES)
    row = find_metric(measure.metric)
    if row is None:
        return _trec_problem(measure)
    name = row[0].name.replace("@k", f"@{row[1]}")
    if measure.metric != name:
        return f"the canonical name of {measure.metric!r} is {name!r}; Measure.parse takes both"
    if measure.averaging not in row[0].averagings:
        return (
            f"{row[0].name} is not defined for {measure.averaging} averaging, "
            f"only for {', '.join(row[0].averagings)}"
        )
    if measure.rank_type is None:
        return f"{measure.metric} needs a rank type: {', '.join(RANK_TYPES)}"
    return _params_problem(measure)


def _params_problem(measure: Measure) -> str | None:
    if measure.averaging != "stratified":
        return f"{measure.averaging} averages take no parameters" if measure.params else None
    if len(measure.params) != 2:
        return f"stratified averages take (beta_e,beta_r), as in {measure.metric}(0.5,0.5)"
    if not all(-1 <= beta <= 1 for beta in measure.params):
        return "beta_e and beta_r lie in [-1, 1]"
    return None


def _trec_problem(measure: Measure) -> str | None:
    if canonical_trec(measure.metric) != measure.metric:
        return _unknown_metric(measure.metric)
    if measure.averaging != "macro":
        return f"trec_eval measures are averaged over questions: both.macro.{measure.metric}"
    if measure.rank_type is not None:
        return (
            "trec_eval measures see the order of the run and take no rank type: "
            f"{measure.side}.macro.{measure.metric}"
        )
    return "trec_eval measures take no parameters" if measure.params else None


def _unknown_metric(name: str) -> str:
    for known in _metric_names():
        stem = known.rstrip("0123456789.").rstrip("@_")
        if stem.lower() == name.lower():
            return f"{name!r} needs a cutoff above 0, as in {known}"
    return f"{name!r} is no metric" + _near(name, _metric_names(aliases=False))


def _number(value: float) -> str:
    """Shortest text that reads back, without a trailing ``.0`` or the sign of zero."""
    return repr(float(value) + 0.0).removesuffix(".0")


def _metric_names(aliases: bool = True) -> list[str]:
    """Every name that a metric goes by, with a cutoff where it takes one."""
    names = [metric.name for metric in METRICS]
    if aliases:
        names += [name for metric in METRICS for name in metric.aliases]
    ranks = [re.sub("(?<=[@_.])k$", "10", name) for name in names]
    ending = {"int": "_20", "real": "_0.20", None: ""}
    return ranks + [name + ending[cut] for name, (cut, _) in TREC_FAMILIES.items()]


def _near(word: str, known: Iterable[str]) -> str:
    """The near misses of a word; all that is known when that is little and nothing is near."""
    names = list(known)
    close = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.5)
    if not close and len(names) > 8:
        return ""
    return f"; did you mean {' or '.join(close or names)}?"


def _near_keys(key: str) -> str:
    keys = [f"both.realistic.micro.{metric.name.replace('@k', '@10')}" for metric in METRICS]
    keys += ["both.macro.map_cut_20", "both.macro.ndcg_cut_20", "both.stratified.mrr(0.5,0.5)"]
    first, last = key.lower().partition(".")[0], key.lower().rpartition(".")[2]
    trec = canonical_trec(last)
    if trec and first in SIDES:
        return f"; did you mean {first}.macro.{trec}?"
    close = [known for known in keys if known.rpartition(".")[2] == last]
    close = close or difflib.get_close_matches(key.lower(), keys, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""
