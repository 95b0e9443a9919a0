"""Lazy exports of packages: names that are loaded on first use (PEP 562).

Type checkers are told of them by imports under ``TYPE_CHECKING`` beside the table of homes; a test
holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports"]


def lazy_exports(
    namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    namespace : dict
        ``globals()`` of the package; what was loaded once is put there.
    homes : mapping of str to str
        Name to the module that has it.

    Examples
    --------
    >>> __getattr__, __dir__ = lazy_exports(globals(), {"Graph": "kgtrec.questions.api"})
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(homes[name]), name)
        return namespace[name]

    def names() -> list[str]:
        return sorted({*namespace, *homes})

    return load, names
