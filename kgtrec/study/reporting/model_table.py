"""The standard results table: a row per model, a column per measure, on one or more graphs.

The caption describes the evaluation: graph, split, filter, candidates, averages, ties.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean, stdev
from typing import ClassVar

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Bools
from kgtrec._internal.bootstrap import COMPARING
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.named import Named, by_name
from kgtrec._internal.table import Interval, ShownInLines, Table, Value
from kgtrec.errors import InputError, UsageError, choose, refuse_if
from kgtrec.measures import Measure, parse_all
from kgtrec.measures.averaging import SIDES, sides_present
from kgtrec.ranking.provenance import Provenance
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import comparable
from kgtrec.results.result import Result
from kgtrec.results.tables import SAMPLED
from kgtrec.study.comparison.report import (
    CORRECTION_NAMES,
    TEST_NAMES,
    compare_replicates,
    folds_of,
    letter,
    letters,
)
from kgtrec.study.comparison.samples import SystemRanks, is_ranks, runs_by_name, samples_of_ranks
from kgtrec.study.comparison.significance import PERMUTATIONS, pairwise
from kgtrec.study.reporting.columns import SIDE_NAMES, ModelColumn, explain_places, kind_of, spans
from kgtrec.study.reporting.formats import PrintedColumn, html_text

TIES = {
    "optimistic": "ties count for the model (optimistic ranks)",
    "realistic": "a tied answer has the mean rank of its tie (realistic ranks)",
    "pessimistic": "ties count against the model (pessimistic ranks)",
    "expected": "expectation over all orders of ties",
    "ordinal": "tied answers in the order of trec_eval (ordinal ranks)",
}
AVERAGES = {
    "micro": "micro: over {instances:,} answers",
    "macro": "macro: over {questions:,} questions",
    "question": "question: over {questions:,} questions, all answers of each",
    "group": "group: mean over the values of a term, with equal weight for its questions",
    "triple": "triple: over triples, by the mean rank of both sides",
    "relation": "relation: one mean with equal weight for relations",
    "macro_relation": "macro relation: mean over relations of their micro values",
    "stratified": "stratified: by popularity, (beta_e, beta_r)",
}


@dataclass(frozen=True)
class Protocol:
    """The protocol of the evaluation of models on a graph.

    - text: Split, filter and candidates: "test split, filtered by train, among all 40 entities".
    - sampled: True if the candidates of every model were sampled.
    - differences: A sentence per reason why models are incomparable.
    """

    text: str
    questions: int
    instances: int
    sampled: bool = False
    differences: tuple[str, ...] = ()


def protocol_of(systems: Mapping[str, Ranks]) -> Protocol:
    """Return the protocol of the first of several models, and the differences of others."""
    (first, ranks), *others = systems.items()
    facts = ranks.provenance
    differences = [
        f"NOT COMPARABLE: {first} and {name} ({'; '.join(reasons)})."
        for name, other in others
        if (reasons := comparable(ranks, other).reasons)
    ]
    split = f"{facts.split} split" if facts.split else ""
    return Protocol(
        text=", ".join(filter(None, (split, _filter(facts), _candidates(facts)))),
        questions=len(np.unique(ranks.question)),
        instances=len(ranks),
        sampled=all(of_system.sampled for of_system in systems.values()),
        differences=tuple(differences),
    )


def _average(averaging: str, protocol: Protocol, counted: bool) -> str:
    """Return the description of an average; with the number of items if `counted`."""
    text = AVERAGES[averaging]
    if counted:
        return text.format(instances=protocol.instances, questions=protocol.questions)
    return text.replace("{instances:,} ", "").replace("{questions:,} ", "")


def _describe_runs(counts: Collection[int]) -> str:
    """Return the sentence on means over runs from the numbers of runs that models have."""
    least, most = min(n for n in counts if n > 1), max(counts)
    runs = f"{most} runs" if least == most else f"{least} to {most} runs"
    single = "; models without a deviation have a single run" if 1 in counts else ""
    return f"Mean and standard deviation over {runs}{single}."


def _ties(measures: Sequence[Measure]) -> str:
    """Return the sentence on ties."""
    kinds = list(dict.fromkeys(m.rank_type for m in measures if m.rank_type is not None))
    sentences = [TIES[kind] for kind in kinds]
    trec = list(dict.fromkeys(measure.title for measure in measures if measure.is_trec))
    sentences += [f"{', '.join(trec)}: {TIES['ordinal']}"] if trec else []
    return f"Ties: {'; '.join(sentences)}."


def _filter(facts: Provenance) -> str:
    """Return the description of the filter."""
    if facts.filter_splits is None:
        return "" if facts.sides == "all" else "filter not recorded"
    if not facts.filter_splits:
        return "unfiltered"
    *most, last = facts.filter_splits
    names = f"{', '.join(most)} and {last}" if most else last
    names += f" ({facts.context_filter})" if facts.context_filter else ""
    extra = facts.extra_known
    return f"filtered by {names}" + (f" and {extra:,} further triples" if extra else "")


def _candidates(facts: Provenance) -> str:
    """Return the description of the candidates; "" if their number is unknown."""
    if facts.sampled:
        return "among SAMPLED candidates"
    if facts.restricted:
        return f"candidates restricted by {facts.restricted}"
    kinds = {"relation": "relations", "all": "candidates"}
    answers = kinds.get(facts.sides or "", "entities")
    n = facts.n_relations if facts.sides == "relation" else facts.n_entities
    return f"among all {n:,} {answers}" if n else ""


COLUMNS = ("mrr", "hits@1", "hits@3", "hits@10", "mr")
"""Default measures, which are the usual ones of papers."""


@dataclass(frozen=True)
class Significance:
    """Settings of the tests of differences; see `kgtrec.study.comparison.significance.pairwise`."""

    test: str = "randomisation"
    correction: str = "holm"
    level: float = 0.05
    permutations: int = PERMUTATIONS
    seed: int = 0

    def method(self) -> str:
        """Return the method in words: "paired t-test, Holm's correction, p < 0.05"."""
        return f"{TEST_NAMES[self.test]}, {CORRECTION_NAMES[self.correction]}, p < {self.level:g}"


@dataclass(frozen=True, eq=False)
class ModelTable(ShownInLines):
    """Models by measures.

    - columns: Columns with the same heading are neighbours.
    - protocols: Protocols by the names of the graphs.
    - sampled: Models with ranks among sampled candidates, which are lower; their rows mention it.
    - text: Caption instead of the usual one; "" for the usual one.
    - label: Name of the table for references in LaTeX and Typst; "" for the usual one.
    """

    models: tuple[str, ...]
    columns: tuple[ModelColumn, ...]
    protocols: Mapping[str, Protocol]
    significance: Significance | None = None
    sampled: frozenset[str] = frozenset()
    text: str = ""
    label: str = ""

    def name(self, row: int) -> str:
        """Return the name of a row: the model, with a note if its candidates were sampled."""
        model = self.models[row]
        return f"{model} (sampled)" if model in self.sampled else model

    def best_model(self) -> tuple[int, str]:
        """Return row and name of the best model by the first measure; row 0 if none is best."""
        marks = self.columns[0].mark_best()
        row = marks.index(1) if 1 in marks else 0
        return row, self.name(row)

    corner: ClassVar[str] = "Model"
    usual_label: ClassVar[str] = "tab:models"

    def names(self) -> list[str]:
        """Return the names of the rows, with their letters for superscripts if there are any."""
        many = len(self.models)
        names = [self.name(row) for row in range(many)]
        if self.significance is None or all(column.beaten is None for column in self.columns):
            return names
        return [f"({letter(row, many)}) {name}" for row, name in enumerate(names)]

    def printed_columns(self) -> list[PrintedColumn]:
        """Return the columns of values as they are printed."""
        many = len(self.models)
        return [
            PrintedColumn(
                column.measure.title,
                column.measure.higher_is_better,
                column.format_values(),
                column.mark_best(),
                [letters(beaten, many) for beaten in column.beaten or [()] * many],
                column.format_deviations(),
            )
            for column in self.columns
        ]

    def values(self) -> Table:
        """Return a table with a row per model below keys: full values without marks.

        Cells of models that were not evaluated are empty.
        """
        heads, columns = ["model"], [[self.name(row) for row in range(len(self.models))]]
        for key, column in zip(self.keys(), self.columns, strict=True):
            heads.append(key)
            columns.append(["" if math.isnan(v) else str(v) for v in column.values])
            if column.deviations:
                heads.append(f"{key}:std")
                columns.append(["" if math.isnan(v) else repr(v) for v in column.deviations])
        rows = list(zip(*columns, strict=True))
        return Table(heads, heads, (0,) * len(heads), rows)

    def levels(self) -> list[list[tuple[str, int]]]:
        """Return lines of headings above the measures: texts, and the columns that each spans.

        The first line has the graphs. A line with the same text for every column is omitted, as the
        caption contains it.
        """
        lines = []
        if len(self.protocols) > 1:
            lines.append(spans(column.dataset for column in self.columns))
        pairs = [(column.dataset, kind_of(column.measure)) for column in self.columns]
        if len({kind for _, kind in pairs}) > 1:
            # A span ends with its graph, even if the first span of the next graph has its text.
            lines.append([(kind, size) for (_, kind), size in spans(pairs)])
        return lines

    def keys(self) -> list[str]:
        """Return the key of each column's measure, with the graph if there are several."""
        several = len(self.protocols) > 1
        return [
            f"{column.dataset}:" * several
            + SAMPLED * self.protocols[column.dataset].sampled
            + column.measure.key
            for column in self.columns
        ]

    def _lines(self) -> tuple[str, str]:
        titles = dict.fromkeys(column.measure.title for column in self.columns)
        return f"{len(self.models):,} models", ", ".join(titles)

    def _repr_html_(self) -> str:
        return html_text(self)

    def caption(self) -> str:
        """Return the caption: the evaluation, the treatment of ties, the meaning of the marks.

        A chosen `text` replaces them. The caption always says which models are not comparable.
        """
        if self.text:
            return " ".join([self.text, *self._differences()])
        measures = [column.measure for column in self.columns]
        protocols = list(self.protocols.values())
        sentences = [
            f"{name}: {protocol.text}."
            if name
            else f"{protocol.text[:1].upper()}{protocol.text[1:]}."
            for name, protocol in self.protocols.items()
        ]
        sides = list(dict.fromkeys(SIDE_NAMES.get(m.side, m.side) for m in measures))
        averages = dict.fromkeys(measure.averaging for measure in measures)
        counted = len(protocols) == 1 and sides == ["both sides"]
        sentences += [
            f"Predicted: {', '.join(sides)}.",
            f"Averages: {'; '.join(_average(a, protocols[0], counted) for a in averages)}.",
            _ties(measures),
            *filter(None, [explain_places(p for c in self.columns for p in c.mark_best())]),
        ]
        if counts := {n for column in self.columns for n in column.runs if n}:
            sentences.append(_describe_runs(counts))
        sentences += self._explain_superscripts()
        return " ".join([*sentences, *self._differences()])

    def _explain_superscripts(self) -> Iterator[str]:
        """Yield the sentence on superscripts of significance, if any column has been tested."""
        if self.significance is None or all(c.beaten is None for c in self.columns):
            return
        marks = f"Superscripts: significantly better than these ({self.significance.method()})"
        untested = [c.measure.title for c in self.columns if c.beaten is None]
        missing = ", ".join(dict.fromkeys(untested))
        yield f"{marks}; {missing} not tested." if missing else f"{marks}."

    def _differences(self) -> Iterable[str]:
        """Return the sentences on models that are not comparable."""
        return chain.from_iterable(protocol.differences for protocol in self.protocols.values())


