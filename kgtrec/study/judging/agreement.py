"""Judgements of several annotators: their agreement, one merged judgement, and an audit.

Agreement is a share, and Cohen's kappa [1]_ with its standard error [2]_, optionally per relation.
Merging keeps the labels on which annotators agree, and the decisions of an adjudicator. An audit
draws merged triples to be judged again without their labels, half of them true and half false, as
Zhou et al. (2022, section 3.2) do. Most labels are false, so a plain sample would contain few true
triples and say little about them.

References
----------
.. [1] J. Cohen. A coefficient of agreement for nominal scales. 1960.
.. [2] J. L. Fleiss, J. Cohen, B. S. Everitt. Large sample standard errors of kappa and weighted
   kappa. 1969. Equation 13: the standard error around any kappa, not only around zero.

"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter

import numpy as np

from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError, refuse_if
from kgtrec.study.judging.journal import read_judged_sheet
from kgtrec.study.judging.sheets import Item, Sheet, Triple, annotator_of
from kgtrec.study.pooling.edited_files import LABELS, Fault, Faults

ALL = "all relations"
_INDEX = {label: index for index, label in enumerate(LABELS)}
"""Row or column of each label in the counts of two annotators."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The labels of two annotators for the triples that both have judged.

    - first, second: Names of the annotators.
    - relation: Relation of the triples; `ALL` for all relations together.
    - counts, int64 (3, 3): Number of triples by the label of the first annotator (rows: Y, N, ?)
      and that of the second (columns).
    """

    first: str
    second: str
    relation: str
    counts: Int64


def cohen(counts: Int64) -> tuple[float, float]:
    """Compute Cohen's kappa and its large-sample standard error from counts (k, k) of two raters.

    Kappa is 1 for full agreement and 0 for chance agreement. Both are NaN without items, or if
    chance agreement is certain. The error is 0 if kappa is 1, or if one rater has a single
    category, so that kappa could only be 0: neither means certainty.
    """
    n = counts.sum()
    # No items, or all of them in one category, so that chance agreement is certain.
    if np.count_nonzero(counts) == np.count_nonzero(np.diag(counts)) < 2:
        return math.nan, math.nan
    p = counts / n
    first, second = p.sum(axis=1), p.sum(axis=0)
    chance = float(first @ second)
    kappa = (float(np.trace(p)) - chance) / (1 - chance)
    both = second[:, None] + first[None, :]  # row i, column j: p(.i) + p(j.)
    agreed = np.diag(p) @ (1 - np.diag(both) * (1 - kappa)) ** 2
    apart = (1 - kappa) ** 2 * float((p * both**2).sum() - np.diag(p) @ np.diag(both) ** 2)
    spread = agreed + apart - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(0.0, float(spread)) / n) / (1 - chance)


def compute_agreements(
    judged: Mapping[str, Sequence[Item]], by_relation: bool = False
) -> list[Agreement]:
    """Compare the labels of every two annotators who share triples; ignore blank items.

    Each pair of annotators has an `Agreement` over all relations. With `by_relation`, it also has
    one per relation, in byte order.
    """
    labels: dict[str, dict[Triple, str]] = {
        name: {item.triple: item.label for item in items if item.label}
        for name, items in judged.items()
    }
    results: list[Agreement] = []
    for first, second in combinations(labels, 2):
        common = [triple for triple in labels[first] if triple in labels[second]]
        if not common:
            continue
        groups = {ALL: common}
        if by_relation:
            groups |= group_pairs(
                (triple[1], triple) for triple in sorted(common, key=itemgetter(1))
            )
        results += [
            Agreement(first, second, name, _counts(labels[first], labels[second], triples))
            for name, triples in groups.items()
        ]
    if not results:
        raise InputError(
            "no triple was judged by two annotators, so no agreement can be computed; give "
            "labelled sheets of two or more"
        )
    return results


def _counts(
    first: Mapping[Triple, str], second: Mapping[Triple, str], triples: Sequence[Triple]
) -> Int64:
    """Count `triples` by the labels of both annotators; int64 array (3, 3)."""
    counts = np.zeros((len(LABELS), len(LABELS)), np.int64)
    for triple in triples:
        counts[_INDEX[first[triple]], _INDEX[second[triple]]] += 1
    return counts


def tabulate_agreements(agreements: Sequence[Agreement]) -> Table:
    """Return a table with one row per pair of annotators and relation.

    Its last columns show how often each annotator answered Y, N and ?.
    """
    rows: list[tuple[Cell, ...]] = []
    for agreement in agreements:
        n = int(agreement.counts.sum())
        says = ["/".join(map(str, agreement.counts.sum(axis=axis).tolist())) for axis in (1, 0)]
        share = float(np.trace(agreement.counts)) / n
        pair = f"{agreement.first}, {agreement.second}"
        rows.append((pair, agreement.relation, n, share, *cohen(agreement.counts), *says))
    return Table.of(
        "annotators, relation, triples, agreed:3, kappa:3, s.e.=error:3, Y/N/?=first, Y/N/?=second",
        rows,
        names=2,
    )


def draw_audit(items: Iterable[Item], size: int, seed: int = 0) -> list[Item]:
    """Draw `size` judged triples, half of them Y and half N, to be judged again.

    The returned items are in random order, and their labels, evidence and notes are removed.
    """
    refuse_if(
        (
            size < 2 or size % 2,
            f"an audit needs an even number of triples, 2 or more; give one (not {size})",
        ),
        (seed < 0, f"seed {seed} is below 0; give 0 or more"),
    )
    rng = random_generator(seed)
    chosen: list[Item] = []
    by_triple = sorted(items, key=lambda item: item.triple)
    for label in ("Y", "N"):
        labelled = [item for item in by_triple if item.label == label]
        if len(labelled) < size // 2:
            raise UsageError(
                f"{len(labelled):,} triples are labelled {label}, fewer than the {size // 2:,} to "
                f"draw; ask for at most {2 * len(labelled):,}"
            )
        indices = rng.choice(len(labelled), size // 2, replace=False)
        chosen += [labelled[index] for index in indices.tolist()]
    order = rng.permutation(len(chosen)).tolist()
    return [replace(chosen[i], label="", evidence="", note="", line=0) for i in order]


KINDS = {
    "agreed": "two or more annotators agree",
    "single": "judged by one annotator",
    "adjudicated": "settled by the adjudicator",
    "conflicts": "in conflict, not settled",
    "blank": "not judged",
}
"""The ways in which a triple can be settled, and their names in the table."""


@dataclass(frozen=True, eq=False)
class Merged:
    """The merged judgements of several annotators.

    - final: Triples with a final label, sorted by relation, head and tail. All annotators who
      judged such a triple agree, or the adjudicator has decided. Evidence and notes are from those
      who gave this label.
    - conflicts: Triples for an adjudicator, without a label. The note contains the links that
      annotators gave, but neither their names nor their labels.
    - counts: Number of triples settled in each way; see `KINDS`.
    """

    final: tuple[Item, ...]
    conflicts: tuple[Item, ...]
    counts: dict[str, int]

    def table(self) -> Table:
        """Return a table with one row per kind of `KINDS`, and one per final label."""
        labels = [item.label for item in self.final]
        rows = [(text, self.counts[key]) for key, text in KINDS.items()]
        rows += [(f"label {label}", labels.count(label)) for label in LABELS]
        return Table.of("triples, number", rows)


def read_annotators(paths: Sequence[str], blank: str = "") -> dict[str, list[Item]]:
    """Read sheets, with the answers of their journals; return the items of each annotator.

    The name of a file begins with that of its annotator: ``anna.batch1.tsv`` and
    ``anna.batch2.judged.tsv`` are both by anna. UsageError if two other files have the same
    annotator. `blank` replaces blank labels.
    """
    files_of_annotators = group_pairs((annotator_of(path), path) for path in paths)
    items: dict[str, list[Item]] = {}
    for name, files in files_of_annotators.items():
        if len(files) > 1 and not all(".batch" in file for file in files):
            raise UsageError(
                f"{files[0]} and {files[1]} name the same annotator, {name!r}; rename one, or "
                "call parts of this annotator's work NAME.batch1.tsv, NAME.batch2.tsv"
            )
        items[name] = _join_batches([read_judged_sheet(file, blank) for file in files])
    return items


def _join_batches(sheets: Sequence[Sheet]) -> list[Item]:
    """Return the items of an annotator's batches; Faults if two batches have the same triple."""
    path_of_triple: dict[Triple, str] = {}
    for sheet in sheets:
        faults = []
        for item in sheet.items:
            other = path_of_triple.setdefault(item.triple, sheet.path)
            if other != sheet.path:
                problem = f"{' '.join(item.triple)!r} is also in {other}"
                faults.append(Fault(item.line, problem, "keep each triple in one batch"))
        if faults:
            raise Faults(sheet.path, faults)
    return [item for sheet in sheets for item in sheet.items]


