"""Questions against a construction from sets and dicts, written straight from the definitions."""

from __future__ import annotations

import gzip
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from refusals import each_row
from strategies import GraphCase, graph_cases

import kgtrec
from kgtrec import rank_lists
from kgtrec._internal.csr import Csr
from kgtrec.errors import FileError, FilterWarning
from kgtrec.questions.api import Graph, read_graph
from kgtrec.questions.filters import PROTOCOLS

SPLITS = ["train", "valid", "test"]


@given(case=graph_cases())
def test_against_sets(case: GraphCase) -> None:
    """Every field is that of the oracle."""
    asked, instances = case.oracle_questions()
    questions = case.questions()
    columns = (questions.side, questions.entity, questions.relation)
    assert list(zip(*columns, strict=True)) == [(q.side, q.entity, q.relation) for q in asked]
    assert questions.ids == [question.name for question in asked]
    for name in ("answers", "known", "removed"):
        assert pairs(getattr(questions, name)) == [sorted(getattr(q, name)) for q in asked]
    fields = (questions.instance_question, questions.answers.ids, questions.instance_triple)
    assert list(zip(*fields, strict=True)) == [(i.question, i.answer, i.triple) for i in instances]
    n = case.n_entities
    sizes = [
        (
            len(oracle.micro_candidates(asked[i.question], i.answer, n)),
            len(oracle.macro_candidates(asked[i.question], n)),
        )
        for i in instances
    ]
    assert list(zip(questions.candidates, questions.macro_candidates, strict=True)) == sizes
    assert questions.triple_rows[[i.row for i in instances]].tolist() == [*range(len(instances))]
    for name in ("entity", "relation", "instance_question", "instance_triple", "triple_rows"):
        assert getattr(questions, name).dtype == np.int32
    assert (questions.side.dtype, questions.candidates.dtype) == (np.int64, np.int64)


def test_terms_that_questions_lack_are_absent_attributes() -> None:
    rows = np.array([[0, 0, 1], [1, 1, 2]])
    graph = Graph.from_arrays(rows, None, rows[:1], 3, 2)
    given = {"both": {"entity", "relation"}, "relation": {"entity", "tail"}}
    for sides, names in given.items():
        questions = graph.questions(sides=sides, filter="raw")
        for name in ("entity", "relation", "tail", "statement"):
            assert hasattr(questions, name) == (name in names), (sides, name)
            assert (getattr(questions, name, None) is not None) == (name in names)


def test_bytes_of_questions() -> None:
    """The arrays that questions hold have 33 bytes per question, and the rest per answer."""
    rows = np.random.default_rng(1).integers(0, (50, 5, 50), (400, 3))
    questions = Graph.from_arrays(rows[:200], None, rows[200:], 50, 5).questions()
    fields = [*vars(questions).values(), *vars(questions.origin).values()]
    lists = [one for one in fields if isinstance(one, Csr)]
    arrays = [one for one in fields if isinstance(one, np.ndarray)]
    arrays += [part for one in lists for part in (one.offsets, one.ids)]
    held = sum(array.nbytes for array in [*arrays, *questions.given])
    n_ids = sum(len(one.ids) for one in lists)
    assert len(lists) == 3
    assert held == 33 * len(questions) + 8 * len(lists) + 12 * questions.n_instances + 4 * n_ids
    some = questions.select(slice(0, 9), slice(0, 9))
    assert some.origin.side_codes.dtype == np.int8
    assert some.side.tolist() == questions.side[:9].tolist() == [0] * 9


