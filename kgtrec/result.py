"""Result: every number that follows from ranks and a run, computed when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgtrec.errors import InputError, UsageError
from kgtrec.measures import RANK_TYPES, Measure, parse_all
from kgtrec.measures.calculator import Calculator
from kgtrec.tables import Cell, Table, dump_json

if TYPE_CHECKING:
    import pandas

    from kgtrec.questions import Questions
    from kgtrec.ranks import Ranks
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
BY_RELATION = ("realistic.micro.mrr", "realistic.micro.hits@1", "realistic.micro.hits@10",
               "realistic.micro.mr", "realistic.micro.amr")  # fmt: skip


class Result(Mapping[str, float]):
    """Numbers of one evaluation, by key: ``result["both.realistic.micro.mrr"]``.

    Any key that `Measure.parse` reads is computed on demand and kept. Iterating gives the keys
    that were asked for, or else every key of the default selection.

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
        self._calculator = Calculator(ranks, self._per_question)
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
        return (measure.key for measure in self._listed())

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

    def count(self, side: str) -> tuple[int, int]:
        """Number of questions and of instances on a side."""
        return self._calculator.count(side)

    def to_dict(self) -> dict[str, float]:
        """Key -> value, for the listed keys."""
        return {measure.key: self[measure] for measure in self._listed()}

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
            parts = (measure.key, measure.side, measure.rank_type or "", measure.averaging)
            rows.append((*parts, metric, self[measure]))
        return Table(columns, columns, (4,) * len(columns), rows)

    def wide_table(self) -> Table:
        """A row per side, a column per published metric; a row per key if keys were asked for."""
        if self.measures is not None:
            rows: list[tuple[Cell, ...]] = [
                (measure.key, f"{self[measure]:.{measure.digits}f}") for measure in self.measures
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
        return _table("side", (), measures, rows)

    def rank_type_table(self) -> Table:
        """A row per rank type: what ties alone can do to a metric."""
        side = self.sides[-1]
        metrics = ("mrr", "hits@1", "hits@10", "mr", "amr")
        measures = [Measure.parse(f"{side}.realistic.micro.{metric}") for metric in metrics]
        rows: list[tuple[Cell, ...]] = [
            (kind, *(self[f"{side}.{kind}.micro.{metric}"] for metric in metrics))
            for kind in RANK_TYPES
        ]
        return _table("ranks", (), measures, rows)

    def slice(self, by: str = "relation", measures: Sequence[str | Measure] | None = None) -> Table:
        """The same metrics for every relation or side.

        Parameters
        ----------
        by : {"relation", "side"}
        measures : sequence of keys or Measure, optional
            Columns; by default the metrics that papers print. By side, the keys' own sides give
            way to the row's.

        Returns
        -------
        Table
            By relation: the relation's label, its number of instances, and the measures, largest
            relations first. By side: the numbers of questions and instances, and the measures.
        """
        if by == "side":
            asked = parse_all(measures) if measures is not None else None
            return self._by_side(asked)
        if by != "relation":
            raise UsageError(f"cannot slice by {by!r}; slices are by 'relation' or 'side'")
        side = self.sides[-1]
        return self._by_relation(parse_all(measures or [f"{side}.{tail}" for tail in BY_RELATION]))

    def _by_side(self, asked: Sequence[Measure] | None) -> Table:
        tails = [m.key.partition(".")[2] for m in asked] if asked else list(BY_SIDE)
        measured = self.side_table(list(dict.fromkeys(tails)))
        rows = [(row[0], *self.count(str(row[0])), *row[1:]) for row in measured.rows]
        keys = [key.partition(".")[2] for key in measured.keys[1:]]
        return Table(
            ("side", "questions", "instances", *measured.titles[1:]),
            ("side", "questions", "instances", *keys),
            (0, 0, 0, *measured.digits[1:]),
            rows,
        )

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
        return _table("relation", ("count",), measures, rows)

    def _listed(self) -> list[Measure]:
        if self.measures is not None:
            return self.measures
        tails = [f"{kind}.micro.{metric}" for kind in RANK_TYPES for metric in MICRO]
        tails += [*MACRO, *OVER_RELATIONS]
        return [Measure.parse(f"{side}.{tail}") for side in self.sides for tail in tails]

    def _per_question(self, name: str) -> Floats:
        """A trec_eval measure per question: given, or from the run, or natively from the ranks."""
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
