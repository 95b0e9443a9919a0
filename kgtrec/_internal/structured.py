"""JSON and TOML from files that anybody may have written, read within limits.

Parsers call themselves for each level of nesting, so deep nesting would exhaust the stack or take
minutes. Every fault is a ValueError, whose text says what is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

DEEPEST = 64
"""Levels of nesting; no file that kgtrec reads needs ten."""

LARGEST_TOML = 16 << 20
"""Bytes of a TOML file, whose parser is slow."""

_MOST_KEY_PARTS = 64
_JSON_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_TOML_TOKENS = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""|' + rb"'''.*?'''|" + rb'"(?:[^"\\\n]|\\.)*"?|' + rb"'[^'\n]*'?|"
    rb"#[^\n]*|[\[{]|[\]}]",
    re.DOTALL,
)
_LONG_KEY = re.compile(rb"(?:[\w\"'-]{1,200}[ \t]*\.[ \t]*){%d}" % _MOST_KEY_PARTS)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        No JSON, or nested more deeply than `DEEPEST`.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    _check_depth(raw, _JSON_TOKENS)
    return json.loads(text)


def parse_toml(raw: bytes) -> dict[str, Any]:
    """Return the tables of a TOML text in UTF-8.

    Raises
    ------
    ValueError
        No TOML (`tomllib.TOMLDecodeError`), not UTF-8 (`UnicodeDecodeError`), longer than
        `LARGEST_TOML`, nested more deeply than `DEEPEST`, or with keys of too many parts.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if len(raw) > LARGEST_TOML:
        raise ValueError(f"it has {len(raw):,} bytes; at most {LARGEST_TOML:,} are read")
    text = raw.decode()
    _check_depth(raw, _TOML_TOKENS)
    if _LONG_KEY.search(raw):
        raise ValueError(f"a key has more than {_MOST_KEY_PARTS} parts")
    return tomllib.loads(text)


def _check_depth(raw: bytes, tokens: re.Pattern[bytes]) -> None:
    """Raise ValueError if lists and objects are nested more deeply than `DEEPEST`."""
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return
    depth = 0
    for match in tokens.finditer(raw):
        first = match[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
