"""Tables of `kgtrec compare --format latex` say which average a column is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from compare_cases import systems

from kgtrec.cli.compare.command import command


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        ("both.realistic.micro.mrr", "MRR (micro)"),
        ("both.realistic.macro.mrr", "MRR (macro)"),
        ("tail.realistic.macro.hits@10", "Hits@10 (tail, macro)"),
        ("both.optimistic.micro.mrr", "MRR (optimistic, micro)"),
        ("both.realistic.relation.mrr", "MRR (relation)"),
        ("both.macro.map_cut_20", "MAP@20 (macro)"),
    ],
)
def test_the_average_is_in_the_heading(tmp_path: Path, key: str, heading: str) -> None:
    files = []
    for name, ranks in systems(2, levels=30).items():
        files.append(str(tmp_path / f"{name}.parquet"))
        ranks.save(files[-1])
    quick = ("--permutations", "100", "--resamples", "100")
    done = CliRunner().invoke(command, [*files, *quick, "-m", key, "--format", "latex"])
    assert done.exit_code == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(rf"% {re.escape(key)}, \d+ (instances|questions|relations)\.", first)
    row = next(line for line in rest if line.count("&") == 3)
    assert row.split("&")[2].strip() == heading
