"""Seeds, lists and pools against plain Python, their files, and `kgtrec sample` and `pool`."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import (
    Case,
    asked_by,
    call,
    cases,
    place_of,
    places_of,
    slow_lists,
    slow_pool,
    small,
    triple_of,
    write_case,
)
from refusals import refused
from study_cases import N_ENTITIES, N_RELATIONS, graphs, listed

import kgtrec
from kgtrec.cli.pool import pool as pool_command
from kgtrec.cli.pool import sample as sample_command
from kgtrec.errors import FileError, InputError, KgtrecError, UsageError
from kgtrec.graph.statistics.relations import relation_categories
from kgtrec.study.pooling.completion import (
    RULES,
    read_relation_types,
    rule_table,
    trivial_rules,
)
from kgtrec.study.pooling.edited_files import read_judgements
from kgtrec.study.pooling.lists import (
    RankedLists,
    doubts,
    is_scores,
    run_lists,
    score_lists,
    system_names,
)
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.seeds import read_question_ids, sample_seeds, seed_questions

# -- Seeds -----------------------------------------------------------------------------------------


def graph_of(relations: list[int]) -> kgtrec.Graph:
    """A test split whose triples have these relations."""
    rows = [(i, relation, i + 1) for i, relation in enumerate(relations)]
    return kgtrec.Graph.from_arrays(test=np.array(rows), n_relations=max(relations) + 1)


@pytest.mark.data
def test_fb_test_s_comes_out_row_for_row(shared_data: Path) -> None:
    graph = kgtrec.read_graph(shared_data / "fb15k-237")
    folder = shared_data / "kgc-sparsity" / "data" / "FB-Test-S"

    sample = sample_seeds(graph, 0.05, seed=42)

    assert sample.rows.tolist() == [
        int(x) for x in (folder / "sample_idxs.txt").read_text().split()
    ]
    lines = [line.split("\t") for line in (folder / "samples.txt").read_text().splitlines()]
    ours = [[graph.entities[h], graph.relations[r], graph.entities[t]]
            for h, r, t in sample.triples.tolist()]  # fmt: skip
    assert ours == lines
    assert sample.divergence == pytest.approx(0.088964, abs=5e-7)
    assert sample.table().rows == [
        ("test", 20466, 224, 10348, 22850), ("sample", 1023, 154, 1569, 1745)
    ]  # fmt: skip


@given(graphs(), st.integers(0, 2**40), st.data())
def test_rows_are_those_of_python(graph: kgtrec.Graph, seed: int, data: st.DataObject) -> None:
    test = listed(graph, "test")
    size = data.draw(st.integers(1, len(test)))
    random.seed(seed)
    expected = sorted(random.sample(range(len(test)), size))
    sample = sample_seeds(graph, size=size, seed=seed)
    assert sample.rows.tolist() == expected
    assert [tuple(t) for t in sample.triples.tolist()] == [test[i] for i in expected]

    counts = [Counter(r for _, r, _ in some) for some in (test, (test[i] for i in expected))]
    p, q = ([(own[r] + 1) / (own.total() + N_RELATIONS) for r in range(N_RELATIONS)]
            for own in counts)  # fmt: skip
    divergence = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert sample.divergence == pytest.approx(divergence, abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.data())
def test_every_relation_has_its_share(relations: list[int], data: st.DataObject) -> None:
    graph, size = graph_of(relations), data.draw(st.integers(1, len(relations)))

    sample = sample_seeds(graph, size=size, seed=3, by_relation=True)

    drawn = Counter(relations[row] for row in sample.rows.tolist())
    assert len(set(sample.rows.tolist())) == len(sample) == size
    # Largest remainders: sort all fractions, and give one more to the largest.
    exact = {r: Fraction(size * n, len(relations)) for r, n in Counter(relations).items()}
    expected = {r: math.floor(x) for r, x in exact.items()}
    left = size - sum(expected.values())
    for relation in sorted(exact, key=lambda r: (-(exact[r] % 1), r))[:left]:
        expected[relation] += 1
    assert drawn == Counter({r: n for r, n in expected.items() if n})


@pytest.mark.slow
def test_members_of_a_relation_are_equally_likely() -> None:
    graph = graph_of([0] * 6 + [1] * 4)
    hits = Counter()
    for seed in range(600):
        hits.update(sample_seeds(graph, size=5, seed=seed, by_relation=True).rows.tolist())
    assert set(hits) == set(range(10))
    assert all(abs(count - 300) < 75 for count in hits.values())  # 6 standard deviations


def test_shares_round_down_but_not_by_floating_point() -> None:
    graph = graph_of([0] * 100)
    assert len(sample_seeds(graph, 0.29)) == 29  # 0.29 * 100 is 28.999...
    assert len(sample_seeds(graph, 0.299)) == 29
    assert len(sample_seeds(graph)) == 5
    assert len(sample_seeds(graph, 1)) == 100


# -- The command ---------------------------------------------------------------------------------


def test_the_file_holds_lines_of_the_split_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir()
    lines = [f"e{i}\tr{i % 3}\té{i}" for i in range(40)]
    (tmp_path / "graph" / "test.txt").write_text("\n".join(lines), "utf-8")
    own = (sample_command, tmp_path / "graph", "-o", tmp_path / "seed.tsv")
    output, _ = call(*own, "--size", 7, "--by-relation")
    drawn = (tmp_path / "seed.tsv").read_text("utf-8").splitlines()
    assert drawn == [line for line in lines if line in drawn]
    assert len(drawn) == 7
    assert "KL(test || sample)" in output
    with pytest.raises(KgtrecError, match="would overwrite the graph"):
        call(*own, "-o", tmp_path / "graph" / "test.txt")


# -- Pools -----------------------------------------------------------------------------------------


KINDS = st.sampled_from(["filtered", "raw"])


@given(cases(), st.integers(1, N_ENTITIES + 1), KINDS)
def test_pool_is_that_of_plain_python(case: Case, depth: int, kind: str) -> None:
    pool = make_pool(case.lists(kind), case.questions, depth)
    expected = slow_pool(case, depth, kind)

    assert places_of(pool) == expected
    smallest = [min(expected[tuple(t)].values()) for t in pool.triples.tolist()]
    assert pool.smallest.tolist() == smallest
    sizes = []
    for less in range(1, depth + 1):
        assert places_of(pool.at(less)) == slow_pool(case, less, kind)
        sizes.append(len(pool.at(less)))
    assert [row[1] for row in pool.depth_table().rows] == sizes
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


@given(cases())
def test_contributions_and_overlap(case: Case) -> None:
    lists = case.lists()
    pool, other = (make_pool(order, case.questions, 4) for order in (lists, lists[::-1]))
    assert (pool.triples.tolist(), pool.questions) == (other.triples.tolist(), other.questions)
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


@given(case=cases())
def test_files_of_runs_and_pools_give_the_same(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("pool")
    seeds, lists = case.questions, []
    for name, run in case.runs().items():
        run.write(place / f"{name}.run")
        text = (place / f"{name}.run").read_text().splitlines(keepends=True)
        (place / f"{name}.run").write_text("".join(reversed(text)))  # lines may be in any order
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


def test_doubts_tell_what_is_missing_short_and_weak(tmp_path: Path) -> None:
    test = np.array([[0, 0, 1], [2, 0, 3], [4, 0, 1]])
    graph = kgtrec.Graph.from_arrays(test=test, n_entities=12)
    scores = np.random.default_rng(0).random((len(graph.questions()), 12))
    kgtrec.rank(scores, graph.questions(), run_depth=4)[1].write(tmp_path / "a.run")
    lines = (tmp_path / "a.run").read_text().splitlines(keepends=True)
    (tmp_path / "a.run").write_text("".join(x for x in lines if not x.startswith("tail1 ")))
    seeds = seed_questions(graph, test[:2])
    lists = run_lists(tmp_path / "a.run", seeds, "a")
    assert len(seeds) == 4
    assert lists.missing == 1
    assert lists.shorter_than(4) == 0 or lists.known  # (4, 0, 1) is known to (?, 0, 1)
    assert lists.shorter_than(5) == 3
    sentences = doubts([lists], seeds, 5)
    assert sentences[:2] == [
        "a lacks 1 of 4 seed questions", "a: the lists of 3 questions are shorter than depth 5"
    ]  # fmt: skip
    weak = replace(small().lists()[0], found=0, from_scores=True)
    (sentence,) = doubts([weak], small().questions, 99)  # it is not reported as short
    assert "check the model, and the order of the rows" in sentence


# -- Bad calls -------------------------------------------------------------------------------------


def small_lists(kind: str = "filtered", *, raw: bool = False) -> list[RankedLists]:
    """Lists of the small case; with `raw`, raw places of already filtered runs."""
    case = small()
    if raw:
        runs = case.runs("filtered").items()
        return [run_lists(run, case.questions, name, places="raw") for name, run in runs]
    return case.lists(kind)


def pooled(lists: list[RankedLists] | None = None, depth: int = 3) -> Pool:
    return make_pool(small_lists() if lists is None else lists, small().questions, depth)


test_wrong_calls_are_refused = refused(
    *(
        (str(how), lambda how=how: sample_seeds(graph_of([0] * 10), **how), UsageError, (said,))
        for how, said in (
            ({"share": 0}, "share 0 is out of range"), ({"share": 1.5}, "share 1.5 is out"),
            ({"share": math.nan}, "share nan"), ({"share": 0.05}, "less than one triple"),
            ({"size": 0}, "give 1 to 10"), ({"size": 11}, "give 1 to 10"),
            ({"share": 0.5, "size": 3}, "give only one of them"),
            ({"size": 1, "seed": "x"}, "seed 'x' is not a whole number"),
            ({"size": 1, "split": "dev"}, "no split 'dev'"),
        )
    ),
    *(
        (name, lambda rows=rows: seed_questions(small().graph, rows), InputError, words)
        for name, rows, *words in (
            ("other split", [(0, 0, 3), (2, 0, 3)], "1 of 2 seed triples", "'0 0 3'"),
            ("no seed", np.empty((0, 3), np.int64), "no seed triples"),
            ("id", [(99, 0, 1)], "entity id 99"),
        )
    ),
    ("no list", lambda: pooled([]), UsageError, ("no run is given",)),
    ("twice", lambda: pooled(small_lists()[:1] * 2), UsageError, ("two systems are named 'a'",)),
    *((f"depth {depth}", lambda depth=depth: pooled(depth=depth), UsageError, ("is below 1",))
      for depth in (0, -1, True)),
    ("kinds", lambda: pooled([small_lists()[0], small_lists("raw")[1]]), UsageError,
     ("use one kind",)),
    ("filtered", lambda: pooled(small_lists(raw=True)), InputError,
     ("the run a is already filtered", "--filter raw")),
    ("places", lambda: small_lists("odd"), UsageError, ("places='odd'",)),
    *((f"at {depth}", lambda depth=depth: pooled().at(depth), UsageError, ("has 1 to 3",))
      for depth in (0, 4)),
    ("without", lambda: pooled().without("c"), UsageError, ("is not in this pool",)),
    ("rules", lambda: write_pool("x", pooled(), [""] * 99), UsageError, ("rules for",)),
    ("run twice", lambda: system_names(["a.run", "a.run"]), UsageError, ("given twice",)),
    ("comma", lambda: system_names(["a,b.run"]), UsageError, ("comma",)),
)  # fmt: skip


def test_a_run_of_other_questions_or_entities_is_refused() -> None:
    case, seeds = small(), small().questions
    run = case.runs()["a"]
    named = kgtrec.Run(
        [f"q{i}" for i in range(len(run))], run.offsets, run.documents, run.scores, run.docnos, 7
    )
    with pytest.raises(InputError, match=r"none of the 2 seed questions .*--questions"):
        run_lists(named, seeds, "a")
    other = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], n_entities=9)
    _, run = kgtrec.rank(np.zeros((2, 9)), other.questions(), run_depth=3)
    with pytest.raises(InputError, match="run a has 9 entities"):
        run_lists(run, seeds, "a")


HEADER = "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
LABELLED = "head\trelation\ttail\tlabel"


@pytest.mark.parametrize(("read", "text", "said"), [
    (read_pool, "", "the file is empty"),
    (read_pool, HEADER, "no pooled triple"),
    (read_pool, "a\tb\n", r":1: header 'a\\tb'"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t1\ta:1\n", ":2: 7 columns instead of 8"),
    (read_pool, HEADER + "0\t0\t1\tleft\thead0\t1\ta:1\t\n", ":2: side 'left'"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t1\ta\t\n", ":2: systems 'a'"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t1\ta:1,a:2\t\n", ":2: systems 'a:1,a:2'"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t1\ta:x\t\n", ":2: systems 'a:x'"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t2\ta:1,b:2\t\n", ":2: depth '2' with"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t0\ta:0\t\n", ":2: depth '0'"),
    (read_pool, HEADER + "0\t0\tzz\thead\thead0\t1\ta:1\t\n", ":2: tail 'zz' is not in the graph"),
    (read_pool, HEADER + "0\t0\t1\thead\thead0\t1\ta:1\t\n" * 2, ":3: '0 0 1' is also in line 2"),
    (read_question_ids, "", "the file is empty"),
    (read_question_ids, "head0\t1\n", ":1: "),
    (read_question_ids, "q0\t1\t0\n", ":1: the name 'q0'"),
    (read_question_ids, "head0\t1\t0\nhead1\tx\t0\n", ":2: entity 'x'"),
    (read_question_ids, "head0\t1\tx\n", ":1: relation 'x'"),
    (read_question_ids, "head0\t1\t0\nhead0\t2\t0\n", ":2: 'head0' is also in line 1"),
    (read_question_ids, "head0\t1\t0\nhead1\t1\t0\n", r":2: '\(\?, 0, 1\)' is also in line 1"),
    (read_relation_types, "", "the file is empty"),
    (read_relation_types, "0\tA\n", ":1: "),
    (read_relation_types, "0\tA\t \n", ":1: "),
    (read_relation_types, "0\tA\tB\nx\tA\tB\n", ":2: relation 'x'"),
    (read_relation_types, "0\tA\tB\n0\tA\tB\n", ":2: relation '0' is also in line 1"),
    (read_judgements, "", "the file is empty"),
    (read_judgements, f"{LABELLED}\n", "no judgement"),
    (read_judgements, "0\t0\t1\n", ":1: 3 columns instead of 4"),
    (read_judgements, f"{LABELLED}\tlink\n0\t0\t1\tY\n", ":2: 4 columns instead of 5"),
    (read_judgements, f"{LABELLED}\tlabel\n0\t0\t1\tY\tN\n", ":1: column 'label' appears twice"),
    (read_judgements, "0\t0\t1\tY\n0\t0\t2\tyes\n1\t0\t2\ty\n",
         r"2 faults; write Y, N or \?\n  line 2: label 'yes'\n  line 3: label 'y'"),
    (read_judgements, "0\t0\t1\tY\n0\t0\t2\t \n", ":2: an empty label; .*blank"),
    (read_judgements, "0\t0\tzz\tY\n", ":1: tail 'zz' is not in the graph"),
    (read_judgements, "0\t\t1\tY\n", ":1: an empty relation"),
    (read_judgements, "0\t0\t1\tY\n0\t0\t1\tN\n0\t0\t1\t?\n",
         r"2 faults; .*\n  line 2: '0 0 1' is labelled 'N', and otherwise in .*:1\n  line 3"),
    (read_judgements, "0\t0\t1\tY\n\n0\t0\t2\tY\n", ":2: an empty line"),
])  # fmt: skip
def test_wrong_files_are_refused_with_their_lines(
    tmp_path: Path, read: Callable[..., object], text: str, said: str
) -> None:
    path = tmp_path / "file.tsv"
    path.write_bytes(text.encode())
    with pytest.raises(FileError, match=said):
        read(path, small().graph)


def test_a_question_list_renames_the_questions(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(
        train=[(0, 0, 1)], test=[(1, 0, 2)], entities=["a b", "50 %", "c"], relations=["is in"]
    )
    kgtrec.write_questions(graph.questions(), tmp_path / "q.tsv")
    assert "50%20%25" in (tmp_path / "q.tsv").read_text()
    names = read_question_ids(tmp_path / "q.tsv", graph)
    assert names == {(0, 2, 0): "head0", (1, 1, 0): "tail0"}
    renamed = {key: f"{name[:4]}x{name[4:]}" for key, name in names.items()}
    assert seed_questions(graph, [(1, 0, 2)], names=renamed).ids == ["headx0", "tailx0"]
    few = seed_questions(small().graph, small().seeds, names={})
    with pytest.raises(UsageError, match="2 of 2 seed questions have no name"):
        run_lists(small().runs()["a"], few, "a")


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


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph with blanks in its labels, seeds, two runs and the scores that they are from."""
    for name, scores in write_case(tmp_path).items():
        np.save(tmp_path / f"{name}.npy", scores)
    return tmp_path


