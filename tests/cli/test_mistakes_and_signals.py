"""The command line and the package for a new user: mistakes, signals, odd surroundings.

Each mistake gives one sentence, the right exit code, no traceback and no half-written file.
"""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from slow import slow_after
from transcripts import Outcome, run_command

import kgtrec

COMMAND = [sys.executable, "-m", "kgtrec"]

N = 40  # entities
RELATIONS = ["r0", "r1", "caf\udce9_|&"]  # the last has a byte that is not UTF-8


@dataclass
class Home:
    """A working folder with a graph, fitting scores, and a way to rank in it."""

    folder: Path
    scores: np.ndarray

    def save(self, name: str, array: np.ndarray) -> str:
        np.save(self.folder / name, array)
        return name

    def rank(self, *more: str, scores: str = "s.npy", graph: str = "g", out="o.parquet") -> Outcome:
        return run_command("rank", "--graph", graph, "--scores", scores, "-o", out, *more)

    def refuses(self, outcome: Outcome, *words: str, code: int = 2) -> None:
        """One sentence with these words; nothing written."""
        assert outcome.code == code, outcome
        assert outcome.err.startswith("kgtrec: ")
        assert outcome.err.count("\n") == 1
        assert [word for word in words if word not in outcome.err] == [], outcome.err
        assert not list(self.folder.rglob("*.tmp"))
        assert not (self.folder / "o.parquet").exists()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    rng = np.random.default_rng(5)
    (tmp_path / "g").mkdir()
    for split, rows in (("train", 90), ("valid", 12), ("test", 12)):
        triples = rng.integers(0, (N, 3, N), (rows, 3))
        lines = (f"e{h:02}\t{RELATIONS[r]}\te{t:02}\n" for h, r, t in triples)
        (tmp_path / "g" / f"{split}.txt").write_text("".join(lines), errors="surrogateescape")
    with open(tmp_path / "g" / "train.txt", "a") as file:
        file.writelines(f"e{i:02}\tr0\te{i:02}\n" for i in range(N))
    questions = kgtrec.read_graph(tmp_path / "g").questions()
    scores = rng.normal(size=(len(questions), N)).astype(np.float32)
    np.save(tmp_path / "s.npy", scores)
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path, scores)


# -- Scores ------------------------------------------------------------------------------------


def test_shards_are_joined_by_number(home: Home):
    home.rank("-q")
    (home.folder / "sh").mkdir()
    for number, row in enumerate(home.scores):
        home.save(f"sh/part{number}.npy", row[None])  # part2 before part10
    home.save("sh/._part0.npy", np.zeros((3, 3)))  # what file managers leave behind
    home.rank("-q", scores="sh", out="by_shards.parquet")
    whole, joined = (kgtrec.Ranks.load(name) for name in ("o.parquet", "by_shards.parquet"))
    assert np.array_equal(whole.greater, joined.greater)


def test_messages_name_the_file_of_the_scores(home: Home):
    (home.folder / "sh").mkdir()
    home.save("sh/0.npy", home.scores[:5])
    for second, *words in (
        (home.scores[5:, :-1], "sh/1.npy: ", "columns"),
        (home.scores[5:].astype(np.float64), "sh/1.npy: ", "float64"),
        (home.scores[5:9], "sh: scores have 9 rows", "split 'test', both sides"),
    ):
        home.save("sh/1.npy", second)
        home.refuses(home.rank(scores="sh"), *words)
    instances = kgtrec.read_graph("g").questions().n_instances
    for array, *words in (
        (np.full_like(home.scores, np.nan), "scores: NaN for question head0", "--nan worst"),
        (np.zeros((instances, N)), "--rows instances"),
    ):
        home.refuses(home.rank(scores=home.save("a.npy", array)), "a.npy: ", *words)
    (home.folder / "a.npy").write_bytes(b"\x80\x04\x95pickled")
    home.refuses(home.rank(scores="a.npy"), "a.npy: ", "not a .npy array: it begins with")
    arrays = {"queries": home.scores[:, :4], "entities": np.ones((N, 4), np.float32)}
    np.savez("f.npz", **arrays, Bias=np.zeros(N))
    home.refuses(home.rank(scores="f.npz"), "f.npz: ", "'Bias'")
    np.savez("f.npz", **arrays, bias=np.zeros(N))
    assert home.rank("-q", scores="f.npz").code == 0


