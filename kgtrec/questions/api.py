"""The public `Graph`: a data class with methods for users."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy.typing as npt

from kgtrec.errors import FilterWarning, UsageError
from kgtrec.graph.graph import GraphData
from kgtrec.questions.filters import Filter, build_questions
from kgtrec.questions.questions import Questions


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
        """Questions that the triples of a split ask, with their answers and known entities.

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
        return build_questions(self, split, sides, how, entities, relations, columns)

    def questions_by_filter(
        self,
        filters: Sequence[str | Iterable[str]] = ("raw", "valid", "test"),
        split: str = "test",
        **options: Any,
    ) -> dict[str, Questions]:
        """The same questions under several filters, for one pass over the scores.

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
