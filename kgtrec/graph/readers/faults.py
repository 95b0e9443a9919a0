"""Errors for files of facts: the first bad line, with a hint that fits the folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from kgtrec.errors import FileError, refuse
from kgtrec.graph.readers.headings import awk, heading_of
from kgtrec.graph.triples import names_of
from kgtrec.graph.tsv import iterate_lines, quote_line

OPENKE_HINT = (
    "in OpenKE's format all splits begin with a count, but others here do not: add it to them, or "
    "delete this line"
)
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_EMPTY = "add triples, or remove the file"


def scan(path: Path, columns: str = "hrt", files: Mapping[str, Path] | None = None) -> None:
    """Raise FileError for the first bad line of a file; ``files`` are all files of its folder."""
    blank, is_empty = 0, True
    wanted = f"each line must be {'<TAB>'.join(names_of(columns))}"
    for number, text in iterate_lines(path):
        if not text:
            blank = blank or number
            continue
        if blank:
            refuse(path, blank, "an empty line", f"delete it: {wanted}")
        _check_line(path, number, text, columns, wanted)
        if text.count(b"\t") > 2:
            refuse_further_columns(path, number, text, [*(files or {"": path}).values()], wanted)
        is_empty = False
    if is_empty:
        refuse(path, None, "no triples: the file is empty", _EMPTY)


def _check_line(path: Path, number: int, line: bytes, columns: str, wanted: str) -> None:
    """Raise FileError unless the line has at least three labels; ``wanted`` is the hint."""
    if number == 1:
        _check_binary(path, line, wanted)
    shown, fields = quote_line(line), line.split(b"\t")
    if b"\0" in line:
        hint = "remove NUL bytes: they end a text in many programs"
        refuse(path, number, f"a NUL byte in {shown}", hint)
    if b"\r" in line:
        hint = "end lines with LF or CRLF, and keep carriage returns out of labels"
        refuse(path, number, f"a carriage return inside the line {shown}", hint)
    if len(fields) < 3:
        raise _too_few_columns(path, number, line, len(fields), wanted)
    for column, label in zip(names_of(columns), fields, strict=False):
        if not label:
            hint = "every head, relation and tail needs a label"
            refuse(path, number, f"an empty {column} in {shown}", hint)


def _check_binary(path: Path, line: bytes, wanted: str) -> None:
    """Raise FileError if the first line is that of a compressed or binary file."""
    for magic, suffix in _MAGIC.items():
        if line.startswith(magic):
            problem = f"the data is compressed ({suffix}), but the file name does not say so"
            refuse(path, None, problem, f"add {suffix} to the file name")
    controls = sum(byte < 32 and byte not in b"\t\r" for byte in line[:1024])
    if controls > 0.1 * min(len(line), 1024):
        refuse(path, 1, f"binary data: {quote_line(line)}", f"give a text file: {wanted}")


def _too_few_columns(path: Path, number: int, line: bytes, columns: int, wanted: str) -> FileError:
    """Make the error for a line with one or two columns."""
    count = "1 column" if columns == 1 else f"{columns} columns"
    problem, hint = f"{count} instead of 3: {quote_line(line)}", wanted
    if columns == 1:
        if number == 1 and line.strip().isdigit():
            problem += ", a count as in OpenKE's format"
            hint = OPENKE_HINT
        elif line.count(b",") == 2:
            problem += ", which looks comma-separated"
            hint = f"replace the commas with tabs: {wanted}"
        elif len(line.split()) == 3:
            problem += ", which looks space-separated"
            hint = f"replace the spaces with tabs: {wanted}"
    return FileError(path, number, found=problem, hint=hint)


# -- More columns than three -----------------------------------------------------------------------

_MOST = 1000  # different values per column that are collected
_WHOLE = re.compile(rb"-?[0-9]+")
_DATE = re.compile(rb"[\"<]*[-+]?[0-9#]{1,4}(-[0-9#]{1,2}.*|/[0-9#]{1,2}/.*|[.][0-9#]{1,2}[.].+)")
_DECIMAL = re.compile(rb"-?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?")
_TRUTH = (
    ("1", "-1"),
    ("1", "0"),
    ("1.0", "-1.0"),
    ("1.0", "0.0"),
    ("+", "-"),
    ("true", "false"),
    ("True", "False"),
    ("TRUE", "FALSE"),
)
"""Labels of true and of false triples."""


@dataclass
class _FurtherColumns:
    """Columns of a folder's files, to explain those beyond the third; without headings.

    - is_even: Each file has one number of columns.
    - widths: Number of lines per number of columns.
    - values: Some different values of the first four columns, and of the last, in lines with more
      than three.
    """

    has_heading: bool = False
    is_even: bool = True
    widths: Counter[int] = field(default_factory=Counter)
    values: tuple[set[bytes], ...] = field(default_factory=lambda: tuple(set() for _ in range(5)))

    @classmethod
    def from_files(cls, files: Collection[Path]) -> _FurtherColumns:
        """Collect the columns of all lines of the files."""
        columns = cls()
        for path in files:
            widths = set()
            for number, line in iterate_lines(path):
                if number == 1 and heading_of(path, line):
                    columns.has_heading = True
                elif line:
                    columns._add(line.split(b"\t"))
                    widths.add(line.count(b"\t"))
            columns.is_even &= len(widths) < 2
        return columns

    def _add(self, fields: list[bytes]) -> None:
        self.widths[len(fields)] += 1
        if len(fields) > 3:
            for values, label in zip(self.values, (*fields[:4], fields[-1]), strict=True):
                if len(values) < _MOST:
                    values.add(label.strip())

    def filter_command(self, condition: str) -> str:
        """Return a command that keeps the triples whose fourth column fulfils a condition."""
        heading = "NR == 1 || " * self.has_heading
        return f"{awk((1, 2, 3), f'{heading}NF == 3 || {condition} ')} OLD > NEW"

    def all(self, column: int, is_one: Callable[[bytes], object]) -> bool:
        """Return whether `is_one` holds for each value of a column."""
        return all(map(is_one, self.values[column]))

    @property
    def has_relation_first(self) -> bool:
        """True if the first column looks like relations: the other two share more names."""
        first, second, third = self.values[:3]
        turned, usual = len(third & second), len(third & first)
        return turned > usual or (turned == usual and len(first) < len(second))


def _is_time(text: bytes) -> bool:
    return bool(_WHOLE.fullmatch(text) or _DATE.fullmatch(text))


def refuse_further_columns(
    path: Path, number: int, line: bytes, files: Collection[Path], wanted: str
) -> NoReturn:
    """Refuse a line with more columns than three, with a hint that the data of all files allow."""
    remark, hint = _further_columns(_FurtherColumns.from_files(files), wanted)
    n_columns = line.count(b"\t") + 1
    refuse(path, number, f"{n_columns} columns instead of 3: {quote_line(line)}{remark}", hint)


def _further_columns(columns: _FurtherColumns, wanted: str) -> tuple[str, str]:
    """Return a remark on the meaning of the further columns, and a hint."""
    further, fourth = set(columns.widths) - {1, 2, 3}, columns.values[3]
    if further == {4} and (labels := next((two for two in _TRUTH if fourth == _raw(two)), None)):
        true, false = labels
        wanted = f'$4 == "{true}"' if true.isalpha() or true == "+" else "$4 + 0 == 1"
        return (
            f"; the fourth column holds only {true} and {false}, which are labels of true and "
            "false triples (see `kgtrec guide classification`)",
            f"leave the false triples out of a ranking, as by {columns.filter_command(wanted)}",
        )
    if further == {4} and len(fourth) == 1 and columns.is_even:
        (value,) = fourth
        doubt = ", unless it says that triples are false" * (value in (b"0", b"-1"))
        return (
            f"; the fourth column is always {quote_line(value)}",
            f"remove it (cut -f 1-3){doubt}",
        )
    if further <= {4, 5} and (columns.all(3, _is_time) or columns.all(4, _is_time)):
        if columns.widths[3]:
            return _some_times(columns.widths)
        hint = "if the fourth column is a time, read it as timed:DIR"
        if further == {5} and not columns.all(3, _is_time):
            hint += "; if the further columns are qualifiers, read it as statements:DIR"
        if further == {4} and columns.all(3, _WHOLE.fullmatch):
            hint += "; if facts are the same without it, remove it (cut -f 1-3)"
        return "", hint
    if further == {4} and columns.all(3, _DECIMAL.fullmatch):
        return (
            "; the fourth column holds weights",
            f"keep the lines that count as facts, as by {columns.filter_command('$4 >= 0.5')}",
        )
    if columns.has_relation_first:
        return (
            "; the first column looks like the relation of several entities, as in HypE",
            f"if so, read it as hype:DIR; otherwise {wanted}",
        )
    if all(width & 1 for width in columns.widths):
        hint = "if the further columns are qualifiers, read it as statements:DIR; otherwise "
        return "", hint + wanted
    if columns.is_even:
        return "", f"remove the other columns (cut -f 1-3) if facts are the same without: {wanted}"
    return "", wanted


def _raw(labels: tuple[str, str]) -> set[bytes]:
    return {label.encode() for label in labels}


def _some_times(widths: Counter[int]) -> tuple[str, str]:
    """Return remark and hint for files in which only some lines have a time."""
    *most, last = [str(width) for width in sorted(widths) if widths[width]]
    time = '$4 " " $5' if 5 in widths else "$4"
    command = f"""awk -F'\\t' -v OFS='\\t' '{{print $1, $2, $3, (NF > 3 ? {time} : "none")}}'"""
    return (
        f"; lines have {', '.join(most)} and {last} columns, so some facts have a time and others "
        "have none",
        f"give each fact one time, as by {command} OLD > NEW, and read it as timed:DIR",
    )


def refuse_time(
    path: Path, number: int, line: bytes, width: int, files: Collection[Path], form: str
) -> NoReturn:
    """Refuse a line of facts with a time; the lines before it have ``width`` columns, or 0."""
    columns = _FurtherColumns.from_files(files)
    n_columns = line.count(b"\t") + 1
    if columns.widths[3] and set(columns.widths) <= {3, 4, 5} and len(columns.widths) > 1:
        remark, hint = _some_times(columns.widths)
        refuse(path, number, f"{n_columns} columns in {quote_line(line)}{remark}", hint)
    if width and width != n_columns:
        problem = f"{n_columns} columns, but {width} in the lines before"
        refuse(path, number, problem, form)
    refuse(path, number, quote_line(line), form)
