"""Files that appear whole or not at all, Arrow files for pyarrow's threads, and ``.npy`` files.

A file is written beside its place, then renamed. It is on the disk when that is reported: a machine
that loses power afterwards has the file.

The command line imports this module before it configures the threads that numpy starts: numpy is
imported inside the functions that need it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kgtrec._internal.locations import is_location, local_path, reachable, sent
from kgtrec.errors import FileError, refuse_url

if TYPE_CHECKING:
    import numpy.typing as npt

# What goes wrong while writing and is the target's fault, not that of the code that writes.
_TARGET_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EPIPE}

# What file systems say that cannot wait for a folder, such as some of a network.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; it takes its name only when the block ends without error.

    By then its bytes and its name are on the disk, not just on their way there.
    """
    if is_location(path):
        local = local_path(path)
        place = sent(path) if local is None else nullcontext(local)
        with place as copy, atomic_write(copy) as file:
            yield file
        return
    direct = _is_special(path)
    # The name of a pipe under /dev/fd leads to no path that could be opened.
    target = Path(path) if direct else Path(os.path.realpath(path))
    if target.is_dir():
        raise _unwritable(path, target, IsADirectoryError())
    temporary = target if direct else target.with_name(f".kgtrec-{os.urandom(8).hex()}.tmp")
    try:
        # Exclusive creation with the usual mode: the file gets the permissions that the user's
        # umask gives, which the 0600 of tempfile would not.
        with open(temporary, "wb" if direct else "xb") as raw:
            yield from _compressed(raw, Path(path).suffix)
        if not direct:
            _sync(temporary)  # else the name could outlive a crash, and the bytes not
            os.replace(temporary, target)
            sync_folder(target.parent)
    except BaseException as error:
        if not direct:
            with suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError) and _is_about(error, temporary):
            raise _unwritable(path, target, error) from error
        raise


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Find out before long work that its results could not be written; None is passed over."""
    for path in paths:
        if path is not None and is_location(path):
            local = local_path(path)
            if local is None:
                reachable(path)
            else:
                check_writable(local)
            continue
        if path is None or _is_special(path):
            continue
        target = Path(os.path.realpath(path))
        try:
            if target.is_dir():
                raise IsADirectoryError
            probe = target.with_name(f".kgtrec-{os.urandom(8).hex()}.tmp")
            try:
                open(probe, "xb").close()
            finally:  # a Ctrl-C may come between the two
                with suppress(OSError):
                    os.unlink(probe)
        except OSError as error:
            raise _unwritable(path, target, error) from None


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk, on file systems that can tell."""
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def _sync(path: str | os.PathLike[str]) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder and those above it, unless they are there; their names are then on the disk.

    Object stores have no folders but those of the names of their objects: nothing is made there.
    """
    local = local_path(folder) if is_location(folder) else folder
    if local is None:
        return
    refuse_url(local)
    path = Path(local)
    made = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in reversed(made):
        sync_folder(one.parent)


def _compressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        import gzip

        # No name and no time in the header; level 4 is twice as fast as 6 and 5 % larger.
        with gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif suffix == ".zst":
        import pyarrow as pa

        with pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd") as stream:
            yield stream
    else:
        yield raw


def _is_special(path: str | os.PathLike[str]) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_about(error: OSError, temporary: Path) -> bool:
    """False for what the caller's own code ran into, such as a missing input file."""
    return error.filename == str(temporary) or (
        error.filename is None and error.errno in _TARGET_FAULTS
    )


def _unwritable(path: str | os.PathLike[str], target: Path, error: OSError) -> FileError:
    if not target.parent.is_dir():
        problem, hint = f"there is no folder {str(target.parent)!r}", "make it first"
    elif isinstance(error, IsADirectoryError):
        problem, hint = "this is a folder", "give the name of a file to write"
    elif isinstance(error, PermissionError):
        problem, hint = "no permission to write here", "choose another place or change its mode"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        problem, hint = "the disk is full", "make room or choose another place"
    else:
        problem, hint = f"cannot be written ({error.strerror})", "choose another place"
    return FileError(os.fspath(path), found=problem, hint=hint)


@contextmanager
def arrow_file(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A `pyarrow.OSFile` for whatever reads with several threads: Parquet and Arrow files.

    pyarrow's threads drop what they have read shortly after the reader has returned. Bytes that
    came from a Python file take the interpreter's lock for that, and where Python is ending by then
    it ends the thread, which aborts the process: once in sixty runs of one that does nothing else.
    """
    import pyarrow as pa

    with open(path, "rb"):  # an error of pyarrow's own says its reason in the midst of others
        pass
    # Text it would encode as UTF-8, which not every name is.
    with pa.OSFile(os.fsencode(path)) as file:
        yield file


PARSING = RLock()
"""Held while the header of a ``.npy`` file is read.

numpy has Python parse headers as literals, and Python 3.11 raises a SystemError ("AST constructor
recursion depth mismatch") where two threads do that at once.
"""


def map_array(path: str | PathLike[str]) -> npt.NDArray[Any]:
    """The array of a ``.npy`` file, mapped to be read; errors are numpy's."""
    import numpy as np

    with PARSING:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def write_array(file: BinaryIO, array: npt.NDArray[Any]) -> None:
    """The bytes that `numpy.save` writes.

    numpy writes to real files past Python: of one that cannot be written, such as on a full disk,
    it says how many values are there, and nothing else.
    """
    import numpy as np

    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    rows = array.T if header["fortran_order"] else array
    file.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
