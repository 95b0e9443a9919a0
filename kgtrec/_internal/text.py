"""Texts for people: names from users' files may hold what a terminal would obey, or no text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

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


_WORDS = re.compile(r"(?:[^\W_]|(?<=\d)[.](?=\d))+|[\W_]")
"""Words and numbers of a name, and the signs between them."""


def shorten_names(names: Sequence[str], width: int) -> list[str]:
    """Shorten names if one is longer than `width`; what differs between the names stays.

    Words that all names share give way to an ellipsis. Different names stay different: if their
    differences do not fit, the shortened names are numbered.
    """
    distinct = list(dict.fromkeys(names))
    if all(len(name) <= width for name in distinct):
        return [*names]
    if len(distinct) == 1:
        return [shorten(name, width) for name in names]
    for parts in ([_WORDS.findall(name) for name in distinct], [list(name) for name in distinct]):
        shown = _keep_differences(parts, width)
        if len({*shown}) == len(shown) and max(map(len, shown)) <= width:
            break
    else:
        shown = [shorten(name, width) for name in distinct]
    counts: dict[str, int] = {}
    for row, text in enumerate(shown):
        counts[text] = counts.get(text, 0) + 1
        if counts[text] > 1:
            ending = f" ({counts[text]})"
            shown[row] = shorten(text, width - len(ending)) + ending
    short = dict(zip(distinct, shown, strict=True))
    return [short[name] for name in names]


def _keep_differences(names: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return names, given as their words, without words that all share, as far as is needed.

    Names of equally many words are compared word by word, and lose the same words. Others are
    compared up to the first difference and from the last one.
    """
    if len({len(words) for words in names}) == 1:
        differs = [len({*column}) > 1 for column in zip(*names, strict=True)]
        return _leave_out(names, differs, width)
    least = min(map(len, names))
    start = next((i for i in range(least) if len({words[i] for words in names}) > 1), least)
    most = least - start
    end = next((i for i in range(most) if len({words[~i] for words in names}) > 1), most)
    shown = []
    for words in names:
        differs = [start <= i < len(words) - end for i in range(len(words))]
        shown += _leave_out([words], differs, width)
    return shown


def _leave_out(names: Sequence[Sequence[str]], kept: list[bool], width: int) -> list[str]:
    """Return names without the words that are not `kept`; those for which there is space return."""

    def fits() -> bool:
        return all(len(_with_gaps(words, kept)) <= width for words in names)

    n = len(kept)
    if any(kept) and fits():
        # What is before a difference names it; the first and the last words say what all are.
        before = [range(i - 1, max(i - 3, -1), -1) for i in range(n) if kept[i]]
        for indices in (*before, range(n), range(n - 1, -1, -1)):
            for index in indices:
                was_kept, kept[index] = kept[index], True
                if not fits():
                    kept[index] = was_kept
                    break
    return [_with_gaps(words, kept) for words in names]


def _with_gaps(words: Sequence[str], kept: Sequence[bool]) -> str:
    """Join words; an ellipsis replaces those that are not kept, unless it would be as long."""
    parts = []
    for is_kept, run in groupby(zip(words, kept, strict=True), key=lambda pair: pair[1]):
        text = "".join(word for word, _ in run)
        parts.append(text if is_kept or len(text) < 2 else "…")
    return "".join(parts)


def join_names(names: Sequence[str], separator: str = ", ", most: int = 3) -> str:
    """Join names in a message; of many, the first ones and the number of the others."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def group_equal(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names by their text, in the order of pairs of a name and a text.

    So a message says once what is true of many.
    """
    names: dict[str, list[str]] = {}
    for name, text in named:
        names.setdefault(text, []).append(name)
    return names


_NEXT_MEASURE = re.compile(
    r"(?:,\s*|\s+)(?=11pt_avg|[Ff]1|[A-Za-z]{2}|[GPRgpr](?:[._@(,\s]|$))(?![^(]*\))"
)
"""Comma or blanks before another measure, outside parentheses.

In ``P.5,10`` and ``rbp.p=0.5,p=0.8``, parameters follow the comma.
"""


def split_measures(texts: Iterable[str]) -> tuple[str, ...]:
    """Split lists of measures: ``mrr,P.5,10`` is mrr and ``P.5,10``, ``AP RR@10`` is AP and
    RR@10."""
    return tuple(name for text in texts for name in _NEXT_MEASURE.split(text.strip()))
