"""Judgements of several annotators: their agreement, one merged judgement, and an audit.

Agreement is a share, and Cohen's kappa [1]_ with its standard error [2]_, per relation if asked.
Merging keeps what annotators agree on and what an adjudicator decides. An audit draws merged labels
for a second look, as many true as false ones, shown blank: Zhou et al. (2022, section 3.2) have an
expert judge a balanced sample again. Most labels are false, so a plain sample would contain few
true ones, and say little about them.

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
from kgtrec._internal.csr import Int64, grouped
from kgtrec._internal.table import Cell, Table
from kgtrec.errors import InputError, UsageError, refuse_if
from kgtrec.study.judging.journal import judged_sheet
from kgtrec.study.judging.sheets import Item, Sheet, Triple, annotator_of
from kgtrec.study.pooling.edited_files import LABELS, Fault, Faults

ALL = "all relations"
_PLACE = {label: place for place, label in enumerate(LABELS)}


@dataclass(frozen=True, eq=False)
class Agreement:
    """Two annotators on the triples that both have judged.

    - relation: Relation of the triples; `ALL` for all relations together.
    - counts, int64 (3, 3): Triples by the first one's label (rows: Y, N, ?) and the second one's.
    """

    first: str
    second: str
    relation: str
    counts: Int64


def cohen(counts: Int64) -> tuple[float, float]:
    """Cohen's kappa and its large-sample standard error, from counts (k, k) of two raters.

    Kappa is 1 for full agreement and 0 for chance agreement. Both are NaN without items, or if
    chance agreement is certain. The error is 0 if kappa is 1, or if one rater has a single
    category, so that kappa could only be 0: neither means certainty.
    """
    n = counts.sum()
    if (
        np.count_nonzero(counts) == np.count_nonzero(np.diag(counts)) < 2
    ):  # no items, or chance is 1
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


def agreements(judged: Mapping[str, Sequence[Item]], by_relation: bool = False) -> list[Agreement]:
    """Agreement of every two annotators who share triples; blank items are ignored.

    Each pair has a value for all relations; with `by_relation`, also one per relation, in byte
    order.
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
            groups |= grouped((triple[1], triple) for triple in sorted(common, key=itemgetter(1)))
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
    counts = np.zeros((len(LABELS), len(LABELS)), np.int64)
    for triple in triples:
        counts[_PLACE[first[triple]], _PLACE[second[triple]]] += 1
    return counts


def table_of_annotators(agreements: Sequence[Agreement]) -> Table:
    """One row per pair of annotators and relation; it shows how often each said Y, N and ?."""
    rows: list[tuple[Cell, ...]] = []
    for one in agreements:
        n = int(one.counts.sum())
        says = ["/".join(map(str, one.counts.sum(axis=axis).tolist())) for axis in (1, 0)]
        share = float(np.trace(one.counts)) / n
        pair = f"{one.first}, {one.second}"
        rows.append((pair, one.relation, n, share, *cohen(one.counts), *says))
    return Table.of(
        "annotators, relation, triples, agreed:3, kappa:3, s.e.=error:3, Y/N/?=first, Y/N/?=second",
        rows,
        names=2,
    )


