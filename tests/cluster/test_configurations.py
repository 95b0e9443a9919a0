"""Configuration files build clusters that rank; scripts play the queues.

Here ``sbatch`` and ``qsub`` are shell scripts, in case SLURM or PBS is missing. They start their
job at once, without the caller's environment, as PBS does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

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
    """The output of a user's script, with DASK_CONFIG naming one of the files."""
    script = folder / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False,
        cwd=folder, env=os.environ | {"DASK_CONFIG": str(FOLDER / configuration)}
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("SLURM", ["#SBATCH -J kgtrec", "#SBATCH -p compute", "#SBATCH -t 04:00:00",
                   "#SBATCH --mem=15G", "#SBATCH --cpus-per-task=4"]),
        ("PBS", ["#PBS -N kgtrec", "#PBS -q compute", "#PBS -l walltime=04:00:00",
                 "#PBS -l select=1:ncpus=4:mem=16GB"]),
    ],
)  # fmt: skip
def test_job_scripts_say_what_the_files_say(kind: str, expected: list[str], tmp_path: Path) -> None:
    code = (
        f"from dask_jobqueue import {kind}Cluster\n"
        "port = {'dashboard_address': '127.0.0.1:0'}\n"
        f"with {kind}Cluster(scheduler_options=port) as cluster:\n"
        "    print(cluster.job_script())\n"
    )
    text = run_script(tmp_path, code, f"{kind.lower()}.yaml")
    lines = text.splitlines()
    for line in [*expected, "source /shared/venv/bin/activate"]:
        assert line in lines
    assert "--nthreads 4" in text
    assert "--death-timeout 120" in text
    assert "--local-directory ${TMPDIR:-/tmp}" in text
    assert f"{kind}Cluster" in PAGE.read_text("utf-8")


SUBMIT = """#!/bin/bash
cp "${{@: -1}}" {folder}/job.$$
env -i HOME="$HOME" PATH=/usr/bin:/bin setsid /bin/bash {folder}/job.$$ > {folder}/log 2>&1 &
echo {answer}
"""
CANCEL = """#!/bin/bash
for job in "$@"; do kill -TERM -- "-${job%.*}"; done
"""

ADAPTIVE = """
import dask, numpy as np
from dask_jobqueue import {kind}Cluster
from distributed import Client
import kgtrec, kgtrec.cluster

rng = np.random.default_rng(6)
triples = rng.integers(0, (30, 2, 30), (40, 3))
questions = kgtrec.Graph.from_arrays(test=triples, n_entities=30).questions()
scores = rng.integers(0, 5, (len(questions), 30)).astype(np.float32)
port = {{"dashboard_address": "127.0.0.1:0"}}
with {kind}Cluster(scheduler_options=port) as cluster, Client(cluster) as client:
    cluster.adapt(maximum_jobs=1, interval="100ms")
    ranks, _ = kgtrec.cluster.rank(scores, questions, client)
    said = client.run(lambda: dask.config.get("distributed.worker.memory"))
    print([[said[one][key] for key in ("target", "spill", "pause", "terminate")] for one in said])
print(ranks.rank().tolist() == kgtrec.rank(scores, questions)[0].rank().tolist())
"""


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "submit", "cancel", "answer"),
    [
        ("SLURM", "sbatch", "scancel", "Submitted batch job $!"),
        ("PBS", "qsub", "qdel", "$!.server"),
    ],
)
def test_jobs_rank_though_they_inherit_nothing(
    kind: str, submit: str, cancel: str, answer: str, tmp_path: Path, monkeypatch
) -> None:
    """Without any worker at first: the work makes an adaptive cluster submit a job."""
    for name, text in ((submit, SUBMIT.format(folder=tmp_path, answer=answer)), (cancel, CANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    printed = run_script(tmp_path, ADAPTIVE.format(kind=kind), f"{kind.lower()}.yaml")
    # Limits that mapped files would exceed are off.
    assert printed == "[[False, 0.9, False, False]]\nTrue\n"


def test_job_arrays_rank_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts, run by bash with the variables that each queue sets for a task."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    Path("FB15k-237").mkdir()
    rows = [f"e{h}\tr\te{t}\n" for h, t in rng.integers(0, 40, (90, 2))]
    for split, lines in (("train", rows[:60]), ("test", rows[60:])):
        Path("FB15k-237", f"{split}.txt").write_text("".join(dict.fromkeys(lines)))
    graph = kgtrec.read_graph("FB15k-237", progress=False)
    np.savez(
        "model.npz",
        queries=rng.integers(-2, 3, (len(graph.questions()), 3)).astype(np.float32),
        entities=rng.integers(-2, 3, (graph.n_entities, 3)).astype(np.float32),
    )
    # Commands of the scripts are noted, one word per line, and run here.
    Path("kgtrec").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/called\n')
    Path("kgtrec").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def kgtrec_does(words: list[str]) -> None:
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output

    environments = {
        "slurm": {"SLURM_ARRAY_TASK_ID": "{}", "SLURM_ARRAY_TASK_COUNT": "2",
                  "SLURM_CPUS_PER_TASK": "1"},
        "pbs": {"PBS_ARRAY_INDEX": "{}", "SHARDS": "2", "PBS_O_WORKDIR": str(tmp_path)},
    }  # fmt: skip
    kgtrec_does(
        ["rank", "--graph", "FB15k-237", "--scores", "model.npz", "-o", "local.parquet", "-q"]
    )
    for queue, variables in environments.items():
        for number in "12":
            told = {name: value.format(number) for name, value in variables.items()}
            command = ["bash", f"{FOLDER}/{queue}-array.sh"]
            done = subprocess.run(command, env=path | told, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
            kgtrec_does(Path("called").read_text().splitlines())
        kgtrec_does(["merge", "shards", "-o", f"{queue}.parquet", "-q"])
        Path("shards").rename(queue)
    expected = Path("local.parquet").read_bytes()
    assert Path("slurm.parquet").read_bytes() == Path("pbs.parquet").read_bytes() == expected


# A separate server on this machine, which may have no sshd.
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


def test_array_scripts_readme_and_help_count_shards_from_1() -> None:
    root = Path(__file__).resolve().parents[2]
    texts = [root / "README.md", root / "kgtrec/cluster/README.md",
             *(root / "kgtrec/cluster/configurations").glob("*.sh")]  # fmt: skip
    said = CliRunner().invoke(cli, ["rank", "--help"]).output
    assert "1/N to N/N" in " ".join(said.split())
    sources = [text.read_text() for text in texts] + [said]
    assert not [text for text in sources if re.search(r"--shard\s+\"?0/|\b0/(N|16)\b", text)]
    ranges = [span for text in sources for span in re.findall(r"(?:--array=|-J )(\d+)-16", text)]
    assert ranges == ["1"] * 2
