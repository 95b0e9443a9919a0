"""Ranks of predicted lists, against plain Python and against every completion of a list."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from list_cases import ListCase, answers_in, expected, random_case

import kgtrec
from kgtrec._internal.table import Interval
from kgtrec.ranking.lists import ranked_lists

SEEDS = range(25)
Cases = dict[bool, list[tuple[int, ListCase, kgtrec.Graph]]]


def graph_of(case: ListCase, folder: Path) -> kgtrec.Graph:
    for split, rows in case.splits.items():
        (folder / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    return kgtrec.read_graph(folder, progress=False)


def records_of(case: ListCase) -> list[dict[str, Any]]:
    return [
        {
            ("tail", "head")[side]: entity,
            "relation": relation,
            "predictions": [list(p) if case.scored else p[0] for p in predictions],
        }
        for (side, entity, relation), predictions in case.lists.items()
    ]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """Seeds, lists and graphs, with and without scores in the lists."""
    drawn: Cases = {False: [], True: []}
    for scored, seed in itertools.product(drawn, SEEDS):
        case = random_case(seed, scored)
        if case.lists:
            graph = graph_of(case, tmp_path_factory.mktemp("graph"))
            drawn[scored].append((seed, case, graph))
    return drawn


@pytest.mark.parametrize(
    ("scored", "list_order"),
    [(False, "scores"), (True, "scores"), (True, "listed")],
    ids=["order", "scores", "listed"],
)
@pytest.mark.parametrize("unlinkable", ["place", "drop"])
@pytest.mark.parametrize("protocol", ["all", "raw"])
def test_ranks_are_those_of_the_definition(
    cases: Cases, scored: bool, list_order: str, unlinkable: str, protocol: str
) -> None:
    for seed, case, graph in cases[scored]:
        questions = graph.questions(filter=protocol)
        ranks = kgtrec.rank_lists(
            records_of(case), questions, unlinkable=unlinkable, list_order=list_order
        )
        every = [row for rows in case.splits.values() for row in rows]
        others = case.splits["train"] + case.splits["valid"]
        for row in range(len(ranks)):
            question = (
                int(ranks.side[row]),
                graph.entities[int(ranks.given[row])],
                graph.relations[int(ranks.relation[row])],
            )
            answer = graph.entities[int(ranks.answer[row])]
            own = answers_in(case.splits["test"], question)
            for prefix, known in (
                ("", answers_in(every, question)),
                ("macro_", answers_in(others, question) - own),
            ):
                filtered = set() if protocol == "raw" else known
                best, middle, worst, beyond = expected(
                    case, question, answer, filtered, unlinkable, list_order == "listed"
                )
                kinds = [
                    getattr(ranks, f"{prefix}rank")(kind)[row]
                    for kind in ("optimistic", "realistic", "pessimistic")
                ]
                assert getattr(ranks, f"{prefix}unlisted")[row] == beyond, (seed, question)
                assert kinds[0] == best, (seed, question, answer)
                assert kinds[2] == worst
                assert beyond or kinds[1] == middle


KEYS = ("both.realistic.micro.mrr", "tail.realistic.micro.mr", "head.realistic.micro.hits@3",
        "both.realistic.micro.amri", "both.realistic.macro.mrr", "both.realistic.macro.hits@1",
        "both.macro.map_cut_20", "both.macro.ndcg_cut_20")  # fmt: skip


@pytest.mark.slow
def test_intervals_are_the_ends_over_every_completion_of_the_lists(tmp_path: Path) -> None:
    """For every order of the candidates behind a list: scores express it, `rank` ranks it."""
    compared = 0
    for seed in range(25):
        case = random_case(seed, scored=False)
        for question, predictions in case.lists.items():
            case.lists[question] = [p for p in predictions if p[0] in case.entities]
        if not case.lists:
            continue
        (tmp_path / str(seed)).mkdir()
        graph = graph_of(case, tmp_path / str(seed))
        questions = graph.questions()
        result = kgtrec.Result(kgtrec.rank_lists(records_of(case), questions))
        # One question at a time is completed in all ways; the others stay at one end.
        for question in range(len(questions)):
            ranks = result.ranks.subset(result.ranks.question == question)
            if not ranks.n_unlisted:
                continue
            part = kgtrec.Result(ranks)
            if len(_rest(case, graph, questions, question)[1]) > 4:  # 5! rankings take long
                continue
            possible = {key: [] for key in KEYS if key.startswith(("both", part.sides[-1]))}
            for scores in _completions(case, graph, questions, question):
                whole = kgtrec.rank(scores, questions)[0]
                one = kgtrec.Result(whole.subset(whole.question == question))
                for key, values in possible.items():
                    values.append(one[_own(key, part)])
            for key, values in possible.items():
                value = part[_own(key, part)]
                ends = [min(values), max(values)]  # NaN if a question has one candidate
                assert np.allclose(_ends(value), ends, 0, 1e-12, True), (seed, question, key)
                low, high = _ends(value)
                assert low <= value <= high or not isinstance(value, Interval)
                compared += isinstance(value, Interval)
    assert compared > 60


def _own(key: str, result: kgtrec.Result) -> str:
    return f"{result.sides[-1]}.{key.partition('.')[2]}"


def _ends(value: float) -> tuple[float, float]:
    return (value.low, value.high) if isinstance(value, Interval) else (value, value)


def _rest(case: ListCase, graph: Any, questions: Any, question: int) -> list[list[str]]:
    """Listed labels of a question, candidates behind them, and the other entities."""
    names = list(graph.entities)
    side, entity = int(questions.side[question]), names[int(questions.entity[question])]
    relation = graph.relations[int(questions.relation[question])]
    listed = list(dict.fromkeys(p[0] for p in case.lists.get((side, entity, relation), [])))
    known = set(questions.removed[question].tolist())
    rest = [name for name in names if name not in listed and names.index(name) not in known]
    return [listed, rest, [name for name in names if name not in listed and name not in rest]]


def _completions(case: ListCase, graph: Any, questions: Any, question: int) -> Any:
    """Score matrices that continue the list of a question in every possible order."""
    listed, rest, dropped = _rest(case, graph, questions, question)
    names = list(graph.entities)
    for order in itertools.permutations(rest):
        scores = np.zeros((len(questions), len(names)), np.float32)
        for place, name in enumerate([*listed, *order, *dropped]):
            scores[question, names.index(name)] = -place
        yield scores


def test_a_list_of_all_entities_gives_the_ranks_of_the_scores() -> None:
    rng = np.random.default_rng(3)
    triples = rng.integers(0, (30, 3, 30), (80, 3))
    graph = kgtrec.Graph.from_arrays(triples[:40], triples[40:50], triples[50:], 30, 3)
    questions = graph.questions()
    scores = rng.integers(0, 6, (len(questions), 30)).astype(np.float64)  # many ties
    ranks, run = kgtrec.rank(scores, questions, run_depth=30)
    ours, listed = ranked_lists(run, questions)
    assert not ours.unlisted.any()
    assert not ours.macro_unlisted.any()
    for name in ("greater", "equal", "tied_ahead", "candidates"):
        for prefix in ("", "macro_"):
            column = getattr(ranks, prefix + name)
            if prefix + name == "equal":
                continue  # a run has macro candidates; micro ranks filter some of them
            np.testing.assert_array_equal(getattr(ours, prefix + name), column, prefix + name)
    np.testing.assert_array_equal(ours.equal, ranks.equal)
    np.testing.assert_array_equal(listed.documents, run.documents)
    assert dict(kgtrec.Result(ours)) == dict(kgtrec.Result(ranks))
    assert kgtrec.comparable(ours, ranks)


def test_ranks_of_lists_are_saved_joined_and_cut_with_what_is_open(tmp_path: Path) -> None:
    case = random_case(5, scored=False)
    questions = graph_of(case, tmp_path).questions()
    ranks = kgtrec.rank_lists(records_of(case), questions)
    ranks.save(tmp_path / "r.parquet")
    loaded = kgtrec.Ranks.load(tmp_path / "r.parquet")
    np.testing.assert_array_equal(loaded.unlisted, ranks.unlisted)
    half = np.arange(len(ranks)) < len(ranks) // 2
    joined = kgtrec.Ranks.concat([ranks.subset(half), ranks.subset(~half)])
    assert kgtrec.Result(joined).to_json() == kgtrec.Result(loaded).to_json()
    assert ranks.n_unlisted
    low, high = (json.loads(kgtrec.Result(ranks).to_json())["both.realistic.micro.mrr"][end]
                 for end in ("low", "high"))  # fmt: skip
    assert 0 < low < high <= 1
    assert f"{low:.3f}-{high:.3f}" in str(kgtrec.Result(ranks))
    assert all(len(line) <= 80 for line in str(kgtrec.Result(ranks)).splitlines())


def test_answers_outside_their_candidates_are_behind_them_all(tmp_path: Path) -> None:
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [0, 0, 2], [3, 0, 1]], n_entities=5)
    questions = graph.questions().restrict(entities=[1, 3, 4], outside="worst")
    # Beyond their lists, alone in a tie, and without a list.
    records = [
        {"head": "0", "relation": "0", "predictions": [("4", 2.0), ("2", 1.0), ("3", 1.0)]},
        {"tail": "1", "relation": "0", "predictions": [("4", 1.0)]},
    ]
    ranks = kgtrec.rank_lists(records, questions)
    outside = ~np.isin(ranks.answer, [1, 3, 4])
    assert outside.sum() == 3
    for prefix in ("", "macro_"):
        greater, equal, ahead, candidates, unlisted = (
            getattr(ranks, prefix + name)[outside]
            for name in ("greater", "equal", "tied_ahead", "candidates", "unlisted")
        )
        np.testing.assert_array_equal(greater, candidates - 1)
        assert not np.stack([equal, ahead, unlisted]).any()
    ranks.save(tmp_path / "r.parquet")
    assert len(kgtrec.Ranks.load(tmp_path / "r.parquet")) == len(ranks)  # which checks the counts


def test_measures_of_spread_have_no_interval(tmp_path: Path) -> None:
    case = random_case(5, scored=False)
    ranks = kgtrec.rank_lists(records_of(case), graph_of(case, tmp_path).questions())
    with pytest.raises(kgtrec.UsageError, match=r"std has no interval"):
        kgtrec.Result(ranks)["both.realistic.micro.rank_std"]


def test_slices_have_intervals_of_their_own(tmp_path: Path) -> None:
    case = random_case(5, scored=False)
    graph = graph_of(case, tmp_path)
    ranks = kgtrec.rank_lists(records_of(case), graph.questions())
    result = kgtrec.Result(ranks)
    key = "both.realistic.micro.mrr"
    by_relation = result.slice("relation", [key]).to_dict()
    for relation, row in by_relation.items():
        number = list(graph.relations).index(relation)
        alone = kgtrec.Result(ranks.subset(ranks.relation == number))
        assert _ends(row[key]) == pytest.approx(_ends(alone[key]))
    by_category = result.slice("category", [key], graph=graph)
    assert any(isinstance(row[-1], Interval) for row in by_category.rows)


def test_unlinkable_labels_differ_in_what_can_be_compared(tmp_path: Path) -> None:
    graph = graph_of(ListCase({"train": [("a", "r", "b")], "test": [("a", "r", "c")]}), tmp_path)
    questions = graph.questions()
    records = [{"head": "a", "relation": "r", "predictions": ["x", "y", "x", "c"]}]
    placed = kgtrec.rank_lists(records, questions)
    dropped = kgtrec.rank_lists(records, questions, unlinkable="drop")
    assert placed.rank()[1] == 2  # two candidates: no rank is below the last
    assert dropped.rank()[1] == 1
    assert "predictions that name no entity" in kgtrec.comparable(placed, dropped).reasons[0]
    text = str(kgtrec.Result(placed))
    assert "2 predictions name no entity and keep their places." in text
    assert "1 predictions were repeated in a list" in text
    assert "1 questions have no list" in text


def test_lists_made_for_a_triple_serve_it_alone_and_macro_joins_them(tmp_path: Path) -> None:
    """Lists of programs that filter: the question's other answer is missing."""
    graph = graph_of(
        ListCase({"train": [("x", "r", "y")], "test": [("a", "r", "b"), ("a", "r", "c")]}),
        tmp_path,
    )
    (tmp_path / "rules.txt").write_text(
        "a r b\nHeads: a\t0.9\nTails: y\t0.8\tb\t0.5\nx r q\nHeads:\nTails: a\t1\n"
        "a r c\nHeads: a\t0.9\nTails: y\t0.8\tx\t0.7\tc\t0.6\n"
    )
    questions = graph.questions(sides="tail")
    ranks = kgtrec.rank_lists(tmp_path / "rules.txt", questions, "anyburl")
    assert ranks.rank().tolist() == [2, 3]
    assert ranks.macro_rank().tolist() == [4, 3]  # y 0.8, x 0.7, c 0.6, b 0.5
    assert not ranks.macro_unlisted.any()
    assert ranks.manifest["scores"]["predictions"]["not_asked"] == 4


