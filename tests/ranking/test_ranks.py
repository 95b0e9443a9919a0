"""Ranks as an object: what ties are worth, which ranks cannot be, and which may be joined."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking.ranks import Ranks, _fault

TEST = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 0], [0, 1, 3]])


def ranked(relations: list[int] | None = None) -> Ranks:
    """Ranks of a small graph, or of its triples with some relations."""
    questions = kgtrec.Graph.from_arrays(test=TEST).questions(relations=relations)
    scores = np.random.default_rng(1).integers(0, 3, (len(questions), 4))
    return kgtrec.rank(scores.astype(np.float32), questions)[0]


# -- Ties --------------------------------------------------------------------------------------


def test_a_tie_report_by_hand() -> None:
    ranks = ranked([0])  # 2 triples: 4 instances
    ranks.greater, ranks.equal = np.array([0, 2, 9, 4]), np.array([1, 0, 5, 0])
    # Ranks 1 to 2, 3, 10 to 15, and 5.
    report = ranks.tie_report()
    assert report["tied_share"] == 0.5
    assert (report["mean_equal"], report["max_equal"]) == (1.5, 5)
    mrr = (Fraction(1, 2) + Fraction(1, 10) - Fraction(1, 15)) / 4
    assert report["width"]["mrr"] == pytest.approx(float(mrr), rel=1e-15)
    del report["width"]["mrr"]
    assert report["width"] == {"mr": 1.5, "hits@1": 0.25, "hits@3": 0.0, "hits@10": 0.25}


def test_without_instances_nothing_is_tied() -> None:
    (ranks,) = parts_of(ranked(), np.zeros(2 * len(TEST), bool))
    assert ranks.tie_report() == {
        "tied_share": 0.0, "mean_equal": 0.0, "max_equal": 0, "width": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    "greater", [[0.5] * 10, [np.nan] * 10, [np.inf] * 10, ["1"] * 10, [None] * 10]
)
def test_columns_that_a_cast_would_change(greater: list) -> None:
    columns = {name: getattr(ranked(), name) for name in ranked()._names}
    with pytest.raises(InputError, match="column 'greater' of ranks has dtype"):
        Ranks(columns | {"greater": greater})
    with pytest.raises(InputError, match="lack the columns greater"):
        Ranks(columns | {"greater": None})
    assert Ranks(columns | {"greater": [2.0] * 10}).greater.tolist() == [2] * 10


# -- What no ranking can have left behind --------------------------------------------------------


def loaded(ranks: Ranks, folder: Path) -> Ranks:
    ranks.save(folder / "ranks.parquet")
    return Ranks.load(folder / "ranks.parquet")


@pytest.mark.parametrize("kind", ["", "macro_"])
@pytest.mark.parametrize(
    ("greater", "equal", "tied_ahead", "candidates", "sound"),
    [
        (0, 0, 0, 1, True),
        (1, 2, 2, 4, True),  # the last of all
        (-2, 2, 1, 4, False),
        (1, 1, -1, 4, False),
        (1, -1, -1, 4, False),
        (1, 1, 2, 4, False),
        (2, 2, 1, 4, False),  # of four, five
        (0, 0, 0, 0, False),
    ],
)
def test_counts_that_cannot_be(
    tmp_path: Path, kind: str, greater: int, equal: int, tied_ahead: int, candidates: int,
    sound: bool,
) -> None:  # fmt: skip
    ranks = ranked()
    for name, value in (
        ("greater", greater), ("equal", equal), ("tied_ahead", tied_ahead),
        ("candidates", candidates),
    ):  # fmt: skip
        getattr(ranks, kind + name)[3] = value
    if sound:
        assert getattr(loaded(ranks, tmp_path), kind + "candidates")[3] == candidates
        return
    said = f"in row 3, {kind}greater {greater}, {kind}equal {equal}, {kind}tied_ahead {tied_ahead}"
    with pytest.raises(FileError, match=f"{said} of {candidates} {kind}candidates"):
        loaded(ranks, tmp_path)


def test_more_sampled_candidates_than_there_are(tmp_path: Path) -> None:
    ranks = ranked()
    ranks.full_candidates = ranks.candidates.copy()
    assert (loaded(ranks, tmp_path).full_candidates == ranks.candidates).all()
    ranks.full_candidates[2] -= 1
    n = int(ranks.candidates[2])
    with pytest.raises(FileError, match=f"in row 2, {n} candidates of {n - 1} in all"):
        loaded(ranks, tmp_path)


@pytest.mark.parametrize("relation", [0, 1, 2, -1])
def test_relations_without_a_label(relation: int) -> None:
    ranks = ranked()
    ranks.relation[:] = relation
    said = f"relations {relation} to {relation}, with 2 relation labels"
    assert _fault(ranks) == (None if relation in (0, 1) else said)


# -- Joining -----------------------------------------------------------------------------------


def parts_of(ranks: Ranks, *masks: np.ndarray) -> list[Ranks]:
    """The instances of each mask, with a manifest of their own."""
    parts = []
    for mask in masks:
        columns = {name: getattr(ranks, name)[mask] for name in ranks._names}
        manifest = copy.deepcopy(ranks.manifest)
        parts.append(Ranks(columns, manifest, ranks.relation_labels, ranks.entity_labels))
    return parts


def by_relation() -> list[Ranks]:
    whole = ranked()
    return parts_of(whole, whole.relation == 0, whole.relation == 1)


def test_parts_are_joined_in_order() -> None:
    first, second = by_relation()
    joined = Ranks.concat([first, second])
    for name in ("triple", "side", "greater", "macro_candidates", "answer_nan"):
        parts = [getattr(part, name).tolist() for part in (first, second)]
        assert getattr(joined, name).tolist() == parts[0] + parts[1]
    assert joined.relation_labels == first.relation_labels


def test_values_that_are_nan_are_summed_and_what_was_checked_is_dropped() -> None:
    parts = by_relation()
    for part, n in zip(parts, (3, 4), strict=True):
        part.manifest["scores"]["nan_count"] = n
        part.manifest["trec_agreement"] = 0.0
    joined = Ranks.concat(parts)
    assert joined.manifest["scores"]["nan_count"] == 7
    assert "trec_agreement" not in joined.manifest
    assert [part.manifest["scores"]["nan_count"] for part in parts] == [3, 4]
    for part in parts:  # ranks need not come from scores
        del part.manifest["scores"]
    assert "scores" not in Ranks.concat(parts).manifest


@pytest.mark.parametrize(
    ("part", "name"),
    [
        *(("questions", name) for name in (
            "graph_hash", "split", "filter_splits", "extra_known", "n_entities", "questions_hash",
        )),
        *(("scores", name) for name in ("dtype", "higher_is_better", "nan", "tie_tolerance")),
    ],
)  # fmt: skip
def test_parts_of_different_evaluations(part: str, name: str) -> None:
    parts = by_relation()
    parts[1].manifest[part][name] = "other"
    with pytest.raises(UsageError, match=rf"^part 1 (has|was scored with) {name} 'other'"):
        Ranks.concat(parts)


@pytest.mark.parametrize(("side", "end"), [(0, "head"), (1, "tail")])
def test_an_instance_in_two_parts(side: int, end: str) -> None:
    whole = ranked()
    chosen = (whole.side == side) & (whole.triple == 2)
    assert chosen.sum() == 1
    said = rf"triple 2 with its {end} asked stands in more than one part \(1 such instances\)"
    with pytest.raises(UsageError, match=said):
        Ranks.concat(parts_of(whole, chosen | True, chosen))


def test_nothing_to_join() -> None:
    with pytest.raises(UsageError, match="needs at least one"):
        Ranks.concat([])
