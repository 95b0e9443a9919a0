"""Questions with a time: TGB 2.0's protocol in plain Python, and from files to tables."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")

N, R, T = 5, 2, 4
SIDES = {"head": (0,), "tail": (2,), "both": (0, 2), "relation": (1,)}  # columns that are asked
Fact = tuple[int, int, int, int]

facts = st.tuples(*(st.integers(0, size - 1) for size in (N, R, N, T)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, list[Fact]], list[Fact]]:
    pool = draw(st.lists(facts, min_size=1, max_size=14))
    some = st.lists(st.sampled_from(pool), max_size=14)
    splits = {"train": draw(some), "valid": draw(some), "test": draw(some.filter(bool))}
    return splits, draw(st.lists(facts, max_size=3))


def graph_of(splits: dict[str, list[Fact]]) -> kgtrec.Graph:
    arrays = {name: np.array(rows, np.int64).reshape(-1, 4) for name, rows in splits.items()}
    return kgtrec.Graph.from_arrays(**arrays, n_entities=N, n_relations=R, times=list("abcd"))


def score(fact: Fact) -> float:
    """Few values, which change with the time."""
    h, r, t, time = fact
    return float((7 * h + 3 * r + 5 * t + 11 * time * h + t * time) % 4)


def with_column(fact: Fact, column: int, value: int) -> Fact:
    return (*fact[:column], value, *fact[column + 1 :])


def rivals(
    fact: Fact, asked: int, known: set[Fact], filter_: str, evaluated: set[Fact] = frozenset()
) -> list[Fact]:
    """Competitors of a fact: all but itself, the known, and (macro) other answers that stay."""
    left = []
    for value in range(R if asked == 1 else N):
        other = with_column(fact, asked, value)
        if filter_ == "static":
            is_known = any(with_column(other, 3, time) in known for time in range(T))
        else:
            is_known = other in known
        if value != fact[asked] and (not is_known or other in evaluated):
            left.append(other)
    return left


def due(
    splits: dict[str, list[Fact]], extra: list[Fact], sides: str, filter_: str
) -> dict[tuple[Fact, int], tuple[int, ...]]:
    """(greater, equal, candidates), micro and macro, of every fact and asked column."""
    known = set() if filter_ == "raw" else {f for rows in splits.values() for f in rows}
    known |= set(extra)
    test, counts = set(splits["test"]), {}
    for fact in test:
        for asked in SIDES[sides]:
            row: list[int] = []
            for group in (
                rivals(fact, asked, known, filter_),
                rivals(fact, asked, known, filter_, evaluated=test),
            ):
                own = score(fact)
                row += [sum(score(f) > own for f in group), sum(score(f) == own for f in group)]
                row.append(len(group) + 1)
            counts[fact, asked] = tuple(row)
    return counts


@given(
    cases(),
    st.sampled_from(list(SIDES)),
    st.sampled_from(["time-aware", "static", "raw"]),
    st.sampled_from(["questions", "instances"]),
)
def test_counts_are_those_of_one_fact_against_all(
    case: tuple, sides: str, filter_: str, rows: str
) -> None:
    splits, extra = case
    graph = graph_of(splits)
    assert {name: len(rows) for name, rows in graph.facts.items()} == {
        name: len(set(rows)) for name, rows in splits.items()
    }
    questions = graph.questions(
        sides=sides, context="time", filter=filter_,
        extra_known=np.array(extra, np.int64).reshape(-1, 4),
    )  # fmt: skip
    ranker = kgtrec.Ranker(questions, rows=rows)
    for batch in ranker.batches(3):
        asked = (0, 2, 1)[int(batch.side[0])]
        scores = np.zeros((len(batch), questions.n_labels), np.float32)
        for row in range(len(batch)):
            other = 0 if batch.tail is None else int(batch.tail[row])
            e, r, time = (int(c[row]) for c in (batch.entity, batch.relation, batch.context))
            pattern = {0: (0, r, e, time), 2: (e, r, 0, time), 1: (e, 0, other, time)}[asked]
            for value in range(questions.n_labels):
                scores[row, value] = score(with_column(pattern, asked, value))
        ranker.update(batch, scores)
    ranks, _ = ranker.finish()
    expected = due(splits, extra, sides, filter_)
    test = graph.facts["test"]
    assert len(ranks) == len(expected)
    for i in range(len(ranks)):
        fact = tuple(test[ranks.triple[i]].tolist())
        key = fact, (0, 2, 1)[int(ranks.side[i])]
        assert ranks.context[i] == fact[3]
        counts = [getattr(ranks, prefix + name)[i] for prefix in ("", "macro_")
                  for name in ("greater", "equal", "candidates")]  # fmt: skip
        assert tuple(counts) == expected[key], key
    assert all(name.endswith("@" + "abcd"[c]) for name, c in
               zip(questions.ids, questions.context.tolist(), strict=True))  # fmt: skip
    assert ranks.question_ids == [questions.ids[number] for number in ranks.question.tolist()]


def test_duplicates_are_facts_at_the_same_time() -> None:
    rows = np.array([[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 1, 3]] * 50)
    rows = np.concatenate([rows, np.random.default_rng(0).integers(0, 40, (5000, 4))])
    graph = kgtrec.Graph.from_arrays(test=rows)
    assert [tuple(row) for row in graph.facts["test"].tolist()] == list(
        dict.fromkeys(map(tuple, rows.tolist()))
    )
    assert graph.splits["test"].base is graph.facts["test"]  # 16 bytes a fact
    other = rows.copy()
    other[-1, 3] = (other[-1, 3] + 1) % 40
    assert graph.fingerprint != kgtrec.Graph.from_arrays(test=other).fingerprint


# -- Files -----------------------------------------------------------------------------------------

ICEWS = {
    "train": ["USA\tMake a visit\tIraq\t2014-01-01", "Iraq\tConsult\tIran\t2014-01-02"],
    "valid": ["USA\tMake a visit\tIran\t2014-01-01"],
    "test": ["USA\tMake a visit\tIraq\t2014-02-01", "USA\tMake a visit\tIraq\t2014-01-02",
             "Iran\tConsult\tUSA\t2014-01-02"],
}  # fmt: skip
WIKIDATA = {
    "train": ["Q1\tP54\tQ2\t1999\t2003", "Q1\tP54\tQ3\t2003\t2006"],
    "test": ["Q1\tP54\tQ2\t1999\t2004", "Q1\tP54\tQ3\t99\t2006"],
}


def folder(path: Path, files: dict[str, list[str]]) -> str:
    path.mkdir()
    for split, lines in files.items():
        (path / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return f"timed:{path}"


def run(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return str(result.exception) if fails else result.output


def test_files_with_times_and_intervals(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path / "icews", ICEWS))
    assert list(graph.contexts) == ["2014-01-01", "2014-01-02", "2014-02-01"]
    assert list(graph.entities) == ["Iran", "Iraq", "USA"]
    assert graph.facts["test"].tolist() == [[2, 1, 1, 2], [2, 1, 1, 1], [0, 0, 2, 1]]
    assert "3 times" in repr(graph)
    graph = kgtrec.read_graph(folder(tmp_path / "wiki", WIKIDATA))
    assert list(graph.contexts) == ["1999/2003", "1999/2004", "2003/2006", "99/2006"]
    steps = {"test": ["a\tr\tb\t10", "a\tr\tb\t9"]}
    graph = kgtrec.read_graph(folder(tmp_path / "steps", steps))
    assert list(graph.contexts) == ["9", "10"]
    for number, line in enumerate(("a\tr\tb", "a\tr\tb\t", "a\tr\tb\t1\t2", "a\tr\tb\t1\t2\t3")):
        lines = {"test": ["a\tr\tb\t1", line]}
        with pytest.raises(InputError, match=r"test\.txt:2: .*head, relation, tail and time"):
            kgtrec.read_graph(folder(tmp_path / f"bad{number}", lines))


def test_the_command_line_goes_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = folder(tmp_path / "g", ICEWS)
    questions = kgtrec.read_graph(place).questions(context="time")
    assert questions.ids[:2] == ["head0@2014-02-01", "head1@2014-01-02"]
    scores = np.random.default_rng(0).random((len(questions), 3), np.float32)
    np.save("s.npy", scores)
    words = ("rank", "--graph", place, "--scores", "s.npy", "--context", "time")
    text = run(*words, "-o", "a.parquet", "--write-run", "a.run", "--write-qrels", "a.qrels")
    assert "filter train, valid, test (time-aware)" in text
    run(*words, "-o", "{filter}.parquet", "--filter", "static", "--filter", "time-aware")
    assert Path("time-aware.parquet").read_bytes() == Path("a.parquet").read_bytes()
    aware, static = (kgtrec.Ranks.load(f"{name}.parquet") for name in ("a", "static"))
    assert "(time-aware) against" in kgtrec.comparable(aware, static).reasons[0]
    assert aware.context_labels == {1: "2014-01-02", 2: "2014-02-01"}
    assert (static.candidates < aware.candidates).any()
    assert "head0@2014-02-01 0 USA 1" in Path("a.qrels").read_text()
    result = kgtrec.evaluate(scores, questions)
    values = kgtrec.trec.evaluate("a.qrels", "a.run", ["recip_rank"])
    mean = np.mean([each["recip_rank"] for each in values.values()])
    assert mean == pytest.approx(result["both.macro.recip_rank"], abs=1e-12)
    table = run("report", "a.parquet", "--by", "time")
    assert table.index("2014-01-02") < table.index("2014-02-01")
    run("plot", "times", "a.parquet", "-o", "times.svg", "-m", "hits@1")
    assert "2014-01-02" in Path("times.svg").read_text()
    run("convert", "--graph", place, "--context", "time", "--write-questions", "q.tsv")
    first = Path("q.tsv").read_text().splitlines()[0]
    assert first == "head0@2014-02-01\tIraq\tMake%20a%20visit\t2014-02-01"
    run("compare", "a.parquet", "time-aware.parquet", "--resamples", "100")
    parts = run("compare", "parts", "a.parquet", "time-aware.parquet", "--by", "time", "-m", "mrr")
    assert "2014-02-01" in parts
    message = run(*words[:-2], "-o", "b.parquet", fails=True)
    assert "pass --context time, " in message
    due = [Path(name).read_bytes() for name in ("a.parquet", "a.run", "a.qrels")]
    for number in "12":
        run(*words, "-o", "shards", "--shard", f"{number}/2", "--run-depth", "1000")
    run("merge", "shards", "-o", "m.parquet", "--write-run", "m.run", "--write-qrels", "m.qrels")
    assert [Path(name).read_bytes() for name in ("m.parquet", "m.run", "m.qrels")] == due
    # An unfiltered run, filtered by the graph afterwards
    run(*words, "-o", "raw.parquet", "--filter", "raw", "--write-run", "raw.run")
    printed = run("eval", "--graph", place, "--context", "time", "-m", "kg_mrr", "a.qrels",
                  "raw.run")  # fmt: skip
    (value,) = {line.split()[2] for line in printed.splitlines() if line.startswith("kg_mrr")}
    assert float(value) == pytest.approx(result["both.realistic.micro.mrr"], abs=6e-5)
    np.save("s.npy", scores[::-1])
    run(*words, "-o", "b.parquet", "--write-run", "b.run")
    changed = run("changes", "a.parquet", "b.parquet", "--run", "a.run", "--run", "b.run")
    assert "same first" in changed
    assert "(USA, Make a visit, ?, 2014-01-02)" in changed
    run("report", "a.parquet", "b.parquet", "--html", "page.html")
    assert "2014-02-01" in Path("page.html").read_text()
    assert "train" in run("stats", place)


def test_what_does_not_fit_is_said_in_one_sentence() -> None:
    timed = graph_of({"train": [(0, 0, 1, 0)], "test": [(0, 0, 2, 1)]})
    plain = kgtrec.Graph.from_arrays(test=[[0, 0, 1]])
    for call, message in (
        (lambda: plain.questions(context="time"), "have no time"),
        (lambda: plain.questions(filter="static"), "have no time"),
        (lambda: timed.questions(context="place"), "but context='place'"),
        (lambda: timed.questions(context="time", filter="valid"), "time-aware, static, raw"),
        (lambda: timed.questions(context="time", extra_known=[[0, 0, 1]]), r"not \(n, 4\)"),
        (lambda: kgtrec.Graph.from_arrays(train=[[0, 0, 1]], test=[[0, 0, 1, 2]]), "or to none"),
        (lambda: kgtrec.Graph.from_arrays(test=[[0, 0, 1]], times=["a"]), "no split has"),
        (lambda: kgtrec.Graph.from_arrays(test=[[0, 0, 1, 2]], times=["a"]), "context id 2"),
    ):
        with pytest.raises((UsageError, InputError), match=message):
            call()
    with warnings.catch_warnings():  # TGB's conflicts give no warning
        warnings.simplefilter("error")
        of_tgb = timed.questions(context="time", filter="time-aware:test")
    assert of_tgb.filter_splits == ("test",)
    scores = np.zeros((len(of_tgb), of_tgb.n_entities), np.float32)
    assert "filter leaves out" not in str(kgtrec.evaluate(scores, of_tgb, progress=False))
    with pytest.raises(UsageError, match="both name splits"):
        timed.questions(context="time", filter="static:test", filter_splits=("train",))
    splits = timed.questions(context="time", filter="static", filter_splits=("train",))
    assert splits.filter_splits == ("train",)
    assert splits.known.lengths.tolist() == [0, 1]


def test_lists_at_a_time_give_the_ranks_of_their_scores(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    splits = {name: [tuple(row) for row in rng.integers(0, (N, R, N, T), (12, 4)).tolist()]
              for name in ("train", "test")}  # fmt: skip
    questions = graph_of(splits).questions(context="time")
    scores = rng.permuted(np.tile(np.arange(N), (len(questions), 1)), axis=1).astype(np.float32)
    ranks, run = kgtrec.rank(scores, questions, run_depth=N)
    records = [
        {name: str(int(value)) for name, value in
         zip((("tail", "head")[side], "relation"), given, strict=True)}
        | {"time": "abcd"[time], "predictions": np.argsort(-row).astype(str).tolist()}
        for side, given, time, row in zip(
            questions.side.tolist(), zip(*questions.given, strict=True), questions.context.tolist(),
            scores, strict=True)
    ]  # fmt: skip
    for lists in (records, run):
        same = kgtrec.rank_lists(lists, questions)
        for name in ("greater", "equal", "macro_greater", "context", "question"):
            np.testing.assert_array_equal(getattr(same, name), getattr(ranks, name))
        assert not same.n_unlisted
    other = [*records, records[0] | {"time": "next year"}]
    assert kgtrec.rank_lists(other, questions).manifest["scores"]["predictions"]["not_asked"] == 1
    with pytest.raises(InputError, match="time is None, not a label"):
        kgtrec.rank_lists([{k: v for k, v in records[0].items() if k != "time"}], questions)
    (tmp_path / "rules.txt").write_text("0 0 1\nHeads: 1\t0.5\t\nTails: 2\t0.5\t\n")
    with pytest.raises(UsageError, match="'anyburl' do not give the time"):
        kgtrec.rank_lists(tmp_path / "rules.txt", questions, "anyburl")


@pytest.mark.parametrize("rows", ["questions", "instances"])
def test_rows_of_facts_at_a_time(rows: str) -> None:
    facts = np.unique(np.random.default_rng(4).integers(0, (N, R, N, T), (60, 4)), axis=0)
    graph = graph_of({"test": [tuple(row) for row in facts.tolist()]})
    questions = graph.questions(context="time", entities=range(4))
    own = questions.graph.facts["test"][questions.kept]
    ranker = kgtrec.Ranker(questions, rows=rows)
    for code, side in enumerate(("head", "tail")):
        order = np.random.default_rng(5).permutation(len(own))
        got = ranker.rows_of(own[order], side)
        batch = ranker.batch(0, ranker.n_rows)
        assert (batch.side[got] == code).all()
        given = (own[:, (2, 0)[code]], own[:, 1], own[:, 3])
        for column, ids in zip((batch.entity, batch.relation, batch.context), given, strict=True):
            assert column[got].tolist() == ids[order].tolist()
    assert sorted(np.concatenate([ranker.rows_of(own, "head"), ranker.rows_of(own, "tail")])) == (
        sorted(questions.instance_question[questions.triple_rows]) if rows == "questions"
        else list(range(ranker.n_rows))
    )  # fmt: skip
    for wrong, message in (
        ([[0, 0, 1]], r"not \(n, 4\)"),
        ([[0, 0, 1, T]], "context id 4"),
        (facts[(facts[:, 0] == 4)][:1], "is not one of the"),
    ):
        with pytest.raises(InputError, match=message):
            ranker.rows_of(wrong, "tail")


def test_files_of_known_facts_at_a_time(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path / "g", ICEWS))
    path = tmp_path / "known.txt"
    path.write_text("USA\tMake a visit\tUSA\t2014-02-01\nUSA\tMake a visit\tUSA\t1999-01-01\n")
    usa = graph.entities.index("USA")
    for filter_, due_ in (("time-aware", [True, False, False]), ("static", [True, True, False])):
        questions = graph.questions("test", "tail", context="time", known=path, filter=filter_)
        assert [usa in row.tolist() for row in questions.known][:2] == due_[:2]
    path.write_text("USA\tMake a visit\tMars\t2014-02-01\n")
    with pytest.raises(InputError, match=r"known\.txt:1: tail 'Mars' is not in the graph"):
        graph.questions(context="time", known=path)
    assert graph.questions(context="time", known=path, unknown="skip").n_extra_known == 0
