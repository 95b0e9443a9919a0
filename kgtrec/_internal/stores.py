"""The file system of pyarrow that has what a URL names, with the settings of the environment."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from kgtrec.errors import FileError

__all__ = ["file_system"]

_PATIENCE = timedelta(seconds=30)  # pyarrow asks a Google store for 15 minutes before it gives up


def file_system(url: str) -> tuple[Any, str]:
    """A file system of pyarrow, and the path there.

    Parameters
    ----------
    url : str
        ``s3://``, ``gs://`` or ``file://``.

    Raises
    ------
    FileError
        It names no bucket.
    OSError, ValueError
        As pyarrow says it: credentials or a region that cannot be found.
    """
    scheme, _, path = url.partition("://")
    if scheme == "file":
        from pyarrow import fs

        return fs.LocalFileSystem(), unquote(path, errors="surrogateescape")
    bucket = path.partition("/")[0]
    if not bucket:
        hint = f"write {scheme}://BUCKET/NAME"
        raise FileError("", found="no name of a bucket", hint=hint).at(url)
    if scheme == "gs":
        return _google(os.environ.get("STORAGE_EMULATOR_HOST", "")), path
    settings = sorted((name, text) for name, text in os.environ.items() if name[:4] == "AWS_")
    return _s3(bucket, tuple(settings)), path


@lru_cache(16)
def _google(endpoint: str) -> Any:
    """Google's store; or a server that stands in for it, which asks for no credentials."""
    from pyarrow import fs

    options: dict[str, Any] = {"retry_time_limit": _PATIENCE}
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        options |= {"anonymous": True, "endpoint_override": parts.netloc, "scheme": parts.scheme}
    return fs.GcsFileSystem(**options)


@lru_cache(16)
def _s3(bucket: str, settings: tuple[tuple[str, str], ...]) -> Any:
    """Amazon's store, or a server of one's own, of which pyarrow knows nothing. It is kept for the
    next file: it takes some requests to find."""
    from pyarrow import fs

    environment = dict(settings)
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {"region": region or "us-east-1"}
    if endpoint:
        parts = urlsplit(endpoint)
        options |= {
            "endpoint_override": parts.netloc or endpoint,
            "scheme": parts.scheme or "https",
        }
    elif not region:
        options["region"] = fs.resolve_s3_region(bucket)
    try:
        return fs.S3FileSystem(**options, allow_delayed_open=True)  # small objects in one request
    except TypeError:  # an older pyarrow
        return fs.S3FileSystem(**options)
