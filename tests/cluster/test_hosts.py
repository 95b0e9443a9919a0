"""Two hosts as network namespaces; one does not see the other's files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

HERE, THERE = (f"kgtrec-{os.getpid()}-{letter}" for letter in "ab")
HOSTS = {HERE: "10.231.77.1", THERE: "10.231.77.2"}
ADDRESS = "tcp://10.231.77.1:8786"

SCRIPT = """
import sys
import numpy as np
from distributed import Client
import kgtrec, kgtrec.cluster
from kgtrec.cluster.dask import rank as engine
from kgtrec.cluster.dask.workers import TaskOptions
from kgtrec.ranking.settings import Settings

folder, address = sys.argv[1:]
rng = np.random.default_rng(5)
triples = rng.integers(0, (40, 2, 40), (90, 3))
graph = kgtrec.Graph.from_arrays(train=triples[:60], test=triples[60:], n_entities=40)
questions = graph.questions()
model = kgtrec.Factors(
    rng.integers(-2, 3, (len(questions), 3)).astype("f4"),
    rng.integers(-2, 3, (40, 3)).astype("f4"))
expected, expected_run = kgtrec.rank(model, questions, 4)
with Client(address, timeout=30) as client:
    client.wait_for_workers(2, timeout=60)
    hosts = {worker["host"] for worker in client.scheduler_info()["workers"].values()}
    inputs = engine.make_inputs(model, questions, folder + "/a", Settings(4, threads=1))
    print(sorted(hosts), engine.Workers(client, inputs, TaskOptions()).shared)
    ranks, run = kgtrec.cluster.rank(model, questions, client, run_depth=4, folder=folder + "/b")
    again, _ = kgtrec.cluster.rank(model.scores(), questions, client, folder=folder + "/c")
ranks.save(folder + "/got"); expected.save(folder + "/expected")
print(again.rank().tolist() == expected.rank().tolist())
print(open(folder + "/got", "rb").read() == open(folder + "/expected", "rb").read(),
      np.array_equal(run.documents, expected_run.documents))
"""


def call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"network namespaces are not to be had here: {done.stderr.strip()}")


@pytest.fixture
def hosts() -> Iterator[None]:
    """Two namespaces with a cable between them; removed afterwards."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("no iproute2 or util-linux here: hosts cannot be made of network namespaces")
    with ExitStack() as stack:
        for name in HOSTS:
            call("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        call("ip", "link", "add", "kgtrec0", "netns", HERE, "type", "veth",
             "peer", "name", "kgtrec0", "netns", THERE)  # fmt: skip
        for name, address in HOSTS.items():
            call("ip", "-n", name, "address", "add", f"{address}/24", "dev", "kgtrec0")
            call("ip", "-n", name, "link", "set", "kgtrec0", "up")
            call("ip", "-n", name, "link", "set", "lo", "up")
        yield


def on(host: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", host, *command]


@pytest.mark.slow
def test_two_hosts_of_which_one_shares_no_folder(hosts: None, tmp_path: Path) -> None:
    work, local = tmp_path / "work", tmp_path / "local"
    work.mkdir()
    local.mkdir()
    dask = [sys.executable, "-m", "dask"]
    worker = [*dask, "worker", ADDRESS, "--no-nanny", "--no-dashboard", "--nthreads", "1",
              "--local-directory", str(local)]  # fmt: skip
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(work)]
    commands = [
        on(HERE, *dask, "scheduler", "--host", HOSTS[HERE], "--port", "8786",
           "--no-dashboard"),
        on(HERE, *worker),
        on(THERE, *hidden, *worker),
    ]  # fmt: skip
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        done = subprocess.run(
            on(HERE, sys.executable, str(script), str(work), ADDRESS),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['10.231.77.1', '10.231.77.2'] False\nTrue\nTrue True\n"
