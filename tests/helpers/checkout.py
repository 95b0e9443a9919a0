"""Where the checkout is that the tests stand in, and what its Python says."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED_DATA = ROOT.parent / "shared" / "data"


@functools.cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a module, made once; nothing in it is garbage."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """What may hold statements in a node, itself left out: no expression does."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, name, ())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node."""
    for child in inner(node):
        yield child
        yield from statements(child)


def circle(needs: Mapping[str, set[str]]) -> list[str]:
    """The names along a cycle of what needs what, or none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []
