"""The grammar of keys: the parts of a key, the rows that they name, and their faults."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike

from kgtrec.errors import UsageError, must_be, suggestion
from kgtrec.measures.averaging import SIDES
from kgtrec.measures.chance_metrics import CHANCE_ROWS
from kgtrec.measures.metric import RankMetric
from kgtrec.measures.random_baseline import Chance, Tally
from kgtrec.measures.rank_metrics import RANK_ROWS, SPREAD_ROWS
from kgtrec.measures.ties import RANK_TYPES
from kgtrec.trec.measures.names import TABLE, TrecMeasure, canonical, split_name

AVERAGINGS = {
    "micro": "every (triple, side) counts equally; candidates filtered per answer",
    "macro": "every question counts equally; its first answer among question-level candidates",
    "question": "every question counts equally; the mean over its answers, filtered as for micro",
    "group": "every value of a term counts equally: the mean of their question averages",
    "relation": "every relation counts equally in one weighted mean, adjusted for chance as one",
    "triple": "every triple counts equally, by the mean of its head's and its tail's rank",
    "macro_relation": "every relation counts equally: the mean of the relations' micro values",
    "stratified": "weighted by popularity, (beta_e, beta_r): Mohamed et al., section 4",
}

METRICS: tuple[RankMetric, ...] = (*RANK_ROWS, *CHANCE_ROWS, *SPREAD_ROWS)

SHARPNESS = (-10, 10)
"""Least and greatest sharpness a: beyond them only one rank counts."""

STEMS = {stem: metric for metric in METRICS for stem in metric.stems if metric.parameter != "k_n"}
"""Every name of a metric, without its parameter."""

SAMPLED = {stem: metric for metric in METRICS for stem in metric.stems if metric.parameter == "k_n"}
"""Names of metrics with two parameters, without these: ``hits`` of ``hits@10_50``."""


@lru_cache(maxsize=1024)
def find_metric(name: str) -> tuple[RankMetric, Any] | None:
    """Find the row of a metric by its name or alias.

    Returns it with its parameter, 0 if it takes none.

    ``hits@10``, ``hits_at_10`` and ``hits.10`` all give (hits@k, 10), ``hits@10_50`` gives
    (hits@k_n, (10, 50)), and ``p_mrr@0.5`` gives (p_mrr@p, 0.5). None for an unknown name, a
    missing or surplus parameter, a cutoff below 1, an exponent outside (0, 1), or a sharpness
    outside `SHARPNESS`.
    """
    stem, separator, text = split_name(name, STEMS)
    if pair := re.fullmatch("([0-9]{1,9})_([0-9]{1,9})", text):
        sampled, (k, n) = SAMPLED.get(stem), map(int, pair.groups())
        return (sampled, (k, n)) if sampled and k and n else None
    metric = STEMS.get(stem)
    if metric is None or bool(separator) != bool(metric.parameter):
        return None
    if not separator:
        return metric, 0
    if metric.takes_cutoff:
        cutoff = int(text) if re.fullmatch("[0-9]{1,18}", text) else 0
        return (metric, cutoff) if cutoff else None
    if not re.fullmatch(r"-?[0-9]*\.?[0-9]+(?:e-?[0-9]{1,3})?", text):
        return None
    low, high = (0, 1) if metric.parameter == "p" else SHARPNESS
    value = float(text) + 0.0  # no negative zero
    inside = low < value < high if metric.parameter == "p" else low <= value <= high
    return (metric, value) if inside else None


FORM = "side.rank_type.averaging.metric, for example both.realistic.micro.hits@10, or hits@10"

# PyKEEN's other spellings of rank types, in keys of its own form.
_PYKEEN_TYPES = {
    "best": "optimistic",
    "avg": "realistic",
    "average": "realistic",
    "worst": "pessimistic",
}


@dataclass(frozen=True)
class KeyParts:
    """The parts of a key, in canonical spelling as far as they are known; see `Measure`."""

    side: str
    rank_type: str | None
    averaging: str
    metric: str
    params: tuple[float, ...] = ()
    term: str = ""


def split_key(key: str) -> KeyParts | str:
    """Split a key into its parts; return a sentence if it does not have the form of a key.

    Side, rank type and averaging may be left out: both sides, realistic, micro (macro for
    trec_eval's measures, which have no other average). ``side.rank_type.metric`` is PyKEEN's form.
    """
    if re.search(r"\([^()]*\b(rel|judged_only)\s*=", key):
        return (
            "ranks have the same level for all measures; for rel= or judged_only=, evaluate a run: "
            "`kgtrec eval QRELS RUN -m 'P(rel=2)@5'`"
        )
    match = re.fullmatch(r"([^()]*)(?:\(([^()]*)\))?", key.strip())
    if match is None:
        return f"unbalanced parentheses; write {FORM}"
    if match[2] and "=" in match[2]:  # RBP(p=0.8): of a measure, not of an averaging
        match = re.fullmatch("(.*)()", key.strip())
        assert match is not None
    term, inside = "", match[2]
    if inside and "group" in match[1].lower().split("."):
        term, inside = inside.strip(), ""
    try:
        params = tuple(float(text) for text in inside.split(",")) if inside else ()
    except ValueError:
        return f"({match[2]}) is not a list of numbers; write (beta_e,beta_r), as in (0.5,0.5)"
    written = match[1].strip().split(".")
    names = [name.lower() for name in written]
    if not any(names):
        return f"a key is {FORM}"
    side, rank_type, averaging, length = _leading_words(names)
    named = ".".join(names[length:])
    metric, params = _join_parameter(named, averaging or "micro", params)
    row = find_metric(metric)
    if row is not None:
        canonical_name = row[0].name_with(row[1])
        return KeyParts(
            side, rank_type or "realistic", averaging or "micro", canonical_name, params, term
        )
    # Names of trec_eval that differ only in case: RBP has p = .8 in ir_measures.
    measure = canonical(".".join(written[length:]))
    if measure is None and (wrong := _wrong_word(names, length)):
        return wrong
    return KeyParts(side, rank_type, averaging or "macro", measure or metric, params, term)


def _leading_words(names: list[str]) -> tuple[str, str | None, str | None, int]:
    """Read the side, rank type and averaging before the metric; also returns their number of words.

    The last word is always the metric's.
    """
    words = names[:-1]
    length, side = 0, "both"
    rank_type = averaging = None
    if words and words[0] in SIDES:
        side, length = words[0], 1
    elif len(words) > 1 and _kind_of(words[0]) is None and _kind_of(words[1]) in _AFTER_SIDE:
        side, length = words[0], 1  # a misspelt side
    if length < len(words) and _kind_of(words[length]) == "rank type":
        rank_type = words[length]
        length += 1
    if length < len(words) and words[length] in AVERAGINGS:
        averaging = words[length]
        length += 1
    else:  # as in PyKEEN's keys, which have no averaging
        rank_type = _PYKEEN_TYPES.get(rank_type or "", rank_type)
    return side, rank_type, averaging, length


_AFTER_SIDE = ("rank type", "averaging")
_WORDS = {
    word: kind
    for kind, words in (("side", SIDES), ("rank type", RANK_TYPES), ("averaging", AVERAGINGS))
    for word in words
}
_WORDS["relation"] = "side"


def _kind_of(word: str) -> str | None:
    """Return the kind of a key's word, or None if it belongs to a metric."""
    return "rank type" if word in _PYKEEN_TYPES else _WORDS.get(word)


def _wrong_word(names: list[str], length: int) -> str | None:
    """Describe the misplaced word before an unknown metric, if any."""
    first, *more = names[length:]
    if not more:
        return f"{first!r} is not a metric; a key is {FORM}" if _kind_of(first) else None
    before = _kind_of(names[length - 1]) if length else None
    is_metric = find_metric(more[-1]) is not None or canonical(more[-1]) is not None
    if before == "averaging" or not (is_metric or any(map(_kind_of, more))):
        return None  # hits.x: a metric of several words
    known = [*SIDES, *RANK_TYPES, *AVERAGINGS]
    known = {"side": known[len(SIDES) :], "rank type": [*AVERAGINGS]}.get(before or "", known)
    hint = suggestion(first, known, f"a key is {FORM}", n=2)
    return f"{first!r} is none of {', '.join(known)}; {hint}"


def _join_parameter(
    metric: str, averaging: str, params: tuple[float, ...]
) -> tuple[str, tuple[float, ...]]:
    """Read ``p_mrr(0.5)`` as ``p_mrr@0.5`` if the averaging takes no parameters itself."""
    if averaging == "stratified" or len(params) != 1:
        return metric, params
    joined = f"{metric}@{number(params[0])}"
    return (joined, ()) if find_metric(joined) else (metric, params)


def problem_of(measure: KeyParts) -> str | None:
    """Describe the fault of the parts in one sentence; None if there is none."""
    for noun, word, known in (
        ("a side", measure.side, SIDES),
        ("an averaging", measure.averaging, AVERAGINGS),
        ("a rank type", measure.rank_type, RANK_TYPES),
    ):
        if word is not None and word not in known:
            return f"{word!r} is not {noun}; {must_be(word, known)}"
    row = find_metric(measure.metric)
    if row is None:
        return _trec_problem(measure)
    name = row[0].name_with(row[1])
    if measure.metric != name:
        return f"the canonical name of {measure.metric!r} is {name!r}; Measure.parse accepts both"
    averaging = "question" if measure.averaging == "group" else measure.averaging
    if averaging not in row[0].averagings:
        return (
            f"{row[0].name} is not defined for {measure.averaging} averaging, "
            f"only for {', '.join(row[0].averagings)}"
        )
    if measure.rank_type is None:
        return f"{measure.metric} needs a rank type: {', '.join(RANK_TYPES)}"
    if measure.averaging == "triple" and measure.side != "both":
        return "triple averages combine the ranks of head and tail; ask for both.…"
    return _params_problem(measure)


def _params_problem(measure: KeyParts) -> str | None:
    """Describe the fault of the parameters in parentheses, if any."""
    if (measure.averaging == "group") != bool(measure.term):
        return (
            f"only group averages have a term, and they need one: group.{measure.metric}(structure)"
        )
    if measure.averaging != "stratified":
        return f"{measure.averaging} averages take no parameters" if measure.params else None
    if len(measure.params) != 2:
        return f"stratified averages take (beta_e,beta_r), as in {measure.metric}(0.5,0.5)"
    if not all(-1 <= beta <= 1 for beta in measure.params):
        return "beta_e and beta_r must be in [-1, 1]"
    return None


def _trec_problem(measure: KeyParts) -> str | None:
    """Describe the fault of a key with a measure of trec_eval, if any."""
    if canonical(measure.metric) != measure.metric:
        return _unknown_metric(measure.metric)
    key = f"{measure.side}.macro.{measure.metric}"
    if measure.averaging not in ("macro", "group"):
        return f"trec_eval measures are averaged over questions: {key}"
    if measure.rank_type is not None:
        reason = "trec_eval measures follow the order of the run, so they have no rank type"
        return f"{reason}: {key}"
    return _params_problem(measure)


def _unknown_metric(name: str) -> str:
    """Say that no metric has the name, and what it may mean."""
    measures = {measure.lower(): measure for measure, row in TABLE.items() if is_key(row)}
    if "_" in name.partition("@")[2] and (row := SAMPLED.get(name.lower().partition("@")[0])):
        return f"{name!r} needs {PARAMETERS['_n'][5:]}, as in {fill_parameter(row.name)}"
    word = re.sub("[@_.]k$", "", name.lower())
    stem = split_name(word, (*STEMS, *measures))[0].partition("@")[0]
    example = STEMS[stem].name if stem in STEMS else ""
    if stem in measures:
        example = measures[stem] + TABLE[measures[stem]].ending
    if example[-2:] in PARAMETERS:
        return f"{name!r} needs {PARAMETERS[example[-2:]][3:]}, as in {fill_parameter(example)}"
    is_disordered = _kind_of(name.partition(".")[0]) is not None
    near = near_metric(name.rpartition(".")[2] if is_disordered else name)
    return f"{name!r} is not a metric" + (f"; {near}" if near else "")


PARAMETERS = {
    "@k": "k: a cutoff, 1 or more",
    "_k": "k: a cutoff, 1 or more",
    "_n": "k_n: a cutoff and a number of candidates, both 1 or more",
    "@p": "p: an exponent, 0 < p < 1",
    "@a": "a: a sharpness, -10 <= a <= 10",
    "_x": "x: two decimals",
}
"""Meanings of the last letters of names in the tables."""


def number(value: float) -> str:
    """Format a number as the shortest text that reads back, without ``.0`` or the sign of zero."""
    return repr(float(value) + 0.0).removesuffix(".0")


def is_key(row: TrecMeasure) -> bool:
    """Return whether the keys of results include this measure of trec_eval."""
    return row.format in ("any", "qrels") and row.output != "string" and not row.of_answers


def fill_parameter(name: str, cutoff: str = "10", pair: str = "10_50") -> str:
    """Replace the parameter's letters in a name of a table by an example."""
    if name.endswith("@k_n"):
        return name.removesuffix("k_n") + pair
    for letter, example in (("k", cutoff), ("p", "0.5"), ("a", "0.5"), ("x", "0.20")):
        name = re.sub(f"(?<=[@_.]){letter}$", example, name)
    return name


def near_metric(word: str, others: Iterable[str] = ()) -> str:
    """Return "did you mean ...?" with the most similar names, or "".

    Suggestions have the cutoff of the word.
    """
    match = re.search(r"(?<=[@_.])([1-9][0-9]*)(_[1-9][0-9]*)?$", word)
    cutoff, pair = (match[1], match[2] and match[0]) if match else ("10", None)
    trec = [name + row.ending for name, row in TABLE.items() if is_key(row)]
    at = [row.ir_measures.replace("(cutoff)", "@k") for row in TABLE.values()]
    canonical_names = [
        fill_parameter(name, cutoff, pair or f"{cutoff}_50")
        for name in (*(metric.name for metric in METRICS), *trec)
    ]
    aliases = [fill_parameter(name, cutoff) for metric in METRICS for name in metric.aliases]
    every = [
        *canonical_names,
        *aliases,
        *(fill_parameter(name, cutoff) for name in at if "@" in name),
        *others,
    ]
    return suggestion(
        word, every, suggestion(word, canonical_names, n=3, cutoff=0.5), n=3, cutoff=0.85
    )


def random_scorer(metric: str, candidates: ArrayLike, weight: ArrayLike | None = None) -> Chance:
    """Exact expectation and variance of a metric under a random scorer.

    Every rank is uniform on 1 .. c, independently, with the item's own number of candidates c. From
    M, E and Var follow the adjusted metrics, also of published values: the index (M - E) / (1 - E),
    the ratio M / E, and the z-score (M - E) / sqrt(Var), with changed sign for MR and GMR.

    Parameters
    ----------
    metric : str
        "mr", "mrr", "hits@k", "gmr", "log_mrr", "p_mrr@p" (with numbers for k and p), or an
        alias of one.
    candidates : array_like of int (n,)
        Candidates of every instance, the answer included: ``ranks.candidates``.
    weight : array_like (n,), optional
        At least 0; by default every instance weighs 1.

    Returns
    -------
    Chance
        ``mean`` and ``variance``, float.

    Raises
    ------
    UsageError
        Another metric.
    InputError
        No candidates, a number below 1, or weights that do not fit.

    Examples
    --------
    >>> random_scorer("mr", [5, 11])
    Chance(mean=4.5, variance=3.0)
    """
    match = find_metric(metric.lower()) if isinstance(metric, str) else None
    row, parameter = match or (None, 0)
    if row is None or row not in RANK_ROWS or row.chance is None:
        known = [row.name for row in RANK_ROWS if row.chance is not None]
        raise UsageError(f"{metric!r} has no expectation by chance; {must_be(metric, known)}")
    return row.chance(Tally.from_items(candidates, weight), parameter)
