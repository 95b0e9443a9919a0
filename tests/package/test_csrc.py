"""The C core: calls and includes go one way, and each file looks up the features it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from checkout import ROOT, circle

FILES = {path.name: path.read_text("utf-8") for path in ROOT.glob("csrc/**/*.[ch]")}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
INCLUDE = re.compile(r'^#include "(\w+\.h)"', re.M)
# What other files can name: a function with its body, or a table with its entries.
DEFINED = re.compile(
    r"^(?!static|typedef|extern|KGT_INLINE)[a-z][\w *]*?\b(kgt_\w+)(?:\([^;{]*\) \{| = \{)", re.M
)
INLINE = re.compile(r"^KGT_INLINE [^;{]*\{(?:[^\n]*\}$|.*?^\})", re.M | re.S)
NAME = re.compile(r"\bkgt_\w+")


@cache
def plain(text: str) -> str:
    """A file without comments, with full names of functions made per type: ``kgt_x_f32``."""
    return re.sub(r"\bFN\((\w+)\)", r"\1_f32", COMMENT.sub(" ", text)).replace("_f64", "_f32")


def unit(name: str, files: Mapping[str, str]) -> str:
    """A file with its included templates inserted."""
    return INCLUDE.sub(
        lambda match: unit(match[1], files) if match[1].endswith("_body.h") else match[0],
        plain(files[name]),
    )


def graph(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The files that each file needs by calls and by includes; a ``.c`` and its header are one."""
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
    among: dict[str, set[str]] = {family_of(stem): set() for stem in needs}
    for stem, others in needs.items():
        among[family_of(stem)] |= {family_of(other) for other in others} - {family_of(stem)}
    return among


def family_of(name: str) -> str:
    return re.split(r"[_.]", name)[0]


def test_files_and_families_need_each_other_one_way():
    needs = graph(FILES)
    assert (circle(needs), circle(families(needs))) == ([], [])
    # By calls, from a template for either type, from a header's function, and by a table.
    assert {"factors_tiles", "factors_codes"} <= needs["factors_call"]
    assert "rank_row" in needs["factors_tiles"]
    assert "isa_dispatch" in needs["factors_block"]
    assert {"isa_avx512", "isa_bytes_avx512"} <= needs["isa_dispatch"]


BACK = [
    ("factors_tiles_body.h", "kgt_status FN(f)(void) { return kgt_rank_factors(); }", "call"),
    ("factors_settle.c", "\nstatic int f(void) { return kgt_rank_bounds(); }\n", "run"),
    ("factors_codes.h", "\nKGT_INLINE int f(void) { return kgt_queries_open(); }\n", ""),
    ("factors_bounds.h", '\n#include "factors_settle.h"\n', "settle"),
    ("rank_row_body.h", "\nvoid FN(f)(void) { FN(kgt_rank_by_tiles)(); }\n", "tiles"),
    ("factors_settle.c", "\n/* As kgt_rank_bounds has it. */\n", ""),
    ("factors_block.h", "\nkgt_status kgt_rank_bounds(const kgt_factors *factors);\n", ""),
]


def test_a_call_back_is_found():
    for name, text, found in BACK:
        said = circle(graph({**FILES, name: FILES[name] + text}))
        assert f"factors_{found}" in said if found else said == [], text


# -- Includes ----------------------------------------------------------------------------------

ANY_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<(?P<system>[^>]+)>|"(?P<own>[^"]+)")', re.M)
STANDARD = {
    "arm_neon.h",
    "cpuid.h",
    "immintrin.h",
    "locale.h",
    "math.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdlib.h",
    "string.h",
    "sys/auxv.h",
    "sys/syscall.h",
    "unistd.h",  # for questions that only the system answers
}
# Headers of the operating system, each for the one file that uses it.
SYSTEM = {
    "label_table.c": {"sys/mman.h"},  # on Linux
    "map_guard.c": {"errno.h", "signal.h", "sys/mman.h", "unistd.h"},
    "isa_platform.h": {"xlocale.h"},  # on macOS
    "trec_plain.c": {"stdio.h"},  # reads files
}
# A file's name begins with its family; the umbrella and what all families share are the exceptions.
FAMILIES = ("factors", "isa", "label", "map", "rank", "stat", "trec")
SHARED = {"kgtrec.h", "kgt_status.h"}
# Headers of other families that a family may include; its public header knows no internal one.
ACROSS = {
    "isa": set(),
    "label": {"trec_fields.h"},
    "map": set(),
    "rank": {"isa_kernel.h"},
    "factors": {"isa_bytes.h", "isa_kernel.h", "rank.h", "rank_row.h"},
    "stat": set(),
    "trec": {"isa_kernel.h", "isa_platform.h"},
}
PUBLIC: dict[str, set[str]] = {f"{family}.h": {"kgt_status.h"} for family in FAMILIES} | {
    "kgtrec.h": {f"{family}.h" for family in FAMILIES},
    "kgt_status.h": set(),
    "factors.h": {"kgt_status.h", "rank.h"},
}


