"""Lazy exports of packages: names that are loaded on first use (PEP 562).

Type checkers read the imports under ``TYPE_CHECKING`` beside the table of homes; a test compares
the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def homes(names_of: Mapping[str, str]) -> dict[str, str]:
    """Map each name to its module, from modules with their names, separated by blanks."""
    return {name: module for module, names in names_of.items() for name in names.split()}


def lazy_exports(
    namespace: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``; `modules` maps names to modules.

    Loaded names are stored in `namespace`, the package's ``globals()``.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(modules[name]), name)
        return namespace[name]

    def names() -> list[str]:
        return sorted({*namespace, *modules})

    return load, names
