"""The table for people: a list of all measures, and explanations of single measures."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from kgtrec.errors import UsageError
from kgtrec.measures import keys
from kgtrec.measures.keys import AVERAGINGS, METRICS, RankMetric, fill_parameter, is_key
from kgtrec.measures.measure import Measure
from kgtrec.measures.ties import RANK_TYPES
from kgtrec.trec.measures.names import key_column, stems_at
from kgtrec.trec.measures.rows import TABLE

WIDTH = 80

SIDE_TEXTS = {
    "head": "the head is predicted: (?, r, t)",
    "tail": "the tail is predicted: (h, r, ?)",
    "both": "all instances of both",
    "relation": "the relation is predicted: (h, ?, t)",
    "qualifier": "a qualifier's value is predicted: (h, r, t, qualifier relation, ?)",
    "all": "questions that are not of a graph: given answers, qrels",
}
_SECTIONS = {
    "averaging": (AVERAGINGS, "both.realistic.{}.mrr"),
    "rank type": (RANK_TYPES, "both.{}.micro.mrr"),
    "side": (SIDE_TEXTS, "{}.realistic.micro.mrr"),
}
"""Words of keys with their texts, and where they are in a key."""
_SENTENCE = re.compile(r"(?<=[\w)]\.) (?=[A-Z(])|; ")
_SYMBOLS = (
    "r rank, c number of candidates, w weight of an item (1 for micro) and W their sum; E and Var "
    "are those of a random scorer"
)


def all_names() -> dict[str, Any]:
    """Return all metrics, averagings, rank types, sides and trec_eval measures, as plain types."""
    return {
        "metrics": [_row(metric) for metric in METRICS],
        "averagings": dict(AVERAGINGS),
        "rank_types": dict(RANK_TYPES),
        "sides": dict(SIDE_TEXTS),
        "trec_eval": [_trec_row(name) for name, row in TABLE.items() if is_key(row)],
        "of_run_files_only": [name for name, row in TABLE.items() if not is_key(row)],
    }


def list_names() -> str:
    """Format `all_names` as text, at most 80 columns wide."""
    parts = [
        "A key is SIDE.RANK_TYPE.AVERAGING.METRIC, as in both.realistic.micro.hits@10;\n"
        "for trec_eval's measures it is SIDE.macro.NAME. The defaults are both, realistic\n"
        "and micro: hits@10, tail.mrr. `kgtrec measures NAME` explains one.",
        _block(
            "Rank metrics (+ higher is better, - lower)",
            {_mark_direction(m): m.help for m in METRICS},
        ),
        _block("Averagings", AVERAGINGS),
        _block("Rank types, from a tie's counts", RANK_TYPES),
        _block("Sides", SIDE_TEXTS),
        _block(
            "trec_eval's measures, over questions",
            {
                name + row.ending: _SENTENCE.split(row.text)[0].rstrip(".") + "."
                for name, row in TABLE.items()
                if is_key(row)
            },
        ),
    ]
    trec_names = [name for name, row in TABLE.items() if not is_key(row)]
    text = f"Only for files of qrels and runs (kgtrec eval): {', '.join(trec_names)}."
    return "\n\n".join([*parts, "\n".join(_wrap_text(text, ""))])


def describe(name: str) -> dict[str, Any]:
    """Return the table's facts about one measure, averaging, rank type or side, as plain types."""
    word = name.strip().lower()
    match = keys.find_metric(word)
    metric = match[0] if match else keys.STEMS.get(re.sub("[@_.][kpa]$", "", word))
    if word.endswith("@k_n"):
        metric = keys.SAMPLED.get(word.removesuffix("@k_n"))
    if metric is not None:
        return _row(metric)
    for kind, (texts, form) in _SECTIONS.items():
        if word in texts:
            facts = {"name": word, "kind": kind, "help": texts[word], "keys": [form.format(word)]}
            return facts | (_averages(word) if kind == "averaging" else {})
    trec_name = _find_trec_name(name.strip())
    if trec_name is not None:
        return _trec_row(trec_name)
    if "." in word:
        measure = Measure.parse(name)
        facts = describe(measure.metric if measure.is_trec else measure.row[0].name)
        return facts | {"keys": list(dict.fromkeys([measure.key, *facts["keys"]]))}
    near = keys.near_metric(word, (*AVERAGINGS, *RANK_TYPES)) or "`kgtrec measures` lists all"
    raise UsageError(f"no measure {name!r}; {near}")


def explain_name(name: str) -> str:
    """Format `describe` as text, at most 80 columns wide."""
    facts = describe(name)
    title = [str(facts.pop("name"))]
    title += [str(facts.pop(part)) for part in ("title", "kind") if part in facts]
    lines = [" · ".join(dict.fromkeys(title)), *_wrap_text(facts.pop("help"), "  ")]
    for label, value in facts.items():
        lines += _format_field(label, value)
    return "\n".join(lines)


