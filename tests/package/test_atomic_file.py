"""A file that is reported as written is on the disk, bytes and name."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kgtrec._internal.files import atomic_write, check_writable, make_folder, sync_folder
from kgtrec.errors import FileError


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Synced and renamed files, in order: kind, name, and bytes of the file at that time."""
    done: list[tuple[str, str, int]] = []
    fsync, replace = os.fsync, os.replace

    def waited(number: int) -> None:
        name = os.readlink(f"/proc/self/fd/{number}")
        done.append(("fsync", name, 0 if os.path.isdir(name) else os.fstat(number).st_size))
        fsync(number)

    def renamed(old: str, new: str) -> None:
        done.append(("rename", os.fspath(new), os.stat(old).st_size))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", waited)
    monkeypatch.setattr(os, "replace", renamed)
    return done


@pytest.mark.parametrize("name", ["plain", "packed.gz", "packed.zst"])
def test_bytes_then_name_then_folder(tmp_path: Path, disk: list, name: str) -> None:
    target = tmp_path / name
    with atomic_write(target) as file:
        file.write(os.urandom(100_000))
    size = target.stat().st_size
    (_, temporary, _), *_ = disk
    assert disk == [("fsync", temporary, size), ("rename", str(target), size),
                    ("fsync", str(tmp_path), 0)]  # fmt: skip
    assert Path(temporary).parent == tmp_path


def test_a_link_is_followed_to_the_folder_that_has_the_name(tmp_path: Path, disk: list) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"x")
    assert disk[-1] == ("fsync", str(tmp_path / "far"), 0)


def test_pipes_and_devices_are_not_waited_for(disk: list) -> None:
    with atomic_write("/dev/null") as file:
        file.write(b"x")
    assert disk == []


def test_new_folders_are_on_the_disk_with_their_names(tmp_path: Path, disk: list) -> None:
    make_folder(tmp_path / "a" / "b")
    assert [name for _, name, _ in disk] == [str(tmp_path), str(tmp_path / "a")]
    make_folder(tmp_path / "a" / "b")
    assert len(disk) == 2


def test_a_disk_that_fails_when_it_is_waited_for(tmp_path: Path, monkeypatch) -> None:
    def failing(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with (
        pytest.raises(FileError, match="Input/output error"),
        atomic_write(tmp_path / "x") as file,
    ):
        file.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_file_systems_that_cannot_wait_for_a_folder(tmp_path: Path, monkeypatch) -> None:
    fsync = os.fsync

    def partly(number: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{number}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(number)

    monkeypatch.setattr(os, "fsync", partly)
    with atomic_write(tmp_path / "x") as file:
        file.write(b"x")
    assert (tmp_path / "x").read_bytes() == b"x"
    sync_folder(tmp_path)


def test_a_ctrl_c_during_the_check_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def opened(path: str, mode: str) -> None:
        Path(path).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.open", opened)
    with pytest.raises(KeyboardInterrupt):
        check_writable(tmp_path / "x")
    assert not list(tmp_path.iterdir())