def audit_sample(items: Iterable[Item], size: int, seed: int = 0) -> list[Item]:
    """A balanced sample of judged triples, for somebody else to judge again."""
    refuse_if(
        (size < 2 or size % 2,
         f"an audit needs an even number of triples, 2 or more; give one (not {size})"),
        (seed < 0, f"seed {seed} is below 0; give 0 or more"),
    )  # fmt: skip
    rng = random_generator(seed)
    chosen: list[Item] = []
    known = sorted(items, key=lambda item: item.triple)
    for label in ("Y", "N"):
        own = [item for item in known if item.label == label]
        if len(own) < size // 2:
            raise UsageError(
                f"{len(own):,} triples are labelled {label}, fewer than the {size // 2:,} to draw; "
                f"ask for at most {2 * len(own):,}"
            )
        places = rng.choice(len(own), size // 2, replace=False)
        chosen += [own[place] for place in places.tolist()]
    order = rng.permutation(len(chosen)).tolist()
    return [replace(chosen[i], label="", evidence="", note="", line=0) for i in order]


KINDS = {
    "agreed": "two or more annotators agree",
    "single": "judged by one annotator",
    "adjudicated": "settled by the adjudicator",
    "conflicts": "in conflict, not settled",
    "blank": "not judged",
}
"""How a triple was settled."""


@dataclass(frozen=True, eq=False)
class Merged:
    """One judgement merged from those of several annotators.

    - final: Triples with a final label: all annotators who judged it agree, or the adjudicator has
      decided. By relation, head and tail. Evidence and notes are from those who gave this label.
    - conflicts: Triples for an adjudicator, without a label. The note contains the links that
      annotators gave, but neither their names nor their labels.
    - counts: Number of triples settled in each way; see `KINDS`.
    """

    final: tuple[Item, ...]
    conflicts: tuple[Item, ...]
    counts: dict[str, int]

    def table(self) -> Table:
        """One row per way of settling, and one per final label."""
        labels = [item.label for item in self.final]
        rows = [(text, self.counts[key]) for key, text in KINDS.items()]
        rows += [(f"label {label}", labels.count(label)) for label in LABELS]
        return Table.of("triples, number", rows)


def by_annotator(paths: Sequence[str], blank: str = "") -> dict[str, list[Item]]:
    """Items of every annotator, from sheets that are named after them, and their journals.

    ``anna.batch1.tsv`` and ``anna.batch2.judged.tsv`` are both by anna.
    """
    places = grouped((annotator_of(path), path) for path in paths)
    items: dict[str, list[Item]] = {}
    for name, files in places.items():
        if len(files) > 1 and not all(".batch" in file for file in files):
            raise UsageError(
                f"{files[0]} and {files[1]} name the same annotator, {name!r}; rename one, or "
                "call parts of this annotator's work NAME.batch1.tsv, NAME.batch2.tsv"
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
                problem = f"{' '.join(item.triple)!r} is also in {other}"
                faults.append(Fault(item.line, problem, "keep each triple in one batch"))
        if faults:
            raise Faults(sheet.path, faults)
    return [item for sheet in sheets for item in sheet.items]


def merge_sheets(
    judged: Mapping[str, Sequence[Item]], adjudicated: Sheet | None = None, seed: int = 0
) -> Merged:
    """Merge the judgements of annotators; each annotator has a triple at most once.

    Labels that differ are a conflict, also Y or N against "?". Two "?" agree: the label is "?".
    Blank decisions of the adjudicator leave the conflict open. Conflicts are in random order.
    """
    votes = grouped((item.triple, item) for items in judged.values() for item in items)
    decided = _decisions(adjudicated, votes)
    counts = dict.fromkeys(KINDS, 0)
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
        raise InputError("no triple has a label; judge some first (kgtrec judge serve)")
    order = random_generator(seed).permutation(len(conflicts)).tolist()
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
            what = "annotators do not disagree on" if labels else "no annotator has judged"
            problem = f"{what} {' '.join(item.triple)!r}"
            faults.append(Fault(item.line, problem, "remove the line: it is not a conflict"))
    if faults:
        raise Faults(adjudicated.path, faults)
    return {item.triple: item for item in adjudicated.items if item.label}


def _settled(labelled: Sequence[Item], decision: Item | None) -> Item:
    label = labelled[0].label if decision is None else decision.label
    backing = [item for item in labelled if item.label == label]
    if decision is not None:
        backing = [decision, *backing]
    evidence = " ".join(_distinct(item.evidence for item in backing))
    note = " | ".join(_distinct(item.note for item in backing))
    return _one_item(labelled, label, evidence, note)


def _blinded(labelled: Sequence[Item]) -> Item:
    links = sorted(_distinct(item.evidence for item in labelled))
    return _one_item(labelled, note=f"links given: {' '.join(links)}" if links else "")


def _one_item(items: Sequence[Item], label: str = "", evidence: str = "", note: str = "") -> Item:
    """The triple of these items, with the first question among them."""
    question = next((item.question for item in items if item.question), "")
    return Item(*items[0].triple, question, label, evidence, note)


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
