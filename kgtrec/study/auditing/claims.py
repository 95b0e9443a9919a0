"""Published numbers as intervals of exact values, and the protocols that give them.

The interval contains all values that are rounded to the printed number. Intervals are converted to
limits on means over ranks. If there are ranks, all protocols that they allow are compared with the
printed numbers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import product
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import MOST_AUDITED, check_count
from kgtrec._internal.arrays import Float64
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import WIDTH, ShownAsTables, Table
from kgtrec.errors import PathName, UsageError, must_be, refuse
from kgtrec.measures import RANK_TYPES, Measure
from kgtrec.measures.averaging import SIDES
from kgtrec.measures.metric import RankMetric, inverse, inverse_exp, same
from kgtrec.measures.random_baseline import Chance, Tally
from kgtrec.measures.rank_metrics import RANK_ROWS
from kgtrec.questions.api import Graph
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.result import Result
from kgtrec.study.comparison.parts import ValueTable, measure_of_heading, read_value_table
from kgtrec.study.comparison.samples import SystemRanks, is_ranks, ranks_by_name

Paths = PathName | Sequence[PathName]
Numbers = Mapping[str, Mapping[str, str | float]]

Interval = tuple[float, float]
BASES = {row.name: row for row in RANK_ROWS}
SIDE = "side"
SLACK = 1e-9
"""Share by which intervals are widened, because sums of floats differ in their last digits."""
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
    """The rounding of printed numbers.

    - percent: Metrics between 0 and 1 are printed as percentages.
    - truncated: Digits were cut off instead of rounded to the nearest number.
    """

    percent: bool = False
    truncated: bool = False


class Claim(NamedTuple):
    """A printed number, and the model and measure that it is claimed for.

    - text: The number as it was printed, with "%" behind percentages.
    - low, high: Ends of the interval of exact values that are printed as this number.
    - is_mean: True if a spread follows the number, so that it is a mean over several rankings.
    """

    model: str
    measure: Measure
    text: str
    low: float
    high: float
    is_mean: bool

    @property
    def name(self) -> str:
        """The number in words: "tail MRR 0.253"."""
        side = "" if self.measure.side == "both" else f"{self.measure.side} "
        return f"{side}{self.measure.title} {self.text}"

    def contains(self, value: float) -> bool:
        """Return True if a value would be printed as this number."""
        return self.low <= value <= self.high


def read_claims(
    tables: Paths | Numbers, rounding: Rounding, side: str = "both"
) -> tuple[dict[str, list[Claim]], list[str]]:
    """Read the numbers of tables by model; also return the columns that are not measures.

    Rows of one model in several tables are claims about one ranking. UsageError or FileError if no
    column is a measure, a cell is not a number, a measure cannot have a number, or a model has two
    rows in one table.
    """
    claims: list[Claim] = []
    ignored: list[str] = []
    paths = [tables] if isinstance(tables, (str, os.PathLike)) else tables
    if isinstance(paths, Mapping):
        for model, numbers in paths.items():
            for key, value in numbers.items():
                measure = _on_side(Measure.parse(key), side)
                claims += _read_cell(str(model), measure, str(value), rounding, "", None)
        paths = ()
    for path in paths:
        table = read_value_table(path)
        columns = [c for c in table.columns if c not in (table.system, table.column(SIDE))]
        parsed = {column: measure_of_heading(_strip_markup(column)) for column in columns}
        measures = {column: measure for column, measure in parsed.items() if measure is not None}
        if not measures:
            named = ", ".join(column for column in table.columns if column != table.system)
            hint = "name columns by measures: mrr, hits@10, ... (`kgtrec measures` lists them)"
            refuse(table.path, None, f"none of the columns is a measure ({named})", hint)
        ignored += [f"{table.path}: {column}" for column in columns if column not in measures]
        claims += _read_rows(table, measures, rounding, side)
    return group_pairs((claim.model, claim) for claim in claims), ignored


def _read_rows(
    table: ValueTable, measures: Mapping[str, Measure], rounding: Rounding, side: str
) -> Iterator[Claim]:
    """Yield the claims of a table's rows; FileError if a side is unknown or a model is repeated."""
    side_column = table.column(SIDE)
    lines: dict[tuple[str, str], int] = {}
    for line, cells in table.rows:
        row_side = cells[side_column].lower() if side_column else side
        if row_side not in SIDES:
            refuse(table.path, line, f"side {row_side!r} is unknown", must_be(row_side, SIDES))
        model = _strip_markup(cells[table.system])
        first = lines.setdefault((model, row_side), line)
        if first != line:
            problem = f"second row of model {model!r} (first: line {first})"
            refuse(table.path, line, problem, "give every row its own name, or add a column `side`")
        for column, measure in measures.items():
            yield from _read_cell(
                model, _on_side(measure, row_side), cells[column], rounding, table.path, line
            )