def test_ids_whose_products_pass_31_bits() -> None:
    """Ids are int32, but keys of them are not. The same graph with small ids has equal results."""
    found = []
    for entities, relations in ((1, 1), (19_993, 5_003)):
        spread = np.array([entities, relations, entities])
        rows = np.random.default_rng(3).integers(0, (10, 4, 10), (60, 3)) * spread
        graph = Graph.from_arrays(rows[:30], None, rows[30:], 10 * entities, 4 * relations)
        questions = graph.questions(entities=np.arange(0, 10 * entities, entities)[:9])
        columns = (questions.side, questions.entity, questions.relation)
        records = [
            {"head" if side else "tail": str(e), "relation": str(r), "predictions": [str(e)]}
            for side, e, r in zip(*columns, strict=True)
        ]
        said = rank_lists(records, questions).manifest["scores"]["predictions"]
        found.append(
            [
                (questions.entity // entities).tolist(),
                (questions.relation // relations).tolist(),
                (questions.known.ids // entities).tolist(),
                *(questions.rows_among(kind)[0].tolist() for kind in ("questions", "instances")),
                {key: value for key, value in said.items() if isinstance(value, int)},
            ]
        )
    assert found[0] == found[1]


def test_raw_questions_say_so_and_take_extra_triples() -> None:
    graph = Graph.from_arrays(train=[(0, 0, 1)], test=[(0, 0, 2)])
    assert "raw" in repr(graph.questions(filter_splits=()))
    with_extra = graph.questions(filter_splits=(), extra_known=[(0, 0, 1), (0, 0, 1)])
    assert with_extra.candidates.tolist() == [3, 2]
    assert with_extra.describe()["extra_known"] == 2


def test_fingerprint_and_description() -> None:
    graph = Graph.from_arrays([(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2), (1, 0, 2)])
    base = graph.questions()
    assert graph.questions(filter_splits=["test", "train"]).fingerprint == base.fingerprint
    others = [
        graph.questions("train"),
        graph.questions(sides="head"),
        graph.questions(filter_splits=()),
        graph.questions(extra_known=[(0, 0, 0)]),
        Graph.from_arrays([(0, 0, 1)], test=[(0, 0, 2), (1, 0, 2)], n_entities=4).questions(),
    ]
    assert len({q.fingerprint for q in [base, *others]}) == 1 + len(others)
    assert base.describe() == {
        "graph_name": None,
        "split": "test",
        "sides": "both",
        "filter_splits": ["train", "test"],
        "extra_known": 0,
        "restricted": None,
        "sampled": False,
        "outside": 0,
        "filter": "all",
        "filter_left_out": [],
        "n_questions": 3,
        "n_instances": 4,
        "n_entities": 3,
        "n_relations": 1,
        "triples": {"train": 1, "test": 2},
        "duplicates_dropped": {"train": 0, "test": 1},
        "graph_hash": graph.fingerprint,
        "questions_hash": base.fingerprint,
    }


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "published"), [("fb15k-237", "FB-Test-O"), ("wn18rr", "WN18RR")]
)
def test_published_question_ids(shared_data: Path, folder: str, published: str) -> None:
    graph = read_graph(shared_data / folder)
    questions = graph.questions()
    columns = (
        questions.ids,
        graph.entities[questions.entity],
        graph.relations[questions.relation],
    )
    lines = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
    expected = shared_data / "kgc-sparsity" / "data" / published / "trec_queries.txt"
    assert lines.encode() == expected.read_bytes()
    assert questions.n_instances == 2 * len(graph.split("test"))


# -- Filter protocols by name, known triples from files, and the warning that nobody can miss ------


ROWS = {
    "train": [(0, 0, 1), (0, 0, 2), (3, 1, 4)],
    "valid": [(0, 0, 3), (3, 1, 0)],
    "test": [(0, 0, 4), (0, 0, 5), (3, 1, 1)],
}
NAMES = ("train", "valid", "test")


def graph_of(*names: str) -> kgtrec.Graph:
    return kgtrec.Graph.from_arrays(
        **{name: ROWS[name] for name in names}, n_entities=6, n_relations=2
    )


def quietly(graph: kgtrec.Graph, **how: object) -> kgtrec.Questions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FilterWarning)
        return graph.questions(**how)


def pairs(csr: Any) -> list[list[int]]:
    return [row.tolist() for row in csr]


def test_protocols_are_lists_of_the_splits_that_exist() -> None:
    protocols = {
        "all": NAMES,
        "test": NAMES,
        "valid": ("train", "valid"),
        "raw": (),
        "none": (),
    }
    assert set(protocols) == set(PROTOCOLS)
    for name, splits in protocols.items():
        for split, names in product(("valid", "test"), (NAMES, NAMES[1:])):
            questions = quietly(graph_of(*names), split=split, filter=name)
            expected = tuple(own for own in names if own in splits)
            assert questions.filter_splits == expected
            described = questions.describe()
            assert described["filter"] == ("raw" if name == "none" else name)
            assert described["filter_left_out"] == [s for s in names if s not in expected]
    assert quietly(graph_of("test"), filter="test").filter_splits == ("test",)


