"""A label serves both questions of a triple: pools are made anew, judged anew, valued anew.

Nothing here is taken out of a deeper pool or of fuller qrels: each depth, and each set of systems,
has its own pool, its own qrels, and average precision by its definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pool_cases import N_ENTITIES, Case, cases

import kgtrec
from kgtrec._internal.bootstrap import Resampling
from kgtrec.errors import FileError, UsageError
from kgtrec.study.pooling.completion import complete
from kgtrec.study.pooling.depths import curves_of_runs, depths_of
from kgtrec.study.pooling.lists import RankedLists, run_lists
from kgtrec.study.pooling.pool import Pool, make_pool, read_pool, write_pool
from kgtrec.study.pooling.reusability import contributors_of, leave_one_out
from kgtrec.study.pooling.seeds import SeedQuestions, seed_questions
from kgtrec.study.pooling.triple_files import Judgements

Qrels = dict[str, dict[str, int]]
Lists = Mapping[str, list[str]]


def qrels_of(seeds: SeedQuestions, pool: Pool, judged: Judgements) -> Qrels:
    """What `complete` writes, by question and label."""
    qrels = complete(seeds, pool, judged).qrels()
    names = qrels.graph.entities[qrels.entities]
    rows: Qrels = {name: {} for name in qrels.ids}
    for i, name in enumerate(qrels.ids):
        for at in range(qrels.offsets[i], qrels.offsets[i + 1]):
            rows[name][names[at]] = int(qrels.labels[at])
    return rows


def mean_ap(qrels: Qrels, lists: Lists) -> float:
    """Mean of average precision over all questions of the qrels."""
    total = 0.0
    for question, labels in qrels.items():
        ranked, hits, own = lists.get(question, []), 0, 0.0
        for place, entity in enumerate(ranked, start=1):
            if labels.get(entity, 0) > 0:
                hits += 1
                own += hits / place
        answers = sum(label > 0 for label in labels.values())
        total += own / answers if answers else 0.0
    return total / len(qrels)


def ranked_of(one: RankedLists, seeds: SeedQuestions) -> dict[str, list[str]]:
    labels = seeds.graph.entities[one.entities]
    return {name: labels[one.offsets[i] : one.offsets[i + 1]] for i, name in enumerate(seeds.ids)}


def check_against_new_pools(
    lists: list[RankedLists], seeds: SeedQuestions, judged: Judgements, depth: int, folder: Path
) -> None:
    """`compare depths` and `reuse`, from the file of one pool, say what new pools say."""
    pool = make_pool(lists, seeds, depth)
    write_pool(folder / "pool.tsv", pool)
    pool, _ = read_pool(folder / "pool.tsv", seeds.graph)
    ranked = {one.name: ranked_of(one, seeds) for one in lists}
    paths = {}
    for one in lists:
        paths[one.name] = folder / f"{one.name}.run"
        one.to_run(seeds).write(paths[one.name])
    qrels = qrels_of(seeds, pool, judged)

    alone = {name: dict.fromkeys(answers, 1) for name, answers in seeds_of(seeds).items()}
    due = [[mean_ap(alone, ranked[name]) for name in ranked]]
    deepest = int(pool.smallest.max())
    for k in range(1, deepest + 1):
        own = qrels_of(seeds, make_pool(lists, seeds, k), judged)
        due.append([mean_ap(own, ranked[name]) for name in ranked])
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map"], resampling=Resampling(resamples=100)
    )
    assert curves.depths == tuple(range(deepest + 1))
    assert np.array(curves.values)[0] == pytest.approx(np.array(due))

    runs = {name: kgtrec.trec.read_run(path) for name, path in paths.items()}
    reuse = leave_one_out(qrels, runs, contributors_of(pool), "map")
    for k, name in enumerate(reuse.systems):
        if name not in reuse.contributors:
            continue
        others = make_pool([one for one in lists if one.name != name], seeds, depth)
        without = qrels_of(seeds, others, judged)
        assert reuse.full[k] == pytest.approx(mean_ap(qrels, ranked[name]))
        assert reuse.left_out[k] == pytest.approx(mean_ap(without, ranked[name]))


def seeds_of(seeds: SeedQuestions) -> dict[str, list[str]]:
    """The seeds that answer each seed question, from the triples."""
    labels = seeds.graph.entities
    by_name: dict[str, list[str]] = {name: [] for name in seeds.ids}
    for name, (side, known, relation) in zip(seeds.ids, seeds.keys, strict=True):
        for h, r, t in seeds.seeds.tolist():
            if r == relation and known == (h if side else t):
                by_name[name].append(labels[t if side else h])
    return by_name


@given(case=cases(3), depth=st.integers(1, N_ENTITIES), share=st.sampled_from([0.3, 0.6, 1.0]),
       seed=st.integers(0, 999))  # fmt: skip
def test_depths_and_reuse_are_those_of_new_pools(
    case: Case, depth: int, share: float, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lists, seeds = case.lists(), case.questions
    random = np.random.default_rng(seed)
    pooled = make_pool(lists, seeds, depth).triples.tolist()
    labels = {(h, r, t): int(random.random() < share) for h, r, t in pooled}
    assume(pooled)
    folder = tmp_path_factory.mktemp("mirror")
    check_against_new_pools(lists, seeds, Judgements(labels, len(labels)), depth, folder)


# --- the example ----------------------------------------------------------------------------------

QUESTIONS = ("?rB", "?rD", "Ar?", "Cr?")


def example(orders: Mapping[str, tuple[str, str, str, str]], folder: Path) -> tuple:
    """Seeds, and lists of systems that are given as entities per question, the best first."""
    (folder / "graph").mkdir()
    (folder / "graph" / "train.txt").write_text("E\tr\tF\n")
    (folder / "graph" / "valid.txt").write_text("E\tr\tG\n")
    (folder / "graph" / "test.txt").write_text("A\tr\tB\nC\tr\tD\n")
    graph = kgtrec.read_graph(folder / "graph")
    seeds = seed_questions(graph, graph.split("test"))
    lists = []
    for name, rows in orders.items():
        text = "".join(
            f"{question} Q0 {entity} 1 {9 - place} x\n"
            for question, row in zip(seeds.ids, rows, strict=True)
            for place, entity in enumerate(row)
        )
        (folder / f"raw-{name}").write_text(text)
        lists.append(run_lists(folder / f"raw-{name}", seeds, name))
    head, tail = graph.entities.index("A"), graph.entities.index("D")
    return seeds, lists, Judgements({(head, 0, tail): 1}, 1)


def test_depth_0_is_the_seeds_alone(tmp_path: Path) -> None:
    orders = {
        "one": ("AEFG", "CAEF", "BEFGD", "EDFG"),
        "two": ("AEFG", "CEFG", "EBFGD", "EDFG"),
        "three": ("EAFG", "ECFG", "BEFGD", "EDFG"),
    }
    seeds, lists, judged = example(orders, tmp_path)
    pool = make_pool(lists, seeds, 2)
    row = [seeds.graph.entities[t[0]] + seeds.graph.entities[t[2]] for t in pool.triples].index(
        "AD"
    )
    assert (pool.sides[row], pool.questions[row]) == ("head", f"{seeds.ids[1]},{seeds.ids[2]}")
    assert depths_of(pool)[seeds.ids[1]]["A"] == depths_of(pool)[seeds.ids[2]]["D"] == 2

    qrels = qrels_of(seeds, pool, judged)
    paths = {one.name: tmp_path / one.name for one in lists}
    for one in lists:
        one.to_run(seeds).write(paths[one.name])
    curves = curves_of_runs(
        qrels, paths, depths_of(pool), ["map"], resampling=Resampling(resamples=100)
    )
    assert curves.values[0][0] == pytest.approx([0.875, 0.75, 0.625])
    check_against_new_pools(lists, seeds, judged, 2, tmp_path)


def test_a_system_is_credited_in_both_questions(tmp_path: Path) -> None:
    orders = {
        "one": ("AEFG", "ACEF", "BEFG", "DEFG"),
        "two": ("AEFG", "CEFG", "EBFG", "EDFG"),
        "three": ("EAFG", "ECFG", "BEFG", "EDFG"),
    }
    seeds, lists, judged = example(orders, tmp_path)
    pool = make_pool(lists, seeds, 2)
    result = leave_one_out(
        qrels_of(seeds, pool, judged),
        {one.name: as_run(ranked_of(one, seeds)) for one in lists},
        contributors_of(pool),
        "map",
    )
    assert (result.full[0], result.left_out[0]) == (0.875, 0.875)
    assert result.judged.tolist() == result.relevant.tolist() == [2, 0, 0]
    check_against_new_pools(lists, seeds, judged, 2, tmp_path)


def as_run(lists: Lists) -> dict[str, dict[str, float]]:
    return {
        name: {entity: -float(i) for i, entity in enumerate(row)} for name, row in lists.items()
    }


# --- files ----------------------------------------------------------------------------------------


def test_sides_must_fit_the_names_of_questions(tmp_path: Path) -> None:
    seeds, _, _ = example({"one": ("AEFG", "CAEF", "BEFG", "EDFG")}, tmp_path)
    path = tmp_path / "pool.tsv"
    first = "head\trelation\ttail\tside\tquestion\tdepth\tsystems\trule\n"
    for side, names in (("both", seeds.ids[1]), ("head", "a,b,c")):
        path.write_text(first + f"A\tr\tD\t{side}\t{names}\t2\tone:2\t\n")
        with pytest.raises(FileError, match=f"questions '{names}' beside side '{side}'"):
            read_pool(path, seeds.graph)


def test_a_comma_in_the_name_of_a_question_is_refused(tmp_path: Path) -> None:
    seeds, lists, _ = example({"one": ("AEFG", "CAEF", "BEFG", "EDFG")}, tmp_path)
    names = {key: f"{name},x" for key, name in seeds.names.items()}
    renamed = seed_questions(seeds.graph, seeds.seeds, names=names)
    with pytest.raises(UsageError, match="comma in its name"):
        make_pool(lists, renamed, 2)
