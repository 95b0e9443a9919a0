"""Types of options: each refuses the values that no command can use, before any work.

A command adds only what depends on its files, such as a depth beyond the pool's.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import click

from kgtrec._internal.arguments import LARGEST_COUNT, LARGEST_SEED, SMALLEST
from kgtrec._internal.locations import local_path
from kgtrec._internal.text import shorten
from kgtrec._internal.urls import is_url
from kgtrec.errors import FileError, UsageError, must_be

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
NO_WORDS: Mapping[str, int] = {}
_QUOTED = 200
"""Characters of a value in a message."""


def quote(value: object) -> str:
    """Return the repr of a value for a message, without its middle if it is long."""
    return shorten(repr(value), _QUOTED)


class Count(click.IntRange):
    """A whole number in ASCII digits between two limits.

    - largest: Upper limit that --help does not show because no use of the option comes near it;
      used if `most` is None.
    """

    def __init__(
        self, least: int = 1, most: int | None = None, largest: int = LARGEST_COUNT
    ) -> None:
        super().__init__(least, most)
        self.least, self.largest = least, largest if most is None else most

    def _describe_range(self) -> str:
        """Return the limits for --help; "" for any whole number."""
        return super()._describe_range() if self.least > -LARGEST_COUNT else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = value
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            number = int(value)
        if isinstance(number, int) and self.least <= number <= self.largest:
            return number
        beyond = isinstance(number, int) and number > self.largest
        limit = f" to {self.largest}" if beyond or self.max is not None else ""
        self.fail(f"{quote(value)} is not a whole number from {self.least}{limit}.", param, ctx)


def parse_counts(option: str, text: str, words: Mapping[str, int] = NO_WORDS) -> list[int]:
    """Parse a list of counts such as ``1,3,10``, which may have special words: ``100,all``.

    Raises
    ------
    UsageError
        A part that is neither a count from 1 nor one of the words.
    """
    counts = []
    for part in text.split(","):
        word = part.strip()
        is_count = word.isascii() and word.isdigit() and len(word) < 20
        if word not in words and not (is_count and 0 < int(word) <= LARGEST_COUNT):
            example = ",".join(["1,3,10", *words])
            limits = f"write numbers from 1 to {LARGEST_COUNT}, as {example}"
            raise UsageError(f"{option} {quote(text)}: {quote(word)} is not a count; {limits}")
        counts.append(words[word] if word in words else int(word))
    return counts


class Seed(Count):
    """A seed of random draws: 64 bits."""

    def __init__(self) -> None:
        super().__init__(0, largest=LARGEST_SEED)


class Number(click.FloatRange):
    """A decimal number, optionally between two limits, and not too close to 0.

    - infinite: True if infinity is allowed.
    """

    name = "float"

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        *,
        min_open: bool = False,
        max_open: bool = False,
        infinite: bool = False,
    ) -> None:
        super().__init__(least, most, min_open, max_open)
        self.infinite = infinite

    def _describe_range(self) -> str:
        """Return the limits for --help; "" without any."""
        return super()._describe_range() if (self.min, self.max) != (None, None) else ""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{quote(value)} is not a valid float{self._hint(value)}.", param, ctx)
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            self.fail(f"{quote(value)} is not a finite number.", param, ctx)
        if 0 < abs(number) < SMALLEST:
            self.fail(f"{quote(value)} is too close to 0; write 0 or a larger number.", param, ctx)
        return float(super().convert(number, param, ctx))

    def _hint(self, value: str) -> str:
        """Say how to write a percentage; "" for other texts."""
        try:
            percent = float(value.removesuffix("%"))
        except ValueError:
            return ""
        return f"; write {percent / 100 if self.max == 1 else percent:g}"


class Share(Number):
    """A part of a whole, above 0."""

    def __init__(self, *, whole: bool = True) -> None:
        super().__init__(0, 1, min_open=True, max_open=not whole)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            with suppress(ValueError):
                if 1 < float(value) < 100:
                    share = f"{float(value) / 100:g}"
                    text = f"{quote(value)} is not a share of a whole, which is 1; write {share}"
                    self.fail(f"{text} for {value} %.", param, ctx)
            raise


class Percent(Number):
    """The confidence of an interval in percent, from 1 to 99.9."""

    def __init__(self) -> None:
        super().__init__(1, 99.9)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            with suppress(ValueError):
                if 0.5 <= float(value) < 1:
                    percent = f"{float(value) * 100:g}"
                    text = f"{quote(value)} is not a confidence in percent; write {percent}"
                    self.fail(f"{text} for {percent} %.", param, ctx)
            raise


class Shares(click.ParamType):
    """Shares between 0 and 1, such as ``0.05,0.2``: a tuple of floats, ascending, each once."""

    name = "shares"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        share = Share(whole=False)
        return tuple(sorted({share.convert(p.strip(), param, ctx) for p in value.split(",")}))


class Choice(click.Choice[str]):
    """One of several words. The message about another word suggests the most similar one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"{quote(value)} is unknown; {must_be(value, self.choices)}"


class PathType(click.ParamType):
    """A path with a role in the command.

    - role: For an input its name in messages ("the graph"). For an output "output", "figure",
      "text" (replaces standard output), or "later" if the command checks it itself.
    """

    name = "path"
    LONGEST: ClassVar[int] = 4095
    LONGEST_NAME: ClassVar[int] = 255

    def __init__(self, role: str) -> None:
        self.role = role

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        path = str(value)
        local = (local_path(path) or "") if is_url(path) else path  # refuses null bytes
        longest = max(len(os.fsencode(name)) for name in local.replace(os.sep, "/").split("/"))
        if longest > self.LONGEST_NAME or len(os.fsencode(local)) > self.LONGEST:
            limit = f"names have at most {self.LONGEST_NAME} bytes, paths {self.LONGEST}"
            raise FileError(shorten(path, 80), found="the name is too long", hint=limit)
        return path