# -- Graphs ------------------------------------------------------------------------------------


def test_only_regular_files_are_splits(home: Home):
    path = home.folder / "g" / "train.txt"
    for make in (lambda: path.symlink_to("nowhere"), path.mkdir, lambda: os.mkfifo(path)):
        path.rename(home.folder / "kept")
        make()
        home.refuses(home.rank(), "g/train.txt: not a regular file")
        path.rmdir() if path.is_dir() else path.unlink()
        (home.folder / "kept").rename(path)


# -- Options -----------------------------------------------------------------------------------


def test_a_lazily_negated_tensor_keeps_its_sign(home: Home):
    class Negated:
        """A tensor of torch with the negative bit set: its export forgets the sign."""

        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def resolve_neg(self) -> np.ndarray:
            return -self.values

        def __array__(self, dtype=None, copy=None) -> np.ndarray:
            return self.values

    questions = kgtrec.read_graph("g").questions()
    ranks = kgtrec.rank(Negated(-home.scores), questions)[0]
    assert np.array_equal(ranks.greater, kgtrec.rank(home.scores, questions)[0].greater)


def test_no_command_at_all_shows_the_help_and_fails(home: Home):
    outcome = run_command()
    assert outcome.code == 1
    assert outcome.err.startswith("Usage: kgtrec")
    assert "convert" in outcome.err


def test_ranks_under_a_name_that_is_no_utf8(home: Home):
    home.refuses(
        run_command("report", "missing.parquet"), "missing.parquet: the file does not exist"
    )
    home.rank("-q", out="\udcff.parquet")
    assert run_command("report", "\udcff.parquet").code == 0


