"""Files and folders in object stores: URLs ``s3://``, ``gs://`` and ``file://``, through pyarrow.

Files are copied to this machine before they are read; `RangedFile` reads only ranges of score
arrays. Files are sent whole, so that no store shows a part of an object. pyarrow finds the
credentials in the environment or in profiles.

pathlib turns ``s3://b/x`` into ``s3:/b/x``; every function here accepts both.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from kgtrec._internal.arguments import PATH, require_type
from kgtrec._internal.system import IS_WINDOWS
from kgtrec._internal.threads import MORE_THREADS
from kgtrec._internal.urls import LOCATION, is_url, url_text
from kgtrec.errors import FileError, PathName, refuse_url

if TYPE_CHECKING:
    from pathlib import Path  # imported where it is used: it takes 5 ms

# pyarrow retries a Google store for 15 minutes. The first request must succeed within seconds.
_PATIENCE, _FIRST = timedelta(seconds=30), timedelta(seconds=2)


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of pyarrow for a URL, and the path in it."""
    scheme, _, path = url.partition("://")
    if scheme == "file":
        from pyarrow import fs

        return fs.LocalFileSystem(), local_path(url) or ""
    bucket = path.partition("/")[0]
    if not bucket:
        hint = f"write {scheme}://BUCKET/NAME"
        raise FileError("", found="the URL names no bucket", hint=hint).at(url)
    if scheme == "gs":
        return _google(os.environ.get("STORAGE_EMULATOR_HOST", ""), bucket), path
    settings = sorted((name, text) for name, text in os.environ.items() if name[:4] == "AWS_")
    return _s3(bucket, tuple(settings)), path


@lru_cache(16)
def _google(endpoint: str, bucket: str) -> Any:
    """Return Google's store, or a substitute server, which needs no credentials.

    OSError if nothing answers: only a store that has answered once gets long retries.
    """
    from urllib.parse import urlsplit

    from pyarrow import fs

    options: dict[str, Any] = {}
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        options |= {"anonymous": True, "endpoint_override": parts.netloc, "scheme": parts.scheme}
    try:
        fs.GcsFileSystem(retry_time_limit=_FIRST, **options).get_file_info([bucket])
    except OSError as error:
        if "UNAVAILABLE" in str(error):  # other faults get their messages later
            raise
    return fs.GcsFileSystem(retry_time_limit=_PATIENCE, **options)


@lru_cache(16)
def _s3(bucket: str, settings: tuple[tuple[str, str], ...]) -> Any:
    """Return Amazon's store, or another server from the environment; cached, as this is slow."""
    from urllib.parse import urlsplit

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


_BROKEN_STREAMS: list[Any] = []  # streams of failed uploads: a dropped stream would send again
_AHEAD_BYTES = 1 << 16  # bytes that a buffered reader requests, enough for headers
_HINT = "check the name, and the credentials and region in the environment variables"


def is_location(path: str | os.PathLike[str]) -> bool:
    """Return whether this is a URL that kgtrec can read and write; UsageError if not a path."""
    require_type("path", path, (str, bytes, os.PathLike), PATH)
    text = os.fspath(path)
    return isinstance(text, str) and is_url(text) and LOCATION.match(text) is not None


def local_path(path: str | os.PathLike[str]) -> str | None:
    """Return the path that a ``file://`` URL names; None for other URLs."""
    url = _url(path)
    if not url.startswith("file:"):
        return None
    from urllib.parse import unquote

    path = unquote(url.removeprefix("file://"), errors="surrogateescape")
    if IS_WINDOWS:
        path = path.removeprefix("/")  # of /C:/folder
    if "\0" in path:
        hint = "check the characters after %"
        raise FileError("", found="the URL contains a null byte", hint=hint).at(url)
    return path


def real_path(path: str | os.PathLike[str]) -> str:
    """Return one path for all names of a file, including links and ``file://`` URLs."""
    if not is_location(path):
        return os.path.realpath(path)
    return os.path.realpath(local_path(path) or _url(path))


