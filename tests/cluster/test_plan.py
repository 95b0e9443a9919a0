"""Parts of a ranking: the bytes of one pass, in little memory, from checked files.

test_refusals.txt has what does not fit.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from question_cases import FACTOR_METRICS, N, factor_dims, random_questions, run_lists, some_scores
from slow import slow_after, slow_but
from strategies import RankCase, rank_cases

import kgtrec
from kgtrec.cluster import content_hash
from kgtrec.cluster.content_hash import describe_files
from kgtrec.cluster.inputs import build_inputs
from kgtrec.cluster.parts import (
    Inputs,
    answer_scores,
    join_parts,
    merge_parts,
    rank_block,
    rank_part,
)
from kgtrec.cluster.plan import PartFiles, Plan, _most_rows, format_bytes, make_plan, memory_bytes
from kgtrec.cluster.question_store import Store, read_rows, save_questions
from kgtrec.cluster.score_files import describe_scores
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking.partial import Task
from kgtrec.ranking.settings import Settings
from kgtrec.scores.sources import load_scores, select_rows

Spans = list[tuple[int, int]]


@st.composite
def spans(draw: st.DrawFn, size: int) -> Spans:
    """A range of numbers from 0, cut anywhere."""
    cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=4))) if size > 1 else []
    return list(pairwise([0, *cuts, size]))


def same_as_local(
    inputs: Inputs, blocks: Spans, ranges: Spans, local: tuple[kgtrec.Ranks, kgtrec.Run]
) -> None:
    """Blocks in reverse order, each by `rank_block`, and all contents of their files."""
    ranks, run = join_parts([rank_block(rows, ranges, inputs) for rows in blocks[::-1]], inputs)
    assert ranks.manifest == local[0].manifest
    for name in ranks.column_names:
        np.testing.assert_array_equal(getattr(ranks, name), getattr(local[0], name), name)
    assert run_lists(run) == run_lists(local[1])
    assert run.scores.tobytes() == local[1].scores.tobytes()
    assert (run.depth, list(run.query_ids)) == (local[1].depth, list(local[1].query_ids))


@given(case=rank_cases(), data=st.data())
@examples(0.5)
def test_every_partition_of_a_matrix_gives_the_bytes_of_one_pass(case: RankCase, data) -> None:
    questions, options = case.graph.questions(), case.options()
    blocks = data.draw(spans(len(case.scores)))
    ranges = data.draw(spans(case.graph.n_entities))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.npy"
        np.save(path, case.source())  # keeps byte order, and Fortran's layout
        inputs = build_inputs(str(path), questions, folder, Settings(threads=1, **options))
        try:
            local = kgtrec.rank(np.load(path), questions, **options)
        except InputError as error:
            with pytest.raises(InputError, match="NaN for question") as raised:
                join_parts([rank_block(rows, ranges, inputs) for rows in blocks], inputs)
            named = str(error).partition("NaN for ")[2].partition(" (")[0]
            if len(blocks) == 1 and len(ranges) == 1:
                assert f"NaN for {named}" in str(raised.value)
            return
        same_as_local(inputs, blocks, ranges, local)


@given(
    seed=st.integers(0, 10**6),
    data=st.data(),
    metric=st.sampled_from(FACTOR_METRICS),
    dtypes=st.tuples(*[st.sampled_from(["f2", "f4", "f8", ">f4"])] * 3),
    rows=st.sampled_from(["questions", "instances"]),
    packed=st.booleans(),
    spoilt=st.booleans(),
)
@examples(0.5)
def test_every_partition_of_factors_gives_the_bytes_of_one_pass(
    seed, data, metric, dtypes, rows, packed, spoilt
) -> None:
    rng = np.random.default_rng(seed)
    questions = random_questions(rng)
    n_rows = len(questions) if rows == "questions" else questions.n_instances
    of_query, of_entity = factor_dims(metric, 3)
    queries, entities, bias = (
        rng.normal(size=size).astype(dtype)
        for size, dtype in zip([(n_rows, of_query), (N, of_entity), (N,)], dtypes, strict=True)
    )
    entities[rng.integers(0, N, 6)] = entities[3]  # equal vectors tie
    bias[:] = np.round(bias)
    if spoilt:
        queries[rng.integers(n_rows)] = np.nan
        bias[rng.integers(N)] = np.nan
    arrays = {"queries": queries, "entities": entities, "metric": metric}
    if data.draw(st.booleans()):
        arrays["bias"] = bias
    options = {"run_depth": data.draw(st.integers(0, N + 1)), "rows": rows, "nan": "worst"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.npz"
        (np.savez_compressed if packed else np.savez)(path, **arrays)
        inputs = build_inputs(str(path), questions, folder, Settings(threads=1, **options))
        local = kgtrec.rank(str(path), questions, **options)
        same_as_local(inputs, data.draw(spans(n_rows)), data.draw(spans(N)), local)


def test_scores_in_several_files_with_rows_of_the_whole_split(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N))
    (tmp_path / "s").mkdir()
    for number, part in enumerate(np.array_split(scores, 11)):  # 10.npy comes after 2.npy
        np.save(tmp_path / "s" / f"{number}.npy", part)
    some = questions.graph.questions(relations=[1])
    assert len(some) < len(questions)
    for subset in (questions, some):
        inputs = build_inputs(str(tmp_path / "s"), subset, tmp_path / "w", Settings(4, threads=1))
        local = kgtrec.rank(str(tmp_path / "s"), subset, run_depth=4)
        blocks = [(0, 3), (3, len(subset))]
        same_as_local(inputs, blocks, [(0, 9), (9, N)], local)


def test_blocks_that_are_handed_over(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    questions = random_questions(rng)
    scores = some_scores(rng, (len(questions), N)).astype(np.float16)
    inputs = build_inputs(None, questions, tmp_path, Settings(4, threads=1, higher_is_better=False))
    parts = []
    for rows in ((0, 5), (5, len(questions))):
        tasks = [Task(*rows, 0, 10), Task(*rows, 10, N)]
        blocks = [scores[slice(*rows), slice(*task.entities)] for task in tasks]
        pairs = list(zip(tasks, blocks, strict=True))
        values = np.sum([answer_scores(task, inputs, block) for task, block in pairs], axis=0)
        parts.append(
            merge_parts([rank_part(task, inputs, values, block) for task, block in pairs], inputs)
        )
    local = kgtrec.rank(scores, questions, run_depth=4, higher_is_better=False)
    assert run_lists(join_parts(parts, inputs)[1]) == run_lists(local[1])
    assert (join_parts(parts, inputs)[0].greater == local[0].greater).all()


def test_stored_questions_are_the_questions(tmp_path: Path) -> None:
    questions = random_questions(np.random.default_rng(1))
    folder = save_questions(questions, "questions", tmp_path)
    assert save_questions(questions, "questions", tmp_path) == folder
    assert save_questions(questions, "instances", tmp_path) != folder
    again = Store(folder, verify=True).questions()
    del vars(again)["fingerprint"], vars(again.graph)["fingerprint"]  # computed from the arrays
    assert again.describe() == questions.describe()
    assert again.fingerprint == questions.fingerprint
    assert not list(tmp_path.glob(".*"))


def test_a_ctrl_c_while_a_store_is_waited_for_is_not_passed_over(tmp_path, monkeypatch) -> None:
    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgtrec.cluster.question_store.sync_folder", interrupted)
    questions = random_questions(np.random.default_rng(0))
    with pytest.raises(KeyboardInterrupt):
        save_questions(questions, "questions", tmp_path)
    assert [path.name[:10] for path in tmp_path.iterdir()] == ["questions-"]  # whole by then


def test_gathered_rows_are_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=(70_000, 3)).astype("f4")
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for ids in (rng.integers(0, 70_000, 50), np.arange(70_000)[::-1], np.array([], int), [7, 7]):
        np.testing.assert_array_equal(read_rows(mapped, np.asarray(ids, int)), array[ids])
    os.truncate(tmp_path / "a.npy", 500_000)
    with pytest.raises(FileError, match="it was cut short"):
        read_rows(mapped, np.array([3, 69_999]))


def big_inputs(folder: Path, n: int, n_triples: int, depth: int = 20, dim: int = 40) -> Inputs:
    rng = np.random.default_rng(n)
    test, train = (
        np.stack([rng.integers(0, n, k), rng.integers(0, 4, k), rng.integers(0, n, k)], 1)
        for k in (n_triples, 3 * n_triples)
    )
    questions = kgtrec.Graph.from_arrays(train=train, test=test, n_entities=n).questions()
    np.savez(
        folder / "m.npz",
        queries=rng.normal(size=(len(questions), dim)).astype(np.float32),
        entities=rng.normal(size=(n, dim)).astype(np.float32),
    )
    return build_inputs(str(folder / "m.npz"), questions, folder, Settings(depth, threads=1))


@pytest.mark.parametrize(
    ("memory", "workers", "depth"),
    slow_but(
        [("80MB", 3, 1000), ("150MB", 1, 0), ("2GB", 3, 0)],
        product(["80MB", "150MB", "2GB"], [1, 3], [0, 1000]),
    ),
)
def test_a_plan_covers_all_rows_and_entities_once(tmp_path, memory, workers, depth) -> None:
    inputs = big_inputs(tmp_path, 150_000, 3000, depth)
    plan = make_plan(inputs, memory, workers, calibrate=False)
    for parts, end in ((plan.blocks, inputs.store().n_rows), (plan.ranges, 150_000)):
        assert (parts[0][0], parts[-1][1]) == (0, end)
        assert all(one[1] == other[0] for one, other in pairwise(parts))
        assert all(start < stop for start, stop in parts)
    assert plan.task_bytes <= memory_bytes(memory)
    assert workers == 1 or len(plan.blocks) >= 4 * workers
    assert len(plan.ranges) > 1 or memory != "80MB"
    some = make_plan(inputs, memory, rows=(7, 99), entities=(3, 5000), calibrate=False)
    assert (some.blocks[0][0], some.blocks[-1][1]) == (7, 99)
    assert (some.ranges[0][0], some.ranges[-1][1]) == (3, 5000)


def test_a_plan_says_what_is_coming(tmp_path: Path) -> None:
    plan = make_plan(big_inputs(tmp_path, 5000, 300), "1GB", 2)
    assert plan.speed is not None
    assert plan.speed > 1e5
    assert plan.seconds == pytest.approx(plan.n_rows * 5000 / plan.speed / 2)
    text = str(plan)
    for word in (f"{plan.n_rows:,} rows x 5,000 entities", "of 1.0 GB per worker", "as measured"):
        assert word in text
    assert "about" not in str(Plan(plan.blocks, plan.ranges, 1, 2))
    questions = random_questions(np.random.default_rng(1))
    scores = np.full((len(questions), N), np.nan, "f4")  # which does not stop the measuring
    assert make_plan(build_inputs(scores, questions, tmp_path)).speed is not None


def test_too_little_memory_is_one_sentence(tmp_path: Path) -> None:
    inputs = big_inputs(tmp_path, 5000, 300)
    with pytest.raises(UsageError, match=r"too low.*allow more, as in memory='[0-9]+MB'"):
        make_plan(inputs, "50MB", calibrate=False)
    deep = Inputs(inputs.folder, inputs.files, Settings(5000, threads=1))
    plan = make_plan(deep, "250MB", calibrate=False)
    assert plan.task_bytes <= 250e6
    assert len(plan.blocks) > len(make_plan(inputs, "250MB", calibrate=False).blocks)


def test_sizes_of_memory() -> None:
    sizes = {"2GB": 2 * 10**9, "512MiB": 512 << 20, "1.5g": 1.5e9, "700 MB": 7e8, 12345: 12345}
    assert {text: memory_bytes(text) for text in sizes} == sizes
    assert format_bytes(2.04e9) == "2.0 GB"


IMPORTED = 42 << 20
"""What Python, numpy and this package take where plans were fitted; elsewhere it may be another."""

_MEASURE = """
import pickle, sys
from kgtrec.cluster.parts import rank_block
from kgtrec.cluster.plan import make_plan
inputs, memory = pickle.load(sys.stdin.buffer)
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
imported = peak()
plan = make_plan(inputs, memory, calibrate=False)
for rows in plan.blocks:
    rank_block(rows, plan.ranges, inputs)
