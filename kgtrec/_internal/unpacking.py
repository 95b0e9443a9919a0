"""Packed files whose content is far larger than any text: refused before they fill the memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

from kgtrec.errors import FileError, PathName

if TYPE_CHECKING:
    from zipfile import ZipFile

LARGEST_UNCHECKED = 256 << 20
"""Unpacked bytes that any packed file may have."""

LARGEST_RATIO = 300
"""Largest unpacked bytes per packed byte. Runs and triples reach 30; zeros reach 1,030 in gzip."""


def check_expansion(path: PathName, packed: int, unpacked: int, kind: str = "no text does") -> None:
    """Raise FileError if packed bytes unpack to more bytes than those of any text.

    ``kind`` ends the message if other content than text is expected.
    """
    if unpacked > LARGEST_UNCHECKED and unpacked > LARGEST_RATIO * max(packed, 1):
        problem = (
            f"the first {packed:,} bytes unpack to more than {unpacked:,}, "
            f"{unpacked // max(packed, 1):,} times as many, which {kind}"
        )
        raise FileError(path, found=problem, hint="unpack the file and look at what it contains")


def check_members(path: PathName, archive: ZipFile) -> None:
    """Raise FileError if a member of an archive of arrays claims to unpack to far more bytes.

    zipfile never unpacks more bytes of a member than it claims, so nothing is unpacked here.
    """
    for member in archive.infolist():
        kind = "no array of scores, vectors or ids does"
        check_expansion(path, member.compress_size, member.file_size, kind)


class UnpackedStream(io.RawIOBase):
    """The unpacked bytes of a file, read until they are far more than a text can have.

    - raw: The packed file, whose position says how much of it was read.
    - stream: What unpacks it, with a method `readinto`.
    """

    def __init__(self, path: PathName, raw: BinaryIO, stream: Any) -> None:
        self._path, self._raw, self._stream, self._size = path, raw, stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        self._size += count
        check_expansion(self._path, self._raw.tell(), self._size)
        return count
