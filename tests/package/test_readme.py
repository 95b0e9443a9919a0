"""The README: two commands first, short, and everything that it shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from markdown_blocks import Block, blocks_of, commands_of, lines_missing, run_blocks

from kgtrec.demo import run_demo

README = ROOT / "README.md"
INSTALL = "pip install . && kgtrec demo"
TEST = "pip install '.[test]' && pytest"

BLOCKS = blocks_of(README.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder where the demo has run, and its output."""
    folder = tmp_path_factory.mktemp("reader")
    return folder, run_demo(folder / "kgtrec-demo")


def test_the_two_commands_come_first_and_alone():
    shell = [block.text for block in BLOCKS if block.language == "sh"]
    assert shell[:2] == [f"{INSTALL}\n", f"{TEST}\n"]


def test_it_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_continuous_integration_runs_the_same_two_commands():
    script = ROOT / ".ci" / "run"
    if not script.is_file():
        pytest.skip(f"{script} is not part of this tree")
    text = script.read_text(encoding="utf-8")
    assert f'"{INSTALL}"' in text
    assert f'"{TEST}"' in text


def test_continuous_integration_names_tests_that_are_there():
    script = ROOT / ".ci" / "run"
    if not script.is_file():
        pytest.skip(f"{script} is not part of this tree")
    found = re.findall(
        r"(tests/[\w/]+?)(?:\{([\w,]+)\})?(\.py)?(?=[\s:;]|$)", script.read_text("utf-8")
    )
    names = [f"{start}{one}{end}" for start, several, end in found for one in several.split(",")]
    assert len(names) > 20
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_table_shown_is_what_the_demo_prints(demo: tuple[Path, str]):
    shown = next(block for block in BLOCKS if block.language == "text")
    assert not lines_missing(shown.text, demo[1])


def test_everything_shown_runs(demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(demo[0])
    first = next(i for i, block in enumerate(BLOCKS) if block.language == "text")
    blocks = BLOCKS[first + 1 :]
    assert {block.language for block in blocks} >= {"python", "sh", "text"}
    assert not run_blocks(blocks, README)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.data
def test_saved_embeddings_become_the_table_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = ROOT.parent / "shared" / "data"
    if not (data / "models").is_dir():
        pytest.skip(f"no trained models in {data}")
    (script,) = (block for block in BLOCKS if block.name == "table.sh")
    assert len(script.text.splitlines()) == 6
    monkeypatch.chdir(tmp_path)
    Path("FB15k-237").symlink_to(data / "fb15k-237")
    for model in ("distmult", "complex", "transe"):
        Path(f"{model}.npz").symlink_to(data / "models" / f"fb15k-237-{model}.npz")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    subprocess.run(["bash", "-euc", script.text], check=True, capture_output=True)
    rows = re.findall(r"^\| (\w+) \| (.*[\d*]) \|$", README.read_text(encoding="utf-8"), re.M)
    table = re.sub(r"\\\w+\{([\d.]+)\}", r"\1", Path("table.tex").read_text(encoding="utf-8"))
    assert len(rows) == 3
    for model, cells in rows:
        assert f"{model} & {cells.replace('*', '').replace('|', '&')} " in table


def test_images_are_small_and_there():
    shown = re.findall(r'<img src="([^"]+)" [^>]*alt="[^"]+"', README.read_text(encoding="utf-8"))
    assert len(shown) == 2
    assert all(0 < (ROOT / image).stat().st_size < 60_000 for image in shown)


def test_links_lead_to_files():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


# -- The helpers can fail ----------------------------------------------------------------------


def test_blocks_know_their_lines_and_lose_their_indent():
    blocks = blocks_of("a\n\n```sh\nb\n```\n- c\n\n  ```python\n  d = 1\n  ```\n")
    assert blocks == [Block("sh", 4, "b\n"), Block("python", 9, "d = 1\n")]
    assert blocks_of("```toml jobs.toml\na = 1\n```\n") == [
        Block("toml", 2, "a = 1\n", "jobs.toml")
    ]


def test_continued_lines_and_comments_make_one_command():
    block = Block("sh", 1, "kgtrec rank \\\n  -o 'a b'  # note\n\nkgtrec demo\n")
    assert commands_of(block) == [["kgtrec", "rank", "-o", "a b"], ["kgtrec", "demo"]]


def test_a_number_that_differs_is_missing():
    printed = "svd  0.501  22.8\nrandom  0.009  438.5"
    assert lines_missing("svd 0.501 22.8\n\nrandom 0.009 438.4", printed + "\n\n") == []
    assert lines_missing("svd 0.601 22.8", printed) == ["svd 0.601 22.8"]
    assert lines_missing("tsv 0.501 22.8", printed) == ["tsv 0.501 22.8"]
    assert lines_missing("svd 0.501", printed) == ["svd 0.501"]


def test_what_is_shown_and_not_printed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file, code = "```csv a.csv\n7\n```\n", "```python\nprint(sum(1 for _ in range(7)))\n```\n"
    assert run_blocks(blocks_of(file + code + "```text\n7\n8\n```\n"), README) == ["8"]
    assert (tmp_path / "a.csv").read_text("utf-8") == "7\n"
    with pytest.raises(AssertionError, match="no command 'nothing'"):
        run_blocks(blocks_of("```sh\nkgtrec nothing\n```\n"), README)
