"""Files of predictions: the same lists in every format, and errors of faulty files."""

from __future__ import annotations

import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.predictions.readers import PREDICTIONS

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
    lines = [
        json.dumps(
            {("tail", "head")[side]: entity, "relation": relation, "predictions": predictions}
        )
        for (side, entity, relation), predictions in LISTS.items()
    ]
    path.write_text("\n".join(lines) + "\n")


def _anyburl(path: Path, *, tails_first: bool = False) -> None:
    text = ""
    for head, relation, tail in TEST:
        text += f"{head} {relation} {tail}\n"
        keys = {"Heads": (0, tail, relation), "Tails": (1, head, relation)}
        for name, key in sorted(keys.items(), reverse=tails_first):
            text += f"{name}: " + "".join(f"{e}\t{score}\t" for e, score in LISTS[key]) + "\n"
    path.write_text(text, encoding="utf-8")


def _frame(path: Path) -> None:
    rows = []
    for (side, query, relation), predictions in LISTS.items():
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


@pytest.mark.parametrize("name", ["anyburl", "anyburl, tails first", "trec"])
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


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("sides", ["head", "tail"])
def test_frames_of_triples_are_lists_of_the_sides_that_are_asked(
    home: Path, ending: str, sides: str
) -> None:
    side = ("head", "tail").index(sides)
    questions = kgtrec.read_graph(home / "g").questions(sides=sides)
    keep = {key: predictions for key, predictions in LISTS.items() if key[0] == side}
    records = [
        {("tail", "head")[side]: entity, "relation": relation,
         "predictions": sorted(predictions, key=lambda pair: pair[1])[::-1]}
        for (_, entity, relation), predictions in keep.items()
    ]  # fmt: skip
    everything = dict(LISTS)
    try:
        for key in set(LISTS) - set(keep):
            del LISTS[key]
        _frame(home / f"f{ending}")
    finally:
        LISTS.update(everything)
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


MALFORMED = {
    "anyburl, no triple": ("anyburl", "a b\nHeads:\nTails:\n", ":1: 'a b' instead of a triple"),
    "anyburl, no heads": ("anyburl", "a r b\nHead: c\t1\n", ":2: 'Head: c\\t1' instead of"),
    "anyburl, heads twice": ("anyburl", "a r b\nHeads: c\t1\nHeads:\n", ":3: 'Heads:' instead"),
    "anyburl, tails twice": ("anyburl", "a r b\nTails: c\t1\nTails:\n", ":3: 'Tails:' instead"),
    "anyburl, tails cut": ("anyburl", "a r b\nTails: c\t1\n", "ends before the line Heads:"),
    "anyburl, odd": ("anyburl", "a r b\nHeads: c\t1\td\nTails:\n", ":2: 3 fields, but entities"),
    "anyburl, score": ("anyburl", "a r b\nHeads: c\tx\n", ":2: score 'x' of 'c'"),
    "anyburl, NaN": ("anyburl", "a r b\nHeads: c\tnan\n", ":2: score 'nan' of 'c'"),
    "anyburl, cut": ("anyburl", "a r b\nHeads: c\t1\n", ":2: the file ends before the line Tails:"),
    "anyburl, empty": ("anyburl", "", ": no lists"),
    "jsonl, no JSON": ("jsonl", "{}x\n", ":1: '{}x' is not JSON"),
    "jsonl, list": ("jsonl", "[1]\n", ":1: [1], not an object"),
    "jsonl, deep": ("jsonl", "[" * 100_000 + "\n", "is not JSON"),
    "jsonl, neither": ("jsonl", '{"relation": "r"}\n', ":1: neither head nor tail"),
    "jsonl, both": ("jsonl", '{"head": "a", "tail": "b"}\n', ":1: head and tail in"),
    "jsonl, relation": ("jsonl", '{"head": "a", "relation": 3}\n', ":1: relation is 3"),
    "jsonl, none": ("jsonl", '{"head": "a", "relation": "r"}\n', ":1: predictions are None"),
    "jsonl, entry": (
        "jsonl", '{"head": "a", "relation": "r", "predictions": ["b", 1]}\n', ":1: a wrong "
        "prediction: 1",
    ),
    "jsonl, score": (
        "jsonl", '{"head": "a", "relation": "r", "predictions": [["b", NaN]]}\n', "score nan of",
    ),
    "jsonl, mixed": (
        "jsonl",
        '{"head": "a", "relation": "r", "predictions": [["b", 1]]}\n'
        '{"head": "b", "relation": "s", "predictions": ["b"]}\n',
        ":2: a list without scores after lists with them",
    ),
    "jsonl, bytes": ("jsonl", b'{"head": "\xff"}\n', "is not JSON"),
    "pykeen, name": ("pykeen", "a\n", "neither in .csv nor in .tsv"),
    "pykeen, ids": ("pykeen.csv", "head_id,score\n", ":1: no column head_label"),
    "pykeen, fields": (
        "pykeen.csv", "head_label,relation_label,tail_label,score\na,r\n", ":2: 2 fields",
    ),
    "pykeen, label": (
        "pykeen.csv", "head_label,relation_label,tail_label,score\na,,b,1\n", ":2: an empty label",
    ),
    "pykeen, score": (
        "pykeen.csv", "head_label,relation_label,tail_label,score\na,r,b,\n", ":2: score '' of 'a'",
    ),
    "pykeen, none": (
        "pykeen.csv", "head_label,relation_label,tail_label,score\n", ": no predictions after",
    ),
    "pykeen, open quotation": (
        "pykeen.csv",
        'head_label,relation_label,tail_label,score\na,r,"b,1\na,r,c,2\na,r",s,b,1\n',
        ":2: a quoted field that does not end on the same line",
    ),
    "trec, columns": ("trec", "tail0 Q0 a\n", ":1:"),
    "trec, queries": ("trec", "q1 Q0 a 1 2 x\n", "none of its 1 queries ('q1', ...)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_files_are_named_with_their_line(home: Path, kind: str) -> None:
    form, text, problem = MALFORMED[kind]
    path = home / (f"x.{form.partition('.')[2]}" if "." in form else "x")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    options = ["rank", "--graph", str(home / "g"), "-o", str(home / "o"), "--predictions"]
    outcome = CliRunner().invoke(
        cli, [*options, str(path), "--predictions-format", form.partition(".")[0]]
    )
    assert isinstance(outcome.exception, kgtrec.InputError), outcome.exception
    message = str(outcome.exception)
    assert message.startswith(str(path))
    assert problem in message
    assert "; " in message  # a hint
    assert not (home / "o").exists()


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"x": np.zeros(3)}, "arrays ['x']"),
        ({"t_pred_top10": np.zeros((2, 10), int)}, "of shape (2, 10), for 3 triples"),
        ({"t_pred_top10": np.zeros((3, 10))}, "t_pred_top10 is float64"),
        ({"t_pred_top10": np.full((3, 1), 5)}, "t_pred_top10[0, 0] is 5, not below 5"),
        ({"t_pred_top10": np.array([None, {}], object)}, "not a readable .npz"),
    ],
    ids=["names", "rows", "floats", "range", "pickled"],
)
def test_arrays_that_are_no_top_ten(home: Path, arrays: dict, problem: str) -> None:
    np.savez(home / "p.npz", **arrays)
    questions = kgtrec.read_graph(home / "g").questions()
    with pytest.raises(kgtrec.InputError) as caught:
        kgtrec.rank_lists(home / "p.npz", questions, "ogb-lsc")
    assert str(caught.value).startswith(str(home / "p.npz"))
    assert problem in str(caught.value)