def _on_side(measure: Measure, side: str) -> Measure:
    """Return the measure, for the row's side if its key names no side."""
    return replace(measure, side=side) if measure.side == "both" else measure


def _read_cell(
    model: str, measure: Measure, cell: str, rounding: Rounding, path: str, line: int | None
) -> Iterator[Claim]:
    """Yield the claim of a cell, if it is not empty."""
    bare = _strip_markup(cell)
    value = _SPREAD.sub("", bare)
    if value.lower() in _EMPTY:
        return
    try:
        interval = _rounding_interval(value, measure, rounding)
        problem, hint = _check_range(interval, measure, rounding)
    except InvalidOperation:
        problem, hint = f"{cell.strip()!r} is not a number", "leave the cell empty if it is unknown"
    if problem and path:
        refuse(path, line, problem, hint)
    if problem:
        raise UsageError(f"{model}: {problem}; {hint}")
    text = f"{value}%" if _is_percent(measure, rounding) and value[-1] != "%" else value
    yield Claim(model, measure, text, *interval, value != bare)


def _strip_markup(cell: str) -> str:
    """Return the text of a cell without marks and markup."""
    return _MARKUP.sub("", cell.replace("\\%", "%").replace("{,}", ",")).strip()


def _is_percent(measure: Measure, rounding: Rounding) -> bool:
    return rounding.percent and _is_share(measure)


def _is_share(measure: Measure) -> bool:
    return measure.is_trec or measure.row[0].range.endswith("1]")


_MOST_DIGITS = 100


def _rounding_interval(text: str, measure: Measure, rounding: Rounding) -> Interval:
    """Return the interval of values printed as this text; InvalidOperation for other texts."""
    bare = text.removesuffix("%").strip()
    number = Decimal(bare.replace(",", "") if _THOUSANDS.fullmatch(bare) else bare)
    exponent = number.as_tuple().exponent
    # No metric has as many digits; the arithmetic of decimals would overflow or take long.
    if not isinstance(exponent, int) or not -_MOST_DIGITS <= number.adjusted() <= _MOST_DIGITS:
        raise InvalidOperation
    if exponent < -_MOST_DIGITS:
        raise InvalidOperation
    unit = Decimal(1).scaleb(exponent)
    low, high = number - unit / 2, number + unit / 2
    if rounding.truncated:
        low, high = (number - unit, number) if bare[0] == "-" else (number, number + unit)
    if text.endswith("%") or _is_percent(measure, rounding):
        low, high = low / 100, high / 100
    slack = SLACK * max(1.0, abs(float(number)))
    return float(low) - slack, float(high) + slack


def _check_range(interval: Interval, measure: Measure, rounding: Rounding) -> tuple[str, str]:
    """Return the problem of a number that its measure cannot have, and a hint; else both empty."""
    low, high = interval
    if _is_share(measure) and low > 1:
        hint = f"pass {argument('percent', True)} if the table has percentages"
        if rounding.percent:
            hint = (
                f"correct it, or leave out {argument('percent', True)} if nothing is a percentage"
            )
        return f"{measure.title} is above 1", hint
    if not measure.is_trec and measure.row[0].range.startswith("[1,") and high < 1:
        return f"{measure.title} is below 1", "correct it: ranks begin at 1"
    return "", ""


# --- Limits on means ---


