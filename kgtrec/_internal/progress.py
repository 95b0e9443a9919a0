"""Progress bars on standard error, for work that takes longer than a moment."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from kgtrec._internal.notebook import in_notebook

__all__ = ["progress_bar"]


def progress_bar(total: int | None, unit: str, show: bool | None = None) -> Any:
    """A tqdm bar: shown after a second, and only on a terminal or in a notebook, unless ``show``
    says otherwise.

    Parameters
    ----------
    total : int or None
        Steps in all, None if unknown.
    unit : str
        What is counted.
    show : bool, optional
        True: always, False: never, None: on a terminal, and in a notebook.
    """
    notebook = in_notebook()
    if show is None:
        show = notebook or (sys.stderr is not None and sys.stderr.isatty())
    if not show:
        return _NoBar()
    if notebook and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    return tqdm(total=total, unit=f" {unit}", delay=1.0, leave=False)


class _NoBar:
    """Where nothing is shown, tqdm is not imported, which takes longer than small work does."""

    disable = True

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, n: int = 1) -> None:
        """Nothing to draw."""
