"""URLs by their text: which names are URLs, and which of them kgtrec reads and writes."""

from __future__ import annotations

import os
import re

# On Windows, pathlib turns slashes into backslashes. A drive has one letter, so C:/x is a path.
_SLASH = re.escape("/" if os.sep == "/" else f"/{os.sep}")
_URL = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]+):[{_SLASH}]+")


def is_url(path: str) -> bool:
    """Return whether a name begins like ``s3://`` or ``https://``, and no such file exists."""
    return _URL.match(path) is not None and not os.path.exists(path)


LOCATION = re.compile(rf"(s3|gs|file):[{_SLASH}]", re.IGNORECASE)
"""URLs that kgtrec reads and writes."""


def url_text(path: str) -> str:
    """Return a URL with the slashes that pathlib drops or replaces."""
    path = path.replace(os.sep, "/")
    return _URL.sub(r"\1:///" if path[:5].lower() == "file:" else r"\1://", path, count=1)
