"""Files and folders in object stores, by URL: ``s3://``, ``gs://`` and ``file://``, with pyarrow.

What is read is copied to this machine first, but for score matrices, of which `RangedFile` reads
what is asked for. What is written is sent when it is whole, in one piece: no store shows a part of
an object. Credentials are found as pyarrow's file systems find them (environment, profiles).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kgtrec.errors import FETCHED, FileError, is_url, url_text

__all__ = ["RangedFile", "fetched", "is_location", "local_path", "names_in", "reachable", "sent"]

_LOCATION = re.compile(r"(s3|gs|file):/.*", re.DOTALL | re.IGNORECASE)
_HINT = "check the name, and the credentials and the region in the environment"


def is_location(path: str | os.PathLike[str]) -> bool:
    """Whether this is a URL that can be read and written here."""
    text = os.fspath(path)
    return isinstance(text, str) and is_url(text) and _LOCATION.fullmatch(text) is not None


def local_path(path: str | os.PathLike[str]) -> str | None:
    """The file of this machine that a ``file://`` URL names; None of another."""
    url = _url(path)
    return unquote(url.removeprefix("file://")) if url.startswith("file:") else None


@contextmanager
def fetched(path: str | os.PathLike[str]) -> Iterator[Path]:
    """What a path names, on this machine: a copy of a file or folder at a URL, while this lasts.

    A `FileError` that names the copy, or a file in it, names the URL instead.

    Raises
    ------
    FileError
        It is not there, or cannot be reached.
    """
    if not is_location(path):
        yield Path(path)
        return
    url = _url(path)
    if (local := local_path(url)) is not None:
        FETCHED.add(url.rstrip("/"))
        yield Path(local)
        return
    with tempfile.TemporaryDirectory(prefix="kgtrec-") as folder:
        copy = Path(folder) / (url.rstrip("/").rpartition("/")[2] or "copy")
        with _explained(url):
            _fetch(url, copy)
        FETCHED.add(url.rstrip("/"))
        try:
            yield copy
        except FileError as error:
            if error.path.startswith(str(copy)):
                raise error.at(url.rstrip("/") + error.path[len(str(copy)) :]) from None
            raise


@contextmanager
def sent(url: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file on this machine, which is sent to a URL if the block ends without error.

    Raises
    ------
    FileError
        It cannot be sent; what was there before stays.
    """
    url = _url(url)
    with tempfile.TemporaryDirectory(prefix="kgtrec-") as folder:
        copy = Path(folder) / (url.rpartition("/")[2] or "copy")
        yield copy
        with _explained(url):
            from pyarrow import fs

            system, key = _system(url)
            fs.copy_files(str(copy), key, fs.LocalFileSystem(), system)


def reachable(url: str | os.PathLike[str]) -> None:
    """FileError if nothing could be written to a URL: no bucket, no folder, no credentials."""
    url = _url(url)
    with _explained(url):
        from pyarrow import fs

        system, key = _system(url)
        bucket, _, name = key.partition("/")
        if not name or name.endswith("/"):
            raise FileError("", found="no name of a file", hint="name the object to write").at(url)
        if system.get_file_info([bucket])[0].type == fs.FileType.NotFound:
            problem = f"there is no bucket {bucket!r}"
            raise FileError("", found=problem, hint="make it first").at(url)


def names_in(url: str | os.PathLike[str]) -> list[str] | None:
    """Names of the files in a folder at a URL; None if it is a file, FileError if neither is there.

    A store has no folder without files.
    """
    url = _url(url)
    with _explained(url):
        from pyarrow import fs

        system, key = _system(url)
        (info,) = system.get_file_info([key.rstrip("/")])
        if info.type == fs.FileType.File:
            return None
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError
        return [one.base_name for one in system.get_file_info(fs.FileSelector(info.path))
                if one.type == fs.FileType.File]  # fmt: skip


class RangedFile:
    """A file at a URL, of which ranges of bytes are read.

    Attributes
    ----------
    url : str
    size : int
        Bytes.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = _url(url)
        with _explained(self.url):
            self._system, self._key = _system(self.url)
            self._before = self._info()
            self._file = self._system.open_input_file(self._key)
            self.size: int = self._file.size()
        FETCHED.add(self.url)

    def _info(self) -> tuple[Any, ...]:
        (info,) = self._system.get_file_info([self._key])
        return info.type, info.size, info.mtime_ns

    def read(self, start: int, n_bytes: int) -> Any:
        """A buffer of the bytes from `start` on; shorter only behind the end."""
        with _explained(self.url):
            return self._file.read_at(n_bytes, start)

    def check(self) -> None:
        """FileError if it is not what it was when it was opened."""
        with _explained(self.url):
            if self._info() != self._before:
                problem, hint = "it was written to while it was read", "try again when it stays"
                raise FileError("", found=problem, hint=hint).at(self.url)


def _url(path: str | os.PathLike[str]) -> str:
    """The URL with its slashes."""
    scheme, _, rest = url_text(os.fspath(path)).partition(":")
    return f"{scheme.lower()}:{rest}"


def _system(url: str) -> tuple[Any, str]:
    """A file system of pyarrow, and the path there."""
    from pyarrow import fs

    scheme, _, path = url.partition("://")
    if scheme == "file":
        return fs.LocalFileSystem(), unquote(path)
    bucket = path.partition("/")[0]
    if not bucket:
        raise FileError("", found="no name of a bucket", hint=f"write {scheme}://BUCKET/NAME").at(
            url
        )
    if scheme == "gs":
        return fs.FileSystem.from_uri(f"gs://{quote(bucket)}")[0], path
    return _s3(bucket), path


def _s3(bucket: str) -> Any:
    """The store of a bucket: Amazon's, or a server of one's own, of which pyarrow knows nothing."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
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


def _fetch(url: str, copy: Path) -> None:
    from pyarrow import fs

    system, key = _system(url)
    key = key.rstrip("/")
    (info,) = system.get_file_info([key])
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError
    files = [info]
    if info.type == fs.FileType.Directory:
        copy.mkdir()
        files = system.get_file_info(fs.FileSelector(key, recursive=True))
    for file in files:
        if file.type == fs.FileType.File:
            target = Path(f"{copy}{file.path[len(key) :]}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with (
                system.open_input_stream(file.path, compression=None) as source,
                open(target, "wb") as out,
            ):
                shutil.copyfileobj(source, out, 1 << 22)


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """What a store says against it, as one sentence."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError("", found="there is no such file", hint=_HINT).at(url) from None
    except ImportError as error:
        problem = f"pyarrow has no file system for it ({error})"
        raise FileError("", found=problem, hint="copy it to this machine").at(url) from None
    except (OSError, ValueError) as error:  # pyarrow's own errors are both
        said = " ".join(str(error).split())
        reason = re.sub(r" \(Request ID: [^)]*\)", "", said) or type(error).__name__
        problem = f"it cannot be reached or used ({reason})"
        raise FileError("", found=problem, hint=_HINT).at(url) from None
