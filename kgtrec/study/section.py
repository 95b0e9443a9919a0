"""A section of the report page, in plain types: what a study gives to `reporting.page`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kgtrec._internal.table import Value


@dataclass(frozen=True)
class Section:
    """A section of the report page.

    - data: Values in plain JSON types, under the names by which the page's script reads them.
    - sentences: Sentences for the summary at the top of the page.
    """

    data: Mapping[str, Any]
    sentences: tuple[str, ...] = ()


def plain_numbers(values: Iterable[Value]) -> list[float | None]:
    """Convert values to plain numbers; None for values that are not finite."""
    return [float(value) if math.isfinite(value) else None for value in values]