def run(folder: Path, *arguments: object, seeds: str = "seed.tsv") -> tuple[str, str]:
    return call(pool_command, *place_of(folder, seeds), *arguments)


def test_the_command_writes_the_pool_of_the_library(folder: Path) -> None:
    out, a, b = folder / "pool.tsv", folder / "a.run", folder / "b.run"
    output, _ = run(folder, a, b, "-o", out, "--depth", 4, "--by-category")
    graph = kgtrec.read_graph(folder / "graph")
    pool, rules = read_pool(out, graph)
    seeds = seed_questions(graph, graph.splits["test"][:8])
    lists = [run_lists(path, seeds, name) for path, name in ((a, "a"), (b, "b"))]
    expected = make_pool(lists, seeds, 4)
    assert places_of(pool) == places_of(expected)
    assert rules == trivial_rules(expected, categories=relation_categories(graph))
    assert expected.overlap_table().to_text() in output
    assert system_names(["x/a.run", "b.run.gz", "c.txt"]) == ["a", "b", "c"]
    assert system_names(["x/a.run", "y/a.run", "b"]) == ["x/a.run", "y/a.run", "b"]
    run(folder, folder / "a.npy", b, "-o", out, "--depth", 4)
    assert places_of(read_pool(out, graph)[0]) == places_of(expected)
    printed = json.loads(run(folder, a, b, "-o", out, "--depth", 4, "--format", "json")[0])
    assert printed["depths"]["4"]["pooled"] == len(pool)
    assert printed["systems"]["a"]["alone"] == expected.unique()[0]


