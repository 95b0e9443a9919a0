"""Pools against plain Python, their files, the rules that need no judge, and `kgtrec pool`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import Case, asked_by, cases, slow_lists, slow_pool, triple_of, write_case
from study_cases import N_ENTITIES, N_RELATIONS, listed

import kgtrec
from kgtrec.cli.pool import command
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.graph.statistics.relations import relation_categories
from kgtrec.study.pooling.completion import (
    RULES,
    read_relation_types,
    rule_table,
    trivial_rules,
)
from kgtrec.study.pooling.lists import doubts, run_lists, system_names
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import read_question_ids, seed_questions

KINDS = st.sampled_from(["filtered", "raw"])


def places_of(pool: Pool) -> dict[tuple[int, ...], dict[str, int]]:
    """Triple to the places of the systems that have it."""
    rows = zip(pool.triples.tolist(), pool.places.tolist(), strict=True)
    return {
        tuple(triple): {n: p for n, p in zip(pool.systems, own, strict=True) if p}
        for triple, own in rows
    }


@given(cases(), st.integers(1, N_ENTITIES + 1), KINDS)
def test_pool_is_that_of_plain_python(case: Case, depth: int, kind: str) -> None:
    pool = make_pool(case.lists(kind), case.questions, depth)
    expected = slow_pool(case, depth, kind)

    assert places_of(pool) == expected
    smallest = [min(expected[tuple(t)].values()) for t in pool.triples.tolist()]
    assert pool.smallest.tolist() == smallest
    names = case.graph.questions("test").ids
    number = {q: names[i] for i, q in enumerate(asked_by(listed(case.graph, "test")))}
    lists = slow_lists(case, kind)
    for triple, side, question in zip(
        pool.triples.tolist(), pool.sides, pool.questions, strict=True
    ):
        through = [
            q for q in asked_by(case.seeds)
            if any(triple_of(q, e) == tuple(triple) and p <= depth for by in lists.values()
                   for e, p in by[q])
        ]  # fmt: skip
        answered = [q for q in asked_by(case.seeds) if any(
            triple_of(q, e) == tuple(triple) for e in range(N_ENTITIES)
        )]  # fmt: skip
        assert question == ",".join(number[q] for q in answered)
        assert side == ("both" if len(through) == 2 else through[0][0])


@given(cases(), KINDS)
def test_a_deep_pool_holds_the_shallow_ones(case: Case, kind: str) -> None:
    lists, seeds = case.lists(kind), case.questions
    deep = make_pool(lists, seeds, 5)
    for depth in range(1, 6):
        shallow = make_pool(lists, seeds, depth)
        assert places_of(deep.at(depth)) == places_of(shallow)
        assert deep.contributed(depth).tolist() == shallow.contributed().tolist()
        assert deep.unique(depth).tolist() == shallow.unique().tolist()
        assert deep.overlap(depth).tolist() == shallow.overlap().tolist()
    counts = [row[1] for row in deep.depth_table().rows]
    assert counts == [len(make_pool(lists, seeds, depth)) for depth in range(1, 6)]


@given(cases())
def test_contributions_and_overlap(case: Case) -> None:
    pool = make_pool(case.lists(), case.questions, 4)
    sets = {
        name: {t for t, own in slow_pool(case, 4, "filtered").items() if name in own}
        for name in pool.systems
    }
    assert pool.contributed().tolist() == [len(own) for own in sets.values()]
    alone = [
        len(own - set().union(*(o for n, o in sets.items() if n != name)))
        for name, own in sets.items()
    ]
    assert pool.unique().tolist() == alone
    assert pool.overlap().tolist() == [[len(a & b) for b in sets.values()] for a in sets.values()]
    if len(sets) > 1:
        less = Case(case.graph, case.seeds, {k: v for k, v in case.scores.items() if k != "s0"})
        assert places_of(pool.without("s0")) == slow_pool(less, 4, "filtered")


@given(cases())
def test_order_does_not_depend_on_that_of_the_systems(case: Case) -> None:
    lists = case.lists()
    one, other = (make_pool(order, case.questions, 3) for order in (lists, lists[::-1]))
    assert one.triples.tolist() == other.triples.tolist()
    assert one.questions == other.questions


@given(cases())
def test_every_candidate_of_the_top_is_a_seed_or_pooled(case: Case) -> None:
    pool = {tuple(t) for t in make_pool(case.lists(), case.questions, 3).triples.tolist()}
    for by_question in slow_lists(case, "filtered").values():
        for question, ranked in by_question.items():
            for entity, _ in ranked[:3]:
                triple = triple_of(question, entity)
                assert triple in case.seeds or triple in pool


@given(case=cases())
def test_files_of_runs_and_pools_give_the_same(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("pool")
    seeds, lists = case.questions, []
    for name, run in case.runs().items():
        run.write(place / f"{name}.run")
        text = (place / f"{name}.run").read_text().splitlines(keepends=True)
        (place / f"{name}.run").write_text("".join(reversed(text)))  # lines come in any order
        lists.append(run_lists(place / f"{name}.run", seeds, name))
    pool = make_pool(case.lists(), seeds, 4)
    assert places_of(make_pool(lists, seeds, 4)) == places_of(pool)
    if not len(pool):
        return
    rules = ["type:head" if i % 2 else "" for i in range(len(pool))]
    write_pool(place / "pool.tsv", pool, rules)
    again, read = read_pool(place / "pool.tsv", case.graph)
    assert read == rules
    assert again.triples.tolist() == pool.triples.tolist()
    assert places_of(again) == places_of(pool)
    assert again.sides == pool.sides
    assert again.questions == pool.questions


def test_lists_tell_what_is_missing_and_short() -> None:
    test = np.array([[0, 0, 1], [2, 0, 3], [4, 0, 1]])
    graph = kgtrec.Graph.from_arrays(test=test, n_entities=12)
    scores = np.random.default_rng(0).random((len(graph.questions()), 12))
    _, run = kgtrec.rank(scores, graph.questions(), run_depth=4)
    rows = [i for i, name in enumerate(run.query_ids) if name != "tail1"]
    parts = [run.documents[run.offsets[i] : run.offsets[i + 1]] for i in rows]
    values = [run.scores[run.offsets[i] : run.offsets[i + 1]] for i in rows]
    fewer = kgtrec.Run(
        [run.query_ids[i] for i in rows],
        np.append(0, np.cumsum([len(p) for p in parts])),
        np.concatenate(parts),
        np.concatenate(values),
        run.docnos,
        4,
    )
    seeds = seed_questions(graph, test[:2])
    lists = run_lists(fewer, seeds, "a")
    assert len(seeds) == 4
    assert lists.missing == 1
    assert lists.shorter_than(4) == 0 or lists.known  # (4, 0, 1) is known to (?, 0, 1)
    assert lists.shorter_than(5) == 3
    sentences = doubts([lists], seeds, 5)
    assert sentences[:2] == [
        "a lacks 1 of 4 seed questions", "a: the lists of 3 questions end before depth 5"
    ]  # fmt: skip


# -- Bad calls -------------------------------------------------------------------------------------


def small() -> Case:
    rows = np.array([[0, 0, 3], [1, 1, 2], [2, 0, 3], [3, 1, 0]])
    graph = kgtrec.Graph.from_arrays(train=rows[:1], test=rows[1:], n_entities=N_ENTITIES)
    random = np.random.default_rng(1)
    scores = {name: random.random((len(graph.questions()), N_ENTITIES)) for name in "ab"}
    return Case(graph, [(2, 0, 3)], scores)


def test_bad_calls_are_refused() -> None:
    case = small()
    lists, seeds = case.lists(), case.questions
    with pytest.raises(UsageError, match="nothing to pool"):
        make_pool([], seeds, 3)
    with pytest.raises(UsageError, match="two systems are named 'a'"):
        make_pool([lists[0], lists[0]], seeds, 3)
    for depth in (0, -1, True):
        with pytest.raises(UsageError, match="is below 1"):
            make_pool(lists, seeds, depth)
    with pytest.raises(UsageError, match="take one kind"):
        make_pool([lists[0], case.lists("raw")[1]], seeds, 3)
    filtered = [
        run_lists(run, seeds, name, places="raw") for name, run in case.runs("filtered").items()
    ]
    with pytest.raises(InputError, match=r"a holds none .*--filter raw"):
        make_pool(filtered, seeds, 3)
    with pytest.raises(UsageError, match="places='odd'"):
        run_lists(case.runs()["a"], seeds, "a", places="odd")
    pool = make_pool(lists, seeds, 3)
    for depth in (0, 4):
        with pytest.raises(UsageError, match="this pool has 1 to 3"):
            pool.at(depth)
    with pytest.raises(UsageError, match="cannot be left out"):
        pool.without("c")
    with pytest.raises(UsageError, match="rules for"):
        write_pool("x", pool, ["", ""] * len(pool))


def test_seeds_must_be_of_the_split() -> None:
    graph = small().graph
    with pytest.raises(InputError, match=r"1 of 2 seed triples .* '0 0 3'"):
        seed_questions(graph, [(0, 0, 3), (2, 0, 3)])
    with pytest.raises(InputError, match="no seed triple"):
        seed_questions(graph, np.empty((0, 3), np.int64))
    with pytest.raises(InputError, match="entity id 99"):
        seed_questions(graph, [(99, 0, 1)])


def test_a_run_of_other_questions_or_entities_is_refused() -> None:
    case, seeds = small(), small().questions
    run = case.runs()["a"]
    named = kgtrec.Run(
        [f"q{i}" for i in range(len(run))], run.offsets, run.documents, run.scores, run.docnos, 7
    )
    with pytest.raises(InputError, match=r"not one of the 2 seed questions .*--questions"):
        run_lists(named, seeds, "a")
    other = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], n_entities=9)
    _, run = kgtrec.rank(np.zeros((2, 9)), other.questions(), run_depth=3)
    with pytest.raises(InputError, match="9 other entities"):
        run_lists(run, seeds, "a")


def test_names_of_systems() -> None:
    assert system_names(["x/a.run", "b.run.gz", "c.txt"]) == ["a", "b", "c"]
    assert system_names(["x/a.run", "y/a.run", "b"]) == ["x/a.run", "y/a.run", "b"]
    with pytest.raises(UsageError, match="named twice"):
        system_names(["a.run", "a.run"])
    with pytest.raises(UsageError, match="comma"):
        system_names(["a,b.run"])


HEADER = "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        (HEADER, "no pooled triple"),
        ("a\tb\n", r":1: header 'a\\tb'"),
        (HEADER + "0\t0\t1\thead\thead0\t1\ta:1\n", ":2: 7 columns in place of 8"),
        (HEADER + "0\t0\t1\tleft\thead0\t1\ta:1\t\n", ":2: side 'left'"),
        (HEADER + "0\t0\t1\thead\thead0\t1\ta\t\n", ":2: systems 'a'"),
        (HEADER + "0\t0\t1\thead\thead0\t1\ta:1,a:2\t\n", ":2: systems 'a:1,a:2'"),
        (HEADER + "0\t0\t1\thead\thead0\t1\ta:x\t\n", ":2: systems 'a:x'"),
        (HEADER + "0\t0\t1\thead\thead0\t2\ta:1,b:2\t\n", ":2: depth '2' beside"),
        (HEADER + "0\t0\t1\thead\thead0\t0\ta:0\t\n", ":2: depth '0'"),
        (HEADER + "0\t0\tzz\thead\thead0\t1\ta:1\t\n", ":2: tail 'zz' is not in the graph"),
        (HEADER + "0\t0\t1\thead\thead0\t1\ta:1\t\n" * 2, ":3: '0 0 1' is in line 2 too"),
    ],
)
def test_a_wrong_pool_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "pool.tsv"
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        read_pool(path, small().graph)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("head0\t1\n", ":1: "),
        ("q0\t1\t0\n", ":1: the name 'q0'"),
        ("head0\t1\t0\nhead1\tx\t0\n", ":2: entity 'x'"),
        ("head0\t1\tx\n", ":1: relation 'x'"),
        ("head0\t1\t0\nhead0\t2\t0\n", ":2: 'head0' is in line 1 too"),
        ("head0\t1\t0\nhead1\t1\t0\n", r":2: '\(\?, 0, 1\)' is in line 1 too"),
    ],
)
def test_a_wrong_question_list_is_refused_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        read_question_ids(path, small().graph)


def test_a_question_list_renames_the_questions(tmp_path: Path) -> None:
    case = small()
    kgtrec.write_questions(case.graph.questions(), tmp_path / "q.tsv")
    lines = (tmp_path / "q.tsv").read_text().splitlines()
    (tmp_path / "q.tsv").write_text("".join(f"{x[:4]}x{x[4:]}\n" for x in lines))
    names = read_question_ids(tmp_path / "q.tsv", case.graph)
    seeds = seed_questions(case.graph, case.seeds, names=names)
    assert [name[:5] for name in seeds.ids] == ["headx", "tailx"]
    assert [name.replace("x", "") for name in seeds.ids] == case.questions.ids
    (tmp_path / "q.tsv").write_text("head0\t0\t0\n")
    few = seed_questions(
        case.graph, case.seeds, names=read_question_ids(tmp_path / "q.tsv", case.graph)
    )
    with pytest.raises(UsageError, match="2 of 2 seed questions have no name"):
        run_lists(case.runs()["a"], few, "a")


# -- Rules -----------------------------------------------------------------------------------------


def slow_rule(
    case: Case, triple: list[int], sides: list[bool], types: dict[int, tuple[str, str]]
) -> str:
    """The first rule that fires, by the words of its definition."""
    head, relation, tail = triple
    train = [t for t in listed(case.graph, "train") if t[1] == relation]
    if train:
        per_head = len(train) / len({h for h, _, _ in train})
        per_tail = len(train) / len({t for _, _, t in train})
        one_head, one_tail = per_tail < 1.5, per_head < 1.5
        if sides[0] and one_head:
            return "1-1:head" if one_tail else "1-N:head"
        if sides[1] and one_tail:
            return "1-1:tail" if one_head else "N-1:tail"
    if relation in types:
        of: dict[int, set[str]] = {}
        for h, r, t in listed(case.graph):
            if r in types:
                of.setdefault(h, set()).add(types[r][0])
                of.setdefault(t, set()).add(types[r][1])
        if types[relation][0] not in of.get(head, set()):
            return "type:head"
        if types[relation][1] not in of.get(tail, set()):
            return "type:tail"
    return ""


@given(
    cases(),
    st.dictionaries(st.integers(0, N_RELATIONS - 1), st.tuples(*[st.sampled_from("AB")] * 2)),
)
def test_rules_fire_by_their_definitions(case: Case, types: dict[int, tuple[str, str]]) -> None:
    pool = make_pool(case.lists(), case.questions, 5)
    categories = relation_categories(case.graph) if len(case.graph.splits["train"]) else None
    if categories is None:
        return
    rules = trivial_rules(pool, categories=categories, types=types)
    expected = [
        slow_rule(case, triple, sides, types)
        for triple, sides in zip(pool.triples.tolist(), pool.asked.tolist(), strict=True)
    ]
    assert rules == expected
    assert set(rules) <= {"", *RULES}
    assert [row[1] for row in rule_table(pool, rules).rows] == [
        expected.count(name) for name in RULES if name in expected
    ]
    assert trivial_rules(pool) == [""] * len(pool)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("0\tA\n", ":1: "),
        ("0\tA\t \n", ":1: "),
        ("0\tA\tB\nx\tA\tB\n", ":2: relation 'x'"),
        ("0\tA\tB\n0\tA\tB\n", ":2: relation '0' is in line 1 too"),
    ],
)
def test_a_wrong_type_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "types.tsv"
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        read_relation_types(path, small().graph)


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph with blanks in its labels, seeds, and two runs."""
    write_case(tmp_path)
    return tmp_path


