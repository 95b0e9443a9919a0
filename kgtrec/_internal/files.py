"""Files that appear whole or not at all, Arrow files for pyarrow's threads, and ``.npy`` files.

A file is written beside its place, then renamed. Before success is reported, it is on the disk, so
it survives a loss of power.

The command line imports this module before it configures numpy's threads, so functions import
numpy when they need it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kgtrec._internal.locations import is_location, local_path, reachable, upload_copy
from kgtrec._internal.locks import call_locked
from kgtrec._internal.system import IS_WINDOWS, is_for_writing, reason_of, sync
from kgtrec._internal.text import visible
from kgtrec._internal.threads import can_start_threads
from kgtrec.errors import FileError, refuse_url

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

# Errors of writing whose cause is the target, not the code that writes.
_TARGET_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EPIPE}

# Errors of file systems that cannot sync a folder, such as some network file systems.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}


class _Group:
    """The files that one block writes, which get their names together.

    - stack: Gives the files their names when it closes.
    - paths, named: All files of the group, and those that have their names already.
    """

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.paths: list[str] = []
        self.named: list[str] = []

    def add(self, path: str, naming: ExitStack) -> None:
        """Add a file with the contexts that give it its name."""
        self.paths.append(path)
        # The stack closes in reverse order, so this runs after the file got its name.
        self.stack.push(lambda kind, *_: self.named.append(path) if kind is None else None)
        self.stack.enter_context(naming)

    def describe(self) -> str:
        """Say which files are there and which are not; nothing for a single file."""
        missing = [path for path in self.paths if path not in self.named]
        if len(self.paths) < 2:
            return ""
        if not self.named:
            return f" (no output is written: {_join_paths(missing)})"
        return f" (already written: {_join_paths(self.named)}; not written: {_join_paths(missing)})"


def _join_paths(paths: list[str]) -> str:
    """Join paths by commas, with control characters escaped."""
    return ", ".join(visible(path) for path in paths)


_OPEN_GROUP: ContextVar[_Group | None] = ContextVar("_OPEN_GROUP", default=None)


@contextmanager
def write_together() -> Iterator[None]:
    """Let the files that this thread writes in the block appear together when it ends.

    If the block fails, none of them appears. If a file cannot get its name, such as an upload that
    fails, the error says which ones are there already. Text for pipes and devices is not held back.
    """
    group, is_complete = _Group(), False
    try:
        with group.stack:
            before = _OPEN_GROUP.set(group)
            try:
                yield
            finally:
                _OPEN_GROUP.reset(before)
            is_complete = True
    except FileError as error:
        if is_complete:
            error.add(group.describe())
        raise


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; the file gets its name only if the block ends without error.

    Then its bytes and its name are on the disk, not only in caches. A pipe, a device or standard
    output is written to directly.
    """
    from pathlib import Path

    local = local_path(path) if is_location(path) else os.fspath(path)
    if local is not None and is_stream(local):
        with _open_stream(local) as raw, _compress(raw, Path(local).suffix) as file:
            yield file
        return
    with ExitStack() as stack:
        temporary = stack.enter_context(
            upload_copy(path) if local is None else _rename_when_written(local)
        )
        with _explain_target_errors(local or temporary, temporary):
            # Exclusive creation with the usual mode, so that the file gets the permissions of the
            # user's umask, not the 0600 of tempfile.
            with open(temporary, "xb") as raw, _compress(raw, Path(path).suffix) as file:
                yield file
            sync(temporary)  # otherwise the name could survive a crash without the bytes
        group = _OPEN_GROUP.get()
        if group is not None:
            group.add(os.fspath(path), stack.pop_all())  # the name comes later


@contextmanager
def _rename_when_written(path: str) -> Iterator[Path]:
    """Yield a temporary path; its file is renamed when the context ends without error."""
    from pathlib import Path

    target = Path(os.path.realpath(path))
    temporary = target.parent / f".kgtrec-{os.urandom(8).hex()}.tmp"
    with _explain_target_errors(path, temporary):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(temporary))
        try:
            yield temporary
            os.replace(temporary, target)
            sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