def path_below(folder: str | os.PathLike[str], name: str, source: PathName = "") -> Path:
    """Return the path of a name in a local folder; a name may have steps, such as ``a/b.txt``.

    Every name that comes from elsewhere is joined here: a key of a bucket, a member of an archive,
    a file that a shard or stored questions name. FileError, about the source of the name or else
    the folder, if it would lead out of the folder.
    """
    from pathlib import Path

    normal = os.path.normpath(name)
    is_absolute = os.path.isabs(name) or bool(os.path.splitdrive(normal)[0])
    if not name or "\0" in name or is_absolute or normal.split(os.sep)[0] in ("", "..", "."):
        raise FileError(
            source or folder,
            found=f"it has a name that leads out of its folder ({name!r})",
            hint="rename that; somebody may have chosen it to reach your other files",
        )
    return Path(folder) / normal


def require_local_folder(path: str | os.PathLike[str], content: str) -> Path:
    """Return a local folder of memory-mapped files, from its path or ``file://`` URL.

    FileError for other URLs; ``content`` is what the folder has, in the plural, for the message.
    """
    from pathlib import Path

    local = local_path(path) if is_location(path) else os.fspath(path)
    refuse_url(
        path if local is None else local,
        f"this is a URL, but {content} must be mapped into memory",
        "give a folder that this machine and its workers can read",
    )
    return Path(local or "")


@contextmanager
def local_copy(path: str | os.PathLike[str], folders: bool = False) -> Iterator[Path]:
    """Yield a local path for a path or URL; the copy of a URL exists until the context ends.

    A `FileError` about the copy, or a file in it, names the URL instead.
    """
    from pathlib import Path

    if not is_location(path):
        yield Path(path)
        return
    url = _url(path)
    if (local := local_path(url)) is not None:
        yield Path(local)
        return
    with _temporary_folder() as folder:
        copy = _copy_of(url.rstrip("/"), folder)
        with _explain_errors(url):
            _fetch(url, copy, folders)
        with name_in_errors(url, copy):
            yield copy


def _copy_of(url: str, folder: str) -> Path:
    """Return the path for the copy of a URL in a folder; it has the last name of the URL."""
    return path_below(folder, url.rpartition("/")[2] or "copy", url)


@contextmanager
def name_in_errors(url: str | os.PathLike[str], copy: str | os.PathLike[str]) -> Iterator[None]:
    """Make a `FileError` about a copy, or a file in it, name the URL."""
    try:
        yield
    except FileError as error:
        if error.path.startswith(str(copy)):
            raise error.at(_url(url).rstrip("/") + error.path[len(str(copy)) :]) from None
        raise


