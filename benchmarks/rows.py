"""One line of the table: a bar, the two measured figures, and whether the bar is met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Row",
    "Settings",
    "WrongAnswer",
    "at_least",
    "at_most",
    "format_table",
    "not_run",
    "require",
]

HEADINGS = ("bar id", "what", "ours", "reference", "ratio", "bar", "met?")


class WrongAnswer(Exception):
    """Two contestants disagree, so timing them is pointless."""


@dataclass(frozen=True)
class Settings:
    """The settings from the command line."""

    quick: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Row:
    """A measured bar.

    Attributes
    ----------
    bar_id, what : str
    ours, reference : str
        The two figures with their units.
    ratio : float or None
        Compared with the bar; None if nothing was run.
    bar : str
        Text for the table, such as ">= 0.90".
    met : bool or None
        None if not run, or for a figure without a bar.
    detail : dict
        Further results for the JSON: repeats, spread, notes.
    """

    bar_id: str
    what: str
    ours: str
    reference: str
    ratio: float | None
    bar: str
    met: bool | None
    detail: dict[str, Any] = field(default_factory=dict)

    def as_cells(self) -> tuple[str, ...]:
        """The row as text, one cell per heading."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        verdict = {True: "yes", False: "NO", None: "-"}[self.met]
        return (self.bar_id, self.what, self.ours, self.reference, ratio, self.bar, verdict)


def at_least(
    bar_id: str, what: str, ours: str, reference: str, ratio: float, bar: float, **detail: Any
) -> Row:
    """A row whose ratio must reach the bar."""
    return Row(bar_id, what, ours, reference, ratio, f">= {bar:.2g}", ratio >= bar, detail)


def at_most(
    bar_id: str, what: str, ours: str, reference: str, ratio: float, bar: float, **detail: Any
) -> Row:
    """A row whose ratio must not exceed the bar."""
    return Row(bar_id, what, ours, reference, ratio, f"<= {bar:.3g}", ratio <= bar, detail)


def not_run(bar_id: str, what: str, reason: str, bar: str = "") -> Row:
    """A row with the reason why there is no figure."""
    return Row(bar_id, what, f"not run: {reason}", "", None, bar, None, {"not_run": reason})


def require(condition: Any, what: str) -> None:
    """Raise `WrongAnswer` if the contestants disagree."""
    if not condition:
        raise WrongAnswer(what)


def format_table(rows: Sequence[Row]) -> str:
    """Aligned columns; numbers to the right."""
    cells = [HEADINGS, *(row.as_cells() for row in rows)]
    # A reason for not running may be long, and must not widen its column.
    filled = [line for line, row in zip(cells[1:], rows, strict=True) if row.ratio is not None]
    widths = [max(len(line[i]) for line in (HEADINGS, *filled)) for i in range(len(HEADINGS))]
    widths[1] = max(len(line[1]) for line in cells)
    justify: list[Callable[[str, int], str]] = [
        str.ljust,
        str.ljust,
        str.rjust,
        str.rjust,
        str.rjust,
        str.ljust,
        str.ljust,
    ]
    lines = [
        "  ".join(j(c, w) for j, c, w in zip(justify, line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
