"""Parameters behind a measure's name: cutoffs, coefficients, gains and persistence."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from kgtrec.trec.measures.family import Family

__all__ = ["Parameters", "WrongParameters", "parameters_of"]

_LARGEST_CUTOFF = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_CHARACTERS = 10_000_000


class WrongParameters(ValueError):
    """Says how the parameters must look."""


class Parameters(NamedTuple):
    """What stands behind a measure's name.

    Attributes
    ----------
    cutoffs : tuple of (float, str)
        One column each, with the part of its name as typed.
    numbers : tuple of float
    gains : tuple of (int, float)
        Relevance and gain.
    persistence : float or None
    """

    cutoffs: tuple[tuple[float, str], ...] = ()
    numbers: tuple[float, ...] = ()
    gains: tuple[tuple[int, float], ...] = ()
    persistence: float | None = None


def parameters_of(name: str, family: Family, text: str, strict: bool) -> Parameters:
    """Read the parameters of a family.

    Parameters
    ----------
    name, family : str, Family
    text : str
        Parts separated by commas.
    strict : bool
        As on trec_eval's command line: no cutoff twice, whole cutoffs lose their decimals, and
        decimal cutoffs may have any number of digits.

    Raises
    ------
    WrongParameters
        Saying how they must look.
    """
    parts = text.split(",")
    if family.kind == "rank":
        return Parameters(cutoffs=_ranks(name, parts, strict))
    if family.kind in ("point", "signed point"):
        sign = "-?" if family.kind == "signed point" else ""
        return Parameters(cutoffs=_points(name, parts, strict, sign))
    if family.kind == "number":
        return Parameters(cutoffs=_single(name, parts))
    if family.kind == "numbers":
        return Parameters(numbers=_coefficients(name, parts))
    if family.kind in ("gains", "p", "p,gains"):
        return _pairs(name, family.kind, parts)
    raise WrongParameters(f"{name} takes no parameters; leave them out")


def _ranks(name: str, parts: list[str], strict: bool) -> tuple[tuple[float, str], ...]:
    form = r"([0-9]+)(?:\.[0-9]*)?" if strict else "([0-9]+)"
    matches = [re.fullmatch(form, part, re.ASCII) for part in parts]
    cutoffs = [int(match[1]) for match in matches if match and len(match[1]) < 12]
    if len(cutoffs) < len(parts) or not all(0 < c <= _LARGEST_CUTOFF for c in cutoffs):
        raise WrongParameters(
            f"cutoffs must be whole numbers from 1 to {_LARGEST_CUTOFF}, as in {name}.5,10"
        )
    _no_repeats(cutoffs, strict)
    return tuple((float(cutoff), "") for cutoff in cutoffs)


def _points(name: str, parts: list[str], strict: bool, sign: str) -> tuple[tuple[float, str], ...]:
    form = rf"{sign}(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
    if not all(re.fullmatch(form, part, re.ASCII) for part in parts):
        raise WrongParameters(f"cutoffs must be decimal numbers, as in {name}.0.2,0.5")
    values = [float(part) for part in parts]
    if not strict and any(abs(v * 100 - round(v * 100)) > 1e-9 for v in values):
        raise WrongParameters("cutoffs may have two decimals, which is what the output shows")
    if name == "iprec_at_recall" and max(values) > 1:
        raise WrongParameters("recall points lie between 0 and 1")
    if max(values) > _LARGEST_CUTOFF:
        raise WrongParameters(f"cutoffs must be below {_LARGEST_CUTOFF:,}")
    _no_repeats([f"{value:.2f}" for value in values], strict)
    return tuple((value, "") for value in values)


def _single(name: str, parts: list[str]) -> tuple[tuple[float, str], ...]:
    """A column for each; the name repeats what was typed."""
    if name == "relstring":
        if not all(
            re.fullmatch("[0-9]{1,8}", p, re.ASCII) and int(p) <= _MOST_CHARACTERS for p in parts
        ):
            raise WrongParameters(
                f"the length must be a whole number up to {_MOST_CHARACTERS}, as in relstring.20"
            )
    elif not all(_is_number(part) and float(part) >= 0 for part in parts):
        raise WrongParameters(f"the parameter must be a number from 0, as in {name}.0.5")
    return tuple((float(part), part) for part in parts)


def _coefficients(name: str, parts: list[str]) -> tuple[float, ...]:
    if not all(map(_is_number, parts)):
        raise WrongParameters("the parameters must be numbers, separated by commas")
    values = tuple(map(float, parts))
    if name == "utility" and len(values) != 4:
        raise WrongParameters(
            f"there are {len(values)} coefficients; there must be 4, as in utility.1,-1,0,0"
        )
    if name == "11pt_avg" and not all(0 <= value <= 1 for value in values):
        raise WrongParameters("recall points lie between 0 and 1")
    return values


def _pairs(name: str, kind: str, parts: list[str]) -> Parameters:
    gains: dict[int, float] = {}
    persistence = None
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _is_number(value):
            example = {"p": "p=0.8", "p,gains": "p=0.8,1=0.5,2=1", "gains": "1=3,2=9"}[kind]
            raise WrongParameters(f"{part!r} is not a pair of name=number, as in {name}.{example}")
        if key == "p" and kind != "gains" and persistence is None:
            persistence = float(value)
            if not 0 < persistence < 1:
                raise WrongParameters(f"p is {value}; it must lie between 0 and 1")
        elif kind != "p" and re.fullmatch(r"[+-]?[0-9]{1,9}", key, re.ASCII):
            if int(key) in gains:
                raise WrongParameters(f"level {int(key)} comes twice; name each level once")
            gains[int(key)] = float(value)
        else:
            allowed = {"p": "p, once", "p,gains": "p, once, or a level", "gains": "a level"}[kind]
            raise WrongParameters(
                f"{key!r} is not a parameter of {name}; before = stands {allowed}"
            )
    return Parameters(gains=tuple(sorted(gains.items())), persistence=persistence)


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text))


def _no_repeats(values: list[int] | list[str], strict: bool) -> None:
    if strict and len({*values}) < len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise WrongParameters(f"cutoff {twice} comes twice; name each cutoff once")
