"""Progress bars on standard error, for work that takes longer than a moment."""

from __future__ import annotations

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
    if notebook and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    disable = (None if not notebook else False) if show is None else not show
    return tqdm(total=total, unit=f" {unit}", disable=disable, delay=1.0, leave=False)
