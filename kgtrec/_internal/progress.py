"""Progress bars on standard error, for work that takes longer than a moment."""

from __future__ import annotations

import sys
from contextlib import nullcontext
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
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    return tqdm(total=total, unit=f" {unit}", delay=1.0, leave=False)
