"""Predictions: files of ranked lists in, lists of entity ids per question out.

A list has the best candidates of a question from a system: raw or filtered, of any length, with
labels that may name no entity. `lists` has their common form; `readers` has the readers and the
table of formats. ``kgtrec.ranking.lists`` makes ranks of them.
"""