# -- Streams -----------------------------------------------------------------------------------


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash where KG means kgtrec."""
    line = line.replace("KG", f"{sys.executable} -m kgtrec")
    environment = {**os.environ, **environment}
    return subprocess.run(["bash", "-c", line], capture_output=True, env=environment, check=False)


def test_closed_and_full_streams(home: Home):
    home.rank("-q")
    done = shell("KG report o.parquet --format json | true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (0, b"")  # a reader that leaves is no error
    assert shell("KG guide >&-").returncode == 0
    done = shell("KG rank --graph g --scores s.npy -o closed.parquet <&- >&- 2>&-")
    assert done.returncode == 0
    assert len(kgtrec.Ranks.load("closed.parquet")) == len(kgtrec.Ranks.load("o.parquet"))
    done = shell("KG --help > /dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith(b"kgtrec: standard output: No space left on device")
    assert done.stderr.count(b"\n") == 1
    done = shell("KG convert --graph g --write-qrels /dev/stdout")
    run_command("convert", "--graph", "g", "--write-qrels", "q")
    assert done.stdout == (home.folder / "q").read_bytes()
    assert home.rank("-q", "--write-run", "/dev/null", out="/dev/null").code == 0


def test_outputs_that_are_descriptors_are_written_to_not_replaced(home: Home):
    """The shell has opened the file already; replacing it would lose what others write to it."""
    run_command("convert", "--graph", "g", "--write-qrels", "q")
    qrels, first = Path("q").read_bytes(), b"before\n"
    convert = "KG convert --graph g --write-qrels"
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link"):
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("/dev/stdout")
        Path("all").write_bytes(first)
        file = os.stat("all").st_ino
        assert shell(f"{convert} {name} >> all").returncode == 0
        assert Path("all").read_bytes() == first + qrels, name
        assert os.stat("all").st_ino == file
        shell(f"(echo before; {convert} {name}; echo after) > all")
        assert Path("all").read_bytes() == first + qrels + b"after\n", name
    shell(f"{convert} /dev/fd/7 7> seven > one")
    shell(f"{convert} /dev/stderr 2> two")
    shell(f"exec 5> five; echo before >&5; {convert} /proc/$$/fd/5")
    assert Path("seven").read_bytes() == qrels
    assert Path("five").read_bytes() == first + qrels
    assert Path("two").read_bytes().startswith(qrels + b"kgtrec: wrote /dev/stderr: ")
    shell(f"mkfifo pipe; cat pipe > piped & {convert} pipe; wait")
    assert Path("piped").read_bytes() == qrels
    # What is written and what is printed share the file.
    home.rank("-q")
    rank = "KG rank --graph g --scores s.npy -o o.parquet --write-qrels"
    both = shell(f"{rank} /dev/stdout -q > both; cat both").stdout
    assert both == qrels + shell(f"{rank} q -q").stdout
    Path("out.gz").symlink_to("/dev/stdout")  # without `ln`, which .ci/wheels does not offer
    shell(f"{convert} out.gz > packed")
    assert gzip.decompress(Path("packed").read_bytes()) == qrels


def test_a_descriptor_that_cannot_be_written_is_refused_before_the_work(home: Home):
    for number, problem in ((0, b"open only for reading"), (9, b"not open")):
        done = shell(f"KG convert --graph g --write-qrels /dev/fd/{number} < s.npy")
        assert done.returncode == 2
        assert done.stderr.startswith(
            b"kgtrec: /dev/fd/%d: this descriptor is %b" % (number, problem)
        )
        assert done.stderr.count(b"\n") == 1


def test_nobody_has_to_take_what_is_said_on_standard_error(home: Home):
    full, gone = "2> /dev/full", "2>&1 > /dev/null | true; exit ${PIPESTATUS[0]}"
    ranking = "KG rank --graph g --scores {}.npy -o full.parquet"
    for line, code in (
        (f"{ranking.format('s')} {full}", 0),
        (f"{ranking.format('no')} {gone}", 2),
        (f"KG rank -x {full}", 1),
    ):
        assert shell(line).returncode == code
    assert len(kgtrec.Ranks.load("full.parquet"))


def test_any_locale_gets_the_same_bytes(home: Home):
    home.rank("-q")
    words = ("report", "o.parquet", "--by", "relation")
    assert b"\ncaf\\xe9_|& " in run_command(*words).out_bytes
    plain = run_command("report", "o.parquet").out_bytes
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert shell("KG report o.parquet", PYTHONIOENCODING="ascii", **odd).stdout == plain
    assert b"\xc2\xb7" in plain


# -- Signals -----------------------------------------------------------------------------------

SIGNALS = [
    (signal.SIGINT, 130, "interrupted"),
    (signal.SIGTERM, 143, "terminated"),
    (signal.SIGHUP, 129, "hung up"),
]


def end_of(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit code of a process, and the last line of its messages."""
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(("number", "code", "said"), slow_after(1, SIGNALS))
def test_a_signal_when_a_file_would_get_its_name_leaves_nothing(
    home: Home, number: int, code: int, said: str
) -> None:
    program = (
        "import os, sys\n"
        f"os.replace = lambda *names: os.kill(os.getpid(), {number})\n"
        "from kgtrec.cli import main\n"
        "sys.argv = ['kgtrec', 'convert', '--graph', 'g', '--write-qrels', 'q']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert end_of(done) == (code, f"kgtrec: {said}; nothing half-written is left behind")
    assert not list(home.folder.glob(".*.tmp"))
    assert not (home.folder / "q").exists()


AGAIN = """
import os, signal, sys
from kgtrec.cli import main

more = int(sys.argv.pop())

def interrupted(*names):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        for _ in range(more):  # while the first one is dealt with
            os.kill(os.getpid(), signal.SIGINT)

os.replace = interrupted
sys.argv[1:] = ["convert", "--graph", "g", "--write-qrels", "q"]
main()
"""


@pytest.mark.parametrize(("more", "said"), [(2, "interrupted"), (3, "ended at once")])
def test_more_interrupts_while_the_first_one_is_dealt_with(
    home: Home, more: int, said: str
) -> None:
    """Two more change nothing; the last one ends a process that does not end by itself."""
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(more)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1].startswith(f"kgtrec: {said}; ")
    assert "Traceback" not in done.stderr
    assert bool(list(home.folder.glob(".*.tmp"))) == (more == 3)


