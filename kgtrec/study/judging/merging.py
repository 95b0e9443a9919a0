"""One judgement out of several: what annotators agree on, and what an adjudicator decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgtrec._internal.table import Cell, ShownAsTables, Table
from kgtrec.errors import InputError, UsageError
from kgtrec.study.judging.assignment import annotator_of
from kgtrec.study.judging.journal import judged_sheet
from kgtrec.study.judging.sheets import Fault, Faults, Item, Sheet, Triple


@dataclass(frozen=True, eq=False)
class Merged(ShownAsTables):
    """Judgements of several annotators put together.

    Attributes
    ----------
    final : tuple of Item
        Triples with a label that stands: all annotators who judged it agree, or the adjudicator
        has decided. By relation, head and tail. Evidence and notes of those who gave this label.
    conflicts : tuple of Item
        Triples that wait for an adjudicator: no label; the links that annotators gave stand in the
        note, without their names or labels.
    counts : dict of str to int
        Triples by how they were settled: "agreed" (by two or more), "single" (judged by one),
        "adjudicated", "conflicts", "blank" (judged by nobody).
    """

    final: tuple[Item, ...]
    conflicts: tuple[Item, ...]
    counts: dict[str, int]

    def table(self) -> Table:
        """A row per way of settling, and the labels that came out."""
        names = {
            "agreed": "two or more annotators agree",
            "single": "judged by one annotator",
            "adjudicated": "settled by the adjudicator",
            "conflicts": "in conflict, not settled",
            "blank": "not judged",
        }
        rows: list[tuple[Cell, ...]] = [(text, self.counts[key]) for key, text in names.items()]
        for label in "YN?":
            rows.append((f"label {label}", sum(item.label == label for item in self.final)))
        return Table(("triples", "number"), ("triples", "number"), (0, 0), rows)


def by_annotator(paths: Sequence[str], blank: str = "") -> dict[str, list[Item]]:
    """Items of every annotator, from sheets that are named after them.

    ``anna.batch1.tsv`` and ``anna.batch2.judged.tsv`` are both by anna. Answers in the journal of a
    sheet count.
    """
    places: dict[str, list[str]] = {}
    for path in paths:
        places.setdefault(annotator_of(path), []).append(path)
    items: dict[str, list[Item]] = {}
    for name, files in places.items():
        if len(files) > 1 and not all(".batch" in file for file in files):
            raise UsageError(
                f"{files[0]} and {files[1]} are named after one annotator, {name!r}; rename one, "
                "or call parts of one annotator's work NAME.batch1.tsv, NAME.batch2.tsv"
            )
        items[name] = _together([judged_sheet(file, blank) for file in files])
    return items


def _together(sheets: Sequence[Sheet]) -> list[Item]:
    at: dict[Triple, str] = {}
    for sheet in sheets:
        faults = []
        for item in sheet.items:
            other = at.setdefault(item.triple, sheet.path)
            if other != sheet.path:
                problem = f"{' '.join(item.triple)!r} stands in {other} too"
                faults.append(Fault(item.line, problem, "keep each triple in one batch"))
        if faults:
            raise Faults(sheet.path, faults)
    return [item for sheet in sheets for item in sheet.items]


def merge_sheets(
    judged: Mapping[str, Sequence[Item]], adjudicated: Sheet | None = None, seed: int = 0
) -> Merged:
    """Put judgements together.

    Labels that differ are a conflict, also Y or N against "?". Two "?" agree: the label is "?".

    Parameters
    ----------
    judged : mapping of str to sequence of Item
        Annotator to items; no triple twice.
    adjudicated : Sheet, optional
        The adjudicator's decisions. Blank ones leave the conflict open.
    seed : int
        Of the order of conflicts.

    Raises
    ------
    InputError
        Nobody has judged anything.
    Faults
        The adjudicator has judged what is not a conflict; each line is named.
    """
    votes: dict[Triple, list[Item]] = {}
    for items in judged.values():
        for item in items:
            votes.setdefault(item.triple, []).append(item)
    decided = _decisions(adjudicated, votes)
    counts = dict.fromkeys(("agreed", "single", "adjudicated", "conflicts", "blank"), 0)
    final, conflicts = [], []
    for triple in sorted(votes, key=lambda one: (one[1], one[0], one[2])):
        labelled = [item for item in votes[triple] if item.label]
        kind = _kind(labelled, triple in decided)
        counts[kind] += 1
        if kind == "conflicts":
            conflicts.append(_blinded(labelled))
        elif kind != "blank":
            final.append(_settled(labelled, decided.get(triple)))
    if not final and not conflicts:
        raise InputError("not one triple has a label; judge some first (kgtrec judge serve)")
    order = np.random.default_rng(seed).permutation(len(conflicts)).tolist()
    return Merged(tuple(final), tuple(conflicts[i] for i in order), counts)


def _kind(labelled: Sequence[Item], decided: bool) -> str:
    if not labelled:
        return "blank"
    if len({item.label for item in labelled}) > 1:
        return "adjudicated" if decided else "conflicts"
    return "agreed" if len(labelled) > 1 else "single"


def _decisions(
    adjudicated: Sheet | None, votes: Mapping[Triple, Sequence[Item]]
) -> dict[Triple, Item]:
    if adjudicated is None:
        return {}
    faults = []
    for item in adjudicated.items:
        labels = {vote.label for vote in votes.get(item.triple, ()) if vote.label}
        if len(labels) < 2:
            what = "nobody disagrees on" if labels else "no annotator has judged"
            problem = f"{what} {' '.join(item.triple)!r}"
            faults.append(Fault(item.line, problem, "take the line out: it is not a conflict"))
    if faults:
        raise Faults(adjudicated.path, faults)
    return {item.triple: item for item in adjudicated.items if item.label}


def _settled(labelled: Sequence[Item], decision: Item | None) -> Item:
    label = labelled[0].label if decision is None else decision.label
    backing = [item for item in labelled if item.label == label]
    if decision is not None:
        backing = [decision, *backing]
    question = next((item.question for item in labelled if item.question), "")
    evidence = " ".join(_distinct(item.evidence for item in backing))
    note = " | ".join(_distinct(item.note for item in backing))
    return replace(
        labelled[0], question=question, label=label, evidence=evidence, note=note, line=0
    )


def _blinded(labelled: Sequence[Item]) -> Item:
    links = sorted(_distinct(item.evidence for item in labelled))
    question = next((item.question for item in labelled if item.question), "")
    note = f"links given: {' '.join(links)}" if links else ""
    return replace(labelled[0], question=question, label="", evidence="", note=note, line=0)


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
