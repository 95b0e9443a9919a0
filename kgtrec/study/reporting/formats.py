r"""A table of models as LaTeX, Markdown, HTML, Typst, CSV and plain text, with its caption.

The caption says what was evaluated: graph, split, filter, candidates, averages, ties. Names of
models come from users and go into markup: every format escapes what would mean something in it.
LaTeX needs ``\usepackage{booktabs}``.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from kgtrec._internal.table import Table, latex_text
from kgtrec.measures import Measure
from kgtrec.ranking.provenance import Provenance
from kgtrec.results.comparability import comparable
from kgtrec.results.tables import SAMPLED

if TYPE_CHECKING:
    from kgtrec.ranking.ranks import Ranks
    from kgtrec.study.reporting.model_table import ModelColumn, ModelTable

TIES = {
    "optimistic": "ties count for the model (optimistic ranks)",
    "realistic": "an answer that ties stands in the middle of its tie (realistic ranks)",
    "pessimistic": "ties count against the model (pessimistic ranks)",
    "expected": "expectation over all orders of ties",
    "ordinal": "ties in trec_eval's order (ordinal ranks)",
}
AVERAGES = {
    "micro": "micro: over {instances:,} answers",
    "macro": "macro: over {questions:,} questions",
    "question": "question: over {questions:,} questions, all answers of each",
    "triple": "triple: over triples, by the mean rank of both sides",
    "relation": "relation: relations equally, in one mean",
    "macro_relation": "macro relation: mean over relations of their micro values",
    "stratified": "stratified: by popularity, (beta_e, beta_r)",
}


@dataclass(frozen=True)
class Protocol:
    """How models were evaluated on a graph.

    - filter: In words: "filtered by train, valid and test".
    - candidates: In words: "among all 14,541 entities".
    - sampled: Whether the candidates of every model were.
    - differences: What makes models incomparable: a sentence each.
    """

    split: str
    filter: str
    candidates: str
    questions: int
    instances: int
    sampled: bool = False
    differences: tuple[str, ...] = ()

    def text(self) -> str:
        """In one line: "test split, filtered by train, valid and test, among ..."."""
        parts = (f"{self.split} split" if self.split else "", self.filter, self.candidates)
        return ", ".join(filter(None, parts))


def protocol_of(systems: Mapping[str, Ranks]) -> Protocol:
    """How the first of several models was evaluated, and wherein others differ from it."""
    (first, ranks), *others = systems.items()
    facts = ranks.provenance
    differences = []
    for name, other in others:
        if reasons := comparable(ranks, other).reasons:
            differences.append(f"NOT COMPARABLE: {first} and {name} ({'; '.join(reasons)}).")
    return Protocol(
        split=facts.split or "",
        filter=_filter(facts),
        candidates=_candidates(facts),
        questions=len(np.unique(ranks.question)),
        instances=len(ranks),
        sampled=all(one.sampled for one in systems.values()),
        differences=tuple(differences),
    )


def caption(protocols: Mapping[str, Protocol], measures: Sequence[Measure], note: str) -> str:
    """The whole caption, in sentences."""
    sentences = []
    for name, protocol in protocols.items():
        text = protocol.text()
        sentences.append(f"{name}: {text}." if name else f"{text[:1].upper()}{text[1:]}.")
    one = next(iter(protocols.values()))
    sides = list(dict.fromkeys(measure.side for measure in measures))
    words = {"both": "both sides"}
    sentences.append(f"Predicted: {', '.join(words.get(side, side) for side in sides)}.")
    averages = list(dict.fromkeys(measure.averaging for measure in measures))
    counted = len(protocols) == 1 and sides == ["both"]
    sentences.append(f"Averages: {'; '.join(_average(a, one, counted) for a in averages)}.")
    sentences.append(_ties(measures))
    sentences.append("Best in bold, second best underlined.")
    sentences += [note] if note else []
    for protocol in protocols.values():
        sentences += protocol.differences
    return " ".join(sentences)


def _average(averaging: str, protocol: Protocol, counted: bool) -> str:
    text = AVERAGES[averaging]
    if counted:
        return text.format(instances=protocol.instances, questions=protocol.questions)
    return text.replace("{instances:,} ", "").replace("{questions:,} ", "")


def _ties(measures: Sequence[Measure]) -> str:
    kinds = list(dict.fromkeys(m.rank_type for m in measures if m.rank_type is not None))
    sentences = [TIES[kind] for kind in kinds]
    trec = list(dict.fromkeys(measure.title for measure in measures if measure.is_trec))
    sentences += [f"{', '.join(trec)}: {TIES['ordinal']}"] if trec else []
    return f"Ties: {'; '.join(sentences)}."


def _filter(facts: Provenance) -> str:
    if facts.filter_splits is None:
        return "filter not recorded"
    if not facts.filter_splits:
        return "unfiltered"
    *most, last = facts.filter_splits
    names = f"{', '.join(most)} and {last}" if most else last
    names += f" ({facts.context_filter})" if facts.context_filter else ""
    extra = facts.extra_known
    return f"filtered by {names}" + (f" and {extra:,} further triples" if extra else "")


def _candidates(facts: Provenance) -> str:
    if facts.sampled:
        return "among SAMPLED candidates"
    if facts.restricted:
        return f"candidates restricted by {facts.restricted}"
    what = "relations" if facts.sides == "relation" else "entities"
    n = facts.n_relations if facts.sides == "relation" else facts.n_entities
    return f"among all {n:,} {what}" if n else ""


def latex(table: ModelTable) -> str:
    r"""A ``table`` float with ``booktabs`` rules; the label is ``tab:models``."""
    n = len(table.columns)
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(table.caption())}}}",
        r"\label{tab:models}",
        rf"\begin{{tabular}}{{l{'r' * n}}}",
        r"\toprule",
    ]
    for level in table.levels():
        cells, rules, first = [""], [], 2
        for text, size in level:
            cells.append(rf"\multicolumn{{{size}}}{{c}}{{{latex_text(text)}}}")
            rules.append(rf"\cmidrule(lr){{{first}-{first + size - 1}}}")
            first += size
        lines += [" & ".join(cells) + r" \\", " ".join(rules)]
    titles = [latex_text(c.measure.title) + _arrow(c, r" $\uparrow$", r" $\downarrow$") for c in
              table.columns]  # fmt: skip
    lines += [" & ".join(["Model", *titles]) + r" \\", r"\midrule"]
    marks = (r"\textbf{{{}}}", r"\underline{{{}}}", r"$^{{\mathrm{{{}}}}}$", r" $\pm$ {}")
    for row in range(len(table.models)):
        name = latex_text(_lettered(table, row))
        cells = _cells(table, row, marks, lambda text: _dashed(latex_text(text), "--"))
        lines.append(" & ".join([name, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def markdown(table: ModelTable) -> str:
    """A Markdown (GitHub) table; headings above a column stand before its own."""
    titles = [_markdown_text(title) + _arrow(c, " ↑", " ↓") for title, c in
              zip(table.titles(), table.columns, strict=True)]  # fmt: skip
    marks = ("**{}**", "<ins>{}</ins>", "<sup>{}</sup>", " ± {}")
    lines = [["Model", *titles], ["---"] + ["---:"] * len(titles)]
    for row in range(len(table.models)):
        name = _markdown_text(_lettered(table, row))
        lines.append([name, *_cells(table, row, marks, str)])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{rows}\n\n{_markdown_text(table.caption())}\n"


def html_text(table: ModelTable) -> str:
    """A ``table`` element without style: every heading with its scope, the caption below."""
    head = []
    for level in table.levels():
        spans = "".join(
            f'<th scope="colgroup" colspan="{size}">{_html(text)}</th>' for text, size in level
        )
        head.append(f"<tr><td></td>{spans}</tr>")
    titles = "".join(
        f'<th scope="col">{_html(c.measure.title)}{_arrow(c, " ↑", " ↓")}</th>'
        for c in table.columns
    )
    head.append(f'<tr><th scope="col">Model</th>{titles}</tr>')
    marks = ("<strong>{}</strong>", "<u>{}</u>", "<sup>{}</sup>", " ± {}")
    body = []
    for row in range(len(table.models)):
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(table, row, marks, _html_cell))
        name = _html(_lettered(table, row))
        body.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    lines = ["<table>", f"<caption>{_html(table.caption())}</caption>", "<thead>", *head,
             "</thead>", "<tbody>", *body, "</tbody>", "</table>"]  # fmt: skip
    return "\n".join(lines) + "\n"


def typst(table: ModelTable) -> str:
    """A Typst ``figure``; what users named stands in strings, where nothing is markup."""
    n = len(table.columns)
    lines = [
        "#figure(",
        f"  caption: {_typst(table.caption())},",
        "  table(",
        f"    columns: {n + 1}, align: (left, ..(right,) * {n}), stroke: none,",
        "    table.hline(),",
    ]
    for level in table.levels():
        spans = [
            f"table.cell(colspan: {size}, align: center, {_typst(text)})" for text, size in level
        ]
        lines.append(f"    [], {', '.join(spans)},")
    titles = [_typst(c.measure.title + _arrow(c, " ↑", " ↓")) for c in table.columns]
    lines += [f"    {', '.join(['[Model]', *titles])},", "    table.hline(),"]
    marks = ("strong({})", "underline({})", " + super({})", ' + " ± " + {}')
    for row in range(len(table.models)):
        name = _typst(_lettered(table, row))
        lines.append(f"    {', '.join([name, *_cells(table, row, marks, _typst_cell)])},")
    return "\n".join([*lines, "    table.hline(),", "  ),", ") <tab-models>"]) + "\n"


def csv_text(table: ModelTable) -> str:
    """A line a model, headed by keys; values in full, without marks. Empty: not evaluated."""
    several = len(table.protocols) > 1
    heads, columns = ["model"], [[table.name(row) for row in range(len(table.models))]]
    for column in table.columns:
        dataset = column.heading.dataset
        prefix = f"{dataset}:" * several + SAMPLED * table.protocols[dataset].sampled
        heads.append(prefix + column.measure.key)
        columns.append(["" if math.isnan(v) else str(v) for v in column.values])
        if column.deviations:
            heads.append(f"{prefix}{column.measure.key}:std")
            columns.append(["" if math.isnan(v) else repr(v) for v in column.deviations])
    rows = list(zip(*columns, strict=True))
    return Table(heads, heads, (0,) * len(heads), rows).to_csv()


def plain(table: ModelTable) -> str:
    """Aligned columns of text; a star marks the best of each, and the caption follows."""
    lines = [["model", *(c.measure.title for c in table.columns)]]
    for row in range(len(table.models)):
        cells = _cells(table, row, ("{}*", "{} ", " {}", " ± {}"), str)
        lines.append([_lettered(table, row), *cells])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    _widen(widths, table.levels())
    text = [_level_line(spans, widths) for spans in table.levels()]
    for line in lines:
        first, *more = zip(line, widths, strict=True)
        text.append("  ".join([first[0].ljust(first[1]), *(c.rjust(w) for c, w in more)]).rstrip())
    caption = table.caption().replace("Best in bold, second best underlined.", "Best with a star.")
    return "\n".join([*text, "", fill(caption, 80, break_on_hyphens=False)]) + "\n"


FORMATS: dict[str, Callable[[ModelTable], str]] = {
    "table": plain,
    "latex": latex,
    "markdown": markdown,
    "html": html_text,
    "typst": typst,
    "csv": csv_text,
}
"""A function for each format that has tables of models."""


def _cells(
    table: ModelTable, row: int, marks: tuple[str, str, str, str], escape: Callable[[str], str]
) -> list[str]:
    """Values of a model with their marks: of the best, the second best, superscripts, deviation."""
    cells = []
    for column in table.columns:
        text = escape(column.printed()[row])
        place = column.places()[row]
        if place:
            text = marks[place - 1].format(text)
        letters = table.superscript(column, row)
        text += marks[2].format(escape(letters)) if letters else ""
        spread = column.spread(row)
        cells.append(text + marks[3].format(escape(spread)) if spread else text)
    return cells


def _arrow(column: ModelColumn, up: str, down: str) -> str:
    better = column.higher_is_better
    return "" if better is None else up if better else down


def _lettered(table: ModelTable, row: int) -> str:
    """The name with the letter that superscripts call it by, if there are any."""
    if table.significance is None or all(c.beaten is None for c in table.columns):
        return table.name(row)
    return f"({table.letter(row)}) {table.name(row)}"


def _dashed(text: str, dash: str) -> str:
    """The text of a cell, with the sign between two numbers that print has there."""
    return re.sub(r"(?<=\d)-(?=\d)", dash, text)


def _html_cell(text: str) -> str:
    return _dashed(_html(text), "\u2013")


def _typst_cell(text: str) -> str:
    return _dashed(_typst(text), "\u2013")


def _html(text: str) -> str:
    return html.escape(_readable(text), quote=True)


def _markdown_text(text: str) -> str:
    """Every character that Markdown could take for markup, with a backslash before it."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", _one_line(text)).replace("&", "&amp;")


def _typst(text: str) -> str:
    quoted = _one_line(_readable(text)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _readable(text: str) -> str:
    """Bytes of labels that are no UTF-8 as the sign for what cannot be shown."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]", " ", text)


def _widen(widths: list[int], levels: Sequence[Sequence[tuple[str, int]]]) -> None:
    """Make room for headings that are wider than the columns below them."""
    for level in levels:
        first = 1
        for text, size in level:
            span = sum(widths[first : first + size]) + 2 * (size - 1)
            widths[first] += max(0, len(text) - span)
            first += size


def _level_line(spans: Sequence[tuple[str, int]], widths: list[int]) -> str:
    text, first = " " * widths[0], 1
    for heading, size in spans:
        span = sum(widths[first : first + size]) + 2 * (size - 1)
        text += "  " + heading.center(span)
        first += size
    return text.rstrip()
