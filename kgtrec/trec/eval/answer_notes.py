"""Notes on measures of answers, and on runs that a graph filters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kgtrec._internal.argument_names import argument
from kgtrec.errors import AnswerNote, KgtrecWarning, QueryWarning
from kgtrec.trec.eval.remarks import quote_name
from kgtrec.trec.eval.request import Request

if TYPE_CHECKING:
    from kgtrec.trec.eval.kg_metrics import GraphFiltered
    from kgtrec.trec.eval.score import Scored


def remarks_on_answers(run: Scored, request: Request) -> Iterable[KgtrecWarning]:
    """Note what a graph removed from a run, and which answers ``kg_`` measures count."""
    if run.filtered is not None:
        yield AnswerNote(_describe_filter(run.filtered, request))
        yield from _doubt_questions(request)
    elif request.micro:
        yield AnswerNote(
            "kg_ measures use ranks as listed: other answers in the qrels do not count, but "
            "answers known from other splits do, unless the run is filtered; "
            f"{argument('questions', option='graph')} filters it"
        )
    if run.micro is not None and run.micro.missing.any():
        text = "low and high bound the metrics for every rank they may have"
        if request.entities is None and request.questions is None:
            number = argument("entities", option="n_entities")
            text = f"without {number} their ranks are unbounded: low counts them as 0"
        total = f"{run.micro.missing.sum():,} of {run.micro.answers.sum():,} answers"
        yield AnswerNote(f"{total} are not in the run; {text}")


def _doubt_questions(request: Request) -> Iterable[QueryWarning]:
    """Warn if the qrels are of other questions than the graph's, which filter the run."""
    queries, n_judged = request.queries_of_other_answers
    if queries:
        questions = request.questions
        assert questions is not None
        yield QueryWarning(
            f"{len(queries):,} of {n_judged:,} queries have relevant documents, but no answer of "
            f"the question of that name in split {questions.split!r} (the first is "
            f"{quote_name(queries[0])}): if the queries are those of another split, or one per "
            "triple as with sampled negatives, other documents were removed; give their "
            f"{argument('split')}, or filter the scores when you rank them, and leave out "
            f"{argument('questions', option='graph')}"
        )


def _describe_filter(filtered: GraphFiltered, request: Request) -> str:
    """Describe what a graph removed from a run, and the documents that it lacks."""
    questions = request.questions
    assert questions is not None
    text = (
        f"filtered by {questions.graph.name or 'the graph'}: {filtered.known:,} documents that "
        f"{', '.join(questions.filter_splits)} know left the run"
    )
    if n := filtered.unlinkable:
        fate = "are not in the graph and keep their places (the first is {})"
        if n == 1:
            fate = "is not in the graph and keeps its place ({})"
        text += f"; {n:,} {fate.format(quote_name(filtered.stranger))}"
        if questions.graph.has_open_end and filtered.stranger.isdecimal():
            advice = "ask the questions of graph.with_entities(n)"
            if request.command_line:
                advice = f"give the number of all by {argument('entities', option='n_entities')}"
            text += f"; if they are entities, too, {advice}"
    return text