def table_of_models(
    systems: Named[Named[SystemRanks | Sequence[SystemRanks]]],
    columns: Sequence[str | Measure] = COLUMNS,
    *,
    sides: Sequence[str] | None = None,
    significance: Significance | None = None,
    digits: int | None = None,
) -> ModelTable:
    """Make a table of several models.

    Parameters
    ----------
    systems : mapping of graph's name to mapping of model's name to Ranks or Result, or several
        Models may be missing on some graphs. Sequences call graphs "graph 1", "graph 2", ... and
        models "model 1", ..., unless they have pairs (name, value). Several runs of a model appear
        as their mean, with the standard deviation over runs.
    columns : sequence of keys or Measure
        Measures. Keys without a side are shown for every side of `sides`.
    sides : sequence of {"head", "tail", "both"}, optional
        Sides of the measures; by default, all evaluated sides together.
    significance : Significance, optional
        Test all pairs of models on each graph, and mark significant differences.
    digits : int, optional
        Decimals of all columns, instead of each measure's default.

    Raises
    ------
    UsageError
        No model, an unknown key or side, or a side that was not evaluated.
    InputError
        Models that are tested did not answer the same questions.

    Examples
    --------
    ``print(latex(table_of_models({"FB15k-237": {"TransE": ranks}})))``
    """
    named = by_name("systems", systems, "graph")
    if any(is_ranks(by_model) for by_model in named.values()):
        raise UsageError(
            f"{argument('systems', type(systems).__name__)} has no models by graph; pass a dict of "
            "dicts, as in {'FB15k-237': {'TransE': kgtrec.Ranks.load('transe.parquet')}}"
        )
    runs = {name: runs_by_name("systems", by_model, "model") for name, by_model in named.items()}
    models = tuple(dict.fromkeys(model for by_model in runs.values() for model in by_model))
    runs_of_models = [ranks for by_model in runs.values() for ranks in by_model.values()]
    several = any(len(ranks) > 1 for ranks in runs_of_models)
    test = significance.test if significance else "bootstrap"
    refuse_if(
        (not models, "a table of models needs at least one model; give files of ranks"),
        (
            several and test != "bootstrap",
            "with several runs per model, runs and questions are "
            f"both drawn; use the bootstrap test ({argument('test', 'bootstrap')}), not {test}",
        ),
    )
    model_columns = [
        column if digits is None else replace(column, digits=digits)
        for dataset, by_model in runs.items()
        for column in _columns(
            dataset, by_model, models, _parse_columns(by_model, columns, sides), significance
        )
    ]
    protocols = {name: _protocol(by_model) for name, by_model in runs.items()}
    sampled = frozenset(
        model
        for by_model in runs.values()
        for model, ranks in by_model.items()
        if any(run.sampled for run in ranks)
    )
    return ModelTable(models, tuple(model_columns), protocols, significance, sampled)


