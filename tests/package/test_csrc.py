"""Who calls whom in the C core: one way, among its files and among its families."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest
from checkout import ROOT

FILES = {path.name: path.read_text("utf-8") for path in ROOT.glob("csrc/*.[ch]")}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
INCLUDE = re.compile(r'^#include "(\w+\.h)"', re.M)
# What other files can name: a function with its body, or a table with its entries.
DEFINED = re.compile(
    r"^(?!static|typedef|extern|KGT_INLINE)[a-z][\w *]*?\b(kgt_\w+)(?:\([^;{]*\) \{| = \{)", re.M
)
INLINE = re.compile(r"^KGT_INLINE [^;{]*\{(?:[^\n]*\}$|.*?^\})", re.M | re.S)
NAME = re.compile(r"\bkgt_\w+")


def plain(text: str) -> str:
    """A file without comments, in which names that are made for a type are whole: ``kgt_x_f32``."""
    return re.sub(r"\bFN\((\w+)\)", r"\1_f32", COMMENT.sub(" ", text)).replace("_f64", "_f32")


def unit(name: str, files: Mapping[str, str]) -> str:
    """A file with the templates that it includes in their places."""
    return INCLUDE.sub(
        lambda match: unit(match[1], files) if match[1].endswith("_body.h") else match[0],
        plain(files[name]),
    )


def graph(files: Mapping[str, str]) -> dict[str, set[str]]:
    """What each file needs, a ``.c`` and its header being one: by calls and by includes."""
    units = {name: unit(name, files) for name in files if not name.endswith("_body.h")}
    stems = {name: name.partition(".")[0] for name in units}
    home = {
        symbol: stems[name]
        for name, text in units.items()
        if name.endswith(".c")
        for symbol in DEFINED.findall(text)
    }
    needs: dict[str, set[str]] = {stem: set() for stem in stems.values()}
    for name, text in units.items():
        # A header declares what other files define; only its functions call.
        body = text if name.endswith(".c") else " ".join(INLINE.findall(text))
        called = {home[symbol] for symbol in NAME.findall(body) if symbol in home}
        needs[stems[name]] |= called | {stems[header] for header in INCLUDE.findall(text)}
    return {stem: others - {stem} for stem, others in needs.items()}


def families(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same among the first words of the names."""
    among: dict[str, set[str]] = {}
    for stem, others in needs.items():
        family = stem.partition("_")[0]
        among.setdefault(family, set()).update(other.partition("_")[0] for other in others)
    return {family: others - {family} for family, others in among.items()}


def circle(needs: Mapping[str, set[str]]) -> list[str]:
    """The names along a circle, or none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_files_need_each_other_one_way():
    assert circle(graph(FILES)) == []


def test_families_need_each_other_one_way():
    assert circle(families(graph(FILES))) == []


def test_the_calls_are_found():
    needs = graph(FILES)
    assert {"factors_run", "factors_tiles", "factors_codes"} <= needs["factors_call"]
    assert {"factors_rows", "factors_settle", "factors_queries"} <= needs["factors_run"]
    assert "rank_row" in needs["factors_tiles"]  # from a template, for either type
    assert "isa_dispatch" in needs["factors_block"]  # from a header's function
    assert {"isa_avx512", "isa_bytes_avx512"} <= needs["isa_dispatch"]  # tables


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("factors_tiles_body.h", "kgt_status FN(f)(void) { return kgt_rank_factors(); }", "call"),
        ("factors_settle.c", "\nstatic int f(void) { return kgt_rank_bounds(); }\n", "run"),
        ("factors_codes.h", "\nKGT_INLINE int f(void) { return kgt_queries_open(); }\n", ""),
        ("factors_bounds.h", '\n#include "factors_settle.h"\n', "settle"),
        ("rank_row_body.h", "\nvoid FN(f)(void) { FN(kgt_rank_by_tiles)(); }\n", "tiles"),
        ("factors_settle.c", "\n/* As kgt_rank_bounds has it. */\n", ""),
        ("factors_block.h", "\nkgt_status kgt_rank_bounds(const kgt_factors *factors);\n", ""),
    ],
)
def test_a_call_back_is_found(name: str, text: str, found: str):
    said = circle(graph({**FILES, name: FILES[name] + text}))
    assert f"factors_{found}" in said if found else said == []
