"""Every command and figure states facts that change the meaning of its numbers."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from slow import slow_after

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import UsageError

N = 40
SAMPLED = "sampled candidates: do not compare these values with full ranking"


@pytest.fixture(scope="module")
def results() -> dict[str, kgtrec.Result]:
    """The same scores, ranked in full, without a filter, and among sampled candidates."""
    rng = np.random.default_rng(3)
    triples = np.unique(np.c_[rng.integers(0, N, 300), rng.integers(0, 3, 300),
                              rng.integers(0, N, 300)], axis=0)  # fmt: skip
    triples = rng.permutation(triples)
    graph = kgtrec.Graph.from_arrays(train=triples[80:], valid=triples[:20], test=triples[20:80])
    full = graph.questions("test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parted = graph.questions("test", filter=("train", "test"))
    lists = [rng.choice(N, 12, replace=False) for _ in range(len(full))]
    variants = {
        "full": full,
        "raw": graph.questions("test", filter="raw"),
        "parted": parted,
        "sampled": full.restrict(candidates=lists, outside="worst"),
    }
    left, right = rng.normal(size=(N, 4)), rng.normal(size=(3, 4))
    return {
        name: kgtrec.evaluate(kgtrec.Factors(left[q.entity] * right[q.relation], left), q)
        for name, q in variants.items()
    }


@pytest.fixture(scope="module")
def files(
    results: dict[str, kgtrec.Result], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("ranks")
    for name, result in results.items():
        result.ranks.save(folder / f"{name}.parquet")
    results["full"].ranks.save(folder / "again.parquet")
    return {name: str(folder / f"{name}.parquet") for name in (*results, "again")}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def commands(folder: Path) -> list[list[str]]:
    pytest.importorskip("matplotlib")
    plots = [
        ["plot", kind, "-o", str(folder / f"{kind}.svg")]
        for kind in ("ranks", "beta-grid")  # every figure uses the data of `load_ranks`
    ]
    return [
        *plots,
        ["report"],
        ["report", "--rank-types"],
        ["report", "--by", "relation"],
        ["report", "--format", "csv"],
        ["report", "--format", "latex"],
        ["stratify", "--points", "2"],
        ["stratify", "--points", "2", "--format", "json"],
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    slow_after(
        1,
        [
            ("sampled", SAMPLED),
            ("raw", "unfiltered: other known answers count as wrong"),
            ("parted", "the filter leaves out valid: answers from there count as wrong"),
        ],
    ),
)
def test_every_command_says_it(name: str, said: str, files: dict[str, str], tmp_path: Path) -> None:
    for words in commands(tmp_path):
        done = run(*words, files[name])
        assert done.exit_code == 0, done.output
        assert said in done.output.replace("\n  ", " "), words


@pytest.mark.parametrize(("name", "said"), [("sampled", SAMPLED), ("raw", "unfiltered")])
def test_comparisons_say_it_of_every_file(
    name: str, said: str, files: dict[str, str], tmp_path: Path
) -> None:
    several = [str(tmp_path / f"system-{number}.parquet") for number in range(3)]
    (tmp_path / "other").mkdir()
    for path in several:
        shutil.copy(files[name], path)
        shutil.copy(files[name], tmp_path / "other" / Path(path).name)
    (tmp_path / "ratios.tsv").write_text("a\t0\tb\n")
    least, few = ("-m", "mrr"), ("--resamples", "100")
    other = ("--against", str(tmp_path / "other"))
    reports = (
        few, ("parts", "--by", "side"), ("power",), ("stability", "--repeats", "1"),
        ("replicates", *few), ("labels", *other, *few), ("labels", "--by", "side", *other, *few),
        ("parts", "--ratios", str(tmp_path / "ratios.tsv")),
    )  # fmt: skip
    for words in (*(("compare", *one, *several, *least) for one in reports),
                  ("changes", *several[:2])):  # fmt: skip
        done = run(*words)
        assert done.exit_code == 0, done.output
        paths = [path for path in words if path in several]
        if other[0] in words:
            paths += [str(tmp_path / "other" / Path(path).name) for path in several]
        for path in paths:
            assert f"{path}: {said}" in done.stderr, words
        assert "NOT COMPARABLE" not in done.stderr


def test_the_open_world_says_it(files: dict[str, str]) -> None:
    done = run("openworld", files["parted"], files["parted"], "--sparsity", "0.5")
    assert "the filter leaves out valid" in done.stderr
    assert "valid left out" not in done.stdout


def test_every_command_says_what_cannot_be_compared(files: dict[str, str], tmp_path: Path) -> None:
    for words in commands(tmp_path):
        if "beta-grid" in words:  # draws one file only
            continue
        done = run(*words, files["full"], files["sampled"])
        assert "NOT COMPARABLE" in done.stderr, words
        assert "all candidates against sampled candidates" in done.stderr
    for command in ("report", "stratify"):
        assert "NOT COMPARABLE" not in run(command, files["full"], files["again"]).stderr


def test_figures_name_sampled_candidates(results: dict[str, kgtrec.Result]) -> None:
    pytest.importorskip("matplotlib")
    from kgtrec.plots import ranks as figures
    from kgtrec.plots.studies import beta_curves, beta_heat_map
    from kgtrec.study.stratified import beta_curve, beta_grid

    both = {name: results[name] for name in ("full", "sampled")}
    ranks = {name: result.ranks for name, result in both.items()}
    curves = {name: beta_curve(each, metrics=("mrr",)) for name, each in ranks.items()}
    for drawn in (figures.rank_distribution(ranks), figures.tie_widths(ranks), beta_curves(curves)):
        texts = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert [text.startswith("sampled (sampled)") for text in texts if "full" not in text][-1]
        assert not any("(sampled)" in text for text in texts if text.startswith("full"))
    for drawn in (figures.rank_types(both), figures.relations(both)):
        texts = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
        assert ["(sampled)" in text for text in texts] == [False, True]
    heat = beta_heat_map(beta_grid(ranks["sampled"], metrics=("mrr",)))
    assert heat.axes[-1].get_ylabel() == "sampled strat-MRR"


def test_answers_outside_are_said_once(results: dict[str, kgtrec.Result]) -> None:
    text = str(results["sampled"]).replace("\n  ", " ")
    assert "answers were not among their candidates and got the worst rank" in text
    assert "NaN" not in text
    assert "had no score" not in text


def test_keys_of_sampled_ranks_are_not_those_of_full_ones(
    results: dict[str, kgtrec.Result],
) -> None:
    sampled, full = results["sampled"], results["full"]
    key = "both.realistic.micro.mrr"
    assert sampled[f"sampled.{key}"] == sampled[key]
    assert all(name.startswith("sampled.") for name in sampled)
    with pytest.raises(UsageError, match=r"no candidates were sampled; ask for 'both\."):
        full[f"sampled.{key}"]


def test_results_can_be_compared_as_their_ranks(results: dict[str, kgtrec.Result]) -> None:
    full, sampled = results["full"], results["sampled"]
    different = kgtrec.comparable(full.ranks, sampled.ranks)
    assert not different
    assert str(different) == f"not comparable: {'; '.join(different.reasons)}"
    assert kgtrec.comparable(full, sampled) == different
    assert kgtrec.comparable(full, sampled.ranks) == different
    assert kgtrec.comparable(full, full)
    assert str(kgtrec.comparable(full, full)) == "comparable"