@contextmanager
def _explain_target_errors(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Turn an error of writing into one sentence about the file that was to be written."""
    from pathlib import Path

    try:
        yield
    except OSError as error:
        if _is_about_target(error, temporary):
            raise _unwritable(path, Path(os.path.realpath(path)), error) from error
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as a file. Bytes of ids that are not UTF-8 are written unchanged."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Check before long work that its results can be written; None is ignored."""
    from pathlib import Path

    for path in paths:
        if path is not None and is_location(path):
            local = local_path(path)
            if local is None:
                reachable(path)
            else:
                check_writable(local)
            continue
        if path is None:
            continue
        if is_stream(path):
            _own_descriptor(path)
            continue
        target = Path(os.path.realpath(path))
        try:
            if target.is_dir():
                raise IsADirectoryError
            probe = target.with_name(f".kgtrec-{os.urandom(8).hex()}.tmp")
            try:
                open(probe, "xb").close()
            finally:  # Ctrl-C may interrupt between the two
                with suppress(OSError):
                    os.unlink(probe)
        except OSError as error:
            raise _unwritable(path, target, error) from None


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk, if the file system supports it."""
    try:
        sync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder and missing ones above it; their names are then on the disk.

    If a block of `write_together` fails, its new folders are removed, unless they hold files.

    Object stores have only folders in the names of objects, so nothing is made there.
    """
    local = local_path(folder) if is_location(folder) else folder
    if local is None:
        return
    from pathlib import Path

    refuse_url(local)
    path = Path(local)
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        hint = "give another name for the folder"
        raise FileError(existing, found="this is a file, not a folder", hint=hint)
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    if (group := _OPEN_GROUP.get()) is not None:
        group.stack.push(lambda kind, *_: _remove_folders(missing) if kind is not None else None)
    path.mkdir(parents=True, exist_ok=True)
    for parent in reversed(missing):
        sync_folder(parent.parent)


def _remove_folders(folders: list[Path]) -> None:
    """Remove folders as far as they are empty; a folder comes before those above it."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _compress(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Yield a file for writing; the suffix of its name decides whether it is compressed."""
    if suffix == ".gz":
        import gzip

        # No name and no time in the header. Level 4 is twice as fast as 6, and 5 % larger.
        with gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif suffix == ".zst":
        import pyarrow as pa

        with pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd") as stream:
            yield stream
    else:
        yield raw


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pipe, a device or an open descriptor, not a file or folder.

    ``/dev/stdout`` is a descriptor even if the shell has redirected it to a regular file: replacing
    that file would lose what it holds, and what is printed to it later.
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd")
_OWN_DESCRIPTORS = "/dev/fd"  # a folder of its own on macOS; on Linux a link to the above
_LINKS = 40  # that Linux follows at most


def _descriptor(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return the process and the number of a descriptor that a path names, as ``/dev/fd/3``."""
    step = os.path.abspath(path)
    for _ in range(_LINKS):
        folder, name = os.path.split(step)
        match = _DESCRIPTORS.fullmatch(os.path.realpath(folder))
        if match and name.isdecimal():
            return int(match[1]), int(name)
        if folder == _OWN_DESCRIPTORS and name.isdecimal() and not match:
            return os.getpid(), int(name)
        try:
            step = os.path.join(folder, os.readlink(step))
        except (OSError, ValueError):
            return None
    return None


def _own_descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the descriptor of this process that a path names, if any.

    FileError if it is not writable.
    """
    process, number = _descriptor(path) or (None, -1)
    if process != os.getpid():
        return None
    try:
        problem = "" if is_for_writing(number) else "this descriptor is open only for reading"
    except OSError:
        problem = "this descriptor is not open"
    if problem:
        raise FileError(path, found=problem, hint="choose another place")
    return number


@contextmanager
def _open_stream(path: str) -> Iterator[BinaryIO]:
    """Open a pipe, device or descriptor for writing; a descriptor keeps its position and mode."""
    from pathlib import Path

    with _explain_target_errors(path, Path(path)):
        if (number := _own_descriptor(path)) is None:
            # A regular file here is the descriptor of another process, such as the shell.
            with open(path, "ab" if os.path.isfile(path) else "wb") as raw:
                yield raw
            return
        for stream in (sys.stdout, sys.stderr):  # what was printed before comes before
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        with open(os.dup(number), "wb") as raw:
            yield raw


def _is_about_target(error: OSError, temporary: Path) -> bool:
    """Return False for errors of the caller's own code, such as a missing input file."""
    return error.filename == str(temporary) or (
        error.filename is None and error.errno in _TARGET_FAULTS
    )


def _unwritable(path: str | os.PathLike[str], target: Path, error: OSError) -> FileError:
    if not target.parent.is_dir():
        problem, hint = f"there is no folder {str(target.parent)!r}", "make it first"
    elif isinstance(error, IsADirectoryError):
        problem, hint = "this is a folder", "give the name of a file to write"
    elif isinstance(error, PermissionError):
        problem = "no permission to write here" + " or another program has it open" * IS_WINDOWS
        hint = "choose another place or change its permissions"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        problem, hint = "the disk is full", "free some space or choose another place"
    else:
        problem, hint = f"cannot be written ({reason_of(error)})", "choose another place"
    return FileError(os.fspath(path), found=problem, hint=hint)


@contextmanager
def arrow_file(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a `pyarrow.OSFile` for readers with several threads: of Parquet and Arrow files.

    pyarrow's threads free their buffers shortly after the reader returns. Buffers from a Python
    file need the interpreter's lock for that. If Python is ending then, it ends the thread, which
    aborts the process: once in sixty runs of a process that only reads.
    """
    import pyarrow as pa

    with open(path, "rb"):  # Python's error states the reason more clearly than pyarrow's
        pass
    # pyarrow would encode a str as UTF-8, but not every name is UTF-8.
    with pa.OSFile(os.fsencode(path)) as file:
        yield file


_FEW_BYTES = 1 << 20  # a file that is read sooner than threads start
_MAGIC = b"ARROW1"  # begins and ends an Arrow file for random access


def _pyarrow_can_start_threads() -> bool:
    """Return whether pyarrow can start its threads.

    Where the system allows no more, pyarrow raises an error that seems to blame the file, or
    crashes in the threads that did start. So this is asked before.
    """
    import pyarrow as pa

    return can_start_threads(pa.cpu_count() + pa.io_thread_count())


def read_parquet(file: Any) -> tuple[Any, Any]:
    """Return the table of a Parquet file that pyarrow has opened, and the file's metadata."""
    import pyarrow.parquet as pq

    threads = file.size() > _FEW_BYTES and _pyarrow_can_start_threads()
    parquet = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
    return parquet.read(use_threads=threads), parquet.metadata


def read_arrow(file: Any) -> Any:
    """Return the table of an Arrow file or stream that pyarrow has opened."""
    import pyarrow as pa

    is_stream = bytes(file.read(len(_MAGIC))) != _MAGIC
    file.seek(0)
    if is_stream:
        return pa.ipc.open_stream(file).read_all()
    if _pyarrow_can_start_threads():
        return pa.ipc.open_file(file).read_all()
    # Only with threads does pyarrow open the whole file, but it contains a stream. A stream that
    # is cut off between two parts seems complete; the end of the file is not.
    file.seek(max(0, file.size() - len(_MAGIC)))
    if bytes(file.read(len(_MAGIC))) != _MAGIC:
        raise pa.ArrowInvalid("Not an Arrow file")
    file.seek(8)  # the magic, padded
    return pa.ipc.open_stream(file).read_all()


PARSING = RLock()
"""A lock for reading the header of a ``.npy`` file.

numpy has Python parse headers as literals, and Python 3.11 raises a SystemError ("AST constructor
recursion depth mismatch") where two threads do that at once.
"""


def map_array(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """Map the array of a ``.npy`` file for reading; errors are numpy's."""
    import numpy as np

    name = os.fspath(path)  # numpy resolves the links of a Path: half the time of the call
    array = call_locked(PARSING, lambda: np.load(name, mmap_mode="r", allow_pickle=False))
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("it is an archive, as numpy.savez writes; name it .npz")
    return array


def write_array(file: BinaryIO, array: npt.NDArray[Any]) -> None:
    """Write the bytes that `numpy.save` writes.

    numpy bypasses Python to write to real files. If that fails, for instance on a full disk, its
    error gives only the number of values written.
    """
    import numpy as np

    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    rows = array.T if header["fortran_order"] else array
    file.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
