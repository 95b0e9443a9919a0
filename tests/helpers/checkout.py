"""Where the checkout is that the tests stand in, and what its Python says."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
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
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield child


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node."""
    for child in inner(node):
        yield child
        yield from statements(child)