def test_names_of_splits_are_a_filter_of_their_own() -> None:
    graph = graph_of(*NAMES)
    for names in (("valid",), ["valid"], {"valid"}):
        assert quietly(graph, filter=names).filter_splits == ("valid",)
    assert quietly(graph, filter="train").filter_splits == ("train",)
    # The long form knows no protocols.
    assert quietly(graph, filter_splits="valid").filter_splits == ("valid",)
    assert quietly(graph, filter=("train",)).describe()["filter"] is None


@each_row(
    "split, how, left_out",
    [
        ("test", {"filter": "valid"}, "'test', as at validation time"),
        ("train", {"filter": "valid"}, "'test', as at validation time"),
        ("test", {"filter": ("train", "test")}, "'valid'"),
        ("valid", {"filter_splits": ("valid",)}, "'train', 'test'"),
        *(("test", {"filter": name}, None) for name in ("all", "test", "raw", None)),
        ("valid", {"filter": "valid"}, None),  # the protocol for that split
    ],
)
def test_only_a_filter_without_a_split_warns(split: str, how: dict, left_out: str | None) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        questions = graph_of(*NAMES).questions(split, **how)
        text = str(kgtrec.evaluate(np.ones((len(questions), 6)), questions))
    assert ("WARNING: the filter leaves out" in " ".join(text.split())) == bool(left_out)
    first = [str(one.message) for one in caught if one.filename == __file__]
    assert [left_out in message for message in first if left_out] == [True] * bool(left_out)
    assert bool(caught) == bool(left_out)


# -- Known triples from files ------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "g").mkdir()
    for name, rows in ROWS.items():
        lines = [f"e{h}\tr{r}\te{t}" for h, r, t in rows]
        (tmp_path / "g" / f"{name}.txt").write_text("\n".join(lines) + "\n")
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


@pytest.mark.parametrize(
    ("form", "order", "ending"),
    [
        ("tsv,htr", "htr", ".txt"),
        ("tsv,trh", "trh", ".txt"),
        ("csv,rht", "rht", ".csv"),
        ("multihopkg", "htr", ".triples"),
        ("timed,htr", "htr", ".txt"),
    ],
)
def test_known_triples_have_the_columns_of_the_splits(
    tmp_path: Path, form: str, order: str, ending: str
) -> None:
    """Labels of entities and relations are the same numbers, so that another order also fits."""
    is_timed = form.startswith("timed")

    def text(rows: list[tuple[str, str, str]], separator: str = "\t") -> str:
        fields = [[row["hrt".index(column)] for column in order] for row in rows]
        return "".join(separator.join([*row, *["2014"] * is_timed]) + "\n" for row in fields)

    folder = tmp_path / "g"
    folder.mkdir()
    separator = "," if ending == ".csv" else "\t"
    every = [(str(h), str(r), str(t)) for h, r, t in product(range(3), repeat=3) if h >= r]
    for split, rows in (("train", every), ("test", [("0", "1", "2"), ("2", "1", "0")])):
        (folder / f"{split}{ending}").write_text(text(rows, separator))
    known = [(1, 2, 0), (0, 1, 1), (0, 1, 0), (2, 1, 1)]
    (tmp_path / "known.tsv").write_text(text([tuple(map(str, row)) for row in known]))
    graph = kgtrec.read_graph(f"{form}:{folder}")
    how = {"filter": "raw", "context": "time" if is_timed else None}
    questions = graph.questions(known=tmp_path / "known.tsv", **how)
    extra = [[*row, *[0] * is_timed] for row in known]
    assert pairs(questions.known) == pairs(graph.questions(extra_known=extra, **how).known)
    assert pairs(questions.known)


def test_known_triples_may_have_labels_that_the_graph_lacks(home: Path) -> None:
    graph = kgtrec.read_graph(home / "g")
    path = home / "known.tsv"
    path.write_text("e0\tr0\te0\ne0\tr9\te1\nnew\tr0\te0\n")
    with pytest.raises(FileError, match=r"known.tsv:2: relation 'r9' is not in the graph") as error:
        graph.questions(known=path)
    assert "1 more lines" in str(error.value)
    questions = graph.questions(known=path, unknown="skip")
    assert questions.describe()["known_files"][0]["unknown"] == 2
    assert questions.fingerprint == graph.questions(extra_known=[(0, 0, 0)]).fingerprint
