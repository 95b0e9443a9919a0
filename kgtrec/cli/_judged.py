"""The part of ``kgtrec complete`` with --judge: a judge's labels, corrected by those of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kgtrec.cli import _options as shared
from kgtrec.cli._report import File, Report, Section
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from kgtrec._internal.table import Table
    from kgtrec.study.judged.labels import JudgeLabels
    from kgtrec.study.judged.planning import JudgingPlan
    from kgtrec.study.judged.report import CorrectedMeasures
    from kgtrec.study.pooling.completion import Completion
    from kgtrec.study.pooling.edited_files import Judgements
    from kgtrec.study.pooling.lists import RankedLists
    from kgtrec.study.pooling.pool import Pool
    from kgtrec.study.pooling.seeds import SeedQuestions


def check_judge_options(
    runs: Sequence[str], judgements: Sequence[str], options: dict[str, Any]
) -> None:
    """Refuse --judge without what it needs, and a call without any judgements."""
    judge, sample = options["judge_file"] is not None, options["sample_file"] is not None
    shared.refuse(
        (
            not 0.01 <= options["ci"] < 100,
            f"--ci {options['ci']:g} is not a percentage between 0 and 100, such as 95",
        ),
        (judge and not runs, "--judge corrects the measures of RUNs, but there are none"),
        (
            judge and not sample and options["target"] is None,
            "--judge needs --sample FILE, the questions that people have judged, or --target W, to "
            "plan how many they should judge",
        ),
        (
            not judgements and (sample or not judge),
            "--judgements FILE is missing; give the labels of people",
        ),
        (
            sample and options["drawn_file"] is not None,
            "--write-sample draws questions by the judge's probabilities; leave out --sample",
        ),
    )


def correct(
    lists: Sequence[RankedLists],
    pool: Pool,
    done: Completion,
    judgements: Judgements,
    rules: Sequence[str] | None,
    options: dict[str, Any],
) -> Report:
    """Correct the measures of --judge by people's labels, or plan how many labels these need."""
    from kgtrec.study.judged import labels as judged
    from kgtrec.study.judged.draw import read_question_sample
    from kgtrec.study.judged.planning import plan_from_pilot
    from kgtrec.study.judged.report import correct_measures
    from kgtrec.study.judged.values import MEASURES

    if pool.draw is not None:
        raise UsageError(
            "--judge needs people's labels of whole pools, but this pool has a sample of triples "
            "(kgtrec pool --sample); use --sample-questions instead"
        )
    how = {
        "measures": options["measures"] or MEASURES,
        "level": options["ci"] / 100,
        "seed": options["seed"],
    }
    labels = judged.read_judge(options["judge_file"], done.seeds, pool, rules, options["depth"])
    path = options["sample_file"]
    if path is None:
        return _plan(lists, labels, done.seeds, options, how)
    sample = read_question_sample(path, done.seeds)
    judged.check_judged(path, sample, done, judgements)
    corrected = correct_measures(lists, labels, done, sample, **how)
    tables = {"measures": corrected.table()}
    sections: list[Section] = [
        (
            f"Over all {corrected.questions:,} questions",
            [tables["measures"]],
            _join(corrected.sentences()),
        )
    ]
    if len(lists) > 1:
        tables |= {"pairs": corrected.pair_table(), "order": corrected.order_table()}
        known = corrected.judged == corrected.questions
        sections += _sections_of_systems(tables, known)
    sections += _agreement_section(labels, done, corrected, sample.drawn, tables)
    if options["target"] is not None:
        plan = plan_from_pilot(corrected, options["target"])
        tables["plan"] = plan.table()
        sections.append(_plan_section(plan, f"; {corrected.judged:,} are judged"))
    data = {name: table.to_dict() for name, table in tables.items()}
    return Report.from_sections(sections, data, tables["measures"])


def _join(sentences: Sequence[str]) -> str:
    return "".join(f"{sentence[0].upper()}{sentence[1:]}. " for sentence in sentences).strip()


def _sections_of_systems(tables: dict[str, Table], known: bool) -> list[Section]:
    """Return the sections about pairs of systems and about their order, which may be known."""
    drawn = "That order is not known: it is drawn from the errors of the corrected values."
    return [
        ("Corrected differences over the same questions", [tables["pairs"]], ""),
        (
            "Order of systems: Kendall's tau-b with the order by people on all questions",
            [tables["order"]],
            "" if known else drawn,
        ),
    ]


def _agreement_section(
    labels: JudgeLabels,
    done: Completion,
    corrected: CorrectedMeasures,
    drawn: Any,
    tables: dict[str, Table],
) -> list[Section]:
    """Return the section about judge and people, in a list that may be empty; add its table."""
    from kgtrec._internal.bootstrap import Resampling
    from kgtrec.study.judged.labels import agreement_with_people
    from kgtrec.study.judging.agreement import select_columns, tabulate_agreements

    agreement = agreement_with_people(labels, done, drawn)
    if not len(agreement):
        return []
    how = Resampling(100 * corrected.level, 2000, corrected.seed)
    tables["agreement"] = tabulate_agreements([agreement], how)
    heading = "Agreement of the judge with people on the candidates of the drawn questions"
    shown = select_columns(tables["agreement"], [0, 2, 3, *range(9, 15)])
    return [(heading, [shown], "")]


def _plan(
    lists: Sequence[RankedLists],
    labels: JudgeLabels,
    seeds: SeedQuestions,
    options: dict[str, Any],
    how: dict[str, Any],
) -> Report:
    """Return the report of a plan from the judge's probabilities, with the sample that it draws."""
    from kgtrec.study import draw_questions, plan_from_probabilities

    plan = plan_from_probabilities(lists, labels, options["target"], **how)
    files: list[File] = []
    if options["drawn_file"] is not None:
        drawn = draw_questions(seeds, plan.size, weights=plan.weights, seed=options["seed"])
        files = [(options["drawn_file"], drawn.write)]
    section = _plan_section(plan, ", if the judge's probabilities are right")
    return Report.from_sections(
        [section], {"plan": plan.table().to_dict()}, plan.table(), files=files
    )


def _plan_section(plan: JudgingPlan, more: str) -> Section:
    """Return the section about the questions that people should judge."""
    chosen = ""
    if len(plan.best):
        chosen = (
            ". chosen: with larger probabilities for questions on which the judge is unsure "
            "(--write-sample draws them)"
        )
    return (
        f"Questions that people should judge for intervals of ±{plan.target:g}",
        [plan.table()],
        f"{plan.size:,} of {plan.questions:,} questions are enough for every row{more}{chosen}.",
    )
