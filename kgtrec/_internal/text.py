"""Texts for people: names from users' files may hold what a terminal would obey, or no text."""

from __future__ import annotations

import re

LONGEST_MESSAGE = 2_000
"""Characters of a message; longer ones lose their middle."""

_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, such as the escapes that colour or rewrite a terminal
    "\u2028\u2029"  # ends of lines
    "\u202a-\u202e\u2066-\u2069"  # changes of direction, which reorder the text that is shown
    "\ud800-\udfff]"  # bytes that are not UTF-8, and halves of characters
)


def visible(text: str, keep: str = "") -> str:
    r"""Return a text in which characters that must not be printed are escaped as in Python.

    So a newline becomes ``\n``, the escape character ``\x1b``, and a byte that is not UTF-8, such
    as 0xE9, ``\xe9``. The characters of `keep` stay.
    """
    # Most texts have none, and most have only those of `keep`.
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def _escape(character: str) -> str:
    """Return one character as Python writes it; a byte that is not UTF-8 as that byte."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def shorten(text: str, width: int) -> str:
    """Return a text without its middle if it is longer than `width`."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
