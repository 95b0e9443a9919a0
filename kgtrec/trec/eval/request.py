"""Requests to `kgtrec eval` and `kgtrec.trec.evaluate`: files, measures and options.

Building a request reads no file and computes nothing; `kgtrec.trec.eval.score.score` carries it
out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kgtrec._internal.argument_names import argument
from kgtrec.errors import UsageError, must_be
from kgtrec.trec.files.forms import RUN_FORMATS, TREC_QRELS, TREC_RUN
from kgtrec.trec.files.text import PathName, ReadAhead, is_path
from kgtrec.trec.measures.names import Column, depth_needed, resolve
from kgtrec.trec.measures.rows import FORMATS, OFFICIAL
from kgtrec.trec.measures.trec_measure import EvalOptions

if TYPE_CHECKING:
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.questions.api import Questions


class UnknownFormat(UsageError):
    """A file format that kgtrec does not read (with trec_eval's exit code for unknown formats)."""

    exit_code = 2


def read_once(*files: Any) -> None:
    """Raise UsageError if more than one of them is standard input."""
    if sum(is_path(file) and os.fspath(file) == "-" for file in files) > 1:
        raise UsageError(
            "several files are standard input (-), which can be read only once; give other files"
        )


@dataclass(frozen=True, eq=False)
class Request:
    """Request for an evaluation; the defaults are trec_eval's.

    - qrels, runs: Files (``-`` is standard input), or anything that `kgtrec.trec.evaluate`
      accepts.
    - measures: Names of any spelling, also ``kg_`` ones. By default those that trec_eval prints
      for the format; under `ties`, only those with a form under ties.
    - per_query, summary: Whether to give values of single queries, and values over all queries
      (-q, not -n).
    - qrels_format: A key of `kgtrec.trec.measures.rows.FORMATS` (-R).
    - run_format: A key of `kgtrec.trec.files.forms.RUN_FORMATS` (-T).
    - only: The only query to evaluate (-D).
    - zscores: A file of means and deviations, which makes the values z-scores (-Z).
    - ties: A key of `kgtrec.trec.measures.ties.TIES`. By default trec_eval's order, and realistic
      ranks for micro metrics.
    - entities: Number of entities of the graph, for micro metrics.
    - questions: Questions of a graph, whose other splits filter the runs. They also give the
      number of entities.
    - resampling: For confidence intervals of the means over queries.
    - command_line: Whether to read parameters of measures as trec_eval's command line does.
    """

    qrels: Any
    runs: Sequence[Any]
    measures: Sequence[str] | None = None
    options: EvalOptions = field(default_factory=EvalOptions)
    per_query: bool = False
    summary: bool = True
    qrels_format: str = TREC_QRELS
    run_format: str = TREC_RUN
    only: str | None = None
    zscores: PathName | None = None
    ties: str | None = None
    entities: int | None = None
    questions: Questions | None = None
    resampling: Resampling | None = None
    command_line: bool = False

    @cached_property
    def _all(self) -> list[Column]:
        """All measures, as asked; UsageError for unknown names."""
        if self.qrels_format not in FORMATS:
            raise UnknownFormat(
                f"{argument('qrels_format', self.qrels_format)} is unknown; "
                f"{must_be(self.qrels_format, FORMATS)}"
            )
        columns = resolve(
            (OFFICIAL[FORMATS[self.qrels_format]],) if self.measures is None else self.measures,
            command_line=self.command_line,
            compat=self.options.compat,
            qrels_format=self.qrels_format,
            of_answers=True,
            as_asked=True,
        )
        if self.ties is None or self.measures is not None:
            return columns
        from kgtrec.trec.measures.ties import has_tie_form

        return [column for column in columns if has_tie_form(column, self.options)]

    @property
    def asked(self) -> list[Column]:
        """All measures, in the order asked."""
        return self._all

    @cached_property
    def columns(self) -> list[Column]:
        """Measures of queries."""
        return [column for column in self._all if not column.row.of_answers]

    @cached_property
    def micro(self) -> list[Column]:
        """Measures of answers."""
        return [column for column in self._all if column.row.of_answers]

    @cached_property
    def queries_of_other_answers(self) -> tuple[list[str], int]:
        """Queries whose answers in the qrels are not those of the graph's questions; see
        `kgtrec.trec.eval.kg_metrics.queries_of_other_answers`. Reads the qrels again."""
        from kgtrec.trec.eval.kg_metrics import queries_of_other_answers
        from kgtrec.trec.files.convert import qrels_columns
        from kgtrec.trec.files.run import read_qrels_columns

        is_file = is_path(self.qrels)
        if self.questions is None or self.is_grouped or (is_file and os.fspath(self.qrels) == "-"):
            return [], 0
        columns = (
            read_qrels_columns(self.qrels, form=self.qrels_format)
            if is_file
            else qrels_columns(self.qrels)
        )
        return queries_of_other_answers(columns, self.questions)

    @property
    def is_grouped(self) -> bool:
        """Whether the judgements are in groups: preferences, or several assessors."""
        return FORMATS[self.qrels_format] != "qrels"

    @property
    def depth(self) -> int | None:
        """Number of documents per query that the measures look at; None: all."""
        return depth_needed(self._all)

    def read_ahead(self) -> ReadAhead:
        """Read the files of runs, if no graph filters them, while other modules are loaded."""
        is_plain = (self.qrels_format, self.run_format) == (TREC_QRELS, TREC_RUN)
        is_plain = is_plain and self.questions is None
        cut = self.options.cut(self.depth if is_plain else None)
        return ReadAhead(self.qrels, self.runs if is_plain else (), cut)

    @property
    def of_a_query(self) -> list[Column]:
        """Columns that are printed for one query."""
        return [column for column in self._all if not column.is_summary_only]

    @property
    def of_all(self) -> list[Column]:
        """Columns that are printed for all queries together."""
        return [column for column in self._all if not column.is_query_only]

    def check(self) -> None:
        """Raise `UsageError` for impossible requests, before files are read."""
        columns, grouped, has_micro = self.columns, self.is_grouped, bool(self.micro)
        has_entities = self.entities is not None
        rows = (
            (
                grouped and self.ties is not None,
                f"{argument('ties')} works only with qrels, not with judgements in groups; leave "
                f"it out, or give {argument('qrels_format', 'qrels')}",
            ),
            (
                has_entities and not has_micro,
                f"{argument('entities', option='n_entities')} needs kg_ measures; add some, such "
                "as kg_mr and kg_mrr, or leave it out",
            ),
            (
                has_entities and self.questions is not None,
                "the graph gives the number of entities; leave out "
                f"{argument('entities', option='n_entities')}",
            ),
            (
                has_micro and self.zscores is not None,
                "kg_ measures have no z-scores; leave out "
                f"{argument('zscores')}, or the kg_ measures",
            ),
        )
        for applies, text in rows:
            if applies:
                raise UsageError(text)
        if self.ties is not None:
            from kgtrec.trec.measures.ties import check_tie_forms

            check_tie_forms(columns, self.options)
        if self.micro:
            from kgtrec.trec.eval.kg_metrics import check_micro

            known = self.entities if self.questions is None else self.questions.n_labels
            check_micro(self.micro, self.options, known)
        if self.run_format not in RUN_FORMATS:
            raise UnknownFormat(
                f"{argument('run_format', self.run_format)} is unknown; "
                f"{must_be(self.run_format, RUN_FORMATS)}"
            )
        read_once(self.qrels, *self.runs)