def _parse_columns(
    ranks: Mapping[str, Sequence[Ranks]],
    columns: Sequence[str | Measure],
    sides: Sequence[str] | None,
) -> list[Measure]:
    """Return the measures of every requested side; measures of the same kind are neighbours."""
    for side in sides or ():
        choose("side", side, SIDES)
    present = sides_present(next(iter(ranks.values()))[0])
    free = [
        isinstance(column, str) and column.partition(".")[0].strip().lower() not in SIDES
        for column in columns
    ]
    measures = parse_all(
        [
            f"{side}.{column}" if is_free else column
            for side in sides or present[-1:]
            for column, is_free in zip(columns, free, strict=True)
        ]
    )
    by_kind = group_pairs((kind_of(measure), measure) for measure in measures)
    return [*chain.from_iterable(by_kind.values())]


def _protocol(ranks: Mapping[str, Sequence[Ranks]]) -> Protocol:
    """Return the protocol of the first fold, or that of all runs if they have no common folds."""
    try:
        folds = folds_of(ranks)
    except InputError:
        return protocol_of(_by_run(ranks))
    protocol = protocol_of(_by_run(folds[0]))
    if len(folds) == 1:
        return protocol
    note = f"Means over {len(folds)} folds; the counts are of the first fold."
    return replace(protocol, differences=(*protocol.differences, note))


