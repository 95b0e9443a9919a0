"""What a row of the table of trec_eval's measures holds, and how its functions are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["EITHER", "FALLING", "FIXED", "OF_SETS", "PLACES", "Family", "function_of"]

# Expectations over the orders of tied documents that need no function: the value is the same in
# every order, or is unless -M cuts a group of ties.
FIXED, OF_SETS = "the same in every order", "the same in every order of the same documents"

# What the number R of relevant documents does to a value whose places stay the same: nothing, it
# never raises it, or it acts either way. See `kgtrec.trec.measures.bounds`.
PLACES, FALLING, EITHER = "R plays no part", "R never raises it", "R acts either way"

_COUNT = "a count or a text, not a measure of quality"


class Family(NamedTuple):
    """A measure: all that names, help, values, ties and bounds need to know of it.

    Attributes
    ----------
    text : str
        What it measures, in one or more sentences.
    kind : str
        Of its parameters: "" none; "ignored" none, but those of the command line mean nothing;
        "rank" whole numbers and "point" decimals, a column each, "signed point" also below 0;
        "number" decimals, a column each, in the name as typed; "numbers" decimals that make one
        column; "gains" pairs level=gain; "p" persistence p=; "p,gains" both.
    defaults : tuple of float
        Parameters where none are given.
    output : str
        "double", "count" (a whole number, summed over queries) or "string".
    shown : str
        "both", "query" or "summary": where it is printed.
    new, ours : bool
        True for what trec_eval 9, or all of trec_eval, does not know.
    format : str
        The judgements that it is made for: "qrels", "prefs" (or qrels_prefs), "qrels_jg", "any".
    function : str or function (view, column) -> values of every query
        ``"module.name"`` in this folder, so that help needs no numpy; "" for runid alone.
    aliases : tuple of str
        Other names; ``"RBP:p=0.8"`` has parameters of its own.
    at : tuple of str
        What stands before "@" and a cutoff, in lower case: "ap" for ``AP@20``.
    ir_measures : str
        Its name there, with the parameter that sets it apart: "AP", "AP(cutoff)".
    expected : str or function (tied, column) -> values of every query
        Expectation over all orders of tied documents; `FIXED`, `OF_SETS`, or "" for none.
    bounds : str
        `PLACES`, `FALLING` or `EITHER`; else why open judgements do not bound it.
    in_pytrec_eval : bool
        Whether pytrec_eval computes it, for queries and with the documents at hand.
    graded : bool
        Relevance counts by its size, not only from a level on.
    from_ranks : bool
        Follows from the ranks of the relevant documents alone.
    sees : str
        "all" documents of a query, those down to the "cutoff", or "nothing".
    """

    text: str
    kind: str = ""
    defaults: tuple[float, ...] = ()
    output: str = "double"
    shown: str = "both"
    new: bool = False
    ours: bool = False
    format: str = "qrels"
    function: str | Callable[..., Any] = ""
    aliases: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    ir_measures: str = ""
    expected: str | Callable[..., Any] = ""
    bounds: str = _COUNT
    in_pytrec_eval: bool = True
    graded: bool = False
    from_ranks: bool = False
    sees: str = "all"


@cache
def function_of(name: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function of a row: itself, or by its ``module.name`` in this folder."""
    from importlib import import_module

    if callable(name):
        return name
    module, _, function = name.partition(".")
    loaded: Callable[..., Any] = getattr(import_module(f"kgtrec.trec.measures.{module}"), function)
    return loaded
