"""Judging pooled triples by hand (Zhou et al. 2022, 3.2).

``questions`` makes a question from the label of a relation and reads files of questions that people
edit. ``sheets`` has the sheets that annotators fill in, and distributes triples among them.
``journal`` keeps every answer, and ``server`` is the local web page (``page/``) for answering.
``agreement`` says how far annotators agree, and merges their judgements.
"""