def run(folder: Path, *arguments: object, seeds: str = "seed.tsv") -> str:
    words = ["--graph", folder / "graph", "--seed-triples", folder / seeds, *arguments]
    done = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_writes_the_pool_of_the_library(folder: Path) -> None:
    out, a, b = folder / "pool.tsv", folder / "a.run", folder / "b.run"
    output = run(folder, a, b, "-o", out, "--depth", 4, "--by-category")
    graph = kgtrec.read_graph(folder / "graph")
    pool, rules = read_pool(out, graph)
    seeds = seed_questions(graph, graph.splits["test"][:8])
    lists = [run_lists(path, seeds, name) for path, name in ((a, "a"), (b, "b"))]
    expected = make_pool(lists, seeds, 4)
    assert places_of(pool) == places_of(expected)
    assert rules == trivial_rules(expected, categories=relation_categories(graph))
    assert expected.overlap_table().to_text() in output
    printed = json.loads(run(folder, a, b, "-o", out, "--depth", 4, "--format", "json"))
    assert printed["depths"]["4"]["pooled"] == len(pool)
    assert printed["systems"]["a"]["alone"] == expected.unique()[0]


def test_the_command_refuses_bad_input(folder: Path) -> None:
    out, a = folder / "pool.tsv", folder / "a.run"
    (folder / "other.tsv").write_text("ent 0\trel 0\tnobody\n")
    (folder / "known.tsv").write_text((folder / "graph" / "train.txt").read_text())
    (folder / "broken.run").write_text("head0 Q0 ent%200 1 high t\n")
    (folder / "strange.run").write_text("".join(f"head{i} Q0 Mars 1 1 t\n" for i in range(40)))
    for arguments, seeds, said in (
        ((a, a, "-o", out), "seed.tsv", "named twice"),
        ((a, "-o", a), "seed.tsv", "would overwrite an input"),
        ((a, "-o", folder / "graph" / "test.txt"), "seed.tsv", "would overwrite the graph"),
        ((a, "-o", out), "none.tsv", "no such file"),
        ((a, "-o", out), "other.tsv", "other.tsv:1: tail 'nobody'"),
        ((a, "-o", out), "known.tsv", "seed triples are not in split 'test'"),
        ((a, "-o", out, "--depth", 0), "seed.tsv", "depth 0 is below 1"),
        ((folder / "broken.run", "-o", out), "seed.tsv", "broken.run:1: score 'high'"),
        ((folder / "strange.run", "-o", out), "seed.tsv", "not entities of the graph, .* 'Mars'"),
        ((folder / "c.run", "-o", out), "seed.tsv", "no such file"),
        ((a, "-o", out, "--relation-types", folder / "seed.tsv"), "seed.tsv", "relation 'ent"),
        ((a, "-o", out, "--questions", folder / "seed.tsv"), "seed.tsv", "seed.tsv: 8 faults"),
    ):
        with pytest.raises(KgtrecError, match=said):
            run(folder, *arguments, seeds=seeds)
        assert not out.exists()
