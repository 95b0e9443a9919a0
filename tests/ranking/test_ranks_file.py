"""Labels in files of ranks: whichever way they are held, the same file; and read back by id."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgtrec
from kgtrec import Ranks
from kgtrec.ranking import parquet_labels

TRIPLES = np.array([[0, 0, 3], [4, 1, 0], [3, 1, 4], [6, 0, 6]])
TEXTS = ["a b", "\u00e9", "unused", "\U0001f600", "d", "unused too", "\udcff"]


def ranked(entities: list[str] | None) -> Ranks:
    graph = kgtrec.Graph.from_arrays(test=TRIPLES, n_entities=7, entities=entities)
    questions = graph.questions("test")
    scores = np.random.default_rng(0).random((len(questions), 7))
    return kgtrec.evaluate(scores, questions).ranks


@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS[:-1], "z"], None])
def test_every_holder_of_labels_gives_the_same_file(tmp_path: Path, texts) -> None:
    names = texts or [str(i) for i in range(7)]
    ranks = ranked(texts)
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


def test_labels_of_a_loaded_file_by_id(tmp_path: Path) -> None:
    ranked(TEXTS).save(tmp_path / "x")
    labels = Ranks.load(tmp_path / "x").entity_labels
    assert dict(labels) == {i: TEXTS[i] for i in (0, 3, 4, 6)}
    assert labels[3] == TEXTS[3]
    for stranger in (2, 5, 7, -1):
        assert stranger not in labels
        with pytest.raises(KeyError):
            labels[stranger]


def test_ranks_of_no_instance(tmp_path: Path) -> None:
    none = ranked(TEXTS).subset(np.zeros(8, bool))
    none.save(tmp_path / "x")
    loaded = Ranks.load(tmp_path / "x")
    assert len(loaded) == len(loaded.entity_labels) == 0
    loaded.save(tmp_path / "again")
    assert (tmp_path / "x").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("column", ["given_label", "answer_label"])
def test_a_label_that_is_null(tmp_path: Path, column: str) -> None:
    ranked([*TEXTS[:-1], "z"]).save(tmp_path / "x")
    table = pq.read_table(tmp_path / "x")
    texts = pa.array([None, *table[column].to_pylist()[1:]])
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, texts), tmp_path / "x")
    with pytest.raises(kgtrec.errors.FileError, match=f"column '{column}' holds nulls"):
        Ranks.load(tmp_path / "x")


@pytest.mark.parametrize("kind", kgtrec.ranking.ranks.RANK_TYPES)
def test_a_rank_that_does_not_follow_from_the_counts(tmp_path: Path, kind: str) -> None:
    ranks = ranked(TEXTS)
    ranks.save(tmp_path / "x", rank_type=kind)
    assert Ranks.load(tmp_path / "x").greater.tolist() == ranks.greater.tolist()
    table = pq.read_table(tmp_path / "x")
    assert table["rank"].to_pylist() == ranks.rank(kind).tolist()
    for wrong in (0.25, float("nan")):
        values = [*ranks.rank(kind)[:3], wrong, *ranks.rank(kind)[4:]]
        damaged = table.set_column(table.column_names.index("rank"), "rank", pa.array(values))
        pq.write_table(damaged, tmp_path / "x")
        with pytest.raises(kgtrec.errors.FileError, match=r"in row 3, rank (0.25|nan) with"):
            Ranks.load(tmp_path / "x")


def test_a_flipped_bit_is_an_error_or_in_nothing_that_is_read(tmp_path: Path) -> None:
    """Such as in the number of rows of a row group, of which fewer than all were read once."""
    ranks = ranked(TEXTS)
    ranks.save(tmp_path / "x", rank_type="realistic")
    sound, noticed = (tmp_path / "x").read_bytes(), 0
    places = range(4, len(sound) - 8, 31)
    for place in places:
        spoilt = bytearray(sound)
        spoilt[place] ^= 1
        (tmp_path / "x").write_bytes(spoilt)
        try:
            loaded = Ranks.load(tmp_path / "x")
        except kgtrec.errors.FileError:
            noticed += 1
            continue
        for name in ranks._names:
            assert getattr(loaded, name).tolist() == getattr(ranks, name).tolist()
        assert loaded.relation_labels == ranks.relation_labels
        assert {key: loaded.manifest[key] for key in ranks.manifest} == ranks.manifest
    assert noticed > 0.7 * len(places)


def test_what_reading_ranks_does_not_import(tmp_path: Path) -> None:
    """These take longer to import than a report takes."""
    ranked(TEXTS).save(tmp_path / "x")
    code = (
        "import sys\n"
        "from kgtrec import Ranks\n"
        "Ranks.load(sys.argv[1])\n"
        "print([m for m in ('pandas', 'pyarrow.compute', 'pyarrow.dataset') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


@given(st.lists(st.binary(max_size=3) | st.text("aé€\U0001f600", max_size=2).map(str.encode)))
def test_labels_become_text_where_all_are_utf8(raw: list[bytes]) -> None:
    array = pa.array([b"before", *raw, b"behind"], pa.large_binary())[1:-1]
    expected = array.cast(pa.binary())
    with contextlib.suppress(pa.ArrowInvalid):
        expected = expected.cast(pa.string())
    made = parquet_labels._plain_text(array)
    made.validate(full=True)
    assert made.equals(expected)
