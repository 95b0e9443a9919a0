"""Judgements of several annotators: their agreement, one merged judgement, and an audit.

Agreement is a share and three coefficients (`coefficients`), optionally per relation. Merging keeps
the labels on which annotators agree, and the decisions of an adjudicator. An audit draws merged
triples to be judged again without their labels, half of them true and half false, as Zhou et al.
(2022, section 3.2) do. Most labels are false, so a plain sample would contain few true triples and
say little about them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from textwrap import fill

import numpy as np

from kgtrec._internal.arguments import random_generator
from kgtrec._internal.arrays import Int64
from kgtrec._internal.bootstrap import Resampling
from kgtrec._internal.csr import group_pairs
from kgtrec._internal.table import WIDTH, Cell, Table
from kgtrec.errors import InputError, UsageError, refuse_if
from kgtrec.study.judging.coefficients import (
    coefficient_interval,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from kgtrec.study.judging.journal import read_judged_sheet
from kgtrec.study.judging.sheets import Item, Sheet, Triple, annotator_of
from kgtrec.study.pooling.edited_files import LABELS, Fault, Faults

ALL = "all relations"
_INDEX = {label: index for index, label in enumerate(LABELS)}
"""Row or column of each label in counts."""
PREVALENT = 0.9
"""Share of all labels above which one label is nearly the only one."""
MASKED = 0.2
"""How much lower than AC1 a kappa is that says little."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The labels of annotators for the triples that two or more of them have judged.

    - annotators: Names of the annotators: a pair, or all of them.
    - relation: Relation of the triples; `ALL` for all relations together.
    - labels, int64 (n_triples, n_annotators): Index of each annotator's label in `LABELS`; -1
      without a label.
    """

    annotators: tuple[str, ...]
    relation: str
    labels: Int64

    def __len__(self) -> int:
        return len(self.labels)

    def count_pairs(self) -> Int64:
        """Count the triples of a pair by the first (rows) and the second label, int64 (3, 3)."""
        size = len(LABELS)
        cells = self.labels[:, 0] * size + self.labels[:, 1]
        return np.bincount(cells, minlength=size**2).reshape(size, size)

    def count_labels(self) -> Int64:
        """Count the annotators who gave each label of `LABELS` to each triple, (n_triples, 3)."""
        return (self.labels[:, :, None] == np.arange(len(LABELS))).sum(axis=1)

    def share(self) -> float:
        """Return the mean over triples of the share of pairs of annotators who agree."""
        counts = self.count_labels()
        size = counts.sum(axis=1)
        agreed = (counts * (counts - 1)).sum(axis=1)
        return float((agreed / (size * (size - 1))).mean())

    def count_categories(self) -> Int64:
        """Return `count_labels` without the column of "?" if no annotator chose it."""
        counts = self.count_labels()
        return counts if counts[:, _INDEX["?"]].any() else counts[:, : _INDEX["?"]]

    def is_masked(self) -> bool:
        """Return True if kappa and alpha are low only because nearly all labels are equal.

        That is, one label has `PREVALENT` of all labels, and AC1 is higher than kappa, or for
        several annotators alpha, by `MASKED` or more.
        """
        totals, categories = self.count_labels().sum(axis=0), self.count_categories()
        low = float(krippendorff_alpha(categories, np.ones((1, len(self)), np.int64))[0])
        if len(self.annotators) == 2:
            low = cohen_kappa(self.count_pairs())[0]
        high = float(gwet_ac1(categories, np.ones((1, len(self)), np.int64))[0])
        return bool(totals.max() >= PREVALENT * totals.sum()) and high - low >= MASKED


def compute_agreements(
    judged: Mapping[str, Sequence[Item]], by_relation: bool = False
) -> list[Agreement]:
    """Compare the labels of annotators who share triples; ignore blank items.

    Each pair of annotators has an `Agreement` over all relations. Three or more annotators also
    have one together. With `by_relation`, each has one more per relation, in byte order.
    """
    labels: dict[str, dict[Triple, int]] = {
        name: {item.triple: _INDEX[item.label] for item in items if item.label}
        for name, items in judged.items()
    }
    groups = [*combinations(labels, 2), *([tuple(labels)] if len(labels) > 2 else [])]
    results = [
        agreement
        for names in groups
        for agreement in _compare_annotators({name: labels[name] for name in names}, by_relation)
    ]
    if not results:
        raise InputError(
            "no triple was judged by two annotators, so no agreement can be computed; give "
            "labelled sheets of two or more"
        )
    return results


def _compare_annotators(
    labels: Mapping[str, Mapping[Triple, int]], by_relation: bool
) -> list[Agreement]:
    """Return the agreements of these annotators; none if no two have judged the same triple."""
    n_judges = Counter(triple for known in labels.values() for triple in known)
    common = sorted(triple for triple, n in n_judges.items() if n > 1)
    if not common:
        return []
    groups = {ALL: common}
    if by_relation:
        groups |= group_pairs((triple[1], triple) for triple in sorted(common, key=itemgetter(1)))
    return [
        Agreement(
            tuple(labels),
            name,
            np.array([[known.get(triple, -1) for known in labels.values()] for triple in triples]),
        )
        for name, triples in groups.items()
    ]


def tabulate_agreements(
    agreements: Sequence[Agreement], resampling: Resampling | None = None
) -> Table:
    """Return a table with one row per pair of annotators and relation, and rows for all together.

    Kappa, and how often each annotator answered Y, N and ?, are only for pairs. Intervals of alpha
    and AC1 resample triples, by default 2,000 times.
    """
    how = resampling or Resampling()
    rows: list[tuple[Cell, ...]] = []
    for agreement in agreements:
        row: list[Cell] = [len(agreement), agreement.share()]
        row += _cells_of_pair(agreement) if len(agreement.annotators) == 2 else _NO_PAIR
        row.append(_join_counts(agreement.count_labels().sum(axis=0)))
        categories = agreement.count_categories()
        for coefficient in (krippendorff_alpha, gwet_ac1):
            row += coefficient_interval(coefficient, categories, how)
        rows.append((_name_annotators(agreement), agreement.relation, *row))
    heads = "annotators, relation, triples, agreed:3, kappa:3, s.e.=error:3, Y/N/?=first, "
    heads += "Y/N/?=second, Y/N/?=labels"
    columns = [head.strip() for head in heads.split(",")]
    for name, key in (("alpha", "alpha"), ("AC1", "ac1")):
        columns += [f"{name}={key}:3", *how.columns(3, f"{key}_")]
    return Table.from_rows(columns, rows, names=2)


_NO_PAIR: tuple[Cell, ...] = (math.nan, math.nan, "", "")


def _cells_of_pair(agreement: Agreement) -> tuple[Cell, ...]:
    """Return kappa, its error, and the counts of both annotators' labels."""
    counts = agreement.count_pairs()
    return *cohen_kappa(counts), _join_counts(counts.sum(axis=1)), _join_counts(counts.sum(axis=0))