def test_the_command_writes_ranks_run_and_qrels(home: Path) -> None:
    _jsonl(home / "l.jsonl")
    out = [str(home / name) for name in ("r.parquet", "r.run", "r.qrels")]
    base = ["rank", "--graph", str(home / "g"), "--predictions", str(home / "l.jsonl")]
    written = ["-o", out[0], "--write-run", out[1], "--write-qrels", out[2]]
    outcome = CliRunner().invoke(cli, [*base, "--predictions-format", "jsonl", *written])
    assert outcome.exit_code == 0, outcome.output
    assert "5 predicted lists (jsonl), filtered by the graph." in outcome.output
    assert "1 predictions name no entity and keep their places." not in outcome.output
    assert "2 predictions name no entity and keep their places." in outcome.output
    questions = kgtrec.read_graph(home / "g").questions()
    again = kgtrec.rank_lists(out[1], questions, "trec", unlinkable="drop")
    direct = kgtrec.rank_lists(home / "l.jsonl", questions, "jsonl", unlinkable="drop")
    np.testing.assert_array_equal(again.greater, direct.greater)
    np.testing.assert_array_equal(again.tied_ahead, direct.tied_ahead)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "give either scores (--scores PATH) or ranked lists"),
        (["--predictions", "x", "--scores", "y"], "give either scores"),
        (["--predictions", "x"], "--predictions needs --predictions-format: anyburl"),
        (
            ["--predictions", "x", "--predictions-format", "jsonl", "--nan", "worst"],
            "without --scores, leave out --nan",
        ),
        (
            ["--scores", "x", "--unlinkable", "drop"],
            "without --predictions, leave out --unlinkable",
        ),
    ],
    ids=["neither", "two", "format", "nan", "unlinkable"],
)
def test_options_that_do_not_fit_are_refused(home: Path, options: list[str], problem: str) -> None:
    outcome = CliRunner().invoke(cli, ["rank", "--graph", "g", "-o", "o", *options])
    assert isinstance(outcome.exception, kgtrec.UsageError)
    assert problem in str(outcome.exception)


def test_formats_are_listed_and_others_register(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "other-1.dist-info").mkdir()
    (home / "other-1.dist-info" / "METADATA").write_text("Name: other\nVersion: 1\n")
    (home / "other-1.dist-info" / "entry_points.txt").write_text(
        f"[{PREDICTIONS.group}]\npairs = kgtrec_other_reader:ROW\n"
    )
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
    assert [point.name for point in entry_points(group=PREDICTIONS.group)] == ["pairs"]
    outcome = CliRunner().invoke(cli, ["formats"])
    assert outcome.exit_code == 0
    for name in (*(row.name for row in PREDICTIONS.rows), "pairs"):
        assert f"\n{name}" in outcome.output
    assert all(len(line) <= 80 for line in outcome.output.splitlines())
    (home / "p").write_text("a r c\n")
    questions = kgtrec.read_graph(home / "g").questions(sides="tail")
    ranks = kgtrec.rank_lists(home / "p", questions, "pairs")
    assert ranks.n_unlisted == 2
    del sys.modules["kgtrec_other_reader"]
