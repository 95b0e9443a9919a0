"""Lazy exports of packages: names that are loaded on first use (PEP 562).

The list of a package's names is its stub, ``__init__.pyi``, which type checkers and editors read.
Every statement in it has the form ``from MODULE import NAME as NAME``, or ``from PACKAGE import
MODULE as MODULE`` for a module of the package itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def read_homes(folder: str) -> dict[str, str]:
    """Read the stub in a package's folder; return each name with its module."""
    with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as stub:
        words = stub.read().replace("(", " ").replace(")", " ").replace(",", " ").split()
    return dict(zip(words[3::6], words[1::6], strict=True))


def lazy_exports(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__`` from its stub.

    Loaded names become attributes of the package. ``__all__`` has no modules, so that
    ``from package import *`` loads no optional library.
    """
    module = sys.modules[package]
    homes = read_homes(module.__path__[0])

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # importing a module sets the attribute
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    def list_names() -> list[str]:
        return sorted(homes)  # not what the module imports for its own use

    return load, list_names, [name for name, home in homes.items() if home != package]
