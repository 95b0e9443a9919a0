"""Published numbers as intervals: what a table claims, to the decimals that it prints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from kgtrec.errors import FileError, UsageError
from kgtrec.measures import Measure
from kgtrec.measures.averaging import SIDES
from kgtrec.study.comparison.parts import ValueTable, read_value_table

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Numbers = Mapping[str, Mapping[str, str | float]]

SIDE = "side"
SLACK = 1e-9
"""Sums of floats differ in their last digits: intervals are wider by this share."""
_EMPTY = {"", "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", "n/a", "na", "nan", "none", "?"}
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_MARKUP = re.compile(
    r"\\(?:textbf|textit|underline|emph|mathbf|bm|best|num|text)\b|\^\{[^{}]*\}|\^\w"
    r"|\\(?:phantom|hphantom)\{[^{}]*\}|\\(?:dagger|ddagger|uparrow|downarrow)\b"
    r"|[{}$*†‡§~↑↓]|\\[,;!]|<[^<>]*>"
)
_SPREAD = re.compile(r"\s*(?:±|\+/-|\\pm|\().*", re.S)


@dataclass(frozen=True)
class Rounding:
    """How printed numbers were rounded.

    - percent: Metrics between 0 and 1 are printed as percentages.
    - truncated: Digits were cut off instead of rounded to the nearest number.
    """

    percent: bool = False
    truncated: bool = False

    @property
    def words(self) -> str:
        return "if truncated" if self.truncated else "if rounded"


class Claim(NamedTuple):
    """One printed number: the model and the measure that it is said to be of.

    - text: As it was printed, with "%" behind percentages.
    - low, high: The exact values that are printed so.
    - is_mean: A spread stands behind the number, so it is a mean over several rankings.
    - place: File and line.
    """

    model: str
    measure: Measure
    text: str
    low: float
    high: float
    is_mean: bool
    place: str

    @property
    def name(self) -> str:
        """The number in words: "tail MRR 0.253"."""
        side = "" if self.measure.side == "both" else f"{self.measure.side} "
        return f"{side}{self.measure.title} {self.text}"

    @property
    def group(self) -> tuple[object, ...]:
        """Numbers of one group are of the same ranks with the same weights."""
        return self.measure.rank_type, self.measure.averaging, self.measure.params

    def contains(self, value: float) -> bool:
        """Whether a value is printed so."""
        return self.low <= value <= self.high


class ReadClaims(NamedTuple):
    """The claims of some tables, and the columns that are no measures."""

    claims: list[Claim]
    ignored: list[str]

    def by_model(self) -> dict[str, list[Claim]]:
        models: dict[str, list[Claim]] = {}
        for claim in self.claims:
            models.setdefault(claim.model, []).append(claim)
        return models


def read_claims(tables: Paths | Numbers, rounding: Rounding, side: str = "both") -> ReadClaims:
    """The numbers of tables; rows of one model in several tables are claims about one ranking.

    UsageError or FileError: no measure among the columns, a cell that is no number, a number that
    its measure cannot have, or a model that has two rows in one table.
    """
    claims: list[Claim] = []
    ignored: list[str] = []
    if isinstance(tables, Mapping):
        for model, numbers in tables.items():
            for key, value in numbers.items():
                measure = _on_side(Measure.parse(key), side)
                claims += _claimed(str(model), measure, str(value), rounding, "", None)
        return ReadClaims(claims, ignored)
    paths = [tables] if isinstance(tables, (str, os.PathLike)) else list(tables)
    for path in paths:
        table = read_value_table(path)
        measures, others = _columns_of(table)
        if not measures:
            columns = ", ".join(one for one in table.columns if one != table.system)
            raise FileError(
                table.path,
                found=f"no column is a measure ({columns})",
                hint="name columns mrr, hits@10, mr, ... (kgtrec measures lists them)",
            )
        ignored += [f"{table.path}: {one}" for one in others]
        claims += _claims_of(table, measures, rounding, side)
    return ReadClaims(claims, ignored)


def _columns_of(table: ValueTable) -> tuple[dict[str, Measure], list[str]]:
    """The columns that are measures, and those that are not."""
    measures, others = {}, []
    for column in table.columns:
        if column in (table.system, table.column(SIDE)):
            continue
        key = re.sub(r"^(micro|macro)[_ ]", r"\1.", _plain(column).lower())
        key = re.sub(r"\s*\(%\)$|\s*[↑↓]$", "", key).replace(" ", ".")
        try:
            measures[column] = Measure.parse(key)
        except UsageError:
            others.append(column)
    return measures, others


def _claims_of(
    table: ValueTable, measures: Mapping[str, Measure], rounding: Rounding, side: str
) -> Iterator[Claim]:
    side_column = table.column(SIDE)
    lines: dict[tuple[str, str], int] = {}
    for line, cells in table.rows:
        own = cells[side_column].lower() if side_column else side
        if own not in SIDES:
            raise FileError(
                table.path, line, found=f"side {own!r}", hint=f"a side is {', '.join(SIDES)}"
            )
        model = _plain(cells[table.system])
        first = lines.setdefault((model, own), line)
        if first != line:
            raise FileError(
                table.path, line, found=f"model {model!r} again (line {first})",
                hint="give every row its own name, or name its side in a column `side`",
            )  # fmt: skip
        for column, measure in measures.items():
            yield from _claimed(
                model, _on_side(measure, own), cells[column], rounding, table.path, line
            )


def _on_side(measure: Measure, side: str) -> Measure:
    """A measure whose key names no side is of the row's."""
    return replace(measure, side=side) if measure.side == "both" else measure


