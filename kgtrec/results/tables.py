"""Tables of a result: its keys, its sides, its rank types and its relations, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgtrec._internal.table import Cell, Table
from kgtrec.errors import UsageError
from kgtrec.measures import Measure, headings
from kgtrec.questions.terms import Term
from kgtrec.results.interface import ResultValues

if TYPE_CHECKING:
    from kgtrec.measures.calculator import Calculator
    from kgtrec.ranking.ranks import Ranks


PUBLISHED = (
    "realistic.micro.mr",
    "realistic.micro.mrr",
    "realistic.micro.hits@1",
    "realistic.micro.hits@3",
    "realistic.micro.hits@10",
    "realistic.micro.amr",
    "realistic.micro.amri",
)
QUESTIONWISE = (
    "realistic.macro.mrr",
    "realistic.macro.hits@1",
    "realistic.macro.hits@10",
    "macro.map_cut_20",
    "macro.ndcg_cut_20",
)
BY_SIDE = tuple(key for key in PUBLISHED if not key.endswith("amri"))  # fits 80 columns
BY_RANK_TYPE = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "gmr", "median_rank", "amri")
BY_RELATION = (
    "realistic.micro.mrr",
    "realistic.micro.hits@1",
    "realistic.micro.hits@10",
    "realistic.micro.mr",
    "realistic.micro.amr",
)
OVER_RELATIONS = (
    "realistic.macro_relation.mrr",
    "realistic.macro_relation.hits@10",
    "stratified.mrr(0.5,0.5)",
    "stratified.hits@10(0.5,0.5)",
)
WIDE = (*PUBLISHED, *(key for key in QUESTIONWISE if not key.endswith(".hits@1")))
OVER_TERM = ("realistic.group.mrr", "realistic.group.hits@10")
SAMPLED = "sampled."


def over_groups(ranks: Ranks) -> list[str]:
    """Return keys of averages over relations, or over each term that has categories."""
    if ranks.of_graph:
        return list(OVER_RELATIONS)
    named = [name for name, labels in ranks.provenance.terms.items() if labels is not None]
    return [f"{key}({name})" for name in named for key in OVER_TERM]


def by_filter(results: Mapping[str, ResultValues], side: str, tails: Sequence[str]) -> Table:
    """Build a table with one row per filter; `tails` are keys without their side."""
    measures = [Measure.parse(f"{side}.{tail}") for tail in tails]
    rows = [(name, *(result[m] for m in measures)) for name, result in results.items()]
    return measure_table(next(iter(results.values())).ranks, ("filter",), measures, rows)


def measure_table(
    ranks: Ranks,
    names: tuple[str, ...],
    measures: Sequence[Measure],
    rows: Sequence[tuple[Cell, ...]],
    counts: tuple[str, ...] = (),
    keys: Sequence[str] | None = None,
) -> Table:
    """Build a table of rows: names, counts, and measures under their keys or under `keys`.

    The first heading mentions sampled candidates or wider ties.
    """
    first = (*names, *counts)
    titles = [*first, *headings(measures, sides="side" not in names)]
    keys = [measure.key for measure in measures] if keys is None else keys
    if ranks.provenance.tie_tolerance:
        titles[0] = f"tolerant {titles[0]}"
    if ranks.sampled:
        titles[0] = f"sampled {titles[0]}"
        keys = [SAMPLED + key for key in keys]
    digits = [*(0 for _ in first), *(measure.digits for measure in measures)]
    return Table(titles, (*first, *keys), digits, rows, len(names))


def by_relation(calculator: Calculator, measures: Sequence[Measure]) -> Table:
    """Build a table with one row per relation, largest first."""
    sides = {measure.side for measure in measures}
    if len(sides) > 1:
        raise UsageError(
            f"slices by relation need measures of one side, not of {' and '.join(sorted(sides))}; "
            "ask for one side at a time"
        )
    for measure in measures:
        calculator.value(measure)  # refuses impossible measures, with the reason
    relation, count = calculator.relations(sides.pop())
    names = Term(calculator.ranks.relation, calculator.ranks.relation_labels).texts(relation)
    columns = [calculator.per_relation(measure).tolist() for measure in measures]
    entries = zip(names, count.tolist(), *columns, strict=True)
    rows = sorted(entries, key=lambda row: (-row[1], row[0]))
    return measure_table(calculator.ranks, ("relation",), measures, rows, ("count",))
