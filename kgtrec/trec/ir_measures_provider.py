"""kgtrec as a provider of ir_measures: its measure objects with trec_eval's document order.

::

    import ir_measures
    from ir_measures import AP, RR, nDCG
    from kgtrec.trec import ir_measures_provider

    kgtrec = ir_measures_provider.register()
    kgtrec.calc_aggregate([AP @ 20, nDCG @ 20, RR @ 10], qrels, run)

ir_measures has a registry, but no entry points, so programs call `register`. It adds kgtrec
to the registry and, with ``first=True``, puts it first in the pipeline of
``ir_measures.calc`` and similar functions.

All measures use the same order of documents: score in float64 descending, then name in byte
order, descending. Values are those of ir_measures' own pytrec_eval provider wherever scores do not
tie in float32; the recall points of IPrec, too, are those of pytrec_eval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ir_measures import DefaultPipeline, Metric, measures, providers
from ir_measures.providers.base import NOT_PROVIDED, Choices
from ir_measures.providers.base import Any as Anything
from ir_measures.util import QrelsConverter, RunConverter

from kgtrec.errors import UsageError
from kgtrec.trec.files.convert import is_frame, qrels_data, run_data
from kgtrec.trec.files.text import Cut
from kgtrec.trec.measures.judge import read_judged_queries, read_lists, sort_relevance
from kgtrec.trec.measures.names import TABLE, Column, depth_needed, resolve
from kgtrec.trec.measures.relevant import UNJUDGED, Lists
from kgtrec.trec.measures.trec_measure import EXPONENTIAL, EvalOptions
from kgtrec.trec.measures.values import values


def register(*, first: bool = False) -> KgtrecProvider:
    """Make kgtrec known to ir_measures as ``ir_measures.providers.registry["kgtrec"]``."""
    provider = providers.registry.get("kgtrec")
    if not isinstance(provider, KgtrecProvider):
        provider = providers.register(KgtrecProvider())
    if first:
        pipeline = DefaultPipeline.providers
        pipeline[:] = [provider, *(other for other in pipeline if other is not provider)]
    return provider


@dataclass(frozen=True)
class _Setting:
    """Settings shared by all measures of one computation.

    - level: Relevance from which a document is relevant.
    - gains: Relevance, and its replacement.
    - is_binary: Relevance counts as 1 from the level up, else as 0.
    """

    level: int = 1
    judged_only: bool = False
    gains: tuple[tuple[int, int], ...] = ()
    is_binary: bool = False

    @property
    def options(self) -> EvalOptions:
        level = 1 if self.is_binary else self.level
        # Recall points as in pytrec_eval; the lists have been ordered by float64 before.
        return EvalOptions(level=level, judged_only=self.judged_only, compat=9)

    def apply(self, lists: Lists) -> Lists:
        """Return the lists with these settings applied to the relevances."""
        if not (self.gains or self.is_binary):
            return lists
        judged = sort_relevance(lists.judged_offsets, self._relabel(lists.judged))
        relevance = np.where(lists.relevance == UNJUDGED, UNJUDGED, self._relabel(lists.relevance))
        return replace(lists, relevance=relevance, judged=judged)

    def _relabel(self, relevance: Any) -> Any:
        """Return relevances with binary values or gains, as set."""
        if self.is_binary:
            return (relevance >= self.level).astype(np.int64)
        relabelled = relevance.copy()
        for level, gain in self.gains:
            relabelled[relevance == level] = gain
        return relabelled


def _find_name(measure: Any) -> str:
    """Return the name in kgtrec of a measure of ir_measures."""
    is_exponential = measure.NAME == "nDCG" and measure["dcg"] == "exp-log2"
    return _name_in_table(measure) + f"_{EXPONENTIAL}" * is_exponential


def _name_in_table(measure: Any) -> str:
    """Return the name from the row with the measure's parameter, else from the row without any."""
    bare = ""
    for our_name, row in TABLE.items():
        name, _, parameter = row.ir_measures.rstrip(")").partition("(")
        if name != measure.NAME:
            continue
        if not parameter:
            bare = our_name
            continue
        value = measure[parameter]
        if value is NOT_PROVIDED or value is False:
            continue
        if row.kind in ("", "ignored"):
            return our_name
        stem = "p=" if row.kind == "p,gains" else ""
        is_default = (value,) == row.defaults and row.kind != "rank"
        return our_name if is_default else f"{our_name}_{stem}{value}"
    return bare


def _setting(measure: Any) -> _Setting:
    """Return the settings in the parameters of a measure."""
    parameters = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    level, gains = parameters.get("rel", 1), parameters.get("gains", NOT_PROVIDED)
    return _Setting(
        level=1 if level is NOT_PROVIDED else level,
        judged_only=bool(parameters.get("judged_only", False)),
        gains=() if gains is NOT_PROVIDED else tuple(sorted(gains.items())),
        is_binary=measure.NAME == "RBP",
    )


# Restrictions that rows do not state: other parameters may have any value.
_LIMITED: dict[str, dict[str, Any]] = {
    "Judged": {"cutoff": Anything(required=True)},
    "RBP": {"cutoff": Choices(NOT_PROVIDED), "rel": Anything(required=True)},
}


def _build_supported() -> list[Any]:
    """Return the measures of ir_measures that kgtrec supports."""
    names = dict.fromkeys(row.ir_measures.partition("(")[0] for row in TABLE.values())
    supported = []
    for name in filter(None, names):
        kind = getattr(measures, f"_{name}")
        allowed = {parameter: Anything() for parameter in kind.SUPPORTED_PARAMS}
        supported.append(kind(**allowed | _LIMITED.get(name, {})))
    return supported


class KgtrecProvider(providers.Provider):
    """Measures of trec_eval, RR and Judged with a cutoff, and RBP with a level of relevance."""

    NAME = "kgtrec"
    SUPPORTED_MEASURES = _build_supported()

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> ProvidedEvaluator:
        measures = list(measures)
        unknown = [str(measure) for measure in measures if not self.supports(measure)]
        if unknown:
            raise UsageError(
                f"kgtrec does not have {', '.join(unknown)}; use ir_measures.DefaultPipeline, "
                "which finds a provider for each measure"
            )
        converter = QrelsConverter(qrels)
        data = qrels if is_frame(qrels) else converter.as_dict_of_dict()
        return ProvidedEvaluator(measures, qrels_data(data))


class ProvidedEvaluator(providers.Evaluator):
    """Some measures for one set of qrels; any number of runs."""

    def __init__(self, measures: list[Any], qrels: Any) -> None:
        queries = qrels if isinstance(qrels, Mapping) else qrels.queries
        super().__init__(measures, set(queries))
        self.judgements = read_judged_queries(qrels)
        self.columns: dict[_Setting, dict[Any, Column]] = {}
        for measure in measures:
            (column,) = resolve([_find_name(measure)])
            self.columns.setdefault(_setting(measure), {})[measure] = column

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        data = run if is_frame(run) else RunConverter(run).as_dict_of_dict()
        all_columns = [column for group in self.columns.values() for column in group.values()]
        # The judged documents may come from anywhere in the run.
        whole = any(setting.judged_only for setting in self.columns)
        cut = Cut(None if whole else depth_needed(all_columns))
        lists = read_lists(self.judgements, run_data(data), cut)
        for setting, group in self.columns.items():
            columns = list(dict.fromkeys(group.values()))
            by_column = values(setting.apply(lists), columns, setting.options)
            for measure, column in group.items():
                row = by_column[column.name].tolist()
                for query, value in zip(lists.queries, row, strict=True):
                    yield Metric(query_id=query, measure=measure, value=value)
