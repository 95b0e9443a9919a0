"""A table of file formats, one row each: its name, its files, its reader.

Other packages add rows by an entry point whose object is a `Format`. They are imported only if a
format is not in the table, or if the table is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kgtrec.errors import UsageError, must_be


@dataclass(frozen=True)
class Format:
    """One row of the table.

    - name, title: The name that users write; the program or data set that uses the format.
    - files, reader: Names or content of the files; ``module:function``, imported when needed.
    - declared: Facts that the user must declare because no file has them; empty if none.
    - columns: The fixed order of columns, such as "hrt"; empty if users may declare one.
    """

    name: str
    title: str
    files: str
    reader: str
    declared: str = ""
    columns: str = ""

    def load(self) -> Callable[..., Any]:
        """Import and return the function that reads the format."""
        module, _, function = self.reader.partition(":")
        loaded: Callable[..., Any] = getattr(import_module(module), function)
        return loaded


@dataclass(frozen=True)
class Formats:
    """All formats of one kind of file.

    - kind: The kind of files, in the plural: "graphs".
    - group, rows: Entry-point group of further rows; the package's own formats.
    """

    kind: str
    group: str
    rows: Sequence[Format]

    def find_row(self, name: str) -> Format:
        """Return the row of this name; UsageError if there is none."""
        own_rows = {row.name: row for row in self.rows}
        match = own_rows.get(name) or self.all().get(name)
        if match is None:
            problem = f"is not a format of {self.kind} (`kgtrec formats` explains them)"
            raise UsageError(f"{name!r} {problem}; {must_be(name, self.all())}")
        return match

    def all(self) -> Mapping[str, Format]:
        """Return all rows by name, those of other packages last; they cannot replace our names."""
        from importlib.metadata import entry_points

        by_name = {row.name: row for row in self.rows}
        for point in entry_points(group=self.group):
            row = point.load()
            if not isinstance(row, Format):
                raise UsageError(
                    f"the entry point {point.name!r} of {self.group} is {row!r}, not a Format; "
                    "remove or update the package that provides it"
                )
            by_name.setdefault(row.name, row)
        return by_name