def merge_sheets(
    judged: Mapping[str, Sequence[Item]], adjudicated: Sheet | None = None, seed: int = 0
) -> Merged:
    """Merge the judgements of annotators, of whom each has a triple at most once.

    Labels that differ are a conflict, also Y or N and "?". Two "?" agree: the label is "?". A
    conflict stays open if the adjudicator's label is blank. Conflicts are in random order.
    """
    votes = group_pairs((item.triple, item) for items in judged.values() for item in items)
    decided = _read_decisions(adjudicated, votes)
    counts = dict.fromkeys(KINDS, 0)
    final, conflicts = [], []
    for triple in sorted(votes, key=itemgetter(1, 0, 2)):
        labelled = [item for item in votes[triple] if item.label]
        kind = _settlement(labelled, triple in decided)
        counts[kind] += 1
        if kind == "conflicts":
            conflicts.append(_blind(labelled))
        elif kind != "blank":
            final.append(_settle(labelled, decided.get(triple)))
    if not final and not conflicts:
        raise InputError("no triple has a label; judge some first (kgtrec judge serve)")
    order = random_generator(seed).permutation(len(conflicts)).tolist()
    return Merged(tuple(final), tuple(conflicts[i] for i in order), counts)


def _settlement(labelled: Sequence[Item], decided: bool) -> str:
    """Return the key of `KINDS` for a triple with these labelled items."""
    if not labelled:
        return "blank"
    if len({item.label for item in labelled}) > 1:
        return "adjudicated" if decided else "conflicts"
    return "agreed" if len(labelled) > 1 else "single"


