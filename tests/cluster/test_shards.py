"""A ranking as a job array: the bytes of one piece, or one sentence that names the fault."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
from pathlib import Path

import click
import numpy as np
import pytest
from object_store import call
from question_cases import rewrite_as_openke
from slow import slow_after

import kgtrec
from kgtrec.cluster import content_hash
from kgtrec.cluster.shards import rank_shard, shard_name
from kgtrec.errors import FileError, KgtrecError
from kgtrec.ranking.partial import read_about, read_parts, write_parts

N = 60  # entities
OUTPUTS = ("o.parquet", "o.run", "o.qrels")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a graph ``g`` and scores ``m.npz``, ``s.npy``."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    os.mkdir("g")
    for split, rows in (("train", 150), ("valid", 20), ("test", 40)):
        triples = [*rng.integers(0, (N, 3, N), (rows, 3)), *([i, 0, i] for i in range(N))]
        triples = triples if split == "train" else triples[:rows]
        text = "".join(f"e {h:02}\tr{r}\te {t:02}\n" for h, r, t in triples)
        Path("g", f"{split}.txt").write_text(text)
    save_scores(1)


def shard(which: str, *more: str, scores: str = "m.npz", into: str = "d") -> str:
    return call("rank", "--graph", "g", "--scores", scores, "--shard", which, "-o", into, *more)


def shards(count: int, *more: str, scores: str = "m.npz", into: str = "d") -> None:
    for number in range(1, count + 1):
        shard(f"{number}/{count}", *more, scores=scores, into=into)


def merged(into: str = "d", *more: str) -> list[bytes]:
    """Bytes of ranks, run and qrels."""
    return written("merge", into, *more)


def local(*more: str, scores: str = "m.npz", depth: str = "30") -> list[bytes]:
    return written("rank", "--graph", "g", "--scores", scores, "--run-depth", depth, *more)


def written(*command: str) -> list[bytes]:
    call(*command, "-o", OUTPUTS[0], "--write-run", OUTPUTS[1], "--write-qrels", OUTPUTS[2])
    contents = [Path(name).read_bytes() for name in OUTPUTS]
    for name in OUTPUTS:
        os.unlink(name)
    return contents


def refuses(*args: str) -> str:
    """One sentence, and no file written or left."""
    with pytest.raises(KgtrecError) as raised:
        call(*args)
    assert not [name for name in OUTPUTS if Path(name).exists()]
    assert not list(Path().rglob(".kgtrec-*"))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def save_scores(seed: int) -> None:
    """A model, and its scores as a matrix of whole numbers, with ties."""
    rng = np.random.default_rng(seed)
    n = len(kgtrec.read_graph("g", progress=False).questions())
    queries = rng.integers(-3, 3, (n, 4)).astype(np.float32)
    entities = rng.integers(-3, 3, (N, 4)).astype(np.float32)
    np.savez("m.npz", queries=queries, entities=entities)
    np.save("s.npy", queries @ entities.T)


@pytest.mark.parametrize(
    ("scores", "by", "count"),
    slow_after(
        2,
        [
            ("m.npz", "entities", 3),
            ("s.npy", "auto", 3),
            ("m.npz", "auto", 16),
            ("s.npy", "entities", 16),
            ("s.npy", "questions", 1),
        ],
    ),
)
def test_merged_shards_are_the_bytes_of_one_piece(scores, by, count) -> None:
    shards(count, "--shard-by", by, "--run-depth", "30", scores=scores)
    assert merged() == local(scores=scores)


def test_other_ways_to_ask() -> None:
    Path("more.txt").write_text("e 01\tr1\te 02\n")
    Path("some.txt").write_text("r1\nr2\n")
    scores = np.load("s.npy")
    np.save("tail.npy", scores[: len(kgtrec.read_graph("g").questions(sides="tail"))])
    scores[3, 5:9] = np.nan
    np.save("nan.npy", scores)
    for into, how, path in (
        ("d1", "--filter raw --sides tail --relations some.txt", "tail.npy"),
        ("d2", "--known more.txt --lower-is-better --nan worst", "nan.npy"),
    ):
        shards(2, *how.split(), "--run-depth", "30", scores=path, into=into)
        assert merged(into) == local(*how.split(), scores=path)
    said = refuses("rank", "--graph", "g", "--scores", "nan.npy", "--shard", "1/3", "-o", "e")
    assert said.startswith("nan.npy: scores: NaN for question head3 (?, r")
    assert "id 5) and 3 more of its candidates; fix the model" in said


def test_shards_keep_the_order_of_columns_that_the_graph_declares() -> None:
    """Ranks record it, for files of triples that reports read beside them."""
    for path in Path("g").glob("*.txt"):
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        if all(len(row) == 3 for row in rows):
            path.write_text("".join(f"{head}\t{tail}\t{name}\n" for head, name, tail in rows))
    how = ("rank", "--graph", "tsv,htr:g", "--scores", "m.npz", "--run-depth", "30")
    for which in ("1/2", "2/2"):
        call(*how, "--shard", which, "-o", "d")
    assert merged() == written(*how)


def test_a_folder_whose_name_is_no_utf8() -> None:
    expected = local()
    shards(2, "--run-depth", "30", into="\udcff")
    assert merged("\udcff") == expected
    assert merged(f"file://{os.getcwd()}/%FF") == expected


def test_the_depth_that_shards_keep() -> None:
    shards(2)  # 20 for the check of trec_eval's measures, as in one piece
    assert merged() == local(depth="20")
    assert merged("d", "--run-depth", "7") == local(depth="7")
    said = shard("1/1", "--run-depth", "7", into="few")
    assert said.endswith("a run of 7, give --run-depth 7 to `kgtrec merge`, too\n")
    assert merged("few", "--run-depth", "7") == local(depth="7")


def test_shards_do_not_depend_on_memory_threads_or_the_clock() -> None:
    shard("2/3")
    first = Path("d/shard-2-of-3.arrow").read_bytes()
    os.unlink("d/shard-2-of-3.arrow")
    os.utime("m.npz", (10**9, 10**9))  # the clock was set back
    os.utime("g/train.txt", (0, 0))
    shard("2/3", "--threads", "1", "--memory", "1GB")
    assert Path("d/shard-2-of-3.arrow").read_bytes() == first


def test_the_graph_is_read_once_and_not_to_merge() -> None:
    expected = local()
    shard("1/2", "--plan", "--run-depth", "30")
    assert [path.name[:10] for path in Path("d").iterdir()] == ["questions-"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgtrec.graph.readers.fields.load_facts", None)
        shards(2, "--run-depth", "30")
    shutil.rmtree("g")
    os.unlink("m.npz")
    assert merged() == expected


def test_what_is_said() -> None:
    said = shard("1/2")
    assert "kgtrec: shard 1/2 by questions: " in said
    assert "as measured" in said
    assert said.endswith("kgtrec: wrote d/shard-1-of-2.arrow\n")
    assert shard("1/2") == ("kgtrec: shard 1/2 is complete and has these inputs; kept\n")
    assert shard("2/2", "-q") == ""


def test_missing_and_doubled_shards_are_named() -> None:
    shards(9)
    for number in (2, 3, 4, 9):
        os.unlink(f"d/shard-{number}-of-9.arrow")
    shutil.copy("d/shard-1-of-9.arrow", "d/shard-1-of-9 (copy).arrow")
    said = refuses("merge", "d", "-o", "o.parquet")
    assert "shards 2-4, 9 of 9 missing" in said
    assert "shard-1-of-9.arrow and shard-1-of-9 (copy).arrow are both shard 1" in said
    assert "rank these shards again" in said


def test_every_changed_byte_is_noticed() -> None:
    """Padding too: the digest covers all bytes, and is compared before anything is decoded."""
    shards(2)
    path = Path("d/shard-1-of-2.arrow")
    sound = path.read_bytes()
    places = [*range(40), *range(40, len(sound), 61), *range(len(sound) - 40, len(sound))]
    cuts = [sound[:keep] for keep in (0, 100, -1)]
    flips = (sound[:at] + bytes([sound[at] ^ 255]) + sound[at + 1 :] for at in places)
    for content in (*cuts, *flips):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"its hash is wrong|not a shard of a rank|incomplete"):
            read_about(path)
        with pytest.raises(FileError):
            next(read_parts(path))
    said = refuses("merge", "d", "-o", "o.parquet")
    assert "shard-1-of-2.arrow is damaged or incomplete" in said
    assert "missing" not in said
    assert "damaged or incomplete, so it is ranked again" in shard("1/2")
    assert path.read_bytes() == sound


def test_any_arrow_tool_reads_a_shard() -> None:
    import pyarrow as pa

    shards(1, "--run-depth", "30", scores="s.npy")
    with pa.OSFile("d/shard-1-of-1.arrow") as file:
        table = pa.ipc.open_stream(file).read_all()
    parts = list(read_parts("d/shard-1-of-1.arrow"))
    assert table["stop_row"].to_pylist() == [part.task.stop_row for part in parts]
    for name in ("counts", "answer_nan", "lengths", "documents", "scores"):
        values = [getattr(part, name).reshape(-1).tolist() for part in parts]
        assert table[name].to_pylist() == values


FORGED = {
    "counts": lambda part: part.counts[:, 1:],
    "answer_nan": lambda part: part.answer_nan[1:],
    "lengths": lambda part: -part.lengths,
    "documents": lambda part: part.documents[:-1],
    "scores": lambda part: part.scores[:-1],
    "dtype": lambda part: "float64",
    "task": lambda part: dataclasses.replace(part.task, first_row=part.task.stop_row),
}


def test_parts_that_cannot_be_are_refused_whatever_their_digest() -> None:
    shards(2)
    path = Path("d/shard-1-of-2.arrow")
    about, (part, *more) = read_about(path), read_parts(path)
    for field, forge in FORGED.items():
        forged = dataclasses.replace(part, **{field: forge(part)})
        write_parts(path, about, [forged, *more] if field != "dtype" else [forged])
        with pytest.raises(FileError, match="damaged or incomplete"):
            list(read_parts(path))
        refuses("merge", "d", "-o", "o.parquet")


def test_a_merge_that_fails_late_leaves_no_file() -> None:
    """Forged counts pass the checks of shards; the metrics notice them."""
    shards(1)
    path = Path("d/shard-1-of-1.arrow")
    about, parts = read_about(path), list(read_parts(path))
    write_parts(path, about, [dataclasses.replace(p, counts=p.counts + 10**6) for p in parts])
    names = ("o.parquet", "o.run", "o.qrels")
    outputs = ("-o", "o.parquet", "--write-run", "o.run", "--write-qrels", "o.qrels")
    refuses("merge", "d", *outputs)
    assert not any(map(os.path.exists, names))
    for name in names:
        Path(name).write_text("earlier")
    with pytest.raises(KgtrecError):
        call("merge", "d", *outputs)
    assert [Path(name).read_text() for name in names] == ["earlier"] * 3


@pytest.mark.parametrize("name", ["..", ".", "../d", "/tmp", ""])
def test_a_shard_names_questions_in_its_own_folder_only(name: str) -> None:
    shards(1)
    path = Path("d/shard-1-of-1.arrow")
    write_parts(path, {**read_about(path), "questions": name}, read_parts(path))
    said = refuses("merge", "d", "-o", "o.parquet")
    assert "leads out of its folder" in said or "its content is impossible" in said


def test_stored_questions_name_files_in_their_own_folder_only(tmp_path: Path) -> None:
    shards(1)
    (store,) = Path("d").glob("questions-*")
    description = content_hash.read_json(store / "meta.json")
    (tmp_path / "outside.npy").write_bytes((store / "answers_ids.npy").read_bytes())
    for name in (f"{tmp_path}/outside", "../../outside"):
        forged = json.loads(json.dumps(description).replace("answers_ids", name))
        content_hash.write_json(store / "meta.json", forged)
        said = refuses("merge", "d", "-o", "o.parquet")
        assert said.startswith(f"{store}/meta.json: it has a name that leads out of its folder")


@pytest.mark.parametrize("what", ["m.npz", "s.npy", "g/valid.txt", "known.txt", "g/entity2id.txt"])
def test_inputs_that_change_between_shards_are_noticed(what: str) -> None:
    """In OpenKE's format numbers stay; their meaning is in a file that no option names."""
    if what == "g/entity2id.txt":
        rewrite_as_openke(Path("g"))
    scores = "s.npy" if what == "s.npy" else "m.npz"
    Path("known.txt").write_text("e 01\tr1\te 02\n")
    how = ("--known", "known.txt")
    shard("1/3", *how, scores=scores)
    shard("2/3", *how, scores=scores)
    path = Path(what)
    before = path.stat()
    if what == scores:
        save_scores(2)
    else:
        text = path.read_text()
        swapped = text.replace("e 01", "?").replace("e 03", "e 01").replace("?", "e 03")
        assert swapped != text
        path.write_text(swapped)
        assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if never touched
    rank = ("rank", "--graph", "g", "--scores", scores, *how)
    said = refuses(*rank, "--shard", "2/3", "-o", "d")
    start = "d/shard-2-of-3.arrow: the shard exists and belongs to another ranking (other "
    assert said.startswith(start)
    shard("3/3", *how, scores=scores)
    said = refuses("merge", "d", "-o", "o.parquet")
    other = "scores" if what == scores else "graph, split or filter"
    assert "shard-3-of-3.arrow and shard-1-of-3.arrow are from different rankings" in said
    assert f"other {other}" in said