@dataclass(frozen=True)
class Sizes:
    """The sizes of a table's test set.

    - instances: Number of ranks that a number averages, by side; a side is absent if unknown.
    - questions: The same for macro averages.
    - entities: Largest possible number of candidates, and so the largest rank.
    - candidates: Candidates of every instance, by side, if the graph is known.
    """

    instances: dict[str, int]
    entities: int
    questions: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_counts(cls, instances: int | None, entities: int, side: str = "both") -> Sizes:
        """Build sizes from the number of ranks that a side's numbers average.

        Heads and tails have equally many.
        """
        if entities < 1 or (instances is not None and instances < 1):
            raise UsageError(
                f"{argument('instances', instances)}, {argument('entities', entities)}; give "
                "numbers of 1 or more"
            )
        check_count("entities", entities, most=MOST_AUDITED)
        counts = {} if instances is None else {side: instances}
        if instances is not None and side == "both" and instances % 2 == 0:
            counts |= {"head": instances // 2, "tail": instances // 2}
        return cls(counts, entities)

    @classmethod
    def from_questions(cls, questions: Any) -> Sizes:
        """Build the sizes of questions, for both sides together and for each."""
        question, candidates = questions.instance_question, np.asarray(questions.candidates)
        side = np.asarray(questions.side)[question]
        rows = {questions.sides: np.arange(len(side))}
        of_sides = {name: np.flatnonzero(side == k) for k, name in enumerate(("head", "tail"))}
        if all(map(len, of_sides.values())):
            rows |= of_sides
        return cls(
            {name: len(rows_of_side) for name, rows_of_side in rows.items()},
            questions.n_labels,
            {name: len(np.unique(question[rows_of_side])) for name, rows_of_side in rows.items()},
            {
                name: Tally.from_items(candidates[rows_of_side])
                for name, rows_of_side in rows.items()
            },
        )


class Limit(NamedTuple):
    """A claim as an interval for the mean of a function of the rank.

    - row, parameter: The metric whose value per rank is averaged; for a median, Hits at its rank.
    - low, high: Ends of the interval.
    - back: Function from the mean to the printed measure.
    """

    claim: Claim
    row: RankMetric
    parameter: float
    low: float
    high: float
    back: Callable[[float], float]


def limits_of_claims(claims: Sequence[Claim], sizes: Sizes) -> tuple[list[Limit], list[str]]:
    """Return the limits of claims, and the reasons why other claims have none."""
    limits: list[Limit] = []
    reasons = []
    for claim in claims:
        limits_of_claim = () if claim.measure.is_trec else tuple(_limit_means(claim, sizes))
        limits += limits_of_claim
        if not limits_of_claim:
            reasons.append(
                f"{claim.measure.title} is not a mean over ranks, or its chance level is unknown"
            )
    return limits, reasons


def _limit_means(claim: Claim, sizes: Sizes) -> Iterator[Limit]:
    """Yield the limits of a claim: one for a mean over ranks, two for a median, else none."""
    row, parameter = claim.measure.row
    low, high = claim.low, claim.high
    if row.name == "median_rank":
        # Half of the ranks are up to the upper end, and at most half are below the lower one.
        hits = BASES["hits@k"]
        yield Limit(claim, hits, math.floor(2 * high) / 2, 0.5, 1.0, _unknown)
        yield Limit(claim, hits, math.ceil(2 * low) / 2 - 0.5, 0.0, 0.5, _unknown)
        return
    base = BASES.get(row.base) if row.is_adjusted else row
    if base is None or base.of_mean is None or base.uses_candidates:
        return
    mean_of = _MEAN_OF[base.of_mean]
    if not row.is_adjusted:
        back, ends = _reverse_mean_of(base.of_mean), [low, high]
    else:
        ways = [
            _reverse_mean_of(partial(row.with_chance, chance=chance))
            for chance in _list_chances(row, parameter, claim, sizes)
        ]
        back, ends = ways[0] if len(ways) == 1 else _unknown, []
        for printed in ways:  # linear in the base's value
            at_one, at_two = (printed(mean_of(value)) for value in (1.0, 2.0))
            ends += [1.0 + (end - at_one) / (at_two - at_one) for end in (low, high)]
    if ends:
        means = mean_of(min(ends)), mean_of(max(ends))
        yield Limit(claim, base, parameter, min(means), max(means), back)


_MEAN_OF: dict[Any, Callable[[float], float]] = {
    same: float,
    inverse: lambda value: 1.0 / value if value > 0 else math.inf,
    inverse_exp: lambda value: -math.log(value) if value > 0 else math.inf,
    np.exp: lambda value: math.log(value) if value > 0 else 0.0,
}
"""Functions from a metric to the mean that `RankMetric.of_mean` computes it from."""


def _unknown(mean: float) -> float:
    """Return NaN, as a `Limit.back` that does not know the printed measure."""
    return math.nan


def _reverse_mean_of(of_mean: Callable[[Float64], Float64]) -> Callable[[float], float]:
    """Return a function of a float, for a `Limit.back`, from a function of arrays."""
    return lambda mean: float(of_mean(np.asarray(mean)))


def _list_chances(row: RankMetric, parameter: float, claim: Claim, sizes: Sizes) -> list[Chance]:
    """Return the chance level of an adjusted metric, or its extremes; empty if it is unknown."""
    if row.chance is None or row.from_moments is None or claim.measure.averaging != "micro":
        return []
    tally = sizes.candidates.get(claim.measure.side)
    if tally is None and row.name.startswith("z_"):
        return []
    # Filtering leaves between one and all of the entities.
    extremes = [Tally.from_items([2]), Tally.from_items([max(sizes.entities, 2)])]
    return [row.chance(chance, parameter) for chance in (extremes if tally is None else [tally])]


AVERAGES = ("micro", "macro", "question", "relation", "macro_relation", "triple")
FILTERS = ("all", "raw", ("train",), "valid", ("train", "test"))
"""The filters that papers use, the default first; "valid" is train and valid."""
_FILTER_WORDS = {
    "raw": "unfiltered",
    "train": "train alone filtered",
    "valid": "train and valid filtered",
    "train+test": "train and test filtered",
}
TIE_ORDERS = ("first by column", "last by column")
"""Ranks by sort order: the position among ties in the order of columns, or in its reverse.

These names follow the filter's. A stable sort by descending score gives the first, a stable sort by
ascending score that is reversed the last (Berrendorf et al. 2020, section 2.1 and appendix).
"""
DEFAULT = "the default protocol"
CUTOFFS = range(1, 101)
"""Cutoffs that are tried for a share of hits that no protocol gives."""


def _filter_words(name: str) -> str:
    """Describe a filter, and the order of ties if its name gives one."""
    order = next((order for order in TIE_ORDERS if name.endswith(order)), "")
    bare = name.removesuffix(order).removesuffix(", ")
    words = [] if order and bare == FILTERS[0] else [_FILTER_WORDS.get(bare, f"filter {bare}")]
    return ", ".join([*words, *[f"ties {order}"] * bool(order)])


class TriedProtocol(NamedTuple):
    """A way to compute numbers from scores."""

    side: str
    filter: str
    rank_type: str
    averaging: str

    def differs_from(self, default: TriedProtocol) -> list[str]:
        """Return the differences from the default protocol in words."""
        words = (
            f"{self.side} only",
            _filter_words(self.filter),
            f"{self.rank_type} ranks",
            f"{self.averaging} average",
        )
        rows = zip(words, self, default, strict=True)
        return [word for word, value, usual in rows if value != usual]


class Match(NamedTuple):
    """A protocol and the distance of its values from the printed ones.

    - distance: Largest difference, as a share of the printed number; 0 if all values are printed
      as these numbers.
    - values: Computed values, by the name of the printed number.
    """

    model: str
    words: str
    distance: float
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class ProtocolSearch(ShownAsTables):
    """Protocols that give a model's printed numbers, or the nearest one.

    - matches: By model, those with the fewest differences from the default first; only the nearest
      one if none agrees.
    - hints: Sentences on numbers that no protocol gives, but that are Hits at another cutoff.
    - tried: Number of protocols per model.
    - defaults: By model, the default protocol, if it has every measure of the table.
    """

    matches: dict[str, tuple[Match, ...]]
    hints: tuple[str, ...]
    tried: int
    defaults: dict[str, Match]

    def table(self) -> Table:
        """Return a table with one row per protocol that agrees, or for the nearest one."""
        rows = [
            (
                model,
                "agrees" if match.distance == 0 else "nearest",
                match.words,
                100 * match.distance,
            )
            for model, matches in self.matches.items()
            for match in matches
        ]
        return Table.from_rows("model, verdict, protocol, difference %:2", rows, names=3)

    def text(self) -> str:
        """Return a text that describes the protocols."""
        lines = []
        for model, matches in self.matches.items():
            if matches[0].distance == 0:
                lines.append(f"{model}: every number agrees with:")
                lines += [f"  {match.words}" for match in matches]
                continue
            nearest = matches[0]
            text = (
                f"{model}: none of {self.tried} protocols gives every number; the nearest is "
                f"{nearest.words}, at most {100 * nearest.distance:.2g} % away"
            )
            lines.append(fill(text, WIDTH, break_on_hyphens=False, break_long_words=False))
            lines += [f"  {line}" for line in str(self._values(model)).splitlines()]
        return "\n".join([*lines, *self.hints])

    def _values(self, model: str) -> Table:
        """Return a table of the printed numbers, and the values by default and by the nearest."""
        nearest = self.matches[model][0]
        default = self.defaults.get(model, nearest)
        columns = {"default": default, "nearest": nearest}
        if default == nearest:
            columns = {"computed": nearest}
        return Table.from_columns(
            ["printed", *columns],
            list(nearest.values),
            *([f"{value:.5g}" for value in match.values.values()] for match in columns.values()),
        )


def protocols_of(
    tables: Paths | Numbers,
    ranks: Named[SystemRanks | Mapping[str, SystemRanks]],
    *,
    percent: bool = False,
    truncated: bool = False,
) -> ProtocolSearch:
    """Find the protocols that give the published numbers of models.

    Parameters
    ----------
    tables : path, sequence of paths, or mapping
        As for `audit`. Sides that the table names are kept; all averages, rank types and other
        sides are tried.
    ranks : mapping of str to Ranks or Result, or to mapping of str to them; or pairs
        By model, as in the table. Name several of one model by their filter or candidates, the
        default first. A table with one model takes the only ranks under any name.
    percent, truncated : bool
        As for `audit`.

    Raises
    ------
    FileError
        As for `audit`.
    UsageError
        No model of the table has ranks, or no number of it can be computed from them.
    """
    ranks = _ranks_by_model(ranks)
    claims, _ = read_claims(tables, Rounding(percent, truncated))
    if len(claims) == len(ranks) == 1:
        ranks = {next(iter(claims)): next(iter(ranks.values()))}
    both = [model for model in claims if model in ranks]
    if not both:
        raise UsageError(
            f"no model of the table has ranks: the table has {', '.join(claims)}; "
            f"the ranks are of {', '.join(ranks)}; give them the same names"
        )
    matches: dict[str, tuple[Match, ...]] = {}
    defaults: dict[str, Match] = {}
    hints: list[str] = []
    tried = 0
    for model in both:
        results = {name: Result(filtered) for name, filtered in ranks[model].items()}
        candidates = [*_find_matches(model, claims[model], results)]
        if not candidates:
            raise UsageError(
                f"none of the numbers of {model} can be computed from its ranks; the table needs "
                "measures of ranks, such as mrr or hits@10"
            )
        tried = max(tried, len(candidates))
        agreeing = [match for match in candidates if match.distance == 0]
        defaults.update((model, match) for match in candidates if match.words == DEFAULT)
        matches[model] = tuple(agreeing or [min(candidates, key=lambda match: match.distance)])
        if not agreeing:
            hints += _find_other_cutoffs(claims[model], next(iter(results.values())))
    return ProtocolSearch(matches, tuple(hints), tried, defaults)


def _ranks_by_model(ranks: object) -> dict[str, dict[str, Ranks]]:
    """Return the ranks of every model by the name of their filter, "" for ranks without one."""
    return {
        model: ranks_by_name("ranks", {"": several} if is_ranks(several) else several, "filter")
        for model, several in by_name("ranks", ranks, "model").items()
    }


def _find_matches(
    model: str, claims: Sequence[Claim], results: Mapping[str, Result]
) -> Iterator[Match]:
    """Yield a match per protocol that has all measures.

    Protocols with the fewest differences from the default come first.
    """
    sides, filters = next(iter(results.values())).sides[::-1], tuple(results)
    default = TriedProtocol(sides[0], filters[0], "realistic", "micro")
    every = [
        TriedProtocol(side, filtered, *rest)
        for filtered, side, *rest in product(filters, sides, RANK_TYPES, AVERAGES)
        if not filtered.endswith(TIE_ORDERS) or rest[0] == default.rank_type
    ]
    for protocol in sorted(every, key=lambda protocol: len(protocol.differs_from(default))):
        values: dict[str, float] = {}
        distances = [0.0]
        for claim in claims:
            value = _evaluate_protocol(claim.measure, protocol, results[protocol.filter])
            if value is None or math.isnan(value):
                break
            values[claim.name] = value
            printed = (claim.low + claim.high) / 2
            away = abs(value - printed) / max(abs(printed), 1e-12)
            distances.append(0.0 if claim.contains(value) else away)
        else:
            words = ", ".join(protocol.differs_from(default)) or DEFAULT
            yield Match(model, words, max(distances), values)


def _evaluate_protocol(measure: Measure, protocol: TriedProtocol, result: Result) -> float | None:
    """Return the value of a measure by a protocol; None if the protocol has no such value."""
    side = protocol.side if measure.side == "both" else measure.side
    if measure.is_trec:
        key: Any = replace(measure, side=side)
        return result.get(key) if protocol[2:] == ("realistic", "micro") else None
    if protocol.averaging not in measure.row[0].averagings:
        return None
    if protocol.averaging == "triple" and side != "both":
        return None
    tried = Measure(side, protocol.rank_type, protocol.averaging, measure.metric)
    value: float | None = result.get(tried)
    return value


def _find_other_cutoffs(claims: Sequence[Claim], result: Result) -> Iterator[str]:
    """Yield sentences on Hits that equal Hits at another cutoff.

    Of many cutoffs, some agree by chance. So another number of the model, if it has any, must be
    the value by the same average.
    """
    for claim in claims:
        if claim.measure.is_trec or claim.measure.row[0].name != "hits@k":
            continue
        cutoff = claim.measure.row[1]
        for averaging in ("micro", "macro"):
            values = {
                k: float(result[f"{claim.measure.side}.{averaging}.hits@{k}"])
                for k in CUTOFFS
                if k != cutoff
            }
            k = next((k for k, value in values.items() if claim.contains(value)), None)
            others = [other for other in claims if other is not claim]
            supported = not others or any(_agrees(other, averaging, result) for other in others)
            if k is not None and supported:
                yield f"{claim.model}: {claim.name} is the {averaging} Hits@{k} of these ranks"
                break


def _agrees(claim: Claim, averaging: str, result: Result) -> bool:
    """Return True if a printed number is the value by an average and realistic ranks."""
    protocol = TriedProtocol(claim.measure.side, "", "realistic", averaging)
    value = _evaluate_protocol(claim.measure, protocol, result)
    return value is not None and not math.isnan(value) and claim.contains(value)


def ranks_by_filter(
    scores: Any, graph: Any, type_constraints: str | None = None, **options: Any
) -> dict[str, Ranks]:
    """Rank under every filter that papers use, and under type constraints if these are given.

    If there are ties, the ranks by sort order under every filter follow (`TIE_ORDERS`). Facts with
    a context have none.
    """
    from kgtrec.ranking.rank import rank

    has = [each for each in FILTERS if isinstance(each, str) or set(each) <= set(graph.splits)]
    questions = graph.questions_by_filter(has, **options)
    ranked = {name: ranks for name, (ranks, _) in rank(scores, questions, run_depth=0).items()}
    tied = any(ranks.equal.any() or ranks.macro_equal.any() for ranks in ranked.values())
    if type_constraints is not None:
        fewer = questions["all"].restrict(type_constraints=type_constraints, outside="worst")
        ranked["type-constrained candidates"] = rank(scores, fewer, run_depth=0)[0]
    if tied and graph.contexts is None:
        named = name_by_column(graph).questions_by_filter(has, **options)
        for name, (ranks, _) in rank(scores, named, run_depth=0).items():
            for order, last in zip(TIE_ORDERS, (False, True), strict=True):
                ranked[f"{name}, {order}"] = order_ties_by_column(ranks, last)
    return ranked


def name_by_column(graph: Graph) -> Graph:
    """Return a graph whose entities are named so that the order of names is that of columns."""
    width, splits = len(str(graph.n_entities)), dict[str, Any](graph.splits)
    return type(graph).from_arrays(
        **splits,
        entities=[f"{column:0{width}}" for column in range(graph.n_entities)],
        n_relations=graph.n_relations,
    )


def order_ties_by_column(ranks: Ranks, last: bool) -> Ranks:
    """Return ranks without ties: tied candidates stand in the order of columns, or in its reverse.

    `ranks` must be of questions whose candidates' names are in the order of columns. As in
    trec_eval, the later of two tied names is ahead in them.
    """
    columns = ranks.columns()
    for prefix in ("", "macro_"):
        later = columns[f"{prefix}tied_ahead"]
        ahead = later if last else columns[f"{prefix}equal"] - later
        nothing = np.zeros(len(ranks), np.int64)
        columns[f"{prefix}greater"] = columns[f"{prefix}greater"] + ahead
        columns |= {f"{prefix}equal": nothing, f"{prefix}tied_ahead": nothing}
    return Ranks(columns, ranks.manifest, ranks.relation_labels, ranks.entity_labels)
