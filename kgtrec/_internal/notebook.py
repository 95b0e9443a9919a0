"""What notebooks show: HTML without style or script, in which labels are text."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

__all__ = ["ShownAsTables", "ShownInLines", "in_notebook", "lines_as_html", "rows_as_html"]


def _three_lines(shown: ShownInLines) -> str:
    first, second = shown._lines()
    return f"{type(shown).__name__}\n  {first}\n  {second}"


class ShownInLines(ABC):
    """Results that consoles show in three lines: what it is, and `_lines`; notebooks too.

    `_shown` names the methods or attributes that are tables, the most important one first.
    """

    _shown: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # before a dataclass would list all its arrays
            cls.__repr__ = _three_lines  # type: ignore[assignment]

    @abstractmethod
    def _lines(self) -> tuple[str, str]:
        """How large it is, and what it says."""

    def _tables(self) -> list[Any]:
        parts = [getattr(self, name) for name in self._shown]
        return [part() if callable(part) else part for part in parts]

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self._tables())
        return lines_as_html(repr(self)) + tables


class ShownAsTables(ShownInLines):
    """Results that notebooks show as their tables, and consoles in three lines."""

    _shown: ClassVar[tuple[str, ...]] = ("table",)

    def _lines(self) -> tuple[str, str]:
        """How large the first table is, and what it says."""
        table = self._tables()[0]
        return f"{len(table):,} rows", ", ".join(title for title in table.titles if title)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, which has no terminal but shows what is printed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def lines_as_html(text: str) -> str:
    """Lines of a repr, the first of which is a heading."""
    first, *more = text.splitlines()
    rest = "".join(f"<br>{_escaped(line.strip())}" for line in more)
    return f"<div><strong>{_escaped(first)}</strong>{rest}</div>"


def rows_as_html(
    titles: Sequence[str], rows: Sequence[Sequence[str]], names: int, left_out: int = 0
) -> str:
    """A table; the first `names` columns name the row. Rows that are left out are counted below."""
    head = "".join(f'<th scope="col">{_escaped(title)}</th>' for title in titles)
    lines = []
    for row in rows:
        cells = [f'<th scope="row">{_escaped(cell)}</th>' for cell in row[:names]]
        cells += [f'<td style="text-align:right">{_escaped(cell)}</td>' for cell in row[names:]]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>{left_out:,} more rows</p>" if left_out else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return table + more


def _escaped(text: str) -> str:
    """Also where bytes are no UTF-8."""
    import html

    return html.escape(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
