"""Cells of tables for spreadsheet programs, which take some texts for formulas."""

from __future__ import annotations

import re

__all__ = ["cell_of", "text_of_cell"]

_FORMULA = re.compile(r"'*[=+\-@]")


def cell_of(text: str) -> str:
    """A text as a cell: with an apostrophe before it if a program could take it for a formula.

    So ``=SUM(A1)`` becomes ``'=SUM(A1)``, which spreadsheet programs take for text. What has such
    apostrophes already gets one more, so that `text_of_cell` gives every text back.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """The text of a cell that `cell_of` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