def _by_run(systems: Mapping[str, Sequence[Ranks]]) -> dict[str, Ranks]:
    """Return all runs by unique names: the model's, with a number if it has several runs."""
    return {
        name if len(runs) == 1 else f"{name} (run {number})": ranks
        for name, runs in systems.items()
        for number, ranks in enumerate(runs, start=1)
    }


def _columns(
    dataset: str,
    ranks: Mapping[str, Sequence[Ranks]],
    models: Sequence[str],
    measures: Sequence[Measure],
    significance: Significance | None,
) -> list[ModelColumn]:
    """Return the columns of a graph, a column per measure."""
    results = {model: [Result(run) for run in runs] for model, runs in ranks.items()}
    several = any(len(runs) > 1 for runs in ranks.values())
    columns = []
    for measure in measures:
        values = [[result[measure] for result in results.get(model, ())] for model in models]
        means = tuple(map(_mean, values))
        spread = tuple(map(_deviation, values)) if several else ()
        beaten = _find_beaten(ranks, measure, models, significance) if significance else None
        counts = tuple(map(len, values)) if several else ()
        columns.append(ModelColumn(dataset, measure, means, measure.digits, beaten, spread, counts))
    return columns


def _deviation(values: Sequence[Value]) -> float:
    """Return the standard deviation over runs; NaN for a single run."""
    return stdev(map(float, values)) if len(values) > 1 else math.nan