@contextmanager
def upload_copy(url: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a local path, whose file is sent to a URL when the context ends without error."""
    url = _url(url)
    with _temporary_folder() as folder:
        copy = _copy_of(url, folder)
        yield copy
        with _explain_errors(url):
            _send_uninterrupted(copy, url)


def reachable(url: str | os.PathLike[str]) -> None:
    """Raise FileError if a URL cannot be written to: no bucket, no folder, no credentials."""
    url = _url(url)
    with _explain_errors(url):
        from pyarrow import fs

        system, key = file_system(url)
        bucket, _, name = key.partition("/")
        if not name or name.endswith("/"):
            raise FileError(
                "", found="the URL names no file", hint="add the name of the object to write"
            ).at(url)
        if system.get_file_info([bucket])[0].type == fs.FileType.NotFound:
            problem = f"there is no bucket {bucket!r}"
            raise FileError("", found=problem, hint="make it first").at(url)


def names_in(folder: str | os.PathLike[str]) -> list[str] | None:
    """List the names of files in a folder, on this machine or at a URL; None if it is a file."""
    local = local_path(folder) if is_location(folder) else folder
    if local is not None:
        if os.path.isdir(local):
            return [entry.name for entry in os.scandir(local) if entry.is_file()]
        if os.path.exists(local):
            return None
        raise FileError(local, found="the file does not exist", hint="check the name")
    url = _url(folder)
    with _explain_errors(url):
        kind, system, info = _look_up(url)
        if kind == "nothing":
            raise FileNotFoundError
        if kind == "file":
            return None
        return [_name_below(url, info.path, file.path) for file in _files(system, info.path)]


def _look_up(url: str) -> tuple[str, Any, Any]:
    """Look up a URL: "file", "folder" or "nothing", the file system, and its information."""
    from pyarrow import fs

    system, key = file_system(url)
    (info,) = system.get_file_info([key.rstrip("/")])
    names = {fs.FileType.NotFound: "nothing", fs.FileType.Directory: "folder"}
    return names.get(info.type, "file"), system, info


def _files(system: Any, folder: str, **options: bool) -> list[Any]:
    """Return pyarrow's information on the files in a folder."""
    from pyarrow import fs

    below = system.get_file_info(fs.FileSelector(folder, **options))
    return [info for info in below if info.type == fs.FileType.File]


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder exists, on this machine or at a URL."""
    return _kind(path) != "nothing"


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder exists, on this machine or at a URL."""
    return _kind(path) == "folder"


def _kind(path: str | os.PathLike[str]) -> str:
    local = local_path(path) if is_location(path) else path
    if local is not None:
        kind = "folder" if os.path.isdir(local) else "file"
        return kind if os.path.exists(local) else "nothing"
    url = _url(path).rstrip("/")
    with _explain_errors(url):
        return _look_up(url)[0]


def files_below(folder: str | os.PathLike[str]) -> list[str]:
    """List the sorted relative names of all files below a folder; none if it is missing."""
    local = local_path(folder) if is_location(folder) else folder
    if local is not None:
        from pathlib import Path

        paths = (path for path in Path(local).glob("**/*") if path.is_file())
        return sorted(path.relative_to(local).as_posix() for path in paths)
    url = _url(folder).rstrip("/")
    with _explain_errors(url):
        system, key = file_system(url)
        files = _files(system, key, recursive=True, allow_not_found=True)
        return sorted(_name_below(url, key, file.path) for file in files)


def _name_below(url: str, folder: str, key: str) -> str:
    """Return the name of a key in the folder at a URL; FileError if it is not below the folder.

    Stores accept keys such as ``g/../x``, and list them as files of ``g``.
    """
    prefix = f"{folder.rstrip('/')}/"
    name = key[len(prefix) :] if key.startswith(prefix) else f"../{key}"
    path_below("", name, url)
    return name


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, on this machine or at a URL."""
    with local_copy(path) as copy:
        return copy.read_bytes()


def remove(path: str | os.PathLike[str]) -> None:
    """Remove a file, on this machine or at a URL, if it exists."""
    local = local_path(path) if is_location(path) else path
    if local is not None:
        with suppress(FileNotFoundError):
            os.unlink(local)
        return
    url = _url(path)
    with _explain_errors(url):
        system, key = file_system(url)
        if exists(url):
            system.delete_file(key)


def stamps(urls: Iterable[str]) -> list[tuple[int, int]]:
    """Return size and time of files at URLs, which change when an object is replaced."""
    values = []
    for url in map(_url, urls):
        with _explain_errors(url):
            kind, _, info = _look_up(url)
            if kind != "file":
                raise FileNotFoundError
            values.append((int(info.size), int(info.mtime_ns)))
    return values


class RangedFile:
    """A file at a URL whose ranges of bytes can be read."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = _url(url)
        with _explain_errors(self.url):
            self._system, self._key = file_system(self.url)
            self._before = self._info()
            self._file = self._system.open_input_file(self._key)
            self.size: int = self._file.size()

    def _info(self) -> tuple[Any, ...]:
        (info,) = self._system.get_file_info([self._key])
        return info.type, info.size, info.mtime_ns

    def read(self, start: int, n_bytes: int) -> Any:
        """Read bytes from `start` on into a buffer, which is shorter at the end of the file."""
        with _explain_errors(self.url):
            return self._file.read_at(n_bytes, start)

    def stream(self) -> io.BufferedReader:
        """Return the file as a buffered reader."""
        return io.BufferedReader(_Stream(self), _AHEAD_BYTES)

    def check(self) -> None:
        """Raise FileError if the file has changed since it was opened."""
        with _explain_errors(self.url):
            if self._info() != self._before:
                problem, hint = (
                    "it was written to while it was read",
                    "try again when nothing writes to it",
                )
                raise FileError("", found=problem, hint=hint).at(self.url)


class _Stream(io.RawIOBase):
    """A `RangedFile` with the interface of Python's files."""

    def __init__(self, file: RangedFile) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self._file.size - self._at))
        data = self._file.read(self._at, count) if count else b""
        buffer[: len(data)] = memoryview(data)
        self._at += len(data)
        return len(data)


