"""Mistakes as rows: a name, a call, the exception that it raises, and words of its message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Row = tuple[str, Callable[..., Any], type[Exception], tuple[str, ...]]


def refusals(*rows: Row) -> pytest.MarkDecorator:
    """Run a test once per row, with the arguments ``call``, ``error`` and ``words``."""
    params = [pytest.param(*rest, id=name) for name, *rest in rows]
    return pytest.mark.parametrize(("call", "error", "words"), params)


def assert_refused(
    call: Callable[..., Any],
    error: type[Exception],
    words: tuple[str, ...],
    *arguments: Any,
    **options: Any,
) -> None:
    """The call raises this exception, and its message contains all these words."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
