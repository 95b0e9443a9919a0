"""The configuration files for clusters build clusters; over SSH, one is really started."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import kgtrec

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

FOLDER = Path(kgtrec.__file__).parent / "cluster" / "configurations"
PAGE = FOLDER.parent / "README.md"

needs_jobqueue = pytest.mark.skipif(
    find_spec("dask_jobqueue") is None,
    reason="dask-jobqueue is not installed: job scripts cannot be made",
)
needs_asyncssh = pytest.mark.skipif(
    find_spec("asyncssh") is None, reason="asyncssh is not installed: there is no SSH server"
)


def run_script(folder: Path, code: str, configuration: str) -> str:
    """What a user's script prints, with DASK_CONFIG naming one of the files."""
    script = folder / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env=os.environ | {"DASK_CONFIG": str(FOLDER / configuration)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("SLURM", ["#SBATCH -J kgtrec", "#SBATCH -p compute", "#SBATCH -t 04:00:00",
                   "#SBATCH --mem=15G", "#SBATCH --cpus-per-task=4"]),
        ("PBS", ["#PBS -N kgtrec", "#PBS -q compute", "#PBS -l walltime=04:00:00",
                 "#PBS -l select=1:ncpus=4:mem=16GB"]),
    ],
)  # fmt: skip
def test_job_scripts_say_what_the_files_say(kind: str, wanted: list[str], tmp_path: Path) -> None:
    code = (
        f"from dask_jobqueue import {kind}Cluster\n"
        "port = {'dashboard_address': '127.0.0.1:0'}\n"
        f"with {kind}Cluster(scheduler_options=port) as cluster:\n"
        "    print(cluster.job_script())\n"
    )
    text = run_script(tmp_path, code, f"{kind.lower()}.yaml")
    lines = text.splitlines()
    for line in [*wanted, "source /shared/venv/bin/activate"]:
        assert line in lines
    assert "--nthreads 4" in text
    assert "--death-timeout 120" in text
    assert "--local-directory $TMPDIR" in text
    assert f"{kind}Cluster" in PAGE.read_text("utf-8")


def test_limits_that_mapped_files_would_exceed_are_off() -> None:
    import dask.config

    for name in ("slurm.yaml", "pbs.yaml"):
        (found,) = dask.config.collect_yaml([str(FOLDER / name)])
        memory = found["distributed"]["worker"]["memory"]
        assert memory["terminate"] is memory["pause"] is memory["target"] is False


# A server of its own on this machine, where there may be no sshd.
SERVER = """
import asyncio, os, signal, sys, asyncssh

async def copy(source, sink):
    while data := await source.read(1 << 16):
        if not sink.channel.is_closing():
            sink.write(data)

async def handle(process):
    # It ends with the connection.
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
        start_new_session=True)
    copies = asyncio.gather(
        copy(child.stdout, process.stdout), copy(child.stderr, process.stderr))
    closed = asyncio.create_task(process.wait_closed())
    ended = asyncio.create_task(child.wait())
    await asyncio.wait({closed, ended}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        os.killpg(child.pid, signal.SIGKILL)
    await copies
    code = await ended
    if not closed.done():
        process.exit(code)

class Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return False  # nobody is asked who they are

async def main():
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        Server, "127.0.0.1", 0, server_host_keys=[key], process_factory=handle, encoding=None)
    print(server.get_port(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

OVER_SSH = """
import sys
import dask, numpy as np
from distributed import Client, SSHCluster
import kgtrec, kgtrec.cluster

settings = dask.config.get("kgtrec.ssh")
settings["hosts"] = ["127.0.0.1"] * 2
settings["remote_python"] = sys.executable
settings["connect_options"] |= {"port": int(sys.argv[1]), "known_hosts": None, "config": None}
settings["scheduler_options"] |= {"port": 0, "dashboard_address": "127.0.0.1:0"}
settings["worker_options"] |= {"n_workers": 2, "local_directory": sys.argv[2]}

triples = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]])
questions = kgtrec.Graph.from_arrays(test=triples).questions()
scores = np.arange(18, dtype=np.float32).reshape(6, 3)
with SSHCluster(**settings) as cluster, Client(cluster) as client:
    client.wait_for_workers(2)
    ranks, _ = kgtrec.cluster.rank(scores, questions, client)
    print(len(client.nthreads()), set(client.nthreads().values()))
print(ranks.rank().tolist() == kgtrec.rank(scores, questions)[0].rank().tolist())
"""


@needs_asyncssh
def test_workers_over_ssh(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        code = OVER_SSH.replace("sys.argv[1]", repr(port)).replace(
            "sys.argv[2]", repr(str(tmp_path))
        )
        assert run_script(tmp_path, code, "ssh.yaml") == "2 {1}\nTrue\n"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
