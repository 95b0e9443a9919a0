"""kgtrec report: files of ranks in, tables out; the numbers are Result's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli.report import command
from kgtrec.errors import KgtrecError, UsageError

RELATIONS = ["borders", "caf\udce9_|&"]  # the second holds a byte that is no UTF-8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ranks of two models, a.parquet and b.parquet."""
    random = np.random.default_rng(1)
    test = np.unique(np.stack([random.integers(0, n, 60) for n in (12, 2, 12)], axis=1), axis=0)
    graph = kgtrec.Graph.from_arrays(
        train=test[:10], test=test[10:], n_entities=12, n_relations=2, relations=RELATIONS
    )
    questions = graph.questions()
    place = tmp_path_factory.mktemp("report")
    for name in ("a", "b"):
        scores = random.integers(0, 6, (len(questions), 12)).astype(np.float32)
        kgtrec.evaluate(scores, questions).ranks.save(place / f"{name}.parquet")
    return place


def run(*arguments: object) -> str:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode("utf-8", "surrogateescape")


def loaded(path: Path) -> kgtrec.Result:
    return kgtrec.Result(kgtrec.Ranks.load(path))


def test_the_table(folder: Path) -> None:
    text = run(folder / "a.parquet")
    assert text.rstrip("\n") == str(loaded(folder / "a.parquet"))
    assert max(map(len, text.splitlines())) <= 80
    assert "agree to 1e-12" in text.replace("\n  ", " ")


def test_json_maps_keys_to_values(folder: Path) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    assert json.loads(run(a, "--format", "json")) == loaded(a).to_dict()
    both = json.loads(run(a, b, "--format", "json"))
    assert both == {str(a): loaded(a).to_dict(), str(b): loaded(b).to_dict()}


def test_measures_may_be_chosen(folder: Path) -> None:
    a = folder / "a.parquet"
    keys = ["both.micro.hits_at_7", "tail.stratified.mrr(0.25,1)"]
    printed = json.loads(run(a, "--format", "json", "-m", keys[0], "-m", keys[1]))
    result = loaded(a)
    assert printed == {
        "both.realistic.micro.hits@7": result[keys[0]],
        "tail.stratified.mrr(0.25,1)": result[keys[1]],
    }
    assert "tail.stratified.mrr(0.25,1)" in run(a, "-m", keys[1])


def test_several_files_stand_one_below_the_other(folder: Path) -> None:
    a, b = folder / "a.parquet", folder / "b.parquet"
    text = run(a, b)
    assert f"== {a}\n{loaded(a)}\n\n== {b}\n{loaded(b)}\n" == text


def test_by_relation_and_by_side(folder: Path) -> None:
    a = folder / "a.parquet"
    result = loaded(a)
    for by in ("relation", "side"):
        table = result.slice(by)
        assert run(a, "--by", by).rstrip("\n") == table.to_text()
        assert json.loads(run(a, "--by", by, "--format", "json")) == table.to_dict()
        for form, text in [
            ("csv", table.to_csv()),
            ("latex", table.to_latex()),
            ("markdown", table.to_markdown()),
        ]:
            assert run(a, "--by", by, "--format", form) == text
    assert RELATIONS[1] in run(a, "--by", "relation")
    one = json.loads(run(a, "--by", "relation", "--format", "json", "-m", "tail.macro.map@20"))
    assert set(one["borders"]) == {"count", "tail.macro.map_cut_20"}


def test_bad_keys_are_all_named_before_any_file_is_read() -> None:
    with pytest.raises(UsageError) as caught:
        run("no-such.parquet", "-m", "both.micro.mmr", "-m", "nonsense")
    assert "mmr" in str(caught.value)
    assert "nonsense" in str(caught.value)


def test_files_that_are_no_ranks(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no parquet")
    for path in (tmp_path / "missing.parquet", tmp_path / "text.parquet", tmp_path):
        with pytest.raises(KgtrecError, match=str(path)):
            run(folder / "a.parquet", path)


def test_help_explains_itself() -> None:
    text = run("--help")
    assert "kgtrec report ranks.parquet" in text
    assert "--by" in text


@pytest.mark.parametrize("how", [("--by", "side"), ("--by", "relation"), ("--rank-types",),
                                 ("--by", "relation", "--spread")])  # fmt: skip
@pytest.mark.parametrize("form", ["table", "csv", "latex", "markdown"])
def test_micro_and_macro_never_share_a_heading(
    folder: Path, how: tuple[str, ...], form: str
) -> None:
    keys = ("mrr", "macro.mrr", "macro.hits@10", "question.mrr")
    words = [word for key in keys for word in ("-m", key)]
    text = run(folder / "a.parquet", *how, *words, "--format", form)
    heads = ("micro MRR", "macro MRR", "macro Hits@10", "question MRR")
    if form == "csv":
        heads = ("micro.mrr", "macro.mrr", "macro.hits@10", "question.mrr")
    assert all(head in text for head in heads)
    alone = run(folder / "a.parquet", *how, "-m", "mrr", "-m", "hits@10", "--format", "markdown")
    assert "| MRR | Hits@10 |" in alone
