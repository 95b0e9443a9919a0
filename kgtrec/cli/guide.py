"""``kgtrec guide``: the guides, laid out for a terminal.

Supports only the Markdown that guides use: a library would double the start-up time.
"""

from __future__ import annotations

import re
from itertools import zip_longest

import click

from kgtrec import guides
from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report

MOST = 100  # columns, even on wider terminals
# Patterns as text, compiled only when a guide is laid out.
_BLOCK = r"""(?x)(?P<indent>\ *)```\w*\ *(?P<file>.*)\n(?P<code>(?:.*\n)*?)(?P=indent)```\n
    | (?P<blank>\n)
    | \#+\ (?P<heading>.*)\n
    | (?P<table>(?:\|.*\n)+)
    | (?P<lead>\ *(?:(?:-|\d+\.)\ )?)(?P<text>\S.*\n(?:(?!\ *(?:```|-\ |\d+\.\ )|[#|])\ *\S.*\n)*)
    """
_INLINE = (
    r"`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|\*(?P<italic>[^*\s][^*]*)\*"
    r"|\[(?P<link>[^]]+)\]\((?P<target>[^)]+)\)"
)
_GAP = "  "


def lay_out(markdown: str, width: int) -> str:
    """Lay out Markdown as lines of `width` columns with the escape codes of a terminal."""
    parts = []
    for block in re.finditer(_BLOCK, markdown):
        if block["code"] is not None:
            if "." in block["file"]:  # an example is a file; else it names a library
                parts.append(f"{block['file']}:")
            parts += [f"    {line}".rstrip() for line in block["code"].splitlines()]
        elif block["blank"]:
            parts.append("")
        elif block["heading"]:
            title = block.start() == 0
            parts.append(click.style(block["heading"], bold=True, underline=title or None))
        elif block["table"]:
            parts += _table(block["table"].splitlines(), width)
        else:
            lead, text = block["lead"], _style(" ".join(block["text"].split()))
            lines = _wrap(text, width - len(lead))
            parts.append(lead + f"\n{' ' * len(lead)}".join(lines))
    return "\n".join(parts)


def _style(text: str) -> str:
    """Replace the marks of a text: code and stress are bold, links and italics underlined."""

    def replace(match: re.Match[str]) -> str:
        words = match["code"] or match["bold"] or match["italic"] or match["link"]
        bold, more = bool(match["code"] or match["bold"]), ""
        target = match["target"] or ""
        name = target.partition(".md")[0]
        if target and name not in words.lower().replace(" ", "-"):
            more = f" (kgtrec guide {name})" if name in guides.ORDER else f" ({target})"
        plain = words if match["code"] else words.replace("`", "")
        style = {"bold": True} if bold else {"underline": True}
        words_of_link = (click.style(word, **style) for word in plain.split())
        return " ".join(words_of_link) + more

    return re.sub(_INLINE, replace, text)


def _length(text: str) -> int:
    """Return the number of columns of a text, without its escape codes."""
    return len(click.unstyle(text))


def _wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of whole words. A word that is too long has its own line."""
    lines = [""]
    for word in text.split():
        if lines[-1] and _length(lines[-1]) + 1 + _length(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _table(lines: list[str], width: int) -> list[str]:
    """Align columns under headings. The widest columns wrap until the table fits."""
    cells = [re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in lines[:1] + lines[2:]]
    rows = [[_style(cell.strip().replace("\\|", "|")) for cell in row] for row in cells]
    widths = [max(map(_length, column)) for column in zip(*rows, strict=True)]
    words = [" ".join(column).split() for column in zip(*rows, strict=True)]
    least = [min(max(map(_length, column), default=0), width // 3) for column in words]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        loose = [i for i, size in enumerate(widths) if size > least[i]]
        if not loose:
            break
        widths[max(loose, key=widths.__getitem__)] -= 1
    printed = []
    for row in rows:
        columns = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
        for parts in zip_longest(*columns, fillvalue=""):
            sized = zip(parts, widths, strict=True)
            line = _GAP.join(part + " " * (size - _length(part)) for part, size in sized)
            printed.append(line.rstrip())
        if row is rows[0]:
            printed = [click.style(line, bold=True) for line in printed]
            printed.append(_GAP.join("-" * size for size in widths))
    return printed


@click.command(cls=Command)
@click.argument("name", required=False)
@shared.flag("--path as_path", "Print where the guide's file is.")
def command(name: str | None, as_path: bool) -> Report:
    """List the guides, or show the guide NAME, in a pager if the output is a terminal.

    Their examples use the files that `kgtrec demo` leaves, so you can paste them as they are.

    \b
    kgtrec guide
    kgtrec guide ties
    kgtrec guide runs-and-qrels > runs-and-qrels.md
    """
    if name is None:
        width = max(map(len, guides.ORDER))
        lines = [f"{guide:{width}}  {guides.title(guide)}" for guide in guides.ORDER]
        return Report(lambda: "\n".join(lines))
    if as_path:
        path = str(guides.path(name))
        return Report(lambda: path)
    text = guides.text(name)
    return Report(lambda: text, pages=lambda columns: lay_out(text, min(columns, MOST)))
