"""Random predicted lists and their ranks, in plain Python over labels."""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from oracle import reciprocal_within
from question_cases import ranking_case
from refusals import each_row

import kgtrec
from kgtrec._internal.table import Interval
from kgtrec.cli import cli
from kgtrec.graph.formats import GRAPHS
from kgtrec.predictions.readers import PREDICTIONS
from kgtrec.ranking.lists import rank_lists_with_run

Triple = tuple[str, str, str]
Question = tuple[int, str, str]  # 0: the head is asked; given entity; relation


@dataclass
class ListCase:
    """A graph of labels, and for some questions a list of labels or of (label, score)."""

    splits: dict[str, list[Triple]]
    lists: dict[Question, list[tuple[str, float | None]]] = field(default_factory=dict)
    scored: bool = False

    @property
    def entities(self) -> list[str]:
        """Labels in byte order."""
        rows = [row for split in self.splits.values() for row in split]
        return sorted({label for head, _, tail in rows for label in (head, tail)})


def random_case(seed: int, scored: bool) -> ListCase:
    """Few entities, many ties, repeats, unknown labels, missing and empty lists."""
    rng = random.Random(seed)
    names = [f"e{number}" for number in range(rng.randint(3, 6))]
    splits: dict[str, list[Triple]] = {}
    for split in ("train", "valid", "test"):
        rows = {
            (rng.choice(names), rng.choice("rs"), rng.choice(names))
            for _ in range(rng.randint(2, 6))
        }
        splits[split] = sorted(rows)
    case = ListCase(splits, scored=scored)
    for side, entity, relation in sorted(questions_of(case)):
        if rng.random() < 0.15:
            continue
        labels = rng.choices([*case.entities, "nobody", "nothing"], k=rng.randint(0, 6))
        scores = [float(rng.randint(0, 3)) if scored else None for _ in labels]
        case.lists[side, entity, relation] = list(zip(labels, scores, strict=True))
    return case


def questions_of(case: ListCase) -> set[Question]:
    """The questions of the test split."""
    heads = {(0, tail, relation) for _, relation, tail in case.splits["test"]}
    return heads | {(1, head, relation) for head, relation, _ in case.splits["test"]}


def answers_in(rows: list[Triple], question: Question) -> set[str]:
    """Entities that answer a question in some triples."""
    side, entity, relation = question
    if side == 0:
        return {h for h, r, t in rows if (r, t) == (relation, entity)}
    return {t for h, r, t in rows if (h, r) == (entity, relation)}


def expected(
    case: ListCase,
    question: Question,
    answer: str,
    filtered: set[str],
    unlinkable: str,
    by_place: bool = False,
) -> tuple[float, float, float, bool]:
    """Best, realistic and worst rank of an answer among unfiltered candidates; is it beyond?"""
    candidates = len([e for e in case.entities if e not in filtered or e == answer])
    ordered = list(enumerate(case.lists.get(question, [])))
    if case.scored and not by_place:
        ordered.sort(key=lambda item: -item[1][1])
    seen: set[str] = set()
    left: list[tuple[str, float | None]] = []
    for _, (label, score) in ordered:
        drop = unlinkable == "drop" and label not in case.entities
        if label in seen or drop or (label in filtered and label != answer):
            continue
        seen.add(label)
        left.append((label, score))
    own = next((score for label, score in left if label == answer), "beyond")
    if own == "beyond":
        return min(len(left) + 1, candidates), -1, candidates, True
    if case.scored and not by_place:
        above = sum(score > own for _, score in left)
        tied = sum(score == own for _, score in left) - 1
    else:
        above, tied = [label for label, _ in left].index(answer), 0
    best = min(above + 1, candidates)
    worst = min(best + tied, candidates)
    return best, (best + worst) / 2, worst, False


# -- Ranks of predicted lists, against plain Python and against every completion of a list ---------


SEEDS = range(40)
Cases = dict[bool, list[tuple[int, ListCase, kgtrec.Graph]]]


