"""Advice for relevances that are fractions: number their levels, and give the levels these gains.

Relevances are whole numbers in trec_eval. Numbered levels keep the values as gains of nDCG and
similar measures, and the order of the levels for all others.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from decimal import Decimal

from kgtrec.trec.files.text import PathName

_MOST_LEVELS = 20
_MOST_DECIMALS = 9


def level_numbers(values: Iterable[float]) -> dict[float, int] | None:
    """Number the distinct values above 0 from 1, ascending; None if these are too many.

    Also None if a value below 0, which means not judged, is a fraction.
    """
    distinct = {value for value in values if math.isfinite(value)}
    if any(value < 0 and value != int(value) for value in distinct):
        return None
    levels = sorted(value for value in distinct if value > 0)
    return {value: i for i, value in enumerate(levels, 1)} if len(levels) <= _MOST_LEVELS else None


def gains_text(numbers: dict[float, int]) -> str:
    """Write the parameters that give numbered levels their values as gains: ``1=0.5,2=0.9``."""
    return ",".join(f"{number}={_decimal(value)}" for value, number in numbers.items())


def advice_for_file(
    path: PathName, column: int, values: Iterable[float], below: int | None = None
) -> str:
    """Say how to convert a file whose relevances, in this column from 1, are fractions.

    `below` is the line of the heading, if there is one.
    """
    values = [*values]
    numbers, cell = level_numbers(values), f"${column}"
    if numbers is None:
        decimals = max(map(_decimals, values), default=0)
        if any(value < 0 for value in values) or decimals > _MOST_DECIMALS:
            return _IN_WORDS
        change, then = f'sprintf("%.0f", {cell} * {10**decimals})', _SCALED
    else:
        tests = (f"{cell} == {_decimal(value)} ? {n}" for value, n in numbers.items())
        change, then = f"{' : '.join(tests)} : {cell}", _measures(gains_text(numbers))
    rows = "" if below is None else f"NR > {below} "
    read = {".gz": "zcat", ".zst": "zstdcat", ".lz4": "lz4cat"}.get(_ending(path), "")
    program, name = f"awk '{rows}{{{cell} = {change}}} 1'", shlex.quote(str(path))
    command = f"{read} {name} | {program}" if read else f"{program} {name}"
    return f"number the levels: {command} > levels.txt; then {then}"


def advice_for_values(values: Iterable[float], change: str) -> str:
    """Say how to convert relevances in memory; `change` is Python that uses {levels}."""
    values = [*values]
    numbers = level_numbers(values)
    if numbers is None:
        return _IN_WORDS
    others = {value: int(value) for value in sorted({*values}) if value <= 0}
    pairs = ", ".join(f"{float(value)!r}: {n}" for value, n in (others | numbers).items())
    code = change.format(levels=f"{{{pairs}}}")
    return f"number the levels: {code}; then {_measures(gains_text(numbers))}"


def _measures(gains: str) -> str:
    """Name measures that use the gains."""
    return (
        f"give the levels their values as gains: ndcg.{gains}, or ndcg_cut.10.{gains} for the "
        "first 10"
    )


_SCALED = "compute nDCG, which does not change if all gains are multiplied by the same number"
_IN_WORDS = (
    "number the levels from 1, and give them their values as gains, as in ndcg.1=0.5,2=0.9,3=2; "
    "relevances below 0 mean that a document was not judged"
)


def _decimal(value: float) -> str:
    """Format a number as its shortest decimal, without ``.0``."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _decimals(value: float) -> int:
    """Count the digits behind the point in the shortest decimal of a number."""
    return max(0, -int(Decimal(repr(value)).normalize().as_tuple().exponent))


def _ending(path: PathName) -> str:
    name = str(path)
    return name[name.rfind(".") :] if "." in name else ""
