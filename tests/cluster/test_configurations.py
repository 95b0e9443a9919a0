"""Configuration files build clusters that rank; scripts play the queues.

Here ``sbatch`` and ``qsub`` are shell scripts, in case SLURM or PBS is missing. They start their
job at once, without the caller's environment, as PBS does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'kgtrec[cluster]'")

import dask
from distributed import Nanny, Scheduler, SSHCluster

FOLDER = Path(kgtrec.__file__).parent / "cluster" / "configurations"
PAGE = FOLDER.parent / "README.md"


def run_script(folder: Path, code: str, configuration: str) -> str:
    """The output of code that needs dask-jobqueue, with DASK_CONFIG naming one of the files."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env=os.environ | {"DASK_CONFIG": str(FOLDER / configuration)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "SLURM",
            [
                "#SBATCH -J kgtrec",
                "#SBATCH -p compute",
                "#SBATCH -t 04:00:00",
                "#SBATCH --mem=15G",
                "#SBATCH --cpus-per-task=4",
            ],
        ),
        (
            "PBS",
            [
                "#PBS -N kgtrec",
                "#PBS -q compute",
                "#PBS -l walltime=04:00:00",
                "#PBS -l select=1:ncpus=4:mem=16GB",
            ],
        ),
    ],
)
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


def test_files_have_settings_that_dask_knows() -> None:
    """README lists the queues and servers that ran jobs by these files."""
    for queue in ("slurm", "pbs"):
        settings = dask.config.collect([str(FOLDER / f"{queue}.yaml")], env={})["jobqueue"][queue]
        lines = "\n".join(settings["job-script-prologue"])
        exported = dict(re.findall(r"export (DASK_\w+)=(\S+)", lines))
        memory = dask.config.collect([], env=exported)["distributed"]["worker"]["memory"]
        # Limits that mapped files would exceed are off.
        limits = [memory[name] for name in ("target", "spill", "pause", "terminate")]
        assert limits == [False, 0.9, False, False]
    ssh = dask.config.collect([str(FOLDER / "ssh.yaml")], env={})["kgtrec"]["ssh"]
    for words, program in (
        (ssh, SSHCluster),
        (ssh["scheduler_options"], Scheduler),
        (ssh["worker_options"].keys() - {"n_workers"}, Nanny),
    ):
        assert set(words) <= signature(program).parameters.keys()


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
        "slurm": {
            "SLURM_ARRAY_TASK_ID": "{}",
            "SLURM_ARRAY_TASK_COUNT": "2",
            "SLURM_CPUS_PER_TASK": "1",
        },
        "pbs": {"PBS_ARRAY_INDEX": "{}", "SHARDS": "2", "PBS_O_WORKDIR": str(tmp_path)},
    }
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


def test_array_scripts_readme_and_help_count_shards_from_1() -> None:
    texts = [path.read_text() for path in (ROOT / "README.md", PAGE, *FOLDER.glob("*.sh"))]
    texts.append(CliRunner().invoke(cli, ["rank", "--help"]).output)
    assert "1/N to N/N" in " ".join(texts[-1].split())
    assert not [text for text in texts if re.search(r"--shard\s+\"?0/|\b0/(N|16)\b", text)]
    ranges = [span for text in texts for span in re.findall(r"(?:--array=|-J )(\d+)-16", text)]
    assert ranges == ["1"] * 2
