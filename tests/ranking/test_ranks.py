"""Ranks as an object and as a file: conventions, ties, impossible values, joining."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import each_row

import kgtrec
from kgtrec.errors import FileError, InputError, UsageError
from kgtrec.ranking.provenance import _JSON_TYPES, Provenance
from kgtrec.ranking.ranks import Ranks, _find_fault

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
        "tied_share": 0.0,
        "mean_equal": 0.0,
        "max_equal": 0,
        "width": {},
    }


@pytest.mark.parametrize(
    "greater", [[0.5] * 10, [np.nan] * 10, [np.inf] * 10, ["1"] * 10, [None] * 10]
)
def test_columns_that_a_cast_would_change(greater: list) -> None:
    columns = ranked().columns()
    with pytest.raises(InputError, match="column 'greater' of ranks has dtype"):
        Ranks(columns | {"greater": greater})
    with pytest.raises(InputError, match="lack the columns greater"):
        Ranks(columns | {"greater": None})
    assert Ranks(columns | {"greater": [2.0] * 10}).greater.tolist() == [2] * 10


# -- Columns that no ranking can produce ---------------------------------------------------------


def loaded(ranks: Ranks, folder: Path) -> Ranks:
    ranks.save(folder / "ranks.parquet")
    return Ranks.load(folder / "ranks.parquet")


@pytest.mark.parametrize("kind", ["", "macro_"])
@each_row(
    "counts, sound",
    [
        ((0, 0, 0, 1), True),
        ((1, 2, 2, 4), True),  # the last of all
        ((-2, 2, 1, 4), False),
        ((1, 1, -1, 4), False),
        ((1, -1, -1, 4), False),
        ((1, 1, 2, 4), False),
        ((2, 2, 1, 4), False),  # of four, five
        ((0, 0, 0, 0), False),
    ],
)
def test_counts_that_cannot_be(
    tmp_path: Path, kind: str, counts: tuple[int, ...], sound: bool
) -> None:
    ranks = ranked()
    names = [kind + name for name in ("greater", "equal", "tied_ahead", "candidates")]
    for name, value in zip(names, counts, strict=True):
        getattr(ranks, name)[3] = value
    if sound:
        assert getattr(loaded(ranks, tmp_path), names[-1])[3] == counts[-1]
        return
    said = [f"{name} {value}" for name, value in zip(names[:3], counts, strict=False)]
    with pytest.raises(FileError, match=f"in row 3, {', '.join(said)} of {counts[3]} {names[3]}"):
        loaded(ranks, tmp_path)


def test_more_sampled_candidates_than_there_are(tmp_path: Path) -> None:
    ranks = ranked()
    ranks.full_candidates = ranks.candidates.copy()
    assert (loaded(ranks, tmp_path).full_candidates == ranks.candidates).all()
    ranks.full_candidates[2] -= 1
    n = int(ranks.candidates[2])
    with pytest.raises(FileError, match=f"in row 2, {n} candidates, but {n - 1} in all"):
        loaded(ranks, tmp_path)


@pytest.mark.parametrize("relation", [0, 1, 2, -1])
def test_relations_without_a_label(relation: int) -> None:
    ranks = ranked()
    ranks.relation[:] = relation
    said = f"relations {relation} to {relation}, but 2 relation labels"
    assert _find_fault(ranks) == (None if relation in (0, 1) else said)


# -- Joining -----------------------------------------------------------------------------------


def parts_of(ranks: Ranks, *masks: np.ndarray) -> list[Ranks]:
    """The instances of each mask, with a separate manifest."""
    parts = []
    for mask in masks:
        columns = {name: column[mask] for name, column in ranks.columns().items()}
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
    ("part", "name", "told"),
    [
        ("questions", "graph_hash", "other graph"),
        ("questions", "split", "split 'other' and 'test'"),
        ("questions", "filter_splits", "filter ('o', 't', 'h', 'e', 'r') and ('test',)"),
        ("questions", "extra_known", "further known triples 'other' and 0"),
        ("questions", "n_entities", "number of entities 'other' and "),
        ("questions", "questions_hash", "other questions"),
        ("scores", "dtype", "dtype 'other' and 'float32'"),
        ("scores", "higher_is_better", "higher_is_better 'other' and True"),
        ("scores", "nan", "nan 'other' and 'error'"),
        ("scores", "tie_tolerance", "tie tolerance 'other' and None"),
    ],
)
def test_parts_of_different_evaluations(part: str, name: str, told: str) -> None:
    parts = by_relation()
    parts[1].manifest[part][name] = "other"
    said = re.escape(f"part 1 and part 0 do not belong together ({told}")
    with pytest.raises(UsageError, match=f"^{said}"):
        Ranks.concat(parts)


@pytest.mark.parametrize(("side", "end"), [(0, "head"), (1, "tail")])
def test_an_instance_in_two_parts(side: int, end: str) -> None:
    whole = ranked()
    chosen = (whole.side == side) & (whole.triple == 2)
    assert chosen.sum() == 1
    said = rf"the {end} question of triple 2 is in more than one part \(1 such instances\)"
    with pytest.raises(UsageError, match=said):
        Ranks.concat(parts_of(whole, chosen | True, chosen))


def test_nothing_to_join() -> None:
    with pytest.raises(UsageError, match="needs at least one"):
        Ranks.concat([])


def test_ranks_by_hand() -> None:
    """Two score higher than entity 3 (0, 1), three tie with it (2, 5, 6), two are below (4, 7)."""
    graph = kgtrec.Graph.from_arrays([[0, 0, 1]], None, [[0, 0, 3]], n_entities=8, n_relations=1)
    scores = np.array([[9, 8, 5, 5, 1, 5, 5, 0]])
    ranks, _ = kgtrec.rank(scores * 1.0, graph.questions(sides="tail", filter="raw"))
    # trec_eval sorts equal scores in descending order of names: 6 and 5 come before 3.
    due = {"optimistic": 3.0, "realistic": 4.5, "pessimistic": 6.0, "ordinal": 5.0}
    for kind, rank in due.items():
        assert ranks.rank(kind).tolist() == ranks.macro_rank(kind).tolist() == [rank]


def test_ranks_are_not_saved_under_the_ending_of_another_format(tmp_path: Path) -> None:
    ranks = ranked_with(None)
    for name in ("x.csv", "x.tsv", "x.json", "x.npy", "x.txt", "x.pkl"):
        with pytest.raises(UsageError, match=rf"{name}: kgtrec writes ranks as Parquet; give a"):
            ranks.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    ranks.save(tmp_path / "model.v2")
    assert len(Ranks.load(tmp_path / "model.v2")) == len(ranks)


# -- Labels in files of ranks ---------------------------------------------------------------------


TRIPLES = np.array([[0, 0, 3], [4, 1, 0], [3, 1, 4], [6, 0, 6]])
TEXTS = ["a b", "\u00e9", "unused", "\U0001f600", "d", "unused too", "\udcff"]


def ranked_with(entities: list[str] | None) -> Ranks:
    graph = kgtrec.Graph.from_arrays(test=TRIPLES, n_entities=7, entities=entities)
    questions = graph.questions("test")
    scores = np.random.default_rng(0).random((len(questions), 7))
    return kgtrec.evaluate(scores, questions).ranks


@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS[:-1], "z"], None])
def test_every_holder_of_labels_gives_the_same_file(tmp_path: Path, texts) -> None:
    names = texts or [str(i) for i in range(7)]
    ranks = ranked_with(texts)
    ranks.save(tmp_path / "graph")
    Ranks.load(tmp_path / "graph").save(tmp_path / "again")
    ranks.entity_labels = names
    ranks.save(tmp_path / "list")
    first = (tmp_path / "graph").read_bytes()
    assert first == (tmp_path / "again").read_bytes() == (tmp_path / "list").read_bytes()
    table = pq.read_table(tmp_path / "graph")
    for column in ("given", "answer"):
        labels = table[f"{column}_label"].to_pylist()
        labels = [x if isinstance(x, str) else x.decode("utf-8", "surrogateescape") for x in labels]
        assert labels == [names[i] for i in table[column].to_pylist()]


def test_halves_of_a_character_are_no_text(tmp_path: Path) -> None:
    labels = ["\udca9", "\udcc3"]  # given in the order 1, 0: an é
    graph = kgtrec.Graph.from_arrays(test=[[0, 0, 1]], entities=labels)
    kgtrec.rank(np.eye(2), graph.questions())[0].save(tmp_path / "x")
    assert dict(Ranks.load(tmp_path / "x").entity_labels) == dict(enumerate(labels))


def test_labels_of_a_loaded_file_by_id(tmp_path: Path) -> None:
    ranked_with(TEXTS).save(tmp_path / "x")
    labels = Ranks.load(tmp_path / "x").entity_labels
    assert dict(labels) == {i: TEXTS[i] for i in (0, 3, 4, 6)}
    assert labels[3] == TEXTS[3]
    for stranger in (2, 5, 7, -1):
        assert stranger not in labels
        with pytest.raises(KeyError):
            labels[stranger]


def test_ranks_of_no_instance(tmp_path: Path) -> None:
    none = ranked_with(TEXTS).subset(slice(0))
    none.save(tmp_path / "x")
    loaded = Ranks.load(tmp_path / "x")
    assert len(loaded) == len(loaded.entity_labels) == 0
    loaded.save(tmp_path / "again")
    assert (tmp_path / "x").read_bytes() == (tmp_path / "again").read_bytes()


def test_subsets_by_names_are_those_by_ids() -> None:
    questions = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 1, 2], [2, 0, 2]]).questions()
    ranks, _ = kgtrec.rank(np.random.default_rng(0).random((len(questions), 3)), questions)
    tails = ranks.subset(ranks.side == 1)
    for few, expected in (
        (ranks.subset(side="tail"), tails),
        (ranks.subset(side="both"), ranks),
        (ranks.subset(relation=1), ranks.subset(ranks.relation == 1)),
        (ranks.subset(slice(5), side="tail"), ranks.subset(np.flatnonzero(ranks.side[:5] == 1))),
        (ranks.subset([4, 1], side="tail"), ranks.subset([i for i in (4, 1) if ranks.side[i]])),
    ):
        for name, column in expected.columns().items():
            assert np.array_equal(few.column(name), column)


def test_a_ranking_is_a_pair_with_names() -> None:
    questions = kgtrec.Graph.from_arrays(test=[[0, 0, 1], [1, 0, 2]]).questions()
    scores = np.random.default_rng(0).random((len(questions), 3))
    ranked = kgtrec.rank(scores, questions, run_depth=2)
    ranks, run = ranked
    assert ranked.ranks is ranks
    assert ranked.run is run
    assert repr(ranked).splitlines()[2] == "  run: 4 questions, 8 candidates, depth 2"
    mrr = kgtrec.Result(ranks)["mrr"]
    assert kgtrec.evaluate(ranked)["mrr"] == mrr
    assert kgtrec.study.samples_of_ranks([ranked, ranks], ["mrr"])[0].means() == pytest.approx(mrr)


@pytest.mark.parametrize("column", ["given_label", "answer_label"])
def test_a_label_that_is_null(tmp_path: Path, column: str) -> None:
    ranked_with([*TEXTS[:-1], "z"]).save(tmp_path / "x")
    table = pq.read_table(tmp_path / "x")
    texts = pa.array([None, *table[column].to_pylist()[1:]])
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, texts), tmp_path / "x")
    with pytest.raises(kgtrec.errors.FileError, match=f"column '{column}' has nulls"):
        Ranks.load(tmp_path / "x")


@pytest.mark.parametrize("kind", kgtrec.ranking.ranks.RANK_TYPES)
def test_a_rank_that_does_not_follow_from_the_counts(tmp_path: Path, kind: str) -> None:
    ranks = ranked_with(TEXTS)
    ranks.save(tmp_path / "x", rank_type=kind)
    assert Ranks.load(tmp_path / "x").greater.tolist() == ranks.greater.tolist()
    table = pq.read_table(tmp_path / "x")
    assert table["rank"].to_pylist() == ranks.rank(kind).tolist()
    for wrong in (0.25, float("nan")):
        values = [*ranks.rank(kind)[:3], wrong, *ranks.rank(kind)[4:]]
        damaged = table.set_column(table.column_names.index("rank"), "rank", pa.array(values))
        pq.write_table(damaged, tmp_path / "x")
        with pytest.raises(kgtrec.errors.FileError, match=r"in row 3, rank (0.25|nan), but"):
            Ranks.load(tmp_path / "x")


def test_a_flipped_bit_is_an_error_or_in_nothing_that_is_read(tmp_path: Path) -> None:
    """For instance in a row group's number of rows: an earlier version then read only some rows."""
    ranks = ranked_with(TEXTS)
    ranks.save(tmp_path / "x", rank_type="realistic")
    sound, noticed = (tmp_path / "x").read_bytes(), 0
    places = range(4, len(sound) - 8, 67)
    for place in places:
        spoilt = bytearray(sound)
        spoilt[place] ^= 1
        (tmp_path / "x").write_bytes(spoilt)
        try:
            loaded = Ranks.load(tmp_path / "x")
        except kgtrec.errors.FileError:
            noticed += 1
            continue
        for name in ranks.column_names:
            assert loaded.column(name).tolist() == ranks.column(name).tolist()
        assert loaded.relation_labels == ranks.relation_labels
        assert {key: loaded.manifest[key] for key in ranks.manifest} == ranks.manifest
    assert noticed > 0.7 * len(places)


def test_what_reading_ranks_does_not_import(tmp_path: Path) -> None:
    """Importing these takes longer than a report."""
    ranked_with(TEXTS).save(tmp_path / "x")
    code = (
        "import sys\n"
        "from kgtrec import Ranks\n"
        "Ranks.load(sys.argv[1])\n"
        "print([m for m in ('pandas', 'pyarrow.compute', 'pyarrow.dataset') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_every_fact_of_a_manifest_has_its_type_in_json() -> None:
    """A field without a type would never be read."""
    assert ["has_questions", *_JSON_TYPES] == [field.name for field in fields(Provenance)]