def _url(path: str | os.PathLike[str]) -> str:
    """Return a URL with all its slashes, and its scheme in lower case."""
    scheme, _, path_text = url_text(os.fspath(path)).partition(":")
    return f"{scheme.lower()}:{path_text}"


def _send_uninterrupted(copy: Path, url: str) -> None:
    """Send a file, which Ctrl-C cannot interrupt.

    An interrupted stream would be closed, and leave an object with a part of the content. A
    process that ends does not wait for it.
    """
    from concurrent.futures import Future  # which loads logging

    future: Future[None] = Future()

    def run() -> None:
        try:
            _send(copy, url)
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    try:
        Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        raise FileError(url, found=f"it cannot be sent ({error})", hint=MORE_THREADS) from None
    future.result()


def _send(copy: Path, url: str) -> None:
    """Send a file in one write. pyarrow's `copy_files` does not report failed uploads."""
    import pyarrow as pa

    system, key = file_system(url)
    with pa.memory_map(str(copy)) as file:
        content = file.read_buffer()
        stream = system.open_output_stream(key, compression=None)
        try:
            stream.write(content)
            stream.close()
        except BaseException:
            _BROKEN_STREAMS.append(stream)
            raise


def _fetch(url: str, copy: Path, folders: bool) -> None:
    """Copy a file at a URL, or if `folders` allows it, a folder with all its files."""
    kind, system, info = _look_up(url)
    if kind == "nothing":
        raise FileNotFoundError
    targets = {copy: info}
    if kind == "folder":
        if not folders:
            hint = "give a file in this folder"
            raise FileError("", found="a folder, not a file", hint=hint).at(url)
        copy.mkdir()
        files = _files(system, info.path, recursive=True)
        targets = {path_below(copy, _name_below(url, info.path, f.path), url): f for f in files}
        if len(targets) < len(files):
            problem = "several objects have the same name if steps such as a/../ are resolved"
            raise FileError("", found=problem, hint="rename them").at(url)
    for target, file in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            system.open_input_stream(file.path, compression=None) as source,
            open(target, "wb") as out,
        ):
            while piece := source.read(1 << 22):
                out.write(piece)
            if out.tell() != file.size:
                raise OSError(f"only {out.tell():,} of {file.size:,} bytes of {file.path} arrived")


def _temporary_folder() -> AbstractContextManager[str]:
    """Return a temporary folder, which is removed with its context."""
    import tempfile  # slow to import, and few paths are URLs

    return tempfile.TemporaryDirectory(prefix="kgtrec-")


@contextmanager
def _explain_errors(url: str) -> Iterator[None]:
    """Turn an error of a store into a FileError about a URL."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError("", found="the file does not exist", hint=_HINT).at(url) from None
    except ImportError as error:
        problem = f"pyarrow has no file system for it ({error})"
        raise FileError("", found=problem, hint="copy it to this machine").at(url) from None
    except (OSError, ValueError) as error:  # pyarrow's own errors are both
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            import tempfile

            problem = f"the disk of {tempfile.gettempdir()} has no room for its copy"
            hint = "free some space, or set TMPDIR to a folder on another disk"
            raise FileError("", found=problem, hint=hint).at(url) from None
        said = " ".join(str(error).split())
        said = re.sub(r" \(Request ID: [^)]*\)| error_info=.*|google::cloud::Status\(", "", said)
        said = re.sub(r"^UNAVAILABLE: .*CURL error \[\d+\]=([^)]*).*", r"\1", said)
        reason = said or type(error).__name__
        problem = f"it cannot be reached or used ({reason})"
        raise FileError("", found=problem, hint=_HINT).at(url) from None
