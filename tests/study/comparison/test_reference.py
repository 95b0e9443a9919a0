"""A saved base decides as the base itself, unless its questions differ or somebody edited it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_cases import systems
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.study import Reference, gate

KEYS = ("mrr", "macro.hits@3", "mr", "map_cut_20", "both.relation.mrr", "tail.question.mrr")
QRELS = {f"q{k}": {"a": 1, "b": 0, "c": k % 2} for k in range(9)}


def run(seed: int, levels: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (len(QRELS), 3)).astype(float).tolist()
    rows = dict(zip(QRELS, scores, strict=True))
    return {query: dict(zip("abc", row, strict=True)) for query, row in rows.items() if row[0] != 1}


def saved(reference: Reference, folder: Path) -> Reference:
    reference.save(folder / "reference.json")
    return Reference.load(folder / "reference.json")


@pytest.mark.parametrize("levels", [2, 12])
def test_a_saved_base_of_ranks_decides_as_the_ranks(levels: int, tmp_path: Path) -> None:
    base, new = systems(2, 5, levels).values()
    reference = saved(Reference.from_system(base, KEYS), tmp_path)
    for margin in ("0.02", "8%"):
        assert gate(reference, new, margin=margin).to_dict() == (
            gate(base, new, KEYS, margin).to_dict()
        )
    assert gate(reference, new, ["mr"]).to_dict() == gate(base, new, ["mr"]).to_dict()


@pytest.mark.parametrize("levels", [2, 90])
def test_a_saved_base_of_a_run_decides_as_the_run(levels: int, tmp_path: Path) -> None:
    keys = ["map", "P.1,2", "bpref"]
    base, new = run(1, levels), run(2, levels)
    reference = saved(Reference.from_system(base, keys, qrels=QRELS), tmp_path)
    from_file = gate(reference, new, margin=0.1, qrels=QRELS).to_dict()
    live = gate(base, new, keys, 0.1, qrels=QRELS).to_dict()
    assert {**from_file, "notes": 0} == {**live, "notes": 0}
    assert {*from_file["notes"]} <= {*live["notes"]}  # queries that the base lacks are known there


def test_instances_in_another_order_and_saving_twice_change_nothing(tmp_path: Path) -> None:
    (base,) = systems(1, 5, 3).values()
    mixed = base.subset(np.random.default_rng(0).permutation(len(base)))
    texts = set()
    for number, ranks in enumerate((base, mixed)):
        Reference.from_system(ranks, KEYS).save(tmp_path / f"{number}.json")
        texts.add((tmp_path / f"{number}.json").read_text("ascii"))
    saved(Reference.load(tmp_path / "0.json"), tmp_path)
    texts.add((tmp_path / "reference.json").read_text("ascii"))
    assert len(texts) == 1


# -- Refusals --------------------------------------------------------------------------------------


def ranks(
    filter_: str = "all",
    split: str = "test",
    edit: Any = None,
    restrict: Any = None,
    name: str = "a",
    **more: Any,
) -> kgtrec.Ranks:
    rng = np.random.default_rng(3)
    triples = {
        key: np.unique(rng.integers(0, (9, 2, 9), (12, 3)), axis=0) for key in ("train", "test")
    }
    if edit:
        edit(triples)
    graph = kgtrec.Graph.from_arrays(**triples, n_entities=9, n_relations=2)
    graph.name = name
    questions = graph.questions(split=split, filter=filter_, **more)
    if restrict:
        questions = restrict(questions)
    scores = rng.random((len(questions), 9))
    return kgtrec.evaluate(scores, questions, progress=False).ranks


def other_answer(triples: dict[str, Any]) -> None:
    triples["test"][0, 2] = (triples["test"][0, 2] + 1) % 9


def one_list_each(questions: kgtrec.Questions) -> kgtrec.Questions:
    return questions.restrict(candidates=[np.arange(9)] * len(questions))


def list_of_relation(questions: kgtrec.Questions) -> kgtrec.Questions:
    return questions.restrict(heads={0: np.arange(9)})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"filter_": "raw"}, r"filter: train, test against unfiltered"),
        ({"split": "train"}, r"split: test against train"),
        ({"sides": "tail"}, r"sides: both against tail"),
        ({"edit": other_answer}, r"graph: a \(\w{8}\) against a \("),
        ({"restrict": one_list_each}, r"candidates: all candidates against sampled candidates"),
        ({"restrict": list_of_relation}, r"candidates: all candidates against candidates restr"),
    ],
)
def test_other_questions_filters_and_candidates_are_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    reference = saved(Reference.from_system(ranks()), tmp_path)
    assert gate(reference, ranks(name="in another folder"), margin=1)
    with pytest.raises(InputError, match=rf"base and new cannot be compared: .*{said}"):
        gate(reference, ranks(**changes), margin=1)


def test_ranks_without_provenance_are_compared_by_their_columns(tmp_path: Path) -> None:
    whole = ranks()
    bare = kgtrec.Ranks(whole.columns())
    reference = saved(Reference.from_system(bare), tmp_path)
    assert gate(reference, bare, margin=1)
    with pytest.raises(InputError, match="one of them does not record which questions were asked"):
        gate(reference, whole, margin=1)
    with pytest.raises(InputError, match="one of them is only a part of the evaluation"):
        gate(reference, bare.subset(np.arange(4)), margin=1)
    other = bare.columns() | {"answer": whole.answer[::-1].copy()}
    with pytest.raises(InputError, match="answers or numbers of candidates differ"):
        gate(reference, kgtrec.Ranks(other), margin=1)


def test_other_judgements_are_refused(tmp_path: Path) -> None:
    reference = saved(Reference.from_system(run(1, 90), ["map"], qrels=QRELS), tmp_path)
    shuffled = {query: dict(reversed(row.items())) for query, row in QRELS.items()}
    assert gate(reference, run(1, 90), margin=1, qrels=shuffled)
    others = {
        "other judgements": QRELS | {"q3": {"a": 1, "b": 1, "c": 0}},
        "8 queries": {query: row for query, row in QRELS.items() if query != "q3"},
        "other names of queries": {query + "x": row for query, row in QRELS.items()},
    }
    rows = run(1, 90) | {query + "x": row for query, row in run(1, 90).items()}
    for said, qrels in others.items():
        with pytest.raises(InputError, match=rf"cannot be compared: their qrels have .*{said}"):
            gate(reference, rows, margin=1, qrels=qrels)
    with pytest.raises(UsageError, match=r"base has the values of a run; give a run and its qrels"):
        gate(reference, ranks(), margin=1)


def test_measures_that_were_not_saved_are_refused(tmp_path: Path) -> None:
    reference = saved(Reference.from_system(ranks()), tmp_path)
    with pytest.raises(
        UsageError, match=r"has values of both.realistic.micro.mrr, not of both.*mr"
    ):
        gate(reference, ranks(), ["mrr", "mr"], 1)
    with pytest.raises(UsageError, match=r"micro.gmr: not a plain mean"):
        Reference.from_system(ranks(), ["gmr"])
    with pytest.raises(UsageError, match=r"base is not Ranks; give ranks, or a run and its qrels"):
        gate("main.run", "new.run")


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(tree, (dict, list)):
        return [path]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [leaf for key, item in items for leaf in leaves(item, (*path, key))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_edit_is_noticed(data: st.DataObject, tmp_path: Path) -> None:
    """Whichever number or text of the file is changed, or whichever entry removed."""
    path = tmp_path / "reference.json"
    if not path.exists():
        Reference.from_system(ranks(), ["mrr", "mr"]).save(path)
    tree = json.loads(path.read_text("ascii"))
    *above, key = data.draw(st.sampled_from(leaves(tree)))
    node = tree
    for step in above:
        node = node[step]
    change = data.draw(st.sampled_from(["delete", None, 0.5, "x", 1, [], {}]))
    assume(json.dumps(change) != json.dumps(node[key]))
    if change == "delete":
        del node[key]
    else:
        node[key] = change
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(tree), "ascii")
    with pytest.raises(FileError, match=r"edited.json: (it was edited|not a reference)"):
        Reference.load(edited)
    path_of_same = tmp_path / "same.json"
    path_of_same.write_text(json.dumps(json.loads(path.read_text("ascii"))), "ascii")
    assert gate(Reference.load(path_of_same), ranks(), margin=1)