@pytest.mark.slow
def test_an_interrupt_while_a_run_is_written_leaves_nothing(home: Home) -> None:
    # 7.5 million lines: long enough to be interrupted in the middle.
    (home.folder / "big").mkdir()
    for split, rows in (("test", 1500), ("train", 5000)):
        text = "".join(f"{row}\tr\t{row}\n" for row in range(rows))
        (home.folder / "big" / f"{split}.txt").write_text(text)
    np.lib.format.open_memmap("big.npy", "w+", np.float32, (1500, 5000)).flush()  # a sparse file
    command = ["rank", "--graph", "big", "--scores", "big.npy", "--sides", "tail"]
    command += ["-o", "b.parquet", "--write-run", "b.run", "--run-depth", "5000"]

    def writing() -> bool:
        return len(list(home.folder.glob(".*.tmp"))) == 2  # ranks, and the run

    with subprocess.Popen([*COMMAND, *command], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 240
        while process.poll() is None and not writing() and time.monotonic() < deadline:
            time.sleep(0.002)
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=240)
    last = text.strip().splitlines()[-1]
    said = "kgtrec: interrupted; nothing half-written is left behind"
    assert (process.returncode, last) == (130, said)
    assert not list(home.folder.glob(".*.tmp"))
    assert not (home.folder / "b.run").exists()
    assert not (home.folder / "b.parquet").exists()


def test_an_interrupt_while_a_graph_is_read_is_not_lost(home: Home):
    # The file is a pipe that never ends, so reading it is what the command is at.
    code = (
        "import io, os, signal, sys, threading, time\n"
        "from kgtrec.graph import id_files, tsv\n"
        "class Endless(io.RawIOBase):\n"
        "    def readable(self): return True\n"
        "    def tell(self): return 0\n"
        "    def close(self): pass\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *_): pass\n"
        "    def readinto(self, space):\n"
        "        reading.set()\n"
        "        time.sleep(0.001)\n"
        "        space[:6] = b'a\\tr\\tb\\n'\n"
        "        return 6\n"
        "endless = Endless()\n"
        "tsv.open_packed = lambda path: (endless, endless)\n"
        "reading = threading.Event()\n"
        "def stop():\n"
        "    reading.wait()\n"
        "    time.sleep(0.3)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop).start()\n"
        "sys.argv = ['kgtrec', 'convert', '--graph', 'g', '--write-qrels', 'q']\n"
        "from kgtrec.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    said = "kgtrec: interrupted; nothing half-written is left behind"
    assert (done.returncode, done.stderr.strip()) == (130, said)


def test_the_blas_of_a_command_has_one_thread_unless_the_user_says_more() -> None:
    code = (
        "import os, sys\nfrom kgtrec.cli import run\nsys.argv = ['kgtrec', '--version']\n"
        "try: run()\n"
        "except SystemExit: print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])\n"
    )
    others = {name: text for name, text in os.environ.items() if "_NUM_THREADS" not in name}
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=others | given,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[1] == f"False {expected}"


def test_the_version_is_said_before_the_commands_are_loaded() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--version']; from kgtrec.__main__ import run; run(); "
        "print(sorted({'click', 'numpy'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"kgtrec, version {kgtrec.__version__}\n[]\n"
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kgtrec", "--version"]
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (failed.returncode, b"No space left" in failed.stderr) == (2, True)


# -- Signals -----------------------------------------------------------------------------------

# A library that turns an interrupt of its import into its own error.
_LOADING = """
import os, signal, sys
from kgtrec import cli

signal.signal(signal.{signal}, signal.SIG_DFL)  # nohup's children inherit that it is ignored

def load(*args):
    try:
        os.kill(os.getpid(), signal.{signal})
    except BaseException as error:
        {then}

cli.import_module = load
sys.argv = ["kgtrec", "measures"]
cli.main()
"""


@pytest.mark.parametrize(
    ("name", "said", "then"),
    slow_after(
        3,
        [
            ("SIGTERM", "terminated", 'raise ImportError("half loaded") from error'),
            ("SIGTERM", "terminated", "sys.exit(0)"),
            ("SIGHUP", "hung up", "raise"),
            ("SIGTERM", "terminated", "sys.exit(1)"),
            ("SIGTERM", "terminated", "raise"),
            ("SIGTERM", "terminated", "raise RuntimeError from None"),
        ],
    ),
)
def test_what_a_library_makes_of_a_signal(name: str, said: str, then: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADING.format(signal=name, then=then)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + getattr(signal, name), done
    message = f"kgtrec: {said}; nothing half-written is left behind"
    assert done.stderr.strip() in ("", message)
    if "exit" not in then:
        assert done.stderr
