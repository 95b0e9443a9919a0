"""Local servers for S3 and Google storage with a small graph for them, and a disk that fills up."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

# This server and pyarrow before 20 sometimes disagree about the end of a multipart upload.
AGREES = int(pyarrow.__version__.split(".")[0]) >= 20
SMALL = {"allow_delayed_open": True} if AGREES else {}

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "s",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What has to stand in the environment besides the server's address."""


@contextmanager
def served(*command: str, install: str = "moto[server]") -> Iterator[str]:
    """The address of a server that ends with the context; skips the test if it is not installed.

    `HOST` and `PORT` in the command's options become the address.
    """
    name, *options = command or ("moto_server", "-H", "HOST", "-p", "PORT")
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"there is no server: pip install '{install}', with {name} on PATH")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = {"HOST": "127.0.0.1", "PORT": str(port)}
    # It may have its own environment, which ours must not change.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    process = subprocess.Popen(
        [program, *(address.get(option, option) for option in options)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        with socket.socket() as client:
            while client.connect_ex(("127.0.0.1", port)):
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


GOOGLE = ("gcp-storage-emulator", "start", "--host", "HOST", "--port", "PORT", "--in-memory")


def new_bucket(address: str, name: str, folder: Path) -> Any:
    """pyarrow's file system of an S3 server, with a bucket that holds all files of a folder."""
    from pyarrow import fs

    how = {"access_key": "k", "secret_key": "s", "scheme": "http", "allow_bucket_creation": True}
    return _filled(fs.S3FileSystem(endpoint_override=address, **how, **SMALL), name, folder)


def new_google_bucket(address: str, name: str, folder: Path) -> Any:
    """The same for a Google server."""
    from pyarrow import fs

    how = {"anonymous": True, "scheme": "http", "project_id": "p"}
    return _filled(fs.GcsFileSystem(endpoint_override=address, **how), name, folder)


def _filled(system: Any, name: str, folder: Path) -> Any:
    system.create_dir(name)
    for path in filter(Path.is_file, folder.rglob("*")):
        with system.open_output_stream(
            f"{name}/{path.relative_to(folder)}", compression=None
        ) as out:
            out.write(path.read_bytes())
    return system


@contextmanager
def breaking(
    address: str,
    sent: int = 1 << 40,
    received: int = 1 << 40,
    stalled: threading.Event | None = None,
) -> Iterator[str]:
    """A proxy's address. Connections break after so many bytes, or stall and set an event."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                host, port = address.split(":")
                server = socket.create_connection((host, int(port)))
                for reader, other, most in ((client, server, sent), (server, client, received)):
                    way = (reader, other, most, stalled)
                    threading.Thread(target=_forward, args=way, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def _forward(
    source: socket.socket, target: socket.socket, most: int, stalled: threading.Event | None
) -> None:
    with suppress(OSError):
        while most > 0 and (data := source.recv(min(most, 1 << 16))):
            target.sendall(data)
            most -= len(data)
    if most <= 0 and stalled is not None:
        stalled.set()
        return
    for connection in (source, target):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


Floats = npt.NDArray[np.float32]


def call(*args: str) -> str:
    """The output of a command; raises its errors."""
    result = CliRunner().invoke(cli, list(args), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def write_graph_and_scores(
    home: Path, n_train: int, n_test: int, n_entities: int, prefix: str = ""
) -> tuple[kgtrec.Questions, Floats]:
    """Write `g/`, its scores as `s.npy` and as 11 files of `shards/`; entities are prefix and
    number. Scores are few integers, so that many are tied."""
    rng = np.random.default_rng(5)
    (home / "g").mkdir()
    for split, size in (("train", n_train), ("test", n_test)):
        lines = {
            f"{prefix}{rng.integers(n_entities)}\tr{rng.integers(2)}"
            f"\t{prefix}{rng.integers(n_entities)}\n"
            for _ in range(size)
        }
        (home / "g" / f"{split}.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    questions = kgtrec.read_graph(home / "g", progress=False).questions()
    scores = rng.integers(0, 5, (len(questions), questions.n_entities)).astype(np.float32)
    np.save(home / "s.npy", scores)
    (home / "shards").mkdir()
    for number, rows in enumerate(np.array_split(scores, 11)):
        np.save(home / "shards" / f"{number}.npy", rows)
    return questions, scores


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A small file system; skips the test if mounting is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here: a full disk needs a small file system")
    if done.returncode:
        pytest.skip("mounting is not allowed here: a full disk needs a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
