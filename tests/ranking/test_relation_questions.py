"""Questions for the relation, (h, ?, t): an oracle of sets, and equal results by every way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError

pytestmark = pytest.mark.filterwarnings(
    "ignore::kgtrec.errors.FilterWarning", "ignore::kgtrec.errors.TieWarning"
)

N, R = 6, 5
LABELS = ["likes", "a b", "éa", "is%20", "zz"]  # not in byte order: runs break ties by name


def docno(label: str) -> bytes:
    return label.replace("%", "%25").replace(" ", "%20").encode()


triples = st.tuples(st.integers(0, N - 1), st.integers(0, R - 1), st.integers(0, N - 1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, list], str | None, np.ndarray]:
    pool = draw(st.lists(triples, min_size=1, max_size=12))
    some = st.lists(st.sampled_from(pool), max_size=12)
    splits = {"train": draw(some), "valid": draw(some), "test": draw(some.filter(bool))}
    filter_ = draw(st.sampled_from([None, "raw", "valid", "test"]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return splits, filter_, rng.integers(0, 3, (N, N, R)).astype(np.float32)


def graph_of(splits: dict[str, list]) -> kgtrec.Graph:
    arrays = {name: np.array(rows, np.int64).reshape(-1, 3) for name, rows in splits.items()}
    return kgtrec.Graph.from_arrays(**arrays, n_entities=N, relations=LABELS)


FILTERED_BY = {None: ("train", "valid", "test"), "raw": (), "valid": ("train", "valid"),
               "test": ("train", "valid", "test")}  # fmt: skip


def expected(
    splits: dict[str, list], filter_: str | None, scores: np.ndarray, allowed: set[int] | None
) -> dict[tuple[int, int, int], dict[str, int]]:
    """Micro and macro counts of every test triple, from sets."""
    known = {row for name in FILTERED_BY[filter_] for row in splits[name]}
    others = {r for name in FILTERED_BY[filter_] if name != "test" for r in splits[name]}
    test, out = set(splits["test"]), {}
    every = set(range(R)) if allowed is None else allowed
    for h, r, t in test:
        answers = {x for x in range(R) if (h, x, t) in test}
        micro = {x for x in every if (h, x, t) not in known} | {r}
        macro = {x for x in every if (h, x, t) not in others} | (answers & every)
        row: dict[str, int] = {}
        for prefix, candidates in (("", micro), ("macro_", macro)):
            rest = candidates - {r}
            ties = [x for x in rest if scores[h, t, x] == scores[h, t, r]]
            row[prefix + "greater"] = sum(scores[h, t, x] > scores[h, t, r] for x in rest)
            row[prefix + "equal"] = len(ties)
            row[prefix + "tied_ahead"] = sum(docno(LABELS[x]) > docno(LABELS[r]) for x in ties)
            row[prefix + "candidates"] = len(candidates)
        out[h, r, t] = row
    return out


def best(splits: dict[str, list], filter_: str | None, scores: np.ndarray, h: int, t: int) -> list:
    """The macro candidates of a question in trec order."""
    others = {r for name in FILTERED_BY[filter_] if name != "test" for r in splits[name]}
    candidates = [x for x in range(R) if (h, x, t) not in others or (h, x, t) in splits["test"]]
    return sorted(candidates, key=lambda x: (scores[h, t, x], docno(LABELS[x])), reverse=True)


def assert_counts(ranks: kgtrec.Ranks, due: dict) -> None:
    rows = zip(ranks.given.tolist(), ranks.answer.tolist(), ranks.given_tail.tolist(), strict=True)
    keys = list(rows)
    assert sorted(keys) == sorted(due)
    assert ranks.side.tolist() == [2] * len(keys)
    assert ranks.relation.tolist() == [relation for _, relation, _ in keys]
    for number, key in enumerate(keys):
        for name, value in due[key].items():
            assert getattr(ranks, name)[number] == value, (key, name)


@given(cases(), st.sampled_from(["questions", "instances"]))
def test_counts_and_runs_are_those_of_sets(case: tuple, rows: str) -> None:
    splits, filter_, scores = case
    questions = graph_of(splits).questions(sides="relation", filter=filter_)
    ranker = kgtrec.Ranker(questions, run_depth=3, rows=rows)
    for batch in ranker.batches(2):
        assert batch.side.tolist() == [2] * len(batch)
        ranker.update(batch, scores[batch.entity, batch.tail])
    ranks, run = ranker.finish()
    assert_counts(ranks, expected(splits, filter_, scores, None))
    pairs = zip(questions.entity.tolist(), questions.tail.tolist(), strict=True)
    for number, (head, tail) in enumerate(pairs):
        documents = run.documents[run.offsets[number] : run.offsets[number + 1]].tolist()
        assert documents == best(splits, filter_, scores, head, tail)[:3]
        assert questions.ids[number] == f"relation{number}"


@given(cases(), st.sets(st.integers(0, R - 1), min_size=1))
def test_a_list_of_relations_restricts(case: tuple, allowed: set[int]) -> None:
    splits, filter_, scores = case
    questions = graph_of(splits).questions(sides="relation", filter=filter_)
    some = questions.restrict(relations=sorted(allowed), outside="worst")
    ranks, _ = kgtrec.rank(scores[some.entity, some.tail], some)
    due = expected(splits, filter_, scores, allowed)
    for (_, r, _), row in due.items():
        if r not in allowed:  # outside: ranked last
            for prefix in ("", "macro_"):
                n = row[prefix + "candidates"] + (prefix == "macro_")
                row |= {prefix + "greater": n - 1, prefix + "equal": 0, prefix + "tied_ahead": 0}
                row[prefix + "candidates"] = n
    assert_counts(ranks, due)
    kept = [row for row in splits["test"] if row[1] in allowed]
    if kept:  # PyKEEN's restriction: triples of these relations, ranked among them
        subset = graph_of(splits).questions(
            sides="relation", filter=filter_, relations=sorted(allowed)
        )
        ranks, _ = kgtrec.rank(scores[subset.entity, subset.tail], subset)
        due = {key: row for key, row in due.items() if key[1] in allowed}
        assert_counts(ranks, due)


# -- Every way to rank -----------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    Path("g").mkdir()
    for split, n in (("train", 120), ("valid", 30), ("test", 40)):
        rows = rng.integers(0, (12, 7, 12), (n, 3)).tolist()
        lines = "".join(f"e{h:02d}\tr {r}\te{t:02d}\n" for h, r, t in rows)
        Path(f"g/{split}.txt").write_text(lines)
    questions = kgtrec.read_graph("g").questions(sides="relation")
    np.save("s.npy", rng.integers(0, 5, (len(questions), 7)).astype(np.float32))
    np.save("s2.npy", rng.integers(0, 5, (len(questions), 7)).astype(np.float32))
    return tmp_path


def run(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return str(result.exception) if fails else result.output


RANK = ("rank", "--graph", "g", "--sides", "relation", "--scores")


def test_the_command_line_goes_all_the_way(home: Path) -> None:
    text = run(
        *RANK, "s.npy", "-o", "a.parquet", "--write-run", "a.run", "--write-qrels", "a.qrels"
    )
    assert "relation side" in text
    assert "7 relations" in text
    run(*RANK, "s2.npy", "-o", "b.parquet", "--quiet")
    questions = kgtrec.read_graph("g").questions(sides="relation")
    result = kgtrec.evaluate(np.load("s.npy"), questions, run_depth=1000)
    assert str(result) in text
    ranks = kgtrec.Ranks.load("a.parquet")
    assert ranks.kind == "relation"
    assert ranks.question_ids == result.ranks.question_ids
    assert kgtrec.comparable(ranks, result)
    assert "sides" in kgtrec.comparable(ranks, _tails(questions)).reasons[0]
    # trec_eval's own numbers from the files
    values = kgtrec.trec.evaluate("a.qrels", "a.run", ["map_cut_20", "recip_rank"])
    mean = np.mean([each["recip_rank"] for each in values.values()])
    assert mean == pytest.approx(result["relation.macro.recip_rank"], abs=1e-12)
    # A run of everything, filtered by the graph afterwards: the same numbers.
    run(*RANK, "s.npy", "-o", "raw.parquet", "--filter", "raw", "--write-run", "raw.run", "--quiet")
    filtered = ("eval", "--graph", "g", "--sides", "relation", "-m", "kg_mrr")
    printed = run(*filtered, "a.qrels", "raw.run")
    (value,) = {line.split()[2] for line in printed.splitlines() if line.startswith("kg_mrr")}
    assert float(value) == pytest.approx(result["relation.realistic.micro.mrr"], abs=6e-5)
    assert "r%200" in Path("a.qrels").read_text()
    assert "relation.realistic.micro.mrr" in run("report", "a.parquet", "--format", "json")
    assert "r 3" in run("report", "a.parquet", "--by", "relation")
    assert "Q4" in run("report", "a.parquet", "--by", "quartile", "--graph", "g")
    assert "relation" in run("compare", "a.parquet", "b.parquet", "--resamples", "100", "-m",
                           "relation.mrr")  # fmt: skip
    run("report", "a.parquet", "b.parquet", "--html", "page.html")
    assert ", ?, " in Path("page.html").read_text()
    assert ", ?, " in run("changes", "a.parquet", "b.parquet")
    run("convert", "--graph", "g", "--sides", "relation", "--write-questions", "q.tsv")
    first = Path("q.tsv").read_text().splitlines()[0].split("\t")
    assert first[0] == "relation0"
    assert first[1][0] == first[2][0] == "e"


def _tails(questions: kgtrec.Questions) -> kgtrec.Ranks:
    others = questions.graph.questions(sides="tail")
    return kgtrec.rank(np.zeros((len(others), 12), np.float32), others)[0]


def test_shards_ranges_and_merged_rankers_give_the_same_bytes(home: Path) -> None:
    files = ["-o", "o.parquet", "--write-run", "o.run", "--write-qrels", "o.qrels"]
    run(*RANK, "s.npy", *files)
    due = [Path(name).read_bytes() for name in files[1::2]]
    for by in ("questions", "entities"):
        for number in (1, 2, 3):
            run(*RANK, "s.npy", "--shard", f"{number}/3", "--shard-by", by, "-o", by,
                "--run-depth", "1000")  # fmt: skip
        run("merge", by, *files)
        assert [Path(name).read_bytes() for name in files[1::2]] == due
    questions = kgtrec.read_graph("g").questions(sides="relation")
    scores, whole = np.load("s.npy"), kgtrec.Ranks.load("o.parquet")
    ranker = kgtrec.Ranker(questions)
    triples = questions.triples[::-1]
    rows, first = np.unique(ranker.rows_of(triples, "relation"), return_index=True)
    ranker.update(rows[::-1], scores[rows[::-1]])
    assert len(first) == len(questions)
    assert ranker.finish()[0].greater.tolist() == whole.greater.tolist()


def test_lists_and_runs_of_relations(home: Path) -> None:
    questions = kgtrec.read_graph("g").questions(sides="relation")
    ranks, run_ = kgtrec.rank(np.load("s.npy"), questions, run_depth=7)
    run_.write("a.run")
    again = kgtrec.rank_lists("a.run", questions, "trec")
    listed = ~again.macro_unlisted
    assert listed.any()
    for kind in ("optimistic", "ordinal"):
        assert (again.macro_rank(kind) == ranks.macro_rank(kind)).all()
    entities, relations = questions.graph.entities, questions.graph.relations
    lines = []
    for number in range(len(questions)):
        documents = run_.documents[run_.offsets[number] : run_.offsets[number + 1]].tolist()
        lines.append(
            {"head": entities[int(questions.entity[number])],
             "tail": entities[int(questions.tail[number])],
             "predictions": [relations[document] for document in documents]}
        )  # fmt: skip
    Path("l.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    listed = kgtrec.rank_lists("l.jsonl", questions, "jsonl")
    assert (listed.macro_rank("optimistic") == ranks.macro_rank("ordinal")).all()
    with pytest.raises(InputError, match="none of its"):
        kgtrec.rank_lists("a.run", questions.graph.questions(), "trec")


def test_factors_are_of_relations(home: Path) -> None:
    questions = kgtrec.read_graph("g").questions(sides="relation")
    rng = np.random.default_rng(5)
    entity, relation = (rng.integers(-3, 4, (n, 4)).astype(np.float32) for n in (12, 7))
    queries = entity[questions.entity] * entity[questions.tail]
    due, _ = kgtrec.rank(queries @ relation.T, questions)
    ranks, _ = kgtrec.rank(kgtrec.Factors(queries, relation), questions)
    assert ranks.greater.tolist() == due.greater.tolist()
    assert ranks.equal.tolist() == due.equal.tolist()
    order = rng.permutation(7)
    mine, _ = kgtrec.rank(
        (queries @ relation.T)[:, order], questions, columns=questions.graph.relations[order]
    )
    assert mine.greater.tolist() == due.greater.tolist()
    with pytest.raises(UsageError, match=r"head \* tail of DistMult"):
        kgtrec.Factors.from_embeddings(questions, "distmult", entity=entity, relation=relation)


def test_what_does_not_fit_is_said_in_one_sentence(home: Path) -> None:
    graph = kgtrec.read_graph("g")
    questions = graph.questions(sides="relation")
    with pytest.raises(UsageError, match="these questions ask for the relation"):
        questions.relation  # noqa: B018
    with pytest.raises(UsageError, match="only questions for the relation give"):
        graph.questions().tail  # noqa: B018
    with pytest.raises(UsageError, match="the candidates of these questions are relations"):
        questions.restrict(tails={0: [1]})
    with pytest.raises(UsageError, match="the candidates of these questions are entities"):
        graph.questions().restrict(relations=[1])
    with pytest.raises(InputError, match="head_neg and tail_neg list"):
        questions.restrict(candidates={"head_neg": np.zeros((3, 2), int)})
    with pytest.raises(InputError, match="expected 7 columns, one per relation"):
        kgtrec.rank(np.zeros((len(questions), 12), np.float32), questions)
    with pytest.raises(UsageError, match="'head' is not asked; these questions ask 'relation'"):
        kgtrec.Ranker(questions).rows_of(questions.triples, "head")
    assert "nan.npy" in run(*RANK, "nan.npy", "-o", "x", fails=True)
    scores = np.full((len(questions), 7), np.nan, np.float32)
    with pytest.raises(InputError, match=r"question relation0 \(e\d\d, \?, e\d\d\)"):
        kgtrec.rank(scores, questions)
