"""Questions from given answers: lists, mappings, offsets with ids, qrels, and JSON lines.

Each form becomes an `AnswerTable`: names, flat lists with their offsets, grades and terms.
`build_fields` turns labels into ids, checks them, and gives the fields of questions.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kgtrec._internal.argument_names import argument
from kgtrec._internal.arrays import Int64
from kgtrec._internal.csr import Csr, contains, distinct, offsets_of, owners, spans, to_csr
from kgtrec._internal.structured import parse_json
from kgtrec.errors import FileError, InputError, PathName, QueryWarning, UsageError
from kgtrec.graph.id_files import lines_of, text_of
from kgtrec.graph.labels import Labels
from kgtrec.graph.tsv import quote_line
from kgtrec.questions.candidates import restrict
from kgtrec.questions.terms import NamedTerms, Term, check_name, first_odd, is_value
from kgtrec.trec.files.columns import QrelsColumns
from kgtrec.trec.files.convert import is_frame, qrels_columns
from kgtrec.trec.files.text import is_path

if TYPE_CHECKING:
    from kgtrec.questions.questions import AnyQuestions

FileLines = tuple[PathName, Sequence[int | None]]
"""A file, and the line of each question; None: unknown."""

_LINE = (
    'write {"id": name, "answers": [label, ...]} per line, and if there are any, "known", '
    '"candidates" and "terms" ({name: text or number}); an answer with a grade or own terms is '
    '{"label": label, "grade": number, name: text or number}'
)
_KEYS = {"id", "answers", "known", "candidates", "terms"}


@dataclass(frozen=True, eq=False)
class Flat:
    """Lists of labels or ids, one per question, concatenated.

    - offsets, int64 (Q + 1,): Start of each list, and the end.
    - items: Labels as an Arrow array of bytes, or ids as int64.
    """

    offsets: Int64
    items: Any

    @classmethod
    def from_value(cls, title: str, value: Any, names: Sequence[str] | None = None) -> Flat:
        """Make it from a list per question, by name or in order, or from (offsets, ids).

        Errors begin with `title`, the name of the argument. `names` are those of the questions.
        """
        if isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "dtype"):
            offsets, items = np.asarray(value[0]), list(value[1])
            whole = offsets.dtype.kind in "iu" and offsets.ndim == 1 and len(offsets) > 1
            if not whole or offsets[0] or (np.diff(offsets) < 0).any() or offsets[-1] != len(items):
                raise InputError(
                    f"the offsets of {title} must rise from 0 to {len(items)}, the number of ids"
                )
        else:
            rows = _list_rows(title, value, names)
            for number, row in enumerate(rows):
                if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
                    raise InputError(f"{title} of question {number} is {row!r}; give a list")
            lists = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]
            offsets, items = offsets_of([*map(len, lists)]), [item for row in lists for item in row]
        if names is not None and len(offsets) != len(names) + 1:
            raise InputError(
                f"{title} has {len(offsets) - 1} lists for {len(names)} questions; give one list "
                "per question"
            )
        return cls(offsets.astype(np.int64), _items(title, items))

    @property
    def owner(self) -> Int64:
        """The question of each item: int64."""
        return owners(self.offsets)

    def select(self, rows: Int64) -> Flat:
        """Return the lists of some questions."""
        import pyarrow as pa

        counts = np.diff(self.offsets)[rows]
        items = spans(self.offsets[:-1][rows], counts)[1]
        is_ids = isinstance(self.items, np.ndarray)
        chosen = self.items[items] if is_ids else self.items.take(pa.array(items))
        return Flat(offsets_of(counts), chosen)

    def item_text(self, item: int) -> Any:
        """Return an item as messages show it."""
        if isinstance(self.items, np.ndarray):
            return int(self.items[item])
        return repr(text_of(self.items[item].as_py()))


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Questions with their answers as labels or ids, before they are checked and numbered.

    - source: The file, and a line (or None) per question, for messages.
    - rows: Row of scores of each question, among `n_rows`; None if no question was left out.
    """

    names: Sequence[str]
    answers: Flat
    known: Flat | None = None
    candidates: Flat | None = None
    grades: Int64 | None = None
    terms: Mapping[str, Term] = field(default_factory=dict)
    answer_terms: Mapping[str, Term] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    source: FileLines | None = None
    rows: Int64 | None = None
    n_rows: int = 0

    def refuse(self, question: int, problem: str, hint: str, item: Any = None) -> InputError:
        """Return the error for a question, or for one of its labels (`item`), with its line."""
        name = self.names[question]
        problem = f"question {name!r} {problem}"
        if self.source is None:
            return InputError(f"{problem}; {hint}")
        path, lines = self.source
        line = _find_qrels_line(path, name, item) if "qrels" in self.origin else lines[question]
        return FileError(path, line, found=problem, hint=hint)


