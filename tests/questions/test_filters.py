"""Filter protocols by name, known triples from files, and the warning that nobody can miss."""

from __future__ import annotations

import gzip
import itertools
import warnings
from pathlib import Path

import numpy as np
import oracle
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.cli.rank.command import rank as rank_command
from kgtrec.cli.report import command as report_command
from kgtrec.errors import FileError, FilterWarning, InputError, UsageError
from kgtrec.questions.filters import PROTOCOLS

SPLITS = {
    "train": [(0, 0, 1), (0, 0, 2), (3, 1, 4)],
    "valid": [(0, 0, 3), (3, 1, 0)],
    "test": [(0, 0, 4), (0, 0, 5), (3, 1, 1)],
}
NAMES = ("train", "valid", "test")


def graph_of(*names: str) -> kgtrec.Graph:
    return kgtrec.Graph.from_arrays(
        **{name: SPLITS[name] for name in names}, n_entities=6, n_relations=2
    )


def quietly(graph: kgtrec.Graph, **how: object) -> kgtrec.Questions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FilterWarning)
        return graph.questions(**how)


def pairs(csr: object) -> list[list[int]]:
    return [row.tolist() for row in csr]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("split", ["valid", "test"])
def test_protocols_are_lists_of_splits(name: str, split: str) -> None:
    expected = {
        "all": NAMES, "test": NAMES, "valid": ("train", "valid"), "raw": (), "none": (),
    }[name]  # fmt: skip
    questions = quietly(graph_of(*NAMES), split=split, filter=name)
    assert questions.filter_splits == expected
    oracle_questions = oracle.ask(SPLITS, split, "both", expected)
    assert pairs(questions.known) == [sorted(q.known) for q in oracle_questions]
    assert pairs(questions.removed) == [sorted(q.removed) for q in oracle_questions]
    described = questions.describe()
    assert described["filter"] == ("raw" if name == "none" else name)
    assert described["filter_left_out"] == [s for s in NAMES if s not in expected]


@pytest.mark.parametrize(
    "names", [c for n in (1, 2, 3) for c in itertools.combinations(NAMES, n) if "test" in c]
)
def test_protocols_take_the_splits_that_exist(names: tuple[str, ...]) -> None:
    graph = graph_of(*names)
    assert quietly(graph, filter="test").filter_splits == names
    there = tuple(name for name in names if name != "test")
    if there:
        assert quietly(graph, filter="valid").filter_splits == there
    else:
        with pytest.raises(UsageError, match=r"'valid' means train, valid.*only test"):
            graph.questions(filter="valid")


def test_names_of_splits_are_a_filter_of_their_own() -> None:
    graph = graph_of(*NAMES)
    for names in (("valid",), ["valid"], {"valid"}):
        assert quietly(graph, filter=names).filter_splits == ("valid",)
    assert quietly(graph, filter="train").filter_splits == ("train",)
    # The long form knows no protocols.
    assert quietly(graph, filter_splits="valid").filter_splits == ("valid",)
    assert quietly(graph, filter=("train",)).describe()["filter"] is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"filter": "dev"}, "filter='dev' is unknown; choose one of all, test, valid, raw"),
        ({"filter": ("dev",)}, "no split 'dev'"),
        ({"filter": 3}, "3 names no splits"),
        ({"filter": "all", "filter_splits": ("train",)}, "both choose the filter"),
        ({"known": "x.tsv", "unknown": "drop"}, "unknown='drop'"),
        ({"known": None}, "known=None is neither a path"),
        ({"known": ["x.tsv", 5]}, "is neither a path nor a list of paths"),
    ],
)
def test_filters_that_are_none(how: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        graph_of(*NAMES).questions(**how)


def test_only_a_filter_without_a_split_warns() -> None:
    graph = graph_of(*NAMES)
    with pytest.warns(FilterWarning, match="'test', as at validation time") as caught:
        graph.questions("test", filter="valid")
    assert caught[0].filename == __file__
    with pytest.warns(FilterWarning, match="leaves out 'valid'"):
        graph.questions(filter=("train", "test"))
    for name in ("all", "test", "raw", None):
        graph.questions(filter=name)  # a warning would be an error here
    graph.questions("valid", filter="valid")  # the protocol for that split


# -- Known triples from files ------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "g"
    folder.mkdir()
    for name, rows in SPLITS.items():
        lines = [f"e{h}\tr{r}\te{t}" for h, r, t in rows]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    questions = kgtrec.read_graph(folder).questions()
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (len(questions), 6)).astype(np.float32)
    np.save(tmp_path / "s.npy", scores)
    return tmp_path