def test_scores_that_change_while_they_are_ranked(monkeypatch) -> None:
    def meddle(shard, plan):
        save_scores(9)
        rank_shard(shard, plan)

    monkeypatch.setattr("kgtrec.cluster.shards.rank_shard", meddle)
    said = refuses("rank", "--graph", "g", "--scores", "s.npy", "--shard", "1/2", "-o", "d")
    assert said == (
        "s.npy: the scores changed while this shard was ranked; "
        "rank it again when nothing writes to them"
    )


def test_a_large_matrix_is_known_by_samples_and_its_time(monkeypatch) -> None:
    monkeypatch.setattr(content_hash, "MOST_HASHED_WHOLE", 1000)
    assert "s.npy is over 1 GiB, so kgtrec checks only its size" in shard("1/2", scores="s.npy")
    assert "over 1 GiB" not in shard("1/2", scores="m.npz", into="other")
    shards(2, scores="s.npy")
    expected = merged()
    shutil.copy2("s.npy", "copy.npy")
    os.replace("copy.npy", "s.npy")
    os.unlink("d/shard-1-of-2.arrow")
    shard("1/2", scores="s.npy")
    assert merged() == expected
    os.unlink("d/shard-1-of-2.arrow")
    os.utime("s.npy", ns=(0, 12345))
    shard("1/2", scores="s.npy")
    assert "other scores" in refuses("merge", "d", "-o", "o.parquet")


