"""What each option name means, in every command that has it, and the heading of --help above it.

A name has one meaning, wherever it is used. A new option is entered here first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

GROUPED_FROM = 14
"""Shorter lists of options need no headings."""

HEADINGS: dict[str, dict[str, str]] = {
    "Input": {
        "--graph": "folder of the graph that is read",
        "--graphs": "folder of the graphs that are read",
        "--scores": "scores that are ranked",
        "--predictions": "lists of predictions that are ranked",
        "--predictions-format": "format of the predictions",
        "--qrels": "judgements that are read",
        "--run": "TREC run that is read, one per file of ranks",
        "--against": "other labels, or another table",
        "--against-graph": "graph of the other labels",
        "--pool": "pool that is read",
        "--judgements": "labels of pooled triples that are read",
        "--seed-triples": "triples whose questions are pooled",
        "--questions": "questions that are read",
        "--queries": "queries in the order of score rows",
        "--documents": "documents in the order of score columns",
        "--known-has-answers": "known candidates may include the answers",
        "--left": "embeddings of the left graph",
        "--right": "embeddings of the right graph",
        "--left-labels": "labels of the left entities",
        "--right-labels": "labels of the right entities",
        "--matrix": "similarities",
        "--pairs": "test alignments",
        "--valid-triples": "labelled triples that thresholds are fitted on",
        "--test-triples": "labelled triples that are measured",
        "--valid-negatives": "false triples that thresholds are fitted on",
        "--test-negatives": "false triples that are measured",
        "--valid-scores": "scores of --valid-triples",
        "--test-scores": "scores of --test-triples",
        "--full-scores": "scores of some questions among all entities",
        "--labels": "labels of triples, for --by label",
        "--ratios": "triples whose relation ratios weigh the micro metrics",
        "--templates": "questions by relation, for judges",
        "--names": "names of entities",
        "--done": "sheets whose labels are known",
        "--adjudicated": "an adjudicator's labels",
        "--zscores": "means and deviations by query",
        "--qrels-format": "format of the judgements",
        "--run-format": "format of the run",
        "--name": "name of a file in the results",
    },
    "Questions and candidates": {
        "--split": "split that is asked",
        "--sides": "which part of a triple is asked",
        "--context": "what is asked with a triple: its time or qualifiers",
        "--filter": "whose answers are known",
        "--known": "further known triples",
        "--entities": "the only entities of questions and candidates",
        "--relations": "the only relations of questions",
        "--type-constraints": "candidates by relation and side",
        "--candidates": "candidates by question",
        "--outside": "answers that are no candidates",
        "--unknown": "labels that the graph lacks",
        "--size": "how many are drawn",
        "--share": "share that is drawn",
        "--draw-by": "how likely candidates are drawn",
        "--full": "questions that are ranked in full besides",
        "--half-width": "half width of an interval to plan for",
        "--observed": "splits whose entities fit a relation",
        "--entity-types": "types of entities",
        "--relation-types": "types of the heads and tails of relations",
        "--n-entities": "number of entities",
        "--n-instances": "number of ranks behind a value",
        "--averaged-runs": "number of runs whose mean a value is",
        "--percent": "metrics between 0 and 1 are percentages",
        "--truncated": "digits were cut off",
        "--n-questions": "number of questions",
        "--n-answers": "number of answers per question",
    },
    "Scores": {
        "--model": "embedding model whose vectors the scores are",
        "--norm": "distance of the embedding model",
        "--inverse": "how inverse relations are numbered",
        "--rows": "what a row of scores is",
        "--score-columns": "what a column of scores is",
        "--lower-is-better": "the scores are distances",
        "--nan": "what a NaN score is",
        "--atol": "absolute tolerance of ties",
        "--rtol": "relative tolerance of ties",
        "--list-order": "what orders lists with scores",
        "--unlinkable": "predictions that name no entity",
        "--similarity": "similarity of embeddings",
        "--csls": "neighbours for CSLS",
        "--threads": "number of threads",
    },
    "Pooling and judging": {
        "--depth": "depth of the pool",
        "--sample": "share of the pool that is judged",
        "--places": "whether known candidates take places",
        "--by-category": "try the rules of relation categories",
        "--rules": "whether rules label triples",
        "--blank": "what a blank label means",
        "--by-rule": "also what a rule has labelled",
        "--by-relation": "relation by relation",
        "--annotators": "names of annotators",
        "--overlap": "share that two annotators judge",
        "--batch": "triples per sheet",
        "--port": "port of the page",
        "--no-browser": "only print the page's address",
        "--link": "page about an entity",
        "--facts": "facts shown per entity",
        "--reverse": "also questions that only pooled triples ask",
        "--within": "how much of every run is open if it has no label",
        "--top": "how much of every run is shown by label",
    },
    "Parts of a job": {
        "--shard": "part of the job",
        "--plan": "only plan the job",
        "--shard-by": "what shards share out",
        "--memory": "memory limit",
        "--scheduler": "address of a Dask scheduler",
        "--workers": "number of worker processes",
        "--patience": "how long there may be no worker",
        "--status": "only show the state of every job",
    },
    "Measures": {
        "--measure": "measures",
        "--k": "cutoffs",
        "--columns": "columns of a table of models",
        "--side": "side of the ranks that is shown",
        "--by": "parts of the questions, a row each",
        "--spread": "quartiles over the parts",
        "--rank-types": "a row per rank type",
        "--ranks": "rank type",
        "--criterion": "what thresholds optimise",
        "--one-threshold": "one threshold for all relations",
        "--bins": "bins of the calibration error",
        "--percentile": "percentile from which entities count as popular",
        "--vary": "exponent that varies",
        "--at": "value of the other exponent",
        "--points": "number of exponents",
        "--count-entities": "splits on which entities are counted",
        "--count-relations": "splits on which relations are counted",
        "--sparsity": "share of true answers that the test set lacks",
        "--density": "share of true facts that the graph holds",
        "--train-share": "share of facts outside the test set",
        "--values": "two published values",
        "--study": "generated study",
        "--figure": "figure of formulas",
        "--correlation": "correlation of missing and predicted answers",
        "--sizes": "sizes of random parts",
        "--repeats": "random parts per size",
        "--epsilon": "how far below the best a run is as good",
        "--per-query": "lines for every query",
        "--no-summary": "no lines over all queries",
        "--complete": "average over all queries of the judgements",
        "--relevance-level": "level from which documents are relevant",
        "--judged-only": "drop documents that were not judged",
        "--max-documents": "documents per query that are looked at",
        "--collection": "documents in the collection",
        "--compat": "version of trec_eval to follow",
        "--ties": "value over the orders of ties",
        "--debug": "only one query",
    },
    "Tests and intervals": {
        "--test": "paired test",
        "--correction": "correction for the number of pairs",
        "--groups": "groups of graphs",
        "--level": "accepted error probability",
        "--cluster": "test over questions",
        "--permutations": "signs of the randomisation test",
        "--replicates": "files are runs of models",
        "--ci": "confidence of intervals in percent",
        "--resamples": "bootstrap samples",
        "--seed": "seed of random numbers",
    },
    "Output": {
        "--output": "where the result is written",
        "--write-run": "write a TREC run",
        "--write-qrels": "write TREC qrels",
        "--write-sample-qrels": "write qrels of a sample",
        "--write-questions": "write the names of questions",
        "--write-candidates": "write drawn candidates",
        "--write-full-questions": "write the questions that are ranked in full",
        "--write-split": "write a complete test split",
        "--write-runs": "folder for filtered runs",
        "--run-depth": "candidates per question in a written run",
        "--tag": "name of a written run",
        "--html": "write a page",
        "--conflicts": "write a sheet of conflicts",
        "--format": "format of what is printed",
        "--show": "which table is printed",
        "--largest": "how many changes are listed",
        "--digits": "decimals",
        "--plot": "draw a figure",
        "--plot-pairs": "draw the pairs",
        "--plot-rankings": "draw the rankings",
        "--plot-cells": "draw models and graphs",
        "--style": "style of figures",
        "--show-engines": "say which program computed a measure",
        "--path": "print a file's path",
        "--quiet": "results and errors only",
        "--help": "print the help",
        "--version": "print the version",
    },
}


def by_heading(
    parameters: Sequence[click.Parameter], ctx: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """The lines of --help, under headings if they are many."""
    options = [one for one in parameters if isinstance(one, click.Option)]
    records = {long_name(one): one.get_help_record(ctx) for one in options}
    shown = {name: record for name, record in records.items() if record is not None}
    if len(shown) < GROUPED_FROM:
        return {"Options": list(shown.values())} if shown else {}
    groups = {
        heading: [record for name, record in shown.items() if name in names]
        for heading, names in HEADINGS.items()
    }
    return {heading: group for heading, group in groups.items() if group}


_ARGUMENT = re.compile(r"""(?<![\w.(])([a-z_]+)=('[^']*'|"[^"]*"|-?\d[\d.e-]*)""")

_TWICE = re.compile(r"(--[\w-]+ [^\s,;()]+) \(\1\)")


def in_option_names(message: str, command: click.Command) -> str:
    """A message of the library, in which ``filter='x'`` is what a user types: ``--filter x``."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    names = {str(one.name): long_name(one) for one in options}
    names |= {name[2:].replace("-", "_"): name for name in names.values()}

    def typed(match: re.Match[str]) -> str:
        option = names.get(match[1])
        return match[0] if option is None else f"{option} {match[2].strip(chr(39))}"

    return _TWICE.sub(r"\1", _ARGUMENT.sub(typed, message))


def long_name(parameter: click.Parameter) -> str:
    """``--output`` of ``-o, --output``."""
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
