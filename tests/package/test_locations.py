"""Files at URLs: the same bytes as from this machine, and one sentence for a missing one."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from object_store import (
    GOOGLE,
    SETTINGS,
    call,
    new_bucket,
    new_google_bucket,
    served,
    small_disk,
    write_graph_and_scores,
)
from refusals import each_row

import kgtrec
import kgtrec.cluster
from kgtrec._internal import locations
from kgtrec._internal.files import atomic_write, check_writable, make_folder, sync_folder
from kgtrec._internal.locations import is_location
from kgtrec._internal.urls import is_url
from kgtrec.errors import FileError
from kgtrec.scores.sources import load_scores, select_rows


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, its scores as a matrix, as shards and as vectors, and local results."""
    home = tmp_path_factory.mktemp("home")
    _, scores = write_graph_and_scores(home, n_train=50, n_test=20, n_entities=9, prefix="é")
    np.save(home / "fortran.npy", np.asfortranarray(scores))
    np.save(home / "objects.npy", np.array([["a", None]], dtype=object))
    (home / "cut.npy").write_bytes((home / "s.npy").read_bytes()[:-1])
    np.savez(home / "m.npz", queries=scores[:, :3], entities=scores[: scores.shape[1], :3])
    (home / "bad").mkdir()
    (home / "bad" / "train.txt").write_text("a\tb\tc\na\tb\n")
    for name in ("s.npy", "m.npz"):
        outputs = ["-o", f"{home}/{name}.parquet", "--write-run", f"{home}/{name}.run.gz"]
        call("rank", "--graph", f"{home}/g", "--scores", f"{home}/{name}", *outputs, "-q")
    call("convert", "--graph", f"{home}/g", "--write-qrels", f"{home}/q.txt")
    (home / "sheet.tsv").write_text("head\trelation\ttail\tlabel\na\tr\tb\tY\n")
    return home


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": f"http://{s3_server}"}.items():
        monkeypatch.setenv(name, value)
    return "s3://kgtrec-test"


def reader(system: Any, bucket: str) -> Callable[[str], bytes]:
    return lambda name: bytes(system.open_input_file(f"{bucket}/{name}").read())


def check_everything(url: str, home: Path, read: Callable[[str], bytes]) -> None:
    """Everything that is read and written at a URL, compared with the files of `home`."""
    for name in ("s.npy", "m.npz"):
        out = f"{url}/out-{name}"
        call(
            "rank",
            "--graph",
            f"{url}/g",
            "--scores",
            f"{url}/{name}",
            "-o",
            f"{out}.parquet",
            "--write-run",
            f"{out}.run.gz",
            "--write-qrels",
            f"{out}.qrels",
            "-q",
        )
        assert read(f"out-{name}.parquet") == (home / f"{name}.parquet").read_bytes()
        assert read(f"out-{name}.run.gz") == (home / f"{name}.run.gz").read_bytes()
        assert read(f"out-{name}.qrels") == (home / "q.txt").read_bytes()
    for command in (["report", "{}/s.npy.parquet"], ["eval", "{}/q.txt", "{}/s.npy.run.gz"]):
        assert call(*(word.format(url) for word in command)) == call(
            *(word.format(home) for word in command)
        )
    questions = kgtrec.read_graph(Path(f"{url}/g"), progress=False).questions()
    assert questions.graph.name == "g"
    expected = kgtrec.Ranks.load(f"{url}/s.npy.parquet")
    ranks, _ = kgtrec.rank(f"{url}/shards", questions)
    assert ranks.rank().tolist() == expected.rank().tolist()
    rows = np.array([7, 0, 7, 3, len(questions) - 1])
    for name in ("s.npy", "shards"):
        blocks = select_rows(load_scores(f"{url}/{name}"), rows).blocks()  # type: ignore[union-attr]
        np.testing.assert_array_equal(np.concatenate(list(blocks)), np.load(home / "s.npy")[rows])


FAULTS = {
    "none.npy": "the file does not exist",
    "fortran.npy": "it is stored by column",
    "objects.npy": "an array of Python objects",
    "cut.npy": "it was cut short: ",
    "q.txt": "a file named .txt is not a score matrix",
    "g": "no .npy shard in this folder",
}


