"""Local servers for S3 and Google storage, and a connection to them that breaks."""

from __future__ import annotations

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

import pyarrow
import pytest

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
        [program, *(address.get(option, option) for option in options)], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
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

    system = fs.S3FileSystem(
        access_key="k",
        secret_key="s",
        endpoint_override=address,
        scheme="http",
        allow_bucket_creation=True,
        **SMALL,
    )
    return _filled(system, name, folder)


def new_google_bucket(address: str, name: str, folder: Path) -> Any:
    """The same for a Google server."""
    from pyarrow import fs

    system = fs.GcsFileSystem(
        anonymous=True, endpoint_override=address, scheme="http", project_id="p"
    )
    return _filled(system, name, folder)


def _filled(system: Any, name: str, folder: Path) -> Any:
    system.create_dir(name)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        key = f"{name}/{path.relative_to(folder)}"
        with system.open_output_stream(key, compression=None) as out:
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
                for one, other, most in ((client, server, sent), (server, client, received)):
                    way = (one, other, most, stalled)
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
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
