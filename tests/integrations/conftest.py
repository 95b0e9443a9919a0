"""Ignore warnings of other libraries while they are loaded."""

from __future__ import annotations

import logging
import warnings
from contextlib import suppress
from importlib import import_module

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for library in ("pykeen", "torch_geometric.nn", "torchkge", "torchmetrics", "lightning"):
        with suppress(ImportError):
            import_module(library)
logging.getLogger("pykeen").setLevel(logging.ERROR)
