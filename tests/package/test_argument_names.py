"""Messages name arguments in Python and options in commands, from one text."""

from __future__ import annotations

import ast
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import fuzz_options
import pytest
from checkout import ROOT, parsed
from transcripts import run_command

import kgtrec
from kgtrec import errors
from kgtrec._internal.argument_names import argument, python_spelling
from kgtrec.cli._names import long_name, option_spelling

HELP = ("measures/help.py", "trec/measures/rows.py", "trec/measures/names.py", "demo/run.py")
"""Texts of --help and of a printed example, not messages."""

ONLY_IN_PYTHON = {
    *(
        "as_",
        "beta",
        "category",
        "classes",
        "client",
        "comparisons",
        "cuts",
        "duplicates",
        "estimate",
        "every",
    ),
    *(
        "filter_splits",
        "heads_per_call",
        "incomplete",
        "items",
        "miss",
        "protocol",
        "qualifiers",
        "reference",
    ),
    *("relation", "removals", "rho", "smoothing", "text", "value"),
}
"""Arguments without an option: their functions have no command, or the command sets them."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules below `cli/`, by their paths."""
    for path in sorted((ROOT / "kgtrec").rglob("*.py")):
        name = str(path.relative_to(ROOT / "kgtrec"))
        if not name.startswith("cli/"):
            yield name, parsed(path.read_text("utf-8"))


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string but docstrings, with its line; expressions in an f-string become {}."""
    hidden = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                hidden.add(child.value)
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", "{}") for part in node.values]
            hidden |= set(node.values)
            yield node.lineno, "".join(part if isinstance(part, str) else "{}" for part in parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.lineno, node.value


LONG = re.compile(r"(?<![\w-])--[a-z]")
LETTER = re.compile(r"(?<![\w.^-])-[A-Za-z]\b(?!'| /)")  # not r^-p, nor -E / (1 - E)
PROGRAMS = re.compile(r"\b(kgtrec [a-z]|ulimit|cut -f|awk|sort|iconv|-m pip)")


def options_in(text: str) -> bool:
    """Whether a text names options, other than those of a program that it also names."""
    before = PROGRAMS.split(text)[0]
    return bool(LONG.search(before) or LETTER.search(before))


def test_no_message_of_the_library_names_an_option() -> None:
    wrong = [
        f"{name}:{line}: {text}"
        for name, tree in modules()
        if name not in (*HELP, "__init__.py", "__main__.py")
        for line, text in texts(tree)
        if " " in text.strip() and options_in(text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("give --filter raw", True),
        ("a lower level (-l)", True),
        ("leave out -J, or the kg_ measures", True),
        ("use `kgtrec convert --write-questions`", False),
        ("raise the limit (ulimit -n)", False),
        ("a constant such as -inf", False),
        ("fill with -1, from 3-dimensional", False),
    ],
)
def test_options_are_told_from_other_words(text: str, is_one: bool) -> None:
    assert options_in(text) is is_one


def names_of_arguments() -> Iterator[tuple[str, str]]:
    """The names in calls that mark an argument, each with its place; options if these differ."""
    for name, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("argument", "choose", "check_count", "whole_number"):
                continue
            given = [word.value for word in node.keywords if word.arg == "option"] or node.args
            if given and isinstance(given[0], ast.Constant):
                yield str(given[0].value), f"{name}:{node.lineno}"


def test_every_named_argument_has_an_option_or_none_on_purpose() -> None:
    options = {
        name
        for _, command in fuzz_options.tree()
        for option in command.params
        for name in (str(option.name), long_name(option)[2:].replace("-", "_"))
    }
    named = dict(names_of_arguments())
    assert len(named) > 60
    unknown = {name: place for name, place in named.items() if name not in options}
    assert {*unknown} - ONLY_IN_PYTHON == set(), unknown
    assert ONLY_IN_PYTHON - {*unknown} == set()


def test_the_option_of_an_argument_belongs_to_its_command() -> None:
    by_words = dict(fuzz_options.tree())
    rank, audit = by_words["rank",], by_words["audit",]
    text = f"pass {argument('nan', 'worst')}, not {argument('lower_is_better', True)}"
    assert python_spelling(text) == "pass nan='worst', not lower_is_better=True"
    assert option_spelling(text, rank) == "pass --nan worst, not --lower-is-better"
    assert option_spelling(text, audit) == python_spelling(text)
    other = argument("higher_is_better", False, option="lower_is_better")
    assert python_spelling(other) == "higher_is_better=False"
    assert option_spelling(other, rank) == "--lower-is-better"
    empty = f"{argument('split', '')}, {argument('known')}, {argument('threads', 3)}"
    assert python_spelling(empty) == "split='', known=, threads=3"
    assert option_spelling(empty, rank) == "--split '', --known, --threads 3"
    assert option_spelling("filter='raw'", rank) == "filter='raw'"  # no argument, only such a text


def test_values_cannot_forge_an_argument() -> None:
    forged = argument("filter", argument("nan", 1))
    rank = dict(fuzz_options.tree())["rank",]
    assert "--nan" not in option_spelling(forged, rank)
    assert len(argument("filter", "x" * 10_000)) < 300


def test_errors_keep_their_arguments() -> None:
    text = f"pass {argument('nan', 'worst')}"
    error = errors.UsageError(text)
    assert str(error) == "pass nan='worst'"
    assert error.args == ("pass nan='worst'",)
    assert pickle.loads(pickle.dumps(error)).marked == text
    file = errors.FileError("x", 3, found="no", hint=text)
    assert str(file) == "x:3: no; pass nan='worst'"
    assert file.hint == "pass nan='worst'"
    assert file.at("y").marked == f"y:3: no; {text}"
    with pytest.raises(errors.InputError) as caught, errors.about("z"):
        raise errors.InputError(text)
    assert caught.value.marked == f"z: {text}"
    with pytest.warns(errors.FilterWarning, match="^pass nan='worst'$"):
        warnings.warn(errors.FilterWarning(text), stacklevel=1)


def test_all_categories_of_warnings_are_exported() -> None:
    categories = {each.__name__ for each in errors.KgtrecWarning.__subclasses__()}
    assert "SampleWarning" in categories
    assert categories <= {*kgtrec.__all__}


def test_a_quoted_error_names_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the file is added to an error of the arrays in it."""
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("model,MRR\na,1.5\n")
    assert "pass --percent if" in run_command("audit", "x.csv", "--n-entities", "9").err


def test_a_flag_is_no_option_with_a_value() -> None:
    command = click.Command("x", params=[click.Option(["--fast"], is_flag=True)])
    assert option_spelling(argument("fast", True), command) == "--fast"