def test_a_damaged_store_is_named() -> None:
    shards(2)
    (store,) = Path("d").glob("questions-*")
    path = store / "answers_ids.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-4] + bytes(4))
    said = refuses("merge", "d", "-o", "o.parquet")
    assert said.startswith(f"{path}: a damaged file: its hash differs; remove this folder")
    shutil.rmtree(store)
    assert "meta.json: No such file" in refuses("merge", "d", "-o", "o.parquet")
    shard("1/2")  # which writes it again
    assert merged()


def test_a_file_that_may_not_grow() -> None:
    shard("1/2", "--plan")  # the store is written
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(FileError) as raised:
            shard("1/2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "d/shard-1-of-2.arrow: cannot be written (File too large)" in str(raised.value)
    assert {path.name[:10] for path in Path("d").iterdir()} == {"questions-"}
    shards(2, "--run-depth", "30")
    assert merged() == local()


def test_a_terminated_shard_leaves_nothing() -> None:
    """It has its name only once it is whole, so files of killed ones disturb nothing."""

    def stop(*_: object) -> None:
        names = sorted(path.name[:8] for path in Path("d").iterdir())
        assert names == [".kgtrec-", "question"]
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgtrec.cluster.shards.rank_block", stop)
        with pytest.raises(click.exceptions.Abort):
            shard("1/2")
    assert {path.name[:10] for path in Path("d").iterdir()} == {"questions-"}
    Path("d/.kgtrec-0123.arrow").write_bytes(b"half")
    shards(2)
    assert merged() == local(depth="20")


def test_folders_under_other_names_are_known() -> None:
    """tests/golden/cli/shards.txt has the other wrong calls."""
    url = f"file://{os.getcwd()}"
    shard = ("rank", "--scores", "m.npz", "--shard", "1/2")
    assert "the folder of the scores" in refuses(*shard, "--graph", "g", "-o", url)
    assert "the graph's folder" in refuses(*shard, "--graph", f"tsv:{url}/g", "-o", "g")
    shards(2, into="e")
    for names in ((f"{url}/e", "e/shard-1-of-2.arrow"), ("e", f"{url}/e/shard-1-of-2.arrow")):
        assert "would overwrite" in refuses("merge", names[0], "-o", names[1])


def test_names_sort_by_number() -> None:
    names = [shard_name(number, 120) for number in range(1, 121)]
    assert names == sorted(names)
    assert names[6] == "shard-007-of-120.arrow"