def _join_counts(counts: Int64) -> str:
    """Join counts by slashes."""
    return "/".join(map(str, counts.tolist()))


def _name_annotators(agreement: Agreement) -> str:
    """Return the names of two annotators, or the number of more."""
    names = agreement.annotators
    return ", ".join(names) if len(names) == 2 else f"all {len(names)}"


def describe_agreements(agreements: Sequence[Agreement], table: Table, width: int = WIDTH) -> str:
    """Return the table as two: kappa of every pair; alpha and AC1 of pairs and of all together.

    Names lose their middle if a line would exceed `width`. A sentence follows if kappa and alpha
    are low only because nearly all labels are equal.
    """
    pairs = [row for row, of_row in enumerate(agreements) if len(of_row.annotators) == 2]
    kappas = select_columns(table, range(8)).in_order(pairs)
    others = select_columns(table, [*range(4), *range(9, 15)])
    texts = [each.to_text(width) for each in (kappas, others)]
    masked = [
        agreement for agreement in agreements if agreement.relation == ALL and agreement.is_masked()
    ]
    if masked:
        names = "; ".join(map(_name_annotators, masked))
        totals = masked[0].count_labels().sum(axis=0)
        label, share = [*LABELS][int(totals.argmax())], float(totals.max() / totals.sum())
        texts.append(
            fill(
                f"Kappa and alpha are low although annotators agree ({names}): {share:.1%} of the "
                f"labels are {label}, so chance alone would give much agreement. Report AC1 and "
                "the share beside them.",
                80,
            )
        )
    return "\n\n".join(texts)


def select_columns(table: Table, columns: Iterable[int]) -> Table:
    """Return a table of only these columns, by number."""
    chosen = list(columns)
    return Table(
        [table.titles[i] for i in chosen],
        [table.keys[i] for i in chosen],
        [table.digits[i] for i in chosen],
        [tuple(row[i] for i in chosen) for row in table.rows],
        table.names,
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
        return Table.from_rows("triples, number", rows)


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
