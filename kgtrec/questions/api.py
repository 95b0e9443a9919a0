"""The public `Graph` and `Questions`: data classes with what is asked of them in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy.typing as npt

from kgtrec.errors import FilterWarning, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.questions import answers as own
from kgtrec.questions import candidates as lists
from kgtrec.questions.filters import Filter, build_questions
from kgtrec.questions.questions import QuestionData


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
    ``head<TAB>relation<TAB>tail``. Labels are bytes taken as they are: no quoting, no escapes, no
    stripping, any encoding. LF and CRLF line ends, a missing last line end, empty lines at the
    end and a byte order mark at the start are accepted.

    Where every split begins with a line that holds a number alone, or none is there but
    ``train2id.txt``, ``valid2id.txt`` or ``test2id.txt`` are, it is OpenKE's format: lines are head
    tail relation, as numbers, and ``entity2id.txt`` and ``relation2id.txt`` hold their labels.

    LibKGE's, PyKEEN's and OGB's folders, Parquet, Arrow, CSV and N-Triples are known by their file
    names; `kgtrec formats` lists all formats. Where files do not say what they are, it is declared:
    RotatE's and DGL-KE's dictionaries, columns in another order, facts with a time or qualifiers,
    and inductive benchmarks, whose inference graph is asked. On the command line, and here too, a
    folder may be ``FORMAT:DIR`` or ``FORMAT,COLUMNS:DIR``.

    Parameters
    ----------
    folder : str or path-like
        The folder; at a URL (``s3://``, ``gs://``, ``file://``) all of it is copied first.
    format : str, optional
        Name of a format: "rotate", "ilpc", ... By default what the file names say.
    columns : str, optional
        What stands in the columns, for formats that do not say it: "hrt", "htr", ...
    progress : bool, optional
        Draw a progress bar on stderr. Default: only if stderr is a terminal.

    Returns
    -------
    Graph
        Ids are positions in the byte order of the labels over all splits. From formats with numbers
        of their own (OpenKE, LibKGE, RotatE, DGL-KE, PyKEEN, OGB) they are those, as models of
        these programs have them.

    Raises
    ------
    FileError
        If a file is missing, unreadable, empty, or has a bad line (the first one is named).
    UsageError
        An unknown format or order of columns.

    Warns
    -----
    GraphWarning
        There is a test split and no train or valid split; a relation is in first lines and nowhere
        else, as headings are; relations of valid or test are never in train.
    """
    return Graph.read(folder, format=format, columns=columns, progress=progress)


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
        one, ids of relation and value; ``offsets`` and ``pairs`` those of all.
    facts : dict of ndarray of int32, shape (n, 3) or (n, 4)
        The splits, with the time of each fact, or the number of its set of qualifiers; then the
        same triple at two times is two facts.
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
        """Questions that the triples of a split ask, with their answers and known entities.

        Parameters
        ----------
        split : str
            The evaluated split: "train", "valid" or "test".
        sides : {"both", "head", "tail", "relation", "qualifier"}
            Which entity is asked for, or "relation": (h, ?, t), ranked among the relations; or
            "qualifier": the values of facts' qualifiers, each given the rest of its fact.
        filter_splits : iterable of str, optional
            Splits whose triples count as known, one by one: the long form of `filter`, which
            knows no protocols (here "valid" is that split alone). An empty tuple gives raw
            (unfiltered) ranking.
        extra_known : array-like of int, shape (n, 3), optional
            More triples that count as known; with a context, of shape (n, 4).
        context : {"time", "qualifiers"}, optional
            Of a graph whose facts have a time or qualifiers, and needed there: a question is asked
            at the time, or with the (other) qualifiers, of its fact. `filter` then says what is
            known: "time-aware" or "qualifier-aware", the default, answers at that time, or with
            these qualifiers, alone; "static" those at any time, or with any; "raw" none; from
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
            A triple of `known` with a label that the graph lacks: an error, or passed over and
            counted.
        entities, relations : sequence of int, optional
            Evaluate only triples with head and tail among these entities, and a relation among
            these; the entities are also the candidates (PyKEEN's restriction), of questions for
            the relation the relations.
        columns : sequence of str or of int, or mapping of str to int, optional
            The model's own numbering: the label or id of the entity of each score column, or the
            column of each label (`entity_to_id`). By default columns go by id. What is given is
            then ``questions.column`` in the model's numbers. Every entity has one column. Of
            questions for the relation, the same of relations.

        Raises
        ------
        UsageError
            On a split, filter or side that does not exist, or a split without triples.
        InputError
            If `extra_known`, `known`, `entities` or `relations` are malformed, or keep no triple;
            if `columns` name an entity twice, not at all, or one that the graph lacks.

        Warns
        -----
        FilterWarning
            If a split is left out of a filter that is not empty.
        """
        how = Filter(filter, filter_splits, extra_known, known, unknown, context)
        return build_questions(Questions, self, split, sides, how, entities, relations, columns)

    def questions_by_filter(
        self,
        filters: Sequence[str | Iterable[str]] = ("raw", "valid", "test"),
        split: str = "test",
        **options: Any,
    ) -> dict[str, Questions]:
        """The same questions under several filters, which one pass over the scores ranks.

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
            By the name of the filter; of splits, their names with "+" between them. `kgtrec.rank`
            and `kgtrec.evaluate` take it in place of questions.

        Raises
        ------
        UsageError
            No filter, one that stands twice, or what `questions` refuses.
        """
        if isinstance(filters, str):
            filters = [filters]
        by_name: dict[str, Questions] = {}
        for each in filters:
            chosen = each if isinstance(each, str) else tuple(each)
            name = chosen if isinstance(chosen, str) else "+".join(chosen)
            if name in by_name:
                raise UsageError(f"filter {name!r} stands twice in filters; name each once")
            with warnings.catch_warnings():
                # Side by side and by name, nobody takes one filter for another.
                warnings.simplefilter("ignore", FilterWarning)
                by_name[name] = self.questions(split, filter=chosen, **options)
        if not by_name:
            raise UsageError("filters names no filter; give some of 'raw', 'valid', 'test'")
        return by_name


