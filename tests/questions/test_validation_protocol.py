"""To ask for the protocol of validation on the validation split is right: no warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import kgtrec
from kgtrec.cli import cli
from kgtrec.errors import FilterWarning

SPLITS = {"train": [[0, 0, 1]], "valid": [[1, 0, 2], [3, 0, 2]], "test": [[2, 0, 3], [1, 0, 3]]}


def test_no_warning_where_it_is_right() -> None:
    graph = kgtrec.Graph.from_arrays(**SPLITS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        questions = graph.questions("valid", filter="valid")
    assert questions.filter_splits == ("train", "valid")
    result = kgtrec.evaluate(np.random.default_rng(0).random((len(questions), 4)), questions)
    assert "WARNING" not in str(result)
    assert "filter train, valid" in str(result)


def test_all_else_is_warned_of() -> None:
    graph = kgtrec.Graph.from_arrays(**SPLITS)
    for split, how in (
        ("test", {"filter": "valid"}),
        ("train", {"filter": "valid"}),
        ("valid", {"filter": ("train",)}),
        ("valid", {"filter_splits": ("valid",)}),
    ):
        with pytest.warns(FilterWarning, match="filter leaves out"):
            questions = graph.questions(split, **how)
        result = kgtrec.evaluate(np.random.default_rng(0).random((len(questions), 4)), questions)
        assert "left out of the filter" in str(result)


def test_the_command_line_too(tmp_path) -> None:
    for name, rows in SPLITS.items():
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
        assert ("left out" in report.output) == warned