# -- Forms -----------------------------------------------------------------------------------------


def build_table(
    answers: Any, known: Any, candidates: Any, ids: Any, terms: Any, grades: Any, level: int
) -> AnswerTable:
    """Build a table from the arguments of `Questions.from_answers`."""
    if is_path(answers) and ".jsonl" in os.path.basename(str(answers)):
        extra = {"known": known, "candidates": candidates, "ids": ids, "terms": terms}
        wrong = [name for name, value in (*extra.items(), ("grades", grades)) if value is not None]
        if wrong:
            raise UsageError(
                f"{answers} gives {', '.join(wrong)} in its lines; leave these arguments out"
            )
        return read_json_lines(answers)
    names = None if ids is None else [str(name) for name in ids]
    if _is_qrels(answers):
        if grades is not None:
            raise UsageError("the qrels give the grades; leave grades= out")
        table = build_qrels_table(answers, names, level)
    else:
        if isinstance(answers, Mapping):
            if names is not None:
                raise UsageError("the names of the mapping are the ids; leave ids= out")
            names = [str(name) for name in answers]
        flat = Flat.from_value("answers", answers)
        n = len(flat.offsets) - 1
        names = names or [str(number) for number in range(n)]
        if len(names) != n:
            raise InputError(f"{len(names)} ids for {n} questions; give one id per question")
        checked = None if grades is None else _check_grades(grades, names, len(flat.items))
        table = AnswerTable(names, flat, grades=checked)

    def read(title: str, value: Any) -> Flat | None:
        return None if value is None else Flat.from_value(title, value, table.names)

    table = replace(
        table,
        known=read("known", known),
        candidates=read("candidates", candidates),
        terms=_build_terms(terms or {}, len(table.names)),
    )
    return leave_out_unanswered(table) if "qrels" in table.origin else table


def leave_out_unanswered(table: AnswerTable) -> AnswerTable:
    """Leave out the queries of qrels that have no relevant document, with a warning.

    If no query has a relevant document, the table stays as it is, and is refused later.
    """
    is_answered = np.diff(table.answers.offsets) > 0
    rows = np.flatnonzero(is_answered)
    n, n_left = len(table.names), len(table.names) - len(rows)
    if not n_left or not len(rows):
        return table
    first = table.names[int(np.argmin(is_answered))]
    level = table.origin["qrels"]["level"]
    judged = "" if level == 1 else f" of relevance {level} or more"
    verbs = ("has", "is") if n_left == 1 else ("have", "are")
    warnings.warn(
        f"{n_left:,} of {n:,} queries {verbs[0]} no relevant document{judged} and {verbs[1]} left "
        f"out (the first is {first!r}); rows of scores for them may be absent",
        QueryWarning,
        stacklevel=4,
    )
    origin = {"qrels": {**table.origin["qrels"], "without_answers": n_left}}
    return replace(
        table,
        names=[table.names[row] for row in rows.tolist()],
        answers=Flat(offsets_of(np.diff(table.answers.offsets)[rows]), table.answers.items),
        known=None if table.known is None else table.known.select(rows),
        candidates=None if table.candidates is None else table.candidates.select(rows),
        terms={name: term.select(rows) for name, term in table.terms.items()},
        origin={**table.origin, **origin},
        rows=rows,
        n_rows=n,
    )


def _is_qrels(answers: Any) -> bool:
    """Return True for a path, a frame, columns, or a mapping of mappings."""
    if is_path(answers) or is_frame(answers) or isinstance(answers, QrelsColumns):
        return True
    if isinstance(answers, Mapping):
        return any(isinstance(value, Mapping) for value in answers.values())
    return type(answers).__module__.partition(".")[0] in ("polars", "ranx")