def test_answers_beyond_one_list_come_one_after_the_other() -> None:
    graph = kgtrec.Graph.from_arrays(test=[(0, 0, 1), (0, 0, 2)], n_entities=5, n_relations=1)
    records = [{"head": "0", "relation": "0", "predictions": ["3"]}]
    ends = kgtrec.rank_lists(records, graph.questions(sides="tail")).listed_ends()
    assert ends is not None
    assert [end.macro_greater.tolist() for end in ends] == [[1, 2], [3, 4]]
    assert [end.greater.tolist() for end in ends] == [[1, 1], [3, 3]]


def test_listed_places_decide_among_equal_scores(tmp_path: Path) -> None:
    """AnyBURL orders by more than it prints: its equal confidences are no ties."""
    rows = [("a", "r", "b"), ("a", "r", "c"), ("x", "r", "y"), ("z", "r", "a")]
    graph = graph_of(ListCase({"train": rows[2:], "test": rows[:2]}), tmp_path)
    (tmp_path / "rules.txt").write_text(
        "a r b\nHeads: a\t0.9\nTails: y\t0.5\tb\t0.5\tx\t0.5\n"
        "a r c\nHeads: a\t0.9\nTails: y\t0.5\tx\t0.5\tc\t0.5\n"
    )
    questions = graph.questions(sides="tail")
    ranked = {
        order: ranked_lists(tmp_path / "rules.txt", questions, "anyburl", list_order=order)
        for order in ("scores", "listed")
    }
    tied, placed = (ranks for ranks, _ in ranked.values())
    assert tied.rank().tolist() == [2, 2]
    assert placed.rank().tolist() == [2, 3]
    assert placed.equal.tolist() == [0, 0]
    # Merged by score, with each list's order kept: y, b, x, then c.
    assert placed.macro_rank().tolist() == [2, 4]
    _, run = ranked["listed"]
    assert [graph.entities[i] for i in run.documents] == ["y", "b", "x", "c"]
    assert (np.diff(run.scores) < 0).all()
    assert placed.manifest["scores"]["predictions"]["list_order"] == "listed"
    assert "order of lists: listed against scores" in kgtrec.comparable(placed, tied).reasons
    assert "Answers are ranked by their place in the list" in str(kgtrec.Result(placed))
    unscored = kgtrec.rank_lists([{"head": "a", "relation": "r", "predictions": ["b"]}], questions)
    assert kgtrec.comparable(placed, unscored)


