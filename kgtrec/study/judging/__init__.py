"""Judging pooled triples by hand (Zhou et al. 2022, 3.2).

``questions`` makes a question from the label of a relation, and reads files of edited questions.
``sheets`` reads and writes sheets for annotators, and distributes triples among them.
``journal`` keeps every answer, and ``server`` is the local web page (``page/``) for answering.
``agreement`` computes the agreement of annotators, and merges their judgements; ``coefficients``
has the formulas.
``evidence`` checks the links that annotators give.
"""
