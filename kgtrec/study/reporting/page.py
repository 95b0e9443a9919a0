"""The report page: one HTML file with its data, styles and script, that loads nothing.

Labels of the graph and names of models reach the page only as data: a block of JSON in which no
``<`` stands, which the script puts into text nodes. A content security policy lets nothing else
run or load: the one script is named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from typing import Any

from kgtrec._internal.table import finite

__all__ = ["page_text"]

SCRIPTS = ("charts.js", "tables.js", "report.js")


def page_text(data: dict[str, Any], title: str = "") -> str:
    """The whole page.

    Parameters
    ----------
    data : dict
        From `kgtrec.study.reporting.page_data.page_data`.
    title : str, optional
        Of the page; by default the graph's name.
    """
    heading = title or ": ".join(filter(None, ("Link prediction", data["graph"])))
    script = "".join(_asset(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    style = _asset("report.css")
    page = _asset("report.html")
    parts = {
        "{{policy}}": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "{{title}}": html.escape(_readable(heading)),
        "{{style}}": style,
        "{{data}}": embedded_json(data),
        "{{script}}": script,
    }
    # Each part once, from left to right: what is put in is not looked at again.
    text, rest = "", page
    for mark in ("{{policy}}", "{{title}}", "{{style}}", "{{title}}", "{{data}}", "{{script}}"):
        before, _, rest = rest.partition(mark)
        text += before + parts[mark]
    return text + rest


def embedded_json(value: object) -> str:
    """JSON that may stand in a ``script`` element: in ASCII, without ``<``, ``>`` and ``&``."""
    text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return (resources.files("kgtrec.study.reporting") / "assets" / name).read_text("utf-8")


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