print(peak() - imported, plan.task_bytes, len(plan.ranges))
"""


def matrix_inputs(folder: Path, dtype: str, **options: float) -> Inputs:
    """24 million scores."""
    rng = np.random.default_rng(7)
    triples = np.stack([rng.integers(0, n, 3000) for n in (8000, 4, 8000)], axis=1)
    questions = kgtrec.Graph.from_arrays(test=triples, n_entities=8000).questions("test", "tail")
    np.save(folder / "s.npy", rng.normal(size=(len(questions), 8000)).astype(dtype))
    return build_inputs(
        str(folder / "s.npy"), questions, folder, Settings(20, threads=1, **options)
    )


def filter_inputs(folder: Path) -> Inputs:
    """Questions of 2,000 known answers and more."""
    rng = np.random.default_rng(8)
    train, test = (
        np.stack([rng.integers(0, n, k) for n in (100, 2, 20_000)], axis=1) for k in (500_000, 1000)
    )
    questions = kgtrec.Graph.from_arrays(train=train, test=test).questions("test")
    vectors = [rng.normal(size=(n, 20)).astype("f4") for n in (len(questions), 20_000)]
    return build_inputs(kgtrec.Factors(*vectors), questions, folder, Settings(20, threads=1))


TASKS: dict[str, tuple[Callable[[Path], Inputs], str]] = {
    "factors": (lambda folder: big_inputs(folder, 20_000, 3000, dim=60), "2GB"),
    "ranges": (lambda folder: big_inputs(folder, 300_000, 2000, dim=60), "100MB"),
    "best 1000": (lambda folder: big_inputs(folder, 20_000, 2000, 1000, dim=8), "2GB"),
    "float16": (lambda folder: matrix_inputs(folder, "f2"), "2GB"),
    "close scores": (lambda folder: matrix_inputs(folder, "f4", atol=0.1), "2GB"),
    "filters": (filter_inputs, "2GB"),
}


@pytest.mark.memory
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kind", slow_after(1, TASKS))
def test_a_plan_is_a_little_above_the_memory_that_tasks_take(tmp_path: Path, kind: str) -> None:
    make, memory = TASKS[kind]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE],
        cwd=tmp_path,  # not the checkout: the installed package runs
        input=pickle.dumps((make(tmp_path), memory)),
        capture_output=True,
        check=True,
    )
    taken, planned, ranges = map(int, done.stdout.split())
    peak = IMPORTED + taken
    assert planned <= memory_bytes(memory)
    assert 1.05 * peak < planned < 1.35 * peak
    assert (ranges > 1) == (kind == "ranges")


def test_blocks_of_many_jobs_are_larger_on_many_workers(tmp_path: Path) -> None:
    """As large as the scheduler needs, but not if a job has the workers to itself."""
    inputs = big_inputs(tmp_path, 400_000, 5_000, dim=2)
    plans = [make_plan(inputs, workers=512, jobs=n, calibrate=False) for n in (1, 8, 1000)]
    sizes = [plan.blocks[0][1] - plan.blocks[0][0] for plan in plans]
    n_rows = plans[0].n_rows
    assert sizes == [64, n_rows * 7 // 512, 512 * 2_000_000 // 400_000]
    same = [make_plan(inputs, workers=4, jobs=n, calibrate=False).blocks for n in (1, 8)]
    assert same[0] == same[1]


@given(st.integers(1, 10**8), st.integers(2, 2000))
def test_blocks_become_smaller_towards_the_end(n_rows: int, workers: int) -> None:
    """If shares are larger than a tile and smaller than the largest block."""
    sizes, left = [], n_rows
    while left and len(sizes) < 1000:
        sizes.append(min(left, _most_rows(n_rows, left, workers)))
        left -= sizes[-1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= max(64, min(1 << 14, -(-n_rows // (4 * workers))))


MORE = 40


@pytest.fixture
def questions() -> kgtrec.Questions:
    return random_questions(np.random.default_rng(5), MORE)


@pytest.fixture
def scores(questions: kgtrec.Questions) -> np.ndarray:
    return some_scores(np.random.default_rng(6), (len(questions), MORE))


@pytest.fixture
def inputs(questions: kgtrec.Questions, scores: np.ndarray, tmp_path: Path) -> Inputs:
    return build_inputs(scores, questions, tmp_path / "work", Settings(threads=1))


def flip(path: Path, at: int = -1) -> None:
    """One bit of the last byte, or of another one."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def ranked(inputs: Inputs) -> kgtrec.Ranks:
    store = inputs.store()
    return join_parts([rank_block((0, store.n_rows), [(0, store.n_labels)], inputs)], inputs)[0]


