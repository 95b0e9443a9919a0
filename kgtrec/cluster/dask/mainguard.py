"""Scripts that start worker processes, which import them: is their work out of the import's way?"""

from __future__ import annotations

import ast
import multiprocessing
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

from kgtrec.errors import UsageError

__all__ = ["refuse_unguarded"]


def refuse_unguarded() -> None:
    """A script without the usual guard would start processes that start processes."""
    again = getattr(multiprocessing.current_process(), "_inheriting", False)
    if again or _called_unguarded():
        raise UsageError(
            "worker processes import the script that starts them; put its work under "
            "if __name__ == '__main__':"
        )


def _called_unguarded() -> bool:
    """Whether a script is at work that does not ask for its ``__name__``."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or getattr(main, "__spec__", None) is not None:
        return False  # nothing that workers would import: a prompt, or python -m
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            with suppress(OSError, SyntaxError, ValueError):
                tree = ast.parse(Path(path).read_bytes())
                at = next(
                    node
                    for node in tree.body
                    if node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
                )
                return not (isinstance(at, ast.If) and "__name__" in ast.unparse(at.test))
        frame = frame.f_back
    return False
