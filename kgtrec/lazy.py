"""Front pages of packages: names that are loaded on first use (PEP 562).

Type checkers are told of them by imports under ``TYPE_CHECKING`` beside the table of homes; a test
holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["front_page"]


def front_page(
    page: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    page : dict
        ``globals()`` of the package; what was loaded once is put there.
    homes : mapping of str to str
        Name to the module of the package that has it.

    Examples
    --------
    >>> __getattr__, __dir__ = front_page(globals(), {"Graph": "graph"})
    """
    package: str = page["__name__"]

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        page[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
        return page[name]

    def names() -> list[str]:
        return sorted({*page, *homes})

    return load, names
