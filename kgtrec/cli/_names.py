"""Names of options: the headings of --help with their options, and options in messages.

A name has one meaning and one heading everywhere, except --columns, which are columns of scores or
of a table of measures, and --sample, a share of triples or a file of questions. Enter a new option
here first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from kgtrec._internal.argument_names import respell
from kgtrec.errors import KgtrecError

GROUPED_FROM = 14
"""Least number of options that --help groups under headings."""

HEADINGS = {
    "Input": (
        "--graph --graphs --scores --predictions --predictions-format --unanswerable --dangling "
        "--qrels --run --against "
        "--against-graph --pool --judgements --seed-triples --questions --answers --queries "
        "--documents --known-has-answers --left --right --left-labels --right-labels --matrix "
        "--pairs --valid-triples --test-triples --valid-negatives --test-negatives --valid-scores "
        "--test-scores --full-scores --labels --ratios --templates --names --done "
        "--adjudicated --zscores --qrels-format --run-format --name"
    ),
    "Questions and candidates": (
        "--split --sides --context --filter --known --entities --relations --type-constraints "
        "--candidates --min-answers --among --heads --tails --keep-known --exclude-query-document "
        "--outside --unknown --size --share --draw-by --full --half-width --observed "
        "--entity-types --relation-types --n-entities --n-instances --averaged-runs --percent "
        "--truncated --n-questions --n-answers"
    ),
    "Scores": (
        "--model --model-config --norm --phases --normalize --phase-weight "
        "--modulus-weight --inverse --rows --score-columns "
        "--columns --lower-is-better --nan --atol --rtol --list-order --unlinkable --similarity "
        "--csls --threads"
    ),
    "Pooling and judging": (
        "--judge --depth --sample --sample-questions --places --by-category --rules --blank "
        "--by-rule --by-relation --stratified --in-relation-order --annotators --overlap --batch "
        "--port --no-browser --link --facts --evidence --sources --asked --reverse --within --top "
        "--examples --alpha"
    ),
    "Parts of a job": (
        "--shard --plan --shard-by --memory --scheduler --workers --patience --status"
    ),
    "Measures": (
        "--measure --k --columns --side --by --spread --rank-types --ranks --criterion "
        "--one-threshold --bins --percentile --edges --enough --vary --at --at-alpha --points "
        "--simulate --set --other "
        "--policy --per --least --cover --confidence --assign "
        "--target --count-entities --count-relations --sparsity --density --train-share --values "
        "--study --figure --slope --strength --corrected --question --family-tree --families "
        "--people --generations --children --hide --hide-by --valid-share --checkpoints "
        "--correlation --sizes --shares --repeats --epsilon --per-query --no-summary --complete "
        "--best --stability "
        "--relevance-level --judged-only --max-documents --collection --compat --ties --debug"
    ),
    "Tests and intervals": (
        "--test --correction --groups --margin --level --strict --cluster --permutations "
        "--replicates --valid --robust --ci --resamples --seed"
    ),
    "Output": (
        "--output --write-run --write-qrels --write-sample --write-sample-qrels --write-questions "
        "--write-candidates --write-full-questions --write-split --write-runs --run-depth --tag "
        "--write-pairs --write-sets --write-ranks --save --html --conflicts --format "
        "--overview --show --largest --digits "
        "--plot --plot-pairs --plot-rankings --plot-histogram --plot-relations "
        "--plot-cells --style --show-engines "
        "--caption --label --path --verbose --quiet --help --version"
    ),
}


def group_options(
    parameters: Sequence[click.Parameter], ctx: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of --help by heading; short lists have the heading "Options"."""
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    records = {long_name(option): option.get_help_record(ctx) for option in options}
    shown = {name: record for name, record in records.items() if record is not None}
    if len(shown) < GROUPED_FROM:
        return {"Options": list(shown.values())} if shown else {}
    groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
    for name, record in shown.items():
        fitting = [heading for heading, names in HEADINGS.items() if name in names.split()]
        # If a name fits two headings, use the first that has another option of the command.
        of_others = [h for h in fitting if {*HEADINGS[h].split()} & {*shown} - {name}]
        for heading in (of_others or fitting)[:1]:
            groups[heading].append(record)
    return {heading: group for heading, group in groups.items() if group}


def option_spelling(message: str, command: click.Command) -> str:
    """Spell the arguments of a marked message (see `argument`) as options: ``--filter raw``.

    An argument without an option in this command keeps Python's spelling.
    """
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    by_name = {str(option.name): option for option in options}
    by_name |= {long_name(option)[2:].replace("-", "_"): option for option in options}

    def spell(name: str, value: str) -> str:
        option = by_name.get(name)
        if option is None:
            return ""
        text = value[1:-1] if len(value) > 2 and value[0] in "'\"" else value
        return long_name(option) if option.is_flag or not text else f"{long_name(option)} {text}"

    return respell(message, spell)


@contextmanager
def in_options(command: click.Command) -> Iterator[None]:
    """Let errors of the library name the options of this command."""
    try:
        yield
    except KgtrecError as error:
        error.say(option_spelling(error.marked, command))
        raise


def long_name(parameter: click.Parameter) -> str:
    """Return the long name of an option: ``--output`` of ``-o, --output``."""
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