def check_faults(url: str) -> None:
    for name, problem in FAULTS.items():
        with pytest.raises(FileError) as raised:
            call("rank", "--graph", f"{url}/g", "--scores", f"{url}/{name}", "-o", os.devnull)
        assert str(raised.value).startswith(f"{url}/{name}: {problem}"), raised.value
        assert "\n" not in str(raised.value)
    with pytest.raises(FileError, match=r"test\.run|q\.txt: "):
        call("report", f"{url}/q.txt")
    with pytest.raises(FileError) as raised:
        call("eval", f"{url}/q.txt", f"{url}/q.txt")
    assert str(raised.value).startswith(f"{url}/q.txt:1: ")


def test_a_store_that_is_a_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests to an object store, without a server: pyarrow's view of a folder answers them."""
    from pyarrow import fs

    shutil.copytree(home, tmp_path / "bucket")
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        locations, "file_system", lambda url: (system, str(url).partition("://")[2])
    )
    check_everything("s3://bucket", home, reader(system, "bucket"))
    check_faults("s3://bucket")


class Listing:
    """pyarrow's view of a store that lists any keys as files below a folder, as a hostile one."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys

    def get_file_info(self, asked: Any) -> Any:
        from pyarrow import fs

        if isinstance(asked, list):
            return [fs.FileInfo(path, fs.FileType.Directory) for path in asked]
        return [fs.FileInfo(key, fs.FileType.File, size=5) for key in self.keys]

    def open_input_stream(self, key: str, compression: None) -> Any:
        return io.BytesIO(b"a\tb\tc")


ESCAPES = [
    "b/g/../../x",
    "b/g/../x",
    "b/g/a/../../../x",
    "b/g//x/../../x",
    "b/g/..",
    "b/g/.",
    "b/g/",
    "b/other/x",
    "b/gx",
    "/b/g/x",
    "b/g//x",
    "b/g/x\0y",
    "x",
]


@pytest.mark.parametrize("key", ESCAPES)
def test_keys_of_a_bucket_do_not_leave_the_folder(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object `g/../../x` would be written outside of the copy of `g`, at any path."""
    (tmp_path / "tmp" / "copies").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp" / "copies"))
    store = Listing(["b/g/train.txt", key])
    monkeypatch.setattr(locations, "file_system", lambda url: (store, url.partition("://")[2]))
    said = r"^s3://b/g: it has a name that leads out of its folder"
    with pytest.raises(FileError, match=said), locations.local_copy("s3://b/g", folders=True):
        pass
    for listed in (locations.files_below, locations.names_in):
        with pytest.raises(FileError, match=said):
            listed("s3://b/g")
    assert [*tmp_path.rglob("*")] == [tmp_path / "tmp", tmp_path / "tmp" / "copies"]


def test_steps_within_the_folder_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Listing(["b/g/train.txt", "b/g/a/../valid.txt", "b/g/.hidden/..x"])
    monkeypatch.setattr(locations, "file_system", lambda url: (store, url.partition("://")[2]))
    with locations.local_copy("s3://b/g", folders=True) as copy:
        names = sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file())
    assert names == [".hidden/..x", "train.txt", "valid.txt"]
    store.keys.append("b/g/valid.txt")
    said = "several objects have the same name"
    with pytest.raises(FileError, match=said), locations.local_copy("s3://b/g", folders=True):
        pass


def test_the_last_step_of_a_url_does_not_leave_the_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = Listing([])
    monkeypatch.setattr(locations, "file_system", lambda url: (store, url.partition("://")[2]))
    for place in (locations.local_copy, locations.upload_copy):
        with pytest.raises(FileError, match=r"^s3://b/g/\.\."), place("s3://b/g/.."):
            pass


