"""Hostile files are refused early: deep nesting, bombs, forged metadata, members of other kinds."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from transcripts import run_command

import kgtrec
from kgtrec._internal import threads
from kgtrec._internal.structured import DEEPEST, parse_json, parse_toml
from kgtrec._internal.text import LONGEST_MESSAGE
from kgtrec._internal.unpacking import LARGEST_UNCHECKED
from kgtrec.cli._report import note
from kgtrec.errors import FileError, UsageError
from kgtrec.graph.tsv import iterate_lines
from kgtrec.plots.style import check_plot
from kgtrec.ranking import partial
from kgtrec.ranking.partial import read_about, read_parts, write_parts
from kgtrec.study.auditing import possible
from kgtrec.trec.files.text import read_text

KGTREC = (sys.executable, "-m", "kgtrec")


def limited_to_descriptors(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run kgtrec with at most 11 open files, on 16 shards of scores and 4 shards of ranks."""
    home = tmp_path / "g"
    home.mkdir()
    for split in ("train", "valid", "test"):
        rows = (f"e{i}\tr\te{i + 1}\n" for i in range(8))
        (home / f"{split}.txt").write_text("".join(rows))
    (tmp_path / "many").mkdir()
    scores = np.random.default_rng(5).random((16, 9), np.float32)
    np.save(tmp_path / "scores.npy", scores)
    for row in range(16):
        np.save(tmp_path / "many" / f"{row:02}.npy", scores[row : row + 1])
    for number in range(1, 5):
        shard = ("rank", "--graph", "g", "--scores", "many", "--shard", f"{number}/4", "-o", "sh")
        subprocess.run(KGTREC + shard, cwd=tmp_path, check=True, capture_output=True)
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (11, 11)); "
        "from kgtrec.cli import run; run()"
    )
    command = (sys.executable, "-c", program, *words)
    return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)


def test_a_limit_of_open_files_is_named(tmp_path: Path) -> None:
    """Nobody is told to remove work because of it."""
    done = limited_to_descriptors(tmp_path, "merge", "sh", "-o", "y")
    assert done.returncode == 2, done.stderr
    assert "(ulimit -n)" in done.stderr
    assert "remove" not in done.stderr


def test_shards_of_scores_hold_no_descriptors(tmp_path: Path) -> None:
    done = limited_to_descriptors(
        tmp_path, "rank", "--graph", "g", "--scores", "many", "-o", "x.parquet"
    )
    assert done.returncode == 0, done.stderr
    whole, _ = kgtrec.rank(tmp_path / "scores.npy", kgtrec.read_graph(tmp_path / "g").questions())
    ranks = kgtrec.Ranks.load(tmp_path / "x.parquet")
    assert ranks.rank().tolist() == whole.rank().tolist()