def test_wrong_calls_say_what_to_do(tmp_path: Path) -> None:
    graph = graph_of(ListCase({"test": [("a", "r", "b")]}), tmp_path)
    questions = graph.questions()
    record = {"head": "a", "relation": "r", "predictions": ["b"]}
    with pytest.raises(kgtrec.UsageError, match="its format is missing; give one of anyburl"):
        kgtrec.rank_lists(tmp_path / "x", questions)
    with pytest.raises(kgtrec.UsageError, match="'kgx' is not a format of predictions"):
        kgtrec.rank_lists(tmp_path / "x", questions, "kgx")
    with pytest.raises(kgtrec.UsageError, match="choose 'place' or 'drop'"):
        kgtrec.rank_lists([record], questions, unlinkable="keep")
    with pytest.raises(kgtrec.UsageError, match="choose 'scores' or 'listed'"):
        kgtrec.rank_lists([record], questions, list_order="file")
    with pytest.raises(kgtrec.UsageError, match="leave it out"):
        kgtrec.rank_lists([record], questions, "jsonl")
    with pytest.raises(kgtrec.UsageError, match="have type dict"):
        kgtrec.rank_lists(record, questions)
    with pytest.raises(kgtrec.InputError, match="none of its 1 lists answers a question"):
        kgtrec.rank_lists([record | {"relation": "z"}], questions)
    again = [record, record, record | {"predictions": ["a"]}]
    with pytest.raises(
        kgtrec.InputError, match=r"predictions:3: its question already has a list in line 1"
    ):
        kgtrec.rank_lists(again, questions)
    assert kgtrec.rank_lists(again[:2], questions).manifest["scores"]["predictions"][
        "same_again"
    ] == 1  # fmt: skip
