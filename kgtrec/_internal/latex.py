"""LaTeX source of any text: no markup, and signs that pdfLaTeX lacks as mathematics."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from kgtrec._internal.text import visible

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
# Characters that LaTeX's default fonts print differently, and pairs that become one sign.
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''"}
_LATEX |= {"[": "{[}", "*": "{*}"}  # after the \\\\ of the previous line, they would belong to it
_LATEX |= {"\N{EN DASH}": "--", "…": r"\ldots{}"}
# Signs without an accent or a Greek name that pdfLaTeX does not know; \ensuremath needs no package.
_MATHS = {
    0x2212: "-",
    0x2217: "*",
    0x221E: r"\infty",
    0x2264: r"\le",
    0x2265: r"\ge",
    0x2260: r"\ne",
    0x2248: r"\approx",
    0x223C: r"\sim",
    0x2261: r"\equiv",
    0x2192: r"\rightarrow",
    0x2190: r"\leftarrow",
    0x2194: r"\leftrightarrow",
    0x2191: r"\uparrow",
    0x2193: r"\downarrow",
    0x21D2: r"\Rightarrow",
    0x21D4: r"\Leftrightarrow",
    0x222A: r"\cup",
    0x2229: r"\cap",
    0x2208: r"\in",
    0x2209: r"\notin",
    0x2282: r"\subset",
    0x2286: r"\subseteq",
    0x2205: r"\emptyset",
    0x2200: r"\forall",
    0x2203: r"\exists",
    0x2227: r"\wedge",
    0x2228: r"\vee",
    0x2218: r"\circ",
    0x221A: r"\surd",
    0x2202: r"\partial",
    0x2207: r"\nabla",
    0x2211: r"\sum",
    0x220F: r"\prod",
    0x222B: r"\int",
    0x03F5: r"\epsilon",
    0x03D1: r"\vartheta",
    0x03D5: r"\phi",
}
_ACCENTS = dict(
    zip(
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c",
        "`'^~=u.\"rHv",
        strict=True,
    )
)
_ACCENTS |= {"\u0323": "d", "\u0327": "c", "\u0331": "b"}
_RAISED = {"<super>": "^", "<sub>": "_"}
_KNOWN_TO_LATEX = 0x180  # pdfLaTeX reads the letters of Western and Central Europe below this one
# Greek letters; LaTeX has no commands for capitals that look like the Latin letter after a colon.
_GREEK = (
    "ALPHA:A BETA:B GAMMA DELTA EPSILON:E ZETA:Z ETA:H THETA IOTA:I KAPPA:K LAMDA MU:M NU:N XI "
    "OMICRON:O PI RHO:P SIGMA TAU:T UPSILON PHI CHI:X PSI OMEGA"
)
_LATIN_OF = {name: latin for name, _, latin in (entry.partition(":") for entry in _GREEK.split())}
_CONTROL = re.compile(r"[\x01-\x1f\x7f\u2028\u2029]")
_LIGATURES = re.compile(r"(?<=[-`',?!])(?=[-`',])|(?<=[?!])(?=`)")


def latex_text(text: str) -> str:
    """Return LaTeX source that prints exactly this text, without markup or ligatures."""
    parts = _LIGATURES.split(visible(_CONTROL.sub(" ", text)))
    return "{}".join("".join(map(_latex_sign, part)) for part in parts)


PACKAGES = r"% \usepackage{booktabs,graphicx}"
"""First line of every table: the packages that it needs."""


def fit_to_line(tabular: Sequence[str]) -> list[str]:
    """Return the lines of a ``tabular`` that LaTeX scales if it is wider than its line.

    The line may be a column of a paper in two columns; LaTeX measures both.
    """
    *lines, end = tabular
    fitted = r"\ifdim\wd0>\linewidth \resizebox{\linewidth}{!}{\usebox{0}}\else \usebox{0}\fi"
    return [r"\sbox{0}{%", *lines, f"{end}}}", fitted]


def in_table(body: Sequence[str], caption: str = "", label: str = "") -> list[str]:
    """Return the lines of a ``table`` that floats, with its caption above `body`.

    - caption, label: A text, and a name for references, as users type them; "" for none.
    """
    lines = [r"\begin{table}", r"\centering", r"\setlength{\belowcaptionskip}{6pt}"]
    lines += [rf"\caption{{{latex_text(caption)}}}"] * bool(caption)
    lines += [rf"\label{{{label}}}"] * bool(label)
    return [*lines, *body, r"\end{table}"]


def _latex_sign(sign: str) -> str:
    """Return a character as LaTeX source.

    Characters of other scripts are unchanged; they need XeLaTeX or LuaLaTeX and a font.
    """
    if sign in _LATEX or ord(sign) < _KNOWN_TO_LATEX:
        return _LATEX.get(sign, sign)
    if ord(sign) in _MATHS:
        return rf"\ensuremath{{{_MATHS[ord(sign)]}}}"
    if greek := _latex_greek(unicodedata.name(sign, "")):
        return rf"\ensuremath{{{greek}}}"
    kind, _, plain = unicodedata.decomposition(sign).partition(" ")
    if kind in _RAISED:
        raised = "".join(_latex_sign(chr(int(code, 16))) for code in plain.split())
        return rf"\ensuremath{{{_RAISED[kind]}{{{raised}}}}}"
    base, *accents = [*unicodedata.normalize("NFD", sign)]
    if not accents or not all(accent in _ACCENTS for accent in accents):
        return sign
    source = _latex_sign(base)
    for accent in accents:
        source = rf"\{_ACCENTS[accent]}{{{source}}}"
    return source


def _latex_greek(character: str) -> str:
    """Return the mathematics of a Greek letter by its Unicode name; "" for other characters."""
    case, _, name = character.removeprefix("GREEK ").partition(" LETTER ")
    if (case, name) == ("SMALL", "FINAL SIGMA"):
        return r"\varsigma"
    if case not in ("SMALL", "CAPITAL") or name not in _LATIN_OF or "GREEK" not in character:
        return ""
    latin, command = _LATIN_OF[name], "lambda" if name == "LAMDA" else name.lower()
    if case == "SMALL":
        return "o" if name == "OMICRON" else rf"\{command}"
    return rf"\mathrm{{{latin}}}" if latin else rf"\{command.capitalize()}"