def _mean(values: Sequence[Value]) -> Value:
    """Return the mean over runs. The value of a single run may be an interval."""
    if len(values) > 1 and any(isinstance(value, Interval) for value in values):
        raise UsageError(
            "values of predicted lists are intervals and have no mean over runs; rank all "
            "candidates, or show each run separately"
        )
    return fmean(map(float, values)) if len(values) > 1 else values[0] if values else math.nan


def _find_beaten(
    ranks: Mapping[str, Sequence[Ranks]],
    measure: Measure,
    models: Sequence[str],
    significance: Significance,
) -> tuple[tuple[int, ...], ...] | None:
    """Return the rows of the models that each model significantly beats; None if not testable."""
    if len(ranks) < 2:
        return None
    try:
        better = _test_better(ranks, measure, significance)
    except UsageError:  # measures such as AMRI are not a mean over items
        return None
    rows = [models.index(model) for model in ranks]
    beaten = {
        row: tuple(sorted(rows[j] for j in is_beaten.nonzero()[0]))
        for row, is_beaten in zip(rows, better, strict=True)
    }
    return tuple(beaten.get(row, ()) for row in range(len(models)))


def _test_better(
    ranks: Mapping[str, Sequence[Ranks]], measure: Measure, significance: Significance
) -> Bools:
    """Return True if model i is significantly better than j, bool (models, models)."""
    if any(len(runs) > 1 for runs in ranks.values()):
        (replicates,) = compare_replicates(
            ranks,
            [measure],
            correction=significance.correction,
            resampling=replace(COMPARING, seed=significance.seed),
        )
        return replicates.better(significance.level)
    (samples,) = samples_of_ranks({name: runs[0] for name, runs in ranks.items()}, [measure])
    tests = pairwise(
        samples,
        significance.test,
        significance.correction,
        permutations=significance.permutations,
        seed=significance.seed,
    )
    return tests.better(significance.level)
