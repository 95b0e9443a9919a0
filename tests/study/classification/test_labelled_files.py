"""Files of labelled triples, and ``kgtrec classify``, which reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgtrec._internal.bootstrap import Resampling
from kgtrec.cli import cli
from kgtrec.errors import FileError, UsageError
from kgtrec.study import read_labelled

SCORED = "a\tr\tb\t1\t0.5\na\tr\tc\t-1\t-2\nb\tr\tc\t0\t1e-3\n"
LABELLED = "a\tr\tb\t1\na\tr\tc\t-1\nb\tr\tc\t0\n"
TRUE, FALSE = "a\tr\tb\n", "a\tr\tc\nb\tr\tc\n"
SCORES = [0.5, -2.0, 1e-3]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    np.save(tmp_path / "scores.npy", np.array(SCORES, np.float32))
    with gzip.open(tmp_path / "scored.tsv.gz", "wb") as out:
        out.write(SCORED.replace("\n", "\r\n").encode())
    return {
        "scored": write(tmp_path / "scored.tsv", SCORED),
        "packed": tmp_path / "scored.tsv.gz",
        "labelled": write(tmp_path / "labelled.tsv", LABELLED),
        "true": write(tmp_path / "true.txt", TRUE),
        "false": write(tmp_path / "false.txt", FALSE),
        "npy": tmp_path / "scores.npy",
        "txt": write(tmp_path / "scores.txt", "0.5\n-2\n1e-3\n"),
    }


@pytest.mark.parametrize(
    ("path", "negatives", "scores"),
    [
        ("scored", None, None), ("packed", None, None), ("labelled", None, "npy"),
        ("labelled", None, "txt"), ("true", "false", "npy"), ("true", "false", "txt"),
    ],
)  # fmt: skip
def test_every_layout_holds_the_same(inputs, path, negatives, scores):
    ids: dict[str, int] = {}
    part = read_labelled(
        inputs[path], ids, negatives=inputs.get(negatives), scores=inputs.get(scores)
    )
    assert ids == {"a": 0, "r": 1, "b": 2, "c": 3}
    assert part.triples.tolist() == [[0, 1, 2], [0, 1, 3], [2, 1, 3]]
    assert part.labels.tolist() == [True, False, False]
    np.testing.assert_allclose(part.scores, SCORES, rtol=1e-7)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "the file is empty"),
        ("a\tr\n", 1, "2 columns: 'a.tr'"),
        ("a\tr\tb\t1\t1\na\tr\tc\t1\n", 2, "4 columns"),
        ("a\tr\tb\t1\t1\na\t\tc\t1\t1\n", 2, "5 columns"),
        ("a\tr\tb\tY\t1\n", 1, "label 'Y'; write 1 for true"),
        ("a\tr\tb\t0.5\t1\n", 1, "label '0.5'"),
        ("a\tr\tb\t1\tinf\n", 1, "score 'inf'"),
        ("a\tr\tb\t1\tx\n", 1, "score 'x'"),
        ("a\tr\tb\t1\t1\n\na\tr\tc\t1\t1\n", 2, "an empty line"),
        ("a\tr\tb\t1\t1\na\tr\tb\t0\t1\n", 2, "'a r b' is false here, but not at .*:1"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, line, message):
    path = write(tmp_path / "wrong.tsv", text)
    with pytest.raises(FileError, match=message) as caught:
        read_labelled(path, {})
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("path", "negatives", "scores", "message"),
    [
        ("true", None, "npy", "true.txt has no labels; add a fourth column"),
        ("labelled", "false", "npy", "labelled.tsv has labels, but a file of false triples"),
        ("true", "labelled", "npy", "labelled.tsv has labels"),
        ("labelled", None, None, "labelled.tsv has no scores"),
        ("scored", None, "npy", "scored.tsv has scores, but a scores file was given, too"),
    ],
)
def test_files_that_do_not_go_together(inputs, path, negatives, scores, message):
    with pytest.raises(UsageError, match=message):
        read_labelled(inputs[path], {}, negatives=inputs.get(negatives), scores=inputs.get(scores))


def test_scores_that_do_not_fit(inputs, tmp_path):
    for name, array, message in (
        ("short.npy", np.zeros(2), r"scores of shape \(2,\) for 3 triples"),
        ("nan.npy", np.array([0, np.nan, 1]), "nan in row 1"),
        ("text.npy", np.array(["a", "b", "c"]), "dtype <U1"),
        ("objects.npy", np.array([{}, 1, 2], object), "not a readable .npy array"),
    ):
        np.save(tmp_path / name, array, allow_pickle=True)
        with pytest.raises(FileError, match=message):
            read_labelled(inputs["labelled"], {}, scores=tmp_path / name)
    with pytest.raises(FileError, match="the file does not exist"):
        read_labelled(inputs["labelled"], {}, scores=tmp_path / "none.npy")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    random = np.random.default_rng(0)
    for name, size in (("valid", 80), ("test", 120)):
        lines = []
        for number in range(size):
            label = random.random() < 0.5
            score = label + random.normal()
            lines.append(f"h{number % 9}\tr{number % 2}\tt{number}\t{int(label)}\t{score:.3f}\n")
        write(tmp_path / f"{name}.tsv", "".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(
        cli, ["classify", "--valid-triples", "valid.tsv", "--test-triples", "test.tsv", *arguments]
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_prints_what_the_library_finds(folder):
    import kgtrec

    ids: dict[str, int] = {}
    test, valid = (read_labelled(f"{name}.tsv", ids) for name in ("test", "valid"))
    options = ("--resamples", "100", "--seed", "4", "--criterion", "f1", "--bins", "5")
    result = kgtrec.classify(
        test, valid, resampling=Resampling(95, 100, 4), criterion="f1", bins=5, relations=list(ids)
    )
    assert run(*options).strip() == str(result).strip()
    assert run(*options, "--show", "relations") == result.relation_table().to_text() + "\n"
    assert json.loads(run(*options, "--format", "json")) == json.loads(result.to_json())
    for show, table in (
        ("intervals", result.interval_table()), ("calibration", result.calibration_table()),
        ("curves", result.curve_table()),
    ):  # fmt: skip
        assert run(*options, "--show", show, "--format", "csv") == table.to_csv()


def test_distances_are_scores_of_the_other_sign(folder):
    plain = json.loads(run("--resamples", "100", "--format", "json"))
    for name in ("valid", "test"):
        rows = [line.split("\t") for line in Path(f"{name}.tsv").read_text().splitlines()]
        text = "".join("\t".join([*row[:4], str(-float(row[4]))]) + "\n" for row in rows)
        Path(f"{name}.tsv").write_text(text)
    other = json.loads(run("--resamples", "100", "--format", "json", "--lower-is-better"))
    assert other == plain


def test_one_threshold_and_a_figure(folder):
    pytest.importorskip("matplotlib")
    text = run("--one-threshold", "--resamples", "100", "--plot", "curve.svg")
    assert "0 of 2 relations have their own threshold" in text
    assert "as claimed" in Path("curve.svg").read_text()


def test_mistakes_are_one_line(folder):
    for arguments, code, message in (
        (("--ci", "100"), 1, "the confidence"),
        (("--plot", "test.tsv"), 1, "test.tsv"),
        (("--valid-negatives", "none.tsv"), 2, "the file does not exist"),
    ):
        result = CliRunner().invoke(
            cli, ["classify", "--valid-triples", "valid.tsv", "--test-triples", "test.tsv",
                *arguments],
            standalone_mode=False,
        )  # fmt: skip
        assert result.exception is not None
        assert getattr(result.exception, "exit_code", 1) == code
        assert message in str(result.exception)
