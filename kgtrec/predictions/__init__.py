"""Predictions: files of ranked lists in, lists of entity ids per question out.

A list holds the best candidates of a question as a system gave them: raw or filtered, of any
length, with labels that may name no entity. Open `lists` for what they become; `formats` is the
table of the readers, a file each. Ranks are made of them in ``kgtrec.ranking.lists``.
"""
