"""kgtrec does on Windows and macOS what it does on Linux: names that these lack have substitutes.

The same transcripts were played by hand with Python for Windows under wine.
"""

from __future__ import annotations

import ast
import errno
import fcntl
import mmap
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import as_on_windows
import pytest
from checkout import ROOT
from locks import InterruptedLock, is_free
from transcripts import GOLDEN_CLI

from kgtrec._internal import locations, system, threads, urls
from kgtrec._internal.files import _descriptor, atomic_write

PACKAGE = ROOT / "kgtrec"
SCRIPT = Path(as_on_windows.__file__)

# Names that not every system has, and modules of a single system.
ELSEWHERE = {
    **{name: set(names.split()) for name, names in as_on_windows.HIDDEN.items()},
    "msvcrt": {"locking"},
}
MODULES = {*as_on_windows.MODULES, "msvcrt", "winreg", "ctypes"}


def names_of_some_systems(source: str) -> list[str]:
    """Uses of what only some systems have, as ``line: name``."""
    uses = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in ELSEWHERE.get(node.value.id, ()):
                uses.append(f"{node.lineno}: {node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            uses += [
                f"{node.lineno}: {module}.{alias.name}"
                for alias in node.names
                if module in MODULES or alias.name in ELSEWHERE.get(module, ())
            ]
        elif isinstance(node, ast.Import):
            uses += [f"{node.lineno}: {a.name}" for a in node.names if a.name in MODULES]
    return uses


def test_one_module_knows_what_differs_between_systems() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    uses = {str(path): names_of_some_systems(path.read_text("utf-8")) for path in paths}
    here = uses.pop(str(PACKAGE / "_internal" / "system.py"))
    assert len(here) > 10
    assert {path: lines for path, lines in uses.items() if lines} == {}
    sample = "import fcntl\nfrom signal import SIGHUP\nos.pread(1, 2, 3)\nimport os\nos.read(1, 2)"
    assert names_of_some_systems(sample) == ["1: fcntl", "2: signal.SIGHUP", "3: os.pread"]


def test_text_files_have_an_encoding() -> None:
    """Windows would take the code page of the country."""
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, ast.Attribute) and call.func.attr == "read_text":
                assert call.args or call.keywords, f"{path}:{call.lineno}"
            elif isinstance(call.func, ast.Name) and call.func.id == "open":
                mode = ast.unparse(call.args[1]) if len(call.args) > 1 else "'r'"
                names = {word.arg for word in call.keywords}
                assert "b" in mode or "encoding" in names, f"{path}:{call.lineno}"
                checked += 1
    assert checked > 10


# -- Commands without what Windows lacks -----------------------------------------------------------

EVERY_MODULE = """
import importlib, pkgutil
import kgtrec

def test_every_module_loads():
    loaded = 0
    for module in pkgutil.walk_packages(kgtrec.__path__, "kgtrec."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # an optional library
            assert module.name.startswith(("kgtrec.integrations.", "kgtrec.trec.ir_")), error
        loaded += 1
    assert loaded > 250
"""
COMMANDS = """rank eval report compare pool judge complete batch gate sets stats convert plot align
    classify openworld stratify pairs semantics audit changes suite sample estimate guide"""
TRANSCRIPTS = """alignments classification figures gate jobs judge openworld pairs pools refusals
    sets shards slices studies suites trec-files"""
"""Those with all commands; `slow` plays the others."""
ALL = {path.stem: path.read_text("utf-8") for path in GOLDEN_CLI.glob("*.txt")}


