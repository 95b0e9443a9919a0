"""The public `Graph` and `Questions`: data classes with methods for users."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy.typing as npt

from kgtrec.errors import FilterWarning, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.questions.candidates import restrict, separate
from kgtrec.questions.filters import Filter, split_fields
from kgtrec.questions.questions import QuestionData, column_of_label
from kgtrec.questions.terms import PLURAL


def read_graph(
    folder: str | PathLike[str],
    *,
    format: str | None = None,
    columns: str | None = None,
    progress: bool | None = None,
) -> Graph:
    """Read a graph from a folder of tab-separated files, or in one of many other formats.

    The folder holds at least one of ``train``, ``valid`` (or ``dev``) and ``test``, ending in
    ``.txt``, ``.tsv`` or nothing, optionally packed (``.gz``, ``.zst``). Each line is
    ``head<TAB>relation<TAB>tail``. Labels are unchanged bytes: no quoting, no escapes, no
    stripping, any encoding. LF and CRLF line ends, a missing last line end, empty lines at the end
    and a byte order mark at the start are accepted.

    The format is OpenKE's if every split begins with a line that holds only a number, or if the
    only splits are ``train2id.txt``, ``valid2id.txt`` or ``test2id.txt``. Its lines are head tail
    relation, as numbers; ``entity2id.txt`` and ``relation2id.txt`` hold their labels.

    File names identify LibKGE's, PyKEEN's and OGB's folders, Parquet, Arrow, CSV and N-Triples;
    `kgtrec formats` lists all formats. Declare the others: RotatE's and DGL-KE's dictionaries,
    columns in another order, facts with a time or qualifiers, and inductive benchmarks, which are
    read as their inference graph. As on the command line, a folder may be ``FORMAT:DIR`` or
    ``FORMAT,COLUMNS:DIR``.

    Parameters
    ----------
    folder : str or path-like
        The folder; a folder at a URL (``s3://``, ``gs://``, ``file://``) is copied first.
    format : str, optional
        Name of a format: "rotate", "ilpc", ... By default, file names decide.
    columns : str, optional
        Order of the columns, for formats that do not specify it: "hrt", "htr", ...
    progress : bool, optional
        Draw a progress bar on stderr. Default: only if stderr is a terminal.

    Returns
    -------
    Graph
        Ids are positions in the byte order of the labels over all splits, or in numeric order if
        all are whole numbers. A dictionary beside the splits (``entity2id.txt``, ``entities.txt``,
        ``entities.dict``, ``vocab/*.json``, the sizes in ``stat.txt``) decides instead, unless
        ``tsv:DIR`` declares that the splits are the whole graph. Formats with numbers
        (OpenKE, LibKGE, RotatE, DGL-KE, PyKEEN, OGB) keep them as ids, as models of these programs
        use them.

    Raises
    ------
    FileError
        If a file is missing, unreadable, empty, or has a bad line (the first one is named).
    UsageError
        An unknown format or order of columns.

    Warns
    -----
    GraphWarning
        There is a test split and no train or valid split; a first line names the columns, or looks
        like it; many relations are also entities; labels differ only in blanks, encoding or Unicode
        form; a fifth column is ignored; relations never occur in train; a dictionary has further
        entities, decides the order, repeats a label, or does not fit; numbers as labels have gaps.
    FilterWarning
        The folder has further files of triples, which are not part of the graph.
    """
    return Graph.read(folder, format=format, columns=columns, progress=progress)


@dataclass(frozen=True, eq=False, repr=False)
class Questions(QuestionData):
    """Aggregated questions. `Graph.questions` and `Questions.from_answers` make them.

    Q questions of a graph's split: the head side first, then the tail side, each in order of first
    appearance in the split; or only those for the relation. A question gives a pair and asks for
    the entity or relation that completes it to a triple. An instance is one answer of one question;
    instances are in the order of ``answers.ids`` ("instance order").

    Attributes
    ----------
    graph : Graph
    split : str
        The evaluated split.
    sides : {"head", "tail", "both", "relation", "qualifier"}
    filter_splits : tuple of str
        Splits whose triples count as known.
    n_extra_known : int
        Further known triples: rows of `extra_known`, and triples of the files of `known`.
    side : ndarray of int64, shape (Q,)
        0: the head is asked, the tail is given. 1: the tail is asked, the head is given. 2: the
        relation is asked, head and tail are given. 3: a qualifier's value is asked, the statement
        and the qualifier's relation are given.
    given : pair of ndarray of int32, shape (Q,)
        The given pair: entity and relation, or head and tail, or the statement's number in
        ``graph.statements`` and the relation. Cast to int64 before products such as keys of pairs.
    entity, relation, tail : ndarray of int32, shape (Q,)
        The same by name; questions for the relation have no `relation`, others have no `tail`.
    statement : ndarray of int32, shape (Q, 3)
        Head, relation and tail of the statement. Only questions for a qualifier's value have it;
        they have no `entity`, and `relation` is the qualifier's.
    kind : {"entity", "relation"}
        The kind of candidates; `candidate_labels` has their labels, and `n_labels` their number.
    context : ndarray of int32, shape (Q,), or None
        The number of the question's time in ``graph.contexts``; or the number of its set of
        (other) qualifiers there and in ``graph.qualifiers``.
    answers : Csr
        Entities (or relations) that answer the question in the evaluated split.
    known, removed : Csr
        Those that answer it in any filter split or further known triple (for micro filtering); and
        in one other than the evaluated split, but not there (for macro filtering).
    instance_question, instance_triple : ndarray of int32, shape (n_instances,)
        Question of each instance, and row of its triple in ``graph.splits[split]`` (of a
        qualifier's value, of ``graph.qualifier_facts(split)``); int64 from 2^31 instances on.
    triple_rows : ndarray of int32, shape (n_instances,)
        Instance of each (side, triple): all kept triples in split order with the head asked, then
        all with the tail asked (of a single side, those alone).
    kept : ndarray of int64, shape (n,), or None
        Rows of the split that are evaluated; None: all of them.
    candidate_lists : CandidateLists or None
        Candidate lists, if the candidates are restricted.
    outside : ndarray of bool, shape (n_instances,), or None
        Instances whose answer is not in its list; None if all answers are in their lists.
    full_candidates : ndarray of int64, shape (n_instances,), or None
        `candidates` before the questions got a list each; None if they have none.
    details : dict
        Further facts about filter and restriction, in plain JSON types.
    ids : sequence of str
        Names of the questions.
    origin : GraphTerms or NamedTerms
        Where questions come from, and what they give: a graph, or named answers. Questions made
        from answers have `terms` by name, and no `graph` and given terms (NoGraphError).
    grades : ndarray of int64, shape (n_instances,), or None
        Relevance of each answer, if any are graded.
    answer_terms : dict of str to Term
        Terms of single answers, by name.
    column_of : ndarray of int64, shape (n_labels,), or None
        The column of each entity (or relation) in rows of scores; None: columns go by id.
    """

    @property
    def graph(self) -> Graph:
        """The graph whose split asks the questions."""
        graph = super().graph
        assert isinstance(graph, Graph)  # questions come from `Graph.questions`
        return graph

    @staticmethod
    def from_answers(
        answers: Any,
        known: Any = None,
        *,
        candidates: Any = None,
        labels: Any = None,
        ids: Iterable[str] | None = None,
        terms: Mapping[str, Any] | None = None,
        grades: Any = None,
        level: int = 1,
        known_has_answers: bool = False,
        exclude_query_document: bool = False,
        name: str | None = None,
    ) -> Questions:
        """Make questions without a graph, from answers, known answers and named terms.

        Parameters
        ----------
        answers : mapping, sequence, pair of arrays, path or qrels
            Answers of each question: a mapping of its name to labels or ids of candidates, a list
            of such lists, or arrays (offsets, ids). Or qrels, as a path, a mapping of query to
            mapping of document to relevance, a frame, or columns: a document of relevance `level`
            or more is an answer, with its relevance as its grade; others are ordinary candidates.
            Queries without such a document are left out, with a warning; scores may have rows for
            all queries, whose rows are then not used, or only for the others.
            Or the path of a ``.jsonl`` file with a line ``{"id": ..., "answers": [...]}`` per
            question, and "known", "candidates" and "terms" if need be.
        known : mapping, sequence or pair of arrays, optional
            Further answers of each question, which do not compete with the ranked ones.
        candidates : mapping, sequence or pair of arrays, optional
            The candidates of each question; by default all. Results are labelled as sampled.
        labels : sequence of str, or int
            Labels of the candidates in the order of the columns of scores, or their number.
        ids : iterable of str, optional
            Names of the questions: those of a mapping, or "0", "1", ...; of qrels, which queries
            are asked, in the order of rows of scores.
        terms : mapping of str to sequence, optional
            By name, a text or whole number per question, to slice results by.
        grades : sequence, optional
            The relevance of each answer, a whole number, in the form of the answers.
        level : int, default 1
            Least relevance of an answer in qrels.
        known_has_answers : bool, default False
            Whether `known` may contain the answers.
        exclude_query_document : bool, default False
            For qrels: the document with the name of a query does not compete with its answers. (If
            it is an answer itself, it stays one.)
        name : str, optional
            Name of the data, for reports.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            A question without answers; an answer that is not a candidate, is known, or is repeated;
            a repeated name. The message names question and label; for a file, the line.
        UsageError
            `labels` are missing, or options contradict each other.

        Examples
        --------
        >>> questions = kgtrec.Questions.from_answers(
        ...     {"2p-0": ["Q5"], "2i-0": ["Q7", "Q9"]}, {"2p-0": ["Q7"]},
        ...     labels=["Q5", "Q7", "Q9"], terms={"structure": ["2p", "2i"]},
        ... )
        >>> len(questions), questions.n_instances
        (2, 3)
        """
        from kgtrec.questions import answers as forms

        table = forms.build_table(answers, known, candidates, ids, terms, grades, level)
        if exclude_query_document and "qrels" not in table.origin:
            raise UsageError("exclude_query_document=True needs qrels, whose queries have names")
        numbered = forms.as_labels(labels)
        fields = forms.build_fields(
            table, numbered, known_has_answers, name, exclude_query_document
        )
        return forms.apply_candidates(Questions(**fields), table, numbered)

    def separate(self) -> Questions:
        """Make a question per (side, triple), even if several are equal: each has a single answer.

        Rows of scores are those of ``rows="instances"``. If the evaluated split is in the filter,
        each question knows the answers of its equals, so micro and macro candidates are the same.
        """
        return separate(self)

    def restrict(
        self,
        *,
        entities: npt.ArrayLike | None = None,
        relations: npt.ArrayLike | None = None,
        heads: Mapping[int, npt.ArrayLike] | None = None,
        tails: Mapping[int, npt.ArrayLike] | None = None,
        type_constraints: str | PathLike[str] | None = None,
        candidates: Any = None,
        min_answers: int | None = None,
        columns: str = "entities",
        outside: str = "error",
        unknown: str = "error",
    ) -> Questions:
        """Return the questions with other candidates, or those with enough answers.

        Lists by relation or by question combine with an earlier list of entities: a candidate must
        be in both.

        Parameters
        ----------
        entities : sequence of int, optional
            Entities that are candidates of every question. (To leave out triples with other
            entities as well, give `entities` to `Graph.questions`.)
        relations : sequence of int, optional
            Relations that are candidates of every question for the relation.
        heads, tails : mapping of int to sequence of int, optional
            Candidates by relation for questions for the head and for the tail, such as type
            constraints. Relations without a list keep every entity.
        type_constraints : path, optional
            The same from OpenKE's ``type_constrain.txt``, with ``entity2id.txt`` and
            ``relation2id.txt`` beside it.
        candidates : array of int, shape (Q, m), or sequence of Q sequences, optional
            Candidates of each question, such as its answer and sampled negatives. Results are
            labelled as sampled. Or a mapping with arrays ``head_neg`` and ``tail_neg``, shape
            (triples, m), in split order, as OGB has them: every triple and side becomes a separate
            question (`separate`), and its answer joins its negatives. Or the path of an ``.npz``
            with these arrays, or of a text file with a line ``question<TAB>entity<TAB>...`` per
            question.
        min_answers : int, optional
            Keep the questions with at least so many answers in the evaluated split (Yang et al.
            2022, A.3: 10), and their candidates. Scores have rows for all questions, or only for
            these.
        columns : {"entities", "candidates"}
            The columns of score rows: every entity, in id order, or (with `candidates`, lists of
            one length) a question's own candidates in listed order; with negatives the answer comes
            first.
        outside : {"error", "worst"}
            Treat an answer outside its candidates as an error, or rank it behind them all.
        unknown : {"error", "skip"}
            Treat a label that is not in the graph as an error, or ignore and count it.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            Unknown ids or labels, a wrong number of lists, or an answer outside.
        UsageError
            Not exactly one kind of restriction, or one that cannot combine with an earlier one.
        """
        return restrict(
            self,
            columns,
            outside,
            unknown,
            entities=entities,
            relations=relations,
            heads=heads,
            tails=tails,
            type_constraints=type_constraints,
            candidates=candidates,
            min_answers=min_answers,
        )


class Graph(GraphData):
    """Splits of a knowledge graph. Make one with `read_graph` or `Graph.from_arrays`.

    Attributes
    ----------
    splits : dict of ndarray of int32, shape (n, 3)
        Split name to distinct triples (head, relation, tail), in order of first appearance.
        Read-only arrays, in the order train, valid, test.
    duplicates : dict of int
        Split name to the number of repeated triples that were dropped.
    entities, relations : Labels
        Labels in id order.
    contexts : Labels or None
        Times in id order, if facts have one; or the labels of the sets of qualifiers.
    qualifiers : QualifierSets or None
        The sets of qualifiers by number, if facts have any: ``qualifiers[number]`` has the pairs of
        one set, ids of relation and value; ``offsets`` and ``pairs`` have the pairs of all.
    facts : dict of ndarray of int32, shape (n, 3) or (n, 4)
        The splits, with the time of each fact, or the number of its set of qualifiers. The same
        triple at two times is two facts.
    name : str or None
        Name of the folder that it was read from.
    """

    def questions(
        self,
        split: str = "test",
        sides: str = "both",
        filter_splits: Iterable[str] | None = None,
        extra_known: npt.ArrayLike | None = None,
        *,
        filter: str | Iterable[str] | None = None,
        known: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        unknown: str = "error",
        entities: npt.ArrayLike | None = None,
        relations: npt.ArrayLike | None = None,
        columns: Any = None,
        context: str | None = None,
    ) -> Questions:
        """Return the questions of the triples of a split, with their answers and known entities.

        Parameters
        ----------
        split : str
            The evaluated split: "train", "valid" or "test".
        sides : {"both", "head", "tail", "relation", "qualifier"}
            Which entity is asked for, or "relation": (h, ?, t), ranked among the relations; or
            "qualifier": the values of facts' qualifiers, each given the rest of its fact.
        filter_splits : iterable of str, optional
            Splits whose triples count as known: the long form of `filter`, without protocols (here
            "valid" means only that split). An empty tuple gives raw (unfiltered) ranking.
        extra_known : array-like of int, shape (n, 3), optional
            More triples that count as known; with a context, of shape (n, 4).
        context : {"time", "qualifiers"}, optional
            Required for a graph whose facts have a time or qualifiers: a question has the time, or
            the (other) qualifiers, of its fact. `filter` then says which answers are known. The
            default, "time-aware" or "qualifier-aware", knows only those at that time, or with these
            qualifiers; "static" those at any time, or with any; "raw" none. They come from
            `filter_splits`, by default all, or from splits behind a colon ("time-aware:test", as in
            TGB 2.0; "static:train+valid").
        filter : {"all", "test", "valid", "raw"} or iterable of str, optional
            Which splits' triples count as known, by protocol: "all", the default, is every split;
            "test" is train, valid and test, as when a model is tested; "valid" is train and valid,
            as when a model is chosen on its validation scores; "raw" (or "none") is unfiltered.
            An iterable names splits.
        known : path or sequence of paths, optional
            Files with more triples that count as known, with lines as in a split.
        unknown : {"error", "skip"}
            Treat a label of `known` that is not in the graph as an error, or ignore its triple and
            count it.
        entities, relations : sequence of int, optional
            Evaluate only triples with head and tail among these entities, and relation among these
            relations. The entities are also the candidates (PyKEEN's restriction); of questions for
            the relation, the relations are.
        columns : sequence of str or of int, or mapping of str to int, optional
            The model's own numbering: the label or id of the entity of each score column, or the
            column of each label (`entity_to_id`). By default columns go by id. ``questions.column``
            then has the given entities in the model's numbers. Every entity has one column. For
            questions for the relation, declare relations instead.

        Raises
        ------
        UsageError
            If a split, filter or side does not exist, or a split has no triples.
        InputError
            If `extra_known`, `known`, `entities` or `relations` are malformed, or keep no triple;
            if `columns` repeat or omit an entity, or name one that is not in the graph.

        Warns
        -----
        FilterWarning
            If a split is left out of a filter that is not empty.
        """
        how = Filter(filter, filter_splits, extra_known, known, unknown, context)
        questions = Questions(**split_fields(self, split, sides, how, entities, relations))
        if columns is not None:
            order = column_of_label(columns, questions.candidate_labels, questions.kind)
            questions = replace(questions, column_of=order)
        name = PLURAL[questions.kind]
        subset: dict[str, Any] = {"entities": entities, "relations": relations}
        return questions if subset[name] is None else restrict(questions, **{name: subset[name]})

    def questions_by_filter(
        self,
        filters: Sequence[str | Iterable[str]] = ("raw", "valid", "test"),
        split: str = "test",
        **options: Any,
    ) -> dict[str, Questions]:
        """Return the same questions under several filters, for one pass over the scores.

        Parameters
        ----------
        filters : sequence of str or of iterables of str
            Each as `filter` of `questions`: a protocol or a split, or the names of splits.
        split : str
        **options
            As for `questions`.

        Returns
        -------
        dict of str to Questions
            By the name of the filter; for splits, their names joined by "+". Pass it to
            `kgtrec.rank` or `kgtrec.evaluate` instead of questions.

        Raises
        ------
        UsageError
            No filter, a repeated filter, or what `questions` refuses.
        """
        if isinstance(filters, str):
            filters = [filters]
        by_name: dict[str, Questions] = {}
        for each in filters:
            chosen = each if isinstance(each, str) else tuple(each)
            name = chosen if isinstance(chosen, str) else "+".join(chosen)
            if name in by_name:
                raise UsageError(f"filter {name!r} is given twice; give each filter once")
            with warnings.catch_warnings():
                # Filters have names here, so that nobody mistakes one for another.
                warnings.simplefilter("ignore", FilterWarning)
                by_name[name] = self.questions(split, filter=chosen, **options)
        if not by_name:
            raise UsageError("no filter is given; give some of 'raw', 'valid', 'test' as filters")
        return by_name
