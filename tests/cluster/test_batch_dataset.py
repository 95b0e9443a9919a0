"""A batch's ranks in other tools: the same MRR as by hand, without further code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

import kgtrec
from kgtrec.errors import UsageError

GUIDE = ROOT / "kgtrec" / "guides" / "clusters.md"
Mrr = dict[tuple[Any, ...], float]


KEYS = ["graph", "protocol", "model", "relation_label"]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mrr]:
    """The dataset of three models on two graphs, which share labels of relations but not their
    numbers, under two protocols; MRR by graph, protocol, model and relation."""
    folder, rng = tmp_path_factory.mktemp("ranks"), np.random.default_rng(3)
    reciprocal: dict[tuple[Any, ...], list[float]] = {}
    for graph, relations in (("G1", "abc"), ("G2", "cb")):
        source = folder.parent / f"{folder.name}-{graph}"
        source.mkdir()
        for split, size in (("train", 60), ("test", 25)):
            rows = [f"{graph}é{rng.integers(9)}\tr{rng.choice(list(relations))}\t"
                    f"{graph}é{rng.integers(9)}" for _ in range(size)]  # fmt: skip
            (source / f"{split}.txt").write_text("\n".join(dict.fromkeys(rows)) + "\n")
        for protocol in ("both", "tail"):
            questions = kgtrec.read_graph(source, progress=False).questions("test", protocol)
            for model in ("TransE", "m-2", "x_3"):
                shape = (len(questions), questions.n_entities)
                ranks, _ = kgtrec.rank(rng.integers(0, 3, shape).astype(np.float32), questions)
                place = folder / f"graph={graph}" / f"protocol={protocol}" / f"model={model}"
                place.mkdir(parents=True)
                ranks.save(place / "ranks.parquet", rank_type="realistic")
                for greater, equal, relation in zip(
                    ranks.greater, ranks.equal, ranks.relation.tolist(), strict=True
                ):
                    key = (graph, protocol, model, ranks.relation_labels[relation])
                    value = 1 / (int(greater) + 1 + int(equal) / 2)
                    reciprocal.setdefault(key, []).append(value)
    return folder, {key: sum(values) / len(values) for key, values in reciprocal.items()}


def test_mrr_by_arrow(batch: tuple[Path, Mrr]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    table = ds.dataset(batch[0], partitioning="hive").to_table()
    # pyarrow cannot group by a column if its files have different dictionaries.
    columns = [pc.cast(table[name], "string") for name in KEYS]
    table = pa.table([*columns, pc.divide(1.0, table["rank"])], [*KEYS, "value"])
    means = table.group_by(KEYS).aggregate([("value", "mean")]).to_pylist()
    found = {tuple(row[key] for key in KEYS): row["value_mean"] for row in means}
    assert found == pytest.approx(batch[1], rel=1e-12)


def block_of_guide(library: str) -> str:
    text = GUIDE.read_text("utf-8")
    (block,) = re.findall(rf"```python {library}\n(.*?)```", text, re.DOTALL)
    query = re.sub(r"\bprint\(", "shown.append(", block)
    return query.replace("filtered", "both")  # the protocol of this dataset


@pytest.mark.parametrize("library", ["duckdb", "polars", "pandas"])
def test_queries_of_the_guide(
    batch: tuple[Path, Mrr], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither graphs nor protocols are mixed."""
    pytest.importorskip(library)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ranks").symlink_to(batch[0])
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    exec(block_of_guide(library), {"shown": shown})
    rows_of = {"duckdb": lambda means: means.fetchall(), "polars": lambda means: means.rows(),
               "pandas": lambda means: [(*key, mean) for key, mean in means.items()]}  # fmt: skip
    (means,) = shown
    rows = rows_of[library](means)
    expected = {key: mean for key, mean in batch[1].items() if key[1] == "both"}
    assert len(rows) == len(expected)
    assert {tuple(row[:4]): row[4] for row in rows} == pytest.approx(expected, rel=1e-12)


def test_every_rank_type_can_be_saved(batch: tuple[Path, Mrr], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path, columns = next(batch[0].rglob("*.parquet")), pq.ParquetFile
    ranks = kgtrec.Ranks.load(path)
    assert not hasattr(kgtrec.Ranks.load(path), "relation_label")
    ranks.save(tmp_path / "plain.parquet")
    plain = columns(tmp_path / "plain.parquet").read()
    assert "rank" not in plain.column_names
    for kind in ("optimistic", "realistic", "pessimistic", "ordinal"):
        ranks.save(tmp_path / f"{kind}.parquet", kind)
        table = columns(tmp_path / f"{kind}.parquet").read()
        assert table["rank"].to_pylist() == ranks.rank(kind).tolist()
        assert table.drop_columns(["rank"]).equals(plain, check_metadata=True)
        kgtrec.Ranks.load(tmp_path / f"{kind}.parquet").save(tmp_path / "again.parquet")
        assert (tmp_path / "again.parquet").read_bytes() == (
            tmp_path / "plain.parquet"
        ).read_bytes()
    with pytest.raises(UsageError, match="rank type 'best' is unknown"):
        ranks.save(tmp_path / "x.parquet", "best")
    assert not (tmp_path / "x.parquet").exists()


def test_an_answer_beyond_its_list_has_no_one_rank(batch: tuple[Path, Mrr], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ranks = kgtrec.Ranks.load(next(batch[0].rglob("*.parquet")))
    ranks.unlisted = ranks.macro_unlisted = np.arange(len(ranks)) % 3 == 0
    ranks.save(tmp_path / "lists.parquet", "ordinal")
    saved = np.array(pq.ParquetFile(tmp_path / "lists.parquet").read()["rank"])
    np.testing.assert_array_equal(np.isnan(saved), ranks.unlisted)
