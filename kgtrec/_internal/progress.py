"""Progress bars on standard error, for work that takes longer than a moment."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any


def progress_bar(total: int | None, unit: str, show: bool | None = None) -> Any:
    """Return a tqdm bar, shown after a second on a terminal or in a notebook.

    ``show`` overrides whether it is shown.
    """
    notebook = False
    if "IPython" in sys.modules:
        from kgtrec._internal.table import in_notebook

        notebook = in_notebook()
    if show is None:
        show = notebook or (sys.stderr is not None and sys.stderr.isatty())
    if not show:
        # Without tqdm, which takes longer to import than small work.
        return nullcontext(SimpleNamespace(disable=True, update=lambda n=1: None))
    if notebook and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(total=total, unit=f" {unit}", delay=1.0, leave=False)
    from tqdm import tqdm

    return tqdm(total=total, unit=f" {unit}", delay=1.0, leave=False, **_missing_size())


def _missing_size() -> dict[str, int]:
    """Return columns and rows for tqdm if the terminal reports none, as those of containers may.

    tqdm prints nothing on a terminal without columns and rows.
    """
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # no terminal, or no standard error
        return {}
    return {} if min(size) > 0 else {"ncols": 80, "nrows": 24}


_DELAY = 1.0  # seconds before a bar is shown


class JobBar:
    """A bar of jobs on standard error: how many are done, run and failed, and the time left.

    Parameters
    ----------
    total, int: Number of jobs.
    done, int: Number of jobs that were done before.
    show, bool, optional: Whether it is shown; by default on a terminal.
    """

    def __init__(self, total: int, done: int, show: bool | None = None) -> None:
        if show is None:
            show = sys.stderr is not None and sys.stderr.isatty()
        self._bar: Any = None
        self._start = time.monotonic()
        if show:
            from tqdm import tqdm

            layout = "{percentage:.0f}%|{bar}| {desc} [{elapsed}, {remaining} left]"
            self._bar = tqdm(
                total=total,
                initial=done,
                bar_format=layout,
                delay=_DELAY,
                leave=False,
                **_missing_size(),
            )

    @property
    def shown(self) -> bool:
        """True if there is a bar."""
        return self._bar is not None

    def update(self, text: str, done: float) -> None:
        """Show a text and the number of jobs that are done, with fractions of those that run."""
        if self._bar is None:
            return
        self._bar.n = max(self._bar.n, done)  # a job that fails does not take the bar back
        self._bar.set_description_str(text, refresh=False)
        if time.monotonic() - self._start >= _DELAY:
            self._bar.refresh()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bar away while the context prints lines."""
        if self._bar is None:
            yield
            return
        with self._bar.external_write_mode(file=sys.stderr):
            yield

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.clear()  # `close` leaves a bar whose `update` was never called
            self._bar.close()
