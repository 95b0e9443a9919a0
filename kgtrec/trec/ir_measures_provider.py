"""kgtrec as a provider of ir_measures: its measure objects, trec_eval's order of documents.

::

    import ir_measures
    from ir_measures import AP, RR, nDCG
    from kgtrec.trec import ir_measures_provider

    kgtrec = ir_measures_provider.register()
    kgtrec.calc_aggregate([AP @ 20, nDCG @ 20, RR @ 10], qrels, run)

ir_measures has a registry, but no entry points, so a program says what it wants: `register`
adds kgtrec to it, and, if told so, puts it first in the pipeline that ``ir_measures.calc``
and its like use.

All measures see one order of documents: score in float64 descending, then name, descending in
byte order. The values are those of ir_measures' own pytrec_eval provider wherever scores do not
tie in float32; the recall points of IPrec, too, are those of pytrec_eval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ir_measures import DefaultPipeline, Metric, measures, providers
from ir_measures.providers.base import NOT_PROVIDED, Choices
from ir_measures.providers.base import Any as Anything
from ir_measures.util import QrelsConverter, RunConverter

from kgtrec.errors import UsageError
from kgtrec.trec.files.convert import is_frame, qrels_data, run_data
from kgtrec.trec.measures.judge import ranked, read_judgements, read_lists
from kgtrec.trec.measures.judged_lists import UNJUDGED, Lists
from kgtrec.trec.measures.names import Column, depth_needed, resolve
from kgtrec.trec.measures.options import EvalOptions
from kgtrec.trec.measures.values import values

__all__ = ["KgtrecProvider", "register"]


def register(*, first: bool = False) -> KgtrecProvider:
    """Make kgtrec known to ir_measures as ``ir_measures.providers.registry["kgtrec"]``.

    Parameters
    ----------
    first : bool
        Also put it first in ``ir_measures.DefaultPipeline``, so that ``ir_measures.calc``,
        ``calc_aggregate``, ``iter_calc`` and ``evaluator`` take from it all that it has.

    Returns
    -------
    KgtrecProvider
        The same one every time.
    """
    provider = providers.registry.get("kgtrec")
    if not isinstance(provider, KgtrecProvider):
        provider = providers.register(KgtrecProvider())
    if first:
        pipeline = DefaultPipeline.providers
        pipeline[:] = [provider, *(other for other in pipeline if other is not provider)]
    return provider


@dataclass(frozen=True)
class _Setting:
    """What holds for all measures of one computation.

    Attributes
    ----------
    level : int
        Relevance from which a document is relevant.
    judged_only : bool
    gains : tuple of (int, int)
        Relevance, and what to take in its place.
    is_binary : bool
        Relevance is taken as 1 from the level on, else 0.
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

    def applied(self, lists: Lists) -> Lists:
        """The lists with the relevances that the measures are to see."""
        if not (self.gains or self.is_binary):
            return lists
        judged = ranked(lists.judged_offsets, self._seen(lists.judged))
        relevance = np.where(lists.relevance == UNJUDGED, UNJUDGED, self._seen(lists.relevance))
        return replace(lists, relevance=relevance, judged=judged)

    def _seen(self, relevance: Any) -> Any:
        if self.is_binary:
            return (relevance >= self.level).astype(np.int64)
        seen = relevance.copy()
        for level, gain in self.gains:
            seen[relevance == level] = gain
        return seen


def _cut(family: str, whole: str = "") -> Callable[[Any], str]:
    """Name with the measure's cutoff, or `whole` if it has none."""
    return lambda m: whole if m["cutoff"] is NOT_PROVIDED else f"{family}_{m['cutoff']}"


