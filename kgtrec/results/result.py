"""All numbers from ranks and a run, computed on demand; and `evaluate`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arguments import require_type
from kgtrec._internal.arrays import Float64
from kgtrec._internal.table import (
    Cell,
    Interval,
    ResultValue,
    Table,
    Value,
    dump_json,
    format_cell,
    lines_as_html,
)
from kgtrec.errors import ChanceWarning, InputError, UsageError
from kgtrec.measures import RANK_TYPES, Measure, find_depth, parse_all
from kgtrec.measures.calculator import Calculator, ListedCalculator, calculator_of
from kgtrec.measures.measure import use_side_of_ranks
from kgtrec.questions.api import Questions
from kgtrec.ranking.ranks import Ranks, RanksAndRun
from kgtrec.ranking.settings import EvaluateOptions, Settings
from kgtrec.results import tables
from kgtrec.results.comparability import check_questions
from kgtrec.results.report import chance_warnings, summary, warning_lines, warnings_of
from kgtrec.trec.measures.agreement import COMPARED, compare_with_ranks, trec_values
from kgtrec.trec.measures.values import MeasuresOfRanks, refuse_without_judged

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from kgtrec.questions.api import Graph
    from kgtrec.results.triple_labels import TripleLabels
    from kgtrec.trec.files.run import Run


MICRO = ("mr", "mrr", "hits@1", "hits@3", "hits@10", "gmr", "igmr", "amr", "amri")
MACRO = (
    "realistic.macro.mr",
    "realistic.macro.mrr",
    "realistic.macro.hits@1",
    "realistic.macro.hits@3",
    "realistic.macro.hits@10",
    "expected.macro.mrr",
    "macro.map_cut_20",
    "macro.ndcg_cut_20",
)


class Result(Mapping[str, ResultValue]):
    """Numbers of one evaluation, by key: ``result["mrr"]``, ``result["both.realistic.micro.mrr"]``.

    Any key that `Measure.parse` reads is computed on demand and cached. Defaults in a key are both
    sides, realistic ranks, and the micro average (trec_eval's measures: macro). Iteration gives
    the requested keys, or else every key of the default selection. If candidates were sampled,
    keys begin with ``sampled.``, and tables mention it; keys without the prefix are also
    accepted.

    Parameters
    ----------
    ranks : Ranks
        One row per instance.
    run : Run, or function without arguments, optional
        The best candidates of every question, for trec_eval measures through pytrec_eval; or makes
        them when they are read.
    questions : Questions, optional
        The questions of the run.
    trec_values : dict of str to float64 array (questions,), optional
        Known trec_eval measures, per question in ascending question number. Others come from
        `run`, or without one natively from the ranks.
    agreement : dict of str to float, optional
        Largest difference per measure between pytrec_eval's and the native values.
    check : bool
        Compare both before the run's first trec_eval measure is returned; the ranks' manifest
        then holds the agreement. By default the values are not compared.
    measures : sequence of keys or Measure, optional
        What to list and print instead of the default selection.
    """

    def __init__(
        self,
        ranks: Ranks,
        *,
        run: Run | Callable[[], Run] | None = None,
        questions: Questions | None = None,
        trec_values: Mapping[str, Float64] | None = None,
        agreement: Mapping[str, float] | None = None,
        measures: Sequence[str | Measure] | None = None,
        check: bool = False,
    ) -> None:
        if not isinstance(ranks, Ranks):
            raise UsageError(
                f"{argument('ranks', type(ranks).__name__)} is not ranks; pass what "
                "kgtrec.evaluate(...).ranks or kgtrec.Ranks.load(path) returns"
            )
        self.measures = None if measures is None else use_side_of_ranks(parse_all(measures), ranks)
        compared = [measure.metric for measure in self.measures or () if measure.is_trec]
        for name in compared:
            refuse_without_judged(name)
        self._ranks = ranks
        values, known = dict(trec_values or {}), agreement or {}
        self._trec = _TrecValues(ranks, run, questions, values, known, compared if check else None)
        self._values: dict[Measure, Value] = {}
        self._calculator: Calculator = calculator_of(ranks, self._trec)
        for measure in self.measures or ():
            self[measure]  # an impossible measure raises now, not when it is printed

    @property
    def run(self) -> Run | None:
        """The best candidates of every question."""
        return self._trec.run

    @property
    def ranks(self) -> Ranks:
        """One row per instance; compares them with the run first, if not yet done."""
        self._trec.check()
        return self._ranks

    @property
    def agreement(self) -> Mapping[str, float]:
        """Largest difference per measure between pytrec_eval's and the native values."""
        self._trec.check()
        return self._trec.agreement or self._ranks.provenance.trec_agreement

    def __getitem__(self, key: str | Measure) -> ResultValue:
        """Return the value of a measure; NaN if it is undefined (AMRI with only one candidate).

        If answers are missing from their predicted lists, it is an `Interval` with the attributes
        low, high and value (also by `float`), the one at the middle of every open rank.
        """
        if isinstance(key, str) and key.startswith(tables.SAMPLED):
            key = key.removeprefix(tables.SAMPLED)
            if not self._ranks.sampled:
                raise UsageError(f"no candidates were sampled; ask for {key!r}")
        measure = Measure.parse(key)
        value = self._values.get(measure)
        if value is None:
            value = self._values[measure] = self._calculator.value(measure)
        return value

    def get(self, key: str | Measure, default: Any = None) -> Any:
        """Return the value, or `default` if the key is not a measure or cannot be computed."""
        try:
            return self[key]
        except (UsageError, InputError):
            return default

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        return (self.label + measure.key for measure in self._measures_to_list())

    def __len__(self) -> int:
        return len(self._measures_to_list())

    def __repr__(self) -> str:
        side = self.sides[-1]
        questions, instances = self._calculator.count(side)
        shown = [Measure.parse(f"{side}.{name}") for name in ("mrr", "hits@1", "hits@10", "mr")]
        values = [f"{m.title} {self[m]:.{m.digits}f}" for m in shown]
        graph = self._ranks.provenance.graph_name
        name = f" of {graph}" if graph else ""
        lines = [
            f"Result{name}",
            f"  {questions:,} questions, {instances:,} instances",
            f"  {self.label}{side}, micro: {', '.join(values)}",
        ]
        return "\n".join(lines + warning_lines(self, self._ranks))

    @property
    def warnings(self) -> list[str]:
        """Sentences about numbers that are easily misread, such as scores that look random.

        Texts, notebooks, Markdown, LaTeX (as comments) and frames (``frame.attrs``) contain them;
        CSV and JSON contain numbers only.
        """
        return [*warnings_of(self, self._ranks)]

    def _repr_html_(self) -> str:
        first, second, *_ = repr(self).splitlines()
        warnings = [f"WARNING: {text}" for text in self.warnings]
        head = lines_as_html("\n".join([first, second, *warnings]))
        return head + self.wide_table()._repr_html_()

    def __str__(self) -> str:
        return summary(self)

    @property
    def sides(self) -> tuple[str, ...]:
        """Available sides: ("head", "tail", "both") or the only one evaluated."""
        return self._calculator.sides

    @property
    def label(self) -> str:
        """Prefix of keys: "sampled." if candidates were sampled, else ""."""
        return tables.SAMPLED if self._ranks.sampled else ""

    def count(self, side: str) -> tuple[int, int]:
        """Count the questions and the instances on a side."""
        return self._calculator.count(side)

    def to_dict(self) -> dict[str, ResultValue]:
        """Return key -> value, for the listed keys."""
        return {self.label + measure.key: self[measure] for measure in self._measures_to_list()}

    @property
    def has_intervals(self) -> bool:
        """True if values are intervals, because answers are missing from their predicted lists."""
        return isinstance(self._calculator, ListedCalculator)

    def to_json(self) -> str:
        """Write `to_dict` as JSON; NaN becomes null. `warnings` are not in it."""
        return dump_json(self.to_dict())

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas frame: key, side, rank_type, averaging, metric, value.

        Its ``attrs["warnings"]`` has the `warnings`.
        """
        frame = self.long_table().to_frame()
        frame.attrs["warnings"] = self.warnings
        return frame

    def to_csv(self) -> str:
        """Write one line per key, in full precision; columns as in `to_frame`."""
        return self.long_table().to_csv()

    def to_markdown(self) -> str:
        """Write the published selection, one row per side, and below it the `warnings`."""
        lines = [f"\nWARNING: {text}\n" for text in self.warnings]
        return "".join([self.wide_table().to_markdown(), *lines])

    def to_latex(self) -> str:
        """Write the published selection, one row per side, as a LaTeX ``tabular``.

        The `warnings` are comments below it.
        """
        lines = [f"% WARNING: {text}\n" for text in self.warnings]
        return "".join([self.wide_table().to_latex(), *lines])

    def long_table(self) -> Table:
        """Return one row per listed key: the key, its parts, and the value, or its ends."""
        values = ["low:4", "high:4"] if self.has_intervals else ["value:4"]
        columns = ["key", "side", "rank_type", "averaging", "metric", *values]
        rows: list[tuple[Cell, ...]] = []
        for measure in self._measures_to_list():
            metric, value = measure.key.partition(f"{measure.averaging}.")[2], self[measure]
            ends = (value.low, value.high) if isinstance(value, Interval) else (value, value)
            names = (measure.side, measure.rank_type or "", measure.averaging, metric)
            rows.append((self.label + measure.key, *names, *ends[: len(values)]))
        return Table.from_rows(columns, rows)

    def wide_table(self) -> Table:
        """Return a table of published metrics with a row per side, or a row per requested key."""
        if self.measures is None:
            return self.side_table(tables.WIDE)
        rows = [
            (self.label + measure.key, format_cell(self[measure], measure.digits))
            for measure in self.measures
        ]
        return Table.from_rows("key,value", rows)

    def side_table(self, tails: Sequence[str]) -> Table:
        """Return one row per side; `tails` are keys without their side."""
        rows = [(side, *(self[f"{side}.{tail}"] for tail in tails)) for side in self.sides]
        measures = [Measure.parse(f"{self.sides[-1]}.{tail}") for tail in tails]
        return tables.measure_table(self._ranks, ("side",), measures, rows)

    def rank_types(self, measures: Sequence[str | Measure] | None = None) -> Table:
        """Return a table with a row per rank type.

        ``ranks.tie_report()`` explains their differences.

        A scorer that gives many candidates the same score (a constant, or a saturated sigmoid)
        looks perfect by optimistic ranks, and random by realistic ones.

        Parameters
        ----------
        measures : sequence of keys or Measure, optional
            Columns; the row's rank type replaces that of the keys. By default MRR, Hits@1, 3, 10,
            MR, GMR, median and AMRI of all instances.

        Raises
        ------
        UsageError
            A measure of trec_eval, which has no rank type, or a side that was not evaluated.
        """
        tails = tables.BY_RANK_TYPE
        parsed = parse_all(measures or [f"{self.sides[-1]}.micro.{tail}" for tail in tails])
        for measure in parsed:
            if measure.rank_type is None:
                raise UsageError(
                    f"{measure} uses the run's order, so it has no rank types; leave it out"
                )
        rows = [
            (kind, *(self[replace(measure, rank_type=kind)] for measure in parsed))
            for kind in RANK_TYPES
        ]
        keys = [measure.key.replace(f".{measure.rank_type}.", ".") for measure in parsed]
        return tables.measure_table(self._ranks, ("ranks",), parsed, rows, keys=keys)

    def slice(
        self,
        by: str | Iterable[str] = "relation",
        measures: Sequence[str | Measure] | None = None,
        *,
        graph: Graph | None = None,
        labels: TripleLabels | None = None,
        percentile: float = 90.0,
        edges: Sequence[int] | None = None,
        enough: float = 0.8,
    ) -> Table:
        """Return the same metrics for parts of the instances.

        Parameters
        ----------
        by : str, or several
            "relation", "category", "side", "quartile", "given-quartile", "relation-quartile",
            "label", "time", "qualifiers" (number of qualifiers in the question), or the name of a
            term of questions without a graph. "category,side" gives one row per category and side.
            Categories (1-1, 1-N, N-1, N-N) come from the train split. Quartiles come from the
            number of triples of the graph that contain the answer (the given entity, the relation),
            among all entities or relations (Q1: the rarest).
        measures : sequence of keys or Measure, optional
            Columns; by default the metrics that papers print. By side, the row's side replaces
            that of the keys.
        graph : Graph, optional
            The graph that the ranks were made on; categories and quartiles need it.
        percentile : float
            By mix ("all popular", "mixed", "all unpopular": of subject, relation and object): items
            are popular from this percentile of all counts on (Mohamed et al. 2020, Table 1).
        edges : sequence of int, optional
            By frequency (the answer's number of train triples) or answers (of the question in the
            evaluated split; Yang et al. 2022, A.3): least numbers of the classes, from 0 on, or
            from 1 on; by default 0, 1, 2, 5, 10, 20, 50, 100.
        enough : float
            By redundancy of the relation ("near-reverse", "near-duplicate", "Cartesian product" or
            "none", in train; Akrami et al. 2020): the share of pairs from which it counts.
        labels : path or sequence of str, optional
            A file of lines with a triple as in the split (head, relation, tail by default) and its
            label (tab-separated), or a label for each triple of the evaluated split. Evaluated
            triples without a line are "(no label)".

        Returns
        -------
        Table
            Names of the part, numbers of questions and instances (by relation only: of instances),
            and the measures. Relations and labels are sorted by size, largest first. By quartile,
            also the least and largest popularity in it. Parts without instances have no row.

        Raises
        ------
        UsageError
            Unknown slices, a missing or wrong graph or labels, or a measure of whole questions
            whose answers fall into several parts.
        InputError
            Invalid labels; the message names the line.
        """
        if by == "relation" and self._ranks.of_graph:
            keys = measures or [f"{self.sides[-1]}.{tail}" for tail in tables.BY_RELATION]
            return tables.by_relation(self._calculator, parse_all(keys))
        from kgtrec.results.slices import EDGES, slice_result

        return slice_result(
            self._calculator,
            by,
            measures,
            graph=graph,
            labels=labels,
            percentile=percentile,
            edges=EDGES if edges is None else edges,
            enough=enough,
        )

    def _measures_to_list(self) -> list[Measure]:
        """Return the requested measures, or the usual ones of every side."""
        if self.measures is not None:
            return self.measures
        tails = [f"{kind}.micro.{metric}" for kind in RANK_TYPES for metric in MICRO]
        tails += [*MACRO, *tables.over_groups(self._ranks)]
        return [Measure.parse(f"{side}.{tail}") for side in self.sides for tail in tails]

    def per_question(self, name: str) -> Float64:
        """Return a trec_eval measure per question, in ascending question number.

        Parameters
        ----------
        name : str
            The name of a measure of trec_eval (P_1), or its key (macro.P_1).

        Returns
        -------
        float64 array (questions,)
            Values in ascending question number.

        Raises
        ------
        UsageError
            Not a trec_eval measure, or it cannot be computed.
        """
        require_type("name", name, str, "the name of a trec_eval measure, such as 'map'")
        side, _, rest = name.partition(".")
        if rest and side in self.sides:
            if side != self.sides[-1]:
                raise UsageError(
                    f"{name}: values per question are of all questions; ask for {rest!r}, and "
                    "select the questions of a side from the result"
                )
            name = rest
        return self._trec(name.removeprefix("macro."))


@dataclass(eq=False)
class _TrecValues:
    """Values of trec_eval's measures per question: as passed, from the run, or from the ranks.

    It does not refer to the result, which is therefore freed at once. ``compared`` are measures to
    take from the run when it is compared with the ranks; None: it is not compared.
    """

    ranks: Ranks
    source: Run | Callable[[], Run] | None
    questions: Questions | None
    values: dict[str, Float64]
    agreement: Mapping[str, float]
    compared: Sequence[str] | None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"source": self.run}  # the native state stays here

    @cached_property
    def run(self) -> Run | None:
        """Best candidates of every question; a callable `source` ranks them when first asked."""
        return self.source() if callable(self.source) else self.source

    def check(self) -> None:
        """Take measures from the run, and compare two of them with the ranks, once."""
        if self.compared is None or self.run is None or self.questions is None:
            return
        if not self.ranks.of_graph:  # others compute their measures from places
            return
        values, differences = compare_with_ranks(
            self.ranks, self.run, self.questions, self.compared
        )
        self.values |= values
        self.agreement, self.compared = differences, None
        self.ranks.manifest["trec_agreement"] = dict(differences)  # saved ranks report it

    def __call__(self, name: str) -> Float64:
        """See `kgtrec.Result.per_question`."""
        self.check()
        if name not in self.values:
            self.values.update(self._compute(name))
        values = np.asarray(self.values[name], np.float64)
        if len(values) != self._n_questions:
            raise InputError(
                f"{name} has {len(values)} values, but the ranks have {self._n_questions} "
                "questions; give one value per question, by ascending question number"
            )
        return values

    @cached_property
    def _n_questions(self) -> int:
        return len(np.unique(self.ranks.question))

    @cached_property
    def _natively(self) -> MeasuresOfRanks:
        return MeasuresOfRanks(self.ranks)

    def _compute(self, name: str) -> Mapping[str, Float64]:
        """Compute a measure from the run, or natively from the ranks without a run or a graph."""
        refuse_without_judged(name)
        reason, run, questions = "the result has ranks but no run", self.run, self.questions
        if run is not None and questions is not None and self.ranks.of_graph:
            try:
                return trec_values(run, questions, [name])
            except UsageError as error:
                reason = str(error)
        try:
            return {name: self._natively(name)}
        except UsageError as error:
            if reason == str(error):
                raise
            raise UsageError(
                f"{name} cannot be computed: {reason}, and {error}; pass it to "
                "kgtrec.evaluate(scores, questions, measures=[…]), or write a run and use "
                "`kgtrec eval`"
            ) from None


@overload
def evaluate(
    scores: Any,
    questions: Questions | None = None,
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> Result: ...
@overload
def evaluate(
    scores: Any,
    questions: Mapping[str, Questions],
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> dict[str, Result]: ...
def evaluate(
    scores: Any,
    questions: Questions | Mapping[str, Questions] | None = None,
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> Result | dict[str, Result]:
    """Rank every answer and average.

    Parameters
    ----------
    scores : score source, or Ranks
        Anything that `kgtrec.rank` takes: an array (questions, entities), a .npy file or folder
        of shards, chunks, a callable, `Factors`. Or ranks; then trec_eval measures are computed
        natively from the answers' ordinal ranks, as for runs of unlimited depth.
    questions : Questions, or mapping of str to Questions
        From ``graph.questions()``; not needed with `Ranks`. From ``graph.questions_by_filter()``
        for several filters in one pass.
    measures : sequence of keys or Measure, optional
        What to list and print; by default what papers print. Others are available by key.
    run_depth : int, default 20
        Candidates kept per question: at least 20, and at least as many as `measures` need.
        Measures of a whole run (map, bpref, recip_rank, ...) refer to the run at this depth.
    threads, rows, higher_is_better, nan, columns, atol, rtol
        As for `kgtrec.Ranker`.
    progress : bool, optional
        Progress bar on stderr; by default only on a terminal.

    Returns
    -------
    Result
        ``result[key]``, ``print(result)``, ``result.ranks``, ``result.run``.
    dict of str to Result
        For a mapping of questions: one result each, from one pass over the scores.

    Raises
    ------
    UsageError
        Bad keys (all of them are named), or questions missing.
    InputError
        Scores of the wrong shape or dtype, or NaN under ``nan="error"``.
    KgtrecError
        pytrec_eval and the native values differ by more than 1e-12; raised when the first
        trec_eval measure, or ``result.ranks``, is asked for.

    Warns
    -----
    ChanceWarning
        The ranks are as good as those of random scores, or worse.
    """
    result = evaluate_silently(scores, questions, measures, progress=progress, **options)
    for each in result.values() if isinstance(questions, Mapping) else [result]:
        texts = list(chance_warnings(each, each._ranks))
        if texts:  # filters share their scores, so one warning is enough
            warnings.warn(ChanceWarning(texts[0]), stacklevel=2)
            break
    return result


def evaluate_silently(
    scores: Any,
    questions: Questions | Mapping[str, Questions] | None = None,
    measures: Sequence[str | Measure] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[EvaluateOptions],
) -> Any:
    """Do the same as `evaluate` for texts that contain the warnings, which then are not given."""
    parsed = None if measures is None else parse_all(measures)
    scores = scores.ranks if isinstance(scores, RanksAndRun) else scores
    if isinstance(scores, Ranks):
        if isinstance(questions, Mapping):
            raise UsageError("ranks have one filter; pass only the questions that were ranked")
        if questions is not None:
            check_questions(scores, questions)
        return Result(scores, questions=questions, measures=parsed)
    if questions is None:
        raise UsageError("questions of the scores are missing; pass graph.questions()")
    settings = Settings.from_options("evaluate", EvaluateOptions, options, run_depth=20)
    for measure in parsed or ():
        refuse_without_judged(measure.metric)
    depths = map(_depth, [*COMPARED, *(m.metric for m in parsed or () if m.is_trec)])
    settings = replace(settings, run_depth=max(settings.run_depth, *depths))
    if isinstance(questions, Mapping):
        return _rank_results(scores, questions, parsed, settings, progress)
    return _rank_results(scores, {"": questions}, parsed, settings, progress)[""]


def _rank_results(
    scores: Any,
    questions: Mapping[str, Questions],
    measures: list[Measure] | None,
    settings: Settings,
    progress: bool | None,
) -> dict[str, Result]:
    """Rank the answers to several filters in one pass; return a result each, by name."""
    from kgtrec.ranking.partial import build_ranks, build_run
    from kgtrec.ranking.rank import rank_natively

    states = rank_natively(scores, questions, settings, progress)
    return {
        name: Result(
            build_ranks(state, each),
            run=partial(build_run, state, each),
            questions=each,
            measures=measures,
            check=True,
        )
        for (name, each), state in zip(questions.items(), states, strict=True)
    }


@cache
def _depth(metric: str) -> int:
    """Return the number of candidates that a measure needs in runs; 0 if none."""
    return find_depth(metric) or 0