def test_the_command_refuses_bad_input(folder: Path) -> None:
    out, a = folder / "pool.tsv", folder / "a.run"
    (folder / "other.tsv").write_text("ent 0\trel 0\tnobody\n")
    (folder / "broken.run").write_text("head0 Q0 ent%200 1 high t\n")
    (folder / "strange.run").write_text("".join(f"head{i} Q0 Mars 1 1 t\n" for i in range(40)))
    (folder / "text.npy").write_text("scores")
    (folder / "empty").mkdir()
    for arguments, seeds, said in (
        ((a, "-o", a), "seed.tsv", "would overwrite an input"),
        ((a, "-o", folder / "graph" / "test.txt"), "seed.tsv", "would overwrite the graph"),
        ((a,), "other.tsv", "other.tsv:1: tail 'nobody'"),
        ((folder / "broken.run",), "seed.tsv", "broken.run:1: score 'high'"),
        ((folder / "strange.run",), "seed.tsv", "not entities of the graph, .* 'Mars'"),
        ((a, "--questions", folder / "seed.tsv"), "seed.tsv", "seed.tsv: 8 faults"),
        ((a, "--rows", "instances"), "seed.tsv", "these are all runs"),
        ((folder / "text.npy",), "seed.tsv", "text.npy: .*numpy.save"),
        ((folder / "empty",), "seed.tsv", "empty: no .npy shard"),
        ((folder / "none.npz",), "seed.tsv", "none.npz: No such file"),
    ):
        with pytest.raises(KgtrecError, match=said):
            run(folder, "-o", out, *arguments, seeds=seeds)
        assert not out.exists()