def _read_decisions(
    adjudicated: Sheet | None, votes: Mapping[Triple, Sequence[Item]]
) -> dict[Triple, Item]:
    """Return the adjudicator's items with a label, by triple.

    Faults if a triple of the adjudicator's sheet is not in conflict.
    """
    if adjudicated is None:
        return {}
    faults = []
    for item in adjudicated.items:
        labels = {vote.label for vote in votes.get(item.triple, ()) if vote.label}
        if len(labels) < 2:
            finding = "annotators do not disagree on" if labels else "no annotator has judged"
            problem = f"{finding} {' '.join(item.triple)!r}"
            faults.append(Fault(item.line, problem, "remove the line: it is not a conflict"))
    if faults:
        raise Faults(adjudicated.path, faults)
    return {item.triple: item for item in adjudicated.items if item.label}


def _settle(labelled: Sequence[Item], decision: Item | None) -> Item:
    """Return the item with its final label, and the evidence and notes that support it."""
    label = labelled[0].label if decision is None else decision.label
    backing = [item for item in labelled if item.label == label]
    if decision is not None:
        backing = [decision, *backing]
    evidence = " ".join(_drop_repeats(item.evidence for item in backing))
    note = " | ".join(_drop_repeats(item.note for item in backing))
    return _combine(labelled, label, evidence, note)


def _blind(labelled: Sequence[Item]) -> Item:
    """Return the item for an adjudicator, who must not see the annotators' labels."""
    links = sorted(_drop_repeats(item.evidence for item in labelled))
    return _combine(labelled, note=f"links given: {' '.join(links)}" if links else "")


def _combine(items: Sequence[Item], label: str = "", evidence: str = "", note: str = "") -> Item:
    """Return one item for items of the same triple, with the first question among them."""
    question = next((item.question for item in items if item.question), "")
    return Item(*items[0].triple, question, label, evidence, note)


def _drop_repeats(texts: Iterable[str]) -> list[str]:
    """Return the distinct texts that are not empty, in their order."""
    return [text for text in dict.fromkeys(texts) if text]
