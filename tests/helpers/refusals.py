"""Rows of one test: a cheaper ``parametrize``, and mistakes with the words of their messages."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Row = tuple[str, Callable[..., Any], type[Exception], tuple[str, ...]]


def each_row(
    names: str, rows: Iterable[Any], ids: Sequence[str] | None = None
) -> Callable[[Any], Any]:
    """Like ``parametrize``, but one test for all rows: a test costs more than most rows do.

    Each row is a subtest, so a row that fails does not hide the rows after it. Each row has a
    ``tmp_path`` and a ``monkeypatch`` of its own; other fixtures are shared.
    """
    keys, rows = [name.strip() for name in names.split(",")], list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for number, row in enumerate(rows):
                values = fixtures | dict(zip(keys, row if len(keys) > 1 else (row,), strict=True))
                if "tmp_path" in values:
                    values["tmp_path"] = fixtures["tmp_path"] / f"row{number}"
                    values["tmp_path"].mkdir()
                title = ids[number] if ids else f"{row!r:.500}"
                with subtests.test(msg=title), pytest.MonkeyPatch.context() as patch:
                    if "monkeypatch" in values:
                        values["monkeypatch"] = patch
                    test(**values)

        shared = [value for name, value in signature.parameters.items() if name not in keys]
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[subtests, *(p for p in shared if p.name != "subtests")]
        )
        return run

    return decorate


def refusals(*rows: Row) -> Callable[[Any], Any]:
    """Run a test for each row, with the arguments ``call``, ``error`` and ``words``.

    A row is a name, a call, the exception that it raises, and words of its message.
    """
    return each_row("call, error, words", [rest for _, *rest in rows], [row[0] for row in rows])


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
