"""Worker processes of this machine obey nobody but the process that started them."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import psutil
from distributed import Client
from distributed.core import connect
from distributed.security import Security
from transcripts import run_command

from kgtrec.cluster.dask.workers import (
    ClusterError,
    TimedOut,
    connect_client,
    local_client,
    open_client,
)
from kgtrec.errors import UsageError

SECONDS = 20.0


def ports() -> set[int]:
    """The ports on which this process and those that it started listen, whatever serves there."""
    here = psutil.Process()
    connections = [
        connection
        for process in (here, *here.children(recursive=True))
        for connection in process.net_connections("inet")
    ]
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


def test_a_stranger_reaches_no_port_of_the_worker_processes(tmp_path: Path) -> None:
    """Not the scheduler, the workers, the nannies, or a page: without keys, or with others."""
    of_others = ports()  # such as another test's cluster
    with local_client(tmp_path, 1) as client:
        listening = ports() - of_others
        assert len(listening) == 3  # scheduler, nanny and worker
        others = Security.temporary().get_connection_args("client")

        async def refused(address: str, **keys: object) -> bool:
            try:
                comm = await connect(address, timeout=SECONDS, **keys)
                await comm.write({"op": "identity", "reply": True})
                await comm.read()
            except (OSError, *TimedOut):
                return True
            return False

        for port in listening:
            assert client.sync(refused, f"tcp://127.0.0.1:{port}")
            assert client.sync(refused, f"tls://127.0.0.1:{port}", **others)
            assert not answer(port, b"GET / HTTP/1.0\r\n\r\n")
            assert b"200" not in answer(port, b"GET / HTTP/1.0\r\n\r\n", tls=True)
        with pytest.raises((OSError, *TimedOut)):
            Client(client.scheduler.address, timeout=SECONDS, security=Security.temporary())
        assert client.submit(sum, [1, 2]).result() == 3  # the owner is still served


def answer(port: int, request: bytes, tls: bool = False) -> bytes:
    """What a port answers to some bytes, in a connection without keys; empty if it hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
            context.wrap_socket(plain) if tls else plain as connection,
        ):
            connection.sendall(request)
            return connection.recv(1000)
    except OSError:
        return b""


def test_without_keys_no_worker_processes_start(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("kgtrec.cluster.dask.workers.find_spec", lambda name: None)
    with (
        pytest.raises(UsageError, match="the package cryptography is not installed"),
        open_client(None, tmp_path),
    ):
        raise AssertionError


def test_a_failed_start_names_the_limit_and_not_standard_output(
    tmp_path: Path, monkeypatch
) -> None:
    """Dask wraps the system's error in errors of its own."""

    def exhausted(*_: object) -> None:
        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError as error:
            raise RuntimeError("Nanny failed to start.") from error

    monkeypatch.setattr("kgtrec.cluster.dask.private_cluster.private_cluster", exhausted)
    said = r"did not start \(Too many open files\); allow more open files \(ulimit -n\)"
    with pytest.raises(ClusterError, match=said), open_client(None, tmp_path):
        raise AssertionError


def test_an_error_of_the_system_in_the_work_is_not_blamed_on_standard_output(monkeypatch) -> None:
    def no_thread(*_: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("kgtrec.cluster.batch.job_file.read_jobs", no_thread)
    outcome = run_command("batch", "jobs.toml")
    assert outcome.code == 2
    assert outcome.err.startswith(
        "kgtrec: the system stopped the work (Resource temporarily unavailable); check its limits"
    )


def test_a_scheduler_with_keys_is_told_from_a_missing_one() -> None:
    said = r"no Dask scheduler answers at tls://127.0.0.1:1 \(TypeError\).* names the keys"
    with pytest.raises(UsageError, match=said), connect_client("tls://127.0.0.1:1"):
        raise AssertionError
