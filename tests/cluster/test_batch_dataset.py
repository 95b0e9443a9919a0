"""A batch's ranks in other people's tools: the same MRR as counted by hand, without any glue."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

import kgtrec
from kgtrec.errors import UsageError

README = ROOT / "README.md"
Mrr = dict[tuple[Any, ...], float]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mrr, Mrr]:
    """The dataset of three models on two graphs; MRR by model and number, and label of relation."""
    folder, rng = tmp_path_factory.mktemp("ranks"), np.random.default_rng(3)
    reciprocal: dict[tuple[Any, ...], list[float]] = {}
    by_label: dict[tuple[Any, ...], list[float]] = {}
    for graph, n_entities in (("G1", 12), ("G2", 7)):
        source = folder.parent / f"{folder.name}-{graph}"
        source.mkdir()
        for split, size in (("train", 60), ("test", 25)):
            rows = [f"{graph}é{rng.integers(n_entities)}\tr{graph}{rng.integers(3)}\t"
                    f"{graph}é{rng.integers(n_entities)}" for _ in range(size)]  # fmt: skip
            (source / f"{split}.txt").write_text("\n".join(dict.fromkeys(rows)) + "\n")
        questions = kgtrec.read_graph(source, progress=False).questions()
        for model in ("TransE", "m-2", "x_3"):
            shape = (len(questions), questions.n_entities)
            ranks, _ = kgtrec.rank(rng.integers(0, 3, shape).astype(np.float32), questions)
            place = folder / f"graph={graph}" / "protocol=test" / f"model={model}"
            place.mkdir(parents=True)
            ranks.save(place / "ranks.parquet", rank_type="realistic")
            for greater, equal, relation in zip(
                ranks.greater, ranks.equal, ranks.relation.tolist(), strict=True
            ):
                value = 1 / (int(greater) + 1 + int(equal) / 2)
                reciprocal.setdefault((model, relation), []).append(value)
                label = ranks.relation_labels[relation]
                by_label.setdefault((model, label), []).append(value)
    means = ({key: sum(v) / len(v) for key, v in d.items()} for d in (reciprocal, by_label))
    return folder, *means


def by_arrow(folder: Path, relation: str) -> Mrr:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    table = ds.dataset(folder, partitioning="hive").to_table()
    # pyarrow groups by no column whose files have dictionaries of their own.
    columns = [pc.cast(table[name], "string") if name == "relation_label" else table[name]
               for name in ("model", relation)]  # fmt: skip
    table = pa.table([*columns, pc.divide(1.0, table["rank"])], ["model", relation, "value"])
    means = table.group_by(["model", relation]).aggregate([("value", "mean")])
    return {(row["model"], row[relation]): row["value_mean"] for row in means.to_pylist()}


def by_pandas(folder: Path, relation: str) -> Mrr:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(folder)
    means = (1 / frame["rank"]).groupby([frame["model"], frame[relation]], observed=True).mean()
    return dict(means.to_dict())


def by_polars(folder: Path, relation: str) -> Mrr:
    polars = pytest.importorskip("polars")
    frame = polars.scan_parquet(folder, hive_partitioning=True)
    means = frame.group_by("model", relation).agg((1 / polars.col("rank")).mean())
    return {row[:2]: row[2] for row in means.collect().rows()}


def by_duckdb(folder: Path, relation: str) -> Mrr:
    duckdb = pytest.importorskip("duckdb")
    query = (
        f"SELECT model, {relation}, avg(1/rank) FROM '{folder}/**/*.parquet' "
        f"GROUP BY model, {relation}"
    )
    return {row[:2]: row[2] for row in duckdb.sql(query).fetchall()}


@pytest.mark.parametrize("query", [by_arrow, by_pandas, by_polars, by_duckdb])
def test_mrr_of_each_model_and_relation(
    batch: tuple[Path, Mrr, Mrr], query: Callable[[Path, str], Mrr]
) -> None:
    folder, by_number, by_label = batch
    assert query(folder, "relation") == pytest.approx(by_number, rel=1e-12)
    assert query(folder, "relation_label") == pytest.approx(by_label, rel=1e-12)


@pytest.mark.parametrize("library", ["duckdb", "polars", "pandas"])
def test_the_line_of_the_readme(
    batch: tuple[Path, Mrr, Mrr],
    library: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = pytest.importorskip(library)
    (line,) = re.findall(rf"^- `({library}\..*)`$", README.read_text("utf-8"), re.MULTILINE)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ranks").symlink_to(batch[0])
    monkeypatch.chdir(tmp_path)
    means = eval(line, {library: module})
    rows = {"duckdb": lambda: means.fetchall(), "polars": lambda: means.rows(),
            "pandas": lambda: [(*key, mean) for key, mean in means.items()]}[library]()  # fmt: skip
    assert {row[:2]: row[2] for row in rows} == pytest.approx(batch[1], rel=1e-12)


def test_every_rank_type_can_be_saved(batch: tuple[Path, Mrr, Mrr], tmp_path: Path) -> None:
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


def test_an_answer_beyond_its_list_has_no_one_rank(
    batch: tuple[Path, Mrr, Mrr], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    ranks = kgtrec.Ranks.load(next(batch[0].rglob("*.parquet")))
    ranks.unlisted = ranks.macro_unlisted = np.arange(len(ranks)) % 3 == 0
    ranks.save(tmp_path / "lists.parquet", "ordinal")
    saved = np.array(pq.ParquetFile(tmp_path / "lists.parquet").read()["rank"])
    np.testing.assert_array_equal(np.isnan(saved), ranks.unlisted)
