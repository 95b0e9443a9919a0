"""References for a gate: the values of a system and their questions, live or saved.

A `Reference` keeps one value per question and measure, for each order of tied answers, and hashes
of the questions. Its file is JSON with a value per line, so that versions of it can be compared
line by line, and with a checksum: a reference that somebody edited is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Array, Float64, Int64
from kgtrec._internal.files import write_text
from kgtrec._internal.structured import parse_json
from kgtrec._internal.table import ShownInLines
from kgtrec.errors import InputError, UsageError, refuse, refuse_if
from kgtrec.graph.id_files import regular_file
from kgtrec.measures.metric import same
from kgtrec.ranking.provenance import Provenance
from kgtrec.ranking.ranks import Ranks
from kgtrec.results.comparability import COMPARED, PARTIAL, provenance_reasons
from kgtrec.study.comparison.samples import (
    Samples,
    align_ranks,
    notes_on_missing,
    parse_item_measures,
    samples_of_aligned,
    samples_of_runs,
    short_name,
)
from kgtrec.trec.files.convert import qrels_columns
from kgtrec.trec.measures.names import resolve
from kgtrec.trec.measures.ties import has_tie_form
from kgtrec.trec.measures.trec_measure import EvalOptions

ORDERS = ("usual", "optimistic", "pessimistic")
"""Orders of tied answers: that of the measure, all answers win their ties, and all lose them."""
FORMAT = "kgtrec gate reference 1"
_AGAIN = "save it again with `kgtrec gate BASE --save FILE`"


@dataclass(frozen=True, eq=False)
class Reference(ShownInLines):
    """Values of one system per question, which `kgtrec.study.gate` accepts as its base.

    - facts: Facts that identify the questions, their answers and candidates; of runs, the
      judgements.
    - orders: The samples of each measure, one item per cluster, in each of `ORDERS`.
    - questions, ranks: Question and realistic rank of every answer; of runs, of every query's first
      relevant document. The rank is inf if it is not listed.
    - ranked: The ranks, which have the labels; None if loaded or of runs.
    - notes: Queries that a run lacks, and measures for which only one order of ties is known.
    """

    facts: dict[str, Any]
    orders: tuple[list[Samples], ...]
    questions: Sequence[str]
    ranks: Float64
    ranked: Ranks | None = None
    notes: tuple[str, ...] = ()

    def _lines(self) -> tuple[str, str]:
        return self.size(), ", ".join(self.measures)

    def size(self) -> str:
        """Return the number of questions, or of queries of a run, in words."""
        return f"{len(set(self.questions)):,} {'queries' if self.is_of_run else 'questions'}"

    @property
    def is_of_run(self) -> bool:
        """True if the values are those of a run with qrels."""
        return "judgements" in self.facts

    @property
    def measures(self) -> list[str]:
        """Keys of the measures."""
        return [samples.name.removeprefix("sampled.") for samples in self.orders[0]]

    @classmethod
    def from_system(
        cls, system: Any, measures: Sequence[str] = ("mrr",), *, qrels: Any = None, name: str = ""
    ) -> Reference:
        """Evaluate a system.

        Parameters
        ----------
        system : Ranks, or path or RunColumns
            Ranks; or, with `qrels`, a run.
        measures : sequence of str
            Measures that are means, such as "mrr", "macro.hits@10", "map_cut_20".
        qrels : path or mapping, optional
            Judgements of the run.
        name : str
            The system's name in messages.

        Raises
        ------
        UsageError
            An unknown measure or one that is not a mean; fewer than two questions.
        """
        keys = [measures] if isinstance(measures, str) else measures
        facts = _facts_of(system, qrels, name)
        if qrels is None:
            reference = _evaluate_ranks(system, keys, name, facts)
        else:
            reference = _evaluate_run(system, keys, name, facts, qrels)
        _check_means(reference.orders[0])
        return reference

    def check_same_questions(
        self, system: Any, qrels: Any = None, names: tuple[str, str] = ("base", "new")
    ) -> None:
        """Raise InputError, with the differences, if a system answers other questions."""
        if self.is_of_run != (qrels is not None):
            kind = "a run; give a run and its" if self.is_of_run else "ranks; give ranks, without"
            raise UsageError(f"{names[0]} has the values of {kind} {argument('qrels')}")
        if reasons := _reasons(self.facts, _facts_of(system, qrels, names[1])):
            raise InputError(
                f"{' and '.join(names)} cannot be compared: {'; '.join(reasons)}; "
                "rank all systems on the same questions"
            )

    def select(self, wanted: Sequence[Samples]) -> tuple[list[Samples], ...]:
        """Return the samples of the measures of other samples, per order of ties.

        UsageError for measures that this reference lacks.
        """
        rows = {samples.name: row for row, samples in enumerate(self.orders[0])}
        sizes = {samples.name: len(samples) for samples in self.orders[0]}
        missing = [each.name for each in wanted if sizes.get(each.name) != len(each)]
        if missing:
            raise UsageError(
                f"the reference has values of {', '.join(self.measures)}, not of "
                f"{', '.join(missing)}; leave out the others, or {_AGAIN}"
            )
        return tuple([order[rows[each.name]] for each in wanted] for order in self.orders)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the reference as JSON."""
        ranks = [rank if math.isfinite(rank) else None for rank in self.ranks.tolist()]
        values = {}
        for several in zip(*self.orders, strict=True):
            columns = np.column_stack([samples.values[:, 0] for samples in several]).tolist()
            rows = [row[0] if len({*row}) == 1 else row for row in columns]
            values[several[0].name] = {"unit": several[0].unit, "values": rows}
        content = {
            "questions": self.facts,
            "ranks": [*map(list, zip(self.questions, ranks, strict=True))],
            "measures": values,
        }
        head = {"format": FORMAT, "checksum": _hash([json.dumps(content).encode()])}
        write_text(path, f"{_dump(head | content)}\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Reference:
        """Read a reference that `save` has written.

        Raises
        ------
        FileError
            Missing, not a reference, or edited.
        """
        with regular_file(path) as local:
            raw = local.read_bytes()
        try:
            content = parse_json(raw)
        except ValueError:
            content = None
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            refuse(path, None, "not a reference of a gate in this version's format", _AGAIN)
        if content.pop("checksum", None) != _hash([json.dumps(content).encode()]):
            refuse(path, None, "it was edited after it was saved: its checksum differs", _AGAIN)
        orders: tuple[list[Samples], ...] = ([], [], [])
        for name, stored in content["measures"].items():
            rows = [row if isinstance(row, list) else [row] * 3 for row in stored["values"]]
            cluster = np.arange(len(rows))
            for order, values in zip(orders, np.array(rows, np.float64).T, strict=True):
                column = values[:, None]
                order.append(Samples(name, name, ("base",), column, cluster, stored["unit"]))
        questions, ranks = zip(*content["ranks"], strict=True)
        known = [math.inf if rank is None else rank for rank in ranks]
        return cls(content["questions"], orders, questions, np.array(known, np.float64))


def _dump(value: Any, indent: str = "") -> str:
    """Return JSON in ASCII, with one line per entry of objects, and of lists of anything but text.

    Such a file is readable, and its versions can be compared line by line.
    """
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {_dump(item, indent + ' ')}" for key, item in value.items()]
        ends = "{}"
    elif isinstance(value, list) and not isinstance(value[0], str):
        lines, ends = [json.dumps(item) for item in value], "[]"
    else:
        return json.dumps(value)
    inner = f",\n{indent} ".join(lines)
    return f"{ends[0]}\n{indent} {inner}\n{indent}{ends[1]}"


def _hash(pieces: Iterable[bytes | Array]) -> str:
    """Return the BLAKE2b hash of the joined pieces, 32 hexadecimal digits."""
    hasher = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        hasher.update(piece)  # type: ignore[arg-type]
    return hasher.hexdigest()


def _facts_of(system: Any, qrels: Any, name: str) -> dict[str, Any]:
    """Return the facts that identify a system's questions, in the types of a loaded file."""
    if qrels is None and not isinstance(system, Ranks):
        raise UsageError(f"{name or 'the system'} is not Ranks; give ranks, or a run and its qrels")
    facts = _facts_of_ranks(system) if qrels is None else _facts_of_qrels(qrels)
    return dict(json.loads(json.dumps(facts)))


def _reasons(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return the reasons why two systems cannot be compared; empty if they can."""
    if "judgements" in ours:
        if ours["queries"] != theirs["queries"]:
            counts = f"{ours['queries']:,} and {theirs['queries']:,}"
            return [f"their qrels have {counts} queries"]
        names = [name for name in ours if ours[name] != theirs[name]]
        return [f"their qrels have other {names[0].replace('_', ' ')}"] if names else []
    sources = (Provenance.from_manifest({"questions": facts["source"]}) for facts in (ours, theirs))
    reasons = provenance_reasons(*sources)
    if not reasons and ours["answers"] != theirs["answers"]:
        reasons.append(PARTIAL)
    elif not reasons and ours["answers_hash"] != theirs["answers_hash"]:
        reasons.append("answers or numbers of candidates differ")
    return reasons


def _check_means(several: Sequence[Samples]) -> None:
    """Raise UsageError for measures without an interval of the mean, and for a single unit."""
    curved = [short_name(samples.name) for samples in several if samples.transform is not same]
    single = [samples.unit for samples in several if len(samples) < 2]
    refuse_if(
        (
            curved,
            f"{', '.join(curved)}: not a plain mean, so a margin has no paired interval; "
            "choose a measure such as mrr or hits@10",
        ),
        (
            single,
            f"a verdict needs two or more {''.join(single[:1])}, not 1; evaluate on more questions",
        ),
    )


# -- Ranks -----------------------------------------------------------------------------------------


def _evaluate_ranks(
    system: Ranks, keys: Sequence[str], name: str, facts: dict[str, Any]
) -> Reference:
    """Compute the measures per question, as ranked, and if answers win or lose all their ties."""
    measures = parse_item_measures(keys)
    (ranks,) = align_ranks({name: system}, least=1).values()
    orders = tuple(
        [samples.by_cluster() for samples in samples_of_aligned({name: order}, measures)]
        for order in (ranks, *ends_of_ties(ranks))
    )
    return Reference(facts, orders, ranks.question_ids, ranks.rank(), ranks)


_PARTS = {
    "subset": ("triples_kept",),
    "predictions": ("n_unlinkable", "unlinkable", "list_order"),
}
"""Facts of which only these entries must be equal; their other entries may differ."""


def _facts_of_ranks(system: Ranks) -> dict[str, Any]:
    """Return origin, number and hash of the answers, which do not depend on their order."""
    (ranks,) = align_ranks({"": system}, least=1).values()
    provenance = ranks.provenance
    source = {name: getattr(provenance, name) for name in COMPARED}
    for name, keys in _PARTS.items():
        source[name] = {key: source[name][key] for key in keys if key in source[name]}
    columns = (ranks.triple, ranks.side, ranks.question, ranks.answer, ranks.candidates)
    return {
        "source": {name: fact for name, fact in source.items() if fact not in (None, False, 0, {})},
        "answers": len(ranks),
        "answers_hash": _hash(np.asarray(column, np.int64).tobytes() for column in columns),
    }


def ends_of_ties(ranks: Ranks) -> tuple[Ranks, Ranks]:
    """Return the ranks without ties: if all answers win their ties, and if all lose them.

    Answers beyond the end of their list get the first and the last possible rank.
    """
    best, worst = ranks.best_and_worst() or (ranks, ranks)
    return _break_ties(best, won=True), _break_ties(worst, won=False)


def _break_ties(ranks: Ranks, *, won: bool) -> Ranks:
    """Return the ranks without ties, which all answers win or lose."""
    columns: dict[str, Any] = ranks.columns()
    before, n_answers = _count_tied_answers(ranks, won=won)
    lost = 0 if won else 1
    columns["greater"] = ranks.greater + lost * ranks.equal
    # Answers of a question that tie have consecutive ranks, before or behind all others.
    beyond = lost * (ranks.macro_equal + 1 - n_answers)
    columns["macro_greater"] = ranks.macro_greater + before + beyond
    for name in ("equal", "tied_ahead", "macro_equal", "macro_tied_ahead"):
        columns[name] = np.zeros_like(columns[name])
    return Ranks(columns, ranks.manifest, ranks.relation_labels, ranks.entity_labels)


def _count_tied_answers(ranks: Ranks, *, won: bool) -> tuple[Int64, Int64]:
    """Count the answers in the tie of each answer: those before it, and all; int64 (n,) each.

    A tie has the answers of a question with the same score. They are ordered by grade: the highest
    first if answers win their ties, else the lowest.
    """
    grade = np.zeros(len(ranks), np.int64) if ranks.grade is None else ranks.grade
    order = np.lexsort((-grade if won else grade, ranks.macro_greater, ranks.question))
    keys = np.stack([ranks.question, ranks.macro_greater])[:, order]
    starts = np.flatnonzero(np.append(True, (np.diff(keys) != 0).any(axis=0)))
    sizes = np.diff(np.append(starts, len(order)))
    before, n_answers = np.empty((2, len(order)), np.int64)
    before[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    n_answers[order] = np.repeat(sizes, sizes)
    return before, n_answers


# -- Runs ------------------------------------------------------------------------------------------


def _evaluate_run(
    run: Any, keys: Sequence[str], name: str, facts: dict[str, Any], qrels: Any
) -> Reference:
    """Compute the measures per query, in trec_eval's order and at both ends of its ties.

    A note names measures whose ends are unknown.
    """
    if of_answers := [key for key in keys if key.startswith("kg_")]:
        raise UsageError(
            f"{', '.join(of_answers)}: a gate of runs has no measures of answers; give ranks, or a "
            "measure such as map_cut_20"
        )

    def evaluate(keys: Sequence[str], ties: str | None = None) -> list[Samples]:
        return samples_of_runs(qrels, {name: run}, keys, ties=ties or "name", least=1)

    usual = evaluate(keys)
    (first,) = evaluate(["recip_rank"])
    tied = [column.key for column in resolve(keys) if has_tie_form(column, EvalOptions())]
    orders = [usual]
    for end in ("max", "min"):
        ends = {each.name: each for each in evaluate(tied, end)} if tied else {}
        orders.append([ends.get(samples.name, samples) for samples in usual])
    with np.errstate(divide="ignore"):
        ranks = 1 / first.values[:, 0]
    notes = notes_on_missing(first.unanswered) + [
        f"{samples.name}: tied documents are only in trec_eval's order, so ties may decide"
        for samples in usual
        if samples.name not in tied
    ]
    return Reference(facts, tuple(orders), first.items, ranks, None, tuple(notes))


def _facts_of_qrels(qrels: Any) -> dict[str, Any]:
    """Return hashes of qrels that do not depend on the order of lines."""
    judged = qrels_columns(qrels).to_dict()
    rows = {query: sorted(judged[query].items()) for query in sorted(judged) if judged[query]}
    return {
        "queries": len(rows),
        "names_of_queries": _hash([json.dumps([*rows]).encode()]),
        "judgements": _hash([json.dumps(rows).encode()]),
    }