def _claimed(
    model: str, measure: Measure, cell: str, rounding: Rounding, path: str, line: int | None
) -> Iterator[Claim]:
    """The claim of a cell, if it is not empty."""
    bare = _plain(cell)
    value = _SPREAD.sub("", bare)
    if value.lower() in _EMPTY:
        return
    try:
        interval = _interval(value, measure, rounding)
        problem, hint = _out_of_range(interval, measure, rounding)
    except InvalidOperation:
        problem, hint = f"{cell.strip()!r} is not a number", "leave empty what is not known"
    if problem:
        raise (
            FileError(path, line, found=problem, hint=hint)
            if path
            else UsageError(f"{model}: {problem}; {hint}")
        )
    text = f"{value}%" if _is_percent(measure, rounding) and value[-1] != "%" else value
    place = f"{path}:{line}" if path else ""
    yield Claim(model, measure, text, *interval, value != bare, place)


def _plain(cell: str) -> str:
    """A cell without marks and markup."""
    return _MARKUP.sub("", cell.replace("\\%", "%").replace("{,}", ",")).strip()


def _is_percent(measure: Measure, rounding: Rounding) -> bool:
    return rounding.percent and (measure.is_trec or measure.row[0].range.endswith("1]"))


def _interval(text: str, measure: Measure, rounding: Rounding) -> tuple[float, float]:
    """The values that are printed as this text, which InvalidOperation says is none."""
    bare = text.removesuffix("%").strip()
    number = Decimal(bare.replace(",", "") if _THOUSANDS.fullmatch(bare) else bare)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise InvalidOperation
    unit = Decimal(1).scaleb(exponent)
    low, high = number - unit / 2, number + unit / 2
    if rounding.truncated:
        low, high = (number - unit, number) if bare[0] == "-" else (number, number + unit)
    if text.endswith("%") or _is_percent(measure, rounding):
        low, high = low / 100, high / 100
    slack = SLACK * max(1.0, abs(float(number)))
    return float(low) - slack, float(high) + slack


def _out_of_range(
    interval: tuple[float, float], measure: Measure, rounding: Rounding
) -> tuple[str, str]:
    """What is wrong with a number whatever the others are, and a hint; both empty if nothing."""
    low, high = interval
    if measure.is_trec or measure.row[0].range.endswith("1]"):
        if low > 1:
            hint = (
                "the table has more than 100 %"
                if rounding.percent
                else "pass --percent (percent=True) if the table has percentages"
            )
            return f"{measure.title} is above 1", hint
    elif measure.row[0].range.startswith("[1,") and high < 1:
        return f"{measure.title} is below 1", "ranks begin at 1"
    return "", ""