def test_every_file_of_a_store_is_checked_before_it_is_used_again(
    questions: kgtrec.Questions, inputs: Inputs, tmp_path: Path
) -> None:
    store = Path(inputs.folder)
    names = sorted(path.name for path in store.iterdir())
    assert "known_ids.npy" in names
    for name in names:
        whole = (store / name).read_bytes()
        flip(store / name)
        with pytest.raises(FileError, match=f"{name}.*damaged"):
            save_questions(questions, "questions", tmp_path / "work")
        (store / name).write_bytes(whole)
    assert save_questions(questions, "questions", tmp_path / "work") == store


def test_chosen_rows_are_written_again(questions, scores, tmp_path) -> None:
    part = questions.graph.questions(relations=[0, 1])
    first = build_inputs(scores, part, tmp_path)
    expected, chosen = ranked(first), Path(first.files.selection)
    whole = chosen.read_bytes()
    for damage in (
        lambda: flip(chosen, -8),
        chosen.unlink,
        lambda: chosen.write_bytes(whole[:20]),
        lambda: chosen.write_bytes(b""),
    ):
        damage()
        again = ranked(build_inputs(scores, part, tmp_path))
        assert chosen.read_bytes() == whole
        assert (again.greater == expected.greater).all()


def test_what_was_written_to_a_copy_on_write_map_is_ranked(questions, scores, tmp_path) -> None:
    np.save(tmp_path / "s.npy", scores)
    mapped = np.load(tmp_path / "s.npy", mmap_mode="c")
    mapped *= -1
    got = ranked(build_inputs(mapped, questions, tmp_path))
    assert (got.greater == kgtrec.rank(-scores, questions)[0].greater).all()


