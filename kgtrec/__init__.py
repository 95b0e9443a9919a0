"""kgtrec: trec_eval-compatible evaluation of knowledge-graph completion.

The folders are the path of the data, each imports only from those before it::

    graph -> questions -> scores -> trec.files -> predictions -> ranking -> trec.measures
          -> measures -> results -> trec.eval -> study -> plots, cluster,
          integrations -> demo -> cli

Each folder's ``__init__`` says what comes in, what goes out, and which file to open first.
``_core`` is the C extension. Names are loaded on first use: ``import kgtrec`` costs nothing.
"""

from __future__ import annotations

import os


def _find_compiled_folder(source: str) -> str:
    """The folder that has ``_core``: this one, or that of the installed package which it hides.

    In a checkout after ``pip install .`` Python finds the source folder first, which has no
    compiled part. All modules then come from the installed package, so that the two never mix.
    """
    import sys
    from importlib.machinery import EXTENSION_SUFFIXES

    folders = [source, *(os.path.join(os.path.abspath(entry), "kgtrec") for entry in sys.path)]
    for folder in folders:
        if any(os.path.exists(os.path.join(folder, "_core" + end)) for end in EXTENSION_SUFFIXES):
            return folder
    raise ImportError(
        f"kgtrec is neither compiled in {source} nor installed for {sys.executable}; "
        f"run: {sys.executable} -m pip install {os.path.dirname(source)}"
    )


if os.path.exists(os.path.join(__path__[0], "_core.pyx")):  # not so where it is installed
    __path__[:] = [_find_compiled_folder(__path__[0])]

from kgtrec._internal.lazy import lazy_exports  # noqa: E402 - a module of the folder that was chosen

__getattr__, __dir__, __all__ = lazy_exports(__name__)
