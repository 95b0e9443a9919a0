"""Commands print what tests/golden/cli holds: results, notes, messages and exit codes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
import fuzz_files
import pytest
from click.testing import CliRunner
from transcripts import PLACE, commands, play

from kgtrec.cli._report import Command, Report
from kgtrec.errors import KgtrecError


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    before = os.getcwd()
    os.chdir(folder)
    try:
        fuzz_files.make_home()
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.txt")), ids=lambda path: path.stem)
def test_commands_print_what_they_printed(
    path: Path, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    different = []
    for command, due in commands(path.read_text("utf-8")):
        printed = play(command)
        if printed.replace("\n\n", "\n") != due.replace("\n\n", "\n"):
            different.append(f"$ kgtrec {command}\n{printed}\n-- due:\n{due}")
    assert not different, "\n\n".join(different)
    assert not list(tmp_path.rglob("*.tmp"))


def test_transcripts_can_be_read() -> None:
    text = "# Why\n\n$ kgtrec a\nout\n! err\n= 1\n\n$ kgtrec b\n"
    assert [*commands(text)] == [("a", "out\n! err\n= 1"), ("b", "")]


def test_results_of_a_call_that_failed_in_part_are_shown() -> None:
    @click.command(cls=Command)
    def partly() -> Report:
        return Report(lambda: "rows", error="1 of 2 jobs failed")

    done = CliRunner().invoke(partly, [])
    assert done.stdout == "rows\n"
    assert isinstance(done.exception, KgtrecError)
    assert str(done.exception) == "1 of 2 jobs failed"