def check_store(url: str, home: Path, system: Any) -> None:
    """A bucket with everything of `home`, and none that is called kgtrec-none."""
    read = reader(system, "kgtrec-test")
    check_everything(url, home, read)
    check_faults(url)
    none = url.replace("test", "none")
    with pytest.raises(FileError, match=rf"^{url}/bad/train.txt:2: "):
        kgtrec.read_graph(f"{url}/bad", progress=False)
    with pytest.raises(FileError, match=rf"^{none}/x: there is no bucket 'kgtrec-none'"):
        call("rank", "--graph", f"{url}/g", "--scores", f"{url}/s.npy", "-o", f"{none}/x")
    with pytest.raises(FileError, match=rf"^{none}/x.parquet: the file does not exist"):
        kgtrec.Ranks.load(f"{none}/x.parquet")
    with atomic_write(f"{url}/whole") as file:
        file.write(b"first")
    with suppress(KeyboardInterrupt), atomic_write(f"{url}/whole") as file:
        file.write(b"second")
        raise KeyboardInterrupt
    assert read("whole") == b"first"


def test_an_object_store(bucket: str, s3_server: str, home: Path) -> None:
    system = new_bucket(s3_server, "kgtrec-test", home)
    check_store(bucket, home, system)
    source: Any = load_scores(f"{bucket}/s.npy")
    with system.open_output_stream("kgtrec-test/s.npy") as out:
        out.write((home / "s.npy").read_bytes() + b"more")
    with pytest.raises(FileError, match=r"s\.npy: it was written to while it was read"):
        source.check()