# -- Pools from scores, ranked at once -------------------------------------------------------------


FORMS = st.sampled_from(["whole", "seeds", "instances", "parts"])


@given(case=cases(), depth=st.integers(1, 8), kind=KINDS, form=FORMS)
def test_scores_are_pooled_as_their_runs_would_be(
    case: Case, depth: int, kind: str, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, seeds, lists = tmp_path_factory.mktemp("s"), case.questions, []
    number = {name: i for i, name in enumerate(case.graph.questions("test").ids)}
    rows = np.arange(len(number))
    if form == "instances":
        rows = questions_of_instances(case)
    elif form == "seeds" and len(seeds) < len(number):  # otherwise they are as in the split
        rows = [number[one] for one in seeds.ids]
    for name, scores in case.scores.items():
        path = place / f"{name}.npy"
        if form == "parts":
            path = place / name
            path.mkdir()
            for part, own in enumerate(np.array_split(scores, 2)):
                np.save(path / f"{part}.npy", own)
        else:
            np.save(path, scores[rows])
        assert is_scores(path)
        per = "instances" if form == "instances" else "questions"
        lists.append(score_lists(path, seeds, name, depth, places=kind, rows=per, progress=False))
    assert places_of(make_pool(lists, seeds, depth)) == slow_pool(case, depth, kind)


def questions_of_instances(case: Case) -> list[int]:
    """Question of every triple with its head asked, then with its tail asked."""
    questions = case.graph.questions("test")
    columns = questions.side.tolist(), questions.entity.tolist(), questions.relation.tolist()
    row = {key: i for i, key in enumerate(zip(*columns, strict=True))}
    triples = case.graph.splits["test"].tolist()
    return [row[0, t, r] for _, r, t in triples] + [row[1, h, r] for h, r, _ in triples]


def test_a_factorised_model_and_distances(tmp_path: Path) -> None:
    case = small()
    random = np.random.default_rng(3)
    questions, n = case.graph.questions(), case.graph.n_entities
    queries, entities = random.random((len(questions), 4)), random.random((n, 4))
    np.savez(tmp_path / "model.npz", queries=queries, entities=entities)
    np.save(tmp_path / "far.npy", -(queries @ entities.T))
    seeds = case.questions
    one = score_lists(tmp_path / "model.npz", seeds, "m", 5)
    other = score_lists(tmp_path / "far.npy", seeds, "m", 5, higher_is_better=False)
    assert one.entities.tolist() == other.entities.tolist()
    assert one.offsets.tolist() == other.offsets.tolist()


def test_wrong_scores_are_refused(tmp_path: Path) -> None:
    case, path = small(), tmp_path / "s.npy"
    seeds, right = case.questions, case.scores["a"]
    broken = right.copy()
    broken[:, 4] = np.nan
    for scores, kind, said, options in (
        (right[:-1], FileError, r"s.npy: 5 rows of scores, but the split 'test' has 6", {}),
        (right[:, :-1], InputError, r"s.npy: .*7 columns", {}),
        (broken, InputError, r"s.npy: .*NaN", {}),
        (right[0], FileError, r"s.npy: .*two-dimensional", {}),
        (right.astype(int), InputError, r"s.npy: .*dtype int64", {}),
        (right, UsageError, "places='mixed'", {"places": "mixed"}),
        (right, UsageError, "rows='lines'", {"rows": "lines"}),
        (right, UsageError, "depth 0 is below 1", {"depth": 0}),
    ):
        np.save(path, scores)
        with pytest.raises(kind, match=said):
            score_lists(path, seeds, "s", **{"depth": 3, **options})
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [0, 0, 2], [0, 0, 3]], n_entities=5)
    few = seed_questions(graph, [(0, 0, 1)])  # the split has four questions, six instances
    for size, per, said in ((6, "questions", "--rows instances"), (4, "instances", "--rows q")):
        np.save(path, np.zeros((size, 5)))
        with pytest.raises(FileError, match=said):
            score_lists(path, few, "s", 3, rows=per)
    np.save(path, broken)
    assert len(score_lists(path, seeds, "s", 3, nan="worst").entities)
    with pytest.raises(FileError, match="No such file"):
        score_lists(tmp_path / "none.npy", seeds, "s", 3)
    for name in ("s.npy", "s.npz", "ranks.parquet"):
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(FileError, match=f"{name}: this file has scores or ranks, not a TREC"):
            run_lists(tmp_path / name, seeds, "s")
