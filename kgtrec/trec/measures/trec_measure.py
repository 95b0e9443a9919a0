"""Rows of the table of measures, parameters of measures, and options of an evaluation.

Options are trec_eval's -l, -N, -c, -M and -J and its version: they change the values of all
measures. Parameters follow a measure's name: cutoffs, coefficients, gains and persistence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError, refuse_if
from kgtrec.trec.files.text import Cut

_LARGEST_CUTOFF = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST_GAIN = 1e300  # sums of many such gains are finite
_MOST_CHARACTERS = 10_000_000


class WrongParameters(ValueError):
    """Wrong parameters; the text says how they must look."""


def parameters_of(name: str, measure: TrecMeasure, text: str, strict: bool) -> list[dict[str, Any]]:
    """Read the parameters of a measure; return the settings of each `Column`."""
    parts = text.split(",")
    if measure.kind == "rank":
        cutoffs, separator, gains = _cutoffs_and_gains(measure, text)
        parts, gain_settings = cutoffs.split(","), _gains_of(name, gains) if separator else {}
        return [{"cutoff": float(cutoff)} | gain_settings for cutoff in _ranks(name, parts, strict)]
    if measure.kind in ("point", "signed point"):
        sign = "-?" if measure.kind == "signed point" else ""
        return [{"cutoff": value} for value in _points(name, parts, strict, sign)]
    if measure.kind == "number":
        _check_numbers(name, parts)
        return [{"cutoff": float(part), "typed": part} for part in parts]
    if measure.kind == "numbers":
        return [{"numbers": _coefficients(name, parts), "typed": text}]
    if measure.kind == "gains":
        return [_gains_of(name, text)]
    if measure.kind in ("p", "p,gains"):
        return [_pairs(name, measure.kind, parts) | {"typed": text}]
    raise WrongParameters(f"{name} takes no parameters; leave them out")


EXPONENTIAL = "exp"
"""Parameter of measures of gains: a document of relevance r gains 2^r - 1."""


def _cutoffs_and_gains(measure: TrecMeasure, text: str) -> tuple[str, str, str]:
    """Split ``10.1=3,2=9`` or ``5,10_exp`` into cutoffs, separator and gains; ``5,10`` has no
    gains."""
    both = re.fullmatch(rf"([0-9,]+)([._])({EXPONENTIAL}|.*=.*)", text, re.ASCII)
    return (both[1], both[2], both[3]) if both and measure.graded else (text, "", "")


def _gains_of(name: str, text: str) -> dict[str, Any]:
    """Read gains, pairs of level=gain or `EXPONENTIAL`; return settings of a `Column`."""
    if text == EXPONENTIAL:
        return {"exponential": True, "typed": text}
    return _pairs(name, "gains", text.split(",")) | {"typed": text}


def _ranks(name: str, parts: list[str], strict: bool) -> list[int]:
    """Read cutoffs: whole numbers from 1."""
    form = r"([0-9]+)(?:\.[0-9]*)?" if strict else "([0-9]+)"
    matches = [re.fullmatch(form, part, re.ASCII) for part in parts]
    cutoffs = [int(match[1]) for match in matches if match and len(match[1]) < 12]
    if len(cutoffs) < len(parts) or not all(0 < c <= _LARGEST_CUTOFF for c in cutoffs):
        raise WrongParameters(
            f"cutoffs must be whole numbers from 1 to {_LARGEST_CUTOFF}, as in {name}.5,10"
        )
    _no_repeats(cutoffs, strict)
    return cutoffs


def _points(name: str, parts: list[str], strict: bool, sign: str) -> list[float]:
    """Read decimal parameters, such as points of recall."""
    form = rf"{sign}(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
    if not all(re.fullmatch(form, part, re.ASCII) for part in parts):
        raise WrongParameters(f"cutoffs must be decimal numbers, as in {name}.0.2,0.5")
    values = [float(part) for part in parts]
    if name == "iprec_at_recall" and max(values) > 1:
        raise WrongParameters("recall points must be between 0 and 1")
    if max(values) > _LARGEST_CUTOFF:
        raise WrongParameters(f"cutoffs must be below {_LARGEST_CUTOFF:,}")
    if not strict and any(abs(v * 100 - round(v * 100)) > 1e-9 for v in values):
        raise WrongParameters("cutoffs can have at most two decimals: the output shows two")
    _no_repeats([f"{value:.2f}" for value in values], strict)
    return values


def _check_numbers(name: str, parts: list[str]) -> None:
    """Refuse parameters that are not numbers."""
    if name == "relstring":
        if not all(
            re.fullmatch("[0-9]{1,8}", p, re.ASCII) and int(p) <= _MOST_CHARACTERS for p in parts
        ):
            raise WrongParameters(
                f"the length must be a whole number up to {_MOST_CHARACTERS}, as in relstring.20"
            )
    elif not all(_is_number(part) and float(part) >= 0 for part in parts):
        raise WrongParameters(f"the parameter must be a number from 0, as in {name}.0.5")


def _coefficients(name: str, parts: list[str]) -> tuple[float, ...]:
    """Read numbers that one measure uses together."""
    if not all(map(_is_number, parts)):
        raise WrongParameters("the parameters must be numbers, separated by commas")
    values = tuple(map(float, parts))
    if name == "utility" and len(values) != 4:
        raise WrongParameters(
            f"{len(values)} coefficients were given; give 4, as in utility.1,-1,0,0"
        )
    if name == "11pt_avg" and not all(0 <= value <= 1 for value in values):
        raise WrongParameters("recall points must be between 0 and 1")
    return values


def _pairs(name: str, kind: str, parts: list[str]) -> dict[str, Any]:
    """Read pairs of name=number: the persistence p, and gains per level."""
    gains: dict[int, float] = {}
    settings: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _is_number(value):
            example = {"p": "p=0.8", "p,gains": "p=0.8,1=0.5,2=1", "gains": "1=3,2=9"}[kind]
            raise WrongParameters(f"{part!r} is not a pair of name=number, as in {name}.{example}")
        if key == "p" and kind != "gains" and not settings:
            settings["persistence"] = float(value)
            if not 0 < settings["persistence"] < 1:
                raise WrongParameters(f"p is {value}; it must be between 0 and 1")
        elif kind != "p" and re.fullmatch(r"[+-]?[0-9]{1,9}", key, re.ASCII):
            if int(key) in gains:
                raise WrongParameters(f"level {int(key)} is given twice; give each level once")
            gains[int(key)] = float(value)
            if abs(gains[int(key)]) > _LARGEST_GAIN:
                raise WrongParameters(f"gain {value} is too large; give at most {_LARGEST_GAIN}")
        else:
            allowed = {"p": "p (once)", "p,gains": "p (once) or a level", "gains": "a level"}[kind]
            raise WrongParameters(f"{key!r} is not a parameter of {name}; write {allowed} before =")
    return settings | {"gains": tuple(sorted(gains.items()))}


def _is_number(text: str) -> bool:
    """Return whether a text is a number that the measures accept."""
    return bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text))


def _no_repeats(values: list[int] | list[str], strict: bool) -> None:
    """Refuse repeated values if `strict`, as on the command line."""
    if strict and len({*values}) < len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise WrongParameters(f"cutoff {twice} is given twice; give each cutoff once")


_VERSIONS = (9, 10)


def is_whole(value: object) -> bool:
    """Return whether this is a whole number, also of numpy, that fits 64 bits."""
    return hasattr(value, "__index__") and -(2**63) <= value.__index__() < 2**63


@dataclass(frozen=True)
class EvalOptions:
    """Options of an evaluation; the defaults are trec_eval's.

    - level: Least relevance of a relevant document, from 0 (-l). Gains ignore it.
    - collection: Documents in the collection (-N), which utility's fourth parameter
      multiplies.
    - compat: 10 or 9. 10 rounds recall points; 9 adds .9 and truncates. Under `complete`,
      queries without a run have rows in 10; in 9 they count only in averages.
    - complete: Average over all queries of the qrels (-c). The lists must then hold an empty
      list for each query that the run lacks.
    - most: Evaluate only this many documents per query, the first in order (-M).
    - judged_only: Remove documents without a judgement of at least 0 from the lists (-J), after
      the cut to `most`, as in trec_eval.
    """

    level: int = 1
    collection: int = 0
    compat: int = 10
    complete: bool = False
    most: int | None = None
    judged_only: bool = False

    def __post_init__(self) -> None:
        for name in ("level", "collection", "most", "compat"):
            value = getattr(self, name)
            if not (is_whole(value) or (name == "most" and value is None)):
                raise UsageError(
                    f"{argument(name, value)} is not a whole number within 64 bits; give one"
                )
        low = "it must be 0 or more"
        refuse_if(
            (
                self.level < 0,
                f"{argument('level', self.level)}: {low}, because "
                "relevances below 0 mean that a document was not judged",
            ),
            (self.collection < 0, f"{argument('collection', self.collection)}: {low}"),
            ((self.most or 0) < 0, f"{argument('most', self.most, option='max_documents')}: {low}"),
            (
                self.compat not in _VERSIONS,
                f"{argument('compat', self.compat)}: this version of trec_eval must be 9 or 10",
            ),
        )

    def cut(self, depth: int | None) -> Cut:
        """Return which documents to list: those to a depth (None: all), and those tied with the
        last one."""
        # The measures apply -M, because they must know the whole tie group that it cuts, and -J,
        # which comes after -M. They also apply -J if a list that it empties must not count as
        # absent: see `kgtrec.trec.eval.score`.
        is_later = self.most is not None or (self.complete and self.compat < 10)
        if self.judged_only and is_later:
            depth = self.most
        elif self.most is not None:
            depth = self.most if depth is None else min(depth, self.most)
        return Cut(depth, True, self.judged_only and not is_later, self.compat < 10)


# Expectations over the orders of tied documents that need no function: the value is the same in
# every order, always or unless -M cuts a group of ties.
FIXED, OF_SETS = "the same in every order", "the same in every order of the same documents"
OF_SCORES = "the same in every order of the same ties"

# Effect of the number R of relevant documents on a value, if places stay the same: none, it never
# raises the value, or it may raise or lower it. See `kgtrec.trec.measures.bounds`.
PLACES, FALLING, EITHER = "R plays no part", "R never raises it", "R acts either way"

ALL_JUDGED = -(2**63)  # as `judged_from`: any judgement

_COUNT = "it is a count or a text, not a measure of quality"


class TrecMeasure(NamedTuple):
    """Measure of trec_eval: all data on it for names, help, values, ties and bounds.

    - text: What it measures, in one or more sentences.
    - kind: Kind of its parameters: "" none; "ignored" none, and the command line's are ignored;
      "rank" whole numbers and "point" decimals, one column each, "signed point" also below 0;
      "rank" may have gains behind the cutoff if `graded`;
      "number" decimals, one column each, in the name as typed; "numbers" decimals that form one
      column; "gains" pairs level=gain, or exp; "p" persistence p=; "p,gains" both.
    - defaults: Parameters if none are given.
    - output: "double", "count" (a whole number, summed over queries) or "string".
    - shown: "both", "query" or "summary": the rows that print it.
    - new, ours: True for measures that trec_eval 9, or every trec_eval, lacks.
    - format: The format of its judgements: "qrels", "prefs" (or qrels_prefs), "qrels_jg",
      "any".
    - function: "core" if the native core computes it; else ``"module.name"`` in this folder, so
      that help needs no numpy; "" only for runid. For "gains" the function if gains are given. For
      measures of answers the name of the metric of ranks that gives the value of each.
    - aliases: Other names; ``"RBP:p=0.8"`` includes parameters.
    - at: Text before "@" and a cutoff, in lower case: "ap" for ``AP@20``.
    - ir_measures: Its name there, with the distinguishing parameter: "AP", "AP(cutoff)".
    - expected: Expectation over all orders of tied documents; `FIXED`, `OF_SETS`,
      `OF_SCORES`, or "" for none.
    - ends: Function of the least and greatest value over these orders, if the order with the
      relevant documents first may not give the greatest one; "" for others.
    - bounds: `PLACES`, `FALLING` or `EITHER`; else the reason why it has no bounds.
    - graded: The size of relevance matters, not only whether it reaches a level.
    - counts_all: It depends on the number of all retrieved documents.
    - judged_from: Least relevance of the judged documents that matter. None: only relevant ones do,
      or with `graded` those with a gain.
    - direction: Whether higher is better; None if neither end is.
    - sees: "all" documents of a query, all and their "ties", those down to the "cutoff", or
      "nothing".
    - of_answers: "" for measures of queries. Measures of answers are a "mean" over answers, its
      "ratio" to that of a random order, or an "index", 1 minus the ratio of ranks from 0. They have
      a low and a high end, because an answer that the run lacks may have many ranks.
    """

    text: str
    kind: str = ""
    defaults: tuple[float, ...] = ()
    output: str = "double"
    shown: str = "both"
    new: bool = False
    ours: bool = False
    format: str = "qrels"
    function: str | Callable[..., Any] = ""
    aliases: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    ir_measures: str = ""
    expected: str | Callable[..., Any] = ""
    ends: str = ""
    bounds: str = _COUNT
    graded: bool = False
    counts_all: bool = False
    judged_from: int | None = None
    direction: bool | None = True
    sees: str = "all"
    of_answers: str = ""

    @property
    def ending(self) -> str:
        """Ending of its name in a result key: "_k" for a cutoff, "_x" for a decimal, or ""."""
        return {"rank": "_k", "point": "_x"}.get(self.kind, "")

    @property
    def higher_is_better(self) -> bool | None:
        """Whether greater values are better; None for counts and texts."""
        return self.direction if self.output == "double" else None


@cache
def function_of(name: str | Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a row, which names it as itself or by ``module.name`` in this
    folder."""
    from importlib import import_module

    if callable(name):
        return name
    module, _, function = name.partition(".")
    loaded: Callable[..., Any] = getattr(import_module(f"kgtrec.trec.measures.{module}"), function)
    return loaded
