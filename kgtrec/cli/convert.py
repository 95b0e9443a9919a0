"""``kgtrec convert``: a graph's questions and answers as TREC files."""

from __future__ import annotations

from functools import partial

import click

from kgtrec.cli import _options as shared
from kgtrec.cli._report import Command, Report


@click.command(cls=Command)
@shared.GRAPH
@shared.writes("--write-qrels qrels", "Write `question 0 answer 1` lines.")
@shared.writes("--write-questions topics", "Write `question<TAB>entity<TAB>relation` lines.")
@shared.split("Split to convert.")
@shared.SIDES
@shared.CONTEXT
def command(
    graph: str, qrels: str | None, topics: str | None, split: str, sides: str, context: str | None
) -> Report:
    """Write a split's answers as TREC qrels, and what its questions ask.

    Question headN asks (?, relation, entity), tailN asks (entity, relation, ?); N counts in order
    of first appearance. Labels with blanks are percent-encoded. Files named .gz are compressed.

    \b
    kgtrec convert --graph FB15k-237 --write-qrels qrels.txt --write-questions questions.tsv
    """
    from kgtrec import UsageError, read_graph, write_qrels, write_questions

    if not qrels and not topics:
        raise UsageError(
            "nothing to write: give --write-qrels FILE, --write-questions FILE, or both"
        )
    loaded = read_graph(graph)
    questions = loaded.questions(split, sides, context=context)
    encoded = loaded.entities.n_encoded + loaded.relations.n_encoded
    return Report(
        files=[
            (qrels, partial(write_qrels, questions)),
            (topics, partial(write_questions, questions)),
        ],
        content=f"{len(questions):,} questions with {questions.n_instances:,} answers of split "
        f"{split!r}",
        notes=[f"{encoded:,} labels with blanks are percent-encoded"] * bool(encoded),
    )
