"""Convert names of measures (spelt as in trec_eval, ir_measures or for graphs) to columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_items, require_type
from kgtrec._internal.text import split_measures
from kgtrec.errors import UsageError, suggestion
from kgtrec.trec.measures.rows import ANSWER_ROWS, FORMATS, NICKNAMES, TABLE, TrecMeasure, nickname
from kgtrec.trec.measures.trec_measure import EXPONENTIAL, WrongParameters, parameters_of


class BadCutoff(UsageError):
    """A known measure with invalid parameters (trec_eval's exit code: 2)."""

    exit_code = 2


class WrongFormat(UsageError):
    """A known measure for another format of judgements (trec_eval's exit code: 4)."""

    exit_code = 4


@dataclass(frozen=True)
class Column:
    """One line of output per query: a measure and its parameters.

    - measure: A key of `TABLE`.
    - cutoff: Rank, recall point, multiple, beta or length; None for measures without one.
    - numbers: Parameters of utility and 11pt_avg.
    - gains: Relevance and its gain, if not the default.
    - exponential: A document of relevance r gains 2^r - 1.
    - persistence: Of rbp and rbp_resid.
    - end: "low" or "high" of a measure of answers.
    - typed: Parameters in the name, if trec_eval repeats them as typed.
    - level, judged_only: Its own level of relevance (None: that of the evaluation), and whether its
      lists omit documents without a judgement; ``P(rel=2,judged_only=True)@5``.
    - asked: The name as the user wrote it, unless it is spelt as trec_eval spells it. It plays no
      part in comparisons.
    """

    measure: str
    cutoff: float | None = None
    numbers: tuple[float, ...] = ()
    gains: tuple[tuple[int, float], ...] = ()
    exponential: bool = False
    persistence: float = 0.9
    end: str = ""
    typed: str = ""
    level: int | None = None
    judged_only: bool = False
    asked: str = field(default="", compare=False)

    @property
    def row(self) -> TrecMeasure:
        """Row of the measure in the table."""
        return TABLE[self.measure]

    @cached_property
    def name(self) -> str:
        """Name in trec_eval: ``map``, ``P_10``, ``iprec_at_recall_0.10``; ``kg_hits_10_low``.

        Own settings follow it: ``P_10(rel=2)``.
        """
        name = "_".join(filter(None, (self.measure, self.parameter, self.end)))
        level = "" if self.level is None else f"rel={self.level}"
        settings = ",".join(filter(None, (level, "judged_only=True" * self.judged_only)))
        return f"{name}({settings})" if settings else name

    @property
    def key(self) -> str:
        """Name in results: as the user wrote it, ``AP@20``, or in trec_eval, ``map_cut_20``."""
        return self.asked or self.name

    @property
    def has_setting(self) -> bool:
        """Whether it has its own level of relevance, or its own judged-only lists."""
        return self.level is not None or self.judged_only

    @property
    def plain(self) -> Column:
        """The same measure without its own settings."""
        return replace(self, level=None, judged_only=False)

    @property
    def parameter(self) -> str:
        """Part of the name behind the measure: ``10``, ``0.10``; empty without one."""
        if self.row.kind == "rank" and self.cutoff is not None:
            return "_".join(filter(None, (str(int(self.cutoff)), self.typed)))
        if self.row.kind in ("point", "signed point") and self.cutoff is not None:
            return f"{self.cutoff:.2f}"
        return self.typed

    @property
    def is_count(self) -> bool:
        """True for the num_* measures: printed as integers, summed over queries."""
        return self.row.output == "count"

    @property
    def is_text(self) -> bool:
        """True for relstring and runid: strings."""
        return self.row.output == "string"

    @property
    def is_summary_only(self) -> bool:
        """True for measures that trec_eval prints for all queries together, never for one."""
        return self.row.shown == "summary"

    @property
    def is_query_only(self) -> bool:
        """True for measures that trec_eval prints for single queries, never for all together."""
        return self.row.shown == "query"

    @property
    def is_geometric(self) -> bool:
        """True for gm_*: logarithms for a query, a geometric mean in the summary."""
        return self.measure.startswith("gm_")

    def of_mean(self, mean: Any) -> Any:
        """Compute the measure from the mean over queries, or from several: exp of it for gm_*."""
        if not self.is_geometric:
            return mean
        if isinstance(mean, float):
            return math.exp(mean)  # of the C library, as in trec_eval
        import numpy as np

        return np.exp(mean)

    @cached_property
    def sees(self) -> int | None:
        """Number of documents per query that matter; None if all do."""
        if self.judged_only:
            return None
        if self.row.sees == "nothing":
            return 1
        if self.row.of_answers:
            return None
        if self.row.kind == "rank" or self.row.sees == "cutoff":
            return int(self.cutoff or 0)
        return None


def depth_needed(columns: Iterable[Column]) -> int | None:
    """Return the number of documents per query that the columns look at; None if one looks at
    all."""
    seen = [column.sees for column in columns]
    return None if None in seen else max((depth for depth in seen if depth is not None), default=1)


def resolve(
    measures: Iterable[str],
    *,
    command_line: bool = False,
    compat: int = 10,
    qrels_format: str | None = "qrels",
    of_answers: bool = False,
    as_asked: bool = False,
) -> list[Column]:
    """Find the columns of measure names, without repeats, in table order or `as_asked`.

    Measures of answers, which may be listed in one name, are refused unless `of_answers`.
    """
    require_type("measures", measures, Iterable, "a list of names, such as ['map']")
    names = (measures,) if isinstance(measures, str) else tuple(measures)
    require_items("measures", names, str, "text, such as 'map'")
    rules = _NameRules(command_line, compat, qrels_format, of_answers)
    columns = _resolve_cached(names, rules, len(TABLE))
    if as_asked:
        return [column for _, column in sorted(columns, key=lambda pair: pair[0])]
    return [column for _, column in columns]


def in_table_order(columns: Iterable[Column]) -> list[Column]:
    """Sort columns as trec_eval prints them."""
    order = {measure: i for i, measure in enumerate(TABLE)}
    return sorted(columns, key=lambda c: (order[c.measure], c.cutoff is not None, c.cutoff or 0.0))


@dataclass(frozen=True)
class _NameRules:
    """How names of measures are read: the options of `resolve`."""

    command_line: bool
    compat: int
    qrels_format: str | None
    of_answers: bool


@lru_cache(512)
def _resolve_cached(
    measures: tuple[str, ...], rules: _NameRules, rows: int
) -> tuple[tuple[int, Column], ...]:
    """Do the work of `resolve`: columns with the positions of their names. `rows`, the size
    of the table, is a key of the cache."""
    if not measures:
        raise UsageError("no measure is given; give some, such as map_cut_20, or 'official'")
    reader = _NameReader(rules)
    for position, name in enumerate(split_measures(measures)):
        reader.add(position, name)
    reader.raise_problems()
    return reader.list_columns()


@dataclass(frozen=True)
class _ParsedName:
    """A name of a measure, taken apart: ``P(rel=2)@5`` is P, "@", "5" and {"level": 2}.

    - full: The name as the user wrote it.
    - text: The name without its settings.
    - measure, separator, parameters: The parts of `text`, in any spelling.
    - settings: ``level`` and ``judged_only`` of a `Column`.
    """

    full: str
    text: str
    measure: str
    separator: str
    parameters: str
    settings: dict[str, Any]

    @classmethod
    def parse(cls, full: str, command_line: bool) -> _ParsedName:
        """Take a name apart; WrongParameters if its settings have invalid values."""
        text, settings = _take_settings(full)
        measure, separator, parameters = _split(text, command_line)
        if measure == "num_ret" and "level" in settings:  # NumRet(rel=2) of ir_measures
            measure = "num_rel_ret"
        return cls(full, text, measure, separator, parameters, settings)


class _NameReader:
    """Collects the columns of names, and the problems of names that have none.

    - by_measure: The columns with parameters of each measure, with the position of their names.
    - bare: Positions of measures that are named without parameters.
    - settled: Measures whose parameters are known: trec_eval takes those of the first name.
    - unknown, wrong: Messages about names without a measure, and about parameters.
    """

    def __init__(self, rules: _NameRules) -> None:
        self.rules = rules
        self.by_measure: dict[str, dict[Column, int]] = {}
        self.bare: dict[str, int] = {}
        self.settled: set[str] = set()
        self.unknown: list[str] = []
        self.wrong: list[str] = []

    def add(self, position: int, full_name: str) -> None:
        """Add the columns of a name, or its problem."""
        try:
            name = _ParsedName.parse(full_name, self.rules.command_line)
        except WrongParameters as error:
            self.wrong.append(f"{full_name!r}: {error}")
            return
        members = nickname(name.measure, self.rules.compat)
        if members is not None and not name.settings:
            for member in members:
                self._add_bare(member, position)
        elif not self._is_refused(name):
            self._add_measure(name, TABLE[name.measure], position)

    def _add_bare(self, measure: str, position: int) -> None:
        """Add a measure without parameters."""
        self.by_measure.setdefault(measure, {})
        self.bare.setdefault(measure, position)

    def _is_refused(self, name: _ParsedName) -> bool:
        """Return whether a name has no measure here, or a wrong setting; add the problem."""
        row = TABLE.get(name.measure)
        if row is None or (name.separator and not name.parameters):
            self.unknown.append(_why_unknown(name.full))
        elif row.of_answers and not self.rules.of_answers:
            self.unknown.append(
                f"{name.text!r} is a measure of answers, not of queries; choose another here"
            )
        elif problem := _why_no_setting(name.full, name.measure, name.settings):
            self.wrong.append(problem)
        else:
            return False
        return True

    def _add_measure(self, name: _ParsedName, row: TrecMeasure, position: int) -> None:
        """Add the columns of a name that has a measure, or the problem of its parameters."""
        command_line = self.rules.command_line
        requested = self.by_measure.setdefault(name.measure, {})
        is_bare = not name.separator or (command_line and row.kind == "ignored")
        if is_bare and not name.settings and name.text in TABLE:
            self._add_bare(name.measure, position)
            return
        is_strict = command_line and not row.of_answers
        if is_strict and name.separator == "." and not name.settings:
            if name.measure in self.settled:
                return
            self.settled.add(name.measure)
        try:
            columns = _measure_columns(name.measure, {})
            if not is_bare:
                all_parameters = parameters_of(name.measure, row, name.parameters, is_strict)
                columns = [Column(name.measure, **parameters) for parameters in all_parameters]
        except WrongParameters as error:
            self.wrong.append(f"{name.text!r}: {error}")
            return
        has_own_spelling = (
            name.settings or name.separator == "@" or not name.text.startswith(name.measure)
        )
        for column in columns:
            asked = ""
            if has_own_spelling and not row.of_answers:
                asked = _asked(name.full, column, len(columns))
            requested.setdefault(replace(column, **name.settings, asked=asked, end=""), position)

    def raise_problems(self) -> None:
        """Raise one error with all problems, if there are any."""
        strange = _of_other_formats(self.by_measure, self.rules.qrels_format)
        if self.unknown:
            raise UsageError("; ".join([*self.unknown, *strange, *self.wrong]))
        if strange:
            raise WrongFormat("; ".join(strange))
        if self.wrong:
            raise BadCutoff("; ".join(self.wrong))

    def list_columns(self) -> tuple[tuple[int, Column], ...]:
        """Return the positions of names and their columns, in table order."""
        for measure, position in self.bare.items():
            requested = self.by_measure[measure]
            if all(column.has_setting for column in requested):  # no parameters replace them
                for column in _measure_columns(measure, {}):
                    requested.setdefault(replace(column, end=""), position)
        return tuple(
            (self.by_measure[measure][replace(column, end="")], column)
            for measure in TABLE
            if measure in self.by_measure
            for column in _measure_columns(measure, self.by_measure[measure])
        )


def _asked(name: str, column: Column, n_columns: int) -> str:
    """Return the spelling of a column in a name that has several: ``P@5,10`` has ``P@5``."""
    name = re.sub(r"\s", "", name)
    return name if n_columns == 1 else f"{name.partition('@')[0]}@{column.parameter}"


def _take_settings(name: str) -> tuple[str, dict[str, Any]]:
    """Take ``rel`` and ``judged_only`` out of the parentheses of a name.

    Returns the name without them, and settings of a `Column`. Other parameters stay.
    """
    match = re.fullmatch(r"([^()]*)\(([^()]*)\)([^()]*)", name)
    if match is None or not re.search(r"\b(rel|judged_only|cutoff)\s*=", match[2]):
        return name, {}
    settings: dict[str, Any] = {}
    kept_parts, cutoff = [], ""
    for part in re.split(r",(?![^{]*\})", match[2]):
        parameter, _, value = (text.strip() for text in part.partition("="))
        if parameter == "rel":
            if not re.fullmatch("[0-9]{1,18}", value):
                raise WrongParameters(f"rel must be a whole number from 0, as in {match[1]}(rel=2)")
            settings["level"] = int(value)
        elif parameter == "judged_only":
            if value not in ("True", "False"):
                raise WrongParameters("judged_only must be True or False")
            settings |= {"judged_only": True} if value == "True" else {}
        elif parameter == "cutoff" and not match[3]:
            cutoff = f"@{value}"
        else:
            kept_parts.append(part.strip())
    kept = f"({','.join(kept_parts)})" if kept_parts else ""
    return match[1] + kept + (match[3] or cutoff), settings


_WITHOUT_LEVEL = frozenset({"runid", "num_q", "relstring", "judged", "unj", "rbp_resid"})
"""Measures of qrels, besides those of gains, whose values no level of relevance changes."""


def _why_no_setting(name: str, measure: str, settings: dict[str, Any]) -> str:
    """Say why a measure cannot have these settings; "" if it can."""
    row = TABLE.get(measure)
    if not settings or row is None:
        return ""
    if row.format != "qrels" or row.of_answers:
        return f"{name!r}: {measure} takes neither rel nor judged_only; leave them out"
    if "level" in settings and (measure in _WITHOUT_LEVEL or (row.graded and measure != "rbp")):
        reason = "it uses gains, not a level" if row.graded else "no level changes it"
        return f"{name!r}: {measure} takes no rel, because {reason}; leave rel out"
    return ""


def _of_other_formats(measures: Iterable[str], qrels_format: str | None) -> list[str]:
    """Write messages about measures for other formats of judgements."""
    if qrels_format is None:
        return []
    used_format = FORMATS[qrels_format]
    strange: dict[str, list[str]] = {}
    for name in sorted(measures, key=[*TABLE].index):
        if TABLE[name].format not in ("any", used_format):
            strange.setdefault(TABLE[name].format, []).append(name)
    return [
        f"Can't calculate measure {names[0]!r} with {argument('qrels_format', qrels_format)}: "
        f"{', '.join(names)} "
        f"{'needs' if len(names) == 1 else 'need'} judgements of the format {other}; give measures "
        f"of {qrels_format}, or judgements of that format with {argument('qrels_format', other)}"
        for other, names in strange.items()
    ]


def canonical(name: str) -> str | None:
    """Return trec_eval's name of the one measure that a result key names in any spelling.

    ``MAP@20``, ``map_cut.20`` and ``Map_Cut_20`` are ``map_cut_20``. None for unknown names,
    several measures, and strings, which have no mean.
    """
    column = key_column(name)
    return None if column is None else column.name


def key_column(name: str) -> Column | None:
    """Find the column of the measure that `canonical` names."""
    for spell in (str, _restore_case):  # as written, and as the table would write it
        spelled = spell(name)
        try:
            columns = resolve([spelled])
        except UsageError:
            continue
        if len(columns) == 1 and not columns[0].is_text and spelled not in NICKNAMES:
            return columns[0]
    return None


def find_depth(name: str) -> int | None:
    """Return the number of candidates per question that a key's measure sees; None for the whole
    run."""
    column = key_column(name)
    return column.sees if column is not None and column.row.kind == "rank" else None


def list_ignored_parameters(measures: Iterable[str]) -> list[str]:
    """List the names of ``-m`` whose parameters `resolve` with ``command_line`` ignores."""
    seen: set[str] = set()
    ignored = []
    for name in split_measures(measures):
        measure, separator, _ = _split(name, command_line=True)
        if separator == "." and measure not in ANSWER_ROWS:
            if measure in seen or measure in NICKNAMES or TABLE[measure].kind == "ignored":
                ignored.append(name)
            seen.add(measure)
    return ignored


def help_text(columns: Iterable[Column]) -> str:
    """Write the text of ``-h -m NAME``: each measure once, with its defaults."""
    parts = []
    for measure in dict.fromkeys(column.measure for column in columns):
        row = TABLE[measure]
        lines = [measure, *wrap_help(row.text)]
        if row.defaults:
            defaults = ",".join(f"{value:g}" for value in row.defaults)
            lines.append(f"    Default: -m {measure}.{defaults}")
        if row.shown != "both":
            only = "in the summary" if row.shown == "summary" else "for single queries"
            lines.append(f"    Printed {only} only.")
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def wrap_help(text: str, width: int = 76) -> list[str]:
    """Wrap a text of the help to indented lines."""
    import textwrap

    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")


def _measure_columns(measure: str, requested: dict[Column, int]) -> list[Column]:
    """Return the requested columns of a measure, ascending, or the default ones."""
    row = TABLE[measure]
    if requested:
        once: dict[str, Column] = {}
        for column in requested:
            once.setdefault(column.name, column)
        columns = sorted(once.values(), key=lambda c: (c.cutoff is not None, c.cutoff or 0.0))
    elif row.kind in ("rank", "point", "signed point", "number"):
        columns = [Column(measure, cutoff) for cutoff in row.defaults]
    else:
        columns = [Column(measure, numbers=row.defaults)]
    if row.of_answers:
        return [replace(column, end=end) for column in columns for end in ("low", "high")]
    return columns


def split_name(name: str, stems: Iterable[str]) -> tuple[str, str, str]:
    """Split a measure's name into stem, separator and parameters; a name without any is a stem.

    The stem is what precedes ``@``, or else the longest of `stems` that ``.`` or ``_`` follows:
    ``Rprec_mult`` is not Rprec with the parameter "mult".
    """
    at = re.fullmatch(r"([^@]+)@((?:-?[\d.]|p=).*)", name)
    if at:
        return at[1], "@", at[2]
    for stem in sorted(stems, key=len, reverse=True):
        rest = name[len(stem) :]
        if name == stem:
            break
        if name.startswith(stem) and re.match(rf"\.|_(?:-?[\d.]|p=|{EXPONENTIAL}$)", rest):
            return stem, rest[0], rest[1:]
    return name, "", ""


def _split(name: str, command_line: bool) -> tuple[str, str, str]:
    """Split a name in any spelling into measure, separator and parameters, as `split_name` does."""
    stem, dot, text = name.partition(".")
    if stem in NICKNAMES and (command_line or not dot):
        return stem, dot, text
    persistence = re.fullmatch(r"(?i:rbp)\(\s*(p\s*=\s*[0-9.]+)\s*\)", name)
    if persistence:
        return "rbp", "_", persistence[1].replace(" ", "")
    if gained := _split_gains(name):
        return gained
    sets = re.fullmatch(r"Set(F|P)\(\s*(beta|relative)\s*=\s*([0-9.]+|True|False)\s*\)", name)
    if sets and (sets[1] == "F") == (sets[2] == "beta"):
        if sets[1] == "F":
            return "set_F", "_", sets[3].removesuffix(".0")
        return ("set_relative_P" if sets[3] == "True" else "set_P"), "", ""
    measure, separator, text = split_name(_aliases().get(name, name), TABLE)
    if separator == "@":
        measure = stems_at().get(measure.lower(), name)
    return measure, separator, text


def _split_gains(name: str) -> tuple[str, str, str] | None:
    """Split ir_measures' nDCG with a kind of DCG, or with gains."""
    parts = re.fullmatch(r"(?i:ndcg)\((.*)\)(?:@(\d+))?", name, re.ASCII)
    if not parts:
        return None
    dcg = re.fullmatch(r"\s*dcg\s*=\s*(['\"]?)(exp-)?log2\1\s*", parts[1])
    gains = re.fullmatch(r"\s*gains\s*=\s*\{(.+)\}\s*", parts[1])
    if dcg:
        chosen = EXPONENTIAL if dcg[2] else ""
    elif gains:
        chosen = re.sub(r"\s", "", gains[1]).replace(":", "=")
    else:
        return None
    text = "_".join(filter(None, (parts[2], chosen)))
    return "ndcg_cut" if parts[2] else "ndcg", "_" if text else "", text


def _aliases() -> dict[str, str]:
    """Map other spellings of a whole name to trec_eval's with parameters."""
    aliases: dict[str, str] = {}
    for measure, row in TABLE.items():
        for alias in row.aliases:
            spelling, _, parameters = alias.partition(":")
            aliases[spelling] = f"{measure}_{parameters}" if parameters else measure
    return aliases


def stems_at() -> dict[str, str]:
    """Map the text before "@", in lower case, to its measure."""
    return {stem: measure for measure, row in TABLE.items() for stem in row.at}


def _restore_case(name: str) -> str:
    """Spell the measure of a name as the table does, because case does not matter in keys."""
    known = {text.lower(): text for text in (*_aliases(), *TABLE)}
    stem, separator, text = split_name(name.lower(), known)
    return known.get(stem, stem) + separator + text


def _why_unknown(name: str) -> str:
    """Say that a name is unknown, and which one may be meant."""
    if re.fullmatch(r"[^()]+\(.*=.*\)(@[0-9]+)?", name):
        stem = name.partition("(")[0]
        if _split(stem, command_line=False)[0] in TABLE or stem.lower() in stems_at():
            return (
                f"measure {name!r}: kgtrec does not compute {stem} with these parameters; it knows "
                "rel, judged_only, p of RBP, beta of SetF, relative of SetP, dcg and gains of nDCG"
            )
    hint = _similar(name) or "`kgtrec measures` lists all"
    if name.lower() == "mrr":
        first = "'recip_rank' (the first answer of each query)"
        hint = f"did you mean {first}, or 'kg_mrr' (each answer)?"
    elif f"kg_{name.lower()}" in ANSWER_ROWS:
        hint = f"did you mean 'kg_{name.lower()}'?"
    return f"unknown measure {name!r}: {hint}"


def _similar(name: str) -> str:
    """Find the most similar measure; for ``nDGC@10`` by the part before the cutoff."""
    stem, at, cut = name.partition("@")
    if not at:
        return suggestion(name, [*TABLE, *NICKNAMES, *_aliases()])
    if stem.lower() in stems_at():
        return f"write a whole number from 1 behind @, as in {stem}@10"
    stems = (TABLE[measure].ir_measures.partition("(")[0] for measure in stems_at().values())
    return suggestion(stem, [*filter(None, stems), *stems_at()]).replace("'?", f"@{cut}'?")
