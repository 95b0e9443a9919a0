"""Progress bars on standard error, for work that takes longer than a moment."""

from __future__ import annotations

from typing import Any

__all__ = ["progress_bar"]


def progress_bar(total: int | None, unit: str, show: bool | None = None) -> Any:
    """A tqdm bar: shown after a second, and only on a terminal unless ``show`` says otherwise.

    Parameters
    ----------
    total : int or None
        Steps in all, None if unknown.
    unit : str
        What is counted.
    show : bool, optional
        True: always, False: never, None: on a terminal.
    """
    from tqdm import tqdm

    disable = None if show is None else not show
    return tqdm(total=total, unit=f" {unit}", disable=disable, delay=1.0, leave=False)
