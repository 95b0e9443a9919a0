"""URLs that are not read are refused with one sentence, and nothing is made that has their name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
import kgtrec.cluster
from kgtrec.cli import cli
from kgtrec.errors import FileError, KgtrecError, is_url

URL = "https://bucket/x"
S3 = "s3://bucket/x"
SAID = (
    "a URL that kgtrec cannot read or write; copy or mount it and name the file, or use a URL of "
)
G = ["--graph", "g"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").mkdir()
    for split in ("train", "test"):
        (tmp_path / "g" / f"{split}.txt").write_text(f"a\tr\tb\nb\tr\t{split}\n")
    questions = kgtrec.read_graph("g", progress=False).questions()
    np.save("s.npy", np.zeros((len(questions), questions.n_entities)))
    for name in ("a", "b"):
        call(["rank", *G, "--scores", "s.npy", "-o", f"{name}.parquet", "--write-run", "t.run",
              "--write-qrels", "t.qrels", "-q"])  # fmt: skip
    Path("sheet.tsv").write_text("head\trelation\ttail\tlabel\na\tr\tb\tY\n")
    return tmp_path


def call(args: list[str]) -> None:
    result = CliRunner().invoke(cli, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception


@pytest.mark.parametrize(
    "args",
    [
        ["rank", "--graph", URL, "--scores", "s.npy", "-o", "o.parquet"],
        ["rank", *G, "--scores", URL + ".npy", "-o", "o.parquet"],
        ["rank", *G, "--scores", URL + ".npz", "-o", "o.parquet"],
        ["rank", *G, "--scores", URL, "-o", "o.parquet"],
        ["rank", *G, "--scores", "s.npy", "-o", URL + ".parquet"],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--write-run", URL],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--known", URL],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--entities", URL],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--candidates", URL],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--candidates", URL + ".npz"],
        ["rank", *G, "--scores", "s.npy", "-o", "o.parquet", "--type-constraints", URL],
        ["rank", *G, "--scores", URL + ".npz", "-o", "d", "--shard", "1/2"],
        ["rank", *G, "--scores", "s.npy", "-o", URL, "--shard", "1/2"],
        ["merge", URL, "-o", "o.parquet"],
        ["report", URL],
        ["compare", "a.parquet", URL],
        ["plot", "ties", URL, "-o", "x.svg"],
        ["plot", "ties", "a.parquet", "-o", URL + ".svg"],
        ["stratify", URL],
        ["openworld", "a.parquet", URL],
        ["stats", URL],
        ["demo", "--output", URL],
        ["batch", URL + ".toml"],
        ["eval", URL, "t.run"],
        ["eval", "t.qrels", URL],
        ["eval", "t.qrels", URL + ".gz"],
        ["align", "--matrix", URL + ".npy", "--pairs", "p", "-o", "o.parquet"],
        ["convert", *G, "--write-qrels", URL],
        ["judge", "check", URL],
        ["judge", "sheets", "sheet.tsv", "--annotators", "a", "-o", URL],
        ["judge", "sheets", URL, "--annotators", "a", "-o", "x"],
        ["sample", "g/test.txt", "--share", "0.5", "-o", URL],
        ["pool", *G, "--seed-triples", URL, "--depth", "1", "-o", "p", "t.run"],
    ],
    ids=" ".join,
)
def test_commands(home: Path, args: list[str]) -> None:
    before = sorted(home.rglob("*"))
    with pytest.raises(KgtrecError) as raised:
        call(args)
    assert str(raised.value).startswith("https://bucket/"), raised.value
    assert SAID in str(raised.value)
    new = [path for path in home.rglob("*") if path not in before]
    assert not [path for path in new if (home / "d") not in (path, *path.parents)]
    assert not [path for path in home.rglob("*") if path.name in ("https:", "s3:")]


@pytest.mark.parametrize("url", [URL, S3])
def test_what_only_this_machine_has(home: Path, url: str) -> None:
    questions = kgtrec.read_graph("g", progress=False).questions()
    with pytest.raises(FileError, match="beside it, in a folder of this machine; copy the sheet"):
        call(["judge", "serve", url])
    with pytest.raises(FileError, match="stored questions are mapped into memory; name a folder"):
        kgtrec.cluster.store_questions(questions, url)
    with pytest.raises(FileError, match=r"a work folder \(folder=\) are mapped into memory; name"):
        kgtrec.cluster.rank("s.npy", questions, folder=url)
    assert not [path for path in home.rglob("*") if path.name in ("https:", "s3:")]


def test_what_is_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("s3://b/x", "gs://b", "https://a.b/c.npy", "file:///x", "HDFS://h/x", "s3:/b/x"):
        assert is_url(url)
        assert str(FileError(Path(url), found="there is no such file", hint="x")).count("://") == 1
    for path in ("x", "a/b://c", "/a", "C:/x", "./s3:/x", "", "a:b", "x y://z"):
        assert not is_url(path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    assert not is_url("s3://b")  # a file that is there is a file
