"""The report page: one HTML file with its data, styles and script; it loads nothing.

The page computes nothing. Each study gives it a `Section` of plain types, and `builder` computes
them all. Labels of the graph and names of models reach the page only as data: a block of JSON
without ``<``, which the script puts into text nodes. A content security policy lets nothing else
run or load; it names the one script by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from kgtrec._internal.table import escape_html, finite
from kgtrec._version import __version__
from kgtrec.study.section import Section

SCRIPTS = ("charts.js", "tables.js", "report.js")


def assemble_data(
    head: Mapping[str, Any], sections: Sequence[Section], summary: Sequence[Section]
) -> dict[str, Any]:
    """Return the data of a page from its sections, in plain JSON types.

    Parameters
    ----------
    head : mapping of str to Any
        Facts on the whole page: ``graph``, ``side``, ``caption``, ``warnings`` and ``models``.
    sections : sequence of Section
        The sections in the order of the page.
    summary : sequence of Section
        Those whose sentences the summary contains, in its order.
    """
    data: dict[str, Any] = {"kgtrec": __version__, **head}
    data["summary"] = [sentence for section in summary for sentence in section.sentences]
    for section in sections:
        data.update(section.data)
    return data


def render_page(data: Mapping[str, Any]) -> str:
    """Return the HTML of the page from the data of `assemble_data`."""
    task = "Ranking" if data["side"] == "all" else "Link prediction"
    heading = ": ".join(filter(None, (task, data["graph"])))
    script = "".join(_read_asset(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "title": escape_html(heading),
        "style": _read_asset("report.css"),
        "data": dump_for_script(data),
        "script": script,
    }
    # Inserted text is not searched for marks.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _read_asset("report.html"))


def dump_for_script(value: object) -> str:
    """Return JSON that is safe in a ``script`` element: ASCII without ``<``, ``>`` and ``&``."""
    text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _read_asset(name: str) -> str:
    """Read a file of the page's template, such as its style."""
    return (resources.files("kgtrec.study.reporting") / "assets" / name).read_text("utf-8")
