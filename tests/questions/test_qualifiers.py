"""Questions for relations, at times and with qualifiers: by sets of facts, from files to tables."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from slow import slow_but

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import InputError, UsageError
from kgtrec.study.sampling.draw import weights_of

pytestmark = pytest.mark.filterwarnings("ignore::kgtrec.errors.FilterWarning")

N, R, T = 4, 3, 4
COLUMNS = {"head": 0, "relation": 1, "tail": 2}
NAMES = ("head", "tail", "relation", "qualifier")
AWARE = {"none": "all", "qualifiers": "qualifier-aware", "time": "time-aware"}
RELATIONS = ["s", "r", "é"]  # not in byte order: runs break ties by name
Pair = tuple[int, int]
Context = frozenset[Pair] | int | None  # qualifiers, or a time
Statement = tuple[int, int, int, Context]

pairs = st.tuples(st.integers(0, R - 1), st.integers(0, N - 1))
CONTEXTS = {
    "none": st.none(),
    "qualifiers": st.frozensets(pairs, max_size=3),
    "time": st.integers(0, T - 1),
}


@st.composite
def cases(draw: st.DrawFn, context: str) -> tuple[dict[str, list[Statement]], list[Statement]]:
    facts = st.tuples(
        st.integers(0, 1), st.integers(0, 1), st.integers(0, N - 1), CONTEXTS[context]
    )
    pool = draw(st.lists(facts, min_size=2, max_size=8))
    # The same primary triples in other contexts: "static" and "aware" filters differ.
    more = [(*fact[:3], draw(st.sampled_from(pool))[3]) for fact in pool]
    some = st.lists(st.sampled_from(pool + more), min_size=3, max_size=12)
    splits = {
        "train": draw(some),
        "valid": draw(some) if draw(st.booleans()) else [],
        "test": draw(some),
    }
    return splits, draw(st.lists(st.one_of(st.sampled_from(pool + more), facts), max_size=3))


def graph_of(splits: dict[str, list[Statement]], context: str = "qualifiers") -> kgtrec.Graph:
    if context == "time":
        arrays = {name: np.array(rows, np.int64).reshape(-1, 4) for name, rows in splits.items()}
        return kgtrec.Graph.from_arrays(**arrays, n_entities=N, n_relations=R, times=list("abcd"))
    arrays = {
        name: np.array([f[:3] for f in rows], np.int64).reshape(-1, 3)
        for name, rows in splits.items()
    }
    if context == "none":
        return kgtrec.Graph.from_arrays(**arrays, n_entities=N, relations=RELATIONS)
    qualifiers = {}
    for name, rows in splits.items():
        # in any order, one of them twice
        own = [list(fact[3])[::-1] + list(fact[3])[:1] for fact in rows]
        offsets = np.cumsum([0, *map(len, own)])
        flat = [pair for some in own for pair in some]
        qualifiers[name] = offsets, np.array(flat, np.int64).reshape(-1, 2)
    return kgtrec.Graph.from_arrays(**arrays, n_entities=N, n_relations=R, qualifiers=qualifiers)


def score(question: tuple, candidate: int) -> float:
    """Few values, which change with the context."""
    number = sum((i + 2) * (int(x) + 1) for i, x in enumerate(question[1:-1], len(question[0])))
    context = question[-1]
    if isinstance(context, int):
        number += 3 * context * (1 + question[1])
    elif context is not None:
        number += sum(3 * r + 5 * v + 1 for r, v in context)
    return float((number * (candidate + 3) + candidate) % 4)


def in_order(question: tuple, value: int) -> tuple[float, str]:
    """What the trec order sorts by."""
    named = question[0] == "relation" and question[-1] is None
    return score(question, value), RELATIONS[value] if named else str(value)


def questions_of(fact: Statement, sides: str) -> list[tuple[tuple, int]]:
    """(question, answer) of a statement: (side, given ..., qualifiers)."""
    h, r, t, context = fact
    if sides == "qualifier":
        return [(("qualifier", h, r, t, q, context - {(q, v)}), v) for q, v in sorted(context)]
    asked = {
        "head": (("head", r, t, context), h),
        "tail": (("tail", h, r, context), t),
        "relation": (("relation", h, t, context), r),
    }
    return [asked[side] for side in (("head", "tail") if sides == "both" else (sides,))]


def is_known(question: tuple, value: int, known: set[Statement], filter_: str) -> bool:
    """Whether a known statement, or the question itself, says it."""
    if filter_ == "raw" or not known:
        return False
    own = question[-1]
    if question[0] == "qualifier":
        _, h, r, t, q, others = question
        if (q, value) in others:
            return True
        stated = [f[3] for f in known if f[:3] == (h, r, t) and (q, value) in f[3]]
        return bool(stated) if filter_ == "static" else others | {(q, value)} in stated
    terms = {
        "head": (value, *question[1:3]),
        "tail": (*question[1:3], value),
        "relation": (question[1], value, question[2]),
    }[question[0]]
    return any(f[:3] == terms and (filter_ == "static" or f[3] == own) for f in known)


def due(
    test: list[Statement], known: set[Statement], sides: str, filter_: str, allowed: set[int]
) -> tuple[dict[tuple[tuple, int], list[int]], dict[tuple, list[int]]]:
    """(greater, equal, tied_ahead, candidates), micro and macro, of every question and answer, and
    the best two of every question."""
    asked = [each for fact in dict.fromkeys(test) for each in questions_of(fact, sides)]
    answers: dict[tuple, set[int]] = {}
    for question, answer in asked:
        answers.setdefault(question, set()).add(answer)
    counts, best = {}, {}
    for question, answer in asked:
        row: list[int] = []
        for back in ({answer}, answers[question]):
            among = [
                value
                for value in sorted(allowed)
                if value in back or not is_known(question, value, known, filter_)
            ]
            own, others = in_order(question, answer), [in_order(question, v) for v in among]
            greater, equal = (
                sum(x[0] > own[0] for x in others),
                sum(x[0] == own[0] for x in others) - 1,
            )
            ahead = sum(x > own for x in others) - greater
            outside = [len(among), 0, 0, len(among) + 1]
            row += [greater, equal, ahead, len(among)] if answer in allowed else outside
        best[question] = sorted(among, key=lambda v, q=question: in_order(q, v), reverse=True)[:2]
        counts[question, answer] = row
    return counts, best


GIVEN = {
    "head": ("given", "relation"),
    "tail": ("given", "relation"),
    "relation": ("given", "given_tail"),
    "qualifier": ("given", "given_relation", "given_tail", "relation"),
}


def question_of(graph: kgtrec.Graph, rows: kgtrec.Batch | kgtrec.Ranks, row: int) -> tuple:
    """What is asked, by the columns of a batch or of ranks."""
    side = NAMES[int(rows.side[row])]
    columns: Any = rows
    if isinstance(rows, kgtrec.Batch):
        given = (rows.entity, None, rows.tail)
        if side == "qualifier":
            assert rows.entity[row] == -1
            given = rows.statement.T
        named = zip(GIVEN["qualifier"], (*given, rows.relation), strict=True)
        columns = SimpleNamespace(**dict(named))
    ids = [int(getattr(columns, name)[row]) for name in GIVEN[side]]
    context = None if rows.context is None else context_of(graph, int(rows.context[row]))
    return side, *(ids[::-1] if side == "head" else ids), context


def context_of(graph: kgtrec.Graph, number: int) -> Context:
    if graph.qualifiers is None:
        return number
    return frozenset(map(tuple, graph.qualifiers[number].tolist()))


def file_of(facts: list[Statement]) -> Path:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        for head, relation, tail, context in facts:
            line = [head, RELATIONS[relation] if context is None else relation, tail]
            if isinstance(context, int):
                line.append("abcd"[context])
            line += [x for pair in context for x in pair] if isinstance(context, frozenset) else []
            separator = "," if isinstance(context, frozenset) else "\t"
            file.write(separator.join(map(str, line)) + "\n")
    return Path(file.name)


@pytest.mark.parametrize("context", AWARE)
@examples(1.4)
@given(st.data())
def test_counts_are_those_of_sets_of_facts(context: str, data: st.DataObject) -> None:
    splits, extra = data.draw(cases(context))
    choose = {
        "sides": {
            "none": ["relation", "relation", "both"],
            "time": ["head", "tail", "both", "relation"],
            "qualifiers": ["head", "tail", "both", "relation", "qualifier"],
        }[context],
        "filter": [AWARE[context], *["static"] * (context != "none"), "raw"],
        "rows": ["questions", "instances"],
        "train alone": [True, False],
        "by file": [False, True],
        "by facts": [False, True],
        "restricted": ["no", "no", "lists", "triples"] if context == "none" else ["no"],
    }
    sides, filter_, rows, train_alone, by_file, by_facts, restricted = (
        data.draw(st.sampled_from(values), label=name) for name, values in choose.items()
    )
    graph = graph_of(splits, context)
    assert [len(facts) for facts in graph.facts.values()] == [len({*s}) for s in splits.values()]
    options: dict[str, Any] = {} if context == "none" else {"context": context}
    if sides == "qualifier" and not any(fact[3] for fact in splits["test"]):
        with pytest.raises(UsageError, match="no fact of split 'test' has a qualifier"):
            graph.questions(sides=sides, **options)
        return
    texts = graph.contexts or [""]
    numbers = {context_of(graph, n): n for n in range(len(texts))} if graph.contexts else {None: 0}

    def row_of(fact: Statement) -> list[int]:
        return [*fact[:3], *[numbers[fact[3]]] * (context != "none")]

    if context != "none" or filter_ == "raw":
        options["filter"] = filter_
    if filter_ == "raw":
        extra = []
    else:
        options["filter_splits"] = ("train",) if train_alone else ("train", "valid", "test")
        extra = extra if by_file else [fact for fact in extra if fact[3] in numbers]
    if extra and by_file:  # with sets that the graph lacks
        options["known"] = file_of(extra)
    elif extra:
        options["extra_known"] = [row_of(fact) for fact in extra]
    n_labels = R if sides == "relation" else N
    allowed, test = set(range(n_labels)), splits["test"]
    if sides == "relation" and restricted != "no":
        allowed = data.draw(st.sets(st.sampled_from(range(R)), min_size=1))
    kept = [fact for fact in test if sides == "relation" and fact[1] in allowed]
    if restricted == "triples" and kept:
        test = kept
        options["relations"] = sorted(allowed)  # PyKEEN's restriction
    questions = graph.questions(sides=sides, **options)
    if len(allowed) < n_labels and "relations" not in options:
        questions = questions.restrict(relations=sorted(allowed), outside="worst")
    ranker = kgtrec.Ranker(questions, 2, rows=rows, duplicates="ignore")
    by_row: dict[int, tuple] = {}
    if by_facts and sides != "qualifier":  # as a model that scores facts gives them
        facts = data.draw(st.permutations(test))
        ids = [row_of(fact) for fact in facts]
        given = [
            (ranker.rows_of(ids, side), [questions_of(fact, side)[0][0] for fact in facts])
            for side in (("head", "tail") if sides == "both" else (sides,))
        ]
    else:
        given = [
            (batch, [question_of(graph, batch, row) for row in range(len(batch))])
            for batch in ranker.batches(3)
        ]
        by_row = dict(enumerate(question for _, own in given for question in own))
    for some, own in given:
        scores = [[score(question, x) for x in range(n_labels)] for question in own]
        ranker.update(some, np.array(scores, np.float32))
    ranks, run = ranker.finish()
    known = set(splits["train"]) if train_alone else {f for some in splits.values() for f in some}
    # Values that a question gives are known if anything filters.
    filtered = {(-1, 0, 0, -1)} if filter_ != "raw" else set()
    counts, best = due(test, known | set(extra) or filtered, sides, filter_, allowed)
    assert len(ranks) == len(counts)
    names = questions.ids
    for i in range(len(ranks)):
        question, number = question_of(graph, ranks, i), int(ranks.question[i])
        assert rows == "instances" or by_row.get(number, question) == question
        got = [
            getattr(ranks, prefix + name)[i]
            for prefix in ("", "macro_")
            for name in ("greater", "equal", "tied_ahead", "candidates")
        ]
        assert got == counts[question, int(ranks.answer[i])], question
        assert run.documents[slice(*run.offsets[number : number + 2])].tolist() == best[question]
        text = texts[0 if ranks.context is None else int(ranks.context[i])]
        assert names[number].partition("@")[2] == text
        if context == "qualifiers":
            assert text == (",".join(f"{r}={v}" for r, v in sorted(question[-1])) or "-")
    assert ranks.question_ids == [names[number] for number in ranks.question.tolist()]
    if "known" in options:
        options["known"].unlink()


def test_known_facts_may_leave_a_set_that_no_question_has() -> None:
    whole = frozenset({(0, 1), (1, 2), (2, 3)})
    graph = graph_of({"test": [(0, 0, 1, whole), (0, 0, 1, frozenset({(0, 3), (2, 0)}))]})
    number = graph.contexts.index("0=1,1=2")  # only as a rest: no fact has it
    assert (graph.qualifiers.without[graph.qualifiers.offsets[number] :][:2] == -1).all()
    for filter_, known in (("qualifier-aware", [1] * 5), ("static", [2, 1, 2, 2, 2])):
        questions = graph.questions(
            sides="qualifier",
            context="qualifiers",
            filter=filter_,
            extra_known=[[0, 0, 1, number], [1, 1, 1, number]],
        )
        assert questions.known.lengths.tolist() == known


# -- Files -----------------------------------------------------------------------------------------

WD50K = {
    "train": ["Q7,P69,Q8,P512,Q9,P582,Q1 0", "Q7,P69,Q8,P512,Q6", "Q8,P17,Q5"],
    "valid": ["Q8,P17,Q6"],
    "test": ["Q7,P69,Q8,P582,Q1 0,P512,Q9,P812,Q5", "Q7,P69,Q8", "Q9,P17,Q5,P582,Q8"],
}


def folder(path: Path, splits: dict[str, list[str]], name: str = "{}.txt") -> str:
    path.mkdir()
    for split, lines in splits.items():
        (path / name.format(split)).write_text("\n".join(lines) + "\n")
    return f"statements:{path}"


def roles(line: str) -> str:
    """A statement in the form of WikiPeople."""
    head, relation, tail, *more = line.split(",")
    values = [[value] if len(more) > 2 else value for value in more[1::2]]
    record = {f"{relation}_t": tail, "N": 2 + len(values), f"{relation}_h": head}
    return json.dumps(record | dict(zip(more[::2], values, strict=True)))


def run(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    return str(result.exception) if fails else result.output


def test_files_of_statements_and_of_roles(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path / "wd", WD50K))
    assert list(graph.relations) == ["P17", "P512", "P582", "P69", "P812"]
    assert graph.contexts[graph.facts["test"][:, 3].astype(int)] == [
        "P512=Q9,P582=Q1 0,P812=Q5",
        "-",
        "P582=Q8",
    ]
    assert graph.qualifiers[0].shape == (0, 2)
    statements = [
        [graph.entities.index("Q7"), 3, graph.entities.index("Q8")],
        [graph.entities.index("Q9"), 0, graph.entities.index("Q5")],
    ]
    assert graph.statements.tolist() == statements
    assert "4 facts with qualifiers" in repr(graph)
    splits = json.loads(run("stats", f"statements:{tmp_path}/wd", "--format", "json"))["splits"]
    assert [row["with_qualifiers"] for row in splits.values()] == [2, 0, 2]
    people = {split: list(map(roles, lines)) for split, lines in WD50K.items()}
    folder(tmp_path / "wp", people, "n-ary_{}.json")
    same = kgtrec.read_graph(tmp_path / "wp")
    assert same.fingerprint == graph.fingerprint
    other = {**WD50K, "test": [*WD50K["test"][:2], "Q9,P17,Q5,P582,Q9"]}
    changed = kgtrec.read_graph(folder(tmp_path / "other", other))
    assert changed.fingerprint != graph.fingerprint
    # Separators of labels of sets are encoded in names.
    odd = kgtrec.read_graph(folder(tmp_path / "odd", {"test": ["a,r,b,r=,%c", "a,r,b,r,=%c"]}))
    assert sorted(odd.contexts) == ["-", "r%3D=%25c", "r=%3D%25c"]


ICEWS = {
    "train": ["USA\tMake a visit\tIraq\t2014-01-01", "Iraq\tConsult\tIran\t2014-01-02"],
    "valid": ["USA\tMake a visit\tIran\t2014-01-01"],
    "test": [
        "USA\tMake a visit\tIraq\t2014-02-01",
        "USA\tMake a visit\tIraq\t2014-01-02",
        "Iran\tConsult\tUSA\t2014-01-02",
    ],
}
WIKIDATA = {
    "train": ["Q1\tP54\tQ2\t1999\t2003", "Q1\tP54\tQ3\t2003\t2006"],
    "test": ["Q1\tP54\tQ2\t1999\t2004", "Q1\tP54\tQ3\t99\t2006"],
}


def timed_folder(path: Path, files: dict[str, list[str]]) -> str:
    return folder(path, files).replace("statements:", "timed:")


PLAIN = {split: [line[:-11] for line in lines] for split, lines in ICEWS.items()}
PLAIN["train"].append("USA\tConsult\tIraq")


class Told(NamedTuple):
    """A way to ask, and what the commands say of it."""

    place: str
    files: dict[str, list[str]]
    context: str
    filters: tuple[str, str]  # the same as no filter; another
    qrels: str
    asked: str  # the end of a line of questions
    by: str
    sliced: list[str]
    changed: str


AWARE_OF = ("qualifier-aware", "static")
WAYS = {
    "both": Told(
        "statements:g",
        WD50K,
        "qualifiers",
        AWARE_OF,
        "head2@P582=Q8 0 Q9 1",
        "Q9\tP17\tP582=Q8",
        "qualifiers",
        ["0", "1", "3"],
        "(Q9, P17, ?, P582=Q8)",
    ),
    "qualifier": Told(
        "statements:g",
        WD50K,
        "qualifiers",
        AWARE_OF,
        "qualifier0@P582=Q1%200,P812=Q5 0 Q9 1",
        "Q7\tP69\tQ8\tP512\tP582=Q1%200,P812=Q5",
        "qualifiers",
        ["0", "2"],
        "(Q9, P17, Q5, P582, ?, -)",
    ),
    "time": Told(
        "timed:g",
        ICEWS,
        "time",
        ("time-aware", "static"),
        "head0@2014-02-01 0 USA 1",
        "head0@2014-02-01\tIraq\tMake%20a%20visit\t2014-02-01",
        "time",
        ["2014-01-02", "2014-02-01"],
        "(Iran, Consult, ?, 2014-01-02)",
    ),
    "relation": Told(
        "g",
        PLAIN,
        "",
        ("all", "raw"),
        "relation0 0 Make%20a%20visit 1",
        "relation0\tUSA\tIraq",
        "relation",
        ["Consult", "Make a visit"],
        "(Iran, ?, USA)",
    ),
}


@pytest.mark.parametrize("way", slow_but(["qualifier", "time", "relation"], WAYS))
def test_the_command_line_goes_all_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told, sides = WAYS[way], "both" if way == "time" else way
    folder(tmp_path / "g", told.files)
    graph = kgtrec.read_graph(told.place)
    questions = graph.questions(sides=sides, context=told.context or None)
    scores = np.random.default_rng(0).random((len(questions), questions.n_labels), np.float32)
    np.save("s.npy", scores)
    context = ("--context", told.context) if told.context else ()
    asked = ("--graph", told.place, *context, "--sides", sides)
    words = ("rank", *asked, "--scores", "s.npy")
    text = run(*words, "-o", "a.parquet", "--write-run", "a.run", "--write-qrels", "a.qrels")
    same, other = told.filters
    aware_text = f" ({same})" if told.context else ""
    assert f"filter train, valid, test{aware_text}" in " ".join(text.split())
    run(*words, "-o", "{filter}.parquet", "--filter", other, "--filter", same)
    assert Path(f"{same}.parquet").read_bytes() == Path("a.parquet").read_bytes()
    ranks, others = (kgtrec.Ranks.load(f"{name}.parquet") for name in ("a", other))
    (reason,) = kgtrec.comparable(ranks, others).reasons
    assert reason.startswith(f"filter: train, valid, test{aware_text} against")
    assert (others.candidates != ranks.candidates).any()
    assert told.qrels in Path("a.qrels").read_text()
    result = kgtrec.evaluate(scores, questions, run_depth=1000)
    assert str(result) in text
    values = kgtrec.trec.evaluate("a.qrels", "a.run", ["recip_rank"])
    mean = np.mean([each["recip_rank"] for each in values.values()])
    assert mean == pytest.approx(result[f"{sides}.macro.recip_rank"], abs=1e-12)
    assert [str(row[0]) for row in result.slice(told.by).rows] == told.sliced
    table = run("report", "a.parquet", "--by", told.by).splitlines()
    assert all(any(line.startswith(name) for line in table) for name in told.sliced)
    run("convert", *asked, "--write-questions", "q.tsv")
    lines = Path("q.tsv").read_text().splitlines()
    assert any(line.endswith(told.asked) for line in lines)
    # An unfiltered run, filtered by the graph afterwards: as lists, and by eval
    run(*words, "-o", "raw.parquet", "--filter", "raw", "--write-run", "raw.run")
    run(
        "rank",
        *asked,
        "--predictions",
        "raw.run",
        "--predictions-format",
        "trec",
        "-o",
        "lists.parquet",
    )
    assert kgtrec.Ranks.load("lists.parquet").greater.tolist() == ranks.greater.tolist()
    printed = run("eval", *asked, "-m", "kg_mrr", "a.qrels", "raw.run")
    (value,) = {line.split()[2] for line in printed.splitlines() if line.startswith("kg_mrr")}
    assert float(value) == pytest.approx(result[f"{sides}.realistic.micro.mrr"], abs=6e-5)
    np.save("s.npy", 1 - scores)
    run(*words, "-o", "b.parquet", "--write-run", "b.run")
    assert told.changed in run(
        "changes", "a.parquet", "b.parquet", "--run", "a.run", "--run", "b.run"
    )
    parts = run("compare", "parts", "a.parquet", "b.parquet", "--by", told.by, "-m", f"{sides}.mrr")
    assert told.sliced[-1] in parts
    run("report", "a.parquet", "b.parquet", "--html", "page.html", "--graph", told.place)
    assert told.changed in Path("page.html").read_text()
    if way == "time":
        assert ranks.context_labels == {1: "2014-01-02", 2: "2014-02-01"}
        run("plot", "times", "a.parquet", "-o", "times.svg", "-m", "hits@1")
        assert "2014-01-02" in Path("times.svg").read_text()
        message = run("rank", *asked[:2], "--scores", "s.npy", "-o", "b.parquet", fails=True)
        assert "pass --context time; " in message
    else:
        assert "slices by time" in run("report", "a.parquet", "--by", "time", fails=True)


def test_files_of_known_facts(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path / "g", WD50K))
    path = tmp_path / "known.txt"
    path.write_text("Q7,P69,Q6,P17,Q5\nQ7,P69,Q9\n")
    aware = graph.questions("test", "tail", context="qualifiers", known=path)
    q9 = graph.entities.index("Q9")
    assert [q9 in row.tolist() for row in aware.known] == [False, True, False]
    assert aware.details["known_files"][0]["triples"] == aware.n_extra_known == 2
    for line, what in (
        ("Q7,P69,Q6,P99,Q5", "qualifier relation 'P99'"),
        ("X,P69,Q6", "head 'X'"),
        ("Q7,P69,Q6,P17,Q5,P17,Y", "qualifier value 'Y'"),
    ):
        path.write_text(f"Q7,P69,Q9\n{line}\n")
        with pytest.raises(InputError, match=rf"known\.txt:2: {what} is not in the graph"):
            graph.questions(context="qualifiers", known=path)
        part = graph.questions("test", "tail", context="qualifiers", known=path, unknown="skip")
        assert [row.tolist() for row in part.known] == [row.tolist() for row in aware.known]
        assert part.details["known_files"][0]["unknown"] == 1
        path.write_text(f"{line}\n")
        none = graph.questions(context="qualifiers", known=path, unknown="skip")
        assert none.n_extra_known == 0


def test_relation_of_a_value_question_is_that_of_the_qualifier(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(folder(tmp_path / "g", WD50K))
    questions = graph.questions(sides="qualifier", context="qualifiers")
    scores = np.random.default_rng(0).random((len(questions), graph.n_entities), np.float32)
    result = kgtrec.evaluate(scores, questions)
    names = {row[0] for row in result.slice("relation").rows}
    assert names == {"P512", "P582", "P812"}
    assert questions.statement.shape == (len(questions), 3)
    part = graph.questions(
        sides="qualifier", context="qualifiers", relations=[graph.relations.index("P582")]
    )
    assert sorted(graph.entities[part.answers.ids]) == ["Q1 0", "Q8"]
    small = kgtrec.evaluate(scores, part)  # from the rows of all questions
    assert small.count("qualifier") == (2, 2)
    q5, q8, q9 = graph.entities.ids(["Q5", "Q8", "Q9"]).tolist()
    (only,) = graph.questions(
        sides="qualifier", context="qualifiers", entities=[q5, q8, q9]
    ).answers.ids
    assert graph.entities[int(only)] == "Q8"


def test_values_are_drawn_by_their_frequency_in_train() -> None:
    seen = [
        (0, 0, 1, frozenset({(1, 2)})),
        (1, 0, 1, frozenset({(1, 2)})),
        (0, 0, 2, frozenset({(1, 3)})),
    ]
    graph = graph_of({"train": seen, "test": [(0, 0, 2, frozenset({(1, 1)}))]})
    values = graph.questions(sides="qualifier", context="qualifiers")
    weights, _ = weights_of("frequency", values)
    assert weights(NAMES.index("qualifier"), 1).tolist() == [0, 0, 2**0.75, 1]
    assert "by frequency in train" in repr(kgtrec.study.draw_candidates(values, 10, by="frequency"))
    result = kgtrec.evaluate(np.zeros((1, N), np.float32), values)
    assert result.slice("quartile", ["qualifier.mr"], graph=graph).rows[0][-1] == 2.0
    assert values.restrict(entities=[0, 1]).candidates.tolist() == [2]


def test_files_with_times_and_intervals(tmp_path: Path) -> None:
    graph = kgtrec.read_graph(timed_folder(tmp_path / "icews", ICEWS))
    assert list(graph.contexts) == ["2014-01-01", "2014-01-02", "2014-02-01"]
    assert list(graph.entities) == ["Iran", "Iraq", "USA"]
    assert graph.facts["test"].tolist() == [[2, 1, 1, 2], [2, 1, 1, 1], [0, 0, 2, 1]]
    assert "3 times" in repr(graph)
    graph = kgtrec.read_graph(timed_folder(tmp_path / "wiki", WIKIDATA))
    assert list(graph.contexts) == ["99/2006", "1999/2003", "1999/2004", "2003/2006"]
    steps = {"test": ["a\tr\tb\t10", "a\tr\tb\t9", "b\tr\ta\t-3"]}
    graph = kgtrec.read_graph(timed_folder(tmp_path / "steps", steps))
    assert list(graph.contexts) == ["-3", "9", "10"]


def test_a_filter_of_times_may_name_splits() -> None:
    timed = graph_of({"train": [(0, 0, 1, 0)], "test": [(0, 0, 2, 1)]}, "time")
    with warnings.catch_warnings():  # TGB's conflicts give no warning
        warnings.simplefilter("error")
        of_tgb = timed.questions(context="time", filter="time-aware:test")
    assert of_tgb.filter_splits == ("test",)
    scores = np.zeros((len(of_tgb), of_tgb.n_entities), np.float32)
    assert "filter leaves out" not in str(kgtrec.evaluate(scores, of_tgb, progress=False))
    splits = timed.questions(context="time", filter="static", filter_splits=("train",))
    assert splits.filter_splits == ("train",)
    assert splits.known.lengths.tolist() == [0, 1]


@pytest.mark.parametrize(("context", "sides"), [("time", "both"), ("none", "relation")])
def test_lists_give_the_ranks_of_their_scores(context: str, sides: str) -> None:
    rng = np.random.default_rng(9)
    splits = {
        name: [tuple(row) for row in rng.integers(0, (N, R, N, T), (12, 4)).tolist()]
        for name in ("train", "test")
    }
    graph = graph_of(splits, context)
    questions = graph.questions(sides=sides, context="time" if context == "time" else None)
    labels = graph.relations if sides == "relation" else graph.entities
    scores = rng.permuted(np.tile(np.arange(len(labels)), (len(questions), 1)), axis=1)
    ranks, run = kgtrec.rank(scores.astype(np.float32), questions, run_depth=N)
    keys = ("tail", "relation"), ("head", "relation"), ("head", "tail")
    columns = {"head": graph.entities, "relation": graph.relations, "tail": graph.entities}
    times = questions.context.tolist() if context == "time" else []
    records = [
        {
            key: columns[key][int(own[i])]
            for key, own in zip(keys[side], questions.given, strict=True)
        }
        | ({"time": "abcd"[times[i]]} if times else {})
        | {"predictions": labels[np.argsort(-scores[i])]}
        for i, side in enumerate(questions.side.tolist())
    ]
    for lists in (records, run):
        same = kgtrec.rank_lists(lists, questions)
        for name in ("greater", "equal", "macro_greater", "question"):
            np.testing.assert_array_equal(getattr(same, name), getattr(ranks, name))
        np.testing.assert_array_equal(same.context, ranks.context)
        assert not same.n_unlisted
    if times:
        records.append(records[0] | {"time": "next year"})
        said = kgtrec.rank_lists(records, questions).manifest["scores"]
        assert said["predictions"]["not_asked"] == 1


def test_factors_and_columns_are_of_relations() -> None:
    rng = np.random.default_rng(5)
    facts = rng.integers(0, (N, R, N), (20, 3))
    graph = kgtrec.Graph.from_arrays(test=facts, n_entities=N, relations=RELATIONS)
    questions = graph.questions(sides="relation")
    entity, relation = (rng.integers(-3, 4, (n, 4)).astype(np.float32) for n in (N, R))
    queries, order = entity[questions.entity] * entity[questions.tail], [2, 0, 1]
    due, _ = kgtrec.rank(queries @ relation.T, questions)
    mine, columns = (queries @ relation.T)[:, order], graph.relations[order]
    for ranks, _ in (
        kgtrec.rank(kgtrec.Factors(queries, relation), questions),
        kgtrec.rank(mine, questions, columns=columns),
    ):
        for name in ("greater", "equal"):
            assert getattr(ranks, name).tolist() == getattr(due, name).tolist()