@pytest.mark.parametrize("n_sent", [0, 1, 2])
def test_a_failed_upload_says_which_outputs_are_there(
    n_sent: int, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All outputs of a command get their names at its end, the last one first."""
    from pyarrow import fs

    class Failing(fs.SubTreeFileSystem):
        """A store that accepts some objects, and then no more."""

        left = n_sent

        def open_output_stream(self, key: str, **options: Any) -> Any:
            if not self.left:
                raise OSError("the store is read-only now")
            self.left -= 1
            return super().open_output_stream(key, **options)

    (tmp_path / "bucket").mkdir()
    system = Failing(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(locations, "file_system", lambda url: (system, url.partition("://")[2]))
    words = ("rank", "--graph", f"{home}/g", "--scores", f"{home}/s.npy")
    outputs = {"-o": "a.parquet", "--write-run": "b.run", "--write-qrels": "c.qrels"}
    urls = [f"s3://bucket/{name}" for name in outputs.values()]
    pairs = [word for pair in zip(outputs, urls, strict=True) for word in pair]
    with pytest.raises(FileError) as raised:
        call(*words, *pairs)
    there = {path.name for path in (tmp_path / "bucket").iterdir()}
    assert len(there) == n_sent
    failed, told = str(raised.value).split(": ", 1)
    assert failed in urls
    assert failed.rpartition("/")[2] not in there
    assert "the store is read-only now" in told
    written, _, missing = told.rpartition(" (")[2].removesuffix(")").rpartition("not written: ")
    if not n_sent:
        missing = told.rpartition(" (no output is written: ")[2]
    assert written.startswith("already written: ") == bool(n_sent)
    assert {url for url in urls if url in written} == {f"s3://bucket/{name}" for name in there}
    assert {url for url in urls if url in missing} == {
        url for url in urls if url.rpartition("/")[2] not in there
    }


@pytest.mark.slow
def test_a_google_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(*GOOGLE, install="gcp-storage-emulator") as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{address}")
        check_store("gs://kgtrec-test", home, new_google_bucket(address, "kgtrec-test", home))


@pytest.mark.parametrize("url", ["s3://bucket/x", "gs://bucket/x"])
def test_a_store_that_does_not_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow would retry for as long as it does with a store that has answered once."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr(locations, "_FIRST", timedelta(seconds=0.1))
    monkeypatch.setattr(locations, "_PATIENCE", timedelta(seconds=900))
    with pytest.raises(FileError) as refusal:
        locations.exists(url)
    said = re.fullmatch(
        rf"{url}: it cannot be reached or used \((.+)\); check the name, and the credentials and "
        "region in the environment variables",
        str(refusal.value),
    )
    assert said
    assert said[1] == "Could not connect to server" or url.startswith("s3")


def test_a_copy_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    (tmp_path / "large").write_bytes(b"x" * 100_000)
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(locations, "file_system", lambda url: (store, url.partition("://")[2]))
    with small_disk(tmp_path / "disk", "64k") as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with pytest.raises(FileError) as raised, locations.local_copy("s3://large"):
            pass
        assert not list(disk.iterdir())
    assert str(raised.value).startswith(
        f"s3://large: the disk of {disk} has no room for its copy; "
    )


def test_files_of_this_machine(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "h me")
    there = tmp_path / "h me"
    url = f"file://{tmp_path}/h%20me"
    check_everything(url, there, lambda name: (there / name).read_bytes())
    with pytest.raises(FileError, match="there is no folder"):
        call("rank", "--graph", f"{url}/g", "--scores", f"{url}/s.npy", "-o", f"{url}/none/x")


def test_a_url_names_every_file() -> None:
    for name in (b"/a b", b"/\xc3\xa9", b"/\xff\xfe", b"/%"):
        assert os.fsencode(locations.local_path(f"file://{quote(name)}") or "") == name


# -- URLs that are not read --------------------------------------------------------------------


@pytest.fixture
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, which must have no other files afterwards."""
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    yield home
    assert [path for path in home.rglob("*") if path not in before] == []


@each_row("url", ["https://bucket/x", "s3://bucket/x"])
def test_what_only_this_machine_has(place: Path, url: str) -> None:
    questions = kgtrec.read_graph("g", progress=False).questions()
    with pytest.raises(FileError, match="needs a local folder for its journal; copy the sheet"):
        call("judge", "serve", url)
    with pytest.raises(FileError, match="stored questions must be mapped into memory; give a fold"):
        kgtrec.cluster.store_questions(questions, url)
    with pytest.raises(FileError, match=r"a work folder \(folder=\) must be mapped into memory; "):
        kgtrec.cluster.rank("s.npy", questions, folder=url)


def test_what_is_a_url_and_a_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ["s3://b/x", "gs://b", "file:///x", "S3://b/x", "s3:/b/x", Path("s3://b/x")]
    other = ["https://a.b/c.npy", "HDFS://h/x"]
    paths = [
        "x",
        "a/b://c",
        "/a/s3://b",
        "/a",
        "C:/x",
        "./s3:/x",
        "s3",
        "s3:x",
        "",
        "a:b",
        "x y://z",
    ]
    for url in read + other:
        assert is_url(str(url))
        assert is_location(url) == (url not in other)
        said = str(FileError(Path(url), found="the file does not exist", hint="x"))
        assert said.count("://") == 1
    for path in paths:
        assert not is_url(path)
        assert not is_location(path)
    assert not is_location(b"x")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    assert not is_url("s3://b")  # a file that is there is a file
    assert not is_location("s3://b")


# -- A file that is reported as written is on the disk, bytes and name -----------------------------


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


def test_bytes_then_name_then_folder(tmp_path: Path, disk: list) -> None:
    make_folder(tmp_path / "a" / "b")
    assert [name for _, name, _ in disk] == [str(tmp_path), str(tmp_path / "a")]
    make_folder(tmp_path / "a" / "b")
    with atomic_write("/dev/null") as file:
        file.write(b"x")
    assert len(disk) == 2
    (tmp_path / "link").symlink_to(tmp_path / "a" / "linked")
    for name, folder in (("plain", ""), ("packed.gz", ""), ("packed.zst", ""), ("link", "a")):
        disk.clear()
        with atomic_write(tmp_path / name) as file:
            file.write(os.urandom(100_000))
        target = (tmp_path / name).resolve()
        size, temporary = target.stat().st_size, disk[0][1]
        assert disk == [
            ("fsync", temporary, size),
            ("rename", str(target), size),
            ("fsync", str(tmp_path / folder), 0),
        ]
        assert Path(temporary).parent == target.parent


def test_a_disk_that_fails_when_it_is_waited_for(tmp_path: Path, monkeypatch) -> None:
    def failing(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(FileError, match="Input/output"), atomic_write(tmp_path / "x") as file:
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