def unwanted_includes(name: str) -> set[str]:
    """Headers that a C file includes and may not."""
    system, own = (
        {m[kind] for m in ANY_INCLUDE.finditer(FILES[name]) if m[kind]}
        for kind in ("system", "own")
    )
    unwanted = system - STANDARD - SYSTEM.get(name, set())  # Python.h, and anything of numpy
    if name in PUBLIC:
        return unwanted | own - PUBLIC[name]
    family = family_of(name)
    others = {header for header in own if family_of(header) != family}
    return unwanted | others - ACROSS[family] - {"kgt_status.h"}


PYTHON = re.compile(r"\bPy_?[A-Z]\w+\(|\bPyObject\b|\bnpy_\w+|\bPyArray")
# isa_platform.h looks up, for the ISA files, features that not every compiler's builtin knows.
FEATURES = re.compile(r"__builtin_cpu_\w+\(|kgt_cpu_has_\w+\(\)|__get_cpuid\(")


def test_c_files_have_a_family_and_know_only_what_is_below_them():
    assert {name for name in FILES if family_of(name) not in FAMILIES} == SHARED
    for name, text in FILES.items():
        assert unwanted_includes(name) == set(), name
        assert ANY_INCLUDE.search(text) or name.endswith(".h"), name
        assert not PYTHON.search(text), name
        assert not FEATURES.search(text) or family_of(name) == "isa", name
    assert any(map(FEATURES.search, FILES.values()))


def unasked(text: str) -> set[str]:
    """Features that a kernel file compiles for, less those that its ``available()`` asks for.

    A file with several paths has a section with a target per path, followed by its
    ``available_...()``; all paths use the first section.
    """
    sections = [
        (match.start(), {name.replace("-", "_") for name in match[1].split(",")})
        for match in re.finditer(r'KGT_TARGET_BEGIN\("([^"=]*)"\)', text)
    ]
    asked: dict[str, set[str]] = {}
    missing: set[str] = set()
    for match in re.finditer(r"static bool (available\w*)\(void\) \{(.*?)\}", text, re.S):
        name, body = match.groups()
        named = re.findall(r"\bKGT_([A-Z0-9]+)\b", body)
        inherited = [asked[other] for other in asked if f"{other}()" in body]
        asked[name] = {feature.lower() for feature in named}.union(*inherited)
        enabled = [features for start, features in sections if start < match.start()]
        missing |= set().union(*enabled[:1], *enabled[-1:]) - asked[name]
    return missing


def test_a_path_is_available_only_where_all_its_features_are():
    kernels = {name for name, text in FILES.items() if "static bool available(void)" in text}
    assert len(kernels) > 3
    assert {name for name in kernels if unasked(FILES[name])} == set()
    assert not any("__builtin_cpu_supports" in text for text in FILES.values())


def test_the_cython_mirror_takes_the_public_headers_one_block_each():
    mirrored = re.findall(
        r'cdef extern from "([^"]+)"', (ROOT / "kgtrec/_csrc.pxd").read_text("utf-8")
    )
    own = [name for name in mirrored if not name.startswith("<")]
    assert sorted(own) == sorted({*PUBLIC["kgtrec.h"], "kgt_status.h"})


def test_a_feature_that_nobody_asks_for_is_found():
    text = (
        'KGT_TARGET_BEGIN("avx2,f16c,bmi2")\n'
        "static bool available(void) { return kgt_cpu_has(KGT_AVX2); }\n"
        "static bool other(void) { return kgt_cpu_has(KGT_BMI2); }\n"
    )
    assert unasked(text) == {"f16c", "bmi2"}
    text = text.replace("(KGT_AVX2)", "(KGT_AVX2 | KGT_F16C)")
    assert unasked(text) == {"bmi2"}
    text = text.replace(",bmi2", "") + 'KGT_TARGET_BEGIN("avx2,avxvnni")\n'
    more = "static bool available_more(void) { return available() && kgt_cpu_has(KGT_AVXVNNI); }\n"
    assert unasked(text + more) == set()
    assert unasked(text + more.replace("available()", "true")) == {"avx2", "f16c"}
    assert unasked(text + more.replace("kgt_cpu_has(KGT_AVXVNNI)", "true")) == {"avxvnni"}


def test_rows_of_any_stride_have_signed_offsets() -> None:
    """A negative offset plus an unsigned index would be a huge unsigned offset."""
    files = sorted((ROOT / "csrc").rglob("*.[ch]"))
    mixed = re.compile(r"\(ptrdiff_t\)\w+ \* stride \+ (?!\(ptrdiff_t\))")
    assert files
    assert [one.name for one in files if mixed.search(one.read_text())] == []
