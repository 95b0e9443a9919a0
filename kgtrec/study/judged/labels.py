"""Labels of a judge for a whole pool, and people's labels of the sampled questions.

A judge's file has lines ``question 0 entity value``, like qrels; or it is a sheet, whose header
names head, relation, tail and label. The value is a label, 0 or 1 (N or Y in sheets), or the
probability that the triple is true. Probabilities from 0.5 on count as true. Seeds may be in the
file, but they are true. Candidates that a rule of the pool labels false need no label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgtrec._internal.arrays import Bools, Float64, Int64
from kgtrec._internal.csr import find_sorted
from kgtrec._internal.table import ShownInLines, text_of_cell
from kgtrec.errors import FileError, PathName
from kgtrec.graph.triples import COLUMNS
from kgtrec.study.judged.draw import QuestionSample
from kgtrec.study.judging.agreement import ALL, Agreement
from kgtrec.study.pooling.completion import FALSE, TRUE, Completion, Qrels, complete
from kgtrec.study.pooling.edited_files import EditedFile, Fault, Faults, Judgements
from kgtrec.study.pooling.pool import Pool
from kgtrec.study.pooling.seeds import SeedQuestions, find_indices, questions_of

CUT = 0.5
"""Least probability that counts as true."""
_SEED, _RULE, _POOLED = 2, 1, 0
_HINT = "each line must be: question 0 entity value, where the value is 0, 1 or a probability"


@dataclass(frozen=True, eq=False)
class JudgeLabels(ShownInLines):
    """A judge's labels of all pooled candidates.

    - qrels: Seeds with the label 1, and the judge's labels of all others.
    - probability, float64 (n,): Probability that each entry of the qrels is true.
    - pooled, bool (n,): True for entries that are neither seeds nor labelled by a rule.
    """

    qrels: Qrels
    probability: Float64
    pooled: Bools

    def _lines(self) -> tuple[str, str]:
        true = int((self.qrels.labels[self.pooled] == TRUE).sum())
        unsure = int(((self.probability > 0) & (self.probability < 1)).sum())
        return (
            f"{int(self.pooled.sum()):,} candidates of {len(self.qrels):,} questions",
            f"{true:,} true, {unsure:,} with a probability between 0 and 1",
        )

    def with_labels(self, labels: Int64) -> Qrels:
        """Return the qrels with other labels of all entries, int64 (n,)."""
        return replace(self.qrels, labels=labels)


def read_judge(
    path: PathName,
    seeds: SeedQuestions,
    pool: Pool,
    rules: Sequence[str] | None = None,
    depth: int | None = None,
) -> JudgeLabels:
    """Read the labels of a judge.

    Parameters
    ----------
    path : path
    seeds : SeedQuestions
    pool : Pool
    rules, depth
        As for `kgtrec.study.complete`. Labels of deeper candidates do not count.

    Raises
    ------
    FileError
        Missing, malformed, values that are not probabilities, questions that are not of the seeds,
        candidates outside the pool, or in two lines: these lines are listed. Or a pooled candidate
        has no label.
    """
    file = EditedFile(path)
    is_sheet = {*COLUMNS} <= {cell.strip().lower() for cell in file.first}
    shown, keys, texts = (_read_sheet if is_sheet else _read_qrels)(file, seeds)
    nobody = Judgements({}, 0)
    whole = complete(seeds, pool, nobody, rules).qrels().keys
    is_pooled = find_sorted(whole, keys.ravel()).reshape(keys.shape) >= 0
    values = np.full(len(keys), math.nan)
    for row, (line, text) in enumerate(texts):
        if not is_pooled[row].any():
            file.fault(line, f"{shown[row]} is outside the pool", "label the pool only")
        elif file.is_new(line, keys[row].tobytes(), shown[row], "keep one of the lines"):
            values[row] = _parse_value(file, line, text)
    file.refuse_faults()
    blank = complete(seeds, pool, nobody, rules, depth)
    return _fill_labels(path, blank, keys.ravel(), np.repeat(values, keys.shape[1]))


Read = tuple[list[str], Int64, list[tuple[int, str]]]
"""The labelled lines of a file. Of each line: the labelled item in words; its keys (question *
n_entities + entity); the line's number and its value."""