@pytest.mark.parametrize("packed", [False, True])
def test_known_triples_of_a_file_are_extra_known(home: Path, packed: bool) -> None:
    graph = kgtrec.read_graph(home / "g")
    text = b"\xef\xbb\xbfe0\tr0\te0\r\ne0\tr0\te0\r\ne4\tr1\te1\r\n\r\n"
    path = home / ("known.tsv.gz" if packed else "known.tsv")
    path.write_bytes(gzip.compress(text) if packed else text)
    questions = graph.questions(known=path)
    same = graph.questions(extra_known=[(0, 0, 0), (0, 0, 0), (4, 1, 1)])
    assert pairs(questions.known) == pairs(same.known)
    assert questions.fingerprint == same.fingerprint
    assert pairs(questions.known) != pairs(graph.questions().known)
    assert questions.n_extra_known == 3
    assert questions.describe()["known_files"] == [{"file": str(path), "triples": 3, "unknown": 0}]
    both = graph.questions(known=[path, path], extra_known=[(0, 0, 0)])
    assert both.fingerprint == same.fingerprint
    assert both.n_extra_known == 7


def test_labels_that_the_graph_lacks(home: Path) -> None:
    graph = kgtrec.read_graph(home / "g")
    path = home / "known.tsv"
    path.write_text("e0\tr0\te0\ne0\tr9\te1\nnew\tr0\te0\n")
    with pytest.raises(FileError, match=r"known.tsv:2: relation 'r9' is not in the graph") as error:
        graph.questions(known=path)
    assert "1 more lines" in str(error.value)
    questions = graph.questions(known=path, unknown="skip")
    assert questions.describe()["known_files"][0]["unknown"] == 2
    assert questions.fingerprint == graph.questions(extra_known=[(0, 0, 0)]).fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("e0\tr0\n", "known.tsv:1: 2 columns instead of 3"),
        ("e0\tr0\te1\n\ne0\tr0\te2\n", "known.tsv:2: an empty line"),
        ("", "empty"),
    ],
)
def test_known_files_that_are_none(home: Path, text: str, message: str) -> None:
    (home / "known.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        kgtrec.read_graph(home / "g").questions(known=home / "known.tsv")
    with pytest.raises(FileError, match="the file does not exist"):
        kgtrec.read_graph(home / "g").questions(known=home / "nothing.tsv")


# -- The warning, everywhere -------------------------------------------------------------------


def run(command: object, *arguments: object) -> object:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize(
    ("name", "left_out"), [("valid", "test"), ("train,test", "valid"), ("test", None)]
)
def test_a_split_left_out_is_said_wherever_ranks_go(
    home: Path, name: str, left_out: str | None
) -> None:
    out = home / "o.parquet"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = run(rank_command, "--graph", home / "g", "--scores", home / "s.npy", "-o", out,
                    "--filter", name).stdout  # fmt: skip
    said = [w for w in caught if issubclass(w.category, FilterWarning)]
    warning = f"the filter leaves out {left_out}: answers from there count as wrong"
    assert bool(said) is (left_out is not None)
    assert (warning in shown) is (left_out is not None)
    manifest = kgtrec.Ranks.load(out).manifest["questions"]
    assert manifest["filter_left_out"] == ([left_out] if left_out else [])
    assert (warning in run(report_command, out).stdout) is (left_out is not None)
    for form in ("json", "csv", "latex", "markdown"):
        done = run(report_command, out, "--format", form)
        assert (warning in done.stderr) is (left_out is not None)
        assert warning not in done.stdout


def test_the_warning_reaches_stderr_of_the_program(home: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "kgtrec", "rank", "--graph", "g", "--scores", "s.npy", "-o",
         "o.parquet", "--filter", "valid"],
        cwd=home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.startswith("kgtrec: warning: filter leaves out 'test', as at validation")
    assert done.stdout.startswith("kgtrec · g · split test · both sides · filter train, valid")


def test_known_files_on_the_command_line(home: Path) -> None:
    (home / "k.tsv").write_text("e0\tr0\te0\nnew\tr0\te0\n")
    shown = run(
        rank_command, "--graph", home / "g", "--scores", home / "s.npy", "-o", home / "o.parquet",
        "--known", home / "k.tsv", "--unknown", "skip",
    ).stdout  # fmt: skip
    assert "1 further known triples" in shown
    assert "(1 have labels that are not in the graph)" in " ".join(shown.split())
    ranks = kgtrec.Ranks.load(home / "o.parquet")
    expected = kgtrec.read_graph(home / "g").questions(extra_known=[(0, 0, 0)])
    np.testing.assert_array_equal(ranks.candidates, expected.candidates)


def test_raw_and_filtered_ranks_by_definition() -> None:
    graph = graph_of(*NAMES)
    scores = np.random.default_rng(3).integers(0, 5, (len(graph.questions()), 6)).astype("f4")
    for name in ("all", "valid", "raw"):
        questions = quietly(graph, filter=name)
        known = {n for split in questions.filter_splits for n in SPLITS[split]}
        ranks = kgtrec.rank(scores, questions)[0]
        for row in range(len(ranks)):
            h, r, t = SPLITS["test"][ranks.triple[row]]
            tail = ranks.side[row] == 1
            answer, line = (t if tail else h), scores[ranks.question[row]]
            others = [
                e for e in range(6)
                if e != answer and ((h, r, e) if tail else (e, r, t)) not in known
            ]  # fmt: skip
            assert ranks.greater[row] == sum(line[e] > line[answer] for e in others)
            assert ranks.candidates[row] == len(others) + 1


FEW = {"train": [[0, 0, 1]], "valid": [[1, 0, 2], [3, 0, 2]], "test": [[2, 0, 3], [1, 0, 3]]}


def test_no_warning_where_it_is_right() -> None:
    graph = kgtrec.Graph.from_arrays(**FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        questions = graph.questions("valid", filter="valid")
    assert questions.filter_splits == ("train", "valid")
    result = kgtrec.evaluate(np.random.default_rng(0).random((len(questions), 4)), questions)
    assert "WARNING" not in str(result)
    assert "filter train, valid" in str(result)


def test_all_else_is_warned_of() -> None:
    graph = kgtrec.Graph.from_arrays(**FEW)
    for split, how in (
        ("test", {"filter": "valid"}),
        ("train", {"filter": "valid"}),
        ("valid", {"filter": ("train",)}),
        ("valid", {"filter_splits": ("valid",)}),
    ):
        with pytest.warns(FilterWarning, match="filter leaves out"):
            questions = graph.questions(split, **how)
        result = kgtrec.evaluate(np.random.default_rng(0).random((len(questions), 4)), questions)
        assert "filter leaves out" in str(result)


def test_the_command_line_too(tmp_path) -> None:
    for name, rows in FEW.items():
        text = "".join(f"e{h}\tr\te{t}\n" for h, _, t in rows)
        (tmp_path / f"{name}.txt").write_text(text)
    for split, warned in (("valid", False), ("test", True)):
        n_questions = len(kgtrec.read_graph(tmp_path).questions(split))
        np.save(tmp_path / "s.npy", np.random.default_rng(0).random((n_questions, 4)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = CliRunner().invoke(
                cli,
                ["rank", "--graph", str(tmp_path), "--scores", str(tmp_path / "s.npy"),
                 "--filter", "valid", "--split", split, "-o", str(tmp_path / f"{split}.parquet")],
            )  # fmt: skip
        assert done.exit_code == 0, done.stderr
        assert any("leaves out" in str(one.message) for one in caught) == warned
        report = CliRunner().invoke(cli, ["report", str(tmp_path / f"{split}.parquet")])
        assert ("leaves out" in report.output) == warned