def test_nesting_has_a_limit() -> None:
    allowed = b"[" * DEEPEST + b"]" * DEEPEST
    assert json.dumps(parse_json(allowed)) == allowed.decode()
    assert parse_json(b'{"a": "' + b"[" * 1000 + b'"}') == {"a": "[" * 1000}
    assert parse_json("[[], []]") == [[], []]
    assert len(parse_json(b"[" + b"[1]," * 500 + b"[]]")) == 501
    for text in (b"[" + allowed + b"]", b"[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(ValueError, match="nested more than 64 levels deep"):
            parse_json(text)
    for text in (b"x = " + b"[" * 30_000, b"x = " + b"{a=" * 30_000, b"[" * 30_000):
        with pytest.raises(ValueError, match="nested more than 64 levels deep"):
            parse_toml(text)
    with pytest.raises(ValueError, match="more than 64 parts"):
        parse_toml(b"a" + b".a" * 30_000 + b" = 1")
    text = b'x = """' + b"[" * 1000 + b'"""\ny = [[1]] # ' + b"[" * 1000
    assert parse_toml(text) == {"x": "[" * 1000, "y": [[1]]}


def test_deeply_nested_files_get_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deep = "[" * 30_000
    Path("seeds.csv").write_text("model,graph,metric,value\na,g,amri,0.5\nb,g,amri,0.25\n")
    Path("groups.toml").write_text(f"x = {deep}")
    Path("sheet.tsv").write_text(
        "question\thead\trelation\ttail\tlabel\tevidence\tnote\nQ?\ta\tr\tb\t\t\t\n"
    )
    Path("sheet.tsv.journal").write_text(f"{deep}\n")
    for words, text in (
        (("suite", "seeds.csv", "--groups", "groups.toml"), "groups.toml: not TOML: nested more"),
        (("judge", "export", "sheet.tsv", "-o", "x.tsv"), "sheet.tsv.journal"),
    ):
        said = run_command(*words)
        assert said.code == 2, said
        assert text in said.err


def ranks_with(labels: object) -> None:
    """Write forged.parquet, the ranks of o.parquet with other labels of relations."""
    table = pq.read_table("o.parquet")
    metadata = dict(table.schema.metadata)
    (key,) = (key for key in metadata if b"relation_labels" in metadata[key])
    header = json.loads(metadata[key]) | {"relation_labels": labels}
    metadata[key] = json.dumps(header).encode()
    pq.write_table(table.replace_schema_metadata(metadata), "forged.parquet")


@pytest.mark.parametrize("labels", [[1, 2], [None], {"a": 1}, "r0", [["r0"]], 7, [], ["r"]])
def test_forged_labels_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: object
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g").mkdir()
    Path("g/test.txt").write_text("a\tr\tb\nb\tq\tc\n")
    np.save("s.npy", np.random.default_rng(1).random((4, 3)))
    assert run_command("rank", "--graph", "g", "--scores", "s.npy", "-o", "o.parquet").code == 0
    ranks_with(labels)
    said = run_command("report", "forged.parquet", "--by", "relation")
    assert said.code == 2
    assert "forged.parquet" in said.err


def test_deeply_nested_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ranks, and of a shard whose hash is right."""
    home_of_ranks(tmp_path, monkeypatch)
    rank = ("rank", "--graph", "g", "--scores", "s.npy", "-o")
    table = pq.read_table("o.parquet")
    deep = dict.fromkeys(table.schema.metadata, b"[" * 100000)
    pq.write_table(table.replace_schema_metadata(deep), "deep.parquet")
    assert run_command(*rank, "sh", "--shard", "1/1").code == 0
    (shard,) = Path("sh").glob("shard-*.arrow")
    about, parts = read_about(shard), [*read_parts(shard)]
    with monkeypatch.context() as patched:
        deeper = SimpleNamespace(dumps=lambda *_, **__: "[" * 100_000)
        patched.setattr(partial, "json", deeper)
        write_parts(shard, about, parts)
    for words, name in (
        (("report", "deep.parquet"), "deep.parquet"),
        (("merge", "sh", "-o", "m.parquet"), shard.name),
    ):
        said = run_command(*words)
        assert said.code == 2, said
        assert name in said.err
        assert len(said.err) < 1000


HEADER = (
    b"\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (19660800, 4)}".ljust(127)
    + b"\n"
)


def test_bombs_of_arrays_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is unpacked: a member says how large it is, and never gives more bytes."""
    monkeypatch.chdir(tmp_path)
    Path("g").mkdir()
    Path("g/test.txt").write_text("a\tr\tb\nb\tr\tc\n")
    for path, names in (("m.npz", ("queries", "entities")), ("neg.npz", ("head_neg", "tail_neg"))):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    file.write(HEADER)
                    for _ in range(300):
                        file.write(b"\0" * (1 << 20))
    np.save("s.npy", np.random.default_rng(1).random((4, 3)))
    rank = ("rank", "--graph", "g", "-o")
    for words in (
        (*rank, "o.parquet", "--scores", "m.npz"),
        (*rank, "o.parquet", "--scores", "s.npy", "--candidates", "neg.npz"),
        (*rank, "sh", "--scores", "m.npz", "--shard", "1/1"),
        (*rank, "o.parquet", "--scores", "m.npz", "--model", "distmult"),
    ):
        said = run_command(*words)
        assert said.code == 2, said
        if "--shard" in words:  # the header is enough
            assert "m.npz: Factors have 19660800 queries" in said.err
        else:
            assert "unpack to more than 314," in said.err
            assert "which no array of scores, vectors or ids does" in said.err


def test_archives_hold_arrays_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("m.npz", "w") as archive:
        archive.writestr("queries", b"no array")
        archive.writestr("entities.txt", b"no array")
    with open("a.npy", "wb") as file:
        np.savez(file, queries=np.ones((2, 2)), entities=np.ones((3, 2)))
    Path("g").mkdir()
    Path("g/test.txt").write_text("a\tr\tb\nb\tr\tc\n")
    for name in ("m.npz", "a.npy"):
        said = run_command("rank", "--graph", "g", "--scores", name, "-o", "o.parquet")
        assert said.code == 2, said
        assert said.err.splitlines()[-1].startswith(f"kgtrec: {name}: ")


def test_bombs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.txt.gz"
    piece = gzip.compress(b"\0" * (LARGEST_UNCHECKED // 8), 9, mtime=0)
    path.write_bytes(piece * 200)  # 6 MB that unpack to 6 GB
    with pytest.raises(FileError, match="which no text does"):
        read_text(str(path), True)
    with pytest.raises(FileError, match="which no text does"):
        list(iterate_lines(path))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "model,MR,MRR\na,1e400,0.5\n"),
        ("t.csv", "model,MR,MRR\na,1e-400000000,0.5\n"),
        ("t.csv", "model,MR,MRR\na,1e999999999,0.5\n"),
        ("t.tex", "model & MR & MRR \\\\\na & 1e400 & 0.5 \\\\\n"),
        ("t.tsv", "\t" * 100_000 + "\na\t1\n"),
    ],
)
def test_odd_published_numbers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    said = run_command("audit", name, "--n-entities", "100")
    assert said.code == 2, said
    assert name in said.err