_NAMES: dict[str, Callable[[Any], str]] = {
    "P": _cut("P"),
    "RR": _cut("recip_rank_cut", "recip_rank"),
    "Rprec": lambda m: "Rprec",
    "AP": _cut("map_cut", "map"),
    "nDCG": _cut("ndcg_cut", "ndcg"),
    "R": _cut("recall"),
    "Bpref": lambda m: "bpref",
    "NumRet": lambda m: "num_ret" if m["rel"] is NOT_PROVIDED else "num_rel_ret",
    "NumQ": lambda m: "num_q",
    "NumRel": lambda m: "num_rel",
    "SetAP": lambda m: "set_map",
    "SetF": lambda m: "set_F" if m["beta"] == 1 else f"set_F_{m['beta']}",
    "SetP": lambda m: "set_relative_P" if m["relative"] else "set_P",
    "SetR": lambda m: "set_recall",
    "Success": _cut("success"),
    "IPrec": lambda m: f"iprec_at_recall_{m['recall']}",
    "infAP": lambda m: "infAP",
    "Judged": _cut("judged"),
    "RBP": lambda m: f"rbp_p={m['p']}",
}


def _setting(measure: Any) -> _Setting:
    given = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    level, gains = given.get("rel", 1), given.get("gains", NOT_PROVIDED)
    return _Setting(
        level=1 if level is NOT_PROVIDED else level,
        judged_only=bool(given.get("judged_only", False)),
        gains=() if gains is NOT_PROVIDED else tuple(sorted(gains.items())),
        is_binary=measure.NAME == "RBP",
    )


class KgtrecProvider(providers.Provider):
    """Measures of trec_eval, RR and Judged with a cutoff, and RBP with a level of relevance."""

    NAME = "kgtrec"
    SUPPORTED_MEASURES = [  # noqa: RUF012, as ir_measures has it
        measures._P(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._RR(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._Rprec(rel=Anything(), judged_only=Anything()),
        measures._AP(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._nDCG(
            cutoff=Anything(), dcg=Choices("log2"), gains=Anything(), judged_only=Anything()
        ),
        measures._R(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._Bpref(rel=Anything()),
        measures._NumRet(rel=Anything()),
        measures._NumQ(),
        measures._NumRel(rel=Anything()),
        measures._SetAP(rel=Anything(), judged_only=Anything()),
        measures._SetF(rel=Anything(), beta=Anything(), judged_only=Anything()),
        measures._SetP(rel=Anything(), relative=Anything(), judged_only=Anything()),
        measures._SetR(rel=Anything()),
        measures._Success(rel=Anything(), cutoff=Anything(), judged_only=Anything()),
        measures._IPrec(recall=Anything(), rel=Anything(), judged_only=Anything()),
        measures._infAP(rel=Anything()),
        measures._Judged(cutoff=Anything(required=True)),
        measures._RBP(cutoff=Choices(NOT_PROVIDED), p=Anything(), rel=Anything(required=True)),
    ]

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> KgtrecEvaluator:
        asked = list(measures)
        unknown = [str(measure) for measure in asked if not self.supports(measure)]
        if unknown:
            raise UsageError(
                f"kgtrec does not have {', '.join(unknown)}; ir_measures.DefaultPipeline finds a "
                "provider for each"
            )
        converter = QrelsConverter(qrels)
        data = qrels if is_frame(qrels) else converter.as_dict_of_dict()
        return KgtrecEvaluator(asked, qrels_data(data))


class KgtrecEvaluator(providers.Evaluator):
    """Some measures for one set of qrels; any number of runs."""

    def __init__(self, measures: list[Any], qrels: Any) -> None:
        queries = qrels if isinstance(qrels, Mapping) else qrels.queries
        super().__init__(measures, set(queries))
        self.judgements = read_judgements(qrels)
        self.columns: dict[_Setting, dict[Any, Column]] = {}
        for measure in measures:
            (column,) = resolve([_NAMES[measure.NAME](measure)])
            self.columns.setdefault(_setting(measure), {})[measure] = column

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        data = run if is_frame(run) else RunConverter(run).as_dict_of_dict()
        asked = [column for group in self.columns.values() for column in group.values()]
        # What is left without the unjudged may come from anywhere in the run.
        whole = any(setting.judged_only for setting in self.columns)
        depth = None if whole else depth_needed(asked)
        lists = read_lists(self.judgements, run_data(data), depth=depth)
        for setting, group in self.columns.items():
            columns = list(dict.fromkeys(group.values()))
            found = values(setting.applied(lists), columns, setting.options)
            for measure, column in group.items():
                row = found[column.name].tolist()
                for query, value in zip(lists.queries, row, strict=True):
                    yield Metric(query_id=query, measure=measure, value=value)
