"""Result: every number that follows from ranks and a run, computed when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.measures import RANK_TYPES, Measure, parse_all
from kgtrec.measures.calculator import Calculator
from kgtrec.tables import Cell, Table, dump_json

if TYPE_CHECKING:
    import pandas

    from kgtrec.graph import Graph
    from kgtrec.questions import Questions
    from kgtrec.ranks import Ranks
    from kgtrec.study.triplelabels import TripleLabels
    from kgtrec.trec.run import Run

__all__ = ["Result"]

Floats = NDArray[np.float64]

MICRO = ("mr", "mrr", "hits@1", "hits@3", "hits@10", "gmr", "igmr", "amr", "amri")
MACRO = ("realistic.macro.mr", "realistic.macro.mrr", "realistic.macro.hits@1",
         "realistic.macro.hits@3", "realistic.macro.hits@10", "expected.macro.mrr",
         "macro.map_cut_20", "macro.ndcg_cut_20")  # fmt: skip
OVER_RELATIONS = ("realistic.macro_relation.mrr", "realistic.macro_relation.hits@10",
                  "stratified.mrr(0.5,0.5)", "stratified.hits@10(0.5,0.5)")  # fmt: skip
PUBLISHED = ("realistic.micro.mr", "realistic.micro.mrr", "realistic.micro.hits@1",
             "realistic.micro.hits@3", "realistic.micro.hits@10", "realistic.micro.amr",
             "realistic.micro.amri")  # fmt: skip
QUESTIONWISE = ("realistic.macro.mrr", "realistic.macro.hits@1", "realistic.macro.hits@10",
                "macro.map_cut_20", "macro.ndcg_cut_20")  # fmt: skip
BY_SIDE = tuple(key for key in PUBLISHED if not key.endswith("amri"))  # 80 columns
BY_RANK_TYPE = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "gmr", "median_rank", "amri")
SAMPLED = "sampled."
BY_RELATION = ("realistic.micro.mrr", "realistic.micro.hits@1", "realistic.micro.hits@10",
               "realistic.micro.mr", "realistic.micro.amr")  # fmt: skip


class Result(Mapping[str, float]):
    """Numbers of one evaluation, by key: ``result["both.realistic.micro.mrr"]``.

    Any key that `Measure.parse` reads is computed on demand and kept. Iterating gives the keys
    that were asked for, or else every key of the default selection. Where candidates were sampled,
    keys begin with ``sampled.`` and tables say so; keys without it are understood.

    Parameters
    ----------
    ranks : Ranks
        One row per instance.
    run : Run, optional
        The best candidates of every question, for trec_eval measures through pytrec_eval.
    questions : Questions, optional
        The questions of the run.
    trec_values : dict of str to float64 array (questions,), optional
        trec_eval measures already at hand, per question in ascending question number. Others
        come from `run`, or without one natively from the ranks.
    agreement : dict of str to float, optional
        Largest difference per measure between pytrec_eval's and the native values.
    measures : sequence of keys or Measure, optional
        What to list and print instead of the default selection.

    Attributes
    ----------
    ranks : Ranks
    run : Run or None
    """

    def __init__(
        self,
        ranks: Ranks,
        *,
        run: Run | None = None,
        questions: Questions | None = None,
        trec_values: Mapping[str, Floats] | None = None,
        agreement: Mapping[str, float] | None = None,
        measures: Sequence[str | Measure] | None = None,
    ) -> None:
        self.ranks = ranks
        self.run = run
        self.agreement: Mapping[str, float] = agreement or _recorded_agreement(ranks)
        self.measures = None if measures is None else parse_all(measures)
        self._questions = questions
        self._trec = dict(trec_values or {})
        self._calculator = Calculator(ranks, self.per_question)
        self._values: dict[Measure, float] = {}
        for measure in self.measures or ():
            self[measure]  # an impossible wish is an error now, not when it is printed

    def __getitem__(self, key: str | Measure) -> float:
        """The value of a measure; NaN where it is undefined (AMRI with one candidate only).

        Raises
        ------
        UsageError
            The key is no measure, or its side was not asked.
        """
        if isinstance(key, str) and self.ranks.sampled:
            key = key.removeprefix(SAMPLED)
        measure = Measure.parse(key)
        if measure not in self._values:
            self._values[measure] = self._calculator.value(measure)
        return self._values[measure]

    def get(self, key: str | Measure, default: Any = None) -> Any:
        """The value, or `default` if the key is no measure or is out of reach."""
        try:
            return self[key]
        except (UsageError, InputError):
            return default

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except (UsageError, InputError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return (self.label + measure.key for measure in self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def __repr__(self) -> str:
        questions, instances = self._calculator.count(self.sides[-1])
        return f"<Result: {questions:,} questions, {instances:,} instances>"

    def __str__(self) -> str:
        from kgtrec.summary import summary

        return summary(self)

    @property
    def sides(self) -> tuple[str, ...]:
        """Sides that can be asked for: ("head", "tail", "both") or the only one evaluated."""
        return self._calculator.sides

    @property
    def label(self) -> str:
        """What keys begin with: "sampled." if candidates were sampled, else nothing."""
        return SAMPLED if self.ranks.sampled else ""

    def count(self, side: str) -> tuple[int, int]:
        """Number of questions and of instances on a side."""
        return self._calculator.count(side)

    def to_dict(self) -> dict[str, float]:
        """Key -> value, for the listed keys."""
        return {self.label + measure.key: self[measure] for measure in self._listed()}

    def to_json(self) -> str:
        """`to_dict` as JSON; NaN becomes null."""
        return dump_json(self.to_dict())

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame: key, side, rank_type, averaging, metric, value."""
        return self.long_table().to_frame()

    def to_csv(self) -> str:
        """One line per key, in full precision; columns as in `to_frame`."""
        return self.long_table().to_csv()

    def to_markdown(self) -> str:
        """The published selection, a row per side."""
        return self.wide_table().to_markdown()

    def to_latex(self) -> str:
        """The published selection, a row per side, as a LaTeX ``tabular``."""
        return self.wide_table().to_latex()

    def long_table(self) -> Table:
        """One row per listed key."""
        columns = ("key", "side", "rank_type", "averaging", "metric", "value")
        rows = []
        for measure in self._listed():
            metric = measure.key.partition(f"{measure.averaging}.")[2]
            key, kind = self.label + measure.key, measure.rank_type or ""
            parts = (key, measure.side, kind, measure.averaging)
            rows.append((*parts, metric, self[measure]))
        return Table(columns, columns, (4,) * len(columns), rows)

    def wide_table(self) -> Table:
        """A row per side, a column per published metric; a row per key if keys were asked for."""
        if self.measures is not None:
            rows: list[tuple[Cell, ...]] = [
                (self.label + measure.key, f"{self[measure]:.{measure.digits}f}")
                for measure in self.measures
            ]
            return Table(("key", "value"), ("key", "value"), (0, 0), rows)
        macro = tuple(key for key in QUESTIONWISE if not key.endswith(".hits@1"))
        table = self.side_table((*PUBLISHED, *macro))
        titles = [
            f"macro {title}" if ".realistic.macro." in key else title
            for title, key in zip(table.titles, table.keys, strict=True)
        ]
        return Table(titles, table.keys, table.digits, table.rows)

    def side_table(self, tails: Sequence[str]) -> Table:
        """A row per side; `tails` are keys without their side."""
        measures = [Measure.parse(f"{self.sides[-1]}.{tail}") for tail in tails]
        rows: list[tuple[Cell, ...]] = [
            (side, *(self[f"{side}.{tail}"] for tail in tails)) for side in self.sides
        ]
        return self.labelled(_table("side", (), measures, rows))

    def rank_type_table(self) -> Table:
        """A row per rank type: what ties alone can do to the metrics that papers print."""
        tails = ("mrr", "hits@1", "hits@10", "mr", "amr")
        return self.rank_types([f"{self.sides[-1]}.micro.{tail}" for tail in tails])

    def rank_types(self, measures: Sequence[str | Measure] | None = None) -> Table:
        """All rank types side by side, a row each; ``ranks.tie_report()`` says what they differ by.

        A scorer that gives many candidates the same score (a constant, a sigmoid that is 1 to the
        last bit) looks perfect by optimistic ranks, and random by realistic ones.

        Parameters
        ----------
        measures : sequence of keys or Measure, optional
            Columns; the keys' own rank types give way to the row's. By default MRR, Hits@1, 3, 10,
            MR, GMR, median and AMRI of all instances.

        Raises
        ------
        UsageError
            A measure of trec_eval, which has no rank type, or a side that was not asked.
        """
        asked = parse_all(measures or [f"{self.sides[-1]}.micro.{tail}" for tail in BY_RANK_TYPE])
        for measure in asked:
            if measure.rank_type is None:
                raise UsageError(f"{measure} sees the order of the run and has no rank types")
        rows: list[tuple[Cell, ...]] = [
            (kind, *(self[replace(measure, rank_type=kind)] for measure in asked))
            for kind in RANK_TYPES
        ]
        table = _table("ranks", (), asked, rows)
        keys = [measure.key.replace(f".{measure.rank_type}.", ".") for measure in asked]
        return self.labelled(replace(table, keys=("ranks", *keys)))

    def slice(
        self,
        by: str | Iterable[str] = "relation",
        measures: Sequence[str | Measure] | None = None,
        *,
        graph: Graph | None = None,
        labels: TripleLabels | None = None,
    ) -> Table:
        """The same metrics for parts of the instances.

        Parameters
        ----------
        by : {"relation", "category", "side", "quartile", "label"}, or several
            What makes the parts: "category,side" gives a row for every category on every side.
            Categories (1-1, 1-N, N-1, N-N) come from the train split; quartiles from how many
            triples of the graph the answer stands in, among all entities (Q1: the rarest).
        measures : sequence of keys or Measure, optional
            Columns; by default the metrics that papers print. By side, the keys' own sides give
            way to the row's.
        graph : Graph, optional
            The graph that the ranks were made on; categories and quartiles need it.
        labels : path or sequence of str, optional
            A file of lines head, relation, tail, label (tab-separated), or a label for each triple
            of the evaluated split. Evaluated triples without a line are "(no label)".

        Returns
        -------
        Table
            The names of the part, its numbers of questions and instances (by relation alone: of
            instances), and the measures. Relations and labels come largest first. By quartile, also
            the least and largest popularity in it. Parts without an instance have no row.

        Raises
        ------
        UsageError
            No such slices, a graph or labels are missing or others, or a measure of whole questions
            where their answers fall into several parts.
        InputError
            Labels that cannot be used; the line is named.
        """
        if by == "side":
            asked = parse_all(measures) if measures is not None else None
            return self._by_side(asked)
        if by == "relation":
            side = self.sides[-1]
            keys = measures or [f"{side}.{tail}" for tail in BY_RELATION]
            return self._by_relation(parse_all(keys))
        from kgtrec.study.slices import sliced

        return self.labelled(sliced(self, by, measures, graph=graph, labels=labels))

    def _by_side(self, asked: Sequence[Measure] | None) -> Table:
        tails = [m.key.partition(".")[2] for m in asked] if asked else list(BY_SIDE)
        measured = self.side_table(list(dict.fromkeys(tails)))
        rows = [(row[0], *self.count(str(row[0])), *row[1:]) for row in measured.rows]
        keys = [key.removeprefix(self.label).partition(".")[2] for key in measured.keys[1:]]
        table = Table(
            ("side", "questions", "instances", *measured.titles[1:]),
            ("side", "questions", "instances", *keys),
            (0, 0, 0, *measured.digits[1:]),
            rows,
        )
        return self.labelled(table)

    def _by_relation(self, measures: Sequence[Measure]) -> Table:
        sides = {measure.side for measure in measures}
        if len(sides) > 1:
            raise UsageError(
                f"slices by relation are of one side, not of {' and '.join(sorted(sides))}; "
                "ask for each in turn"
            )
        for measure in measures:
            self[measure]  # refuses what cannot be had, with the reason
        relation, count = self._calculator.relations(sides.pop())
        labels = self.ranks.relation_labels
        names = [str(r) if labels is None else str(labels[r]) for r in relation.tolist()]
        columns = [self._calculator.per_relation(measure).tolist() for measure in measures]
        found = zip(names, count.tolist(), *columns, strict=True)
        rows = sorted(found, key=lambda row: (-row[1], row[0]))
        return self.labelled(_table("relation", ("count",), measures, rows))

    def labelled(self, table: Table) -> Table:
        """A table of this result that says so, in its first heading, if candidates were sampled."""
        if not self.ranks.sampled:
            return table
        titles = (f"sampled {table.titles[0]}", *table.titles[1:])
        keys = [f"{SAMPLED}{key}" if "." in key else key for key in table.keys]
        return replace(table, titles=titles, keys=keys)

    def _listed(self) -> list[Measure]:
        if self.measures is not None:
            return self.measures
        tails = [f"{kind}.micro.{metric}" for kind in RANK_TYPES for metric in MICRO]
        tails += [*MACRO, *OVER_RELATIONS]
        return [Measure.parse(f"{side}.{tail}") for side in self.sides for tail in tails]

    def per_question(self, name: str) -> Floats:
        """A trec_eval measure per question: given, or from the run, or natively from the ranks.

        Returns
        -------
        float64 array (questions,)
            In ascending question number.

        Raises
        ------
        UsageError
            No trec_eval measure, or out of reach.
        """
        if name not in self._trec:
            self._trec.update(self._from_run(name))
        values = np.asarray(self._trec[name], np.float64)
        expected = self.count(self.sides[-1])[0]
        if len(values) != expected:
            raise InputError(
                f"{name} has {len(values)} values, but the ranks hold {expected} questions; "
                "give values for the same questions, in ascending question number"
            )
        return values

    def _from_run(self, name: str) -> Mapping[str, Floats]:
        """From the run; natively from the ranks where there is none, or none deep enough."""
        from kgtrec.trec import bridge

        reason = "only ranks are at hand, no run"
        if self.run is not None and self._questions is not None:
            try:
                return bridge.trec_values(self.run, self._questions, [name])
            except UsageError as error:
                reason = str(error)
        try:
            return bridge.native_values(self.ranks, [name])
        except UsageError as error:
            raise UsageError(
                f"{name} is out of reach: {reason}, and {error}; ask for it in "
                "kgtrec.evaluate(scores, questions, measures=[…]), or write a run and use "
                "kgtrec eval"
            ) from None


def _table(
    name: str,
    counts: tuple[str, ...],
    measures: Sequence[Measure],
    rows: Sequence[tuple[Cell, ...]],
) -> Table:
    return Table(
        (name, *counts, *(measure.title for measure in measures)),
        (name, *counts, *(measure.key for measure in measures)),
        (0, *(0 for _ in counts), *(measure.digits for measure in measures)),
        rows,
    )


def _recorded_agreement(ranks: Ranks) -> Mapping[str, float]:
    """What an evaluation left in the manifest of ranks that were saved and loaded again."""
    found = ranks.manifest.get("trec_agreement")
    return found if isinstance(found, dict) else {}