def test_an_audit_has_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("model,MR,MRR,Hits@1\na,20,0.5,0.4\n")
    said = run_command("audit", "t.csv", "--n-entities", "2147483647")
    assert said.code == 1
    assert "from 1 to 100000000" in said.err
    ends = possible._bound_contributions("mr", 0.0, 5000, (1.0,), 256)
    monkeypatch.setattr(possible, "_PIECE", 7)
    possible._bound_contributions.cache_clear()
    for whole, pieces in zip(
        ends, possible._bound_contributions("mr", 0.0, 5000, (1.0,), 256), strict=True
    ):
        assert whole.tolist() == pieces.tolist()


def test_a_message_of_many_odd_names_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    """An escape takes more characters than what it stands for."""
    note("\x1b" * 5000)
    assert len(capsys.readouterr().err) <= LONGEST_MESSAGE + 1


@pytest.mark.parametrize(
    ("backend", "code"), [("TkAgg", 0), ("", 0), ("nonsense", 1), ("module://nothing", 0)]
)
def test_figures_with_any_backend(
    tmp_path: Path, backend: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure is a file, which needs no window; but matplotlib refuses a name that it lacks."""
    home_of_ranks(tmp_path, monkeypatch)
    words = (*KGTREC, "plot", "ties", "o.parquet", "-o", "x.svg")
    surroundings = os.environ | {"MPLBACKEND": backend}
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert ("MPLBACKEND" in done.stderr) == bool(code)
    assert Path("x.svg").exists() != bool(code)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_a_full_disk_while_a_figure_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_of_ranks(tmp_path, monkeypatch)
    for form in ("svg", "pdf", "png"):
        os.symlink("/dev/full", f"x.{form}")
        said = run_command("plot", "ties", "o.parquet", "-o", f"x.{form}")
        assert said.code == 2, said
        assert f"x.{form}: the disk is full" in said.err
        assert "written to" not in said.err


@pytest.mark.parametrize("words", [("-o", "x.svg"), ("-o", "x.pdf")])
def test_a_command_names_a_wrong_date(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    home_of_ranks(tmp_path, monkeypatch)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    said = run_command("plot", "ties", "o.parquet", *words)
    assert said.code == 1, said
    assert "SOURCE_DATE_EPOCH" in said.err
    assert not Path(words[1]).exists()


def home_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with o.parquet, ranks of a graph of two triples."""
    monkeypatch.chdir(tmp_path)
    Path("g").mkdir()
    Path("g/test.txt").write_text("a\tr\tb\nb\tr\tc\n")
    np.save("s.npy", np.random.default_rng(1).random((4, 3)))
    assert run_command("rank", "--graph", "g", "--scores", "s.npy", "-o", "o.parquet").code == 0


def test_work_goes_on_with_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", refuse)
    finished: list[int] = []
    threads.share_rows(lambda first, _: finished.append(first), [(n, n + 1) for n in range(9)], 4)
    assert finished == [*range(9)]


@pytest.mark.parametrize("seconds", ["x", "-1", "9" * 30, "²", ""])
def test_figures_name_a_wrong_date(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        check_plot("x.pdf")
