"""The advice that messages of the package give, and where the recorded tests follow it.

A piece of advice is a word that a user would copy: a declaration (``hype:``), an option in a place
where a sentence suggests it (``add --by``), an argument with its value (``ties='expected'``), a
command (``kgtrec report``), or a program (``awk``). Docstrings and the help of options are no
messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import transcripts

import kgtrec
from kgtrec.cli import cli

PACKAGE = Path(kgtrec.__file__).parent
GOLDEN = Path(__file__).parents[1] / "golden"

_COMMANDS = "|".join(sorted({*cli.list_commands(None)}))  # type: ignore[arg-type]
_SUGGEST = "add|pass|give|choose|declare|use|with|see"
PATTERNS = (
    re.compile(r"(?<![\w/.-])([a-z][a-z-]+(?:,[hrt]{3})?:)DIR"),
    re.compile(rf"(?:\b(?:{_SUGGEST}) |; )(--[a-z][a-z-]+)"),
    re.compile(r"""(?<![\w.(=-])([a-z_]{3,}=(?:'[^' {}]+'|True|False|\d+))(?![\w"])"""),
    re.compile(rf"(kgtrec (?:{_COMMANDS}))\b"),
    re.compile(r"\b(awk|cut -f|iconv)\b"),
)
NONE = {
    "columns='candidates'": "quotes an argument that the caller gave",
    "context='time'": "quotes, or asks to rank the questions anew",
    "context='qualifiers'": "as above",
    "--score-columns": "quotes options of which the caller gives one",
    "rows='questions'": "quotes how questions were stored",
    "norm_flag=False": "quotes OpenKE's own option",
    "map_location='cpu'": "a line of Python for torch, run where LibKGE is installed",
    "weights_only=False": "as above",
    "protocol='kgtrec'": "quotes an argument that the caller gave",
    "higher_is_better=False": "to be left out, or quoted",
    "judged_only=True": "to be left out",
    "qrels_format='qrels'": "the default",
    "sides='relation'": "names the call for scores of another program",
    "kgtrec classify": "names what evaluates such files",
    "kgtrec formats": "lists what may be given, and is recorded elsewhere",
    "kgtrec guide": "help, executed by the tests of guides",
    "kgtrec stratify": "help of a metric",
    "kgtrec complete": "names what made the file",
}
"""What looks like advice, but suggests no call that could be followed, and why."""

_HELP = re.compile(  # what makes options and tables of help
    "all_of|option|flag|reads|writes|draws|files|choice|graph|runs|seed|split|sides|output|form|"
    "ranking_files|command|confidence|Format|TrecMeasure|compile"
)
_OTHER_TEXT = ("guides", "demo")  # texts to read, which have tests of their own


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) or "{}" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _argument_of(node.value)
    return None


def _argument_of(node: ast.expr) -> str | None:
    """``name='value'`` of a call ``argument("name", "value")``, as Python's messages show it."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "argument"):
        return None
    values = [part.value for part in node.args if isinstance(part, ast.Constant)]
    return f"{values[0]}={values[1]!r}" if len(values) == 2 else None


def texts() -> Iterator[tuple[str, str]]:
    """Place and text of every literal of the package that may be a part of a message."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] in _OTHER_TEXT:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        skipped: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and _text_of(node.value) is not None:
                skipped.add(id(node.value))
            elif isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
            elif isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if _HELP.fullmatch(called):
                    skipped |= {id(below) for below in ast.walk(node)}
        for node in ast.walk(tree):
            text = _text_of(node)
            if text and " " in text and id(node) not in skipped:
                yield f"{name}:{node.lineno}", text


def advice() -> dict[str, str]:
    """Every piece of advice, and a place that gives it; see `NONE`."""
    pieces: dict[str, str] = {}
    for source, text in texts():
        for pattern in PATTERNS:
            for piece in {*pattern.findall(text)} - {*NONE}:
                pieces.setdefault(piece, source)
    return pieces


def spellings(piece: str) -> tuple[str, ...]:
    """The piece, and an argument as the option that is its name on the command line."""
    name, _, value = piece.partition("=")
    if not value:
        return (piece,)
    option = f"--{name.replace('_', '-')}"
    return piece, option if value == "True" else f"{option} {value.strip(chr(39))}"


def followed(pieces: set[str]) -> set[str]:
    """Pieces that a recorded message gives, and that a later call of its file follows.

    The call that follows contains the piece, and its own messages do not give it again.
    """
    done: set[str] = set()
    for path in sorted(GOLDEN.glob("c*/*.txt")):
        heard: set[str] = set()
        for command, below in transcripts.parse_blocks(path.read_text("utf-8")):
            said = "\n".join(line for line in below.splitlines() if line.startswith("! "))
            for piece in pieces:
                gives = any(form in said for form in spellings(piece))
                if piece in heard and any(form in command for form in spellings(piece)):
                    if not gives:
                        done.add(piece)
                elif gives:
                    heard.add(piece)
    return done
