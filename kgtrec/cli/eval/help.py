"""Help of ``kgtrec eval``: the overview with every measure, and the text of single measures."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kgtrec.trec.eval.kg_names import MICRO, micro_columns, micro_help
from kgtrec.trec.measures.names import NICKNAMES, TABLE, help_text, resolve


def measure_help(measures: Sequence[str]) -> str:
    """What each measure is; a nickname stands for its measures."""
    names = [name for name in measures if name in NICKNAMES]
    heads = [f"{name}: {', '.join(NICKNAMES[name])}\n" for name in names]
    micro, others = micro_columns(measures)
    text = help_text(resolve(others, command_line=True, qrels_format=None)) if others else ""
    return "\n".join([*heads, text + micro_help(micro)]).rstrip("\n")


def overview(context: click.Context) -> str:
    """The command's help, then the measures."""
    formatter = context.make_formatter()
    context.command.format_help(context, formatter)
    with formatter.section("Measures (-h -m NAME explains one)"):
        for names in _by_parameters().values():
            formatter.write_text(names)
        formatter.write_text(f"{', '.join(MICRO)} (over answers, as kg_mrr,kg_hits.1,3,10)")
    return formatter.getvalue().rstrip("\n")


def _by_parameters() -> dict[str, str]:
    """Names of the measures by the kind of parameters that they take, as text."""
    heads = {
        "": "without parameters", "rank": "at ranks, as P.5,10", "point": "at decimals",
        "number": "with numbers", "numbers": "with numbers", "gains": "with gains, as ndcg.1=3,2=9",
        "p": "with p, as rbp.p=0.8", "p,gains": "with p, as rbp.p=0.8",
    }  # fmt: skip
    by_head: dict[str, list[str]] = {}
    for name, family in TABLE.items():
        head = heads.get(family.kind, "")
        if family.format not in ("any", "qrels"):
            head = f"of judgements in groups, -R {family.format}"
        by_head.setdefault(head, []).append(name)
    return {head: f"{', '.join(names)} ({head})" for head, names in by_head.items()}
