"""`kgtrec rank --questions` and `--qrels`: ranks, runs, what is made of them, and mistakes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli

LINES = [
    {"id": "2p-0", "terms": {"structure": "2p"}, "answers": ["d1", "d3"], "known": ["d0"]},
    {"id": "2i-0", "terms": {"structure": "2i"}, "answers": ["d2"]},
]
QRELS = {"a": {"d0": 2, "d3": 1, "d4": 0}, "b": {"d1": 1}, "c": {"d4": 3}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    Path("labels.txt").write_text("".join(f"d{n}\n" for n in range(5)))
    np.save("two.npy", rng.normal(size=(2, 5)).astype(np.float32))
    vectors = {"queries": rng.normal(size=(2, 4)), "entities": rng.normal(size=(5, 4))}
    np.savez("v.npz", **{name: array.astype(np.float32) for name, array in vectors.items()})
    rows = [f"{q} 0 {d} {r}\n" for q, row in QRELS.items() for d, r in row.items()]
    Path("qrels.txt.gz").write_bytes(gzip.compress("".join(rows).encode()))
    Path("ids.txt").write_text("b\na\n")
    return tmp_path


def run(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(cli, [*words])
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return str(result.exception) if fails else result.output


ASK = ("rank", "--questions", "questions.jsonl", "--candidates", "labels.txt",
       "--scores", "two.npy", "-o", "r.parquet")  # fmt: skip
RELS = ("rank", "--qrels", "qrels.txt.gz", "--documents", "labels.txt", "--queries", "ids.txt",
        "--scores", "v.npz", "-o", "q.parquet")  # fmt: skip


def test_questions_are_ranked_reported_compared_drawn_and_shown(folder: Path) -> None:
    text = run(*ASK)
    assert "2 questions · 3 instances · 5 candidates" in text
    assert "Equally by structure" in text
    questions = kgtrec.Questions.from_answers("questions.jsonl", labels=[f"d{n}" for n in range(5)])
    expected = kgtrec.rank(np.load("two.npy"), questions)[0]
    expected.save("expected.parquet")
    assert Path("r.parquet").read_bytes() == Path("expected.parquet").read_bytes()
    np.save("other.npy", -np.load("two.npy"))
    run(*ASK[:-4], "--scores", "other.npy", "-o", "o.parquet")
    table = run("report", "r.parquet", "--by", "structure", "-m", "mrr", "--format", "csv")
    assert [row.split(",")[0] for row in table.splitlines()] == ["structure", "2i", "2p"]
    run("plot", "slices", "--by", "structure", "r.parquet", "o.parquet", "-o", "slices.svg")
    assert Path("slices.svg").stat().st_size
    run(*ASK, "--write-run", "r.run")
    run(*ASK[:-4], "--scores", "other.npy", "-o", "o.parquet", "--write-run", "o.run")
    runs = ("--run", "r.run", "--run", "o.run")
    run("report", "r.parquet", "o.parquet", "--html", "page.html", *runs)
    assert "2p-0" in run("changes", "r.parquet", "o.parquet", *runs)
    page = Path("page.html").read_text()
    assert '"structure 2i"' in page
    assert "<title>Ranking</title>" in page
    group = "group.mrr(structure)"
    assert group in run("compare", "r.parquet", "o.parquet", "-m", group)


def test_qrels_are_ranked_as_a_complete_run_is_evaluated(folder: Path) -> None:
    text = run(*RELS, "--write-run", "out.run")
    with np.load("v.npz") as arrays:
        scores = arrays["queries"] @ arrays["entities"].T
    complete = {
        query: {f"d{n}": float(score) for n, score in enumerate(row)}
        for query, row in zip("ba", scores, strict=True)
    }
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut.10"}).evaluate(complete)
    for name in ("map", "ndcg_cut_10"):
        mean = sum(each[name] for each in theirs.values()) / 2
        assert f"{mean:.4f}" in text
        assert f"{mean:.4f}" in run("report", "q.parquet", "-m", f"macro.{name}")
    assert len(Path("out.run").read_text().splitlines()) == 10
    assert kgtrec.Ranks.load("q.parquet").question_ids == ["b", "a", "a"]


@pytest.mark.parametrize("words", [ASK, RELS])
def test_shards_are_merged_to_the_same_file(folder: Path, words: tuple[str, ...]) -> None:
    run(*words)
    for number in (2, 1):
        run(*words[:-1], "shards", "--shard", f"{number}/2")
    run("merge", "shards", "-o", "merged")
    assert Path("merged").read_bytes() == Path(words[-1]).read_bytes()


@pytest.mark.parametrize(
    ("words", "files", "expected"),
    [
        (RELS, {"labels.txt": "d0\nd1\n"}, "labels.txt: 2 labels for 5 rows"),
        (RELS, {"labels.txt": "d0\nd1\nd1\nd3\nd4\n"}, "labels.txt:3: 'd1' again (line 2"),
        (RELS, {"labels.txt": "d0\nd1\nd2\nx\nd4\n"}, "'d3', which is not one of the 5 candidates"),
        (RELS, {"ids.txt": "a\n"}, "ids.txt: 1 labels for 2 rows"),
        (RELS, {"ids.txt": "a\nz\n"}, "question 'z' has no answers"),
        ((*RELS[:3], *RELS[5:]), {}, "--qrels needs --documents"),
        ((*RELS, "--graph", "."), {}, "give one of --graph DIR, --questions FILE and --qrels FILE"),
        ((*RELS, "--sides", "head"), {}, "--sides: does not go with --qrels"),
        ((*RELS, "--known-has-answers"), {}, "--known-has-answers: does not go with --qrels"),
        ((*ASK, "--level", "2"), {}, "--level: does not go with --questions"),
        (ASK, {"questions.jsonl": json.dumps(LINES[0])}, "two.npy: scores have 2 rows; expected 1"),
        (ASK, {"questions.jsonl": json.dumps(LINES[1] | {"answers": ["d9"]})},
         "questions.jsonl:1: question '2i-0' has the answer 'd9'"),
        (ASK, {"questions.jsonl": json.dumps(LINES[1] | {"answers": []})},
         "questions.jsonl:1: question '2i-0' has no answers"),
        ((*ASK[:3], *ASK[5:]), {}, "question '2p-0' has the answer 'd1'"),  # no column number
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence_and_nothing_is_written(
    folder: Path, words: tuple[str, ...], files: dict[str, str], expected: str
) -> None:
    for name, text in files.items():
        Path(name).write_text(text)
    message = run(*words, fails=True)
    assert expected in message
    assert "\n" not in message
    assert not list(folder.glob("*.parquet"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a 0 zz 1", ":6: question 'a' has the answer 'zz', which is not one of the 5 candidates"),
        ("a 0 d0 1", ":6: document 'd0' comes a second time under query 'a'"),
        ("d 0 d2 0\ne 0 d1 1", ":6: question 'd' has no answers; no document is judged 1 or more"),
    ],
)
def test_faults_of_qrels_name_their_line(folder: Path, line: str, found: str) -> None:
    text = gzip.decompress(Path("qrels.txt.gz").read_bytes()) + line.encode() + b"\n"
    Path("qrels.txt.gz").write_bytes(gzip.compress(text))
    if line.startswith("d "):
        Path("ids.txt").write_text("b\nd\n")
    assert run(*RELS, fails=True).startswith(f"qrels.txt.gz{found}")
    assert not Path("q.parquet").exists()


def test_a_query_that_qrels_lack_has_no_line(folder: Path) -> None:
    Path("ids.txt").write_text("b\nz\n")
    assert run(*RELS, fails=True).startswith("qrels.txt.gz: question 'z' has no answers")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("question_ids", [1, 2]),
        ("question_ids", "2p-0"),
        ("terms", {"structure": ["2i", None]}),
        ("terms", ["structure"]),
        ("questions", {"qrels": "file"}),
        ("questions", {"qrels": {"level": "two"}}),
    ],
)
def test_ranks_with_damaged_names_are_named(folder: Path, key: str, value: object) -> None:
    import pyarrow.parquet as pq

    run(*ASK)
    table = pq.read_table("r.parquet")
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"kgtrec.ranks"])
    header["manifest"][key] = value
    metadata[b"kgtrec.ranks"] = json.dumps(header).encode()
    pq.write_table(table.replace_schema_metadata(metadata), "r.parquet")
    for words in (("report", "r.parquet"), ("report", "r.parquet", "--html", "page.html")):
        assert run(*words, fails=True).startswith("r.parquet: a damaged description; name a file")


def test_ranks_without_a_row_are_named(folder: Path) -> None:
    run(*ASK)
    kgtrec.Ranks.load("r.parquet").subset(slice(0)).save("r.parquet")
    for words in (("report", "r.parquet"), ("plot", "ranks", "r.parquet", "-o", "x.svg")):
        text = run(*words, fails=True)
        assert text.startswith("r.parquet: ranks that cannot be: there is not one row; name a file")


def test_ranks_are_no_table(folder: Path) -> None:
    text = run(*ASK[:-1], "r.csv", fails=True)
    assert text.startswith("-o r.csv: ranks are written as Parquet; name a .parquet file")
    assert not Path("r.csv").exists()
