"""The grammar of keys: taking one apart, and saying what is wrong with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from kgtrec.measures.averaging import SIDES
from kgtrec.measures.registry import AVERAGINGS, METRICS, find_metric
from kgtrec.measures.tied_ranks import RANK_TYPES
from kgtrec.trec.measures.names import TABLE, canonical

__all__ = ["FORM", "Parts", "metric_names", "near", "number", "problem_of", "split_key"]

FORM = "side.rank_type.averaging.metric, for example both.realistic.micro.hits@10"

# How PyKEEN also spells rank types, in keys of its own form.
_PYKEEN_TYPES = {
    "best": "optimistic",
    "avg": "realistic",
    "average": "realistic",
    "worst": "pessimistic",
}


class Parts(NamedTuple):
    """The parts of a key, in canonical spelling as far as they are known."""

    side: str
    rank_type: str | None
    averaging: str
    metric: str
    params: tuple[float, ...]


def split_key(key: str) -> Parts | str:
    """Take a key apart; a sentence when it does not have the form of one.

    Without a rank type it is realistic. ``side.rank_type.metric``, PyKEEN's form, is micro.
    """
    found = re.fullmatch(r"([^()]*)(?:\(([^()]*)\))?", key.strip())
    if found is None:
        return f"unbalanced parentheses; write {FORM}"
    if found[2] and "=" in found[2]:  # RBP(p=0.8): of a measure, not of an averaging
        found = re.fullmatch("(.*)()", key.strip())
        assert found is not None
    written = found[1].strip().split(".")
    names = [name.lower() for name in written]
    try:
        params = tuple(float(text) for text in found[2].split(",")) if found[2] else ()
    except ValueError:
        return f"({found[2]}) is not a list of numbers; write (beta_e,beta_r), as in (0.5,0.5)"
    if len(names) < 3:
        return f"a key is {FORM}" + _near_keys(key)
    side, *rest = names
    rank_type = None
    if rest[0] not in AVERAGINGS:
        rank_type = rest.pop(0)
        kind = _PYKEEN_TYPES.get(rank_type, rank_type)
        known = find_metric(_named(".".join(rest), "micro", params)[0])
        if kind in RANK_TYPES and (known or len(rest) == 1):
            rank_type, rest = kind, ["micro", *rest]
    if len(rest) < 2 or (rank_type is not None and rest[0] not in AVERAGINGS):
        return _misplaced(key, rank_type or rest[0], rest)
    metric, params = _named(".".join(rest[1:]), rest[0], params)
    row = find_metric(metric)
    if row is None:
        # Of trec_eval's names, which differ in case only: RBP has p = .8 in ir_measures.
        exact = ".".join(written[1 - len(rest) :])
        return Parts(side, rank_type, rest[0], canonical(exact) or metric, params)
    return Parts(side, rank_type or "realistic", rest[0], row[0].named(row[1]), params)


def _named(metric: str, averaging: str, params: tuple[float, ...]) -> tuple[str, tuple[float, ...]]:
    """``p_mrr(0.5)`` is ``p_mrr@0.5`` where the averaging takes no parameters itself."""
    if averaging == "stratified" or len(params) != 1:
        return metric, params
    joined = f"{metric}@{number(params[0])}"
    return (joined, ()) if find_metric(joined) else (metric, params)


def _misplaced(key: str, first: str, rest: list[str]) -> str:
    """Say which word is neither rank type nor averaging."""
    word = rest[0] if first in RANK_TYPES else first
    kinds = tuple(AVERAGINGS) if first in RANK_TYPES else (*RANK_TYPES, *AVERAGINGS)
    if word in kinds:
        return f"a key is {FORM}" + _near_keys(key)
    return f"{word!r} is none of {', '.join(kinds)}" + _near_keys(key)


def problem_of(measure: Parts) -> str | None:
    """What is wrong with the parts, in one sentence; None when nothing is."""
    if measure.side not in SIDES:
        return f"{measure.side!r} is not a side" + near(measure.side, SIDES)
    if measure.averaging not in AVERAGINGS:
        return f"{measure.averaging!r} is not an averaging" + near(measure.averaging, AVERAGINGS)
    if measure.rank_type is not None and measure.rank_type not in RANK_TYPES:
        return f"{measure.rank_type!r} is not a rank type" + near(measure.rank_type, RANK_TYPES)
    row = find_metric(measure.metric)
    if row is None:
        return _trec_problem(measure)
    name = row[0].named(row[1])
    if measure.metric != name:
        return f"the canonical name of {measure.metric!r} is {name!r}; Measure.parse takes both"
    if measure.averaging not in row[0].averagings:
        return (
            f"{row[0].name} is not defined for {measure.averaging} averaging, "
            f"only for {', '.join(row[0].averagings)}"
        )
    if measure.rank_type is None:
        return f"{measure.metric} needs a rank type: {', '.join(RANK_TYPES)}"
    if measure.averaging == "triple" and measure.side != "both":
        return "triple averages join the head's and the tail's rank; ask for both.…"
    return _params_problem(measure)


def _params_problem(measure: Parts) -> str | None:
    if measure.averaging != "stratified":
        return f"{measure.averaging} averages take no parameters" if measure.params else None
    if len(measure.params) != 2:
        return f"stratified averages take (beta_e,beta_r), as in {measure.metric}(0.5,0.5)"
    if not all(-1 <= beta <= 1 for beta in measure.params):
        return "beta_e and beta_r lie in [-1, 1]"
    return None


def _trec_problem(measure: Parts) -> str | None:
    if canonical(measure.metric) != measure.metric:
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
    bare = re.sub("[@_.]k$", "", name.lower())
    for known in metric_names():
        row = find_metric(known)
        if row and row[0].parameter == "p":
            if bare.partition("@")[0] == known.partition("@")[0]:
                return f"{name!r} needs an exponent in (0, 1), as in {known}"
            continue
        stem = known.rstrip("0123456789.").rstrip("@_")
        if stem != known and stem.lower() == bare:
            return f"{name!r} needs a cutoff above 0, as in {known}"
    return f"{name!r} is not a metric" + near(name, metric_names(aliases=False))


def number(value: float) -> str:
    """Shortest text that reads back, without a trailing ``.0`` or the sign of zero."""
    return repr(float(value) + 0.0).removesuffix(".0")


def metric_names(aliases: bool = True, trec: bool = True) -> list[str]:
    """Every name that a metric goes by, with a cutoff or exponent where it takes one."""
    names = [metric.name for metric in METRICS]
    if aliases:
        names += [name for metric in METRICS for name in metric.aliases]
    ranks = [re.sub("(?<=[@_.])k$", "10", re.sub("@p$", "@0.5", name)) for name in names]
    if not trec:
        return ranks
    ending = {"rank": "_20", "point": "_0.20"}
    return ranks + [
        name + ending.get(row.kind, "")
        for name, row in TABLE.items()
        if row.format in ("any", "qrels") and row.output != "string"
    ]


def near(word: str, known: Iterable[str]) -> str:
    """The near misses of a word; all that is known when that is little and nothing is near."""
    names = list(known)
    close = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.5)
    if not close and len(names) > 8:
        return ""
    return f"; did you mean {' or '.join(close or names)}?"


def _near_keys(key: str) -> str:
    keys = [f"both.realistic.micro.{name}" for name in metric_names(trec=False, aliases=False)]
    keys += ["both.macro.map_cut_20", "both.macro.ndcg_cut_20", "both.stratified.mrr(0.5,0.5)"]
    first, last = key.lower().partition(".")[0], key.lower().rpartition(".")[2]
    trec = None if find_metric(last) else canonical(last)
    if trec and first in SIDES:
        return f"; did you mean {first}.macro.{trec}?"
    close = [known for known in keys if known.rpartition(".")[2] == last]
    close = close or difflib.get_close_matches(key.lower(), keys, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""
