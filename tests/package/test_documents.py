"""Read fenced blocks of Markdown, run them in order, and compare their outputs with the text.

A block of ``python`` is executed. If it names a library after the language, as in ```` ```python
torch ````, it needs that library. Every line of ``sh`` is a command of kgtrec (installing lines
are ignored). ``text`` is the output of the blocks above it. Any other block is a file with the
name after the language: ```` ```toml jobs.toml ````."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import transcripts
from checkout import ROOT
from click.testing import CliRunner
from slow import slow_but

import kgtrec
from kgtrec import guides
from kgtrec.cli import COMMANDS, cli
from kgtrec.cli._names import HEADINGS, long_name
from kgtrec.cli._report import PathType
from kgtrec.cli.guide import lay_out
from kgtrec.demo.run import run_demo
from kgtrec.errors import FilterWarning
from kgtrec.measures import AVERAGINGS, METRICS, RANK_TYPES
from kgtrec.study.openworld import experiment

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+) *(?P<name>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
ALMOST = 0.02  # other libraries may move the last digits of the factorisation
INSTALLS = ("pip", "python")


class Block(NamedTuple):
    """A fenced block, the first line of its content, and its file name."""

    language: str
    line: int
    text: str
    name: str = ""


def blocks_of(markdown: str) -> list[Block]:
    return [
        Block(
            match["language"],
            markdown.count("\n", 0, match.start("text")) + 1,
            textwrap.dedent(match["text"]),
            match["name"],
        )
        for match in FENCE.finditer(markdown)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """Words of every command line, continued lines joined."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def lines_missing(shown: str, printed: str) -> list[str]:
    """Lines of `shown` that `printed` lacks, apart from blanks and the last digits."""
    rows = [line.split() for line in printed.splitlines()]

    def is_printed(words: list[str]) -> bool:
        return any(len(row) == len(words) and all(map(_same_word, words, row)) for row in rows)

    return [line for line in shown.splitlines() if not is_printed(line.split())]


def _same_word(left: str, right: str) -> bool:
    if not (NUMBER.fullmatch(left) and NUMBER.fullmatch(right)):
        return left == right
    a, b = (float(word.replace(",", "")) for word in (left, right))
    return a == pytest.approx(b, rel=ALMOST, abs=0.002)


def run_blocks(blocks: list[Block], source: Path) -> list[str]:
    """Run the blocks of a file in the working folder; return shown lines that were not printed."""
    names: dict[str, object] = {"__name__": "guide"}
    printed, missing = "", []
    for block in blocks:
        if block.language == "python" and block.name and not find_spec(block.name):
            continue  # its library is not installed; `.ci/run integrations` has it
        if block.language == "python":
            printed += _printed_by_python(block, source, names)
        elif block.language == "sh":
            printed += "".join(map(_printed_by_command, commands_of(block)))
        elif block.language == "text":
            missing += lines_missing(block.text, printed)
        else:
            assert block.name, f"{source.name}:{block.line}: a file's block gives its name"
            Path(block.name).parent.mkdir(parents=True, exist_ok=True)
            Path(block.name).write_text(block.text, encoding="utf-8")
    return missing