def _list_rows(title: str, value: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return a list per question. Those of a mapping are in the order of `names`, if any."""
    if isinstance(value, Mapping):
        if names is None:
            return list(value.values())
        missing = [name for name in map(str, value) if name not in set(names)]
        if missing:
            raise InputError(
                f"{title} has a list for {missing[0]!r}, which is not a question; leave it out"
            )
        by_name = {str(name): items for name, items in value.items()}
        return [by_name.get(name, ()) for name in names]
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise UsageError(
            f"{title} has type {type(value).__name__}; give a mapping of name to labels or ids, "
            "a list of lists, or arrays (offsets, ids)"
        )
    return list(value)


def _items(title: str, items: list[Any]) -> Any:
    """Return ids as int64, or labels as an Arrow array of bytes; InputError for mixed items."""
    if (odd := first_odd(items)) is not None:
        raise InputError(
            f"{title} contains {items[odd]!r:.60}; give only labels, or only whole numbers"
        )
    if not items or not isinstance(items[0], str):
        return np.array(items, np.int64)
    import pyarrow as pa

    return pa.array([i.encode("utf-8", "surrogateescape") for i in items], pa.large_binary())


def _check_grades(grades: Any, names: Sequence[str], n: int) -> Int64:
    """Return the grade of each of n answers: int64, shape (n,); InputError for other values."""
    if not isinstance(grades, np.ndarray):
        rows = _list_rows("grades", grades, names)
        nested = [row if isinstance(row, Iterable) else [row] for row in rows]
        grades = np.array([grade for row in nested for grade in row])
    if grades.ndim != 1 or grades.dtype.kind not in "iu" or len(grades) != n:
        raise InputError(
            f"grades has dtype {grades.dtype} and shape {grades.shape}; give a whole number for "
            f"each of the {n} answers"
        )
    checked: Int64 = grades.astype(np.int64)
    return checked


def _build_terms(terms: Mapping[str, Any], n: int) -> dict[str, Term]:
    """Make a term of the n values of each name; InputError for unsuitable names or values."""
    return {check_name(name): Term.from_values(name, values, n) for name, values in terms.items()}


def build_qrels_table(
    qrels: Any, names: Sequence[str] | None = None, level: int = 1
) -> AnswerTable:
    """Build a table whose answers are the documents of relevance `level` or more.

    It has the named queries, or all queries in the order of the qrels.
    """
    import pyarrow as pa

    columns = qrels_columns(qrels)
    number_of = {query: number for number, query in enumerate(columns.queries)}
    chosen = list(columns.queries) if names is None else list(names)
    numbers = np.array([number_of.get(name, -1) for name in chosen], np.int64)
    counts = np.where(numbers < 0, 0, np.diff(columns.offsets)[numbers])
    rows = spans(columns.offsets[:-1][numbers], counts)[1]
    relevant = columns.relevance[rows] >= level
    owner = np.repeat(np.arange(len(chosen)), counts)[relevant]
    rows = rows[relevant]
    offsets = np.searchsorted(owner, np.arange(len(chosen) + 1)).astype(np.int64)
    flat = Flat(offsets, columns.documents.take(pa.array(rows)))
    file = {"file": str(qrels)} if is_path(qrels) else {}
    left = len(columns.queries) - int((numbers >= 0).sum())
    below = int((~relevant).sum())
    facts = {"level": level, "queries_not_asked": left, "judged_below": below}
    origin = {"qrels": {**file, **facts}}
    grades, source = columns.relevance[rows], (qrels, ()) if file else None
    return AnswerTable(chosen, flat, grades=grades, origin=origin, source=source)


def _find_qrels_line(path: PathName, query: str, document: Any) -> int | None:
    """Return the first line of a query, or of its document if that is not None; None: no line."""
    for line, text in lines_of(path):
        name, _, label, *_ = [*text.split(), b"", b"", b""]
        if name == query.encode("utf-8", "surrogateescape") and document in (None, label):
            return line
    return None


def read_json_lines(path: PathName) -> AnswerTable:
    """Read questions from a file with a JSON object per line."""
    rows: list[tuple[int, dict[str, Any]]] = []
    for line, text in lines_of(path):
        rows.append((line, _parse_line(path, line, text, rows[0] if rows else None)))
    if not rows:
        raise FileError(path, found="no questions: the file is empty", hint=_LINE)
    records = [record for _, record in rows]
    answers = [(line, answer) for line, record in rows for answer in record["answers"]]
    expected = {name for _, answer in answers for name in answer}
    for line, answer in answers:
        if missing := sorted(expected - {"grade"} - answer.keys()):
            problem = f"answer {answer['label']!r} has no {missing[0]!r}, but other answers do"
            raise FileError(path, line, found=problem, hint=_LINE)

    def from_answers(name: str, *default: Any) -> list[Any]:
        return [answer.get(name, *default) for _, answer in answers]

    def from_records(name: str) -> list[Any]:
        return [record.get(name) or [] for record in records]

    table = build_table(
        [[answer["label"] for answer in row] for row in from_records("answers")],
        from_records("known") if any(from_records("known")) else None,
        from_records("candidates") if "candidates" in records[0] else None,
        from_records("id"),
        {
            name: [record["terms"][name] for record in records]
            for name in records[0].get("terms", {})
        },
        np.array(from_answers("grade", 1)) if "grade" in expected else None,
        1,
    )
    names = [name for name in answers[0][1] if name not in ("label", "grade")] if answers else []
    return replace(
        table,
        answer_terms=_build_terms({name: from_answers(name) for name in names}, len(answers)),
        origin={"file": str(path)},
        source=(path, [line for line, _ in rows]),
    )


def _parse_line(
    path: PathName, line: int, text: bytes, first: tuple[int, Any] | None
) -> dict[str, Any]:
    """Parse a line of JSON. Return it with each answer as an object; FileError for bad lines.

    - first: Number and content of the first line, whose terms and kinds of lists all must have.
    """
    try:
        record = parse_json(text)
    except ValueError as error:
        problem = f"{quote_line(text)} is not JSON ({error})"
        raise FileError(path, line, found=problem, hint=_LINE) from None
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        problem = f"{quote_line(text)} is not a question with an id"
        raise FileError(path, line, found=problem, hint=_LINE)
    problem = _find_problem(record) or _find_answer_problem(record)
    if not problem and first is not None and ("candidates" in record) != ("candidates" in first[1]):
        here, there = ("", "no ") if "candidates" in record else ("no ", "")
        problem = f"{here}candidates, but line {first[0]} has {there}candidates"
    if problem := problem or _find_term_problem(record.get("terms", {}), first):
        raise FileError(path, line, found=problem, hint=_LINE)
    answers = [item if isinstance(item, dict) else {"label": item} for item in record["answers"]]
    return record | {"answers": answers}


def _find_problem(record: dict[str, Any]) -> str:
    """Say what is wrong with the keys, the id or the lists of a question; "" if nothing is."""
    if unknown := set(record) - _KEYS:
        return f"an unknown key {min(unknown)!r}"
    if not is_value(record["id"]):
        return f"the id {record['id']!r} is not valid text"
    for name in ("answers", "known", "candidates"):
        if not isinstance(record.get(name, []), list):
            return f"{name} is {record[name]!r:.60}, not a list"
        for item in record.get(name, []):
            if not (is_value(item) or (name == "answers" and isinstance(item, dict))):
                return f"{name} contains {item!r:.60}, not a label"
    return "" if "answers" in record else "a question without answers"


def _find_answer_problem(record: dict[str, Any]) -> str:
    """Say what is wrong with the answers of a question that are objects; "" if nothing is."""
    for answer in record["answers"]:
        if not isinstance(answer, dict):
            continue
        has_grade = type(answer.get("grade", 1)) is int
        if "label" not in answer or not has_grade or not all(map(is_value, answer.values())):
            return f"{json.dumps(answer):.60} is not an answer"
    return ""


def _find_term_problem(terms: Any, first: tuple[int, Any] | None) -> str:
    """Say how the terms of a question differ from those of the first line; "" if they fit."""
    expected = terms if first is None else first[1].get("terms", {})
    if not isinstance(terms, dict) or set(terms) != set(expected):
        where = f", but line {first[0]} has {', '.join(expected) or 'none'}" if first else ""
        shown = ", ".join(terms) if isinstance(terms, dict) and terms else repr(terms)
        return f"the terms {shown}{where}"
    for name, value in terms.items():
        same = first is None or type(value) is type(expected[name])
        if not is_value(value) or not same:
            other = "" if same or first is None else f", but {expected[name]!r} in line {first[0]}"
            return f"the term {name!r} is {value!r}{other}"
    return ""


# -- Questions -------------------------------------------------------------------------------------


def build_fields(
    table: AnswerTable,
    labels: Labels,
    known_has_answers: bool,
    name: str | None,
    exclude_query_document: bool = False,
) -> dict[str, Any]:
    """Check a table, number its labels, and return the fields of `Questions`.

    `Questions.from_answers` describes the errors.
    """
    _check_names(table)
    n, n_questions = len(labels), len(table.names)
    keys, order = _number_answers(table, labels)
    known = _number_known(table, labels, keys, known_has_answers)
    queries = _queries_among(labels, table.names) if "qrels" in table.origin else None
    if queries is not None and exclude_query_document:
        pairs = np.flatnonzero(queries >= 0)
        excluded = pairs * n + queries[pairs]
        _warn_of_own_answers(table.names, pairs[contains(keys, excluded)])
        known = distinct([known, excluded])
    removed = to_csr(known[~contains(keys, known)], n_questions, n)
    if queries is not None and not exclude_query_document:
        _warn_of_queries_among(queries, table.names)
    origin = {**({"name": name} if name else {}), **table.origin}
    return {
        "origin": NamedTerms(
            list(table.names), table.terms, labels, origin, table.rows, table.n_rows
        ),
        "answers": Csr(table.answers.offsets, (keys % n).astype(np.int32)),
        "known": to_csr(distinct([known, keys]), n_questions, n),
        "removed": removed,
        "instance_question": table.answers.owner,
        "instance_triple": np.arange(len(keys)),
        "triple_rows": np.arange(len(keys)),
        "grades": None if table.grades is None else table.grades[order],
        "answer_terms": {name: term.select(order) for name, term in table.answer_terms.items()},
    }


def _number_answers(table: AnswerTable, labels: Labels) -> tuple[Int64, Int64]:
    """Return the keys (question, answer) in ascending order, and the item of each in the table.

    An error for a question without answers, an unknown answer, or a repeated one.
    """
    answers = table.answers
    empty = np.flatnonzero(np.diff(answers.offsets) == 0)
    if len(empty):
        hint = "give it one, or leave it out"
        if "qrels" in table.origin:
            level = table.origin["qrels"]["level"]
            hint = f"no document of any query is judged {level} or more; lower the level"
        raise table.refuse(int(empty[0]), "has no answers", hint)
    keys = answers.owner * len(labels) + _ids(table.refuse, answers, labels, "answer")
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        item = int(order[again[0] + 1])
        question = int(answers.owner[item])
        raise table.refuse(
            question, f"has the answer {answers.item_text(item)} twice", "give each answer once"
        )
    return keys, order


def _number_known(
    table: AnswerTable, labels: Labels, answer_keys: Int64, known_has_answers: bool
) -> Int64:
    """Return the distinct keys (question, known answer), ascending.

    An error for unknown labels, and for answers unless `known_has_answers`.
    """
    if table.known is None:
        return np.empty(0, np.int64)
    ids = _ids(table.refuse, table.known, labels, "known answer")
    known = distinct([table.known.owner * len(labels) + ids])
    both = np.flatnonzero(contains(known, answer_keys))
    if len(both) and not known_has_answers:
        question, answer = divmod(int(answer_keys[both[0]]), len(labels))
        raise table.refuse(
            question,
            f"has the answer {labels[answer]!r}, which is also known",
            f"leave it out of known, or pass {argument('known_has_answers', True)} if "
            "known contains the answers",
        )
    return known


def _queries_among(labels: Labels, names: Sequence[str]) -> Int64:
    """Find the document with the name of each query: int64, shape (Q,); -1 if there is none."""
    import pyarrow as pa

    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    return labels.positions(pa.array(raw, pa.large_binary()))


def _warn_of_own_answers(names: Sequence[str], queries: Int64) -> None:
    """Warn of queries whose own document is judged relevant, so that it stays an answer."""
    if len(queries):
        verbs = "is its" if len(queries) == 1 else "are their"
        warnings.warn(
            f"{len(queries):,} of {len(names):,} queries {verbs} own relevant document (the first "
            f"is {names[int(queries[0])]!r}); it stays an answer, because the qrels say so",
            QueryWarning,
            stacklevel=2,
        )


def _warn_of_queries_among(documents: Int64, names: Sequence[str]) -> None:
    """Warn if most queries are documents as well, as in entity search.

    Names that are numbers do not count, because they may number both.
    """
    is_document = (documents >= 0) & ~np.array([name.isdecimal() for name in names], bool)
    n = int(is_document.sum())
    if 2 * n > len(names):
        first = names[int(np.argmax(is_document))]
        text = (
            f"{n:,} of {len(names):,} queries are also documents and compete with their answers "
            f"(the first is {first!r}). If a query must not find itself, pass "
            f"{argument('exclude_query_document', True)}"
        )
        warnings.warn(QueryWarning(text), stacklevel=2)


def _check_names(table: AnswerTable) -> None:
    """Raise the error for the first name that is repeated or that a run cannot contain."""
    seen: dict[str, int] = {}
    for number, name in enumerate(table.names):
        if not name or name.split() != [name] or not is_value(name):
            raise table.refuse(number, "has a name that is empty or has white space", "rename it")
        if name in seen:
            before = (
                "" if table.source is None else f" (first in line {table.source[1][seen[name]]})"
            )
            raise table.refuse(number, f"is repeated{before}", "give each question its own name")
        seen[name] = number
    if not table.names:
        raise InputError("there are no questions; give at least one")


def _ids(refuse: Callable[..., InputError], flat: Flat, labels: Labels, noun: str) -> Int64:
    """Return the ids of the items: int64. The error names the first that is not a candidate.

    - noun: What the items are, for the error.
    """
    if isinstance(flat.items, np.ndarray):
        ids: Int64 = np.where((flat.items < 0) | (flat.items >= len(labels)), -1, flat.items)
        among = f"is not an id below {len(labels):,}"
    else:
        ids = labels.positions(flat.items)
        if (ids < 0).any() and labels.docnos is not labels:
            ids = np.where(ids < 0, labels.docnos.positions(flat.items), ids)
        among = f"is not one of the {len(labels):,} candidates"
    wrong = np.flatnonzero(ids < 0)
    if len(wrong):
        item = int(wrong[0])
        more = f" ({len(wrong):,} such in all)" if len(wrong) > 1 else ""
        hint = "labels must match those of the candidates byte for byte"
        problem = f"has the {noun} {flat.item_text(item)}, which {among}{more}"
        label = flat.items[item] if isinstance(flat.items, np.ndarray) else flat.items[item].as_py()
        raise refuse(int(flat.owner[item]), problem, hint, label)
    return ids


def apply_candidates(questions: AnyQuestions, table: AnswerTable, labels: Labels) -> AnyQuestions:
    """Restrict questions to the candidates of the table, if it has any."""
    if (flat := table.candidates) is None:
        return questions
    lists = np.split(_ids(table.refuse, flat, labels, "candidate"), flat.offsets[1:-1])
    for number, candidates in enumerate(lists):
        outside = np.setdiff1d(questions.answers[number], candidates)
        if len(outside):
            answer = labels[int(outside[0])]
            problem = f"has the answer {answer!r}, which is not among its candidates"
            raise table.refuse(number, problem, "add it to its candidates")
    return restrict(questions, candidates=lists)


def as_labels(labels: Any) -> Labels:
    """Return the labels of candidates from a list or their number; UsageError without either."""
    if isinstance(labels, Labels):
        return labels
    if labels is None:
        raise UsageError(
            f"{argument('labels')} is missing: give the labels of the candidates in the order of "
            "the scores' "
            "columns, or the number of candidates"
        )
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        if labels < 1:
            raise UsageError(f"{argument('labels', labels)}; give at least one candidate")
        return Labels.decimal(int(labels))
    return Labels.from_strings(list(labels))