def _row(metric: RankMetric) -> dict[str, Any]:
    """Return the facts about a metric of ranks."""
    better = {True: "higher is better", False: "lower is better", None: "neither end is better"}
    row = {
        "name": metric.name,
        "title": metric.symbol,
        "help": metric.help,
        "formula": metric.formula,
        "in_which": _SYMBOLS,
        "range": metric.range,
        "direction": better[metric.higher_is_better],
        "parameter": keys.PARAMETERS.get(metric.name[-2:], []),
        "averagings": list(metric.averagings),
        "rank_types": list(RANK_TYPES),
        "keys": _keys(metric),
        "beware": list(metric.caveats),
        "in_PyKEEN": list(metric.pykeen),
        "in_LibKGE": list(metric.libkge),
        "elsewhere": list(metric.papers),
        "reference": metric.reference,
    }
    return {label: value for label, value in row.items() if value != []}


def _keys(metric: RankMetric) -> list[str]:
    """Return example keys of a metric."""
    name = fill_parameter(metric.name)
    keys = [f"both.realistic.micro.{name}", f"tail.expected.micro.{name}"]
    keys += [
        f"both.realistic.{averaging}.{name}"
        for averaging in metric.averagings
        if averaging not in ("micro", "stratified")
    ]
    stratified = [f"both.stratified.{name}(0.5,0.5)"] if "stratified" in metric.averagings else []
    return keys + stratified


def _trec_row(measure: str) -> dict[str, Any]:
    """Return the facts about a measure of trec_eval."""
    table = TABLE[measure]
    if not is_key(table):
        how = "" if table.format in ("any", "qrels") else f"-R {table.format} "
        beware = f"Only for files of qrels and runs: kgtrec eval {how}-m {measure} QRELS RUN."
        return {
            "name": measure,
            "kind": "measure of run files",
            "help": table.text,
            "beware": [beware],
            "reference": "kgtrec eval -h -m " + measure,
        }
    name = measure + table.ending
    says = keys.PARAMETERS.get(name[-2:])
    return {
        "name": name,
        "kind": "trec_eval measure",
        "help": table.text,
        **({"parameter": says} if says else {}),
        "keys": [f"{side}.macro.{fill_parameter(name)}" for side in ("both", "tail")],
        "beware": [
            "It follows the run's order, so it has no rank type. It averages over questions, while "
            "micro averages count answers.",
            f"On files of qrels and runs: kgtrec eval -m {measure}.",
        ],
        "reference": "kgtrec" if table.ours else "trec_eval",
    }


def _averages(word: str) -> dict[str, Any]:
    """Return the measures that have an averaging, and its key if that has parameters."""
    like = "question" if word == "group" else word  # a question average within each group
    names = [metric.name for metric in METRICS if like in metric.averagings]
    names += ["every measure of trec_eval"] * (word in ("macro", "group"))
    keys = {
        "stratified": "both.stratified.mrr(0.5,0.5)",
        "group": "both.realistic.group.mrr(structure)",
    }
    return ({"keys": [keys[word]]} if word in keys else {}) | {"defined_for": names}


def _find_trec_name(name: str) -> str | None:
    """Find a measure by its name, by another spelling, or with a letter for its parameter."""
    measures = {measure.lower(): measure for measure in TABLE}
    if name.lower() in measures:
        return measures[name.lower()]
    column = key_column(name)
    if column is not None:
        return column.measure
    return (measures | stems_at()).get(re.sub("[@_.][kx]$", "", name).lower())


def _mark_direction(metric: RankMetric) -> str:
    """Put "+" (higher is better), "-" or a space before the metric's name."""
    sign = {True: "+", False: "-", None: " "}[metric.higher_is_better]
    return f"{sign} {metric.name}"


def _block(title: str, texts: dict[str, str]) -> str:
    """Format a title and one indented paragraph per name."""
    size = max(map(len, texts)) + 2
    lines = [title]
    for name, text in texts.items():
        lines += _wrap_text(text, f"  {name:<{size}}", " " * (size + 2))
    return "\n".join(lines)


def _format_field(label: str, value: object) -> list[str]:
    """Format one field as lines: a label and its value; sentences and keys get own lines."""
    if not isinstance(value, list):
        texts = [str(value)]
    elif label in ("keys", "beware"):
        texts = [str(item) for item in value]
    else:
        texts = [", ".join(value)]
    lines = [line for text in texts for line in _wrap_text(text, " " * 14)]
    return [f"  {label.replace('_', ' '):<12}{lines[0].strip()}", *lines[1:]]


def _wrap_text(text: str, first: str, others: str | None = None) -> list[str]:
    """Wrap a text to lines with the indent of the first one, and of the others."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_on_hyphens=False,
        break_long_words=False,
    )