def play_hidden(*arguments: str) -> set[str]:
    """The tests that pass in a process that lacks what Windows lacks; fails if one fails."""
    environment = {name: text for name, text in os.environ.items() if name[:7] != "PYTEST_"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "-rp", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return set(re.findall(r"^PASSED .*?([\w-]+)\]?$", done.stdout, re.M))


def nodes(stems: list[str]) -> list[str]:
    test = "tests/cli/test_transcripts.py::test_commands_print_what_they_printed"
    return [f"{test}[{stem}]" for stem in stems]


def test_modules_load_and_commands_print_the_same(tmp_path: Path) -> None:
    (tmp_path / "test_modules.py").write_text(EVERY_MODULE)
    stems = TRANSCRIPTS.split()
    passed = play_hidden(str(tmp_path / "test_modules.py"), *nodes(stems))
    assert passed == {"test_every_module_loads", *stems}
    played = "\n".join(ALL[stem] for stem in stems)
    called = set(re.findall(r"^\$ kgtrec (?:-\S+ )*(\w+)", played, re.M))
    assert set(COMMANDS.split()) - called == set()


@pytest.mark.slow
def test_all_other_transcripts_are_the_same() -> None:
    stems = sorted(ALL.keys() - set(TRANSCRIPTS.split()))
    assert play_hidden(*nodes(stems)) == set(stems)


# -- Each substitute does what the original does ---------------------------------------------------


@pytest.fixture(params=["linux", "elsewhere"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """This system, and one without the names."""
    if request.param == "elsewhere":
        for module, names in as_on_windows.HIDDEN.items():
            for name in names.split():
                monkeypatch.delattr(f"{module}.{name}", raising=False)
        monkeypatch.setattr(mmap, "mmap", as_on_windows.Map)
        monkeypatch.setattr(os, "listdir", as_on_windows.list_folder)
        monkeypatch.setitem(sys.modules, "msvcrt", as_on_windows.windows_locks())
        monkeypatch.setitem(sys.modules, "fcntl", None)
    return str(request.param)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    """A file of ten bytes, whose position is 3."""
    (tmp_path / "file").write_bytes(b"0123456789")
    number = os.open(tmp_path / "file", os.O_RDWR)
    os.lseek(number, 3, os.SEEK_SET)
    yield number
    os.close(number)


def test_bytes_are_read_and_written_at_a_place(kind: str, opened: int, tmp_path: Path) -> None:
    assert system.read_at(opened, 4, 5) == b"5678"
    assert system.read_at(opened, 4, 8) == b"89"
    buffer = bytearray(6)
    with memoryview(buffer) as view:
        assert system.read_into(opened, view[1:4], 7) == 3
        assert system.read_into(opened, view[4:], 10) == 0
    assert buffer == b"\x00789\x00\x00"
    assert system.write_at(opened, memoryview(b"ab"), 9) == 2
    assert os.lseek(opened, 0, os.SEEK_CUR) == 3
    assert (tmp_path / "file").read_bytes() == b"012345678ab"


CALLS = {
    "read": lambda number: system.read_at(number, 4, 5),
    "read into a buffer": lambda number: system.read_into(number, memoryview(bytearray(4)), 5),
    "write": lambda number: system.write_at(number, b"ab", 5),
    "lock": system.lock,
}


@pytest.mark.parametrize("kind", ["elsewhere"], indirect=True)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_stops_no_later_read(
    kind: str, opened: int, monkeypatch, name: str, moment: str
) -> None:
    """As since Python 3.14, where it may come just after locking."""
    lock = InterruptedLock(moment)
    monkeypatch.setattr(system, "_moving", lock)
    with pytest.raises(KeyboardInterrupt):
        CALLS[name](opened)
    assert is_free(lock.lock)
    CALLS[name](opened)
    assert is_free(lock.lock)
    assert os.lseek(opened, 0, os.SEEK_CUR) == 3


@pytest.mark.parametrize("kind", ["elsewhere"], indirect=True)
def test_an_interrupt_moves_no_position(kind: str, opened: int, monkeypatch) -> None:
    seek = os.lseek

    def interrupted(number: int, at: int, how: int) -> int:
        position = seek(number, at, how)
        if at == 5:
            raise KeyboardInterrupt
        return position

    monkeypatch.setattr(os, "lseek", interrupted)
    with pytest.raises(KeyboardInterrupt):
        system.read_at(opened, 4, 5)
    assert os.lseek(opened, 0, os.SEEK_CUR) == 3


def test_threads_read_from_one_file(kind: str, tmp_path: Path) -> None:
    content = os.urandom(1 << 16)
    (tmp_path / "file").write_bytes(content)
    buffer = bytearray(len(content))
    with open(tmp_path / "file", "rb") as file, memoryview(buffer) as view:

        def fill(first: int, stop: int) -> None:
            for at in range(first, stop, 16):
                assert system.read_into(file.fileno(), view[at : at + 16], at) == 16

        parts = [(at, at + 4096) for at in range(0, len(content), 4096)]
        threads.share_rows(fill, parts, 4)
    assert buffer == content


@pytest.mark.parametrize("size", [0, 1, system._PIECE, 2 * system._PIECE + 5])
def test_a_file_gets_its_size(kind: str, size: int, tmp_path: Path, monkeypatch) -> None:
    if size == 0 and kind == "linux":
        return  # its call refuses that, and nobody asks for it
    some = os.write  # a disk may take a part of what is written
    monkeypatch.setattr(os, "write", lambda number, data: some(number, data[:700_000]))
    with open(tmp_path / "file", "wb") as file:
        system.allocate(file.fileno(), size)
    assert (tmp_path / "file").read_bytes() == bytes(size)


def test_a_full_disk_is_an_error_of_allocating(kind: str, monkeypatch) -> None:
    if kind == "linux":
        monkeypatch.delattr("os.posix_fallocate")
    monkeypatch.delattr("os.pwrite", raising=False)
    monkeypatch.setattr(os, "lseek", lambda *_: 0)
    with open("/dev/full", "wb", buffering=0) as file:  # noqa: SIM117
        with pytest.raises(OSError, match="No space"):
            system.allocate(file.fileno(), 100)


def test_memory_is_zeros(kind: str) -> None:
    memory = system.empty_memory(100_000)
    assert bytes(memory) == bytes(100_000)
    memory[5:7] = b"ab"
    assert memory[4:8] == b"\0ab\0"
    memory.close()


def test_a_lock_holds_until_its_file_is_closed(kind: str, opened: int, tmp_path: Path) -> None:
    system.lock(opened)
    with open(tmp_path / "file", "rb") as other:
        assert other.read() == b"0123456789"  # a lock is no obstacle to reading
        with pytest.raises(BlockingIOError):
            system.lock(other.fileno())
        waiting = partial(system.lock, other.fileno(), waits=True)
        waited = threading.Thread(target=waiting, daemon=True)
        waited.start()
        waited.join(0.1)
        assert waited.is_alive()
        fcntl.flock(opened, fcntl.LOCK_UN)
        waited.join(30)
        assert not waited.is_alive()
        with pytest.raises(BlockingIOError):
            system.lock(opened)
    assert os.lseek(opened, 0, os.SEEK_CUR) == 3


def test_a_file_system_without_locks_is_an_error(kind: str, opened: int, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    if kind == "elsewhere":
        monkeypatch.setattr(sys.modules["msvcrt"], "locking", refuse)
    for waits in (False, True):
        with pytest.raises(OSError, match="No locks available"):
            system.lock(opened, waits=waits)


@pytest.mark.parametrize("is_windows", [False, True])
def test_one_process_at_a_time_holds_a_folder(is_windows: bool, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(system, "IS_WINDOWS", is_windows)
    entered: list[int] = []

    def enter(number: int) -> None:
        with system.locked_folder(tmp_path):
            entered.append(number)

    with system.locked_folder(tmp_path):
        other = threading.Thread(target=enter, args=(1,), daemon=True)
        other.start()
        other.join(0.1)
        assert entered == []
    other.join(30)
    assert entered == [1]
    assert [path.name for path in tmp_path.iterdir()] == [".kgtrec.lock"] * is_windows


def test_descriptors_say_whether_they_can_be_written(kind: str, opened: int, tmp_path: Path):
    assert system.is_for_writing(opened)
    with open(tmp_path / "file", "rb") as file:
        assert not system.is_for_writing(file.fileno())
    assert (tmp_path / "file").read_bytes() == b"0123456789"
    free = os.dup(opened)
    os.close(free)
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.is_for_writing(free)


def test_a_key_that_others_can_read_is_not_private(tmp_path: Path, monkeypatch) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"key")
    key.chmod(0o600)
    assert system.is_private(key.stat())
    key.chmod(0o640)
    assert not system.is_private(key.stat())
    monkeypatch.delattr(os, "geteuid")
    assert system.is_private(key.stat())  # on Windows, where the mode says nothing


def test_threads_can_start(kind: str) -> None:
    assert (system.running_threads() > 0) == (kind == "linux")
    assert threads.can_start_threads(3)
    assert threads.available_cores() >= 1


def test_ctrl_c_waits_where_it_can(kind: str) -> None:
    steps: list[str] = []

    def interrupt() -> None:
        with system.interrupts_held_back():
            signal.raise_signal(signal.SIGINT)
            steps.append("after it")

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert steps == (["after it"] if kind == "linux" else [])
    with pytest.raises(KeyboardInterrupt):  # nothing is blocked any more
        signal.raise_signal(signal.SIGINT)


# -- Paths of Windows ------------------------------------------------------------------------------


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of Windows for paths, in the modules that look at them."""
    import ntpath

    monkeypatch.setattr(system, "IS_WINDOWS", True)
    monkeypatch.setattr(locations, "IS_WINDOWS", True)
    for name in ("isabs", "splitdrive", "normpath"):
        monkeypatch.setattr(os.path, name, getattr(ntpath, name))
    monkeypatch.setattr(os, "sep", "\\")


def test_drives_are_no_urls_and_paths_of_urls_stay_urls() -> None:
    code = (
        "import ntpath, os; os.sep = ntpath.sep\n"
        "from kgtrec._internal.urls import LOCATION, is_url, url_text\n"
        "print([is_url(name) for name in (r'C:\\x', 'C:/x', r's3:\\b\\x', 's3://b/x', r'a\\b')])\n"
        "print(bool(LOCATION.match(r's3:\\b')), bool(LOCATION.match('C:/s3')))\n"
        "print(url_text(r's3:\\b\\x'), url_text(r'file:\\C:\\x'), url_text('https:/a/b'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[False, False, True, True, False]",
        "True False",
        "s3://b/x file:///C:/x https://a/b",
    ]
    assert not urls.is_url(r"s3:\b\x")  # the name of a file, on other systems
    assert locations.local_path("file:///C:/x%20y") == "/C:/x y"


def test_file_urls_name_drives(windows: None) -> None:
    assert locations.local_path("file:///C:/x%20y") == "C:/x y"


@pytest.mark.parametrize("name", ["C:/x", "C:x", r"\x", "/x", r"a\..\..\x", "..", "../x", r"..\x"])
def test_no_name_leads_out_of_a_folder(windows: None, name: str) -> None:
    with pytest.raises(Exception, match="leads out of its folder"):
        locations.path_below("folder", name)


def test_names_stay_in_their_folder(windows: None) -> None:
    assert str(locations.path_below("folder", "a/b.txt")).replace("\\", "/") == "folder/a/b.txt"


def test_wildcards_of_the_command_line(windows: None, tmp_path: Path, monkeypatch) -> None:
    for name in ("b.x", "a.x", "q"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    words = ["*.x", "?", "--metric", "map.*", "q"]
    assert system.expand_wildcards(words) == ["a.x", "b.x", "?", "--metric", "map.*", "q"]
    monkeypatch.setattr(system, "IS_WINDOWS", False)
    assert system.expand_wildcards(words) == words


def test_words_of_suggested_commands(windows: None) -> None:
    assert system.shell_word(r"a\b.txt") == r"a\b.txt"
    assert system.shell_word(r"my files\b.txt") == r'"my files\b.txt"'


def test_errors_have_the_same_words_everywhere(tmp_path: Path) -> None:
    missing: Any = FileNotFoundError(errno.ENOENT, "Das System kann die Datei nicht finden", "x")
    assert system.reason_of(missing) == "Das System kann die Datei nicht finden"
    missing.winerror = 2
    assert system.reason_of(missing) == "No such file or directory"
    assert system.reason_of(OSError("no number")) == "no number"
    refused = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    assert system.reason_of(refused) == "Is a directory"
    assert system.reason_of(PermissionError(errno.EACCES, "Permission denied")) == (
        "Permission denied"
    )


def test_descriptors_of_macos_are_streams(monkeypatch) -> None:
    """There, /dev/fd is a folder, not a link."""
    real = os.path.realpath
    assert _descriptor("/dev/fd/1") == (os.getpid(), 1)
    monkeypatch.setattr(os.path, "realpath", lambda p: p if p == "/dev/fd" else real(p))
    assert _descriptor("/dev/fd/1") == (os.getpid(), 1)
    assert _descriptor("/dev/fd/x") is None


def test_files_are_synced_by_descriptors_that_windows_accepts(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(system, "IS_WINDOWS", True)
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(system.is_for_writing(number)))
    system.sync(SCRIPT)
    assert synced == [True]
    monkeypatch.setattr("kgtrec._internal.files.sync_folder", lambda folder: None)
    with atomic_write(tmp_path / "x") as file:
        file.write(b"x")
    assert synced == [True, True]