@dataclass(frozen=True, eq=False, repr=False)
class Questions(QuestionData):
    """Aggregated questions. Made by `Graph.questions`, or by `Questions.from_answers`.

    Q questions of a graph's split: the head side first, then the tail side, each in order of first
    appearance in the split; or those for the relation alone. A question gives a pair, and asks for
    what completes it to a triple: an entity, or a relation. An instance is one answer of one
    question; instances stand in the order of ``answers.ids`` ("instance order").

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
        ``graph.statements`` and the relation; int64 before products such as keys of pairs.
    entity, relation, tail : ndarray of int32, shape (Q,)
        The same by name; questions for the relation have no `relation`, others no `tail`.
    statement : ndarray of int32, shape (Q, 3)
        Head, relation and tail of the statement, of questions for a qualifier's value alone, which
        have no `entity`; `relation` is the qualifier's.
    kind : {"entity", "relation"}
        What candidates are; `candidate_labels` has their labels, and `n_labels` says how many.
    context : ndarray of int32, shape (Q,), or None
        The time at which it is asked, by its place in ``graph.contexts``, or the set of (other)
        qualifiers with which, by its place there and in ``graph.qualifiers``.
    answers : Csr
        Entities (or relations) that answer the question in the evaluated split.
    known : Csr
        Those that answer it in any filter split or further known triple (micro filtering).
    removed : Csr
        Those that answer it in a filter split other than the evaluated one, or in a further
        known triple, but not in the evaluated split (macro filtering).
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
        Instances whose answer is not in its list; None if there is no such instance.
    full_candidates : ndarray of int64, shape (n_instances,), or None
        Micro candidates of each instance before it was given a list of its own to be ranked
        among, its answer included; None if it was not.
    details : dict
        What else there is to tell of filter and restriction, in plain JSON types.
    ids : sequence of str
        Names of the questions.
    asked : GraphTerms or NamedTerms
        What questions give and where they come from. Of answers it has `terms`, by name, and the
        attributes from `graph` to `kept` that name a graph, a side or what is given are missing.
    grades : ndarray of int64, shape (n_instances,), or None
        Relevance of each answer, if any are graded.
    answer_terms : dict of str to Term
        Terms of single answers, by name.
    column_of : ndarray of int64, shape (n_labels,), or None
        The column of each entity (or relation) in rows of scores; None: columns go by id.
    """

    @classmethod
    def from_answers(
        cls,
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
        name: str | None = None,
    ) -> Questions:
        """Questions that no graph has asked: answers, what else is known, and named terms.

        Parameters
        ----------
        answers : mapping, sequence, pair of arrays, path or qrels
            Of each question: a mapping of its name to labels or ids of candidates, a list of such
            lists, or arrays (offsets, ids). Or qrels, as a path, a mapping of query to mapping of
            document to relevance, a frame, or columns: a document of relevance `level` or more is
            an answer, with its relevance as its grade; others are ordinary candidates. Or the path
            of a ``.jsonl`` file with a line ``{"id": ..., "answers": [...]}`` per question, and
            "known", "candidates" and "terms" if need be.
        known : mapping, sequence or pair of arrays, optional
            Further answers of each question, which do not compete with those that are ranked.
        candidates : mapping, sequence or pair of arrays, optional
            The candidates of each question; by default all. Results are labelled as sampled.
        labels : sequence of str, or int
            Labels of the candidates in the order of the columns of scores, or their number.
        ids : iterable of str, optional
            Names of the questions: those of a mapping, or "0", "1", ...; of qrels, which queries
            are asked, in the order of rows of scores.
        terms : mapping of str to sequence, optional
            By name, a text or whole number for each question, by which results can be sliced.
        grades : sequence, optional
            A whole number for each answer, in the form of the answers: its relevance.
        level : int, default 1
            Least relevance of an answer in qrels.
        known_has_answers : bool, default False
            `known` may hold the answers, too.
        name : str, optional
            Of the data, for reports.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            A question without answers; an answer that is not a candidate, that is known, or that
            stands twice; a name that stands twice. Question and label are named; of a file, the
            line.
        UsageError
            `labels` are missing, or options do not go together.

        Examples
        --------
        >>> questions = kgtrec.Questions.from_answers(
        ...     {"2p-0": ["Q5"], "2i-0": ["Q7", "Q9"]}, {"2p-0": ["Q7"]},
        ...     labels=["Q5", "Q7", "Q9"], terms={"structure": ["2p", "2i"]},
        ... )
        >>> len(questions), questions.n_instances
        (2, 3)
        """
        given = own.table_of(answers, known, candidates, ids, terms, grades, level)
        return own.questions_of(cls, given, own.as_labels(labels), known_has_answers, name)

    def separate(self) -> Questions:
        """One question per (side, triple), equal ones apart: each has a single answer.

        Rows of scores are those of ``rows="instances"``. The other answers of an equal question
        are known to each if the evaluated split is in the filter, so that micro and macro
        candidates are the same.
        """
        return lists.separate(self)

    def restrict(
        self,
        *,
        entities: npt.ArrayLike | None = None,
        relations: npt.ArrayLike | None = None,
        heads: Mapping[int, npt.ArrayLike] | None = None,
        tails: Mapping[int, npt.ArrayLike] | None = None,
        type_constraints: str | PathLike[str] | None = None,
        candidates: Any = None,
        columns: str = "entities",
        outside: str = "error",
        unknown: str = "error",
    ) -> Questions:
        """The same questions with their answers ranked among given candidates only.

        Lists by relation or by question meet a list of entities that was given before: what
        stands in both is a candidate.

        Parameters
        ----------
        entities : sequence of int, optional
            Entities that are candidates of every question. (To leave out triples with other
            entities as well, give `entities` to `Graph.questions`.)
        relations : sequence of int, optional
            Relations that are candidates of every question for the relation.
        heads, tails : mapping of int to sequence of int, optional
            Candidates by relation where the head, and where the tail is asked, such as type
            constraints. Relations without a list keep every entity.
        type_constraints : path, optional
            The same from OpenKE's ``type_constrain.txt``, with ``entity2id.txt`` and
            ``relation2id.txt`` beside it.
        candidates : array of int, shape (Q, m), or sequence of Q sequences, optional
            Candidates of each question, such as its answer and sampled negatives. Results are
            labelled as sampled. Or a mapping with arrays ``head_neg`` and ``tail_neg``, shape
            (triples, m), in split order, as OGB has them: every triple and side becomes a question
            of its own (`separate`), and its answer joins its negatives. Or the path of an ``.npz``
            with these arrays, or of a text file with a line ``question<TAB>entity<TAB>...`` per
            question.
        columns : {"entities", "candidates"}
            What the columns of score rows stand for: every entity, in id order, or (with
            `candidates`, lists of one length) a question's own candidates as they are listed; with
            negatives the answer comes first.
        outside : {"error", "worst"}
            An answer that is not among its candidates: an error, or ranked behind them all.
        unknown : {"error", "skip"}
            A label in a file that the graph lacks: an error, or passed over and counted.

        Returns
        -------
        Questions

        Raises
        ------
        InputError
            Unknown ids or labels, a wrong number of lists, or an answer outside (which is named).
        UsageError
            More or less than one kind of restriction, or one upon another that it can't meet.
        """
        return lists.restrict(
            self,
            {
                "entities": entities,
                "relations": relations,
                "heads": heads,
                "tails": tails,
                "type_constraints": type_constraints,
                "candidates": candidates,
            },
            columns,
            outside,
            unknown,
        )