def test_an_unpacked_model_is_unpacked_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"queries": rng.random((9, 3)), "entities": rng.random((MORE, 3))}
    np.savez_compressed(tmp_path / "c.npz", **arrays)
    files = describe_scores(tmp_path / "c.npz", tmp_path)
    for damage in (flip, lambda path: path.write_bytes(b"short")):
        damage(Path(files.entities.path))
        again = describe_scores(tmp_path / "c.npz", tmp_path)
        for name, array in arrays.items():
            assert (getattr(again, name).open() == array).all()


def test_shards_of_mixed_byte_order_are_equal(tmp_path: Path) -> None:
    """`kgtrec.rank` always accepted them; parts and chosen rows refused their type."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, (10, 4)).astype("f4")
    np.save(tmp_path / "1.npy", scores[:6])
    np.save(tmp_path / "2.npy", scores[6:].astype(">f4"))
    files = describe_scores(tmp_path, tmp_path)
    np.testing.assert_array_equal(files.block(0, 10, slice(None)), scores)
    np.testing.assert_array_equal(files.block(7, 9, slice(1, 3)), scores[7:9, 1:3])
    rows, columns = np.arange(10), rng.integers(0, 4, 10)
    np.testing.assert_array_equal(files.elements(rows, columns), scores[rows, columns])
    picked = select_rows(load_scores(tmp_path), np.array([8, 2, 9]))
    np.testing.assert_array_equal(np.concatenate(list(picked.blocks())), scores[[8, 2, 9]])
    np.save(tmp_path / "3.npy", scores.astype("f8"))
    with pytest.raises(FileError, match="save all shards with the same columns"):
        describe_scores(tmp_path, tmp_path)


def test_nan_in_a_range_is_named_as_in_one_process(questions, scores, tmp_path) -> None:
    scores[2, 15] = np.nan
    with pytest.raises(InputError) as whole:
        kgtrec.rank(scores, questions)
    inputs = build_inputs(scores, questions, tmp_path)
    with pytest.raises(InputError) as ranges:
        rank_block((0, 4), [(0, 10), (10, MORE)], inputs)
    assert str(ranges.value).endswith(str(whole.value).removeprefix("scores: "))


def test_parts_and_notes_that_are_not_what_they_were_are_not_there(inputs, tmp_path) -> None:
    files, part = PartFiles(tmp_path / "parts"), rank_block((0, 3), [(0, MORE)], inputs)
    files.save(part)
    assert files.load(part.task).task == part.task
    (path,) = files.folder.glob("*.part")
    other = replace(part.task, first_row=1)
    path.rename(path.with_name(f"1-{path.name.partition('-')[2]}"))
    assert files.load(other) is None
    note = tmp_path / "tasks.json"
    content_hash.write_json(note, [[0, 3]])
    assert content_hash.read_json(note) == [[0, 3]]
    note.write_text(note.read_text().replace("[[0, 3]]", "[[0, 2]]"))
    with pytest.raises(ValueError):  # noqa: PT011 (without a text)
        content_hash.read_json(note)


def test_questions_of_another_version_are_refused(inputs, monkeypatch) -> None:
    monkeypatch.setattr("kgtrec.cluster.question_store.__version__", "9.9")
    with pytest.raises(FileError, match=r"questions of kgtrec .*, but this is kgtrec 9\.9"):
        inputs.store()


def test_first_and_last_bytes_of_a_large_file_are_sampled(tmp_path, monkeypatch) -> None:
    """A write between the samples shows on one machine, whatever its time."""
    for name, value in (("MOST_HASHED_WHOLE", 100), ("_N_SAMPLES", 3), ("_SAMPLE_BYTES", 8)):
        monkeypatch.setattr(content_hash, name, value)
    path, content = tmp_path / "large.npy", bytes(200)
    path.write_bytes(content)
    stat, hashes = path.stat(), set()
    before = [describe_files([path], here=here) for here in (False, True)]
    for place in (0, 7, 192, 199, 100):
        path.write_bytes(content[:place] + b"x" + content[place + 1 :])
        hashes.add(describe_files([path])["sampled_hash"][0])
    assert len(hashes | {before[0]["sampled_hash"][0]}) == 5
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert describe_files([path]) == before[0]  # other machines see only this
    assert describe_files([path], here=True) != before[1]


def test_parts_depend_on_every_setting_that_counts(inputs: Inputs) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    from kgtrec.cluster.dask.rank import hash_inputs

    changes = ({}, {"run_depth": 3}, {"higher_is_better": False}, {"nan": "worst"}, {"atol": 0.1})
    known = {
        hash_inputs(replace(inputs, settings=replace(inputs.settings, **change)))
        for change in changes
    }
    assert len(known) == len(changes)
    assert hash_inputs(replace(inputs, settings=replace(inputs.settings, threads=3))) in known