def _read_qrels(file: EditedFile, seeds: SeedQuestions) -> Read:
    """Read lines ``question 0 entity value``; one key per line."""
    file.hint = _HINT
    rows = [*file.rows(("question", "0", "entity", "value"), separator=None)]
    number = {name: index for index, name in enumerate(seeds.ids)}
    for line, cells in rows:
        if cells["question"] not in number:
            unknown = f"{cells['question']!r} is not a question of the seeds"
            file.fault(line, unknown, "label the questions of the pool only")
    entities = file.ids(seeds.graph.entities.docnos, "entity", rows)
    file.refuse_faults()
    questions = np.array([number[cells["question"]] for _, cells in rows], np.int64)
    shown = [f"candidate {c['entity']!r} of question {c['question']!r}" for _, c in rows]
    keys = questions * seeds.graph.n_entities + entities
    return shown, keys[:, None], [(line, cells["value"]) for line, cells in rows]


def _read_sheet(file: EditedFile, seeds: SeedQuestions) -> Read:
    """Read a sheet with the columns head, relation, tail and label; two keys per line.

    A key is below 0 if the triple answers no seed question on that side.
    """
    rows = [*file.records((*COLUMNS, "label"), decode=text_of_cell)]
    file.refuse_faults()
    triples = file.triple_ids(seeds.graph, rows)
    file.refuse_faults()
    questions, answers = questions_of(seeds.graph, triples)
    number = find_indices(seeds.keys, questions.ravel()).reshape(-1, 2)
    keys = np.where(number >= 0, number * seeds.graph.n_entities + answers, -1)
    shown = [repr(" ".join(cells[name] for name in COLUMNS)) for _, cells in rows]
    return shown, keys, [(line, cells["label"].strip()) for line, cells in rows]


def _parse_value(file: EditedFile, line: int, text: str) -> float:
    """Return a label or probability; note a fault for other texts."""
    try:
        value = {"Y": 1.0, "N": 0.0}[text] if text in ("Y", "N") else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        problem = f"value {text!r}" if text else "an empty label"
        file.fault(line, problem, "write 0, 1 (in sheets also N, Y) or a probability")
    return value


def _fill_labels(path: PathName, blank: Completion, keys: Int64, values: Float64) -> JudgeLabels:
    """Give every pooled candidate its value; FileError if one has none."""
    is_seed = np.arange(len(blank)) < len(blank.seeds.seeds)
    kinds = np.where(is_seed, _SEED, np.where(blank.by_rule, _RULE, _POOLED))
    qrels = replace(blank, labels=kinds).qrels()
    index = find_sorted(qrels.keys, keys)
    probability = np.full(len(qrels.keys), math.nan)
    probability[index[index >= 0]] = values[index >= 0]
    probability[(qrels.labels == _RULE) & np.isnan(probability)] = 0.0
    probability[qrels.labels == _SEED] = 1.0
    missing = np.flatnonzero(np.isnan(probability))
    if len(missing):
        name = qrels.ids[qrels.owner[missing[0]]]
        entity = qrels.graph.entities.docnos[int(qrels.entities[missing[0]])]
        raise FileError(
            path,
            found=f"{len(missing):,} of {len(qrels.keys):,} seeds and pooled candidates have no "
            f"label; the first is candidate {entity!r} of question {name!r}",
            hint="let the judge label the whole pool",
        )
    labelled = replace(qrels, labels=np.where(probability >= CUT, TRUE, FALSE))
    return JudgeLabels(labelled, probability, qrels.labels == _POOLED)


def check_judged(
    path: PathName, sample: QuestionSample, done: Completion, judgements: Judgements
) -> None:
    """Raise FileError for drawn questions whose pool people have judged only in part.

    `path` is the file of the sample, `done` the completion by `judgements`.
    """
    known = (judgements.labels_of(done.triples) > -2) | done.by_rule
    known[: len(done.seeds.seeds)] = True
    qrels = replace(done, labels=known.astype(np.int64)).qrels()
    pooled = np.bincount(qrels.owner, minlength=len(qrels))
    open_ = np.bincount(qrels.owner[qrels.labels == 0], minlength=len(qrels))
    faults = [
        Fault(
            sample.lines[index],
            f"question {qrels.ids[index]!r} is judged in part: {open_[index]:,} of its "
            f"{pooled[index]:,} seeds and pooled candidates have no label",
            "let people judge the whole pool of every question in the sample",
        )
        for index in sample.drawn.tolist()
        if open_[index]
    ]
    if faults:
        raise Faults(path, faults)


def agreement_with_people(labels: JudgeLabels, done: Completion, drawn: Int64) -> Agreement:
    """Compare the judge with people on the candidates of drawn questions.

    Seeds and candidates that a rule labels do not count.
    """
    people = done.qrels()
    compared = labels.pooled & np.isin(people.owner, drawn)
    index_of_label = np.array([1, 0, 2])  # of N, Y and ?, whose labels are 0, 1 and -1
    both = [each.labels[compared] for each in (people, labels.qrels)]
    return Agreement(("people", "judge"), ALL, index_of_label[np.stack(both, axis=1)])