def graph_of(case: ListCase, folder: Path) -> kgtrec.Graph:
    for split, rows in case.splits.items():
        (folder / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    return kgtrec.read_graph(folder, progress=False)


def records_of(lists: Any, scored: bool = True) -> list[dict[str, Any]]:
    """JSON objects of lists by question."""
    return [
        {
            ("tail", "head")[side]: entity,
            "relation": relation,
            "predictions": [list(p) if scored else p[0] for p in predictions],
        }
        for (side, entity, relation), predictions in lists.items()
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
def test_ranks_are_those_of_the_definition(cases: Cases, scored: bool, list_order: str) -> None:
    for seed, case, graph in cases[scored]:
        protocol, unlinkable = ("all", "raw")[seed % 2], ("place", "drop")[seed // 2 % 2]
        records, questions = records_of(case.lists, scored), graph.questions(filter=protocol)
        ranks = kgtrec.rank_lists(records, questions, unlinkable=unlinkable, list_order=list_order)
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


KEYS = (
    "both.realistic.micro.mrr",
    "tail.realistic.micro.mr",
    "head.realistic.micro.hits@3",
    "both.realistic.micro.amri",
    "both.realistic.macro.mrr",
    "both.realistic.macro.hits@1",
    "both.macro.map_cut_20",
    "both.macro.ndcg_cut_20",
)


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
        result = kgtrec.Result(kgtrec.rank_lists(records_of(case.lists, case.scored), questions))
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
                assert low <= float(value) <= high or not isinstance(value, Interval)
                compared += isinstance(value, Interval)
    assert compared > 60


def _own(key: str, result: kgtrec.Result) -> str:
    return f"{result.sides[-1]}.{key.partition('.')[2]}"


def _ends(value: float | Interval) -> tuple[float, float]:
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


@pytest.mark.parametrize("scored", [False, True], ids=["order", "scores"])
def test_answers_beyond_their_lists_count_0_in_listed_mrr(cases: Cases, scored: bool) -> None:
    """Numbers instead of intervals, overall and per relation, in every rank type and in samples."""
    beyond = 0
    for _, case, graph in cases[scored]:
        ranks = kgtrec.rank_lists(records_of(case.lists, scored), graph.questions())
        every = [row for rows in case.splits.values() for row in rows]
        facts = []
        for side, given, relation, answer in zip(
            ranks.side, ranks.given, ranks.relation, ranks.answer, strict=True
        ):
            question = int(side), graph.entities[int(given)], graph.relations[int(relation)]
            known = answers_in(every, question)
            facts.append(expected(case, question, graph.entities[int(answer)], known, "place"))
        result = kgtrec.Result(ranks)
        for position, kind in enumerate(("optimistic", "realistic", "pessimistic")):
            for key, most in (("listed_mrr", math.inf), ("mrr_within@2", 2)):
                due = [
                    reciprocal_within(Fraction(fact[position]), most, not fact[3]) for fact in facts
                ]
                got = result[f"both.{kind}.micro.{key}"]
                assert isinstance(got, float)
                assert not isinstance(got, Interval)
                assert got == pytest.approx(float(sum(due) / len(due)), rel=1e-12)
                for relation in np.unique(ranks.relation).tolist():
                    rows = ranks.relation == relation
                    part = [value for value, row in zip(due, rows, strict=True) if row]
                    row = result.slice("relation", [f"both.{kind}.micro.{key}"]).to_dict()
                    value = row[graph.relations[relation]][f"both.{kind}.micro.{key}"]
                    assert value == pytest.approx(float(sum(part) / len(part)), rel=1e-12)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kgtrec.measures.averaging._ITEMS", 2)
            pieces = kgtrec.Result(ranks)["both.realistic.micro.mrr_within@2"]
        assert pieces == result["both.realistic.micro.mrr_within@2"]
        low = result["both.optimistic.micro.listed_mrr"]
        assert low <= _ends(result["both.optimistic.micro.mrr"])[0] + 1e-12
        beyond += ranks.n_unlisted
    assert beyond > 100


def test_a_list_of_all_entities_gives_the_ranks_of_the_scores() -> None:
    questions, scores = ranking_case(3)  # with many ties
    ranks, run = kgtrec.rank(scores, questions, run_depth=questions.n_labels)
    ours, listed = rank_lists_with_run(run, questions, None, "place", "scores")
    assert not ours.unlisted.any()
    assert not ours.macro_unlisted.any()
    for name in ("greater", "equal", "tied_ahead", "candidates"):
        for each in (name, f"macro_{name}"):
            np.testing.assert_array_equal(getattr(ours, each), getattr(ranks, each), each)
    np.testing.assert_array_equal(listed.documents, run.documents)
    assert dict(kgtrec.Result(ours)) == dict(kgtrec.Result(ranks))
    assert kgtrec.comparable(ours, ranks)


def test_ranks_of_lists_are_saved_joined_and_cut_with_what_is_open(tmp_path: Path) -> None:
    case = random_case(5, scored=False)
    graph = graph_of(case, tmp_path)
    ranks = kgtrec.rank_lists(records_of(case.lists, case.scored), graph.questions())
    ranks.save(tmp_path / "r.parquet")
    loaded = kgtrec.Ranks.load(tmp_path / "r.parquet")
    np.testing.assert_array_equal(loaded.unlisted, ranks.unlisted)
    half = np.arange(len(ranks)) < len(ranks) // 2
    joined = kgtrec.Ranks.concat([ranks.subset(half), ranks.subset(~half)])
    assert kgtrec.Result(joined).to_json() == kgtrec.Result(loaded).to_json()
    result, key = kgtrec.Result(ranks), "both.realistic.micro.mrr"
    low, high = (json.loads(result.to_json())[key][end] for end in ("low", "high"))
    assert 0 < low < high <= 1
    assert f"{low:.3f}-{high:.3f}" in str(result)
    assert all(len(line) <= 80 for line in str(result).splitlines())
    for relation, row in result.slice("relation", [key]).to_dict().items():
        number = list(graph.relations).index(relation)
        alone = kgtrec.Result(ranks.subset(ranks.relation == number))
        assert _ends(row[key]) == pytest.approx(_ends(alone[key]))
    with pytest.raises(kgtrec.UsageError, match=r"std has no interval"):
        result["both.realistic.micro.rank_std"]
    by_category = result.slice("category", [key], graph=graph)
    assert any(isinstance(row[-1], Interval) for row in by_category.rows)


# -- Files of predictions: the same lists in every format, and errors of faulty files --------------


TRAIN = [("a", "r", "b"), ("b", "r", "c"), ("c d", "s", "é")]
TEST = [("a", "r", "c"), ("b", "s", "é"), ("a", "r", "é")]
# Candidates of the tail, then of the head, of every test question: labels with scores.
LISTS = {
    (1, "a", "r"): [("b", 0.9), ("é", 0.5), ("c d", 0.5), ("c", 0.25), ("nobody", 0.125)],
    (1, "b", "s"): [("é", 1.0), ("a", 0.5)],
    (0, "c", "r"): [("b", 0.75), ("nobody", 0.5), ("a", 0.5)],
    (0, "é", "s"): [],
    (0, "é", "r"): [("c", 3.0)],
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "g").mkdir()
    for split, rows in (("train", TRAIN), ("test", TEST)):
        text = "".join("\t".join(row) + "\n" for row in rows)
        (tmp_path / "g" / f"{split}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def _jsonl(path: Path) -> None:
    path.write_text("\n".join(map(json.dumps, records_of(LISTS))) + "\n")


def _anyburl(path: Path, *, tails_first: bool = False) -> None:
    text = ""
    for head, relation, tail in TEST:
        text += f"{head} {relation} {tail}\n"
        keys = {"Heads": (0, tail, relation), "Tails": (1, head, relation)}
        for name, key in sorted(keys.items(), reverse=tails_first):
            text += f"{name}: " + "".join(f"{e}\t{score}\t" for e, score in LISTS[key]) + "\n"
    path.write_text(text, encoding="utf-8")


def _frame(path: Path, lists: dict) -> None:
    rows = []
    for (side, query, relation), predictions in lists.items():
        for entity, score in predictions:
            head, tail = (entity, query) if side == 0 else (query, entity)
            rows.append(f"1,{head},2,{relation},3,{tail},{score}")
    header = "head_id,head_label,relation_id,relation_label,tail_id,tail_label,score"
    text = "\n".join([header, *reversed(rows)]) + "\n"
    path.write_text(text.replace(",", "\t") if path.suffix == ".tsv" else text, encoding="utf-8")


def _run(path: Path, questions: kgtrec.Questions) -> None:
    graph, lines = questions.graph, []
    for number, name in enumerate(questions.ids):
        key = (
            int(questions.side[number]),
            graph.entities[int(questions.entity[number])],
            graph.relations[int(questions.relation[number])],
        )
        lines += [f"{name} Q0 {e.replace(' ', '%20')} 1 {score} x" for e, score in LISTS[key]]
    path.write_text("\n".join(lines) + "\nother7 Q0 a 1 2 x\n", encoding="utf-8")


@each_row("name", ["anyburl", "anyburl, tails first", "trec"])
def test_every_format_gives_the_same_ranks(home: Path, name: str) -> None:
    questions = kgtrec.read_graph(home / "g").questions()
    _jsonl(home / "l.jsonl")
    base = kgtrec.rank_lists(home / "l.jsonl", questions, "jsonl")
    path = home / "lists"
    name, _, order = name.partition(", ")
    _anyburl(path, tails_first=bool(order)) if name == "anyburl" else _run(path, questions)
    ranks = kgtrec.rank_lists(path, questions, name)
    for column in ("greater", "equal", "tied_ahead", "unlisted", "macro_greater", "macro_equal"):
        np.testing.assert_array_equal(getattr(ranks, column), getattr(base, column), column)
    # By hand: (a, r, ?) without b (known from train), é for the answer c and c for é.
    tail = {
        ranks.entity_labels[int(a)]: (int(g), int(e))
        for a, g, e, s in zip(ranks.answer, ranks.greater, ranks.equal, ranks.side, strict=True)
        if s == 1 and ranks.relation_labels[int(ranks.relation[0])] == "r"
    }
    assert tail["c"] == (1, 0)  # only "c d" is ahead of c


@pytest.mark.parametrize(("ending", "sides"), [(".csv", "head"), (".tsv", "tail")])
def test_frames_of_triples_are_lists_of_the_sides_that_are_asked(
    home: Path, ending: str, sides: str
) -> None:
    side = ("head", "tail").index(sides)
    questions = kgtrec.read_graph(home / "g").questions(sides=sides)
    keep = {key: predictions for key, predictions in LISTS.items() if key[0] == side}
    by_score = {key: sorted(some, key=lambda pair: pair[1])[::-1] for key, some in keep.items()}
    records = records_of(by_score)
    _frame(home / f"f{ending}", keep)
    for order in ("scores", "listed"):
        base = kgtrec.rank_lists(records, questions, list_order=order)
        ranks = kgtrec.rank_lists(home / f"f{ending}", questions, "pykeen", list_order=order)
        for column in ("greater", "equal", "unlisted", "macro_greater"):
            np.testing.assert_array_equal(getattr(ranks, column), getattr(base, column), column)


def test_top_ten_of_ogb_goes_by_number_and_row(home: Path) -> None:
    graph = kgtrec.read_graph(home / "g")
    number = {label: i for i, label in enumerate(graph.entities)}
    rows = [["b", "c", "é"], ["é", "a", "b"], ["b", "c", "é"]]
    np.savez(home / "p.npz", t_pred_top10=[[number[e] for e in row] for row in rows])
    questions = graph.questions(sides="tail")
    ranks = kgtrec.rank_lists(home / "p.npz", questions, "ogb-lsc")
    ranked = dict(zip(ranks.answer.tolist(), ranks.rank().tolist(), strict=True))
    assert ranked[number["c"]] == 1  # b is known, é another answer
    holes = np.full((3, 10), -1)
    holes[1, 0] = number["é"]
    np.savez(home / "q.npz", t_pred_top10=holes)
    again = kgtrec.rank_lists(home / "q.npz", questions, "ogb-lsc")
    assert again.n_unlisted == 2


def test_formats_are_listed_and_others_register(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "other-1.dist-info").mkdir()
    for name, text in (
        ("METADATA", "Name: other\nVersion: 1\n"),
        ("entry_points.txt", f"[{PREDICTIONS.group}]\npairs = kgtrec_other_reader:ROW\n"),
    ):
        (home / "other-1.dist-info" / name).write_text(text)
    (home / "kgtrec_other_reader.py").write_text(
        "from pathlib import Path\n"
        "from kgtrec.predictions.readers import Format\n"
        "from kgtrec.predictions.readers import lists_of_records\n"
        'ROW = Format("pairs", "Pairs", "head, relation, tail", "kgtrec_other_reader:read")\n'
        "def read(path, questions):\n"
        "    rows = [line.split() for line in Path(path).read_text().splitlines()]\n"
        "    records = [dict(head=h, relation=r, predictions=[t]) for h, r, t in rows]\n"
        "    return lists_of_records(records, questions)\n"
    )
    monkeypatch.syspath_prepend(home)
    outcome = CliRunner().invoke(cli, ["formats"])
    assert outcome.exit_code == 0
    assert len(GRAPHS.rows) == 20
    for name in (*(row.name for row in (*GRAPHS.rows, *PREDICTIONS.rows)), "pairs"):
        assert f"\n{name}" in outcome.output
    assert all(len(line) <= 80 for line in outcome.output.splitlines())
    (home / "p").write_text("a r c\n")
    questions = kgtrec.read_graph(home / "g").questions(sides="tail")
    ranks = kgtrec.rank_lists(home / "p", questions, "pairs")
    assert ranks.n_unlisted == 2
    del sys.modules["kgtrec_other_reader"]