def _printed_by_python(block: Block, source: Path, names: dict[str, object]) -> str:
    # Leading blank lines give a traceback the line numbers of the file.
    code = compile("\n" * (block.line - 1) + block.text, str(source), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as output, warnings.catch_warnings():
        warnings.simplefilter("default", FilterWarning)  # examples of a guide may warn
        if block.name:
            warnings.simplefilter("ignore")  # warnings of other libraries
        exec(code, names)
    return output.getvalue()


def _printed_by_command(words: list[str]) -> str:
    program, *arguments = words
    if program in INSTALLS:
        return ""
    assert program == "kgtrec", words
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    # Numbers exclude each other; a gate fails, or is undecided.
    expected = {"audit": (0, 3), "gate": (0, 20, 21)}.get(arguments[0], (0,))
    assert done.exit_code in expected, f"{arguments}: {done.output}"
    assert done.output, f"{arguments}: said nothing, on neither output"
    return done.output


# -- The guides: every block runs, every name is explained, and every command has its guide --------


# The first text for a reader of README, and the use of the package from Python.
QUICK = ("first-evaluation", "filters-and-protocols")
TEXTS = {name: guides.text(name) for name in guides.ORDER}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder where the demo has run, and its output."""
    folder = tmp_path_factory.mktemp("reader")
    return folder, run_demo(folder / "kgtrec-demo")


@pytest.fixture
def reader(demo: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(demo[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::kgtrec.errors.FormatNote", "ignore::kgtrec.errors.TieWarning")
@pytest.mark.parametrize("name", slow_but(QUICK, guides.ORDER))
def test_every_block_runs(name: str, reader: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # A minute of training in the guide about open worlds: few steps show the same.
    models = [replace(model, steps=model.steps[:3]) for model in experiment.MODELS]
    small = partial(experiment.family_study, families=1, n_questions=40, models=models)
    monkeypatch.setattr(experiment, "family_study", small)
    blocks = blocks_of(TEXTS[name])
    assert blocks
    assert not run_blocks(blocks, guides.path(name))


@pytest.mark.parametrize(("is_worse", "code"), [(False, 0), (True, 20)])
def test_the_examples_of_continuous_integration_run_in_a_shell(
    is_worse: bool, code: int, reader: None, tmp_path: Path
) -> None:
    """Each script, but for its installing line, ends as the gate does and leaves its report."""
    yaml = pytest.importorskip("yaml")
    texts = {
        block.name: yaml.safe_load(block.text)
        for block in blocks_of(TEXTS["gate"])
        if block.language == "yaml"
    }
    github = [
        step["run"]
        for step in texts[".github/workflows/gate.yml"]["jobs"]["gate"]["steps"]
        if "run" in step
    ]
    gitlab = texts[".gitlab-ci.yml"]["gate"]["script"]
    base = "svd" if is_worse else "popularity"  # svd is much better than the new model
    _printed_by_command(
        f"kgtrec gate kgtrec-demo/{base}.ranks.parquet -m mrr --save reference.json".split()
    )
    for steps, report, text in (
        (github, "summary.md", "| mrr | "),
        (gitlab, "gate.xml", 'name="mrr"'),
    ):
        lines = [step for step in steps if not step.startswith("pip ")]
        assert len(lines) == len(steps) - 1
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            ["bash", "-e", "-c", "\n".join(lines)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "PATH": path},
        )
        assert ended.returncode == code, ended.stderr
        assert text in Path(report).read_text(encoding="utf-8")
        assert ("fail" in Path(report).read_text(encoding="utf-8").split("mrr", 1)[1]) == bool(code)


def test_guides_are_files_with_a_beginning_an_end_and_links_to_guides() -> None:
    folder = guides.path("ties").parent
    pages = {path.stem for path in folder.glob("*.md")}
    assert pages == {"index", *guides.ORDER}
    for name, text in TEXTS.items():
        title, beginning, *_, end = text.rstrip("\n").split("\n\n")
        assert title.startswith("# "), name
        assert beginning.startswith("You "), name
        following = re.fullmatch(r"Next: `kgtrec guide ([\w-]+)` [^.]+\.", end)
        assert following, name
        assert following[1] in {*guides.ORDER} - {name}
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert guides.path(name).with_name(target).exists(), (name, target)


def test_the_site_begins_with_readmes_example_and_lists_every_guide_in_order() -> None:
    index = (guides.path("ties").parent / "index.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n.+?^```$", index, re.M | re.S)
    assert example in PAGE
    lists = "".join(re.findall(r"^:caption: .+\n\n((?:[\w/-]+\n)+)", index, re.M)).split()
    assert [name for name in lists if "/" not in name] == list(guides.ORDER)


def test_every_word_of_a_key_is_explained() -> None:
    words = [*RANK_TYPES, *AVERAGINGS, *(metric.name for metric in METRICS)]
    text = TEXTS["numbers"] + TEXTS["adjusted-metrics"]
    assert [word for word in words if f"`{word}`" not in text] == []


def test_every_command_is_shown_and_names_its_guide() -> None:
    shown = {
        next(word for word in words[1:] if not word.startswith("-"))
        for text in TEXTS.values()
        for block in blocks_of(text)
        if block.language == "sh"
        for words in commands_of(block)
        if words[0] == "kgtrec"
    }
    assert shown == set(COMMANDS)
    for name, entry in COMMANDS.items():
        said = CliRunner().invoke(cli, [name, "--help"]).output
        if name != "guide":
            assert f"Guide: kgtrec guide {entry.guide}\n" in said
            assert entry.guide in guides.ORDER
    assert "Guide: " in CliRunner().invoke(cli, ["judge", "serve", "--help"]).output


def test_the_command_lists_and_says_where() -> None:
    listed = CliRunner().invoke(cli, ["guide"]).output
    assert [line.split()[0] for line in listed.splitlines()] == list(guides.ORDER)
    assert all(guides.title(name) in listed for name in guides.ORDER)
    where = CliRunner().invoke(cli, ["guide", "ties", "--path"]).output.rstrip("\n")
    assert Path(where).read_text(encoding="utf-8") == TEXTS["ties"]


def test_a_terminal_gets_markdown_laid_out() -> None:
    example, due = (ROOT / "tests/golden" / f"guide.{ending}" for ending in ("md", "txt"))
    shown = lay_out(example.read_text("utf-8"), 40)
    assert click.unstyle(shown).splitlines() == due.read_text("utf-8").splitlines()
    assert shown.startswith(click.style("A title", bold=True, underline=True))
    assert click.style("Next", bold=True) in shown
    assert click.style("code,", bold=True) not in shown
    assert click.style("Ties", underline=True) in shown


def test_a_terminal_gets_every_word_within_its_width() -> None:
    for text in TEXTS.values():
        shown = click.unstyle(lay_out(text, 80))
        code = {line.strip() for block in blocks_of(text) for line in block.text.splitlines()}
        lines = [line for line in shown.splitlines() if line.strip() not in {*code, ""}]
        assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
        assert [line for line in lines if line.startswith(("#", "```", "|"))] == []
        words = re.sub(r"\]\([^)]+\)|^ *```.*$|^\|[-|]+\|$", "", text, flags=re.M)
        assert {*re.findall(r"\w+", words)} <= {*re.findall(r"\w+", shown)}


def test_a_terminal_pages_and_a_pipe_gets_plain_markdown() -> None:
    program = [sys.executable, "-m", "kgtrec", "guide", "ties"]
    assert subprocess.run(program, capture_output=True, check=True).stdout.decode() == TEXTS["ties"]
    terminal, there = pty.openpty()
    environment = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "60"}
    with subprocess.Popen(program, stdout=there, stdin=there, env=environment) as process:
        os.close(there)
        printed = b""
        with contextlib.suppress(OSError):  # Linux's error at the end of a terminal
            while part := os.read(terminal, 1 << 16):
                printed += part
    os.close(terminal)
    assert process.returncode == 0
    text = printed.decode().replace("\r\n", "\n")
    assert click.unstyle(text) == click.unstyle(lay_out(TEXTS["ties"], 60)) + "\n"


def test_complete_compare_and_eval_average_the_same_queries() -> None:
    """Without -c, eval leaves out a query that the run lacks; the others count it as 0."""
    shown = re.findall(r"^kgtrec eval.*complete\.qrels.*$", TEXTS["sparse-labels"], re.M)
    assert shown
    assert all(" -c " in line for line in shown)


# -- The README: two commands first, short, and everything that it shows runs ----------------------


README = ROOT / "README.md"
INSTALL = "pip install . && kgtrec demo"
TEST = "pip install '.[test]' && pytest"
PAGE = README.read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)


def test_it_is_short_and_begins_with_the_two_commands_of_continuous_integration():
    shell = [block.text for block in BLOCKS if block.language == "sh"]
    assert shell[:2] == [f"{INSTALL}\n", f"{TEST}\n"]
    assert len(PAGE.splitlines()) <= 150
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert f'"{INSTALL}"' in script
    assert f'"{TEST}"' in script


def test_everything_shown_runs(demo: tuple[Path, str], reader: None) -> None:
    first = next(i for i, block in enumerate(BLOCKS) if block.language == "text")
    assert not lines_missing(BLOCKS[first].text, demo[1])
    blocks = BLOCKS[first + 1 :]
    assert {block.language for block in blocks} >= {"python", "sh", "text"}
    assert not run_blocks(blocks, README)


@pytest.mark.data
@pytest.mark.slow
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
    rows = re.findall(r"^\| (\w+) \| (.*[\d*]) \|$", PAGE, re.M)
    table = re.sub(r"\\\w+\{([\d.]+)\}", r"\1", Path("table.tex").read_text(encoding="utf-8"))
    assert len(rows) == 3
    for model, cells in rows:
        assert f"{model} & {cells.replace('*', '').replace('|', '&')} " in table


def test_images_are_small_and_links_lead_to_files():
    shown = re.findall(r'<img src="([^"]+)" [^>]*alt="[^"]+"', PAGE)
    assert len(shown) == 2
    assert all(0 < (ROOT / image).stat().st_size < 60_000 for image in shown)
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", PAGE)
    assert targets
    assert [target for target in targets if not (ROOT / target).is_file()] == []


# -- The helpers can fail ----------------------------------------------------------------------


def test_what_is_shown_and_not_printed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    printed = "svd  0.501  22.8\nrandom  0.009  438.5"
    assert lines_missing("svd 0.501 22.8\n\nrandom 0.009 438.4", printed + "\n\n") == []
    for shown in ("svd 0.601 22.8", "tsv 0.501 22.8", "svd 0.501"):
        assert lines_missing(shown, printed) == [shown]
    monkeypatch.chdir(tmp_path)
    file = "- a\n\n  ```csv a.csv\n  7\n  ```\n"
    code = "```python\nprint(sum(1 for _ in range(7)))\n```\n"
    assert run_blocks(blocks_of(file + code + "```text\n7\n8\n```\n"), README) == ["8"]
    assert (tmp_path / "a.csv").read_text("utf-8") == "7\n"
    with pytest.raises(AssertionError, match="no command 'nothing'"):
        run_blocks(blocks_of("```sh\nkgtrec nothing\n```\n"), README)


# -- Options: one meaning, heading and type per name; texts name those that exist ----------------


NAMES = [name for names in HEADINGS.values() for name in names.split()]
SEVERAL_TYPES = {"--output", "--side", "--columns", "--sample"}
"""A folder of `demo`, which need not exist; sides in several columns of `report`; a file of labels,
or measures; a share of triples, or a file of questions."""
SEVERAL_TEXTS = {
    "--heads",
    "--tails",
    "--graph",
    "--scores",
    "--qrels",
    "--run",
    "--type-constraints",
    "--names",
} | {
    "--predictions",
    "--against",
    "--relation-types",
    "--relations",
    "--ratios",
    "--valid",
    "--version",
}
"""Files of one format, and what a command does with them; trec_eval's own letter."""


def commands(
    command: click.Command, context: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command, parent=context, info_name=command.name)
    yield context.command_path, command
    found = dict(getattr(command, "commands", {}))
    if isinstance(command, click.Group):
        found = {
            name: command.get_command(context, name) for name in command.list_commands(context)
        }
    for inner in found.values():
        yield from commands(inner, context)


LISTS = {"cli": "lists all commands", "cli judge": "lists its subcommands"}
"""Commands without a result."""
EARLY = {
    "batch.py": "the jobs of a batch end one after another",
    "judge.py": "the page has an address while it is served",
    "rank/shard.py": "a shard says how long it will take",
    "eval.py": "-v and -h, trec_eval's own",
    "__init__.py": "errors, and the list of commands",
    "_report.py": "reports and notes",
    "_ranks.py": "warnings about ranks, before long work",
}
"""Files of commands that print themselves."""


def test_every_command_returns_a_report() -> None:
    returned = {
        path: inspect.signature(one.callback).return_annotation
        for path, one in commands(cli)
        if one.callback is not None
    }
    assert {path for path, what in returned.items() if what != "Report"} == {*LISTS}
    place = ROOT / "kgtrec/cli"
    prints = re.compile(r"(?<!_)\b(note|warn|echo|echo_via_pager|print)\(")
    texts = {path.relative_to(place).as_posix(): path.read_text() for path in place.rglob("*.py")}
    assert {name for name, text in texts.items() if prints.search(text)} == {*EARLY}
    # The report writes files; batches and shards write theirs while they work.
    writing = {name for name, text in texts.items() if 'f"wrote ' in text}
    assert writing == {"_report.py", "batch.py", "rank/shard.py"}


OPTIONS = [
    (path, one)
    for path, command in commands(cli)
    for one in command.params
    if isinstance(one, click.Option) and not one.hidden and long_name(one).startswith("--")
]


def test_every_option_is_in_the_table_and_every_row_is_an_option() -> None:
    names = {long_name(one) for _, one in OPTIONS}
    assert {*NAMES} == names | {"--help"}
    assert len(NAMES) == len(set(NAMES)) + 1  # under one heading each, but --columns


def test_a_name_has_one_type_and_inputs_are_inputs_and_outputs_say_so() -> None:
    kinds, texts = defaultdict(set), defaultdict(set)
    for path, one in OPTIONS:
        name = long_name(one)
        kinds[name].add("flag" if one.is_flag else one.type.name.removesuffix(" range"))
        is_file = isinstance(one.type, PathType)
        is_output = is_file and one.type.role in ("output", "figure", "text", "later")
        if one.is_flag or (is_file and not is_output):
            texts[name].add(one.help)
        if name in ("--run", "--qrels", "--graph") or name.startswith("--write-"):
            assert is_file, path
            assert is_output == name.startswith("--write-"), path
    assert {name for name, types in kinds.items() if len(types) > 1} == SEVERAL_TYPES
    assert {name for name, found in texts.items() if len(found) > 1} == SEVERAL_TEXTS


def test_transcripts_have_every_command_in_every_format() -> None:
    """Subcommands of one command share formats. `judge serve`, which waits, has no transcript."""
    files = [*transcripts.GOLDEN_CLI.glob("*.txt"), transcripts.GOLDEN_CLI.parent / "home.txt"]
    blocks = [
        block for path in files for block, _ in transcripts.parse_blocks(path.read_text("utf-8"))
    ]
    calls = [shlex.split(block)[1:] for block in blocks if block.startswith("kgtrec ")]
    for path, command in commands(cli):
        words = [word for word in path.split()[1:] if word.isalpha() and word.islower()]
        lines = [call for call in calls if call[: len(words)] == words]
        assert lines or words == ["judge", "serve"], path
        for option in command.params:
            if "--format" in option.opts:
                related = [call for call in calls if call[:1] == words[:1] and "--format" in call]
                used = {call[call.index("--format") + 1] for call in related}
                assert {*option.type.choices} <= used | {option.default}, path


PACKAGE = Path(str(kgtrec.__file__)).parent
OPTION = re.compile(r"(?<![-\w{}$/])--[a-z][a-z0-9-]*(?![-\w]*\{)")
ELSEWHERE = {
    "--array",
    "--help",
    "--version",
    "--nworkers",
    "--nthreads",
    "--memory-limit",
    "--no-dashboard",
}
"""Of the commands of schedulers, which messages and pages name; and of click itself."""


KNOWN = ELSEWHERE | {
    name
    for _, command in commands(cli)
    for one in command.params
    for name in (*one.opts, *one.secondary_opts)
}


def unknown(text: str) -> set[str]:
    """Options that a text names and no command has; Python joins literals."""
    joined = re.sub(r'"\s+f?"', "", text.replace("\\n", "\n"))
    return {match.group().rstrip("-") for match in OPTION.finditer(joined)} - KNOWN


def test_every_option_that_is_named_exists() -> None:
    files = {*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.md")} - {PACKAGE / "cli" / "_names.py"}
    assert {path: found for path in files if (found := unknown(path.read_text("utf-8")))} == {}
    assert unknown("give --retry or --plot{}; a--b; --workers 2, `--quiet`") == {"--retry"}
    assert {"--replicates", "--patience", "--quiet"} <= KNOWN
